"""By which columns an input may be divided for an output: rows with other values there have nothing to do with one another.

Then a program may be run on each part of the input by itself, with all operators on the way, and what the parts give is, as a
bag of rows, what the whole gives. Which operators keep apart what is decided by the rules of regions (`river.il.regions`); here
they are followed from the input to the output, and from the fields of rows back to columns. What happens because time goes on,
and no row comes, is the same in each part if its time ends where that of the whole does.

Paper: Auto-parallelizing §3 (keyed regions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen
from river.driver import stamps, wholes
from river.il.annotations import row_type
from river.il.gathered import gathered
from river.il.model import Stateless, instance_model
from river.il.regions import ByRows, Sharded, divided, divided_together
from river.lang import typed
from river.lang import types as t
from river.lang.trees import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.il.graph import Graph, Instance


@frozen
class Partitioning:
    """The columns by which an input is divided. `timed`: what is sent may depend on how far time has come."""

    columns: tuple[str, ...]
    timed: bool


def division(graph: Graph, output: str) -> Partitioning | None:
    """How the only input of a program may be divided for an output; None if it may not."""
    way = _way(graph, output)
    if not way or len(graph.inputs) != 1 or stamps(graph.program) or wholes(graph.program):
        return None
    item = graph.queues[way[0].ins[0]].type
    if not isinstance(item, t.Record):
        return None
    path = _Path(graph, {name: name for name, _ in item.fields})
    if not path.follow(way) or not path.keys:
        return None
    keys = tuple(name for name in path.keys if _exact(item.field(name)))
    return Partitioning(keys, path.timed) if keys else None


def _way(graph: Graph, output: str) -> list[Instance]:
    """The operators from the input to an output, if they stand in a row; else none."""
    found: list[Instance] = []
    end = graph.queues[output].producer if output in graph.outputs else None
    while end is not None:
        instance = graph.instances[end.instance]
        alone = all(len(graph.users[name]) == 1 for name in instance.variables)
        if not isinstance(instance.operator, typed.Operator) or len(instance.ins) != 1 or not alone:
            return []
        if instance.index in graph.looping:
            return []
        found.append(instance)
        end = graph.queues[instance.ins[0]].producer
    return found[::-1]


def _exact(type_: t.Type | None) -> bool:
    """Whether equal values are equal for Spark, too: not floats, of which it tells one zero from the other."""
    inner = type_.inner if isinstance(type_, t.Optional) else type_
    return isinstance(inner, t.Primitive) and inner not in t.FLOATS


class _Path:
    """The way so far. `alive`: by field of what travels, or of its rows, the column that it is. `keys`: None before any key."""

    def __init__(self, graph: Graph, alive: dict[str, str]) -> None:
        self.graph = graph
        self.alive = alive
        self.keys: tuple[str, ...] | None = None
        self.timed = False

    def follow(self, way: list[Instance]) -> bool:
        """Whether all operators keep rows apart by some columns."""
        at = 0
        while at < len(way):
            instance, last = way[at], at + 1 == len(way)
            op = instance.operator
            assert isinstance(op, typed.Operator)  # noqa: S101 - by `_way`
            run = 0
            while at + run < len(way) and self.on_deltas(way[at + run]):
                run += 1
            if run:
                if not self.by_rows(way[at : at + run]):
                    return False
                at += run
                continue
            kept = gathered(op)
            if at and op.ports[0].by is not None and not (last and _sends_rows(op)):
                return False  # whether what it gets is in order can be seen of the whole only
            if kept is not None:
                if not self.gathers(instance, kept):
                    return False
            elif not (last and _sends_rows(op)) and not self.by_items(instance):
                return False
            at += 1
        return True

    @staticmethod
    def on_deltas(instance: Instance) -> bool:
        """Whether an operator turns deltas into deltas."""
        op = instance.operator
        return all(row_type(end.type) is not None for end in (*op.ports, *op.outs)) and len(op.outs) == 1

    def gathers(self, instance: Instance, kept: typed.Expr) -> bool:
        """Rows become deltas, whose fields are some of theirs."""
        initial = {variable.name: variable.initial for variable in self.graph.variables}
        assert isinstance(kept, typed.MakeRecord)  # noqa: S101 - of rows
        assert isinstance(kept.type, t.Record)  # noqa: S101 - the same
        self.timed = True
        alive: dict[str, str] = {}
        for (name, _), value in zip(kept.type.fields, kept.values, strict=True):
            match value:
                case typed.Get(_, typed.Local(_, 0), _, source) if source in self.alive:
                    alive[name] = self.alive[source]
                case _:
                    pass
        self.alive = alive
        return not any(initial[name] for name in instance.variables)

    def by_rows(self, run: list[Instance]) -> bool:
        how = divided_together(self.graph, [instance.index for instance in run])
        if not isinstance(how, ByRows):
            return False
        self.join(how.names)
        self.timed = True
        self.alive = {}  # what comes after deltas only sends their rows
        return True

    def by_items(self, instance: Instance) -> bool:
        how = divided(self.graph, instance)
        match how:
            case Stateless():
                pass
            case Sharded():
                self.join(how.names)
            case _:
                return False
        ends = (self.graph.queues[name] for name in instance.outs)
        places = [end.producer.position for end in ends if end.producer is not None]
        pairs = [set(instance_model(instance).forwarded[place]) for place in places]
        same = set[tuple[str, str]].intersection(*pairs) if pairs else set[tuple[str, str]]()
        self.alive = {to: self.alive[name] for to, name in same if name in self.alive}
        return True

    def join(self, names: Iterable[str]) -> None:
        """Rows are to be apart by columns that reach all keys."""
        reached = [self.alive[name] for name in names if name in self.alive]
        self.keys = tuple(reached if self.keys is None else [key for key in self.keys if key in reached])


def _sends_rows(op: typed.Operator) -> bool:
    """Whether all that an operator does with a delta is to send something for each of its rows."""
    if op.vars or len(op.items) != 1 or row_type(op.ports[0].type) is None:
        return False
    if op.mark is not None and not all(isinstance(item, typed.Mark) for item in op.mark.body.items):
        return False
    for item in op.items[0].body.items:
        match item:
            case typed.For(_, (_,), _, typed.Get(_, typed.Local(_, 0), 1 | 2), body):
                if any(isinstance(node, typed.Break | typed.Return | typed.Call) for node in nodes(body)):
                    return False
                delta = sum(isinstance(node, typed.Local) and node.slot == 0 for node in nodes(body))
                taus = sum(_is_instant(node) for node in nodes(body))
                if delta != taus:
                    return False
            case _:
                return False
    return True


def _is_instant(node: typed.Node) -> bool:
    match node:
        case typed.Get(_, typed.Local(_, 0), 0):
            return True
        case _:
            return False
