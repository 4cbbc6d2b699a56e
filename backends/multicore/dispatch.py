"""The threads' side of a scheduler: one mutex around it, a bell for each thread that may sleep, and what workers do.

What is decided is decided in `scheduling`; here threads report what happened, wake whom they are told to wake, and sleep.
"""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING

from backends.multicore.scheduling.scheduler import CALLER, READER
from backends.multicore.scheduling.task import Divided, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.firing.ports import Out
    from backends.multicore.failures import Failures
    from backends.multicore.metrics import Meter
    from backends.multicore.scheduling.scheduler import Scheduler
    from backends.multicore.scheduling.task import Task
    from river.diagnostics import Rejected
    from river.ingress import Turn
    from river.lang.evaluate import Trap


class Dispatcher:
    """Runs tasks as a scheduler says.

    What threads share is read and written under `lock`, except for ports and outs, which belong to whoever runs their
    task, and the two ends of a queue.
    """

    def __init__(self, scheduler: Scheduler, meter: Meter, failures: Failures) -> None:
        self.scheduler = scheduler
        self.meter = meter
        self.failures = failures
        self.lock = threading.Lock()
        everybody = (*range(scheduler.workers), READER, CALLER)
        self._bells = {who: threading.Condition(self.lock) for who in everybody}

    # -- under the lock

    def obey(self) -> None:
        """Wakes who is to wake."""
        woken = self.scheduler.woken
        if woken:
            for who in woken:
                self._bells[who].notify()
            woken.clear()

    def sleep(self, who: int, seconds: float | None = None) -> None:
        """Waits to be woken, or for so long."""
        self._bells[who].wait(seconds)

    def next(self, who: int, now: float) -> Task | None:
        """A task to run. None: the run has ended, or nothing is to be run by the reader now."""
        scheduler = self.scheduler
        task = scheduler.light(now) if who == READER else scheduler.take(who, now)
        if scheduler.woken:
            self.obey()
        while task is None and who != READER and not (scheduler.over or scheduler.stopped):
            self.sleep(who)
            task = scheduler.take(who, perf_counter())
            self.obey()
        return task

    # -- what threads do

    def labour(self, worker: int) -> None:
        """What a worker does until the end."""
        try:
            with self.lock:
                task = self.next(worker, perf_counter())
        except BaseException as error:  # noqa: BLE001 - a mistake of ours: it ends the run
            self.fail(error)
        else:
            self.run(task, worker)

    def run(self, task: Task | None, who: int) -> None:
        """Runs a task, and what is to be run then."""
        try:
            while task is not None:
                task = self._perform(task, who)
        except BaseException as error:  # noqa: BLE001 - of a sink, or a mistake of ours: it ends the run
            self.fail(error)

    def _perform(self, task: Task, who: int) -> Task | None:
        """A step of a task. Returns what to run next."""
        clock = self.meter.clock
        began = perf_counter()
        before = began if clock is None else clock()
        outcome = task.step(self)
        now = perf_counter()
        spent = (now if clock is None else clock()) - before
        if outcome is not Outcome.SPLIT or not isinstance(task, Divided):
            with self.lock:
                self.scheduler.stepped(
                    task, outcome, now - began, now, empty=self.meter.stepped(task, outcome, spent)
                )
                return self.next(who, now)
        detached, ticket = task.detached, task.ticket
        with self.lock:
            empty = self.meter.stepped(task, outcome, spent)
            self.scheduler.stepped(task, outcome, now - began, now, empty=empty)
            self.obey()
        began, before = now, now if clock is None else clock()
        task.work(detached, ticket, self)
        now = perf_counter()
        spent = (now if clock is None else clock()) - before
        with self.lock:
            self.meter.stepped(task, Outcome.SPLIT, spent)
            self.scheduler.rejoined(task, now - began, now)
            return self.next(who, now)

    # -- what a task says while it runs

    def trapped(self, task: Task, trap: Trap, /) -> None:
        with self.lock:
            if trap.code == "stopped":
                return
            now = perf_counter()
            self.failures.trapped(task, trap, now)
            self.scheduler.trapped(now)
            self.obey()

    def refused(self, error: Rejected, /) -> None:
        with self.lock:
            self.failures.of_sources.append(error)
            self.scheduler.trapped(perf_counter())
            self.obey()

    def release(self, task: Task, /) -> None:
        with self.lock:
            self.scheduler.released(task)
            self.obey()

    @property
    def wanted(self) -> bool:
        return self.scheduler.wanted

    def sending(self, turn: Turn, entries: Mapping[str, Out], /) -> None:
        with self.lock:
            self.meter.sending(turn, entries)
            self.scheduler.delivered(perf_counter())

    # -- the end

    def stop(self) -> None:
        """Lets all threads end."""
        with self.lock:
            self._halt()

    def fail(self, error: BaseException) -> None:
        """Ends the run at once."""
        with self.lock:
            self.failures.errors.append(error)
            self._halt()

    def _halt(self) -> None:
        self.scheduler.stop(perf_counter())
        for task in self.scheduler.tasks:
            task.stop()
        self.obey()
