"""The types of Sawzall: those of River, of which its words name some, and two of its own.

The checker knows a fingerprint as a type of its own, which mixes with nothing; `lowered` makes a `u64` of it. A tuple with tags
is a record that also knows which of its fields are there, and what was read that it has no field for.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from river.classes import frozen
from river.il.trees import fresh
from river.lang import types as t
from river.lang.parse import RESERVED
from river.lang.scope import expression as written
from river.lang.scope import show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from river.lang import syntax as s

FINGERPRINT = t.Primitive("fingerprint")


@frozen(cache_hash=True)
class Recursive(t.Primitive):
    """A type that contains itself, in arrays or maps: its name in the text, and its number among these types of the program."""

    number: int


BASIC: Mapping[str, t.Type] = MappingProxyType({
    "bool": t.BOOL, "int": t.I64, "uint": t.U64, "float": t.F64, "string": t.STRING, "bytes": t.BYTES, "time": t.TIME,
    "fingerprint": FINGERPRINT,
})  # fmt: skip
"""The basic types by their names."""

PACKED: Mapping[t.Type, tuple[str, ...]] = MappingProxyType({
    t.BOOL: ("bool",),
    t.I64: (
        "int64", "uint64", "int32", "uint32", "sint64", "sint32", "fixed64", "fixed32", "sfixed64", "sfixed32"
    ),
    t.U64: ("uint64", "int64", "uint32", "fixed64", "fixed32"),
    t.F64: ("double", "float"),
    t.STRING: ("string", "bytes"),
    t.BYTES: ("bytes", "string"),
    t.TIME: ("fixed64",),
    FINGERPRINT: ("fixed64",),
})  # fmt: skip
"""The types of protocol buffers that the field of a tuple may have there, first the one that it has if none is stated."""

_SPELLED = {type_: name for name, type_ in BASIC.items()}

FLAGS = 63
"""How many fields one whole number says of whether they are there."""


@frozen(cache_hash=True)
class Proto(t.Record):
    """A tuple that is also the bytes of a protocol buffer.

    Of each field `tags` has the number, `kinds` the type there, and `defaults` the value where it is not there, which is empty
    or 0 for None. `message`: as a field it is bytes with a length, else it stands between two tags.
    """

    tags: tuple[int, ...]
    kinds: tuple[str, ...]
    defaults: tuple[object, ...]
    message: bool = False

    @property
    def there(self) -> tuple[str, ...]:
        """The names of the hidden fields that say, a bit for each, which fields are there."""
        taken = {name for name, _ in self.fields}
        found: list[str] = []
        for _ in range(0, max(1, len(self.fields)), FLAGS):
            found.append(fresh("there", taken))
            taken.add(found[-1])
        return tuple(found)

    @property
    def rest(self) -> str:
        """The name of the hidden field that holds the bytes of what was read and has no field."""
        return fresh("rest", {name for name, _ in self.fields})

    def flag(self, name: str) -> tuple[str, int]:
        """The hidden field, and the bit in it, that say whether field `name` is there."""
        index = self.index(name)
        assert index is not None  # noqa: S101 - the checker has seen to it
        return self.there[index // FLAGS], 1 << index % FLAGS

    def all_there(self) -> tuple[int, ...]:
        """The values of `there` of a tuple that has all its fields."""
        counts = (min(FLAGS, len(self.fields) - i * FLAGS) for i in range(len(self.there)))
        return tuple((1 << count) - 1 for count in counts)


def plain(type_: t.Type) -> t.Type:
    """The type without the tags of tuples: values of types that differ in nothing else are the same."""
    match type_:
        case t.List(item):
            return t.List(plain(item))
        case t.Map(key, value):
            return t.Map(plain(key), plain(value))
        case t.Record(fields):
            return t.Record(tuple((name, plain(field)) for name, field in fields))
        case _:
            return type_


def kept_name(name: str) -> str:
    """The name by which River knows a field, a table or a record; some words name nothing there."""
    return f"{name}_" if name in RESERVED else name


def lowered(type_: t.Type) -> t.Type:
    """The type of River by which values of `type_` are kept."""
    match type_:
        case Recursive():
            return t.BYTES
        case t.Primitive():
            return t.U64 if type_ == FINGERPRINT else type_
        case t.List(item):
            return t.List(lowered(item))
        case t.Map(key, value):
            return t.Map(lowered(key), lowered(value))
        case t.Record(fields):
            found = tuple((name, lowered(field)) for name, field in fields)
            if isinstance(type_, Proto):
                flags = tuple((name, t.I64) for name in type_.there)
                found = (*found, *flags, (type_.rest, t.BYTES))
            return t.Record(found)
        case t.Optional(inner):
            return t.Optional(lowered(inner))
        case t.Function():
            return t.I64  # the number of the function
        case _:
            return type_


def expression(type_: t.Type) -> s.TypeExpr:
    """How the operator language writes the type of values of `type_`."""
    return written(lowered(type_))


def spelled(type_: t.Type, name_of: Callable[[t.Record], str | None] = lambda _: None) -> str:
    """The type as Sawzall says it. `name_of`: the name of a tuple, where it goes by one."""

    def inner(of: t.Type) -> str:
        return spelled(of, name_of)

    match type_:
        case t.List(item):
            return f"array of {inner(item)}"
        case t.Map(key, value):
            return f"map [{inner(key)}] of {inner(value)}"
        case t.Record(fields):
            named = (
                inner(field) if name == f"_{i}" else f"{name}: {inner(field)}"
                for i, (name, field) in enumerate(fields)
            )
            return name_of(type_) or "{" + ", ".join(named) + "}"
        case t.Optional(of):
            return f"{inner(of)}?"
        case t.Function(params, result):
            given = ", ".join(map(inner, params))
            return f"function({given})" + ("" if result is None else f": {inner(result)}")
        case t.Primitive():
            return _SPELLED.get(type_) or show(type_)
        case _:
            return show(type_)
