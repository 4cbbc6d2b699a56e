"""What a thread computes beside others. `concurrent.futures` does that, too, but to import it takes 6 ms of a run that begins."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Result = TypeVar("Result")


class Aside(Generic[Result]):
    """A thread that makes one value; it has begun when this is there."""

    def __init__(self, make: Callable[[], Result], name: str) -> None:
        self._made: Result | None = None
        self._failure: BaseException | None = None
        self._over = threading.Event()
        threading.Thread(target=self._run, args=(make,), name=name).start()

    def _run(self, make: Callable[[], Result]) -> None:
        try:
            self._made = make()
        except BaseException as failure:  # noqa: BLE001 - it is raised where the value is asked for
            self._failure = failure
        finally:
            self._over.set()

    def done(self, seconds: float | None = 0.0) -> bool:
        """Whether it is over; waits so long for that at most, with None without end."""
        return self._over.wait(seconds)

    def result(self) -> Result:
        """The value, when it is there. Raises: what making it has raised."""
        self._over.wait()
        if self._failure is not None:
            raise self._failure
        return cast("Result", self._made)


def ahead(
    make: Callable[[], Result | None], name: str, first: Aside[Result | None] | None = None
) -> Generator[Result]:
    """What `make` gives until it gives None; the next one is made by a thread while the caller is at the last one.

    `first`: what makes the first one, if that has begun.
    """
    made = Aside(make, name) if first is None else first
    try:
        while (found := made.result()) is not None:
            made = Aside(make, name)
            yield found
    finally:
        made.done(None)  # what it works on may not be there any longer then
