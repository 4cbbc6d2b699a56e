"""One execution, under a schedule."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING

from attrs import frozen

from calculus.observe import Faulted, Outcome, finished
from calculus.program import Fault
from calculus.schedule import Moment, Schedule
from calculus.state import Configuration, initial
from calculus.step import Event, NotEligible, eligible, fire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calculus.program import Program, Value


@frozen
class Run:
    """One execution.

    `outcome` is None if it was stopped before its end. `final` is the configuration that it reached, None if
    it faulted. `script` is the queues in the order they fired (a faulting firing is the last), so that
    `Scripted(script)` repeats the run; `events` is its trace, if that was asked for, without the faulting
    firing.
    """

    outcome: Outcome | None
    final: Configuration | None
    script: tuple[str, ...]
    events: tuple[Event, ...]

    @property
    def steps(self) -> int:
        """How many queues fired."""
        return len(self.script)


def run(
    program: Program,
    inputs: Mapping[str, Sequence[Value]],
    schedule: Schedule,
    *,
    arrivals: Sequence[tuple[str, Value]] | None = None,
    limit: int | None = None,
    trace: bool = False,
) -> Run:
    """Fire queues as `schedule` chooses until none is eligible, one faults, or `limit` firings are done.

    All inputs are in their queues from the start, as in the paper. `arrivals`, the items of all inputs in the
    order in which they arrive, only numbers them: a schedule that looks at serial numbers, as `FirstCome`
    does, obeys it.

    Raises: IllFormed; ValueError if `arrivals` are not an interleaving of `inputs`; NotEligible and
    ScriptError if the schedule chooses wrongly.
    """
    configuration = initial(program, inputs)
    serials = count()
    stamps = _stamps(program, inputs, arrivals, serials)
    script: list[str] = []
    events: list[Event] = []
    fault: Faulted | None = None
    while True:
        choices = () if fault else eligible(program, configuration)
        if choices and limit is not None and len(script) >= limit:
            break
        queue = schedule.choose(Moment(program, choices, {q: stamps[q][0] for q in choices}, script))
        if queue is None:
            break
        if queue not in choices:
            message = f"the schedule chose `{queue}`; eligible: {', '.join(choices) or 'nothing'}"
            raise NotEligible(message)
        script.append(queue)
        try:
            event, configuration = fire(program, configuration, queue)
        except Fault as end:
            fault = Faulted(end.info)
            continue
        stamps[queue].popleft()
        for out, pushed in zip(event.op.outs, event.pushed, strict=True):
            stamps[out].extend(next(serials) for _ in pushed)
        if trace:
            events.append(event)
    outcome = fault or (None if choices else finished(program, configuration))
    return Run(outcome, None if fault else configuration, tuple(script), tuple(events))


def _stamps(
    program: Program,
    inputs: Mapping[str, Sequence[Value]],
    arrivals: Sequence[tuple[str, Value]] | None,
    serials: count[int],
) -> dict[str, deque[int]]:
    """For each queue the serial numbers of its items."""
    if arrivals is None:
        arrivals = [(queue, item) for queue in program.inputs for item in inputs.get(queue, ())]
    stamps: dict[str, deque[int]] = {queue: deque() for queue in program.queues}
    arrived: dict[str, list[Value]] = {queue: [] for queue in program.inputs}
    for queue, item in arrivals:
        arrived.setdefault(queue, []).append(item)
        stamps.setdefault(queue, deque()).append(next(serials))
    if arrived != {queue: list(inputs.get(queue, ())) for queue in program.inputs}:
        message = "the arrivals are not an interleaving of the inputs"
        raise ValueError(message)
    return stamps
