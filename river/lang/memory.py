"""How much memory a run may have: what would take it further ends in a trap, before the system ends the process.

The system is asked only for what is large, and now and then (see `evaluate.code.ticker`): asking takes microseconds.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from river.classes import define, field

if TYPE_CHECKING:
    from collections.abc import Generator
    from threading import Thread

LARGE: Final = 1 << 20
"""Bytes that are taken without asking."""

LONGEST: Final = (1 << 31) - 1
"""Bytes of a text (runtime/text.rt)."""

_SHARE: Final = (3, 4)  # of the memory of the machine, or of the group of processes that this one belongs to
_GROUPS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


_NO_THREAD: Final = ("can't start new thread", "Failed to launch worker thread")
"""What Python and Arrow say when a thread gets no stack; neither has an error of its own for it."""


@define
class _Limit:
    """What somebody asked for: bytes, and how often it is lifted just now; `before`: what the system allowed."""

    size: int | None = None
    before: int = 0
    lifted: int = 0
    lock: Lock = field(factory=Lock)


_LIMIT: Final = _Limit()


def limit(size: int | None) -> None:
    """From now on the process may have so many bytes of its own, None: as many as the system lets it have.

    The system refuses more, which ends a firing in a trap, and everything else in a `MemoryError`. What counts is what can be
    written: neither code nor files that are mapped, nor room that is only set aside.
    """
    with _LIMIT.lock:
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if _LIMIT.size is None:
            _LIMIT.before = soft
        wanted = _LIMIT.before if size is None else size
        resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))
        _LIMIT.size = size


def limited() -> int | None:
    """The limit that was asked for, in bytes."""
    return _LIMIT.size


@contextmanager
def lifted() -> Generator[None]:
    """Without the limit meanwhile, for libraries that end the process when they get no memory: it is looked at behind them.

    Raises: MemoryError if the process has too much then.
    """
    if _LIMIT.size is None:
        yield
        return
    _lift(1)
    try:
        yield
    finally:
        _lift(-1)
    check()


def start(thread: Thread) -> None:
    """Starts a thread, without the limit meanwhile: one that gets no memory as it begins never says so to who waits for that."""
    _lift(1)
    try:
        thread.start()
    finally:
        _lift(-1)


def _lift(by: int) -> None:
    with _LIMIT.lock:
        _LIMIT.lifted += by
        if _LIMIT.size is not None:
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            soft = hard if _LIMIT.lifted else _LIMIT.size if hard < 0 else min(_LIMIT.size, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def taken() -> int:
    """Bytes of its own that the process has, as `limit` counts them; where the system does not say, what it uses."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - the quickest way
            return int(file.read().split()[5]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return used()


def most() -> int:
    """Bytes that the process may have: three quarters of what the machine has, or lets this process have, or the limit."""
    return _share() if _LIMIT.size is None else min(_share(), _LIMIT.size)


@cache
def _share() -> int:
    above, below = _SHARE
    return _available() * above // below


def _available() -> int:
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _GROUPS:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal() and int(text):
            found = min(found, int(text))
    return found


def used() -> int:
    """Bytes of its own that the process uses now, without code and files that are mapped, which the system can take back.

    Where the system does not say, the most that it has used.
    """
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - the quickest way
            _, resident, shared, *_ = file.read().split()
            return (int(resident) - int(shared)) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def claim(size: int) -> None:
    """Asks for memory that is about to be taken, in bytes.

    Raises: MemoryError if the process would have too much.
    """
    if size >= LARGE and used() + size > most():
        raise MemoryError


def claim_text(size: int) -> None:
    """Asks for memory for a text of so many characters or bytes, which machine code limits, too.

    Raises: MemoryError.
    """
    if size >= LARGE:
        if size > LONGEST:
            raise MemoryError
        claim(size)


def refused(error: BaseException) -> bool:
    """Whether an error says that the system gave no memory: for data, to open a file, or for the stack of a thread."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    arrow = sys.modules.get("pyarrow.lib")  # whoever has its errors has imported it
    told = (OSError, RuntimeError) if arrow is None else (OSError, RuntimeError, arrow.ArrowException)
    return isinstance(error, told) and any(words in str(error) for words in _NO_THREAD)


def check() -> None:
    """Raises: MemoryError if the process has too much."""
    if used() > most():
        raise MemoryError
