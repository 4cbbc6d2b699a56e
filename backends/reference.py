"""The calculus behind the Backend protocol: what a program means, slowly.

The program is erased to Brooklet and its queues fire one at a time. Inputs are handed over in pieces and each piece is
run to quiescence, which is a Brooklet schedule like any other; memory is bounded by what the program keeps. With a seed,
which queue fires is drawn at random.

Paper: River section 2 (the calculus), 4.6; the erasure is `river.il.erase`.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, cast

from river.backend import Options, Summary
from river.classes import define, evolve, field, frozen
from river.io.deltas import is_delta

if TYPE_CHECKING:
    from collections.abc import Callable

    from calculus.program import Fault, Program
    from calculus.state import Configuration
    from river.backend import Sinks, Sources
    from river.il.graph import Graph, Instance
    from river.lang.evaluate import Trap
    from river.platform import Platform


@frozen(eq=False)
class Plan:
    """The erased program, and how it is to be run."""

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
        """The erasure. Raises: Rejected for an extern operator that nobody provided."""
        from river.il.erase import erase

        return Plan(graph, erase(graph, options.externs), options)

    def run(self, plan: Plan, sources: Sources, sinks: Sinks, /) -> Summary:
        """One execution. Raises: evaluate.Trap where a firing faults."""
        from calculus.state import initial
        from river.ingress import events

        execution = _Execution(plan, initial(plan.program, {}), _chooser(plan.options.seed))
        for queue, elements in events(plan.graph, sources, plan.options.batch, until=plan.options.until):
            execution.arrive(queue, elements)
            try:
                execution.settle()
            finally:
                execution.deliver(sinks)
        names = {variable.name for variable in plan.graph.variables}
        final = zip(plan.program.variables, execution.configuration.variables, strict=True)
        return Summary(
            {name: value for name, value in final if name in names}, execution.fired, execution.skipped
        )


def _chooser(seed: int | None) -> Callable[[tuple[str, ...]], str]:
    if (
        seed is None
    ):  # the queue farthest down, so that what came before a trap has been delivered (il.md P10)
        return lambda eligible: eligible[-1]
    return Random(seed).choice


@define(eq=False)
class _Execution:
    """Where an execution stands."""

    plan: Plan
    configuration: Configuration
    choose: Callable[[tuple[str, ...]], str]
    fired: Counter[str] = field(factory=Counter[str])
    skipped: Counter[str] = field(factory=Counter[str])

    def arrive(self, queue: str, elements: list[Any]) -> None:
        """Elements come in at the end of an input queue."""
        self._requeue(queue, lambda held: held + tuple(elements))

    def settle(self) -> None:
        """Fires until nothing is eligible."""
        from calculus.program import Fault
        from calculus.step import eligible, step

        program, stopping = self.plan.program, self.plan.options.stopping
        while choices := eligible(program, self.configuration):
            queue = self.choose(choices)
            consumer = self._consumer(queue)
            self.fired[consumer.name] += 1
            if self.fired.total() % 1024 == 0 and stopping():
                raise KeyboardInterrupt
            try:
                self.configuration = step(program, self.configuration, queue)
            except Fault as fault:
                self._faulted(queue, consumer, fault)

    def deliver(self, sinks: Sinks) -> None:
        """Hands what the output queues hold to the sinks; marks are not items."""
        from river.lang.values import Mark

        for name in self.plan.program.outputs:
            held = self.configuration.queues[self.plan.program.wiring.queues[name]]
            if items := [element for element in held if not isinstance(element, Mark)]:
                sinks[name](items)
            self._requeue(name, lambda _: ())

    def _requeue(self, queue: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        queues = list(self.configuration.queues)
        position = self.plan.program.wiring.queues[queue]
        queues[position] = change(queues[position])
        self.configuration = evolve(self.configuration, queues=tuple(queues))

    def _consumer(self, queue: str) -> Instance:
        end = self.plan.graph.queues[queue].consumer
        assert end is not None  # noqa: S101 - an eligible queue has one
        return self.plan.graph.instances[end.instance]

    def _faulted(self, queue: str, consumer: Instance, fault: Fault) -> None:
        """Ends the run, or skips the item where that is allowed: not at an operator with state or that sends changes."""
        head = self.configuration.queues[self.plan.program.wiring.queues[queue]][0]
        trap = _trap(self.plan.graph, queue, head, fault)
        report = self.plan.options.on_trap
        op = self.plan.program.wiring.by_queue[queue].op
        changes = any(is_delta(out.type) for out in consumer.operator.outs)  # they build on one another
        if report is None or op.reads or changes or trap.code in ("order-violation", "rate-violation"):
            raise trap from fault
        report(trap.diagnostic())
        self.skipped[consumer.name] += 1
        self._requeue(queue, lambda held: held[1:])


def _trap(graph: Graph, queue: str, head: Any, fault: Fault) -> Trap:
    """The trap behind a fault, with the item that was being handled."""
    from river.lang.evaluate import Trap
    from river.lang.values import Mark

    found = fault.__cause__
    end = graph.queues[queue].consumer
    assert end is not None  # noqa: S101 - a queue that fires has a consumer
    operator = graph.instances[end.instance].operator
    if not isinstance(found, Trap):
        _, site, code, _ = cast("tuple[str, int | None, str, Any]", fault.info)  # as `erase` makes them
        found = Trap(code, (), operator.name, site, operator.span)
    found.placed(operator)
    if not isinstance(head, Mark):
        found.item = graph.queues[queue].type, head
    found.happened(graph.instances[end.instance].use.within)
    return found


BACKEND = Reference()
