"""Times as Sawzall writes them, `Mon Oct 16 09:30:00 PDT 2006`, and the clocks of zones."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

ZONES: Mapping[str, int] = MappingProxyType({
    "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "UT": 0, "Z": 0,
})  # fmt: skip
"""Hours ahead of UTC of the zones with a short name, in texts of times."""

REGIONS: Mapping[str, str] = MappingProxyType({
    "EST": "America/New_York", "EDT": "America/New_York", "CST": "America/Chicago", "CDT": "America/Chicago",
    "MST": "America/Denver", "MDT": "America/Denver", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
})  # fmt: skip
"""The regions that short names mean where time is told by them, summer time or not."""

FIRST, LAST = 1900, 2100
"""The years whose changes of clocks are known; before and behind them clocks stay as they are."""


@frozen
class Zone:
    """The clocks of a zone.

    From each of `starts` on (seconds after 1970) they are `offsets` seconds ahead of UTC, and the zone is called by `names`.
    There is an offset and a name more than starts, for the time before.
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    names: tuple[str, ...]


OWN_ZONE = "(own)"
"""Stands for the name of the zone of the program where an operation names none; no zone is called so."""


def default_zone() -> str:
    """The zone of a program that says none: that of the environment; UTC if it names none."""
    name = os.environ.get("TZ", "").removeprefix(":")
    return name if name and zone(name) is not None else "UTC"


_OFFSET = re.compile("([-+])([0-9]{1,2})([0-9]{2})")
"""A zone that is so far ahead of UTC, `+0530`, or behind it, `-500`."""


@lru_cache(maxsize=64)
def zone(name: str) -> Zone | None:
    """The clocks of a zone of a name; None if there is none."""
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    if (ahead := _OFFSET.fullmatch(name)) is not None:
        sign, hours, minutes = ahead.groups()
        seconds = (int(hours) * 60 + int(minutes)) * (-60 if sign == "-" else 60)
        return Zone((), (seconds,), (name,)) if abs(seconds) < 86_400 and int(minutes) < 60 else None
    try:
        info = ZoneInfo(REGIONS.get(name, name))
    except (ValueError, KeyError, OSError):  # no zone
        return None

    def clock(seconds: int) -> tuple[int, str]:
        local = datetime.fromtimestamp(seconds, info)
        return (local.utcoffset() or timedelta()) // timedelta(seconds=1), local.tzname() or name

    begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (FIRST, LAST))
    last = clock(begin)
    starts: list[int] = []
    clocks = [last]
    step = 6 * 86_400  # clocks have been set back after a week
    for before in range(begin, end, step):
        low, high = before, before + step
        while (found := clock(high)) != last:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if clock(middle) == last else (low, middle)
            last = clock(high)
            starts.append(high)
            clocks.append(last)
            low, high = high, before + step
        assert found == last  # noqa: S101 - the changes of these days are known
    return Zone(tuple(starts), tuple(ahead for ahead, _ in clocks), tuple(called for _, called in clocks))


def microseconds(text: str, own: str) -> int | None:
    """The time in a text, in microseconds after 1970, with a zone of any name or none, which is `own` then; None if it is none.

    The text is as `sawzall_moment` of `functions.river` takes it, but for ISO 8601.
    """
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    words = text.split()
    if words and words[0].split(",")[0].lower() in WEEKDAYS:
        del words[0]
    if len(words) not in (4, 5):
        return None
    if words[0].lower() in MONTHS:
        month, day, clock, *named, year = words
    else:
        day, month, year, clock, *named = words
    numbers = re.fullmatch(_CLOCK, clock)
    if month.lower() not in MONTHS or numbers is None or not re.fullmatch(_DATE, f"{day} {year}"):
        return None
    hour, minute, second, fraction = (found or "0" for found in numbers.groups())
    called = named[0] if named else own
    try:
        local = datetime(  # microseconds: further digits of the fraction are cut off
            int(year) + (1900 if len(year) == 2 else 0), MONTHS.index(month.lower()) + 1, int(day),
            int(hour), int(minute), int(second), int(fraction[:6].ljust(6, "0")), tzinfo=UTC,
        )  # fmt: skip
        ahead = ZONES.get(called.upper()) if named else None
        if re.fullmatch("[-+][0-9]{4}", called):
            ahead = int(called[:3]) + int(called[0] + called[3:]) / 60
        region = called if called == "UTC" else REGIONS.get(called, called)
        at = local.replace(tzinfo=ZoneInfo(region)) if ahead is None else local - timedelta(hours=ahead)
    except (ValueError, KeyError, OSError, OverflowError):  # no time, no zone
        return None
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(r"([0-9]{1,2})(?::([0-9]{1,2}))?(?::([0-9]{1,2})(?:[.]([0-9]+))?)?")
_DATE = re.compile(r"[0-9]{1,2} (?:[0-9]{2}|[0-9]{4})")
