"""Which values of a handler's body vary from firing to firing, and whether firings can run side by side (il.md P9).

What varies is computed in lanes, all else once for all of them. A lattice of two facts (`river.lang.dataflow`), the least
that these rules allow: windows vary; an expression does if a part of it does; a variable does if something that varies is
assigned to it, or if it is assigned under a condition that varies and declared outside. Control varies in branches only:
they become masks. Functions that get something that varies are taken into the body, each call for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.lanes.leaves import has_arrays, has_lanes
from backends.native.lanes.operations import covered, fills
from river.classes import define, evolve, field, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.dataflow import Reading
from river.lang.operations import OPERATIONS, Measure
from river.lang.rates import emitted
from river.lang.trees import children, effect, reached, root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.lang.dataflow import Choice, Loop
    from river.source import Span

Path = tuple[int, ...]  # of calls, by the identity of their nodes

_MOST_ITEMS: Final = 4096  # that a firing emits to an output
_MOST_CALLS: Final = 1000  # that are taken into the body: two in each function of a chain are 2 ** n


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
        reading = _Uniformity(fns=op.fns, slots=dict.fromkeys(windows, True), returned=False, op=op)

        def once() -> None:
            reading.reasons.clear()
            reading.block(handler.body)

        reading.settle(once)
    except _NoLanes as no:
        return evolve(no.found, span=no.found.span or op.span)
    for reason in reading.reasons:
        return evolve(reason, span=reason.span or op.span)
    return Lanes(counts, frozenset(reading.nodes), windows)


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
    return frozenset(each.out for each in reached(node, op.fns) if isinstance(each, typed.Emit))


def _no_writes(op: typed.Operator, body: typed.Block) -> None:
    for node in reached(body, op.fns):
        for place in written(op, node):
            source = root(place)
            if isinstance(source, typed.State):
                reason = f"state `${source.name}` is written: it is carried from firing to firing"
                raise _NoLanes(reason, node.span)


# -------------------------------------------------------------------------------------------- uniformity


@define(eq=False, repr=False, kw_only=True)
class _Uniformity(Reading[bool]):
    """The reading of one handler, or of one call: whether what a name holds varies.

    `nodes`: with something that varies, or that emits, by the calls that lead to them. `control`: how many of the ways that
    are open something that varies has chosen; so many were at the function's beginning (`start`), where a name is `declared`,
    and where a loop begins.
    """

    op: typed.Operator
    nodes: set[tuple[Path, int]] = field(factory=set[tuple[Path, int]])
    reasons: list[Scalar] = field(factory=list[Scalar])
    path: Path = ()
    control: int = 0
    start: int = 0
    declared: dict[int, int] = field(factory=dict[int, int])
    loops: dict[int, int] = field(factory=dict[int, int])

    def refuse(self, reason: str | t.Type, node: typed.Node) -> None:
        """Firings cannot run side by side, in general or because of a type of items; the first reason is told."""
        if not self.reasons:
            told = reason if isinstance(reason, str) else _unsuited(reason)
            self.reasons.append(Scalar(told, node.span))

    def noted(self, node: typed.Node) -> bool:
        return (self.path, id(node)) in self.nodes

    # -- the lattice

    def join(self, a: bool, b: bool) -> bool:
        return a or b

    def nothing(self) -> bool:
        return False

    def found(self) -> int:
        return len(self.nodes)

    # -- statements

    def block(self, body: typed.Block) -> None:
        super().block(body)
        if any(map(self.noted, body.items)):
            self.nodes.add((self.path, id(body)))

    def statement(self, item: typed.Stmt) -> None:
        super().statement(item)
        match item:
            case typed.Let(slot) | typed.Var(slot):
                varies = self.slots[slot]
            case typed.Emit() | typed.Mark():
                varies = True
            case typed.Trap():
                varies = self.control > 0
            case _:
                varies = any(map(self.noted, children(item)))
        if varies:
            self.nodes.add((self.path, id(item)))

    def declare(self, slot: int, fact: bool, /) -> None:
        self.declared[slot] = self.control
        self.bind(slot, fact)

    def since(self, place: typed.Expr | typed.Lambda) -> int:
        """The control where the name was declared that a place is a part of."""
        source = root(place)
        return self.declared.get(source.slot, 0) if isinstance(source, typed.Local) else self.control

    def assign(self, item: typed.Assign, /) -> None:
        self.assigned(item.place, self.of(item.value), item)

    def assigned(self, place: typed.Expr, varies: bool, item: typed.Node) -> bool:
        """Assigns something to a place; whether it varies then."""
        source, part = root(place), place
        while isinstance(part, typed.Get | typed.At):
            if isinstance(part, typed.At) and self.of(part.index):
                self.refuse("an index varies", part)
            part = part.value
        if not isinstance(source, typed.Local):
            return False
        self.bind(source.slot, varies or self.control > self.since(place))
        if not self.slots[source.slot]:
            return False
        self.of(place)
        if not has_lanes(source.type):
            self.refuse(source.type, item)
        return True

    def present(self, bind: typed.Bind, fact: bool, /) -> bool:
        if fact:
            self.refuse("an optional varies", bind)
        return False

    def decide(self, node: typed.Branch | Loop, fact: bool, /) -> None:
        match node:
            case typed.For() if fact:
                self.refuse("the bound of a loop varies", node.range)
            case typed.While() if fact:
                self.refuse("the condition of a loop varies", node.cond)
            case typed.Comprehension() if fact:
                self.refuse(node.type, node)
            case _:
                pass

    def fork(self, fact: bool, /) -> None:
        self.control += fact

    def forked(self, node: Choice, fact: bool, /) -> None:
        self.control -= fact
        if fact and isinstance(node, typed.Branch):
            for i in sorted(sends(self.op, node)):
                a = emitted(node.then, i, self.fns)
                b = (0, 0) if node.other is None else emitted(node.other, i, self.fns)
                if a != b or a[0] != a[1]:
                    self.refuse(f"branches emit different numbers of items to `{self.op.outs[i].name}`", node)

    def items(self, loop: typed.For | typed.Comprehension, fact: bool | None, /) -> tuple[bool, ...]:
        varies = fact is True
        if isinstance(loop, typed.Comprehension):
            self.decide(loop, varies)
        else:
            self.loops[loop.loop] = self.control
            if varies and not (isinstance(loop.range, typed.Counted) or isinstance(loop.range.type, t.Array)):
                self.refuse("a loop over what varies", loop)
        return (*(False for _ in loop.slots[1:]), varies)

    def repeat(self, loop: typed.While, /) -> None:
        self.loops[loop.loop] = self.control

    def leave(self, item: typed.Break | typed.Continue | typed.Return, /) -> None:
        if isinstance(item, typed.Return):
            if self.control != self.start:
                self.refuse("`return` under a condition that varies", item)
        elif self.control != self.loops[item.loop]:
            self.refuse("a loop is left under a condition that varies", item)

    def send(self, item: typed.Emit | typed.Mark, /) -> None:
        if isinstance(item, typed.Mark):
            self.refuse("it sends marks", item)
        self.of(item.value)

    def enter(self, item: typed.With, /) -> None:
        self.refuse("entries of maps", item)
        self.declare(item.slot, False)

    def drop(self, item: typed.Drop, /) -> None:
        self.refuse("entries of maps", item)

    # -- expressions

    def of(self, expr: typed.Expr) -> bool:
        varies = super().of(expr)
        if varies:
            self.nodes.add((self.path, id(expr)))
            if expr.type != t.UNIT and not has_lanes(expr.type):
                self.refuse(expr.type, expr)
        return varies

    def leaf(self, _expr: typed.Literal | typed.ConstRef | typed.State, /) -> bool:
        return False

    def given(
        self, _expr: typed.Apply, function: typed.Lambda, _facts: tuple[bool, ...], /
    ) -> tuple[bool, ...]:
        return (False,) * len(function.slots)

    def made(self, expr: typed.Expr, facts: tuple[bool, ...], /) -> bool:
        varies = any(facts)
        match expr:
            case typed.Apply():
                return self.operation(expr, varies)
            case typed.At() if facts[1]:
                self.refuse("an index varies", expr)
            case typed.If() | typed.Logic() if varies and has_arrays(expr.type):
                self.refuse("a choice between arrays", expr)
            case _:
                pass
        return varies

    def operation(self, expr: typed.Apply, varies: bool) -> bool:
        if OPERATIONS[expr.operation].mutates is not None:
            assert not isinstance(expr.args[0], typed.Lambda)  # noqa: S101 - it is a place
            varies |= self.assigned(expr.args[0], varies, expr)
        if not varies:
            return False
        if isinstance(expr.args[0].type, t.Array) and effect(expr).measure is Measure.COUNT:
            return False
        if not fills(expr) and not covered(expr):
            self.refuse(f"`{expr.operation}` of what varies", expr)
        return True

    # -- functions

    def call(self, expr: typed.Call) -> bool:
        """What does not vary is called once for all. Other calls are read each for itself, once in each round."""
        fn, args = self.fns[expr.function], tuple([self.of(arg) for arg in expr.args])
        masked = any(self.control > self.since(place) for place in written(self.op, expr))
        if not (any(args) or fn.emits or masked):
            return False
        if expr.function in self.open:
            return self.opaque(expr, args)
        inner = self.frame(expr, args)
        self.open.add(expr.function)
        inner.function(fn)
        self.open.discard(expr.function)
        self.back(expr, inner)
        return True

    def frame(self, expr: typed.Call, args: tuple[bool, ...], /) -> _Uniformity:
        path = (*self.path, id(expr))
        inner = self.known.get(path)
        if inner is None:
            if len(self.known) == _MOST_CALLS:
                raise _NoLanes(f"more than {_MOST_CALLS} calls of functions", expr.span)
            inner = self.known[path] = evolve(
                self, path=path, slots={}, returned=False, declared={}, loops={}
            )
        assert isinstance(inner, _Uniformity)  # noqa: S101 - made here
        inner.start = inner.control = self.control
        for i, (param, arg, fact) in enumerate(
            zip(self.fns[expr.function].params, expr.args, args, strict=True)
        ):
            inner.declared[i] = self.since(arg) if param.ref else self.control
            inner.bind(i, fact)
        return inner

    def opaque(self, expr: typed.Call, _args: tuple[bool, ...], /) -> bool:
        self.refuse("a function that calls itself", expr)
        return True

    def back(self, expr: typed.Call, inner: Reading[bool], /) -> None:
        for i, (param, arg) in enumerate(zip(self.fns[expr.function].params, expr.args, strict=True)):
            source = root(arg)
            if param.ref and isinstance(source, typed.Local):
                self.bind(source.slot, inner.slots[i])
