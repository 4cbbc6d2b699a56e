"""Epochs of streaming DataFrames in one task, and divided between two: seconds by the clock, and of all processors.

Both streams go on side by side, in one Spark on `local[2]`, and get files of Parquet in turns; an epoch is taken from its file to
its manifest, without the first two.

Run: python tests/bench/bench_divided.py [tables | grouped] [--rows N] [--epochs N]
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from processes import family, seconds

import river

PROGRAMS: Final = {
    "tables": (
        (
            "x: {ts: int, k: int, v: int} = input; n: table sum[k: int] of int; emit n[x.k] <- x.v;"
            "m: table maximum(3)[k: int] of v: int weight w: int; emit m[x.k] <- x.v weight x.ts;"
        ),
        "sawzall",
    ),
    "grouped": (
        (
            "t: {ts: int; k: int; v: int} stream by ts;"
            "o: relation = select k, count(*) as n, sum(v) as w from t[range 300] group by k;"
        ),
        "cql",
    ),
}
WARM: Final = 2


def main() -> None:
    """Prints what an epoch takes each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=PROGRAMS, default="tables")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    spark = measure.spark()
    measure.begin(f"epochs of DataFrames, {given.name}, {given.rows:,} rows each")
    program = river.compile(*PROGRAMS[given.name])
    (name,) = program.graph.inputs
    choice = np.random.default_rng(7)
    with TemporaryDirectory() as place:
        ways = {count: Path(place, str(count)) for count in (1, 2)}
        streams: dict[int, Any] = {}
        for count, folder in ways.items():
            (folder / "in").mkdir(parents=True)
            frame = spark.readStream.schema("ts long, k long, v long").parquet(str(folder / "in"))
            targets = {output: f"{folder / output}/" for output in program.outputs}
            keeping = river.Checkpoint(folder / "state", every=0.2)
            streams[count] = program.write_stream({name: frame}, targets, checkpoint=keeping, workers=count)
        walls: dict[int, list[float]] = {count: [] for count in ways}
        spent: dict[int, list[float]] = {count: [] for count in ways}
        step = given.rows // 4
        for epoch in range(WARM + given.epochs):
            stamps = np.sort(choice.integers(0, step, given.rows)) + epoch * (step + 1)
            columns = {
                "ts": stamps,
                "k": choice.integers(0, 1000, given.rows),
                "v": choice.integers(0, 100, given.rows),
            }
            for count in sorted(ways, reverse=bool(epoch % 2)):
                folder = ways[count]
                pq.write_table(pa.table(columns), folder / "in" / ".part", row_group_size=given.rows // 8)
                cpu, wall = seconds(family()), time.perf_counter()
                (folder / "in" / ".part").rename(folder / "in" / f"{epoch:06}.parquet")
                while len([*(folder / "state").glob("*.checkpoint")]) < epoch + 2:
                    if streams[count].wait(0.02) is not None:
                        raise AssertionError
                if epoch >= WARM:
                    walls[count].append(time.perf_counter() - wall)
                    spent[count].append(seconds(family()) - cpu)
        for count, stream in streams.items():
            stream.stop()
            stream.wait()
            clock, cpu = statistics.median(walls[count]), statistics.median(spent[count])
            print(f"{count} tasks: {clock:.2f} s by the clock, {cpu:.2f} s of processors")


if __name__ == "__main__":
    main()
