"""Whether an operator on deltas treats the rows of an instant one by one (il.md P3, a5).

Such an operator may be given the rows of an instant in parts, divided by the key of its state or in any other way that
keeps equal rows together: what it sends for the parts is, put together, what it sends for the whole.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import ClassVar, Final

from river.classes import define, field, frozen
from river.il.annotations import row_type
from river.il.trees import Same
from river.lang import typed
from river.lang import types as t
from river.lang.dataflow import Loop, Reading
from river.lang.operations import OPERATIONS, Measure
from river.lang.trees import effect

TOGETHER: Final = "it looks at the rows of an instant together"
SEVERAL: Final = "it sends more than one delta for an instant"


class _Whole(Exception):  # noqa: N818 - says what was found
    """The operator does not treat rows one by one."""


@frozen
class Handling:
    """How an operator treats the rows of an instant.

    `obstacle`: why they cannot be given to it in parts, None if they can. `compares`: it looks for equal rows, so these
    must come in one part.
    """

    obstacle: str | None
    compares: bool = False


def rowwise(op: typed.Operator | typed.Extern) -> Handling:
    """How `op` treats the rows of an instant."""
    return Handling("its body is not text") if isinstance(op, typed.Extern) else _rowwise(Same(op))


@lru_cache(1_000)
def _rowwise(same: Same[typed.Operator]) -> Handling:
    op = same.value
    body, slots = _handler(op)
    if body is None or len(op.outs) != 1 or op.mark is not None:
        return Handling("it has not one input and one output of deltas, or marks of its own")
    if any(row_type(end.type) is None for end in (*op.ports, *op.outs)):
        return Handling("it does not turn deltas into deltas")
    reading = _Rowwise(op.fns, slots, ONE)
    try:
        reading.block(body)
    except _Whole as whole:
        return Handling(str(whole))
    return Handling(None, reading.compares)


def _handler(op: typed.Operator) -> tuple[typed.Block | None, dict[int, _Held]]:
    """What is done with a delta, or with those of one instant, and what is in its slots then."""
    match op.items, op.merge:
        case (handler,), None if len(op.ports) == 1:
            return handler.body, {0: ITEM}
        case (), typed.MergeHandler(ports, _, body):
            return body, {0: ONE, **dict.fromkeys(range(1, len(ports) + 1), SIDE)}
        case _:
            return None, {}


class _Held(Enum):
    """What a value is made of."""

    ONE = "a value of the instant, or of one row"
    ROWS = "its insertions or deletions, or a list made from them row by row"
    ITEM = "the delta itself"
    SIDE = "a delta of the instant, where several inputs are merged, if there is one"


ONE, ROWS, ITEM, SIDE = _Held.ONE, _Held.ROWS, _Held.ITEM, _Held.SIDE


@define(eq=False)
class _Rowwise(Reading[_Held]):
    """The reading of one handler. `row`: the loop over rows that is open; `inner`: the names that live within one.

    `side`: the names that live within what is done if an input has a delta; None outside. A part of the rows may have none of
    that input, so nothing of it is seen outside but in the state, which is split by key, and in the rows that are sent.

    Read once: what a name is made of is known where it is introduced, and what is put into it later must be of one row. So
    is all that functions get, and what they give: they are not read.
    """

    depth: ClassVar[int] = 0
    row: Loop | None = None
    inner: set[int] = field(factory=set[int])
    side: set[int] | None = None
    emits: int = 0
    compares: bool = False

    def one(self, fact: _Held) -> None:
        """Refuses what is made of more than one row."""
        if fact is not ONE:
            raise _Whole(TOGETHER)

    # -- the lattice

    def join(self, a: _Held, b: _Held) -> _Held:
        return b if a is ONE else a

    def nothing(self) -> _Held:
        return ONE

    # -- statements

    def declare(self, slot: int, fact: _Held, /) -> None:
        self.bind(slot, fact)
        if self.row is not None:
            self.inner.add(slot)
        if self.side is not None:
            self.side.add(slot)

    def present(self, _bind: typed.Bind, fact: _Held, /) -> _Held:
        if fact is SIDE:
            return ITEM
        self.one(fact)
        return ONE

    def decide(self, _node: typed.Branch | Loop, fact: _Held, /) -> None:
        self.one(fact)

    def branch(self, item: typed.Branch) -> None:
        if isinstance(item.cond, typed.Bind) and self.of(item.cond.value) is SIDE:
            if item.other is not None or self.side is not None or self.row is not None:
                raise _Whole(TOGETHER)
            self.side = set()
            super().branch(item)
            self.side = None
            return
        lists = frozenset[typed.Expr]() if isinstance(item.cond, typed.Bind) else self.condition(item.cond)
        if lists:
            self.guarded(lists, item)
        else:
            super().branch(item)

    def guarded(self, lists: frozenset[typed.Expr], item: typed.Branch) -> None:
        """`if len(ins) + len(del) > 0 { emit ...; }`: the delta is sent unless it is empty."""
        match item:
            case typed.Branch(
                _, typed.Block((typed.Emit(_, typed.MakeRecord(_, (_, inserted, deleted), _)) as emit,)), None
            ):
                sent = {rows for rows in (inserted, deleted) if not _empty(rows)}
                if self.row is not None or not sent <= lists:
                    raise _Whole(TOGETHER)
                self.statement(emit)
            case _:
                raise _Whole(TOGETHER)

    def condition(self, cond: typed.Expr) -> frozenset[typed.Expr]:
        """The lists of rows that are asked to be not all empty; none for a condition of another sort."""
        match cond:
            case typed.Apply(_, _, (sizes, typed.Literal(_, 0)), _) if (
                not isinstance(sizes, typed.Lambda) and effect(cond).measure is Measure.MORE
            ):
                return self.sizes(sizes)
            case typed.Logic(_, "or", left, right):
                return self.condition(left) | self.condition(right)
            case _:
                self.one(self.of(cond))
                return frozenset()

    def sizes(self, expr: typed.Expr) -> frozenset[typed.Expr]:
        match expr:
            case typed.Apply(t.I64, _, (left, right), _) if (
                not isinstance(left, typed.Lambda)
                and not isinstance(right, typed.Lambda)
                and effect(expr).measure is Measure.SUM
            ):
                return self.sizes(left) | self.sizes(right)
            case typed.Apply(_, _, (rows,), _) if (
                not isinstance(rows, typed.Lambda)
                and effect(expr).measure is Measure.COUNT
                and self.of(rows) is ROWS
            ):
                return frozenset({rows})
            case _:
                self.one(self.of(expr))
                return frozenset()

    def items(self, loop: typed.For | typed.Comprehension, fact: _Held | None, /) -> tuple[_Held, ...]:
        """In a loop over rows their positions must not be looked at, nor other rows."""
        if fact is ROWS:
            if len(loop.slots) > 1 or self.row is not None:
                raise _Whole(TOGETHER)
            self.row = loop
        return (ONE,) * len(loop.slots)

    def looped(self, loop: Loop, /) -> None:
        if loop is self.row and not isinstance(loop, typed.Comprehension):
            self.row = None

    def leave(self, item: typed.Break | typed.Continue | typed.Return, /) -> None:
        match item:
            case typed.Return():
                raise _Whole(TOGETHER)
            case typed.Break(loop) if isinstance(self.row, typed.For) and loop == self.row.loop:
                raise _Whole(TOGETHER)  # whether a row is handled depends on those before it
            case _:
                pass

    def assign(self, item: typed.Assign, /) -> None:
        self.one(self.of(item.value))
        self.one(self.target(item.place))

    def enter(self, item: typed.With, /) -> None:
        self.one(self.of(item.key))
        if item.default is not None:
            self.one(self.of(item.default))
        self.one(self.target(item.container))
        self.declare(item.slot, ONE)

    def drop(self, item: typed.Drop, /) -> None:
        pass

    def send(self, item: typed.Emit | typed.Mark, /) -> None:
        if isinstance(item, typed.Mark):
            raise _Whole("it sends marks of its own")
        self.emits += 1
        if self.emits > 1 or self.row is not None:
            raise _Whole(SEVERAL)
        match item.value:
            case typed.Local() as whole if self.of(whole) is ITEM:
                pass
            case typed.MakeRecord(_, (tau, inserted, deleted), _):
                if not self.instant(tau):
                    raise _Whole("it sends at other instants")
                if self.side is not None and any(
                    isinstance(rows, typed.Local) and rows.slot not in self.side
                    for rows in (inserted, deleted)
                ):  # where there are rows of another input only, they would not be sent
                    raise _Whole(TOGETHER)
                if self.of(inserted) is not ROWS or self.of(deleted) is not ROWS:
                    raise _Whole(TOGETHER)
            case _:
                raise _Whole(TOGETHER)

    def instant(self, tau: typed.Expr) -> bool:
        """Whether a value is the instant of what is handled."""
        match tau:
            case typed.Get(_, value, 0):
                return self.of(value) is ITEM
            case typed.Local(_, 0):  # of inputs that are merged the key
                return self.of(tau) is ONE
            case _:
                return False

    # -- expressions

    def target(self, place: typed.Expr) -> _Held:
        """Refuses a change that later rows would see, unless it is of the state, which is split by key."""
        match place:
            case typed.Get(_, value, _, _):
                return self.target(value)
            case typed.At(_, value, index, _):
                self.one(self.of(index))
                return self.target(value)
            case typed.Local(_, slot) if self.of(place) is ONE and (
                (self.row is not None and slot not in self.inner)
                or (self.side is not None and slot not in self.side)
            ):
                raise _Whole(TOGETHER)
            case _:
                return self.of(place)

    def leaf(self, _expr: typed.Literal | typed.ConstRef | typed.State, /) -> _Held:
        return ONE

    def given(
        self, _expr: typed.Apply, function: typed.Lambda, _facts: tuple[_Held, ...], /
    ) -> tuple[_Held, ...]:
        return (ONE,) * len(function.slots)

    def made(self, expr: typed.Expr, facts: tuple[_Held, ...], /) -> _Held:
        match expr:
            case typed.Get(_, _, index, _):
                return facts[0] if facts[0] is not ITEM else ROWS if index in (1, 2) else ONE
            case typed.MakeList(t.List(), ()) | typed.MakeMap(t.List(), ()):
                return ROWS if self.row is None else ONE
            case typed.Apply() if ROWS in facts:
                return self.operation(expr, facts)
            case typed.Comprehension() if expr is self.row:
                self.row = None
                self.one(facts[0])
                return ROWS
            case _:
                for fact in facts:
                    self.one(fact)
                return ONE

    def operation(self, expr: typed.Apply, facts: tuple[_Held, ...]) -> _Held:
        """An operation on lists of rows: a row is put into one, or two become one."""
        stated, changes = effect(expr), OPERATIONS[expr.operation].mutates is not None
        if changes and stated.pushes and facts == (ROWS, ONE):
            if self.row is None:
                raise _Whole("it sends rows that come from no row")
            return ONE
        whole = not any(isinstance(arg, typed.Lambda) for arg in expr.args)
        if not changes and whole and (stated.appends or stated.matches) and facts == (ROWS, ROWS):
            self.compares = self.compares or stated.matches
            return ROWS
        raise _Whole(TOGETHER)

    # -- functions

    def opaque(self, expr: typed.Call, args: tuple[_Held, ...], /) -> _Held:
        for arg in args:
            self.one(arg)
        if self.fns[expr.function].emits:
            raise _Whole(SEVERAL)
        return ONE


def _empty(expr: typed.Expr) -> bool:
    return isinstance(expr, typed.MakeList | typed.MakeMap) and expr in (
        typed.MakeList(expr.type, ()),
        typed.MakeMap(expr.type, ()),
    )
