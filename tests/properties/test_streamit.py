"""Random River-StreamIt programs mean what the language says: actors with lists for queues, C statement by statement."""

from __future__ import annotations

import os
import re
from functools import partial
from math import lcm
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import river
from calculus import Finished, outcomes
from frontends.streamit import FRONTEND
from river.diagnostics import Rejected
from river.il.erase import erase, inputs
from river.il.observe import Observation, observe
from river.il.parse import parse
from river.il.pretty import pretty
from river.source import Source
from tests.oracles import streamit_direct as direct

Draw = "Callable[[st.SearchStrategy[Any]], Any]"

# ---------------------------------------------------------------------------------------------- C code


class Coder:
    """Writes the work function of an int filter: it pops, peeks and pushes what its rates say."""

    def __init__(self, draw: Any, peek: int, pop: int, push: int) -> None:
        self.draw, self.peek, self.pop, self.push = draw, peek, pop, push
        self.popped = 0
        self.fixed = True  # whether the number of items popped so far is known here
        self.loops: list[str] = []

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def expr(self, depth: int = 2) -> str:
        plain = [
            "s",
            "f",
            "n",
            str(self.draw(st.integers(-3, 9))),
            "a[s & 3]",
            "p.x",
            "p.y[f & 1]",
            *self.loops,
        ]
        if self.fixed and self.popped < self.peek:
            plain += [f"peek({self.draw(st.integers(0, self.peek - self.popped - 1))})"] * 2
        if depth == 0:
            return self.pick(*plain)
        e, d = (lambda: self.expr(depth - 1)), depth - 1
        kind = self.draw(st.integers(0, 14))
        match kind:
            case 0 | 1 | 2:
                return f"({e()} {self.pick('+', '-', '*', '&', '|', '^')} {e()})"
            case 3:
                return f"({e()} {self.pick('/', '%')} (1 + ({e()} & 7)))"
            case 4:
                return f"({e()} {self.pick('<<', '>>')} ({e()} & 3))"
            case 5:
                return f"({self.cond(d)} ? {e()} : {e()})"
            case 6:
                return self.pick("s++", "--s", "f++", "f--", "a[1]++")
            case 7:
                return f"(s {self.pick('=', '+=', '-=', '^=')} {e()})"
            case 8:
                return self.pick(
                    f"h({e()})", "t(a)", f"t({{{e()}, {e()}}})", "m(p)", f"m({{{e()}, {{s, {e()}}}}})"
                )
            case 9:
                return f"{self.pick('min', 'max')}({e()}, {e()})"
            case 10:
                return f"{self.pick('-', '~')}({e()})"
            case 11:
                return f"(int) (0.5 * ({e()} & 1023))"
            case 12:
                return f"abs({e()})"
            case 13:
                number = self.pick(3, 70_000, 1 << 30)
                return f"(({self.cond(d)} ? {number} : -{number}) {self.pick('+', '*', '^')} ({self.cond(d)} ? {number} : 7))"
            case _:
                return self.pick(*plain)

    def cond(self, depth: int) -> str:
        simple = f"{self.expr(depth)} {self.pick('<', '<=', '==', '!=', '>')} {self.expr(depth)}"
        match self.draw(st.integers(0, 4)):
            case 0 if depth:
                return f"({simple} {self.pick('&&', '||')} {self.cond(depth - 1)})"
            case 1:
                return f"!({simple})"
            case _:
                return simple

    def statement(self, depth: int = 1) -> str:
        match self.draw(st.integers(0, 9)):
            case 0 | 1:
                return f"s {self.pick('=', '+=', '-=', '*=')} {self.expr()};"
            case 2:
                return f"f {self.pick('=', '+=')} {self.expr()};"
            case 3:
                e = partial(self.expr, 1)
                return self.pick(f"a[{e()} & 3] = {self.expr()};", f"a = {{{e()}, a[3], {e()}, {e()}}};")
            case 4 if depth:
                other = f" else {{ {self.statement(depth - 1)} }}" if self.draw(st.booleans()) else ""
                return f"if ({self.cond(1)}) {{ {self.statement(depth - 1)} }}{other}"
            case 5 if depth:
                name = f"i{len(self.loops)}"
                head = self.pick(
                    f"int {name} = 0; {name} < n; {name}++",
                    f"int {name} = 4; {name} > n - 2; {name} -= 2",
                    f"int {name} = 1; {name} <= 3; {name}++",
                    f"int {name} = s & 1; {name} < 3; {name}++",
                )
                self.loops.append(name)
                body = self.statement(depth - 1)
                leave = self.pick("", "", f"if ({self.cond(0)}) break;", f"if ({self.cond(0)}) continue;")
                self.loops.pop()
                return f"for ({head}) {{ {leave} {body} }}"
            case 6:
                return f"{{ int q = {self.expr()}; while (q > 0 && q != s) {{ q = q / 2; if (q == 5) break; }} s += q; }}"
            case 7:
                e = partial(self.expr, 1)
                return self.pick(
                    f"p.x = {e()};", f"p.y[{e()} & 1] += {e()};", f"p = {{{e()}, {{p.y[1], {e()}}}}};"
                )
            case 8 if depth:
                cases = " ".join(
                    f"case {i}: {self.statement(depth - 1)} {self.pick('break;', '')}" for i in range(3)
                )
                return f"switch ({self.expr(1)} & 3) {{ {cases} default: {self.statement(depth - 1)} }}"
            case _:
                return self.pick("s++;", "f--;", "h(s);", "m(p);")

    def code(self) -> str:
        """Statements, with all pops and pushes between them."""
        lines = ["int s = n; int[4] a;", f"s += {self.expr()};"]
        pops, pushes = self.pop, self.push
        while pops or pushes:
            if self.draw(st.booleans()):
                lines.append(self.statement())
            if pops and (not pushes or self.draw(st.booleans())):
                count = self.draw(st.integers(1, pops))
                lines.append(self.pops(count))
                pops -= count
                self.popped += count
            elif pushes:
                count = self.draw(st.integers(1, pushes))
                lines.append(self.pushes(count))
                pushes -= count
        if self.draw(st.booleans()):
            lines.append(self.statement())
        return " ".join(lines)

    def pops(self, count: int) -> str:
        match self.draw(st.integers(0, 4)):
            case 0:
                return " ".join(["s += pop();"] * count)
            case 1:
                return f"for (int k = 0; k < {count}; k++) a[k & 3] = pop() - k;"
            case 2:
                return f"for (int k = {count}; k > 0; k--) {{ s = s * 3 + pop(); }}"
            case 3:
                return f"{{ int k = {count}; while (k > 0) {{ k--; f ^= pop(); }} }}"
            case _:
                return " ".join(["pop();"] * count)

    def pushes(self, count: int) -> str:
        match self.draw(st.integers(0, 2)):
            case 0:
                return " ".join(f"push({self.expr()});" for _ in range(count))
            case 1:
                self.loops.append("k")
                text = f"for (int k = 0; k < {count}; k++) push({self.expr(1)});"
                self.loops.pop()
                return text
            case _:
                return f"{{ int k = 0; do {{ push(s + k); k++; }} while (k < {count}); }}"


# ---------------------------------------------------------------------------------------------- graphs


@frozen
class Part:
    """A creation, and what it takes and gives in one steady state."""

    text: str
    taken: int
    given: int


PAIR = "struct Pair { int x; int[2] y; }"


class Graphs:
    """Writes streams whose rates fit together."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.decls: list[str] = []

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def filter(self, pop: int | None = None, push: int | None = None, *, peeks: bool = True) -> Part:
        pop = self.number(1, 3) if pop is None else pop
        push = self.number(1, 3) if push is None else push
        peek = pop + (self.number(0, 2) if peeks else 0)
        name = f"F{len(self.decls)}"
        coder = Coder(self.draw, peek, pop, push)
        stated = self.draw(
            st.sampled_from([f"pop {pop} push {push} peek {peek}", f"peek {peek} pop {pop} push {push}"])
        )
        first = "" if not peeks or self.number(0, 5) else f"prework push {self.number(0, 2)} {{ PUSHES }}"
        if first:
            count = int(first.split("push ")[1][0])
            first = first.replace("PUSHES", " ".join(f"push({i} + n);" for i in range(count)))
        init = self.draw(
            st.sampled_from(
                ["", "init { for (int i = 0; i < n; i++) { f += i * c; } }", "init { f = h(2); }"]
            )
        )
        self.decls.append(
            f"int->int filter {name}(int n) {{ int f = n; int c = 3; Pair p; {init} {first} "
            f"int h(int x) {{ {self.draw(st.sampled_from(['f += x;', '', 'x += c;']))} return x * 2 + c; }} "
            f"int t(int[] x) {{ {self.draw(st.sampled_from(['x[0] += c;', '']))} return x[1] * 3 + x[0]; }} "
            f"int m(Pair q) {{ {self.draw(st.sampled_from(['p.y[1] += q.x;', 'p.x++;', '']))} "
            f"{self.draw(st.sampled_from(['q.y[0]--;', '']))} return q.x * 3 + p.x - q.y[0] + p.y[1]; }} "
            f"work {stated} {{ {coder.code()} }} }}"
        )
        return Part(f"{name}({self.number(0, 3)})", pop, push)

    def any(self, depth: int) -> Part:
        kind = self.number(0, 4) if depth else 0
        match kind:
            case 1 | 2:
                return self.pipeline(depth)
            case 3:
                return self.split_join(depth)
            case 4:
                return self.feedback()
            case _:
                return self.filter() if self.number(0, 6) else Part("Identity<int>()", 1, 1)

    def pipeline(self, depth: int) -> Part:
        parts = [self.any(depth - 1) for _ in range(self.number(1, 3))]
        taken, given = parts[0].taken, parts[0].given
        for part in parts[1:]:
            whole = lcm(given, part.taken)
            taken, given = taken * whole // given, part.given * whole // part.taken
        return Part("pipeline { " + " ".join(add("add", part.text) for part in parts) + " }", taken, given)

    def split_join(self, depth: int, *more: Part) -> Part:
        parts = [self.any(depth - 1) for _ in range(self.number(0 if more else 1, 3))]
        parts = [*parts[:1], *more, *parts[1:]]
        body = " ".join(add("add", part.text) for part in parts)
        if self.draw(st.booleans()):
            whole = lcm(*(part.taken for part in parts))
            weights = [part.given * whole // part.taken for part in parts]
            return Part(
                f"splitjoin {{ split duplicate; {body} join roundrobin({commas(weights)}); }}",
                whole,
                sum(weights),
            )
        ins, outs = [part.taken for part in parts], [part.given for part in parts]
        text = f"splitjoin {{ split roundrobin({commas(ins)}); {body} join roundrobin({commas(outs)}); }}"
        return Part(text, sum(ins), sum(outs))

    def feedback(self) -> Part:
        loop = self.filter(1, 1, peeks=False) if self.draw(st.booleans()) else Part("Identity<int>()", 1, 1)
        if self.draw(st.booleans()):
            waiting = " ".join(f"enqueue {self.number(-5, 5)};" for _ in range(self.number(1, 4)))
        else:
            waiting, name = "", f"Delay{len(self.decls)}"
            self.decls.append(
                f"int->int filter {name}(int n) {{ prework push n {{ for (int i = 0; i < n; i++) push(i - 2); }} "
                "work pop 1 push 1 { push(pop()); } }"
            )
            loop = Part(f"pipeline {{ {add('add', loop.text)} add {name}({self.number(1, 4)}); }}", 1, 1)
        if self.draw(st.booleans()):
            body, split, given = self.filter(2, 1, peeks=False), "duplicate", 1
        else:
            given = self.number(1, 2)
            body, split = self.filter(2, 1 + given, peeks=False), f"roundrobin({given}, 1)"
        text = f"join roundrobin(1, 1); {add('body', body.text)} {add('loop', loop.text)} split {split}; {waiting}"
        return Part(f"feedbackloop {{ {text} }}", 1, given)

    def messages(self) -> str:
        """A program in which two filters, one behind the other, and perhaps a third send messages to one another."""
        upper, lower, third = (self.filter() for _ in range(3))
        ends = [(part.text.partition("(")[0], part) for part in (upper, lower, third)]
        way = self.draw(st.sampled_from(("down", "up", "both")))
        pairs = {"down": [(0, 1)], "up": [(1, 0)], "both": [(0, 1), (1, 0)]}[way]
        pairs += self.draw(st.sampled_from(([], [(0, 2)], [(2, 0)], [(1, 2)], [(2, 1)])))
        upwards = any(sender > receiver for sender, receiver in pairs)
        portals = ""
        for number, (sender, receiver) in enumerate(pairs):
            name, told = ends[sender][0], ends[receiver][0]
            least = self.number(0, 6) if upwards else self.number(-4, 6)
            other = self.draw(
                st.sampled_from((f"[{least + 1}:{least + 5}]", f"@ {least + 2}", f"[{max(least, 0)}:]"))
            )
            sends = (
                f"if ((peek(0) & 3) != n) q{number}.hit{number}(peek(0) & 15, n) [{least}:{least}]; "
                f"if ((peek(0) & 7) == 2) q{number}.turn{number}(iter()) {other};"
            )
            handlers = (
                f"handler hit{number}(int x, int y) {{ f = f * 3 + x - y; }} "
                f"void turn{number}(int x) {{ f ^= h(x); }} "
            )
            for i, decl in enumerate(self.decls):
                if f"filter {name}(" in decl:
                    portal = f"filter {name}(int n, portal<{told}> q{number}"
                    self.decls[i] = insert(decl.replace(f"filter {name}(int n", portal), sends)
                elif f"filter {told}(" in decl:
                    self.decls[i] = decl.replace(" int f = n;", f" int f = n; {handlers}")
            given = re.sub(r"\((\d+)", rf"(\1, q{number}", ends[sender][1].text)
            ends[sender] = name, evolve(ends[sender][1], text=given)
            portals += f"portal<{told}> q{number}; "
        wired: list[Part] = []
        for i, (_, part) in enumerate(ends):
            heard = ", ".join(f"q{number}" for number, (_, receiver) in enumerate(pairs) if receiver == i)
            whole = evolve(part, text=f"{part.text} to {heard}" if heard else part.text)
            wired.append(self.split_join(1, whole) if self.draw(st.booleans()) else whole)
            if self.draw(st.booleans()):
                wired.append(self.any(1))
        body = " ".join(add("add", part.text) for part in wired)
        return patient("\n".join([PAIR, *self.decls, f"int->int pipeline Main {{ {portals}{body} }}"]))

    def program(self, depth: int) -> str:
        main = self.pipeline(depth)
        return "\n".join([PAIR, *self.decls, f"int->int pipeline Main {{ {add('add', main.text)} }}"])


def add(word: str, creation: str) -> str:
    return f"{word} {creation}" if creation.endswith("}") else f"{word} {creation};"


def patient(text: str) -> str:
    """The program with latencies so great that no filter waits for what only items behind it can make others say."""
    for _ in range(50):
        try:
            FRONTEND.check(FRONTEND.parse(Source("p.str", text)))
        except Rejected as rejected:
            if {each.code for each in rejected.diagnostics} != {"streamit-latency"}:
                raise
            text = LATENCY.sub(
                lambda found: NUMBER.sub(lambda number: str(int(number[0]) + 4), found[0]), text
            )
        else:
            break
    return text


def insert(decl: str, code: str) -> str:
    """The filter with code at the beginning of its work function."""
    head, work, body = decl.partition(" work p")
    rates, brace, rest = body.partition("{")
    return f"{head}{work}{rates}{brace} {code}{rest}"


def commas(weights: list[int]) -> str:
    return ", ".join(map(str, weights))


@st.composite
def programs(draw: Any, depth: int = 2) -> str:
    return Graphs(draw).program(depth)


words = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-9, 9)


LATENCY = re.compile(r"\) (\[-?\d+:-?\d*\]|@ -?\d+);")
NUMBER = re.compile(r"-?\d+")
CASES = int(os.environ.get("RIVER_CASES", "15"))


@pytest.mark.slow
@settings(max_examples=CASES)
@given(programs(), st.lists(words, max_size=25))
def test_programs_compute_what_the_actors_do(text: str, items: list[int]) -> None:
    typed = FRONTEND.check(FRONTEND.parse(Source("p.str", text)))
    compiled = river.compile(text, lang="streamit")
    assert parse(Source("p.river", pretty(compiled.program))) == compiled.program
    assert compiled.graph.deterministic
    expected = direct.run(typed, {"input": items})["output"]
    assert [row["value"] for row in compiled.run({"input": items})["output"].to_pylist()] == expected


@pytest.mark.slow
@settings(max_examples=10)
@given(programs(depth=1), st.lists(words, max_size=3))
def test_programs_have_one_outcome(text: str, items: list[int]) -> None:
    typed = FRONTEND.check(FRONTEND.parse(Source("p.str", text)))
    graph = river.compile(text, lang="streamit").graph
    found = outcomes(erase(graph), inputs(graph, {"input": items}), limit=20_000)
    assert found.complete
    (outcome,) = found.outcomes
    assert isinstance(outcome, Finished)
    seen = observe(graph, outcome)
    assert isinstance(seen, Observation)
    assert dict(seen.outputs)["output"] == tuple(direct.run(typed, {"input": items})["output"])


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("RIVER_CASES", "6")))
@given(programs(depth=1), st.integers(0, 6))
def test_sources_fire_so_often_at_each_tick(text: str, ticks: int) -> None:
    source = "void->int filter Source { int x; work push 2 { push(x++); push(x * 3); } }"
    show = 'int->void filter Show { work pop 1 { int v = pop(); print("<"); println(v); } }'
    trace = (
        'int->int filter Trace { work pop 1 push 1 { if (peek(0) % 3 != 1) println("t" + peek(0)); '
        'if (peek(0) > 5) print("b" + iter()); push(pop()); } }'
    )
    whole = text.replace("pipeline Main", "pipeline Inner")
    whole += f"\n{source} {show} {trace} void->void pipeline Main {{ add Source; add Trace; add Inner; add Show; }}"
    typed = FRONTEND.check(FRONTEND.parse(Source("p.str", whole)))
    compiled = river.compile(whole, lang="streamit")
    expected = direct.run(typed, {}, ticks)["stdout"]
    for backend in ("multicore", "reference"):
        results = compiled.run({}, iterations=ticks, backend=backend)
        assert "".join(row["value"] for row in results["stdout"].to_pylist()) == expected


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("RIVER_CASES", "2")))
@given(st.composite(lambda draw: Graphs(draw).messages())(), st.lists(words, min_size=10, max_size=60))
def test_messages_are_handled_where_the_wavefront_is(text: str, items: list[int]) -> None:
    typed = FRONTEND.check(FRONTEND.parse(Source("p.str", text)))
    expected = direct.run(typed, {"input": items})["output"]
    compiled = river.compile(text, lang="streamit")
    assert compiled.graph.deterministic
    for backend in ("multicore", "reference"):
        found = compiled.run({"input": items}, backend=backend)["output"]
        assert [row["value"] for row in found.to_pylist()] == expected


ASKER = """
int->int filter Ask(int most) {
  int total; int[2] seen;
  int some(int n) { int s = 0; for (int i = 0; i < n; i++) s += pop(); return s; }
  work pop * peek * push * {
    int n = pop() & most;
    total += some(n);
    if (n == 2 && peek(1) > peek(0)) { push(pop()); return; }
    for (int i = 0; i < n; i++) { seen[i & 1] = total - i; push(seen[0] ^ seen[1]); }
    push(iter());
  }
}
"""


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("RIVER_CASES", "2")))
@given(
    st.composite(lambda draw: Graphs(draw).messages())(),
    st.lists(words, min_size=20, max_size=60),
    st.sampled_from((0, 1, 3)),
)
def test_messages_beside_firings_that_ask(text: str, items: list[int], most: int) -> None:
    """Filters whose rates differ change nothing between sender and receiver: the three parts one after the other say the same."""
    before = ASKER + f"int->int pipeline Main {{ add Ask({most}); }}"
    behind = ASKER + f"int->int pipeline Main {{ add Ask({most // 2}); }}"
    expected = items
    for part in (before, text, behind):
        typed = FRONTEND.check(FRONTEND.parse(Source("p.str", part)))
        expected = direct.run(typed, {"input": expected})["output"]
    whole = text.replace("pipeline Main", "pipeline Inner")
    whole += f"{ASKER} int->int pipeline Main {{ add Ask({most}); add Inner; add Ask({most // 2}); }}"
    compiled = river.compile(whole, lang="streamit")
    for backend in ("multicore", "reference"):
        found = compiled.run({"input": items}, backend=backend)["output"]
        assert [row["value"] for row in found.to_pylist()] == expected


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("RIVER_CASES", "5")))
@given(programs(depth=1), st.lists(words, max_size=20), st.sampled_from((0, 1, 3, 7)))
def test_firings_ask_for_what_they_need(text: str, items: list[int], most: int) -> None:
    whole = text.replace("pipeline Main", "pipeline Inner")
    whole += f"{ASKER} int->int pipeline Main {{ add Ask({most}); add Inner; add Ask({most // 2}); }}"
    typed = FRONTEND.check(FRONTEND.parse(Source("p.str", whole)))
    expected = direct.run(typed, {"input": items})["output"]
    compiled = river.compile(whole, lang="streamit")
    for backend in ("multicore", "reference"):
        found = compiled.run({"input": items}, backend=backend)["output"]
        assert [row["value"] for row in found.to_pylist()] == expected
