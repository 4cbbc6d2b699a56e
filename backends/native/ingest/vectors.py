"""Functions below the ingest language: bytes compared many at a time, powers of ten, division.

Scans look at 64 bytes; no bit of a mask counts as 64.
"""

from __future__ import annotations

from functools import cache
from struct import pack, unpack
from typing import Final

from backends.native.ir import FunctionText
from backends.native.rtlang import Signature, Unit

LEAST, MOST = -342, 308
"""Exponents of ten that the table of powers of five has."""

_EXACT: Final = -27  # from here on a product with the reciprocal tells ties
_QUOTE, _LINE, _RETURN, _BACKSLASH, _SPACE = 34, 10, 13, 92, 32


def _define(unit: Unit, name: str, params: tuple[str, ...], result: str, body: list[str]) -> None:
    kinds = {"p8": "ptr", "f64": "double"}
    heads = ", ".join(f"{kinds.get(kind, kind)} %a{i}" for i, kind in enumerate(params))
    lines = "\n".join("  " + line for line in body)
    text = f"define internal {kinds.get(result, result)} @{name}({heads}) alwaysinline nounwind {{\n{lines}\n}}\n"
    unit.signatures[name] = Signature(params, result)
    unit.functions[name] = FunctionText(name, text, frozenset())


def _scan(conditions: list[tuple[str, int]]) -> list[str]:
    """A mask of 64 bytes for which a condition holds."""
    lines = ["%v = load <64 x i8>, ptr %a0, align 1"]
    found = ""
    for i, (comparison, value) in enumerate(conditions):
        constant = "<" + ", ".join([f"i8 {value}"] * 64) + ">"
        lines.append(f"%c{i} = icmp {comparison} <64 x i8> %v, {constant}")
        if found:
            lines.append(f"%o{i} = or <64 x i1> {found}, %c{i}")
        found = f"%o{i}" if found else f"%c{i}"
    return [*lines, f"%m = bitcast <64 x i1> {found} to i64", "ret i64 %m"]


def _match(value: str) -> list[str]:
    return [
        "%v = load <64 x i8>, ptr %a0, align 1",
        f"%i = insertelement <64 x i8> poison, i8 {value}, i64 0",
        "%s = shufflevector <64 x i8> %i, <64 x i8> poison, <64 x i32> zeroinitializer",
        "%c = icmp eq <64 x i8> %v, %s",
        "%m = bitcast <64 x i1> %c to i64",
        "ret i64 %m",
    ]


def _item(table: str, kind: str, index: str, last: int) -> list[str]:
    return [
        f"%p = getelementptr inbounds [{last + 1} x {kind}], ptr @{table}, i64 0, i64 {index}",
        f"%r = load {kind}, ptr %p",
        f"ret {kind} %r",
    ]


def vectors(delimiter: str) -> Unit:
    """The functions, for cells that end at `delimiter`."""
    unit = Unit()
    mask = (("p8",), "i64")
    ends = [("eq", ord(delimiter)), ("eq", _LINE), ("eq", _RETURN), ("eq", _QUOTE)]
    _define(unit, "cell_stops", *mask, _scan(ends))
    _define(unit, "quote_stops", *mask, _scan([("eq", _QUOTE), ("eq", _LINE)]))
    _define(unit, "text_stops", *mask, _scan([("eq", _QUOTE), ("eq", _BACKSLASH), ("ult", _SPACE)]))
    _define(unit, "tops", *mask, _scan([("slt", 0)]))
    _define(unit, "lines", *mask, _match(str(_LINE)))
    _define(unit, "match", ("p8", "i8"), "i64", _match("%a1"))
    _define(unit, "ten", ("i64",), "i64", _item("ingest_tens", "i64", "%a0", 19))
    _define(unit, "ten_float", ("i64",), "f64", _item("ingest_ten_floats", "double", "%a0", 22))
    for name, offset in (("five_high", 0), ("five_low", 1)):
        index = [f"%b = sub i64 %a0, {LEAST}", "%d = shl i64 %b, 1", f"%i = add i64 %d, {offset}"]
        _define(
            unit, name, ("i64",), "i64", [*index, *_item("ingest_fives", "i64", "%i", 2 * (MOST - LEAST) + 1)]
        )
    _define(unit, "quotient", ("f64", "f64"), "f64", ["%r = fdiv double %a0, %a1", "ret double %r"])
    single = [
        "%d = bitcast i64 %a0 to double",
        "%s = fptrunc double %d to float",
        "%r = bitcast float %s to i32",
        "ret i32 %r",
    ]
    _define(unit, "single", ("i64",), "i32", single)
    return unit


@cache
def fives() -> tuple[int, ...]:
    """For each exponent of ten the 128 leading bits of the power of five, high word first (Lemire 2021, section 5)."""
    words: list[int] = []
    for q in range(LEAST, MOST + 1):
        power: int = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            found = power << 128 >> bits
        elif q >= _EXACT:
            found = (1 << (bits + 127)) // power + 1
        else:
            found = (1 << (2 * bits + 128)) // power + 1
            found >>= found.bit_length() - 128
        words += [found >> 64, found & ((1 << 64) - 1)]
    return tuple(words)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@cache
def tables(floats: bool) -> str:
    """The constants that the functions read; those of powers of five only for `floats`."""
    tens = ", ".join(f"i64 {_signed(10**i)}" for i in range(20))
    ten_floats = ", ".join(f"double 0x{unpack('<Q', pack('<d', 10.0**i))[0]:016X}" for i in range(23))
    lines = [
        f"@ingest_tens = private unnamed_addr constant [20 x i64] [{tens}], align 16",
        f"@ingest_ten_floats = private unnamed_addr constant [23 x double] [{ten_floats}], align 16",
    ]
    if floats:
        found = fives()
        words = ", ".join(f"i64 {_signed(word)}" for word in found)
        lines.append(
            f"@ingest_fives = private unnamed_addr constant [{len(found)} x i64] [{words}], align 16"
        )
    return "\n".join(lines) + "\n"
