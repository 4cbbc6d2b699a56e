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
from river.aside import shared_out
from river.classes import define, field
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.native.batch import Batch
    from backends.native.jit import Code

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64
SEVERAL: Final = 1 << 16
"""Rows from which on several threads put them in order: for fewer it takes as long to begin these."""


@define(eq=False)
class Ranked:
    """Rows in the total order, equal ones as they stood. `order`: their numbers; None where they stand in order."""

    rows: Batch
    order: Any = field(repr=False)

    def part(self, start: int, stop: int) -> Batch:
        """Rows in order, from one number to before another, which are gathered now; any thread may do that."""
        if self.order is None:
            return self.rows[start:stop]
        numbers = (_I * (stop - start)).from_buffer(self.order, 8 * start)
        return gathered(self.rows, numbers, stop - start)

    def parts(self, size: int) -> Iterator[Batch]:
        """The rows in order, so many at a time, which are gathered when their turn comes."""
        for start in range(0, len(self.rows), size):
            yield self.part(start, min(start + size, len(self.rows)))


def ranked(rows: Batch, order: t.Type | None = None, workers: int = 1) -> Ranked:
    """The rows of a batch in the total order; of `order`, which is how they begin, if it is given. Many by so many threads.

    Raises: Unsupported for types that have no machine code for it; MemoryError.
    """
    if order == t.Record(()):
        return Ranked(rows, None)
    code = ranking(rows.type if order is None else order)
    count = len(rows)
    numbers = words(count)
    table = pointers(max(len(rows.addresses), 1))(*rows.addresses)
    moved = _put_in_order(code, table, count, numbers, workers if count >= SEVERAL else 1)
    if moved < 0:
        raise MemoryError(f"the order of {count} rows")
    return Ranked(rows, numbers if moved else None)


def _put_in_order(code: Code, table: Any, count: int, numbers: Any, workers: int) -> int:
    """The numbers of rows in order, by the steps of `rank.rt`, each of which the threads do before the next.

    Returns 0 if they stood so, 1 if not, -1 if there is no memory.
    """
    packing = code.function("arrow.rank_open", (_P, _I, _I), _P)(table, count, workers)
    if not packing:
        return -1
    parts = _I.from_address(packing)
    pack = code.function("arrow.rank_pack", (_P, _P, _I, _P), _I)
    deal = code.function("arrow.rank_deal", (_P, _I, _P), None)
    settle = code.function("arrow.rank_settle", (_P, _P, _I, _P), _I)
    try:
        while parts.value:
            if all(shared_out(lambda slice_: pack(table, packing, slice_, numbers), workers)):
                break
            code.function("arrow.rank_again", (_P, _P), None)(table, packing)
        if not parts.value:
            return code.function("arrow.by_pairs", (_P, _I, _P), _I)(table, count, numbers)
        code.function("arrow.rank_begin", (_P,), None)(packing)
        shared_out(lambda slice_: deal(packing, slice_, numbers), workers)
        found = shared_out(lambda slice_: settle(table, packing, slice_, numbers), workers)
        return -1 if min(found) < 0 else max(found)
    finally:
        code.function("arrow.rank_close", (_P,), None)(packing)


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


__all__ = ["SEVERAL", "Ranked", "ranked", "ranking"]
