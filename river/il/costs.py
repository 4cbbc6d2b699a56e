"""What operators take, as a profile has measured it and `@Cost` says, and what follows for how many workers they are worth.

Paper: River §6.2 (mappers and reducers differ in how many of them are best).
"""

from __future__ import annotations

from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.il.annotations import annotated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.il.annotations import Cost
    from river.il.graph import Graph

IDLE: Final = 0.5
"""Part of its time that one worker is busy with operators that nobody waits for, if all workers share all work."""

ROOM: Final = 1.5
"""How many times the workers that operators keep busy on average may be at them: work comes unevenly."""


def worth(share: float, most: int, cores: int) -> int:
    """How many of so many `cores`, `most` at most, should be at what takes that part of all time; see `Costs.degree`."""
    busy = share * cores
    return 1 if busy <= IDLE else min(most, max(2, ceil(ROOM * busy)))


@frozen(slots=False)
class Costs:
    """By instance what it took, None where that is not known."""

    each: tuple[Cost | None, ...]

    @cached_property
    def total(self) -> int:
        """Nanoseconds of all that is known."""
        return sum(cost.nanoseconds for cost in self.each if cost is not None)

    def share(self, members: Iterable[int]) -> float | None:
        """The part of all time that operators took together; None where that is not known of all of them."""
        found = [self.each[member] for member in members]
        known = [cost.nanoseconds for cost in found if cost is not None]
        return sum(known) / self.total if len(known) == len(found) and self.total else None

    def degree(self, members: Iterable[int], most: int, cores: int) -> int:
        """How many of so many `cores`, `most` at most, should be at operators that run together; 1 where one will do.

        As many as they would keep busy if all cores were busy all the time, and half as many more.
        """
        share = self.share(members)
        return most if share is None else worth(share, most, cores)

    def waited_for(self, members: Iterable[int], cores: int) -> bool:
        """Whether a run may wait for operators though so many `cores` share all work; that nothing is known is no."""
        share = self.share(members)
        return share is not None and cores > 1 and share * cores > IDLE


def costs(graph: Graph) -> Costs:
    """What the operators of a program took."""
    return Costs(tuple(annotated(instance.use).cost for instance in graph.instances))
