"""JSON lines: one JSON value per line, an object for each record; `decode` says what the values may be.

Blank lines are skipped. Fields that the type does not name are ignored, a name that occurs twice in an object
is an error. `NaN`, `Infinity` and `-Infinity` are taken besides the strings. Syntax errors carry their
column, type errors the path of the field.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import TYPE_CHECKING, Any, Final

from river.io.batches import Batch, Item, Origin
from river.io.decode import NumberText, decoder
from river.io.scalars import Mismatch, shown
from river.lang.types import Decimal, Type, contains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from river.io.errors import RowError


DEEPEST: Final = 500
"""Values inside one another. Python's reader goes as deep as its stack allows, and the evaluator allows it much."""


class _Syntax(Exception):  # noqa: N818 - control flow of this module
    """Text that is not JSON."""

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Syntax(f"the name {shown(twice)} occurs twice in an object")
    return out


def _number(text: str) -> float | NumberText:
    value = float(text)
    return NumberText(text) if isinf(value) else value


_MARKS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


def _depth(text: str) -> int:
    """How many brackets at most are open at a place."""
    depth = most = 0
    for mark in _MARKS.finditer(text):
        first = mark[0][0]
        if first in "[{":
            depth += 1
            most = max(most, depth)
        elif first != '"':
            depth -= 1
    return most


def loader(type_: Type) -> Callable[[str], Any]:
    """The function from JSON text to Python objects, keeping what values of `type_` need."""
    exact = contains(type_, Decimal)
    read = json.JSONDecoder(object_pairs_hook=_object, parse_float=NumberText if exact else _number).decode

    def load(text: str) -> Any:
        if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST:
            raise _Syntax(f"not JSON: nested deeper than {DEEPEST} levels")
        try:
            return read(text)
        except json.JSONDecodeError as error:
            reason = error.msg[:1].lower() + error.msg[1:]
            raise _Syntax(f"not JSON: {reason}", error.pos) from None
        except ValueError:
            raise _Syntax("a number has too many digits") from None

    return load


def json_text(type_: Type) -> Callable[[str], Any]:
    """The function from JSON text (in a cell) to a value of `type_`; it raises Mismatch."""
    load, decode = loader(type_), decoder(type_)

    def parse(text: str) -> Any:
        try:
            return decode(load(text))
        except _Syntax as error:
            where = "" if error.at is None else f" at character {error.at + 1} of the cell"
            raise Mismatch("data-syntax", error.reason + where) from None

    return parse


class Lines:
    """JSON lines as items."""

    def __init__(self, type_: Type, origin: Origin) -> None:
        self._load, self._decode = loader(type_), decoder(type_)
        self._origin = origin

    def rows(self, texts: Sequence[str], lines: Sequence[int]) -> Batch:
        """The items of lines, with the number of each."""
        load, decode, origin = self._load, self._decode, self._origin
        items: list[Item] = []
        numbers: list[int] = []
        kept: list[str] = []
        errors: list[tuple[int, RowError]] = []
        for number, text in zip(lines, texts, strict=True):
            try:
                items.append(decode(load(text)))
                numbers.append(number)
                kept.append(text)
            except _Syntax as error:
                if not text or text.isspace():
                    continue
                column = None if error.at is None else error.at + 1
                errors.append(
                    (len(items), origin.error(number, "data-syntax", error.reason, column=column, text=text))
                )
            except Mismatch as error:
                errors.append((len(items), mismatch(origin, number, error, text)))
        return Batch(items, numbers, errors, kept.__getitem__)

    def rest(self, blocks: Iterable[list[str]], line: int) -> Iterator[Batch]:
        """The batches of what follows the first `line` lines."""
        for block in blocks:
            yield self.rows(block, range(line + 1, line + len(block) + 1))
            line += len(block)


def mismatch(origin: Origin, line: int, error: Mismatch, text: str, column: int | None = None) -> RowError:
    """The row error of a mismatch."""
    return origin.error(
        line,
        error.code,
        error.reason,
        column=column,
        field=error.path.lstrip(".") or None,
        text=text,
        help=error.help,
    )
