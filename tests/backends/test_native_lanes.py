"""Firings side by side give what firings one by one and the evaluator give, to the bit, traps and their rows included."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from backends.native import Fired, NativeOperator, compile_native
from backends.native.batch import Batch, address_of
from backends.native.lanes import Lanes, Scalar
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.source import Source
from tests.backends.lanes import (
    FEWER,
    agree,
    bits,
    evaluated,
    fired,
    in_lanes,
    instance,
    native,
    numbers,
    operator,
    plan,
    rates,
    single,
)

BODY_FILES = Path(__file__).resolve().parents[1] / "bodies"


BODIES = {
    "fir": ("f32", """operator f(x: f32) -> (y[push 1]: f32) {
      const h: array<f32, 16> = [0.1, 0.2, -0.3, 0.4, 1.0, 1.1, -1.2, 3.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
      on x[peek 16, pop 1](w) { var s: f32 = 0.0; for i in 0 .. 16 { s = s + w[i] * h[i]; } emit y s; } }"""),
    "over the window": ("f64", """operator f(x: f64) -> (y[push 1]: f64) {
      on x[peek 9, pop 2](w) { var s = 0.0; for i, each in w { s = s + each * f64(i) + f64(len(w)); } emit y s; } }"""),
    "records": ("{re: f32, im: f64, up: bool}", """type C = {re: f32, im: f64, up: bool};
    operator f(x: C) -> (y[push 2]: C) {
      fn turn(c: C) -> C = {im: f64(c.re), up: not c.up, re: f32(c.im)};
      on x[peek 3, pop 2](w) {
        var both: array<C, 2> = [w[0], turn(w[2])];
        if both[1].up { both[0].im = both[0].im / 3.0; both[1] = w[1]; }
        for each in both { emit y turn(each); } } }"""),
    "tables in tables": ("i32", """operator f(x: i32) -> (y[push 1]: i32) {
      const m: array<array<i32, 3>, 2> = [[1, 2, 3], [4, 5, -6]];
      on x[pop 3](w) {
        var a: array<array<i32, 3>, 2> = m;
        var b: array<array<i32, 3>, 2> = zero();
        for i in 0 .. 2 { for j in 0 .. 3 { a[i][j] = a[i][j] +% w[j]; } }
        if w[0] > 0 { b = a; b[1][2] = 7; a[0] = b[1]; }
        emit y a[0][2] -% b[1][0] +% a[1][1]; } }"""),
    "loops that turn": ("i32", """operator f(x: i32) -> (y[push 6]: i32) {
      on x[pop 4](w) {
        var at: i64 = 0;
        while at < 4 { at = at + 1; if at == 3 { continue; } emit y w[at - 1]; }
        if w[0] > w[1] { for i in 0 .. 3 { emit y w[i] *% 2; } }
        else { for k in 0 .. 3 { var z = k; while z > 0 { z = z - 1; } emit y w[z + k]; } }
      } }"""),
    "bits": ("i64", """operator f(x: i64) -> (y[push 1]: i64) {
      on x[pop 1](w) {
        let u = u64.wrap(w[0]);
        let a = i64.sat(u) ^ i64(i32.sat(w[0])) & 255 | i64(w[0] < 3);
        emit y a +% i64.wrap(f64(u)) +% (w[0] << 3) +% (w[0] >> 2) +% (w[0] >>> 5) +% i64.sat(u >> 1) +% ~w[0]; } }"""),
    "conversions that trap": ("i64", """operator f(x: i64) -> (y[push 1]: i64) {
      on x[pop 1](w) { let n = i32(w[0]); if w[0] < -20 { let u = u64(w[0] + 25); } emit y i64(f64(n)) * 100; } }"""),
    "rounded once": ("f32", """operator f(x: f32) -> (y[push 1]: f32) {
      on x[peek 9, pop 1](w) { var s: f32 = 0.0; for i in 0 .. 8 { s = fma(w[i], w[i + 1], s); } emit y s; } }"""),
    "every other one": ("f32", """operator f(x: f32) -> (y[push 1]: f32) { on x[peek 1, pop 3](w) { emit y -w[0]; } }"""),
    "wide": ("f32", """operator f(x: f32) -> (y[push 40]: f32) {
      on x[peek 70, pop 40](w) {
        var q: array<f32, 40> = fill(0.0);
        for i in 0 .. 40 { q[39 - i] = w[i] - w[i + 30]; }
        for each in q { emit y each; } } }"""),
    "in another order": ("f32", """operator f(x: f32) -> (y[push 17]: f32) {
      on x[pop 24](w) {
        var a: array<f32, 40> = zero();
        for i in 0 .. 24 { a[i] = w[i] * 0.5; }
        for i in 0 .. 16 { a[39 - i] = a[i + 1] - a[23 - i]; }
        for i in 1 .. 18 { emit y a[i + 22]; } } }"""),
    "of the window": ("i32", """operator f(x: i32) -> (y[push 20]: i32) {
      on x[pop 29](w) { for i in 0 .. 20 { emit y w[i + 5]; } } }"""),
    "of a longer window": ("i32", """operator f(x: i32) -> (y[push 20]: i32) {
      on x[peek 40, pop 29](w) { for i in 0 .. 20 { emit y w[i + 15]; } } }"""),
    "zeros that are read": ("i32", """operator f(x: i32) -> (y[push 12]: i32) {
      on x[pop 2](w) {
        var a: array<i32, 4> = zero(); var b: array<i32, 4> = zero(); var c: array<i32, 4> = zero();
        for i in 0 .. 3 { a[i] = w[0]; }
        for i in 0 .. 4 { if w[1] > 0 { b[i] = w[1]; } }
        for i in 0 .. 4 { c[i] = w[1]; if i > 0 { c[3 - i] = c[3 - i] +% c[i]; } }
        for i in 0 .. 4 { emit y a[i]; emit y b[i]; emit y c[i]; } } }"""),
    "loops that are left": ("i32", """operator f(x: i32) -> (y[push 8]: i32) {
      on x[pop 2](w) {
        for k in 0 .. 2 {
          var a: array<i32, 4> = zero();
          for i in 0 .. 4 { if i == 2 + k { break; } a[i] = w[k]; }
          for i in 0 .. 4 { emit y a[i]; } } } }"""),
    "a product": ("f64", """operator f(x: f64) -> (y[push 25]: f64) {
      on x[pop 50](w) {
        for i in 0 .. 5 { for j in 0 .. 5 {
          var s: f64 = 0.0;
          for k in 0 .. 5 { s = s + w[i * 5 + k] * w[25 + k * 5 + j]; }
          emit y s; } } } }"""),
    "truths": ("bool", """operator f(x: bool) -> (y[push 2]: bool) {
      on x[peek 5, pop 3](w) { var p = w[0] and w[1]; if w[2] { p = p | w[3]; } emit y p; emit y p == w[4]; } }"""),
    "functions with places": ("f32", """type P = {sum: f32, most: f32};
    operator f(x: f32) -> (y[push 1]: f32) {
      fn take(ref p: P, z: f32) -> f32 { p.sum = p.sum + z; if z > p.most { p.most = z; } return p.sum * z; }
      on x[peek 4, pop 1](w) {
        var p: P = {sum: 0.0, most: w[0]};
        var s: f32 = 0.0;
        for z in w { if z < 1.0 { s = s + take(p, z); } }
        emit y s + p.most; } }"""),
}  # fmt: skip


@pytest.mark.some(7)
@pytest.mark.optimised
@pytest.mark.parametrize("name", sorted(BODIES))
def test_bodies(name: str) -> None:
    type_, text = BODIES[name]
    op = operator(text, type_)
    assert op.rated is not None
    rate = op.rated.rates[0]
    for seed in range(3):
        count = 150 * rate.pop + rate.peek
        if type_.startswith("{"):
            columns = [numbers(each, count, seed + i) for i, each in enumerate(("f32", "f64", "bool"))]
            in_lanes(op, list(zip(*columns, strict=True)))
        else:
            in_lanes(op, numbers(type_, count, seed))


@pytest.mark.parametrize("name", ["wide", "every other one", "tables in tables"])
def test_code_that_checks_its_accesses(name: str) -> None:
    type_, text = BODIES[name]
    op = operator(text, type_)
    found = compile_native(op, debug=True)
    assert isinstance(found, NativeOperator)
    (rate,) = rates(op)
    for firings in (16, 17, 33, 64, 99):
        items = numbers(type_, (firings - 1) * rate.pop + rate.peek, firings)
        outs, how = found.fire_batch([items], "rated")
        assert how == Fired(firings)
        assert bits(([*outs], None)) == bits(evaluated(op, (items,)))


@pytest.mark.optimised
def test_items_one_by_one() -> None:
    text = """operator f(x: {a: i32, b: f64}) -> (y: {c: f64, d: i32}) {
      on x(r) { let s = r.b * 2.0; if r.a > 3 { emit y {c: s, d: 0 -% r.a}; } else { emit y {c: -s, d: r.a * 1000}; } } }"""
    op = operator(text, "{a: i32, b: f64}", "{c: f64, d: i32}")
    items = list(zip(numbers("i32", 300, 1), numbers("f64", 300, 2), strict=True))
    assert in_lanes(op, items)[1] is None
    items[200] = (-(1 << 30), 0.0)
    assert in_lanes(op, items)[1] == ("overflow", 0, 200)


def test_two_outputs() -> None:
    text = """river 1; input x: i32; output y: i32; output z: f64;
    operator f(x: i32) -> (y[push 3]: i32, z[push 1]: f64) {
      on x[peek 3, pop 2](w) {
        for each in w { emit y each; }
        if w[0] == 5 { emit z 0.5; } else { emit z f64(w[2]) / 3.0; } } }
    (y, z) <- f(x);"""
    op = instance(text)
    items = numbers("i32", 301, 3)
    in_lanes(op, items)
    found, batch = native(op), Batch.of(t.I32, items)
    for limit in (1, 2, 50, 96, 97, 100, 130, 191, 192, 193, 450, 1000):
        row = min(150, -(-limit // 3))
        assert found.fire("rated", batch.addresses, 0, 150, limit) == Fired(row, full=row < 150)
        assert [each.rows for each in found.outputs] == [3 * row, row]
        found.clear()


@pytest.mark.parametrize("row", [0, 15, 16, 63, 64, 100, 127, 128, 149])
def test_the_row_of_a_trap(row: int) -> None:
    text = """operator f(x: i32) -> (y[push 1]: i32) {
      on x[pop 2](w) { let v = w[0] * w[0] + w[1]; if v > 1000 { emit y v - 1000; } else { emit y v * 3; } } }"""
    op = operator(text, "i32")
    items = numbers("i32", 300, 5, wild=False)
    items[2 * row] = 50_000
    outs, trap = in_lanes(op, items)
    assert trap == ("overflow", 2, row)
    assert len(outs[0]) == row


@pytest.mark.optimised
@pytest.mark.parametrize(
    ("peek", "pop", "push"),
    [
        (1, 1, 1),
        (20, 1, 2),
        (3, 2, 3),
        (9, 5, 1),
        (40, 20, 1),
        pytest.param(17, 17, 20, marks=pytest.mark.slow),
    ],
)
def test_the_last_rows(peek: int, pop: int, push: int) -> None:
    """However many rows there are, and wherever they begin: the last block may fire some again."""
    emits = " ".join(f"emit y w[{k % peek}] * s - {k + 2}.0;" for k in range(push))
    text = f"""operator f(x: f32) -> (y[push {push}]: f32) {{
      on x[peek {peek}, pop {pop}](w) {{ var s: f32 = 0.0; for each in w {{ s = s + each; }} {emits} }} }}"""
    op = operator(text)
    found, items = native(op), numbers("f32", 200 * pop + peek, 7)
    (expected,), _ = evaluated(op, (items,))
    batch = Batch.of(t.F32, items)
    for start in (0, 3):
        for end in range(start, 201):
            exact = Batch.of(t.F32, items[: (end - 1) * pop + peek]) if end % 40 == 0 < end else batch
            assert found.fire("rated", exact.addresses, start, end) == Fired(end)
            assert repr(found.outputs[0].batch().values()) == repr(expected[start * push : end * push])
            found.clear()


@pytest.mark.some(5)
@pytest.mark.parametrize("phases", range(2, 16))
def test_items_dealt_to_phases_and_gathered(phases: int) -> None:
    """However many there are, and of whatever size the items: vectors of eight and of sixteen."""
    for type_, made in (("f32", "w[i] - w[i + 2]"), ("f64", "w[i] - w[i + 2]"), ("bool", "w[i] == w[i + 2]")):
        text = f"""operator f(x: {type_}) -> (y[push {phases}]: {type_}) {{
          on x[peek {phases + 2}, pop {phases}](w) {{ for i in 0 .. {phases} {{ emit y {made}; }} }} }}"""
        in_lanes(operator(text, type_), numbers(type_, 130 * phases + 2, phases))


@pytest.mark.optimised
@pytest.mark.parametrize("turns", [7, 64, 128, 129])
def test_loops_over_items_of_phases(turns: int) -> None:
    """Short ones are written out by the optimiser, longer ones divide the index by the number of phases."""
    text = f"""operator f(x: f32) -> (y[push 1]: f32) {{
      on x[peek {turns + 3}, pop 5](w) {{
        var s: f32 = 0.0;
        for i in 0 .. {turns} {{ s = s + w[i + 3] * w[i]; }}
        emit y s; }} }}"""
    in_lanes(operator(text), numbers("f32", 200 * 5 + turns + 3, turns))


def test_the_last_rows_after_a_block_was_done_again() -> None:
    text = """operator f(x: i32) -> (y[push 1]: i32) {
      on x[pop 1](w) { emit y if w[0] == 7 {div.trunc(1, w[0] - 7 + 1)} else {w[0]}; } }"""
    op = operator(text, "i32")
    for row in (0, 63, 64, 70, 127, 128, 140):
        items = [*range(1000, 1150)]
        items[row] = 7
        in_lanes(op, items)


@pytest.mark.optimised
@pytest.mark.parametrize("count", [3, 7, 12, 30])
def test_many_sums(count: int) -> None:
    names = [f"s{k}" for k in range(count)]
    declared = " ".join(f"var {name}: f32 = 0.0;" for name in names)
    added = " ".join(f"{name} = {name} + w[i] * {k + 1}.5;" for k, name in enumerate(names))
    text = f"""operator f(x: f32) -> (y[push 1]: f32) {{
      on x[peek 8, pop 1](w) {{ {declared} for i in 0 .. 8 {{ {added} }} emit y {" - ".join(names)}; }} }}"""
    in_lanes(operator(text), numbers("f32", 150, 11))


def test_traps_under_a_condition_that_no_lane_takes() -> None:
    text = """operator f(x: i32) -> (y[push 1]: i32) {
      const h: array<i32, 4> = [1, 2, 3, 4];
      on x[pop 1](w) {
        var s = w[0];
        if s > 1000 { var i = 0; while i >= 0 { s = s +% h[i]; i = i + 4; } trap "far"; }
        emit y div.trunc(100, if s == 0 {1} else {s}) + (if s > 999 {h[s]} else {0}); } }"""
    found = plan(operator(text, "i32"))
    assert isinstance(found, Scalar)
    assert found.reason == "an index varies"
    op = operator(text.replace("h[s]", "h[3]"), "i32")
    items = numbers("i32", 300, 5, wild=False)
    assert in_lanes(op, items)[1] is None
    items[77] = 2000
    assert in_lanes(op, items)[1] == ("index-range", 1, 77)


def test_an_endless_loop_that_no_lane_enters() -> None:
    text = """operator f(x: i32) -> (y[push 1]: i32) {
      fn for_ever(i: i32) -> i32 { var k = i; while k == i { k = i; } return k; }
      on x[pop 1](w) { emit y if w[0] > 1000 {for_ever(3)} else {w[0]}; } }"""
    assert in_lanes(operator(text, "i32"), numbers("i32", 200, 5, wild=False))[1] is None


def test_a_rate_that_is_not_kept() -> None:
    text = """operator f(x: i32) -> (y[push 2]: i32) {
      on x[pop 1](w) { var i: i64 = 0; while i < COUNT { i = i + 1; emit y w[0]; } } }"""
    items = numbers("i32", 100, 1, wild=False)
    in_lanes(operator(text.replace("COUNT", "2"), "i32"), items)
    for count in ("1", "3"):
        found = native(operator(text.replace("COUNT", count), "i32"))
        few, many = fired(found, (items,), FEWER), fired(found, (items,), 1 << 30)
        assert few == many
        assert many[1] is not None
        assert many[1][::2] == ("rate-violation", 0)


REASONS = {
    "a state that is written": ("on x[pop 1](w) { $s = $s + w[0]; emit y $s; }", "state `$s` is written"),
    "a bound": ("on x[pop 1](w) { var s = w[0]; for i in 0 .. w[0] { s = 0; } emit y s; }", "the bound of a loop"),
    "a condition": ("on x[pop 1](w) { var s = w[0]; while s > 3 { s = s - 1; } emit y s; }", "the condition of a loop"),
    "an index": ("on x[pop 4](w) { emit y w[w[0] & 3]; }", "an index varies"),
    "counts": ("on x[pop 1](w) { if w[0] > 0 { emit y 1; } }", "branches emit different numbers"),
    "leaving": ("on x[pop 1](w) { for i in 0 .. 3 { if i64(w[0]) > i { break; } } emit y 1; }", "a loop is left under"),
    "text": ("on x[pop 1](w) { emit y i32(len(string(w[0]))); }", "`string` of what varies"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REASONS))
def test_reasons(name: str) -> None:
    body, reason = REASONS[name]
    state = "; $s: i32" if "$s" in body else ""
    declared = "var $s: i32 = 0;" if state else ""
    push = "" if name == "counts" else "[push 1]"
    text = f"river 1; input x: i32; output y: i32; {declared} operator f(x: i32{state}) -> (y{push}: i32) {{ {body} }}"
    text += f" (y{', $s' if state else ''}) <- f(x{', $s' if state else ''});"
    op = instance(text)
    found = plan(op)
    assert isinstance(found, Scalar)
    assert reason in found.reason or "different numbers" in found.reason
    assert found.span is not None
    if not op.vars:
        agree(op, numbers("i32", 100, 4, wild=False))


@pytest.mark.parametrize(
    ("first", "body", "emit", "reason"),
    [
        (
            "fn g0(v: i32) -> i32 { return v; }",
            "return g(v) +% g(v +% 1);",
            "emit y h(v);",
            "more than 1000 calls",
        ),
        ("fn g0(v: i32) { emit y v; }", "g(v); g(v +% 1);", "h(v);", f"a firing emits {2**40} items"),
    ],
)
def test_functions_that_call_another_twice(first: str, body: str, emit: str, reason: str) -> None:
    """A chain of 40 such functions is 2 ** 40 calls, which nobody may follow one by one."""
    result = " -> i32" if "return" in body else ""
    chain = " ".join(
        f"fn g{i}(v: i32){result} {{ {body.replace('g(', f'g{i - 1}(')} }}" for i in range(1, 41)
    )
    found = plan(
        operator(
            f"operator f(x: i32) -> (y: i32) {{ {first} {chain} on x(v) {{ {emit.replace('h(', 'g40(')} }} }}",
            "i32",
        )
    )
    assert isinstance(found, Scalar)
    assert reason in found.reason


def test_state_that_is_only_read() -> None:
    text = """river 1; input x: f32; output y: f32; var $g: array<f32, 3> = [0.5, 2.0, -1.0];
    operator f(x: f32; $g: array<f32, 3>) -> (y[push 1]: f32) {
      on x[peek 3, pop 1](w) { var s: f32 = 0.0; for i in 0 .. 3 { s = s + w[i] * $g[i]; } emit y s; } }
    (y) <- f(x, $g);"""
    op = instance(text)
    in_lanes(op, numbers("f32", 200, 4))
    found = native(op)
    found.variables[0].set((0.5, 2.0, -1.0))
    items = numbers("f32", 202, 4, wild=False)
    ours, _ = fired(found, (items,), 1 << 30)
    products = [
        [single(a * b) for a, b in zip(items[i : i + 3], (0.5, 2.0, -1.0), strict=True)] for i in range(200)
    ]
    assert ours[0] == [single(single(p + q) + r) for p, q, r in products]


def test_a_stop() -> None:
    op = operator("operator f(x: f32) -> (y[push 1]: f32) { on x[pop 1](w) { emit y w[0]; } }")
    found, batch = native(op), Batch.of(t.F32, [1.0] * 500)
    found.stop()
    how = found.fire("rated", batch.addresses, 0, 500)
    assert how.stopped
    assert how.row == 0
    found.unstop()
    assert found.fire("rated", batch.addresses, 0, 500).row == 500


def test_memory_that_is_refused() -> None:
    op = operator(
        "operator f(x: f32) -> (y[push 3]: f32) { on x[pop 1](w) { for i in 0 .. 3 { emit y w[0]; } } }"
    )
    found, batch = native(op), Batch.of(t.F32, [1.0] * 5000)
    found.limit_memory(4096)
    how = found.fire("rated", batch.addresses, 0, 5000)
    assert how.trap is not None
    assert how.trap.code == "arena-limit"
    assert found.outputs[0].rows == 3 * how.row


def test_two_inputs() -> None:
    text = """river 1; input a: f32; input b: {n: i32, z: f64}; output y: f64;
    operator f(a: f32, b: {n: i32, z: f64}) -> (y[push 1]: f64) {
      on a[peek 3, pop 2](v), b[pop 1](w) {
        var s = f64(v[0]);
        for i in 0 .. 3 { if w[0].n > 0 { s = s + f64(v[i]) * w[0].z; } }
        emit y s; } }
    (y) <- f(a, b);"""
    pairs = list(zip(numbers("i32", 140, 1), numbers("f64", 140, 2), strict=True))
    in_lanes(instance(text), numbers("f32", 281, 3), pairs)


@pytest.mark.optimised
@pytest.mark.parametrize("path", sorted(BODY_FILES.glob("c_*.river")), ids=lambda path: path.stem)
def test_the_filters_of_the_hard_bodies(path: Path) -> None:
    graph = verify(parse(Source(path.name, path.read_text(encoding="utf-8"))), Library.of({}))
    operators = {each.operator.name: each.operator for each in graph.instances}
    for name, op in operators.items():
        if not isinstance(op, typed.Operator) or op.rated is None or len(op.rated.rates) != 1:
            continue
        rate = op.rated.rates[0]
        count = 100 * rate.pop + rate.peek
        type_ = op.ports[rate.port].type
        if isinstance(type_, t.Record):
            items = list(zip(*(numbers("f32", count, i) for i, _ in enumerate(type_.fields)), strict=True))
        else:
            assert isinstance(type_, t.Primitive)
            items = numbers(type_.name, count, 3)
        assert isinstance(plan(op), Lanes), name
        in_lanes(op, items)


# ------------------------------------------------------------------------------------------ flush to zero


FAST = """
volatile float tiny = 1e-40f;
int flushes(void) { return tiny * 1.0f == 0.0f; }
#ifdef __SSE__
#include <xmmintrin.h>
void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
void flush(void) {}
#endif
"""


@pytest.mark.optimised
def test_flush_to_zero_does_not_leak(tmp_path: Path) -> None:
    """A library linked with -ffast-math may set flush-to-zero for the thread that loads it; small numbers stay all the same."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    source, library = tmp_path / "fast.c", tmp_path / "fast.so"
    source.write_text(FAST)
    subprocess.run([gcc, "-O1", "-ffast-math", "-shared", "-fPIC", "-o", library, source], check=True)
    text = """operator f(x: f32) -> (y[push 1]: f32) {
      on x[peek 2, pop 1](w) { var s = w[0] * 0.5; if w[1] > 0.0 { s = s * 1.0; } emit y s; } }"""
    found = native(operator(text))
    small = array("I", range(1, 202))  # the bits of subnormal numbers are whole numbers

    def fire() -> tuple[bool, bool, list[int]]:
        loaded = ctypes.CDLL(str(library))
        loaded.flush()
        before = bool(loaded.flushes())
        assert found.fire("rated", [address_of(small)], 0, 200).row == 200
        words = array("I")
        words.frombytes(ctypes.string_at(found.outputs[0].batch().addresses[0], 800))
        return before, bool(loaded.flushes()), words.tolist()

    with ThreadPoolExecutor(1) as thread:  # of its own: the thread of the tests is not to flush
        before, after, words = thread.submit(fire).result()
    assert before == after
    assert words == [(n >> 1) + (n & 1 & (n >> 1)) for n in small[:200]]  # halved, ties to even
