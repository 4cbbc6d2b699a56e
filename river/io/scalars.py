"""Scalar values as text, both ways and exact: what a cell of a CSV file or a string in JSON says.

| type | text read | text written |
|---|---|---|
| bool | `true`, `false` in any case, `1`, `0` | `true`, `false` |
| i32, i64, u64 | optional sign and decimal digits, in range | digits |
| f32, f64 | Python's float grammar without `_`: `1`, `.5`, `1e-3`, `nan`, `inf`; a finite text beyond the range is an error | repr (f32: fewest digits that survive) |
| decimal(p,s) | sign, digits, point, exponent; no digit may be lost | all s decimals |
| time | ISO 8601 date, or date and time with `T` or a space, up to microseconds, optional offset (none: UTC) | `2024-01-31T12:00:00Z` |
| duration | number and unit: `us`, `ms`, `s`, `min`, `h`, `d` | seconds: `1.5s` |
| bytes | base64 | base64 |
| string | itself, valid UTF-8 | itself |
| unit | `()` | `()` |

No white space is skipped. f32 texts are rounded to f64, then to f32.
"""  # noqa: E501 - a table

from __future__ import annotations

import base64
import binascii
import re
from array import array
from functools import lru_cache
from math import isfinite, isinf, isnan
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from river.diagnostics import InternalError
from river.lang.scope import show
from river.lang.types import (
    BOOL,
    BYTES,
    DURATION,
    F32,
    F64,
    I32,
    I64,
    INTEGERS,
    STRING,
    TIME,
    U64,
    UNIT,
    Decimal,
    Primitive,
    Type,
)
from river.lang.values import NAN

if TYPE_CHECKING:
    from collections.abc import Callable

RANGES: Final = {I32: (-(2**31), 2**31 - 1), I64: (-(2**63), 2**63 - 1), U64: (0, 2**64 - 1)}
SCALARS: Final = (BOOL, I32, I64, U64, F32, F64, STRING, BYTES, TIME, DURATION, UNIT)
DAY: Final = 86_400_000_000


class Mismatch(Exception):  # noqa: N818 - control flow inside the readers, never seen by users
    """A value does not fit its type; `path` grows from the inside out while it travels up."""

    def __init__(self, code: str, reason: str, path: str = "", help: str | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.path = path
        self.help = help

    def inside(self, step: str) -> Mismatch:
        """The same mismatch, seen from one level further out."""
        self.path = step + self.path
        return self


def is_scalar(type_: Type) -> bool:
    """Whether values of `type_` have a text of their own (others are JSON in a cell)."""
    return isinstance(type_, Decimal) or type_ in SCALARS


def shown(text: object) -> str:
    """A value for a message: repr, cut to one line's worth."""
    spelled = repr(text)
    return spelled if len(spelled) <= 60 else spelled[:57] + "..."


_IN_WORDS: Final[dict[Type, str]] = {
    I64: "a whole number",
    F64: "a number",
    BOOL: "`true` or `false`",
    TIME: "a time",
}
"""Types that each language calls in its own way."""


_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_MISSING: Final = frozenset({"null", "none", "na", "n/a", r"\n"})
"""What others write, in small letters, where a value is missing."""


def wrong(value: object, type_: Type) -> Mismatch:
    """The mismatch of a value that is of another kind than `type_`."""
    if value is None:
        return Mismatch(
            "data-type",
            "is `null`, and its type is not optional",
            help="a type with `?` takes what is missing",
        )
    blank = isinstance(value, str) and value != value.strip()
    hint = "there are blanks around it" if blank else None
    if isinstance(value, str) and type_ == TIME and not blank:
        hint = "write it as in `2024-01-31 12:00:00`"
        if _NUMBER.fullmatch(value):
            hint = "a number does not say what it counts: read it as an `int`, and make a time of that"
    elif isinstance(value, str) and value.lower() in _MISSING:
        hint = "what is missing is an empty cell, and a type with `?` takes it"
    elif isinstance(value, str) and type_ in INTEGERS and _NUMBER.fullmatch(value):
        hint = "declare it as a `float`, and make a whole number of it in the program"
    return Mismatch(
        "data-type", f"{shown(value)} is not {_IN_WORDS.get(type_) or f'a `{show(type_)}`'}", help=hint
    )


def without_unit(value: object, type_: Type) -> Mismatch:
    """The mismatch of what is no time or duration; a number might be one, of seconds or of something else."""
    found = wrong(value, type_)
    if isinstance(value, SupportsIndex | float) and not isinstance(value, bool):
        found.reason += ": a number does not say what it counts"
        found.help = (
            "give a datetime, `datetime.fromtimestamp(seconds, UTC)`, or a text such as '2024-01-31T12:00:00Z'"
            if type_ == TIME
            else "give a timedelta, or a text such as '1.5s'"
        )
    return found


def out_of_range(value: object, type_: Type) -> Mismatch:
    """The mismatch of a number that `type_` cannot hold."""
    return Mismatch("data-range", f"{shown(value)} is out of the range of `{show(type_)}`")


def parser(type_: Type) -> Callable[[str], Any]:
    """The function from text to value of a scalar type; it raises Mismatch."""
    match type_:
        case Decimal():
            return lambda text: parse_decimal(text, type_)
        case Primitive("bool"):
            return parse_bool
        case Primitive("i32" | "i64" | "u64"):
            return lambda text: parse_int(text, type_)
        case Primitive("f32" | "f64"):
            return lambda text: parse_float(text, type_)
        case Primitive("string"):
            return check_text
        case Primitive("bytes"):
            return parse_bytes
        case Primitive("time"):
            return parse_time
        case Primitive("duration"):
            return parse_duration
        case Primitive("unit"):
            return _parse_unit
        case _:
            raise InternalError(f"no text for values of type {show(type_)}")


def formatter(type_: Type) -> Callable[[Any], str]:
    """The function from value to text of a scalar type; `parser` reads it back."""
    match type_:
        case Decimal(_, scale):
            return lambda value: format_decimal(value, scale)
        case Primitive("bool"):
            return lambda value: "true" if value else "false"
        case Primitive("i32" | "i64" | "u64"):
            return str
        case Primitive("f32"):
            return format_f32
        case Primitive("f64"):
            return repr
        case Primitive("string"):
            return _same
        case Primitive("bytes"):
            return lambda value: base64.b64encode(value).decode("ascii")
        case Primitive("time"):
            return format_time
        case Primitive("duration"):
            return format_duration
        case Primitive("unit"):
            return lambda _: "()"
        case _:
            raise InternalError(f"no text for values of type {show(type_)}")


def _same(text: str) -> str:
    return text


def check_text(text: str) -> str:
    """`text`, if it is made of Unicode scalar values (readers keep bad bytes as lone surrogates)."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _not_utf8(text, error.start) from None
    return text


def _not_utf8(text: str, at: int) -> Mismatch:
    """The mismatch of a text with a lone surrogate at a place: a byte of the file, or what an escape in JSON says."""
    known = re.sub("[\ud800-\udfff]", "\ufffd", text)
    what = ord(text[at])
    if 0xDC80 <= what <= 0xDCFF:
        reason = f"the byte 0x{what - 0xDC00:02X}, character {at + 1} of {shown(known)}, is not UTF-8"
        return Mismatch("data-utf8", reason, help="save the file as UTF-8")
    return Mismatch(
        "data-utf8", f"`\\u{what:04x}`, character {at + 1} of {shown(known)}, is half a character"
    )


_BOOLS: Final = {"true": True, "false": False, "1": True, "0": False}


def parse_bool(text: str) -> bool:
    """`true`, `false` (any case), `1`, `0`."""
    value = _BOOLS.get(text)
    if value is None:
        value = _BOOLS.get(text.lower())
        if value is None:
            raise wrong(text, BOOL)
    return value


_INT: Final = re.compile(r"[+-]?[0-9]+")


def parse_int(text: str, type_: Type) -> int:
    """Optional sign and digits, in the range of `type_`."""
    if _INT.fullmatch(text) is None:
        raise wrong(text, type_)
    digits = text.lstrip("+-0")
    if len(digits) > 20:
        raise out_of_range(text, type_)
    return check_int(int(text), type_)


def check_int(value: int, type_: Type) -> int:
    """`value`, if it is in the range of `type_`."""
    low, high = RANGES[type_]  # pyright: ignore[reportArgumentType]
    if low <= value <= high:
        return value
    raise out_of_range(value, type_)


_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)


def parse_float(text: str, type_: Type) -> float:
    """Python's float grammar without underscores and spaces."""
    if _FLOAT.fullmatch(text) is None:
        raise wrong(text, type_)
    value = float(text)
    if isfinite(value):
        return value if type_ == F64 else round_f32(value)
    if isnan(value):
        return NAN
    if "n" in text.lower():
        return value
    raise out_of_range(text, type_)


def round_f32(value: float) -> float:
    """`value` rounded to single precision; NaN is canonical.

    Raises: Mismatch("data-range") for finite values beyond single precision.
    """
    if isnan(value):
        return NAN
    rounded = array("f", (value,))[0]
    if isinf(rounded) and isfinite(value):
        raise out_of_range(value, F32)
    return rounded


def format_f32(value: float) -> str:
    """The shortest of 6 to 9 digits that single precision reads back as `value`."""
    if not isfinite(value):
        return repr(value)
    for digits in range(6, 9):
        near = float(f"{value:.{digits}g}")
        if array("f", (near,))[0] == value:
            return repr(near)
    return repr(float(f"{value:.9g}"))


_DECIMAL: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,4}))?")


def parse_decimal(text: str, type_: Decimal) -> int:
    """The scaled integer of an exact decimal number."""
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise wrong(text, type_)
    digits = match[2] + (match[3] or "")
    exponent = int(match[4] or 0) - len(match[3] or "")
    return scaled(match[1] == "-", digits.lstrip("0"), exponent, type_, text)


def scaled(negative: bool, digits: str, exponent: int, type_: Decimal, source: object) -> int:
    """The integer of `type_` for 0.digits times a power of ten, if it is exact and in range.

    `digits` has no leading zeros; the value is +-digits * 10**exponent.
    """
    if not digits:
        return 0
    shift = exponent + type_.scale
    if shift < 0:
        kept, lost = digits[:shift], digits[shift:]
        if lost.strip("0"):
            reason = f"{shown(source)} has more than the {type_.scale} decimals of `{show(type_)}`"
            raise Mismatch("data-range", reason)
    else:
        kept = digits
    if len(kept) + max(shift, 0) > type_.precision:
        raise out_of_range(source, type_)
    value = int(kept or "0") * 10 ** max(shift, 0)
    return -value if negative else value


def format_decimal(value: int, scale: int) -> str:
    """All digits of a scaled integer, with `scale` of them after the point."""
    if scale == 0:
        return str(value)
    digits = str(abs(value)).rjust(scale + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def parse_bytes(text: str) -> bytes:
    """Bytes from base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Mismatch("data-type", f"{shown(text)} is not base64") from None


def _parse_unit(text: str) -> tuple[()]:
    if text != "()":
        raise wrong(text, UNIT)
    return ()


_DATE: Final = re.compile(r"([0-9]{4}|[+-][0-9]{4,6})-([0-9]{2})-([0-9]{2})")
_CLOCK: Final = re.compile(
    r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(?:([Zz])|([+-])([0-9]{2}):?([0-9]{2})?)?"
)
_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_time(text: str) -> int:
    """Microseconds since 1970 of an ISO 8601 date or date and time; without offset it is UTC."""
    cut = max(text.find("T"), text.find(" "), text.find("t"))
    if cut < 0:
        return _in_time(_date(text), text)
    clock = _CLOCK.fullmatch(text, cut + 1)
    if clock is None:
        raise wrong(text, TIME)
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
    fraction = clock[4] or ""
    if hour > 23 or minute > 59 or second > 59:
        raise wrong(text, TIME)
    if fraction[6:].strip("0"):
        hint = "round it, or read it as a text"
        raise Mismatch("data-range", f"{shown(text)} is finer than the microseconds of `time`", help=hint)
    micros = _date(text[:cut]) + (hour * 3600 + minute * 60 + second) * 1_000_000
    micros += int(fraction[:6].ljust(6, "0")) if fraction else 0
    if clock[6]:
        ahead_hours, ahead_minutes = int(clock[7]), int(clock[8] or 0)
        if ahead_hours > 23 or ahead_minutes > 59:
            raise wrong(text, TIME)
        ahead = (ahead_hours * 60 + ahead_minutes) * 60_000_000
        micros += ahead if clock[6] == "-" else -ahead
    return _in_time(micros, text)


def _in_time(micros: int, text: str) -> int:
    if -(2**63) <= micros < 2**63:
        return micros
    raise out_of_range(text, TIME)


@lru_cache(maxsize=4096)
def _date(text: str) -> int:
    """Microseconds from 1970 to the start of a day (proleptic Gregorian calendar)."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise wrong(text, TIME)
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] - (month == 2 and not leap):
        raise wrong(text, TIME)
    # Years that begin in March put the leap day last: the days before a month are then a linear formula.
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days * DAY


@lru_cache(maxsize=4096)
def _day_text(days: int) -> str:
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march = (5 * of_year + 2) // 153
    day = of_year - (153 * march + 2) // 5 + 1
    month = march + 3 if march < 10 else march - 9
    year = year_of_era + era * 400 + (month <= 2)
    shown_year = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown_year}-{month:02d}-{day:02d}"


def format_time(value: int) -> str:
    """ISO 8601 in UTC, with as many decimals as needed: none, three or six."""
    days, micros = divmod(value, DAY)
    seconds, micros = divmod(micros, 1_000_000)
    text = f"{_day_text(days)}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if micros == 0:
        return text + "Z"
    return f"{text}.{micros // 1000:03d}Z" if micros % 1000 == 0 else f"{text}.{micros:06d}Z"


_DURATION: Final = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?(us|ms|s|min|h|d)")
_UNITS: Final = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": DAY}


def parse_duration(text: str) -> int:
    """Microseconds of a number with unit."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise Mismatch("data-type", f"{shown(text)} is not a `duration`", help="write `90s`, `1.5h`, `250ms`")
    fraction = (match[3] or "").rstrip("0")
    if len(match[2]) + len(fraction) > 40:
        raise out_of_range(text, DURATION)
    total, rest = divmod(int(match[2] + fraction) * _UNITS[match[4]], 10 ** len(fraction))
    if rest:
        raise Mismatch("data-range", f"{shown(text)} is finer than the microseconds of `duration`")
    value = -total if match[1] == "-" else total
    if not -(2**63) <= value < 2**63:
        raise out_of_range(text, DURATION)
    return value


def format_duration(value: int) -> str:
    """Seconds with as many decimals as needed."""
    seconds, micros = divmod(abs(value), 1_000_000)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{'-' if value < 0 else ''}{seconds}{fraction}s"
