"""Months, whose lengths differ: they are no length of time, and only move a time or a date.

In a text they are the call `months(n, length)`, written out or so many times such a one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import days, operators
from frontends.sql.dates import DATE
from frontends.sql.values import Found, spelled, strip
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


def moved(over: RowExpressions, at: Found, months: s.Expr, length: s.Expr | None, expr: s.Expr) -> Found:
    """A time or a date so many months later, and then so long after that."""
    found = later(over, at, over.find(months), expr)
    return found if length is None else operators.arithmetic(over, "+", found, over.find(length), expr)


def later(over: RowExpressions, at: Found, months: Found, expr: s.Expr) -> Found:
    """A time or a date so many months later; the last day of a month that has no such day."""
    if strip(at.type) == DATE:
        return days.as_date(over, later(over, days.as_time(over, at), months, expr))
    if strip(at.type) != t.TIME:
        message = f"months are added to a `time`, this is `{spelled(at.type)}`"
        raise over.report.error("sql-month", message, expr.span, "seconds become a time by `to_timestamp(x)`")
    return over.lifted((at, months), lambda parts: s.Call("cql.later", parts, span=expr.span), expr)


def calendar(length: s.Argument) -> tuple[s.Expr, s.Expr | None] | None:
    """A length that has months, written out or so many times such a one: the months, and what is added behind them."""
    match length:
        case s.Call("months", (s.Int() as months, *rest)):
            return months, cast("s.Expr | None", rest[0] if rest else None)
        case s.Binary("*", one, other) if (parts := calendar(one)) is not None:
            months, rest = parts
            return _scaled(months, other), None if rest is None else _scaled(rest, other)
        case s.Binary("*", one, other) if calendar(other) is not None:
            return calendar(evolve(length, left=other, right=one))
        case s.Unary("-", value) if calendar(value) is not None:
            return calendar(negative(value))
        case _:
            return None


def negative(length: s.Expr) -> s.Expr:
    """A length taken away."""
    return s.Binary("*", length, s.Int(-1), span=length.span)


def _scaled(length: s.Expr, by: s.Expr) -> s.Expr:
    """A number of months, or a length of time, so many times."""
    match length, by:
        case s.Int(a), s.Int(b):
            return s.Int(a * b, span=length.span)
        case s.Call("duration", (s.Int(a),)), s.Int(b):
            return evolve(length, args=(s.Int(a * b),))
        case _:
            return s.Binary("*", length, by, span=length.span)
