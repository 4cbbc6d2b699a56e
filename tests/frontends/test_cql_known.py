"""The table of docs/cql.md that says what people know and how it is written here: each of its rows, run.

Left of a pair is what people know, as far as it is read, and right what the table says does the same, or is the same anyhow.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

import river
from river.diagnostics import Rejected

INPUTS = """
s: {ts: time; k: string; x: float; n: int; p: {y: int}} stream by ts;
o: {ts: time; k: string; x: float} stream by ts;
r: {ts: time; k: string; m: int} relation by ts;
t: {k: string; w: int} relation;
aggregate total(x: float): float {init: {t: 0.0}; add: {t: t + x}; remove: {t: t - x}; value: t};
"""
BEGIN = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)


def at(seconds: int) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


DATA = {
    "s": [(at(i), k, float(i), i % 3, {"y": i % 2}) for i, k in enumerate("abacbbacab")],
    "o": [(at(i * 2), k, float(i % 3)) for i, k in enumerate("babca")],
    "r": [(at(0), "+", "a", 1), (at(3), "-", "a", 1), (at(3), "+", "a", 2), (at(4), "+", "b", 3)],
    "t": [("a", 5), ("c", 6)],
}
ROWS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "SQL as it is": (
        ("relation",
         "with q as (select k, sum(n) n from s group by k) select k, w from q join t using (k) where n > (select max(m) from r)",
         "select q.k, w from (select k, sum(n) as n from s group by k) as q, t where q.k = t.k and n > (select max(m) from r)"),
        ("relation", "select k from s union select k from r order by k limit 2",
         "select * from (select k from s union select k from r) as q order by k limit 2"),
    ),
    "SQL create table": (("relation", "select k, w from t", "select t.* from t"),),
    "SQL create view": (("relation", "select k, n from s where n > 1", "select k, n from (select * from s) as v where n > 1"),),
    "SQL lag": (
        ("relation", "select x, lag(x) over (order by ts) as b from s",
         "select x, min(x) over (order by ts rows between 1 preceding and 1 preceding) as b from s"),
        ("relation",
         """select array_agg(x order by ts) as "Total", min(ts) + interval '1' month as m, max(ts) at time zone 'UTC' z from s""",
         """select array_agg(x order by ts) as "Total", timestampadd(month, 1, min(ts)) as m, max(ts) as z from s"""),
    ),
    "STREAM Istream": (
        ("stream", "Istream(Select k From s [Rows 5])", "select istream k from s[rows 5]"),
        ("stream", "Istream(Select k From s [Row 5])", "select istream k from s[rows 5]"),
        ("stream", "Select Istream(*) From o [Rows 5]", "istream(select * from o[rows 5])"),
        ("relation", "Select k From s [Range 3 Seconds Slide 2 Seconds]", "select k from s[range 3 slide 2]"),
        ("relation", "Select k From s [Range 3 s Preceding]", "select k from s[range 3 seconds]"),
        ("relation", "Select n From s [Range Unbounded Preceding]", "select n from s[unbounded]"),
        ("relation", "t union t", "select * from t"),
        ("relation", "r except select k, m from r where m > 1", "select k, m from r where m = 1"),
        ("stream", "Istream(r)", "istream(select * from r)"),
        ("stream", "Select Rstream(s.k, (s.x + (n * (2 + n))) as y) From s [Now], o [Now] as p Where s.k = p.k",
         "rstream(select s.k, (s.x + (n * (2 + n))) as y from s[now], o[now] as p where s.k = p.k)"),
        ("stream", "Select Istream(Distinct k as z) From s [Rows 2]", "istream(select distinct k as z from s[rows 2])"),
    ),
    "ESL, STREAM aggregate f": (("relation", "select k, total(x) as c from s[range 3] group by k",
         "select k, sum(x) as c from s[range 3] group by k"),),
    "STREAM from Calls": (("relation", "select k, x from s u [partition by u.k rows 2 preceding where u.n > 0]",
        "select k, x from (istream(select * from s where n > 0))[partition by k rows 2] as u"),),
    "STREAM register stream": (("relation", "select k from s", "select s.k from s"),),
    "STREAM table : register": (("relation", "select k from s", "select s.k from s"),),
    "Esper from S#time": (
        ("relation", "select k from s#time(3 sec)", "select k from s.win:time(3 sec)"),
        ("relation", "select k, x from s#length(5)", "select k, x from s[rows 5]"),
        ("relation", "select k, x from s#unique(k)", "select k, x from s[partition by k rows 1]"),
        ("relation", "select k, x from s#groupwin(k)#length(3)", "select k, x from s[partition by k rows 3]"),
        ("relation", "select k from s#lastevent()", "select k from s[rows 1]"),
        ("relation", "select k from s#keepall()", "select k from s[unbounded]"),
    ),
    "Esper from S(price": (("relation", "select k from s(x > 3)#length(5)",
         "select k from (istream(select * from s where x > 3))[rows 5] as q"),),
    "Esper #time_batch": (
        ("relation", "select k from s#ext_timed(ts, 3 sec)", "select k from s#time(3 sec)"),
        ("relation", "select k from s#length_batch(2)", "select k from s[rows 2 slide 2]"),
        ("relation", "select sum(n) as n from s#time_batch(4 sec)",
         "select sum(n) as n from s[range 3.999999 seconds slide 4 seconds]"),
    ),
    "Esper first(x)": (
        ("relation", "select k, first(x) as f, last(x) as l from s#time(3 sec) group by k",
         "select k, min_by(x, ts) as f, max_by(x, ts) as l from s#time(3 sec) group by k"),
        ("relation", "select x, prev(1, x) as p from s#length(3)", "select x, lag(x, 1) over (order by ts) as p from s[rows 3]"),
    ),
    "Esper select irstream": (("relation", "select k from s#length(2)", "select k from s[rows 2]"),),
    "Esper, Flink insert into": (("stream", "select k from s", "istream(select k from s)"),),
    "Calcite, Oracle select stream": (
        ("stream", "select stream * from s where n > 1", "istream(select * from s where n > 1)"),
        ("relation", "select ceil(ts to minute) as m, count(*) c from s where n > 0 group by ceil(ts to minute)",
         "select date_trunc('minute', ts) + interval '1' minute as m, count(*) as c from s where n > 0 group by 1"),
        ("relation", "select k, m from r minus select k, m from r where m > 1", "select k, m from r where m = 1"),
    ),
    "Flink from table": (
        ("relation", "select k, window_end from table(tumble(table s, descriptor(ts), interval '4' seconds))",
         "select k, window_end from tumble(s, 4)"),
        ("relation", "select k, count(*) as c from s group by tumble(ts, interval '4' seconds), k",
         "select k, count(*) as c from tumble(s, 4) group by window_end, k"),
    ),
    "Flink cumulate": (("relation",
        "select window_end w, count(*) c from cumulate(table s, descriptor(ts), 2 seconds, size => 2) group by window_end",
        "select window_end w, count(*) c from tumble(s, 2) group by window_end"),),
    "Flink join r": (("stream", "select o.x, m from o join r for system_time as of o.ts on o.k = r.k",
        "rstream(select o.x, m from o[now] as o join r on o.k = r.k)"),),
    "Flink, DuckDB cross join unnest": (
        ("relation", "select n, c from s cross join unnest(split(k, 'b')) as l (c)",
         "select n, unnest(split(k, 'b')) as c from s"),
        ("relation", "select n, l from s join (values (1, 'a'), (2, 'b')) as v(m, l) on m = n",
         "select n, case n when 1 then 'a' else 'b' end as l from s where n between 1 and 2"),
    ),
    "Flink, PostgreSQL from r, lateral": (("relation",
         "select w, t.x from t as u, lateral (select x from s where s.k = u.k order by x desc limit 2) as t",
         "select w, x from (select * from s qualify row_number() over (partition by k order by x desc) <= 2) join t using (k)"),
    ),
    "Spark lateral view": (
        ("relation", "select n, c from s lateral view explode(split(k, 'b')) l as c",
         "select n, c from s, unnest(split(k, 'b')) as c"),
    ),
    "Flink cost as price * qty": (),
    "Flink, ksqlDB create table S": (("stream", "select k from s", "select s.k from s"),),
    "Flink, ksqlDB create table T": (("stream", "select k from s", "select s.k from s"),),
    "Flink row_number": (("relation",
         "select k, x from (select *, row_number() over (partition by k order by x desc) rownum from s) q where rownum <= 2",
        "select k, x from s qualify row_number() over (partition by k order by x desc) <= 2"),),
    "ksqlDB window tumbling": (("relation",
         "select k, windowend as e, count(*) as c from s window tumbling (size 3 seconds) group by k",
        "select k, window_end as e, count(*) as c from tumble(s, ts, interval '3' seconds) group by k, window_end"),),
    "ksqlDB emit changes": (("relation", "select k from s emit changes", "select k from s"),),
    "ksqlDB a join b": (("relation", "select o.x, s.n from s join o within 2 seconds on s.k = o.k",
        "select o.x, s.n from s[range 2] as s, o[range 2] as o where s.k = o.k"),),
    "ksqlDB latest_by_offset": (("relation", "select k, latest_by_offset(x) as x, min(p->y) as y from s group by k",
         "select k, max_by(x, ts) as x, min(p.y) as y from s group by k"),),
    "PostgreSQL, DuckDB select distinct on": (("relation", "select distinct on (k) k, x from s order by k, ts desc",
         "select k, x from s qualify row_number() over (partition by k order by ts desc) = 1"),),
}  # fmt: skip
REFUSED = {
    "create table t (k string)": "it is a declaration of its own: `create view v as select ...;`",
    "insert into T select k from s": "it is a declaration of its own: `insert into v select ...;`",
    "select first(x) as f from s, o": "say by what: `min_by(x, ts)`",
    "select irstream k from s": "a relation tells what comes and goes: declare it as `name: relation = select ...;`",
}  # fmt: skip
"""What the table says is written otherwise, and what is said of it."""


def test_each_row_of_the_table_is_here() -> None:
    text = (Path(__file__).parents[2] / "docs/cql.md").read_text("utf-8")
    table = text.partition("## What you know")[2].partition("## Differences")[0]
    rows = [
        row
        for row in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, re.MULTILINE)
        if row[0] not in ("from", "---")
    ]
    names = [f"{of} {written.replace('`', '')}" for of, written in rows]
    assert len(names) == len(ROWS)
    for name, known in zip(names, ROWS, strict=True):
        assert name.startswith(known), (name, known)


@pytest.mark.slow
def test_what_people_know_means_what_the_table_says() -> None:
    pairs = [(kind, *pair) for row in ROWS.values() for kind, *pair in row]
    views = "".join(
        f"output a{i}: {kind} = {known};\noutput b{i}: {kind} = {ours};\n"
        for i, (kind, known, ours) in enumerate(pairs)
    )
    found = river.compile(INPUTS + views, lang="cql").run(DATA, backend="reference")
    for i, (_, known, ours) in enumerate(pairs):
        a, b = (found[f"{side}{i}"].to_pylist() for side in "ab")
        assert a, known
        assert sorted(map(repr, a)) == sorted(map(repr, b)), (known, ours)


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_written_otherwise_is_told(query: str) -> None:
    with pytest.raises(Rejected) as refused:
        river.compile(f"{INPUTS}v: relation = {query};", lang="cql")
    help_line = refused.value.diagnostics[0].help
    assert help_line is not None
    assert REFUSED[query] in (None, help_line)


DECLARED = """
register stream S (a integer, b char(8));
register relation R (a integer, name varchar(20) not null);
create table T (a int primary key, w float);
v: select a, count(*) as n from S [Range 4] group by a;
create or replace view V (k) as select a from S where b = 'x';
create stream U (a int);
insert into U select a from S where a = 1;
insert into U select a * 10 from (istream(select a from S [Rows 1]));
insert into W (k) select name from R;
create table X as select w from T;
Istream(Select * From S [Rows 2]);
select b from S where a > 1 emit changes;
"""
OURS = """
S: {ts: int; a: int; b: string} stream by ts hidden;
R: {ts: int; a: int; name: string} relation by ts;
T: {a: int; w: float} relation;
v: relation = select a, count(*) as n from S[range 4] group by a;
V: stream = select a as k from S where b = 'x';
U: {a: int} stream = select a from S where a = 1 union all select a * 10 from (istream(select a from S[rows 1]));
W: relation = select name as k from R;
X: stream = select w from T;
query: stream = istream(select a, b from S[rows 2]);
query_1: stream = select b from S where a > 1;
"""


def test_declarations_of_other_dialects() -> None:
    data = {
        "S": [(1, 1, "x"), (2, 2, "y"), (2, 1, "z"), (5, 3, "x"), (9, 1, "y")],
        "R": [(1, "+", 1, "one"), (3, "+", 2, "two"), (4, "-", 1, "one")],
        "T": [(1, 0.5)],
    }
    theirs, ours = (
        {name: sorted(map(repr, found[name].to_pylist())) for name in found.collected}
        for text in (DECLARED, OURS)
        for found in [river.compile(text, lang="cql").run(data, backend="reference")]
    )
    assert all(ours.values())
    assert theirs == ours


def test_a_watermark_says_what_the_time_stamp_is() -> None:
    text = """
    CREATE TABLE o (k STRING, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at` - INTERVAL '1' SECOND) WITH (
      'connector' = 'kafka', 'topic' = 'o');
    q: select k from o;"""
    found = river.compile(text, lang="cql").run({"o": [("a", BEGIN)]}, backend="reference")
    assert found["q"].to_pylist() == [{"at": BEGIN, "k": "a"}]


def test_a_table_as_flink_writes_it() -> None:
    text = """
    SET 'table.exec.state.ttl' = '1 h';
    DROP TABLE IF EXISTS o;
    CREATE TEMPORARY TABLE o (
      id BIGINT NOT NULL COMMENT 'which', millis BIGINT METADATA FROM 'timestamp' VIRTUAL, price DOUBLE,
      place ROW<lat DOUBLE, city STRING>, parts ARRAY<ROW<n INT>>,
      cost AS price * 2, `at` AS TO_TIMESTAMP_LTZ(millis, 3) COMMENT 'when',
      PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR `at` AS `at` - INTERVAL '1' SECOND) WITH ('connector' = 'kafka');
    a: select id, cost, o.place.city, cardinality(parts) as n from o where o.cost > 1.0;
    output b: select window_end, sum(cost) as cost from table(tumble(table o, descriptor(`at`), interval '1' minute))
       group by window_start, window_end;
    create view v as select x.id, y.cost from o as x join o as y on x.id = y.id;
    c: with o as (select 1 as cost from b) select cost from o;"""
    row = {"id": 7, "millis": 1000, "price": 2.5, "place": {"lat": 0.5, "city": "X"}, "parts": [{"n": 1}]}
    last = {**row, "millis": 60_000, "price": 0.5}
    found = river.compile(text, lang="cql").run({"o": [row, last]}, backend="reference")
    assert [list(each.values())[1:] for each in found["a"].to_pylist()] == [[7, 5.0, "X", 1]]
    assert [each["cost"] for each in found["b"].to_pylist()] == [5.0]
    assert [each["cost"] for each in found["c"].to_pylist()] == [1]
    assert sorted(each["cost"] for each in found["v"].to_pylist()) == [1.0, 1.0, 5.0, 5.0]


def test_windows_go_by_a_time_stamp_that_is_selected() -> None:
    """It is a column of what a view tells; one that is computed is none."""
    text = """
    create table n (kind int, x int, at timestamp(3), watermark for at as at) with ('connector' = 'kafka');
    create view ones as select x, at as seen, at + interval '1' minute as later from n where kind = 1;
    create view more as select o.x, o.seen from ones as o where x > 0;
    v: select window_end, sum(x) as x from table(tumble(table more, descriptor(seen), interval '1' minute))
       group by window_start, window_end;"""
    data = {"n": [(1, 5, at(0)), (2, 6, at(10)), (1, 7, at(59)), (1, 0, at(60)), (1, 1, at(130))]}
    found = river.compile(text, lang="cql").run(data, backend="reference")
    assert [(row["window_end"], row["x"]) for row in found["v"].to_pylist()] == [(at(60), 12)]
    for wrong in ("ones, descriptor(later)", "(select x from n), descriptor(x)"):
        with pytest.raises(Rejected):
            river.compile(text.replace("more, descriptor(seen)", wrong), lang="cql")


def test_a_script_of_ksqldb() -> None:
    """A stream is joined with a table as it is when a row comes."""
    text = """
    SET 'auto.offset.reset' = 'earliest';
    CREATE STREAM clicks (k VARCHAR KEY, url VARCHAR) WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON');
    CREATE TABLE users (k VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC='users', VALUE_FORMAT='AVRO');
    CREATE TABLE many AS SELECT k, COUNT(*) AS n FROM clicks GROUP BY k EMIT CHANGES;
    CREATE STREAM named WITH (KAFKA_TOPIC='named') AS
      SELECT c.k AS k, u.name, m.n, c.url FROM clicks c LEFT JOIN users u ON c.k = u.k JOIN many m ON m.k = c.k
      PARTITION BY k EMIT CHANGES;
    SELECT * FROM named WHERE n > 1;"""
    data = {"clicks": [(1, "a", "/"), (2, "b", "/x"), (5, "a", "/y")], "users": [("a", "Ann")]}
    found = river.compile(text, lang="cql").run(data, backend="reference")
    assert [tuple(row.values()) for row in found["query"].to_pylist()] == [(5, "a", "Ann", 2, "/y")]


def test_a_script_of_esper() -> None:
    text = """
    create schema Tick (symbol string, price double);
    @name('mean') select symbol, avg(price) as mean from Tick#length(2) group by symbol;"""
    found = river.compile(text, lang="cql").run({"Tick": [(1, "A", 2.5), (2, "A", 3.5)]}, backend="reference")
    assert [row["mean"] for row in found["mean"].to_pylist()] == [2.5, 2.5, 3.0]


def test_a_source_as_materialize_and_risingwave_write_it() -> None:
    text = """
    create source s (ts timestamptz, v double precision) with (connector='kafka') format plain encode json;
    create materialized view m as select max(v) as v from s;"""
    found = river.compile(text, lang="cql").run({"s": [(BEGIN, 2.5)]}, backend="reference")
    assert [row["v"] for row in found["m"].to_pylist()] == [2.5]


def test_a_script_of_stream() -> None:
    text = """# two queries
table : register stream S (a integer, b char(8));
source : ../data/S.dat

vquery : select a, count(*) from S [range 4 seconds] group by a;
vtable : register relation V (a integer, n integer);

query : Istream(select a, n from V where n > 1);
dest : ../out/q1.txt

query : select a from S where b = 'x';
dest : q2.txt
"""
    data = {"S": [(1, 1, "x"), (2, 1, "y"), (9, 1, "x")]}
    found = river.compile(text, lang="cql").run(data, backend="reference")
    assert found["query"].to_pylist() == [{"ts": 2, "a": 1, "n": 2}]
    assert found["query_1"].to_pylist() == [{"ts": 1, "a": 1}, {"ts": 9, "a": 1}]


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_a_script_of_stream_says_where_its_data_are(backend: str, tmp_path: Path) -> None:
    text = f"""
table : register stream S (a integer, b float, c char10);
source : {tmp_path}/S.dat
table : register relation R (a integer, d byte);
source : {tmp_path}/R.dat
query : Rstream (select S.a, b, c, d from S [now], R where S.a = R.a);
dest : {tmp_path}/q.txt
"""
    (tmp_path / "S.dat").write_text("i,i,f,c10\n1,5,2.5,abc\n1,6,3,de f\n4,5,-1,x\n\n")
    (tmp_path / "R.dat").write_text("i,b,i,b\n1,+,5,x\n1,+,6,y\n3,-,5,x\n4,+,5,z\n")
    program = river.compile(text, lang="cql")
    rows = program.run({}, backend=backend)["query"].to_pylist()
    assert rows[:2] == [
        {"ts": 1, "a": 5, "b": 2.5, "c": "abc", "d": "x"},
        {"ts": 1, "a": 6, "b": 3.0, "c": "de f", "d": "y"},
    ]
    assert rows[2:] == [{"ts": 4, "a": 5, "b": -1.0, "c": "x", "d": "z"}]
    assert not (tmp_path / "q.txt").exists()
    (tmp_path / "other.dat").write_text("i,i,f,c10\n1,6,2,o\n")
    rows = program.run({"S": tmp_path / "other.dat"}, backend=backend)["query"].to_pylist()
    assert rows == [{"ts": 1, "a": 6, "b": 2.0, "c": "o", "d": "y"}]
    (tmp_path / "S.dat").write_text("i,i,f\n1,5,2.5,abc\n")
    with pytest.raises(river.Rejected) as caught:
        program.run({}, backend=backend)
    assert [each.code for each in caught.value.diagnostics] == ["data-column"]
