"""What nested queries come to, each word in its way: `in`, `exists`, `any`, `all`, and the value of a query.

The query becomes a declaration; the block around it is joined with that, and reads there whether it has a partner, or the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import ties
from frontends.cql.blocks import aggregates, column_of, is_lost, is_single, is_there, with_items
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from frontends.sql.check import may_be_none
from frontends.sql.select_list import title
from river.classes import evolve
from river.il.trees import rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from frontends.cql.ties import Closed
    from frontends.cql.unnesting import Unnesting


def met(work: Unnesting, nested: q.Nested) -> s.Expr | None:
    """`in` or `exists` as a condition that is true or not: a join with different rows."""
    body = work.body(nested)
    if is_single(body):
        return work.value(nested, "inner")
    values = () if nested.value is None else _compared(work, nested)
    items = work.items(body, len(values), nested.span) if values else ()
    partners(work, ties.closed(work, with_items(body, items)), values, "inner")
    return None


def one_of(work: Unnesting, nested: q.Nested, body: q.Select) -> s.Expr:
    """`x in (query)`: unknown where x is none, or none is among the rows, unless there is nothing or x itself."""
    values, span = _compared(work, nested), nested.span
    items = work.items(body, len(values), span)
    if is_single(body):
        found = [single(work, body, item, "left") for item in items]
        return s.joined("and", [s.Binary("==", a, b, span=span) for a, b in zip(values, found, strict=True)])
    closed = ties.closed(work, with_items(body, items))
    there = is_there(*partners(work, closed, values, "left"))
    unsure = any(
        _unsure(work, value, cast("q.Item", item).value, closed)
        for value, item in zip(values, closed.block.items, strict=True)
    )
    if not unsure:
        return there
    if len(values) != 1:
        message, help_line = (
            "several values are looked for, and some may be none",
            "write it with `exists`",
        )
        raise work.world.report.error("sql-nested-none", message, span, help_line)
    n, present = _summed(work, closed, ("n", "present"))
    unknown = s.Binary(
        "or", s.Binary("<", present, n), s.Binary("and", s.Binary(">", n, s.Int(0)), s.IsNone(values[0]))
    )
    return s.IfExpr(
        there, s.Bool(value=True), s.IfExpr(unknown, s.NoneValue(), s.Bool(value=False)), span=span
    )


def quantified(work: Unnesting, nested: q.Nested, body: q.Select) -> s.Expr:
    """`x < any (query)`, `x < all (query)`: the least and greatest row decide, none makes them unknown."""
    (value,), span, every = _compared(work, nested), nested.span, nested.word == "all"
    items = work.items(body, 1, span)
    if is_single(body):
        return s.Binary(nested.op, value, single(work, body, items[0], "left"), span=span)
    closed = ties.closed(work, with_items(body, items))
    n, present, least, greatest = _summed(work, closed, ("n", "present", "least", "greatest"))
    compare = [s.Binary(nested.op, value, side, span=span) for side in (least, greatest)]
    match nested.op:
        case "==" | "!=":
            test: s.Expr = s.Binary("and" if every else "or", *compare, span=span)
        case "<" | "<=":
            test = compare[0 if every else 1]
        case _:
            test = compare[1 if every else 0]
    decided = s.Call("is_false" if every else "is_true", (test,), span=span)
    gap = s.IfExpr(s.Binary("<", present, n), s.NoneValue(), test, span=span)
    certain = s.IfExpr(decided, s.Bool(value=not every), gap, span=span)
    return s.IfExpr(s.Binary("==", n, s.Int(0)), s.Bool(value=every), certain, span=span)


def single(work: Unnesting, body: q.Select, item: s.Expr, kind: str) -> s.Expr:
    """A value of a query that has aggregates alone: made of these behind the join."""
    having = body.having if body.having is not None and body.having is not item else None
    parts: dict[s.Expr, str] = {}
    for part in (*aggregates(item), *(() if having is None else aggregates(having))):
        parts.setdefault(part, work.fresh(title(part) or "part"))
    if not parts:  # `exists (select 1 from t having ...)` of nothing that is counted
        parts[s.Call("count", ())] = work.fresh("count")
    items = tuple(q.Item(part, name, span=part.span) for part, name in parts.items())
    closed = ties.closed(
        work, evolve(body, items=items, having=None, distinct=False, order=(), limit=None, offset=0)
    )
    names = [work.fresh("key") for _ in closed.keys]
    keys = [q.Item(key, name, span=key.span) for (key, _), name in zip(closed.keys, names, strict=True)]
    counts = any((aggregate_of(part) or "").startswith("count") for part in parts)
    strict = kind == "inner" and not counts and having is None and is_lost(item)
    block, label = closed.keyed(), work.label("nested")
    name = work.declared(evolve(block, items=(*keys, *closed.block.items)))
    ties.join(work, name, label, closed.tied(label, names), "inner" if strict else "left", body.span)

    def read(node: s.Node) -> s.Node:
        if node not in parts:
            return node if isinstance(node, q.Nested) else rebuild(node, read)
        member = column_of(label, parts[cast("s.Expr", node)], node.span)
        if (aggregate_of(node) or "").startswith("count"):
            return s.Call("coalesce", (member, s.Int(0)), span=node.span) if not strict else member
        return member

    value = work.replaced(cast("s.Expr", read(item)))
    if having is None:
        return value
    return s.IfExpr(work.replaced(cast("s.Expr", read(having))), value, s.NoneValue(), span=item.span)


def only(work: Unnesting, body: q.Select, item: s.Expr, kind: str) -> s.Expr:
    """The value of a query that has at most one row; it is a trap to ask where there are more."""
    closed = ties.closed(work, with_items(body, (item,)))
    if kind == "left" or body.limit != 1:
        n, value = _summed(work, closed, ("n", "least"))
        return s.IfExpr(s.Call("one row", (n,), span=item.span), value, s.NoneValue(), span=item.span)
    block, values, keys = _unlimited(work, closed, [item])
    columns = [q.Item(each, work.fresh("of"), span=item.span) for each in (*values, *keys)]
    label = work.label("nested")
    name = work.declared(evolve(block, items=tuple(columns)))
    names = [cast("str", column.name) for column in columns]
    ties.join(work, name, label, closed.tied(label, names[1:]), "inner", body.span)
    return column_of(label, names[0], item.span)


def partners(work: Unnesting, closed: Closed, values: tuple[s.Expr, ...], kind: str) -> tuple[str, str]:
    """Joins with the different rows of a query that are equal to `values`; a source and a column that is never none in it."""
    block = closed.block
    items = [item.value for item in cast("tuple[q.Item, ...]", block.items)] if values else []
    mark = q.Item(s.Bool(value=True), work.fresh("there"))
    columns = [
        q.Item(each, work.fresh("of"), span=each.span) for each in (*items, *(key for key, _ in closed.keys))
    ]
    if values or block.offset or block.limit == 0:
        block, items, keys = _unlimited(work, closed, items)
        named = [evolve(each, value=value) for each, value in zip(columns, (*items, *keys), strict=True)]
        first = evolve(block, items=(*named, mark), distinct=True)
    else:  # which are the first does not matter
        closed = evolve(closed, block=evolve(block, order=(), limit=None))
        first = evolve(closed.keyed(), items=(*columns, mark), distinct=True)
    name, label = work.declared(first), work.label("nested")
    pairs = [(value, column.name) for value, column in zip(values, columns, strict=False)]
    on = [
        s.Binary("==", value, column_of(label, cast("str", name)), span=value.span) for value, name in pairs
    ]
    on += closed.tied(label, [cast("str", each.name) for each in columns[len(items) :]])
    ties.join(work, name, label, on, kind, block.span)
    return label, cast("str", mark.name)


def _summed(work: Unnesting, closed: Closed, asked: tuple[str, ...]) -> list[s.Expr]:
    """Joins with what the rows of a query come to, and how it is read.

    `asked`: n (rows), present (rows that are not none), least, greatest.
    """
    names = [work.fresh("key") for _ in closed.keys]
    block, (value,), keys = _unlimited(work, closed, [cast("q.Item", closed.block.items[0]).value])
    functions = {
        "n": s.Call("count", ()), "present": s.Call("count", (value,)), "least": s.Call("min", (value,)),
        "greatest": s.Call("max", (value,)),
    }  # fmt: skip
    columns = [q.Item(functions[each], work.fresh(each), span=closed.block.span) for each in asked]
    found = [q.Item(key, name, span=key.span) for key, name in zip(keys, names, strict=True)]
    grouped = evolve(block, items=(*found, *columns), group=keys)
    label = work.label("nested")
    ties.join(work, work.declared(grouped), label, closed.tied(label, names), "left", block.span)
    read: list[s.Expr] = []
    for each, column in zip(asked, columns, strict=True):
        member = column_of(label, cast("str", column.name), closed.block.span)
        read.append(s.Call("coalesce", (member, s.Int(0))) if each in ("n", "present") else member)
    return read


def _unlimited(
    work: Unnesting, closed: Closed, values: list[s.Expr]
) -> tuple[q.Select, list[s.Expr], tuple[s.Expr, ...]]:
    """A block over the rows of a query: nothing but conditions, what its values are there, and the keys."""
    keys = tuple(key for key, _ in closed.keys)
    if (
        not closed.block.group
        and closed.block.limit is None
        and not closed.block.offset
        and not closed.block.distinct
    ):
        return closed.block, values, keys
    block, span = closed.keyed(), closed.block.span
    order = [_ordering(each.value, block) for each in block.order]
    shown = [q.Item(each, work.fresh("value"), span=each.span) for each in (*values, *keys)]
    read: list[s.Expr] = [s.Name(cast("str", item.name), span=item.span) for item in shown]
    where: s.Expr | None = None
    if keys and (block.limit is not None or block.offset):  # of each key the first
        shown += [q.Item(each, work.fresh("order"), span=each.span) for each in order]
        by = [s.Name(cast("str", item.name)) for item in shown[len(read) :]]
        numbered = tuple(evolve(each, value=name) for each, name in zip(block.order, by, strict=True))
        over, number = (
            q.Over("number", tuple(read[len(values) :]), numbered, span=span),
            work.fresh("number"),
        )
        tests = [s.Binary(">", s.Name(number), s.Int(block.offset))] if block.offset else []
        if block.limit is not None:
            tests.append(s.Binary("<=", s.Name(number), s.Int(block.limit + block.offset)))
        block, where = (
            evolve(block, order=(), limit=None, offset=0, ranks=((number, over),)),
            s.joined("and", tests),
        )
    name = work.declared(evolve(block, items=tuple(shown)))
    around = q.Select((), (q.Source(name, span=span),), where, span=span)
    return around, read[: len(values)], tuple(read[len(values) :])


def _ordering(value: s.Expr, block: q.Select) -> s.Expr:
    """What rows are ordered by: a number, or a name of the select list, is what stands there."""
    for place, item in enumerate(block.items):
        named = isinstance(value, s.Name) and isinstance(item, q.Item) and item.name == value.name
        if isinstance(item, q.Item) and (value == s.Int(place + 1) or named):
            return item.value
    return value


def _compared(work: Unnesting, nested: q.Nested) -> tuple[s.Expr, ...]:
    """What is compared with the rows of a query."""
    assert nested.value is not None  # noqa: S101 - so it was parsed
    value = work.replaced(nested.value)
    return value.items if isinstance(value, s.TupleValue) else (value,)


def _unsure(work: Unnesting, value: s.Expr, own: s.Expr, closed: Closed) -> bool:
    """Whether a value, or that of a nested query, may be none."""
    inner, scope = closed.block, work.world.scope
    return may_be_none(work.outer, work.names.rows, value, scope) or may_be_none(
        inner, work.names_of(inner).rows, own, scope
    )
