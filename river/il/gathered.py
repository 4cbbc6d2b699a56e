"""Operators that gather the rows of one instant: so the rows of a stream become deltas of a relation.

Such an operator keeps what it makes of each row in a list. It sends the list as one insertion when a later row, or a mark,
shows that the instant is over. Who knows that may gather the rows of an instant in any other way.

Paper: River §3.4 (CQL: streams become relations).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from river.classes import fields
from river.il.annotations import row_type
from river.il.trees import Same
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import evaluate_const
from river.lang.operations import OPERATIONS, traps_of
from river.lang.trees import effect, nodes
from river.lang.values import BOUNDS


def gathered(op: typed.Operator | typed.Extern) -> typed.MakeRecord | None:
    """What is kept of each row, which is slot 0, if all that `op` does is to gather rows; else None."""
    return None if isinstance(op, typed.Extern) else _gathered(Same(op))


@lru_cache(1_000)
def _gathered(same: Same[typed.Operator]) -> typed.MakeRecord | None:
    op = same.value
    match op:
        case typed.Operator(
            ports=(typed.Port(_, t.Record() as item, str() as by, ()),),
            outs=(typed.Out(_, out, "tau"),),
            vars=(typed.VarParam(_, t.Optional(tau), _), typed.VarParam(_, t.List(kept), _)),
            items=(typed.ItemHandler(body=body),),
            mark=typed.MarkHandler(body=marked),
        ) if row_type(out) == kept and item.field(by) == tau and tau in BOUNDS:
            pass
        case _:
            return None
    match body.items:
        case (
            _,
            _,
            typed.Do(
                typed.Apply(
                    _, push, (typed.State(), typed.MakeRecord() | typed.Local(_, 0) as value), _
                ) as put
            ),
        ) if effect(put).pushes:
            pass
        case _:
            return None
    place = item.index(by)
    assert place is not None  # noqa: S101 - it has the field
    wanted = _takes(place, typed.Apply(_ANY, push, (_ROWS, value))), _passes(BOUNDS[tau][1])
    stateless = not any(isinstance(node, typed.State | typed.Call) for node in nodes(value))
    if (_shape(body), _shape(marked)) != tuple(map(_shape, wanted)) or not stateless:
        return None
    return value if isinstance(value, typed.MakeRecord) else _by_fields(item, value)


def _by_fields(type_: t.Record, row: typed.Expr) -> typed.MakeRecord:
    """A whole row, made of its fields: so all that is kept has one form."""
    values = (typed.Get(part, row, place, name) for place, (name, part) in enumerate(type_.fields))
    return typed.MakeRecord(type_, tuple(values), tuple(range(len(type_.fields))))


_ANY = t.UNIT  # of the parts below: a tree that has been checked has the types that fit
_NOW, _ROWS = typed.State(_ANY, 0, "now"), typed.State(_ANY, 1, "ins")
_EMPTY = typed.MakeList(_ANY, ())


def _takes(place: int, push: typed.Apply) -> typed.Block:
    """What is done with a row whose instant is its field `place`: it is put to the others."""
    instant = typed.Get(_ANY, typed.Local(_ANY, 0, "r"), place, "")
    return typed.Block(
        (_sends(_before(instant)), typed.Assign(_NOW, typed.Some(_ANY, instant)), typed.Do(push))
    )


def _passes(end: int) -> typed.Block:
    """What is done with a mark; `end` is the last instant that there is."""
    level = typed.Local(_ANY, 0, "k")
    ended = typed.Apply(_ANY, "==", (level, typed.Literal(_ANY, end)))
    return typed.Block(
        (_sends(typed.Logic(_ANY, "or", _before(level), ended)), typed.Mark(0, level)),
    )


def _before(instant: typed.Expr) -> typed.Expr:
    return typed.Apply(_ANY, "<", (typed.Local(_ANY, 1, "now"), instant))


def _sends(over: typed.Expr) -> typed.Branch:
    """If rows wait, and their instant is over, they are sent and forgotten."""
    sent = typed.MakeRecord(_ANY, (typed.Local(_ANY, 1, "now"), _ROWS, _EMPTY), (0, 1, 2))
    none = typed.Assign(_NOW, typed.Literal(_ANY, None))
    done = typed.Block((typed.Emit(0, sent), typed.Assign(_ROWS, _EMPTY), none))
    waits = typed.Bind(_NOW, 1, "now")
    return typed.Branch(waits, typed.Block((typed.Branch(over, done, None),)), None)


def _shape(tree: object) -> Any:
    """A tree without names and types. Of a constant that is made of another one, as times are of numbers, it has the value."""
    match tree:
        case typed.Apply(type_, _, (typed.Literal(),)) if type_ in BOUNDS and not traps_of(
            OPERATIONS[tree.operation], tuple(arg.type for arg in tree.args), type_
        ):
            return _shape(typed.Literal(type_, evaluate_const(tree)))
        case typed.Node():
            parts = [each.name for each in fields(type(tree)) if each.name not in _APART]
            return (type(tree).__name__, *(_shape(getattr(tree, name)) for name in parts))
        case tuple():
            return tuple(map(_shape, tree))  # pyright: ignore[reportUnknownArgumentType] - of any tree
        case _:
            return tree


_APART = frozenset({"name", "type", "span", "site"})
