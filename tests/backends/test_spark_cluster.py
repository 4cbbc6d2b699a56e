"""A cluster of Spark on the loopback interface, whose Python has no River: what it is told, and what is sent there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

import river
from backends.spark import packaging
from tests.backends.spark_cluster import LOOPBACK, bare_python, cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LOG = ("examples/log_analyzer/query_log.szl", "logRecord=examples/log_analyzer/queries.csv")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def python(place: Path) -> str:
    """A Python that has nothing."""
    return bare_python(place / "bare")


@pytest.fixture(scope="module")
def master(place: Path) -> Iterator[str]:
    """The address of a cluster."""
    with cluster(place) as found:
        yield found.address


def finished(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of this Python, in the root of the repository."""
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **environment}
    )  # fmt: skip


DRIVER = """
import sys, json
from pyspark.sql import SparkSession
import river
from river.diagnostics import Rejected

builder = SparkSession.builder
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
for file in json.loads(sys.argv[2]):
    spark.sparkContext.addPyFile(file)
for program, inputs in json.loads(sys.argv[3]):
    compiled = river.load(program)
    try:
        found = compiled.run(inputs, backend="spark", workers=2)
    except Rejected as rejected:
        print("refused", [(each.code, each.message, [note.message for note in each.notes]) for each in rejected.diagnostics])
        break
    expected = compiled.run(inputs, backend="reference")
    for name, rows in expected.tables.items():
        told = [sorted(map(str, each.to_pylist())) for each in (found[name], rows)]
        print("agrees" if told[0] == told[1] and told[0] else "DIFFERS", program, name)
    for remark in (*found.warnings, *found.remarks):
        print("remark", remark.code)
spark.stop()
"""
EXAMPLES = [
    ("examples/flights/delays.cql", {"flights": "examples/flights/flights.csv"}),
    ("examples/continuous_log/origins.cql", {"requests": "examples/continuous_log/requests.csv"}),
    ("examples/fm_radio/fm_radio.str", {"input": "examples/fm_radio/signal.csv"}),
    ("examples/linear_road/tolls.cql", {"reports": "examples/linear_road/reports.csv"}),
    ("examples/log_analyzer/query_log.szl", {"logRecord": "examples/log_analyzer/queries.csv"}),
]


def driven(
    master: str, python: str, settings: dict[str, str], files: list[str], runs: list[object]
) -> list[str]:
    """What the driver prints."""
    import json

    known = {"spark.master": master, **LOOPBACK, **settings}
    told = [json.dumps(each) for each in (known, files, runs)]
    done = finished("-c", DRIVER, *told, PYSPARK_PYTHON=python)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def test_the_examples_run_with_what_was_packaged(master: str, python: str, place: Path) -> None:
    """Though the executors' Python has nothing; as machine code."""
    archive = packaging.archive(place / "package", python)
    settings = {"spark.archives": f"{archive}#river"}
    told = driven(master, "./river/bin/python", settings, [], [*EXAMPLES])
    assert {line.split()[0] for line in told} == {"agrees"}, told
    assert {line.split()[1] for line in told} == {program for program, _ in EXAMPLES}


def test_a_program_is_submitted(master: str, python: str, place: Path) -> None:
    program, data = LOG
    settings = [word for key, value in LOOPBACK.items() for word in ("--spark-conf", f"{key}={value}")]
    done = finished(
        "-m", "river", "submit", program, "--in", data, "--out", f"queryOrigins={place}/origins/",
        "--out", f"queryTargets={place}/targets.parquet", "--spark-master", master, "--package", str(place / "package"),
        "--python", python,
        *settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "2,000 items" in done.stdout
    expected = river.load(str(ROOT / program)).run({"logRecord": str(ROOT / data.partition("=")[2])})
    (file,) = (place / "origins").iterdir()
    assert pq.read_table(file).to_pylist() == expected["queryOrigins"].to_pylist()
    assert pq.read_table(place / "targets.parquet").to_pylist() == expected["queryTargets"].to_pylist()


def test_executors_without_river_are_told_of(master: str, python: str) -> None:
    (told,) = driven(master, python, {}, [], [EXAMPLES[0]])
    assert told.startswith("refused [('spark-no-river', 'the executors of Spark run")
    assert "it has no `river`, `backends`, `attrs`" in told


@pytest.fixture(scope="module")
def libraries(place: Path) -> str:
    """A folder with all that River needs, and not River."""
    folder = place / "libraries"
    folder.mkdir()
    for found in packaging.needed():
        if found.name != packaging.OWN:
            for top in {file.parts[0] for file in found.files or () if ".." not in file.parts}:
                (folder / top).symlink_to(str(found.locate_file(top)))
    return str(folder)


@pytest.mark.parametrize("metadata", [False, True])
def test_river_in_a_zip_file(master: str, python: str, place: Path, libraries: str, metadata: bool) -> None:
    """Runs, or is refused by what it lacks."""
    file = place / f"river{metadata:d}.zip"
    with zipfile.ZipFile(file, "w") as out:
        for package in packaging.PACKAGES:
            for path in sorted((ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    out.write(path, path.relative_to(ROOT))
        for found in (distribution(packaging.OWN).files or ()) if metadata else ():
            if found.parts[0].endswith(".dist-info"):
                out.write(str(found.locate()), str(found))
    settings = {"spark.executorEnv.PYTHONPATH": libraries}
    told = driven(master, python, settings, [str(file)], [EXAMPLES[0], EXAMPLES[4]])
    if metadata:
        assert {line.split()[0] for line in told} == {"agrees"}, told
    else:
        assert len(told) == 1
        assert "spark-no-river" in told[0]
        assert "files without their metadata" in told[0]
