"""Raw files: the bytes of items one after the other, little-endian, without any header.

`raw` holds numbers, booleans (a byte each), arrays and records of such, field by field, and texts (their UTF-8, and nothing
between them); texts can only be written. `bits` holds whole numbers 0 and 1, eight in a byte, the highest bit first; at
the end zeros fill the last byte up. Byte strings are as texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from river.classes import frozen
from river.diagnostics import Diagnostic, Rejected
from river.io.schema import arrow, arrow_schema, columns, to_batch
from river.lang import types as t
from river.lang.scope import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from river.io.atomic import AtomicOutput

WIDTHS: Final = {t.I32: 4, t.I64: 8, t.F32: 4, t.F64: 8, t.BOOL: 1}
"""Bytes of what items are made of."""

TEXTS: Final = (t.STRING, t.BYTES)
"""What has no length that is known, and is only written."""

_CHUNK: Final = 1 << 20
"""Bytes that are read at once, about."""


@frozen
class Leaf:
    """What an item holds so many times in a row: numbers of one type, or booleans."""

    type: t.Primitive
    count: int

    @property
    def width(self) -> int:
        """Bytes of it in an item."""
        return WIDTHS[self.type] * self.count


def leaves(type_: t.Type) -> list[Leaf] | None:
    """What items consist of, in order; None where they have no raw form."""
    match type_:
        case t.Primitive() if type_ in WIDTHS:
            return [Leaf(type_, 1)]
        case t.Array(item, size):
            inner = leaves(item)
            if inner is None:
                return None
            return [Leaf(inner[0].type, inner[0].count * size)] if len(inner) == 1 else inner * size
        case t.Record(fields):
            found: list[Leaf] = []
            for _, field in fields:
                inner = leaves(field)
                if inner is None:
                    return None
                found += inner
            return found or None
        case _:
            return None


def check(type_: t.Type, format_: str, what: str, *, written: bool) -> None:
    """Refuses items that the format cannot hold; `what`: the input or output. Raises: Rejected("data-format")."""
    fits = type_ == t.I32 if format_ == "bits" else leaves(type_) is not None or (written and type_ in TEXTS)
    if not fits:
        message = f"{what}: the format `{format_}` does not hold `{show(type_)}`"
        raise Rejected([Diagnostic("data-format", message, help="use csv or jsonl")])


# ------------------------------------------------------------------------------------------------ reading


def batches(file: Any, type_: t.Type, format_: str, label: str) -> Iterator[Any]:
    """Record batches of the items in an open file. Raises: Rejected("data-truncated") at the end of a file within an item."""
    if format_ == "bits":
        while chunk := file.read(_CHUNK >> 5):
            yield _record(b"".join(map(_BITS.__getitem__, chunk)), t.I32)
        return
    width = sum(leaf.width for leaf in leaves(type_) or ())
    size = max(1, _CHUNK // width) * width
    kept, before = b"", 0
    while chunk := file.read(size):
        data = kept + chunk
        whole = len(data) - len(data) % width
        if whole:
            yield _record(data[:whole], type_)
        kept = data[whole:]
        before += whole
    if kept:
        message = (
            f"the file ends within an item: {len(kept)} bytes of {width} are there, behind {before} bytes"
        )
        help_ = f"its items are `{show(type_)}`: was all of it written, and as such?"
        place = f"{label}, item {before // width + 1}"
        raise Rejected([Diagnostic("data-truncated", message, place=place, help=help_)])


_BITS: Final = tuple(
    b"".join((byte >> place & 1).to_bytes(4, "little") for place in range(7, -1, -1)) for byte in range(256)
)
"""The bits of each byte as whole numbers of 32 bits."""


def _record(data: bytes, type_: t.Type) -> Any:
    """The record batch of whole items."""
    parts = leaves(type_)
    assert parts is not None  # noqa: S101 - `check` has seen to it
    width = sum(leaf.width for leaf in parts)
    rows = len(data) // width
    pieces = _apart(data, [leaf.width for leaf in parts])
    columns_ = [_column(t_, pieces, rows) for _, t_ in columns(type_)]
    return arrow().record_batch(columns_, schema=arrow_schema(type_))


def _apart(data: bytes, widths: Sequence[int]) -> Iterator[bytes]:
    """The bytes of each leaf, of all items."""
    if len(widths) == 1:
        yield data
        return
    whole, start = sum(widths), 0
    for width in widths:
        part = bytearray(len(data) // whole * width)
        for byte in range(width):
            part[byte::width] = data[start + byte :: whole]
        yield bytes(part)
        start += width


def _column(type_: t.Type, pieces: Iterator[bytes], rows: int) -> Any:
    """The Arrow array of so many values of a type."""
    pa = arrow()
    match type_:
        case t.Array(item, size):
            inner = leaves(item)
            if inner is not None and len(inner) == 1:
                values = _column(item, pieces, rows * size)
                return pa.FixedSizeListArray.from_arrays(values, type=_arrow_type(type_))
            parts = [_column(item, pieces, rows) for _ in range(size)]  # of records: one after the other
            order = pa.array([row + i * rows for row in range(rows) for i in range(size)], pa.int64())
            values = pa.concat_arrays(parts).take(order)
            return pa.FixedSizeListArray.from_arrays(values, type=_arrow_type(type_))
        case t.Record(fields):
            arrays = [_column(field, pieces, rows) for _, field in fields]
            return pa.StructArray.from_arrays(arrays, fields=list(_arrow_type(type_)))
        case t.BOOL:
            return pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(next(pieces))]).cast(
                pa.bool_()
            )
        case _:
            return pa.Array.from_buffers(_arrow_type(type_), rows, [None, pa.py_buffer(next(pieces))])


def _arrow_type(type_: t.Type) -> Any:
    from river.io.schema import arrow_field

    return arrow_field("value", type_).type


# ------------------------------------------------------------------------------------------------ writing


class RawSink:
    """Bytes of items; takes record batches (`sinks.ArrowSink`)."""

    def __init__(self, output: AtomicOutput, type_: t.Type, format_: str) -> None:
        self.type = type_
        self._output = output
        self._bits: list[bytes] | None = [] if format_ == "bits" else None

    def write(self, items: Sequence[Any]) -> None:
        """Takes items."""
        if self.type == t.STRING:
            self._guarded(lambda: self._output.write("".join(items)))
        elif self.type == t.BYTES:
            self._guarded(lambda: self._output.write_bytes(b"".join(items)))
        elif items:
            self.write_table(to_batch(self.type, items))

    def write_table(self, batch: Any) -> None:
        """Takes a record batch."""
        if self.type in TEXTS:
            data = _characters(batch.column(0))
        elif self._bits is not None:
            data = self._packed(_bytes(t.I32, batch.column(0)))
        else:
            parts = leaves(self.type)
            assert parts is not None  # noqa: S101 - `check` has seen to it
            of = [
                piece
                for (_, type_), column in zip(columns(self.type), batch.columns, strict=True)
                for piece in _pieces(type_, column)
            ]
            data = _together(of, [leaf.width for leaf in parts])
        if data:
            self._guarded(lambda: self._output.write_bytes(data))

    def _packed(self, words: bytes) -> bytes:
        """The bytes that are full of bits; the others wait."""
        assert self._bits is not None  # noqa: S101 - the caller has seen to it
        bits = b"".join((*self._bits, words[::4]))
        whole = len(bits) - len(bits) % 8
        self._bits = [bits[whole:]]
        return _octets(bits[:whole])

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException:
            self._output.abort()
            raise

    def settled(self) -> int | None:
        """How many bytes have been written, which are on the disk now. Raises: Rejected("data-output")."""
        return self._output.settled()

    def close(self) -> None:
        """Completes the output."""
        rest = b"" if self._bits is None else b"".join(self._bits)
        if rest:
            self._guarded(lambda: self._output.write_bytes(_octets(rest.ljust(8, b"\0"))))
        self._output.close()

    def abort(self) -> None:
        """Gives the output up."""
        self._output.abort()


def _octets(bits: bytes) -> bytes:
    """Bytes, of which each stands for a bit, as bits: eight in one."""
    if not bits:
        return b""
    return int(bits.translate(_DIGITS), 2).to_bytes(len(bits) // 8, "big")


_DIGITS: Final = bytes(48 + (byte & 1) for byte in range(256))


def _characters(column: Any) -> bytes:
    """The bytes of all texts of a column."""
    if not len(column):
        return b""
    column = column.cast(arrow().large_binary())
    _, places, characters = column.buffers()
    offsets: Any = memoryview(places).cast("q")
    start: int = offsets[column.offset]
    end: int = offsets[column.offset + len(column)]
    return characters.slice(start, end - start).to_pybytes() if end > start else b""


def _pieces(type_: t.Type, column: Any) -> Iterator[bytes]:
    """The bytes of each leaf of a column, of all rows."""
    match type_:
        case t.Array(item, size):
            inner = leaves(item)
            values = column.flatten()
            if inner is not None and len(inner) == 1:
                yield from _pieces(item, values)
                return
            pa = arrow()
            for i in range(size):
                yield from _pieces(item, values.take(pa.array(range(i, len(values), size), pa.int64())))
        case t.Record(fields):
            for (_, field), values in zip(fields, column.flatten(), strict=True):
                yield from _pieces(field, values)
        case _:
            yield _bytes(type_, column)


def _bytes(type_: t.Type, column: Any) -> bytes:
    """The bytes of numbers or booleans."""
    if type_ == t.BOOL:
        column = column.cast(arrow().uint8())
    width = WIDTHS[type_] if isinstance(type_, t.Primitive) else 0
    data = column.buffers()[1]
    if data is None:
        return b""
    return data.slice(column.offset * width, len(column) * width).to_pybytes()


def _together(pieces: Sequence[bytes], widths: Sequence[int]) -> bytes:
    """The bytes of items from those of their leaves."""
    if len(pieces) == 1:
        return pieces[0]
    whole, start = sum(widths), 0
    found = bytearray(sum(map(len, pieces)))
    for piece, width in zip(pieces, widths, strict=True):
        for byte in range(width):
            found[start + byte :: whole] = piece[byte::width]
        start += width
    return bytes(found)
