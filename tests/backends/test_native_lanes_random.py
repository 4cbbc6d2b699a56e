"""Random bodies: firings side by side give what firings one by one and the evaluator give, traps and rows included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from tests.backends.lanes import in_lanes, numbers, operator


class Writer:
    """Writes the text of a body; all names are declared before they are used."""

    def __init__(self, draw: st.DrawFn, type_: str, peek: int) -> None:
        self.draw, self.type, self.peek = draw, type_, peek
        self.names, self.count, self.loops = list[str](), 0, list[str]()
        self.whole = type_ in ("i32", "i64")

    def pick(self, *options: str) -> str:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def literal(self) -> str:
        number = self.draw(st.integers(-9, 9))
        return str(number) if self.whole else f"{number / 4}"

    def index(self) -> str:
        options = [str(self.draw(st.integers(0, 7)))]
        return self.pick(*options, *self.loops, *(f"7 - {i}" for i in self.loops))

    def leaf(self) -> str:
        return self.pick(
            self.literal(), f"w[{self.index()}]", f"h[{self.index()}]", f"a[{self.index()}]", *self.names
        )

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self.leaf()
        x, y = self.expression(depth - 1), self.leaf()
        forms = [f"({x} {op} {y})" for op in "+-*"] + [f"min({x}, {y})", f"max({x}, {y})", f"twice({x})"]
        forms += [f"(if {self.condition()} {{{x}}} else {{{y}}})", f"mixed({x}, {y})"]
        if self.whole:
            forms += [f"({x} {op} {y})" for op in ("+%", "-%", "*%", "&", "|", "^", "<<", ">>", ">>>")]
            forms += [
                f"div.trunc({x}, {y})",
                f"mod.floor({x}, {y})",
                f"rem.trunc.wrap({x}, {y})",
                f"abs({x})",
            ]
        else:
            forms += [
                f"({x} / {y})",
                f"abs({x})",
                f"-{y}",
                f"sqrt({x})",
                f"floor({x})",
                f"round({x})",
                f"sin({y})",
            ]
            forms += [
                f"{self.type}({'f64' if self.type == 'f32' else 'f32'}({x}))",
                f"{self.type}(i32.sat({y}))",
            ]
        return self.pick(*forms)

    def condition(self) -> str:
        x, y = self.leaf(), self.leaf()
        plain = f"{x} {self.pick('<', '<=', '>', '>=', '==', '!=')} {y}"
        return self.pick(
            plain, plain, f"({plain}) and h[{self.index()}] < {self.leaf()}", f"not ({plain}) or w[0] > {y}"
        )

    def statements(self, depth: int, count: int) -> str:
        before = list(self.names)
        text = " ".join(self.statement(depth) for _ in range(count))
        self.names = before
        return text

    def statement(self, depth: int) -> str:
        kind = self.draw(st.integers(0, 9))
        if depth and kind < 3:
            rest = f" else {{ {self.statements(depth - 1, 1)} }}" if self.draw(st.booleans()) else ""
            return f"if {self.condition()} {{ {self.statements(depth - 1, 2)} }}{rest}"
        if depth and kind < 5:
            self.count += 1
            name = f"i{self.count}"
            self.loops.append(name)
            inside = self.statements(depth - 1, 2)
            self.loops.pop()
            if self.draw(st.booleans()):
                return f"for {name} in 0 .. {self.draw(st.integers(1, 8))} {{ {inside} }}"
            leave = (
                f"if {name} == {self.draw(st.integers(0, 8))} {{ break; }} "
                if self.draw(st.booleans())
                else ""
            )
            return f"var {name} = 0; while {name} < 8 {{ {leave}{inside} {name} = {name} + 1; }}"
        if kind == 5:
            return f"a[{self.index()}] = {self.expression(1)};"
        if self.names and kind < 8:
            return f"{self.pick(*self.names)} = {self.expression(2)};"
        if kind == 8 and self.draw(st.booleans()):
            return f'if {self.condition()} {{ if h[0] > {self.leaf()} {{ trap "no"; }} }}'
        if kind == 8:
            return f"add(v0, {self.expression(1)});"
        self.count += 1
        name, text = f"v{self.count}", self.expression(2)
        self.names.append(name)
        return f"var {name}: {self.type} = {text};"

    def emits(self, push: int) -> str:
        if push == 0:
            return ""
        if push > 1 and self.draw(st.booleans()):
            self.loops.append("e")
            text = f"for e in 0 .. {push} {{ emit y {self.expression(1)}; }}"
            self.loops.pop()
            return text
        rest = self.emits(push - 1)
        one = f"emit y {self.expression(1)};"
        if self.draw(st.booleans()):
            return (
                f"if {self.condition()} {{ {one} {rest} }} else {{ {self.emits(push)} }}"
                if push < 2
                else one + rest
            )
        return one + " " + rest


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, list[Any]]:
    """The text of an operator, its type, and items."""
    type_ = draw(st.sampled_from(("f32", "i32", "f64", "i64")))
    pop, push = draw(st.sampled_from((1, 1, 2, 5, 8, 17, 20))), draw(st.integers(1, 3))
    peek = max(8, pop)
    writer = Writer(draw, type_, peek)
    writer.names.append("v0")
    body = " ".join(writer.statement(2) for _ in range(draw(st.integers(1, 5))))
    body += " " + writer.emits(push)
    table = ", ".join(writer.literal() for _ in range(8))
    text = f"""
operator f(x: {type_}) -> (y[push {push}]: {type_}) {{
  const h: array<{type_}, 8> = [{table}];
  fn twice(z: {type_}) -> {type_} = z + z;
  fn mixed(z: {type_}, u: {type_}) -> {type_} {{ var s = z; if u > z {{ s = u - z; }} return s; }}
  fn add(ref z: {type_}, u: {type_}) {{ z = z - u; }}
  on x[peek {peek}, pop {pop}](w) {{
    var v0: {type_} = w[0];
    var a: array<{type_}, 8> = fill(v0);
    {body}
  }}
}}"""
    text = text.replace("fill(v0)", draw(st.sampled_from(("fill(v0)", "zero()"))))
    firings = draw(st.integers(60, 100))
    items = numbers(type_, firings * pop + peek, draw(st.integers(0, 1 << 30)))
    return text, type_, items


def same_everywhere(program: tuple[str, str, list[Any]]) -> None:
    text, type_, items = program
    op = operator(text, type_)
    try:
        in_lanes(op, items)
    except AssertionError as wrong:
        raise AssertionError(f"{wrong}\n{text}") from None


@pytest.mark.slow
@settings(max_examples=min(15, settings().max_examples // 2), deadline=None)
@given(programs())
def test_random_bodies(program: tuple[str, str, list[Any]]) -> None:
    same_everywhere(program)


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(programs())
def test_many_random_bodies(program: tuple[str, str, list[Any]]) -> None:
    same_everywhere(program)
