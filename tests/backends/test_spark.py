"""Programs on Spark itself, in one session; the stages by themselves are tested without it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

import river
from backends.native.jit import QUICKLY
from backends.reference import BACKEND as REFERENCE
from backends.spark import BACKEND as SPARK
from backends.spark import continuous, manifests, parts
from backends.spark import run as runs
from backends.spark import session as sessions
from backends.spark.stages import StageKind
from river.backend import Options
from river.classes import evolve
from river.diagnostics import Rejected
from river.driver import Job, compare, compile_source, execute, observe, read_source
from river.il.observe import observed_variables
from river.io.errors import OnError
from river.io.sources import open_source
from river.lang.evaluate import Trap
from river.testing.seeds import chance
from tests.backends.kafka_brokers import brokers, produce
from tests.backends.spark_cluster import below, end
from tests.backends.spark_programs import HEAD, data, expressions, extremes, go, programs
from tests.backends.test_spark_epochs import SHARED
from tests.backends.test_spark_frames import TABLES
from tests.patience import until
from tests.properties.test_catalogue import DRAWN, computes, explored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backends.spark.errands import EpochErrand
    from river.testing.program_strategies import ProgramCase

pytestmark = [
    pytest.mark.spark,
    # Spark's sockets are closed when Python's garbage is collected.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def _session() -> Iterator[None]:
    """One session for all, whose processes make code as quickly as this one does; those of campaigns as they do for users."""
    try:
        sessions.check({})
    except Rejected as rejected:
        pytest.skip(rejected.diagnostics[0].message)
    with pytest.MonkeyPatch.context() as patch:
        if "RIVER_CASES" not in os.environ:
            patch.setenv(QUICKLY, "1")
        with sessions.session(2, {}) as found:
            pass
    yield
    found.stop()


def agree(text: str, items: dict[str, list[Any]], options: Options) -> set[StageKind]:
    """Runs on the calculus and on Spark, and compares all that is seen; the kinds of stages there were."""
    _, expected, meaning = go(REFERENCE, text, items, options)
    made, found, summary = go(SPARK, text, items, options)
    assert found == expected, made.show()
    variables = [observed_variables(made.graph, s.variables) for s in (summary, meaning)]
    assert variables[0] == variables[1], made.show()
    return {stage.kind for stage in made.stages}


def test_the_flights() -> None:
    compiled = compile_source(read_source(str(ROOT / "examples/flights/delays.cql")))
    queue = compiled.graph.queues["flights"]
    file = ROOT / "examples/flights/flights.csv"
    source = open_source(
        file, queue.type, name="flights", on_error=OnError.parse("stop"), batch=1000, by=queue.by
    )
    items = {"flights": [item for batch in source for item in batch][:1500]}
    expected, found = (
        observe(compiled, name, items, Options(batch=300, workers=2)) for name in ("reference", "spark")
    )
    assert found == expected
    assert len(found["delays"]) > 400


LINES = [(7 * n // 3, (200, 404, 200, 500)[n % 4], "ABa"[n % 3]) for n in range(200)]
PROGRAMS = [
    ("examples/continuous_log/origins.cql", {"requests": "examples/continuous_log/requests.csv"}),
    ("examples/fm_radio/fm_radio.str", {"input": "examples/fm_radio/signal.csv"}),
    ("examples/linear_road/tolls.cql", {"reports": "examples/linear_road/reports.csv"}),
    ("examples/log_analyzer/query_log.szl", {"logRecord": "examples/log_analyzer/queries.csv"}),
    ("tests/programs/cross_language.river", {"line": LINES}),
    ("tests/programs/streamit/prefixcode.str", {"input": [0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0] * 20}),
    ("tests/programs/lines.szl", {"input": ["1.5", "2", "none", "3.25", "10"]}),
]


@pytest.mark.parametrize(("program", "inputs"), [pytest.param(*each, id=each[0]) for each in PROGRAMS])
def test_examples_in_every_language_and_across_them(program: str, inputs: dict[str, Any]) -> None:
    given_ = {name: str(ROOT / data) if isinstance(data, str) else data for name, data in inputs.items()}
    job = Job(given_, {}, OnError.parse("stop"), options=Options(workers=2))
    measure, spark = compare(compile_source(read_source(str(ROOT / program))), job, ("reference", "spark"))
    assert spark.differences == ()
    assert spark.rows == measure.rows
    assert all(spark.rows.values())


@pytest.mark.parametrize(("name", "printed"), [("fft", 2 * 9), ("braces", 4), ("sizes", 3 * 3 - 1)])
def test_a_program_that_makes_its_own_items_and_prints(name: str, printed: int) -> None:
    """With structs as items, recursion, several filters that print, and windows that look ahead; with arrays as state."""
    job = Job({}, {}, OnError.parse("stop"), iterations=2, options=Options(workers=2))
    program = compile_source(read_source(str(ROOT / f"tests/programs/streamit/{name}.str")))
    measure, spark = compare(program, job, ("reference", "spark"))
    assert spark.differences == ()
    assert spark.rows == measure.rows == {"stdout": printed}


WORDS = """
operator words(x: {line: string}) -> (y: {word: string}) { on x(r) { for w in split(r.line, " ") { emit y {word: w}; } } }
operator count(x: {word: string}; $n: map<string, i64>) -> (y: {word: string, n: i64}) {
  on x(r) { with n = $n[r.word] else 0 { n = n + 1; emit y {word: r.word, n: n}; } }
}
operator either(a: R by k, b: R by k) -> (y: R by k) {
  on merge(a(p), b(q)) { if p is p { emit y p; } if q is q { emit y q; } }
}
operator turns(a: R by k, b: R) -> (y: R) { phase 2 on a(r) { emit y r; } phase 1 on b(r) { emit y r; } }
var $n: map<string, i64> = {};
var $t: i64 = 0;
input lines: {line: string};
output counts: {word: string, n: i64};
(w) <- words(lines);
(counts, $n) <- count(w, $n);
input l: R by k; input r: R by k; input i: R;
output joined: R;
(m) <- either(l, r);
(p) <- pick(m);
(f) <- window(i);
(s) <- swap(f);
(t, $t) <- total(s, $t);
(j) <- turns(p, t);
(joined) <- swap(j);
"""


def test_words_maps_merges_windows_and_turns() -> None:
    text = HEAD.replace("operator count", "operator count_by_name") + WORDS
    items: dict[str, list[Any]] = {
        "lines": [(f"the {n % 7} of {n % 3} ways é{n % 11}",) for n in range(500)],
        "l": [(n // 3, "l", n) for n in range(300)],
        "r": [(n // 2, "r", n % 5) for n in range(200)],
        "i": [(n % 13, "", n) for n in range(400)],
    }
    assert agree(text, items, Options(batch=64, workers=2)) == set(StageKind)


@settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.generate],  # a run takes seconds: what fails is shrunk on the stand-in
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(text=programs(2), items=data())
def test_some_programs_compute_what_the_calculus_says(text: str, items: dict[str, list[Any]]) -> None:
    agree(text, items, Options(batch=7, workers=2))


@settings(
    max_examples=20,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(DRAWN)
def test_programs_of_the_catalogue_compute_what_they_may(case: ProgramCase) -> None:
    graph, was = explored(case)
    computes(SPARK, graph, case, was, Options(batch=3, workers=2))


def test_a_trap_is_told_as_by_the_calculus() -> None:
    text = f"""{HEAD}
operator risky(x: R) -> (y: R) {{ on x(r) {{ emit y {{k: r.k, s: r.s, v: div.trunc(6, r.v)}}; }} }}
input a: R; output o: R; var $m: map<i64, i64> = {{}};
(b) <- risky(a); (o, $m) <- tally(b, $m);"""
    items = {"a": [(n, "x", (n - 70) * (n - 110)) for n in range(200)]}
    told: list[Any] = []
    for backend in (REFERENCE, SPARK):
        with pytest.raises(Trap) as caught:
            go(backend, text, items, Options(batch=32, workers=2))
        trap = caught.value
        assert trap.span is not None
        told.append((trap.code, trap.operator, trap.site, trap.diagnostic(), trap.item))
    assert told[0] == told[1]


def test_a_run_can_be_stopped() -> None:
    text = f"{HEAD}\ninput a: R; output o: R; (o) <- keep(a);"
    looks = iter([False] * 3)
    with pytest.raises(KeyboardInterrupt):
        go(SPARK, text, {"a": [(1, "x", 1)]}, Options(workers=2, stopping=lambda: next(looks, True)))


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same thread", "another thread"])
def test_the_users_session_keeps_its_settings(elsewhere: bool) -> None:
    users = import_module("pyspark.sql").SparkSession.builder.getOrCreate()
    keys = ["spark.sql.adaptive.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch"]
    before = [users.conf.get(key) for key in keys]
    assert before == ["true", "10000"]  # Spark's own; the runs before have left them alone, too
    args = (
        SPARK,
        f"{HEAD}\ninput a: R; output o: R; (o) <- keep(a);",
        {"a": [(1, "x", 1)]},
        Options(workers=2),
    )
    with ThreadPoolExecutor(1) as pool:
        _, found, _ = pool.submit(go, *args).result() if elsewhere else go(*args)
    assert found["o"] == [(1, "x", 1)]
    assert [users.conf.get(key) for key in keys] == before


def test_what_fails_in_spark_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.spark import worker

    monkeypatch.setattr(worker, "mapped", worker.keyed)  # rows of a stage that is not keyed
    with pytest.raises(Rejected) as refused:
        go(
            SPARK,
            f"{HEAD}\ninput a: R; output o: R; (o) <- keep(a);",
            {"a": [(1, "x", 1)]},
            Options(workers=2),
        )
    (found,) = refused.value.diagnostics
    assert found.code == "spark-failed"
    assert any("AssertionError" in note.message for note in found.notes)


def test_a_job_that_cannot_begin_has_failed() -> None:
    """Spark's Java may be killed between two jobs: a run whose job never began must not end well, with nothing in its outputs."""

    class Gone:
        def addTag(self, tag: str) -> None:  # noqa: N802 - Spark's word
            raise ConnectionError(f"nobody is there to be told of {tag}")

        removeTag = addTag  # noqa: N815 - likewise

    begun: list[bool] = []
    with pytest.raises(Rejected) as refused:
        runs.watched(Gone(), lambda: begun.append(True), "the plan", Options())
    (found,) = refused.value.diagnostics
    assert found.code == "spark-failed"
    assert "the plan" in found.message
    assert begun == []


def test_executors_read_the_files_themselves_and_write_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows by key, and tables."""
    monkeypatch.setattr(parts, "LEAST", 1 << 14)
    monkeypatch.setattr(runs, "_by_stages", None)  # which nothing needs
    flights = [ROOT / "examples/flights" / name for name in ("delays.cql", "flights.csv")]
    log = [ROOT / "examples/log_analyzer" / name for name in ("query_log.szl", "queries.csv")]
    for program, file, input_ in (*flights, "flights"), (*log, "logRecord"):
        compiled = compile_source(read_source(str(program)))
        expected = compiled.run({input_: str(file)})
        targets = {name: f"{tmp_path}/{name}/" for name in compiled.outputs}
        found = compiled.run({input_: str(file)}, targets, backend="spark", workers=2)
        for name, target in targets.items():
            parts_of_it = [pq.read_table(path) for path in Path(target).iterdir()]
            assert len(parts_of_it) == (2 if program.suffix == ".cql" else 1)
            rows = [
                sorted(map(str, each.to_pylist())) for each in (expected[name], pa.concat_tables(parts_of_it))
            ]
            assert rows[0] == rows[1]
        assert found.read == expected.read


def _bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def test_folders_by_columns_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Spark and pyarrow; and they are called as Spark calls them."""
    monkeypatch.setattr(parts, "LEAST", 1 << 10)
    monkeypatch.setattr(runs, "_by_stages", None)  # which nothing needs
    program = river.compile(
        """river 1; type R = {day: string, k: i64?, d: decimal(5,2), f: f64, s: string?, n: i64};
        operator same(x: R) -> (y: R) { on x(r) { emit y r; } } input a: R; output o: R; (o) <- same(a);""",
        "river",
    )
    texts = [None, "%41", "..", "a/b:c=d%e\"f'g*h?i\\j{k[l]m^n#o\n\tp\x7f é+ &", "01", "x"]
    rows = [
        {"day": f"2024-01-0{n % 3 + 1}", "k": n % 4 or None, "f": n % 2 / 8, "s": texts[n % 6]}
        | {"d": Decimal("0.25") * (n % 3), "n": n}
        for n in range(400)
    ]  # fmt: skip
    kinds = {"day": "string", "k": "bigint", "d": "decimal(5,2)", "f": "double", "s": "string", "n": "bigint"}
    types = [pa.string(), pa.int64(), pa.decimal128(5, 2), pa.float64(), pa.string(), pa.int64()]
    schema = pa.schema(list(zip(kinds, types, strict=True)))
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "rows.parquet", row_group_size=100)
    hive = ds.partitioning(pa.schema([("day", pa.string()), ("s", pa.string())]), flavor="hive")
    with sessions.session(2, {}) as spark:
        inputs, form = {"a": str(tmp_path / "rows.parquet")}, ", ".join(map(" ".join, kinds.items()))
        frame = spark.read.schema(form).parquet(inputs["a"])
        for kind, by in (("parquet", ["day", "s"]), ("csv", ["s", "d"]), ("jsonl", ["k", "f"])):
            ours, theirs = tmp_path / f"ours.{kind}", tmp_path / f"theirs.{kind}"
            program.run(inputs, {"o": f"{ours}/"}, backend="spark", workers=2, partition_by={"o": by})
            reader = spark.read.format(kind.removesuffix("l")).option("header", "true").schema(form)
            read = [row.asDict() for row in reader.load(str(ours)).select(*kinds).collect()]
            assert _bag(read) == _bag(rows)
            if kind == "parquet":
                read = pq.read_table(ours, schema=schema, partitioning=hive).select(list(kinds)).to_pylist()
                assert _bag(read) == _bag(rows)
            frame.write.partitionBy(*by).parquet(str(theirs))
            named = [
                {str(path.parent.relative_to(place)) for path in place.rglob("part-*")}
                for place in (ours, theirs)
            ]
            assert named[0] == named[1]


# ------------------------------------------------------------------------------------------------------------ epochs

GROUPED = (
    "s: {ts: int; k: int} stream by ts; o: relation = select k, count(*) as n from s[range 9] group by k;"
)


class Crash(BaseException):
    """The driver is ended by force."""


def arrive(folder: Path, first: int, count: int) -> None:
    """A file with so many rows comes, whole."""
    part = folder / f".{first:06}.csv"
    part.write_text("ts,k\n" + "".join(f"{n // 2},{n * n % 11 % 5}\n" for n in range(first, first + count)))
    part.rename(folder / f"{first:06}.csv")


def rows_of_epochs(state: Path, out: Path) -> list[str]:
    """The rows that manifests name."""
    files = [file for each in river.epochs(state) for file, _ in each.outputs.get("o", ())]
    return [line for file in files for line in (out / file).read_text().splitlines()[1:]]


def rows_at_once(folder: Path, state: Path, place: Path) -> list[str]:
    """The rows that one run makes of all files, in the order of the epochs; each has come once."""
    files = [path for each in river.epochs(state) for path in each.inputs.get("s", ())]
    assert sorted(files) == sorted(map(str, folder.glob("[!.]*.csv")))
    lines = [line for path in files for line in Path(path).read_text().splitlines(keepends=True)[1:]]
    (place / "all.csv").write_text("ts,k\n" + "".join(lines))
    river.compile(GROUPED, "cql").run({"s": place / "all.csv"}, {"o": place / "wanted.csv"})
    return (place / "wanted.csv").read_text().splitlines()[1:]


def by_instant(rows: list[str]) -> list[str]:
    """What changes at one instant may come in any order, but what goes comes first."""
    return sorted(rows, key=lambda row: (int(row.split(",")[0]), row.split(",")[1] == "+", row))


def test_a_folder_is_followed_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver ends by force behind an epoch; the same run goes on, is told of more files, and ends well."""
    folder, out, state = tmp_path / "in", tmp_path / "out", tmp_path / "state"
    folder.mkdir()
    arrive(folder, 0, 20)
    compiled = river.compile(GROUPED, "cql")
    job = Job(
        {"s": river.follow(f"{folder}/")}, {"o": f"{out}/"}, OnError.parse("stop"), {"o": "csv"},
        checkpoint=river.Checkpoint(state, every=0.02), options=Options(workers=2),
        metrics=tmp_path / "metrics",
    )  # fmt: skip
    commit = manifests.Manifests.commit

    def crashes(self: Any, manifest: Any, **more: Any) -> None:
        commit(self, manifest, **more)
        if manifest.epoch == 1:
            raise Crash
        if manifest.epoch == 0:
            arrive(folder, 20, 15)

    with monkeypatch.context() as patch:
        patch.setattr(manifests.Manifests, "commit", crashes)
        with pytest.raises(Crash):
            execute(compiled, "spark", job)
    arrive(folder, 35, 9)
    monkeypatch.setattr(continuous, "SMALL", 0)  # so two channels take over from one
    results = execute(compiled, "spark", evolve(job, live=river.Live(idle_exit=0.1)))
    assert [len(each.states) for each in river.epochs(state)] == [1, 1, 2, 2]
    rows = rows_of_epochs(state, out)
    assert by_instant(rows) == by_instant(rows_at_once(folder, state, tmp_path))
    assert (results.read, results.rows) == (44, {"o": len(rows)})
    assert len(river.epochs(state)) == 4
    told = json.loads((tmp_path / "metrics").read_text().splitlines()[-1])
    assert (told["epochs"]["count"], told["epochs"]["files"], told["end"]) == (2, 1, True)


def test_streams_of_dataframes_are_written_and_gone_on_with(tmp_path: Path) -> None:
    """Rows of an epoch are put in order by their columns; two inputs wait for each other from one epoch to the next.

    What is in a DataFrame that has an end is there for all of them.
    """
    spark = import_module("pyspark.sql").SparkSession.builder.getOrCreate()
    program = river.compile(
        "a: {ts: int; k: string} stream by ts; b: {ts: int; k: string} stream by ts;"
        "names: {k: string; name: string} relation; output o: relation = select name, count(*) as n"
        " from a[range 5], b[range 5], names where a.k = b.k and a.k = names.k group by name;",
        "cql",
    )
    rows = [(n // 3, "xyz"[n % 3]) for n in range(24)]
    parts = {"a": [rows[:3], rows[3:20], rows[20:]], "b": [rows[:12], rows[12:14], rows[14:]]}
    named = [("y", "two"), ("x", "one"), ("x", "too")]
    streams: dict[str, Any] = {"names": spark.createDataFrame(named, "k string, name string")}
    for name in parts:
        (tmp_path / name).mkdir()
        streams[name] = spark.readStream.schema("k string, ts long").json(str(tmp_path / name))

    def go(part: int) -> Any:
        for name, some in parts.items():
            text = "".join(json.dumps({"ts": ts, "k": k}) + "\n" for ts, k in reversed(some[part]))
            (tmp_path / name / f"{part}.json").write_text(text)
        live = river.Live(idle_exit=None if part < 2 else 0.1)
        keeping, forced = river.Checkpoint(tmp_path / "state", every=0.02), list[int]()
        stream = program.write_stream(
            streams, {"o": f"{tmp_path}/o/"}, checkpoint=keeping, live=live, stopping=lambda: bool(forced)
        )
        while part < 2 and len([*(tmp_path / "state").glob("*.checkpoint")]) < part + 2:
            assert stream.wait(0.05) is None
        if part < 2:
            forced.append(1)
            with pytest.raises(KeyboardInterrupt):
                stream.wait()
        return stream.wait() if part == 2 else None

    results = [go(part) for part in range(3)][2]
    found = import_module("pyarrow.dataset").dataset(
        [
            str(tmp_path / "o" / f)
            for each in river.epochs(tmp_path / "state")
            for f, _ in each.outputs.get("o", ())
        ]
    )
    told = sorted(map(str, found.to_table().to_pylist()))
    inputs = {name: [{"ts": ts, "k": k} for ts, k in rows] for name in parts}
    inputs["names"] = [{"k": k, "name": name} for k, name in named]
    assert told == sorted(map(str, program.run(inputs, backend="reference")["o"].to_pylist()))
    assert results.read == 51


def arrived(place: Path, epochs: Sequence[Sequence[Mapping[str, Any]]], schema: str, parts: int = 3) -> Any:
    """A stream of which each epoch has some rows, in so many partitions of Spark's, in no order."""
    spark = import_module("pyspark.sql").SparkSession.builder.getOrCreate()
    place.mkdir()
    for number, rows in enumerate(epochs):
        file = place / f"{number}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
        os.utime(file, (number + 1, number + 1))  # which puts files in order
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(place)).repartition(parts)


def test_rows_of_dataframes_are_divided_by_key(tmp_path: Path) -> None:
    """By tasks that have them in no order: it is that of columns, which may be others than the program's."""
    program = river.compile(
        "s: {ts: int; k: int; v: float} stream by ts; o: relation = select k, count(*) as n, max(v) as v"
        " from s[partition by k rows 2] group by k;",
        "cql",
    )
    rows = [{"ts": n // 4, "k": n * n % 11 % 5, "v": n * 7 % 5 / 2, "line": n * 7 % 30} for n in range(30)]
    rows.sort(key=lambda row: (row["ts"], row["line"]))
    epochs = [rows[:20], rows[20:27], rows[27:]]
    stream = program.write_stream(
        {"s": arrived(tmp_path / "s", epochs, "line long, k long, ts long, v double")}, {"o": f"{tmp_path}/o.csv/"},
        checkpoint=river.Checkpoint(tmp_path / "state", every=0.02), live=river.Live(idle_exit=0.1), workers=3,
        order_by={"s": ["line"]},
    )  # fmt: skip
    results = stream.wait()
    assert results is not None
    assert results.read == 30
    found = rows_of_epochs(tmp_path / "state", tmp_path / "o.csv")
    program.run({"s": rows}, {"o": tmp_path / "wanted.csv"}, backend="reference")
    assert by_instant(found) == by_instant((tmp_path / "wanted.csv").read_text().splitlines()[1:])
    assert [len(each.states) for each in river.epochs(tmp_path / "state")] == [3, 3, 3, 1]


@pytest.mark.parametrize(
    ("shared", "files"), [("tables", [0, 0, 0]), ("rows", [2, 2, 0]), ("timed", [2, 1, 0])]
)
def test_rows_of_dataframes_that_need_not_meet_go_to_shares(
    shared: str, files: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as there are workers, though Spark has more partitions; those with time stamps come in order.

    A row that is late is one task's to tell, which reads its epoch again.
    """
    program = river.compile(*SHARED[shared])
    rows = [{"ts": n // 3, "s": "abz"[n % 3], "k": n * n % 7, "f": n / 8} for n in range(60)]
    last = rows[40:] if shared != "timed" else [*rows[40:], rows[3]]
    reading: list[EpochErrand] = []
    told = continuous._Run._told
    monkeypatch.setattr(
        continuous._Run,
        "_told",
        lambda run, spark, errand, given: (reading.append(errand), told(run, spark, errand, given))[1],
    )
    stream = program.write_stream(
        {"x": arrived(tmp_path / "x", [rows[:40], last], "ts long, s string, k long, f double")},
        {name: f"{tmp_path}/{name}.csv/" for name in program.outputs},
        checkpoint=river.Checkpoint(tmp_path / "state", every=0.02), live=river.Live(idle_exit=0.1), workers=2,
        on_error="skip",
    )  # fmt: skip
    results = stream.wait()
    assert results is not None
    assert results.read == 60
    assert [len(results.warnings), *(each.channels for each in reading)] == (
        [1, 2, 2, 1, 1] if shared == "timed" else [0, 2, 2, 1]
    )
    epochs = [*river.epochs(tmp_path / "state")]
    for name in program.outputs:
        kept = [file for each in epochs for file, _ in each.outputs.get(name, ())]
        found = [
            line for file in kept for line in (tmp_path / f"{name}.csv" / file).read_text().splitlines()[1:]
        ]
        program.run({"x": rows}, {name: tmp_path / "wanted.csv"}, backend="reference")
        lines = (tmp_path / "wanted.csv").read_text().splitlines()[1:]
        assert found == lines if shared == "timed" else sorted(found) == sorted(lines)
        assert lines
    assert [len(each.outputs.get("o", ())) for each in epochs] == files


NUMBERED = """river 1;
type R = {partition: i32, offset: i64, text: string};
input a: R;
output o: {n: i64, partition: i32, offset: i64, text: string};
var $n: i64 = 0;
operator number(x: R; $n: i64) -> (y: {n: i64, partition: i32, offset: i64, text: string}) {
  on x(r) { $n = $n + 1; emit y {n: $n, partition: r.partition, offset: r.offset, text: r.text}; }
}
(o, $n) <- number(a, $n);
"""


@pytest.mark.long
def test_topics_of_kafka_are_read_once(tmp_path: Path) -> None:
    """A run goes on behind the messages that its epochs had, and messages keep their order; sent on, all are there."""
    pytest.importorskip("confluent_kafka", reason="the extra `kafka` is not installed")
    from backends.spark.kafka import KafkaSource, send

    spark = import_module("pyspark.sql").SparkSession.builder.getOrCreate()
    spark.dataSource.register(KafkaSource)
    program, forced = river.compile(NUMBERED, "river"), list[int]()
    with brokers() as servers:
        reader = spark.readStream.format("river-kafka").option("kafka.bootstrap.servers", servers)
        reader = reader.option("subscribe", "t").option("maxOffsetsPerTrigger", 8)

        def go(live: river.Live) -> Any:
            stream = program.write_stream(
                {"a": reader.load().selectExpr("partition", "offset", "string(value) as text")},
                {"o": f"{tmp_path}/o.jsonl/"}, checkpoint=river.Checkpoint(tmp_path / "state", every=0.02), live=live,
                order_by={"a": ["partition", "offset"]}, stopping=lambda: bool(forced),
            )  # fmt: skip
            while live.idle_exit is None and len(river.epochs(tmp_path / "state")) < 2:
                assert stream.wait(0.05) is None
            forced.extend([1] if live.idle_exit is None else [])
            return stream.wait()

        produce(servers, "t", [(n % 3, f"m{n}") for n in range(25)])
        with pytest.raises(KeyboardInterrupt):
            go(river.Live())
        forced.clear()
        produce(servers, "t", [(n % 3, f"m{n}") for n in range(25, 40)])
        assert go(river.Live(idle_exit=0.1)).read == 40
        assert send(tmp_path / "state", "o", tmp_path / "o.jsonl", "u", {"bootstrap.servers": servers}) == 40
    files = [file for each in river.epochs(tmp_path / "state") for file, _ in each.outputs.get("o", ())]
    rows = [
        json.loads(line) for file in files for line in (tmp_path / "o.jsonl" / file).read_text().splitlines()
    ]
    assert [row["n"] for row in rows] == [*range(1, 41)]
    for partition in range(3):
        found = [(row["offset"], row["text"]) for row in rows if row["partition"] == partition]
        assert found == [*enumerate(f"m{n}" for n in range(partition, 40, 3))]


def test_a_driver_and_a_worker_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By force, at some moment of an epoch: a driver, and a Python worker of the one that goes on."""
    random = chance("killed", "driver and worker")
    folder, out, state = tmp_path / "in", tmp_path / "out.csv", tmp_path / "state"
    for each in (folder, out):
        each.mkdir()
    (tmp_path / "p.cql").write_text(GROUPED)
    arrive(folder, 0, 20)
    script = """if True:
        import sys, river
        program, folder, out, state = sys.argv[1:]
        keeping = river.Checkpoint(state, every=0.02)
        river.load(program).run({"s": river.follow(folder)}, {"o": out}, backend="spark", checkpoint=keeping, workers=2)
    """
    paths = [str(tmp_path / "p.cql"), f"{folder}/", f"{out}/", str(state)]
    driver = subprocess.Popen([sys.executable, "-c", script, *paths])
    try:
        while not river.epochs(state):
            assert driver.poll() is None
            time.sleep(0.05)
        arrive(folder, 20, 15)
        time.sleep(0.3 * random.random())
    finally:
        end({driver.pid, *below({driver.pid})})
        driver.wait()
    arrive(folder, 35, 9)
    killed: set[int] = set()
    told = continuous._Run._told

    def kills(run: Any, *given: Any) -> Any:
        def workers() -> set[int]:
            javas = {pid for pid, name in below({os.getpid()}).items() if name.endswith("java")}
            return {pid for pid, name in below(javas).items() if "python" in name}

        def kill() -> None:
            time.sleep(0.3 * random.random())
            until(workers)
            killed.update(workers())
            end(killed)

        thread = threading.Thread(target=kill)
        if not killed:
            thread.start()
        try:
            return told(run, *given)
        finally:
            if thread.ident is not None:
                thread.join()

    monkeypatch.setattr(continuous._Run, "_told", kills)
    program = river.load(paths[0])
    keeping = river.Checkpoint(state, every=0.02)
    results = program.run(
        {"s": river.follow(paths[1])}, {"o": paths[2]}, backend="spark", checkpoint=keeping, workers=2,
        live=river.Live(idle_exit=0.1),
    )  # fmt: skip
    rows = rows_of_epochs(state, out)
    assert by_instant(rows) == by_instant(rows_at_once(folder, state, tmp_path))
    assert killed
    assert results.read == 44


@pytest.mark.long
def test_a_driver_that_is_killed_goes_on(tmp_path: Path) -> None:
    """Python is killed at some time, mostly after another epoch; its Java ends with it."""
    random = chance("killed", "spark")
    folder, out, state = tmp_path / "in", tmp_path / "out", tmp_path / "state"
    folder.mkdir()
    (tmp_path / "p.cql").write_text(GROUPED)
    command = [sys.executable, "-c", "from river.cli import run; run()", "run", str(tmp_path / "p.cql"), "-q"]
    command += [
        "--backend",
        "spark",
        "--in",
        f"s={folder}/",
        "--follow",
        "--out",
        f"o={out}/",
        "--out-format",
        "o=csv",
    ]
    command += ["--checkpoint", str(state), "--every", "50ms"]
    first, kills = 0, min(20, int(os.environ.get("RIVER_CASES", "2")))
    for _ in range(kills):
        began = {*state.glob("*.checkpoint")}
        process = subprocess.Popen(command)
        more = random.randint(1, 4)
        while process.poll() is None and len({*state.glob("*.checkpoint")} - began) < more:
            if random.random() < 0.05:
                arrive(folder, first, count := random.randint(1, 30))
                first += count
            time.sleep(0.02)
        time.sleep(random.random())
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    arrive(folder, first, 10)
    subprocess.run([*command, "--idle-exit", "1s"], check=True)
    rows = rows_of_epochs(state, out)
    assert by_instant(rows) == by_instant(rows_at_once(folder, state, tmp_path))
    assert {path.name for path in out.iterdir()} == {
        file for each in river.epochs(state) for file, _ in each.outputs.get("o", ())
    }


# ------------------------------------------------------------------------------------------------------------ frames


@pytest.fixture
def users() -> Any:
    """The session that users have."""
    return import_module("pyspark.sql").SparkSession.builder.getOrCreate()


def test_workers_begin_with_what_their_tasks_need(users: Any) -> None:
    """So that none of them imports it anew, or looks for modules in archives."""

    def seen(_: int) -> str:
        import sys

        archives = [each for each in sys.path if each.endswith("pyspark.zip")]
        return f"{archives} {sorted({'backends.spark.epoch', 'pandas'} & {*sys.modules})}"

    asked = import_module("pyspark.sql.functions").udf(seen, "string", useArrow=False)
    ((told,),) = users.range(1).select(asked("id")).collect()
    assert told == "[] ['backends.spark.epoch', 'pandas']"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_spark_computes_itself_means_the_same_by_all_settings(users: Any, ansi: str) -> None:
    """And sums wrap, where those of Spark's own end the job, or are null; numbers of rows are never null."""
    every = river.compile(expressions(), "river")
    sums = river.compile(
        "x: {s: string, a: int} = input; t: table sum[s: string] of {n: int, m: int}; emit t[x.s] <- {x.a, x.a * 3};"
        "u: table sum[s: string] of n: int; emit u[x.s] <- 1;",
        "sawzall",
    )
    rows = extremes()
    before = users.conf.get("spark.sql.ansi.enabled")
    users.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = users.createDataFrame(rows).repartition(2)
        found = every.on_spark({"a": frame})["o"].toArrow().to_pylist()
        frames = sums.on_spark({"x": frame})
        totals = {name: each.toArrow().to_pylist() for name, each in frames.items()}
    finally:
        users.conf.set("spark.sql.ansi.enabled", before)
    expected = every.run({"a": rows}, backend="reference")["o"].to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    given = sums.run({"x": rows.select(["s", "a"])}, backend="reference")
    for name, found in totals.items():
        assert sorted(map(repr, found)) == sorted(map(repr, given[name].to_pylist()))
    assert (frames["u"].dtypes[-1], frames["u"].schema["n"].nullable) == (("n", "bigint"), False)


def test_the_log_analyser_over_parquet_is_a_plan_of_sparks_own(
    users: Any, tmp_path: Path, capsys: Any
) -> None:
    rows = [{"origin": f"o{n % 5}", "target": f"t{n % 3}"} for n in range(40)]
    users.createDataFrame(rows).write.parquet(str(tmp_path / "log"))
    compiled = river.load(str(ROOT / "examples/log_analyzer/query_log.szl"))
    frame = compiled.on_spark({"logRecord": users.read.parquet(str(tmp_path / "log"))})["queryOrigins"]
    frame.explain()
    lines = capsys.readouterr().out.splitlines()
    steps = [
        found[1] for line in lines if (found := re.match(r"[ :]*(?:\+- )?(?:\*\(\d+\) )?([A-Z]\w+)", line))
    ]
    assert steps == [
        "AdaptiveSparkPlan",
        "Filter",
        "HashAggregate",
        "Exchange",
        "HashAggregate",
        "FileScan",
    ]
    assert sorted(map(str, frame.toArrow().to_pylist())) == [
        f"{{'url': 'o{n}', 'count': 8}}" for n in range(5)
    ]


def test_a_row_that_is_wrong_is_told_of_though_spark_would_leave_it_out(users: Any) -> None:
    """Spark looks first whether a column that it compares is null, unless the plan keeps it from that."""
    program = river.compile(
        "x: {s: string, k: int} = input; t: table collection of string; emit t <- x.s;", "sawzall"
    )
    frame = users.createDataFrame([("a", 1), (None, 2)], "s string, k long")
    with pytest.raises(Exception, match="field `s`: is null, and `string` is not optional"):
        program.on_spark({"x": frame})["t"].where("value = 'a'").toArrow()


@pytest.mark.parametrize(
    ("wrong", "why", "retained"),
    [("cast(null as string)", "null", "true"), ("cast(x'ff' as string)", "not valid UTF-8", "false")],
)
def test_a_row_that_is_wrong_is_told_of_by_its_sum(wrong: str, why: str, retained: str, users: Any) -> None:
    """Whatever is asked of the sums: nothing that is asked of all rows takes the place of what is asked of sums.

    A session may say that sums come without what they are grouped by.
    """
    program = river.compile(
        "x: {s: string, k: int} = input; t: table sum[s: string] of int; emit t[x.s] <- x.k;", "sawzall"
    )
    frame = users.range(6).selectExpr(f"if(id = 5, {wrong}, concat('s', id % 2)) as s", "id as k")
    before = users.conf.get("spark.sql.retainGroupColumns")
    users.conf.set("spark.sql.retainGroupColumns", retained)
    try:
        found = program.on_spark({"x": frame})["t"]
        good = program.on_spark({"x": frame.where("id < 5")})["t"]
    finally:
        users.conf.set("spark.sql.retainGroupColumns", before)
    asked = (
        found.where("s = 's0'"),
        found.select("value"),
        found.where("value < 3"),
        found.groupBy().count(),
    )
    for each in (found, *asked, found.join(good, "s")):
        with pytest.raises(Exception, match=rf"field `s`: (is|it is) {why}"):
            each.toArrow()
    assert sorted(map(tuple, good.collect())) == [("s0", 6), ("s1", 4)]


def test_windows_by_key_are_divided_by_key(users: Any) -> None:
    """Also what leaves a window at an instant at which rows with other keys come."""
    compiled = river.compile(
        "t: {ts: time; k: string; v: int} stream by ts; "
        "output o: relation = select k, count(*) as n, sum(v) as w from t[range 3 seconds] group by k;",
        "cql",
    )
    rows = [
        {"ts": datetime.fromtimestamp(n // 2, UTC), "k": "abcde"[n * n % 11 % 5], "v": n} for n in range(80)
    ]
    frame = users.createDataFrame(rows, "ts timestamp, k string, v long").repartition(3)
    before = users.conf.get("spark.sql.shuffle.partitions")
    users.conf.set("spark.sql.shuffle.partitions", 3)
    try:
        found = compiled.on_spark({"t": frame})["o"].toArrow().to_pylist()
    finally:
        users.conf.set("spark.sql.shuffle.partitions", before)
    expected = compiled.run({"t": rows})["o"].to_pylist()
    told = [sorted(str(row | {"ts": row["ts"].timestamp()}) for row in each) for each in (found, expected)]
    assert told[0] == told[1]


JOINED = """
a: {ts: int, k: int, v: int} stream by ts;
b: {ts: int, k: int, w: string} stream by ts;
output o: relation = select a.k, a.v, b.w from a[range 5], b[range 5] where a.k = b.k;
output p: relation = select count(*) as n from a[now], b[now];
output q: relation = select k, count(*) as n from a[range 5] group by k;
"""


def test_tables_over_frames(users: Any) -> None:
    compiled = river.compile(TABLES, "sawzall")
    rows = [{"s": "ab"[i % 2], "k": i % 5, "f": 0.1 * i} for i in range(200)]
    found = compiled.on_spark({"x": users.createDataFrame(rows).repartition(3)})
    expected = compiled.run({"x": rows})
    assert found["by"].toArrow().to_pylist() == expected["by"].to_pylist()


def test_several_frames(users: Any) -> None:
    """One output is made key by key, also where the keys' columns are of two types, the next one of all rows.

    The last one is made of one input, for which time goes on with the other.
    """
    compiled = river.compile(JOINED, "cql")
    a = [{"ts": i, "k": i % 3, "v": i} for i in range(60)]
    b = [{"ts": i * 2, "k": i % 5, "w": str(i)} for i in range(40)]
    frames = {
        "a": users.createDataFrame(a, "ts long, k int, v long").repartition(3),
        "b": users.createDataFrame(b, "ts long, k long, w string").repartition(3),
    }
    before = users.conf.get("spark.sql.shuffle.partitions")
    users.conf.set("spark.sql.shuffle.partitions", 3)
    try:
        found = compiled.on_spark(frames)
        rows = {name: sorted(map(str, found[name].toArrow().to_pylist())) for name in "opq"}
    finally:
        users.conf.set("spark.sql.shuffle.partitions", before)
    expected = compiled.run({"a": a, "b": b})
    assert rows == {name: sorted(map(str, expected[name].to_pylist())) for name in "opq"}


NAMED = """
s: {"a b": time; "x.y": string; "q`q": int} stream by "a b";
t: {"a.b": time; "x.y": string} stream by "a.b";
output o: relation = select s."x.y", "q`q" from s[range 3 seconds], t[range 3 seconds] where s."x.y" = t."x.y";
output p: relation = select s."x.y", "q`q" from s[range 3 seconds], t[range 3 seconds] where s."x.y" <= t."x.y";
output q: stream = select istream "q`q" from s[now] where "q`q" > 4;
"""


def test_columns_of_frames_may_be_called_anything(users: Any) -> None:
    """Also one like another, which the program does not want, or of a type that Arrow does not have."""
    compiled = river.compile(NAMED, "cql")
    s = [{"a b": datetime.fromtimestamp(n, UTC), "x.y": "abcde"[n % 5], "q`q": n} for n in range(9)]
    t = [{"a.b": datetime.fromtimestamp(n, UTC), "x.y": "abcde"[n * n % 5]} for n in range(9)]
    frames = {
        "s": users.createDataFrame(
            [(*row.values(), 0) for row in s], "`a b` timestamp, `x.y` string, `q``q` long, `Q``q` int"
        ),
        "t": users.createDataFrame([(*row.values(),) for row in t], "`a.b` timestamp, `x.y` string"),
    }
    frames["t"] = frames["t"].selectExpr("*", "make_interval(1, 2) as m")
    found = {name: frame.toArrow().to_pylist() for name, frame in compiled.on_spark(frames).items()}
    expected = compiled.run({"s": s, "t": t})
    assert {name: in_any_order(rows) for name, rows in found.items()} == {
        name: in_any_order(expected[name].to_pylist()) for name in found
    }


def in_any_order(rows: list[dict[str, Any]]) -> list[str]:
    """Rows with times as numbers, since zones have two names."""
    told = ({k: v.timestamp() if isinstance(v, datetime) else v for k, v in row.items()} for row in rows)
    return sorted(map(str, told))


NESTED = """river 1;
type R = {ts: i64, m: map<string, i64?>?, l: list<map<string, i64>>, r: {m: map<string, i64>, a: i64}?};
type N = {n: i64, r: R?};
input a: R by ts; output o: N;
var $n: i64 = 0;
operator number(x: R by ts; $n: i64) -> (y: N) { on x(r) { $n = $n + 1; emit y {n: $n, r: r}; } }
(o, $n) <- number(a, $n);
"""


def test_rows_stand_in_the_order_of_maps_and_records_may_be_missing(users: Any) -> None:
    """Spark has no order of maps: that of their entries is taken, however the rows are partitioned."""
    program = river.compile(NESTED, "river")
    maps: list[Any] = [None, {}, {"a": None}, {"a": 1}, {"a": 1, "b": 0}, {"b": -1}]
    lists: list[Any] = [[], [{}], [{"k": 1}], [{"k": 2}, {}]]
    records: list[Any] = [None, {"m": {}, "a": 2}, {"m": {"x": 0}, "a": 1}]
    rows = [{"ts": 1, "m": m, "l": l, "r": r} for m in maps for l in lists for r in records]
    kind = "ts long, m map<string, long>, l array<map<string, long>>, r struct<m map<string, long>, a long>"
    for other, count in ((False, 1), (True, 3)):
        frame = users.createDataFrame(rows[::-1] if other else rows, kind).repartition(count)
        if other:  # a dictionary would not do: PySpark has its own order of entries
            turned = "map_from_entries(reverse(map_entries(m))) as m"
            frame = frame.selectExpr(
                "ts", turned, "transform(l, m -> map_from_entries(reverse(map_entries(m)))) as l", "r"
            )
        found = program.on_spark({"a": frame})["o"].toArrow().to_pylist()
        assert [row["n"] for row in found] == [*range(1, len(rows) + 1)]
        assert [
            {
                name: dict(each) if name == "m" and each is not None else each
                for name, each in row["r"].items()
            }
            for row in found
        ] == [
            {name: dict(each) if name == "m" and each is not None else each for name, each in row.items()}
            for row in users.createDataFrame(rows, kind).toArrow().to_pylist()
        ]


TIED = """river 1;
type R = {ts: i64, s: string, l: list<string>, f: f64, m: map<string, f64>};
input a: R by ts; output o: {n: i64, s: string, f: f64};
var $n: i64 = 0;
operator number(x: R by ts; $n: i64) -> (y: {n: i64, s: string, f: f64}) {
  on x(r) { $n = $n + 1; emit y {n: $n, s: r.s, f: r.f}; }
}
(o, $n) <- number(a, $n);
"""


@pytest.mark.parametrize("by", ["s", "m", "l"])
def test_rows_that_spark_finds_equal_stand_in_one_order(users: Any, by: str) -> None:
    """It has one place for both zeros, also in maps, and for texts that differ in what their collation does not tell apart."""
    program = river.compile(TIED, "river")
    zeros = ("-0.0", "0.0", "1.0")
    expected = [(s, f) for f in zeros for s in "Aab"] if by == "m" else [(s, f) for s in "Aab" for f in zeros]
    rows = users.createDataFrame([(s, float(f)) for s, f in expected[::-1]], "s string, f double")
    frame = rows.coalesce(1).selectExpr(
        "1L as ts",
        "s collate UTF8_LCASE as s",
        "array(s collate UNICODE_CI) as l",
        "f",
        "map('k', f, 'j', 1.0d) as m",
    )
    found = sorted(map(tuple, program.on_spark({"a": frame}, order_by={"a": [by]})["o"].collect()))
    assert [(s, str(f)) for _, s, f in found] == expected


UNSIGNED = """river 1;
type R = {v: u64};
input a: R; output o: R;
operator same(x: R) -> (y: R) { on x(r) { emit y r; } }
(o) <- same(a);
"""


@pytest.mark.parametrize(
    ("number", "kind"),
    [("-1", "decimal(20, 0)"), ("-1", "bigint"), ("18446744073709551616", "decimal(20, 0)")],
)
def test_a_number_that_has_a_sign_or_is_too_large_is_told_of(number: str, kind: str, users: Any) -> None:
    program = river.compile(UNSIGNED, "river")
    good, wrong = (
        users.sql(f"select cast('{each}' as {type_}) as v")
        for each, type_ in (("18446744073709551615", "decimal(20, 0)"), (number, kind))
    )
    assert [row.v for row in program.on_spark({"a": good})["o"].collect()] == [2**64 - 1]
    with pytest.raises(Exception, match=r"error\[data-range\]: field `v`"):
        program.on_spark({"a": wrong})["o"].collect()


DATED = """
a: {ts: time; k: int; at: time} stream by ts;
b: {ts: time; k: int; at: time} stream by ts;
output o: relation = select a.k, b.ts as u from a[range 1 hour], b[range 1 hour] where a.k = b.k;
output p: relation = select a.at, a.k from a[range 30 hours], b[range 30 hours] where a.at = b.at;
output q: relation = select k, count(*) as n from b[range 1 day] group by k;
"""


@pytest.mark.parametrize("kinds", [("timestamp", "timestamp_ntz"), ("timestamp_ntz", "date")])
def test_times_of_several_types_and_zones_are_the_same_times(users: Any, kinds: tuple[str, str]) -> None:
    """What has no zone is in UTC, whatever zone the session shows: time goes on as far, and equal keys meet."""
    compiled = river.compile(DATED, "cql")
    day = datetime(2024, 3, 1, tzinfo=UTC)
    a = [
        {"ts": day + timedelta(days=n // 3), "k": n % 5, "at": day + timedelta(days=n % 4)} for n in range(9)
    ]
    b = [
        {"ts": day + timedelta(days=n // 2), "k": n % 4, "at": day + timedelta(days=n % 3)} for n in range(9)
    ]
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.adaptive.enabled": "false",
    }
    before = {name: users.conf.get(name) for name in settings}
    for name, value in settings.items():
        users.conf.set(name, value)
    try:
        frames = {}
        for name, rows, kind in zip("ab", (a, b), kinds, strict=True):
            frame = users.createDataFrame(rows, "ts timestamp, k long, at timestamp")
            frames[name] = frame.selectExpr(
                f"cast(ts as {kind}) as ts", "k", f"cast(at as {kind}) as at"
            ).cache()
            frames[name].count()
        users.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
        found = {name: frame.toArrow().to_pylist() for name, frame in compiled.on_spark(frames).items()}
    finally:
        for name, value in before.items():
            users.conf.set(name, value)
    expected = compiled.run({"a": a, "b": b})
    assert {name: in_any_order(rows) for name, rows in found.items()} == {
        name: in_any_order(expected[name].to_pylist()) for name in found
    }


def test_frames_that_do_not_fit_are_told_before_any_job(users: Any) -> None:
    compiled = river.compile(ONE, "cql")
    endless = users.readStream.format("rate").load().selectExpr("value as ts", "value as v")
    twice = users.createDataFrame([(1, 2, 3)], "ts long, v long, V long")
    months = users.sql("select 1L as ts, interval '1-2' year to month as v")
    for frame, order_by, code in (
        (endless, {}, "data-format"),
        (twice, {"s": ["V"]}, "data-column"),
        (months, {}, "data-type"),
    ):
        with pytest.raises(Rejected) as refused:
            compiled.on_spark({"s": frame}, order_by=order_by)
        assert [each.code for each in refused.value.diagnostics] == [code]
    assert "Spark's type `interval year to month` does not hold `i64`" in str(refused.value)


ONE = "s: {ts: int; v: int} stream by ts; output o: relation = select v from s[now];"


def test_a_row_of_a_frame_that_is_wrong_is_told_of_in_what_spark_says(users: Any) -> None:
    text = (
        HEAD
        + """operator div(x: R) -> (y: R) { on x(r) { emit y {k: div.trunc(6, r.v), s: r.s, v: 0}; } }
input a: R; output o: R; (o) <- div(a);"""
    )
    frame = users.createDataFrame([{"k": 1, "s": "a", "v": 0}])
    with pytest.raises(Exception, match=r"error\[trap-division-by-zero\]"):
        river.compile(text, "river").on_spark({"a": frame})["o"].toArrow()
