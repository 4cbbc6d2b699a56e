"""Programs through Spark Connect: the server runs on a cluster on the loopback interface whose Python has no River."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")
pytest.importorskip("grpc", reason="the extra `connect` is not installed")

from backends.spark import packaging
from tests.backends.spark_cluster import bare_python, cluster, connect_server
from tests.backends.test_spark_cluster import EXAMPLES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[str]:
    """The address of a server."""
    with cluster(place) as spark, connect_server(place, spark.address, bare_python(place / "bare")) as found:
        yield found


@pytest.fixture(scope="module")
def archive(server: str, place: Path) -> str:
    return f"{packaging.archive(place / 'package', str(place / 'bare' / 'bin' / 'python3'))}#river"


def told(script: str, server: str, *words: str) -> list[str]:
    """What a client prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "SPARK_REMOTE": server},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


RUNS = """
import json, sys, river
archive, programs = sys.argv[1], json.loads(sys.argv[2])
settings = {"spark.archives": archive, "spark.pyspark.python": "./river/bin/python"}
for program, inputs in programs:
    compiled = river.load(program)
    found = compiled.run(inputs, backend="spark", workers=2, settings=settings)
    expected = compiled.run(inputs, backend="reference")
    for name, rows in expected.tables.items():
        told = [sorted(map(str, each.to_pylist())) for each in (found[name], rows)]
        print("agrees" if told[0] == told[1] and told[0] else "DIFFERS", program)
    for remark in (*found.warnings, *found.remarks):
        print("remark", remark.code)
"""


def test_the_examples_run_with_what_was_packaged(server: str, archive: str) -> None:
    found = told(RUNS, server, archive, json.dumps(EXAMPLES))
    assert {line.split()[0] for line in found} == {"agrees"}, found
    assert {line.split()[1] for line in found} == {program for program, _ in EXAMPLES}


WITHOUT = """
import river
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
program = river.load("examples/fm_radio/fm_radio.str")
((name, _),), ((output, _),) = program.inputs.items(), program.outputs.items()
frame = spark.createDataFrame([(0.5, n) for n in range(9)], "value float, n int")
found = program.on_spark({name: frame}, order_by={name: "n"})[output]
try:
    found.collect()
except Exception as error:
    print(*str(error).splitlines(), sep="\\n")
"""


def test_a_server_without_river_says_what_to_do(server: str) -> None:
    found = told(WITHOUT, server)
    (at,) = (i for i, line in enumerate(found) if line.startswith("RuntimeError: error[spark-no-river]"))
    assert "which cannot run River: it has no river, backends, " in found[at]
    assert "`river submit --package FOLDER`" in found[at + 1]
    assert "spark.addArtifacts" in found[at + 1]


FRAMES = """
import os, sys, tempfile, river
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from river.diagnostics import Rejected

spark = SparkSession.builder.getOrCreate()
spark.addArtifacts(sys.argv[1], archive=True)
spark.conf.set("spark.sql.execution.pyspark.python", "./river/bin/python")
asked = []
for name in ("_execute", "_execute_and_fetch_as_iterator"):
    def call(self, *given, name=name, before=getattr(SparkConnectClient, name), **more):
        asked.append(name)
        return before(self, *given, **more)
    setattr(SparkConnectClient, name, call)
for program, data in (("examples/log_analyzer/query_log.szl", "examples/log_analyzer/queries.csv"),
                      ("examples/continuous_log/origins.cql", "examples/continuous_log/requests.csv")):
    compiled = river.load(program)
    (name,) = compiled.graph.inputs
    expected = compiled.run({name: data}, backend="reference")
    frame = spark.read.option("header", True).option("inferSchema", True).csv(os.path.abspath(data))
    asked.clear()
    found = compiled.on_spark({name: frame})
    print("lazy" if not asked else asked)
    for output, rows in expected.tables.items():
        told = [sorted(map(str, each.to_pylist())) for each in (found[output].toArrow(), rows)]
        print("agrees" if told[0] == told[1] and told[0] else ("DIFFERS", told[0][:3], told[1][:3]))
    assert asked
numbered = river.compile('''river 1; type R = {ts: i64, m: map<string, i64>}; type N = {n: i64, m: map<string, i64>};
    input a: R by ts; output o: N; var $n: i64 = 0;
    operator number(x: R by ts; $n: i64) -> (y: N) { on x(r) { $n = $n + 1; emit y {n: $n, m: r.m}; } }
    (o, $n) <- number(a, $n);''', "river")
maps = [{"b": 2, "a": 1}, {"a": 0}, {}]
frame = spark.createDataFrame([(1, each) for each in maps], "ts long, m map<string, long>").repartition(2)
asked.clear()
rows = numbered.on_spark({"a": frame})["o"]
print("lazy" if not asked else asked)
told = [dict(row["m"]) for row in sorted(rows.toArrow().to_pylist(), key=lambda row: row["n"])]
print("agrees" if told == maps[::-1] else ("DIFFERS", told))
stream = spark.readStream.format("rate").load().selectExpr("value as ts", "'a' as origin")
with tempfile.TemporaryDirectory() as folder:
    keeping, outputs = folder + "/s", {each: folder + "/o/" for each in compiled.outputs}
    for go in (
        lambda: compiled.write_stream({name: stream}, outputs, checkpoint=keeping).wait(),
        lambda: compiled.run({name: river.follow(folder + "/")}, outputs, backend="spark", checkpoint=keeping),
    ):
        try:
            go()
        except Rejected as rejected:
            (found,) = rejected.diagnostics
            print(found.code, "Spark Connect" in found.message or "SPARK_REMOTE" in found.message)
"""


def test_dataframes_of_a_server(server: str, archive: str) -> None:
    """Plans are made without a job; runs in epochs, which need a driver here, are refused."""
    found = told(FRAMES, server, archive)
    assert found[-2:] == ["run-checkpoint True"] * 2, found
    assert {*found[:-2]} == {"lazy", "agrees"}, found
