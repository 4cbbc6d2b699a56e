"""The inputs of a stateless operator: any worker takes the next one and fires it. Paper: section 5, shared worklist."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.multicore.ordering.reorder import Order

B = TypeVar("B")


class Worklist(Generic[B]):
    """Gives out inputs with their serial numbers. `source` is the next input, None if there is none now."""

    def __init__(self, order: Order[Any], source: Callable[[], B | None]) -> None:
        self._order = order
        self._source = source
        self._lock = Lock()  # an input and its number are taken together
        self._serial = 0

    def take(self) -> tuple[int, B] | None:
        """The next serial number and input; the result must be handed in. None if there is none, or no capacity.

        Capacity comes before the number: who has a number never waits.
        """
        with self._lock:
            serial = self._serial
            if not self._order.admits(serial):
                return None
            batch = self._source()
            if batch is None:
                return None
            self._serial = serial + 1
            return serial, batch
