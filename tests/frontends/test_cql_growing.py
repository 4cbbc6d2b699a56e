"""Of relations that lose no row only what may still be told is kept: the least and greatest value, the first rows, no copies."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import river
from backends.multicore.inputs import used
from frontends.cql import FRONTEND
from river.il.pretty import pretty
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path

INPUT = "s: { ts: int; g: string; x: float?; y: int } stream by ts; t: { k: string; n: int } relation;\n"
QUERIES = (
    "select g, min(x) as a, max(x) as b, min_by(y, x) as c, max_by(y, x) as d from {} group by g",
    "select max(y) filter (where y > 2) as a from {}",
    "select min(x) as a, max(y) as b, count(*) as n from {}",
    "select g, x, y from {} order by x desc, y limit 3 offset 1",
    "select g, y, row_number() over (partition by g order by y) as n from {} qualify n <= 2",
    "select g, y, rank() over (partition by g order by y desc) as n from {} qualify n <= 2",
    "select distinct g, y from {} where x > 0 or y > 0",
)
NUMBERS = (None, 0.0, -0.0, float("nan"), float("inf"), -1.5, 2.0, 3.0)


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_what_is_told_is_the_same_as_if_all_rows_were_kept(backend: str) -> None:
    chance = seeds.chance("growing")
    rows = [
        {"ts": i // 4, "g": chance.choice("ab"), "x": chance.choice(NUMBERS), "y": chance.randrange(-3, 6)}
        for i in range(60)
    ]
    views = [
        f"output {kind}{i}: relation = {query.format(f's[{window}]')};"
        for i, query in enumerate(QUERIES)
        for kind, window in (("grows", "unbounded"), ("goes", "range 1000000"))
    ]
    found = river.compile(INPUT + "\n".join(views), lang="cql").run({"s": rows}, backend=backend)
    for i in range(len(QUERIES)):
        told, meant = (
            [row for row in found[f"{kind}{i}"].to_pylist() if row["ts"] <= rows[-1]["ts"]]
            for kind in ("grows", "goes")
        )
        assert Counter(map(repr, told)) == Counter(map(repr, meant)), QUERIES[i]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("select max(y) as a from s", "Lasts = {most_y: i64 = "),
        ("select g, min(x) as a from s group by g", "Firsts = {least_x: f64 = fn(r) => r.x}"),
        ("select max(y) as a from s[range 9]", "Lasts = {}"),
        ("select max(n) as a from (select g, count(*) as n from s group by g)", "Lasts = {}"),
        ("select y from s order by y limit 3 offset 1", "kept = 4"),
        ("select y from s[rows 9] order by y limit 3", "kept = 0"),
        ("select y from s qualify rank() over (order by y) <= 3", "kept = 0"),
        ("select max(k) as a from t", "Lasts = {most_k: string = "),
        ("select distinct g from s", "growing = true"),
        ("select distinct g from s[range 9]", "growing = false"),
    ],
)
def test_what_cannot_be_told_any_more_is_not_kept(query: str, kept: str) -> None:
    checked = FRONTEND.check(FRONTEND.parse(Source("<query>", f"{INPUT}output v: relation = {query};")))
    assert kept in pretty(FRONTEND.lower(checked))


@pytest.mark.parametrize("text", ["k,n\na,1\nb,2\n", "k,n\n", "k,n\na,1\nb,x\nc,3\n"])
def test_machine_code_reads_tables(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    program = river.compile(f"{INPUT}output v: relation = select k from t;", lang="cql")
    told = [
        program.run({"t": tmp_path / "t.csv"}, backend=backend, on_error="skip")["v"].to_pylist()
        for backend in ("reference", "multicore")
    ]
    assert told[0] == told[1]
    assert len(told[0]) == text.count("\n") - 1 - text.count("x")
    assert used(program.graph, "t") == {"k"}


def test_relations_that_are_inputs_as_they_are_come_out() -> None:
    text = f"{INPUT}output a: relation = select * from s; output b: relation = select k from t;"
    data = {"s": [{"ts": 1, "g": "a", "x": None, "y": 2}], "t": [{"k": "b", "n": 3}]}
    found = river.compile(text, lang="cql").run(data, backend="reference")
    assert found["a"].column("y").to_pylist() == [2]
    assert found["b"].column("k").to_pylist() == ["b"]
