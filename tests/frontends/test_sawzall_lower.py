"""River IL of River-Sawzall: Figure 3 (d) as text, laws of every lowered program, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import river
from frontends.sawzall import FRONTEND
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.program import Use
from river.source import Source, Span

ROOT = Path(__file__).resolve().parents[2]
FIGURE = (ROOT / "examples" / "log_analyzer" / "query_log.szl").read_text(encoding="utf-8")
HEAD = "r: {i: int, f: float, a: array of int, m: map [string] of int} = input; t: table sum of int;"

LOWERED = """\
river 1;

input logRecord: {origin: string, target: string};
@Index(1) output queryOrigins: {url: string, count: i64} = rows($queryOrigins, queryOrigins_rows);
@Index(1) output queryTargets: {url: string, count: i64} = rows($queryTargets, queryTargets_rows);
var $queryOrigins: map<{url: string}, {count: i64}> = {};

fn queryOrigins_rows(k: {url: string}, a: {count: i64}) -> list<{url: string, count: i64}> {
  return [{url: k.url, count: a.count}];
}

var $queryTargets: map<{url: string}, {count: i64}> = {};

fn queryTargets_rows(k: {url: string}, a: {count: i64}) -> list<{url: string, count: i64}> {
  return [{url: k.url, count: a.count}];
}

operator map(logRecord: {origin: string, target: string}) -> (
  queryOrigins: {url: string, count: i64},
  queryTargets: {url: string, count: i64}
) {
  on logRecord(logRecord) {
    emit queryOrigins {url: logRecord.origin, count: 1};
    emit queryTargets {url: logRecord.target, count: 1};
  }
}

operator queryOrigins_sum = sawzall.sum_table<Ix = {url: string}, Ints = {count: i64}, Floats = {}>;
operator queryTargets_sum = sawzall.sum_table<Ix = {url: string}, Ints = {count: i64}, Floats = {}>;

@Parallel() @Commutative() (queryOrigins_emits, queryTargets_emits) <- map(logRecord);
@Parallel() @Keys(url) @Commutative() ($queryOrigins) <- queryOrigins_sum(queryOrigins_emits, $queryOrigins);
@Parallel() @Keys(url) @Commutative() ($queryTargets) <- queryTargets_sum(queryTargets_emits, $queryTargets);
"""


def handler(text: str) -> str:
    """The lowered statements of a program, without indentation."""
    compiled = river.compile(HEAD + text, lang="sawzall")
    assert compiled.graph.deterministic
    _, _, rest = compiled.text.partition("on r(r) {\n")
    body, _, _ = rest.partition("\n  }\n}")
    return " ".join(body.split())


def test_figure_3d() -> None:
    compiled = river.compile(FIGURE, lang="sawzall")
    assert compiled.text == LOWERED
    assert list(compiled.outputs) == ["queryOrigins", "queryTargets"]
    assert compiled.graph.deterministic


def test_uses_know_where_they_come_from() -> None:
    source = Source("query_log.szl", FIGURE)
    program = FRONTEND.lower(FRONTEND.check(FRONTEND.parse(source)))
    spans = [use.span for use in program.decls if isinstance(use, Use)]
    assert all(isinstance(span, Span) and span.source == source for span in spans)
    assert [span.text.partition(":")[0] for span in spans[1:] if span] == ["queryOrigins", "queryTargets"]


@pytest.mark.parametrize(
    "name", ["mark", "merge", "queue", "phase", "first", "by", "on", "operator", "out", "rows", "k", "a"]
)
def test_any_name_will_do(name: str) -> None:
    text = f"""
    {name}: {{x: int, i: int}} = input;
    {name}_t: table sum[{name}: int] of x: int;
    maps: table top(2)[f: int] of x: int weight c: int;
    len: function(i: int): int {{ return i; }};
    {{ {name}_v: int = {name}.x; push: int = 1; emit {name}_t[{name}_v] <- len(push); }}
    emit maps[1] <- {name}.i weight 1;
    """
    compiled = river.compile(text, lang="sawzall")
    assert pretty(parse(Source("<text>", compiled.text))) == compiled.text
    results = compiled.run({name: [{"x": 3, "i": 4}]}, backend="reference")
    assert results[f"{name}_t"].to_pylist() == [{name: 3, "x": 1}]
    assert results["maps"].to_pylist() == [{"f": 1, "x": 4, "c": 1}]


def test_text_and_tree_are_the_same() -> None:
    text = (
        HEAD
        + """
    u: table unique[k: int] of {x: int, y: float};
    emit t <- -1; emit u[r.i] <- {r.i, -2.5};
    """
    )
    program = FRONTEND.lower(FRONTEND.check(FRONTEND.parse(Source("<program>", text))))
    assert parse(Source("<text>", pretty(program))) == program


def test_there_is_no_output_for_undefined_values_if_there_can_be_none() -> None:
    assert "undefined" not in river.compile(HEAD + "emit t <- r.i / 2;", lang="sawzall").outputs
    assert "undefined" in river.compile(HEAD + "emit t <- 2 / r.i;", lang="sawzall").outputs
    assert "undefined" not in river.compile(HEAD + "if (def(2 / r.i)) emit t <- 1;", lang="sawzall").outputs


def test_counted_loops_test_no_index() -> None:
    assert handler("for (i: int = 0; i < len(r.a); i++) emit t <- r.a[i];") == (
        "for i in 0 .. len(r.a) { emit t {value: r.a[i]}; }"
    )


def test_a_loop_that_counts_otherwise_is_a_while() -> None:
    assert handler("for (i: int = 0; i < 3; i++) { i = i * 2; if (i == 2) continue; }") == (
        "var i: i64 = 0; while i < 3 { while true { i = i *% 2; if i == 2 { break; } break; } i = i +% 1; }"
    )


def test_a_test_of_a_map() -> None:
    assert handler('if (def(r.m["a"])) emit t <- lookup(r.m, "a", 0);') == (
        'let found = get(r.m, "a"); if not found is none { emit t {value: get(r.m, "a", 0)}; }'
    )


def test_division() -> None:
    assert handler("emit t <- 1 / r.i;") == (
        'if r.i == 0 { emit undefined {at: "1:103", why: "`1 / r.i`: division by zero"}; return; } '
        "emit t {value: div.trunc.wrap(1, r.i)};"
    )


def test_when() -> None:
    assert handler("when (i: each int; j: some int; r.a[i] == r.a[j]) emit t <- i;") == (
        "for i in 0 .. len(r.a) { for j in 0 .. len(r.a) { if r.a[i] == r.a[j] { emit t {value: i}; break; } } }"
    )
    assert handler("when (i: some int; k: all int; r.a[k] <= r.a[i]) emit t <- i;") == (
        "for i in 0 .. len(r.a) { var holds = true; for k in 0 .. len(r.a) { if not r.a[k] <= r.a[i] "
        "{ holds = false; break; } } if holds { emit t {value: i}; break; } }"
    )
