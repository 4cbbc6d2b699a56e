"""Known values, zeros and structs in the operator language, and sums of whole numbers, written as short as may be."""

from __future__ import annotations

from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any

from frontends.streamit import typed as ty
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from river.source import Span


def number(value: int, span: Span | None = None) -> s.Expr:
    """A whole number."""
    return s.signed(value, span)


def known(expr: s.Expr) -> int | None:
    """The value of a written number."""
    match expr:
        case s.Int(value):
            return value
        case s.Unary("-", s.Int(value)):
            return -value
        case _:
            return None


def plus(a: s.Expr, b: s.Expr) -> s.Expr:
    """The sum, written as short as may be."""
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return number(x + y)
    if x == 0 or y == 0:
        return b if x == 0 else a
    if y is not None:
        match a:
            case s.Binary("+" | "-" as op, left, right) if (z := known(right)) is not None:
                return plus(left, number((z if op == "+" else -z) + y))
            case _:
                return s.Binary("-", a, s.Int(-y)) if y < 0 else s.Binary("+", a, b)
    return s.Binary("+", a, b)


def times(a: s.Expr, b: s.Expr) -> s.Expr:
    """The product, written as short as may be."""
    x, y = known(a), known(b)
    if x is not None and y is not None:
        return number(x * y)
    if 1 in (x, y):
        return b if x == 1 else a
    return s.Int(0) if 0 in (x, y) else s.Binary("*", a, b)


def minus(a: s.Expr, b: s.Expr) -> s.Expr:
    """The difference, written as short as may be."""
    y = known(b)
    return plus(a, number(-y)) if y is not None else s.Binary("-", a, b)


def ended(text: s.Expr) -> s.Expr:
    """The text with a line end."""
    match text:
        case s.String(value):
            return s.String(value + "\n", span=text.span)
        case s.Binary("+", left, s.String(value)):
            return s.Binary("+", left, s.String(value + "\n"), span=text.span)
        case _:
            return s.Binary("+", text, s.String("\n"), span=text.span)


def negated(cond: s.Expr) -> s.Expr:
    """The opposite."""
    match cond:
        case s.Unary("not", inner):
            return inner
        case _:
            return s.Unary("not", cond, span=cond.span)


def zero(type_: ty.Type) -> s.Expr:
    """Zero of a type."""
    match type_:
        case ty.INT | ty.BIT:
            return s.Int(0)
        case ty.FLOAT | t.F64:
            return s.Float(0.0)
        case ty.BOOLEAN:
            return s.Bool(False)
        case ty.TEXT:
            return s.String("")
        case _:
            return s.Call("zero", ())


def literal(value: Any, type_: ty.Type, span: Span | None = None) -> s.Expr:
    """A known value."""
    match type_:
        case ty.Vector(item) | t.Array(item):
            return s.ListValue(tuple(literal(each, item, span) for each in value), span=span)
        case ty.Struct(_, fields):
            parts = [literal(each, part, span) for each, (_, part) in zip(value, fields, strict=True)]
            return record(type_, parts, span)
        case t.Record(fields):
            pairs = zip(fields, value, strict=True)
            return s.RecordValue(
                tuple(s.FieldValue(name, literal(each, part, span)) for (name, part), each in pairs),
                span=span,
            )
        case _:
            pass
    match value:
        case bool():
            return s.Bool(value, span=span)
        case int():
            return number(value, span)
        case str():
            return s.String(value, span=span)
        case _ if isnan(value):
            return s.Call("nan", (), span=span)
        case _ if abs(value) == float("inf"):
            infinity = s.Call("inf", (), span=span)
            return infinity if value > 0 else s.Unary("-", infinity, span=span)
        case _:
            negative = str(value).startswith("-")
            size = s.Float(_shortest(-value if negative else value, type_), span=span)
            return s.Unary("-", size, span=span) if negative else size


def record(type_: ty.Type, parts: Sequence[s.Expr], span: Span | None) -> s.Expr:
    """A struct of its parts."""
    assert isinstance(type_, ty.Struct)  # noqa: S101 - the checker has seen to it
    pairs = zip(type_.labels, parts, strict=True)
    return s.RecordValue(tuple(s.FieldValue(label, part) for label, part in pairs), span=span)


def _shortest(value: float, type_: ty.Type) -> float:
    """The shortest number that is the same in the type."""
    if type_ != ty.FLOAT:
        return value
    return float(_text()(value))


@cache
def _text() -> Callable[[float], str]:
    """What writes the shortest text of a float."""
    return OPERATIONS["string"].meaning((t.F32,), t.STRING)
