"""The rules of a whole program, each broken once."""

from __future__ import annotations

import pytest

from river.diagnostics import Diagnostic, Rejected, render
from river.il import annotations
from river.il.annotations import Annotations, Fuse, Group, Keys, Parallel, Region
from river.il.graph import End, Graph
from river.il.parse import parse
from river.il.program import Annotation, Program, Use, Variable
from river.il.templates import Library
from river.il.verify import verify
from river.lang import syntax as s
from river.lang import types as t
from river.source import Source

LIBRARY = Library.of({})

HEAD = """river 1;
type R = {k: string, n: i64, at: time};
"""
FORWARD = "operator pass(x: R) -> (o: R) { on x(v) { emit o v; } }\n"
COUNT = """operator count(x: R; $c: map<string, i64>) -> (o: R) {
  on x(v) { with c = $c[v.k] else 0 { c = c + v.n; emit o {k: v.k, n: c, at: v.at}; } } }
"""
JOIN = "operator join(a: R by n, b: R by n) -> (o: R by n) { on merge(a(x), b(y)) { if x is x { emit o x; } } }\n"


def program(text: str) -> Program:
    return parse(Source("test.river", HEAD + text))


def accepted(text: str) -> Graph:
    return verify(program(text), LIBRARY)


def refused(text: str) -> list[str]:
    with pytest.raises(Rejected) as rejected:
        accepted(text)
    for found in rejected.value.diagnostics:
        assert render(found)
    return [d.code for d in rejected.value.diagnostics]


# ----------------------------------------------------------------------------------------------------- what is accepted


def test_a_graph_has_everything_resolved() -> None:
    graph = accepted(
        f"{FORWARD}{COUNT}input a: R;\noutput c: R;\nvar $v: map<string, i64> = {{}};\n"
        "(b) <- pass(a);\n(c, $v) <- count(b, $v);"
    )
    row = t.Record((("k", t.STRING), ("n", t.I64), ("at", t.TIME)))
    assert (graph.inputs, graph.outputs, graph.views, graph.results) == (("a",), ("c",), (), ())
    assert {q.name: (q.type, q.by) for q in graph.queues.values()} == dict.fromkeys("abc", (row, None))
    assert (graph.queues["b"].producer, graph.queues["b"].consumer) == (End(0, 0), End(1, 0))
    assert (graph.queues["a"].producer, graph.queues["c"].consumer) == (None, None)
    assert [(i.name, i.ins, i.outs, i.variables) for i in graph.instances] == [
        ("pass#0", ("a",), ("b",), ()),
        ("count#1", ("b",), ("c",), ("v",)),
    ]
    assert [(v.name, v.type, dict(v.initial)) for v in graph.variables] == [("v", t.Map(t.STRING, t.I64), {})]
    assert graph.deterministic


def test_a_variable_that_is_only_read_stands_on_the_right() -> None:
    read = (
        "operator f(x: R; $n: i64) -> (o: i64) { on x(v) { emit o v.n + $n; } }\ninput a: R; output b: i64;\n"
    )
    assert accepted(f"{read}var $n: i64 = 1;\n(b) <- f(a, $n);").instances[0].variables == ("n",)
    assert refused(f"{read}var $n: i64 = 1;\n(b, $n) <- f(a, $n);") == ["il-variable-written"]


def test_unused_inputs_and_loops_are_fine() -> None:
    accepted(f"{FORWARD}input a: R; input unused: R; output b: R;\n(b) <- pass(a);")
    accepted(
        "operator enter(a: R, b: R) -> (o: R) { phase 1 on a(v) { emit o v; } phase 1 on b(v) { emit o v; } }\n"
        "operator d = std.duplicate<T = R, n = 2>;\ninput a: R; output b: R;\n(q) <- enter(a, back);\n(b, back) <- d(q);"
    )


def test_a_consumer_without_an_order_takes_any() -> None:
    text = f"{FORWARD}operator d = std.identity<T = R, by = n>;\ninput a: R by n; output b: R;\n"
    assert accepted(f"{text}(q) <- d(a);\n(b) <- pass(q);").queues["q"].by == "n"


def test_verifying_again_checks_nothing_again() -> None:
    text = program(f"{FORWARD}{COUNT}operator d = std.duplicate<T = R, n = 2>;\noperator l = lift(d, seq);\n")
    one = verify(text, LIBRARY)
    two = verify(Program((*text.decls, *program("input z: i64;").decls[1:])), LIBRARY)
    assert one.instances == two.instances
    from river.il import verify as module

    before = module._operator.cache_info().misses
    verify(text, LIBRARY)
    assert module._operator.cache_info().misses == before


REWRITTEN = f"""{FORWARD}{COUNT}operator d = std.duplicate<T = R, n = 2>;
operator told(x: R by n) -> (o: R by n) {{ on x(v) {{ emit o v; }} on mark(k) {{ mark o k; }} }}
input a: R; input b: R by n; output c: R; output e: R; output g: R by n;
var $v: map<string, i64> = {{}};
(p, q) <- d(a);
(c, $v) <- count(p, $v);
@Parallel(2) @Region(r, round_robin) (e) <- pass(q);
(g) <- told(b);
"""


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("", "", []),
        ("(c, $v) <- count(p, $v);", "(s) <- pass(p); (c, $v) <- count(s, $v);", []),
        ("(p, q) <- d(a);", "(q, p) <- d(a);", []),
        ("emit o v; } }", "emit o {k: v.k, n: v.n}; } }", ["lang-missing-field"]),
        ("(o: R) { on x(v) { emit o v; } }", "(o: i64) { on x(v) { emit o v.n; } }", ["il-queue-type"]),
        ("on mark(k) { ", "on mark(k) { if k > 1 { mark o k; } ", ["il-mark-counted"]),
        ("(p, q) <- d(a);", "", ["il-unknown-queue", "il-unknown-queue"]),
        ("(c, $v) <- count(p, $v);", "(c) <- count(p, $v);", ["il-variable-written"]),
        ("$v: map<string, i64> =", "$v: map<string, i32> =", ["il-variable-type"]),
        ("var $v: map<string, i64> = {};", "", ["il-unknown-variable"]),
        ("round_robin", "robin", ["il-region"]),
        ("output g: R by n;", "output g: R;", ["il-queue-key"]),
        ("(e) <- pass(q);", "(e) <- pass(p);", ["il-consumers", "il-no-consumer"]),
        ("(e) <- pass(q);", "(e) <- pass(q, q);", ["il-arity"]),
    ],
)  # fmt: skip
def test_of_a_rewriting_all_is_seen_that_is_new(old: str, new: str, codes: list[str]) -> None:
    """What it has of the program before, the same objects, is taken for right; nothing else is."""
    before, text = program(REWRITTEN), program(REWRITTEN.replace(old, new, 1))
    kept = {decl: decl for decl in before.decls}
    after = Program(tuple(kept.get(decl, decl) for decl in text.decls))

    def seen(known: Graph | None) -> Graph | list[Diagnostic]:
        try:
            return verify(after, LIBRARY, known)
        except Rejected as rejected:
            return list(rejected.diagnostics)

    found = seen(verify(before, LIBRARY))
    assert found == seen(None)
    assert [each.code for each in found] == codes if isinstance(found, list) else not codes


def test_a_call_that_gives_several_first_values_is_made_once() -> None:
    from river.il import verify as module

    call, number = s.Call("begin", ()), s.TypeName("i64")
    pairs = tuple((name, Variable(name, number, s.Member(call, name))) for name in ("u", "v"))
    fn = program("fn begin() -> {u: i64, v: i64} { return {u: 1, v: 2}; }")
    before = module._initial.cache_info()
    graph = verify(Program((*fn.decls, *(decl for _, decl in pairs))), LIBRARY)
    assert [(each.name, each.initial) for each in graph.variables] == [("u", 1), ("v", 2)]
    after = module._initial.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (3, 1)


# ------------------------------------------------------------------------------------------------------ what is refused

WELL = f"{FORWARD}{COUNT}{JOIN}input a: R; output b: R; var $v: map<string, i64> = {{}};\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"{WELL}(b) <- pass(a);\ntype R = i64;", ["il-duplicate-name"]),
        (f"{WELL}(b) <- pass(a);\nfn f() -> i64 = 1;\nfn f() -> i64 = 2;", ["il-duplicate-name"]),
        (f"{WELL}(b) <- pass(a);\ninput b: R;", ["il-duplicate-name"]),
        (f"{WELL}(b) <- pass(a);\noperator pass = std.identity<T = R>;", ["il-duplicate-name"]),
        (f"{WELL}(b) <- pass(a);\nvar $v: i64 = 0;", ["il-duplicate-name"]),
        (f"{WELL}(b) <- pas(a);", ["il-unknown-operator"]),
        (f"{WELL}(b) <- pass(c);", ["il-unknown-queue"]),
        (f"{WELL}(b, $w) <- count(a, $w);", ["il-unknown-variable"]),
        (f"{WELL}(b) <- pass(a, a);", ["il-arity"]),
        (f"{WELL}(b, c) <- pass(a);", ["il-arity"]),
        (f"{WELL}(b) <- count(a);", ["il-arity"]),
        (f"{WELL}(b) <- count(a, $v);", ["il-variable-written"]),
        (f"{WELL}(b, $v) <- pass(a);", ["il-variable-written"]),
        (f"{WELL}var $w: i64 = 0;\n(b, $w) <- count(a, $w);", ["il-variable-type"]),
        (f"{WELL}queue q: i64;\n(q) <- pass(a);\n(b) <- pass(q);", ["il-queue-type", "il-queue-type"]),
        (f"{WELL}operator s = std.identity<T = i64>;\n(q) <- pass(a);\n(b) <- s(q);",
         ["il-queue-type", "il-queue-type"]),
        (f"{WELL}operator i = std.identity<T = R, by = n>;\n(b) <- i(a);", ["il-queue-key", "il-queue-key"]),
        (f"{WELL}queue q: R by n;\n(q) <- pass(a);\n(b) <- pass(q);", ["il-queue-key"]),
        (f"{WELL}(b) <- pass(a);\n(b) <- pass(q);", ["il-producers", "il-unknown-queue"]),
        (f"{WELL}(b) <- pass(a);\n(q) <- pass(a);", ["il-consumers", "il-no-consumer"]),
        (f"{WELL}(a) <- pass(q);\n(b) <- pass(a);", ["il-input-produced", "il-unknown-queue"]),
        (f"{WELL}(b) <- pass(a);\n(q) <- pass(b);", ["il-output-consumed", "il-no-consumer"]),
        (f"{WELL}queue q: R;\n(b) <- pass(q);", ["il-no-producer"]),
        (WELL, ["il-no-producer"]),
        (f"{WELL}queue q: R;\n(b) <- pass(a);", ["il-no-producer", "il-no-consumer"]),
        (f"{WELL}(b) <- pass(a);\ninput i: R by m;", ["il-queue-key"]),
        (f"{WELL}(b) <- pass(a);\ninput i: R by k;", ["il-queue-key"]),
        (f"{WELL}(b) <- pass(a);\ninput i: bag<i64>;", ["il-item-type"]),
        (f"{WELL}(b) <- pass(a);\ninput i: S;", ["lang-unknown-type"]),
        (f"{WELL}(b) <- pass(a);\ntype S = list<U>;", ["lang-unknown-type"]),
        (f"{WELL}(b) <- pass(a);\nfn f() -> i64 = 1.5;", ["lang-type-mismatch"]),
        (f"{WELL}(b) <- pass(a);\nvar $w: i64 = true;", ["lang-type-mismatch"]),
        (f"{WELL}(b) <- pass(a);\noperator unused(x: R) -> () {{ on y(v) {{ }} }}", ["lang-unknown-port"]),
    ],
)  # fmt: skip
def test_rules(text: str, codes: list[str]) -> None:
    assert sorted(refused(text)) == sorted(codes)


def test_two_parameters_may_not_be_one_variable() -> None:
    swap = "operator swap(x: R; $a: i64, $b: i64) -> () { on x(v) { $a = $b; $b = v.n; } }\ninput a: R;\n"
    assert refused(f"{swap}var $v: i64 = 0;\n($v, $v) <- swap(a, $v, $v);") == ["il-variable-repeated"]
    two = f"{swap}var $v: i64 = 0; var $w: i64 = 0;\n"
    assert refused(f"{two}($w, $v) <- swap(a, $v, $w);") == ["il-variable-written"]
    assert accepted(f"{two}($v, $w) <- swap(a, $v, $w);").instances[0].variables == ("v", "w")


def test_all_errors_are_found_at_once_with_their_neighbourhood() -> None:
    with pytest.raises(Rejected) as rejected:
        accepted(f"{WELL}(b) <- pass(a);\n(q) <- pass(a);\n(r) <- pas(q);\ninput i: R by k;")
    found = {d.code: d for d in rejected.value.diagnostics}
    assert set(found) == {"il-consumers", "il-unknown-operator", "il-queue-key"}
    assert [n.message for n in found["il-consumers"].notes] == [
        "declared here",
        "consumed here",
        "consumed here",
    ]
    assert found["il-unknown-operator"].help == "did you mean `pass`?"


# ---------------------------------------------------------------------------------------------------- views and unions

VIEWED = f"""{COUNT}input a: R; queue b: R; operator sink(x: R) -> () {{ on x(v) {{ }} }}
var $v: map<string, i64> = {{}};
(b, $v) <- count(a, $v);
() <- sink(b);
"""


def test_views() -> None:
    entry = "fn rows_of(k: string, n: i64) -> list<i64> = [n];\n"
    whole = "fn rows_of(m: map<string, i64>) -> list<i64> = values(m);\n"
    for fn in (entry, whole):
        (view,) = accepted(f"{VIEWED}{fn}output t: i64 = rows($v, rows_of);").views
        assert (view.name, view.variable, view.type, view.fns[view.function].name) == (
            "t",
            "v",
            t.I64,
            "rows_of",
        )
    assert refused(f"{VIEWED}{entry}output t: string = rows($v, rows_of);") == ["il-view"]
    assert refused(f"{VIEWED}{entry}output t: i64 = rows($v, row_of);") == ["il-view"]
    assert refused(f"{VIEWED}{entry}output t: i64 = rows($w, rows_of);") == ["il-unknown-variable"]
    assert refused(f"{VIEWED}fn rows_of(n: i64) -> list<i64> = [n];\noutput t: i64 = rows($v, rows_of);") == [
        "il-view"
    ]
    assert refused(
        f"{VIEWED}fn rows_of(ref m: map<string, i64>) -> list<i64> = values(m);\noutput t: i64 = rows($v, rows_of);"
    ) == ["il-view"]
    assert refused(
        f"{VIEWED}fn rows_of(k: string, n: i64) -> list<R> {{ return []; }}\noutput t: R by n = rows($v, rows_of);"
    ) == ["il-view"]


def test_unions() -> None:
    two = "var $a: map<string, i64> = {}; var $b: map<string, i64> = {}; var $c: i64 = 0; var $d: i64 = 0;\n"
    (union,) = accepted(f"{two}result $v = union($a, $b);").results
    assert (union.name, union.parts) == ("v", ("a", "b"))
    assert refused(f"{two}result $v = union($a, $e);") == ["il-unknown-variable"]
    assert refused(f"{two}result $v = union($c, $d);") == ["il-result"]
    assert refused(f"{two}result $v = union($a, $c);") == ["il-result", "il-result"]
    assert refused(f"{two}result $v = union($a, $a);") == ["il-result"]
    assert refused(f"{two}result $a = union($a, $b);") == ["il-duplicate-name"]


def test_a_view_of_a_union_is_refused_by_what_it_is() -> None:
    text = """var $a: map<string, i64> = {}; result $v = union($a);
    fn rows_of(m: map<string, i64>) -> list<i64> = values(m); output t: i64 = rows($v, rows_of);"""
    with pytest.raises(Rejected, match=r"`\$v` is kept in parts"):
        accepted(text)


# ---------------------------------------------------------------------------------------------------------------- marks


def marks(operator: str) -> list[str]:
    """The codes for an operator `f` from R by n to R by n (or by at)."""
    text = f"{operator}\ninput a: R by n; output b: R by n;\n@Steady() (b) <- f(a);"
    try:
        accepted(text)
    except Rejected as rejected:
        return [d.code for d in rejected.diagnostics]
    return []


@pytest.mark.parametrize(
    "body",
    [
        "on x(v) { emit o v; }",
        "on x(v) { let w = v; emit o w; }",
        'on x(v) { let key = v.n; if key > 0 { emit o {k: "", n: key, at: v.at}; } }',
        "fn send(v: R, n: i64) { emit o {k: v.k, n: n, at: v.at}; } on x(v) { send(v, v.n); }",
        'on merge(x(v)) { emit o {k: "", n: key, at: v!.at}; }',
        "on merge(x(v)) { if v is v { emit o v; } }",
        "on x(v) { emit o {k: v.k, n: v.n + 1, at: v.at}; } on mark(k) { mark o k + 1; }",
        "on x[pop 1](v) { emit o v[0]; } on mark(k) { mark o k; }",
        "on x(v) { }",
    ],
)
def test_marks_follow_the_key(body: str) -> None:
    assert marks(f"operator f(x: R by n) -> (o: R by n) {{ {body} }}") == []


@pytest.mark.parametrize(
    "body",
    [
        "on x(v) { emit o {k: v.k, n: v.n + 1, at: v.at}; }",
        "on x(v) { emit o {k: v.k, n: 7, at: v.at}; }",
        "on x(v) { var w = v; w.n = 3; emit o w; }",
        "fn send(v: R, n: i64) { emit o {k: v.k, n: n, at: v.at}; } on x(v) { send(v, v.n); send(v, 0); }",
        "on x[pop 1](v) { emit o v[0]; }",
        "phase 1 on x(v) { emit o v; }",
    ],
)
def test_another_key_needs_its_own_marks(body: str) -> None:
    assert marks(f"operator f(x: R by n) -> (o: R by n) {{ {body} }}") == ["il-mark"]


def test_marks_of_other_operators() -> None:
    extern = 'operator f(x: R by n) -> (o: R by n) = extern python "m:f";'
    assert marks(extern) == ["il-mark"]
    unordered = "operator f(x: R) -> (o: R by n) { on x(v) { emit o v; mark o v.n; } }\ninput a: R; output b: R by n;\n"
    assert accepted(f"{unordered}(b) <- f(a);").queues["b"].by == "n"  # it makes an order of its own


# ---------------------------------------------------------------------------------------------------------- determinism


LET_GO = (
    "fn go(ref w: deque<R>, end: i64) { while len(w) > 0 and front(w).n < end { emit o pop_front(w); } } "
)
STOPS = (
    "fn go(ref w: deque<R>, end: i64) { while len(w) > 0 { let n = front(w).n + 1; if n > 99 { break; } if n >= end { break; }"
    " while len(w) > 0 { if front(w).n >= n { break; } emit o pop_front(w); } } } "
)
COME = "on x(v) { go($w, v.n); push_back($w, v); } "
TOLD = "on mark(k) { go($w, k); mark o k; }"


def counted(body: str) -> list[str]:
    text = (
        f"operator f(x: R by n; $w: deque<R>) -> (o: R by n) {{ {body} }}\ninput a: R by n; output b: R by n;"
    )
    try:
        accepted(f"{text} var $w: deque<R> = {{}}; (b, $w) <- f(a, $w);")
    except Rejected as rejected:
        return [d.code for d in rejected.diagnostics]
    return []


@pytest.mark.parametrize(
    "body",
    [
        f"{LET_GO}{COME}{TOLD}",
        f"{STOPS}{COME}{TOLD}",
        f"{LET_GO}{COME}on mark(k) {{ go($w, k); mark o k + 1; }}",
        f"{LET_GO}{COME}on mark(k) {{ go($w, k); if k == 9223372036854775807 {{ push_back($w, front($w)); }} mark o k; }}",
        f"{LET_GO.replace('< end', '< end or end == 9223372036854775807')}{COME}{TOLD}",
        f"{LET_GO.replace('front(w).n < end', '(front(w).n < end or end > 100)')}{COME}{TOLD}",
        f"{LET_GO}on merge(x(v)) {{ go($w, key); push_back($w, v!); }} {TOLD}",
        "on x(v) { push_back($w, v); emit o v; } on mark(k) { mark o k; }",
    ],
)
def test_at_marks_an_operator_may_let_go_of_what_is_before_them(body: str) -> None:
    assert counted(body) == []


@pytest.mark.parametrize(
    "body",
    [
        'on x(v) { push_back($w, v); } on mark(k) { emit o {k: "", n: k, at: time(0)}; mark o k; }',  # something for each mark
        f"{LET_GO}on x(v) {{ push_back($w, v); }} {TOLD}",  # items are not told what marks tell
        f"{LET_GO}on x(v) {{ push_back($w, v); go($w, v.n); }} {TOLD}",  # too late
        f"{LET_GO}on x(v) {{ go($w, v.n + 1); push_back($w, v); }} {TOLD}",  # up to something else
        f"{LET_GO}{COME}on mark(k) {{ mark o k; go($w, k); }}",  # what is sent is below the mark
        f"{LET_GO}{COME}on mark(k) {{ go($w, k); clear($w); mark o k; }}",
        f"{LET_GO}{COME}on mark(k) {{ go($w, k); if k == 7 {{ clear($w); }} mark o k; }}",
        f"{LET_GO}{COME}on mark(k) {{ go($w, k); if k > 7 {{ mark o k; }} }}",  # the last mark is missing
        f"{LET_GO}{COME}on mark(k) {{ go($w, k); mark o k - 1; }}",
        f"{LET_GO.replace('while', 'if')}{COME}{TOLD}",  # one for each mark
        f"{LET_GO.replace('emit o pop_front(w);', 'emit o pop_front(w); break;')}{COME}{TOLD}",
        f"{LET_GO.replace('emit o pop_front(w);', 'emit o pop_front(w); return;')}{COME}{TOLD}",
        f"{LET_GO.replace('emit o pop_front(w)', 'var v = pop_front(w); v.n = end; emit o v')}{COME}{TOLD}",  # it knows the mark
        f"{LET_GO.replace('< end', '> end')}{COME}{TOLD}",
        f"{LET_GO.replace('< end', '!= end')}{COME}{TOLD}",
        f"{LET_GO.replace('front(w).n <', 'pop_front(w).n <')}{COME}{TOLD}",  # to look at an item takes it
        f"{STOPS.replace('n >= end', 'n < end')}{COME}{TOLD}",
        f"{STOPS.replace('let n = front(w).n + 1;', 'let n = pop_front(w).n + 1;')}{COME}{TOLD}",
        f"{STOPS.replace('n >= end', 'n >= end and div.trunc(1, n) == 0')}{COME}{TOLD}",  # traps at the earlier mark alone
        "on x[peek 2, pop 1](v) { push_back($w, v[0]); } on mark(k) { mark o k; }",
    ],
)
def test_what_is_done_at_marks_must_not_tell_how_many_there_are(body: str) -> None:
    assert counted(body) == ["il-mark-counted"]


@pytest.mark.parametrize("forget", ["$now = none;", ""])
def test_an_instant_that_is_over_is_sent_once(forget: str) -> None:
    over = f"if $now is now {{ if now < END {{ emit o now; {forget} }} }}"
    text = (
        f"operator f(x: R by n; $now: i64?) -> (o: i64) {{ on x(v) {{ {over.replace('END', 'v.n')} $now = v.n; }} "
        f"on mark(k) {{ {over.replace('END', 'k or k == 9223372036854775807')} }} }}\n"
        "input a: R by n; output b: i64; var $now: i64? = none; (b, $now) <- f(a, $now);"
    )
    assert accepted(text) if forget else refused(text) == ["il-mark-counted"]


def test_what_keeps_a_program_from_being_deterministic_is_named() -> None:
    either = "operator either(a: R, b: R) -> (o: R) { on a(v) { emit o v; } on b(v) { emit o v; } }\n"
    graph = accepted(f"{either}input a: R; input b: R; output c: R;\n(c) <- either(a, b);")
    assert not graph.deterministic
    assert [(r.code, "`either`" in r.message) for r in graph.remarks] == [("il-not-deterministic", True)]
    shared = accepted(
        f"{COUNT}input a: R; input b: R; output c: R; output d: R; var $v: map<string, i64> = {{}};\n"
        "(c, $v) <- count(a, $v);\n(d, $v) <- count(b, $v);"
    )
    assert not shared.deterministic
    assert "`$v` is shared" in shared.remarks[0].message
    merged = accepted(f"{JOIN}input a: R by n; input b: R by n; output c: R by n;\n(c) <- join(a, b);")
    assert merged.deterministic


# ---------------------------------------------------------------------------------------------------------- annotations


def use(text: str) -> Use:
    (found,) = program(f"{text} (b) <- pass(a);").uses
    return found


def test_annotations_are_read() -> None:
    text = "@Fuse(1) @Parallel(4) @Commutative() @Keys(k, n) @Group(g) @Region(r1, hash, k) @Region(r2, split) @Mine(3)"
    found = annotations.annotated(use(text))
    assert found == Annotations(
        Fuse("1"),
        Parallel(4),
        commutative=True,
        keys=Keys(("k", "n")),
        group=Group("g"),
        regions=(Region("r1", "hash", ("k",)), Region("r2", "split")),
        unknown=(Annotation("Mine", (s.Int(3),)),),
    )
    assert annotations.annotated(use("@Parallel()")).parallel == Parallel()
    known = [annotations.read(a) for a in use(text).annotations]
    assert [annotations.annotation(k) for k in known if k is not None] == list(use(text).annotations[:-1])
    assert annotations.without(use("@Fuse(1) @Group(g)"), "Fuse") == use("@Group(g)")


@pytest.mark.parametrize(
    "annotation",
    ["@Fuse()", "@Fuse(a, b)", "@Parallel(0)", "@Parallel(n)", "@Commutative(1)", "@Keys()", "@Keys(1)", "@Keys(k + 1)",
     "@Apart()", "@Group()", "@Loop()", "@Region(r)", "@Region(r, 1)"],
)  # fmt: skip
def test_wrong_arguments_of_annotations(annotation: str) -> None:
    assert refused(f"{WELL}{annotation} (b) <- pass(a);") == ["il-annotation-argument"]


TWO = f"{FORWARD}input a: R; output c: R;\n"


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        ("@Parallel(2) @Region(r, seqno, k)", "@Parallel(2) @Region(r, seqno, k)", []),
        ("@Parallel(2) @Region(r, seqno, k)", "@Region(r, seqno, k)", []),
        ("@Region(r, seqno, k)", "@Region(q, round_robin)", []),
        ("@Region(r, hash, k)", "", ["il-region"]),
        ("@Region(r, seqno, k)", "@Region(r, seqno_marks, k)", ["il-region"]),
        ("@Region(r, seqno, k)", "@Region(r, seqno, n)", ["il-region"]),
        ("@Parallel(2) @Region(r, seqno)", "@Parallel(3) @Region(r, seqno)", ["il-region"]),
        ("@Region(r, seqno, m)", "@Region(r, seqno, m)", ["il-annotation-key"]),
        ("@Region(r, seqno, k) @Exits(r, unordered)", "", []),
        ("@Region(r, combine)", "@Region(r, combine) @Exits(r, seqno)", ["il-region"]),
        ("@Region(r, seqno, k)", "@Region(r, seqno, k) @Exits(r, unordered)", []),
        ("@Region(r, seqno, k) @Exits(r, seqno)", "@Region(r, seqno, k)", ["il-region"]),
        ("@Region(r, seqno, k) @Exits(r, seqno, seqno)", "", ["il-region"]),
        ("@Region(r, seqno, k) @Exits(q, seqno)", "", ["il-region"]),
        ("@Region(r, seqno, k) @Exits(r, time_merge)", "", ["il-region"]),
        ("@Region(r, unordered) @Exits(r, seqno)", "", ["il-region"]),
        ("@Region(r, seqno, k) @Exits(r)", "", ["il-annotation-argument"]),
    ],
)
def test_regions_are_checked(first: str, second: str, codes: list[str]) -> None:
    text = f"{TWO}{first} (b) <- pass(a);\n{second} (c) <- pass(b);"
    if codes:
        assert refused(text) == codes
    else:
        assert accepted(text).instances


READ = {
    "in the order of the file": ("@Parallel(2) @Region(s, seqno)", "", None),
    "in the region of who takes it": ("@Region(r, combine)", "@Region(r, combine)", None),
    "both": ("@Region(r, combine) @Region(s, seqno)", "@Region(r, combine) @Region(q, round_robin)", None),
    "strategy": (
        "@Region(s, round_robin)",
        "",
        "`round_robin` is no way to read the input `a`",
    ),
    "keys": ("@Region(s, seqno, k)", "", "`seqno` by keys is no way to read the input `a`"),
    "with operators": (
        "@Region(r, seqno)",
        "@Region(r, seqno, k)",
        "the region `r` of the input `a` has operators",
    ),
    "who takes it": (
        "@Region(r, combine)",
        "",
        "what takes the items of `a` is not in the region `r`, which gets its blocks",
    ),
    "no input": ("", "@Region(r, combine)", "`pass` is in the region `r` of blocks, and no input is"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_regions_of_inputs_are_checked(name: str) -> None:
    before, use, message = READ[name]
    text = f"{FORWARD}{before} input a: R; output b: R;\n{use} (b) <- pass(a);"
    if message is None:
        assert accepted(text).instances
        return
    with pytest.raises(Rejected) as rejected:
        accepted(text)
    assert [(each.code, each.message) for each in rejected.value.diagnostics] == [("il-region", message)]
    assert refused(f"{FORWARD}@Region(r) input a: R; output b: R; (b) <- pass(a);") == [
        "il-annotation-argument"
    ]


def test_annotations_of_uses_are_checked() -> None:
    assert refused(f"{WELL}@Keys(k, m) (b) <- pass(a);") == ["il-annotation-key"]
    assert refused(f"{WELL}@Fuse(1) @Fuse(2) (b) <- pass(a);") == ["il-annotation-repeated"]
    deltas = (
        "type D = {tau: time, ins: list<R>, del: list<R>};\noperator i = std.identity<T = D, by = tau>;\n"
        "input a: D by tau; output b: D by tau;\n"
    )
    assert accepted(f"{deltas}@Keys(k) (b) <- i(a);").instances
    assert refused(f"{deltas}@Keys(tau) (b) <- i(a);") == ["il-annotation-key"]
    assert accepted(f"{deltas}@Apart(k) (b) <- i(a);").instances
    assert refused(f"{deltas}@Apart(tau) (b) <- i(a);") == ["il-annotation-key"]
