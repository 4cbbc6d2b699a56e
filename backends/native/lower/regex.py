"""Regular expressions: a value is the text of its pattern, so that it is kept and copied as texts are.

The table (`runtime/regex.rt`) of a constant is a constant of the module; that of another is looked up where the pattern is
used, in an index that the host fills (`backends.native.patterns`).
"""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import if_, if_rare, move, void
from backends.native.layout import TEXT, memory
from backends.native.lower.lists import set_count
from backends.native.lower.literals import literal, pattern_table
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from backends.native.scanning import scan
from river.lang import typed
from river.lang import types as t
from river.lang.automata.direct import direct
from river.lang.patterns import BadPattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

_FEW: Final = 256  # registers, as in regex.rt
_ASCII: Final = 1 << 31  # as in text.rt


def _table(f: Frame, value: Value) -> str:
    """The address of the table of a pattern: known, or looked up."""
    ptr = f.ptr(value)
    if ptr not in f.module.patterns:
        return f.b.call("ptr", "regex_known", ["ptr %context", f"ptr {ptr}"])
    tables = f.module.tables
    if ptr not in tables:
        tables[ptr] = pattern_table(f.module, f.module.patterns[ptr])
    return tables[ptr]


def _scanned(f: Frame, regex: Value, text: Value) -> tuple[str, str, int] | None:
    """Whether a constant pattern is found, where its slots are, and how many; None if it needs a table.

    Positions are in bytes.
    """
    known = f.module.patterns.get(f.ptr(regex))
    pattern = None if known is None else direct(known.tree, known.groups)
    if pattern is None:
        return None
    b, at = f.b, f.ptr(text)
    slots = b.slot(f"[{pattern.slots} x i64]")
    data, size = b.call("ptr", "text_data", [f"ptr {at}"]), b.call("i64", "text_bytes", [f"ptr {at}"])
    name = scan(f.module, pattern, f"scan.{f.ptr(regex).removeprefix('@')}")
    return b.call("i1", name, [f"ptr {data}", f"i64 {size}", f"ptr {slots}"]), slots, pattern.slots


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
    scanned = _scanned(f, regex, text)
    if scanned is not None:
        return Scalar(t.BOOL, scanned[0])
    args = [f"ptr {TEMPORARY}", f"ptr {_table(f, regex)}", f"ptr {f.ptr(text)}", f"ptr {_registers(f)}"]
    return Scalar(t.BOOL, f.b.call("i1", "regex_test", args))


def _found(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`re_find`, `re_strs`."""
    regex, text = values
    scanned = _scanned(f, regex, text)
    if scanned is not None:
        return _listed(f, expr, text, *scanned)
    name = "regex_find" if expr.operation == "re_find" else "regex_strings"
    slot = f.empty(expr.type)
    void(f.b, name, f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {_table(f, regex)}", f"ptr {f.ptr(text)}",
         f"ptr {_registers(f)}")  # fmt: skip
    return Memory(expr.type, slot)


def _listed(f: Frame, expr: typed.Apply, text: Value, found: str, slots: str, count: int) -> Value:
    """The list of what a scan has found: of positions, or of the parts of the text."""
    b, at, strings = f.b, f.ptr(text), expr.operation == "re_strs"
    count = count // 2 if strings else count
    kind = TEXT if strings else "i64"
    list_, items = f.empty(expr.type), b.slot(f"[{count} x {kind}]") if strings else slots

    def fill() -> None:
        if strings:
            void(b, "regex_views", f"ptr {at}", f"ptr {slots}", f"ptr {items}", f"i64 {count}")
        else:
            ascii_ = b.op(f"and i64 {b.op(f'load i64, ptr {at}')}, {_ASCII}")
            if_rare(b, b.op(f"icmp eq i64 {ascii_}, 0"), lambda: void(
                b, "regex_points", f"ptr {at}", f"ptr {items}", f"i64 {count}"))  # fmt: skip

    if_(b, found, fill)
    if id(expr) in f.fleeting:
        b.do(f"store ptr {items}, ptr {list_}")
        set_count(f, list_, b.op(f"select i1 {found}, i64 {count}, i64 0"))
        return Memory(expr.type, list_)

    def keep() -> None:
        size = 16 if strings else 8
        void(b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {list_}", f"i64 {count}", f"i64 {size}")
        to = b.op(f"load ptr, ptr {list_}")
        b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {items}, i64 {count * size}, i1 false)")
        set_count(f, list_, str(count))

    if_(b, found, keep)
    return Memory(expr.type, list_)


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
