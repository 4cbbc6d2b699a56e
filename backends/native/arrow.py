"""Columns to and from Arrow record batches: buffers are shared where the layouts agree, else native loops make them.

The same as `river.io.schema` and `river.io.columnar` do item by item. What is unusual (another type, a null where
there must be a value, a text that is not UTF-8) is left to them, for the same result or the same error.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, Final, assert_never

from backends.native.batch import Batch
from backends.native.layout import Unsupported, columns, widths
from backends.native.shared import ModuleText, compile_text, shared
from river.classes import evolve
from river.io.schema import arrow, arrow_field, arrow_schema, arrow_type, to_batch
from river.io.schema import columns as fields_of
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from backends.native.ir import FunctionText
    from backends.native.jit import Code
    from backends.native.module import Module
    from backends.native.rtlang import Signature, Unit

_MOST: Final = (1 << 31) - 1
"""The largest offset of a string, binary or list array."""

_WIDTHS: Final = {"i32": 4, "i64": 8, "u64": 8, "f32": 4, "f64": 8, "time": 8, "duration": 8}
_CTYPES: Final = {"i64": ctypes.c_int64, "i1": ctypes.c_bool, "void": None}


# ----------------------------------------------------------------------------------------------------- native loops


@cache
def _library() -> Code:
    def make() -> ModuleText:
        from backends.native.module import Module
        from backends.native.rtlang import compile_file
        from backends.native.runtime_library import runtime

        unit = compile_file("egress_arrow.rt", runtime())
        signatures = {name: [one.params, one.result] for name, one in unit.signatures.items()}
        return evolve(module_text(Module(), unit), facts=signatures)

    return shared("arrow", make)


def module_text(module: Module, unit: Unit) -> ModuleText:
    """The functions of a file of the runtime, to be called from here."""
    module.functions.update(unit.functions)
    return ModuleText(module.text(dict(_exported(unit))), tuple(f"arrow.{name}" for name in unit.functions))


def compiled(module: Module, unit: Unit) -> Code:
    """The same, compiled."""
    made = module_text(module, unit)
    return compile_text(made.text, made.exports)


def _exported(unit: Unit) -> Iterator[tuple[str, FunctionText]]:
    from backends.native.ir import Builder
    from backends.native.rtlang import llvm

    for name in unit.functions:
        signature = unit.signatures[name]
        b = Builder()
        params = [f"{llvm(param)} %a{i}" for i, param in enumerate(signature.params)]
        result = llvm(signature.result)
        b.end(f"ret {result} {b.call(result, name, params)}".rstrip())
        yield (
            f"arrow.{name}",
            b.finish(f"arrow.{name}", f"define {result} @arrow.{name}({', '.join(params)}) nounwind"),
        )


def _call(name: str, *args: int) -> Any:
    code = _library()
    params, result = code.facts[name]
    return _result(code, name, params, result, args)


def called(code: Code, signature: Signature, name: str, *args: int) -> Any:
    """The result of a function that `compiled` has made."""
    return _result(code, name, signature.params, signature.result, args)


def _result(code: Code, name: str, params: Sequence[str], result: str, args: tuple[int, ...]) -> Any:
    types = [ctypes.c_int64 if param == "i64" else ctypes.c_void_p for param in params]
    return code.function(f"arrow.{name}", types, _CTYPES[result])(*args)


@cache
def _unique(key: t.Type) -> tuple[Code, Signature]:
    """The function `unique_keys` for keys of a type."""
    from backends.native.egress.rows import add_row_same
    from backends.native.module import Module
    from backends.native.rtlang import Signature, compile_file
    from backends.native.runtime_library import runtime

    module = Module()
    add_row_same(module, key, "row_same")
    renamed = {"row_same": ("row_same", Signature(("p64", "i64", "p64", "i64"), "i1"))}
    unit = compile_file("egress_unique.rt", runtime(), renamed=renamed)
    return compiled(module, unit), unit.signatures["unique_keys"]


# ---------------------------------------------------------------------------------------------------- to Arrow


def to_arrow(
    type: t.Type, batch: Batch, start: int = 0, stop: int | None = None, *, copied: bool = False
) -> Any:
    """The rows `start` to `stop` - 1 of a batch as a record batch of the schema of `type`.

    It keeps the batch, and what that keeps (texts of inputs, room for more rows), unless it is `copied`.
    `type` is that of the batch, or has lists in place of its arrays (`schema.growable`).
    """
    stop = batch.rows if stop is None else stop
    if not 0 <= start <= stop <= batch.rows:
        raise IndexError(f"rows {start} to {stop} of {batch.rows}")
    fields, schema = fields_of(type), arrow_schema(type)
    if start == stop:
        return to_batch(type, [])
    writer = _Writer(batch, copied=copied)
    given = t.parts(batch.type) if isinstance(batch.type, t.Record) else (batch.type,)
    try:
        arrays = [writer.array(field, of, start, stop) for (_, field), of in zip(fields, given, strict=True)]
    except _General:
        return to_batch(type, batch[start:stop].values())
    return arrow().record_batch(arrays, schema=schema)


class _General(Exception):  # noqa: N818 - control flow of this module
    """The general path has to do it."""


class _Writer:
    """Arrays of the columns of a batch, taken one after the other."""

    def __init__(self, batch: Batch, *, copied: bool) -> None:
        self._batch = batch
        self._copied = copied
        self._addresses = iter(batch.addresses)
        self._pa = arrow()

    def array(self, type_: t.Type, of: t.Type, start: int, stop: int) -> Any:
        """The array of rows of the next columns, which are of type `of`."""
        if isinstance(type_, t.Optional) and isinstance(of, t.Optional):
            valid = next(self._addresses) + start
            return self._values(type_.inner, of.inner, start, stop, valid)
        return self._values(type_, of, start, stop, 0)

    def _values(self, type_: t.Type, of: t.Type, start: int, stop: int, valid: int) -> Any:
        pa, n = self._pa, stop - start
        bits, nulls = self._bitmap(valid, n) if valid else (None, 0)
        kind = arrow_type(type_)
        match type_:
            case t.UNIT:
                return pa.nulls(n)
            case t.BOOL:
                data, _ = self._bitmap(next(self._addresses) + start, n)
                return pa.Array.from_buffers(kind, n, [bits, data], nulls)
            case t.STRING | t.BYTES:
                return pa.Array.from_buffers(kind, n, [bits, *self._texts(start, n, valid)], nulls)
            case t.Decimal() | t.Primitive():
                size = 16 if isinstance(type_, t.Decimal) else _WIDTHS[type_.name]
                return pa.Array.from_buffers(kind, n, [bits, self._shared(start * size, n * size)], nulls)
            case t.Record() | t.Tuple():
                children = [
                    self.array(a, b, start, stop) for a, b in zip(t.parts(type_), t.parts(of), strict=True)
                ]
                return pa.Array.from_buffers(kind, n, [bits], nulls, children=children)
            case t.Array(item, size) if isinstance(of, t.Array):
                child = self._items(item, of.item, start * size, stop * size)
                return pa.Array.from_buffers(kind, n, [bits], nulls, children=[child])
            case t.List(item) if isinstance(of, t.Array):
                _small(n * of.size)
                steps = pa.allocate_buffer(4 * (n + 1))
                _call("put_steps", steps.address, n, of.size)
                child = self._items(item, of.item, start * of.size, stop * of.size)
                return pa.Array.from_buffers(kind, n, [bits, steps], nulls, children=[child])
            case t.List(item) if isinstance(of, t.List):
                offsets, first, after = self._offsets(start, n)
                child = self._items(item, of.item, first, after)
                return pa.Array.from_buffers(kind, n, [bits, offsets], nulls, children=[child])
            case t.Map(key, value) if isinstance(of, t.Map):
                offsets, first, after = self._offsets(start, n)
                children = [
                    self._items(key, of.key, first, after),
                    self._items(value, of.value, first, after),
                ]
                entries = pa.struct([arrow_field("key", key), arrow_field("value", value)])
                pairs = pa.Array.from_buffers(entries, after - first, [None], 0, children=children)
                return pa.Array.from_buffers(kind, n, [bits, offsets], nulls, children=[pairs])
            case _:
                raise Unsupported(f"Arrow data of {of} as {type_}")

    def _items(self, type_: t.Type, of: t.Type, first: int, after: int) -> Any:
        if first < after:
            return self.array(type_, of, first, after)
        for _ in range(widths(of)[0]):
            next(self._addresses)
        return self._pa.array([], arrow_type(type_))

    def _shared(self, at: int, size: int) -> Any:
        """A buffer in the memory of the batch, or a copy of it."""
        address = next(self._addresses) + at
        if not self._copied:
            return self._pa.foreign_buffer(address, size, self._batch)
        buffer = self._pa.allocate_buffer(size)
        ctypes.memmove(buffer.address, address, size)
        return buffer

    def _bitmap(self, address: int, n: int) -> tuple[Any, int]:
        """Bits for n bytes, and how many are 0."""
        bits = self._pa.allocate_buffer((n + 7) // 8)
        return bits, _call("pack_bits", bits.address, address, n)

    def _texts(self, start: int, n: int, valid: int) -> tuple[Any, Any]:
        """Offsets and bytes of texts."""
        views = next(self._addresses) + 16 * start
        size: int = _call("view_bytes", views, valid, n)
        _small(size)
        offsets, data = self._pa.allocate_buffer(4 * (n + 1)), self._pa.allocate_buffer(size + 16)
        _call("put_views", views, valid, n, offsets.address, data.address)
        return offsets, data.slice(0, size)

    def _offsets(self, start: int, n: int) -> tuple[Any, int, int]:
        """Offsets of lists, and the extent of their items."""
        at = next(self._addresses) + 8 * start
        first, after = (ctypes.c_int64.from_address(at + 8 * i).value for i in (0, n))
        _small(after - first)
        offsets = self._pa.allocate_buffer(4 * (n + 1))
        _call("put_offsets", at, n, offsets.address)
        return offsets, first, after


def _small(size: int) -> None:
    if size > _MOST:
        raise _General


# ---------------------------------------------------------------------------------------------------- from Arrow


def from_arrow(type: t.Type, data: Any) -> Batch | None:
    """The rows of a record batch whose schema `columnar.check` has let through, as columns that keep it.

    None for what is unusual: then `columnar` has the items, or the error.
    """
    pa = arrow()
    names: list[str] = data.schema.names
    fields = fields_of(type)
    if not isinstance(type, t.Record) and len(names) == 1:
        fields = ((names[0], type),)
    if any(names.count(name) != 1 for name, _ in fields):
        return None
    try:
        columns(type)
        data.validate()
        reader = _Reader(data.num_rows)
        for name, field in fields:
            reader.column(field, data.column(name), 0)
    except (_General, Unsupported, pa.ArrowException):
        return None
    return Batch(type, data.num_rows, tuple(reader.addresses), [data, *reader.kept])


class _Reader:
    """Addresses of the columns made of arrays, and what they lie in. `live`: address of the bytes of rows that count, or 0."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.addresses: list[int] = []
        self.kept: list[Any] = []
        self._pa = arrow()

    def column(self, type_: t.Type, array: Any, live: int) -> None:
        """Adds the columns of an array."""
        pa = self._pa
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        n = len(array)
        if isinstance(type_, t.Optional):
            if pa.types.is_null(array.type):
                raise _General
            valid = self._bytes(array, n)
            if live:
                _call("keep_bytes", valid, live, n)
            self.addresses.append(valid)
            self._values(type_.inner, array, valid if array.null_count or live else 0)
            return
        if array.null_count and type_ != t.UNIT:
            bits = array.buffers()[0]
            if bits is None or not live or not _call("covered", live, bits.address, array.offset, n):
                raise _General
        self._values(type_, array, live)

    def _values(self, type_: t.Type, array: Any, live: int) -> None:
        pa, n = self._pa, len(array)
        if pa.types.is_dictionary(array.type) and type_ not in (t.STRING, t.BYTES):
            array = array.dictionary_decode()
        match type_:
            case t.UNIT:
                if not pa.types.is_null(array.type):
                    raise _General
            case t.BOOL:
                self._is(array, pa.bool_())
                found = self._room(n)
                if n:
                    _call("unpack_bits", found, array.buffers()[1].address, array.offset, n)
                self.addresses.append(found)
            case t.STRING | t.BYTES:
                self.addresses.append(self._texts(type_, array, live))
            case t.TIME | t.DURATION:
                self.addresses.append(self._shared(self._micros(type_, array), 8))
            case t.Decimal():
                self._is(array, arrow_type(type_))
                at = self._shared(array, 16)
                limit = (10**type_.precision).to_bytes(16, "little")
                if not _call("decimals_fit", at, self._kept_bytes(limit), live, n):
                    raise _General
                self.addresses.append(at)
            case t.Primitive(name):
                self.addresses.append(self._shared(self._number(type_, array), _WIDTHS[name]))
            case t.Record(fields):
                self._struct(fields, array, live)
            case t.Tuple(items):
                self._struct([(str(i), item) for i, item in enumerate(items)], array, live)
            case t.Array(item, size):
                if not pa.types.is_fixed_size_list(array.type) or array.type.list_size != size or live:
                    raise _General
                self.column(item, array.values.slice(array.offset * size, n * size), 0)
            case t.List(item):
                first, after = self._offsets(array, live, len(array.values))
                self.column(item, array.values.slice(first, after - first), 0)
            case t.Map(key, value):
                self._map(key, value, array, live)
            case t.Optional() | t.Deque() | t.Bag() | t.OMap() | t.Function():
                raise _General
            case _:
                assert_never(type_)

    def _is(self, array: Any, kind: Any) -> None:
        if array.type != kind:
            raise _General

    def _struct(self, fields: Iterable[tuple[str, t.Type]], array: Any, live: int) -> None:
        for name, field in fields:
            at = array.type.get_field_index(name)
            if at < 0:
                raise _General
            self.column(field, array.field(at), live)

    def _map(self, key: t.Type, value: t.Type, array: Any, live: int) -> None:
        if not self._pa.types.is_map(array.type) or t.contains(key, t.F32, t.F64):
            raise _General
        n, at = len(array), len(self.addresses)
        first, after = self._offsets(array, live, len(array.keys))
        self.column(key, array.keys.slice(first, after - first), 0)
        table = (ctypes.c_void_p * max(len(self.addresses) - at - 1, 1))(*self.addresses[at + 1 :])
        code, signature = _unique(key)
        if not called(code, signature, "unique_keys", ctypes.addressof(table), self.addresses[at], n):
            raise _General
        self.column(value, array.items.slice(first, after - first), 0)

    # -- buffers

    def _room(self, size: int) -> int:
        """The address of new memory."""
        buffer = self._pa.allocate_buffer(max(size, 16))
        self.kept.append(buffer)
        return buffer.address

    def _kept_bytes(self, data: bytes) -> int:
        at = self._room(len(data))
        ctypes.memmove(at, data, len(data))
        return at

    def _bytes(self, array: Any, n: int) -> int:
        """A byte per row: whether it has a value."""
        at = self._room(n)
        bits = array.buffers()[0] if array.null_count else None
        if bits is None:
            ctypes.memset(at, 1, n)
        else:
            _call("unpack_bits", at, bits.address, array.offset, n)
        return at

    def _shared(self, array: Any, size: int) -> int:
        """The address of the values of an array, in a copy if they do not lie as columns have to."""
        n, buffer = len(array), array.buffers()[1]
        if buffer is None or n == 0:
            return self._room(n * size)
        self.kept.append(buffer)
        at: int = buffer.address + array.offset * size
        if at % size == 0:
            return at
        copy = self._room(n * size)
        ctypes.memmove(copy, at, n * size)
        return copy

    def _number(self, type_: t.Type, array: Any) -> Any:
        """The array as numbers of a type; a cast that loses something is an ArrowException."""
        pa, kind = self._pa, arrow_type(type_)
        if array.type == kind:
            return array
        if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
            raise _General
        found = array.cast(kind)
        if type_ == t.F32 and arrow("compute").any(arrow("compute").is_inf(found)).as_py():
            raise _General
        return found

    def _micros(self, type_: t.Type, array: Any) -> Any:
        """The array as microseconds."""
        pa, kind = self._pa, array.type
        if pa.types.is_date32(kind):
            days = array.cast(pa.int32()).cast(pa.int64())
            return arrow("compute").multiply_checked(days, 86_400_000_000)
        if pa.types.is_date64(kind):
            return arrow("compute").multiply_checked(array.cast(pa.int64()), 1000)
        if not (pa.types.is_timestamp(kind) if type_ == t.TIME else pa.types.is_duration(kind)):
            raise _General
        if kind.unit != "us":
            tz = kind.tz if type_ == t.TIME else None
            array = array.cast(pa.timestamp("us", tz) if type_ == t.TIME else pa.duration("us"))
        return array

    def _offsets(self, array: Any, live: int, items: int) -> tuple[int, int]:
        """Adds the offsets of lists; the extent of their items."""
        pa, n = self._pa, len(array)
        wide = pa.types.is_large_list(array.type)
        if not (wide or pa.types.is_list(array.type) or pa.types.is_map(array.type)):
            raise _General
        found, buffer = self._room(8 * (n + 1)), array.buffers()[1]
        if n == 0 or buffer is None:
            ctypes.memset(found, 0, 8)
            self.addresses.append(found)
            return 0, 0
        size = 8 if wide else 4
        at = buffer.address + array.offset * size
        if not _call("take_offsets", found, at, int(wide), live, n):
            raise _General
        self.addresses.append(found)
        first = (ctypes.c_int64 if wide else ctypes.c_int32).from_address(at).value
        after = first + ctypes.c_int64.from_address(found + 8 * n).value
        if after > items:
            raise _General
        return first, after

    # -- texts

    def _texts(self, type_: t.Type, array: Any, live: int) -> int:
        """The address of views of texts."""
        pa, n = self._pa, len(array)
        types, text = pa.types, int(type_ == t.STRING)
        found = self._room(16 * n)
        if n == 0:
            return found
        if types.is_dictionary(array.type):
            inner = array.dictionary
            if inner.null_count or types.is_dictionary(inner.type):
                raise _General
            views = self._texts(type_, inner, 0)
            numbers = array.indices
            if numbers.type != pa.int32():
                numbers = numbers.cast(pa.int64())
            size = numbers.type.bit_width // 8
            at = numbers.buffers()[1].address + size * numbers.offset
            if not _call("pick_views", found, views, len(inner), at, size // 8, live, n):
                raise _General
            return found
        buffers = array.buffers()
        self.kept.append(array)
        kinds = ("string",) if text else ("binary", "string")
        small, large, view = (
            [getattr(pa, form.format(kind))() for kind in kinds] for form in ("{}", "large_{}", "{}_view")
        )
        if array.type in view:
            table = [word for each in buffers[2:] for word in (each.address, each.size)]
            words = (ctypes.c_int64 * max(len(table), 1))(*table)
            at = buffers[1].address + 16 * array.offset
            good = _call("take_views", found, at, ctypes.addressof(words), len(table) // 2, live, n, text)
        elif array.type in (*small, *large):
            size = 8 if array.type in large else 4
            data = (0, 0) if buffers[2] is None else (buffers[2].address, buffers[2].size)
            at = buffers[1].address + size * array.offset
            good = _call("take_texts", found, at, size // 8, *data, live, n, text)
        else:
            raise _General
        if not good:
            raise _General
        return found
