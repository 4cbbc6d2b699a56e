"""A table that workers read, each when it has time, as they do all else: Arrow data, in a file or in memory, or samples.

Where the program has one input, and its `@Region` says that several workers may read it, no thread is there only to read: a
thread more than there are processors, which waits behind one worker while another one has nothing to do. Rows that lie as columns
cost little to read, so they are not read side by side: whoever finds nothing to do that is further in the direction of the data
sends the next turns. What has to be waited for, as from a pipe or from a thread that decodes, is left to the reader.

Paper: Auto-parallelizing §3 (sources inside of regions).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from backends.multicore.inputs import counted
from backends.multicore.scheduling.task import Outcome, Task
from river.diagnostics import Rejected
from river.driver import Reading
from river.ingress import turns
from river.io.batches import ItemSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.firing.ports import Out
    from backends.multicore.plan import Plan
    from backends.multicore.scheduling.task import Control
    from river.backend import Sources
    from river.ingress import Turn

LEAST: Final = 1 << 20
"""Bytes of rows that are worth it: fewer are read by the thread that is there for that, before a worker is awake."""

SEVERAL: Final = 16
"""Turns that a worker sends at once, where there is room for them: one alone takes as long as to let go of the task."""


class ReadTable(Task):
    """The task of the one input of a program; it does nothing until it is opened."""

    def __init__(self, index: int, name: str, plan: Plan, entry: Out) -> None:
        super().__init__(index, (), (entry,))
        self.name = name
        self._plan = plan
        self._entry = entry
        self._source: ItemSource | None = None
        self._turns: Iterator[Turn] = iter(())

    # -- the beginning and the end, on the caller's thread

    def open(self, sources: Sources, partly: dict[str, frozenset[str]]) -> bool:
        """Whether the input can be read so, and is from now on. All fields are read, so `partly` gets none."""
        from river.io.columnar import Tables

        source, plan = sources.get(self.name), self._plan
        if not (isinstance(source, Reading) and isinstance(source.source, ItemSource)):
            return False
        behind = source.source
        tables = behind.unordered
        if not isinstance(tables, Tables) or tables.at_hand < (1 if plan.choices.gate == "open" else LEAST):
            return False
        from backends.native.ingest.tables import converted

        given: Any = counted(source, converted(behind, tables, plan.batch))
        self._turns = turns(plan.graph, {self.name: given}, plan.batch, until=plan.options.until)
        self._source = behind
        self._entry.queue.producer = self.index
        return True

    def shut(self) -> None:
        """Lets the file go."""
        if self._source is not None:
            self._source.close()

    # -- a worker at a time

    def step(self, control: Control) -> Outcome:
        if self._source is None:  # the reader sends what is read
            return Outcome.IDLE
        if not self._has_room():
            return Outcome.FULL
        if not control.wanted:
            return Outcome.IDLE
        some = False
        try:
            for turn in islice(self._turns, SEVERAL):
                some = True
                self._put(turn, control)
                if not self._has_room():
                    return Outcome.FULL
        except Rejected as rejected:
            some = False
            control.refused(rejected)
        return Outcome.MORE if some else Outcome.IDLE

    def _has_room(self) -> bool:
        """Whether all that was sent has been put."""
        self._entry.drain()
        return not self._entry.waiting

    def _put(self, turn: Turn, control: Control) -> None:
        for _, elements in (*turn.items, *turn.marks):
            self._entry.add(elements)
        control.sending(turn, {self.name: self._entry})


__all__ = ["ReadTable"]
