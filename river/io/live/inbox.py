"""Between the thread that reads an input and the one that takes what has come."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from river.io.live.control import Live, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from river.io.batches import Batch, ItemSource
    from river.io.live.texts import ArrivingTexts
    from river.io.order import Ordering


class Arriving:
    """A live input.

    `read` runs in a thread of its own and puts what it reads into an inbox; `batches` makes rows of that, where it is
    taken. `patient`: it may be in somebody else's code when the run is stopped, and is then left behind. `texts`: how its
    texts are read, if it has any. Who reads these by other means makes items of them, too: with a `taker` of their own
    (`river.ingress.taking`).
    """

    def __init__(
        self,
        source: ItemSource,
        live: Live,
        read: Callable[[Inbox], None],
        batches: Callable[[list[Any]], Iterable[Batch]] = iter,
        *,
        patient: bool = False,
        texts: ArrivingTexts | None = None,
    ) -> None:
        self.source = source
        self.live = live
        self.read = read
        self.batches = batches
        self.patient = patient
        self.texts = texts
        self.count: Callable[[int], None] = lambda _: None
        self.taker: Callable[[Ordering | None], Any] | None = None

    def __iter__(self) -> Any:
        raise TypeError(f"the input `{self.source.name}` is live: it is read by `river.ingress`")


def still(source: Iterable[Any], live: Live) -> Callable[[Inbox], None]:
    """Reads batches of a source that is not live itself into an inbox."""

    def read(inbox: Inbox) -> None:
        for batch in source:
            if (len(batch) and not inbox.put(batch, len(batch))) or live.stopped:
                break

    return read


class Inbox:
    """What has come of one input and is not taken: about `room` items; who would put more waits.

    `news` is told of what comes; its lock guards all. `heard`: when something came last, in seconds of the monotonic clock.
    """

    def __init__(self, name: str, news: threading.Condition, lock: threading.Lock, room: int) -> None:
        self.heard = time.monotonic()
        self._lock = lock
        self._news = news
        self._space = threading.Condition(lock)
        self._entries: deque[tuple[Any, int]] = deque()
        self._size = 0
        self._room = room
        self._waiting = 0
        self._ended = False
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"river-input-{name}", daemon=True)
        self._read: Callable[[Inbox], None] = lambda _: None

    # -- who reads

    def start(self, read: Callable[[Inbox], None]) -> None:
        """Lets `read` fill it, in a thread."""
        self._read = read
        self._thread.start()

    def _run(self) -> None:
        try:
            self._read(self)
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 - of a source, which is the user's: who takes raises it
            self.fail(error)
        finally:
            with self._lock:
                self._ended = True
                self._news.notify()

    def put(self, entry: Any, size: int) -> bool:
        """Puts `size` items when there is room; False when nothing more is wanted."""
        with self._lock:
            if self._size >= self._room:
                self._waiting += 1
                self._space.wait_for(lambda: self._size < self._room or self._closed)
                self._waiting -= 1
            if self._closed:
                return False
            if not self._entries:
                self._news.notify()
            self._entries.append((entry, size))
            self._size += size
            self.heard = time.monotonic()
        return True

    def fail(self, error: BaseException) -> None:
        """Ends the run with `error` when what was put before has been taken."""
        with self._lock:
            self._error = self._error or error
            self._news.notify()

    # -- who takes

    @property
    def something(self) -> bool:
        """Whether there is something to take, or an end to see. Under the lock."""
        return bool(self._entries) or self._ended or self._error is not None

    def take(self) -> list[Any]:
        """All that is there."""
        with self._lock:
            found = [entry for entry, _ in self._entries]
            self._entries.clear()
            self._size = 0
            self._space.notify_all()
        return found

    def over(self, *, stopped: bool) -> bool:
        """Whether all has been taken and nothing will come; `stopped`: or what may come is not waited for.

        Raises: what went wrong with reading.
        """
        with self._lock:
            if self._entries or self._waiting:
                return False
            if self._error is not None:
                raise self._error
            return self._ended or stopped

    def close(self) -> None:
        """Wants nothing any more."""
        with self._lock:
            self._closed = True
            self._entries.clear()
            self._space.notify_all()

    def join(self, seconds: float) -> None:
        """Waits for the thread."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
