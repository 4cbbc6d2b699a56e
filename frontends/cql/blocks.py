"""Blocks of queries as they are written: what their names denote, and what is inside of their expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from frontends.sql.operations import ARITHMETIC
from river.classes import evolve, frozen
from river.il.trees import children, rebuild
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from river.source import Span


@frozen
class Names:
    """The sources of a block as what names denote. `more`: names that are known beside their columns."""

    labels: tuple[str, ...]
    rows: tuple[t.Record, ...]
    more: frozenset[str] = frozenset()

    def place(self, expr: s.Expr) -> tuple[str, str] | None:
        """Source and name of what a name, or a name with a source before it, denotes; None if that is none of these."""
        match expr:
            case s.Name(name):
                having = (
                    label
                    for label, row in zip(self.labels, self.rows, strict=True)
                    if row.field(name) is not None
                )
                label = next(having, "" if name in self.more else None)
                return None if label is None else (label, name)
            case s.Member(s.Name(label), name):
                return (label, name) if label in self.labels else None
            case _:
                return None

    def has(self, expr: s.Expr) -> bool:
        """Whether a name is one of these."""
        return self.place(expr) is not None


def parts_of(node: s.Node) -> Iterator[s.Node]:
    """`node` and what is inside it, but not inside of nested queries."""
    yield node
    for child in children(node):
        if not (isinstance(node, q.Nested) and child is node.query):
            yield from parts_of(child)


def aggregates(node: s.Node) -> Iterator[s.Expr]:
    """The aggregates in a part of a block, outermost."""
    if aggregate_of(node):
        yield cast("s.Expr", node)
        return
    for child in children(node):
        if isinstance(node, q.Over) and child is node.call:  # it is of rows that may be groups
            for argument in children(child):
                yield from aggregates(argument)
        elif not (isinstance(node, q.Nested) and child is node.query):
            yield from aggregates(child)


def has_nested(node: s.Node) -> bool:
    """Whether a part of a block has a query inside."""
    return any(isinstance(each, q.Nested) for each in parts_of(node))


def nests(block: q.Select) -> bool:
    """Whether a block has queries, or numbers of rows, inside of its expressions."""
    return any(isinstance(node, q.Nested | q.Over) for part in _clauses(block) for node in parts_of(part))


def _clauses(block: q.Select) -> Iterator[s.Node]:
    """The parts of a block that have expressions."""
    yield from block.items
    yield from block.group
    yield from block.order
    yield from (part for part in (block.where, block.having, block.qualify) if part is not None)
    yield from (source.joining for source in block.sources if source.joining is not None)


def is_single(block: q.Select) -> bool:
    """Whether a query has one row, whatever rows its sources have: it has aggregates, and nothing to group by."""
    if block.group or (block.limit == 0 or block.offset):
        return False
    return any(
        True for part in (*block.items, *([block.having] if block.having else [])) for _ in aggregates(part)
    )


def is_lost(expr: s.Expr) -> bool:
    """Whether what is made of aggregates is none where they are."""
    match expr:
        case _ if aggregate_of(expr):
            return True
        case s.Binary(op, left, right) if op in ARITHMETIC:
            return is_lost(left) or is_lost(right)
        case s.Unary("-", value):
            return is_lost(value)
        case _:
            return False


def with_items(block: q.Select, values: tuple[s.Expr, ...]) -> q.Select:
    """A block with these values; of `exists (select * ...)` there are none."""
    return evolve(block, items=tuple(q.Item(value, span=value.span) for value in values))


def column_of(label: str, name: str, span: Span | None = None) -> s.Expr:
    """A column of a source."""
    return s.Member(s.Name(label, span=span), name, span=span)


def is_there(label: str, mark: str) -> s.Expr:
    """Whether a left join has found a partner."""
    return s.Unary("not", s.IsNone(column_of(label, mark)))


def mapped(
    node: s.Node, inner: tuple[Names, ...], outer: Names, swap: Callable[[s.Expr], s.Expr],
    names_of: Callable[[q.Select], Names],
) -> s.Node:  # fmt: skip
    """A part of a nested query with the columns of the block around it (`outer`) swapped. `inner`: the blocks in between."""

    def rewrite(node: s.Node, inner: tuple[Names, ...]) -> s.Node:
        match node:
            case s.Name() | s.Member(s.Name()):
                known = any(names.has(node) for names in inner)
                return swap(node) if not known and outer.has(node) else node
            case q.Select():
                names = names_of(node)
                aliases = frozenset(
                    item.name for item in node.items if isinstance(item, q.Item) and item.name
                )
                around = inner if inner and inner[-1] == names else (*inner, names)
                named = (*around, evolve(names, more=aliases))
                behind = ("group", "having", "order")
                parts = {each: _each(getattr(node, each), lambda x: rewrite(x, named)) for each in behind}
                before = ("items", "sources", "where")
                parts |= {each: _each(getattr(node, each), lambda x: rewrite(x, around)) for each in before}
                return evolve(node, **parts)
            case _:
                return rebuild(node, lambda child: rewrite(child, inner))

    return rewrite(node, inner)


def _each(value: object, rewrite: Callable[[s.Node], s.Node]) -> object:
    if isinstance(value, tuple):
        return tuple(map(rewrite, cast("tuple[s.Node, ...]", value)))
    return None if value is None else rewrite(cast("s.Node", value))
