"""What goes wrong in a run, and which of it is raised.

After a trap nothing more is read, but what was read before is finished, so that everything before the trap is delivered.
Of several traps that one is raised whose instance stands first in the direction of the data. Which of several instances
trap at all may depend on how far the reader was; where one instance can trap, its trap is always the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backends.multicore.plan import Plan
    from backends.multicore.scheduling.task import Task
    from river.lang.evaluate import Trap


class Failures:
    """The failures of a run. Under the lock of its threads, or when they have ended.

    `partly`: the fields that are read of inputs that have others. `errors`: what ends the run at once, of sinks, or
    mistakes of ours; `of_sources`: what sources raised, behind which there is nothing. `failed_at`: when the first item
    trapped.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._traps: list[tuple[tuple[int, int], Trap]] = []
        self.partly: dict[str, frozenset[str]] = {}
        self.errors: list[BaseException] = []
        self.of_sources: list[Exception] = []
        self.failed_at: float | None = None

    def trapped(self, task: Task, trap: Trap, now: float) -> None:
        """Notes the trap of a task."""
        self._without_unread(task, trap)
        trap.happened(self._plan.graph.instances[task.index].use.within)
        self._traps.append(((self._plan.nodes[task.index].component, task.index), trap))
        if self.failed_at is None:
            self.failed_at = now

    def _without_unread(self, task: Task, trap: Trap) -> None:
        """Takes out of the item of a trap what was not read, where its operator takes items of an input."""
        for name, fields in self.partly.items():
            consumer = self._plan.graph.queues[name].consumer
            if consumer is not None and consumer.instance == task.index and trap.item is not None:
                trap.show(fields)

    def raise_first(self) -> None:
        """Raises what is to be told, if there is anything."""
        if self.errors:
            raise self.errors[0]
        if self._traps:
            raise min(self._traps, key=lambda pair: pair[0])[1]
        if self.of_sources:
            raise self.of_sources[0]
