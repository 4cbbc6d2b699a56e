"""Queries after `from` that read the sources before them, beside DuckDB."""

from __future__ import annotations

import pytest

import river
from river.diagnostics import Rejected
from river.testing import seeds

HEAD = """
r: { k: int?; c: int } relation;
s: { k: int; x: int; g: string } relation;
t: { ts: int; k: int; x: int } stream by ts;
"""
QUERIES = (
    "select r.k, t.x, t.g from r, lateral (select x, g from s where s.k = r.k order by x desc, g limit 2) as t",
    "select r.k, c, y from r left join lateral (select x + 1 as y from s as u where u.k = r.k) t on y > 3",
    "select * from r cross join lateral (select count(*) as n, sum(x) as m from s where s.k = r.k and s.x > 2) t",
    "select r.c, n from r left join lateral (select max(x) as n from s where s.x < r.c) t on true where n is not null",
    (
        "select t.g, c, t.n from r join lateral (select g, count(*) as n from s where r.k = s.k group by g having count(*) > 1) t"
        " on n > c - 4"
    ),
    "select r.c, x from r, lateral (select distinct x from s where s.k = r.k and x <> 3) t where c > 1",
    "select c, b from r, lateral (select x from s where s.k + 1 = r.c order by x, g limit 1 offset 1) as t(b)",
    (
        "select c, t.*, u.z from r, lateral (select x from s where s.k = r.k) t,"
        " lateral (select x * 2 as z from s where s.x = t.x) u"
    ),
)


def test_lateral_is_that_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb").connect()
    chance = seeds.chance("lateral")
    r = [(chance.choice([None, 1, 2, 3]), chance.randint(0, 5)) for _ in range(7)]
    s = [(chance.randint(0, 3), chance.randint(0, 5), chance.choice("ab")) for _ in range(20)]
    for name, columns, rows in (("r", "k int, c int", r), ("s", "k int, x int, g varchar", s)):
        duckdb.execute(f"create or replace table {name} ({columns})")
        duckdb.executemany(f"insert into {name} values ({', '.join('?' * len(rows[0]))})", rows)
    views = "".join(f"output v{i}: relation = {query};" for i, query in enumerate(QUERIES))
    found = river.compile(HEAD + views, lang="cql").run({"r": r, "s": s}, backend="reference")
    for i, query in enumerate(QUERIES):
        told = [tuple(row.values())[2:] for row in found[f"v{i}"].to_pylist()]
        assert sorted(told, key=repr) == sorted(duckdb.execute(query).fetchall(), key=repr), query


@pytest.mark.parametrize(
    "query",
    [
        "select c from r, lateral (select x from s where s.x < r.c order by x limit 1) as t",
        "select c from r, lateral (select * from s where s.k = r.k) as t",
        "select c from r, lateral (select x + r.c as y from s where s.k = r.k) as t",
        "select c from r right join lateral (select x from s where s.k = r.k) as t on true",
        "select c from r, lateral (select x from s where s.k = r.k union select c from r) as t",
        "select c from r left join lateral (select count(*) as n from s where s.k = r.k) as t on n > 1",
    ],
)
def test_what_lateral_cannot_be(query: str) -> None:
    with pytest.raises(Rejected) as refused:
        river.compile(f"{HEAD}v: relation = {query};", lang="cql")
    assert refused.value.diagnostics[0].code == "syntax-lateral"
