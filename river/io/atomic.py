"""Outputs that appear whole or not at all.

A file is written beside its target under another name and moved over it when it is complete; until then, and
after a failure, the target is what it was. What a process that was killed left of that is removed by the next one
that writes the same target: it is locked as long as somebody writes it. Targets that are not regular files (devices,
pipes), standard output, and files that are written in place get the items as they come.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import io
import os
import re
import stat
import sys
import threading
import weakref
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import evolve
from river.diagnostics import Rejected
from river.io.errors import unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

AHEAD: Final = 4 << 20
"""Bytes of a file after which the system is asked to write them: to do so earlier costs more than it gains."""

LARGE: Final = 256 << 10
"""Bytes of a file that is replaced from which on it takes longer to give its blocks back than to start a thread."""

_NAMED: Final = getattr(os, "O_PATH", os.O_RDONLY)
"""How a file is held without leave to read it, where the system has that."""

_AGAIN: Final = (
    "a run that goes on writes behind that: put the file back as it was, or begin anew with `--restart`"
)

_UNFINISHED: Final[set[Path]] = set()
"""Files that are not at their places yet."""

_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE: begin, and wait for nothing


class AtomicOutput:
    """Bytes on their way to a target: a path, `-` for standard output, or an open file (of bytes or of text).

    `in_place`: a file is new at once, and others see what is written. `resume`: the file is there, and what comes after
    that many bytes is dropped and written anew.
    """

    def __init__(self, target: object, *, in_place: bool = False, resume: int | None = None) -> None:
        self._final: Path | None = None
        self._temporary: Path | None = None
        self._owned = False
        self._begun = 0
        self._named: Path | None = None  # a folder whose new name for this output may not be on the disk
        self.file: Any
        if isinstance(target, str | os.PathLike):
            path = os.fspath(cast("str | os.PathLike[str]", target))
            self.label = "<stdout>" if path == "-" else path
            if path == "-":
                self.file = getattr(sys.stdout, "buffer", sys.stdout)
            else:
                try:
                    self._open(Path(path), in_place=in_place, resume=resume)
                except (OSError, ValueError) as error:  # a name may hold what no file name can
                    again = None if resume is None else _AGAIN
                    raise Rejected([evolve(unwritable(path, error), help=again)]) from error
        else:
            label = getattr(target, "name", None)
            self.label = label if isinstance(label, str) else "<output>"
            self.file = target
        self.streaming = self._temporary is None
        self._takes_text = isinstance(self.file, io.TextIOBase)

    def _open(self, path: Path, *, in_place: bool, resume: int | None) -> None:
        final = Path(os.path.realpath(path))  # a link stays a link
        self._owned = True
        if resume is not None:
            self.file = final.open("r+b")
            if self.file.seek(0, os.SEEK_END) < resume:
                self.file.close()
                raise OSError(f"it is shorter than the {resume} bytes that were written before")
            self.file.truncate(resume)
            self.file.seek(resume)
            return
        if in_place or (final.exists() and not final.is_file()):
            self.file = final.open("wb")
            self._named = final.parent
            return
        _remove_stale(final)
        self._final = final
        temporary, self.file = self._made(final)
        with suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(final.stat().st_mode))

    def _made(self, final: Path) -> tuple[Path, io.BufferedWriter]:
        """A new file beside the target, which others know to be in use. Raises: OSError."""
        while True:
            temporary = self._temporary = final.with_name(f".{final.name}.{os.urandom(4).hex()}.part")
            # an interrupt may come before anybody has this object, which could give it up
            files: list[io.BufferedWriter] = []
            weakref.finalize(self, _discarded, temporary, files, os.getpid())
            _UNFINISHED.add(temporary)
            files.append(temporary.open("xb"))
            if _claimed(files[0].fileno(), temporary):
                return temporary, files[0]
            files[0].close()

    def write(self, text: str) -> None:
        """Append `text` in UTF-8; what streams is flushed. Raises: Rejected("data-output")."""
        self._write(text if self._takes_text else text.encode())

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Append text that is in UTF-8 already. Raises: Rejected("data-output")."""
        self._write(bytes(data).decode() if self._takes_text else data)

    def _write(self, data: str | bytes | memoryview) -> None:
        try:
            self.file.write(data)
            if self.streaming:
                self.file.flush()
            self.hasten()
        except BrokenPipeError:  # the reader has had enough: for the command line to decide
            raise
        except OSError as error:
            raise Rejected([unwritable(self.label, error)]) from error

    def hasten(self) -> None:
        """Has the system write what it got while more comes, so that `close` waits less for the disk. Raises: OSError."""
        if self._temporary is None:
            return
        size, begin = self.file.tell() - self._begun, _begin()
        if begin is not None and size >= AHEAD:
            begin(self.file.fileno(), self._begun, size, _WRITE)  # it may refuse
            self._begun += size

    def settled(self) -> int | None:
        """How many bytes have been written, which are on the disk now; None where that means nothing.

        Raises: Rejected("data-output").
        """
        if not self._owned:
            return None
        try:
            self.file.flush()
            if not stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):
                return None
            os.fsync(self.file.fileno())
            self._settle_name()
            return self.file.tell()
        except OSError as error:
            raise Rejected([unwritable(self.label, error)]) from error

    def _settle_name(self) -> None:
        """Brings the name of the file to the disk, too. Raises: OSError."""
        if self._named is not None:
            settle_folder(self._named)
            self._named = None

    def close(self) -> None:
        """Complete the output: the target now is what was written. Raises: Rejected("data-output")."""
        try:
            self.file.flush()
            if self._temporary is not None:
                os.fsync(self.file.fileno())
            if self._temporary is not None and self._final is not None:
                with _freed_beside(self._final):
                    self._temporary.replace(self._final)  # before it is closed, and with that unlocked
                self._temporary = None
                self._named = self._final.parent
                self._settle_name()
            if self._owned:
                self.file.close()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.abort()
            raise Rejected([unwritable(self.label, error)]) from error

    def abort(self) -> None:
        """Give the output up: the target stays what it was. Nothing happens after `close`."""
        with suppress(OSError):
            if self._owned:
                self.file.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            self._temporary = None


@contextmanager
def _freed_beside(path: Path) -> Generator[None]:
    """While a file is replaced: what a large one took of the disk is given back by a thread of its own.

    Systems that tell the disk which blocks are free wait for it: 0.2 s for 100 MB. Whoever has the file open last waits,
    and that is not the run, which is complete.
    """
    held = None
    with suppress(OSError):
        if path.stat().st_size >= LARGE:
            held = os.open(path, _NAMED | os.O_CLOEXEC)
    try:
        yield
    finally:
        if held is not None:
            try:
                threading.Thread(target=os.close, args=(held,), name="river-freeing", daemon=True).start()
            except RuntimeError:  # there are as many threads as there may be
                os.close(held)


def settle_folder(folder: Path) -> None:
    """Brings the names in a folder to the disk, where its system can do that and we may ask. Raises: OSError."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # one in which we may write and not look
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _claimed(descriptor: int, path: Path) -> bool:
    """Locks a file that was just made; False where somebody took it for a stale one before that."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # of a system without locks, where nobody takes it for stale
        return True
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_stale(final: Path) -> None:
    """Removes what processes that are no more left beside their target: it is not locked."""
    name = re.compile(rf"\.{re.escape(final.name)}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError), os.scandir(final.parent) as entries:
        for path in [entry.path for entry in entries if name.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_unlocked(path)


def _remove_unlocked(path: str) -> None:
    """Removes a file that nobody has locked. Raises: OSError, also for one that somebody has."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):  # noqa: PTH116 - as it was listed
            os.unlink(path)  # noqa: PTH108
    finally:
        os.close(descriptor)


@cache
def _begin() -> Callable[[int, int, int, int], int] | None:
    """The function `sync_file_range`, where there is one."""
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function


def _discarded(temporary: Path, files: list[io.BufferedWriter], process: int) -> None:
    """Closes and removes what was not moved to its target, unless it is a parent's."""
    if os.getpid() == process:
        with suppress(OSError):
            for file in files:
                file.close()
        _UNFINISHED.discard(temporary)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def discard_all() -> None:
    """Removes what is not at its place yet: the process ends at once, whatever its threads do."""
    for temporary in list(_UNFINISHED):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
