"""For how long the evaluator may be at a value, and who computes it in its place.

First values of variables are computed when a program is verified, before any backend is asked for anything; whoever runs the
program says meanwhile what holds for it (`patience`). Analyses, which compute values to see what a program does, do without one
that takes very long (`giving_up`): it is computed, or trapped, where the program runs.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from river.lang import typed

POLL_EVERY: Final = 1024
"""Turns of loops and calls between two polls."""

LONG: Final = 0.2
"""Seconds of the processor after which machine code is made for a first value; making it takes about as long."""

TURNS: Final = 4_000_000
"""Turns of loops and calls after which an analysis gives the values of an operator up: about a second.

They are counted, not timed, so that what becomes of a program depends neither on the machine nor on a deadline.
"""


@frozen
class Patience:
    """`seconds`: after which a value is given up; `code`: gives the constants of an operator by machine code, or none."""

    seconds: float | None = None
    code: Callable[[typed.Operator], tuple[Any, ...]] | None = None


_PATIENCE: ContextVar[Patience] = ContextVar("patience", default=Patience())  # noqa: B039 - it is frozen


@contextmanager
def patience(
    seconds: float | None, code: Callable[[typed.Operator], tuple[Any, ...]] | None
) -> Generator[None]:
    """What holds for values that are computed in the block."""
    token = _PATIENCE.set(Patience(seconds, code))
    try:
        yield
    finally:
        _PATIENCE.reset(token)


def ending() -> Callable[[], None]:
    """To be called now and then while a value is computed. Raises: Trap when that has taken too long."""
    seconds, begun = _PATIENCE.get().seconds, monotonic()

    def check() -> None:
        if seconds is not None and monotonic() - begun > seconds:
            from river.lang.evaluate import Trap

            raise Trap("deadline")

    return check


def coder() -> Callable[[typed.Operator], tuple[Any, ...]] | None:
    """What gives the constants of an operator by machine code, if anything does."""
    return _PATIENCE.get().code


class GivenUp(Exception):  # noqa: N818 - no error: whoever computed does without
    """An analysis has been at a value for very long, and whether it ever ends cannot be said."""


def giving_up() -> Callable[[], None]:
    """To be polled by the evaluator while an analysis computes values. Raises: GivenUp after `TURNS`."""
    left = TURNS

    def poll() -> None:
        nonlocal left
        left -= POLL_EVERY
        if left < 0:
            raise GivenUp

    return poll
