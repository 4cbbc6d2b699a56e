"""Every refusal of the checker: the least text that earns it, and what the caret stands under."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import river.lang
from river.diagnostics import Diagnostic, Rejected
from river.il.parse import parse
from river.il.program import TypeDecl
from river.lang import check
from river.lang import syntax as s
from river.lang.scope import Declared
from river.source import Source

HEAD = "operator f(x: i64; $n: i64, $l: list<i64>, $m: map<string, i64>, $g: map<string, list<i64>>) -> (out: i64)"


def body(text: str) -> str:
    """An operator whose one handler has these statements; the item is `v`."""
    return f"{HEAD} {{ on x(v) {{ {text} }} }}"


def refusals(text: str) -> tuple[Diagnostic, ...]:
    """What the checker says of a program's operators, in the order of the text."""
    decls = parse(Source("<test>", f"river 1;\n{text}")).decls
    types = {d.name: Declared(d.params, d.type, span=d.span) for d in decls if isinstance(d, TypeDecl)}
    scope = check.scope(types, [d for d in decls if isinstance(d, s.Fn)])
    found: list[Diagnostic] = []
    for decl in decls:
        if isinstance(decl, s.Operator | s.Extern):
            try:
                check.operator(decl, scope)
            except Rejected as rejected:
                found += rejected.diagnostics
    return tuple(found)


CASES = [
    # types
    ("lang-unknown-type", "operator f(x: i46) -> () { on x(v) {} }", "i46"),
    ("lang-type-arguments", "operator f(x: list<i64, i64>) -> () { on x(v) {} }", "list<i64, i64>"),
    ("lang-type-arguments", "operator f(x: decimal(40, 2)) -> () { on x(v) {} }", "decimal(40, 2)"),
    ("lang-type-arguments", "operator f(x: array<i64, -1>) -> () { on x(v) {} }", "array<i64, -1>"),
    ("lang-type-arguments", "type p<T> = {a: T}; operator f(x: p) -> () { on x(v) {} }", "p"),
    ("lang-type-arguments", "type p<T> = {a: T}; operator f(x: p<7>) -> () { on x(v) {} }", "7"),
    (
        "lang-recursive-type",
        "type p = {a: list<p>}; operator f(x: p) -> () { on x(v) {} }",
        "type p = {a: list<p>};",
    ),
    ("lang-nested-optional", "type p = i64?; operator f(x: p?) -> () { on x(v) {} }", "p?"),
    (
        "lang-key-type",
        "operator f(x: i64; $m: map<map<i64, i64>, i64>) -> () { on x(v) {} }",
        "map<i64, i64>",
    ),
    ("lang-key-type", "operator f(x: i64; $m: bag<fsum>) -> () { on x(v) {} }", "fsum"),
    ("lang-duplicate-field", "operator f(x: {a: i64, a: i64}) -> () { on x(v) {} }", "a: i64"),
    ("lang-hole", "operator f(x: #T) -> () { on x(v) {} }", "#T"),
    ("lang-item-type", "operator f(x: {a: omap<i64, i64>}) -> () { on x(v) {} }", "x: {a: omap<i64, i64>}"),
    ("lang-item-type", "operator f(x: i64) -> (o: i128) { on x(v) {} }", "o: i128"),
    (
        "lang-type-size",
        "type p<T> = {a: T, b: T}; operator f(x: p<p<p<p<p<p<p<p<p<p<p<p<p<i64>>>>>>>>>>>>>) -> () { on x(v) {} }",
        "{a: T, b: T}",
    ),
    # signatures
    ("lang-duplicate-name", "operator f(x: i64, x: i64) -> () { on x(v) {} }", "x: i64"),
    ("lang-duplicate-name", "operator f(x: i64; $a: i64, $a: i64) -> () { on x(v) {} }", "$a: i64"),
    ("lang-duplicate-name", "operator f(x: i64) -> (o: i64, o: i64) { on x(v) {} }", "o: i64"),
    ("lang-key", "operator f(x: {a: i64} by b) -> () { on x(v) {} }", "x: {a: i64} by b"),
    ("lang-key", "operator f(x: {a: string} by a) -> () { on x(v) {} }", "x: {a: string} by a"),
    ("lang-key", "operator f(x: i64 by a) -> () { on x(v) {} }", "x: i64 by a"),
    # handlers
    ("lang-unknown-port", "operator f(x: i64) -> () { on y(v) {} on x(v) {} }", "on y(v) {}"),
    ("lang-handlers", "operator f(x: i64) -> () { on x(v) {} on x(w) {} }", "on x(w) {}"),
    (
        "lang-handlers",
        "operator f(x: i64) -> () { on x[pop 1](v) {} on x[pop 2](w) {} }",
        "on x[pop 2](w) {}",
    ),
    ("lang-handlers", "operator f(x: i64) -> () { on x[pop 1](v), x[pop 1](w) {} }", "x[pop 1](w)"),
    (
        "lang-handlers",
        "operator f(x: {k: i64} by k) -> () { on merge(x(v), x(w)) {} }",
        "on merge(x(v), x(w)) {}",
    ),
    ("lang-handlers", "operator f(x: i64, y: i64) -> () { on x(v) {} }", "y: i64"),
    ("lang-handlers", "operator f(x: i64 = [1]) -> () { on x(v) {} }", "x: i64 = [1]"),
    (
        "lang-handlers",
        "operator f(x: i64, y: i64) -> () { on x(v) {} phase 1 on y(w) {} }",
        "operator f(x: i64, y: i64) -> () { on x(v) {} phase 1 on y(w) {} }",
    ),
    (
        "lang-handlers",
        "operator f(x: i64) -> () { first on x[pop 1](v) {} }",
        "operator f(x: i64) -> () { first on x[pop 1](v) {} }",
    ),
    ("lang-rate", "operator f(x: i64) -> () { on x[pop -1](v) {} }", "-1"),
    ("lang-rate", "operator f(x: i64) -> () { on x[peek 3, pop 0](v) {} }", "on x[peek 3, pop 0](v) {}"),
    ("lang-rate", "operator f(x: i64) -> (o[push -1]: i64) { on x(v) {} }", "-1"),
    (
        "lang-rate",
        "operator f(x: i64) -> (o[push 1]: i64) { on x[pop 2, early 0: 1](v) { emit o v[0]; } }",
        "0",
    ),
    (
        "lang-early",
        "operator f(x: i64) -> (o[push 1]: i64) { on x[pop 2, early 2: 1](v) { emit o v[0]; } }",
        "on x[pop 2, early 2: 1](v) { emit o v[0]; }",
    ),
    (
        "lang-early",
        "operator f(x: i64) -> (o[push 2]: i64) { on x[pop 3, early 1: 2, 2: 2](v) { emit o v[0]; emit o v[1]; } }",
        "on x[pop 3, early 1: 2, 2: 2](v) { emit o v[0]; emit o v[1]; }",
    ),
    *(
        ("lang-early", f"operator f({ends} {{ {body} }}", body[body.rindex("on x") :])
        for ends, body in (
            ("x: i64) -> (o: i64)", "on x[pop 2, early 1: 1](v) { emit o v[0]; }"),
            ("x: i64; $n: i64) -> (o[push 1]: i64)", "on x[pop 2, early 1: 1](v) { emit o $n; }"),
            ("x: i64) -> (o[push 1]: i64)", "on x[peek 3, pop 2, early 1: 1](v) { emit o v[0]; }"),
            (
                "x: i64, z: i64) -> (o[push 1]: i64)",
                "on x[pop 2, early 1: 1](v), z[pop 1](w) { emit o v[0]; }",
            ),
            (
                "x: i64) -> (o[push 1]: i64)",
                "first on x[pop 1](w) { } on x[pop 2, early 1: 1](v) { emit o v[0]; }",
            ),
        )
    ),
    ("lang-push-rate", "operator f(x: i64) -> (o[push 2]: i64) { on x(v) { emit o v; } }", "o[push 2]: i64"),
    (
        "lang-push-rate",
        "operator f(x: i64) -> (o[push 1]: i64) { on x(v) { if v > 0 { emit o v; emit o v; } else { emit o 0; emit o 0; } } }",
        "o[push 1]: i64",
    ),
    ("lang-key", "operator f(x: i64) -> () { on merge(x(v)) {} }", "on merge(x(v)) {}"),
    ("lang-key", "operator f(x: i64) -> () { on x(v) {} on mark(k) {} }", "on mark(k) {}"),
    ("lang-mark", "operator f(x: i64) -> (o: i64) { on x(v) { mark o v; } }", "mark o v;"),
    # constants and functions
    (
        "lang-constant",
        "operator f(x: i64) -> () { on x[pop div.trunc(1, max(0, 0))](v) {} }",
        "div.trunc(1, max(0, 0))",
    ),
    (
        "lang-duplicate-name",
        f"{HEAD} {{ const a: i64 = 1; const a: i64 = 2; on x(v) {{}} }}",
        "const a: i64 = 2;",
    ),
    (
        "lang-duplicate-name",
        f"{HEAD} {{ fn a() -> i64 = 1; fn a() -> i64 = 2; on x(v) {{}} }}",
        "fn a() -> i64 = 2;",
    ),
    ("lang-unknown-function", body("let a = leng($l);"), "leng($l)"),
    ("lang-arguments", f"fn g(a: i64) -> i64 = a; {body('let a = g(1, 2);')}", "g(1, 2)"),
    ("lang-recursive-result", f"{HEAD} {{ fn g(a: i64) = g(a); on x(v) {{}} }}", "fn g(a: i64) = g(a);"),
    (
        "lang-missing-return",
        f"{HEAD} {{ fn g(a: i64) -> i64 {{ if a > 0 {{ return 1; }} }} on x(v) {{}} }}",
        None,
    ),
    ("lang-return", f"{HEAD} {{ fn g() -> i64 {{ return; }} on x(v) {{}} }}", "return;"),
    ("lang-return", body("return v;"), "return v;"),
    ("lang-variable-in-fn", f"{HEAD} {{ fn g() -> i64 = $n; on x(v) {{}} }}", "$n"),
    ("lang-emit", f"fn g(a: i64) {{ emit out a; }} {body('g(v);')}", "emit out a;"),
    (
        "lang-emit",
        f"{HEAD} {{ fn g() -> i64 {{ emit out 1; return 2; }} const c: i64 = g(); on x(v) {{}} }}",
        "const c: i64 = g();",
    ),
    ("lang-lambda", f"fn g(a: i64) -> i64 = a; {body('let a = g(fn(b) => b);')}", "fn(b) => b"),
    ("lang-lambda", body("let a = sort_by($l, fn(a, b) => a);"), "fn(a, b) => a"),
    (
        "lang-alias",
        f"fn g(ref a: list<i64>, b: list<i64>) {{ push(a, len(b)); }} {body('g($l, $l);')}",
        "g($l, $l)",
    ),
    (
        "lang-alias",
        "fn g(ref a: map<string, list<i64>>, b: list<i64>) { clear(a); } " + body('g($g, get($g, "k", []));'),
        'g($g, get($g, "k", []))',
    ),
    # names and places
    ("lang-unknown-name", body("emit out w;"), "w"),
    ("lang-unknown-name", body("emit out $o;"), "$o"),
    ("lang-duplicate-name", body("let v = 1;"), "let v = 1;"),
    ("lang-duplicate-name", f"{HEAD} {{ const v: i64 = 1; on x(v) {{}} }}", "{}"),
    ("lang-duplicate-name", "operator f(x: {k: i64} by k) -> () { on merge(x(key)) {} }", "{}"),
    ("lang-not-a-place", body("push([1], v);"), "[1]"),
    ("lang-not-assignable", body("v = 1;"), "v"),
    ("lang-not-assignable", body('var s = "a"; s[0] = 1;'), "s[0]"),
    ("lang-borrowed", body("for a in $l { push($l, a); }"), "$l"),
    ("lang-borrowed", body("let a = $l; push($l, len(a));"), "$l"),
    ("lang-borrowed", body('with e = $m["a"] else 0 { e = e + get($m, "b", 0); }'), "$m"),
    ("lang-drop", body("let a = 1; drop a;"), "drop a;"),
    ("lang-drop", body('with e = $m["a"] { drop e; drop e; }'), "drop e;"),
    ("lang-drop", body('with e = $m["a"] { if v > 0 { drop e; } e = 1; }'), "e"),
    ("lang-drop", body('with e = $m["a"] { for i in 0 .. 3 { drop e; } }'), "drop e;"),
    ("lang-with", body("with e = $l[0] { e = 1; }"), "$l[0]"),
    # expressions
    ("lang-type-mismatch", body('emit out "a";'), '"a"'),
    ("lang-type-mismatch", body("let a: string = {b: 1};"), "{b: 1}"),
    ("lang-type-mismatch", body("let a: string = [1];"), "[1]"),
    ("lang-type-mismatch", body("let a: string = {1: 1};"), "{1: 1}"),
    ("lang-type-mismatch", body("let a: array<i64, 3> = [1, 2];"), "[1, 2]"),
    ("lang-type-mismatch", body("let a: i64 = none;"), "none"),
    ("lang-needs-type", body("let a = none;"), "none"),
    ("lang-needs-type", body("let a = [];"), "[]"),
    ("lang-needs-type", body("let a = {};"), "{}"),
    ("lang-literal-range", body("let a: i32 = 2147483648;"), "2147483648"),
    ("lang-literal-range", body("let a: decimal(4, 2) = 1.234;"), "1.234"),
    ("lang-operation-types", body("let a = v / v;"), "v / v"),
    ("lang-operation-types", body("let a = v + f64(v);"), "v + f64(v)"),
    ("lang-unknown-field", body("let r = {a: 1}; emit out r.b;"), "r.b"),
    ("lang-unknown-field", body("let r: {a: i64} = {a: 1, b: 2};"), "b: 2"),
    ("lang-missing-field", body("let r: {a: i64, b: i64} = {a: 1};"), "{a: 1}"),
    ("lang-duplicate-field", body("let r = {a: 1, a: 2};"), "a: 2"),
    ("lang-not-a-record", body("emit out v.a;"), "v.a"),
    ("lang-not-a-record", body("let r: {a: i64}? = none; emit out r.a;"), "r.a"),
    ("lang-not-indexed", body("emit out v[0];"), "v[0]"),
    ("lang-not-optional", body("if v is w { emit out w; }"), "v is w"),
    ("lang-hole", body("emit out #n;"), "#n"),
    ("lang-hole", body("#each f in #F { emit out v; }"), "#each f in #F { emit out v; }"),
    ("lang-hole", body("let r = {#each f in #F {f: 1}};"), "#each f in #F {f: 1}"),
    ("lang-hole", body("#touch(v);"), "#touch(v)"),
    ("lang-operand-order", body("let a = concat($l, [pop($l)]);"), "concat($l, [pop($l)])"),
    ("lang-operand-order", body("let a = map($l, fn(b) => pop($l));"), "map($l, fn(b) => pop($l))"),
    ("lang-operand-order", body("emit out $l[pop($l)];"), "$l[pop($l)]"),
    (
        "lang-result-depth",
        "fn f51() = 1; " + " ".join(f"fn f{i}() = f{i + 1}();" for i in range(51)) + body("let a = f0();"),
        "fn f50() = f51();",
    ),
    # statements
    ("lang-loop", body("break;"), "break;"),
    ("lang-loop", body("a: for i in 0 .. 3 { continue b; }"), "continue b;"),
    ("lang-loop-names", body("for i, j in 0 .. 3 { emit out i; }"), "for i, j in 0 .. 3 { emit out i; }"),
    ("lang-loop-names", body("for i in v { emit out i; }"), "for i in v { emit out i; }"),
    ("lang-unknown-output", body("emit ouch v;"), "emit ouch v;"),
    ("lang-no-effect", body("len($l);"), "len($l);"),
    # operators in Python
    ("lang-scalar-extern", 'operator f(x: i64) -> (out: i64) = extern python scalar "m:f";', None),
]


@pytest.mark.parametrize(
    ("code", "text", "under"), CASES, ids=[f"{i}-{code}" for i, (code, _, _) in enumerate(CASES)]
)
def test_a_mistake_is_named_where_it_stands(code: str, text: str, under: str | None) -> None:
    found = refusals(text)
    assert [d.code for d in found] == [code], found
    assert found[0].span is not None
    if under is not None:
        assert found[0].span.text == under


def test_every_code_of_the_checker_has_a_text() -> None:
    folder = Path(river.lang.__file__).parent
    files = [folder / "scope.py", *(folder / "check").glob("*.py")]
    codes = {
        code for file in files for code in re.findall(r'"(lang-[a-z-]+)"', file.read_text(encoding="utf-8"))
    }
    assert codes == {code for code, _, _ in CASES}


def test_all_errors_of_a_body_are_reported_at_once() -> None:
    found = refusals(
        body(
            "let a = missing + 1; "
            "emit out a + 1; "  # says nothing more: `a` has no type because of the first error
            'emit out "text"; '
            "if v { emit nowhere v; } "
            "for i in 0 .. 3 { for j in $l { push($l, j); } break elsewhere; }"
        )
    )
    assert [d.code for d in found] == [
        "lang-unknown-name", "lang-type-mismatch", "lang-type-mismatch", "lang-borrowed", "lang-loop",
    ]  # fmt: skip


def test_errors_of_several_handlers_and_functions_are_reported_at_once() -> None:
    found = refusals(
        """operator f(a: i64, b: i64; $n: i64) -> (out: i64) {
             const c: i64 = "text";
             fn g(x: i64) -> i64 = y;
             fn h(x: i64) -> string = x;
             on a(v) { emit out g(v) + c; emit out w; }
             on b(v) { $m = 1; }
           }"""
    )
    assert [d.code for d in found] == [
        "lang-type-mismatch", "lang-unknown-name", "lang-type-mismatch", "lang-unknown-name", "lang-unknown-name",
    ]  # fmt: skip


def test_a_near_name_is_offered() -> None:
    (found,) = refusals(body("let count = 1; emit out cuont;"))
    assert found.help == "did you mean `count`?"


def test_whole_numbers_are_told_how_to_divide() -> None:
    (found,) = refusals(body("emit out v / 2;"))
    assert found.help is not None
    assert "div.trunc" in found.help


def test_a_function_with_errors_is_reported_once() -> None:
    calls = "on x(v) { emit out g(v); emit out g(v); }"
    for fn in (
        "fn g(a: i46) -> i64 = 1;",
        "fn g(a: i64) = b;",
        "fn g(a: i64) -> i64 = b;",
        "fn g(a: i64) = g(a);",
    ):
        assert len(refusals(f"{HEAD} {{ {fn} {calls} }}")) == 1, fn


def test_library_functions_see_nothing_of_the_operator_that_calls_them() -> None:
    found = refusals(
        """fn g(a: i64) -> i64 = h(a) + c;
           fn h(a: i64) -> i64 = a;
           operator f(x: i64) -> (out: i64) {
             const c: i64 = 1;
             fn h(a: i64) -> string = "local";
             on x(v) { emit out g(v) + len(h(v)); }
           }"""
    )
    assert [(d.code, d.span.text if d.span else None) for d in found] == [("lang-unknown-name", "c")]


def test_functions_have_the_types_that_they_say_though_called_as_operations_are() -> None:
    for name in ("round", "abs", "fill", "len"):
        for declared in (
            f"fn {name}(a: i32) -> i32 = a; {HEAD} {{",
            f"{HEAD} {{ fn {name}(a: i32) -> i32 = a;",
        ):
            assert refusals(f"{declared} on x(v) {{ let a: f32 = f32({name}(5)); }} }}") == (), declared


ACCEPTED = [
    "let a = i32(5) == i32(6);",
    "let a = time(5) + duration(3);",
    "let a: f32 = min(1, 2.5) + 3;",
    "let a = 1.5 < 2;",
    "let a = inf() > 1.0;",
    "let a = [1, 2.5, 3];",
    "var q: list<i32> = concat(fill(1, 2), [3]);",
    "let a = len([1, 2]);",
    "let a = if v > 0 { none } else { v };",
    "let a: bool = (if v > 0 { none } else { 1 }) is none;",
    "let a: i64? = if v > 0 { if v > 1 { none } else { none } } else { if v < 0 { none } else { 1 } };",
    "let a: bool = same(v, if v > 0 { none } else { 1 });",
    "let a = if v > 0 { none } else { 1 }; let b: i64? = a;",
    "let a: bool = (if v > 0 { 1 } else { none }) is none;",
    "let a: i64 = coalesce(if v > 0 { 1 } else { none }, 2);",
    "let a: f64? = coalesce(if v > 0 { 1.5 } else { none }, if v > 1 { 2.5 } else { none });",
    "let a: bool? = eq3(if v > 0 { 1 } else { none }, 2);",
    "let a = if v > 0 { v } else { none };",
    "let o: i64? = 3; let a = o == none or o != 3 or 3 == o or o == v;",
    "let o: i64? = 3; let a = if v > 0 { v } else { o };",
    'let a: string? = get({1: "a"}, 1);',
    "let a: u64 = 18446744073709551615 - 1;",
    "let a = -9223372036854775808;",
    "let a: decimal(9, 2) = 1.25 + 0.5;",
    "var t: (i64, list<i64>) = (1, []); push(t.1, 3);",
    "var a: list<array<i64, 2>> = [[1, 2], fill(0)]; a[0][1] = 5;",
    "let a = $l[0]; $l[0] = 3;",  # a flat value is no borrow
    "push($l, pop($l)); $l[0] = pop($l);",  # places are sought after what is stored in them
    'with e = $m["a"] { if e == 0 { drop e; } else { e = e - 1; } }',
    'with e = $m["a"] { if e == 0 { drop e; return; } e = e - 1; }',
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_looks_doubtful_and_is_right(text: str) -> None:
    assert refusals(body(text)) == ()
