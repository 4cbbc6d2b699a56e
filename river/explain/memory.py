"""How the variables of an operator grow: what its body puts into containers, and whether it ever takes it out.

A conservative reading of the text: "grows" means that nothing in the body takes out what is put in, "bounded" that
something does - how much is left is up to the program. What operations put in or take out, the table of operations states.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from river.classes import define, evolve, field, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.dataflow import Loop, Reading
from river.lang.operations import OPERATIONS, Change
from river.lang.trees import effect, nodes

if TYPE_CHECKING:
    from collections.abc import Hashable

CONTAINERS: Final = (t.List, t.Deque, t.Map, t.OMap, t.Bag)


class Growth(Enum):
    """How a variable grows; the value is what people read."""

    READ = "is only read here"
    FIXED = "has a fixed size"
    BOUNDED = "holds what is put in until it is taken out again"
    KEYS = "has an entry for each live key; entries are dropped"
    GROWS = "grows: nothing is ever taken out"
    GROWS_KEYS = "grows with the keys: no entry is ever dropped"
    UNKNOWN = "may grow: the operator is not text"


@frozen
class _StateDepth:
    """A variable (depth 0), or something inside that many of its entries."""

    variable: int
    depth: int


_Places = frozenset[_StateDepth]
"""The places that an expression may be: none if it is a value of its own."""
NONE: Final[_Places] = frozenset()


@define
class _Moved:
    """The places where items come and go."""

    put: set[_StateDepth] = field(factory=set[_StateDepth])
    taken: set[_StateDepth] = field(factory=set[_StateDepth])


@define(eq=False, kw_only=True)
class _Reader(Reading[_Places]):
    """The reading of one handler, or of a function that it calls."""

    moved: _Moved

    def join(self, a: _Places, b: _Places) -> _Places:
        return a | b

    def nothing(self) -> _Places:
        return NONE

    def found(self) -> Hashable:
        return len(self.moved.put), len(self.moved.taken)

    # -- what names places: entries at hand, parameters of functions

    def declare(self, slot: int, _fact: _Places, /) -> None:
        self.bind(slot, NONE)

    def leaf(self, expr: typed.Literal | typed.ConstRef | typed.State, /) -> _Places:
        return frozenset({_StateDepth(expr.index, 0)}) if isinstance(expr, typed.State) else NONE

    def items(self, loop: typed.For | typed.Comprehension, _fact: _Places | None, /) -> tuple[_Places, ...]:
        return (NONE,) * len(loop.slots)

    def given(
        self, _expr: typed.Apply, function: typed.Lambda, _facts: tuple[_Places, ...], /
    ) -> tuple[_Places, ...]:
        return (NONE,) * len(function.slots)

    def made(self, expr: typed.Expr, facts: tuple[_Places, ...], /) -> _Places:
        match expr:
            case typed.Get():
                return facts[0]
            case typed.At():
                return _deeper(facts[0])
            case typed.Apply(_, name, (first, *_), _) if OPERATIONS[name].mutates is not None:
                if isinstance(first.type, CONTAINERS):
                    change = effect(expr).change
                    self.moved.put |= facts[0] if change is Change.GROWS else NONE
                    self.moved.taken |= facts[0] if change is Change.SHRINKS else NONE
                return NONE
            case _:
                return NONE

    # -- statements

    def decide(self, _node: typed.Branch | Loop, _fact: _Places, /) -> None:
        pass

    def send(self, item: typed.Emit | typed.Mark, /) -> None:
        self.of(item.value)

    def enter(self, item: typed.With, /) -> None:
        outer = self.of(item.container)
        self.of(item.key)
        if item.default is not None:
            self.of(item.default)
            self.moved.put |= outer
        self.bind(item.slot, _deeper(outer))

    def drop(self, item: typed.Drop, /) -> None:
        self.moved.taken |= {_StateDepth(p.variable, p.depth - 1) for p in self.slots.get(item.slot, NONE)}

    def assign(self, item: typed.Assign, /) -> None:
        """A container as a whole is replaced, by more of itself or by something else; an entry of a map is put."""
        target, value = item.place, item.value
        places = self.of(target)
        self.of(value)
        if isinstance(target, typed.At) and isinstance(target.value.type, t.Map | t.OMap):
            self.moved.put |= self.of(target.value)
        elif isinstance(target.type, CONTAINERS):
            self.moved.put |= places
            fewer = isinstance(value, typed.Apply) and effect(value).change is Change.SHRINKS
            self.moved.taken |= {p for p in places if fewer or not self.made_of(value, p.variable)}

    def made_of(self, value: typed.Expr, variable: int) -> bool:
        """Whether a variable is read in an expression."""
        for node in nodes(value):
            if isinstance(node, typed.State | typed.Local) and variable in {
                p.variable for p in self.of(node)
            }:
                return True
        return False

    # -- functions

    def frame(self, expr: typed.Call, args: tuple[_Places, ...], /) -> _Reader:
        params = self.fns[expr.function].params
        slots = {
            i: arg if param.ref else NONE for i, (param, arg) in enumerate(zip(params, args, strict=True))
        }
        return evolve(self, slots=slots, returned=NONE)

    def opaque(self, expr: typed.Call, args: tuple[_Places, ...], /) -> _Places:
        if self.key(expr, args) not in self.open:  # else it is being read
            self.moved.put |= NONE.union(*args)
        return NONE


def _deeper(places: _Places) -> _Places:
    return frozenset(_StateDepth(p.variable, p.depth + 1) for p in places)


def growth(operator: typed.Operator | typed.Extern) -> tuple[Growth, ...]:
    """How each variable of the operator grows, by its position in the signature."""
    if isinstance(operator, typed.Extern):
        return tuple(
            Growth.UNKNOWN if t.contains(v.type, *CONTAINERS) else Growth.FIXED for v in operator.vars
        )
    moved = _Moved()
    handlers = (
        *operator.items,
        operator.first,
        operator.rated,
        *operator.phases,
        operator.merge,
        operator.mark,
    )
    for handler in handlers:
        if handler is not None:
            reader = _Reader(operator.fns, {}, NONE, moved=moved)
            reader.settle(lambda reader=reader, body=handler.body: reader.block(body))
    return tuple(
        _growth(i, param.type, moved) if param.written else Growth.READ
        for i, param in enumerate(operator.vars)
    )


def _growth(index: int, type_: t.Type, moved: _Moved) -> Growth:
    growing = {p for p in moved.put if p.variable == index}
    # What is taken out further out goes with all that is inside it.
    open_ = {p for p in growing if not any(q.variable == index and q.depth <= p.depth for q in moved.taken)}
    keyed = isinstance(type_, t.Map | t.OMap)
    if not growing:
        return Growth.FIXED
    if any(p.depth == 0 and keyed for p in open_):
        return Growth.GROWS_KEYS
    if open_:
        return Growth.GROWS
    return Growth.KEYS if keyed else Growth.BOUNDED
