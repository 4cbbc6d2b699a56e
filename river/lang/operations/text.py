"""Strings (code points) and bytes. `len`, `slice`, `+`, `contains`, `concat`, `reverse` are shared with other types."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from river.lang import types as t
from river.lang.memory import LARGE, claim, claim_text
from river.lang.operations.effects import PURE
from river.lang.operations.table import Known, Operation, Signature, Types, fixed, plain
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Callable

SPACE = " \t\n\r\v\f"
TEXT = 64
"""Bytes of a text of Python in a list, at least."""


def _find_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    params = (t.STRING, t.STRING, t.I64)[: len(types)]
    return fixed(params, t.I64)(types, None) if len(params) in (2, 3) else None


def _find(text: str, part: str, start: int = 0) -> int:
    return text.find(part, min(max(start, 0), len(text) + 1))


def _split(text: str, separator: str) -> list[str]:
    if separator:
        claim(TEXT * text.count(separator) if len(text) >= LARGE else 0)
        return text.split(separator)
    claim((8 if text.isascii() else TEXT) * len(text))  # Python has one text for each ASCII character
    return list(text)


def _join(parts: tuple[str, ...] | list[str], separator: str) -> str:
    claim_text(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(text) // len(old) * len(new) >= LARGE:
        claim_text(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _trim(text: str) -> str:
    return text.strip(SPACE)


def _points(text: str) -> list[int]:
    claim((8 if text.isascii() else 40) * len(text))
    return list(map(ord, text))


def _char(point: int) -> str:
    if not 0 <= point <= 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise TrapSignal("conversion-range", point)
    return chr(point)


def _from_points(points: tuple[int, ...] | list[int]) -> str:
    return "".join(map(_char, points))


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as bad:
        raise TrapSignal("bad-utf8", data) from bad


def _parse_utf8(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


_FORM = re.compile(r"%([-+ 0#]*)(\d{0,2})(\.\d{0,2})?([diouxXeEfFgG])")


def form_of(form: str, type_: t.Type) -> str | None:
    """A form of C's printf for one value of `type_`, in the form in which all agree what it means; None if it is none."""
    found = _FORM.fullmatch(form)
    if found is None:
        return None
    flags, width, precision, verb = found[1], found[2], found[3] or "", found[4]
    if (verb in "diouxX") != (type_ != t.F64) or ("#" in flags and verb in "diu"):
        return None
    dropped = {"0" if verb in "diouxX" and precision else "", "0" if "-" in flags else ""}
    dropped |= {" ", "+"} if verb in "ouxX" else {" "} if "+" in flags else set()
    kept = "".join(flag for flag in "-+ 0#" if flag in flags and flag not in dropped)
    return f"%{kept}{width}{precision}{'d' if verb == 'i' else verb}"


def _format_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.STRING | None, t.I64 | t.U64 | t.F64 as value):
            return fixed((t.STRING, value), t.STRING)(types, None)
        case _:
            return None


def _whole(form: str, value: int) -> str:
    """A whole number in a form of C's, which Python's has otherwise: 0 in no digits, and in `%#x` and `%#o`."""
    found = _FORM.fullmatch(form)
    assert found is not None  # noqa: S101 - forms are known to be some
    flags, width, precision, verb = found[1], int(found[2] or "0"), found[3], found[4]
    sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    digits = "" if value == 0 and precision in (".", ".0") else f"%{precision or ''}{verb}" % abs(value)
    if "#" in flags and verb == "o" and not digits.startswith("0"):
        digits = "0" + digits
    elif "#" in flags and verb in "xX" and value:
        sign = "0" + verb
    if "0" in flags:
        digits = digits.rjust(width - len(sign), "0")
    text = sign + digits
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _format(types: Types, _result: t.Type) -> Callable[..., str]:
    def made(form: str, value: float) -> str:
        known = form_of(form, types[1])
        if known is None:
            raise TrapSignal("conversion-range", form)
        if isinstance(value, int) and known[-1] in "ouxX":
            value &= (1 << 64) - 1
        if isinstance(value, int):
            return _whole(known, value)
        if not math.isfinite(value):
            known = "%" + known[1:].replace("0", "", 1) if known[1:].lstrip("-+ #").startswith("0") else known
        return known % value

    return made


_TEXT, _TWO = (t.STRING,), (t.STRING, t.STRING)

OPERATIONS: tuple[Operation, ...] = (
    Operation("format", _format_rule, _format,
        "the number b in C's form a (`%-8.3f`, of at most two digits each); traps if that is no form for it",
        ("conversion-range",), effect=PURE),
    Operation("parse_utf8", fixed((t.BYTES,), t.Optional(t.STRING)), plain(_parse_utf8), "the string in UTF-8, or none",
        effect=PURE),
    Operation("find", _find_rule, plain(_find), "where b first occurs in a (from a position), or -1",
        effect=PURE),
    Operation("starts_with", fixed(_TWO, t.BOOL), plain(str.startswith), "whether a begins with b",
        effect=PURE),
    Operation("ends_with", fixed(_TWO, t.BOOL), plain(str.endswith), "whether a ends with b", effect=PURE),
    Operation("split", fixed(_TWO, t.List(t.STRING)), plain(_split),
        "the parts of a between separators b; by code point if b is empty", effect=PURE),
    Operation("join", fixed((t.List(t.STRING), t.STRING), t.STRING), plain(_join),
        "the strings with a separator between them", effect=PURE),
    Operation("replace", fixed((t.STRING,) * 3, t.STRING), plain(_replace),
        "a with each b (not empty) replaced by c", effect=PURE),
    Operation("lower", fixed(_TEXT, t.STRING), plain(str.lower), "in lower case (Unicode)", effect=PURE),
    Operation("upper", fixed(_TEXT, t.STRING), plain(str.upper), "in upper case (Unicode)", effect=PURE),
    Operation("trim", fixed(_TEXT, t.STRING), plain(_trim), "without ASCII white space at both ends",
        effect=PURE),
    Operation("code_points", fixed(_TEXT, t.List(t.I32)), plain(_points), "the code points", effect=PURE),
    Operation("char", fixed((t.I32,), t.STRING), plain(_char),
        "the string of one code point; traps if there is none", ("conversion-range",), effect=PURE),
    Operation(
        "from_code_points", fixed((t.List(t.I32),), t.STRING), plain(_from_points),
        "the string of code points; traps if one does not exist", ("conversion-range",), effect=PURE,
    ),
    Operation("encode", fixed(_TEXT, t.BYTES), plain(str.encode), "as UTF-8", effect=PURE),
    Operation("decode", fixed((t.BYTES,), t.STRING), plain(_decode),
        "the string in UTF-8; traps if it is none", ("bad-utf8",), effect=PURE),
)  # fmt: skip

__all__ = ["OPERATIONS", "SPACE", "Types"]
