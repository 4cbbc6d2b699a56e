"""The code of one block of firings: a lane per firing, what does not vary once for all.

What does not vary is made by the scalar code; a trap in it leaves for `frame.exit`, where the block is done again firing by
firing. Lanes that trap are remembered, and looked at when the block is done. A branch whose condition varies runs both
sides, each under a mask: lanes outside of it keep their variables and do not trap. Items are kept until the block is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from backends.native.idioms import if_
from backends.native.lanes import operations
from backends.native.lanes.indices import filled, repeated, sum_of
from backends.native.lanes.leaves import has_arrays, leaves, room
from backends.native.lanes.places import LaneValue, Vector
from backends.native.lanes.uniformity import sends
from backends.native.lanes.vectors import Found, Same, Vectors, registers
from backends.native.layout import Unsupported
from backends.native.lower import expressions as scalar
from backends.native.lower.frame import Loop
from backends.native.lower.statements import statement
from backends.native.lower.values import Memory, Scalar, Value
from river.classes import define, evolve, field
from river.lang import typed
from river.lang import types as t
from river.lang.rates import bounds, emitted
from river.lang.trees import nodes, reached, root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backends.native.lanes.prefetch import Prefetch
    from backends.native.lanes.uniformity import Lanes, Path

Names = dict[int, tuple[Vector | LaneValue, int]]

UNROLLED: Final = 128
"""Turns of a loop that is written out."""


@define(eq=False, repr=False)
class Body(Vectors):
    """A block of firings. `names`: slots that vary, each with the control it is declared under."""

    plan: Lanes = field(kw_only=True)
    names: Names = field(factory=dict[int, "tuple[Vector | LaneValue, int]"])
    items: dict[int, LaneValue] = field(factory=dict[int, LaneValue])  # by output
    sent: dict[int, int | None] = field(factory=dict[int, "int | None"])  # so far; None: in a counter
    counters: dict[int, str] = field(factory=dict[int, str])
    path: Path = ()
    prefetch: Prefetch | None = None
    last: typed.Stmt | None = None  # of the handler
    unread: set[int] = field(factory=set[int])  # variables, by identity, of which nobody reads the zeros

    def bind(self, slot: int, value: Vector | LaneValue) -> None:
        """Gives a slot a value that varies. The scalar code may only ask an array for its length."""
        self.names[slot] = (value, self.control)
        if has_arrays(value.type):
            self.f.slots[slot] = Memory(value.type, "null")

    def outputs(self) -> None:
        """Makes room for the items."""
        for i, count in enumerate(self.plan.counts):
            self.sent[i] = 0
            if count:
                self.counters[i] = self.b.slot("i64")
                self.items[i] = self.place(t.Array(self.f.operator.outs[i].type, count))

    def varies(self, node: typed.Node) -> bool:
        """Whether something in a node varies, or is emitted."""
        return (self.path, id(node)) in self.plan.varying

    # --------------------------------------------------------------------------------------- expressions

    def value(self, expr: typed.Expr) -> Found:
        """The value of an expression: of the scalar code where nothing varies, a place where it has arrays."""
        found = self.lazily(expr)
        return self.read(found) if isinstance(found, LaneValue) and not has_arrays(found.type) else found

    def lazily(self, expr: typed.Expr) -> Found:
        """The value, not yet read if it is part of a place."""
        if not self.varies(expr):
            return scalar.value(self.f, expr)
        match expr:
            case typed.Local(_, slot, _, _):
                return self.names[slot][0]
            case typed.Get(_, value, index, _):
                return self.field(self.lazily(value), index)
            case typed.At(_, value, index, site):
                container = self.lazily(value)
                return self.element(container, self.index(index, container.type, site))
            case typed.Apply():
                return self.apply(expr)
            case typed.Call():
                return self.call(expr)
            case typed.If(_, cond, then, other):
                return self.choice(expr, cond, lambda: self.value(then), lambda: self.value(other))
            case typed.Logic(_, op, left, right):
                known = Scalar(t.BOOL, "false" if op == "and" else "true")
                sides = (lambda: self.value(right), lambda: known)
                return self.choice(expr, left, *(sides if op == "and" else sides[::-1]))
            case typed.MakeRecord(type_, values, order):
                found = {i: self.value(values[i]) for i in order}
                if not has_arrays(type_):
                    parts = [self.read(found[i]) for i in range(len(values))]
                    return Vector(type_, tuple(reg for part in parts for reg in part.regs))
                place = self.place(type_)
                for i, each in found.items():
                    self.write(self.part(place, i), each, masked=False)
                return place
            case typed.MakeList(type_, values):
                place = self.place(type_)
                for i, each in enumerate([self.value(one) for one in values]):
                    self.write(self.inner(place, str(i)), each, masked=False)
                return place
            case (
                typed.Literal()
                | typed.State()
                | typed.ConstRef()
                | typed.Some()
                | typed.MakeMap()
                | typed.Comprehension()
            ):
                raise Unsupported("this in lanes")
            case _:
                assert_never(expr)

    def index(self, expr: typed.Expr, container: t.Type, site: int) -> str:
        """An index inside an array."""
        assert isinstance(container, t.Array)  # noqa: S101 - nothing else varies
        found = self.f.reg(scalar.value(self.f, expr))
        if expr.type == t.I32:
            found = self.b.op(f"sext i32 {found} to i64")
        if not (found.isdigit() and int(found) < container.size):
            self.f.trap_if(self.b.op(f"icmp uge i64 {found}, {container.size}"), "index-range", site)
        return found

    def apply(self, expr: typed.Apply) -> Found:
        args = [arg for arg in expr.args if not isinstance(arg, typed.Lambda)]
        values = [self.value(arg) for arg in args]
        if operations.fills(expr):
            place = self.place(expr.type)
            self.write(place, Same(expr.type, values[0]), masked=False)
            return place
        if not operations.covered(expr):
            raise Unsupported(f"`{expr.operation}` in lanes")
        regs = [self.read(value).regs[0] for value in values]
        rule, _ = operations.RULES[expr.operation]
        return Vector(expr.type, (rule(self, expr, regs, [arg.type for arg in args]),))

    def choice(
        self, expr: typed.Expr, cond: typed.Expr, then: Callable[[], Found], other: Callable[[], Found]
    ) -> Found:
        """One of two values without arrays."""
        if not self.varies(cond):
            place = self.place(expr.type)
            if_(
                self.b, self.f.reg(scalar.value(self.f, cond)),
                lambda: self.write(place, then(), masked=False), lambda: self.write(place, other(), masked=False),
            )  # fmt: skip
            return self.read(place)
        chosen = self.read(self.value(cond)).regs[0]
        sides: list[Vector] = []
        for mask, make in ((chosen, then), (None, other)):
            self.under(
                self.opposite(chosen) if mask is None else mask,
                lambda make=make: sides.append(self.side(expr, make)),
            )
        return Vector(expr.type, tuple(
            self.select(chosen, self.vector(operations.kind(leaf)), a, b)
            for (leaf, _), a, b in zip(leaves(expr.type), sides[0].regs, sides[1].regs, strict=True)
        ))  # fmt: skip

    def side(self, expr: typed.Expr, make: Callable[[], Found]) -> Vector:
        """A side of a choice. One that calls functions, which need not end, is left out if no lane takes it."""
        if not any(isinstance(each, typed.Call) for each in reached(expr, self.f.operator.fns)):
            return self.read(make())
        assert self.mask is not None  # noqa: S101 - inside of `under`
        place = self.place(expr.type)
        self.clear(place)
        if_(self.b, self.some(self.mask), lambda: self.write(place, make(), masked=False))
        return self.read(place)

    def call(self, expr: typed.Call) -> Found:
        """The body of a function in the place of its call."""
        f, fn = self.f, self.f.operator.fns[expr.function]
        slots: dict[int, Value] = {}
        names: dict[int, tuple[Vector | LaneValue, int]] = {}
        for i, (arg, param) in enumerate(zip(expr.args, fn.params, strict=True)):
            if param.ref:
                found, control = self.target(arg)
            else:
                found, control = self.value(arg), self.control
            assert not isinstance(found, Same)  # noqa: S101 - only writers know of those
            if isinstance(found, Vector | LaneValue):
                names[i] = (found, control)
                if has_arrays(found.type):
                    slots[i] = Memory(found.type, "null")
            else:
                slots[i] = found if param.ref else f.snapshot(found)
        if fn.emits:
            self.count(range(len(f.operator.outs)))
        saved = (f.slots, self.names, self.path, f.finish, f.loops, f.result_owned, f.flags)
        f.slots, self.names, self.path = slots, names, (*self.path, id(expr))
        f.loops, f.result_owned, f.flags = {}, frozenset(), {}
        result = None if fn.result == t.UNIT else self.place(fn.result)
        after = self.b.fresh("returned")

        def finish(value: Found | None) -> None:
            if result is not None and value is not None:
                self.write(result, value, masked=False)
            self.b.go(after)

        f.finish = finish  # pyright: ignore[reportAttributeAccessIssue] - of vectors, too
        if isinstance(fn.body, typed.Block):
            self.block(fn.body)
            if not self.b.ended:
                finish(None)
        else:
            finish(self.value(fn.body))
        f.slots, self.names, self.path, f.finish, f.loops, f.result_owned, f.flags = saved
        self.b.at(after)
        return Scalar(t.UNIT, "0") if result is None else result

    def target(self, place: typed.Expr) -> tuple[Found, int]:
        """What a place names, and the control under which it is declared."""
        if not self.varies(place):
            return scalar.place(self.f, place)(), self.control
        source = root(place)
        assert isinstance(source, typed.Local)  # noqa: S101 - nothing else varies
        return self.lazily(place), self.names[source.slot][1]

    # ---------------------------------------------------------------------------------------- statements

    def block(self, body: typed.Block) -> None:
        """The statements one after the other."""
        for i, item in enumerate(body.items):
            if isinstance(item, typed.Var) and _is_zero(item.value) and filled(item, body.items[i + 1 :]):
                self.unread.add(id(item))
            if self.varies(item):
                self.statement(item)
            else:
                statement(self.f, item)

    def statement(self, item: typed.Stmt) -> None:
        """A statement in which something varies, or which emits."""
        f = self.f
        match item:
            case typed.Let(slot, _, expr):
                found = self.value(expr)
                assert isinstance(found, Vector | LaneValue)  # noqa: S101 - it varies
                self.bind(slot, found)
            case typed.Var(slot, _, expr):
                self.variable(slot, expr, zeros=id(item) not in self.unread)
            case typed.Assign(target, expr):
                self.assign(target, expr)
            case typed.Branch():
                self.branch(item)
            case typed.For():
                self.loop(item)
            case typed.While(number, cond, body):
                self.count(sends(f.operator, body))
                again, inside, after = (self.b.fresh(name) for name in ("while", "inside", "left"))
                f.loops[number] = Loop(after, again, len(f.cleanups))
                self.b.at(again)
                f.poll()
                self.b.branch(f.reg(scalar.value(f, cond)), inside, after)
                self.b.at(inside)
                self.block(body)
                self.b.go(again)
                self.b.at(after)
            case typed.Return(expr):
                assert f.finish is not None  # noqa: S101 - every function has one
                f.finish(None if expr is None else self.value(expr))  # pyright: ignore[reportArgumentType] - of vectors, too
            case typed.Emit(out, expr):
                self.emit(out, self.value(expr))
            case typed.Trap():
                self.hit(operations.splat(self, "i1", "true"))
            case typed.Do(effect):
                self.value(effect)
            case typed.Break() | typed.Continue() | typed.With() | typed.Drop() | typed.Mark():
                raise Unsupported("this in lanes")
            case _:
                assert_never(item)

    def variable(self, slot: int, expr: typed.Expr, *, zeros: bool) -> None:
        """A new variable. `zeros`: somebody reads that it begins with them, if it does."""
        place = self.place(expr.type)
        if _is_zero(expr):
            if zeros:
                self.clear(place)
        else:
            self.write(place, self.value(expr), masked=False)
        self.bind(slot, place)

    def assign(self, target: typed.Expr, expr: typed.Expr) -> None:
        """`place = e`: the indices of the place come first; of arrays the value is complete before it is written."""
        to, control = self.target(target)
        assert isinstance(to, LaneValue)  # noqa: S101 - it varies
        found = self.value(expr)
        if isinstance(found, LaneValue):
            copy = self.place(to.type)
            self.write(copy, found, masked=False)
            found = copy
        self.write(to, found, masked=self.control > control)

    def emit(self, out: int, value: Found) -> None:
        """One more item, if the output has room for it; if not, the block is done again."""
        b, sent, count = self.b, self.sent[out], self.plan.counts[out]
        if sent is None:
            index = b.op(f"load i64, ptr {self.counters[out]}")
            there = b.fresh("room")
            b.branch(b.op(f"icmp uge i64 {index}, {count}"), self.f.exit, there, rare=True)
            b.at(there)
            b.do(f"store i64 {b.op(f'add nsw i64 {index}, 1')}, ptr {self.counters[out]}")
        else:
            index = str(sent)
            self.sent[out] = sent + 1
            if sent >= count:
                b.go(self.f.exit)
                return
        self.write(self.inner(self.items[out], index), value, masked=True)

    def count(self, outs: Iterable[int]) -> None:
        """From here on these outputs count their items when the code runs."""
        for out in outs:
            sent = self.sent[out]
            if out in self.counters and sent is not None:
                self.b.do(f"store i64 {sent}, ptr {self.counters[out]}")
                self.sent[out] = None

    def complete(self) -> None:
        """Leaves for `frame.exit` unless each output has its number of items."""
        for out, counter in self.counters.items():
            sent, count = self.sent[out], self.plan.counts[out]
            if sent is None:
                found = self.b.op(f"load i64, ptr {counter}")
                on = self.b.fresh("counted")
                self.b.branch(self.b.op(f"icmp ne i64 {found}, {count}"), self.f.exit, on, rare=True)
                self.b.at(on)
            elif sent != count:
                self.b.go(self.f.exit)

    def branch(self, item: typed.Branch) -> None:
        b, f, other = self.b, self.f, item.other
        if isinstance(item.cond, typed.Bind) or not self.varies(item.cond):
            self.count(sends(f.operator, item))
            rest = None if other is None else lambda: self.block(other)
            if not isinstance(item.cond, typed.Bind):
                if_(b, f.reg(scalar.value(f, item.cond)), lambda: self.block(item.then), rest)
                return
            slot, found = item.cond.slot, scalar.value(f, item.cond.value)
            found = found if isinstance(found, Scalar) else f.snapshot(found)

            def then() -> None:
                f.slots[slot] = f.inner(found)
                self.block(item.then)

            if_(b, f.present(found), then, rest)
            return
        chosen = self.read(self.value(item.cond)).regs[0]
        if self.skipped(item.then) or (other is not None and self.skipped(other)):
            self.count(sends(f.operator, item))
        before = {out: self.sent[out] for out in sends(f.operator, item)}
        starts = {out: b.op(f"load i64, ptr {self.counters[out]}") for out, n in before.items() if n is None}
        self.under(chosen, lambda: self.masked(item.then))
        if other is not None:
            self.sent |= before
            for out, start in starts.items():
                b.do(f"store i64 {start}, ptr {self.counters[out]}")
            self.under(self.opposite(chosen), lambda: self.masked(other))
        for out, start in starts.items():
            count, _ = emitted(item.then, out, f.operator.fns)
            b.do(f"store i64 {b.op(f'add nsw i64 {start}, {count}')}, ptr {self.counters[out]}")

    def skipped(self, body: typed.Block) -> bool:
        """Whether a block is to be left out if no lane takes part: one with loops, for only then it is sure to end."""
        loops = (typed.For, typed.While, typed.Call, typed.Comprehension)
        return any(isinstance(each, loops) for each in reached(body, self.f.operator.fns))

    def masked(self, body: typed.Block) -> None:
        """A block under a mask."""
        assert self.mask is not None  # noqa: S101 - inside of `under`
        if self.skipped(body):
            if_(self.b, self.some(self.mask), lambda: self.block(body))
        else:
            self.block(body)

    def beside(self) -> None:
        """Beside a square of items."""
        if self.prefetch is not None:
            self.prefetch.square()

    def turn(self, item: typed.For) -> None:
        """A turn of a loop.

        If every turn reads the same of an array, and more than registers hold, the optimiser shall not know that this stays
        as it is: it would read it before the loop, and keep it in memory once more.
        """
        if self.prefetch is not None:
            self.prefetch.turn(item)
        before = self.names
        for slot, count in repeated(item).items():
            value, control = before.get(slot, (None, 0))
            if not isinstance(value, LaneValue) or not isinstance(value.type, t.Array):
                continue
            if count * room(value.type.item, self.lanes) > registers():
                self.names = {**self.names, slot: (self.hidden(value), control)}
        self.block(item.body)
        self.names = before

    def hidden(self, value: LaneValue) -> LaneValue:
        """The same place, at addresses of which nothing is known."""
        found = (
            evolve(leaf, base=self.b.op(f'call ptr asm sideeffect "", "=r,0"(ptr {leaf.base})'))
            for leaf in value.leaves
        )
        return evolve(value, leaves=tuple(found))

    def lent(self, item: typed.For) -> bool:
        """Whether a loop, the last statement, sends all that an output gets as it lies in an array: then it is left out."""
        match item:
            case typed.For(
                _, (slot,), _, typed.Counted() as range_,
                typed.Block((typed.Emit(out, typed.At(type_, typed.Local(of, array) as source, index)),)),
            ) if item is self.last and isinstance(of, t.Array) and self.varies(source):  # fmt: skip
                ends, found, (value, _) = bounds(range_), sum_of(index), self.names[array]
            case _:
                return False
        count = self.plan.counts[out]
        if (
            ends is None
            or found is None
            or found.factors != {slot: 1}
            or self.sent[out] != 0
            or ends[1] - ends[0] != count
        ):
            return False
        first = ends[0] + found.base
        if not (0 <= first <= of.size - count and isinstance(value, LaneValue)) or has_arrays(type_):
            return False
        if any(leaf.phases or leaf.step != self.lanes for leaf in value.leaves):
            return False
        part = self.inner(value, str(first))
        found_leaves = (
            evolve(leaf, base=self.address(leaf, at)) for leaf, at in zip(part.leaves, part.at, strict=True)
        )
        self.items[out] = LaneValue(t.Array(type_, count), tuple(found_leaves), ("0",) * len(part.leaves))
        self.sent[out] = count
        return True

    def by_phases(self, item: typed.For) -> bool:
        """Whether a short loop reads items that are dealt to phases, by its counter.

        Written out, it need not divide the index of each by their number, which takes longer than to multiply and add.
        """
        ends = bounds(item.range) if isinstance(item.range, typed.Counted) else None
        if ends is None or not 0 < ends[1] - ends[0] <= UNROLLED or self.skipped(item.body):
            return False
        return any(
            isinstance(node, typed.At)
            and isinstance(node.value, typed.Local)
            and isinstance(found := self.names.get(node.value.slot, (None, 0))[0], LaneValue)
            and any(leaf.phases for leaf in found.leaves)
            and (index := sum_of(node.index)) is not None
            and item.slots[0] in index.factors
            for node in nodes(item.body)
        )

    def loop(self, item: typed.For) -> None:
        if self.lent(item):
            return
        f, slots = self.f, item.slots
        self.count(sends(f.operator, item.body))

        def labels(leave: str, again: str) -> None:
            f.loops[item.loop] = Loop(leave, again, len(f.cleanups))

        if isinstance(item.range, typed.Counted) or not self.varies(item.range):
            scalar.loop(f, item.range, slots, lambda: self.turn(item), labels, unrolled=self.by_phases(item))
            return
        container = self.lazily(item.range)
        assert isinstance(container.type, t.Array)  # noqa: S101 - nothing else varies
        size = str(container.type.size)
        number = typed.Counted(typed.Literal(t.I64, 0), typed.Literal(t.I64, int(size)))
        first = slots[0] if len(slots) == 2 else -1

        def each() -> None:
            found = self.element(container, f.reg(f.slots[first]))
            found = found if has_arrays(found.type) else self.read(found)
            assert isinstance(found, Vector | LaneValue)  # noqa: S101 - it varies
            self.bind(slots[-1], found)
            self.block(item.body)

        scalar.loop(f, number, (first,), each, labels)


def _is_zero(expr: typed.Expr) -> bool:
    return isinstance(expr, typed.Apply) and expr.operation == "zero"
