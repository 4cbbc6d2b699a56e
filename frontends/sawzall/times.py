"""Times as Sawzall writes them: `Mon Oct 16 09:30:00 PDT 2006`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ZONES: Mapping[str, int] = MappingProxyType({
    "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
})  # fmt: skip
"""Hours ahead of UTC of the zones with a short name."""


def microseconds(text: str) -> int | None:
    """The time in a text, in microseconds after 1970, with a zone of any name; None if it is none."""
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    words = text.split()
    if len(words) != 6:
        return None
    *rest, zone, year = words
    try:
        local = datetime.strptime(" ".join((*rest, year)), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        ahead = ZONES.get(zone)
        at = local.replace(tzinfo=ZoneInfo(zone)) if ahead is None else local - timedelta(hours=ahead)
    except (ValueError, KeyError, OSError):  # no time, no zone
        return None
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
