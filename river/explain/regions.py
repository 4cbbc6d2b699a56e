"""The parallel regions that fission wrote into a program, and the shuffles between them (paper section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.explain.facts import InBlocks, NotInBlocks, Placed, Read, Region, Serial, Shuffle
from river.il.annotations import COMBINE, annotated
from river.il.costs import costs
from river.il.groups import core_sets
from river.il.partial import Partial, partial, stated
from river.il.regions import divided, pays
from river.il.sources import source
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Collection

    from river.il.graph import Graph, Instance


def regions(graph: Graph) -> tuple[Region, ...]:
    """The regions of a program, in the order of its text."""
    found: dict[str, Region] = {}
    for instance in graph.instances:
        notes = annotated(instance.use)
        for note in (region for region in notes.regions if region.what != COMBINE):
            before = found.get(note.id)
            degree = None if notes.parallel is None else notes.parallel.degree
            operators = (instance.name,) if before is None else (*before.operators, instance.name)
            found[note.id] = Region(note.id, note.what, degree, note.keys, operators)
    return tuple(found.values())


def groups(graph: Graph, cores: int) -> tuple[Placed, ...]:
    """The groups of a program, in the order of its text, where so many `cores` of a machine run it."""
    members: dict[str, list[str]] = {}
    for instance in graph.instances:
        if (group := annotated(instance.use).group) is not None:
            members.setdefault(group.id, []).append(instance.name)
    sets = core_sets(graph, cores)
    return tuple(Placed(id_, tuple(sets[id_]), tuple(names)) for id_, names in members.items())


def shuffles(graph: Graph) -> tuple[Shuffle, ...]:
    """The queues that lead from a region into one that divides its items otherwise."""
    of = {name: region for region in regions(graph) for name in region.operators}
    found: list[Shuffle] = []
    for queue in graph.queues.values():
        if queue.producer is None or queue.consumer is None:
            continue
        source = of.get(graph.instances[queue.producer.instance].name)
        target = of.get(graph.instances[queue.consumer.instance].name)
        if source is not None and target is not None and source.id != target.id and target.keys:
            found.append(Shuffle(queue.name, source.id, target.id))
    return tuple(found)


def blocks(graph: Graph) -> tuple[InBlocks, ...]:
    """What works block by block behind inputs that are files."""
    found = (partial(graph, name) for name in graph.inputs)
    return tuple(
        InBlocks(one.input, tuple(graph.instances[i].name for i in one.members), one.exits)
        for one in found
        if isinstance(one, Partial) and stated(graph, one)
    )


def reads(graph: Graph, cores: int) -> tuple[Read, ...]:
    """The inputs that several workers read, by how many."""
    found: dict[int, list[str]] = {}
    for name in graph.inputs:
        if (readers := source(graph, name).readers(cores)) > 1:
            found.setdefault(readers, []).append(name)
    return tuple(Read(readers, tuple(names)) for readers, names in found.items())


def in_order(graph: Graph) -> tuple[NotInBlocks, ...]:
    """What gets the items of inputs in their order, though these may be files, by reason; where something gathers at all."""
    found: dict[str, list[str]] = {}
    if all(instance.outs for instance in graph.instances):
        return ()
    for one in (partial(graph, name) for name in graph.inputs if graph.queues[name].by is None):
        if not isinstance(one, Partial):
            found.setdefault(one.message, [])
        elif stated(graph, one):
            for index, reason in one.others:
                found.setdefault(reason, []).append(graph.instances[index].name)
    return tuple(NotInBlocks(reason, tuple(names)) for reason, names in found.items())


def serial(graph: Graph, cores: int) -> tuple[Serial, ...]:
    """Why operators are neither in a region nor work in blocks, by reason, on so many `cores`."""
    lone = {id_ for id_, own in core_sets(graph, cores).items() if len(own) == 1}
    found: dict[str, list[str]] = {}
    apart = {name for each in blocks(graph) for name in each.operators}
    taken = costs(graph)
    for instance in graph.instances:
        if annotated(instance.use).region is None and instance.name not in apart:
            idle = taken.share((instance.index,)) is not None and not taken.waited_for(
                (instance.index,), cores
            )
            found.setdefault(_reason(graph, instance, lone, idle=idle), []).append(instance.name)
    return tuple(Serial(reason, tuple(names)) for reason, names in found.items())


def _reason(graph: Graph, instance: Instance, lone: Collection[str], *, idle: bool) -> str:
    """`idle`: a profile says that nobody waits for it."""
    said = annotated(instance.use)
    if said.loop is not None:
        return f"is a loop, which runs as one region: {', '.join(said.loop.operators)}"
    how = divided(graph, instance, () if said.keys is None else said.keys.fields)
    if isinstance(how, str):
        return how
    if said.parallel is not None and said.parallel.degree == 1:
        return "is to be on one worker, says `@Parallel(1)`"
    if isinstance(instance.operator, typed.Operator) and not pays(instance.operator):
        return "passes on what it gets: there is nothing to do"
    if said.group is not None and said.group.id in lone:
        return f"is in the group `{said.group.id}`, which one worker runs"
    if idle:
        return "takes so little of the time, says the profile, that a second worker would gain nothing"
    return "is in no region, though it could be"
