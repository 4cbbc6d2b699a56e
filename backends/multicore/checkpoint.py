"""The state of a run between two turns, when nothing moves: taken out of a run, and put into another one.

Nothing of it depends on threads, batches or machine code: a run may go on with other ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backends.multicore.inputs import Anchors
from river.classes import astuple, define, evolve, field
from river.diagnostics import Diagnostic, Rejected
from river.ingress import Position
from river.lang.values import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from backends.firing.ports import Out, Port
    from backends.firing.queues import Chunk
    from backends.multicore.scheduling.task import Task
    from backends.multicore.tasks import Operate
    from backends.multicore.variables import Store
    from river.backend import Items
    from river.checkpoint import Snapshot
    from river.il.graph import Graph
    from river.lang.types import Type

PORT = ("initial", "seen", "progress", "last", "promised", "ended")


@define(eq=False)
class EngineState:
    """What there is to keep of an engine.

    `positions`: how far the inputs had been sent when it began; `anchors`: places where they can be read from; `held`: items
    that were read before and not sent.
    """

    graph: Graph
    store: Store
    operators: Sequence[Operate]
    tasks: Sequence[Task]
    entries: Mapping[str, Out]
    positions: Mapping[str, Position] = field(factory=dict[str, Position])
    anchors: dict[str, Anchors] = field(init=False)
    held: dict[str, Items] = field(factory=dict[str, "Items"], init=False)

    def __attrs_post_init__(self) -> None:
        self.anchors = {name: Anchors() for name in self.graph.inputs}

    # -- out

    def snapshot(self, positions: Mapping[str, Position]) -> Snapshot:
        """All of it. Nothing may move meanwhile."""
        from river.checkpoint import Snapshot

        found = Snapshot()
        values = self.store.final()
        found.fields = {
            "variables": {v.name: found.put(v.type, [values[v.name]]) for v in self.graph.variables},
            "inputs": {name: astuple(evolve(position, begun=0)) for name, position in positions.items()},
            "places": {
                name: self.anchors[name].before(position.items) for name, position in positions.items()
            },
            "instances": {task.name: task.instance.kept() for task in self.operators},
            "outs": {out.queue.name: out.marked for out in self._outs()},
            "ports": {port.queue.name: self._port(found, port) for port in self._ports()},
            "held": {n: found.put(self.graph.queues[n].type, items) for n, items in self.held.items()},
        }
        return found

    def _outs(self) -> Iterable[Out]:
        yield from self.entries.values()
        for task in self.tasks:
            yield from task.outs

    def _ports(self) -> Iterable[Port]:
        for task in self.tasks:
            yield from task.ports

    def _type(self, port: Port) -> Type:
        return self.graph.queues[port.queue.name].type

    def _port(self, found: Snapshot, port: Port) -> dict[str, Any]:
        """What waits at an input of an instance, and in the queue before it."""
        type_, late = self._type(port), port.violation
        put, taken, chunks = port.queue.kept()
        return {
            **{name: getattr(port, name) for name in PORT},
            "items": found.put(type_, port.items(port.count) if port.count else []),
            "marks": [(at, mark.key) for at, mark in port.marks],
            "violation": None
            if late is None
            else self._chunk(found, type_, late if isinstance(late, Mark) else [late]),
            "queue": (put, taken, port.queue.closed),
            "chunks": [self._chunk(found, type_, chunk) for chunk in chunks],
        }

    @staticmethod
    def _chunk(found: Snapshot, type_: Type, chunk: Chunk) -> dict[str, Any]:
        if isinstance(chunk, Mark):
            return {"mark": chunk.key}
        return {"items": found.put(type_, chunk if isinstance(chunk, list) else chunk.values())}

    # -- in

    def restore(self, found: Snapshot) -> None:
        """Puts everything where it was; before anything moves. Raises: Rejected("run-checkpoint-damaged")."""
        try:
            self._restore(found)
        except (KeyError, TypeError, ValueError) as error:
            message = f"the checkpoint does not hold the state of this program: {error}"
            help_ = "`--restart` begins anew"
            raise Rejected([Diagnostic("run-checkpoint-damaged", message, help=help_)]) from error

    def _restore(self, found: Snapshot) -> None:
        fields = found.fields
        self.positions = {name: Position(*position) for name, position in fields["inputs"].items()}
        for name, place in fields["places"].items():
            if place is not None:
                items, at, lines, given = place
                self.anchors[name].places.append((items, at, lines, given))
        self.held = {n: found.get(self.graph.queues[n].type, kept) for n, kept in fields["held"].items()}
        variables = {v.name: v.type for v in self.graph.variables}
        self.store.restore(
            {name: found.get(type_, fields["variables"][name])[0] for name, type_ in variables.items()}
        )
        for task in self.operators:
            task.instance.restore(fields["instances"][task.name])
        for out in self._outs():
            out.marked = fields["outs"][out.queue.name]
        for port in self._ports():
            self._refill(found, port, fields["ports"][port.queue.name])

    def _refill(self, found: Snapshot, port: Port, kept: Mapping[str, Any]) -> None:
        type_ = self._type(port)
        for name in PORT:
            setattr(port, name, kept[name])
        port.hold(found.get(type_, kept["items"]))
        port.marks.clear()
        port.marks.extend((at, Mark(key)) for at, key in kept["marks"])
        if kept["violation"] is not None:
            late = self._unchunked(found, type_, kept["violation"])
            port.violation = late if isinstance(late, Mark) else late[0]
        put, taken, port.queue.closed = kept["queue"]
        port.queue.restore(put, taken, [self._unchunked(found, type_, chunk) for chunk in kept["chunks"]])

    @staticmethod
    def _unchunked(found: Snapshot, type_: Type, kept: Mapping[str, Any]) -> Mark | list[Any]:
        return Mark(kept["mark"]) if "mark" in kept else found.get(type_, kept["items"])
