"""Signals that end a command: Ctrl-C and SIGTERM, at any moment between the first import and the last line.

Imports nothing of River and little of Python: what comes while modules are imported is dealt with, too.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType
    from typing import TextIO

    from river.io.live import Live

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

AGAIN = 0.01
"""Seconds after which a signal is sent again whose exception got lost."""

TIME_OVER = 124
"""The exit status of a command that took too long, as that of `timeout`."""

GRACE = 5.0
"""Seconds that a command has to clean up when its time is over; then the process ends, whatever it is about."""

_came: list[signal.Signals] = []
_words: list[str] = []  # of the alarm
_told: list[signal.Signals] = []
_raised: list[weakref.ref[Interrupted]] = []


class Interrupted(KeyboardInterrupt):
    """A signal is to end the command."""


def heed() -> None:
    """From now on these signals raise `Interrupted` in the main thread, but for those that the caller had us ignore."""
    for number in WORDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    sys.unraisablehook = _unraisable


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
    if _came[0] is signal.SIGALRM:
        print(_words[0], file=stderr)
        return TIME_OVER
    print(WORDS[_came[0]], file=stderr)
    return 128 + _came[0]


def end_after(seconds: float, words: str) -> Callable[[], None]:
    """Has the command end after so many seconds as by a signal, and tell `words`; what it returns takes that back.

    Where that does not help, such as in a library that does not come back, its outputs are removed and the process ends.
    To be called in the main thread.
    """
    import threading

    lock, done = threading.Lock(), threading.Event()
    before = signal.signal(signal.SIGALRM, _interrupt)

    def wait() -> None:
        if done.wait(min(seconds, threading.TIMEOUT_MAX)):
            return
        with lock:
            if done.is_set():
                return
            _words.append(words)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        time.sleep(GRACE)
        _leave(words)

    def take_back() -> None:
        with lock:
            done.set()
            if not _words:
                signal.signal(signal.SIGALRM, before)

    threading.Thread(target=wait, name="river-time", daemon=True).start()
    return take_back


def _leave(words: str) -> None:
    """Ends the process, from whichever thread."""
    from river.io.atomic import discard_all

    discard_all()
    if not _told:
        with suppress(OSError):
            os.write(2, f"{words}\n".encode(errors="backslashreplace"))
    os._exit(128 + _told[0] if _told and _told[0] is not signal.SIGALRM else TIME_OVER)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if not _told:
        _came.append(signal.Signals(number))
        raise _interrupted()  # which is no variable here: that would keep it


def _interrupted() -> Interrupted:
    found, thread = Interrupted(), _thread.get_ident()
    _raised[:] = [weakref.ref(found, lambda _: _lost(thread))]
    return found


def _lost(thread: int) -> None:
    """An exception is no more: if nobody has told of it, somebody dropped it, and the command goes on. So it is sent again."""
    if not _told:
        _thread.start_new_thread(_send_again, (_came[-1], thread))


def _send_again(number: signal.Signals, thread: int) -> None:
    time.sleep(AGAIN)
    signal.pthread_kill(thread, number)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Something was raised where nothing can be: in a finalizer, or a function that C calls."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)


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
