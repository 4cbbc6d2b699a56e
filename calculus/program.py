"""What a Brooklet program is: queues, variables, operators and the pure functions behind them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from types import MappingProxyType

from attrs import field, frozen

Value = Hashable
"""A data item or the value of a variable.

Equal values must be indistinguishable to every function of the program: a value class whose instances behave
differently (a map that remembers the order of insertion, say) must also compare differently. Numbers of
Python's own are exempt (`1 == True == 1.0`): the exhaustive exploration keeps them apart
(`calculus.interning`).
"""


class Fault(Exception):  # noqa: N818 - the word of the semantics: a firing faults
    """Raised by a firing function: the execution ends here, with outcome `Faulted(info)`."""

    def __init__(self, info: Hashable) -> None:
        super().__init__(info)
        self.info = info


@frozen
class Firing:
    """What one firing produces: the paper's (b'*, d'*).

    `pushed` has one sequence of items for each output queue of the operator, `written` one value for each
    variable that it writes, both in the order of the operator.
    """

    pushed: tuple[tuple[Value, ...], ...] = ()
    written: tuple[Value, ...] = ()


Function = Callable[[Value, int, tuple[Value, ...]], Firing]
"""A firing function: (item, index of its queue among the operator's inputs, values read) -> Firing. Pure."""


@frozen
class Op:
    """One operator: `(outs, $writes) <- function(ins, $reads);`."""

    outs: tuple[str, ...]
    writes: tuple[str, ...]
    function: str
    ins: tuple[str, ...]
    reads: tuple[str, ...]

    def __str__(self) -> str:
        """The operator in the paper's notation."""
        left = ", ".join((*self.outs, *(f"${v}" for v in self.writes)))
        right = ", ".join((*self.ins, *(f"${v}" for v in self.reads)))
        return f"({left}) <- {self.function}({right});"


@frozen
class Consumer:
    """The operator at the end of a queue, with every name resolved to a position in a `Configuration`."""

    queue: str
    position: int
    op: Op
    port: int
    function: Function
    reads: tuple[int, ...]
    outs: tuple[int, ...]
    writes: tuple[int, ...]


@frozen
class Wiring:
    """Positions of the queues and variables of a program, and who consumes what.

    `consumers` is in the order of the operators and, within one, of its inputs: this order is that of every
    enumeration of queues in this package.
    """

    queues: Mapping[str, int]
    variables: Mapping[str, int]
    consumers: tuple[Consumer, ...]
    by_queue: Mapping[str, Consumer]


def _frozen_functions(functions: Mapping[str, Function]) -> Mapping[str, Function]:
    return MappingProxyType(dict(functions))


def _frozen_values(values: Mapping[str, Value]) -> Mapping[str, Value]:
    return MappingProxyType(dict(values))


@frozen(eq=False, slots=False)
class Program:
    """A Brooklet program: declared queues, operators, their functions, and first values of the variables.

    Two programs are equal only if they are the same object, because functions are opaque.

    Paper: River §2 (Brooklet syntax).
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[Op, ...]
    functions: Mapping[str, Function] = field(converter=_frozen_functions, repr=False)
    initial: Mapping[str, Value] = field(converter=_frozen_values)

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order of `initial`."""
        return tuple(self.initial)

    @cached_property
    def queues(self) -> tuple[str, ...]:
        """All queues: inputs first, then as the operators mention them, then the outputs that remain."""
        inner = (queue for op in self.ops for queue in (*op.ins, *op.outs))
        return tuple(dict.fromkeys((*self.inputs, *inner, *self.outputs)))

    @cached_property
    def wiring(self) -> Wiring:
        """The tables of `step`, made once. Only a well-formed program has them (`wellformed.check`)."""
        queues = {name: position for position, name in enumerate(self.queues)}
        variables = {name: position for position, name in enumerate(self.variables)}
        consumers = tuple(
            Consumer(
                queue=queue,
                position=queues[queue],
                op=op,
                port=port,
                function=self.functions[op.function],
                reads=tuple(variables[v] for v in op.reads),
                outs=tuple(queues[q] for q in op.outs),
                writes=tuple(variables[v] for v in op.writes),
            )
            for op in self.ops
            for port, queue in enumerate(op.ins)
        )
        return Wiring(queues, variables, consumers, {c.queue: c for c in consumers})

    def __str__(self) -> str:
        """The program in the paper's notation."""
        declared = (("output", self.outputs), ("input", self.inputs))
        lines = (f"{word} {', '.join(names)};" for word, names in declared if names)
        return "\n".join((*lines, *map(str, self.ops)))
