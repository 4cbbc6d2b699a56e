"""Which items of arrays loops read and write, where indices are sums of multiples of the loops' counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import define, field, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.rates import bounds
from river.lang.trees import children, effect, nodes, root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Counters = dict[int, range]
"""The values of the counters of the loops around, by slot."""

MOST: Final = 1 << 14
"""Places of an index, at most, that are looked at."""


def filled(variable: typed.Var, rest: Sequence[typed.Stmt]) -> bool:
    """Whether the statements that follow a variable of zeros read no item of it that they have not written."""
    if not isinstance(variable.value.type, t.Array):
        return False
    reading = _Reading(variable.slot)
    try:
        for item in rest:
            reading.statement(item, {}, sure=True)
            reading.before |= reading.now
    except _Unwritten:
        return False
    return True


def repeated(loop: typed.For) -> dict[int, int]:
    """By slot of an array that a loop does not write, how many items each turn reads in loops inside, the same in all turns."""
    found: dict[int, set[tuple[int, int]]] = {}
    written: set[int] = set()

    def look(node: typed.Node, counters: Counters) -> None:
        match node:
            case typed.Assign(place):
                written.add(source.slot if isinstance(source := root(place), typed.Local) else -1)
            case typed.For(_, (slot,), _, typed.Counted() as range_) if (ends := bounds(range_)) is not None:
                counters = {**counters, slot: range(*ends)}
            case typed.At(_, typed.Local(_, slot), index) if (sum_ := sum_of(index)) is not None:
                inner = {each: factor for each, factor in sum_.factors.items() if each in counters}
                outer = {each: factor for each, factor in sum_.factors.items() if each not in counters}
                values = _values(sum_.base, inner, counters)
                if inner and values is not None and outer.keys().isdisjoint(loop.slots):
                    found.setdefault(slot, set()).update((hash(frozenset(outer.items())), x) for x in values)
            case _:
                pass
        for each in children(node):
            look(each, counters)

    look(loop.body, {})
    return {slot: len(items) for slot, items in found.items() if slot not in written}


def places(index: typed.Expr, counters: Mapping[int, range]) -> frozenset[int] | None:
    """The values that an index takes in all turns of the loops around; None if it is no sum of multiples of their counters."""
    found = sum_of(index)
    return None if found is None else _values(found.base, found.factors, counters)


def _values(base: int, factors: Mapping[int, int], counters: Mapping[int, range]) -> frozenset[int] | None:
    values = {base}
    for slot, factor in factors.items():
        if slot not in counters or len(values) * len(counters[slot]) > MOST:
            return None
        values = {value + factor * turn for value in values for turn in counters[slot]}
    return frozenset(values)


@frozen
class Sum:
    """A number, and by which numbers names are multiplied that are added to it."""

    base: int
    factors: Mapping[int, int] = field(factory=dict[int, int], hash=False)

    def __add__(self, other: Sum) -> Sum:
        slots = self.factors.keys() | other.factors.keys()
        both = {slot: self.factors.get(slot, 0) + other.factors.get(slot, 0) for slot in slots}
        return Sum(self.base + other.base, both)

    def __sub__(self, other: Sum) -> Sum:
        return self + -other

    def __mul__(self, other: Sum) -> Sum:
        if self.factors and other.factors:
            raise _NoSum
        one, number = (other, self.base) if other.factors else (self, other.base)
        return Sum(one.base * number, {slot: factor * number for slot, factor in one.factors.items()})

    def __neg__(self) -> Sum:
        return self * Sum(-1)

    def __pos__(self) -> Sum:
        return self


class _NoSum(Exception):  # noqa: N818 - an answer, not a mistake
    """An index is no such sum."""


def sum_of(index: typed.Expr) -> Sum | None:
    """The sum that an index is, if it is one."""
    try:
        return _sum(index)
    except (_NoSum, TypeError):  # not all that is computed of whole numbers is of sums
        return None


def _sum(expr: typed.Expr | typed.Lambda) -> Sum:
    match expr:
        case typed.Literal(_, int(value)):
            return Sum(value)
        case typed.Local(_, slot):
            return Sum(0, {slot: 1})
        case typed.Apply() if (whole := effect(expr).whole) is not None and expr.type in t.INTEGERS:
            found: object = whole(*map(_sum, expr.args))
            if isinstance(found, Sum):
                return found
            raise _NoSum
        case _:
            raise _NoSum


class _Unwritten(Exception):  # noqa: N818 - an answer, not a mistake
    """An item is read that may not have been written."""


@define
class _Reading:
    """Statements read in their order. `before`: what is written for sure; `now`: what is when the loop around has ended."""

    slot: int
    before: set[int] = field(factory=set[int])
    now: set[int] = field(factory=set[int])

    def statement(self, item: typed.Stmt, counters: Counters, *, sure: bool) -> None:
        """Reads a statement; `sure`: it is done in each turn of the loops around."""
        match item:
            case typed.Assign(typed.At(_, typed.Local(_, slot), index), value) if slot == self.slot:
                self.read(index, counters)
                self.read(value, counters)
                if sure:
                    self.now.update(places(index, counters) or ())
            case typed.For(_, (slot,), _, typed.Counted() as range_, body):
                self.read(range_, counters)
                ends = bounds(range_)
                left = any(
                    isinstance(node, typed.Break | typed.Continue | typed.Return) for node in nodes(body)
                )
                inner = {each: values for each, values in counters.items() if each != slot}
                if ends is not None:
                    inner[slot] = range(*ends)
                self.block(body, inner, sure=sure and ends is not None and not left)
            case _:
                for each in children(item):
                    if isinstance(each, typed.Block):
                        self.block(each, counters, sure=False)
                    else:
                        self.read(each, counters)

    def block(self, body: typed.Block, counters: Counters, *, sure: bool) -> None:
        for item in body.items:
            self.statement(item, counters, sure=sure)

    def read(self, node: typed.Node, counters: Counters) -> None:
        """Raises: _Unwritten if something else is read than items that are written."""
        match node:
            case typed.At(_, typed.Local(_, slot), index) if slot == self.slot:
                found = places(index, counters)
                if found is None or not found <= self.before:
                    raise _Unwritten
                self.read(index, counters)
            case typed.Local(_, slot) if slot == self.slot:
                raise _Unwritten
            case _:
                for each in children(node):
                    self.read(each, counters)


__all__ = ["filled", "places", "repeated", "sum_of"]
