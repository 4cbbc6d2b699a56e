"""What the driver of a job on a cluster does itself: seconds of its processors (Python and Java), beside those of the whole job.

A standalone master and a worker on the loopback interface run the log analyser over Parquet, whose tables executors write to
folders. The start of the session is not counted. The job is run in one process again and again, over a tenth of the rows and over
all of them: the first time, and warm; and how much memory the driver has needed at most by then.

Run: python tests/bench/bench_driver.py [--rows N] [--runs N] [--workers N]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from processes import family, peak, seconds

import river
from backends.spark import session as sessions

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).resolve().parents[2]
TARGET: Final = 0.05
GROUP: Final = 1 << 20


def write_log(path: Path, rows: int) -> None:
    """Requests of ten thousand origins for as many targets."""
    choice = np.random.default_rng(7)
    texts = pa.array([f"http://example.org/{n}" for n in range(10_000)])
    kind = pa.dictionary(
        pa.int32(), pa.string()
    )  # texts that are known to be few are written in a tenth of the time
    schema = pa.schema([("origin", kind), ("target", kind)])
    with pq.ParquetWriter(path, schema, store_schema=False) as writer:
        for begin in range(0, rows, GROUP):
            count = min(GROUP, rows - begin)
            numbers = [choice.integers(0, 10_000, count, dtype=np.int32) for _ in schema]
            columns = [pa.DictionaryArray.from_arrays(each, texts) for each in numbers]
            writer.write_table(pa.table(columns, schema=schema))


def driver_of(here: Iterable[int]) -> set[int]:
    """Of this process and those it has started, itself and the Java that runs its session."""
    found = {os.getpid()}
    for pid in here:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"org.apache.spark.deploy.SparkSubmit" in command:
            found.add(pid)
    return found


def main() -> None:
    """Prints a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.backends import spark_cluster

    measure.begin("what the driver does itself")
    program = river.load(str(ROOT / "examples/log_analyzer/query_log.szl"))
    with TemporaryDirectory() as name:
        folder = Path(name)
        few, many = folder / "few.parquet", folder / "many.parquet"
        write_log(few, given.rows // 10)
        write_log(many, given.rows)
        with spark_cluster.cluster(folder, given.workers) as spark:
            settings = {
                **spark_cluster.LOOPBACK,
                "spark.master": spark.address,
                "spark.pyspark.python": sys.executable,
            }
            with sessions.session(given.workers, settings):
                pass
            mine = driver_of(family())
            for file, rows in ((few, given.rows // 10), (many, given.rows)):
                for number in range(given.runs):
                    job, driver, wall = seconds(family()), seconds(mine), time.perf_counter()
                    outputs = {table: folder / f"{table}/" for table in program.outputs}
                    program.run(
                        {"logRecord": file},
                        {table: f"{path}/" for table, path in outputs.items()},
                        backend="spark",
                        settings=settings,
                        mode="overwrite",
                    )
                    driver, job = seconds(mine) - driver, seconds(family()) - job
                    wall = time.perf_counter() - wall
                    memory = sum(map(peak, mine)) / 2**20
                    print(
                        f"{rows:10,} rows, run {number + 1}: driver {driver:.2f} s of {job:.2f} s of processors"
                        f" = {driver / job:.1%} (target {TARGET:.0%}), {wall:.1f} s by the clock,"
                        f" driver at most {memory:.0f} MB",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
