"""The end of a Parquet file, which tells what is in it, made of those of files that hold its groups of rows one by one.

It is a structure in Thrift's compact protocol. Here it is taken apart without knowing what fields mean, but for those that say
at which byte of the file something begins, and put together again. Paper: the format's description, `parquet.thrift`.
"""

from __future__ import annotations

from typing import Any, Final

from river.classes import define, field
from river.diagnostics import InternalError

MAGIC: Final = b"PAR1"

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

_ROWS, _GROUPS = 3, 4  # of the file
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7  # of a group of rows
_CHUNK_OFFSET, _CHUNK = 2, 3  # of a column of it
_PAGES: Final = 9, 10, 11
"""Of the description of a column: where its pages of data, of an index, of different values begin."""

_LAST_ORDINAL: Final = (1 << 15) - 1

Fields = dict[int, tuple[int, Any]]
"""A structure: by their numbers the types and values of its fields. Items of lists have the type of the list beside them."""


@define
class Footer:
    """The end of a file whose groups of rows are appended; `first`: that of the first of the files that hold these."""

    _first: Fields | None = None
    _groups: list[Any] = field(factory=list[Any])
    _rows: int = 0

    def add(self, file: memoryview, at: int) -> memoryview:
        """What comes next in the file: the rows of another one, which are to begin at byte `at`."""
        size = int.from_bytes(file[-8:-4], "little")
        if bytes(file[:4]) != MAGIC or bytes(file[-4:]) != MAGIC or size > len(file) - 12:
            raise InternalError("what was written as Parquet is none")
        fields = _Reader(file[-8 - size : -8]).struct()
        groups: list[Fields] = fields[_GROUPS][1][1]
        for each in groups:
            _move(each, at - len(MAGIC), len(self._groups))
            self._groups.append(each)
        self._rows += fields[_ROWS][1]
        if self._first is None:
            self._first = fields
        return file[len(MAGIC) : -8 - size]

    def text(self) -> bytes:
        """The end of the file. At least one file has been added."""
        if self._first is None:
            raise InternalError("a file of Parquet without any part")
        whole = self._first | {_ROWS: (_I64, self._rows), _GROUPS: (_LIST, (_STRUCT, self._groups))}
        out = bytearray()
        _put_struct(out, whole)
        return bytes(out) + len(out).to_bytes(4, "little") + MAGIC


def _move(group: Fields, by: int, number: int) -> None:
    """Has a group of rows begin so many bytes later, as the one of that number."""
    for chunk in group[_COLUMNS][1][1]:
        _shift(chunk, _CHUNK_OFFSET, by)
        for each in _PAGES:
            _shift(chunk[_CHUNK][1], each, by)
    _shift(group, _GROUP_OFFSET, by)
    if _ORDINAL in group:
        group[_ORDINAL] = _I16, number
        if number > _LAST_ORDINAL:
            del group[_ORDINAL]


def _shift(fields: Fields, number: int, by: int) -> None:
    """Adds to a place in the file; 0 says that it is not told."""
    if number in fields and fields[number][1]:
        fields[number] = _I64, fields[number][1] + by


@define
class _Reader:
    data: memoryview
    at: int = 0

    def struct(self) -> Fields:
        found: Fields = {}
        number = 0
        while head := self._byte():
            step = head >> 4
            number = number + step if step else self._signed()
            kind = head & 15
            found[number] = kind, None if kind in (_TRUE, _FALSE) else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:  # where a truth is no field, it has a byte
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._number())
            case 9 | 10:
                head = self._byte()
                size = head >> 4
                size = self._number() if size == 15 else size
                return head & 15, [self._value(head & 15) for _ in range(size)]
            case 12:
                return self.struct()
            case _:
                raise InternalError(f"Parquet's metadata have a field of the type {kind}")

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, size: int) -> bytes:
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def _number(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 128:
            found |= (byte & 127) << shift
            shift += 7
        return found | byte << shift

    def _signed(self) -> int:
        found = self._number()
        return found >> 1 ^ -(found & 1)


def _put_struct(out: bytearray, fields: Fields) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - before
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_signed(out, number)
        if kind not in (_TRUE, _FALSE):
            _put(out, kind, value)
        before = number
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    match kind:
        case 1 | 2 | 3:
            out.append(value)
        case 4 | 5 | 6:
            _put_signed(out, value)
        case 7:
            out += value
        case 8:
            _put_number(out, len(value))
            out += value
        case 9 | 10:
            of, items = value
            out.append(min(len(items), 15) << 4 | of)
            if len(items) >= 15:
                _put_number(out, len(items))
            for each in items:
                _put(out, of, each)
        case _:
            _put_struct(out, value)


def _put_number(out: bytearray, value: int) -> None:
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_signed(out: bytearray, value: int) -> None:
    _put_number(out, value << 1 if value >= 0 else (~value << 1) | 1)
