"""Operators: logic of three values, comparisons, arithmetic, and the questions `is null` and `is true`.

What may be none makes the result none, or unknown, as SQL says; where nothing may be, it is the operator of River IL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import dates, days
from frontends.sql.dates import DATE
from frontends.sql.operations import COMPARISONS
from frontends.sql.values import Found, convert, promote, spelled, strip
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


def logic(over: RowExpressions, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
    """`and`, `or`: in three values where an operand may be unknown."""
    if isinstance(left.type, t.Optional) or isinstance(right.type, t.Optional):
        return over.typed(s.Call(f"{op}3", (left.expr, right.expr), span=expr.span))
    both = s.Binary(op, left.expr, right.expr, span=expr.span)
    if left.type == right.type == t.BOOL:
        return Found(both, t.BOOL)  # known without a look at all of a long chain, at each level
    return over.typed(both)


def comparison(over: RowExpressions, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
    """A comparison of numbers of one type, or of two decimals; unknown where an operand is.

    Floats compare by IEEE, those that may be none too.
    """
    left, right = promote(*days.in_time(over, left, right))
    if strip(left.type) == DATE == strip(right.type) and op not in ("==", "!="):
        left, right = days.as_days(over, left), days.as_days(over, right)
    kinds = strip(left.type), strip(right.type)
    decimals = kinds[0] != kinds[1] and all(isinstance(kind, t.Decimal) for kind in kinds)
    if decimals or (kinds[0] in t.FLOATS and kinds[1] in t.FLOATS):
        return over.lifted((left, right), lambda parts: s.Binary(op, *parts, span=expr.span), expr)
    if isinstance(left.type, t.Optional) or isinstance(right.type, t.Optional):
        return over.typed(s.Call(COMPARISONS[op], (left.expr, right.expr), span=expr.span))
    return over.typed(s.Binary(op, left.expr, right.expr, span=expr.span))


def arithmetic(over: RowExpressions, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
    """Arithmetic on numbers of one type. Division of whole numbers drops the fraction; all of it traps on 0.

    A date moves by whole numbers and by lengths of whole days that are written out; by others it becomes a time.
    """
    kinds = strip(left.type), strip(right.type)
    if DATE in kinds and op in ("+", "-"):
        match kinds:
            case (x, y) if x == y and op == "-":
                return arithmetic(over, op, days.as_days(over, left), days.as_days(over, right), expr)
            case (x, y) if x == DATE and (y in t.INTEGERS or dates.is_whole(right.expr)):
                by = right if y in t.INTEGERS else Found(dates.in_days(right.expr), t.I64)
                moved = arithmetic(over, op, days.as_days(over, left), by, expr)
                return over.lifted((moved,), lambda parts: dates.made(parts[0]), expr)
            case (x, y) if y == DATE and op == "+" and x != DATE:
                return arithmetic(over, op, right, left, expr)
            case _:
                left, right = days.as_time(over, left), days.as_time(over, right)
    if op == "/" and any(isinstance(strip(side.type), t.Decimal) for side in (left, right)):
        left, right = convert(left, t.F64), convert(right, t.F64)
    left, right = promote(left, right)

    def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
        if op == "%":
            return s.Call("rem.trunc", parts, span=expr.span)
        if op != "/":
            return s.Binary(op, *parts, span=expr.span)
        kind = strip(left.type)
        if kind in t.FLOATS:
            return s.Call("div.trap", parts, span=expr.span)
        if isinstance(kind, t.Decimal):
            return s.Binary("/", *parts, span=expr.span)
        return s.Call("div.trunc", parts, span=expr.span)

    return over.lifted((left, right), apply, expr)


def unary(over: RowExpressions, op: str, value: Found, expr: s.Unary) -> Found:
    """`not`, which leaves unknown what is unknown, and the signs of numbers."""
    if op != "not":
        return over.lifted((value,), lambda parts: evolve(expr, value=parts[0]), expr)
    three = isinstance(value.type, t.Optional)
    return over.typed(
        s.Call("not3", (value.expr,), span=expr.span) if three else evolve(expr, value=value.expr)
    )


def is_none(over: RowExpressions, value: Found, expr: s.Expr) -> Found:
    """`x is null`."""
    if isinstance(value.type, t.Optional):
        return over.typed(s.IsNone(value.expr, span=expr.span))
    if expr.span is not None:  # somebody asked
        over.report.remark("sql-never-none", "this is never none", value.expr.span)
    return Found(s.Bool(value=False, span=expr.span), t.BOOL)


def truth(over: RowExpressions, name: str, value: Found, expr: s.Call) -> Found:
    """`x is true`, `x is false`: never none."""
    if strip(value.type) != t.BOOL:
        message = f"a condition is `bool`, this is `{spelled(value.type)}`"
        raise over.report.error("sql-condition", message, expr.span)
    loose = isinstance(value.type, t.Optional)
    if name == "is_true":
        return over.typed(s.Call("is_true", (value.expr,), span=expr.span) if loose else value.expr)
    if loose:
        return over.typed(s.Call("is_true", (s.Call("not3", (value.expr,)),), span=expr.span))
    return over.typed(s.Unary("not", value.expr, span=expr.span))
