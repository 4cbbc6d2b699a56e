"""What a backend is sent at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Protocol

from river.classes import evolve, frozen
from river.lang.values import BOUNDS, END, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.backend import Items, Rows
    from river.il.graph import Graph, Queue
    from river.lang.types import Type

Event = tuple[str, "list[Any] | Rows"]
"""An input queue and elements for it: items, or marks, never both."""


@frozen
class Turn:
    """What is sent before a source is asked for more: items of some inputs, then marks. It may be empty: time passes.

    `held`: items that have been read and cannot be sent before more of other inputs is known, where that is not at hand.
    """

    items: tuple[Event, ...] = ()
    marks: tuple[Event, ...] = ()
    held: tuple[Event, ...] = ()


@frozen
class Position:
    """How far an input has been sent: so many items, the key of the last one, the last mark, and whether it got its end.

    `begun`: so many of the items the source leaves out itself.
    """

    items: int = 0
    last: int | None = None
    marked: int | None = None
    ended: bool = False
    begun: int = 0


def passed(graph: Graph, before: Mapping[str, Position], turn: Turn) -> dict[str, Position]:
    """Where the inputs are after a turn."""
    found = dict(before)
    for name, elements in turn.items:
        key, last = graph.queues[name].key(), None
        if key is not None:
            last = (
                elements[-1][key] if isinstance(elements, list) else elements.number(key, len(elements) - 1)
            )
        at = found.get(name, Position())
        found[name] = evolve(at, items=at.items + len(elements), last=last)
    for name, elements in turn.marks:
        at = found.get(name, Position())
        for mark in elements if isinstance(elements, list) else ():
            at = evolve(at, ended=True) if mark == END else evolve(at, marked=mark.key)
        found[name] = at
    return found


class Feed(Protocol):
    """A keyed input of which items are at hand: those from `at` on have not been sent."""

    queue: Queue
    clock: Type | None
    items: Items | Rows
    keys: Sequence[int]
    at: int
    marked: int | None


def first_items(feeds: Sequence[Feed], ends: Sequence[int]) -> tuple[int, tuple[Event, ...]]:
    """The items that come before all others, of each input those before its end, and the last of their keys."""
    place = min(range(len(feeds)), key=lambda i: feeds[i].keys[ends[i] - 1])  # the first of equals
    last = feeds[place].keys[ends[place] - 1]
    found: list[Event] = []
    for i, feed in enumerate(feeds):
        start, stop = feed.at, ends[i]
        if i != place:  # of equal keys those of the inputs before this one come first
            stop = (bisect_right if i < place else bisect_left)(feed.keys, last, start, stop)
        if start < stop:
            found.append((feed.queue.name, feed.items[start:stop]))
            feed.at = stop
    return last, tuple(found)


def latest(now: int | None, until: int | None) -> int | None:
    """The last instant of a run: that of the last items, or the one up to which time is to go on."""
    return max((each for each in (now, until) if each is not None), default=None)


def marks(feeds: Iterable[Feed], key: int, *, over: bool = False) -> tuple[Event, ...]:
    """Mark(key) for each input that had none as high; a mark is never outside the type of the keys.

    `over`: all items have been sent. Only then there is a mark at the greatest of the keys, which has no successor: so it says
    that the last instant is over, too.
    """
    found: list[Event] = []
    for feed in feeds:
        low, high = BOUNDS[feed.clock] if feed.clock is not None else (key, key + 1)
        level = min(max(key, low), high if over else high - 1)
        if feed.marked is None or feed.marked < level:
            feed.marked = level
            found.append((feed.queue.name, [Mark(level)]))
    return tuple(found)
