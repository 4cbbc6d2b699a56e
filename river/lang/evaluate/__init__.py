"""The meaning of checked operators, as closures over their trees (no code is generated).

A firing gets the operator's variables as a list, which it updates in place, and a list per output, to which
it appends frozen items and `values.Mark`s. When it traps, what it has appended and changed means nothing
(il.md P10).
"""

from __future__ import annotations

import sys
from time import thread_time
from typing import TYPE_CHECKING, Any, TypeAlias

from river.classes import frozen
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate.code import CELLS, Compilation, Run, ticker
from river.lang.evaluate.expressions import own
from river.lang.evaluate.further import NESTED
from river.lang.evaluate.statements import block, function
from river.lang.evaluate.traps import Trap, inside, rate_violation
from river.lang.operations import OPERATIONS
from river.lang.patience import LONG, coder, ending
from river.lang.trees import children, nodes, recursive
from river.lang.values import Value, freezer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "CompiledOperator",
    "Trap",
    "compile_function",
    "compile_operator",
    "evaluate_const",
    "first_value",
    "freeze_variables",
    "inside",
    "may_run_out",
    "rate_violation",
]

Outs: TypeAlias = "Sequence[list[Any]]"
Fire: TypeAlias = "Callable[[list[Any], Any, Outs], None]"
FireMerge: TypeAlias = "Callable[[list[Any], Any, tuple[Any, ...], Outs], None]"


@frozen
class CompiledOperator:
    """A compiled operator; its fields are as those of `typed.Operator`, of which it has just those that are there.

    item: by port, fire(variables, item, outs). first, rated: fire(variables, windows, outs), a frozen list
    per rate. phases: as item. merge: fire(variables, key, sides, outs), a side per port, none where absent.
    mark: fire(variables, key, outs).
    """

    operator: typed.Operator
    item: tuple[Fire | None, ...]
    first: Fire | None
    rated: Fire | None
    phases: tuple[Fire, ...]
    merge: FireMerge | None
    mark: Fire | None


def compile_operator(op: typed.Operator, poll: Callable[[], None] | None = None) -> CompiledOperator:
    """The firings of `op`. `poll` is called now and then from loops and calls; it may raise `Trap` to end a firing.

    Raises: Trap if a constant cannot be computed.
    """
    values: tuple[Value, ...] = ()
    for const in op.consts:
        values = (*values, _constant(_code(op.fns, values, ending()), const.value, const.slots))
    code = _code(op.fns, values, poll)
    handlers = {handler.port: _one(code, handler.slots, handler.body) for handler in op.items}
    return CompiledOperator(
        op,
        tuple(handlers.get(port) for port in range(len(op.ports))),
        None if op.first is None else _windows(code, op.first),
        None if op.rated is None else _windows(code, op.rated),
        tuple(_one(code, phase.slots, phase.body) for phase in op.phases),
        None if op.merge is None else _merge(code, op.merge),
        None if op.mark is None else _one(code, op.mark.slots, op.mark.body),
    )


def compile_function(fns: tuple[typed.Fn, ...], index: int) -> Callable[..., Value]:
    """Function `index` on frozen values, to a frozen value. It raises `Trap`."""
    fn, run = fns[index], _code(fns, ()).functions[index]
    pad = (None,) * (fn.slots - len(fn.params))
    freeze = freezer(fn.result)

    def call(*args: Value) -> Value:
        if len(args) != len(fn.params):
            raise TypeError(f"{fn.name} takes {len(fn.params)} arguments")
        result = _within_memory(run, [*args, *pad, (), 1, (), ()])
        return result if freeze is None else freeze(result)

    return call


def evaluate_const(
    expr: typed.Expr,
    fns: tuple[typed.Fn, ...] = (),
    consts: Sequence[Value] = (),
    slots: int = 0,
    poll: Callable[[], None] | None = None,
) -> Value:
    """The frozen value of a closed expression; `consts` are the values of the constants it may name.

    `poll` is called now and then; it may end the evaluation by an exception.

    Raises: Trap.
    """
    return _constant(_code(fns, tuple(consts), poll), expr, slots)


class _TakesLong(Exception):  # noqa: N818 - no mistake
    """The evaluator has been at a value for long."""


def first_value(
    expr: typed.Expr, fns: tuple[typed.Fn, ...], sites: tuple[typed.TrapSite, ...], slots: int
) -> Value:
    """The frozen value of a closed expression, by the evaluator or, where that takes long, by machine code.

    Both agree bit for bit. Raises: Trap.
    """
    code, check, begun = coder(), ending(), thread_time()

    def poll() -> None:
        check()
        if code is not None and thread_time() - begun > LONG:
            raise _TakesLong

    try:
        return evaluate_const(expr, fns, (), slots, poll)
    except _TakesLong:
        assert code is not None  # noqa: S101 - else nothing takes long
    called = (fns[node.function].span for node in nodes(expr) if isinstance(node, typed.Call))
    span = expr.span or next(called, None)
    const = typed.Const("value", expr.type, expr, slots, span=span)
    found = code(typed.Operator("first", (), (), (), (const,), fns, sites, span=span))
    return found[0] if found else evaluate_const(expr, fns, (), slots, check)


def freeze_variables(op: typed.Operator, variables: Sequence[Value]) -> tuple[Value, ...]:
    """The variables of `op` as frozen values; those given may go on changing."""
    freezers = (freezer(var.type) for var in op.vars)
    return tuple(
        value if freeze is None else freeze(value) for freeze, value in zip(freezers, variables, strict=True)
    )


def _code(
    fns: tuple[typed.Fn, ...], consts: tuple[Value, ...], poll: Callable[[], None] | None = None
) -> Compilation:
    code = Compilation(fns, consts, ticker(poll))
    code.functions += [function(code, fn) for fn in fns]
    _make_room(fns)
    return code


def _constant(code: Compilation, expr: typed.Expr, slots: int) -> Value:
    freeze = freezer(expr.type)
    value = _within_memory(own(code, expr), [*(None,) * slots, *CELLS, (), ()])
    return value if freeze is None else freeze(value)


def _within_memory(run: Run, frame: list[Any]) -> Any:
    """What a run gives; the end of memory is a trap of it."""
    try:
        return run(frame)
    except MemoryError:
        raise Trap("arena-limit") from None


def _one(code: Compilation, slots: int, body: typed.Block) -> Fire:
    run, pad = block(code, body), (*(None,) * (slots - 1), *CELLS)

    def fire(variables: list[Any], item: Any, outs: Outs) -> None:
        _within_memory(run, [item, *pad, outs, variables])

    return fire


def _windows(code: Compilation, handler: typed.RatedHandler) -> Fire:
    run: Run = block(code, handler.body)
    pad = (*(None,) * (handler.slots - len(handler.rates)), *CELLS)

    def fire(variables: list[Any], windows: tuple[Any, ...], outs: Outs) -> None:
        _within_memory(run, [*windows, *pad, outs, variables])

    return fire


def _merge(code: Compilation, handler: typed.MergeHandler) -> FireMerge:
    run: Run = block(code, handler.body)
    pad = (*(None,) * (handler.slots - 1 - len(handler.ports)), *CELLS)

    def fire(variables: list[Any], key: Any, sides: tuple[Any, ...], outs: Outs) -> None:
        _within_memory(run, [key, *sides, *pad, outs, variables])

    return fire


def may_run_out(op: typed.Operator) -> bool:
    """Whether a firing can be ended for want of memory or time: it loops, calls, or makes or changes what has no fixed size."""
    handlers = (*op.items, op.first, op.rated, *op.phases, op.merge, op.mark)
    return bool(op.fns) or any(map(_may_run_out, nodes(tuple(h for h in handlers if h is not None))))


def _may_run_out(node: typed.Node) -> bool:
    match node:
        case typed.For() | typed.While() | typed.Comprehension() | typed.Call():
            return True
        case typed.Apply(type_, name):
            return OPERATIONS[name].mutates is not None or _grows(type_)
        case _:
            return False


def _grows(type_: t.Type) -> bool:
    return not t.is_flat(type_) or t.contains(type_, t.STRING, t.BYTES)


# ---------------------------------------------------------------------------------------------- room for recursion

_FRAMES_PER_NODE = 3  # of Python, for one node of a tree, at most
_SPARE_FRAMES = 500  # of those who call us


def _make_room(fns: tuple[typed.Fn, ...]) -> None:
    """Lets Python nest as deeply as calls do in one thread. Calls of closures by closures need no C stack."""
    if not fns:
        return
    nested = NESTED if recursive(fns) else min(len(fns), NESTED)
    needed = (nested + 1) * _FRAMES_PER_NODE * max(map(_height, fns)) + _SPARE_FRAMES
    if needed > sys.getrecursionlimit():
        sys.setrecursionlimit(needed)


def _height(node: typed.Node) -> int:
    return 1 + max(map(_height, children(node)), default=0)
