"""Single decisions of the scheduler: who is woken for what, by costs and by the time that it is told."""

from __future__ import annotations

import pytest

from backends.firing.ports import Out, Port
from backends.firing.queues import Queue
from backends.multicore.scheduling.ready import LastFirst
from backends.multicore.scheduling.scheduler import HANDOVER, READER, READS, WAKE, ReaderState, Scheduler
from backends.multicore.scheduling.task import Outcome, State, Task
from river.diagnostics import InternalError
from river.lang.values import END


def line(tasks: int = 2, *, workers: int = 2, cores: int = 9, near: tuple[int, ...] = ()):
    """A scheduler of so many tasks, one behind the other, all of which have run once for nothing; workers sleep."""
    queues = [Queue(f"q{i}", 8, i - 1 if i else None, i) for i in range(tasks)]
    ports = [Port(queue, None, (), back=False, checked=False) for queue in queues]
    outs = [Out(queue, keyed=False, mixed=False, back=False) for queue in queues]
    made = [Task(i, [ports[i]], outs[i + 1 : i + 2]) for i in range(tasks)]
    ready = LastFirst(range(tasks))
    scheduler = Scheduler(made, queues, ready, workers=workers, cores=cores, batch=1, bound=1, near=near)
    scheduler.start(0.0)
    while scheduler._ready:
        task = scheduler.take(0, 0.0)
        assert task is not None
        scheduler.stepped(task, Outcome.IDLE, 0.0, 0.0, empty=True)
    for worker in range(workers):
        assert scheduler.take(worker, 0.0) is None
    scheduler.woken.clear()
    return scheduler, made, outs


def comes(scheduler: Scheduler, out: Out, now: float) -> None:
    """A turn of one item is read and put."""
    assert scheduler.read(now)
    out.add([1])
    assert out.drain()
    scheduler.sent([out])


def test_a_light_task_is_the_readers_and_a_heavy_one_wakes_a_worker() -> None:
    for cost, helps in ((HANDOVER / 2, True), (HANDOVER * 2, False)):
        scheduler, (first, _), outs = line()
        first.cost = cost
        comes(scheduler, outs[0], 1.0)
        assert (scheduler.light(1.0) is first) is helps
        assert scheduler.turned([], 0.0, 1.0)
        assert scheduler.woken == ([] if helps else [1])  # who fell asleep last


def test_nobody_is_woken_for_what_is_near() -> None:
    scheduler, (first, _), outs = line(workers=1, cores=1, near=(0, 1))
    first.cost = 1.0
    comes(scheduler, outs[0], 1.0)
    assert scheduler.light(1.0) is first


def test_who_sleeps_is_woken_behind_a_step_that_takes_longer_than_its_like() -> None:
    scheduler, (first, second), outs = line()
    first.cost = second.cost = 0.0
    comes(scheduler, outs[0], 1.0)
    assert scheduler.light(1.0) is first  # and does not come back
    second.cost = 0.0
    outs[1].add([1])
    outs[1].drain()
    scheduler.sent([outs[1]])
    steps = scheduler.look(-1)
    assert scheduler.woken == []
    assert scheduler.look(steps) == steps
    assert scheduler.woken == [1]


@pytest.mark.parametrize("cores", [2, 3])
def test_no_more_are_woken_than_there_are_processors_while_the_reader_reads(cores: int) -> None:
    scheduler, (first, second), outs = line(cores=cores)
    comes(scheduler, outs[0], 1.0)
    assert scheduler.turned([], 0.0, 1.0)
    scheduler.woken.clear()
    assert scheduler.take(1, 1.0) is first
    second.cost = 2 * WAKE
    outs[1].add([1])
    outs[1].drain()
    scheduler.sent([outs[1]])
    first.cost = 2 * WAKE
    comes(scheduler, outs[0], 1.0)
    assert scheduler.turned([], 0.0, 1.0)
    assert scheduler.woken == ([] if cores == 2 else [0])
    assert scheduler.turned([], 0.0, 1.0 + 2 * READS)  # it seems to wait for its source
    assert scheduler.woken == [0]


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(("share", "near"), [(1.2, ()), (0.8, ()), (1.2, (1, 2))])
def test_behind_the_end_of_the_inputs_light_steps_are_shared_that_are_long_together(
    ended: bool, share: float, near: tuple[int, ...]
) -> None:
    scheduler, (first, *others), outs = line(tasks=4, workers=2, near=near)
    comes(scheduler, outs[0], 1.0)
    assert scheduler.take(0, 1.0) is first
    assert scheduler.turned([], 0.0, 1.0)
    if ended:
        scheduler.end()
    scheduler.woken.clear()
    scheduler.asleep[:] = [1]
    for task, out in zip(others, outs[1:], strict=True):
        task.cost = share * HANDOVER / 2  # the first of them is left to who is awake
        out.add([1])
        out.drain()
    first.outs = outs[1:]  # type: ignore[assignment]
    scheduler.stepped(first, Outcome.IDLE, 0.0, 1.0, empty=False)
    assert scheduler.woken == ([1] if ended and share > 1 and not near else [])


def test_a_run_that_cannot_go_on_though_it_is_not_over_says_so() -> None:
    scheduler, (first, _), _ = line()
    scheduler.end()
    assert scheduler.woken == [1]
    scheduler._ready.append(first)
    assert scheduler.take(1, 1.0) is first
    scheduler.stepped(first, Outcome.FULL, 0.0, 1.0, empty=False)
    with pytest.raises(InternalError, match="nothing can run"):
        scheduler.take(1, 1.0)


def test_after_the_end_of_the_inputs_all_are_told_that_the_run_is_over() -> None:
    scheduler, _, _ = line()
    scheduler.end()
    assert scheduler.reader is ReaderState.ENDED
    (worker,) = scheduler.woken
    scheduler.woken.clear()
    assert scheduler.take(worker, 1.0) is None
    assert scheduler.over
    assert READER not in scheduler.woken
    assert len(scheduler.woken) == 2  # the other worker, and who waits for the end


def test_who_wants_items_of_one_queue_is_not_woken_by_those_of_another_but_by_marks() -> None:
    queues = [Queue(name, 8, None, 0) for name in "ab"]
    ports = [Port(queue, None, (), back=False, checked=False) for queue in queues]
    joiner = Task(0, ports, ())
    scheduler = Scheduler([joiner], queues, LastFirst([0]), workers=1, cores=9, batch=1, bound=1)
    a, b = (Out(queue, keyed=False, mixed=False, back=False) for queue in queues)
    scheduler.start(0.0)

    def step() -> None:
        assert scheduler.take(0, 0.0) is joiner
        joiner.wanting = queues[0]
        scheduler.stepped(joiner, Outcome.IDLE, 0.0, 0.0, empty=True)

    step()
    comes(scheduler, b, 1.0)
    assert not scheduler._ready
    comes(scheduler, a, 2.0)
    step()
    b.add_mark(END)
    comes(scheduler, b, 3.0)
    step()
    assert joiner.state is State.IDLE
