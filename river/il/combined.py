"""Results that are combined of parts (`result $v = combine(...)`): what operators kept apart from each other, as one value.

How two parts become one follows from the operator that accumulates into them (`river.il.combine`): it is associative and
commutative, and only the first part begins with something that is not neutral. So it does not matter which items came to
which part.

What analyses operators is imported where a result is combined: without one, a run begins to read before that is needed.

Paper: Auto-parallelizing §3 (commutative operators); River §6 (Sawzall: the tables of the mappers are merged).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from river.classes import frozen
from river.il.annotations import private
from river.lang import typed
from river.lang.values import same

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from river.il.combine import Combine
    from river.il.graph import Graph, Instance, Result, Variable

Value = Any


@frozen
class Combination:
    """How the parts of a result become one: as variable `position` of an operator does it."""

    operator: typed.Operator
    position: int
    how: Combine


def combination(
    result: Result, instances: Sequence[Instance], variables: Sequence[Variable]
) -> Combination | str:
    """How the parts of a result are combined, or why they cannot be."""
    from river.il.combine import combines, may_begin, start

    initial = {variable.name: variable.initial for variable in variables}
    found: Combination | None = None
    for part in result.parts:
        users = [(i, i.variables.index(part)) for i in instances if part in i.variables]
        if len(users) != 1 or users[0][0].variables.count(part) > 1:
            return f"`${part}` is not the variable of one operator"
        (instance, position), *_ = users
        op = instance.operator
        how = combines(op)[position]
        if not isinstance(op, typed.Operator) or how is None or not op.vars[position].written:
            return f"`{instance.use.operator}` does more with `${part}` than to accumulate"
        found = Combination(op, position, how) if found is None else found
        if found.how != how:
            return f"`{instance.use.operator}` accumulates otherwise into `${part}` than the first into `${result.parts[0]}`"
        type_ = op.vars[position].type
        if part == result.parts[0]:
            if not may_begin(how, initial[part]):
                return f"`${part}` is not empty at first"
        elif not same(type_)(initial[part], start(how, type_, initial[result.parts[0]])):
            return f"`${part}` does not begin with what is neutral: only the first part may begin with more"
    return "it has no parts" if found is None else found


class WithResults(Mapping[str, Value]):
    """The variables of a run and the results that are combined of them, which are made when they are asked for, unless there."""

    def __init__(self, graph: Graph, variables: Mapping[str, Value]) -> None:
        self._graph = graph
        self._variables = variables
        self._results = {result.name: result for result in graph.results if result.combined}
        self._known: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name in self._results and name not in self._variables and name not in self._known:
            self._known[name] = _combined(self._graph, self._results[name], self._variables)
        return self._known[name] if name in self._known else self._variables[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._variables, *self._results))

    def __len__(self) -> int:
        return len({*self._variables, *self._results})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


def unseen(graph: Graph) -> frozenset[str]:
    """The variables that are no part of what a run gives: those that operators keep to themselves, and parts of such results."""
    return private(graph) | {part for result in graph.results if result.combined for part in result.parts}


def with_results(graph: Graph, variables: Mapping[str, Value]) -> Mapping[str, Value]:
    """Final variables, which are frozen, with the results that are combined of them."""
    return WithResults(graph, variables) if any(result.combined for result in graph.results) else variables


def _combined(graph: Graph, result: Result, variables: Mapping[str, Value]) -> Value:
    from river.il.combine import combining
    from river.lang.evaluate import compile_operator, freeze_variables

    found = combination(result, graph.instances, graph.variables)
    assert isinstance(found, Combination)  # noqa: S101 - the program is verified
    first, *others = result.parts
    op = combining(found.operator, found.position, found.how)
    (fire,) = compile_operator(op).item
    assert fire is not None  # noqa: S101 - it is the handler of items
    values = [variables[first]]
    for other in others:
        fire(values, variables[other], [])
    return freeze_variables(op, values)[0]
