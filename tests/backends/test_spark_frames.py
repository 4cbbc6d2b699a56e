"""Programs over DataFrames: plans on a stand-in for Spark, against a run of all rows in their order."""

from __future__ import annotations

import re
from functools import cache
from math import inf, nan
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

import river
from backends.spark import BACKEND as SPARK
from backends.spark import door, kernels, sql
from backends.spark.channels import ordered
from backends.spark.keys import division, without_others
from backends.spark.relations import Selected, relation
from river.classes import frozen
from river.diagnostics import Rejected
from river.lang import typed
from river.lang import types as t
from river.lang.trees import reached
from river.testing.seeds import chance
from tests.backends.spark_programs import ACCUMULATED, HEAD, PLAIN, ROWS, chain, expressions, extremes, some

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.driver import Compiled

ROOT = Path(__file__).resolve().parents[2]

# ------------------------------------------------------------------------------------------------------- a stand-in


SPARKS = {"int64": "bigint", "double": "double", "string": "string", "bool": "boolean", "int32": "int"}
SPARKS |= {"timestamp[us, tz=UTC]": "timestamp", "decimal128(9, 2)": "decimal(9,2)"}
"""Spark's names of types."""


@cache
def _database() -> Any:
    """DuckDB with the functions of Spark's that it does not have; where both have one, they agree in what plans use."""
    found = pytest.importorskip("duckdb").connect()
    two, whole = ["BIGINT", "INTEGER"], "BIGINT"
    found.create_function("shiftleft", lambda a, n: _signed(a << n), two, whole)
    found.create_function("shiftright", lambda a, n: a >> n, two, whole)
    found.create_function("shiftrightunsigned", lambda a, n: (a & 2**64 - 1) >> n, two, whole)
    found.execute("create macro whole_sum(n) as cast(sum(n) as bigint)")
    found.execute("create macro spark_partition_id() as 0")
    found.execute("create macro raise_error(told) as error(told)")
    found.execute("create macro is_valid_utf8(told) as if(told is null, null, true)")
    found.execute("create macro timestamp_micros(n) as cast(make_timestamp(n) as timestamptz)")
    found.execute("create macro unix_micros(told) as epoch_us(told)")
    found.execute("set timezone = 'UTC'")
    return found


def _signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def asked(text: str, table: pa.Table) -> pa.Table:
    """What a query in Spark's words gives of a table `t`."""
    spelled = re.sub(r"X'([0-9a-f]*)'", r"decode(unhex('\1'))", text)
    spelled = re.sub(r"'[^']*'|`", lambda found: '"' if found[0] == "`" else found[0], spelled)
    spelled = spelled.replace("sum(", "whole_sum(")
    spelled = re.sub(r"\((\S+) \^ (\S+)\)", r"xor(\1, \2)", spelled)
    with _database().cursor() as cursor:
        cursor.register("t", table)
        return cursor.sql(spelled).to_arrow_table()


class Frame:
    """A DataFrame of PySpark's, as far as plans of one input use it: partitions of Arrow rows."""

    isStreaming = False  # noqa: N815 - the name is pyspark's
    sparkSession = SimpleNamespace(conf={})  # noqa: N815 - the name is pyspark's

    def __init__(self, parts: list[pa.Table], random: Random) -> None:
        self.parts = parts
        self.random = random

    @property
    def columns(self) -> list[str]:
        return self.parts[0].column_names

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].schema

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(field.name, SPARKS.get(str(field.type), str(field.type))) for field in self.schema]

    def _each(self, change: Any) -> Frame:
        return Frame([change(part) for part in self.parts], self.random)

    def select(self, *names: str) -> Frame:
        return self._each(lambda part: part.select([name.strip("`") for name in names]))

    def selectExpr(self, *columns: str) -> Frame:  # noqa: N802 - the name is pyspark's
        return self._each(lambda part: asked(f"select {', '.join(columns)} from t", part))

    def toDF(self, *names: str) -> Frame:  # noqa: N802 - the name is pyspark's
        return self._each(lambda part: part.rename_columns(list(names)))

    def where(self, condition: str) -> Frame:
        return self._each(lambda part: asked(f"select * from t where {condition}", part))

    def groupBy(self, *names: str) -> Grouped:  # noqa: N802 - the name is pyspark's
        return Grouped(self, names)

    def repartition(self, *by: int | str) -> Frame:
        """In so many partitions, or in some in which equal values of columns stand together."""
        whole = pa.concat_tables(self.parts)
        match by:
            case (int(count),):
                return dealt(whole, count, self.random)
            case _:
                keys = [repr([row[str(name).strip("`")] for name in by]) for row in whole.to_pylist()]
                home = {key: self.random.randrange(3) for key in keys}
                parts = [pa.array([home[key] == part for key in keys], pa.bool_()) for part in range(3)]
                return Frame([whole.filter(part) for part in parts], self.random)

    def crossJoin(self, other: Frame) -> Frame:  # noqa: N802 - the name is pyspark's
        ((column,),) = (
            [(name, values) for name, values in zip(p.column_names, p.columns, strict=True)]
            for p in other.parts
            if p.num_rows
        )
        return self._each(
            lambda part: part.append_column(
                column[0], pa.array(column[1].to_pylist() * part.num_rows, column[1].type)
            )
        )

    def hint(self, _: str) -> Frame:
        return self

    def sortWithinPartitions(self, *names: str) -> Frame:  # noqa: N802 - the name is pyspark's
        keys = [(name.strip("`"), "ascending") for name in names]
        return self._each(lambda part: part.sort_by(keys))

    def mapInArrow(self, function: Any, schema: Any) -> Frame:  # noqa: N802 - the name is pyspark's
        if isinstance(schema, str):
            schema = pa.schema([("variable", pa.int32()), ("value", pa.binary())])
        size = self.random.randint(1, 9)
        return self._each(
            lambda part: pa.Table.from_batches(list(function(iter(part.to_batches(size)))), schema)
        )

    def rows(self) -> list[dict[str, Any]]:
        return [row for part in self.parts for row in part.to_pylist()]


@frozen
class Grouped:
    """Rows of equal keys, which stand in any partition."""

    frame: Frame
    keys: tuple[str, ...]

    def agg(self, *columns: str) -> Frame:
        counted = [re.sub(r"^(.*) as (\w+)$", r"cast(\1 as bigint) as \2", column) for column in columns]
        places = ", ".join(str(n + 1) for n in range(len(self.keys)))
        group = f" group by {places}" if places else ""
        whole = pa.concat_tables(self.frame.parts)
        found = asked(f"select {', '.join([*self.keys, *counted])} from t{group}", whole)
        return dealt(found, 2, self.frame.random)


def dealt(table: pa.Table, count: int, random: Random) -> Frame:
    """The rows of a table in so many partitions, in any order."""
    rows = list(range(table.num_rows))
    random.shuffle(rows)
    return Frame([table.take(pa.array(rows[n::count], pa.int64())) for n in range(count)], random)


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas stay Arrow's, and expressions texts."""
    same = SimpleNamespace(to_arrow_schema=lambda schema: schema, from_arrow_schema=lambda schema: schema)
    monkeypatch.setattr(door, "_types", lambda: same)
    monkeypatch.setattr(door, "_expression", lambda _, text: text)


def canonical(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def agree(compiled: Compiled, table: pa.Table, in_order: pa.Table, **more: Any) -> None:
    """The frames of all outputs hold what a run over the rows in order gives."""
    (name,) = compiled.graph.inputs
    found = compiled.on_spark({name: dealt(table, 3, Random(table.num_rows))}, **more)
    expected = compiled.run({name: in_order}, backend="reference")
    assert {out: canonical(frame.rows()) for out, frame in found.items()} == {
        out: canonical(expected[out].to_pylist()) for out in expected.tables
    }


# ------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(uses=some(PLAIN, 4), rows=st.lists(ROWS, max_size=20))
def test_an_output_holds_what_rows_in_the_order_of_their_columns_give(uses, rows):
    compiled = river.compile("\n".join([HEAD, *chain("a", "R", "ao", uses, PLAIN)]), "river")
    columns = {name: [row[at] for row in rows] for at, name in enumerate("ksv")}
    table = pa.table(columns, pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.int64())]))
    agree(compiled, table, table.sort_by([(name, "ascending") for name in "ksv"]), order_by={"a": ["k"]})


TABLES = (
    ACCUMULATED
    + """big: table collection of int;
if (x.k > 2) emit big <- x.k;
"""
)


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("least", [0, 1 << 20], ids=["native", "evaluated"])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_tables_are_put_together_of_parts(monkeypatch, count, least):
    monkeypatch.setattr(kernels, "LEAST", least)
    compiled = river.compile(TABLES, "sawzall")
    graph = compiled.tuned(None).graph
    assert [name for name in compiled.outputs if not kernels.parts_of(graph, name)] == ["big"]
    rows = [{"s": "ab"[i % 2] * (i % 3), "k": i % 5, "f": 0.1 * i} for i in range(count)]
    schema = pa.schema([("s", pa.string()), ("k", pa.int64()), ("f", pa.float64())])
    table = pa.Table.from_pylist(rows, schema)
    agree(compiled, table, table)


NO_SIGN = """river 1;
type R = {k: i64, v: u64, w: list<u64>};
operator keep(x: R) -> (y: R) { on x(r) { if r.k != 1 { emit y r; } } }
input a: R; output o: R; (o) <- keep(a);"""


def test_numbers_without_sign_are_decimals():
    compiled = river.compile(NO_SIGN, "river")
    wide = pa.decimal128(20, 0)
    lists = pa.array([[2**63], [], [1]], pa.list_(wide))
    table = pa.table({"k": [0, 1, 2], "v": pa.array([2**64 - 1, 1, 0], wide), "w": lists})
    found = compiled.on_spark({"a": dealt(table, 2, Random(1))})["o"]
    assert found.schema.field("v").type == wide
    again = compiled.on_spark({"a": found.select("k", "v", "w")})["o"]
    assert sorted((int(r["k"]), int(r["v"]), list(map(int, r["w"]))) for r in again.rows()) == [
        (0, 2**64 - 1, [2**63]),
        (2, 0, [1]),
    ]


@pytest.mark.parametrize(
    ("text", "order_by"),
    [
        ("t: {k: int; v: int} relation; output o: relation = select k, count(*) as n from t group by k;", {}),
        ("t: {k: int; v: int} relation; output o: relation = select k, v from t where v > 3;", {}),
        (
            "t: {k: int; v: int} stream by k * 100 + v; output o: stream = select k, v from t where v > 3;",
            {"t": ["k", "v"]},
        ),
    ],
    ids=["grouped", "selected", "computed"],
)
def test_inputs_without_a_column_of_stamps(text: str, order_by: Mapping[str, list[str]]) -> None:
    table = pa.table({"k": [i // 10 for i in range(30)], "v": [i % 10 for i in range(30)]})
    agree(river.compile(text, "cql"), table, table, order_by=order_by)


# ------------------------------------------------------------------------------------------------- relations of Spark's


def test_what_spark_computes_itself_means_the_same_there():
    """Every operation that has a form in Spark's SQL, on values where others would be wrong; also in `test_spark`."""
    compiled = river.compile(expressions(), "river")
    operator = compiled.graph.instances[0].operator
    assert isinstance(operator, typed.Operator)
    used = {
        (n.operation, sql.kind_of(n.args[0].type))
        for n in reached(operator.items[0].body, operator.fns)
        if isinstance(n, typed.Apply)
    }
    assert {(name, type_) for name, types in sql._WRITTEN for type_ in types} - {("same", t.BOOL)} <= used
    assert isinstance(relation(compiled.graph, "o"), Selected)
    agree(compiled, extremes(), extremes())


def how(text: str, lang: str) -> dict[str, str]:
    """By output, of which kind it is for Spark."""
    graph = river.compile(text, lang).tuned(SPARK.passes).graph
    outputs = (*graph.outputs, *(view.name for view in graph.views))
    return {name: type(relation(graph, name)).__name__ for name in outputs}


def test_which_outputs_spark_computes_itself():
    tables = how(TABLES, "sawzall")
    assert {name: kind for name, kind in tables.items() if kind != "NoneType"} == {
        "n": "Summed",
        "big": "Selected",
    }
    assert {"by", "best"} <= set(tables)  # floats are summed exactly, and the best are no sum
    assert how((ROOT / "examples/log_analyzer/query_log.szl").read_text(), "sawzall") == {
        "queryOrigins": "Summed",
        "queryTargets": "Summed",
    }
    stream = (
        "t: {ts: int; k: int; v: int; f: float; s: string; at: time; cost: decimal(9, 2); took: duration; "
        "big: decimal(38, 0)} "
        "stream by ts; "
    )
    selected = {
        "output o: stream = select k, f + 1.0 as g from t where v > 3 and s = 'a';": "Selected",
        "output o: relation = select k, s from t where v > 3;": "Selected",
        "output o: stream = select k, v + 1 as w from t;": "NoneType",  # it may trap
        "output o: relation = select k, s from t[range 3];": "NoneType",
        "output o: stream = select at, cost from t where cost > 1.5 and at >= timestamp '2024-01-01 00:00:00';": "Selected",
        "output o: stream = select at from t where cost < big;": "NoneType",  # not all digits of both fit
        "output o: stream = select took from t where v > 3;": "NoneType",  # of a type that Spark does not have
        "output o: stream = istream(select distinct k from t);": "NoneType",
    }
    assert {text: how(stream + text, "cql")["o"] for text in selected} == selected


READ_BY = """river 1;
type D = {tau: i64, ins: list<{v: i64}>, del: list<{v: i64}>};
fn twice(n: i64) -> i64 { return n +% n; }
operator gather(x: {ts: i64, v: i64} by ts; $now: i64?, $ins: list<{v: i64}>) -> (d: D by tau) {
  on x(r) {
    if $now is now { if now < r.ts { emit d {tau: now, ins: $ins, del: []}; $ins = []; $now = none; } }
    $now = r.ts;
    push($ins, {v: r.v});
  }
  on mark(k) {
    if $now is now { if now < k or k == 9223372036854775807 { emit d {tau: now, ins: $ins, del: []}; $ins = []; $now = none; } }
    mark d k;
  }
}
operator use(d: D by tau) -> (o: {ts: i64, v: i64}) { on d(x) { BODY } }
input a: {ts: i64, v: i64} by ts; output o: {ts: i64, v: i64};
var $now: i64? = none; var $ins: list<{v: i64}> = [];
(d, $now, $ins) <- gather(a, $now, $ins);
(o) <- use(d);
"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("for r in x.ins { if r.v > 1 { emit o {ts: x.tau, v: twice(r.v)}; } }", "Selected"),
        ("if x.tau > 1 { for r in x.ins { let w = twice(r.v); emit o {ts: w, v: w}; } }", "Selected"),
        ("emit o {ts: x.tau, v: 1};", "NoneType"),  # once for many rows
        ("emit o {ts: x.tau, v: len(x.ins)};", "NoneType"),
        ("for r in x.ins { for q in x.ins { emit o {ts: r.v, v: q.v}; } }", "NoneType"),
        ("if len(x.ins) > 0 { emit o {ts: x.tau, v: 1}; }", "NoneType"),
        (
            "for r in x.ins { emit o {ts: x.tau, v: r.v}; } for r in x.ins { emit o {ts: 0, v: r.v}; }",
            "NoneType",
        ),
    ],
)
def test_rows_of_an_instant_are_read_one_by_one(body: str, kind: str) -> None:
    text = READ_BY.replace("BODY", body)
    assert how(text, "river") == {"o": kind}
    table = pa.table({"ts": [1, 1, 2, 4, 4], "v": [0, 3, 3, 5, 7]})
    agree(river.compile(text, "river"), table, table)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("$now = r.ts;", "$now = r.ts +% 1;"),
        ("push($ins, {v: r.v});", "if r.v > 1 { push($ins, {v: r.v}); }"),
        ("push($ins, {v: r.v});", "push($ins, {v: r.v}); push($ins, {v: r.v});"),
    ],
)
def test_what_does_more_than_to_gather_rows_is_not_taken_for_it(before: str, after: str) -> None:
    text = READ_BY.replace("BODY", "for r in x.ins { emit o {ts: x.tau, v: r.v}; }")
    assert before in text
    assert (how(text, "river"), how(text.replace(before, after, 1), "river")) == (
        {"o": "Selected"},
        {"o": "NoneType"},
    )


def test_a_row_that_is_wrong_ends_the_job_of_outputs_that_read_what_is_wrong() -> None:
    """The row would be left out by its `k`."""
    table = pa.table({"s": ["a", None], "k": pa.array([5, 1], pa.int32())})
    counted = "x: {s: string, k: int} = input; n: table sum of int; emit n <- 1;"
    kept = "x: {s: string, k: int} = input; t: table collection of string; if (x.k > 3) emit t <- x.s;"
    count, keep = (river.compile(text, "sawzall") for text in (counted, kept))
    assert count.on_spark({"x": dealt(table, 1, Random(0))})["n"].rows() == [{"value": 2}]
    assert keep.on_spark({"x": dealt(table.slice(0, 1), 1, Random(0))})["t"].rows() == [{"value": "a"}]
    with pytest.raises(Exception, match="field `s`: is null, and `string` is not optional"):
        keep.on_spark({"x": dealt(table, 1, Random(0))})["t"].rows()


# --------------------------------------------------------------------------------------------------------------- keys

WINDOWS = [
    "range 3",
    "range 4 slide 2",
    "now",
    "partition by k rows 2",
    "unbounded",
    "partition by k, s rows 1",
]
QUERIES = [
    "relation = select k, count(*) as n, sum(v) as w from t[{}] group by k;",
    "relation = select k, s, max(v) as m from t[{}] where v > 0 group by k, s having count(*) < 3;",
    "stream = istream(select k, count(*) as n from t[{}] group by k);",
    "stream = rstream(select k, avg(v) as n from t[{}] group by k);",
    "relation = select distinct k, s from t[{}];",
]


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(QUERIES),
    st.lists(st.tuples(st.integers(0, 14), *[st.integers(0, 2)] * 3), max_size=25),
)
def test_windows_by_key_are_run_key_by_key(window, query, rows):
    """Also what leaves a window when rows with other keys show that time goes on."""
    compiled = river.compile(
        f"t: {{ts: int; k: int; s: string; v: int}} stream by ts; output o: {query.format(window)}", "cql"
    )
    table = pa.table(
        {
            "ts": [r[0] for r in rows],
            "k": [r[1] for r in rows],
            "s": ["ab"[r[2] % 2] for r in rows],
            "v": [r[3] for r in rows],
        },
        pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("v", pa.int64())]),
    )
    agree(compiled, table, table.sort_by([(name, "ascending") for name in table.column_names]))


def divided(compiled: Compiled) -> dict[str, Any]:
    """By output, the columns by which the input is divided for it."""
    graph = compiled.tuned(SPARK.passes).graph
    alone = {name: without_others(graph, name) for name in graph.outputs}
    found = {name: None if each is None else division(each, name) for name, each in alone.items()}
    return {name: None if each is None else (*each.columns.values(),)[0] for name, each in found.items()}


@pytest.mark.slow
def test_by_which_columns_an_input_is_divided():
    assert divided(river.load(str(ROOT / "examples/linear_road/tolls.cql"))) == {
        "congested": ("xway", "dir", "seg"),
        "tolls": None,  # a join
    }
    stream = "t: {ts: int; k: int; f: float; v: int} stream by ts; output o: "
    queries = {
        "relation = select k, count(*) as n from t[range 3] group by k;": ("k",),
        "relation = select f, count(*) as n from t[range 3] group by f;": None,  # Spark tells one zero from the other
        "relation = select count(*) as n from t[range 3];": None,
        "relation = select k + 1 as j, count(*) as n from t[range 3] group by k + 1;": None,
        "stream = rstream(select k, count(*) as n from t[range 3] group by k);": None,  # told at instants of others
    }
    assert {query: divided(river.compile(stream + query, "cql"))["o"] for query in queries} == queries
    timed = "t: {ts: time; k: int} stream by ts; output o: relation = select k, count(*) as n from t[range 3 seconds] group by k;"
    assert divided(river.compile(timed, "cql")) == {"o": ("k",)}
    two = "a: {ts: int; k: int; v: int} stream by ts; b: {ts: int; w: int; j: int} stream by ts; output o: "
    joins = {
        "relation = select a.k, a.v, b.w from a[range 3], b[now] where a.k = b.j;": "a.k, b.j",
        "relation = select a.v, b.w from a[range 3], b[now] where a.k = b.j;": "None",  # equal rows of other keys are one
        "relation = select j, sum(v) as s from a[range 3], b[now] where a.k = b.j and a.v = b.w group by j;": "a.k, b.j",
        "relation = select v, count(*) as n from a[range 3], b[now] where a.k = b.j group by v;": "None",
        "relation = select x.k, x.v, y.v as w from a[range 3] as x, a[now] as y where x.k = y.k;": "k",
        "relation = select x.k, x.v, y.v as w from a[range 3] as x, a[now] as y where x.k = y.v;": "None",
        "relation = select a.k, a.v, b.w from a[range 3], b[rows 2] where a.k = b.j;": "None",
    }
    graphs = {query: river.compile(two + query, "cql").tuned(SPARK.passes).graph for query in joins}
    alone = {query: without_others(graph, "o") for query, graph in graphs.items()}
    assert {query: str(each and division(each, "o")) for query, each in alone.items()} == joins
    chains = {
        ("keep", "tally", "pairs"): ("k",),
        ("pairs", "pairs"): ("s",),  # of which the first sends other values as `k`
        ("tally", "swap", "pairs"): None,
        ("tally", "total"): None,
        ("pairs", "window"): None,
        ("keep",): None,
    }
    texts = {uses: "\n".join([HEAD, *chain("a", "R", "ao", [*uses], PLAIN)]) for uses in chains}
    assert {uses: divided(river.compile(text, "river"))["ao"] for uses, text in texts.items()} == chains


# -------------------------------------------------------------------------------------------------------- bad input

LAST = """x: {s: string, k: int} = input;
t: table collection of string;
emit t <- x.s;
"""
PLAIN_TABLE = pa.table({"s": ["a"], "k": [1]})


@pytest.mark.parametrize(
    ("inputs", "order_by", "code", "said"),
    [
        ({}, {}, "missing-input", "input `x` has no data"),
        ({"y": PLAIN_TABLE}, {}, "unknown-input", "the program has no input `y`"),
        ({"x": PLAIN_TABLE.select(["s"])}, {}, "data-column", "there is no column `k`"),
        ({"x": pa.table({"s": [1], "k": [1]})}, {}, "data-type", "field `s`"),
        ({"x": PLAIN_TABLE}, {"y": ["k"]}, "spark-order", "`order_by` names `y`, which is no input"),
        ({"x": PLAIN_TABLE}, {"x": ["ts"]}, "spark-order", "`order_by` names the column `ts`"),
        ({"x": None}, {}, "data-format", "a NoneType is no DataFrame of Spark"),
    ],
)
def test_what_does_not_fit_is_told_before_any_job(
    inputs: Mapping[str, Any], order_by: Mapping[str, list[str]], code: str, said: str
) -> None:
    frames = {n: t if t is None else dealt(t, 1, Random(0)) for n, t in inputs.items()}
    with pytest.raises(Rejected) as refused:
        river.compile(LAST, "sawzall").on_spark(frames, order_by=order_by)
    found = refused.value.diagnostics[0]
    assert (found.code, said in found.message) == (code, True), found.message


def test_a_frame_of_an_input_that_no_query_uses_is_not_looked_at() -> None:
    """As data are not read that are given for it to a run; nor what is said of its order."""
    text = "s: {ts: int; a: int} stream by ts; t: {ts: int; b: int} stream by ts; v: stream = select istream a from s[now];"
    program = river.compile(text, "cql")
    given = {"s": dealt(pa.table({"ts": [1], "a": [2]}), 1, Random(0)), "t": None}
    found = program.on_spark(given, order_by={"t": ["b"]})
    assert found["v"].rows() == [{"ts": 1, "a": 2}]
    rows = {"s": [(1, 2)], "t": "there/is/no/such/folder/"}
    assert program.run(rows, order_by={"t": ["b"]}, backend="reference")["v"].num_rows == 1


def test_an_order_that_is_missing_is_asked_for() -> None:
    text = HEAD + "input a: R; output o: R; var $t: i64 = 0; (o, $t) <- total(a, $t);"
    table = pa.table({"k": [1], "s": ["a"], "v": [1]})
    with pytest.raises(Rejected) as refused:
        river.compile(text, "river").on_spark({"a": dealt(table, 1, Random(0))})
    (found,) = refused.value.diagnostics
    assert found.code == "spark-order"
    assert found.message == "the output `o` depends on the order of the rows of `a`, and a DataFrame has none"


def test_arrow_puts_rows_in_the_order_of_spark() -> None:
    """Nothing comes first, what is no number last, texts by bytes, zeros by signs; the first column before the second."""
    random = chance("order", "arrow")
    texts = [None, "", "B", "a", "é", "\uffff", "\U0001d11e"]  # in order
    numbers = [None, -inf, -1.5, -0.0, 0.0, 5e-324, inf, nan]
    truth = [None, False, True]
    rows = [(t, f, b) for t in range(7) for f in range(8) for b in range(3)]
    mixed = random.sample(rows, len(rows))
    table = pa.table(
        {
            "b": pa.array([truth[b] for _, _, b in mixed], pa.bool_()),
            "f": pa.array([numbers[f] for _, f, _ in mixed], pa.float64()),
            "t": pa.array([texts[t] for t, _, _ in mixed], pa.string()),
            "n": [rows.index(row) for row in mixed],
        }
    )
    assert ordered(table, ["t", "f", "b"]).column("n").to_pylist() == [*range(len(rows))]
