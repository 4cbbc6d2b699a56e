from __future__ import annotations

import pytest

from frontends.streamit import FRONTEND
from frontends.streamit import typed as ty
from frontends.streamit.parse import NO_ARRAYS
from river.diagnostics import Diagnostic, Rejected, Severity, render
from river.lang import types as t
from river.source import Source


def check(text: str) -> ty.Program:
    return FRONTEND.check(FRONTEND.parse(Source("t.str", text)))


def refused(text: str) -> list[Diagnostic]:
    with pytest.raises(Rejected) as error:
        check(text)
    return list(error.value.diagnostics)


def a_filter(members: str, types: str = "int->int") -> str:
    return f"{types} filter F {{ {members} }}"


def work(body: str, types: str = "int->int") -> str:
    return a_filter(f"work push 1 pop 1 {{ {body} push(pop()); }}", types)


ONE = "int->int filter One { work push 1 pop 1 { push(pop()); } }"
TWO = "int->int filter Two { work push 2 pop 1 { push(peek(0)); push(pop()); } }"
SOURCE = "void->int filter Source { work push 1 { push(1); } }"
SINK = "int->void filter Sink { work pop 1 { println(pop()); } }"

WRONG = [
    # names
    ("streamit-unknown-name", "peak", work("int peek0 = peak;")),
    ("streamit-unknown-name", "y", work("{ int y = 1; } y = 2;")),
    ("streamit-unknown-function", "sine(1.0)", work("float x = sine(1.0);")),
    ("streamit-unknown-function", "f(1)", work("y <- f(1);")),
    ("streamit-native", "A.f(1)", "native A { int f(int x); int g(); }" + work("int y = A.f(1);")),
    ("streamit-type", "1.0 - v", work("float3 v; v = 1.0 - v;")),
    ("streamit-type", "v * w", work("float3 v; float2 w; v = v * w;")),
    ("streamit-arguments", "float3(1, 2)", work("float3 v = float3(1, 2);")),
    (
        "streamit-unknown-function",
        "random()",
        "int->int pipeline P { float x = random(); add Identity<int>; }",
    ),
    ("streamit-unknown-stream", "Won()", f"{ONE} int->int pipeline P {{ add Won(); }}"),
    ("streamit-duplicate-name", "x = 2", work("int x = 1, x = 2;")),
    ("streamit-duplicate-name", "One", f"{ONE} {ONE}"),
    (
        "streamit-duplicate-name",
        "int n",
        ("int->int filter F(int n, int n) { work pop 1 push 1 { push(pop()); } }"),
    ),
    ("streamit-duplicate-name", "x", a_filter("int x; int x; work pop 1 push 1 { push(pop()); }")),
    ("streamit-duplicate-name", "work { }", a_filter("work pop 1 push 1 { push(pop()); } work { }")),
    (
        "streamit-duplicate-name",
        None,
        a_filter("int f() { return 1; } int f() { return 1; } " + work("")[len("int->int filter F { ") : -1]),
    ),
    ("streamit-duplicate-name", None, "fn sin(x: f32) -> f32 = x; " + ONE),
    (
        "streamit-duplicate-name",
        "y",
        "fn f(x: i32) -> i32 = x; " + a_filter("work { y <- f(peek(1)); y <- f(peek(1)); push(y); pop(); }"),
    ),
    # types
    ("streamit-type", "1.5", work("int x = 1.5;")),
    ("streamit-type", "x", work("float x; if (x) x = 1;")),
    ("streamit-type", '"a"', work('int x; x = x % "a";')),
    ("streamit-type", "x << 1", work("float x; x = x << 1;")),
    ("streamit-type", "push(1)", "int->void filter F { work pop 1 { push(1); pop(); } }"),
    ("streamit-type", "pop()", "void->int filter F { work push 1 { push(pop()); } }"),
    ("streamit-type", "x", work("int x; x[0] = 1;")),
    ("streamit-type", "void", work("void x;")),
    ("streamit-type", "void[3]", work("void[3] x;")),
    ("streamit-type", "a", work("int[2] a; println(a);")),
    ("streamit-type", "{1, 2}", work("int x = {1, 2};")),
    ("streamit-type", "(bit) 1.5", work("int x = (bit) 1.5;")),
    (
        "streamit-type",
        None,
        a_filter("int f(int x) { if (x > 0) return 1; } work pop 1 push 1 { push(f(pop())); }"),
    ),
    ("streamit-type", "return;", a_filter("int f() { return; } work pop 1 push 1 { push(pop()); }")),
    ("streamit-type", "f()", a_filter("void f() { } work pop 1 push 1 { push(f()); pop(); }")),
    (
        "streamit-type",
        "f(peek(1))",
        "fn f(x: i32) -> i32 = x; " + a_filter("work { s, y <- f(peek(1)); push(1); pop(); }"),
    ),
    ("streamit-type", None, "fn f(ref x: i32) -> i32 { x = 1; return x; } " + ONE),
    (
        "streamit-type",
        "2.5",
        (
            f"{ONE} int->int feedbackloop L {{ join roundrobin(1, 1); body Half(); loop One; "
            f"split duplicate; enqueue 2.5; }}"
            " int->int filter Half { work pop 2 push 1 { push(pop() + pop()); } }"
        ),
    ),
    ("streamit-number", "4294967296", work("int x = 4294967296;")),
    ("streamit-number", "2147483648", work("push(2147483648); pop();")),
    ("streamit-number", "0x100000000", work("float x = 0x100000000;")),
    ("syntax-unexpected", "x[2][3]", work("int x[2][3];")),
    ("syntax-unexpected", "x", work("push(1) x++;")),
    ("streamit-arguments", "sin(1, 2)", work("float x = sin(1, 2);")),
    ("streamit-arguments", "One(3)", f"{ONE} int->int pipeline P {{ add One(3); }}"),
    ("streamit-arguments", "Identity", "int->int pipeline P { add Identity; }"),
    ("streamit-arguments", "float", f"{ONE} int->int pipeline P {{ add One<float>(); }}"),
    ("streamit-type-needed", "filter", "filter { work pop 1 push 1 { push(pop()); } }"),
    ("streamit-unknown-type", "Pint", f"struct Point {{ int x; }} {work('Pint p;')}"),
    ("streamit-unknown-type", "Pint", f"struct Point {{ Pint x; }} {ONE}"),
    ("streamit-unknown-name", "p.y", f"struct Point {{ int x; }} {work('Point p; int q = p.y;')}"),
    ("streamit-type", "x.y", work("int x; x.y = 1;")),
    ("streamit-type", "p", f"struct Point {{ int x; }} {work('Point p; println(p);')}"),
    ("streamit-type", None, f"struct Point {{ }} {ONE}"),
    ("streamit-type", "c % c", work("complex c; c = c % c;")),
    ("streamit-type", "c", work("complex c; int x = c;")),
    ("streamit-duplicate-name", None, f"struct P {{ int x; }} struct P {{ int x; }} {ONE}"),
    ("streamit-duplicate-name", "int x", f"struct P {{ float x; int x; }} {ONE}"),
    (
        "streamit-misplaced",
        "duplicate",
        "int->int splitjoin S { duplicate; add Identity<int>; join roundrobin; }",
    ),
    (
        "streamit-misplaced",
        "roundrobin(2)",
        "int->int splitjoin S { split duplicate; add Identity<int>; roundrobin(2); }",
    ),
    # places
    ("streamit-place", "1", work("1 = 2;")),
    (
        "streamit-place",
        "i",
        (
            "int->int pipeline P { for (int i = 0; i < 1; i++) add int->int filter { work "
            "pop 1 push 1 { i++; push(pop()); } } }"
        ),
    ),
    ("streamit-no-effect", "1 + 2;", work("1 + 2;")),
    ("streamit-case", "case x:", work("int x; switch (x) { case x: x = 1; }")),
    ("streamit-case", "case 0 + 1:", work("int x; switch (x) { case 1: break; case 0 + 1: x = 2; }")),
    ("streamit-case", "default: x = 2;", work("int x; switch (x) { default: x = 1; default: x = 2; }")),
    (
        "streamit-case",
        "case 1: if (x > 2) break; continue;",
        work("int x; while (x > 0) switch (x) { case 1: if (x > 2) break; continue; }"),
    ),
    (
        "streamit-alias",
        "f(a, a)",
        a_filter(
            "int[2] a; void f(int[2] b, int[2] c) { b[0] = c[1]; } work pop 1 push 1 { f(a, a); push(pop()); }"
        ),
    ),
    (
        "streamit-alias",
        "f(a)",
        a_filter("int[2] a; void f(int[2] b) { b[0] = a[1]; } work pop 1 push 1 { f(a); push(pop()); }"),
    ),
    (
        "streamit-place",
        "W",
        "static { int[2] W; } "
        + a_filter("void f(int[2] b) { b[0] = 1; } work pop 1 push 1 { f(W); push(pop()); }"),
    ),
    ("streamit-loop", "break;", work("break;")),
    ("streamit-type", "return 1;", a_filter("init { return 1; } work pop 1 push 1 { push(pop()); }")),
    ("streamit-misplaced", "push(1)", a_filter("init { push(1); } work pop 1 push 1 { push(pop()); }")),
    (
        "streamit-misplaced",
        "init { f(); }",
        a_filter("int f() { return pop(); } init { f(); } work pop 1 push 1 { push(f()); }"),
    ),
    ("streamit-misplaced", "iter()", a_filter("init { int x = iter(); } work pop 1 push 1 { push(pop()); }")),
    ("streamit-misplaced", "add One;", f"{ONE} " + work("add One;")),
    ("streamit-misplaced", "split duplicate;", work("split duplicate;")),
    ("streamit-misplaced", "body One;", f"{ONE} int->int pipeline P {{ body One; }}"),
    ("streamit-misplaced", "enqueue 1;", f"{ONE} int->int pipeline P {{ add One; enqueue 1; }}"),
    ("streamit-misplaced", "P", f"{ONE} int->int pipeline P {{ add One; join roundrobin; }}"),
    (
        "streamit-misplaced",
        "Inner",
        ("int->int pipeline P { add int->int filter Inner(int n) { work pop 1 push 1 { push(pop()); } } }"),
    ),
    (
        "streamit-misplaced",
        None,
        a_filter("void f() { push(1); } init { f(); } work pop 1 push 1 { push(pop()); }"),
    ),
    ("streamit-work-missing", "F", a_filter("int x;")),
    # what must be known when the graph is made
    ("streamit-constant", "x", work("int x = 2; x++; float[x] a;")),
    ("streamit-constant", "pop x", a_filter("int x; work push 1 pop x { push(pop()); }")),
    ("streamit-constant", "1 / N", f"{ONE} static {{ int N = 0; int M = 1 / N; }}"),
    ("streamit-constant", "w[N]", f"{ONE} static {{ int N = 2; int[2] w; int M = w[N]; }}"),
    ("streamit-constant", "w[2]", f"{ONE} static {{ int[2] w; w[2] = 1; }}"),
    ("streamit-constant", "N++", f"{ONE} static {{ int N = 2; int[N++] w; }}"),
    (
        "streamit-size",
        "a",
        (
            "int->int pipeline P { int[3] a; add F(a); } int->int filter F(int[2] a) { work "
            "pop 1 push 1 { push(pop()); } }"
        ),
    ),
    ("streamit-size", "1000000000", f"{ONE} static {{ int[1000000000] a; }}"),
    ("streamit-size", "2000", f"{ONE} static {{ int[2000][2000] a; }}"),
    ("streamit-size", "{1, 2, 3}", work("int[2] a = {1, 2, 3};")),
    ("streamit-size", "0 - 1", work("int[0 - 1] a;")),
    ("streamit-size", "a = b", work("int[2] a; int[3] b; a = b;")),
    # arrays whose sizes are not written
    ("streamit-size", "float[]", work("float[] a;")),
    ("streamit-size", "int[]", a_filter("int[] a; work pop 1 push 1 { push(pop()); }")),
    ("streamit-size", "int[]", a_filter("int[] f() { } work pop 1 push 1 { push(pop()); }")),
    ("streamit-size", "int[]", f"{ONE} struct P {{ int[] a; }}"),
    ("streamit-type", "x", work("int[] a = x;").replace("F {", "F(float[] x) {")),
    ("streamit-type", "1", work("int[] a = 1;")),
    ("streamit-type", "1.5", work("int[] a = {1.5};")),
    ("streamit-type", "a[]", work("int[2] a; a[] = 1;")),
    ("streamit-size", "{{1}, {2, 3}}", f"{ONE} static {{ int[][] a = {{{{1}}, {{2, 3}}}}; }}"),
    ("streamit-size", "{2, 3}", work("int[][] a = {{1}, {2, 3}};")),
    (
        "streamit-size",
        "{{1}, {2, 3}}",
        "int->int pipeline P { add F({{1}, {2, 3}}); } " + work("").replace("F {", "F(int[][] x) {"),
    ),
    (
        "streamit-size",
        "{1}",
        a_filter("int f(int[][3] a) { return 1; } work pop 1 push 1 { push(f({{1}}) + pop()); }"),
    ),
    (
        "streamit-unknown-type",
        "integer",
        a_filter("integer f(int[] a) { return a[0]; } work pop 1 push 1 { push(pop()); }"),
    ),
    (
        "streamit-unknown-name",
        "b",
        a_filter("int f(int[] a) { return b; } work pop 1 push 1 { push(pop()); }"),
    ),
    (
        "streamit-unknown-name",
        "b",
        a_filter("int f(int[] a) { return b; } work pop 1 push 1 { push(pop() + f({1}) + f({1, 2})); }"),
    ),
    # values in braces
    ("streamit-size", "{1, 2, 3}", work("int[2] a; a = {1, 2, 3};")),
    ("streamit-size", "{3}", work("int[2][2] a; a = {{1, 2}, {3}};")),
    ("streamit-size", "v", work("int[2] u; int[3] v; int[2][2] a; a = {u, v};")),
    ("streamit-size", "{1}", "struct P { float x; int y; }" + work("P p = {1};")),
    ("streamit-size", "{2, 3}", "struct P { float x; int[3] y; }" + work("P p; p = {1, {2, 3}};")),
    (
        "streamit-size",
        "{2, 3}",
        a_filter("int f(int[3] a) { return a[0]; } int x = f({2, 3}); work pop 1 {}"),
    ),
    ("streamit-size", "a = {1, 2}", f"{ONE} static {{ int[3] a; init {{ a = {{1, 2}}; }} }}"),
    ("streamit-type", "{1}", work("int x; x = {1};")),
    ("streamit-type", "1.5", work("int[2] a; a = {1.5, 2};")),
    ("streamit-type", "{1, 2}", work("int[2] a; a += {1, 2};")),
    ("streamit-type", "{1}", work("println({1});")),
    # rates
    ("streamit-rate", None, a_filter("work push 1 { push(pop()); if (peek(0) > 0) pop(); }")),
    (
        "streamit-rate",
        None,
        a_filter("work push [1, 2] { int n = pop(); if (n > 0) n += pop(); push(n); }"),
    ),
    ("streamit-rate", None, a_filter("work pop 2 peek * push 1 { push(peek(peek(0))); pop(); }")),
    ("streamit-peek-rate", "2", a_filter("work pop 1 peek [1, 2] push 1 { push(peek(2)); pop(); }")),
    ("streamit-rate", "pop 1", a_filter("work pop 1 pop 1 push 1 { push(pop()); }")),
    ("streamit-rate", "pop 1", "void->int filter F { work pop 1 push 1 { push(1); } }"),
    ("streamit-rate", "F", a_filter("work push 1 { push(1); }")),
    ("streamit-rate", "0 - 1", a_filter("work push 1 pop 1 peek 0 - 1 { push(pop()); }")),
    ("streamit-rate", None, a_filter("work push 1 { push(1); while (pop() > 0) { } }")),
    ("streamit-pop-rate", "1", a_filter("work push 1 pop 1 { push(pop() + pop()); }")),
    ("streamit-place", "N", f"static {{ int N = 2; }} {work('N = 3;')}"),
    (
        "streamit-push-rate",
        "1",
        a_filter("work push 1 pop 1 { for (int i = 0; i < 3; i++) push(i); pop(); }"),
    ),
    ("streamit-peek-rate", "3", a_filter("work push 1 peek 3 pop 1 { push(peek(3)); pop(); }")),
    (
        "streamit-peek-rate",
        "4",
        a_filter(
            "work push 1 peek 4 pop 1 { int s; for (int i = 4; i > 0; i--) s += peek(i); push(s); pop(); }"
        ),
    ),
    # graphs
    ("streamit-no-main", None, f"{ONE} {TWO}"),
    ("streamit-no-main", "F", "int->int filter F(int n) { work pop 1 push 1 { push(pop()); } }"),
    ("streamit-parts", "P", "int->int pipeline P { }"),
    ("streamit-parts", "P", f"{ONE} int->int splitjoin P {{ add One; }}"),
    (
        "streamit-parts",
        "split duplicate;",
        (f"{ONE} int->int splitjoin P {{ split roundrobin; split duplicate; add One; join roundrobin; }}"),
    ),
    (
        "streamit-parts",
        "P",
        (f"{ONE} int->int feedbackloop P {{ join roundrobin; body One; loop One; enqueue 1; }}"),
    ),
    ("streamit-parts", "P", "int->int feedbackloop P { join roundrobin; split roundrobin; enqueue 1; }"),
    (
        "streamit-parts",
        "body One;",
        (
            f"{ONE} int->int feedbackloop P {{ join roundrobin; body One; body One; split roundrobin; enqueue 1; }}"
        ),
    ),
    (
        "streamit-connection",
        "F",
        (
            f"{ONE} float->int filter F {{ work pop 1 push 1 {{ push((int) pop()); }} }} "
            f"int->int pipeline P {{ add One; add F; }}"
        ),
    ),
    ("streamit-connection", "P", f"{ONE} float->float pipeline P {{ add One; }}"),
    (
        "streamit-connection",
        "P",
        (f"{ONE} splitjoin P {{ split duplicate; add One; add Identity<float>; join roundrobin; }}"),
    ),
    (
        "streamit-connection",
        "P",
        (
            f"{ONE} int->int feedbackloop P {{ join roundrobin; body One; loop "
            f"Identity<float>; split roundrobin; }}"
        ),
    ),
    (
        "streamit-weights",
        "split roundrobin(1, 2, 3);",
        (f"{ONE} int->int splitjoin P {{ split roundrobin(1, 2, 3); add One; add One; join roundrobin; }}"),
    ),
    (
        "streamit-weights",
        "join roundrobin(0);",
        (f"{ONE} int->int splitjoin P {{ split duplicate; add One; join roundrobin(0); }}"),
    ),
    (
        "streamit-weights",
        "join roundrobin(1, 0);",
        (f"{ONE} int->int feedbackloop P {{ join roundrobin(1, 0); body One; loop One; split roundrobin; }}"),
    ),
    (
        "streamit-unbalanced",
        "P",
        (f"{ONE} {TWO} int->int splitjoin P {{ split duplicate; add One; add Two; join roundrobin; }}"),
    ),
    (
        "streamit-unbalanced",
        "P",
        (f"{ONE} int->int feedbackloop P {{ join roundrobin; body One; loop One; split roundrobin(1, 2); }}"),
    ),
    (
        "streamit-too-many",
        "P(n + 1)",
        ("int->int pipeline Main { add P(0); } int->int pipeline P(int n) { add P(n + 1); }"),
    ),
    ("streamit-too-many", None, f"{ONE} int->int pipeline P {{ for (int i = 0; i < 10001; i++) add One; }}"),
    (
        "streamit-too-many",
        "P",
        (
            f"{ONE} int->int splitjoin P {{ split duplicate; for (int i = 0; i < 1025; i++) "
            f"add One; join roundrobin(0{', 1' * 1024}); }}"
        ),
    ),
    ("streamit-endless", None, f"{ONE} int->int pipeline P {{ while (true) {{ }} add One; }}"),
    (
        "streamit-endless",
        "H.f(n)",
        f"{ONE} helper H {{ int f(int n) {{ return H.f(n); }} }} int->int pipeline P {{ int x = H.f(1); add One; }}",
    ),
    (
        "streamit-place",
        "N",
        f"{ONE} helper H {{ void f() {{ N = 3; }} }} static {{ int N = 2; init {{ H.f(); }} }}",
    ),
    (
        "streamit-constant",
        None,
        'static { int s = 1; } int->int filter F { int[2] a = init_array_1D_int(s + "", 2); work pop 1 push 1 { push(pop()); } }',
    ),
    (
        "streamit-misplaced",
        "f()",
        a_filter("int x = f(); int f() { return pop(); } work pop 1 push 1 { push(pop()); }"),
    ),
    (
        "streamit-file",
        None,
        ('void->void pipeline P { add FileReader<int>(""); add FileWriter<int>("c"); }'),
    ),
]


@pytest.mark.parametrize(("code", "place", "text"), WRONG)
def test_mistakes_are_told_at_their_place(
    code: str, place: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontends.streamit.elaborate.LONGEST", 100_000)
    found = refused(text)
    assert [d.code for d in found] == [code], [render(d) for d in found]
    assert found[0].span is not None
    if place is not None:
        assert found[0].span.text in (place, f"{place};"), render(found[0])


def test_all_errors_of_a_text_are_told_at_once() -> None:
    found = refused(work("int x = 1.5; y = 2; sine(3);") + " int->int pipeline P { add Q; add F; }")
    assert [d.code for d in found] == [
        "streamit-type",
        "streamit-unknown-name",
        "streamit-unknown-function",
        "streamit-unknown-stream",
    ]


def test_an_error_of_one_declaration_is_told_once() -> None:
    text = "int->int pipeline P { for (int i = 1; i < 4; i++) add F(i); }"
    assert len(refused(text + "int->int filter F(int n) { work push n pop n { push(pop()); } }")) == 1


def test_errors_of_functions_of_the_operator_language() -> None:
    assert [d.code for d in refused(f"fn f(x: i32) -> i32 = y; {ONE}")] == ["lang-unknown-name"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (a_filter("work pop 1 push 2 { push(pop()); }"), "write `push 1`, or change what it does"),
        (a_filter("work pop 1 push 1 { push(pop() + pop()); }"), "write `pop 2`, or change what it does"),
        (
            a_filter("work pop 1 peek 2 push 1 { push(peek(2)); pop(); }"),
            "write `peek 3`; `peek(0)` is the next item, `peek(2)` the last",
        ),
        (
            f"{ONE} {TWO} int->int splitjoin P {{ split duplicate; add One; add Two; join roundrobin; }}",
            "as many: `join roundrobin(1, 2);`",
        ),
        (
            f"{ONE} {TWO} int->int splitjoin P {{ split roundrobin(3, 2, 4); add Two; add One; add Two; join roundrobin; }}",
            "as many: `join roundrobin(3, 1, 4);`",
        ),
        (work("int x[2][3];"), "for instance `int[2][3] x`"),
        (work("push(2147483648); pop();"), "as bits of an int: `0x80000000`"),
        (work("float x = Math.sin(1);"), "write `sin(...)`"),
        (work("int x = input.pop();"), "write `pop(...)`"),
        (work("float x = Math.PI;"), "leave `Math.` out: `pi`, `sin(x)`"),
        (work("for (k = 0; k < 3; k++) { }"), "declare it: `int k;`"),
        (work("complex c = 1 + i;"), "declare it: `int i;`; a number with an imaginary part is `1 + 2i`"),
        (work("Wave w;"), "declare it: `struct Wave { ... }`"),
        (work("int[4] a; int n = a.length;"), "name what its declaration names: `int[N] a` has `N` items"),
        ("int->int pipeline P { Split duplicate; }", "write `split`, with a small letter"),
        (a_filter("work { push(peek(0)); }"), "take what it has looked at: `pop();`"),
        (
            a_filter("void work() { push(pop()); }"),
            "leave type and parentheses out: `work pop 1 push 1 { ... }`",
        ),
        (
            "int->int filter F(int n) { work pop 1 push 1 { push(pop()); } }",
            "add it in one that has none: `pipeline Program { add F(1); }`",
        ),
        (
            f"{ONE} int->int splitjoin P {{ split roundrobin(1, 2, 3); add One; add One; join roundrobin; }}",
            "one weight for each, in their order, or one for all: `roundrobin(1)`",
        ),
        ("int->int filter F { }", "`work pop 1 push 1 { push(pop()); }`, for instance"),
        ("int->int pipeline P { }", "`add` what it is made of"),
        (f"{ONE} void->int pipeline P {{ add One; }}", "`int->int` is what its parts make"),
        (
            f"{ONE} int->int pipeline P {{ add Two; }}",
            "if it stands in another file, give both: `river run a.str b.str`",
        ),
        (
            f"{ONE} int->int pipeline P {{ add One; add Identity<float>; }}",
            "a filter between them converts: `add int->float filter { work pop 1 push 1 { ... } }`",
        ),
        (
            f"{ONE} {SOURCE} pipeline P {{ add One; add Source; }}",
            "what takes nothing stands first in a pipeline, what gives nothing last",
        ),
        (
            f"{ONE} int->int splitjoin P {{ add One; join roundrobin; }}",
            "`split duplicate;` or `split roundrobin;` before its branches, `join roundrobin;` behind them",
        ),
        (
            "int->int pipeline P { add F(1); } " + work("").replace("F {", "F(int n, float[n] w) {"),
            "it is declared as `F(int n, float[n] w)`",
        ),
        (work("long x;"), "`int` is the type of whole numbers: 32 bits, which wrap"),
        (work("printf(1);"), "print with `println(x)`"),
        (work("assert(true);"), "there is none: print what is wrong, `if (x < 0) println(x);`"),
        (work("if (pop() = 3) ;"), "if they are compared, write `==`"),
        (
            work("p.f(1);"),
            "`p` is neither a `helper` block nor a portal, which is a parameter: `portal<F> p`",
        ),
        (
            a_filter("add One; work pop 1 push 1 { push(pop()); }"),
            "streams are put together in a `pipeline`, `splitjoin` or `feedbackloop`; a filter has `work`",
        ),
        (f"{ONE} int->int pipeline P {{ One; }}", "write `add One;`"),
        (f"{ONE} int->int pipeline P {{ add One; One(); }}", "write `add One();`"),
        (f"{ONE} int->int pipeline P {{ body One; }}", "write `add`"),
        (
            f"{ONE} int->int feedbackloop P {{ join roundrobin; add One; split roundrobin; enqueue 1; }}",
            "write `body` or `loop`: what goes on, or back",
        ),
        (f"{ONE} int->int pipeline P {{ portal<One>[2] p; add One; }}", NO_ARRAYS),
        (f"{ONE} int->int pipeline P {{ portal<One> p; add One to p[0]; }}", NO_ARRAYS),
        (f"{ONE} int->int filter F(portal<One>[2] p) {{ work pop 1 push 1 {{ push(pop()); }} }}", NO_ARRAYS),
    ],
)
def test_what_would_be_right_is_said(text: str, line: str) -> None:
    assert [d.help for d in refused(text)] == [line]


EQUALIZER = f"""
void->void pipeline Main {{ add Source; add Equalizer(3); add Sink; }}
int->int splitjoin Equalizer(int n) {{ split duplicate; for (int i = 0; i < n; i++) add Band(i); join roundrobin; }}
int->int filter Times(int k) {{ work pop 1 push k {{ for (int i = 0; i < k; i++) push(1); pop(); }} }}
{SOURCE} {SINK}"""


@pytest.mark.parametrize(
    ("code", "note", "band"),
    [
        (
            "streamit-unbalanced",
            "`Main/Equalizer/Band[0]` and `Main/Equalizer/Band[2]`",
            "add Times(1); add Times(i / 2 + 1);",
        ),
        (
            "streamit-unbalanced",
            "`Main/Equalizer/Band[0]/Times[0]` and `Main/Equalizer/Band[0]/Times[1]`",
            "add Times(0); add Times(1);",
        ),
        ("streamit-unbalanced", "`Main/Equalizer/Band[0]`", "add Times(0);"),
        ("streamit-size", "in `Main/Equalizer/Band[1]/Sized`", "add Sized(1 - i);"),
        ("streamit-parts", "in `Main/Equalizer/Band[2]`", "if (i < 2) add Times(1);"),
    ],
)
def test_errors_say_in_which_stream_they_are(code: str, note: str, band: str) -> None:
    sized = "int->int filter Sized(int n) { work pop 1 push 1 { int[n - 1] a; push(pop()); } }"
    (found,) = refused(
        f"{EQUALIZER} int->int pipeline Band(int i) {{ {band} }} {sized if 'Sized' in band else ''}"
    )
    assert (found.code, [each.message for each in found.notes]) == (code, [note])


TOLD = """
void->int filter In { work push 1 { push(1); } }
int->void filter Out { work pop 1 { println(pop()); } }
int->int filter F {
  int g;
  work pop 1 push 1 { push(pop() + g); }
  handler set(int x) { g = x; }
  handler all(float[2] x) { g = (int) x[0]; }
  handler bad() { push(1); }
  int val() { return 1; }
}
int->int filter S(portal<F> p) { MEMBER work pop 1 push 1 { WORK; push(pop()); } }
void->void pipeline Main { portal<F> p; add In; PARTS add Out; BUILD }
"""


@pytest.mark.parametrize(
    ("code", "at", "given"),
    [
        ("streamit-handler", "p.sit(3)", {"WORK": "p.sit(3)"}),
        ("streamit-handler", "handler bad() { push(1); }", {"WORK": "p.bad()"}),
        ("streamit-handler", "p.val()", {"WORK": "p.val()"}),
        ("streamit-arguments", "p.set()", {"WORK": "p.set()"}),
        ("streamit-type", '"a"', {"WORK": 'p.set("a")'}),
        ("streamit-size", "a", {"WORK": "float[3] a; p.all(a)"}),
        ("streamit-unknown-function", "q.set(3)", {"WORK": "q.set(3)"}),
        ("streamit-portal", "q.set(3) [1:2];", {"WORK": "q.set(3) [1:2]"}),
        ("streamit-portal", "portal<F>", {"MEMBER": "portal<F> q;"}),
        ("streamit-portal", "F", {"WORK": "portal<F> q"}),
        ("streamit-portal", "p", {"PARTS": "add S(p) to p;"}),
        ("streamit-portal", "p", {"PARTS": "add int->int filter { work { push(pop()); } } to p;"}),
        ("streamit-misplaced", None, {"MEMBER": "init { p.set(1); }"}),
        ("streamit-misplaced", None, {"MEMBER": "void f() { p.set(1); } init { f(); }"}),
        ("streamit-misplaced", None, {"BUILD": "p.set(1) [1:2];"}),
        ("streamit-constant", "pop()", {"WORK": "p.set(3) [pop():2]"}),
        ("streamit-latency", "p.set(3) [2:1];", {"WORK": "p.set(3) [2:1]"}),
        ("streamit-latency", "p.set(3) [1 / 0:];", {"WORK": "p.set(3) [1 / 0:]"}),
        ("streamit-latency", "p.set(3) [-2:-1];", {"WORK": "p.set(3) [-2:-1]"}),
        ("streamit-latency", "p.set(3) @ 100000000;", {"WORK": "p.set(3) @ 100000000"}),
        (
            "streamit-latency",
            "p.set(3);",
            {"PARTS": "add splitjoin { split duplicate; add F to p; add S(p); join roundrobin; }"},
        ),
        (
            "streamit-latency",
            "p.set(3);",
            {
                "PARTS": "add feedbackloop { join roundrobin; body pipeline { add F to p; add int->int filter { work { "
                "push(pop() + pop()); } }; } loop S(p); split duplicate; enqueue 0; }"
            },
        ),
        (
            "streamit-latency",
            "p.set(3);",
            {"PARTS": "add F to p; add int->int filter { work pop 1 push * { push(pop()); } }; add S(p);"},
        ),
        (
            "streamit-latency",
            "p.set(3);",
            {
                "PARTS": "add S(p); add int->int filter { work pop * push 1 { if (pop() > 0) pop(); push(pop()); } }; add F to p;"
            },
        ),
    ],
)
def test_messages_that_cannot_be(code: str, at: str | None, given: dict[str, str]) -> None:
    usual = {"MEMBER": "", "WORK": "p.set(3)", "PARTS": "add F to p; add S(p);", "BUILD": ""}
    text = TOLD
    for word, value in (usual | given).items():
        text = text.replace(word, value)
    found = refused(text)
    assert [d.code for d in found] == [code]
    assert at is None or (found[0].span is not None and found[0].span.text == at)


def test_rates_that_differ_between_sender_and_receiver_are_told() -> None:
    text = """
    int->int filter F { int x; work pop * push 1 { if (pop() > x) pop(); push(pop()); } handler set(int y) { x = y; } }
    int->int filter S(portal<F> p) { work pop 1 push * { p.set(1); for (int i = pop(); i > 0; i--) push(i); } }
    int->int pipeline Main { portal<F> p; PARTS }
    """
    (found,) = refused(text.replace("PARTS", "add S(p); add F to p;"))
    assert found.help == "`Main/S` gives another number at each firing, or does not say how many"
    (found,) = refused(text.replace("PARTS", "add F to p; add S(p);"))
    assert found.message == "`Main/F` takes as many items as it asks for: such a filter is told nothing"


def test_filters_that_wait_for_each_other_to_speak_are_told() -> None:
    text = """
    void->void pipeline Main { portal<F> p; portal<H> q; add In; add F(q) to p; add H(p) to q; add Out; }
    int->int filter F(portal<H> q) { work { q.set(1) [-3:-3]; push(pop()); } handler set(int x) { } }
    int->int filter H(portal<F> p) { work { p.set(1) @ LATENCY; push(pop()); } handler set(int x) { } }
    void->int filter In { work { push(1); } } int->void filter Out { work { println(pop()); } }
    """
    codes = [d.code for d in refused(text.replace("LATENCY", "2"))]
    assert set(codes) == {"streamit-latency"}
    check(text.replace("LATENCY", "3"))
    alone = "int->int filter G(portal<G> p) { work { p.set(1); push(pop()); } handler set(int x) { } }"
    (found,) = refused(f"{alone} int->int pipeline Main {{ portal<G> p; add G(p) to p; }}")
    assert (found.code, "to itself" in found.message) == ("streamit-latency", True)


def test_a_message_to_nobody_is_warned_of() -> None:
    text = TOLD.replace("MEMBER", "").replace("WORK", "p.set(3)").replace("BUILD", "")
    assert warnings(text.replace("PARTS", "add F; add S(p);")) == [("streamit-portal", Severity.WARNING)]
    assert warnings(text.replace("PARTS", "add F to p; add S(p);")) == []


def warnings(text: str) -> list[tuple[str, Severity]]:
    return [(d.code, d.severity) for d in FRONTEND.warnings(check(text))]


def test_a_wrong_rate_says_what_the_code_does() -> None:
    found = refused(
        f"{SINK} void->int filter S {{ work push 2 {{ push(1); }} }} void->void pipeline P {{ add S; add Sink; }}"
    )
    assert [d.message for d in found] == ["`push` is 2, but a firing pushes 1"]


def test_what_is_around_a_stream_is_constant_in_it() -> None:
    found = refused(f"{ONE} int->int pipeline P {{ int k; add pipeline {{ k++; add One; }} }}")
    assert [d.message for d in found] == ["`k`, declared around this stream, cannot be changed"]


def test_warnings() -> None:
    silent = "int->void filter Silent { int x; work pop 1 { x = pop(); } }"
    pipeline = "void->void pipeline P { add Source; add %s; }"
    assert warnings(f"{SOURCE} {silent} {pipeline % 'Silent'}") == [("streamit-no-output", Severity.WARNING)]
    loud = "int->void filter Loud { work pop 1 { print(pop()); } }"
    assert warnings(f"{SOURCE} {loud} {pipeline % 'Loud'}") == []
    assert warnings(f"{SOURCE} {SINK} {pipeline % 'Sink'}") == []


def test_what_is_changed_twice_is_warned_of() -> None:
    text = work("int i; int[3] a; a[i++] = i++; i = i++ + 1; a[i] = i++;")
    assert warnings(text) == [("streamit-order", Severity.WARNING)] * 2


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("if (x = 3) x++;", 1),
        ("while (x = 0) x++;", 1),
        ("for (; x = 0;) x++;", 1),
        ("x = (x = 3) ? 1 : 2;", 1),
        ("if (x > 0 && (x = 3)) x++;", 1),
        ("if ((x = 3) == 3) x++; if (x == 3) x++; if (x -= 3) x++;", 0),
    ],
)
def test_a_condition_that_is_an_assignment_is_warned_of(body: str, told: int) -> None:
    found = warnings(work(f"int x; {body}"))
    assert [code for code, _ in found if code != "streamit-order"] == ["streamit-condition"] * told


def test_a_firing_that_takes_less_than_it_says_is_warned_of() -> None:
    text = a_filter("work pop 3 push 1 { push(pop()); } int f() { return 1; }")
    assert warnings(text) == [("streamit-pop-rate", Severity.WARNING)]


def test_an_empty_loop_is_warned_of() -> None:
    half = "int->int filter Half { work pop 2 push 1 { push(pop() + pop()); } }"
    loop = "int->int feedbackloop L { join roundrobin; body Half; loop Identity<int>; split duplicate; %s }"
    assert warnings(f"{half} {loop % ''}") == [("streamit-starved", Severity.WARNING)]
    assert warnings(f"{half} {loop % 'enqueue 1;'}") == []


@pytest.mark.parametrize(
    ("body", "waiting", "told"),
    [
        (
            "pop 2 push 1 { push(pop() + pop()); }",
            0,
            "waits for 1 item from the loop, and none will be there",
        ),
        ("peek 6 pop 2 push 1 { push(pop() + peek(4)); pop(); }", 2, "waits for 1 item from the loop"),
        ("peek 6 pop 2 push 1 { push(pop() + peek(4)); pop(); }", 3, None),
        ("pop 2 push 1 { push(pop() + pop()); }", 1, None),
    ],
)
def test_loops_that_stop_are_told(body: str, waiting: int, told: str | None) -> None:
    text = (
        f"int->int feedbackloop L {{ join roundrobin; body int->int filter {{ work {body} }} loop Identity<int>;"
        f" split duplicate; for (int i = 0; i < {waiting}; i++) enqueue i; }}"
    )
    found = FRONTEND.warnings(check(text))
    assert [d.code for d in found] == ["streamit-starved"] * (told is not None)
    assert told is None or told in found[0].message


def test_a_loop_may_begin_with_prework() -> None:
    delay = "int->int filter Delay { prework push 1 { push(0); } work pop 1 push 1 { push(pop()); } }"
    late = "int->int filter Late { prework pop 1 push 2 { push(pop()); push(0); } work pop 1 push 1 { push(pop()); } }"
    half = "int->int filter Half { work pop 2 push 1 { push(pop() + pop()); } }"
    loop = "int->int feedbackloop L { join roundrobin; body Half; loop %s; split duplicate; }"
    assert warnings(f"{half} {delay} {loop % 'Delay'}") == []
    assert warnings(f"{half} {late} {loop % 'Late'}") == [("streamit-starved", Severity.WARNING)]


# ---------------------------------------------------------------------------------------------- rates


def rates(members: str, types: str = "int->int") -> ty.Rates:
    graph = check(a_filter(members, types)).graph
    assert isinstance(graph, ty.Node)
    return graph.rates


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ("work { push(peek(2)); pop(); }", ty.Rates(1, 3, 1)),
        ("work { for (int i = 0; i < 4; i++) { push(pop()); push(i); } }", ty.Rates(4, 4, 8)),
        ("work { for (int i = 6; i >= 0; i -= 3) push(peek(i)); pop(); pop(); }", ty.Rates(2, 7, 3)),
        (
            ("work { for (int i = 0; i < 3; i++) for (int j = 0; j <= i; j++) push(peek(i + j)); pop(); }"),
            ty.Rates(1, 5, None),
        ),
        ("work { if (pop() > 0) push(1); else push(2); }", ty.Rates(1, 1, 1)),
        ("work { if (pop() > 0) push(1); }", ty.Rates(1, 1, None)),
        ("work push * { push(1); pop(); }", ty.Rates(1, 1, None)),
        ("work push [0, 2] pop 1 { push(1); pop(); }", ty.Rates(1, 1, None)),
        ("work pop 1 push 1 peek 9 { push(pop()); }", ty.Rates(1, 9, 1)),
        (
            (
                "int f; work { int n = 2 + 1; for (int i = 0; i < n; i++) push(pop() + f); "
                "println(1); println(2); }"
            ),
            ty.Rates(3, 3, 3),
        ),
        ("work pop 3 push 1 { int k = 3; while (k > 0) { k--; pop(); } push(1); }", ty.Rates(3, 3, 1)),
        ("work { push(pop() > 0 && peek(1) > 0 ? 1 : 0); }", ty.Rates(1, 3, 1)),
    ],
)
def test_rates_are_read_off_the_code(members: str, found: ty.Rates) -> None:
    assert rates(members) == found


def test_rates_of_an_instance() -> None:
    text = "int->int filter F(int n) { work { for (int i = 0; i < n; i++) push(pop()); if (n > 2) pop(); } }"
    graph = check(text + "int->int pipeline P { add F(2); add F(3); }").graph
    assert isinstance(graph, ty.Pipeline)
    assert [part.rates for part in graph.parts if isinstance(part, ty.Node)] == [
        ty.Rates(2, 2, 2),
        ty.Rates(4, 4, 3),
    ]


# ---------------------------------------------------------------------------------------------- graphs


def firings(text: str) -> list[int]:
    program = check(text)
    assert isinstance(program.graph, ty.Pipeline)
    return [program.firings[id(part)] for part in program.graph.parts]


def test_a_steady_state_is_as_small_as_may_be() -> None:
    three = "int->int filter Three { work pop 3 push 2 { push(pop() + pop()); push(pop()); } }"
    assert firings(f"{ONE} {TWO} {three} int->int pipeline P {{ add Two; add Three; add One; }}") == [3, 2, 4]


def test_a_steady_state_is_whole_turns_of_joiners() -> None:
    text = "int->int splitjoin S { split roundrobin(1, 2); add One; add One; join roundrobin(3, 6); }"
    assert firings(f"{ONE} {text} int->int pipeline P {{ add One; add S; add One; }}") == [9, 3, 9]


def starts(text: str) -> list[int]:
    program = check(text)
    assert isinstance(program.graph, ty.Pipeline)
    return [program.starts[id(part)] for part in program.graph.parts]


AHEAD = "int->int filter Ahead { work peek 5 pop 2 push 1 { push(peek(4)); pop(); pop(); } }"


def test_windows_are_filled_before_the_first_steady_state() -> None:
    # Ahead looks 3 items further than it takes: two firings of Two give 4
    assert starts(f"{AHEAD} {TWO} {ONE} int->int pipeline P {{ add One; add Two; add Ahead; add One; }}") == [
        2,
        2,
        0,
        0,
    ]
    # the second one waits for 3 items, so the first fires 3 times: it takes 6, and looks 3 further
    assert starts(f"{AHEAD} {TWO} int->int pipeline P {{ add Two; add Ahead; add Ahead; }}") == [5, 3, 0]


def test_prework_is_before_the_first_steady_state() -> None:
    delay = "int->int filter Delay { prework push 3 { push(1); push(2); push(3); } work pop 1 push 1 { push(pop()); } }"
    assert starts(f"{delay} {AHEAD} {ONE} int->int pipeline P {{ add One; add Delay; add Ahead; }}") == [
        0,
        1,
        0,
    ]
    late = "int->int filter Late { prework pop 4 { pop(); pop(); pop(); pop(); } work pop 1 push 1 { push(pop()); } }"
    assert starts(f"{late} {TWO} int->int pipeline P {{ add Two; add Late; }}") == [2, 1]


def test_what_waits_in_a_loop_counts_for_its_windows() -> None:
    text = (
        "int->int feedbackloop L { join roundrobin; body int->int filter { work peek 6 pop 2 push 1 {"
        " push(pop() + peek(4)); pop(); } }; loop Identity<int>; split duplicate;"
        " for (int i = 0; i < 4; i++) enqueue i; }"
    )
    assert starts(f"{ONE} {text} int->int pipeline P {{ add One; add L; }}") == [2, 2]


@pytest.mark.slow
def test_a_recursion_is_as_deep_as_there_are_filters() -> None:
    text = "int->int pipeline Main { add P(3000); } int->int pipeline P(int n) { add One; if (n > 1) add P(n - 1); }"
    program = check(f"{ONE} {text}")
    assert len(program.firings) == 1 + 2 * 3000
    assert len(FRONTEND.lower(program).uses) == 3000


def test_the_program_is_what_nobody_adds() -> None:
    whole = "void->void pipeline %s { add Source; add Sink; }"
    spare = f"{TWO} int->int filter Unused(int n) {{ work pop 1 push 1 {{ push(pop() + n); }} }}"
    graph = check(f"{SOURCE} {SINK} {spare} {whole % 'P'}").graph
    assert isinstance(graph, ty.Pipeline)
    assert graph.name == "P"
    (found,) = refused(f"{SOURCE} {SINK} {whole % 'P'} {whole % 'Q'}")
    assert (found.code, found.help) == ("streamit-no-main", "choose one: `--main NAME`")
    assert "`P`, `Q`" in found.message
    (found,) = refused(f"{spare.removeprefix(TWO)} void->void pipeline P {{ add P; }}")
    assert found.help == "`P` is not, as a stream adds it"


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("push x;", "`push` is a function: write `push(...)`"),
        ("push(peek[0]); pop();", "`peek` is a function: write `peek(...)`"),
        ("push(pop + 1);", "`pop` is a function: write `pop()`"),
        ("push(sqrt + 1);", "`sqrt` is a function: write `sqrt(...)`"),
    ],
)
def test_a_function_without_its_arguments(work: str, said: str) -> None:
    found = refused(f"float->float filter F {{ work pop 1 push 1 {{ {work} }} }}")
    assert found[0].help == said


def test_a_program_may_stand_in_several_texts() -> None:
    texts = (
        f"{SINK} void->void pipeline P {{ add Source; add Sink; }}",
        SOURCE,
        "void->void pipeline Q { add Source; add Sink; }",
    )
    asts = [FRONTEND.parse(Source(f"{i}.str", text)) for i, text in enumerate(texts)]
    for main in ("P", "Q"):
        graph = FRONTEND.check(FRONTEND.whole(asts, main)).graph
        assert isinstance(graph, ty.Pipeline)
        assert graph.name == main
    with pytest.raises(Rejected) as error:
        FRONTEND.check(FRONTEND.whole(asts, "R"))
    assert [d.code for d in error.value.diagnostics] == ["streamit-no-main"]


def test_an_untyped_pipeline_takes_the_types_of_its_parts() -> None:
    graph = check(
        "pipeline { filter { work {x <- f(peek(1)); push(x); pop();} } } fn f(a: i32) -> f64 = f64(a);"
    ).graph
    assert (graph.input, graph.output) == (t.I32, t.F64)


def test_state_of_out_of_line_code() -> None:
    graph = check(
        "filter { work {n, y <- f(peek(1), n); push(y); pop();} } fn f(a: f32, n: i32) "
        "-> (i32, f32) { return (n +% 1, a); }"
    ).graph
    assert isinstance(graph, ty.Node)
    assert [(decl.name, decl.type) for decl in graph.filter.fields] == [("n", t.I32)]


def test_anonymous_streams_see_what_is_around_them() -> None:
    graph = check(
        "static { int K = 7; } int->int pipeline P { add Q(3); } int->int pipeline Q(int n) {"
        " for (int i = 0; i < 2; i++) { int m = n * i; add pipeline { add int->int filter {"
        " work pop 1 push 1 { push(pop() * m + i + K); } } } } }"
    ).graph
    found: list[object] = []
    stack = [graph]
    while stack:
        part = stack.pop(0)
        match part:
            case ty.Pipeline(parts=parts):
                stack += parts
            case ty.Node(values=values):
                found.append(dict(values))
            case _:
                pass
    assert found == [{"m": 0, "i": 0, "K": 7}, {"m": 3, "i": 1, "K": 7}]


def test_the_path_of_a_deep_recursion_is_short() -> None:
    text = "void->void pipeline M { add R(0); } void->void pipeline R(int n) { add R(n + 1); }"
    with pytest.raises(Rejected) as rejected:
        FRONTEND.check(FRONTEND.parse(Source("t.str", text)))
    (found,) = rejected.value.diagnostics
    assert [note.message for note in found.notes] == [f"in `M{'/R' * 7}/...{'/R' * 8}`"]
