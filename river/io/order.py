"""Time stamps of an input: they must not go back, or by no more than a stated lateness."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from river.io.batches import Batch, Item, Origin, Source
from river.io.scalars import format_duration, format_time
from river.io.schema import columns
from river.lang.types import TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from river.io.errors import RowError


def ordered(source: Source, key: int, lateness: int = 0) -> Source:
    """The items of `source` in weakly ascending order of field `key`, equal ones in order of arrival.

    With lateness 0 an item below an earlier one is a row error (`data-order`). Else items wait until the
    largest key seen is `lateness` above theirs, or the input ends; an item more than `lateness` below the
    largest key is a row error (`data-late`). Units: `lateness` in units of the key.
    """
    batches = iter(source.batches)
    name, type_ = columns(source.type)[key]
    calendar = type_ == TIME
    if lateness <= 0:
        return source.derived(source.type, _checked(batches, key, source.origin, name, calendar))
    return source.derived(source.type, _held(batches, key, lateness, source.origin, name, calendar))


def _checked(
    batches: Iterator[Batch], key: int, origin: Origin, name: str, calendar: bool
) -> Iterator[Batch]:
    show = format_time if calendar else str
    last: Any = None
    for batch in batches:
        keys = [item[key] for item in batch.items]
        if keys and keys == sorted(keys) and (last is None or last <= keys[0]):
            last = keys[-1]
            yield batch
            continue
        out = _Out(origin)
        earlier = _earlier(batch)
        for number, item in enumerate(batch.items):
            earlier(number, out)
            if last is not None and item[key] < last:
                reason = f"the time stamp goes back, from {show(last)} to {show(item[key])}"
                out.refuse(batch, number, "data-order", reason, name)
            else:
                last = item[key]
                out.take(item, batch.lines[number], batch.text(number))
        earlier(len(batch.items), out)
        yield out.batch()


def _held(
    batches: Iterator[Batch], key: int, lateness: int, origin: Origin, name: str, calendar: bool
) -> Iterator[Batch]:
    show, span = (format_time, format_duration) if calendar else (str, str)
    waiting: list[tuple[Any, int, Item, int, str]] = []
    top: Any = None
    arrived = 0
    for batch in batches:
        out = _Out(origin)
        earlier = _earlier(batch)
        for number, item in enumerate(batch.items):
            earlier(number, out)
            now = item[key]
            if top is not None and now < top - lateness:
                reason = f"is late: {show(now)} is more than {span(lateness)} below {show(top)}"
                out.refuse(batch, number, "data-late", reason, name)
                continue
            arrived += 1
            heappush(waiting, (now, arrived, item, batch.lines[number], batch.text(number)))
            top = now if top is None or now > top else top
            while waiting and waiting[0][0] <= top - lateness:
                _, _, ready, line, text = heappop(waiting)
                out.take(ready, line, text)
        earlier(len(batch.items), out)
        yield out.batch()
    out = _Out(origin)
    while waiting:
        _, _, ready, line, text = heappop(waiting)
        out.take(ready, line, text)
    yield out.batch()


class _Out:
    """A batch in the making."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._items: list[Item] = []
        self._lines: list[int] = []
        self._texts: list[str] = []
        self._errors: list[tuple[int, RowError]] = []

    def take(self, item: Item, line: int, text: str) -> None:
        self._items.append(item)
        self._lines.append(line)
        self._texts.append(text)

    def error(self, error: RowError) -> None:
        self._errors.append((len(self._items), error))

    def refuse(self, batch: Batch, number: int, code: str, reason: str, name: str) -> None:
        text = batch.text(number)
        self.error(self._origin.error(batch.lines[number], code, reason, field=name, text=text))

    def batch(self) -> Batch:
        return Batch(self._items, self._lines, self._errors, self._texts.__getitem__)


def _earlier(batch: Batch) -> Callable[[int, _Out], None]:
    """A function that hands the errors which stand before an item to a batch in the making."""
    errors = list(batch.errors)[::-1]

    def give(number: int, out: _Out) -> None:
        while errors and errors[-1][0] <= number:
            out.error(errors.pop()[1])

    return give
