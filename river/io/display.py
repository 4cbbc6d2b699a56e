"""Rows for a terminal: aligned columns of plain text, nothing cut off.

Columns are as wide as the rows of the first batch need, and grow when later ones need more. Numbers stand
right. Control characters are shown as escapes, none as nothing; values without a text of their own are JSON.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from river.io import scalars
from river.io.encode import encoder
from river.io.schema import columns
from river.lang.types import STRING, Decimal, List, Map, Optional, Primitive, Record, Type

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


def entries(name: str, type_: Type, index: int) -> Callable[[Sequence[Any]], str]:
    """The function from items to lines `name[a][b] = c, d`; the first `index` fields are in brackets."""
    texts = [entry(of) for _, of in columns(type_)]
    single = not isinstance(type_, Record)

    def line(item: Any) -> str:
        cells = [text(value) for text, value in zip(texts, (item,) if single else item, strict=True)]
        keys = "".join(f"[{cell}]" for cell in cells[:index]) or "[]"
        return f"{name}{keys} = {', '.join(cells[index:])}\n"

    return lambda items: "".join(map(line, items))


def entry(type_: Type) -> Callable[[Any], str]:
    """The function from values to what they are in such a line: compound ones in braces, their texts in quotes."""
    match type_:
        case Optional(inner):
            some = entry(inner)
            return lambda value: "undefined" if value is None else some(value)
        case Record(fields):
            parts = [_inside(of) for _, of in fields]
            return lambda value: _braces([text(v) for text, v in zip(parts, value, strict=True)], "{}")
        case List(item):
            one = _inside(item)
            return lambda value: _braces([one(v) for v in value], "{}")
        case Map(key, of):
            name, one = _inside(key), _inside(of)
            return lambda value: _braces([f"{name(k)}: {one(v)}" for k, v in value.items()], "{:}")
        case Primitive("f64"):
            return _real
        case _:
            return scalars.formatter(type_) if scalars.is_scalar(type_) else encoder(type_)


def _real(value: float) -> str:
    """A float in at most 15 digits, with a point or an exponent, as szl writes it."""
    text = f"{value:.15g}"
    return text if any(sign in text for sign in ".en") else text + ".0"


def _inside(type_: Type) -> Callable[[Any], str]:
    return encoder(type_) if type_ == STRING else entry(type_)


def _braces(parts: list[str], empty: str) -> str:
    return "{ " + ", ".join(parts) + " }" if parts else empty


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
