"""The shape of the table of operations, and the rules from which its lines are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from river.classes import frozen
from river.lang import types as t
from river.lang.operations.effects import WORST, Effect, Stated, Types

Known = tuple[t.Type | None, ...]
Meaning = Callable[..., Any]
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


@frozen
class Signature:
    """What an operation takes and gives."""

    params: Types
    result: t.Type


Rule = Callable[[Known, t.Type | None], Signature | None]
"""Operand types (None: a literal, an empty container, a lambda) and the type wanted (a hint) to a signature,
or None where the operation does not apply. A lambda's parameter is a `types.Function`; its result is None
where any will do."""


@frozen
class Operation:
    """One line of the table.

    `meaning(types, result)` is the Python function on values. `traps`: codes of il.md 2.4. `native`: P6.
    `mutates`: the first operand is a place; "container": its mutable container is changed; "value": the
    meaning returns its new value and the result. `effect`: what else it does; unstated it is the worst.
    """

    name: str
    rule: Rule
    meaning: Callable[[Types, t.Type], Meaning]
    doc: str
    traps: tuple[str, ...] | Callable[[Types, t.Type], tuple[str, ...]] = ()
    native: Literal["inline", "rt", "host"] = "rt"
    mutates: Literal["container", "value"] | None = None
    effect: Stated = WORST


def traps_of(operation: Operation, types: Types, result: t.Type) -> tuple[str, ...]:
    """The codes with which `operation` may end on these operand types; empty if it cannot."""
    return operation.traps(types, result) if callable(operation.traps) else operation.traps


def effect_of(operation: Operation, types: Types) -> Effect:
    """What `operation` does on operands of these types (a lambda: of its type)."""
    return operation.effect(types) if callable(operation.effect) else operation.effect


def plain(function: Meaning) -> Callable[[Types, t.Type], Meaning]:
    """A meaning that is the same for all types."""
    return lambda _types, _result: function


def strip(type_: t.Type | None) -> t.Type | None:
    """The type without its question mark."""
    return type_.inner if isinstance(type_, t.Optional) else type_


def optional(type_: t.Type) -> t.Type:
    """The type with a question mark: never two."""
    return type_ if isinstance(type_, t.Optional) else t.Optional(type_)


# ---------------------------------------------------------------------------------------------- sorts of types


def is_integer(type_: t.Type) -> bool:
    """i32, i64, u64, i128."""
    return type_ in t.INTEGERS


def is_float(type_: t.Type) -> bool:
    """f32, f64."""
    return type_ in t.FLOATS


def is_span(type_: t.Type) -> bool:
    """time, duration."""
    return type_ in (t.TIME, t.DURATION)


def is_number(type_: t.Type) -> bool:
    """Integers, floats, decimals."""
    return is_integer(type_) or is_float(type_) or isinstance(type_, t.Decimal)


def is_scalar(type_: t.Type) -> bool:
    """What `<` compares: numbers, time, duration, bool, string, bytes."""
    return is_number(type_) or is_span(type_) or type_ in (t.BOOL, t.STRING, t.BYTES)


def has_order(type_: t.Type) -> bool:
    """What the total order compares: everything but functions."""
    return not t.contains(type_, t.Function)


# ---------------------------------------------------------------------------------------------- rules


def fixed(params: Types, result: t.Type) -> Rule:
    """Exactly these operands."""
    signature = Signature(params, result)

    def rule(types: Known, _wanted: t.Type | None) -> Signature | None:
        if len(types) != len(params):
            return None
        fits = all(a is None or a == p or optional(a) == p for a, p in zip(types, params, strict=True))
        return signature if fits else None

    return rule


def alike(
    allowed: Callable[[t.Type], bool],
    count: int,
    result: t.Type | None = None,
    fallback: t.Type | None = t.I64,
) -> Rule:
    """`count` operands of one allowed type; the result is of that type unless stated. `fallback` when nothing is known."""

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        if len(types) != count:
            return None
        known = {type_ for type_ in types if type_ is not None}
        hint = strip(wanted) if result is None else None
        if not known:
            known = (
                {hint}
                if hint is not None and allowed(hint)
                else {fallback}
                if fallback is not None
                else set[t.Type]()
            )
        if len(known) != 1:
            return None
        (found,) = known
        return Signature((found,) * count, result or found) if allowed(found) else None

    return rule


def first_of(*rules: Rule) -> Rule:
    """The first rule that applies."""

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        for each in rules:
            found = each(types, wanted)
            if found is not None:
                return found
        return None

    return rule


def to_wanted(
    operand: Callable[[t.Type], bool], allowed: Callable[[t.Type], bool], fallback: t.Type | None
) -> Rule:
    """One operand (of a sort, i64 if it is a literal), and a result that must be wanted, or is the fallback."""

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        hint = strip(wanted)
        target = hint if hint is not None and allowed(hint) else fallback
        if len(types) != 1 or target is None or not operand(types[0] or t.I64):
            return None
        return Signature((types[0] or t.I64,), target)

    return rule


def from_any(operand: Callable[[t.Type], bool], result: t.Type, fallback: t.Type = t.I64) -> Rule:
    """One operand of a sort, and always this result."""

    def rule(types: Known, _wanted: t.Type | None) -> Signature | None:
        if len(types) != 1 or not operand(types[0] or fallback):
            return None
        return Signature((types[0] or fallback,), result)

    return rule


def nothing(allowed: Callable[[t.Type], bool], fallback: t.Type | None) -> Rule:
    """No operands; the result must be wanted, or is the fallback."""

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        target = wanted if wanted is not None and allowed(wanted) else fallback
        return None if types or target is None else Signature((), target)

    return rule


def itself(value: Any) -> Any:
    """The value."""
    return value
