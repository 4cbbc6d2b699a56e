"""Which programs have a meaning: queues are one-to-one, names are bound."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from calculus.program import Op, Program


class IllFormed(Exception):  # noqa: N818 - says what the program is
    """The program breaks a rule of well-formedness; carries all the problems."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def check(program: Program) -> None:
    """Raise `IllFormed` with all problems of the program, if there are any."""
    if found := problems(program):
        raise IllFormed(found)


def problems(program: Program) -> tuple[str, ...]:
    """One sentence for each rule that the program breaks; empty for a well-formed program.

    The rules: every queue has at most one producer and one consumer; inputs have no producer, outputs no
    consumer; any other queue has both; every function is bound; every variable has an initial value, and an
    operator writes it at most once in a firing. An input that nobody consumes and an output that nobody
    produces are fine.

    Paper: River §2 ("queues are one-to-one").
    """
    return (*_declarations(program), *_queues(program), *_operators(program))


def _declarations(program: Program) -> Iterator[str]:
    for word, names in (("input", program.inputs), ("output", program.outputs)):
        yield from (f"queue `{queue}` is declared as {word} twice" for queue in _repeated(names))


def _queues(program: Program) -> Iterator[str]:
    inputs, outputs = frozenset(program.inputs), frozenset(program.outputs)
    for queue in program.queues:
        producers = [op for op in program.ops for out in op.outs if out == queue]
        consumers = [op for op in program.ops for arrival in op.ins if arrival == queue]
        if len(producers) > 1:
            yield f"queue `{queue}` has {len(producers)} producers: {_names(producers)}"
        if len(consumers) > 1:
            yield f"queue `{queue}` has {len(consumers)} consumers: {_names(consumers)}"
        if queue in inputs and producers:
            yield f"input queue `{queue}` has a producer: {_names(producers)}"
        if queue in outputs and consumers:
            yield f"output queue `{queue}` has a consumer: {_names(consumers)}"
        if queue not in inputs | outputs:
            if not producers:
                yield f"queue `{queue}` has no producer and is not an input"
            if not consumers:
                yield f"queue `{queue}` has no consumer and is not an output"


def _operators(program: Program) -> Iterator[str]:
    for op in program.ops:
        if op.function not in program.functions:
            yield f"function `{op.function}` is not bound"
        for variable in dict.fromkeys((*op.writes, *op.reads)):
            if variable not in program.initial:
                yield f"variable `${variable}` of `{op.function}` has no initial value"
        for variable in _repeated(op.writes):
            yield f"variable `${variable}` is written twice by `{op.function}`"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _names(ops: Iterable[Op]) -> str:
    return ", ".join(f"`{op.function}`" for op in ops)
