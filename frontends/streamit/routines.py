"""Operations that the operator language has not: of complex numbers, some of C's functions, and the original's random generator.

Each is a function of the operator language (`functions.river`), also where its value is wanted while a graph is built: that of
the operation `real.cbrt` is called `real_cbrt`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import evolve
from river.il.functions import FunctionFiles
from river.il.trees import rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FUNCTIONS: Final = FunctionFiles("frontends.streamit", ("functions.river",))
"""The functions."""

KINDS: Final = ("complex.", "real.", "random.")
"""How the names of such operations begin."""


def is_routine(operation: str) -> bool:
    """Whether an operation is a function here."""
    return operation.startswith(KINDS)


@cache
def operations() -> tuple[str, ...]:
    """The names of all such operations."""
    return tuple(name.replace("_", ".", 1) for name in FUNCTIONS.names)


def routines(names: Mapping[str, str], used: Iterable[s.Node]) -> list[s.Fn]:
    """Those functions that are called in `used`, and that they call, under the names that stand for the operations."""
    operation_of = {name: operation.replace(".", "_") for operation, name in names.items()}
    called = {node.function for body in used for node in walk(body) if isinstance(node, s.Call)}
    there = {operation: name for name, operation in operation_of.items()}

    def renamed(node: s.Node) -> s.Node:
        node = rebuild(node, renamed)
        return (
            evolve(node, function=there.get(node.function, node.function))
            if isinstance(node, s.Call)
            else node
        )

    return [
        evolve(cast("s.Fn", renamed(fn)), name=there[fn.name])
        for fn in FUNCTIONS.needed(operation_of[name] for name in called if name in operation_of)
    ]


@cache
def meaning(operation: str) -> Callable[..., Any]:
    """What an operation makes of values, where complex numbers are pairs."""
    from river.lang import check
    from river.lang.evaluate import compile_function

    name = operation.replace(".", "_", 1)
    return compile_function(*check.function(name, check.scope({}, FUNCTIONS.needed([name]))))


FIRST_SEED = 1182736490827
"""With what the original's library begins."""


def first_state(number: int, seed: int | None) -> int:
    """The first state of the generator of a filter, which is the `number`-th of the graph that has one, from 0.

    Without `seed` the first one has the state with which the original's library begins.
    """
    if seed is None and number == 0:
        return FIRST_SEED
    mixed = ((FIRST_SEED if seed is None else seed) + (number + 1) * 0x9E3779B97F4A7C15) % (1 << 64)
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % (1 << 64)
    return (mixed ^ mixed >> 31) % (1 << 48)
