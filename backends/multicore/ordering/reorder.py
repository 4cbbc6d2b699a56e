"""Results in the order of their inputs: the non-blocking reorder buffer (Fig. 4) and the one with a lock (Fig. 2).

Workers hand in results with the serial numbers of their inputs, 0, 1, 2, ..., in any order. Whoever brings the one that
is due sends it, and all that were waiting for it. What the figures do not have, as their queues are not bounded:

- A serial number is given out only while `admits` says so. Then there is a slot for its result, nobody waits while he has
  one, and so all that were given out come back.
- Where there is no room downstream the sender leaves, and says so; whoever learns of room calls `flush`.
- An input that fails is the last of which anything is sent.
"""

from __future__ import annotations

from enum import Enum, auto
from heapq import heappop, heappush
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from river.classes import frozen
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Missing(Enum):
    """What stands where there is no result."""

    EMPTY = auto()
    NOTHING = auto()


EMPTY: Final = Missing.EMPTY
NOTHING: Final = Missing.NOTHING
"""The result of an input from which nothing is to be sent."""

Nothing = Literal[Missing.NOTHING]


class Wait(Enum):
    """What a worker that may take something waits for, where it gets nothing; it leaves, and somebody wakes it."""

    ROOM = auto()  # downstream
    NEXT = auto()  # an input, or a result that another worker hands in


@frozen
class FailedResult:
    """The result of an input that could not be handled to its end; `before` is what had been made, and is sent."""

    error: Exception
    before: Any = NOTHING


class Sequencer(Protocol[R_contra]):
    """Where results are handed in. Any worker may call anything at any time.

    `next`: the serial number whose result is due; what stands before it was sent.
    `failure`: the error of the smallest serial number that failed, as soon as all that stands before it was sent.
    """

    @property
    def next(self) -> int: ...

    @property
    def failure(self) -> Exception | None: ...

    def admits(self, serial: int, /) -> bool:
        """Whether that serial number may be given out now; if it may, it may later, unless something fails."""
        ...

    def hand_in(self, serial: int, result: R_contra | FailedResult | Nothing, /) -> bool:
        """Takes the result of a serial number that was given out, once, then does and says what `flush` does."""
        ...

    def flush(self) -> bool:
        """Sends what is due, unless somebody else is at it.

        False: there was no room for it. Nobody comes back to it by himself, so the caller sees to it that somebody does,
        as soon as there is room; there may be by now.
        """
        ...

    @property
    def pending(self) -> bool:
        """Whether the result that is due has come: while others are at work, a look from outside."""
        ...


class ReorderBuffer(Generic[R]):
    """The non-blocking scheme. Paper: Fig. 4, whose lines are marked L.

    `send` takes a result; `drain` passes on what was sent before and says whether there was room for all of it. One
    worker at a time calls them, and `send` only when `drain` has just said so.
    """

    def __init__(self, capacity: int, send: Callable[[R], None], drain: Callable[[], bool]) -> None:
        self.capacity = capacity
        self.next = 0
        self.failure: Exception | None = None
        self._send = send
        self._drain = drain
        self._slots: list[R | FailedResult | Missing] = [EMPTY] * capacity
        self._flag = Lock()

    def admits(self, serial: int, /) -> bool:
        if self.failure is not None:
            return False
        return serial < self.next + self.capacity  # L16

    def hand_in(self, serial: int, result: R | FailedResult | Nothing, /) -> bool:
        if serial >= self.next + self.capacity:
            raise InternalError(f"serial number {serial} was not admitted")
        self._slots[serial % self.capacity] = result  # L18
        return self.flush()  # L9

    def flush(self) -> bool:
        while self._flag.acquire(False):  # L25; to name the argument takes as long as the call
            room = self._drain()
            serial = self.next  # L28
            while room:
                result = self._slots[serial % self.capacity]  # L30
                if result is EMPTY:
                    break
                if isinstance(result, FailedResult):
                    if result.before is not NOTHING:
                        self._send(result.before)
                    self.failure = result.error
                    self._slots[serial % self.capacity] = EMPTY  # for ever, as `next` does not move any more
                else:
                    if result is not NOTHING:
                        self._send(result)  # L32
                    self._slots[serial % self.capacity] = EMPTY  # L33, before that slot is given out again
                    serial += 1
                    self.next = serial  # L34
                room = self._drain()
            self._flag.release()  # L36
            if not room:
                return False
            if self._slots[serial % self.capacity] is EMPTY:  # L40: did it come while the flag was set?
                return True
        return True

    @property
    def pending(self) -> bool:
        return self._slots[self.next % self.capacity] is not EMPTY


class LockedReorder(Generic[R]):
    """The scheme with a lock, for comparison: who hands in waits while another sends. Paper: Fig. 2."""

    def __init__(self, capacity: int, send: Callable[[R], None], drain: Callable[[], bool]) -> None:
        self.capacity = capacity
        self.next = 0
        self.failure: Exception | None = None
        self._send = send
        self._drain = drain
        self._waiting: list[
            tuple[int, R | FailedResult | Nothing]
        ] = []  # a heap; no two serial numbers are the same
        self._lock = Lock()

    def admits(self, serial: int, /) -> bool:
        if self.failure is not None:
            return False
        return serial < self.next + self.capacity

    def hand_in(self, serial: int, result: R | FailedResult | Nothing, /) -> bool:
        with self._lock:
            heappush(self._waiting, (serial, result))
            return self._send_due()

    def flush(self) -> bool:
        with self._lock:
            return self._send_due()

    def _send_due(self) -> bool:
        """Does and says what `flush` does, under the lock."""
        room = self._drain()
        while room and self.pending:
            serial, result = heappop(self._waiting)
            if isinstance(result, FailedResult):
                if result.before is not NOTHING:
                    self._send(result.before)
                self.failure = result.error
            else:
                if result is not NOTHING:
                    self._send(result)
                self.next = serial + 1
            room = self._drain()
        return room

    @property
    def pending(self) -> bool:
        return bool(self._waiting) and self._waiting[0][0] == self.next
