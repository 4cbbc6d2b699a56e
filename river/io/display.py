"""Rows for a terminal: aligned columns of plain text, nothing cut off.

Columns are as wide as the rows of the first batch need, and grow when later ones need more. Numbers stand
right. Control characters are shown as escapes, none as nothing; values without a text of their own are JSON.
"""

from __future__ import annotations

import unicodedata
from itertools import chain
from typing import TYPE_CHECKING, Any

from river.classes import frozen
from river.io import scalars
from river.io.encode import encoder
from river.io.schema import columns
from river.lang.types import Decimal, List, Map, Optional, Primitive, Record, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Layout:
    """The columns of a display and how wide they have become."""

    def __init__(self, type_: Type) -> None:
        fields = columns(type_)
        self._record = isinstance(type_, Record)
        self._names = [_visible(name) for name, _ in fields]
        self._texts = [display(t) for _, t in fields]
        self._right = [_is_number(t) for _, t in fields]
        self._widths = [width(name) for name in self._names]

    def header(self) -> str:
        """The names and a rule below them."""
        return self._line(self._names) + "\n" + "  ".join("-" * w for w in self._widths) + "\n"

    def rows(self, items: Sequence[Any]) -> list[list[str]]:
        """The cells of `items`; the columns grow to hold them."""
        if self._record:
            cells = [[text(v) for text, v in zip(self._texts, item, strict=True)] for item in items]
        else:
            cells = [[self._texts[0](item)] for item in items]
        for row in cells:
            self._widths = [max(w, width(cell)) for w, cell in zip(self._widths, row, strict=True)]
        return cells

    def text(self, rows: list[list[str]]) -> str:
        """Rows as lines."""
        return "".join(self._line(row) + "\n" for row in rows)

    def _line(self, cells: Sequence[str]) -> str:
        padded: list[str] = []
        for cell, wide, right in zip(cells, self._widths, self._right, strict=True):
            space = " " * (wide - width(cell))
            padded.append(space + cell if right else cell + space)
        return "  ".join(padded).rstrip()


def display(type_: Type) -> Callable[[Any], str]:
    """The function from values to what a reader sees."""
    if isinstance(type_, Optional):
        some = display(type_.inner)
        return lambda value: "" if value is None else some(value)
    text = scalars.formatter(type_) if scalars.is_scalar(type_) else encoder(type_)
    return lambda value: _visible(text(value))


@frozen
class Entry:
    """Lines `name[a, b] = c, d`, as szl writes tables.

    `index`: how many of the first fields are in brackets, and how many deviations stand behind, which are 0.
    """

    name: str
    index: tuple[int, int] = (0, 0)

    @property
    def behind(self) -> str:
        """How a line ends."""
        return ", 0" * self.index[1] + "\n"


def entries(entry: Entry, type_: Type) -> Callable[[Sequence[Any]], str]:
    """The function from items to lines."""
    name, behind, (count, _) = entry.name, entry.behind, entry.index
    texts = [_cells(of) for _, of in columns(type_)]
    single = not isinstance(type_, Record)

    def line(item: Any) -> str:
        cells = [text(value) for text, value in zip(texts, (item,) if single else item, strict=True)]
        keys, values = (", ".join(chain.from_iterable(part)) for part in (cells[:count], cells[count:]))
        return f"{name}[{keys}] = {values}{behind}"

    return lambda items: "".join(map(line, items))


def _cells(type_: Type) -> Callable[[Any], list[str]]:
    """The function from values to their texts: a record is its fields, one beside the other, and has braces inside of others."""
    match type_:
        case Optional(inner):
            some = _cells(inner)
            return lambda value: ["undefined"] if value is None else some(value) or [""]
        case Record(fields):
            parts = [_cells(of) for _, of in fields]
            return lambda value: [cell for text, v in zip(parts, value, strict=True) for cell in text(v)]
        case List(item):
            one = _inside(item)
            return lambda value: ["{ " + ", ".join(map(one, value)) + " }"]
        case Map(key, of):
            word, one = _inside(key), _inside(of)
            return lambda value: [
                "{ " + ", ".join(f"{word(k)}: {one(v)}" for k, v in value.items()) + " }" if value else "{:}"
            ]
        case _:
            text = _plain(type_)
            return lambda value: [text(value)]


def _inside(type_: Type) -> Callable[[Any], str]:
    if isinstance(type_, Optional):
        some = _inside(type_.inner)
        return lambda value: "undefined" if value is None else some(value)
    cells = _cells(type_)
    if isinstance(type_, Record):
        return lambda value: "{ " + ", ".join(cells(value)) + " }"
    return lambda value: cells(value)[0]


def _plain(type_: Type) -> Callable[[Any], str]:
    """The function from basic values to what szl writes of them: at most 15 digits, the microseconds of times, bytes as text."""
    match type_:
        case Primitive("f64"):
            return lambda value: f"{value:.15g}"
        case Primitive("bytes"):
            return lambda value: bytes(value).decode(errors="replace")
        case Primitive("time"):
            return str
        case _:
            return scalars.formatter(type_) if scalars.is_scalar(type_) else encoder(type_)


def _is_number(type_: Type) -> bool:
    inner = type_.inner if isinstance(type_, Optional) else type_
    names = ("i32", "i64", "u64", "f32", "f64", "duration")
    return isinstance(inner, Decimal) or (isinstance(inner, Primitive) and inner.name in names)


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """The cells of a terminal that `text` takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
