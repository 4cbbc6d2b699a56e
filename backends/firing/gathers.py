"""Operators that gather the rows of each instant, where whole instants lie together: their rows stay where they are.

    on x(r) { if $now is now { if now < r.t { emit out {tau: now, ins: $ins, del: []}; $ins = []; $now = none; } }
              $now = r.t; push($ins, r); }
    on mark(k) { if $now is now { if now < k or k == END { emit out {...}; $ins = []; $now = none; } } mark out k; }

Of a batch the first and the last instant may have rows in others: these are fired on. Between them nothing is, there each
instant becomes an item whose rows are those of the batch.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import Final

from backends.native.batch import Batch, address_of
from backends.native.kernels import runs
from backends.native.layout import columns, starts, widths
from river.classes import frozen
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Measure
from river.lang.trees import effect

LEAST: Final = 2
"""Whole instants between the first and the last: for fewer it does not pay."""


@frozen
class Gathered:
    """What an operator gathers: its key's column, and the columns of what it keeps of a row."""

    key: int
    kept: tuple[int, ...]


def gathered(op: typed.Operator) -> Gathered | None:
    """What an operator gathers, if that is all it does."""
    if len(op.ports) != 1 or len(op.items) != 1 or len(op.outs) != 1 or op.mark is None:
        return None
    match op.items[0].body.items, op.mark.body.items:
        case (
            [
                over,
                typed.Assign(typed.State(index=now), typed.Some(value=key)),
                typed.Do(typed.Apply(args=(typed.State(index=ins), value)) as put),
            ],
            [ends, typed.Mark(0, typed.Local(slot=0) as level)],
        ) if (
            effect(put).pushes
            and _forgets(_over(over, now, ins, key), now)
            and _forgets(_over(ends, now, ins, level), now)
        ):
            pass
        case _:
            return None
    port, found, kept = op.ports[0], _columns(key), _columns(value)
    ordered = isinstance(key, typed.Get) and key.name == port.by and key.type in (t.I64, t.TIME)
    if not ordered or found is None or kept is None or not _is_delta(op.outs[0].type):
        return None
    return Gathered(found[0], kept)


def _over(item: typed.Stmt, now: int, ins: int, later: typed.Expr) -> tuple[typed.Stmt, ...] | None:
    """What is done beside sending the rows, if a statement sends those of an instant that is over at `later`."""
    match item:
        case typed.Branch(
            typed.Bind(typed.State(index=pending), bound),
            typed.Block(
                (
                    typed.Branch(
                        cond,
                        typed.Block(
                            (typed.Emit(0, sent), typed.Assign(emptied, typed.MakeList(_, ())), *rest)
                        ),
                        None,
                    ),
                )
            ),
            None,
        ) if pending == now and _passed(cond, bound, later):
            pass
        case _:
            return None
    match sent, emptied:
        case (
            typed.MakeRecord(_, (typed.Local(slot=tau), typed.State(index=rows), typed.MakeList(_, ()))),
            typed.State(index=cleared),
        ) if tau == bound and rows == cleared == ins:
            return tuple(rest)
        case _:
            return None


def _passed(cond: typed.Expr | typed.Bind, bound: int, later: typed.Expr) -> bool:
    """Whether a condition asks if the instant in slot `bound` is before `later`, or this is the last that there is."""
    match cond:
        case typed.Logic(op="or", left=left, right=typed.Apply(args=(typed.Local(), _)) as last):
            return effect(last).measure is Measure.SAME and _passed(left, bound, later)
        case typed.Apply(args=(typed.Local(slot=compared), other)):
            return effect(cond).measure is Measure.LESS and compared == bound and other == later
        case _:
            return False


def _forgets(rest: tuple[typed.Stmt, ...] | None, now: int) -> bool:
    match rest:
        case (typed.Assign(typed.State(index=forgotten), typed.Literal(_, None)),):
            return forgotten == now
        case _:
            return False


def _columns(expr: object) -> tuple[int, ...] | None:
    """The columns of the row that a value consists of."""
    match expr:
        case typed.Local(type_, 0, _, False):
            return tuple(range(widths(type_)[0]))
        case typed.Get(type_, typed.Local(outer, 0, _, False), index, _):
            first = starts(outer)[index][0]
            return tuple(range(first, first + widths(type_)[0]))
        case typed.MakeRecord(_, values):
            found = [_columns(value) for value in values]
            return None if None in found else tuple(each for part in found for each in part or ())
        case _:
            return None


def _is_delta(type_: t.Type) -> bool:
    """Whether items are {tau, ins, del}, and lists of rows without lists in them."""
    match type_:
        case t.Record(((_, t.I64 | t.TIME), (_, t.List() as ins), (_, t.List() as gone))):
            return ins == gone and len(columns(ins.item).tables) == 1
        case _:
            return False


def instants(rows: Batch, what: Gathered) -> tuple[array[int], array[int], int]:
    """The instants of rows, where each begins (and the end), and how many there are; 0 if they do not ascend."""
    at = rows.addresses[what.key]
    first, last = (ctypes.c_int64.from_address(at + 8 * row).value for row in (0, len(rows) - 1))
    most = max(min(len(rows), last - first + 1), 0)
    taus, starts = array("q", bytes(8 * most + 8)), array("q", bytes(8 * most + 8))
    count = runs(at, len(rows), address_of(taus), address_of(starts), most)
    return taus, starts, count if starts[count] == len(rows) else 0


def whole(type_: t.Type, rows: Batch, what: Gathered, found: tuple[array[int], array[int], int]) -> Batch:
    """The instants of rows but the first and the last, as items whose insertions lie where the rows do."""
    taus, starts, count = found
    none = array("q", bytes(8 * count))
    kept = [rows.addresses[column] for column in what.kept]
    addresses = (address_of(taus) + 8, address_of(starts) + 8, *kept, address_of(none), *kept)
    return Batch(type_, count - 2, addresses, [rows.kept, taus, starts, none], rows.texts)


__all__ = ["LEAST", "Gathered", "gathered", "instants", "whole"]
