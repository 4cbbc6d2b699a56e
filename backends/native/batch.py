"""Columns of consecutive items, and values of the evaluator put into them and read from them (see `layout`)."""

from __future__ import annotations

import ctypes
import struct
import weakref
from array import array
from collections import deque
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

from backends.native import pages
from backends.native.contract import ROW
from backends.native.kernels import first_fall, shifted
from backends.native.layout import SUM_WORDS, ColumnKind, Unsupported, columns, widths
from river.classes import define, field
from river.lang import memory
from river.lang import types as t
from river.lang.patterns import compile_pattern
from river.lang.values import MASK64, NAN, default, frozen_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Result = TypeVar("Result")
_CODES: Final = {"i32": "i", "u64": "Q", "f32": "f", "f64": "d"}  # of the module array; all others "q"
_C_TYPES: Final = {"q": ctypes.c_int64, "i": ctypes.c_int32, "Q": ctypes.c_uint64}
_SHORT: Final = 12
_ASCII: Final = 1 << 31
_LENGTH: Final = _ASCII - 1
_DIGITS: Final = SUM_WORDS - 4
_NUMBERS: Final = frozenset({t.I32, t.I64, t.U64, t.F32, t.F64, t.TIME, t.DURATION})
_SMALL: Final = 1 << 12  # bytes


def address_of(buffer: Any) -> int:
    """Where the bytes of a writable buffer lie."""
    if isinstance(buffer, array):
        return buffer.buffer_info()[0]
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


@cache
def pointers(count: int) -> Any:
    """The type of so many addresses: made once, since making a type takes longer than a short firing."""
    return ctypes.c_void_p * count


@define(eq=False)
class Batch:
    """Rows of a type: the addresses of its columns, in the order of `layout.columns`. `kept` is what the columns lie in.

    `texts`: about how many bytes of texts were made for them, which last as long as they.

    What stands in a batch is never written again, so batches and their slices are shared freely.
    """

    type: t.Type
    rows: int
    addresses: tuple[int, ...]
    kept: Any = field(default=None, repr=False)
    texts: int = field(default=0, repr=False)
    _weight: int | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, part: slice) -> Batch:
        """Consecutive rows, in the same memory."""
        start, stop, _ = part.indices(self.rows)
        if (start, stop) == (0, self.rows):
            return self
        moved = tuple(at + start * step for at, step in zip(self.addresses, strides(self.type), strict=True))
        rows = max(0, stop - start)
        return Batch(self.type, rows, moved, self.kept, self.texts * rows // max(1, self.rows))

    @property
    def weight(self) -> int:
        """The rows, or the items of lists directly in them, or rows of `ROW` bytes as large as their texts: what is most."""
        if self._weight is not None:
            return self._weight
        most = max(self.rows, self.texts // ROW)
        if self.rows:
            for column in _lists(self.type):
                offsets = self.addresses[column]
                most = max(most, _long(offsets + 8 * self.rows) - _long(offsets))
        self._weight = most
        return most

    def numbers(self, field_: int) -> Sequence[int]:
        """A field of whole numbers of all rows, of a record.

        Raises: Unsupported.
        """
        at, code = self._numbers(field_)
        found: Any = (_C_TYPES[code] * self.rows).from_address(at)
        return found

    def number(self, field_: int, row: int) -> int:
        """A field of whole numbers of one row, of a record.

        Raises: Unsupported.
        """
        at, code = self._numbers(field_)
        kind = _C_TYPES[code]
        return kind.from_address(at + row * ctypes.sizeof(kind)).value

    def fall(self, field_: int, least: int | None) -> int | None:
        """The first row whose number in a field is below that of the row before it (or `least`), None if they ascend.

        Raises: Unsupported.
        """
        at, code = self._numbers(field_)
        if least is None:
            least = 0 if code == "Q" else -(1 << 63)
        found = first_fall(at, self.rows, least, code)
        return None if found == self.rows else found

    def _numbers(self, field_: int) -> tuple[int, str]:
        """Where the numbers of a field lie, and their code in the module `array`."""
        place = _number_columns(self.type)[field_]
        if place is None:
            raise Unsupported(f"the order of {t.parts(self.type)[field_]}")
        return self.addresses[place[0]], place[1]

    def alike(self, other: Batch) -> bool:
        """Whether a batch made from values too has the same bytes; one of equal values may have others."""
        return [*map(bytes, self.kept)] == [*map(bytes, other.kept)]

    @classmethod
    def of(cls, type_: t.Type, values: Sequence[Any]) -> Batch:
        """The values as columns.

        Raises: Unsupported.
        """
        columns(type_)
        if values and (code := _number(type_)):
            numbers = array(code, values)
            return cls(type_, len(values), (numbers.buffer_info()[0],), [numbers])
        if values and (codes := _plain(type_)):
            fields = [array(code, [value[i] for value in values]) for i, code in enumerate(codes)]
            return cls(type_, len(values), tuple([field.buffer_info()[0] for field in fields]), fields)
        kept: list[Any] = []
        addresses = [_address(buffer, kept) for buffer in _encode(type_, values, kept)]
        return cls(type_, len(values), tuple(addresses), kept)

    def repeated(self, rows: int) -> Batch:
        """The only row so many times, without making a value for each; lists in it are empty."""
        steps = zip(self.addresses, strides(self.type), strict=True)
        kept: list[Any] = [self.kept]
        # Offsets are one more than rows; what is inside of lists has no bytes for a row.
        addresses = [
            _address(ctypes.string_at(at, step) * (rows + 1), kept) if step else at for at, step in steps
        ]
        return Batch(self.type, rows, tuple(addresses), kept)

    def values(self, start: int = 0) -> list[Any]:
        """The rows from `start` on as frozen values."""
        at = iter(self.addresses)
        if code := _number(self.type):
            return _numbers_of(_read(at, code, start, self.rows - start))
        if codes := _plain(self.type):
            fields = [_numbers_of(_read(at, code, start, self.rows - start)) for code in codes]
            return list(zip(*fields, strict=True))
        return _decode(self.type, at, start, self.rows - start)


def _per_type(make: Callable[[t.Type], Result]) -> Callable[[t.Type], Result]:
    """Keeps results by type; a type that is the same object is found without comparing it part by part."""
    known: dict[int, tuple[t.Type, Result]] = {}

    def found(type_: t.Type) -> Result:
        hit = known.get(id(type_))
        if hit is None:
            if len(known) == _TYPES:
                known.clear()
            hit = known[id(type_)] = type_, make(type_)
        return hit[1]

    return found


_TYPES: Final = 1024
"""Types whose results are kept."""


@_per_type
def _number_columns(type_: t.Type) -> tuple[tuple[int, str] | None, ...]:
    """Of each field, if it is a whole number: its column, and the code in the module `array`."""
    found: list[tuple[int, str] | None] = []
    column = 0
    for part in t.parts(type_):
        code = _CODES.get(part.name, "q") if isinstance(part, t.Primitive) else "q"
        found.append((column, code) if is_number(part) else None)
        column += widths(part)[0]
    return tuple(found)


def is_number(type_: t.Type) -> bool:
    """Whether values are whole numbers of at most 64 bits: what order can be asked of."""
    return type_ in (t.I64, t.I32, t.U64, t.TIME, t.DURATION)


def concat(batches: Sequence[Batch]) -> Batch:
    """The rows of several batches of one type, at least one, one after the other."""
    if len(batches) == 1:
        return batches[0]
    kept: list[Any] = [batch.kept for batch in batches]
    steps = strides(batches[0].type)
    if 0 not in steps:
        rows, addresses = sum([batch.rows for batch in batches]), list[int]()
        for column, step in enumerate(steps):
            room = (ctypes.c_char * max(rows * step, 1))()
            kept.append(room)
            to = ctypes.addressof(room)
            addresses.append(to)
            for batch in batches:
                if size := batch.rows * step:
                    pages.copy(to, batch.addresses[column], size)
                    to += size
        return Batch(batches[0].type, rows, tuple(addresses), kept)
    sources = [iter(batch.addresses) for batch in batches]
    buffers = _joined(batches[0].type, sources, [(0, batch.rows) for batch in batches])
    addresses = tuple(_address(buffer, kept) for buffer in buffers)
    return Batch(batches[0].type, sum(batch.rows for batch in batches), addresses, kept)


def _joined(type_: t.Type, sources: list[Iterator[int]], rows: list[tuple[int, int]]) -> Iterator[bytearray]:
    """The columns of a type: of each source the rows given as (start, stop)."""
    match type_:
        case t.UNIT:
            pass
        case t.Optional(inner):
            yield _copied(sources, rows, 1)
            yield from _joined(inner, sources, rows)
        case t.Record() | t.Tuple():
            for part in t.parts(type_):
                yield from _joined(part, sources, rows)
        case t.Array(inner, size):
            yield from _joined(inner, sources, [(a * size, b * size) for a, b in rows])
        case t.FSUM:
            yield _copied(sources, rows, SUM_WORDS * 8)
        case t.List() | t.Deque() | t.Bag() | t.Map() | t.OMap():
            offsets, inside = _offsets_joined(sources, rows)
            yield offsets
            for part in t.parts(type_):
                yield from _joined(part, sources, inside)
        case _:
            (column,) = columns(type_).columns
            yield _copied(sources, rows, column.kind.size)


def _copied(sources: list[Iterator[int]], rows: list[tuple[int, int]], size: int) -> bytearray:
    found = bytearray(max(sum(stop - start for start, stop in rows) * size, 1))
    to = address_of(found)
    for source, (start, stop) in zip(sources, rows, strict=True):
        at, count = next(source), (stop - start) * size
        if count:
            pages.copy(to, at + start * size, count)
        to += count
    return found


def _offsets_joined(
    sources: list[Iterator[int]], rows: list[tuple[int, int]]
) -> tuple[bytearray, list[tuple[int, int]]]:
    """Offsets of the joined rows, and which rows of its items each source gives."""
    found = bytearray((sum(stop - start for start, stop in rows) + 1) * 8)
    to, total = address_of(found), 0
    inside: list[tuple[int, int]] = []
    for source, (start, stop) in zip(sources, rows, strict=True):
        at, count = next(source), stop - start
        if count == 0:
            inside.append((0, 0))
            continue
        first = _long(at + 8 * start)
        last = _long(at + 8 * stop)
        shifted(to, at + 8 * start, count + 1, total - first)
        to += 8 * count
        total += last - first
        inside.append((first, last))
    return found, inside


@_per_type
def _lists(type_: t.Type) -> tuple[int, ...]:
    """The columns of offsets that have a number per row."""
    found = columns(type_).columns
    return tuple(i for i, c in enumerate(found) if c.kind is ColumnKind.OFFSETS and c.table == 0)


def _long(at: int) -> int:
    return ctypes.c_int64.from_address(at).value


@_per_type
def strides(type_: t.Type) -> tuple[int, ...]:
    """By column: how many bytes the rows of an item take; 0 below lists, whose offsets are absolute."""
    return tuple(_strides(type_, 1))


def _strides(type_: t.Type, many: int) -> Iterator[int]:
    match type_:
        case t.UNIT:
            pass
        case t.Optional(inner):
            yield many
            yield from _strides(inner, many)
        case t.Record() | t.Tuple():
            for part in t.parts(type_):
                yield from _strides(part, many)
        case t.Array(inner, size):
            yield from _strides(inner, many * size)
        case t.FSUM:
            yield SUM_WORDS * 8 * many
        case t.List() | t.Deque() | t.Bag() | t.Map() | t.OMap():
            yield 8 * many
            for part in t.parts(type_):
                yield from _strides(part, 0)
        case _:
            (column,) = columns(type_).columns
            yield column.kind.size * many


def _address(buffer: Any, kept: list[Any]) -> int:
    data = bytearray(buffer) if isinstance(buffer, bytes) else buffer
    if len(data) == 0:
        data = bytearray(16)
    kept.append(data)
    return address_of(data)


@_per_type
def _number(type_: t.Type) -> str:
    """The code of the only column of a number, which has a short way in and out; empty for all other types."""
    return _CODES.get(type_.name, "q") if isinstance(type_, t.Primitive) and type_ in _NUMBERS else ""


@_per_type
def _plain(type_: t.Type) -> tuple[str, ...]:
    """The codes of the columns of a record of numbers, which has a short way in and out; none for all other types."""
    parts = t.parts(type_) if isinstance(type_, t.Record | t.Tuple) else ()
    codes = tuple(map(_number, parts))
    return codes if all(codes) else ()


# ------------------------------------------------------------------------------------------------- encode


def _encode(type_: t.Type, values: Sequence[Any], kept: list[Any]) -> Iterator[Any]:
    match type_:
        case t.UNIT:
            pass
        case t.BOOL:
            yield bytes(values)
        case t.STRING:
            yield _views([value.encode() for value in values], [value.isascii() for value in values], kept)
        case t.REGEX:
            yield from _encode(t.STRING, [value.pattern for value in values], kept)
        case t.BYTES:
            yield _views(values, [False] * len(values), kept)
        case t.FSUM:
            yield array("q", chain.from_iterable(map(_sum_words, values)))
        case t.I128 | t.Decimal():
            yield b"".join(value.to_bytes(16, "little", signed=True) for value in values)
        case t.Primitive(name):
            yield array(_CODES.get(name, "q"), values)
        case t.Optional(inner):
            yield bytes(value is not None for value in values)
            zero = default(inner)
            yield from _encode(inner, [zero if value is None else value for value in values], kept)
        case t.Record() | t.Tuple():
            for i, part in enumerate(t.parts(type_)):
                yield from _encode(part, [value[i] for value in values], kept)
        case t.Array(inner, _):
            yield from _encode(inner, list(chain.from_iterable(values)), kept)
        case t.List(inner) | t.Deque(inner) | t.Bag(inner):
            yield _offsets(values)
            yield from _encode(inner, list(chain.from_iterable(values)), kept)
        case t.Map(key, inner) | t.OMap(key, inner):
            yield _offsets(values)
            yield from _encode(key, list(chain.from_iterable(value.keys() for value in values)), kept)
            yield from _encode(inner, list(chain.from_iterable(value.values() for value in values)), kept)
        case t.Function():
            raise Unsupported(f"columns of {type_}")
        case _:
            assert_never(type_)


def _offsets(values: Sequence[Any]) -> array[int]:
    return array("q", accumulate(map(len, values), initial=0))


def _views(texts: Sequence[bytes], ascii_: Sequence[bool], kept: list[Any]) -> bytearray:
    blob = bytearray(b"".join(text for text in texts if len(text) > _SHORT))
    kept.append(blob)
    at = address_of(blob) if blob else 0
    found = bytearray()
    for text, plain in zip(texts, ascii_, strict=True):
        size = len(text) | (_ASCII if plain and text else 0)
        if len(text) <= _SHORT:
            found += struct.pack("<I12s", size, text)
        else:
            found += struct.pack("<I4sQ", size, text[:4], at)
            at += len(text)
    return found


def _sum_words(value: tuple[int, int, int, int]) -> list[int]:
    whole, up, down, undefined = value
    sign = -1 if whole < 0 else 1
    digits = [sign * (abs(whole) >> 32 * i & 0xFFFFFFFF) for i in range(_DIGITS)]
    if abs(whole) >> 32 * _DIGITS:
        raise Unsupported("a sum of so many digits")
    return [up, down, undefined, 0, *digits]


# ------------------------------------------------------------------------------------------------- decode


def _read(addresses: Iterator[int], code: str, start: int, count: int) -> array[Any]:
    found: array[Any] = array(code)
    at = next(addresses)
    if count:
        size, at = count * found.itemsize, at + start * found.itemsize
        if size <= _SMALL:
            found.frombytes(ctypes.string_at(at, size))
        else:  # which may be more than `string_at` takes
            found.frombytes((ctypes.c_char * size).from_address(at))
    return found


def _numbers_of(column: array[Any]) -> list[Any]:
    """The numbers, with the one NaN that values have."""
    if column.typecode in "fd":
        return [x if x == x else NAN for x in column]  # noqa: PLR0124 - NaN is not itself
    return column.tolist()


def _decode(type_: t.Type, at: Iterator[int], start: int, count: int) -> list[Any]:
    match type_:
        case t.UNIT:
            return [()] * count
        case t.BOOL:
            return [byte != 0 for byte in _read(at, "B", start, count)]
        case t.STRING:
            return [text.decode() for text in _texts(at, start, count)]
        case t.REGEX:
            return [compile_pattern(text.decode()) for text in _texts(at, start, count)]
        case t.BYTES:
            return list(_texts(at, start, count))
        case t.FSUM:
            words = _read(at, "q", start * SUM_WORDS, count * SUM_WORDS)
            return [_sum_of(words[i * SUM_WORDS : (i + 1) * SUM_WORDS]) for i in range(count)]
        case t.F32 | t.F64:
            return _numbers_of(_read(at, _CODES[type_.name], start, count))
        case t.I128 | t.Decimal():
            words = _read(at, "q", start * 2, count * 2)
            return [(words[2 * i + 1] << 64) + (words[2 * i] & MASK64) for i in range(count)]
        case t.Primitive(name):
            return _read(at, _CODES.get(name, "q"), start, count).tolist()
        case t.Optional(inner):
            valid = _read(at, "B", start, count)
            found = _decode(inner, at, start, count)
            return [value if there else None for there, value in zip(valid, found, strict=True)]
        case t.Record() | t.Tuple():
            fields = [_decode(part, at, start, count) for part in t.parts(type_)]
            return list(zip(*fields, strict=True)) if fields else [()] * count
        case t.Array(inner, size):
            found = _decode(inner, at, start * size, count * size)
            return [tuple(found[i * size : (i + 1) * size]) for i in range(count)]
        case t.List(inner) | t.Deque(inner) | t.Bag(inner):
            ends = _ends(at, start, count)
            found = _decode(inner, at, ends[0], ends[-1] - ends[0])
            return [frozen_form(type_, found[a - ends[0] : b - ends[0]]) for a, b in pairwise(ends)]
        case t.Map(key, inner) | t.OMap(key, inner):
            ends = _ends(at, start, count)
            keys = _decode(key, at, ends[0], ends[-1] - ends[0])
            values = _decode(inner, at, ends[0], ends[-1] - ends[0])
            pairs = list(zip(keys, values, strict=True))
            return [frozen_form(type_, pairs[a - ends[0] : b - ends[0]]) for a, b in pairwise(ends)]
        case t.Function():
            raise Unsupported(f"columns of {type_}")
        case _:
            assert_never(type_)


def _ends(addresses: Iterator[int], start: int, count: int) -> array[int]:
    """Offsets of the rows; none at all where a table has never had a row."""
    at = next(addresses)
    if at == 0 or count == 0:
        return array("q", [0])
    return _read(iter((at,)), "q", start, count + 1)


def _texts(addresses: Iterator[int], start: int, count: int) -> Iterator[bytes]:
    at = next(addresses)
    data = ctypes.string_at(at + 16 * start, 16 * count) if count else b""
    for size, head, pointer in struct.iter_unpack("<I4sQ", data):
        length = size & _LENGTH
        if length <= _SHORT:
            yield (head + pointer.to_bytes(8, "little"))[:length]
        else:
            yield ctypes.string_at(pointer, length)


def _sum_of(words: array[int]) -> tuple[int, int, int, int]:
    whole = sum(digit << 32 * i for i, digit in enumerate(words[4:]))
    return whole, words[0], words[1], words[2]


# ------------------------------------------------------------------------------------------------- output


class _Pool:
    """Tables that nobody reads any more, to be filled again: their memory has been touched already."""

    __slots__ = ("_firsts", "_kinds", "_spare", "_usual", "open", "size")

    def __init__(self, size: int, firsts: list[tuple[int, int]], kinds: list[list[ColumnKind]]) -> None:
        self.size = size
        self._firsts = firsts
        self._kinds = kinds  # by table
        self._usual = [0] * len(firsts)  # rows of a table, where some have fewer
        self._spare: deque[Any] = deque()
        self.open = True  # whether somebody will fill tables

    def get(self, like: Any) -> Any:
        """The words of empty tables, with room for what those of `like` have, or had before: growing is copying."""
        words = self._spare.pop() if self._spare else (ctypes.c_int64 * self.size)()
        for table, (first, _) in enumerate(self._firsts):
            rows, room = like[first], words[first + 1]
            if memory.limited() is None:
                rows = self._usual[table] = max(rows, self._usual[table] * 7 // 8)
            elif room:
                continue
            if rows >= _MANY and room < rows:
                self.widen(words, rows, table)
        return words

    def _room_for(self, words: Any, table: int, rows: int) -> None:
        """Gives a table without columns some with room for so many rows, if there is memory."""
        first, kinds = self._firsts[table][0], self._kinds[table]
        # As growing makes it, so that limits are met at the same size.
        room = 1 << (rows - 1).bit_length()
        sizes = [(room + (kind is ColumnKind.OFFSETS)) * kind.size for kind in kinds]
        data = [pages.take(size, rows * kind.size) for size, kind in zip(sizes, kinds, strict=True)]
        if not all(data):
            for each in data:
                pages.free(each)
            return
        for kind, each in zip(kinds, data, strict=True):
            if kind is ColumnKind.OFFSETS:
                ctypes.c_int64.from_address(each).value = 0
        words[first + 1], words[first + 3 : first + 3 + len(data)] = room, data

    def widen(self, words: Any, rows: int, table: int = 0) -> None:
        """Gives an empty table room for so many rows at once: what grows step by step lies in small pages, anywhere."""
        first, columns_ = self._firsts[table]
        room, old = words[first + 1], words[first + 3 : first + 3 + columns_]
        words[first + 1], words[first + 3 : first + 3 + columns_] = 0, [0] * columns_
        self._room_for(words, table, rows)
        for kind, each in zip(self._kinds[table], old, strict=True):
            pages.give(each, (room + (kind is ColumnKind.OFFSETS)) * kind.size)

    def copy(self, words: Any) -> Any:
        """Tables with what is in those of `words`, and no room: so large ones with little in them stay with who fills them."""
        made = (ctypes.c_int64 * self.size)()
        for (first, _), kinds in zip(self._firsts, self._kinds, strict=True):
            made[first] = made[first + 1] = rows = words[first]
            for i, kind in enumerate(kinds):
                size = (rows + (kind is ColumnKind.OFFSETS)) * kind.size
                place = made[first + 3 + i] = pages.malloc(max(size, 1))
                if not place:
                    raise MemoryError
                pages.copy(place, words[first + 3 + i], size)
        return made

    def put(self, words: Any) -> None:
        """Gives tables back."""
        if self.open and len(self._spare) < _SPARE:
            for first, _ in self._firsts:
                words[first] = 0
            self._spare.append(words)
        else:
            self.free(words)

    def free(self, words: Any) -> None:
        """Gives the memory of tables back."""
        _freed(words, self._firsts, self._kinds)

    def close(self) -> None:
        """Nobody will fill tables any more: gives the memory of all back that nobody reads."""
        self.open = False
        while self._spare:
            self.free(self._spare.pop())

    def __del__(self) -> None:
        self.close()


_SPARE: Final = 4
_ROOMY: Final = 1 << 14  # rows of a table that is kept where there are hardly any in it
_MANY: Final = 1024  # rows of a table that is not left to grow


class _Taken:
    """Tables that batches lie in, and what else these need."""

    __slots__ = ("_again", "_pool", "_texts", "_words")

    def __init__(self, pool: _Pool, words: Any, texts: Any, *, again: bool) -> None:
        self._pool = pool
        self._words = words
        self._texts = texts
        self._again = again  # whether the tables are worth being filled again

    def __del__(self) -> None:
        if self._again:
            self._pool.put(self._words)
        else:
            self._pool.free(self._words)


@define(eq=False)
class OutputBlock:
    """The block of an output that native code appends to: by table {rows, room, rows before the firing, columns}."""

    type: t.Type
    words: Any = field(init=False, repr=False)
    firsts: list[tuple[int, int]] = field(init=False, repr=False)
    _places: tuple[int, ...] = field(init=False, repr=False)
    _pool: _Pool = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.firsts, kinds, self._places = _form(self.type)
        self.words = (ctypes.c_int64 * sum(3 + columns_ for _, columns_ in self.firsts))()
        self._pool = _Pool(len(self.words), self.firsts, kinds)
        weakref.finalize(self, _freed, self.words, self.firsts, kinds)

    @property
    def address(self) -> int:
        """Of the block."""
        return ctypes.addressof(self.words)

    @property
    def rows(self) -> int:
        """How many items there are."""
        return self.words[0]

    def batch(self) -> Batch:
        """What there is; it changes with the block."""
        words = self.words
        return Batch(self.type, words[0], tuple([words[place] for place in self._places]), self)

    def take(self, texts: Any = None, size: int = 0) -> Batch:
        """What there is, as a batch of its own; the block is empty then. `texts`: what its views point into, of so many bytes."""
        words = self.words
        few = words[1] >= _ROOMY and all(words[first] < _MANY for first, _ in self.firsts)
        taken = self._pool.copy(words) if few else self._pool.get(words)
        if not few:
            words[:], taken[:] = taken[:], words[:]
        addresses = tuple([taken[place] for place in self._places])
        rows = taken[0]
        if few:
            self.clear()
        return Batch(self.type, rows, addresses, _Taken(self._pool, taken, texts, again=not few), size)

    def expect(self, rows: int) -> None:
        """So many items are to come: where that is many, there is room for them at once. Not where memory is limited."""
        words = self.words
        if rows >= _ROOMY and words[1] < rows and not words[0] and memory.limited() is None:
            self._pool.widen(words, rows)

    def touch(self, start: int, stop: int) -> None:
        """Gets the pages for items from one number to before another, while those before are put in."""
        words, (kinds, *_) = self.words, _form(self.type)[1]
        places, stop = words[3 : 3 + len(kinds)], min(stop, words[1])
        for place, kind in zip(places, kinds, strict=True):
            pages.touch(place + start * kind.size, max(stop - start, 0) * kind.size)

    def rest(self) -> None:
        """Nothing will be sent for now: the memory is for others at once, not when somebody looks for what is unused."""
        self._pool.free(self.words)
        self.words[:] = [0] * len(self.words)
        self._pool.close()

    def clear(self) -> None:
        """Empties the block; the room stays."""
        for first, _ in self.firsts:
            self.words[first] = 0


@_per_type
def _form(type_: t.Type) -> tuple[list[tuple[int, int]], list[list[ColumnKind]], tuple[int, ...]]:
    """What a block has for each of its tables: its place and how many columns, and their kinds; and where each column lies."""
    plan = columns(type_)
    kinds = [[c.kind for c in plan.columns if c.table == i] for i in range(len(plan.tables))]
    counts = [len(each) for each in kinds]
    firsts = list(zip(accumulate((3 + n for n in counts), initial=0), counts, strict=False))
    seen, places = [0] * len(firsts), list[int]()
    for column in plan.columns:
        places.append(firsts[column.table][0] + 3 + seen[column.table])
        seen[column.table] += 1
    return firsts, kinds, tuple(places)


def _freed(words: Any, firsts: list[tuple[int, int]], kinds: list[list[ColumnKind]]) -> None:
    """Gives the memory of tables back, or keeps it for others."""
    for (first, _), columns_ in zip(firsts, kinds, strict=True):
        room = words[first + 1]
        for i, kind in enumerate(columns_):
            pages.give(words[first + 3 + i], (room + (kind is ColumnKind.OFFSETS)) * kind.size)


__all__ = ["Batch", "ColumnKind", "OutputBlock", "address_of", "concat", "is_number", "pointers", "strides"]
