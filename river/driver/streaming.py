"""A run that goes on beside its caller, until somebody stops it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from river.classes import define, field

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.driver.job import Results
    from river.io.live import Live


@define(eq=False)
class RunningStream:
    """A run in a thread of its own. It ends by `stop`, by what its `live` says, or with an error, which `wait` raises."""

    live: Live
    work: Callable[[], Results]
    _results: Results | None = field(default=None, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="river-stream", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results = self.work()
        except BaseException as error:  # noqa: BLE001 - who waits raises it
            self._error = error

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Has it end well: what was begun is finished, then inputs end. Does not wait for that."""
        self.live.stop()

    def wait(self, seconds: float | None = None) -> Results | None:
        """Waits for its end, or for so long: what it gave, None if it goes on. Raises: Rejected, as `run` does."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return self._results
