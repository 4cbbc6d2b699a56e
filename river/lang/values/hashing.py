"""A stable hash of values, the same in every process and in native code."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Final, assert_never

from river.lang import types as t
from river.lang.values.scalars import MASK64, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SEED: Final = 0x9E3779B97F4A7C15
STEP: Final = 0xD1342543DE82EF95
_LAST: Final = 0xA0761D6478BD642F


def hash64(type_: t.Type, value: Value) -> int:
    """A stable hash in 0 .. 2^64 - 1; values that are the same have the same hash. Not for fsum and regex.

    A value is a row of 64-bit words. With fold(x * y) = low word of the 128-bit product xor its high word,
    start with
    h = 0x9E3779B97F4A7C15; for each word w let h = fold((h ^ w) * 0xD1342543DE82EF95); the hash is
    fold((h ^ 0xA0761D6478BD642F) * 0xD1342543DE82EF95). The words are
      bool: 0, 1. i32 i64 u64 time duration: the number modulo 2^64. i128, decimal: modulo 2^64,
      then the upper half.
      f64, f32: the bits of the double; -0.0 as 0.0, every NaN 0x7FF8000000000000.
      string (as UTF-8), bytes: the length in bytes, then the bytes in little-endian words,
      the last filled up with zeros.
      unit: none. none: 0. a present optional: 1, then its words. record, tuple: the words of the fields.
      list, array, deque: the length, then the words of the items. omap: the length, then key and value,
      ascending.
      map, bag: the length, then the sum modulo 2^64 of the hashes of the entries (key's words, then the value's).
    """
    return fold(hash_words(SEED, type_, value), _LAST)


def fold(h: int, word: int) -> int:
    """One step of a hash."""
    product = (h ^ word) * STEP
    return (product ^ (product >> 64)) & MASK64


def hash_words(h: int, type_: t.Type, value: Value) -> int:
    """A hash with the words of a value folded in (see `hash64`)."""
    for word in _worder(type_)(value):
        h = fold(h, word)
    return h


@cache
def _worder(type_: t.Type) -> Callable[[Value], Iterable[int]]:
    """What lists the words of a value."""
    match type_:
        case t.Primitive("string"):
            return lambda value: _bytes_words(value.encode())
        case t.Primitive("bytes"):
            return _bytes_words
        case t.Primitive("f32" | "f64"):
            return _float_words
        case t.Primitive("unit"):
            return lambda _: ()
        case t.Primitive("i128") | t.Decimal():
            return lambda value: (value & MASK64, value >> 64 & MASK64)
        case t.Primitive("fsum" | "regex") | t.Function():
            raise TypeError(f"{type_} has no hash")
        case t.Primitive():
            return lambda value: (value & MASK64,)
        case t.Optional(inner):
            some = _worder(inner)
            return lambda value: (0,) if value is None else (1, *some(value))
        case t.Record() | t.Tuple():
            parts = tuple(map(_worder, t.parts(type_)))
            return lambda value: [w for part, v in zip(parts, value, strict=True) for w in part(v)]
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            each = _worder(item)
            return lambda value: [len(value), *(w for v in value for w in each(v))]
        case t.OMap(key, item):
            pair = _worder(t.Tuple((key, item)))
            return lambda value: [len(value), *(w for entry in value.items() for w in pair(entry))]
        case t.Map(key, item):
            entry = t.Tuple((key, item))
            return lambda value: (len(value), sum(hash64(entry, e) for e in value.items()) & MASK64)
        case t.Bag(item):
            return lambda value: (len(value), sum(hash64(item, v) for v in value) & MASK64)
        case _:
            assert_never(type_)


def _bytes_words(value: bytes) -> tuple[int, ...]:
    count = -(-len(value) // 8)
    return (len(value), *struct.unpack(f"<{count}Q", value.ljust(8 * count, b"\0")))


def _float_words(value: float) -> tuple[int, ...]:
    if value != value:  # noqa: PLR0124 - NaN
        return (0x7FF8000000000000,)
    return struct.unpack("<Q", struct.pack("<d", value + 0.0))
