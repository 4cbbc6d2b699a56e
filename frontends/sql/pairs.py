"""Equalities between the two sides of a join, which are its keys, and what each side has to be for them to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import decimals
from frontends.sql.columns import sources
from frontends.sql.values import Found, common, strip
from river.classes import evolve, frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions


@frozen
class Pair:
    """An equality between what is joined so far and the next source: both sides, over the sources' rows.

    `same`: none is equal to none. `number`: they are floats, whose `=` is that of IEEE, while keys that are the same are equal.
    """

    left: Found
    right: Found
    same: bool = False
    number: bool = False

    @property
    def present(self) -> tuple[list[s.Expr], list[s.Expr]]:
        """The conditions on each side without which it equals nothing: it is there, and a number."""
        left, right = (self.real(x) for x in (self.left, self.right))
        return left, right

    def real(self, side: Found) -> list[s.Expr]:
        """The conditions on one side."""
        value = _forced(side).expr
        found = [_present(side)] if _loose(side) and not self.same else []
        return [*found, s.Binary("==", value, value, span=value.span)] if self.number else found

    @property
    def key(self) -> tuple[Found, Found]:
        """Both sides as keys; adding 0 makes one zero of both."""
        if self.same:
            return self.left, self.right
        left, right = _forced(self.left), _forced(self.right)
        if not self.number:
            return left, right
        zero = s.Float(0.0)
        return Found(s.Binary("+", left.expr, zero), left.type), Found(
            s.Binary("+", right.expr, zero), right.type
        )


def equality(condition: s.Expr, done: set[int], index: int, over: RowExpressions) -> Pair | None:
    """The two sides of an equality between the joined sources and source `index`, or None.

    `is not distinct from` is one of values of the same type, which may both be none.
    """
    match condition:
        case s.Binary("==", a, b) | s.Call("is_true", (s.Call("eq3", (a, b)),)):
            same = False
        case s.Call("is_true", (s.IfExpr(unknown, s.NoneValue(), s.Binary("==", x, y)),)):  # of floats
            tests = [s.IsNone(each.value) for each in (x, y) if isinstance(each, s.Force)]
            if not tests or unknown != (tests[0] if len(tests) == 1 else s.Binary("or", *tests)):
                return None
            a, b = (each.value if isinstance(each, s.Force) else each for each in (x, y))
            same = False
        case s.Call("same", (a, b)):
            same = True
        case _:
            return None
    for left, right in ((a, b), (b, a)):
        if isinstance(left, s.Lambda) or isinstance(right, s.Lambda):
            continue
        if sources(left) and sources(left) <= done and sources(right) == {index}:
            pair = Pair(over.typed(left), over.typed(right), same)
            if strip(pair.left.type) != strip(pair.right.type):  # decimals of different types
                one, other = common(pair.left, pair.right)
                wide = strip(one.type)
                if same or not isinstance(wide, t.Decimal) or wide.precision == decimals.DIGITS:
                    return None
                pair = Pair(one, other)
            kind = strip(pair.left.type)
            if same:
                return pair if pair.left.type == pair.right.type and t.is_key(kind) else None
            if kind == t.F64 == strip(pair.right.type):
                return evolve(pair, number=True)
            return pair if t.is_key(kind) and not t.contains(kind, *t.FLOATS) else None
    return None


def _loose(found: Found) -> bool:
    return isinstance(found.type, t.Optional)


def _present(found: Found) -> s.Expr:
    """That a value is there: what is not equals nothing."""
    return s.Unary("not", s.IsNone(found.expr, span=found.expr.span), span=found.expr.span)


def _forced(found: Found) -> Found:
    """A value that is there."""
    return Found(s.Force(found.expr, span=found.expr.span), strip(found.type)) if _loose(found) else found
