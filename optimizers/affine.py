"""What a firing sends, as affine functions of the items that it sees, found by executing its text with unknowns for items.

An unknown that meets more than sums, differences and factors that are known, or that decides what is done, ends the search: then
the firing is not affine. Nor is one that keeps anything, or takes very long. Factors are doubles, whatever the operator
computes in.

Paper: Lamb, Thies, Amarasinghe, "Linear analysis and optimization of stream programs" (2003), section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, assert_never

from river.classes import define, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import evaluate_const
from river.lang.operations import OPERATIONS
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

STEPS: Final = 400_000
"""Expressions and terms that one firing may come to."""


class NotAffine(Exception):  # noqa: N818 - no error: the operator stays as it is
    """What is sent is no affine function of the items, or that cannot be seen."""


@frozen
class Sum:
    """`known`, and for each item of a window (by window and index) its factor."""

    known: float
    terms: Mapping[tuple[int, int], float]


def sent(
    operator: typed.Operator, handler: typed.RatedHandler | typed.ItemHandler
) -> tuple[tuple[Sum, ...], ...]:
    """What a firing sends, for each output. Windows are counted as the handler's rates are; a single item is one, too.

    Raises: NotAffine with the reason.
    """
    consts: list[Any] = []
    for const in operator.consts:
        try:
            consts.append(evaluate_const(const.value, operator.fns, consts, const.slots))
        except Exception as error:  # a trap, or too little room: it is told where it runs
            raise NotAffine(f"`{const.name}` cannot be computed") from error
    outs: tuple[list[Any], ...] = tuple([] for _ in operator.outs)
    run = _Run(operator.fns, [_thawed(value) for value in consts], outs)
    frame: list[Any] = [None] * handler.slots
    match handler:
        case typed.ItemHandler():
            frame[0] = Sum(0.0, {(0, 0): 1.0})
        case typed.RatedHandler(rates):
            for i, rate in enumerate(rates):
                frame[i] = [Sum(0.0, {(i, k): 1.0}) for k in range(rate.peek)]
    run.block(handler.body, frame)
    return tuple(tuple(_sum(value) for value in out) for out in outs)


@frozen
class _Leave:
    """How control leaves a statement: out of a loop, to its next turn (`again`), or out of the function (loop -1)."""

    loop: int
    again: bool = False
    value: Any = None


@define
class _Run:
    fns: Sequence[typed.Fn]
    consts: Sequence[Any]
    outs: Sequence[list[Any]]
    left: int = STEPS
    depth: int = 0

    def step(self, count: int = 1) -> None:
        """Counts what is done."""
        self.left -= count
        if self.left < 0:
            raise NotAffine("a firing computes for very long")

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
                frame[slot] = _copied(self.of(value, frame))
            case typed.Assign(place, value):
                found = _copied(self.of(value, frame))
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
                return _Leave(-1, value=None if value is None else _copied(self.of(value, frame)))
            case typed.Break(loop):
                return _Leave(loop)
            case typed.Continue(loop):
                return _Leave(loop, again=True)
            case typed.Emit(out, value):
                self.outs[out].append(self.of(value, frame))
            case typed.Do(call):
                self.of(call, frame)
            case typed.Trap():
                raise NotAffine("a firing traps")
            case typed.Branch() | typed.For() | typed.With() | typed.Drop() | typed.Mark():
                raise NotAffine("a firing does more than compute numbers")
            case _:
                assert_never(item)
        return None

    def assign(self, place: typed.Expr, value: Any, frame: list[Any]) -> None:
        """`place = value`."""
        match place:
            case typed.Local(_, slot):
                frame[slot] = value
            case typed.At(_, inner, index):
                self.of(inner, frame)[self.index(inner, index, frame)] = value
            case typed.Get(_, inner, index):
                self.of(inner, frame)[index] = value
            case _:
                raise NotAffine("a firing keeps something")

    # -- expressions

    def decided(self, expr: typed.Expr, frame: list[Any]) -> Any:
        """A value that does not depend on items."""
        found = self.of(expr, frame)
        if isinstance(found, Sum):
            raise NotAffine("an item decides what a firing does")
        return found

    def index(self, value: typed.Expr, index: typed.Expr, frame: list[Any]) -> int:
        """An index of an array."""
        found = self.decided(index, frame)
        if not isinstance(value.type, t.Array) or not 0 <= found < value.type.size:
            raise NotAffine("a firing does more than compute numbers")
        return found

    def of(self, expr: typed.Expr, frame: list[Any]) -> Any:
        """The value of an expression: known, a sum, or a list of such."""
        self.step()
        match expr:
            case typed.Literal(_, value):
                return _thawed(value)
            case typed.Local(_, slot):
                return frame[slot]
            case typed.ConstRef(_, index):
                return self.consts[index]
            case typed.At(_, value, index):
                return self.of(value, frame)[self.index(value, index, frame)]
            case typed.Get(_, value, index):
                return self.of(value, frame)[index]
            case typed.Apply(_, operation, args):
                return self.apply(expr, operation, args, frame)
            case typed.Call():
                return self.call(expr, frame)
            case typed.If(_, cond, then, other):
                return self.of(then if self.decided(cond, frame) else other, frame)
            case typed.Logic(_, op, left, right):
                first = self.decided(left, frame)
                return first if first == (op == "or") else self.decided(right, frame)
            case typed.MakeRecord(_, values) | typed.MakeList(_, values):
                return [_copied(self.of(value, frame)) for value in values]
            case typed.State() | typed.Some() | typed.MakeMap() | typed.Comprehension():
                raise NotAffine("a firing does more than compute numbers")
            case _:
                assert_never(expr)

    def apply(
        self, expr: typed.Apply, name: str, args: Iterable[typed.Expr | typed.Lambda], frame: list[Any]
    ) -> Any:
        """The result of an operation."""
        operation = OPERATIONS[name]
        values: list[Any] = []
        types: list[t.Type] = []
        for arg in args:
            if isinstance(arg, typed.Lambda) or operation.mutates is not None:
                raise NotAffine("a firing does more than compute numbers")
            values.append(self.of(arg, frame))
            types.append(arg.type)
        if not any(map(_unknown, values)):
            try:
                found = operation.meaning(tuple(types), expr.type)(*map(_frozen, values))
            except TrapSignal:
                raise NotAffine("a firing traps") from None
            return _thawed(found)
        if expr.type not in t.FLOATS or any(isinstance(value, list) for value in values):
            raise NotAffine(f"`{name}` is applied to items")
        match name, values:
            case "+" | "-", (a, b):
                return self.plus(_sum(a), _sum(b), 1.0 if name == "+" else -1.0)
            case "*", (Sum() as a, b) | (b, Sum() as a) if not isinstance(b, Sum):
                return self.times(a, b)
            case "/", (Sum() as a, b) if not isinstance(b, Sum) and b != 0:
                return self.times(a, 1.0 / b)
            case "neg", (Sum() as a,):
                return self.times(a, -1.0)
            case "f32" | "f64", (Sum() as a,):
                return a
            case _:
                raise NotAffine(f"`{name}` is applied to items")

    def plus(self, a: Sum, b: Sum, factor: float) -> Sum:
        """The sum."""
        self.step(len(a.terms) + len(b.terms))
        terms = dict(a.terms)
        for key, value in b.terms.items():
            terms[key] = terms.get(key, 0.0) + factor * value
        return Sum(a.known + factor * b.known, terms)

    def times(self, a: Sum, factor: float) -> Sum:
        """The product."""
        self.step(len(a.terms))
        return Sum(a.known * factor, {key: value * factor for key, value in a.terms.items()})

    def call(self, expr: typed.Call, frame: list[Any]) -> Any:
        """The result of a function of the operator; arrays that it is lent are its caller's."""
        fn = self.fns[expr.function]
        if fn.emits or self.depth > 12:
            raise NotAffine(f"`{fn.name}` does more than compute numbers")
        values = [self.of(arg, frame) for arg in expr.args]
        inner = [
            value if param.ref else _copied(value) for param, value in zip(fn.params, values, strict=True)
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


def _sum(value: Any) -> Sum:
    if isinstance(value, Sum):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Sum(float(value), {})
    raise NotAffine("what is sent is no number")


def _unknown(value: Any) -> bool:
    return isinstance(value, Sum) or (isinstance(value, list) and any(map(_unknown, value)))  # pyright: ignore[reportUnknownArgumentType]


def _copied(value: Any) -> Any:
    return _each(value, list, list) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    return _each(value, tuple, list)


def _frozen(value: Any) -> Any:
    return _each(value, list, tuple)


def _each(value: Any, kind: type, into: Callable[[Iterable[Any]], Any]) -> Any:
    return into(_each(part, kind, into) for part in value) if isinstance(value, kind) else value
