"""A copy's operators fired on strips of a block, as they are parsed, in one call of machine code (`backends.native.strips`).

What the loop leaves goes the usual way: rows that the general reader has to read, and firings that end before the strip does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from backends.firing.machine import Forwards, MachineItems
from backends.multicore.copies import BlockWork, Reduced
from backends.native.batch import Batch
from backends.native.ingest.memory import Lease
from backends.native.ingest.parse import columns_for
from backends.native.strips import ROOM, Step, StripLoop
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.firing.columns import ColumnPort
    from backends.firing.machine import Machine
    from backends.multicore.copies import Copy
    from backends.native.ingest import Reader, RecordBlock
    from backends.native.ingest.code import Parser
    from backends.native.strips import Halt


class CopyStrips:
    """The operators of a copy as steps of a loop over strips: maps that forward columns say once where those of reducers lie."""

    def __init__(
        self, copy: Copy, steps: Sequence[Step], lease: Lease, columns: Sequence[int], parser: Parser
    ) -> None:
        self.columns = columns
        self.room = ROOM
        self.loop = StripLoop(parser, steps)
        self._copy = copy
        self._lease = lease  # of the columns
        self._found = Reduced()

    def reduce(self, block: RecordBlock) -> Reduced:
        """Parses a block and fires on its rows, up to a trap."""
        copy, loop, found = self._copy, self.loop, Reduced()
        self._found = found
        loop.begin()
        try:
            found.parsed = block.parse(self)
        except Trap:
            if found.trapped is None:
                raise
        found.rows += loop.rows
        copy.reduced += loop.rows * len(loop.steps)
        found.works += [BlockWork(index, loop.rows, 0.0, []) for index, _ in copy.maps]
        for (index, _), seconds in zip(copy.reducers, loop.seconds, strict=True):
            found.works.append(BlockWork(index, loop.rows, seconds, []))
        return found

    def finish(self, halt: Halt, rows: int) -> None:
        """See `Strips`: what the loop has fired is told, the rest is fired in the usual way."""
        copy, found, first = self._copy, self._found, halt.step or 0
        found.rows += rows
        found.works += [BlockWork(index, rows, 0.0, []) for index, _ in copy.maps]
        for number, (index, machine) in enumerate(copy.reducers):
            done = rows if number < first else halt.row if number == first else 0
            copy.reduced += done
            found.works.append(BlockWork(index, done, 0.0, []))
            if done < rows:
                machine.ports[0].queue.put(self.loop.steps[number].batch[done:rows])
        copy.work(found, copy.reducers[first:])
        self._check(found)

    def fire(self, batch: Batch) -> None:
        """See `Strips`."""
        found = self._copy.fire([batch], reduce=True)
        self._found.rows += found.rows
        self._found.works += found.works
        self._found.trapped = found.trapped
        self._check(found)

    def _check(self, found: Reduced) -> None:
        """Ends the block where an operator trapped. Raises: Trap."""
        if found.trapped is not None:
            raise found.trapped[1]


def strips_of(copy: Copy, reader: Reader) -> CopyStrips | None:
    """The copy's operators as steps; None unless it only forwards columns and reduces them, and nobody has to see each firing."""
    if len(copy.leaving) > len(copy.reducers) or not all(isinstance(each, Forwards) for _, each in copy.maps):
        return None
    if not all(type(each) is MachineItems and _steps(each) for _, each in copy.reducers):
        return None
    lease, parser = Lease(reader.pool), reader.parser
    addresses = columns_for(parser, reader.given, lease, ROOM)
    copy.entry.put(Batch(reader.form.type, ROOM, tuple(addresses), lease))
    copy.work(Reduced(), copy.maps)  # they do not look at what stands in the columns
    steps: list[Step] = []
    for _, machine in copy.reducers:
        port = cast("ColumnPort", machine.ports[0])
        port.fill(ROOM)
        batch, start, stop = port.next(ROOM)
        steps.append(Step(machine.native, f"item.{machine.operator.items[0].port}", batch[start:stop]))
        port.pop(stop - start)
    return CopyStrips(copy, steps, lease, addresses, parser)


def _steps(machine: Machine) -> bool:
    """Whether a reducer can be fired by a loop: it has one input and sends nothing, whatever comes."""
    alone = len(machine.ports) == 1 and not machine.outs and machine.operator.mark is None
    return alone and not machine.native.watched


__all__ = ["CopyStrips", "strips_of"]
