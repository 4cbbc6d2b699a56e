"""Parquet files as outputs: groups of rows that are encoded by themselves, side by side where there are several cores.

A library's writer works on one column of one group at a time, so each group is a file of its own in memory, and the output is
these one behind the other, with one end (`footers`). How rows come has no part in it: the same rows are the same bytes.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Any, Final

from river.aside import Aside
from river.io import scalars
from river.io.footers import MAGIC, Footer
from river.io.schema import arrow, arrow_schema, columns
from river.io.sinks import GROUP, ColumnarSink
from river.lang import memory
from river.lang.types import UNIT, Optional, Type
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.io.atomic import AtomicOutput

GROUP_BYTES: Final = 64 << 20
"""Bytes of rows of which a group is made, although it has fewer than `GROUP` rows."""

DICTIONARY: Final = 64 << 10
"""Bytes of different values of a column in a row group, up to which its rows name them, where columns are parts of others."""

_OFTEN, _SEEN = 2, 1 << 14
"""How often a value comes on average, among so many, for a column to name its values: otherwise that is slow, and no shorter."""

_WORDS: Final[dict[int, Any]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""By size, how memory is looked at as numbers."""


class ParquetSink(ColumnarSink):
    """Items and record batches as a Parquet file. As many groups are encoded at once as there are cores."""

    def __init__(self, output: AtomicOutput, type_: Type) -> None:
        super().__init__(output, type_)
        self._batches: deque[Any] = deque()
        self._rows = self._bytes = 0  # of the batches
        self._options: Mapping[str, Any] | None = None
        self._encoding: deque[Aside[Any]] = deque()
        self._cores = here().cores if memory.limited() is None else 1  # each group takes some
        self._footer = Footer()
        self._at = 0

    def abort(self) -> None:
        self._items, self._batches = [], deque()
        while self._encoding:
            self._encoding.popleft().done(None)
        self._output.abort()

    def _add(self, batch: Any) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        while self._rows >= GROUP:
            self._group(GROUP)
        if self._bytes >= GROUP_BYTES:
            self._group(self._rows)

    def _group(self, rows: int) -> None:
        """Has the first rows of the batches encoded."""
        self._rows -= rows
        taken: list[Any] = []
        while rows:
            batch = self._batches.popleft()
            if batch.num_rows > rows:
                self._batches.appendleft(batch.slice(rows))
                batch = batch.slice(0, rows)
            taken.append(batch)
            rows -= batch.num_rows
        self._bytes = sum(each.nbytes for each in self._batches)
        table = arrow().Table.from_batches(taken)
        if self._options is None:
            self._options = _encodings(self.type, table)
        make = partial(_encoded, arrow_schema(self.type), table, self._options)
        if self._cores == 1:
            self._put(make())
            return
        while len(self._encoding) >= self._cores or (self._encoding and self._encoding[0].done()):
            self._put(self._encoding.popleft().result())
        self._encoding.append(Aside(make, "river-encoder"))

    def _put(self, file: Any) -> None:
        """Appends the rows of a file."""
        if not self._at:
            self._write(MAGIC)
        self._write(self._footer.add(memoryview(file).cast("B"), self._at))

    def _write(self, data: bytes | memoryview) -> None:
        self._output.file.write(data)
        self._at += len(data)

    def _end(self) -> None:
        if self._rows:
            self._group(self._rows)
        while self._encoding:
            self._put(self._encoding.popleft().result())
        if not self._at:
            schema = arrow_schema(self.type)
            self._put(_encoded(schema, schema.empty_table(), {"use_dictionary": False}))
        self._write(self._footer.text())


@memory.lifted()
def _encoded(schema: Any, table: Any, options: Mapping[str, Any]) -> Any:
    """A file of one group of rows, or of none. Where batches end has no part in how pages are cut."""
    out = arrow().BufferOutputStream()
    with arrow("parquet").ParquetWriter(out, schema, **options) as writer:
        if table.num_rows:
            writer.write_table(table.combine_chunks(), table.num_rows)
    return out.getvalue()


def _encodings(type_: Type, table: Any) -> dict[str, Any]:
    """How a writer of Parquet is told what to write for the values of each column, as the first rows show.

    Numbers of different values, where each comes often; for integers that ascend, or do not come often, by how much one is
    more than the one before: that is shorter, and sooner made, than these as they are.
    """
    plain = {name: of.inner if isinstance(of, Optional) else of for name, of in columns(type_)}
    if not all(map(scalars.is_scalar, plain.values())):
        return {"dictionary_pagesize_limit": DICTIONARY}
    first = table.slice(0, _SEEN).combine_chunks().to_batches()[0]
    numbered, steps = list[str](), list[str]()
    for name in (name for name, of in plain.items() if of != UNIT):
        values, whole = _values(first.column(name)), _is_whole(first.column(name).type)
        if whole and all(map(le, values, islice(values, 1, None))):
            steps.append(name)
        elif values and _OFTEN * len(set(values)) <= len(values):
            numbered.append(name)
        elif whole:
            steps.append(name)
    return {
        "use_dictionary": numbered or False,
        "column_encoding": dict.fromkeys(steps, "DELTA_BINARY_PACKED"),
    }


def _is_whole(type_: Any) -> bool:
    """Whether a file has values of a type as integers."""
    types = arrow("types")
    return types.is_integer(type_) or types.is_temporal(type_)


def _values(column: Any) -> list[Any]:
    """The values of a column of scalars, as they lie there, in which anything may stand for none; truths are left out.

    Not by functions of pyarrow: to import these takes as long as a short run.
    """
    types, type_ = arrow("types"), column.type
    if types.is_string(type_) or types.is_binary(type_):
        return column.view(arrow().binary()).to_pylist()
    width, start = type_.bit_width // 8, column.offset
    if not width or column.buffers()[1] is None:
        return []
    data: Any = memoryview(column.buffers()[1]).cast("B")[start * width : (start + len(column)) * width]
    if width not in _WORDS:
        return [bytes(data[i : i + width]) for i in range(0, len(data), width)]
    code = _WORDS[width]
    return data.cast(code.lower() if _is_whole(type_) else code).tolist()
