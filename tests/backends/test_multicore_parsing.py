"""Files that workers parse block by block, for a program with one input: the results of the reference, row for row, however many.

`small` cuts files into many small blocks.
"""

from __future__ import annotations

from threading import current_thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore import BACKEND, parsing
from backends.multicore.assembly import assemble
from backends.multicore.compiled import compiled
from backends.multicore.scheduling.task import Outcome
from backends.native.ingest import RecordBlock
from river.backend import Options
from river.diagnostics import Rejected
from river.driver import Reading
from river.io.errors import OnError, Refusals
from river.io.sources import open_source
from river.lang.evaluate import Trap
from river.platform import Platform
from river.testing.laws import REGIONS, after

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from backends.firing.ports import Out
    from backends.multicore.plan import Plan
    from backends.multicore.scheduling.task import Task
    from river.driver import Compiled
    from river.ingress import Turn

COUNTS = """
requests: { ts: int; n: int; origin: string } stream by ts;
counts: relation = select origin, count(*) as n from requests[range 3] group by origin;
answers: stream by ts
  = rstream(select r.origin, 10 / r.n as q, c.n from requests[now] as r, counts as c where r.origin = c.origin);
"""


@pytest.fixture
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "BLOCK", 64)
        yield


@pytest.fixture(scope="module")
def counts() -> Compiled:
    return river.compile(COUNTS, "cql")


def written(path: Path, lines: dict[int, str], *, rows: int = 120) -> Path:
    """A file of requests, in place of some of them other lines."""
    usual = [f'{i // 4},{i % 5 + 1},"o{i * i % 7}"' for i in range(rows)]
    path.write_text("\n".join(("ts,n,origin", *(lines.get(i, line) for i, line in enumerate(usual)))) + "\n")
    return path


def ran(program: Compiled, path: Path, **options: Any) -> Any:
    """What there is to see of a run, or how it ended."""
    try:
        found = program.run({"requests": path}, **options)
    except Rejected as rejected:
        return [(each.code, each.message, each.place) for each in rejected.diagnostics]
    return found["answers"].to_pylist(), found.read, [w.message for w in found.warnings]


LINES: dict[str, dict[int, str]] = {
    "no": {},
    "a bad row": {50: "x", 90: "y"},
    "a falling key": {50: '3,1,"o"'},
    "a quote that stays open": {50: '12,1,"o'},
    "a line feed in quotes": {50: '12,1,"o\no"'},
    "a trap": {50: '12,0,"o"', 20: '5,0,"o"'},
    "a trap before a bad row": {40: '10,0,"o"', 90: "x"},
    "a bad row before a trap": {40: "x", 90: '22,0,"o"'},
}  # fmt: skip


@pytest.mark.some(4)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", LINES)
def test_any_number_of_workers_sees_what_the_reference_sees(
    tmp_path: Path, counts: Compiled, what: str
) -> None:
    path = written(tmp_path / "requests.csv", LINES[what])
    for options in ({"on_error": "stop"}, {"on_error": "skip"}, {"lateness": 30}):
        wanted = ran(counts, path, backend="reference", **options)
        for workers in (2, 5):
            assert ran(counts, path, workers=workers, experiment={"gate": "open"}, **options) == wanted


@pytest.mark.usefixtures("small")
def test_dead_letters_stand_in_the_order_of_the_file(tmp_path: Path, counts: Compiled) -> None:
    path = written(tmp_path / "requests.csv", dict.fromkeys(range(3, 120, 17), "x"))
    letters = [tmp_path / "one", tmp_path / "two"]
    ran(counts, path, backend="reference", on_error=f"dead-letter={letters[0]}")
    ran(counts, path, workers=3, experiment={"gate": "open"}, on_error=f"dead-letter={letters[1]}")
    assert letters[0].read_text() == letters[1].read_text() != ""


def test_a_line_that_is_too_long_to_be_read_natively_is_read_after_all_before_it(
    tmp_path: Path, counts: Compiled
) -> None:
    path = written(tmp_path / "requests.csv", {80: f"20,1,{'long ' * 900_000}", 110: "x"})
    for on_error in ("skip", "stop"):
        wanted = ran(counts, path, workers=1, on_error=on_error)
        assert ran(counts, path, workers=3, experiment={"gate": "open"}, on_error=on_error) == wanted


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Who parsed blocks."""
    found: set[str] = set()
    parse = RecordBlock.parse

    def noted(self: RecordBlock) -> object:
        found.add(current_thread().name[:12])
        return parse(self)

    monkeypatch.setattr(RecordBlock, "parse", noted)
    return found


@pytest.mark.parametrize(
    ("rows", "workers", "options", "who"),
    [
        (120_000, 2, {}, "river-worker"),
        (120_000, 1, {}, "river-reader"),
        (120, 2, {}, "river-reader"),
        (120_000, 2, {"checkpoint": "state"}, "river-reader"),
    ],
)
def test_workers_parse_what_has_several_blocks(
    tmp_path: Path, counts: Compiled, threads: set[str], rows: int, workers: int, options: Any, who: str
) -> None:
    path = written(tmp_path / "requests.csv", {}, rows=rows)
    if options:
        options = {name: str(tmp_path / folder) for name, folder in options.items()}
    counts.run({"requests": path}, {"answers": str(tmp_path / "out.csv")}, workers=workers, **options)
    assert who in threads
    assert threads <= {who, "river-parser"}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", ["trap", "row"])
def test_nothing_behind_an_error_is_read_for_long(tmp_path: Path, counts: Compiled, error: str) -> None:
    path = written(tmp_path / "requests.csv", {60: '15,0,"o"' if error == "trap" else "x"}, rows=40_000)
    plan, reading, read = parts(counts, path)
    with pytest.raises((Trap, Rejected)):
        BACKEND.run(plan, {"requests": reading}, {})
    assert sum(read) < 20_000 if error == "trap" else sum(read) == 60


def parts(counts: Compiled, path: Path) -> tuple[Plan, Reading, list[int]]:
    """A plan of several workers, what reads the file, and how many rows it has read, part by part."""
    options = Options(workers=4, batch=16, bound=16, experiment={"gate": "open"})
    plan = BACKEND.plan(after(counts.graph, REGIONS, 4), Platform(4), options)
    read: list[int] = []
    kind = counts.graph.queues["requests"].type
    source = open_source(path, kind, name="requests", on_error=Refusals(OnError()), by="ts")
    return plan, Reading(source, read.append), read


class Worker:
    """Takes blocks one after another, in the order of the file, and goes on with them in any order."""

    wanted = True

    def __init__(self) -> None:
        self.errors: list[Rejected] = []

    def trapped(self, task: Task, trap: Trap) -> None:
        raise NotImplementedError

    def refused(self, error: Rejected) -> None:
        self.errors.append(error)

    def release(self, task: Task) -> None:
        pass

    def sending(self, turn: Turn, entries: Mapping[str, Out]) -> None:
        pass


@pytest.mark.usefixtures("small")
def test_rows_that_are_parsed_before_a_bad_one_in_front_of_them_are_not_sent(
    tmp_path: Path, counts: Compiled
) -> None:
    plan, reading, read = parts(counts, written(tmp_path / "requests.csv", {0: "x"}))
    task, _ = assemble(plan, compiled(plan), {}, None, None, lambda: None).reading
    worker = Worker()
    assert task.open({"requests": reading}, {})
    taken = []
    while task.step(worker) is Outcome.SPLIT:
        block: Any = task.detached
        taken.append((block.parse(), task.ticket))
    assert len(taken) > 2
    for parsed, ticket in reversed(taken):
        assert not worker.errors
        read_before: Any = SimpleNamespace(parse=lambda parsed=parsed: parsed)
        task.work(read_before, ticket, worker)
    task.shut()
    assert [each.code for error in worker.errors for each in error.diagnostics] == ["data-missing-field"]
    assert sum(read) == 0
