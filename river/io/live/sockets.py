"""Where an input listens: a port of this machine, or a socket in the file system, which only its owner may use."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.diagnostics import Diagnostic, Rejected
from river.io.errors import unreadable
from river.io.live.control import UNIX

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

BACKLOG: Final = 64

_ADDRESS = re.compile(r"tcp://(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^:/\[\]]+)):(?P<port>\d{1,5})/?")


@frozen
class Listening:
    """A socket that listens, at an address whose port is known; `close` leaves nothing of it."""

    socket: socket.socket
    address: str
    close: Callable[[], None]


def listening(address: str, name: str) -> Listening:
    """What listens at `tcp://HOST:PORT`, where the host is this machine, or at `unix:PATH`. Port 0: one that is free.

    Raises: Rejected("data-address") for other addresses and for a place that is taken, ("data-unreadable") where the system
    refuses.
    """
    found = _local(address, name) if address.startswith(UNIX) else _loopback(address, name)
    found.socket.setblocking(False)
    return found


def _loopback(url: str, name: str) -> Listening:
    found = _ADDRESS.fullmatch(url)
    if found is None or int(found["port"]) > 65535:
        help_ = "write `tcp://127.0.0.1:PORT`"
        raise Rejected([Diagnostic("data-address", f"input `{name}`: `{url}` is no address", help=help_)])
    import ipaddress  # hardly any run listens
    import socket

    host = found["six"] or found["host"]
    try:
        address = ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        message = f"input `{name}`: River listens on this machine only, not at `{host}`"
        help_ = "use 127.0.0.1, and forward to it what comes from elsewhere (`ssh -L`, `socat`)"
        raise Rejected([Diagnostic("data-address", message, help=help_)])
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        listener = socket.create_server((str(address), int(found["port"])), family=family, backlog=BACKLOG)
    except OSError as error:
        raise Rejected([unreadable(url, error)]) from error
    if not int(found["port"]):
        url = url[: found.start("port")] + str(listener.getsockname()[1])
    return Listening(listener, url, listener.close)


def _local(address: str, name: str) -> Listening:
    import socket

    path = Path(address.removeprefix(UNIX))
    if not path.name:
        help_ = "write `unix:PATH`"
        raise Rejected([Diagnostic("data-address", f"input `{name}`: `{address}` is no address", help=help_)])
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone(path.parent):
            _make_room(path, name)
            listener.bind(str(path))
            path.chmod(0o600)  # before anybody can connect
            listener.listen(BACKLOG)
            ours = path.stat()
    except OSError as error:
        listener.close()
        raise Rejected([unreadable(address, error)]) from error
    except Rejected:
        listener.close()
        raise

    def close() -> None:
        with suppress(OSError):
            if os.path.samestat(path.lstat(), ours):
                path.unlink()
        listener.close()

    return Listening(listener, address, close)


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keeps others, who look for the same, from making or removing a socket in a folder. Raises: OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_room(path: Path, name: str) -> None:
    """Removes a socket at which nobody listens any more. Raises: Rejected("data-address") for all else; OSError."""
    import socket

    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        message = f"input `{name}`: `{path}` is there and is no socket"
        raise Rejected([Diagnostic("data-address", message, help="name a place where there is nothing")])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.setblocking(False)
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:  # it has no room, so somebody listens
            pass
    message = f"input `{name}`: another process listens at `{path}`"
    raise Rejected([Diagnostic("data-address", message, help="name another place, or end that process")])
