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
from collections import Counter, deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import attrs

from backends.multicore.columns import ColumnPort
from backends.multicore.compiled import Compiled, compiled
from backends.multicore.instance import Setting, make
from backends.multicore.machine import make as make_machine
from backends.multicore.ports import Out, Port
from backends.multicore.queues import UNBOUNDED, Queue
from river.backend import Summary
from river.diagnostics import InternalError
from river.il.annotations import annotated
from river.ingress import turns
from river.lang import typed
from river.lang.evaluate import Trap
from river.lang.values import freezer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.multicore.instance import Instance
    from backends.multicore.plan import Node, Plan
    from river.backend import Items, Rows, Sinks, Sources
    from river.il.graph import Instance as GraphInstance
    from river.il.graph import Queue as GraphQueue

POLL = 0.05
"""Seconds between two looks of the caller at what it was told to watch."""

GRACE = 0.5
"""Seconds after a trap in which a program with loops may still finish what was read."""

PATIENCE = 0.9
"""Seconds that the caller waits for threads to end; one that user code holds up is left to end by itself."""


def run(plan: Plan, sources: Sources, sinks: Sinks) -> Summary:
    """Runs to the end of the sources. An output without sink is dropped; an input without source is empty.

    Sources are read in a thread of their own, sinks called from the workers'. A source that blocks is not interrupted.

    Raises: Trap; whatever a source or a sink raises; KeyboardInterrupt, also where `Options.stopping` says so.
    """
    if strangers := sorted(set(sinks) - set(plan.graph.outputs)):
        raise ValueError(f"not outputs of the program: {', '.join(strangers)}")
    engine = Engine(plan, sinks)
    return engine.run(sources)


class State(Enum):
    """Where a task stands."""

    IDLE = auto()  # until input arrives
    QUEUED = auto()
    RUNNING = auto()
    FULL = auto()  # until there is room for its output
    LOCKING = auto()  # until it has its locks


class Outcome(Enum):
    """What came of running a task."""

    IDLE = auto()
    MORE = auto()
    FULL = auto()
    LOCK = auto()


class Lock:
    """A lock of variables that hands itself to whoever waits longest. Used under the scheduler's lock only."""

    __slots__ = ("owner", "waiting")

    def __init__(self) -> None:
        self.owner: Task | None = None
        self.waiting: deque[Task] = deque()


class Task:
    """Something that a worker runs.

    `locks`: what it acquires, in standard order, `held` of them are its own now. `missed`: input came while it ran.
    """

    def __init__(self, index: int, ports: Sequence[Port], outs: Sequence[Out]) -> None:
        self.index = index
        self.ports = ports
        self.outs = outs
        self.state = State.IDLE
        self.missed = False
        self.locks: tuple[Lock, ...] = ()
        self.held = 0

    def step(self, engine: Engine) -> Outcome:
        """Does what there is to do, up to a batch."""
        raise NotImplementedError

    def close(self) -> None:
        """Takes nothing any more."""
        for port in self.ports:
            port.queue.close()


class Operate(Task):
    """An operator instance. Paper: River Fig. 2 (`process`)."""

    def __init__(self, index: int, instance: Instance, name: str, variables: Variables) -> None:
        super().__init__(index, instance.ports, instance.outs)
        self.instance = instance
        self.name = name
        self.variables = variables
        self.dead = False

    def step(self, engine: Engine) -> Outcome:
        instance = self.instance
        if not instance.drain():
            return Outcome.FULL
        if self.dead:
            return Outcome.IDLE
        if self.locks and self.held < len(self.locks):
            return Outcome.LOCK if instance.ready() else Outcome.IDLE
        try:
            self.variables.load()
            more = instance.fire()
        except Trap as trap:
            engine.trapped(self, trap)
            self.dead, more = True, False
        finally:
            self.variables.store()
            if self.locks:
                engine.release(self)
        if self.dead or (instance.over and not any(port.back for port in self.ports)):
            self.close()
        if not instance.drain():
            return Outcome.FULL
        return Outcome.MORE if more else Outcome.IDLE


class Deliver(Task):
    """Hands an output to its sink."""

    def __init__(self, index: int, port: Port, sink: Callable[[Items], None] | None, batch: int) -> None:
        super().__init__(index, (port,), ())
        self.port = port
        self.sink = sink
        self.columns: Callable[[Rows], None] | None = getattr(sink, "columns", None)
        self.batch = batch

    def step(self, engine: Engine) -> Outcome:
        port = self.port
        port.fill(self.batch)
        count = min(port.run, self.batch)
        if count:
            self._deliver(port, count)
        elif port.mark() is None:
            return Outcome.IDLE
        return Outcome.MORE

    def _deliver(self, port: Port, count: int) -> None:
        """Hands over the next `count` items."""
        if self.columns is not None and isinstance(port, ColumnPort):
            batch, start, stop = port.next(count)
            rows = batch[start:stop]
            port.pop(len(rows))
            self.columns(rows)
            return
        items = port.items(count)
        port.pop(count)
        if self.sink is not None:
            self.sink(items)


class Variables:
    """The variables of an instance as the list that its firings use.

    Instances with the same variables share one list. A variable that stands in several lists lives in `shared` between
    firings; `moved` says where in the list such variables have their place.
    """

    __slots__ = ("_moved", "_shared", "values")

    def __init__(self, values: list[Any], moved: Sequence[tuple[int, str]], shared: dict[str, Any]) -> None:
        self.values = values
        self._moved = moved
        self._shared = shared

    def load(self) -> None:
        """Brings the values of shared variables into the list. Under the locks."""
        for place, name in self._moved:
            self.values[place] = self._shared[name]

    def store(self) -> None:
        """Takes them back. Under the locks."""
        for place, name in self._moved:
            self._shared[name] = self.values[place]


class Store:
    """The variables of a run."""

    def __init__(self, plan: Plan, compiled: Compiled) -> None:
        self._native = compiled.variables
        lists = dict.fromkeys(
            node.instance.variables for node in plan.nodes if node.instance.index not in compiled.native
        )
        homes = Counter(name for names in lists for name in names)
        initial = {
            variable.name: variable.initial
            for variable in plan.graph.variables
            if variable.name not in self._native
        }
        self._shared = {name: initial[name] for name in initial if homes[name] != 1}
        self._lists = {names: [initial[name] for name in names] for names in lists}
        self._types = {variable.name: variable.type for variable in plan.graph.variables}

    def of(self, names: tuple[str, ...]) -> Variables:
        """The variables of an instance."""
        moved = [(place, name) for place, name in enumerate(names) if name in self._shared]
        return Variables(self._lists[names], moved, self._shared)

    def final(self) -> dict[str, Any]:
        """The values now, frozen."""
        found = dict(self._shared)
        for names, values in self._lists.items():
            found |= {
                name: value for name, value in zip(names, values, strict=True) if name not in self._shared
            }
        for name, value in found.items():
            freeze = freezer(self._types[name])
            found[name] = value if freeze is None else freeze(value)
        found |= {name: variable.get() for name, variable in self._native.items()}
        return {name: found[name] for name in self._types}


class Engine:
    """One run of a plan.

    What threads share is read and written under `_lock`, except for ports and outs, which belong to whoever runs their
    task, and the two ends of a queue.
    """

    def __init__(self, plan: Plan, sinks: Sinks) -> None:
        self.plan = plan
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._news = threading.Condition(self._lock)
        self._reports = threading.Lock()
        self._ready: deque[Task] = deque()
        self._running = 0
        self._idle = 0
        self._reading = True
        self._blocked = False  # the reader waits for room
        self._stopped = False
        self._finished = False
        self._failed_at: float | None = None
        self._traps: list[tuple[tuple[int, int], Trap]] = []
        self._errors: list[BaseException] = []
        self._source_errors: list[Exception] = []
        self._compiled = compiled(plan)
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
            if hasattr(sink, "columns") and self._is_columns(queue):
                port = ColumnPort(self._queues[name], queue.type, key, (), back=False, checked=False)
            else:
                port = Port(self._queues[name], key, (), back=False, checked=False)
            self._tasks.append(Deliver(len(self._tasks), port, sink, plan.options.batch))
        self._entries = {
            name: Out(self._queues[name], keyed=graph.queues[name].by is not None, mixed=True, back=False)
            for name in graph.inputs
        }

    def _operate(self, node: Node, closing: set[str], locks: Sequence[Lock]) -> Operate:
        """The task of an instance."""
        plan, graph, instance = self.plan, self.plan.graph, node.instance
        operator, options = instance.operator, plan.options
        native = self._compiled.native.get(instance.index)
        ports: list[Port] = []
        for i, (name, declared) in enumerate(zip(instance.ins, operator.ports, strict=True)):
            key = None if declared.by is None else graph.queues[name].key()
            back, checked = i in node.back, graph.queues[name].producer is not None
            queue, initial = self._queues[name], declared.initial
            if native is None:
                ports.append(Port(queue, key, initial, back=back, checked=checked))
            else:
                ports.append(ColumnPort(queue, declared.type, key, initial, back=back, checked=checked))
        mixed = _marking(operator)
        outs = [
            Out(self._queues[name], keyed=out.by is not None, mixed=i in mixed, back=name in closing)
            for i, (name, out) in enumerate(zip(instance.outs, operator.outs, strict=True))
        ]
        variables = self._store.of(instance.variables) if native is None else Variables([], (), {})
        function = options.externs.get(operator.target) if isinstance(operator, typed.Extern) else None
        report = None if options.on_trap is None or instance.index in self._in_turns else self._report
        setting = Setting(operator, ports, outs, variables.values, options.batch, report)
        made = make(setting, function, self._poll) if native is None else make_machine(setting, native)
        task = Operate(instance.index, made, instance.name, variables)
        task.locks = tuple(locks[i] for i in node.locks)
        return task

    def _is_columns(self, queue: GraphQueue) -> bool:
        """Whether the items of a queue come in columns."""
        return queue.producer is not None and queue.producer.instance in self._compiled.native

    # -- the caller's thread

    def run(self, sources: Sources) -> Summary:
        """Starts the threads, waits for the end, and leaves no thread behind."""
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
        return Summary(
            self._store.final(),
            {task.name: task.instance.fired for task in self._operators},
            {task.name: task.instance.skipped for task in self._operators if task.instance.skipped},
        )

    def _watch(self) -> None:
        """Waits for the end. Raises: KeyboardInterrupt when told to stop."""
        stopping = self.plan.options.stopping
        while True:
            with self._lock:
                if not self._finished and not self._errors:
                    self._news.wait(POLL)
                if self._finished or self._errors:
                    return
                failed_at = self._failed_at if self.plan.cyclic else None
                if failed_at is not None and time.monotonic() > failed_at + GRACE:
                    return
            if stopping():
                raise KeyboardInterrupt

    def _stop(self) -> None:
        """Lets all threads end."""
        with self._lock:
            self._halt()

    def _halt(self) -> None:
        """Lets all threads end. Under the lock."""
        self._stopped = True
        for task in self._operators:
            task.instance.stop()
        self._work.notify_all()
        self._room.notify_all()

    # -- the reader's thread

    def _read(self, sources: Sources) -> None:
        """Sends what the sources give."""
        try:
            for turn in turns(self.plan.graph, sources, self.plan.options.batch):
                for name, elements in (*turn.items, *turn.marks):
                    self._entries[name].add(elements)
                if not self._send([self._entries[name] for name, _ in (*turn.items, *turn.marks)]):
                    break
        except Exception as error:  # noqa: BLE001 - a source is the user's: whatever it raises ends the run
            with self._lock:
                self._source_errors.append(error)
        except BaseException as error:  # noqa: BLE001 - a source may even want to exit
            self._fail(error)
        finally:
            with self._lock:
                self._reading = False
                self._work.notify()

    def _send(self, outs: Sequence[Out]) -> bool:
        """Puts everything, waiting for room; False when no more is wanted."""
        while True:
            for out in outs:
                out.drain()
            with self._lock:
                self._delivered(outs)
                if self._ready:
                    self._work.notify(len(self._ready))
                if self._stopped or self._failed_at is not None:
                    return False
                full = [out.queue for out in outs if out.waiting]
                if not full:
                    return True
                if not any(queue.room > 0 for queue in full):
                    for queue in full:
                        queue.wanted = True
                    self._blocked = True
                    self._work.notify()
                    self._room.wait()
                    for queue in full:
                        queue.wanted = False

    # -- the workers' threads

    def _labour(self) -> None:
        """Runs tasks until the end."""
        try:
            while (task := self._next()) is not None:
                self._done(task, task.step(self))
        except BaseException as error:  # noqa: BLE001 - of a sink, or a mistake of ours: it ends the run
            self._fail(error)

    def _next(self) -> Task | None:
        """A task to run; None at the end."""
        with self._lock:
            while True:
                if self._stopped or self._finished:
                    return None
                if self._ready:
                    task = self._ready.popleft()
                    task.state = State.RUNNING
                    task.missed = False
                    self._running += 1
                    return task
                if not self._running and (self._blocked or not self._reading or self._failed_at is not None):
                    self._stuck()
                    continue
                self._idle += 1
                self._work.wait()
                self._idle -= 1

    def _done(self, task: Task, outcome: Outcome) -> None:
        """Notes what a task did: wakes who may go on now."""
        with self._lock:
            self._running -= 1
            for port in task.ports:
                if port.queue.wanted and port.queue.room > 0:
                    self._made_room(port.queue)
            self._delivered(task.outs)
            for out in task.outs:
                out.queue.wanted = False
            match outcome:
                case Outcome.FULL:
                    full = [out.queue for out in task.outs if out.waiting]
                    if any(queue.room > 0 for queue in full):
                        self._queue(task)
                    else:
                        task.state = State.FULL
                        for queue in full:
                            queue.wanted = True
                case Outcome.LOCK:
                    self._acquire(task)
                case Outcome.MORE:
                    self._queue(task)
                case Outcome.IDLE:
                    task.state = State.IDLE
                    if task.missed:
                        self._queue(task)
            spare = len(self._ready) - 1  # one is for this worker
            if self._idle and spare > 0:
                self._work.notify(spare)

    # -- under the lock

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
        queue.wanted = False
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
            if self._idle and self._ready:
                self._work.notify(len(self._ready))

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
            smallest.bound *= 2
            self._made_room(smallest)
            return
        waiting = [task for task in self._tasks if task.state is not State.IDLE]
        if waiting or self._blocked:
            raise InternalError(f"nothing can run, though the run is not over\n{self.plan.show()}")
        self._finished = True
        self._work.notify_all()
        self._news.notify()

    # -- trouble

    def trapped(self, task: Operate, trap: Trap) -> None:
        """Notes the trap of a task: nothing more is read."""
        with self._lock:
            if trap.code == "stopped":
                return
            self._traps.append(((self.plan.nodes[task.index].component, task.index), trap))
            if self._failed_at is None:
                self._failed_at = time.monotonic()
            self._blocked = False
            self._room.notify()

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


def _marking(operator: typed.Operator | typed.Extern) -> frozenset[int]:
    """The outputs to which the operator's own text sends marks."""
    found: set[int] = set()

    def walk(node: object) -> None:
        match node:
            case typed.Mark(out, _):
                found.add(out)
            case tuple():
                for part in node:  # pyright: ignore[reportUnknownVariableType] - of any tree
                    walk(part)  # pyright: ignore[reportUnknownArgumentType]
            case typed.Node():
                for part in attrs.fields(type(node)):
                    if part.name not in ("span", "type"):
                        walk(getattr(node, part.name))
            case _:
                pass

    walk(operator)
    return frozenset(found)
