"""The abstract form of a program: sources, and views made of them by windows, relational algebra, and stream operators.

Paper: River section 3.1; the three kinds of operators are CQL's (stream to relation, relation to relation, relation to
stream). Every stream and every relation has a row type and, for what leaves or enters, the name of its time stamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql import typed as r
    from river.diagnostics import Diagnostic

Kind = Literal["stream", "relation"]


# ---------------------------------------------------------------------------------------------- stream to relation


@frozen
class Unbounded(s.Node):
    """All rows so far."""


@frozen
class Range(s.Node):
    """The rows of the last `span` of time, both ends included; 0 is the present instant alone.

    Units: ticks of the stamp (i64), or microseconds (time). With `slide` (same unit, 0 if there is none) the window is that
    of the last multiple of `slide`, counted from 0.
    """

    span_of_time: int
    slide: int = 0


@frozen
class Rows(s.Node):
    """The last `count` rows; with keys, of each key. `keys` are columns."""

    count: int
    keys: tuple[str, ...] = ()


Window = Unbounded | Range | Rows


@frozen
class Source(s.Node):
    """A named stream seen through a window, or (window None) a named relation."""

    name: str
    label: str
    row: t.Record
    window: Window | None


# ---------------------------------------------------------------------------------------------- relation to stream

Operator = Literal["istream", "dstream", "rstream"]
"""What a relation says as a stream: the rows inserted at each instant, those deleted, or all."""


@frozen
class Query(s.Node):
    """Relational algebra over sources, and the operator that makes a stream of it (None for a relation)."""

    sources: tuple[Source, ...]
    relation: r.Relation
    operator: Operator | None


# ---------------------------------------------------------------------------------------------- declarations


@frozen
class Stamp:
    """The time stamp of what enters or leaves: its name, and whether rows have it as a column."""

    name: str
    column: bool


@frozen
class Input(s.Node):
    """A stream or relation from outside. A relation's rows arrive as changes, with the sign in the column `op`."""

    name: str
    kind: Kind
    row: t.Record
    stamp: Stamp


@frozen
class View(s.Node):
    """A stream or relation made by a query. `output`: whether the world sees it."""

    name: str
    kind: Kind
    row: t.Record
    stamp: Stamp
    query: Query
    output: bool


@frozen
class Program(s.Node):
    """Inputs that are used, and views, each after those that it names. `tau`: the type of all time stamps."""

    tau: t.Primitive
    inputs: tuple[Input, ...]
    views: tuple[View, ...]
    remarks: tuple[Diagnostic, ...] = field(default=(), eq=False)
