"""Outputs that appear whole or not at all.

A file is written beside its target under another name and moved over it when it is complete; until then, and
after a failure, the target is what it was. Targets that are not regular files (devices, pipes), standard output,
and files that are written in place get the items as they come.
"""

from __future__ import annotations

import ctypes
import io
import os
import stat
import sys
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from river.diagnostics import Rejected
from river.io.errors import unwritable

if TYPE_CHECKING:
    from collections.abc import Callable

AHEAD: Final = 4 << 20
"""Bytes of a file after which the system is asked to write them: to do so earlier costs more than it gains."""

_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE: begin, and wait for nothing


class Output:
    """Bytes on their way to a target: a path, `-` for standard output, or an open file (of bytes or of text).

    `in_place`: a file is new at once, and others see what is written. `resume`: the file is there, and what comes after
    that many bytes is dropped and written anew.
    """

    def __init__(self, target: object, *, in_place: bool = False, resume: int | None = None) -> None:
        self._final: Path | None = None
        self._temporary: Path | None = None
        self._owned = False
        self._begun = 0
        self.file: Any
        if isinstance(target, str | os.PathLike):
            path = os.fspath(cast("str | os.PathLike[str]", target))
            self.label = "<stdout>" if path == "-" else path
            if path == "-":
                self.file = getattr(sys.stdout, "buffer", sys.stdout)
            else:
                try:
                    self._open(Path(path), in_place=in_place, resume=resume)
                except OSError as error:
                    raise Rejected([unwritable(path, error)]) from error
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
            return
        self._final = final
        self._temporary = final.with_name(f".{final.name}.{os.urandom(4).hex()}.part")
        # an interrupt may come before anybody has this object, which could give it up
        files: list[io.BufferedWriter] = []
        weakref.finalize(self, _discarded, self._temporary, files, os.getpid())
        files.append(self._temporary.open("xb"))
        self.file = files[0]
        with suppress(FileNotFoundError):
            self._temporary.chmod(stat.S_IMODE(final.stat().st_mode))

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
            return self.file.tell()
        except OSError as error:
            raise Rejected([unwritable(self.label, error)]) from error

    def close(self) -> None:
        """Complete the output: the target now is what was written. Raises: Rejected("data-output")."""
        try:
            self.file.flush()
            if self._temporary is not None:
                os.fsync(self.file.fileno())
            if self._owned:
                self.file.close()
            if self._temporary is not None and self._final is not None:
                self._temporary.replace(self._final)
                self._temporary = None
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
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
