"""Memory for columns of many rows: pages that have been touched are used again, new ones are large where that is possible."""

from __future__ import annotations

import ctypes
import mmap
from collections import defaultdict, deque
from typing import Final

from river.lang import memory

_LARGE_PAGE: Final = 1 << 21
_LINE: Final = 64
_KEPT_FROM: Final = 1 << 20  # bytes of memory that is kept for others
_KEPT: Final = 1 << 25  # bytes of it, at most, of each size
HUGE: Final[int] = getattr(mmap, "MADV_HUGEPAGE", -1)
"""How the system is asked for large pages; -1 where it cannot be."""

_libc: Final = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]
_libc.malloc.argtypes, _libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
_libc.posix_memalign.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

_waiting: Final = defaultdict[int, "deque[int]"](deque)
"""By size, memory that nothing lies in any more: pages that have been touched."""

_zeros = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)


def take(size: int, used: int) -> int:
    """Memory of so many bytes, of which so many will be used; 0 if there is none. Large pages are sooner touched.

    Much memory begins at a line of the caches, so that few vectors that are written there lie in two. Not where memory is
    limited: to begin at such a place takes room that counts.
    """
    try:
        return _waiting[size].pop() if size >= _KEPT_FROM else _libc.malloc(size) or 0
    except IndexError:
        pass
    if memory.limited() is not None:
        return _libc.malloc(size) or 0
    large, place = used >= _LARGE_PAGE and HUGE >= 0, ctypes.c_void_p()
    if _libc.posix_memalign(ctypes.byref(place), _LARGE_PAGE if large else _LINE, size):
        return 0
    if large:
        _libc.madvise(place, size, HUGE)  # the system may have none: then it is memory like any other
    return place.value or 0


def give(place: int, size: int) -> None:
    """Gives memory back that the C library has given, or keeps it for others."""
    if _KEPT_FROM <= size <= _KEPT and len(_waiting[size]) < _KEPT // size and memory.limited() is None:
        _waiting[size].append(place)
    else:
        _libc.free(place)


def zeros(size: int) -> mmap.mmap:
    """At least so many bytes that are zero, for all who write nothing there: pages that nobody reads cost nothing."""
    global _zeros  # noqa: PLW0603 - a larger one serves all that come later
    found = _zeros
    if len(found) < size:
        _zeros = found = mmap.mmap(-1, 1 << (size - 1).bit_length(), flags=mmap.MAP_PRIVATE)
    return found


__all__ = ["HUGE", "give", "take", "zeros"]
