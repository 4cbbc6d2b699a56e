"""A run of a plan: threads that are started, watched and ended, and what there is to tell then.

Who does what when is decided in `scheduling`, obeyed in `dispatch` and `reading`; what goes wrong is gathered in `failures`.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext as nothing
from functools import partial
from math import inf
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from backends.multicore.assembly import assemble
from backends.multicore.checkpoint import EngineState
from backends.multicore.compiled import compiled
from backends.multicore.dispatch import Dispatcher
from backends.multicore.failures import Failures
from backends.multicore.inputs import used
from backends.multicore.metrics import Meter
from backends.multicore.reading import Feeder
from backends.multicore.results import combine
from backends.multicore.scheduling.ready import ready
from backends.multicore.scheduling.scheduler import CALLER, Scheduler
from backends.multicore.views import Views
from backends.native.deadline import Deadline
from backends.native.llvm import available
from backends.native.shared import made_by, spent
from backends.native.tiers import effort_for, ending, room_for, while_running
from river.aside import Aside
from river.backend import Summary
from river.classes import evolve
from river.driver import Reading
from river.garbage import seldom
from river.il.combined import with_results
from river.io.batches import ItemSource
from river.lang import memory
from river.lang.evaluate import Trap
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.multicore.partial import Blocks
    from backends.multicore.plan import Plan
    from backends.native.tiers import Improver
    from river.backend import Sinks, Sources
    from river.metrics import Metrics

POLL = 0.05
"""Seconds between two looks of the caller at what it was told to watch."""

SHOWN = 0.2
"""Seconds between two looks of `Options.observe`."""

GRACE = 0.5
"""Seconds after a trap in which a program with loops may still finish what was read."""

PATIENCE = 0.9
"""Seconds that the caller waits for threads to end; one that user code holds up is left to end by itself."""


def run(plan: Plan, sources: Sources, sinks: Sinks) -> Summary:
    """Runs to the end of the sources. An output without sink is dropped; an input without source is empty.

    Sources are read in a thread of their own, but for a file or a table that the workers read; sinks are called from the
    workers' threads, or from that one where what came is sooner done than handed over. A source that blocks is not interrupted.

    Raises: Trap; whatever a source or a sink raises; KeyboardInterrupt, also where `Options.stopping` says so.
    """
    views = {view.name for view in plan.graph.views}
    if strangers := sorted(set(sinks) - set(plan.graph.outputs) - views):
        raise ValueError(f"not outputs of the program: {', '.join(strangers)}")
    sizes = _sizes(sources)
    at_once = plan.options.deadline is not None
    with nothing() if at_once else while_running(effort_for(sizes), room_for(sizes)) as improver:
        with seldom():
            _parsers(plan, sources)
            engine = Engine(plan, sinks, improver)
        try:
            return engine.run(sources)
        finally:
            engine.end()


def _parsers(plan: Plan, sources: Sources) -> None:
    """Has the code begun that parses what is read in blocks, beside that of the operators: whoever wants it waits for it."""
    if plan.workers == 1 or plan.options.native == "off" or not available():
        return
    made_by()
    for each in plan.partials:
        source = sources.get(each.input)
        behind = source.source if isinstance(source, Reading) else None
        if isinstance(behind, ItemSource):
            Aside(partial(_parser, behind, used(plan.graph, each.input)), "river-parser")


def _parser(source: ItemSource, wanted: frozenset[str] | None) -> None:
    from backends.native.ingest import form_of
    from backends.native.ingest.code import parser

    form = form_of(source, wanted)
    if form is not None:
        parser(form)


def _sizes(sources: Sources) -> list[int]:
    """How large the inputs are; 0 where that is not known."""
    read = (source.source if isinstance(source, Reading) else None for source in sources.values())
    return [source.bytes if isinstance(source, ItemSource) else 0 for source in read]


class Engine:
    """One run of a plan."""

    def __init__(self, plan: Plan, sinks: Sinks, improver: Improver | None) -> None:
        self.plan = plan
        self._improver = improver
        self._reports = threading.Lock()
        self._spent = spent()
        self._shown = time.monotonic()
        self._compiled = compiled(plan)
        self._deadline = None if plan.options.deadline is None else Deadline(plan.options.deadline)
        self._running: list[threading.Thread] = []
        self._stopped: Callable[[], bool] = lambda: False  # constants are computed before anything runs
        report = None if plan.options.on_trap is None else self._report
        parts = assemble(plan, self._compiled, sinks, self._deadline, report, self._poll)
        self._operators = parts.operators
        self._store = parts.store
        self._blocks, self._reading = parts.blocks, parts.reading
        clock = thread_time if plan.options.alone else None
        self._meter = Meter(plan.graph, parts.tasks, parts.order, parts.queues, self._compiled, clock)
        cores = here().cores
        self._scheduler = Scheduler(
            parts.tasks,
            parts.queues.values(),
            ready(plan.choices.scheduler, parts.tasks, parts.order, parts.queues, plan.batch),
            workers=plan.workers,
            cores=cores,
            batch=plan.batch,
            bound=max((inf if edge.bound is None else edge.bound for edge in plan.edges), default=1),
            widths=plan.choices.width,
            near=self._compiled.native if plan.workers == cores == 1 else (),
            show=plan.show,
        )
        self._stopped = lambda: self._scheduler.stopped
        self._failures = Failures(plan)
        self._threads = Dispatcher(self._scheduler, self._meter, self._failures)
        self._views = Views(plan, self._store, sinks, self._show)
        self._kept = EngineState(plan.graph, self._store, self._operators, parts.tasks, parts.entries)
        self._feeder = Feeder(plan, self._threads, parts.entries, self._kept, self._compiled.wanted)

    def run(self, sources: Sources) -> Summary:
        """Starts the threads, waits for the end, and leaves no thread behind."""
        keeper, dispatcher = self.plan.options.keeper, self._threads
        if keeper is not None and keeper.found is not None:
            self._kept.restore(keeper.found)
        with seldom():
            others = {each.partial.input for each in self._blocks if self._opened(each, sources)}
            if not others:
                others = {each.name for each in self._reading if each.open(sources, self._failures.partly)}
        with dispatcher.lock:
            self._scheduler.start(perf_counter())
        reader = threading.Thread(
            target=self._feeder.run, args=(sources, others), name="river-reader", daemon=True
        )
        self._running = threads = [reader]
        threads += [
            threading.Thread(target=dispatcher.labour, args=(i,), name=f"river-worker-{i}", daemon=True)
            for i in range(self.plan.workers)
        ]
        try:
            for thread in threads:
                memory.start(thread)
            self._watch()
        finally:
            dispatcher.stop()
            deadline = time.monotonic() + PATIENCE
            for thread in threads:
                if thread.ident is not None:
                    thread.join(max(0.0, deadline - time.monotonic()))
            for each in (*self._blocks, *self._reading):
                each.shut()
            if not any(thread.is_alive() for thread in threads):
                for task in self._operators:
                    task.rest()
        self._failures.raise_first()
        for each in self._blocks:
            each.combine(self._show)
        with ending():
            combine(self.plan, self._store)
            variables = with_results(self.plan.graph, self._store.final())
            if keeper is None or not keeper.goes_on:
                self._views.deliver(variables)
        return Summary(
            variables,
            {task.name: task.fired for task in self._operators},
            {task.name: task.instance.skipped for task in self._operators if task.instance.skipped},
            {t.name: n for t in self._operators if (n := self._compiled.host_calls(t.index, t.fired))}
            | self._views.calls,
            (*self.plan.remarks, *self._compiled.remarks, *self._views.remarks),
            self._metrics(),
            spent() - self._spent,
        )

    def end(self) -> None:
        """Takes apart what refers to each other: in a circle, batches and state would wait for the collector.

        Not where a thread that user code holds up still uses it.
        """
        if any(thread.is_alive() for thread in self._running):
            return
        for task in self._scheduler.tasks:
            vars(task).clear()
        vars(self).clear()

    def _opened(self, blocks: Blocks, sources: Sources) -> bool:
        """Whether an input is read in blocks, and not by the reader."""
        return blocks.open(sources, self._failures.partly, self._meter.reading(blocks.partial.input))

    def _watch(self) -> None:
        """Waits for the end. Raises: KeyboardInterrupt when told to stop."""
        stopping, observe = self.plan.options.stopping, self.plan.options.observe
        deadline, scheduler, failures = self._deadline, self._scheduler, self._failures
        done = -1
        if self._improver is not None:
            self._improver.look()
        while True:
            with self._threads.lock:
                if not scheduler.over and not scheduler.stopped and not failures.errors:
                    self._threads.sleep(CALLER, POLL if deadline is None else min(POLL, deadline.seconds / 4))
                done = scheduler.look(done)
                self._threads.obey()
                if scheduler.over or scheduler.stopped or failures.errors:
                    return
                failed_at = failures.failed_at
                if failed_at is not None and self.plan.cyclic and perf_counter() > failed_at + GRACE:
                    return
                now = time.monotonic()
                metrics = self._meter.metrics() if observe and now >= self._shown + SHOWN else None
            if observe is not None and metrics is not None:
                self._shown = now
                observe(metrics)
            if deadline is not None:
                deadline.look()
            if self._improver is not None:
                self._improver.look()
            if stopping():
                raise KeyboardInterrupt

    def _metrics(self) -> Metrics:
        """What there is to tell of the run so far. Under the lock, or when all threads have ended."""
        found, views = self._meter.metrics(), self._views
        if not views.outputs and not views.doing:
            return found
        outputs, calls = {**found.outputs, **views.outputs}, {**found.host_calls, **views.calls}
        return evolve(found, outputs=outputs, host_calls=calls, doing=views.doing)

    def _show(self) -> None:
        """Lets those look who want to while views are made. Raises: KeyboardInterrupt when told to stop."""
        observe, now = self.plan.options.observe, time.monotonic()
        if observe is not None and now >= self._shown + SHOWN:
            self._shown = now
            observe(self._metrics())
        if self.plan.options.stopping():
            raise KeyboardInterrupt

    # -- what firings call

    def _report(self, trap: Trap) -> None:
        """Tells of an item that was skipped; one at a time."""
        on_trap = self.plan.options.on_trap
        if on_trap is not None:
            with self._reports:
                on_trap(trap.diagnostic())

    def _poll(self) -> None:
        """Ends a long firing when the run is stopped."""
        if self._stopped():
            raise Trap("stopped")
