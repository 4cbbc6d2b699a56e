"""What the world sends to a program, in one deterministic order: the sources' items, heartbeats, and the ends.

Keyed inputs (`input q: T by k`) whose keys have one type are merged by key, ties by the order of the inputs in the
program. Such groups, and the inputs without key, take turns, a batch each. Nothing is read ahead of need but one batch
per input. The reference and the other backends all read this, so that a program sees the same marks everywhere.

Live inputs (`river.io.live`) are merged in the same way by what there is of each (`live`).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from river.ingress.still import still_turns
from river.ingress.turn import Event, Position, Turn, passed
from river.part import WHOLE

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from river.backend import Sources
    from river.il.graph import Graph
    from river.part import Part

__all__ = ["Event", "Position", "Turn", "events", "passed", "turns"]


def events(
    graph: Graph, sources: Sources, batch: int, *, until: int | None = None
) -> Generator[tuple[str, list[Any]]]:
    """The elements of all inputs in the order in which they arrive; a list has at most `batch` items.

    A keyed input never has to be waited for longer than a batch: when `batch` items up to key t have been sent, and
    before a source is asked for more, every input of the group gets Mark(t), unless it had that. An input that ends
    goes on getting these marks; when all of the group have ended each gets Mark(T + 1), T the last key of them all or
    `until` if that is later, and END. An input without key gets END when it ends. An input without source is empty.

    Raises: Rejected("data-order") where the key of an input falls; ValueError if `sources` names no input.
    """
    for turn in turns(graph, sources, batch, until=until):
        yield from map(_listed, turn.items) if len(turn.items) < 2 else _interleaved(graph, turn.items)
        yield from map(_listed, turn.marks)


def turns(
    graph: Graph,
    sources: Sources,
    batch: int,
    after: Mapping[str, Position] | None = None,
    *,
    until: int | None = None,
    part: Part = WHOLE,
) -> Generator[Turn]:
    """The events, grouped: within a turn the items of one input stand together, which is all that a queue sees of it.

    `after`: what has been sent before, of the same inputs from their beginning; only what comes then is sent. `part`: the
    sources, none of them live, have one part of their inputs; at its end there may be items that are held for the next.

    Raises: as `events`.
    """
    if batch < 1:
        raise ValueError(f"a batch has at least one item, not {batch}")
    if strangers := sorted(set(sources) - set(graph.inputs)):
        raise ValueError(f"not inputs of the program: {', '.join(strangers)}")
    from river.io.live import Arriving

    live = next((source.live for source in sources.values() if isinstance(source, Arriving)), None)
    if live is None:
        yield from still_turns(graph, sources, batch, after, until, part)
        return
    from river.ingress.live import live_turns

    yield from live_turns(graph, sources, batch, live, after, until)


def _listed(event: Event) -> tuple[str, list[Any]]:
    name, elements = event
    return name, elements if isinstance(elements, list) else elements.values()


def _interleaved(graph: Graph, events: tuple[Event, ...]) -> Iterator[tuple[str, list[Any]]]:
    """The items of several keyed inputs as runs in order of key, ties in the order of `events`."""
    keys = [graph.queues[name].key() or 0 for name, _ in events]
    lists = [_listed(event)[1] for event in events]
    places = (
        (item[key], i) for i, (items, key) in enumerate(zip(lists, keys, strict=True)) for item in items
    )
    rests = [iter(items) for items in lists]
    for i, run in groupby(place for _, place in sorted(places)):
        yield events[i][0], [next(rests[i]) for _ in run]
