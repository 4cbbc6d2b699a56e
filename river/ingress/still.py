"""Inputs that can be read when they are asked: each is waited for in its turn."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from river.classes import define, field
from river.diagnostics import Diagnostic, Rejected
from river.ingress.turn import Turn, first_items, latest, marks
from river.lang.types import parts
from river.lang.values import END
from river.part import WHOLE

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from river.backend import Items, Rows
    from river.il.graph import Graph, Queue
    from river.ingress.turn import Position
    from river.lang.types import Type
    from river.part import Part


def still_turns(
    graph: Graph,
    sources: Mapping[str, Iterable[Items | Rows]],
    batch: int,
    after: Mapping[str, Position] | None = None,
    until: int | None = None,
    part: Part = WHOLE,
) -> Generator[Turn]:
    """See `river.ingress.turns`."""
    feeds = [
        InputFeed(
            graph.queues[name],
            _given(sources, name, part),
            more=name in part.more,
            reached=part.reached.get(name),
        ).behind((after or {}).get(name))
        for name in graph.inputs
    ]
    clocks: dict[Type, list[InputFeed]] = {}
    for feed in feeds:
        if feed.clock is not None and not feed.over:
            clocks.setdefault(feed.clock, []).append(feed)
    waiting = deque(_merged(together, batch, until) for together in clocks.values())
    waiting += (_plain(feed, batch) for feed in feeds if feed.clock is None and not feed.over)
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


def _given(sources: Mapping[str, Iterable[Items | Rows]], name: str, part: Part) -> Iterator[Items | Rows]:
    """The batches of an input: first what was held of it."""
    held, source = part.held.get(name), iter(sources.get(name, ()))
    return source if not held else chain([held], source)


@define(eq=False)
class InputFeed:
    """One input while it is read: the batch at hand, its keys, and how far it has been sent (`at`).

    `key`: the position of the key in an item; `clock`: its type. `skip`: so many items are dropped, they were sent before;
    `over`: so was the end. `more`: of the input follows behind the batches. `reached`: see `Part`.
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
    over: bool = False
    skip: int = 0
    more: bool = False
    reached: int | None = None

    def __attrs_post_init__(self) -> None:
        self.key = self.queue.key()
        if self.key is not None:
            self.clock = parts(self.queue.type)[self.key]

    @property
    def empty(self) -> bool:
        """Whether the batch at hand has been sent."""
        return self.at == len(self.items)

    def behind(self, position: Position | None) -> InputFeed:
        """The same, where it goes on from `position`: what was sent before is read again and dropped."""
        if position is not None:
            self.skip, self.sent = position.items - position.begun, position.items
            self.last, self.marked, self.over = position.last, position.marked, position.ended
        return self

    def unsent(self, items: Items | Rows) -> Items | Rows:
        """Those of the batch that comes next that were not sent before."""
        if not self.skip:
            return items
        dropped = min(self.skip, len(items))
        self.skip -= dropped
        return items[dropped:]

    def refill(self) -> None:
        """Reads the next batch that has items, or finds the end."""
        items = next((items for items in map(self.unsent, self.batches) if len(items)), None)
        self.give([] if items is None else items)
        self.ended = items is None
        if self.ended:
            self.last = latest(self.last, self.reached)
            self.check_end()

    def check_end(self) -> None:
        """Sees that what was sent before has been read. Raises: Rejected("run-checkpoint-input")."""
        if self.skip:
            message = f"input `{self.queue.name}` has fewer items than were read before"
            help_ = "the state is of other data: give that, or begin anew with `--restart`"
            raise Rejected([Diagnostic("run-checkpoint-input", message, help=help_)])

    def give(self, items: Items | Rows) -> None:
        """The next batch. Raises: Rejected("data-order")."""
        self.sent += len(self.items)
        self.items, self.at = items, 0
        if self.key is not None and len(items):
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


def _plain(feed: InputFeed, batch: int) -> Iterator[Turn]:
    """The turns of an input without key. What comes in columns is not cut: who fires takes as much of it as a batch has."""
    while not feed.ended:
        feed.refill()
        most = batch if isinstance(feed.items, list) else max(batch, len(feed.items))
        for start in range(0, len(feed.items), most):
            yield Turn(((feed.queue.name, feed.items[start : start + most]),))
    if not feed.more:
        yield Turn(marks=((feed.queue.name, [END]),))


def _merged(feeds: list[InputFeed], batch: int, until: int | None) -> Iterator[Turn]:
    """The turns of keyed inputs: the items that come next, at most a batch, and marks up to the last of their keys."""
    now = max((feed.marked for feed in feeds if feed.marked is not None), default=None)
    while True:
        for feed in feeds:
            if feed.empty and not feed.ended:
                feed.refill()
        live = [feed for feed in feeds if not feed.empty]
        if not live:
            break
        share = max(1, batch // len(live))
        ends = {id(feed): min(feed.at + share, _certain(feeds, feed)) for feed in live}
        live = [feed for feed in live if ends[id(feed)] > feed.at]
        if not live:
            break
        now, items = first_items(live, [ends[id(feed)] for feed in live])
        yield Turn(items, marks(feeds, now))
    if going := [feed for feed in feeds if feed.more]:
        held = tuple((feed.queue.name, items) for feed in feeds for items in _rest(feed))
        known = [feed.last for feed in going if feed.reached is not None and feed.last is not None]
        yield Turn(marks=marks(feeds, min(known)) if len(known) == len(going) else (), held=held)
        return
    end = latest(now, until)
    ends = () if end is None else marks(feeds, end + 1, over=True)
    yield Turn(marks=(*ends, *((feed.queue.name, [END]) for feed in feeds)))


def _certain(feeds: Sequence[InputFeed], feed: InputFeed) -> int:
    """Up to where the items at hand of a feed come before all that is not at hand of others."""
    stop = len(feed.keys)
    before = True
    for other in feeds:
        if other is feed:
            before = False
        elif other.more and other.ended:
            if other.last is None:
                return feed.at
            stop = (bisect_left if before else bisect_right)(feed.keys, other.last, feed.at, stop)
    return stop


def _rest(feed: InputFeed) -> Iterator[Items | Rows]:
    """What is left of a feed."""
    yield feed.items[feed.at :]
    yield from map(feed.unsent, feed.batches)
