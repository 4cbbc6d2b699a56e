"""Bodies executed with unknowns in place of items: what is known is computed, the rest is what an analysis makes of it.

An unknown that decides what is done ends the execution, and so does what is more than computing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from river.classes import define, field, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import evaluate_const
from river.lang.operations import OPERATIONS
from river.lang.patience import GivenUp, giving_up
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Undecided(Exception):  # noqa: N818 - no error: whoever asked does without an answer
    """What a firing does cannot be said without its items."""


class Unknown:
    """The base of what stands for values that are not known."""

    __slots__ = ()


def constants(operator: typed.Operator) -> list[Any]:
    """The constants of an operator, to be executed with.

    Raises: Undecided with the reason, also where that takes very long: whether it ever ends cannot be said.
    """
    found: list[Any] = []
    poll = giving_up()
    for const in operator.consts:
        try:
            found.append(evaluate_const(const.value, operator.fns, found, const.slots, poll))
        except GivenUp as error:
            raise Undecided(f"computing `{const.name}` takes very long") from error
        except Exception as error:  # a trap, or too little room: it is told where it runs
            raise Undecided(f"`{const.name}` cannot be computed") from error
    return [thawed(value) for value in found]


@frozen
class _Leave:
    """How control leaves a statement: out of a loop, to its next turn (`again`), or out of the function (loop -1)."""

    loop: int
    again: bool = False
    value: Any = None


@define
class Run:
    """An execution. `outs`: what is sent; `left`: how many steps it may take; `state`: the variables, if it may keep something.

    Arrays and records are lists.
    """

    fns: Sequence[typed.Fn]
    consts: Sequence[Any]
    outs: Sequence[list[Any]]
    left: int
    state: list[Any] | None = None
    depth: int = 0
    operations: dict[int, Any] = field(
        factory=dict[int, Any], init=False
    )  # by expression, which the caller keeps

    def step(self, count: int = 1) -> None:
        """Counts what is done."""
        self.left -= count
        if self.left < 0:
            raise Undecided("a firing computes for very long")

    # -- statements

    def block(self, body: typed.Block, frame: list[Any]) -> _Leave | None:
        """Statements, one after the other."""
        for item in body.items:
            leave = self.statement(item, frame)
            if leave is not None:
                return leave
        return None

    def statement(self, item: typed.Stmt, frame: list[Any]) -> _Leave | None:
        """One statement."""
        match item:
            case typed.Let(slot, _, value) | typed.Var(slot, _, value):
                frame[slot] = copied(self.of(value, frame))
            case typed.Assign(place, value):
                found = copied(self.of(value, frame))
                self.assign(place, found, frame)
            case typed.Branch(cond, then, other) if not isinstance(cond, typed.Bind):
                if self.decided(cond, frame):
                    return self.block(then, frame)
                return None if other is None else self.block(other, frame)
            case typed.For(loop, (slot,), _, typed.Counted(low, high), body):
                for value in range(self.decided(low, frame), self.decided(high, frame)):
                    frame[slot] = value
                    leave = self.block(body, frame)
                    if leave is not None and leave != _Leave(loop, again=True):
                        return None if leave.loop == loop else leave
            case typed.While(loop, cond, body):
                while self.decided(cond, frame):
                    self.step()
                    leave = self.block(body, frame)
                    if leave is not None and leave != _Leave(loop, again=True):
                        return None if leave.loop == loop else leave
            case typed.Return(value):
                return _Leave(-1, value=None if value is None else copied(self.of(value, frame)))
            case typed.Break(loop):
                return _Leave(loop)
            case typed.Continue(loop):
                return _Leave(loop, again=True)
            case typed.Emit(out, value):
                self.outs[out].append(copied(self.of(value, frame)))
            case typed.Do(call):
                self.of(call, frame)
            case typed.Trap():
                raise Undecided("a firing traps")
            case typed.Branch() | typed.For() | typed.With() | typed.Drop() | typed.Mark():
                raise Undecided("a firing does more than compute numbers")
            case _:
                assert_never(item)
        return None

    def assign(self, place: typed.Expr, value: Any, frame: list[Any]) -> None:
        """`place = value`."""
        match place:
            case typed.Local(_, slot):
                frame[slot] = value
            case typed.State(_, index) if self.state is not None:
                self.state[index] = value
            case typed.At(_, inner, index):
                self.of(inner, frame)[self.index(inner, index, frame)] = value
            case typed.Get(_, inner, index):
                self.of(inner, frame)[index] = value
            case _:
                raise Undecided("a firing keeps something")

    # -- expressions

    def decided(self, expr: typed.Expr, frame: list[Any]) -> Any:
        """A value that does not depend on items."""
        found = self.of(expr, frame)
        if isinstance(found, Unknown):
            raise Undecided("an item decides what a firing does")
        return found

    def index(self, value: typed.Expr, index: typed.Expr, frame: list[Any]) -> int:
        """An index of an array."""
        found = self.decided(index, frame)
        if not isinstance(value.type, t.Array) or not 0 <= found < value.type.size:
            raise Undecided("a firing does more than compute numbers")
        return found

    def of(self, expr: typed.Expr, frame: list[Any]) -> Any:
        """The value of an expression: known, unknown, or a list of such. What is frequent comes first."""
        self.left -= 1  # as `step` does, of which there would be as many calls as of this
        if self.left < 0:
            self.step(0)
        match expr:
            case typed.Local():
                return frame[expr.slot]
            case typed.Apply():
                return self.apply(expr, frame)
            case typed.At(_, value, index):
                return self.of(value, frame)[self.index(value, index, frame)]
            case typed.Literal():
                return self.literal(expr)
            case typed.ConstRef(type_, index):
                return self.constant(index, type_)
            case typed.State(_, index) if self.state is not None:
                return self.state[index]
            case typed.Get(_, value, index):
                return self.of(value, frame)[index]
            case typed.Call():
                return self.call(expr, frame)
            case typed.If(_, cond, then, other):
                return self.choice(expr, cond, then, other, frame)
            case typed.Logic(_, op, left, right):
                known = typed.Literal(t.BOOL, op == "or")
                sides = (known, right) if op == "or" else (right, known)
                return self.choice(expr, left, *sides, frame)
            case typed.MakeRecord(_, values) | typed.MakeList(_, values):
                return [copied(self.of(value, frame)) for value in values]
            case typed.State() | typed.Some() | typed.MakeMap() | typed.Comprehension():
                raise Undecided("a firing does more than compute numbers")
            case _:
                assert_never(expr)

    def literal(self, expr: typed.Literal) -> Any:
        """A value that the text has."""
        return thawed(expr.value)

    def constant(self, index: int, type_: t.Type) -> Any:
        """A constant of the operator."""
        return self.consts[index]

    def choice(
        self, expr: typed.Expr, cond: typed.Expr, then: typed.Expr, other: typed.Expr, frame: list[Any]
    ) -> Any:
        """One of two values."""
        return self.of(then if self.decided(cond, frame) else other, frame)

    def apply(self, expr: typed.Apply, frame: list[Any]) -> Any:
        """The result of an operation."""
        args, meaning = self.operations.get(id(expr)) or self.operation(expr)
        values = [self.of(arg, frame) for arg in args]
        for value in values:
            if isinstance(value, Unknown) or (isinstance(value, list) and unknown(value)):
                return self.met(expr, expr.operation, values)
        try:
            return thawed(meaning(*map(_frozen, values)))
        except TrapSignal:
            raise Undecided("a firing traps") from None

    def operation(self, expr: typed.Apply) -> tuple[Sequence[typed.Expr], Callable[..., Any]]:
        """The operands and the meaning of an operation."""
        operation = OPERATIONS[expr.operation]
        args = [arg for arg in expr.args if not isinstance(arg, typed.Lambda)]
        if len(args) < len(expr.args) or operation.mutates is not None:
            raise Undecided("a firing does more than compute numbers")
        meaning = operation.meaning(tuple(arg.type for arg in args), expr.type)
        self.operations[id(expr)] = args, meaning
        return args, meaning

    def met(self, expr: typed.Apply, name: str, values: Sequence[Any]) -> Any:
        """The result of an operation on unknowns."""
        raise Undecided(f"`{name}` is applied to items")

    def call(self, expr: typed.Call, frame: list[Any]) -> Any:
        """The result of a function of the operator; arrays that it is lent are its caller's."""
        fn = self.fns[expr.function]
        if fn.emits or self.depth > 12:
            raise Undecided(f"`{fn.name}` does more than compute numbers")
        values = [self.of(arg, frame) for arg in expr.args]
        inner = [
            value if param.ref else copied(value) for param, value in zip(fn.params, values, strict=True)
        ]
        inner += [None] * (fn.slots - len(inner))
        self.depth += 1
        if isinstance(fn.body, typed.Block):
            leave = self.block(fn.body, inner)
            result = None if leave is None else leave.value
        else:
            result = self.of(fn.body, inner)
        self.depth -= 1
        for param, arg, value in zip(fn.params, expr.args, inner, strict=False):
            if param.ref:
                self.assign(arg, value, frame)
        return result


def unknown(value: Any) -> bool:
    """Whether something in a value is not known."""
    return isinstance(value, Unknown) or (isinstance(value, list) and any(map(unknown, value)))  # pyright: ignore[reportUnknownArgumentType]


def copied(value: Any) -> Any:
    """A value of its own."""
    return _each(value, list, list) if isinstance(value, list) else value


def thawed(value: Any) -> Any:
    """A value of the evaluator, with lists that can be changed."""
    return _each(value, tuple, list)


def _frozen(value: Any) -> Any:
    """A value for the evaluator."""
    return _each(value, list, tuple)


def _each(value: Any, kind: type, into: Callable[[Iterable[Any]], Any]) -> Any:
    return into(_each(part, kind, into) for part in value) if isinstance(value, kind) else value
