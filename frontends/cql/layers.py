"""Blocks that become two: groups, or rows with their numbers, as a source, and around it a block of what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import syntax as c
from frontends.cql.blocks import aggregates, column_of, mapped
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from frontends.sql.select_list import title
from river.classes import evolve
from river.il.trees import children, rebuild
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from frontends.cql.unnesting import Unnesting


def over_groups(work: Unnesting, items: tuple[q.Item, ...]) -> q.Select:
    """The groups as a source, and what is asked of them as a block around it."""
    block, report = work.outer, work.world.report
    aliases = {item.name: item.value for item in items if item.name is not None}

    def meant(node: s.Node) -> s.Node:
        match node:
            case s.Name(name) if name in aliases and not work.names.has(node):
                return aliases[name]
            case s.Int(number) if node in block.group and 0 < number <= len(items):
                return items[number - 1].value
            case _:
                return node if isinstance(node, q.Nested) else rebuild(node, meant)

    keys = [cast("s.Expr", meant(key)) for key in block.group]
    if not keys:
        keys = list(dict.fromkeys(each for item in items for each in _columns(work, item.value)))
    having = None if block.having is None else cast("s.Expr", meant(block.having))
    order = tuple(evolve(each, value=cast("s.Expr", meant(each.value))) for each in block.order)
    qualify = None if block.qualify is None else cast("s.Expr", meant(block.qualify))
    label = work.label("groups")
    parts: dict[s.Expr, str] = {}
    asked = [*items, *(part for part in (having, qualify) if part is not None), *order]
    for part in (*keys, *(each for one in asked for each in aggregates(one))):
        parts.setdefault(part, work.fresh(title(part) or "part"))

    def read(node: s.Node) -> s.Node:
        if node in parts:
            return column_of(label, parts[cast("s.Expr", node)], node.span)
        match node:
            case q.Nested():
                return _inside(work, node, of_group, read)
            case s.Name() | s.Member(s.Name()):
                return of_group(node) if work.names.has(node) else node
            case _:
                return rebuild(node, read)

    def of_group(node: s.Expr) -> s.Expr:
        if node in parts:
            return column_of(label, parts[node], node.span)
        for key in keys:
            if work.names.has(key) and work.names.place(key) == work.names.place(node):
                return column_of(label, parts[key], node.span)
        raise report.error(
            "sql-not-grouped", "this column may differ within a group", node.span, "group by it"
        )

    inner = evolve(
        block, items=tuple(q.Item(part, name, span=part.span) for part, name in parts.items()), group=tuple(keys),
        having=None, distinct=False, order=(), limit=None, offset=0, qualify=None,
    )  # fmt: skip
    name = work.declared(inner)
    shown = tuple(
        evolve(item, value=cast("s.Expr", read(item.value)), name=work.name_of(item)) for item in items
    )
    return q.Select(
        shown, (q.Source(name, label, span=block.span),), None if having is None else cast("s.Expr", read(having)),
        distinct=block.distinct, order=tuple(evolve(each, value=cast("s.Expr", read(each.value))) for each in order),
        limit=block.limit, offset=block.offset, span=block.span,
        qualify=None if qualify is None else cast("s.Expr", read(qualify)),
    )  # fmt: skip


def numbered(work: Unnesting, items: tuple[q.Item, ...]) -> q.Select:
    """The rows with their numbers as a source, and what is asked of them as a block around it."""
    block = work.outer
    aliases = {item.name: item.value for item in items if item.name is not None}

    def meant(node: s.Node) -> s.Node:
        match node:
            case s.Name(name) if name in aliases and not work.names.has(node):
                return aliases[name]
            case _:
                return node if isinstance(node, q.Nested) else rebuild(node, meant)

    qualify = None if block.qualify is None else cast("s.Expr", meant(block.qualify))
    order = tuple(evolve(each, value=cast("s.Expr", meant(each.value))) for each in block.order)
    label = work.label("numbered")
    parts: dict[s.Expr, str] = {}
    ranks: dict[q.Over, str] = {}
    others, name = work.label("others"), ""

    def part(expr: s.Expr) -> str:
        return parts.setdefault(expr, work.fresh(title(expr) or "part"))

    def column(expr: s.Expr) -> s.Expr:
        return column_of(label, part(expr), expr.span)

    def of_other(node: s.Node) -> s.Node:
        match node:
            case s.Name() | s.Member(s.Name()):
                return column_of(others, part(node), node.span) if work.names.has(node) else node
            case _:
                return rebuild(node, of_other)

    def peers(node: q.Over, call: s.Expr) -> q.Nested:
        """The aggregate of the rows of equal keys, and in the frame of a row."""
        sides = [(column_of(others, part(key)), column_of(label, part(key))) for key in node.keys]
        ties: list[s.Expr] = [
            s.Call("alike", pair) if name and _unlike(work, name, pair[0]) else s.Binary("==", *pair)
            for pair in sides
        ]
        if node.order or node.frame is not None:
            function = "rank" if node.frame is None and node.place is None else "number"
            own = evolve(node, function=function, call=None, frame=None, reach=None, place=None)
            number = cast("s.Member", read(own))
            low, high = (None, 0) if node.frame is None else node.frame
            if node.place is not None:
                ties.append(s.Binary("==", column_of(others, number.name), s.Int(node.place)))
                low, high = None, None
            for op, bound in ((">=", low), ("<=", high)):
                if bound is not None:
                    ties.append(
                        s.Binary(op, column_of(others, number.name), s.Binary("+", number, s.Int(bound)))
                    )
        if node.reach is not None:
            (by,) = node.order
            away, near = column_of(others, part(by.value)), column_of(label, part(by.value))
            sign, op = ("+", "<=") if by.descending else ("-", ">=")
            ties.append(s.Binary(op, away, s.Binary(sign, near, node.reach)))
        asked = q.Item(cast("s.Expr", of_other(call)), span=node.span)
        rows = q.Source(name or work.names.labels[0], others, span=node.span)
        inner = q.Select((asked,), (rows,), s.joined("and", ties) if ties else None, span=node.span)
        return q.Nested("value", c.Query(inner, span=node.span), span=node.span)

    def read(node: s.Node) -> s.Node:
        match node:
            case q.Over(_, _, _, call) if call is not None:
                return peers(node, call)
            case q.Over(_, keys, over):
                own = evolve(
                    node, keys=tuple(s.Name(part(key)) for key in keys),
                    order=tuple(evolve(each, value=s.Name(part(each.value))) for each in over),
                )  # fmt: skip
                return column_of(label, ranks.setdefault(own, work.fresh("rank")), node.span)
            case q.Nested():
                return _inside(work, node, column, read)
            case s.Name() | s.Member(s.Name()):
                return column(node) if work.names.has(node) else node
            case _:
                return rebuild(node, read)

    for each in (*items, *order, *(() if qualify is None else (qualify,))):
        read(each)  # so it is known which columns there are
    if not parts:  # `row_number() over ()` alone is of all rows
        row = work.names.rows[0].fields[0][0]
        parts[column_of(work.names.labels[0], row)] = work.fresh(row)
    inner = evolve(
        block, items=tuple(q.Item(each, name, span=each.span) for each, name in parts.items()), distinct=False, order=(),
        limit=None, offset=0, qualify=None, ranks=tuple((name, over) for over, name in ranks.items()),
    )  # fmt: skip
    name = work.declared(inner)
    shown = tuple(
        evolve(item, value=cast("s.Expr", read(item.value)), name=work.name_of(item)) for item in items
    )
    where = None if qualify is None else cast("s.Expr", read(qualify))
    ordered = tuple(evolve(each, value=cast("s.Expr", read(each.value))) for each in order)
    source = q.Source(name, label, span=block.span)
    return q.Select(
        shown, (source,), where, distinct=block.distinct, order=ordered, limit=block.limit, offset=block.offset,
        span=block.span,
    )  # fmt: skip


def _unlike(work: Unnesting, name: str, column: s.Expr) -> bool:
    """Whether a value of a column of a declaration may be unlike itself: none, or a float that is no number."""
    kind = dict(work.world.row_of(q.Source(name)).fields)[cast("s.Member", column).name]
    return isinstance(kind, t.Optional) or t.contains(kind, *t.FLOATS)


def _inside(
    work: Unnesting, node: q.Nested, swap: Callable[[s.Expr], s.Expr], read: Callable[[s.Node], s.Node]
) -> q.Nested:
    """A nested query whose columns of the block around it are swapped, and the value that it is compared with as it is read."""
    inside = mapped(node.query, (), work.names, swap, work.names_of)
    return evolve(node, query=inside, value=None if node.value is None else cast("s.Expr", read(node.value)))


def _columns(work: Unnesting, node: s.Node) -> Iterator[s.Expr]:
    """The columns that an item reads outside of aggregates and nested queries."""
    if aggregate_of(node) or isinstance(node, q.Nested):
        return
    if isinstance(node, s.Name | s.Member) and work.names.has(node):
        yield node
        return
    for child in children(node):
        yield from _columns(work, child)
