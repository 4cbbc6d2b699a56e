"""What the world sends to a program, in one deterministic order: the sources' items, heartbeats, and the ends.

Keyed inputs (`input q: T by k`) whose keys have one type are merged by key, ties by the order of the inputs in the
program. Such groups, and the inputs without key, take turns, a batch each. Nothing is read ahead of need but one batch
per input. The reference and the other backends all read this, so that a program sees the same marks everywhere.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from river.diagnostics import Diagnostic, Rejected
from river.lang.types import parts
from river.lang.values import END, Mark

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from river.backend import Items, Rows, Sources
    from river.il.graph import Graph, Queue
    from river.lang.types import Type

Event = tuple[str, "list[Any] | Rows"]
"""An input queue and elements for it: items, or marks, never both."""


@frozen
class Turn:
    """What is sent before a source is asked for more: items of some inputs, then marks."""

    items: tuple[Event, ...] = ()
    marks: tuple[Event, ...] = ()


def events(graph: Graph, sources: Sources, batch: int) -> Generator[Event]:
    """The elements of all inputs in the order in which they arrive; a list has at most `batch` items.

    A keyed input never has to be waited for longer than a batch: when `batch` items up to key t have been sent, and
    before a source is asked for more, every input of the group gets Mark(t), unless it had that. An input that ends
    goes on getting these marks; when all of the group have ended each gets Mark(T + 1), T the last key of them all,
    and END. An input without key gets END when it ends. An input without source is empty.

    Raises: Rejected("data-order") where the key of an input falls; ValueError if `sources` names no input.
    """
    for turn in turns(graph, sources, batch):
        yield from turn.items if len(turn.items) < 2 else _interleaved(graph, turn.items)
        yield from turn.marks


def turns(graph: Graph, sources: Sources, batch: int) -> Generator[Turn]:
    """The events, grouped: within a turn the items of one input stand together, which is all that a queue sees of it.

    Raises: as `events`.
    """
    if batch < 1:
        raise ValueError(f"a batch has at least one item, not {batch}")
    if strangers := sorted(set(sources) - set(graph.inputs)):
        raise ValueError(f"not inputs of the program: {', '.join(strangers)}")
    feeds = [_Feed(graph.queues[name], iter(sources.get(name, ()))) for name in graph.inputs]
    clocks: dict[Type, list[_Feed]] = {}
    for feed in feeds:
        if feed.clock is not None:
            clocks.setdefault(feed.clock, []).append(feed)
    waiting = deque(_merged(together, batch) for together in clocks.values())
    waiting += (_plain(feed, batch) for feed in feeds if feed.clock is None)
    try:
        while waiting:
            taker = waiting.popleft()
            for turn in taker:
                yield turn
                waiting.append(taker)
                break
    finally:
        for feed in feeds:
            feed.close()


@define(eq=False)
class _Feed:
    """One input while it is read: the batch at hand, its keys, and how far it has been sent (`at`).

    `key`: the position of the key in an item; `clock`: its type.
    """

    queue: Queue
    batches: Iterator[Items | Rows]
    key: int | None = None
    clock: Type | None = None
    items: Items | Rows = field(factory=list[Any])
    keys: Sequence[int] = ()
    at: int = 0
    sent: int = 0
    last: int | None = None
    marked: int | None = None
    ended: bool = False

    def __attrs_post_init__(self) -> None:
        self.key = self.queue.key()
        if self.key is not None:
            self.clock = parts(self.queue.type)[self.key]

    @property
    def empty(self) -> bool:
        """Whether the batch at hand has been sent."""
        return self.at == len(self.items)

    def refill(self) -> None:
        """Reads the next batch that has items, or finds the end."""
        self.sent += len(self.items)
        self.items, self.keys, self.at = [], (), 0
        items = next((items for items in self.batches if len(items)), None)
        if items is None:
            self.ended = True
            return
        self.items = items
        if self.key is not None:
            key = self.key
            self.keys = [item[key] for item in items] if isinstance(items, list) else items.numbers(key)
            self.check()
            self.last = self.keys[-1]

    def check(self) -> None:
        """Sees that keys ascend, also from the batch before. Raises: Rejected("data-order")."""
        keys = self.keys
        if not isinstance(self.items, list):
            at = self.items.fall(self.key or 0, self.last)
            if at is not None:
                before = keys[at - 1] if at or self.last is None else self.last
                raise self.falls(at, keys[at], before)
            return
        if self.last is not None and keys[0] < self.last:
            raise self.falls(0, keys[0], self.last)
        if any(low > high for low, high in pairwise(keys)):
            at = next(i for i, (low, high) in enumerate(pairwise(keys), start=1) if low > high)
            raise self.falls(at, keys[at], keys[at - 1])

    def falls(self, at: int, key: int, before: int) -> Rejected:
        """The error that item `at` of the batch has a key below the one before it."""
        name, by = self.queue.name, self.queue.by
        return Rejected(
            [
                Diagnostic(
                    "data-order",
                    f"`{by}` falls from {before} to {key}",
                    place=f"input `{name}`, row {self.sent + at + 1}",
                    help=f"input `{name}` must be sorted by `{by}`",
                )
            ]
        )

    def close(self) -> None:
        """Lets the source go."""
        close = getattr(self.batches, "close", None)
        if close is not None:
            close()


def _plain(feed: _Feed, batch: int) -> Iterator[Turn]:
    """The turns of an input without key."""
    while not feed.ended:
        feed.refill()
        for start in range(0, len(feed.items), batch):
            yield Turn(((feed.queue.name, feed.items[start : start + batch]),))
    yield Turn(marks=((feed.queue.name, [END]),))


def _merged(feeds: list[_Feed], batch: int) -> Iterator[Turn]:
    """The turns of keyed inputs: the items that come next, at most a batch, and marks up to the last of their keys."""
    now: int | None = None
    while True:
        for feed in feeds:
            if feed.empty and not feed.ended:
                feed.refill()
        live = [feed for feed in feeds if not feed.empty]
        if not live:
            break
        now, items = _next(live, max(1, batch // len(live)))
        yield Turn(items, _marks(feeds, now))
    ends = () if now is None else _marks(feeds, now + 1)
    yield Turn(marks=(*ends, *((feed.queue.name, [END]) for feed in feeds)))


def _next(live: list[_Feed], share: int) -> tuple[int, tuple[Event, ...]]:
    """The items that come before all others, at most `share` of each input, and the last of their keys."""
    ends = [min(feed.at + share, len(feed.keys)) for feed in live]
    place = min(range(len(live)), key=lambda i: live[i].keys[ends[i] - 1])  # the first of equals
    last = live[place].keys[ends[place] - 1]
    found: list[Event] = []
    for i, feed in enumerate(live):
        start, stop = feed.at, ends[i]
        if i != place:  # of equal keys those of the inputs before this one come first
            stop = (bisect_right if i < place else bisect_left)(feed.keys, last, start, stop)
        if start < stop:
            found.append((feed.queue.name, feed.items[start:stop]))
            feed.at = stop
    return last, tuple(found)


def _marks(feeds: Iterable[_Feed], key: int) -> tuple[Event, ...]:
    """Mark(key) for each input that had none as high."""
    marks: list[Event] = []
    for feed in feeds:
        if feed.marked is None or feed.marked < key:
            feed.marked = key
            marks.append((feed.queue.name, [Mark(key)]))
    return tuple(marks)


def _interleaved(graph: Graph, events: tuple[Event, ...]) -> Iterator[Event]:
    """The items of several keyed inputs as runs in order of key, ties in the order of `events`."""
    keys = [graph.queues[name].key() or 0 for name, _ in events]
    lists = [items if isinstance(items, list) else items.values() for _, items in events]
    places = (
        (item[key], i) for i, (items, key) in enumerate(zip(lists, keys, strict=True)) for item in items
    )
    rests = [iter(items) for items in lists]
    for i, run in groupby(place for _, place in sorted(places)):
        yield events[i][0], [next(rests[i]) for _ in run]
