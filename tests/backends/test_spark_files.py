"""Runs over files whose parts executors read: their tasks on a stand-in for Spark, against a run in this process."""

from __future__ import annotations

import gzip
import json
from contextlib import nullcontext
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

import river
from backends.spark import BACKEND as SPARK
from backends.spark import direct, files, parts
from backends.spark import run as runs
from backends.spark.plan import plan
from backends.spark.ways import ByKey, InOneTask, InParts, RowByRow, told, way
from river.backend import Options
from river.classes import evolve
from river.diagnostics import Rejected
from river.platform import here
from river.testing.seeds import chance
from tests.backends.spark_programs import HEAD
from tests.backends.spark_stand_in import Session

if TYPE_CHECKING:
    from river.driver import Compiled

TABLES = """x: {s: string, k: int} = input;
n: table sum[s: string] of int; top: table maximum(2)[k: int] of s: string weight w: int;
emit n[x.s] <- x.k; emit top[x.k % 3] <- x.s weight x.k;"""
UNDEFINED = """x: {s: string, k: int} = input;
n: table sum[s: string] of int; emit n[x.s] <- 12 / (x.k % 4); m: table sum of int; emit m <- 1;
if (x.k > 7) emit stdout <- x.s;"""
GROUPED = """t: {ts: int; k: string; v: int} stream by ts;
output o: relation = select k, count(*) as n, sum(v) as w from t[range 3] where v <> 7 group by k;
output p: relation = select v, max(k) as w from t[range 3] where v <> 7 group by v;"""
ROWS = HEAD + "input a: R; output o: R; output p: R; (b, c) <- both(a); (o) <- keep(b); (p) <- twice(c);"
BOTH = "operator both(x: R) -> (y: R, z: R) { on x(r) { emit y r; if r.v > 0 { emit z r; } } }\n"
WINDOW = HEAD + "input a: R; output o: R; (b) <- swap(a); (o) <- window(b);"
PROGRAMS = {
    "tables": (TABLES, "sawzall", InParts),
    "undefined": (UNDEFINED, "sawzall", InParts),
    "grouped": (GROUPED, "cql", ByKey),
    "rows": (ROWS.replace("input a", BOTH + "input a"), "river", RowByRow),
    "window": (WINDOW, "river", InOneTask),
}
JOINED = """a: {ts: int; k: int; v: int} stream by ts; b: {ts: int; w: int; j: int} stream by ts;
output o: relation = select a.k, a.v, b.w from a[range 3], b[range 5] where a.k = b.j;
output p: relation = select j, count(*) as n, sum(v) as s from a[unbounded], b[now] where k = j group by j;"""
COMPILED = {"joined": river.compile(JOINED, "cql")} | {
    name: river.compile(text, language) for name, (text, language, _) in PROGRAMS.items()
}


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The session is a stand-in, and parts are short. What was run in which way, and whether it was done so."""
    seen: list[str] = []
    plain = direct.run

    def run(work: Any, *more: Any) -> Any:
        found = plain(work, *more)
        seen.append(f"{type(work.way).__name__}{'' if found is None else ', done'}")
        return found

    monkeypatch.setattr(direct, "run", run)
    monkeypatch.setattr(runs, "session", lambda *_: nullcontext(Session(3)))
    monkeypatch.setattr(parts, "LEAST", 90)
    return seen


def table(count: int, text: str = "x{0}") -> pa.Table:
    """Rows that all programs can read."""
    return pa.table(
        {
            "ts": [n // 3 + n // 40 for n in range(count)],
            "k": ["abcd"[n * n % 11 % 4] for n in range(count)],
            "s": [text.format(n % 7) for n in range(count)],
            "v": [n * 5 % 13 for n in range(count)],
        }
    )


def rows_for(name: str, count: int, text: str = "x{0}") -> tuple[str, pa.Table]:
    """The input of a program, and rows for it."""
    found = table(count, text)
    match name:
        case "tables" | "undefined":
            return "x", found.select(["s", "v"]).rename_columns(["s", "k"])
        case "grouped":
            return "t", found.select(["ts", "k", "v"])
        case _:
            return "a", found.select(["ts", "s", "v"]).rename_columns(["k", "s", "v"])


def written(rows: pa.Table, place: Path, kind: str) -> str:
    """The path of a file of rows."""
    path = str(place / f"rows.{kind}")
    match kind:
        case "parquet":
            pq.write_table(rows, path, row_group_size=7)
        case "arrow":
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows, max_chunksize=5)
        case _:
            columns = rows.column_names
            text = "river 1; type R = {" + ", ".join(f"{c}: {_type(rows, c)}" for c in columns) + "};"
            copy = "operator same(x: R) -> (y: R) { on x(r) { emit y r; } }"
            program = river.compile(f"{text}\n{copy}\ninput i: R; output o: R; (o) <- same(i);", "river")
            program.run({"i": rows}, {"o": path}, backend="reference")
    return path


def _type(rows: pa.Table, column: str) -> str:
    return "i64" if pa.types.is_int64(rows.schema.field(column).type) else "string"


def shown(found: pa.Table) -> list[str]:
    """The rows; of what changes in a relation at one instant the order does not matter, but that deletions come first."""
    rows = found.to_pylist()
    if "op" not in found.column_names:
        return list(map(repr, rows))
    groups = groupby(rows, lambda row: (row["ts"], row["op"]))
    return [repr((key, sorted(map(repr, group)))) for key, group in groups]


def same(program: Compiled, inputs: dict[str, str], **more: Any) -> None:
    """Spark gives what the calculus gives."""
    expected = program.run(inputs, backend="reference", **more)
    found = program.run(inputs, backend="spark", workers=2, **more)
    assert {name: shown(found[name]) for name in expected.tables} == {
        name: shown(expected[name]) for name in expected.tables
    }
    assert found.read == expected.read
    assert [each.message for each in found.warnings] == [each.message for each in expected.warnings]


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tables", "csv"),
        ("tables", "parquet"),
        ("undefined", "csv"),
        ("undefined", "parquet"),
        ("grouped", "csv"),
        ("grouped", "arrow"),
        ("rows", "jsonl"),
        ("rows", "parquet"),
        ("window", "csv"),
    ],
)
def test_executors_read_parts_of_files(name: str, kind: str, ways: list[str], tmp_path: Path) -> None:
    input_, rows = rows_for(name, 60)
    same(COMPILED[name], {input_: written(rows, tmp_path, kind)})
    assert ways == [f"{PROGRAMS[name][2].__name__}, done"]


@pytest.mark.parametrize("name", ["tables", "grouped", "rows", "window"])
def test_all_backends_read_rows_without_names(name: str, ways: list[str], tmp_path: Path) -> None:
    """A file without the line of names, and a folder of two, are what the file with it is, also in parts."""
    input_, rows = rows_for(name, 60)
    named = Path(written(rows, tmp_path, "csv"))
    expected = COMPILED[name].run({input_: str(named)}, backend="reference")
    lines = named.read_text().splitlines(keepends=True)[1:]
    (tmp_path / "bare").mkdir()
    for place, part in (("bare.dat", lines), ("bare/a.csv", lines[:31]), ("bare/b.csv", lines[31:])):
        (tmp_path / place).write_text("".join(part))
    types = ",".join(["c9"] * len(named.read_text().splitlines()[0].split(",")))
    (tmp_path / "typed.dat").write_text("".join([types + "\n", *lines]))
    kinds = {"bare.dat": "csv-noheader", "bare/": "csv-noheader", "typed.dat": "csv-types"}
    for (place, kind), backend in product(kinds.items(), ("reference", "multicore", "spark")):
        found = COMPILED[name].run(
            {input_: f"{tmp_path}/{place}"}, backend=backend, workers=2, formats={input_: kind}
        )
        assert {each: shown(found[each]) for each in expected.tables} == {
            each: shown(expected[each]) for each in expected.tables
        }
    assert ways == 3 * [f"{PROGRAMS[name][2].__name__}, done"]


@pytest.mark.parametrize(
    ("name", "kind", "by"),
    [("tables", "parquet", "s"), ("grouped", "csv", "k"), ("rows", "jsonl", "s"), ("window", "arrow", "v")],
)
def test_executors_read_folders_by_columns(
    name: str, kind: str, by: str, ways: list[str], tmp_path: Path
) -> None:
    """The folders' names say a column; also where the rows of one time stamp after the other are asked for."""
    input_, rows = rows_for(name, 60)
    column = "k" if name == "tables" else by
    for number, value in enumerate(sorted(set(rows[column].to_pylist()))):
        place = tmp_path / "in" / f"{column}={value}"
        place.mkdir(parents=True)
        some = [row for row in rows.to_pylist() if row.pop(column) == value]
        for row in some if name == "grouped" else ():  # time goes on from file to file
            row["ts"] += 100 * number
        part = pa.Table.from_pylist(some)
        written(part, place, kind)
    same(COMPILED[name], {input_: f"{tmp_path}/in/"})
    assert ways == [f"{PROGRAMS[name][2].__name__}, done"]
    (tmp_path / "in" / f"{column}=").mkdir()
    (tmp_path / "in" / f"{column}=" / f"a.{kind}").touch()
    with pytest.raises(Rejected, match="says no value"):
        COMPILED[name].run({input_: f"{tmp_path}/in/"}, backend="spark")


@pytest.mark.parametrize("last", [0, 9])
def test_rows_that_meet_by_key_are_sent_to_one_task(last: int, ways: list[str], tmp_path: Path) -> None:
    """Time goes on for both inputs as far as the one that is `last` says, with rows of other keys."""
    random = chance("rows that meet", last)
    inputs: dict[str, str] = {}
    for name, (key, value), more in (("a", "kv", last), ("b", "jw", 9 - last)):
        rows = [(random.randrange(20), random.randrange(4), random.randrange(9)) for _ in range(40)]
        columns = zip(*sorted([*rows, (20 + more, 7, 7)]), strict=True)
        (tmp_path / name).mkdir()
        inputs[name] = written(
            pa.table(dict(zip(("ts", key, value), map(list, columns), strict=True))),
            tmp_path / name,
            "arrow" if last else "csv",
        )
    same(COMPILED["joined"], inputs)
    assert ways == ["ByKey, done"]
    (tmp_path / "b" / "rows.csv").write_text("ts,j,w\n" + "5,1,1\n" * 40 + "4,1,1\n" * 40)
    inputs["b"] = str(tmp_path / "b" / "rows.csv")
    with pytest.raises(Rejected, match=r"b/rows.csv:42: error\[data-order\]"):
        COMPILED["joined"].run(inputs, backend="spark")


def lines(path: Path, kind: str) -> list[str]:
    """The rows of a file, as lines; those of texts as they stand there."""
    match kind:
        case "csv":
            return path.read_text().splitlines()[1:]
        case "jsonl":
            return path.read_text().splitlines()
        case "parquet":
            table = pq.read_table(path)
        case _:
            table = pa.ipc.open_file(path).read_all()
    return [str(table.schema), *map(str, table.to_pylist())]


def instants(path: Path) -> list[int]:
    """The instants of a change log in lines of JSON."""
    return [json.loads(line)["ts"] for line in lines(path, "jsonl")]


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [("tables", "parquet", 1), ("grouped", "jsonl", 2), ("rows", "csv", 5), ("window", "arrow", 1)],
)
def test_executors_write_the_files_of_a_folder(
    name: str, kind: str, count: int, ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver hands nothing over, and the rows are those that the calculus writes to a file, in their order by name."""
    monkeypatch.setattr(direct, "hand_over", None)
    input_, rows = rows_for(name, 60)
    inputs, program = {input_: written(rows, tmp_path, "csv")}, COMPILED[name]
    (tmp_path / "out").mkdir()
    files = {each: tmp_path / f"{each}.{kind}" for each in program.outputs}
    folders = {each: tmp_path / "out" / path.name for each, path in files.items()}
    expected = program.run(inputs, files, backend="reference")
    found = program.run(
        inputs, {each: f"{path}/" for each, path in folders.items()}, backend="spark", workers=2
    )
    assert ways == [f"{PROGRAMS[name][2].__name__}, done"]
    assert found.rows == expected.rows
    for each, file in files.items():
        paths = sorted(folders[each].iterdir())
        assert len(paths) == count
        told_ = [line for path in paths for line in lines(path, kind)]
        expected_ = lines(file, kind)
        if name == "grouped":  # of which each file has the rows of some keys
            assert all(instants(path) == sorted(instants(path)) for path in paths)
            told_, expected_ = sorted(told_), sorted(expected_)
        assert told_ == expected_


@pytest.mark.some(2)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_run_that_is_refused_writes_one_file_of_a_folder(
    name: str, ways: list[str], tmp_path: Path
) -> None:
    """By stages, through the driver; or none, where something is wrong for them, too."""
    (tmp_path / "rows.csv").write_text(text(name, "x,y,z,1"))
    (input_,), program = COMPILED[name].graph.inputs, COMPILED[name]
    targets = {each: f"{tmp_path}/out/{each}/" for each in program.outputs}
    (tmp_path / "out").mkdir()
    with pytest.raises(Rejected):
        program.run({input_: str(tmp_path / "rows.csv")}, targets, backend="spark")
    assert not any((tmp_path / "out").iterdir())
    found = program.run({input_: str(tmp_path / "rows.csv")}, targets, backend="spark", on_error="skip")
    for each in program.outputs:
        (path,) = (tmp_path / "out" / each).iterdir()
        assert len(lines(path, "parquet")) == 1 + found.rows[each]
    assert ways == [PROGRAMS[name][2].__name__] * 2


def test_executors_that_do_not_see_a_folder_are_told_of(
    ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.StagedFolder, "seen", lambda _: False)
    for name in PROGRAMS:
        input_, rows = rows_for(name, 20)
        targets = {each: f"{tmp_path}/{each}/" for each in COMPILED[name].outputs}
        with pytest.raises(Rejected) as refused:
            COMPILED[name].run({input_: written(rows, tmp_path, "csv")}, targets, backend="spark")
        (found,) = refused.value.diagnostics
        assert found.code == "spark-folder"
        assert f"to which `{tmp_path}/" in found.message
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_executors_divide_rows_among_folders(
    ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By columns; each task brings its own files, and the driver hands nothing over."""
    by = {"tables": [("n", "s"), ("top", "k")], "grouped": [("o", "op"), ("p", "v")]}
    by |= {"rows": [("o", "k"), ("p", "s")], "window": [("o", "s")], "undefined": [("undefined", "why")]}
    for name, kind in zip(PROGRAMS, ("csv", "jsonl", "parquet", "jsonl", "arrow"), strict=True):
        input_, rows = rows_for(name, 60)
        inputs, program = {input_: written(rows, tmp_path, "csv")}, COMPILED[name]
        expected = program.run(inputs, backend="reference")
        targets = {each: f"{tmp_path}/{name}-{each}.{kind}/" for each in program.outputs}
        with monkeypatch.context() as patched:
            patched.setattr(direct, "hand_over", None)
            found = program.run(inputs, targets, backend="spark", workers=2, partition_by=dict(by[name]))
        assert found.rows == {each: rows.num_rows for each, rows in expected.tables.items()}
        for each, column in by[name]:
            paths = list(Path(targets[each]).rglob("part-*"))
            assert all(path.parent.name.startswith(f"{column}=") for path in paths)
            table = ds.dataset(
                targets[each],
                format="json" if kind == "jsonl" else kind,
                schema=expected[each].schema,
                partitioning=ds.partitioning(expected[each].select([column]).schema, flavor="hive"),
            ).to_table()
            assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, expected[each].to_pylist()))
    assert ways == [f"{way.__name__}, done" for _, _, way in PROGRAMS.values()]
    input_, rows = rows_for("rows", 20)
    inputs = {input_: written(rows[:0], tmp_path, "csv")}
    COMPILED["rows"].run(inputs, {"o": f"{tmp_path}/none/"}, backend="spark", partition_by={"o": ["k"]})
    assert list((tmp_path / "none").iterdir()) == []


def test_a_text_that_names_no_folder_ends_the_run(ways: list[str], tmp_path: Path) -> None:
    """A task finds it, and the run by stages says what it is."""
    input_, rows = rows_for("rows", 20, "")
    inputs = {input_: written(rows, tmp_path, "csv")}
    targets = {name: f"{tmp_path}/{name}/" for name in "op"}
    with pytest.raises(Rejected, match="data-partition") as refused:
        COMPILED["rows"].run(inputs, targets, backend="spark", partition_by={"o": "k", "p": "s"})
    assert "output `p` cannot be divided by `s`" in refused.value.diagnostics[0].message
    assert ways == ["RowByRow"]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_a_folder_without_rows_has_a_file_that_tells_the_columns(ways: list[str], tmp_path: Path) -> None:
    for name in PROGRAMS:
        input_, rows = rows_for(name, 20)
        targets = {each: f"{tmp_path}/{name}-{each}/" for each in COMPILED[name].outputs}
        COMPILED[name].run({input_: written(rows[:0], tmp_path, "csv")}, targets, backend="spark")
        for target in targets.values():
            (path,) = Path(target).iterdir()
            assert len(lines(path, "parquet")) == 1
    assert ways == [f"{way.__name__}, done" for _, _, way in PROGRAMS.values()]


@pytest.mark.some(3)
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in PROGRAMS for kind in ("csv", "parquet")])
def test_executors_read_the_files_of_a_folder(name: str, kind: str, ways: list[str], tmp_path: Path) -> None:
    """In the order of their names, of which one has no rows; and what is wrong with one is told with its place."""
    input_, rows = rows_for(name, 60)
    for number, part in enumerate((rows[:25], rows[:0], rows[25:])):
        (tmp_path / str(number)).mkdir()
        Path(written(part, tmp_path / str(number), kind)).rename(tmp_path / f"{number}.{kind}")
        (tmp_path / str(number)).rmdir()
    program = COMPILED[name]
    same(program, {input_: f"{tmp_path}/"})
    same(program, {input_: f"{tmp_path}/*.{kind}"})
    assert ways == [f"{PROGRAMS[name][2].__name__}, done"] * 2
    if kind == "csv":
        with (tmp_path / "1.csv").open("a") as file:
            file.write("x,y,z,1\n")
        told_: list[Any] = []
        for backend in ("reference", "spark"):
            with pytest.raises(Rejected) as refused:
                program.run({input_: f"{tmp_path}/"}, backend=backend)
            told_.append(refused.value.diagnostics)
        assert told_[0] == told_[1]
        same(program, {input_: f"{tmp_path}/"}, on_error="skip")


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([10] * 5, [1, 0, 0, 0, 0]),
        ([300_000] * 8, [1, 0] * 4),
        ([600_000] * 4, [1, 1, 1, 1]),
        ([10, 5 << 20, 10, 10], [1, 4, 1, 0]),
    ],
)
def test_small_files_are_one_part(sizes: list[int], counts: list[int]) -> None:
    given_ = [parts.GivenFile(f"{n}.csv", "csv", None, size, 0) for n, size in enumerate(sizes)]
    assert [count for _, count in parts.divided(given_, 2, whole=False)] == counts
    packed = [parts.GivenFile(f"{n}.csv.gz", "csv", "gz", 1 << 20, 0) for n in range(3)]
    assert [count for _, count in parts.divided(packed, 1, whole=False)] == [1, 1, 1]


@pytest.mark.parametrize("name", ["rows", "tables", "grouped"])
def test_small_files_are_read_together(
    name: str, ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order; and time that goes back from one to the next is told of."""
    monkeypatch.setattr(parts, "LEAST", 150)
    counts: list[int] = []
    plain = direct._Jobs.told
    monkeypatch.setattr(
        direct._Jobs, "told", lambda jobs, count, *more: (counts.append(count), plain(jobs, count, *more))[1]
    )
    input_, rows = rows_for(name, 60)
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        place = Path(written(rows[3 * number : 3 * number + 3], tmp_path / str(number), "csv"))
        place.rename(tmp_path / f"{number + 10}.csv")
        (tmp_path / str(number)).rmdir()
    same(COMPILED[name], {input_: f"{tmp_path}/"})
    assert ways == [f"{PROGRAMS[name][2].__name__}, done"]
    assert 1 < counts[0] < 10
    if name == "grouped":
        (tmp_path / "29.csv").rename(tmp_path / "28a.csv")
        (tmp_path / "27.csv").rename(tmp_path / "28b.csv")
        for backend in ("reference", "spark"):
            with pytest.raises(Rejected, match="ts"):
                COMPILED[name].run({input_: f"{tmp_path}/"}, backend=backend)


def test_variables_are_there_for_who_asks(ways: list[str], tmp_path: Path) -> None:
    input_, rows = rows_for("tables", 30)
    path = written(rows, tmp_path, "csv")
    found = COMPILED["tables"].run({input_: path}, backend="spark")
    expected = COMPILED["tables"].run({input_: path}, backend="reference")
    assert dict(found.variables["n"]) == dict(expected.variables["n"])
    assert ways == ["InParts, done"]


def text(name: str, broken: str | None = None, text: str = "x{0}") -> str:
    """Rows of a program as CSV, with one more in their midst."""
    _, rows = rows_for(name, 60, text)
    quoted = [
        [str(cell) if isinstance(cell, int) else f'"{cell}"' for cell in row.values()]
        for row in rows.to_pylist()
    ]
    lines = [",".join(cells) for cells in quoted]
    return "\n".join(
        [",".join(rows.column_names), *lines[:50], *([] if broken is None else [broken]), *lines[50:], ""]
    )


@pytest.mark.parametrize(
    ("name", "broken", "code"),
    [
        ("tables", "x1,five", "data-type"),
        ("rows", '3,"x1,5', "data-syntax"),
        ("grouped", "3,a,5", "data-order"),
    ],
)
def test_rows_that_are_wrong_are_told_of_as_ever(
    name: str, broken: str, code: str, ways: list[str], tmp_path: Path
) -> None:
    """With their lines in the file: a part does not know how many come before it, so stages find out."""
    file, letters = tmp_path / "rows.csv", tmp_path / "letters"
    file.write_text(text(name, broken))
    (input_,), program = COMPILED[name].graph.inputs, COMPILED[name]
    said: list[Any] = []
    for backend in ("reference", "spark"):
        with pytest.raises(Rejected) as refused:
            program.run({input_: str(file)}, backend=backend)
        (found,) = refused.value.diagnostics
        assert found.code == code
        program.run({input_: str(file)}, backend=backend, on_error=f"dead-letter={letters}")
        said.append((found, letters.read_text()))
    assert said[0] == said[1]
    same(program, {input_: str(file)}, on_error="skip")
    assert set(ways) == {PROGRAMS[name][2].__name__}


def test_a_part_that_begins_inside_quotes_is_seen_in_the_one_before(ways: list[str], tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text("rows", text='a line,\nand {0} ""more""\n'))
    same(COMPILED["rows"], {"a": str(file)})
    assert ways == ["RowByRow"]


def test_a_trap_is_told_as_ever(ways: list[str], tmp_path: Path) -> None:
    """The first one, whichever task came upon one first."""
    program = river.compile(
        HEAD
        + """operator risky(x: R) -> (y: R) { on x(r) { emit y {k: r.k, s: r.s, v: div.trunc(6, r.v - 4)}; } }
        input a: R; output o: R; (o) <- risky(a);""",
        "river",
    )
    path = written(rows_for("rows", 60)[1], tmp_path, "csv")
    told_: list[Any] = []
    for backend in ("reference", "spark"):
        with pytest.raises(Rejected, match="while handling the item") as refused:
            program.run({"a": path}, backend=backend)
        told_.append(refused.value.diagnostics)
    assert told_[0] == told_[1]
    assert ways == ["RowByRow"]


def test_a_file_that_is_another_one_for_executors_is_not_read_there(
    ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text("rows"))
    plain = parts.given_files
    monkeypatch.setattr(
        direct, "given_files", lambda source: tuple(evolve(each, changed=0) for each in plain(source))
    )
    same(COMPILED["rows"], {"a": str(file)})
    assert ways == ["RowByRow"]


def test_executors_without_machine_code_read_nothing(
    ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(rows_for("rows", 20)[1], tmp_path, "csv")
    monkeypatch.setattr(files, "available", lambda: False)
    same(COMPILED["rows"], {"a": path})
    assert ways == ["RowByRow"]


@pytest.mark.parametrize("name", ["marked.csv", "packed.csv.gz", "header.csv", "none.parquet"])
def test_files_of_all_sorts(name: str, ways: list[str], tmp_path: Path) -> None:
    """With a byte order mark and carriage returns; packed; of no rows."""
    path, rows = tmp_path / name, text("rows").encode()
    match name:
        case "marked.csv":
            path.write_bytes(b"\xef\xbb\xbf" + rows.replace(b"\n", b"\r\n"))
        case "packed.csv.gz":
            path.write_bytes(gzip.compress(rows))
        case "header.csv":
            path.write_bytes(rows.partition(b"\n")[0])
        case _:
            pq.write_table(rows_for("rows", 1)[1][:0], path)
    same(COMPILED["rows"], {"a": str(path)})
    assert ways == ["RowByRow, done"]


def test_change_logs_of_parts_become_one(tmp_path: Path) -> None:
    """Also where an instant goes on in the next record batch, and where logs are empty."""
    logs = [
        [(1, "+", 1), (1, "+", 2), (3, "-", 1), (3, "+", 3)],
        [],
        [(1, "-", 9), (2, "+", 5), (2, "+", 6), (2, "+", 7), (4, "-", 5)],
    ]
    paths: list[str] = []
    for number, log in enumerate(logs):
        rows = (
            pa.table(dict(zip(("ts", "op", "k"), map(list, zip(*log, strict=True)), strict=False)))
            if log
            else None
        )
        schema = pa.schema([("ts", pa.int64()), ("op", pa.string()), ("k", pa.int64())])
        paths.append(str(tmp_path / f"{number}.arrow"))
        with pa.OSFile(paths[-1], "wb") as file, pa.ipc.new_file(file, schema) as writer:
            writer.write_table(schema.empty_table() if rows is None else rows, max_chunksize=2)
    found = [row for batch in direct._by_instant(paths) for row in batch.to_pylist()]
    every = sorted((row for log in logs for row in log), key=lambda row: (row[0], row[1] != "-"))
    assert [tuple(row.values()) for row in found] == every


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.sampled_from(["1,a,2", '1,"a\n",2', '1,"a""",2', '2,"\n\n",1', '1,a"b,2', "x,a,1", "", "3,é,4"]),
        max_size=40,
    ),
    least=st.integers(1, 60),
)
def test_parts_of_any_text_are_its_rows_or_are_refused(
    lines: list[str], least: int, ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LEAST", least)
    file = tmp_path / "rows.csv"
    file.write_text("k,s,v\n" + "\n".join(lines))
    same(COMPILED["rows"], {"a": str(file)}, on_error="skip")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tables", "over files: accumulated in one task for each part of the file, then one for each table"),
        ("grouped", "then one for each channel of keys: `o` by (k); `p` by (v)"),
        ("joined", "then one for each channel of keys: `o`, `p` by (a.k, b.j)"),
        ("window", "over files: in one task, because of window#1: reads windows of its input"),
    ],
)
def test_plans_say_how_files_are_read(name: str, text: str) -> None:
    graph = COMPILED[name].tuned(SPARK.passes).graph
    assert text in plan(graph, here(), Options(workers=2)).show()


def test_programs_that_run_by_stages_say_why() -> None:
    keyed = "operator last(x: R; $m: map<i64, i64>) -> (y: R) { on x(r) { $m[r.k] = r.v; emit y r; } }\n"
    graph = river.compile(
        f"{HEAD}{keyed}input a: R; output o: R; var $m: map<i64, i64> = {{}}; (o, $m) <- last(a, $m);",
        "river",
    ).graph
    assert told(way(plan(graph, here(), Options(workers=2)))).startswith(
        "over files: by stages, because no operator has to"
    )
