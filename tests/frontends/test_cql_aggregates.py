"""The aggregates of River-CQL: at every instant what DuckDB makes of the rows of that instant."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import river
from backends.multicore.plan import plan
from backends.multicore.run import run as run_multicore
from calculus.observe import Finished
from calculus.run import run
from calculus.schedule import FirstCome
from frontends.cql import FRONTEND
from river.backend import Options
from river.diagnostics import Rejected
from river.il import erase
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import Mark
from river.platform import Platform
from river.source import Source
from river.testing import seeds

if TYPE_CHECKING:
    from random import Random

LIBRARY = Library.of({"cql": FRONTEND.templates})
OWN = """
fn worth(q: int?): int = coalesce(q, 100);
aggregate total(x: int): int {init: {t: 0}; add: {t: t + x}; remove: {t: t - x}; value: t};
aggregate ratio(a: int, b: int): float {
  init: {x: 0, y: 0.0, n: 0};
  add: {n: n + 1, x: x + a, y: y + b};
  remove: {x: x - a, y: y - b, n: n - 1};
  value: case when y <> 0 then x / y end;
};
aggregate worths(k: string, q: int?): int {
  init: {n: 0}; add: {n: n + worth(q) + length(k)}; remove: {n: n - worth(q) - length(k)}; value: n
};
"""
INPUTS = OWN + (
    "s: {ts: int; g: string; i: int; f: float; k: string; q: int?; b: bool; d: decimal(9, 2)} stream by ts;\n"
)
COLUMNS = "ts bigint, g varchar, i bigint, f double, k varchar, q bigint, b boolean, d decimal(9, 2)"

SAME = {
    "count(*) filter (where i > 0)": None,
    "count(q) filter (where b)": None,
    "sum(i) filter (where b and q is not null)": None,
    "count_if(q > 0)": "count(*) filter (where q > 0)",
    "sum(distinct i)": None,
    "avg(distinct q)": None,
    "sum(distinct f)": None,
    "count(distinct k) filter (where b)": None,
    "min(f) filter (where i > 0)": None,
    "stddev(i)": None,
    "stddev_pop(f)": None,
    "var_samp(q)": None,
    "variance(f)": None,
    "var_pop(q)": None,
    "bool_and(b)": None,
    "bool_or(q > 0)": None,
    "every(i > 0) filter (where b)": "bool_and(i > 0) filter (where b)",
    "median(f)": None,
    "quantile_cont(q, 0.25)": None,
    "string_agg(k, ', ')": "string_agg(k, ', ' order by k)",
    "string_agg(distinct k, '')": "string_agg(distinct k, '' order by k)",
    "min_by(k, f * 100 + i)": "min_by(k, (f * 100 + i, k))",
    "max_by(i, q)": "max_by(i, (q, i)) filter (where q is not null)",
    "sum(d)": None,
    "sum(d * i)": None,
    "max(d / 4) + sum(d) / count(*)": None,
    "count(*) filter (where d > i or d + i = q)": None,
    "mean(i)": "avg(i)",
    "covar_pop(f, i)": None,
    "covar_samp(q, f)": None,
    "corr(i, f)": "nullif(corr(i, f), 'nan')",
    "regr_slope(f, i)": "nullif(regr_slope(f, i), 'nan')",
    "regr_intercept(f, q)": "nullif(regr_intercept(f, q), 'nan')",
    "regr_count(f, q)": None,
    "regr_r2(i, f)": "nullif(regr_r2(i, f), 'nan')",
    "approx_count_distinct(k)": "count(distinct k)",
    "percentile_cont(0.5) within group (order by i desc)": "quantile_cont(i, 0.5)",
    "percentile_disc(0.3) within group (order by k)": None,
    "percentile_disc(0.75) within group (order by q desc) filter (where b)": None,
    "quantile_disc(d, 0)": None,
    "total(q) filter (where b)": "sum(q) filter (where b)",
    "ratio(i, q)": "nullif(sum(i) filter (where q is not null)::double / nullif(sum(q), 0), 'nan')",
    "worths(k, q)": "sum(coalesce(q, 100) + length(k))",
    "listagg(k)": "string_agg(k, ',' order by k)",
}
"""Aggregates, and how DuckDB writes them where it does so otherwise; ties are decided by the value itself."""


@cache
def compiled(text: str) -> Any:
    return verify(FRONTEND.lower(FRONTEND.check(FRONTEND.parse(Source("<query>", text)))), LIBRARY)


def says(query: str, rows: list[Any], *, multicore: bool = False) -> dict[int, list[Any]]:
    """What a relation gets at each instant."""
    graph = compiled(f"{INPUTS}v: relation = {query};")
    made: list[Any] = []
    if multicore:
        run_multicore(plan(graph, Platform(2), Options(workers=2)), {"s": iter([rows])}, {"v": made.extend})
    else:
        outcome = run(erase.erase(graph), erase.inputs(graph, {"s": tuple(rows)}), FirstCome()).outcome
        assert isinstance(outcome, Finished)
        ((_, items),) = outcome.outputs
        made = list(items)
    changes: list[Any] = [item for item in made if not isinstance(item, Mark)]
    bag: list[Any] = []
    found: dict[int, list[Any]] = {}
    for tau, ins, gone in changes:
        for row in gone:
            bag.remove(row)
        bag += ins
        found[tau] = sorted(bag, key=repr)
    return found


def close(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(b, Decimal):
        return a == int(b * 100)
    if isinstance(b, float):
        return a is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-3 if abs(a) < 1e-2 else 0)
    return a == b


def test_different_values_of_a_small_float_are_summed() -> None:
    graph = compiled(
        "s: {ts: int; x: f32} stream by ts; v: relation = select sum(distinct x) as n from s[rows 2];"
    )
    given = erase.inputs(graph, {"s": ((1, 1.5), (2, 1.5), (3, 2.5), (4, 2.5))})
    outcome = run(erase.erase(graph), given, FirstCome()).outcome
    assert isinstance(outcome, Finished)
    ((_, items),) = outcome.outputs
    told: list[Any] = [item for item in items if not isinstance(item, Mark)]
    assert [row for _, rows, _ in told for row in rows] == [(1.5,), (4.0,), (2.5,)]


QUERY = f"select {{}}{', '.join(f'{cql} as c{i}' for i, cql in enumerate(SAME))} from s[rows 4]{{}}"


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_aggregates_say_at_every_instant_what_duckdb_says(duckdb, grouped: bool) -> None:
    chance = seeds.chance("aggregates", str(grouped))
    parts = ("g, ", " group by g") if grouped else ("", "")
    items = parts[0] + ", ".join(theirs or ours for ours, theirs in SAME.items())
    for _ in range(3):
        rows = [(i, *row(chance)) for i in range(10)]
        found = says(QUERY.format(*parts), rows)
        now: list[Any] = []
        for at in range(len(rows)):
            duckdb.execute("delete from s")
            window = rows[max(0, at - 3) : at + 1]
            values = [value for *others, amount in window for value in (*others, Decimal(amount) / 100)]
            marks = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(window))
            duckdb.execute(f"insert into s values {marks}", values)
            expected = sorted(duckdb.execute(f"select {items} from s{parts[1]}").fetchall(), key=first)
            now = sorted(found.get(at, now), key=first)
            assert len(now) == len(expected)
            for ours, theirs in zip(now, expected, strict=True):
                for name, a, b in zip([*(["g"] if grouped else []), *SAME], ours, theirs, strict=True):
                    assert close(a, b), (name, a, b, rows[max(0, at - 3) : at + 1])


def first(row: tuple[Any, ...]) -> Any:
    return row[0]


def row(chance: Random) -> tuple[Any, ...]:
    """A row but for its instant: few values, so that they repeat."""
    return (
        chance.choice("uv"), chance.randint(-2, 2), chance.choice([0.0, 0.5, -1.5, 1000.25]), chance.choice("abé"),
        chance.choice([None, -1, 0, 2]), chance.random() < 0.5, chance.randint(-10_000, 10_000),
    )  # fmt: skip


@pytest.fixture(scope="module")
def duckdb():
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("set threads to 1")
    connection.execute(f"create table s ({COLUMNS})")
    yield connection
    connection.close()


SOME = [
    (i, g, i - 2, 0.5 * i - 1e9, k, None if i == 1 else i, i % 3 > 0, 100 * i + 1)
    for i, (g, k) in enumerate(zip("uvuvuu", "abcaéb", strict=True))
]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("parts", [("g, ", " group by g"), ("", "")])
def test_machine_code_says_the_same(parts: tuple[str, str]) -> None:
    query = QUERY.format(*parts)
    assert says(query, SOME, multicore=True) == says(query, SOME)


def test_variances_far_from_zero_do_not_cancel_out() -> None:
    rows = [(i, "u", 0, 1e15 + i, "", None, True, 0) for i in range(4)]
    assert says("select var_pop(f) as v from s", rows)[3] == [(1.25,)]


def test_a_variance_comes_back_when_what_was_large_has_left() -> None:
    rows = [(i, "u", 0, x, "", None, True, 0) for i, x in enumerate([1e150, -1e140, 1.0, 2.0])]
    assert says("select var_pop(f) as v from s[rows 2]", rows)[3] == [(0.25,)]


def test_a_mean_of_decimals_is_exact() -> None:
    rows = [(i, "u", 0, 0.0, "", None, True, x) for i, x in enumerate([10, 10, 11])]
    (mean,) = says("select avg(d) as m from s", rows)[2][0]
    assert mean == round(Fraction(31, 300) * 10**8)
    assert says("select avg(d) as m, sum(d) as n from s where i > 0", rows)[0] == [(None, None)]


@pytest.mark.parametrize(
    ("expression", "code", "help_line"),
    [
        ("corr(i, k)", "sql-aggregate-argument", None),
        ("string_agg(k, k)", "sql-aggregate-argument", None),
        ("quantile_cont(i, 2)", "sql-aggregate-argument", None),
        ("quantile_disc(distinct k, 0.5)", "sql-aggregate-argument", None),
        ("median(k)", "sql-aggregate-argument", None),
        ("median(distinct i)", "sql-aggregate-argument", None),
        ("bool_and(i)", "sql-aggregate-argument", None),
        ("sum(distinct k)", "sql-aggregate-argument", None),
        ("count(i) filter (where count(*) > 1)", "sql-aggregate-place", None),
        ("total(k)", "sql-aggregate-argument", None),
        ("total(i, i)", "sql-aggregate-argument", None),
        ("total(distinct i)", "cql-aggregate", "take different rows by `select distinct` below it"),
        ("total(i order by f)", "sql-aggregate-order", "leave `order by` out"),
        ("count(i) filter (where total(i) > 1)", "sql-aggregate-place", None),
    ],
)
def test_what_is_refused(expression: str, code: str, help_line: str | None) -> None:
    with pytest.raises(Rejected) as refused:
        says(f"select {expression} as c from s", [])
    (found,) = refused.value.diagnostics
    assert found.code == code
    if help_line is not None:
        assert found.help == help_line


@pytest.mark.parametrize(
    ("expression", "better"),
    [("first(i)", "min_by(x, ts)"), ("last(i) filter (where b)", "max_by(x, ts)")],
)
def test_what_is_first_has_to_be_said_of_rows_that_are_no_input_streams(expression: str, better: str) -> None:
    with pytest.raises(Rejected) as refused:
        says(f"select {expression} as c from (select i, b from s) as q", [])
    (found,) = refused.value.diagnostics
    assert (found.code, found.help) == ("sql-aggregate-order", f"say by what: `{better}`")


DIGITS = "aggregate digits(x: int): int {init: {n: 0}; add: {n: n * 10 + x}; value: n}; "


def test_rows_of_an_instant_are_told_to_the_users_aggregate_in_the_order_of_their_values() -> None:
    rows = [(1, "u", 3), (1, "u", 1), (1, "u", 2), (4, "u", 0)]
    found = says_of(
        DIGITS + "s: {ts: int; g: string; i: int} stream by ts; v: relation = select digits(i) as n from s;",
        rows,
    )
    assert found == {1: [(123,)], 4: [(1230,)]}


def test_what_comes_and_goes_at_one_instant_is_not_told_to_the_users_aggregate() -> None:
    own = "aggregate told(x: int): int {init: {n: 0}; add: {n: n + 1}; remove: {n: n + 100}; value: n}; "
    rows = [(1, "u", 3), (1, "u", 4), (1, "u", 4), (5, "u", 5)]
    query = "s: {ts: int; g: string; i: int} stream by ts; v: relation = select told(i) as n from s[rows 1];"
    assert says_of(own + query, rows) == {1: [(1,)], 5: [(102,)]}


def says_of(text: str, rows: list[Any]) -> dict[int, list[Any]]:
    """What `v` holds when it has changed."""
    graph = compiled(text)
    outcome = run(erase.erase(graph), erase.inputs(graph, {"s": tuple(rows)}), FirstCome()).outcome
    assert isinstance(outcome, Finished)
    ((_, told),) = outcome.outputs
    items: list[Any] = [item for item in told if not isinstance(item, Mark)]
    return {tau: list(ins) for tau, ins, _ in items}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select window_end, digits(i) as n from tumble(s, 4) group by window_end", {4: [(4, 123)]}),
        ("select g, digits(i) as n from session(s partition by g, 1) group by g, window_end",
         {1: [("u", 3)], 2: [("u", 312)], 4: [("u", 4)]}),
    ],
)  # fmt: skip
def test_an_aggregate_without_remove_is_of_rows_that_stay(query: str, told: dict[int, Any]) -> None:
    rows = [(1, "u", 3), (2, "u", 2), (2, "u", 1), (4, "u", 4)]
    text = f"{DIGITS}s: {{ts: int; g: string; i: int}} stream by ts; v: relation = {query};"
    found = says_of(text, rows)
    assert {at: rows for at, rows in found.items() if rows} == told


@pytest.mark.parametrize(
    ("text", "message", "help_line"),
    [
        ("init: {n: 0}; add: {n: n + x}; value: n", None, None),
        ("init: {n: 0}; value: n", "has no part `add`", "say what a row that comes makes of it: `add: {total: total + x}`"),
        ("init: {n: 0}; iterate: {n: 1}; value: n", "no part `iterate`", "it is called `add`"),
        ("init: {n: 0}; add: {n: 1}; combine: {n: 1}; value: n", "no part `combine`",
         "its parts are `init`, `add`, `remove`, `value`"),
        ("init: {n: 0}; add: {n: 1}; add: {n: 1}; value: n", "stands twice", None),
        ("init: 0; add: {n: 1}; value: n", "is a record", "write `init: {total: ...}`"),
        ("init: {x: 0}; add: {x: 1}; value: x", "is two things", "rename one of them"),
        ("init: {n: 0}; add: {m: 1}; value: n", "changes `m`", "there are `n`"),
        ("init: {n: 0}; add: {n: n + 0.5}; value: n", "is `int`, this is `float`", None),
        ("init: {n: 0}; add: {n: nullif(x, 0)}; value: n", "may be none", "say what stands for none: `coalesce(..., 0)`"),
        ("init: {n: 0}; add: {n: y}; value: n", "unknown column `y`", "there are `x`, `n`"),
        ("init: {n: x}; add: {n: x}; value: n", "unknown column `x`", None),
        ("init: {n: 0}; add: {n: x}; value: x", "unknown column `x`", "there are `n`"),
        ("init: {n: 0}; add: {n: sum(x)}; value: n", "no aggregate can stand in `add`",
         "aggregate the result of a query after `from`"),
        ("init: {n: 0}; add: {n: x}; value: 'a'", "is `int?`, this is `string`", None),
    ],
)  # fmt: skip
def test_what_an_aggregate_of_the_users_cannot_be(
    text: str, message: str | None, help_line: str | None
) -> None:
    own = f"aggregate own(x: int): int {{{text}}}; s: {{ts: int; i: int}} stream by ts; "
    program = f"{own}v: relation = select own(i) as c from s;"
    if message is None:
        assert compiled(program)
        return
    with pytest.raises(Rejected) as refused:
        compiled(program)
    (found,) = refused.value.diagnostics
    assert message in found.message
    assert found.code in ("cql-aggregate", "sql-unknown-column", "sql-aggregate-place")
    assert help_line is None or found.help == help_line


@pytest.mark.parametrize(
    ("query", "help_line"),
    [
        ("select digits(i) as c from s[range 5]",
         "give it a part `remove: {...}`, or take windows from which no row goes: `tumble(s, 5 minutes)`"),
        ("select ntiles(i) over (partition by g) as c from s", "number the rows, and compute what it is of the numbers"),
        ("select digits(i) over (order by i range 3 preceding) as c from s[rows 2]", None),
    ],
)  # fmt: skip
def test_where_an_aggregate_of_the_users_cannot_stand(query: str, help_line: str | None) -> None:
    with pytest.raises(Rejected) as refused:
        compiled(f"{DIGITS}s: {{ts: int; g: string; i: int}} stream by ts; v: relation = {query};")
    found = refused.value.diagnostics[0]
    assert found.code in ("cql-aggregate", "syntax-over")
    assert help_line is None or found.help == help_line


def test_there_is_one_aggregate_of_a_name() -> None:
    for name in ("digits", "sum"):
        again = DIGITS.replace("digits", name)
        with pytest.raises(Rejected) as refused:
            compiled(f"{DIGITS}{again}s: {{ts: int; i: int}} stream by ts; v: relation = select i from s;")
        assert [found.code for found in refused.value.diagnostics] == ["cql-aggregate"]


def test_aggregates_of_the_users_over_other_rows() -> None:
    own = "aggregate total(x: int): int {init: {t: 0}; add: {t: t + x}; remove: {t: t - x}; value: t}; "
    query = "s: {ts: int; g: string; i: int} stream by ts; v: relation = select i, total(i) over (order by i) as t from s;"
    assert says_of(own + query, [(1, "u", 3), (1, "u", 4), (1, "u", 5)]) == {1: [(3, 3), (4, 7), (5, 12)]}


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_a_mode_is_the_least_of_the_most_frequent_values(backend: str) -> None:
    chance = seeds.chance("modes", backend)
    rows = [(at, chance.choice("ab"), chance.choice([None, *"pqr"])) for at in range(60) for _ in range(2)]
    text = """s: {ts: int; g: string; x: string?} stream by ts;
    v: relation = select g, mode(x) as m, mode() within group (order by g) filter (where x = 'p') as n
    from s[range 7] group by g;"""
    there: dict[str, tuple[Any, Any]] = {}
    told: dict[int, dict[str, tuple[Any, Any]]] = {}
    for row in river.compile(text, lang="cql").run({"s": rows}, backend=backend)["v"].to_pylist():
        if row["op"] == "-":
            del there[row["g"]]
        else:
            there[row["g"]] = row["m"], row["n"]
        told[row["ts"]] = dict(there)
    now: dict[str, tuple[Any, Any]] = {}
    for at in range(60):
        now = told.get(at, now)
        seen = [(g, x) for when, g, x in rows if at - 7 <= when <= at]
        counts = {g: Counter(x for own, x in seen if own == g and x is not None) for g, _ in seen}
        assert now == {
            g: (min((x for x in c if c[x] == max(c.values())), default=None), g if c["p"] else None)
            for g, c in counts.items()
        }
