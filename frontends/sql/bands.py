"""Comparisons of two sources by order: which rows of the one lie near enough to a row of the other.

`u.ts between w.ts - 5 and w.ts` says how far the values of two columns may lie apart, `u.a < w.b` from where on they may lie.
So rows that are kept in the order of such a value need not all be looked at. The comparisons stay conditions: what is found here
leaves out only pairs for which they do not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import typed as r
from frontends.sql.operations import total
from frontends.sql.values import Found, strip
from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FROM = {
    "<": "low",
    "<=": "low",
    ">": "high",
    ">=": "high",
    "lt3": "low",
    "le3": "low",
    "gt3": "high",
    "ge3": "high",
}
"""Which bound of the right side a comparison is."""
_TURNED = {"low": "high", "high": "low"}


@frozen
class Near:
    """The values of both sides, over the sources' rows, and the bounds of the right one, counted from the left one."""

    left: Found
    right: Found
    low: int | None
    high: int | None

    @property
    def present(self) -> tuple[list[s.Expr], list[s.Expr]]:
        """The conditions on each side without which no comparison holds: it is there, and a number."""
        return _real(self.left), _real(self.right)

    def band(self, left: Callable[[s.Expr], s.Expr], right: Callable[[s.Expr], s.Expr]) -> r.Band:
        """The same over the rows `l` and `r` of a join; `left` and `right` say how sources are read there."""
        a, b = _value(self.left), _value(self.right)
        kind = t.I64 if strip(self.left.type) == t.TIME else strip(self.left.type)
        return r.Band(kind, s.Lambda(("l",), left(a)), s.Lambda(("r",), right(b)), self.low, self.high)


def bands(
    conditions: Iterable[s.Expr], is_left: Callable[[s.Expr], bool], is_right: Callable[[s.Expr], bool],
    typed: Callable[[s.Expr], Found],
) -> Near | None:  # fmt: skip
    """The nearness that some of these conditions ask for: the first that has two bounds, else the first; None if there is none.

    `is_left` and `is_right`: of which side an expression is.
    """
    found: dict[tuple[s.Expr, s.Expr], Near] = {}
    for condition in conditions:
        match condition:
            case s.Binary(op, a, b) | s.Call("is_true", (s.Call(op, (s.Node() as a, s.Node() as b)),)) if (
                op in _FROM
            ):
                bound = _FROM[op]
            case _:
                continue
        if isinstance(a, s.Lambda) or isinstance(b, s.Lambda):
            continue
        if is_right(a) and is_left(b):
            a, b, bound = b, a, _TURNED[bound]
        if not (is_left(a) and is_right(b)):
            continue
        (left, more), (right, less) = _apart(a), _apart(b)
        near = found.get((left, right))
        if near is None:
            sides = typed(left), typed(right)
            if not all(map(_usable, sides)) or strip(sides[0].type) != strip(sides[1].type):
                continue
            near = Near(*sides, None, None)
        distance = more - less
        if bound == "low":
            near = Near(
                near.left, near.right, distance if near.low is None else max(near.low, distance), near.high
            )
        else:
            near = Near(
                near.left, near.right, near.low, distance if near.high is None else min(near.high, distance)
            )
        found[left, right] = near
    both = (near for near in found.values() if near.low is not None and near.high is not None)
    return next(both, next(iter(found.values()), None))


def _apart(side: s.Expr) -> tuple[s.Expr, int]:
    """A value, and what is added to it that is written out: whole numbers, or lengths of time in microseconds."""
    match side:
        case s.Binary("+" | "-" as sign, value, s.Int(number) | s.Call("duration", (s.Int(number),))):
            inner, more = _apart(value)
            return inner, more + (number if sign == "+" else -number)
        case s.Binary("+", s.Int() | s.Call("duration", (s.Int(),)) as more, value):
            return _apart(s.Binary("+", value, more))
        case s.IfExpr(s.IsNone(value), s.NoneValue(), s.Binary(_, s.Force(_), _) as sum_):
            inner, more = _apart(sum_)
            return (value, more) if inner == s.Force(value) else (side, 0)
        case _:
            return side, 0


def _usable(side: Found) -> bool:
    kind = strip(side.type)
    return total(side.expr) and (kind in (t.I64, t.TIME, t.F64, t.STRING) or isinstance(kind, t.Decimal))


def _there(side: Found) -> s.Expr:
    return s.Force(side.expr, span=side.expr.span) if isinstance(side.type, t.Optional) else side.expr


def _value(side: Found) -> s.Expr:
    value = _there(side)
    return s.Call("micros", (value,)) if strip(side.type) == t.TIME else value


def _real(side: Found) -> list[s.Expr]:
    found: list[s.Expr] = []
    if isinstance(side.type, t.Optional):
        found.append(s.Unary("not", s.IsNone(side.expr, span=side.expr.span), span=side.expr.span))
    if strip(side.type) == t.F64:
        value = _there(side)
        found.append(s.Binary("==", value, value, span=side.expr.span))
    return found
