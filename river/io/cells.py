"""Text cells to values: whole columns at a time where all is well, cell by cell to name the fault.

An empty cell is none for an optional type and the empty text for strings and bytes; a quoted empty cell is
the empty text for optional strings and bytes too. Types without a text of their own are JSON in the cell.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final

from river.io import scalars
from river.io.jsonlines import json_text
from river.io.scalars import Mismatch
from river.io.schema import Column, Faults
from river.lang.types import BYTES, F32, STRING, Optional, Primitive, Type


class Quoted(str):
    """The empty text of a cell that was written with quotes."""

    __slots__ = ()


EMPTY: Final = Quoted("")
Fast = Callable[[Sequence[str]], list[Any]]


def converter(type_: Type) -> Callable[[Sequence[str]], Column]:
    """The function from a column of cells to values of `type_`."""
    cell = cell_parser(type_)
    fast = _fast(type_)

    def convert(cells: Sequence[str]) -> Column:
        try:
            return Column(fast(cells), {})
        except (ValueError, KeyError, Mismatch):
            return _slow(cell, cells)

    return convert


def _slow(cell: Callable[[str], Any], cells: Sequence[str]) -> Column:
    values: list[Any] = []
    faults: Faults = {}
    for row, text in enumerate(cells):
        try:
            values.append(cell(text))
        except Mismatch as mismatch:
            values.append(None)
            faults[row] = mismatch
    return Column(values, faults)


def cell_parser(type_: Type) -> Callable[[str], Any]:
    """The function from one cell to a value of `type_`; it raises Mismatch."""
    if isinstance(type_, Optional):
        some = cell_parser(type_.inner)
        if type_.inner in (STRING, BYTES):
            return lambda text: None if not text and text is not EMPTY else some(text)
        return lambda text: some(text) if text else None
    if type_ == STRING:
        return lambda text: scalars.check_text(str(text))
    if type_ == BYTES:
        return scalars.parse_bytes
    parse = scalars.parser(type_) if scalars.is_scalar(type_) else json_text(type_)

    def filled(text: str) -> Any:
        if not text:
            hint = "a type with `?` takes what is missing"
            raise Mismatch("data-type", "is empty, and its type is not optional", help=hint)
        return parse(text)

    return filled


def _fast(type_: Type) -> Fast:
    """All cells at once; any exception of ValueError, KeyError or Mismatch means: look at each."""
    match type_:
        case Primitive("i32" | "i64" | "u64"):
            return lambda cells: _ints(cells, scalars.RANGES[type_])
        case Primitive("f64" | "f32"):
            return lambda cells: _floats(cells, single=type_ == F32)
        case Primitive("string"):
            return _strings
        case Primitive("bool"):
            return lambda cells: [_BOOLS[text] for text in cells]
        case Optional(inner):
            return _optionals(_fast(inner), keep_quoted=inner in (STRING, BYTES))
        case _:
            cell = cell_parser(type_)
            return lambda cells: list(map(cell, cells))


_BOOLS: Final = {"true": True, "false": False}
_NOT_INTS: Final = re.compile(r"[^0-9,+-]")
_NOT_FLOATS: Final = re.compile(r"[^0-9,+\-.eE]")


def _ints(cells: Sequence[str], bounds: tuple[int, int]) -> list[Any]:
    if (
        _NOT_INTS.search(",".join(cells)) is not None
    ):  # int() takes spaces, underscores and other digits, we do not
        raise ValueError
    values = list(map(int, cells))
    if values and (min(values) < bounds[0] or max(values) > bounds[1]):
        raise ValueError
    return values


def _floats(cells: Sequence[str], single: bool) -> list[Any]:
    if _NOT_FLOATS.search(",".join(cells)) is not None:
        raise ValueError
    values = list(map(float, cells))
    if single:
        values = array("f", values).tolist()
    if inf in values or -inf in values:
        raise ValueError
    return values


def _strings(cells: Sequence[str]) -> list[Any]:
    values = list(map(str, cells))
    if not all(map(str.isascii, values)):
        "".join(values).encode()  # UnicodeEncodeError is a ValueError
    return values


def _optionals(inner: Fast, keep_quoted: bool) -> Fast:
    def fast(cells: Sequence[str]) -> list[Any]:
        if all(cells):
            return inner(cells)
        present = [bool(text) or (keep_quoted and text is EMPTY) for text in cells]
        values = iter(inner([text for text, here in zip(cells, present, strict=True) if here]))
        return [next(values) if here else None for here in present]

    return fast
