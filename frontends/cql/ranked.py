"""`lag`, `first_value`, `ntile` and their like: made of the numbers of rows, and of aggregates over other rows.

Numbers, and aggregates of one row, are what `unnest` makes queries of; nothing behind the parser knows these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import syntax as q
from river.classes import evolve
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.source import Span

Frame = tuple[int | None, int | None] | s.Expr | None


def numbered(
    call: s.Call, keys: tuple[s.Expr, ...], order: tuple[q.OrderKey, ...], frame: Frame, span: Span
) -> s.Expr | None:
    """What a function of rows in an order is made of; None if it is no such function, or not of these operands and frame."""
    if not order:
        return None
    made: s.Expr | None = None
    rows = _Rows(keys, order, span)
    match call.function.lower(), call.args:
        case "lag" | "lead" as name, (value, *more) if frame is None and len(more) <= 2:
            made = rows.near(cast("s.Expr", value), name, cast("tuple[s.Expr, ...]", tuple(more)))
        case "first_value", (value,):
            made = rows.first(cast("s.Expr", value), frame)
        case "last_value", (value,):
            made = rows.last(cast("s.Expr", value), frame)
        case "nth_value", (value, s.Int(place)) if place > 0:
            made = rows.nth(cast("s.Expr", value), place, frame)
        case "ntile", (s.Int(parts),) if parts > 0 and frame is None:
            made = rows.tile(parts)
        case "percent_rank", () if frame is None:
            made = rows.percent()
        case "cume_dist", () if frame is None:
            made = rows.part(rows.count(), rows.all())
        case _:
            pass
    return made


class _Rows:
    """The rows of a part in an order, as what expressions ask of them."""

    def __init__(self, keys: tuple[s.Expr, ...], order: tuple[q.OrderKey, ...], span: Span) -> None:
        self.keys = keys
        self.order = order
        self.span = span

    def over(self, call: s.Expr, **more: object) -> s.Expr:
        """An aggregate of some of them."""
        found = q.Over("aggregate", self.keys, self.order, call, span=self.span)
        return cast("s.Expr", evolve(found, **more))

    def binary(self, op: str, left: s.Expr, right: s.Expr) -> s.Expr:
        """An operation on two values."""
        return s.Binary(op, left, right, span=self.span)

    def one(self, value: s.Expr, away: int) -> s.Expr:
        """A value of the row so many places behind."""
        return self.over(self.least(value), frame=(away, away))

    def least(self, value: s.Expr) -> s.Expr:
        """A value of a single row."""
        return s.Call("min", (value,), span=self.span)

    def number(self, function: str = "number") -> s.Expr:
        """The number of a row."""
        return cast("s.Expr", q.Over(function, self.keys, self.order, span=self.span))

    def count(self) -> s.Expr:
        """How many rows there are up to a row, and those of equal order."""
        return self.over(s.Call("count", (), span=self.span))

    def all(self) -> s.Expr:
        """How many rows there are."""
        return self.over(s.Call("count", (), span=self.span), order=())

    def near(self, value: s.Expr, name: str, more: tuple[s.Expr, ...]) -> s.Expr | None:
        """`lag(x, 2, other)`."""
        away = more[0] if more else s.Int(1)
        if not isinstance(away, s.Int):
            return None
        place = -away.value if name == "lag" else away.value
        found = self.one(value, place)
        if len(more) < 2:
            return found
        there = self.over(s.Call("count", (), span=self.span), frame=(place, place))
        return s.IfExpr(self.binary("==", there, s.Int(0)), more[1], found, span=self.span)

    def first(self, value: s.Expr, frame: Frame) -> s.Expr | None:
        """A value of the first row of the frame."""
        first = self.over(self.least(value), place=1)
        match frame:
            case None | (None, _):
                return first
            case (int(low), _) if low <= 0:
                inside = self.binary(">", self.number(), s.Int(-low))
                return s.IfExpr(inside, self.one(value, low), first, span=self.span)
            case _:
                return None

    def last(self, value: s.Expr, frame: Frame) -> s.Expr | None:
        """A value of the last row of the frame; of rows of equal order the greatest, for which the order says nothing."""
        back = tuple(
            evolve(each, descending=not each.descending, first=None if each.first is None else not each.first)
            for each in self.order
        )
        last = self.over(self.least(value), order=back, place=1)
        match frame:
            case None:
                alike = (*self.keys, *(each.value for each in self.order))
                return self.over(s.Call("max", (value,), span=self.span), keys=alike, order=())
            case (_, None):
                return last
            case (_, int(high)) if high >= 0:
                rest = self.binary("-", self.all(), self.number())
                inside = self.binary(">=", rest, s.Int(high))
                return s.IfExpr(inside, self.one(value, high), last, span=self.span)
            case _:
                return None

    def nth(self, value: s.Expr, place: int, frame: Frame) -> s.Expr | None:
        """A value of the row of a number, if it is in the frame."""
        found = self.over(self.least(value), place=place)
        match frame:
            case (None, None):
                return found
            case None | (None, 0):
                seen = self.count() if frame is None else self.number()
                inside = self.binary(">=", seen, s.Int(place))
                return s.IfExpr(inside, found, s.NoneValue(span=self.span), span=self.span)
            case _:
                return None

    def tile(self, parts: int) -> s.Expr:
        """`ntile(n)`: rows in n parts, as equal as can be, the larger ones first."""
        place = self.binary("-", self.number(), s.Int(1))
        size = self.binary("/", self.all(), s.Int(parts))
        larger = self.binary("%", self.all(), s.Int(parts))
        border = self.binary("*", larger, self.binary("+", size, s.Int(1)))
        before = self.binary("/", place, self.binary("+", size, s.Int(1)))
        behind = self.binary("+", larger, self.binary("/", self.binary("-", place, border), size))
        part = s.IfExpr(self.binary("<", place, border), before, behind, span=self.span)
        return self.binary("+", part, s.Int(1))

    def percent(self) -> s.Expr:
        """`percent_rank()`: which part of the other rows come before."""
        others = self.binary("-", self.all(), s.Int(1))
        before = self.binary("-", self.number("rank"), s.Int(1))
        found = self.part(before, others)
        return s.IfExpr(self.binary("==", others, s.Int(0)), s.Float(0.0), found, span=self.span)

    def part(self, some: s.Expr, all_of_them: s.Expr) -> s.Expr:
        """A quotient of counts."""
        return self.binary("/", self.binary("*", some, s.Float(1.0)), all_of_them)
