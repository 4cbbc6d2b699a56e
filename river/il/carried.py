"""Operators on deltas that keep rows and pass them on, whatever is in them, in the order in which they came.

A window is one: rows wait in a deque, and leave by its other end. Such an operator does the same with rows of any other type,
also with rows that carry tags (`river.il.tagged`). Rows that come have ascending tags; so have those of each list that it sends.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import define, evolve, fields, has_fields
from river.il.annotations import row_type
from river.il.trees import Same
from river.lang import typed
from river.lang import types as t
from river.lang.operations import OPERATIONS, Measure
from river.lang.trees import effect, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

INSERTED: Final = 1
DELETED: Final = 2


def carries(op: typed.Operator) -> bool:
    """Whether all that `op` does with rows is to put those that are inserted into a deque, and to send them.

    Each list of rows that it sends is that of the insertions, or of rows as they left the deque.
    """
    return _carries(Same(op))


@lru_cache(1_000)
def _carries(same: Same[typed.Operator]) -> bool:
    op = same.value
    return _only_keeps(op, t.Deque, by_key=False)


def carries_by_key(op: typed.Operator) -> bool:
    """Whether all that `op` does is to put each inserted row into a deque in an entry of a map, and to send rows.

    Each row that it sends is one of the insertions, or has left such a deque. It may look at what is in rows, to find the entry.
    If that is always the entry of a key made of fields of the row, all rows of an entry have the same values there.
    """
    return _carries_by_key(Same(op))


@lru_cache(1_000)
def _carries_by_key(same: Same[typed.Operator]) -> bool:
    return _only_keeps(same.value, t.Map, by_key=True)


def _only_keeps(op: typed.Operator, kept: type[t.Type], *, by_key: bool) -> bool:
    if len(op.ports) != 1 or len(op.outs) != 1 or len(op.items) != 1:
        return False
    row = row_type(op.ports[0].type)
    if row is None or row_type(op.outs[0].type) != row or op.ports[0].initial:
        return False
    keeping = [var for var in op.vars if t.contains(var.type, row)]
    if len(keeping) != 1 or not isinstance(keeping[0].type, kept):
        return False
    trees: list[typed.Node] = [
        op.items[0].body,
        *(fn.body for fn in op.fns),
        *(each.value for each in op.consts),
    ]
    if any(isinstance(node, typed.Mark) for node in nodes(tuple(trees))):
        return False
    trees += [] if op.mark is None else [op.mark.body]
    reading = _Reading(row, op.ports[0].type, by_key)
    puts = [id(put) for put in reading.puts(op.items[0].body)]
    return len(puts) == 1 and all(id(node) in puts or reading.blind(node) for node in nodes(tuple(trees)))


def with_rows(op: typed.Operator, row: t.Type, other: t.Type) -> typed.Operator:
    """An operator that carries rows of type `row`, with rows of another type."""
    return cast("typed.Operator", _with(op, row, other))


@define
class _Reading:
    """The reading of an operator on rows of type `row`. `by_key`: deques are entries of a map, and rows may be looked into."""

    row: t.Type
    delta: t.Type
    by_key: bool

    def holds(self, type_: t.Type) -> bool:
        """Whether rows are in values of a type."""
        return t.contains(type_, self.row)

    def is_side(self, expr: object, side: int) -> bool:
        """Whether an expression is one side of the delta."""
        return isinstance(expr, typed.Get) and expr.index == side and expr.value.type == self.delta

    def puts(self, body: typed.Block) -> Iterator[typed.Node]:
        """What puts inserted rows into the deque: each once, in their order."""
        for item in body.items:
            match item:
                case typed.For(_, (slot,), _, range_, block) if self.is_side(range_, INSERTED):
                    inside = tuple(nodes(block))
                    if not any(isinstance(node, typed.For | typed.While) for node in inside):
                        yield from (node for node in inside if self.is_put(node, slot))
                case _:
                    pass

    def is_put(self, node: typed.Node, slot: int) -> bool:
        match node:
            case typed.Apply(_, _, (typed.State(t.Deque()) | typed.Local(t.Deque()) as to, value)) if (
                effect(node).pushes and isinstance(to, typed.Local) == self.by_key
            ):
                rows = [
                    each for each in nodes(value) if isinstance(each, typed.Local) and each.type == self.row
                ]
                return len(rows) == 1 and rows[0].slot == slot
            case _:
                return False

    def blind(self, node: typed.Node) -> bool:
        """Whether a node does with rows only what does not depend on what is in them, and keeps their order."""
        match node:
            case typed.MakeList(type_, ()) | typed.MakeMap(type_, ()):
                return True
            case (
                typed.Literal(type_)
                | typed.ConstRef(type_)
                | typed.At(type_)
                | typed.Some(type_)
                | typed.If(type_)
                | typed.MakeList(type_)
                | typed.MakeMap(type_)
                | typed.Comprehension(type_)
            ):
                return not self.holds(type_)
            case typed.MakeRecord(type_):
                return type_ != self.row
            case typed.Get(_, value):
                return (self.by_key or value.type != self.row) and not self.is_side(node, DELETED)
            case typed.Apply(args=args):
                rows = any(isinstance(arg, typed.Lambda) or self.holds(arg.type) for arg in args)
                return not rows or self.in_turn(node)
            case typed.Let(value=value) | typed.Var(value=value):
                fresh = isinstance(value, typed.MakeList | typed.MakeMap | typed.Call)
                return fresh or not self.holds(value.type) or not isinstance(value.type, t.List | t.Deque)
            case typed.With(container=typed.State(t.Map(_, t.Deque(item)))) if (
                self.by_key and item == self.row
            ):
                return True
            case typed.Assign(value=value) | typed.Bind(value=value) | typed.With(container=value):
                return not self.holds(value.type)
            case typed.For(range=range_):
                plain = isinstance(range_, typed.Counted) or not self.holds(range_.type)
                return plain or self.is_side(range_, INSERTED)
            case typed.Emit(_, value):
                return isinstance(value, typed.MakeRecord)
            case _:
                return True

    def in_turn(self, apply: typed.Apply) -> bool:
        """Whether an operation on rows counts them, looks at the first one, or puts it elsewhere when it leaves."""
        stated = effect(apply)
        match apply.args:
            case (rows,):
                return stated.measure is Measure.COUNT or (stated.first and isinstance(rows.type, t.Deque))
            case (rows, value) if stated.pushes and rows.type == t.List(self.row):
                return any(
                    isinstance(node, typed.Apply)
                    and effect(node).first
                    and OPERATIONS[node.operation].mutates
                    for node in nodes(value)
                )
            case _:
                return False


def _with(value: object, row: t.Type, other: t.Type) -> object:
    """A tree with another type in the place of one, wherever that stands."""
    match value:
        case tuple():
            return tuple(_with(each, row, other) for each in cast("tuple[object, ...]", value))
        case t.Record() if value == row:
            return other
        case _ if names := _inside(type(value)):
            changed: dict[str, Any] = {name: _with(getattr(value, name), row, other) for name in names}
            return evolve(value, **changed)
        case _:
            return value


@cache
def _inside(kind: type) -> tuple[str, ...]:
    """The fields of nodes and types in which types may stand."""
    if not has_fields(kind) or kind is typed.Literal:
        return ()
    return tuple(each.name for each in fields(kind) if each.name not in ("span", "sites", "initial"))
