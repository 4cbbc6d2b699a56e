"""Values to JSON text; `decode` reads it back exactly.

Numbers are JSON numbers, decimals too (all their digits); NaN and infinities are the strings `nan`, `inf`,
`-inf`; times and durations are their texts, bytes base64; records are objects, tuples, lists and arrays are
arrays, unit is `[]`, none is null; a map is an object when its keys are strings, else an array of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from river.diagnostics import InternalError
from river.io import scalars
from river.lang.scope import show
from river.lang.types import STRING, Array, Decimal, List, Map, Optional, Primitive, Record, Tuple, Type

Encoder = Callable[[Any], str]


def encoder(type_: Type) -> Encoder:
    """The function from values of `type_` to JSON text on one line."""
    match type_:
        case Primitive("string"):
            return encode_basestring
        case Primitive("bool" | "i32" | "i64" | "u64") | Decimal():
            return scalars.formatter(type_)
        case Primitive("f32" | "f64"):
            text = scalars.formatter(type_)
            return lambda value: text(value) if isfinite(value) else f'"{value!r}"'
        case Primitive("unit"):
            return lambda _: "[]"
        case Primitive("bytes" | "time" | "duration"):
            plain = scalars.formatter(type_)
            return lambda value: f'"{plain(value)}"'
        case Optional(inner):
            some = encoder(inner)
            return lambda value: "null" if value is None else some(value)
        case Record(fields):
            named = [(f"{encode_basestring(name)}:", encoder(t)) for name, t in fields]
            return lambda value: (
                "{" + ",".join([n + f(v) for (n, f), v in zip(named, value, strict=True)]) + "}"
            )
        case Tuple(items):
            parts = [encoder(item) for item in items]
            return lambda value: "[" + ",".join([f(v) for f, v in zip(parts, value, strict=True)]) + "]"
        case List(item) | Array(item, _):
            one = encoder(item)
            return lambda value: "[" + ",".join(map(one, value)) + "]"
        case Map(key, value_type):
            return _map(key, value_type)
        case _:
            raise InternalError(f"items of type {show(type_)} do not travel")


def _map(key: Type, value_type: Type) -> Encoder:
    left, right = encoder(key), encoder(value_type)
    if key == STRING:
        return lambda value: "{" + ",".join([f"{left(k)}:{right(v)}" for k, v in value.items()]) + "}"
    return lambda value: "[" + ",".join([f"[{left(k)},{right(v)}]" for k, v in value.items()]) + "]"
