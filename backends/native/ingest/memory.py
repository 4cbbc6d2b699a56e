"""Memory for blocks, used again and again: to touch new pages costs as much as to parse them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from backends.native import pages
from river.classes import define, field

if TYPE_CHECKING:
    import mmap

_LEAST = 1 << 11  # bytes of a buffer that is worth keeping; many blocks of a line may wait at a time
_MOST = 16  # buffers of a size that wait for use, at most
_KEPT = 1 << 26  # bytes of them, at most, if there is more than one


def address(data: bytearray | mmap.mmap) -> int:
    """Where the bytes lie; they must not be resized."""
    return ctypes.addressof(ctypes.c_char.from_buffer(data))


def untouched(size: int) -> bytearray:
    """Bytes with anything in them: half of a buffer is room, and pages that nobody touches cost nothing.

    Much memory lies in large pages where the system has any: a few are touched in place of thousands.
    """
    found = bytearray()
    ctypes.pythonapi.PyByteArray_Resize(ctypes.py_object(found), ctypes.c_ssize_t(size))
    pages.large(address(found), size)
    return found


@define(eq=False)
class BufferPool:
    """Buffers that wait for use, by size. Threads may share it."""

    free: dict[int, list[bytearray]] = field(factory=dict[int, list[bytearray]])

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes; what is in it does not matter."""
        room = max(1 << 12, 1 << (size - 1).bit_length())
        try:
            return self.free.setdefault(room, []).pop()
        except IndexError:
            return untouched(room)

    def give(self, room: bytearray) -> None:
        """A buffer that nobody uses."""
        waiting = self.free.setdefault(len(room), [])
        if len(waiting) < min(_MOST, max(1, _KEPT // len(room))):
            waiting.append(room)


class Lease:
    """Buffers that go back to their pool when nobody keeps this any more; `others` is kept as long."""

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self._rooms: list[bytearray] = []
        self.others: list[Any] = []

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes."""
        if size < _LEAST:
            self.others.append(small := bytearray(size))
            return small
        room = self._pool.take(size)
        self._rooms.append(room)
        return room

    def __del__(self) -> None:
        for room in self._rooms:
            self._pool.give(room)
