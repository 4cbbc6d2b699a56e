"""A copy of the operators that work block by block, for one worker at a time: how it fires, and what comes of a block.

Where operators do no more than reduce columns of the file, a block is parsed and reduced strip by strip in one call of machine
code (`multicore.strips`). Else it is parsed, and then one operator after the other fires on all of it.

Paper: River §6 (Sawzall).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from backends.firing.instance import Setting
from backends.firing.machine import make
from backends.firing.queues import UNBOUNDED, Queue
from backends.firing.wiring import inputs_of, outputs_of
from river.classes import define, field
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from backends.firing.machine import Machine
    from backends.multicore.plan import Plan
    from backends.native.batch import Batch
    from backends.native.ingest import Parsed
    from backends.native.operator import NativeOperator
    from river.diagnostics import Rejected
    from river.il.partial import Partial

LARGE: Final = 1 << 29
"""Bytes of all copies' variables from which on it matters whether they grow with every item."""

GROWTH: Final = 16
"""Bytes of them for each item that has been reduced, if so: an entry has a hundred."""

FIRINGS: Final = 1 << 20
"""Items of a block that are fired on at once, at most."""


@define
class BlockWork:
    """What a copy of an operator has done on a block: firings, items left out, and how long it took.

    `index`: of the instance. Units: seconds.
    """

    index: int
    fired: int
    seconds: float
    skipped: list[Trap]


@define
class Reduced:
    """What came of a block, `rows` of which were fired on. `parsed`: what is to be refused, in the order of the file.

    `sent`: by queue; `trapped`: the instance that trapped, before which all others have fired; `end`: there are no more blocks.
    """

    parsed: Parsed | None = None
    rows: int = 0
    works: list[BlockWork] = field(factory=list[BlockWork])
    sent: list[tuple[int, Batch]] = field(factory=list[tuple[int, "Batch"]])
    trapped: tuple[int, Trap] | None = None
    refused: Rejected | None = None
    end: bool = False


class Copy:
    """A copy of the operators, with queues of its own between them. One thread at a time uses it.

    `maps` and `reducers`: with the numbers of their instances. `entry` and `leaving`: the queues by which rows come, and leave.
    `reduced`: how many items its reducers have taken.
    """

    def __init__(
        self, partial: Partial, plan: Plan, natives: Mapping[int, NativeOperator], *, report: bool
    ) -> None:
        graph = plan.graph
        self.natives = natives
        self.reduced = 0
        self._skipped: list[Trap] = []
        names = [partial.input, *(out for i in partial.maps for out in graph.instances[i].outs)]
        queues = {name: Queue(name, UNBOUNDED, None, 0) for name in names}
        self.entry = queues[partial.input]
        self.leaving = [queues[name] for name in leaving(partial, plan)]

        def machine(index: int) -> tuple[int, Machine]:
            instance, native = graph.instances[index], natives[index]
            ports = inputs_of(instance, graph, queues, (), columns=True)
            outs = outputs_of(instance, queues, ())
            tell = self._skipped.append if report else None
            setting = Setting(instance.operator, ports, outs, [], FIRINGS, tell, native.deadline)
            return index, make(setting, native)

        self.maps = [machine(index) for index in partial.maps]
        self.reducers = [machine(index) for index in partial.reducers]

    def stop(self) -> None:
        """Ends a firing that is under way."""
        for native in self.natives.values():
            native.stop()

    def fire(self, batches: Sequence[Batch], *, reduce: bool) -> Reduced:
        """Fires operators on rows, one after the other, up to a trap: all of them, or but the reducers."""
        found = Reduced(rows=sum(map(len, batches)))
        for batch in batches:
            self.entry.put(batch)
        self.work(found, (*self.maps, *(self.reducers if reduce else ())))
        for number, queue in enumerate(self.leaving):
            while (chunk := queue.take()) is not None:
                batch = cast("Batch", chunk)
                found.sent.append((number, batch))
                queue.took(len(batch))
                queue.lighter(batch.weight)
        return found

    def work(self, found: Reduced, machines: Iterable[tuple[int, Machine]]) -> None:
        """Fires some of the operators on what waits for them, one after the other, up to a trap."""
        for index, machine in machines:
            began, fired = perf_counter(), machine.fired
            try:
                while machine.fire():
                    pass
            except Trap as trap:
                found.trapped = index, trap
            machine.drain()
            skipped, self._skipped[:] = self._skipped[:], []
            fired = machine.fired - fired
            self.reduced += 0 if machine.outs else fired
            found.works.append(BlockWork(index, fired, perf_counter() - began, skipped))
            if found.trapped is not None:
                break

    def grows(self, copies: int) -> bool:
        """Whether its variables, and those of so many copies, are large and have grown with every item."""
        sizes = (v.memory for i, _ in self.reducers for v in self.natives[i].variables)
        return (size := sum(sizes)) * copies > LARGE and size > GROWTH * self.reduced


def leaving(partial: Partial, plan: Plan) -> tuple[str, ...]:
    """The queues by which items may leave copies: to others, and to the reducers' own tasks."""
    return (*partial.exits, *(plan.graph.instances[i].ins[0] for i in partial.reducers))
