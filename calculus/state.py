"""Where an execution stands: what the queues hold and what the variables are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from calculus.wellformed import check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calculus.program import Program, Value


@frozen(cache_hash=True)
class Configuration:
    """The paper's <V, Q>: contents of the queues (head first) and values of the variables.

    Both are by position, as `Program.queues` and `Program.variables` list them; read them by name with
    `items` and `value`.
    """

    queues: tuple[tuple[Value, ...], ...]
    variables: tuple[Value, ...]


def initial(program: Program, inputs: Mapping[str, Sequence[Value]]) -> Configuration:
    """The first configuration: the input queues hold `inputs` (an absent one is empty), all others nothing.

    Raises: IllFormed if the program is; ValueError if `inputs` names a queue that is not an input.
    """
    check(program)
    if strangers := sorted(set(inputs) - set(program.inputs)):
        message = f"not input queues of the program: {', '.join(strangers)}"
        raise ValueError(message)
    return Configuration(
        tuple(tuple(inputs.get(queue, ())) for queue in program.queues),
        tuple(program.initial.values()),
    )


def items(program: Program, configuration: Configuration, queue: str) -> tuple[Value, ...]:
    """What `queue` holds, head first."""
    return configuration.queues[program.wiring.queues[queue]]


def value(program: Program, configuration: Configuration, variable: str) -> Value:
    """The value of `variable`."""
    return configuration.variables[program.wiring.variables[variable]]
