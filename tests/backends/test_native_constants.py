"""Constants with containers lie in the code as the runtime would have built them; functions of whole bags; items of bytes."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator
from river.source import Source

CONSTANTS = """
input t: i64; output o: {a: i64?, b: string, n: i64, s: list<i64>, f: f64};
fn bags(n: i64) -> bag<i64> { var b: bag<i64> = {}; for i in 0 .. n { add(b, mod.floor(i, 7)); } return b; }
fn deques(n: i64) -> deque<string> {
  var b: deque<string> = {}; for i in 0 .. n { push_back(b, "number " + string(i * 1000000)); } return b; }
fn ordered(n: i64) -> omap<i64, list<i64>> {
  var b: omap<i64, list<i64>> = {}; for i in 0 .. n { b[i * 3] = [i, i]; } return b; }
fn hashed(n: i64) -> map<string, f64> {
  var b: map<string, f64> = {}; for i in 0 .. n { b["key number " + string(i)] = f64(i) / 3.0; } return b; }
fn paired(n: i64) -> map<{a: string, b: i64}, i64> {
  var b: map<{a: string, b: i64}, i64> = {};
  for i in 0 .. n { b[{a: "name " + string(i * i * 1000000000), b: i}] = i; } return b; }
fn sums(n: i64) -> fsum { var s: fsum = zero(); for i in 0 .. n { add(s, 0.1); } sub(s, 1e300); return s; }
operator f(t: i64) -> (o: {a: i64?, b: string, n: i64, s: list<i64>, f: f64}) {
  const few: bag<i64> = bags(30);
  const row: deque<string> = deques(5);
  const tree: omap<i64, list<i64>> = ordered(200);
  const table: map<string, f64> = hashed(1000);
  const pairs: map<{a: string, b: i64}, i64> = paired(40);
  const small: map<i64, i64> = {5: 1, -3: 2, 70000: 4};
  const none_: map<i64, i64> = {};
  const total: fsum = sums(10);
  on t(x) {
    emit o {a: floor(tree, x), b: string(get(table, "key number " + string(x), -1.0)), n: count(few, x),
            s: get(tree, x, []), f: value(total)};
    emit o {a: get(pairs, {a: "name " + string(x *% x *% 1000000000), b: x}), b: "", n: len(pairs),
            s: [], f: 0.0};
    emit o {a: get(small, x), b: "", n: len(none_) + len(small), s: keys(small), f: 0.0};
    var c = tree; c[x] = [1];
    var d = table; d["x"] = 2.0;
    var e = few; add(e, x); remove(e, 3);
    var q = row; push_back(q, "new");
    var s = total; add(s, 1e300);
    emit o {a: first_key(c), b: front(q), n: len(d) + len(c) + len(e) + len(q) + count(e, 3), s: to_list(e), f: value(s)};
    for y in few { emit o {a: none, b: row[1], n: y, s: [], f: 0.0}; }
    emit o {a: none, b: "", n: fold(few, x, fn(a, b) => a *% 3 +% b), s: [],
            f: if any(few, fn(y) => y == x) { 1.0 } else { if all(few, fn(y) => y < x) { 2.0 } else { 3.0 } }};
  }
}
(o) <- f(t);
"""
BYTES = """input t: {d: bytes, i: i64}; output o: i32;
operator f(t: {d: bytes, i: i64}) -> (o: i32) { on t(x) { emit o x.d[x.i]; } }
(o) <- f(t);"""


def agree(text: str, rows: list[Any], *, debug: bool) -> None:
    """Native code and the evaluator give the same for each item by itself."""
    graph = verify(parse(Source("test.river", "river 1;\n" + text)), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    fire = compile_operator(instance.operator).item[0]
    native = compile_native(instance.operator, debug=debug)
    assert isinstance(native, NativeOperator), native
    assert fire is not None
    for row in rows:
        outs: list[list[Any]] = [[]]
        trap = None
        try:
            fire([], row, outs)
        except Trap as trapped:
            trap = trapped.code
        found, fired = native.fire_batch([[row]])
        assert (fired.trap.code if fired.trap else None) == trap
        assert repr(list(found)) == repr(outs)


@pytest.mark.parametrize("debug", [False, True])
def test_constants(*, debug: bool) -> None:
    agree(CONSTANTS, [0, 3, 5, -3, 599, 600, 70000, -5], debug=debug)


@pytest.mark.parametrize("debug", [False, True])
def test_items_of_bytes(*, debug: bool) -> None:
    agree(BYTES, [(b"ab", 1), (b"\xff\x00\x7f" * 7, 18), (b"a", 1), (b"", 0), (b"abc", -1)], debug=debug)
