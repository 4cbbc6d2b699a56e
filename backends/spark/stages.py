"""A graph in stages: what runs in parallel on Spark, what runs in one partition, and why.

| stage | partitions | instances |
|---|---|---|
| map | as Spark likes | without state, one input: a turn of the inputs is handled as a whole |
| keyed | channels, by River's own hash of the key | one whose state is keyed, and the stateless ones before it |
| ordered | one | all others, fired as on one machine |

What the models of operators (`river.il.model`) prove decides; annotations say how many channels are wanted, and vouch for
operators on deltas that they handle each row by itself.

Paper: Auto-parallelizing §3 (what is safe), §4 (channels); River §4.2.
"""

from __future__ import annotations

from collections.abc import Iterable  # noqa: TC003 - attrs
from enum import Enum
from typing import TYPE_CHECKING

from river.classes import evolve, frozen
from river.il.annotations import annotated, row_type
from river.il.flow import Construction, ItemPart, item_findings
from river.il.loops import components
from river.il.model import Keyed, Stateless, Unknown, instance_model
from river.lang import rates, typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from river.il.graph import End, Graph, Instance


class StageKind(Enum):
    """How a stage runs."""

    MAP = "map"
    KEYED = "keyed"
    ORDERED = "ordered"


@frozen
class Role:
    """What an instance may do, and why. `keys`: fields of its items, or of the rows of its deltas (`rows`)."""

    kind: StageKind
    reason: str
    keys: tuple[str, ...] = ()
    rows: bool = False
    channels: int = 1


@frozen
class Stage:
    """Instances that run together, in the direction of the data; in a keyed stage the last one has the state.

    `ins`, `outs`: the queues that enter and leave it. `role`: of the last instance, for a keyed stage.
    """

    number: int
    kind: StageKind
    instances: tuple[int, ...]
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    role: Role


def staged(graph: Graph, workers: int) -> tuple[tuple[Stage, ...], tuple[Role, ...]]:
    """The stages of a program, and what each of its instances may do, for so many workers."""
    planner = _Planner(graph, workers)
    return planner.stages(), tuple(planner.roles)


class _Planner:
    """Roles first, then stages: `level` counts the stages on the longest way from the inputs."""

    def __init__(self, graph: Graph, workers: int) -> None:
        self.graph = graph
        self.workers = workers
        self.sharing = _sharing(graph)
        self.order = _order(graph, self.sharing)
        self.together = {i: members for members in self.order for i in members}
        self.below = _below(graph, self.order)
        found: dict[int, Role] = {}
        for members in self.order:
            for i in members:
                found[i] = self.checked(graph.instances[i], self.role(graph.instances[i]), found)
        for i in self.enclosed(found):
            found[i] = _ordered(f"{found[i].reason}, between operators in one order")
        self.roles = [found[i.index] for i in graph.instances]

    # -- roles

    def role(self, instance: Instance) -> Role:
        """What the instance may do by itself."""
        op = instance.operator
        if len(self.together[instance.index]) > 1 or any(q in instance.outs for q in instance.ins):
            shared = sorted(set(instance.variables) & self.sharing)
            return _ordered(f"shares ${shared[0]}" if shared else "part of a loop")
        if reason := in_one_order(op):
            return _ordered(reason)
        found = instance_model(instance)
        match found.state:
            case Stateless():
                return Role(StageKind.MAP, "no state")
            case Unknown():
                return _ordered("its state is not known to be keyed")
            case Keyed((keys,), rows):
                return self.keyed(instance, keys, rows=rows, looks=found.reads is None)
            case Keyed():
                return _ordered("reads several queues")

    def keyed(self, instance: Instance, keys: tuple[str, ...], *, rows: bool, looks: bool) -> Role:
        """The role of an operator whose state is keyed, if it can be told apart which channel has what."""
        said = annotated(instance.use)
        initial = {v.name: v.initial for v in self.graph.variables}
        if isinstance(instance.operator, typed.Extern):
            return _ordered("keeps its state in Python")
        if not all(isinstance(v.type, t.Map | t.OMap) for v in instance.operator.vars):
            return _ordered("its state is not a map")
        if any(len(initial[name]) for name in instance.variables):
            return _ordered("its state is not empty at the start")
        if rows:
            if said.keys is None and said.region is None:
                return _ordered("nothing says that it handles each row by itself: no @Keys")
            if looks or not _parts_make_the_whole(instance.operator):
                return _ordered("it looks at more than one row of a delta")
            if late := self.reads_order(instance.index):
                return _ordered(f"{late} reads the order of rows")
        wanted = (
            said.keys.fields if said.keys is not None else next((r.keys for r in said.regions if r.keys), ())
        )
        if wanted and set(wanted) <= set(keys):
            keys = wanted
        degree = said.parallel.degree if said.parallel is not None else None
        channels = self.workers if degree is None else degree
        if channels == 1:
            return _ordered("one channel is wanted")
        shown = f"keyed by {'rows ' if rows else ''}({', '.join(keys)})"
        return Role(StageKind.KEYED, shown, keys, rows, channels)

    def reads_order(self, index: int) -> str | None:
        """An instance after this one to which the order of rows in a delta matters; what has marks or waits may."""
        for i in sorted(self.below[index]):
            other = self.graph.instances[i]
            if in_one_order(other.operator) or instance_model(other).order_reading:
                return other.name
        return None

    def checked(self, instance: Instance, role: Role, found: dict[int, Role]) -> Role:
        """The role, unless it would leave the order of a queue unchecked (il.md 2.4, order-violation)."""
        if role.kind is StageKind.ORDERED:
            return role
        for port, name in enumerate(instance.ins):
            end = self.graph.queues[name].producer
            if instance.operator.ports[port].by is None or end is None:
                continue
            if found[end.instance].kind is not StageKind.ORDERED and not keeps_order(self.graph, name):
                return _ordered(f"the order of {name} has to be checked")
        return role

    def enclosed(self, found: dict[int, Role]) -> set[int]:
        """The instances of maps that lie between ordered ones on all sides.

        What comes from one task goes to one task: a job of their own would only write it down and read it again.
        """
        inside = {i for i, role in found.items() if role.kind is StageKind.MAP}
        while True:
            open_ = {i for i in inside if not all(self.neighbour(e, inside, found) for e in self.ends(i))}
            if not open_:
                return inside
            inside -= open_

    def ends(self, index: int) -> Iterable[End | None]:
        """Who writes what an instance reads, and who reads what it writes."""
        instance, queues = self.graph.instances[index], self.graph.queues
        return (
            *(queues[name].producer for name in instance.ins),
            *(queues[name].consumer for name in instance.outs),
        )

    @staticmethod
    def neighbour(end: End | None, inside: set[int], found: dict[int, Role]) -> bool:
        return end is not None and (end.instance in inside or found[end.instance].kind is StageKind.ORDERED)

    # -- stages

    def stages(self) -> tuple[Stage, ...]:
        level: dict[int, int] = {}
        for members in self.order:
            kind = self.roles[members[0]].kind
            here = 0
            for before in (b for i in members for b in self.before(i) if b not in members):
                same = kind is not StageKind.KEYED and self.roles[before].kind is kind
                here = max(here, level[before] + (not same))
            level |= dict.fromkeys(members, here)
        found: dict[tuple[int, StageKind, int], list[int]] = {}
        for i in (i for members in self.order for i in members):
            kind = self.roles[i].kind
            found.setdefault((level[i], kind, i if kind is StageKind.KEYED else -1), []).append(i)
        ranks = {StageKind.MAP: 0, StageKind.KEYED: 1, StageKind.ORDERED: 2}
        ordered = sorted(found.items(), key=lambda entry: (entry[0][0], ranks[entry[0][1]], entry[0][2]))
        groups = _folded(self.graph, [(kind, members) for (_, kind, _), members in ordered])
        return tuple(self.stage(n, kind, members) for n, (kind, members) in enumerate(groups))

    def before(self, index: int) -> Iterable[int]:
        ends = (self.graph.queues[name].producer for name in self.graph.instances[index].ins)
        return (end.instance for end in ends if end is not None)

    def stage(self, number: int, kind: StageKind, members: Sequence[int]) -> Stage:
        queues = self.graph.queues
        inside = frozenset(members)
        ins: list[str] = []
        outs: list[str] = []
        for instance in (self.graph.instances[i] for i in members):
            ins += [q for q in instance.ins if (p := queues[q].producer) is None or p.instance not in inside]
            outs += [
                q for q in instance.outs if (c := queues[q].consumer) is None or c.instance not in inside
            ]
        role = self.roles[members[-1]]
        return Stage(number, kind, tuple(members), tuple(ins), tuple(outs), evolve(role, kind=kind))


def keeps_order(graph: Graph, queue: str) -> bool:
    """Whether all items of an operator's output have the key of the item that they come from."""
    end = graph.queues[queue].producer
    if end is None:
        return True
    maker = graph.instances[end.instance]
    key, source = graph.queues[queue].key(), graph.queues[maker.ins[0]].key()
    if not isinstance(maker.operator, typed.Operator) or key is None or source is None:
        return False
    wanted = ItemPart(0, (source,))
    for out, origin in (emit for seen in item_findings(maker.operator) for emit in seen.emits):
        if out != end.position:
            continue
        match origin:
            case Construction(values) if values[key] == wanted:
                pass
            case ItemPart(0, ()) if key == source:
                pass
            case _:
                return False
    return maker.operator.ports[0].by is not None


def _folded(graph: Graph, groups: list[tuple[StageKind, list[int]]]) -> list[tuple[StageKind, list[int]]]:
    """Stages of a map that only one keyed stage reads are put before it: both are one job then."""
    home = {i: n for n, (_, members) in enumerate(groups) for i in members}
    into: dict[int, int] = {}
    for n, (kind, members) in enumerate(groups):
        ends = [graph.queues[q].consumer for i in members for q in graph.instances[i].outs]
        after = {None if end is None else home[end.instance] for end in ends} - {n}
        if kind is StageKind.MAP and len(after) == 1:
            (target,) = after
            if target is not None and groups[target][0] is StageKind.KEYED:
                into[n] = target
    for n, target in into.items():
        groups[target] = (StageKind.KEYED, groups[n][1] + groups[target][1])
    return [group for n, group in enumerate(groups) if n not in into]


def _ordered(reason: str) -> Role:
    return Role(StageKind.ORDERED, reason)


def in_one_order(op: typed.Operator | typed.Extern) -> str | None:
    """Why all that the operator gets must come to one place and in order; None if its kind does not ask for that."""
    if len(op.ports) != 1:
        return "reads several queues"
    if op.ports[0].initial:
        return "its input does not start empty"
    if isinstance(op, typed.Extern):
        return "keeps its state in Python" if op.vars else None
    if op.rated is not None:
        return "reads windows of its input"
    if op.phases:
        return "reads its input in phases"
    if op.merge is not None:
        return "merges by key"
    if op.mark is not None:
        return "answers marks"
    if _marks(op):
        return "sends marks"
    for i, _ in rates.unproven(op):
        return f"the rate of {op.outs[i].name} has to be checked"
    return None


def _marks(op: typed.Operator) -> bool:
    """Whether the operator's own text sends marks, by itself or in a function."""
    return any(seen.marks for seen in item_findings(op))


def _parts_make_the_whole(op: typed.Operator) -> bool:
    """Whether a firing answers a delta by at most one of the same instant on each output: parts can be joined."""
    (handler,) = op.items
    if any(row_type(out.type) is None for out in op.outs):
        return False
    for i in range(len(op.outs)):
        most = rates.emitted(handler.body, i, op.fns)[1]
        if most is None or most > 1:
            return False
    instant = ItemPart(0, (0,))
    for _, origin in (emit for seen in item_findings(op) for emit in seen.emits):
        match origin:
            case Construction((tau, _, _)) if tau == instant:
                pass
            case ItemPart(0, ()):
                pass
            case _:
                return False
    return True


# ------------------------------------------------------------------------------------------------------------ order


def _sharing(graph: Graph) -> frozenset[str]:
    """The variables that several instances use and some instance writes."""
    users: dict[str, set[int]] = {}
    written: set[str] = set()
    for instance in graph.instances:
        for name, param in zip(instance.variables, instance.operator.vars, strict=True):
            users.setdefault(name, set()).add(instance.index)
            if param.written:
                written.add(name)
    return frozenset(name for name, found in users.items() if len(found) > 1 and name in written)


def _order(graph: Graph, sharing: frozenset[str]) -> list[list[int]]:
    """The instances in the direction of the data; those that feed or share with one another stand together."""
    flow: dict[int, list[int]] = {instance.index: [] for instance in graph.instances}
    for queue in graph.queues.values():
        if queue.producer is not None and queue.consumer is not None:
            flow[queue.producer.instance].append(queue.consumer.instance)
    for name in sorted(sharing):
        users = [i.index for i in graph.instances if name in i.variables]
        for one, other in zip(users, [*users[1:], users[0]], strict=True):
            flow[one].append(other)
    return [sorted(members) for members in reversed(components(flow, flow))]


def _below(graph: Graph, order: list[list[int]]) -> dict[int, frozenset[int]]:
    """For each instance those that its outputs reach."""
    found: dict[int, frozenset[int]] = {}
    for members in reversed(order):
        reached: set[int] = set()
        for i in members:
            for name in graph.instances[i].outs:
                end = graph.queues[name].consumer
                if end is not None:
                    reached |= {end.instance} | found.get(end.instance, frozenset())
        for i in members:
            found[i] = frozenset(reached)
    return found
