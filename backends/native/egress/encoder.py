"""Encoders: rows of a batch to bytes in one call, without the GIL."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import pointers
from backends.native.jit import Code, level
from backends.native.layout import Unsupported
from backends.native.llvm import available
from backends.native.shared import ModuleText, shared
from river.classes import define, field, frozen
from river.diagnostics import Rejected
from river.io import deltas
from river.io import schema as data

if TYPE_CHECKING:
    from backends.native.batch import Batch
    from river.io.display import Entry
    from river.lang import types as t

ENTRY: Final = "encode"
FORMATS: Final = ("csv", "tsv", "jsonl", "text", "entries")
FIRST: Final = 1 << 16
"""Bytes of an encoder's buffer at first."""

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64
_libc: Final = ctypes.CDLL(None)
_libc.malloc.argtypes, _libc.malloc.restype = [ctypes.c_size_t], _P
_libc.free.argtypes = [_P]


@frozen
class Encoded:
    """Text in UTF-8, valid until the encoder is used again, and how many rows it has. `kept` is what it lies in."""

    data: memoryview
    rows: int
    kept: Any = field(default=None, repr=False)


@define(eq=False)
class Encoder:
    """Items of a type to text of a format. One thread uses it at a time; `again` gives another with the same code."""

    type: t.Type
    format: str
    code: Code = field(repr=False)
    _out: Any = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        size, fields = self.code.facts
        self._out = ctypes.create_string_buffer(size)
        buffer = _libc.malloc(FIRST)
        if not buffer:
            raise MemoryError
        _word(self._out, fields["data"]).value = buffer
        _word(self._out, fields["end"]).value = buffer + FIRST
        weakref.finalize(self, _freed, self._out, fields["data"], fields["scratch"])

    def again(self) -> Encoder:
        """Another one with the same code."""
        return Encoder(self.type, self.format, self.code)

    def encode(self, batch: Batch, start: int = 0, stop: int | None = None) -> Encoded | None:
        """The text of rows `start` to `stop` - 1 as the sink of the format writes it, without a header.

        None if the sink refuses one of them (a text with a line end is no line): let it say why.
        """
        stop = batch.rows if stop is None else stop
        if not 0 <= start <= stop <= batch.rows:
            raise IndexError(f"rows {start} to {stop} of {batch.rows}")
        if start == stop:
            return Encoded(memoryview(b""), 0)
        addresses = pointers(max(len(batch.addresses), 1))(*batch.addresses)
        encode = self.code.function(ENTRY, (_P, _P, _I, _I), _I)
        rows: int = encode(ctypes.addressof(self._out), addresses, start, stop)
        if rows < 0:
            return None
        fields = self.code.facts[1]
        at, used = (_word(self._out, fields[name]).value for name in ("data", "used"))
        return Encoded(_view(at, used, _READ), rows, self)


_READ: Final = 0x100  # PyBUF_READ
_view: Final = (
    ctypes.pythonapi.PyMemoryView_FromMemory
)  # without a type for each length, which takes long to make
_view.argtypes, _view.restype = [_P, ctypes.c_ssize_t, ctypes.c_int], ctypes.py_object


def _word(block: Any, offset: int) -> Any:
    return _I.from_address(ctypes.addressof(block) + offset)


def _freed(block: Any, *offsets: int) -> None:
    for offset in offsets:
        _libc.free(_word(block, offset).value)


@cache
def _code(type_: t.Type, format_: str, entry: Entry | None) -> Code | None:
    if format_ not in FORMATS or not available():
        return None
    if format_ in ("csv", "tsv", "entries"):
        try:
            data.columns(deltas.changelog(type_) if deltas.is_delta(type_) else type_)
        except Rejected:
            return None
    effort = level()
    try:
        key = f"encode {effort} {format_} {entry!r} {type_!r}"
        return shared(key, lambda: _made(type_, format_, entry), effort)
    except Unsupported:
        return None


def _made(type_: t.Type, format_: str, entry: Entry | None) -> ModuleText:
    """The text, and where the fields of the record `Out` lie."""
    from backends.native.egress.lower import encode_text, library

    size, fields = library().records["Out"]
    text = encode_text(type_, format_, ENTRY, entry)
    return ModuleText(text, (ENTRY,), [size, {name: at for name, (_, at) in fields.items()}])


def encoder(type: t.Type, format: str, entry: Entry | None = None) -> Encoder | None:
    """The encoder for items of a type as `format` (one of `FORMATS`); None where the sink has to do it.

    Items that are deltas of records become the rows of a change log. `entry`: how lines of the format `entries` are.
    """
    code = _code(type, format, entry)
    return None if code is None else Encoder(type, format, code)
