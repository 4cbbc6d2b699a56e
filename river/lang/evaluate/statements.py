"""Statements as closures: each returns None, or the signal by which control leaves it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, assert_never

from river.lang import typed
from river.lang import types as t
from river.lang.evaluate.code import OUTS, RESULT, RETURN, VARIABLES, Compilation, Frame, Run, Signal
from river.lang.evaluate.expressions import expression, mutable, own, own_result, place, ranges
from river.lang.evaluate.traps import Trap
from river.lang.values import Mark, freezer, keyer

if TYPE_CHECKING:
    from collections.abc import Sequence

_DROPPED: Final = Signal("dropped")  # in the slot of an entry that is to go
_ABSENT: Final = Signal("absent")


def block(code: Compilation, body: typed.Block) -> Run:
    """The statements one after the other."""
    match [statement(code, item) for item in body.items]:
        case []:
            return lambda _f: None
        case [only]:
            return only
        case [first, second]:

            def both(f: Frame) -> Signal | None:
                signal = first(f)
                return second(f) if signal is None else signal

            return both
        case runs:

            def all_of_them(f: Frame) -> Signal | None:
                for run in runs:
                    signal = run(f)
                    if signal is not None:
                        return signal
                return None

            return all_of_them


def statement(code: Compilation, item: typed.Stmt) -> Run:
    """What executes one statement."""
    match item:
        case typed.Let(slot, _, value):
            return _store(slot, expression(code, value))
        case typed.Var(slot, _, value):
            return _store(slot, own(code, value))
        case typed.Assign():
            return _assign(code, item)
        case typed.With():
            return _with(code, item)
        case typed.Drop(slot, _):
            return _store(slot, lambda _f: _DROPPED)
        case typed.Branch():
            return _branch(code, item)
        case typed.For():
            return _for(code, item)
        case typed.While():
            return _while(code, item)
        case typed.Break(loop):
            leave = code.signal("break", loop)
            return lambda _f: leave
        case typed.Continue(loop):
            again = code.signal("continue", loop)
            return lambda _f: again
        case typed.Return(value):
            return _return(code, value)
        case typed.Emit(out, value):
            return _emit(code, out, value)
        case typed.Mark(out, value):
            return _mark(out, expression(code, value))
        case typed.Trap(text, site):
            return _trap(text, site, item)
        case typed.Do(call):
            return _do(expression(code, call))
        case _:
            assert_never(item)


def _store(slot: int, value: Run) -> Run:
    def store(f: Frame) -> None:
        f[slot] = value(f)

    return store


def _assign(code: Compilation, item: typed.Assign) -> Run:
    value = own(code, item.value)
    match item.place:
        case typed.Local(_, slot, _, _):
            return _store(slot, value)
        case typed.State(_, index, _):

            def store(f: Frame) -> None:
                f[VARIABLES][index] = value(f)

            return store
        case target:
            where = place(code, target)
    put, indices = where.set, where.indices

    def assign(f: Frame) -> None:
        ks = [index(f) for index in indices]
        put(f, ks, value(f))

    return assign


def _with(code: Compilation, item: typed.With) -> Run:
    slot, where, body = item.slot, place(code, item.container), block(code, item.body)
    entries_at, key = mutable(where, item.container.type), expression(code, item.key)
    canonical = keyer(t.parts(item.container.type)[0])
    otherwise = None if item.default is None else own(code, item.default)

    def run(f: Frame) -> Signal | None:
        ks: Sequence[Any] = [index(f) for index in where.indices]
        at = key(f) if canonical is None else canonical(key(f))
        entries = entries_at(f, ks)
        old = entries.get(at, _ABSENT)
        if old is not _ABSENT:
            f[slot] = old
        elif otherwise is not None:
            f[slot] = otherwise(f)
        else:
            raise Trap("key-missing", (at,), "with", item.site, item.span)
        signal = body(f)
        new = f[slot]
        if new is _DROPPED:
            if old is not _ABSENT:
                del entries[at]
        elif new is not old:
            entries[at] = new
        return signal

    return run


def _branch(code: Compilation, item: typed.Branch) -> Run:
    then = block(code, item.then)
    other = None if item.other is None else block(code, item.other)
    if isinstance(item.cond, typed.Bind):
        slot, value = item.cond.slot, expression(code, item.cond.value)

        def bind(f: Frame) -> Any:
            found = value(f)
            if found is not None:
                f[slot] = found
                return then(f)
            return None if other is None else other(f)

        return bind
    cond = expression(code, item.cond)
    if other is None:
        return lambda f: then(f) if cond(f) else None
    return lambda f: then(f) if cond(f) else other(f)


def _for(code: Compilation, item: typed.For) -> Run:
    source, body = ranges(code, item.range, len(item.slots), item.span), block(code, item.body)
    leave, again = code.signal("break", item.loop), code.signal("continue", item.loop)
    if len(item.slots) == 2:
        first, second = item.slots

        def pairs(f: Frame) -> Signal | None:
            for f[first], f[second] in source(f):  # noqa: B020 - its slots
                signal = body(f)
                if signal is not None and signal is not again:
                    return None if signal is leave else signal
            return None

        return pairs
    (slot,) = item.slots

    def items(f: Frame) -> Signal | None:
        for f[slot] in source(f):  # noqa: B020 - its slots
            signal = body(f)
            if signal is not None and signal is not again:
                return None if signal is leave else signal
        return None

    return items


def _while(code: Compilation, item: typed.While) -> Run:
    cond, body, tick = expression(code, item.cond), block(code, item.body), code.tick
    leave, again = code.signal("break", item.loop), code.signal("continue", item.loop)

    def loop(f: Frame) -> Signal | None:
        while cond(f):
            signal = body(f)
            if signal is not None and signal is not again:
                return None if signal is leave else signal
            tick(item.span)
        return None

    return loop


def _return(code: Compilation, value: typed.Expr | None) -> Run:
    if value is None:
        return lambda _f: RETURN
    result = own_result(code, value)

    def leave(f: Frame) -> Signal:
        f[RESULT] = result(f)
        return RETURN

    return leave


def _emit(code: Compilation, out: int, value: typed.Expr) -> Run:
    run, freeze = expression(code, value), freezer(value.type)
    if freeze is None:

        def emit(f: Frame) -> None:
            f[OUTS][out].append(run(f))

        return emit

    def emit_frozen(f: Frame) -> None:
        f[OUTS][out].append(freeze(run(f)))

    return emit_frozen


def _mark(out: int, key: Run) -> Run:
    def mark(f: Frame) -> None:
        f[OUTS][out].append(Mark(key(f)))

    return mark


def _trap(text: str, site: int, item: typed.Trap) -> Run:
    def trap(_f: Frame) -> None:
        raise Trap("assert", (), "trap", site, item.span, text)

    return trap


def _do(call: Run) -> Run:
    def do(f: Frame) -> None:
        call(f)

    return do


def function(code: Compilation, fn: typed.Fn) -> Run:
    """What runs a function on its frame and returns an owned value."""
    if not isinstance(fn.body, typed.Block):
        return own(code, fn.body)
    inner = Compilation(code.fns, code.consts, code.tick, code.functions, owned_slots(fn.body))
    run, result = block(inner, fn.body), itemgetter(RESULT)

    def body(f: Frame) -> Any:
        run(f)
        return result(f)

    return body


def owned_slots(body: typed.Block) -> frozenset[int]:
    """The slots of the `var`s declared in a body."""
    found: set[int] = set()
    for item in body.items:
        match item:
            case typed.Var(slot, _, _):
                found.add(slot)
            case typed.Branch(_, then, other):
                found |= owned_slots(then) | (owned_slots(other) if other is not None else frozenset())
            case (
                typed.With(_, _, _, _, _, inner, _) | typed.For(_, _, _, _, inner) | typed.While(_, _, inner)
            ):
                found |= owned_slots(inner)
            case _:
                pass
    return frozenset(found)
