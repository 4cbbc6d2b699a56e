"""Hypothesis strategies: types, and well-typed frozen values of any type, by construction."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, assert_never

from hypothesis import strategies as st

from river.lang import types as t
from river.lang.patterns import compile_pattern
from river.lang.values import BOUNDS, NAN, ZERO_SUM, add_to_sum, frozen_form, keyer

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_PATTERNS = st.sampled_from(["", "a", "a*b|c", "^(x|y)?$", "[^/]+/([0-9]{2,3})"]).map(compile_pattern)
_FLAT = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.STRING, t.BYTES, t.TIME, t.DURATION, t.UNIT)
_NAMES = ("a", "b", "c", "key")


def _one_nan(value: float) -> float:
    return value if value == value else NAN  # noqa: PLR0124 - NaN


def _primitive(type_: t.Primitive) -> st.SearchStrategy[Any]:
    match type_.name:
        case "bool":
            return st.booleans()
        case "f64":
            return (st.floats() | st.sampled_from([0.0, -0.0, 1.5, NAN])).map(_one_nan)
        case "f32":
            return (st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.5, NAN])).map(_one_nan)
        case "string":
            return _TEXT
        case "bytes":
            return st.binary(max_size=10)
        case "unit":
            return st.just(())
        case "regex":
            return _PATTERNS
        case "fsum":
            return st.lists(st.floats(), max_size=4).map(_added)
        case _:
            low, high = BOUNDS[type_]
            near = [v for v in (low, low + 1, -1, 0, 1, 2, high - 1, high) if low <= v <= high]
            return st.sampled_from(near) | st.integers(low, high)


def _added(numbers: list[float]) -> tuple[int, int, int, int]:
    total = ZERO_SUM
    for number in numbers:
        total = add_to_sum(total, number)
    return total


@lru_cache(4096)  # Hypothesis looks at each strategy when it first draws from it
def values_of(type_: t.Type, size: int = 5) -> st.SearchStrategy[Any]:
    """Frozen values of `type_`; containers without a fixed size have at most `size` items."""
    match type_:
        case t.Primitive():
            return _primitive(type_)
        case t.Decimal(precision, _):
            return st.integers(1 - 10**precision, 10**precision - 1)
        case t.Optional(inner):
            return st.none() | values_of(inner, size)
        case t.Record() | t.Tuple():
            return st.tuples(*(values_of(part, size) for part in t.parts(type_)))
        case t.Array(item, count):
            return st.tuples(*(values_of(item, size),) * count)
        case t.List(item) | t.Deque(item):
            return st.lists(values_of(item, size), max_size=size).map(tuple)
        case t.Bag(item):
            return st.lists(keys_of(item, size), max_size=size).map(lambda items: frozen_form(type_, items))
        case t.Map(key, value) | t.OMap(key, value):
            entries = st.dictionaries(keys_of(key, size), values_of(value, size), max_size=size)
            return entries.map(lambda found: frozen_form(type_, found.items()))
        case t.Function():
            raise TypeError("a function is not a value")
        case _:
            assert_never(type_)


def keys_of(type_: t.Type, size: int = 5) -> st.SearchStrategy[Any]:
    """Values of `type_` as they stand as keys of maps: frozen, without -0.0."""
    canonical = keyer(type_)
    return values_of(type_, size) if canonical is None else values_of(type_, size).map(canonical)


def _decimals() -> st.SearchStrategy[t.Type]:
    return st.integers(1, 38).flatmap(lambda p: st.builds(t.Decimal, st.just(p), st.integers(0, p)))


def _products(parts: st.SearchStrategy[t.Type]) -> st.SearchStrategy[t.Type]:
    fields = st.lists(st.sampled_from(_NAMES), unique=True, max_size=3)
    records = fields.flatmap(
        lambda names: st.tuples(*(st.tuples(st.just(name), parts) for name in names))
    ).map(t.Record)
    tuples = st.lists(parts, min_size=1, max_size=3).map(lambda items: t.Tuple(tuple(items)))
    optionals = parts.map(lambda inner: inner if isinstance(inner, t.Optional) else t.Optional(inner))
    return records | tuples | optionals


def _sequences(parts: st.SearchStrategy[t.Type]) -> st.SearchStrategy[t.Type]:
    return st.builds(t.List, parts) | st.builds(t.Array, parts, st.integers(0, 3))


def key_types(leaves: int = 4) -> st.SearchStrategy[t.Type]:
    """Types that may be keys of maps and items of bags."""
    flat = st.sampled_from((*_FLAT, t.I128)) | _decimals()
    return st.recursive(flat, lambda parts: _products(parts) | _sequences(parts), max_leaves=leaves)


def item_types(leaves: int = 5) -> st.SearchStrategy[t.Type]:
    """Types whose values may travel along queues."""
    flat = st.sampled_from(_FLAT) | _decimals()
    item_keys = st.recursive(flat, _products, max_leaves=2)
    return st.recursive(
        flat,
        lambda parts: _products(parts) | _sequences(parts) | st.builds(t.Map, item_keys, parts),
        max_leaves=leaves,
    )


def types(leaves: int = 5, *, hashed: bool = False) -> st.SearchStrategy[t.Type]:
    """All types of values; `hashed`: only those that have a hash64."""
    opaque = () if hashed else (t.FSUM, t.REGEX)
    flat = st.sampled_from((*_FLAT, t.I128, *opaque)) | _decimals()
    keys = key_types(2)
    return st.recursive(
        flat,
        lambda parts: (
            _products(parts)
            | _sequences(parts)
            | st.builds(t.Deque, parts)
            | st.builds(t.Map, keys, parts)
            | st.builds(t.OMap, keys, parts)
            | st.builds(t.Bag, keys)
        ),
        max_leaves=leaves,
    )


def typed_values(of: st.SearchStrategy[t.Type]) -> st.SearchStrategy[tuple[t.Type, Any]]:
    """A type, and a value of it."""
    return of.flatmap(lambda type_: st.tuples(st.just(type_), values_of(type_)))


def typed_pairs(of: st.SearchStrategy[t.Type]) -> st.SearchStrategy[tuple[t.Type, Any, Any]]:
    """A type, and two values of it that are often the same."""

    def pair(type_: t.Type) -> st.SearchStrategy[tuple[t.Type, Any, Any]]:
        values = values_of(type_, 3)
        return st.tuples(st.just(type_), values, values) | values.map(lambda value: (type_, value, value))

    return of.flatmap(pair)
