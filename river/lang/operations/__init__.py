"""The table of library operations (il.md 2.2, 2.3): the one source for checker, evaluator and code generator."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from river.lang.operations import arithmetic, compare, containers, convert, floats, regex, sums, text, times
from river.lang.operations.table import Operation, Signature, traps_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OPERATIONS", "Operation", "Signature", "traps_of"]


def _table() -> Mapping[str, Operation]:
    found: dict[str, Operation] = {}
    for module in (arithmetic, floats, compare, convert, times, text, regex, containers, sums):
        for operation in module.OPERATIONS:
            assert operation.name not in found, operation.name
            found[operation.name] = operation
    return MappingProxyType(found)


OPERATIONS: Mapping[str, Operation] = _table()
