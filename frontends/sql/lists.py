"""Lists: made of values, asked for one, and their items by number."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from frontends.sql import operators
from frontends.sql.values import Found, convert, loosened, spelled, strip, typed_literal
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


def array(over: RowExpressions, values: tuple[Found, ...], expr: s.Call) -> Found:
    """`array[a, b]`: a list of values of one type."""
    kinds = {strip(value.type) for value in values}
    if len(kinds) > 1:
        listed = " and ".join(sorted(f"`{spelled(kind)}`" for kind in kinds))
        message = f"a list has items of {listed}"
        raise over.report.error("sql-function-operands", message, expr.span, "write values of one type")
    loose = any(isinstance(value.type, t.Optional) for value in values)
    values = tuple(typed_literal(value) for value in values)
    items = tuple(loosened(value) if loose else value.expr for value in values)
    return over.typed(s.ListValue(items, span=expr.span))


def has(over: RowExpressions, items: Found, value: Found, expr: s.Expr) -> Found:
    """Whether a value is among the items of a list."""
    kind = strip(items.type)
    if not isinstance(kind, t.List):
        message = f"a value is looked for in a list, this is `{spelled(items.type)}`"
        help_line = (
            "of a query it is `x in (select ...)`, of values `x in (1, 2)`, of a text `contains(s, part)`"
        )
        raise over.report.error("sql-function-operands", message, items.expr.span or expr.span, help_line)
    if strip(kind.item) == t.F64:
        value = convert(value, t.F64)
    if isinstance(items.expr, s.ListValue):  # written out: `array[1, 2]`
        tests = [operators.comparison(over, "==", value, Found(x, kind.item), expr) for x in items.expr.items]
        return functools.reduce(lambda a, b: operators.logic(over, "or", a, b, expr), tests)

    def found(parts: tuple[s.Expr, ...]) -> s.Expr:
        given, one = parts
        if isinstance(kind.item, t.Optional):  # has to be told to be of the items' type
            one = s.IfExpr(s.Bool(value=False), s.NoneValue(), one)
        return s.Binary(">=", s.Call("index_of", (given, one)), s.Int(0), span=expr.span)

    return over.lifted((items, value), found, expr)


def at(over: RowExpressions, items: Found, place: Found, expr: s.Index) -> Found:
    """An item of a list by its number, or of a map by its key; none if there is no such item."""
    if not isinstance(strip(items.type), t.List | t.Map):
        return over.typed(evolve(expr, value=items.expr, index=place.expr))
    return over.lifted((items, place), lambda parts: s.Call("get", parts, span=expr.span), expr)
