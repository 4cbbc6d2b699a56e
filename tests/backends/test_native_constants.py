"""Constants with containers lie in the code as the runtime would have built them; functions of whole bags; items of bytes."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, Refused, compile_native
from backends.native.computed import compute
from backends.native.shared import side_by_side
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.evaluate import Trap, compile_operator, evaluate_const
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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

LARGE = """
type P = {a: f32, b: i64?, c: bool};
input t: i64; output o: {h: f64, p: P, n: f64};
operator f(t: i64) -> (o: {h: f64, p: P, n: f64}) {
  const k: f64 = 0.3;
  const h: array<f64, 5000> = waves();
  const pairs: array<P, 3000> = made();
  const total: f64 = summed();
  const few: list<f64> = h[1:4];
  fn waves() -> array<f64, 5000> {
    var h: array<f64, 5000> = fill(0.0); for i in 0 .. 5000 { h[i] = sin(k * f64(i)) / f64(i - 77); } return h; }
  fn made() -> array<P, 3000> {
    var l: array<P, 3000> = zero();
    for i in 0 .. 3000 { l[i] = {a: f32(h[i]), b: if mod.floor(i, 3) == 0 { none } else { i * i }, c: h[i] > 0.0}; } return l; }
  fn summed() -> f64 { var s = 0.0; for x in h { if not is_nan(x) and x < 9.0 { s = s + x; } } return s; }
  on t(x) { emit o {h: h[x], p: pairs[x], n: total + few[2]}; }
}
(o) <- f(t);
"""
TRAPPED = """
input t: i64; output o: i64;
operator f(t: i64) -> (o: i64) {
  const h: array<i64, 5000> = made();
  fn made() -> array<i64, 5000> { var h: array<i64, 5000> = zero(); h[4999] = div.trunc(1, h[7]); return h; }
  on t(x) { emit o h[x]; }
}
(o) <- f(t);
"""
ENDLESS = """
input t: i64; output o: i64;
operator f(t: i64) -> (o: i64) {
  const h: array<i64, 5000> = made();
  fn made() -> array<i64, 5000> { var n = 0; while n >= 0 { n = n & 7; n = n + 1; } return fill(n); }
  on t(x) { emit o h[x]; }
}
(o) <- f(t);
"""


def checked(text: str) -> typed.Operator:
    (instance,) = verify(parse(Source("test.river", "river 1;\n" + text)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


def agree(text: str, rows: list[Any], *, debug: bool) -> None:
    """Native code and the evaluator give the same for each item by itself."""
    operator = checked(text)
    fire = compile_operator(operator).item[0]
    native = compile_native(operator, debug=debug)
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


@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
def test_constants(*, debug: bool) -> None:
    agree(CONSTANTS, [0, 3, 5, -3, 599, 600, 70000, -5], debug=debug)


@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
def test_machine_code_computes_large_constants(monkeypatch: pytest.MonkeyPatch, *, debug: bool) -> None:
    """And what is made of them; the evaluator, which must give the same bits, computes none but the number."""
    asked: list[Any] = []

    def evaluated(expr: typed.Expr, *args: Any) -> Any:
        asked.append(evaluate_const(expr, *args))
        return asked[-1]

    monkeypatch.setattr("backends.native.computed.evaluate_const", evaluated)
    agree(LARGE, [*range(0, 3000, 61), 2999, 3000, 5000], debug=debug)
    assert set(asked) <= {0.3}


@pytest.mark.slow
def test_machine_code_computes_what_takes_the_evaluator_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    computed: list[int] = []

    def impatient(expr: typed.Expr, fns: Any, consts: Any, slots: int, poll: Callable[[], None]) -> Any:
        poll()
        return evaluate_const(expr, fns, consts, slots, poll)

    def made(op: typed.Operator, index: int, *, debug: bool) -> Any:
        computed.append(index)
        return compute(op, index, debug=debug)

    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))  # whose code was not made before
    monkeypatch.setattr("backends.native.computed.evaluate_const", impatient)
    monkeypatch.setattr("backends.native.computed.compute", made)
    monkeypatch.setattr("backends.native.computed.LONG", -1.0)
    agree(CONSTANTS.replace("bags(30)", "bags(29)"), [0, 3, 599], debug=False)
    assert set(computed) == set(range(8))


def test_code_that_is_kept_computes_its_constants_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is linked in each process; what was computed is no part of it."""
    rows = [[0, 76, 77, 78, 2999]]
    first = compile_native(checked(LARGE))
    assert isinstance(first, NativeOperator)
    found = first.fire_batch(rows)
    monkeypatch.setattr("backends.native.shared._KNOWN", {})
    again = compile_native(checked(LARGE))
    assert isinstance(again, NativeOperator)
    assert again.code.addresses != first.code.addresses
    assert repr(again.fire_batch(rows)) == repr(found)


def test_large_tables_that_are_written_out_need_no_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = ", ".join(f"{{a: {i}.5, b: [{i}, {i * i}]}}" for i in range(12))
    text = f"""input t: i64; output o: f64;
    operator f(t: i64) -> (o: f64) {{
      const h: array<{{a: f32, b: array<i64, 2>}}, 12> = [{rows}];
      on t(x) {{ emit o f64(h[x].a) + f64(h[x].b[mod.floor(x, 2)]); }}
    }}
    (o) <- f(t);"""
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    monkeypatch.setattr("backends.native.computed.LARGE", 64)
    monkeypatch.setattr("backends.native.computed.compute", lambda *_, **__: pytest.fail("code was made"))
    agree(text, [0, 5, 11], debug=False)


def test_a_large_constant_that_traps_is_the_evaluators() -> None:
    refused = compile_native(checked(TRAPPED))
    assert isinstance(refused, Refused)
    assert [reason.text for reason in refused.reasons] == ["the constant `h` traps"]


def test_nobody_waits_for_a_large_constant_that_is_not_wanted() -> None:
    def make(operator: typed.Operator | None) -> Any:
        if operator is not None:
            return compile_native(operator)
        begun.wait(20)
        raise LookupError("the other one fails")

    begun = threading.Event()
    endless = checked(ENDLESS)
    threading.Timer(0.5, begun.set).start()
    with pytest.raises(LookupError, match="the other one"):
        side_by_side(make, [endless, None], 2)
    while any(thread.name in ("compile", "constant") for thread in threading.enumerate()):
        time.sleep(0.01)


@pytest.mark.parametrize("debug", [False, True])
def test_items_of_bytes(*, debug: bool) -> None:
    agree(BYTES, [(b"ab", 1), (b"\xff\x00\x7f" * 7, 18), (b"a", 1), (b"", 0), (b"abc", -1)], debug=debug)
