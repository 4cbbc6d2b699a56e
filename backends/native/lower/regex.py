"""Regular expressions: a value is the text of its pattern, so that it is kept and copied as texts are.

The table (`runtime/regex.rt`) of a constant is a constant of the module; that of another is looked up where the pattern is
used, in an index that the host fills (`backends.native.patterns`).
"""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import move, void
from backends.native.layout import memory
from backends.native.lower.literals import literal
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import typed
from river.lang import types as t
from river.lang.patterns import BadPattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

_FEW: Final = 256  # registers, as in regex.rt


def _table(f: Frame, value: Value) -> str:
    """The address of the table of a pattern: known, or looked up."""
    ptr = f.ptr(value)
    found = f.module.patterns.get(ptr)
    return f.b.call("ptr", "regex_known", ["ptr %context", f"ptr {ptr}"]) if found is None else found


def _registers(f: Frame) -> str:
    """Room for registers on the stack, once for a function."""
    at = ("registers", 0)
    if at not in f.blocks:
        f.blocks[at] = f.b.slot(f"[{_FEW} x i64]")
    return f.blocks[at]


def _regex(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`regex(text)`: a constant is compiled here, other texts while the program runs."""
    (text,) = expr.args
    if isinstance(text, typed.ConstRef):
        text = f.operator.consts[text.index].value
    if isinstance(text, typed.Literal):
        try:
            return literal(f, t.REGEX, compile_pattern(text.value))
        except BadPattern:
            f.trap_if("true", "bad-regex", expr.site)
            return Memory(t.REGEX, f.empty(t.REGEX))
    slot = f.b.slot(memory(t.REGEX))
    move(f.b, t.REGEX, slot, f.ptr(values[0]))
    table = f.b.call("ptr", "regex_lookup", ["ptr %context", f"ptr {slot}"])
    f.trap_if(f.b.op(f"icmp eq ptr {table}, null"), "bad-regex", expr.site)
    return Memory(t.REGEX, slot)


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
    slot, buffer = f.empty(t.STRING), b.slot("[18 x i64]")
    good = b.call("i1", "regex_replace", [
        f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {_table(f, regex)}", f"ptr {f.ptr(text)}",
        f"ptr {f.ptr(replacement)}", f"ptr {_registers(f)}", f"ptr {buffer}",
    ])  # fmt: skip
    f.trap_if(b.op(f"xor i1 {good}, true"), "bad-regex", expr.site)
    return Memory(t.STRING, slot)


RULES: Final[dict[str, Callable[[Frame, typed.Apply, Sequence[Value]], Value]]] = {
    "regex": _regex, "re_test": _test, "re_find": _found, "re_strs": _found, "re_replace": _replace,
}  # fmt: skip
