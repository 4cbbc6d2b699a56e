"""The scheduler of a run: what is ready, who takes it, who wakes, who waits for room or locks, what grows, when it is over.

A task is an operator instance or a sink; workers take tasks that may have something to do, one worker a task. One more
thread reads the sources. A task that finds no room for its output is set aside until there is some and does not run
(Fig. 2); no worker ever waits for room or for a lock of variables. A task that belongs to some of the workers (`CoreSet`) is
run by nobody else, and these take turns between such tasks and those that anybody may run. When nothing can move and somebody
waits for room, the smallest full queue whose consumer starves on another input grows (il.md P8).

Events are methods, one at a time. The time is a value that comes with them, `now`: seconds of any clock that does not go back.
Decisions are what they return, and `woken`.

Paper: River Fig. 2, §2.4, §4.5.
"""

from __future__ import annotations

from enum import Enum, auto
from itertools import islice
from math import inf
from operator import add
from typing import TYPE_CHECKING, Final

from backends.multicore.scheduling.task import Outcome, State
from backends.multicore.scheduling.widths import Widths
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from backends.firing.ports import Out
    from backends.firing.queues import Queue
    from backends.multicore.scheduling.task import CoreSet, Ready, Task

HANDOVER: Final = 200e-6
"""Seconds that a step must take for a worker to be woken for it: shorter ones are sooner done by the reader."""

WAKE: Final = 1500e-6
"""The same for all steps that one more worker has to do: it fetches what is in the cache of the one that is awake."""

IDLE: Final = 0.5
"""Which part of the work the reader's processor must have time for besides reading, for another worker to be woken for it,"""

GAINED: Final = 0.2
"""and which part of the work is not one task's alone. Where that is less, three threads on two processors gain nothing."""

NOTHING: Final = 1 / 32
"""Which part of the work of all tasks reading takes, at most, where a thread of its own gains nothing for one worker."""

READS: Final = 2e-3
"""Seconds after a turn for which the reader is taken to be at work on the next one, and not to wait for it."""

READER: Final = -1
"""The thread that reads the sources, where workers have their numbers from 0 on."""

CALLER: Final = -2
"""The thread that waits for the end of the run."""


class ReaderState(Enum):
    """Where the reader stands."""

    READING = auto()  # waits for the sources, for ever it may be
    SENDING = auto()  # what it has read, or helps to handle it
    BLOCKED = auto()  # until there is room for what it has read
    PAUSING = auto()  # until nothing moves
    ENDED = auto()


class Scheduler:
    """The state of scheduling, and what happens to it.

    `woken`: who sleeps and is to wake, workers, `READER` or `CALLER`, since it was emptied last: whoever calls sees to it.
    `asleep`: the workers that sleep, the last to fall asleep last. `running`: steps under way, those of the reader included.
    `over`: nothing is left to do. `stopped`: nothing more is to be done. `failed`: an item traps, so nothing more is read.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        queues: Collection[Queue],
        ready: Ready,
        *,
        workers: int,
        cores: int,
        batch: int,
        bound: float = inf,
        near: Collection[int] = (),
        widths: str = "fixed",
        show: Callable[[], str] = str,
    ) -> None:
        """`bound`: of the longest queue. `show`: the plan, for who has to find out why nothing can run.

        `near`: tasks that nobody is woken for if the reader can run them, however long they take; that is so where there is
        one processor. `widths`: see `Widths`.
        """
        self.tasks = tasks
        self.queues = queues
        self.workers = workers
        self.reader = ReaderState.READING
        self.running = 0
        self.steps = 0
        self.asleep: list[int] = []
        self.woken: list[int] = []
        self.over = False
        self.stopped = False
        self.failed = False
        self._ready = ready  # what anybody may run
        self._sets = tuple(dict.fromkeys(task.cores for task in tasks if task.cores is not None))
        self._set_of: dict[int, CoreSet] = {w: each for each in self._sets for w in each.workers}
        self._cores = cores
        self._batch = batch
        # A step so short that all that a full queue asks for are not worth waking somebody.
        self._light_step = WAKE / max(1.0, bound / batch)
        self._near = frozenset(near)
        self._alone = workers == 1 and cores == 1
        self._full: Sequence[Queue] = ()  # the queues that the reader waits for
        self._sent_at = -inf
        self._between = 0.0  # seconds of the reader for reading a turn, and then for helping, smoothed
        self._helping = 0.0
        self._working = 0.0  # seconds of all tasks for a turn, smoothed
        self._inline = False  # whether the reader does what comes of a turn, and the only worker sleeps
        self._stepping = [0.0] * len(tasks)  # seconds of each task since a turn was read
        self._stepped = [0.0] * len(tasks)  # and before, since the reader had to wait for room
        self._handed = 0.0  # seconds of what several workers did of one task, since then
        self._read = 0.0  # seconds of the reader for reading, since then
        self._spare = (
            0.0  # seconds that one more worker would have had to do from one such wait to the next, smoothed
        )
        self._widths = Widths(tasks, workers, widths if workers > 1 else "fixed")
        self._show = show

    # -- the run

    def start(self, now: float) -> None:
        """All tasks may have something to do: initial items, or what a checkpoint left."""
        self._sent_at = now - READS
        self._widths.start(now)
        for task in self.tasks:
            self._wake(task)

    def stop(self, now: float) -> None:
        """Nothing more is to be done."""
        self.stopped = True
        self._rouse(len(self.asleep))
        self._let_go(now)
        self.woken.append(CALLER)

    def trapped(self, now: float) -> None:
        """An item has trapped, or cannot be taken: nothing more is read, what was is finished."""
        self.failed = True
        self._let_go(now)

    @property
    def wanted(self) -> bool:
        """Whether more is to be read."""
        return not (self.stopped or self.failed)

    def spare(self) -> int:
        """How many workers have nothing to do, one not counted whose processor the reader has."""
        return self.workers - self.running - 1

    def look(self, steps: int) -> int:
        """Time has passed since somebody looked and there had been so many `steps`. How many there have been now.

        If that are no more, somebody is at a step that takes longer than its like did before, and a worker more wakes.
        """
        if self.steps == steps and not (self._alone and self.running):
            if self._ready:
                self._rouse()
            for each in self._sets:
                if each.ready:
                    self._rouse(1, each)
        return self.steps

    # -- the reader

    def read(self, now: float) -> bool:
        """A turn has been read, and is about to be sent. Whether it is wanted."""
        if not self.wanted:
            return False
        self.reader = ReaderState.SENDING
        between, working = now - self._sent_at, sum(self._stepping)
        self._between += (between - self._between) / 8
        self._working += (working - self._working) / 8
        self._inline = self.workers == 1 and not self._sets and self._between < NOTHING * self._working
        self._read += between
        self._stepped = [*map(add, self._stepped, self._stepping)]
        self.delivered(now)
        return True

    def delivered(self, now: float) -> None:
        """A turn is about to be sent, by the reader or by a task that reads: tasks may become wider or narrower."""
        wider = self._widths.turn(self._stepping, now)
        self._stepping = [0.0] * len(self._stepping)
        for task in wider:
            if task.working:  # else it waits for nobody who is at it
                self._wake(task)

    def sent(self, outs: Iterable[Out]) -> None:
        """The reader has put of a turn what there was room for."""
        self._delivered(outs)
        self._summon()

    def helps(self, *, many: bool) -> bool:
        """Whether the reader runs light tasks itself before it reads on. `many`: its turn is large.

        That is so as long as reading takes longer. Where it does not, a worker that has been woken finds the next turn when it
        is done with the last, so that it need not be woken again. Where reading takes nothing, and there is one worker, the
        reader does all: the two would only wait for one another.
        """
        return not many or self._helping <= self._between or self._alone or self._inline

    def light(self, now: float) -> Task | None:
        """A task for the reader, sooner done than a worker woken, or its own; None where workers are awake, or should be."""
        if not self._ready or self.running or self.stopped:
            return None
        task = self._ready.first
        return None if not self._inline and self._far(task, task.cost, HANDOVER) else self._taken(now)

    def turned(self, full: Sequence[Queue], helped: float, now: float) -> bool:
        """The reader is done with a turn, but for what found no room in some queues. Whether more is wanted of it.

        If there is room in none of these, it is `BLOCKED` until there is. `helped`: for how many seconds it ran tasks.
        """
        if helped:
            self._helping += (helped - self._helping) / 8
        if self._ready:
            self._attend()
        self._call(0, now)
        if not self.wanted:
            return False
        if not full:
            self.reader = ReaderState.READING
            self._sent_at = now
        elif not any(queue.room > 0 for queue in full):
            for queue in full:
                queue.want(now)
            self._full = full
            self.reader = ReaderState.BLOCKED
            self._waits()
            self._attend()
            self._call(0, now)
        return True

    def pause(self) -> None:
        """The reader is `PAUSING` until nothing moves, or nothing more is wanted; then nothing moves until more is sent."""
        if self.wanted:
            self.reader = ReaderState.PAUSING
            self._attend()

    def end(self) -> None:
        """Nothing more will be read."""
        self.reader = ReaderState.ENDED
        self._attend()

    # -- the workers

    def take(self, worker: int, now: float) -> Task | None:
        """A task for a worker to run; None: it sleeps, or there is no more for it if the run is `over` or `stopped`.

        Raises: InternalError if nothing can run, though the run is not over.
        """
        while not (self.stopped or self.over):
            if self._for_reader:
                self.asleep.append(worker)
                return None
            theirs = self._ready and not (self.running and self._crowded(now))
            if theirs and not self._sets:
                return self._taken(now)
            own = self._set_of.get(worker)
            if own is not None and own.ready and not (theirs and own.last):
                own.last = True
                return self._taken(now, own)
            if theirs:
                if own is not None:
                    own.last = False
                return self._taken(now)
            if self.running or self._more_comes() or any(each.ready for each in self._sets):
                self.asleep.append(worker)
                return None
            self._stuck(now)
            self._summon()
        return None

    def stepped(self, task: Task, outcome: Outcome, seconds: float, now: float, *, empty: bool) -> None:
        """A step has ended after so many seconds. `empty`: it may have been for nothing."""
        self.steps += 1
        self._stepping[task.index] += seconds
        if outcome is Outcome.SPLIT:
            task.working += 1  # and running: the worker is at it still
            task.most = max(task.most, task.working)
        else:
            self.running -= 1
        for port in task.ports:
            queue = port.queue
            if queue.wanted and queue.room > 0:
                self._made_room(queue, now)
        self._delivered(task.outs)
        for out in task.outs:
            queue = out.queue
            if queue.wanted and queue.producer == task.index:  # not what the reader waits for
                queue.want_no_more(now)
        match outcome:
            case Outcome.FULL:
                full = [out.queue for out in task.outs if out.waiting]
                others = not full and task.several  # have drained them meanwhile
                if others or any(queue.room > 0 for queue in full):
                    self._queue(task)
                else:
                    task.state = State.FULL
                    for queue in full:
                        queue.want(now)
            case Outcome.LOCK:
                self._acquire(task)
            case Outcome.MORE:
                self._queue(task)
            case Outcome.SPLIT if task.wanting is None:
                self._queue(task)
            case Outcome.IDLE | Outcome.SPLIT:
                task.state = State.IDLE
                if task.missed:
                    self._queue(task)
        if not task.working:  # else that is handed out, of which others know what it takes
            task.learn(seconds, empty=empty)
        if outcome is Outcome.SPLIT:  # this worker is busy, and what it does was worth handing out
            self._rouse(1, task.cores)
            self._call(0, now)
        else:
            self._call(1, now)

    def rejoined(self, task: Task, seconds: float, now: float) -> None:
        """A worker has done what it had taken out of a task, in so many seconds."""
        self._widths.took(task, seconds)
        self._handed += seconds
        task.learn(seconds, empty=False)
        self.running -= 1
        task.working -= 1
        self._delivered(task.outs)
        if task.wanting is None or any(out.waiting for out in task.outs):
            self._wake(task)
        self._call(1, now)

    def released(self, task: Task) -> None:
        """A task that runs gives its locks back, in reverse order. Paper: River Fig. 2, lines 6 to 8."""
        task.held = 0
        for lock in reversed(task.locks):
            lock.owner = None
            if lock.waiting:
                heir = lock.waiting.popleft()
                lock.owner = heir
                heir.held += 1
                self._acquire(heir)
        if self._ready:
            self._rouse(len(self._ready))
        self._summon()

    # -- who wakes

    def _rouse(self, workers: int = 1, among: CoreSet | None = None) -> None:
        """Wakes so many workers that sleep, those first that slept last: what they used may still be in the caches."""
        asleep = self.asleep if among is None else [w for w in self.asleep if w in among.workers]
        for worker in asleep[: -workers - 1 : -1]:
            self.asleep.remove(worker)
            self.woken.append(worker)

    @property
    def _for_reader(self) -> bool:
        """Whether what is ready is for the reader: while it sends, it looks once more before it reads on, or calls the worker."""
        return self._inline and self.reader is ReaderState.SENDING

    def _summon(self) -> None:
        """Sees to it that of those who alone may run what is ready one is awake, and more where there is much to do."""
        for each in self._sets:
            if each.ready and (asleep := sum(w in each.workers for w in self.asleep)):
                self._rouse((asleep == len(each.workers)) + self._heavy(each.ready, 1), each)

    def _heavy(self, ready: Ready, mine: int) -> int:
        """How many tasks, all but the first `mine`, have more to do than waking somebody costs."""
        heavy = 0
        for task in islice(ready, mine, None):
            if task.cost > self._light_step and self._far(task, self._pending(task), WAKE):
                heavy += 1
        return heavy

    def _attend(self) -> None:
        """Sees to it that a worker is awake; one that is will look what there is to do before it sleeps."""
        if len(self.asleep) == self.workers:
            self._rouse()

    def _call(self, mine: int, now: float) -> None:
        """Wakes workers for the ready tasks, all but the first `mine`, that have more to do than waking somebody costs."""
        if self._sets:
            self._summon()
        if not self.asleep or len(self._ready) <= mine or self._for_reader:
            return
        heavy = self._heavy(self._ready, mine)
        if heavy and not self._crowded(now):
            self._rouse(heavy)
        elif self.reader is ReaderState.BLOCKED and self._holds_up(mine):
            self._spare -= HANDOVER
            self._rouse()
        elif self.reader is ReaderState.ENDED and self._last(mine):
            self._rouse()

    def _waits(self) -> None:
        """The reader waits for room: what its processor would have had to do since it did so before is added up.

        That is what all steps took longer than reading, and longer than those of one task, which go one after the other. A
        small part of them is not worth it.
        """
        if not self._read:  # it still waits with the same turn
            return
        working = sum(self._stepped) + self._handed
        idle, others = working - self._read, working - max(self._stepped, default=0.0)
        spare = min(idle - IDLE * working, others - GAINED * working)
        self._spare = min(max(0.0, self._spare + spare), 2 * WAKE)
        self._stepped = [0.0] * len(self._stepped)
        self._handed = self._read = 0.0

    def _holds_up(self, mine: int) -> bool:
        """Whether the processor of the reader, which waits for room, could have done what takes longer than waking somebody.

        Each step may be light, and so may be all that a turn makes: as long as turns wait, more of it comes.
        """
        first = next(islice(self._ready, mine, None))
        return first.index not in self._near and self._spare > WAKE

    def _last(self, mine: int) -> bool:
        """Whether the ready tasks, all but the first `mine`, have together more to do than waking somebody takes.

        For when all is read: each of the last steps may be light, and nothing more comes for which whoever sleeps would wake.
        """
        left = (task for task in islice(self._ready, mine, None) if task.index not in self._near)
        return sum(map(self._pending, left)) > HANDOVER

    def _crowded(self, now: float) -> bool:
        """Whether the reader and the workers that are awake have all processors."""
        reads = self.reader in (ReaderState.READING, ReaderState.SENDING)
        return reads and self.running + 1 >= self._cores and now < self._sent_at + READS

    def _more_comes(self) -> bool:
        """Whether the reader may send something without anybody's help, or is to be waited for."""
        return self.reader is ReaderState.SENDING or (self.reader is ReaderState.READING and self.wanted)

    def _far(self, task: Task, seconds: float, most: float) -> bool:
        """Whether a worker is to be woken for what a task does in so many seconds, more than `most`."""
        return seconds > most and task.index not in self._near

    def _pending(self, task: Task) -> float:
        """Seconds that the steps take that a task has to do now."""
        size = self._batch
        for port in task.ports:
            size = max(size, port.queue.size)
        return task.cost * size / self._batch

    def _let_go(self, now: float) -> None:
        """The reader waits no more."""
        if self.reader in (ReaderState.BLOCKED, ReaderState.PAUSING):
            blocked = self.reader is ReaderState.BLOCKED
            self.reader = ReaderState.SENDING if blocked else ReaderState.READING
            for queue in self._full:
                queue.want_no_more(now)
            self._full = ()
            self.woken.append(READER)

    # -- what is ready

    def _taken(self, now: float, among: CoreSet | None = None) -> Task:
        """The first of the ready tasks that anybody may run, or of those of a set, for the caller to run."""
        task = (self._ready if among is None else among.ready).popleft(now)
        task.state = State.RUNNING
        task.missed = False
        task.wanting = None
        self.running += 1
        return task

    def _queue(self, task: Task) -> None:
        task.wanting = None
        if task.working >= task.width:  # one of these wakes it
            task.state = State.IDLE
            return
        task.state = State.QUEUED
        (self._ready if task.cores is None else task.cores.ready).append(task)

    def _wake(self, task: Task) -> None:
        """Input has come for the task."""
        if task.led:
            return
        if task.state is State.IDLE:
            self._queue(task)
        else:
            task.missed = True

    def _delivered(self, outs: Iterable[Out]) -> None:
        """Wakes the consumers of what was put, but for who wants items of another queue first. Marks may end an operator."""
        for out in outs:
            if out.sent:
                task, told = self.tasks[out.queue.consumer], out.told
                out.sent = out.told = False
                idle = task.state is State.IDLE and not told
                if not (idle and task.wanting not in (None, out.queue)):
                    self._wake(task)

    def _made_room(self, queue: Queue, now: float) -> None:
        """Wakes the producer that waited for room."""
        queue.want_no_more(now)
        if queue.producer is None:
            self._let_go(now)
        elif self.tasks[queue.producer].state is State.FULL:
            self._queue(self.tasks[queue.producer])

    def _acquire(self, task: Task) -> None:
        """Takes the locks of the task in standard order, or lets it wait for the next one, keeping what it has.

        Paper: River Fig. 2, lines 3 and 4.
        """
        task.state = State.LOCKING
        while task.held < len(task.locks):
            lock = task.locks[task.held]
            if lock.owner is not None:
                lock.waiting.append(task)
                return
            lock.owner = task
            task.held += 1
        (self._ready if task.cores is None else task.cores.ready).appendleft(task)
        task.state = State.QUEUED

    def _stuck(self, now: float) -> None:
        """Nothing runs and nothing is ready: a queue must grow, or a pause has come, or the run is over.

        Raises: InternalError if it is none of these.
        """
        starving = [
            queue
            for queue in self.queues
            if queue.wanted and self.tasks[queue.consumer].state is not State.FULL
        ]
        if starving:
            smallest = min(starving, key=lambda queue: queue.bound)
            smallest.grow()
            self._made_room(smallest, now)
            return
        if self.reader is ReaderState.BLOCKED or any(task.state is not State.IDLE for task in self.tasks):
            raise InternalError(f"nothing can run, though the run is not over\n{self._show()}")
        if self.reader is ReaderState.PAUSING:
            self._let_go(now)
            return
        self.over = True
        self._rouse(len(self.asleep))
        self.woken.append(CALLER)
