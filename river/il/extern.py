"""Operators written in Python: `operator f(q: T; $v: V) -> (out: U) = extern python "module:function";`.

The function is called once for each item as `function(port, item, variables)`: the position of the port among the
inputs, the item, and a list of the variables in the order of the signature, all frozen values; the function changes a
variable by assigning to its place in the list. It returns, or yields, pairs `(out, item)`: the position of the output and
the item for it. Values have the Python forms of `river.lang.values`; mutable containers are taken too and frozen.

`extern python scalar "module:function"` is a function of values: its input and its output are deltas, whose rows are alike but
for the last field. That is a record of operands on the input, and what `function(*operands)` gives on the output; for operands
that are none, as a whole, it is none.

Whatever the function raises, and whatever it gives that has not the declared type, is the trap `extern-failed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from river.diagnostics import Diagnostic
from river.il.annotations import row_type
from river.lang.evaluate import Trap
from river.lang.scope import show
from river.lang.types import Record
from river.lang.values import freezer, well_typed

if TYPE_CHECKING:
    from river.lang import typed
    from river.lang.types import Type
    from river.source import Span

Function = Callable[[int, Any, list[Any]], Iterable[tuple[int, Any]]]
"""A user-defined Python operator."""

Fire = Callable[[int, Any, list[Any], list[list[Any]]], None]
"""A firing: port, item, variables, outs; like the evaluator's, it updates the variables and appends to the outs."""


def not_given(extern: typed.Extern, span: Span | None) -> Diagnostic:
    """That a run lacks the function of `extern`: a `run-extern`."""
    module, _, name = extern.target.partition(":")
    message = f"the operator `{extern.name}` needs the Python function `{name}` of the module `{module}`"
    hint = f'add `--extern {module}`; from Python, `externs={{"{extern.target}": ...}}`'
    return Diagnostic("run-extern", message, span, help=hint)


def compile_extern(extern: typed.Extern, function: Function) -> Fire:
    """The firing of `extern` by `function`; it raises `Trap`, and what it has changed by then means nothing."""
    outs = [_taker(out.type) for out in extern.outs]
    variables = [_taker(var.type) for var in extern.vars]
    freezers = [(i, freeze) for i, var in enumerate(extern.vars) if (freeze := freezer(var.type)) is not None]

    def failed(reason: str) -> Trap:
        return Trap(
            "extern-failed", (reason,), extern.target, None, extern.span, f"`{extern.target}`: {reason}"
        )

    if extern.scalar:
        function = _by_rows(extern, function, failed)

    def fire(port: int, item: Any, state: list[Any], emitted: list[list[Any]]) -> None:
        for i, freeze in freezers:  # an operator that shares the variable may have left it mutable
            state[i] = freeze(state[i])
        before = list(state)
        try:
            pairs = list(function(port, item, state))
        except Trap:
            raise
        except Exception as error:
            raise failed(f"{type(error).__name__}: {error}") from error
        for pair in pairs:
            place = _place(pair, len(outs))
            if place is None:
                raise failed(f"gave {pair!r}, not a pair of the position of an output and an item")
            try:
                emitted[place].append(outs[place](pair[1]))
            except TypeError:
                out = extern.outs[place]
                raise failed(f"gave {pair[1]!r} for output `{out.name}`, not `{show(out.type)}`") from None
        if len(state) != len(before):
            raise failed(f"left {len(state)} variables, not {len(before)}")
        for i, (old, new) in enumerate(zip(before, state, strict=True)):
            if new is not old:
                try:
                    state[i] = variables[i](new)
                except TypeError:
                    var = extern.vars[i]
                    raise failed(f"gave {new!r} to variable `${var.name}`, not `{show(var.type)}`") from None

    return fire


def _by_rows(extern: typed.Extern, function: Callable[..., Any], failed: Callable[[str], Trap]) -> Function:
    """The operator that a function of values is, over deltas."""
    row = row_type(extern.outs[0].type)
    assert isinstance(row, Record)  # noqa: S101 - the checker has seen to it
    column, type_ = row.fields[-1]
    take = _taker(type_)

    def value(operands: tuple[Any, ...] | None) -> Any:
        if operands is None:
            return None
        found = function(*operands)
        try:
            return take(found)
        except TypeError:
            raise failed(f"gave {found!r} for `{column}`, not `{show(type_)}`") from None

    def fire(_port: int, delta: Any, _variables: list[Any]) -> Iterable[tuple[int, Any]]:
        tau, *parts = delta
        return [(0, (tau, *([(*row[:-1], value(row[-1])) for row in rows] for rows in parts)))]

    return fire


def _taker(type_: Type) -> Callable[[Any], Any]:
    """A function from what the user gave to the frozen value. It raises TypeError if that is no value of the type."""
    freeze = freezer(type_)

    def take(value: Any) -> Any:
        try:
            frozen = value if freeze is None else freeze(value)
        except (AttributeError, IndexError, ValueError) as error:
            raise TypeError from error
        if not well_typed(type_, frozen):
            raise TypeError
        return frozen

    return take


def _place(pair: object, outs: int) -> int | None:
    """The output that a pair names."""
    if not isinstance(pair, tuple):
        return None
    match cast("tuple[object, ...]", pair):
        case (int() as place, _) if 0 <= place < outs:
            return place
        case _:
            return None
