"""Operators that join the rows of two sides by key: which fields the keys are, and where they are in the rows that are sent.

Such an operator keeps the rows of a side in a map, by their key, and makes rows of each row that comes or goes on one side and
those that the other has under the same key. So rows with other keys have nothing to do with one another, and what is sent for
parts of the sides, divided by key, is put together what is sent for the whole.

Paper: River §3.4 (CQL: joins of relations); Auto-parallelizing §3.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from river.classes import define, field, frozen
from river.il.annotations import row_type
from river.il.trees import Same
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Change, Measure
from river.lang.trees import effect, nodes

if TYPE_CHECKING:
    from collections.abc import Sequence


@frozen
class Join:
    """How rows meet. `keys`: by side the fields of its rows that make the key, in one order, of the same types.

    `sent`: the fields of the rows that are sent that are a part of the key, each with the number of that part.
    """

    keys: tuple[tuple[str, ...], tuple[str, ...]]
    sent: tuple[tuple[str, int], ...]


def joined(op: typed.Operator | typed.Extern) -> Join | None:
    """How `op` joins, if all that it does is to join two relations by key; else None."""
    return None if isinstance(op, typed.Extern) else _joined(Same(op))


@lru_cache(1_000)
def _joined(same: Same[typed.Operator]) -> Join | None:
    op = same.value
    if op.merge is None or op.merge.ports != (0, 1) or len(op.outs) != 1 or op.mark is not None:
        return None
    rows = [row_type(end.type) for end in (*op.ports, *op.outs)]
    if len(rows) != 3 or any(port.initial for port in op.ports) or any(fn.emits for fn in op.fns):
        return None
    left, right, out = rows
    if not (isinstance(left, t.Record) and isinstance(right, t.Record) and isinstance(out, t.Record)):
        return None
    try:
        reading = _Joining((left, right))
        reading.body(op.merge.body.items)
        return reading.found(out)
    except _Unlike:
        return None


class _Unlike(Exception):  # noqa: N818 - it says what was found
    """The operator does something else, too."""


@frozen
class _Made:
    """A row that is made: of a row of a side, and of one of the other side, which are in these slots."""

    side: int
    own: int
    other: int
    value: typed.Expr


@define(eq=False)
class _Joining:
    """The reading of a merge. `lists`: the slots of what is inserted and deleted.

    By side: the fields of the key, the variable that keeps the rows, and the one whose rows they meet. `outside`: the slots of
    what is not of one row; `ended`: no more rows are handled.
    """

    rows: tuple[t.Record, t.Record]
    lists: list[int] = field(factory=list[int], init=False)
    keys: dict[int, tuple[int, ...]] = field(factory=dict[int, "tuple[int, ...]"], init=False)
    kept: dict[int, int] = field(factory=dict[int, int], init=False)
    met: dict[int, int] = field(factory=dict[int, int], init=False)
    made: list[_Made] = field(factory=list[_Made], init=False)
    outside: list[int] = field(factory=lambda: [1, 2], init=False)
    ended: bool = False
    sent: bool = False

    def found(self, out: t.Record) -> Join:
        """What has been read. Raises: _Unlike."""
        if not self.sent or set(self.keys) != {0, 1} or not self.made:
            raise _Unlike
        if any(self.kept.get(1 - side) != variable for side, variable in self.met.items()):
            raise _Unlike
        if len(set(self.kept.values())) != len(self.kept):
            raise _Unlike
        parts = [[self.rows[side].fields[place] for place in self.keys[side]] for side in (0, 1)]
        if [type_ for _, type_ in parts[0]] != [type_ for _, type_ in parts[1]]:
            raise _Unlike
        sent = [
            (name, numbers.pop())
            for place, (name, _) in enumerate(out.fields)
            if len(numbers := {self.part(made, place) for made in self.made}) == 1 and None not in numbers
        ]
        left, right = (tuple(name for name, _ in side) for side in parts)
        return Join((left, right), tuple((name, number) for name, number in sent if number is not None))

    def part(self, made: _Made, place: int) -> int | None:
        """Which part of the key a field of a row is; None if none."""
        value = made.value.values[place] if isinstance(made.value, typed.MakeRecord) else None
        match value:
            case typed.Get(_, typed.Local(_, slot), index) if slot in (made.own, made.other):
                key = self.keys[made.side if slot == made.own else 1 - made.side]
                return key.index(index) if index in key else None
            case _:
                return None

    # -- statements

    def body(self, items: Sequence[typed.Stmt]) -> None:
        for item in items:
            match item:
                case typed.Var(slot, _, typed.MakeList(_, ())) if not self.keys:
                    self.lists.append(slot)
                    self.outside.append(slot)
                case typed.Branch(typed.Bind(typed.Local(_, 1 | 2 as side), slot), then, None) if (
                    not self.ended
                ):
                    self.outside.append(slot)
                    for loop in then.items:
                        self.each(side - 1, slot, loop)
                case typed.Branch(typed.Literal(_, False), _, None):
                    pass
                case typed.Branch(typed.Literal(_, True), then, None):
                    self.body(then.items)
                case typed.Assign(typed.State(), typed.MakeMap(_, ())):
                    self.ended = True  # what is kept is forgotten: no row behind that may look for others
                case typed.Emit() | typed.Branch(_, typed.Block((typed.Emit(),)), None):
                    self.sends(item)
                case _:
                    raise _Unlike

    def each(self, side: int, delta: int, loop: typed.Stmt) -> None:
        """What is done with each row that comes, or goes, on a side."""
        match loop:
            case typed.For(_, (row,), _, typed.Get(_, typed.Local(_, slot), 1 | 2), body) if slot == delta:
                pass
            case _:
                raise _Unlike
        named: dict[int, tuple[int, ...] | None] = {}
        for item in body.items:
            match item:
                case typed.Let(slot, _, value):
                    self.of_row(value)
                    named[slot] = _fields(value, row)
                case typed.With(_, _, typed.State(_, variable), key, default, inner):
                    self.by(side, key, named)
                    if self.kept.setdefault(side, variable) != variable:
                        raise _Unlike
                    self.of_row(inner)
                    self.of_row(key if default is None else default)
                case typed.For(_, (other,), _, range_, typed.Block((typed.Do(put),))):
                    self.meets(side, range_, named)
                    self.makes(side, row, other, put)
                case _:
                    raise _Unlike

    def by(self, side: int, key: typed.Expr, named: dict[int, tuple[int, ...] | None]) -> None:
        """A map is touched at a key, which must be that of the side."""
        parts = named.get(key.slot) if isinstance(key, typed.Local) else None
        if not parts or self.keys.setdefault(side, parts) != parts:
            raise _Unlike

    def meets(
        self, side: int, range_: typed.Counted | typed.Expr, named: dict[int, tuple[int, ...] | None]
    ) -> None:
        """The rows of the other side, of which those with the key are taken, all or some."""
        taken = [node for node in nodes(range_) if isinstance(node, typed.State)]
        match [
            node for node in nodes(range_) if isinstance(node, typed.Apply) and node.args[:1] == (*taken,)
        ]:
            case [
                typed.Apply(
                    _, _, (typed.State(_, variable), typed.Local() as key, typed.MakeMap(_, ()))
                ) as look
            ] if effect(look).at_key and effect(look).change is Change.NOTHING:
                self.by(side, key, named)
            case _:
                raise _Unlike
        if self.met.setdefault(side, variable) != variable or _uses(range_, self.outside):
            raise _Unlike

    def makes(self, side: int, row: int, other: int, put: typed.Expr) -> None:
        match put:
            case typed.Apply(_, _, (typed.Local(_, slot), value)) if (
                slot in self.lists and effect(put).pushes and not isinstance(value, typed.Lambda)
            ):
                self.of_row(value)
                self.made.append(_Made(side, row, other, value))
            case _:
                raise _Unlike

    def sends(self, item: typed.Stmt) -> None:
        """The delta is sent, whatever is in it, or unless it is empty."""
        if self.sent:
            raise _Unlike
        match item:
            case typed.Emit() as emit:
                pass
            case typed.Branch(typed.Logic(_, "or", typed.Apply(_, _, (typed.Literal(),)), cond), then, _) if (
                self.some(cond)
            ):
                (emit,) = then.items
            case typed.Branch(cond, then, _) if not isinstance(cond, typed.Bind) and self.some(cond):
                (emit,) = then.items
            case _:
                raise _Unlike
        match emit:
            case typed.Emit(
                _, typed.MakeRecord(_, (typed.Local(_, 0), typed.Local(_, a), typed.Local(_, b)))
            ) if [a, b] == self.lists:
                self.ended = self.sent = True
            case _:
                raise _Unlike

    def of_row(self, tree: typed.Node) -> None:
        """Refuses what touches variables or what is not of one row, or changes which rows are handled."""
        if _uses(tree, self.outside) or any(isinstance(node, _OUTWARDS) for node in nodes(tree)):
            raise _Unlike

    def some(self, cond: typed.Expr) -> bool:
        """Whether it is asked if there are insertions or deletions."""
        match cond:
            case typed.Apply(
                _, _, (typed.Apply(_, _, (typed.Apply() as a, typed.Apply() as b)) as both, zero)
            ):
                asked = [effect(each).measure for each in (cond, both, a, b)]
                sizes = [each.args[0].slot for each in (a, b) if isinstance(each.args[0], typed.Local)]
                wanted = [Measure.MORE, Measure.SUM, Measure.COUNT, Measure.COUNT]
                return asked == wanted and sizes == self.lists and zero == typed.Literal(t.I64, 0)
            case _:
                return False


def _fields(value: typed.Expr, row: int) -> tuple[int, ...] | None:
    """The fields of a row that a key is made of; None for another value."""
    match value:
        case typed.Get(_, typed.Local(_, slot), index) if slot == row:
            return (index,)
        case typed.MakeRecord(_, values):
            parts = [_fields(each, row) for each in values]
            flat = tuple(part[0] for part in parts if part is not None and len(part) == 1)
            return flat if len(flat) == len(values) else None
        case _:
            return None


_OUTWARDS = typed.State | typed.Emit | typed.Mark | typed.Break | typed.Continue | typed.Return


def _uses(tree: typed.Node, slots: Sequence[int]) -> bool:
    return any(isinstance(node, typed.Local) and node.slot in slots for node in nodes(tree))
