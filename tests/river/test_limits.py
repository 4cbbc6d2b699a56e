"""`--time` and `--memory`: what takes more ends in words, and leaves nothing half-written."""

from __future__ import annotations

import mmap
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from river import compile as river_compile
from river.diagnostics import InternalError, Rejected
from river.lang import memory
from river.platform import here

if TYPE_CHECKING:
    from pathlib import Path

LOOP = """river 1; input t: {x: i64}; output o: {x: i64};
operator f(t: {x: i64}) -> (o: {x: i64}) {
  on t(r) { emit o r; var n = 0; while r.x >= 9 { n = n +% 1; } emit o {x: n}; }
}
(o) <- f(t);
"""
GROW = """river 1; input t: {x: i64}; output o: {x: i64}; var $l: list<list<i64>> = [];
operator f(t: {x: i64}; $l: list<list<i64>>) -> (o: {x: i64}) {
  on t(r) { emit o r; push($l, fill(r.x, 1000000)); }
}
(o, $l) <- f(t, $l);
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loop.river").write_text(LOOP)
    (tmp_path / "grow.river").write_text(GROW)
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"{i}\n" for i in range(1000)))
    (tmp_path / "o.csv").write_text("before")
    return tmp_path


def river(folder: Path, *argv: str, script: str = "from river.cli import run; run()") -> tuple[int, str, str]:
    call = (sys.executable, "-c", script, *argv)
    found = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    return found.returncode, found.stdout, found.stderr


def unchanged(folder: Path) -> bool:
    names = sorted(path.name for path in folder.iterdir())
    return (
        names == ["grow.river", "loop.river", "o.csv", "t.csv"] and (folder / "o.csv").read_text() == "before"
    )


RUN = ("--in", "t=t.csv", "--out", "o=o.csv", "-q")


@pytest.mark.parametrize("native", ["--native", pytest.param("--no-native", marks=pytest.mark.slow)])
def test_a_command_that_takes_too_long_ends(folder: Path, native: str) -> None:
    status, out, err = river(folder, "run", "loop.river", *RUN, native, "--time", "1s")
    assert (status, out) == (124, "")
    assert err == "error[run-time]: the command took longer than `--time 1s`\n  = help: give it more\n"
    assert unchanged(folder)


def test_what_does_not_listen_is_ended_with_its_process(folder: Path) -> None:
    """The main thread waits in C for ever, and has begun an output."""
    script = """if True:
        import ctypes, os
        from river.cli import execution, run, signals
        from river.io.atomic import AtomicOutput
        def wait(*_, **__):
            output = AtomicOutput("o.csv")
            output.write("half")
            assert any(name.endswith(".part") for name in os.listdir("."))
            mutex = ctypes.create_string_buffer(64)
            for _ in range(2):
                ctypes.CDLL(None).pthread_mutex_lock(mutex)
        execution.program_of = wait
        signals.GRACE = 0.2
        run()
    """
    began = time.monotonic()
    status, out, err = river(folder, "run", "loop.river", *RUN, "--time", "1s", script=script)
    assert (status, out) == (124, "")
    assert err.startswith("error[run-time]: the command took longer than `--time 1s`\n")
    assert time.monotonic() - began >= 1
    assert unchanged(folder)


def test_a_command_in_time_is_left_alone(folder: Path) -> None:
    assert river(folder, "compile", "loop.river", "--time", "9m")[::2] == (0, "")


@pytest.mark.parametrize(
    "native",
    [
        pytest.param(
            "--native", marks=pytest.mark.skipif(sys.platform != "linux", reason="who limits is Linux")
        ),
        pytest.param("--no-native", marks=pytest.mark.slow),
    ],
)
def test_what_needs_more_memory_traps(folder: Path, native: str) -> None:
    status, out, err = river(folder, "run", "grow.river", *RUN, native, "--memory", "300M")
    assert (status, out) == (1, "")
    assert err.startswith("grow.river:2:1: error[trap-")
    assert "needs too much memory" in err
    assert unchanged(folder)


def test_too_little_memory_to_begin_is_told(folder: Path) -> None:
    status, out, err = river(folder, "run", "grow.river", *RUN, "--memory", "10M")
    assert (status, out, err.count("\n")) == (1, "", 2)
    assert "error[run-memory]: `--memory 10M` is too little to begin\n  = help: give it " in err


@pytest.mark.parametrize("refused", [["--memory", "1M"], ["--memory", "1T", "--workers", "none"]])
def test_limits_of_a_command_that_is_refused_end_with_it(folder: Path, refused: list[str]) -> None:
    import io
    import signal
    import threading

    from river.cli import main

    before = signal.getsignal(signal.SIGALRM)
    argv = ["run", str(folder / "grow.river"), *RUN, "--time", "5m", *refused]
    assert main(argv, io.StringIO(), io.StringIO(), io.StringIO()) == 1
    for thread in threading.enumerate():
        if thread.name == "river-time":
            thread.join(timeout=60)
            assert not thread.is_alive()
    assert signal.getsignal(signal.SIGALRM) is before
    assert memory.limited() is None


MADE = """if True:
    from river.cli import translation, run
    def made(*_, **__):
        {}
    translation.program_of = made
    run()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="who limits is Linux")
@pytest.mark.parametrize("size", ["150M", "300M"])
def test_arrow_data_that_need_more_memory_are_told(folder: Path, size: str) -> None:
    """Libraries and threads that get no memory end the process, or have it wait for ever."""
    numbers = np.arange(1_500_000)
    rows = pa.table({"ts": numbers, "x": numbers})
    parquet.write_table(rows, folder / "s.parquet", compression="none", use_dictionary=False)
    (folder / "all.cql").write_text(
        "s: { ts: int; x: int } stream by ts;\no: stream = select * from s where x >= 0;\n"
    )
    argv = ("run", "all.cql", "--in", "s=s.parquet", "--out", "o=o.parquet", "-q", "--memory", size)
    status, out, err = river(folder, *argv)
    if status:
        assert (status, out) == (1, "")
        assert "error[run-memory]" in err or "error[trap-arena-limit]" in err
        assert not (folder / "o.parquet").exists()
    else:
        assert parquet.read_metadata(folder / "o.parquet").num_rows == len(rows)


@pytest.mark.skipif(sys.platform != "linux", reason="who counts is Linux")
def test_who_may_have_little_memory_reads_without_threads_that_need_some(folder: Path) -> None:
    parquet.write_table(pa.table({"x": range(10), "s": ["a"] * 10}), folder / "s.parquet")
    script = """if True:
        import os, sys
        from river.io.columnar import parquet
        from river.io.batches import Origin
        from river.lang import memory
        from river.lang.types import I64, STRING, Record
        import pyarrow.parquet
        memory.limit(1 << 32)
        before = len(os.listdir("/proc/self/task"))
        with open("s.parquet", "rb") as file:
            tables = parquet(file, Record((("x", I64), ("s", STRING))), Origin("s"), 5)
            assert [part.data.num_rows for part in tables.parts(5)] == [5, 5]
        sys.exit(len(os.listdir("/proc/self/task")) - before)
    """
    assert river(folder, script=script) == (0, "", "")


@pytest.mark.parametrize(
    "made",
    [
        "bytearray(1 << 40)",
        'raise RuntimeError("can\'t start new thread")',
        "raise OSError(12, 'Cannot allocate memory', 'river')",
        "import pyarrow; raise pyarrow.ArrowException('Unknown error: Failed to launch worker thread: again')",
    ],
)
def test_memory_that_is_used_up_is_told(folder: Path, made: str) -> None:
    status, _, err = river(folder, "compile", "loop.river", "--memory", "1G", script=MADE.format(made))
    assert status == 1
    assert err.startswith("error[run-memory]: the command needs more memory than it may have\n")


@pytest.mark.parametrize("sort", [InternalError, ValueError])
def test_mistakes_that_mention_threads_are_no_lack_of_memory(sort: type[Exception]) -> None:
    assert memory.refused(RuntimeError("can't start new thread"))
    assert not memory.refused(sort("can't start new thread"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="who limits is Linux")
def test_the_system_keeps_the_limit_but_where_it_is_lifted() -> None:
    memory.limit(memory.taken() + (16 << 20))
    much = 1 << 30  # more than other tests' memory that is given back meanwhile; no page of it is touched
    try:
        with pytest.raises(MemoryError):
            bytes(much)
        with memory.lifted():
            assert len(bytes(much)) == much
        with pytest.raises(MemoryError):
            bytes(much)
        kept: list[bytes] = []

        @memory.lifted()
        def take() -> None:
            kept.append(b"x" * (memory.most() - memory.used() + (32 << 20)))

        with pytest.raises(MemoryError):  # what was too much is seen behind it
            take()
        assert kept
    finally:
        memory.limit(None)
    assert memory.limited() is None
    assert len(bytes(64 << 20)) == 64 << 20


def test_files_that_are_mapped_are_no_memory_of_the_process(tmp_path: Path) -> None:
    """Else an input that is mapped would leave no room for what is computed of it."""
    size = 64 << 20
    file = tmp_path / "zeros"
    file.write_bytes(bytes(size))
    before = memory.used()
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) == 0  # each page is read
        assert memory.used() < before + size // 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500M", 500 << 20),
        ("500MiB", 500 << 20),
        ("500mb", 500_000_000),
        ("2G", 2 << 30),
        ("1.5GiB", 3 << 29),
        ("1 T", 1 << 40),
        ("123456789", 123456789),
        ("7B", 7),
        ("9" * 40 + "T", (1 << 62) - 1),
        ("9" * 400, (1 << 62) - 1),
    ],
)
def test_sizes(text: str, size: int) -> None:
    from river.cli.quantities import SIZE

    assert SIZE.convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "M", "-5M", "5X", "5MM", "1e3M", "5iB", "NaN", "0x10", "5\n"])
def test_what_is_no_size(folder: Path, text: str) -> None:
    import io

    from river.cli import main

    err = io.StringIO()
    assert main(["compile", "q.cql", "--memory", text], io.StringIO(), io.StringIO(), err) == 1
    assert "error[usage]: Invalid value for '--memory'" in err.getvalue()


def test_spark_has_limits_of_its_own() -> None:
    pytest.importorskip("pyspark")
    from river import plugins
    from river.backend import Options

    plan = plugins.backend("spark").plan
    memory.limit(1 << 40)
    try:
        with pytest.raises(Rejected, match="run-memory"):
            plan(river_compile(LOOP, "river").graph, here(), Options())
    finally:
        memory.limit(None)
