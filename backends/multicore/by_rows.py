"""Operators on deltas that keep apart rows with different keys, on several workers, their rows in order.

They begin as any others, though in a region of several the first runs those behind it. What it was fired on is kept for a
moment; if that is what the run waits for, and there are processors left for what dealing rows costs more, shards begin with
empty variables and are fired on their rows of that again, and what they send is thrown away. So they are where the operators
are, whatever their variables are. From then on each batch of deltas is dealt by the keys of the rows, which get tags; one
operator of a shard is fired on what the one before it made, and who fires the last piece of a batch makes one delta of the
parts for an instant, its rows by their tags: those of the operators as they were, in their order.

A row that stays in a window keeps its tag. What windows let go depends on the time alone, so each shard gets all instants, and
all marks. Of a join the rows of both sides are dealt, by its key: those instants at once that no side can undercut any more.

Paper: River §4.4 (fission of relational operators); Auto-parallelizing §3 (regions); Ordered multicore (seed 001) Fig. 4, Fig. 7.
"""

from __future__ import annotations

import ctypes
import time
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final, cast

from backends.firing.machine import MachineMerge, nothing, told
from backends.multicore.ordering.keyed import Part
from backends.multicore.ordering.reorder import FailedResult
from backends.multicore.parallel import Emitted, Firings
from backends.multicore.scheduling.task import Outcome
from backends.multicore.sharded import Found, ShardedOperate
from backends.multicore.tasks import Operate
from backends.multicore.variables import DivisibleVariable
from backends.native.contract import SIDE
from backends.native.deltas import DeltaDealer, behind, instants, rising, woven
from backends.native.operator import UNLIMITED, Refused, compile_native
from river.classes import define, evolve, field
from river.il.annotations import annotated
from river.il.regions import ByRows
from river.il.tagged import tagged
from river.lang.evaluate import Trap
from river.lang.values import END, INFINITY, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.machine import Machine
    from backends.multicore.experiments import Choices
    from backends.multicore.ordering.reorder import Nothing
    from backends.multicore.parallel import Parallel
    from backends.multicore.regions import Region
    from backends.multicore.scheduling.task import Control
    from backends.multicore.variables import Store, Variables
    from backends.native.batch import Batch
    from backends.native.operator import NativeOperator, NativeVariable
    from river.il.graph import Instance
    from river.lang import typed

    Deltas = tuple[Batch, ...]
    """Deltas of each input."""

TRIED: Final = 6
"""Batches that are fired before it is decided, at most: they are kept, and have to be fired on again,"""

ROWS: Final = 1 << 20
"""and the rows of all but the last of them."""

LARGE: Final = 32
"""Rows that a shard has of a delta, at least, on the average: a firing costs something without any."""

SURE: Final = 2
"""Batches that are fired before what they take is believed: the first ones pay for new memory."""

BUSY: Final = 0.75
"""The part of the time in which it fires, at least: else the run waits for others, or others have the processors."""

BETTER: Final = 1.25
"""How many times longer the run must take than it would if all work, and what dividing costs more, were shared by the workers."""

TAGS: Final = 56
"""Bits of the tags of rows that are dealt; deletions that an operator sends have one bit more than those that it got."""

MARK: Final = "mark"
MERGE: Final = "merge"


@define
class Passed:
    """What the operators of a shard made of a piece, in one or several batches each.

    `between`: what each but the first was fired on; `made`: what the last one sent; `mark`: what the first one sent as a
    mark. `failed`: the instant at which an item trapped, None for a mark, and of which operator.
    """

    between: list[list[Batch]]
    made: list[Batch] = field(factory=list["Batch"])
    mark: Mark | None = None
    failed: tuple[int | None, int] | None = None


class ByRowsOperate(ShardedOperate):
    """The task of such an instance, of which `native` has the code and the whole state.

    `lead` puts others behind it: from then on it runs them, until it is known that they are not divided.
    """

    def __init__(
        self,
        index: int,
        machine: Machine,
        instance: Instance,
        variables: Variables,
        native: NativeOperator,
        region: Region,
        choices: Choices,
        store: Store,
        part: int,
    ) -> None:
        super().__init__(index, machine, instance.name, variables, native, region, choices, (), part)
        machine.batch = self._tried
        self.use = instance
        self._store = store
        self._degree = region.degree
        self._behind: Sequence[Parallel] = ()
        self._stages: Sequence[Sequence[NativeOperator]] = ()  # by shard the operators
        self._operators: Sequence[typed.Operator] = ()
        self._timed = 0
        self._clock = 0.0  # when it was that what firings take began to be believed,
        self._processors = 0.0  # what the process had had of processors then,
        self._work = [0.0]  # and what firings have taken since, in seconds of their thread, by operator
        machine.noted = []

    def lead(self, others: Sequence[Parallel]) -> None:
        """Runs the operators behind it in its own steps, which send what the last of them sends."""
        self._behind = others
        self._work = [0.0] * (1 + len(others))
        for each in others:
            each.follow()
        self._sends(others[-1], self.index)

    def _sends(self, task: Operate, producer: int) -> None:
        """It sends what a task sends, whose outputs are those of `producer` from now on."""
        self.outs = task.instance.outs
        for out in task.instance.outs:
            out.queue.producer = producer

    # -- whole

    def together(self) -> None:
        self._forget()

    def step(self, control: Control) -> Outcome:
        if self._behind and self._queue is None and self._lead(control) is Outcome.FULL:
            return Outcome.FULL
        return super().step(control)

    def _together(self, control: Control) -> Outcome:
        if self.machine.noted is None:
            return super()._together(control)
        began, fired = time.thread_time(), self.machine.fired
        outcome = Operate.step(self, control)
        spent = [time.thread_time() - began]
        led = self._lead(control, spent) if self._behind else Outcome.IDLE
        if (count := self.machine.fired - fired) > 0:
            self._spent, self._fired = sum(spent), count
            self._measured(spent)
        if led is Outcome.FULL:
            return led
        if count and (self._timed > TRIED or _rows(self.machine.noted) > ROWS):
            self._forget()
        return Outcome.MORE if outcome is Outcome.FULL and self._behind else outcome

    def _lead(self, control: Control, spent: list[float] | None = None) -> Outcome:
        """Runs the others until they have nothing to do, or the last of them finds no room. `spent`: gets what each took."""
        took = [0.0] * len(self._behind)
        while True:
            outcomes: list[Outcome] = []
            for i, each in enumerate(self._behind):
                began, fired = time.thread_time(), each.machine.fired
                outcomes.append(Operate.step(each, control))
                took[i] += time.thread_time() - began
                each.batches += each.machine.fired > fired
            if outcomes[-1] is Outcome.FULL or all(each is Outcome.IDLE for each in outcomes):
                for each, seconds in zip(self._behind, took, strict=True):
                    each.seconds += seconds
                if spent is not None:
                    spent += took
                return outcomes[-1]

    def _measured(self, spent: Sequence[float]) -> None:
        """Notes what a batch took, by operator."""
        self._timed += 1
        if self._timed > SURE:
            self._work = [sum(pair) for pair in zip(self._work, spent, strict=True)]
        else:
            self._clock, self._processors = time.perf_counter(), time.process_time()

    def _pays(self) -> bool:
        if self._open:
            return super()._pays()
        if not self._waited_for(0.0) or not super()._pays():  # to try what dealing takes takes time itself
            return False
        assert self._dealing is not None  # noqa: S101 - it has just been tried
        return self._waited_for(self._dealing * self._fired * (self._timed - SURE))

    def _waited_for(self, more: float) -> bool:
        """Whether the run waits for this task, and would be done sooner if all shared all work and so many seconds `more`.

        Operators of a region that is not divided would run side by side: then it would wait for the longest of them.
        """
        if not (self._possible and self._timed > SURE):
            return False
        wall, all_ = time.perf_counter() - self._clock, time.process_time() - self._processors
        work = sum(self._work)
        longest = wall if work <= 0.0 else wall * max(self._work) / work
        return work >= BUSY * wall and BETTER * (all_ + more) <= self._degree * longest

    def _forget(self) -> None:
        """Keeps the state in one piece from now on, and lets others run what is behind it."""
        self._possible = False
        self.machine.noted = None
        if self._behind:
            for each in self._behind:
                each.led = False
            self._sends(self._behind[-1], self._behind[-1].index)
            self.outs, self._behind = self.machine.outs, ()

    @property
    def _worth(self) -> bool:
        if self._open:
            return True
        noted = self.machine.noted
        if noted is None:
            return False
        deltas = sum(max(map(len, _given(each)), default=0) for each in noted)
        return _rows(noted) >= LARGE * self._shards * deltas and super()._worth

    # -- divided

    @property
    def _last(self) -> Machine:
        """The operator that sends what all send together."""
        return self._behind[-1].machine if self._behind else self.machine

    def _sample(self) -> Sequence[Batch]:
        """What it was fired on last, if there is anything: of a join both sides."""
        match self.machine.noted:
            case [*_, tuple() as deltas]:
                return deltas
            case _:
                return super()._sample()

    def _dealing_of(self, port: int) -> DeltaDealer | None:
        assert isinstance(self._how, ByRows)  # noqa: S101 - by `concurrent`
        operator = self.machine.operator
        return DeltaDealer.of(
            operator.ports[port].type,
            self._how.rows[port],
            self._shards,
            lasting=operator.mark is not None,
            first=port << TAGS,  # the rows of an input stand behind those of the inputs before it
        )

    def _divided(self) -> bool:
        noted, tasks = self.machine.noted, (self, *self._behind)
        codes = [code for task in tasks if (code := _code(task.machine)) is not None]
        if noted is None or len(codes) < len(tasks):
            self._forget()
            return False
        self._operators = [task.machine.operator for task in tasks]
        self._stages = [[code.again() for code in codes] for _ in range(self._shards)]
        for depth, task in enumerate(tasks):
            for i, parameter in enumerate(task.machine.operator.vars):
                if not parameter.written:
                    for stages in self._stages:
                        stages[depth].share(i, task.machine.native.variables[i])
        if not self._again(noted):
            self._forget()
            return False
        for depth, task in enumerate(tasks):
            for i, parameter in enumerate(task.machine.operator.vars):
                if parameter.written:
                    self._taken_over(
                        cast("ByRowsOperate", task),
                        i,
                        [stages[depth].variables[i] for stages in self._stages],
                    )
            task.machine.noted = None
        self._natives = (*self._natives, *(code for stages in self._stages for code in stages[1:]))
        self.machine.outs = self._last.outs
        self._open_to([stages[0] for stages in self._stages])
        return True

    def _again(self, noted: Sequence[Batch | Mark | Deltas]) -> bool:
        """Fires shards on their rows of what was fired on; False if one refuses."""
        for each in noted:
            for parts in self._parts_again(each):
                for part in parts:
                    if isinstance(self._operate(part.partition, part.rows), FailedResult):
                        return False
        return True

    def _parts_again(self, noted: Batch | Mark | Deltas) -> Iterator[Sequence[Part[Found]]]:
        """What shards have of what was fired on."""
        if isinstance(noted, Mark):
            yield self._marked(noted)
            return
        deltas = _given(noted)
        while any(map(len, deltas)):
            counts = _apart(deltas, None)
            yield self._dealt(self._firing(_first_of(deltas, counts)))
            deltas = tuple(batch[count:] for batch, count in zip(deltas, counts, strict=True))

    def _taken_over(self, task: ByRowsOperate, index: int, parts: Sequence[NativeVariable]) -> None:
        """A variable is in parts from now on."""
        variable, name = task.machine.native.variables[index], task.use.variables[index]
        if annotated(task.use.use).apart is not None:
            self._store.leave_out(name)
        else:
            self._store.keep(name, DivisibleVariable(variable, list(parts)))
        variable.clear()

    def _firing(self, deltas: Deltas) -> Firings:
        """Firings on deltas of which no two of one input are of one instant: by their instants they are put together again."""
        operator = self.machine.operator
        name = MERGE if operator.merge is not None else f"item.{operator.items[0].port}"
        return Firings(name, (), 0, instants(deltas), deltas)

    def _dealt(self, found: Firings) -> list[Part[Found]]:
        """What each shard has of firings."""
        given: Deltas = found.kept
        dealers = cast("tuple[DeltaDealer, ...]", self._dealers)
        shards: dict[int, list[Batch]] = {}
        for i, (dealer, batch) in enumerate(zip(dealers, given, strict=True)):
            for piece in dealer.deal(batch) if len(batch) else ():
                if piece.shard not in shards:
                    shards[piece.shard] = [nothing(each.type) for each in dealers]
                shards[piece.shard][i] = piece.deltas
        return [Part(shard, evolve(found, kept=tuple(parts)), ()) for shard, parts in sorted(shards.items())]

    def _marked(self, mark: Mark) -> list[Part[Found]]:
        """A mark for each shard."""
        level = ctypes.c_int64(mark.key)
        firing = Firings(MARK, (ctypes.addressof(level),), 0, 1, (mark, level))
        return [Part(shard, firing, ()) for shard in range(self._shards)]

    def _items(self, port: ColumnPort) -> Firings | None:
        port.fill(1)
        if not port.run:
            return None
        batch, start, stop = port.next(min(port.run, self._part))
        stop = start + rising(batch[start:stop])
        port.pop(stop - start)
        return self._firing((batch[start:stop],))

    def _take(self) -> Firings | Emitted | None:
        machine = self.machine
        if not isinstance(machine, MachineMerge):
            return super()._take()
        if machine.over:
            return None
        ports = cast("Sequence[ColumnPort]", machine.ports)
        taken = True
        while taken:
            taken = False
            for port in ports:
                port.fill(self._part)
                while not port.run and port.mark() is not None:
                    taken = True
                    if (level := machine.risen()) is not None:
                        return Emitted(mark=Mark(level))
                    port.fill(self._part)
            if (found := self._merged(ports)) is not None:
                return found
        for port in ports:
            if not port.run:
                machine.check(port)
        if not machine.ended:
            return None
        machine.over = True
        return Emitted(mark=END)

    def _merged(self, ports: Sequence[ColumnPort]) -> Firings | None:
        """Firings for the instants that no input can undercut any more."""
        deltas: list[Batch] = []
        last: int | None = None
        for port in ports:
            end: int | None = None
            if port.run:
                batch, start, stop = port.next(min(port.run, self._part))
                deltas.append(batch[start:stop])
                if not (port.ended and stop - start == port.count):
                    end = batch.number(0, stop - 1)
            else:
                deltas.append(nothing(port.type))
                if not port.ended:
                    if port.progress == -INFINITY:
                        return None
                    end = port.progress - 1
            last = end if last is None else last if end is None else min(last, end)
        counts = _apart(deltas, last)
        if not any(counts):
            return None
        for port, count in zip(ports, counts, strict=True):
            port.pop(count)
        return self._firing(_first_of(deltas, counts))

    def _split(self, found: Found) -> Sequence[Part[Found]]:
        match found:
            case Firings():
                return self._dealt(found)
            case Emitted(mark=Mark() as mark) if mark != END and self.machine.operator.mark is not None:
                return self._marked(mark)
            case _:
                return ()

    def _operate(self, shard: int, piece: Found) -> Any:
        """Fires the operators of a shard, each on what the one before it made: `Passed`, or `FailedResult` with it."""
        assert isinstance(piece, Firings)  # noqa: S101 - nothing else is split
        passed = Passed([[] for _ in self._operators[1:]])
        if piece.handler == MARK:
            error = self._fire(shard, 0, piece.handler, (), passed, piece.addresses)
        else:
            error = self._fire(shard, 0, piece.handler, piece.kept, passed)
        return passed if error is None else FailedResult(error, passed)

    def _fire(
        self, shard: int, depth: int, handler: str, given: Deltas, passed: Passed, mark: Sequence[int] = ()
    ) -> Exception | None:
        """Fires one operator of a shard, and those behind it on what it makes as soon as that is much; what failed first."""
        native, addresses, count = self._stages[shard][depth], mark, 1
        places: Any = None
        if handler == MERGE:
            words = [word for batch in given for word in (0, len(batch), 0, 1)]
            places = (ctypes.c_int64 * len(words))(*words)
            addresses = [*(each for batch in given for each in batch.addresses), ctypes.addressof(places)]
            count = UNLIMITED
        elif handler != MARK:
            addresses, count = given[0].addresses, len(given[0])
        at, kept = 0, [batch.kept for batch in given]
        while not self._stopping:
            fired = native.fire(handler, addresses, at, count, self._most)
            for _, made, marks in native.take(kept):
                if marks is not None:
                    passed.mark = Mark(marks.values()[-1][1])
                # what was made before a trap may trap further on, and then at an earlier instant
                if len(made) and (error := self._passed_on(shard, depth, made, passed)) is not None:
                    return error
            if fired.trap is not None:
                passed.failed = (_instant(given, fired.row, places), depth)
                return told(self._operators[depth], fired.trap)
            if not fired.full:
                return Trap("stopped") if fired.stopped else None
            at = fired.row if places is None else 0
        return Trap("stopped")

    def _passed_on(self, shard: int, depth: int, made: Batch, passed: Passed) -> Exception | None:
        """What an operator has made goes to the next, or leaves the shard; what failed there."""
        if depth + 1 == len(self._operators):
            passed.made.append(made)
            return None
        behind(made, TAGS + len(self._dealers) - 1 + depth)
        passed.between[depth].append(made)
        (next_,) = self._operators[depth + 1].items
        return self._fire(shard, depth + 1, f"item.{next_.port}", (made,), passed)

    def _join(
        self, found: Found, parts: Sequence[Part[Found]], results: Sequence[Any]
    ) -> Emitted | FailedResult | Nothing:
        """What a batch made, one delta for an instant: up to the first instant at which an item trapped."""
        if not isinstance(found, Firings) and not parts:
            return found
        given: Deltas = found.kept if isinstance(found, Firings) else ()
        passed = [cast("Passed", each.before if isinstance(each, FailedResult) else each) for each in results]
        made = Emitted(fired=found.stop if isinstance(found, Firings) else 1, mark=passed[0].mark)
        made.behind = [instants(_fired_on(passed, i)) for i in range(1, len(self._operators))]
        sent, failure = [batch for each in passed for batch in each.made], _first(results)
        if failure is not None:
            tau, depth = failure.before.failed or (None, 0)
            made.mark, made.fired = None, 0
            if tau is None:
                sent.clear()
            else:
                made.fired = len({at for batch in given for at in _before(batch, tau).numbers(0)})
                sent = [_before(items, tau) for items in sent]
                if isinstance(failure.error, Trap):
                    failure.error.item = self._handled(given, passed, tau, depth)
        if sent := [items for items in sent if len(items)]:
            made.batches.append((0, woven(self._operators[-1].outs[0].type, sent), ()))
        return made if failure is None else FailedResult(failure.error, made)

    def _handled(self, given: Deltas, passed: Sequence[Passed], tau: int, depth: int) -> Any:
        """The delta of an instant on which an operator was fired, with its type; what is merged is not shown."""
        if depth == 0 and len(given) > 1:
            return None
        type_ = self._operators[depth].ports[0].type
        whole = next(iter(given)) if depth == 0 else woven(type_, _fired_on(passed, depth))
        at = len(_before(whole, tau))
        return type_, *whole[at : at + 1].values()

    def _send(self, made: Emitted) -> None:
        super()._send(made)
        for each, count in zip(self._behind, made.behind, strict=False):
            each.machine.fired += count


def _fired_on(passed: Sequence[Passed], depth: int) -> list[Batch]:
    """The deltas of all shards on which an operator behind the first was fired."""
    return [batch for each in passed for batch in each.between[depth - 1]]


def _before(deltas: Batch, tau: int) -> Batch:
    """The deltas before an instant."""
    return deltas[: bisect_left(deltas.numbers(0), tau)]


def _instant(given: Sequence[Batch], row: int, places: Any) -> int | None:
    """The instant of a firing; None for a mark. `places`: how far each input is, where they are merged."""
    if places is None:
        return given[0].number(0, row) if given else None
    ats = [places[SIDE * i] for i in range(len(given))]
    return min(batch.number(0, at) for batch, at in zip(given, ats, strict=True) if at < len(batch))


def _apart(deltas: Sequence[Batch], last: int | None) -> list[int]:
    """How many deltas of each input come first, so that no two of one input are of one instant; none is after `last`."""
    rise = [rising(batch) if len(batch) else 0 for batch in deltas]
    ends = [
        batch.number(0, count - 1) for batch, count in zip(deltas, rise, strict=True) if count < len(batch)
    ]
    if len(deltas) > 1 and (ends or last is not None):
        until = min(ends if last is None else (*ends, last))
        return [
            bisect_right(batch.numbers(0), until, 0, count) for batch, count in zip(deltas, rise, strict=True)
        ]
    return rise


def _first_of(deltas: Sequence[Batch], counts: Sequence[int]) -> Deltas:
    return tuple(batch[:count] for batch, count in zip(deltas, counts, strict=True))


def _first(results: Sequence[Any]) -> FailedResult | None:
    """The failure that came first: by its instant, the operator, and its place in the text."""

    def when(failed: FailedResult) -> tuple[bool, int, int, int]:
        tau, depth = failed.before.failed or (None, 0)
        site = failed.error.site if isinstance(failed.error, Trap) else None
        return tau is not None, tau or 0, depth, site if isinstance(site, int) else -1

    return min((each for each in results if isinstance(each, FailedResult)), key=when, default=None)


def _code(machine: Machine) -> NativeOperator | None:
    """The code of an operator on rows with tags."""
    native = machine.native
    operator = tagged(native.operator)
    assert operator is not None  # noqa: S101 - else it is not in a region
    code = compile_native(operator, debug=native.debug, lend=True)
    if isinstance(code, Refused):
        return None
    code.calls, code.deadline = native.calls, native.deadline
    return code


def _given(noted: Batch | Mark | Deltas) -> Deltas:
    """The deltas of what was fired on."""
    return noted if isinstance(noted, tuple) else () if isinstance(noted, Mark) else (noted,)


def _rows(noted: Sequence[Batch | Mark | Deltas]) -> int:
    return sum(batch.weight for each in noted for batch in _given(each))


__all__ = ["ByRowsOperate"]
