"""The parts of a run, put together: queues, tasks on both ends of them, locks and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from backends.firing.columns import ColumnPort
from backends.firing.instance import Setting, make
from backends.firing.machine import make as make_machine
from backends.firing.ports import Out, Port
from backends.firing.queues import UNBOUNDED, Queue
from backends.firing.wiring import inputs_of, outputs_of
from backends.multicore.concurrent import concurrent
from backends.multicore.parsing import Parsing
from backends.multicore.partial import Blocks
from backends.multicore.regions import Region
from backends.multicore.scheduling.ready import ready
from backends.multicore.scheduling.task import CoreSet, Lock
from backends.multicore.tables import ReadTable
from backends.multicore.tasks import Deliver, Operate
from backends.multicore.variables import Store, Variables
from backends.native.egress.sinks import column_sink
from river.classes import frozen
from river.il.annotations import annotated
from river.lang import typed
from river.lang.evaluate import inside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backends.firing.instance import Report
    from backends.firing.machine import Machine
    from backends.multicore.by_rows import ByRowsOperate
    from backends.multicore.compiled import NativeCode
    from backends.multicore.parallel import Parallel
    from backends.multicore.plan import Node, Plan
    from backends.multicore.scheduling.task import Task
    from backends.native.deadline import Deadline
    from river.backend import Sinks
    from river.il.graph import Instance as GraphInstance
    from river.il.graph import Queue as GraphQueue

SHORT: Final = 8
"""Which part of a batch an operator that reads inputs fires on first, so that other workers soon have something to do."""


@frozen(eq=False)
class Assembly:
    """The parts. `tasks`: the `operators` in the order of the graph's instances, a task for each output, the `blocks`, `reading`.

    `order`: of the tasks, in the direction of the data. `entries`: where the inputs go in.
    """

    store: Store
    queues: Mapping[str, Queue]
    operators: Sequence[Operate]
    tasks: Sequence[Task]
    order: Sequence[int]
    entries: Mapping[str, Out]
    blocks: Sequence[Blocks]
    reading: Sequence[Parsing | ReadTable]


def assemble(
    plan: Plan,
    compiled: NativeCode,
    sinks: Sinks,
    deadline: Deadline | None,
    report: Report | None,
    poll: Callable[[], None],
) -> Assembly:
    """The parts of a run of a plan. `report` takes traps that do not end the run; `poll` is called in long firings."""
    graph, store = plan.graph, Store(plan, compiled)
    places = {
        name: len(plan.nodes) + i for i, name in enumerate(e.name for e in plan.edges if e.consumer is None)
    }
    queues = {
        e.name: Queue(
            e.name,
            UNBOUNDED if e.bound is None else e.bound,
            e.producer,
            places[e.name] if e.consumer is None else e.consumer,
        )
        for e in plan.edges
    }
    closing = {node.instance.ins[port] for node in plan.nodes for port in node.back}
    turns = _in_turns([node.instance for node in plan.nodes])
    locks = [Lock() for _ in plan.locks]

    def operate(node: Node) -> Operate:
        instance = node.instance
        operator, options = instance.operator, plan.options
        native = compiled.native.get(instance.index)
        ports = inputs_of(instance, graph, queues, closing, columns=native is not None)
        outs = outputs_of(instance, queues, closing)
        variables = store.of(instance.variables) if native is None else Variables([], (), {})
        function = options.externs.get(operator.target) if isinstance(operator, typed.Extern) else None
        told = None if instance.index in turns else report
        setting = Setting(operator, ports, outs, variables.values, plan.batch, told, deadline)
        if native is not None:
            native.deadline = deadline
        with inside(instance.use.within):
            made = make(setting, function, poll) if native is None else make_machine(setting, native)
        if native is not None and isinstance(node.region, Region):
            machine = cast("Machine", made)
            return concurrent(machine, instance, variables, node.region, plan.choices, store, options.batch)
        if (
            native is not None
            and plan.workers > 1
            and all(queues[name].producer is None for name in instance.ins)
        ):
            cast("Machine", made).begin(plan.batch // SHORT)
        task = Operate(instance.index, made, instance.name, variables)
        task.locks = tuple(locks[i] for i in node.locks)
        return task

    def deliver(name: str) -> Deliver:
        queue, sink = graph.queues[name], sinks.get(name)
        columns, key = _is_columns(queue, compiled), queue.key()
        if sink is not None and columns:
            sink = column_sink(sink)
        if hasattr(sink, "columns") and columns:
            port = ColumnPort(queues[name], queue.type, key, (), back=False, checked=False)
        else:
            port = Port(queues[name], key, (), back=False, checked=False)
        return Deliver(places[name], port, sink, plan.batch)

    operators = [operate(node) for node in plan.nodes]
    for node, task in zip(plan.nodes, operators, strict=True):
        behind = node.region.behind if isinstance(node.region, Region) else ()
        if behind and compiled.native.keys() >= {task.index, *behind}:
            cast("ByRowsOperate", task).lead([cast("Parallel", operators[i]) for i in behind])
    entries = {
        name: Out(queues[name], keyed=graph.queues[name].by is not None, mixed=True, back=False)
        for name in graph.inputs
    }
    partials = [e for e in plan.partials if compiled.native.keys() >= set(e.members)]
    blocks = [
        Blocks(len(operators) + len(places) + i, each, plan, compiled, operators, entries, deadline)
        for i, each in enumerate(partials)
    ]
    alone = len(graph.inputs) == 1 and compiled.wanted and plan.options.keeper is None
    first = len(operators) + len(places) + len(blocks)
    reading: list[Parsing | ReadTable] = [
        make(first + i, name, plan, entries[name])
        for name in graph.inputs
        if alone and plan.readers(name) > 1
        for i, make in enumerate((Parsing, ReadTable))
    ]
    tasks = [*operators, *map(deliver, places), *blocks, *reading]
    order = [node.component for node in plan.nodes] + [len(plan.nodes)] * len(places)
    order += [plan.nodes[each.members[0]].component for each in partials]
    order += [-1 for _ in reading]
    place(plan, tasks, order, queues)
    return Assembly(store, queues, operators, tasks, order, entries, blocks, reading)


def place(plan: Plan, tasks: Sequence[Task], order: Sequence[int], queues: Mapping[str, Queue]) -> None:
    """Gives tasks of operators in groups to the workers of these; so are their outputs delivered, and blocks read for them."""
    sets: dict[range, CoreSet] = {}
    for workers in plan.groups.values():
        if len(workers) < plan.workers:
            tasks_ready = ready(plan.choices.scheduler, tasks, order, queues, plan.batch)
            sets.setdefault(workers, CoreSet(workers, tasks_ready))
    if not sets:
        return
    for task in tasks:
        match task:
            case Blocks():
                index = task.partial.members[0]
            case Parsing() | ReadTable():
                end = plan.graph.queues[task.name].consumer
                index = None if end is None else end.instance
            case _:
                index = task.index if task.index < len(plan.nodes) else task.ports[0].queue.producer
        if index is not None and (group := annotated(plan.nodes[index].instance.use).group) is not None:
            task.cores = sets[plan.groups[group.id]]


def _is_columns(queue: GraphQueue, compiled: NativeCode) -> bool:
    """Whether the items of a queue come in columns."""
    return queue.producer is not None and queue.producer.instance in compiled.native


def _in_turns(instances: Sequence[GraphInstance]) -> frozenset[int]:
    """The replicas whose results a merge takes in turns: one that left out an item would shift all others."""
    roles = [(one, {(r.id, r.what) for r in annotated(one.use).regions}) for one in instances]
    turns = {
        (id_, "replica")
        for one, said in roles
        if isinstance(one.operator, typed.Operator) and one.operator.phases
        for id_, what in said
        if what == "merge"
    }
    return frozenset(one.index for one, said in roles if said & turns)
