"""River-Sawzall programs run end to end, against plain Python; the example."""

from __future__ import annotations

import csv
import re
import runpy
import struct
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import river
from frontends.sawzall.operations import FUNCTIONS, MATCHES
from frontends.sawzall.tables import KINDS
from river import plugins
from river.diagnostics import Rejected
from river.testing import seeds

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "log_analyzer"
BACKENDS = ["reference", "multicore"]

Row = dict[str, Any]


def run(text: str, rows: list[Row], backend: str = "multicore") -> dict[str, list[Row]]:
    (name,) = re.findall(r"(\w+): \{[^=;]*\} = input;", text)
    results = river.compile(text, lang="sawzall").run({name: rows}, backend=backend)
    return {name: table.to_pylist(maps_as_pydicts="strict") for name, table in results.tables.items()}


def table(kind: str, emit: str, rows: list[Row]) -> list[Row]:
    text = f"r: {{k: string, i: int, f: float, s: string}} = input; t: table {kind}; emit t{emit};"
    return run(text, [{"k": "a", "i": 0, "f": 0.0, "s": ""} | row for row in rows])["t"]


# --------------------------------------------------------------------------------------------------- the example


@pytest.mark.parametrize("backend", BACKENDS)
def test_figure_3d(backend: str) -> None:
    program = river.load(str(EXAMPLE / "query_log.szl"))
    results = program.run({"logRecord": str(EXAMPLE / "queries.csv")}, backend=backend)
    with (EXAMPLE / "queries.csv").open(encoding="utf-8", newline="") as file:
        queries = list(csv.DictReader(file))
    for name, column, expected in (
        ("queryOrigins", "origin", "origins"),
        ("queryTargets", "target", "targets"),
    ):
        counts = Counter(query[column] for query in queries)
        found = results[name].to_pylist()
        assert found == [{"url": url, "count": count} for url, count in sorted(counts.items())]
        text = (EXAMPLE / "expected" / f"{expected}.csv").read_text(encoding="utf-8")
        assert text.splitlines() == ["url,count", *(f"{row['url']},{row['count']}" for row in found)]


def test_the_data_of_the_example_can_be_made_again() -> None:
    made = runpy.run_path(str(EXAMPLE / "make_data.py"))["queries"]()
    with (EXAMPLE / "queries.csv").open(encoding="utf-8", newline="") as file:
        assert [tuple(row) for row in csv.reader(file)] == [("origin", "target"), *made]


# --------------------------------------------------------------------------------------------------- tables


def test_sum() -> None:
    rows = [
        {"k": k, "i": i, "f": f}
        for k, i, f in [("b", 1, 0.1), ("a", 1 << 62, 1e308), ("a", 1 << 62, 1e308), ("b", 2, 0.2)]
    ]
    assert table("sum[k: string] of {n: int, x: float}", "[r.k] <- {r.i, r.f}", rows) == [
        {"k": "a", "n": -(1 << 63), "x": float("inf")},
        {"k": "b", "n": 3, "x": 0.30000000000000004},
    ]
    exact = [{"f": f} for f in (1e16, 1.0, -1e16)]
    assert table("sum of float", " <- r.f", exact) == [{"value": 1.0}]


def test_without_emits_a_table_has_no_rows() -> None:
    assert table("sum of int", " <- 1", []) == []
    assert table("top(2) of string weight int", " <- r.s weight 1", []) == []


def test_collection() -> None:
    rows = [{"i": 2}, {"i": 1}, {"i": 2}]
    assert table("collection[k: string] of {i: int, s: string}", "[r.k] <- {r.i, r.s}", rows) == [
        {"k": "a", "i": i, "s": ""} for i in (2, 1, 2)
    ]


@pytest.mark.slow
def test_maximum_and_minimum() -> None:
    rows = [{"s": s, "f": f} for s, f in [("x", 1.0), ("y", 3.0), ("z", 2.0), ("y", 3.0), ("a", 3.0)]]
    most = table("maximum(2) of s: string weight f: float", " <- r.s weight r.f", rows)
    assert most == [{"s": "y", "f": 3.0}, {"s": "y", "f": 3.0}]
    least = table("minimum(3)[string] of string weight float", "[r.k] <- r.s weight r.f", rows)
    assert least == [{"key0": "a", "value": v, "weight": w} for v, w in [("x", 1.0), ("z", 2.0), ("a", 3.0)]]
    both = [
        {"k": k, "s": s, "f": f}
        for k, s, f in [("b", "p", 1.0), ("a", "q", 2.0), ("b", "r", 9.0), ("a", "s", 4.0)]
    ]
    ranked = table("maximum(2)[k: string] of s: string weight f: float", "[r.k] <- r.s weight r.f", both)
    assert [(row["k"], row["s"]) for row in ranked] == [("a", "s"), ("a", "q"), ("b", "r"), ("b", "p")]


def test_top() -> None:
    rows = [{"s": s, "i": i} for s, i in [("a", 2), ("b", 5), ("c", 1), ("a", 3), ("d", -(1 << 63))]]
    best = table("top(2) of s: string weight n: int", " <- r.s weight r.i", [*rows, {"s": "e", "i": 4}])
    assert best == [{"s": "a", "n": 5}, {"s": "b", "n": 5}]
    heavy = table(
        "top(2)[k: string] of s: string weight n: int", "[r.k] <- r.s weight r.i", [*rows, {"s": "z", "i": 9}]
    )
    assert [row["s"] for row in heavy] == ["z", "a"]
    every = table("top(9) of s: string weight n: float", " <- r.s weight float(r.i)", rows)
    assert {row["s"]: row["n"] for row in every} == {"a": 5.0, "b": 5.0, "c": 1.0, "d": -(2.0**63)}
    first = table("top(3) of s: string weight n: int", " <- r.s weight r.i", rows)
    assert [row["s"] for row in first] == [
        "a",
        "b",
        "c",
    ]  # the least weight comes last, though its negative wraps


@pytest.mark.slow
def test_set_and_unique() -> None:
    rows = [{"k": k, "i": i} for k, i in [("a", 1), ("b", 1), ("a", 2), ("a", 1), ("b", 2), ("b", 3)]]
    kept = [{"k": "a", "i": 1}, {"k": "a", "i": 2}]
    assert table("set(2)[k: string] of i: int", "[r.k] <- r.i", rows) == kept
    assert table("set[k: string] of i: int", "[r.k] <- r.i", rows) == kept + [
        {"k": "b", "i": i} for i in (1, 2, 3)
    ]
    assert table("unique(1)[k: string] of i: int", "[r.k] <- r.i", rows) == [
        {"k": "a", "count": 2},
        {"k": "b", "count": 3},
    ]


def test_mrcounter() -> None:
    assert table("mrcounter[k: string] of int", "[r.k] <- r.i", [{"i": 2}, {"i": 3}]) == [
        {"k": "a", "value": 5}
    ]


KINDS_OF_TABLES = """
r: { k: string, v: int } = input;
quantiles: table quantile(3)[k: string] of v: int;
distinct: table distinctsample(2) of v: int weight n: int;
histogram: table inversehistogram(9)[k: string] of v: int weight n: int;
sums: table sum[k: string] of { at: time, a: array of int, m: map [string] of { int, float } };
strap: table bootstrapsum(3) of { int, float } weight fingerprint;
kinds: table unique(10) of int;
few: table sample(3) of v: int;
heavy: table weightedsample(2)[k: string] of v: int weight w: float;
lines: table text of string;
records: table recordio(0) of f: float;
draws: table collection of int;
draw: function(n: int): int { return nrand(n); };
emit quantiles[r.k] <- r.v;
emit distinct <- r.v % 3 weight r.v;
emit histogram[r.k] <- r.v % 2 weight 1;
a: array of int = {1};
if (r.v > 2) a = a + {r.v};
emit sums[r.k] <- { time(r.v), a, {r.k: {r.v, 0.1}} };
emit strap <- { r.v, 0.5 } weight fingerprintof(r.v);
emit kinds <- r.v % 4;
emit few <- r.v;
emit heavy[r.k] <- r.v weight if_heavy(r.v);
emit lines <- string(r.v) + ";";
emit records <- 1.0 / float(r.v);
emit draws <- draw(1000000) + int(1e6 * rand());
""".replace("if_heavy(r.v)", "float(r.v - 2)")


@pytest.mark.slow
def test_tables_of_all_kinds() -> None:
    program = river.compile(KINDS_OF_TABLES, lang="sawzall")
    rows = [{"k": "ab"[v % 2], "v": v} for v in (5, 1, 2, 3, 4, 6, 7, 7)]
    found = {
        (backend, batch): program.run({"r": rows}, backend=backend, workers=workers, batch=batch).tables
        for backend, workers, batch in (("reference", 1, 8), ("multicore", 4, 1))
    }
    tables, other = (
        {n: t.to_pylist(maps_as_pydicts="strict") for n, t in each.items()} for each in found.values()
    )
    assert tables == other
    assert [row["v"] for row in tables["quantiles"]] == [2, 4, 6, 1, 5, 7]
    totals = Counter[int]()
    for row in rows:
        totals[row["v"] % 3] += row["v"]
    assert {row["v"]: row["n"] for row in tables["distinct"]}.items() <= totals.items()
    assert len(tables["distinct"]) == 2
    assert tables["histogram"] == [
        {"k": "a", "n": 0, "fraction": 1.0}, {"k": "a", "n": 3, "fraction": 1.0},
        {"k": "b", "n": 0, "fraction": 1.0}, {"k": "b", "n": 5, "fraction": 1.0},
    ]  # fmt: skip
    (evens, odds) = tables["sums"]
    assert (evens["at"], evens["a"]) == (datetime.fromtimestamp(12e-6, UTC), [3, 10])
    assert odds["m"] == {"b": {"_0": 23, "_1": 0.5}}
    assert tables["strap"][0] == {"_0": 35, "_1": 4.0}
    assert len(tables["strap"]) == 3
    assert tables["kinds"] == [{"count": 4}]
    kept = [row["v"] for row in tables["few"]]
    assert len(kept) == 3
    assert not Counter(kept) - Counter(row["v"] for row in rows)
    assert {row["k"]: row["v"] for row in tables["heavy"]}.keys() == {"a", "b"}
    assert all(row["w"] > 0 for row in tables["heavy"])
    assert "".join(row["value"] for row in tables["lines"]) == "5;1;2;3;4;6;7;7;"
    assert [row["f"] for row in tables["records"]] == [
        b"\x08" + struct.pack("<d", 1 / row["v"]) for row in rows
    ]
    draws = [row["value"] for row in tables["draws"]]
    assert len(set(draws)) == len(draws), "equal records draw other numbers"


def test_quantiles_stand_at_whole_numbers_where_distances_are() -> None:
    """The middle one of 15 of 58 values: floats would have 7 * (58 / 14) a little greater than 29."""
    program = river.compile(
        "r: {v: int} = input; q: table quantile(15) of v: int; emit q <- r.v;", lang="sawzall"
    )
    found = program.run({"r": [{"v": v} for v in range(1, 59)]}, backend="reference").tables["q"].to_pylist()
    assert [row["v"] for row in found] == [max(1, -(-58 * i // 14)) for i in range(15)]


def test_samples_are_even_and_weights_count() -> None:
    text = """
s: table sample(300) of v: int;
w: table weightedsample(300) of v: int weight n: float;
for (i: int = 0; i < 1000; i++) {
  emit s <- i;
  emit w <- i weight i < 500 ? 1.0 : 9.0;
}
""".replace("i < 500 ? 1.0 : 9.0", "float(1 + i / 500 * 8)")
    found = river.compile(text, lang="sawzall").run({}, backend="multicore").tables
    low = sum(row["v"] < 500 for row in found["s"].to_pylist())
    assert found["s"].num_rows == found["w"].num_rows == 300
    assert 100 < low < 200
    assert sum(row["v"] < 500 for row in found["w"].to_pylist()) < 100


# --------------------------------------------------------------------------------------------------- undefined values


@pytest.mark.parametrize(
    ("expr", "why"),
    [
        ("1 / r.i", "`1 / r.i`: division by zero"),
        ("1 % r.i", "`1 % r.i`: division by zero"),
        ("int(1.5 / r.f)", "`1.5 / r.f`: division by zero"),
        ("r.a[r.i]", "`r.a[r.i]`: index out of range"),
        ("r.a[-1]", "`r.a[-1]`: index out of range"),
        ("r.s[2]", "`r.s[2]`: index out of range"),
        ('r.m["b"]', '`r.m["b"]`: no such key'),
        ('r.deep["b"][0]', '`r.deep["b"]`: no such key'),
        ("r.o", "`r.o`: the field is missing"),
        ("int(r.s)", "`int(r.s)`: cannot be converted"),
        ("int(float(r.s + `9e99`))", "`int(float(r.s + `9e99`))`: cannot be converted"),
        ("int(r.s, 10)", "`int(r.s, 10)`: cannot be converted"),
        ("int(uint(-1.0))", "`uint(-1.0)`: cannot be converted"),
        ("x", "`x` has no value"),
        ("f(r.i)", "`f(r.i)`: the result is undefined"),
    ],
)
def test_undefined(expr: str, why: str) -> None:
    text = """
    r: {i: int, f: float, s: string, a: array of int, m: map [string] of int,
        deep: map [string] of array of int, o: int?} = input;
    before: table sum of int; after: table sum of int; known: table sum of int;
    x: int; if (false) x = 1;
    f: function(n: int): int { return 1 / n; };
    emit before <- 1;
    """
    row = {"i": 0, "f": 0.0, "s": "", "a": [], "m": {}, "deep": {}, "o": None}
    found = run(f"{text}if (def({expr})) emit known <- 1;\nemit after <- {expr};", [row])
    assert found["before"] == [{"value": 1}]
    assert found["after"] == found["known"] == []
    assert [r["why"] for r in found["undefined"]] == [why]
    assert found["undefined"][0]["at"].startswith("9:")


def test_an_undefined_record_does_not_harm_others() -> None:
    text = "r: {n: int} = input; t: table sum of int; emit t <- 12 / r.n; emit t <- 1;"
    found = run(text, [{"n": n} for n in (3, 0, 4, 0)])
    assert found["t"] == [{"value": 9}]
    assert found["undefined"] == [{"at": "1:53", "why": "`12 / r.n`: division by zero"}] * 2


def test_what_does_not_matter_may_be_undefined() -> None:
    text = (
        "r: {n: int} = input; t: table sum of int; if (r.n != 0 && 12 / r.n > 3 || r.n == 7) emit t <- r.n;"
    )
    assert run(text, [{"n": n} for n in (3, 0, 4, 7)]) == {"t": [{"value": 10}], "undefined": []}


def test_a_failed_assertion_ends_the_run() -> None:
    text = 'r: {n: int} = input; t: table sum of int; assert(r.n > 0, "positive"); emit t <- r.n;'
    assert run(text, [{"n": 1}]) == {"t": [{"value": 1}]}
    with pytest.raises(Rejected) as found:
        run(text, [{"n": 0}])
    assert "positive" in found.value.diagnostics[0].message


# --------------------------------------------------------------------------------------------------- statements


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_of_many_statements(backend: str) -> None:
    text = """
    r: {words: array of string, n: int} = input;
    t: table sum[word: string] of {n: int, length: int};
    steps: table collection of {n: int, steps: int};
    collatz: function(n: int): int {
      steps: int = 0;
      while (n != 1) { if (n % 2 == 0) n = n / 2; else n = 3 * n + 1; steps++; }
      return steps;
    };
    seen: map [string] of int = {:};
    for (i: int = 0; i < len(r.words); i++) {
      word: string = lowercase(r.words[i]);
      if (word == "stop") break;
      if (len(word) == 0) continue;
      seen[word] = lookup(seen, word, 0) + 1;
    }
    ks: array of string = keys(seen);
    for (i := 0; i < len(ks); i++) emit t[ks[i]] <- {seen[ks[i]], len(ks[i])};
    switch (r.n) {
      case 0: ;
      case 1, 2: emit steps <- {r.n, -1}; break;
      default: emit steps <- {n: r.n, steps: collatz(r.n)};
    }
    """
    rows = [
        {"words": ["a", "B", "a", "", "stop", "x"], "n": 7},
        {"words": ["b"], "n": 1},
        {"words": [], "n": 0},
    ]
    words: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for word, times in [("a", 2), ("b", 1), ("b", 1)]:
        words[word][0] += times
        words[word][1] += len(word)
    found = run(text, rows, backend)
    assert found["t"] == [{"word": w, "n": n, "length": m} for w, (n, m) in sorted(words.items())]
    assert found["steps"] == [{"n": 7, "steps": 16}, {"n": 1, "steps": -1}]


@pytest.mark.parametrize("backend", BACKENDS)
def test_records_inside_records(backend: str) -> None:
    text = """
    type P = {x: int, y: {z: float, w: string?}};
    log: {n: int, ps: array of P, b: bytes, t: time} = input;
    t: table collection of {n: int, y: {z: float, w: string?}};
    d: table collection of P;
    e: table sum[k: {a: int, b: string}] of {i: int, f: float, u: uint};
    g: table set of bytes;
    h: table top(3) of v: array of int weight uint;
    n: function(): int { return log.n; };
    swap: function(ps: array of P): array of P { x: P = ps[0]; ps[0] = ps[1]; ps[1] = x; return ps; };
    forever: function(): int { for (;;) { return 3; } };
    log.n = log.n + 1;
    log.ps = swap(log.ps);
    log.ps[0].x++;
    emit t <- {n(), log.ps[1].y};
    when (i: each int; log.ps[i].x > 1) emit d <- log.ps[i];
    emit e[{1, "a"}] <- {forever(), 1.0, 18446744073709551615U};
    emit g <- log.b[0:1] + B"\\x01";
    emit h <- {hourof(log.t), yearof(log.t), int(log.b[0])} weight 1U;
    others: array of P;
    if (log.n > 2) others = log.ps;
    others[0].y.z = 9.0;
    emit d <- others[0];
    m: map [string] of map [string] of int = {:};
    m["a"] = {:};
    m["a"]["b"] = 4;
    emit t <- {m["a"]["b"], {1.5, log.ps[1].y.w}};
    """
    ps = [{"x": 1, "y": {"z": 1.0, "w": None}}, {"x": 2, "y": {"z": 2.0, "w": "s"}}]
    row = {"n": 2, "ps": ps, "b": b"ab", "t": datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)}
    found = run(text, [row, {**row, "n": 1}], backend)
    assert found["t"] == [{"n": n, "y": ps[0]["y"]} for n in (3, 2)]
    first = {"x": 3, "y": ps[1]["y"]}
    assert found["d"] == [first, {"x": 3, "y": {"z": 9.0, "w": "s"}}, first]
    assert found["e"] == [{"k": {"a": 1, "b": "a"}, "i": 6, "f": 2.0, "u": (1 << 64) - 2}]
    assert found["g"] == [{"value": b"a\x01"}]
    assert found["h"] == [{"v": [3, 2020, 97], "weight": 2}]
    assert [r["why"] for r in found["undefined"]] == [
        "`log.ps[1].y.w`: the field is missing",
        "`others` has no value",
    ]


def test_a_top_without_weight_counts() -> None:
    """As in the paper: `T: table top(10) of language: string;`."""
    text = """
    log: {w: string} = input;
    t: table top(2)[n: int] of w: string;
    emit t[len(log.w)] <- log.w;
    """
    found = run(text, [{"w": w} for w in ("b", "a", "b", "c", "aa")], "multicore")
    assert found["t"] == [
        {"n": 1, "w": "b", "weight": 2},
        {"n": 1, "w": "a", "weight": 1},
        {"n": 2, "w": "aa", "weight": 1},
    ]


def test_parameters_need_no_names() -> None:
    text = """
    log: {w: string} = input;
    t: table collection of string;
    apply: function(f: function(int, int): int, string): int { return f(3, 4); };
    emit t <- string(apply(function(int, n: int): int { return n; }, log.w));
    """
    assert run(text, [{"w": "a"}], "reference")["t"] == [{"value": "4"}]


def test_values_are_copied() -> None:
    text = """
    r: {a: array of int} = input;
    t: table collection of {a: array of int, b: array of int, c: map [string] of array of int};
    change: function(a: array of int): array of int { a[0] = 7; return a; };
    b: array of int = r.a;
    b[0] = 9;
    c: map [string] of array of int = {"b": b};
    b[0]++;
    c["b"][1] = 5;
    emit t <- {change(r.a), b, c};
    """
    assert run(text, [{"a": [1, 2]}])["t"] == [{"a": [7, 2], "b": [10, 2], "c": {"b": [9, 5]}}]


def test_when_binds() -> None:
    text = """
    r: {a: array of int, m: map [string] of int} = input;
    t: table collection of {kind: string, i: int, k: string};
    when (i: some int; r.a[i] > 1) emit t <- {"some", i, ""};
    when (i: each int; k: each string; r.a[i] == r.m[k]) emit t <- {"each", i, k};
    when (i: each int; k: some string; r.a[i] <= r.m[k]) emit t <- {"first", i, k};
    when (k: all string; r.m[k] > 0) emit t <- {"all", 0, ""};
    when (i: some int; k: each string; r.m[k] < r.a[i]) emit t <- {"mixed", i, k};
    """
    found = run(text, [{"a": [1, 2, 2], "m": {"y": 2, "x": 1}}])["t"]
    assert [(row["kind"], row["i"], row["k"]) for row in found] == [
        ("some", 1, ""), ("each", 0, "x"), ("each", 1, "y"), ("each", 2, "y"), ("first", 0, "y"), ("first", 1, "y"),
        ("first", 2, "y"), ("all", 0, ""), ("mixed", 1, "x"),
    ]  # fmt: skip


def test_functions_see_variables_and_emit() -> None:
    text = """
    r: {n: int} = input;
    t: table sum[depth: int] of int;
    static base: int = 10 * 2;
    scale: int = r.n * 100;
    down: function(n: int) { emit t[n] <- base + scale; if (n > 0) down(n - 1); };
    down(1);
    scale = 0;
    down(0);
    """
    assert run(text, [{"n": 1}])["t"] == [{"depth": 0, "value": 140}, {"depth": 1, "value": 120}]


# --------------------------------------------------------------------------------------------------- the user's page


def test_the_page_names_every_function_and_table() -> None:
    text = (ROOT / "docs" / "sawzall.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    assert {*MATCHES, *KINDS, *(op.name for op in FUNCTIONS)} <= words


def test_the_frontend_is_found_and_light() -> None:
    assert "sawzall" in plugins.frontends()
    light = "import sys, frontends.sawzall; sys.exit('lark' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", light], cwd=ROOT, check=False).returncode == 0


# --------------------------------------------------------------------- functions of each other, patterns, texts of all

MUTUAL = """
r: { n: int, s: string } = input;
t: table collection of { n: int, even: bool, odd: bool, text: string };
base: int = r.n % 3;
even: function(n: int): bool { if (n == 0) return true; return odd(n - 1); };
odd := function(n: int): bool { if (n == 0) return false; return even(n - 1); };
a: function(n: int): string { if (n <= 0) return "a" + string(base); return b(n - 1) + "a"; };
b: function(n: int): string { if (n <= 0) return r.s[0:1]; return c(n - 1) + "b"; };
c: function(n: int): string { x := r.s[n]; return a(n - 1) + "c" + string(x); };
emit t <- { r.n, even(r.n), odd(r.n), a(r.n) };
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_that_call_each_other(backend: str) -> None:
    rows = [{"n": n, "s": s} for n in range(12) for s in ("", "xyz", "abcdefghijklm")]

    def text(name: str, n: int, row: Row) -> str:
        match name:
            case "a":
                return f"a{row['n'] % 3}" if n <= 0 else text("b", n - 1, row) + "a"
            case "b":
                return row["s"][:1] if n <= 0 else text("c", n - 1, row) + "b"
            case _:
                found = ord(row["s"][n])
                return text("a", n - 1, row) + "c" + str(found)

    expected: list[Row] = []
    for row in rows:
        try:
            made = text("a", row["n"], row)
        except IndexError:
            continue
        expected.append({"n": row["n"], "even": row["n"] % 2 == 0, "odd": row["n"] % 2 == 1, "text": made})
    found = run(MUTUAL, rows, backend)
    assert found["t"] == expected
    assert len(found["undefined"]) == len(rows) - len(expected) > 0


def test_what_a_function_reads_through_later_ones_stands_before_it() -> None:
    text = """
r: { n: int } = input;
t: table sum of int;
f: function(n: int): int { return g(n); };
x: int = f(1);
y: int = r.n;
g: function(n: int): int { return n + y; };
emit t <- f(1);
"""
    with pytest.raises(Rejected, match="`f` calls functions that read `y`, which is declared after it"):
        river.compile(text, lang="sawzall")
    moved = text.replace("y: int = r.n;\n", "").replace("f: function", "y: int = r.n;\nf: function")
    assert run(moved, [{"n": 4}])["t"] == [{"value": 5}]
    early = moved.replace("y: int = r.n;\n", "y: int;\n").replace("g: function", "y = 7;\ng: function")
    found = run(early, [{"n": 4}])
    assert found == {"t": [{"value": 8}], "undefined": []}  # `x` has no value, and nobody asks for it


@pytest.mark.parametrize("backend", BACKENDS)
def test_patterns_that_a_record_makes(backend: str) -> None:
    text = """
r: { p: string, s: string } = input;
static word: string = "[a-z]+";
t: table collection of { yes: bool, parts: array of string, at: array of int, word: array of string };
emit t <- { match(r.p, r.s), matchstrs("(" + r.p + ")!", r.s), matchposns(r.p, r.s), matchstrs(word, r.s) };
"""
    rows = [{"p": p, "s": s} for p in ("a+", "é|x", "^$", "") for s in ("", "xaa!", "éé!a", "Ünder")]
    expected: list[Row] = []
    for row in rows:
        found, marked, word = (re.search(p, row["s"]) for p in (row["p"], f"({row['p']})!", "[a-z]+"))
        parts = [] if marked is None else [marked[0], marked[1]]
        at = [] if found is None else list(found.span())
        expected.append(
            {"yes": found is not None, "parts": parts, "at": at, "word": [] if word is None else [word[0]]}
        )
    assert run(text, rows, backend)["t"] == expected
    with pytest.raises(Rejected, match="not a regular expression"):
        run(text, [{"p": "(", "s": ""}], backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_texts_of_arrays_maps_and_records(backend: str) -> None:
    text = """
r: { a: array of array of int, m: map [string] of float, o: { x: int, y: string? } } = input;
t: table collection of { a: string, m: string, o: string, each_: string };
emit t <- { string(r.a), string(r.m), string(r.o), format("%v, %v: %v (%v)", r.a, r.m, r.o, len(r.a)) };
"""

    def quoted(value: Any) -> str:
        match value:
            case None:
                return "undefined"
            case str():
                letters = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
                return '"' + "".join(letters.get(c, c) for c in value) + '"'
            case dict() if not value:
                return "{ : }"
            case list() if not value:
                return "{  }"
            case list():
                return "{ " + ", ".join(map(quoted, value)) + " }"
            case _:
                return str(value)

    rows: list[Row] = [
        {"a": [[1, 2], []], "m": {"b": 1.5, 'a"\\': -0.5, "\n\t": 2.0}, "o": {"x": 1, "y": "é\r"}},
        {"a": [], "m": {}, "o": {"x": -3, "y": None}},
    ]
    expected: list[Row] = []
    for row in rows:
        pairs = [f"{quoted(key)}: {quoted(value)}" for key, value in row["m"].items()]
        m = "{ " + ", ".join(pairs) + " }" if pairs else "{ : }"
        a, o = quoted(row["a"]), quoted(list(row["o"].values()))
        expected.append({"a": a, "m": m, "o": o, "each_": f"{a}, {m}: {o} ({len(row['a'])})"})
    assert run(text, rows, backend)["t"] == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_of_maps_are_by_key(backend: str) -> None:
    text = """
r: { h: string, m: map [string] of float, n: map [int] of int } = input;
a: table sum[h: string] of map [string] of float;
b: table sum of counts: map [int] of int;
emit a[r.h] <- r.m;
emit b <- r.n;
"""
    chance = seeds.chance("sawzall run", 4)
    rows: list[Row] = [
        {
            "h": chance.choice("xyz"),
            "m": {chance.choice("abcde"): chance.uniform(-1e9, 1e-9) for _ in range(chance.randrange(4))},
            "n": {chance.randrange(5): chance.randrange(-(1 << 63), 1 << 63) for _ in range(3)},
        }
        for _ in range(40)
    ]
    floats: dict[str, dict[str, Fraction]] = {}
    ints: dict[int, int] = {}
    for row in rows:
        sums = floats.setdefault(row["h"], {})
        for key, value in row["m"].items():
            sums[key] = sums.get(key, Fraction(0)) + Fraction(value)
        for key, value in row["n"].items():
            ints[key] = (ints.get(key, 0) + value + (1 << 63)) % (1 << 64) - (1 << 63)
    found = run(text, rows, backend)
    expected = [
        {"h": h, "value": {k: float(v) for k, v in sorted(sums.items())}}
        for h, sums in sorted(floats.items())
    ]
    assert repr(found["a"]) == repr(expected)
    assert repr(found["b"]) == repr([{"counts": dict(sorted(ints.items()))}])
