"""Which instances of a stage run as machine code. It comes from the cache on the executor's disk, or is made there.

Each process makes or loads the code of an operator once; tasks get variables and outputs of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from backends.native.llvm import available
from backends.native.operator import Calls, Refused, compile_native
from backends.spark.task import verified
from river.classes import define, evolve, field
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.native.operator import NativeOperator, NativeVariable
    from backends.spark.report import Report
    from backends.spark.task import ShippedProgram, Task
    from river.il.graph import Graph


@define
class StageCode:
    """By instance its machine code. `python`: those that have none, though it is wanted; `missing`: for want of llvmlite."""

    native: dict[int, NativeOperator] = field(factory=dict[int, "NativeOperator"])
    python: frozenset[int] = frozenset()
    missing: bool = False

    def tell(self, report: Report, graph: Graph) -> None:
        """Notes in a report, when all is fired, what Python ran."""
        report.missing = self.missing
        report.python |= self.python
        for index, native in self.native.items():
            report.asked[graph.instances[index].name] += native.calls.count

    def reads(self, graph: Graph, queue: str) -> bool:
        """Whether machine code reads a queue."""
        end = graph.queues[queue].consumer
        return end is not None and end.instance in self.native


def compiled(work: Task, instances: Iterable[int]) -> StageCode:
    """The machine code of some instances of a stage; the evaluator runs the others."""
    if work.native == "off":
        return StageCode()
    if not available():
        return StageCode(missing=True)
    found = StageCode()
    for index in instances:
        made = _made(work.program, index, index == work.last, work.native == "debug")
        if made is not None:
            found.native[index] = evolve(made, calls=Calls())
    _together(work.graph, instances, found.native)
    found.python = frozenset(instances) - found.native.keys()
    return found


def variables(graph: Graph, native: dict[int, NativeOperator]) -> dict[str, NativeVariable]:
    """The variables of compiled instances, by name, with their initial values; instances that share one have one."""
    found: dict[str, NativeVariable] = {}
    initial = {variable.name: variable.initial for variable in graph.variables}
    for index, each in native.items():
        for place, name in enumerate(graph.instances[index].variables):
            if name in found:
                each.share(place, found[name])
            else:
                found[name] = each.variables[place]
                found[name].set(initial[name])
    return found


@lru_cache(maxsize=1024)
def _made(program: ShippedProgram, index: int, count: bool, debug: bool) -> NativeOperator | None:
    operator = verified(program).instances[index].operator
    if not isinstance(operator, typed.Operator):
        return None
    made = compile_native(counting(operator) if count else operator, debug=debug)
    return None if isinstance(made, Refused) else made


def counting(op: typed.Operator) -> typed.Operator:
    """The operator with a mark on each output before the items of each firing, which tells whose items these are."""
    ticks = tuple(typed.Mark(out, typed.Literal(t.I64, 0)) for out in range(len(op.outs)))
    items = tuple(evolve(each, body=evolve(each.body, items=(*ticks, *each.body.items))) for each in op.items)
    return evolve(op, items=items)


def _together(graph: Graph, instances: Iterable[int], native: dict[int, NativeOperator]) -> None:
    """A variable lives in one place: if one of its instances has no machine code, none has."""
    names = {index: frozenset(graph.instances[index].variables) for index in instances}
    while True:
        lost = frozenset[str]().union(*(names[index] for index in names if index not in native))
        torn = [index for index in native if names[index] & lost]
        if not torn:
            return
        for index in torn:
            del native[index]
