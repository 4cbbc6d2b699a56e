"""Instances whose firings are machine code: the rules of `instance`, on columns, without the GIL.

An instance fires on what lies together in memory; what its firings emit leaves as one batch per output.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from backends.firing import instance as plain
from backends.firing.gathers import LEAST, gathered, instants, whole
from backends.native.batch import Batch, concat
from backends.native.contract import SIDE, key_type
from backends.native.explain import explained
from backends.native.layout import starts, widths
from backends.native.operator import UNLIMITED
from river.il.forwards import ListedParts, forwarded
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap
from river.lang.values import INFINITY, Mark, default

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.instance import Setting
    from backends.firing.ports import Port
    from backends.native.operator import NativeOperator, NativeTrap
    from river.il.forwards import Path
    from river.lang.types import Type

    Constant = typed.Literal | typed.MakeList
    Parts = tuple[slice | Constant, ...]

_LEAST = -(1 << 63)


class Machine(plain.Instance):
    """What is common to all kinds of handlers. Handlers are named as in `NativeOperator.fire`.

    `noted`: all items that were fired on, and the marks between them, for whoever wants to fire on them again; None if nobody
    does. Where inputs are merged, the items of each of them.
    """

    native: NativeOperator
    operator: typed.Operator
    fired: int
    skipped: int
    _full: bool

    def prepare(self, native: NativeOperator) -> None:
        """Gives it its code."""
        self.native = native
        self._fired_on: list[Any] = []  # what the columns lie in that were fired on since the last `settle`
        self._pace = self.batch
        self.noted: list[Batch | Mark | tuple[Batch, ...]] | None = None

    def begin(self, firings: int) -> None:
        """Fires no more than so often at first, if it takes windows or items in turns."""
        self._pace = max(1, min(firings, self.batch))

    def stop(self) -> None:
        self.native.stop()

    def rest(self) -> None:
        self.native.rest()

    def settle(self) -> None:
        inputs, self._fired_on = self._fired_on, []
        for i, batch, marks in self.native.take(inputs):
            self.outs[i].add_batch(batch, () if marks is None else marks.values())

    def _send(self, mark: Any, outs: Any) -> None:
        self.settle()
        super()._send(mark, outs)

    @property
    def _fires_on_marks(self) -> bool:
        return self.operator.mark is not None

    def _fire_mark(self, level: Any) -> None:
        type_ = self.native.handler("mark").slots[0]
        if type_ in (t.I64, t.TIME, t.DURATION):
            number = ctypes.c_int64(level)
            self.shoot("mark", (ctypes.addressof(number),), 0, 1, None)
        else:
            key = Batch.of(type_, [level])  # its columns live as long as this name
            self.shoot("mark", key.addresses, 0, 1, None)
        if self.noted is not None:
            self.noted.append(Mark(level))
        self.fired -= 1  # who calls this counts it

    def shoot(
        self,
        name: str,
        addresses: Sequence[int],
        start: int,
        stop: int,
        item: Callable[[int], tuple[Type, Any] | None] | None,
    ) -> int:
        """Fires on rows `start` to `stop` - 1, or fewer if an output fills up; the row where to go on.

        Rows that trap are left out where that is allowed. `item`: what is handled in a row, to be shown. Raises: Trap.
        """
        at = start
        while True:
            fired = self.native.fire(name, addresses, at, stop, self.most)
            self.fired += fired.row - at
            at = fired.row
            if fired.trap is not None:
                trap = told(self.operator, fired.trap)
                trap.item = None if item is None else item(at)
                if item is None or not self.skips(trap):  # only items are left out
                    raise trap
                self.skip(trap)
                at += 1
            elif fired.stopped:
                raise Trap("stopped")
            else:
                self._full |= fired.full
                return at

    def skips(self, trap: Trap) -> bool:
        """Whether the item that trapped is left out."""
        return self._report is not None and plain.own(trap)

    def skip(self, trap: Trap) -> None:
        """Leaves out an item."""
        self.skipped += 1
        if self._report is not None:
            self._report(trap)

    @property
    def most(self) -> int:
        """No firing begins when an output has so many items, or one of its lists so many in all."""
        return min(UNLIMITED, 4 * self.batch)

    def _next(self, port: ColumnPort) -> tuple[Batch, int, int]:
        """The items that come next and lie together, whatever else was fired in this call: to cut them costs more."""
        return port.next(min(port.run, self.batch))

    def fire_items(self, port: Port, fire: Any, count: int) -> int:
        column = cast("ColumnPort", port)
        batch, start, stop = self._next(column)
        self._fired_on.append(batch.kept)
        at = self.shoot(
            fire, batch.addresses, start, stop, lambda row: (column.type, *batch[row : row + 1].values())
        )
        port.pop(at - start)
        if self.noted is not None:
            self.noted.append(batch[start:at])
        return at - start


class MachineItems(Machine, plain.Items):
    """`on q(x)`."""


class Forwards(MachineItems):
    """`on q(x) { emit a x; emit b {k: x.k, n: 1}; ... }`: what goes out has the columns that came in, nothing is copied."""

    def prepare(self, native: NativeOperator) -> None:
        super().prepare(native)
        type_ = self.operator.ports[self.operator.items[0].port].type
        self._sent = [
            (out, tuple(each for part in parts for each in _forwarded(type_, part)))
            for out, parts in forwarded(self.operator) or ()
        ]
        self._constants: dict[int, Batch] = {}

    def fire_items(self, port: Port, fire: Any, count: int) -> int:
        batch, start, stop = self._next(cast("ColumnPort", port))
        rows = batch[start:stop]
        for out, parts in self._sent:
            self.outs[out].add_batch(self._batch(self.operator.outs[out].type, parts, rows))
        port.pop(len(rows))
        self.fired += len(rows)
        return len(rows)

    def _batch(self, type_: Type, parts: Parts, rows: Batch) -> Batch:
        kept: list[Any] = [rows.kept]
        addresses: list[int] = []
        for part in parts:
            if isinstance(part, slice):
                addresses += rows.addresses[part]
            else:
                constant = self._constants.get(id(part))
                if constant is None or len(constant) < len(rows):
                    value = part.value if isinstance(part, typed.Literal) else ()
                    many = Batch.of(part.type, [value]).repeated(1 << len(rows).bit_length())
                    constant = self._constants[id(part)] = many
                kept.append(constant)
                addresses += constant.addresses
        return Batch(type_, len(rows), tuple(addresses), kept, rows.texts)


def _forwarded(type_: Type, part: Path | ListedParts | Constant) -> Iterator[slice | Constant]:
    """Columns of an item, one after the other: as many as make a part."""
    match part:
        case ListedParts(path, parts):
            list_, items = _columns(type_, path), t.parts(_part(type_, path))[0]
            yield slice(list_.start, list_.start + 1)
            for each in parts:
                inner = _columns(items, each)
                yield slice(list_.start + 1 + inner.start, list_.start + 1 + inner.stop)
        case tuple():
            yield _columns(type_, part)
        case _:
            yield part


class Gathers(MachineItems):
    """Rows gathered by instant (see `gathers`)."""

    def prepare(self, native: NativeOperator) -> None:
        super().prepare(native)
        self._gathered = gathered(self.operator)

    def fire_items(self, port: Port, fire: Any, count: int) -> int:
        column, what = cast("ColumnPort", port), self._gathered
        batch, start, stop = column.next(column.run)  # all: it costs the same for however many rows
        rows = batch[start:stop]
        assert what is not None  # noqa: S101 - by `make`
        found = instants(rows, what) if len(rows) > LEAST + 1 else None
        if found is None or found[2] < LEAST + 2:
            return super().fire_items(port, fire, count)
        taus, starts, many = found
        self._fired_on.append(batch.kept)
        self._shoot_rows(column, fire, rows, 0, starts[1])
        self._fire_mark(taus[1])  # so much is over; nobody needs to be told
        inputs, self._fired_on = self._fired_on, []
        for i, sent, _ in self.native.take(inputs):
            self.outs[i].add_batch(sent)
        self.outs[0].add_batch(whole(self.operator.outs[0].type, rows, what, found))
        self._fired_on.append(batch.kept)
        self._shoot_rows(column, fire, rows, starts[many - 1], len(rows))
        self.fired += starts[many - 1] - starts[1]
        port.pop(len(rows))
        return len(rows)

    def _shoot_rows(self, port: ColumnPort, fire: Any, rows: Batch, start: int, stop: int) -> None:
        at = start
        while at < stop:
            at = self.shoot(
                fire, rows.addresses, at, stop, lambda row: (port.type, *rows[row : row + 1].values())
            )


def _columns(type_: Type, path: Path) -> slice:
    """The columns of a part of an item."""
    start = 0
    for index in path:
        start += starts(type_)[index][0]
        type_ = t.part(type_, index)
    return slice(start, start + widths(type_)[0])


def _part(type_: Type, path: Path) -> Type:
    """The type of a part of an item."""
    for index in path:
        type_ = t.parts(type_)[index]
    return type_


class MachineRated(Machine, plain.Rated):
    """`on q[peek p, pop o](w)`."""

    def _windows(self, handler: typed.RatedHandler, fire: Any, count: int) -> int:
        if not self.sent:
            self.native.expect(count, self.most)
        addresses, kept, count = self.lying(handler, count)
        self._fired_on += [batch.kept for batch in kept]
        if self.sent:
            done = 1
            self._part(fire, addresses, kept[0], slice(self.sent, None))
            self.sent = 0
        else:
            done = self.shoot(fire, addresses, 0, count, None)
        self.popped(handler, done)
        return done

    def lying(self, handler: typed.RatedHandler, count: int) -> tuple[list[int], list[Batch], int]:
        """Where the next windows lie, at most `count` of each input: addresses, batches, and of how many firings they are."""
        addresses: list[int] = []
        kept: list[Batch] = []
        for rate in handler.rates:
            batch, start, count = cast("ColumnPort", self.ports[rate.port]).windows(
                rate.peek, rate.pop, count
            )
            addresses += batch[start:].addresses
            kept.append(batch)
        return addresses, kept, count

    def popped(self, handler: typed.RatedHandler, count: int) -> None:
        """Lets the items go that so many firings take."""
        for rate in handler.rates:
            self.ports[rate.port].pop(count * rate.pop)

    def _begun(self, handler: typed.RatedHandler, fire: Any, most: int) -> None:
        window = self.begun(handler)
        self._part(fire, window.addresses, window, slice(self.sent, most))
        self.sent = most

    def begun(self, handler: typed.RatedHandler) -> Batch:
        """The window that is not complete yet, with zeros in place of what is to come."""
        (rate,) = handler.rates
        port = cast("ColumnPort", self.ports[rate.port])
        batch, start, _ = port.windows(port.run, 0, 1)
        rows = batch[start : start + port.run]
        return concat([rows, Batch.of(port.type, [default(port.type)] * (rate.peek - len(rows)))])

    def _part(self, fire: Any, addresses: Sequence[int], window: Batch, part: slice) -> None:
        """Fires once, and sends a part of what that sends."""
        self.settle()
        self.shoot(fire, addresses, 0, 1, None)
        for i, batch, _ in self.native.take([window.kept]):
            self.outs[i].add_batch(batch[part])


class MachinePhases(Machine, plain.Phases):
    """`phase n on q(x)`, in a cycle."""

    def _next(self, port: ColumnPort) -> tuple[Batch, int, int]:
        return port.next(min(port.run, self._left))  # not beyond the phase

    def _cycles(self, limit: int) -> int:
        guarded, self._guarded = self._guarded, False  # machine code knows which firing trapped
        try:
            return super()._cycles(limit)
        finally:
            self._guarded = guarded

    def _whole(self, cycles: int) -> int:
        rows: dict[Port, tuple[Batch, int]] = {}
        for i in self.native.cycle_ports:
            port = cast("ColumnPort", self.ports[i])
            batch, start, cycles = port.windows(self._needs[port], self._needs[port], cycles)
            rows[port] = batch, start
        self._fired_on += [batch.kept for batch, _ in rows.values()]
        addresses = [at for batch, start in rows.values() for at in batch[start:].addresses]
        fired = self.native.fire("cycle", addresses, 0, cycles, self.most)
        self.fired += fired.row
        if fired.trap is not None:
            trap = told(self.operator, fired.trap)
            trap.item = self._item(fired.row, rows)
            raise trap
        if fired.stopped:
            raise Trap("stopped")
        self._full |= fired.full
        for port, need in self._needs.items():
            port.pop(fired.row // self._length * need)
        return fired.row

    def _item(self, firing: int, rows: Mapping[Port, tuple[Batch, int]]) -> tuple[Type, Any]:
        """The item, with its type, that a firing of whole cycles is about."""
        cycle, rest = divmod(firing, self._length)
        places = {port: start + cycle * self._needs[port] for port, (_, start) in rows.items()}
        steps = iter(self._cycle)
        count, port, _ = next(steps)
        while rest >= count:
            rest -= count
            places[port] += count
            count, port, _ = next(steps)
        place = places[port] + rest
        return self._type(port), rows[port][0][place : place + 1].values()[0]


class MachineMerge(Machine, plain.Merge):
    """`on merge(a(x), b(y))`."""

    def _keys(self, limit: int) -> int:
        addresses: list[int] = []
        words: list[int] = []
        given: list[tuple[Batch, int]] = []
        least = 0 if key_type(self.operator) == t.U64 else _LEAST
        for side in self._sides:
            port = cast("ColumnPort", side)
            if port.run:
                batch, start, stop = port.next(port.run)
                last = stop - start == port.count
                floor = least
            else:
                batch, start, stop, last = nothing(port.type), 0, 0, True
                floor = least if port.progress == -INFINITY else port.progress
            self._fired_on.append(batch.kept)
            addresses += batch.addresses
            words += [start, stop, floor, int(port.ended and last)]
            given.append((batch, start))
        state = (ctypes.c_int64 * len(words))(*words)
        fired = self.native.fire("merge", [*addresses, ctypes.addressof(state)], 0, limit, self.most)
        self.fired += fired.row
        if fired.trap is not None:
            raise told(self.operator, fired.trap)
        if fired.stopped:
            raise Trap("stopped")
        self._full |= fired.full
        for i, (port, (_, start)) in enumerate(zip(self._sides, given, strict=True)):
            port.pop(state[SIDE * i] - start)
        if self.noted is not None and fired.row:
            self.noted.append(tuple(batch[start : state[SIDE * i]] for i, (batch, start) in enumerate(given)))
        return fired.row


@cache
def nothing(type_: Type) -> Batch:
    """No rows: made once, because making columns of values takes as long as firing on hundreds of rows."""
    return Batch.of(type_, [])


def make(setting: Setting, native: NativeOperator) -> Machine:
    """The instance for a compiled operator."""
    op = native.operator
    if op.rated is not None:
        handlers = [(h, n) for h, n in ((op.first, "first"), (op.rated, "rated")) if h is not None]
        made: Machine = MachineRated(setting, handlers)
    elif op.phases:
        made = MachinePhases(setting, [f"phase.{i}" for i in range(len(op.phases))])
    elif op.merge is not None:
        made = MachineMerge(setting, "merge")
    else:
        gathers = not native.debug and gathered(op) is not None
        kind = Forwards if forwarded(op) is not None else Gathers if gathers else MachineItems
        made = kind(setting, [f"item.{each.port}" for each in op.items])
    made.prepare(native)
    return made


def told(operator: typed.Operator, found: NativeTrap) -> Trap:
    """The trap that machine code tells of."""
    trap = explained(operator, found)
    trap.placed(operator)
    return trap
