"""All schedules of a program on small data: how many outcomes there are, and two schedules that part.

Whatever fires first, a deterministic program comes to one outcome; this tries instead of proving, so it also speaks of
programs that are not deterministic by construction. Paper: River §2 (an execution is any sequence of firings).
"""

from __future__ import annotations

from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import frozen
from river.diagnostics import Diagnostic, InternalError, Rejected

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from calculus.observe import Faulted, Outcome
    from calculus.program import Program
    from calculus.step import Event
    from river.driver.compilation import Compiled
    from river.driver.job import Job
    from river.il.graph import Graph
    from river.lang.types import Type

ROWS: Final = 200
"""Rows of all inputs together, at most: each state that is kept holds what waits in all queues."""

SHOWN: Final = 72
"""Characters of a value that are shown."""

FEW: Final = 3
"""Items that a firing sends to an output that are shown."""


@frozen
class Parting:
    """Two schedules with different outcomes, each firing a line: those they begin with, and those of each behind.

    `differences`: what is seen at their ends, a line for each output, view or variable that is not the same.
    """

    both: tuple[str, ...]
    one: tuple[str, ...]
    other: tuple[str, ...]
    differences: tuple[str, ...]


@frozen
class Schedules:
    """What trying all schedules found.

    `states`: how many configurations of queues and variables were seen. `outcomes`: how many ends an observer can tell
    apart. `complete`: nothing was left out. `endless`: some schedule never ends. `parting`: None for a single outcome.
    """

    states: int
    outcomes: int
    complete: bool
    endless: bool
    parting: Parting | None


def schedules(compiled: Compiled, job: Job, limit: int) -> Schedules:
    """Tries all schedules of the program on the inputs of the job, until `limit` states were seen.

    Raises: Rejected("check-rows") for more than `ROWS` rows, as to try all schedules takes a state for each.
    """
    from calculus import outcomes
    from river.driver.inputs import collected, read_of
    from river.il.erase import erase, inputs

    graph = compiled.graph
    data = collected(graph, read_of(compiled, job))
    count = sum(map(len, data.values()))
    if count > ROWS:
        message = f"{count:,} rows are too many for all schedules to be tried: {ROWS} at most"
        raise Rejected([Diagnostic("check-rows", message, help="a few rows of each input show most races")])
    program, contents = erase(graph, job.options.externs), inputs(graph, data)
    found = outcomes(program, contents, limit=limit)
    ends = sorted(
        (_End(script, outcome, _seen(graph, outcome)) for outcome, script in found.witnesses.items()),
        key=lambda end: end.script,
    )
    parting = _parting(graph, program, contents, ends)
    return Schedules(found.states, len({end.seen for end in ends}), found.complete, found.diverges, parting)


@frozen
class _End:
    """An outcome, a schedule that leads there, and what an observer sees of it."""

    script: tuple[str, ...]
    outcome: Outcome
    seen: Hashable


def _seen(graph: Graph, outcome: Outcome) -> Hashable:
    """What is compared of an outcome: as between backends, a delta is two bags of rows."""
    from calculus.observe import Faulted
    from river.il.observe import observe
    from river.io import deltas

    seen = observe(graph, outcome)
    if isinstance(seen, Faulted):
        return seen
    outputs = [
        (name, tuple(map(deltas.canonical, items)) if deltas.is_delta(graph.queues[name].type) else items)
        for name, items in seen.outputs
    ]
    return tuple(outputs), seen.views, seen.variables


def _parting(
    graph: Graph, program: Program, contents: Mapping[str, Sequence[Any]], ends: Sequence[_End]
) -> Parting | None:
    """The two schedules with different ends of which least is to be told; `ends` by their scripts, so that alike ones meet."""
    pairs = [(one, other) for one, other in pairwise(ends) if one.seen != other.seen]
    if not pairs:
        return None

    def shared(pair: tuple[_End, _End]) -> int:
        firings = zip(pair[0].script, pair[1].script, strict=False)
        return sum(1 for _ in takewhile(lambda both: both[0] == both[1], firings))

    one, other = min(pairs, key=lambda pair: len(pair[0].script) + len(pair[1].script) - 2 * shared(pair))
    at = shared((one, other))
    first, second = (_told(graph, program, contents, end) for end in (one, other))
    return Parting(first[:at], first[at:], second[at:], _differences(graph, one, other))


# -- in words


def _told(
    graph: Graph, program: Program, contents: Mapping[str, Sequence[Any]], end: _End
) -> tuple[str, ...]:
    """The firings of a schedule, a line each."""
    from calculus import Faulted, Scripted, run

    faulted = isinstance(end.outcome, Faulted)
    script = end.script[:-1] if faulted else end.script
    found = run(program, contents, Scripted(script), limit=len(script), trace=True)
    lines = [_firing(graph, event) for event in found.events]
    if isinstance(end.outcome, Faulted):
        last = program.wiring.by_queue[end.script[-1]]
        assert found.final is not None  # noqa: S101 - the firing that faults is left out
        item = _element(graph, last.queue, found.final.queues[last.position][0])
        lines.append(f"`{last.op.function}` takes {item} from `{last.queue}` and traps: {_trap(end.outcome)}")
    return tuple(lines)


def _firing(graph: Graph, event: Event) -> str:
    """Which operator fired on what, what it did to variables, and what it sent."""
    from river.lang.values import END

    variables = {variable.name: variable.type for variable in graph.variables}
    read = dict(zip(event.op.reads, event.read, strict=True))
    written = dict(zip(event.op.writes, event.written, strict=True))
    does: list[str] = []
    for name, value in read.items():
        if name in variables and written.get(name, value) == value and event.item != END:
            does.append(f"reads `${name}` = {_value(variables[name], value)}")
    for name, value in written.items():
        if name in variables and read.get(name) != value:
            before = f" from {_value(variables[name], read[name])}" if name in read else ""
            does.append(f"sets `${name}`{before} to {_value(variables[name], value)}")
    for name, items in zip(event.op.outs, event.pushed, strict=True):
        if items:
            more = f" and {len(items) - FEW} more" if len(items) > FEW else ""
            shown = ", ".join(_element(graph, name, item) for item in items[:FEW])
            does.append(f"sends {shown}{more} to `{name}`")
    what = f"`{event.op.function}` takes {_element(graph, event.queue, event.item)} from `{event.queue}`"
    return f"{what}: {'; '.join(does)}" if does else what


def _element(graph: Graph, queue: str, element: Any) -> str:
    """An item or a mark."""
    from river.lang.values import END, Mark

    if element == END:
        return "the end"
    if isinstance(element, Mark):
        return f"the mark {element.key}"
    return _value(graph.queues[queue].type, element)


def _value(type_: Type, value: Any) -> str:
    """A value as JSON, as far as there is room; what does not travel along queues as Python shows it."""
    from river.io.encode import encoder

    try:
        text = encoder(type_)(value)
    except InternalError:  # a deque, a bag or a function
        text = repr(value)
    return _short(text)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _trap(fault: Faulted) -> str:
    """The code of the trap behind a fault, which the erasure made."""
    return f"`{cast('tuple[Any, ...]', fault.info)[2]}`"


def _differences(graph: Graph, one: _End, other: _End) -> tuple[str, ...]:
    """What is not the same at two ends."""
    from calculus.observe import Faulted, Finished

    if isinstance(one.seen, Faulted) or isinstance(other.seen, Faulted):
        first, second = (
            f"traps with {_trap(end.seen)}" if isinstance(end.seen, Faulted) else "ends well"
            for end in (one, other)
        )
        return (f"one {first}, the other {second}",)
    assert isinstance(one.outcome, Finished)  # noqa: S101 - who faults is seen to
    assert isinstance(other.outcome, Finished)  # noqa: S101 - as before
    first, second = dict(one.outcome.outputs), dict(other.outcome.outputs)
    found = [_output(graph, name, first[name], second[name]) for name in graph.outputs]
    first, second = dict(one.outcome.variables), dict(other.outcome.variables)
    found += _state(graph, first, second)
    return tuple(line for line in found if line is not None)


def _output(graph: Graph, name: str, one: Sequence[Any], other: Sequence[Any]) -> str | None:
    """The first item of an output that differs."""
    from river.io import deltas
    from river.lang.values import Mark, observed

    type_ = graph.queues[name].type
    ends = [[item for item in items if not isinstance(item, Mark)] for items in (one, other)]
    for i, (a, b) in enumerate(zip(*ends, strict=False)):
        seen = [observed(type_, item) for item in (a, b)]
        first, second = map(deltas.canonical, seen) if deltas.is_delta(type_) else seen
        if first != second:
            return f"`{name}`, item {i + 1}: {_value(type_, a)} and {_value(type_, b)}"
    counts = [len(items) for items in ends]
    return None if counts[0] == counts[1] else f"`{name}`: {counts[0]} items and {counts[1]}"


def _state(graph: Graph, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Views and variables that differ."""
    from river.il.combined import with_results
    from river.il.observe import contents, observed_variables, rows

    one, other = with_results(graph, one), with_results(graph, other)
    for view in graph.views:
        if rows(view, one[view.variable]) != rows(view, other[view.variable]):
            ends = (contents(view, state[view.variable]) for state in (one, other))
            first, second = (f"[{', '.join(_value(view.type, row) for row in found)}]" for found in ends)
            yield f"`{view.name}`: {_short(first)} and {_short(second)}"
    types = {variable.name: variable.type for variable in graph.variables}
    seen, seen_too = observed_variables(graph, one), observed_variables(graph, other)
    for name in seen:
        if seen[name] != seen_too[name]:
            ends = [
                _value(types[name], state[name]) if name in state else _short(repr(whole[name]))
                for state, whole in ((one, seen), (other, seen_too))
            ]
            yield f"variable `${name}`: {ends[0]} and {ends[1]}"
