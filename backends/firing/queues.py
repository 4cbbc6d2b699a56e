"""The bounded queue between two tasks: one puts, one takes, neither waits here.

A queue holds chunks: runs of items and marks. Both count, a mark like an item, against the bound; what lies inside the
items of columns, such as the rows of deltas, counts against a limit of its own. Who finds no
room keeps what it has and is run again when there is some: back-pressure is the scheduler's work.

Paper: River §2.4.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from river.backend import Rows
from river.lang.values import Mark

Chunk = list[Any] | Rows | Mark
"""A run of items, as values or in columns, or a mark. A list that was put belongs to the queue."""

ROWS = 1
"""Rows of lists inside items that a queue holds at most, for each item of its bound: an instant may have many."""

UNBOUNDED = 1 << 62
"""The bound of a queue without one."""


class Queue:
    """A FIFO from one task to one other. `put` is called by the producer only, `take` and `took` by the consumer only.

    `bound`: soft, the scheduler raises it where all would wait for each other (il.md P8). `wanted`: the producer waits
    for room; read and written under the scheduler's lock, as is `blocked`, how long it waited so far. `peak`: how long the
    queue was. `made`: the items and marks ever put, of which `taken` were consumed. `items`: that were put, without the marks.
    `closed`: the consumer has stopped, what comes is dropped.
    """

    __slots__ = (
        "_chunks", "_heavy", "_light", "_since", "blocked", "bound", "closed", "consumer", "items", "limit", "made", "name",
        "peak", "producer", "taken", "wanted",
    )  # fmt: skip

    def __init__(self, name: str, bound: int, producer: int | None, consumer: int) -> None:
        self.name = name
        self.bound = bound
        self.producer = producer
        self.consumer = consumer
        self.wanted = False
        self.closed = False
        self._chunks: deque[Chunk] = deque()
        self.made = 0
        self.taken = 0
        self.limit = min(UNBOUNDED, bound * ROWS)
        self._heavy = 0  # rows put, and rows that the consumer has let go, each counted by one thread
        self._light = 0
        self.peak = 0
        self.items = 0
        self.blocked = 0.0
        self._since: float | None = None

    def waited(self, now: float) -> float:
        """How long the producer waited for room, until now. Units: seconds of the clock that `want` knows."""
        return self.blocked + (0.0 if self._since is None else now - self._since)

    def want(self, now: float) -> None:
        """The producer waits for room. Under the scheduler's lock, as `want_no_more`."""
        self.wanted = True
        if self._since is None:
            self._since = now

    def want_no_more(self, now: float) -> None:
        """The producer does not wait for room, or waits no more."""
        self.wanted = False
        if self._since is not None:
            self.blocked += now - self._since
            self._since = None

    @property
    def size(self) -> int:
        """The items and marks put and not yet consumed, those that `take` handed out included."""
        return self.made - self.taken

    @property
    def used(self) -> bool:
        """Whether anything was ever put."""
        return self.made > 0

    @property
    def room(self) -> int:
        """How many more may be put now: at least that many, as only the producer makes it less."""
        if self.closed:
            return UNBOUNDED
        return 0 if self._heavy - self._light >= self.limit else self.bound - self.size

    def grow(self) -> None:
        """Twice as much may be put."""
        self.bound *= 2
        self.limit *= 2

    def lighter(self, rows: int) -> None:
        """The consumer has let a batch of so many rows go."""
        self._light += rows

    def put(self, chunk: Chunk) -> None:
        """Appends a chunk, which is not empty and for which there is room."""
        if self.closed:
            return
        if isinstance(chunk, Mark):
            self.made += 1
        else:
            self.made += len(chunk)
            self.items += len(chunk)
            self._heavy += 0 if isinstance(chunk, list) else chunk.weight
        self._chunks.append(chunk)
        if (size := self.made - self.taken) > self.peak:
            self.peak = size

    def take(self) -> Chunk | None:
        """The next chunk, None if there is none. It keeps its place in the queue until `took` says how much is done."""
        return self._chunks.popleft() if self._chunks else None

    def took(self, count: int) -> None:
        """Makes room for `count` items and marks that were consumed."""
        self.taken += count

    def kept(self) -> tuple[int, int, list[Chunk]]:
        """How much was put, how much of that is done, and what nobody has taken."""
        return self.made, self.taken, [*self._chunks]

    def restore(self, put: int, taken: int, chunks: list[Chunk]) -> None:
        """Is again as it was."""
        self.made, self.taken, self._chunks = put, taken, deque(chunks)

    def close(self) -> None:
        """Drops what is there and whatever comes."""
        self.closed = True
        self._chunks.clear()
        self.taken = self.made
