"""A program without what one of its outputs does not need.

Paper: River §4.4 (only what is asked for is run).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import evolve
from river.il.forwards import forwarded
from river.il.program import Decl, Input, Output, Program, Queue, Result, Use, Variable
from river.lang import typed

if TYPE_CHECKING:
    from river.il.graph import Graph, Instance


def sliced(graph: Graph, output: str) -> Program | None:
    """The program that has one output alone, which is no view; None where an operator sends what only others need.

    What copies a queue for several readers is left out: one of them is left.
    """
    needed = _before(graph, output)
    inside = {instance.index for instance in needed}
    read = {output, *(name for instance in needed for name in instance.ins)}
    doubled = [each for each in needed if copies(each) and len(read.intersection(each.outs)) == 1]
    shared = any(not inside.issuperset(graph.users[name]) for each in needed for name in each.variables)
    if shared or any(not read.issuperset(each.outs) for each in needed if each not in doubled):
        return None
    names = {name: instance.ins[0] for instance in doubled for name in instance.outs}
    if output in names and graph.queues[_first(names, output)].producer is None:
        return None
    names = {name: _first(names, name) for name in names}
    end = names.get(output, output)  # what is now sent to the output
    names |= {end: output}
    names |= {name: output for name, first in names.items() if first == end}
    variables = {name for instance in needed for name in instance.variables}
    kept: list[Decl] = []
    uses = {id(instance.use) for instance in needed if instance not in doubled}
    for decl in graph.program.decls:
        match decl:
            case Use(outs, _, ins) if id(decl) in uses:
                ends = (tuple(names.get(name, name) for name in side) for side in (outs, ins))
                kept.append(evolve(decl, **dict(zip(("outs", "ins"), ends, strict=True))))
            case Input(name) if name in read:
                kept.append(decl)
            case Output(name) if name == output:
                kept.append(decl)
            case Variable(name) if name in variables:
                kept.append(decl)
            case Queue(name) if name in read and name not in names:
                kept.append(decl)
            case Use() | Input() | Output() | Variable() | Queue() | Result():
                pass
            case _:
                kept.append(decl)
    return Program(tuple(kept))


def _before(graph: Graph, output: str) -> list[Instance]:
    """The operators that an output needs, in the order of the graph."""
    found: set[int] = set()
    left = [output]
    while left:
        end = graph.queues[left.pop()].producer
        if end is not None and end.instance not in found:
            found.add(end.instance)
            left += graph.instances[end.instance].ins
    return [instance for instance in graph.instances if instance.index in found]


def copies(instance: Instance) -> bool:
    """Whether all that the operator does is to send each item on, to several readers."""
    op = instance.operator
    if not isinstance(op, typed.Operator) or len(op.outs) == 1:
        return False
    sent = forwarded(op)
    return sent is not None and len(sent) == len(op.outs) and all(parts == ((),) for _, parts in sent)


def _first(names: dict[str, str], name: str) -> str:
    """The queue that a copy is of."""
    while name in names:
        name = names[name]
    return name
