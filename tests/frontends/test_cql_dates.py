"""Columns of dates: data have them as times, results as texts, and in between they are what DuckDB makes of them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import river
from river.diagnostics import Rejected
from river.testing import seeds

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = """
s: {ts: int; d: date; e: date?; n: int} stream by ts;
r: {ts: int; d: date; m: int} relation by ts;
t: {d: date; k: string} relation;
"""
QUERIES = [
    "select d, count(*) as c, max(e) as e, min(d) as f from s group by d",
    "select s.d, k from s join t on s.d = t.d",
    "select s.n, t.k from s left join t on s.e = t.d",
    "select s.n, t.k from s, t where s.d between t.d - 1 and t.d + 1",
    "select d as f, n from s where e is null or d >= '2026-02-01' order by d desc, e, n limit 3",
    "select distinct e from s union select d from r",
    "select d, m from r where d in (select d from s)",
    "select cast(date_trunc('month', d) as date) as m, sum(n) as n from s group by 1",
    "select d - e as c, coalesce(e, d) as f, cast(d as timestamp) as g from s",
]
DAYS = [dt.date(2026, 1, 30) + dt.timedelta(days) for days in range(4)]


@pytest.mark.slow
def test_queries_over_dates_are_those_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb").connect()
    chance = seeds.chance("dates")
    s = [(i, chance.choice(DAYS), chance.choice([None, *DAYS]), i % 3) for i in range(9)]
    r = [(i, "+", chance.choice(DAYS), i) for i in range(4)]
    (tmp_path / "t.csv").write_text("d,k\n" + "".join(f"{day},{day.day}\n" for day in DAYS[:3]))
    duckdb.execute("create table s (ts bigint, d date, e date, n bigint); create table r (d date, m bigint)")
    duckdb.executemany("insert into s values (?, ?, ?, ?)", s)
    duckdb.executemany("insert into r values (?, ?)", [row[2:] for row in r])
    duckdb.execute(f"create table t as select d, k::varchar as k from read_csv('{tmp_path}/t.csv')")
    views = "".join(f"v{i}: relation = {query};\n" for i, query in enumerate(QUERIES))
    data: dict[str, Any] = {"s": s, "r": r, "t": tmp_path / "t.csv"}
    found = river.compile(INPUTS + views, lang="cql").run(data, backend="reference")
    for i, query in enumerate(QUERIES):
        now: Counter[tuple[Any, ...]] = Counter()
        for _, sign, *row in (tuple(each.values()) for each in found[f"v{i}"].to_pylist()):
            now[tuple(row)] += 1 if sign == "+" else -1
        expected = Counter(tuple(map(as_told, row)) for row in duckdb.execute(query).fetchall())
        assert +now == expected, query


def as_told(value: Any) -> Any:
    """A value of DuckDB as River tells it."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC)
    return value.isoformat() if isinstance(value, dt.date) else value


@pytest.mark.slow
def test_machine_code_tells_the_same_texts() -> None:
    rows = [(1, DAYS[1], None, 2), (2, dt.date(1969, 12, 31), DAYS[0], 3)]
    text = (
        INPUTS.partition("r:")[0]
        + "v: relation = select e, array_agg(d) as ds, min(d) as f from s group by e;"
    )
    found = [
        river.compile(text, lang="cql").run({"s": rows}, backend=b)["v"].to_pylist()
        for b in ("multicore", "reference")
    ]
    assert found[0] == found[1]
    assert [row["ds"] for row in found[0]] == [["2026-01-31"], ["1969-12-31"]]


def test_a_time_in_a_column_of_dates_is_its_day_and_a_stamp_may_be_computed_of_a_date() -> None:
    text = "s: {d: date; n: int} stream by cast(d as timestamp); v: stream = select d, n from s;"
    given = [
        (dt.datetime(1969, 12, 31, 23, 59, tzinfo=dt.UTC), 1),
        (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), 2),
    ]
    found = river.compile(text, lang="cql").run({"s": given}, backend="reference")["v"].to_pylist()
    assert [(str(row["ts"])[:16], row["d"]) for row in found] == [
        ("1969-12-31 00:00", "1969-12-31"),
        ("2026-01-31 00:00", "2026-01-31"),
    ]


def test_a_date_of_a_group_may_be_declared_as_a_time() -> None:
    text = "s: {ts: int; d: date; n: int} stream by ts; v: {n: int; f: time} relation = select n, max(d) from s group by n;"
    found = (
        river.compile(text, lang="cql").run({"s": [(1, DAYS[0], 7)]}, backend="reference")["v"].to_pylist()
    )
    assert [(row["n"], str(row["f"])[:16]) for row in found] == [(7, "2026-01-30 00:00")]


@pytest.mark.parametrize(
    ("text", "code", "help_line"),
    [
        ("s: {d: date; n: int} stream by d; v: stream = select n from s;", "cql-stamp-type", "write `by cast(d as timestamp)`"),
        ("s: {ts: int; d: list<date>} stream by ts; v: stream = select d from s;", "cql-column-type",
         "declare them as `time` there"),
        ("s: {ts: time; n: int} stream by ts; v: {n: date} stream = select ts from s;", "sql-column-type",
         "write `cast(... as date)`"),
        ("s: {ts: int; d: date} stream by ts; v: stream = select d from s where d > 'soon';", "sql-cast",
         "write it as in `'2026-01-31'`, or `'2026-01-31 12:00:00'`"),
        ("s: {ts: int; d: date} stream by ts; v: stream = select d * 2 as c from s;", "lang-operation-types", None),
        ("s: {ts: int; d: date} stream by ts; v: stream = select cast(d as bool) as c from s;", "sql-cast", None),
    ],
)  # fmt: skip
def test_what_dates_are_not(text: str, code: str, help_line: str | None) -> None:
    with pytest.raises(Rejected) as refused:
        river.compile(text, lang="cql")
    found = refused.value.diagnostics[0]
    assert found.code == code
    assert "days since" not in found.message
    assert help_line is None or found.help == help_line
