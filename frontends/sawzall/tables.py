"""The kinds of tables: what they take, and what they need to know of their values."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from frontends.sawzall.operations import NUMBERS
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@frozen
class Kind:
    """A kind of table.

    `limit`: whether a number in parentheses follows; `value`: which types it takes (`wants` says so in words); `weight`:
    which types its weight may have, None without weight.
    """

    limit: Literal["never", "may", "must"]
    value: Callable[[t.Type], bool]
    wants: str
    weight: Callable[[t.Type], bool] | None = None


def _summable(type_: t.Type) -> bool:
    match type_:
        case t.Record(fields):
            return bool(fields) and all(field in NUMBERS for _, field in fields)
        case t.Map(_, value):
            return value in NUMBERS
        case _:
            return type_ in NUMBERS


def _number(type_: t.Type) -> bool:
    return type_ in NUMBERS


KINDS: Mapping[str, Kind] = MappingProxyType({
    "sum": Kind("never", _summable, "numbers, or records or maps of numbers"),
    "mrcounter": Kind("never", lambda type_: type_ == t.I64, "int"),
    "collection": Kind("never", t.is_item, "anything"),
    "maximum": Kind("must", t.is_key, "anything but maps", t.is_key),
    "minimum": Kind("must", t.is_key, "anything but maps", t.is_key),
    "top": Kind("must", t.is_key, "anything but maps", _number),
    "set": Kind("may", t.is_key, "anything but maps"),
    "unique": Kind("may", t.is_key, "anything but maps"),
})  # fmt: skip

PRINTED: Mapping[str, t.Type] = MappingProxyType({"stdout": t.STRING, "stderr": t.STRING, "output": t.BYTES})
"""Tables that every program has, and what they take: lines of text, and bytes as they are; their names are their kinds."""

ABSENT = frozenset({
    "bootstrapsum", "distinctsample", "inversehistogram", "quantile", "recordio", "sample", "text", "weightedsample",
})  # fmt: skip
"""Kinds of szl that River-Sawzall does not have."""
