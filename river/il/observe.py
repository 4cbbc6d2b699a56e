"""What an observer sees of an execution of an erased program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never, cast

from calculus.observe import Faulted, Finished, Outcome
from calculus.program import Fault
from river.classes import frozen
from river.il.annotations import private
from river.il.combined import with_results
from river.il.views import rows_of
from river.lang import types as t
from river.lang import values
from river.lang.values import Mark

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping

    from river.il.graph import Graph, View

Value = Any


@frozen
class Observation:
    """What is compared of a run: outputs without marks, rows of views in the total order, variables and unions.

    Maps are compared as sets of pairs, bags as multisets, everywhere (il.md P2).
    """

    outputs: tuple[tuple[str, tuple[Hashable, ...]], ...]
    views: tuple[tuple[str, tuple[Hashable, ...]], ...]
    variables: tuple[tuple[str, Hashable], ...]


def observe(
    graph: Graph, outcome: Outcome, variables: Collection[str] | None = None
) -> Observation | Faulted:
    """What an observer sees of an outcome of `erase(graph)`; a fault is seen as it is.

    Variables are those of the program, and its declared unions in place of their parts; `variables` names fewer, to
    compare a program with another that has helpers of its own.

    Raises: ValueError if `variables` names something else.
    """
    match outcome:
        case Faulted():
            return outcome
        case Finished():
            pass
        case _:
            assert_never(outcome)
    outputs = tuple(
        (name, tuple(values.observed(graph.queues[name].type, i) for i in items if not isinstance(i, Mark)))
        for name, items in outcome.outputs
    )
    state = with_results(graph, dict(outcome.variables))
    try:
        views = tuple((view.name, rows(view, state[view.variable])) for view in graph.views)
    except Fault as fault:
        return Faulted(fault.info)
    seen = observed_variables(graph, state)
    if variables is not None:
        if strangers := sorted(set(variables) - set(seen)):
            message = f"not observed variables of the program: {', '.join(strangers)}"
            raise ValueError(message)
        seen = {name: seen[name] for name in variables}
    return Observation(outputs, views, tuple(sorted(seen.items())))


def observed_variables(graph: Graph, state: Mapping[str, Value]) -> dict[str, Hashable]:
    """The program's variables and unions as observations, by name; the parts of a union are not seen apart.

    What an operator keeps to itself (`@Apart`) is not seen.
    """
    state = with_results(graph, state)
    types = {v.name: v.type for v in graph.variables}
    parts = {part for result in graph.results for part in result.parts} | private(graph)
    found = {name: values.observed(type_, state[name]) for name, type_ in types.items() if name not in parts}
    for result in graph.results:
        type_ = types[result.parts[0]]
        match type_:
            case _ if result.combined:
                found[result.name] = values.observed(type_, state[result.name])
            case t.Bag():
                every = (item for part in result.parts for item in state[part])
                found[result.name] = values.observed(type_, values.frozen_form(type_, every))
            case _:
                seen = (values.observed(type_, state[part]) for part in result.parts)
                found[result.name] = frozenset(
                    pair for pairs in seen for pair in cast("Iterable[Hashable]", pairs)
                )
    return found


def rows(view: View, value: Value) -> tuple[Hashable, ...]:
    """What is seen of the rows of a view, in the total order. Raises: Fault, as `contents`."""
    return tuple(values.observed(view.type, row) for row in contents(view, value))


def contents(view: View, value: Value) -> tuple[Value, ...]:
    """The rows of a view of a variable's frozen value, frozen, in the total order.

    Raises: Fault with `(view, site, code, key or None)` when its function traps.
    """
    return rows_of(view, value, lambda trap, key: Fault((view.name, trap.site, trap.code, key)))
