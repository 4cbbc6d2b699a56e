"""What all ways to share a keyed operator among workers have in common: batches split by partition, results joined.

A batch has one serial number. It is split into pieces, one for each partition that has rows in it; the pieces of a
partition fire in order, one at a time. Who fires the last piece of a batch joins the results and hands them in.

Paper: section 4, whose tuples are batches here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

from backends.multicore.ordering.atomic import Counter
from backends.multicore.ordering.reorder import NOTHING, FailedResult, Nothing, Sequencer, Wait
from river.diagnostics import InternalError

B = TypeVar("B")
R = TypeVar("R")

UNBOUNDED = 1 << 62
"""As many as there are."""


class Part(NamedTuple, Generic[B]):
    """The rows of a batch that belong to a partition; `positions`: where they stand in the batch, ascending."""

    partition: int
    rows: B
    positions: Sequence[int]


Split = Callable[[B], Sequence[Part[B]]]
"""A batch by partition: at most one part for each."""

Operate = Callable[[int, B], "R | FailedResult | Nothing"]
"""Fires the rows of a partition. After it returned `FailedResult` it is not called for that partition any more."""

Join = Callable[[B, Sequence[Part[B]], "Sequence[R | FailedResult | Nothing]"], "R | FailedResult | Nothing"]
"""The result of a batch, of its parts and their results. It is `FailedResult` if one of these is."""


class Parent(Generic[B, R]):
    """A batch under way. `results` has None for a part that did not fire; `left` counts those still to come."""

    __slots__ = ("batch", "left", "parts", "results", "serial")

    def __init__(self, serial: int, batch: B, parts: Sequence[Part[B]]) -> None:
        self.serial = serial
        self.batch = batch
        self.parts = parts
        self.results: list[R | FailedResult | Nothing | None] = [None] * len(parts)
        self.left = Counter(len(parts))


Piece = tuple[Parent[B, R], int]
"""A part that waits: its parent and its place there."""


class Keyed(ABC, Generic[B, R]):
    """A keyed operator. `feed` is called by one worker at a time, the one that has the operator's task; `work` by any number.

    What `work` returns is what `Sequencer.flush` returns: False asks the caller to see to it that somebody comes back.
    """

    def __init__(
        self, order: Sequencer[R], split: Split[B], operate: Operate[B, R], join: Join[B, R]
    ) -> None:
        self.order = order
        self._split = split
        self._operate = operate
        self._join = join
        self._failed: set[int] = set()
        self.given = 0

    def feed(self, source: Callable[[], B | None]) -> Wait | None:
        """Takes the next batch of `source`, if it has one and there is capacity; else, what to wait for.

        Capacity comes before the serial number: who has a number never waits. Paper: Fig. 7, `addInput`.
        """
        if not self.order.flush():
            return Wait.ROOM
        serial = self.given
        if not self.order.admits(serial):
            return Wait.NEXT
        batch = source()
        if batch is None:
            return Wait.NEXT
        self.given = serial + 1
        parts = self._split(batch)
        parent: Parent[B, R] = Parent(serial, batch, parts)
        if not parts:
            room = self._complete(parent)
            return None if room else Wait.ROOM
        for i, part in enumerate(parts):
            self._enqueue(part.partition, (parent, i))
        return None

    @abstractmethod
    def waiting(self, worker: int) -> int:
        """How many pieces there are for a worker to take."""

    @abstractmethod
    def work(self, worker: int, most: int = UNBOUNDED) -> bool:
        """Fires pieces until there are none for the worker, or it has taken `most`. Paper: Fig. 7, `consumeInputs`."""

    @abstractmethod
    def _enqueue(self, partition: int, piece: Piece[B, R]) -> None: ...

    def _fire(self, piece: Piece[B, R]) -> bool:
        """Fires a piece whose partition nobody else fires; completes the batch if it is its last."""
        parent, i = piece
        part = parent.parts[i]
        failure = self.order.failure
        if failure is None and part.partition not in self._failed:
            result = self._operate(part.partition, part.rows)
            parent.results[i] = result
            if isinstance(result, FailedResult):
                self._failed.add(part.partition)
        if parent.left.fetch_sub() > 1:
            return True
        return self._complete(parent)

    def _complete(self, parent: Parent[B, R]) -> bool:
        """Joins what the parts made. A part that did not fire stands behind a failure, so nothing of its batch is sent."""
        results = parent.results
        if None in results:
            joined = NOTHING
        else:
            made = cast("list[R | FailedResult | Nothing]", results)
            joined = self._join(parent.batch, parent.parts, made)
            if any(isinstance(each, FailedResult) for each in made) and not isinstance(joined, FailedResult):
                raise InternalError("a failure was lost where the results of a batch were joined")
        return self.order.hand_in(parent.serial, joined)


def by_position(
    _batch: Any,
    parts: Sequence[Part[Any]],
    results: Sequence[list[list[Any]] | FailedResult | Nothing],
) -> list[list[Any]] | FailedResult:
    """The join of results that are lists with what each row made, in the order of the batch.

    Of several failures that of the first row counts, and only what stands before that row.
    """
    rows: list[tuple[int, list[Any]]] = []
    failures: list[tuple[int, Exception]] = []
    for part, result in zip(parts, results, strict=True):
        made: list[list[Any]] | Nothing = result.before if isinstance(result, FailedResult) else result
        done = [] if made is NOTHING else made
        rows += zip(part.positions, done, strict=False)
        if isinstance(result, FailedResult):
            failures.append((part.positions[len(done)], result.error))
    rows.sort(key=lambda row: row[0])
    if not failures:
        return [made for _, made in rows]
    first, error = min(failures, key=lambda failure: failure[0])
    return FailedResult(error, [made for position, made in rows if position < first])
