"""How a job would go on with 1 to 1,000 executors: a run in virtual time, whose tasks take what tasks were measured to take.

| measured | how |
|---|---|
| what a task takes for itself, each row, each byte that it is sent | tasks of real runs, one after the other in this process |
| what Spark takes for a task and for a job | a master with 1 and 2 executors on this machine, in few parts and in many |
| the way from task to task | assumed: `--network` bytes a second for each executor |

All are seconds of a processor, and an executor is one processor. In virtual time the driver starts one task after the other, an
executor runs one at a time, and a task that is sent something waits for all that send. What the cluster took is printed beside
what the model says of it.

Run: python tests/bench/bench_scaling.py [--rows N] [--billions N] [--network N] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import heapq
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, field, frozen
from bench_driver import GROUP, driver_of, write_log
from bench_frames import GROUPED
from experiments import figures
from processes import family, seconds

import river
from backends.spark import direct, jobs, parts
from backends.spark import run as runs
from backends.spark import session as sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from river.driver import Compiled

ROOT: Final = Path(__file__).resolve().parents[2]
EXECUTORS: Final = (1, 2, 4, 10, 30, 100, 300, 1000)
AGAIN: Final = 3
"""Runs of which the least counts."""

FEW, MANY = 20, 200
"""Tasks that do nothing."""

PHASES: Final = ("driver", "parts", "network", "channels")


# ------------------------------------------------------------------------------------------------------- what is measured


@frozen
class Task:
    """A task that was run in this process: rows that it read, bytes that it was sent or sent, seconds of the processor."""

    rows: int
    bytes: int
    took: float


@define
class Watch:
    """Runs tasks one after the other instead of Spark, and notes what they take."""

    first: list[Task] = field(factory=list)
    then: list[Task] = field(factory=list)
    _sc: None = None

    def addTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be told from other jobs."""

    def removeTag(self, tag: str) -> None:  # noqa: N802 - the same
        """The same."""

    def channels(self, _: Any, count: int, task: Any, channels: int, then: Any) -> list[str]:
        """As `jobs.tellings_of_channels`."""
        sent: list[list[Any]] = [[] for _ in range(channels)]
        for number in range(count):
            began = time.process_time()
            found = list(jobs._sent(task, [number]))
            took = time.process_time() - began
            self.first.append(Task(0, sum(len(row[1][2] or b"") for row in found), took))
            for row in found:
                sent[row[0] % channels].append(row)
        told: list[str] = []
        for rows in sent:
            began = time.process_time()
            told += jobs._met(then, rows)
            size = sum(len(row[1][2] or b"") for row in rows)
            self.then.append(Task(0, size, time.process_time() - began))
        return told


@contextmanager
def watched() -> Iterator[Watch]:
    """Instead of Spark."""
    watch = Watch()
    before = runs.session, direct.tellings_of_channels
    runs.session, direct.tellings_of_channels = (lambda *_: nullcontext(watch)), watch.channels  # type: ignore[assignment]
    try:
        yield watch
    finally:
        runs.session, direct.tellings_of_channels = before


@frozen
class Costs:
    """Of one program, in seconds of a processor: of a task for a part, for each of its rows; of one for a channel, for each byte.

    `table`: bytes that a part sends however many rows it has; `by_row`: for each row. `channels`: as many as tables, or None: as
    many as executors.
    """

    part: float
    row: float
    channel: float
    byte: float
    table: float
    by_row: float
    channels: int | None


@frozen
class Spark:
    """What Spark adds: in the driver for a job and a task, and where the task runs."""

    job: float
    started: float
    task: float


def line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Where the line of least squares begins, not below zero, and how it rises."""
    rise, begin = np.polyfit(np.asarray(xs), np.asarray(ys), 1)
    return (float(begin), float(rise)) if begin >= 0 else (0.0, float(np.dot(xs, ys) / np.dot(xs, xs)))


def costs(
    program: Compiled, input_: str, make: Callable[[Path, int], None], rows: int, *, tables: bool
) -> Costs:
    """What tasks take, from runs over few rows in many parts, and many in few."""
    firsts: list[Task] = []
    thens: list[Task] = []
    usual, outputs = (parts.LEAST, parts.MOST), 0
    with TemporaryDirectory() as name:
        targets = {out: f"{name}/{out}/" for out in program.outputs}
        for count, length in ((rows // 16, 1 << 20), (rows, 1 << 23), (rows, 1 << 18), (rows, 1 << 15)):
            file = Path(name, f"{count}.parquet")
            if not file.exists():
                make(file, count)
            parts.LEAST = parts.MOST = min(length, file.stat().st_size // 2)  # type: ignore[misc]
            seen: list[tuple[Task, Task]] = []
            for _ in range(AGAIN):
                with watched() as watch:
                    program.run({input_: file}, targets, backend="spark", workers=2, mode="overwrite")
                seen.append((mean(watch.first, round(count / len(watch.first))), mean(watch.then, 0)))
                outputs = len(watch.then)
            firsts.append(min((first for first, _ in seen), key=lambda task: task.took))
            thens.append(min((then for _, then in seen), key=lambda task: task.took))
    parts.LEAST, parts.MOST = usual  # type: ignore[misc]
    part, row = line([t.rows for t in firsts], [t.took for t in firsts])
    _, by_row = line([t.rows for t in firsts], [float(t.bytes) for t in firsts])
    channel, byte = line([t.bytes for t in thens], [t.took for t in thens])
    if tables:
        return Costs(part, row, channel, byte, max(first.bytes for first in firsts) / outputs, 0.0, outputs)
    return Costs(part, row, channel, byte, 0.0, by_row, None)


def mean(found: Sequence[Task], rows: int) -> Task:
    """Of tasks, of which each has so many rows."""
    count = len(found)
    return Task(
        rows, round(sum(task.bytes for task in found) / count), sum(task.took for task in found) / count
    )


# ------------------------------------------------------------------------------------------------------- virtual time


@frozen
class Went:
    """How long a run took in virtual time, and how long of that it was at what."""

    seconds: float
    phases: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """What most of the time went to."""
        return max(self.phases, key=lambda phase: self.phases[phase])


def simulated(cost: Costs, spark: Spark, rows: int, count: int, executors: int, network: float) -> Went:
    """A run over `rows` in `count` parts, on so many executors."""
    driver = spark.job
    free = [0.0] * executors
    heapq.heapify(free)
    work = cost.part + cost.row * rows / count + spark.task
    ends = 0.0
    for _ in range(count):
        driver += spark.started
        end = max(driver, heapq.heappop(free)) + work
        heapq.heappush(free, end)
        ends = max(ends, end)
    started = spark.job + spark.started * count
    channels = cost.channels or executors
    size = cost.table * count if cost.channels else cost.by_row * rows / channels
    fetched = size / network
    free = [ends] * executors
    driver = last = ends
    for _ in range(channels):
        driver += spark.started
        end = max(driver, heapq.heappop(free)) + fetched + cost.channel + cost.byte * size + spark.task
        heapq.heappush(free, end)
        last = max(last, end)
    waves = -(-channels // executors)
    phases = {
        "driver": min(started, ends) + spark.started * channels,
        "parts": max(0.0, ends - started),
        "network": waves * fetched,
        "channels": max(0.0, last - ends - waves * fetched - spark.started * channels),
    }
    return Went(last, phases)


# ------------------------------------------------------------------------------------------------------------- clusters


@frozen
class Measured:
    """A job on a cluster: parts, seconds of the driver's processors, of the executors', and by the clock."""

    executors: int
    parts: int
    driver: float
    tasks: float
    wall: float


def measured(
    program: Compiled, file: Path, folder: Path, executors: int, many: int
) -> tuple[list[Measured], list[Measured]]:
    """The log analyser on a cluster, in few parts and in many, after a run that warms up; and jobs of tasks that do nothing."""
    sys.path.insert(0, str(ROOT))
    from tests.backends import spark_cluster

    found: list[Measured] = []
    empty: list[Measured] = []
    place = folder / f"cluster{executors}"
    place.mkdir()
    with spark_cluster.cluster(place, executors) as standalone:
        settings = {
            **spark_cluster.LOOPBACK,
            "spark.master": standalone.address,
            "spark.pyspark.python": sys.executable,
        }
        with sessions.session(executors, settings) as spark:
            mine = driver_of(family())
            for count in (10, FEW, MANY, FEW, MANY):
                job, driver = seconds(family()), seconds(mine)
                jobs.tellings(spark, count, nothing)
                driver, job = seconds(mine) - driver, seconds(family()) - job
                empty.append(Measured(executors, count, driver, job - driver, 0.0))
        for workers in (executors, executors, many, many, executors, many):
            outputs = {table: f"{place}/{table}/" for table in program.outputs}
            job, driver, wall = seconds(family()), seconds(mine), time.perf_counter()
            program.run(
                {"logRecord": file},
                outputs,
                backend="spark",
                settings=settings,
                mode="overwrite",
                workers=workers,
            )
            driver, job, wall = seconds(mine) - driver, seconds(family()) - job, time.perf_counter() - wall
            count = parts_of(file, workers)
            found.append(Measured(executors, count, driver, job - driver, wall))
            print(
                f"{executors} executors, {count:4} parts: driver {driver:.2f} s, executors {job - driver:.2f} s of"
                f" processors, {wall:.1f} s by the clock",
                flush=True,
            )
        import_spark().stop()
    return found[1:], empty[1:]


def nothing(batches: Any) -> Any:
    """A task that does nothing, and tells so."""
    import pyarrow as pa

    for _ in batches:
        yield pa.record_batch([pa.array(["nothing"])], ["told"])


def import_spark() -> Any:
    """The session of this process."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def parts_of(file: Path, workers: int) -> int:
    """In how many parts a file is read."""
    size = file.stat().st_size
    return parts.GivenFile(str(file), "parquet", None, size, 0).parts(workers, whole=True)


def write_rows(file: Path, rows: int) -> None:
    """Numbers with ten thousand keys, four to an instant."""
    choice = np.random.default_rng(7)
    with pq.ParquetWriter(
        file, pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
    ) as writer:
        for begin in range(0, rows, GROUP // 4):
            at = np.arange(begin, min(begin + GROUP // 4, rows))
            columns = {
                "ts": at // 4,
                "k": choice.integers(0, 10_000, len(at)),
                "v": choice.integers(0, 100, len(at)),
            }
            writer.write_table(pa.table(columns))


def main() -> None:
    """Prints what was measured, and tables; draws them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--billions", type=float, default=1.0, help="rows of the run in virtual time")
    parser.add_argument("--network", type=float, default=1e9, help="bytes a second of an executor")
    parser.add_argument(
        "--spark",
        type=float,
        nargs=3,
        metavar=("JOB", "STARTED", "TASK"),
        help="what Spark adds, in seconds, as an earlier run has told: no cluster is started",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the picture goes")
    given = parser.parse_args()
    measure.begin("many executors in virtual time")
    analyser = river.load(str(ROOT / "examples/log_analyzer/query_log.szl"))
    grouped = river.compile(GROUPED, "cql")
    rows = given.rows
    programs = {
        "log analyser": costs(analyser, "logRecord", write_log, rows // 4, tables=True),
        "range 300, group by": costs(grouped, "t", write_rows, rows // 16, tables=False),
    }
    for name, cost in programs.items():
        print(name, *(f"{key} {value:.3g}" for key, value in vars_of(cost).items() if value is not None))
    cost = programs["log analyser"]
    spark = Spark(*given.spark) if given.spark else overheads(analyser, cost, rows)
    many = round(given.billions * 1e9)
    lines: dict[str, list[float]] = {}
    for name, cost in programs.items():
        per_row = 3.6 if cost.channels else 4.7
        shown: list[list[Any]] = []
        for executors in EXECUTORS:
            size = round(many * per_row)
            whole = cost.channels is not None
            count = parts.GivenFile("", "parquet", None, size, 0).parts(executors, whole=whole)
            went = simulated(cost, spark, many, count, executors, given.network)
            lines.setdefault(name, []).append(went.seconds)
            shown.append([executors, count, went.seconds, lines[name][0] / went.seconds, went.bottleneck])
            shown[-1] += [went.phases[phase] for phase in PHASES]
        head = ["executors", "parts", "seconds", "times one", "bottleneck", *PHASES]
        figures.table(f"{name}, {many:,} rows", head, shown)
    ideal = [len(EXECUTORS) and float(executors) for executors in EXECUTORS]
    ratios = {name: [took[0] / each for each in took] for name, took in lines.items()}
    plots = [
        figures.Plot("A billion rows", "executors", "seconds, virtual", EXECUTORS, lines, logarithmic=True),
        figures.Plot(
            "Beside one executor",
            "executors",
            "times as fast",
            EXECUTORS,
            {**ratios, "ideal": ideal},
            logarithmic=True,
        ),
    ]
    figures.draw(given.out, "scaling", plots)


def overheads(analyser: Compiled, cost: Costs, rows: int) -> Spark:
    """What Spark adds, as clusters with one and two executors tell; and what these took, beside what the model says."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "log.parquet"
        write_log(file, rows)
        both = [measured(analyser, file, folder, executors, 64) for executors in (1, 2)]
    found, empty = ([run for runs in each for run in runs] for each in zip(*both, strict=True))
    job, started = line([run.parts for run in empty], [run.driver for run in empty])
    _, task = line([run.parts for run in empty], [run.tasks for run in empty])
    alone = [_alone(cost, rows, run.parts) for run in found]
    spark = Spark(job, started, task)
    print(
        f"Spark: a job {spark.job:.3f} s, a task {spark.started * 1000:.2f} ms in the driver,"
        f" {spark.task * 1000:.1f} ms where it runs"
    )
    for run, own in zip(found, alone, strict=True):
        says = own + spark.task * (run.parts + 2)
        print(
            f"{run.executors} executors, {run.parts} parts: measured {run.tasks:.2f} s of processors, the model says {says:.2f} s"
        )
    return spark


def _alone(cost: Costs, rows: int, count: int) -> float:
    """Seconds that the tasks of a run over the log take by themselves."""
    tables = cost.channels or 0
    return cost.part * count + cost.row * rows + tables * (cost.channel + cost.byte * cost.table * count)


def vars_of(cost: Costs) -> dict[str, Any]:
    """Its figures by name."""
    return {
        name: getattr(cost, name)
        for name in ("part", "row", "channel", "byte", "table", "by_row", "channels")
    }


if __name__ == "__main__":
    main()
