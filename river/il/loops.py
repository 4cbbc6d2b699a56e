"""Loops of a stream graph: the strongly connected components, and the queues that close them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.il.graph import Graph

Edge = tuple[str, int, int]  # queue, producer, consumer


def components(nodes: Iterable[int], successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The strongly connected components, each before those that reach it (Tarjan)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in nodes:
        if root in number:
            continue
        work = [(root, iter(successors.get(root, ())))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    position = stack.index(node)
                    found.append(stack[position:])
                    on_stack.difference_update(stack[position:])
                    del stack[position:]
            elif child not in number:
                number[child] = low[child] = len(number)
                stack.append(child)
                on_stack.add(child)
                work.append((child, iter(successors.get(child, ()))))
            elif child in on_stack:
                low[node] = min(low[node], number[child])
    return found


def loops(graph: Graph) -> tuple[frozenset[int], ...]:
    """The sets of instances that feed one another in a circle."""
    edges = _edges(graph)
    return tuple(_cycles(range(len(graph.instances)), edges))


def back_edges(graph: Graph) -> frozenset[str]:
    """The queues that close loops: they enter an operator, from inside its loop, that the loop is entered by.

    Such a queue carries no end of input (il.md P2). Loops inside loops are found by leaving out those
    that close the outer one. A loop that nothing enters never runs; all its queues count.
    """
    edges = _edges(graph)
    found: set[str] = set()
    pending = list(_cycles(range(len(graph.instances)), edges))
    while pending:
        loop = pending.pop()
        entered = {
            i for i in loop for queue in graph.instances[i].ins if _from_outside(graph, queue, loop, found)
        }
        inside = [(q, a, b) for q, a, b in edges if a in loop and b in loop and q not in found]
        closing = {q for q, _, b in inside if b in entered or not entered}
        found |= closing
        pending += _cycles(sorted(loop), [edge for edge in inside if edge[0] not in closing])
    return frozenset(found)


def _from_outside(graph: Graph, queue: str, loop: frozenset[int], closed: set[str]) -> bool:
    producer = graph.queues[queue].producer
    return queue not in closed and (producer is None or producer.instance not in loop)


def _edges(graph: Graph) -> list[Edge]:
    return [
        (q.name, q.producer.instance, q.consumer.instance)
        for q in graph.queues.values()
        if q.producer is not None and q.consumer is not None
    ]


def _cycles(nodes: Iterable[int], edges: Iterable[Edge]) -> list[frozenset[int]]:
    """The components with an edge inside."""
    successors: dict[int, list[int]] = {}
    for _, producer, consumer in edges:
        successors.setdefault(producer, []).append(consumer)
    return [
        frozenset(found)
        for found in components(nodes, successors)
        if len(found) > 1 or found[0] in successors.get(found[0], ())
    ]
