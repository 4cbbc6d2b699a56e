"""Python objects to values: what JSON says and what callers pass (dicts, tuples, datetimes).

A record is a mapping (extra keys are ignored, a missing optional field is none) or, from Python, a sequence
of all its fields in order. Tuples, lists and arrays are sequences; a map is an object when its keys are
strings and always may be a list of pairs; a key must not occur twice. A whole float is accepted as an integer
up to 2**53 and an integer as a float. From Python, a text for bytes is its UTF-8. Floats may be the strings `nan`, `inf`, `-inf`.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, isnan
from operator import index
from typing import Any, Final, SupportsFloat, SupportsIndex, cast

from river.diagnostics import InternalError, closest
from river.io import scalars
from river.io.scalars import Mismatch, wrong
from river.lang.scope import show
from river.lang.types import (
    BYTES,
    DURATION,
    F32,
    F64,
    TIME,
    Array,
    Decimal,
    List,
    Map,
    Optional,
    Primitive,
    Record,
    Tuple,
    Type,
)
from river.lang.values import NAN, FrozenMap, keyer

Decoder = Callable[[Any], Any]
EXACT: Final = 2**53


class NumberText(str):
    """The text of a JSON number with a fraction or exponent, kept where a decimal may want all of its digits."""

    __slots__ = ()


def decoder(type_: Type, *, python: bool = False) -> Decoder:
    """The function from objects to values of `type_`; it raises Mismatch with the path of the fault.

    `python`: objects come from a caller, so times may be datetimes, durations timedeltas, bytes are bytes, records
    may be sequences; else they come from JSON.
    """
    match type_:
        case Primitive() | Decimal():
            return _python(type_) if python else _json(type_)
        case Optional(inner):
            return _optional(decoder(inner, python=python))
        case Record():
            return _record(type_, python)
        case Tuple(items):
            return _sequence(type_, [decoder(item, python=python) for item in items])
        case List(item):
            return _list(type_, decoder(item, python=python), None)
        case Array(item, size):
            return _list(type_, decoder(item, python=python), size)
        case Map():
            return _map(type_, python)
        case _:
            raise InternalError(f"items of type {show(type_)} do not travel")


def _optional(inner: Decoder) -> Decoder:
    def decode(value: Any) -> Any:
        return None if value is None else inner(value)

    return decode


def _record(type_: Record, python: bool) -> Decoder:
    fields = [(name, decoder(t, python=python), isinstance(t, Optional)) for name, t in type_.fields]
    by_position = _sequence(type_, [f for _, f, _ in fields], [f".{name}" for name, _, _ in fields])

    def decode(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict and not isinstance(value, Mapping):
            if python:
                return by_position(value)
            raise wrong(value, type_)
        mapping = cast("Mapping[object, Any]", value)
        out: list[Any] = []
        name = ""
        try:
            for name, field, optional in fields:
                if name in mapping:
                    out.append(field(mapping[name]))
                elif optional:
                    out.append(None)
                else:
                    out.append(_missing(name, mapping))
        except Mismatch as mismatch:
            raise mismatch.inside(f".{name}") from None
        return tuple(out)

    return decode


def _missing(name: str, mapping: Mapping[object, Any]) -> Any:
    near = closest(name, [key for key in mapping if isinstance(key, str)])
    raise Mismatch("data-missing-field", "is missing", help=near)


def _items(value: Any, type_: Type) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    raise wrong(value, type_)


def _sequence(type_: Type, fields: list[Decoder], steps: list[str] | None = None) -> Decoder:
    names = steps or [f"[{i}]" for i in range(len(fields))]

    def decode(value: Any) -> tuple[Any, ...]:
        items = _items(value, type_)
        if len(items) != len(fields):
            code = "data-missing-field" if len(items) < len(fields) else "data-extra-field"
            raise Mismatch(code, f"{len(fields)} values are needed, {len(items)} are here")
        return _each(items, fields, names)

    return decode


def _each(items: Sequence[Any], fields: Iterable[Decoder], names: Sequence[str]) -> tuple[Any, ...]:
    out: list[Any] = []
    try:
        for item, field in zip(items, fields, strict=True):
            out.append(field(item))
    except Mismatch as mismatch:
        raise mismatch.inside(names[len(out)]) from None
    return tuple(out)


def _list(type_: Type, item: Decoder, size: int | None) -> Decoder:
    def decode(value: Any) -> tuple[Any, ...]:
        items = _items(value, type_)
        if size is not None and len(items) != size:
            raise Mismatch("data-type", f"{size} items are needed, {len(items)} are here")
        out: list[Any] = []
        try:
            for one in items:
                out.append(item(one))  # noqa: PERF401 - the length tells which one failed
        except Mismatch as mismatch:
            raise mismatch.inside(f"[{len(out)}]") from None
        return tuple(out)

    return decode


def _map(type_: Map, python: bool) -> Decoder:
    pair = (decoder(type_.key, python=python), decoder(type_.value, python=python))
    by_name = python or type_.key == Primitive("string")
    canonical = keyer(type_.key)

    def decode(value: Any) -> FrozenMap:
        named = isinstance(value, Mapping) and by_name
        pairs: Iterable[Any] = cast("Mapping[Any, Any]", value).items() if named else _items(value, type_)
        out: dict[Any, Any] = {}
        for number, one in enumerate(pairs):
            entry = _items(one, type_)
            if len(entry) != 2:
                raise wrong(one, type_).inside(f"[{number}]")
            try:
                key = pair[0](entry[0])
                item = pair[1](entry[1])
            except Mismatch as mismatch:
                raise mismatch.inside(f"[{scalars.shown(entry[0])}]") from None
            if canonical is not None:
                key = canonical(key)
            if key in out:
                raise Mismatch("data-type", f"key {scalars.shown(entry[0])} occurs twice")
            out[key] = item
        return FrozenMap(out)

    return decode


def _json(type_: Primitive | Decimal) -> Decoder:
    match type_:
        case Primitive("bool"):
            return lambda value: value if isinstance(value, bool) else _fail(value, type_)
        case Primitive("i32" | "i64" | "u64"):
            return lambda value: _integer(value, type_)
        case Primitive("f32" | "f64"):
            return lambda value: _float(value, type_)
        case Primitive("unit"):
            return lambda value: () if value == [] else _fail(value, type_)
        case Decimal():
            return lambda value: _decimal(value, type_)
        case _:
            parse = scalars.parser(type_)
            return lambda value: parse(value) if type(value) is str else _fail(value, type_)


def _python(type_: Primitive | Decimal) -> Decoder:
    match type_:
        case Primitive("time"):
            return _time
        case Primitive("duration"):
            return _duration
        case Primitive("bytes"):
            return _bytes
        case Primitive("unit"):
            return lambda value: () if value in ((), []) else _fail(value, type_)
        case Primitive("string"):
            parse = scalars.parser(type_)
            return lambda value: parse(str.__str__(value)) if isinstance(value, str) else _fail(value, type_)
        case _:
            return _json(type_)


def _bytes(value: Any) -> bytes:
    """Bytes as they are; a text is its UTF-8."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return scalars.check_text(str.__str__(value)).encode() if isinstance(value, str) else _fail(value, BYTES)


def _fail(value: Any, type_: Type) -> Any:
    raise wrong(value, type_)


def _integer(value: Any, type_: Type) -> int:
    if type(value) is int:
        return scalars.check_int(value, type_)
    if isinstance(value, bool) or type(value) is str:
        raise wrong(value, type_)
    if isinstance(value, float | NumberText):
        number = float(value)
        if not number.is_integer():
            raise wrong(value, type_)
        if abs(number) > EXACT:
            raise Mismatch("data-range", f"{scalars.shown(value)} is not an exact integer")
        return scalars.check_int(int(number), type_)
    return scalars.check_int(_index(value, type_), type_)


def _index(value: Any, type_: Type) -> int:
    """Integers of other libraries say that they are by `__index__`."""
    if isinstance(value, SupportsIndex):
        return index(value)
    raise wrong(value, type_)


def _float(value: Any, type_: Type) -> float:
    if type(value) is float and type_ == F64:
        return NAN if isnan(value) else value
    if isinstance(value, bool):
        raise wrong(value, type_)
    if isinstance(value, NumberText):
        return scalars.parse_float(value, type_)
    if isinstance(value, str):
        if value.lower().lstrip("+-") not in ("nan", "inf", "infinity"):
            raise wrong(value, type_)
        return scalars.parse_float(value, type_)
    if not isinstance(value, SupportsFloat):
        raise wrong(value, type_)
    try:
        number = float(value)
    except (OverflowError, ValueError, TypeError):
        raise scalars.out_of_range(value, type_) from None
    if isnan(number):
        return NAN
    return scalars.round_f32(number) if type_ == F32 else number


def _decimal(value: Any, type_: Decimal) -> int:
    if isinstance(value, str):  # NumberText too
        return scalars.parse_decimal(value, type_)
    if isinstance(value, decimal.Decimal):
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise wrong(value, type_)
        return scalars.scaled(bool(sign), "".join(map(str, digits)).lstrip("0"), exponent, type_, value)
    if isinstance(value, float) and isfinite(value):
        return scalars.parse_decimal(repr(value), type_)
    if isinstance(value, bool):
        raise wrong(value, type_)
    number = _index(value, type_)
    if abs(number) >= 10**type_.precision:
        raise scalars.out_of_range(value, type_)
    return scalars.scaled(number < 0, str(abs(number)).lstrip("0"), 0, type_, value)


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TICK: Final = dt.timedelta(microseconds=1)


def _time(value: Any) -> int:
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return _ticks(aware - _EPOCH, value, TIME)
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()) // _TICK
    if isinstance(value, str):
        return scalars.parse_time(value)
    raise scalars.without_unit(value, TIME)


def _duration(value: Any) -> int:
    if isinstance(value, dt.timedelta):
        return _ticks(value, value, DURATION)
    if isinstance(value, str):
        return scalars.parse_duration(value)
    raise scalars.without_unit(value, DURATION)


def _ticks(span: dt.timedelta, value: object, type_: Type) -> int:
    """Microseconds. The times of pandas have nanoseconds, and one that is none (NaT)."""
    whole = span // _TICK
    if isnan(whole):
        raise wrong(value, type_)
    if span % _TICK:
        raise Mismatch("data-range", f"{scalars.shown(value)} is finer than microseconds")
    return whole
