"""Which values whole numbers have for sure: of literals, counters of loops, what is computed of them, and tables of constants.

So it is known that an index lies in its array, and that a sum does not leave its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

from river.classes import define, field
from river.lang import typed
from river.lang import types as t
from river.lang.rates import bounds
from river.lang.trees import children, effect, recursive

Ranges = Mapping[int, tuple[int, int]]
"""The least and greatest value of names that do not change, by slot."""


def proven(op: typed.Operator) -> frozenset[int]:
    """The sites of an operator at which indices lie in their arrays, sums do not leave their types, or calls come to an end."""
    found = _Sites(op, recursive(op.fns))
    handlers = (*op.items, *op.phases, op.rated, op.first, op.merge, op.mark)
    bodies = (*op.consts, *op.fns, *(handler for handler in handlers if handler is not None))
    for each in bodies:
        found.walk(each, {})
    return frozenset(found.good - found.bad)


@define
class _Sites:
    """The walk that finds them."""

    op: typed.Operator
    recursive: bool
    good: set[int] = field(factory=set[int])
    bad: set[int] = field(factory=set[int])

    def walk(self, node: typed.Node, known: Ranges) -> None:
        match node:
            case typed.Block(items):
                for item in items:
                    self.walk(item, known)
                    if isinstance(item, typed.Let) and (range_ := interval(item.value, known, self.op)):
                        known = {**known, item.slot: range_}
                return
            case typed.For(_, (slot,), _, typed.Counted() as range_, body) if (
                ends := bounds(range_)
            ) is not None:
                self.walk(body, {**known, slot: (ends[0], ends[1] - 1)})
                return
            case typed.At(_, value, index, site):
                (self.good if inside(value.type, index, known, self.op) else self.bad).add(site)
            case typed.Apply(_, _, _, int(site)):
                (self.good if within(node.type, interval(node, known, self.op)) else self.bad).add(site)
            case typed.Call(_, _, _, _, site):
                (self.bad if self.recursive else self.good).add(site)
            case _:
                pass
        for each in children(node):
            self.walk(each, known)


def inside(type_: t.Type, index: typed.Expr, known: Ranges, op: typed.Operator) -> bool:
    """Whether an index lies in an array for sure."""
    found = interval(index, known, op)
    return isinstance(type_, t.Array) and found is not None and found[0] >= 0 and found[1] < type_.size


_BITS: Final = {t.I32: 31, t.I64: 63}


def within(type_: t.Type, found: tuple[int, int] | None) -> bool:
    """Whether a whole number is one of its type for sure."""
    bits = _BITS.get(type_) if isinstance(type_, t.Primitive) else None
    return bits is not None and found is not None and found[0] >= -(1 << bits) and found[1] < 1 << bits


def interval(expr: typed.Expr, known: Ranges, op: typed.Operator) -> tuple[int, int] | None:
    """The least and greatest value of an expression, where it is that of whole numbers without end."""
    match expr:
        case typed.Literal(type_, int(value)) if type_ in t.INTEGERS:
            return value, value
        case typed.Local(_, slot):
            return known.get(slot)
        case typed.At(_, typed.ConstRef(_, const), _, _):
            return _among(op.consts[const].value)
        case typed.Apply(type_, _, args, _) if (whole := effect(expr).whole) is not None:
            ends = [None if isinstance(each, typed.Lambda) else interval(each, known, op) for each in args]
            corners = product(*(each for each in ends if each is not None))
            values = [] if None in ends else [whole(*corner) for corner in corners]
            found = (min(values), max(values)) if values else None
            return found if within(type_, found) else None
        case _:
            return None


def _among(table: typed.Expr) -> tuple[int, int] | None:
    """The least and greatest item of a list of whole numbers."""
    if not isinstance(table, typed.MakeList):
        return None
    items = [item.value for item in table.values if isinstance(item, typed.Literal)]
    found = [item for item in items if isinstance(item, int)]
    return (min(found), max(found)) if found and len(found) == len(table.values) else None
