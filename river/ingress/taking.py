"""What makes items of that which has come of a live input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from river.classes import frozen
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from river.backend import Items, Rows
    from river.io.batches import Batch, Origin
    from river.io.live import Arriving
    from river.io.order import Ordering

Entry = TypeVar("Entry")
Taken = TypeVar("Taken")


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


def of_senders(
    entries: Iterable[Entry],
    origin: Callable[[Entry], Origin | None],
    take: Callable[[Entry], Iterator[Taken]],
) -> Iterator[Taken]:
    """What `take` makes of entries. An error in what one of several senders sent ends that one; other errors are raised."""
    for entry in entries:
        found = origin(entry)
        sender = None if found is None else found.sender
        if sender is None:
            yield from take(entry)
        elif not sender.parted:
            try:
                yield from take(entry)
            except Rejected as rejected:
                sender.part(rejected)


@frozen
class _Batches:
    """That of the general readers."""

    arriving: Arriving
    ordering: Ordering | None

    def take(self, entries: list[Any]) -> Iterator[Items]:
        """See `Taker`."""
        yield from of_senders(self.arriving.batches(entries), lambda batch: batch.origin, self._accepted)

    def _accepted(self, batch: Batch) -> Iterator[Items]:
        source = self.arriving.source
        if source.refusals.stops:
            batch = batch.until_error()
        yield from source.accepted(batch if self.ordering is None else self.ordering.push(batch))

    def release(self, bound: int | None) -> Iterator[Items]:
        """See `Taker`."""
        if self.ordering is not None:
            yield from self.arriving.source.accepted(self.ordering.release(bound))
