"""What was parsed, given out: in order, without the rows that are refused (runtime.md 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.batch import Batch
from backends.native.ingest.parse import Segment, until_error
from river.classes import define, evolve, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from backends.native.ingest.lateness import Waiting
    from river.io.batches import Batch as General
    from river.io.errors import Refusals
    from river.io.order import Ordering
    from river.lang import types as t


@define(eq=False)
class Delivery:
    """The rows of an input, block by block; `ordering`: where they must ascend by a field, or wait for late ones.

    Its methods raise Rejected as the general reader does: refused rows are counted, or end the run after those before them.
    """

    type: t.Type
    refusals: Refusals
    ordering: Ordering | None
    _waiting: Waiting | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._waiting = None
        if self.ordering is not None and self.ordering.lateness:
            from backends.native.ingest.lateness import Waiting  # in most files rows ascend

            self._waiting = Waiting(self.type, self.ordering)

    @property
    def waits(self) -> bool:
        """Whether rows wait for later ones."""
        return self._waiting is not None

    @property
    def waiting(self) -> Waiting | None:
        """Where they wait."""
        return self._waiting

    def take(
        self, segments: Sequence[Segment], before: int, again: Callable[[], Iterable[General]]
    ) -> Iterator[Batch]:
        """The rows of a block behind `before` lines, and those that need not wait for it any more.

        `again` is the block as the general reader reads it, which tells what is wrong with the order of its rows.
        """
        if self.refusals.stops:
            segments = until_error(segments)
        if self._falls([segment.batch for segment in segments if segment.batch.rows]):
            for batch in again():
                yield from self.general(batch)
            return
        for segment in segments:
            yield from self._pieces(segment, before)

    def general(self, batch: General) -> Iterator[Batch]:
        """The same for rows that the general reader has read."""
        if self.refusals.stops:
            batch = batch.until_error()
        if self._waiting is not None and self.ordering is not None:
            batch = self.ordering.sieved(batch)
        elif self.ordering is not None:
            batch = self.ordering.push(batch)
        yield from self._pieces(Segment(Batch.of(self.type, batch.items), tuple(batch.errors)), 0)

    def release(self, bound: int | None) -> Iterator[Batch]:
        """The rows that wait, up to a key, or all of them."""
        if self._waiting is not None:
            yield self._waiting.release(bound)

    def _falls(self, batches: Sequence[Batch]) -> bool:
        """Whether keys do not ascend; if they do, they have been taken in. With lateness: whether one is late."""
        if self.ordering is None or not batches:
            return False
        least = self.ordering.passed
        if self._waiting is not None:
            return not self._waiting.takes(batches, least)
        for batch in batches:
            if batch.fall(self.ordering.key, least) is not None:
                return True
            least = batch.numbers(self.ordering.key)[-1]
        self.ordering.top = self.ordering.given = least
        return False

    def _pieces(self, segment: Segment, before: int) -> Iterator[Batch]:
        """The rows between the errors."""
        done = 0
        for position, error in segment.errors:
            if self.refusals.stops:
                yield self._passed(segment.batch[done:position])
                done = position
            self.refusals.refuse(evolve(error, line=error.line + before))
        yield self._passed(segment.batch[done:])

    def _passed(self, batch: Batch) -> Batch:
        return batch if self._waiting is None else self._waiting.push(batch)
