"""A process that optimises code which others use, while they use it, and after.

It takes from the cache what was made quickly, with its text, and keeps there what it makes of it. So it has no part in the lock
of their interpreter, nor do they wait for it, not even where they end; it runs when nobody else wants the processor, and one at
a time.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backends.native.cache import there
from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

ANOTHER: Final = 75
"""The status with which it ends where another process is at work."""

IMPROVING: Final = "backends.native.improving"
"""The module that the process runs."""

LATER: Final = 1.0
"""Seconds after which it begins: short runs, one or two more of them, are over by then, and had all processors."""


@frozen
class Order:
    """Code to be optimised: by what names the cache keeps what was made quickly, and the better code, which has a `level`."""

    quick: str
    better: str
    level: int

    @property
    def possible(self) -> bool:
        """Whether what it takes is there."""
        return there(self.quick)

    @property
    def done(self) -> bool:
        """Whether the better code is there."""
        return there(self.better)


def begin(orders: Sequence[Order]) -> int | None:
    """Starts the process; None where that is not possible. Returns its number, which `ended` takes."""
    program = sys.executable or ""
    if (
        not hasattr(os, "posix_spawn")
        or not Path(program).name.startswith("python")
        or hasattr(sys, "frozen")
    ):
        return None  # a program that Python is a part of might begin anew
    words = [str(word) for each in orders for word in (each.quick, each.better, each.level)]
    paths = os.pathsep.join(path for path in sys.path if path)
    files: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)
    ]
    files += [(os.POSIX_SPAWN_CLOSE, number) for number in _inherited()]
    try:
        return os.posix_spawn(
            program,
            [
                program,
                "-P",
                "-c",
                f"import time; time.sleep({LATER}); from {IMPROVING} import main; main()",
                *words,
            ],
            {**os.environ, "PYTHONPATH": paths},
            file_actions=files,
            setpgroup=0,  # not to be interrupted with the others; in a session of its own it would be as good as all of them
        )
    except OSError:
        return None


def _inherited() -> list[int]:
    """What this process was started with besides the standard files: pipes to which nobody else may hold on, and locks."""
    found: list[int] = []
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names alone
            with suppress(OSError):  # that of the folder itself is closed by now
                if int(name) > 2 and os.get_inheritable(int(name)):
                    found.append(int(name))
    return found


def ended(process: int) -> int | None:
    """With which status it has ended; None: not yet."""
    try:
        found, status = os.waitpid(process, os.WNOHANG)
    except ChildProcessError:  # somebody else has waited for it
        return 0
    return os.waitstatus_to_exitcode(status) if found else None
