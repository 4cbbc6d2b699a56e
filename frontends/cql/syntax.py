"""What a River-CQL text says: declarations of streams and relations, some of them by queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql.syntax import Item, Select, Source
from river.classes import field, frozen
from river.lang import syntax as s

if TYPE_CHECKING:
    from fractions import Fraction

    from river.source import Span


@frozen
class Now(s.Node):
    """`[now]`. `stamp` is the column that the text takes for the time stamp."""

    stamp: s.Name | None = None


@frozen
class Unbounded(s.Node):
    """`[unbounded]`, `[range unbounded]`."""


@frozen
class Length(s.Node):
    """`5 minutes`, `0.5 seconds`, `interval '5' minute`; a number alone counts seconds."""

    number: Fraction
    unit: str | None = None


@frozen
class Range(s.Node):
    """`[range 5 minutes slide 1 minute]`; with keys the same, because what is young does not depend on them.

    `open`: its older end does not belong to it, whatever the program says of its windows.
    """

    length: Length
    slide: Length | None = None
    keys: tuple[s.Expr, ...] = ()
    open: bool = False


@frozen
class RowWindow(s.Node):
    """`[rows 10 slide 5]`, `[partition by car rows 1 expire after 60 seconds]`, `[partition by car rows 5 range 60 seconds]`."""

    count: int
    keys: tuple[s.Expr, ...] = ()
    slide: int | None = None
    expiry: Length | None = None
    age: Length | None = None


@frozen
class Session(s.Node):
    """`[session 10 seconds]`, `[partition by user session 10 seconds]`."""

    gap: Length
    keys: tuple[s.Expr, ...] = ()


@frozen
class WindowTable(s.Node):
    """`tumble(s, 10 minutes)`, `hop(s, 1 minute, 10 minutes)`, `session(s partition by user, 10 seconds)`.

    Each row has columns `window_start` and `window_end`. `stamp` is the column that the text takes for the time stamp.
    `grouped`: the rows are grouped by them without saying so.
    """

    function: str
    lengths: tuple[Length, ...]
    keys: tuple[s.Expr, ...] = ()
    stamp: s.Name | None = None
    grouped: bool = False


Window = Now | Unbounded | Range | RowWindow | Session | WindowTable


@frozen
class Windowed(Source):
    """`name [window] as alias` after `from`."""

    window: Window = Unbounded()


@frozen
class AsOf(Source):
    """`name for system_time as of label.stamp`: a relation as it is at the instants of rows of the source `label`."""

    label_of: str | None = None
    stamp: s.Name | None = None


@frozen
class Combined(s.Node):
    """`left union all right`: `word` is union, except or intersect; `every` if rows count as often as they are there.

    The sides are what stands in the text (`flatten` gives each a declaration of its own), or names of such declarations.
    """

    word: str
    every: bool
    left: Select | Combined | Source
    right: Select | Combined | Source

    @property
    def sources(self) -> tuple[Source, ...]:
        """The declarations that it combines."""
        return tuple(side for side in (self.left, self.right) if isinstance(side, Source))


@frozen
class Query(s.Node):
    """`select ...`, or `istream(select ...)`; `operator` is istream, dstream, rstream, or None.

    `within`: the queries after `with`, by name. `columns`: what its first columns are called, if it is said behind it.
    """

    select: Select | Combined
    operator: str | None = None
    within: tuple[tuple[str, Query], ...] = ()
    columns: tuple[str, ...] = ()


@frozen
class Derived(Source):
    """`(query) [window] as alias` after `from`; `lateral`: it may read the sources before it."""

    query: Query | None = None
    window: Window | None = None
    lateral: bool = False


@frozen
class Decl(s.Node):
    """`name: {fields} stream by stamp = query;`.

    `kind` is stream or relation; or query: a stream, if the text says so or no row ever goes. `name_span`: the name alone.

    `inner`: it stands inside of another query, and `flatten` has named it. `hidden`: `*` leaves out its time stamp.
    `stamp`: what the time stamp of a row is, if it is no column. `computed`: columns that are
    made of others. `file`: where its data are, in a script of STREAM.
    """

    name: str
    type: s.RecordType | None
    kind: str
    by: str | None
    query: Query | None
    output: bool = False
    name_span: Span | None = field(default=None, eq=False, repr=False)
    inner: bool = False
    hidden: bool = False
    stamp: s.Expr | None = None
    computed: tuple[Item, ...] = ()
    by_span: Span | None = field(default=None, eq=False, repr=False)
    file: str | None = None


@frozen
class Parameter(s.Node):
    """`param name = value;`: what `:name` stands for, unless a later one says otherwise."""

    name: str
    value: s.Expr


@frozen
class ScalarFunction(s.Node):
    """`fn name(x: int): int = body;`."""

    name: str
    params: tuple[tuple[str, s.TypeExpr], ...]
    result: s.TypeExpr
    body: s.Expr


@frozen
class ExternFunction(s.Node):
    """`fn name(x: int): int = extern python "module:function";`."""

    name: str
    params: tuple[tuple[str, s.TypeExpr], ...]
    result: s.TypeExpr
    target: str


@frozen
class AggregateFunction(s.Node):
    """`aggregate name(x: int): int {init: {...}; add: {...}; remove: {...}; value: ...};`; `parts` as they stand in the text."""

    name: str
    params: tuple[tuple[str, s.TypeExpr], ...]
    result: s.TypeExpr
    parts: tuple[tuple[str, s.Expr], ...]


@frozen
class Program(s.Node):
    """Declarations in the order of the text.

    `half_open`: a range of length n at t begins behind t - n, not at it. `tick`: the unit of stamps of type `int`.
    """

    decls: tuple[Decl, ...]
    half_open: bool = False
    tick: Length | None = None
    parameters: tuple[Parameter, ...] = ()
    functions: tuple[ScalarFunction, ...] = ()
    aggregates: tuple[AggregateFunction, ...] = ()
    externs: tuple[ExternFunction, ...] = ()
