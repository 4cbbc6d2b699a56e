"""How long tests wait for what threads and processes do."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.io.live import Live

PATIENCE: Final = 60.0
"""Seconds after which a test gives up; nothing waits for so long when all is well."""


def until(condition: Callable[[], object]) -> None:
    """Waits for it."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def stop(live: Live, thread: threading.Thread) -> None:
    """Ends a run that is live, in a thread, and waits for all threads that it has."""
    live.stop()
    thread.join(PATIENCE)
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("river-")])
