"""How one operator may run on several workers at once whose results are put in order again by serial numbers.

An operator without written variables may: any worker fires what comes next. One whose variables are maps that a firing touches
at the key of its item only may, too: the entries are dealt to shards by the hash of the key, and so are the items; a shard is
fired by one worker at a time. The pass `fission` asks where to write `@Region`, and a backend that reads `@Region` what
exactly is to be dealt, and whether that is safe: people may have written it.

Paper: Ordered multicore (seed 001) §3, §4; Auto-parallelizing §3.1 (what is safe).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen
from river.il.flow import Made, Part, item_findings
from river.il.forwards import Path, forwarded
from river.il.model import Keyed, Selectivity, Stateless, instance_model
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.il.flow import Access
    from river.il.graph import Graph, Instance

SERIAL = ("round_robin", "seqno", "seqno_marks")
"""The strategies of `@Region` whose results are put in order by what each firing has: its turn, or its serial number."""


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


def divided(graph: Graph, instance: Instance, keys: Sequence[str] = ()) -> Stateless | Sharded | str:
    """How an instance may run on several workers, or why it may not, said of it.

    `keys`: the fields by which it is to be divided; without them, all of its key.
    """
    op = instance.operator
    if not isinstance(op, typed.Operator):
        return "is a function of Python"
    if len(op.ports) != 1:
        return f"has {len(op.ports)} inputs"
    if op.mark is not None:
        return "acts on marks, of which each worker would see its own"
    if not any(var.written for var in op.vars):
        return Stateless() if _fires_apart(op) else "keeps items waiting between firings"
    model = instance_model(instance)
    if model.hidden or len(op.items) != 1:
        return "keeps items waiting between firings"
    if not isinstance(model.state, Keyed):
        return f"has state that is not known to be kept by key: {_shown(instance)}"
    if model.state.rows:
        return "keeps its state by keys of the rows in deltas"
    if reason := _obstacle(graph, instance):
        return reason
    names = model.state.keys[0]
    if stray := [key for key in keys if key not in names]:
        return f"keeps its state by ({', '.join(names)}), not by `{stray[0]}`"
    names = tuple(keys) or names
    item = op.ports[0].type
    assert isinstance(item, t.Record)  # noqa: S101 - its fields are the key
    places = tuple(place for name in names if (place := item.index(name)) is not None)
    accesses = item_findings(op)[0].accesses
    variables: list[tuple[Path, ...] | None] = []
    for i, var in enumerate(op.vars):
        paths = _paths(accesses, i, places) if var.written else ()
        if paths is None:
            return f"has the key of `${instance.variables[i]}` in several places"
        variables.append(paths if var.written else None)
    exact = all(rate == Selectivity(1, 1) for rate in model.selectivity)
    return Sharded(names, tuple((place,) for place in places), tuple(variables), exact)


def pays(op: typed.Operator) -> bool:
    """Whether firing an operator is work that could be shared: one that only passes on is not fired, where there are columns."""
    return forwarded(op) is None


def _fires_apart(op: typed.Operator) -> bool:
    """Whether each firing of an operator without state needs nothing but its item, or its window."""
    return bool(op.items) or (op.rated is not None and op.first is None)


def _shown(instance: Instance) -> str:
    return ", ".join(f"`${name}`" for name in instance.variables)


def _obstacle(graph: Graph, instance: Instance) -> str | None:
    """Why the state cannot be dealt to shards, though it is kept by key."""
    op = instance.operator
    assert isinstance(op, typed.Operator)  # noqa: S101 - of all others nothing is known
    if instance.index in graph.looping:
        return "is part of a loop"
    if op.ports[0].initial:
        return "has an input that does not start empty"
    if any(found.marks for found in item_findings(op)):
        return "sends marks of its own"
    for var, name in zip(op.vars, instance.variables, strict=True):
        if not var.written:
            continue
        if len(graph.users[name]) > 1 or instance.variables.count(name) > 1:
            return f"shares `${name}` with another operator"
        if not isinstance(var.type, t.Map | t.OMap):
            return f"keeps `${name}`, which is not a map"
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
