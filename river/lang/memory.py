"""How much memory a run may have: what would take it further ends in a trap, before the system ends the process.

The system is asked only for what is large, and now and then (see `evaluate.code.ticker`): asking takes microseconds.
"""

from __future__ import annotations

import os
import resource
import sys
from functools import cache
from pathlib import Path
from typing import Final

LARGE: Final = 1 << 20
"""Bytes that are taken without asking."""

LONGEST: Final = (1 << 31) - 1
"""Bytes of a text (runtime/text.rt)."""

_SHARE: Final = (3, 4)  # of the memory of the machine, or of the group of processes that this one belongs to
_GROUPS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def most() -> int:
    """Bytes that the process may have: three quarters of what the machine has, or lets this process have."""
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
    """Bytes that the process has now; where the system does not say, the most that it has had."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - the quickest way
            return int(file.read().split()[1]) * resource.getpagesize()
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


def check() -> None:
    """Raises: MemoryError if the process has too much."""
    if used() > most():
        raise MemoryError
