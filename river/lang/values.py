"""The values of the evaluator: a Python form for each type, directed by the type; no value carries its type.

bool: bool; whole numbers, time, duration: int; decimal(p, s): int scaled by 10^s; f64: float; f32: float that is a single; string:
str without surrogates; bytes: bytes; unit: (); regex: `patterns.Regex`; optional: None or the value; record and tuple: tuple; fsum:
`Sum`. Containers have two forms, both readable in the same ways: frozen, deeply immutable and hashable (tuple, `FrozenMap`,
`FrozenOMap`, `FrozenBag`), and mutable (list, `deque`, dict, `OMap`, `Bag`), whose parts may have either form.

Every NaN is the one object `NAN`, so that Python's containers find it. Keys have no -0.0 (`keyer`).
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NoReturn, assert_never, cast

from attrs import frozen

from river.lang import types as t
from river.lang.patterns import Regex, compile_pattern

Value = Any
Order = Callable[[Any], Any]

NAN: Final = math.nan
INFINITY: Final = math.inf
MASK64: Final = (1 << 64) - 1
BOUNDS: Final[dict[t.Type, tuple[int, int]]] = {
    t.I32: (-(1 << 31), (1 << 31) - 1), t.I64: (-(1 << 63), (1 << 63) - 1), t.U64: (0, MASK64),
    t.I128: (-(1 << 127), (1 << 127) - 1), t.TIME: (-(1 << 63), (1 << 63) - 1), t.DURATION: (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip


class TrapSignal(Exception):
    """The meaning of an operation cannot go on: a code of il.md 2.4, and the values it complains of."""

    def __init__(self, code: str, *operands: Value) -> None:
        super().__init__(code, *operands)
        self.code = code
        self.operands = operands


@frozen
class Mark:
    """A promise in a queue: no later item has a key below `key` (il.md P2)."""

    key: Value


END: Final = Mark(INFINITY)


# ---------------------------------------------------------------------------------------------- frozen containers


def _blocked(self: object, *_args: object, **_named: object) -> NoReturn:
    raise TypeError(f"a {type(self).__name__} cannot change")


class FrozenMap(dict[Any, Any]):
    """A map that cannot change. Equality and hash see the order of entries: it is part of a state."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(tuple(self.items()))
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, dict) and list(self.items()) == list(_pairs(cast("dict[Any, Any]", other)))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return f"FrozenMap({super().__repr__()})"

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _blocked  # pyright: ignore[reportAssignmentType]


def _pairs(entries: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    return entries.items()


class OMap:
    """Keys to values, in ascending order of `order(key)` (of the keys themselves when `order` is None)."""

    __slots__ = ("_entries", "_keys", "_sorted", "order")

    def __init__(self, order: Order | None, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        self.order = order
        self._entries: dict[Any, Any] = dict(pairs)
        self._keys: list[Any] = sorted(self._entries, key=order)
        self._sorted: list[Any] = self._keys if order is None else [order(key) for key in self._keys]

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __getitem__(self, key: Any) -> Any:
        return self._entries[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self._entries:
            place = bisect_left(self._sorted, key if self.order is None else self.order(key))
            self._keys.insert(place, key)
            if self.order is not None:
                self._sorted.insert(place, self.order(key))
        self._entries[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._entries[key]
        place = bisect_left(self._sorted, key if self.order is None else self.order(key))
        del self._keys[place]
        if self.order is not None:
            del self._sorted[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OMap) and self._keys == other._keys and self._entries == other._entries

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.items())!r})"

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self._entries.get(key, default)

    def keys(self) -> list[Any]:
        """The keys, ascending."""
        return list(self._keys)

    def values(self) -> list[Any]:
        """The values, in the order of their keys."""
        return [self._entries[key] for key in self._keys]

    def items(self) -> list[tuple[Any, Any]]:
        """Key and value, ascending."""
        return [(key, self._entries[key]) for key in self._keys]

    def first(self) -> Any:
        """The smallest key; the map is not empty."""
        return self._keys[0]

    def last(self) -> Any:
        """The greatest key; the map is not empty."""
        return self._keys[-1]

    def floor(self, key: Any) -> Any:
        """The greatest key at most `key`, or None."""
        place = bisect_right(self._sorted, key if self.order is None else self.order(key))
        return self._keys[place - 1] if place else None

    def ceil(self, key: Any) -> Any:
        """The smallest key at least `key`, or None."""
        place = bisect_left(self._sorted, key if self.order is None else self.order(key))
        return self._keys[place] if place < len(self._keys) else None

    def between(self, low: Any, high: Any) -> list[Any]:
        """The keys from `low` to `high`, which is excluded."""
        start, stop = (
            bisect_left(self._sorted, k if self.order is None else self.order(k)) for k in (low, high)
        )
        return self._keys[start:stop]


class FrozenOMap(OMap):
    """An `OMap` that cannot change."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(tuple(self.items()))
            return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    __setitem__ = __delitem__ = _blocked  # pyright: ignore[reportAssignmentType]


class Bag:
    """A multiset, iterated in insertion order of the survivors; an item that leaves is the oldest of its equals."""

    __slots__ = ("_at", "_items", "_next")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items: dict[int, Any] = {}  # by number of insertion
        self._at: dict[Any, deque[int]] = {}
        self._next = 0
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __contains__(self, item: object) -> bool:
        return item in self._at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag | FrozenBag) and tuple(self) == tuple(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Bag({list(self)!r})"

    def add(self, item: Any) -> None:
        """Adds one."""
        self._items[self._next] = item
        self._at.setdefault(item, deque()).append(self._next)
        self._next += 1

    def remove(self, item: Any) -> None:
        """Removes the oldest equal item.

        Raises: KeyError.
        """
        places = self._at[item]
        del self._items[places.popleft()]
        if not places:
            del self._at[item]

    def count(self, item: Any) -> int:
        """How many are equal to `item`."""
        return len(self._at.get(item, ()))


class FrozenBag(tuple[Any, ...]):
    """A `Bag` that cannot change: its items in order."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenBag) and super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"FrozenBag({list(self)!r})"


# ---------------------------------------------------------------------------------------------- exact sums


Sum = tuple[int, int, int, int]
"""An exact float sum: the finite part times 2^1074, and how many +inf, -inf and NaN were added less those subtracted."""

ZERO_SUM: Final[Sum] = (0, 0, 0, 0)
_SUM_UNIT: Final = 1 << 1074


def add_to_sum(total: Sum, value: float, times: int = 1) -> Sum:
    """`total` with `value` added `times` times (-1: subtracted)."""
    whole, up, down, undefined = total
    if value - value == 0.0:
        above, below = value.as_integer_ratio()
        return whole + times * (above << (1075 - below.bit_length())), up, down, undefined
    if value != value:
        return whole, up, down, undefined + times
    return (whole, up + times, down, undefined) if value > 0 else (whole, up, down + times, undefined)


def sum_value(total: Sum) -> float:
    """The sum, correctly rounded once. Beyond the range it is infinite; inf - inf and NaN give NaN; -0.0 sums to 0.0."""
    whole, up, down, undefined = total
    if undefined or (up and down):
        return NAN
    if up or down:
        return INFINITY if up else -INFINITY
    try:
        return whole / _SUM_UNIT
    except OverflowError:
        return INFINITY if whole > 0 else -INFINITY


# ---------------------------------------------------------------------------------------------- numbers


def single(value: float) -> float:
    """`value` rounded to 32 bits; beyond the range infinite."""
    try:
        return _FLOAT.unpack(_FLOAT.pack(value))[0] if value == value else NAN
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY


_FLOAT: Final = struct.Struct("<f")


# ---------------------------------------------------------------------------------------------- default


def default(type_: t.Type) -> Value:
    """The zero of `type_`, frozen: 0, empty, none, each field its zero."""
    match type_:
        case t.Primitive(name):
            return _ZERO.get(name, 0)
        case t.Decimal():
            return 0
        case t.Optional():
            return None
        case t.Record() | t.Tuple():
            return tuple(map(default, t.parts(type_)))
        case t.Array(item, size):
            return (default(item),) * size
        case t.List() | t.Deque() | t.Map() | t.OMap() | t.Bag():
            return frozen_form(type_, ())
        case t.Function():
            raise TypeError("a function is not a value")
        case _:
            assert_never(type_)


_ZERO: Final[dict[str, Value]] = {
    "bool": False, "f32": 0.0, "f64": 0.0, "string": "", "bytes": b"", "unit": (), "regex": compile_pattern(""),
    "fsum": ZERO_SUM,
}  # fmt: skip


# ---------------------------------------------------------------------------------------------- frozen and mutable


def frozen_class(type_: t.Type) -> type:
    """The Python class of the frozen form of a container type."""
    match type_:
        case t.Map():
            return FrozenMap
        case t.OMap():
            return FrozenOMap
        case t.Bag():
            return FrozenBag
        case _:
            return tuple


def frozen_form(type_: t.Type, parts: Iterable[Any]) -> Value:
    """A frozen container of type `type_` from frozen items, or pairs for maps; keys must be canonical."""
    match type_:
        case t.Map():
            return FrozenMap(parts)
        case t.OMap(key, _):
            return FrozenOMap(total_key(key), parts)
        case t.Bag():
            return FrozenBag(parts)
        case _:
            return tuple(parts)


def mutable_form(type_: t.Type, parts: Iterable[Any]) -> Value:
    """A mutable container of type `type_` from items, or pairs for maps; keys must be frozen and canonical."""
    match type_:
        case t.Map():
            return dict(parts)
        case t.OMap(key, _):
            return OMap(total_key(key), parts)
        case t.Bag():
            return Bag(parts)
        case t.Deque():
            return deque(parts)
        case _:
            return list(parts)


@cache
def thawer(type_: t.Type) -> Callable[[Value], Value]:
    """What makes the mutable form of a frozen container of type `type_`; its items are shared."""
    match type_:
        case t.Map():
            return dict
        case t.OMap(key, _):
            order = total_key(key)
            return lambda value: OMap(order, value.items())
        case t.Bag():
            return Bag
        case t.Deque():
            return deque
        case t.List() | t.Array():
            return list
        case _:
            raise TypeError(f"{type_} is not a container")


def thaw(type_: t.Type, value: Value) -> Value:
    """A mutable copy of a frozen container of type `type_`; its items are shared."""
    return thawer(type_)(value)


@cache
def freezer(type_: t.Type) -> Callable[[Value], Value] | None:
    """What makes values of `type_` deeply frozen, or None if they always are. Frozen values come back as they are."""
    if t.is_flat(type_):
        return None
    match type_:
        case t.Optional(inner):
            some = freezer(inner)
            return lambda value: value if value is None or some is None else some(value)
        case t.Record() | t.Tuple():
            return _record_freezer(
                tuple((i, f) for i, f in enumerate(map(freezer, t.parts(type_))) if f is not None)
            )
        case t.Map(_, item):
            return _map_freezer(freezer(item))
        case t.OMap(key, item):
            return _omap_freezer(total_key(key), freezer(item))
        case t.Bag():
            return lambda value: value if type(value) is FrozenBag else FrozenBag(value)
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            return _list_freezer(freezer(item))
        case _:
            raise TypeError(f"{type_} has no values")


def _list_freezer(item: Callable[[Value], Value] | None) -> Callable[[Value], Value]:
    if item is None:
        return lambda value: value if value.__class__ is tuple else tuple(value)
    return lambda value: value if value.__class__ is tuple else tuple(map(item, value))


def _map_freezer(item: Callable[[Value], Value] | None) -> Callable[[Value], Value]:
    if item is None:
        return lambda value: value if type(value) is FrozenMap else FrozenMap(value)
    return lambda value: (
        value if type(value) is FrozenMap else FrozenMap((k, item(v)) for k, v in value.items())
    )


def _omap_freezer(order: Order | None, item: Callable[[Value], Value] | None) -> Callable[[Value], Value]:
    def freeze(value: Value) -> Value:
        if type(value) is FrozenOMap:
            return value
        pairs = value.items()
        return FrozenOMap(order, pairs if item is None else ((k, item(v)) for k, v in pairs))

    return freeze


def _record_freezer(parts: tuple[tuple[int, Callable[[Value], Value]], ...]) -> Callable[[Value], Value]:
    def freeze(value: Value) -> Value:
        fields: list[Any] | None = None
        for i, part in parts:
            field = value[i]
            done = part(field)
            if done is not field:
                fields = fields or list(value)
                fields[i] = done
        return value if fields is None else tuple(fields)

    return freeze


@cache
def keyer(type_: t.Type) -> Callable[[Value], Value] | None:
    """What makes keys canonical: frozen, -0.0 made 0.0. None when every value of `type_` is."""
    if not t.contains(type_, t.F32, t.F64):
        return freezer(type_)
    match type_:
        case t.Primitive():
            return lambda value: value or 0.0
        case t.Optional(inner):
            some = keyer(inner)
            return lambda value: value if value is None or some is None else some(value)
        case t.Record() | t.Tuple():
            return _record_freezer(
                tuple((i, f) for i, f in enumerate(map(keyer, t.parts(type_))) if f is not None)
            )
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            part = keyer(item)
            return lambda value: tuple(value if part is None else map(part, value))
        case _:
            raise TypeError(f"{type_} is not a key")


# ---------------------------------------------------------------------------------------------- comparison


@cache
def total_key(type_: t.Type) -> Order | None:
    """What turns a value into a Python sort key of the total order; None when the value itself is one.

    none first, false before true, NaN last, -0.0 equal to 0.0, strings by code point, bytes unsigned, records and lists
    lexicographically, maps and bags as their sorted entries, sums by their parts, patterns by their text.
    """
    match type_:
        case t.Primitive("f32" | "f64"):
            return lambda value: (0, value) if value == value else (1, 0.0)
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


@cache
def same(type_: t.Type) -> Callable[[Value, Value], bool]:
    """Whether two values are the same in every observation: NaN is NaN, -0.0 is 0.0, the order of maps and bags is not seen."""
    if t.is_flat(type_):
        return lambda a, b: a is b or a == b
    if not t.contains(type_, t.Map, t.Bag):
        freeze = freezer(type_)
        assert freeze is not None
        return lambda a, b: a is b or freeze(a) == freeze(b)
    return lambda a, b: a is b or observed(type_, a) == observed(type_, b)


def observed(type_: t.Type, value: Value) -> Hashable:
    """`value` as an observation: maps as sets of pairs, bags as sets of counted items, the rest as they are; hashable."""
    see = _observer(type_)
    return value if see is None else see(value)


def _counted(items: Iterable[Any]) -> Hashable:
    return frozenset(Counter(items).items())


@cache
def _observer(type_: t.Type) -> Callable[[Value], Hashable] | None:
    if not t.contains(type_, t.Map, t.OMap, t.Bag):
        return freezer(type_)
    match type_:
        case t.Optional(inner):
            some = _observer(inner)
            return lambda value: value if value is None or some is None else some(value)
        case t.Record() | t.Tuple():
            parts = tuple(map(_observer, t.parts(type_)))
            return lambda value: tuple(
                v if see is None else see(v) for see, v in zip(parts, value, strict=True)
            )
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            each = _observer(item)
            return lambda value: tuple(value if each is None else map(each, value))
        case t.Map(_, item) | t.OMap(_, item):
            each = _observer(item)
            if each is None:
                return lambda value: frozenset(value.items())
            return lambda value: frozenset((k, each(v)) for k, v in value.items())
        case t.Bag():
            return _counted
        case _:
            raise TypeError(f"{type_} has no values")


# ---------------------------------------------------------------------------------------------- hashing

_SEED: Final = 0x9E3779B97F4A7C15
_STEP: Final = 0xD1342543DE82EF95
_LAST: Final = 0xA0761D6478BD642F


def hash64(type_: t.Type, value: Value) -> int:
    """A stable hash in 0 .. 2^64 - 1; values that are the same have the same hash. Not for fsum and regex.

    A value is a row of 64-bit words. With fold(x * y) = low word of the 128-bit product xor its high word, start with
    h = 0x9E3779B97F4A7C15; for each word w let h = fold((h ^ w) * 0xD1342543DE82EF95); the hash is
    fold((h ^ 0xA0761D6478BD642F) * 0xD1342543DE82EF95). The words are
      bool: 0, 1. i32 i64 u64 time duration: the number modulo 2^64. i128, decimal: modulo 2^64, then the upper half.
      f64, f32: the bits of the double; -0.0 as 0.0, every NaN 0x7FF8000000000000.
      string (as UTF-8), bytes: the length in bytes, then the bytes in little-endian words, the last filled up with zeros.
      unit: none. none: 0. a present optional: 1, then its words. record, tuple: the words of the fields.
      list, array, deque: the length, then the words of the items. omap: the length, then key and value, ascending.
      map, bag: the length, then the sum modulo 2^64 of the hashes of the entries (key's words, then the value's).
    """
    h = _SEED
    for word in _worder(type_)(value):
        product = (h ^ word) * _STEP
        h = (product ^ (product >> 64)) & MASK64
    product = (h ^ _LAST) * _STEP
    return (product ^ (product >> 64)) & MASK64


@cache
def _worder(type_: t.Type) -> Callable[[Value], Iterable[int]]:
    """What lists the words of a value."""
    match type_:
        case t.Primitive("string"):
            return lambda value: _bytes_words(value.encode())
        case t.Primitive("bytes"):
            return _bytes_words
        case t.Primitive("f32" | "f64"):
            return _float_words
        case t.Primitive("unit"):
            return lambda _: ()
        case t.Primitive("i128") | t.Decimal():
            return lambda value: (value & MASK64, value >> 64 & MASK64)
        case t.Primitive("fsum" | "regex") | t.Function():
            raise TypeError(f"{type_} has no hash")
        case t.Primitive():
            return lambda value: (value & MASK64,)
        case t.Optional(inner):
            some = _worder(inner)
            return lambda value: (0,) if value is None else (1, *some(value))
        case t.Record() | t.Tuple():
            parts = tuple(map(_worder, t.parts(type_)))
            return lambda value: [w for part, v in zip(parts, value, strict=True) for w in part(v)]
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            each = _worder(item)
            return lambda value: [len(value), *(w for v in value for w in each(v))]
        case t.OMap(key, item):
            pair = _worder(t.Tuple((key, item)))
            return lambda value: [len(value), *(w for entry in value.items() for w in pair(entry))]
        case t.Map(key, item):
            entry = t.Tuple((key, item))
            return lambda value: (len(value), sum(hash64(entry, e) for e in value.items()) & MASK64)
        case t.Bag(item):
            return lambda value: (len(value), sum(hash64(item, v) for v in value) & MASK64)
        case _:
            assert_never(type_)


def _bytes_words(value: bytes) -> tuple[int, ...]:
    count = -(-len(value) // 8)
    return (len(value), *struct.unpack(f"<{count}Q", value.ljust(8 * count, b"\0")))


def _float_words(value: float) -> tuple[int, ...]:
    if value != value:
        return (0x7FF8000000000000,)
    return struct.unpack("<Q", struct.pack("<d", value + 0.0))


# ---------------------------------------------------------------------------------------------- well-typed


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
            return _is(value, float) and (value == value or value is NAN)
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
