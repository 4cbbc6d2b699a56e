"""What workers run: operator instances and sinks as tasks, the locks of variables, and the variables themselves."""

from __future__ import annotations

import math
from collections import Counter, deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from backends.firing.columns import ColumnPort
from backends.multicore.final import Final
from river.lang.evaluate import Trap
from river.lang.values import freezer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backends.firing.instance import Instance
    from backends.firing.ports import Out, Port
    from backends.multicore.compiled import Compiled
    from backends.multicore.plan import Plan
    from backends.multicore.run import Engine
    from backends.multicore.sharded import Whole
    from backends.native.operator import Variable
    from river.backend import Items, Rows


class State(Enum):
    """Where a task stands."""

    IDLE = auto()  # until input arrives
    QUEUED = auto()
    RUNNING = auto()
    FULL = auto()  # until there is room for its output
    LOCKING = auto()  # until it has its locks


class Outcome(Enum):
    """What came of running a task."""

    IDLE = auto()
    MORE = auto()
    FULL = auto()
    LOCK = auto()
    SPLIT = auto()  # the worker goes on with something for itself, the task may be run again at once


class Lock:
    """A lock of variables that hands itself to whoever waits longest. Used under the scheduler's lock only."""

    __slots__ = ("owner", "waiting")

    def __init__(self) -> None:
        self.owner: Task | None = None
        self.waiting: deque[Task] = deque()


class Task:
    """Something that a worker runs.

    `locks`: what it acquires, in standard order, `held` of them are its own now. `missed`: input came while it ran.
    `working`: workers that go on with something that they took out of it (`Outcome.SPLIT`).
    `seconds`: how long workers ran it; `batches`: how often something was fired, `counted` firings so far.
    """

    def __init__(self, index: int, ports: Sequence[Port], outs: Sequence[Out]) -> None:
        self.index = index
        self.ports = ports
        self.outs = outs
        self.state = State.IDLE
        self.missed = False
        self.cost = math.inf  # seconds of a step, smoothed; not known yet
        self.locks: tuple[Lock, ...] = ()
        self.held = 0
        self.working = 0
        self.seconds = 0.0
        self.batches = 0
        self.counted = 0

    def step(self, engine: Engine) -> Outcome:
        """Does what there is to do, up to a batch."""
        raise NotImplementedError

    def learn(self, seconds: float, *, empty: bool) -> None:
        """A step has taken so long. Those that found nothing to do count little, and long ones less than short ones.

        The first steps are long because memory is new and nothing is in the caches, others because somebody else had the
        processor.
        """
        if self.cost == math.inf:
            self.cost = seconds
        else:
            self.cost += (seconds - self.cost) / (8 if empty else 4 if seconds > self.cost else 2)

    def stop(self) -> None:
        """Ends a firing that is under way soon."""

    def close(self) -> None:
        """Takes nothing any more."""
        for port in self.ports:
            port.queue.close()


class Operate(Task):
    """An operator instance. Paper: River Fig. 2 (`process`)."""

    def __init__(self, index: int, instance: Instance, name: str, variables: Variables) -> None:
        super().__init__(index, instance.ports, instance.outs)
        self.instance = instance
        self.name = name
        self.variables = variables
        self.dead = False

    def stop(self) -> None:
        self.instance.stop()

    def step(self, engine: Engine) -> Outcome:
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
            engine.trapped(self, trap)
            self.dead, more = True, False
        finally:
            self.variables.store()
            if self.locks:
                engine.release(self)
        if self.dead or (instance.over and not any(port.back for port in self.ports)):
            self.close()
        if not instance.drain():
            return Outcome.FULL
        return Outcome.MORE if more else Outcome.IDLE


class Deliver(Task):
    """Hands an output to its sink."""

    def __init__(self, index: int, port: Port, sink: Callable[[Items], None] | None, batch: int) -> None:
        super().__init__(index, (port,), ())
        self.port = port
        self.sink = sink
        self.columns: Callable[[Rows], None] | None = getattr(sink, "columns", None)
        self.batch = batch
        self.items = 0

    def step(self, engine: Engine) -> Outcome:
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


class Variables:
    """The variables of an instance as the list that its firings use.

    Instances with the same variables share one list. A variable that stands in several lists lives in `shared` between
    firings; `moved` says where in the list such variables have their place.
    """

    __slots__ = ("_moved", "_shared", "values")

    def __init__(self, values: list[Any], moved: Sequence[tuple[int, str]], shared: dict[str, Any]) -> None:
        self.values = values
        self._moved = moved
        self._shared = shared

    def load(self) -> None:
        """Brings the values of shared variables into the list. Under the locks."""
        for place, name in self._moved:
            self.values[place] = self._shared[name]

    def store(self) -> None:
        """Takes them back. Under the locks."""
        for place, name in self._moved:
            self._shared[name] = self.values[place]


class Store:
    """The variables of a run."""

    def __init__(self, plan: Plan, compiled: Compiled) -> None:
        self._compiled = compiled.variables
        self._wholes: dict[str, Whole] = {}
        self._native: dict[str, Variable | Whole] = {**compiled.variables}
        lists = dict.fromkeys(
            node.instance.variables for node in plan.nodes if node.instance.index not in compiled.native
        )
        homes = Counter(name for names in lists for name in names)
        initial = {
            variable.name: variable.initial
            for variable in plan.graph.variables
            if variable.name not in self._native
        }
        self._shared = {name: initial[name] for name in initial if homes[name] != 1}
        self._lists = {names: [initial[name] for name in names] for names in lists}
        self._types = {variable.name: variable.type for variable in plan.graph.variables}

    def of(self, names: tuple[str, ...]) -> Variables:
        """The variables of an instance."""
        moved = [(place, name) for place, name in enumerate(names) if name in self._shared]
        return Variables(self._lists[names], moved, self._shared)

    def keep(self, name: str, whole: Whole) -> None:
        """Leaves a variable in native memory to somebody who may divide it."""
        self._native[name] = self._wholes[name] = whole

    def parts(self, name: str) -> tuple[Variable, ...]:
        """Where machine code keeps a variable: several places, if its entries were dealt; none, if Python keeps it."""
        if name in self._wholes:
            whole = self._wholes[name]
            return tuple(whole.parts) or (whole.variable,)
        return (self._compiled[name],) if name in self._compiled else ()

    def restore(self, values: Mapping[str, Any]) -> None:
        """Gives the variables other values, which are frozen."""
        for name in self._shared:
            self._shared[name] = values[name]
        for names, kept in self._lists.items():
            kept[:] = [values[name] for name in names]
        for name, variable in self._native.items():
            variable.set(values[name])

    def final(self) -> Mapping[str, Any]:
        """The values now, frozen."""
        found = dict(self._shared)
        for names, values in self._lists.items():
            found |= {
                name: value for name, value in zip(names, values, strict=True) if name not in self._shared
            }
        for name, value in found.items():
            freeze = freezer(self._types[name])
            found[name] = value if freeze is None else freeze(value)
        return Final(self._types, found, self._native)
