"""The calculus behind the Backend protocol: what a program means, slowly.

The program is erased to Brooklet and its queues fire one at a time. Inputs are handed over in pieces and each piece is
run to quiescence, which is a Brooklet schedule like any other; memory is bounded by what the program keeps. With a seed,
which queue fires is drawn at random.

Paper: River section 2 (the calculus), calculus.md; architecture section 6.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import evolve, field, frozen

from river.backend import Options, Summary
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from calculus.program import Program
    from calculus.state import Configuration
    from river.backend import Sinks, Sources
    from river.il.graph import Graph
    from river.platform import Platform


@frozen(eq=False)
class Plan:
    """The erased program and how its queues are chosen."""

    graph: Graph
    program: Program
    options: Options = field(repr=False)

    def show(self) -> str:
        """The plan as text: the program in the paper's notation."""
        return str(self.program)


@frozen
class Reference:
    """The backend `reference`."""

    name: ClassVar[str] = "reference"

    def plan(self, graph: Graph, platform: Platform, options: Options, /) -> Plan:
        """The erasure. Raises: Rejected("run-extern") for an extern operator that nobody provided."""
        from river.il.erase import erase

        return Plan(graph, erase(graph, options.externs), options)

    def run(self, plan: Plan, sources: Sources, sinks: Sinks, /) -> Summary:
        """One execution. Raises: evaluate.Trap where a firing faults."""
        from calculus.state import initial
        from river.ingress import events

        program = plan.program
        configuration = initial(program, {})
        fired: Counter[str] = Counter()
        choose = _chooser(plan.options.seed)
        for queue, elements in events(plan.graph, sources, plan.options.batch):
            configuration = _arrive(program, configuration, queue, elements)
            configuration = _settle(plan, configuration, choose, fired)
            configuration = _deliver(program, configuration, sinks)
        names = {v.name for v in plan.graph.variables}
        values = {
            name: value
            for name, value in zip(program.variables, configuration.variables, strict=True)
            if name in names
        }
        return Summary(values, dict(fired))


def _chooser(seed: int | None) -> Callable[[tuple[str, ...]], str]:
    if seed is None:
        return lambda eligible: eligible[0]
    return Random(seed).choice


def _arrive(program: Program, configuration: Configuration, queue: str, elements: list[Any]) -> Configuration:
    queues = list(configuration.queues)
    queues[program.wiring.queues[queue]] += tuple(elements)
    return evolve(configuration, queues=tuple(queues))


def _settle(
    plan: Plan, configuration: Configuration, choose: Callable[[tuple[str, ...]], str], fired: Counter[str]
) -> Configuration:
    """Fires until nothing is eligible."""
    from calculus.program import Fault
    from calculus.step import eligible, step
    from river.lang.evaluate import Trap

    program = plan.program
    while choices := eligible(program, configuration):
        queue = choose(choices)
        fired[program.wiring.by_queue[queue].op.function] += 1
        if fired.total() % 1024 == 0 and plan.options.stopping():
            raise KeyboardInterrupt
        try:
            configuration = step(program, configuration, queue)
        except Fault as fault:
            if isinstance(fault.__cause__, Trap):
                raise fault.__cause__ from fault
            raise InternalError(f"a firing of `{queue}` faulted without a trap: {fault.info!r}") from fault
    return configuration


def _deliver(program: Program, configuration: Configuration, sinks: Sinks) -> Configuration:
    """Hands what the output queues hold to the sinks; marks are not items."""
    from river.lang.values import Mark

    queues = list(configuration.queues)
    for name in program.outputs:
        position = program.wiring.queues[name]
        items = [element for element in queues[position] if not isinstance(element, Mark)]
        if items:
            sinks[name](items)
        queues[position] = ()
    return evolve(configuration, queues=tuple(queues))


BACKEND = Reference()
