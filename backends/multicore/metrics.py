"""What the scheduler counts: a few numbers a step, none an item. All of it under the scheduler's lock."""

from __future__ import annotations

from heapq import heappop, heappush
from time import perf_counter
from typing import TYPE_CHECKING

from backends.firing.queues import UNBOUNDED
from backends.multicore.scheduling.task import Divided, Outcome, State
from backends.multicore.tasks import Deliver, Operate
from backends.native.batch import strides
from backends.native.layout import Unsupported
from river.classes import define, field
from river.metrics import Durations, Metrics, OperatorFigures, OutputFigures, QueueFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backends.firing.ports import Out
    from backends.firing.queues import Queue
    from backends.multicore.compiled import NativeCode
    from backends.multicore.scheduling.task import Task
    from river.il.graph import Graph
    from river.ingress import Turn


SPACING = 500e-6
"""Seconds between the turns that are followed: to follow one takes as long as to run a short step."""


@define
class Probe:
    """A turn that is followed through the program: it was read at `began`.

    `places`: queues that still hold something of it, with how much must be taken from them; `tickets`: tasks on several
    workers that have taken all of it, with what they still have to send.
    """

    began: float
    places: dict[str, int]
    tickets: dict[int, int] = field(factory=dict[int, int])


@define(eq=False)
class Meter:
    """The counts of a run.

    A turn has passed a task when the task has taken what came of the turn, or can do nothing more before something else
    comes; one turn is followed at a time. `order`: of the tasks, in the direction of the data. `clock`: tells what steps take,
    if not `perf_counter`.
    """

    graph: Graph
    tasks: Sequence[Task]
    order: Sequence[int]
    queues: Mapping[str, Queue]
    compiled: NativeCode
    clock: Callable[[], float] | None = None
    began: float = field(factory=perf_counter)
    inputs: dict[str, int] = field(factory=dict[str, int])
    durations: Durations = field(factory=Durations)
    _probe: Probe | None = None
    _next: float = 0.0  # when a turn may be followed again

    def _width(self, name: str) -> int:
        """How many bytes an item of a queue takes in columns; 0 where its type has none."""
        try:
            return sum(strides(self.graph.queues[name].type))
        except Unsupported:
            return 0

    def sending(self, turn: Turn, entries: Mapping[str, Out]) -> None:
        """A turn has been read and is in the outs of the reader."""
        for name, elements in turn.items:
            self.inputs[name] = self.inputs.get(name, 0) + len(elements)
        if self._probe is None and turn.items and (now := perf_counter()) >= self._next:
            places = {name: entries[name].total for name, _ in (*turn.items, *turn.marks)}
            self._probe, self._next = Probe(now, places), now + SPACING

    def reading(self, name: str) -> Callable[[int], None]:
        """What counts rows of an input that others than the reader read, one of them at a time."""

        def read(rows: int) -> None:
            self.inputs[name] = self.inputs.get(name, 0) + rows

        return read

    def stepped(self, task: Task, outcome: Outcome, seconds: float) -> bool:
        """A task has run for so long. Returns whether it may have been for nothing."""
        task.seconds += seconds
        empty = outcome is Outcome.IDLE
        if isinstance(task, Operate) and task.instance.fired != task.counted:
            task.counted = task.instance.fired
            task.batches += 1
            empty = False
        if self._probe is not None:
            self._follow(self._probe, task, idle=outcome is Outcome.IDLE and not task.missed)
        return empty

    def _follow(self, probe: Probe, task: Task, *, idle: bool) -> None:
        """Sees whether the turn has passed a task, and then those behind it, in the direction of the data."""
        if not self._passed(probe, task, idle=idle):
            return
        behind: list[tuple[int, int]] = []
        self._marked(probe, task, behind)
        while behind:
            _, index = heappop(behind)
            while behind and behind[0][1] == index:
                heappop(behind)
            after = self.tasks[index]
            if after.state is not State.RUNNING and self._passed(
                probe, after, idle=False
            ):  # else it says so itself
                self._marked(probe, after, behind)
        if not probe.places and not probe.tickets:
            self.durations.add(perf_counter() - probe.began)
            self._probe = None

    def _marked(self, probe: Probe, task: Task, behind: list[tuple[int, int]]) -> None:
        """What the task has made of the turn is in its outs."""
        for out in task.outs:
            if not out.back:
                probe.places[out.queue.name] = out.total
                heappush(behind, (self.order[out.queue.consumer], out.queue.consumer))

    @staticmethod
    def _passed(probe: Probe, task: Task, *, idle: bool) -> bool:
        """Whether the turn has passed a task just now."""
        found = False
        for port in task.ports:
            queue = port.queue
            at = probe.places.get(queue.name)
            if at is not None and (queue.closed or queue.taken >= at or (idle and queue.made >= at)):
                del probe.places[queue.name]
                found = True
        if isinstance(task, Divided):
            if found:
                probe.tickets[task.index] = task.given
            found = task.index in probe.tickets and task.sent >= probe.tickets[task.index]
            if found:
                del probe.tickets[task.index]
        return found

    def metrics(self) -> Metrics:
        """What has been counted so far."""
        operators: dict[str, OperatorFigures] = {}
        outputs: dict[str, OutputFigures] = {}
        host_calls: dict[str, int] = {}
        for task in self.tasks:
            if isinstance(task, Operate):
                one = task.instance
                native = task.index in self.compiled.native
                batches, seconds = task.batches + task.apart.batches, task.seconds + task.apart.seconds
                workers = max(task.most, task.apart.workers, min(batches, 1))
                operators[task.name] = OperatorFigures(
                    task.fired,
                    one.skipped,
                    batches,
                    seconds,
                    workers,
                    native,
                    int(task.width) if task.widest else None,
                    task.changed,
                )
                if calls := self.compiled.host_calls(task.index, task.fired):
                    host_calls[task.name] = calls
            elif isinstance(task, Deliver):
                outputs[task.port.queue.name] = OutputFigures(task.items, task.seconds)
        now = perf_counter()
        queues = {
            name: QueueFigures(
                queue.size,
                queue.peak,
                None if queue.bound >= UNBOUNDED else queue.bound,
                queue.waited(now),
                queue.items,
                queue.items * self._width(name),
            )
            for name, queue in self.queues.items()
        }
        latency = self.durations.latency()
        return Metrics(now - self.began, dict(self.inputs), outputs, operators, queues, latency, host_calls)
