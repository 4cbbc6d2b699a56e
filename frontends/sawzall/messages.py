"""Tuples as protocol buffers: the functions of the operator language that read and write the bytes of a type.

In a buffer each field stands behind its number and how it is written (its wire type): as a varint (0), in 8 or 4 bytes, the
lowest first (1, 5), as bytes with their length (2), or between two tags (3). Fields may come in any order.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from frontends.sawzall.functions import PREFIX
from frontends.sawzall.types import Proto, expression
from frontends.sawzall.values import Consts, constant
from river.lang import syntax as s
from river.lang import types as t
from river.lang.pretty import pretty
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIRES: Mapping[str, int] = MappingProxyType({
    **dict.fromkeys(("double", "fixed64", "sfixed64"), 1), **dict.fromkeys(("string", "bytes"), 2),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), 5),
})  # fmt: skip
"""How fields are written whose type in a protocol buffer is no varint."""

_LENGTH, _BEGIN, _END = 2, 3, 4

LOCALS = frozenset({"x", "out", "each", "found", "data", "at", "one", "inner", "text", "next", "part"})
"""The names in these functions."""


def functions(consts: Consts) -> tuple[s.Fn, ...]:
    """The functions that were asked for in `consts.messages`, and those that they call."""
    texts: list[str] = []
    while len(texts) < len(consts.messages):
        what, type_ = list(consts.messages)[len(texts)]
        texts.append({"read": _reading, "write": _writing, "count": _counting}[what](consts, type_))
    if not texts:
        return ()
    from river.il.parse import parse

    program = parse(Source("protocol buffers", "river 1;\n" + "\n".join(texts)))
    return tuple(decl for decl in program.decls if isinstance(decl, s.Fn))


def _writing(consts: Consts, type_: Proto) -> str:
    """The function from a tuple to its bytes: the fields that are there in the order of the type, then what has no field."""
    lines = [
        f"fn {consts.messages['write', type_]}(x: {pretty(expression(type_))}) -> bytes {{",
        '  var out = b"";',
    ]
    for (name, field), tag, kind in zip(type_.fields, type_.tags, type_.kinds, strict=True):
        where, bit = type_.flag(name)
        if isinstance(field, t.List):
            add = f"for each in x.{name} {{ out = out + {_written(consts, 'each', field.item, tag, kind)}; }}"
        else:
            add = f"out = out + {_written(consts, f'x.{name}', field, tag, kind)};"
        lines.append(f"  if (x.{where} & {bit}) != 0 {{ {add} }}")
    return "\n".join((*lines, f"  return out + x.{type_.rest};", "}"))


def _counting(consts: Consts, type_: Proto) -> str:
    """The function that counts the fields that are there, those of tuples in it, too."""
    lines = [
        f"fn {consts.messages['count', type_]}(x: {pretty(expression(type_))}) -> i64 {{",
        "  var found = 0;",
    ]
    for name, field in type_.fields:
        where, bit = type_.flag(name)
        more = ""
        match field:
            case Proto():
                more = f" found = found + {consts.message('count', field)}(x.{name});"
            case t.List(Proto() as item):
                more = f" for each in x.{name} {{ found = found + {consts.message('count', item)}(each); }}"
            case _:
                pass
        lines.append(f"  if (x.{where} & {bit}) != 0 {{ found = found + 1;{more} }}")
    return "\n".join((*lines, "  return found;", "}"))


def _written(consts: Consts, value: str, type_: t.Type, tag: int, kind: str) -> str:
    """The bytes of one value with its tag."""
    if isinstance(type_, Proto):
        data = f"{consts.message('write', type_)}({value})"
        if type_.message:
            return f"{_tag(tag, _LENGTH)} + {PREFIX}recorded({data})"
        return f"{_tag(tag, _BEGIN)} + {data} + {_tag(tag, _END)}"
    wire = _WIRES.get(kind, 0)
    match type_, wire:
        case t.STRING, _:
            data = f"{PREFIX}recorded(encode({value}))"
        case t.BYTES, _:
            data = f"{PREFIX}recorded({value})"
        case t.F64, _:
            data = f"{PREFIX}{'float' if kind == 'double' else 'single'}_bytes({value})"
        case _, 0:
            data = f"{PREFIX}varint({_narrow(_number(value, type_), kind)})"
        case _:
            data = f"{PREFIX}fixed({_number(value, type_)}, {8 if wire == 1 else 4})"
    return f"{_tag(tag, wire)} + {data}"


def _tag(number: int, wire: int) -> str:
    """The bytes of a tag, as a literal."""
    left, found = number << 3 | wire, ""
    while left > 0x7F:
        found += f"\\x{left & 0x7F | 0x80:02x}"
        left >>= 7
    return f'b"{found}\\x{left:02x}"'


def _number(value: str, type_: t.Type) -> str:
    """The 64 bits of a value as a whole number."""
    match type_:
        case t.I64:
            return value
        case t.BOOL:
            return f"(if {value} {{ 1 }} else {{ 0 }})"
        case t.TIME:
            return f"micros({value})"
        case _:
            return f"i64.wrap({value})"


def _narrow(number: str, kind: str) -> str:
    """A whole number as its kind of varint has it."""
    match kind:
        case "int32":
            return f"(({number} << 32) >> 32)"
        case "uint32":
            return f"({number} & 4294967295)"
        case "sint32" | "sint64":
            return f"(({number} << 1) ^ ({number} >> 63))"
        case _:
            return number


def _reading(consts: Consts, type_: Proto) -> str:
    """The function from bytes to a tuple, none if they are no protocol buffer.

    A field that is not read has its default. What does not fit its field, or comes twice where one value is wanted, is left
    out; what has no field is kept.
    """
    lines = [
        f"fn {consts.messages['read', type_]}(data: bytes) -> {pretty(s.OptionalType(expression(type_)))} {{",
        f"  var x: {pretty(expression(type_))} = {_default(type_)};",
        "  var at = 0;",
        "  while at < len(data) {",
        f"    let one = {PREFIX}field(data, at);",
        "    if one.next < 0 { return none; }",
    ]
    for (name, field), tag, kind in zip(type_.fields, type_.tags, type_.kinds, strict=True):
        where, bit = type_.flag(name)
        there = f"x.{where} = x.{where} | {bit};"
        if isinstance(field, t.List):
            take = _taken(consts, f"push(x.{name}, VALUE); {there}", field.item, kind)
            take += _packed(f"push(x.{name}, VALUE); {there}", field.item, kind)
        else:
            take = _taken(consts, f"x.{name} = VALUE; {there}", field, kind)
            take = f"if (x.{where} & {bit}) == 0 {{ {take} }}"
        lines.append(f"    if one.id == {tag} {{ {take} }} else {{")
    lines.append(f"      x.{type_.rest} = x.{type_.rest} + data[at:one.next];")
    lines.append("    " + "}" * len(type_.fields))
    return "\n".join((*lines, "    at = one.next;", "  }", "  return x;", "}"))


def _taken(consts: Consts, use: str, type_: t.Type, kind: str) -> str:
    """What is done with a field that was found: `use`, with its VALUE, if it is of the type."""
    whole = "data[one.from:one.to]"
    match type_:
        case Proto():
            found = (
                f"let inner = {consts.message('read', type_)}({whole}); if inner is none {{ return none; }}"
            )
            return f"if one.wire == 2 or one.wire == 3 {{ {found} {use.replace('VALUE', 'inner!')} }}"
        case t.BYTES:
            return f"if one.wire == 2 {{ {use.replace('VALUE', whole)} }}"
        case t.STRING:
            text = (
                f"let text = parse_utf8({whole}); if not (text is none) {{ {use.replace('VALUE', 'text!')} }}"
            )
            return f"if one.wire == 2 {{ {text} }}"
        case _:
            wires = "one.wire == 1 or one.wire == 5" + ("" if type_ == t.F64 else " or one.wire == 0")
            return f"if {wires} {{ {use.replace('VALUE', _value(type_, kind, 'one.number', 'one.wire'))} }}"


def _packed(use: str, type_: t.Type, kind: str) -> str:
    """What is done with numbers that stand one behind the other, as bytes with a length."""
    if isinstance(type_, Proto) or type_ in (t.STRING, t.BYTES):
        return ""
    wire = _WIRES.get(kind, 0)
    inner = use.replace("VALUE", _value(type_, kind, "part.number", str(wire)))
    return (
        " if one.wire == 2 { var next = one.from; while next < one.to {"
        f" let part = {PREFIX}number(data[0:one.to], next, {wire}); if part.next < 0 {{ return none; }}"
        f" {inner} next = part.next; }} }}"
    )


def _value(type_: t.Type, kind: str, number: str, wire: str) -> str:
    """The value of 64 bits that were read so."""
    match type_, kind:
        case t.I64, "sint32" | "sint64":
            return f"(if {wire} == 0 {{ ({number} >>> 1) ^ (0 -% ({number} & 1)) }} else {{ {number} }})"
        case t.I64, "sfixed32":
            return f"(if {wire} == 5 {{ ({number} << 32) >> 32 }} else {{ {number} }})"
        case t.I64, _:
            return number
        case t.BOOL, _:
            return f"{number} != 0"
        case t.TIME, _:
            return f"time({number})"
        case t.F64, _:
            return f"(if {wire} == 5 {{ {PREFIX}single({number}) }} else {{ {PREFIX}real({number}) }})"
        case _:
            return f"u64.wrap({number})"


def _default(type_: t.Type, value: object = None) -> str:
    """The text of what a field has that is not there."""
    match type_:
        case Proto(fields):
            parts = [
                f"{name}: {_default(field, given)}"
                for (name, field), given in zip(fields, type_.defaults, strict=True)
            ]
            parts += [f"{name}: 0" for name in type_.there]
            return "{" + ", ".join((*parts, f'{type_.rest}: b""')) + "}"
        case t.List():
            return "[]"
        case _:
            empty: dict[t.Type, object] = {t.BOOL: False, t.F64: 0.0, t.STRING: "", t.BYTES: b""}
            return pretty(constant(type_, empty.get(type_, 0) if value is None else value))
