"""River-Sawzall: what a lowered program gives is what the direct interpreter of its typed tree gives.

Programs are random texts, well typed by construction; loops are bounded. Records hold numbers at the borders, NaN, empty and
missing parts, so that many values are undefined.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

import river
from frontends.sawzall import FRONTEND
from river.nesting import more_room
from river.source import Source
from tests.oracles import sawzall_direct as direct

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = """
r: {i: int, j: int, u: uint, f: float, s: string, a: array of int, m: map [string] of int, o: int?} = input;
static limit: int = 3;
"""
TABLES = {
    "total": ("table sum[k: int] of {n: int, x: float, u: uint}", "[<int>] <- {<int>, <float>, <uint>}"),
    "plain": ("table sum of float", " <- <float>"),
    "different": ("table set(2)[k: bool] of v: string", "[<bool>] <- <string>"),
    "count": ("table unique[k: int] of v: float", "[<int>] <- <float>"),
    "most": ("table maximum(2)[k: bool] of v: int weight w: float", "[<bool>] <- <int> weight <float>"),
    "least": ("table minimum(3) of v: string weight w: int", " <- <string> weight <int>"),
    "top": ("table top(2)[k: bool] of v: int weight w: int", "[<bool>] <- <int> weight <int>"),
    "heavy": ("table top(2) of v: string weight w: float", " <- <string> weight <float>"),
    "every": ("table collection of {v: array of int, w: map [string] of int}", " <- {v: <ints>, w: <map>}"),
    "longest": (
        "table sum[k: bool] of {v: array of int, w: map [string] of int}",
        "[<bool>] <- {<ints>, <map>}",
    ),
    "calls": ("table mrcounter[k: string] of n: int", "[<string>] <- <int>"),
    "middle": ("table quantile(4)[k: bool] of v: float", "[<bool>] <- <float>"),
    "parts": ("table quantile(2) of v: string", " <- <string>"),
    "distinct": (
        "table distinctsample(5000)[k: bool] of v: int weight w: float",
        "[<bool>] <- <int> weight <float>",
    ),
    "shares": ("table inversehistogram(5000) of v: string weight w: int", " <- <string> weight <int>"),
    "some_": ("table sample(5000)[k: bool] of v: int", "[<bool>] <- <int>"),
    "ahead": ("table weightedsample(5000) of v: string weight w: float", " <- <string> weight <float>"),
    "resampled": (
        "table bootstrapsum(7)[k: bool] of {n: int, x: float} weight fingerprint",
        "[<bool>] <- {<int>, <float>} weight fingerprint(<int> | 1)",
    ),
    "lines": ("table text of string", " <- <string>"),
    "packed": ("table recordio of string", " <- <string>"),
}
"""What they are, and what is sent to them. Samples are as large as all that comes: what is drawn of more is told elsewhere."""

TYPES = {"int": "int", "uint": "uint", "float": "float", "bool": "bool", "string": "string", "ints": "array of int",
         "map": "map [string] of int"}  # fmt: skip
INTS = [0, 1, 2, 3, -1, -2, 7, 64, (1 << 63) - 1, -(1 << 63), 1 << 62]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e308, -1e308, 1e-308, math.inf, -math.inf, math.nan, 9.3e18]
STRINGS = ["", "a", "b", "ab", "7", "-12", "0x1", "-0X1f", " 017", "08", "7 ", "1.5", "1e3", "é"]

EXPRESSIONS = {
    "int": [
        "(<int> <+|-|*|/|%> <int>)", "(<int> <+|-|*|/|%|&|^> <int>)", "(<int> << <int>)", "(<int> >> <int>)", "-<int>",
        "~<int>", "abs(<int>)", "min(<int>, <int>)", "len(<string>)", "len(<ints>)", "<ints!>[<int>]", "<ints!>[<int>]",
        "r.m[<string>]", "int(<float>)", "int(<string>)", "int(<bool>)", "int(<uint>)", "int(<string>, 16)",
        "<string!>[<int>]", "lookup(<map>, <string>, <int>)", "strfind(<string>, <string>)", "<ints!>[$ - <1|2>]",
        "<string!>[$ - <int>]",
    ],
    "uint": ["(<uint> <+|-|*|/|%|&|^> <uint>)", "(<uint> >> <uint>)", "uint(<int>)",
        "~<uint>", "uint(<string>)", "uint(<float>)"],
    "float": [
        "(<float> <+|-|*|/> <float>)", "-<float>", "float(<int>)", "float(<string>)", "max(<float>, <float>)", "abs(<float>)",
    ],
    "bool": [
        *(f"(<{kind}> <==|!=> <{kind}>)" for kind in TYPES), *(f"(<{kind}> < <{kind}>)" for kind in ("int", "float", "string")),
        "(<uint> >= <uint>)", "(<bool> <&&|and> <bool>)", "(<bool> <or> <bool>)", "!(<bool>)", "(not <bool>)",
        *(f"def(<{kind}>)" for kind in TYPES), "def(<int>)", "haskey(<map>, <string>)", 'match("^[a-c]+", <string>)',
    ],
    "string": [
        "(<string> + <string>)", *(f"string(<{kind}>)" for kind in ("int", "uint", "float", "bool")), "<string!>[<int>:<int>]",
        "<string!>[<int>:$ - <int>]",
        'format("%d:%s", <int>, <string>)', "uppercase(<string>)", 'matchstrs("(a)(b)?", <string>)[<int>]',
        'split(<string>, "a")[0]',
    ],
    "ints": ["(<ints> + <ints>)", "sort(<ints>)", "<ints!>[<int>:<int>]", "<ints!>[<0|1>:<int>]", "<ints!>[<int>:$]",
        "{<int>, <int>}"],
    "map": ["{(<string>): <int>, <string>: <int>}"],
}  # fmt: skip


@define
class Writer:
    """Draws a program. `scope`: the variables that may be read, with their types; `fixed`: those not to be changed."""

    draw: Callable[[Any], Any]
    scope: dict[str, str] = field(
        factory=lambda: {"r.i": "int", "r.j": "int", "r.u": "uint", "r.f": "float", "r.s": "string", "r.a": "ints",
                         "r.m": "map", "r.o": "int", "limit": "int"}
    )  # fmt: skip
    fixed: set[str] = field(factory=lambda: {"limit"})
    functions: dict[str, str] = field(factory=dict)
    names: int = 0
    loops: int = 0
    open: int = 0
    inside: str | None = None
    tables: set[str] = field(factory=set)

    def pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def readable(self, kind: str) -> list[str]:
        return [name for name, type_ in self.scope.items() if type_ == kind]

    def expr(self, kind: str, depth: int = 2) -> str:
        leaves = self.readable(kind)
        if depth == 0 or self.draw(st.integers(0, 2)) == 0:
            return self.pick(leaves) if leaves and self.draw(st.booleans()) else self.literal(kind)
        if self.draw(st.integers(0, 9)) == 0:
            return self.of_statements(kind, depth - 1)
        if kind == "int" and "apply" in self.functions and self.draw(st.integers(0, 7)) == 0:
            return f"apply({self.anonymous(depth - 1)}, {self.expr('int', depth - 1)})"
        calls = ["f(<int>, <string>)"] * 3 if kind == "int" and "f" in self.functions else []
        return self.fill(self.pick([*calls, *EXPRESSIONS[kind]]), depth - 1)

    def fill(self, template: str, depth: int) -> str:
        """The template with drawn expressions: `<int>`, a drawn variable `<ints!>`, drawn words `<+|->`."""

        def drawn(found: re.Match[str]) -> str:
            what = found[1]
            if what in TYPES:
                return self.expr(what, depth)
            if what.endswith("!"):
                return self.pick(self.readable(what[:-1]))
            return self.pick(what.split("|"))

        return re.sub(r"<([^<> ][^ ]*?)>", drawn, template)

    def of_statements(self, kind: str, depth: int) -> str:
        """`?{...}` with a variable of its own and at most two results."""
        before, inner = dict(self.scope), self.pick(["int", "string", "ints"])
        value, name = self.expr(inner, depth), self.name()
        self.scope[name] = inner
        early = (
            f"if ({self.expr('bool', depth)}) result {self.expr(kind, depth)};"
            if self.draw(st.booleans())
            else ""
        )
        last = f"result {self.expr(kind, depth)};"
        if self.draw(st.integers(0, 3)) == 0:
            jump = f"if ({self.expr('bool', depth)}) break;" if self.draw(st.booleans()) else ""
            other = f"case {self.literal('int')}: {jump} result {self.expr(kind, depth)};"
            last = f"switch ({self.expr('int', depth)}) {{ {other} default: {last} }}"
        found = f"?{{ {name}: {TYPES[inner]} = {value}; {early} {last} }}"
        self.scope = before
        return found

    def anonymous(self, depth: int) -> str:
        """A function as a value, which reads the variables around it."""
        before, fixed = dict(self.scope), set(self.fixed)
        name = self.name()
        self.scope[name] = "int"
        self.fixed |= set(self.scope)
        found = f"function({name}: int): int {{ return {self.expr('int', depth)}; }}"
        self.scope, self.fixed = before, fixed
        return found

    def literal(self, kind: str) -> str:
        match kind:
            case "int":
                value = self.pick(INTS)
                return f"({value})" if value < 0 else str(value)
            case "uint":
                return f"uint({self.pick(INTS[:4])})"
            case "float":
                return f"{self.pick([0.0, 1.0, 2.5, 1e300])!r}"
            case "bool":
                return self.pick(["true", "false"])
            case "string":
                return f'"{self.pick(STRINGS)}"'
            case "ints":
                return self.pick(["{1, 2, 3}", "r.a"])
            case _:
                return self.pick(['{"a": 1, "b": 2}', "r.m"])

    # -- statements

    def block(self, depth: int) -> str:
        before = dict(self.scope)
        body = " ".join(self.stmt(depth) for _ in range(self.draw(st.integers(1, 3))))
        self.scope = before
        return body

    def stmt(self, depth: int) -> str:
        simple = ["declare", "assign", "emit", "emit", "part", "step", "call"]
        kinds = (
            [*simple, "if", "if", "for", "while", "do", "switch", "when", "when", "jump"]
            if depth > 0
            else simple
        )
        return getattr(self, f"s_{self.pick(kinds)}")(depth - 1)

    def local(self, *kinds: str) -> list[str]:
        return [n for n, k in self.scope.items() if k in kinds and "." not in n and n not in self.fixed]

    def s_declare(self, _depth: int) -> str:
        kind = self.pick(TYPES)
        value = self.expr(kind)
        name = self.name()
        self.scope[name] = kind
        return self.pick(
            [f"{name}: {TYPES[kind]} = {value};", f"{name} := {value};", f"{name}: {TYPES[kind]};"]
        )

    def s_assign(self, depth: int) -> str:
        names = self.local(*TYPES)
        if not names:
            return self.s_declare(depth)
        name = self.pick(names)
        return f"{name} = {self.expr(self.scope[name])};"

    def s_part(self, depth: int) -> str:
        names = self.local("ints", "map", "string")
        if not names:
            return self.s_emit(depth)
        name = self.pick(names)
        if self.scope[name] == "string" or (self.scope[name] == "ints" and self.draw(st.booleans())):
            if self.scope[name] == "string" and self.draw(st.booleans()):
                return self.fill(f"{name}[<int>] = 'x';", 1)
            return self.fill(f"{name}[<int>:{self.pick(['$', '1', '<int>'])}] = <{self.scope[name]}>;", 1)
        if self.scope[name] == "ints" and self.draw(st.booleans()):
            return self.fill(f"{name} = {name} + {{<int>{self.pick(['', ', <int>'])}}};", 1)
        index = self.expr("int" if self.scope[name] == "ints" else "string", 1)
        return self.fill(f"{name}[{index}]{self.pick(['++', '--', ' = <int>'])};", 1)

    def s_step(self, depth: int) -> str:
        names = self.local("int")
        return f"{self.pick(names)}{self.pick(['++', '--'])};" if names else self.s_declare(depth)

    def s_call(self, depth: int) -> str:
        if "add" in self.functions and self.draw(st.booleans()):
            return f"add({self.expr('int', 1)});"
        names = [name for name in ("f", "g") if name in self.functions]
        if not names:
            return self.s_emit(depth)
        return f"{self.pick(names)}({self.expr('int', 1)}, {self.expr('string', 1)});"

    def s_emit(self, _depth: int) -> str:
        name = self.pick(TABLES)
        self.tables.add(name)
        return self.fill(f"emit {name}{TABLES[name][1]};", self.draw(st.integers(0, 2)))

    def s_if(self, depth: int) -> str:
        head = f"if ({self.expr('bool')}) {{ {self.block(depth)} }}"
        return head + (f" else {{ {self.block(depth)} }}" if self.draw(st.booleans()) else "")

    def looped(self, head: str, tail: str, depth: int, name: str | None = None, first: str = "") -> str:
        if self.loops > 1:
            return self.s_emit(depth)
        before = dict(self.scope)
        if name is not None:
            self.scope[name] = "int"
            self.fixed.add(name)
        self.loops, self.open = self.loops + 1, self.open + 1
        body = self.block(depth)
        self.loops, self.open = self.loops - 1, self.open - 1
        self.scope = before
        return f"{head} {{ {first} {body} }} {tail}"

    def s_for(self, depth: int) -> str:
        name = self.name()
        bound = self.pick(["3", "len(r.a)", "limit"])
        return self.looped(
            f"for ({name}: int = {self.pick([0, 1])}; {name} < {bound}; {name}++)", "", depth, name
        )

    def s_while(self, depth: int) -> str:
        name = self.name()
        head = f"{name}: int = 3; while ({name} > 0 && {self.expr('bool', 1)})"
        return f"{{ {self.looped(head, '', depth, name, f'{name}--;')} }}"

    def s_do(self, depth: int) -> str:
        name = self.name()
        tail = f"while ({name} > 0 && {self.expr('bool', 1)});"
        return f"{{ {self.looped(f'{name}: int = 2; do', tail, depth, name, f'{name}--;')} }}"

    def s_switch(self, depth: int) -> str:
        cases = [
            f"case {self.expr('int', 1)}, {self.literal('int')}: {self.block(depth)} {self.pick(['', 'break;'])}"
        ]
        cases += [f"case {self.pick([1, 2, 3])}: {self.block(depth)}"]
        return f"switch ({self.expr('int')}) {{ {' '.join(cases)} default: {self.block(depth)} }}"

    def s_when(self, depth: int) -> str:
        if self.loops > 1:
            return self.s_emit(depth)
        before = dict(self.scope)
        quantities = self.pick([["some"], ["each"], ["all"], ["each", "some"], ["some", "each"], ["some", "all"],
                                ["some", "some"], ["each", "all"], ["all", "all"]])  # fmt: skip
        heads, conds = [], []
        for quantity in quantities:
            name = self.name()
            over, kind = self.pick(
                [*((a, "int") for a in self.readable("ints")), *((m, "string") for m in self.readable("map"))]
            )
            heads.append(f"{name}: {quantity} {kind};")
            conds.append(f"{over}[{name}] {self.pick(['<', '>', '!='])} {self.pick([0, 1, 2])}")
            if self.draw(st.booleans()):
                other = self.pick(self.readable("ints" if kind == "int" else "map"))
                conds.append(f"({other}[{name}] > 0 {self.pick(['||', '&&'])} def({over}[{name}]))")
            if quantity != "all":
                self.scope[name] = kind
                self.fixed.add(name)
        extra = f" {self.pick(['&&', '||'])} {self.expr('bool', 1)}" if self.draw(st.booleans()) else ""
        self.loops += 1
        around, self.open = self.open, 0
        body = self.block(depth)
        self.loops -= 1
        self.scope, self.open = before, around
        return f"when ({' '.join(heads)} {' && '.join(conds)}{extra}) {{ {body} }}"

    def s_jump(self, depth: int) -> str:
        words = ["return 1;" if self.inside == "int" else "return;"] + ["break;", "continue;"] * self.open
        return f"if ({self.expr('bool', 1)}) {self.pick(words)}"

    # -- the whole

    def function(self, name: str, result: str | None) -> str:
        before, fixed = dict(self.scope), set(self.fixed)
        self.fixed |= set(self.scope)
        p, q = self.name(), self.name()
        self.scope |= {p: "int", q: "string"}
        self.inside = result
        body = self.block(2)
        if result is not None and self.draw(st.booleans()):
            body += f" return {self.expr('int')};"
        self.scope, self.fixed, self.inside = before, fixed, None
        self.functions[name] = result or "none"
        shown = "" if result is None else f": {result}"
        return f"{name}: function({p}: int, {q}: string){shown} {{ {body} }};"

    def program(self) -> str:
        parts = [self.s_declare(0) for _ in range(self.draw(st.integers(0, 2)))]
        if self.draw(st.booleans()):
            parts.append("acc: int = 1; add: function(n: int) { acc = acc + n; };")
            self.scope["acc"] = "int"
            self.functions["add"] = "none"
        if self.draw(st.booleans()):
            parts.append(
                "apply: function(g: function(n: int): int, n: int): int { return g(n) - g(n + 1); };"
            )
            self.functions["apply"] = "int"
        parts.append(self.function("f", "int"))
        if self.draw(st.booleans()):
            parts.append(self.function("g", None))
        parts += [self.stmt(3) for _ in range(self.draw(st.integers(1, 5)))]
        declared = (f"{name}: {TABLES[name][0]};" for name in TABLES if name in self.tables)
        return "\n".join((RECORD, *declared, *parts))


programs = st.composite(lambda draw: Writer(draw).program())()

records = st.fixed_dictionaries({
    "i": st.sampled_from(INTS),
    "j": st.integers(-2, 4),
    "u": st.sampled_from([0, 1, 2, (1 << 64) - 1]),
    "f": st.sampled_from(FLOATS),
    "s": st.sampled_from(STRINGS),
    "a": st.lists(st.integers(-1, 3), max_size=3),
    "m": st.dictionaries(st.sampled_from(["a", "b", "7"]), st.integers(-2, 2), max_size=2),
    "o": st.none() | st.integers(0, 2),
})  # fmt: skip


def rows(
    compiled: river.Compiled, data: list[dict[str, Any]], backend: str
) -> dict[str, list[tuple[Any, ...]]]:
    """What a run gives, in the form of the direct interpreter."""
    with more_room(0):  # what programs need that may call themselves is taken back
        results = compiled.run({"r": data}, backend=backend)
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, collector in results.collected.items():
        table = collector.table()
        items = [tuple(map(value, row.values())) for row in table.to_pylist(maps_as_pydicts="strict")]
        found[name] = [()] * len(items) if name == "undefined" else sorted(items, key=repr)
    return {"undefined": []} | found


def value(found: Any) -> Any:
    return direct.plain(found)


@pytest.mark.slow
@given(programs, st.lists(records, min_size=1, max_size=4))
def test_lowered_is_direct(text: str, data: list[dict[str, Any]]) -> None:
    typed = FRONTEND.check(FRONTEND.parse(Source("<program>", text)))
    assert rows(river.compile(text, lang="sawzall"), data, "reference") == direct.run(typed, data)


SENT = {
    "total": "[r.j] <- {r.i, r.f, r.u}", "plain": " <- r.f", "different": "[r.j > 0] <- r.s", "count": "[r.j] <- r.f",
    "most": "[r.j > 0] <- r.i weight r.f", "least": " <- r.s weight r.i", "top": "[r.j > 0] <- r.i weight r.j",
    "heavy": " <- r.s weight r.f", "every": " <- {r.a, r.m}",
}  # fmt: skip
REDUCERS = RECORD + "".join(f"{name}: {TABLES[name][0]}; emit {name}{sent};\n" for name, sent in SENT.items())
COMPILED = river.compile(REDUCERS, lang="sawzall")


@pytest.mark.slow
@settings(max_examples=min(12, settings().max_examples // 2))
@given(st.lists(records, max_size=12), st.randoms(use_true_random=False))
def test_tables_do_not_see_the_order_of_the_records(data: list[dict[str, Any]], random: Any) -> None:
    mixed = random.sample(data, len(data))
    first = rows(COMPILED, data, "reference")
    assert first == rows(COMPILED, mixed, "multicore")
    assert first == direct.run(FRONTEND.check(FRONTEND.parse(Source("<program>", REDUCERS))), mixed)
