"""`order by`, `limit` and numbers of rows: what rows are ordered by, as values that ascend."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import syntax as q
from frontends.sql import typed as r
from frontends.sql.dates import DATE, days
from frontends.sql.joined import key_of, key_type
from frontends.sql.select_list import numbered
from frontends.sql.values import Found, spelled, strip
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.sources import Sources
    from river.report import Report

OrderedBy = tuple[tuple[int, q.OrderKey], ...]
"""Which columns of the select list, with those behind it, rows are ordered by, and how."""


def with_order(
    block: q.Select, items: tuple[q.Item, ...], wanted: t.Record | None, sources: Sources
) -> tuple[tuple[q.Item, ...], OrderedBy]:
    """The select list with columns behind it by which rows are ordered, and which each of these is."""
    if block.limit is None and not block.offset:
        if block.order:
            message = "a relation has no order: without `limit` it changes nothing"
            sources.report.remark("sql-order", message, block.order[0].span)
        return items, ()
    found = list(items)
    order: list[tuple[int, q.OrderKey]] = []
    names = [item.name for item in items] if wanted is None else [name for name, _ in wanted.fields]
    for each in block.order:
        value = numbered(each.value, items, sources.report)
        place = next((i for i, item in enumerate(found) if item.value == value), None)
        if isinstance(value, s.Name) and value.name in names:
            place = names.index(value.name)
        if place is None:
            if block.distinct:
                message = "different rows are ordered by what stands in the select list"
                raise sources.report.error("sql-order", message, each.span)
            taken = {
                *names,
                *(item.name for item in found),
                *(name for row in sources.rows for name, _ in row.fields),
            }
            place = len(found)
            found.append(q.Item(value, fresh("order", {name for name in taken if name}), span=each.span))
        order.append((place, each))
    return tuple(found), tuple(order)


def first(found: r.Relation, block: q.Select, shown: int, order: OrderedBy, report: Report) -> r.Relation:
    """The first rows, without the columns behind the select list."""
    row = t.Record(found.row.fields[:shown])
    parts = [part for i, each in order for part in _order_of(found.row.fields[i][0], each, found.row, report)]
    make: s.Expr = s.Name("r")
    if row != found.row:
        make = s.RecordValue(tuple(s.FieldValue(name, s.Member(s.Name("r"), name)) for name, _ in row.fields))
    most = None if block.limit is None else block.limit + block.offset
    return r.Top(
        found, row, t.UNIT, s.Lambda(("r",), s.TupleValue(())), *_ordered(parts), s.Lambda(r.NUMBERS, make),
        most=most, skipped=block.offset, span=block.span,
    )  # fmt: skip


def ranked(found: r.Relation, name: str, over: q.Over, report: Report) -> r.Relation:
    """The rows with their numbers."""
    keys = [s.Member(s.Name("r"), cast("s.Name", key).name) for key in over.keys]
    kinds = dict(found.row.fields)
    parts = [
        part
        for each in over.order
        for part in _order_of(cast("s.Name", each.value).name, each, found.row, report)
    ]
    shown = [s.FieldValue(column, s.Member(s.Name("r"), column)) for column, _ in found.row.fields]
    make = s.RecordValue((*shown, s.FieldValue(name, s.Name(over.function))))
    key = s.Lambda(("r",), key_of(list(keys)))
    return r.Top(
        found, t.Record((*found.row.fields, (name, t.I64))), key_type([kinds[key.name] for key in keys]), key,
        *_ordered(parts), s.Lambda(r.NUMBERS, make), by=over.function, span=over.span,
    )  # fmt: skip


def _order_of(name: str, order: q.OrderKey, row: t.Record, report: Report) -> list[Found]:
    """What rows are ordered by for one column: none is greater than all that is there, unless the text says otherwise."""
    kind, value = dict(row.fields)[name], s.Member(s.Name("r"), name, span=order.span)
    inner, found = strip(kind), list[Found]()
    if isinstance(kind, t.Optional):
        last = order.descending if order.first is None else order.first
        missing = s.IsNone(value)
        found.append(Found(s.Unary("not", missing) if last else missing, t.BOOL))
    made = _down(Found(value, inner) if inner == kind else Found(s.Force(value), inner), order, report)
    if inner == kind:
        return [*found, *made]
    return [
        *found,
        *(Found(s.IfExpr(s.IsNone(value), s.NoneValue(), x.expr), t.Optional(x.type)) for x in made),
    ]


def _down(found: Found, order: q.OrderKey, report: Report) -> list[Found]:
    """A value as what ascends where it shall; both zeros are one, and NaN is the greatest number."""
    value, kind = found.expr, found.type
    if kind in t.FLOATS:
        value = s.Binary("+", value, s.Float(0.0)) if kind == t.F64 else value
        if not order.descending:
            return [Found(value, kind)]
        number = s.Unary("not", s.Call("is_nan", (value,)))
        return [Found(number, t.BOOL), Found(s.Unary("-", value), kind)]
    if not order.descending:
        return [found]
    match kind:
        case t.BOOL:
            return [Found(s.Unary("not", value), kind)]
        case t.TIME | t.DURATION:
            return [Found(s.Unary("~", s.Call("micros", (value,))), t.I64)]
        case _ if kind == DATE:
            return [Found(s.Unary("~", days(value)), t.I64)]
        case t.STRING:
            return [Found(s.Call("cql.descending", (value,)), t.List(t.I64))]
        case t.Decimal():
            return [Found(s.Unary("-", value), kind)]
        case _ if kind in t.INTEGERS:
            return [Found(s.Unary("~", value), kind)]
        case _:
            message = f"rows are not ordered by `{spelled(kind)}` from the greatest on"
            raise report.error("sql-order", message, order.span)


def _ordered(parts: list[Found]) -> tuple[t.Record, s.Lambda]:
    """What rows are ordered by: its type, and how it is made of a row `r`."""
    row = t.Record(tuple((f"p{i}", part.type) for i, part in enumerate(parts)))
    value = s.RecordValue(tuple(s.FieldValue(f"p{i}", part.expr) for i, part in enumerate(parts)))
    return row, s.Lambda(("r",), value)
