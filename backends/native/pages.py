"""Memory for columns of many rows: pages that have been touched are used again, new ones are large where that is possible.

What is soon done is done without letting go of the GIL: where two workers are busy, to get it back takes longer.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from collections import defaultdict, deque
from typing import Any, Final

from river.lang import memory

_LARGE_PAGE: Final = 1 << 21
_LINE: Final = 64
_KEPT_FROM: Final = 1 << 16  # bytes of memory that is kept for others
_KEPT: Final = 1 << 25  # bytes of it, at most, of each size,
_PIECES: Final = 64  # and pieces
HUGE: Final[int] = getattr(mmap, "MADV_HUGEPAGE", -1)
"""How the system is asked for large pages; -1 where it cannot be."""

TOUCH: Final = 23 if sys.platform == "linux" else -1
"""How Linux is asked for pages that will be written to (MADV_POPULATE_WRITE, from 5.14 on); -1: elsewhere."""

_SHORT: Final = 1 << 16  # bytes that are copied, and given back, in a few us

_libc: Final = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_soon: Final = ctypes.PyDLL(None)  # keeps the GIL
_soon.free.argtypes = [ctypes.c_void_p]
_soon.malloc.argtypes, _soon.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
_soon.memmove.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_soon.memmove.restype = ctypes.c_void_p
_soon.posix_memalign.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
_soon.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

_waiting: Final = defaultdict[int, "deque[int]"](deque)
"""By size, memory that nothing lies in any more: pages that have been touched."""

_zeros = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)


def malloc(size: int) -> int:
    """Memory of so many bytes, at least one, of the C library; 0 if there is none."""
    return _soon.malloc(size) or 0


def free(place: int, size: int = 0) -> None:
    """Gives memory of so many bytes, or few, back to the C library."""
    (_soon if size <= _SHORT else _libc).free(place)


def copy(to: int, source: int, size: int) -> None:
    """Copies bytes to an address from another one."""
    (_soon.memmove if size <= _SHORT else ctypes.memmove)(to, source, size)


def take(size: int, used: int) -> int:
    """Memory of so many bytes, of which so many will be used; 0 if there is none. Large pages are sooner touched.

    Much memory begins at a line of the caches, so that few vectors that are written there lie in two. Not where memory is
    limited: to begin at such a place takes room that counts.
    """
    try:
        return _waiting[size].pop() if size >= _KEPT_FROM else malloc(size)
    except IndexError:
        pass
    if memory.limited() is not None:
        return malloc(size)
    large, place = used >= _LARGE_PAGE and HUGE >= 0, ctypes.c_void_p()
    if _soon.posix_memalign(ctypes.byref(place), _LARGE_PAGE if large else _LINE, size):
        return 0
    if large:
        _soon.madvise(place, size, HUGE)  # the system may have none: then it is memory like any other
    return place.value or 0


def large(place: int, size: int) -> None:
    """Asks for large pages for memory that nobody has touched yet, as far as such lie within it: the system may have none."""
    first, last = -(-place // _LARGE_PAGE) * _LARGE_PAGE, (place + size) // _LARGE_PAGE * _LARGE_PAGE
    if first < last and HUGE >= 0 and memory.limited() is None:
        _soon.madvise(first, last - first, HUGE)


def give(place: int, size: int) -> None:
    """Gives memory back that the C library has given, or keeps it for others."""
    most = min(_KEPT // size, _PIECES) if size >= _KEPT_FROM else 0
    if place and most and len(_waiting[size]) < most and memory.limited() is None:
        _waiting[size].append(place)
    else:
        free(place, size)


def zeros(size: int) -> mmap.mmap:
    """At least so many bytes that are zero, for all who write nothing there: pages that nobody reads cost nothing."""
    global _zeros  # noqa: PLW0603 - a larger one serves all that come later
    found = _zeros
    if len(found) < size:
        _zeros = found = mmap.mmap(-1, 1 << (size - 1).bit_length(), flags=mmap.MAP_PRIVATE)
    return found


def touch(place: int, size: int) -> None:
    """Gets the pages of memory from the system, without a change to what lies there; the first who writes there would, too.

    So another thread may do that while the pages before are written to. Where the system cannot, nothing is done.
    """
    first, last = -(-place // mmap.PAGESIZE) * mmap.PAGESIZE, (place + size) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last and TOUCH >= 0:
        _libc.madvise(first, last - first, TOUCH)


def words(count: int) -> Any:
    """An array of so many 64-bit numbers, which are any. Raises: MemoryError.

    Its memory is used again, for any number of them up to the next power of two, but where memory is limited.
    """
    array, limited = ctypes.c_int64 * count, memory.limited() is not None
    size = 8 * count if limited else 8 << max(count - 1, 0).bit_length()
    if size < _KEPT_FROM:
        return array()
    place = take(size, 8 * count)
    if not place:
        raise MemoryError(f"{count} numbers")
    found = array.from_address(place)
    weakref.finalize(found, give, place, size).atexit = False
    return found


__all__ = ["HUGE", "copy", "free", "give", "large", "malloc", "take", "touch", "words", "zeros"]
