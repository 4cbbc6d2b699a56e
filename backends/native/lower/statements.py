"""Statements. Entries bound by `with` are cleaned up on every way out of their block."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never, cast

from backends.native.contract import MARK
from backends.native.idioms import clear, if_, value_of
from backends.native.layout import Unsupported, columns, entry_layout, memory
from backends.native.lower import maps, outputs
from backends.native.lower.containers import shown
from backends.native.lower.effects import changes
from backends.native.lower.expressions import assign, loop, owned, place, straight, value
from backends.native.lower.fetching import Search, searches
from backends.native.lower.frame import Frame, Loop
from backends.native.lower.moves import moved
from backends.native.lower.sending import sent
from backends.native.lower.values import TEMPORARY, Memory, Parts, Scalar, Sent, Value
from river.lang import typed
from river.lang import types as t
from river.lang.trees import effect, nodes, root

if TYPE_CHECKING:
    from collections.abc import Callable


def block(f: Frame, body: typed.Block) -> None:
    """The statements one after the other."""
    before, targets, compared = f.targets, sent(body, f.operator), dict(f.compared)
    f.targets = before | {slot: (target.out, target.field) for slot, target in targets.items()}
    f.moved |= moved(body)
    for i, item in enumerate(body.items):
        try:
            match item, body.items[i + 1 : i + 2]:
                case typed.With(), (typed.Do(typed.Apply() as bound),) if _bounds(bound, item):
                    _with(f, item, bound)
                case _:
                    statement(f, item)
            if isinstance(item, typed.Branch):
                for slot, target in targets.items():
                    if target.last == i:
                        list_ = f.slots[slot]
                        assert isinstance(list_, Sent)  # noqa: S101 - made when its turn came
                        outputs.withdraw(f, list_)
        except Unsupported as refused:
            raise Refusal(refused.reason, item) from None
    f.targets, f.compared = before, compared


class Refusal(Exception):  # noqa: N818 - a remark, not a mistake
    """Why a body is not compiled, and the innermost statement that is the reason."""

    def __init__(self, reason: str, node: typed.Node) -> None:
        super().__init__(reason)
        self.reason = reason
        self.node = node


def statement(f: Frame, item: typed.Stmt) -> None:
    """One statement."""
    match item:
        case typed.Let(slot, _, expr) | typed.Var(slot, _, expr) if slot in f.targets:
            out, field = f.targets[slot]
            f.slots[slot] = straight(
                f, expr, outputs.begin(f, f.operator.outs[out].type, output(f, out), field)
            )
        case typed.Let(slot, _, expr):
            found = value(f, expr)
            f.slots[slot] = f.snapshot(found) if not isinstance(found, Scalar) else found
        case typed.Var(slot, _, expr):
            found = owned(f, expr)
            f.slots[slot] = _variable(f, found)
            if slot in f.noted:
                clear(f.b, t.List(t.I64), f.noted[slot].list)
        case typed.Assign(target, expr):
            assign(f, target, expr)
            if isinstance(target, typed.Local) and target.slot in f.flags:
                f.b.do(f"store i1 false, ptr {f.flags[target.slot]}")
        case typed.With():
            _with(f, item)
        case typed.Drop(slot, _):
            f.b.do(f"store i1 true, ptr {f.flags[slot]}")
        case typed.Branch():
            _branch(f, item)
        case typed.For():
            with f.going_round(item):
                loop(
                    f,
                    item.range,
                    item.slots,
                    lambda: block(f, item.body),
                    lambda leave, again: _enter(f, item.loop, leave, again),
                    ahead=_unknown(f, item),
                )
        case typed.While():
            with f.going_round(item):
                _while(f, item)
        case typed.Break(number):
            _leave(f, f.loops[number].depth)
            f.b.go(f.loops[number].leave)
        case typed.Continue(number):
            _leave(f, f.loops[number].depth)
            f.b.go(f.loops[number].again)
        case typed.Return(expr):
            _return(f, expr)
        case typed.Emit(out, expr):
            outputs.scatter(f, f.operator.outs[out].type, _item(f, out, expr), output(f, out))
        case typed.Mark(out, expr):
            _mark(f, out, value(f, expr))
        case typed.Trap(_, site):
            f.trap("assert", site)
        case typed.Do(effect):
            value(f, effect)
        case _:
            assert_never(item)


def _item(f: Frame, out: int, expr: typed.Expr) -> Value:
    """What is sent; of a record, lists that are made here go to the columns at once."""
    type_ = f.operator.outs[out].type
    if not isinstance(expr, typed.MakeRecord) or changes(f, expr.values):
        return value(f, expr, lent=True)
    found: dict[int, Value] = {}
    for i in expr.order:
        match expr.values[i]:
            case typed.Comprehension(t.List()) as made if made.type == t.parts(type_)[i]:
                found[i] = straight(f, made, outputs.begin(f, type_, output(f, out), i))
            case other:
                found[i] = value(f, other, lent=True)
    return Parts(type_, tuple(found[i] for i in range(len(expr.values))))


def _variable(f: Frame, found: Value) -> Memory:
    """A place of its own for a value that is owned."""
    slot = f.b.slot(memory(found.type))
    f.put(found, slot)
    return Memory(found.type, slot)


def output(f: Frame, out: int) -> str:
    """The address of the block of an output."""
    return f.block("outs", 2 * out)


def _mark(f: Frame, out: int, key: Value) -> None:
    """A mark is a row of its own table: how many items stand before it, and the key."""
    count = f.b.op(f"load i64, ptr {output(f, out)}")
    number = f.b.op(f"sext i32 {f.reg(key)} to i64") if key.type == t.I32 else f.reg(key)
    pair = Parts(MARK, (Scalar(t.I64, count), Scalar(t.I64, number)))
    outputs.scatter(f, MARK, pair, f.block("outs", 2 * out + 1))


def _enter(f: Frame, number: int, leave: str, again: str) -> None:
    f.loops[number] = Loop(leave, again, len(f.cleanups))


def _leave(f: Frame, depth: int) -> None:
    """Cleans up the entries bound since `depth`; they stay bound for the code that follows."""
    for clean in reversed(f.cleanups[depth:]):
        clean()


def _bounds(apply: typed.Apply, item: typed.With) -> bool:
    """Whether an operation takes out at once the entry that `item` has put in, if it is beyond all that are to stay.

    Then it need not be put in: nothing is done but to change it, nothing can trap, and how many are to stay is known before.
    """
    if not effect(apply).bounds or apply.args[0] != item.container or item.default is None:
        return False
    body, parts = tuple(nodes(item.body)), (item.body, item.default, *apply.args[1:])
    known = typed.Literal | typed.ConstRef | typed.Local | typed.Get
    made = known | typed.Apply | typed.MakeRecord | typed.MakeMap
    changed = (
        node.place if isinstance(node, typed.Assign) else node.call.args[0]
        for node in body
        if isinstance(node, typed.Assign)
        or (isinstance(node, typed.Do) and isinstance(node.call, typed.Apply))
    )
    return (
        all(isinstance(node, made | typed.Block | typed.Assign | typed.Do) for node in body)
        and all(isinstance(node, made) for node in nodes(item.default))
        and all(isinstance(node, known) for node in nodes(apply.args[1]))
        and all(getattr(node, "site", None) is None for part in parts for node in nodes(part))
        and all(isinstance(at := root(place), typed.Local) and at.slot == item.slot for place in changed)
    )


def _with(f: Frame, item: typed.With, bound: typed.Apply | None = None) -> None:
    """What is done with an entry. `bound`: it takes out the entries at an end afterwards."""
    b, kind = f.b, item.container.type
    if not isinstance(kind, t.Map | t.OMap):
        raise Unsupported(f"entries of {kind}")
    reach = place(f, item.container)
    key = value(f, item.key)
    if not isinstance(key, Scalar):
        key = f.owned(key)
    map_ = reach()
    beyond = (
        None
        if bound is None
        else maps.beyond(f, bound, map_, key, value(f, cast("typed.Expr", bound.args[1])))
    )
    variable = item.container.index if isinstance(item.container, typed.State) else -1
    slot = item.key.slot if isinstance(item.key, typed.Local) else -1
    known, likely_ = f.hints.get(slot, (None, ""))
    if known is not None and known.variable == variable:
        name = f.module.map_function("map_still" if known.steady else "map_again", kind)
        found = b.call("ptr", name, [f"ptr {map_.ptr}", f"ptr {f.ptr(key)}", f"i64 {likely_}"])
    else:
        found = f.find(kind, map_.ptr, key, item)
    entry, flag = b.slot("ptr"), b.slot("i1")
    b.do(f"store ptr {found}, ptr {entry}")
    b.do(f"store i1 false, ptr {flag}")
    absent = b.op(f"icmp eq ptr {found}, null")
    if item.default is None:
        f.trap_if(absent, "key-missing", item.site, shown(f, key))
    else:
        default = item.default

        def insert() -> None:
            empty = isinstance(default, typed.MakeMap) and not default.items
            new = Scalar(t.UNIT, "0") if empty else owned(f, default)
            at = f.entry(kind, map_.ptr, map_.arena, key, item)
            if empty:
                clear(b, kind.value, at)
            elif map_.arena == TEMPORARY:
                f.put(new, at)
            else:
                f.keep(new, at, map_.arena)
            made = b.op(f"getelementptr inbounds i8, ptr {at}, i64 {-entry_layout(kind)[0]}")
            b.do(f"store ptr {made}, ptr {entry}")

        if_(b, absent, insert)
    at_hand = b.op(f"load ptr, ptr {entry}")
    f.slots[item.slot] = Memory(kind.value, value_of(b, kind, at_hand), map_.arena)
    f.flags[item.slot] = flag

    def clean() -> None:
        if _drops(item.body, item.slot):
            if_(b, b.op(f"load i1, ptr {flag}"), lambda: maps.remove_entry(f, map_, at_hand))

    f.cleanups.append(clean)
    before = f.at_hand
    f.at_hand = {**before, slot: at_hand}
    block(f, item.body)
    f.at_hand = before
    f.cleanups.pop()
    if not b.ended:
        clean()
    del f.flags[item.slot]
    if beyond is not None:
        b.at(beyond)


def _unknown(f: Frame, item: typed.For) -> tuple[Search, ...]:
    """What a loop seeks by parts of its rows; but not where entries are noted beside the keys: those were just used."""
    found = searches(item.body, item.slots[-1])
    if not isinstance(item.range, typed.Local) or item.range.slot not in f.noted:
        return found
    variable, key = f.noted[item.range.slot].variable, item.slots[-1]
    return tuple(
        each
        for each in found
        if each.map.index != variable or not isinstance(each.key, typed.Local) or each.key.slot != key
    )


def _drops(body: typed.Block, slot: int) -> bool:
    for item in body.items:
        match item:
            case typed.Drop(dropped, _) if dropped == slot:
                return True
            case typed.Branch(_, then, other) if _drops(then, slot) or (
                other is not None and _drops(other, slot)
            ):
                return True
            case typed.With(body=inner) | typed.For(body=inner) | typed.While(body=inner) if _drops(
                inner, slot
            ):
                return True
            case _:
                pass
    return False


def _branch(f: Frame, item: typed.Branch) -> None:
    b, other = f.b, item.other
    rest: Callable[[], None] | None = None if other is None else lambda: block(f, other)
    if isinstance(item.cond, typed.Bind):
        bind = item.cond
        found = value(f, bind.value)
        if not isinstance(found, Scalar):
            found = f.snapshot(found)

        def then() -> None:
            f.slots[bind.slot] = f.inner(found)
            block(f, item.then)

        if_(b, f.present(found), then, rest)
        return
    if_(b, f.reg(value(f, item.cond)), lambda: block(f, item.then), rest)


def _while(f: Frame, item: typed.While) -> None:
    b = f.b
    again, inside, after = b.fresh("while"), b.fresh("inside"), b.fresh("left")
    _enter(f, item.loop, after, again)
    b.at(again)
    f.poll()
    b.branch(f.reg(value(f, item.cond)), inside, after)
    b.at(inside)
    block(f, item.body)
    b.go(again)
    b.at(after)


def _return(f: Frame, expr: typed.Expr | None) -> None:
    assert f.finish is not None  # noqa: S101 - every function has one
    result: Value | None = None
    if expr is not None:
        taken = isinstance(expr, typed.Local) and expr.slot in f.result_owned
        result = value(f, expr) if taken else owned(f, expr)
        if not isinstance(result, Scalar):
            result = Memory(result.type, f.ptr(result))
    _leave(f, 0)
    f.finish(result)


__all__ = ["Refusal", "block", "columns", "output", "statement"]
