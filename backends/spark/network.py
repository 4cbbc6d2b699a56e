"""The instances of an ordered stage, fired by one thread with the rules of one machine (`backends.multicore.instance`)."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from attrs import frozen

from backends.multicore.instance import Setting, make
from backends.multicore.ports import Out, Port
from backends.multicore.queues import UNBOUNDED, Queue
from backends.spark.report import Caught
from backends.spark.rowwise import imported
from river.il.flow import item_findings
from river.il.loops import back_edges
from river.lang import typed
from river.lang.evaluate import Trap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.multicore.instance import Instance
    from backends.spark.report import Report
    from backends.spark.task import Task


@frozen(eq=False)
class Node:
    """An instance and the names of its variables; `order` is its place in the direction of the data."""

    order: int
    index: int
    name: str
    instance: Instance
    variables: tuple[str, ...]
    consumers: tuple[int | None, ...]


class Network:
    """Instances, their queues and variables."""

    def __init__(self, task: Task, report: Report) -> None:
        self.task = task
        self.report = report
        graph = task.graph
        self.values = {v.name: v.initial for v in graph.variables}
        self._closing = back_edges(graph)
        self._queues: dict[str, Queue] = {}
        self._place = {index: order for order, index in enumerate(task.instances)}
        for index in task.instances:
            for name in (*graph.instances[index].ins, *graph.instances[index].outs):
                self._queues.setdefault(name, Queue(name, UNBOUNDED, None, 0))
        self._entries = {
            name: Out(self._queues[name], keyed=graph.queues[name].by is not None, mixed=True, back=False)
            for name in task.ins
        }
        self.nodes = [self._node(order, index) for index, order in self._place.items()]
        self._due: list[int] = []
        self._dead: set[int] = set()
        self.caught: list[Caught] = []

    def feed(self, queue: str, elements: list[Any]) -> None:
        """Elements arrive from outside."""
        entry = self._entries[queue]
        entry.add(elements)
        entry.drain()
        end = self.task.graph.queues[queue].consumer
        assert end is not None  # noqa: S101 - it enters the stage
        self._wake(self._place[end.instance])

    def settle(self) -> None:
        """Fires until nothing can; what traps fires no more, and is kept in `caught`."""
        while self._due:
            order = heappop(self._due)
            while self._due and self._due[0] == order:
                heappop(self._due)
            node = self.nodes[order]
            if order in self._dead:
                continue
            if self._fire(node):
                self._wake(order)
            node.instance.drain()
            for out, consumer in zip(node.instance.outs, node.consumers, strict=True):
                if out.sent:
                    out.sent = False
                    if consumer is not None:
                        self._wake(consumer)

    def taken(self, queue: str) -> Iterator[Any]:
        """The elements that have left by a queue since the last time."""
        found = self._queues[queue]
        while (chunk := found.take()) is not None:
            if isinstance(chunk, list):
                yield from chunk
            else:
                yield chunk

    def close(self) -> None:
        """Tells the report what was done."""
        for node in self.nodes:
            self.report.fired[node.name] += node.instance.fired
            if node.instance.skipped:
                self.report.skipped[node.name] += node.instance.skipped
            self.report.keep(self.task.graph, node.variables, [self.values[v] for v in node.variables])

    def _wake(self, order: int) -> None:
        heappush(self._due, order)

    def _fire(self, node: Node) -> bool:
        """Fires what is there, up to a batch; whether more may be there."""
        held = node.instance.variables
        held[:] = [self.values[name] for name in node.variables]
        try:
            return node.instance.fire()
        except Trap as trap:
            self._dead.add(node.order)
            self.caught.append(Caught(trap, node.index))
            return False
        finally:
            self.values.update(zip(node.variables, held, strict=True))

    def _node(self, order: int, index: int) -> Node:
        graph, task = self.task.graph, self.task
        instance = graph.instances[index]
        operator = instance.operator
        ports = [
            Port(
                self._queues[name],
                None if port.by is None else graph.queues[name].key(),
                port.initial,
                back=name in self._closing,
                checked=graph.queues[name].producer is not None,
            )
            for name, port in zip(instance.ins, operator.ports, strict=True)
        ]
        mixed = isinstance(operator, typed.Operator) and any(f.marks for f in item_findings(operator))
        outs = [
            Out(self._queues[name], keyed=out.by is not None, mixed=mixed, back=name in self._closing)
            for name, out in zip(instance.outs, operator.outs, strict=True)
        ]
        setting = Setting(
            operator,
            ports,
            outs,
            [self.values[name] for name in instance.variables],
            task.batch,
            (lambda trap: self.report.passed.append(Caught(trap, index))) if task.skip else None,
        )
        function = imported(operator.target) if isinstance(operator, typed.Extern) else None
        ends = (graph.queues[name].consumer for name in instance.outs)
        return Node(
            order,
            index,
            instance.name,
            make(setting, function, _never),
            instance.variables,
            tuple(None if end is None else self._place.get(end.instance) for end in ends),
        )


def _never() -> None:
    """Nobody stops a task but Spark, and that by ending the process."""
