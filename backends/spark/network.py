"""The instances of an ordered stage, fired by one thread: as machine code, or by the evaluator (`backends.firing`).

Nothing is bounded here: a turn of the inputs is what there is at once.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from backends.firing.instance import Setting, make
from backends.firing.machine import make as make_machine
from backends.firing.ports import Out
from backends.firing.queues import UNBOUNDED, Queue
from backends.firing.wiring import inputs_of, outputs_of
from backends.spark.compiled import compiled, variables
from backends.spark.report import Caught
from backends.spark.rowwise import imported
from river.classes import frozen
from river.il.loops import back_edges
from river.lang import typed
from river.lang.evaluate import Trap
from river.lang.values import END, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.firing.instance import Instance
    from backends.spark.marshal import Piece
    from backends.spark.report import Report
    from backends.spark.task import Task
    from river.backend import Rows


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
        self.code = compiled(task, task.instances)
        report.missing = self.code.missing
        self._native = variables(graph, self.code.native)
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

    def columns(self, queue: str) -> bool:
        """Whether columns are what to feed a queue with."""
        return self.code.reads(self.task.graph, queue)

    def feed(self, queue: str, piece: Piece) -> None:
        """Elements arrive from outside."""
        entry = self._entries[queue]
        if isinstance(piece.items, list):
            entry.add(_elements(piece))
        else:
            entry.add_batch(piece.items, piece.marks)
        self._entered(queue)

    def end(self, queue: str) -> None:
        """A queue from outside has ended."""
        self._entries[queue].add_mark(END)
        self._entered(queue)

    def _entered(self, queue: str) -> None:
        self._entries[queue].drain()
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

    def taken(self, queue: str) -> Iterator[list[Any] | Rows | Mark]:
        """What has left by a queue since the last time: runs of items, and marks."""
        found = self._queues[queue]
        while (chunk := found.take()) is not None:
            yield chunk

    def close(self) -> None:
        """Tells the report what was done."""
        for node in self.nodes:
            self.report.fired[node.name] += node.instance.fired
            if node.instance.skipped:
                self.report.skipped[node.name] += node.instance.skipped
            if node.index not in self.code.native:
                self.report.keep(self.task.graph, node.variables, [self.values[v] for v in node.variables])
        self.report.keep(self.task.graph, tuple(self._native), [v.get() for v in self._native.values()])

    def _wake(self, order: int) -> None:
        heappush(self._due, order)

    def _fire(self, node: Node) -> bool:
        """Fires what is there, up to a batch; whether more may be there."""
        names = () if node.index in self.code.native else node.variables
        held = node.instance.variables
        held[:] = [self.values[name] for name in names]
        try:
            return node.instance.fire()
        except Trap as trap:
            self._dead.add(node.order)
            self.caught.append(Caught(trap, node.index))
            return False
        finally:
            self.values.update(zip(names, held, strict=True))

    def _node(self, order: int, index: int) -> Node:
        graph, task = self.task.graph, self.task
        instance = graph.instances[index]
        operator = instance.operator

        def passed(trap: Trap) -> None:
            self.report.passed.append(Caught(trap, index))

        native = self.code.native.get(index)
        ports = inputs_of(instance, graph, self._queues, self._closing, columns=native is not None)
        outs = outputs_of(instance, self._queues, self._closing)
        report = passed if task.skip else None
        if native is None:
            values = [self.values[name] for name in instance.variables]
            setting = Setting(operator, ports, outs, values, task.batch, report)
            function = imported(operator.target) if isinstance(operator, typed.Extern) else None
            made = make(setting, function, _never)
        else:
            made = make_machine(Setting(operator, ports, outs, [], UNBOUNDED, report), native)
        ends = (graph.queues[name].consumer for name in instance.outs)
        consumers = tuple(None if end is None else self._place.get(end.instance) for end in ends)
        return Node(order, index, instance.name, made, instance.variables, consumers)


def _elements(piece: Piece) -> list[Any]:
    """Items and marks as they follow one another."""
    found: list[Any] = []
    done = 0
    for place, key in piece.marks:
        found += piece.items[done:place]
        found.append(Mark(key))
        done = max(done, place)
    return found + piece.items[done:]


def _never() -> None:
    """Nobody stops a task but Spark, and that by ending the process."""
