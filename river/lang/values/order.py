"""The total order of values."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, assert_never

from river.lang import types as t

if TYPE_CHECKING:
    from river.lang.values.scalars import Order


_TYPES: Final[dict[Order, t.Type]] = {}


def ordered_type(order: Order) -> t.Type:
    """A type whose values `order`, found by `total_key`, brings into their total order."""
    return _TYPES[order]


@cache
def total_key(type_: t.Type) -> Order | None:
    """What turns a value into a Python sort key of the total order; None when the value itself is one.

    none first, false before true, NaN last, -0.0 equal to 0.0, strings by code point, bytes unsigned,
    records and lists
    lexicographically, maps and bags as their sorted entries, sums by their parts, patterns by their text.
    """
    order = _order(type_)
    if order is not None:
        _TYPES.setdefault(order, type_)
    return order


def _order(type_: t.Type) -> Order | None:
    match type_:
        case t.Primitive("f32" | "f64"):
            return lambda value: (0, value) if value == value else (1, 0.0)  # noqa: PLR0124 - NaN
        case t.Primitive("regex"):
            return lambda value: value.pattern
        case t.Primitive() | t.Decimal():
            return None
        case t.Optional(inner):
            return _optional_key(total_key(inner))
        case t.Record() | t.Tuple():
            return _record_key(tuple(map(total_key, t.parts(type_))))
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            order = total_key(item)
            return tuple if order is None else lambda value: tuple(map(order, value))
        case t.Bag(item):
            order = total_key(item)
            return lambda value: tuple(sorted(value if order is None else map(order, value)))
        case t.Map(key, item) | t.OMap(key, item):
            pair = _record_key((total_key(key), total_key(item))) or tuple
            return lambda value: tuple(sorted(map(pair, value.items())))
        case t.Function():
            raise TypeError("functions have no order")
        case _:
            assert_never(type_)


def _optional_key(inner: Order | None) -> Order:
    if inner is None:
        return lambda value: (0,) if value is None else (1, value)
    return lambda value: (0,) if value is None else (1, inner(value))


def _record_key(parts: tuple[Order | None, ...]) -> Order | None:
    if all(part is None for part in parts):
        return None
    return lambda value: tuple(v if part is None else part(v) for part, v in zip(parts, value, strict=True))
