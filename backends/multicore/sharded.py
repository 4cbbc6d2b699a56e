"""An operator with state by key on several workers at once, its results in order.

As long as it is cheap it runs as any other. Once its firings take longer than dealing their items would, the entries of its
maps are dealt to shards, each an operator of its own with the same code; that is done once. From then on each batch has a
serial number, its items are dealt by the hash of their key, workers fire the shards' pieces out of the hybrid queue, and who
fires the last piece of a batch puts what was made in the order of the items and hands it in at the reorder buffer. All of
it is machine code on columns: an item is never looked at from Python.

Paper: Ordered multicore (seed 001) Fig. 4, Fig. 7.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

from backends.firing.machine import nothing, told
from backends.multicore.ordering.keyed import Part
from backends.multicore.ordering.reorder import FailedResult, Wait
from backends.multicore.parallel import Emitted, Firings, Parallel
from backends.multicore.scheduling.task import Outcome
from backends.native.contract import mark_type
from backends.native.deal import Dealer, Share, divide, joined
from backends.native.operator import Refused, compile_native
from river.classes import evolve, frozen
from river.diagnostics import InternalError
from river.il.regions import Sharded
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.machine import Machine
    from backends.multicore.experiments import Choices
    from backends.multicore.ordering.keyed import Keyed
    from backends.multicore.ordering.reorder import Nothing
    from backends.multicore.regions import Region
    from backends.multicore.scheduling.task import Control
    from backends.multicore.variables import DivisibleVariable, Variables
    from backends.native.batch import Batch
    from backends.native.combine import NativeCombine
    from backends.native.deltas import DeltaDealer
    from backends.native.operator import NativeOperator, NativeVariable

GAIN: Final = 1.5
"""How many times longer firing must take than dealing items and putting results in order."""

PIECE: Final = 50e-6
"""Seconds that a piece takes, whatever is in it."""

LEAST: Final = 15e-9
"""Seconds that a firing must take for it to be asked what dealing takes, which needs code of its own: it never takes less."""

Found = Firings | Emitted | FailedResult
"""What comes next in the input, or a piece of it."""


@frozen
class Shot:
    """What the firings on a piece made: by output its items and where each firing begins in them."""

    made: tuple[tuple[int, Batch, Batch | None], ...] = ()
    fired: int = 0


class ShardedOperate(Parallel):
    """The task of such an instance, of which `native` has the code and the whole state."""

    def __init__(
        self,
        index: int,
        instance: Machine,
        name: str,
        variables: Variables,
        native: NativeOperator,
        region: Region,
        choices: Choices,
        divisible: Sequence[DivisibleVariable | None],
        part: int,
    ) -> None:
        super().__init__(index, instance, name, variables, [native] * region.degree, choices, part)
        self._how = region.how
        self._shards = region.shards(partitioned=choices.partitioned)
        self._slice *= self._shards  # of which each has its piece
        self._divisible = divisible
        self._busy = [False] * region.degree
        self._dealing: float | None = None  # seconds for an item, as tried
        self._dealers: tuple[Dealer | DeltaDealer, ...] = ()  # by input
        self._possible = True
        self._queue: Keyed[Found, Shot | Emitted] | None = None
        self._parts: Sequence[NativeOperator] = ()

    @property
    def given(self) -> int:
        return self._queue.given if self._queue is not None else 0

    def step(self, control: Control) -> Outcome:
        queue = self._queue
        if queue is None:
            if (
                self.dead
                or self.width < 2
                or not self._pays()
                or not self.machine.drain()
                or not self._divided()
            ):
                return self._together(control)
            queue = self._queue
            assert queue is not None  # noqa: S101 - it has just been divided
        wait = queue.feed(self._next)
        if wait is Wait.ROOM:
            return Outcome.FULL
        if self._failed(control):
            return Outcome.IDLE
        worker = next((w for w, busy in enumerate(self._busy) if not busy and queue.waiting(w)), None)
        if worker is not None:
            self._busy[worker] = True
            self.detached, self.ticket = _PIECES, worker
            return Outcome.SPLIT
        return Outcome.MORE if wait is None else Outcome.IDLE  # who fires the last piece wakes the task

    def work(self, detached: Firings, ticket: int, control: Control) -> None:
        """Fires about as many pieces as a batch has. `ticket`: which worker of this operator's does it."""
        queue = self._queue
        assert queue is not None  # noqa: S101 - the state is divided when work is handed out
        try:
            queue.work(ticket, len(self._parts))
        finally:
            self._busy[ticket] = False
        self._failed(control)

    # -- whole

    def together(self) -> None:
        self._possible = False

    def apart_again(self) -> None:
        self._possible = True

    def take_in(self, at: int, other: NativeVariable, code: NativeCombine, workers: int) -> None:
        assert isinstance(self._how, Sharded)  # noqa: S101 - by `concurrent`
        paths = self._how.variables[at]
        if self._queue is None or paths is None:
            super().take_in(at, other, code, workers)
            return
        shares = [other.like() for _ in self._parts]
        if not divide(other, paths, shares):
            raise InternalError(f"what was divided of `{self.name}` cannot be divided again")
        other.clear()
        for part, share in zip(self._parts, shares, strict=True):
            code.combine(part.variables[at], share, workers)

    @property
    def _worth(self) -> bool:
        """Whether firings take long enough for it to be asked whether dealing pays."""
        return self._open or self._spent >= max(GAIN * PIECE * self._shards, LEAST * self._fired)

    def _pays(self) -> bool:
        """Whether dealing what comes next takes clearly less than firing it did."""
        if not (self._possible and self._worth):
            return False
        if self._dealing is None:
            sample = self._sample()
            if not any(map(len, sample)):
                return False
            found = [self._dealing_of(i) for i in range(len(self.machine.ports))]
            self._dealers = tuple(dealer for dealer in found if dealer is not None)
            if len(self._dealers) < len(found):
                self._possible = False
                return False
            self._deal(sample)
            began = time.thread_time()  # not the clock: others may use the processors
            self._deal(sample)
            both = 2 if self.machine.outs else 1  # what comes out is put in order again
            self._dealing = both * (time.thread_time() - began) / max(map(len, sample))
        costs = self._dealing * self._fired + PIECE * self._shards
        return self._open or self._spent >= GAIN * costs

    def _sample(self) -> Sequence[Batch]:
        """What comes next, by input."""
        found: list[Batch] = []
        for port in cast("Sequence[ColumnPort]", self.machine.ports):
            if port.fill(1) and (count := min(port.run, self._part)):
                batch, start, stop = port.next(count)
                found.append(batch[start:stop])
            else:
                found.append(nothing(port.type))
        return found

    def _deal(self, batches: Sequence[Batch]) -> None:
        """Deals what is of each input, to see what that takes."""
        for dealer, batch in zip(self._dealers, batches, strict=True):
            if len(batch):
                dealer.deal(batch)

    def _dealing_of(self, port: int) -> Dealer | DeltaDealer | None:
        """What deals the items of an input; None if that cannot be done."""
        assert isinstance(self._how, Sharded)  # noqa: S101 - by `concurrent`
        return Dealer.of(self.machine.operator.ports[port].type, self._how.item, self._shards)

    def _divided(self) -> bool:
        """Deals the state to shards; False if that cannot be done."""
        assert isinstance(self._how, Sharded)  # noqa: S101 - by `concurrent`
        native, code = self.machine.native, self.machine.native
        self._possible = False  # unless all goes well
        if not self._how.exact:
            counted = compile_native(counting(native.operator), debug=native.debug, lend=True)
            if isinstance(counted, Refused):
                return False
            counted.calls = native.calls
            code = counted
        parts = [code.again() for _ in range(self._shards)]
        try:
            for i, (variable, paths) in enumerate(zip(native.variables, self._how.variables, strict=True)):
                if paths is None:
                    for part in parts:
                        part.share(i, variable)
                elif not divide(variable, paths, [part.variables[i] for part in parts]):
                    return False
        except MemoryError:
            return False
        self._possible = True
        for i, variable in enumerate(self._divisible):
            if variable is not None:
                variable.parts = [part.variables[i] for part in parts]
                variable.variable.clear()
        self._open_to(parts)
        return True

    def _open_to(self, parts: Sequence[NativeOperator]) -> None:
        """From now on `parts` fire."""
        self._parts = parts
        self._natives = (*self._natives, *parts)
        if self._stopping:
            self.stop()
        self._queue = self._choices.queue(len(parts), self._order, self._split, self._operate, self._join)

    # -- in shards

    def _split(self, found: Found) -> Sequence[Part[Found]]:
        if not isinstance(found, Firings):
            return ()
        (dealer,) = self._dealers
        assert isinstance(dealer, Dealer)  # noqa: S101 - it was there when the state was divided
        dealt = dealer.deal(found.kept[found.start : found.stop])
        return [
            Part(shard, evolve(found, kept=dealt.rows[start:end]), dealt.positions(start, end))
            for shard, start, end in dealt.shards()
        ]

    def _operate(self, shard: int, piece: Found) -> Shot | FailedResult:
        assert isinstance(piece, Firings)  # noqa: S101 - nothing else is split
        if self._stopping:
            return FailedResult(Trap("stopped"), Shot())
        native, rows = self._parts[shard], cast("Batch", piece.kept)
        fired = native.fire(piece.handler, rows.addresses, 0, len(rows))
        shot = Shot(tuple(native.take([rows.kept])), fired.row)
        if fired.trap is not None:
            return FailedResult(told(self.machine.operator, fired.trap), shot)
        return FailedResult(Trap("stopped"), shot) if fired.stopped else shot

    def _join(
        self,
        found: Found,
        parts: Sequence[Part[Found]],
        results: Sequence[Shot | Emitted | FailedResult | Nothing],
    ) -> Emitted | FailedResult | Nothing:
        """What a batch made, in the order of its items: up to the first item that trapped."""
        if not isinstance(found, Firings):
            return found
        rows = stop = found.stop - found.start
        error: Exception | None = None
        shots: list[tuple[Sequence[int], Shot]] = []
        for part, result in zip(parts, results, strict=True):
            shot = cast("Shot", result.before if isinstance(result, FailedResult) else result)
            shots.append((part.positions, shot))
            if isinstance(result, FailedResult) and part.positions[shot.fired] < stop:
                stop, error = part.positions[shot.fired], result.error
        made = Emitted(fired=stop)
        for out in range(len(self.machine.outs)):
            shares = [
                Share(items, positions, shot.fired, firsts)
                for positions, shot in shots
                for to, items, firsts in shot.made
                if to == out
            ]
            items = shares[0].items if len(parts) == 1 and shares else joined(shares, rows, stop)
            if items is not None and len(items):
                made.batches.append((out, items, ()))
        if error is None:
            return made
        if isinstance(error, Trap):
            error.item = self._item(found, found.start + stop)
        return FailedResult(error, made)


_PIECES: Final = Firings("", (), 0, 0, None)
"""What is handed out: the pieces that wait."""


def counting(op: typed.Operator) -> typed.Operator:
    """The operator with a mark on each output before the items of each firing, which tells whose items these are."""
    ticks: list[typed.Stmt] = []
    for i, out in enumerate(op.outs):
        _, key = t.parts(mark_type(out))
        ticks.append(typed.Mark(i, typed.Literal(key, 0)))
    items = tuple(evolve(each, body=evolve(each.body, items=(*ticks, *each.body.items))) for each in op.items)
    return evolve(op, items=items)
