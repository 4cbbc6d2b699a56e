"""Records of the operator language that are written out field by field, and rows, their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def as_read(node: s.Node) -> s.Node:
    """A tree as it is read from the text that it is printed as: literals have no sign, and no fields are `{}`, any container."""
    match node:
        case s.Int(value) | s.Float(value):
            return s.signed(value, node.span)
        case s.RecordValue(()):
            return s.MapValue((), span=node.span)
        case _:
            return rebuild(node, as_read)


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


def columns(values: Iterable[s.Expr], side: str) -> tuple[str, ...] | None:
    """The names of the columns that key expressions are, or None if some are no plain columns."""
    found: list[str] = []
    for value in values:
        match value:
            case s.Member(s.Name(row), name) if row == side:
                found.append(name)
            case s.TupleValue(items):
                inner = columns(items, side)
                if inner is None:
                    return None
                found += inner
            case _:
                return None
    return tuple(found)


def each(row: t.Record, of: Callable[[t.Type], t.Type]) -> t.Record:
    """A row with another type for each column."""
    return t.Record(tuple((name, of(kind)) for name, kind in row.fields))
