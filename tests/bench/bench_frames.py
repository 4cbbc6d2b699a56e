"""Programs over DataFrames beside the same written by hand for Spark, on `local[2]`: seconds of all processors, and by the clock.

Ways take turns, in one session, after a run each that is not counted. Processors are those of Spark's processes and of this one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import river
from backends.spark import session as sessions

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
GROUPED = """t: {ts: int; k: int; v: int} stream by ts;
output o: relation = select k, count(*) as n, sum(v) as w from t[range 300] group by k;"""
JOINED = """a: {ts: int; k: int; v: int} stream by ts; b: {ts: int; j: int; w: int} stream by ts;
output o: stream = istream(select k, v, w from a[range 300], b[range 300] where k = j);"""


def processors() -> float:
    """Seconds of processors of this process and of all that it has started, Java among them."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            cells = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(cells[1])
        spent[int(folder.name)] = sum(map(int, cells[11:15])) / tick
    inside, found = {os.getpid()}, -1
    while len(inside) != found:
        found = len(inside)
        inside |= {child for child, parent in parents.items() if parent in inside}
    return sum(seconds for pid, seconds in spent.items() if pid in inside)


def contest(name: str, ways: dict[str, Callable[[], Any]], runs: int) -> None:
    """Prints the median of each way, and what River's takes of the one by hand."""
    walls: dict[str, list[float]] = {way: [] for way in ways}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(runs + 1):
        for way, run in ways.items():
            before, cpu = time.perf_counter(), processors()
            run()
            if number:
                walls[way].append(time.perf_counter() - before)
                spent[way].append(processors() - cpu)
    measure.record(f"frames, {name}", walls)
    for way in ways:
        middle = statistics.median(spent[way]), statistics.median(walls[way])
        print(f"{name:24} {way:24} {middle[0]:7.2f} s of processors, {middle[1]:7.2f} s by the clock")
    ours, other = (statistics.median(each) for each in spent.values())
    print(f"{name:24} river takes {ours / other:.2f} of the processors", flush=True)


def main() -> None:
    """Prints lines for each contest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--windowed", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    sessions.check({})
    with sessions.session(2, {}):
        pass
    spark: Any = import_module("pyspark.sql").SparkSession.builder.getOrCreate()
    measure.begin("programs over DataFrames")
    with TemporaryDirectory() as folder:
        choice = np.random.default_rng(7)
        texts = pa.array([f"http://example.org/{n}" for n in range(10_000)])
        log = {
            name: texts.take(pa.array(choice.integers(0, 10_000, given.rows)))
            for name in ("origin", "target")
        }
        pq.write_table(pa.table(log), f"{folder}/log.parquet", row_group_size=1 << 18)
        analyser = river.load(str(ROOT / "examples/log_analyzer/query_log.szl"))

        def ours() -> None:
            for frame in analyser.on_spark(
                {"logRecord": spark.read.parquet(f"{folder}/log.parquet")}
            ).values():
                frame.write.format("noop").mode("overwrite").save()

        def by_hand() -> None:
            read = spark.read.parquet(f"{folder}/log.parquet")
            for name in ("origin", "target"):
                frame = read.groupBy(name).count().toDF("url", "count")
                frame.write.format("noop").mode("overwrite").save()

        contest("log analyser", {"river": ours, "by hand": by_hand}, given.runs)
        count = given.windowed
        rows = {
            "ts": np.sort(choice.integers(0, count // 4, count)),
            "k": choice.integers(0, 1000, count),
            "v": choice.integers(0, 100, count),
        }
        pq.write_table(pa.table(rows), f"{folder}/rows.parquet", row_group_size=1 << 16)
        program = river.compile(GROUPED, "cql")

        def windowed() -> None:
            frame = program.on_spark({"t": spark.read.parquet(f"{folder}/rows.parquet")})["o"]
            frame.write.format("noop").mode("overwrite").save()

        def in_sql() -> None:
            """The windows alone: what leaves them is not told."""
            spark.read.parquet(f"{folder}/rows.parquet").createOrReplaceTempView("rows")
            over = "over (partition by k order by ts range between 300 preceding and current row)"
            frame = spark.sql(f"select ts, k, count(*) {over} as n, sum(v) {over} as w from rows")
            frame.write.format("noop").mode("overwrite").save()

        contest("range 300, group by", {"river": windowed, "by hand, less told": in_sql}, given.runs)
        joining = river.compile(JOINED, "cql")
        both = pq.read_table(f"{folder}/rows.parquet")
        for name, columns, part in (("a", ["ts", "k", "v"], 0), ("b", ["ts", "j", "w"], 1)):
            some = both.take(pa.array(np.arange(part, count, 4))).rename_columns(columns)
            pq.write_table(some, f"{folder}/{name}.parquet", row_group_size=1 << 14)

        def joined() -> Any:
            sides = {name: spark.read.parquet(f"{folder}/{name}.parquet") for name in "ab"}
            return joining.on_spark(sides)["o"]

        def joined_in_sql() -> Any:
            for name in "ab":
                spark.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)
            near = "b.ts between a.ts - 300 and a.ts + 300"
            return spark.sql(f"select greatest(a.ts, b.ts) as ts, k, v, w from a join b on k = j and {near}")

        both_rows = [sorted(map(str, frame().toArrow().to_pylist())) for frame in (joined, joined_in_sql)]
        if both_rows[0] != both_rows[1]:
            raise AssertionError("the join by hand gives other rows")
        ways = {"river": joined, "by hand": joined_in_sql}
        writes = {
            name: lambda make=make: make().write.format("noop").mode("overwrite").save()
            for name, make in ways.items()
        }
        contest("range 300, join by key", writes, given.runs)


if __name__ == "__main__":
    main()
