"""Types that contain themselves, in arrays and maps: the functions of the operator language that their values need.

A value of such a type is kept as bytes, in one form only but for -0.0 and the order of maps: so it is copied and passed on as
bytes are, however deep it is, and compared as they are, too, where the type has neither floats nor maps. `open` gives what it is
made of, in which the values of the type inside are bytes again, and `close` the way back. Numbers are varints, floats have 8
bytes, and texts and what is inside stand behind their length. `same` gives what is the same for equal values, in which -0.0 is
0.0, maps are in the order of their keys, and what is inside has no length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sawzall.functions import PREFIX
from frontends.sawzall.operations import CLOSE, OPEN, SAME, SHOWN, SIGNLESS, shown_as
from frontends.sawzall.types import Recursive, expression, lowered
from frontends.sawzall.values import BYTES, STRING, Values
from river.classes import frozen
from river.il.trees import walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.pretty import pretty
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from frontends.sawzall.values import Consts

LOCALS = frozenset({"x", "out", "data", "at", "value"})
"""The names in these functions; there are also names that begin as those of the library, with numbers."""


def functions(consts: Consts, nodes: Iterable[s.Node]) -> tuple[s.Fn, ...]:
    """The functions of such types that trees call, and those that they call."""
    if not consts.program.recursive:
        return ()
    found: dict[str, s.Fn] = {}
    left = list(nodes)
    while left:
        for part in walk(left.pop()):
            if isinstance(part, s.Call) and part.function not in found:
                made = _function(consts, part.function)
                if made is not None:
                    found[part.function] = made
                    left.append(made)
    return tuple(found.values())


def _function(consts: Consts, name: str) -> s.Fn | None:
    """The function of this name, if it is one of them."""
    kinds = (
        (OPEN, _opening),
        (CLOSE, _closing),
        (SHOWN, _showing),
        (SAME, _comparing),
        (SIGNLESS, _signless),
    )
    for begin, made in kinds:
        if name.startswith(begin):
            return made(consts, name, int(name[len(begin) :]))
    return None


def _parsed(text: str) -> s.Fn:
    from river.il.parse import parse

    (found,) = parse(Source("recursive types", f"river 1;\n{text}")).decls
    return cast("s.Fn", found)


def _showing(consts: Consts, name: str, number: int) -> s.Fn:
    """The text of a value."""
    body, value = Values(consts), s.Name("value")
    content = consts.program.recursive[number]
    text = body.with_clocks(shown_as(value, content), None)
    opened = s.Let(value.name, None, s.Call(f"{OPEN}{number}", (s.Name("data"),)))
    return s.Fn(name, (s.Param("data", BYTES),), STRING, s.Block((opened, s.Return(text))))


def _closing(consts: Consts, name: str, number: int) -> s.Fn:
    """The bytes of a value."""
    content = consts.program.recursive[number]
    lines = "\n".join(_Writer().put("x", content, 0))
    return _parsed(
        f'fn {name}(x: {pretty(expression(content))}) -> bytes {{\n  var out = b"";\n{lines}\n  return out;\n}}'
    )


def _comparing(consts: Consts, name: str, number: int) -> s.Fn:
    """Bytes that are the same for equal values."""
    value = f'var out = b""; {SIGNLESS}{number}(data, out); return out;'
    return _parsed(
        f"fn {name}(data: bytes) -> bytes {{ {value if _varies(consts, number) else 'return data;'} }}"
    )


def _varies(consts: Consts, number: int) -> bool:
    """Whether there are floats or maps in the values of a type that contains itself."""
    seen, left = {number}, [consts.program.recursive[number]]
    while left:
        part = left.pop()
        if part == t.F64 or isinstance(part, t.Map):
            return True
        left += t.parts(part)
        if isinstance(part, Recursive) and part.number not in seen:
            seen.add(part.number)
            left.append(consts.program.recursive[part.number])
    return False


def _signless(consts: Consts, name: str, number: int) -> s.Fn:
    """Writes such bytes of a value behind others."""
    content = consts.program.recursive[number]
    lines = "\n".join(_Writer(signless=True).put(f"{PREFIX}value", content, 0))
    opened = f"let {PREFIX}value = {OPEN}{number}(data);"
    return _parsed(f"fn {name}(data: bytes, ref out: bytes) {{\n  {opened}\n{lines}\n}}")


@frozen
class _Writer:
    """Writes the statements that write values behind `out`. `signless`: such that equal values give the same."""

    signless: bool = False

    def put(self, value: str, type_: t.Type, depth: int) -> Iterator[str]:
        """The statements for a value."""
        match type_:
            case t.Optional(inner):
                yield f"if {value} is none {{ out = out + sawzall_varint(0); }} else {{ out = out + sawzall_varint(1);"
                yield from self.put(f"{value}!", inner, depth)
                yield "}"
            case t.Record(fields):
                for field, inner in fields:
                    yield from self.put(f"{value}.{field}", inner, depth)
            case t.List(item):
                yield f"out = out + sawzall_varint(len({value})); for {PREFIX}item{depth} in {value} {{"
                yield from self.put(f"{PREFIX}item{depth}", item, depth + 1)
                yield "}"
            case t.Map(key, item):
                keys = f"sort(keys({value}))" if self.signless else f"keys({value})"
                yield f"out = out + sawzall_varint(len({value})); for {PREFIX}key{depth} in {keys} {{"
                yield from self.put(f"{PREFIX}key{depth}", key, depth + 1)
                yield from self.put(f"{value}[{PREFIX}key{depth}]", item, depth + 1)
                yield "}"
            case Recursive(_, number) if self.signless:
                yield f"{SIGNLESS}{number}({value}, out);"
            case _:
                yield f"out = out + {self.basic(value, lowered(type_))};"

    def basic(self, value: str, type_: t.Type) -> str:
        """The bytes of a value of a basic type."""
        match type_:
            case t.STRING:
                return f"sawzall_recorded(encode({value}))"
            case t.BYTES:
                return f"sawzall_recorded({value})"
            case t.F64:
                return (
                    f"sawzall_float_bytes({value} + 0.0)"
                    if self.signless
                    else f"sawzall_float_bytes({value})"
                )
            case t.BOOL:
                return f"sawzall_varint(if {value} {{ 1 }} else {{ 0 }})"
            case t.TIME:
                return f"sawzall_varint(micros({value}))"
            case t.U64:
                return f"sawzall_varint(i64.wrap({value}))"
            case _:
                return f"sawzall_varint({value})"


def _opening(consts: Consts, name: str, number: int) -> s.Fn:
    """The value that bytes are."""
    content = lowered(consts.program.recursive[number])
    reader = _Reader()
    value = reader.get(content)
    lines = "\n".join(reader.lines)
    return _parsed(
        f"fn {name}(data: bytes) -> {pretty(expression(content))} {{\n  var at = 0;\n{lines}\n  return {value};\n}}"
    )


class _Reader:
    """Writes the statements that read values, one behind the other, from `at` on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0

    def name(self, hint: str) -> str:
        self.names += 1
        return f"{PREFIX}{hint}{self.names}"

    def number(self, wire: int = 0) -> str:
        """A number, and what is behind it."""
        name = self.name("read")
        self.lines.append(f"let {name} = sawzall_number(data, at, {wire}); at = {name}.next;")
        return f"{name}.number"

    def data(self) -> str:
        """Bytes behind their length."""
        size, name = self.number(), self.name("part")
        self.lines.append(f"let {name} = data[at:at + {size}]; at = at + {size};")
        return name

    def begun(self, type_: t.Type, first: str) -> str:
        """A variable for a value that is made in several steps."""
        name = self.name("made")
        self.lines.append(f"var {name}: {pretty(expression(type_))} = {first};")
        return name

    def get(self, type_: t.Type) -> str:
        """An expression for the next value, behind the statements that read it."""
        match type_:
            case t.Optional(inner):
                name = self.begun(type_, "none")
                self.lines.append(f"if {self.number()} != 0 {{")
                self.lines.append(f"{name} = {self.get(inner)}; }}")
                return name
            case t.Record(fields):
                parts = [f"{field}: {self.get(inner)}" for field, inner in fields]
                return "{" + ", ".join(parts) + "}"
            case t.List(item):
                name = self.begun(type_, "[]")
                self.lines.append(f"for {self.name('i')} in 0..{self.number()} {{")
                self.lines.append(f"push({name}, {self.get(item)}); }}")
                return name
            case t.Map(key, item):
                name = self.begun(type_, "zero()")
                self.lines.append(f"for {self.name('i')} in 0..{self.number()} {{")
                at = self.get(key)
                self.lines.append(f"{name}[{at}] = {self.get(item)}; }}")
                return name
            case t.STRING:
                return f"decode({self.data()})"
            case t.BYTES:
                return self.data()
            case t.F64:
                return f"sawzall_real({self.number(1)})"
            case t.BOOL:
                return f"({self.number()} != 0)"
            case t.TIME:
                return f"time({self.number()})"
            case t.U64:
                return f"u64.wrap({self.number()})"
            case _:
                return self.number()
