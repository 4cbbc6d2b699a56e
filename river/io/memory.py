"""Items from the caller's Python objects: dicts, tuples in field order, or values of types that are not records."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from river.io.batches import Batch, Item, Origin
from river.io.columnar import is_arrow
from river.io.decode import decoder
from river.io.errors import RowError
from river.io.jsonlines import mismatch
from river.io.scalars import Mismatch, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from river.lang.types import Type

Row = tuple[Item, int, Any]
"""An item, its number, and the row that it was."""


def read(rows: Iterable[Any], type_: Type, origin: Origin, size: int) -> Iterator[Batch]:
    """Batches of `size` items, the last one smaller; the iterable is read as the batches are."""
    reader = RowDecoder(type_, origin)
    following = iter(rows)
    while found := list(islice(following, size)):
        yield reader.batch(found)


class RowDecoder:
    """Rows as items, numbered from 1."""

    def __init__(self, type_: Type, origin: Origin) -> None:
        self._decode = decoder(type_, python=True)
        self._origin = origin
        self._seen = 0

    def batch(self, rows: list[Any]) -> Batch:
        """The next rows."""
        decode = self._decode
        items: list[Item] = []
        lines: list[int] = []
        texts: list[Any] = []
        errors: list[tuple[int, RowError]] = []
        for number, row in enumerate(rows, self._seen + 1):
            try:
                items.append(decode(row))
                lines.append(number)
                texts.append(row)
            except Mismatch as error:
                errors.append((len(items), self._refused(number, error, row)))
        self._seen += len(rows)
        return Batch(items, lines, errors, lambda i: repr(texts[i]))

    def read(self, row: Any) -> Row | RowError:
        """The next row."""
        self._seen += 1
        try:
            return self._decode(row), self._seen, row
        except Mismatch as error:
            return self._refused(self._seen, error, row)

    def _refused(self, number: int, error: Mismatch, row: Any) -> RowError:
        if is_arrow(row):
            error = Mismatch(
                "data-type",
                f"a {type(row).__name__} is no row",
                help="give a list of these, or `pyarrow.RecordBatchReader.from_batches(schema, batches)`",
            )
            return mismatch(self._origin, number, error, "")
        return mismatch(self._origin, number, error, shown(row))

    @staticmethod
    def joined(read: list[Row | RowError]) -> Batch:
        """Rows that were read one by one."""
        rows: list[Row] = []
        errors: list[tuple[int, RowError]] = []
        for each in read:
            if isinstance(each, RowError):
                errors.append((len(rows), each))
            else:
                rows.append(each)
        return Batch(
            [item for item, _, _ in rows], [n for _, n, _ in rows], errors, lambda i: repr(rows[i][2])
        )
