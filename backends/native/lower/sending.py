"""Lists that are sent as they are made: their items go to the columns of the output at once.

    var ins: list<T> = [];  ... push(ins, x); ...  if len(ins) > 0 { emit out {tau: t, ins: ins}; }

A list that is only pushed to or made at once, measured, and sent once as a field needs no memory of its own. If in the end
it is not sent, its rows are taken back, as those of a firing that traps are.
"""

from __future__ import annotations

from river.classes import frozen
from river.lang import typed
from river.lang import types as t
from river.lang.operations import Change, Measure
from river.lang.trees import children, effect, nodes


@frozen(eq=False)
class Target:
    """Where the items of a list go: field `field` of what is sent to output `out` by the statement `last` of the block."""

    out: int
    field: int
    last: int


def sent(body: typed.Block, op: typed.Operator) -> dict[int, Target]:
    """The lists, by slot, that statements of a block make and a later one of its statements sends, and where."""
    found: dict[int, Target] = {}
    for i, item in enumerate(body.items):
        match item:
            case typed.Var(slot, _, typed.MakeList(t.List() as type_, ())):
                pass
            case typed.Let(slot, _, typed.Comprehension(t.List() as type_)):
                pass
            case typed.Let(slot, _, typed.Apply(t.List() as type_) as made) if _rest(made):
                pass
            case _:
                continue
        target = _target(body, i, slot, type_, op)
        if target is not None:
            found[slot] = target
    return found


def _rest(made: typed.Apply) -> bool:
    """Whether an operation makes a list of what is left without the items that equal others."""
    stated = effect(made)
    return stated.matches and stated.change is Change.SHRINKS


def fields(expr: typed.MakeRecord, slot: int) -> list[int]:
    """The fields of a record that are a local."""
    return [i for i, each in enumerate(expr.values) if isinstance(each, typed.Local) and each.slot == slot]


def _target(body: typed.Block, at: int, slot: int, type_: t.Type, op: typed.Operator) -> Target | None:
    """Where a list goes that statement `at` begins, if it goes straight there."""
    for last in range(at + 1, len(body.items)):
        emit = _emit(body.items[last], slot)
        if emit is None:
            continue
        record = emit.value
        assert isinstance(record, typed.MakeRecord)  # noqa: S101 - by `_emit`
        (place,) = fields(record, slot) if len(fields(record, slot)) == 1 else (None,)
        between = body.items[at + 1 : last + 1]
        if place is None or t.parts(record.type)[place] != type_ or not _straight(between, emit, op):
            return None
        uses = sum(_uses(each, slot) for each in body.items[at + 1 :])
        return Target(emit.out, place, last) if uses == 1 else None
    return None


def _emit(item: typed.Stmt, slot: int) -> typed.Emit | None:
    """The statement that sends a local: this one, or one that it does under a condition."""
    match item:
        case typed.Emit(_, typed.MakeRecord() as record) if fields(record, slot):
            return item
        case typed.Branch(_, then, None):
            for inner in then.items:
                if isinstance(inner, typed.Emit) and (found := _emit(inner, slot)) is not None:
                    return found
        case _:
            pass
    return None


def _straight(items: tuple[typed.Stmt, ...], emit: typed.Emit, op: typed.Operator) -> bool:
    """Whether nothing but `emit` sends to its output, and nothing leaves before it."""
    loops = {node.loop for node in nodes(items) if isinstance(node, typed.For | typed.While)}
    for node in nodes(items):
        match node:
            case typed.Emit(out) if out == emit.out and node is not emit:
                return False
            case typed.Call(_, function) if op.fns[function].emits:
                return False
            case typed.Return():
                return False
            case typed.Break(loop) | typed.Continue(loop) if loop not in loops:
                return False
            case _:
                pass
    return True


def _uses(node: typed.Node, slot: int) -> int:
    """How often a local is used but to push to it and to ask for its length; many times where it is bound again."""
    match node:
        case typed.Apply(args=(typed.Local(slot=pushed), value)) if pushed == slot and effect(node).pushes:
            return _uses(value, slot)
        case typed.Apply(args=(typed.Local(slot=asked),)) if (
            asked == slot and effect(node).measure is Measure.COUNT
        ):
            return 0
        case typed.Local(slot=used):
            return int(used == slot)
        case _:
            again = slot == getattr(node, "slot", None) or slot in getattr(node, "slots", ())
            return 2 * again + sum(_uses(each, slot) for each in children(node))


__all__ = ["Target", "fields", "sent"]
