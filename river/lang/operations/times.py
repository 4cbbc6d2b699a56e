"""Time and duration: microseconds; the calendar is the proleptic Gregorian one in UTC, for all of the 64 bits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from river.lang import types as t
from river.lang.operations.effects import PURE
from river.lang.operations.table import Operation, Rule, fixed, plain
from river.lang.values import BOUNDS, TrapSignal

if TYPE_CHECKING:
    from collections.abc import Callable

MICROS = 1_000_000
DAY = 86_400 * MICROS
_LOW, _HIGH = BOUNDS[t.TIME]


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 (Hinnant's algorithm: years begin in March, 400 of them are one era)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _micros_of(fields: tuple[int, ...]) -> int | None:
    """Microseconds of year, month, day, hour, minute, second (of any range); None if there is no such time."""
    year, month, day, hour, minute, second = fields
    if not (1 <= month <= 12 and 1 <= day <= _month_length(year, month)):
        return None
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return None
    return days_of(year, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * MICROS


def _civil(*fields: int) -> int:
    micros = _micros_of(fields + (0,) * (6 - len(fields)))
    if micros is None or not _LOW <= micros <= _HIGH:
        raise TrapSignal("conversion-range", *fields)
    return micros


def _fraction(micros: int) -> str:
    return f".{micros:06}" if micros else ""


def time_text(time: int) -> str:
    """ISO 8601 in UTC, with six digits of fraction if there is one; years beyond 0 to 9999 have a sign and six digits."""
    days, micros = divmod(time, DAY)
    year, month, day = date_of(days)
    seconds, micros = divmod(micros, MICROS)
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+07}"
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}-{month:02}-{day:02}T{clock}{_fraction(micros)}Z"


def duration_text(duration: int) -> str:
    """ISO 8601 in seconds: `PT1.500000S`, `-PT300S`."""
    seconds, micros = divmod(abs(duration), MICROS)
    return f"{'-' if duration < 0 else ''}PT{seconds}{_fraction(micros)}S"


_TIME = re.compile(
    r"([0-9]{4}|[+-][0-9]{6})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,18}))?)?(?:([Zz])|([+-])([0-9]{2}):?([0-9]{2}))?)?"
)


def parse_time(text: str) -> int | None:
    """A date, or a date and a clock with an optional zone (`Z`, `+01:00`); digits beyond the microsecond are dropped."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    micros = _micros_of(tuple(int(part or 0) for part in found.groups()[:6]))
    if micros is None:
        return None
    micros += int((found[7] or "")[:6].ljust(6, "0"))
    if found[9] is not None:
        hours, minutes = int(found[10]), int(found[11])
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 60 + minutes) * 60 * MICROS
        micros += -offset if found[9] == "+" else offset
    return micros if _LOW <= micros <= _HIGH else None


def _same(value: int) -> int:
    return value


def _micros_rule(result: t.Type) -> Rule:
    return fixed((t.I64,), result)


_FIELDS: tuple[tuple[str, Callable[[int], int], str], ...] = (
    ("year", lambda time: date_of(time // DAY)[0], "the year"),
    ("month", lambda time: date_of(time // DAY)[1], "the month, 1 to 12"),
    ("day", lambda time: date_of(time // DAY)[2], "the day of the month, 1 to 31"),
    ("hour", lambda time: time // (3600 * MICROS) % 24, "the hour, 0 to 23"),
    ("minute", lambda time: time // (60 * MICROS) % 60, "the minute, 0 to 59"),
    ("second", lambda time: time // MICROS % 60, "the second, 0 to 59"),
    ("microsecond", lambda time: time % MICROS, "the microsecond, 0 to 999999"),
    ("weekday", lambda time: (time // DAY + 3) % 7 + 1, "the day of the week, Monday 1 to Sunday 7"),
    (
        "yearday",
        lambda time: time // DAY - days_of(date_of(time // DAY)[0], 1, 1) + 1,
        "the day of the year, 1 to 366",
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *(Operation(name, fixed((t.TIME,), t.I64), plain(meaning), f"{doc}, in UTC", effect=PURE) for name, meaning,
    doc in _FIELDS),
    Operation("time", _micros_rule(t.TIME), plain(_same), "the time so many microseconds after 1970",
        native="inline", effect=PURE),
    Operation("duration", _micros_rule(t.DURATION), plain(_same), "so many microseconds", native="inline",
        effect=PURE),
    Operation(
        "micros", lambda k, w: fixed((t.TIME,), t.I64)(k, w) or fixed((t.DURATION,), t.I64)(k, w),
        plain(_same),
        "the microseconds of a time (since 1970) or a duration", native="inline", effect=PURE,
    ),
    Operation(
        "civil", lambda k, w: fixed((t.I64,) * 3, t.TIME)(k, w) or fixed((t.I64,) * 6, t.TIME)(k, w),
        plain(_civil),
        "the time of year, month, day (hour, minute, second) in UTC; traps if there is none",
        ("conversion-range",), effect=PURE,
    ),
)  # fmt: skip
