"""An operator without state on several workers at once, its results in order.

A worker that runs the task takes what is to be fired next, with a serial number, and lets go of the task before it fires:
another worker may take what follows. Results go through a reorder buffer. Where firings are so cheap that
handing them out costs more than it gains, the worker keeps the task.

Paper: Ordered multicore (seed 001) Fig. 4; Auto-parallelizing §5 (round robin with merging by serial number).
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from backends.firing.machine import MachineRated, told
from backends.multicore.ordering.reorder import FailedResult, Wait
from backends.multicore.ordering.worklist import Worklist
from backends.multicore.scheduling.task import Divided, Outcome
from backends.multicore.tasks import Operate
from river.classes import define, evolve, field, frozen
from river.lang.evaluate import Trap
from river.lang.values import END, Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.machine import Machine
    from backends.multicore.experiments import Choices
    from backends.multicore.regions import Region
    from backends.multicore.scheduling.task import Control
    from backends.multicore.variables import Variables
    from backends.native.batch import Batch
    from backends.native.operator import NativeOperator

WORTH: Final = 150e-6
"""Seconds that the firings on one batch must take for others to be let in: several times what handing out costs."""

FIRST: Final = 8
"""Items that are fired on, behind the very first one, to see whether that is worth handing out; then eight times as many, if it
is not."""

LOOK: Final = 8
"""Short steps of which one is timed: to ask for the time of a thread takes microseconds."""

SLICE: Final = 4e-3
"""Seconds of work that are handed out at once, about: little enough that all workers end together, and results come soon."""

SURELY: Final = 1 << 20
"""Steps of firings (`most_steps`) that take about as long."""

FEW: Final = 8
"""Which part of what is handed out at once goes with what follows: windows over the end of a batch lie by themselves."""

AHEAD: Final = 4
"""Batches for each worker that may be taken before the first of them is done."""


@frozen
class Firings:
    """Firings to be done: of which handler, on which rows of which columns; `kept` is what these lie in, of windows batches.

    `part`: which of the items that they send are sent on, if not all. `native`: which clone does them, once that is said.
    `then`: those behind them, of the same handler, that are done in the same go.
    """

    handler: str
    addresses: Sequence[int]
    start: int
    stop: int
    kept: Any
    part: slice | None = None
    native: NativeOperator | None = None
    then: tuple[Firings, ...] = ()


@define
class Emitted:
    """What firings made: batches by output with their marks, how many there were, and the traps of rows left out.

    `behind`: how many there were of each operator that is divided together with the first.
    """

    batches: list[tuple[int, Batch, Sequence[tuple[int, Any]]]] = field(
        factory=list[tuple[int, "Batch", "Sequence[tuple[int, Any]]"]]
    )
    fired: int = 0
    skipped: list[Trap] = field(factory=list[Trap])
    mark: Mark | None = None
    behind: Sequence[int] = ()


class Parallel(Operate, Divided):
    """The task of such an instance.

    `clones`: of its operator, of which so many `more` are made when they are wanted, one for each worker that may be at it.
    `part`: how many items are handed out at once, at most; a worker that keeps the task takes batches as any other operator
    does.
    """

    def __init__(
        self,
        index: int,
        instance: Machine,
        name: str,
        variables: Variables,
        clones: Sequence[NativeOperator],
        choices: Choices,
        part: int,
        more: int = 0,
    ) -> None:
        super().__init__(index, instance, name, variables)
        self._part = part = min(part, instance.batch)
        self._whole = instance.batch
        pushes = [out.push or 1 for out in instance.operator.outs]
        self._outgo = max(pushes, default=1)  # by a firing: an instance paces itself by what it sends
        self._most = instance.most  # items sent at once, where what is handed out counts firings
        self._tried = max(1, part // 8)
        # The first item takes what no other will: memory that nobody has touched, code that has not run. Where it is known
        # without having run that many are soon over, they are the first: each of a thousand operators fires a few times less.
        steps = clones[0].steps
        instance.batch = 1 if not steps else max(1, min(self._tried, SURELY // steps))
        self.machine = instance
        self._clones = deque(clones)
        self._natives = tuple(clones)
        self._more = more
        self._stopping = False
        self._choices = choices
        self._open = choices.gate == "open"
        self._steps = 0
        self._spent = 0.0  # seconds of this thread that firings took which were made at once
        self._slice = SLICE
        self._fired = 0.0  # how many these were; both are smoothed, and alike
        self._begun = False  # whether a firing has been timed; what the first one took counts for nothing
        self._starved = False  # whether there was no item when something was to be taken last
        self._order = choices.order(AHEAD * (len(clones) + more), self._send, instance.drain)
        self._worklist: Worklist[Firings | Emitted | FailedResult, Emitted] = Worklist(
            self._order, self._next
        )

    def adapt(self, region: Region) -> None:
        """As many workers as are worth it may be at it from now on."""
        if self._choices.width == "changing" or (self._choices.width == "measured" and not self._open):
            self.width = self.widest = region.degree

    def follow(self) -> None:
        """Another task runs it in its own steps from now on, on as much at once as that one sends."""
        self.led = True
        self.machine.batch = self._whole

    @property
    def given(self) -> int:
        return self._worklist.given

    @property
    def sent(self) -> int:
        return self._order.next

    def stop(self) -> None:
        """Ends firings that are under way."""
        self._stopping = True
        for native in self._natives:
            native.stop()

    def rest(self) -> None:
        for native in self._natives:
            native.rest()

    @property
    def _worth(self) -> bool:
        """Whether firings are handed out: those on a batch take long enough."""
        return self._open or self._spent * min(1.0, self._part / max(self._fired, 1.0)) > WORTH

    def step(self, control: Control) -> Outcome:
        if not (self._worth and self.width > 1) and not self.dead and self._worklist.alone():
            return self._together(control)
        self._starved = False
        taken = self._worklist.take()
        if taken is Wait.ROOM:
            return Outcome.FULL
        if isinstance(taken, Wait):  # who hands in next wakes the task
            if not self._failed(control) and self._starved:
                self.wanting = self.machine.wants()
            return Outcome.IDLE
        serial, found = taken
        if isinstance(found, Firings):  # by the clone used last: its outputs are still in the cache
            native = self._clones.pop() if self._clones else self._another()
            self.detached, self.ticket = evolve(found, native=native), serial
            self.wanting = self.machine.wants()
            return Outcome.SPLIT
        room = self._worklist.hand_in(serial, found)
        if self._failed(control):
            return Outcome.IDLE
        return Outcome.MORE if room else Outcome.FULL

    def _another(self) -> NativeOperator:
        """One more of the operator, which reads the same variables."""
        first = self._natives[0]
        found = first.again()
        for i, variable in enumerate(first.variables):
            found.share(i, variable)
        self._more -= 1
        self._natives = (*self._natives, found)
        if self._stopping:  # which may have been said before it was among them
            found.stop()
        return found

    def _together(self, control: Control) -> Outcome:
        """A step as any other operator's: nothing is out of this worker's hands."""
        self._steps += 1
        if self._steps % LOOK and self._fired and self.cost < WORTH:
            return Operate.step(self, control)
        began, fired = time.thread_time(), self.machine.fired
        outcome = Operate.step(self, control)
        if (count := self.machine.fired - fired) > 0:
            self._took(began, count)
        return outcome

    def work(self, detached: Firings, ticket: int, control: Control) -> None:
        self._worklist.hand_in(ticket, self._made(detached))
        self._failed(control)

    def _failed(self, control: Control) -> bool:
        """Whether an item trapped; says so once."""
        failure = self._order.failure
        if failure is not None and not self.dead:
            self.dead = True
            control.trapped(self, cast("Trap", failure))
            self.close()
        return self.dead

    # -- what is next

    def _next(self) -> Firings | Emitted | FailedResult | None:
        """What is to be given a serial number, None if there is nothing now."""
        if self.dead or not (self._clones or self._more):
            return None
        try:
            return self._take()
        except Trap as trap:  # keys that fall: what came before is delivered first
            return FailedResult(trap)

    def _take(self) -> Firings | Emitted | None:
        """What comes next in the input: firings, a mark that is passed on, or the end."""
        machine = self.machine
        if machine.over or not machine.awake():
            return None
        while True:
            if isinstance(machine, MachineRated):
                found, starved = self._windows(machine), machine.starved()
            else:
                found, starved = self._items(cast("ColumnPort", machine.ports[0])), machine.ports
            if found is not None:
                return found
            taken = machine.passes(starved)
            level = machine.risen() if taken else None
            if level is not None and any(out.keyed for out in machine.outs):
                return Emitted(mark=Mark(level))
            if any(port.ended for port in starved):
                machine.over = True
                if not any(port.back for port in machine.ports):
                    self.close()
                return Emitted(mark=END)
            if not taken:
                for port in starved:
                    machine.check(port)
                self._starved = True
                return None

    def _items(self, port: ColumnPort) -> Firings | None:
        port.fill(1)
        if not port.run:
            return None
        # All parts of what waits are of one size, rather than as large as one may be, and a rest.
        parts = -(-port.run // portion(self._part, self._fired, self._spent, self._slice))
        batch, start, stop = port.next(-(-port.run // parts))
        port.pop(stop - start)
        (handler,) = self.machine.operator.items
        return Firings(f"item.{handler.port}", batch.addresses, start, stop, batch)

    def _windows(self, machine: MachineRated) -> Firings | None:
        rated, part = machine.operator.rated, None
        assert rated is not None  # noqa: S101 - by the kind of machine
        left = limit = portion(self._part, self._fired, self._spent, self._slice)
        count = machine.possible(rated, limit)
        if not count:
            if (most := machine.early(rated)) <= machine.sent:
                return None
            begun, part, machine.sent = machine.begun(rated), slice(machine.sent, most), most
            return Firings("rated", begun.addresses, 0, 1, (begun,), part)
        if machine.sent:
            left, count, part, machine.sent = 0, 1, slice(machine.sent, None), 0
        found: list[Firings] = []
        while count:
            addresses, kept, count = machine.lying(rated, count)
            machine.popped(rated, count)
            found.append(Firings("rated", addresses, 0, count, kept, part))
            left -= count
            few = part is None and left > limit - limit // FEW
            count = machine.possible(rated, left) if few else 0
        return found[0] if len(found) == 1 else evolve(found[0], then=tuple(found[1:]))

    # -- firing

    def _made(self, firings: Firings) -> Emitted | FailedResult:
        """What the firings make."""
        native = firings.native
        assert native is not None  # noqa: S101 - it was chosen when the firings were taken
        made, began, all_ = Emitted(), time.thread_time(), (firings, *firings.then)
        windows = firings.handler == "rated"
        if windows:
            native.expect(sum(each.stop - each.start for each in all_), self._most)
        kept = [batch.kept for each in all_ for batch in (each.kept if windows else (each.kept,))]
        try:
            for each in all_:
                if (failed := self._stretch(native, each, kept, made, last=each is all_[-1])) is not None:
                    return failed
            return made
        finally:
            self._clones.append(native)
            self._took(began, made.fired)

    def _stretch(
        self, native: NativeOperator, firings: Firings, kept: Sequence[Any], made: Emitted, *, last: bool
    ) -> FailedResult | None:
        """Fires, and adds to what was made; what failed. What `last` firings send is taken with that of those before."""
        at = firings.start
        while True:
            fired = native.fire(firings.handler, firings.addresses, at, firings.stop, self._most)
            made.fired += fired.row - at
            at = fired.row
            over = at >= firings.stop and fired.trap is None and not fired.stopped
            if over and not last:
                return None
            for out, batch, marks in native.take(kept):
                sent = batch if firings.part is None else batch[firings.part]
                made.batches.append((out, sent, () if marks is None else marks.values()))
            if over:
                return None
            if fired.trap is not None:
                trap = told(self.machine.operator, fired.trap)
                trap.item = self._item(firings, at)
                if not self.machine.skips(trap):
                    return FailedResult(trap, made)
                made.skipped.append(trap)
                at += 1
            elif fired.stopped:
                return FailedResult(Trap("stopped"), made)

    def _took(self, began: float, firings: int) -> None:
        """So many firings have taken since `began`: not by the clock, which others may have had a part of."""
        took, machine = time.thread_time() - began, self.machine
        if self._fired:
            self._spent += (took - self._spent) / 8
            self._fired += (firings - self._fired) / 8
        elif not self._begun:
            # The first firing finds neither its code nor its memory in any cache: it says nothing.
            self._begun, machine.batch = True, min(max(FIRST, machine.batch), self._part)
            return
        else:
            self._spent, self._fired = took, firings
        # One worker may do alone what is worth it, where it has time: then as much as a batch, if that is soon done.
        if self._worth:
            alone = portion(self._whole, self._fired, self._spent, self._slice)
            machine.batch = min(self._whole, self._outgo * max(self._part, alone))
        elif machine.batch < self._tried:
            # Of so few items nothing is known but that they do not take very long.
            machine.batch = min(8 * machine.batch, self._tried)
            self._spent = self._fired = 0.0
        else:
            machine.batch = self._whole

    def _item(self, firings: Firings, row: int) -> Any:
        """What was handled in a row that trapped; a window is not shown."""
        if firings.handler == "rated":
            return None
        return self.machine.operator.ports[0].type, *firings.kept[row : row + 1].values()

    def _send(self, made: Emitted) -> None:
        """Passes on what firings made, in order."""
        machine = self.machine
        machine.fired += made.fired
        for trap in made.skipped:
            machine.skip(trap)
        for out, batch, marks in made.batches:
            machine.outs[out].add_batch(batch, marks)
        if made.mark is not None:
            for out in machine.outs:
                if out.keyed or (made.mark == END and not out.back):
                    out.add_mark(made.mark)


def portion(most: int, firings: float, seconds: float, aim: float) -> int:
    """How many firings, one at least and `most` at most, take about `aim` seconds, where `firings` took so many seconds."""
    return most if seconds * most <= aim * firings else max(1, int(aim * firings / seconds))
