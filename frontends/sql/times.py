"""Functions of times: parts and pieces of them, what lies between two, clocks of zones, times as texts and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import days, months
from frontends.sql.dates import DATE
from frontends.sql.functions import FIELDS, TRUNCATED, UNITS
from frontends.sql.intervals import interval
from frontends.sql.time_formats import formatted, shape
from frontends.sql.values import Found, spelled, strip
from river.classes import evolve
from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions

MONDAY = 946_857_600_000_000
"""The Monday 2000-01-03, from which pieces of time are counted."""


def called(over: RowExpressions, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found | None:
    """What a call means if it is a form of times that is not in the table of functions, else None."""
    match name, args:
        case "to_date", (value, s.String(pattern)):
            return days.as_date(over, _time_read(over, name, over.find(value), pattern, expr))
        case "extract" | "date_part" | "date_trunc", (s.String(part), value):
            return _part_of(over, name, part.lower(), over.find(value), expr)
        case "to_char" | "date_format" | "strftime", (value, s.String(pattern)):
            return _time_text(over, name, over.find(value), pattern, expr)
        case "to_timestamp" | "strptime" | "parse_timestamp" | "stringtotimestamp", (
            value,
            s.String(pattern),
        ):
            return _time_read(over, name, over.find(value), pattern, expr)
        case "date_diff" | "datediff" | "timestampdiff", (unit, begin, end):
            return _difference(over, name, _unit(unit), (begin, end), expr)
        case "date_add" | "timestampadd" | "dateadd", _:
            return _added(over, name, args, expr)
        case "months", (s.Int(), *_):
            message = "months are of different lengths, so they are only added to a time, and taken away"
            help_line = "write `t + interval '1' month`, or count days"
            raise over.report.error("sql-month", message, expr.span, help_line)
        case "time_bucket" | "date_bin", (length, at, *origin):
            if isinstance(length, s.String) and (found := interval(length.value)) and not found[0]:
                length = s.Call("duration", (s.Int(found[1]),), span=length.span)
            return _bucket(over, name, length, over.find(at), tuple(origin), expr)
        case "at_zone", (value, s.String(zone)):
            return _in_zone(over, over.find(value), zone, expr)
        case _:
            return None


def _added(over: RowExpressions, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found | None:
    """`date_add('day', 3, t)` and its like: a time so many units later; None if the operands are others."""
    match args:
        case (unit, count, value) if _unit(unit) in ("month", "year"):
            size = s.Int(12 if _unit(unit) == "year" else 1)
            return months.later(over, over.find(value), over.find(s.Binary("*", count, size)), expr)
        case (unit, count, value) if _unit(unit) is not None:
            length = s.Call("duration", (s.Int(_micros(over, unit, expr)),))
            return over.find(s.Binary("+", value, s.Binary("*", length, count), span=expr.span))
        case (value, length) if name == "date_add":
            return over.find(s.Binary("+", value, length, span=expr.span))
        case _:
            return None


def _part_of(over: RowExpressions, name: str, part: str, value: Found, expr: s.Call) -> Found:
    """`extract(part from t)`, `date_trunc('part', t)`."""
    table = TRUNCATED if name == "date_trunc" else FIELDS
    made = table.get(part) or table.get(part + "s") or table.get(part.removesuffix("s"))
    if made is None:
        near = closest(part, table) or f"there are {', '.join(f'`{one}`' for one in table)}"
        raise over.report.error("sql-time-part", f"a time has no part `{part}`", expr.span, near)
    if strip(value.type) == DATE:
        found = _part_of(over, name, part, days.as_time(over, value), expr)
        below = part.removesuffix("s") in ("millisecond", "second", "minute", "hour")
        return found if name != "date_trunc" or below else days.as_date(over, found)
    if part == "epoch" and strip(value.type) == t.DURATION:
        return over.lifted((value,), lambda parts: evolve(FIELDS["epoch"](parts[0]), span=expr.span), expr)
    if strip(value.type) != t.TIME:
        message = f"`{name}` is of a `time`, this is `{spelled(value.type)}`"
        help_line = "seconds since 1970 become a time by `to_timestamp(x)`"
        raise over.report.error("sql-function-operands", message, expr.span, help_line)
    return over.lifted((value,), lambda parts: evolve(made(parts[0]), span=expr.span), expr)


def _bucket(
    over: RowExpressions, name: str, length: s.Expr, at: Found, origin: tuple[s.Argument, ...], expr: s.Call
) -> Found:
    """The begin of the piece of time that a time lies in; pieces are counted from a Monday, or from `origin`."""
    first: s.Expr = s.Int(MONDAY)
    match length, origin:
        case s.Call("duration", (s.Int(size),)), () if size > 0:
            pass
        case s.Call("duration", (s.Int(size),)), (s.Call("time", (s.Int(micros),)),) if size > 0:
            first = s.Int(micros % size)
        case _:
            message = f"`{name}` is of a length of time that is written out, without months, and a time"
            help_line = f"write `{name}(interval '5' minute, ts)`; months are `date_trunc('month', ts)`"
            raise over.report.error("sql-function-operands", message, expr.span, help_line)
    at = days.as_time(over, at)
    if strip(at.type) != t.TIME:
        message = f"`{name}` is of a `time`, this is `{spelled(at.type)}`"
        raise over.report.error("sql-function-operands", message, expr.span)
    return over.lifted(
        (at,), lambda parts: s.Call("cql.truncated", (parts[0], s.Int(size), first), span=expr.span), expr
    )


def _difference(
    over: RowExpressions, name: str, unit: str | None, sides: tuple[s.Argument, ...], expr: s.Call
) -> Found:
    """`date_diff` counts the borders of units between two times, `timestampdiff` whole units."""
    begin, end = (days.as_time(over, each) for each in over.operands(cast("tuple[s.Expr, ...]", sides)))
    if {strip(begin.type), strip(end.type)} != {t.TIME}:
        message = f"`{name}` is of a unit and two times"
        raise over.report.error("sql-function-operands", message, expr.span, f"write `{name}('day', a, b)`")
    if unit in ("month", "year") and name != "timestampdiff":
        of = "cql.months" if unit == "month" else "year"
        return over.lifted(
            (begin, end), lambda parts: s.Binary("-", s.Call(of, parts[1:]), s.Call(of, parts[:1])), expr
        )
    size = _micros(over, expr.args[0], expr)

    def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
        if name == "timestampdiff":
            length = s.Call("micros", (s.Binary("-", parts[1], parts[0]),))
            return s.Call("div.trunc", (length, s.Int(size)))
        monday = s.Int(4 * UNITS["day"] if unit == "week" else 0)
        return s.Call("cql.borders", (s.Int(size), monday, *parts))

    return over.lifted((begin, end), apply, expr)


def _micros(over: RowExpressions, unit: s.Argument, expr: s.Call) -> int:
    """A unit of time in microseconds."""
    named = _unit(unit)
    if named is None or named not in UNITS:
        known = f"units are {', '.join(f'`{one}`' for one in UNITS)}"
        raise over.report.error("sql-time-part", f"no length of time is called `{named}`", expr.span, known)
    return UNITS[named]


def _time_text(over: RowExpressions, name: str, value: Found, pattern: str, expr: s.Call) -> Found:
    """`to_char(t, 'YYYY-MM-DD')`, and the same in other signs."""
    value = days.as_time(over, value)
    if strip(value.type) != t.TIME:
        message = f"`{name}` is of a `time`, this is `{spelled(value.type)}`"
        raise over.report.error("sql-function-operands", message, expr.span)
    odd = formatted(name, value.expr, pattern)
    if isinstance(odd, str):
        message = f"`{odd}` in the pattern of `{name}` stands for nothing"
        raise over.report.error("sql-time-format", message, expr.span, "docs/cql.md has the signs")
    return over.lifted((value,), lambda parts: cast("s.Expr", formatted(name, parts[0], pattern)), expr)


def _time_read(over: RowExpressions, name: str, value: Found, pattern: str, expr: s.Call) -> Found:
    """`to_timestamp(text, 'dd/MM/yyyy HH:mm')`: the time that a text of this shape says."""
    if strip(value.type) != t.STRING:
        message = f"`{name}` with a pattern is of a text, this is `{spelled(value.type)}`"
        raise over.report.error("sql-function-operands", message, expr.span)
    found, odd = shape(pattern)
    if odd is not None:
        message = f"`{odd}` in the pattern of `{name}` stands for nothing that has always as many digits"
        raise over.report.error(
            "sql-time-format", message, expr.span, "write `'yyyy-MM-dd HH:mm:ss'`, or `'%d/%b/%Y'`"
        )
    return over.lifted((value,), lambda parts: s.Call("cql.time_like", (*parts, s.String(found))), expr)


def _in_zone(over: RowExpressions, at: Found, zone: str, expr: s.Call) -> Found:
    """What the clocks of a zone show at a time."""
    from frontends.sql.zones import clocks  # few queries ask for a zone

    at = days.as_time(over, at)
    if strip(at.type) != t.TIME:
        message = f"clocks show a `time`, this is `{spelled(at.type)}`"
        raise over.report.error("sql-zone", message, expr.span)
    found = clocks(zone)
    if found is None:
        message = f"there is no time zone `{zone}`"
        raise over.report.error("sql-zone", message, expr.span, "such as `Europe/Berlin`, or `+02:00`")
    since, offsets = (s.ListValue(tuple(map(s.signed, part))) for part in found)
    return over.lifted(
        (at,), lambda parts: s.Call("cql.in_zone", (*parts, since, offsets), span=expr.span), expr
    )


def _unit(given: s.Argument) -> str | None:
    """A unit of time as it is named: `day`, `days` or `'day'`."""
    match given:
        case s.Name(name) | s.String(name):
            return (
                name.lower().removesuffix("s")
                if name.lower().removesuffix("s") in (*UNITS, "month", "year")
                else None
            )
        case _:
            return None
