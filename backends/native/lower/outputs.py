"""Outputs: items are appended to the columns of their blocks, and those of a list that is not sent are taken back.

The block of an output is its tables (see `layout`) one after the other, each {rows, room, rows before the firing, columns}.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from backends.native.idioms import (
    clear,
    counted,
    entries,
    if_,
    if_rare,
    item,
    key_of,
    move,
    store,
    value_of,
    void,
)
from backends.native.layout import TEXT, columns, register, starts, widths
from backends.native.lower.values import Memory, Parts, Row, Scalar, Sent, Value
from river.classes import define
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends.native.ir import Builder
    from backends.native.lower.frame import Frame


@cache
def tables(type_: t.Type) -> tuple[tuple[int, int], ...]:
    """By table of a type: its first word in the block of an output, and how many columns it has."""
    plan, found, at = columns(type_), list[tuple[int, int]](), 0
    counts = Counter(column.table for column in plan.columns)
    for table in range(len(plan.tables)):
        found.append((at, counts[table]))
        at += 3 + counts[table]
    return tuple(found)


def cursors(b: Builder, type_: t.Type, block: str) -> Iterator[tuple[str, str]]:
    """By table, the addresses of its row count and of what that was before the firing."""
    for first, _ in tables(type_):
        rows, before = (b.op(f"getelementptr inbounds i64, ptr {block}, i64 {first + k}") for k in (0, 2))
        yield rows, before


def grow(f: Frame, type_: t.Type, block: str) -> None:
    """Makes more room for rows in the columns of an output."""
    _Scatter(f, type_, block).grow(0)


def scatter(f: Frame, type_: t.Type, value: Value, block: str) -> None:
    """Appends a value to the columns of an output."""
    _Scatter(f, type_, block).top(value)


def begin(f: Frame, type_: t.Type, block: str, field_: int) -> Sent:
    """A list of which the items will be sent as field `field_` of the next item of an output."""
    kind = t.parts(type_)[field_]
    column, table = starts(type_)[field_]
    table += 1
    places = [_Scatter(f, type_, block).word(each, 0) for each in (0, *_tables(kind, table))]
    sent, *before = (f.b.op(f"load i64, ptr {place}") for place in places)
    return Sent(kind, block, type_, column, table, tuple(before), sent)


def send(f: Frame, list_: Sent, value: Value) -> None:
    """Appends an item to such a list."""
    inner = t.parts(list_.type)[0]
    _Scatter(f, list_.of, list_.out).append(inner, value, list_.column + 1, list_.table)


def length(f: Frame, list_: Sent) -> str:
    """How many items such a list has."""
    rows = f.b.op(f"load i64, ptr {_Scatter(f, list_.of, list_.out).word(list_.table, 0)}")
    return f.b.op(f"sub i64 {rows}, {list_.starts[0]}")


def withdraw(f: Frame, list_: Sent) -> None:
    """Takes the items of such a list back if it has not been sent."""
    b, output = f.b, _Scatter(f, list_.of, list_.out)
    missing = b.op(f"icmp eq i64 {b.op(f'load i64, ptr {output.word(0, 0)}')}, {list_.sent}")

    def back() -> None:
        for table, start in zip(_tables(list_.type, list_.table), list_.starts, strict=True):
            b.do(f"store i64 {start}, ptr {output.word(table, 0)}")

    if_(b, missing, back)


def _tables(type_: t.Type, first: int) -> range:
    """The tables of a list's items and their parts, the first of which is `first`."""
    return range(first, first + widths(type_)[1])


@define(eq=False, repr=False)
class _Scatter:
    """One append."""

    f: Frame
    type: t.Type
    block: str

    def top(self, value: Value) -> None:
        row = self.reserve(0)
        self.write(self.type, value, 0, 1, row)
        self.advance(0, row)

    def word(self, table: int, index: int) -> str:
        first, _ = tables(self.type)[table]
        return self.f.b.op(f"getelementptr inbounds i64, ptr {self.block}, i64 {first + index}")

    def reserve(self, table: int) -> str:
        """The next row of a table, for which there is room then."""
        b = self.f.b
        row = b.op(f"load i64, ptr {self.word(table, 0)}")
        room = b.op(f"load i64, ptr {self.word(table, 1)}")
        if_rare(b, b.op(f"icmp eq i64 {row}, {room}"), lambda: self.grow(table))
        return row

    def grow(self, table: int) -> None:
        kinds = [c.kind for c in columns(self.type).columns if c.table == table]
        sizes = ", ".join(f"i64 {k.size + (1 << 32 if k.value.endswith(' ') else 0)}" for k in kinds)
        name = self.f.module.constant(f"[{len(kinds)} x i64]", f"[{sizes}]")
        void(
            self.f.b,
            "table_grow",
            "ptr %context",
            f"ptr {self.word(table, 0)}",
            f"ptr {name}",
            f"i64 {len(kinds)}",
            "i64 3",
        )

    def advance(self, table: int, row: str) -> None:
        b = self.f.b
        b.do(f"store i64 {b.op(f'add nsw i64 {row}, 1')}, ptr {self.word(table, 0)}")

    def column(self, column: int) -> str:
        at = columns(self.type).columns[column]
        return self.f.b.op(f"load ptr, ptr {self.word(at.table, 3 + at.position)}")

    def write(self, type_: t.Type, value: Value | None, column: int, following: int, row: str) -> None:
        """Writes a value (None: a zero) to a row; its columns begin at `column`, the tables of its parts at `following`."""
        f, b = self.f, self.f.b
        match type_:
            case t.UNIT:
                pass
            case t.STRING | t.BYTES | t.REGEX:
                to = b.op(f"getelementptr inbounds {TEXT}, ptr {self.column(column)}, i64 {row}")
                if value is None:
                    clear(b, type_, to)
                elif isinstance(value, Memory) and value.lent:
                    move(b, type_, to, value.ptr)
                else:
                    void(b, "text_copy", f"ptr {f.context('texts')}", f"ptr {to}", f"ptr {f.ptr(value)}")
            case t.Optional(inner):
                present = "false" if value is None else f.present(value)
                to = b.op(f"getelementptr inbounds i8, ptr {self.column(column)}, i64 {row}")
                b.do(f"store i8 {b.op(f'zext i1 {present} to i8')}, ptr {to}")
                if value is None:
                    self.write(inner, None, column + 1, following, row)
                else:
                    if_(b, present, lambda: self.write(inner, f.inner(value), column + 1, following, row),
                        lambda: self.write(inner, None, column + 1, following, row))  # fmt: skip
            case t.Record() | t.Tuple():
                for i, each in enumerate(t.parts(type_)):
                    self.write(each, None if value is None else f.field(value, i), column, following, row)
                    wide, deep = widths(each)
                    column += wide
                    following += deep
            case t.Array(inner, size):
                if value is None:
                    counted(b, str(size), lambda _i: self.append(inner, None, column, following))
                else:
                    at, count = f.extent(value)
                    counted(b, count, lambda i: self.append(inner, at(i), column, following))
            case t.List(inner) | t.Deque(inner):
                if value is not None and not isinstance(value, Sent):
                    at, count = f.extent(value)
                    counted(b, count, lambda i: self.append(inner, at(i), column + 1, following))
                self.offset(column, following, row)
            case t.Bag(inner):
                if value is not None:
                    entries(b, f.ptr(value), lambda e: self.append(
                        inner, f.load(inner, key_of(b, e)), column + 1, following
                    ))  # fmt: skip
                self.offset(column, following, row)
            case t.Map(key, inner) | t.OMap(key, inner):
                pair = t.Tuple((key, inner))
                if isinstance(value, Row):
                    value = Memory(type_, f.ptr(value))
                if value is not None:
                    entries(b, f.ptr(value), lambda e: self.append(
                        pair, Parts(pair, (f.load(key, key_of(b, e)), f.load(inner, value_of(b, type_, e)))),
                        column + 1, following,
                    ))  # fmt: skip
                self.offset(column, following, row)
            case t.FSUM:
                self.sum(value, column, following)
            case _:
                kind = register(type_)
                assert kind is not None  # noqa: S101 - all others are scalars
                zero = {"float": "0.0", "double": "0.0", "i1": "false"}.get(kind, "0")
                store(
                    b,
                    type_,
                    zero if value is None else f.reg(value),
                    item(b, type_, self.column(column), row),
                )

    def append(self, inner: t.Type, value: Value | None, column: int, table: int) -> None:
        row = self.reserve(table)
        self.write(inner, value, column, table + 1, row)
        self.advance(table, row)

    def offset(self, column: int, inside: int, row: str) -> None:
        b = self.f.b
        end = b.op(f"load i64, ptr {self.word(inside, 0)}")
        to = b.op(
            f"getelementptr inbounds i64, ptr {self.column(column)}, i64 {b.op(f'add nsw i64 {row}, 1')}"
        )
        b.do(f"store i64 {end}, ptr {to}")

    def sum(self, value: Value | None, column: int, table: int) -> None:
        f, b = self.f, self.f.b
        words = b.slot("[76 x i64]")
        void(b, "sum_export", f"ptr {f.empty(t.FSUM) if value is None else f.ptr(value)}", f"ptr {words}")

        def append(i: str) -> None:
            place = b.op(f"getelementptr inbounds i64, ptr {words}, i64 {i}")
            self.append(t.I64, Scalar(t.I64, b.op(f"load i64, ptr {place}")), column, table)

        counted(b, "76", append)
