"""Spark with machine code and without: a count by key over a file, on `local[2]`; rows per second and their ratio.

A run that is not counted starts Spark, its Python processes and the machine code. Each figure is the best of a few runs,
by the clock: of the whole run from file to file, and of the stages alone, which are Spark's jobs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import measure

from backends.spark import run as runs
from river.backend import Options
from river.driver import Job, compile_source, execute
from river.io.errors import OnError
from river.source import Source

PROGRAM = """river 1;
type Visit = {key: i64, name: string, value: i64};
operator some(x: Visit) -> (y: Visit) { on x(v) { if rem.trunc(v.value, 10) != 0 { emit y v; } } }
operator count(x: Visit; $n: map<i64, i64>) -> (y: {key: i64, n: i64}) {
  on x(v) { with n = $n[v.key] else 0 { n = n + 1; emit y {key: v.key, n: n}; } }
}
var $n: map<i64, i64> = {};
input visits: Visit;
output counts: {key: i64, n: i64};
(some_of_them) <- some(visits);
(counts, $n) <- count(some_of_them, $n);
"""


def main() -> None:
    """Prints a line for each way, and what machine code gains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=Options().batch)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    compiled = compile_source(Source("count.river", PROGRAM))
    stages: list[float] = []
    compute = runs._Execution.compute

    def timed(self: runs._Execution, spark: Any) -> None:
        before = time.perf_counter()
        compute(self, spark)
        stages.append(time.perf_counter() - before)

    runs._Execution.compute = timed
    with TemporaryDirectory() as folder:
        choice = random.Random(7)
        file = Path(folder) / "visits.csv"
        with file.open("w") as out:
            out.write("key,name,value\n")
            for n in range(given.rows):
                key = choice.randrange(given.keys)
                out.write(f"{key},user_{key:05d},{n}\n")
        best: dict[str, tuple[float, float]] = {}
        for native in ("on", "off"):
            options = Options(workers=2, batch=given.batch, native=native)
            target = Path(folder) / f"{native}.csv"
            wholes: list[float] = []
            stages.clear()
            for _ in range(given.runs + 1):
                job = Job(
                    {"visits": str(file)}, {"counts": str(target)}, OnError.parse("stop"), options=options
                )
                measure.turn()
                before = time.perf_counter()
                execute(compiled, "spark", job)
                wholes.append(time.perf_counter() - before)
            measure.record(f"native {native}", {"river": wholes[1:], "river, stages": stages[1:]})
            best[native] = min(wholes[1:]), min(stages[1:])
            whole, alone = (f"{given.rows / seconds / 1000:8.0f} k rows/s" for seconds in best[native])
            print(f"native {native:3}: {whole} from file to file, {alone} in the stages")
        if (Path(folder) / "on.csv").read_bytes() != (Path(folder) / "off.csv").read_bytes():
            sys.exit("the results differ")
    ratios = [slow / fast for fast, slow in zip(best["on"], best["off"], strict=True)]
    print(f"machine code: {ratios[0]:.1f} times from file to file, {ratios[1]:.1f} times in the stages")


if __name__ == "__main__":
    main()
