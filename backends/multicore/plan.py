"""How a graph runs on the threads of one machine: decided before anything starts, and printable.

Paper: River §2.3 (lock classes), §2.4 (bounded queues).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.locks import Locks, Scheme, classes, lock_set
from backends.multicore.experiments import Choices
from backends.multicore.regions import Alone, Region, region
from backends.native.batch import strides
from backends.native.contract import ROW
from backends.native.layout import is_plain, shares
from river.backend import BATCH, BOUND
from river.classes import evolve, field, frozen
from river.diagnostics import Diagnostic, Rejected, Severity
from river.il.annotations import annotated
from river.il.extern import not_given
from river.il.groups import core_sets, cores_of, worker_names
from river.il.loops import back_edges, components
from river.il.model import Stateless
from river.il.partial import Partial, partial, stated
from river.il.sources import source
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from river.backend import Options
    from river.il.graph import Graph, Instance, Queue
    from river.platform import Platform

EXPERIMENT = "as the experiment says"

ONE_WORKER = "is in a group that one worker runs"

LONGER = 4
"""By how much batches are longer at most: where no queue joins two operators, since what lies in none needs not fit into the
caches, and where operators get a part of the items each, since a step costs the same however few they are."""


@frozen
class Edge:
    """A queue as it will run. `bound` is None inside a strongly connected component: there it holds what circulates."""

    name: str
    bound: int | None
    producer: int | None
    consumer: int | None


@frozen
class Node:
    """An operator instance as it will run.

    `locks`: positions in `Plan.locks`, in the order of acquisition. `component`: the number of its strongly connected
    component, ascending with the data; `back`: the ports fed by queues that close a loop. `region`: how several workers
    run it at once, or why they do not though the program says so.
    """

    instance: Instance
    locks: tuple[int, ...]
    component: int
    back: frozenset[int]
    region: Region | Alone | None


@frozen(hash=False)
class Plan:
    """Everything that a run needs but sources and sinks. `nodes` are in the order of the graph's instances."""

    graph: Graph
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    locks: Locks
    workers: int
    options: Options = field(repr=False)
    batch: int
    """Items handled by one call at most."""
    choices: Choices = field(repr=False)
    partials: tuple[Partial, ...] = ()
    """What works block by block where an input is a file that can be read so."""
    remarks: tuple[Diagnostic, ...] = ()
    """What the program says of how it should run, and the plan does not do."""
    groups: Mapping[str, range] = field(factory=dict[str, range])
    """By `@Group` the workers, counted from 0, that alone run its operators."""

    def degree(self, partial: Partial) -> int:
        """How many workers read the blocks of an input, at most."""
        said = [annotated(self.graph.instances[i].use).parallel for i in partial.members]
        said.append(source(self.graph, partial.input).parallel)
        workers = len(cores_of(self.groups, self.graph.instances[partial.members[0]], self.workers))
        return min((workers, *(s.degree for s in said if s is not None and s.degree is not None)))

    def readers(self, name: str) -> int:
        """How many threads turn blocks of an input into columns, at most."""
        return source(self.graph, name).readers(self.workers)

    @property
    def cyclic(self) -> bool:
        """Whether items may circulate."""
        return any(node.back for node in self.nodes)

    def show(self) -> str:
        """The plan as text: a line per lock, queue and instance."""
        lines = [f"multicore: {self.workers} workers, batches of at most {self.batch} items"]
        lines += [
            f"  lock {i}: {', '.join(f'${v}' for v in variables)}" for i, variables in enumerate(self.locks)
        ]
        for id_, workers in self.groups.items():
            lines.append(f"  group {id_}: {worker_names(workers)}")
        for edge in self.edges:
            bound = "unbounded: part of a loop" if edge.bound is None else f"bound {edge.bound}"
            lines.append(
                f"  queue {edge.name}: {bound}, {self._name(edge.producer)} -> {self._name(edge.consumer)}"
            )
        for name in self.graph.inputs:
            if (readers := self.readers(name)) > 1:
                lines.append(
                    f"  input {name}: up to {readers} workers parse a file, whose rows come in its order"
                )
        for each in self.partials:
            members = ", ".join(self.nodes[i].instance.name for i in each.members)
            combined = ", ".join(f"${name}" for name, _ in each.combined)
            lines.append(
                f"  input {each.input}: up to {self.degree(each)} workers read blocks of a file, with {members}; "
                f"combined: {combined}"
            )
        for node in self.nodes:
            use = node.instance
            ins = ", ".join((*use.ins, *(f"${v}" for v in use.variables)))
            held = f", locks {', '.join(map(str, node.locks))}" if node.locks else ""
            lines.append(
                f"  {use.name}: ({', '.join(use.outs)}) <- ({ins}), component {node.component}{held}"
            )
            if node.region is not None:
                lines.append(f"    {self._shared(node.region, use.index)}")
        return "\n".join(lines)

    def native_report(self) -> str:
        """How the operators run as machine code; they are compiled to find out."""
        from backends.multicore.report import native_report

        return native_report([node.instance for node in self.nodes])

    def _shared(self, found: Region | Alone, index: int) -> str:
        """How several workers run an operator."""
        if isinstance(found, Alone):
            return f"one worker at a time: {found.reason}"
        if found.first != index:
            return f"together with {self._name(found.first)}; else {self._shared(evolve(found, first=index), index)}"
        order = "reorder buffer" + (" with a lock" if self.choices.reordering == "locked" else "")
        if isinstance(found.how, Stateless):
            return f"up to {found.degree} workers where it pays: without state, shared worklist, {order}"
        shards = found.shards(partitioned=self.choices.partitioned)
        queue = {"partitioned": "partitioned queues"}.get(
            self.choices.sharding, f"{self.choices.sharding} queue"
        )
        text = f"up to {found.degree} workers where it pays: {found.how}, {shards} shards, {queue}, {order}"
        if found.behind:
            text += f"; together with {', '.join(map(self._name, found.behind))}"
        return text

    def _name(self, instance: int | None) -> str:
        return "outside" if instance is None else self.nodes[instance].instance.name


def plan(graph: Graph, platform: Platform, options: Options, scheme: Scheme = classes) -> Plan:
    """The plan; `scheme` is for experiments with other locks than Fig. 1's.

    Raises: Rejected("run-extern") for user-defined operators that `options` does not have; ValueError for options out
        of range.
    """
    _check(options)
    choices, workers = Choices.of(options), options.workers or platform.cores
    groups = core_sets(graph, workers)
    missing = [
        not_given(instance.operator, instance.use.span)
        for instance in graph.instances
        if isinstance(instance.operator, typed.Extern) and instance.operator.target not in options.externs
    ]
    if missing:
        raise Rejected(missing)
    component = _components(graph)
    closing = back_edges(graph)
    uses = _uses(graph)
    locks = scheme(uses)
    nodes = tuple(
        Node(
            instance,
            lock_set(locks, used),
            component[instance.index],
            frozenset(p for p, q in enumerate(instance.ins) if q in closing),
            _region(graph, instance, groups, workers, options, choices),
        )
        for instance, used in zip(graph.instances, uses, strict=True)
    )
    many = _narrow(graph, options, component)
    edges = tuple(_edge(graph, queue, component, options.bound * many) for queue in graph.queues.values())
    return Plan(
        graph,
        nodes,
        edges,
        locks,
        workers,
        options,
        _whole(graph, options.batch * many, options),
        choices,
        _partials(graph, platform, groups, workers, options, choices),
        (*_remarks(nodes, groups), *_unread(graph)),
        groups,
    )


def _partials(
    graph: Graph,
    platform: Platform,
    groups: Mapping[str, range],
    workers: int,
    options: Options,
    choices: Choices,
) -> tuple[Partial, ...]:
    """What works block by block; nothing where the state is kept, or an experiment says how keyed operators run.

    One worker on several cores does not do so: it reduces while another thread reads.
    """
    if options.keeper is not None or options.native == "off" or choices.sharding != "hybrid":
        return ()
    found = (partial(graph, name) for name in graph.inputs)
    return tuple(
        each
        for each in found
        if isinstance(each, Partial)
        and stated(graph, each)
        and (len(cores_of(groups, graph.instances[each.members[0]], workers)) > 1 or platform.cores == 1)
    )


def _narrow(graph: Graph, options: Options, component: Sequence[int]) -> int:
    """How many items of the widest queue are as many bytes as a row: a call costs the same, however narrow they are."""
    if (options.batch, options.bound) != (BATCH, BOUND) or options.native == "off":
        return 1
    queues = [queue for queue in graph.queues.values() if not _printed(queue)]
    joined = any(queue.producer is not None and queue.consumer is not None for queue in queues)
    if not all((is_plain if joined else shares)(queue.type) for queue in queues):
        return 1
    widest = max((sum(strides(queue.type)) for queue in queues), default=0)
    flow, share = _flow(graph, component)
    longer = min(1.0, share) * LONGER if joined else 1.0
    many = max(1, int(LONGER * ROW / max(1.0, longer)) // widest) if widest else 1
    texts = max((flow[name] for name, queue in graph.queues.items() if not is_plain(queue.type)), default=0.0)
    return min(many, int(LONGER / min(1.0, texts))) if texts else many


def _printed(queue: Queue) -> bool:
    """Whether it holds texts or lists that leave the program: nobody knows how long they are, but no operator reads them."""
    return queue.consumer is None and not is_plain(queue.type)


def _flow(graph: Graph, component: Sequence[int]) -> tuple[Mapping[str, float], float]:
    """How many items each queue gets for one that comes in, as rates say, or one for each; how many an operator takes on average.

    Where ticks are all that comes in, for one that is made of these.
    """
    flow = dict.fromkeys(graph.inputs, 1.0)
    taken: list[float] = []
    made: list[float] = []
    for instance in sorted(graph.instances, key=lambda each: component[each.index]):
        op, came = instance.operator, [flow.get(queue, 0.0) for queue in instance.ins]
        taken.append(max(came, default=0.0))
        rated = op.rated if isinstance(op, typed.Operator) else None
        if rated is not None:
            firings = max(came[rate.port] / rate.pop for rate in rated.rates if rate.pop)
        elif isinstance(op, typed.Operator) and op.phases:
            firings = sum(came) / max(1, len(op.outs))
        else:
            firings = sum(came)
        sent = {queue: firings * (out.push or 1) for queue, out in zip(instance.outs, op.outs, strict=True)}
        flow |= sent
        if any(queue in graph.inputs for queue in instance.ins):
            made += [count for queue, count in sent.items() if is_plain(graph.queues[queue].type)]
    ticks = all(graph.queues[name].type == t.UNIT for name in graph.inputs)
    one = max(1.0, *made) if ticks and made else 1.0
    return {queue: count / one for queue, count in flow.items()}, sum(taken) / max(1, len(taken)) / one


def _whole(graph: Graph, batch: int, options: Options) -> int:
    """A batch of whole windows, where only one input is read, by windows that do not overlap: else each end would be a call."""
    readers = [graph.queues[name].consumer for name in graph.inputs]
    if options.batch != BATCH or len(readers) != 1 or readers[0] is None:
        return batch
    operator = graph.instances[readers[0].instance].operator
    if not isinstance(operator, typed.Operator) or operator.rated is None:
        return batch
    pop = max(rate.pop for rate in operator.rated.rates)
    return batch - batch % pop if 0 < pop <= batch else batch


def _region(
    graph: Graph,
    instance: Instance,
    groups: Mapping[str, range],
    workers: int,
    options: Options,
    choices: Choices,
) -> Region | Alone | None:
    own = len(cores_of(groups, instance, workers))
    found = region(graph, instance, workers, kept=options.keeper is not None)
    if isinstance(found, Region) and own < found.degree:
        found = Alone(ONE_WORKER) if own == 1 else evolve(found, degree=own)
    keyed = isinstance(found, Region) and not isinstance(found.how, Stateless)
    return Alone(EXPERIMENT) if keyed and choices.sharding == "off" else found


def _remarks(nodes: Iterable[Node], groups: Mapping[str, range]) -> Iterator[Diagnostic]:
    """What the program says and the plan does not do."""
    firsts: dict[str, Instance] = {}
    for node in nodes:
        use = node.instance.use
        if isinstance(node.region, Alone) and node.region.reason != EXPERIMENT:
            message = f"`{use.operator}` runs on one worker at a time: it {node.region.reason}"
            yield Diagnostic("run-region", message, use.span, Severity.REMARK)
        if (group := annotated(use).group) is not None:
            firsts.setdefault(group.id, node.instance)
    for workers in dict.fromkeys(groups.values()):
        alike = [id_ for id_, theirs in groups.items() if theirs == workers]
        if len(alike) > 1:
            shown = ", ".join(f"`{id_}`" for id_ in alike)
            message = f"the groups {shown} share a worker: there are more groups than workers"
            yield Diagnostic("run-group", message, firsts[alike[1]].use.span, Severity.REMARK)


def _unread(graph: Graph) -> Iterator[Diagnostic]:
    """The inputs whose blocks the program wants operators to get that cannot work on these."""
    for name in graph.inputs:
        if (said := source(graph, name).combined) is None:
            continue
        found = partial(graph, name)
        if isinstance(found, Partial) and stated(graph, found):
            continue
        reason = f"not all that works on them is in the region `{said.id}`"
        message = (
            f"no operator gets blocks of `{name}`: {reason if isinstance(found, Partial) else found.message}"
        )
        yield Diagnostic("run-region", message, graph.program.input(name).span, Severity.REMARK)


def _check(options: Options) -> None:
    for name, value in (("batch", options.batch), ("bound", options.bound), ("workers", options.workers)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")


def _components(graph: Graph) -> tuple[int, ...]:
    """For each instance the number of its strongly connected component.

    Data flow from lower to higher numbers; a component with fewer others on the way to it has the lower number.
    """
    flow: dict[int, list[int]] = {instance.index: [] for instance in graph.instances}
    for queue in graph.queues.values():
        if queue.producer is not None and queue.consumer is not None:
            flow[queue.producer.instance].append(queue.consumer.instance)
    depth = dict.fromkeys(flow, 0)
    found = components(flow, flow)
    for members in reversed(found):  # those that reach others come first
        here = max(depth[i] for i in members)
        depth |= dict.fromkeys(members, here)
        for consumer in (c for i in members for c in flow[i] if c not in members):
            depth[consumer] = max(depth[consumer], here + 1)
    ordered = sorted(found, key=lambda members: (depth[members[0]], min(members)))
    number = {instance: n for n, members in enumerate(ordered) for instance in members}
    return tuple(number[i] for i in flow)


def _inside(queue: Queue, component: tuple[int, ...]) -> bool:
    """Whether the queue starts and ends in one component."""
    match queue.producer, queue.consumer:
        case None, _:
            return False
        case _, None:
            return False
        case producer, consumer:
            return component[producer.instance] == component[consumer.instance]


def _uses(graph: Graph) -> list[tuple[str, ...]]:
    """For each instance the variables that need a lock if they are shared: one that nobody writes needs none."""
    written = {
        variable
        for instance in graph.instances
        for variable, param in zip(instance.variables, instance.operator.vars, strict=True)
        if param.written
    }
    return [tuple(v for v in instance.variables if v in written) for instance in graph.instances]


def _edge(graph: Graph, queue: Queue, component: tuple[int, ...], bound: int) -> Edge:
    """The queue with its bound: a rated consumer finds room for the items that it peeks at."""
    consumer = None if queue.consumer is None else graph.instances[queue.consumer.instance].operator
    if isinstance(consumer, typed.Operator) and queue.consumer is not None:
        handlers = [h for h in (consumer.first, consumer.rated) if h is not None]
        peeks = [r.peek for h in handlers for r in h.rates if r.port == queue.consumer.position]
        bound = max(bound, *peeks, 1)
    return Edge(
        queue.name,
        None if _inside(queue, component) else bound,
        queue.producer and queue.producer.instance,
        queue.consumer and queue.consumer.instance,
    )
