"""Dates and times beside one another: a date is the time at which its day begins, a written-out text what it is compared with.

What a date is made of is `dates`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import dates
from frontends.sql.dates import DATE
from frontends.sql.values import Found, strip
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations.times import parse_time

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


def as_time(over: RowExpressions, found: Found) -> Found:
    """The time at which a day begins; what is no date stays."""
    if strip(found.type) != DATE:
        return found
    return over.lifted((found,), lambda parts: dates.time_of(parts[0]), found.expr)


def as_days(over: RowExpressions, found: Found) -> Found:
    """A date as a number."""
    return over.lifted((found,), lambda parts: dates.days(parts[0]), found.expr)


def as_date(over: RowExpressions, found: Found) -> Found:
    """The day of a time."""
    return over.lifted((found,), lambda parts: dates.of_time(parts[0]), found.expr)


def in_time(over: RowExpressions, left: Found, right: Found) -> tuple[Found, Found]:
    """Two sides of a comparison, of which one may be a date, or a text that is written out, where the other is a time."""
    kinds = {strip(left.type), strip(right.type)}
    if kinds == {DATE, t.TIME}:
        return as_time(over, left), as_time(over, right)
    if kinds in ({DATE, t.STRING}, {t.TIME, t.STRING}):
        return _meant(over, left, right), _meant(over, right, left)
    return left, right


def _meant(over: RowExpressions, found: Found, other: Found) -> Found:
    """A text that is written out beside a time is a time, and beside a date a date."""
    if not isinstance(found.expr, s.String):
        return found
    micros = parse_time(found.expr.value)
    if micros is None:
        message = f"`{found.expr.value}` is no time"
        help_line = "write it as in `'2026-01-31'`, or `'2026-01-31 12:00:00'`"
        raise over.report.error("sql-cast", message, found.expr.span, help_line)
    time = s.Call("time", (s.Int(micros),), span=found.expr.span)
    if strip(other.type) == DATE and micros % dates.DAY == 0:
        return Found(dates.of_time(time), DATE)
    return Found(time, t.TIME)
