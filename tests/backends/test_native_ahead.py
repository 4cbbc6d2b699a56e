"""Keys sought ahead, texts as keys, and operators that forward columns: against Python's dictionaries and the evaluator."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import river
from backends.multicore import run
from backends.multicore.scheduling import scheduler
from backends.native.jit import host
from backends.native.lower.ahead import LARGE, ROWS, SOME, inside, sought
from backends.native.lower.batches import Lowered, lower
from river.il.forwards import forwarded
from river.lang import typed
from river.platform import Platform

TEXT = """river 1;
type R = {a: string, b: {c: i64, d: string?}, n: i64};
input r: R;
var $one: map<string, i64> = {};
var $two: map<{a: string, c: i64}, i64> = {};
var $three: map<{c: i64}, map<{a: string}, i64>> = {};
var $four: map<string, i64> = {};
var $five: map<string, i64> = {};
fn first(k: string, n: i64) -> list<{a: string, n: i64}> { return [{a: k, n: n}]; }
fn second(k: {a: string, c: i64}, n: i64) -> list<{a: string, c: i64, n: i64}> { return [{a: k.a, c: k.c, n: n}]; }
fn third(k: {c: i64}, m: map<{a: string}, i64>) -> list<{c: i64, a: string, n: i64}> {
  return [{c: k.c, a: w.a, n: n} for w, n in m];
}
operator deal(r: R) -> (x: {a: string, more: i64, tail: string}, y: {a: string, c: i64, n: i64}, z: R, w: R, v: R, u: R) {
  on r(r) {
    emit z r;
    emit w r;
    emit v r;
    emit u r;
    emit x {a: r.a, more: 1, tail: "more than twelve bytes"};
    emit y {a: r.a, c: r.b.c, n: r.n};
  }
}
operator count(x: {a: string, more: i64, tail: string}; $one: map<string, i64>) -> () {
  on x(x) { with e = $one[x.a] else 0 { e = e + x.more + len(x.tail) - 22; } }
}
operator sum(y: {a: string, c: i64, n: i64}; $two: map<{a: string, c: i64}, i64>) -> (o: i64) {
  on y(y) {
    if y.n == 0 { clear($two); }
    with e = $two[{a: y.a, c: y.c}] else 0 { e = e +% y.n; emit o e; if e == 7 { drop e; } }
  }
}
operator nest(w: R; $three: map<{c: i64}, map<{a: string}, i64>>) -> () {
  on w(w) {
    with t = $three[{c: w.b.c}] else {} {
      with e = t[{a: w.a}] else 0 { e = e +% w.n; }
      if w.n == 0 { drop t; }
    }
  }
}
operator meet(v: R; $four: map<string, i64>) -> (s: i64) {
  on v(v) {
    if has($four, v.a) { with e = $four[v.a] { e = e +% v.n; emit s e; } }
    else { with e = $four[v.a] else 0 { e = v.n; } }
  }
}
operator part(u: R; $five: map<string, i64>) -> (s: i64) {
  on u(u) {
    if has($five, u.a) { with e = $five[u.a] { e = e +% u.n; emit s e; if u.n == 0 { drop e; } } }
    else { with e = $five[u.a] else 0 { e = u.n; } }
  }
}
operator parts(z: R) -> (o: {b: {c: i64, d: string?}, n: i64}) { on z(z) { emit o {b: z.b, n: z.n}; } }
(x, y, z, w, v, u) <- deal(r);
($one) <- count(x, $one);
(sums, $two) <- sum(y, $two);
($three) <- nest(w, $three);
(met, $four) <- meet(v, $four);
(parted, $five) <- part(u, $five);
(rest) <- parts(z);
output ones: {a: string, n: i64} = rows($one, first);
output twos: {a: string, c: i64, n: i64} = rows($two, second);
output threes: {c: i64, a: string, n: i64} = rows($three, third);
output sums: i64;
output fours: {a: string, n: i64} = rows($four, first);
output fives: {a: string, n: i64} = rows($five, first);
output met: i64;
output parted: i64;
output rest: {b: {c: i64, d: string?}, n: i64};
"""
MADE = river.compile(TEXT, "river")
KEYS = st.one_of(
    st.text(st.sampled_from("aé"), max_size=3),
    st.builds("{}{}".format, st.sampled_from("abc"), st.integers(0, 70).map("x".__mul__)),
)
ITEMS = st.tuples(KEYS, st.tuples(st.integers(0, 2), st.none() | KEYS), st.integers(-1, 9))


def results(items: list[Any], **options: Any) -> dict[str, list[Any]]:
    found = MADE.run({"r": items}, **options)
    return {name: found[name].to_pylist() for name in found.collected}


def alike(items: list[Any], **options: Any) -> None:
    ours = results(items, backend="multicore", **options)
    assert ours == results(items, backend="reference")
    assert {row["a"]: row["n"] for row in ours["ones"]} == Counter(a for a, _, _ in items)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(ITEMS, max_size=ROWS + 64), st.sampled_from([1, 7, ROWS, 1000]), st.sampled_from(["on", "debug"])
)
def test_forwarded_columns_and_keys_sought_ahead(items, batch, native):
    alike(items, workers=1, batch=batch, native=native)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_texts_of_any_length_are_keys(first):
    """Texts that differ in one byte, wherever that is."""
    bases = ["k" * size for size in range(first, 66, 3)]
    texts = [base[:i] + "y" + base[i + 1 :] for base in bases for i in range(len(base))] + bases
    assert len(set(texts)) == len(texts)
    alike([(text, (0, None), 1) for text in chain(texts, texts)], workers=1)


def test_maps_of_some_hundred_keys():
    """What is found stays while new keys come, in the same block of rows too."""
    keys = [f"{'long ' * (i % 4)}key {i}" for i in range(2 * SOME)]
    alike([(keys[i * i % len(keys)], (0, None), i % 3 + 1) for i in range(len(keys) + 99)], workers=1)


@pytest.mark.slow
def test_large_maps():
    """While a map grows beyond what is near, and after it has been emptied, against Python's dictionaries."""
    keys = [f"{'long ' * (i % 4)}key {i}" for i in range(LARGE + LARGE // 8)]
    items = [(keys[i * 7 % len(keys)], (i % 2, None), i % 5 + 1) for i in range(2 * len(keys))]
    items[len(items) * 3 // 4] = (keys[0], (0, None), 0)  # empties one map
    sums, sent, nested = dict[Any, int](), list[int](), dict[int, Counter[str]]()
    for a, (c, _), n in items:
        nested.setdefault(c, Counter())[a] += n
        if n == 0:
            sums.clear()
            del nested[c]
        sums[a, c] = sums.get((a, c), 0) + n
        sent.append(sums[a, c])
        if sums[a, c] == 7:
            del sums[a, c]
    found = results(items, backend="multicore", workers=2)
    assert {row["a"]: row["n"] for row in found["ones"]} == Counter(a for a, _, _ in items)
    assert {(row["a"], row["c"]): row["n"] for row in found["twos"]} == sums
    assert [row["value"] for row in found["sums"]] == sent
    threes = {(row["c"], row["a"]): row["n"] for row in found["threes"]}
    assert threes == {(c, a): n for c, counts in nested.items() for a, n in counts.items()}


LISTS = """river 1;
type Row = {{k: string, ns: list<i64>, at: {{x: f64, n: i64}}}};
type Some = {{n: i64, k: string, ns: list<i64>}};
input r: {{id: i64, rows: list<Row>}};
operator some(r: {{id: i64, rows: list<Row>}}) -> (o: {{id: i64, some: list<Some>, nil: list<Row>, all: list<Row>}}) {{
  on r(r) {{ emit o {{id: r.id, some: {some}, nil: [], all: r.rows}}; }}
}}
(o) <- some(r);
output o: {{id: i64, some: list<Some>, nil: list<Row>, all: list<Row>}};
"""
PICKED = "[{n: row.at.n, k: row.k, ns: row.ns} for row in r.rows]"


def lists(some: str) -> Any:
    return river.compile(LISTS.format(some=some), "river")


def test_rows_of_lists_are_forwarded_without_some_of_their_fields():
    def only(text: str) -> Any:
        (instance,) = lists(text).graph.instances
        return forwarded(instance.operator)

    assert only(PICKED) is not None
    assert only(PICKED[:-1] + " if row.at.n > 1]") is None
    assert only(PICKED.replace("row.at.n", "row.at.n +% 1")) is None
    assert only(PICKED.replace("row.at.n", "r.id")) is None
    row = ("a text of more than 12 bytes", (1, 2), (0.5, 7))
    items = [(i, (row, ("", (), (0.0, i)))[: i % 3]) for i in range(20)]
    made = lists(PICKED)
    for batch in (1, 3, 64):
        ours = made.run({"r": items}, backend="multicore", batch=batch)["o"].to_pylist()
        assert ours == made.run({"r": items}, backend="reference")["o"].to_pylist()


def test_what_is_looked_for():
    found = [each.operator for each in MADE.graph.instances]
    operators = {each.name: each for each in found if isinstance(each, typed.Operator)}
    assert forwarded(operators["deal"]) is not None
    assert forwarded(operators["parts"]) is not None
    assert forwarded(operators["sum"]) is None
    assert sought(operators["count"].items[0].body) is not None
    assert sought(operators["sum"].items[0].body) is not None
    assert sought(operators["parts"].items[0].body) is None
    assert sought(operators["meet"].items[0].body) is not None
    assert sought(operators["part"].items[0].body) is not None
    assert inside(operators["nest"].items[0].body) is not None
    assert inside(operators["sum"].items[0].body) is None


def test_memory_is_flushed_only_where_some_may_have_been_released():
    operators = [each.operator for each in MADE.graph.instances if isinstance(each.operator, typed.Operator)]
    found = {each.name: lower(each, host().architecture) for each in operators}
    flushed = {
        name for name, each in found.items() if isinstance(each, Lowered) and "call void @flush(" in each.text
    }
    assert flushed == {"nest", "part", "sum"}


@pytest.mark.slow
def test_on_one_processor_the_reader_runs_machine_code(monkeypatch):
    """Whoever runs a step, the results are the same; no step waits for a worker that nobody wakes."""
    monkeypatch.setattr(run, "here", lambda: Platform(cores=1))
    monkeypatch.setattr(scheduler, "HANDOVER", 0.0)
    items = [(f"key {i % 50} of this test", (i % 3, None), i % 7) for i in range(1200)]
    for batch in (1, 64, 1000):
        alike(items, workers=1, batch=batch, bound=batch)
