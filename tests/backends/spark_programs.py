"""Programs that use every kind of stage, with data, and how they are run: for tests of the backend `spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from river.il.library import Library
from river.il.parse import parse
from river.il.verify import verify
from river.io import deltas
from river.platform import Platform
from river.source import Source

if TYPE_CHECKING:
    from river.backend import Options, Summary

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
def programs(draw: st.DrawFn, most: int) -> str:
    """Three chains of at most `most` operators."""
    lines = chain("a", "R", "ao", draw(some(PLAIN, most)), PLAIN)
    lines += chain("b", "R by k", "bo", draw(some(TIMED, most)), TIMED)
    lines += chain("d", "D by tau", "do", draw(some(DELTAS, most)), DELTAS)
    return "\n".join([HEAD, *lines])


ROWS = st.tuples(st.integers(0, 4), st.sampled_from(["", "x", "yé"]), st.integers(-3, 3))


@st.composite
def data(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Items for the three chains."""
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
