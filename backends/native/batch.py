"""Columns of consecutive items, and values of the evaluator put into them and read from them (see `layout`)."""

from __future__ import annotations

import ctypes
import struct
import weakref
from array import array
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Final, assert_never

from attrs import define, field

from backends.native.layout import SUM_WORDS, Kind, Unsupported, columns
from river.lang import types as t
from river.lang.values import MASK64, NAN, default, frozen_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CODES: Final = {"i32": "i", "u64": "Q", "f32": "f", "f64": "d"}  # of the module array; all others "q"
_SHORT: Final = 12
_ASCII: Final = 1 << 31
_LENGTH: Final = _ASCII - 1
_DIGITS: Final = SUM_WORDS - 4

_libc: Final = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]


def address_of(buffer: Any) -> int:
    """Where the bytes of a writable buffer lie."""
    return ctypes.addressof((ctypes.c_char * max(len(memoryview(buffer).cast("B")), 1)).from_buffer(buffer))


@define
class Batch:
    """Rows of a type: the addresses of its columns, in the order of `layout.columns`. `kept` is what the columns lie in."""

    type: t.Type
    rows: int
    addresses: tuple[int, ...]
    kept: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, type_: t.Type, values: Sequence[Any]) -> Batch:
        """The values as columns.

        Raises: Unsupported.
        """
        columns(type_)
        kept: list[Any] = []
        addresses = [_address(buffer, kept) for buffer in _encode(type_, values, kept)]
        return cls(type_, len(values), tuple(addresses), kept)

    def values(self, start: int = 0) -> list[Any]:
        """The rows from `start` on as frozen values."""
        return _decode(self.type, iter(self.addresses), start, self.rows - start)


def _address(buffer: Any, kept: list[Any]) -> int:
    data = bytearray(buffer) if isinstance(buffer, bytes) else buffer
    if len(data) == 0:
        data = bytearray(16)
    kept.append(data)
    return address_of(data)


# ------------------------------------------------------------------------------------------------- encode


def _encode(type_: t.Type, values: Sequence[Any], kept: list[Any]) -> Iterator[Any]:
    match type_:
        case t.UNIT:
            pass
        case t.BOOL:
            yield bytes(values)
        case t.STRING:
            yield _views([value.encode() for value in values], [value.isascii() for value in values], kept)
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
        found.frombytes(ctypes.string_at(at + start * found.itemsize, count * found.itemsize))
    return found


def _decode(type_: t.Type, at: Iterator[int], start: int, count: int) -> list[Any]:
    match type_:
        case t.UNIT:
            return [()] * count
        case t.BOOL:
            return [byte != 0 for byte in _read(at, "B", start, count)]
        case t.STRING:
            return [text.decode() for text in _texts(at, start, count)]
        case t.BYTES:
            return list(_texts(at, start, count))
        case t.FSUM:
            words = _read(at, "q", start * SUM_WORDS, count * SUM_WORDS)
            return [_sum_of(words[i * SUM_WORDS : (i + 1) * SUM_WORDS]) for i in range(count)]
        case t.F32 | t.F64:
            return [x if x == x else NAN for x in _read(at, _CODES[type_.name], start, count)]  # noqa: PLR0124 - NaN
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


@define(eq=False)
class Output:
    """The block of an output that native code appends to: by table {rows, room, rows before the firing, columns}."""

    type: t.Type
    words: Any = field(init=False, repr=False)
    firsts: list[tuple[int, int]] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        plan = columns(self.type)
        counts = [sum(c.table == i for c in plan.columns) for i in range(len(plan.tables))]
        self.firsts = list(zip(accumulate((3 + n for n in counts), initial=0), counts, strict=False))
        self.words = (ctypes.c_int64 * sum(3 + n for n in counts))()
        weakref.finalize(self, _freed, self.words, self.firsts)

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
        plan, seen = columns(self.type), [0] * len(self.firsts)
        addresses: list[int] = []
        for column in plan.columns:
            first, _ = self.firsts[column.table]
            addresses.append(self.words[first + 3 + seen[column.table]])
            seen[column.table] += 1
        return Batch(self.type, self.rows, tuple(addresses), self)

    def clear(self) -> None:
        """Empties the block; the room stays."""
        for first, _ in self.firsts:
            self.words[first] = 0


def _freed(words: Any, firsts: list[tuple[int, int]]) -> None:
    for first, count in firsts:
        for i in range(count):
            _libc.free(words[first + 3 + i])


__all__ = ["Batch", "Kind", "Output", "address_of"]
