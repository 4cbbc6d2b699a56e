"""A plan run by the scheduler in virtual time: nothing is computed, each item takes an operator the time that it is said to take.

So what a machine with so many processors would take can be known without it, as far as scheduling decides it: queues, bounds,
locks, regions and worklists are those of the plan. Processors are as many as threads, or threads share them alike.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from attrs import frozen

from backends.firing.ports import Out, Port
from backends.firing.queues import UNBOUNDED, Queue
from backends.multicore.assembly import place
from backends.multicore.ordering.reorder import ReorderBuffer, Wait
from backends.multicore.ordering.worklist import Worklist
from backends.multicore.parallel import AHEAD, SLICE, WORTH, portion
from backends.multicore.regions import Region
from backends.multicore.scheduling.ready import ready
from backends.multicore.scheduling.scheduler import Scheduler
from backends.multicore.scheduling.task import Divided, Lock, Outcome, Task
from river.il.model import Stateless
from tests.backends.scheduling_model import Model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backends.multicore.plan import Plan
    from tests.backends.ordering_explorer import Thread

HANDED_OUT = 20e-6
"""Seconds that it takes to hand something out."""


_ENDED = object()


class Timed(Task):
    """Takes what there is, up to a batch, `cost` seconds an item, and sends as many items to each output."""

    def __init__(
        self, index: int, ports: Sequence[Port], outs: Sequence[Out], cost: float, batch: int
    ) -> None:
        super().__init__(index, ports, outs)
        self.item = cost
        self.batch = batch
        self.done = 0

    def drain(self) -> bool:
        return not [out for out in self.outs if not out.drain()]

    def next(self, most: int) -> int:
        """Takes items; how many."""
        for port in self.ports:
            if found := min(port.fill(1), most):
                port.pop(found)
                return found
        return 0

    def send(self, items: int) -> None:
        self.done += items
        for out in self.outs:
            out.add([0] * items)

    def fires(self, model: Model) -> Thread:
        if not self.drain():
            return Outcome.FULL
        if self.held < len(self.locks):
            return Outcome.LOCK if any(port.fill(1) for port in self.ports) else Outcome.IDLE
        items = self.next(self.batch)
        yield items * self.item
        self.send(items)
        if self.locks:
            model.scheduler.released(self)
            model.obey()
        if not self.drain():
            return Outcome.FULL
        return Outcome.MORE if items else Outcome.IDLE


class TimedRegion(Timed, Divided):
    """The same on several workers, in order: `Parallel`, without what it computes."""

    def __init__(self, degree: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.slice = portion(self.batch, self.batch, self.item * self.batch, SLICE)
        self.order: ReorderBuffer[int] = ReorderBuffer(AHEAD * degree, self.send, self.drain)
        self.free = degree
        self.width = self.widest = degree
        self.worklist: Worklist[int, int] = Worklist(self.order, self.found)
        self.detached = (0, 0)

    def found(self) -> int | None:
        return (self.next(self.slice) or None) if self.free else None

    def fires(self, model: Model) -> Thread:
        yield HANDED_OUT
        taken = self.worklist.take()
        if isinstance(taken, Wait):
            return Outcome.FULL if taken is Wait.ROOM else Outcome.IDLE
        self.detached = taken
        self.free -= 1
        return Outcome.SPLIT

    def works(self, serial: int, items: int) -> Thread:
        yield items * self.item
        self.free += 1
        self.worklist.hand_in(serial, items)


@frozen
class Played:
    """What came of it. `seconds`: of the clock. `busy`: of each thread, the reader first. `woken`: how often a worker was."""

    seconds: float
    busy: tuple[float, ...]
    woken: int


def play(model: Model, processors: float = inf) -> Played:
    """Runs the threads of a model. One that yields a number is busy for so many seconds; None is a moment.

    Where more are busy than there are `processors`, all take longer: `done` is what each thread that is busy has done so far.
    """
    threads = model.scenario().threads[:]
    busy, woken = [0.0] * len(threads), 0
    number = count()
    coming: list[tuple[float, int, int]] = [(0.0, next(number), i) for i in range(len(threads))]
    asleep: dict[int, Any] = {}
    done = 0.0
    while coming:
        at, _, i = heappop(coming)
        model.now += (at - done) * max(1.0, (len(coming) + 1) / processors)
        done = at
        wait: Any = next(threads[i], _ENDED)
        if wait is None or isinstance(wait, float):
            busy[i] += wait or 0.0
            heappush(coming, (done + (wait or 0.0), next(number), i))
        elif wait is not _ENDED:
            asleep[i] = wait
        for other in [other for other, wakes in asleep.items() if wakes()]:
            del asleep[other]
            woken += other > 0
            heappush(coming, (done, next(number), other))
    assert not asleep, "some sleep for ever"
    return Played(model.now, tuple(busy), woken)


def planned(
    plan: Plan,
    costs: Mapping[str, float],
    turns: Sequence[int],
    reading: float = 0.0,
    widths: str = "measured",
    processors: float = inf,
) -> Model:
    """A model of a plan with one input. `costs`: seconds an item by instance; `turns`: the items of each, read in `reading`.

    `widths`: how wide regions are (see `Widths`). `processors`: where they are fewer than threads.
    """
    outputs = [edge.name for edge in plan.edges if edge.consumer is None]
    places = {name: len(plan.nodes) + i for i, name in enumerate(outputs)}
    queues = {
        edge.name: Queue(
            edge.name,
            UNBOUNDED if edge.bound is None else edge.bound,
            edge.producer,
            places[edge.name] if edge.consumer is None else edge.consumer,
        )
        for edge in plan.edges
    }
    ports = [Port(queue, None, (), back=False, checked=False) for queue in queues.values()]
    outs = [Out(queue, keyed=False, mixed=False, back=False) for queue in queues.values()]
    locks = [Lock() for _ in plan.locks]

    def timed(index: int) -> Timed:
        ins = [port for port in ports if port.queue.consumer == index]
        puts = [out for out in outs if out.queue.producer == index]
        if index >= len(plan.nodes):
            return Timed(index, ins, puts, 0.0, plan.batch)
        node = plan.nodes[index]
        cost = costs[node.instance.name]
        region = node.region
        if isinstance(region, Region) and isinstance(region.how, Stateless) and cost * plan.batch > WORTH:
            return TimedRegion(region.degree, index, ins, puts, cost, plan.options.batch)
        made = Timed(index, ins, puts, cost, plan.batch)
        made.locks = tuple(locks[i] for i in node.locks)
        return made

    tasks = [timed(index) for index in range(len(plan.nodes) + len(outputs))]
    order = [node.component for node in plan.nodes] + [len(plan.nodes)] * len(outputs)
    place(plan, tasks, order, queues)
    scheduler = Scheduler(
        tasks,
        list(queues.values()),
        ready(plan.choices.scheduler, tasks, order, queues, plan.batch),
        workers=plan.workers,
        cores=int(min(processors, plan.workers + 1)),
        batch=plan.batch,
        bound=max(queue.bound for queue in queues.values()),
        widths=widths,
    )
    entries = [out for out in outs if out.queue.producer is None]
    chunks = [[(0, [0] * items)] for items in turns]
    return Model(scheduler, tasks, list(queues.values()), entries, chunks, {}, seconds=None, reading=reading)
