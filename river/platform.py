"""Where a program runs: a value that passes and planners read when they decide how much parallelism is worth it."""

from __future__ import annotations

import os

from river.classes import frozen


@frozen
class Platform:
    """The machines at hand.

    Units: `cores` counts the processors of one machine that River may use; `machines` counts machines alike.
    """

    cores: int
    machines: int = 1

    def __attrs_post_init__(self) -> None:
        """Raises: ValueError for a platform without a core or without a machine."""
        if self.cores < 1 or self.machines < 1:
            raise ValueError(f"a platform of {self.cores} cores and {self.machines} machines")


def here(workers: int | None = None) -> Platform:
    """This machine, with the processors that this process may run on (fewer than there are, in a container).

    `workers`: as many are to be used, whatever there are.
    """
    if workers is not None and workers > 0:
        return Platform(cores=workers)
    if hasattr(os, "sched_getaffinity"):
        return Platform(cores=len(os.sched_getaffinity(0)))
    return Platform(cores=os.cpu_count() or 1)
