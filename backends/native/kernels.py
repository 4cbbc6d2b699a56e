"""Small loops over columns that the engine runs between firings, compiled once for all programs (`runtime/columns.rt`)."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Final

from backends.native.shared import ModuleText, shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backends.native.ir import FunctionText
    from backends.native.jit import Code

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64

SHORT: Final = 1 << 16
"""Rows that are looked through in less time than it may take to get the GIL back: some 20 us where two workers are busy."""


@cache
def _code() -> Code:
    def make() -> ModuleText:
        from backends.native.ir import module_text
        from backends.native.rtlang import Unit, compile_file

        names = (*_FALLS.values(), "shifted", "runs")
        functions = compile_file("columns.rt", Unit()).functions
        return ModuleText(module_text(_texts(functions, names)), names)

    return shared("columns", make)


def _texts(functions: dict[str, FunctionText], exports: Iterable[str]) -> list[str]:
    from backends.native.ir import reachable

    used = reachable(functions, exports)
    return [
        f.text.replace("define internal", "define", 1) if f.name in set(exports) else f.text for f in used
    ]


_FALLS: Final = {"q": "first_fall", "i": "first_fall_short", "Q": "first_fall_unsigned"}


def first_fall(keys: int, count: int, least: int, code: str = "q") -> int:
    """The first of `count` keys at an address that is below the one before it, or below `least`; else `count`.

    `code`: of the keys, in the module `array`.
    """
    return _fall(code, short=count < SHORT)(keys, count, least)


@cache
def _fall(code: str, *, short: bool) -> Callable[..., int]:
    return _code().function(_FALLS[code], (_P, _I, _I), _I, short=short)


def shifted(to: int, source: int, count: int, by: int) -> None:
    """Copies `count` offsets, each `by` more."""
    _code().function("shifted", (_P, _P, _I, _I))(to, source, count, by)


def runs(keys: int, count: int, firsts: int, starts: int, most: int) -> int:
    """How many runs of equal 64-bit keys there are, of which at most `most` are found.

    `firsts` gets their keys, `starts`, with room for one more, where they begin, and the end of the last.
    """
    return _runs(short=count < SHORT)(keys, count, firsts, starts, most)


@cache
def _runs(*, short: bool) -> Callable[..., int]:
    return _code().function("runs", (_P, _I, _P, _P, _I), _I, short=short)
