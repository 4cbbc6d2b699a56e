"""Whether what an operator does shows the order in which the rows stand inside a delta (il.md P3).

Nothing but that order may change when the operators before are replicated, or run in parts. A list made of the rows one by
one stands in their order, and so do maps and bags that are filled in a loop over them; what the operations of the table
let through of that order is what they state. A loop over rows handles them one by one: what it leaves behind must not tell
which was the last, so it may only accumulate.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from river.classes import define, evolve, field, frozen
from river.il.annotations import row_type
from river.il.flow import accumulation, is_closed, other_operands
from river.lang import typed
from river.lang import types as t
from river.lang.dataflow import Loop, Reading
from river.lang.operations import OPERATIONS, Borrows, Change, Order
from river.lang.operations.effects import is_exact
from river.lang.operations.table import strip
from river.lang.trees import effect, nodes, root

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

APPENDED: Final = "appended"
"""Items that are put at the end of one list: their order is that of the rows, whatever else it is."""


class Arranged(Enum):
    """What of a value shows the order of rows."""

    NOT = "nothing"
    ROWS = "a container's order of its items, and nothing else"
    WITHIN = "something inside it"


@frozen
class Parts:
    """A record or tuple, by its fields."""

    values: tuple[Fact, ...]


Fact = Arranged | Parts
NOT, ROWS, WITHIN = Arranged.NOT, Arranged.ROWS, Arranged.WITHIN


def shows(fact: Fact) -> bool:
    """Whether anything of a value shows the order of rows."""
    return any(map(shows, fact.values)) if isinstance(fact, Parts) else fact is not NOT


def reads_rows_in_order(op: typed.Operator) -> bool:
    """Whether a firing on an item shows the order of the rows inside it, in its outputs or in what it leaves behind.

    Of variables only what is put into them: that they are used otherwise than by accumulating is `flow`'s to find.
    """
    for handler in op.items:
        if row_type(op.ports[handler.port].type) is None:
            continue
        shared = _Shared()
        reading = _RowReading(op.fns, {0: Parts((NOT, ROWS, ROWS))}, NOT, op=op, shared=shared)
        reading.settle(lambda reading=reading, handler=handler: reading.block(handler.body))
        if shared.reads:
            return True
    return False


def shows_entries(fns: tuple[typed.Fn, ...], function: int) -> bool:
    """Whether the rows that a function returns, as a bag, show in which order the entries of maps in its parameters stand."""
    fn = fns[function]
    shared = _Shared()
    facts = {i: _entries(param.type) for i, param in enumerate(fn.params)}
    op = typed.Operator(fn.name, (), (), (), (), fns, ())
    reading = _RowReading(fns, dict(facts), NOT, op=op, shared=shared)
    reading.settle(lambda: reading.function(fn))
    return shared.reads or reading.returned not in (NOT, ROWS)


def _entries(type_: t.Type) -> Fact:
    """What shows the order of entries in a value of a type, where that of all maps and bags in it is unknown."""
    match type_:
        case t.Map() | t.Bag():
            return WITHIN if any(_entries(part) is not NOT for part in t.parts(type_)) else ROWS
        case t.Record() | t.Tuple():
            facts = tuple(map(_entries, t.parts(type_)))
            return Parts(facts) if any(map(shows, facts)) else NOT
        case _:
            return WITHIN if t.contains(type_, t.Map, t.Bag) else NOT


@frozen
class Root:
    """A local that a place is in: its frame and slot, and in how many loops over rows it was declared."""

    frame: int
    slot: int
    loops: int


@define(eq=False)
class _Shared:
    """What the readings of one body find together.

    `steps`: by which names a local accumulates in an open loop over rows; `begun`: with what entries inside it begin there.
    `frames`: the numbers of frames by the calls that they are of. A call that is read again has the number that it had: with
    new locals each time there would be something new to find for ever.
    """

    reads: bool = False
    steps: dict[tuple[int, Root], set[str]] = field(factory=dict["tuple[int, Root]", set[str]])
    begun: dict[tuple[int, Root], set[tuple[t.Type, typed.Expr]]] = field(
        factory=dict["tuple[int, Root]", "set[tuple[t.Type, typed.Expr]]"]
    )
    frames: dict[Hashable, int] = field(factory=dict["Hashable", int])


@define(eq=False, kw_only=True)
class _RowReading(Reading[Fact]):
    """The reading of one body, or of one call.

    `over`: the loops over rows that are open, and `outside` how many of them were when the frame began. `loops`: all open
    loops of the frame, and whether they are over rows. `roots`: the locals that places are in; `homes`: in this frame.
    """

    op: typed.Operator
    shared: _Shared
    over: tuple[int, ...] = ()
    outside: int = 0
    loops: list[tuple[int, bool]] = field(factory=list["tuple[int, bool]"])
    roots: dict[int, Root | None] = field(factory=dict[int, "Root | None"])
    homes: dict[int, int] = field(factory=dict[int, int])
    number: int = 0

    # -- the lattice

    def join(self, a: Fact, b: Fact) -> Fact:
        match a, b:
            case Parts(left), Parts(right) if len(left) == len(right):
                return Parts(tuple(map(self.join, left, right)))
            case Arranged.NOT, _:
                return b
            case _, Arranged.NOT:
                return a
            case _:
                return a if a == b else WITHIN

    def nothing(self) -> Fact:
        return NOT

    def found(self) -> Hashable:
        steps = (*self.shared.steps.values(), *self.shared.begun.values())
        return self.shared.reads, sum(map(len, steps))

    # -- what shows

    def show(self, fact: Fact = WITHIN) -> None:
        """A value of this fact shows in any way."""
        self.shared.reads = self.shared.reads or shows(fact)

    def decide(self, _node: typed.Branch | Loop, fact: Fact, /) -> None:
        self.show(fact)

    def send(self, item: typed.Emit | typed.Mark) -> None:
        fact = self.of(item.value)
        delta = isinstance(item, typed.Emit) and row_type(self.op.outs[item.out].type) is not None
        if self.over:
            self.show()  # the items leave in the order of the rows
        elif delta and isinstance(fact, Parts):
            for value in fact.values:
                self.show(NOT if value is ROWS else value)
        else:
            self.show(fact)

    # -- loops

    def open_loop(self, node: typed.Node, name: int, fact: Fact, *, positions: bool) -> None:
        """A loop over a container of this fact begins."""
        rows = fact is ROWS
        self.show(fact if not rows or positions else NOT)
        self.loops.append((name, rows))
        if rows:
            self.over = (*self.over, id(node))

    def close_loop(self) -> bool:
        """The innermost loop has been read; whether it was over rows."""
        _, rows = self.loops.pop()
        if rows:
            self.over = self.over[:-1]
        return rows

    def items(self, loop: typed.For | typed.Comprehension, fact: Fact | None) -> tuple[Fact, ...]:
        pairs = not isinstance(loop.range, typed.Counted) and isinstance(loop.range.type, t.Map | t.OMap)
        name = loop.loop if isinstance(loop, typed.For) else -1
        self.open_loop(loop, name, NOT if fact is None else fact, positions=len(loop.slots) > 1 and not pairs)
        return (NOT,) * len(loop.slots)

    def repeat(self, loop: typed.While) -> None:
        self.open_loop(loop, loop.loop, NOT, positions=False)

    def looped(self, loop: Loop) -> None:
        if not isinstance(loop, typed.Comprehension):
            self.close_loop()

    def given(
        self, _expr: typed.Apply, function: typed.Lambda, facts: tuple[Fact, ...], /
    ) -> tuple[Fact, ...]:
        self.open_loop(function, -1, facts[0] if facts else NOT, positions=False)
        return (NOT,) * len(function.slots)

    def applied(self, _expr: typed.Apply, _function: typed.Lambda, /) -> None:
        self.close_loop()

    def leave(self, item: typed.Break | typed.Continue | typed.Return) -> None:
        """Whether a row is handled must not depend on those before it."""
        names = [name for name, _ in self.loops]
        match item:
            case typed.Break(loop):
                left = self.loops[names.index(loop) :]
            case typed.Continue(loop):
                left = self.loops[names.index(loop) + 1 :]
            case typed.Return():
                left = self.loops
        if any(rows for _, rows in left):
            self.show()

    # -- places

    def declare(self, slot: int, fact: Fact) -> None:
        self.roots[slot] = Root(self.number, slot, len(self.over))
        self.homes.pop(slot, None)
        self.bind(slot, fact)

    def root_of(self, slot: int) -> Root | None:
        """The local that the place in a slot is in; None for a variable."""
        return self.roots.get(slot, Root(self.number, slot, self.outside))

    def root(self, place: typed.Expr | typed.Lambda) -> Root | None:
        """The local that a place is in; None for variables."""
        base = _base(place)
        return None if base is None else self.root_of(base)

    def inside(self, root: Root | None) -> tuple[int, ...]:
        """The open loops over rows in which a local was not declared."""
        return () if root is None else self.over[root.loops :]

    def local(self, expr: typed.Local) -> Fact:
        self.look(self.root_of(expr.slot))
        return self.slots.get(expr.slot, NOT)

    def look(self, root: Root | None) -> None:
        """A local is read: it must not show what the rows before this one have left in it."""
        for loop in self.inside(root):
            assert root is not None  # noqa: S101 - it is inside of none
            if (loop, root) in self.shared.steps or (loop, root) in self.shared.begun:
                self.show()

    def target(self, place: typed.Expr) -> Fact:
        base = _base(place)
        fact = NOT if base is None else self.slots.get(base, NOT)
        deep = False
        while isinstance(place, typed.Get | typed.At):
            if isinstance(place, typed.At):
                self.show(self.of(place.index))
                self.show(NOT if isinstance(place.value.type, t.Map | t.OMap) else fact)
            place, deep = place.value, True
        return (fact if fact is WITHIN else NOT) if deep else fact

    def step(self, root: Root | None, name: str | None) -> None:
        """Something in a local is changed: accumulated into by `name`, or in any other way."""
        for loop in self.inside(root):
            assert root is not None  # noqa: S101 - it is inside of none
            if name is None:
                self.show()
                return
            names = self.shared.steps.setdefault((loop, root), set())
            names.add(name)
            self.show(WITHIN if len(names) > 1 else NOT)

    def put(self, place: typed.Expr | typed.Lambda, fact: Fact) -> None:
        """Something of this fact is put into a place, or into a container there."""
        if not shows(fact):
            return
        slot = _base(place)
        if slot is None:
            self.show()
            return
        whole = isinstance(place, typed.Local) and slot not in self.homes
        while slot in self.homes:
            slot = self.homes[slot]
        self.bind(slot, fact if whole else WITHIN)

    def arranged(self, place: typed.Expr | typed.Lambda) -> None:
        """Items are put into a container: in a loop over rows they come in their order."""
        if self.inside(self.root(place)):
            self.put(place, ROWS)

    # -- statements

    def assign(self, item: typed.Assign) -> None:
        place, value = item.place, item.value
        self.target(place)
        name, others = accumulation(place, value), other_operands(place, value)
        if name is not None and others is not None:
            for other in others:
                self.show(self.of(other))
            self.step(self.root(place), name)
            return
        match value:
            case typed.Apply(_, _, (first, more), _) if (
                first == place and effect(value).appends and not isinstance(more, typed.Lambda)
            ):
                fact = self.of(more)
                self.show(NOT if fact is ROWS else fact)
                self.step(self.root(place), APPENDED)
                self.arranged(place)
            case _:
                fact = self.of(value)
                self.step(self.root(place), None)
        self.put(place, fact)

    def enter(self, item: typed.With) -> None:
        fact = self.target(item.container)
        self.show(self.of(item.key))
        root, base = self.root(item.container), _base(item.container)
        self.roots[item.slot] = root
        if base is not None:
            self.homes[item.slot] = base
        self.bind(item.slot, WITHIN if fact is WITHIN else NOT)
        if item.default is None:
            self.look(root)
            return
        self.show(self.of(item.default))
        for loop in self.inside(root):
            assert root is not None  # noqa: S101 - it is inside of none
            begun = self.shared.begun.setdefault((loop, root), set())
            begun.add((item.default.type, item.default))
            if not is_closed(item.default) or len(begun) > len({type_ for type_, _ in begun}):
                self.show()  # how the entry begins depends on which row comes first
        self.arranged(item.container)

    def drop(self, item: typed.Drop) -> None:
        self.step(self.root_of(item.slot), None)

    # -- expressions

    def leaf(self, expr: typed.Literal | typed.ConstRef | typed.State) -> Fact:
        return NOT

    def made(self, expr: typed.Expr, facts: tuple[Fact, ...]) -> Fact:
        match expr:
            case typed.Get(_, _, index, _) if isinstance(facts[0], Parts):
                return facts[0].values[index]
            case typed.At(_, value, _, _) if isinstance(value.type, t.Map | t.OMap) and facts[0] is ROWS:
                self.show(facts[1])
                return NOT
            case typed.Apply():
                return self.operation(expr, facts)
            case typed.Some():
                return facts[0]
            case typed.If():
                self.show(facts[0])
                return self.join(facts[1], facts[2])
            case typed.MakeRecord():
                return Parts(facts) if any(map(shows, facts)) else NOT
            case typed.Comprehension():
                self.show(facts[0])
                return ROWS if self.close_loop() else NOT
            case _:
                for fact in facts:
                    self.show(fact)
                return NOT

    def operation(self, expr: typed.Apply, facts: tuple[Fact, ...]) -> Fact:
        """What the result of an operation shows is what the table states."""
        stated = effect(expr)
        if not facts:
            return NOT
        (first, *rest), kept = facts, facts[0]
        kind = strip(expr.args[0].type)
        for i, fact in enumerate(rest, 1):
            alike = stated.order is Order.KEEPS and strip(expr.args[i].type) == kind and i != stated.puts
            self.show(NOT if alike and fact is ROWS else fact)
            kept = ROWS if alike and fact is ROWS else kept
        if stated.borrows is Borrows.ITSELF:
            return first
        if stated.sorts and first is ROWS and _tells_apart(expr.args[1], expr.args[0]):
            return NOT
        if first is WITHIN or stated.order is Order.READS:
            self.show(first)
            kept = NOT
        elif stated.order is Order.IGNORES:
            kept = NOT
        elif isinstance(first, Parts):
            self.show(first)
        if OPERATIONS[expr.operation].mutates is None:
            return kept
        self.step(self.root(expr.args[0]), stated.combines or (APPENDED if stated.appends else None))
        if stated.change is Change.GROWS:
            self.arranged(expr.args[0])
        return NOT

    # -- functions

    def frame(self, expr: typed.Call, args: tuple[Fact, ...], /) -> _RowReading:
        frames = self.shared.frames
        return evolve(
            self,
            number=frames.setdefault(self.called(expr, args), len(frames) + 1),
            slots=dict(enumerate(args)),
            returned=NOT,
            outside=len(self.over),
            loops=[],
            roots=dict(self.lent(expr)),
            homes={},
        )

    def lent(self, expr: typed.Call) -> tuple[tuple[int, Root | None], ...]:
        """The places that a call may change, by parameter."""
        params = enumerate(zip(self.fns[expr.function].params, expr.args, strict=True))
        return tuple((i, self.root(arg)) for i, (param, arg) in params if param.ref)

    def called(self, expr: typed.Call, args: tuple[Fact, ...]) -> Hashable:
        """What is called with what, and where."""
        return expr.function, args, self.lent(expr), self.over

    def key(self, expr: typed.Call, args: tuple[Fact, ...]) -> Hashable:
        return self.called(expr, args), self.found()

    def opaque(self, expr: typed.Call, args: tuple[Fact, ...], /) -> Fact:
        for arg in args:
            self.show(arg)
        for _, lent in self.lent(expr):
            self.step(lent, None)
        return NOT

    def back(self, expr: typed.Call, inner: Reading[Fact]) -> None:
        for i, _ in self.lent(expr):
            self.put(expr.args[i], inner.slots[i])


def _tells_apart(function: typed.Expr | typed.Lambda, listed: typed.Expr | typed.Lambda) -> bool:
    """Whether items for which a function gives the same are the same: those of a list."""
    if not isinstance(function, typed.Lambda) or len(function.slots) != 1:
        return False
    (slot,) = function.slots
    parts = set(_parts_told(function.body, slot))
    item = next((n.type for n in nodes(function) if isinstance(n, typed.Local) and n.slot == slot), t.FSUM)
    whole = set(range(len(item.fields))) if isinstance(item, t.Record) else {None}
    return (is_exact(item) and (None in parts or whole <= parts)) or _tells_keys(parts, listed)


def _tells_keys(parts: set[int | None], listed: typed.Expr | typed.Lambda) -> bool:
    """Whether in these parts of its items a list, made of the entries of a map, has all of their keys, which differ."""
    match listed:
        case typed.Comprehension(_, typed.MakeRecord(_, values, _), (slot, _), _, map_) if not isinstance(
            map_, typed.Counted
        ) and isinstance(map_.type, t.Map | t.OMap):
            key = map_.type.key
            told = {
                part for at, value in enumerate(values) if at in parts for part in _parts_told(value, slot)
            }
            return None in told or (isinstance(key, t.Record) and told >= set(range(len(key.fields))))
        case _:
            return False


def _parts_told(expr: typed.Expr, slot: int) -> Iterator[int | None]:
    """The fields of the record in a slot that can be told from an expression; None: the whole of what is there."""
    match expr:
        case typed.Local(_, found, _, _) if found == slot:
            yield None
        case typed.Get(_, typed.Local(_, found, _, _), index, _) if found == slot:
            yield index
        case typed.MakeRecord(_, values, _):
            for value in values:
                yield from _parts_told(value, slot)
        case typed.Apply(_, _, (typed.Lambda(),), _):
            pass
        case typed.Apply(_, _, (operand,), _) if effect(expr).distinct and not isinstance(
            operand, typed.Lambda
        ):
            yield from _parts_told(operand, slot)
        case _:
            pass


def _base(place: typed.Expr | typed.Lambda) -> int | None:
    """The slot of the local that a place is in."""
    changed = root(place)
    return changed.slot if isinstance(changed, typed.Local) else None


__all__ = ["reads_rows_in_order", "shows_entries"]
