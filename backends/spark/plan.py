"""Everything that a run needs but sources and sinks: the program in stages (`stages`), for so many workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backends.spark import ways
from backends.spark.stages import StageKind, staged
from river.classes import field, frozen
from river.diagnostics import Diagnostic, Rejected
from river.il.extern import not_given
from river.lang import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backends.spark.stages import Role, Stage
    from river.backend import Options
    from river.il.graph import Graph
    from river.platform import Platform


@frozen(hash=False)
class Plan:
    """Everything that a run needs but sources and sinks. `roles` are in the order of the graph's instances."""

    graph: Graph
    stages: tuple[Stage, ...]
    roles: tuple[Role, ...]
    workers: int
    options: Options = field(repr=False)

    def producer(self, queue: str) -> Stage | None:
        """The stage that a queue leaves; None for an input."""
        end = self.graph.queues[queue].producer
        return None if end is None else next(s for s in self.stages if end.instance in s.instances)

    def show(self) -> str:
        """The plan as text: each stage, and for each of its instances the reason why it is there."""
        lines = [
            f"spark: {self.workers} workers, chunks of at most {self.options.batch} items",
            f"  {ways.told(ways.way(self))}",
            f"  {ways.told_of_epochs(self)}",
        ]
        for stage in self.stages:
            ends = f"({', '.join(stage.outs)}) <- ({', '.join(stage.ins)})"
            lines.append(f"  stage {stage.number}, {_described(stage)}: {ends}")
            lines += [f"    {self.graph.instances[i].name}: {self.roles[i].reason}" for i in stage.instances]
        return "\n".join(lines)


def _described(stage: Stage) -> str:
    match stage.kind:
        case StageKind.MAP:
            return "map, any partitions"
        case StageKind.ORDERED:
            return "ordered, one partition"
        case StageKind.KEYED:
            rows = "rows by " if stage.role.rows else ""
            return f"keyed, {stage.role.channels} channels of {rows}({', '.join(stage.role.keys)})"


def plan(graph: Graph, platform: Platform, options: Options) -> Plan:
    """The plan.

    Raises: Rejected("run-extern", "spark-extern") for user-defined operators that no worker could run; ValueError for
        options out of range.
    """
    for name, value in (("batch", options.batch), ("workers", options.workers)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    see_to_externs(graph, options.externs)
    workers = options.workers or platform.cores
    return Plan(graph, *staged(graph, workers), workers, options)


def see_to_externs(graph: Graph, externs: Mapping[str, Callable[..., Any]]) -> None:
    """Functions travel by name: a worker imports them. Raises: Rejected("run-extern", "spark-extern")."""
    errors: list[Diagnostic] = []
    for instance in graph.instances:
        if not isinstance(instance.operator, typed.Extern):
            continue
        target = instance.operator.target
        given = externs.get(target)
        module, _, name = target.partition(":")
        if given is None:
            errors.append(not_given(instance.operator, instance.use.span))
        elif (getattr(given, "__module__", None), getattr(given, "__qualname__", None)) != (module, name):
            message = f"the function given for `{target}` cannot be found under that name by another process"
            errors.append(
                Diagnostic(
                    "spark-extern", message, instance.use.span, help=f"define `{name}` in module `{module}`"
                )
            )
    if errors:
        raise Rejected(errors)
