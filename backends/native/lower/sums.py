"""Sums of the items of a container, and exact sums of floats."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import void
from backends.native.lower import arithmetic
from backends.native.lower.loops import each_item
from backends.native.lower.values import TEMPORARY, Scalar, Value
from river.lang import typed
from river.lang import types as t
from river.lang.operations.arithmetic import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]


def _total(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, type_ = f.b, expr.type
    if arithmetic.is_float(type_):
        slot = f.empty(t.FSUM)
        each_item(f, values[0], lambda one: add_float(f, slot, TEMPORARY, one, "0"))
        return arithmetic.rounded(
            f, type_, b.call("double", "sum_value", [f"ptr {TEMPORARY}", f"ptr {slot}"])
        )
    slot, beyond = (
        b.slot("i128"),
        b.slot("i64"),
    )  # the sum modulo 2^128, and what is left out, in units of 2^128
    b.do(f"store i128 0, ptr {slot}")
    b.do(f"store i64 0, ptr {beyond}")
    whole = arithmetic.kind_of(type_) == "i128"

    def add(one: Value) -> None:
        more = arithmetic.wide(f, one)
        before = b.op(f"load i128, ptr {slot}")
        after = b.op(f"add i128 {before}, {more}")
        b.do(f"store i128 {after}, ptr {slot}")
        if whole:
            over = b.op(
                f"and i128 {b.op(f'xor i128 {before}, {after}')}, {b.op(f'xor i128 {more}, {after}')}"
            )
            lost = b.op(f"icmp slt i128 {over}, 0")
            unit = b.op(f"select i1 {b.op(f'icmp slt i128 {more}, 0')}, i64 -1, i64 1")
            count = b.op(f"load i64, ptr {beyond}")
            b.do(
                f"store i64 {b.op(f'add i64 {count}, ' + b.op(f'select i1 {lost}, i64 {unit}, i64 0'))}, ptr {beyond}"
            )

    each_item(f, values[0], add)
    wide = b.op(f"load i128, ptr {slot}")
    low, high, code = bounds(type_)
    over, under = b.op(f"icmp sgt i128 {wide}, {high}"), b.op(f"icmp slt i128 {wide}, {low}")
    lost = b.op(f"icmp ne i64 {b.op(f'load i64, ptr {beyond}')}, 0")
    f.trap_if(b.op(f"or i1 {b.op(f'or i1 {over}, {under}')}, {lost}"), code, expr.site)
    return Scalar(type_, wide if whole else b.op(f"trunc i128 {wide} to {arithmetic.kind_of(type_)}"))


def _sum_value(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.F64, f.b.call("double", "sum_value", [f"ptr {TEMPORARY}", f"ptr {f.ptr(values[0])}"]))


def add_float(f: Frame, sum_: str, arena: str, one: Value, negative: str) -> None:
    """Adds a float to an exact sum, or takes it away."""
    void(
        f.b,
        "sum_add",
        f"ptr {arena}",
        f"ptr {sum_}",
        f"double {arithmetic.double(f, one)}",
        f"i64 {negative}",
    )


RULES: Final[dict[str, Rule]] = {
    "sum": _total,
    "value": _sum_value,
}
