"""Decimal numbers (il.md 2.3): 128 bits where they suffice, `runtime/decimals.rt` where a step between has more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.layout import register
from backends.native.lower.values import TEMPORARY, Scalar, Value
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.native.lower.frame import Frame
    from river.lang import typed

DIGITS: Final = 38  # what 128 bits hold


def within(f: Frame, result: str, type_: t.Decimal, site: int | None) -> None:
    """Traps unless a number of 128 bits has at most the digits of its type."""
    most = 10**type_.precision - 1
    high = f.b.op(f"icmp sgt i128 {result}, {most}")
    low = f.b.op(f"icmp slt i128 {result}, {-most}")
    f.trap_if(f.b.op(f"or i1 {high}, {low}"), "decimal-precision", site)


def more_digits(value: Value, scale: int) -> int:
    """By how many powers of ten a decimal must be multiplied for a scale."""
    assert isinstance(value.type, t.Decimal)  # noqa: S101 - by the callers
    return scale - value.type.scale


def _fits(value: Value, scale: int) -> bool:
    assert isinstance(value.type, t.Decimal)  # noqa: S101 - by the callers
    return value.type.precision + more_digits(value, scale) < DIGITS


def _scaled(f: Frame, value: Value, scale: int) -> str:
    more = more_digits(value, scale)
    return f.reg(value) if more == 0 else f.b.op(f"mul i128 {f.reg(value)}, {10**more}")


def add(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`+`, `-`."""
    type_, b = expr.type, f.b
    assert isinstance(type_, t.Decimal)  # noqa: S101 - by the caller
    x, y = values
    if _fits(x, type_.scale) and _fits(y, type_.scale):
        name = "add" if expr.operation == "+" else "sub"
        result = b.op(f"{name} i128 {_scaled(f, x, type_.scale)}, {_scaled(f, y, type_.scale)}")
    else:
        out, room = b.slot("i128"), b.slot("[32 x i64]")
        overflow = b.call("i1", "decimal_sum", [
            f"ptr {out}", f"ptr {room}", f"i128 {f.reg(x)}", f"i64 {more_digits(x, type_.scale)}",
            f"i128 {f.reg(y)}", f"i64 {more_digits(y, type_.scale)}", f"i64 {int(expr.operation == '-')}",
        ])  # fmt: skip
        f.trap_if(overflow, "decimal-precision", expr.site)
        result = b.op(f"load i128, ptr {out}")
    within(f, result, type_, expr.site)
    return Scalar(type_, result)


def order(f: Frame, name: str, x: Value, y: Value) -> str:
    """The relation (`slt`, `eq`, ...) of two decimals of any scales."""
    assert isinstance(x.type, t.Decimal)  # noqa: S101 - by the callers
    assert isinstance(y.type, t.Decimal)  # noqa: S101
    b, scale = f.b, max(x.type.scale, y.type.scale)
    if x.type.scale == y.type.scale:
        return b.op(f"icmp {name} i128 {f.reg(x)}, {f.reg(y)}")
    if _fits(x, scale) and _fits(y, scale):
        return b.op(f"icmp {name} i128 {_scaled(f, x, scale)}, {_scaled(f, y, scale)}")
    room = b.slot("[32 x i64]")
    found = b.call("i64", "decimal_order", [
        f"ptr {room}", f"i128 {f.reg(x)}", f"i64 {more_digits(x, scale)}", f"i128 {f.reg(y)}",
        f"i64 {more_digits(y, scale)}",
    ])  # fmt: skip
    return b.op(f"icmp {name} i64 {found}, 0")


def divide(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`/`: rounded half away from zero to the scale of the result."""
    type_, b, (x, y) = expr.type, f.b, values
    assert isinstance(type_, t.Decimal)  # noqa: S101 - by the caller
    assert isinstance(y.type, t.Decimal)  # noqa: S101
    f.trap_if(b.op(f"icmp eq i128 {f.reg(y)}, 0"), "division-by-zero", expr.site)
    shift = more_digits(x, type_.scale) + y.type.scale
    return _quotient(f, expr, f.reg(x), max(shift, 0), f.reg(y), max(-shift, 0))


def _quotient(f: Frame, expr: typed.Apply, x: str, up: int, y: str, down: int) -> Value:
    b, type_ = f.b, expr.type
    assert isinstance(type_, t.Decimal)  # noqa: S101 - by the callers
    out, room = b.slot("i128"), b.slot("[64 x i64]")
    overflow = b.call("i1", "decimal_divide", [
        f"ptr {out}", f"ptr {room}", f"i128 {x}", f"i64 {up}", f"i128 {y}", f"i64 {down}",
    ])  # fmt: skip
    f.trap_if(overflow, "decimal-precision", expr.site)
    result = b.op(f"load i128, ptr {out}")
    within(f, result, type_, expr.site)
    return Scalar(type_, result)


def convert(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`to_decimal`, `rescale`."""
    type_, b, (value,) = expr.type, f.b, values
    assert isinstance(type_, t.Decimal)  # noqa: S101 - by the rule
    if value.type in t.FLOATS:
        return _of_float(f, expr, value)
    given = value.type if isinstance(value.type, t.Decimal) else t.Decimal(DIGITS, 0)
    kind = register(value.type)
    x = f.reg(value)
    if kind != "i128":
        x = b.op(f"{'zext' if value.type == t.U64 else 'sext'} {kind} {x} to i128")
    shift = type_.scale - given.scale
    if shift == 0:
        within(f, x, type_, expr.site)
        return Scalar(type_, x)
    if shift < 0:
        return _quotient(f, expr, x, 0, "1", -shift)
    # a number that leaves the type when it is multiplied is above its bound over the power of ten
    most = (10**type_.precision - 1) // 10**shift
    high, low = b.op(f"icmp sgt i128 {x}, {most}"), b.op(f"icmp slt i128 {x}, {-most}")
    f.trap_if(b.op(f"or i1 {high}, {low}"), "decimal-precision", expr.site)
    return Scalar(type_, b.op(f"mul i128 {x}, {10**shift}"))


def _of_float(f: Frame, expr: typed.Apply, value: Value) -> Value:
    type_, b, x = expr.type, f.b, f.reg(value)
    assert isinstance(type_, t.Decimal)  # noqa: S101 - by the rule
    if value.type == t.F32:
        x = b.op(f"fpext float {x} to double")
    difference = b.op(f"fsub double {x}, {x}")
    f.trap_if(b.op(f"fcmp une double {difference}, 0.0"), "conversion-range", expr.site)
    out, room = b.slot("i128"), b.slot("[64 x i64]")
    overflow = b.call("i1", "decimal_of_real", [
        f"ptr {out}", f"ptr {room}", f"double {x}", f"i64 {type_.scale}",
    ])  # fmt: skip
    f.trap_if(overflow, "decimal-precision", expr.site)
    result = b.op(f"load i128, ptr {out}")
    within(f, result, type_, expr.site)
    return Scalar(type_, result)


def to_real(f: Frame, value: Value) -> str:
    """A decimal as f64, rounded once."""
    assert isinstance(value.type, t.Decimal)  # noqa: S101 - by the caller
    bits = f.b.call(
        "i64", "real_of_wide", [f"ptr {TEMPORARY}", f"i128 {f.reg(value)}", f"i64 {value.type.scale}"]
    )
    return f.b.op(f"bitcast i64 {bits} to double")


def parse(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`parse_decimal`."""
    wanted, b = expr.type, f.b
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    inner = wanted.inner
    assert isinstance(inner, t.Decimal)  # noqa: S101 - by the rule
    out = b.slot("i128")
    there = b.call("i1", "text_decimal", [
        f"ptr {out}", f"ptr {f.ptr(values[0])}", f"i64 {inner.precision}", f"i64 {inner.scale}",
    ])  # fmt: skip
    return f.choice(
        wanted, there, lambda: f.optional(wanted, Scalar(inner, b.op(f"load i128, ptr {out}"))),
        lambda: f.optional(wanted, None),
    )  # fmt: skip
