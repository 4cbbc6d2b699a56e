"""Code that is made quickly at first, and well when it pays.

To optimise code takes LLVM ten times as long as to make it, most of what a user waits for before the first row of a program
that is new. So a run on little, or on nobody knows how much, has all code that is in no cache made without optimisation. What
then runs for longer than `LONG` is made once more by a thread, one after the other; as soon as the better code is there, calls go
to it. Both do the same on the same memory, so any call may be the first of the better one. At its end a run waits for the code
that is being made, no other.

How long code has run is noted in the cache, and counts in the next run, which begins with the quick code in any case: nobody
waits for better code before the first row. So optimising costs about as much as was spent for want of it, and what only ever sees
a few rows is not optimised.

What a process makes outside of runs (`while_running`), or on a stated level, is optimised at once.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from math import inf
from threading import RLock, Thread, local
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from river.classes import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from backends.native.jit import Code

LONG: Final = 0.25
"""Seconds in code that was made quickly, in all runs, until it is optimised: about as long as that takes."""

LARGE: Final = 16 << 20
"""Bytes of inputs from which on all code is optimised before a run: it takes longer than that does, or is run again."""

BRIEF: Final = 20e-6
"""Seconds of a call for which it would take a while to ask for the time at each: of one after such a call it is not asked."""

UNTIMED: Final = 15
"""How many calls after a brief one are taken for as long as it, without asking."""

LEAST: Final = 0.001
"""Seconds in a run that are worth a note."""

job: Final = local()
"""Of a thread that makes code: `failures`, a list that is empty as long as what it makes is wanted."""

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

    better: Code | None = None

    def function(
        self, name: str, quick: Callable[..., Any], params: tuple[Any, ...], result: Any, *, short: bool
    ) -> Callable[..., Any]:
        """A function that calls `quick`, and later the one of this name of the better code."""
        target, untimed = quick, 0.0

        def call(*args: Any) -> Any:
            nonlocal target, untimed
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
                if took < BRIEF:
                    took, untimed = took * (1 + UNTIMED), UNTIMED
                self.seconds += took

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
class Improver:
    """Improves code while something runs, in a thread of its own that works only while there is something to do."""

    thread: Thread | None = None
    stopped: list[BaseException] = field(factory=list[BaseException])

    def look(self) -> None:
        """To be called now and then: begins with the code that has run longest, if it is worth it."""
        if self.thread is not None and self.thread.is_alive():
            return
        with _LOCK:
            found = max(_KNOWN, key=_ran, default=None)
        if found is not None and _ran(found) >= LONG:
            self.thread = Thread(target=self._work, args=(found,), name="improve")
            self.thread.start()

    def _work(self, tier: Tier) -> None:
        job.failures = self.stopped
        with suppress(Unwanted):
            tier.improve()

    def stop(self) -> None:
        """Waits for what is being made: the code that LLVM is at now. Notes for how long the others have run."""
        self.stopped.append(KeyboardInterrupt())
        if self.thread is not None:
            self.thread.join()
        with _LOCK:
            for tier in _KNOWN:
                ran, tier.seconds = tier.seconds, 0.0
                tier.before += ran
                if ran > LEAST:
                    tier.note(ran)


@contextmanager
def while_running() -> Generator[Improver]:
    """Has code that is not in a cache made quickly, as long as the run lasts; `look` improves it."""
    improver = Improver()
    with _LOCK:
        _RUNS.append(improver)
    try:
        yield improver
    finally:
        with _LOCK:
            _RUNS.remove(improver)
        improver.stop()


def wanted() -> bool:
    """Whether code is to be made quickly: somebody improves it later."""
    return bool(_RUNS)


def known(tier: Tier) -> None:
    """Code that is to be improved when it has run for long."""
    with _LOCK:
        _KNOWN.append(tier)
