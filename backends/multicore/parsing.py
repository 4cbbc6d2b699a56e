"""A file whose blocks workers parse, each when it has time, as they do all else: its rows come in the order of the file.

Where the program has one input, and the region of that says that several workers may read it, no thread is there only to read.
Whoever finds nothing to do that is further in the direction of the data takes the next block, whose cutter is cheap, and parses
it. What is left to do in the order of the file is little: bad rows are refused with their line, the order of the keys is checked,
and the rows become turns, with marks, as `river.ingress` makes them of any input.

Paper: Auto-parallelizing §3 (sources inside of regions); Ordered multicore (seed 001) Fig. 4 (what is in the order of the file).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from backends.multicore.inputs import used
from backends.multicore.ordering.reorder import Wait
from backends.multicore.ordering.worklist import Worklist
from backends.multicore.scheduling.task import Divided, Outcome
from river.classes import frozen
from river.diagnostics import Rejected
from river.driver import Reading
from river.ingress import turns
from river.io.batches import ItemSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.firing.ports import Out
    from backends.multicore.plan import Plan
    from backends.multicore.scheduling.task import Control
    from backends.native.batch import Batch
    from backends.native.ingest import Parsed, Reader, RecordBlock
    from river.backend import Sources
    from river.ingress import Turn

BLOCK: Final = 1 << 20
"""Bytes of a block."""

AHEAD: Final = 2
"""Blocks for each worker that may be taken before the rows of the first of them have been sent."""


@frozen
class Found:
    """What comes next in the file: a block that was parsed, or rows that the general reader has made; neither at its end."""

    parsed: Parsed | None = None
    batch: Batch | None = None


class Parsing(Divided):
    """The task of the one input of a program; it does nothing until it is opened."""

    def __init__(self, index: int, name: str, plan: Plan, entry: Out) -> None:
        super().__init__(index, (), (entry,))
        self.name = name
        self.dead = False
        self._plan = plan
        self._entry = entry
        self._reader: Reader | None = None
        self._source: Reading | None = None
        self._control: Control | None = None
        self._blocks: Iterator[RecordBlock] = iter(())
        self._rest: Iterator[Batch] | None = None  # of a file that is read natively no further
        self._rows: deque[Batch] = deque()  # that are no turn yet
        self._turns: Iterator[Turn] = iter(())
        self._failure: Rejected | None = None
        self._over = False
        order = plan.choices.order(AHEAD * plan.readers(name), self._send, entry.drain)
        self._order = order
        self._worklist: Worklist[RecordBlock | Found, Found] = Worklist(order, self._next)
        self.width = plan.readers(name)

    @property
    def given(self) -> int:
        return self._worklist.given

    @property
    def sent(self) -> int:
        return self._order.next

    # -- the beginning and the end, on the caller's thread

    def open(self, sources: Sources, partly: dict[str, frozenset[str]]) -> bool:
        """Whether the input can be read so, and is from now on.

        `partly` gets the fields that are read, if that is not all of them.
        """
        source = sources.get(self.name)
        if not (isinstance(source, Reading) and isinstance(source.source, ItemSource)):
            return False
        behind = source.source
        if behind.rows is not None or behind.file is None or behind.file.packed:
            return False
        if (
            self._plan.choices.gate != "open" and behind.bytes <= BLOCK
        ):  # nobody else would have a block to read
            return False
        from backends.native.ingest import open_native

        wanted = used(self._plan.graph, self.name)
        reader = open_native(behind, self._plan.batch, wanted, block=BLOCK)
        if reader is None:
            return False
        if wanted is not None:
            partly[self.name] = wanted
        self._source, self._reader, self._blocks = source, reader, reader.spans()
        given: Any = iter(lambda: self._rows.popleft() if self._rows else None, None)
        self._turns = turns(
            self._plan.graph, {self.name: given}, self._plan.batch, until=self._plan.options.until
        )
        self._entry.queue.producer = self.index
        return True

    def shut(self) -> None:
        """Lets the file go."""
        if self._reader is not None:
            self._reader.close()

    # -- a worker at a time

    def step(self, control: Control) -> Outcome:
        if self._reader is None or self.dead:
            return Outcome.IDLE
        self._control = control
        taken = self._worklist.take()
        if taken is Wait.ROOM:
            return Outcome.FULL
        if isinstance(taken, Wait):  # who hands in next wakes the task
            self._tell(control)
            return Outcome.IDLE
        serial, found = taken
        if not isinstance(found, Found):
            self.detached, self.ticket = found, serial
            return Outcome.SPLIT
        room = self._worklist.hand_in(serial, found)
        self._tell(control)
        return Outcome.IDLE if self.dead else Outcome.MORE if room else Outcome.FULL

    def _next(self) -> RecordBlock | Found | None:
        """What comes next in the file, None if it is nobody's turn now, or no more is wanted."""
        if self._over or self._control is None or not self._control.wanted:
            return None
        if self._rest is not None:
            return self._general(self._rest)
        block = next(self._blocks, None)
        if block is None:
            self._over = True
            return Found()
        if block.rest is None:
            return Found(block.parse()) if block.last or block.failure is not None else block
        assert self._reader is not None  # noqa: S101 - it has blocks
        self._rest = self._reader.deliver(block.parse())
        return self._general(self._rest)

    def _general(self, rest: Iterator[Batch]) -> Found | None:
        """The next rows that the general reader makes: their lines are known when all before them has been sent."""
        if not self._worklist.alone():
            return None
        try:
            batch = next(rest, None)
        except Rejected as rejected:
            self._failure = rejected
            return None
        self._over = batch is None
        return Found(batch=batch)

    # -- any worker

    def work(self, detached: RecordBlock, ticket: int, control: Control) -> None:
        self._worklist.hand_in(ticket, Found(detached.parse()))
        self._tell(control)

    def _send(self, found: Found) -> None:
        """Sends the rows of a block, in the order of the file: nothing behind an error counts."""
        assert self._reader is not None  # noqa: S101 - it has been opened
        assert self._source is not None  # noqa: S101 - likewise
        if self._failure is not None:
            return
        rows = [] if found.batch is None else [found.batch]
        try:
            for batch in rows if found.parsed is None else self._reader.deliver(found.parsed):
                if len(batch):
                    self._source.count(len(batch))
                    self._rows.append(batch)
                    self._put(next(self._turns))
        except Rejected as rejected:
            self._failure = rejected
        if found.parsed is found.batch is None:
            for turn in self._turns:
                self._put(turn)

    def _put(self, turn: Turn) -> None:
        for _, elements in (*turn.items, *turn.marks):
            self._entry.add(elements)
        assert self._control is not None  # noqa: S101 - a worker has run it
        self._control.sending(turn, {self.name: self._entry})

    def _tell(self, control: Control) -> None:
        """Says that the run is to end, once."""
        if self._failure is not None and not self.dead:
            self.dead = True
            control.refused(self._failure)


__all__ = ["Parsing"]
