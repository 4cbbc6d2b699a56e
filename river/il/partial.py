"""Which operators behind an input may work block by block: each worker reads a block, maps it, and reduces it apart.

From the input on these are operators without state, and reducers: they send nothing, and all that they write has a
`combine`. So the results of blocks may come together in any order, at the end. What leaves to other operators, or to an
output, goes on in the order of the blocks.

Paper: River §4.4, §6 (Sawzall: MapReduce with the reducer fused with its mapper); Auto-parallelizing §3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen
from river.diagnostics import Note
from river.il.annotations import annotated
from river.il.arrangement import shows_entries
from river.il.combine import combines, may_begin
from river.il.flow import item_findings
from river.il.groups import one_group
from river.il.model import instance_model
from river.il.sources import source
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.il.combine import Combine
    from river.il.graph import Graph, Instance


@frozen
class Partial:
    """The operators behind `input` that work block by block: `maps` without state in the direction of the data, and `reducers`.

    `exits`: the queues by which items leave them. `combined`: by variable how those of several workers become one. `others`: the
    operators to which they leave, and why these do not work block by block.
    """

    input: str
    maps: tuple[int, ...]
    reducers: tuple[int, ...]
    exits: tuple[str, ...]
    combined: tuple[tuple[str, Combine], ...]
    others: tuple[tuple[int, str], ...] = ()

    @property
    def members(self) -> tuple[int, ...]:
        """All of them, in the order in which they fire."""
        return (*self.maps, *self.reducers)


def partial(graph: Graph, name: str) -> Partial | Note:
    """What works block by block behind an input; or why nothing does: at least one reducer has to."""
    if graph.queues[name].by is not None:
        return Note(f"the items of `{name}` come in the order of `{graph.queues[name].by}`")
    maps: list[int] = []
    reducers: list[int] = []
    exits: list[str] = []
    combined: list[tuple[str, Combine]] = []
    others: list[tuple[int, str]] = []
    queues = [name]
    while queues:
        queue = queues.pop()
        end = graph.queues[queue].consumer
        first = [graph.instances[i] for i in (*maps, *reducers)][:1]
        reason = None if end is None else _reason(graph, graph.instances[end.instance], first)
        if end is None or reason is not None:
            exits.append(queue)
            others += [] if end is None or reason is None else [(end.instance, reason)]
            continue
        instance = graph.instances[end.instance]
        queues += reversed(instance.outs)
        pairs = zip(instance.operator.vars, instance.variables, combines(instance.operator), strict=True)
        written = [(var, how) for param, var, how in pairs if param.written and how is not None]
        (reducers if written else maps).append(end.instance)
        combined += written
    if not combined:
        if others:
            index, reason = others[0]
            use = graph.instances[index].use
            return Note(f"`{use.operator}` {reason}", use.span)
        span = graph.instances[maps[0]].use.span if maps else None
        return Note(f"nothing behind `{name}` reduces in a way that could be done in parts", span)
    return Partial(name, tuple(maps), tuple(reducers), tuple(exits), tuple(combined), tuple(others))


def stated(graph: Graph, partial: Partial) -> bool:
    """Whether the program says that an input, and the operators behind it, work block by block."""
    uses = (annotated(graph.instances[i].use) for i in partial.members)
    return source(graph, partial.input).combined is not None and all(said.combined for said in uses)


def _reason(graph: Graph, instance: Instance, first: Sequence[Instance]) -> str | None:
    """Why an operator cannot work block by block, with the `first` one behind the input if there is one."""
    op = instance.operator
    if not isinstance(op, typed.Operator):
        return "is not River's"
    if len(op.ports) != 1 or len(op.items) != 1 or op.ports[0].initial:
        return "does not handle the items of one input, one by one"
    if any(end.by is not None for end in (*op.ports, *op.outs)):
        return "keeps to the order of its items"
    if op.mark is not None or any(found.marks for found in item_findings(op)):
        return "acts on marks, or sends some"
    said = annotated(instance.use).parallel
    if said is not None and said.degree == 1:
        return "is not to be parallel"
    if not one_group((*first, instance)):
        return f"is not in the group of `{first[0].use.operator}`"
    written = [name for param, name in zip(op.vars, instance.variables, strict=True) if param.written]
    for name in sorted(set(instance.variables) - set(written)):
        if name in graph.written:
            return f"reads `${name}`, which is written"
    if written and op.outs:
        return "keeps state and sends items"
    for name in written:
        if (why := _whole(graph, instance, name)) is not None:
            return why
    return "keeps state, and may trap" if written and instance_model(instance).can_trap else None


def _whole(graph: Graph, instance: Instance, name: str) -> str | None:
    """Why a variable that an instance writes has to be kept as a whole."""
    how = combines(instance.operator)[instance.variables.index(name)]
    variable = next(v for v in graph.variables if v.name == name)
    if how is None:
        return f"does more with `${name}` than to accumulate"
    if sum(other.variables.count(name) for other in graph.instances) > 1:
        return f"shares `${name}`"
    if not may_begin(how, variable.initial):
        return f"has `${name}`, which is not empty at first"
    if any(name in result.parts for result in graph.results):
        return f"has `${name}`, which is a part of a union"
    if t.contains(variable.type, t.Map, t.Bag) and any(
        view.variable == name and shows_entries(view.fns, view.function) for view in graph.views
    ):
        return f"has `${name}`, a view of which shows the order of its entries"
    return None


__all__ = ["Partial", "partial", "stated"]
