"""What an execution leaves behind, and when two executions are the same to an observer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from calculus.program import Program, Value
    from calculus.state import Configuration


@frozen
class Finished:
    """A quiescent end: contents of the output queues and values of all variables, in the order of the program.

    Paper: River §2 ("the result of the execution consists of the contents of variables and output queues").
    """

    outputs: tuple[tuple[str, tuple[Value, ...]], ...]
    variables: tuple[tuple[str, Value], ...]


@frozen
class Faulted:
    """An execution that a firing ended; queues and variables are not part of the result."""

    info: Hashable


Outcome = Finished | Faulted
"""The result of one execution."""


@frozen
class Bag:
    """Items whose order does not matter: each with how often it occurs."""

    counts: frozenset[tuple[Value, int]]

    @classmethod
    def of(cls, items: Iterable[Value]) -> Bag:
        """The bag of `items`."""
        return cls(frozenset(Counter(items).items()))


@frozen
class Observed:
    """What is compared of a `Finished`: outputs and variables sorted by name."""

    outputs: tuple[tuple[str, tuple[Value, ...] | Bag], ...]
    variables: tuple[tuple[str, Value], ...]


Observation = Observed | Faulted
"""Two outcomes are the same to an observer when their observations are equal."""

View = Callable[[Any], Any]
"""A canonicalising function: of a variable's value, or of the tuple of all items of a queue (to a tuple)."""

PLAIN: Mapping[str, View] = MappingProxyType({})
"""The view that changes nothing."""


def finished(program: Program, configuration: Configuration) -> Finished:
    """The outcome that a quiescent configuration is."""
    queues = program.wiring.queues
    return Finished(
        tuple((queue, configuration.queues[queues[queue]]) for queue in program.outputs),
        tuple(zip(program.variables, configuration.variables, strict=True)),
    )


def observe(
    outcome: Outcome,
    bags: Collection[str] = (),
    variables: Collection[str] | None = None,
    view: Mapping[str, View] = PLAIN,
) -> Observation:
    """What of `outcome` is compared: queues, as bags those in `bags`, and the variables named (all if None).

    `view` maps names of queues and variables to canonicalising functions; a queue is viewed before it becomes
    a bag. Faults are compared by their information alone.

    Raises: ValueError if `bags` or `variables` name something that the outcome does not have.
    """
    match outcome:
        case Finished():
            outputs = dict(outcome.outputs)
            values = dict(outcome.variables)
            _known("output queues", bags, outputs)
            _known("variables", variables or (), values)
            kept = sorted(values if variables is None else set(variables))
            return Observed(
                tuple((queue, _observed(queue, outputs[queue], bags, view)) for queue in sorted(outputs)),
                tuple((name, view[name](values[name]) if name in view else values[name]) for name in kept),
            )
        case Faulted():
            return outcome
        case _:
            assert_never(outcome)


def _observed(
    queue: str, items: tuple[Value, ...], bags: Collection[str], view: Mapping[str, View]
) -> tuple[Value, ...] | Bag:
    seen: tuple[Value, ...] = tuple(view[queue](items)) if queue in view else items
    return Bag.of(seen) if queue in bags else seen


def _known(what: str, names: Collection[str], present: Collection[str]) -> None:
    if strangers := sorted(set(names) - set(present)):
        message = f"not {what} of the outcome: {', '.join(strangers)}"
        raise ValueError(message)
