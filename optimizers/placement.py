"""Placement: which operators run on the same machine, written as `@Group`.

Operators that share a variable stay together; those that have a group keep it, and draw the others along. What is left
goes where its neighbours are, as long as the machines stay about equally loaded. A machine is the group `m0`, `m1`, ...

Paper: River §4.5 (placement optimizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from optimizers.queries import topological
from river.classes import evolve, frozen
from river.diagnostics import Note
from river.il.annotations import Group, annotated, annotation
from river.il.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.il import graph as g
    from river.il.program import Decl
    from river.passes import Verified
    from river.platform import Platform

Unit = tuple[int, ...]
"""Operators that must stand together."""


@frozen
class Site:
    """The whole program, and on how many machines it may stand."""

    machines: int


SLACK: Final = 1.25  # how much more than its share a machine may get, to keep neighbours together


@frozen
class Placement:
    """`placement`: every operator is in a group."""

    name: ClassVar[str] = "placement"

    def sites(self, verified: Verified, platform: Platform, /) -> Iterable[Site]:
        graph = verified.graph
        if any(annotated(i.use).group is None for i in graph.instances):
            yield Site(platform.machines)

    def guard(self, verified: Verified, site: Site, /) -> Note | None:
        for unit in units(verified.graph):
            stated = _stated(verified.graph, unit)
            if len(stated) > 1:
                first, second = list(stated)[:2]
                one, other = (verified.graph.instances[stated[id_]].use for id_ in (first, second))
                both = f"`{one.operator}` and `{other.operator}`"
                message = f"{both} share variables, but are in the groups `{first}` and `{second}`"
                return Note(message, other.span)
        return None

    def rewrite(self, verified: Verified, site: Site, /) -> Program:
        graph = verified.graph
        groups = assigned(graph, site.machines)
        uses = {id(i.use): groups[i.index] for i in graph.instances if annotated(i.use).group is None}

        def change(decl: Decl) -> Decl:
            for use in verified.program.uses:
                if use is decl and id(use) in uses:
                    return evolve(use, annotations=(*use.annotations, annotation(Group(uses[id(use)]))))
            return decl

        return Program(tuple(map(change, verified.program.decls)))


def units(graph: g.Graph) -> tuple[Unit, ...]:
    """The sets of operators that share variables, directly or through others, or bear the same group."""
    import networkx as nx

    bonds: nx.Graph[int | str] = nx.Graph()
    bonds.add_nodes_from(range(len(graph.instances)))
    for instance in graph.instances:
        group = annotated(instance.use).group
        shared = [f"${v}" for v in instance.variables] + ([] if group is None else [group.id])
        bonds.add_edges_from((instance.index, bond) for bond in shared)
    found = (
        sorted(node for node in unit if isinstance(node, int)) for unit in nx.connected_components(bonds)
    )
    return tuple(map(tuple, sorted(found)))


def _stated(graph: g.Graph, unit: Unit) -> Mapping[str, int]:
    """The groups that members of a unit bear, each with one of them."""
    found: dict[str, int] = {}
    for index in unit:
        group = annotated(graph.instances[index].use).group
        if group is not None:
            found.setdefault(group.id, index)
    return found


def assigned(graph: g.Graph, machines: int) -> Mapping[int, str]:
    """The group of each operator: the one that its unit bears, or the best machine's."""
    groups: dict[int, str] = {}
    unit_of = {index: unit for unit in units(graph) for index in unit}
    for unit in unit_of.values():
        for id_ in _stated(graph, unit):
            groups |= dict.fromkeys(unit, id_)
    free = len(graph.instances) - len(groups)
    names = [f"m{i}" for i in range(machines)]
    load = {name: sum(group == name for group in groups.values()) for name in names}
    share = SLACK * (free + sum(load.values())) / machines
    for index in topological(graph):
        if index in groups:
            continue
        unit = unit_of[index]
        near = _near(graph, unit, groups)
        best = min(names, key=lambda name: (load[name] + len(unit) > share, -near.get(name, 0), load[name]))
        load[best] += len(unit)
        groups |= dict.fromkeys(unit, best)
    return groups


def _near(graph: g.Graph, unit: Unit, groups: Mapping[int, str]) -> Mapping[str, int]:
    """How many queues lead between a unit and each group."""
    found: dict[str, int] = {}
    for queue in graph.queues.values():
        if queue.producer is None or queue.consumer is None:
            continue
        ends = (queue.producer.instance, queue.consumer.instance)
        for here, there in (ends, ends[::-1]):
            if here in unit and there in groups:
                found[groups[there]] = found.get(groups[there], 0) + 1
    return found
