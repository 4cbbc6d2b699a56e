"""Which task comes next, by the heuristics of the ordered multicore paper over the tasks of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backends.firing.ports import Out, Port
from backends.firing.queues import Queue
from backends.multicore.experiments import EXPERIMENTS
from backends.multicore.scheduling.ready import LastFirst, ready
from backends.multicore.scheduling.task import Task

if TYPE_CHECKING:
    from backends.multicore.scheduling.task import Ready

ORDER = [0, 1, 2, 2]


def chain() -> tuple[list[Task], dict[str, Queue]]:
    """Four tasks, one behind the other; the last two are equally far."""
    queues = {f"q{i}": Queue(f"q{i}", 100, i - 1 if i else None, i) for i in range(4)}
    tasks: list[Task] = []
    for i in range(4):
        port = Port(queues[f"q{i}"], None, (), back=False, checked=False)
        outs = [Out(queues[f"q{i + 1}"], keyed=False, mixed=False, back=False)] if i < 3 else []
        tasks.append(Task(i, (port,), outs))
    return tasks, queues


def of(scheduler: str) -> tuple[Ready, list[Task], dict[str, Queue]]:
    tasks, queues = chain()
    return ready(scheduler, tasks, ORDER, queues, 8), tasks, queues


def taken(found: Ready) -> list[int]:
    order: list[int] = []
    while len(found):
        first = found.first
        assert found.popleft(0.0) is first
        order.append(first.index)
    return order


def put(queue: Queue, count: int) -> None:
    queue.put(list(range(count)))


@pytest.mark.parametrize("scheduler", EXPERIMENTS["scheduler"])
def test_what_was_added_is_taken_once(scheduler: str) -> None:
    found, tasks, _ = of(scheduler)
    for i in (1, 0, 3, 2):
        found.append(tasks[i])
    assert {task.index for task in found} == {0, 1, 2, 3}
    assert len(found) == 4
    assert sorted(taken(found)) == [0, 1, 2, 3]
    assert not len(found)


@pytest.mark.parametrize("scheduler", EXPERIMENTS["scheduler"])
def test_who_has_got_his_locks_comes_first(scheduler: str) -> None:
    found, tasks, _ = of(scheduler)
    for i in (3, 1):
        found.append(tasks[i])
    found.appendleft(tasks[0])
    assert taken(found)[0] == 0


def test_lp_takes_the_last_and_in_a_loop_the_first_that_came() -> None:
    found, tasks, _ = of("LP")
    assert isinstance(found, LastFirst)
    for i in (0, 3, 2, 1):
        found.append(tasks[i])
    assert taken(found) == [3, 2, 1, 0]


def test_lp_takes_what_others_are_at_behind_all_else() -> None:
    found, tasks, _ = of("LP")
    tasks[3].working = tasks[1].working = 1
    for i in (3, 1, 0):
        found.append(tasks[i])
    found.appendleft(tasks[2])
    assert taken(found) == [2, 0, 3, 1]


def test_qst_takes_the_first_until_it_has_made_enough() -> None:
    found, tasks, queues = of("QST")
    for i in (0, 1):
        put(queues[f"q{i}"], 30)
        found.append(tasks[i])
    assert found.first is tasks[1]  # 4 batches of 8 items are the capacity of four queues: 8 each
    queues["q1"].took(30)
    assert found.first is tasks[0]


def test_et_takes_whose_queue_lasts_longest() -> None:
    found, tasks, queues = of("ET")
    for i, (waiting, seconds) in enumerate(((10, 1.0), (10, 3.0), (30, 0.5))):
        queue = queues[f"q{i}"]
        put(queue, waiting + 10)
        queue.took(10)
        tasks[i].seconds = seconds  # of ten items
        found.append(tasks[i])
    assert taken(found) == [1, 2, 0]


def test_ct_takes_who_handled_least_in_this_window() -> None:
    found, tasks, queues = of("CT")
    for i, (items, seconds) in enumerate(((40, 4.0), (10, 2.0), (20, 2.0))):
        queue = queues[f"q{i}"]
        put(queue, items + 1)
        queue.took(items)
        tasks[i].seconds = seconds
        found.append(tasks[i])
    assert found.first.index == 1


def test_where_nothing_should_run_the_last_is_run() -> None:
    found, tasks, queues = of("QST")
    for i in (0, 1):
        put(queues[f"q{i}"], 30)
        found.append(tasks[i])
    put(queues["q2"], 30)
    assert found.first is tasks[1]


def test_what_nobody_put_into_a_queue_is_run_too() -> None:
    found: Any
    found, tasks, _ = of("ET")
    found.append(tasks[2])
    assert taken(found) == [2]
