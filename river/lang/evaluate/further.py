"""Calls of functions that nest so deeply that they go on in another thread.

Where a library calls a function of the program (to sort, say) a call takes room on the C stack, which the system limits for
each thread, as Python limits the calls in each. So only so many calls nest in one thread, and those behind it go on in
a new one, for which it waits.
"""

from __future__ import annotations

from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final

from river.lang.evaluate.traps import Trap

if TYPE_CHECKING:
    from river.lang.evaluate.code import Frame, Run
    from river.lang.typed import Call

DEEPEST: Final = 1_000_000
"""Nested calls (P10), if there is memory for them."""

NESTED: Final = 1000
"""Nested calls of one thread."""

_BEGINS: Final = 1.0
"""Seconds after which a thread has begun, if it has been started at all."""


class _Further(Thread):
    """A call in a thread. `ended`: set when somebody whom all calls above it wait for is told to end."""

    def __init__(self, run: Run, frame: Frame) -> None:
        super().__init__(name="river-further", daemon=True)
        here = current_thread()
        self.work = run, frame
        self.found: Any = None
        self.failure: BaseException | None = None
        self.ended = here.ended if isinstance(here, _Further) else Event()
        # a `join` that is interrupted takes the thread for one that has ended
        self.begun, self.done = Event(), Event()

    def run(self) -> None:
        self.begun.set()
        run, frame = self.work
        try:
            unless_ended()
            self.found = run(frame)
        except BaseException as failure:  # noqa: BLE001 - it is raised again where the call is
            self.failure = failure.with_traceback(None)
        self.done.set()

    def end(self) -> None:
        """Has it end, as well as the threads that it waits for."""
        self.ended.set()
        if self.begun.wait(_BEGINS):
            self.done.wait()
            self.join()


def unless_ended() -> None:
    """Raises: KeyboardInterrupt in a thread of a call that is to end."""
    here = current_thread()
    if isinstance(here, _Further) and here.ended.is_set():
        raise KeyboardInterrupt


def further(run: Run, frame: Frame, depth: int, expr: Call) -> Any:
    """What a function gives, in another thread.

    Raises: Trap if calls are nested too deeply, and whatever the function raises.
    """
    if depth > DEEPEST:
        raise _too_deep(expr)
    call = _Further(run, frame)
    try:
        call.start()
        call.done.wait()
        call.join()
    except RuntimeError:  # the system gives no thread
        raise _too_deep(expr) from None
    except BaseException:
        call.end()
        raise
    if call.failure is not None:
        raise call.failure
    return call.found


def _too_deep(expr: Call) -> Trap:
    return Trap("recursion-depth", (DEEPEST,), expr.name, expr.site, expr.span)
