"""The hybrid queue: a queue for each partition, and a master queue of partitions in the order of arrival.

Whoever takes a partition from the master queue while another worker fires it leaves the piece to that worker. So nobody
waits, and pieces fire almost in the order of arrival. Paper: Fig. 7, whose lines are marked L.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from backends.multicore.ordering.atomic import Counter, Fifo
from backends.multicore.ordering.keyed import UNBOUNDED, Join, Keyed, Operate, Piece, Split
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from backends.multicore.ordering.reorder import Sequencer

B = TypeVar("B")
R = TypeVar("R")


class HybridQueue(Keyed[B, R]):
    """Any worker fires any partition. There may be many more partitions than workers."""

    def __init__(
        self, partitions: int, order: Sequencer[R], split: Split[B], operate: Operate[B, R], join: Join[B, R]
    ) -> None:
        super().__init__(order, split, operate, join)
        self._master: Fifo[int] = Fifo()
        self._queues: list[Fifo[Piece[B, R]]] = [Fifo() for _ in range(partitions)]
        self._counts = [Counter(0) for _ in range(partitions)]

    def _enqueue(self, partition: int, piece: Piece[B, R]) -> None:
        self._queues[partition].enqueue(piece)  # L4
        self._master.enqueue(partition)  # L5

    def waiting(self, worker: int) -> int:
        return len(self._master)

    def work(self, worker: int, most: int = UNBOUNDED) -> bool:
        """Fires pieces, with them those that other workers leave to this one."""
        room = True
        while most > 0:
            most -= 1
            partition = self._master.try_dequeue()  # L9
            if partition is None:
                break
            if self._counts[partition].fetch_add() > 0:  # L10
                continue
            more = True
            while more:
                piece = self._queues[partition].try_dequeue()  # L12
                if piece is None:
                    raise InternalError(f"partition {partition} has fewer pieces than the master queue says")
                room = self._fire(piece) and room  # L13
                more = self._counts[partition].fetch_sub() > 1  # L14
        return room
