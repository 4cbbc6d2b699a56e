"""Choices between values: `case`, `coalesce`, `nullif`, `greatest`, `least`. The values become values of one type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import dates, days, operators, texts
from frontends.sql.dates import DATE
from frontends.sql.values import Found, alike, common, strip, typed_literal
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


def chosen(over: RowExpressions, condition: s.Expr, then: s.Expr, other: s.Expr, expr: s.Expr) -> Found:
    """One of two values, as numbers of one type if they are numbers.

    Where their types say what its type is, it is not looked at as a whole again: each of many may be inside the next.
    """
    then, other = _nothing(over, then), _nothing(over, other)
    nones = [isinstance(side, s.NoneValue) for side in (then, other)]
    if all(nones):
        message, help_line = (
            "nothing says of which type this is",
            "give one of its values a type: `cast(null as int)`",
        )
        raise over.report.error("sql-none", message, expr.span, help_line)
    if any(nones):
        value = over.find(other if nones[0] else then)
        sides = (then, value.expr) if nones[0] else (value.expr, other)
        return Found(s.IfExpr(condition, *sides, span=expr.span), t.Optional(strip(value.type)))
    a, b = common(*over.both(then, other))
    made = s.IfExpr(condition, a.expr, b.expr, span=expr.span)
    if strip(a.type) != strip(b.type):
        return over.typed(made)
    return Found(made, a.type if isinstance(a.type, t.Optional) else b.type)


def _nothing(over: RowExpressions, side: s.Expr) -> s.Expr:
    """A choice between nothing and nothing is nothing, whatever decides."""
    if not isinstance(side, s.IfExpr):
        return side
    then, other = _nothing(over, side.then), _nothing(over, side.other)
    if isinstance(then, s.NoneValue) and isinstance(other, s.NoneValue):
        over.condition(side.cond)
        return other
    return side


def several(over: RowExpressions, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
    """`coalesce`, `nullif`, `greatest`, `least`, `concat`: of operands of one type, some of them perhaps none."""
    given = tuple(arg for arg in args if not isinstance(arg, s.NoneValue))
    if not given or (name == "nullif" and len(args) != 2):
        message = f"`{name}` takes {'two operands' if name == 'nullif' else 'operands that are not `null`'}"
        raise over.report.error("sql-function-operands", message, expr.span)
    found = over.operands(given)
    match name:
        case "concat_ws":
            return texts.joined(over, found, expr)
        case "concat":
            return texts.concatenated(over, found, expr)
        case "nullif":
            return _nullif(over, args[0], alike(found), expr)
        case "greatest" | "least":
            return _extreme(over, "sqlmax" if name == "greatest" else "sqlmin", alike(found), expr)
        case _:
            return _coalesced(over, name, alike(found), given, expr)


def _nullif(over: RowExpressions, given: s.Expr, found: tuple[Found, ...], expr: s.Call) -> Found:
    """None where both operands are equal, else the first, which is `given`; those that are `null` are not in `found`."""
    first = typed_literal(found[0])
    type_ = t.Optional(strip(first.type))
    if isinstance(given, s.NoneValue):
        return Found(s.IfExpr(s.Bool(value=True), given, first.expr, span=expr.span), type_)
    if len(found) == 1:
        return found[0]
    equal = operators.comparison(over, "==", found[0], found[1], expr)
    test = s.Call("is_true", (equal.expr,)) if isinstance(equal.type, t.Optional) else equal.expr
    return Found(s.IfExpr(test, s.NoneValue(), first.expr, span=expr.span), type_)


def _coalesced(
    over: RowExpressions, name: str, found: tuple[Found, ...], given: tuple[s.Expr, ...], expr: s.Call
) -> Found:
    """The first operand that is there; `given`: the operands as they are written."""
    enough = next((i for i, one in enumerate(found) if not isinstance(one.type, t.Optional)), None)
    if enough is not None and enough + 1 < len(found):
        message = f"operand {enough + 1} of `{name}` is never none: what follows it is not looked at"
        over.report.remark("sql-never-none", message, given[enough].span)
    last = len(found) - 1 if enough is None else enough
    value = found[last].expr
    for one in reversed(found[:last]):
        value = s.Call("coalesce", (typed_literal(one).expr, value), span=expr.span)
    return over.typed(value)


def _extreme(over: RowExpressions, operation: str, found: tuple[Found, ...], expr: s.Call) -> Found:
    """The greatest or least of those operands that are there: never none if one of them is not. NaN is the greatest number."""
    if all(strip(one.type) == DATE for one in found):
        number = _extreme(over, operation, tuple(days.as_days(over, each) for each in found), expr)
        return over.lifted((number,), lambda parts: dates.made(parts[0]), expr)
    value = typed_literal(found[0])
    for one in found[1:]:
        value = over.typed(s.Call(operation, (value.expr, one.expr), span=expr.span))
    always = isinstance(value.type, t.Optional) and any(not isinstance(one.type, t.Optional) for one in found)
    return over.typed(s.Force(value.expr, span=expr.span)) if always else value
