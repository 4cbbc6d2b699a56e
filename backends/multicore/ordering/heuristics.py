"""Which operator a worker runs next: the four heuristics of the paper's section 6, over what is known of each operator.

Operators stand in the order of the data. The paper has chains; here an operator may have several producers, which
stand before it (those that close a loop are left out).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType

from river.classes import define, evolve, frozen


@frozen
class Operator:
    """What is known of an operator now. The paper's names in brackets.

    `queue`: items that wait for it [I]. `out`: items in the fullest of its output queues, 0 where nobody takes them from.
    `cost`: seconds for an item [c], `selectivity`: items made of one [s], as measured so far. `workers`: how many run it
    [w], `most`: how many may [M]. `spent`: seconds of workers in the current window [T]. `producers`: their positions;
    none for what is fed from outside.
    """

    name: str
    queue: int
    out: int = 0
    cost: float = 0.0
    selectivity: float = 1.0
    workers: int = 0
    most: int = 1
    spent: float = 0.0
    producers: tuple[int, ...] = ()

    @property
    def schedulable(self) -> bool:
        """Whether one more worker has something to do there. Paper: section 6."""
        return self.queue > 0 and self.workers < self.most


@frozen
class HeuristicConstants:
    """Constants: `capacity` of the system in items [C, of QST], `slice` of a worker in seconds [s, of CT]."""

    capacity: int = 4096
    slice: float = 0.001


Heuristic = Callable[[Sequence[Operator], HeuristicConstants], "int | None"]
"""The position of the operator to run, None if none should be."""


def chain(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """The operators with each one's producer the one before it."""
    return tuple(evolve(each, producers=(i - 1,) if i else ()) for i, each in enumerate(operators))


def cumulative(operators: Sequence[Operator]) -> list[float]:
    """For each operator how many items it makes of one from outside. Paper: cs in section 6.1."""
    found: list[float] = []
    for each in operators:
        found.append(each.selectivity * (sum(found[i] for i in each.producers) if each.producers else 1.0))
    return found


def items_per_slice(cost: float, setting: HeuristicConstants, batch: int) -> int:
    """How many items a worker handles before it asks again: those of a slice, at least one, at most a batch."""
    return batch if cost <= 0 else max(1, min(batch, int(setting.slice / cost)))


def queue_size_throttling(operators: Sequence[Operator], setting: HeuristicConstants) -> int | None:
    """QST: the first operator that has not made enough for the next. Paper: section 6.1, equation (1).

    A threshold is at least 1: an operator that has made nothing so far would never run again.
    """
    made = cumulative(operators)
    total = sum(made) or 1.0
    for i, each in enumerate(operators):
        if each.schedulable and each.out < max(1.0, setting.capacity * made[i] / total):
            return i
    return None


def last_in_pipeline(operators: Sequence[Operator], _setting: HeuristicConstants) -> int | None:
    """LP: the last operator that has something to do. Paper: section 6.2."""
    return next((i for i in reversed(range(len(operators))) if operators[i].schedulable), None)


def estimated_time(operators: Sequence[Operator], _setting: HeuristicConstants) -> int | None:
    """ET: the operator whose queue takes longest, with one more worker. Paper: section 6.3, equation (2)."""
    found = [i for i, each in enumerate(operators) if each.schedulable]
    return max(
        found,
        key=lambda i: operators[i].queue * operators[i].cost / (operators[i].workers + 1),
        default=None,
    )


def current_throughput(operators: Sequence[Operator], setting: HeuristicConstants) -> int | None:
    """CT: the operator that handles fewest items in this window, counted as items from outside. Paper: 6.4, equation (3)."""
    made = cumulative(operators)

    def handled(i: int) -> float:
        time = operators[i].spent + operators[i].workers * setting.slice
        each = operators[i].cost * made[i]
        return time / each if each else inf if time else 0.0

    return min((i for i, each in enumerate(operators) if each.schedulable), key=handled, default=None)


HEURISTICS: Mapping[str, Heuristic] = MappingProxyType(
    {
        "QST": queue_size_throttling,
        "LP": last_in_pipeline,
        "ET": estimated_time,
        "CT": current_throughput,
    }
)
"""By the paper's names."""

DEFAULT = last_in_pipeline


@define
class Measurements:
    """What workers measured of an operator. Counts fade, so that the estimates follow a change."""

    consumed: float = 0.0
    produced: float = 0.0
    seconds: float = 0.0
    spent: float = 0.0

    def add(self, consumed: int, produced: int, seconds: float) -> None:
        """Notes a firing of `consumed` items."""
        self.consumed = self.consumed * FADE + consumed
        self.produced = self.produced * FADE + produced
        self.seconds = self.seconds * FADE + seconds
        self.spent += seconds

    @property
    def cost(self) -> float:
        """Seconds for an item."""
        return self.seconds / self.consumed if self.consumed else 0.0

    @property
    def selectivity(self) -> float:
        """Items made of one."""
        return self.produced / self.consumed if self.consumed else 1.0

    def window(self) -> None:
        """Begins a new window of CT."""
        self.spent = 0.0


FADE = 0.9
"""What one firing more leaves of the weight of those before it."""
