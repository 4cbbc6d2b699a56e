"""Operations on strings and bytes that are calls of the runtime, and text of numbers and back."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, if_, list_parts, void
from backends.native.layout import memory
from backends.native.lower import decimals
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import typed
from river.lang import types as t
from river.lang.operations.text import form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]

FORMAT_ROOM: Final = 512
"""Bytes for a number in any form: 309 digits before the point, 99 behind it."""

FORM_ROOM: Final = (
    "[24 x i8]"  # for a form: flags, width, precision, the length of the number, its verb, and a zero byte
)

REAL_ROOM: Final = "[128 x i8]"  # for the text of a float


def real_text(f: Frame, value: Value) -> Value:
    """The text of a float."""
    b, slot, room = f.b, f.empty(t.STRING), f.b.slot(REAL_ROOM)
    x = f.reg(value)
    if value.type == t.F32:
        x = b.op(f"fpext float {x} to double")
    name = "text_of_f32" if value.type == t.F32 else "text_of_f64"
    void(b, name, f"ptr {TEMPORARY}", f"ptr {slot}", f"double {x}", f"ptr {room}")
    return Memory(t.STRING, slot)


def real_in(f: Frame, type_: t.Type, text: Value) -> tuple[str, str]:
    """The float in a text, and whether there is one."""
    b, out = f.b, f.b.slot("i64")
    there = b.call("i1", "text_real", [f"ptr {TEMPORARY}", f"ptr {out}", f"ptr {f.ptr(text)}"])
    x = b.op(f"load double, ptr {out}")
    return b.op(f"fptrunc double {x} to float") if type_ == t.F32 else x, there


def _parse_real(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    wanted = expr.type
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    number, there = real_in(f, wanted.inner, values[0])
    return f.found(wanted, there, lambda: number)


def _parse_time(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    wanted, b = expr.type, f.b
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    out, fields = b.slot("i64"), b.slot("[6 x i64]")
    there = b.call("i1", "text_time", [f"ptr {out}", f"ptr {f.ptr(values[0])}", f"ptr {fields}"])
    return f.found(wanted, there, lambda: b.op(f"load i64, ptr {out}"))


def _case(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(t.STRING)
    upper = int(expr.operation == "upper")
    void(f.b, "text_case", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(values[0])}", f"i64 {upper}")
    return Memory(t.STRING, slot)


def _replace(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(t.STRING)
    void(f.b, "text_replace", f"ptr {TEMPORARY}", f"ptr {slot}", *(f"ptr {f.ptr(v)}" for v in values))
    return Memory(t.STRING, slot)


def reverse(f: Frame, text: Value) -> Value:
    """A text backwards, by code points."""
    slot = f.empty(t.STRING)
    void(f.b, "text_reverse", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(text)}")
    return Memory(t.STRING, slot)


def _decode(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, slot = f.b, f.empty(t.STRING)
    good = b.call("i1", "text_decode", [f"ptr {slot}", f"ptr {f.ptr(f.owned(values[0]))}"])
    f.trap_if(b.op(f"xor i1 {good}, true"), "bad-utf8", expr.site)
    return Memory(t.STRING, slot)


def concatenated(f: Frame, type_: t.Type, values: Sequence[Value]) -> Value:
    """Several texts, one behind the other, for which there is room made once."""
    b, slot, parts = f.b, f.empty(type_), f.b.slot(f"[{len(values)} x ptr]")
    for i, each in enumerate(values):
        b.do(f"store ptr {f.ptr(each)}, ptr {b.op(f'getelementptr inbounds ptr, ptr {parts}, i64 {i}')}")
    void(b, "text_concats", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {parts}", f"i64 {len(values)}")
    return Memory(type_, slot)


_OWN: Final = re.compile(r"%([-0]?)(\d*)(?:d|(?:\.(\d*))?f)")
"""Forms whose numbers the runtime library writes: flags, width, digits behind the point."""

_OWN_DIGITS: Final = 18


def _format(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """A number in C's form: exactly rounded, as Python's.

    What few numbers need is left to the system's `snprintf`.
    """
    b, slot, (form, value) = f.b, f.empty(t.STRING), expr.args
    if isinstance(form, typed.ConstRef):
        form = f.operator.consts[form.index].value
    if not isinstance(form, typed.Literal):
        _in_a_form(f, expr, values, slot)
        return Memory(t.STRING, slot)
    known = form_of(str(form.value), value.type)
    if known is None:
        f.trap_if("true", "conversion-range", expr.site)
        return Memory(t.STRING, slot)
    number, room = f.reg(values[1]), b.slot(f"[{FORMAT_ROOM} x i8]")
    own = _OWN.fullmatch(known)
    if own is None or value.type == t.U64:
        _by_system(f, known, value.type, number, room, slot)
        return Memory(t.STRING, slot)
    width = f"i64 {int(own[2] or 0)}", f"i64 {('', '-', '0').index(own[1])}"

    def padded(length: str) -> None:
        void(b, "text_padded", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {room}", f"i64 {length}", *width)

    if value.type == t.I64:
        padded(b.call("i64", "format_whole", [f"ptr {room}", f"i64 {number}"]))
        return Memory(t.STRING, slot)
    digits = 6 if own[3] is None else int(own[3] or 0)
    if digits > _OWN_DIGITS:
        _by_system(f, known, value.type, number, room, slot)
        return Memory(t.STRING, slot)
    given = f"ptr {room}", f"double {number}", f"i64 {digits}", f"i64 {10**digits}"
    length = b.call("i64", "format_fixed", [*given])
    small = b.op(f"icmp sge i64 {length}, 0")
    if_(b, small, lambda: padded(length), lambda: _by_system(f, known, value.type, number, room, slot))
    return Memory(t.STRING, slot)


def _by_system(f: Frame, form: str, type_: t.Type, number: str, room: str, slot: str) -> None:
    """Writes a number as `snprintf` does into the text at `slot`."""
    data = (form if type_ == t.F64 else f"{form[:-1]}ll{form[-1]}").encode() + b"\0"
    text = f.module.constant(f"[{len(data)} x i8]", f'c"{"".join(f"{chr(92)}{byte:02X}" for byte in data)}"')
    _printed(f, text, type_, number, room, slot)


def _in_a_form(f: Frame, expr: typed.Apply, values: Sequence[Value], slot: str) -> None:
    """Writes a number in a form that data say into the text at `slot`."""
    b, type_ = f.b, values[1].type
    form, room = b.slot(FORM_ROOM), b.slot(f"[{FORMAT_ROOM} x i8]")
    real = "true" if type_ == t.F64 else "false"
    good = b.call("i1", "format_form", [f"ptr {form}", f"ptr {f.ptr(values[0])}", f"i1 {real}"])
    f.trap_if(b.op(f"xor i1 {good}, true"), "conversion-range", expr.site)
    _printed(f, form, type_, f.reg(values[1]), room, slot)


def _printed(f: Frame, text: str, type_: t.Type, number: str, room: str, slot: str) -> None:
    """As `_by_system`; `text`: where the form of C's is."""
    b, real = f.b, type_ == t.F64
    if real:  # a NaN has no sign
        bare = b.op(f"call double @llvm.fabs.f64(double {number})")
        unordered = b.op(f"fcmp uno double {number}, {number}")
        number = b.op(f"select i1 {unordered}, double {bare}, double {number}")
    operand = f"{'double' if real else 'i64'} {number}"
    made = b.op(
        f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {room}, i64 {FORMAT_ROOM}, ptr {text}, {operand})"
    )
    length = b.op(f"sext i32 {made} to i64")
    void(b, "text_make", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {room}", f"i64 {length}", "i1 true")


def _parse_utf8(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    wanted = expr.type
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    slot = f.empty(t.STRING)
    good = f.b.call("i1", "text_decode", [f"ptr {slot}", f"ptr {f.ptr(f.owned(values[0]))}"])
    there, none = (lambda: f.optional(wanted, Memory(t.STRING, slot))), (lambda: f.optional(wanted, None))
    return f.choice(wanted, good, there, none)


def _code_points(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, text, slot = f.b, f.ptr(values[0]), f.b.slot(memory(expr.type))
    count = b.call("i64", "text_length", [f"ptr {text}"])
    void(b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {count}", "i64 4")
    void(b, "text_points", f"ptr {b.op(f'load ptr, ptr {slot}')}", f"ptr {text}")
    b.do(f"store i64 {count}, ptr {b.op(f'getelementptr inbounds i64, ptr {slot}, i64 1')}")
    return Memory(expr.type, slot)


def _from_code_points(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, slot = f.b, f.empty(t.STRING)
    at, count = f.extent(values[0])
    size = b.op(f"mul i64 {count}, 4")
    void(b, "text_check", f"ptr {TEMPORARY}", f"i64 {size}")
    room = b.call("ptr", "alloc", [f"ptr {TEMPORARY}", f"i64 {b.op(f'add i64 {size}, 1')}"])
    end = b.slot("i64")
    b.do(f"store i64 0, ptr {end}")

    def put(i: str) -> None:
        point = b.op(f"sext i32 {f.reg(at(i))} to i64")
        good = b.call("i1", "is_point", [f"i64 {point}"])
        f.trap_if(b.op(f"xor i1 {good}, true"), "conversion-range", expr.site, (point,))
        before = b.op(f"load i64, ptr {end}")
        after = b.call("i64", "point_put", [f"ptr {room}", f"i64 {before}", f"i64 {point}"])
        b.do(f"store i64 {after}, ptr {end}")

    counted(b, count, put)
    length = b.op(f"load i64, ptr {end}")
    ascii_ = b.call("i1", "text_ascii", [f"ptr {room}", f"i64 {length}"])
    void(b, "text_view", f"ptr {slot}", f"ptr {room}", f"i64 {length}", f"i1 {ascii_}")
    return Memory(t.STRING, slot)


def _starts(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    name = {"starts_with": "text_starts", "ends_with": "text_ends"}[expr.operation]
    return Scalar(t.BOOL, f.b.call("i1", name, [f"ptr {f.ptr(v)}" for v in values]))


def _find(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    start = f.reg(values[2]) if len(values) == 3 else "0"
    return Scalar(
        t.I64,
        f.b.call("i64", "text_find", [f"ptr {f.ptr(values[0])}", f"ptr {f.ptr(values[1])}", f"i64 {start}"]),
    )


def _char(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, slot = f.b, f.empty(t.STRING)
    point = b.op(f"sext i32 {f.reg(values[0])} to i64")
    good = b.call("i1", "text_of_point", [f"ptr {slot}", f"i64 {point}"])
    f.trap_if(b.op(f"xor i1 {good}, true"), "conversion-range", expr.site, (point,))
    return Memory(t.STRING, slot)


def _join(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(t.STRING)
    items, count = list_parts(f.b, f.ptr(values[0]))
    void(
        f.b,
        "text_join",
        f"ptr {TEMPORARY}",
        f"ptr {slot}",
        f"ptr {items}",
        f"i64 {count}",
        f"ptr {f.ptr(values[1])}",
    )
    return Memory(t.STRING, slot)


def _split(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(expr.type)
    # the parts are views: of a copy, since a short text lies in the view that it is read from
    text = f.owned(values[0])
    void(
        f.b, "text_split", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(text)}", f"ptr {f.ptr(values[1])}"
    )
    return Memory(expr.type, slot)


def _encode(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, slot = f.b, f.empty(t.BYTES)
    f.put(Memory(t.BYTES, f.ptr(values[0])), slot)
    word = b.op(f"load i64, ptr {slot}")
    b.do(f"store i64 {b.op(f'and i64 {word}, {~(1 << 31)}')}, ptr {slot}")
    return Memory(t.BYTES, slot)


def _trim(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    slot = f.empty(t.STRING)
    void(f.b, "text_trim", f"ptr {slot}", f"ptr {f.ptr(values[0])}")
    return Memory(t.STRING, slot)


RULES: Final[dict[str, Rule]] = {
    "lower": _case,
    "upper": _case,
    "replace": _replace,
    "decode": _decode,
    "parse_utf8": _parse_utf8,
    "format": _format,
    "code_points": _code_points,
    "from_code_points": _from_code_points,
    "parse_f64": _parse_real,
    "parse_f32": _parse_real,
    "parse_time": _parse_time,
    "parse_decimal": decimals.parse,
    "starts_with": _starts,
    "ends_with": _starts,
    "find": _find,
    "char": _char,
    "join": _join,
    "split": _split,
    "encode": _encode,
    "trim": _trim,
}
