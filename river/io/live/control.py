"""When a live run ends, and what silence means in it."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from river.classes import define, field
from river.diagnostics import Diagnostic, Severity
from river.io.errors import file_unread, files_unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.io.live.connections import Door
    from river.metrics import ConnectionFigures

TCP: Final = "tcp://"
UNIX: Final = "unix:"
"""What the addresses of sockets begin with."""

POLL: Final = 0.05
"""Seconds between two looks at what nobody tells us of: files that may have grown."""

TOLD: Final = 10
"""Connections and files of an input that are told of at once; the others are only counted."""


class Stopped(Exception):  # noqa: N818 - control flow of this package
    """Nothing more is to be read."""


@define(eq=False)
class Live:
    """How one run over live inputs goes on and ends.

    `idle`: an input that has been silent for so long no longer holds up the others (None: they wait for it). `clock`: with
    `wall`, a silent input whose time stamps are times is taken to have reached the time of day, less the lateness. The run
    ends `stop_after` its begin, when no input has given anything for `idle_exit`, or by `stop`: what was read is finished.
    `token`: the line that who connects has to send first; `hang_up`: a connection ends that has been silent for so long.
    Units: seconds. `tell` is told, in any thread, what the user should know at once; `remarks`: how it ended.
    """

    idle: float | None = None
    clock: Literal["data", "wall"] = "data"
    stop_after: float | None = None
    idle_exit: float | None = None
    token: str | None = field(default=None, kw_only=True, repr=False)
    hang_up: float | None = field(default=None, kw_only=True)
    tell: Callable[[Diagnostic], None] | None = field(default=None, kw_only=True)
    lateness: int = field(default=0, kw_only=True)
    stopped: bool = field(default=False, init=False)
    remarks: list[Diagnostic] = field(factory=list[Diagnostic], init=False)
    doors: list[Door] = field(factory=list["Door"], init=False)
    _unread: dict[str, tuple[int, Diagnostic]] = field(factory=dict[str, tuple[int, Diagnostic]], init=False)
    _wake: tuple[int, int] | None = field(default=None, init=False)
    _used: bool = field(default=False, init=False)
    _busy: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def stop(self) -> None:
        """Ends the run when what was read is finished. From any thread, also from a handler of signals."""
        self.stopped = True
        wake = self._wake
        if wake is not None:
            with suppress(OSError):
                os.write(wake[1], b".")

    def open(self) -> None:
        """Before anybody waits. Raises: ValueError the second time."""
        if self._used:
            raise ValueError("a `Live` is for one run")
        self._used = True
        self._wake = os.pipe()
        os.set_blocking(self._wake[1], False)
        if self.stopped:
            self.stop()

    def close(self) -> None:
        """When nobody waits any more."""
        self.stopped = True
        with self._lock:
            wake, self._wake = self._wake, None
        for end in wake or ():
            os.close(end)

    @property
    def busy(self) -> bool:
        """Whether a thread that reads is about something, and not waiting for what comes."""
        return self._busy > 0

    def works(self, more: int) -> None:
        """So many more threads read, or fewer."""
        with self._lock:
            self._busy += more

    def wait(self, file: Any = None, seconds: float | None = None) -> bool:
        """Whether `file` (a descriptor, or what has one) can be read, within `seconds`. Raises: Stopped."""
        self.works(-1)
        try:
            return self._wait(file, seconds)
        finally:
            self.works(1)

    def _wait(self, file: Any, seconds: float | None) -> bool:
        if self.stopped or self._wake is None:
            raise Stopped
        poll = select.poll()
        poll.register(self._wake[0], select.POLLIN)
        if file is not None:
            poll.register(file, select.POLLIN)
        found = poll.poll(None if seconds is None else seconds * 1000)
        if self.stopped:
            raise Stopped
        return bool(found)

    def remark(self, message: str, place: str) -> None:
        """Notes something for the user."""
        with self._lock:
            self.remarks.append(
                Diagnostic("data-incomplete", message, place=place, severity=Severity.WARNING)
            )

    def leave(self, name: str, path: str, why: str) -> None:
        """A file that came to the folder of input `name` is not read."""
        reason = file_unread(name, path, why)
        with self._lock:
            count, first = self._unread.get(name, (0, reason))
            self._unread[name] = count + 1, first
        if count < TOLD and self.tell is not None:
            self.tell(reason)

    def unread(self) -> dict[str, int]:
        """How many files of each input's folder were not read."""
        with self._lock:
            return {name: count for name, (count, _) in self._unread.items()}

    def connections(self) -> dict[str, ConnectionFigures]:
        """The counts of each input that listens."""
        return {door.name: door.figures() for door in self.doors}

    def report(self) -> list[Diagnostic]:
        """What the user should know of how it ended."""
        doors = [reason for door in self.doors if (reason := door.report()) is not None]
        files = [files_unread(name, count, first) for name, (count, first) in sorted(self._unread.items())]
        return [*self.remarks, *files, *doors]

    def today(self) -> int | None:
        """The time of day that silent inputs are taken to have reached, None without clock. Units: microseconds."""
        return time.time_ns() // 1000 - self.lateness if self.clock == "wall" else None
