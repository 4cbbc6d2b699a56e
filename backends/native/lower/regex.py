"""Regular expressions: a value is the address of its table, a constant of the module (`runtime/regex.rt`).

Patterns must be known when code is made; the zero of the type is the empty pattern.
"""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from backends.native.layout import Unsupported
from backends.native.lower.frame import TEMPORARY, Frame, Memory, Scalar, Value
from backends.native.module import void
from river.lang import typed
from river.lang import types as t
from river.lang.automata.tables import TooLargeToCompile, table
from river.lang.patterns import BadPattern, Regex, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.module import Module

_FEW: Final = 256  # registers, as in regex.rt


@lru_cache(maxsize=256)
def _words(regex: Regex) -> bytes:
    """The table of a pattern, little-endian.

    Raises: TooLargeToCompile.
    """
    words = table(regex.machine.program)
    if sys.byteorder == "big":
        words.byteswap()
    return words.tobytes()


def address(module: Module, regex: Regex) -> str:
    """The address of the table of a pattern, as a constant of type i64.

    Raises: Unsupported if the pattern is too large.
    """
    try:
        words = _words(regex)
    except TooLargeToCompile:
        raise Unsupported("so large a pattern") from None
    text = "".join(f"\\{byte:02X}" for byte in words)
    name = module.constant(f"[{len(words)} x i8]", f'c"{text}"')
    return f"ptrtoint (ptr {name} to i64)"


def _table(f: Frame, value: Value) -> str:
    """The address in a value; that of the empty pattern in a zero."""
    number = f.reg(value)
    if number.startswith("ptrtoint"):
        return f.b.op(f"inttoptr i64 {number} to ptr")
    empty = address(f.module, compile_pattern(""))
    chosen = f.b.op(f"select i1 {f.b.op(f'icmp eq i64 {number}, 0')}, i64 {empty}, i64 {number}")
    return f.b.op(f"inttoptr i64 {chosen} to ptr")


def _registers(f: Frame) -> str:
    """Room for registers on the stack, once for a function."""
    at = ("registers", 0)
    if at not in f.blocks:
        f.blocks[at] = f.b.slot(f"[{_FEW} x i64]")
    return f.blocks[at]


def _regex(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`regex(text)`: the text must be a constant."""
    (text,) = expr.args
    if isinstance(text, typed.ConstRef):
        text = f.operator.consts[text.index].value
    if not isinstance(text, typed.Literal):
        raise Unsupported("patterns made while the program runs")
    try:
        return Scalar(t.REGEX, address(f.module, compile_pattern(text.value)))
    except BadPattern:
        f.trap_if("true", "bad-regex", expr.site)
        return Scalar(t.REGEX, "0")


def _test(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    regex, text = values
    args = [f"ptr {TEMPORARY}", f"ptr {_table(f, regex)}", f"ptr {f.ptr(text)}", f"ptr {_registers(f)}"]
    return Scalar(t.BOOL, f.b.call("i1", "regex_test", args))


def _found(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`re_find`, `re_strs`."""
    regex, text = values
    name = "regex_find" if expr.operation == "re_find" else "regex_strings"
    slot = f.empty(expr.type)
    void(f.b, name, f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {_table(f, regex)}", f"ptr {f.ptr(text)}",
         f"ptr {_registers(f)}")  # fmt: skip
    return Memory(expr.type, slot)


def _replace(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (regex, text, replacement) = f.b, values
    slot, buffer = f.empty(t.STRING), b.slot("{ ptr, i64, i64 }")
    good = b.call("i1", "regex_replace", [
        f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {_table(f, regex)}", f"ptr {f.ptr(text)}",
        f"ptr {f.ptr(replacement)}", f"ptr {_registers(f)}", f"ptr {buffer}",
    ])  # fmt: skip
    f.trap_if(b.op(f"xor i1 {good}, true"), "bad-regex", expr.site)
    return Memory(t.STRING, slot)


RULES: Final[dict[str, Callable[[Frame, typed.Apply, Sequence[Value]], Value]]] = {
    "regex": _regex, "re_test": _test, "re_find": _found, "re_strs": _found, "re_replace": _replace,
}  # fmt: skip
