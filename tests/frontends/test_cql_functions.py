"""The scalar functions of River-CQL: what they make of rows, as DuckDB has it where SQL says the same."""

from __future__ import annotations

import datetime as dt
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from backends.multicore.plan import plan
from backends.multicore.run import run as run_multicore
from calculus.observe import Faulted, Finished
from calculus.run import run
from calculus.schedule import FirstCome
from frontends.cql import FRONTEND
from frontends.sql.functions import FUNCTIONS
from river.backend import Options
from river.diagnostics import Diagnostic, Rejected, Severity
from river.il import erase
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import Mark
from river.platform import Platform
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

LIBRARY = Library.of({"cql": FRONTEND.templates})
INPUTS = (
    "s: {ts: time; i: int; f: float; k: string; qi: int?; qf: float?; qk: string?; b: bool} stream by ts;\n"
)
DAY = 86_400_000_000
ROWS = [
    (951_825_599_999_999, 7, 2.25, "a,bc,é", None, None, None, True),
    (1_230_768_000_000_000, -8, -1.155, "  Pad ", 3, -0.5, "x_y%", False),
    (1_798_761_845_678_901, 0, 1024.5, "", -3, 2.0, "", True),
    (1_798_848_000_000_000, 2, 0.001, "aXbXX", 0, 7.75, "aXb", False),
]

SAME = {
    "i % 3": "i % 3",
    "mod(i, 3)": "i % 3",
    "abs(i)": "abs(i)",
    "abs(qf)": "abs(qf)",
    "sign(f)": "sign(f)::double",
    "sign(i)": "sign(i)::bigint",
    "floor(f)": "floor(f)",
    "ceil(qf)": "ceil(qf)",
    "trunc(f)": "trunc(f)",
    "round(qf)": "round(qf)",
    "round(f, 2)": "round(f, 2)",
    "round(f * 1000, -2)": "round(f * 1000, -2)",
    "power(i, 2)": "power(i, 2)",
    "sqrt(abs(i))": "sqrt(abs(i))",
    "i in (0, 7)": "i in (0, 7)",
    "qi not in (3)": "qi not in (3)",
    "position('X' in k)": "position('X' in k)",
    "strpos(k, 'bc')": "strpos(k, 'bc')",
    "length(qk)": "length(qk)",
    "lower(k) || upper(k)": "lower(k) || upper(k)",
    "k || i": "k || i",
    "qk || '!'": "qk || '!'",
    "concat(qk, '-', qi)": "concat(qk, '-', qi)",
    "trim(k)": "trim(k)",
    "ltrim(k)": "ltrim(k)",
    "rtrim(k, 'X')": "rtrim(k, 'X')",
    "trim('aX' from k)": "trim(k, 'aX')",
    "substring(k, 2)": "substring(k, 2)",
    "substring(k from 2 for 3)": "substring(k, 2, 3)",
    "substr(k, 9, 2)": "substr(k, 9, 2)",
    "left(k, 2) || '.' || right(k, 2)": "left(k, 2) || '.' || right(k, 2)",
    "left(k, -2) || '.' || right(k, -2)": "left(k, -2) || '.' || right(k, -2)",
    "lpad(k, 8, '*')": "lpad(k, 8, '*')",
    "lpad(k, 2, '*') || rpad(qk, 3, 'ab')": "lpad(k, 2, '*') || rpad(qk, 3, 'ab')",
    "repeat(k, 2)": "repeat(k, 2)",
    "reverse(k)": "reverse(k)",
    "replace(k, 'X', '--')": "replace(k, 'X', '--')",
    "split_part(k, ',', 2)": "split_part(k, ',', 2)",
    "split_part(k, ',', -1)": "split_part(k, ',', -1)",
    "split_part(k, 'X', 9)": "split_part(k, 'X', 9)",
    "starts_with(k, 'a')": "starts_with(k, 'a')",
    "ends_with(qk, 'b')": "suffix(qk, 'b')",
    "contains(k, 'Xb')": "contains(k, 'Xb')",
    "regexp_like(k, '^a.*X$')": "regexp_matches(k, '^a.*X$')",
    "k like 'a%X' or qk like '%!%' escape '!'": "k like 'a%X' or qk like '%!%' escape '!'",
    "qk like 'x!_y!%' escape '!'": "qk like 'x!_y!%' escape '!'",
    "k ilike '%PAD%'": "k ilike '%PAD%'",
    "k not ilike 'A%'": "k not ilike 'A%'",
    "chr(97 + abs(i))": "chr(97 + abs(i)::int)",
    "ascii('é')": "ascii('é')",
    "coalesce(qi, qi, i)": "coalesce(qi, qi, i)",
    "coalesce(qk, k, 'never')": "coalesce(qk, k, 'never')",
    "coalesce(qi, qi)": "coalesce(qi, qi)",
    "ifnull(qf, 1)": "ifnull(qf, 1)",
    "nullif(i, 7)": "nullif(i, 7)",
    "nullif(qi, i)": "nullif(qi, i)",
    "i / nullif(try_cast(cast(-2 as string) as int), 0)": "i // nullif(try_cast(cast(-2 as varchar) as int), 0)",
    "greatest(i, qi, 2)": "greatest(i, qi, 2)",
    "least(f, qf)": "least(f, qf)",
    "least(k, qk, 'm')": "least(k, qk, 'm')",
    "qi is distinct from 3": "qi is distinct from 3",
    "qi is not distinct from i - 4": "qi is not distinct from i - 4",
    "b is true": "b is true",
    "(qi > 0) is not false": "(qi > 0) is not false",
    "(qi > 0) is true": "(qi > 0) is true",
    "cast(i as float)": "i::double",
    "i::string || 'x'": "i::varchar || 'x'",
    "cast('12' as int) + '7'::bigint": "19::bigint",
    "' 1.5'::float": "1.5::double",
    "cast(b as int)": "b::int",
    "cast(qi > 1 as int)": "(qi > 1)::int",
    "i is distinct from case when b then 7 end": "i is distinct from case when b then 7 end",
    "greatest(1, 2) + i": "greatest(1, 2) + i",
    "greatest(case when b then 3 end, 2) + 1": "greatest(case when b then 3 end, 2) + 1",
    "coalesce(IF(b, 3, null), IF(i > 0, 2, null)) * 2": "coalesce(if(b, 3, null), if(i > 0, 2, null)) * 2",
    "(case when b then null when i > 0 then 3 else 4 end) + 0.5": "(case when b then null when i > 0 then 3 else 4 end) + 0.5",
    "i::bool": "i::bool",
    "'TRUE'::boolean": "true",
    "qi::float": "qi::double",
    "extract(year from ts)": "extract(year from ts)",
    "extract(quarter from ts)": "extract(quarter from ts)",
    "extract(week from ts)": "extract(week from ts)",
    "extract(dow from ts)": "extract(dow from ts)",
    "extract(isodow from ts)": "extract(isodow from ts)",
    "extract(doy from ts)": "extract(doy from ts)",
    "extract(minute from ts) * 60 + second(ts)": "extract(minute from ts) * 60 + second(ts)",
    "extract(milliseconds from ts)": "extract(milliseconds from ts)",
    "extract(epoch from ts)": "extract(epoch from ts)",
    "date_trunc('minute', ts)": "date_trunc('minute', ts)",
    "date_trunc('day', ts)": "date_trunc('day', ts)::timestamp",
    "date_trunc('week', ts)": "date_trunc('week', ts)::timestamp",
    "date_trunc('month', ts)": "date_trunc('month', ts)::timestamp",
    "date_trunc('quarter', ts)": "date_trunc('quarter', ts)::timestamp",
    "date_trunc('year', ts)": "date_trunc('year', ts)::timestamp",
    "ts + interval '1 day'": "ts + interval 1 day",
    "ts - interval '90' minutes": "ts - interval 90 minute",
    "ts >= timestamp '2026-12-31T00:00:00Z'": "ts >= timestamp '2026-12-31 00:00:00'",
    "pi()": "pi()",
    "hour(ts) * 10000 + day(ts) * 100 + month(ts) + minute(ts)": "hour(ts) * 10000 + day(ts) * 100 + month(ts) + minute(ts)",
    "week(ts) * 10 + quarter(ts)": "week(ts) * 10 + quarter(ts)",
    "year(to_timestamp(1.5e9)) + year(to_timestamp(i))": "year(to_timestamp(1.5e9)) + year(to_timestamp(i))",
    "log2(abs(f)) + exp(qf)": "log2(abs(f)) + exp(qf)",
    "sin(f) + cos(f) + tan(f)": "sin(f) + cos(f) + tan(f)",
    "asin(qf / 8) + acos(qf / 8) + atan(qf) + atan2(qf, f)": "asin(qf / 8) + acos(qf / 8) + atan(qf) + atan2(qf, f)",
    "regexp_replace_all(k, '[Xa]', '-')": "regexp_replace(k, '[Xa]', '-', 'g')",
    "regexp_replace(k, '[a-c]', '-', 'g')": "regexp_replace(k, '[a-c]', '-', 'g')",
    "log(abs(f)) + log(2, abs(f) + 1)": "log(abs(f)) + log(2, abs(f) + 1)",
    "degrees(f) + radians(qf)": "degrees(f) + radians(qf)",
    "trunc(f * 100) - trunc(-f)": "trunc(f * 100) - trunc(-f)",
    "+i - +qi": "i - qi",
    "k like qk": "k like qk",
    "k not like qk || '%'": "k not like qk || '%'",
    "k like left(k, 1) || '%b_' || right(k, 2)": "k like left(k, 1) || '%b_' || right(k, 2)",
    "k ilike upper(qk)": "k ilike upper(qk)",
    "concat_ws('-', k, qk, 'z', qi)": "concat_ws('-', k, qk, 'z', qi)",
    "i in (0, 7, null)": "i in (0, 7, null)",
    "qi not in (3, null)": "qi not in (3, null)",
    "(qi > 0) is unknown": "(qi > 0) is null",
    "(qi > 0) is not unknown": "(qi > 0) is not null",
    "coalesce(regexp_extract(k, '([a-z])X', 1), '')": "regexp_extract(k, '([a-z])X', 1)",
    "coalesce(regexp_extract(qk, 'x_.'), '')": "coalesce(regexp_extract(qk, 'x_.'), '')",
    "ts > date '2009-01-01'": "ts > date '2009-01-01'",
    "cast(ts as date)": "cast(ts as date)",
    "ts::date + 1 - 3": "ts::date + 1 - 3",
    "ts::date - date '2026-01-31'": "ts::date - date '2026-01-31'",
    "ts::date + interval '1' month": "cast(ts::date + interval 1 month as date)",
    "ts::date - interval '2' day": "cast(ts::date - interval 2 day as date)",
    "ts::date + interval '90' minute": "ts::date + interval 90 minute",
    "ts::date < date '2026-01-31' or ts::date = '2026-12-31'": "ts::date < date '2026-01-31' or ts::date = '2026-12-31'",
    "ts >= '2026-01-31 00:00:00' and ts > ts::date": "ts >= '2026-01-31' and ts > ts::date",
    "date_trunc('month', ts::date)": "cast(date_trunc('month', ts) as date)",
    "date_trunc('hour', ts::date)": "date_trunc('hour', ts::date)::timestamp",
    "extract(year from ts::date) + dayofyear(date(ts))": "extract(year from ts::date) + dayofyear(ts)",
    "to_char(ts::date, 'DD.MM.YYYY') || ts::date": "strftime(ts, '%d.%m.%Y') || ts::date",
    "cast(cast(ts as date) as timestamp)": "ts::date::timestamp",
    "to_date('31.01.2026', 'dd.MM.yyyy')": "date '2026-01-31'",
    "date_diff('day', date '2026-01-31', ts::date)": "date_diff('day', date '2026-01-31', ts::date)",
    "greatest(ts::date, date '2026-01-31')": "greatest(ts::date, date '2026-01-31')",
    "case when qi > 0 then ts::date end": "case when qi > 0 then ts::date end",
    "time_bucket(interval '7 minutes', ts)": "time_bucket(interval '7 minutes', ts)",
    "time_bucket(interval '1 week', ts)": "time_bucket(interval '1 week', ts)::timestamp",
    "date_bin(interval '9' minute, ts, timestamp '2026-01-01')": "time_bucket(interval 9 minute, ts, timestamp '2026-01-01')",
    "round(f::numeric, 1) + cast('2.5' as decimal)": "round(f, 1) + 2.5",
    "cast(f as decimal(10, 1)) || cast(i as numeric(6))": "cast(f as decimal(10, 1)) || cast(i as numeric(6))",
    "qf::decimal(10,3)::decimal(6,1)::text": "qf::decimal(10,3)::decimal(6,1)::text",
    "cast('-1.255' as decimal(10,2)) || 1.005::decimal(10,2)": "cast('-1.255' as decimal(10,2)) || 1.005::decimal(10,2)",
    "cast(cast(qi as decimal(4,2)) * 3 as float)": "cast(cast(qi as decimal(4,2)) * 3 as double)",
    "coalesce(cast(null as decimal(4,2)), 2.5)::text": "coalesce(cast(null as decimal(4,2)), 2.5)::text",
    "coalesce(cast(null as date), date '2026-01-31')": "coalesce(cast(null as date), date '2026-01-31')",
    'coalesce(json_value(\'{"a": [1, {"b": "x"}]}\', \'$.a[1].b\'), k)': "'x'",
    "IF(i > 0, 'a', k)": "if(i > 0, 'a', k)",
    "ts + interval '1-2' year to month": "ts + interval 14 month",
    "ts - interval '1 2:03' day to minute": "ts - interval 1563 minute",
    "ts + interval '-1:30.5' minute to second": "ts - interval 90500 millisecond",
    "ts + interval 'P1Y2M3DT4H5M6.7S'": "ts + interval 14 month + interval 3 day + interval 14706700 millisecond",
    "ts - interval '1 month 2 days 03:00'": "ts - interval 1 month - interval 2 day - interval 3 hour",
    "ts + qi * interval '1' month": "ts + qi * interval 1 month",
    "interval '1' quarter * 2 + ts": "ts + interval 6 month",
    "ts - interval '3' month * 2 + -interval '1' year": "ts - interval 6 month - interval 12 month",
    "timestamp '2026-01-31 12:00:00.5' - interval '1 day 2 hours'": "timestamp '2026-01-30 10:00:00.5'",
    "ts + interval 90 minutes - interval '1:30:00'": "ts",
    "extract(epoch from (ts - timestamp '2026-01-01'))": "epoch(ts - timestamp '2026-01-01')",
    "to_char(ts, 'YYYY-MM-DD\"T\"HH24:MI:SS.MS')": "strftime(ts, '%Y-%m-%dT%H:%M:%S.%g')",
    "to_char(ts, 'HH12 AM, Dy Mon, DDD US')": "strftime(ts, '%I %p, %a %b, %j %f')",
    "date_format(ts, 'yyyy/MM/dd''T''HH:mm:ss.SSS EEEE')": "strftime(ts, '%Y/%m/%dT%H:%M:%S.%g %A')",
    "strftime(ts, '%F %T 100%% %-d %B %y')": "strftime(ts, '%Y-%m-%d %H:%M:%S 100%% %-d %B %y')",
    "dayname(ts) || monthname(ts)": "dayname(ts) || monthname(ts)",
    "date_diff('hour', timestamp '2026-01-01 00:30:00', ts)": "date_diff('hour', timestamp '2026-01-01 00:30:00', ts)",
    "date_diff('week', timestamp '2026-01-01', ts)": "date_diff('week', timestamp '2026-01-01', ts)",
    "datediff('month', timestamp '2026-01-31', ts)": "date_diff('month', timestamp '2026-01-31', ts)",
    "date_diff('year', timestamp '2026-01-31', ts)": "date_diff('year', timestamp '2026-01-31', ts)",
    "timestampdiff(second, timestamp '2026-01-31', ts)": "date_sub('second', timestamp '2026-01-31', ts)",
    "timestampadd(minute, i, ts)": "ts + i * interval 1 minute",
    "date_add(ts, interval 5 minutes)": "ts + interval 5 minutes",
    "floor(ts to hour)": "date_trunc('hour', ts)",
    "unix_timestamp(ts)": "floor(epoch(ts))::bigint",
    "epoch(ts)": "epoch(ts)",
    "epoch_ms(ts)": "epoch_us(ts) // 1000",
    "last_day(ts)": "last_day(ts)",
    "dayofyear(ts) + dayofmonth(ts)": "dayofyear(ts) + dayofmonth(ts)",
    "to_timestamp_ltz(epoch_ms(ts), 3)": "make_timestamp(epoch_us(ts) // 1000 * 1000)",
    "to_timestamp('2026-01-31 12:00:00')": "timestamp '2026-01-31 12:00:00'",
    "iif(i > 0, 'a', qk)": "if(i > 0, 'a', qk)",
    "ln(abs(f)) > log10(abs(f))": "ln(abs(f)) > log10(abs(f))",
}
"""Expressions over the rows above, and how DuckDB writes them."""


@cache
def lower(text: str) -> Any:
    return verify(FRONTEND.lower(FRONTEND.check(FRONTEND.parse(Source("<query>", INPUTS + text)))), LIBRARY)


def says(query: str, rows: list[Any], *, multicore: bool = False) -> Any:
    """The rows that a query over the stream `s` makes of rows, or why it ends."""
    graph = lower(f"v: stream by at = {query};")
    if multicore:
        found: list[Any] = []
        run_multicore(plan(graph, Platform(2), Options(workers=2)), {"s": iter([rows])}, {"v": found.extend})
        return [item[1:] for item in found if not isinstance(item, Mark)]
    outcome = run(erase.erase(graph), erase.inputs(graph, {"s": tuple(rows)}), FirstCome()).outcome
    if isinstance(outcome, Faulted):
        return outcome.info
    assert isinstance(outcome, Finished)
    (made,) = (items for _, items in outcome.outputs)
    rows_made: list[Any] = [item for item in made if not isinstance(item, Mark)]
    return [item[1:] for item in rows_made]


def everything(expressions: Iterable[str] = SAME) -> str:
    return f"select {', '.join(f'{cql} as c{i}' for i, cql in enumerate(expressions))} from s"


def canonical(value: Any) -> Any:
    """A value of DuckDB as River has it: times in microseconds, dates as texts."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(
            microseconds=1
        )
    return value.isoformat() if isinstance(value, dt.date) else value


@pytest.mark.slow
def test_functions_say_what_duckdb_says() -> None:
    duckdb = pytest.importorskip("duckdb").connect()
    duckdb.execute("set threads to 1")
    duckdb.execute(
        "create table s (ts timestamp, i bigint, f double, k varchar, qi bigint, qf double, qk varchar, b boolean)"
    )
    for at, *row in ROWS:
        duckdb.execute("insert into s values (make_timestamp(?), ?, ?, ?, ?, ?, ?, ?)", [at, *row])
    expected = duckdb.execute(f"select {', '.join(SAME.values())} from s order by s.ts").fetchall()
    found = says(everything(), ROWS)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for text, a, b in zip(SAME, ours, map(canonical, theirs), strict=True):
            assert a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-12)), text


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("part", [0, 1])
def test_machine_code_says_the_same(part: int) -> None:
    query = everything([*SAME][part::2])
    assert says(query, ROWS, multicore=True) == says(query, ROWS)


OWN = {
    "split_index('a,b', ',', 1)": "b",
    "split_index('a,b', ',', 2)": None,
    "initcap('ab cD-e1f')": "Ab Cd-E1f",
    "regexp_extract('abc', 'd')": None,
    "regexp_extract('abc', '(d)?b', 1)": "",
    "trunc(-1.28, 1)": -1.2,
    "trunc(1234.5, -2)": 1200.0,
    "trunc(5, 1)": 5.0,
    "cardinality([1, 2])": 2,
    "'50%' like '50!%' escape '!'": True,
    "'50x' like '50' || '!%' escape '!'": False,
    "'50%' like '50' || '!%' escape '!'": True,
    "to_timestamp_ltz(5, 0)": 5_000_000,
    "substring('abc', 0, 2)": "a",
    "substring('abc', -1, 3)": "a",
    "substring('abc', -9, 3)": "",
    "substring('abc', 2, 9223372036854775807)": "bc",
    "left('abc', -9223372036854775807 - 1)": "",
    "right('abc', -9223372036854775807 - 1)": "",
    "lpad('abc', -1)": "",
    "rpad('abc', 9, '')": "abc",
    "split_part('abc', '', 1)": "abc",
    "round(1.5, 400)": 1.5,
    "round(1.0e300, -400)": 0.0,
    "round(1.0e300, 20)": 1e300,
    "round(7, 2)": 7.0,
    "round(7)": 7,
    "cast(-2.7 as int)": -2,
    "coalesce(null, 1)": 1,
    "nullif(null, 1)": None,
    "nullif(null, qi)": None,
    "nullif(1, null)": 1,
    "nullif(5, i + 1)": 5,
    "nullif(-5, -5)": None,
    "nullif(2.5, 2.5) is null": True,
    "coalesce(nullif(null, -1), nullif(-2, i)) + 1": -1,
    "position('z' in 'abc')": 0,
    "octet_length('é')": 2,
    "case when i > 100 then 1 end is null": True,
    "coalesce(case when i > 100 then 1 end, case when i > 0 then 2.5 end)": 2.5,
    "SUBSTRING('abc', 2)": "bc",
    "32.05::decimal(4,1)::text": "32.1",
    "(0.25e-4)::decimal(9,5)::text": "0.00003",
    "'-1.5E+3'::decimal(6,1)::text": "-1500.0",
    "[1, 2][1]": 2,
    "coalesce([1, 2][2], [1][-1], 0)": 0,
    "array_contains(split('b,a', ','), 'c')": False,
    "'a' = any(split('b,a', ','))": True,
    "array_to_string(split('b,a', ','), '-')": "b-a",
}
"""What is River's own: the edges, and where engines differ."""


def test_edges() -> None:
    query = f"select {', '.join(f'{cql} as c{i}' for i, cql in enumerate(OWN))} from s"
    assert dict(zip(OWN, says(query, ROWS[:1])[0], strict=True)) == OWN


@pytest.mark.parametrize(
    "expression",
    [
        "substring(k, 1, -1)",
        "split_part(k, 'a', 0)",
        "k::int",
        "k::float",
        "k::bool",
        "k::timestamp",
        "(k || '1.2.3e1')::decimal(9,1)",
    ],
)
def test_what_has_no_value_ends_the_run(expression: str) -> None:
    assert "'assert'" in str(says(f"select {expression} as c from s", ROWS[:1]))


PATHS: dict[str, tuple[str | int, ...]] = {
    "json_value(k, '$.a')": ("a",),
    "json_extract_string(k, '$.b.a[1]')": ("b", "a", 1),
    "k->1->>'b'": (1, "b"),
    "json_extract_path_text(k, 'é \"\\n', 0)": ('é "\\n', 0),
    "get_json_object(k, '$')": (),
}


def some_json(chance: Random, depth: int = 0) -> Any:
    texts = ["a", "b", 'é "\\n', "😀\t", ""]
    kind = chance.randrange(7 if depth < 4 else 4)
    if kind < 4:
        return [None, chance.random() < 0.5, chance.uniform(-1e9, 1e-9), chance.choice(texts)][kind]
    if kind == 4:
        return [some_json(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(texts): some_json(chance, depth + 1) for _ in range(4)}


def inside(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    return value[step] if isinstance(value, list) and step < len(value) else None


def test_json_is_read_by_paths_as_python_reads_it() -> None:
    """What is no JSON has some value, or none; it ends no run."""
    chance = seeds.chance("texts of JSON")
    rows: list[Any] = []
    wanted: list[tuple[str | None, ...]] = []
    for _ in range(60):
        value, escaped = some_json(chance), chance.random() < 0.5
        text = json.dumps(value, ensure_ascii=escaped, indent=chance.choice([None, 1]))
        found: list[str | None] = []
        for path in PATHS.values():
            at = value
            for step in path:
                at = inside(at, step)
            plain = at is None or isinstance(at, str)
            found.append(at if plain else json.dumps(at, ensure_ascii=escaped))
        wanted.append(tuple(found))
        rows.append((0, 0, 0.0, text, None, None, None, True))
    query = f"select {', '.join(f'{path} as c{i}' for i, path in enumerate(PATHS))} from s"

    def shown(row: tuple[str | None, ...]) -> list[str | None]:  # values come as they are spaced
        return [each and "".join(each.split()) for each in row]

    assert [shown(row) for row in says(query, rows)] == [shown(row) for row in wanted]
    cut = [(*row[:3], row[3][: chance.randrange(len(row[3]) + 1)], *row[4:]) for row in rows]
    assert len(says(query, cut)) == len(cut)


def diagnostics(expression: str) -> list[Diagnostic]:
    text = INPUTS + f"v: stream = select {expression} as c from s;"
    try:
        return list(FRONTEND.check(FRONTEND.parse(Source("<query>", text))).remarks)
    except Rejected as rejected:
        return list(rejected.diagnostics)


@pytest.mark.parametrize(
    ("expression", "code", "help_line"),
    [
        ("nope(i)", "sql-unknown-function", None),
        ("substrng(k, 2)", "sql-unknown-function", "did you mean `substring`?"),
        ("substring(k)", "sql-function-operands", "it is `substring(text, int[, int])`"),
        ("substring(i, 2)", "sql-function-operands", "it is `substring(text, int[, int])`"),
        ("substring(k, f)", "sql-function-operands", None),
        ("regexp_like(k, k)", "sql-function-operands", "it is `regexp_like(text, pattern)`"),
        ("nullif(i)", "sql-function-operands", None),
        ("coalesce(null)", "sql-function-operands", None),
        ("extract(year from i)", "sql-function-operands", "seconds since 1970 become a time by `to_timestamp(x)`"),
        ("extract(yeer from ts)", "sql-time-part", "did you mean `year`?"),
        ("cast(i as list)", "sql-cast",
         "there are `int`, `float`, `decimal(p,s)` up to 38 digits, `string`, `bool`, `time` and `date`"),
        ("cast(ts as bool)", "sql-cast", None),
        ("json_value(k, '$.a[*]')", "sql-json-path", "write `json_value(x, '$.user.tags[0]')`"),
        ("json_value(k)", "sql-json-path", "write `json_value(x, '$.user.tags[0]')`"),
        ("json_value(k, k)", "sql-json-path", "write `json_value(x, '$.user.tags[0]')`"),
        ("i->>'a'", "sql-function-operands", "fields of records are read by their path: `x.user.id`"),
        ("3 = any(k)", "sql-function-operands",
         "of a query it is `x in (select ...)`, of values `x in (1, 2)`, of a text `contains(s, part)`"),
        ("i in k", "sql-in", "write `x in (1, 2)`, or `x = any(xs)` of a list"),
        ("length(k) filter (where b)", "sql-filter", None),
        ("k is true", "sql-condition", None),
        ("k like 'a!' escape '!'", "sql-like", None),
        ("k like i", "sql-like", None),
        ("to_char(ts, 'YYYY-Foo')", "sql-time-format", None),
        ("strftime(ts, '%Q')", "sql-time-format", None),
        ("to_char(i, 'YYYY')", "sql-function-operands", None),
        ("date_diff('eon', ts, ts)", "sql-time-part", None),
        ("date_diff('day', i, ts)", "sql-function-operands", "write `date_diff('day', a, b)`"),
        ("concat_ws(qk, k)", "sql-function-operands", None),
        ("round(ts to hour)", "syntax-from", "write `floor(t to hour)`"),
        ("k like 'a' escape 'ab'", "syntax-like", "write it so: `escape '!'`"),
        ("time_bucket(interval '1' month, ts)", "sql-function-operands",
         "write `time_bucket(interval '5' minute, ts)`; months are `date_trunc('month', ts)`"),
        ("date_bin(interval '5' minute, i)", "sql-function-operands", None),
        ("current_date", "sql-unknown-column", "time is that of the rows: use the time stamp"),
        ("f(i as int)", "syntax-cast", "write `cast(x as int)`"),
        ("length(k from 2)", "syntax-from", "write commas between operands"),
        ("timestamp 'soon'", "syntax-time", "write it as in `timestamp '2026-01-31 12:00:00'`"),
        (
            "interval '2 moons'", "syntax-interval",
            "write `interval '1 month 2 days'`, `interval '1-2' year to month` or `interval '1 2:30' day to minute`",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(expression: str, code: str, help_line: str | None) -> None:
    (found,) = diagnostics(expression)
    assert (found.code, found.severity) == (code, Severity.ERROR)
    if help_line is not None:
        assert found.help == help_line


@pytest.mark.parametrize("expression", ["i is null", "coalesce(i, 1)", "coalesce(qi, 1, 2)"])
def test_asking_for_none_where_none_can_be_is_a_remark(expression: str) -> None:
    assert [(d.code, d.severity) for d in diagnostics(expression)] == [("sql-never-none", Severity.REMARK)]


def test_a_chain_of_functions_of_what_may_be_none_does_not_grow() -> None:
    sizes: list[int] = []
    for depth in (10, 20):
        expression = "lower(" * depth + "qk" + ")" * depth
        view = FRONTEND.check(
            FRONTEND.parse(Source("<query>", INPUTS + f"v: relation = select {expression} as c from s;"))
        ).views[0]
        sizes.append(len(repr(evolve(view))))
    assert sizes[1] < 2 * sizes[0]


def test_every_function_of_the_table_is_checked_here() -> None:
    texts = " ".join((*SAME, *OWN)).lower()
    unseen = {
        f.names[0]
        for f in FUNCTIONS.values()
        if " " not in f.names[0] and not any(f"{name}(" in texts for name in f.names)
    }
    assert not unseen
