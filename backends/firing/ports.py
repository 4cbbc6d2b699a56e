"""The two ends of an instance: ports, where items wait to be fired, and outs, where Fig. 2's buffer is drained from.

Both are touched only by the thread that fires the instance.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from backends.firing.queues import UNBOUNDED, Chunk, Queue
from river.lang.values import END, INFINITY, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.backend import Items, Rows


class Port:
    """What an instance has of one input: `held[at:]` waits, in order; marks stand between the items.

    `key`: the position of the key field in an item, None for a port without order. `progress`: the highest mark taken.
    `back`: fed by a queue that closes a loop, which never ends. `checked`: whether the order of keys must be seen to
    (that of the inputs already has been). `violation`: the item or mark whose key falls; nothing after it is taken.
    """

    __slots__ = (
        "at", "back", "checked", "ended", "held", "initial", "key", "last", "marks", "progress", "promised", "queue",
        "seen", "violation",
    )  # fmt: skip

    def __init__(
        self, queue: Queue, key: int | None, initial: tuple[Any, ...], *, back: bool, checked: bool
    ) -> None:
        self.queue = queue
        self.key = key
        self.back = back
        self.checked = checked and key is not None
        self.held: list[Any] = list(initial)
        self.at = 0
        self.initial = len(initial)  # of these the queue does not know
        self.seen = len(initial)  # items received so far
        self.marks: deque[tuple[int, Mark]] = deque()  # each with the items received before it
        self.progress: Any = -INFINITY
        self.last: Any = -INFINITY  # the key of the last item received
        self.promised: Any = -INFINITY  # the last mark received
        self.ended = False
        self.violation: Any = None

    @property
    def count(self) -> int:
        """The items that wait, marks between them or not."""
        return len(self.held) - self.at

    @property
    def run(self) -> int:
        """The items that wait before the next mark."""
        if self.marks:
            return self.marks[0][0] - self.seen + self.count
        return self.count

    @property
    def waiting(self) -> bool:
        """Whether anything that it took from its queue waits: items, marks, or what violates the order."""
        return bool(self.marks) or self.count > 0 or self.violation is not None

    def fill(self, wanted: int) -> int:
        """Takes chunks from the queue until `wanted` items wait or there are no more; how many wait."""
        count = self.count
        while count < wanted and self.violation is None:
            chunk = self.queue.take()
            if chunk is None:
                break
            if isinstance(chunk, Mark):
                self._receive_mark(chunk)
                continue
            count += self._receive(chunk)
        return count

    def _receive(self, chunk: list[Any] | Rows) -> int:
        """Keeps the items that come next; how many."""
        if isinstance(chunk, list):
            items = chunk
        else:
            items = chunk.values()
            self.queue.lighter(chunk.weight)
        if self.checked:
            items = self.ordered(items)
        self.seen += len(items)
        if self.at:
            del self.held[: self.at]
            self.at = 0
        if self.held:
            self.held += items
        else:
            self.held = items
        return len(items)

    def _receive_mark(self, mark: Mark) -> None:
        """Keeps the mark where it stands between the items."""
        if self.key is None and mark.key != INFINITY:
            self.queue.took(1)  # nobody asks for order here
        elif mark.key < self.promised:
            self.violation = mark
        else:
            self.marks.append((self.seen, mark))
            if mark.key != INFINITY:
                self.promised = mark.key

    def ordered(self, chunk: list[Any]) -> list[Any]:
        """The part of `chunk` whose keys ascend; the first item after it is the violation."""
        assert self.key is not None  # noqa: S101 - only ordered ports are checked
        key = self.key
        keys = [item[key] for item in chunk]
        stop = len(chunk)
        if keys[0] < max(self.last, self.promised):
            stop = 0
        elif any(low > high for low, high in pairwise(keys)):
            stop = next(i for i, (low, high) in enumerate(pairwise(keys), start=1) if low > high)
        if stop < len(chunk):
            self.violation = chunk[stop]
        if stop:
            self.last = keys[stop - 1]
        return chunk[:stop]

    def hold(self, items: list[Any]) -> None:
        """Has these items waiting, and no others, when a run goes on."""
        self.held, self.at = items, 0

    def items(self, count: int) -> list[Any]:
        """The next `count` items, which wait; they stay until `pop`."""
        if self.at == 0 and count == len(self.held):
            return self.held
        return self.held[self.at : self.at + count]

    def pop(self, count: int) -> None:
        """Lets the next `count` items go."""
        self.at += count
        if self.at == len(self.held):  # who has the list now may keep it
            self.held, self.at = [], 0
        known = max(0, count - self.initial)
        self.initial -= count - known
        self.queue.took(known)

    def mark(self) -> Mark | None:
        """Takes the next mark, whatever items still wait before it; None if there is none."""
        if not self.marks:
            return None
        mark = self.marks.popleft()[1]
        self.queue.took(1)
        if mark == END:
            self.ended = True
        elif mark.key > self.progress:
            self.progress = mark.key
        return mark


class Out:
    """What an instance has for one queue and could not put yet: the temporary buffer of Fig. 2.

    `marked`: the highest mark sent; a mark that is not above it says nothing and is left out.
    """

    __slots__ = ("_at", "_chunks", "back", "keyed", "made", "marked", "mixed", "queue", "sent", "told")

    def __init__(self, queue: Queue, *, keyed: bool, mixed: bool, back: bool) -> None:
        self.queue = queue
        self.keyed = keyed
        self.mixed = mixed  # firings may put marks among the items
        self.back = back  # closes a loop: gets no end
        self.made = 0  # items and marks so far, or items of their lists if these are more, for the pace
        self.marked: Any = -INFINITY
        self.sent = False  # whether something was put since somebody asked
        self.told = False  # whether a mark was
        self._chunks: deque[Chunk] = deque()
        self._at = 0  # how much of the first chunk has been put

    @property
    def waiting(self) -> bool:
        """Whether something is left to put."""
        return bool(self._chunks)

    @property
    def total(self) -> int:
        """The items and marks put, and those that wait to be."""
        total = self.queue.made - self._at
        for chunk in tuple(self._chunks):
            total += 1 if isinstance(chunk, Mark) else len(chunk)
        return total

    def add_batch(self, batch: Rows, marks: Iterable[tuple[int, Any]] = ()) -> None:
        """Appends items in columns; `marks` stand between them, each with how many items come before it and its key."""
        done = 0
        for before, key in marks:
            if done < before:
                self._chunks.append(batch[done:before])
                done = before
            self.made += 1
            if key < self.marked:
                self._chunks.append(Mark(key))  # for the consumer to complain of
            self.add_mark(Mark(key))
        if done < len(batch):
            self._chunks.append(batch[done:])
        self.made += batch.weight

    def add(self, elements: Items | Rows) -> None:
        """Appends what firings emitted."""
        if not isinstance(elements, list):
            self.add_batch(elements)
            return
        self.made += len(elements)
        if not self.mixed:
            if elements:
                self._chunks.append(elements)
            return
        items: list[Any] = []
        for element in elements:
            if isinstance(element, Mark):
                if items:
                    self._chunks.append(items)
                    items = []
                if element.key < self.marked:
                    self._chunks.append(element)  # for the consumer to complain of
                self.add_mark(element)
            else:
                items.append(element)
        if items:
            self._chunks.append(items)

    def add_mark(self, mark: Mark) -> None:
        """Appends a mark if it is higher than all before."""
        if mark.key > self.marked:
            self.marked = mark.key
            self._chunks.append(mark)

    def drain(self) -> bool:
        """Puts what there is room for; whether nothing is left. Paper: River Fig. 2, lines 9 and 10.

        A batch of columns is put whole if there is any room, so a bound is exceeded by at most one batch (il.md P8).
        """
        queue = self.queue
        while self._chunks:
            room = queue.room
            if room <= 0:
                return False
            chunk = self._chunks[0]
            if isinstance(chunk, Mark):
                self.told = True
            if isinstance(chunk, list):  # columns are not cut: small pieces would go on being small
                left = len(chunk) - self._at
                if room < left and room < UNBOUNDED:
                    queue.put(chunk[self._at : self._at + room])
                    self._at += room
                    self.sent = True
                    return False
                chunk = chunk[self._at :] if self._at else chunk
            queue.put(chunk)
            self._chunks.popleft()
            self._at = 0
            self.sent = True
        return True
