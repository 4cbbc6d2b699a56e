"""The forms in which elements and variables travel between stages.

A *piece* is what one turn of the inputs has brought to one queue, or the part of it that one channel has: items and
marks, each with its place in the turn. Pieces are rows of Spark, thousands of items in one; the items are an Arrow
batch in one cell, so that Spark needs to know nothing of River's types. Variables are JSON.
"""

from __future__ import annotations

import json
import sys
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, assert_never, cast

from river.classes import frozen
from river.diagnostics import Rejected
from river.io import schema
from river.lang import types as t
from river.lang.patterns import compile_pattern
from river.lang.values import NAN, frozen_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from river.lang.values import Value

COLUMNS: Final = "queue int, chunk long, channel int, part int, at binary, items binary, marks string"
"""The columns of a row, as Spark writes them.

`queue`: its number in the graph; REPORT - n for what the tasks of stage n tell. `chunk`: the turn that its elements come
from; order is by chunk, then by place. `channel`: of the keyed stage that reads it. `part`: of the one that wrote it.
"""

REPORT: Final = -1
"""The `queue` of a row that tells of a task of stage 0: its JSON stands in `marks`."""

Places = Sequence[int]


@frozen(eq=False)
class Piece:
    """Items with their places, ascending, and marks with theirs: a mark stands before the items of its place.

    Items are a list of values, or columns: `Rows` that machine code makes, or an Arrow record batch that is to be sent.
    """

    places: Places
    items: Any
    marks: tuple[tuple[int, int], ...] = ()

    def whole(self) -> Piece:
        """The same elements, their places counted anew."""
        marks = tuple((bisect_left(self.places, place), key) for place, key in self.marks)
        return Piece(range(len(self.places)), self.items, marks)

    def values(self) -> list[Any]:
        """The items as values."""
        return values_of(self.items)


def joined(pieces: Sequence[Piece], *, rows: bool) -> Piece:
    """The pieces of one turn and queue put together by place. `rows`: items of one place are parts of one delta."""
    if len(pieces) == 1:
        return pieces[0]
    marks = sorted({mark for piece in pieces for mark in piece.marks})
    pairs = [pair for piece in pieces for pair in zip(piece.places, piece.values(), strict=True)]
    pairs.sort(key=_place)
    if rows:
        pairs = _deltas(pairs)
    return Piece([place for place, _ in pairs], [item for _, item in pairs], tuple(marks))


def _place(pair: tuple[int, Any]) -> int:
    return pair[0]


def _deltas(pairs: Iterable[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """One delta for each place: of its parts, the rows one after another."""
    found: list[tuple[int, Any]] = []
    for place, item in pairs:
        if found and found[-1][0] == place:
            tau, inserted, deleted = found[-1][1]
            found[-1] = place, (tau, inserted + item[1], deleted + item[2])
        else:
            found.append((place, item))
    return found


# ---------------------------------------------------------------------------------------------------------- pieces


@frozen(eq=False)
class Coder:
    """Items of one type, as a `Piece` has them, to bytes and back; `records`: to an Arrow record batch, if it can be one."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], list[Any]]
    records: Callable[[bytes], Any] | None = None


@lru_cache(maxsize=1024)
def coder(type_: t.Type) -> Coder:
    """The coder of a queue's items: an Arrow batch without its schema, or JSON for the few types that Arrow cannot say."""
    try:
        layout = schema.arrow_schema(type_)
    except Rejected:
        plain, value = to_plain(type_), from_plain(type_)
        return Coder(
            lambda items: json.dumps(list(map(plain, values_of(items)))).encode(),
            lambda data: list(map(value, json.loads(data))),
        )
    ipc = schema.arrow("ipc")
    pa = schema.arrow()

    def encode(items: Any) -> bytes:
        match items:
            case list():
                records = schema.to_batch(type_, cast("list[Any]", items))
            case pa.RecordBatch():
                records = items
            case _:
                from backends.native.arrow import to_arrow

                records = to_arrow(type_, items)
        return records.serialize().to_pybytes()

    def records(data: bytes) -> Any:
        return ipc.read_record_batch(pa.py_buffer(data), layout)

    return Coder(encode, lambda data: of_records(type_, records(data)), records)


def values_of(items: Any) -> list[Any]:
    """The items of a piece as values; they are no record batch."""
    return cast("list[Any]", items if isinstance(items, list) else items.values())


def of_records(type_: t.Type, records: Any) -> list[Any]:
    """The items of an Arrow record batch as values."""
    cells = [schema.from_arrow(kind, records.column(i)) for i, (_, kind) in enumerate(schema.columns(type_))]
    return list(zip(*cells, strict=True)) if isinstance(type_, t.Record) else cells[0]


def place_bytes(places: Places) -> bytes:
    """Places as little-endian 64-bit numbers; nothing if they count from 0."""
    count = len(places)
    if (
        places == range(count)
        or count == 0
        or (places[0] == 0 and places[-1] == count - 1 and _dense(places))
    ):
        return b""
    found = array("q", places)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def _dense(places: Places) -> bool:
    return array("q", places) == array("q", range(len(places)))


def read_places(data: bytes, count: int) -> Places:
    """The places of `count` items."""
    if not data:
        return range(count)
    found = array("q")
    found.frombytes(data)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def longs(places: Places) -> Any:
    """Places as an Arrow array."""
    pa = schema.arrow()
    if isinstance(places, range):
        return _naturals(max(len(places) - 1, 0).bit_length()).slice(0, len(places))
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(array("q", places))])


@lru_cache(maxsize=64)
def _naturals(bits: int) -> Any:
    return schema.arrow().array(array("q", range(1 << bits)))


def numbers(places: Any) -> Places:
    """The way back from `longs`."""
    found = array("q")
    _, data = places.buffers()
    if data is not None:
        start = 8 * places.offset
        found.frombytes(memoryview(data)[start : start + 8 * len(places)])
    return found


# -------------------------------------------------------------------------------------------------------- variables


@lru_cache(maxsize=1024)
def to_plain(type_: t.Type) -> Callable[[Value], Any]:
    """From frozen values of any type to what the module json writes exactly."""
    match type_:
        case t.Primitive("bytes"):
            return lambda value: b64encode(value).decode("ascii")
        case t.Primitive("regex"):
            return lambda value: value.pattern
        case t.Primitive() | t.Decimal():
            return lambda value: value
        case t.Optional(inner):
            some = to_plain(inner)
            return lambda value: None if value is None else [some(value)]
        case t.Record() | t.Tuple():
            parts = tuple(map(to_plain, t.parts(type_)))
            return lambda value: [part(v) for part, v in zip(parts, value, strict=True)]
        case t.Map(key, item) | t.OMap(key, item):
            left, right = to_plain(key), to_plain(item)
            return lambda value: [[left(k), right(v)] for k, v in value.items()]
        case t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item):
            one = to_plain(item)
            return lambda value: list(map(one, value))
        case t.Function():
            raise TypeError("a function is not a value")
        case _:
            assert_never(type_)


@lru_cache(maxsize=1024)
def from_plain(type_: t.Type) -> Callable[[Any], Value]:
    """The way back from `to_plain`."""
    match type_:
        case t.Primitive("bytes"):
            return b64decode
        case t.Primitive("regex"):
            return compile_pattern
        case t.Primitive("fsum" | "unit"):
            return tuple
        case t.Primitive("f32" | "f64"):
            return lambda value: value if value == value else NAN  # noqa: PLR0124 - NaN is one object
        case t.Primitive() | t.Decimal():
            return lambda value: value
        case t.Optional(inner):
            some = from_plain(inner)
            return lambda value: None if value is None else some(value[0])
        case t.Record() | t.Tuple():
            parts = tuple(map(from_plain, t.parts(type_)))
            return lambda value: tuple([part(v) for part, v in zip(parts, value, strict=True)])
        case t.Map(key, item) | t.OMap(key, item):
            left, right = from_plain(key), from_plain(item)
            return lambda value: frozen_form(type_, [(left(k), right(v)) for k, v in value])
        case t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item):
            one = from_plain(item)
            return lambda value: frozen_form(type_, map(one, value))
        case t.Function():
            raise TypeError("a function is not a value")
        case _:
            assert_never(type_)
