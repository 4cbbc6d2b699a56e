"""Casts: `cast(x as type)`, `try_cast`, and nothing of a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import days, texts
from frontends.sql.dates import DATE
from frontends.sql.functions import cast_of, type_named
from frontends.sql.values import Found, convert, spelled, strip
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


def called(over: RowExpressions, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found | None:
    """What a call means if it is a cast, else None."""
    match name, args:
        case "cast", (s.NoneValue(), s.String(kind)):
            return _none(over, kind, expr)
        case "cast", (value, s.String(kind)):
            return to_type(over, over.find(value), kind, expr)
        case "try_cast", (value, s.String(kind)):
            return _tried(over, over.find(value), kind, expr)
        case "date" | "to_date", (value,):
            return to_type(over, over.find(value), "date", expr)
        case _:
            return None


def to_type(over: RowExpressions, value: Found, kind: str, expr: s.Expr) -> Found:
    """`cast(x as kind)`."""
    if kind.lower() == "date":
        return value if strip(value.type) == DATE else days.as_date(over, to_type(over, value, "time", expr))
    if strip(value.type) == DATE:
        value = texts.as_text(over, value) if type_named(kind) == t.STRING else days.as_time(over, value)
    if kind.lower() in ("numeric", "decimal"):  # without sizes: as exact as it is
        return value if isinstance(strip(value.type), t.Decimal) else to_type(over, value, "float", expr)
    type_ = type_named(kind)
    if type_ is None:
        message = f"`{kind}` is no type that `cast` knows"
        help_line = (
            "there are `int`, `float`, `decimal(p,s)` up to 38 digits, `string`, `bool`, `time` and `date`"
        )
        raise over.report.error("sql-cast", message, expr.span, help_line)
    if cast_of(value.expr, strip(value.type), type_) is None:
        message = f"`{spelled(value.type)}` cannot be cast to `{spelled(type_)}`"
        raise over.report.error("sql-cast", message, expr.span)
    literal = isinstance(value.expr, s.Int) and type_ in t.FLOATS
    if literal:
        return convert(value, t.F64)

    def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
        return cast("s.Expr", cast_of(parts[0], strip(value.type), type_))

    return over.lifted((value,), apply, expr)


def _tried(over: RowExpressions, value: Found, kind: str, expr: s.Call) -> Found:
    """`try_cast(x as kind)`: of a text that is no such value, none."""
    if kind.lower() == "date" and strip(value.type) == t.STRING:
        return days.as_date(over, _tried(over, value, "time", expr))
    names = {t.I64: "try_int", t.F64: "try_float", t.BOOL: "try_bool", t.TIME: "try_time"}
    name = names.get(cast("t.Primitive", type_named(kind)))
    if strip(value.type) != t.STRING or name is None:
        message = f"`try_cast` makes no `{kind}` of `{spelled(value.type)}`"
        help_line = (
            "it reads texts as `int`, `float`, `bool`, `time` and `date`; others are cast by `cast(x as ...)`"
        )
        raise over.report.error("sql-cast", message, expr.span, help_line)
    return over.lifted((value,), lambda parts: s.Call(f"cql.{name}", parts, span=expr.span), expr)


def _none(over: RowExpressions, kind: str, expr: s.Call) -> Found:
    """`cast(null as kind)`."""
    of_times = kind.lower() == "date" or type_named(kind) == t.TIME
    zero = Found(s.Call("time", (s.Int(0),)), t.TIME) if of_times else Found(s.Int(0), t.I64)
    value = to_type(over, zero, kind, expr)
    return over.typed(s.IfExpr(s.Bool(value=True), s.NoneValue(), value.expr, span=expr.span))
