"""Values of a type to bytes and back, exactly: the form in which a checkpoint keeps them.

The form is derived from the type, column by column: a number for each scalar, little-endian, lengths before what is as
long as it is, the items of all containers one after the other. Values come back frozen, NaN as the one `NAN`. Who reads
bytes that were not written here gets other values or an error, never anything else.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, assert_never

from river.diagnostics import InternalError
from river.lang import types as t
from river.lang.patterns import BadPattern, compile_pattern
from river.lang.scope import show
from river.lang.values import NAN, frozen_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CODES: Final = {"i32": "i", "u64": "Q", "f32": "d", "f64": "d"}  # of the module struct; all others "q"
_WIDE: Final = 16


class Damaged(ValueError):  # noqa: N818 - what the bytes are
    """Bytes that hold no values of the type."""


def pack(type_: t.Type, values: Sequence[Any]) -> bytes:
    """Values of `type_`, frozen or not, as bytes; how many there are has to be kept elsewhere."""
    return b"".join(_packed(type_, values))


def unpack(type_: t.Type, count: int, data: bytes | memoryview) -> list[Any]:
    """The `count` values that were packed.

    Raises: Damaged.
    """
    reader = _Reader(data)
    try:
        values = reader.values(type_, count)
    except (struct.error, UnicodeDecodeError, BadPattern) as error:
        raise Damaged(str(error)) from error
    if reader.at != len(data):
        raise Damaged(f"{len(data) - reader.at} bytes too many")
    return values


def _numbers(code: str, values: Sequence[Any]) -> bytes:
    return struct.pack(f"<{len(values)}{code}", *values)


def _texts(texts: Sequence[bytes]) -> Iterator[bytes]:
    yield _numbers("q", list(map(len, texts)))
    yield b"".join(texts)


def _packed(type_: t.Type, values: Sequence[Any]) -> Iterator[bytes]:
    match type_:
        case t.UNIT:
            pass
        case t.BOOL:
            yield bytes(values)
        case t.STRING:
            yield from _texts([value.encode() for value in values])
        case t.REGEX:
            yield from _texts([value.pattern.encode() for value in values])
        case t.BYTES:
            yield from _texts(values)
        case t.FSUM:
            wholes = [value[0] for value in values]
            yield from _texts([n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True) for n in wholes])
            yield _numbers("q", list(chain.from_iterable(value[1:] for value in values)))
        case t.I128 | t.Decimal():
            yield b"".join([value.to_bytes(_WIDE, "little", signed=True) for value in values])
        case t.Primitive(name):
            yield _numbers(_CODES.get(name, "q"), values)
        case t.Optional(inner):
            yield bytes([value is not None for value in values])
            yield from _packed(inner, [value for value in values if value is not None])
        case t.Record() | t.Tuple():
            for i, part in enumerate(t.parts(type_)):
                yield from _packed(part, [value[i] for value in values])
        case t.Array(inner, _):
            yield from _packed(inner, list(chain.from_iterable(values)))
        case t.List(inner) | t.Deque(inner) | t.Bag(inner):
            yield _numbers("q", list(map(len, values)))
            yield from _packed(inner, list(chain.from_iterable(values)))
        case t.Map(key, inner) | t.OMap(key, inner):
            yield _numbers("q", list(map(len, values)))
            yield from _packed(key, list(chain.from_iterable(value.keys() for value in values)))
            yield from _packed(inner, list(chain.from_iterable(value.values() for value in values)))
        case t.Function():
            raise InternalError(f"values of type {show(type_)} are not kept")
        case _:
            assert_never(type_)


class _Reader:
    """Bytes that are read from `at` on."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, size: int) -> memoryview:
        """The next bytes. Raises: Damaged."""
        if size < 0 or size > len(self.data) - self.at:
            raise Damaged(f"{size} bytes are not there")
        start, self.at = self.at, self.at + size
        return self.data[start : self.at]

    def numbers(self, code: str, count: int) -> list[Any]:
        """Numbers of the same form."""
        form = struct.Struct(f"<{code}")
        return [number for (number,) in form.iter_unpack(self.take(form.size * count))]

    def lengths(self, count: int) -> list[int]:
        """Lengths. Raises: Damaged."""
        found = self.numbers("q", count)
        if any(length < 0 for length in found):
            raise Damaged("a length below zero")
        return found

    def texts(self, count: int) -> list[bytes]:
        """Strings of bytes."""
        return [bytes(self.take(length)) for length in self.lengths(count)]

    def flags(self, count: int) -> list[bool]:
        """Truth values."""
        return [byte != 0 for byte in self.take(count)]

    def values(self, type_: t.Type, count: int) -> list[Any]:
        """Values of a type."""
        match type_:
            case t.UNIT:
                return [()] * count
            case t.BOOL:
                return self.flags(count)
            case t.STRING:
                return [text.decode() for text in self.texts(count)]
            case t.REGEX:
                return [compile_pattern(text.decode()) for text in self.texts(count)]
            case t.BYTES:
                return self.texts(count)
            case t.FSUM:
                wholes = [int.from_bytes(text, "little", signed=True) for text in self.texts(count)]
                rest = self.numbers("q", 3 * count)
                return [(whole, *rest[3 * i : 3 * i + 3]) for i, whole in enumerate(wholes)]
            case t.F32 | t.F64:
                return [x if x == x else NAN for x in self.numbers("d", count)]  # noqa: PLR0124 - NaN
            case t.I128 | t.Decimal():
                data = self.take(_WIDE * count)
                return [
                    int.from_bytes(data[i : i + _WIDE], "little", signed=True)
                    for i in range(0, _WIDE * count, _WIDE)
                ]
            case t.Primitive(name):
                return self.numbers(_CODES.get(name, "q"), count)
            case t.Optional(inner):
                there = self.flags(count)
                found = iter(self.values(inner, sum(there)))
                return [next(found) if one else None for one in there]
            case t.Record() | t.Tuple():
                fields = [self.values(part, count) for part in t.parts(type_)]
                return list(zip(*fields, strict=True)) if fields else [()] * count
            case t.Array(inner, size):
                found = iter(self.values(inner, size * count))
                return [tuple([next(found) for _ in range(size)]) for _ in range(count)]
            case t.List(inner) | t.Deque(inner) | t.Bag(inner):
                sizes = self.lengths(count)
                return _grouped(type_, sizes, self.values(inner, sum(sizes)))
            case t.Map(key, inner) | t.OMap(key, inner):
                sizes = self.lengths(count)
                keys = self.values(key, sum(sizes))
                return _grouped(type_, sizes, list(zip(keys, self.values(inner, sum(sizes)), strict=True)))
            case t.Function():
                raise InternalError(f"values of type {show(type_)} are not kept")
            case _:
                assert_never(type_)


def _grouped(type_: t.Type, sizes: Sequence[int], parts: list[Any]) -> list[Any]:
    """Containers of so many of the parts each."""
    found: list[Any] = []
    at = 0
    for size in sizes:
        found.append(frozen_form(type_, parts[at : at + size]))
        at += size
    return found
