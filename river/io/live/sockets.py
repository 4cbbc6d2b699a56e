"""An input that listens: each connection is a text of its own. Only this machine can connect."""

from __future__ import annotations

import ipaddress
import re
import threading
from typing import TYPE_CHECKING, Final

from river.diagnostics import Diagnostic, Rejected
from river.io.errors import unreadable
from river.io.live.control import POLL
from river.io.live.streams import Pipe

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from river.io.live.control import Live
    from river.io.live.inbox import Inbox
    from river.io.live.streams import Stream

SCHEME: Final = "tcp://"
MOST: Final = 64
"""Connections at a time; more wait to be accepted."""

_ADDRESS = re.compile(r"tcp://(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^:/\[\]]+)):(?P<port>\d{1,5})/?")


def listening(url: str, name: str) -> socket.socket:
    """A socket that listens at `tcp://HOST:PORT`, where the host is this machine.

    Raises: Rejected("data-address") for others, ("data-unreadable") when the port is taken.
    """
    found = _ADDRESS.fullmatch(url)
    if found is None or int(found["port"]) > 65535:
        help_ = "write `tcp://127.0.0.1:PORT`"
        raise Rejected([Diagnostic("data-address", f"input `{name}`: `{url}` is no address", help=help_)])
    host = found["six"] or found["host"]
    try:
        address = ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        message = f"input `{name}`: River listens on this machine only, not at `{host}`"
        help_ = "use 127.0.0.1, and forward to it what comes from elsewhere (`ssh -L`, `socat`)"
        raise Rejected([Diagnostic("data-address", message, help=help_)])
    import socket  # hardly any run listens

    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        listener = socket.create_server((str(address), int(found["port"])), family=family, backlog=MOST)
    except OSError as error:
        raise Rejected([unreadable(url, error)]) from error
    listener.setblocking(False)
    return listener


def serve(
    live: Live, listener: socket.socket, url: str, inbox: Inbox, text: Callable[[Stream, Inbox], None]
) -> None:
    """Takes connections until the run is stopped; `text` reads one of them. Raises: Stopped."""
    threads: list[threading.Thread] = []
    try:
        while True:
            threads = [thread for thread in threads if thread.is_alive()]
            if len(threads) >= MOST:
                live.wait(seconds=POLL)
                continue
            live.wait(listener)
            try:
                connection, peer = listener.accept()
            except OSError:  # gone before it was accepted
                continue
            stream = Pipe(live, f"{url} from {peer[1]}", connection.fileno())
            connection.setblocking(False)
            thread = threading.Thread(
                target=_talk, args=(connection, stream, inbox, text), name="river-connection", daemon=True
            )
            threads.append(thread)
            thread.start()
    finally:
        for thread in threads:
            thread.join()


def _talk(
    connection: socket.socket, stream: Stream, inbox: Inbox, text: Callable[[Stream, Inbox], None]
) -> None:
    from river.io.live.control import Stopped

    try:
        text(stream, inbox)
    except Stopped:
        pass
    except BaseException as error:  # noqa: BLE001 - who takes from the inbox raises it
        inbox.fail(error)
    finally:
        connection.close()
