"""Which operators run on several workers at once, as the program's `@Region`s say: read when a plan is made.

Whatever the strategy of a region, its results are sent in the order in which one worker would have made them: each batch of
firings has a serial number, and a reorder buffer (seed 001, Fig. 4). That is one of the orders that every strategy allows.

Paper: Ordered multicore (seed 001) §3, §4; River §4.4 (annotations that a platform obeys).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.il.annotations import ROLES, annotated
from river.il.regions import BY_TIME, ByRows, Sharded, chain, divided, divided_together

if TYPE_CHECKING:
    from river.il.graph import Graph, Instance
    from river.il.model import Stateless

SHARDS: Final = 4
"""Shards for each worker: more than one, so that a shard with much to do does not hold up the others."""

MOST: Final = 64


@frozen
class Alone:
    """One worker at a time, though a region says otherwise: why."""

    reason: str


@frozen
class Region:
    """An operator on several workers. `degree`: how many at most.

    `first`: the operator by whose rows it is divided; `behind`: those that are divided together with it, if it is the first. How
    another one is divided, `how`, is what it does where the whole is not divided.
    """

    degree: int
    how: Stateless | Sharded | ByRows
    behind: tuple[int, ...]
    first: int

    def shards(self, partitioned: bool) -> int:
        """How many parts the state of a keyed operator is in; `partitioned`: each belongs to one worker's queue.

        Where deltas are divided by their rows, each part of a delta is a firing.
        """
        return self.degree if partitioned or isinstance(self.how, ByRows) else min(MOST, SHARDS * self.degree)


def region(graph: Graph, instance: Instance, workers: int, *, kept: bool) -> Region | Alone | None:
    """How an instance runs on several workers; None where no region says that it should.

    `kept`: what the variables hold is kept beside the run, so that another run can go on.
    """
    said = annotated(instance.use)
    if said.region is None or said.region.what in ROLES:  # a replica is one already
        return None
    degree = workers if said.parallel is None or said.parallel.degree is None else said.parallel.degree
    if min(degree, workers) < 2:
        return None
    keys, own = said.region.keys, () if said.keys is None else said.keys.fields
    members = chain(graph, said.region.id) if said.region.what == BY_TIME else (instance.index,)
    first, behind = members[0], members[1:]
    how = divided(graph, instance, own if behind else keys)
    if behind:
        head = annotated(graph.instances[first].use).region
        whole = divided_together(graph, members, () if head is None else head.keys)
        if isinstance(whole, str):
            return Alone(f"is in a region that cannot be divided: {whole}")
        how = whole if instance.index == first else how
    if isinstance(how, str):
        return Alone(how)
    if isinstance(how, Sharded | ByRows) and not keys:
        return Alone(f"is {how}, and its region names no keys")
    if isinstance(how, ByRows) and kept:
        return Alone("keeps rows apart in variables that a checkpoint would have to hold in one piece")
    return Region(min(degree, workers), how, behind if first == instance.index else (), first)
