"""Forward data flow over the bodies of operators: what an analysis knows of each value, carried along the text.

An analysis gives a lattice of facts (`join`, and `nothing` below all others) and a transfer: the fact of a value from
those of its operands, and what statements do to what it has found. The walk is here: statements, the ways between which
a value chooses, loops, lambdas, comprehensions and the functions that are called, read again until nothing changes. Facts
only ever go up, and there are finitely many above each: so the reading ends.

Paper: Kildall, "A unified approach to global program optimization" (1973).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, assert_never

from river.classes import define, evolve, field
from river.lang import typed
from river.lang.operations import OPERATIONS
from river.lang.trees import operands

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

F = TypeVar("F")

Loop = typed.For | typed.While | typed.Comprehension
Choice = typed.Branch | typed.If | typed.Logic


@define(eq=False)
class Reading(ABC, Generic[F]):
    """The reading of one body, or of one call of a function: a fact for each slot of its frame.

    `known` holds the calls that were read, which are the same for equal facts of the arguments; `open` those that are
    being read. Both belong to all readings of one body.
    """

    depth: ClassVar[int] = 12
    """Calls inside calls that are read; what is deeper is taken for anything."""

    fns: tuple[typed.Fn, ...]
    slots: dict[int, F]
    returned: F
    known: dict[Hashable, Reading[F]] = field(factory=dict["Hashable", "Reading[F]"])
    open: set[Hashable] = field(factory=set["Hashable"])

    # -- the lattice

    @abstractmethod
    def join(self, a: F, b: F) -> F:
        """The least fact above two."""

    @abstractmethod
    def nothing(self) -> F:
        """The fact below all others: no value has been seen."""

    def found(self) -> Hashable:
        """Changes whenever the analysis has found something but facts of slots."""
        return None

    # -- the transfer: expressions

    @abstractmethod
    def leaf(self, expr: typed.Literal | typed.ConstRef | typed.State, /) -> F:
        """The fact of a value that comes from no other."""

    def local(self, expr: typed.Local) -> F:
        """The fact of a slot that is read."""
        return self.slots.get(expr.slot, self.nothing())

    def target(self, place: typed.Expr) -> F:
        """The fact of a place that is changed by an operation, or may be by a function."""
        return self.of(place)

    @abstractmethod
    def made(self, expr: typed.Expr, facts: tuple[F, ...], /) -> F:
        """The fact of a value from those of its operands (of a lambda: of its result; of a comprehension: of an item)."""

    @abstractmethod
    def given(self, expr: typed.Apply, function: typed.Lambda, facts: tuple[F, ...], /) -> tuple[F, ...]:
        """The facts of a lambda's parameters, from those of the operands that are values."""

    def applied(self, _expr: typed.Apply, _function: typed.Lambda, /) -> None:
        """A lambda has been read."""

    @abstractmethod
    def items(self, loop: typed.For | typed.Comprehension, fact: F | None, /) -> tuple[F, ...]:
        """The facts of a loop's names; `fact` is that of the container, None if the loop counts."""

    def repeat(self, _loop: typed.While, /) -> None:
        """A loop while a condition holds begins."""

    def looped(self, _loop: Loop, /) -> None:
        """The body of a loop has been read."""

    # -- the transfer: statements

    def declare(self, slot: int, fact: F, /) -> None:
        """A name is bound where it is introduced."""
        self.bind(slot, fact)

    def present(self, _bind: typed.Bind, fact: F, /) -> F:
        """The fact of an optional that is there."""
        return fact

    @abstractmethod
    def decide(self, node: typed.Branch | Loop, fact: F, /) -> None:
        """A value decides what is done: the condition of `node`, or a bound of what it counts."""

    def fork(self, fact: F, /) -> None:
        """The ways begin between which a value chooses, in a statement or in an expression."""

    def forked(self, _node: Choice, _fact: F, /) -> None:
        """They have been read; the fact is that of the value."""

    @abstractmethod
    def assign(self, item: typed.Assign, /) -> None:
        """A place gets a value; the operands are the analysis's to read."""

    @abstractmethod
    def enter(self, item: typed.With, /) -> None:
        """An entry becomes a place: declares its slot."""

    @abstractmethod
    def drop(self, item: typed.Drop, /) -> None:
        """An entry is removed."""

    @abstractmethod
    def send(self, item: typed.Emit | typed.Mark, /) -> None:
        """A value leaves; it is the analysis's to read."""

    def leave(self, _item: typed.Break | typed.Continue | typed.Return, /) -> None:
        """A loop or function is about to be left."""

    # -- the transfer: functions

    def frame(self, _expr: typed.Call, args: tuple[F, ...], /) -> Reading[F]:
        """The reading of a function that is called, its parameters in the first slots."""
        return evolve(self, slots=dict(enumerate(args)), returned=self.nothing())

    def key(self, expr: typed.Call, args: tuple[F, ...], /) -> Hashable:
        """What the reading of a call depends on."""
        return expr.function, args

    @abstractmethod
    def opaque(self, expr: typed.Call, args: tuple[F, ...], /) -> F:
        """The fact of a call within itself, of which nothing is known."""

    def back(self, expr: typed.Call, inner: Reading[F], /) -> None:
        """A function that was called has done this to its `ref` parameters."""

    # -- the walk

    def settle(self, read: Callable[[], None]) -> None:
        """Reads until nothing changes."""
        while True:
            before = dict(self.slots), self.returned, self.found()
            read()
            if before == (self.slots, self.returned, self.found()):
                return

    def bind(self, slot: int, fact: F) -> None:
        """A slot may hold a value of this fact, too."""
        self.slots[slot] = self.join(self.slots.get(slot, self.nothing()), fact)

    def block(self, body: typed.Block) -> None:
        """Reads statements."""
        for item in body.items:
            self.statement(item)

    def statement(self, item: typed.Stmt) -> None:
        """Reads a statement."""
        match item:
            case typed.Let(slot, _, value) | typed.Var(slot, _, value):
                self.declare(slot, self.of(value))
            case typed.Assign():
                self.assign(item)
            case typed.With():
                self.enter(item)
                self.block(item.body)
            case typed.Drop():
                self.drop(item)
            case typed.Branch():
                self.branch(item)
            case typed.For():
                self.loop(item)
                self.block(item.body)
                self.looped(item)
            case typed.While(_, cond, body):
                self.repeat(item)
                self.decide(item, self.of(cond))
                self.block(body)
                self.looped(item)
            case typed.Return(value):
                self.leave(item)
                if value is not None:
                    self.returned = self.join(self.returned, self.of(value))
            case typed.Emit() | typed.Mark():
                self.send(item)
            case typed.Do(call):
                self.of(call)
            case typed.Break() | typed.Continue():
                self.leave(item)
            case typed.Trap():
                pass
            case _:
                assert_never(item)

    def branch(self, item: typed.Branch) -> None:
        """Reads a condition and both ways."""
        if isinstance(item.cond, typed.Bind):
            fact = self.nothing()
            self.declare(item.cond.slot, self.present(item.cond, self.of(item.cond.value)))
        else:
            fact = self.of(item.cond)
            self.decide(item, fact)
        self.fork(fact)
        self.block(item.then)
        if item.other is not None:
            self.block(item.other)
        self.forked(item, fact)

    def loop(self, loop: typed.For | typed.Comprehension) -> None:
        """Reads the range of a loop and binds its names."""
        if isinstance(loop.range, typed.Counted):
            for fact in (self.of(loop.range.low), self.of(loop.range.high)):
                self.decide(loop, fact)
            facts = self.items(loop, None)
        else:
            facts = self.items(loop, self.of(loop.range))
        for slot, fact in zip(loop.slots, facts, strict=True):
            self.declare(slot, fact)

    def of(self, expr: typed.Expr) -> F:
        """The fact of an expression."""
        match expr:
            case typed.Literal() | typed.ConstRef() | typed.State():
                return self.leaf(expr)
            case typed.Local():
                return self.local(expr)
            case typed.Apply():
                return self.apply(expr)
            case typed.Call():
                return self.call(expr)
            case typed.Comprehension():
                self.loop(expr)
                if expr.cond is not None:
                    self.decide(expr, self.of(expr.cond))
                value = self.of(expr.value)
                self.looped(expr)
                return self.made(expr, (value,))
            case typed.If(_, typed.Literal(_, bool() as holds), then, other):  # as templates have it
                return self.of(then if holds else other)
            case typed.If(_, cond, then, other):
                return self.choice(expr, cond, (then, other))
            case typed.Logic(_, _, left, right):
                return self.choice(expr, left, (right,))
            case _:
                facts = (
                    self.of(each)
                    for each in operands(expr)
                    if not isinstance(each, typed.Lambda | typed.Counted)
                )
                return self.made(expr, tuple(facts))

    def choice(self, expr: typed.If | typed.Logic, cond: typed.Expr, ways: tuple[typed.Expr, ...]) -> F:
        """The fact of an expression that evaluates what a condition tells it to."""
        fact = self.of(cond)
        self.fork(fact)
        facts = tuple(map(self.of, ways))
        self.forked(expr, fact)
        return self.made(expr, (fact, *facts))

    def apply(self, expr: typed.Apply) -> F:
        """The fact of an operation's result."""
        changes = OPERATIONS[expr.operation].mutates is not None
        values = tuple(
            self.target(arg) if changes and i == 0 else self.of(arg)
            for i, arg in enumerate(expr.args)
            if not isinstance(arg, typed.Lambda)
        )
        if len(values) == len(expr.args):
            return self.made(expr, values)
        each = iter(values)
        facts: list[F] = []
        for arg in expr.args:
            if not isinstance(arg, typed.Lambda):
                facts.append(next(each))
                continue
            for slot, fact in zip(arg.slots, self.given(expr, arg, values), strict=True):
                self.declare(slot, fact)
            facts.append(self.of(arg.body))
            self.applied(expr, arg)
        return self.made(expr, tuple(facts))

    def call(self, expr: typed.Call) -> F:
        """The fact of a function's result: its body is read with the facts of the arguments."""
        params = self.fns[expr.function].params
        args = tuple(
            self.target(arg) if param.ref else self.of(arg)
            for param, arg in zip(params, expr.args, strict=True)
        )
        key = self.key(expr, args)
        if key in self.open or len(self.open) >= self.depth:
            return self.opaque(expr, args)
        inner = self.known.get(key)
        if inner is None:
            inner = self.frame(expr, args)
            self.open.add(key)
            inner.settle(lambda: inner.function(self.fns[expr.function]))
            self.open.discard(key)
            self.known[key] = inner
        self.back(expr, inner)
        return inner.returned

    def function(self, fn: typed.Fn) -> None:
        """Reads the body of a function."""
        if isinstance(fn.body, typed.Block):
            self.block(fn.body)
        else:
            self.returned = self.join(self.returned, self.of(fn.body))


__all__ = ["Loop", "Reading"]
