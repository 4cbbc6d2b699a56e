"""Whether a Python object is a frozen value of a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from river.lang import types as t
from river.lang.patterns import Regex
from river.lang.values.containers import FrozenBag, FrozenMap, FrozenOMap, OMap
from river.lang.values.forms import keyer
from river.lang.values.order import total_key
from river.lang.values.scalars import BOUNDS, NAN, Value, single

if TYPE_CHECKING:
    from collections.abc import Mapping


def _is(value: Any, kind: type) -> bool:
    return type(value) is kind


def well_typed(type_: t.Type, value: Value) -> bool:
    """Whether `value` is a frozen value of `type_`: form, range, canonical NaN and keys."""
    match type_:
        case t.Primitive():
            return _well_typed_primitive(type_, value)
        case t.Decimal(precision, _):
            return _is(value, int) and abs(value) < 10**precision
        case t.Optional(inner):
            return value is None or well_typed(inner, value)
        case t.Record() | t.Tuple():
            parts = t.parts(type_)
            return _is(value, tuple) and len(value) == len(parts) and all(map(well_typed, parts, value))
        case t.List(item) | t.Deque(item):
            return _is(value, tuple) and all(well_typed(item, v) for v in value)
        case t.Array(item, size):
            return _is(value, tuple) and len(value) == size and all(well_typed(item, v) for v in value)
        case t.Map(key, item):
            return _is(value, FrozenMap) and _well_typed_entries(key, item, value)
        case t.OMap(key, item):
            return (
                _is(value, FrozenOMap)
                and value.order is total_key(key)
                and _well_typed_entries(key, item, value)
            )
        case t.Bag(item):
            return _is(value, FrozenBag) and all(_is_key(item, v) for v in value)
        case t.Function():
            return False
        case _:
            assert_never(type_)


def _well_typed_entries(key: t.Type, item: t.Type, value: Mapping[Any, Any] | OMap) -> bool:
    return all(_is_key(key, k) and well_typed(item, v) for k, v in value.items())


def _is_key(type_: t.Type, value: Value) -> bool:
    canonical = keyer(type_)
    return well_typed(type_, value) and (canonical is None or repr(canonical(value)) == repr(value))


def _well_typed_primitive(type_: t.Primitive, value: Value) -> bool:
    match type_.name:
        case "bool":
            return _is(value, bool)
        case "f64":
            return _is(value, float) and (value == value or value is NAN)  # noqa: PLR0124 - NaN
        case "f32":
            return _is(value, float) and (single(value) == value or value is NAN)
        case "string":
            return _is(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
        case "bytes":
            return _is(value, bytes)
        case "unit":
            return _is(value, tuple) and not value
        case "regex":
            return isinstance(value, Regex)
        case "fsum":
            return _is(value, tuple) and len(value) == 4 and all(_is(part, int) for part in value)
        case _:
            low, high = BOUNDS[type_]
            return _is(value, int) and low <= value <= high
