"""The places of entries of a map in native memory, for code that is fired on them instead of on columns."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from backends.native import idioms
from backends.native.contract import ARENA_SIZE
from backends.native.ir import Builder
from backends.native.layout import KEY_AT, entry_layout
from backends.native.pages import words

if TYPE_CHECKING:
    from backends.native.operator import NativeOperator, NativeVariable
    from river.lang import types as t

PLACES: Final = "places"
_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64


def behind(type_: t.Map | t.OMap) -> tuple[tuple[t.Type, int], ...]:
    """What lies behind the place of an entry, and so many bytes away: its key and its value."""
    return (type_.key, KEY_AT), (type_.value, entry_layout(type_)[0])


def walk() -> str:
    """`i64 places(map*, to*)`: the addresses of the entries in order."""
    b = Builder()
    to = b.slot("ptr")
    b.do(f"store ptr %to, ptr {to}")

    def note(entry: str) -> None:
        at = b.op(f"load ptr, ptr {to}")
        b.do(f"store ptr {entry}, ptr {at}")
        b.do(f"store ptr {b.op(f'getelementptr inbounds ptr, ptr {at}, i64 1')}, ptr {to}")

    idioms.entries(b, "%map", note)
    b.end("ret i64 0")
    return "\n" + b.finish(PLACES, f"define i64 @{PLACES}(ptr %map, ptr %to) nounwind").text


def entries(variable: NativeVariable) -> int:
    """How many entries a map has."""
    return _I.from_address(variable.block.address + ARENA_SIZE).value


def addresses(native: NativeOperator, variable: NativeVariable, *, by_entry: bool) -> Any:
    """The addresses of the entries of a map in order, or that of the whole value. `native`: code that has `walk`."""
    value = variable.block.address + ARENA_SIZE
    if not by_entry:
        return (_I * 1)(value)
    found = words(entries(variable))
    native.code.function(PLACES, (_P, _P), _I)(value, found)
    return found
