"""Conversions between numbers, to text and back. `i64(x)` is exact or traps; from floats it drops the fraction.

`.sat` goes to the nearest bound (NaN to 0), `.wrap` is two's complement, and for floats out of range what x86
does: the most negative number (for u64: 2^63). Whole numbers become floats by rounding to even; f32 always by
way of f64.
"""

from __future__ import annotations

import math
import re
from operator import pos
from typing import TYPE_CHECKING, Any, Final

from river.classes import evolve
from river.lang import types as t
from river.lang.operations.arithmetic import bounds, half_up, quotient, wrap
from river.lang.operations.effects import PURE
from river.lang.operations.table import (
    Known,
    Meaning,
    Operation,
    Rule,
    Signature,
    Types,
    Unary,
    from_any,
    is_float,
    is_integer,
    is_number,
    is_scalar,
    is_span,
    plain,
    strip,
    to_wanted,
)  # fmt: skip
from river.lang.operations.times import duration_text, parse_time, time_text
from river.lang.values import BOUNDS, INFINITY, NAN, TrapSignal, single

if TYPE_CHECKING:
    from collections.abc import Callable

# ---------------------------------------------------------------------------------------------- to whole numbers


def _whole(types: Types, result: t.Type) -> Unary:
    low, high = BOUNDS[result]
    if types[0] == t.STRING:
        return _insist(integer_parser(result))
    cut = _cutter(types[0])

    def convert(value: Any) -> int:
        whole = cut(value)
        if whole is None or not low <= whole <= high:
            raise TrapSignal("conversion-range", value)
        return whole

    return convert


def _cutter(source: t.Type) -> Callable[[Any], int | None]:
    """A number without its fraction; None for NaN and infinities."""
    if is_float(source):
        return lambda value: math.trunc(value) if value - value == 0.0 else None
    if isinstance(source, t.Decimal):
        unit = 10**source.scale
        return lambda value: quotient(value, unit)
    return int


def _saturated(types: Types, result: t.Type) -> Unary:
    low, high = BOUNDS[result]
    cut = _cutter(types[0])

    def convert(value: Any) -> int:
        whole = cut(value)
        if whole is None:
            return high if value > 0 else low if value < 0 else 0
        return min(max(whole, low), high)

    return convert


def _wrapped(types: Types, result: t.Type) -> Unary:
    if not is_float(types[0]):
        return lambda value: wrap(int(value), result)
    low, high = BOUNDS[result]
    otherwise = low or 1 << 63
    cut = _cutter(types[0])

    def convert(value: float) -> int:
        whole = cut(value)
        return whole if whole is not None and low <= whole <= high else otherwise

    return convert


def _whole_traps(types: Types, result: t.Type) -> tuple[str, ...]:
    source = types[0]
    if source == t.STRING:
        return ("bad-parse",)
    if source in (t.BOOL, result):
        return ()
    if source in BOUNDS:
        (a, b), (c, d) = BOUNDS[source], BOUNDS[result]
        return () if c <= a and b <= d else ("conversion-range",)
    return ("conversion-range",)


def _to_whole(type_: t.Type) -> bool:
    return is_number(type_) or is_span(type_) or type_ in (t.BOOL, t.STRING)


def _number_or_bool(type_: t.Type) -> bool:
    return is_integer(type_) or is_float(type_) or type_ == t.BOOL


def _checked_i64(value: int) -> int:
    low, high = BOUNDS[t.I64]
    if low <= value <= high:
        return value
    raise TrapSignal("overflow", value)


_KEEPS: Final = evolve(PURE, whole=pos)
"""What is a whole number already stays that number, if the type has it."""


def _whole_operations() -> tuple[Operation, ...]:
    found: list[Operation] = []
    for type_ in (t.I32, t.I64, t.U64, t.I128):
        name = type_.name
        found += [
            Operation(name, from_any(_to_whole, type_), _whole,
                f"as {name}: exact or a trap; floats lose their fraction",
                      _whole_traps, "inline", effect=_KEEPS),
            Operation(f"{name}.sat", from_any(_number_or_bool, type_), _saturated,
                f"as {name}, or its nearest bound",
                      native="inline", effect=_KEEPS),
            Operation(f"{name}.wrap", from_any(_number_or_bool, type_), _wrapped, f"as {name}, wrapping",
                native="inline", effect=_KEEPS),
        ]  # fmt: skip
    return tuple(found)


# ---------------------------------------------------------------------------------------------- to floats


def _real(types: Types, result: t.Type) -> Unary:
    source = types[0]
    if source == t.STRING:
        return _insist(parse_f64 if result == t.F64 else _parse_f32)
    unit = 10**source.scale if isinstance(source, t.Decimal) else 1

    def convert(value: Any) -> float:
        return value / unit if unit > 1 else float(value)  # Python divides whole numbers correctly rounded

    if result == t.F32 and source != t.F32:
        return lambda value: single(convert(value))
    return convert


def _parses(types: Types, _result: t.Type) -> tuple[str, ...]:
    return ("bad-parse",) if types[0] == t.STRING else ()


def _insist(parse: Callable[[str], Any]) -> Unary:
    def convert(text: str) -> Any:
        value = parse(text)
        if value is None:
            raise TrapSignal("bad-parse", text)
        return value

    return convert


def _to_real(type_: t.Type) -> bool:
    return is_number(type_) or type_ in (t.BOOL, t.STRING)


# ---------------------------------------------------------------------------------------------- decimals


def _is_decimal(type_: t.Type) -> bool:
    return isinstance(type_, t.Decimal)


def _to_decimal(types: Types, result: t.Type) -> Unary:
    assert isinstance(result, t.Decimal)  # noqa: S101 - by the rule
    source = types[0]
    low, high, code = bounds(result)
    unit = 10**result.scale

    def fit(above: int, below: int, value: Any) -> int:
        scaled = half_up(above, below)
        if low <= scaled <= high:
            return scaled
        raise TrapSignal(code, value)

    if isinstance(source, t.Decimal):
        source_unit = 10**source.scale
        return lambda value: fit(value * unit, source_unit, value)
    if not is_float(source):
        return lambda value: fit(value * unit, 1, value)

    def convert(value: float) -> int:
        if value - value != 0.0:
            raise TrapSignal("conversion-range", value)
        above, below = value.as_integer_ratio()
        return fit(above * unit, below, value)

    return convert


def _decimal_traps(types: Types, _result: t.Type) -> tuple[str, ...]:
    return ("decimal-precision", "conversion-range") if is_float(types[0]) else ("decimal-precision",)


# ---------------------------------------------------------------------------------------------- to text


def single_text(value: float) -> str:
    """The fewest digits that round to this single again, laid out as Python's repr."""
    if value - value != 0.0 or value == 0.0:
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        if single(float(text)) == value:
            return repr(float(text))
    raise AssertionError(value)


def _decimal_text(scale: int) -> Callable[[int], str]:
    def text(value: int) -> str:
        digits = str(abs(value)).rjust(scale + 1, "0")
        sign = "-" if value < 0 else ""
        return (
            f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"
            if scale
            else sign + digits
        )

    return text


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _text(types: Types, _result: t.Type) -> Unary:
    match types[0]:
        case t.Decimal(_, scale):
            return _decimal_text(scale)
        case t.BOOL:
            return _bool_text
        case t.F32:
            return single_text
        case t.F64:
            return repr
        case t.TIME:
            return time_text
        case t.DURATION:
            return duration_text
        case _:
            return str


def _printable(type_: t.Type) -> bool:
    return is_scalar(type_) and type_ != t.BYTES


# ---------------------------------------------------------------------------------------------- from text

_REAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?")
_INTEGER = re.compile(r"([+-]?)([0-9A-Za-z]+)")
_SPECIAL = {"inf": INFINITY, "infinity": INFINITY, "nan": NAN}


def parse_integer(text: str, base: int, type_: t.Type) -> int | None:
    """A whole number of ASCII digits with an optional sign, or None (also when `type_` has no such number)."""
    low, high = BOUNDS[type_]
    found = _INTEGER.fullmatch(text)
    if found is None or not 2 <= base <= 36:
        return None
    digits = found[2].lstrip("0") or "0"
    if len(digits) > 128 or any(int(digit, 36) >= base for digit in digits):
        return None
    value = int(found[1] + digits, base)
    return value if low <= value <= high else None


def integer_parser(type_: t.Type) -> Callable[[str], int | None]:
    """`parse_integer` to base 10."""
    return lambda text: parse_integer(text, 10, type_)


def parse_f64(text: str) -> float | None:
    """The nearest double; `inf`, `infinity`, `nan` in any case, with a sign."""
    if _REAL.fullmatch(text) is not None:
        return float(text)
    if not text.isascii():
        return None
    value = _SPECIAL.get(text.lower().removeprefix("+").removeprefix("-"))
    if value is None or text[:2] in ("+-", "-+", "--", "++"):
        return None
    return -value if text.startswith("-") and value == INFINITY else value


def _parse_f32(text: str) -> float | None:
    value = parse_f64(text)
    return None if value is None else single(value)


def _parse_bool(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def decimal_parser(type_: t.Decimal) -> Callable[[str], int | None]:
    """Reads a decimal number exactly; None if it has more digits than the type, before or after the point."""

    def parse(text: str) -> int | None:
        found = _DECIMAL.fullmatch(text)
        if found is None or not (found[2] or found[3]):
            return None
        fraction = (found[3] or "").rstrip("0")
        digits = (found[2] + fraction.ljust(type_.scale, "0")).lstrip("0")
        if len(fraction) > type_.scale or len(digits) > type_.precision:
            return None
        value = int(digits or "0")
        return -value if found[1] == "-" else value

    return parse


def _parse_decimal(_types: Types, result: t.Type) -> Unary:
    inner = strip(result)
    assert isinstance(inner, t.Decimal)  # noqa: S101 - by the rule
    return decimal_parser(inner)


def _parse_decimal_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    hint = strip(wanted)
    if len(types) != 1 or types[0] not in (None, t.STRING) or not isinstance(hint, t.Decimal):
        return None
    return Signature((t.STRING,), t.Optional(hint))


def _parse_integer_rule(result: t.Type) -> Rule:
    def rule(types: Known, _wanted: t.Type | None) -> Signature | None:
        match types:
            case (t.STRING | None,):
                return Signature((t.STRING,), t.Optional(result))
            case (t.STRING | None, t.I64 | None):
                return Signature((t.STRING, t.I64), t.Optional(result))
            case _:
                return None

    return rule


def _parse_integer(types: Types, result: t.Type) -> Meaning:
    inner = strip(result) or result

    def to_base(text: str, base: int) -> int | None:
        return parse_integer(text, base, inner)

    return integer_parser(inner) if len(types) == 1 else to_base


def _reads(result: t.Type) -> Rule:
    return from_any(lambda type_: type_ == t.STRING, t.Optional(result), t.STRING)


def _parsers() -> tuple[Operation, ...]:
    whole = tuple(
        Operation(
            f"parse_{type_.name}", _parse_integer_rule(type_), _parse_integer,
            "the whole number in a text (to a base of 2 to 36), or none", effect=PURE,
        )
        for type_ in (t.I32, t.I64, t.U64, t.I128)
    )  # fmt: skip
    return (
        *whole,
        Operation("parse_f64", _reads(t.F64), plain(parse_f64), "the number in a text, or none", effect=PURE),
        Operation(
            "parse_f32", _reads(t.F32), plain(_parse_f32), "the number in a text, or none", effect=PURE
        ),
        Operation(
            "parse_bool",
            _reads(t.BOOL),
            plain(_parse_bool),
            "`true` or `false` in a text, or none",
            effect=PURE,
        ),
        Operation(
            "parse_time",
            _reads(t.TIME),
            plain(parse_time),
            "the ISO 8601 time in a text (UTC unless it says), or none",
            effect=PURE,
        ),
        Operation(
            "parse_decimal",
            _parse_decimal_rule,
            _parse_decimal,
            "the exact decimal number in a text, or none",
            effect=PURE,
        ),
    )


OPERATIONS: tuple[Operation, ...] = (
    *_whole_operations(),
    Operation("f64", from_any(_to_real, t.F64), _real, "as f64, rounded to even", _parses, "inline",
        effect=PURE),
    Operation("f32", from_any(_to_real, t.F32), _real, "as f32, by way of f64", _parses, "inline",
        effect=PURE),
    Operation(
        "i64_of", from_any(lambda type_: type_ == t.I128, t.I64, t.I128), plain(_checked_i64),
        "an i128 as i64; traps on overflow",
        ("overflow",), "inline", effect=PURE,
    ),
    Operation(
        "to_decimal", to_wanted(is_number, _is_decimal, None), _to_decimal,
        "as the decimal type wanted, rounded half up",
        _decimal_traps, effect=PURE,
    ),
    Operation(
        "rescale", to_wanted(_is_decimal, _is_decimal, None), _to_decimal,
        "a decimal of the type wanted, rounded half up",
        _decimal_traps, effect=PURE,
    ),
    Operation("string", from_any(_printable, t.STRING), _text,
        "as text; floats by the fewest digits that read back", effect=PURE),
    *_parsers(),
)  # fmt: skip
