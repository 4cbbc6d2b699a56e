"""Outputs that are divided by columns: rows with the same values in them go to a folder of their own, named as Hive names it.

A row whose `day` is 2024-01-31 and whose `region` is `EU/West` is in `day=2024-01-31/region=EU%2FWest/`, and its file has the
other columns only. Who reads such folders (Spark, Hive, `pyarrow.dataset`) takes these columns from their names.
"""

from __future__ import annotations

import os
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from river.classes import define
from river.diagnostics import Diagnostic, Rejected, closest
from river.io import scalars
from river.io.atomic import AtomicOutput
from river.io.errors import unwritable
from river.io.folders import FORMATS, escaped
from river.io.given import names_folders
from river.io.schema import arrow, arrow_schema, columns, from_arrow, to_batch
from river.io.several import NULL
from river.io.sinks import Scoped, open_sink
from river.lang.scope import show
from river.lang.types import FLOATS, Optional, Record, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from river.io.folders import FolderOutput, Partitions
    from river.io.sinks import Sink

OPEN: Final = 100
"""Files of an output that are open at once: for one more, that which has waited longest for rows is completed."""

HELD: Final = 64 << 20
"""Bytes of rows that wait to be divided: to write few rows to each of many files is slow, and makes more of them."""


def divisible(name: str, type_: Type, by: Sequence[str]) -> Record:
    """The type of the rows of output `name`, if columns `by` can divide them. Raises: Rejected("data-partition")."""
    if not isinstance(type_, Record):
        raise _refused(name, f"is of `{show(type_)}`, which has no columns")
    types = dict(type_.fields)
    for column in by:
        if column not in types:
            help_ = closest(column, types) or f"its columns are {', '.join(types)}"
            raise _refused(name, f"has no column `{column}`", help_)
        if not names_folders(types[column]):
            message = f"cannot be divided by `{column}`: values of `{show(types[column])}` name no folders"
            raise _refused(
                name, message, "choose columns of texts, numbers, truth values, times or durations"
            )
        if column.startswith(("_", ".")):
            message = f"cannot be divided by `{column}`: readers pass over folders whose names begin so"
            raise _refused(name, message, "give the column another name")
    if len(set(by)) < len(by) or not by:
        raise _refused(name, "is divided by a column twice" if by else "is divided by no column")
    if len(by) == len(types):
        raise _refused(name, "is divided by all its columns, and files would have none", "leave one out")
    try:
        arrow_schema(type_)
    except Rejected as rejected:
        raise _refused(name, f"cannot be divided: {rejected.diagnostics[0].message}") from rejected
    return type_


def _refused(name: str, message: str, help_: str | None = None) -> Rejected:
    return Rejected([Diagnostic("data-partition", f"output `{name}` {message}", help=help_)])


# ------------------------------------------------------------------------------------------------------------- rows


@define(eq=False)
class _Part:
    """An open file of a folder. `take` gives it record batches."""

    file: str
    sink: Sink
    take: Callable[[Any], None]
    rows: int = 0


class PartitionedSink(Scoped):
    """A sink of rows of `type` whose files are below `target.root`, which `folder` commits if that is its to do.

    `taker` says how record batches get to the sink of a file: who can, makes its text without Python.
    """

    def __init__(
        self, target: Partitions, type_: Type, name: str, folder: FolderOutput | None = None
    ) -> None:
        self.type = divisible(name, type_, target.by)
        if target.format == "text":
            raise _refused(name, "is rows, and lines of text hold single values", "use csv or jsonl")
        self.taker: Callable[[Type, Sink], Callable[[Any], None]] = _by_items
        self._target = target
        self._name = name
        self._folder = folder
        self._label = target.root if folder is None else folder.label
        self._rest = Record(tuple(each for each in self.type.fields if each[0] not in target.by))
        self._parts: dict[str, _Part] = {}  # that which has waited longest stands first
        self._held: list[Any] = []
        self._bytes = 0

    def write(self, items: Sequence[Any]) -> None:
        if items:
            self.write_table(to_batch(self.type, items))

    def write_table(self, batch: Any) -> None:
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= HELD:
            self._flush()

    def _flush(self) -> None:
        held, self._held, self._bytes = self._held, [], 0
        if not held:
            return
        table = arrow().Table.from_batches(held, arrow_schema(self.type))
        for path, rows in _divided(self._name, self.type, self._target.by, table):
            part = self._parts.pop(path, None) or self._begun(path)
            self._parts[path] = part
            part.rows += rows.num_rows
            for batch in rows.to_batches():
                part.take(batch)

    def _begun(self, path: str) -> _Part:
        """A new file in a folder. Raises: Rejected("data-output")."""
        if len(self._parts) >= OPEN:
            self._end(next(iter(self._parts)))
        home = Path(self._target.root)  # which is not made: where it is gone, the run has ended
        try:
            for step in path.split("/"):
                home /= step
                home.mkdir(exist_ok=True)
        except OSError as error:
            raise Rejected([unwritable(f"{self._label.rstrip('/')}/{path}", error)]) from error
        named = self._target.named
        stem = os.urandom(16).hex() if named is None else named()
        file = f"{home}/{stem}.{FORMATS[self._target.format]}"
        output = AtomicOutput(file, in_place=named is not None)
        output.label = self._label
        sink = open_sink(output, self._rest, name=self._name, format=self._target.format)
        return _Part(file, sink, self.taker(self._rest, sink))

    def _end(self, path: str) -> None:
        part = self._parts[path]
        part.sink.close()
        del self._parts[path]
        self._target.files.append((part.file, part.rows))

    def complete(self) -> None:
        """Completes all files, which are not at their places then. Raises: Rejected("data-partition", "data-output")."""
        try:
            self._flush()
            for path in list(self._parts):
                self._end(path)
        except BaseException:
            self.abort()
            raise

    def close(self) -> None:
        self.complete()
        if self._folder is not None:
            if self._target.files:  # else others may have brought files
                self._folder.adopt(self._target.files)
            self._folder.close()

    def abort(self) -> None:
        self._held = []
        for part in self._parts.values():
            part.sink.abort()
        self._parts = {}
        if self._folder is not None:
            self._folder.abort()


def rows_of(type_: Type, records: Any) -> list[Any]:
    """The rows of a record batch as items."""
    cells = [from_arrow(of, records.column(name)) for name, of in columns(type_)]
    return list(zip(*cells, strict=True))


def _by_items(type_: Type, sink: Sink) -> Callable[[Any], None]:
    return lambda records: sink.write(rows_of(type_, records))


# ---------------------------------------------------------------------------------------------------------- folders


def _divided(name: str, type_: Record, by: Sequence[str], table: Any) -> Iterator[tuple[str, Any]]:
    """The folders of the rows of a table, each with the rest of its rows, in order. Raises: Rejected("data-partition")."""
    pa, compute = arrow(), arrow("compute")
    types = dict(type_.fields)
    paths, codes = [""], pa.repeat(pa.scalar(0, pa.int64()), table.num_rows)
    for column in by:
        folders, each = _folders(name, column, types[column], table.column(column).combine_chunks())
        count = len(folders)
        both = compute.add(compute.multiply(codes, count), each).dictionary_encode()
        seen = both.dictionary.to_pylist()  # as many as there are combinations, not rows
        paths = [f"{paths[code // count]}/{folders[code % count]}" for code in seen]
        codes = both.indices.cast(pa.int64())
    order = compute.array_sort_indices(codes)  # which is stable
    rows = table.drop_columns(list(by)).combine_chunks().take(order).combine_chunks()
    runs = compute.run_end_encode(codes.take(order))
    start = 0
    for end, code in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield paths[code][1:], rows.slice(start, end - start)
        start = end


def _folders(name: str, column: str, type_: Type, values: Any) -> tuple[list[str], Any]:
    """The folders' names for a column's values, each once, and which of them is that of each value."""
    pa = arrow()
    inner = type_.inner if isinstance(type_, Optional) else type_
    plain = values.type
    if inner in FLOATS:  # of which some are equal and have different texts
        values = values.view(pa.int32() if plain == pa.float32() else pa.int64())
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = from_arrow(type_, encoded.dictionary.view(plain) if inner in FLOATS else encoded.dictionary)
    text = scalars.formatter(inner)
    names = [f"{escaped(column)}={_named(name, column, inner, value, text)}" for value in distinct]
    places = {folder: place for place, folder in enumerate(dict.fromkeys(names))}
    each = pa.array([places[folder] for folder in names], pa.int64()).take(encoded.indices)
    return list(places), each


def _named(name: str, column: str, type_: Type, value: Any, text: Callable[[Any], str]) -> str:
    """What a value is in the name of a folder."""
    if value is None:
        return NULL
    if type_ in FLOATS and (isnan(value) or isinf(value)):  # as Java says it
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    found = text(value)
    if found in ("", NULL):
        message = f"cannot be divided by `{column}`, which has {'an empty text' if not found else f'the text `{NULL}`'} in a row"
        raise _refused(name, message, "readers would take it for a missing value: write another text for it")
    return escaped(found)
