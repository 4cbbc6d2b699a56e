"""The types of River: a closed union of frozen values.

Every type but `Function` maps one to one on an Arrow type (river/io). `Function` is the type of a lambda argument; lambdas
are inlined and never values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from river.classes import frozen

PRIMITIVES: Final = (
    "bool", "i32", "i64", "u64", "i128", "f32", "f64", "string", "bytes", "time", "duration", "unit", "regex", "fsum",
)  # fmt: skip


@frozen(cache_hash=True)
class Primitive:
    """A type without parameters: one of `PRIMITIVES`.

    Units: `time` is microseconds since 1970-01-01T00:00Z, `duration` microseconds, both signed 64-bit.
    """

    name: str


@frozen(cache_hash=True)
class Decimal:
    """Exact decimal numbers of at most `precision` (1 to 38) digits, `scale` of them after the point."""

    precision: int
    scale: int


@frozen(cache_hash=True)
class Optional:
    """A value of `inner`, or none. `inner` is not itself optional."""

    inner: Type


@frozen(cache_hash=True)
class Record:
    """Named fields in order."""

    fields: tuple[tuple[str, Type], ...]

    def index(self, name: str) -> int | None:
        """The position of field `name`, or None."""
        return next((i for i, (field, _) in enumerate(self.fields) if field == name), None)

    def field(self, name: str) -> Type | None:
        """The type of field `name`, or None."""
        return next((type_ for field, type_ in self.fields if field == name), None)


@frozen(cache_hash=True)
class Tuple:
    """Positional fields."""

    items: tuple[Type, ...]


@frozen(cache_hash=True)
class List:
    """A growable sequence."""

    item: Type


@frozen(cache_hash=True)
class Array:
    """A sequence of exactly `size` items."""

    item: Type
    size: int


@frozen(cache_hash=True)
class Deque:
    """A double-ended queue."""

    item: Type


@frozen(cache_hash=True)
class Map:
    """Keys to values, iterated in order of first insertion."""

    key: Type
    value: Type


@frozen(cache_hash=True)
class OMap:
    """Keys to values, iterated in ascending order of keys."""

    key: Type
    value: Type


@frozen(cache_hash=True)
class Bag:
    """A multiset, iterated in insertion order of the survivors."""

    item: Type


@frozen(cache_hash=True)
class Function:
    """The type of a lambda argument; `result` is None where an operation accepts any."""

    params: tuple[Type, ...]
    result: Type | None


Type = Primitive | Decimal | Optional | Record | Tuple | List | Array | Deque | Map | OMap | Bag | Function

BOOL: Final = Primitive("bool")
I32: Final = Primitive("i32")
I64: Final = Primitive("i64")
U64: Final = Primitive("u64")
I128: Final = Primitive("i128")
F32: Final = Primitive("f32")
F64: Final = Primitive("f64")
STRING: Final = Primitive("string")
BYTES: Final = Primitive("bytes")
TIME: Final = Primitive("time")
DURATION: Final = Primitive("duration")
UNIT: Final = Primitive("unit")
REGEX: Final = Primitive("regex")
FSUM: Final = Primitive("fsum")

INTEGERS: Final = frozenset({I32, I64, U64, I128})
FLOATS: Final = frozenset({F32, F64})


def parts(type_: Type) -> tuple[Type, ...]:
    """The types directly inside `type_`."""
    match type_:
        case Primitive() | Decimal():
            return ()
        case Optional(inner):
            return (inner,)
        case Record(fields):
            return tuple(t for _, t in fields)
        case Tuple(items):
            return items
        case List(item) | Array(item, _) | Deque(item) | Bag(item):
            return (item,)
        case Map(key, value) | OMap(key, value):
            return (key, value)
        case Function(params, result):
            return params if result is None else (*params, result)


def part(type_: Type, index: int) -> Type:
    """One of them."""
    return type_.fields[index][1] if isinstance(type_, Record) else parts(type_)[index]


DEEPEST: Final = 100
"""Levels of a type."""
LARGEST: Final = 10_000
"""Types in a type, itself included; a type that stands in it twice counts twice."""


@lru_cache(maxsize=4096)
def measure(type_: Type) -> tuple[int, int]:
    """How many levels a type has, and how many types are in it, itself included."""
    inside = [measure(part) for part in parts(type_)]
    return 1 + max((levels for levels, _ in inside), default=0), 1 + sum(size for _, size in inside)


def excess(type_: Type) -> str | None:
    """What is too much of a type, in words; None if nothing is."""
    levels, size = measure(type_)
    if levels > DEEPEST:
        return f"this type has more than {DEEPEST} levels"
    return f"this type has more than {LARGEST:,} parts" if size > LARGEST else None


def is_container(type_: Type) -> bool:
    """Whether values of `type_` are themselves mutable in place: list, array, deque, map, omap, bag."""
    return isinstance(type_, List | Array | Deque | Map | OMap | Bag)


def is_flat(type_: Type) -> bool:
    """Whether no container stands anywhere in `type_`: such values are immutable and are shared freely."""
    return not is_container(type_) and all(is_flat(part) for part in parts(type_))


def contains(type_: Type, *wanted: Type | type) -> bool:
    """Whether `type_` is, or has inside, one of `wanted` (types, or classes of types)."""
    for one in wanted:
        if isinstance(type_, one) if isinstance(one, type) else type_ == one:
            return True
    for part in parts(type_):  # noqa: SIM110 - a generator for each part takes twice the time
        if contains(part, *wanted):
            return True
    return False


def is_key(type_: Type) -> bool:
    """Whether `type_` may be the key of a map or the item of a bag: it has equality that ignores representation."""
    return not contains(type_, Map, OMap, Bag, Deque, FSUM, REGEX, Function)


def is_item(type_: Type) -> bool:
    """Whether values of `type_` may travel along a queue (il.md 2.1: no views of state inside items)."""
    return not contains(type_, OMap, Bag, Deque, FSUM, REGEX, Function, I128)


def delta(row: Type, tau: Type = TIME) -> Record:
    """The type of CQL's items: an instant with the rows inserted and deleted at it (il.md P3)."""
    return Record((("tau", tau), ("ins", List(row)), ("del", List(row))))
