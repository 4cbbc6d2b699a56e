"""Lines `name[a, b] = c, d` from columns, byte for byte what `river.io.display.entries` makes of values."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from backends.native.idioms import if_
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.egress.lower import Writer
    from backends.native.egress.rows import Cursor
    from river.io.display import Entry

    Put = Callable[[], None]

_MARKS: Final = ("{ ", ", ", " }")
_DIGITS: Final = "%.15g"
_DIGITS_ROOM: Final = 32


def line(writer: Writer, entry: Entry, fields: Sequence[tuple[int, Put]]) -> None:
    """A line of cells; `fields`: of each how many cells it is, and what puts them. Raises: Unsupported."""
    count, _ = entry.index
    writer.literal(f"{entry.name}[")
    _separated(writer, fields[:count])
    writer.literal("] = ")
    _separated(writer, fields[count:])
    writer.literal(entry.behind)
    writer.flush()


def field(writer: Writer, type_: t.Type, cursor: Cursor, row: str) -> tuple[int, Put]:
    """What `line` wants of the next columns, of a type."""
    return _count(type_), lambda: _cells(writer, type_, cursor, row)


def _separated(writer: Writer, fields: Sequence[tuple[int, Put]]) -> None:
    before = accumulate((count for count, _ in fields), initial=0)
    for (count, put), some in zip(fields, before, strict=False):
        writer.literal(", " * bool(some and count))
        put()


def _count(type_: t.Type) -> int:
    """How many cells a value is."""
    match type_:
        case t.Optional(inner):
            return max(_count(inner), 1)
        case t.Record(fields):
            return sum(_count(of) for _, of in fields)
        case _:
            return 1


def _cells(writer: Writer, type_: t.Type, cursor: Cursor, row: str) -> None:
    """The cells of a value: a record is its fields, one beside the other."""
    match type_:
        case t.Optional(inner):
            _there(writer, cursor.flag(row), lambda: _cells(writer, inner, cursor, row))
        case t.Record(fields):
            _separated(writer, [field(writer, of, cursor, row) for _, of in fields])
        case _:
            _cell(writer, type_, cursor, row)


def _inside(writer: Writer, type_: t.Type, cursor: Cursor, row: str) -> None:
    """A value inside of another one, where records have braces."""
    match type_:
        case t.Optional(inner):
            _there(writer, cursor.flag(row), lambda: _inside(writer, inner, cursor, row))
        case t.Record():
            writer.literal("{ ")
            _cells(writer, type_, cursor, row)
            writer.literal(" }")
        case _:
            _cell(writer, type_, cursor, row)


def _there(writer: Writer, flag: str, put: Put) -> None:
    def some() -> None:
        put()
        writer.flush()

    def none() -> None:
        writer.literal("undefined")
        writer.flush()

    writer.flush()
    if_(writer.b, flag, some, none)


def _cell(writer: Writer, type_: t.Type, cursor: Cursor, row: str) -> None:
    match type_:
        case t.List(item):
            writer.sequence(_MARKS, *cursor.extent(row), lambda i: _inside(writer, item, cursor, i))
        case t.Map(key, value):
            _map(writer, key, value, *cursor.extent(row), cursor)
        case t.STRING:
            writer.flush()
            writer.put("out_text", f"ptr {cursor.place('{ i64, i64 }', row)}")
        case t.BYTES:
            writer.flush()
            writer.put("out_utf8", f"ptr {cursor.place('{ i64, i64 }', row)}")
        case t.TIME:
            writer.flush(24)
            writer.put("put_signed", f"i64 {cursor.scalar(type_, row)}")
        case t.F64:
            _digits(writer, cursor.scalar(type_, row))
        case t.Primitive() | t.Decimal():
            writer.scalar(type_, cursor, row)
        case _:
            writer.json(type_, cursor, row)


def _map(writer: Writer, key: t.Type, value: t.Type, first: str, after: str, cursor: Cursor) -> None:
    def entry(i: str) -> None:
        _inside(writer, key, cursor, i)
        writer.literal(": ")
        _inside(writer, value, cursor, i)

    def some() -> None:
        writer.sequence(_MARKS, first, after, entry)
        writer.flush()

    def none() -> None:
        writer.literal("{:}")
        writer.flush()

    writer.flush()
    if_(writer.b, writer.b.op(f"icmp slt i64 {first}, {after}"), some, none)


def _digits(writer: Writer, value: str) -> None:
    """A float in at most 15 digits, as the system writes it; what is no number has one text."""
    b = writer.b
    writer.flush(128)
    bare = b.op(f"call double @llvm.fabs.f64(double {value})")
    form = writer.module.constant(f"[{len(_DIGITS) + 1} x i8]", f'c"{_DIGITS}\\00"')

    def finite() -> None:
        p = writer.place()
        made = b.op(
            f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {p}, i64 {_DIGITS_ROOM}, ptr {form}, double {value})"
        )
        size = b.op(f"sext i32 {made} to i64")
        writer.move(b.op(f"getelementptr inbounds i8, ptr {p}, i64 {size}"))

    number = b.op(f"fcmp one double {bare}, 0x7FF0000000000000")
    if_(b, number, finite, lambda: writer.put("put_double", f"double {value}", out=False))
