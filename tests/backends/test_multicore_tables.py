"""Tables that workers read turn by turn, for a program with one input: the results of the reference, row for row."""

from __future__ import annotations

from threading import current_thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import pyarrow as pa
import pyarrow.parquet as pq

import river
from backends.multicore import BACKEND
from backends.multicore.assembly import assemble
from backends.multicore.compiled import compiled
from backends.multicore.scheduling.task import Outcome
from backends.native.ingest import tables
from river.backend import Options
from river.diagnostics import Rejected
from river.driver import Reading
from river.io.sources import open_source
from river.lang.evaluate import Trap
from river.platform import Platform
from river.testing.laws import REGIONS, after

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from river.driver import Compiled

SUMS = """
requests: { ts: int; n: int; origin: string } stream by ts;
answers: stream by ts = istream(select origin, sum(10 / n) as q from requests[range 3] group by origin);
"""

GAIN = """
float->float pipeline Main { add Scale; add Mean; }
float->float filter Scale { work pop 1 push 1 { push(2 * pop()); } }
float->float filter Mean { work peek 8 pop 2 push 1 { push(peek(0) + peek(7)); pop(); pop(); } }
"""


@pytest.fixture(scope="module")
def sums() -> Compiled:
    return river.compile(SUMS, "cql")


def rows(count: int, **others: Any) -> dict[str, list[Any]]:
    """Columns of requests, with other values in some rows: by name of the column and number, as `ts_50=3`."""
    found: dict[str, list[Any]] = {
        "ts": [i // 4 for i in range(count)],
        "n": [i % 5 + 1 for i in range(count)],
        "origin": [f"o{i * i % 7}" for i in range(count)],
    }
    for place, value in others.items():
        name, _, row = place.partition("_")
        found[name][int(row)] = value
    return found


def in_file(path: Path, table: pa.Table, size: int = 50) -> Path:
    """The table as an Arrow file of record batches of so many rows."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=size)
    return path


def ran(program: Compiled, given: Any, **options: Any) -> Any:
    """What there is to see of a run, or how it ended."""
    try:
        found = program.run({"requests": given}, **options)
    except Rejected as rejected:
        return [(each.code, each.message, each.place) for each in rejected.diagnostics]
    except Trap as trap:
        return trap.code
    return found["answers"].to_pylist(), found.read, [w.message for w in found.warnings]


ROWS: dict[str, dict[str, Any]] = {
    "no": {},
    "a missing value": {"n_50": None, "ts_90": None},
    "a falling key": {"ts_50": 3},
    "a trap": {"n_50": 0, "n_20": 0},
    "a trap before a missing value": {"n_40": 0, "n_90": None},
    "a missing value before a trap": {"n_40": None, "n_90": 0},
}


@pytest.mark.some(4)
@pytest.mark.parametrize("what", ROWS)
def test_any_number_of_workers_sees_what_the_reference_sees(
    tmp_path: Path, sums: Compiled, what: str
) -> None:
    table = pa.table(rows(120, **ROWS[what]))
    path = in_file(tmp_path / "requests.arrow", table)
    for options in ({"on_error": "stop"}, {"on_error": "skip"}, {"lateness": 30}):
        for given in (path, table):
            wanted = ran(sums, given, backend="reference", **options)
            for workers in (2, 5):
                found = ran(sums, given, workers=workers, batch=7, experiment={"gate": "open"}, **options)
                assert found == wanted


@pytest.mark.parametrize("bound", [1, 64])
def test_there_is_room_for_what_is_sent(tmp_path: Path, sums: Compiled, bound: int) -> None:
    path = in_file(tmp_path / "requests.arrow", pa.table(rows(4000)))
    wanted = ran(sums, path, workers=1)
    for workers in (2, 5):
        options: dict[str, Any] = {"experiment": {"gate": "open"}, "batch": 16, "bound": bound}
        assert ran(sums, path, workers=workers, **options) == wanted


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who made columns of record batches, one after the other."""
    found: list[str] = []
    made = tables.from_arrow

    def noted(*args: Any) -> Any:
        found.append(current_thread().name[:12])
        return made(*args)

    monkeypatch.setattr(tables, "from_arrow", noted)
    return found


WAYS: dict[str, tuple[Callable[[pa.Table, Path], Any], str]] = {
    "a file": (lambda table, folder: in_file(folder / "r.arrow", table, 8192), "river-worker"),
    "a table": (lambda table, _: table, "river-worker"),
    "record batches": (lambda table, _: table.to_batches(8192), "river-worker"),
    "a file that is decoded": (lambda table, folder: in_parquet(folder / "r.parquet", table), "river-reader"),
    "a stream": (lambda table, _: table.to_reader(8192), "river-reader"),
    "few rows": (lambda table, _: table[:500], "river-reader"),
}


def in_parquet(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("way", WAYS)
def test_workers_read_tables_that_nobody_waits_for(
    tmp_path: Path, sums: Compiled, threads: list[str], way: str
) -> None:
    given, who = WAYS[way]
    sums.run({"requests": given(pa.table(rows(100_000)), tmp_path)}, {}, workers=2)
    assert set(threads) == {who}


@pytest.mark.parametrize(("workers", "kept"), [(1, False), (2, True)])
def test_one_worker_or_one_whose_state_is_kept_does_not_read(
    tmp_path: Path, sums: Compiled, threads: list[str], workers: int, kept: bool
) -> None:
    path = in_file(tmp_path / "requests.arrow", pa.table(rows(100_000)), 8192)
    state = str(tmp_path / "state") if kept else None
    sums.run({"requests": path}, {"answers": str(tmp_path / "out.csv")}, workers=workers, checkpoint=state)
    assert set(threads) == {"river-reader"}


@pytest.mark.parametrize("suffix", ["raw", "wav"])
def test_samples_are_read_by_workers(tmp_path: Path, threads: list[str], suffix: str) -> None:
    program = river.compile(GAIN, "streamit")
    (name,), (out,) = program.inputs, program.outputs
    table = pa.table({"value": pa.array([i % 1000 / 1000 for i in range(600_000)], pa.float32())})
    path, ends = tmp_path / f"in.{suffix}", []
    river.compile("float->float filter Same { work pop 1 push 1 { push(pop()); } }", "streamit").run(
        {"input": table}, {"output": str(path)}
    )
    threads.clear()
    for workers in (1, 2):
        ends.append(tmp_path / f"out{workers}.raw")
        program.run({name: path}, {out: str(ends[-1])}, workers=workers)
    assert set(threads) == {"river-reader", "river-worker"}
    assert ends[0].read_bytes() == ends[1].read_bytes() != b""


@pytest.mark.parametrize("wrong", [{"n_503": 0}, {"ts_503": 3}])
def test_nothing_behind_an_error_is_read_for_long(
    tmp_path: Path, sums: Compiled, threads: list[str], wrong: dict[str, Any]
) -> None:
    path = in_file(tmp_path / "requests.arrow", pa.table(rows(40_000, **wrong)), 100)
    options: dict[str, Any] = {"experiment": {"gate": "open"}, "batch": 16, "bound": 16}
    with pytest.raises((Trap, Rejected)):
        sums.run({"requests": path}, {}, workers=4, **options)
    assert set(threads) == {"river-worker"}
    assert len(threads) < 1000


def test_no_more_is_sent_than_there_is_room_for(tmp_path: Path, sums: Compiled) -> None:
    options = Options(workers=4, batch=16, bound=40, experiment={"gate": "open"})
    plan = BACKEND.plan(after(sums.graph, REGIONS, 4), Platform(4), options)
    read: list[int] = []
    path = in_file(tmp_path / "requests.arrow", pa.table(rows(4000)))
    source = open_source(path, sums.graph.queues["requests"].type, name="requests", by="ts", batch=16)
    parts = assemble(plan, compiled(plan), {}, None, None, lambda: None)
    _, task = parts.reading
    control: Any = SimpleNamespace(wanted=True, sending=lambda *_: None)
    assert task.open({"requests": Reading(source, read.append)}, {})
    assert task.step(control) is Outcome.FULL
    assert 40 <= sum(read) <= 200
    assert task.step(control) is Outcome.FULL  # nobody has taken anything
    assert sum(read) <= 200
    task.shut()
