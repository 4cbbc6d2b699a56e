"""Outputs that appear whole or not at all, when their making is interrupted."""

from __future__ import annotations

import errno
import fcntl
import gc
import io
import os
import random
import stat
import subprocess
import sys
import threading
from array import array
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from river.diagnostics import Rejected
from river.io.atomic import AHEAD, LARGE, AtomicOutput
from river.io.schema import arrow_schema
from river.io.sinks import ArrowSink, open_sink
from river.lang.types import F64


@pytest.mark.slow
@pytest.mark.usefixtures("others_are_no_garbage")
def test_nothing_is_left_of_an_output_that_nobody_has_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.csv"
    target.write_text("before")
    seen: list[str] = []

    def interrupted(path: Path, _: int) -> None:
        seen.append(path.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "chmod", interrupted)  # what comes right after the file was made
    with pytest.raises(KeyboardInterrupt) as raised:
        AtomicOutput(target)
    assert [name for name in seen if name.endswith(".part")] == seen != []
    del raised
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["b.csv"]
    assert target.read_text() == "before"


@pytest.mark.parametrize(("size", "by"), [(LARGE - 1, []), (LARGE, ["river-freeing"])])
def test_what_a_large_file_took_of_the_disk_is_given_back_beside_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, by: list[str]
) -> None:
    target, close = tmp_path / "out.csv", os.close
    with target.open("wb") as file:
        file.truncate(size)
    before, found = target.stat().st_ino, list[str]()

    def closing(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == before:
            found.append(threading.current_thread().name)
        close(descriptor)

    monkeypatch.setattr(os, "close", closing)
    output = AtomicOutput(target)
    output.write_bytes(b"new")
    output.close()
    for thread in threading.enumerate():
        if thread.name == "river-freeing":
            thread.join()
    assert target.read_bytes() == b"new"
    assert found == by


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the system was asked to write: where it begins, and how much."""
    found: list[tuple[int, int]] = []

    def begin(handle: int, start: int, size: int, how: int) -> int:
        assert os.fstat(handle).st_size + io.DEFAULT_BUFFER_SIZE >= start + size
        assert how == 2
        found.append((start, size))
        return -1

    monkeypatch.setattr("river.io.atomic._begin", lambda: begin)
    return found


def assert_one_after_the_other(found: list[tuple[int, int]], whole: int) -> None:
    ends = [0, *(start + size for start, size in found)]
    assert [start for start, _ in found] == ends[:-1]
    assert all(size >= AHEAD for _, size in found)
    assert whole - AHEAD < ends[-1] <= whole


@pytest.mark.parametrize("piece", [1000, AHEAD // 3, AHEAD, 3 * AHEAD])
def test_the_disk_gets_a_large_file_while_it_is_written(
    tmp_path: Path, begun: list[tuple[int, int]], piece: int
) -> None:
    whole = 5 * AHEAD // 2
    output = AtomicOutput(tmp_path / "out.csv")
    for start in range(0, whole, piece):
        output.write_bytes(bytes(min(piece, whole - start)))
    assert_one_after_the_other(begun, whole)
    output.close()
    assert (tmp_path / "out.csv").stat().st_size == whole


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_the_disk_gets_columns_while_they_are_written(
    tmp_path: Path, begun: list[tuple[int, int]], suffix: str
) -> None:
    path = tmp_path / f"out.{suffix}"
    values = array("d", random.Random(1).randbytes(8 * (AHEAD // 16)))
    with open_sink(str(path), F64, name="out") as sink:
        assert isinstance(sink, ArrowSink)
        for _ in range(5):
            sink.write_table(pa.record_batch([pa.array(values, pa.float64())], arrow_schema(F64)))
    assert_one_after_the_other(begun, path.stat().st_size)


def test_what_others_see_at_once_is_not_hurried(tmp_path: Path, begun: list[tuple[int, int]]) -> None:
    output = AtomicOutput(tmp_path / "out.csv", in_place=True)
    output.write_bytes(bytes(2 * AHEAD))
    output.close()
    assert not begun


def test_a_system_that_cannot_be_asked_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("river.io.atomic._begin", lambda: None)
    output = AtomicOutput(tmp_path / "out.csv")
    output.write_bytes(bytes(2 * AHEAD))
    output.close()
    assert (tmp_path / "out.csv").stat().st_size == 2 * AHEAD


def test_the_systems_own_function_is_called(tmp_path: Path) -> None:
    data = bytes(range(256)) * (AHEAD // 100)
    output = AtomicOutput(tmp_path / "out.csv")
    for start in range(0, len(data), 100_000):
        output.write_bytes(data[start : start + 100_000])
    output.close()
    assert (tmp_path / "out.csv").read_bytes() == data


# ------------------------------------------------------------------------------------------------ what is left over

KILLED = """
import os, signal, sys
from river.diagnostics import Rejected
from river.io.atomic import AtomicOutput
output = AtomicOutput(sys.argv[1])
output.write("half")
output.file.flush()
print("written", flush=True)
if sys.argv[2] == "wait":
    sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".part")


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    target = tmp_path / "out[1].csv"
    for other in ("out[1].csv.deadbeef.part", ".out[1].csv.short.part", ".out1.csv.deadbeef.part"):
        (tmp_path / other).write_text("not ours")
    others = left(tmp_path)
    command = [sys.executable, "-c", KILLED, str(target)]
    subprocess.run([*command, "die"], check=False, stdout=subprocess.DEVNULL)
    (tmp_path / ".out[1].csv.00000000.part").symlink_to(target)  # nobody makes links
    assert len(left(tmp_path)) == len(others) + 2
    output = AtomicOutput(target)
    assert len(left(tmp_path)) == len(others) + 2  # its own, and the link
    output.write("whole")
    output.close()
    (tmp_path / ".out[1].csv.00000000.part").unlink()
    assert left(tmp_path) == others
    assert target.read_text() == "whole"


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    command = [sys.executable, "-c", KILLED, str(target), "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"written\n"
        one, two = AtomicOutput(target), AtomicOutput(target)  # of one process, too
        assert len(left(tmp_path)) == 3
        one.write("one")
        one.close()
        two.write("two")
        two.close()
        assert len(left(tmp_path)) == 1
        process.stdin.close()
    AtomicOutput(target).abort()
    assert left(tmp_path) == []
    assert target.read_text() == "two"


@pytest.mark.slow
@pytest.mark.usefixtures("others_are_no_garbage")
@pytest.mark.parametrize("moment", ["before", "behind"])
def test_a_file_that_somebody_took_for_stale_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Between making a file and locking it there is a moment in which nobody knows that it is in use."""
    target = tmp_path / "out.csv"
    taken: list[str] = []
    lock = fcntl.flock

    def disturbed(descriptor: int, how: int) -> None:
        if not taken:
            taken.extend(left(tmp_path))
            if moment == "before":  # it is being removed now
                raise BlockingIOError
            (tmp_path / taken[0]).unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", disturbed)
    output = AtomicOutput(target)
    output.write("whole")
    output.close()
    assert target.read_text() == "whole"
    assert len(taken) == 1
    del output
    gc.collect()
    assert left(tmp_path) == []


def test_a_system_without_locks_writes_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    (tmp_path / ".out.csv.deadbeef.part").write_text("perhaps in use")
    monkeypatch.setattr(fcntl, "flock", none)
    output = AtomicOutput(tmp_path / "out.csv")
    output.write("whole")
    output.close()
    assert (tmp_path / "out.csv").read_text() == "whole"
    assert left(tmp_path) == [".out.csv.deadbeef.part"]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is brought to the disk, in that order, and when the target gets its name."""
    found: list[str] = []
    sync, replace = os.fsync, Path.replace

    def noted(descriptor: int) -> None:
        found.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        found.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "replace", renamed)
    return found


def test_the_name_of_an_output_is_brought_to_the_disk_behind_its_content(
    tmp_path: Path, synced: list[str]
) -> None:
    output = AtomicOutput(tmp_path / "out.csv")
    output.write("whole")
    output.close()
    assert synced == ["file", "name", "folder"]


def test_so_is_that_of_an_output_whose_state_is_kept(tmp_path: Path, synced: list[str]) -> None:
    output = AtomicOutput(tmp_path / "out.csv", in_place=True)
    for _ in range(2):
        output.write("row")
        output.settled()
    output.close()
    assert synced == ["file", "folder", "file"]


@pytest.mark.parametrize(("number", "fails"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_whose_names_cannot_be_brought_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, fails: bool
) -> None:
    sync = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    output = AtomicOutput(tmp_path / "out.csv")
    output.write("whole")
    with pytest.raises(Rejected, match="data-output") if fails else nullcontext():
        output.close()
    assert (tmp_path / "out.csv").read_text() == "whole"
