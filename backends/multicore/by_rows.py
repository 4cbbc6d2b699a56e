"""Operators on deltas that keep apart rows with different keys, on several workers, their rows in order.

They begin as any others, though in a region of several the first runs those behind it. What it was fired on is kept for a
moment; if that is what the run waits for, and there are processors left for what dealing rows costs more, shards begin with
empty variables and are fired on their rows of that again, and what they send is thrown away. So they are where the operators
are, whatever their variables are. From then on each batch of deltas is dealt by the keys of the rows, which get tags; one
operator of a shard is fired on what the one before it made, and who fires the last piece of a batch makes one delta of the
parts for an instant, its rows by their tags: those of the operators as they were, in their order.

A row that stays in a window keeps its tag. What windows let go depends on the time alone, so each shard gets all instants, and
all marks.

Paper: River §4.4 (fission of relational operators); Auto-parallelizing §3 (regions); Ordered multicore (seed 001) Fig. 4, Fig. 7.
"""

from __future__ import annotations

import ctypes
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, cast

from backends.firing.machine import told
from backends.multicore.ordering.keyed import Part
from backends.multicore.ordering.reorder import FailedResult
from backends.multicore.parallel import Emitted, Firings
from backends.multicore.scheduling.task import Outcome
from backends.multicore.sharded import Found, ShardedOperate
from backends.multicore.tasks import Operate
from backends.multicore.variables import Whole
from backends.native.batch import Batch
from backends.native.deltas import DeltaDealer, behind, instants, rising, woven
from backends.native.operator import Refused, compile_native
from river.classes import evolve, frozen
from river.il.annotations import annotated
from river.il.regions import ByRows
from river.il.tagged import tagged
from river.lang.evaluate import Trap
from river.lang.values import END, Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.machine import Machine
    from backends.multicore.experiments import Choices
    from backends.multicore.ordering.reorder import Nothing
    from backends.multicore.parallel import Parallel
    from backends.multicore.regions import Region
    from backends.multicore.scheduling.task import Control
    from backends.multicore.variables import Store, Variables
    from backends.native.operator import NativeOperator, NativeVariable
    from river.il.graph import Instance
    from river.lang import typed
    from river.lang.types import Type

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


@frozen
class Passed:
    """What the operators of a shard made of a piece.

    `inputs`: what each was fired on, None for a mark; `made`: what the last one sent; `mark`: what the first one sent as a
    mark. `failed`: the instant at which an item trapped, None for a mark, and of which operator.
    """

    inputs: tuple[Batch | None, ...]
    made: Batch | None
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
        deltas = sum(len(batch) for batch in noted if isinstance(batch, Batch))
        return _rows(noted) >= LARGE * self._shards * deltas and super()._worth

    # -- divided

    @property
    def _last(self) -> Machine:
        """The operator that sends what all send together."""
        return self._behind[-1].machine if self._behind else self.machine

    def _dealing_of(self, type_: Type) -> DeltaDealer | None:
        assert isinstance(self._how, ByRows)  # noqa: S101 - by `concurrent`
        lasting = self.machine.operator.mark is not None
        return DeltaDealer.of(type_, self._how.row, self._shards, lasting=lasting)

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

    def _again(self, noted: Sequence[Batch | Mark]) -> bool:
        """Fires shards on their rows of what was fired on; False if one refuses."""
        dealer = cast("DeltaDealer", self._dealer)
        for batch in noted:
            for part in (
                self._marked(batch) if isinstance(batch, Mark) else _parts(dealer, self._firing(batch))
            ):
                if isinstance(self._operate(part.partition, part.rows), FailedResult):
                    return False
        return True

    def _taken_over(self, task: ByRowsOperate, index: int, parts: Sequence[NativeVariable]) -> None:
        """A variable is in parts from now on."""
        variable, name = task.machine.native.variables[index], task.use.variables[index]
        if annotated(task.use.use).apart is not None:
            self._store.leave_out(name)
        else:
            self._store.keep(name, Whole(variable, list(parts)))
        variable.clear()

    def _firing(self, batch: Batch) -> Firings:
        """Firings on deltas."""
        (handler,) = self.machine.operator.items
        return Firings(f"item.{handler.port}", batch.addresses, 0, len(batch), batch)

    def _marked(self, mark: Mark) -> list[Part[Found]]:
        """A mark for each shard."""
        level = ctypes.c_int64(mark.key)
        firing = Firings(MARK, (ctypes.addressof(level),), 0, 1, (mark, level))
        return [Part(shard, firing, ()) for shard in range(self._shards)]

    def _items(self, port: ColumnPort) -> Firings | None:
        """Firings on deltas of which no two are of one instant: by their instants they are put together again."""
        port.fill(1)
        if not port.run:
            return None
        batch, start, stop = port.next(min(port.run, self._part))
        stop = start + rising(batch[start:stop])
        port.pop(stop - start)
        return self._firing(batch[start:stop])

    def _split(self, found: Found) -> Sequence[Part[Found]]:
        match found:
            case Firings():
                return _parts(cast("DeltaDealer", self._dealer), found)
            case Emitted(mark=Mark() as mark) if mark != END and self.machine.operator.mark is not None:
                return self._marked(mark)
            case _:
                return ()

    def _operate(self, shard: int, piece: Found) -> Any:
        """Fires the operators of a shard, each on what the one before it made: `Passed`, or `FailedResult` with it."""
        assert isinstance(piece, Firings)  # noqa: S101 - nothing else is split
        stopped = FailedResult(Trap("stopped"), Passed((), None))
        rows = None if piece.handler == MARK else cast("Batch", piece.kept)
        handler, addresses, count = piece.handler, piece.addresses, 1
        inputs: list[Batch | None] = []
        error: Exception | None = None
        failed: tuple[int | None, int] | None = None
        made: Batch | None = None
        mark: Mark | None = None
        for depth, native in enumerate(self._stages[shard]):
            if self._stopping:
                return stopped
            if rows is not None:
                addresses, count = rows.addresses, len(rows)
            inputs.append(rows)
            fired = native.fire(handler, addresses, 0, count)
            made = None
            for _, made, marks in native.take([] if rows is None else [rows.kept]):  # noqa: B007 - it has one output
                mark = Mark(marks.values()[-1][1]) if marks is not None else mark
            if fired.stopped:
                return stopped
            if (
                fired.trap is not None
            ):  # what was made before may trap further on, and then at an earlier instant
                failed = (None if rows is None else rows.number(0, fired.row), depth)
                error = told(self._operators[depth], fired.trap)
            if made is None or not len(made):
                break
            if depth + 1 < len(self._operators):
                behind(made, TAGS + depth)
                (next_,) = self._operators[depth + 1].items
                rows, handler = made, f"item.{next_.port}"
        passed = Passed(tuple(inputs), made, mark, failed)
        return passed if error is None else FailedResult(error, passed)

    def _join(
        self, found: Found, parts: Sequence[Part[Found]], results: Sequence[Any]
    ) -> Emitted | FailedResult | Nothing:
        """What a batch made, one delta for an instant: up to the first instant at which an item trapped."""
        if not isinstance(found, Firings) and not parts:
            return found
        given = cast("Batch", found.kept) if isinstance(found, Firings) else None
        passed = [cast("Passed", each.before if isinstance(each, FailedResult) else each) for each in results]
        made = Emitted(fired=1 if given is None else len(given), mark=passed[0].mark)
        made.behind = [instants(_fired_on(passed, i)) for i in range(1, len(self._operators))]
        sent, failure = [each.made for each in passed if each.made is not None], _first(results)
        if failure is not None:
            tau, depth = failure.before.failed or (None, 0)
            made.mark, made.fired = None, 0
            if tau is None:
                sent.clear()
            else:
                made.fired = 0 if given is None else bisect_left(given.numbers(0), tau)
                sent = [items[: bisect_left(items.numbers(0), tau)] for items in sent]
                if isinstance(failure.error, Trap):
                    failure.error.item = self._handled(given, passed, tau, depth)
        if sent := [items for items in sent if len(items)]:
            made.batches.append((0, woven(self._operators[-1].outs[0].type, sent), ()))
        return made if failure is None else FailedResult(failure.error, made)

    def _handled(self, given: Batch | None, passed: Sequence[Passed], tau: int, depth: int) -> Any:
        """The delta of an instant on which an operator was fired, with its type."""
        type_ = self._operators[depth].ports[0].type
        whole = given if given is not None and depth == 0 else woven(type_, _fired_on(passed, depth))
        at = bisect_left(whole.numbers(0), tau)
        return type_, *whole[at : at + 1].values()

    def _send(self, made: Emitted) -> None:
        super()._send(made)
        for each, count in zip(self._behind, made.behind, strict=False):
            each.machine.fired += count


def _fired_on(passed: Sequence[Passed], depth: int) -> list[Batch]:
    """The deltas of all shards on which an operator was fired."""
    found = (each.inputs[depth] for each in passed if len(each.inputs) > depth)
    return [batch for batch in found if batch is not None]


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


def _parts(dealer: DeltaDealer, found: Firings) -> list[Part[Found]]:
    """What each shard has of firings."""
    return [
        Part(piece.shard, evolve(found, kept=piece.deltas), piece.positions)
        for piece in dealer.deal(found.kept)
    ]


def _rows(noted: Sequence[Batch | Mark]) -> int:
    return sum(each.weight for each in noted if isinstance(each, Batch))


__all__ = ["ByRowsOperate"]
