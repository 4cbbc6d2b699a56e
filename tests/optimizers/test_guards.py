"""What passes refuse to do, and what they say of it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from calculus import outcomes
from optimizers import Expand, Fission, Fusion, Hoisting, Placement
from river.il.annotations import annotated
from river.il.erase import erase, inputs
from river.il.observe import Observation, observe
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.rows import rowwise
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.passes import apply
from river.platform import Platform
from river.source import Source
from river.testing.pass_laws import check_pipeline

LIBRARY = Library.of({})
HEAD = """river 1;
type T = {k: string, n: i64};
type E = {tau: i64, k: string};
type D = {tau: i64, ins: list<T>, del: list<T>};
operator same(x: T) -> (out: T) { on x(t) { emit out t; } }
operator count(x: T; $v: map<string, i64>) -> (out: T) { on x(t) { with c = $v[t.k] else 0 { c = c + 1; } emit out t; } }
"""


def remarks(text: str, *passes: Any, cores: int = 2) -> list[str]:
    program = parse(Source("p.river", HEAD + text))
    return [r.message for r in apply(program, passes, Platform(cores), LIBRARY).remarks]


FISSION = {
    "two inputs": (
        (
            "operator f(x: T, y: T) -> (a: T) { phase 1 on x(t) { emit a t; } phase 1 on y(t) { emit a t; } }"
            " input p: T; input r: T; output q: T; @Parallel() (q) <- f(p, r);"
        ),
        "`f` has 2 inputs, which are not deltas that it joins",
    ),
    "rated": (
        (
            "operator f(x: T) -> (a: T) { on x[pop 2](t) { if t[0].n > 1 { emit a t[0]; } } }"
            " input p: T; output q: T; @Parallel() (q) <- f(p);"
        ),
        "`f` does not send as many items for each window",
    ),
    "own marks": (
        (
            "operator f(x: E by tau) -> (a: E by tau) { on x(t) { emit a t; } on mark(k) { mark a k; } }"
            " input p: E by tau; output q: E by tau; @Parallel() (q) <- f(p);"
        ),
        "`f` acts on marks, of which each replica would see its own",
    ),
    "sent marks": (
        (
            "operator f(x: T; $n: i64) -> (a: E by tau) { on x(t) { $n = $n + 1; emit a {tau: $n, k: t.k}; mark a $n; } }"
            " var $n: i64 = 0; input p: T; output q: E by tau; @Parallel() (q, $n) <- f(p, $n);"
        ),
        "`f` sends marks of its own",
    ),
    "shared": (
        (
            "var $v: map<string, i64> = {}; input p: T; output q: T; input r: T; output s: T;"
            " @Parallel() (q, $v) <- count(p, $v); (s, $v) <- count(r, $v);"
        ),
        "`count` shares `$v` with another operator",
    ),
    "not empty": (
        'var $v: map<string, i64> = {"a": 1}; input p: T; output q: T; @Parallel() (q, $v) <- count(p, $v);',
        "`count` has `$v`, which is not empty at first",
    ),
    "loop": (
        (
            "operator both(x: T, y: T) -> (a: T, b: T) { on x(t) { emit a t; emit b t; } on y(t) { emit a t; } }"
            " operator f(x: T) -> (out: T) { on x(t) { if t.n > 1 { emit out t; } } }"
            " input p: T; output q: T; (q, r) <- both(p, s); @Parallel() (s) <- f(r);"
        ),
        "`f` is part of a loop",
    ),
    "order begins": (
        (
            "operator f(x: E) -> (a: E by tau) { on x(t) { emit a t; } } input p: E; output q: E by tau;"
            " @Parallel() (q) <- f(p);"
        ),
        "`f` begins or ends an order of its items",
    ),
    "ordered and keyed": (
        (
            "operator f(x: E by tau; $v: map<string, i64>) -> (a: E by tau)"
            " { on x(t) { with c = $v[t.k] else 0 { c = c + 1; } emit a t; } }"
            " var $v: map<string, i64> = {}; input p: E by tau; output q: E by tau; @Parallel() (q, $v) <- f(p, $v);"
        ),
        "`f` reads items in the order of `tau`, of which two with equal `tau` would change places",
    ),
    "ends an order": (
        (
            "operator f(x: E by tau; $v: map<string, i64>) -> () { on x(t) { with c = $v[t.k] else 0 { c = c + 1; } } }"
            " var $v: map<string, i64> = {}; input p: E by tau; @Parallel() ($v) <- f(p, $v);"
        ),
        "`f` ends an ordered queue and sends nothing",
    ),
    "whole deltas": (
        (
            "operator f(d: D by tau; $v: map<string, i64>) -> (a: D by tau) { on d(x) { var n = 0;"
            " for r in x.ins { with c = $v[r.k] else 0 { c = c + 1; } n = n + 1; }"
            " if n > 1 { emit a {tau: x.tau, ins: x.ins, del: []}; } } }"
            " var $v: map<string, i64> = {}; input p: D by tau; output q: D by tau; @Parallel() (q, $v) <- f(p, $v);"
        ),
        "`f` cannot be given parts of a delta: it looks at the rows of an instant together",
    ),
    "rows in order": (
        (
            "operator f(d: D by tau; $v: map<string, i64>) -> (a: D by tau) { on d(x) {"
            " for r in x.ins { with c = $v[r.k] else 0 { c = c + 1; } }"
            " emit a {tau: x.tau, ins: x.ins, del: []}; } }"
            " operator last(d: D by tau; $n: i64) -> (a: D by tau) { on d(x) { for r in x.ins { $n = r.n; } emit a x; } }"
            " var $v: map<string, i64> = {}; var $n: i64 = 0; input p: D by tau; output q: D by tau;"
            " @Parallel() (r, $v) <- f(p, $v); (q, $n) <- last(r, $n);"
        ),
        "`last` may read the order of rows within an instant, which replicas would change",
    ),
}


@pytest.mark.parametrize("name", FISSION)
def test_fission_says_why_not(name: str) -> None:
    text, reason = FISSION[name]
    assert remarks(text, Fission()) == [f"no fission: {reason}"]
    assert remarks(text, Fission(), cores=1) == []


SINKS = (
    "operator last(x: T; $n: i64) -> () { on x(t) { $n = t.n; } }"
    " operator log(x: T; $n: i64) -> (out: T) { on x(t) { $n = $n +% t.n; emit out t; } }"
    " operator late(x: E by tau; $n: i64) -> () { on x(t) { $n = $n +% 1; } }"
    " operator some(x: T) -> (out: T) { on x(t) { if t.n > 1 { emit out t; } } }"
    " operator ordered(x: E by tau) -> (out: E by tau) { on x(t) { emit out t; } }"
    " var $n: i64 = 0; "
)
STRATEGIES = {
    "an output": ("input p: T; output q: T; @Parallel(2) (q) <- some(p);", "seqno_marks"),
    "an output, one for each": ("input p: T; output q: T; @Parallel(2) (q) <- same(p);", "round_robin"),
    "a sink that reads order": (
        "input p: T; @Parallel(2) (r) <- some(p); ($n) <- last(r, $n);",
        "seqno_marks",
    ),
    "a sink that may": (
        "input p: T; @Parallel(2) (r) <- some(p); @Commutative() ($n) <- last(r, $n);",
        "unordered",
    ),
    "a sink that reads order, one for each": (
        "input p: T; @Parallel(2) (r) <- same(p); ($n) <- last(r, $n);",
        "round_robin",
    ),
    "a sink that may, one for each": (
        "input p: T; @Parallel(2) (r) <- same(p); @Commutative() ($n) <- last(r, $n);",
        "unordered",
    ),
    "who commutes, but sends": (
        "input p: T; output q: T; @Parallel(2) (r) <- some(p); @Commutative() (q, $n) <- log(r, $n);",
        "seqno_marks",
    ),
    "an ordered queue": (
        "input p: E by tau; @Parallel(2) (r) <- ordered(p); @Commutative() ($n) <- late(r, $n);",
        "time_merge",
    ),
    "a key": (
        "input p: T; output q: T; var $v: map<string, i64> = {}; @Parallel(2) (q, $v) <- count(p, $v);",
        "seqno, k",
    ),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_how_fission_keeps_the_order(name: str) -> None:
    """What is sent in any order goes only to who says that the order does not matter."""
    text, strategy = STRATEGIES[name]
    program = parse(Source("p.river", HEAD + SINKS + text))
    made = apply(program, (Fission(),), Platform(2), LIBRARY)
    assert f"@Region(r1, {strategy})" in pretty(made.program)
    assert made.remarks == ()


def test_regions_of_one_core_are_not_formed() -> None:
    text = "input p: T; output q: T; @Parallel() (q) <- same(p);"
    program = parse(Source("p.river", HEAD + text))
    assert apply(program, (Fission(),), Platform(1), LIBRARY).program == program
    assert "@Parallel(2)" in pretty(apply(program, (Fission(),), Platform(2), LIBRARY).program)


FUSION = {
    "extern": (
        (
            'operator f(x: T) -> (out: T) = extern python "m:f"; input p: T; output q: T;'
            " @Fuse(1) (r) <- same(p); @Fuse(1) (q) <- f(r);"
        ),
        "`same` and `f` stay apart: the body of `f` is not text",
    ),
    "circle": (
        (
            "operator both(x: T, y: T) -> (a: T, b: T) { on x(t) { emit a t; emit b t; } on y(t) { emit a t; } }"
            " input p: T; output q: T; @Fuse(1) (q, r) <- both(p, s); @Fuse(1) (s) <- same(r);"
        ),
        "`same` and `both` stay apart: they feed one another in a circle",
    ),
    "region": (
        "input p: T; output q: T; @Fuse(1) @Region(r1, replica) (r) <- same(p); @Fuse(1) (q) <- same(r);",
        "`same` and `same` stay apart: a border of a parallel region is between them",
    ),
    "groups": (
        "input p: T; output q: T; @Fuse(1) @Group(a) (r) <- same(p); @Fuse(1) @Group(b) (q) <- same(r);",
        "`same` and `same` stay apart: they are placed in different groups",
    ),
    "rated": (
        (
            "operator f(x: T) -> (a: T) { on x[pop 2](t) { emit a t[0]; } } input p: T; output q: T;"
            " @Fuse(1) (r) <- f(p); @Fuse(1) (q) <- same(r);"
        ),
        "`f` and `same` stay apart: `f` fires at stated rates",
    ),
    "merge": (
        (
            "operator f(x: E by tau, y: E by tau) -> (a: E by tau) { on merge(x(s), y(t)) { if s is s { emit a s; } } }"
            " operator pass(x: E by tau) -> (out: E by tau) { on x(t) { emit out t; } }"
            " input p: E by tau; input o: E by tau; output q: E by tau; @Fuse(1) (r) <- pass(p); @Fuse(1) (q) <- f(r, o);"
        ),
        "`pass` and `f` stay apart: `f` waits for several inputs",
    ),
    "push": (
        (
            "operator f(x: T) -> (out[push 1]: T) { on x(t) { emit out t; } } input p: T; output q: T;"
            " @Fuse(1) (r) <- same(p); @Fuse(1) (q) <- f(r);"
        ),
        "`same` and `f` stay apart: they state how many items they send",
    ),
    "other ordered input": (
        (
            "operator f(x: E by tau, y: T) -> (a: E by tau) { on x(t) { emit a t; } on y(t) { } }"
            " operator pass(x: E by tau) -> (out: E by tau) { on x(t) { emit out t; } }"
            " input p: E by tau; input o: T; output q: E by tau; @Fuse(1) (r) <- pass(p); @Fuse(1) (q) <- f(r, o);"
        ),
        "`pass` and `f` stay apart: `f` has another input, which would have to keep step with the marks of the first",
    ),
}

TURNS = (
    "operator turns(x: T, y: T) -> (a: T) { phase 1 on x(t) { emit a t; } phase 1 on y(t) { emit a t; } }"
    " input p: T; input o: T; output q: T; "
)
FUSION |= {
    "path": (
        (
            "operator two(x: T) -> (a: T, b: T) { on x(t) { emit a t; emit b t; } }"
            " operator either(x: T, y: T) -> (a: T) { on x(t) { emit a t; } on y(t) { emit a t; } } input p: T; output q: T;"
            " @Fuse(1) (r, s) <- two(p); (u) <- same(s); @Fuse(1) (q) <- either(r, u);"
        ),
        "`two` and `either` stay apart: another path leads from one to the other",
    ),
    "variable": (
        (
            "var $v: map<string, i64> = {}; input p: T; output q: T;"
            " @Fuse(1) (r, $v) <- count(p, $v); @Fuse(1) (q, $v) <- count(r, $v);"
        ),
        "`count` and `count` stay apart: both use `$v`",
    ),
    "a stamp of several": (  # that another operator sets back, which is a mistake where the queue between them is read
        (
            "operator stamp(x: T; $n: i64) -> (a: E by tau) { on x(t) { $n = $n + 1; emit a {tau: $n, k: t.k}; mark a $n; } }"
            " operator set(x: T; $n: i64) -> (a: T) { on x(t) { $n = t.n; emit a t; } }"
            " operator loose(x: E by tau) -> (a: T) { on x(e) { emit a {k: e.k, n: 0}; } }"
            " var $n: i64 = 0; input p: T; output q: T; input r: T; output s: T; (s, $n) <- set(r, $n);"
            " @Fuse(1) (m, $n) <- stamp(p, $n); @Fuse(1) (q) <- loose(m);"
        ),
        "`stamp` and `loose` stay apart: others use `$n`, too: whether what `stamp` sends is in order is seen between them only",
    ),
    "a stamp that an item says": (  # in an order that is a mistake where the queue between them is read
        (
            "operator stamp(x: T) -> (a: E by tau) { on x(t) { emit a {tau: t.n, k: t.k}; } }"
            " operator loose(x: E by tau) -> (a: T) { on x(e) { emit a {k: e.k, n: 0}; } }"
            " input p: T; output q: T; @Fuse(1) (m) <- stamp(p); @Fuse(1) (q) <- loose(m);"
        ),
        "`stamp` and `loose` stay apart: whether the stamps that `stamp` makes of what items say ascend shows between them only",
    ),
    "a stamp that is computed": (
        (
            "operator later(x: E by tau) -> (a: E by tau)"
            " { on x(e) { emit a {tau: e.tau + len(e.k), k: e.k}; } on mark(t) { mark a t; } }"
            " operator loose(x: E by tau) -> (a: T) { on x(e) { emit a {k: e.k, n: 0}; } }"
            " input p: E by tau; output q: T; @Fuse(1) (m) <- later(p); @Fuse(1) (q) <- loose(m);"
        ),
        "`later` and `loose` stay apart: whether the stamps that `later` makes of what items say ascend shows between them only",
    ),
    "reads in turns": (
        f"{TURNS} @Fuse(1) (r) <- turns(p, o); @Fuse(1) (q) <- same(r);",
        "`turns` and `same` stay apart: `turns` reads its inputs in turns",
    ),
    "waits in turns": (
        f"{TURNS} @Fuse(1) (r) <- same(p); @Fuse(1) (q) <- turns(r, o);",
        "`same` and `turns` stay apart: `turns` waits for its inputs in turns",
    ),
    "marks of both": (
        (
            "operator two(x: E by tau) -> (a: E by tau, b: E by tau) { on x(t) { emit a t; emit b t; } }"
            " operator f(x: E by tau, y: E by tau) -> (a: T) { on x(t) { emit a {k: t.k, n: 1}; } on y(t) { } }"
            " input p: E by tau; output q: T; @Fuse(1) (r, s) <- two(p); @Fuse(1) (q) <- f(r, s);"
        ),
        "`two` and `f` stay apart: `f` waits for the marks of both its inputs",
    ),
    "combined": (
        (
            "operator keep(x: T) -> (out: T) { on x(t) { if t.n > 0 { emit out t; } } }"
            " operator tally(x: T; $v: map<string, i64>) -> () { on x(t) { with c = $v[t.k] else 0 { c = c +% t.n; } } }"
            " fn rows(m: map<string, i64>) -> list<T>"
            " { var made: list<T> = []; for k, n in m { push(made, {k: k, n: n}); } return made; }"
            " var $v.0: map<string, i64> = {}; var $v.1: map<string, i64> = {}; input p: T; input o: T;"
            " @Fuse(1) (r) <- keep(p); @Fuse(1) ($v.0) <- tally(r, $v.0); ($v.1) <- tally(o, $v.1);"
            " result $v = combine($v.0, $v.1); output q: T = rows($v, rows);"
        ),
        "`keep` and `tally` stay apart: `$v.0` is a part that is combined, and only what accumulates alone is seen to do that",
    ),
}


@pytest.mark.parametrize("name", FUSION)
def test_fusion_says_why_not(name: str) -> None:
    text, reason = FUSION[name]
    assert remarks(text, Fusion())[:1] == [f"no fusion: {reason}"]


@pytest.mark.parametrize(
    "body",
    [
        'emit a {tau: e.tau, k: if e.k == "a" { "b" } else { e.k }};',
        'if e.k == "a" { let t = e.tau; emit a {tau: t, k: "b"}; } else { emit a e; }',
        'emit a if e.k > "b" { {tau: e.tau, k: e.k} } else { e };',
        "emit a {tau: e.tau +% 1, k: e.k};",
        "emit a same_time(e);",
    ],
)
def test_stamps_that_follow_from_stamps_do_not_keep_operators_apart(body: str) -> None:
    text = (
        "fn same_time(e: E) -> E { return {tau: e.tau, k: e.k}; }"
        f" operator as_it_was(x: E by tau) -> (a: E by tau) {{ on x(e) {{ {body} }} on mark(t) {{ mark a t; }} }}"
        " operator loose(x: E by tau) -> (a: T) { on x(e) { emit a {k: e.k, n: 0}; } }"
        " input p: E by tau; output q: T; @Fuse(1) (m) <- as_it_was(p); @Fuse(1) (q) <- loose(m);"
    )
    found = apply(parse(Source("p.river", HEAD + text)), (Fusion(),), Platform(1), LIBRARY)
    assert found.remarks == ()
    assert "as_it_was_loose" in pretty(found.program)


HOISTING = {
    "windows": (
        (
            "operator pairs(x: T) -> (out: T) { on x[pop 2](w) { emit out {k: w[0].k, n: w[1].n}; } }"
            ' operator sel(x: T) -> (out: T) { on x(t) { if t.k == "a" { emit out t; } } }'
            " input p: T; output q: T; (r) <- pairs(p); (q) <- sel(r);"
        ),
        "`sel` stays behind `pairs`: that is not read item by item",
    ),
    "marks": (
        (
            "operator told(x: E by tau) -> (out: E by tau) { on x(t) { emit out t; } on mark(k) { mark out k; } }"
            ' operator sel(x: E by tau) -> (out: E by tau) { on x(t) { if t.k == "a" { emit out t; } } }'
            " input p: E by tau; output q: E by tau; (r) <- told(p); (q) <- sel(r);"
        ),
        "`sel` stays behind `told`: that acts on marks",
    ),
    "may trap": (
        (
            "operator some(x: T) -> (out: T) { on x(t) { if t.n > 1 { emit out {k: t.k, n: t.n *% 2}; } } }"
            ' operator sel(x: T) -> (out: T) { on x(t) { if t.k[0:1] == "a" { emit out t; } } }'
            " input p: T; output q: T; (r) <- some(p); (q) <- sel(r);"
        ),
        "`sel` stays behind `some`: it might trap on an item which that does not send",
    ),
    "border": (
        (
            "operator some(x: T) -> (out: T) { on x(t) { emit out {k: t.k, n: t.n *% 2}; } }"
            ' operator sel(x: T) -> (out: T) { on x(t) { if t.k == "a" { emit out t; } } }'
            " input p: T; output q: T; @Region(r1, replica) (r) <- some(p); (q) <- sel(r);"
        ),
        "`sel` stays behind `some`: a border of a parallel region is between them",
    ),
}


HOISTED = {
    "swapped": (
        (
            "type S = {k: string, l: string}; input p: S; output q: S;"
            " operator swap(x: S) -> (out: S) { on x(v) { emit out {k: v.l, l: v.k}; } }"
            ' operator sel(x: S) -> (out: S) { on x(v) { if v.k == "a" { emit out {k: v.k, l: v.l}; } } }'
            " (r) <- swap(p); (q) <- sel(r);"
        ),
        [("a", "b"), ("b", "a"), ("a", "a")],
    ),
    "narrowed": (
        (
            "type W = {k: string, n: i64, z: bool}; input p: W; output q: T;"
            " operator less(x: W) -> (out: T) { on x(v) { emit out {k: v.k, n: v.n +% 1}; } }"
            ' operator sel(x: T) -> (out: T) { on x(v) { if v.k == "a" { emit out {k: v.k, n: v.n}; } } }'
            " (r) <- less(p); (q) <- sel(r);"
        ),
        [("a", 1, True), ("b", 2, False)],
    ),
    "widened": (
        (
            "type W = {n: i64, k: string, m: i64}; input p: T; output q: W;"
            " operator more(x: T) -> (out: W) { on x(v) { emit out {n: 7, k: v.k, m: v.n}; } }"
            " operator sel(x: W) -> (out: W) { on x(v) { if v.m > 1 { emit out {n: v.n, k: v.k, m: v.m}; } } }"
            " (r) <- more(p); (q) <- sel(r);"
        ),
        [("a", 1), ("b", 2)],
    ),
}


@pytest.mark.parametrize("name", HOISTED)
def test_what_is_hoisted_computes_the_same(name: str) -> None:
    text, items = HOISTED[name]
    before = parse(Source("p.river", HEAD + text))
    after = check_pipeline(before, (Hoisting(),), Platform(2), LIBRARY, {"p": items})
    assert after.uses[0].operator == "sel_first"


LEFT = {
    "a copy": ('on x(v) { let r: T = {k: v.k, n: v.n}; if r.k == "a" { emit out r; } }'),
    "a part that is computed": 'on x(v) { if v.k == "a" { emit out {k: v.k, n: v.n + 0}; } }',
    "a part that is chosen": 'on x(v) { if v.k == "a" { emit out if v.k == "a" {v} else {v}; } }',
    "the whole": "on x(v) { if v == v { emit out v; } }",
    "another name": 'on x(v) { let w = v.k; if w == "a" { emit out {k: w, n: v.n}; } }',
}


@pytest.mark.parametrize("name", LEFT)
def test_hoisting_leaves_what_is_not_plainly_a_selection(name: str) -> None:
    text = "operator bump(x: T) -> (out: T) { on x(v) { emit out {k: v.k, n: v.n *% 2}; } }"
    text += f"operator sel(x: T) -> (out: T) {{ {LEFT[name]} }} input p: T; output q: T; (r) <- bump(p); (q) <- sel(r);"
    program = parse(Source("p.river", HEAD + text))
    applied = apply(program, (Hoisting(),), Platform(2), LIBRARY)
    assert (applied.program, applied.remarks) == (program, ())


@pytest.mark.parametrize("name", HOISTING)
def test_hoisting_says_why_not(name: str) -> None:
    text, reason = HOISTING[name]
    assert remarks(text, Hoisting()) == [f"no hoisting: {reason}"]


def test_placement_says_why_not() -> None:
    text = (
        "var $v: map<string, i64> = {}; input p: T; input o: T; output q: T; output r: T;"
        " @Group(here) (q, $v) <- count(p, $v); @Group(there) (r, $v) <- count(o, $v); input u: T; output s: T; (s) <- same(u);"
    )
    reason = "`count` and `count` share variables, but are in the groups `here` and `there`"
    assert remarks(text, Placement()) == [f"no placement: {reason}"]


def test_an_extern_cannot_be_written_out() -> None:
    text = 'operator f(x: T) -> (out: T) = extern python "m:f"; input p: T; output q: T; @Parallel(2) (q) <- f(p);'
    assert remarks(text, Fission()) == []
    assert remarks(text, Fission(), Expand()) == ["no expand: `f` cannot be lifted: its body is not text"]


# ---------------------------------------------------------------------------------------------------------------- rows

ROWS = {
    "positions": "for i, r in x.ins { push(ins, {k: r.k, n: i}); } emit a {tau: x.tau, ins: ins, del: del};",
    "pairs": "for r in x.ins { for s in x.ins { push(ins, s); } } emit a {tau: x.tau, ins: ins, del: del};",
    "the first": "for r in x.ins { push(ins, r); break; } emit a {tau: x.tau, ins: ins, del: del};",
    "a number": "emit a {tau: x.tau, ins: [{k: r.k, n: len(x.ins)} for r in x.ins], del: del};",
    "from nothing": 'push(ins, {k: "", n: 0}); emit a {tau: x.tau, ins: ins, del: del};',
    "only one list": "if len(x.ins) > 0 { emit a x; }",
    "another instant": "emit a {tau: x.tau + 1, ins: ins, del: del};",
    "twice": "emit a x; emit a x;",
    "or not": "if len(x.ins) == 0 { emit a x; }",
    "what a function counts": "for r in x.ins { bump(n); push(ins, {k: r.k, n: n}); } emit a {tau: x.tau, ins: ins, del: del};",
    "what is left": "for r in x.ins { push(ins, {k: r.k, n: pop_front(w)}); } emit a {tau: x.tau, ins: ins, del: del};",
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_looked_at_together(name: str) -> None:
    assert reading(ROWS[name]) is not None


def test_rows_that_are_looked_at_one_by_one() -> None:
    assert (
        reading(
            "for r in x.ins { if r.n > 1 { push(ins, r); continue; } } emit a {tau: x.tau, ins: ins, del: del};"
        )
        is None
    )
    assert reading("emit a {tau: x.tau, ins: bag_minus(x.ins, x.del), del: del};") is None


SIDES = {
    "or else": "if l is l { for x in l.ins { push(ins, x); } } else { del = ins; } emit a {tau: key, ins: ins, del: []};",
    "only of both": "if l is l { if r is r { for x in l.ins { push(ins, x); } } } emit a {tau: key, ins: ins, del: []};",
    "sent for one": "if r is r { for y in r.ins { push(ins, y); } } if l is l { emit a {tau: key, ins: ins, del: []}; }",
    "a number of one": (
        "var n = 0; if l is l { n = 1; } if r is r { for y in r.ins { push(ins, {k: y.k, n: n}); } }"
        " emit a {tau: key, ins: ins, del: []};"
    ),
}


@pytest.mark.parametrize("name", SIDES)
def test_sides_of_which_a_part_of_the_rows_has_none(name: str) -> None:
    assert joining(SIDES[name]) is not None


def test_sides_whose_rows_are_looked_at_one_by_one() -> None:
    sides = "if l is l { for x in l.ins { push(ins, x); } } if r is r { for y in r.del { push(ins, y); } }"
    assert joining(f"{sides} emit a {{tau: key, ins: ins, del: []}};") is None
    own = "var own: list<T> = []; for x in l.ins { push(own, x); }"
    assert (
        joining(f"if l is l {{ {own} if len(own) > 0 {{ emit a {{tau: key, ins: own, del: []}}; }} }}")
        is None
    )


def joining(body: str) -> str | None:
    """Why a join of deltas with this body looks at the rows of an instant together."""
    begun = f"on merge(d(l), e(r)) {{ var ins: list<T> = []; var del: list<T> = []; {body} }}"
    text = f"operator f(d: D by tau, e: D by tau) -> (a: D by tau) {{ {begun} }}"
    use = "input p: D by tau; input s: D by tau; output q: D by tau; (q) <- f(p, s);"
    return rowwise(verify(parse(Source("p", f"{HEAD} {text} {use}")), LIBRARY).instances[0].operator).obstacle


def reading(body: str) -> str | None:
    text = f"operator f(d: D by tau) -> (a: D by tau) {{ {BUMP} on mark(k) {{ mark a k; }} on d(x) {{ {DECLARED} {body} }} }}"
    graph = verify(
        parse(Source("p", f"{HEAD} {text} input p: D by tau; output q: D by tau; (q) <- f(p);")), LIBRARY
    )
    operator = graph.instances[0].operator
    assert isinstance(operator, typed.Operator)
    return rowwise(evolve(operator, mark=None)).obstacle


BUMP = "fn bump(ref n: i64) { n = n +% 1; }"
DECLARED = "var ins: list<T> = []; var del: list<T> = []; var n = 0; var w: deque<i64> = {};"


# -------------------------------------------------------------------------------------------------------------- fusion


def test_fused_operators_keep_their_constants() -> None:
    text = """operator add(x: T) -> (out: T) { const c: i64 = 2; on x(t) { emit out {k: t.k, n: t.n + c}; } }
operator mul(x: T) -> (out: T) { const c: i64 = 3; on x(t) { emit out {k: t.k, n: t.n * c}; } }
input p: T; output q: T; @Fuse(1) (r) <- add(p); @Fuse(1) (q) <- mul(r);
"""
    program = apply(parse(Source("p", HEAD + text)), (Fusion(),), Platform(1), LIBRARY).program
    assert [use.operator for use in program.uses] == ["add_mul"]
    graph = verify(program, LIBRARY)
    (outcome,) = outcomes(erase(graph), inputs(graph, {"p": [("a", 1)]})).outcomes
    seen = observe(graph, outcome)
    assert isinstance(seen, Observation)
    assert seen.outputs == (("q", (("a", 9),)),)


def test_what_takes_the_place_of_placed_operators_is_in_one_group() -> None:
    """Splits between regions belong to the replicas, whatever group the operators behind them are in."""
    text = """river 1;
type T = {a: i64, b: i64};
input xs: T;
output ys: T;
var $v: map<i64, i64> = {};
var $w: map<i64, i64> = {};
operator by_a(x: T; $c: map<i64, i64>) -> (out: T) {
  on x(t) { with c = $c[t.a] else 0 { c = c +% 1; emit out {a: c, b: t.b}; } }
}
operator by_b(x: T; $c: map<i64, i64>) -> (out: T) {
  on x(t) { with c = $c[t.b] else 0 { c = c +% 1; if c > 1 { emit out t; } } }
}
@Group(here) @Parallel() (m, $v) <- by_a(xs, $v);
@Group(here) @Parallel() (ys, $w) <- by_b(m, $w);
"""
    passes = Fission(degree=2, epoch=1), Expand()
    made = apply(parse(Source("p.river", text)), passes, Platform(2), LIBRARY).program
    uses = [instance.use for instance in verify(made, LIBRARY).instances]
    groups = [(said.regions[-1].what, said.group) for said in map(annotated, uses) if said.regions]
    split_again = [group.id for what, group in groups if what == "split" and group is not None]
    assert split_again == ["here", "r1_0", "r1_1"]


def test_rows_that_only_a_runtime_keeps_in_order_are_not_written_out() -> None:
    """A merge of deltas puts rows of one instant together in any order; a runtime that tags them does not."""
    text = """operator f(d: D by tau; $m: map<string, i64>) -> (o: D by tau) {
      on d(x) { for r in x.ins { with n = $m[r.k] else 0 { n = n + 1; } } emit o x; }
    }
    operator each(d: D by tau) -> (o: T) { on d(x) { for r in x.ins { emit o r; } } }
    input p: D by tau; var $m: map<string, i64> = {}; (r, $m) <- f(p, $m);
    """
    told = "`f` is in a region whose rows only a runtime keeps in order"
    program = parse(Source("p.river", HEAD + text + "output q: T; (q) <- each(r);"))
    made = apply(program, (Fission(auto=True, rules="runtime"), Expand()), Platform(2), LIBRARY)
    assert "@Region(r1, time_merge, k)" in pretty(made.program)
    assert [each.message.startswith(f"no expand: {told}") for each in made.remarks] == [True]
    program = parse(Source("p.river", HEAD + text + "output r: D by tau;"))
    made = apply(program, (Fission(auto=True, rules="runtime"), Expand()), Platform(2), LIBRARY)
    assert "std.merge_rows" in pretty(made.program)
