"""Runs in epochs without Spark: what its stream would bring is given here, and tasks run in this process."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

import river
from backends.spark import continuous, epoch, errands, manifests
from river.diagnostics import Rejected
from river.driver import row_types
from river.il.observe import observed_variables
from river.io import deltas
from river.io.schema import columns
from river.testing.seeds import chance
from tests.backends.spark_programs import ACCUMULATED
from tests.backends.spark_stand_in import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from river.driver import Compiled, Results

ROOT = Path(__file__).resolve().parents[2]

Arrivals = list[dict[str, list[str]]]
"""What comes: of each epoch, by input, the texts of files."""


class Crash(BaseException):
    """The driver is ended by force."""


@pytest.fixture
def came(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Arrivals:
    """What is to come; at the end of it a run ends well. Crashes are made by patching."""
    arrivals: Arrivals = []

    def epochs(run: Any, spark: Any, _recorder: Any) -> None:
        for number in range(max(0, run.manifests.last.epoch), len(arrivals)):  # the last one comes again
            files = {
                name: [
                    str(_file(folder, number, at, text))
                    for at, text in enumerate(arrivals[number].get(name, ()))
                ]
                for name, folder in run.places.followed.items()
            }
            run._epoch(spark, number, {n: f for n, f in files.items() if f}, tuple(run.places.followed))

    monkeypatch.setattr(continuous._Run, "_epochs", epochs)
    monkeypatch.setattr(continuous, "session", lambda *_: nullcontext(Session(3)))
    return arrivals


def _file(folder: Path, number: int, at: int, text: str) -> Path:
    path = folder / f"{number}-{at}.jsonl"
    if not path.exists():  # whole: who writes it may be killed
        hidden = folder / f".{path.name}"
        hidden.write_text(text)
        hidden.rename(path)
    return path


def run(compiled: Compiled, tmp_path: Path, **more: Any) -> Results:
    """Follows folders."""
    inputs: dict[str, Any] = {}
    for name in compiled.graph.inputs:
        (tmp_path / name).mkdir(exist_ok=True)
        inputs[name] = river.follow(f"{tmp_path / name}/")
    outputs = {name: f"{tmp_path / 'out' / name}/" for name in compiled.outputs}
    keeping = more.pop("checkpoint", tmp_path / "state")
    formats = dict.fromkeys(compiled.outputs, "jsonl")
    return _with_formats(
        compiled, inputs | more.pop("inputs", {}), outputs, formats, checkpoint=keeping, **more
    )


def _with_formats(compiled: Compiled, inputs: Any, outputs: Any, formats: Any, **more: Any) -> Results:
    from river.checkpoint import Checkpoint
    from river.driver import Job, execute
    from river.io.errors import OnError

    keeping = more.pop("checkpoint")
    keeping = Checkpoint(keeping) if isinstance(keeping, Path) else keeping
    job = Job(
        inputs, outputs, OnError.parse(more.pop("on_error", "stop")), formats, checkpoint=keeping, **more
    )
    return execute(compiled, "spark", job)


def written(tmp_path: Path, compiled: Compiled) -> dict[str, list[Any]]:
    """The rows that the manifests name, in order; nothing else is there."""
    found: dict[str, list[Any]] = {name: [] for name in compiled.outputs}
    for each in river.epochs(tmp_path / "state"):
        for name, files in each.outputs.items():
            for file, rows in files:
                lines = (tmp_path / "out" / name / file).read_text().splitlines()
                assert len(lines) == rows
                found[name] += map(json.loads, lines)
    for name in compiled.outputs:
        there = {path.name for path in (tmp_path / "out" / name).iterdir()}
        named = {file for each in river.epochs(tmp_path / "state") for file, _ in each.outputs.get(name, ())}
        assert there == named
    return found


def wanted(
    compiled: Compiled, tmp_path: Path, arrivals: Arrivals, **more: Any
) -> tuple[dict[str, list[Any]], Any]:
    """What the calculus makes of all that came, in the order of epochs and files."""
    inputs: dict[str, Any] = {}
    for name in compiled.graph.inputs:
        inputs[name] = tmp_path / f"{name}.jsonl"
        inputs[name].write_text("".join(text for each in arrivals for text in each.get(name, ())))
    outputs = {name: tmp_path / f"wanted-{name}.jsonl" for name in compiled.outputs}
    results = compiled.run(inputs, outputs, backend="reference", **more)
    rows = {
        name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in outputs.items()
    }
    return rows, results


def divided(random: Random, lines: Mapping[str, Sequence[str]], most: int = 4) -> Arrivals:
    """Lines as files of epochs at random; some epochs have no file of an input, some files no line."""
    count = random.randint(1, most)
    arrivals: Arrivals = [{} for _ in range(count)]
    for name, found in lines.items():
        cuts = sorted(random.randint(0, len(found)) for _ in range(count - 1))
        for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(found)], strict=True)):
            middle = random.randint(start, stop)
            texts = ["".join(found[start:middle]), "".join(found[middle:stop])]
            arrivals[number][name] = (
                texts if random.random() < 0.5 else ["".join(texts)] if stop > start else []
            )
    return arrivals


def canonical(compiled: Compiled, rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What changes in a relation at one instant may come in any order."""
    found: dict[str, list[Any]] = {}
    for name, got in rows.items():
        queue = compiled.graph.queues.get(name)
        relation = queue is not None and deltas.is_delta(queue.type)
        first = columns(row_types(compiled.graph)[name])[0][0]
        found[name] = (
            sorted(got, key=lambda row: (row[first], row["op"] == "+", repr(row))) if relation else got
        )
    return found


def rows_of(name: str, count: int) -> list[str]:
    """The first rows of an example's data, as JSON."""
    import csv

    with (ROOT / name).open() as file:
        rows = [row for row, _ in zip(csv.DictReader(file), range(count), strict=False)]
    found = [{k: _number(v) for k, v in row.items()} for row in rows]
    return [json.dumps(row["value"] if [*row] == ["value"] else row) + "\n" for row in found]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


JOINED = """a: {ts: int; k: int; v: int} stream by ts; b: {ts: int; w: int; j: int} stream by ts;
output o: relation = select a.k, a.v, b.w from a[range 3], b[rows 2] where a.k = b.j;
output p: relation = select j, count(*) as n, sum(v) as s from a[range 9], b[now] where k = j group by j;"""


def streams(random: Random, count: int, back: int = 0, keys: int = 3) -> dict[str, list[str]]:
    """Rows of `a` and `b`, whose time stamps go back by at most so much."""
    found: dict[str, list[str]] = {"a": [], "b": []}
    for n in range(count):
        ts = max(0, n - random.randint(0, back)) // 2
        found["a"].append(json.dumps({"ts": ts, "k": random.randrange(keys), "v": n}) + "\n")
        found["b"].append(json.dumps({"ts": ts + 1, "w": n, "j": random.randrange(keys)}) + "\n")
    return found


PROGRAMS = {
    "examples/flights/delays.cql": {"flights": "examples/flights/flights.csv"},
    "examples/linear_road/tolls.cql": {"reports": "examples/linear_road/reports.csv"},
    "examples/log_analyzer/query_log.szl": {"logRecord": "examples/log_analyzer/queries.csv"},
    "examples/fm_radio/fm_radio.str": {"input": "examples/fm_radio/signal.csv"},
    "examples/continuous_log/origins.cql": {"requests": "examples/continuous_log/requests.csv"},
}


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_division_into_epochs_gives_what_the_calculus_gives(
    program: str, came: Arrivals, tmp_path: Path
) -> None:
    """Also where the driver is ended by force after any epoch, before or after its manifest."""
    random = chance("epochs", program)
    compiled = river.load(str(ROOT / program))
    came += divided(random, {name: rows_of(data, 150) for name, data in PROGRAMS[program].items()})
    results = crashing(random, lambda: run(compiled, tmp_path))
    expected, reference = wanted(compiled, tmp_path, came)
    assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)
    assert results.rows == {name: len(rows) for name, rows in expected.items()}
    assert results.read == reference.read
    seen = [observed_variables(compiled.graph, each.summary.variables) for each in (results, reference)]
    assert seen[0] == seen[1]
    assert [each.inputs for each in river.epochs(tmp_path / "state")][-1] == {}


def crashing(random: Random, go: Callable[[], Results]) -> Results:
    """Runs until the end, though it is ended by force again and again, before or after a manifest is created."""
    commit = manifests.Manifests.commit
    while True:
        left = random.randint(1, 3) if random.random() < 0.7 else 1000
        counts = iter(range(left, 0, -1))
        after = random.random() < 0.5

        def crashes(self: Any, manifest: Any, after: bool = after, counts: Any = counts, **more: Any) -> None:
            last = next(counts) == 1
            if not last or after:
                commit(self, manifest, **more)
            if last:
                raise Crash

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(manifests.Manifests, "commit", crashes)
            try:
                return go()
            except Crash:
                pass


@pytest.mark.slow
def test_a_driver_that_is_killed_at_any_time_goes_on(came: Arrivals, tmp_path: Path) -> None:
    """By force, from outside, whatever it was about: Python's driver and what stands for the tasks of Spark."""
    random = chance("killed", "stand-in")
    compiled = river.compile(JOINED, "cql")
    came += divided(random, streams(random, 40), 6)
    for _ in range(3):
        child = os.fork()
        if not child:
            try:
                run(compiled, tmp_path)
            finally:
                os._exit(0)
        there = len([*tmp_path.rglob("*")])
        more = random.randint(1, 8)
        while not os.waitpid(child, os.WNOHANG)[0]:
            if len([*tmp_path.rglob("*")]) >= there + more:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.001)
    run(compiled, tmp_path)
    expected, _ = wanted(compiled, tmp_path, came)
    assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize("back", [0, 5])
def test_joins_and_rows_that_come_late(back: int, native: Any, came: Arrivals, tmp_path: Path) -> None:
    """Inputs wait for each other, and rows for others that may come before them, from epoch to epoch."""
    from river.backend import Options

    random = chance("late", back, native)
    compiled = river.compile(JOINED, "cql")
    came += divided(random, streams(random, 30, 2 * back), 6)
    more = {"lateness": 3 * (back > 0), "on_error": "skip"}
    results = run(compiled, tmp_path, options=Options(native=native), **more)
    expected, reference = wanted(compiled, tmp_path, came, **more)
    assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)
    counts = [sorted(w.message for w in each.warnings) for each in (results, reference)]
    assert counts[0] == counts[1]


KEYED = """a: {ts: int; k: int; v: int} stream by ts; b: {ts: int; w: int; j: int} stream by ts;
output o: relation = select a.k, a.v, b.w from a[range 3], b[range 2] where a.k = b.j;
output p: relation = select j, count(*) as n, sum(v) as s from a[range 9], b[now] where k = j group by j;"""


@pytest.mark.slow
@pytest.mark.parametrize("back", [0, 5])
def test_state_is_divided_by_key_and_channels_may_change(
    back: int, came: Arrivals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each epoch the rows are those of a run in one piece: time goes on for keys of which nothing comes."""
    from river.backend import Options

    random = chance("channels", back)
    compiled = river.compile(KEYED, "cql")
    came += divided(random, streams(random, 40, 2 * back, keys=9), 6)
    more = {"lateness": 2 * (back > 0), "on_error": "skip" if back else "stop"}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(continuous, "apart", lambda *_, **__: "a test")
        alone = run(compiled, whole, options=Options(native="off"), **more)
    tried: list[int] = []

    def go() -> Results:
        tried.append(random.randint(1, 5))
        native: Any = random.choice(["on", "off"])
        return run(compiled, parts, options=Options(native=native, workers=tried[-1]), **more)

    monkeypatch.setattr(continuous, "SMALL", random.choice([-1, 2000]))
    monkeypatch.setattr(continuous.small, "LEAST", random.choice([60, 1 << 20]))
    results = crashing(random, go)
    expected, _ = wanted(compiled, parts, came, **more)
    assert canonical(compiled, written(parts, compiled)) == canonical(compiled, expected)
    of_epochs = [by_epoch(compiled, folder) for folder in (whole, parts)]
    assert of_epochs[0] == of_epochs[1]
    assert (results.rows, results.read) == (alone.rows, alone.read)
    told = [w.message for w in results.warnings if w.code != "run-checkpoint-complete"]
    assert told == [w.message for w in alone.warnings]
    seen = [observed_variables(compiled.graph, each.summary.variables) for each in (results, alone)]
    assert seen[0] == seen[1]


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many tasks read each epoch, and among how many channels they divide it, which are as many as there are workers."""
    counts: list[tuple[int, int]] = []
    run_tasks = continuous.tellings_of_channels

    def counted(spark: Any, count: int, task: Any, channels: int, then: Any) -> list[str]:
        counts.append((count, channels))
        return run_tasks(spark, count, task, channels, then)

    monkeypatch.setattr(continuous, "tellings_of_channels", counted)
    monkeypatch.setattr(continuous, "SMALL", -1)
    monkeypatch.setattr(continuous.small, "LEAST", 300)
    return counts


def test_several_tasks_read_an_epoch(came: Arrivals, readers: list[tuple[int, int]], tmp_path: Path) -> None:
    """Small files together, and of large ones a part each; rows meet in the order of inputs and files."""
    from river.backend import Options

    random = chance("portions")
    compiled = river.compile(KEYED, "cql")
    lines = streams(random, 120, keys=5)
    half = {name: len(found) // 2 for name, found in lines.items()}
    came.append({name: ["".join(found[: half[name]])] for name, found in lines.items()})
    came.append({name: [*found[half[name] :]] for name, found in lines.items()})
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continuous, "apart", lambda *_, **__: "a test")
        alone = run(compiled, whole)
    results = run(compiled, parts, options=Options(workers=2))
    assert by_epoch(compiled, parts) == by_epoch(compiled, whole)
    assert (results.read, results.rows) == (alone.read, alone.rows)
    (first, _), (second, _), (last, _) = readers
    assert first > 3
    assert 3 < second < 120  # each file has one row
    assert last == 1


UNDEFINED = """x: {s: string, k: int} = input;
said: table sum[s: string] of int;
emit said[x.s] <- 6 / (x.k - 3);
if (x.k > 3) emit stdout <- x.s;
"""
BEGUN = """river 1;
type R = {k: i64, s: string, f: f64};
operator add(x: R; $n: i64, $m: i64, $t: map<string, i64>) -> () {
  on x(r) { $n = $n +% r.k; $m = max($m, r.k); with t = $t[r.s] else 0 { t = t +% 1; } }
}
input x: R;
var $n: i64 = 7; var $m: i64 = 3; var $t: map<string, i64> = {"a": 5, "z": 1};
($n, $m, $t) <- add(x, $n, $m, $t);
fn show(s: string, n: i64) -> list<{s: string, n: i64}> { return [{s: s, n: n}]; }
output t: {s: string, n: i64} = rows($t, show, 1);
"""
KEPT = "x: {ts: int; s: string; k: int; f: float} stream by ts; o: stream by ts = select s, k + 1 as j from x where k > 1;"
SENT = """river 1;
type R = {s: string, k: i64, f: f64};
operator keep(x: R) -> (y: R) { on x(r) { if r.k > 1 { emit y r; emit y r; } } }
input x: R; output o: R;
(o) <- keep(x);
"""
SHARED = {
    "tables": (ACCUMULATED, "sawzall"),
    "undefined": (UNDEFINED, "sawzall"),
    "initial": (BEGUN, "river"),
    "rows": (SENT, "river"),
    "timed": (KEPT, "cql"),
    "traps": (SENT.replace("emit y r;", "emit y {s: r.s, k: div.trunc(9, r.k - 3), f: r.f};"), "river"),
}


def shared_rows(random: Random, count: int) -> list[str]:
    rows = (
        {
            "ts": n // 3,
            "s": "abz"[random.randrange(3)] * random.randint(0, 2),
            "k": random.randrange(5),
            "f": 0.1 * n,
        }
        for n in range(count)
    )
    return [json.dumps(row) + "\n" for row in rows]


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks have shares of each epoch; all but the smallest are divided."""
    counts: list[int] = []
    run_tasks = continuous.tellings

    def counted(spark: Any, count: int, task: Any) -> list[str]:
        counts.append(count)
        return run_tasks(spark, count, task)

    monkeypatch.setattr(continuous, "tellings", counted)
    monkeypatch.setattr(continuous, "SMALL", -1)
    monkeypatch.setattr(continuous.small, "LEAST", 200)
    return counts


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("program", SHARED)
def test_where_rows_need_not_meet_tasks_have_shares(
    program: str, came: Arrivals, shares: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tasks there are, from one start of the driver to the next, and wherever it is ended by force."""
    from backends.spark import kernels
    from river.backend import Options

    random = chance("shares", program)
    monkeypatch.setattr(
        kernels, "LEAST", random.choice([0, 1 << 20])
    )  # machine code puts tables together, or the evaluator
    compiled = river.compile(*SHARED[program])
    came += divided(random, {"x": shared_rows(random, 120)}, 6)
    tried = iter([4, 2])
    more = {"on_error": "skip"} if program == "traps" else {}

    def go() -> Results:
        options = Options(
            workers=next(tried, random.randint(1, 5)), native=random.choice(["on", "off", "on"])
        )
        return run(compiled, tmp_path, options=options, **more)

    results = crashing(random, go)
    expected, reference = wanted(compiled, tmp_path, came, **more)
    if results.summary.metrics is not None:  # else the run had ended when the driver was ended
        assert [each.message for each in results.warnings] == [each.message for each in reference.warnings]
    assert written(tmp_path, compiled) == expected
    assert results.rows == {name: len(rows) for name, rows in expected.items()}
    assert results.read == reference.read
    seen = [observed_variables(compiled.graph, each.summary.variables) for each in (results, reference)]
    assert seen[0] == seen[1]


def test_tables_of_shares_are_kept_apart_and_put_together(
    came: Arrivals, shares: list[int], tmp_path: Path
) -> None:
    """More tasks than before begin with what is neutral, fewer take over, and the last epoch has one."""
    from river.backend import Options

    compiled = river.compile(BEGUN, "river")
    random = chance("shares", "workers")
    texts = ["".join(shared_rows(random, 60)) for _ in range(4)]
    for workers, text in zip((2, 5, 3, 1), texts, strict=True):
        came.append({"x": [text]})
        with pytest.MonkeyPatch.context() as patch:
            if workers > 1:
                patch.setattr(manifests.Manifests, "commit", committing(len(came) - 1))
                with pytest.raises(Crash):
                    run(compiled, tmp_path, options=Options(workers=workers))
            else:
                run(compiled, tmp_path, options=Options(workers=workers))
    assert shares == [2, 5, 3, 1, 1]
    assert [len(each.states) for each in river.epochs(tmp_path / "state")] == [2, 5, 3, 1, 1]
    expected, _ = wanted(compiled, tmp_path, came)
    assert written(tmp_path, compiled) == expected


def committing(last: int) -> Any:
    """Creates the manifest of an epoch, and ends the driver."""
    commit = manifests.Manifests.commit

    def crashes(self: Any, manifest: Any, **more: Any) -> None:
        commit(self, manifest, **more)
        if manifest.epoch == last:
            raise Crash

    return crashes


@pytest.mark.parametrize(
    ("program", "wrong"),
    [("tables", "a row"), ("timed", "a row"), ("timed", "an instant"), ("traps", "a trap")],
)
def test_what_is_wrong_in_a_share_is_told_as_by_one_task(
    program: str, wrong: str, came: Arrivals, shares: list[int], tmp_path: Path
) -> None:
    """With file and line; nothing that the tasks have written stays."""
    from river.backend import Options

    compiled = river.compile(*SHARED[program])
    rows = shared_rows(chance("shares", wrong), 90)
    if wrong == "a trap":  # by none but one row of the second epoch
        rows = [row.replace('"k": 3', '"k": 2') for row in rows]
    came += [{"x": ["".join(rows[:40])]}]
    match wrong:
        case "a row":
            rows[70] = '{"ts": 23, "s": 1}\n'
        case "a trap":
            rows[70] = '{"ts": 23, "s": "a", "k": 3, "f": 1}\n'
        case _:
            rows[70] = '{"ts": 1, "s": "a", "k": 3, "f": 1}\n'
    came += [{"x": ["".join(rows[40:60]), "".join(rows[60:])]}]
    found: list[Any] = []
    for place, division in (("whole", lambda *_, **__: "a test"), ("parts", continuous.apart)):
        (tmp_path / place).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(continuous, "apart", division)
            try:
                run(compiled, tmp_path / place, options=Options(workers=3))
                told: list[Any] = []
            except Rejected as rejected:
                told = [(each.code, each.message, each.place) for each in rejected.diagnostics]
        found.append((str(told).replace(place, ""), written(tmp_path / place, compiled)))
    assert found[0] == found[1]
    assert found[0][0] != "[]"
    assert max(shares) == 3


WRONG = {
    "from one file to the next": ['{"ts": 40, "k": 1}\n' * 30, '{"ts": 39, "k": 1}\n' * 30],
    "from one small file to the next": [f'{{"ts": {40 - (n == 5)}, "k": 1}}\n' for n in range(40)],
    "within a file, from part to part": ['{"ts": 40, "k": 1}\n' * 30 + '{"ts": 39, "k": 1}\n' * 30],
    "from one epoch to the next": ['{"ts": 9, "k": 1}\n' * 30, '{"ts": 40, "k": 1}\n' * 30],
    "a row that is none": ['{"ts": 40, "k": 1}\n' * 30, '{"ts": 40, "k": 1}\n' * 30 + '{"ts": 41}\n'],
}


COUNTED = (
    "s: {ts: int; k: int} stream by ts; o: relation = select k, count(*) as n from s[range 9] group by k;"
)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_where_several_tasks_read_is_told_as_by_one(
    wrong: str, came: Arrivals, readers: list[tuple[int, int]], tmp_path: Path
) -> None:
    """With file and line: one task reads the epoch again."""
    from river.backend import Options

    compiled = river.compile(COUNTED, "cql")
    first = "".join(f'{{"ts": {n // 3 + 90 * ("epoch" in wrong)}, "k": {n % 8}}}\n' for n in range(60))
    came += [{"s": [first]}, {"s": WRONG[wrong]}]
    found: list[Any] = []
    for place, division in (("whole", lambda *_, **__: "a test"), ("parts", continuous.apart)):
        (tmp_path / place).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(continuous, "apart", division)
            with pytest.raises(Rejected) as refused:
                run(compiled, tmp_path / place, options=Options(workers=2))
        told = [(each.code, each.message, each.place) for each in refused.value.diagnostics]
        rows = written(tmp_path / place, compiled)
        found.append((str(told).replace(place, ""), canonical(compiled, rows)))
    assert found[0] == found[1]
    assert f"{tmp_path}//s/1-" in found[0][0]
    assert [count > 1 for count, _ in readers] == [True, True, False]


def test_where_executors_cannot_read_portions_one_task_reads_all(
    came: Arrivals, readers: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is tried once."""
    from river.backend import Options

    def refuses(*_: Any) -> Any:
        raise Rejected([])

    monkeypatch.setattr(epoch, "read_part", refuses)
    compiled = river.compile(COUNTED, "cql")
    came += [
        {"s": ["".join(f'{{"ts": {n // 3 + 20 * at}, "k": {n % 8}}}\n' for n in range(60))]}
        for at in range(3)
    ]
    run(compiled, tmp_path, options=Options(workers=2))
    expected, _ = wanted(compiled, tmp_path, came)
    assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)
    first, *others = (count for count, _ in readers)
    assert (first > 1, others) == (True, [1, 1, 1, 1])


@pytest.mark.slow
def test_epochs_add_to_folders_by_columns(
    came: Arrivals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that manifests name are those of one run, though the driver is ended by force; no other file stays."""
    from river.backend import Options

    random = chance("partitioned")
    monkeypatch.setattr(continuous, "SMALL", -1)
    compiled = river.compile(KEYED, "cql")
    came += divided(random, streams(random, 30, keys=4), 5)
    by = {"o": "k", "p": ["op", "j"]}
    lost: list[Path] = []

    def go() -> Results:
        before = river.epochs(tmp_path / "state") if (tmp_path / "state").exists() else ()
        for each in before if before and before[-1].order is not None else ():  # which has not ended
            for name, files in each.outputs.items():
                for file, _ in files[:1]:
                    path = tmp_path / "out" / name / file
                    lost.append(path.with_name(f"{path.name[:-14]}ffffffff.jsonl"))
                    lost[-1].write_text("what an attempt has written that came late\n")
        native: Any = random.choice(["on", "off"])
        return run(compiled, tmp_path, partition_by=by, options=Options(native=native, workers=2))

    results = crashing(random, go)
    expected, _ = wanted(compiled, tmp_path, came)
    found: dict[str, list[Any]] = {}
    named: set[Path] = set()
    for name, type_ in row_types(compiled.graph).items():
        for each in river.epochs(tmp_path / "state"):
            for file, _ in each.outputs.get(name, ()):
                named.add(tmp_path / "out" / name / file)
                cells = dict(part.split("=") for part in file.split("/")[:-1])
                values = {key: value if key == "op" else int(value) for key, value in cells.items()}
                for line in lines(tmp_path, name, file):
                    row = {**json.loads(line), **values}
                    found.setdefault(name, []).append({key: row[key] for key, _ in columns(type_)})
    assert canonical(compiled, found) == canonical(compiled, expected)
    assert {path for path in (tmp_path / "out").rglob("*") if path.is_file()} == named
    assert results.rows == {name: len(rows) for name, rows in expected.items()}


def by_epoch(compiled: Compiled, place: Path) -> list[dict[str, list[Any]]]:
    """The rows of each epoch."""
    found: list[dict[str, list[Any]]] = []
    for each in river.epochs(place / "state"):
        rows = {
            name: [
                json.loads(line)
                for file, _ in each.outputs.get(name, ())
                for line in lines(place, name, file)
            ]
            for name in compiled.outputs
        }
        found.append(canonical(compiled, rows))
    return found


def lines(place: Path, name: str, file: str) -> list[str]:
    return (place / "out" / name / file).read_text().splitlines()


@pytest.mark.parametrize("damage", ["", "gone", "damaged", "order gone", "other channel"])
def test_another_number_of_channels_takes_over_what_is_whole(
    damage: str, came: Arrivals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state of a channel that is missing, damaged, or that of another one ends the run."""
    from river.backend import Options

    monkeypatch.setattr(continuous, "SMALL", -1)
    text, later = (
        "".join(json.dumps({"ts": n // 3, "k": n % 8}) + "\n" for n in numbers)
        for numbers in (range(24), range(24, 44))
    )
    compiled = begun(
        came,
        tmp_path,
        "s: {ts: int; k: int} stream by ts; o: relation = select k, count(*) as n from s[range 9] group by k;",
        [text, ""],
        options=Options(workers=3, native="off"),
    )
    last = river.epochs(tmp_path / "state")[-1]
    assert len(last.states) == 3
    states = [tmp_path / "state" / "states" / name for name in last.states]
    match damage:
        case "gone":
            states[2].unlink()
        case "damaged":
            states[1].write_bytes(states[1].read_bytes()[:-40] + bytes(40))
        case "order gone":
            (tmp_path / "state" / "states" / str(last.order)).unlink()
        case "other channel":
            states[1].write_bytes(states[2].read_bytes())
        case _:
            came.append({"s": [later]})
            run(compiled, tmp_path, options=Options(workers=2, native="off"))
            expected, _ = wanted(compiled, tmp_path, came)
            assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)
            assert [len(each.states) for each in river.epochs(tmp_path / "state")] == [3, 3, 2, 2]
            return
    with pytest.raises(Rejected) as refused:
        run(compiled, tmp_path, options=Options(workers=2, native="off"))
    assert refused.value.diagnostics[0].code == "run-checkpoint-damaged"
    assert "restart" in str(refused.value.diagnostics[0].help)


TABLED = """s: {ts: int; k: int; v: int} stream by ts; names: {k: int; name: string} relation;
output o: relation = select n.name, s.v from s[range 2] as s, names as n where s.k = n.k;
output p: stream = istream(select s.k, count(*) as c from s[rows 3] as s, names as n where s.k < n.k group by s.k);"""


@pytest.mark.parametrize("native", ["on", "off"])
def test_streams_are_joined_with_a_table(native: Any, came: Arrivals, tmp_path: Path) -> None:
    """All of the table is there in the first epoch, and for all others, though the driver is ended by force."""
    from river.backend import Options

    random = chance("tabled", native)
    compiled = river.compile(TABLED, "cql")
    rows = [json.dumps({"ts": n // 2, "k": random.randrange(4), "v": n}) + "\n" for n in range(30)]
    came += divided(random, {"s": rows}, 5)
    table = tmp_path / "names.jsonl"
    table.write_text("".join(json.dumps({"k": n % 4, "name": f"n{n}"}) + "\n" for n in range(6)))
    options = Options(native=native)
    results = crashing(random, lambda: run(compiled, tmp_path, inputs={"names": str(table)}, options=options))
    came[0] = {**came[0], "names": [table.read_text()]}
    expected, _ = wanted(compiled, tmp_path, came)
    assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)
    assert results.read == 36
    with pytest.raises(Rejected, match="are to be there at the beginning"):
        run(compiled, tmp_path, checkpoint=tmp_path / "other")


def test_rows_that_are_wrong_are_kept_and_counted(came: Arrivals, tmp_path: Path) -> None:
    compiled = river.compile("s: {ts: int; v: int} stream by ts; o: relation = select * from s[now];", "cql")
    came += [
        {"s": ['{"ts": 2, "v": 1}\n{"ts": 2, "v": "x"}\n']},
        {"s": ['{"ts": 1, "v": 2}\n', '{"ts": 3, "v": 3}\n']},
    ]
    letters = tmp_path / "bad"
    results = run(compiled, tmp_path, on_error=f"dead-letter={letters}/")
    assert [w.message for w in results.warnings] == [
        f"input `s`: 2 rows sent to `{letters}/` (1 data-order, 1 data-type)"
    ]
    named = [each.letters for each in river.epochs(tmp_path / "state")]
    assert named[2] is None
    assert sorted(filter(None, named)) == sorted(path.name for path in letters.iterdir())
    told = [json.loads((letters / str(name)).read_text())["code"] for name in named[:2]]
    assert told == ["data-type", "data-order"]


def test_files_that_are_not_read_are_told_of_and_counted(
    came: Arrivals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Across restarts, too: Spark gives a file to one epoch only."""
    compiled = river.compile(COUNT, "cql")
    folder = tmp_path / "s"
    (folder / "inner").mkdir(parents=True)
    epochs = [["a.csv", "b", "_c.csv", ".d.csv"], ["e.csv", "f.csv.old", "inner/g.csv"]]
    for name in (name for names in epochs for name in names):
        (folder / name).write_text("ts,v\n1,1\n")
    told: list[str] = []
    crashed: list[int] = []

    def called(run: Any, spark: Any, _recorder: Any) -> None:
        for number in range(max(0, run.manifests.last.epoch), len(epochs)):
            listed = [(0, f"file:{folder / name}") for name in epochs[number]]
            rows = SimpleNamespace(collect=lambda listed=listed: listed)
            frame = SimpleNamespace(select=lambda *_, rows=rows: rows, sparkSession=spark)
            run._called(frame, number)
            if not crashed:
                crashed.append(number)
                raise Crash

    monkeypatch.setattr(continuous._Run, "_epochs", called)
    with pytest.raises(Crash):
        run(compiled, tmp_path, live=river.Live(tell=lambda each: told.append(each.message)))
    assert told == [f"input `s` does not read `{folder}/b`: its suffix tells no format"]
    results = run(compiled, tmp_path, live=river.Live(tell=lambda each: told.append(each.message)))
    assert told[1:] == [
        f"input `s` does not read `{folder}/f.csv.old`: its suffix tells no format",
        f"input `s` does not read `{folder}/inner/g.csv`: it is in a folder of that folder",
    ]
    assert [w.message for w in results.warnings] == ["input `s`: 3 files that came were not read"]
    assert results.read == 2
    metrics = results.summary.metrics
    assert metrics is not None
    assert metrics.unread == {"s": 2}  # of this process
    found = [each.unread for each in river.epochs(tmp_path / "state")]
    assert found == [{"s": (f"{folder}/b",)}, {"s": (f"{folder}/f.csv.old", f"{folder}/inner/g.csv")}, {}]


def test_what_is_wrong_ends_the_run_where_it_stands(came: Arrivals, tmp_path: Path) -> None:
    """And the run goes on when that has been put right."""
    compiled = river.compile(
        "s: {ts: int; v: int} stream by ts; o: relation = select 6 / v as q from s[now];", "cql"
    )
    came += [{"s": ['{"ts": 1, "v": 1}\n']}, {"s": ['{"ts": 2, "v": 2}\n', '{"ts": 1, "v": 2}\n']}]
    with pytest.raises(Rejected) as refused:
        run(compiled, tmp_path)
    (found,) = refused.value.diagnostics
    assert (found.code, found.place) == ("data-order", f"{tmp_path}/s/1-1.jsonl:1")
    assert [each.epoch for each in river.epochs(tmp_path / "state")] == [0]
    came[1]["s"][1] = '{"ts": 2, "v": 0}\n{"ts": 3, "v": 1}\n'
    (tmp_path / "s" / "1-1.jsonl").write_text(came[1]["s"][1])
    with pytest.raises(Rejected, match="while handling the item"):
        run(compiled, tmp_path)
    (tmp_path / "s" / "1-1.jsonl").write_text('{"ts": 3, "v": 3}\n')
    run(compiled, tmp_path)
    rows = [(row["ts"], row["q"]) for row in written(tmp_path, compiled)["o"] if row["op"] == "+"]
    assert rows == [(1, 6.0), (2, 3.0), (3, 2.0)]


COUNT = "s: {ts: int; v: int} stream by ts; o: relation = select count(*) as n from s[rows 3];"


def begun(
    came: Arrivals, tmp_path: Path, program: str = COUNT, texts: Sequence[str] = (), **more: Any
) -> Compiled:
    """A run that was ended by force behind its second epoch."""
    came += [{"s": [text]} for text in texts or [f'{{"ts": {n}, "v": {n}}}\n' for n in range(2)]]
    compiled = river.compile(program, "cql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continuous._Run, "through", lambda run: (run._epochs(Session(1), None), _crash()))
        with pytest.raises(Crash):
            run(compiled, tmp_path, **more)
    return compiled


def _crash() -> None:
    raise Crash


@pytest.mark.parametrize(
    "damage", ["state gone", "state", "manifest", "last manifest gone", "no manifest", "other files"]
)
def test_what_is_missing_or_damaged_ends_the_run(damage: str, came: Arrivals, tmp_path: Path) -> None:
    compiled = begun(came, tmp_path)
    state = tmp_path / "state"
    last = max(state.glob("*.checkpoint"))
    left = state / "states" / river.epochs(state)[-1].states[0]
    match damage:
        case "state gone":
            left.unlink()
        case "state":
            left.write_bytes(left.read_bytes()[:-40] + bytes(40))
        case "manifest":
            last.write_bytes(last.read_bytes()[:-1])
        case "no manifest":
            (state / "spark").mkdir()  # as there is with Spark
            for path in state.glob("*.checkpoint"):
                path.unlink()
        case "last manifest gone":
            last.unlink()
            came[:2] = [{}, {}]  # Spark has both behind it
        case _:
            (tmp_path / "s" / "1-0.jsonl").rename(tmp_path / "s" / "1-x.jsonl")
            came[1]["s"].append("")
    came.append({"s": ['{"ts": 5, "v": 5}\n']})
    patch = pytest.MonkeyPatch()
    if damage == "last manifest gone":

        def ahead(run: Any, spark: Any, _: Any) -> None:
            run._epoch(spark, 2, {}, ("s",))

        patch.setattr(continuous._Run, "_epochs", ahead)
    with patch.context(), pytest.raises(Rejected) as refused:
        run(compiled, tmp_path)
    patch.undo()
    assert refused.value.diagnostics[0].code == "run-checkpoint-damaged"
    assert "restart" in str(refused.value.diagnostics[0].help)


def test_late_attempts_do_no_harm_and_old_states_go(came: Arrivals, tmp_path: Path) -> None:
    compiled = begun(came, tmp_path)
    second = river.epochs(tmp_path / "state")[1]
    ((name, _),) = second.outputs["o"]
    late = tmp_path / "out" / "o" / (name[:-11] + "00000.jsonl")
    late.write_text("what an attempt wrote that was thought lost\n")
    ahead = late.with_name(late.name.replace("-000000001-", "-000000002-"))
    ahead.write_text("half a ")
    other = late.with_name("of-somebody-else.jsonl")
    other.write_text("")
    came += [{"s": [f'{{"ts": {n}, "v": {n}}}\n']} for n in (7, 8)]
    run(compiled, tmp_path)
    assert not late.exists()
    assert not ahead.exists()
    other.unlink()  # which nobody touched
    expected, _ = wanted(compiled, tmp_path, came)
    assert canonical(compiled, written(tmp_path, compiled)) == canonical(compiled, expected)
    assert len([*(tmp_path / "state" / "states").glob("*.state")]) == manifests.STAY


def test_a_run_that_has_ended_is_not_run_again_unless_it_is_to_begin_anew(
    came: Arrivals, tmp_path: Path
) -> None:
    from river.checkpoint import Checkpoint

    came += [{"s": ['{"ts": 1, "v": 1}\n']}]
    compiled = river.compile(COUNT, "cql")
    first = run(compiled, tmp_path)
    again = run(compiled, tmp_path)
    assert [w.code for w in again.warnings] == ["run-checkpoint-complete"]
    assert (again.rows, again.read, again.variables) == (first.rows, first.read, first.variables)
    with pytest.raises(Rejected, match="is of another run: the lateness changed since"):
        run(compiled, tmp_path, lateness=3)
    before = written(tmp_path, compiled)
    run(compiled, tmp_path, checkpoint=Checkpoint(tmp_path / "state", restart=True))
    assert written(tmp_path, compiled) == before


def test_a_run_of_which_no_epoch_has_been_may_be_another_one(came: Arrivals, tmp_path: Path) -> None:
    """The message says what to try, and that is done in the same folder."""
    came += [{"s": ['{"ts": 5, "v": 1}\n{"ts": 3, "v": 1}\n']}, {"s": ['{"ts": 1, "v": 2}\n']}]
    compiled = river.compile(COUNT, "cql")
    with pytest.raises(Rejected, match="say by `--lateness`"):
        run(compiled, tmp_path)
    (tmp_path / "state" / "spark").mkdir()
    (tmp_path / "state" / "spark" / "offsets").write_text("what Spark has noted")
    with pytest.raises(Rejected, match="is late: 1 is more than 2 below 5"):
        run(compiled, tmp_path, lateness=2)
    assert not (tmp_path / "state" / "spark").exists()
    with pytest.raises(Rejected, match="is of another run: the lateness changed since"):
        run(compiled, tmp_path, lateness=4)


def test_what_cannot_be_done_in_epochs_is_refused(came: Arrivals, tmp_path: Path) -> None:
    compiled = river.compile(COUNT, "cql")
    (tmp_path / "s").mkdir()
    (tmp_path / "s.csv").write_text("ts,v\n")
    folder, out, state = river.follow(f"{tmp_path}/s/"), {"o": f"{tmp_path}/o/"}, tmp_path / "state"

    def refused(inputs: Any, outputs: Any = out, checkpoint: Any = state, **more: Any) -> str:
        with pytest.raises(Rejected) as caught:
            compiled.run(inputs, outputs, backend="spark", checkpoint=checkpoint, **more)
        assert not state.exists()
        return caught.value.diagnostics[0].message

    assert "has to be kept" in refused({"s": folder}, checkpoint=None)
    assert "none is followed" in refused({"s": f"{tmp_path}/s.csv"})
    assert "is a file, and" in refused({"s": river.follow(f"{tmp_path}/s.csv")})
    assert "there is no file" in refused({"s": river.follow(f"{tmp_path}/none/")})
    assert "no file or folder" in refused({"s": [{"ts": 1, "v": 1}]})
    assert "none" in refused({"s": river.follow("s3://bucket/s/")})
    assert "is not a folder" in refused({"s": folder}, {"o": f"{tmp_path}/o.csv"})
    assert "is not a folder" in refused({"s": folder}, {})
    assert "would be read, or overwritten" in refused({"s": folder}, {"o": f"{tmp_path}/s/"})
    assert "the same folder" in refused({"s": folder}, on_error=f"dead-letter={tmp_path}/s/")
    assert "no column `k`" in refused({"s": folder}, partition_by={"o": ["k"]})
    (tmp_path / "other.csv").mkdir()
    (tmp_path / "other.csv" / "a.csv").write_text("ts,op,k\n")
    assert "there is no column `n`; the column `k`" in refused({"s": folder}, {"o": tmp_path / "other.csv"})
    assert "`--mode append`" in refused({"s": folder}, mode="append")
    assert "`--idle`" in refused({"s": folder}, live=river.Live(idle=1))
    (tmp_path / "a*b").mkdir()
    assert "pattern" in refused({"s": river.follow(f"{tmp_path}/a*b/")})


def test_what_a_task_tells_survives_the_way() -> None:
    from river.diagnostics import Diagnostic, Note, Severity
    from river.source import Source, Span

    span = Span(Source("p", "a text"), 0, 1)
    found = Diagnostic("c", "m", span, Severity.WARNING, (Note("n", span), Note("o")), "h", "p")
    assert errands.heard(json.loads(json.dumps(errands.told(found)))) == found


def test_streams_that_are_none_are_refused(tmp_path: Path) -> None:
    compiled = river.compile(COUNT, "cql")

    ended = SimpleNamespace(isStreaming=False, mapInArrow=None, _jdf=None)
    connected = SimpleNamespace(isStreaming=True, mapInArrow=None)
    for frame, message in (ended, "has an end"), (connected, "Spark Connect"):
        stream = compiled.write_stream({"s": frame}, {"o": f"{tmp_path}/o/"}, checkpoint=tmp_path / "state")
        with pytest.raises(Rejected, match=message):
            stream.wait()
        assert not stream.active


def test_spark_has_notes_of_what_has_been(tmp_path: Path) -> None:
    """Else it would bring the rows of streams that came since as those of an epoch that has been."""
    see = continuous._Run._see_to_notes
    run: Any = SimpleNamespace(manifests=SimpleNamespace(folder=tmp_path, last=SimpleNamespace(epoch=-1)))
    see(run)
    run.manifests.last.epoch = 1
    with pytest.raises(Rejected, match="Spark has no notes of it"):
        see(run)
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "1").write_text("v1")
    see(run)


def test_what_ends_a_stream_of_sparks_is_told() -> None:
    """Somebody, what Spark says in its first lines, or notes of Spark's that are damaged."""
    watch = continuous._Run._stream_failed
    run: Any = SimpleNamespace(manifests=SimpleNamespace(folder=Path("state")))
    assert "stopped by somebody else" in str(watch(run, None))
    words = (
        "An error occurred while calling o7.start.\n: [STREAM_FAILED] no such topic\n=== Streaming Query ==="
    )
    failed = watch(run, words).diagnostics[0]
    assert (failed.code, [n.message for n in failed.notes]) == (
        "spark-failed",
        ["[STREAM_FAILED] no such topic"],
    )
    unread = watch(run, "[MALFORMED_LOG_FILE] Log file was malformed").diagnostics[0]
    assert (unread.code, unread.message) == (
        "run-checkpoint-damaged", "Spark cannot read its notes in `state/spark`"
    )  # fmt: skip


def test_what_a_table_of_delta_is_told(came: Arrivals, tmp_path: Path) -> None:
    """The epoch, under the name of the run: one that begins anew has another."""
    from backends.spark.delta import once
    from river.checkpoint import Checkpoint

    came += [{"s": ['{"ts": 1, "v": 1}\n']}]
    compiled = river.compile(COUNT, "cql")
    runs: set[str] = set()
    for restart in (False, True):
        run(compiled, tmp_path, checkpoint=Checkpoint(tmp_path / "state", restart=restart))
        last = river.epochs(tmp_path / "state")[-1]
        ((name, _),) = last.outputs["o"]
        runs.add(name.partition("-")[0])
        assert once(last, "o") == {"txnAppId": f"river-{name.partition('-')[0]}-o", "txnVersion": "1"}
    assert len(runs) == 2
