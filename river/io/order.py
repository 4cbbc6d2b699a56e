"""Time stamps of an input: they must not go back, or by no more than a stated lateness."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.io.batches import Batch, Item, ItemSource, Origin
from river.io.scalars import RANGES, format_duration, format_time
from river.io.schema import columns
from river.lang.types import I64, TIME, Primitive, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from river.io.errors import RowError


def ordered(source: ItemSource, key: int, lateness: int = 0) -> ItemSource:
    """The items of `source` in weakly ascending order of field `key`, equal ones in order of arrival.

    With lateness 0 an item below an earlier one is a row error (`data-order`). Else items wait until the
    largest key seen is `lateness` above theirs, or the input ends; an item more than `lateness` below the
    largest key is a row error (`data-late`). Units: `lateness` in units of the key.
    """
    ordering = Ordering(source.type, key, lateness, source.origin)
    file = None if source.file is None else evolve(source.file, key=key, lateness=max(lateness, 0))
    found = source.derived(source.type, _ordered(source.batches, ordering), file)
    found.unordered, found.ordering, found.regular = source.batches, ordering, source.regular
    return found


def _ordered(batches: Iterable[Batch], ordering: Ordering) -> Iterator[Batch]:
    for batch in batches:
        yield ordering.push(batch)
    if ordering.lateness:
        yield ordering.release(None)


def stamped(source: ItemSource, type_: Type, stamp: Callable[[Item], int | str]) -> ItemSource:
    """The items of `source`, which are records, with what `stamp` makes of each in front: items of `type_`.

    Where that is a text, it says why there is no stamp: then the item is a row error (`data-stamp`).
    """
    name = columns(type_)[0][0]

    def batches() -> Iterator[Batch]:
        for batch in source.batches:
            out = _Out(batch.origin or source.origin)
            earlier = _earlier(batch)
            for number, item in enumerate(batch.items):
                earlier(number, out)
                found = stamp(item)
                if isinstance(found, str):
                    out.refuse(batch, number, "data-stamp", f"has no time stamp: {found}", name)
                else:
                    out.take((found, *item), batch.lines[number], batch.text(number))
            earlier(len(batch.items), out)
            yield out.batch()

    return source.derived(type_, batches())


class Ordering:
    """The order of one input, batch by batch (see `ordered`).

    `top`: the largest key seen; `given`: the largest given out; `promised`: what others have been told that no item
    will lie below, so that one below it is late (`data-late`), whatever the lateness. `strict`: of a batch in which an item
    is refused nothing behind that is taken.
    """

    def __init__(self, type_: Type, key: int, lateness: int, origin: Origin, *, strict: bool = False) -> None:
        self.key = key
        self.strict = strict
        self.lateness = max(lateness, 0)
        self.top: int | None = None
        self.given: int | None = None
        self.promised: int | None = None
        self._name, field = columns(type_)[key]
        self._least = RANGES[field if isinstance(field, Primitive) and field in RANGES else I64][0]
        calendar = field == TIME
        self._show = format_time if calendar else str
        self._span = format_duration if calendar else str
        self._origin = origin
        self._waiting: list[tuple[Any, int, Item, int, str]] = []
        self._arrived = 0

    @property
    def bound(self) -> int | None:
        """By what has come, no item below it will be given out any more; None: nothing is known."""
        if self.top is None:
            return None
        return max(self.top - self.lateness, self._least if self.given is None else self.given)

    @property
    def passed(self) -> int | None:
        """Items below it are late: such have been given out, or others were promised that there are none."""
        if self.promised is None or self.given is None:
            return self.given if self.promised is None else self.promised
        return max(self.promised, self.given)

    def push(self, batch: Batch) -> Batch:
        """What can be given out now that `batch` has come."""
        if not self.lateness:
            return self._checked(batch)
        out = _Out(batch.origin or self._origin)
        earlier = _earlier(batch)
        for number, item in enumerate(batch.items):
            earlier(number, out)
            now = item[self.key]
            if reason := self._late(now, self.top):
                out.refuse(batch, number, "data-late", reason, self._name, _LATER)
                if self.strict:
                    break
                continue
            self._arrived += 1
            heappush(self._waiting, (now, self._arrived, item, batch.lines[number], batch.text(number)))
            top = now if self.top is None else max(now, self.top)
            self.top = top
            self._release(top - self.lateness, out)
        earlier(len(batch.items), out)
        return out.batch()

    def release(self, bound: int | None) -> Batch:
        """The items that wait, up to `bound`; all of them for None."""
        out = _Out(self._origin)
        self._release(bound, out)
        return out.batch()

    @property
    def waiting(self) -> list[Item]:
        """The items that wait, in the order in which they will be given out."""
        return [item for _, _, item, _, _ in sorted(self._waiting, key=lambda entry: entry[:2])]

    def hold(self, items: Iterable[Item]) -> None:
        """Lets items wait that waited before."""
        for item in items:
            self._arrived += 1
            heappush(self._waiting, (item[self.key], self._arrived, item, 0, ""))

    def sieved(self, batch: Batch) -> Batch:
        """`batch` without the items that are late; whoever asks keeps those that wait, and says how far time has gone."""
        out = _Out(batch.origin or self._origin)
        earlier = _earlier(batch)
        top = self.top
        for number, item in enumerate(batch.items):
            earlier(number, out)
            now = item[self.key]
            if reason := self._late(now, top):
                out.refuse(batch, number, "data-late", reason, self._name, _LATER)
                if self.strict:
                    break
                continue
            top = now if top is None else max(now, top)
            out.take(item, batch.lines[number], batch.text(number))
        earlier(len(batch.items), out)
        return out.batch()

    def _release(self, bound: int | None, out: _Out) -> None:
        waiting = self._waiting
        while waiting and (bound is None or waiting[0][0] <= bound):
            self.given, _, ready, line, text = heappop(waiting)
            out.take(ready, line, text)

    def _late(self, now: int, top: int | None) -> str | None:
        """Why an item with key `now` is late, if it is; `top`: the largest key before it."""
        if top is not None and now < top - self.lateness:
            return (
                f"is late: {self._show(now)} is more than {self._span(self.lateness)} below {self._show(top)}"
            )
        passed = self.passed
        if passed is not None and now < passed:
            return f"is late: {self._show(now)} came after time had gone on to {self._show(passed)}"
        return None

    def _checked(self, batch: Batch) -> Batch:
        """`batch` without the items that go back."""
        keys = [item[self.key] for item in batch.items]
        if not keys:
            return batch
        passed = self.passed
        if keys == sorted(keys) and (passed is None or passed <= keys[0]):
            self.top = self.given = keys[-1]
            return batch
        out = _Out(batch.origin or self._origin)
        earlier = _earlier(batch)
        for number, item in enumerate(batch.items):
            earlier(number, out)
            now = keys[number]
            if self.given is not None and now < self.given:
                reason = f"the time stamp goes back, from {self._show(self.given)} to {self._show(now)}"
                hint = "sort the rows by it, or say by `--lateness` how late they may come"
                out.refuse(batch, number, "data-order", reason, self._name, hint)
            elif reason := self._late(now, self.top):
                out.refuse(batch, number, "data-late", reason, self._name, _LATER)
            else:
                self.top = self.given = now
                out.take(item, batch.lines[number], batch.text(number))
                continue
            if self.strict:
                break
        earlier(len(batch.items), out)
        return out.batch()


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

    def refuse(
        self, batch: Batch, number: int, code: str, reason: str, name: str, help: str | None = None
    ) -> None:
        text = batch.text(number)
        self.error(self._origin.error(batch.lines[number], code, reason, field=name, text=text, help=help))

    def batch(self) -> Batch:
        return Batch(self._items, self._lines, self._errors, self._texts.__getitem__)


_LATER = "rows that are still later are waited for with a longer `--lateness`"


def _earlier(batch: Batch) -> Callable[[int, _Out], None]:
    """A function that hands the errors which stand before an item to a batch in the making."""
    errors = list(batch.errors)[::-1]

    def give(number: int, out: _Out) -> None:
        while errors and errors[-1][0] <= number:
            out.error(errors.pop()[1])

    return give
