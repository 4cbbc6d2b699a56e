"""The kinds of tables: what they take, and what they need to know of their values."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from frontends.sawzall.operations import NUMBERS, SCALARS
from frontends.sawzall.types import FINGERPRINT
from river.classes import frozen
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@frozen
class TableKind:
    """A kind of table.

    `limit`: whether a number in parentheses follows, which is `least` at least; `value`: which types it takes (`wants` says so
    in words); `weight`: which types its weight may have, None without weight; `counts`: whether it may be left out:
    then each value weighs 1; `indexed`: whether it may have indices.
    """

    limit: Literal["never", "may", "must"]
    value: Callable[[t.Type], bool]
    wants: str
    weight: Callable[[t.Type], bool] | None = None
    least: int = 1
    indexed: bool = True
    counts: bool = False


def summable(type_: t.Type) -> bool:
    """Whether values are summed: numbers, times, and what is made of them."""
    match type_:
        case t.Record(fields):
            return bool(fields) and all(summable(field) for _, field in fields)
        case t.List(inner) | t.Map(_, inner):
            return summable(inner)
        case _:
            return type_ in (*NUMBERS, t.TIME)


def _weighing(*numbers: t.Type) -> Callable[[t.Type], bool]:
    """Whether weights are such numbers, or tuples of them."""

    def fits(type_: t.Type) -> bool:
        match type_:
            case t.Record(fields):
                return bool(fields) and all(fits(field) for _, field in fields)
            case _:
                return type_ in numbers

    return fits


def _drawn(type_: t.Type) -> bool:
    """What is summed as often as a number says that is drawn."""
    match type_:
        case t.Record(fields):
            return bool(fields) and all(field in (t.I64, t.F64) for _, field in fields)
        case _:
            return type_ in (t.I64, t.F64)


KINDS: Mapping[str, TableKind] = MappingProxyType({
    "sum": TableKind("never", summable, "numbers and times, also in tuples, arrays and maps"),
    "mrcounter": TableKind("never", lambda type_: type_ == t.I64, "int"),
    "collection": TableKind("never", t.is_item, "anything"),
    "maximum": TableKind("must", t.is_key, "anything but maps", t.is_key),
    "minimum": TableKind("must", t.is_key, "anything but maps", t.is_key),
    "top": TableKind("must", t.is_key, "anything but maps", _weighing(*NUMBERS), counts=True),
    "set": TableKind("may", t.is_key, "anything but maps"),
    "unique": TableKind("may", t.is_key, "anything but maps"),
    "quantile": TableKind("must", t.is_key, "anything but maps", least=2),
    "distinctsample": TableKind("must", t.is_key, "anything but maps", _weighing(*NUMBERS, t.TIME)),
    "inversehistogram": TableKind("must", t.is_key, "anything but maps", _weighing(*NUMBERS, t.TIME)),
    "sample": TableKind("must", t.is_key, "anything but maps"),
    "weightedsample": TableKind("must", t.is_key, "anything but maps", lambda type_: type_ in (t.I64, t.F64)),
    "bootstrapsum": TableKind("must", _drawn, "int, float, or tuples of them", lambda type_: type_ == FINGERPRINT),
    "text": TableKind("never", lambda type_: type_ in (t.STRING, t.BYTES), "string or bytes", indexed=False),
    "recordio": TableKind(
        "may", lambda type_: type_ in (*SCALARS, t.BYTES), "a basic type", indexed=False, least=0
    ),
})  # fmt: skip

DIRECT = frozenset({"collection", "text", "recordio"})
"""Kinds that keep every value, as it comes."""

PRINTED: Mapping[str, t.Type] = MappingProxyType({"stdout": t.STRING, "stderr": t.STRING, "output": t.BYTES})
"""Tables that every program has, and what they take: lines of text, and bytes as they are; their names are their kinds."""
