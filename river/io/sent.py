"""Sinks of rows that say themselves where their bytes go: the name of a file in a folder, or a command that reads them.

Bytes of one place keep their order. They are written to unfinished files, which are at their places, or read by their commands,
when the output is complete; of a run that fails nothing is seen.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.diagnostics import Diagnostic, Rejected
from river.io.errors import unwritable
from river.io.sinks import Scoped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST: Final = 4 << 20
"""Bytes that wait in memory before they are written."""


@define(eq=False)
class _Places(Scoped):
    """Unfinished files, by the place that their bytes are for, in the order in which these were named first."""

    files: dict[str, Path] = field(factory=dict[str, Path])
    waiting: dict[str, bytearray] = field(factory=dict[str, bytearray])
    size: int = 0

    def unfinished(self, place: str) -> Path:
        """The file for a place that is new. Raises: Rejected."""
        raise NotImplementedError

    def write(self, items: Sequence[tuple[str, bytes]]) -> None:
        """Takes rows. Raises: Rejected, as `unfinished` does; Rejected("data-output")."""
        for place, data in items:
            if place not in self.files:
                self.files[place] = self.unfinished(place)
            self.waiting.setdefault(place, bytearray()).extend(data)
            self.size += len(data)
            if self.size >= MOST:
                self.flush()

    def flush(self) -> None:
        """Writes what waits."""
        for place, data in self.waiting.items():
            path = self.files[place]
            with _guarded(path), path.open("ab") as file:
                file.write(data)
        self.waiting.clear()
        self.size = 0

    def abort(self) -> None:
        for path in self.files.values():
            path.unlink(missing_ok=True)


@define(eq=False)
class SentFiles(_Places):
    """Files inside a folder."""

    folder: Path = field(kw_only=True)
    name: str = field(kw_only=True)

    def unfinished(self, place: str) -> Path:
        """The file beside that of this name. Raises: Rejected("data-escape") for one outside of the folder."""
        root = self.folder.resolve()
        path = (root / place).resolve() if "\0" not in place else root
        if path == root or root not in path.parents:
            message = f"output `{self.name}`: the file `{place}` is not inside `{self.folder}`"
            raise Rejected(
                [
                    Diagnostic(
                        "data-escape",
                        message,
                        help="`--out-dir` names the folder that holds all files of a run",
                    )
                ]
            )
        with _guarded(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            number, made = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
            os.close(number)
            Path(made).chmod(0o644)
        return Path(made)

    def close(self) -> None:
        self.flush()
        for place, made in self.files.items():
            path = (self.folder.resolve() / place).resolve()
            with _guarded(path):
                made.replace(path)


@define(eq=False)
class Commands(_Places):
    """Commands, which run one after the other when all is known that they read. `show` prints what they print."""

    name: str = field(kw_only=True)
    show: Callable[[str], None] = field(kw_only=True)

    def unfinished(self, place: str) -> Path:
        """A file for what a command reads."""
        number, made = tempfile.mkstemp(prefix="river-")
        os.close(number)
        return Path(made)

    def close(self) -> None:
        """Runs the commands. Raises: Rejected("run-command") if one fails."""
        self.flush()
        try:
            for command, path in self.files.items():
                with path.open("rb") as file:
                    done = subprocess.run(  # noqa: S603 - the user has allowed it
                        ["/bin/sh", "-c", command], stdin=file, stdout=subprocess.PIPE, check=False
                    )
                self.show(done.stdout.decode(errors="replace"))
                if done.returncode:
                    message = (
                        f"output `{self.name}`: the command `{command}` ended with status {done.returncode}"
                    )
                    raise Rejected([Diagnostic("run-command", message)])
        finally:
            self.abort()


class _guarded:  # noqa: N801 - a statement's word
    """What the system refuses is said of the path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise Rejected([unwritable(str(self.path), error)]) from error


__all__ = ["Commands", "SentFiles"]
