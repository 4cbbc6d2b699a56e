"""What makes items of that which has come of a live input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.backend import Items, Rows
    from river.io.live import Arriving
    from river.io.order import Ordering


class Taker(Protocol):
    """Takes the entries of an inbox. Rows that may come late wait in it."""

    def take(self, entries: list[Any]) -> Iterator[Items | Rows]:
        """What can be given out now that these have come. Raises: Rejected, behind what came before the error."""
        ...

    def release(self, bound: int | None) -> Iterator[Items | Rows]:
        """What waits, up to a key; all of it for None. Raises: Rejected."""
        ...


def taker_of(arriving: Arriving, ordering: Ordering | None) -> Taker:
    """That of an input, which keeps to an order if it has a key."""
    return _Batches(arriving, ordering) if arriving.taker is None else arriving.taker(ordering)


@frozen
class _Batches:
    """That of the general readers."""

    arriving: Arriving
    ordering: Ordering | None

    def take(self, entries: list[Any]) -> Iterator[Items]:
        """See `Taker`."""
        for batch in self.arriving.batches(entries):
            taken = batch if self.ordering is None else self.ordering.push(batch)
            yield from self.arriving.source.accepted(taken)

    def release(self, bound: int | None) -> Iterator[Items]:
        """See `Taker`."""
        if self.ordering is not None:
            yield from self.arriving.source.accepted(self.ordering.release(bound))
