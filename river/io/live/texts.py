"""The texts of an input that goes on, one after the other or several at a time, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.classes import define, evolve, field
from river.io.batches import Origin
from river.io.delimited import waiting
from river.io.sources import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from river.io.live.inbox import Inbox
    from river.io.live.streams import TextStream
    from river.lang.types import Type

Entry = tuple[Any, int]
"""Something for the inbox, and how many items it is, bad ones included."""


@define(eq=False)
class ArrivingTexts:
    """The texts of the input `name`, of items of `type`; `size`: of a batch.

    `format`: of all of them, None where each has one of its own. `read` makes entries of a text that has begun, of its
    format and origin; it may be replaced before the first.
    """

    type: Type
    name: str
    size: int
    format: str | None
    read: Callable[[TextStream, str, Origin], Iterator[Entry]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.read = self._batches

    def _batches(self, stream: TextStream, kind: str, origin: Origin) -> Iterator[Entry]:
        """By the general readers."""
        rows, batches = read_text(stream, kind, self.type, origin, self.size)
        with stream.leaving(lambda: waiting(rows)):
            for batch in batches:
                yield evolve(batch, origin=origin), len(batch.items) + len(batch.errors)

    def put(self, parts: Iterable[tuple[TextStream, str]], inbox: Inbox) -> None:
        """Puts texts, each with its format, into an inbox. Raises: Rejected; Stopped."""
        for stream, kind in parts:
            if stream.begins():
                origin = Origin(self.name, stream.label, sender=stream.sender)
                for entry, size in self.read(stream, kind, origin):
                    if not inbox.put(entry, size):
                        return
