"""Lengths of time as SQL and ISO 8601 write them: months, which are of different lengths, and microseconds."""

from __future__ import annotations

import re
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.sql.functions import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MONTHS = ((("month", "mon"), 1), (("quarter",), 3), (("year", "yr"), 12), (("decade",), 120))
_LENGTHS = (
    (("microsecond", "usec"), 1),
    (("millisecond", "msec"), UNITS["millisecond"]),
    (("second", "sec"), UNITS["second"]),
    (("minute", "min"), UNITS["minute"]),
    (("hour", "hr"), UNITS["hour"]),
    (("day",), UNITS["day"]),
    (("week",), UNITS["week"]),
)


def _spelled(units: Iterable[tuple[tuple[str, ...], int]]) -> dict[str, int]:
    """Units by their names, also in the plural."""
    return {name + plural: size for names, size in units for name in names for plural in ("", "s")}


MONTHS: Mapping[str, int] = MappingProxyType(_spelled(_MONTHS))
LENGTHS: Mapping[str, int] = MappingProxyType(
    _spelled(_LENGTHS)
    | {
        "us": 1,
        "ms": UNITS["millisecond"],
        "s": UNITS["second"],
        "m": UNITS["minute"],
        "h": UNITS["hour"],
        "d": UNITS["day"],
    }
)
"""Units of time as they are written, in months and in microseconds."""

_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_PART = re.compile(
    r"\s*(?P<sign>[-+]?)\s*(?:(?P<hours>\d+):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d+)?))?|(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-zA-Z]+))"
)
_ISO = re.compile(
    r"\s*(?P<sign>[-+]?)P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?\s*",
    re.IGNORECASE,
)
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")

Length = tuple[int, int]
"""Months, and microseconds."""


def interval(text: str, unit: Sequence[str] = (), last: Sequence[str] = ()) -> Length | None:
    """What `interval 'text' unit to last` is, or None if it is no length of time. At most one unit each is given.

    `'1-2' year to month`, `'1 2:30' day to minute`, `'5' day`, `'1 month 2 days 3:00'`, `'P1DT2H'`.
    """
    first, to = (given[0] if given else "" for given in (unit, last))
    if to:
        return _between(text, first.removesuffix("s"), to.removesuffix("s"))
    iso = _ISO.fullmatch(text)
    if iso is not None and not first:
        sign, *numbers = iso.groups()
        return _sum(
            (sign, Fraction(number), of) for number, of in zip(numbers, _ISO_UNITS, strict=True) if number
        )
    return _parts(f"{text} {first}")


def _parts(text: str) -> Length | None:
    """`1 month 2 days 3:00`."""
    found: list[tuple[str, Fraction, str]] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        if part["unit"] is None:
            clock = zip((part["hours"], part["minutes"], part["seconds"] or "0"), _FIELDS[3:], strict=True)
            found += [(part["sign"], Fraction(number), of) for number, of in clock]
        else:
            found.append((part["sign"], Fraction(part["number"]), part["unit"].lower()))
        at = part.end()
    return _sum(found) if found else None


def _between(text: str, first: str, last: str) -> Length | None:
    """Fields from one unit to another, with the signs that stand between them."""
    if (
        first not in _FIELDS
        or last not in _FIELDS[_FIELDS.index(first) + 1 :]
        or (first == "year") != (last == "month")
    ):
        return None
    fields = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    between = {"month": "-", "hour": " ", "minute": ":", "second": ":"}
    pattern = r"\s*([-+]?)(\d+)" + "".join(rf"{between[of]}(\d+)" for of in fields[1:])
    found = re.fullmatch(pattern + (r"(\.\d+)?" if last == "second" else "()") + r"\s*", text)
    if found is None:
        return None
    sign, *numbers, fraction = found.groups()
    numbers[-1] += fraction or ""
    return _sum((sign, Fraction(number), of) for number, of in zip(numbers, fields, strict=True))


def _sum(parts: Iterable[tuple[str, Fraction, str]]) -> Length | None:
    """The sum of so much of each unit; None if it is not whole, or a unit is none."""
    months, micros = Fraction(0), Fraction(0)
    for sign, number, unit in parts:
        size = -number if sign == "-" else number
        if unit in MONTHS:
            months += size * MONTHS[unit]
        elif unit in LENGTHS:
            micros += size * LENGTHS[unit]
        else:
            return None
    whole = months.denominator == micros.denominator == 1
    return (int(months), int(micros)) if whole else None
