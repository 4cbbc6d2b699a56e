"""Runs over addresses that Spark reaches, and over tables of its catalog; `file:` stands for all schemes that Hadoop knows."""

from __future__ import annotations

import gzip
import json
from contextlib import nullcontext
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

from pyarrow import csv as arrow_csv
from pyarrow import parquet

import river
from river.cli import main
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

LOG = """sums: table sum[origin: string] of bytes: int;
log: { origin: string, bytes: int } = input;
emit sums[log.origin] <- log.bytes;
"""
VIEWS = """clicks: { ts: int; page: string } stream by ts;
views: relation = select page, count(*) as n from clicks[range 2] group by page;
"""
CLICKS = pa.table({"ts": [1, 2, 2, 5, 9], "page": ["a", "b", "a", "a", "b"]})


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The session of the process, whose catalog has a database in a folder of its own."""
    from backends.spark.session import session

    with session(2, {}) as found:
        folder = tmp_path_factory.mktemp("warehouse").as_uri()
        found.sql(f"create database far location '{folder}'")
        return found


def wanted(program: river.Compiled, inputs: dict[str, Any], output: str) -> list[dict[str, Any]]:
    """The rows of the reference, in order of their columns."""
    rows = program.run(inputs, backend="reference")[output].to_pylist()
    return sorted(rows, key=lambda row: [*row.values()])


def test_inputs_and_outputs_are_addresses_tables_and_files(spark: Any, tmp_path: Path) -> None:
    program = river.compile(VIEWS, lang="cql")
    expected = wanted(program, {"clicks": CLICKS}, "views")
    parquet.write_table(CLICKS.slice(0, 3), tmp_path / "a.parquet")
    parquet.write_table(CLICKS.slice(3), tmp_path / "b.parquet")
    where = tmp_path.as_uri()
    run = lambda inputs, outputs, **more: program.run(inputs, outputs, backend="spark", **more)  # noqa: E731
    found = run({"clicks": f"{where}/*.parquet"}, {})
    assert found["views"].to_pylist() == expected
    assert found.rows == {"views": len(expected)}
    found = run({"clicks": f"{where}/*.parquet"}, {"views": f"{where}/out/"})
    assert found.rows == {"views": len(expected)}
    assert parquet.read_table(tmp_path / "out").sort_by(
        [("ts", "ascending"), ("op", "ascending")]
    ).num_rows == len(expected)
    with pytest.raises(Rejected, match=r"there is something at .* already"):
        run({"clicks": f"{where}/*.parquet"}, {"views": f"{where}/out/"})
    run({"clicks": f"{where}/*.parquet"}, {"views": f"{where}/out/"}, mode="append")
    assert parquet.read_table(tmp_path / "out").num_rows == 2 * len(expected)
    run({"clicks": f"{where}/*.parquet"}, {"views": f"{where}/days/"}, partition_by={"views": ["page"]})
    assert sorted(each.name for each in (tmp_path / "days").glob("page=*")) == ["page=a", "page=b"]
    spark.createDataFrame(CLICKS).write.saveAsTable("far.clicks")
    found = run({"clicks": "table:far.clicks"}, {"views": "table:far.views"})
    rows = [row.asDict() for row in spark.read.table("far.views").sort("ts", "op", "page", "n").collect()]
    assert rows == expected
    found = run({"clicks": "table:far.clicks"}, {"views": str(tmp_path / "here.csv")})
    assert arrow_csv.read_csv(tmp_path / "here.csv").num_rows == found.rows["views"] == len(expected)


def test_what_a_table_has_now_is_seen_by_the_session_of_the_process(spark: Any) -> None:
    """It knew which files there were before; a table may have its columns in another order, and more folders."""
    from pyspark.sql import SparkSession

    users = SparkSession.builder.getOrCreate()
    program = river.compile(VIEWS, lang="cql")
    users.sql(
        "create table far.kept (n bigint, page string, op string, ts bigint) using parquet partitioned by (page)"
    )
    expected = wanted(program, {"clicks": CLICKS}, "views")
    mode: Any
    for mode, times in (("append", 1), ("append", 2), ("overwrite", 1)):
        program.run(
            {"clicks": CLICKS},
            {"views": "table:far.kept"},
            backend="spark",
            mode=mode,
            partition_by={"views": "page"},
        )
        rows = [row.asDict() for row in users.table("far.kept").select("ts", "op", "page", "n").collect()]
        assert sorted(rows, key=lambda row: [*row.values()]) == [
            row for row in expected for _ in range(times)
        ]


def test_files_of_text_at_addresses_are_read_by_rivers_readers(spark: Any, tmp_path: Path) -> None:
    program = river.compile(VIEWS, lang="cql")
    expected = wanted(program, {"clicks": CLICKS}, "views")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "b c.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in CLICKS.slice(2).to_pylist())
    )
    with gzip.open(tmp_path / "lines" / "a.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in CLICKS.slice(0, 2).to_pylist())
    (tmp_path / "cells.csv").write_text('page,more,ts\na,"x\ny",1\nb,,2\na,,2\na,,5\nb,,9\n')
    where = tmp_path.as_uri()
    for address in (f"{where}/lines/*.jsonl*", f"{where}/cells.csv"):
        found = program.run({"clicks": address}, backend="spark")
        assert found["views"].to_pylist() == expected
    (tmp_path / "bad.csv").write_text("ts,page\n1,a\nx,b\n")
    with pytest.raises(Rejected) as refused:
        program.run({"clicks": f"{where}/bad.csv"}, backend="spark")
    (told,) = refused.value.diagnostics
    assert (told.code, told.place) == ("data-type", f"file:{tmp_path}/bad.csv:3:1")


def test_the_command_line_names_addresses(spark: Any, tmp_path: Path) -> None:
    program = tmp_path / "log.szl"
    program.write_text(LOG)
    rows = pa.table({"origin": ["x", "y", "x"], "bytes": [1, 2, 3]})
    parquet.write_table(rows, tmp_path / "log.parquet")
    words = [
        "run",
        str(program),
        "--in",
        f"log={tmp_path.as_uri()}/log.parquet",
        "--backend",
        "spark",
    ]
    out, err = StringIO(), StringIO()
    assert main([*words, "-q"], StringIO(), out, err) == 0, err.getvalue()
    assert out.getvalue().splitlines()[1:] == ["x,4", "y,2"]
    assert not err.getvalue()
    assert main([*words, "--out", f"sums={tmp_path.as_uri()}/sums"], StringIO(), out, err) == 0, (
        err.getvalue()
    )
    assert err.getvalue().startswith("done in ")  # how many rows Spark has read it does not say
    assert parquet.read_table(tmp_path / "sums").num_rows == 2


TOTAL = """river 1; type R = {origin: string, bytes: i64};
operator total(x: R; $t: i64) -> (y: R) { on x(r) { $t = $t *% 3 +% r.bytes; emit y {origin: r.origin, bytes: $t}; } }
var $t: i64 = 0; input log: R; output last: R; (last, $t) <- total(log, $t);
"""


def test_columns_put_rows_in_order(spark: Any, tmp_path: Path) -> None:
    """Also such as the program does not read."""
    rows = [{"origin": "xyz"[n % 3], "bytes": n * 7 % 11, "line": n * 3 % 10} for n in range(10)]
    parquet.write_table(pa.Table.from_pylist(rows).slice(0, 4), tmp_path / "b.parquet")
    parquet.write_table(pa.Table.from_pylist(rows).slice(4), tmp_path / "a.parquet")
    (tmp_path / "p.river").write_text(TOTAL)
    out, err = StringIO(), StringIO()
    given = f"log={tmp_path.as_uri()}/*.parquet"
    words = ["run", str(tmp_path / "p.river"), "--in", given, "--backend", "spark", "-q", "--format", "jsonl"]
    assert main(words, StringIO(), out, err) == 1
    assert "error[spark-order]: the output `last` depends on the order of the rows of `log`" in err.getvalue()
    assert "`--order-by log=COLUMN,...`" in err.getvalue()
    assert main([*words, "--order-by", "log=line"], StringIO(), out, err) == 0, err.getvalue()
    rows.sort(key=lambda row: row["line"])
    expected = wanted_rows(river.compile(TOTAL, "river").run({"log": rows}, backend="reference")["last"])
    assert sorted(repr(json.loads(line)) for line in out.getvalue().splitlines()) == expected
    assert main([*words, "--order-by", "log=lines"], StringIO(), out, err) == 1
    assert "names the column `lines`" in err.getvalue()


def test_rows_go_to_tables_that_have_their_columns(spark: Any) -> None:
    """What does not fit is told before a job is run, with the table and its columns; names differ in case as Spark lets them."""
    program = river.compile(LOG, "sawzall")
    rows = pa.table({"origin": ["x", "y", "x"], "bytes": [1, 2, 3]})
    for name, columns in {
        "less": "origin string",
        "more": "origin string, bytes bigint, z int",
        "narrow": "origin string, bytes int",
        "other": "BYTES bigint, Origin string",
    }.items():
        spark.sql(f"create table far.{name} ({columns}) using parquet")
    spark.sql("create table far.divided (bytes bigint, origin string) using parquet partitioned by (origin)")
    more: dict[str, Any]
    for name, more, told in (
        ("less", {"mode": "append"}, "the table `far.less`: there is no column `bytes`"),
        ("more", {"mode": "append"}, "the table `far.more`: the column `z` is none of the output's"),
        ("narrow", {"mode": "append"}, "the column `bytes` is `int`, and that of the output `bigint`"),
        ("divided", {"mode": "append"}, "the table `far.divided` is divided by `origin`"),
        (
            "other",
            {"mode": "append", "partition_by": {"sums": "origin"}},
            "`far.other` is divided by nothing",
        ),
        ("other", {}, "there is a table `far.other` already"),
        ("x y", {}, "`far.x y` is no name of a table for Spark: [PARSE_SYNTAX_ERROR]"),
        ("a.b.c", {"mode": "overwrite"}, "is no name of a table for Spark: [REQUIRES_SINGLE_PART_NAMESPACE]"),
    ):
        with pytest.raises(Rejected) as refused:
            program.run({"log": rows}, {"sums": f"table:far.{name}"}, backend="spark", **more)
        (found,) = refused.value.diagnostics
        assert found.code == "spark-address"
        assert told in found.message
    for mode in (None, "overwrite"):
        with pytest.raises(Rejected, match="there is no database `fat`") as refused:
            program.run({"log": rows}, {"sums": "table:fat.x"}, backend="spark", mode=mode)
        assert "`far`" in str(refused.value.diagnostics[0].help)
    for _ in range(2):
        program.run({"log": rows}, {"sums": "table:far.other"}, backend="spark", mode="append")
    assert [*map(tuple, spark.sql("select origin, bytes from far.other order by 1").collect())] == [
        ("x", 4), ("x", 4), ("y", 2), ("y", 2),
    ]  # fmt: skip
    for name, code in (("more", None), ("less", "data-column")):
        with nullcontext() if code is None else pytest.raises(Rejected) as refused:
            program.run({"log": f"table:far.{name}"}, backend="spark")
        if refused is not None:
            (found,) = refused.value.diagnostics
            assert (found.code, found.place) == (code, f"table:far.{name}")


def test_names_of_files_tell_the_format_where_the_folder_does_not(spark: Any, tmp_path: Path) -> None:
    program = river.compile(LOG, "sawzall")
    rows = pa.table({"origin": ["x", "y", "x"], "bytes": [1, 2, 3]})
    for folder in ("nameless", "texts", "several", "others", "none", "deep/day=1"):
        (tmp_path / folder).mkdir(parents=True)
    parquet.write_table(rows, tmp_path / "nameless" / "part-0")
    for folder in ("texts", "several"):
        arrow_csv.write_csv(rows, tmp_path / folder / "log.csv")
    (tmp_path / "several" / "more.jsonl").write_text("")
    (tmp_path / "others" / "part-0").write_text("origin,bytes\n")
    with gzip.open(tmp_path / "deep" / "day=1" / "log.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows.to_pylist())
    where = tmp_path.as_uri()
    for place in ("nameless/", "texts/", "t*/", "deep/"):
        found = program.run({"log": f"{where}/{place}"}, backend="spark")
        assert found["sums"].to_pylist() == [{"origin": "x", "bytes": 4}, {"origin": "y", "bytes": 2}]
    for place, code, told in (
        ("several/", "data-format", "have several formats: "),
        ("others/", "data-format", "tells a format, and it is no Parquet"),
        ("none/", "spark-address", "there is no file at"),
        ("nofs://x/y.parquet", "spark-address", "Spark cannot read `nofs://x/y.parquet`"),
    ):
        with pytest.raises(Rejected, match=told) as refused:
            program.run({"log": place if "://" in place else f"{where}/{place}"}, backend="spark")
        assert refused.value.diagnostics[0].code == code
    assert "knows no file system `nofs`" in str(refused.value.diagnostics[0].help)


def test_a_column_may_be_in_some_files_only(spark: Any, tmp_path: Path) -> None:
    """Whichever of them Spark looks into first: in others there is no value, which a program has to allow for."""
    for number, columns in enumerate(({"k": [1]}, {"v": [2.5], "k": [2]}, {"k": [3]})):
        parquet.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    optional = "log: { k: int; v: float? } relation; o: relation = select k, v from log;"
    found = river.compile(optional, "cql").run({"log": tmp_path.as_uri()}, backend="spark")["o"].to_pylist()
    assert {(row["k"], row["v"]) for row in found} == {(1, None), (2, 2.5), (3, None)}
    needed = river.compile(optional.replace("?", ""), "cql")
    with pytest.raises(Rejected, match="field `v`: is null, and `f64` is not optional"):
        needed.run({"log": tmp_path.as_uri()}, backend="spark")


def test_numbers_may_be_wider_in_some_files(spark: Any, tmp_path: Path) -> None:
    """Whichever of them Spark looks into first; what is wider than the program's is told of with its file."""
    columns = ({"k": [1]}, {"v": [7], "k": [2]}, {"v": [1 << 40], "k": [3]})
    for number, (found, kind) in enumerate(zip(columns, (pa.int16(), pa.int32(), pa.int64()), strict=True)):
        table = pa.table({name: pa.array(cells, kind) for name, cells in found.items()})
        parquet.write_table(table, tmp_path / f"a {number}.parquet")
    optional = "log: { k: int; v: int? } relation; o: relation = select k, v from log;"
    rows = river.compile(optional, "cql").run({"log": tmp_path.as_uri()}, backend="spark")["o"].to_pylist()
    assert {(row["k"], row["v"]) for row in rows} == {(1, None), (2, 7), (3, 1 << 40)}
    narrow = "river 1; type R = {k: i32}; input a: R; output o: R; operator all(x: R) -> (y: R) { on x(r) { emit y r; } }"
    with pytest.raises(Rejected) as refused:
        river.compile(f"{narrow} (o) <- all(a);", "river").run({"a": tmp_path.as_uri()}, backend="spark")
    (found,) = refused.value.diagnostics
    assert (found.code, found.place) == ("data-type", f"file://{tmp_path}/a 2.parquet")
    assert found.message == "field `k`: it is `INT64` in this file, and Spark reads it as `int`"


def test_numbers_inside_of_columns_may_be_wider_in_some_files(spark: Any, tmp_path: Path) -> None:
    tables: list[pa.Table] = []
    for number, (whole, real) in enumerate([(pa.int16(), pa.float32()), (pa.int64(), pa.float64())]):
        record = pa.struct([("n", whole), ("each", pa.list_(real))])
        column = pa.array([{"n": number, "each": [number + 0.5]}], record)
        tables.append(pa.table({"r": column, "m": pa.array([[("x", number)]], pa.map_(pa.string(), whole))}))
        parquet.write_table(tables[-1], tmp_path / f"{number}.parquet")
    text = "river 1; type A = {n: i64, each: list<f64>}; type R = {r: A, m: map<string, i64>}; input a: R; output o: R;"
    program = river.compile(
        f"{text} operator all(x: R) -> (y: R) {{ on x(r) {{ emit y r; }} }} (o) <- all(a);", "river"
    )
    found = program.run({"a": tmp_path.as_uri()}, backend="spark")["o"].to_pylist()
    wanted = [program.run({"a": table}, backend="reference")["o"].to_pylist()[0] for table in tables]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_parquet_that_spark_does_not_know_is_read(spark: Any, tmp_path: Path) -> None:
    """Times in nanoseconds, as pandas writes them, durations, and numbers without sign, which come back as they went."""
    columns = {"at": "time", "took": "duration", "n": "i64", "u": "u64"}
    kinds = (pa.timestamp("ns"), pa.duration("us"), pa.uint64(), pa.uint64())
    tables = {n: pa.table({n: pa.array([5000, 7000], k)}) for n, k in zip(columns, kinds, strict=True)}
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        parquet.write_table(table, tmp_path / name / "a.parquet")
        text = f"river 1; type R = {{{name}: {columns[name]}}}; input a: R; output o: R;"
        text += "operator all(x: R) -> (y: R) { on x(r) { emit y r; } } (o) <- all(a);"
        program = river.compile(text, "river")
        found = program.run({"a": (tmp_path / name).as_uri()}, backend="spark")["o"].to_pylist()
        assert found == program.run({"a": table}, backend="reference")["o"].to_pylist()


def test_what_is_added_has_the_columns_of_what_is_there(spark: Any, tmp_path: Path) -> None:
    where, rows = tmp_path.as_uri(), pa.table({"origin": ["x", "y", "x"], "bytes": [1, 2, 3]})
    for name, table in (
        ("less", rows.select(["origin"])),
        ("narrow", rows.cast(pa.schema([("origin", pa.string()), ("bytes", pa.int32())]))),
        ("divided/origin=x", rows.select(["bytes"])),
    ):
        (tmp_path / name).mkdir(parents=True)
        parquet.write_table(table, tmp_path / name / "part.parquet")
    (tmp_path / "empty").mkdir()
    program, by = river.compile(LOG, "sawzall"), {"sums": "origin"}
    more: dict[str, Any]
    for name, more, told in (
        ("less", {}, "there is no column `bytes`"),
        ("narrow", {}, "the column `bytes` is `int`, and that of the output `bigint`"),
        ("narrow", {"partition_by": by}, "are divided by nothing, and its rows by `origin`"),
        ("divided", {}, "are divided by `origin`, and its rows by nothing"),
    ):
        with pytest.raises(Rejected) as refused:
            program.run({"log": rows}, {"sums": f"{where}/{name}"}, backend="spark", mode="append", **more)
        (found,) = refused.value.diagnostics
        assert found.code == "spark-address"
        assert told in found.message
    for name, more in (("empty", {}), ("empty", {}), ("divided", {"partition_by": by})):
        program.run({"log": rows}, {"sums": f"{where}/{name}"}, backend="spark", mode="append", **more)
    assert spark.read.parquet(f"{where}/empty").count() == 4
    assert spark.read.parquet(f"{where}/divided").count() == 5


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_names_of_folders_say_columns(kind: str, spark: Any, tmp_path: Path) -> None:
    """With the types of the program, whatever Spark would guess."""
    text = """river 1; type R = {day: string, k: i64?, at: time, n: i64};
operator same(x: R) -> (y: R) { on x(r) { emit y r; } } input a: R; output o: R; (o) <- same(a);"""
    program = river.compile(text, "river")
    days = ["01", "1", "a/b=c %41"]
    rows = [
        {"day": days[n % 3], "k": n % 4 or None, "at": f"2024-01-0{n % 2 + 1}T00:00:00Z", "n": n}
        for n in range(24)
    ]
    place = tmp_path / f"a b.{kind}"
    program.run({"a": rows}, {"o": f"{place}/"}, partition_by={"o": ["day", "k", "at"]})
    expected = wanted_rows(program.run({"a": rows}, backend="reference")["o"])
    for where in (f"file://{place}/", f"file://{place}/*/k=*/at=*/*.{kind}"):
        found = program.run({"a": where}, {"o": None}, backend="spark")
        assert wanted_rows(found["o"]) == expected
    (place / "day=2" / "k=x" / "at=2024-01-01").mkdir(parents=True)
    for file in (place / "day=1").rglob("part-*"):
        (place / "day=2" / "k=x" / "at=2024-01-01" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(Rejected, match="'x' is not a whole number") as refused:
        program.run({"a": f"file://{place}/"}, backend="spark")
    assert refused.value.diagnostics[0].code == "data-partition"


def wanted_rows(table: pa.Table) -> list[str]:
    """The rows in an order."""
    return sorted(map(repr, table.to_pylist()))


def test_what_cannot_be_done_at_addresses_is_refused(spark: Any, tmp_path: Path) -> None:
    program = river.compile(VIEWS, lang="cql")
    where = tmp_path.as_uri()
    parquet.write_table(CLICKS, tmp_path / "clicks.parquet")
    (tmp_path / "there").mkdir()
    given = {"clicks": f"{where}/clicks.parquet"}
    more: dict[str, Any]
    for inputs, outputs, more, told in (
        ({"clicks": f"{where}/none.parquet"}, {}, {}, "Spark cannot read"),
        ({"clicks": "table:far.nothing"}, {}, {}, "Spark cannot read"),
        (given, {"views": f"{where}/views.jsonl"}, {}, "is jsonl"),
        (given, {"views": f"{where}/there"}, {}, "there is something at .* already"),
        (given, {"views": f"{where}/views/"}, {"partition_by": {"views": ["nothing"]}}, "nothing"),
        (given, {}, {"lateness": 5}, "`--lateness` is not for"),
        (given, {"views": "table:far.ignored"}, {"mode": "ignore"}, "no mode `ignore`"),
        (given, {}, {"on_error": "skip"}, "`--on-error skip` is not for"),
        (given, {}, {"checkpoint": str(tmp_path / "ck")}, "a run that goes on"),
    ):
        with pytest.raises(Rejected, match=told) as refused:
            program.run(inputs, outputs, backend="spark", **more)
        codes = {"checkpoint": "data-address", "partition_by": "data-partition"}
        wanted_code = next((codes[each] for each in more if each in codes), "spark-address")
        assert refused.value.diagnostics[0].code == wanted_code
