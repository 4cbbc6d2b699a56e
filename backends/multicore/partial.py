"""A file read, mapped and partly reduced block by block: each worker with a copy of the operators, and variables of its own.

A worker takes the next block of the file, whose cutter is cheap, and in one go reads and parses it, fires the operators on it
and reduces it. No queue is inside, and nothing is shared but the cutter. What is left to do in the order of the file is little:
rows are counted, bad ones refused with their line, traps told, and what leaves to other operators is sent on. So the first
error in the file is the one that ends the run. At the end the variables of the copies are combined.

The variables of the program stay with the operators' own tasks, those of copies begin with what is neutral (`river.il.combine`).
Where the copies' tables grow with every item it does not pay to have several of them: from then on copies map only, and the
reducers' own tasks get what comes of it. They also do as long as there is no code that combines, which is made beside the run.

Paper: River §6 (Sawzall); Ordered multicore (seed 001) Fig. 4 (what is in the order of the file).
"""

from __future__ import annotations

from collections import deque
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backends.multicore.copies import Copy, Reduced, leaving
from backends.multicore.inputs import used
from backends.multicore.ordering.reorder import Wait
from backends.multicore.ordering.worklist import Worklist
from backends.multicore.scheduling.task import Divided, Outcome
from river.aside import Aside
from river.diagnostics import Rejected
from river.driver import Reading
from river.il.combine import start
from river.io.batches import ItemSource
from river.lang.values import END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from backends.firing.ports import Out
    from backends.multicore.compiled import NativeCode
    from backends.multicore.plan import Plan
    from backends.multicore.scheduling.task import Control
    from backends.multicore.strips import CopyStrips
    from backends.multicore.tasks import Operate
    from backends.native.batch import Batch
    from backends.native.combine import NativeCombine
    from backends.native.deadline import Deadline
    from backends.native.ingest import Reader, RecordBlock
    from backends.native.operator import NativeOperator, NativeVariable
    from river.backend import Sources
    from river.il.combine import Combine
    from river.il.partial import Partial
    from river.lang.evaluate import Trap

BLOCK: Final = 1 << 22
"""Bytes of a block."""

AHEAD: Final = 4
"""Blocks for each worker that may be taken before the first of them is done."""

LOOK: Final = 0.05
"""Seconds between two looks of the caller while variables are combined."""


class Blocks(Divided):
    """The task of an input and of the operators behind it that work block by block; it does nothing until it is opened."""

    def __init__(
        self,
        index: int,
        partial: Partial,
        plan: Plan,
        compiled: NativeCode,
        operators: Sequence[Operate],
        entries: Mapping[str, Out],
        deadline: Deadline | None,
    ) -> None:
        ends = {partial.input: entries[partial.input]}
        ends |= {out.queue.name: out for i in partial.maps for out in operators[i].outs}
        super().__init__(index, (), [ends[name] for name in leaving(partial, plan)])
        self.partial = partial
        self._plan = plan
        self._operators = operators
        self._deadline = deadline
        self._whole = {i: compiled.native[i] for i in partial.members}
        self._copies: list[Copy] = []
        self._idle: deque[Copy] = deque()
        self._strips: dict[Copy, CopyStrips | None] = {}  # of copies that have had a block
        self._reader: Reader | None = None
        self._blocks: Iterator[RecordBlock] = iter(())
        self._rest: Iterator[Batch] | None = None  # of a file that is read natively no further
        self._count: Callable[[int], None] = lambda _: None
        self._counted: Callable[[int], None] = lambda _: None
        self._codes: Aside[list[NativeCombine | None]] | None = None
        self._failure: tuple[int, Trap] | Rejected | None = None
        self.dead = False
        self._over = False
        self._grown = False
        self._stopping = False
        self._degree = degree = plan.degree(partial)
        self._open = plan.choices.gate == "open"
        self._order = plan.choices.order(AHEAD * degree, self._send, self._drain)
        self._worklist: Worklist[RecordBlock | Batch | Reduced, Reduced] = Worklist(self._order, self._next)

    @property
    def given(self) -> int:
        return self._worklist.given

    @property
    def sent(self) -> int:
        return self._order.next

    # -- the beginning and the end, on the caller's thread

    def open(
        self, sources: Sources, partly: dict[str, frozenset[str]], counted: Callable[[int], None]
    ) -> bool:
        """Whether the input can be read so, and is from now on. `counted` is told how many rows were read.

        `partly` gets the fields that are read, if that is not all of them.
        """
        source = sources.get(self.partial.input)
        if not (isinstance(source, Reading) and isinstance(source.source, ItemSource)):
            return False
        behind = source.source
        file = behind.file
        if file is None or file.packed or file.key is not None or not self._pays(file.path):
            return False
        from backends.native.ingest import open_native

        wanted = used(self._plan.graph, self.partial.input)
        reader = open_native(behind, self._plan.batch, wanted, block=BLOCK)
        if reader is None:
            return False
        if wanted is not None:
            partly[self.partial.input] = wanted
        self._reader, self._blocks = reader, reader.spans() if self._degree > 1 else reader.blocks()
        self._count, self._counted = source.count, counted
        for out in self.outs:
            out.queue.producer = self.index
        for i in self.partial.reducers:
            self._operators[i].together()
        self._compile()
        return True

    def _pays(self, path: str) -> bool:
        """Whether a file has more than one block, so that others can read, too."""
        try:
            return self._open or Path(path).stat().st_size > BLOCK
        except OSError:  # who reads it tells
            return False

    def _compile(self) -> None:
        """Has the code made that reduces in strips, and that combines variables, beside the run."""
        self._codes = Aside(self._made, "river-combine")
        if self._open:
            self._codes.result()

    def _made(self) -> list[NativeCombine | None]:
        from backends.native.combine import compile_combine
        from backends.native.strips import loop
        from backends.native.tiers import ending

        loop()
        debug = self._plan.options.native == "debug"
        with ending():
            return [
                compile_combine(self._whole[i].operator, at, how, debug=debug)
                for i, at, how in self._variables()
            ]

    def _variables(self) -> Iterator[tuple[int, int, Combine]]:
        """The variables that are combined: their instances, and which of its variables each is."""
        graph = self._plan.graph
        for i, (name, how) in product(self.partial.reducers, self.partial.combined):
            if name in graph.instances[i].variables:
                yield i, graph.instances[i].variables.index(name), how

    def combine(self, look: Callable[[], None]) -> None:
        """Combines the variables of all copies with those of the program, after a run that went well: several side by side.

        `look` is called again and again. Raises: Trap; whatever `look` raises.
        """
        if not any(copy.reduced for copy in self._copies):
            return
        assert self._codes is not None  # noqa: S101 - who reduces has seen that it is there
        codes = [code for code in self._codes.result() if code is not None]
        pairs = list(zip(codes, self._variables(), strict=True))
        parts = [pairs[i :: self._degree] for i in range(min(self._degree, len(pairs)))]
        jobs = [Aside(lambda part=part: self._combined(part), "river-combine") for part in parts]
        try:
            for job in jobs:
                while not job.done(LOOK):
                    look()
        except BaseException:
            for code in codes:
                code.stop()
            for job in jobs:
                job.done(None)
            raise
        for job in jobs:
            job.result()

    def _combined(self, pairs: Sequence[tuple[NativeCombine, tuple[int, int, Combine]]]) -> None:
        """Combines some variables of all copies."""
        for (code, (i, at, _)), copy in product(pairs, self._copies):
            self._operators[i].take_in(at, copy.natives[i].variables[at], code, self._degree)

    def shut(self) -> None:
        """Lets the file go."""
        if self._reader is not None:
            self._reader.close()

    def stop(self) -> None:
        self._stopping = True
        for copy in self._copies:
            copy.stop()

    # -- a worker at a time

    def step(self, control: Control) -> Outcome:
        if self._reader is None or self.dead:
            return Outcome.IDLE
        taken = self._worklist.take()
        if taken is Wait.ROOM:
            return Outcome.FULL
        if isinstance(taken, Wait):  # who hands in next wakes the task
            self._tell(control)
            return Outcome.IDLE
        serial, found = taken
        if not isinstance(found, Reduced):
            self.detached, self.ticket = (self._copy(), found), serial
            return Outcome.SPLIT
        room = self._worklist.hand_in(serial, found)
        self._tell(control)
        return Outcome.IDLE if self.dead else Outcome.MORE if room else Outcome.FULL

    def _drain(self) -> bool:
        left = [out for out in self.outs if not out.drain()]
        return not left

    def _copy(self) -> Copy:
        """A copy that nobody uses: the one used last, whose memory is still in the caches."""
        fresh = len(self._copies) < self._degree
        if self._idle and not (self._open and fresh):
            return self._idle.popleft() if self._open else self._idle.pop()
        found = Copy(self.partial, self._plan, self._natives(), report=self._plan.options.on_trap is not None)
        self._copies.append(found)
        if self._stopping:  # it may have been looked for before this one was there
            found.stop()
        return found

    @property
    def _reduces(self) -> bool:
        """Whether copies reduce what they map."""
        codes = self._codes
        return not self._grown and codes is not None and codes.done() and None not in codes.result()

    def _natives(self) -> dict[int, NativeOperator]:
        """Operators for one more copy."""
        initial = {v.name: v.initial for v in self._plan.graph.variables}
        combined = dict(self.partial.combined)
        found: dict[int, NativeOperator] = {}
        for i, whole in self._whole.items():
            found[i] = native = whole.again()
            native.deadline = self._deadline
            for at, name in enumerate(self._plan.graph.instances[i].variables):
                if name not in combined:
                    native.share(at, whole.variables[at])
                else:
                    variable: NativeVariable = native.variables[at]
                    variable.set(start(combined[name], variable.type, initial[name]))
        return found

    def _next(self) -> RecordBlock | Batch | Reduced | None:
        """What comes next in the file, None if it is nobody's turn now."""
        if self.dead or self._over or not (self._idle or len(self._copies) < self._degree):
            return None
        if self._rest is not None:
            return self._general(self._rest)
        block = next(self._blocks, None)
        if block is None:
            return self._ended(Reduced(end=True))
        if block.failure is not None:
            return self._ended(Reduced(parsed=block.parse()))
        if block.rest is None:
            return block
        assert self._reader is not None  # noqa: S101 - by the caller
        self._rest = self._reader.delivered(block.parse())
        return self._general(self._rest)

    def _general(self, rest: Iterator[Batch]) -> Batch | Reduced | None:
        """The next rows that the general reader makes: their lines are known when all before them is counted."""
        if not self._worklist.alone():
            return None
        try:
            batch = next(rest, None)
        except Rejected as rejected:
            return self._ended(Reduced(refused=rejected))
        return self._ended(Reduced(end=True)) if batch is None else batch

    def _ended(self, last: Reduced) -> Reduced:
        self._over = True
        return last

    # -- any worker

    def work(self, detached: tuple[Copy, RecordBlock | Batch], ticket: int, control: Control) -> None:
        copy, found = detached
        reduced = self._reduced(copy, found)
        self._idle.append(copy)
        self._worklist.hand_in(ticket, reduced)
        self._tell(control)

    def _reduced(self, copy: Copy, found: RecordBlock | Batch) -> Reduced:
        """What comes of a block, or of rows that have been read."""
        from backends.native.ingest import RecordBlock
        from backends.native.ingest.parse import until_error

        reduce = self._reduces
        if not isinstance(found, RecordBlock):
            return copy.fire([found], reduce=reduce)
        reduced = self._in_strips(copy, found) if reduce else None
        if reduced is None:
            parsed = found.parse()
            segments = until_error(parsed.segments) if found.reader.file.refusals.stops else parsed.segments
            rows = [segment.batch for segment in segments if segment.batch.rows]
            reduced = copy.fire(rows, reduce=reduce)
            reduced.parsed = parsed
        if not self._grown and copy.grows(self._degree):
            self._grown = True
            for i in self.partial.reducers:
                self._operators[i].apart_again()
        return reduced

    def _in_strips(self, copy: Copy, block: RecordBlock) -> Reduced | None:
        """What comes of a block, strip by strip; None where a copy does not work so."""
        if copy not in self._strips:
            from backends.multicore.strips import strips_of

            self._strips[copy] = strips_of(copy, block.reader)
        strips = self._strips[copy]
        return None if strips is None else strips.reduce(block)

    def _send(self, reduced: Reduced) -> None:
        """Takes in what came of a block, in the order of the file: nothing behind an error counts."""
        if self._failure is not None:
            return
        for work in reduced.works:
            task = self._operators[work.index]
            task.apart.fired += work.fired
            task.apart.batches += 1
            task.apart.seconds += work.seconds
            task.apart.workers = self.most
            for trap in work.skipped:
                machine: Any = task.instance
                machine.skip(trap)
        for number, batch in reduced.sent:
            self.outs[number].add_batch(batch)
        self._failure = reduced.trapped or reduced.refused or self._refused(reduced)
        self._count(reduced.rows)
        self._counted(reduced.rows)
        if reduced.end:
            for out in self.outs:
                out.add_mark(END)

    def _refused(self, reduced: Reduced) -> Rejected | None:
        """The error that ends the run, if rows of a block are refused for which it is to end."""
        if reduced.parsed is None or self._reader is None:
            return None
        try:
            for _ in self._reader.delivered(reduced.parsed):
                pass
        except Rejected as rejected:
            return rejected
        return None

    def _tell(self, control: Control) -> None:
        """Says that the run is to end, once."""
        failure = self._failure
        if failure is None or self.dead:
            return
        self.dead = True
        if isinstance(failure, Rejected):
            control.refused(failure)
        else:
            control.trapped(self._operators[failure[0]], failure[1])


__all__ = ["Blocks"]
