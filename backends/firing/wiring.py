"""The two ends of an instance of a graph: its ports and outs, on the queues that a run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.firing.columns import ColumnPort
from backends.firing.ports import Out, Port
from river.lang import typed
from river.lang.trees import nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from backends.firing.queues import Queue
    from river.il.graph import Graph, Instance


def inputs_of(
    instance: Instance, graph: Graph, queues: Mapping[str, Queue], closing: Collection[str], *, columns: bool
) -> list[Port]:
    """Its inputs. `closing`: the queues that close loops; `columns`: it fires machine code."""
    ports: list[Port] = []
    for name, declared in zip(instance.ins, instance.operator.ports, strict=True):
        key = None if declared.by is None else graph.queues[name].key()
        back, checked = name in closing, graph.queues[name].producer is not None
        queue, initial = queues[name], declared.initial
        if columns:
            ports.append(ColumnPort(queue, declared.type, key, initial, back=back, checked=checked))
        else:
            ports.append(Port(queue, key, initial, back=back, checked=checked))
    return ports


def outputs_of(instance: Instance, queues: Mapping[str, Queue], closing: Collection[str]) -> list[Out]:
    """Its outputs. `closing`: the queues that close loops."""
    mixed = _marking(instance.operator)
    return [
        Out(queues[name], keyed=out.by is not None, mixed=i in mixed, back=name in closing)
        for i, (name, out) in enumerate(zip(instance.outs, instance.operator.outs, strict=True))
    ]


def _marking(operator: typed.Operator | typed.Extern) -> frozenset[int]:
    """The outputs to which the operator's own text sends marks: they are ordered."""
    if all(out.by is None for out in operator.outs):
        return frozenset()
    return frozenset(node.out for node in nodes(operator) if isinstance(node, typed.Mark))
