"""All rows of an input as one item, the list of them: put one behind the other while they are read, where others lay before."""

from __future__ import annotations

import ctypes
from array import array
from itertools import compress
from typing import TYPE_CHECKING, Any

from backends.native import pages
from backends.native.batch import Batch, address_of, concat, strides
from backends.native.layout import ColumnKind, columns
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def listed(
    item: t.Type, batches: Iterable[Batch], read: Sequence[bool], expected: Callable[[], int]
) -> Batch:
    """All rows of some batches of a type as one row, the list of them.

    `read`: by column whether anybody reads it, all others are zero; `expected`: how many rows there may be, when some are known.
    """
    if 0 in strides(item):  # there are lists in the rows
        found = [*batches]
        rows = concat(found) if found else Batch.of(item, [])
    else:
        gathered = _Appended(item, read)
        for batch in batches:
            gathered.add(batch, expected)
        rows = gathered.batch()
    ends = array("q", (0, rows.rows))
    return Batch(t.List(item), 1, (address_of(ends), *rows.addresses), [rows.kept, ends])


class _Appended:
    """Rows without lists in them, one batch behind the other in memory that grows."""

    def __init__(self, item: t.Type, read: Sequence[bool]) -> None:
        self._item = item
        self._read = read
        self._sizes = strides(item)
        kinds = compress((column.kind for column in columns(item).columns), read)
        self._texts: list[Any] | None = [] if ColumnKind.VIEW in kinds else None  # what views point into
        self._rows = self._room = 0
        self._places = [0] * len(self._sizes)
        self._bytes = [0] * len(self._sizes)

    def add(self, batch: Batch, expected: Callable[[], int]) -> None:
        rows = self._rows + batch.rows
        if rows > self._room:
            self._grow(max(rows, expected()))
        for i in compress(range(len(self._sizes)), self._read):
            size = self._sizes[i]
            if batch.rows:
                ctypes.memmove(self._places[i] + self._rows * size, batch.addresses[i], batch.rows * size)
        self._rows = rows
        if self._texts is not None:
            self._texts.append(batch.kept)

    def batch(self) -> Batch:
        if all(self._read):
            return Batch(self._item, self._rows, tuple(self._places), self)
        nothing = pages.zeros(self._rows * max(self._sizes))
        zero = address_of(nothing)
        places = [place if read else zero for place, read in zip(self._places, self._read, strict=True)]
        return Batch(self._item, self._rows, tuple(places), [self, nothing])

    def _grow(self, rows: int) -> None:
        """Makes room for so many rows, and for as many more as make a size that others can use."""
        room = 1 << (rows - 1).bit_length()
        for i in compress(range(len(self._sizes)), self._read):
            size = self._sizes[i]
            place = pages.take(room * size, rows * size)
            if not place:
                raise MemoryError
            old, before = self._places[i], self._bytes[i]
            self._places[i], self._bytes[i] = place, room * size
            if old:
                ctypes.memmove(place, old, self._rows * size)
                pages.give(old, before)
        self._room = room

    def __del__(self) -> None:
        for place, size in zip(self._places, self._bytes, strict=True):
            if place:
                pages.give(place, size)


__all__ = ["listed"]
