"""Texts of other values, and what is read from texts; fields of times, and times of fields."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import void
from backends.native.lower import arithmetic, texts
from backends.native.lower.literals import literal
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]


def _string(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (one,) = f.b, values
    slot = f.empty(t.STRING)
    if one.type == t.STRING:
        return one
    if one.type == t.BOOL:
        return f.choice(
            t.STRING, f.reg(one), lambda: literal(f, t.STRING, "true"), lambda: literal(f, t.STRING, "false")
        )
    if one.type in (t.TIME, t.DURATION):
        name = "text_of_time" if one.type == t.TIME else "text_of_duration"
        void(b, name, f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {f.reg(one)}")
        return Memory(t.STRING, slot)
    if isinstance(one.type, t.Decimal):
        void(
            b,
            "text_of_decimal",
            f"ptr {TEMPORARY}",
            f"ptr {slot}",
            f"i128 {f.reg(one)}",
            f"i64 {one.type.scale}",
        )
        return Memory(t.STRING, slot)
    if one.type in t.FLOATS:
        return texts.real_text(f, one)
    void(b, "text_of_integer", f"ptr {TEMPORARY}", f"ptr {slot}", f"i128 {arithmetic.wide(f, one)}")
    return Memory(t.STRING, slot)


def _parse_bool(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, wanted = f.b, expr.type
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    true, false = (arithmetic.same(f, values[0], literal(f, t.STRING, text)) for text in ("true", "false"))
    known = b.op(f"or i1 {true}, {false}")
    return f.choice(
        wanted, known, lambda: f.optional(wanted, Scalar(t.BOOL, true)), lambda: f.optional(wanted, None)
    )


def _parse_integer(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    wanted = expr.type
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    base = f.reg(values[1]) if len(values) == 2 else "10"
    number, there = arithmetic.integer_in(f, wanted.inner, values[0], base)
    return f.found(wanted, there, lambda: number)


def _hash64(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    name = f.module.derived("stable_hash", values[0].type)
    return Scalar(t.U64, f.b.call("i64", name, [f"ptr {f.ptr(values[0])}"]))


_TIME_FIELDS: Final = (
    "year", "month", "day", "hour", "minute", "second", "microsecond", "weekday", "yearday",
)  # fmt: skip


def _time_field(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    out = f.b.slot("[3 x i64]")
    number = _TIME_FIELDS.index(expr.operation)
    return Scalar(
        t.I64, f.b.call("i64", "time_field", [f"i64 {f.reg(values[0])}", f"i64 {number}", f"ptr {out}"])
    )


def _civil(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b = f.b
    fields, out = b.slot("[6 x i64]"), b.slot("i64")
    for i in range(6):
        place = b.op(f"getelementptr inbounds i64, ptr {fields}, i64 {i}")
        b.do(f"store i64 {f.reg(values[i]) if i < len(values) else '0'}, ptr {place}")
    good = b.call("i1", "time_of", [f"ptr {out}", f"ptr {fields}"])
    f.trap_if(b.op(f"xor i1 {good}, true"), "conversion-range", expr.site)
    return Scalar(t.TIME, b.op(f"load i64, ptr {out}"))


RULES: Final[dict[str, Rule]] = {
    "string": _string,
    "parse_bool": _parse_bool,
    "hash64": _hash64,
    **dict.fromkeys(("parse_i32", "parse_i64", "parse_u64", "parse_i128"), _parse_integer),
    **dict.fromkeys(_TIME_FIELDS, _time_field),
    "civil": _civil,
}
