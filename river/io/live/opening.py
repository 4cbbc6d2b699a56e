"""Which inputs are live, and how they are opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected, Severity
from river.io.batches import Batch, ItemSource, Origin
from river.io.errors import unreadable
from river.io.live.control import TCP, UNIX
from river.io.live.inbox import Arriving
from river.io.several import hidden
from river.io.sources import PACKED, STREAMED, format_of
from river.io.suffixes import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from river.io.errors import Refusals
    from river.io.live.control import Live
    from river.io.live.inbox import Inbox
    from river.io.live.streams import TextStream
    from river.lang.types import Type


@frozen
class Follow:
    """A file that grows, or a folder that gets files: it is read, and what is added to it.

    `format`: where the suffix does not tell.
    """

    path: str
    format: str | None = None


@frozen
class _Wanted:
    type: Type
    name: str
    format: str | None
    refusals: Refusals
    size: int
    live: Live


def asked(spec: object) -> bool:
    """Whether an input is live because the user says so; pipes and iterators are read as live ones, too."""
    return isinstance(spec, Follow) or listens(spec)


def listens(spec: object) -> bool:
    """Whether an input is the address of a socket."""
    return isinstance(spec, str) and spec.startswith((TCP, UNIX))


def arriving(
    spec: object,
    type: Type,
    live: Live,
    *,
    name: str,
    refusals: Refusals,
    format: str | None = None,
    batch: int = 4096,
) -> Arriving | None:
    """The input `name` of items of `type`, if it is live: a `Follow`, `tcp://...`, `unix:...`, a pipe, an iterator; else None.

    Its items come in the order in which they arrive. Raises: Rejected for what can be seen before anything arrives.
    """
    wanted = _Wanted(type, name, format, refusals, batch, live)
    match spec:
        case Follow():
            return _followed(spec, wanted)
        case str() if listens(spec):
            return _connected(spec, wanted)
        case str() | os.PathLike():
            return _piped_path(os.fspath(cast("str | os.PathLike[str]", spec)), wanted)
        case _ if hasattr(spec, "read"):
            return _piped(spec, wanted)
        case Iterator():
            return _rows(cast("Iterator[Any]", spec), wanted)
        case _:
            return None


# ------------------------------------------------------------------------------------------------ texts


def _text(parts: Iterable[TextStream], kind: str, label: str, wanted: _Wanted) -> Arriving:
    """Texts of a format one after the other."""
    return _texts(((part, kind) for part in parts), kind, label, wanted)


def _texts(
    parts: Iterable[tuple[TextStream, str]], kind: str | None, label: str, wanted: _Wanted
) -> Arriving:
    """Texts one after the other, each with its format; `kind`: that of all of them."""
    from river.io.live.texts import ArrivingTexts  # here and below: hardly any input goes on

    source = ItemSource(wanted.type, Origin(wanted.name, label), (), wanted.refusals)
    texts = ArrivingTexts(wanted.type, wanted.name, wanted.size, kind)
    return Arriving(source, wanted.live, partial(texts.put, parts), texts=texts)


def _streamed(path: str, wanted: _Wanted) -> str:
    """The format of a text that is read as it comes. Raises: Rejected("data-format")."""
    kind, packed = format_of(path, wanted.format, wanted.name)
    if packed is not None or kind not in STREAMED:
        what = "compressed files" if packed is not None else f"{kind} files"
        message = f"input `{wanted.name}`: {what} cannot be read while they are written"
        raise Rejected([Diagnostic("data-format", message, help=f"the formats are {', '.join(STREAMED)}")])
    return kind


def _followed(spec: Follow, wanted: _Wanted) -> Arriving:
    wanted = evolve(wanted, format=spec.format or wanted.format)
    path = Path(spec.path)
    if path.is_dir() or spec.path.endswith("/"):
        return _folder(path, wanted)
    from river.io.live.streams import lines_of_file

    kind = _streamed(spec.path, wanted)
    return _text(lines_of_file(wanted.live, path), kind, spec.path, wanted)


def _folder(path: Path, wanted: _Wanted) -> Arriving:
    """The files of a folder; each has the format of its suffix unless one was stated."""
    from river.io.live.streams import files_of_folder

    if wanted.format is not None:
        _streamed("-", wanted)

    parts = files_of_folder(wanted.live, path, wanted.name, lambda name: why_unread(name, wanted.format))
    formats = ((part, _kind(Path(part.label).name, wanted.format) or "") for part in parts)
    return _texts(formats, wanted.format, str(path), wanted)


def in_folder(format: str | None) -> Callable[[str], bool]:
    """Which names of files are read in a folder that is followed; `format`: where the suffix does not tell."""
    return lambda name: not hidden(name) and why_unread(name, format) is None


def _kind(name: str, stated: str | None) -> str | None:
    """The format of a file in a folder, None where the name tells none."""
    return stated or SUFFIXES.get(Path(name).suffix.lower())


def why_unread(name: str, stated: str | None) -> str | None:
    """Why a file in a folder is not read, None for one that is."""
    if Path(name).suffix.lower() in PACKED:
        return "compressed files cannot be read while they are written"
    found = _kind(name, stated)
    if found is None:
        return "its suffix tells no format"
    return None if found in STREAMED else f"{found} files cannot be read while they are written"


def _connected(address: str, wanted: _Wanted) -> Arriving:
    if wanted.format is None:
        help_ = f"say one of {', '.join(STREAMED)}"
        raise Rejected(
            [Diagnostic("data-format", f"input `{wanted.name}`: `{address}` tells no format", help=help_)]
        )
    kind = _streamed(address, wanted)
    from river.io.live import sockets
    from river.io.live.connections import Connection, Door, Ended, serve
    from river.io.live.texts import ArrivingTexts

    found = sockets.listening(address, wanted.name)
    if found.address != address and wanted.live.tell is not None:
        message = f"input `{wanted.name}` listens at `{found.address}`"
        wanted.live.tell(Diagnostic("data-address", message, severity=Severity.REMARK))
    address = found.address
    stops = wanted.refusals.stops
    door = Door(wanted.live, wanted.name, address, web=address.startswith(TCP), stops=stops)
    wanted.live.doors.append(door)
    texts = ArrivingTexts(wanted.type, wanted.name, wanted.size, kind)

    def text(connection: Connection, inbox: Inbox) -> None:
        origin, line, rest = Origin(wanted.name, connection.label), 1, ""
        reason = None
        try:
            texts.put([(connection, kind)], inbox)
        except Ended:
            return
        except Rejected as rejected:  # of a text that does not fit as a whole, such as by its header
            reason = rejected.diagnostics[0]
        if connection.incomplete is not None and reason is None:
            line, rest = connection.lines + 1, connection.rest
            reason = origin.error(line, "data-incomplete", connection.incomplete).diagnostic
            connection.end(reason)
        elif reason is not None and stops:
            connection.end(reason)
        if reason is not None and not stops:
            error = origin.error(line, reason.code, reason.message, help=reason.help, text=rest)
            inbox.put(Batch([], [], [(0, error)]), 1)

    source = ItemSource(wanted.type, Origin(wanted.name, address), (), wanted.refusals, found.close)

    def read(inbox: Inbox) -> None:
        serve(door, found.socket, inbox, text)

    return Arriving(source, wanted.live, read, texts=texts)


# ------------------------------------------------------------------------------------------------ pipes


def _piped_path(path: str, wanted: _Wanted) -> Arriving | None:
    if path == "-":
        return _piped(sys.stdin.buffer, wanted)
    if not Path(path).is_fifo():
        return None
    kind, packed = format_of(path, wanted.format, wanted.name)
    if packed is not None or kind not in STREAMED:
        return None
    from river.io.live.streams import Pipe

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which does not wait for who writes
    except OSError as error:
        raise Rejected([unreadable(path, error)]) from error
    found = _text([Pipe(wanted.live, path, descriptor)], kind, path, wanted)
    found.source.on_close(lambda: os.close(descriptor))
    return found


def _piped(file: Any, wanted: _Wanted) -> Arriving | None:
    """An open file, if it is a pipe of bytes."""
    from river.io.live.streams import Pipe, is_pipe

    try:
        descriptor = file.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    if not hasattr(file, "readinto") or not is_pipe(descriptor):
        return None
    label = getattr(file, "name", None)
    label = label if isinstance(label, str) else f"<{wanted.name}>"
    kind, packed = format_of(label, wanted.format, wanted.name)
    if packed is not None or kind not in STREAMED:
        return None
    return _text([Pipe(wanted.live, label, descriptor, _begun(file, descriptor))], kind, label, wanted)


def _begun(file: Any, descriptor: int) -> bytes:
    """What `file` has read ahead, taken out of it."""
    if not hasattr(file, "peek") or os.isatty(descriptor):
        return b""
    blocking = os.get_blocking(descriptor)
    os.set_blocking(descriptor, False)
    try:
        ahead = file.peek(1)
    finally:
        os.set_blocking(descriptor, blocking)
    return file.read1(len(ahead)) if ahead else b""


# ------------------------------------------------------------------------------------------------ rows


def _rows(rows: Iterator[Any], wanted: _Wanted) -> Arriving | None:
    """The rows of an iterator, which may wait for them; Arrow data are no such."""
    from river.io import columnar, memory

    if columnar.is_arrow(rows):
        return None
    origin = Origin(wanted.name, rows=True)
    reader = memory.RowDecoder(wanted.type, origin)
    source = ItemSource(wanted.type, origin, (), wanted.refusals)

    def read(inbox: Inbox) -> None:
        for row in rows:
            if not inbox.put(reader.read(row), 1) or wanted.live.stopped:
                break

    def batches(found: list[Any]) -> Iterator[Batch]:
        yield reader.joined(found)

    return Arriving(source, wanted.live, read, batches, patient=True)
