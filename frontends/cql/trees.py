"""Records of the operator language that are written out field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def record(values: Iterable[tuple[str, s.Expr]]) -> s.Expr:
    """A record of these fields."""
    return s.RecordValue(tuple(s.FieldValue(name, value) for name, value in values))


def key_of(values: Sequence[tuple[str, s.Expr]]) -> s.Expr:
    """A key: its one value, or a record of its values."""
    return values[0][1] if len(values) == 1 else record(values)


def fields(value: s.Expr) -> dict[str, s.Expr]:
    """The fields of a record."""
    items = value.fields if isinstance(value, s.RecordValue) else ()
    return {item.name: item.value for item in items if isinstance(item, s.FieldValue)}
