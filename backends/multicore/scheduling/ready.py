"""The tasks that may have something to do, and which of them comes next: the scheduler's side of `ordering.heuristics`.

What has just got its locks comes before all others: somebody may wait for them.

Paper: Ordered multicore (seed 001) §6.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Final

from backends.multicore.ordering.heuristics import (
    HEURISTICS,
    Heuristic,
    HeuristicConstants,
    Measurements,
    Operator,
    last_in_pipeline,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backends.firing.queues import Queue
    from backends.multicore.scheduling.task import Ready, Task

WINDOW: Final = 0.1
"""Seconds of a window of CT."""


class LastFirst:
    """LP: the last in the direction of the data; of those that stand equally far, which loops make, the first that came.

    What others are at already comes behind all else. Who joined them would help to empty its queue, and then all would wait
    for the one that makes what comes next; as long as somebody is at it, its results are on their way.

    Paper: section 6.2.
    """

    def __init__(self, order: Sequence[int]) -> None:
        self._order = order
        self._heap: list[tuple[bool, float, int, Task]] = []
        self._next = count()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Task]:
        return (task for *_, task in self._heap)

    @property
    def first(self) -> Task:
        return self._heap[0][-1]

    def append(self, task: Task) -> None:
        heappush(self._heap, (task.working > 0, -self._order[task.index], next(self._next), task))

    def appendleft(self, task: Task) -> None:
        heappush(self._heap, (False, -inf, next(self._next), task))

    def popleft(self, now: float, /) -> Task:
        return heappop(self._heap)[-1]


class Chosen:
    """The other heuristics, which look at all operators whenever one is to be chosen: for experiments.

    Where a heuristic would run none, the last in the pipeline is run: bounded queues need somebody to make room.
    """

    def __init__(
        self,
        heuristic: Heuristic,
        tasks: Sequence[Task],
        order: Sequence[int],
        queues: Mapping[str, Queue],
        setting: HeuristicConstants,
    ) -> None:
        self._heuristic = heuristic
        self._setting = setting
        self._chain = sorted(tasks, key=lambda task: order[task.index])
        self._place = {task.index: i for i, task in enumerate(self._chain)}
        self._queues = {name: queue for name, queue in queues.items() if queue.producer is not None}
        self._meters = [Measurements() for _ in self._chain]
        self._seen: list[tuple[int, int, float]] = [(0, 0, 0.0)] * len(self._chain)
        self._producers = [self._before(i, task) for i, task in enumerate(self._chain)]
        self._ready: dict[Task, None] = {}
        self._urgent: deque[Task] = deque()
        self._window = -inf

    def _before(self, place: int, task: Task) -> tuple[int, ...]:
        """Who feeds a task, but for what closes loops."""
        ends = [port.queue.producer for port in task.ports]
        found = {self._place[end] for end in ends if end is not None}
        return tuple(sorted(i for i in found if i < place))

    def __len__(self) -> int:
        return len(self._ready) + len(self._urgent)

    def __iter__(self) -> Iterator[Task]:
        yield from self._urgent
        yield from self._ready

    @property
    def first(self) -> Task:
        if self._urgent:
            return self._urgent[0]
        known = [self._operator(i) for i in range(len(self._chain))]
        found = self._heuristic(known, self._setting)
        if found is None:
            found = last_in_pipeline(known, self._setting)
        return next(iter(self._ready)) if found is None else self._chain[found]

    def append(self, task: Task) -> None:
        self._ready[task] = None

    def appendleft(self, task: Task) -> None:
        self._urgent.appendleft(task)

    def popleft(self, now: float, /) -> Task:
        if now > self._window + WINDOW:
            self._window = now
            for meter in self._meters:
                meter.window()
        task = self.first
        if self._urgent:
            self._urgent.popleft()
        else:
            del self._ready[task]
        return task

    def _operator(self, place: int) -> Operator:
        """What is known of a task; only one that is ready has something to do."""
        task, meter = self._chain[place], self._meters[place]
        now = (sum(p.queue.taken for p in task.ports), sum(o.queue.made for o in task.outs), task.seconds)
        consumed, produced, seconds = (new - old for new, old in zip(now, self._seen[place], strict=True))
        if consumed or seconds:
            meter.add(int(consumed), int(produced), seconds)
            self._seen[place] = now
        return Operator(
            str(task.index),
            queue=max(1, sum(p.queue.size for p in task.ports)) if task in self._ready else 0,
            out=max((o.queue.size for o in task.outs), default=0),
            cost=meter.cost,
            selectivity=meter.selectivity,
            workers=task.working,
            most=task.working + 1,
            spent=meter.spent,
            producers=self._producers[place],
        )


def ready(
    scheduler: str, tasks: Sequence[Task], order: Sequence[int], queues: Mapping[str, Queue], batch: int
) -> Ready:
    """The ready tasks, none yet, in the order of a heuristic of the paper. `order`: of the tasks, with the data."""
    if scheduler == "LP":
        return LastFirst(order)
    return Chosen(HEURISTICS[scheduler], tasks, order, queues, HeuristicConstants(capacity=4 * batch))
