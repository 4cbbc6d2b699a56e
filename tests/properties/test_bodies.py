"""Laws of the operator language over random well-typed bodies: checker, printer, parser and evaluator agree."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from attrs import frozen
from hypothesis import given

from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.pretty import pretty
from river.lang import check, typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator, expressions, freeze_variables, statements
from river.lang.values import freezer, thaw, well_typed
from river.source import Source
from river.testing.body_strategies import BodyCase, bodies

if TYPE_CHECKING:
    from collections.abc import Iterable

CODES = frozenset({
    "overflow", "division-by-zero", "shift-range", "conversion-range", "index-range", "key-missing", "remove-missing",
    "optional-empty", "decimal-precision", "bad-utf8", "bad-parse", "bad-regex", "recursion-depth", "assert",
})  # fmt: skip
"""The traps of il.md 2.4 that a body can end with."""


def checked(case: BodyCase) -> typed.Operator:
    try:
        found = check.operator(case.operator, case.scope)
    except Rejected as rejected:
        message = f"{rejected}\n{pretty(case.program)}"
        raise AssertionError(message) from None
    assert isinstance(found, typed.Operator)
    return found


@frozen
class Fired:
    """What a firing left: items by output and frozen variables, or a trap."""

    outs: tuple[tuple[Any, ...], ...] = ()
    variables: tuple[Any, ...] = ()
    trap: tuple[str, int | None] | None = None


def firings(op: typed.Operator, case: BodyCase, *, freeze: bool) -> list[Fired]:
    """One firing after the other until one traps; `freeze` freezes the variables between them."""
    body = compile_operator(op)
    fire = body.rated if body.rated is not None else body.item[0]
    assert fire is not None
    inputs: Iterable[Any] = case.items
    if op.rated is not None:
        inputs = list(zip(zip(case.items, case.items[1:], strict=False), strict=False))
    variables: list[Any] = list(case.states)
    found: list[Fired] = []
    for item in inputs:
        outs: list[list[Any]] = [[] for _ in op.outs]
        try:
            fire(variables, item, outs)
        except Trap as trap:
            found.append(Fired(trap=(trap.code, trap.site)))
            break
        state = freeze_variables(op, variables)
        if freeze:
            variables = list(state)
        found.append(Fired(tuple(map(tuple, outs)), state))
    return found


@given(bodies())
def test_what_is_well_typed_by_construction_is_accepted(case: BodyCase) -> None:
    checked(case)


@given(bodies())
def test_it_reads_as_it_was_printed(case: BodyCase) -> None:
    assert parse(Source("random.river", pretty(case.program))) == case.program


@given(bodies())
def test_a_firing_gives_values_of_its_types_or_a_trap_of_its_sites(case: BodyCase) -> None:
    op = checked(case)
    for fired in firings(op, case, freeze=True):
        if fired.trap is not None:
            code, site = fired.trap
            assert code in CODES
            assert site is not None
            assert code in op.sites[site].codes
        for out, items in zip(op.outs, fired.outs, strict=False):
            assert all(well_typed(out.type, item) for item in items)
        for variable, value in zip(op.vars, fired.variables, strict=False):
            assert well_typed(variable.type, value)


@given(bodies())
def test_a_firing_is_a_function_of_the_item_and_the_state(case: BodyCase) -> None:
    """Once more is the same; nothing that was given changes, nor what was emitted; mutable state is as frozen state."""
    op = checked(case)
    before = repr((case.items, case.states))
    first = firings(op, case, freeze=True)
    emitted = repr(first)
    assert firings(op, case, freeze=True) == first
    assert firings(op, case, freeze=False) == first
    assert repr((case.items, case.states)) == before
    assert repr(first) == emitted


def copying() -> ExitStack:
    """An evaluator for which values cannot be shared: every write copies the whole container."""

    def mutable(where: expressions.Place, type_: t.Type) -> Any:
        freeze = freezer(type_)
        assert freeze is not None

        def reach(f: Any, ks: Any) -> Any:
            container = thaw(type_, freeze(where.get(f, ks)))
            where.set(f, ks, container)
            return container

        return reach

    def change(code: Any, expr: typed.Apply, operation: Any, meaning: Any) -> Any:
        freeze = freezer(expr.args[0].type)
        if operation.mutates == "container" or freeze is None:
            return original(code, expr, operation, meaning)
        return original(code, expr, operation, lambda old, *operands: meaning(freeze(old), *operands))

    original = expressions._change
    stack = ExitStack()
    stack.enter_context(patch.object(expressions, "mutable", mutable))
    stack.enter_context(patch.object(statements, "mutable", mutable))
    stack.enter_context(patch.object(expressions, "_change", change))
    return stack


@given(bodies())
def test_sharing_is_not_seen(case: BodyCase) -> None:
    """Copy on write gives what copying at every write gives: no write is seen under another name (il.md P5)."""
    op = checked(case)
    with copying():
        expected = firings(op, case, freeze=True)
    assert firings(op, case, freeze=False) == expected


@given(bodies())
def test_what_is_not_written_does_not_change(case: BodyCase) -> None:
    op = checked(case)
    for fired in firings(op, case, freeze=False):
        for variable, before, after in zip(op.vars, case.states, fired.variables, strict=False):
            if not variable.written:
                assert after is before or t.is_flat(variable.type)
                assert repr(after) == repr(before)
