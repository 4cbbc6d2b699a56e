"""How often Python looks for cycles of objects that nobody needs any more, while a run begins.

Python looks whenever a few hundred objects more were made than went. A run that begins makes tens of thousands, modules,
classes and plans, which all stay: to look for garbage among them, and among all that the program has besides, takes a fifth of
the time until the first row is read.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

OBJECTS: Final = 50_000
"""How many objects there may be more before Python looks: hardly any run that begins makes as many."""

_lock = Lock()
_inside = 0
_before = 0


@contextmanager
def seldom() -> Generator[None]:
    """Python looks for garbage seldom until the last one leaves; also as a decorator.

    Not for what goes on for long or calls the user's code, whose garbage may hold much memory. What somebody else has set
    stays: whoever looks more seldom, or not at all, goes on so.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before  # noqa: PLW0603 - the collector is one for the process
    with _lock:
        _inside += 1
        if _inside == 1:
            _before, *older = gc.get_threshold()
            if 0 < _before < OBJECTS:
                gc.set_threshold(OBJECTS, *older)


def _leave() -> None:
    global _inside  # noqa: PLW0603
    with _lock:
        _inside -= 1
        most, *older = gc.get_threshold()
        if _inside == 0 and 0 < _before < most == OBJECTS:
            gc.set_threshold(_before, *older)
