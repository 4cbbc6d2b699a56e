"""Bytes as they come: a pipe, a file that grows, the files of a folder. Waiting ends when the run is stopped."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from river.diagnostics import Rejected
from river.io.errors import unreadable
from river.io.live.control import POLL, Stopped
from river.io.several import hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from river.io.batches import Sender
    from river.io.live.control import Live

LOOK: Final = 0.2
"""Seconds between two looks at the names in a folder."""


class TextStream:
    """One text of an input from its first byte to its end. `read1` waits for bytes; an end of text is b"".

    `sender`: who it comes from, if others may go on when that one has to end.
    """

    def __init__(self, live: Live, label: str) -> None:
        self.live = live
        self.label = label
        self.sender: Sender | None = None
        self._first = b""
        self._open = 0  # bytes of the last line, which has no end yet
        self._waiting: Callable[[], int] = int  # bytes of whole lines that wait for a quote to close

    def _next(self, size: int) -> bytes:
        """The next bytes, b"" at the end. Raises: Stopped."""
        raise NotImplementedError

    @property
    def unfinished(self) -> int:
        """Bytes of the last line that have come, while it has no end."""
        return self._open

    def begins(self) -> bool:
        """Waits for the first byte; False if the text is empty. Raises: Stopped."""
        self._first = self._following(1 << 16)
        return bool(self._first)

    def read1(self, size: int) -> bytes:
        """The next bytes, as many as there are; b"" at the end. Raises: Stopped."""
        data, self._first = self._first, b""
        data = data or self._following(size)
        end = data.rfind(b"\n")
        self._open = self._open + len(data) if end < 0 else len(data) - end - 1
        return data

    @contextmanager
    def leaving(self, waiting: Callable[[], int]) -> Generator[None]:
        """Knows the bytes of whole lines that wait for a quote to close, and notes them when the run is stopped."""
        self._waiting = waiting
        try:
            yield
        except Stopped:
            if size := waiting():
                message = f"the last record has a quote that is open: its {size} bytes were not read"
                self.live.remark(message, self.label)
            raise

    def _following(self, size: int) -> bytes:
        try:
            return self._next(size)
        except Stopped:
            if self.unfinished:
                message = f"the last line has no end yet: its {self.unfinished} bytes were not read"
                self.live.remark(message, self.label)
            raise


class Pipe(TextStream):
    """A pipe or a terminal, by descriptor. `begun`: bytes that have been read from it."""

    def __init__(self, live: Live, label: str, descriptor: int, begun: bytes = b"") -> None:
        super().__init__(live, label)
        self._descriptor = descriptor
        self._begun = begun

    def _next(self, size: int) -> bytes:
        if self._begun:
            data, self._begun = self._begun, b""
            return data
        while True:
            self.live.wait(self._descriptor)
            try:
                return os.read(self._descriptor, size)
            except BlockingIOError:
                continue
            except ConnectionError:  # whoever wrote is gone: that is an end
                return b""


class Growing(TextStream):
    """A file that may grow, from where it stands. It ends when it has been read and `finished`, or got shorter.

    `shrunk`: it got shorter.
    """

    def __init__(self, live: Live, label: str, file: Any, finished: Callable[[], bool]) -> None:
        super().__init__(live, label)
        self._file = file
        self._finished = finished
        self.shrunk = False

    def _next(self, size: int) -> bytes:
        while True:
            if self.live.stopped:
                raise Stopped
            over = self._finished()  # asked first: what was written before that is read
            data = self._file.read(size)
            if data:
                return data
            self.shrunk = os.fstat(self._file.fileno()).st_size < self._file.tell()
            if over or self.shrunk:
                return b""
            self.live.wait(seconds=POLL)


def lines_of_file(live: Live, path: Path) -> Iterator[Growing]:
    """The texts of a file that is written, shortened, and replaced by a new one of its name."""
    while True:
        try:
            file = path.open("rb", buffering=0)
        except FileNotFoundError:
            live.wait(seconds=POLL)
            continue
        except OSError as error:
            raise Rejected([unreadable(str(path), error)]) from error
        with file:
            one = os.fstat(file.fileno())

            def replaced(one: os.stat_result = one) -> bool:
                try:
                    now = path.stat()
                except OSError:
                    return False  # moved away; the new one is not there yet
                return (now.st_dev, now.st_ino) != (one.st_dev, one.st_ino)

            while True:
                text = Growing(live, str(path), file, replaced)
                yield text
                if not text.shrunk:
                    break
                file.seek(0)


def files_of_folder(
    live: Live, folder: Path, input_: str, why_unread: Callable[[str], str | None]
) -> Iterator[Growing]:
    """The texts of the files in a folder: each once, always the first name not yet read.

    A file has ended when it has been read and there is another one to read. One of which `why_unread` says something is left,
    and so is what is no file; `live` is told of it. Hidden files are nobody's concern.
    """
    names = _Names(folder, why_unread, lambda path, why: live.leave(input_, path, why))
    while True:
        name = names.following()
        if name is None:
            live.wait(seconds=LOOK)
            continue
        names.read.add(name)
        path = folder / name
        try:
            file = path.open("rb", buffering=0)
        except FileNotFoundError:
            continue  # gone already
        except OSError as error:
            raise Rejected([unreadable(str(path), error)]) from error
        with file:
            while True:
                text = Growing(live, str(path), file, lambda: names.following() is not None)
                yield text
                if not text.shrunk:
                    break
                file.seek(0)


class _Names:
    """The names in a folder that have not been read. They are looked up again after `LOOK` seconds."""

    def __init__(
        self, folder: Path, why_unread: Callable[[str], str | None], leave: Callable[[str, str], None]
    ) -> None:
        self.read: set[str] = set()
        self._folder = folder
        self._why_unread = why_unread
        self._leave = leave
        self._left: set[str] = set()
        self._looked = float("-inf")
        self._known: list[str] = []

    def following(self) -> str | None:
        """The first name that has not been read, if there is one."""
        import time

        now = time.monotonic()
        if now >= self._looked + LOOK:
            self._looked = now
            self._known = sorted(self._look())
        return next((name for name in self._known if name not in self.read), None)

    def _look(self) -> Iterator[str]:
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name in self.read or hidden(entry.name):
                        continue
                    why = self._why_unread(entry.name) if entry.is_file() else "it is no file"
                    if why is None:
                        yield entry.name
                    elif entry.name not in self._left:
                        self._left.add(entry.name)
                        self._leave(entry.path, why)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Rejected([unreadable(str(self._folder), error)]) from error


def is_pipe(descriptor: int) -> bool:
    """Whether a descriptor is that of a pipe, a socket or a terminal."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
