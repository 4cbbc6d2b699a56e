"""Each condition of a guard is needed: without it, some program comes out wrong, and the laws see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import optimizers.expand
import optimizers.fission
import optimizers.fusion
import optimizers.hoisting
from optimizers import Expand, Fission, Fusion, Hoisting
from river.diagnostics import InternalError
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.rows import Handling
from river.il.templates import Library
from river.platform import Platform
from river.source import Source
from river.testing.pass_laws import check_pipeline

if TYPE_CHECKING:
    from river.il.program import Program

LIBRARY = Library.of({})
HEAD = """river 1;
type T = {k: string, n: i64};
type D = {tau: i64, ins: list<T>, del: list<T>};
operator same(x: T) -> (out: T) { on x(t) { emit out t; } }
operator keep(x: T) -> (out: T) { on x(t) { if t.n > 1 { emit out t; } } }
operator thrice(x: T) -> (out: T) { on x(t) { for i in 0 .. 3 { emit out {k: if i == 1 {"x"} else {t.k}, n: i}; } } }
operator count(x: T; $v: map<string, i64>) -> (out: T) {
  on x(t) { with c = $v[t.k] else 0 { c = c + 1; emit out {k: t.k, n: c}; } } }
operator sum(x: T; $s: i64) -> (out: T) { on x(t) { $s = $s +% t.n; emit out {k: t.k, n: $s}; } }
operator counts(d: D by tau; $c: map<string, i64>) -> (out: D by tau) {
  on d(x) {
    var ins: list<T> = [];
    for r in x.ins { with c = $c[r.k] else 0 { c = c +% 1; push(ins, {k: "", n: c}); } }
    emit out {tau: x.tau, ins: ins, del: [{k: "", n: r.n} for r in x.del]};
  } }
operator net(d: D by tau) -> (out: D by tau) {
  on d(x) { emit out {tau: x.tau, ins: bag_minus(x.ins, x.del), del: bag_minus(x.del, x.ins)}; } }
operator last(d: D by tau; $n: i64) -> (out: D by tau) {
  on d(x) { for r in x.ins { $n = r.n; } emit out {tau: x.tau, ins: [{k: "", n: $n}], del: []}; } }
operator at_least(d: D by tau; $c: map<string, i64>) -> (out: D by tau) {
  on d(x) {
    for r in x.ins { with c = $c[r.k] else 0 { c = c +% 1; } }
    if len(x.ins) > 1 { emit out x; }
  } }
operator window(d: D by tau; $w: deque<i64>) -> (out: D by tau) {
  fn expire(ref w: deque<i64>, before: i64) {
    while len(w) > 0 {
      if front(w) >= before { break; }
      emit out {tau: pop_front(w), ins: [], del: []};
    } }
  on d(x) { expire($w, x.tau); push_back($w, x.tau); }
  on mark(k) { expire($w, k); mark out k; } }
operator latest(x: T; $s: i64) -> () { on x(t) { $s = t.n; } }
operator forward(d: D by tau) -> (out: D by tau) { on d(x) { emit out x; } }
operator ratio(x: T) -> (out: T) { on x(t) { emit out {k: t.k, n: div.trunc(6, t.n)}; } }
operator mine(x: T) -> (out: T) { on x(t) { if t.k == "a" { emit out t; } } }
"""
LOOSE = "input p: T; output q: T; "
DELTAS = "input p: D by tau; output q: D by tau; "


def check(text: str, passes: tuple[Any, ...], data: dict[str, list[Any]]) -> Program:
    program = parse(Source("p.river", HEAD + text))
    return check_pipeline(program, passes, Platform(2), LIBRARY, data)


EXPANDED = (Fission(epoch=1), Expand())
EXACT = optimizers.fission.Selectivity(0, 1)
NEEDED: dict[str, tuple[str, tuple[Any, ...], dict[str, list[Any]], str, Any]] = {
    "one item for each firing": (
        LOOSE + "@Parallel() (q) <- keep(p);",
        EXPANDED,
        {"p": [("a", 0), ("a", 2), ("b", 2)]},
        "optimizers.fission.ONE",
        EXACT,
    ),
    "state by key": (
        LOOSE + "var $s: i64 = 0; @Parallel() (q, $s) <- sum(p, $s);",
        EXPANDED,
        {"p": [("a", 1), ("b", 2)]},
        "optimizers.fission._obstacle",
        lambda *_args, **_named: None,
    ),
    "one key for all": (
        LOOSE
        + "var $v: map<string, i64> = {}; var $w: map<string, i64> = {};"
        + " @Parallel() (r, $v) <- count(p, $v); @Parallel() (s) <- thrice(r); @Parallel() (q, $w) <- count(s, $w);",
        EXPANDED,
        {"p": [("a", 1), ("b", 1), ("d", 1)]},
        "optimizers.fission._keys",
        lambda _instances, _models: frozenset({"k"}),
    ),
    "rows one by one": (
        DELTAS + "var $c: map<string, i64> = {}; @Parallel() (q, $c) <- at_least(p, $c);",
        EXPANDED,
        {"p": [(1, (("a", 1), ("b", 2)), ()), (2, (("a", 1), ("c", 2), ("d", 1)), ())]},
        "optimizers.fission.rowwise",
        lambda _op: Handling(None),
    ),
    "equal rows together": (
        DELTAS
        + "var $c: map<string, i64> = {}; @Parallel() (r, $c) <- counts(p, $c); @Parallel() (q) <- net(r);",
        EXPANDED,
        {"p": [(i, (("a", 0),), ((k, i),)) for i, k in enumerate("bcde", 1)]},
        "optimizers.fission._reaching",
        lambda instances, _models, _keys: (True,) * len(instances),
    ),
    "nobody reads the order of rows": (
        DELTAS
        + "var $c: map<string, i64> = {}; var $n: i64 = 0;"
        + " @Parallel() (r, $c) <- counts(p, $c); (q, $n) <- last(r, $n);",
        EXPANDED,
        {
            "p": [
                (i, tuple((k, 0) for k in ks), ())
                for i, ks in enumerate(("a", "ab", "ba", "ac", "ca", "ad", "da"), 1)
            ]
        },
        "optimizers.fission._bag_reader",
        lambda _instance: True,
    ),
    "nobody sees the order of items": (
        "input p: T; var $s: i64 = 0; @Parallel() (r) <- keep(p); ($s) <- latest(r, $s);",
        EXPANDED,
        {"p": [("a", 2), ("a", 3)]},
        "optimizers.fission.unseen",
        lambda _graph, _last: True,
    ),
    "one item at most before a shuffle": (
        LOOSE
        + "var $v: map<string, i64> = {};"
        + " @Parallel(2) (r) <- thrice(p); @Parallel(2) (q, $v) <- count(r, $v);",
        EXPANDED,
        {"p": [("a", 1), ("b", 1)]},
        "optimizers.expand._Expansion.rotates",
        lambda _self, _i: True,
    ),
    "marks stay told": (
        DELTAS + "var $w: deque<i64> = {}; @Fuse(1) (r) <- forward(p); @Fuse(1) (q, $w) <- window(r, $w);",
        (Fusion(),),
        {"p": [(1, (), ()), (5, (), ())]},
        "optimizers.joining._Joining.marked",
        lambda _self, _value: (),
    ),
    "no trap is hidden": (
        LOOSE + "(r) <- ratio(p); (q) <- mine(r);",
        (Hoisting(),),
        {"p": [("b", 0)]},
        "optimizers.hoisting._obstacle",
        lambda _one, _selection, _asked: None,
    ),
}


@pytest.mark.parametrize("name", NEEDED)
def test_without_the_condition_the_laws_are_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, passes, data, condition, instead = NEEDED[name]
    check(text, passes, data)
    monkeypatch.setattr(condition, instead)
    with pytest.raises((AssertionError, InternalError)):
        check(text, passes, data)


NAMED = """operator named(d: D by tau; $c: map<string, i64>) -> (out: D by tau) {
  on d(x) {
    var ins: list<T> = [];
    for r in x.ins { with c = $c[r.k] else 0 { c = c +% 1; push(ins, {k: r.k, n: c}); } }
    emit out {tau: x.tau, ins: ins, del: []};
  } }
"""


@pytest.mark.parametrize(
    "hashed",
    [
        "emit out {tau: x.tau, h: hash64(x.ins[0].k)};",
        "emit out {tau: x.tau, h: hash64(x.ins)};",
        "for r in x.ins { emit out {tau: x.tau, h: hash64(r.k)}; }",
        'var k = ""; for r in x.ins { k = r.k; } emit out {tau: x.tau, h: hash64(k)};',
    ],
)
def test_an_operator_without_state_may_read_the_order_of_rows(hashed: str) -> None:
    program = f"""operator hashed(d: D by tau) -> (out: {{tau: i64, h: u64}} by tau) {{ on d(x) {{ {hashed} }} }}
    input p: D by tau; output q: {{tau: i64, h: u64}} by tau;
    var $c: map<string, i64> = {{}}; @Parallel() (r, $c) <- named(p, $c); (q) <- hashed(r);"""
    data = {
        "p": [
            (i, tuple((k, 0) for k in ks), ()) for i, ks in enumerate(("ab", "ba", "cd", "dc", "ac", "ca"), 1)
        ]
    }
    after = check(NAMED + program, (Fission(degree=3), Expand()), data)
    assert "split" not in pretty(after)
