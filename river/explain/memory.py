"""How the variables of an operator grow: what its body puts into containers, and whether it ever takes it out.

A conservative reading of the text: "grows" means that nothing in the body takes out what is put in, "bounded" that
something does - how much is left is up to the program.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, cast

import attrs
from attrs import define, field, frozen

from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINERS: Final = (t.List, t.Deque, t.Map, t.OMap, t.Bag)
PUTS: Final = frozenset({"push", "push_back", "add"})
PARTS: Final = frozenset({"take", "slice"})
TAKES: Final = frozenset({"pop", "pop_front", "pop_back", "remove", "delete", "clear"})


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
class _Place:
    """A variable (depth 0), or something inside that many of its entries."""

    variable: int
    depth: int


@define
class _Reader:
    """Collects the places where items come and go."""

    fns: tuple[typed.Fn, ...]
    put: set[_Place] = field(factory=set[_Place])
    taken: set[_Place] = field(factory=set[_Place])
    seen: set[tuple[int, tuple[_Place | None, ...]]] = field(
        factory=set[tuple[int, tuple[_Place | None, ...]]]
    )

    def read(self, node: object, slots: Mapping[int, _Place]) -> None:
        """Reads a statement or expression; `slots` are the locals that name places."""
        match node:
            case tuple():
                for one in cast("tuple[object, ...]", node):
                    self.read(one, slots)
                return
            case typed.With(container=container, default=default, body=body):
                self._with(node, container, default, body, slots)
                return
            case typed.Call(function=function, args=args):
                self._call(function, tuple(_place(arg, slots) for arg in args))
            case typed.Apply(operation=operation, args=(first, *_)) if not isinstance(first, typed.Lambda):
                target = _place(first, slots)
                if target is not None and isinstance(first.type, CONTAINERS):
                    self.put |= {target} if operation in PUTS else set()
                    self.taken |= {target} if operation in TAKES else set()
            case typed.Assign(place=target, value=value):
                self._assign(target, value, slots)
            case typed.Drop(slot=slot) if slot in slots:
                self.taken.add(_Place(slots[slot].variable, slots[slot].depth - 1))
            case _:
                pass
        if isinstance(node, typed.Node):
            for one in attrs.fields(type(node)):
                if one.name not in ("span", "type"):
                    self.read(getattr(node, one.name), slots)

    def _with(
        self,
        node: typed.With,
        container: typed.Expr,
        default: typed.Expr | None,
        body: typed.Block,
        slots: Mapping[int, _Place],
    ) -> None:
        self.read((container, node.key, *(() if default is None else (default,))), slots)
        outer = _place(container, slots)
        if outer is None:
            self.read(body, slots)
            return
        if default is not None:
            self.put.add(outer)
        self.read(body, {**slots, node.slot: _Place(outer.variable, outer.depth + 1)})

    def _call(self, function: int, args: tuple[_Place | None, ...]) -> None:
        if (function, args) in self.seen:
            return
        self.seen.add((function, args))
        fn = self.fns[function]
        given = zip(fn.params, args, strict=True)
        slots = {i: place for i, (param, place) in enumerate(given) if param.ref and place is not None}
        self.read(fn.body, slots)

    def _assign(self, target: typed.Expr, value: typed.Expr, slots: Mapping[int, _Place]) -> None:
        """A container as a whole is replaced, by more of itself or by something else; an entry of a map is put."""
        if isinstance(target, typed.At) and isinstance(target.value.type, t.Map | t.OMap):
            outer = _place(target.value, slots)
            self.put |= {outer} if outer is not None else set()
            return
        place = _place(target, slots)
        if place is not None and isinstance(target.type, CONTAINERS):
            self.put.add(place)
            if not _made_of(value, place.variable) or (
                isinstance(value, typed.Apply) and value.operation in PARTS
            ):
                self.taken.add(place)


def _made_of(node: object, variable: int) -> bool:
    """Whether the variable is read in an expression."""
    if isinstance(node, tuple):
        return any(_made_of(one, variable) for one in cast("tuple[object, ...]", node))
    if isinstance(node, typed.State):
        return node.index == variable
    if isinstance(node, typed.Node):
        return any(
            _made_of(getattr(node, f.name), variable) for f in attrs.fields(type(node)) if f.name != "span"
        )
    return False


def _place(expr: typed.Expr | typed.Lambda, slots: Mapping[int, _Place]) -> _Place | None:
    """The variable that `expr` is a place in."""
    match expr:
        case typed.State(index=index):
            return _Place(index, 0)
        case typed.Local(slot=slot):
            return slots.get(slot)
        case typed.Get(value=value):
            return _place(value, slots)
        case typed.At(value=value):
            outer = _place(value, slots)
            return None if outer is None else _Place(outer.variable, outer.depth + 1)
        case _:
            return None


def growth(operator: typed.Operator | typed.Extern) -> tuple[Growth, ...]:
    """How each variable of the operator grows, by its position in the signature."""
    if isinstance(operator, typed.Extern):
        return tuple(
            Growth.UNKNOWN if t.contains(v.type, *CONTAINERS) else Growth.FIXED for v in operator.vars
        )
    reader = _Reader(operator.fns)
    handlers = (
        operator.items,
        operator.first,
        operator.rated,
        operator.phases,
        operator.merge,
        operator.mark,
    )
    for handler in handlers:
        reader.read(handler, {})
    return tuple(
        _growth(i, param.type, reader) if param.written else Growth.READ
        for i, param in enumerate(operator.vars)
    )


def _growth(index: int, type_: t.Type, reader: _Reader) -> Growth:
    growing = {p for p in reader.put if p.variable == index}
    # What is taken out further out goes with all that is inside it.
    open_ = {p for p in growing if not any(q.variable == index and q.depth <= p.depth for q in reader.taken)}
    keyed = isinstance(type_, t.Map | t.OMap)
    if not growing:
        return Growth.FIXED
    if any(p.depth == 0 and keyed for p in open_):
        return Growth.GROWS_KEYS
    if open_:
        return Growth.GROWS
    return Growth.KEYS if keyed else Growth.BOUNDED
