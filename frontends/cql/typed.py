"""The abstract form of a program: sources, and views made of them by windows, relational algebra, and stream operators.

Paper: River section 3.1; the three kinds of operators are CQL's (stream to relation, relation to relation, relation to
stream). Every stream and every relation has a row type and, for what leaves or enters, the name of its time stamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from river.classes import field, frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.cql.externs import Called
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
class RowWindow(s.Node):
    """The last `count` rows; with keys, of each key. `keys` are columns."""

    count: int
    keys: tuple[str, ...] = ()


@frozen
class RowSteps(s.Node):
    """The last `count` rows as they were when their number was a multiple of `step`."""

    count: int
    step: int


@frozen
class Expiring(s.Node):
    """The rows of each key until none of them has come for longer than `span`; at most the last `count` (0: all).

    Without keys all rows are of one. Units: as `Range`.
    """

    keys: tuple[str, ...]
    count: int
    span_of_time: int


@frozen
class Recent(s.Node):
    """Those of the last `count` rows of each key (without keys: of all) that came at most `span` ago. Units: as `Range`."""

    keys: tuple[str, ...]
    count: int
    span_of_time: int


@frozen
class Buckets(s.Node):
    """Each row in each window [start, start + size) that has it, told when the window ends; starts are multiples of `step`.

    Rows have the two ends behind their own columns. Units: as `Range`.
    """

    size: int
    step: int


@frozen
class Sessions(s.Node):
    """All rows, each with the first instant of its session, and the last one and `gap` more.

    Rows of a key that follow each other by at most `gap` are of one session; without keys all rows are of one key. `grows`: the
    second column is by how much the row makes its session end later, so that no row is told again. Units: as `Range`.
    """

    keys: tuple[str, ...]
    gap: int
    grows: bool = False


Window = Unbounded | Range | RowWindow | RowSteps | Expiring | Recent | Buckets | Sessions

START, END = "window_start", "window_end"
"""The columns of `Buckets` and `Sessions` that tell the window of a row."""


def keys_of(window: Window | None) -> tuple[str, ...]:
    """The columns by which a window keeps rows apart."""
    return window.keys if isinstance(window, RowWindow | Expiring | Recent | Sessions) else ()


@frozen
class Source(s.Node):
    """A named stream seen through a window, or (window None) a named relation.

    `closed`: columns that tell when a row comes, which then stays: at the column's value and so many ticks more.
    """

    name: str
    label: str
    row: t.Record
    window: Window | None
    closed: tuple[tuple[str, int], ...] = ()


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
    """A stream or relation from outside. A relation's rows arrive as changes, with the sign in the column `op`.

    `table`: a relation whose rows have no time stamp: they are there before the first instant, and stay. `computed`: what
    the time stamp of a row `r` of the file is, which is no column there. `file`: where its data are, if the program says so.
    """

    name: str
    kind: Kind
    row: t.Record
    stamp: Stamp
    table: bool = False
    computed: s.Lambda | None = None
    file: str | None = None


@frozen
class View(s.Node):
    """A stream or relation made by a query. `output`: whether the world sees it.

    `called`: what its rows have as their last column.
    """

    name: str
    kind: Kind
    row: t.Record
    stamp: Stamp
    query: Query
    output: bool
    called: Called | None = None


@frozen
class Program(s.Node):
    """Inputs that are used, and views, each after those that it names.

    `tau`: the type of all time stamps. `functions`: those that expressions call beside those of the templates.
    """

    tau: t.Primitive
    inputs: tuple[Input, ...]
    views: tuple[View, ...]
    functions: tuple[s.Fn, ...] = ()
    remarks: tuple[Diagnostic, ...] = field(default=(), eq=False)
