"""Stages on a stand-in for Spark: the same tasks and rows, in this process, against the calculus."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

from backends.reference import BACKEND as REFERENCE
from backends.spark import run as runs
from backends.spark.plan import Kind, plan
from river.backend import Options, Summary
from river.il.library import Library
from river.il.observe import observed_variables
from river.il.parse import parse
from river.il.verify import verify
from river.io import deltas
from river.lang.evaluate import Trap
from river.platform import Platform
from river.source import Source

spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("spark_stand_in.py"))
assert spec is not None
assert spec.loader is not None
stand_in = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stand_in)

HEAD = """river 1;
type R = {k: i64, s: string, v: i64};
type D = {tau: i64, ins: list<R>, del: list<R>};
operator keep(x: R) -> (y: R) { on x(r) { if rem.trunc(r.v, 3) != 0 { emit y r; } } }
operator twice(x: R) -> (y: R) { on x(r) { emit y r; emit y {k: r.k, s: r.s, v: r.v +% 1}; } }
operator swap(x: R) -> (y: R) { on x(r) { emit y {k: r.v, s: r.s, v: r.k}; } }
operator tally(x: R; $m: map<i64, i64>) -> (y: R) {
  on x(r) { with n = $m[r.k] else 0 { n = n *% 3 +% r.v; emit y {k: r.k, s: r.s, v: n}; } }
}
operator pairs(x: R; $p: map<{k: i64, s: string}, i64>) -> (y: R) {
  on x(r) {
    with n = $p[{k: r.k, s: r.s}] else 0 { n = n + 1; if n == 3 { drop n; } else { emit y r; emit y {k: n, s: r.s, v: r.v}; } }
  }
}
operator total(x: R; $t: i64) -> (y: R) { on x(r) { $t = $t *% 3 +% r.v; emit y {k: r.k, s: r.s, v: $t}; } }
operator window(x: R) -> (y[push 1]: R) { on x[peek 2, pop 1](w) { emit y {k: w[1].k, s: w[0].s, v: w[0].v}; } }
operator pick(x: R by k) -> (y: R by k) { on x(r) { if r.v != 2 { emit y {k: r.k, s: r.s, v: r.v *% 2}; } } }
operator count(x: R by k; $c: map<string, i64>) -> (y: R by k) {
  on x(r) { with n = $c[r.s] else 0 { n = n + 1; emit y {k: r.k, s: r.s, v: n}; } }
}
operator delay(x: R by k; $w: deque<R>) -> (y: R by k) {
  fn expire(ref w: deque<R>, before: i64) {
    while len(w) > 0 and front(w).k + 2 < before { let r = pop_front(w); emit y {k: r.k + 2, s: r.s, v: r.v}; }
  }
  on x(r) { expire($w, r.k); push_back($w, r); }
  on mark(k) { expire($w, k); mark y k; }
}
operator rows(d: D by tau) -> (y: D by tau) {
  on d(x) { emit y {tau: x.tau, ins: [{k: r.v, s: r.s, v: r.k} for r in x.ins if r.v != 1], del: x.del}; }
}
operator group(d: D by tau; $g: map<string, i64>) -> (y: D by tau) {
  on d(x) {
    var ins: list<R> = []; var del: list<R> = [];
    for r in x.ins { with n = $g[r.s] else 0 { n = n + 1; push(ins, {k: r.k, s: r.s, v: n}); } }
    for r in x.del { with n = $g[r.s] else 0 { push(del, {k: r.k, s: r.s, v: n}); n = n - 1; } }
    if len(ins) + len(del) > 0 { emit y {tau: x.tau, ins: ins, del: del}; }
  }
}
"""
PLAIN = {"keep": "", "twice": "", "swap": "", "tally": "map<i64, i64>", "pairs": "map<{k: i64, s: string}, i64>",
         "total": "i64", "window": ""}  # fmt: skip
TIMED = {"pick": "", "count": "map<string, i64>", "delay": "deque<R>"}
DELTAS = {"rows": "", "group": "map<string, i64>"}
LIBRARY = Library.of({})


def chain(source: str, kind: str, output: str, uses: list[str], stateful: dict[str, str]) -> list[str]:
    """The declarations of a chain of operators."""
    lines = [f"input {source}: {kind};", f"output {output}: {kind};"]
    queues = [source, *(f"{source}{n}" for n in range(1, len(uses))), output]
    for n, use in enumerate(uses):
        state = f", ${source}{n}" if stateful[use] else ""
        if state:
            lines.append(f"var ${source}{n}: {stateful[use]} = {'0' if use == 'total' else '{}'};")
        keys = "@Parallel() @Keys(s) " if use == "group" else ""
        lines.append(f"{keys}({queues[n + 1]}{state}) <- {use}({queues[n]}{state});")
    return lines


def some(kinds: dict[str, str], most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=most)


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = chain("a", "R", "ao", draw(some(PLAIN, 6)), PLAIN)
    lines += chain("b", "R by k", "bo", draw(some(TIMED, 4)), TIMED)
    lines += chain("d", "D by tau", "do", draw(some(DELTAS, 3)), DELTAS)
    return "\n".join([HEAD, *lines])


ROWS = st.tuples(st.integers(0, 4), st.sampled_from(["", "x", "yé"]), st.integers(-3, 3))


@st.composite
def data(draw: st.DrawFn) -> dict[str, list[Any]]:
    instants = sorted(draw(st.sets(st.integers(0, 20), max_size=6)))
    some_rows = st.lists(ROWS, max_size=3).map(tuple)
    return {
        "a": draw(st.lists(ROWS, max_size=20)),
        "b": sorted(draw(st.lists(ROWS, max_size=12)), key=lambda row: row[0]),
        "d": [(tau, draw(some_rows), draw(some_rows)) for tau in instants],
    }


def go(
    backend: Any, text: str, items: dict[str, list[Any]], options: Options
) -> tuple[Any, dict[str, list[Any]], Summary]:
    """The plan, the outputs with deltas in canonical form, and the summary."""
    graph = verify(parse(Source("p.river", text)), LIBRARY)
    assert graph.deterministic
    made = backend.plan(graph, Platform(2), options)
    found: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    sources = {name: [items[name]] for name in graph.inputs}
    summary = backend.run(made, sources, {name: got.extend for name, got in found.items()})
    for name, got in found.items():
        if deltas.is_delta(graph.queues[name].type):
            found[name] = list(map(deltas.canonical, got))
    return made, found, summary


class StandIn:
    """The backend on the stand-in."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def plan(self, *given: Any) -> Any:
        return plan(*given)

    def run(self, *given: Any) -> Summary:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runs, "session", lambda _: stand_in.Session(self.seed))
            return runs.run(*given)


WAYS = st.builds(Options, batch=st.sampled_from([1, 3, 7, 4096]), workers=st.integers(1, 3))


@settings(max_examples=25)
@given(text=programs(), items=data(), options=WAYS, seed=st.integers(0, 99))
def test_stages_compute_what_the_calculus_says(text, items, options, seed):
    _, expected, meaning = go(REFERENCE, text, items, options)
    made, found, summary = go(StandIn(seed), text, items, options)
    assert found == expected, made.show()
    variables = [observed_variables(made.graph, s.variables) for s in (summary, meaning)]
    assert variables[0] == variables[1], made.show()


RISKY = """
operator risky(x: R) -> (y: R) { on x(r) { emit y {k: r.k, s: r.s, v: div.trunc(6, r.v)}; } }
input a: R;
output ao: R;
"""


def trap(backend: Any, text: str, items: dict[str, list[Any]], options: Options) -> Trap:
    with pytest.raises(Trap) as caught:
        go(backend, text, items, options)
    return caught.value


@pytest.mark.parametrize(
    ("uses", "kind"),
    [
        ("(ao) <- risky(a);", Kind.MAP),
        ("(a1) <- twice(a); (a2) <- risky(a1); var $m: map<i64, i64> = {}; (ao, $m) <- tally(a2, $m);", Kind.KEYED),
        ("(a1) <- window(a); (a2) <- risky(a1); var $t: i64 = 0; (ao, $t) <- total(a2, $t);", Kind.MAP),
    ],
)
def test_the_first_trap_is_told_as_by_the_calculus(uses, kind):
    text = HEAD + RISKY + uses
    items = {"a": [(n, "x", (n - 7) * (n - 11)) for n in range(20)]}
    told: list[Any] = []
    for backend in (REFERENCE, StandIn(3)):
        caught = trap(backend, text, items, Options(batch=3, workers=2))
        told.append((caught.code, caught.operator, caught.site, caught.diagnostic(), caught.operands))
        assert caught.span is not None
    assert told[0] == told[1]
    made, _, _ = go(StandIn(0), text, {"a": [(1, "x", 1)] * 3}, Options(workers=2))
    assert kind in {stage.kind for stage in made.stages}


def test_items_that_trap_are_left_out_where_that_is_wanted():
    text = HEAD + RISKY + "(ao) <- risky(a);"
    items = {"a": [(n, "x", n % 5) for n in range(20)]}
    seen: list[Any] = []
    for backend in (REFERENCE, StandIn(1)):
        told: list[Any] = []
        _, found, summary = go(backend, text, items, Options(batch=3, workers=2, on_trap=told.append))
        seen.append((found, told, summary.skipped))
    assert seen[0] == seen[1]
    assert seen[0][2] == {"risky#0": 4}


UNSORTED = """
operator stamp(x: R) -> (y: R by k) { on x(r) { emit y r; } }
operator scan(x: R; $t: i64) -> (y: R by k) { on x(r) { $t = $t + 1; emit y r; } }
input a: R;
output ao: R by k;
"""


@pytest.mark.parametrize("first", ["stamp", "scan"])
def test_an_order_that_is_not_kept_is_found(first):
    state, var = (", $t", "var $t: i64 = 0;") if first == "scan" else ("", "")
    text = f"{HEAD}{UNSORTED}{var} (a1{state}) <- {first}(a{state}); (ao) <- pick(a1);"
    items = {"a": [(n % 7, "x", n) for n in range(20)]}
    told: list[Any] = []
    for backend in (REFERENCE, StandIn(3)):
        caught = trap(backend, text, items, Options(batch=3, workers=2))
        told.append((caught.code, caught.operator, caught.site, caught.span))
    assert told[0] == told[1]
    assert told[0][0] == "order-violation"


def test_counts_are_those_of_the_calculus():
    text = HEAD + "input a: R; output ao: R; var $m: map<i64, i64> = {};" + (
        "(a1) <- keep(a); (ao, $m) <- tally(a1, $m);"
    )
    items = {"a": [(n % 5, "x", n) for n in range(40)]}
    fired = [go(b, text, items, Options(batch=7, workers=2))[2].fired for b in (REFERENCE, StandIn(0))]
    assert fired[1] == {"keep#0": 40, "tally#1": 26}
    assert {name: fired[0][name] for name in fired[1]}.keys() == fired[1].keys()
