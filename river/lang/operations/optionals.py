"""Optional values, and zeros."""

from __future__ import annotations

from typing import Any

from river.classes import evolve
from river.lang import types as t
from river.lang.operations.effects import PURE, Borrows, Order
from river.lang.operations.operands import agree
from river.lang.operations.table import (
    Known,
    Meaning,
    Operation,
    Signature,
    Types,
    nothing,
    optional,
    plain,
)  # fmt: skip
from river.lang.values import (
    TrapSignal,
    default,
)  # fmt: skip


def _force(value: Any) -> Any:
    if value is None:
        raise TrapSignal("optional-empty")
    return value


def _force_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    type_ = types[0] if len(types) == 1 else None
    if type_ is None and len(types) == 1 and wanted is not None:
        type_ = optional(wanted)
    return Signature((type_,), type_.inner) if isinstance(type_, t.Optional) else None


def _coalesce_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    if len(types) != 2:
        return None
    first = types[0] or (
        optional(types[1]) if types[1] is not None else None if wanted is None else optional(wanted)
    )
    if not isinstance(first, t.Optional):
        return None
    if types[1] == first:
        return Signature((first, first), first)
    return Signature((first, first.inner), first.inner) if agree(first.inner, types[1]) else None


def _coalesce(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _zero(_types: Types, result: t.Type) -> Meaning:
    value = default(result)
    return lambda: value


def _has_zero(type_: t.Type) -> bool:
    return not t.contains(type_, t.Function)


OPERATIONS: tuple[Operation, ...] = (
    Operation("force", _force_rule, plain(_force), "the value; traps if there is none", ("optional-empty",),
        "inline", effect=evolve(PURE, order=Order.KEEPS, borrows=Borrows.ITSELF)),
    Operation("coalesce", _coalesce_rule, plain(_coalesce), "a, or b if a is none", native="inline",
        effect=evolve(PURE, order=Order.KEEPS, borrows=Borrows.PART)),
    Operation("zero", nothing(_has_zero, None), _zero,
              "0, empty or none, by the type wanted", native="inline", effect=PURE),
)  # fmt: skip
