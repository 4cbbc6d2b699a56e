"""The shared queue: all workers take from one queue, and wait for the partition of what they took. Paper: section 4.1."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from backends.multicore.ordering.atomic import Fifo
from backends.multicore.ordering.keyed import UNBOUNDED, Join, Keyed, Operate, Piece, Split

if TYPE_CHECKING:
    from backends.multicore.ordering.reorder import Sequencer

B = TypeVar("B")
R = TypeVar("R")


class SharedQueue(Keyed[B, R]):
    """A piece and the lock of its partition are taken together (Fig. 5 shows why), so that one may wait for all."""

    def __init__(
        self, partitions: int, order: Sequencer[R], split: Split[B], operate: Operate[B, R], join: Join[B, R]
    ) -> None:
        super().__init__(order, split, operate, join)
        self._queue: Fifo[Piece[B, R]] = Fifo()
        self._taking = Lock()
        self._owned = [Lock() for _ in range(partitions)]

    def _enqueue(self, partition: int, piece: Piece[B, R]) -> None:
        self._queue.enqueue(piece)

    def waiting(self, worker: int) -> int:
        return len(self._queue)

    def work(self, worker: int, most: int = UNBOUNDED) -> bool:
        room = True
        while most > 0:
            most -= 1
            with self._taking:
                piece = self._queue.try_dequeue()
                if piece is None:
                    break
                parent, i = piece
                owned = self._owned[parent.parts[i].partition]
                owned.acquire()
            try:
                room = self._fire(piece) and room
            finally:
                owned.release()
        return room
