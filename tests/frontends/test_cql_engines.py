"""What is written as other engines write it, and means there what it means here."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

import river
from river.diagnostics import Rejected

HEAD = """
s: { ts: int; a: int; k: string; q: int? } stream by ts;
r: { ts: int; k: string; n: int } relation by ts;
"""
ROWS = [(1, 3, "x", None), (2, 1, "x", 5), (2, 3, "x", 4), (3, 2, "y", 1), (9, 1, "y", None)]
CHANGES = [(1, "+", "x", 10), (2, "-", "x", 10), (2, "+", "x", 20), (5, "+", "y", 30)]
DATA = {"s": ROWS, "r": CHANGES}


def told(query: str, kind: str, *, backend: str = "reference") -> list[tuple[Any, ...]]:
    program = river.compile(f"{HEAD}v: {kind} = {query};", lang="cql")
    given = {name: rows for name, rows in DATA.items() if name in program.inputs}
    return [tuple(row.values()) for row in program.run(given, backend=backend)["v"].to_pylist()]


@pytest.mark.parametrize(
    ("query", "same"),
    [
        (
            "select istream(a, k) from s[range 5] where a > 1",
            "istream(select a, k from s[range 5] where a > 1)",
        ),
        ("select rstream(*) from s[rows 2]", "rstream(select * from s[rows 2])"),
        ("select dstream a, k as b from s[range 1]", "dstream(select a, k as b from s[range 1])"),
        (
            "select o.a, u.n from s as o left join r for system_time as of o.ts as u on o.k = u.k",
            "rstream(select o.a, u.n from s[now] as o left join r as u on o.k = u.k)",
        ),
        (
            "select o.a, n from s o join r for system_time as of ts on o.k = r.k",
            "rstream(select a, n from s[now] o join r on o.k = r.k)",
        ),
    ],
)
def test_streams(query: str, same: str) -> None:
    assert told(query, "stream") == told(same, "stream") != []


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("select a, k from s#time(2 sec)", "select a, k from s[range 1]"),
        ("select a, k from s.win:time(2 sec) w", "select a, k from s[range 1]"),
        ("select a from s#window.length(2)", "select a from s[rows 2]"),
        ("select a from s#groupwin(k)#length(1)", "select a from s[partition by k rows 1]"),
        ("select a from s#unique(k, a)", "select a from s[partition by k, a rows 1]"),
        ("select a from s#keepall() emit changes", "select a from s"),
        ("select a from s.std:lastevent()", "select a from s[rows 1]"),
        (
            "select a, k from s(a > 1, k <> 'z')#length(2)",
            "select a, k from (istream(select * from s where a > 1))[rows 2] as t",
        ),
        (
            "select k, count(*) as n from s(a = 3) group by k",
            "select k, count(*) as n from s where a = 3 group by k",
        ),
        (
            "select a, lag(a, 1, -1) over (order by ts, k, a) as b from s",
            "select a, coalesce(lag(a) over (order by ts, k, a), -1) as b from s",
        ),
        (
            "select a, lead(q, 1, 7) over w as b from s where q is not null window w as (order by a, ts)",
            "select a, coalesce(lead(q) over (order by a, ts), 7) as b from s where q is not null",
        ),
        (
            "select k, windowstart as b, count(*) as n from s window tumbling (size 2 seconds, grace period 1 second) group by k",
            "select k, window_start as b, count(*) as n from tumble(s, 2) group by k, window_start, window_end",
        ),
        (
            "select k, sum(a) as n from s as w window hopping (size 4 seconds, advance by 2 seconds) group by w.k emit changes",
            "select k, sum(a) as n from hop(s, 2, 4) group by k, window_start, window_end",
        ),
        (
            "select k, windowend, count(*) as n from s window session (2 seconds) group by k",
            "select k, window_end, count(*) as n from session(s partition by k, 2) group by k, window_start, window_end",
        ),
        (
            "select x.a, y.a as b from s as x join s y within 1 seconds on x.k = y.k",
            "select x.a, y.a as b from s[range 1] x join s[range 1] y on x.k = y.k",
        ),
        (
            "select x.a, y.a as b from s as x left join s y within (0 seconds, 2 seconds) on x.k = y.k",
            "select x.a, y.a as b from s[range 2] x left join s[range 0] y on x.k = y.k",
        ),
        (
            "select k, first(a) as f, last(a) as l, latest_by_offset(q) as o from s#time(3 sec) group by k",
            "select k, min_by(a, ts) as f, max_by(a, ts) as l, max_by(q, ts) as o from s[range 2] group by k",
        ),
        (
            "select k, first_value(a) as f, last_value(q) as o from s#time(3 sec) group by k",
            "select k, min_by(a, ts) as f, max_by(q, ts) as o from s[range 2] group by k",
        ),
        (
            "select x.a, y.a as b from s as x join s y within 1 second grace period 5 seconds on x.k = y.k",
            "select x.a, y.a as b from s[range 1] x join s[range 1] y on x.k = y.k",
        ),
        (
            "select a, count(*) filter (where q > 1) over (partition by k) as n from s",
            "select a, count(case when q > 1 then 1 end) over (partition by k) as n from s",
        ),
        (
            "select max(a) filter (where q > 1) over (order by ts) as m from s",
            "select max(case when q > 1 then a end) over (order by ts) as m from s",
        ),
        (
            "select k, count(*) filter (q > 1) as n, list(a order by ts) as l, approx_quantile(a, 0.5) as m from s group by k",
            "select k, count(*) filter (where q > 1) as n, array_agg(a order by ts) as l, median(a) as m from s group by k",
        ),
        (
            "select tumble_rowtime(ts, interval '4' second) as t, sum(a) as n from s group by tumble(ts, interval '4' second)",
            "select window_time as t, sum(a) as n from tumble(s, 4) group by window_time, window_start, window_end",
        ),
        ("select a from s where q is not distinct from null", "select a from s where q is null"),
        ("select a from s where q is distinct from null", "select a from s where q is not null"),
        (
            "select k, first(a order by q desc) as f, last(a order by a, ts) as l from s group by k",
            "select k, max_by(a, q) as f, max_by(a, (a, ts)) as l from s group by k",
        ),
        (
            "select a, prev(1, a) as p, rowtime as at from s#length(3)",
            "select a, lag(a, 1) over (order by ts) as p, ts as at from s[rows 3]",
        ),
        ("(s) union all (s) except all (select * from s)", "(s union all s) except all s"),
        ("((s) intersect (s)) union s", "select distinct * from s"),
        ("select a from s#time_batch(3 sec)", "select a from s[range 2 slide 3]"),
        ("select sum(a) as n from s#length_batch(2)", "select sum(a) as n from s[rows 2 slide 2]"),
        ("select a from s#ext_timed(ts, 3 sec)", "select a from s[range 2]"),
        (
            "select distinct on (k) k, a from s order by k, a desc, ts",
            "select k, a from s qualify row_number() over (partition by k order by k, a desc, ts) = 1",
        ),
        (
            "select distinct on (k, a) * from s[range 5] where a > 1",
            "select * from s[range 5] where a > 1 qualify row_number() over (partition by k, a) = 1",
        ),
        (
            "select a + 1, sum(q * 2) from s group by a + 1",
            "select a + 1 as column1, sum(q * 2) as sum from s group by a + 1",
        ),
        (
            "with w(b, n) as (select a + 1, count(*) + 1 from s group by a + 1) select b from w",
            "select a + 1 as b from s group by a + 1",
        ),
        ("select * exclude (q, ts) from s", "select a, k from s"),
        ("select a, k from s[rows 2 preceding]", "select a, k from s[rows 2]"),
        (
            "select k, sum(a, q > 3) as n, avg(a, k = 'x') as m from s group by k",
            "select k, sum(a) filter (where q > 3) as n, avg(a) filter (where k = 'x') as m from s group by k",
        ),
        (
            "select u.a, u.k from s as u [partition by u.k rows 2 preceding where u.a > 1]",
            "select a, k from (istream(select * from s where a > 1))[partition by k rows 2] as t",
        ),
        ("select u.a from s u [range 2]", "select a from s[range 2]"),
        (
            "select k, collect(a) as l, isnull(min(q), 0) as m from s group by k",
            "select k, array_agg(a) as l, coalesce(min(q), 0) as m from s group by k",
        ),
        (
            "select trim(leading 'x' from k) as l, trim(both 'y' from k) as b from s",
            "select ltrim(k, 'x') as l, trim(k, 'y') as b from s",
        ),
        (
            "select window_time, count(*) as n from tumble(s, 3) group by window_end, window_time",
            "select window_end - 1 as window_time, count(*) as n from tumble(s, 3) group by window_end",
        ),
        (
            "select s.* except (ts), n from s, r where s.k = r.k",
            "select s.a, s.k, s.q, n from s, r where s.k = r.k",
        ),
        ("select * exclude (ts), unnest(array[a]) as b from s", "select a, k, q, a as b from s"),
        ("select a from s where row(a, k) = row(3, 'x')", "select a from s where a = 3 and k = 'x'"),
        ("select a from s where (a, q) is not null", "select a from s where q is not null"),
        ("select a from s where (a, k) in (select 3, 'x')", "select a from s where a = 3 and k = 'x'"),
        ("select a, k from s where a in (values (1), (2))", "select a, k from s where a in (1, 2)"),
        ("select a, k from s where a not in (values (1), (2))", "select a, k from s where a not in (1, 2)"),
        (
            "select a, (select a + 1) as b from s where a in (select 3)",
            "select a, a + 1 as b from s where a = 3",
        ),
        (
            "select a, n from s[range 2], (select 2 as n, 'x' as l) as v where l = k",
            "select a, 2 as n from s[range 2] where k = 'x'",
        ),
        (
            "select a, w from s cross join lateral table(unnest(array[a, q])) as v(w)",
            "select a, w from s, unnest(array[a, q]) as w",
        ),
        (
            "select a from istream(select a from s[rows 2]) [range 1]",
            "select a from (istream(select a from s[rows 2]))[range 1] as t",
        ),
        (
            "select x.n from rstream((select count(*) as n from s[rows 2])) [rows 2] as x, r where k = 'x'",
            "select t.n from (rstream(select count(*) as n from s[rows 2]))[rows 2] as t, r where k = 'x'",
        ),
        (
            "select k from s where k in ((select k from r) except (select 'y' from r)) and exists (((r)) union r limit 1)",
            "select k from s where k in (select k from r where k <> 'y') and exists (select * from r)",
        ),
        (
            "select k from s where k in ((select k from s) intersect (select 'y' from r) union (select k from r) limit 1)",
            "select k from s where k in (select k from r order by k limit 1)",
        ),
        (
            "select if(a > 1 and (a + 1) * 2 > 6, lower(k), if(k = '(,)', 'u', 'v')) as b, if a > 1 {1} else {2} as c from s",
            "select case when a > 2 then k else 'v' end as b, case when a > 1 then 1 else 2 end as c from s",
        ),
        (
            "select größe as b from (select a as größe from s) as übrig where übrig.größe > 1",
            "select a as b from s where a > 1",
        ),
        (
            "select a * .5e1 as b, 2. as c from s where a > .5",
            "select a * 5.0 as b, 2.0 as c from s where a > 0.5",
        ),
    ],
)
def test_windows(query: str, same: str) -> None:
    assert told(query, "relation") == told(same, "relation") != []


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select s.a, r.n, s.k, r.k from s, r", "a n s_k r_k"),
        ("select s.a, s.a as b, s.a from s, r", "a b column3"),
        ("select *, a, k as l from s", "ts a k q column5 l"),
        ("select count(*), a, count(*), a from s group by a", "count a column3 column4"),
        (
            "select k, count(*) filter (where a > 1), sum(a) filter (where q > 1), array_agg(a order by ts) from s group by k",
            "k count sum_a array_agg_a",
        ),
        (
            "select s.k, t.k, s_k, t.a from s as t, (select k, n as s_k from r) as s where t.a in (select n from r)",
            "s_k_1 t_k s_k a",
        ),
    ],
)
def test_columns_that_would_be_called_alike(query: str, names: str) -> None:
    program = river.compile(f"{HEAD}v: relation = {query};", lang="cql")
    given = {name: rows for name, rows in DATA.items() if name in program.inputs}
    assert program.run(given, backend="reference")["v"].column_names[2:] == names.split()


def test_none_among_values_is_unknown() -> None:
    assert told("select a from s where a not in (values (1), (null))", "relation") == []


@pytest.mark.parametrize("backend", ["reference", "multicore"])
@pytest.mark.parametrize(
    ("query", "last"),
    [
        (
            "select k, window_end, count(*) as n from session(s partition by k, 5) group by k, window_end",
            (10, 1),
        ),
        ("select k, window_end, window_start from session(s partition by k, 5)", (10, 5)),
    ],
)
def test_sessions_at_the_least_instant(query: str, last: tuple[int, int], backend: str) -> None:
    least, greatest = -(1 << 63), (1 << 63) - 1
    rows = [(least, 1, "x", None), (least + 2, 1, "x", None), (5, 1, "x", None), (greatest - 6, 1, "x", None)]
    program = river.compile(f"{HEAD}v: relation = {query};", lang="cql")
    found = [tuple(row.values()) for row in program.run({"s": rows}, backend=backend)["v"].to_pylist()]
    assert found[0][:4] == (least, "+", "x", least + 5)
    assert found[-2] == (5, "+", "x", *last)
    assert found[-1][:4] == (greatest - 6, "+", "x", greatest - 1)
    assert {row[3] for row in found if row[0] == least + 2 and row[1] == "+"} == {least + 7}


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_windows_that_cumulate(backend: str) -> None:
    """Of windows of 6 instants, every 2 what has come so far, also before 0."""
    rows = [(at, at % 4, "xy"[at % 3 > 0], None) for at in (-13, -8, -7, -6, -5, -1, 0, 3, 3, 5, 6, 11, 15)]
    query = "select k, window_start, window_end, sum(a) as n from cumulate(s, 2, 6) group by k, window_start, window_end"
    program = river.compile(f"{HEAD}v: stream = {query};", lang="cql")
    found = [tuple(row.values()) for row in program.run({"s": rows}, backend=backend)["v"].to_pylist()]
    expected: list[tuple[int, str, int, int, int]] = []
    for end in range(-14, 16, 2):
        begin = (end - 1) // 6 * 6
        there = [(k, a) for at, a, k, _ in rows if begin <= at < end]
        expected += [
            (end, k, begin, end, sum(a for own, a in there if own == k)) for k in {k for k, _ in there}
        ]
    assert sorted(found) == sorted(expected)


LISTS = """select k, array_agg(a) as xs, array_agg(a order by ts desc) as ys, string_agg(a, '-' order by ts desc) as zs,
  array_agg(q order by a) as qs, collect_set(a) as c, array_agg(a order by q) as n from s[range 3] group by k"""


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_lists_in_their_order(backend: str) -> None:
    assert told(LISTS, "relation", backend=backend)[1:4] == [
        (2, "-", "x", [3], [3], "3", None, [3], [3]),
        (2, "+", "x", [1, 3, 3], [3, 1, 3], "3-1-3", [5, 4], [1, 3], [3, 1, 3]),
        (3, "+", "y", [2], [2], "2", [1], [2], [2]),
    ]


def test_months_and_zones() -> None:
    query = """select to_timestamp('2024-01-31 10:30:00') + interval '1' month as a, date '2024-02-29' - interval '1' year as b,
      timestampadd(month, q, date '2023-12-31') as c, timestamp '2024-07-01 12:00:00' at time zone 'Europe/Berlin' as d,
      timestamp '2024-01-01 12:00:00' at time zone '-03:30' as e, date '1899-01-01' at time zone 'UTC' as f from s where a = 2"""
    ((_, _, *found),) = told(query, "relation")
    assert [str(at)[:16] for at in found] == [
        "2024-02-29 10:30", "2023-02-28", "2024-01-31", "2024-07-01 14:00", "2024-01-01 08:30", "1899-01-01 00:00",
    ]  # fmt: skip


def test_clocks_that_are_set_for_a_week() -> None:
    query = """select timestamp '2000-10-10 12:00:00' at time zone 'America/Boa_Vista' as a,
      timestamp '2000-10-20 12:00:00' at time zone 'America/Boa_Vista' as b from s where a = 2"""
    ((_, _, *found),) = told(query, "relation")
    assert [at.hour for at in found] == [9, 8]


def test_times_are_read_by_a_pattern() -> None:
    query = """select to_timestamp('31/12/2023 23:59', 'dd/MM/yyyy HH:mm') as a,
      strptime('29/Feb/2024:01:02:03', '%d/%b/%Y:%T') as b,
      to_timestamp('2024-02-03T04:05:06.789', 'YYYY-MM-DD"T"HH24:MI:SS.MS') as c,
      to_timestamp(case when q > 0 then '12:30' end, 'HH:mm') as d from s where a = 2"""
    ((_, _, *found),) = told(query, "relation")
    assert [at.isoformat() for at in found] == [
        "2023-12-31T23:59:00+00:00", "2024-02-29T01:02:03+00:00", "2024-02-03T04:05:06.789000+00:00", "1970-01-01T12:30:00+00:00",
    ]  # fmt: skip


ROW_CONDITIONS = [
    *(f"(q, a) {sign} (1, 2)" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    "(q, a) in ((1, 2), (2, 1))", "(q, a) not in ((1, 2), (2, null))", "(q, a) not in (values (2, 2), (1, 1))",
    "(q, a) between (1, 1) and (2, 1)", "(a, 2) not in (select a, a from u)", "not (q, (a, 1)) = (2, (2, 1))",
]  # fmt: skip


def test_rows_are_compared_as_sqlite_does() -> None:
    """Part by part: one that is none makes unknown what the others do not decide."""
    rows = [(q, a) for q in (None, 1, 2) for a in (1, 2, 3)]
    items = ", ".join(f"({each}) as c{i}" for i, each in enumerate(ROW_CONDITIONS))
    query = f"select q, a, {items} from s"
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, some in (("s", rows), ("u", rows[:7:2])):
            connection.execute(f"create table {name} (q, a)")
            connection.executemany(f"insert into {name} values (?, ?)", some)
        expected = connection.execute(
            query.replace("(q, (a, 1)) = (2, (2, 1))", "(q, a) = (2, 2)")
        ).fetchall()
    text = f"s: {{q: int?; a: int}} relation; u: {{q: int?; a: int}} relation; v: relation = {query};"
    found = (
        river.compile(text, lang="cql")
        .run({"s": rows, "u": rows[:7:2]}, backend="reference")["v"]
        .to_pylist()
    )
    told = [tuple(row.values())[2:] for row in found]
    assert sorted(told, key=repr) == sorted(
        ((*row[:2], *(None if each is None else bool(each) for each in row[2:])) for row in expected),
        key=repr,
    )


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-30 00:00",
        "2024-13-01 00:00",
        "2024-01-01 24:00",
        "2024-01-01 00:0",
        "2024-01-01T00:00",
        "2024-O1-01 00:00",
    ],
)
def test_texts_that_are_not_of_their_pattern_trap(text: str) -> None:
    with pytest.raises(Rejected) as found:
        told(f"select to_timestamp('{text}', 'yyyy-MM-dd HH:mm') as a from s", "relation")
    assert [each.code for each in found.value.diagnostics] == ["trap-assert"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("select a from s union select istream a from s", "syntax-stream"),
        ("select a from s where a in ((a + 1) union (select a from s))", "syntax-query"),
        ("select * exclude (zz) from s", "sql-unknown-column"),
        ("select a from cumulate(s, 4, 6)", "cql-cumulate"),
        ("with w as (select * from s) select a from cumulate(w, 2, 6)", "cql-cumulate"),
        ("select a from s where (a, k, 1) = (a, k)", "syntax-row"),
        ("select a from s where a in (select rstream a from s)", "syntax-nested"),
        ("select a from s#length(2)#time(3)", "syntax-view"),
        ("select a from s#sort(3, a desc)", "syntax-view"),
        (
            "select count(*) as n from s window tumbling (grace period 1 hour) group by k",
            "syntax-window-function",
        ),
        ("select x.a from s x join (select * from r) y within 1 hours on x.k = y.k", "syntax-within-time"),
        ("select o.a from s o join r for system_time as of o.a on o.k = r.k", "cql-window-stamp"),
        ("select to_timestamp(k, 'd/M/yyyy') as m from s", "sql-time-format"),
        ("select to_timestamp(a, 'yyyy') as m from s", "sql-function-operands"),
        ("select interval '1' month as m from s", "sql-month"),
        ("select a + interval '1' month as m from s", "sql-month"),
        ("select a at time zone 'UTC' as z from s", "sql-zone"),
        ("select date '2024-01-01' at time zone 'Berlin' as z from s", "sql-zone"),
        ("select sum(a order by ts) as n from s", "sql-aggregate-order"),
        ("select array_agg(distinct a order by ts) as n from s", "sql-aggregate-order"),
        ("select array_agg(a order by ts, k desc) as n from s", "syntax-within"),
        ("select a from s[range interval '1' month]", "syntax-interval"),
        (
            "select sum(a) over (order by ts range between 1 preceding and 1 following) as n from s",
            "syntax-over",
        ),
        ("select rank() over (order by ts range 1 preceding) as n from s", "syntax-over"),
    ],
)
def test_what_cannot_be_so(query: str, code: str) -> None:
    with pytest.raises(Rejected) as found:
        river.compile(f"{HEAD}v: stream = {query};", lang="cql")
    assert code in [each.code for each in found.value.diagnostics]
