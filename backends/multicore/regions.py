"""Which operators run on several workers at once, and how their results keep their order: decided when a plan is made.

An operator without written variables may: any worker fires the next batch (shared worklist). One whose variables are maps that
a firing touches at the key of its item only may, too: the entries are dealt to shards by the hash of the key, and so are
the items of a batch; a shard is fired by one worker at a time.

Paper: Ordered multicore (seed 001) §3, §4; Auto-parallelizing §3.1 (what is safe).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from backends.firing.machine import copies
from river.il.annotations import annotated
from river.il.flow import Made, Part, item_findings
from river.il.model import Keyed, Selectivity, instance_model
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from river.il.flow import Access
    from river.il.graph import Graph, Instance

SHARDS: Final = 4
"""Shards for each worker: more than one, so that a shard with much to do does not hold up the others."""

MOST: Final = 64

Path = tuple[int, ...]


@frozen
class Stateless:
    """Whatever is next may be fired by anybody."""

    def __str__(self) -> str:
        """As a plan shows it."""
        return "without state"


@frozen
class Sharded:
    """Items and entries are dealt by a key: the positions of its fields in an item, and by variable in the keys of its map.

    A variable without paths is not written: all shards read the same. `exact`: each firing sends one item to each output.
    """

    names: tuple[str, ...]
    item: tuple[Path, ...]
    variables: tuple[tuple[Path, ...] | None, ...]
    exact: bool

    def __str__(self) -> str:
        """As a plan shows it."""
        return f"keyed by ({', '.join(self.names)})"


@frozen
class Alone:
    """One worker at a time, though the state is kept by key: why."""

    reason: str


@frozen
class Region:
    """An operator on several workers. `degree`: how many at most."""

    degree: int
    how: Stateless | Sharded

    def shards(self, partitioned: bool) -> int:
        """How many parts the state of a keyed operator is in; `partitioned`: each belongs to one worker's queue."""
        return self.degree if partitioned else min(MOST, SHARDS * self.degree)


def region(graph: Graph, instance: Instance, workers: int, *, looping: bool) -> Region | Alone | None:
    """How an instance may run on several workers; None: it may not, for a reason that its model tells.

    `looping`: it is part of a loop.
    """
    op = instance.operator
    said = annotated(instance.use).parallel
    degree = workers if said is None or said.degree is None else min(workers, said.degree)
    if not isinstance(op, typed.Operator) or len(op.ports) != 1 or op.mark is not None or degree < 2:
        return None
    if not any(var.written for var in op.vars):
        windows = op.rated is not None and op.first is None
        return Region(degree, Stateless()) if windows or (op.items and not copies(op)) else None
    model = instance_model(instance)
    if not isinstance(model.state, Keyed) or model.hidden or len(op.items) != 1:
        return None
    if reason := _obstacle(graph, instance, looping=looping, rows=model.state.rows):
        return Alone(reason)
    said_keys = annotated(instance.use).keys
    names = model.state.keys[0]
    if said_keys is not None and set(said_keys.fields) <= set(names):
        names = said_keys.fields
    item = op.ports[0].type
    assert isinstance(item, t.Record)  # noqa: S101 - its fields are the key
    places = tuple(place for name in names if (place := item.index(name)) is not None)
    accesses = item_findings(op)[0].accesses
    variables: list[tuple[Path, ...] | None] = []
    for i, var in enumerate(op.vars):
        if not var.written:
            variables.append(None)
            continue
        paths = _paths(accesses, i, places)
        if paths is None:
            return Alone(f"`${instance.variables[i]}` has the key in several places")
        variables.append(paths)
    exact = all(rate == Selectivity(1, 1) for rate in model.selectivity)
    return Region(degree, Sharded(names, tuple((place,) for place in places), tuple(variables), exact))


def _obstacle(graph: Graph, instance: Instance, *, looping: bool, rows: bool) -> str | None:
    """Why the state cannot be dealt to shards, though it is kept by key."""
    op = instance.operator
    assert isinstance(op, typed.Operator)  # noqa: S101 - of all others nothing is known
    if rows:
        return "its keys are those of the rows in deltas"
    if looping:
        return "part of a loop"
    if op.ports[0].initial:
        return "its input does not start empty"
    if any(found.marks for found in item_findings(op)):
        return "sends marks of its own"
    for var, name in zip(op.vars, instance.variables, strict=True):
        if not var.written:
            continue
        if (
            sum(name in other.variables for other in graph.instances) > 1
            or instance.variables.count(name) > 1
        ):
            return f"`${name}` is shared"
        if not isinstance(var.type, t.Map | t.OMap):
            return f"`${name}` is not a map"
    return None


def _paths(accesses: set[Access], variable: int, places: tuple[int, ...]) -> tuple[Path, ...] | None:
    """Where in the keys of a map the fields of the items are, by which it is accessed; None if not always there."""
    found: set[tuple[Path | None, ...]] = set()
    for access in accesses:
        if access.variable == variable:
            where: dict[int, Path] = {}
            match access.key:
                case Part(_, (int(place),)):
                    where[place] = ()
                case Made(values):
                    for i, value in enumerate(values):
                        match value:
                            case Part(_, (int(place),)):
                                where.setdefault(place, (i,))
                            case _:
                                pass
                case _:
                    return None
            found.add(tuple(where.get(place) for place in places))
    if len(found) != 1:
        return None
    paths = found.pop()
    return None if None in paths else tuple(path for path in paths if path is not None)
