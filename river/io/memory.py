"""Items from the caller's Python objects: dicts, tuples in field order, or values of types that are not records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.io.batches import Batch, Item, Origin
from river.io.decode import decoder
from river.io.jsonlines import mismatch
from river.io.scalars import Mismatch, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from river.io.errors import RowError
    from river.lang.types import Type


def read(rows: Iterable[Any], type_: Type, origin: Origin, size: int) -> Iterator[Batch]:
    """Batches of `size` items, the last one smaller; the iterable is read as the batches are."""
    decode = decoder(type_, python=True)
    items: list[Item] = []
    lines: list[int] = []
    texts: list[Any] = []
    errors: list[tuple[int, RowError]] = []
    for number, row in enumerate(rows, 1):
        try:
            items.append(decode(row))
            lines.append(number)
            texts.append(row)
        except Mismatch as error:
            errors.append((len(items), mismatch(origin, number, error, shown(row))))
        if len(items) + len(errors) == size:
            yield Batch(items, lines, errors, _spell(texts))
            items, lines, texts, errors = [], [], [], []
    if items or errors:
        yield Batch(items, lines, errors, _spell(texts))


def _spell(rows: list[Any]) -> Callable[[int], str]:
    return lambda i: repr(rows[i])
