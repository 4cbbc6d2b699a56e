"""What the process does that optimises code which others use (`backends.native.apart` starts it)."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from backends.native.apart import ANOTHER, Order
from backends.native.cache import found_as, kept_as
from backends.native.shared import improved
from river.lang.tables import own_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST: Final = 60
"""Seconds of the processor that the process takes at most: what takes longer is not worth it."""


def fulfil(orders: Sequence[Order]) -> bool:
    """Makes what is ordered. False: another process is at work, perhaps at something else."""
    folder = own_folder("native")
    if folder is None:
        return True
    with (folder / ".improving").open("w") as lock:
        if not _alone(lock.fileno()):
            return False
        for each in orders:
            if not folder.exists():  # the cache has been removed, and is not to come back
                break
            quick = None if each.done else found_as(each.quick)
            made = None if quick is None else improved(quick, each.level)
            if made is not None and folder.exists():
                kept_as(each.better, lambda made=made: made)
    return True


def _alone(file: int) -> bool:
    """Takes a lock that the system gives back when the process ends; whether nobody has it."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def main() -> None:
    """Makes what is ordered in the words of the command, three for each, when nobody else wants the processor."""
    import resource

    os.nice(19)
    if hasattr(os, "SCHED_IDLE"):  # which gives way at once
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(ValueError, OSError):  # there may be a lower limit
        resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST))
    words = iter(sys.argv[1:])
    orders = [
        Order(quick, better, int(level)) for quick, better, level in zip(words, words, words, strict=True)
    ]
    if not fulfil(orders):
        sys.exit(ANOTHER)
