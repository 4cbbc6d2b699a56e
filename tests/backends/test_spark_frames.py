"""Programs over DataFrames: plans on a stand-in for Spark, against a run of all rows in their order."""

from __future__ import annotations

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
from backends.spark import door, kernels
from river.diagnostics import Rejected
from river.io.schema import arrow
from tests.backends.spark_programs import HEAD, PLAIN, ROWS, chain, some

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.driver import Compiled

# ------------------------------------------------------------------------------------------------------- a stand-in


class Frame:
    """A DataFrame of PySpark's, as far as plans of one input use it: partitions of Arrow rows."""

    def __init__(self, parts: list[pa.Table], random: Random) -> None:
        self.parts = parts
        self.random = random

    @property
    def columns(self) -> list[str]:
        return self.parts[0].column_names

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].schema

    def _each(self, change: Any) -> Frame:
        return Frame([change(part) for part in self.parts], self.random)

    def select(self, *names: str) -> Frame:
        return self._each(lambda part: part.select([name.strip("`") for name in names]))

    def toDF(self, *names: str) -> Frame:  # noqa: N802 - the name is pyspark's
        return self._each(lambda part: part.rename_columns(list(names)))

    def where(self, condition: str) -> Frame:
        name, number = condition.split(" = ")
        return self._each(lambda part: part.filter(arrow("compute").equal(part.column(name), int(number))))

    def repartition(self, count: int) -> Frame:
        return dealt(pa.concat_tables(self.parts), count, self.random)

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


def dealt(table: pa.Table, count: int, random: Random) -> Frame:
    """The rows of a table in so many partitions, in any order."""
    rows = list(range(table.num_rows))
    random.shuffle(rows)
    return Frame([table.take(pa.array(rows[n::count], pa.int64())) for n in range(count)], random)


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas stay Arrow's."""
    same = SimpleNamespace(to_arrow_schema=lambda schema: schema, from_arrow_schema=lambda schema: schema)
    monkeypatch.setattr(door, "_types", lambda: same)


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


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(uses=some(PLAIN, 4), rows=st.lists(ROWS, max_size=20))
def test_an_output_holds_what_rows_in_the_order_of_their_columns_give(uses, rows):
    compiled = river.compile("\n".join([HEAD, *chain("a", "R", "ao", uses, PLAIN)]), "river")
    columns = {name: [row[at] for row in rows] for at, name in enumerate("ksv")}
    table = pa.table(columns, pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.int64())]))
    agree(compiled, table, table.sort_by([(name, "ascending") for name in "ksv"]), order_by={"a": ["k"]})


TABLES = """x: {s: string, k: int, f: float} = input;
n: table sum of int;
emit n <- 1;
by: table sum[s: string][k: int] of {n: int, f: float};
emit by[x.s][x.k] <- {1, x.f};
best: table top(2) of string weight w: int;
emit best <- x.s weight x.k;
big: table collection of int;
if (x.k > 2) emit big <- x.k;
"""


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["native", "evaluated"])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_tables_are_put_together_of_parts(monkeypatch, count, least):
    monkeypatch.setattr(kernels, "LEAST", least)
    compiled = river.compile(TABLES, "sawzall")
    parts = [
        name for name in ("n", "by", "best", "big") if kernels.parts_of(compiled.tuned(None).graph, name)
    ]
    assert parts == ["n", "by", "best"]
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


def test_an_order_that_is_missing_is_asked_for() -> None:
    text = HEAD + "input a: R; output o: R; var $t: i64 = 0; (o, $t) <- total(a, $t);"
    table = pa.table({"k": [1], "s": ["a"], "v": [1]})
    with pytest.raises(Rejected) as refused:
        river.compile(text, "river").on_spark({"a": dealt(table, 1, Random(0))})
    (found,) = refused.value.diagnostics
    assert found.code == "spark-order"
    assert found.message == "the output `o` depends on the order of the rows of `a`, and a DataFrame has none"
