"""Signals that end a command: Ctrl-C and SIGTERM, at any moment between the first import and the last line.

Imports nothing of River and little of Python: what comes while modules are imported is dealt with, too.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType
    from typing import TextIO

    from river.io.live import Live

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

AGAIN = 0.01
"""Seconds after which an interrupt that got lost is sent again."""

_came: list[signal.Signals] = []
_told: list[signal.Signals] = []


class Interrupted(KeyboardInterrupt):
    """A signal is to end the command."""


def heed() -> None:
    """From now on these signals raise `Interrupted` in the main thread, but for those that the caller had us ignore."""
    for number in WORDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    sys.unraisablehook = _lost


def unheed() -> None:
    """Signals end the process at once: nothing is left to do."""
    for number in WORDS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def ended(stderr: TextIO) -> int | None:
    """The exit status where a signal came, which is told; None where none did.

    It counts for whatever error reaches the end of the command after it: libraries pack what is raised in them into others.
    """
    if not _came:
        return None
    _told.append(_came[0])  # what comes now changes nothing
    print(WORDS[_came[0]], file=stderr)
    return 128 + _came[0]


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if not _told:
        _came.append(signal.Signals(number))
        raise Interrupted


def _lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Something was raised where nothing can be: in a finalizer, or a function that C calls. An interrupt is sent again."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)
        return
    from threading import Timer

    timer = Timer(AGAIN, signal.raise_signal, (_came[-1],))
    timer.daemon = True
    timer.start()


@contextmanager
def ended_by_signals(live: Live | None) -> Generator[None]:
    """Within it the first Ctrl-C, or SIGTERM, ends a live run well; the next one interrupts it."""
    import threading

    if live is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.getsignal(number) for number in WORDS]

    def end(number: int, _frame: object) -> None:
        live.stop()
        signal.signal(number, _interrupt)

    for number in WORDS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in zip(WORDS, before, strict=True):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
