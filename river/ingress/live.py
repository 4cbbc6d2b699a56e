"""Live inputs: what has come is sent, and time goes on as far as every input allows it.

Each keyed input has a bound, nothing below it will come: with items at hand the key of the first, else the last key that
came less the lateness; with the clock of the wall at least the time of day less the lateness. An input that has ended, or
has been silent for `Live.idle`, has none. Items below the bounds of all inputs of a group are sent, and each of them gets a
mark at the smallest bound. An item that comes below a mark is late.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.diagnostics import Diagnostic, Rejected
from river.ingress.still import InputFeed
from river.ingress.taking import Taker, taker_of
from river.ingress.turn import Turn, first_items, latest, marks
from river.io.live import Arriving, Inbox, still
from river.io.order import Ordering
from river.lang.types import TIME, Type
from river.lang.values import END

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from river.backend import Items, Rows
    from river.il.graph import Graph
    from river.ingress.turn import Event, Position
    from river.io.live import Live

TICK: Final = 0.05
"""Seconds after which there is a turn although nothing came."""

PATIENCE: Final = 0.5
"""Seconds that threads get to end."""

NEVER, ALWAYS = float("-inf"), float("inf")


def live_turns(
    graph: Graph,
    sources: Mapping[str, Iterable[Items | Rows]],
    batch: int,
    live: Live,
    after: Mapping[str, Position] | None = None,
    until: int | None = None,
) -> Generator[Turn]:
    """See `river.ingress.turns`. When nothing comes there is an empty turn after `TICK` seconds.

    Raises: Rejected for bad rows and for what cannot be read, after what came before has been sent as far as it can be;
    whatever an iterator raises.
    """
    lock = threading.Lock()
    news = threading.Condition(lock)
    inputs = [
        _Input(
            InputFeed(graph.queues[name], iter(())).behind((after or {}).get(name)),
            sources.get(name, ()),
            Inbox(name, news, lock, 2 * batch),
            live,
        )
        for name in graph.inputs
    ]
    inputs = [each for each in inputs if not each.feed.over]
    groups = _groups(inputs, batch, live, until)
    live.open()
    try:
        for each in inputs:
            each.start()
        began = time.monotonic()
        while groups:
            now, today = time.monotonic(), live.today()
            if _expired(live, inputs, began, now):
                live.stop()
            for each in inputs:
                each.take(now, today)
            sent = False
            for group in [*groups]:
                for turn in group.turns():
                    sent = True
                    yield turn
                if group.over:
                    groups.remove(group)
            for each in inputs:
                if each.failure is not None:
                    raise each.failure
            if not sent:
                yield Turn()
                with lock:
                    if not any(each.wanting and each.inbox.something for each in inputs):
                        news.wait(TICK)
    finally:
        live.stop()
        for each in inputs:
            each.inbox.close()
        deadline = time.monotonic() + PATIENCE
        for each in inputs:
            each.join(max(0.0, deadline - time.monotonic()))
            if isinstance(each.source, Arriving):
                each.source.source.close()
        live.close()


def _expired(live: Live, inputs: list[_Input], began: float, now: float) -> bool:
    """Whether the run has lasted as long as it should."""
    if live.stop_after is not None and now >= began + live.stop_after:
        return True
    if live.idle_exit is None:
        return False
    busy = live.busy or any(not each.wanting or each.inbox.something for each in inputs if not each.ended)
    return not busy and now >= max(began, *(each.inbox.heard for each in inputs)) + live.idle_exit


@define(eq=False)
class _Input:
    """One input of a live run: what is at hand of it (`feed`), what comes then, and how far its time has gone.

    `taker`: of a live input, `ordering`: of one with a key. `reached`: nothing below it will come after what is here.
    """

    feed: InputFeed
    source: Iterable[Items | Rows]
    inbox: Inbox
    live: Live
    taker: Taker | None = None
    ordering: Ordering | None = None
    pending: deque[Items | Rows] = field(factory=deque["Items | Rows"])
    reached: float = NEVER
    ended: bool = False
    failure: BaseException | None = None

    def __attrs_post_init__(self) -> None:
        key = self.feed.key
        if isinstance(self.source, Arriving):
            source = self.source.source
            if key is not None:
                strict = source.refusals.stops
                self.ordering = Ordering(source.type, key, self.live.lateness, source.origin, strict=strict)
            self.taker = taker_of(self.source, self.ordering)

    def start(self) -> None:
        """Lets its thread read."""
        if not isinstance(self.source, Arriving):
            self.inbox.start(still(self.source, self.live))
        elif self.source.patient:
            self.inbox.start(self.source.read)
        else:
            self.live.works(1)
            self.inbox.start(partial(self._read, self.source))

    def _read(self, source: Arriving, inbox: Inbox) -> None:
        try:
            source.read(inbox)
        finally:
            self.live.works(-1)

    def join(self, seconds: float) -> None:
        """Waits for its thread, unless that may be in somebody else's code."""
        ours = isinstance(self.source, Arriving) and not self.source.patient
        self.inbox.join(seconds if ours or self.ended else 0.0)

    @property
    def wanting(self) -> bool:
        """Whether it would take more."""
        return not self.ended and self.failure is None and self.feed.empty and not self.pending

    @property
    def over(self) -> bool:
        """Whether it has ended and all has been sent."""
        return self.ended and self.feed.empty and not self.pending

    @property
    def bound(self) -> float:
        """No item below it will be sent from now on."""
        if not self.feed.empty:
            return self.feed.keys[self.feed.at]
        if self.ended:
            return ALWAYS
        if self.ordering is None:
            return NEVER if self.feed.last is None else self.feed.last
        return self.reached

    def fill(self) -> None:
        """Has something at hand if there is something. Raises: Rejected("data-order") for what cannot be put in order."""
        while self.feed.empty and self.pending:
            items = self.feed.unsent(self.pending.popleft())
            if len(items):
                self.feed.give(items)

    def take(self, now: float, today: int | None) -> None:
        """Takes what has come, unless there is something at hand."""
        if not self.wanting:
            return
        entries = self.inbox.take()
        if self.taker is not None:
            if entries:
                self._accept(self.taker.take(entries))
            self._advance(self.taker, now, today)
        else:
            self.pending.extend(entries)
        self._end()

    def _advance(self, taker: Taker, now: float, today: int | None) -> None:
        """Sees how far its time has gone."""
        ordering = self.ordering
        if ordering is None:
            return
        silent = self.live.idle is not None and now >= self.inbox.heard + self.live.idle
        if silent or today is not None:
            self._accept(taker.release(None if silent else today))
        known = NEVER if ordering.bound is None else ordering.bound
        self.reached = ALWAYS if silent else max(known, NEVER if today is None else today)

    def _end(self) -> None:
        """Sees whether that was all."""
        if self.failure is not None:
            return
        patient = not isinstance(self.source, Arriving) or self.source.patient
        try:
            self.ended = self.inbox.over(stopped=self.live.stopped and patient)
        except BaseException as error:  # noqa: BLE001 - of the source: raised when what came before it has been sent
            self.failure = error
        if self.ended and self.taker is not None:
            self._accept(self.taker.release(None))
        if self.ended and not self.live.stopped:
            try:
                self.fill()
                if not self.pending:
                    self.feed.check_end()
            except Rejected as rejected:
                self.failure = self.failure or rejected

    def _accept(self, taken: Iterator[Items | Rows]) -> None:
        """The items that are given; a bad row may be the end."""
        assert isinstance(self.source, Arriving)  # noqa: S101 - others have no rows
        try:
            for items in taken:
                self.source.count(len(items))
                last = self.pending[-1] if self.pending else None
                if isinstance(items, list) and isinstance(last, list):
                    last += items
                else:
                    self.pending.append([*items] if isinstance(items, list) else items)
        except Rejected as rejected:
            self.failure = self.failure or rejected


def _groups(inputs: list[_Input], batch: int, live: Live, until: int | None) -> list[_Group]:
    """The inputs that are merged, and those without key."""
    clocks: dict[Type, list[_Input]] = {}
    for each in inputs:
        if each.feed.clock is not None:
            clocks.setdefault(each.feed.clock, []).append(each)
    if live.clock == "wall" and TIME not in clocks:
        message = "no input has a time stamp of type `time`, which could follow the clock of the wall"
        raise Rejected([Diagnostic("run-clock", message, help="time stamps of type `int` are ticks")])
    plain = [_Group([each], batch) for each in inputs if each.feed.clock is None]
    return [*(_Merge(together, batch, until=until) for together in clocks.values()), *plain]


@define(eq=False)
class _Group:
    """An input without key."""

    inputs: list[_Input]
    batch: int
    over: bool = False

    def turns(self) -> Iterator[Turn]:
        """What can be sent."""
        (one,) = self.inputs
        feed = one.feed
        one.fill()
        while not feed.empty:
            start, feed.at = feed.at, min(feed.at + self.batch, len(feed.items))
            yield Turn(((feed.queue.name, feed.items[start : feed.at]),))
            one.fill()
        if one.over:
            self.over = True
            yield Turn(marks=self._ends())

    def _ends(self) -> tuple[Event, ...]:
        return tuple((one.feed.queue.name, [END]) for one in self.inputs)


@define(eq=False)
class _Merge(_Group):
    """Inputs that are merged by key. `now`: the largest mark, or key, that was sent; `until`: see `river.ingress.events`."""

    now: int | None = None
    until: int | None = None

    def __attrs_post_init__(self) -> None:
        self.now = max((one.feed.marked for one in self.inputs if one.feed.marked is not None), default=None)

    def turns(self) -> Iterator[Turn]:
        """What can be sent."""
        while True:
            for one in self.inputs:
                one.fill()
            items = self._items()
            sent = self._marks()
            if not items and not sent:
                break
            yield Turn(items, sent)
        if all(one.over for one in self.inputs):
            self.over = True
            end = latest(self.now, self.until)
            last = () if end is None else marks([one.feed for one in self.inputs], end + 1, over=True)
            yield Turn(marks=(*last, *self._ends()))

    def _items(self) -> tuple[Event, ...]:
        """The next items, at most a batch."""
        # An input with nothing at hand lets those before it send up to its bound, those behind it below that.
        bounds = [(one.bound, i) for i, one in enumerate(self.inputs) if one.feed.empty]
        bound, place = min(bounds, default=(ALWAYS, 0))
        full = [(i, one.feed) for i, one in enumerate(self.inputs) if not one.feed.empty]
        share = max(1, self.batch // max(1, len(full)))
        found: list[tuple[InputFeed, int]] = []
        for i, feed in full:
            stop = min(feed.at + share, len(feed.keys))
            if bound != ALWAYS:
                stop = (bisect_right if i < place else bisect_left)(feed.keys, bound, feed.at, stop)
            if stop > feed.at:
                found.append((feed, stop))
        if not found:
            return ()
        self.now, items = first_items([feed for feed, _ in found], [stop for _, stop in found])
        return items

    def _marks(self) -> tuple[Event, ...]:
        """Marks at the smallest bound; where there is none, at the last key that was sent."""
        for one in self.inputs:
            one.fill()
        bound = min(one.bound for one in self.inputs)
        if bound not in (NEVER, ALWAYS):
            self.now = int(bound) if self.now is None else max(self.now, int(bound))
        key = self.now
        if key is None:
            return ()
        for one in self.inputs:
            if (
                one.ordering is not None and not one.feed.skip
            ):  # what is read again was in order when it was sent
                one.ordering.promised = key
        return marks([one.feed for one in self.inputs], key)
