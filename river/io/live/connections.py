"""Those who send rows to an input that listens: each connection is a text of its own, which may end badly without the others.

Only whole lines are passed on, so that what a sender did not finish is never taken for a row.
"""

from __future__ import annotations

import hmac
import re
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import define, evolve, field
from river.diagnostics import Diagnostic, Note, Rejected, Severity, render
from river.io.live.control import POLL, TOLD, Stopped
from river.io.live.streams import TextStream
from river.metrics import ConnectionFigures

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from river.io.live.control import Live
    from river.io.live.inbox import Inbox

MOST: Final = 64
"""Connections at a time; more are refused."""

UNFINISHED: Final = 64 << 20
"""Bytes of lines without end, and of records whose quotes are open, that all connections of an input may hold together."""

SHARE: Final = UNFINISHED // MOST
"""Bytes of them that a connection may hold whatever the others do."""

OWED: Final = 60.0
"""Seconds of silence in the middle of a line, or before the token, after which a connection is closed."""

_KEY: Final = 4096  # bytes of the longest first line of who must say a token
_HTTP: Final = re.compile(rb"[A-Z]+ \S+ HTTP/\d(\.\d)?\r?\n")
_ANSWER: Final = (
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n"
)


@define(eq=False)
class Door:
    """The connections of one input: how many came, what became of them, and what they hold together.

    `web`: a browser can get here. `stops`: a bad row ends the connection that it came from.
    """

    live: Live
    name: str
    address: str
    web: bool
    stops: bool
    accepted: int = 0
    closed: dict[str, int] = field(factory=dict[str, int])
    held: int = 0
    _first: Diagnostic | None = None
    _told: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)

    def hold(self, more: int) -> int:
        """So many bytes more are held, or fewer; all that are held now."""
        with self._lock:
            self.held += more
            return self.held

    def note(self, reason: Diagnostic) -> None:
        """A connection was closed, or had to be, for a reason."""
        with self._lock:
            self.closed[reason.code] = self.closed.get(reason.code, 0) + 1
            self._first = self._first or reason
            self._told += 1
            told = self._told <= TOLD
        if told and self.live.tell is not None:
            self.live.tell(evolve(reason, severity=Severity.WARNING))

    def figures(self) -> ConnectionFigures:
        """The counts."""
        with self._lock:
            return ConnectionFigures(self.accepted, dict(sorted(self.closed.items())))

    def report(self) -> Diagnostic | None:
        """What went wrong with connections, and how often; None if nothing did."""
        figures = self.figures()
        if self._first is None:
            return None
        reasons = ", ".join(f"{number} {code}" for code, number in figures.closed.items())
        all_ = "1 connection" if figures.accepted == 1 else f"{figures.accepted:,} connections, some of which"
        message = f"input `{self.name}`: {all_} ended badly ({reasons})"
        first = Note("first: " + render(self._first).splitlines()[0])
        return Diagnostic("data-connection", message, severity=Severity.WARNING, notes=(first,))


class Ended(Exception):  # noqa: N818 - control flow of this package
    """A connection has ended, and the record that had begun is not to be read."""


class Connection(TextStream):
    """One who sends. `incomplete`: why the end of what came is no row, if it is none; `lines`: how many were passed on.

    Where bad rows end connections it is a `Sender`.
    """

    def __init__(self, door: Door, label: str, connection: socket.socket) -> None:
        super().__init__(door.live, label)
        self.door = door
        self.parted = False
        self.incomplete: str | None = None
        self.lines = 0
        self.sender = self if door.stops else None
        self._connection = connection
        self._held = bytearray()
        self._record = 0  # bytes of whole lines that the reader holds, as was told last
        self._admitted = False
        self._over = False
        self._lock = threading.Lock()

    # -- what comes

    @property
    def unfinished(self) -> int:
        return len(self._held)

    @property
    def rest(self) -> str:
        """The beginning of the last line, where that is all that came of it."""
        return self._held.decode("utf-8", "surrogateescape")

    def _next(self, size: int) -> bytes:
        """The next whole lines. Raises: Stopped; Ended."""
        before, self._record = self._record, self._waiting()
        self._bound(self.door.hold(self._record - before))
        while not self._over:
            data = self._received(size)
            if not data:
                break
            end = data.rfind(b"\n") + 1
            if not end:
                self._hold(data)
                continue
            whole = bytes(self._held) + data[:end] if self._held else data[:end]
            self._drop()
            self._hold(data[end:])
            if not self._admitted:
                whole = self._admit(whole)
            if whole:
                self.lines += whole.count(b"\n")
                return whole
        if self._over and self._record:
            raise Ended
        return b""

    def _received(self, size: int) -> bytes:
        """What has come; b"" when nothing more will, or is wanted. Raises: Stopped."""
        silence = self._patience()
        while True:
            if not self.live.wait(self._connection, silence):
                where = " in the middle of a line" if self._held else ""
                self._end("data-silence", f"nothing came for {silence:g} s{where}")
                return b""
            try:
                data = self._connection.recv(size)
            except BlockingIOError:
                continue
            except OSError:
                if not self._over:
                    self.incomplete = "the connection was reset, and what it sent last is missing"
                return b""
            if not data and self._held and not self._over:
                self.incomplete = (
                    f"it ended in the middle of a line, whose {len(self._held)} bytes are no row"
                )
            return data

    def _patience(self) -> float | None:
        """How long a silence may be, now. Units: seconds."""
        owing = OWED if self._held or not (self._admitted or self.live.token is None) else None
        stated = self.live.hang_up
        return owing if stated is None else stated if owing is None else min(stated, owing)

    def _hold(self, data: bytes) -> None:
        """Keeps the beginning of a line."""
        self._held += data
        held = self.door.hold(len(data))
        if not self._admitted and self.live.token is not None and len(self._held) > _KEY:
            self._unknown()
        else:
            self._bound(held)

    def _bound(self, held: int) -> None:
        """Ends it when all hold too much, so many bytes, and this one more than its share."""
        own = len(self._held) + self._record
        if held > UNFINISHED and own > SHARE and not self._over:
            message = f"its last record has {own} bytes and no end; connections may hold {UNFINISHED} of such together"
            self._end("data-long-line", message, "end lines with a line feed, and close quotes")

    def _drop(self) -> None:
        self.door.hold(-len(self._held))
        self._held.clear()

    def _admit(self, whole: bytes) -> bytes:
        """What is to be read, now that the first line has come: nothing of who may not send."""
        self._admitted = True
        first = whole[: whole.index(b"\n") + 1]
        token = self.live.token
        if token is not None and hmac.compare_digest(first.rstrip(b"\r\n"), token.encode()):
            return whole[len(first) :]
        if self.door.web and _HTTP.fullmatch(first):
            message = "its first line is one of HTTP, so whoever sends it does not mean to send rows"
            self._end("data-http", message, "is it a browser, or a proxy?")
            return b""
        if token is not None:
            self._unknown()
            return b""
        return whole

    def _unknown(self) -> None:
        self._end(
            "data-token",
            "its first line is not the token",
            "senders send the token as a line, then their rows",
        )

    # -- how it ends

    def _end(self, code: str, message: str, help_: str | None = None) -> None:
        self.end(Diagnostic(code, message, place=self.label, help=help_))

    def end(self, reason: Diagnostic) -> None:
        """Reads nothing more, and says why; what came before counts."""
        self.door.note(reason)
        with self._lock:
            over, self._over = self._over, True
        if not over:
            farewell(self._connection, reason)

    def part(self, rejected: Rejected) -> None:
        """See `Sender`."""
        if not self.parted:
            self.parted = True
            self.end(rejected.diagnostics[0])

    def close(self) -> None:
        """When it is read no more."""
        self._drop()
        self.door.hold(-self._record)
        self._record = 0
        self._over = True
        self._connection.close()


def farewell(connection: socket.socket, reason: Diagnostic) -> None:
    """Tells a sender, if it listens, why nothing more is taken of it."""
    text = f"{render(reason)}\n".encode()
    if reason.code == "data-http":
        text = _ANSWER.format(len(text)).encode() + text
    with suppress(OSError):
        connection.send(text)
    with suppress(OSError):
        import socket

        connection.shutdown(socket.SHUT_RDWR)  # who waits for more need not


def serve(
    door: Door, listener: socket.socket, inbox: Inbox, text: Callable[[Connection, Inbox], None]
) -> None:
    """Takes connections until the run is stopped; `text` reads one of them. Raises: Stopped."""
    threads: list[threading.Thread] = []
    try:
        while True:
            door.live.wait(listener)
            connection = _accepted(door, listener)
            if connection is None:
                door.live.wait(seconds=POLL)
                continue
            threads = [thread for thread in threads if thread.is_alive()]
            if len(threads) >= MOST:
                message = f"{MOST} senders are connected already"
                refuse(
                    connection,
                    Diagnostic("data-busy", message, place=connection.label, help="try again later"),
                )
                continue
            thread = threading.Thread(
                target=_talk, args=(connection, inbox, text), name="river-connection", daemon=True
            )
            threads.append(thread)
            door.live.works(1)
            thread.start()
    finally:
        while (late := _accepted(door, listener)) is not None:
            refuse(late, Diagnostic("data-busy", "the run ends", place=late.label))
        for thread in threads:
            thread.join()


def refuse(connection: Connection, reason: Diagnostic) -> None:
    """Ends a connection of which nothing was read."""
    connection.end(reason)
    connection.close()


def _accepted(door: Door, listener: socket.socket) -> Connection | None:
    """The next who connects; None if nobody does, or is gone already, or there are too many open files."""
    try:
        connection, peer = listener.accept()
    except OSError:
        return None
    connection.setblocking(False)
    door.accepted += 1
    return Connection(door, f"{door.address} from {_sender(connection, peer)}", connection)


def _sender(connection: socket.socket, peer: Any) -> str:
    """Who connects: a port, or a process."""
    import socket

    if isinstance(peer, tuple):
        return str(cast("tuple[Any, ...]", peer)[1])
    if not hasattr(socket, "SO_PEERCRED"):
        return "this machine"
    size = struct.calcsize("3i")
    process, *_ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return f"process {process}"


def _talk(connection: Connection, inbox: Inbox, text: Callable[[Connection, Inbox], None]) -> None:
    try:
        text(connection, inbox)
    except Stopped:
        pass
    except BaseException as error:  # noqa: BLE001 - who takes from the inbox raises it
        inbox.fail(error)
    finally:
        connection.close()
        connection.live.works(-1)
