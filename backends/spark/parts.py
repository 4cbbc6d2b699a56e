"""Files as parts that executors read, each by itself, under the rules of all readers.

A part of a text begins behind the first line feed at or after a certain byte, and ends where the next part begins. Whether a
record begins there nobody needs to know: a part that begins inside quotes follows one that ends inside them, which is an error
there. So parts of which none has an error are the file; where one has, the file is read as a whole, and the error is told then.

Paper: River §4.4 (mappers read parts of files).
"""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import Batch
from backends.native.ingest import form_of, open_native
from backends.native.ingest.tables import converted
from river.classes import frozen
from river.diagnostics import Diagnostic, Rejected
from river.io import columnar, order
from river.io.batches import ItemSource, Origin
from river.io.errors import STOP, Refusals
from river.io.given import given, without
from river.io.several import Files
from river.io.sources import format_of, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from river.il.graph import Queue
    from river.io.several import Folders

LEAST: Final = 1 << 20
MOST: Final = 1 << 26
"""Bytes of a part: fewer are not worth a task, more not worth the memory."""

EACH: Final = 2
"""Parts for each worker, at least: they are not equally long."""

UNPACKED: Final = 8
"""Bytes that a byte of a packed file becomes, about."""

_TABLES: Final = ("parquet", "arrow")
_LOOK: Final = 1 << 16


@frozen
class GivenFile:
    """A file as the driver has seen it: an executor that finds another one under its path must not read that.

    `folders`: the columns that the names of its folders say.
    """

    path: str
    format: str
    packed: str | None
    size: int
    changed: int
    folders: Folders = ()

    def cells(self) -> list[Any]:
        """As JSON has it."""
        return [
            self.path,
            self.format,
            self.packed,
            self.size,
            self.changed,
            *([self.folders] if self.folders else []),
        ]

    @staticmethod
    def of(cells: Sequence[Any]) -> GivenFile:
        """The file that such cells say."""
        path, format_, packed, size, changed, *more = cells
        folders = tuple((name, text) for each in more for name, text in each)
        return GivenFile(path, format_, packed, size, changed, folders)

    def parts(self, workers: int, *, whole: bool = False) -> int:
        """Into how many parts it is divided. `whole`: what comes of a part is as large as what comes of all of them.

        Then one task has to read that of each part: more of them than the root of the size make it the slowest.
        """
        return 1 if self.packed is not None else _parts(self.size, workers, whole=whole)

    def check(self) -> None:
        """Sees that it is here, and the same. Raises: Rejected("data-unreadable")."""
        try:
            found = Path(self.path).stat()
        except OSError as error:
            raise Rejected([_other(self.path, "it is not there")]) from error
        if (found.st_size, found.st_mtime_ns) != (self.size, self.changed):
            raise Rejected([_other(self.path, "it has changed, or is another one here")])


def _parts(size: int, workers: int, *, whole: bool) -> int:
    """Into how many parts so many bytes are divided."""
    length = min(max(size // (EACH * workers), LEAST), MOST)
    count = max(1, -(-size // length))
    return min(count, max(EACH, isqrt(16 * size // LEAST))) if whole else count


def divided(given: Sequence[GivenFile], workers: int, *, whole: bool) -> tuple[tuple[GivenFile, int], ...]:
    """The files of an input, each with the number of its parts; 0 if it is read together with the one before.

    So small files are: a task for each of them would take longer than all else. `whole`: see `GivenFile.parts`.
    """
    sizes = [file.size * (1 if file.packed is None else UNPACKED) for file in given]
    length = sum(sizes) // _parts(sum(sizes), workers, whole=whole)
    found: list[tuple[GivenFile, int]] = []
    room = 0
    for file, size in zip(given, sizes, strict=True):
        count = file.parts(workers, whole=whole)
        together = count == 1 and bool(found) and size <= room
        room = (room if together else length) - size if count == 1 else 0
        found.append((file, 0 if together else count))
    return tuple(found)


def portions(
    files: Mapping[str, Sequence[GivenFile]], length: int
) -> list[list[tuple[str, GivenFile, columnar.Share]]]:
    """What tasks read that have about so many bytes each, in the order of inputs and files: input, file, and which part of it.

    Small files are read together. At most one task for each packed file, however long it is.
    """
    found: list[list[tuple[str, GivenFile, columnar.Share]]] = []
    room = 0
    for name, ours in files.items():
        for file in ours:
            count = 1 if file.packed is not None else max(1, -(-file.size // length))
            for number in range(count):
                size = file.size // count
                if not found or size > room:
                    found.append([])
                    room = length
                found[-1].append((name, file, (number, count)))
                room -= size
    return found


def _other(path: str, why: str) -> Diagnostic:
    return Diagnostic("data-unreadable", f"cannot read `{path}`: {why}")


def given_files(source: ItemSource) -> tuple[GivenFile, ...]:
    """The files behind a source, if parts of the first can be read by machine code, under the rules of the source; else none.

    Of other files this shows when they are read.
    """
    if source.several is None:
        return tuple(filter(None, [given_file(source)]))
    if source.members is None or source.ordering is not None:  # rows may be late
        return ()
    found: list[GivenFile] = []
    for member in source.members():
        first = given_file(member)
        member.close()
        if first is None:
            return ()
        break
    for path, folders in source.several.each():
        try:
            kind, packed = format_of(path, source.several.format, source.name)
            state = Path(path).stat()
        except (OSError, Rejected):  # who opens it says what is wrong
            return ()
        place = str(Path(path).absolute())
        found.append(GivenFile(place, kind, packed, state.st_size, state.st_mtime_ns, folders))
    return tuple(found)


def as_one(files: Sequence[GivenFile]) -> str | Files:
    """Files as the data of an input."""
    if len(files) == 1 and not files[0].folders:
        return files[0].path
    kinds = {file.format for file in files}
    format_ = min(kinds) if len(kinds) == 1 else None
    paths, folders = (
        tuple(each) for each in zip(*((file.path, file.folders) for file in files), strict=True)
    )
    return Files(paths, files[0].path, format_, folders)


def given_file(source: ItemSource) -> GivenFile | None:
    """The file behind a source, if parts of it can be read by machine code, under the rules of the source."""
    found = source.regular
    if found is None or not (found.format in _TABLES or form_of(source) is not None):
        return None
    try:
        state = Path(found.path).stat()
    except OSError:  # who opens it says what is wrong
        return None
    return GivenFile(
        str(Path(found.path).absolute()), found.format, found.packed, state.st_size, state.st_mtime_ns
    )


def read(
    file: GivenFile, queue: Queue, share: columnar.Share, used: frozenset[str] | None = None
) -> Iterator[Batch]:
    """The items of an input in one part of its file, of so many. `used`: see `open_native`.

    Raises: Rejected for what is wrong with them, their order among themselves included; what is said of their lines counts
    from the beginning of the part.
    """
    from river.backend import BATCH

    file.check()
    if file.format in _TABLES:
        yield from _rows(file, queue, share, BATCH)
        return
    source = open_source(
        file.path,
        queue.type,
        name=queue.name,
        format=file.format,
        batch=BATCH,
        by=queue.by,
        folders=file.folders,
    )
    reader = open_native(source, BATCH, used)
    if reader is None:
        source.close()
        raise Rejected([_other(file.path, "there is no machine code for it here")])
    number, of = share
    if of > 1:
        start, stop = (_border(file, file.size * each // of) for each in (number, number + 1))
        if start == stop:
            reader.close()
            return
        reader.begin(start, 0, None, stop)
    yield from reader


def _border(file: GivenFile, place: int) -> int:
    """Where the part begins that is to begin at a place: behind the first line feed that does not stand before."""
    if place in (0, file.size):
        return place
    with Path(file.path).open("rb") as opened:
        opened.seek(place - 1)
        while block := opened.read(_LOOK):
            end = block.find(b"\n")
            if end >= 0:
                return opened.tell() - len(block) + end + 1
    return file.size


def _rows(file: GivenFile, queue: Queue, share: columnar.Share, size: int) -> Iterator[Batch]:
    """The items of row groups, or of record batches."""
    opener = columnar.parquet if file.format == "parquet" else columnar.ipc
    with Path(file.path).open("rb") as opened:
        origin = Origin(queue.name, file.path, rows=True)
        known = given(queue.type, file.folders, file.path)
        type_ = without(queue.type, known)
        tables = opener(opened, type_, origin, size, share)
        if known:
            tables = columnar.filled(tables, queue.type, known, size)
        source = ItemSource(queue.type, origin, tables, Refusals(STOP))
        key = queue.key()
        if key is not None:
            source = order.ordered(source, key)
        for items in converted(source, tables, size):
            yield items if isinstance(items, Batch) else Batch.of(queue.type, items)
