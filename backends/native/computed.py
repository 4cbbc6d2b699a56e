"""Constants that machine code computes: those of many items, and those for which the evaluator takes long.

An operator that has no other purpose than to send the constant is fired once. What it sends is copied to where the code of
the operator with the constant has left room for it, when that has been linked; what is kept of the code stays small.
"""

from __future__ import annotations

import ctypes
from threading import Thread
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import Batch
from backends.native.contract import ARENA_SIZE, BASE, Reason
from backends.native.layout import Unsupported, is_plain, register, size_align
from backends.native.tiers import unless_abandoned
from river.lang import memory, typed
from river.lang import types as t
from river.lang.evaluate import Trap, evaluate_const
from river.lang.patience import ending
from river.lang.trees import nodes, reached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.native.jit import Code
    from backends.native.operator import Fired, NativeOperator

LARGE: Final = 1 << 15  # bytes
LONG: Final = 0.1
"""Seconds of the processor that the evaluator may be at a constant; making code for it takes about as long."""
_WRITTEN: Final = (typed.Literal, typed.MakeList, typed.MakeRecord)
"""What a table is made of that is written out, of which code would be long."""
_PATIENCE: Final = 0.02
"""Seconds after which it is asked again whether a constant is wanted still."""


def has_room(const: typed.Const) -> bool:
    """Whether a constant lies in memory of the code that is filled when the code has been linked."""
    try:
        return is_plain(const.type) and register(const.type) is None and size_align(const.type)[0] >= LARGE
    except Unsupported:
        return False


def needs_code(op: typed.Operator) -> tuple[bool, ...]:
    """For each constant whether machine code computes it: large ones, and those made of such."""
    found: list[bool] = []
    if not any(map(has_room, op.consts)):
        return (False,) * len(op.consts)
    for const in op.consts:
        named = (node.index for node in reached(const.value, op.fns) if isinstance(node, typed.ConstRef))
        found.append(has_room(const) or any(found[index] for index in named))
    return tuple(found)


def constant(op: typed.Operator, index: int, known: Sequence[Any], *, debug: bool = False) -> Any:
    """The value of a constant, by the evaluator or, where that takes long, by machine code; `known`: of those before it.

    Raises: Trap; Unwanted when the thread's work is not wanted any more.
    """
    const, begun = op.consts[index], thread_time()
    fns, check = _called(op, (const,)), ending()

    def wanted() -> None:
        unless_abandoned()
        check()

    def poll() -> None:
        wanted()
        if thread_time() - begun > LONG:
            raise _TakesLong

    try:
        return evaluate_const(const.value, fns, known, const.slots, poll)
    except _TakesLong:
        made = compute(op, index, debug=debug)
    if isinstance(made, Reason):
        return evaluate_const(const.value, fns, known, const.slots, wanted)
    (found,) = made.values()
    return found


def computed(op: typed.Operator) -> tuple[Any, ...]:
    """The values of all constants by machine code, or none."""
    found: list[Any] = []
    for index in range(len(op.consts)):
        made = compute(op, index)
        if isinstance(made, Reason):
            return ()
        found += made.values()
    return tuple(found)


class _TakesLong(Exception):  # noqa: N818 - no mistake
    """The evaluator has been at a constant for long."""


def compute(op: typed.Operator, index: int, *, debug: bool = False) -> Batch | Reason:
    """The value of a constant as the one row of a batch, or why there is none.

    Raises: Unwanted when the thread's work is not wanted any more; Trap at the deadline.
    """
    from backends.native.operator import Refused, compile_native

    const = op.consts[index]
    native = compile_native(_sender(op, index), debug=debug)
    if isinstance(native, Refused):
        return native.reasons[0]
    asked = Batch.of(t.I64, [0])
    try:
        fired = _fired(native, asked)
    except Trap as trap:
        trap.span = trap.span or const.span
        trap.placed(op)
        raise
    if fired.trap is not None:
        return Reason(f"the constant `{const.name}` traps", const.span)
    ((_, batch, _),) = native.take()
    return batch


def fill(
    op: typed.Operator, code: Code, rooms: list[tuple[int, str]], *, debug: bool = False
) -> Reason | None:
    """Computes constants into the room that code has for them, by position and symbol; or why that is not possible.

    Raises: Unwanted when the thread's work is not wanted any more.
    """
    from backends.native.operator import NativeVariable
    from backends.native.shared import part_at_hand

    close = part_at_hand(BASE).function("arena_close", (ctypes.c_void_p,))
    for index, symbol in rooms:
        const = op.consts[index]
        type_ = const.type
        value = NativeVariable(type_, debug, close)
        if all(isinstance(node, _WRITTEN) for node in nodes(const.value)):
            value.set(evaluate_const(const.value))
        else:
            made = compute(op, index, debug=debug)
            if isinstance(made, Reason):
                return made
            value.fill(made)
        ctypes.memmove(code.addresses[symbol], value.block.address + ARENA_SIZE, size_align(type_)[0])
    return None


def _sender(op: typed.Operator, index: int) -> typed.Operator:
    """The operator that sends the constant at any item."""
    const, consts = op.consts[index], op.consts[:index]
    fns = _called(op, (*consts, const))
    value = typed.Fn("value", (), const.type, const.slots, const.value, emits=False)
    site = typed.TrapSite(("recursion-depth",))
    call = typed.Call(const.type, len(fns), value.name, (), len(op.sites))
    body = typed.Block((typed.Emit(0, call),))
    return typed.Operator(
        f"{op.name}.{const.name}",
        (typed.Port("x", t.I64, None),),
        (),
        (typed.Out("out", const.type, None, None),),
        consts,
        (*fns, value),
        (*op.sites, site),
        items=(typed.ItemHandler(0, 1, body),),
        span=op.span,
    )


def _called(op: typed.Operator, consts: Sequence[typed.Const]) -> tuple[typed.Fn, ...]:
    """The functions of an operator, of which those that constants do not call have nothing to do."""
    called = {
        node.function
        for each in consts
        for node in reached(each.value, op.fns)
        if isinstance(node, typed.Call)
    }
    nothing = typed.Fn("", (), t.I64, 0, typed.Literal(t.I64, 0), emits=False)
    return tuple(fn if i in called else nothing for i, fn in enumerate(op.fns))


def _fired(native: NativeOperator, asked: Batch) -> Fired:
    """The firing, on a thread of its own: this one goes on to hear signals, and whether the constant is wanted still."""
    found: list[Any] = []
    thread = Thread(
        target=lambda: found.append(native.fire("item.0", asked.addresses, 0, 1)), name="constant"
    )
    check = ending()
    memory.start(thread)
    try:
        while thread.is_alive():
            thread.join(_PATIENCE)
            unless_abandoned()
            check()
    except BaseException:
        native.stop()
        thread.join()
        raise
    return found[0]
