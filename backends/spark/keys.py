"""By which columns inputs may be divided for an output: rows with other values there have nothing to do with one another.

Then a program may be run on each part of the inputs by itself, with all operators on the way, and what the parts give is, as a
bag of rows, what the whole gives. Which operators keep apart what is decided by the rules of regions (`river.il.regions`), and
which rows meet in joins by those of `river.il.joins`; here they are followed from the inputs to the output, and from the fields
of rows back to columns. What happens because time goes on, and no row comes, is the same in each part if its time ends where
that of the whole does.

Paper: Auto-parallelizing §3 (keyed regions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import define, frozen
from river.driver import Compiled, stamps, wholes
from river.il.annotations import row_type
from river.il.gathered import gathered
from river.il.joins import joined
from river.il.model import Stateless, instance_model
from river.il.regions import ByRows, Sharded, divided, divided_together, kept
from river.il.rows import rowwise
from river.il.slicing import copies, sliced
from river.lang import typed
from river.lang import types as t
from river.lang.trees import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from river.il.graph import Graph, Instance
    from river.il.joins import Join


@frozen(hash=False)
class Partitioning:
    """The columns by which each input is divided, in one order: rows may meet where the values are equal.

    `timed`: what is sent may depend on how far time has come.
    """

    columns: Mapping[str, tuple[str, ...]]
    timed: bool

    def __str__(self) -> str:
        """As a plan shows it."""
        if len(self.columns) == 1:
            return ", ".join(*self.columns.values())
        return ", ".join(f"{name}.{column}" for name, keys in self.columns.items() for column in keys)


def without_others(graph: Graph, output: str) -> Graph | None:
    """The program of an output that is a queue, without all that others need: nothing of that can trap for it."""
    program = sliced(graph, output)
    return None if program is None else Compiled(program, lowered=True).graph


def division(graph: Graph, output: str) -> Partitioning | None:
    """How the inputs of a program may be divided for an output, the only one; None if they may not."""
    if stamps(graph.program) or wholes(graph.program) or output not in graph.outputs:
        return None
    path = _path(graph, output, whole=True)
    if path is None or not path.keys or path.inputs != set(graph.inputs):
        return None
    columns = {name: tuple(dict(key)[name] for key in path.keys) for name in graph.inputs}
    return Partitioning(columns, path.timed)


def _path(graph: Graph, queue: str, *, whole: bool) -> _Path | None:
    """What reaches a queue from the inputs. `whole`: it is the way to an output. None if parts of it see one another's rows."""
    way: list[Instance] = []
    while (end := graph.queues[queue].producer) is not None:
        instance = graph.instances[end.instance]
        alone = all(len(graph.users[name]) == 1 for name in instance.variables)
        if not isinstance(instance.operator, typed.Operator) or not alone or instance.index in graph.looping:
            return None
        how = joined(instance.operator)
        if how is not None:
            found = _meeting(graph, instance, how)
            return found if found is not None and found.follow(way[::-1], whole=whole) else None
        if len(instance.ins) != 1:
            return None
        if not copies(instance):
            way.append(instance)
        queue = instance.ins[0]
    item = graph.queues[queue].type
    if not isinstance(item, t.Record):
        return None
    alive = {name: ((queue, name),) for name, type_ in item.fields if _exact(type_)}
    found = _Path(graph, {queue}, alive)
    return found if found.follow(way[::-1], whole=whole) else None


def _meeting(graph: Graph, instance: Instance, how: Join) -> _Path | None:
    """What reaches both sides of a join, whose rows meet by key."""
    initial = {variable.name: variable.initial for variable in graph.variables}
    if any(initial[name] for name in instance.variables):
        return None
    sides = [_path(graph, queue, whole=False) for queue in instance.ins]
    if None in sides:
        return None
    left, right = (side for side in sides if side is not None)
    parts: dict[int, KeyColumns] = {}
    for number, names in enumerate(zip(*how.keys, strict=True)):
        one, other = (side.apart_by(name) for side, name in zip((left, right), names, strict=True))
        if one is not None and other is not None and (dict(one) | dict(other)) == (dict(other) | dict(one)):
            parts[number] = tuple(sorted({*one, *other}))
    alive = {name: parts[number] for name, number in how.sent if number in parts}
    keys = tuple(dict.fromkeys(parts.values()))
    return _Path(graph, left.inputs | right.inputs, alive, keys, timed=True, began=False)


def _exact(type_: t.Type | None) -> bool:
    """Whether equal values are equal for Spark, too: not floats, of which it tells one zero from the other."""
    inner = type_.inner if isinstance(type_, t.Optional) else type_
    return isinstance(inner, t.Primitive) and inner not in t.FLOATS


KeyColumns = tuple[tuple[str, str], ...]
"""The columns that a field is, of each input that it comes from."""


@define(eq=False)
class _Path:
    """The way so far. `alive`: by field of what travels, or of its rows, the columns that it is. `keys`: None before any key.

    `began`: no operator has been passed yet.
    """

    graph: Graph
    inputs: set[str]
    alive: dict[str, KeyColumns]
    keys: tuple[KeyColumns, ...] | None = None
    timed: bool = False
    began: bool = True

    def apart_by(self, name: str) -> KeyColumns | None:
        """The columns that a field of the rows is, by which they may be divided."""
        found = self.alive.get(name)
        return found if self.keys is None or found in self.keys else None

    def follow(self, way: list[Instance], *, whole: bool) -> bool:
        """Whether all operators keep rows apart by some columns. `whole`: the last one is that of an output."""
        at = 0
        while at < len(way):
            instance, last = way[at], whole and at + 1 == len(way)
            op = instance.operator
            assert isinstance(op, typed.Operator)  # noqa: S101 - by `_path`
            run = 0
            while at + run < len(way) and self.on_deltas(way[at + run]):
                run += 1
            if run:
                if not self.by_rows(way[at : at + run]):
                    return False
                at, self.began = at + run, False
                continue
            kept = gathered(op)
            if not self.began and op.ports[0].by is not None and not (last and _sends_rows(op)):
                return False  # whether what it gets is in order can be seen of the whole only
            if kept is not None:
                if not self.gathers(instance, kept):
                    return False
            elif not (last and _sends_rows(op)) and not self.by_items(instance):
                return False
            at, self.began = at + 1, False
        return True

    @staticmethod
    def on_deltas(instance: Instance) -> bool:
        """Whether an operator turns deltas into deltas."""
        op = instance.operator
        return all(row_type(end.type) is not None for end in (*op.ports, *op.outs)) and len(op.outs) == 1

    def gathers(self, instance: Instance, kept: typed.MakeRecord) -> bool:
        """Rows become deltas, whose fields are some of theirs."""
        initial = {variable.name: variable.initial for variable in self.graph.variables}
        assert isinstance(kept.type, t.Record)  # noqa: S101 - of rows
        self.timed = True
        alive: dict[str, KeyColumns] = {}
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
        self.timed = True
        if isinstance(how, ByRows):
            self.join(how.names)
        elif self.keys is None or not all(self.row_by_row(instance) for instance in run):
            return False
        for instance in run:
            if rowwise(instance.operator).compares:  # equal rows have to be in one part
                self.join(self.alive)
            self.alive = {to: self.alive[name] for to, name in kept(instance) if name in self.alive}
        return True

    @staticmethod
    def row_by_row(instance: Instance) -> bool:
        """Whether an operator on deltas treats rows one by one, and keeps none of them."""
        return not instance.operator.vars and rowwise(instance.operator).obstacle is None

    def by_items(self, instance: Instance) -> bool:
        how = divided(self.graph, instance)
        match how:
            case Stateless() if isinstance(instance.operator, typed.Operator) and instance.operator.items:
                pass  # which windows of items are not: parts have other windows than the whole
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
