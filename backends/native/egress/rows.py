"""Rows of columns compared and hashed where they lie, as the evaluator compares values: 0.0 is -0.0, NaN is NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backends.native.derived.equality import same_scalar
from backends.native.derived.hashing import SECRET, scalar_words
from backends.native.idioms import counted, if_
from backends.native.ir import Builder
from backends.native.layout import ColumnKind, Unsupported, columns, is_text, register
from river.classes import define
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.module import Module


@define
class Cursor:
    """The columns of a type one after the other, as registers; the walk over the type takes them in order."""

    b: Builder
    type: t.Type
    names: list[str]
    at: int = 0

    @classmethod
    def of(cls, b: Builder, type_: t.Type, table: str, start: int = 0) -> Cursor:
        """The columns from `start` on of a table of addresses, loaded here."""
        names = [
            b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds ptr, ptr {table}, i64 {start + i}')}")
            for i in range(len(columns(type_).columns))
        ]
        return cls(b, type_, names)

    def take(self) -> str:
        """The next column."""
        self.at += 1
        return self.names[self.at - 1]

    def scalar(self, type_: t.Type, row: str) -> str:
        """The scalar in a row of the next column (unit has none)."""
        if type_ == t.UNIT:
            return "0"
        if type_ == t.BOOL:
            return self.flag(row)
        kind = register(type_) or ""
        return self.b.op(f"load {kind}, ptr {self.place(kind, row)}, align {min(ColumnKind(kind).size, 8)}")

    def place(self, kind: str, row: str) -> str:
        """The address of a row of the next column."""
        return self.b.op(f"getelementptr inbounds {kind}, ptr {self.take()}, i64 {row}")

    def flag(self, row: str) -> str:
        """Whether the byte in a row of the next column is set."""
        byte = self.b.op(f"load i8, ptr {self.place('i8', row)}")
        return self.b.op(f"icmp ne i8 {byte}, 0")

    def extent(self, row: str) -> tuple[str, str]:
        """The first item of a row of the next column, of offsets, and the one after the last."""
        place = self.place("i64", row)
        after = self.b.op(f"getelementptr inbounds i64, ptr {place}, i64 1")
        return self.b.op(f"load i64, ptr {place}"), self.b.op(f"load i64, ptr {after}")


def add_row_same(module: Module, type_: t.Type, name: str) -> None:
    """Adds `name(x, i, y, j) -> i1`: whether row i of columns x is row j of columns y.

    Raises: Unsupported.
    """
    b = Builder()
    x, y = Cursor.of(b, type_, "%x"), Cursor.of(b, type_, "%y")

    def need(condition: str) -> None:
        on = b.fresh("on")
        b.branch(condition, on, "different")
        b.at(on)

    def extents(i: str, j: str) -> tuple[str, str, str]:
        (first, after), (other, end) = x.extent(i), y.extent(j)
        count = b.op(f"sub i64 {after}, {first}")
        need(b.op(f"icmp eq i64 {count}, {b.op(f'sub i64 {end}, {other}')}"))
        return first, other, count

    def each(parts: tuple[t.Type, ...], first: str, other: str, count: str) -> None:
        def item(n: str) -> None:
            i, j = b.op(f"add i64 {first}, {n}"), b.op(f"add i64 {other}, {n}")
            for part in parts:
                compare(part, i, j)

        counted(b, count, item)

    def compare(of: t.Type, i: str, j: str) -> None:
        match of:
            case t.STRING | t.BYTES:
                views = [f"ptr {side.place('{ i64, i64 }', row)}" for side, row in ((x, i), (y, j))]
                need(b.call("i1", "text_same", views))
            case t.Primitive() | t.Decimal():
                need(same_scalar(b, of, x.scalar(of, i), y.scalar(of, j)))
            case t.Optional(inner):
                here, there = x.flag(i), y.flag(j)
                need(b.op(f"icmp eq i1 {here}, {there}"))
                if_(b, here, lambda: compare(inner, i, j))
            case t.Record() | t.Tuple():
                for part in t.parts(of):
                    compare(part, i, j)
            case t.Array(item, size):
                each((item,), b.op(f"mul i64 {i}, {size}"), b.op(f"mul i64 {j}, {size}"), str(size))
            case t.List(item):
                each((item,), *extents(i, j))
            case t.Map(key, value):
                each((key, value), *extents(i, j))
            case t.Deque() | t.Bag() | t.OMap() | t.Function():
                raise Unsupported(f"rows of {of}")
            case _:
                assert_never(of)

    compare(type_, "%i", "%j")
    b.end("ret i1 true")
    b.at("different")
    b.end("ret i1 false")
    module.add(b.finish(name, f"define internal i1 @{name}(ptr %x, i64 %i, ptr %y, i64 %j) nounwind"))


def add_row_hash(module: Module, type_: t.Type, name: str) -> None:
    """Adds `name(x, i) -> i64`: a hash of row i of columns x, by the secrets of the process.

    Raises: Unsupported.
    """
    b = Builder()
    x = Cursor.of(b, type_, "%x")
    state = b.slot("i64")
    b.do(f"store i64 {SECRET.begin(b)}, ptr {state}")

    def step(make: Callable[[Builder, str, str], str], value: str) -> None:
        b.do(f"store i64 {make(b, b.op(f'load i64, ptr {state}'), value)}, ptr {state}")

    def word(value: str) -> None:
        step(SECRET.word, value)

    def each(parts: tuple[t.Type, ...], first: str, after: str) -> None:
        word(b.op(f"sub i64 {after}, {first}"))

        def item(n: str) -> None:
            for part in parts:
                hashed(part, n)

        counted(b, after, item, first)

    def hashed(of: t.Type, i: str) -> None:
        match of:
            case t.Primitive() if is_text(of):
                step(SECRET.text, x.place("{ i64, i64 }", i))
            case t.Primitive() | t.Decimal():
                for value in scalar_words(b, of, x.scalar(of, i)):
                    word(value)
            case t.Optional(inner):
                here = x.flag(i)
                word(b.op(f"zext i1 {here} to i64"))
                if_(b, here, lambda: hashed(inner, i))
            case t.Record() | t.Tuple():
                for part in t.parts(of):
                    hashed(part, i)
            case t.Array(item, size):
                first = b.op(f"mul i64 {i}, {size}")
                each((item,), first, b.op(f"add i64 {first}, {size}"))
            case t.List(item):
                each((item,), *x.extent(i))
            case t.Map(key, value):
                each((key, value), *x.extent(i))
            case t.Deque() | t.Bag() | t.OMap() | t.Function():
                raise Unsupported(f"rows of {of}")
            case _:
                assert_never(of)

    hashed(type_, "%i")
    last = b.call("i64", SECRET.end, [f"i64 {b.op(f'load i64, ptr {state}')}"])
    b.end(f"ret i64 {last}")
    module.add(b.finish(name, f"define internal i64 @{name}(ptr %x, i64 %i) nounwind"))
