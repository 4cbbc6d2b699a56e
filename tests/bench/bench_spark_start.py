"""By how much River makes a fresh process longer that starts Spark: its first run, beside `spark.range(1).count()` alone.

Whole processes in turns, with a full cache of River's code: seconds of all processors and by the clock.

Run: python tests/bench/bench_spark_start.py [--runs N]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import measure

TARGET: Final = 1.0
PROGRAM: Final = """s: {ts: int; k: int; v: int} stream by ts;
output o: relation = select k, sum(v) as n from s[range 5] group by k;"""
END: Final = """
from processes import family, seconds
print(seconds(family()))
"""
SPARK: Final = """
from backends.spark.session import check, session
check({})
with session(2, {}) as spark:
    assert spark.range(1).count() == 1
"""
RIVER: Final = """
import sys
import river
found = river.load(sys.argv[1]).run({"s": sys.argv[2]}, backend="spark", workers=2)
assert found["o"].num_rows
"""


def main() -> None:
    """Prints both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    measure.begin("a fresh process with Spark")
    with TemporaryDirectory() as name:
        program, rows = Path(name, "p.cql"), Path(name, "s.csv")
        program.write_text(PROGRAM)
        rows.write_text("ts,k,v\n" + "".join(f"{n},{n % 3},{n}\n" for n in range(10)))
        walls: dict[str, list[float]] = {"river": [], "spark alone": []}
        spent: dict[str, list[float]] = {"river": [], "spark alone": []}
        for number in range(given.runs + 1):
            for way, text in (("river", RIVER), ("spark alone", SPARK)):
                before = time.perf_counter()
                told = subprocess.run(
                    [sys.executable, "-c", text + END, program, rows],
                    check=True,
                    env=measure.environment() | {"PYTHONPATH": str(Path(__file__).parent)},
                    stdout=subprocess.PIPE,
                ).stdout
                if number:
                    walls[way].append(time.perf_counter() - before)
                    spent[way].append(float(told))
        measure.record("start with Spark", walls)
        for way, found in walls.items():
            cpu, wall = statistics.median(spent[way]), statistics.median(found)
            print(f"{way:12} {cpu:6.2f} s of processors, {wall:6.2f} s by the clock")
        more = [
            statistics.median(each["river"]) - statistics.median(each["spark alone"])
            for each in (spent, walls)
        ]
        print(f"river adds {more[0]:.2f} s of processors (target {TARGET}), {more[1]:.2f} s by the clock")


if __name__ == "__main__":
    main()
