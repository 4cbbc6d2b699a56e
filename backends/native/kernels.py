"""Small loops over columns that the engine runs between firings, compiled once for all programs (`runtime/columns.rt`)."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Final

from backends.native.shared import Made, shared

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backends.native.ir import Function
    from backends.native.jit import Code

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64


@cache
def _code() -> Code:
    def make() -> Made:
        from backends.native.ir import METADATA
        from backends.native.rtlang import Unit, compile_file

        names = ("first_fall", "shifted")
        functions = compile_file("columns.rt", Unit()).functions
        return Made("\n".join((METADATA, _INTRINSICS, *_texts(functions, names))), names)

    return shared("columns", make)


_INTRINSICS: Final = "declare i1 @llvm.expect.i1(i1, i1)\n"


def _texts(functions: dict[str, Function], exports: Iterable[str]) -> list[str]:
    from backends.native.ir import reachable

    used = reachable(functions, exports)
    return [
        f.text.replace("define internal", "define", 1) if f.name in set(exports) else f.text for f in used
    ]


def first_fall(keys: int, count: int, least: int) -> int:
    """The first of `count` 64-bit keys at an address that is below the one before it, or below `least`; else `count`."""
    return _code().function("first_fall", (_P, _I, _I), _I)(keys, count, least)


def shifted(to: int, source: int, count: int, by: int) -> None:
    """Copies `count` offsets, each `by` more."""
    _code().function("shifted", (_P, _P, _I, _I))(to, source, count, by)
