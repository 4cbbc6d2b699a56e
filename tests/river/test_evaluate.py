"""The evaluator: statements, ownership, places, handlers, traps; and whole operators against models."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from river.il.parse import parse
from river.il.program import TypeDecl
from river.lang import check, typed
from river.lang import syntax as s
from river.lang import types as t
from river.lang import values as v
from river.lang.evaluate import (
    Trap,
    compile_function,
    compile_operator,
    evaluate_const,
    freeze_variables,
    further,
)
from river.lang.scope import Declared
from river.source import Source

BODIES = Path(__file__).resolve().parents[1] / "bodies"


def operator(text: str, name: str | None = None) -> typed.Operator:
    """The checked operator of a text."""
    decls = parse(Source("<test>", f"river 1;\n{text}")).decls
    types = {d.name: Declared(d.params, d.type, span=d.span) for d in decls if isinstance(d, TypeDecl)}
    scope = check.scope(types, [d for d in decls if isinstance(d, s.Fn)])
    found = next(d for d in decls if isinstance(d, s.Operator) and name in (None, d.name))
    checked = check.operator(found, scope)
    assert isinstance(checked, typed.Operator)
    return checked


def run(text: str, items, variables=None, name: str | None = None):
    """Outputs and frozen variables after firing on items."""
    op = operator(text, name)
    body = compile_operator(op)
    state = [v.default(var.type) for var in op.vars] if variables is None else list(variables)
    outs: tuple[list, ...] = tuple([] for _ in op.outs)
    for item in items:
        fire = body.item[0]
        assert fire is not None
        fire(state, item, outs)
    assert all(
        v.well_typed(out.type, item) for out, items in zip(op.outs, outs, strict=True) for item in items
    )
    return outs, freeze_variables(op, state)


def result(body: str, item: object = 0, head: str = "x: i64", out: str = "i64"):
    """What a handler emits for one item `v`."""
    outs, _ = run(f"operator f({head}) -> (out: {out}) {{ on x(v) {{ {body} }} }}", [item])
    return outs[0]


def trap(body: str, item: object = 0, head: str = "x: i64", out: str = "i64") -> Trap:
    with pytest.raises(Trap) as raised:
        result(body, item, head, out)
    return raised.value


# ---------------------------------------------------------------------------------------------- statements


def test_branches_and_loops() -> None:
    assert result("if v > 1 { emit out 1; } else if v == 1 { emit out 2; } else { emit out 3; }", 1) == [2]
    assert result("for i in 0 .. v { emit out i; }", 3) == [0, 1, 2]
    assert result("var i = v; while i > 0 { i = i - 1; if i == 1 { continue; } emit out i; }", 3) == [2, 0]
    assert result("for i in 0 .. 9 { if i == 2 { break; } emit out i; } emit out 99;") == [0, 1, 99]
    assert result(
        "a: for i in 0 .. 3 { for j in 0 .. 3 { if j == i { continue a; } emit out 10 * i + j; } }"
    ) == [10, 20, 21]
    assert result(
        "a: for i in 0 .. 3 { for j in 0 .. 3 { if j == 1 { break a; } emit out 10 * i + j; } }"
    ) == [0]
    assert result("while true { if v == 0 { return; } }") == []
    assert result("for i in 0 .. 3 { if i == 1 { return; } emit out i; } emit out 9;") == [0]


def test_loops_over_containers() -> None:
    assert result("for i, x2 in v { emit out i * 10 + x2; }", (5, 6), "x: list<i64>") == [5, 16]
    assert result("for c in v { emit out i64(c); }", "aä", "x: string") == [97, 228]
    assert result("for i, c in v { emit out i + i64(c); }", "aä", "x: string") == [97, 229]
    assert result(
        "for k, w in v { emit out k * 10 + w; }", v.FrozenMap({2: 1, 1: 3}), "x: map<i64, i64>"
    ) == [21, 13]
    assert result("for k in v { emit out k; }", v.FrozenMap({2: 1, 1: 3}), "x: map<i64, i64>") == [2, 1]
    ordered = "var m: omap<i64, i64> = {}; m[2] = 1; m[1] = 3; for k, w in m { emit out k * 10 + w; }"
    assert result(ordered) == [13, 21]
    assert result(
        "var b: bag<i64> = {}; add(b, 2); add(b, 1); add(b, 2); remove(b, 2); for w in b { emit out w; }"
    ) == [1, 2]
    assert result("var d: deque<i64> = {}; push_back(d, 2); push_back(d, 1); for w in d { emit out w; }") == [
        2,
        1,
    ]


def test_expressions() -> None:
    assert result("emit out if v > 0 and 10 > v or v == 99 { 1 } else { 2 };", 99) == [1]
    assert result("emit out [i * i for i in 0 .. 5 if i > 2];", out="list<i64>") == [(9, 16)]
    assert result(
        "emit out [k + w for k, w in v];", v.FrozenMap({1: 2}), "x: map<i64, i64>", "list<i64>"
    ) == [(3,)]
    assert result("emit out {1: 2, 1: 3};", out="map<i64, i64>") == [v.FrozenMap({1: 3})]
    assert result("emit out {b: v, a: v + 1};", 1, out="{a: i64, b: i64}") == [(2, 1)]
    assert result('emit out (1, (), "a", true, v, 2.5);', out="(i64, unit, string, bool, i64, f64)") == [
        (1, (), "a", True, 0, 2.5)
    ]
    assert result("emit out if v is none { -1 } else { v! };", 4, "x: i64?") == [4]
    assert result("if v is w { emit out w; } else { emit out -1; }", None, "x: i64?") == [-1]
    assert result("if v is w { emit out w; } else { emit out -1; }", 0, "x: i64?") == [0]
    assert result("emit out fold([1, 2, 3], 0, fn(a, b) => a * 10 + b);") == [123]
    assert result("emit out sort_by(v, fn(a) => neg_wrap(a));", (1, 3, 2), "x: list<i64>", "list<i64>") == [
        (3, 2, 1)
    ]
    assert result("emit out i64(v[0]) + i64(v[1]);", "aä", "x: string") == [97 + 228]
    assert result(
        "emit out any(v, fn(a) => any(v, fn(b) => a + b == 7));", (3, 4), "x: list<i64>", "bool"
    ) == [True]


def test_evaluation_is_from_left_to_right() -> None:
    text = """operator f(x: i64) -> (out: i64) {
      fn say(n: i64) -> i64 { emit out n; return n; }
      on x(v) {
        let a = {b: say(1), a: say(2)};
        let l = [say(3), say(4)];
        let m: map<i64, i64> = {say(5): say(6)};
        let s = say(7) + say(8);
        var w: list<i64> = [0, 0];
        w[say(0) - 0] = say(9);
      }
    }"""
    (out,), _ = run(text, [0])
    assert out == [1, 2, 3, 4, 5, 6, 7, 8, 0, 9]


def test_logic_stops_early() -> None:
    assert result("emit out v == 0 or 1 / f64(v) > 2.0;", 0, out="bool") == [True]
    assert result("emit out v != 0 and div.trunc(1, v) > 2;", 0, out="bool") == [False]


# ---------------------------------------------------------------------------------------------- places and ownership


def test_places() -> None:
    text = "var r: {l: list<{n: i64}>, m: map<i64, i64>} = {l: [{n: 1}, {n: 2}], m: {}};"
    assert result(f"{text} r.l[1].n = 7; emit out r.l[0].n * 10 + r.l[1].n;") == [17]
    assert result(f"{text} r.m[5] = 3; r.m[5] = r.m[5] + 1; emit out r.m[5];") == [4]
    assert result(
        f"{text} push(r.l, {{n: 9}}); emit out r.l[2].n; emit out pop(r.l).n; emit out len(r.l);"
    ) == [9, 9, 2]
    assert result("var a: array<i64, 2> = [1, 2]; a[0] = 5; emit out a[0]; emit out a[1];") == [5, 2]
    assert result(
        "var l: list<list<i64>> = [[1], [2]]; push(l[0], 3); emit out len(l[0]); emit out len(l[1]);"
    ) == [2, 1]


def test_an_owner_does_not_see_writes_to_the_other() -> None:
    assert result(
        "var a: list<i64> = [1]; push(a, 2); var b = a; push(b, 3); emit out len(a); emit out len(b);"
    ) == [2, 3]
    assert result("var a: list<i64> = [1]; push(a, 2); var b = a; a[0] = 9; emit out b[0];") == [1]
    nested = (
        "var a: list<list<i64>> = []; var c: list<i64> = [1]; push(c, 2); push(a, c); push(c, 3); emit "
        "out len(a[0]);"
    )
    assert result(nested) == [2]
    record = (
        "var c: list<i64> = []; push(c, 1); var r = {l: c}; push(c, 2); push(r.l, 5); push(r.l, 6); emit "
        "out len(c); emit out len(r.l);"
    )
    assert result(record) == [2, 3]
    assert result(
        "var a: map<i64, list<i64>> = {1: [1]}; push(a[1], 2); var b = a[1]; push(b, 3); emit out len(a[1]);"
    ) == [2]
    assert result(
        "var a: map<i64, list<i64>> = {1: [1]}; push(a[1], 2); var b = get(a, 1, []); push(b, 3); emit "
        "out len(a[1]);"
    ) == [2]
    part = (
        "var a: list<list<i64>> = [[1]]; push(a[0], 2); var b = take(a, 1); push(b[0], 3); emit out "
        "len(a[0]); emit out len(b[0]);"
    )
    assert result(part) == [2, 3]
    choice = (
        "var a: list<i64> = []; push(a, 1); var b = if v == 0 { a } else { [] }; push(b, 2); emit out "
        "len(a); emit out len(b);"
    )
    assert result(choice) == [1, 2]


def test_emitted_items_do_not_change_later() -> None:
    outs = result("var a: list<i64> = []; push(a, 1); emit out a; push(a, 2); emit out a;", out="list<i64>")
    assert outs == [(1,), (1, 2)]
    assert all(type(item) is tuple for item in outs)


def test_frozen_variables_do_not_change_later() -> None:
    text = (
        "operator f(x: i64; $l: list<i64>, $m: map<i64, list<i64>>) -> () { on x(v) { push($l, v); with "
        "l = $m[v] else [] { push(l, v); } } }"
    )
    op = operator(text)
    fire = compile_operator(op).item[0]
    assert fire is not None
    initial = (v.default(op.vars[0].type), v.FrozenMap({1: (7,)}))
    state = list(initial)
    fire(state, 1, ())
    first = freeze_variables(op, state)
    assert first == ((1,), v.FrozenMap({1: (7, 1)}))
    fire(state, 1, ())
    assert first == ((1,), v.FrozenMap({1: (7, 1)}))
    assert initial[1] == v.FrozenMap({1: (7,)})
    assert freeze_variables(op, state) == ((1, 1), v.FrozenMap({1: (7, 1, 1)}))
    assert all(hash(value) for value in first)


def test_constants_and_items_cannot_be_changed_through_a_copy() -> None:
    text = """operator f(x: list<i64>) -> (out: i64) {
      const t: list<i64> = [1, 2];
      on x(v) { var a = t; var b = v; push(a, 3); push(b,
      3); emit out len(t); emit out len(v); emit out len(a); }
    }"""
    assert run(text, [(5,), (5,)])[0][0] == [2, 1, 3, 2, 1, 3]


# ---------------------------------------------------------------------------------------------- with, drop


WITH = "operator f(x: string; $m: map<string, {n: i64, l: list<i64>}>) -> (out: i64)"


def test_with_makes_changes_and_drops_an_entry() -> None:
    text = f"""{WITH} {{ on x(v) {{
        with e = $m[v] else {{n: 0, l: []}} {{ e.n = e.n + 1; push(e.l, e.n); if e.n == 3 {{ drop e; }} }}
        emit out len($m);
    }} }}"""
    (out,), (m,) = run(text, ["a", "b", "a", "a", "c", "a"])
    assert out == [1, 2, 2, 1, 2, 3]
    assert list(m.items()) == [("b", (1, (1,))), ("c", (1, (1,))), ("a", (1, (1,)))]


def test_with_writes_back_however_it_is_left() -> None:
    text = f"""{WITH} {{
      fn touch(ref e: {{n: i64, l: list<i64>}}) -> i64 {{ e.n = e.n + 10; push(e.l, 1); return e.n; }}
      on x(v) {{
        for i in 0 .. 3 {{ with e = $m[v] else {{n: 0,
        l: []}} {{ e.n = e.n + 1; if i == 0 {{ continue; }} if i == 1 {{ break; }} }} }}
        with e = $m[v] {{ emit out touch(e); return; }}
    }} }}"""
    (out,), (m,) = run(text, ["a", "a"])
    assert out == [12, 24]
    assert m == v.FrozenMap({"a": (24, (1, 1))})


def test_with_of_an_absent_entry() -> None:
    with pytest.raises(Trap) as raised:
        run(f"{WITH} {{ on x(v) {{ with e = $m[v] {{ e.n = 1; }} }} }}", ["a"])
    assert (raised.value.code, raised.value.operands) == ("key-missing", ("a",))
    _, (m,) = run(f"{WITH} {{ on x(v) {{ with e = $m[v] else {{n: 0, l: []}} {{ drop e; }} }} }}", ["a"])
    assert m == v.FrozenMap()


def test_float_keys_have_one_zero_and_one_nan() -> None:
    text = (
        "operator f(x: f64; $m: map<f64, i64>) -> (out: i64) { on x(v) { with n = $m[v] else 0 { n = n + "
        "1; } emit out $m[v]; $m[v] = $m[v] + 1; } }"
    )
    (out,), (m,) = run(text, [0.0, -0.0, v.NAN, v.NAN])
    assert out == [1, 3, 1, 3]
    assert repr(m) == "FrozenMap({0.0: 4, nan: 4})"


# ---------------------------------------------------------------------------------------------- functions


def test_reference_parameters_alias_places() -> None:
    text = """operator f(x: i64; $m: map<i64, list<i64>>, $r: {n: i64, l: list<i64>}) -> (out: i64) {
      fn grow(ref l: list<i64>, n: i64) { push(l, n); if n > 0 { grow(l, n - 1); } }
      fn bump(ref n: i64) -> i64 { n = n + 1; return n; }
      on x(v) {
        $m[v] = [];
        grow($m[v], 2); grow($r.l, 1);
        emit out bump($r.n); emit out bump($r.n);
        var n = 5; emit out bump(n); emit out n;
      }
    }"""
    (out,), state = run(text, [7])
    assert out == [1, 2, 6, 6]
    assert state == (v.FrozenMap({7: (2, 1, 0)}), (2, (1, 0)))


def test_a_returned_variable_is_no_alias() -> None:
    text = """operator f(x: i64; $l: list<i64>) -> (out: i64) {
      fn same(l: list<i64>) -> list<i64> = l;
      fn copy(l: list<i64>) -> list<i64> { var c = l; push(c, 0); return c; }
      on x(v) { push($l, v); var a = same($l); push(a, 1); var b = copy(a); push(b,
      2); emit out len($l); emit out len(a); emit out len(b); }
    }"""
    assert run(text, [0])[0][0] == [1, 2, 4]


DEEP = """operator f(x: i64) -> (out: i64) {
  fn down(n: i64) -> i64 { if n == 0 { return 0; } let m = 1 + (0 + (0 + down(n - 1))); return m; }
  on x(v) { emit out down(v); }
}"""


def test_recursion_may_be_as_deep_as_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(DEEP, [20_000])[0][0] == [20_000]
    monkeypatch.setattr(further, "DEEPEST", 3000)
    assert run(DEEP, [2999])[0][0] == [2999]
    with pytest.raises(Trap) as raised:
        run(DEEP, [3000])
    assert raised.value.code == "recursion-depth"
    assert raised.value.span is not None
    assert raised.value.span.text == "down(n - 1)"


def test_recursion_through_sorting_and_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(further, "DEEPEST", 5000)
    text = """operator f(x: i64) -> (out: i64) {
      fn down(n: i64) -> i64 { if n == 0 { return 0; } let l = sort_by([n],
      fn(a) => down(a - 1)); return l[0]; }
      on x(v) { emit out down(v); }
    }"""
    codes: list[str] = []

    def fire() -> None:
        assert run(text, [4999])[0][0] == [4999]
        try:
            run(text, [5000])
        except Trap as raised:
            codes.append(raised.code)

    thread = threading.Thread(target=fire)
    thread.start()
    thread.join()
    assert codes == ["recursion-depth"]


def test_deep_recursion_can_be_interrupted() -> None:
    """Its threads end as well."""
    text = """operator f(x: i64) -> (out: i64) {
      fn down(n: i64) -> i64 { var m = n; while m == 0 { m = n; } return down(n - 1); }
      on x(v) { emit out down(v); }
    }"""
    main = threading.main_thread().ident
    assert main is not None
    before, told = threading.active_count(), list[int]()

    def poll() -> None:
        if not told and threading.active_count() == before + 2:
            told.append(1)
            signal.pthread_kill(main, signal.SIGINT)

    fire = compile_operator(operator(text), poll).item[0]
    assert fire is not None
    handler = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # commands in the background have it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            fire([], 2500, [[]])
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
    assert (len(told), threading.active_count()) == (1, before)


def test_programs_without_recursion_leave_the_limit_alone() -> None:
    before = sys.getrecursionlimit()
    run(
        "operator f(x: i64) -> (out: i64) { fn g(a: i64) -> i64 = a + 1; on x(v) { emit out g(g(v)); } }", [1]
    )
    assert sys.getrecursionlimit() == before


def test_functions_for_views() -> None:
    fn = typed.Fn(
        "pairs", (typed.Param("m", t.Map(t.I64, t.I64), False),), t.List(t.I64), 3,
        typed.Comprehension(
            t.List(t.I64), typed.Apply(t.I64, "+", (typed.Local(t.I64, 1, "k"), typed.Local(t.I64, 2, "w")),
            0), (1, 2), ("k", "w"),
            typed.Local(t.Map(t.I64, t.I64), 0, "m"), None,
        ), False,
    )  # fmt: skip
    call = compile_function((fn,), 0)
    assert call(v.FrozenMap({1: 2, 3: 4})) == (3, 7)
    assert type(call({})) is tuple
    with pytest.raises(TypeError):
        call()
    with pytest.raises(Trap):
        call(v.FrozenMap({(1 << 63) - 1: 1}))


def test_constants() -> None:
    nine = typed.Apply(t.I64, "+", (typed.ConstRef(t.I64, 0, "a"), typed.Literal(t.I64, 4)), 0)
    assert evaluate_const(nine, consts=(5,)) == 9
    loop = typed.Comprehension(
        t.List(t.I64),
        typed.Local(t.I64, 0, "i"),
        (0,),
        ("i",),
        typed.Counted(typed.Literal(t.I64, 0), nine),
        None,
    )
    assert evaluate_const(loop, consts=(-2,), slots=1) == (0, 1)
    assert evaluate_const(typed.MakeMap(t.Bag(t.I64))) == v.FrozenBag()
    text = """operator f(x: i64) -> (out: i64) {
      fn square(a: i64) -> i64 = a * a;
      const a: i64 = square(3); const b: array<i64, 2> = [a + 1, a + 2];
      on x(v) { emit out a; emit out b[v]; }
    }"""
    assert run(text, [1])[0][0] == [9, 11]
    with pytest.raises(Trap) as raised:
        compile_operator(operator("operator f(x: i64) -> () { const a: i64 = div.trunc(1, 0); on x(v) {} }"))
    assert raised.value.code == "division-by-zero"


# ---------------------------------------------------------------------------------------------- traps


def test_a_trap_knows_its_place() -> None:
    found = trap("emit out 1; emit out v + 1;", (1 << 63) - 1)
    assert (found.code, found.operands, found.operator) == ("overflow", ((1 << 63) - 1, 1), "+")
    assert found.span is not None
    assert found.span.text == "v + 1"
    diagnostic = found.diagnostic()
    assert diagnostic.code == "trap-overflow"
    assert diagnostic.message == "the result is out of range: `+` of 9223372036854775807, 1"
    assert diagnostic.span == found.span


@pytest.mark.parametrize(
    ("body", "code", "operands"),
    [
        ("var l: list<i64> = [1]; emit out l[v];", "index-range", (3, 1)),
        ("var l: list<i64> = [1]; l[v] = 2;", "index-range", (3, 1)),
        ("var l: list<i64> = [1]; l[-1] = 2;", "index-range", (-1, 1)),
        ("var l: list<list<i64>> = [[1]]; push(l[v], 2);", "index-range", (3, 1)),
        ('let s = "ab"; emit out i64(s[v]);', "index-range", (3, 2)),
        ("var m: map<i64, i64> = {}; emit out m[v];", "key-missing", (3,)),
        ("var m: map<i64, list<i64>> = {}; push(m[v], 1);", "key-missing", (3,)),
        ("let o: i64? = none; emit out o!;", "optional-empty", ()),
        ("var d: deque<i64> = {}; emit out pop_front(d);", "remove-missing", ()),
        ("emit out div.trunc(v, v - 3);", "division-by-zero", (3, 0)),
        ("emit out [div.trunc(1, i) for i in 0 .. v][0];", "division-by-zero", (1, 0)),
        ("emit out fold([v], 0, fn(a, b) => div.trunc(a, a));", "division-by-zero", (0, 0)),
    ],
)
def test_traps(body: str, code: str, operands) -> None:
    found = trap(body, 3)
    assert (found.code, found.operands) == (code, operands)
    assert found.site is not None
    assert found.diagnostic().code == f"trap-{code}"


def test_the_users_trap() -> None:
    found = trap('if v > 1 { trap "too big"; }', 2)
    assert (found.code, found.text) == ("assert", "too big")
    assert found.diagnostic().message == "too big"


def test_the_first_trap_from_the_left_wins() -> None:
    assert trap("emit out div.trunc(1, v) + (9223372036854775807 + 1);").code == "division-by-zero"


@pytest.mark.parametrize(
    "body",
    [
        "while true { }",
        "for i in 0 .. 10000000 { }",
        "let l = [i for i in 0 .. 10000000];",
        "let n = twice(40);",
    ],
)
def test_loops_and_calls_are_polled(body: str) -> None:
    def poll() -> None:
        polls.append(None)
        if len(polls) == 3:
            raise Trap("deadline")

    polls: list[None] = []
    text = "fn twice(n: i64) -> i64 = if n == 0 { 0 } else { twice(n - 1) + twice(n - 1) };"
    compiled = compile_operator(operator(f"operator f(x: i64) -> () {{ {text} on x(v) {{ {body} }} }}"), poll)
    fire = compiled.item[0]
    assert fire is not None
    with pytest.raises(Trap) as raised:
        fire([], 0, ())
    assert raised.value.diagnostic().message == "the firing took too long"


# ---------------------------------------------------------------------------------------------- handlers


def test_rated_handlers_see_windows() -> None:
    op = operator(
        "operator f(x: i64) -> (y: i64) { first on x[peek 0, pop 0](w) { emit y len(w); } on x[peek 3, "
        "pop 1](w) { emit y w[0] + w[2]; } }"
    )
    body, out = compile_operator(op), []
    assert body.first is not None
    assert body.rated is not None
    body.first([], ((),), (out,))
    body.rated([], ((1, 2, 3),), (out,))
    assert out == [0, 4]
    assert body.item == (None,)


def test_phases_merges_and_marks() -> None:
    phases = compile_operator(
        operator(
            "operator f(a: i64, b: i64) -> (o: i64) { phase 2 on a(v) { emit o v; } phase 1 on b(v) { emit o "
            "-v; } }"
        )
    )
    out: list = []
    for phase in phases.phases:
        phase([], 5, (out,))
    assert out == [5, -5]
    assert phases.item == (None, None)
    text = """type T = {k: i64, n: i64};
    operator f(a: T by k, b: T by k) -> (o: T by k) {
      on merge(a(x), b(y)) { if x is x { emit o x; } if y is y { emit o y; } }
      on mark(k) { mark o k; }
    }"""
    merge = compile_operator(operator(text))
    out = []
    assert merge.merge is not None
    assert merge.mark is not None
    merge.merge([], 1, ((1, 7), None), (out,))
    merge.merge([], 2, ((2, 7), (2, 8)), (out,))
    merge.mark([], 3, (out,))
    assert out == [(1, 7), (2, 7), (2, 8), v.Mark(3)]


def test_handlers_by_port() -> None:
    op = operator(
        "operator f(a: i64, b: i64; $n: i64) -> (o: i64) { on a(v) { $n = v; } on b(v) { emit o $n + v; } }"
    )
    body, state, out = compile_operator(op), [0], []
    first, second = body.item
    assert first is not None
    assert second is not None
    first(state, 4, (out,))
    second(state, 3, (out,))
    assert (state, out) == ([4], [7])


# ---------------------------------------------------------------------------------------------- whole operators


def body_text(name: str) -> str:
    text = (BODIES / name).read_text(encoding="utf-8")
    return text.partition("\n")[2]


def deltas(seed: int, count: int = 120):
    """Random insertions of (key, number), each deleted some time later."""
    rng = random.Random(seed)
    live: list[tuple[str, int]] = []
    for tau in range(count):
        ins = tuple((rng.choice("abc"), rng.randrange(-5, 5)) for _ in range(rng.randrange(3)))
        rng.shuffle(live)
        gone, live = tuple(live[: len(live) // 3]), live[len(live) // 3 :] + list(ins)
        yield (tau, ins, gone), list(live)


@pytest.mark.parametrize("seed", range(5))
def test_group_by_against_recomputation(seed: int) -> None:
    items = list(deltas(seed))
    (out,), (groups,) = run(body_text("a1_group.river"), [item for item, _ in items], name="group")
    relation: Counter = Counter()
    snapshots = {}
    for tau, ins, gone in out:
        relation.update(ins)
        relation.subtract(gone)
        snapshots[tau] = Counter({row: n for row, n in relation.items() if n})
    current: Counter = Counter()
    for (tau, _, _), live in items:
        current = snapshots.get(tau, current)
        rows = defaultdict(list)
        for key, number in live:
            rows[key].append(number)
        assert current == Counter((k, len(ns), sum(ns), min(ns), max(ns)) for k, ns in rows.items())
    assert set(groups) == set(rows)


def test_speed_is_not_lost() -> None:
    """A generous bound: a thousand firings of a keyed count in well under a second."""
    import time

    text = (
        "operator f(x: i64; $m: map<i64, i64>) -> (o: i64) { on x(v) { with n = $m[v] else 0 { n = n + "
        "1; } emit o $m[v]; } }"
    )
    start = time.thread_time()  # however many others there are
    run(text, [i % 10 for i in range(1000)])
    assert time.thread_time() - start < 1.0
