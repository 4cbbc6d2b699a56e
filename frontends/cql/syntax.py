"""What a River-CQL text says: declarations of streams and relations, some of them by queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from frontends.sql.syntax import Select, Source
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.source import Span


@frozen
class Now(s.Node):
    """`[now]`."""


@frozen
class Unbounded(s.Node):
    """`[unbounded]`, `[range unbounded]`."""


@frozen
class Range(s.Node):
    """`[range 5 minutes slide 1 minute]`; without a unit, ticks of the time stamp (seconds if it is a time)."""

    length: int
    unit: str | None = None
    slide: tuple[int, str | None] | None = None


@frozen
class Rows(s.Node):
    """`[rows 10]`, `[partition by car rows 1]`."""

    count: int
    keys: tuple[s.Expr, ...] = ()


Window = Now | Unbounded | Range | Rows


@frozen
class Windowed(Source):
    """`name [window] as alias` after `from`."""

    window: Window = Unbounded()


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

    `within`: the queries after `with`, by name.
    """

    select: Select | Combined
    operator: str | None = None
    within: tuple[tuple[str, Query], ...] = ()


@frozen
class Derived(Source):
    """`(query) [window] as alias` after `from`."""

    query: Query | None = None
    window: Window | None = None


@frozen
class Decl(s.Node):
    """`name: {fields} stream by stamp = query;`; `kind` is stream or relation. `name_span`: the name alone.

    `inner`: it stands inside of another query, and `flatten` has named it.
    """

    name: str
    type: s.RecordType | None
    kind: str
    by: str | None
    query: Query | None
    output: bool = False
    name_span: Span | None = field(default=None, eq=False, repr=False)
    inner: bool = False


@frozen
class Program(s.Node):
    """Declarations in the order of the text."""

    decls: tuple[Decl, ...]
