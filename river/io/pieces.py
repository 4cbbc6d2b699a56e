"""Columns of numbers in files of Arrow data, read where they lie into memory that is used again.

Arrow's reader gives every record batch new memory, and to touch that for the first time costs more than what is read into
it. Here only the places of the columns are taken from the file, by the rules of the format ("Arrow Columnar Format", IPC:
files; `Footer`, `Message` and `RecordBatch` are flatbuffers), and so many rows are read at a time as are wanted, from large
record batches and from several small ones. What has anything unusual about it is left to Arrow's reader.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import sys
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from river.classes import define, field, frozen
from river.io.schema import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST: Final = 1 << 16
"""Bytes that are read at a time at least, however few rows are wanted."""

_MAGIC: Final = b"ARROW1"
_CONTINUES: Final = 0xFFFFFFFF
_RECORD_BATCH: Final = 3
_LINE: Final = 64
_BLOCK: Final = "<qi4xq"

Block = tuple[int, int, int]
"""Where a message lies in the file, and the sizes of its head and of its body."""


@frozen
class PieceColumn:
    """A column to be read: its name, type and bytes per row; which of the nodes and buffers of a record batch are its."""

    name: str
    type: Any
    width: int
    node: int
    buffer: int


@frozen
class PieceOffsets:
    """The rows of a record batch, and where in the file those of each column begin."""

    rows: int
    columns: tuple[int, ...]


@define(eq=False)
class Pieces:
    """The record batches of a file, as `opened` by Arrow, with the declared columns only."""

    file: io.BufferedReader
    opened: Any
    columns: tuple[PieceColumn, ...]
    blocks: tuple[Block, ...]

    def read(self, most: int) -> Iterator[Any]:
        """Record batches of `most` rows, or a few more, where they can be read in pieces; else as they are.

        Raises: OSError, pyarrow.ArrowException.
        """
        width = sum(column.width for column in self.columns)
        most = max(1, min(max(most, LEAST // width), sum(body for _, _, body in self.blocks) // width))
        handle = os.dup(self.file.fileno())  # nobody else closes this one
        try:
            made = _Piece(handle, self.columns, most)
            for number, block in enumerate(self.blocks):
                place = _placed(handle, block, self.columns)
                if place is None:
                    yield from made.batch()
                    yield self.opened.get_batch(number)
                    continue
                done = 0
                while done < place.rows:
                    try:
                        done += made.read(place, done)
                    except OSError:
                        yield from made.batch()
                        raise
                    if made.rows == most:
                        yield from made.batch()
            yield from made.batch()
        finally:
            os.close(handle)


def pieces(file: Any, opened: Any, names: Sequence[str]) -> Pieces | None:
    """How to read the columns `names` of a file that Arrow has opened; None where that is its reader's work."""
    if sys.byteorder != "little" or not hasattr(os, "preadv"):
        return None
    if type(file) is not io.BufferedReader or not isinstance(file.raw, io.FileIO):
        return None  # what it reads need not be what lies in the file
    columns = _columns(opened.schema, names)
    try:
        status = os.fstat(file.fileno())
        if not columns or not stat.S_ISREG(status.st_mode):
            return None
        blocks = _blocks(file.fileno(), status.st_size)
    except (OSError, struct.error):
        return None
    if blocks is None or len(blocks) != opened.num_record_batches:
        return None
    return Pieces(file, opened, columns, blocks)


def _columns(schema: Any, names: Sequence[str]) -> tuple[PieceColumn, ...]:
    """The columns, in the order of the schema; none if it has any whose buffers are not counted here."""
    types = arrow("types")
    found: list[PieceColumn] = []
    buffer = 0
    for node, each in enumerate(schema):
        kind = each.type
        plain = types.is_primitive(kind) or types.is_decimal128(kind)
        if each.name in names:
            if not plain or types.is_boolean(kind):
                return ()
            found.append(PieceColumn(each.name, kind, kind.bit_width // 8, node, buffer + 1))
        if plain:
            buffer += 2
        elif types.is_string(kind) or types.is_binary(kind):
            buffer += 3
        else:
            return ()
    return tuple(found)


# ------------------------------------------------------------------------------------------------------ the format


def _blocks(handle: int, size: int) -> tuple[Block, ...] | None:
    """The record batches of a file. Raises: OSError, struct.error where it is damaged."""
    end = 4 + len(_MAGIC)
    tail = _bytes(handle, size - end, end)
    (length,) = struct.unpack_from("<i", tail)
    if tail[4:] != _MAGIC or not 0 < length <= size - end:
        return None
    data = _bytes(handle, size - end - length, length)
    footer = _Table.root(data)
    schema, dictionaries, batches = (footer.place(i) for i in (1, 2, 3))
    if schema is None or _Table.at(data, schema).number(0, "<h") != 0:  # little-endian
        return None
    if dictionaries is not None and _vector(data, dictionaries, _BLOCK):
        return None
    found = () if batches is None else tuple(_vector(data, batches, _BLOCK))
    inside = all(min(block) >= 0 and sum(block) <= size for block in found)
    return found if inside else None


def _placed(handle: int, block: Block, columns: Sequence[PieceColumn]) -> PieceOffsets | None:
    """Where the columns of a record batch lie; None for what is unusual, or damaged."""
    offset, head, body = block
    try:
        data = _bytes(handle, offset, head)
        if struct.unpack_from("<I", data)[0] != _CONTINUES:
            return None
        message = _Table.root(data[8:])
        header = message.place(2)
        if message.number(1, "<B") != _RECORD_BATCH or header is None:
            return None
        batch = _Table.at(message.data, header)
        nodes, buffers = batch.place(1), batch.place(2)
        if nodes is None or buffers is None or batch.place(3) is not None:  # compressed
            return None
        rows = batch.number(0, "<q")
        known, lying = _vector(message.data, nodes, "<qq"), _vector(message.data, buffers, "<qq")
        places: list[int] = []
        for column in columns:
            start, size = lying[column.buffer]
            if known[column.node] != (rows, 0) or not 0 <= rows * column.width <= size:
                return None
            if not 0 <= start <= body - size:
                return None
            places.append(offset + head + start)
    except (OSError, struct.error, IndexError, OverflowError):
        return None
    return PieceOffsets(rows, tuple(places))


@frozen
class _Table:
    """A table of a flatbuffer: its fields are found by the offsets in its vtable."""

    data: bytes
    start: int

    @classmethod
    def at(cls, data: bytes, place: int) -> _Table:
        """The table that the offset at a place leads to."""
        return cls(data, place + _number(data, place, "<I"))

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """The outermost one."""
        return cls.at(data, 0)

    def place(self, field_: int) -> int | None:
        """Where a field is; None if it has its default."""
        table = self.start - _number(self.data, self.start, "<i")
        slot = 4 + 2 * field_
        if slot >= _number(self.data, table, "<H"):
            return None
        offset = _number(self.data, table + slot, "<H")
        return self.start + offset if offset else None

    def number(self, field_: int, form: str) -> int:
        """A field that is a number; its default is 0."""
        place = self.place(field_)
        return 0 if place is None else _number(self.data, place, form)


def _number(data: bytes, place: int, form: str) -> int:
    if place < 0:
        raise struct.error("a place before the data")
    return struct.unpack_from(form, data, place)[0]


def _vector(data: bytes, place: int, form: str) -> list[tuple[Any, ...]]:
    """The structs of a vector to which the offset at a place leads."""
    start = place + _number(data, place, "<I")
    count = _number(data, start, "<I")
    size = count * struct.calcsize(form)
    part = data[start + 4 : start + 4 + size]
    if len(part) != size:
        raise struct.error("a vector beyond the data")
    return list(struct.iter_unpack(form, part))


def _bytes(handle: int, offset: int, size: int) -> bytes:
    """So many bytes of a file. Raises: OSError."""
    if offset < 0:
        raise OSError("a place before the file")
    data = os.pread(handle, size, offset)
    if len(data) != size:
        raise OSError("the file ends too early")
    return data


# ------------------------------------------------------------------------------------------------------ the pieces


class _Lent:
    """Memory for the columns of a piece. When nobody refers to it any more it can be used again."""

    __slots__ = ("_spare", "buffer")

    def __init__(self, spare: deque[Any], size: int) -> None:
        self._spare = spare
        try:
            self.buffer = spare.pop()
        except IndexError:
            self.buffer = arrow().allocate_buffer(size)

    def __del__(self) -> None:
        self._spare.append(self.buffer)


@define(eq=False)
class _Piece:
    """Rows on their way from the file `handle` into a record batch, for which there is room for `most`."""

    handle: int
    columns: tuple[PieceColumn, ...]
    most: int
    rows: int = 0
    _lent: _Lent | None = None
    _spare: deque[Any] = field(factory=deque[Any])

    def read(self, place: PieceOffsets, done: int) -> int:
        """Reads rows of a record batch from `done` on, as many as there is room for; how many. Raises: OSError."""
        if self._lent is None:
            self._lent = _Lent(self._spare, self._starts()[-1])
        count, memory = min(place.rows - done, self.most - self.rows), memoryview(self._lent.buffer)
        for column, lies, start in zip(self.columns, place.columns, self._starts(), strict=False):
            at = start + self.rows * column.width
            _read(self.handle, memory[at : at + count * column.width], lies + done * column.width)
        self.rows += count
        return count

    def batch(self) -> Iterator[Any]:
        """The record batch of what has been read, if anything was; then the next one begins."""
        lent, rows = self._lent, self.rows
        if lent is None or not rows:
            return
        few = 2 * rows < self.most  # which shall not keep memory for many
        arrays: list[Any] = []
        for column, start in zip(self.columns, self._starts(), strict=False):
            size = rows * column.width
            buffer = arrow().foreign_buffer(lent.buffer.address + start, size, lent)
            buffer = arrow().py_buffer(buffer.to_pybytes()) if few else buffer
            arrays.append(arrow().Array.from_buffers(column.type, rows, [None, buffer], 0))
        self.rows = 0
        if not few:
            self._lent = None
        yield arrow().RecordBatch.from_arrays(arrays, [column.name for column in self.columns])

    def _starts(self) -> list[int]:
        """Where the columns begin in memory, and where the last one ends."""
        sizes = (-(-self.most * column.width // _LINE) * _LINE for column in self.columns)
        return list(accumulate(sizes, initial=0))


def _read(handle: int, memory: memoryview, offset: int) -> None:
    """Fills memory from a file. Raises: OSError."""
    while len(memory):
        count = os.preadv(handle, [memory], offset)
        if not count:
            raise OSError("the file ends too early")
        memory, offset = memory[count:], offset + count
