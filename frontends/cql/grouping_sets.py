"""`group by rollup(a, b)`, `cube(a, b)`, `grouping sets ((a, b), (a), ())` and `all`: a block for each grouping, and `union all`.

A key by which a block does not group is none there, and `grouping(a)` is 1. Keys are told from names of the select list as
elsewhere: columns come first.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, cast

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of, has_aggregate
from frontends.sql.select_list import title
from river.classes import evolve, frozen
from river.il.trees import rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from frontends.cql.world import World
    from river.source import Span

Keys = tuple[s.Expr, ...]

SEVERAL = ("rollup", "cube", "grouping sets")
"""Functions that stand for several groupings."""
MOST = 64
"""Blocks that one query may stand for: of six keys, a cube."""


def has_several(block: q.Select) -> bool:
    """Whether a block stands for one with another `group by`, or for several."""
    return any(_word(key) is not None or _is_all(key) for key in block.group)


def separate(block: q.Select, name: str, world: World) -> q.Select | c.Combined:
    """A block that groups in one way, or a combination of declarations that do; `name` is how their names begin.

    Raises: Failed; the errors (codes sql-grouping) are in the report.
    """
    if not has_several(block):
        return block
    columns = frozenset(column for source in block.sources for column, _ in world.row_of(source).fields)
    if len(block.group) == 1 and _is_all(block.group[0]) and "all" not in columns:
        values = [item.value for item in block.items if isinstance(item, q.Item)]
        return evolve(block, group=tuple(value for value in values if not _is_made(value)))
    if not any(map(_word, block.group)):
        return block
    return _Sets(block, columns, name, world).combination()


def _is_all(key: s.Expr) -> bool:
    return isinstance(key, s.Name) and key.name.lower() == "all"


def _is_made(value: s.Expr) -> bool:
    """Whether an item is no key: it is made of groups, or the same for all rows."""
    names = any(isinstance(node, s.Name) for node in walk(value))
    return has_aggregate(value) or not names or any(isinstance(x, q.Over | q.Nested) for x in walk(value))


def _word(key: s.Expr) -> str | None:
    """What stands for several groupings, in small letters."""
    match key:
        case s.Call(function, _) if function.lower() in SEVERAL:
            return function.lower()
        case _:
            return None


@frozen
class _Sets:
    block: q.Select
    columns: frozenset[str]
    name: str
    world: World

    def combination(self) -> q.Select | c.Combined:
        """All groupings as one."""
        block, report = self.block, self.world.report
        own = [*block.items, *([] if block.qualify is None else [block.qualify])]
        if block.qualify is not None or any(isinstance(node, q.Over) for part in own for node in walk(part)):
            message = "rows of several groupings are numbered by a query around them"
            help_line = "write `select ..., rank() over (...) from (select ... group by rollup(...)) as g`"
            raise report.error("sql-grouping", message, block.span, help_line)
        if any(isinstance(item, q.Star) for item in block.items):
            message = "the select list of several groupings names its columns"
            raise report.error("sql-grouping", message, block.span, "write them instead of `*`")
        sets = [
            tuple(key for part in parts for key in part) for parts in product(*map(self.sets, block.group))
        ]
        if len(sets) > MOST:
            message = f"these are {len(sets)} groupings, at most {MOST} can stand in a query"
            raise report.error("sql-grouping", message, block.span, "name those you want: `grouping sets`")
        every = tuple(dict.fromkeys(key for keys in sets for key in keys))
        declared = [self.world.declared(c.Query(self.grouped(keys, every)), self.name) for keys in sets]
        first, *others = (q.Source(each, span=block.span) for each in declared)
        found: q.Source | c.Combined = first
        for i, other in enumerate(others):
            found = c.Combined("union", not block.distinct, found, other, span=block.span)
            if i + 1 < len(others):
                found = q.Source(self.world.declared(c.Query(found), self.name), span=block.span)
        if block.limit is None and not block.offset and isinstance(found, c.Combined):
            return found
        if isinstance(found, c.Combined):
            found = q.Source(self.world.declared(c.Query(found), self.name), span=block.span)
        order = tuple(evolve(each, value=self.shown(each.value)) for each in block.order)
        return q.Select(
            (q.Star(span=block.span),), (found,), distinct=block.distinct, order=order, limit=block.limit,
            offset=block.offset, span=block.span,
        )  # fmt: skip

    def sets(self, key: s.Expr) -> list[Keys]:
        """The groupings that a part of `group by` stands for."""
        word = _word(key)
        if word is None:
            return [self.keys(key)]
        args = cast("tuple[s.Expr, ...]", cast("s.Call", key).args)
        if word == "grouping sets":
            return [each for arg in args for each in self.sets(arg)]
        parts = [self.keys(arg) for arg in args]
        if word == "rollup":
            chosen: Iterator[tuple[Keys, ...]] = (tuple(parts[:n]) for n in range(len(parts), -1, -1))
        else:
            chosen = (each for n in range(len(parts), -1, -1) for each in combinations(parts, n))
        return [tuple(key for part in each for key in part) for each in chosen]

    def keys(self, key: s.Expr) -> Keys:
        """The keys of a part: what stands in parentheses is taken together."""
        values = key.items if isinstance(key, s.TupleValue) else (key,)
        return tuple(map(self.meant, values))

    def meant(self, key: s.Expr) -> s.Expr:
        """A key that is a number, or a name of the select list, is what stands there."""
        items = [item for item in self.block.items if isinstance(item, q.Item)]
        match key:
            case s.Int(number) if 1 <= number <= len(items):
                return items[number - 1].value
            case s.Name(name) if name not in self.columns:
                return next((item.value for item in items if item.name == name), key)
            case _:
                return key

    def grouped(self, keys: Keys, every: Keys) -> q.Select:
        """The block for one grouping."""
        block = self.block

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Call(function, args) if function.lower() in ("grouping", "grouping_id"):
                    return self.level(
                        [self.meant(cast("s.Expr", arg)) for arg in args], keys, every, node.span
                    )
                case _ if node in every and node not in keys:
                    absent = s.Call("any_value", (cast("s.Expr", node),), span=node.span)
                    return s.Call("filter", (absent, s.Bool(value=False)), span=node.span)
                case q.Nested():
                    return node
                case _:
                    return node if aggregate_of(node) else rebuild(node, rewrite)

        items = tuple(
            evolve(item, value=cast("s.Expr", rewrite(item.value)), name=item.name or title(item.value))
            for item in block.items
            if isinstance(item, q.Item)
        )
        having = None if block.having is None else cast("s.Expr", rewrite(block.having))
        parts = [item.value for item in items] + ([] if having is None else [having])
        if not keys and not any(map(has_aggregate, parts)):  # it is one group all the same
            having = s.Binary(">=", s.Call("count", ()), s.Int(0))
        return evolve(
            block, items=items, group=keys, having=having, distinct=False, order=(), limit=None, offset=0
        )

    def level(self, asked: list[s.Expr], keys: Keys, every: Keys, span: Span | None) -> s.Expr:
        """`grouping(a, b)`: a digit to base 2 for each, 1 where rows are not grouped by it."""
        number = 0
        for key in asked or every:
            if key not in every:
                raise self.world.report.error(
                    "sql-grouping", "`grouping` asks for a key of `group by`", key.span or span
                )
            number = 2 * number + (key not in keys)
        return s.Int(number, span=span)

    def shown(self, value: s.Expr) -> s.Expr:
        """What rows are ordered by, as a column of the result."""
        for item in self.block.items:
            if isinstance(item, q.Item) and item.value == value and (item.name or title(value)):
                return s.Name(cast("str", item.name or title(value)), span=value.span)
        return value
