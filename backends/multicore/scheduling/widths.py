"""How many workers may be at a task at once out of which several take work: as many as it keeps busy, by what the run takes.

At the border of a turn of the inputs it may become wider or narrower. What a task sends does not depend on it.

Paper: River §6.2 (mappers and reducers differ in how many of them are best).
"""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Final

from river.classes import define, field
from river.il.costs import worth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.multicore.scheduling.task import Task

SPAN: Final = 50e-3
"""Seconds of all workers' work after which it is known what tasks take, and after which it is asked again."""

BUSY: Final = 0.5
"""Part of the workers' time below which they have time left: then as many as may be are at each task, so results come soon."""

KEPT: Final = 0.5
"""Which part of what was known counts on when it is asked again: what a task takes may change with the data."""


@define(eq=False)
class Widths:
    """What tasks have taken, and what follows for those that several workers may be at (`Task.widest`).

    `how`: `measured`; `fixed`, always as wide as may be; `changing`, another width each turn, for tests.
    """

    tasks: Sequence[Task]
    workers: int
    how: str
    _spent: list[float] = field(init=False)
    _since: float = 0.0
    _asked: float = 0.0
    _turns: int = 0

    def __attrs_post_init__(self) -> None:
        self._spent = [0.0] * len(self.tasks)

    def took(self, task: Task, seconds: float) -> None:
        """A worker has been at what it took out of a task for so many seconds."""
        self._spent[task.index] += seconds
        self._since += seconds

    def start(self, now: float) -> None:
        """The run begins."""
        self._asked = now

    def turn(self, stepping: Sequence[float], now: float) -> Sequence[Task]:
        """A turn has been read; since the one before, the steps of each task took so long. The tasks that became wider."""
        self._turns += 1
        if self.how == "changing":
            return self._set([1 + (self._turns + each.index) % max(1, each.widest) for each in self.tasks])
        if self.how == "fixed":
            return ()
        self._spent = [*map(add, self._spent, stepping)]
        self._since += sum(stepping)
        if self._since < SPAN:
            return ()
        total = sum(self._spent)
        busy = self._since > BUSY * self.workers * (now - self._asked)
        found = [
            worth(spent / total, each.widest, self.workers) if busy else each.widest
            for spent, each in zip(self._spent, self.tasks, strict=True)
        ]
        self._spent = [spent * KEPT for spent in self._spent]
        self._since, self._asked = 0.0, now
        return self._set(found)

    def _set(self, widths: Sequence[int]) -> Sequence[Task]:
        wider: list[Task] = []
        for task, width in zip(self.tasks, widths, strict=True):
            if task.widest and task.width != width:
                if width > task.width:
                    wider.append(task)
                task.width = width
                task.changed += 1
        return wider
