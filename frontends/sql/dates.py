"""Dates: a type of its own, which River IL does not have.

A date is a record of one number, so it is never taken for a time, has the order of days, and is a key like any other value. What
reads and writes data has it as a time and as a text (`frontends.cql.lower`).
"""

from __future__ import annotations

from typing import Final

from river.lang import syntax as s
from river.lang import types as t

FIELD: Final = "days since 1970"
DATE: Final = t.Record(((FIELD, t.I64),))
WRITTEN: Final = s.RecordType((s.FieldType(FIELD, s.TypeName("i64")),))
"""The type as a text of River IL has it."""
DAY: Final = 86_400_000_000
"""Microseconds of a day."""


def made(days: s.Expr) -> s.Expr:
    """The date so many days after 1970-01-01."""
    return s.RecordValue((s.FieldValue(FIELD, days),), span=days.span)


def days(date: s.Expr) -> s.Expr:
    """How many days after 1970-01-01 a date is."""
    match date:
        case s.RecordValue((s.FieldValue(name, value),)) if name == FIELD:
            return value
        case _:
            return s.Member(date, FIELD, span=date.span)


def of_time(time: s.Expr) -> s.Expr:
    """The day of a time."""
    match time:
        case s.Call("time", (s.Int(micros),)):
            return made(s.Int(micros // DAY, span=time.span))
        case _:
            return made(s.Call("div.floor", (s.Call("micros", (time,)), s.Int(DAY)), span=time.span))


def time_of(date: s.Expr) -> s.Expr:
    """The time at which a day begins."""
    match days(date):
        case s.Int(number):
            return s.Call("time", (s.Int(number * DAY),), span=date.span)
        case number:
            return s.Call("time", (s.Binary("*", number, s.Int(DAY)),), span=date.span)


def text_of(date: s.Expr) -> s.Expr:
    """A date as `2026-01-31`."""
    return s.Call("cql.date_text", (days(date),), span=date.span)


def is_whole(length: s.Expr) -> bool:
    """Whether a length of time is written out, and of whole days."""
    return isinstance(length, s.Call) and length.function == "duration" and _whole(length.args[0])


def in_days(length: s.Expr) -> s.Expr:
    """A length of whole days that is written out, as their number."""
    match length:
        case s.Call("duration", (s.Int(micros),)):
            return s.Int(micros // DAY, span=length.span)
        case _:
            raise AssertionError(length)


def _whole(micros: s.Argument) -> bool:
    return isinstance(micros, s.Int) and micros.value % DAY == 0


def read(type_: t.Type) -> t.Type:
    """The type of a column as data have it: dates are times."""
    match type_:
        case t.Optional(inner):
            return t.Optional(read(inner))
        case _:
            return t.TIME if type_ == DATE else type_


def told(type_: t.Type) -> t.Type:
    """The type of a column as results have it: dates are texts."""
    match type_:
        case t.Optional(inner):
            return t.Optional(told(inner))
        case t.List(item):
            return t.List(told(item))
        case _:
            return t.STRING if type_ == DATE else type_


def from_data(value: s.Expr, type_: t.Type) -> s.Expr:
    """A value of `read(type_)` as one of `type_`."""
    match type_:
        case t.Optional(inner) if read(inner) != inner:
            return s.IfExpr(s.IsNone(value), s.NoneValue(), from_data(s.Force(value), inner))
        case _:
            return of_time(value) if type_ == DATE else value


def to_data(value: s.Expr, type_: t.Type) -> s.Expr:
    """A value of `type_` as one of `told(type_)`."""
    match type_:
        case t.Optional(inner) if told(inner) != inner:
            return s.IfExpr(s.IsNone(value), s.NoneValue(), to_data(s.Force(value), inner))
        case t.List(item) if told(item) != item:
            return s.Comprehension(to_data(s.Name("each"), item), ("each",), value, None)
        case _:
            return text_of(value) if type_ == DATE else value
