"""Instances of an ordered stage that fire machine code: on all that has arrived, as soon as it may be fired on.

The rules are those of erasure (`river.il.erase`). Nothing is bounded here: a turn of the inputs is what there is at once.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, cast

from attrs import frozen

from backends.native.batch import Batch, concat
from backends.native.contract import SIDE
from backends.native.operator import UNLIMITED
from backends.spark.columns import NOT_OWN, told
from backends.spark.rowwise import may_skip
from river.lang.evaluate import Trap
from river.lang.values import END, INFINITY, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from backends.native.operator import NativeOperator, NativeTrap
    from river.backend import Rows
    from river.lang import typed
    from river.lang.types import Type

_LEAST = -(1 << 63)


class Source(Protocol):
    """The queue that an inlet is fed from. `used`: whether anything ever came."""

    @property
    def used(self) -> bool: ...

    def take(self) -> list[Any] | Rows | Mark | None: ...


class Outlet(Protocol):
    """Where what is emitted goes.

    `keyed`: its marks are of use; `back`: it closes a loop, which never ends; `sent`: whether a drain put something.
    """

    keyed: bool
    back: bool
    sent: bool

    def add_batch(self, batch: Rows, marks: Iterable[tuple[int, Any]] = ()) -> None: ...

    def add_mark(self, mark: Mark) -> None: ...

    def drain(self) -> bool: ...


class Inlet:
    """What an instance has of one input: batches, and marks between their rows.

    `key`: the position of the key in an item; `progress`: the highest mark taken; `checked`: whether the order of keys
    must be seen to; `violation`: the item or mark whose key falls, after which nothing is taken.
    """

    def __init__(
        self, source: Source, port: typed.Port, key: int | None, *, back: bool, checked: bool
    ) -> None:
        self.source = source
        self.type: Type = port.type
        self.key = key
        self.back = back
        self.checked = checked and key is not None
        self.count = 0
        self.marks: deque[tuple[int, Mark]] = deque()  # each with the items received before it
        self.progress: Any = -INFINITY
        self.last: Any = -INFINITY  # the key of the last item received
        self.promised: Any = -INFINITY  # the last mark received
        self.ended = False
        self.violation: Any = None
        self._batches: deque[Batch] = deque()
        self._seen = 0
        if port.initial:
            self._append(Batch.of(port.type, port.initial))

    @property
    def run(self) -> int:
        """The items that wait before the next mark."""
        return self.marks[0][0] - self._seen + self.count if self.marks else self.count

    def fill(self) -> None:
        """Takes all that has come."""
        while self.violation is None and (found := self.source.take()) is not None:
            if isinstance(found, Mark):
                self._mark(found)
            else:
                batch = Batch.of(self.type, found) if isinstance(found, list) else cast("Batch", found)
                self._append(self._ascending(batch) if self.checked else batch)

    def _append(self, batch: Batch) -> None:
        if len(batch):
            self._batches.append(batch)
            self.count += len(batch)
            self._seen += len(batch)

    def _mark(self, mark: Mark) -> None:
        if self.key is None and mark.key != INFINITY:
            return  # nobody asks for order here
        if mark.key < self.promised:
            self.violation = mark
            return
        self.marks.append((self._seen, mark))
        if mark.key != INFINITY:
            self.promised = mark.key

    def _ascending(self, batch: Batch) -> Batch:
        """The part of a batch whose keys ascend; the first item after it is the violation."""
        assert self.key is not None  # noqa: S101 - only ordered inputs are checked
        least = max(self.last, self.promised)
        stop = batch.fall(self.key, None if least == -INFINITY else least)
        if stop is not None:
            (self.violation,) = batch[stop : stop + 1].values()
            batch = batch[:stop]
        if len(batch):
            self.last = batch.numbers(self.key)[len(batch) - 1]
        return batch

    def next(self, count: int) -> Batch:
        """The next `count` items, which wait; they stay until `pop`."""
        if not self._batches:
            return Batch.of(self.type, [])
        if len(self._batches[0]) < count:
            parts, size = list[Batch](), 0
            while size < count:
                parts.append(self._batches.popleft())
                size += len(parts[-1])
            self._batches.appendleft(concat(parts))
        return self._batches[0][:count]

    def pop(self, count: int) -> None:
        """Lets the next `count` items go."""
        self.count -= count
        while count:
            first = self._batches.popleft()
            if count < len(first):
                self._batches.appendleft(first[count:])
                return
            count -= len(first)

    def mark(self) -> bool:
        """Takes the next mark, whatever items still wait before it; whether there was one."""
        if not self.marks:
            return False
        _, mark = self.marks.popleft()
        if mark == END:
            self.ended = True
        elif mark.key > self.progress:
            self.progress = mark.key
        return True


@frozen
class Setting:
    """What a machine is put into. `report` takes the traps of items that may be left out; None: every trap ends the run."""

    native: NativeOperator
    inlets: Sequence[Inlet]
    outs: Sequence[Outlet]
    report: Callable[[Trap], None] | None


class Machine:
    """What is common to all kinds of handlers. `fired`, `skipped`: counts for people. `variables`: it keeps its own."""

    def __init__(self, setting: Setting) -> None:
        self.native = setting.native
        self.operator = setting.native.operator
        self.inlets = setting.inlets
        self.outs = setting.outs
        self.variables: list[Any] = []
        self.fired = 0
        self.skipped = 0
        self.over = False
        self._woken = False
        self._level: Any = -INFINITY
        self._keyed = [inlet for inlet in self.inlets if inlet.key is not None]
        skips = bool(self.operator.items) and may_skip(self.operator)
        self._report = setting.report if skips else None

    # -- what the network calls

    def fire(self) -> bool:
        """Fires on what is there; never is more there then. Raises: Trap, after which nothing may be fired."""
        self._woken = self._woken or any(inlet.source.used for inlet in self.inlets)
        if not self._woken:  # in the calculus a firing needs an arrival, whatever initial tails there are
            return False
        for inlet in self.inlets:
            inlet.fill()
        try:
            self.work()
        finally:
            self._settle()
        return False

    def drain(self) -> None:
        """Sends what was emitted."""
        for out in self.outs:
            out.drain()

    # -- for the kinds

    def work(self) -> None:
        """Fires while anything can."""
        raise NotImplementedError

    def shoot(self, name: str, addresses: Sequence[int], stop: int, rows: Batch | None = None) -> int:
        """Fires a handler for rows 0 to `stop` - 1, the items in `rows`, if they are that; how often. Raises: Trap."""
        at, done = 0, 0
        while True:
            fired = self.native.fire(name, addresses, at, stop)
            done += fired.row - at
            self.fired += fired.row - at
            at = fired.row
            if fired.trap is None:
                return done
            self._trapped(fired.trap, None if rows is None else rows[at : at + 1])
            at += 1

    def _trapped(self, found: NativeTrap, row: Batch | None) -> None:
        """Leaves out an item. Raises: Trap where it may not be."""
        trap = told(self.operator, found)
        if row is not None:
            trap.item = row.type, row.values()[0]
        if self._report is None or row is None or trap.code in NOT_OWN:
            raise trap
        self.skipped += 1
        self._report(trap)

    def _settle(self) -> None:
        """Moves what was emitted to the outlets."""
        for i, batch, marks in self.native.take():
            self.outs[i].add_batch(batch, marks.values() if len(marks) else ())

    # -- order, marks and the end

    def check(self, inlet: Inlet) -> None:
        """Raises: Trap("order-violation") if what comes next has a key below what came before."""
        late = inlet.violation
        if late is not None and inlet.key is not None:
            declared = self.operator.ports[self.inlets.index(inlet)]
            key = late.key if isinstance(late, Mark) else late[inlet.key]
            bound = inlet.promised if isinstance(late, Mark) else max(inlet.last, inlet.promised)
            place = f"input `{declared.name}` of `{self.operator.name}`"
            text = f"`{declared.by}` falls from {bound} to {key} in {place}"
            raise Trap("order-violation", (late,), self.operator.name, None, self.operator.span, text)

    def marked(self) -> None:
        """Tells what the marks taken so far promise for all ordered inputs together."""
        going = [inlet.progress for inlet in self._keyed if not inlet.ended]
        level = min(going) if going else max((each.progress for each in self._keyed), default=-INFINITY)
        if level <= self._level:
            return
        self._level = level
        if self.operator.mark is None:
            self._send(Mark(level), [out for out in self.outs if out.keyed])
            return
        key = Batch.of(self.native.handler("mark").slots[0], [level])
        self.shoot("mark", key.addresses, 1)

    def finish(self) -> None:
        """Sends the end, once."""
        if not self.over:
            self.over = True
            self._send(END, [out for out in self.outs if not out.back])

    def _send(self, mark: Mark, outs: Iterable[Outlet]) -> None:
        self._settle()
        for out in outs:
            out.add_mark(mark)

    @property
    def ended(self) -> bool:
        """Whether all inputs but those that close loops have ended, their items fired."""
        counted = [inlet for inlet in self.inlets if not inlet.back]
        return bool(counted) and all(inlet.ended and not inlet.run for inlet in counted)


class Items(Machine):
    """`on q(x)`: a firing for each item of each input."""

    def work(self) -> None:
        while any(self._inlet(f"item.{i}", inlet) for i, inlet in enumerate(self.inlets)):
            pass
        if self.ended:
            self.finish()

    def _inlet(self, name: str, inlet: Inlet) -> bool:
        """Fires what waits before the next mark, or takes the mark; whether there was anything."""
        if inlet.run:
            batch = inlet.next(inlet.run)
            self.shoot(name, batch.addresses, len(batch), batch)
            inlet.pop(len(batch))
            return True
        if inlet.mark():
            self.marked()
            return True
        self.check(inlet)
        return False


class Rated(Machine):
    """`on q[peek p, pop o](w)`, after one `first on ...` if there is one."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        op = self.operator
        self._due = [(h, name) for h, name in ((op.first, "first"), (op.rated, "rated")) if h is not None]

    def work(self) -> None:
        while True:
            handler, name = self._due[0]
            count = self._possible(handler)
            if count:
                needs = [(self.inlets[r.port], r.peek + (count - 1) * r.pop, r.pop) for r in handler.rates]
                batches = [inlet.next(need) for inlet, need, _ in needs]
                self.shoot(name, [at for batch in batches for at in batch.addresses], count)
                for inlet, _, pop in needs:
                    inlet.pop(count * pop)
                if handler.first:
                    del self._due[0]
            elif not self._take_mark(handler):
                break

    def _possible(self, handler: typed.RatedHandler) -> int:
        """How many firings there are windows for, before the next mark."""
        counts = [1] if handler.first else list[int]()
        for rate in handler.rates:
            spare = self.inlets[rate.port].run - rate.peek
            if spare < 0:
                return 0
            if rate.pop:
                counts.append(spare // rate.pop + 1)
        return min(counts, default=1)

    def _take_mark(self, handler: typed.RatedHandler) -> bool:
        """With no firing possible before it, takes a mark; says so where nothing will fire again."""
        starved = [inlet for r in handler.rates if (inlet := self.inlets[r.port]).run < r.peek]
        taken = any(each.mark() for each in self.inlets if each in starved or not each.run)
        if taken:
            self.marked()
        if any(inlet.ended for inlet in starved):
            self.finish()
        for inlet in starved if not taken else ():
            self.check(inlet)
        return taken


class Phases(Machine):
    """`phase n on q(x)`, in a cycle."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        phases = [(i, phase) for i, phase in enumerate(self.operator.phases) if phase.count]
        self._cycle = [(phase.count, self.inlets[phase.port], f"phase.{i}") for i, phase in phases]
        self._needs = [
            (inlet, sum(n for n, other, _ in self._cycle if other is inlet))
            for inlet in (self.inlets[i] for i in self.native.cycle_ports)
        ]
        self._place = 0
        self._left = self._cycle[0][0] if self._cycle else 0

    def work(self) -> None:
        while self._cycle and (self._whole() or self._one()):
            pass

    def _whole(self) -> bool:
        """Fires as many whole cycles as there are items for; whether there were any."""
        if self._place or self._left != self._cycle[0][0]:
            return False
        cycles = min(inlet.run // need for inlet, need in self._needs)
        if cycles:
            batches = [inlet.next(cycles * need) for inlet, need in self._needs]
            fired = self.native.fire("cycle", [at for batch in batches for at in batch.addresses], 0, cycles)
            self.fired += fired.row
            if fired.trap is not None:
                self._trapped(fired.trap, self._item(fired.row))
            for inlet, need in self._needs:
                inlet.pop(cycles * need)
        return cycles > 0

    def _item(self, firing: int) -> Batch:
        """The item that a firing of whole cycles is about."""
        cycle, rest = divmod(firing, sum(need for _, need in self._needs))
        rows = {inlet: cycle * need for inlet, need in self._needs}
        steps = iter(self._cycle)
        count, inlet, _ = next(steps)
        while rest >= count:
            rest -= count
            rows[inlet] += count
            count, inlet, _ = next(steps)
        row = rows[inlet] + rest
        return inlet.next(row + 1)[row : row + 1]

    def _one(self) -> bool:
        """Fires in the phase at hand, or takes a mark that comes first; whether there was anything."""
        _, inlet, name = self._cycle[self._place]
        count = min(self._left, inlet.run)
        if count:
            batch = inlet.next(count)
            self.shoot(name, batch.addresses, count, batch)
            inlet.pop(count)
            self._left -= count
            if not self._left:
                self._place = (self._place + 1) % len(self._cycle)
                self._left = self._cycle[self._place][0]
            return True
        taken = any(each.mark() for each in self.inlets if each is inlet or not each.run)
        if taken:
            self.marked()
        if inlet.ended and not inlet.run:
            self.finish()
        if not taken:
            self.check(inlet)
        return taken


class Merge(Machine):
    """`on merge(a(x), b(y))`: fires for the smallest key that no input can undercut any more."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        assert self.operator.merge is not None  # noqa: S101 - by the kind
        self._sides = [self.inlets[port] for port in self.operator.merge.ports]
        # Nobody hears of its marks: they may be taken at once, for what they say of items to come.
        self._deaf = self.operator.mark is None and not any(out.keyed for out in self.outs)

    def work(self) -> None:
        going = True
        while going:
            going = False
            for inlet in self._sides:
                while (self._deaf or not inlet.run) and inlet.mark():
                    going = True
                    if not self._deaf:
                        self.marked()
            going |= self._keys()
        for inlet in self._sides:
            if not inlet.run:
                self.check(inlet)
        if self.ended:
            self.finish()

    def _keys(self) -> bool:
        """Fires for the keys that the items before the next marks allow; whether there were any."""
        addresses: list[int] = []
        words: list[int] = []
        for inlet in self._sides:
            batch = inlet.next(inlet.run)
            floor = _LEAST if inlet.run or inlet.progress == -INFINITY else inlet.progress
            addresses += batch.addresses
            words += [0, len(batch), floor, int(inlet.ended and len(batch) == inlet.count)]
        state = (ctypes.c_int64 * len(words))(*words)
        fired = self.native.fire("merge", [*addresses, ctypes.addressof(state)], 0, UNLIMITED)
        self.fired += fired.row
        if fired.trap is not None:
            self._trapped(fired.trap, None)
        for i, inlet in enumerate(self._sides):
            inlet.pop(state[SIDE * i])
        return fired.row > 0


def make(setting: Setting) -> Machine:
    """The machine for a compiled operator."""
    op = setting.native.operator
    if op.rated is not None:
        return Rated(setting)
    if op.phases:
        return Phases(setting)
    if op.merge is not None:
        return Merge(setting)
    return Items(setting)
