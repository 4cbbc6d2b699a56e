"""What is done in one piece, whatever other threads do: the instructions that the paper's figures are written in.

In CPython these are: reading or writing a field of an object or an item of a list, a method of a list, a deque or a set, and
`acquire(False)` of a lock, which is `test_and_set`. The others are here.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Counter:
    """A number with `fetch_add` and `fetch_sub`. Its lock is held for one addition."""

    __slots__ = ("_lock", "_value")

    def __init__(self, value: int) -> None:
        self._value = value
        self._lock = Lock()

    @property
    def value(self) -> int:
        """What it is now."""
        return self._value

    def fetch_add(self) -> int:
        """Adds one; what it was before."""
        with self._lock:
            value = self._value
            self._value = value + 1
        return value

    def fetch_sub(self) -> int:
        """Takes one away; what it was before."""
        with self._lock:
            value = self._value
            self._value = value - 1
        return value


class Fifo(Generic[T]):
    """A queue that any number of threads put into and take from. Nobody waits."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: deque[T] = deque()

    def enqueue(self, item: T) -> None:
        """Appends an item."""
        self._items.append(item)

    def try_dequeue(self) -> T | None:
        """The item that was put first; None if there is none."""
        try:
            return self._items.popleft()
        except IndexError:
            return None

    def __len__(self) -> int:
        return len(self._items)
