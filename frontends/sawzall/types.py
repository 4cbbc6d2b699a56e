"""The types of Sawzall: those of River, of which its words name some, and fingerprints, which River does not tell from numbers.

The checker knows a fingerprint as a type of its own, which mixes with nothing; `lowered` makes a `u64` of it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from river.lang import types as t
from river.lang.parse import RESERVED
from river.lang.scope import expression as written
from river.lang.scope import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.lang import syntax as s

FINGERPRINT = t.Primitive("fingerprint")

BASIC: Mapping[str, t.Type] = MappingProxyType({
    "bool": t.BOOL, "int": t.I64, "uint": t.U64, "float": t.F64, "string": t.STRING, "bytes": t.BYTES, "time": t.TIME,
    "fingerprint": FINGERPRINT,
})  # fmt: skip
"""The basic types by their names."""

_SPELLED = {type_: name for name, type_ in BASIC.items()}


def kept_name(name: str) -> str:
    """The name by which River knows a field, a table or a record; some words name nothing there."""
    return f"{name}_" if name in RESERVED else name


def lowered(type_: t.Type) -> t.Type:
    """The type of River by which values of `type_` are kept."""
    match type_:
        case t.Primitive():
            return t.U64 if type_ == FINGERPRINT else type_
        case t.List(item):
            return t.List(lowered(item))
        case t.Map(key, value):
            return t.Map(lowered(key), lowered(value))
        case t.Record(fields):
            return t.Record(tuple((name, lowered(field)) for name, field in fields))
        case t.Optional(inner):
            return t.Optional(lowered(inner))
        case t.Function():
            return t.I64  # the number of the function
        case _:
            return type_


def expression(type_: t.Type) -> s.TypeExpr:
    """How the operator language writes the type of values of `type_`."""
    return written(lowered(type_))


def spelled(type_: t.Type) -> str:
    """The type as Sawzall says it."""
    match type_:
        case t.List(item):
            return f"array of {spelled(item)}"
        case t.Map(key, value):
            return f"map [{spelled(key)}] of {spelled(value)}"
        case t.Record(fields):
            named = (
                spelled(f) if name == f"_{i}" else f"{name}: {spelled(f)}"
                for i, (name, f) in enumerate(fields)
            )
            return "{" + ", ".join(named) + "}"
        case t.Optional(inner):
            return f"{spelled(inner)}?"
        case t.Function(params, result):
            given = ", ".join(map(spelled, params))
            return f"function({given})" + ("" if result is None else f": {spelled(result)}")
        case t.Primitive():
            return _SPELLED.get(type_) or show(type_)
        case _:
            return show(type_)
