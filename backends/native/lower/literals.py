"""Values known when code is made: numbers as operands, others as constants of the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backends.native.ir import hexadecimal
from backends.native.layout import memory, register
from backends.native.lower import constants
from backends.native.lower.values import Memory, Scalar, Value
from backends.native.patterns import words
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.lower.frame import Frame
    from backends.native.module import Module
    from river.lang.patterns import Regex


def literal(f: Frame, type_: t.Type, constant: Any) -> Value:
    """A constant value."""
    if type_ == t.REGEX:
        return pattern(f, _initial(f, type_, constant), constant)
    kind = register(type_)
    if kind is not None:
        return Scalar(type_, _scalar_text(type_, constant))
    return Memory(type_, f.module.constant(memory(type_), _initial(f, type_, constant)))


def _scalar_text(type_: t.Type, constant: Any) -> str:
    match register(type_):
        case "i1":
            return "true" if constant else "false"
        case "float" | "double":
            return hexadecimal(constant)
        case "i8":
            return "0"
        case _:
            return str(constant if type_ != t.U64 or constant < 1 << 63 else constant - (1 << 64))


def _initial(f: Frame, type_: t.Type, constant: Any) -> str:
    """A value as the initialiser of a global."""
    match type_:
        case t.BOOL:
            return "1" if constant else "0"
        case t.REGEX:
            return _text(f, constant.pattern)
        case t.STRING | t.BYTES:
            return _text(f, constant)
        case t.FSUM | t.Map() | t.OMap() | t.Deque() | t.Bag():
            if not (any(constant) if type_ == t.FSUM else len(constant)):
                return "zeroinitializer"
            return constants.image(f.module, type_, constant, lambda part, value: _initial(f, part, value))
        case t.Optional(inner):
            if constant is None:
                return "zeroinitializer"
            return f"{{ {memory(inner)} {_initial(f, inner, constant)}, i8 1 }}"
        case t.Record() | t.Tuple():
            fields = [
                f"{memory(each)} {_initial(f, each, v)}"
                for each, v in zip(t.parts(type_), constant, strict=True)
            ]
            return "{ " + (", ".join(fields) or "i8 0") + " }"
        case t.Array(inner, size):
            if size == 0:
                return "zeroinitializer"
            return "[" + ", ".join(f"{memory(inner)} {_initial(f, inner, v)}" for v in constant) + "]"
        case t.List(inner):
            if not constant:
                return "zeroinitializer"
            items = ", ".join(f"{memory(inner)} {_initial(f, inner, v)}" for v in constant)
            name = f.module.constant(f"[{len(constant)} x {memory(inner)}]", f"[{items}]")
            return f"{{ ptr {name}, i64 {len(constant)}, i64 0 }}"
        case _:
            return _scalar_text(type_, constant)


def _text(f: Frame, constant: str | bytes) -> str:
    data = constant.encode() if isinstance(constant, str) else constant
    ascii_ = isinstance(constant, str) and constant.isascii()
    size = len(data) | (1 << 31 if ascii_ and data else 0)
    if len(data) <= 12:
        whole = data.ljust(12, b"\0")
        a = size | int.from_bytes(whole[:4], "little") << 32
        return f"{{ i64 {a}, i64 {int.from_bytes(whole[4:], 'little')} }}"
    a = size | int.from_bytes(data[:4], "little") << 32
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    name = f.module.constant(f"[{len(data)} x i8]", f'c"{escaped}"')
    return f"{{ i64 {a}, i64 ptrtoint (ptr {name} to i64) }}"


def pattern_table(module: Module, regex: Regex) -> str:
    """The address of the table of a pattern, as a pointer constant."""
    data = words(regex)
    text = data.hex("\\").upper()
    return module.constant(f"[{len(data)} x i8]", f'c"\\{text}"')


def pattern(f: Frame, text: str, regex: Regex) -> Memory:
    """A pattern known when code is made; `text`: the initialiser of its view."""
    name = f.module.constant(memory(t.REGEX), text)
    f.module.patterns[name] = regex
    return Memory(t.REGEX, name)
