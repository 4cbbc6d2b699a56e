"""A port whose items wait as columns, for instances that fire machine code; see `ports.Port`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

from backends.multicore.ports import Port
from backends.native.batch import Batch, concat
from river.lang.values import INFINITY

if TYPE_CHECKING:
    from backends.multicore.queues import Queue
    from river.backend import Rows
    from river.lang.types import Type


class ColumnPort(Port):
    """What an instance has of one input, in batches; `at` is how much of the first one is gone."""

    __slots__ = ("_batches", "_waiting", "type")

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
        self._waiting = 0
        self.held = []
        if initial:
            self._batches.append(Batch.of(type_, initial))
            self._waiting = len(initial)

    @property
    def count(self) -> int:
        return self._waiting

    def _receive(self, chunk: list[Any] | Rows) -> int:
        batch = Batch.of(self.type, chunk) if isinstance(chunk, list) else cast("Batch", chunk)
        if self.checked:
            batch = self._ascending(batch)
        count = len(batch)
        if count:
            self._batches.append(batch)
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
            self.last = batch.numbers(self.key)[len(batch) - 1]
        return batch

    def next(self, most: int) -> tuple[Batch, int, int]:
        """The items that come next and lie together, at most `most` of at least one: a batch, the first row, the end."""
        batch = self._batches[0]
        return batch, self.at, min(len(batch), self.at + most)

    def together(self, count: int) -> tuple[Batch, int]:
        """A batch that has the next `count` items, from the row that is given."""
        first = self._batches[0] if self._batches else Batch.of(self.type, [])
        if len(first) - self.at >= count:
            return first, self.at
        parts = [first[self.at :]]
        size = len(parts[0])
        self._batches.popleft()
        while size < count:
            parts.append(self._batches.popleft())
            size += len(parts[-1])
        joined = concat(parts)
        self._batches.appendleft(joined)
        self.at = 0
        return joined, 0

    def items(self, count: int) -> list[Any]:
        """The next items as values: for traps, which show one."""
        batch, start = self.together(count)
        return batch[start : start + count].values()

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
            self.at = 0
            count -= left
