"""Processes that belong together, and what they have used: of those that a benchmark has started, Java and Python among them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def _cells(pid: int) -> list[str]:
    """What the system tells of a process, from its parent on; nothing of one that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def family() -> set[int]:
    """This process and all that it has started, and those have."""
    known = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    parents = {pid: int(cells[1]) for pid in known if (cells := _cells(pid))}
    inside, found = {os.getpid()}, 0
    while len(inside) != found:
        found = len(inside)
        inside |= {child for child, parent in parents.items() if parent in inside}
    return inside


def seconds(pids: Iterable[int]) -> float:
    """Seconds of processors of processes, and of those they started that have ended."""
    tick = os.sysconf("SC_CLK_TCK")
    return sum(sum(map(int, cells[11:15])) for pid in pids if (cells := _cells(pid))) / tick


def elsewhere() -> float:
    """Seconds of processors, since the machine began, that others have had than `family`: processes, the system, other machines.

    All that is known comes in steps of a hundredth of a second.
    """
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - seconds(family())


def peak(pid: int) -> int:
    """Bytes of memory that a process has had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise ValueError(pid)
