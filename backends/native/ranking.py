"""Rows of columns in the total order of values, by machine code made for their type (`row_order`)."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import pointers
from backends.native.deal import gathered
from backends.native.jit import level
from backends.native.pages import words
from backends.native.shared import ModuleText, shared
from river.classes import define, field
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.native.batch import Batch
    from backends.native.jit import Code

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64


@define(eq=False)
class Ranked:
    """Rows in the total order, equal ones as they stood. `order`: their numbers; None where they stand in order."""

    rows: Batch
    order: Any = field(repr=False)

    def parts(self, size: int) -> Iterator[Batch]:
        """The rows in order, so many at a time, which are gathered when their turn comes."""
        for start in range(0, len(self.rows), size):
            stop = min(start + size, len(self.rows))
            if self.order is None:
                yield self.rows[start:stop]
            else:
                numbers = (_I * (stop - start)).from_buffer(self.order, 8 * start)
                yield gathered(self.rows, numbers, stop - start)


def ranked(rows: Batch, order: t.Type | None = None) -> Ranked:
    """The rows of a batch in the total order; of `order`, which is how they begin, if it is given.

    Raises: Unsupported for types that have no machine code for it; MemoryError.
    """
    if order == t.Record(()):
        return Ranked(rows, None)
    code = ranking(rows.type if order is None else order)
    count = len(rows)
    numbers = words(count)
    table = pointers(max(len(rows.addresses), 1))(*rows.addresses)
    moved = code.function("arrow.rank", (_P, _I, _P), _I)(table, count, numbers)
    if moved < 0:
        raise MemoryError(f"the order of {count} rows")
    return Ranked(rows, numbers if moved else None)


def ranking(type_: t.Type) -> Code:
    """The function that puts rows of a type in order.

    Raises: Unsupported.
    """
    return _ranking(type_, level())


@cache
def _ranking(type_: t.Type, effort: int) -> Code:
    """The same, optimised so much: threads may state that differently."""

    def make() -> ModuleText:
        from backends.native.row_order import made

        return made(type_)

    return shared(f"rank {effort} {type_!r}", make, effort)


__all__ = ["Ranked", "ranked", "ranking"]
