"""How a program runs over files that executors read by themselves; where there is no such way, it runs by stages.

| way | which programs | tasks |
|---|---|---|
| `InParts` | tables into which rows are accumulated (`river.il.partial`) | for each part of the file, then for each table |
| `RowByRow` | operators without state alone | for each part of the file |
| `ByKey` | relations whose rows with other keys have nothing to do with one another (`keys`) | the same, then for each channel |
| `InOneTask` | what has to see all items in one order | one |

Each task runs its operators, or the whole program, as machine code on columns. All operators of a program have to be on the way
to an output, because each may trap.

Paper: River §4.4 (mappers, reducers); Auto-parallelizing §3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backends.spark.keys import Partitioning, division, without_others
from backends.spark.stages import StageKind, keeps_order
from river.classes import frozen
from river.diagnostics import Rejected
from river.driver import row_types, stamps, wholes
from river.il.annotations import private
from river.il.gathered import gathered
from river.il.model import instance_model
from river.il.partial import Partial, partial
from river.io import deltas
from river.io.schema import arrow_schema
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.spark.plan import Plan
    from river.il.graph import Graph, Instance


@frozen
class InParts:
    """Copies of the operators accumulate apart, and what they leave is put together. Other outputs are made row by row."""

    found: Partial


@frozen
class RowByRow:
    """No row of the input matters to another one."""


@frozen(hash=False)
class KeyedOutputs:
    """Outputs with the program that makes them alone, and the columns by which the inputs are divided for that."""

    names: tuple[str, ...]
    graph: Graph
    found: Partitioning

    def __str__(self) -> str:
        """As a plan shows it."""
        return f"{', '.join(f'`{name}`' for name in self.names)} by ({self.found})"


@frozen(hash=False)
class ByKey:
    """Outputs are made of the rows of some keys after those of others: all at once, or where columns differ one by one."""

    runs: tuple[KeyedOutputs, ...]


@frozen
class InOneTask:
    """All items of all inputs, in one task. `reason`: why."""

    reason: str


Way = InParts | RowByRow | ByKey | InOneTask


def way(plan: Plan) -> Way | str:
    """The way for a program, if its inputs are such files; or why there is none."""
    graph = plan.graph
    for names, what in (
        (wholes(graph.program), "has all rows of its data as one item"),
        (stamps(graph.program), "has time stamps that are computed"),
    ):
        if name := min(names, default=None):
            return f"the input `{name}` {what}"
    if not graph.inputs:
        return "there is no input"
    if any(result.combined for result in graph.results):
        return "a variable is kept in parts that are combined"
    try:
        for type_ in row_types(graph).values():
            arrow_schema(type_)
    except Rejected:
        return "Arrow has no type for the rows of an output"
    return _in_parts(graph) or _row_by_row(plan) or _by_key(graph) or _in_one_task(plan)


def _in_parts(graph: Graph) -> InParts | None:
    if len(graph.inputs) != 1 or not graph.views:
        return None
    found = partial(graph, graph.inputs[0])
    if not isinstance(found, Partial) or len(found.maps) + len(found.reducers) < len(graph.instances):
        return None
    combined = dict(found.combined)
    if any(view.variable not in combined or len(graph.users[view.variable]) > 1 for view in graph.views):
        return None
    return InParts(found)


def _row_by_row(plan: Plan) -> RowByRow | None:
    graph = plan.graph
    if len(graph.inputs) != 1 or graph.views or not plan.stages:
        return None
    if any(stage.kind is not StageKind.MAP for stage in plan.stages):
        return None
    timed = (name for name in graph.outputs if graph.queues[name].by is not None)
    return RowByRow() if all(keeps_order(graph, name) for name in timed) else None


def _by_key(graph: Graph) -> ByKey | None:
    if graph.views or not graph.outputs:
        return None
    found: list[KeyedOutputs] = []
    for name in graph.outputs:
        alone = without_others(graph, name) if deltas.is_delta(graph.queues[name].type) else None
        how = None if alone is None else division(alone, name)
        if (
            alone is None or how is None or set(alone.inputs) != set(graph.inputs)
        ):  # by which time goes on, too
            return None
        found.append(KeyedOutputs((name,), alone, how))
    if not _all_needed(graph):
        return None
    first = found[0].found
    together = all(each.found.columns == first.columns for each in found)
    return ByKey((KeyedOutputs(graph.outputs, graph, first),) if together else tuple(found))


def _all_needed(graph: Graph) -> bool:
    """Whether every operator has a part in an output."""
    needed: set[int] = set()
    queues = list(graph.outputs)
    while queues:
        end = graph.queues[queues.pop()].producer
        if end is not None and end.instance not in needed:
            needed.add(end.instance)
            queues += graph.instances[end.instance].ins
    return len(needed) == len(graph.instances)


def _in_one_task(plan: Plan) -> InOneTask | str:
    for stage in plan.stages:
        if stage.kind is StageKind.ORDERED:
            first = stage.instances[0]
            return InOneTask(f"{plan.graph.instances[first].name}: {plan.roles[first].reason}")
    return "no operator has to see all items in one order, and stages run in parallel"


def apart(plan: Plan, *, skips: bool) -> InParts | RowByRow | Partitioning | str:
    """How what comes in an epoch is divided among tasks: in any way, or by which columns; or why the state is kept in one piece.

    `skips`: items that trap are left out. A delta that traps is left out as a whole, which no group has.
    """
    graph = plan.graph
    if not wholes(graph.program) and not any(result.combined for result in graph.results):
        free = _in_parts(graph) or _row_by_row(plan)
        if free is not None:
            return free
    found = _by_key(graph)
    if found is None:
        return "rows of different keys have to do with one another"
    run, *others = found.runs
    if others:
        return "outputs need inputs divided by different columns"
    if any(graph.queues[name].by is None for name in graph.inputs):
        return "an input has no time stamps"
    if skips and (trapping := next((i for i in graph.instances if instance_model(i).can_trap), None)):
        return f"`{trapping.use.operator}` may trap, and items that trap are left out as a whole"
    if stranger := next((name for name in _seen(graph) if not _united(graph, name)), None):
        return f"what `${stranger}` would have at the end cannot be told from its parts"
    return run.found


def _seen(graph: Graph) -> Iterator[str]:
    """The variables whose values are a result."""
    return (each.name for each in graph.variables if each.name not in private(graph))


def _united(graph: Graph, name: str) -> bool:
    """Whether the value of a variable follows from those of the groups: it is the same, or has their entries."""
    variable = next(each for each in graph.variables if each.name == name)
    users = [graph.instances[index] for index in graph.users[name]]
    if all(gathered(user.operator) is not None or not _writes(user, name) for user in users):
        return True
    return isinstance(variable.type, t.Map | t.OMap) and not variable.initial


def _writes(user: Instance, name: str) -> bool:
    pairs = zip(user.variables, user.operator.vars, strict=True)
    return any(var.written for own, var in pairs if own == name)


def told_of_epochs(plan: Plan) -> str:
    """What a plan says of runs in epochs."""
    match apart(plan, skips=plan.options.on_trap is not None):
        case InParts():
            return "in epochs: accumulated in one task for each share of what came, whose tables the last epoch puts together"
        case RowByRow():
            return "in epochs: row by row, in one task for each share of what came"
        case Partitioning() as found:
            return f"in epochs: state in channels of keys: by ({found})"
        case str() as reason:
            return f"in epochs: in one task, because {reason}"


def told(found: Way | str) -> str:
    """What a plan says of it."""
    match found:
        case InParts():
            return "over files: accumulated in one task for each part of the file, then one for each table"
        case RowByRow():
            return "over files: row by row, in one task for each part of the file"
        case ByKey(runs):
            keys = "; ".join(map(str, runs))
            return (
                f"over files: one task for each part of the file, then one for each channel of keys: {keys}"
            )
        case InOneTask(reason):
            return f"over files: in one task, because of {reason}"
        case str():
            return f"over files: by stages, because {found}"
        case _:
            assert_never(found)
