"""By how much River makes a fresh process longer that starts Spark: its first run, beside `spark.range(1).count()` alone.

Whole processes in turns, with a full cache of River's code: seconds of all processors and by the clock. On a machine that does
other things, too, a process may take half a minute: a line is printed for each, and no round begins after `--seconds`.

Run: python tests/bench/bench_spark_start.py [--runs N] [--seconds N]
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
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=75.0)
    given = parser.parse_args()
    measure.begin("a fresh process with Spark")
    with TemporaryDirectory() as name:
        program, rows = Path(name, "p.cql"), Path(name, "s.csv")
        program.write_text(PROGRAM)
        rows.write_text("ts,k,v\n" + "".join(f"{n},{n % 3},{n}\n" for n in range(10)))
        walls: dict[str, list[float]] = {"river": [], "spark alone": []}
        spent: dict[str, list[float]] = {"river": [], "spark alone": []}
        began = time.perf_counter()
        took(RIVER, program, rows)  # fills the cache
        for number in range(given.runs):
            if number and time.perf_counter() - began > given.seconds:
                break
            for way, text in (("river", RIVER), ("spark alone", SPARK)):
                cpu, wall = took(text, program, rows)
                print(f"{way:12} {cpu:6.2f} s of processors, {wall:6.2f} s by the clock", flush=True)
                walls[way].append(wall)
                spent[way].append(cpu)
        measure.record("start with Spark", walls)
        more = [
            statistics.median(each["river"]) - statistics.median(each["spark alone"])
            for each in (spent, walls)
        ]
        rounds = len(walls["river"])
        print(
            f"medians of {rounds} rounds: river adds {more[0]:.2f} s of processors (target {TARGET}),"
            f" {more[1]:.2f} s by the clock"
        )


def took(text: str, *arguments: Path) -> tuple[float, float]:
    """Seconds of the processors, and by the clock, of a process that runs a text."""
    measure.turn()
    before = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", text + END, *arguments],
        check=True,
        env=measure.environment() | {"PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
    ).stdout
    return float(told), time.perf_counter() - before


if __name__ == "__main__":
    main()
