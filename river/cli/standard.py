"""Standard input, output and error, also where one of them is closed or full, or nobody reads any more.

What cannot be written to standard output is a mistake that is told (`data-output`); a reader that has had enough is none.
What cannot be said on standard error is not said: the exit status tells.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

    from river.diagnostics import Rejected


class _Waiting(io.FileIO):
    """A descriptor that is written to; if it does not block, it is waited for."""

    def write(self, data: ReadableBuffer, /) -> int:
        while (written := super().write(data)) is None:  # pyright: ignore[reportUnnecessaryComparison] - the stubs do not know
            import select

            select.select([], [self], [])
        return written


class _Results(_Waiting):
    """Standard output."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritten(error) from error


class _Messages(_Waiting):
    """Standard error."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _unwritten(error: OSError) -> Rejected:
    from river.diagnostics import Rejected
    from river.io.errors import unwritable

    return Rejected([unwritable("<stdout>", error)])


def opened() -> tuple[TextIO, TextIO, TextIO]:
    """The three streams, which also take the place of Python's. Results are UTF-8, but for terminals of another kind."""
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: no file that is opened may take its place, and to use it is an error
            os.open(os.devnull, mode)
    encoding, terminal = getattr(sys.stdout, "encoding", "utf-8"), os.isatty(1)
    stdin = open(0, encoding="utf-8", closefd=False) if sys.stdin is None else sys.stdin  # noqa: SIM115  # pyright: ignore[reportUnnecessaryComparison]
    stdout = io.TextIOWrapper(
        io.BufferedWriter(_Results(1, "w", closefd=False)),
        encoding=encoding if terminal else "utf-8",
        errors="backslashreplace" if terminal else "surrogateescape",
        newline="\n",
        line_buffering=terminal,
    )
    stderr = io.TextIOWrapper(
        io.BufferedWriter(_Messages(2, "w", closefd=False)),
        encoding=getattr(sys.stderr, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=True,
    )
    sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr
    return stdin, stdout, stderr


def closed(stdout: TextIO) -> None:
    """Writes what is still held for standard output; what cannot be written has been told, and is dropped."""
    from river.diagnostics import Rejected

    try:
        stdout.flush()
    except (BrokenPipeError, Rejected):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
