"""Values in text, as source in the runtime's language: what stands at p goes to the columns of a field, and p behind it.

A row in which something is not as usual is left (`break`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.native.ingest.form import FormField

WORD: Final = (1 << 32) - 1  # four bytes
_INFINITE: Final = 0x7F800000


def indented(lines: Iterable[str]) -> list[str]:
    """Lines of an inner block."""
    return ["    " + line for line in lines]


def when(condition: str, then: Iterable[str], other: Iterable[str] = ()) -> list[str]:
    """An `if`."""
    otherwise = list(other)
    return [f"if {condition}:", *indented(then), *(["else:", *indented(otherwise)] if otherwise else [])]


def leave(condition: str) -> list[str]:
    """The row is for the general reader if ..."""
    return when(f"rare({condition})", ["break"])


def word_of(text: bytes) -> int:
    """A word of at most eight bytes as a signed number."""
    return int.from_bytes(text.ljust(8, b"\0"), "little", signed=True)


def value_at(field: FormField, *, strict: bool) -> list[str]:
    """A value at p, other than a string; `strict`: by the rules of JSON."""
    flag = "True" if strict else "False"
    match field.type:
        case t.BOOL:
            return _bool(field, strict=strict)
        case t.I32 | t.I64 | t.U64:
            return _whole(field, strict=strict)
        case t.F32 | t.F64:
            return _float(field, strict=strict)
        case t.Decimal(precision, scale):
            stores = field.store("I.number", "r * 2") + (field.store("I.high", "r * 2 + 1")[-1:])
            return [f"p = decimal_at(I, p, {flag}, {precision}, {scale})", *leave("p < 0"), *stores]
        case _:
            name = "time_at" if field.type == t.TIME else "duration_at"
            read = [f"p = {name}(I, p)", *leave("p < 0"), *field.store("I.number")]
            quote = [*leave("data[p] != QUOTE"), "p += 1"]
            return [*quote, *read, *quote] if strict else read


def _bool(field: FormField, *, strict: bool) -> list[str]:
    other = (
        ["break"]
        if strict
        else when("data[p] != 48 and data[p] != 49", ["break"], ["v = i64(data[p]) - 48", "p += 1"])
    )
    false = f"w & 255 == 102 and load64(data, p + 1) & {WORD} == {word_of(b'alse')}"
    return [
        "w = load64(data, p)",
        "v = i64(1)",
        *when(f"w & {WORD} == {word_of(b'true')}", ["p += 4"], when(false, ["p += 5", "v = 0"], other)),
        *field.store("i8(v)"),
    ]


def _whole(field: FormField, *, strict: bool) -> list[str]:
    signed = field.type != t.U64
    more = ["w = load64(data, p)", "k = digits(w)"]
    take = when("k != 0", ["v = v * ten(k) + number(w, k)", "p += k"])
    third = [*more, *leave("k > 3"), *take, *(leave("v < 0") if signed else [])]
    return [
        *(
            ["negative = False", *when("rare(data[p] == MINUS)", ["negative = True", "p += 1"])]
            if signed
            else []
        ),
        "w = load64(data, p)",
        "n = digits(w)",
        *leave("n == 0"),
        *(when("n > 1 and data[p] == ZERO", ["break"]) if strict else []),
        "v = number(w, n)",
        "p += n",
        *when("n == 8", [*more, *take, *when("k == 8", third)]),
        *(leave("v > 2147483647") if field.type == t.I32 else []),
        *(["v = 0 - v if negative else v"] if signed else []),
        *field.store("i32(v)" if field.type == t.I32 else "v"),
    ]


def _float(field: FormField, *, strict: bool) -> list[str]:
    usual = "n != 0 and n != 8 and data[p + n] == POINT and k != 0 and k != 8 and data[q] | 32 != 101"
    if strict:
        usual += " and (n == 1 or data[p] != ZERO)"
    quick = [
        "v = bits(quotient(f64(number(w, n) * ten(k) + number(x, k)), ten_float(k)))",
        "v = v | (u64(negative) << 63)",
        "p = q",
    ]
    slow = [f"p = float_at(I, first, {strict})", *leave("p < 0"), "v = I.number"]
    single = ["s = single(v)", *leave(f"s & {_INFINITE} == {_INFINITE}"), *field.store("s")]
    return [
        "first = p",
        "negative = False",
        *when("rare(data[p] == MINUS)", ["negative = True", "p += 1"]),
        "w = load64(data, p)",
        "n = digits(w)",
        "x = load64(data, p + n + 1)",
        "k = digits(x)",
        "q = p + n + 1 + k",
        "v = i64(0)",
        *when(usual, quick, slow),
        *(single if field.type == t.F32 else field.store("v")),
    ]


def string_at(field: FormField, size: str) -> list[str]:
    """The string of `size` bytes at p."""
    return [
        f"n = {size}",
        "k = i64(1)",
        *when("rare(n >= 64)", ["k = utf8(offset(data, p), n)"], when(
            "rare(tops(offset(data, p)) & ((1 << n) - 1) != 0)", ["k = utf8(offset(data, p), n)"])),
        *leave("k < 0"),
        *field.view("offset(data, p), n, k != 0"),
    ]  # fmt: skip
