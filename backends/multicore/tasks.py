"""What workers run: operator instances and sinks as tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backends.firing.columns import ColumnPort
from backends.multicore.scheduling.task import Outcome, Task
from river.classes import define
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.firing.instance import Instance
    from backends.firing.ports import Port
    from backends.multicore.scheduling.task import Control
    from backends.multicore.variables import Variables
    from backends.native.combine import NativeCombine
    from backends.native.operator import NativeVariable
    from river.backend import Items, Rows


@define
class ShareOfOthers:
    """What of an instance's firings is done by others, block by block, by so many `workers` at once. Units: seconds."""

    fired: int = 0
    batches: int = 0
    seconds: float = 0.0
    workers: int = 0


class Operate(Task):
    """An operator instance; `apart`: what others do of it. Paper: River Fig. 2 (`process`)."""

    def __init__(self, index: int, instance: Instance, name: str, variables: Variables) -> None:
        super().__init__(index, instance.ports, instance.outs)
        self.instance = instance
        self.name = name
        self.variables = variables
        self.dead = False
        self.apart = ShareOfOthers()

    @property
    def fired(self) -> int:
        """All its firings."""
        return self.instance.fired + self.apart.fired

    def together(self) -> None:
        """Keeps its state in one piece from now on."""

    def apart_again(self) -> None:
        """May divide its state from now on, if it could before it was to keep it in one piece."""

    def take_in(self, at: int, other: NativeVariable, code: NativeCombine, workers: int) -> None:
        """Combines its variable `at` with another one, which is left empty, by at most so many threads: after a run.

        Raises: Trap.
        """
        machine: Any = self.instance
        code.combine(machine.native.variables[at], other, workers)

    def stop(self) -> None:
        self.instance.stop()

    def rest(self) -> None:
        """Nothing is fired any more: what firings need is for others."""
        self.instance.rest()

    def step(self, control: Control) -> Outcome:
        instance = self.instance
        if not instance.drain():
            return Outcome.FULL
        if self.dead:
            return Outcome.IDLE
        if self.locks and self.held < len(self.locks):
            return Outcome.LOCK if instance.ready() else Outcome.IDLE
        try:
            self.variables.load()
            more = instance.fire()
        except Trap as trap:
            control.trapped(self, trap)
            self.dead, more = True, False
        finally:
            self.variables.store()
            if self.locks:
                control.release(self)
        if self.dead or (instance.over and not any(port.back for port in self.ports)):
            self.close()
        if not instance.drain():
            return Outcome.FULL
        if more:
            return Outcome.MORE
        self.wanting = None if self.dead else instance.wants()
        return Outcome.IDLE


class Deliver(Task):
    """Hands an output to its sink."""

    def __init__(self, index: int, port: Port, sink: Callable[[Items], None] | None, batch: int) -> None:
        super().__init__(index, (port,), ())
        self.port = port
        self.sink = sink
        self.columns: Callable[[Rows], None] | None = getattr(sink, "columns", None)
        self.batch = batch
        self.items = 0

    def step(self, control: Control) -> Outcome:
        port = self.port
        port.fill(self.batch)
        count = min(port.run, self.batch)
        if count:
            self._deliver(port, count)
        elif port.mark() is None:
            return Outcome.IDLE
        return Outcome.MORE if port.fill(1) or port.marks else Outcome.IDLE

    def _deliver(self, port: Port, count: int) -> None:
        """Hands over the next `count` items."""
        if self.columns is not None and isinstance(port, ColumnPort):
            batch, start, stop = port.next(count)
            rows = batch[start:stop]
            port.pop(len(rows))
            self.items += len(rows)
            self.columns(rows)
            return
        items = port.items(count)
        port.pop(count)
        self.items += count
        if self.sink is not None:
            self.sink(items)
