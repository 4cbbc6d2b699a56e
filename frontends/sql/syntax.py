"""What a query says. Expressions are those of the operator language (`river.lang.syntax`), with `=` read as `==`.

`count(*)` is the call `count()`, and `count(distinct e)` the call `count.distinct(e)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import field, frozen
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from frontends.sql.typed import Fold
    from river.lang.types import Record


@frozen
class Quoted(s.Name):
    """What stands in double quotes where a value is wanted: a name, or a text, if no column is called so (`quoted.settled`)."""


@frozen
class Item(s.Node):
    """`e as name` in the select list."""

    value: s.Expr
    name: str | None = None


@frozen
class Star(s.Node):
    """`*`, or `alias.*`: all columns but those `without` which it is. `spread`: it was made of a star of all sources."""

    source: str | None = None
    without: tuple[str, ...] = ()
    spread: bool = False

    def of(self, labels: Iterable[str]) -> tuple[Star, ...]:
        """The same of each of some sources."""
        return tuple(Star(label, self.without, spread=True, span=self.span) for label in labels)


@frozen
class Joining(s.Node):
    """How a source is joined with those before it: `kind` is inner, left, right or full.

    `on` is the condition, `using` the columns that both sides have; if it is `natural`, all that they have.
    """

    kind: str
    on: s.Expr | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@frozen
class Source(s.Node):
    """`name as alias` after `from`; `joining` says how, if not by a comma. `hidden`: a column that `*` leaves out."""

    name: str
    alias: str | None = None
    joining: Joining | None = None
    hidden: str | None = field(default=None, kw_only=True)

    @property
    def label(self) -> str:
        """What qualifies its columns."""
        return self.alias or self.name


@frozen
class Unnest(Source):
    """`unnest(items) with ordinality as name (columns)` after `from`, or `(values (1, 'a'), (2, 'b')) as name (columns)`.

    `items` is a list over the sources before it; where it is None, `rows` are written out. `row` is what the columns are, as
    soon as it is known.
    """

    items: s.Expr | None = None
    rows: tuple[tuple[s.Expr, ...], ...] = ()
    columns: tuple[str, ...] = ()
    ordinality: bool = False
    row: Record | None = field(default=None, eq=False)


@frozen
class OrderKey(s.Node):
    """One of the values that rows are ordered by. `first`: whether none comes first (None: the text does not say)."""

    value: s.Expr
    descending: bool = False
    first: bool | None = None


@frozen
class Nested(s.Node):
    """A query inside of an expression; the language around it says what `query` is.

    `word` is value (the one value that the query has), exists, in, any or all; the last three compare `value` with the rows of
    the query, any and all by `op`.
    """

    word: str
    query: s.Node
    value: s.Expr | None = None
    op: str = "=="


@frozen
class Over(s.Node):
    """`row_number() over (partition by keys order by order)`.

    `function` is number, rank, dense, or aggregate; then `call` is that, of the rows of the `frame`: from so many rows before to
    so many behind (None: all; -1 behind: the row before). Without a frame it is of all rows up to the last one of equal order;
    with a `reach`, of those of them whose order lies at most so much before; with a `place`, of the row of this number alone.
    """

    function: str
    keys: tuple[s.Expr, ...] = ()
    order: tuple[OrderKey, ...] = ()
    call: s.Expr | None = None
    frame: tuple[int | None, int | None] | None = None
    reach: s.Expr | None = None
    place: int | None = None


@frozen
class Folded(s.Call):
    """A call of an aggregate that the user defines."""

    fold: Fold = field(kw_only=True)


@frozen
class Stated(s.Node):
    """A value that is said to be of a type. `place`: what it is, for people; `function`: of which it is the result."""

    value: s.Expr
    type: s.TypeExpr
    place: str
    function: str = ""


@frozen
class Select(s.Node):
    """`select items from sources where cond group by keys having cond order by order limit n offset m`.

    `ranks` are columns behind the others, by name; what they are over are columns of the result. `operator`: the word behind
    `select` by which a language makes a stream of the rows. `first_of`: of the rows of which these are equal, the first counts.
    """

    items: tuple[Item | Star, ...]
    sources: tuple[Source, ...]
    where: s.Expr | None = None
    group: tuple[s.Expr, ...] = ()
    having: s.Expr | None = None
    distinct: bool = False
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    qualify: s.Expr | None = None
    ranks: tuple[tuple[str, Over], ...] = ()
    operator: str | None = None
    first_of: tuple[s.Expr, ...] = ()
