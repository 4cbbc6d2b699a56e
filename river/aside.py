"""What a thread computes beside others. `concurrent.futures` does that, too, but to import it takes 6 ms of a run that begins."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from river.lang import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Result = TypeVar("Result")


class Aside(Generic[Result]):
    """A thread that makes one value; it has begun when this is there."""

    def __init__(self, make: Callable[[], Result], name: str) -> None:
        self._made: Result | None = None
        self._failure: BaseException | None = None
        self._over = threading.Event()
        memory.start(threading.Thread(target=self._run, args=(make,), name=name))

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


def shared_out(make: Callable[[int], Result], workers: int) -> list[Result]:
    """What `make` gives for 0 .. workers - 1, each made by a thread, the first by this one. Raises: what making one has raised.

    None is under way any more when it returns or raises.
    """
    others: list[Aside[Result]] = []
    try:
        for i in range(1, workers):
            others.append(Aside(partial(make, i), "river-share"))  # noqa: PERF401 - those that have begun are waited for
        first = make(0)
    finally:
        for each in others:
            each.done(None)
    return [first, *(each.result() for each in others)]


class Ahead(Generic[Result]):
    """What `make` gives until it gives None, made by a thread; at most so many values wait for who takes them.

    When as many are there the thread ends, and one begins when a value is taken: so none waits for who never comes.
    """

    def __init__(self, make: Callable[[], Result | None], name: str, most: int = 1) -> None:
        self._make, self._name, self._most = make, name, most
        self._there: deque[tuple[Result | None, BaseException | None]] = deque()
        self._working = self._over = False
        self._changed = threading.Condition()
        self._go_on()

    def _go_on(self) -> None:
        with self._changed:
            if self._working or not self._wanted():
                return
            self._working = True
        try:
            memory.start(threading.Thread(target=self._work, name=self._name))
        except BaseException:  # there is none, for whose end nobody has to wait
            self._working = False
            raise

    def _wanted(self) -> bool:
        return not self._over and len(self._there) < self._most

    def _work(self) -> None:
        while self._working:
            found = failure = None
            try:
                found = self._make()
            except BaseException as raised:  # noqa: BLE001 - it is raised where the value is asked for
                failure = raised
            with self._changed:
                self._there.append((found, failure))
                self._over = self._over or found is None
                self._working = self._wanted()
                self._changed.notify_all()

    def take(self) -> Result | None:
        """The next value, when it is there; not after None. Raises: what making it has raised."""
        with self._changed:
            while not self._there:
                self._changed.wait()
            found, failure = self._there.popleft()
        self._go_on()
        if failure is not None:
            raise failure
        return found

    def end(self) -> None:
        """Returns when nothing is made any more."""
        with self._changed:
            self._over = True
            while self._working:
                self._changed.wait()

    def values(self) -> Generator[Result]:
        """One by one; who ends that early waits for what is being made, which may need what is not there any longer then."""
        try:
            while (found := self.take()) is not None:
                yield found
        finally:
            self.end()


def ahead(make: Callable[[], Result | None], name: str, most: int = 1) -> Generator[Result]:
    """The values of `Ahead`, none of which is made before somebody wants the first."""
    yield from Ahead(make, name, most).values()


def in_turns(make: Callable[[int], Result], count: int, workers: int, name: str) -> Generator[Result]:
    """What `make` gives for 0 .. count - 1, in order, each made by one of so many threads in turn, of which this is the first.

    Others begin when somebody wants the first value; each is one value ahead. Who ends early waits for what is being made.
    """

    def share(first: int) -> Ahead[tuple[Result]]:
        numbers = iter(range(first, count, workers))

        def following() -> tuple[Result] | None:
            i = next(numbers, None)
            return None if i is None else (make(i),)

        return Ahead(following, name)

    others: list[Ahead[tuple[Result]]] = []
    try:
        for i in range(1, min(workers, count)):
            others.append(share(i))  # noqa: PERF401 - those that have begun are waited for
        for i in range(count):
            if i % workers == 0:
                yield make(i)
            elif (found := others[i % workers - 1].take()) is not None:
                yield found[0]
    finally:
        for each in others:
            each.end()
