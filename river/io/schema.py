"""River types as Arrow types, one to one, and columns of values both ways.

| River | Arrow | also read from |
|---|---|---|
| bool, i32, i64, u64 | the same | any integer type, each value in range |
| f32, f64 | the same | any float type (rounded to nearest), integers that are exact |
| decimal(p,s) | decimal128(p, s) | other decimals and integers, if no digit is lost |
| string, bytes | string, binary | large, view, fixed size and dictionary forms |
| time | timestamp[us, UTC] | other units if exact, other zones, naive ones (taken as UTC), dates |
| duration | duration[us] | other units if exact |
| unit | null | |
| T? | nullable field | |
| record, tuple | struct (a tuple's fields are "0", "1", ...) | fields in any order, more fields |
| list, array | list, fixed_size_list | large and view forms |
| map | map | |

Parquet files get lists in place of arrays. `unit?` has no Arrow form: null could mean both of its values.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from functools import cache
from importlib import import_module
from itertools import accumulate, pairwise
from math import isnan
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from river.classes import define, frozen
from river.diagnostics import Diagnostic, Rejected
from river.io import scalars
from river.io.decode import EXACT, decoder
from river.io.scalars import Mismatch
from river.lang import memory
from river.lang.scope import show
from river.lang.types import (
    DURATION,
    F32,
    F64,
    I32,
    I64,
    STRING,
    TIME,
    U64,
    UNIT,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@cache
@memory.lifted()
def arrow(module: str = "") -> Any:
    """The package pyarrow or a module of it, imported at the first use; it has no type information.

    What it brings ends the process where it gets no memory to begin.
    """
    name = f"pyarrow.{module}" if module else "pyarrow"
    if not _missing.hidden:
        return import_module(name)
    hidden = {each: stands for each, stands in _HIDDEN.items() if each not in sys.modules}
    sys.modules.update(hidden)  # pyright: ignore[reportCallIssue, reportArgumentType] - to import None fails
    try:
        return import_module(name)
    finally:
        for each in hidden:
            del sys.modules[each]


def _no_ssl() -> Any:
    """What pyarrow asks `ssl` when it begins: who vouches for other machines. Nobody."""
    nobody = SimpleNamespace(cafile=None, capath=None)
    return SimpleNamespace(get_default_verify_paths=lambda: nobody)


_HIDDEN: Final[dict[str, Any]] = {
    "numpy": None,
    "pyarrow._azurefs": None,
    "pyarrow._gcsfs": None,
    "pyarrow._hdfs": None,
    "pyarrow._s3fs": None,
    "ssl": _no_ssl(),
}
"""What pyarrow can do without, and what stands there meanwhile."""


@define
class _Missing:
    hidden: bool = False


_missing: Final = _Missing()


def plain_arrow() -> None:
    """Has pyarrow imported as where numpy is not installed, nor what knows other machines: that takes most of its import.

    For a process in which nobody wants arrays of numpy of Arrow data, or these of arrays, nor file systems of pyarrow.
    """
    _missing.hidden = True


@cache
def arrow_type(type_: Type) -> Any:
    """The Arrow type of `type_`; that of an optional is that of its inner type.

    Raises: Rejected("data-format") for types that Arrow cannot say.
    """
    pa = arrow()
    match type_:
        case Primitive("bool"):
            return pa.bool_()
        case Primitive("i32"):
            return pa.int32()
        case Primitive("i64"):
            return pa.int64()
        case Primitive("u64"):
            return pa.uint64()
        case Primitive("f32"):
            return pa.float32()
        case Primitive("f64"):
            return pa.float64()
        case Primitive("string"):
            return pa.string()
        case Primitive("bytes"):
            return pa.binary()
        case Primitive("time"):
            return pa.timestamp("us", tz="UTC")
        case Primitive("duration"):
            return pa.duration("us")
        case Primitive("unit"):
            return pa.null()
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Optional(inner):
            if inner == UNIT:
                raise _unknown("Parquet files get lists in place of arrays. `unit?` has no Arrow form")
            return arrow_type(inner)
        case Record(fields):
            return pa.struct([arrow_field(name, t) for name, t in fields])
        case Tuple(items):
            return pa.struct([arrow_field(str(i), t) for i, t in enumerate(items)])
        case List(item):
            return pa.list_(arrow_field("item", item))
        case Array(item, size):
            return pa.list_(arrow_field("item", item), size)
        case Map(key, value):
            field = arrow_field("key", key)
            if field.nullable:
                raise _unknown(
                    f"a map whose keys are `{show(key)}` has no Arrow form: keys are never null there"
                )
            return pa.map_(field, arrow_field("value", value))
        case _:
            raise _unknown(f"`{show(type_)}` has no Arrow form")


def _unknown(message: str) -> Rejected:
    return Rejected([Diagnostic("data-format", message, help="use CSV or JSON lines")])


def arrow_field(name: str, type_: Type) -> Any:
    """The Arrow field of a record's field: nullable if it is optional (unit always is null)."""
    nullable = isinstance(type_, Optional) or type_ == UNIT
    return arrow().field(name, arrow_type(type_), nullable=nullable)


def columns(type_: Type) -> tuple[tuple[str, Type], ...]:
    """The columns of items of `type_`: the fields of a record, or one column `value`.

    Raises: Rejected("data-format") for a record without fields, which columns cannot count.
    """
    if not isinstance(type_, Record):
        return (("value", type_),)
    if not type_.fields:
        raise Rejected(
            [Diagnostic("data-format", "a record without fields has no columns", help="use JSON lines")]
        )
    return type_.fields


@cache
def arrow_schema(type_: Type) -> Any:
    """The Arrow schema of items of `type_`."""
    return arrow().schema([arrow_field(name, t) for name, t in columns(type_)])


def growable(type_: Type) -> Type:
    """`type_` with lists for arrays: Parquet cannot read back arrays inside absent records (pyarrow 26)."""
    match type_:
        case Array(item, _) | List(item):
            return List(growable(item))
        case Optional(inner):
            return Optional(growable(inner))
        case Record(fields):
            return Record(tuple((name, growable(field)) for name, field in fields))
        case Tuple(items):
            return Tuple(tuple(map(growable, items)))
        case Map(key, value):
            return Map(growable(key), growable(value))
        case _:
            return type_


# ------------------------------------------------------------------------------------------------- values to columns


def to_arrow(type_: Type, values: Sequence[Any]) -> Any:
    """The Arrow array of `values`."""
    if isinstance(type_, Primitive) and (type_ in _CODES or type_ == STRING):
        return _flat(type_, values)
    plain = _plain(type_)
    return arrow().array(values if plain is None else list(map(plain, values)), arrow_type(type_))


_CODES: Final = {I32: "i", I64: "q", U64: "Q", F32: "f", F64: "d", TIME: "q", DURATION: "q"}
"""Those of the module `array`, by type."""

_LONGEST: Final = (1 << 31) - 1
"""Bytes of the texts of an Arrow array."""


def _flat(type_: Primitive, values: Sequence[Any]) -> Any:
    """The array from buffers: pyarrow would import pandas to find out whether these are values of its kind."""
    pa = arrow()
    buffers: list[Any]
    if type_ == STRING:
        texts = [value.encode() for value in values]
        size = sum(map(len, texts))
        if size > _LONGEST:
            return pa.array(values, pa.string())
        buffers = [array("i", accumulate(map(len, texts), initial=0)), b"".join(texts)]
    else:
        buffers = [array(_CODES[type_], values)]
    return pa.Array.from_buffers(arrow_type(type_), len(values), [None, *map(pa.py_buffer, buffers)])


def to_batch(type_: Type, items: Sequence[Any]) -> Any:
    """The Arrow record batch of `items`."""
    fields = columns(type_)
    if not isinstance(type_, Record):
        cells: Sequence[Sequence[Any]] = (items,)
    else:
        cells = list(zip(*items, strict=True)) if items else [()] * len(fields)
    arrays = [to_arrow(t, column) for (_, t), column in zip(fields, cells, strict=True)]
    return arrow().record_batch(arrays, schema=arrow_schema(type_))


def _plain(type_: Type) -> Callable[[Any], Any] | None:
    """From values to what pyarrow takes for them; None: as they are."""
    match type_:
        case Primitive("unit"):
            return lambda _: None
        case Primitive():
            return None
        case Decimal(_, scale):
            return lambda value: _decimal(value, scale)
        case Optional(inner):
            some = _plain(inner)
            return None if some is None else (lambda value: None if value is None else some(value))
        case Record(fields):
            return _plain_struct([(name, _plain(t)) for name, t in fields])
        case Tuple(items):
            return _plain_struct([(str(i), _plain(t)) for i, t in enumerate(items)])
        case List(item) | Array(item, _):
            one = _plain(item)
            return None if one is None else (lambda value: [one(v) for v in value])
        case Map(key, value):
            left, right = _plain(key) or _same, _plain(value) or _same
            return lambda entries: [(left(k), right(v)) for k, v in entries.items()]
        case _:
            raise _unknown(f"`{show(type_)}` has no Arrow form")


def _same(value: Any) -> Any:
    return value


def _plain_struct(fields: list[tuple[str, Callable[[Any], Any] | None]]) -> Callable[[Any], Any]:
    named = [(name, field or _same) for name, field in fields]
    return lambda value: {name: field(part) for (name, field), part in zip(named, value, strict=True)}


def _decimal(value: int, scale: int) -> Any:
    from decimal import Decimal as Exact

    return Exact((int(value < 0), tuple(map(int, str(abs(value)))), -scale))


# ------------------------------------------------------------------------------------------------- columns to values

Faults = dict[int, Mismatch]


@frozen
class Column:
    """Decoded values of a column, and the rows of it that have none."""

    values: list[Any]
    faults: Faults


def from_arrow(type_: Type, column: Any) -> list[Any]:
    """The values of an Arrow array or chunked array.

    Raises: Rejected for a column of another type, or for the first value that does not fit.
    """
    why = refusal(type_, column.type)
    if why is not None:
        raise Rejected([Diagnostic(why.code, _message(why))])
    pa = arrow()
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    out: list[Any] = []
    for chunk in chunks:
        decoded = decode(type_, chunk)
        for row, fault in sorted(decoded.faults.items()):
            raise Rejected([Diagnostic(fault.code, f"row {len(out) + row + 1}: {_message(fault)}")])
        out += decoded.values
    return out


def _message(fault: Mismatch) -> str:
    return f"field `{fault.path.lstrip('.')}`: {fault.reason}" if fault.path else fault.reason


def refusal(type_: Type, given: Any) -> Mismatch | None:
    """Why a column of Arrow type `given` can hold no values of `type_`, or None if it can."""
    pt = arrow("types")
    if pt.is_dictionary(given):
        return refusal(type_, given.value_type)
    if isinstance(given, arrow().BaseExtensionType):
        return refusal(type_, given.storage_type)
    match type_:
        case Optional(inner):
            return None if pt.is_null(given) else refusal(inner, given)
        case Record(fields):
            return _struct_refusal(fields, given, type_)
        case Tuple(items):
            return _struct_refusal([(str(i), t) for i, t in enumerate(items)], given, type_)
        case List(item):
            if not _is_list(given):
                return _refused(type_, given)
            return _at("[]", refusal(item, given.value_type))
        case Array(item, size):
            if not _is_list(given) or (pt.is_fixed_size_list(given) and given.list_size != size):
                return _refused(type_, given)
            return _at("[]", refusal(item, given.value_type))
        case Map(key, value):
            if not pt.is_map(given):
                return _refused(type_, given)
            return _at(".key", refusal(key, given.key_type)) or _at(".value", refusal(value, given.item_type))
        case _:
            return None if _holds(type_, given) else _refused(type_, given)


def _refused(type_: Type, given: Any) -> Mismatch:
    found = Mismatch("data-type", f"the Arrow type `{given}` does not hold `{show(type_)}`")
    pt = arrow("types")
    if type_ in (TIME, DURATION) and (pt.is_integer(given) or pt.is_floating(given)):
        found.reason += ": a number does not say what it counts"
        kind = "timestamp" if type_ == TIME else "duration"
        pandas = "to_datetime" if type_ == TIME else "to_timedelta"
        found.help = f"if it counts seconds, give `column.cast(pa.{kind}('s'))`, in pandas `{pandas}(column, unit='s')`"
    return found


def _at(step: str, why: Mismatch | None) -> Mismatch | None:
    return None if why is None else why.inside(step)


def _is_list(given: Any) -> bool:
    pt = arrow("types")
    return bool(
        pt.is_list(given)
        or pt.is_large_list(given)
        or pt.is_fixed_size_list(given)
        or pt.is_list_view(given)
        or pt.is_large_list_view(given)
    )


def _struct_refusal(fields: Sequence[tuple[str, Type]], given: Any, type_: Type) -> Mismatch | None:
    if not arrow("types").is_struct(given):
        return _refused(type_, given)
    for name, field in fields:
        at = given.get_field_index(name)
        if at < 0:
            return Mismatch("data-missing-field", "is missing", f".{name}")
        why = refusal(field, given.field(at).type)
        if why is not None:
            return why.inside(f".{name}")
    return None


def _holds(type_: Type, given: Any) -> bool:
    pt = arrow("types")
    match type_:
        case Primitive("bool"):
            return bool(pt.is_boolean(given))
        case Primitive(
            "i32" | "i64" | "u64"
        ):  # floats are what pandas makes of whole numbers that may be missing
            return bool(pt.is_integer(given) or pt.is_floating(given))
        case Primitive("f32" | "f64"):
            return bool(pt.is_floating(given) or pt.is_integer(given))
        case Primitive("string"):
            return bool(pt.is_string(given) or pt.is_large_string(given) or pt.is_string_view(given))
        case Primitive("bytes"):  # a text is its UTF-8
            return bool(
                _holds(STRING, given)
                or pt.is_binary(given)
                or pt.is_large_binary(given)
                or pt.is_binary_view(given)
                or pt.is_fixed_size_binary(given)
            )
        case Primitive("time"):
            return bool(pt.is_timestamp(given) or pt.is_date(given))
        case Primitive("duration"):
            return bool(pt.is_duration(given))
        case Primitive("unit"):
            return bool(pt.is_null(given))
        case Decimal():
            return bool(pt.is_decimal(given) or pt.is_integer(given))
        case _:
            return False


def decode(type_: Type, array: Any) -> Column:
    """The values of one Arrow array whose type `refusal` has let through; a faulty row holds None."""
    pt = arrow("types")
    if isinstance(array.type, arrow().BaseExtensionType):
        array = array.storage
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    if type_ == UNIT:
        return Column([()] * len(array), {})
    if isinstance(type_, Optional):
        if pt.is_null(array.type):
            return Column([None] * len(array), {})
        decoded = _decode(type_.inner, array)
        if not array.null_count or not decoded.faults:
            return decoded
        present = array.is_valid().to_pylist()
        return Column(decoded.values, {row: f for row, f in decoded.faults.items() if present[row]})
    decoded = _decode(type_, array)
    if array.null_count:
        for row, valid in enumerate(array.is_valid().to_pylist()):
            if not valid:
                reason = f"is null, and `{show(type_)}` is not optional"
                decoded.faults[row] = Mismatch("data-type", reason)
    return decoded


def _decode(type_: Type, array: Any) -> Column:
    """Values where they are valid; None (or nonsense, for the caller to mask) elsewhere."""
    match type_:
        case Primitive("i32" | "i64" | "u64") if arrow("types").is_floating(array.type):
            return _each(array.to_pylist(), decoder(type_), done=False)
        case Primitive("i32" | "i64" | "u64"):
            return _each(
                array.to_pylist(), lambda value: scalars.check_int(value, type_), _fits(type_, array)
            )
        case Primitive("f32" | "f64"):
            return _floats(type_, array)
        case Primitive("string"):
            return _strings(array)
        case Primitive("time" | "duration"):
            return _instants(array)
        case Primitive("bytes") if not arrow("types").is_fixed_size_binary(array.type):
            return Column(array.cast(arrow().large_binary()).to_pylist(), {})
        case Primitive():
            return Column(array.to_pylist(), {})
        case Decimal():
            try:
                found = array.to_pylist()
            except ArithmeticError:  # of a scale that Python's decimals have not
                raise arrow().ArrowInvalid(f"`{array.type}` holds numbers that are no decimals") from None
            return _each(found, decoder(type_), done=False)
        case Record(fields):
            return _structs(fields, array)
        case Tuple(items):
            return _structs([(str(i), t) for i, t in enumerate(items)], array)
        case List(item):
            return _lists(item, array, None)
        case Array(item, size):
            return _lists(item, array, size)
        case Map(key, value):
            return _maps(key, value, array)
        case _:
            raise _unknown(f"`{show(type_)}` has no Arrow form")


def _each(values: list[Any], convert: Callable[[Any], Any], done: bool) -> Column:
    """`values` converted one by one (nulls stay None), or as they are when that is known to be right."""
    if done:
        return Column(values, {})
    out: list[Any] = []
    faults: Faults = {}
    for row, value in enumerate(values):
        try:
            out.append(None if value is None else convert(value))
        except Mismatch as mismatch:
            out.append(None)
            faults[row] = mismatch
    return Column(out, faults)


def _fits(type_: Type, array: Any) -> bool:
    """Whether every value of an integer array is in the range of `type_`."""
    if array.type == arrow_type(type_) or len(array) == array.null_count:
        return True
    extremes = arrow("compute").min_max(array).as_py()
    low, high = scalars.RANGES[type_]  # pyright: ignore[reportArgumentType]
    return low <= extremes["min"] and extremes["max"] <= high


def _floats(type_: Type, array: Any) -> Column:
    values = array.to_pylist()
    if arrow("types").is_integer(array.type):
        limit = EXACT if type_ == F64 else 2**24

        def whole(value: int) -> float:
            if abs(value) > limit and int(_rounded(float(value))) != value:
                raise Mismatch("data-range", f"{value} is not exact in `{show(type_)}`")
            return float(value)

        def _rounded(value: float) -> float:
            return value if type_ == F64 else scalars.round_f32(value)

        return _each(values, whole, done=False)
    values = [NAN if value is not None and isnan(value) else value for value in values]
    narrow = arrow("types").is_float64(array.type) and type_ == Primitive("f32")
    return _each(values, scalars.round_f32, done=not narrow)


def _strings(array: Any) -> Column:
    try:
        return Column(array.to_pylist(), {})
    except UnicodeDecodeError:
        raw = array.cast(arrow().large_binary()).to_pylist()

        def text(value: bytes) -> str:
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise Mismatch("data-utf8", f"{scalars.shown(value)} is not valid UTF-8") from None

        return _each(raw, text, done=False)


_PER_UNIT = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}


def _instants(array: Any) -> Column:
    """Timestamps, dates and durations in microseconds; zones do not matter, Arrow stores UTC."""
    pa, pt = arrow(), arrow("types")
    if pt.is_date32(array.type):
        times, by = scalars.DAY, 1
        array = array.cast(pa.int32())
    elif pt.is_date64(array.type):
        times, by = 1000, 1
        array = array.cast(pa.int64())
    else:
        times, by = _PER_UNIT[array.type.unit]
        array = array.cast(pa.int64())

    def micros(value: int) -> int:
        whole, rest = divmod(value * times, by)
        if rest:
            raise Mismatch("data-range", f"{value} ns is finer than microseconds")
        if not -(2**63) <= whole < 2**63:
            raise Mismatch("data-range", "is out of the range of 64-bit microseconds")
        return whole

    return _each(array.to_pylist(), micros, done=times == by)


def _structs(fields: Sequence[tuple[str, Type]], array: Any) -> Column:
    parts: list[list[Any]] = []
    faults: Faults = {}
    children = array.flatten()
    for name, type_ in fields:
        child = decode(type_, children[array.type.get_field_index(name)])
        parts.append(child.values)
        for row, fault in child.faults.items():
            faults.setdefault(row, fault.inside(f".{name}"))
    values: list[Any] = list(zip(*parts, strict=True)) if parts else [()] * len(array)
    _mask(values, array, faults)
    return Column(values, faults)


def _mask(values: list[Any], array: Any, faults: Faults) -> None:
    """Nulls hold None, whatever their children say."""
    if array.null_count:
        for row, valid in enumerate(array.is_valid().to_pylist()):
            if not valid:
                values[row] = None
                faults.pop(row, None)


def _extent(array: Any) -> tuple[list[int], int, int]:
    """The offsets of a list or map array, and the part of the child that they span."""
    offsets = array.offsets.to_pylist()
    return offsets, offsets[0], offsets[-1]


def _spread(
    child: Column, offsets: list[int], start: int, faults: Faults, step: Callable[[int], str]
) -> None:
    """Move the faults of child rows to the rows of the lists that hold them."""
    for at in sorted(child.faults):
        row = bisect_right(offsets, at + start) - 1
        if row not in faults:
            faults[row] = child.faults[at].inside(step(at + start - offsets[row]))


def _lists(item: Type, array: Any, size: int | None) -> Column:
    pt = arrow("types")
    # Offsets are made here rather than by casts, which lose items of nested null and view types (pyarrow 26).
    cells = array.values
    if pt.is_list_view(array.type) or pt.is_large_list_view(array.type):
        sizes = arrow("compute").list_value_length(array).to_pylist()
        offsets = [0, *accumulate(size or 0 for size in sizes)]
        start, end = 0, offsets[-1]
        cells = array.flatten()
    elif pt.is_fixed_size_list(array.type):
        wide = array.type.list_size
        offsets = [(array.offset + row) * wide for row in range(len(array) + 1)]
        start, end = offsets[0], offsets[-1]
    else:
        offsets, start, end = _extent(array)
    child = decode(item, cells.slice(start, end - start))
    faults: Faults = {}
    _spread(child, offsets, start, faults, lambda at: f"[{at}]")
    values: list[Any] = [tuple(child.values[low - start : high - start]) for low, high in pairwise(offsets)]
    if size is not None:
        for row, value in enumerate(values):
            if len(value) != size:
                faults[row] = Mismatch("data-type", f"{size} items are needed, {len(value)} are here")
    _mask(values, array, faults)
    return Column(values, faults)


def _maps(key: Type, value: Type, array: Any) -> Column:
    offsets, start, end = _extent(array)
    keys = decode(key, array.keys.slice(start, end - start))
    items = decode(value, array.items.slice(start, end - start))
    faults: Faults = {}
    _spread(keys, offsets, start, faults, lambda at: f"[{at}]")
    _spread(items, offsets, start, faults, lambda at: f"[{at}]")
    canonical = keyer(key)
    values: list[Any] = []
    for row, (low, high) in enumerate(pairwise(offsets)):
        names = keys.values[low - start : high - start]
        if canonical is not None:
            names = [None if name is None else canonical(name) for name in names]
        entries = dict(zip(names, items.values[low - start : high - start], strict=True))
        if len(entries) != high - low:
            faults.setdefault(row, Mismatch("data-type", "a key occurs twice"))
        values.append(FrozenMap(entries))
    _mask(values, array, faults)
    return Column(values, faults)
