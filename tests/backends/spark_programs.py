"""Programs that use every kind of stage, with data, and how they are run: for tests of the backend `spark`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from river.il.namespaces import Library
from river.il.parse import parse
from river.il.verify import verify
from river.io import deltas
from river.platform import Platform
from river.source import Source

if TYPE_CHECKING:
    from river.backend import Options, Summary

ACCUMULATED = """x: {s: string, k: int, f: float} = input;
n: table sum of int;
emit n <- 1;
by: table sum[s: string][k: int] of {n: int, f: float};
emit by[x.s][x.k] <- {1, x.f};
best: table top(2) of string weight w: int;
emit best <- x.s weight x.k;
most: table maximum(2)[k: int] of s: string weight f: float;
emit most[x.k] <- x.s weight x.f;
kinds: table unique(5) of s: string;
emit kinds <- x.s;
middle: table quantile(3)[s: string] of k: int;
emit middle[x.s] <- x.k;
"""
"""Tables into which rows are only accumulated."""

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


# -------------------------------------------------------------------------------------- all that Spark computes itself

_ORDER = ("<", "<=", ">", ">=", "==", "!=")
_THREE = ("eq3", "ne3", "lt3", "le3", "gt3", "ge3")
EXPRESSIONS: dict[str, list[str]] = {
    "i64": [
        "r.a +% r.b", "r.a -% r.b", "neg_wrap(r.a)", "-%r.b", "r.a *% 3", "-1073741823 *% r.b", "r.a *% 7 -% 1 +% r.b",
        "r.a & r.b", "r.a | r.b", "r.a ^ r.b", "~r.a", "min(r.a, r.b)", "max(r.a, r.b)", "len(r.s)", "coalesce(r.m, r.a)",
        "if r.p { r.a } else { r.b }", "9223372036854775807", "-9223372036854775807 -% 1", "half(r.a)", "i64(r.d)", "micros(r.e)",
    ],
    "f64": ["r.x + r.y", "r.x - r.y", "r.x * r.y", "-r.x", "f64(r.a)", "-0.0", "1.0e308", "coalesce(r.f, r.x)"],
    "i32": ["min(r.i, r.j)", "max(r.i, r.j)", "coalesce(r.k, r.i)"],
    "decimal(9, 2)": ["min(r.c1, r.c2)", "max(r.c1, r.c2)", "coalesce(r.c3, r.c1)", "-1234567.89"],
    "string": ["r.s + r.u", "min(r.s, r.u)", "max(r.s, r.u)", "\"it's \\\\ `x` \\n é\"", 'coalesce(r.t, "")'],
    "bool": [
        *(f"r.{a} {word} r.{b}" for a, b in ("ab", "xy", "su", "pq", "ij", "de", ("c1", "c2")) for word in _ORDER),
        *(f"same(r.{a}, r.{b})" for a, b in ("ab", "xy", "su", "pq", "ij", "de", ("c1", "c2"))),
        "r.p and (r.q or not r.p)", "is_true(r.o)", *(f"is_none(r.{a})" for a in [*"mftokh", "c3"]), "coalesce(r.o, r.p)",
        "min(r.d, r.e) == r.d", "max(r.d, r.e) == r.d", "coalesce(r.h, r.d) == r.d",
        "time(r.a & 4294967295) < r.d", "r.c1 < 12.34", "r.c1 >= -0.01",
    ],
    "bool?": [
        *(f"{name}(r.{a}, r.{b})" for a, b in ("mn", "fg", "tv", "oz", "kl", "hw", ("c3", "c4")) for name in _THREE),
        "and3(r.o, r.z)", "or3(r.o, lt3(r.f, r.g))", "not3(r.o)",
    ],
}  # fmt: skip
"""Of each type all that has a form in Spark's SQL, of a row `r`."""

_WHOLE = [-(2**63), -(2**63) + 1, -(2**32), -1, 0, 1, 2**31, 2**32 - 1, 0x123456789ABCDEF, 2**63 - 1]
_REAL = [float("nan"), float("-inf"), float("inf"), -0.0, 0.0, 1.5, -1.5, 5e-324, 1.7e308]
_TEXT = ["", "a", "aa", "B", "é", "\uffff", "\U0001d11e", "'\\`\n"]
_TRUTH = [True, False]
_SMALL = [-(2**31), -1, 0, 1, 2**31 - 1]
_INSTANTS = [-62135596800000000, -1, 0, 1, 1700000000000001, 253402300799999999]
_EXACT = [Decimal(text) for text in ("-9999999.99", "-0.01", "0.00", "0.01", "12.34", "9999999.99")]
_COLUMNS: dict[str, tuple[str, list[Any]]] = {
    **dict.fromkeys("ab", ("i64", _WHOLE)),
    **{name: ("i64?", [None, *_WHOLE[::2]]) for name in "mn"},
    **dict.fromkeys("xy", ("f64", _REAL)),
    **{name: ("f64?", [None, *_REAL]) for name in "fg"},
    **dict.fromkeys("su", ("string", _TEXT)),
    **{name: ("string?", [None, *_TEXT[::2]]) for name in "tv"},
    **dict.fromkeys("pq", ("bool", _TRUTH)),
    **{name: ("bool?", [None, *_TRUTH]) for name in "oz"},
    **dict.fromkeys("ij", ("i32", _SMALL)),
    **{name: ("i32?", [None, *_SMALL]) for name in "kl"},
    **dict.fromkeys("de", ("time", _INSTANTS)),
    **{name: ("time?", [None, *_INSTANTS]) for name in "hw"},
    **dict.fromkeys(("c1", "c2"), ("decimal(9, 2)", _EXACT)),
    **{name: ("decimal(9, 2)?", [None, *_EXACT]) for name in ("c3", "c4")},
}


def expressions() -> str:
    """A program whose output `o` has a column for each of `EXPRESSIONS`, of the input `a`."""
    every = [(type_, text) for type_, texts in EXPRESSIONS.items() for text in texts]
    row = ", ".join(f"{name}: {type_}" for name, (type_, _) in _COLUMNS.items())
    made = ", ".join(f"e{n}: {type_}" for n, (type_, _) in enumerate(every))
    values = ", ".join(f"e{n}: {text}" for n, (_, text) in enumerate(every))
    return f"""river 1;
fn half(n: i64) -> i64 {{ return n & 4294967295; }}
operator all(x: {{{row}}}) -> (y: {{{made}}}) {{ on x(r) {{ emit y {{{values}}}; }} }}
input a: {{{row}}}; output o: {{{made}}};
(o) <- all(a);"""


def extremes() -> Any:
    """The rows of `a`, as an Arrow table: each pair of columns of one type has all pairs of values."""
    kinds = {
        "i64": pa.int64(), "f64": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "i32": pa.int32(),
        "time": pa.timestamp("us", "UTC"), "decimal(9, 2)": pa.decimal128(9, 2),
    }  # fmt: skip
    columns: dict[str, Any] = {}
    for name, (type_, values) in _COLUMNS.items():
        count = len(values)
        second = name in [*"bnyguvqzjlew", "c2", "c4"]
        picked = [values[(row // count if second else row) % count] for row in range(100)]
        columns[name] = pa.array(picked, kinds[type_.removesuffix("?")])
    fields = [
        pa.field(name, each.type, nullable=_COLUMNS[name][0].endswith("?")) for name, each in columns.items()
    ]
    return pa.table(columns, pa.schema(fields))
