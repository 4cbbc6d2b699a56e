"""Threads that run a plan: who fires next, who waits for room or for a lock, and how a run ends.

A task is an operator instance or a sink; workers take tasks that may have something to do, one worker a task. One more
thread reads the sources. A task that finds no room for its output is set aside until there is some and does not fire
(Fig. 2); no thread of a worker ever waits for room or for a lock of variables. When nothing can move and somebody waits
for room, the smallest full queue whose consumer starves on another input grows (il.md P8).

After a trap nothing more is read, but what was read before is finished, so that everything before the trap is delivered.
Of several traps that one is raised whose instance stands first in the direction of the data. Which of several instances
trap at all may depend on how far the reader was; where one instance can trap, its trap is always the same.
"""

from __future__ import annotations

import threading
import time
from itertools import islice
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve

from backends.firing.columns import ColumnPort
from backends.firing.instance import Setting, make
from backends.firing.machine import make as make_machine
from backends.firing.ports import Out, Port
from backends.firing.queues import UNBOUNDED, Queue
from backends.firing.wiring import inputs_of, outputs_of
from backends.multicore import inputs
from backends.multicore.checkpoint import Kept
from backends.multicore.compiled import compiled
from backends.multicore.metrics import Meter
from backends.multicore.parallel import Parallel
from backends.multicore.ready import ready
from backends.multicore.regions import Region
from backends.multicore.sharded import concurrent
from backends.multicore.tasks import Deliver, Lock, Operate, Outcome, State, Store, Task, Variables
from backends.multicore.views import Views
from backends.native.deadline import Deadline
from backends.native.egress.sinks import column_sink
from backends.native.shared import spent
from river.backend import Summary
from river.diagnostics import InternalError
from river.il.annotations import annotated
from river.ingress import passed, turns
from river.lang import typed
from river.lang.evaluate import Trap
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.firing.machine import Machine
    from backends.multicore.plan import Node, Plan
    from river.backend import Sinks, Sources
    from river.il.graph import Instance as GraphInstance
    from river.il.graph import Queue as GraphQueue
    from river.metrics import Metrics

POLL = 0.05
"""Seconds between two looks of the caller at what it was told to watch."""

SHOWN = 0.2
"""Seconds between two looks of `Options.observe`."""

HANDOVER = 200e-6
"""Seconds that a step must take for a worker to be woken for it: shorter ones are sooner done by the reader."""

WAKE = 1500e-6
"""The same for all steps that one more worker has to do: it fetches what is in the cache of the one that is awake."""

READS = 2e-3
"""Seconds after a turn for which the reader is taken to be at work on the next one, and not to wait for it."""

MANY = 1024
"""Items of a turn with which it matters how many are done in a second, and not how soon each is."""

GRACE = 0.5
"""Seconds after a trap in which a program with loops may still finish what was read."""

PATIENCE = 0.9
"""Seconds that the caller waits for threads to end; one that user code holds up is left to end by itself."""


def run(plan: Plan, sources: Sources, sinks: Sinks) -> Summary:
    """Runs to the end of the sources. An output without sink is dropped; an input without source is empty.

    Sources are read in a thread of their own; sinks are called from the workers' threads, or from that one where what came
    is sooner done than handed over. A source that blocks is not interrupted.

    Raises: Trap; whatever a source or a sink raises; KeyboardInterrupt, also where `Options.stopping` says so.
    """
    views = {view.name for view in plan.graph.views}
    if strangers := sorted(set(sinks) - set(plan.graph.outputs) - views):
        raise ValueError(f"not outputs of the program: {', '.join(strangers)}")
    engine = Engine(plan, sinks)
    return engine.run(sources)


class Engine:
    """One run of a plan.

    What threads share is read and written under `_lock`, except for ports and outs, which belong to whoever runs their
    task, and the two ends of a queue.
    """

    def __init__(self, plan: Plan, sinks: Sinks) -> None:
        self.plan = plan
        self._lock = threading.Lock()
        self._sleepers: list[threading.Condition] = []  # a worker each, the last to fall asleep last
        self._room = threading.Condition(self._lock)
        self._news = threading.Condition(self._lock)
        self._reports = threading.Lock()
        self._running = 0
        self._done_steps = 0
        self._reading = True
        self._blocked = False  # the reader waits for room
        self._pausing = False  # the reader waits until nothing moves
        self._stopped = False
        self._finished = False
        self._failed_at: float | None = None
        self._traps: list[tuple[tuple[int, int], Trap]] = []
        self._partly: dict[str, frozenset[str]] = {}  # the fields that are read of inputs that have others
        self._errors: list[BaseException] = []
        self._source_errors: list[Exception] = []
        self._spent = spent()
        self._shown = time.monotonic()
        self._alone = plan.workers == 1 and here().cores == 1
        self._cores = here().cores
        # A step so short that all that a full queue asks for are not worth waking somebody.
        most = max((inf if edge.bound is None else edge.bound for edge in plan.edges), default=1) / plan.batch
        self._light_step = WAKE / max(1.0, most)
        self._between = self._helping = (
            0.0  # seconds of the reader for reading a turn, and then for helping, smoothed
        )
        self._sent = perf_counter()
        self._compiled = compiled(plan)
        self._deadline = None if plan.options.deadline is None else Deadline(plan.options.deadline)
        self._store = Store(plan, self._compiled)
        self._build(sinks)

    def _build(self, sinks: Sinks) -> None:
        """Makes queues and tasks."""
        plan, graph = self.plan, self.plan.graph
        places = {
            name: len(plan.nodes) + i
            for i, name in enumerate(e.name for e in plan.edges if e.consumer is None)
        }
        self._queues = {
            e.name: Queue(
                e.name,
                UNBOUNDED if e.bound is None else e.bound,
                e.producer,
                places[e.name] if e.consumer is None else e.consumer,
            )
            for e in plan.edges
        }
        closing = {node.instance.ins[port] for node in plan.nodes for port in node.back}
        self._in_turns = _in_turns([node.instance for node in plan.nodes])
        locks = [Lock() for _ in plan.locks]
        self._operators = [self._operate(node, closing, locks) for node in plan.nodes]
        self._tasks: list[Task] = [*self._operators]
        for name in places:
            queue = graph.queues[name]
            sink, key = sinks.get(name), queue.key()
            if sink is not None and self._is_columns(queue):
                sink = column_sink(sink)
            if hasattr(sink, "columns") and self._is_columns(queue):
                port = ColumnPort(self._queues[name], queue.type, key, (), back=False, checked=False)
            else:
                port = Port(self._queues[name], key, (), back=False, checked=False)
            self._tasks.append(Deliver(len(self._tasks), port, sink, plan.batch))
        self._entries = {
            name: Out(self._queues[name], keyed=graph.queues[name].by is not None, mixed=True, back=False)
            for name in graph.inputs
        }
        order = [node.component for node in plan.nodes] + [len(plan.nodes)] * len(places)
        self._meter = Meter(self._tasks, order, self._queues, self._compiled)
        self._ready = ready(plan.choices.scheduler, self._tasks, order, self._queues, plan.batch)
        self._keeper = plan.options.keeper
        self._views = Views(plan, self._store, sinks, self._show)
        self._kept = Kept(graph, self._store, self._operators, self._tasks, self._entries)

    def _operate(self, node: Node, closing: set[str], locks: Sequence[Lock]) -> Operate:
        """The task of an instance."""
        plan, graph, instance = self.plan, self.plan.graph, node.instance
        operator, options = instance.operator, plan.options
        native = self._compiled.native.get(instance.index)
        ports = inputs_of(instance, graph, self._queues, closing, columns=native is not None)
        outs = outputs_of(instance, self._queues, closing)
        variables = self._store.of(instance.variables) if native is None else Variables([], (), {})
        function = options.externs.get(operator.target) if isinstance(operator, typed.Extern) else None
        report = None if options.on_trap is None or instance.index in self._in_turns else self._report
        setting = Setting(operator, ports, outs, variables.values, plan.batch, report, self._deadline)
        if native is not None:
            native.deadline = self._deadline
        made = make(setting, function, self._poll) if native is None else make_machine(setting, native)
        if native is not None and isinstance(node.region, Region):
            machine = cast("Machine", made)
            return concurrent(
                machine, instance, variables, node.region, plan.choices, self._store, options.batch
            )
        task = Operate(instance.index, made, instance.name, variables)
        task.locks = tuple(locks[i] for i in node.locks)
        return task

    def _is_columns(self, queue: GraphQueue) -> bool:
        """Whether the items of a queue come in columns."""
        return queue.producer is not None and queue.producer.instance in self._compiled.native

    # -- the caller's thread

    def run(self, sources: Sources) -> Summary:
        """Starts the threads, waits for the end, and leaves no thread behind."""
        if self._keeper is not None and self._keeper.found is not None:
            self._kept.restore(self._keeper.found)
        with self._lock:
            for task in self._tasks:
                self._wake(task)
        threads = [threading.Thread(target=self._read, args=(sources,), name="river-reader", daemon=True)]
        threads += [
            threading.Thread(target=self._labour, name=f"river-worker-{i}", daemon=True)
            for i in range(self.plan.workers)
        ]
        try:
            for thread in threads:
                thread.start()
            self._watch()
        finally:
            self._stop()
            deadline = time.monotonic() + PATIENCE
            for thread in threads:
                if thread.ident is not None:
                    thread.join(max(0.0, deadline - time.monotonic()))
        if self._errors:
            raise self._errors[0]
        if self._traps:
            raise min(self._traps, key=lambda pair: pair[0])[1]
        if self._source_errors:
            raise self._source_errors[0]
        variables = self._store.final()
        self._views.deliver(variables)
        return Summary(
            variables,
            {task.name: task.instance.fired for task in self._operators},
            {task.name: task.instance.skipped for task in self._operators if task.instance.skipped},
            {
                t.name: n
                for t in self._operators
                if (n := self._compiled.host_calls(t.index, t.instance.fired))
            }
            | self._views.calls,
            (*self._compiled.remarks, *self._views.remarks),
            self._metrics(),
            spent() - self._spent,
        )

    def _watch(self) -> None:
        """Waits for the end. Raises: KeyboardInterrupt when told to stop."""
        stopping, observe = self.plan.options.stopping, self.plan.options.observe
        deadline = self._deadline
        done = -1
        while True:
            with self._lock:
                if not self._finished and not self._errors:
                    self._news.wait(POLL if deadline is None else min(POLL, deadline.seconds / 4))
                if self._ready and self._done_steps == done and not (self._alone and self._running):
                    self._rouse()  # behind a step that takes longer than its like did before
                done = self._done_steps
                if self._finished or self._errors:
                    return
                failed_at = self._failed_at if self.plan.cyclic else None
                if failed_at is not None and time.monotonic() > failed_at + GRACE:
                    return
                now = time.monotonic()
                metrics = self._meter.metrics() if observe and now >= self._shown + SHOWN else None
            if observe is not None and metrics is not None:
                self._shown = now
                observe(metrics)
            if deadline is not None:
                deadline.look()
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

    def _stop(self) -> None:
        """Lets all threads end."""
        with self._lock:
            self._halt()

    def _halt(self) -> None:
        """Lets all threads end. Under the lock."""
        self._stopped = True
        for task in self._operators:
            task.stop()
        self._rouse(len(self._sleepers))
        self._room.notify_all()

    # -- the reader's thread

    def _read(self, sources: Sources) -> None:
        """Sends what the sources give."""
        try:
            keeper, graph, kept = self._keeper, self.plan.graph, self._kept
            anchors = {} if keeper is None else kept.anchors
            opened: Any = (
                inputs.opened(self.plan, sources, anchors, self._spare, self._partly)
                if self._compiled.wanted
                else sources
            )
            positions = {n: evolve(p, begun=kept.anchors[n].items) for n, p in kept.positions.items()}
            for turn in turns(graph, opened, self.plan.batch, positions):
                for name, elements in (*turn.items, *turn.marks):
                    self._entries[name].add(elements)
                with self._lock:
                    self._meter.sending(turn, self._entries)
                self._between += (perf_counter() - self._sent - self._between) / 8
                many = sum(len(elements) for _, elements in turn.items) >= MANY
                if not self._send([self._entries[name] for name, _ in (*turn.items, *turn.marks)], many=many):
                    break
                self._sent = perf_counter()
                if keeper is not None:
                    positions = passed(graph, positions, turn)
                    keeper.read = sum(position.items for position in positions.values())
                    if keeper.due and self._pause():
                        keeper.save(kept.snapshot(positions))
        except Exception as error:  # noqa: BLE001 - a source is the user's: whatever it raises ends the run
            with self._lock:
                self._source_errors.append(error)
        except BaseException as error:  # noqa: BLE001 - a source may even want to exit
            self._fail(error)
        finally:
            with self._lock:
                self._reading = False
                self._attend()

    def _spare(self) -> int:
        """How many workers have nothing to do, one not counted whose processor the reader has. Without the lock: a guess."""
        return self.plan.workers - self._running - 1

    def _send(self, outs: Sequence[Out], *, many: bool) -> bool:
        """Puts everything, waiting for room; False when no more is wanted. `many`: there are many items in it."""
        while True:
            for out in outs:
                out.drain()
            with self._lock:
                for out in outs:
                    out.queue.peak = max(out.queue.peak, out.queue.size)
                self._delivered(outs)
            if not many or self._helping <= self._between or self._alone:
                self._help()
            with self._lock:
                if self._ready:
                    self._attend()
                self._call(mine=0)
                if self._stopped or self._failed_at is not None:
                    return False
                full = [out.queue for out in outs if out.waiting]
                if not full:
                    return True
                if not any(queue.room > 0 for queue in full):
                    for queue in full:
                        queue.want(wanted=True)
                    self._blocked = True
                    self._attend()
                    self._call(mine=0)
                    self._room.wait()
                    for queue in full:
                        queue.want(wanted=False)

    def _help(self) -> None:
        """Runs what is ready itself where no worker is awake and that is sooner done than waking one.

        That is so as long as reading takes longer. Where it does not, a worker that has been woken finds the next turn when it
        is done with the last, so that it need not be woken again.
        """
        began, helped = perf_counter(), False
        try:
            while (task := self._light()) is not None:
                self._perform(task)
                helped = True
        except BaseException as error:  # noqa: BLE001 - as in `_labour`
            self._fail(error)
        if helped:
            self._helping += (perf_counter() - began - self._helping) / 8

    def _light(self) -> Task | None:
        """A task for the reader, sooner done than a worker woken; None where workers are awake, or should be."""
        with self._lock:
            if not self._ready or self._running or self._stopped:
                return None
            task = self._ready.first
            return None if self._far(task, task.cost, HANDOVER) else self._taken()

    def _far(self, task: Task, seconds: float, most: float) -> bool:
        """Whether a worker is to be woken for what a task does in so many seconds, more than `most`.

        Machine code is not waited for on one processor.
        """
        return seconds > most and not (self._alone and task.index in self._compiled.native)

    def _pause(self) -> bool:
        """Waits until nothing moves; then nothing does until more is sent. False where the run ends before."""
        with self._lock:
            self._pausing = True
            self._attend()
            while self._pausing and not self._stopped and self._failed_at is None:
                self._room.wait()
            self._pausing = False
            return not self._stopped and self._failed_at is None

    # -- the workers' threads

    def _labour(self) -> None:
        """Runs tasks until the end."""
        bell = threading.Condition(self._lock)
        try:
            while (task := self._next(bell)) is not None:
                self._perform(task)
        except BaseException as error:  # noqa: BLE001 - of a sink, or a mistake of ours: it ends the run
            self._fail(error)

    def _perform(self, task: Task) -> None:
        """A step of a task."""
        began = perf_counter()
        outcome = task.step(self)
        if outcome is not Outcome.SPLIT or not isinstance(task, Parallel):
            self._done(task, outcome, perf_counter() - began)
            return
        firings, serial = task.detached, task.ticket
        assert firings is not None  # noqa: S101 - that is what the outcome says
        self._done(task, outcome, perf_counter() - began)
        began = perf_counter()
        task.work(firings, serial, self)
        self._rejoin(task, perf_counter() - began)

    def _next(self, bell: threading.Condition) -> Task | None:
        """A task to run; None at the end. `bell` is what wakes this worker."""
        with self._lock:
            while True:
                if self._stopped or self._finished:
                    return None
                if self._ready and not (self._running and self._crowded()):
                    return self._taken()
                over = self._blocked or self._pausing or not self._reading or self._failed_at is not None
                if over and not self._running:
                    self._stuck()
                    continue
                self._sleepers.append(bell)
                bell.wait()

    def _taken(self) -> Task:
        """The first of the ready tasks, for the caller to run. Under the lock."""
        task = self._ready.popleft()
        task.state = State.RUNNING
        task.missed = False
        self._running += 1
        return task

    def _done(self, task: Task, outcome: Outcome, seconds: float) -> None:
        """Notes what a task did: wakes who may go on now."""
        with self._lock:
            self._done_steps += 1
            empty = self._meter.stepped(task, outcome, seconds)
            if outcome is Outcome.SPLIT:
                task.working += 1  # and running: the worker is at it still
            else:
                self._running -= 1
            for port in task.ports:
                if port.queue.wanted and port.queue.room > 0:
                    self._made_room(port.queue)
            self._delivered(task.outs)
            for out in task.outs:
                if out.queue.wanted:
                    out.queue.want(wanted=False)
            match outcome:
                case Outcome.FULL:
                    full = [out.queue for out in task.outs if out.waiting]
                    others = not full and isinstance(task, Parallel)  # have drained them meanwhile
                    if others or any(queue.room > 0 for queue in full):
                        self._queue(task)
                    else:
                        task.state = State.FULL
                        for queue in full:
                            queue.want(wanted=True)
                case Outcome.LOCK:
                    self._acquire(task)
                case Outcome.MORE | Outcome.SPLIT:
                    self._queue(task)
                case Outcome.IDLE:
                    task.state = State.IDLE
                    if task.missed:
                        self._queue(task)
            task.learn(seconds, empty=empty)
            if outcome is Outcome.SPLIT:  # this worker is busy, and what it does was worth handing out
                self._rouse()
            self._call(mine=outcome is not Outcome.SPLIT)

    def _rejoin(self, task: Parallel, seconds: float) -> None:
        """Notes that a worker has done what it had taken out of a task."""
        with self._lock:
            self._running -= 1
            task.working -= 1
            self._meter.stepped(task, Outcome.SPLIT, seconds)
            self._delivered(task.outs)
            self._wake(task)
            self._call(mine=1)

    # -- under the lock

    def _rouse(self, workers: int = 1) -> None:
        """Wakes so many workers that sleep, those first that slept last: what they used may still be in the caches."""
        for _ in range(min(workers, len(self._sleepers))):
            self._sleepers.pop().notify()

    def _attend(self) -> None:
        """Sees to it that a worker is awake; one that is will look what there is to do before it sleeps."""
        if len(self._sleepers) == self.plan.workers:
            self._rouse()

    def _call(self, *, mine: int) -> None:
        """Wakes workers for the ready tasks, all but the first `mine`, that have more to do than waking somebody costs."""
        if not self._sleepers or len(self._ready) <= mine:
            return
        heavy = 0
        for task in islice(self._ready, mine, None):
            if task.cost > self._light_step and self._far(task, self._pending(task), WAKE):
                heavy += 1
        if heavy and not self._crowded():
            self._rouse(heavy)

    def _crowded(self) -> bool:
        """Whether the reader and the workers that are awake have all processors."""
        reads = self._reading and not (self._blocked or self._pausing)
        return reads and self._running + 1 >= self._cores and perf_counter() < self._sent + READS

    def _pending(self, task: Task) -> float:
        """Seconds that the steps take that a task has to do now."""
        size = self.plan.batch
        for port in task.ports:
            size = max(size, port.queue.size)
        return task.cost * size / self.plan.batch

    def _queue(self, task: Task) -> None:
        task.state = State.QUEUED
        self._ready.append(task)

    def _wake(self, task: Task) -> None:
        """Input has come for the task."""
        if task.state is State.IDLE:
            self._queue(task)
        else:
            task.missed = True

    def _delivered(self, outs: Sequence[Out]) -> None:
        """Wakes the consumers of what was put."""
        for out in outs:
            if out.sent:
                out.sent = False
                self._wake(self._tasks[out.queue.consumer])

    def _made_room(self, queue: Queue) -> None:
        """Wakes the producer that waited for room."""
        queue.want(wanted=False)
        if queue.producer is None:
            self._blocked = False
            self._room.notify()
        elif self._tasks[queue.producer].state is State.FULL:
            self._queue(self._tasks[queue.producer])

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
        self._ready.appendleft(task)
        task.state = State.QUEUED

    def release(self, task: Task) -> None:
        """Gives the locks back in reverse order. Paper: River Fig. 2, lines 6 to 8."""
        with self._lock:
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

    def _stuck(self) -> None:
        """Nothing runs and nothing is ready: the run is over, or a queue must grow.

        Raises: InternalError if neither.
        """
        starving = [
            queue
            for queue in self._queues.values()
            if queue.wanted and self._tasks[queue.consumer].state is not State.FULL
        ]
        if starving:
            smallest = min(starving, key=lambda queue: queue.bound)
            smallest.grow()
            self._made_room(smallest)
            return
        waiting = [task for task in self._tasks if task.state is not State.IDLE]
        if waiting or self._blocked:
            raise InternalError(f"nothing can run, though the run is not over\n{self.plan.show()}")
        if self._pausing:
            self._pausing = False
            self._room.notify()
            return
        self._finished = True
        self._rouse(len(self._sleepers))
        self._news.notify()

    # -- trouble

    def trapped(self, task: Operate, trap: Trap) -> None:
        """Notes the trap of a task: nothing more is read."""
        with self._lock:
            if trap.code == "stopped":
                return
            self._without_unread(task, trap)
            self._traps.append(((self.plan.nodes[task.index].component, task.index), trap))
            if self._failed_at is None:
                self._failed_at = time.monotonic()
            self._blocked = False
            self._room.notify()

    def _without_unread(self, task: Operate, trap: Trap) -> None:
        """Takes out of the item of a trap what was not read, where its operator takes items of an input."""
        for name, fields in self._partly.items():
            consumer = self.plan.graph.queues[name].consumer
            if consumer is not None and consumer.instance == task.index and trap.item is not None:
                trap.show(fields)

    def _fail(self, error: BaseException) -> None:
        """Ends the run at once."""
        with self._lock:
            self._errors.append(error)
            self._halt()
            self._news.notify()

    def _report(self, trap: Trap) -> None:
        """Tells of an item that was skipped; one at a time."""
        on_trap = self.plan.options.on_trap
        if on_trap is not None:
            with self._reports:
                on_trap(trap.diagnostic())

    def _poll(self) -> None:
        """Ends a long firing when the run is stopped."""
        if self._stopped:
            raise Trap("stopped")


def _in_turns(instances: Sequence[GraphInstance]) -> frozenset[int]:
    """The replicas whose results a merge takes in turns: one that left out an item would shift all others."""
    roles = [(one, {(r.id, r.what) for r in annotated(one.use).regions}) for one in instances]
    turns = {
        (id_, "replica")
        for one, said in roles
        if isinstance(one.operator, typed.Operator) and one.operator.phases
        for id_, what in said
        if what == "merge"
    }
    return frozenset(one.index for one, said in roles if said & turns)
