"""What an operation does beyond computing its result: a small algebra, and the rules from which its lines are made.

Analyses read these statements instead of knowing operations by name. What a line does not state is the worst: `Effect()`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from river.classes import evolve, frozen
from river.lang import types as t

if TYPE_CHECKING:
    from types import UnionType

Types = tuple[t.Type, ...]


class Order(Enum):
    """How the order of the items of the first operand, a container, shows in the result."""

    IGNORES = "not at all"
    KEEPS = "in the order of the items of the result, or of the container that is changed, and nowhere else"
    READS = "in any way"


class Change(Enum):
    """What becomes of the items of the first operand: of the place that is changed, else from operand to result."""

    NOTHING = "there are as many"
    GROWS = "there may be more"
    SHRINKS = "there may be fewer"


class Borrows(Enum):
    """What the result may share with the operands."""

    NOTHING = "nothing"
    ITEMS = "the items of a new container"
    PART = "any part of them"
    ITSELF = "it is the first operand"


class Measure(Enum):
    """What a result says of sizes and numbers, for who reads conditions and bounds."""

    COUNT = "how many items the operand has"
    SUM = "the two operands together"
    SAME = "whether the two operands are equal"
    LESS = "whether the first operand is less than the second"
    MORE = "whether the first operand is more than the second"
    AT_MOST = "whether the first operand is at most the second"
    AT_LEAST = "whether the first operand is at least the second"


class Neutral(Enum):
    """What cells begin with that are accumulated into apart from each other, and then combined to be one.

    To combine two cells is to accumulate one into the other. What both began with must count once.
    """

    ZERO = "the zero of the type"
    ONE = "one"
    ANY = "anything: the same step done twice is that step"


@frozen
class Effect:
    """What an operation does on operands of certain types.

    `order`: of the first operand's items, and of those of operands of the same type if it is kept; that of other
    operands may show in any way. `change`: of the number of items. `puts`: the operand that becomes an item. `at_key`: of
    a map or bag, only the entry of the second operand is touched. `combines`: by what name `place = place op e`, or the
    change of the place, accumulates: steps of one name may be done in any order, and cells that begin with what is `neutral`
    may be combined by them. `borrows`: what the result may share. `matches`: items of the first operand are told by being equal
    to items of the second. `measure`: what the result says. `distinct`: different operands have different results. `sorts`:
    the items of the result stand in the order of what the function gives that is the second operand, equal ones as they stood.
    `first`: the result is the first item. `bounds`: items are taken out at one end until no more are left than the second operand
    says: those that stay are the same whether that is done once for many new items, or again and again. `whole`: the result of
    whole numbers as if these had no end, and the result where that is a value of its type; in each operand it rises or falls all
    along, so that its extremes are those of the operands' extremes.
    """

    order: Order = Order.READS
    change: Change = Change.GROWS
    puts: int | None = None
    at_key: bool = False
    combines: str | None = None
    neutral: Neutral | None = None
    borrows: Borrows = Borrows.PART
    matches: bool = False
    measure: Measure | None = None
    distinct: bool = False
    sorts: bool = False
    first: bool = False
    bounds: bool = False
    whole: Callable[..., int] | None = None

    @property
    def appends(self) -> bool:
        """Whether more items come to those that are there, whose order is kept."""
        return self.order is Order.KEEPS and self.change is Change.GROWS

    @property
    def pushes(self) -> bool:
        """Whether one operand is put behind the items that are there."""
        return self.appends and self.puts is not None


Stated = Effect | Callable[[Types], Effect]
"""What a line of the table states: an effect, or one that depends on the types of the operands."""

WORST: Final = Effect()
"""What holds of an operation that states nothing."""
PURE: Final = Effect(change=Change.NOTHING, borrows=Borrows.NOTHING)
"""A result of its own, in which all that the operands are may show."""
UNORDERED: Final = evolve(PURE, order=Order.IGNORES)
"""A result of its own that is the same for any order of the items of the first operand."""
LOOKS: Final = evolve(PURE, borrows=Borrows.PART)
"""The result may be a part of an operand, found by its position."""
LISTS: Final = evolve(PURE, order=Order.KEEPS, borrows=Borrows.ITEMS)
"""A new container of the operand's items, or of parts of them."""
CUTS: Final = evolve(LOOKS, change=Change.SHRINKS, borrows=Borrows.ITEMS)
"""A new container of some of the operand's items, chosen by their positions."""
TAKES: Final = evolve(PURE, change=Change.SHRINKS)
"""Takes an item out by its position."""
APPENDS: Final = evolve(PURE, order=Order.KEEPS, change=Change.GROWS, puts=1)
"""Puts the second operand at an end."""
EMPTIES: Final = evolve(UNORDERED, change=Change.SHRINKS)
"""Takes out all items."""
BOUNDS: Final = evolve(EMPTIES, bounds=True)
"""Takes out the items at one end, but for so many."""


def of_entry(effect: Effect) -> Effect:
    """The effect on the one entry of a map, or item of a bag, that the second operand names."""
    return evolve(effect, order=Order.IGNORES, at_key=True)


def combining(name: str, neutral: Neutral) -> Effect:
    """Accumulates in any order."""
    return evolve(UNORDERED, combines=name, neutral=neutral)


def by_kind(kinds: type | UnionType, on: Effect, otherwise: Effect) -> Callable[[Types], Effect]:
    """One effect where the first operand is of `kinds`, another where it is not."""
    return lambda types: on if types and isinstance(types[0], kinds) else otherwise


def combining_exact(name: str, borrows: Borrows) -> Callable[[Types], Effect]:
    """Accumulates in any order, once or twice, where equal values are the same: on all scalars but floats."""

    def stated(types: Types) -> Effect:
        found = evolve(PURE, borrows=borrows)
        return evolve(found, combines=name, neutral=Neutral.ANY) if all(map(is_exact, types)) else found

    return stated


def where_exact(exact: Effect, otherwise: Effect) -> Callable[[Types], Effect]:
    """One effect where the first operand's items that are equal are the same, another where they may differ."""
    return lambda types: exact if types and is_exact(types[0]) else otherwise


def is_exact(type_: t.Type) -> bool:
    """Whether equal values are the same: there are no floats (-0.0 is 0.0), nor entries in an order of their own."""
    return not t.contains(type_, t.F32, t.F64, t.FSUM, t.Map, t.Bag, t.Function)


__all__ = [
    "APPENDS", "BOUNDS", "CUTS", "EMPTIES", "LISTS", "LOOKS", "PURE", "TAKES", "UNORDERED", "WORST", "Borrows", "Change",
    "Effect", "Measure", "Neutral", "Order", "Stated", "by_kind", "combining", "combining_exact", "is_exact", "of_entry",
    "where_exact",
]  # fmt: skip
