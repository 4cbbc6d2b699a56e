"""Time zones as tables: from when on their clocks are how far ahead of UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache

_EPOCH, _FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 1900, 2100))
_STEP, _SECOND, _MICROSECOND = timedelta(days=6), timedelta(seconds=1), timedelta(microseconds=1)
_FIXED = re.compile(r"([-+])(\d\d):?(\d\d)")


@cache
def clocks(zone: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The instants at which the clocks of a zone are set, and how far ahead they are before the first and from each on.

    Instants are from 1900 to 2100, as the system's data of zones have them. Units: microseconds. None: there is no such zone.
    """
    fixed = _FIXED.fullmatch(zone)
    if fixed is not None:
        ahead = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return (), ((-ahead if fixed[1] == "-" else ahead) // _MICROSECOND,)
    from zoneinfo import ZoneInfo

    try:
        rules = ZoneInfo(zone)
    except (ValueError, KeyError, OSError):
        return None

    def ahead_at(seconds: int) -> int:
        there = datetime.fromtimestamp(seconds, rules)
        return (there.utcoffset() or timedelta()) // _MICROSECOND

    at, last, step = ((each - _EPOCH) // _SECOND for each in (_FIRST, _LAST, _EPOCH + _STEP))
    since: list[int] = []
    offsets = [ahead_at(at)]
    while at < last:
        low, high = at, at + step
        if ahead_at(high) != offsets[-1]:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if ahead_at(middle) == offsets[-1] else (low, middle)
            since.append(high * 1_000_000)
            offsets.append(ahead_at(high))
        at = high
    return tuple(since), tuple(offsets)
