"""Blocks of a file that other threads parse while the reader goes on: rows in order, whoever parsed them.

That is so where the reader puts several inputs together; the one of a program that has one is read by workers, see
`test_multicore_parsing.py`.
"""

from __future__ import annotations

import random
from threading import Lock, Semaphore, current_thread
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore import inputs
from backends.multicore.scheduling.scheduler import Scheduler
from backends.native.ingest import RecordBlock

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """river 1;
input rows: {n: i64, text: string};
output out: {n: i64, text: string};
input others: i64;
operator ignored(x: i64) -> () { on x(v) { } }
operator keep(rows: {n: i64, text: string}) -> (out: {n: i64, text: string}) { on rows(r) { if r.n & 3 != 1 { emit out r; } } }
(out) <- keep(rows);
() <- ignored(others);
"""
ROWS = 130_000  # some four blocks


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = (f"{n},the text of row {n} of them all" for n in range(ROWS))
    path.write_text("\n".join(("n,text", *lines)) + "\n")
    return path


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Who parsed blocks. How many workers are free is a matter of chance."""
    found: set[str] = set()
    rng = random.Random(7)
    parse = RecordBlock.parse

    def noted(self: RecordBlock) -> object:
        found.add(current_thread().name.rsplit("_", 1)[0])
        return parse(self)

    monkeypatch.setattr(inputs, "IDLE", -1.0)
    monkeypatch.setattr(Scheduler, "spare", lambda _: rng.randrange(4))
    monkeypatch.setattr(RecordBlock, "parse", noted)
    return found


@pytest.mark.parametrize("workers", [2, 4])
def test_helpers_parse_and_nothing_changes(file: Path, threads: set[str], workers: int) -> None:
    found = river.compile(PROGRAM, "river").run({"rows": str(file), "others": []}, workers=workers)
    numbers = [n for n in range(ROWS) if n & 3 != 1]
    assert found["out"].to_pydict() == {
        "n": numbers,
        "text": [f"the text of row {n} of them all" for n in numbers],
    }
    assert threads == {"river-reader", "river-parser"}


def test_a_bad_row_ends_the_run_behind_the_rows_before_it(
    file: Path, threads: set[str], tmp_path: Path
) -> None:
    lines = file.read_text().splitlines()
    lines[90_000] = "none,of them"
    file.write_text("\n".join(lines) + "\n")
    out = tmp_path / "out.jsonl"
    with pytest.raises(river.Rejected, match=r"rows\.csv:90001:1"):
        river.compile(PROGRAM, "river").run({"rows": str(file), "others": []}, {"out": str(out)}, workers=3)
    assert threads == {"river-reader", "river-parser"}


def test_one_worker_has_no_helpers(file: Path, threads: set[str]) -> None:
    assert (
        len(river.compile(PROGRAM, "river").run({"rows": str(file), "others": []}, workers=1)["out"])
        == ROWS * 3 // 4
    )
    assert threads == {"river-reader"}


@pytest.mark.parametrize("said", ["@Parallel(1)", "@Parallel(2) @Region(s, seqno)", ""])
def test_helpers_parse_where_the_region_of_the_input_says_so(
    file: Path, threads: set[str], said: str
) -> None:
    program = river.compile(PROGRAM.replace("input rows", f"{said} input rows"), "river")
    found = program.run({"rows": str(file), "others": []}, workers=2, optimize=said == "@Parallel(1)")
    assert len(found["out"]) == ROWS * 3 // 4
    assert ("river-parser" in threads) == ("Region" in said)


@pytest.mark.slow
def test_no_more_is_read_ahead_than_there_are_helpers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block is parsed slowly: the others are not read to the end of the file meanwhile."""
    path, rows = tmp_path / "long.csv", 450_000
    path.write_text(
        "n,text\n" + "\n".join(f"{n},the text of row {n} of them all" for n in range(rows)) + "\n"
    )
    others, slow, ahead = Semaphore(0), Lock(), list[int]()
    parse = RecordBlock.parse

    def late(self: RecordBlock) -> object:
        if current_thread().name.startswith("river-parser") and slow.acquire(blocking=False):
            ahead.append(sum(iter(lambda: others.acquire(timeout=0.3), False)))
        else:
            others.release()
        return parse(self)

    monkeypatch.setattr(inputs, "IDLE", -1.0)
    monkeypatch.setattr(Scheduler, "spare", lambda _: 9)
    monkeypatch.setattr(RecordBlock, "parse", late)
    found = river.compile(PROGRAM, "river").run({"rows": str(path), "others": []}, workers=3)
    assert found["out"].num_rows == rows * 3 // 4
    assert ahead[0] <= 3
