"""What a picture of a program shows: boxes, arrows and frames, before anybody decides where they stand.

Paper: River Fig. 2 to 4 (boxes for operators, a folded corner for those with state, arrows for queues).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from river.classes import frozen
from river.il.annotations import COMBINE, annotated, row_type
from river.il.groups import worker_names
from river.il.loops import back_edges
from river.il.pretty import pretty_decl
from river.il.program import Instance as InstanceDecl
from river.il.program import Lift
from river.il.sources import source
from river.lang.scope import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from river.il.graph import Graph, Instance, Queue


class NodeKind(Enum):
    """What a node of a picture stands for."""

    OPERATOR = "operator"
    INPUT = "input"
    OUTPUT = "output"
    VIEW = "view"
    VARIABLE = "variable"


@frozen
class Node:
    """A box, a pill or an ellipse.

    `detail`: a second line (the template an operator is made of, the locks it takes). `stateful`: it has variables, or
    hidden state. `parallel`: `@Parallel` asks for, or grants, several of it.
    """

    kind: NodeKind
    name: str
    title: str
    detail: tuple[str, ...] = ()
    stateful: bool = False
    parallel: bool = False


@frozen
class Arrow:
    """A queue from node to node, at positions among the outs and ports; `back` closes a loop."""

    name: str
    source: int
    target: int
    title: str
    out: int = 0
    port: int = 0
    back: bool = False


@frozen
class Link:
    """An operator or a view (`read` only) with a variable that it uses."""

    node: int
    variable: int
    written: bool


@frozen
class Cluster:
    """Nodes that belong together: a parallel region, a segment that is to be one operator, or a group on one machine."""

    label: str
    members: tuple[int, ...]


@frozen
class Drawing:
    """A picture; nodes are named by their position."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    links: tuple[Link, ...]
    frames: tuple[Cluster, ...]

    def users(self, variable: int) -> tuple[int, ...]:
        """The nodes linked to a variable."""
        return tuple(dict.fromkeys(link.node for link in self.links if link.variable == variable))


class PlannedNode(Protocol):
    """An instance in a plan that can be drawn."""

    @property
    def locks(self) -> Sequence[int]:
        """The locks it takes, as positions in the plan's."""
        ...


class PlannedEdge(Protocol):
    """A queue in a plan that can be drawn."""

    @property
    def name(self) -> str:
        """The queue."""
        ...

    @property
    def bound(self) -> int | None:
        """How many items it holds; None in a loop."""
        ...


@runtime_checkable
class Planned(Protocol):
    """A backend's plan that can be drawn: which locks are taken, and how much queues hold."""

    @property
    def nodes(self) -> Sequence[PlannedNode]:
        """In the order of the graph's instances."""
        ...

    @property
    def edges(self) -> Sequence[PlannedEdge]:
        """The queues."""
        ...

    @property
    def locks(self) -> Sequence[Sequence[str]]:
        """The variables under each lock."""
        ...

    @property
    def groups(self) -> Mapping[str, range]:
        """By group its workers, counted from 0."""
        ...


def drawing(graph: Graph, plan: Planned | None = None) -> Drawing:
    """The picture of a program; with a plan, of how it will run."""
    operators = [_operator(graph, instance, plan) for instance in graph.instances]
    names = [*graph.inputs, *graph.outputs, *(f"{view.name}" for view in graph.views)]
    terminals = [
        *(Node(NodeKind.INPUT, name, _queue_title(graph.queues[name])) for name in graph.inputs),
        *(Node(NodeKind.OUTPUT, name, _queue_title(graph.queues[name])) for name in graph.outputs),
        *(
            Node(NodeKind.VIEW, view.name, f"{view.name}: {show(view.type)}, made of ${view.variable}")
            for view in graph.views
        ),
    ]
    used = {name for instance in graph.instances for name in instance.variables}
    used |= {name for view in graph.views for name in graph.behind(view)}
    variables = [variable for variable in graph.variables if variable.name in used]
    first = len(operators)
    place = {name: first + i for i, name in enumerate(names)}
    ellipse = {variable.name: first + len(terminals) + i for i, variable in enumerate(variables)}
    lock = {} if plan is None else {v: f"lock {i}" for i, held in enumerate(plan.locks) for v in held}
    ellipses = (
        Node(
            NodeKind.VARIABLE,
            f"${v.name}",
            f"${v.name}: {show(v.type)}",
            detail=(lock[v.name],) if v.name in lock else (),
        )
        for v in variables
    )
    return Drawing(
        (*operators, *terminals, *ellipses),
        tuple(_arrows(graph, place, plan)),
        tuple(_links(graph, place, ellipse)),
        tuple(_frames(graph, place, plan)),
    )


def _operator(graph: Graph, instance: Instance, plan: Planned | None) -> Node:
    use = instance.use
    decl = next(
        (d for d in graph.program.decls if isinstance(d, InstanceDecl | Lift) and d.name == use.operator),
        None,
    )
    detail: list[str] = []
    match decl:
        case InstanceDecl(template=template):
            detail.append(template)
        case Lift(operator=lifted):
            detail.append(f"lift({lifted})")
        case None:
            pass
    if plan is not None and (locks := plan.nodes[instance.index].locks):
        detail.append(f"lock{'s' * (len(locks) > 1)} {', '.join(map(str, locks))}")
    said = annotated(use)
    degree = said.parallel.degree if said.parallel is not None else 1
    return Node(
        NodeKind.OPERATOR,
        use.operator,
        f"{instance.name}\n{pretty_decl(use)}",
        tuple(detail),
        stateful=bool(instance.variables),
        parallel=degree != 1,
    )


def item_text(queue: Queue) -> str:
    """The type of a queue's items for people: deltas are called changes."""
    rows = row_type(queue.type)
    shown = show(queue.type) if rows is None else f"changes of {show(rows)}"
    return shown if queue.by is None else f"{shown} by {queue.by}"


def _queue_title(queue: Queue, bound: str = "") -> str:
    return f"{queue.name}: {item_text(queue)}{bound}"


def _arrows(graph: Graph, place: Mapping[str, int], plan: Planned | None) -> Iterator[Arrow]:
    closing = back_edges(graph)
    bounds: dict[str, str] = {}
    if plan is not None:
        for edge in plan.edges:
            bounds[edge.name] = "\nunbounded" if edge.bound is None else f"\nholds {edge.bound} items"
    for queue in graph.queues.values():
        start, end = queue.producer, queue.consumer
        yield Arrow(
            queue.name,
            place[queue.name] if start is None else start.instance,
            place[queue.name] if end is None else end.instance,
            _queue_title(queue, bounds.get(queue.name, "")),
            0 if start is None else start.position,
            0 if end is None else end.position,
            back=queue.name in closing,
        )


def _links(graph: Graph, place: Mapping[str, int], ellipse: Mapping[str, int]) -> Iterator[Link]:
    for instance in graph.instances:
        for name, param in zip(instance.variables, instance.operator.vars, strict=True):
            yield Link(instance.index, ellipse[name], param.written)
    for view in graph.views:
        for name in graph.behind(view):
            yield Link(place[view.name], ellipse[name], written=False)


def _frames(graph: Graph, place: Mapping[str, int], plan: Planned | None) -> Iterator[Cluster]:
    """Regions, then segments, then groups, in the order of their first members; regions of inputs alone behind the others."""
    regions: dict[tuple[str, bool], list[int]] = {}
    keys: dict[str, str] = {}
    segments: dict[str, list[int]] = {}
    groups: dict[str, list[int]] = {}
    for instance in graph.instances:
        said = annotated(instance.use)
        for region in said.regions:
            regions.setdefault((region.id, region.what == COMBINE), []).append(instance.index)
            if region.keys:
                keys[region.id] = f", by {', '.join(region.keys)}"
        if said.fuse is not None:
            segments.setdefault(said.fuse.id, []).append(instance.index)
        if said.group is not None:
            groups.setdefault(said.group.id, []).append(instance.index)
    alone: list[Cluster] = []
    for name in graph.inputs:
        read = source(graph, name)
        if read.combined is not None:
            regions.setdefault((read.combined.id, True), []).append(place[name])
        if read.blocks is not None:
            alone.append(Cluster(f"region {read.blocks.id}, read in blocks", (place[name],)))
    for (id_, blocks), members in regions.items():
        yield Cluster(f"region {id_}" + (", in blocks" if blocks else keys.get(id_, "")), tuple(members))
    yield from alone
    yield from (Cluster(f"segment {id_}", tuple(members)) for id_, members in segments.items())
    workers: Mapping[str, range] = {} if plan is None else plan.groups
    for id_, members in groups.items():
        which = f", {worker_names(workers[id_])}" if id_ in workers else ""
        yield Cluster(f"group {id_}{which}", tuple(members))
