"""A port whose items wait as columns, for instances that fire machine code; see `ports.Port`."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from backends.firing.ports import Port
from backends.native.batch import Batch, concat
from river.lang.values import INFINITY

if TYPE_CHECKING:
    from backends.firing.queues import Queue
    from river.backend import Rows
    from river.lang.types import Type


_SMALL = 512
"""Items that are copied together at least, where a window reaches over the end of a batch: batches may be small."""


class ColumnPort(Port):
    """What an instance has of one input, in batches; `at` is how much of the first one is gone."""

    __slots__ = ("_batches", "_waiting", "_weights", "type")

    def __init__(
        self,
        queue: Queue,
        type_: Type,
        key: int | None,
        initial: tuple[Any, ...],
        *,
        back: bool,
        checked: bool,
    ) -> None:
        super().__init__(queue, key, initial, back=back, checked=checked)
        self.type = type_
        self._batches: deque[Batch] = deque()
        self._weights: deque[int] = deque()  # of what the queue counted, by batch
        self._waiting = 0
        self.held = []
        if initial:
            self._batches.append(Batch.of(type_, initial))
            self._weights.append(0)
            self._waiting = len(initial)

    @property
    def count(self) -> int:
        return self._waiting

    def _receive(self, chunk: list[Any] | Rows) -> int:
        if isinstance(chunk, list):
            batch, weight = Batch.of(self.type, chunk), 0
        else:
            columns: Any = chunk
            batch, weight = columns, chunk.weight
        if self.checked:
            batch = self._ascending(batch)
        count = len(batch)
        if not count:
            self.queue.lighter(weight)
        else:
            self._batches.append(batch)
            self._weights.append(weight)
            self._waiting += count
            self.seen += count
        return count

    def _ascending(self, batch: Batch) -> Batch:
        """The part of `batch` whose keys ascend; the first item after it is the violation."""
        assert self.key is not None  # noqa: S101 - only ordered ports are checked
        least = max(self.last, self.promised)
        stop = batch.fall(self.key, None if least == -INFINITY else least)
        if stop is not None:
            (self.violation,) = batch[stop : stop + 1].values()
            batch = batch[:stop]
        if len(batch):
            self.last = batch.number(self.key, len(batch) - 1)
        return batch

    def next(self, most: int) -> tuple[Batch, int, int]:
        """The items that come next and lie together, at most `most` of at least one: a batch, the first row, the end."""
        batch = self._batches[0]
        return batch, self.at, min(len(batch), self.at + most)

    def windows(self, peek: int, pop: int, most: int) -> tuple[Batch, int, int]:
        """Windows of `peek` items, each `pop` items after the one before, that lie together: a batch, the first row, how many.

        At least one window waits; at most `most` are given. Only items of windows that reach over the end of a batch are
        copied.
        """
        if not self._batches:  # windows of no items
            return Batch.of(self.type, []), 0, most
        first, at = self._batches[0], self.at
        if len(first) - at < peek:
            wanted = max(len(first) - at + peek - 1, _SMALL)
            parts, size = [first[at:]], len(first) - at
            for batch in islice(self._batches, 1, None):
                if size >= wanted:
                    break
                parts.append(batch[: wanted - size])
                size += len(parts[-1])
            first, at = concat(parts), 0
        if not pop:
            return first, at, most
        return first, at, min(most, (len(first) - at - peek) // pop + 1)

    def hold(self, items: list[Any]) -> None:
        self._batches = deque([Batch.of(self.type, items)] if items else [])
        self._weights = deque([0] if items else [])
        self._waiting, self.at = len(items), 0

    def items(self, count: int) -> list[Any]:
        """The next items as values."""
        found: list[Any] = []
        start = self.at
        for batch in self._batches:
            if len(found) == count:
                break
            found += batch[start : start + count - len(found)].values()
            start = 0
        return found

    def pop(self, count: int) -> None:
        self._waiting -= count
        known = max(0, count - self.initial)
        self.initial -= count - known
        self.queue.took(known)
        while count:
            left = len(self._batches[0]) - self.at
            if count < left:
                self.at += count
                return
            self._batches.popleft()
            self.queue.lighter(self._weights.popleft())
            self.at = 0
            count -= left
