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
})  # fmt: skip
"""Hours ahead of UTC of the zones with a short name, in texts of times."""

REGIONS: Mapping[str, str] = MappingProxyType({
    "EST": "America/New_York", "EDT": "America/New_York", "CST": "America/Chicago", "CDT": "America/Chicago",
    "MST": "America/Denver", "MDT": "America/Denver", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
})  # fmt: skip
"""The regions that short names mean where time is told by them, summer time or not."""

FIRST, LAST = 1970, 2100
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


def default_zone() -> str:
    """The zone of the environment; UTC if it names none."""
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
        local = datetime.fromtimestamp(seconds, UTC).astimezone(info)
        ahead = local.utcoffset() or timedelta()
        return round(ahead.total_seconds()), local.tzname() or name

    last = clock(0)
    starts: list[int] = []
    clocks = [last]
    end = int(datetime(LAST, 1, 1, tzinfo=UTC).timestamp())
    step = 28 * 86_400
    for before in range(0, end, step):
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


def microseconds(text: str) -> int | None:
    """The time in a text, in microseconds after 1970, with a zone of any name or none, the default one; None if it is none."""
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    words = text.split()
    if len(words) == 5:
        named = default_zone()
        words.insert(4, named if named == "UTC" else REGIONS.get(named, named))
    if len(words) != 6:
        return None
    *rest, zone, year = words
    clock, _, fraction = rest[-1].partition(".")
    fraction = fraction or "0"  # of a second
    shown = " ".join((*rest[:-1], clock, year, fraction))
    try:
        local = datetime.strptime(shown, "%a %b %d %H:%M:%S %Y %f").replace(tzinfo=UTC)
        ahead = ZONES.get(zone)
        at = local.replace(tzinfo=ZoneInfo(zone)) if ahead is None else local - timedelta(hours=ahead)
    except (ValueError, KeyError, OSError):  # no time, no zone
        return None
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
