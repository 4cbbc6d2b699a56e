"""What a task says besides its elements: counts, variables, traps. It travels as JSON in a row of its own."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from backends.firing.remarks import refused
from backends.native.operator import Refused, compile_native
from backends.spark.marshal import from_plain, to_plain
from river.classes import define, field, frozen
from river.lang import typed
from river.lang.evaluate import Trap
from river.lang.values import freezer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from river.diagnostics import Diagnostic
    from river.il.graph import Graph, Instance
    from river.lang.types import Type

Plain = dict[str, Any]


@frozen(eq=False)
class Caught:
    """A trap and where: the instance, and the chunk and place of the item or mark. `late`: found by who sent the item."""

    trap: Trap
    instance: int
    chunk: int = 0
    place: int = 0
    late: bool = False


@define
class Report:
    """Of one task, or of several put together.

    `asked`: calls of machine code into Python, by instance; `python`: the instances that Python ran though machine code was
    wanted; `missing`: there was no llvmlite for it.
    """

    fired: Counter[str] = field(factory=Counter[str])
    skipped: Counter[str] = field(factory=Counter[str])
    variables: dict[str, Any] = field(factory=dict[str, Any])
    traps: list[Caught] = field(factory=list[Caught])
    passed: list[Caught] = field(factory=list[Caught])
    asked: Counter[str] = field(factory=Counter[str])
    python: frozenset[int] = frozenset()
    missing: bool = False

    def keep(self, graph: Graph, names: Sequence[str], values: Sequence[Any]) -> None:
        """Notes the variables of an instance."""
        types = {v.name: v.type for v in graph.variables}
        for name, value in zip(names, values, strict=True):
            freeze = freezer(types[name])
            self.variables[name] = value if freeze is None else freeze(value)

    def text(self, graph: Graph) -> str:
        """The report as JSON."""
        types = {v.name: v.type for v in graph.variables}
        return json.dumps(
            {
                "fired": self.fired,
                "skipped": self.skipped,
                "variables": {name: to_plain(types[name])(value) for name, value in self.variables.items()},
                "traps": [_told(graph, caught) for caught in self.traps],
                "passed": [_told(graph, caught) for caught in self.passed],
                "asked": self.asked,
                "python": sorted(self.python),
                "missing": self.missing,
            }
        )


def read(graph: Graph, text: str) -> Report:
    """The report that a text states."""
    said: Plain = json.loads(text)
    types = {v.name: v.type for v in graph.variables}
    return Report(
        Counter(said["fired"]),
        Counter(said["skipped"]),
        {name: from_plain(types[name])(value) for name, value in said["variables"].items()},
        [_heard(graph, caught) for caught in said["traps"]],
        [_heard(graph, caught) for caught in said["passed"]],
        Counter(said["asked"]),
        frozenset(said["python"]),
        said["missing"],
    )


def united(graph: Graph, reports: Iterable[Report]) -> Report:
    """The reports of a stage as one: a variable that several tasks have parts of is their union."""
    found = Report()
    types = {v.name: v.type for v in graph.variables}
    for report in reports:
        found.fired += report.fired
        found.skipped += report.skipped
        found.traps += report.traps
        found.passed += report.passed
        found.asked += report.asked
        found.python |= report.python
        found.missing |= report.missing
        for name, value in report.variables.items():
            found.variables[name] = (
                _union(types[name], found.variables[name], value) if name in found.variables else value
            )
    return found


def _union(type_: Type, one: Mapping[Any, Any], other: Mapping[Any, Any]) -> Any:
    from river.lang.values import frozen_form

    return frozen_form(type_, [*one.items(), *other.items()])


def uncompiled(graph: Graph, instances: Iterable[int]) -> tuple[Diagnostic, ...]:
    """A warning for those of the instances that have no machine code, with the reasons, which are found once more here."""
    found = [graph.instances[index] for index in instances]
    reasons = [
        (instance.name, reason)
        for instance in found
        if isinstance(instance.operator, typed.Operator)
        and isinstance(made := compile_native(instance.operator), Refused)
        for reason in made.reasons
    ]
    return refused(reasons, len({name for name, _ in reasons}))


# ------------------------------------------------------------------------------------------------------------ traps


class Spelled(str):
    """An operand of a trap, known by its spelling only; it is shown as the operand was."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _told(graph: Graph, caught: Caught) -> Plain:
    trap = caught.trap
    item: Plain | None = None
    if trap.item is not None:
        type_, value = trap.item
        types = [port.type for port in graph.instances[caught.instance].operator.ports]
        item = {"port": types.index(type_), "value": to_plain(type_)(value)}
    return {
        "code": trap.code,
        "operands": [_operand(value) for value in trap.operands],
        "operator": trap.operator,
        "site": trap.site,
        "text": trap.text,
        "item": item,
        "instance": caught.instance,
        "chunk": caught.chunk,
        "place": caught.place,
        "late": caught.late,
    }


def _operand(value: Any) -> Any:
    """Numbers and texts as they are, others by their spelling (in a list)."""
    match value:
        case bool() | int() | str():
            return value
        case _:
            return [repr(value)]


def _spelled(said: Any) -> Any:
    """The way back from `_operand`."""
    return Spelled(cast("list[Any]", said)[0]) if isinstance(said, list) else said


def _heard(graph: Graph, said: Plain) -> Caught:
    number: int = said["instance"]
    instance = graph.instances[number]
    operands = tuple(map(_spelled, said["operands"]))
    site: int | None = said["site"]
    trap = Trap(said["code"], operands, said["operator"], site, _span(instance, site), said["text"])
    trap.happened(instance.use.within)
    if said["item"] is not None:
        port: int = said["item"]["port"]
        type_ = instance.operator.ports[port].type
        trap.item = type_, from_plain(type_)(said["item"]["value"])
    return Caught(trap, instance.index, said["chunk"], said["place"], said["late"])


def _span(instance: Instance, site: int | None) -> Any:
    """Where the trap stands in the text that the user wrote: the worker has read another one."""
    operator = instance.operator
    if site is None or isinstance(operator, typed.Extern):
        return operator.span
    return operator.sites[site].span
