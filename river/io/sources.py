"""The door for inputs: paths, standard input, file objects, Arrow data, frames and iterables become sources.

A folder, or a pattern such as `logs/*.csv`, is its files, one after the other. The format is told by the suffix (`.csv`, `.tsv`,
`.txt`, `.log`, `.jsonl`, `.ndjson`, `.parquet`, `.arrow`, `.feather`, `.ipc`, `.arrows`, `.raw`, `.bin`; texts also with `.gz`
or `.zst` behind it) or by `format`. Standard input (`-`) and file objects without a name need `format`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Rejected, closest
from river.io import delimited, jsonlines, text
from river.io.batches import Batch, FileInput, ItemSource, Origin, RegularFile, RowReader, refusals
from river.io.errors import STOP, OnError, Refusals, missing_file, unreadable
from river.io.scalars import is_scalar
from river.io.schema import arrow, arrow_schema
from river.io.suffixes import SUFFIXES
from river.lang.scope import show
from river.lang.types import BYTES, Record, Type

if TYPE_CHECKING:
    from river.io.columnar import Tables
    from river.io.several import Files, Folders

FORMATS: Final = (*delimited.KINDS, "text", "lines", "jsonl", "parquet", "arrow", "raw", "bits", "wav")
RAW: Final = ("raw", "bits")
PACKED: Final = {".gz": "gzip", ".zst": "zstd"}
STREAMED: Final = (*delimited.KINDS, "text", "lines", "jsonl")


def open_source(
    spec: object,
    type: Type,
    *,
    name: str,
    format: str | None = None,
    on_error: OnError | Refusals = STOP,
    batch: int = 4096,
    by: str | None = None,
    lateness: int = 0,
    folders: Folders = (),
    early: bool = False,
) -> ItemSource:
    """A source of items of `type` for the input `name`; `folders`: the columns that the names of a file's folders say.

    Units: `batch` items; `lateness` in units of the field `by` (microseconds for times). With `by`, the items
    of the source ascend weakly by that field. `early`: the first rows are wanted soon, so they may be read before they are asked
    for. Raises: Rejected for what can be seen before the first row.
    """
    from river.io.several import files_of

    files = files_of(spec)
    counter = refusals(on_error)
    try:
        if files is not None:
            source = _open_files(files, _Wanted(type, name, format, counter, batch), by, lateness)
            source.bytes = sum(map(_bytes, files.paths))
            if counter is not on_error:
                source.on_close(counter.close)
            return source
        wanted = _Wanted(type, name, format, counter, max(batch, 1), early)
        source = _in_folders(spec, wanted, folders) if folders else _open_spec(spec, wanted)
        source.bytes = _bytes(spec)
    except BaseException:
        if counter is not on_error:
            counter.close()
        raise
    if counter is not on_error:  # nobody else counts with it
        source.on_close(counter.close)
    if by is None:
        return source
    key = type.index(by) if isinstance(type, Record) else None
    if key is None:
        source.close()
        raise Rejected([Diagnostic("data-column", f"input `{name}`: `{show(type)}` has no field `{by}`")])
    from river.io.order import ordered

    return ordered(source, key, lateness)


_PER_ROW: Final = 64
"""Bytes of a row of which nothing is known."""

_UNPACKED: Final = 4
"""How much larger a packed file's text is, about."""


def _bytes(spec: Any) -> int:
    """How large an input is, about; 0 where that is not known."""
    match spec:
        case str() | os.PathLike():
            path = Path(cast("str | os.PathLike[str]", spec))
            try:
                found = path.stat()
            except (OSError, ValueError):
                return 0
            packed = _UNPACKED if path.suffix.lower() in PACKED else 1
            return found.st_size * packed if stat.S_ISREG(found.st_mode) else 0
        case _ if isinstance(getattr(spec, "nbytes", None), int):
            return spec.nbytes
        case _ if isinstance(spec, Sized):
            return _PER_ROW * len(spec)
        case _:
            return 0


@frozen
class _Wanted:
    """What the caller of `open_source` asked for."""

    type: Type
    name: str
    format: str | None
    refusals: Refusals
    size: int
    early: bool = False


def _open_files(files: Files, wanted: _Wanted, by: str | None, lateness: int) -> ItemSource:
    from river.io.chained import open_several

    files = evolve(files, format=wanted.format or files.format)

    def opened(path: str, folders: Folders, by: str | None) -> ItemSource:
        return open_source(
            path,
            wanted.type,
            name=wanted.name,
            format=files.format,
            on_error=wanted.refusals,
            batch=wanted.size,
            by=by,
            folders=folders,
        )

    return open_several(files, wanted.type, wanted.name, opened, wanted.refusals, by, lateness)


def _in_folders(spec: object, wanted: _Wanted, folders: Folders) -> ItemSource:
    from river.io.given import filled, given, without

    found = given(wanted.type, folders, str(spec))
    source = _open_spec(spec, evolve(wanted, type=without(wanted.type, found)))
    return filled(source, wanted.type, found, wanted.size)


def _open_spec(spec: object, wanted: _Wanted) -> ItemSource:
    match spec:
        case str() | os.PathLike():
            return _from_path(os.fspath(cast("str | os.PathLike[str]", spec)), wanted)
        case _ if hasattr(spec, "read"):
            return _from_file(spec, wanted)
        case _:
            return _from_memory(spec, wanted)


def _from_memory(spec: object, wanted: _Wanted) -> ItemSource:
    from river.io import (
        columnar,
        memory,
    )  # here and below: what a format needs is imported where somebody reads it

    origin = Origin(wanted.name, rows=True)
    batches = columnar.in_memory(spec, wanted.type, origin, wanted.size)
    if batches is None:
        columns = isinstance(spec, dict)
        if columns or not isinstance(spec, Iterable):
            message = f"input `{wanted.name}`: a {type(cast('object', spec)).__name__} is no source of rows"
            help_ = "give a path, a table, a frame, a list of record batches, a file, or an iterable of dicts"
            if columns:
                help_ = "columns are a table by `pyarrow.table(columns)`"
            raise Rejected([Diagnostic("data-format", message, help=help_)])
        batches = memory.read(cast("Iterable[Any]", spec), wanted.type, origin, wanted.size)
    return ItemSource(wanted.type, origin, batches, wanted.refusals)


def _from_file(file: Any, wanted: _Wanted) -> ItemSource:
    label = getattr(file, "name", None)
    label = label if isinstance(label, str) else f"<{wanted.name}>"
    kind, packed = format_of(label, wanted.format, wanted.name)
    return _open(file, kind, packed, label, wanted)


def _from_path(path: str, wanted: _Wanted) -> ItemSource:
    kind, packed = format_of(path, wanted.format, wanted.name)
    if path == "-":
        return _open(sys.stdin.buffer, kind, None, "<stdin>", wanted)
    try:
        file: Any = Path(path).open("rb")  # noqa: SIM115 - the source closes it
    except FileNotFoundError:
        raise Rejected([missing_file(path)]) from None
    except (OSError, ValueError) as error:  # a name may hold what no file name can
        raise Rejected([unreadable(path, error)]) from error
    try:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        if regular and kind == "parquet":  # its columns are read at once, and not through Python
            file, python = arrow().OSFile(path), file
            python.close()
        source = _open(file, kind, packed, path, wanted, again=regular)
        source.regular = RegularFile(path, kind, packed) if regular else None
    except BaseException:
        file.close()
        raise
    source.on_close(file.close)
    if kind == "parquet":
        source.on_close(cast("Tables", source.batches).end)  # before the file is closed
    elif regular and kind not in STREAMED:
        cast("Tables", source.batches).at_hand = _bytes(path)
    return source


def format_of(path: str, format_: str | None, name: str) -> tuple[str, str | None]:
    """The format of `path` and how it is compressed, if it is.

    Raises: Rejected("data-format") when neither suffix nor `format_` says it.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = PACKED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[-2] if packed and len(suffixes) > 1 else (suffixes[-1] if suffixes else "")
    kind = format_ if format_ is not None else SUFFIXES.get(inner)
    if kind in FORMATS:
        return kind, packed
    known = ", ".join(FORMATS)
    if format_ is not None:
        message = f"input `{name}`: there is no format `{format_}`"
        help_ = closest(format_, FORMATS) or f"the formats are {known}"
    elif path == "-":
        message, help_ = (
            f"input `{name}`: standard input has no suffix that tells its format",
            f"say one of {known}",
        )
    else:
        message = f"input `{name}`: the suffix of `{path}` tells no format"
        help_ = f"say one of {known}, or use a suffix of {', '.join(SUFFIXES)}"
    raise Rejected([Diagnostic("data-format", message, help=help_)])


def _open(
    file: Any, kind: str, packed: str | None, label: str, wanted: _Wanted, *, again: bool = False
) -> ItemSource:
    """A source of an open file; `again`: its label is a path that can be opened a second time."""
    if packed is not None and kind not in STREAMED:
        why = "raw files are not compressed" if kind in RAW else f"{kind} files carry their own compression"
        raise Rejected([Diagnostic("data-format", f"`{label}`: {why}")])
    origin = Origin(wanted.name, label, rows=kind not in STREAMED)
    if kind not in STREAMED:
        batches = _columns(file, kind, label, origin, wanted, early=again and wanted.early)
        return ItemSource(wanted.type, origin, batches, wanted.refusals)
    if packed is not None and _at_end(file):
        raise Rejected([unreadable(label, EOFError(f"a {packed} file is never empty: it was not written"))])
    reader, batches = read_text(unpacked(file, packed), kind, wanted.type, origin, wanted.size)
    described = None
    if again:
        described = FileInput(label, kind, packed, wanted.type, origin, wanted.refusals, wanted.size, reader)
    return ItemSource(wanted.type, origin, batches, wanted.refusals, file=described)


def _columns(
    file: Any, kind: str, label: str, origin: Origin, wanted: _Wanted, *, early: bool
) -> Iterator[Batch]:
    """What an open file holds that is no text; `early`: see `columnar.parquet`."""
    from river.io import columnar

    if kind == "parquet":
        return columnar.parquet(file, wanted.type, origin, wanted.size, early=early)
    if kind == "arrow":
        return columnar.ipc(file, wanted.type, origin, wanted.size)
    if kind == "wav":
        from river.io import wav

        wav.check(wanted.type, f"input `{wanted.name}`")
        found = wav.batches(file, wanted.type, label)
    else:
        from river.io import raw

        raw.check(wanted.type, kind, f"input `{wanted.name}`", written=False)
        found = raw.batches(file, wanted.type, kind, label)
    return columnar.read(arrow_schema(wanted.type), lambda _: found, wanted.type, origin, wanted.size)


def is_line(type_: Type) -> bool:
    """Whether a line can say an item: a value, or a record of one."""
    match type_:
        case Record(((_, kind),)):
            return is_scalar(kind)
        case _:
            return is_scalar(type_)


def _at_end(file: Any) -> bool:
    """Whether there is nothing in an open file, as far as that can be told."""
    if not getattr(file, "seekable", bool)():
        return False
    here = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(here)
    return here == end


def unpacked(file: Any, packed: str | None) -> Any:
    """The bytes that an open file holds; `packed`: `gzip`, `zstd` or None."""
    match packed:
        case "gzip":
            from gzip import GzipFile

            return GzipFile(fileobj=file, mode="rb")
        case "zstd":
            return arrow().CompressedInputStream(file, "zstd")
        case _:
            return file


def read_text(
    file: Any, kind: str, type_: Type, origin: Origin, size: int
) -> tuple[RowReader, Iterator[Batch]]:
    """The rules for the rows of a text, and their batches; what comes before the rows is read now. Raises: Rejected."""
    label = origin.file or origin.input
    lines = text.blocks(file, label, size)
    match kind:
        case _ if kind in delimited.KINDS:
            return delimited.open_delimited(lines, type_, origin, kind)
        case "text":
            if not is_line(type_):
                message = f"input `{origin.input}`: lines of text hold single values, not `{show(type_)}`"
                raise Rejected([Diagnostic("data-format", message, help="use csv or jsonl")])
            reader = delimited.Lines(type_, origin)
        case "lines":
            if type_ != BYTES:
                message = f"input `{origin.input}`: lines as they are hold `bytes`, not `{show(type_)}`"
                raise Rejected([Diagnostic("data-format", message, help="use text, csv or jsonl")])
            reader = delimited.Plain()
        case _:
            reader = jsonlines.Lines(type_, origin)
    return reader, reader.rest(lines, 0)
