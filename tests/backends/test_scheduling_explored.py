"""Every interleaving of threads around the scheduler: nothing is lost, nobody sleeps for ever, and a run ends when it is over.

Run with `-s` to see how many states there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backends.firing.ports import Out, Port
from backends.firing.queues import UNBOUNDED, Queue
from backends.multicore.scheduling.ready import LastFirst
from backends.multicore.scheduling.scheduler import Scheduler
from backends.multicore.scheduling.task import CoreSet, Lock
from tests.backends.ordering_explorer import Explored, Violation, explore
from tests.backends.scheduling_model import Kind, Model, Shared, Stage, with_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.backends.ordering_explorer import Scenario

Edge = tuple[int | None, int]
"""A queue: the task that puts, None for the reader, and the one that takes."""

SAME = Kind(lambda item: [(0, item)])
ENDS = Kind(lambda _: [])
BOTH = Kind(lambda item: [(0, item), (1, item)])
FOURTH = Kind(lambda item: [(0, item)] if item == 4 else [])
PAIR = Kind(lambda _: [], turns=True)
DOWN = Kind(lambda item: [(0, item - 1)] if item else [(1, item)])  # around a loop
SEVERAL = Kind(lambda item: [(0, item)], several=True)


def run(
    kinds: Sequence[Kind],
    edges: Sequence[Edge],
    turns: Sequence[Sequence[tuple[int, int]]],
    expected: dict[int, list[int]],
    *,
    scheduler: type[Scheduler] = Scheduler,
    workers: int = 2,
    cores: int = 9,
    locks: Sequence[Sequence[int]] = (),
    places: Sequence[range | None] = (),
    widths: str = "fixed",
    **options: Any,
) -> Callable[[], Scenario]:
    """A run. A queue holds one item, but for those that lead from a task to itself. `places`: the workers of each task.

    `widths`: how wide a task of several workers is.
    """

    def make() -> Scenario:
        queues = [
            Queue(f"q{i}", UNBOUNDED if producer == consumer else 1, producer, consumer)
            for i, (producer, consumer) in enumerate(edges)
        ]
        ports = [Port(queue, None, (), back=False, checked=False) for queue in queues]
        outs = [Out(queue, keyed=False, mixed=False, back=False) for queue in queues]
        made = [Lock() for _ in range(1 + max((place for each in locks for place in each), default=0))]
        tasks: list[Stage] = []
        sets = {each: CoreSet(each, LastFirst(range(len(kinds)))) for each in places if each is not None}
        for index, kind in enumerate(kinds):
            task = (Shared if kind.several else Stage)(
                index,
                [port for port in ports if port.queue.consumer == index],
                [out for out in outs if out.queue.producer == index],
                kind,
            )
            task.locks = tuple(made[place] for place in locks[index]) if locks else ()
            if kind.several and widths != "fixed":
                task.width = task.widest = workers
            task.cores = next((sets[each] for each in places[index : index + 1] if each is not None), None)
            tasks.append(task)
        ready = LastFirst(range(len(tasks)))
        machine = scheduler(
            tasks, queues, ready, workers=workers, cores=cores, batch=1, bound=1, widths=widths
        )
        entries = [out for out in outs if out.queue.producer is None]
        return Model(machine, tasks, queues, entries, turns, expected, **options).scenario()

    return make


LINE: Any = {
    "kinds": [SAME, ENDS], "edges": [(None, 0), (0, 1)], "turns": [[(0, 1)], [(0, 2)]], "expected": {1: [1, 2]},
}  # fmt: skip
BLOCKS: Any = {
    "kinds": [ENDS],
    "edges": [(None, 0)],
    "turns": [[(0, 1), (0, 2), (0, 3)]],
    "expected": {0: [1, 2, 3]},
}
LOCKS: Any = {
    "kinds": [ENDS, ENDS], "edges": [(None, 0), (None, 1)], "turns": [[(0, 1), (1, 2)]], "expected": {0: [1], 1: [2]},
    "locks": [[0, 1], [0, 1]],
}  # fmt: skip
SHARED: Any = {
    "kinds": [SEVERAL, ENDS], "edges": [(None, 0), (0, 1)], "turns": [[(0, 1), (0, 2)]], "expected": {1: [1, 2]},
}  # fmt: skip
QUIET: Any = {
    "kinds": [BOTH, FOURTH, PAIR], "edges": [(None, 0), (0, 2), (0, 1), (1, 2)],
    "turns": [[(0, 1), (0, 2), (0, 3), (0, 4)]], "expected": {1: [1, 2, 3, 4], 2: [1, 4, 2]}, "grows": True,
}  # fmt: skip
LOOP: Any = {
    "kinds": [DOWN, ENDS], "edges": [(None, 0), (0, 0), (0, 1)], "turns": [[(0, 2)]], "expected": {1: [0]},
}  # fmt: skip
TRAP: Any = {**BLOCKS, "kinds": [Kind(lambda _: [], traps=[2])], "expected": {0: [1, 2]}}

ALONE: Any = {
    **LINE, "workers": 1, "turns": [[(0, 1)], [(0, 2), (0, 3)], [(0, 4)]], "expected": {1: [1, 2, 3, 4]},
}  # fmt: skip
"""Reading takes no time, and steps a second: after the first turns the reader does all by itself."""

LONE: Any = {**BLOCKS, "kinds": [Kind(lambda _: [], several=True)]}

GROUPS: Any = {**LINE, "places": [range(1), range(1, 2)]}

RUNS: dict[str, Any] = {
    "a line": LINE,
    "a line, one worker": {**LINE, "workers": 1},
    "a line that the reader takes over": ALONE,
    "a line that the reader takes over, with pauses": {**ALONE, "pauses": True},
    "a line that the reader takes over, stopped": {
        **ALONE,
        "turns": [[(0, 1)], [(0, 2)]],
        "expected": {1: [1, 2]},
        "stops": True,
    },
    "locks that the reader takes over": {**ALONE, "locks": [[0], [0]]},
    "a line, light steps": {**LINE, "seconds": 0.0},
    "a line with pauses": {**LINE, "pauses": True},
    "a reader that is blocked": BLOCKS,
    "a reader that is blocked, light steps": {**BLOCKS, "seconds": 0.0},
    "a reader that is blocked, few processors": {**BLOCKS, "cores": 2},
    "a reader that is blocked, one worker that is stopped": {**BLOCKS, "stops": True, "workers": 1},
    "locks": LOCKS,
    "several workers in a task": LONE,
    "several workers, now more and now fewer, in a task": {
        **LONE,
        "turns": [[(0, 1), (0, 2)], [(0, 3)]],
        "widths": "changing",
    },
    "groups, light steps": {**GROUPS, "seconds": 0.0},
    "groups that are stopped": {**GROUPS, "turns": [[(0, 1)]], "stops": True, "expected": {1: [1]}},
    "groups with pauses": {**GROUPS, "turns": [[(0, 1)]], "expected": {1: [1]}, "pauses": True},
    "groups with locks": {**LOCKS, "places": [range(1), range(1, 2)]},
    "a quiet branch": {**QUIET, "workers": 1},
    "a loop": LOOP,
    "a trap": TRAP,
    "a trap, light steps": {**TRAP, "seconds": 0.0},
}
LARGER: dict[str, Any] = {
    "a line, few processors": {**LINE, "cores": 2},
    "a line that is stopped": {**LINE, "stops": True},
    "a line, three workers": {**LINE, "workers": 3},
    "a longer line": {
        **LINE, "kinds": [SAME, SAME, ENDS], "edges": [(None, 0), (0, 1), (1, 2)], "expected": {2: [1, 2]}
    },
    "a reader that is blocked and stopped": {**BLOCKS, "stops": True},
    "locks of three": {
        **LOCKS, "kinds": [ENDS] * 3, "edges": [(None, 0), (None, 1), (None, 2)], "turns": [[(0, 1), (1, 2), (2, 3)]],
        "expected": {0: [1], 1: [2], 2: [3]}, "locks": [[0, 1], [1, 2], [0, 2]],
    },
    "locks in a line": {**LINE, "locks": [[0], [0]]},
    "several workers in a task": SHARED,
    "several workers, now more and now fewer, in a task before another": {
        **SHARED, "turns": [[(0, 1)], [(0, 2)]], "widths": "changing",
    },
    "several workers in a task with pauses": {**SHARED, "pauses": True},
    "a quiet branch": QUIET,
    "a loop, three workers": {**LOOP, "workers": 3},
    "groups": GROUPS,
    "a group, and what anybody runs": {**LINE, "places": [range(1), None]},
    "groups of several workers": {**SHARED, "workers": 3, "places": [range(1, 3), range(1)]},
    "a quiet branch in groups": {**QUIET, "places": [range(1), range(1, 2), range(1)]},
}  # fmt: skip


def show(name: str, explored: Explored) -> None:
    print(f"\n{name}: {explored}")


@pytest.mark.some(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_lost_and_nobody_sleeps_for_ever(name: str) -> None:
    show(name, explore(run(**RUNS[name])))


@pytest.mark.long
@pytest.mark.parametrize("name", LARGER)
def test_nothing_is_lost_in_larger_runs(name: str) -> None:
    show(name, explore(run(**LARGER[name])))


FAULTS: dict[str, tuple[tuple[str, str], str, dict[str, Any]]] = {
    "input that came while a task ran is forgotten": (
        ("                if task.missed:\n                    self._queue(task)\n", "                pass\n"),
        "no thread can go on|not what was wanted",
        BLOCKS,
    ),
    "a task that runs is woken": (
        (
            "if task.state is State.IDLE:\n            self._queue(task)",
            "if task.state is not State.QUEUED:\n            self._queue(task)",
        ),
        "is not what is queued",
        BLOCKS,
    ),
    "room that was made while a task ran is forgotten": (
        ("if others or any(queue.room > 0 for queue in full):", "if others:"),
        "a queue grows",
        LINE,
    ),
    "the reader is not told of room": (
        (
            "        if queue.producer is None:\n            self._let_go(now)\n        elif ",
            "        if queue.producer is not None and ",
        ),
        "nothing can run",
        BLOCKS,
    ),
    "nobody is woken for what the reader leaves": (
        ("        if self._ready:\n            self._attend()\n        self._call(0, now)\n", ""),
        "ready though all sleep",
        LINE,
    ),
    "nobody is woken at the end": (
        (
            "        self.reader = ReaderState.ENDED\n        self._attend()\n",
            "        self.reader = ReaderState.ENDED\n",
        ),
        "no thread can go on",
        BLOCKS,
    ),
    "nobody is woken when the run is over": (
        ("        self.over = True\n        self._rouse(len(self.asleep))\n", "        self.over = True\n"),
        "no thread can go on",
        BLOCKS,
    ),
    "what is ready is left to a reader that waits for room": (
        ("return self._inline and self.reader is ReaderState.SENDING", "return self._inline"),
        "no thread can go on|ready though all sleep",
        ALONE,
    ),
    "over while the reader reads": (
        ("            if self.running or self._more_comes() or any(", "            if self.running or any("),
        "over though",
        LINE,
    ),
    "over while something runs": (
        ("            if self.running or self._more_comes() or any(", "            if self._more_comes() or any("),
        "nothing can run|over though",
        BLOCKS,
    ),
    "after a trap over though the reader still sends": (
        ("return self.reader is ReaderState.SENDING or (", "return ("),
        "over though",
        TRAP,
    ),
    "a lock is taken from its owner": (
        (
            "            if lock.owner is not None:\n                lock.waiting.append(task)\n                return\n",
            "",
        ),
        "loses its locks|locks are not taken in order",
        LOCKS,
    ),
    "a lock is not handed on": (
        (
            "                lock.owner = heir\n                heir.held += 1\n                self._acquire(heir)\n",
            "                pass\n",
        ),
        "nothing can run|no thread can go on",
        LOCKS,
    ),
    "who has worked beside a task does not wake it": (
        (
            "        if task.wanting is None or any(out.waiting for out in task.outs):\n            self._wake(task)\n",
            "",
        ),
        "not what was wanted|nothing can run|no thread can go on",
        SHARED,
    ),
    "who has worked beside a task does not wake it for what it could not put": (
        ("        if task.wanting is None or any(out.waiting for out in task.outs):", "        if task.wanting is None:"),
        "not what was wanted|nothing can run|no thread can go on|a queue grows",
        SHARED,
    ),
    "who wants items of a queue is not woken by them": (
        ("task.wanting not in (None, out.queue)", "task.wanting is not None"),
        "not what was wanted|nothing can run|no thread can go on|a queue grows",
        BLOCKS,
    ),
    "what came for who has as many workers as it may is forgotten": (
        ("        task.wanting = None\n        if task.working >= task.width", "        if task.working >= task.width"),
        "not what was wanted|nothing can run|no thread can go on",
        RUNS["several workers, now more and now fewer, in a task"],
    ),
    "a pause that does not wait for who works": (
        ("            self.reader = ReaderState.PAUSING\n            self._attend()\n", "            pass\n"),
        "moves in a pause",
        {**LINE, "pauses": True},
    ),
    "nobody of a group is woken for what others leave": (
        (
            "        if self._sets:\n            self._summon()\n        if not self.asleep",
            "        if not self.asleep",
        ),
        "ready though all sleep that may run it",
        GROUPS,
    ),
    "over while others of a group have something to do": (
        (" or any(each.ready for each in self._sets):\n", ":\n"),
        "nothing can run|over though",
        GROUPS,
    ),
    "a pause that nobody ends": (
        ("        if self.reader is ReaderState.PAUSING:\n            self._let_go(now)\n            return\n", ""),
        "over though|no thread can go on",
        {**LINE, "pauses": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_scheduler_is_found(name: str) -> None:
    fault, said, options = FAULTS[name]
    with pytest.raises(Violation, match=said) as found:
        explore(run(**options, scheduler=with_faults(fault)))
    print(f"\n{name}: {found.value}")
