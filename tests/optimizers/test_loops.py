"""Operators that feed one another in a circle become one, and compute what they did; where not, it is said why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import river
from optimizers import Fusion, circles
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import Library
from river.passes import Verified, apply, improved
from river.platform import Platform
from river.source import Source

if TYPE_CHECKING:
    from river.driver import Compiled

SUM = "body int->int filter { int n; work pop 2 push 1 { push(pop() + 3 * pop() + n++); } };"
WAIT = (
    "int->int filter Wait(int n) { prework push n { for (int i = 0; i < n; i++) push(i + 1); } "
    "work pop 1 push 1 { push(pop()); } }"
)

LOOPS = {
    "a delay": f"int->int feedbackloop L {{ join roundrobin(1, 1); {SUM} loop Identity<int>; split duplicate; "
    "enqueue 5; enqueue 0; enqueue -1; }",
    "weights": """int->int feedbackloop L { join roundrobin(3, 2); body int->int filter {
      work pop 5 push 7 { int s = 0; for (int i = 0; i < 5; i++) { s += peek(i); push(s); } push(9); push(peek(1)); } }
      loop int->int filter { work pop 3 push 2 { push(pop()); push(pop() - pop()); } };
      split roundrobin(4, 3); for (int i = 0; i < 4; i++) enqueue i; }""",
    "several rounds": """int->int feedbackloop L { join roundrobin(1, 3); body int->int filter {
      int n; work pop 1 push 1 { push(pop() * 3 + n++); } } loop Identity<int>; split roundrobin(1, 3); enqueue 2; }""",
    "windows": """int->int feedbackloop L { join roundrobin(1, 1); body int->int filter {
      work peek 4 pop 2 push 1 { int s = 0; for (int i = 0; i < 4; i++) s = 2 * s + peek(i); pop(); pop(); push(s); } }
      loop int->int filter { work peek 3 pop 1 push 1 { push(peek(2) - peek(0)); pop(); } }; split duplicate;
      for (int i = 0; i < 7; i++) enqueue 2 * i; }""",
    "a loop in a loop": f"""int->int feedbackloop L {{ join roundrobin(1, 1); body pipeline {{
      add int->int filter {{ work pop 2 push 1 {{ push(pop() - pop()); }} }};
      add feedbackloop {{ join roundrobin(1, 1); {SUM} loop Identity<int>; split duplicate; enqueue 4; }} }}
      loop Identity<int>; split duplicate; enqueue 1; enqueue 2; }}""",
    "branches": """int->int feedbackloop L { join roundrobin(2, 2); body splitjoin { split roundrobin(1, 3);
      add Identity<int>; add int->int filter { int s; work pop 3 push 3 {
        for (int i = 0; i < 3; i++) { s += peek(i); push(s); } } }; join roundrobin(1, 3); }
      loop Identity<int>; split roundrobin(2, 2); enqueue 1; enqueue 3; }""",
    "functions that send": """int->int feedbackloop L { join roundrobin(1, 1); body int->int filter {
      int n; void one(int x) { push(x + n++); } void both(int x, int y) { one(x); one(y - x); }
      work pop 2 push 3 { int a = pop(); both(a, pop()); one(a); } }
      loop int->int filter { void out() { push(pop() - 1); } work pop 1 push 1 { out(); } }; split roundrobin(2, 1);
      enqueue 1; enqueue 2; enqueue 3; }""",
    "a wide window": """int->int feedbackloop L { join roundrobin(1, 1); body int->int filter {
      work peek 300 pop 2 push 1 { int s = 0; for (int i = 0; i < 300; i++) s = 3 * s + peek(i); pop(); pop(); push(s); } }
      loop Identity<int>; split duplicate; for (int i = 0; i < 151; i++) enqueue i * i; }""",
    "prework": f"""{WAIT} int->int feedbackloop L {{ join roundrobin(1, 1); {SUM}
      loop pipeline {{ add Wait(2); add Wait(1); }} split duplicate; }}""",
    "structs": """struct P { int a; float[2] b; } int->int pipeline L {
      add int->P filter { work pop 1 push 1 { P p; p.a = pop(); p.b[1] = 0.5; push(p); } };
      add P->P feedbackloop { join roundrobin(1, 1); body P->P filter { work pop 2 push 1 {
        P p = pop(); P q = pop(); p.a += q.a; p.b[0] = q.b[1] + p.b[0]; p.b[1] += q.b[0]; push(p); } };
        loop Wait; split duplicate; }
      add P->int filter { work pop 1 push 1 { P p = pop(); push(p.a + (int) (100 * p.b[0])); } }; }
      P->P filter Wait { prework push 1 { P p; p.b[0] = 0.25; push(p); } work pop 1 push 1 { push(pop()); } }""",
}

SOURCES = {
    "takes nothing": """void->int feedbackloop L { join roundrobin(0, 1);
      body int->int filter { work pop 1 peek 2 push 1 { push(peek(0) + peek(1)); pop(); } }
      loop Identity<int>; split duplicate; enqueue 0; enqueue 1; }""",
    "takes nothing, prework": f"""{WAIT} void->int feedbackloop L {{ join roundrobin(0, 1);
      body int->int filter {{ work pop 1 push 1 {{ push(pop() + 5); }} }} loop Wait(2); split duplicate; }}""",
    "prints inside": f"""void->int pipeline L {{ add void->int filter {{ int x; work push 1 {{ push(x++); }} }};
      add feedbackloop {{ join roundrobin(1, 1); {SUM}
        loop int->int filter {{ work pop 1 push 1 {{ println("back " + peek(0)); push(pop()); }} }}
        split duplicate; enqueue 3; }} }}""",
}
LOOPS[
    "loops that count, or are left"
] = """int->int feedbackloop L { join roundrobin(1, 1); body int->int filter {
      work pop 2 push 2 { int i = 0; while (i < 2) { push(pop() + i); i++; } } };
      loop int->int filter { work pop 1 push 1 { int q = pop(), k = 0; while (q > 0) { q /= 2; if (q == 5) break; }
        do { push(q - k); k++; } while (k < 1); } }; split roundrobin(1, 1); enqueue 23; enqueue 7; }"""
MAIN = "void->void pipeline Main { add L; add int->void filter { work pop 1 { println(pop()); } }; }"


def rolled(text: str) -> tuple[Compiled, Compiled]:
    """A program, and what it is without its loops."""
    before = river.compile(text, lang="streamit")
    assert before.graph.looping
    after, remarks = improved(
        Verified(before.program, before.graph, before.templates), (Fusion(loops=True),), Platform(1)
    )
    assert not after.graph.looping, remarks
    assert after.graph.deterministic
    text = pretty(after.program)
    assert parse(Source("p.river", text)) == after.program
    return before, river.compile(text, lang="river")


def reference(compiled: Compiled, inputs: Any, **more: Any) -> Any:
    """What the reference shows of a program as it is."""
    results = compiled.run(inputs, backend="reference", optimize=False, **more)
    own = {
        name: value
        for name, value in results.variables.items()
        if "_ring_" not in name and not name.endswith("_at")
    }
    return {name: table.to_pylist() for name, table in results.tables.items()}, own


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_became_one_operator_computes_the_same(name: str) -> None:
    before, after = rolled(LOOPS[name])
    for count in (0, 1, 2, 5, 12):
        inputs = {"input": list(range(3, 3 + count))}
        assert reference(after, inputs) == reference(before, inputs)


@pytest.mark.parametrize("name", SOURCES)
def test_a_loop_behind_a_clock(name: str) -> None:
    before, after = rolled(SOURCES[name] + MAIN)
    for count in (0, 1, 5):
        assert reference(after, {"clock": [()] * count}) == reference(before, {"clock": [()] * count})


@pytest.mark.parametrize("name", ["weights", "structs", "functions that send", "a wide window"])
def test_machine_code_of_a_loop(name: str) -> None:
    compiled = river.compile(LOOPS[name], lang="streamit")
    inputs = {"input": list(range(200))}
    found = compiled.run(inputs, batch=7)
    assert found["output"].to_pylist() == reference(compiled, inputs)[0]["output"]
    assert any("_ring_" in name for name in found.variables)


def test_a_trap_in_a_loop_is_told_where_it_stands() -> None:
    text = """int->int feedbackloop L { join roundrobin(1, 1);
      body int->int filter { work pop 2 push 1 { push(100 / (pop() - 3) + pop()); } }
      loop Identity<int>; split duplicate; enqueue 0; }"""
    told: list[str] = []
    for backend in ("reference", "multicore"):
        with pytest.raises(river.Rejected) as caught:
            river.compile(text, lang="streamit").run({"input": [1, 2, 3, 4]}, backend=backend)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.span is not None
        told.append(f"{diagnostic.code} {diagnostic.span.start} {diagnostic.message}")
    assert told[0] == told[1]
    assert told[0].startswith(f"trap-division-by-zero {text.index('100')} ")


def test_a_loop_is_explained_as_one_region() -> None:
    from river.explain.explain import explain

    _, after = rolled(LOOPS["a delay"])
    reasons = {serial.reason: serial.operators for serial in explain(after.graph, "p", several=True).serial}
    assert "is a loop, which runs as one region: loop_join, filter_1, duplicate, pass" in reasons


HEAD = """river 1;
type E = {tau: i64, n: i64};
operator join(a: i64, b: i64 = [0]) -> (y: i64) { phase 1 on a(x) { emit y x; } phase 1 on b(x) { emit y x; } }
operator add(x: i64) -> (y: i64) { on x[pop 2](w) { emit y w[0] +% w[1]; } }
operator two(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }
input i: i64;
output o: i64;
"""
LOOP = "(q) <- join(i, s); (r) <- add(q); (o, s) <- two(r);"
REFUSED = {
    "two entries": (
        (
            "operator both(x: i64, z: i64) -> (y: i64) { on x[pop 2](w), z[pop 1](v) { emit y w[0] +% v[0]; } } input p: i64;"
            "(q) <- join(i, s); (r) <- both(q, p); (o, s) <- two(r);"
        ),
        "items enter it at several places",
    ),
    "no entry": (
        (
            "operator again(x: i64 = [1]) -> (a: i64, b: i64) { on x[pop 1](w) { emit a w[0]; emit b w[0]; } }"
            "(o, s) <- again(s); operator sink(x: i64; $v: i64) -> () { on x(v) { $v = v; } } var $v: i64 = 0;"
            "($v) <- sink(i, $v);"
        ),
        "nothing enters it",
    ),
    "first come": (
        (
            "operator any(a: i64, b: i64) -> (y: i64) { on a(x) { emit y x; } on b(x) { if x < 3 { emit y x; } } }"
            "(q) <- any(i, s); (o, s) <- two(q);"
        ),
        "`any` takes what comes first",
    ),
    "as many as it likes": (
        (
            "operator some(x: i64) -> (y: i64) { on x[pop 2](w) { if w[0] > 2 { emit y w[1]; } } }"
            "(q) <- join(i, s); (r) <- some(q); (o, s) <- two(r);"
        ),
        "`some` does not send the same number of items each time",
    ),
    "a turn without end": (
        (
            "operator far(a: i64, b: i64) -> (y: i64) { phase 1 on a(v) { emit y v; } phase 99999999999 on b(v) { emit y v; } }"
            "(q) <- far(i, s); (o, s) <- two(q);"
        ),
        "`far` fires 100000000000 times in a turn, more than 500",
    ),
    "more and more": (
        (
            "operator more(x: i64) -> (y: i64) { on x[pop 2](w) { emit y w[0]; emit y w[1]; } }"
            "(q) <- join(i, s); (r) <- more(q); (o, s) <- two(r);"
        ),
        "it does not come to a state in which it was before, in 500 firings",
    ),
    "groups": (
        "@Group(one) (q) <- join(i, s); @Group(two) (r) <- add(q); (o, s) <- two(r);",
        "its operators are placed in different groups",
    ),
    "regions": (
        "(q) <- join(i, s); @Region(r, replica) (r) <- add(q); (o, s) <- two(r);",
        "a border of a parallel region goes through it",
    ),
    "asked": (
        "(q) <- join(i, s); @Fuse(one) (r) <- add(q); (o, s) <- two(r);",
        "`@Fuse` says what becomes one",
    ),
    "a variable": (
        (
            "var $v: i64 = 0; operator count(x: i64; $v: i64) -> (y: i64) { on x(v) { $v = $v +% 1; emit y v; } }"
            "(q) <- join(i, s); (r) <- add(q); (t, $v) <- count(r, $v); (o, u) <- two(t); (s, $v) <- count(u, $v);"
        ),
        "two of its operators use one variable",
    ),
    "order": (
        (
            "operator stamp(x: i64) -> (y: E by tau) { on x(v) { emit y {tau: 0, n: v}; } }"
            "operator plain(x: E by tau) -> (y: i64) { on x(v) { emit y v.n; } }"
            "(q) <- join(i, s); (r) <- add(q); (o, t) <- two(r); (u) <- stamp(t); (s) <- plain(u);"
        ),
        "`stamp` acts on order",
    ),
    "waits from the beginning": (
        (
            "operator late(x: i64 = [7]) -> (y: i64) { on x[pop 1](w) { emit y w[0]; } }"
            "(q) <- join(i, s); (r) <- add(q); (o, t) <- two(r); (s) <- late(t);"
        ),
        "`late` waits for an item without using it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_a_loop_stays_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circles, "LONGEST", 500)
    text, reason = REFUSED[name]
    program = parse(Source("p.river", HEAD + text))
    (remark, *_) = apply(program, (Fusion(loops=True),), Platform(1), Library.of({})).remarks
    assert remark.message.startswith("no fusion: the loop of `")
    assert remark.message.endswith(f"` stays as it is: {reason}")


def test_a_plain_loop_becomes_one_unasked() -> None:
    plain = apply(parse(Source("p.river", HEAD + LOOP)), (Fusion(loops=True),), Platform(1), Library.of({}))
    assert not plain.remarks
    assert "@Loop(join, add, two)" in pretty(plain.program)


def test_who_waits_for_nothing_but_the_loop_may_never_tell_of_an_end() -> None:
    enters = (
        circles.Stage(((0, 1),), ((0, 1),), ((1, 2),), 1),
        circles.Stage(((0, 1),), ((0, 1),), ((2, 1),), 0),
    )
    waits = (circles.Stage(((1, 2), (2, 1)), ((1, 2), (2, 1)), (), 0),)
    for closing, ends in ((2, False), (1, True)):
        play = circles.Play(("i", "a", "b"), 0, (), (0, 0, 0), frozenset({closing}), (enters, waits))
        assert play.settle()
        assert play.most == [1, 2, 1]
        assert play.ends is ends
