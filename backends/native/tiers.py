"""Code that is made quickly at first, and well when it pays.

To optimise code takes LLVM ten times as long as to make it, most of what a user waits for before the first row of a program
that is new. So a run on little, or on nobody knows how much, has all code that is in no cache made with few passes of LLVM's
(`jit.QUICK`), and one on next to nothing (`SMALL`) with none. What then runs for longer than `LONG` is made once more by another
process (`apart`); as soon as the better code is there, calls go to it. All do the same on the same memory, so any call may be
the first of the better one.

How long code has run is noted in the cache, and counts in the next run, which begins with the quick code in any case: nobody
waits for better code before the first row. So optimising costs about as much as was spent for want of it, and what only ever sees
a few rows is not optimised.

What a process runs again it is likely to run many times: then code is worth that which has run for much less (`AGAIN`).

Where there can be no other process, a thread makes the better code, one after the other, and at its end a run waits for the
code that is being made.

What a process makes outside of runs (`while_running`), or on a stated level, is optimised at once.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from math import inf
from threading import RLock, Thread, local
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from backends.native.apart import ANOTHER, Order, begin, ended
from backends.native.jit import QUICK
from river.classes import define, field
from river.lang import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from backends.native.jit import Code

LONG: Final = 0.25
"""Seconds in code that was made quickly, in all runs, until it is optimised: about as long as that takes."""

AGAIN: Final = 0.005
"""The same of code that has run in this process, and that one more run wants."""

LARGE: Final = 16 << 20
"""Bytes of inputs from which on code is optimised before a run: it takes longer than that does, or is run again."""

BYTES: Final = 64
"""So many bytes of such inputs are wanted for each character of the text of code that is optimised before. What a program has
beyond that is made quickly: a hundred operators take LLVM half a minute, in which a run on little more than `LARGE` is over."""

SMALL: Final = 16 << 10
"""Bytes of inputs up to which nothing is worth optimising at all before a run: this is over before it shows."""

BRIEF: Final = 20e-6
"""Seconds of a call for which it would take a while to ask for the time at each."""

STEADY: Final = 64
"""After how many such calls, one after the other, it is not asked at each. Before that, what comes may vary by much: an instant
that is over takes a thousand times as long as an item that is put by."""

UNTIMED: Final = 15
"""How many calls before one of which it is asked then are taken for as long as it."""

LEAST: Final = 0.001
"""Seconds in a run that are worth a note."""

job: Final = local()
"""Of a thread that makes code: `failures`, a list that is empty as long as what it makes is wanted; `ending`, whether that is
for what is left when the inputs have ended."""

_LOCK: Final = RLock()
_RUNS: Final[list[Improver]] = []
_KNOWN: Final[list[Tier]] = []  # all of this process that are not better yet


class Unwanted(BaseException):
    """What a thread makes is not wanted any more."""


def abandoned() -> bool:
    """Whether nobody waits any more for what this thread makes."""
    return bool(getattr(job, "failures", None))


def unless_abandoned() -> None:
    """To be called now and then by what takes long while code is made. Raises: Unwanted."""
    if abandoned():
        raise Unwanted


@define(eq=False)
class Tier:
    """How code is called that was made quickly: through functions that go over to the better code when it is there."""

    make: Callable[[], Code] = field(repr=False)
    """Makes the better code."""

    note: Callable[[float], None] = field(repr=False)
    """Notes for how many seconds it has run."""

    seconds: float = 0.0
    """For how long calls have run."""

    before: float = 0.0
    """For how long they have in the runs of other processes."""

    order: Order | None = None
    """How another process is asked for it; None: it cannot be."""

    ran: bool = False
    """Whether it has run for a while in a run of this process."""

    again: bool = False
    """Whether one more run wants it."""

    better: Code | None = None

    def function(
        self, name: str, quick: Callable[..., Any], params: tuple[Any, ...], result: Any, *, short: bool
    ) -> Callable[..., Any]:
        """A function that calls `quick`, and later the one of this name of the better code."""
        target, untimed, counted, brief = quick, 0.0, 1, 0

        def call(*args: Any) -> Any:
            nonlocal target, untimed, counted, brief
            if untimed > 0:
                untimed -= 1
                return target(*args)
            better = self.better
            if better is not None:
                target, untimed = better.function(name, params, result, short=short), inf
                return target(*args)
            began = perf_counter()
            try:
                return target(*args)
            finally:
                took = perf_counter() - began
                self.seconds += took * counted
                brief = brief + 1 if took < BRIEF else 0
                untimed = UNTIMED if brief >= STEADY else 0
                counted = 1 + untimed

        return call

    def improve(self) -> None:
        """Makes the better code, unless it is there. Raises: Unwanted."""
        with _LOCK:
            if self not in _KNOWN:
                return
            _KNOWN.remove(self)
        try:
            self.better = self.make()
        except Unwanted:
            known(self)
            raise


def _ran(tier: Tier) -> float:
    """For how long code has run, in all."""
    return tier.before + tier.seconds


@define(eq=False)
class Elsewhere:
    """What another process improves: one process at a time, and nothing twice."""

    process: int | None = None
    asked: list[Tier] = field(factory=list["Tier"])

    def busy(self) -> bool:
        """Whether the process is at work. Where that of another run was, what it was asked for is to be asked for again."""
        status = None if self.process is None else ended(self.process)
        if status is not None:
            self.process = None
            if status == ANOTHER:
                self.asked = []
        return self.process is not None

    def ask(self, tiers: list[Tier]) -> bool:
        """Has code improved, what has run longest first. Whether another process is at that, or at something else before."""
        if self.busy():
            return True
        new = [
            tier
            for tier in tiers
            if tier not in self.asked and tier.order is not None and tier.order.possible
        ]
        if new:
            new.sort(key=_ran, reverse=True)
            self.process = begin([tier.order for tier in new if tier.order is not None])
            self.asked = [tier for tier in self.asked if tier.better is None] + new
        return self.process is not None

    def take(self) -> None:
        """Has calls go over to what is there by now, whoever has asked for it."""
        with _LOCK:
            hot = [tier for tier in _KNOWN if tier.ran or tier in self.asked]
        for tier in hot:  # without the lock, since what begins then may make code
            if tier.order is not None and tier.order.done:
                tier.improve()


_ELSEWHERE: Final = Elsewhere()


@define(eq=False)
class Improver:
    """Improves code while something runs: another process does, else a thread that works only while there is something to do.

    `effort`: how much code is optimised for which the run waits. `room`: characters of the text of code that is optimised at
    once all the same.
    """

    effort: int = QUICK
    room: int = 0
    thread: Thread | None = None
    stopped: list[BaseException] = field(factory=list[BaseException])

    def look(self) -> None:
        """To be called now and then: begins with the code that has run longest, if it is worth it."""
        if self.thread is not None and self.thread.is_alive():
            return
        _ELSEWHERE.take()
        with _LOCK:
            again = [tier for tier in _KNOWN if _ran(tier) >= (AGAIN if tier.again else LONG)]
            if not again or _ELSEWHERE.ask(again):
                return
            worth = [tier for tier in again if _ran(tier) >= LONG]
        if not worth:
            return
        self.thread = Thread(target=self._work, args=(max(worth, key=_ran),), name="improve")
        memory.start(self.thread)

    def _work(self, tier: Tier) -> None:
        job.failures = self.stopped
        with suppress(Unwanted):
            tier.improve()

    def stop(self) -> None:
        """Waits for what is being made here: the code that LLVM is at now. Notes for how long the others have run."""
        self.stopped.append(KeyboardInterrupt())
        if self.thread is not None:
            self.thread.join()
        with _LOCK:
            for tier in _KNOWN:
                ran, tier.seconds = tier.seconds, 0.0
                tier.before += ran
                if ran > LEAST:
                    tier.note(ran)
                    tier.ran = True


def effort_for(sizes: Sequence[int]) -> int:
    """How much code is optimised for which a run on inputs waits that are so large; 0 is the size of one that nobody knows."""
    if all(sizes) and 0 < sum(sizes) <= SMALL:
        return 0
    return QUICK


def room_for(sizes: Sequence[int]) -> int:
    """Of how many characters code is optimised before a run on inputs that are so large."""
    return sum(sizes) // BYTES if sum(sizes) >= LARGE else 0


@contextmanager
def while_running(effort: int = QUICK, room: int = 0) -> Generator[Improver]:
    """Has code that is not in a cache made quickly, as long as the run lasts; `look` improves it. See `Improver`."""
    improver = Improver(effort, room)
    with _LOCK:
        _RUNS.append(improver)
    try:
        _ELSEWHERE.take()
        yield improver
    finally:
        with _LOCK:
            _RUNS.remove(improver)
        improver.stop()


def wanted() -> int | None:
    """How much code is optimised that somebody improves later; None: there is nobody."""
    with _LOCK:
        return max((improver.effort for improver in _RUNS), default=None)


@contextmanager
def ending() -> Generator[None]:
    """What this thread makes meanwhile has no part in any item of an input: it runs on what is left when these have ended.

    However much they are, it is made quickly, as it would be for little.
    """
    before = getattr(job, "ending", False)
    job.ending = True
    try:
        yield
    finally:
        job.ending = before


def _runs() -> list[Improver]:
    """The runs for whose inputs this thread makes code."""
    return [] if getattr(job, "ending", False) else _RUNS


def roomy() -> bool:
    """Whether some code is optimised before the run."""
    with _LOCK:
        return any(improver.room for improver in _runs())


def taken(size: int) -> bool:
    """Takes room for code of so many characters, which is optimised before the run then; whether there was enough."""
    with _LOCK:
        for improver in _runs():
            if improver.room >= size:
                improver.room -= size
                return True
    return False


def known(tier: Tier) -> None:
    """Code that is to be improved when it has run for long."""
    with _LOCK:
        _KNOWN.append(tier)
