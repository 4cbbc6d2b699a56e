"""The inputs of a stateless operator: any worker takes the next one and fires it. Paper: section 5, shared worklist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from backends.multicore.ordering.reorder import Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.multicore.ordering.reorder import FailedResult, Nothing, Sequencer

B = TypeVar("B")
R = TypeVar("R")


class Worklist(Generic[B, R]):
    """Gives out inputs with their serial numbers, and takes the results. `source` is the next input, None if there is none now.

    `take` and `alone` are called by one worker at a time: the one that has the operator's task. `hand_in` is called by all.
    """

    def __init__(self, order: Sequencer[R], source: Callable[[], B | None]) -> None:
        self._order = order
        self._source = source
        self._out: set[int] = set()  # whose workers have not handed in, or not left the order again
        self.given = 0

    def take(self) -> tuple[int, B] | Wait:
        """The next serial number and input, the result of which is to be handed in; or what to wait for.

        Capacity comes before the number: who has a number never waits.
        """
        if not self._order.flush():
            return Wait.ROOM
        serial = self.given
        if not self._order.admits(serial):
            return Wait.NEXT
        batch = self._source()
        if batch is None:
            return Wait.NEXT
        self._out.add(serial)
        self.given = serial + 1
        return serial, batch

    def hand_in(self, serial: int, result: R | FailedResult | Nothing) -> bool:
        """Takes the result of what was given out. Returns what `Sequencer.flush` does."""
        room = self._order.hand_in(serial, result)
        self._out.discard(serial)
        return room

    def alone(self) -> bool:
        """Whether all that was given out is sent, and no other worker is still at it: until the next `take` none will be.

        Then the caller may fire and send by himself. That the last result is sent is not enough: who sent it may be
        draining still.
        """
        out = self._out
        if out:
            return False
        return self._order.next == self.given
