"""From file to file beside DuckDB: four tables of a program, and filters to standard output and from Parquet to Parquet.

`tables`: a Sawzall program with `top`, `unique` by key, `sum` by two keys, nearly each row of which is a cell of its own, and
`maximum`. DuckDB answers in two ways, the faster one of which counts: a query for each table reads the file, or a temporary table
that was read of it once. `filter`: rows of a stream that meet a condition, half of them, from CSV to standard output, which
is a file; only by fresh processes, River's is the command `river run`. `parquet`: the same from Parquet to Parquet, with the
writers' own settings.

Each way runs in processes of its own, which take turns, pinned to one core and to two. `fresh` is a process from its start to its
end, with one run; `warm` the least of two later runs. Seconds of the processors and by the clock; behind DuckDB's stands how
many times River's it takes. The answers are compared as bags.

Run: python tests/bench/bench_files.py [--rows N] [--runs N] [--jobs tables,filter,parquet] [--cores 1,2]
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROGRAMS: Final = Path(__file__).parent / "programs"
WARM: Final = 2
SEED: Final = 2006

TABLES: Final = {
    "pages": "select page, count(*) as count from {views} group by page order by count desc, page limit 20",
    "visitors": "select shop, count(distinct name) as count from {views} group by shop",
    "taken": "select visitor, article, count(*) as n from {views} group by all",
    "longest": "select page, bytes from {views} order by bytes desc, page desc limit 10",
}
"""What asks DuckDB for each table, whose columns are named as River's."""

COLUMNS: Final = {
    "views": "shop bigint, visitor bigint, name varchar, article bigint, page varchar, bytes bigint",
    "stream": "ts bigint, shop bigint, page varchar, bytes bigint, seconds double",
}
"""What DuckDB need not find out, since River is told, too."""

FILTER: Final = "select ts, shop, page, bytes, seconds from {views} where bytes > 500000"
JOBS: Final = {
    "tables": ("duckdb, scans", "duckdb, table"),
    "filter": ("duckdb",),
    "parquet": ("duckdb",),
}
"""The ways in which DuckDB does each."""


# ---------------------------------------------------------------------------------------------------- data


def write(folder: Path, rows: int) -> None:
    """`views.csv` for the tables; `stream.csv` and `stream.parquet` for the filter."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    draw = np.random.default_rng(SEED)
    page = (10_000 * draw.random(rows) ** 3).astype(int)
    visitor = draw.integers(0, 20_000, rows)
    names, pages = (pa.array([f"{what}{i}" for i in range(20_000)]) for what in ("visitor-", "/shop/page-"))
    columns: dict[str, Any] = {
        "shop": draw.integers(0, 100, rows),
        "visitor": visitor,
        "name": names.take(pa.array(visitor % 10_000)),
        "article": draw.integers(0, 5_000, rows),
        "page": pages.take(pa.array(page)),
        "bytes": draw.integers(0, 1_000_000, rows),
    }
    quiet = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(pa.table(columns), folder / "views.csv", quiet)
    stream = pa.table(
        {
            "ts": np.sort(draw.integers(0, rows // 100, rows)),
            **{name: columns[name] for name in ("shop", "page", "bytes")},
            "seconds": draw.integers(0, 100_000, rows) / 1000,
        }
    )
    pyarrow.csv.write_csv(stream, folder / "stream.csv", quiet)
    pyarrow.parquet.write_table(stream, folder / "stream.parquet")


# ------------------------------------------------------------------------------------------ in a process


def told(run: Callable[[], object]) -> None:
    """Runs some times, and prints the seconds by the clock and of the processors of each."""
    for _ in range(1 + WARM):
        took = measure.timed(run)
        print(took.wall, took.cpu)


def in_river(job: str, folder: Path, workers: int) -> None:
    import river

    program = river.load(str(PROGRAMS / ("four_tables.szl" if job == "tables" else "filter.cql")))
    if job == "tables":
        inputs = {"view": str(folder / "views.csv")}
        outputs = {name: str(folder / f"river-{name}.csv") for name in TABLES}
    else:
        inputs, outputs = (
            {"views": str(folder / "stream.parquet")},
            {"answer": str(folder / "river-answer.parquet")},
        )
    told(lambda: program.run(inputs, outputs, workers=workers))


def in_duckdb(job: str, way: str, folder: Path, workers: int) -> None:
    import duckdb

    def text(name: str) -> str:
        columns = ", ".join(f"{k}: '{of}'" for k, of in (each.split() for each in COLUMNS[name].split(", ")))
        return f"read_csv('{folder / name}.csv', header = true, columns = {{{columns}}})"

    def tables(connection: Any) -> None:
        views = text("views")
        if way == "table":
            connection.execute(f"create temp table views as from {views}")
            views = "views"
        for name, query in TABLES.items():
            copy(connection, query.format(views=views), f"{folder / f'duckdb-{name}.csv'}' (header")

    def copy(connection: Any, query: str, target: str) -> None:
        connection.execute(f"copy ({query}) to '{target})")

    def run() -> None:
        with duckdb.connect(config={"threads": workers}) as connection:
            match job:
                case "tables":
                    tables(connection)
                case "filter":
                    copy(connection, FILTER.format(views=text("stream")), "/dev/stdout' (format csv, header")
                case _:
                    views = f"read_parquet('{folder / 'stream.parquet'}')"
                    target = f"{folder / 'duckdb-answer.parquet'}' (format parquet"
                    copy(connection, FILTER.format(views=views), target)

    if job == "filter":
        run()
    else:
        told(run)


def to_file(path: Path) -> None:
    """Has what this process writes to standard output written to a file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)


def child(job: str, way: str, folder: Path, workers: int) -> None:
    """What a process does."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-workers:])
    if job == "filter":
        to_file(folder / f"{way}-answer.csv")
    if way != "river":
        in_duckdb(job, way.partition(", ")[2], folder, workers)
    elif job == "filter":
        words = ["run", str(PROGRAMS / "filter.cql"), "--in", f"views={folder / 'stream.csv'}", "--quiet"]
        os.execv(sys.executable, [sys.executable, "-m", "river", *words])  # noqa: S606 - the command itself
    else:
        in_river(job, folder, workers)


# --------------------------------------------------------------------------------------------------- checks


def rows_of(path: Path) -> Counter[tuple[Any, ...]]:
    """The rows of a file; numbers as such, since writers choose how they look."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return Counter(zip(*(c.to_pylist() for c in pyarrow.parquet.read_table(path).columns), strict=True))
    with path.open(newline="") as lines:
        return Counter(
            tuple(float(cell) if cell.replace(".", "", 1).isdigit() else cell for cell in row)
            for row in csv.reader(lines)
        )


def check(job: str, folder: Path, ways: Sequence[str]) -> None:
    """Ends the benchmark if answers differ."""
    names = {"tables": [f"-{name}.csv" for name in TABLES], "filter": ["-answer.csv"]}
    for name in names.get(job, ["-answer.parquet"]):
        found = {
            str(way): rows_of(folder / f"{way.partition(',')[0] if job != 'filter' else way}{name}")
            for way in ways
        }
        first = found.popitem()[1]
        if any(each != first for each in found.values()):
            sys.exit(f"{job}: the answers in {name} differ")


# ----------------------------------------------------------------------------------------------------- run


def compare(job: str, folder: Path, runs: int, workers: int) -> None:
    """Prints what each way of doing a job takes."""

    def itself(way: str) -> measure.Took:
        command = [sys.executable, __file__, "--child", f"{job}:{way}:{workers}", "--folder", folder]
        return measure.process(command, env={"RIVER_CACHE": str(folder / "cache")}, watched=True)

    ways: dict[str, Callable[[], measure.Took]] = {"river": partial(itself, "river")}
    if find_spec("duckdb") is not None:
        ways |= {way: partial(itself, way) for way in JOBS[job]}
    ways["river"]()  # fills the cache
    took = measure.rounds(ways, runs)
    took = {way: each for way, each in took.items() if not math.isnan(each[0].wall)}
    check(job, folder, list(took))
    show(job, workers, took)


def show(job: str, workers: int, took: Mapping[str, Sequence[measure.Took]]) -> None:
    """Prints the seconds of each way, and how many times River's DuckDB takes."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {"fresh": {}, "warm": {}}
    for way, each in took.items():
        for one in each:
            runs = [tuple(map(float, line.split())) for line in one.told.splitlines()]
            later = [sum(times) for times in zip(*runs[1:], strict=True)] or [0.0, 0.0]
            found["fresh"].setdefault(way, []).append((one.wall - later[0], one.cpu - later[1]))
            if runs:
                least = (min(times) for times in zip(*runs[1:], strict=True))
                found["warm"].setdefault(way, []).append(tuple(least))  # pyright: ignore[reportArgumentType]
    for kind, ways in found.items():
        least = {way: [min(times) for times in zip(*each, strict=True)] for way, each in ways.items()}
        for way, (wall, cpu) in least.items():
            line = f"  {job:8} {workers} cores {kind:6} {way:14} {wall:7.3f} s, of processors {cpu:7.3f} s"
            if way != "river":
                ours = least["river"]
                line += f"; over River {wall / ours[0]:.2f}, {cpu / ours[1]:.2f}"
                line += f" {measure.target(-wall / ours[0], -1.0)}"
            print(f"{line}   {max(each.peak for each in took[way]) >> 20} MB", flush=True)
        if least:
            measure.record(
                f"{job}, {workers} cores, {kind}", {w: [t[0] for t in each] for w, each in ways.items()}
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--folder", type=Path, help="where the data are, or will be, and stay")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        job, way, workers = given.child.split(":")
        child(job, way, given.folder, int(workers))
        sys.stdout.flush()
        return
    measure.begin("From file to file, beside DuckDB")
    with TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "stream.parquet").exists():
            write(folder, given.rows)
        for job in given.jobs.split(","):
            for workers in map(int, given.cores.split(",")):
                compare(job, folder, given.runs, workers)


if __name__ == "__main__":
    main()
