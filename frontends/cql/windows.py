"""The arrow from windows as they are written to windows of a stream: lengths in ticks, columns that exist."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from frontends.cql import syntax as c
from frontends.cql import typed as ty
from frontends.sql.intervals import LENGTHS, MONTHS
from river.classes import evolve, frozen
from river.diagnostics import closest
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from river.report import Report

SECOND = LENGTHS["second"]
LONGEST = 1 << 53


@frozen
class Clock:
    """How lengths of time are counted: `tau` is the type of time stamps, one of them is `tick` microseconds.

    `half_open`: a range window of length n begins behind t - n.
    """

    tau: t.Primitive
    tick: Fraction
    half_open: bool

    def ticks(self, length: c.Length, report: Report) -> int:
        """A length in the unit of the stamps. Raises: Failed (cql-unit, cql-window-long)."""
        unit, span = length.unit, length.span
        if unit is not None and unit.lower() not in LENGTHS:
            if unit.lower() in MONTHS:
                message = f"windows are of lengths of time, a {unit.lower().removesuffix('s')} has none"
                raise report.error("cql-unit", message, span, "count days")
            known = "units are `seconds`, `minutes`, `hours`, `days`, and below `milliseconds`"
            raise report.error("cql-unit", f"unknown unit `{unit}`", span, closest(unit, LENGTHS) or known)
        found = length.number * (SECOND if unit is None else LENGTHS[unit.lower()]) / self.tick
        if found.denominator != 1:
            shown = f"{float(length.number):g} {unit or 'seconds'}"
            message = f"{shown} are no whole number of ticks, which the time stamps count"
            help_line = "time stamps of type `time` count microseconds"
            if self.tau == t.I64:
                help_line = "say what a time stamp counts: `tick 1 millisecond;`"
            raise report.error("cql-unit", message, span, help_line)
        if found >= LONGEST:
            raise report.error("cql-window-long", "no window can be that long", span, "write `[unbounded]`")
        return int(found)

    def recent(self, length: c.Length, report: Report) -> int:
        """A length of the past as one with both ends included. Raises: Failed, as `ticks`; cql-window-empty."""
        found = self.ticks(length, report)
        if not self.half_open:
            return found
        if found == 0:
            message = "a half-open window of no length has no rows"
            raise report.error("cql-window-empty", message, length.span, "write `[now]`")
        return found - 1


def clock(program: c.Program, tau: t.Primitive, report: Report) -> Clock:
    """The clock of a program whose time stamps are of type `tau`. Codes: cql-tick, cql-unit."""
    second = Fraction(SECOND if tau == t.I64 else 1)
    length = program.tick
    if length is not None and tau != t.I64:
        message = "`tick` is of time stamps of type `int`: those of type `time` count microseconds"
        report.error("cql-tick", message, length.span)
    elif length is not None:
        with report.recover():
            one = Clock(tau, Fraction(1), half_open=False).ticks(length, report)
            if one == 0:
                raise report.error("cql-tick", "a tick is longer than nothing", length.span)
            second = Fraction(one)
    return Clock(tau, second, program.half_open)


def seen(window: c.Window, row: t.Record, stamp: str, clock: Clock, report: Report) -> ty.Window:
    """A window on a stream of such rows, whose time stamp is called `stamp`.

    Raises: Failed (codes cql-window-*, cql-unit, cql-partition, sql-unknown-column).
    """
    span = window.span
    match window:
        case c.Now(named):
            _same_stamp(named, stamp, report)
            return ty.Range(0, span=span)
        case c.Unbounded():
            return ty.Unbounded(span=span)
        case c.Range(length, slide, keys):
            step = 0 if slide is None else clock.ticks(slide, report)
            if slide is not None and step == 0:
                raise report.error("cql-window-step", "a window slides by more than 0", span)
            for key in keys:
                _key(key, row, report)
            own = evolve(clock, half_open=True) if window.open else clock
            return ty.Range(own.recent(length, report), step, span=span)
        case c.RowWindow(keys=keys):
            return _rows(window, tuple(_key(key, row, report) for key in keys), clock, report)
        case c.Session(gap, keys):
            own = tuple(_key(key, row, report) for key in keys)
            return ty.Expiring(own, 0, _positive(gap, clock, report), span=span)
        case c.WindowTable():
            return _table(window, row, stamp, clock, report)


def _rows(window: c.RowWindow, keys: tuple[str, ...], clock: Clock, report: Report) -> ty.Window:
    count, slide, span = window.count, window.slide, window.span
    if count == 0:
        raise report.error("cql-window-empty", "a window of no rows", span)
    if slide == 0:
        raise report.error("cql-window-step", "a window slides by more than 0", span)
    if max(count, slide or 0) >= LONGEST:
        raise report.error("cql-window-long", "no window can have so many rows", span, "write `[unbounded]`")
    if slide is not None:
        return ty.RowSteps(count, slide, span=span)
    if window.expiry is not None:
        return ty.Expiring(keys, count, clock.recent(window.expiry, report), span=span)
    if window.age is not None:
        return ty.Recent(keys, count, clock.recent(window.age, report), span=span)
    return ty.RowWindow(count, keys, span=span)


def _table(
    window: c.WindowTable, row: t.Record, stamp: str, clock: Clock, report: Report
) -> ty.Buckets | ty.Sessions:
    _same_stamp(window.stamp, stamp, report)
    for name in (ty.START, ty.END):
        if row.field(name) is not None:
            message = f"the stream has a column `{name}` already"
            help_line = "give that another name by `as` where it is selected"
            raise report.error("cql-window-column", message, window.span, help_line)
    lengths = [_positive(length, clock, report) for length in window.lengths]
    match window.function, lengths:
        case "hop", [step, size]:
            if step > size:
                message = "windows are shorter than the steps between them: some rows are in none"
                report.warn("cql-window-step", message, window.span, "the step comes first, then the size")
            return ty.Buckets(size, step, span=window.span)
        case "session", [gap]:
            keys = tuple(_key(key, row, report) for key in window.keys)
            return ty.Sessions(keys, gap, span=window.span)
        case _, [size]:
            return ty.Buckets(size, size, span=window.span)
        case _:
            raise AssertionError(window)


def _same_stamp(named: s.Name | None, stamp: str, report: Report) -> None:
    """Sees that the column which a text takes for the time stamp is that. Raises: Failed (cql-window-stamp)."""
    if named is not None and named.name != stamp:
        message = f"windows go by the time stamp of the stream, which is `{stamp}`"
        raise report.error("cql-window-stamp", message, named.span)


def _positive(length: c.Length, clock: Clock, report: Report) -> int:
    """A length of time above 0."""
    found = clock.ticks(length, report)
    if found <= 0:
        raise report.error("cql-window-empty", "a window of no length", length.span)
    return found


def _key(key: s.Expr, row: t.Record, report: Report) -> str:
    """A column by which a window is partitioned."""
    if not isinstance(key, s.Name):
        raise report.error("cql-partition", "windows are partitioned by columns", key.span)
    if row.field(key.name) is None:
        near = closest(key.name, [name for name, _ in row.fields])
        raise report.error("sql-unknown-column", f"unknown column `{key.name}`", key.span, near)
    return key.name


def closed(window: ty.Window) -> tuple[tuple[str, int], ...]:
    """The columns of a window's rows that tell when they come (`typed.Source.closed`)."""
    return ((ty.START, window.size), (ty.END, 0)) if isinstance(window, ty.Buckets) else ()


def shown(row: t.Record, window: ty.Window, tau: t.Primitive) -> t.Record:
    """The rows that are seen through a window."""
    if not isinstance(window, ty.Buckets | ty.Sessions):
        return row
    return t.Record((*row.fields, (ty.START, tau), (ty.END, tau)))
