"""Whether an operator on deltas treats the rows of an instant one by one (il.md P3, a5).

Such an operator may be given the rows of an instant in parts, divided by the key of its state or in any other way that
keeps equal rows together: what it sends for the parts is, put together, what it sends for the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from attrs import define, field, frozen

from river.il.annotations import row_type
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Measure
from river.lang.trees import effect, operands

if TYPE_CHECKING:
    from collections.abc import Iterable

ITEM: Final = "item"  # the delta itself
ROWS: Final = "rows"  # its insertions or deletions, or a list made from them row by row
ONE: Final = "one"  # a value of the instant, or of one row

TOGETHER: Final = "it looks at the rows of an instant together"
SEVERAL: Final = "it sends more than one delta for an instant"


class _Whole(Exception):  # noqa: N818 - says what was found
    """The operator does not treat rows one by one."""


@frozen
class Rows:
    """How an operator treats the rows of an instant.

    `obstacle`: why they cannot be given to it in parts, None if they can. `compares`: it looks for equal rows, so these
    must come in one part.
    """

    obstacle: str | None
    compares: bool = False


def rowwise(op: typed.Operator | typed.Extern) -> Rows:
    """How `op` treats the rows of an instant."""
    if isinstance(op, typed.Extern):
        return Rows("its body is not text")
    if len(op.ports) != 1 or len(op.outs) != 1 or len(op.items) != 1 or op.mark is not None:
        return Rows("it has not one input and one output of deltas, or marks of its own")
    if row_type(op.ports[0].type) is None or row_type(op.outs[0].type) is None:
        return Rows("it does not turn deltas into deltas")
    reading = _Reading(op, {0: ITEM})
    try:
        reading.body(op.items[0].body)
    except _Whole as whole:
        return Rows(str(whole))
    return Rows(None, reading.compares)


@define
class _Reading:
    """The reading of one handler: what each local is, which belong to the row at hand, and how deep in rows we are."""

    op: typed.Operator
    kinds: dict[int, str]
    inner: set[int] = field(factory=set[int])  # locals that live within the handling of one row
    loops: set[int] = field(factory=set[int])  # the open loops over rows
    emits: int = 0
    compares: bool = False

    # -- statements

    def body(self, block: typed.Block) -> None:
        for item in block.items:
            self.statement(item)

    @property
    def in_row(self) -> bool:
        return bool(self.loops)

    def statement(self, item: typed.Stmt) -> None:
        match item:
            case typed.Let(slot, _, value) | typed.Var(slot, _, value):
                self.bind(slot, self.kind(value))
            case typed.Assign(place, value):
                self.one(value)
                self.target(place)
            case typed.With(slot, _, container, key, default, inside, _):
                self.one(key)
                if default is not None:
                    self.one(default)
                self.target(container)
                self.bind(slot, ONE)
                self.body(inside)
            case typed.Drop():
                pass
            case typed.Branch(cond, then, other):
                self.branch(cond, then, other)
            case typed.For(loop, slots, _, range_, inside):
                self.loop(loop, slots, range_, inside)
            case typed.While(_, cond, inside):
                self.one(cond)
                self.body(inside)
            case typed.Break(loop):
                if loop in self.loops:
                    raise _Whole(TOGETHER)  # whether a row is handled depends on those before it
            case typed.Continue():
                pass
            case typed.Return():
                raise _Whole(TOGETHER)
            case typed.Emit(_, value):
                self.emit(value)
            case typed.Mark():
                raise _Whole("it sends marks of its own")
            case typed.Do(call):
                self.effect(call)
            case typed.Trap():
                pass
            case _:
                assert_never(item)

    def bind(self, slot: int, kind: str) -> None:
        self.kinds[slot] = kind
        if self.in_row:
            self.inner.add(slot)

    def loop(
        self, loop: int, slots: tuple[int, ...], range_: typed.Counted | typed.Expr, inside: typed.Block
    ) -> None:
        if self.over_rows(range_, slots):
            self.loops.add(loop)
        for slot in slots:
            self.bind(slot, ONE)
        self.body(inside)
        self.loops.discard(loop)

    def over_rows(self, range_: typed.Counted | typed.Expr, slots: tuple[int, ...]) -> bool:
        """Whether a loop goes over rows; their positions must not be looked at."""
        if isinstance(range_, typed.Counted):
            self.one(range_.low)
            self.one(range_.high)
            return False
        rows = self.kind(range_) == ROWS
        if rows and (len(slots) > 1 or self.in_row):
            raise _Whole(TOGETHER)
        return rows

    def branch(self, cond: typed.Expr | typed.Bind, then: typed.Block, other: typed.Block | None) -> None:
        if isinstance(cond, typed.Bind):
            self.one(cond.value)
            self.bind(cond.slot, ONE)
        else:
            lists = self.condition(cond)
            if lists:
                self.guarded(lists, then, other)
                return
        self.body(then)
        if other is not None:
            self.body(other)

    def guarded(self, lists: frozenset[typed.Expr], then: typed.Block, other: typed.Block | None) -> None:
        """`if len(ins) + len(del) > 0 { emit ...; }`: the delta is sent unless it is empty."""
        match then.items:
            case (typed.Emit(_, typed.MakeRecord(_, (_, inserted, deleted), _)) as emit,) if other is None:
                sent = {rows for rows in (inserted, deleted) if not _empty(rows)}
                if self.in_row or not sent <= lists:
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
                self.one(cond)
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
                and self.kind(rows) == ROWS
            ):
                return frozenset({rows})
            case _:
                self.one(expr)
                return frozenset()

    def emit(self, value: typed.Expr) -> None:
        self.emits += 1
        if self.emits > 1 or self.in_row:
            raise _Whole(SEVERAL)
        match value:
            case typed.Local() if self.kind(value) == ITEM:
                pass
            case typed.MakeRecord(_, (tau, inserted, deleted), _):
                if not self.is_tau(tau):
                    raise _Whole("it sends at other instants")
                for rows in (inserted, deleted):
                    if self.kind(rows) != ROWS:
                        raise _Whole(TOGETHER)
            case _:
                raise _Whole(TOGETHER)

    def is_tau(self, expr: typed.Expr) -> bool:
        match expr:
            case typed.Get(_, value, 0, _):
                return self.kind(value) == ITEM
            case _:
                return False

    def effect(self, call: typed.Apply | typed.Call) -> None:
        match call:
            case typed.Apply(_, _, (typed.Local() as rows, value), _) if (
                self.kind(rows) == ROWS and effect(call).pushes
            ):
                if isinstance(value, typed.Lambda):  # pragma: no cover - nothing pushes functions
                    raise _Whole(TOGETHER)
                self.one(value)
                if not self.in_row:
                    raise _Whole("it sends rows that come from no row")
            case typed.Apply(_, _, (place, *rest), _) if not isinstance(place, typed.Lambda):
                self.target(place)
                self.all_one(rest)
            case _:
                self.one(call)

    def target(self, place: typed.Expr) -> None:
        """Refuses a change that later rows would see, unless it is of the state, which is split by key."""
        match place:
            case typed.State():
                pass
            case typed.Get(_, value, _, _):
                self.target(value)
            case typed.At(_, value, index, _):
                self.one(index)
                self.target(value)
            case typed.Local(_, slot, _, _):
                if self.kinds.get(slot) != ONE or (self.in_row and slot not in self.inner):
                    raise _Whole(TOGETHER)
            case _:
                self.one(place)

    # -- expressions

    def one(self, expr: typed.Expr) -> None:
        """Refuses an expression that is made of more than one row."""
        if self.kind(expr) != ONE:
            raise _Whole(TOGETHER)

    def all_one(self, exprs: Iterable[typed.Expr | typed.Lambda]) -> None:
        for expr in exprs:
            if isinstance(expr, typed.Lambda):
                for slot in expr.slots:
                    self.bind(slot, ONE)
                self.one(expr.body)
            else:
                self.one(expr)

    def kind(self, expr: typed.Expr) -> str:
        match expr:
            case typed.Local(_, slot, _, _):
                return self.kinds.get(slot, ONE)
            case typed.Get(_, value, index, _):
                whole = self.kind(value)
                return whole if whole != ITEM else ROWS if index in (1, 2) else ONE
            case typed.MakeList(t.List(), ()) | typed.MakeMap(t.List(), ()):
                return ONE if self.in_row else ROWS
            case typed.Comprehension(_, value, slots, _, range_, cond):
                return self.comprehension(value, slots, range_, cond)
            case typed.Apply(_, _, (left, right), _) if (
                not isinstance(left, typed.Lambda)
                and not isinstance(right, typed.Lambda)
                and (effect(expr).appends or effect(expr).matches)
                and self.kind(left) == ROWS
                and self.kind(right) == ROWS
            ):
                self.compares = self.compares or effect(expr).matches
                return ROWS
            case typed.Apply(_, _, args, _):
                self.all_one(args)
                return ONE
            case _:
                self.all_one(each for each in operands(expr) if not isinstance(each, typed.Counted))
                if isinstance(expr, typed.Call) and self.op.fns[expr.function].emits:
                    raise _Whole(SEVERAL)
                return ONE

    def comprehension(
        self,
        value: typed.Expr,
        slots: tuple[int, ...],
        range_: typed.Counted | typed.Expr,
        cond: typed.Expr | None,
    ) -> str:
        rows = self.over_rows(range_, slots)
        mark = -1 - len(self.loops)
        if rows:
            self.loops.add(mark)
        for slot in slots:
            self.bind(slot, ONE)
        self.all_one((value, *(() if cond is None else (cond,))))
        self.loops.discard(mark)
        return ROWS if rows and not self.in_row else ONE


def _empty(expr: typed.Expr) -> bool:
    return isinstance(expr, typed.MakeList | typed.MakeMap) and expr in (
        typed.MakeList(expr.type, ()),
        typed.MakeMap(expr.type, ()),
    )
