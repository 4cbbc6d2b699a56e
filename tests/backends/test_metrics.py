"""What a run tells of itself: counts agree with what was read, fired and written; and nothing waits for it."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import river
from backends.firing.queues import Queue
from backends.multicore import BACKEND
from river.backend import Options
from river.cli import main
from river.cli.terminal import Progress
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.metrics import Durations, table
from river.platform import Platform
from river.source import Source
from river.testing.laws import REGIONS, after

FLIGHTS = Path(__file__).parents[2] / "examples/flights"
SAME = "operator same(x: i64) -> (y: i64) { on x(v) { emit y v; } }"
PAIRS = "operator pairs(x: i64) -> (y: i64) { on x[peek 5, pop 2](w) { emit y w[0]; } }"
COPY = "operator copy(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }"
JOIN = "operator join(a: i64, b: i64) -> (y: i64) { phase 1 on a(v) { emit y v; } phase 1 on b(v) { emit y v; } }"
BACK = "operator back(x: i64, l: i64 = [1]) -> (y: i64) { phase 1 on x(v) { emit y v; } phase 1 on l(v) { emit y v; } }"
TURN = "operator turn(x: i64) -> (o: i64, l: i64) { on x[pop 2](w) { emit o w[0]; emit l w[1]; } }"

LINE = (SAME, "input xs: i64;", "output ys: i64;", "(q) <- same(xs);", "(ys) <- same(q);")
SHAPES = {
    "line": LINE,
    "windows": (PAIRS, "input xs: i64;", "output ys: i64;", "(ys) <- pairs(xs);"),
    "diamond": (
        COPY, SAME, JOIN, "input xs: i64;", "output ys: i64;", "(a, b) <- copy(xs);", "(c) <- same(a);",
        "(ys) <- join(c, b);",
    ),
    "loop": (BACK, TURN, "input xs: i64;", "output ys: i64;", "(q) <- back(xs, l);", "(ys, l) <- turn(q);"),
}  # fmt: skip


def metrics(lines, sources, sink=None, **options):
    program = verify(parse(Source("test.river", "\n".join(["river 1;", *lines]))), Library.of({}))
    found: list[int] = []
    program = after(program, REGIONS, options.get("workers") or 2)
    made = BACKEND.plan(program, Platform(2), Options(**options))
    summary = BACKEND.run(made, sources, {"ys": sink or found.extend})
    assert summary.metrics is not None
    return found, summary.metrics


@pytest.mark.some(8)
@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_counts_agree_with_what_happened(shape, workers, native):
    batches = [list(range(40)) for _ in range(50)]
    found, told = metrics(SHAPES[shape], {"xs": batches}, workers=workers, native=native, batch=20, bound=40)
    assert told.read == told.inputs["xs"] == 2000
    assert told.written == told.outputs["ys"].items == len(found)
    assert {one.native for one in told.operators.values()} == {native == "on"}
    for one in told.operators.values():
        assert one.fired >= one.batches > 0
        assert 1 <= one.workers <= workers
        assert one.seconds > 0
    assert (
        abs(sum(told.share(x.seconds) for x in (*told.operators.values(), *told.outputs.values())) - 1) < 1e-9
    )
    assert all(queue.length <= queue.peak for queue in told.queues.values())
    assert 0 < told.latency.median <= told.latency.p99 <= told.latency.most
    assert told.latency.count > 1


def test_who_waits_for_room_is_told(monkeypatch):
    waits = threading.Event()
    want = Queue.want

    def noted(self: Queue, now: float) -> None:
        want(self, now)
        if self.name == "ys":
            waits.set()

    def slow(_: list[int]) -> None:
        assert waits.wait(60)  # for the producer, which has no room as long as this item is not delivered
        time.sleep(0.01)

    monkeypatch.setattr(Queue, "want", noted)
    xs = [[i] for i in range(30)]
    _, told = metrics(LINE, {"xs": xs}, slow, workers=2, batch=1, bound=1, native="off")
    assert told.queues["ys"].peak == 1
    assert told.queues["ys"].blocked >= 0.01
    assert told.outputs["ys"].seconds > 0.2
    assert told.latency.most >= 0.01


def test_a_run_is_observed_while_it_goes_on():
    seen = []
    enough = threading.Event()

    def observe(one) -> None:
        seen.append(one)
        if len(seen) >= 2:
            enough.set()

    def endless():
        while not enough.is_set():
            yield [1, 2, 3]
            time.sleep(0.001)

    found, told = metrics(LINE, {"xs": endless()}, observe=observe)
    assert len(seen) >= 2
    assert seen[0].read <= seen[1].read <= told.read == len(found)


@given(st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=50), st.floats(0.01, 1))
def test_quantiles_are_at_most_a_step_too_long(numbers, part):
    durations = Durations()
    for number in numbers:
        durations.add(number)
    exact = sorted(numbers)[max(0, -int(-part * len(numbers) // 1) - 1)]
    assert exact * 0.999 <= durations.quantile(part) <= exact * 1.1
    assert durations.latency().most == max(numbers)


def test_the_file_has_a_line_a_second_and_one_at_the_end(tmp_path, capsys):
    file = tmp_path / "m.jsonl"
    argv = ["run", str(FLIGHTS / "delays.cql"), "--in", f"flights={FLIGHTS / 'flights.csv'}"]
    argv += ["--out", f"delays={tmp_path / 'd.csv'}", "--metrics", str(file), "--summary"]
    errors = io.StringIO()
    assert main(argv, io.StringIO(), io.StringIO(), errors) == 0
    *_, last = [json.loads(line) for line in file.read_text().splitlines()]
    assert last["end"] is True
    rows = (FLIGHTS / "flights.csv").read_text().count("\n") - 1
    assert last["items"] == last["inputs"]["flights"] == rows
    assert set(last) == {
        "seconds", "end", "items", "items_per_second", "inputs", "outputs", "operators", "queues", "latency", "host_calls",
        "connections",
    }  # fmt: skip
    assert "operator " in errors.getvalue()
    assert "queue " in errors.getvalue()


def test_results_tell_where_the_time_went():
    compiled = river.load(str(FLIGHTS / "delays.cql"))
    results = compiled.run({"flights": str(FLIGHTS / "flights.csv")})
    told = results.summary.metrics
    assert told is not None
    assert set(told.operators) == set(results.summary.fired)
    assert "latency of" in table(told)
    with pytest.raises(Rejected) as caught:
        compiled.run({"flights": str(FLIGHTS / "flights.csv")}, backend="reference", metrics="never.jsonl")
    assert caught.value.diagnostics[0].code == "run-metrics"
    assert not Path("never.jsonl").exists()


def test_the_line_on_a_terminal_says_who_works_most():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    from attrs import evolve

    _, told = metrics(LINE, {"xs": [[1, 2, 3]]})
    screen = Terminal()
    progress = Progress(screen, quiet=False)
    progress.observe(evolve(told, seconds=1.0))
    progress.update(3)
    assert "3 items, 3/s, 3 rows out, same#" in screen.getvalue()
    progress.clear()
    assert screen.getvalue().endswith("\r\x1b[K")
