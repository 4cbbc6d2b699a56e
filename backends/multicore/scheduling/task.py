"""What is scheduled: a task, where it stands, what came of running it, the locks that it may need, and who may run it."""

from __future__ import annotations

import math
from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from river.classes import define

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backends.firing.ports import Out, Port
    from backends.firing.queues import Queue
    from river.diagnostics import Rejected
    from river.ingress import Turn
    from river.lang.evaluate import Trap


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
    SPLIT = auto()  # the worker goes on with something for itself, the task may be run again at once


class Lock:
    """A lock of variables that hands itself to whoever waits longest. Only the scheduler uses it; nobody blocks on it."""

    __slots__ = ("owner", "waiting")

    def __init__(self) -> None:
        self.owner: Task | None = None
        self.waiting: deque[Task] = deque()


class Ready(Protocol):
    """The ready tasks. Iterating gives them in no order."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Task]: ...

    @property
    def first(self) -> Task:
        """What `popleft` would give."""
        ...

    def append(self, task: Task, /) -> None:
        """One more."""
        ...

    def appendleft(self, task: Task, /) -> None:
        """One more, which comes before all others."""
        ...

    def popleft(self, now: float, /) -> Task:
        """Takes the one that comes next, of at least one. `now`: the time, in seconds."""
        ...


@define(eq=False)
class CoreSet:
    """Some of the workers, by number, that alone run some of the tasks; `ready`: which of these may have something to do.

    `last`: whether the last task that one of them took was one of these, where it had the choice.

    Paper: River §4.5 (placement).
    """

    workers: range
    ready: Ready
    last: bool = False


class Control(Protocol):
    """What a task may say while it runs."""

    def trapped(self, task: Task, trap: Trap, /) -> None:
        """A firing has trapped; the task fires no more."""
        ...

    def refused(self, error: Rejected, /) -> None:
        """What a task read is not to be taken, so that nothing more is read."""
        ...

    def release(self, task: Task, /) -> None:
        """The task needs its locks no more."""
        ...

    @property
    def wanted(self) -> bool:
        """Whether more is to be read."""
        ...

    def sending(self, turn: Turn, entries: Mapping[str, Out], /) -> None:
        """A task that reads an input sends a turn of it."""
        ...


class Task:
    """Something that a worker runs.

    `cores`: the workers that run it, None for any and the reader. `locks`: what it acquires, in standard order, `held` of
    them are its own now. `missed`: input came while it ran. `wanting`: the queue without whose next items it has nothing to do,
    as its last step has found, and nothing has come since. `led`: another task runs it in its own steps. `working`: workers
    that go on with something that they took out of it (`Outcome.SPLIT`), `most` so far; `width`: how many there may be
    now, up to `widest` (0: always as many), `changed` so often. `seconds`: how long workers ran it; `batches`: how often
    something was fired, `counted` firings so far.
    """

    several: ClassVar[bool] = False
    """Whether several workers may be at it, each of which may have put what another one left waiting."""

    def __init__(self, index: int, ports: Sequence[Port], outs: Sequence[Out]) -> None:
        self.index = index
        self.ports = ports
        self.outs = outs
        self.state = State.IDLE
        self.missed = False
        self.wanting: Queue | None = None
        self.led = False
        self.cost = math.inf  # seconds of a step, smoothed; not known yet
        self.cores: CoreSet | None = None
        self.locks: tuple[Lock, ...] = ()
        self.held = 0
        self.working = 0
        self.most = 0
        self.width: float = math.inf
        self.widest = 0
        self.changed = 0
        self.seconds = 0.0
        self.batches = 0
        self.counted = 0

    def step(self, control: Control) -> Outcome:
        """Does what there is to do, up to a batch. Only who has taken the task calls it."""
        raise NotImplementedError

    def learn(self, seconds: float, *, empty: bool) -> None:
        """A step has taken so long. Those that found nothing to do count little, and long ones less than short ones.

        The first steps are long because memory is new and nothing is in the caches, others because somebody else had the
        processor.
        """
        if self.cost == math.inf:
            self.cost = seconds
        else:
            self.cost += (seconds - self.cost) / (8 if empty else 4 if seconds > self.cost else 2)

    def stop(self) -> None:
        """Ends a firing that is under way soon."""

    def close(self) -> None:
        """Takes nothing any more."""
        for port in self.ports:
            port.queue.close()


class Divided(Task):
    """A task out of which workers take what they go on with for themselves (`Outcome.SPLIT`).

    `detached`, `ticket`: what was taken last, with its serial number.
    """

    several: ClassVar[bool] = True
    detached: Any = None
    ticket: int = 0

    @property
    def given(self) -> int:
        """How many results will have been sent when all that was taken so far is done."""
        raise NotImplementedError

    @property
    def sent(self) -> int:
        """How many results have been sent."""
        raise NotImplementedError

    def work(self, detached: Any, ticket: int, control: Control) -> None:
        """Does what was taken, while others run the task."""
        raise NotImplementedError
