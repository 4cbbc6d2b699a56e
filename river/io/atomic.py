"""Outputs that appear whole or not at all.

A file is written beside its target under another name and moved over it when it is complete; until then, and
after a failure, the target is what it was. Targets that are not regular files (devices, pipes) and standard
output are written as the items come.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from river.diagnostics import Rejected
from river.io.errors import unwritable


class Output:
    """Bytes on their way to a target: a path, `-` for standard output, or an open file (of bytes or of text)."""

    def __init__(self, target: object) -> None:
        self._final: Path | None = None
        self._temporary: Path | None = None
        self._owned = False
        self.file: Any
        if isinstance(target, str | os.PathLike):
            path = os.fspath(cast("str | os.PathLike[str]", target))
            self.label = "<stdout>" if path == "-" else path
            if path == "-":
                self.file = getattr(sys.stdout, "buffer", sys.stdout)
            else:
                try:
                    self._open(Path(path))
                except OSError as error:
                    raise Rejected([unwritable(path, error)]) from error
        else:
            label = getattr(target, "name", None)
            self.label = label if isinstance(label, str) else "<output>"
            self.file = target
        self.streaming = self._temporary is None
        self._takes_text = isinstance(self.file, io.TextIOBase)

    def _open(self, path: Path) -> None:
        final = Path(os.path.realpath(path))  # a link stays a link
        self._owned = True
        if final.exists() and not final.is_file():
            self.file = final.open("wb")
            return
        self._final = final
        self._temporary = final.with_name(f".{final.name}.{token_hex(4)}.part")
        self.file = self._temporary.open("xb")
        with suppress(FileNotFoundError):
            self._temporary.chmod(stat.S_IMODE(final.stat().st_mode))

    def write(self, text: str) -> None:
        """Append `text` in UTF-8; what streams is flushed. Raises: Rejected("data-output")."""
        try:
            self.file.write(text if self._takes_text else text.encode())
            if self.streaming:
                self.file.flush()
        except BrokenPipeError:  # the reader has had enough: for the command line to decide
            raise
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
