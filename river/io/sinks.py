"""The door for outputs: files, standard output, terminals and tables in memory take batches of items.

Formats: csv, tsv, text, jsonl, parquet, arrow, `table` (aligned columns for a reader) and `entries` (`name[index] = value`). The
suffix tells the format, or `format` does; standard output is a table on a terminal and csv elsewhere. Reading a file that was
written gives the same values back (`sources`), but for the last two. Who has the items in another form may hand over what they
become: `TextSink` takes lines, `ArrowSink` record batches.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast, runtime_checkable

from river.classes import frozen
from river.diagnostics import Diagnostic, Rejected, closest
from river.io import scalars
from river.io.atomic import AtomicOutput
from river.io.encode import encoder
from river.io.errors import unwritable
from river.io.schema import arrow, arrow_schema, columns, growable, to_batch
from river.io.sources import RAW, is_line
from river.io.suffixes import SUFFIXES
from river.lang import memory
from river.lang.scope import show
from river.lang.types import BYTES, STRING, Optional, Record, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from river.io.display import Entry

FORMATS: Final = ("csv", "tsv", "text", "jsonl", "parquet", "arrow", "raw", "bits", "wav", "table", "entries")
GROUP: Final = 1 << 17
"""Rows of an Arrow record batch that is made of items, and of a group of a Parquet file, of which the last has fewer."""

_WAITING, _WAITING_ROWS = 8, 1 << 12  # batches, and rows, of a collected output that are not yet Arrow data


class Sink(Protocol):
    """An open output. `close` completes it, `abort` gives it up; leaving a `with` does one or the other."""

    def write(self, items: Sequence[Any]) -> None:
        """Append items, in order."""
        ...

    def close(self) -> None:
        """Complete the output."""
        ...

    def abort(self) -> None:
        """Give the output up: a file that was there before stays as it was."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None: ...


@runtime_checkable
class TextSink(Sink, Protocol):
    """A sink of csv, tsv, jsonl, text or entries: lines of items of `type`. `entry`: how lines of entries are."""

    format: str
    type: Type
    entry: Entry | None

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Append lines as `write` would make them, in UTF-8; `data` may change afterwards."""
        ...


@runtime_checkable
class ArrowSink(Sink, Protocol):
    """A sink of Arrow data: `type` is that of the items, as they are kept."""

    type: Type

    def write_table(self, batch: Any) -> None:
        """Append a record batch of the schema `schema.arrow_schema(type)`."""
        ...


@runtime_checkable
class DividingSink(ArrowSink, Protocol):
    """A sink of Arrow data that divides rows among sinks; `taker` says how record batches of a type get to one of these."""

    taker: Callable[[Type, Sink], Callable[[Any], None]]


class Scoped:
    """`with` for sinks, which say what it means to close and to abort."""

    def close(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


@frozen(eq=False)
class Later:
    """Rows in columns that become a record batch when somebody asks for them; a slice of `rows` is fewer of them."""

    rows: Any
    make: Callable[[Any], Any]

    @property
    def num_rows(self) -> int:
        """How many they are."""
        return len(self.rows)

    def slice(self, start: int, length: int) -> Later:
        """Some of them."""
        return Later(self.rows[start : start + length], self.make)


class Collector(Scoped):
    """A sink that keeps what it gets, for the caller to take as a table.

    A few rows wait until they are asked for: pyarrow takes longer to import than a short run takes. More of them become Arrow
    data at once, since they keep the memory that they came in.
    """

    def __init__(self, type_: Type) -> None:
        self.type = type_
        self.items: list[Any] = []
        self._batches: list[Any] = []
        self._waiting: list[Later] | None = []

    def write(self, items: Sequence[Any]) -> None:
        self._settle()
        self.items.extend(items)

    def write_table(self, batch: Any) -> None:
        self._flush()
        if isinstance(batch, Later) and self._waiting is not None:
            self._waiting.append(batch)
            if len(self._waiting) > _WAITING or sum(each.num_rows for each in self._waiting) > _WAITING_ROWS:
                self._settle()
        else:
            self._settle()
            self._batches.append(_batch(batch))

    def _settle(self) -> None:
        """Makes what waits; nothing will wait any more."""
        if self._waiting is not None:
            self._batches.extend(map(_batch, self._waiting))
            self._waiting = None

    def _flush(self) -> None:
        if self.items:
            self._batches.append(to_batch(self.type, self.items))
            self.items = []

    def close(self) -> None:
        """Nothing is left to do."""

    def abort(self) -> None:
        self.items.clear()
        self._batches.clear()
        self._waiting = None

    def table(self) -> Any:
        """The items as a pyarrow Table."""
        self._settle()
        self._flush()
        if not self._batches:
            self._batches.append(to_batch(self.type, ()))
        return arrow().Table.from_batches(self._batches)


def _batch(given: Any) -> Any:
    """The record batch that is given, or will be."""
    return given.make(given.rows) if isinstance(given, Later) else given


class _TextSink(Scoped):
    """Lines of text."""

    def __init__(
        self,
        output: AtomicOutput,
        type_: Type,
        format_: str,
        header: str,
        lines: Callable[[Sequence[Any]], str],
        entry: Entry | None = None,
    ) -> None:
        self.type = type_
        self.format = format_
        self.entry = entry
        self._output = output
        self._lines = lines
        self._write(header)

    def _write(self, text: str) -> None:
        if text:
            self._guarded(lambda: self._output.write(text))

    def write_bytes(self, data: bytes | memoryview) -> None:
        if data:
            self._guarded(lambda: self._output.write_bytes(data))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException:
            self._output.abort()
            raise

    def write(self, items: Sequence[Any]) -> None:
        self._write(self._lines(items))

    def settled(self) -> int | None:
        """How many bytes have been written, which are on the disk now. Raises: Rejected("data-output")."""
        return self._output.settled()

    def close(self) -> None:
        self._output.close()

    def abort(self) -> None:
        self._output.abort()


class ColumnarSink(Scoped):
    """Items and record batches as record batches, for a format of columns: that says what becomes of one, and of the end.

    `eager`: each write of items is one, else they are collected.
    """

    def __init__(self, output: AtomicOutput, type_: Type, *, eager: bool = False) -> None:
        self.type = type_
        self._output = output
        self._eager = eager
        self._items: list[Any] = []

    def _add(self, batch: Any) -> None:
        """Appends a record batch."""
        raise NotImplementedError

    def _end(self) -> None:
        """Writes what stands at the end."""
        raise NotImplementedError

    def write(self, items: Sequence[Any]) -> None:
        self._items.extend(items)
        if len(self._items) >= GROUP or self._eager:
            self._flush()

    def write_table(self, batch: Any) -> None:
        self._flush()
        self._guarded(lambda: self._add(batch))

    def _flush(self) -> None:
        items, self._items = self._items, []
        if items:
            self._guarded(lambda: self._add(to_batch(self.type, items)))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
            self._output.hasten()
        except BrokenPipeError:  # the reader has had enough: for the command line to decide
            self.abort()
            raise
        except (OSError, arrow().ArrowException) as error:
            self.abort()
            if memory.refused(error) and memory.limited() is not None:
                raise
            raise Rejected([unwritable(self._output.label, error)]) from error

    def close(self) -> None:
        self._flush()
        self._guarded(self._end)
        self._output.close()


class _ArrowSink(ColumnarSink):
    """Record batches for a writer of pyarrow's."""

    def __init__(self, output: AtomicOutput, type_: Type, writer: Any) -> None:
        super().__init__(output, type_, eager=output.streaming)
        self._writer = writer

    def _add(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def _end(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        with suppress(OSError, arrow().ArrowException):  # else it writes its end when it is collected
            self._writer.close()
        self._output.abort()


def open_sink(
    target: object,
    type: Type,
    *,
    name: str,
    format: str | None = None,
    in_place: bool = False,
    resume: int | None = None,
    index: tuple[int, int] = (0, 0),
) -> Sink:
    """A sink for items of `type` of the output `name`; `target` is a path, `-`, an open file, or None to collect.

    It may be an output that is open already, whose format is stated. A file appears when it is complete, or `in_place` as it is
    written, but for Parquet, which cannot be read before its end.
    `resume`: lines are appended to the first so many bytes of the file. `index`: how many of the first fields are an index, and
    how many deviations stand behind.

    Raises: Rejected("data-format") for a format that is not known or cannot hold the type, ("data-output").
    """
    if target is None:
        return Collector(type)
    kind = format_of_target(target, format, name)
    if kind in ("parquet", "arrow"):
        arrow_schema(type)
    elif _is_wav(kind):
        from river.io import wav  # here and below: what a format needs is imported where somebody writes it

        wav.check(type, f"output `{name}`")
    elif kind in RAW:
        from river.io import raw

        raw.check(type, kind, f"output `{name}`", written=True)
    elif kind not in ("jsonl", "entries"):
        columns(type)
    if kind == "text" and not is_line(type):
        message = f"output `{name}`: lines of text hold single values, not `{show(type)}`"
        raise Rejected([Diagnostic("data-format", message, help="use csv or jsonl")])
    if isinstance(target, AtomicOutput):
        output = target
    else:
        output = AtomicOutput(target, in_place=in_place and kind != "parquet", resume=resume)
    if kind == "entries":
        from river.io.display import Entry, entries

        entry = Entry(name, index)
        return _TextSink(output, type, kind, "", entries(entry, type), entry)
    return _open(output, kind, type, begun=resume is not None)


def _is_wav(kind: str) -> bool:
    """Whether a format is that of sound, with a rate or without."""
    if not kind.startswith("wav"):
        return False
    from river.io.wav import is_wav

    return is_wav(kind)


def known_format(stated: str | None, name: str) -> str | None:
    """The format that was stated for output `name`, if one was. Raises: Rejected("data-format")."""
    if stated is None or stated in FORMATS or _is_wav(stated):
        return stated
    help_ = closest(stated, FORMATS) or f"the formats are {', '.join(FORMATS)}"
    raise Rejected([Diagnostic("data-format", f"output `{name}`: there is no format `{stated}`", help=help_)])


def format_of_target(target: object, format_: str | None, name: str) -> str:
    """The format of a target. Raises: Rejected("data-format")."""
    stated = known_format(format_, name)
    if stated is not None:
        return stated
    if isinstance(target, str | os.PathLike):
        path = os.fspath(cast("str | os.PathLike[str]", target))
    else:
        path = str(getattr(target, "name", ""))
    if path == "-":
        return "table" if sys.stdout.isatty() else "csv"
    kind = SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        message = f"output `{name}`: the suffix of `{path}` tells no format"
        help_ = f"say one of {', '.join(FORMATS)}, or use a suffix of {', '.join(SUFFIXES)}"
        raise Rejected([Diagnostic("data-format", message, help=help_)])
    return kind


def _open(output: AtomicOutput, kind: str, type_: Type, *, begun: bool = False) -> Sink:
    match kind:
        case "csv" | "tsv":
            delimiter = "," if kind == "csv" else "\t"
            header = delimiter.join(quoted(column, delimiter) for column, _ in columns(type_))
            header = "" if begun else header + "\n"
            return _TextSink(output, type_, kind, header, csv_lines(type_, delimiter))
        case "text":
            return _TextSink(output, type_, kind, "", _plain_lines(type_, output.label))
        case "jsonl":
            encode = encoder(type_)
            return _TextSink(
                output, type_, kind, "", lambda items: "".join([encode(item) + "\n" for item in items])
            )
        case "raw" | "bits":
            from river.io.further_sinks import RawOutput

            return RawOutput(output, type_, kind)
        case _ if _is_wav(kind):
            from river.io.further_sinks import WavOutput

            return WavOutput(output, type_, kind)
        case "table":
            from river.io.further_sinks import TableOutput

            return TableOutput(output, type_)
        case "parquet":
            from river.io.groups import ParquetSink

            return ParquetSink(output, growable(type_))
        case _:
            new = arrow("ipc").new_stream if output.streaming else arrow("ipc").new_file
            schema = arrow_schema(type_)
            return _ArrowSink(output, type_, new(output.file, schema))


def csv_lines(type_: Type, delimiter: str) -> Callable[[Sequence[Any]], str]:
    """The function from items to CSV records; `delimited` reads them back."""
    cells = [_cell(t, delimiter) for _, t in columns(type_)]
    if not isinstance(type_, Record):
        one = cells[0]
        return lambda items: "".join([one(item) + "\n" for item in items])
    return lambda items: "".join(
        [delimiter.join([f(v) for f, v in zip(cells, item, strict=True)]) + "\n" for item in items]
    )


def _cell(type_: Type, delimiter: str) -> Callable[[Any], str]:
    """The function from values to cells: none is empty, an empty text for an optional is quoted."""
    if isinstance(type_, Optional):
        some = _cell(type_.inner, delimiter)
        if type_.inner in (STRING, BYTES):
            return lambda value: "" if value is None else some(value) or '""'
        return lambda value: "" if value is None else some(value)
    if not scalars.is_scalar(type_):
        encode = encoder(type_)
        return lambda value: quoted(encode(value), delimiter)
    text = scalars.formatter(type_)
    return (lambda value: quoted(text(value), delimiter)) if type_ == STRING else text


def quoted(text: str, delimiter: str) -> str:
    """A cell, in quotes if it needs them."""
    if '"' in text or delimiter in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _plain_lines(type_: Type, label: str) -> Callable[[Sequence[Any]], str]:
    ((_, kind),) = columns(type_)
    text, record = scalars.formatter(kind), isinstance(type_, Record)

    def lines(items: Sequence[Any]) -> str:
        texts = [text(item[0]) for item in items] if record else [text(item) for item in items]
        for line in texts:
            if "\n" in line or line.endswith("\r"):
                reason = ValueError("a string with a line end is no line of text")
                raise Rejected([unwritable(label, reason)])
        return "".join([line + "\n" for line in texts])

    return lines
