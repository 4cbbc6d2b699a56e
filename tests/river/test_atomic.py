"""Outputs that appear whole or not at all, when their making is interrupted."""

from __future__ import annotations

import gc
import io
import os
import random
from array import array
from pathlib import Path

import pyarrow as pa
import pytest

from river.io.atomic import AHEAD, Output
from river.io.schema import arrow_schema
from river.io.sinks import ArrowSink, open_sink
from river.lang.types import F64


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
        Output(target)
    assert [name for name in seen if name.endswith(".part")] == seen != []
    del raised
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["b.csv"]
    assert target.read_text() == "before"


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
    output = Output(tmp_path / "out.csv")
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
    output = Output(tmp_path / "out.csv", in_place=True)
    output.write_bytes(bytes(2 * AHEAD))
    output.close()
    assert not begun


def test_a_system_that_cannot_be_asked_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("river.io.atomic._begin", lambda: None)
    output = Output(tmp_path / "out.csv")
    output.write_bytes(bytes(2 * AHEAD))
    output.close()
    assert (tmp_path / "out.csv").stat().st_size == 2 * AHEAD


def test_the_systems_own_function_is_called(tmp_path: Path) -> None:
    data = bytes(range(256)) * (AHEAD // 100)
    output = Output(tmp_path / "out.csv")
    for start in range(0, len(data), 100_000):
        output.write_bytes(data[start : start + 100_000])
    output.close()
    assert (tmp_path / "out.csv").read_bytes() == data
