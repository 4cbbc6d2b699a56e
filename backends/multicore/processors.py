"""A processor of its own for each worker, while several share an operator and the reader is a thread more.

The system wakes a thread where it was last, or where the one that wakes it is, and looks only now and then whether another
processor is idle: of a reader and two workers, two were on one processor for a fifth of the time, with the other one idle. So
while a worker is at what it has taken out of a task, it stays on one processor, in the order of workers. At all other times it
may be on any, and so may all threads that it begins. Where workers read, too, they are as many threads as processors, and
the system sees to it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def own(worker: int, workers: int) -> Generator[None]:
    """Meanwhile this thread, which is that worker of so many, stays on the processor of the same number.

    Only where there are as many workers as processors that the thread may be on: elsewhere the system knows better. The
    reader, whose number is negative, goes where there is room.
    """
    all_ = _allowed() if worker >= 0 and workers > 1 else set[int]()
    if len(all_) != workers or not _keep({sorted(all_)[worker]}):
        yield
        return
    try:
        yield
    finally:
        _keep(all_)


def _allowed() -> set[int]:
    """The processors that this thread may be on; none where the system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()


def _keep(processors: set[int]) -> bool:
    """Keeps this thread on some of them. False: the system does not allow that."""
    with suppress(OSError):  # some have been taken away meanwhile
        os.sched_setaffinity(0, processors)
        return True
    return False


__all__ = ["own"]
