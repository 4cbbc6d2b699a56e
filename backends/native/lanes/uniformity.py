"""Which values of a handler's body vary from firing to firing, and whether firings can run side by side (il.md P9).

What varies is computed in lanes, all else once for all of them. One set of varying names, the least that these rules
allow: windows vary; an expression does if a part of it does; a variable does if something that varies is assigned to it, or if it
is assigned under a condition that varies and declared outside. Control varies in branches only: they become masks.
Functions that get something that varies are taken into the body, each call for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

import attrs
from attrs import define, field, frozen

from backends.native.lanes.leaves import has_arrays, has_lanes
from backends.native.lanes.operations import covered
from river.lang import typed
from river.lang import types as t
from river.lang.check.rates import emitted
from river.lang.operations import OPERATIONS
from river.lang.trees import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.source import Span

Path = tuple[int, ...]  # of calls, by the identity of their nodes
Key = tuple[Path, int]  # a slot of the frame of a call

_MOST_ITEMS: Final = 4096  # that a firing emits to an output


@frozen
class Fireable:
    """A handler whose firings may run side by side: its slots, how many items a firing consumes of each, its body.

    `windows`: a slot is a window of items, not an item.
    """

    name: str
    slots: tuple[t.Type, ...]
    pops: tuple[int, ...]
    body: typed.Block
    windows: bool

    def item(self, slot: int) -> t.Type:
        """The type of the items that a slot shows."""
        found = self.slots[slot]
        return found.item if self.windows and isinstance(found, t.Array) else found


def fireable(op: typed.Operator) -> tuple[Fireable, ...]:
    """`rated` and `item.<port>` of an operator."""
    found = [
        Fireable(f"item.{each.port}", (op.ports[each.port].type,), (1,), each.body, windows=False)
        for each in op.items
    ]
    if op.rated is not None:
        slots = tuple(t.Array(op.ports[rate.port].type, rate.peek) for rate in op.rated.rates)
        pops = tuple(rate.pop for rate in op.rated.rates)
        found.append(Fireable("rated", slots, pops, op.rated.body, windows=True))
    return tuple(found)


@frozen
class Scalar:
    """Firings run one after the other: why, and where."""

    reason: str
    span: Span | None


@frozen
class Lanes:
    """Firings can run side by side. `counts`: how many items each emits, by output.

    `varying`: nodes of the body with something that varies, by the calls that lead to them.
    """

    counts: tuple[int, ...]
    varying: frozenset[tuple[Path, int]] = field(repr=False)
    windows: frozenset[int] = field(repr=False)  # slots of the handler that vary


class _NoLanes(Exception):  # noqa: N818 - a remark, not a mistake
    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.found = Scalar(reason, span)


def lanes_of(op: typed.Operator) -> dict[str, Lanes | Scalar]:
    """By handler (`rated`, `item.<port>`), whether its firings can run side by side."""
    return {each.name: side_by_side(op, each) for each in fireable(op)}


def side_by_side(op: typed.Operator, handler: Fireable) -> Lanes | Scalar:
    """Whether firings of a handler can run side by side."""
    try:
        _no_writes(op, handler.body)
        counts = tuple(_count(op, handler, i) for i in range(len(op.outs)))
        windows = frozenset(_windows(op, handler))
        return _Uniformity(op, handler, windows).result(counts)
    except _NoLanes as no:
        return attrs.evolve(no.found, span=no.found.span or op.span)


def _windows(op: typed.Operator, handler: Fireable) -> Iterator[int]:
    """The slots whose items differ from firing to firing."""
    for i, pop in enumerate(handler.pops):
        item = handler.item(i)
        if pop == 0 or item == t.UNIT:
            continue
        if has_arrays(item) or not has_lanes(item):
            raise _NoLanes(_unsuited(item), op.span)
        yield i


def _unsuited(type_: t.Type) -> str:
    from river.lang.scope import show

    return f"items of type `{show(type_)}`"


def _count(op: typed.Operator, handler: Fireable, index: int) -> int:
    """How many items a firing emits to an output."""
    out = op.outs[index]
    if index not in sends(op, handler.body):
        return 0
    low, high = emitted(handler.body, index, op.fns)
    stated = low if out.push is None else out.push
    if low != high and out.push is None:
        raise _NoLanes(f"firings emit different numbers of items to `{out.name}`", out.span or op.span)
    if stated and (has_arrays(out.type) or not has_lanes(out.type)):
        raise _NoLanes(_unsuited(out.type), out.span or op.span)
    if stated > _MOST_ITEMS:
        raise _NoLanes(f"a firing emits {stated} items to `{out.name}`", out.span or op.span)
    return stated


# ------------------------------------------------------------------------------------------------- state


def everything(op: typed.Operator, node: typed.Node) -> Iterator[typed.Node]:
    """All nodes of a tree and of the functions that it calls, however many of these call one another in a row."""
    called: set[int] = set()
    left = [node]
    while left:
        at = left.pop()
        yield at
        left += reversed(tuple(children(at)))
        if isinstance(at, typed.Call) and at.function not in called:
            called.add(at.function)
            left.append(op.fns[at.function].body)


def root(place: typed.Expr | typed.Lambda) -> typed.Node:
    """The variable that a place is part of."""
    while isinstance(place, typed.Get | typed.At):
        place = place.value
    return place


def written(op: typed.Operator, node: typed.Node) -> tuple[typed.Expr | typed.Lambda, ...]:
    """The places that a node itself writes to."""
    match node:
        case typed.Assign(place, _):
            return (place,)
        case typed.Apply(_, name, args, _) if OPERATIONS[name].mutates is not None:
            return (args[0],)
        case typed.With(_, _, container, _, _, _, _):
            return (container,)
        case typed.Call(_, function, _, args, _):
            params = op.fns[function].params
            return tuple(arg for arg, param in zip(args, params, strict=True) if param.ref)
        case _:
            return ()


def sends(op: typed.Operator, node: typed.Node) -> frozenset[int]:
    """The outputs to which something in a tree emits."""
    return frozenset(each.out for each in everything(op, node) if isinstance(each, typed.Emit))


def _no_writes(op: typed.Operator, body: typed.Block) -> None:
    for node in everything(op, body):
        for place in written(op, node):
            source = root(place)
            if isinstance(source, typed.State):
                reason = f"state `${source.name}` is written: it is carried from firing to firing"
                raise _NoLanes(reason, node.span)


# -------------------------------------------------------------------------------------------- uniformity


@define(eq=False, repr=False)
class _Uniformity:
    """One walk after the other until nothing new varies. `control`: how many branches that vary are around."""

    op: typed.Operator
    handler: Fireable
    windows: frozenset[int]
    names: set[Key] = field(factory=set[Key])
    nodes: set[tuple[Path, int]] = field(factory=set[tuple[Path, int]])
    declared: dict[Key, int] = field(factory=dict[Key, int])
    aliases: dict[Key, Key] = field(factory=dict[Key, Key])
    loops: dict[tuple[Path, int], int] = field(factory=dict[tuple[Path, int], int])
    path: Path = ()
    open: tuple[int, ...] = ()
    start: int = 0  # control where the function begins
    control: int = 0
    returned: bool = False  # whether the function's result varies
    reasons: list[Scalar] = field(factory=list[Scalar])

    def result(self, counts: tuple[int, ...]) -> Lanes:
        self.names = {((), i) for i in self.windows}
        before = -1
        while before != (before := len(self.names) + len(self.nodes)):
            self.reasons = []
            self.declared = {((), i): 0 for i in range(len(self.handler.slots))}
            self.block(self.handler.body)
        if self.reasons:
            raise _NoLanes(self.reasons[0].reason, self.reasons[0].span)
        return Lanes(counts, frozenset(self.nodes), self.windows)

    def refuse(self, reason: str, node: typed.Node | None) -> None:
        self.reasons.append(Scalar(reason, None if node is None else node.span))

    def key(self, slot: int) -> Key:
        found = (self.path, slot)
        return self.aliases.get(found, found)

    def note(self, node: typed.Node, *, varies: bool) -> bool:
        if varies:
            self.nodes.add((self.path, id(node)))
        return varies

    # ---------------------------------------------------------------------------------------- statements

    def block(self, body: typed.Block) -> bool:
        """Whether there is something that varies, or emits, inside."""
        found = [self.statement(item) for item in body.items]
        return self.note(body, varies=any(found))

    def statement(self, item: typed.Stmt) -> bool:
        return self.note(item, varies=self.inside(item))

    def inside(self, item: typed.Stmt) -> bool:
        match item:
            case typed.Let(slot, _, value) | typed.Var(slot, _, value):
                self.declared[self.path, slot] = self.control
                if self.expression(value):
                    self.names.add((self.path, slot))
                return (self.path, slot) in self.names
            case typed.Assign(place, value):
                return self.assigned(place, self.expression(value), item)
            case typed.Branch():
                return self.branch(item)
            case typed.For(loop, slots, _, range_, body):
                return self.loop(item, loop, slots, range_, body)
            case typed.While(loop, cond, body):
                varies = self.expression(cond)
                if varies:
                    self.refuse("the condition of a loop varies", cond)
                self.loops[self.path, loop] = self.control
                return self.block(body) or varies
            case typed.Break(loop) | typed.Continue(loop):
                if self.control != self.loops[self.path, loop]:
                    self.refuse("a loop is left under a condition that varies", item)
                return False
            case typed.Return(value):
                if self.control != self.start:
                    self.refuse("`return` under a condition that varies", item)
                varies = value is not None and self.expression(value)
                self.returned |= varies
                return varies
            case typed.Emit(_, value):
                self.expression(value)
                return True
            case typed.Mark():
                self.refuse("it sends marks", item)
                return True
            case typed.Trap():
                return self.control > 0
            case typed.Do(call):
                return self.expression(call)
            case typed.With() | typed.Drop():
                self.refuse("entries of maps", item)
                return False
            case _:
                assert_never(item)

    def assigned(self, place: typed.Expr, varies: bool, item: typed.Node) -> bool:
        """Assigns something to a place; whether it varies then."""
        self.indices(place)
        source = root(place)
        if not isinstance(source, typed.Local):
            return False
        key = self.key(source.slot)
        if varies or self.control > self.declared.get(key, 0):
            self.names.add(key)
        found = key in self.names
        if found:
            self.expression(place)
        if found and not has_lanes(source.type):
            self.refuse(_unsuited(source.type), item)
        return found

    def indices(self, place: typed.Expr) -> None:
        while isinstance(place, typed.Get | typed.At):
            if isinstance(place, typed.At) and self.expression(place.index):
                self.refuse("an index varies", place)
            place = place.value

    def branch(self, item: typed.Branch) -> bool:
        if isinstance(item.cond, typed.Bind):
            if self.expression(item.cond.value):
                self.refuse("an optional varies", item.cond)
            self.declared[self.path, item.cond.slot] = self.control
            varies = False
        else:
            varies = self.expression(item.cond)
        self.control += varies
        found = [self.block(each) for each in (item.then, item.other) if each is not None]
        self.control -= varies
        if varies:
            for i in sorted(sends(self.op, item)):
                a = emitted(item.then, i, self.op.fns)
                b = (0, 0) if item.other is None else emitted(item.other, i, self.op.fns)
                if a != b or a[0] != a[1]:
                    name = self.op.outs[i].name
                    self.refuse(f"branches emit different numbers of items to `{name}`", item)
        return varies or any(found)

    def loop(
        self, item: typed.For, number: int, slots: tuple[int, ...], range_: typed.Counted | typed.Expr, body: typed.Block
    ) -> bool:  # fmt: skip
        varies = False
        if isinstance(range_, typed.Counted):
            if self.expression(range_.low) | self.expression(range_.high):
                self.refuse("the bound of a loop varies", range_)
        else:
            varies = self.expression(range_)
            if varies and not isinstance(range_.type, t.Array):
                self.refuse("a loop over what varies", item)
        for slot in slots:
            self.declared[self.path, slot] = self.control
        if varies:
            self.names.add((self.path, slots[-1]))
        self.loops[self.path, number] = self.control
        return self.block(body) or varies

    # --------------------------------------------------------------------------------------- expressions

    def expression(self, expr: typed.Expr | typed.Lambda) -> bool:
        """Whether it varies, or emits."""
        varies = self.note(expr, varies=self.parts(expr))
        if varies and not isinstance(expr, typed.Lambda) and expr.type != t.UNIT and not has_lanes(expr.type):
            self.refuse(_unsuited(expr.type), expr)
        return varies

    def some(self, exprs: tuple[typed.Expr | typed.Lambda, ...]) -> bool:
        """Whether one of them varies, all being looked at."""
        found = [self.expression(each) for each in exprs]
        return any(found)

    def parts(self, expr: typed.Expr | typed.Lambda) -> bool:
        match expr:
            case typed.Literal() | typed.ConstRef() | typed.State() | typed.MakeMap(_, ()):
                return False
            case typed.Local(_, slot, _, _):
                return self.key(slot) in self.names
            case typed.Get(_, value, _, _):
                return self.expression(value)
            case typed.At(_, value, index, _):
                varies = self.expression(value)
                if self.expression(index):
                    self.refuse("an index varies", expr)
                    varies = True
                return varies
            case typed.Apply():
                return self.apply(expr)
            case typed.Call():
                return self.call(expr)
            case typed.If(_, cond, then, other):
                return self.choice(expr, cond, (then, other))
            case typed.Logic(_, _, left, right):
                return self.choice(expr, left, (right,))
            case typed.MakeRecord(_, values, _):
                return self.some(values)
            case typed.MakeList(type_, values):
                varies = self.some(values)
                if varies and not isinstance(type_, t.Array):
                    self.refuse(_unsuited(type_), expr)
                return varies
            case typed.Some(_, value):
                return self.plainly(expr, (value,))
            case typed.MakeMap(_, items):
                return self.plainly(expr, tuple(each for pair in items for each in pair))
            case typed.Comprehension(_, value, slots, _, range_, cond):
                bounds = (range_.low, range_.high) if isinstance(range_, typed.Counted) else (range_,)
                for slot in slots:
                    self.declared[self.path, slot] = self.control
                return self.plainly(expr, (*bounds, value, *(() if cond is None else (cond,))))
            case typed.Lambda(_, slots, _, body):
                for slot in slots:
                    self.declared[self.path, slot] = self.control
                return self.expression(body)
            case _:
                assert_never(expr)

    def plainly(self, expr: typed.Expr, values: tuple[typed.Expr, ...]) -> bool:
        """An expression that is not made in lanes."""
        varies = self.some(values)
        if varies:
            self.refuse(_unsuited(expr.type), expr)
        return varies

    def choice(self, expr: typed.Expr, cond: typed.Expr, sides: tuple[typed.Expr, ...]) -> bool:
        varies = self.expression(cond)
        self.control += varies
        found = self.some(sides)
        self.control -= varies
        if (varies or found) and has_arrays(expr.type):
            self.refuse("a choice between arrays", expr)
        return varies or found

    def apply(self, expr: typed.Apply) -> bool:
        varies = self.some(expr.args)
        for place in written(self.op, expr):
            assert not isinstance(place, typed.Lambda)  # noqa: S101 - by the rule
            varies |= self.assigned(place, varies, expr)
        if expr.operation == "len" and isinstance(expr.args[0].type, t.Array):
            return False
        fills = expr.operation == "fill" and isinstance(expr.type, t.Array) and len(expr.args) == 1
        if varies and not fills and not covered(expr):
            self.refuse(f"`{expr.operation}` of what varies", expr)
        return varies

    def call(self, expr: typed.Call) -> bool:
        fn = self.op.fns[expr.function]
        varies = [self.expression(arg) for arg in expr.args]
        places = written(self.op, expr)
        held = [
            self.control > self.declared.get(self.key(r.slot), 0)
            for p in places
            if isinstance(r := root(p), typed.Local)
        ]
        if not (any(varies) or fn.emits or any(held) or (self.path, id(expr)) in self.nodes):
            return False
        if expr.function in self.open:
            self.refuse("a function that calls itself", expr)
            return True
        saved = (self.path, self.open, self.start, self.returned)
        inner = (*self.path, id(expr))
        for i, (arg, param, one) in enumerate(zip(expr.args, fn.params, varies, strict=True)):
            source = root(arg)
            if param.ref and isinstance(source, typed.Local):
                self.indices(arg)
                self.aliases[inner, i] = self.key(source.slot)
            elif one:
                self.names.add((inner, i))
            self.declared[inner, i] = self.control
        self.path, self.open = inner, (*self.open, expr.function)
        self.start, self.returned = self.control, False
        if isinstance(fn.body, typed.Block):
            self.block(fn.body)
        else:
            self.returned = self.expression(fn.body)
        self.path, self.open, self.start, self.returned = saved
        return True
