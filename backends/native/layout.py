"""How values of each type lie in memory and in columns (il.md P5, section f).

Scalars are registers; everything else is memory, and all zeros is the zero of its type.
Memory: bool and unit a byte; string, bytes, and regex (its pattern) a view of 16 bytes (`runtime/text.rt`); an optional
{value, byte}; a record or tuple a struct; an array its items; a list {address, count, room}; deques, maps, bags and exact
sums the records of the runtime.
Columns: one per scalar (none for unit), views for strings, a column of validity before that of an optional's value, offsets
before those of a list's items (a map: keys, then values); an array has as many rows per row as items, an exact
sum as many as words.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from functools import cache
from typing import Final, assert_never

from river.classes import frozen
from river.lang import types as t

TEXT: Final = "{ i64, i64 }"
LIST: Final = "{ ptr, i64, i64 }"
DEQUE: Final = "{ ptr, i64, i64, i64 }"
MAP_WORDS: Final = 12
MAP: Final = f"[{MAP_WORDS} x i64]"
SUM: Final = "{ i128, i64, ptr }"
SUM_WORDS: Final = 76
KEY_AT: Final = 16  # in an entry of a map
LINE: Final = 64  # bytes that a processor fetches at once

_REGISTERS: Final = {
    "bool": "i1", "i32": "i32", "i64": "i64", "u64": "i64", "i128": "i128", "f32": "float", "f64": "double",
    "time": "i64", "duration": "i64", "unit": "i8",
}  # fmt: skip


class Unsupported(Exception):  # noqa: N818 - a remark, not a mistake
    """Something that is not compiled yet: what, for the remark `native-refused`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def register(type_: t.Type) -> str | None:
    """The LLVM type of a scalar in a register; None for what lies in memory."""
    match type_:
        case t.Decimal():
            return "i128"
        case t.Primitive(name):
            return _REGISTERS.get(name)
        case _:
            return None


def is_text(type_: t.Type) -> bool:
    """Whether values are views: string, bytes, regex."""
    return type_ in (t.STRING, t.BYTES, t.REGEX)


LARGEST: Final = 1 << 32
"""Bytes of an array."""


@cache
def memory(type_: t.Type) -> str:
    """The LLVM type in memory.

    Raises: Unsupported.
    """
    match type_:
        case t.BOOL:
            return "i8"
        case t.STRING | t.BYTES | t.REGEX:
            return TEXT
        case t.FSUM:
            return SUM
        case t.Primitive() | t.Decimal():
            kind = register(type_)
            assert kind is not None  # noqa: S101 - all others are scalars
            return kind
        case t.Optional(inner):
            return f"{{ {memory(inner)}, i8 }}"
        case t.Record() | t.Tuple():
            parts = t.parts(type_)
            return "{ " + (", ".join(map(memory, parts)) or "i8") + " }"
        case t.Array(item, size):
            size_align(type_)
            return f"[{max(size, 1)} x {memory(item)}]"
        case t.List(item):
            memory(item)
            return LIST
        case t.Deque(item):
            memory(item)
            return DEQUE
        case t.Bag(item):
            memory(item)
            return MAP
        case t.Map(key, value) | t.OMap(key, value):
            for each in (key, value):
                memory(each)
            return MAP
        case t.Function():
            raise Unsupported("functions as values")
        case _:
            assert_never(type_)


_SIZES: Final = {"i1": 1, "i8": 1, "i32": 4, "i64": 8, "i128": 16, "float": 4, "double": 8}


@cache
def size_align(type_: t.Type) -> tuple[int, int]:
    """Size in bytes (a multiple of the alignment) and alignment in memory.

    Raises: Unsupported for arrays that are too large: products of sizes and counts must fit 64 bits.
    """
    match type_:
        case t.STRING | t.BYTES | t.REGEX:
            return 16, 8
        case t.FSUM:
            return 32, 16
        case t.Primitive() | t.Decimal():
            size = _SIZES[register(type_) or "i64"]
            return size, size
        case t.Optional(inner):
            return _struct((size_align(inner), (1, 1)))
        case t.Record() | t.Tuple():
            return _struct(tuple(map(size_align, t.parts(type_))) or ((1, 1),))
        case t.Array(item, count):
            size, align = size_align(item)
            if size * count > LARGEST:
                raise Unsupported(f"values of {size * count} bytes")
            return size * max(count, 1), align
        case t.List():
            return 24, 8
        case t.Deque():
            return 32, 8
        case t.Map() | t.OMap() | t.Bag():
            return MAP_WORDS * 8, 8
        case _:
            memory(type_)
            raise AssertionError(type_)


def _struct(parts: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    at, most = 0, 1
    for size, align in parts:
        at = -(-at // align) * align + size
        most = max(most, align)
    return -(-at // most) * most, most


@cache
def offsets(type_: t.Type) -> tuple[int, ...]:
    """Where the parts of a record or tuple begin in memory; of an optional, value and presence."""
    found, at = list[int](), 0
    inside = map(size_align, t.parts(type_))
    for size, align in (*inside, (1, 1)) if isinstance(type_, t.Optional) else inside:
        found.append(-(-at // align) * align)
        at = found[-1] + size
    return tuple(found)


Keyed = t.Map | t.OMap
_CHAIN: Final = t.Tuple((t.I64, t.I64, t.I64))  # of equal items of a bag: the next, the last, how many


def entry_layout(type_: Keyed | t.Bag) -> tuple[int, int]:
    """Where the value lies in an entry of a map (of a bag: the chain), and the size of an entry."""
    first, second = (type_.item, _CHAIN) if isinstance(type_, t.Bag) else (type_.key, type_.value)
    key, _ = size_align(first)
    value, align = size_align(second)
    at = -(-(KEY_AT + key) // align) * align
    return at, LINE if text_room(type_) else -(-(at + value) // 16) * 16


WITHIN: Final = 40
"""Where entries of maps have room for the bytes of a key: at no multiple of 16, where blocks of an arena are (`text_drop`)."""


def text_room(type_: Keyed | t.Bag) -> int:
    """For how many bytes of its key, which is a text, an entry of a map has room; 0 where it has none.

    Then all of an entry is in one line of the caches, a key that is not longer included: one fetch, not two or three.
    """
    if not isinstance(type_, t.Map) or not _only_text(type_.key):
        return 0
    return LINE - WITHIN if KEY_AT + size_align(type_.key)[0] + size_align(type_.value)[0] <= WITHIN else 0


def _only_text(type_: t.Type) -> bool:
    """Whether values are a text and nothing else, maybe in a record of one part."""
    if isinstance(type_, t.Record | t.Tuple):
        return len(inner := t.parts(type_)) == 1 and _only_text(inner[0])
    return is_text(type_)


def entry_lines(type_: Keyed | t.Bag) -> tuple[int, ...]:
    """Places in an entry of a map, to be fetched before it is read: its key, and what may lie in the line of the caches behind.

    Entries follow one another from the beginning of a line on, so one of 32 or 64 bytes never lies in two as one of 48 may.
    """
    _, size = entry_layout(type_)
    return (KEY_AT,) if LINE % size == 0 else (KEY_AT, min(KEY_AT + LINE, size - 16))


_CONTAINERS: Final = (t.List, t.Deque, t.Map, t.OMap, t.Bag)


@cache
def is_plain(type_: t.Type) -> bool:
    """Whether a value is all in its own memory: a copy of the bytes is a copy."""
    return not t.contains(type_, t.STRING, t.BYTES, t.REGEX, t.FSUM, *_CONTAINERS)


@cache
def shares(type_: t.Type) -> bool:
    """Whether a copy of the bytes is a copy for the time of a firing: no container, no sum inside."""
    return not t.contains(type_, t.FSUM, *_CONTAINERS)


# ---------------------------------------------------------------------------------------------- columns


class ColumnKind(Enum):
    """What a column holds; the value is the LLVM type of an item."""

    BYTE = "i8"
    INT = "i32"
    LONG = "i64"
    WIDE = "i128"
    SINGLE = "float"
    DOUBLE = "double"
    VIEW = TEXT
    OFFSETS = "i64 "  # one item more than the table has rows

    @property
    def size(self) -> int:
        """Bytes of an item."""
        return 16 if self is ColumnKind.VIEW else _SIZES[self.value.strip()]


@frozen
class Column:
    """A column of table `table`: table 0 has a row per item, the others hold the items of lists and arrays.

    `position`: how many columns of this table come before it.
    """

    kind: ColumnKind
    table: int
    position: int


@frozen
class Columns:
    """The columns of a type, in order; by table, how many rows belong to a row of its parent (None: any number)."""

    columns: tuple[Column, ...]
    tables: tuple[int | None, ...]


_KINDS: Final = {
    "i1": ColumnKind.BYTE, "i32": ColumnKind.INT, "i64": ColumnKind.LONG, "i128": ColumnKind.WIDE,
    "float": ColumnKind.SINGLE, "double": ColumnKind.DOUBLE,
}  # fmt: skip


@cache
def columns(type_: t.Type) -> Columns:
    """The columns of a type.

    Raises: Unsupported.
    """
    memory(type_)
    found: list[Column] = []
    tables: list[int | None] = [None]
    filled = defaultdict[int, int](int)

    def column(kind: ColumnKind, table: int) -> None:
        found.append(Column(kind, table, filled[table]))
        filled[table] += 1

    def add(part: t.Type, table: int) -> None:
        match part:
            case t.UNIT:
                pass
            case t.STRING | t.BYTES | t.REGEX:
                column(ColumnKind.VIEW, table)
            case t.FSUM:
                tables.append(SUM_WORDS)
                column(ColumnKind.LONG, len(tables) - 1)
            case t.Optional(inner):
                column(ColumnKind.BYTE, table)
                add(inner, table)
            case t.Record() | t.Tuple():
                for each in t.parts(part):
                    add(each, table)
            case t.Array(item, size):
                tables.append(size)
                add(item, len(tables) - 1)
            case t.List(item) | t.Deque(item) | t.Bag(item):
                column(ColumnKind.OFFSETS, table)
                tables.append(None)
                add(item, len(tables) - 1)
            case t.Map(key, value) | t.OMap(key, value):
                column(ColumnKind.OFFSETS, table)
                tables.append(None)
                inside = len(tables) - 1
                add(key, inside)
                add(value, inside)
            case _:
                column(_KINDS[register(part) or ""], table)

    add(type_, 0)
    return Columns(tuple(found), tuple(tables))


@cache
def widths(type_: t.Type) -> tuple[int, int]:
    """How many columns a type has, and how many tables besides that of its own rows."""
    plan = columns(type_)
    return len(plan.columns), len(plan.tables) - 1


@cache
def starts(type_: t.Type) -> tuple[tuple[int, int], ...]:
    """How many columns and tables come before each part of a record or tuple."""
    found, wide, deep = list[tuple[int, int]](), 0, 0
    for each in t.parts(type_):
        found.append((wide, deep))
        wide, deep = wide + widths(each)[0], deep + widths(each)[1]
    return tuple(found)
