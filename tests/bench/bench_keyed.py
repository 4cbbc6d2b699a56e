"""State by key on Spark, epoch by epoch: River over a folder that is followed, beside `transformWithStateInPandas` by hand.

Each epoch is a file of Parquet with rows of a thousand keys; for each row comes how many of its key there were, and what they add
up to. Both streams go on side by side, in one Spark on `local[2]`, and get files in turns; seconds of all processors and by the
clock are those from the file to the epoch's end, without the first epochs. The rows are compared. What is by hand wants the
package `protobuf`.

Run: python tests/bench/bench_keyed.py [--rows N] [--keys N] [--epochs N]
"""

from __future__ import annotations

import argparse
import statistics
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import measure
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from processes import family, seconds

import river

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM: Final = """river 1;
type Visit = {key: i64, value: i64};
operator count(x: Visit; $n: map<i64, {n: i64, total: i64}>) -> (y: {key: i64, n: i64, total: i64}) {
  on x(v) { with s = $n[v.key] else {n: 0, total: 0} {
    s = {n: s.n + 1, total: s.total + v.value};
    emit y {key: v.key, n: s.n, total: s.total};
  } }
}
var $n: map<i64, {n: i64, total: i64}> = {};
input visits: Visit;
output counts: {key: i64, n: i64, total: i64};
(counts, $n) <- count(visits, $n);
"""
TARGET: Final = 4.0
WARM: Final = 2
EVERY: Final = 0.2
STATES: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def by_hand(spark: Any, place: Path) -> Any:
    """The stream by hand, which reads `in` and writes `out` below a folder."""
    streaming = import_module("pyspark.sql.streaming.stateful_processor")

    class Counting(streaming.StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("state", "n long, total long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803 - Spark's names
            import pandas as pd

            n, total = self.state.get() or (0, 0)
            for some in rows:
                totals = total + some["value"].cumsum()
                numbers = np.arange(n + 1, n + 1 + len(some))
                n, total = n + len(some), int(totals.iloc[-1])
                yield pd.DataFrame({"key": key[0], "n": numbers, "total": totals})
            self.state.update((n, total))

        def close(self) -> None:
            pass

    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATES)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    read = spark.readStream.schema("key long, value long").parquet(str(place / "in"))
    counted = read.groupBy("key").transformWithStateInPandas(
        Counting(), outputStructType="key long, n long, total long", outputMode="append", timeMode="none"
    )
    stream = counted.writeStream.format("parquet").option("checkpointLocation", str(place / "state"))
    return stream.trigger(processingTime=f"{EVERY} seconds").start(str(place / "out"))


def main() -> None:
    """Prints what an epoch takes each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--epochs", type=int, default=7)
    given = parser.parse_args()
    spark = measure.spark()
    measure.begin(f"state by key, {given.rows:,} rows an epoch, {given.keys:,} keys")
    choice = np.random.default_rng(7)
    program = river.compile(PROGRAM, "river")
    with TemporaryDirectory() as name:
        ours, other = (Path(name, way) for way in ("river", "hand"))
        for place in (ours, other):
            (place / "in").mkdir(parents=True)
        stream = program.write_stream(
            {"visits": river.follow(f"{ours}/in/")},
            {"counts": f"{ours}/out/"},
            checkpoint=river.Checkpoint(ours / "state", every=EVERY),
        )
        query = by_hand(spark, other)

        def until_river(epoch: int) -> None:
            while len([*(ours / "state").glob("*.checkpoint")]) < epoch + 2:
                if stream.wait(0.02) is not None:
                    raise AssertionError

        def until_hand(epoch: int) -> None:
            while not (other / "state" / "commits" / str(epoch)).exists():
                if query.awaitTermination(0.02):
                    raise AssertionError

        waits: dict[str, tuple[Path, Callable[[int], None]]] = {
            "river": (ours, until_river),
            "by hand": (other, until_hand),
        }
        walls: dict[str, list[float]] = {way: [] for way in waits}
        spent: dict[str, list[float]] = {way: [] for way in waits}
        for epoch in range(WARM + given.epochs):
            rows = {
                "key": choice.integers(0, given.keys, given.rows),
                "value": choice.integers(0, 100, given.rows),
            }
            for way, (place, until) in waits.items():
                pq.write_table(pa.table(rows), place / "in" / ".part")
                measure.turn()
                cpu, wall = seconds(family()), time.perf_counter()
                (place / "in" / ".part").rename(place / "in" / f"{epoch:06}.parquet")
                until(epoch)
                if epoch >= WARM:
                    walls[way].append(time.perf_counter() - wall)
                    spent[way].append(seconds(family()) - cpu)
        stream.stop()
        stream.wait()
        query.stop()
        found = [sorted(map(tuple, map(dict.values, rows_of(place / "out")))) for place in (ours, other)]
        if found[0] != found[1]:
            raise AssertionError("the rows by hand are others")
        measure.record("keyed state", walls)
        for way in waits:
            cpu, wall = statistics.median(spent[way]), statistics.median(walls[way])
            print(f"{way:10} {cpu:6.2f} s of processors an epoch, {wall:6.2f} s by the clock")
        ratios = [
            statistics.median(each["by hand"]) / statistics.median(each["river"]) for each in (spent, walls)
        ]
        print(
            f"by hand takes {ratios[0]:.1f} times the processors (target {TARGET}), {ratios[1]:.1f} times the time"
        )


def rows_of(place: Path) -> list[dict[str, int]]:
    """All rows of a folder."""
    found: list[dict[str, int]] = ds.dataset(str(place), format="parquet").to_table().to_pylist()
    return found


if __name__ == "__main__":
    main()
