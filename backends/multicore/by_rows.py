"""An operator on deltas that keeps apart rows with different keys, on several workers, its rows in order.

It begins as any other. What it was fired on is kept for a moment; if it is what the run waits for, and there are processors left
for what dealing rows costs more, shards begin with empty variables and are fired on their rows of that again, and what they
send is thrown away. So they are where one operator is, whatever its variables are. From then on each batch of deltas is dealt
by the keys of the rows, which get tags, and who fires the last piece of a batch makes one delta of the parts for an instant,
its rows by their tags: those of one operator, in its order.

Paper: River §4.4 (fission of relational operators); Ordered multicore (seed 001) Fig. 4, Fig. 7.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, cast

from backends.multicore.ordering.keyed import Part
from backends.multicore.ordering.reorder import Failed
from backends.multicore.parallel import Firings, Made
from backends.multicore.sharded import Found, ShardedOperate, Shot
from backends.multicore.tasks import Operate
from backends.multicore.variables import Whole
from backends.native.deltas import DeltaDealer, rising, woven
from backends.native.operator import Refused, compile_native
from river.classes import evolve
from river.il.regions import ByRows
from river.il.tagged import tagged
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.machine import Machine
    from backends.multicore.experiments import Choices
    from backends.multicore.ordering.reorder import Nothing
    from backends.multicore.regions import Region
    from backends.multicore.scheduling.task import Control, Outcome
    from backends.multicore.variables import Store, Variables
    from backends.native.batch import Batch
    from backends.native.operator import NativeOperator
    from backends.native.operator import Variable as NativeVariable
    from river.il.graph import Instance
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


class ByRowsOperate(ShardedOperate):
    """The task of such an instance, of which `native` has the code and the whole state."""

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
        self._instance = instance
        self._store = store
        self._degree = region.degree
        self._timed = 0
        self._clock = 0.0  # when it was that what firings take began to be believed,
        self._processors = 0.0  # what the process had had of processors then,
        self._work = 0.0  # and what firings have taken since, in seconds of their thread
        machine.noted = []

    # -- whole

    def together(self) -> None:
        self._forget()

    def _together(self, control: Control) -> Outcome:
        if self._machine.noted is None:
            return super()._together(control)
        began, fired = time.thread_time(), self._machine.fired
        outcome = Operate.step(self, control)
        if (count := self._machine.fired - fired) > 0:
            self._spent, self._fired = time.thread_time() - began, count
            self._measured()
            if self._timed > TRIED or sum(batch.weight for batch in self._machine.noted) > ROWS:
                self._forget()
        return outcome

    def _measured(self) -> None:
        """Notes what a batch took."""
        self._timed += 1
        if self._timed > SURE:
            self._work += self._spent
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
        """Whether the run waits for this task, and would be done sooner if all shared all work and so many seconds `more`."""
        if not (self._possible and self._timed > SURE):
            return False
        wall, all_ = time.perf_counter() - self._clock, time.process_time() - self._processors
        return self._work >= BUSY * wall and BETTER * (all_ + more) <= self._degree * wall

    def _forget(self) -> None:
        """Keeps the state in one piece from now on."""
        self._possible = False
        self._machine.noted = None

    @property
    def _worth(self) -> bool:
        if self._open:
            return True
        noted = self._machine.noted
        if noted is None:
            return False
        rows, deltas = sum(batch.weight for batch in noted), sum(map(len, noted))
        return rows >= LARGE * self._shards * deltas and super()._worth

    # -- divided

    def _dealing_of(self, type_: Type) -> DeltaDealer | None:
        assert isinstance(self._how, ByRows)  # noqa: S101 - by `concurrent`
        return DeltaDealer.of(type_, self._how.row, self._shards)

    def _divided(self) -> bool:
        native, noted = self._machine.native, self._machine.noted
        self._forget()
        operator = tagged(native.operator)
        assert operator is not None  # noqa: S101 - else it is not in a region
        code = compile_native(operator, debug=native.debug, lend=True)
        if noted is None or isinstance(code, Refused):
            return False
        code.calls, code.deadline = native.calls, native.deadline
        parts = [code.again() for _ in range(self._shards)]
        for i, parameter in enumerate(native.operator.vars):
            if not parameter.written:
                for part in parts:
                    part.share(i, native.variables[i])
        if not self._again(noted, parts):
            return False
        for i, parameter in enumerate(native.operator.vars):
            if parameter.written:
                self._taken_over(i, [part.variables[i] for part in parts])
        self._possible = True
        self._open_to(parts)
        return True

    def _again(self, noted: Sequence[Batch], parts: Sequence[NativeOperator]) -> bool:
        """Fires shards on their rows of what was fired on; False if one refuses."""
        dealer = cast("DeltaDealer", self._dealer)
        for batch in noted:
            for piece in dealer.deal(batch):
                part, rows = parts[piece.shard], piece.deltas
                fired = part.fire(self._handler, rows.addresses, 0, len(rows))
                part.clear()
                if fired.row < len(rows):
                    return False
        return True

    @property
    def _handler(self) -> str:
        (handler,) = self._machine.operator.items
        return f"item.{handler.port}"

    def _taken_over(self, index: int, parts: Sequence[NativeVariable]) -> None:
        """A variable is in parts from now on."""
        variable, name = self._machine.native.variables[index], self._instance.variables[index]
        assert isinstance(self._how, ByRows)  # noqa: S101 - by `concurrent`
        if self._how.promised:
            self._store.leave_out(name)
        else:
            self._store.keep(name, Whole(variable, list(parts)))
        variable.clear()

    def _items(self, port: ColumnPort) -> Firings | None:
        """Firings on deltas of which no two are of one instant: by their instants they are put together again."""
        port.fill(1)
        if not port.run:
            return None
        batch, start, stop = port.next(min(port.run, self._part))
        stop = start + rising(batch[start:stop])
        port.pop(stop - start)
        return Firings(self._handler, batch.addresses, start, stop, batch)

    def _split(self, found: Found) -> Sequence[Part[Found]]:
        if not isinstance(found, Firings):
            return ()
        dealer = cast("DeltaDealer", self._dealer)
        return [
            Part(piece.shard, evolve(found, kept=piece.deltas), piece.positions)
            for piece in dealer.deal(found.kept[found.start : found.stop])
        ]

    def _join(
        self, found: Found, parts: Sequence[Part[Found]], results: Sequence[Shot | Made | Failed | Nothing]
    ) -> Made | Failed | Nothing:
        """What a batch made, one delta for an instant: up to the first delta of which a part trapped."""
        if not isinstance(found, Firings):
            return found
        stop = found.stop - found.start
        error: Exception | None = None
        sent: list[Batch] = []
        for part, result in zip(parts, results, strict=True):
            shot = cast("Shot", result.before if isinstance(result, Failed) else result)
            sent += [items for _, items, _ in shot.made]
            if isinstance(result, Failed) and (at := part.positions[shot.fired]) <= stop:
                if at < stop or error is None or _site(result.error) < _site(error):
                    error = result.error
                stop = at
        if error is not None:
            (first,) = found.kept[found.start + stop : found.start + stop + 1].numbers(0)
            sent = [items[: bisect_left(items.numbers(0), first)] for items in sent]
        made = Made(fired=stop)
        if sent := [items for items in sent if len(items)]:
            made.batches.append((0, woven(self._machine.operator.outs[0].type, sent), ()))
        if error is None:
            return made
        if isinstance(error, Trap):
            error.item = self._item(found, found.start + stop)
        return Failed(error, made)


def _site(error: Exception) -> int:
    """The place of a trap in the text: where several rows trap at one instant, the first place counts."""
    return error.site if isinstance(error, Trap) and isinstance(error.site, int) else -1


__all__ = ["ByRowsOperate"]
