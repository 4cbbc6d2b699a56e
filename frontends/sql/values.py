"""Checked values: an expression with its type, numbers of different types made alike, and types as queries spell them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from frontends.sql import decimals
from frontends.sql.dates import DATE
from river.classes import evolve, frozen
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show

if TYPE_CHECKING:
    from river.source import Span

WHOLE = (t.I32, t.I64)
"""Whole numbers that become wider beside one another, and floats beside floats."""


@frozen
class Found:
    """A checked expression and its type."""

    expr: s.Expr
    type: t.Type


def spelled(type_: t.Type) -> str:
    """The type as queries spell it."""
    if t.contains(type_, DATE):
        return show(type_).replace(show(DATE), "date")
    return re.sub(r"\b[if]64\b", lambda found: {"i64": "int", "f64": "float"}[found[0]], show(type_))


def strip(type_: t.Type) -> t.Type:
    """The type without its question mark."""
    return type_.inner if isinstance(type_, t.Optional) else type_


def is_number(type_: t.Type) -> bool:
    """Whether values of the type are numbers; it is one without a question mark."""
    return type_ in t.INTEGERS or type_ in t.FLOATS or isinstance(type_, t.Decimal)


def is_whole(type_: t.Type) -> bool:
    """Whether values of the type are whole numbers, or none."""
    return strip(type_) in t.INTEGERS


def promote(left: Found, right: Found) -> tuple[Found, Found]:
    """Two operands as numbers of one type: the wider whole number, or f64."""
    a, b = strip(left.type), strip(right.type)
    if isinstance(a, t.Decimal) or isinstance(b, t.Decimal):
        return _beside_decimal(left, right), _beside_decimal(right, left)
    numbers = (*WHOLE, t.F32, t.F64)
    if a == b or a not in numbers or b not in numbers:
        return left, right
    wide = t.I64 if a in WHOLE and b in WHOLE else t.F64
    return convert(left, wide), convert(right, wide)


def common(left: Found, right: Found) -> tuple[Found, Found]:
    """Two operands as values of one type, where decimals of different types are those of a type that holds both."""
    left, right = promote(left, right)
    a, b = strip(left.type), strip(right.type)
    if not isinstance(a, t.Decimal) or not isinstance(b, t.Decimal) or a == b:
        return left, right
    wide = decimals.common(a, b)
    return as_decimal(left, wide), as_decimal(right, wide)


def as_decimal(found: Found, kind: t.Decimal) -> Found:
    """A decimal as one of another type; none stays none, and digits behind the last are rounded."""
    if strip(found.type) == kind:
        return found
    own = decimals.written(found.expr)
    if own is not None and decimals.holds(kind, own):
        return Found(found.expr, kind)

    def made(value: s.Expr) -> s.Expr:
        return cast("s.Expr", decimals.made(value, strip(found.type), kind))

    if not isinstance(found.type, t.Optional):
        return Found(made(found.expr), kind)
    test, value = s.IsNone(found.expr), s.Force(found.expr)
    return Found(s.IfExpr(test, s.NoneValue(), made(value), span=found.expr.span), t.Optional(kind))


def _beside_decimal(found: Found, other: Found) -> Found:
    """A number as what it is beside a number of which one is a decimal: a decimal too, or both floats.

    Numbers that are written out take the type of the decimal by themselves, or have one of their own.
    """
    kind, beside = strip(found.type), strip(other.type)
    if isinstance(kind, t.Decimal):
        if beside not in t.FLOATS or decimals.written(other.expr) is not None:
            return found
        return convert(found, t.F64)
    own = decimals.written(found.expr)
    if own is not None and isinstance(beside, t.Decimal):
        if decimals.holds(beside, own):
            return Found(found.expr, beside)
        return Found(s.Call(decimals.holder(own), (found.expr,), span=found.expr.span), own)
    if kind not in WHOLE:
        return found
    whole = convert(found, t.I64)
    if isinstance(whole.type, t.Optional):
        made = s.Call("cql.decimal_of", (s.Force(whole.expr),), span=whole.expr.span)
        return Found(s.IfExpr(s.IsNone(whole.expr), s.NoneValue(), made), t.Optional(t.Decimal(19, 0)))
    return Found(s.Call("cql.decimal_of", (whole.expr,), span=whole.expr.span), t.Decimal(19, 0))


def convert(found: Found, type_: t.Primitive) -> Found:
    """A number as another type of number; none stays none."""
    if strip(found.type) == type_:
        return found
    span = found.expr.span
    match found.expr:
        case s.Int(value) if type_ in t.FLOATS:
            return Found(s.Float(float(value), span=span), type_)
        case s.Unary("-", s.Int(value)) if type_ in t.FLOATS:
            return Found(s.Unary("-", s.Float(float(value), span=span), span=span), type_)
        case s.Int() | s.Unary("-", s.Int()):
            return Found(found.expr, type_)
        case expr if isinstance(found.type, t.Optional):
            inner = s.Call(type_.name, (s.Force(expr, span=span),), span=span)
            none = s.NoneValue(span=span)
            return Found(s.IfExpr(s.IsNone(expr, span=span), none, inner, span=span), t.Optional(type_))
        case expr:
            return Found(s.Call(type_.name, (expr,), span=span), type_)


def alike(found: tuple[Found, ...]) -> tuple[Found, ...]:
    """Operands as numbers of one type, if they are numbers."""
    widest = found[0]
    for one in found[1:]:
        widest, _ = common(widest, one)
    return tuple(common(one, widest)[0] for one in found)


def typed_literal(found: Found) -> Found:
    """A number that is made of numbers that are written out alone, as one whose type does not depend on where it stands."""
    kind = strip(found.type)
    return evolve(found, expr=_settled(found.expr, kind)) if kind in (t.I64, t.F64) else found


def _settled(expr: s.Expr, kind: t.Type) -> s.Expr:
    match expr:
        case s.IfExpr(condition, then, other):
            return s.IfExpr(condition, _settled(then, kind), _settled(other, kind), span=expr.span)
        case _ if _written_out(expr):
            return s.Call("i64" if kind == t.I64 else "f64", (expr,), span=expr.span)
        case _:
            return expr


def _written_out(expr: s.Argument) -> bool:
    match expr:
        case s.Int() | s.Float():
            return True
        case s.Unary(_, value):
            return _written_out(value)
        case s.Binary(_, left, right):
            return _written_out(left) and _written_out(right)
        case s.Call(name, args):  # of what may be no number, the type is an optional one wherever it stands
            return bool(args) and not name.startswith("cql.try_") and all(map(_written_out, args))
        case _:
            return False


def loosened(found: Found) -> s.Expr:
    """A value as one that may be none."""
    if isinstance(found.type, t.Optional):
        return found.expr
    return s.IfExpr(s.Bool(value=False), s.NoneValue(), found.expr)


def chain(op: str, values: list[s.Expr], span: Span | None) -> s.Expr:
    """`a op b op c`."""
    found = values[0]
    for value in values[1:]:
        found = s.Binary(op, found, value, span=span)
    return found
