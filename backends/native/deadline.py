"""A deadline for each firing (il.md 2.4, trap `deadline`): who takes longer is ended.

Machine code notes the row that it is about to fire, and asks now and then whether to stop. Somebody looks now and then where
each operator is: one that stands where it stood a deadline ago is told to stop. Nothing is counted while code runs. What asks
tells, if it is to stop, by the word that is the site of a trap, in which loop or function it stands: `in_loop`, `in_function`.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

from river.classes import define, field
from river.lang import typed
from river.lang.trees import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.operator import NativeOperator
    from river.source import Span

    Place = tuple[int, int]


def in_loop(number: int) -> int:
    """What stands for the loop of this number."""
    return -2 - 2 * number


def in_function(index: int) -> int:
    """What stands for the function at this index, outside of its loops."""
    return -3 - 2 * index


def span_of(op: typed.Operator, site: int) -> Span | None:
    """The place that `site` stands for."""
    index, function = divmod(-2 - site, 2)
    if site > -2:
        return None
    if function:
        return op.fns[index].span if index < len(op.fns) else None
    found = {
        node.span for node in nodes(op) if isinstance(node, typed.For | typed.While) and node.loop == index
    }
    return found.pop() if len(found) == 1 else None


@define(eq=False)
class Deadline:
    """The seconds that a firing may take, and the operators that are firing: each with the number of its call."""

    seconds: float
    _lock: Lock = field(factory=Lock, init=False)
    _calls: dict[NativeOperator, int] = field(factory=dict["NativeOperator", int], init=False)
    _seen: dict[NativeOperator, tuple[Place, float]] = field(
        factory=dict["NativeOperator", "tuple[Place, float]"], init=False
    )
    _count: int = field(default=0, init=False)

    def begin(self, operator: NativeOperator) -> None:
        """It fires from now on."""
        with self._lock:
            self._count += 1
            self._calls[operator] = self._count

    def end(self, operator: NativeOperator) -> None:
        """It does not fire any more."""
        with self._lock:
            self._calls.pop(operator, None)
            self._seen.pop(operator, None)

    def look(self) -> None:
        """Ends firings that take too long; to be called a few times in each span of the deadline."""
        now = time.monotonic()
        with self._lock:
            for operator, call in self._calls.items():
                place = call, operator.row
                before = self._seen.get(operator)
                if before is None or before[0] != place:
                    self._seen[operator] = place, now
                elif now - before[1] >= self.seconds:
                    operator.late()

    def watch(self, place: Callable[[], object]) -> Callable[[], bool]:
        """For the evaluator, which asks it now and then: whether the firing at hand, told apart by `place`, takes too long."""
        before: tuple[object, float] = (None, 0.0)

        def late() -> bool:
            nonlocal before
            now, at = time.monotonic(), place()
            if before[0] != at:
                before = at, now
            return now - before[1] >= self.seconds

        return late
