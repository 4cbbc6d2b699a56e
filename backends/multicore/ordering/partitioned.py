"""The partitioned queues: a queue for each worker, which alone fires the partitions that go there. Paper: section 4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from backends.multicore.ordering.atomic import Fifo
from backends.multicore.ordering.keyed import UNBOUNDED, Join, Keyed, Operate, Piece, Split

if TYPE_CHECKING:
    from backends.multicore.ordering.reorder import Sequencer

B = TypeVar("B")
R = TypeVar("R")


class PartitionedQueues(Keyed[B, R]):
    """`work` is called for a worker by one thread at a time. Nothing moves on unless every worker comes."""

    def __init__(
        self, workers: int, order: Sequencer[R], split: Split[B], operate: Operate[B, R], join: Join[B, R]
    ) -> None:
        super().__init__(order, split, operate, join)
        self._queues: list[Fifo[Piece[B, R]]] = [Fifo() for _ in range(workers)]

    def _enqueue(self, partition: int, piece: Piece[B, R]) -> None:
        self._queues[partition % len(self._queues)].enqueue(piece)

    def waiting(self, worker: int) -> int:
        return len(self._queues[worker])

    def work(self, worker: int, most: int = UNBOUNDED) -> bool:
        room = True
        while most > 0:
            most -= 1
            piece = self._queues[worker].try_dequeue()
            if piece is None:
                break
            room = self._fire(piece) and room
        return room
