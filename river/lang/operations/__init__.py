"""The table of library operations (il.md 2.2, 2.3): the one source for checker, evaluator and code generator."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from river.lang.operations import (
    arithmetic,
    bits,
    compare,
    convert,
    division,
    floats,
    lists,
    maps,
    optionals,
    regex,
    sequences,
    sums,
    text,
    times,
)  # fmt: skip
from river.lang.operations.effects import Borrows, Change, Effect, Measure, Neutral, Order
from river.lang.operations.table import Operation, Signature, effect_of, traps_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "OPERATIONS",
    "Borrows",
    "Change",
    "Effect",
    "Measure",
    "Neutral",
    "Operation",
    "Order",
    "Signature",
    "effect_of",
    "traps_of",
]


GROUPS = (
    arithmetic, division, bits, floats, compare, convert, times, text, regex, sequences, lists, maps, sums,
    optionals,
)  # fmt: skip


def _table() -> Mapping[str, Operation]:
    found: dict[str, Operation] = {}
    for module in GROUPS:
        for operation in module.OPERATIONS:
            assert operation.name not in found, operation.name  # noqa: S101 - by the rule
            found[operation.name] = operation
    return MappingProxyType(found)


OPERATIONS: Mapping[str, Operation] = _table()
