"""Threads around the scheduler, as `dispatch` and `reading` have them, over tasks that are a few lines each.

A thread is a generator that stops before each moment under the lock, and between what a task does to its queues; so
`ordering_explorer.explore` runs all interleavings. Or it says for how long it is busy, and `virtual_time.play` runs all of
them by a clock of its own. Queues, ports and outs are the real ones.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from backends.multicore.scheduling import scheduler as module
from backends.multicore.scheduling.scheduler import READER, ReaderState, Scheduler
from backends.multicore.scheduling.task import Divided, Outcome, State, Task
from tests.backends.ordering_explorer import Scenario, _frozen, _stands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backends.firing.ports import Out, Port
    from backends.firing.queues import Queue
    from backends.multicore.scheduling.task import Lock
    from tests.backends.ordering_explorer import Thread


def with_faults(*faults: tuple[str, str]) -> type[Scheduler]:
    """The scheduler of a text with faults: what stands in it once, and what is to stand there."""
    text = inspect.getsource(module)
    for old, new in faults:
        assert text.count(old) == 1, f"not there once: {old}"
        text = text.replace(old, new)
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(text, "<faulty scheduler>", "exec"), names)  # noqa: S102 - our own module
    names["ReaderState"] = ReaderState  # which others compare with
    return names["Scheduler"]


@frozen
class Kind:
    """What a task does with an item: `makes` says what it sends where. Items in `traps` end it.

    `turns`: its ports take turns; else it takes what there is. `several`: many workers may be at it.
    """

    makes: Callable[[int], Sequence[tuple[int, int]]]
    turns: bool = False
    several: bool = False
    traps: Sequence[int] = ()


class Stage(Task):
    """Takes an item a step. While it fires it must have all its locks."""

    def __init__(
        self,
        index: int,
        ports: Sequence[Port],
        outs: Sequence[Out],
        kind: Kind,
    ) -> None:
        super().__init__(index, ports, outs)
        self.kind = kind
        self.turn = 0
        self.firing = False
        self.dead = False
        self.took: list[int] = []

    def drain(self) -> bool:
        return not [out for out in self.outs if not out.drain()]

    def fires(self, model: Model) -> Thread:
        """`Operate.step`, which returns its outcome."""
        assert not self.firing, "two workers in a task"
        self.firing = True
        if not self.drain():
            return self.leave(Outcome.FULL)
        ports = self.ports[self.turn : self.turn + 1] if self.kind.turns else self.ports
        port = next((port for port in ports if port.fill(1)), None)
        if self.dead or port is None:
            self.wanting = ports[0].queue if len(ports) == 1 and not self.dead else None
            return self.leave(Outcome.IDLE)
        if self.held < len(self.locks):
            return self.leave(Outcome.LOCK)
        assert all(lock.owner is self for lock in self.locks), "fires without its locks"
        (item,) = port.items(1)[:1]
        self.took.append(item)
        port.pop(1)
        if self.locks:
            yield
            assert all(lock.owner is self for lock in self.locks), "loses its locks while it fires"
        if item in self.kind.traps:
            yield
            self.dead = True
            model.scheduler.trapped(0.0)
            model.obey()
            self.close()
        else:
            self.turn = (self.turn + 1) % len(self.ports)
            for to, made in self.kind.makes(item):
                self.outs[to].add([made])
        if self.locks:
            yield
            model.scheduler.released(self)
            model.obey()
        yield
        if not self.drain():
            return self.leave(Outcome.FULL)
        return self.leave(Outcome.MORE)

    def leave(self, outcome: Outcome) -> Outcome:
        self.firing = False
        return outcome


class Shared(Stage, Divided):
    """A stage on several workers: who has taken an item works on it while others take theirs; results go in order."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.taken = 0
        self.due = 0
        self.results: dict[int, int] = {}
        self.detached = (0, 0)

    def fires(self, model: Model) -> Thread:
        assert not self.firing, "two workers in a task"
        self.firing = True
        if not self.send():
            return self.leave(Outcome.FULL)
        yield
        port = self.ports[0]
        if not port.fill(1):
            self.wanting = port.queue
            return self.leave(Outcome.IDLE)
        (item,) = port.items(1)[:1]
        self.took.append(item)
        port.pop(1)
        self.detached = (self.taken, item)
        self.taken += 1
        self.wanting = None if port.fill(1) else port.queue
        return self.leave(Outcome.SPLIT)

    def works(self, serial: int, item: int) -> Thread:
        yield
        self.results[serial] = item
        self.send()

    def send(self) -> bool:
        """Passes on what is due, in one moment: how that is done by many is what the ordering tests are about."""
        while self.due in self.results:
            for to, made in self.kind.makes(self.results.pop(self.due)):
                self.outs[to].add([made])
            self.due += 1
        return self.drain()


class Model:
    """A run: `turns` are what is read, each with the entries and items; `expected` what tasks have taken in the end.

    `seconds`: that a step takes, as the scheduler is told. `grows`: whether a queue may. `pauses`: the reader does behind
    each turn. `stops`: somebody stops the run at any time.

    With a clock, `now` is the time, steps take as long as they take, and reading a turn takes `reading`.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        tasks: Sequence[Any],
        queues: Sequence[Queue],
        entries: Sequence[Out],
        turns: Sequence[Sequence[tuple[int, Any]]],
        expected: Mapping[int, Sequence[int]],
        *,
        seconds: float | None = 1.0,
        reading: float | None = None,
        grows: bool = False,
        pauses: bool = False,
        stops: bool = False,
    ) -> None:
        self.scheduler = scheduler
        self.tasks = tasks
        self.queues = queues
        self.entries = entries
        self.turns = turns
        self.expected = expected
        self.seconds = seconds
        self.reading = reading
        self.now = 0.0
        self.bounds = None if grows else [queue.bound for queue in queues]
        self.pauses = pauses
        self.stops = stops
        self.rung: set[int] = set()
        self.locks: list[Lock] = list({id(lock): lock for task in tasks for lock in task.locks}.values())
        known = [self, scheduler, *tasks, *queues, *entries, *self.locks, self.rung, expected, turns]
        known += [end for task in tasks for end in (*task.ports, *task.outs)]
        self.known = {id(each): place for place, each in enumerate(known)}
        scheduler.start(0.0)

    def scenario(self) -> Scenario:
        threads = [self.reader(), *(self.worker(w) for w in range(self.scheduler.workers))]
        if self.stops:
            threads.append(self.stopper())
        return Scheduled(threads, [], self.ended, self.holds, model=self)

    # -- the threads: `reading` and `dispatch`, line by line

    def obey(self) -> None:
        self.rung.update(self.scheduler.woken)
        self.scheduler.woken.clear()

    def sleep(self, who: int) -> Thread:
        yield lambda: who in self.rung
        self.rung.discard(who)

    def next(self, who: int) -> Thread:
        scheduler = self.scheduler
        if who == READER:
            task = scheduler.light(self.now)
            self.obey()
            return task
        while True:
            task = scheduler.take(who, self.now)
            self.obey()
            if task is not None or scheduler.over or scheduler.stopped:
                return task
            yield from self.sleep(who)

    def run(self, task: Any, who: int) -> Thread:
        while task is not None:
            assert task.cores is None or who in task.cores.workers, "run by somebody else's worker"
            began = self.now
            outcome = yield from task.fires(self)
            yield
            seconds = self.now - began if self.seconds is None else self.seconds
            if outcome is Outcome.SPLIT:
                serial, item = task.detached
                self.scheduler.stepped(task, outcome, seconds, self.now, empty=False)
                self.obey()
                began = self.now
                yield from task.works(serial, item)
                yield
                seconds = self.now - began if self.seconds is None else self.seconds
                self.scheduler.rejoined(task, seconds, self.now)
            else:
                self.scheduler.stepped(task, outcome, seconds, self.now, empty=outcome is Outcome.IDLE)
            task = yield from self.next(who)

    def worker(self, who: int) -> Thread:
        yield
        task = yield from self.next(who)
        yield from self.run(task, who)

    def reader(self) -> Thread:
        scheduler = self.scheduler
        for turn in self.turns:
            yield self.reading
            if not scheduler.read(self.now):
                break
            for to, item in turn:
                self.entries[to].add(item if isinstance(item, list) else [item])
            outs = [self.entries[to] for to in dict(turn)]
            wanted = yield from self.send(outs)
            if not wanted:
                break
            if self.pauses:
                yield
                scheduler.pause()
                self.obey()
                while scheduler.reader is ReaderState.PAUSING:
                    yield from self.sleep(READER)
                if scheduler.wanted:
                    assert not any(task.firing or task.working for task in self.tasks), "moves in a pause"
        yield
        scheduler.end()
        self.obey()

    def send(self, outs: Sequence[Out]) -> Thread:
        scheduler = self.scheduler
        while True:
            yield
            for out in outs:
                out.drain()
            yield
            scheduler.sent(outs)
            began = self.now
            light = (yield from self.next(READER)) if scheduler.helps(many=False) else None
            yield from self.run(light, READER)
            yield
            full = [out.queue for out in outs if out.waiting]
            wanted = scheduler.turned(full, self.now - began, self.now)
            self.obey()
            if not wanted:
                return False
            if not full:
                return True
            while scheduler.reader is ReaderState.BLOCKED:
                yield from self.sleep(READER)

    def stopper(self) -> Thread:
        yield
        self.scheduler.stop(0.0)
        self.obey()

    # -- what holds

    def ready(self) -> list[Any]:
        """What is ready, of anybody's and of each set of workers."""
        return [self.scheduler._ready, *(each.ready for each in self.scheduler._sets)]

    def holds(self) -> None:
        scheduler, tasks = self.scheduler, self.tasks
        for task in tasks:
            mine = [lock.owner is task for lock in task.locks]
            assert mine == [i < task.held for i in range(len(mine))], "locks are not taken in order"
        for each in scheduler._sets:
            awake = set(each.workers) - set(scheduler.asleep)
            assert awake or not each.ready or scheduler.stopped, "ready though all sleep that may run it"
        ready = [task.index for each in self.ready() for task in each]
        assert len(ready) == len(set(ready)), "ready twice"
        queued = {task.index for task in tasks if task.state is State.QUEUED}
        assert queued == set(ready), "what is ready is not what is queued"
        asleep = len(set(scheduler.asleep) - self.rung) == scheduler.workers
        if asleep and scheduler.reader is ReaderState.READING and not scheduler.running:
            assert not ready, "ready though all sleep"  # the next turn may not come for a long time
        assert all(queue.size <= queue.bound for queue in self.queues), "a bound is exceeded"
        assert self.bounds in (None, [queue.bound for queue in self.queues]), "a queue grows"
        if scheduler.over:
            assert not scheduler.running, "over though something runs"
            reads = scheduler.reader is ReaderState.READING and not scheduler.failed
            sends = scheduler.reader is ReaderState.SENDING
            assert not reads, "over though more will come"
            assert not sends, "over though more will come"
            assert not ready

    def ended(self) -> None:
        scheduler = self.scheduler
        assert scheduler.over or scheduler.stopped
        if scheduler.stopped:
            return
        assert {i: self.tasks[i].took for i in self.expected} == self.expected, "not what was wanted"
        assert not any(out.waiting for task in self.tasks for out in task.outs)
        assert all(lock.owner is None and not lock.waiting for lock in self.locks)

    def state(self, number: Mapping[int, int]) -> Any:
        """All that what comes may depend on, but for where threads stand. `number`: by which workers are known here."""
        s = self.scheduler
        return (
            s.reader, s.running, s.over, s.stopped, s.failed, tuple(number[w] for w in s.asleep),
            frozenset(number.get(w, w) for w in self.rung),
            tuple(
                tuple((joined, task.index) for joined, *_, task in sorted(ready._heap, key=lambda entry: entry[:-1]))
                for ready in self.ready()
            ),
            tuple(each.last for each in s._sets),
            tuple(
                (
                    t.state, t.missed, t.held, t.working, t.cost, t.turn, t.firing, t.dead, len(t.took),
                    tuple(tuple(port.held[port.at :]) for port in t.ports),
                    tuple(_frozen([*out._chunks], {}) for out in t.outs),
                    (t.taken, tuple(sorted(t.results.items()))) if isinstance(t, Shared) else None,
                )
                for t in self.tasks
            ),
            tuple(_frozen([*out._chunks], {}) for out in self.entries),
            tuple((q.wanted, q.bound, q.closed, q.size, len(q._chunks)) for q in self.queues),
            tuple((lock.owner and lock.owner.index, tuple(t.index for t in lock.waiting)) for lock in self.locks),
        )  # fmt: skip


@define
class Scheduled(Scenario):
    """A run in one order of its steps."""

    model: Model = field(kw_only=True)

    def key(self) -> int:
        """Workers of a set do the same, so that it does not matter which of them stands where."""
        model, others = self.model, self.model.scheduler.workers + 1
        asleep = model.scheduler.asleep
        set_of = {w: n for n, each in enumerate(model.scheduler._sets) for w in each.workers}
        stands = [
            tuple(each for each in _stands(thread, dict(model.known)) if each[0] != "who")
            for thread in self.threads
        ]
        workers = [
            (set_of.get(w, 0), hash(each), asleep.index(w) if w in asleep else -1, w in model.rung, w)
            for w, each in enumerate(stands[1:others])
        ]
        number = {found[-1]: place for place, found in enumerate(sorted(workers))}
        return hash(
            (model.state(number), stands[0], *sorted(each[:-1] for each in workers), *stands[others:])
        )
