"""What a second core gives whole programs, beside what the machine gives two runs that have nothing to do with each other.

Each way is a process that runs the program again and again (warm: its code is there, and optimised), from file to file.
`river, 1` has one worker and is pinned to one processor, `river, 2` has two on both. `river, 1 + 1` are two processes with
one worker each, side by side, each pinned to a processor of its own, with outputs of its own: twice the work. So what two
cores can give at most, on this machine and at this moment, is twice `river, 1` over `river, 1 + 1`, the *ceiling*: caches and
memory are shared, and what others do on the machine counts for all ways. Of the query log there is the same in C (gcc -O3
-march=native), with one thread and with two, each of which counts half of the file.

All take turns; printed are medians of ratios of runs that stood side by side, with their least and most. Rounds in which others
used the processors besides, as the system tells it, are dropped, and others made in their place; how many, is printed.
Under a real-time policy in turns (`chrt -r`) `river, 2` comes out worse than it is, by a fifth where turns are short: the reader
that there is room for again does not get a processor before a worker sleeps, which then has nothing to do.

Files are where TMPDIR says; where these are in memory, the system does not write outputs to a disk meanwhile.

Run: python tests/bench/bench_cores.py [--programs NAME,...] [--scale X] [--runs N]
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import measure
import processes
from attrs import evolve, frozen
from bench_kernels import written
from bench_programs import HEAD, QUERY_LOG
from kernels import BENCHES, PROGRAMS, Bench
from report import Spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROWS: Mapping[str, tuple[Bench, float]] = {
    "query_log.szl": (evolve(BENCHES["query_log.szl"], rows=16_000_000), 0.0),
    "query_log.szl, JSON lines": (evolve(BENCHES["query_log.szl"], rows=8_000_000, reads="jsonl"), 0.0),
    "request_counts.cql": (evolve(BENCHES["count_changes.cql"], rows=8_000_000), 1.5),
    "count_changes.cql": (evolve(BENCHES["count_changes.cql"], rows=8_000_000), 1.5),
    "linear_road.cql": (evolve(BENCHES["linear_road.cql"], rows=8_000_000), 0.0),
    "fm_radio.str": (evolve(BENCHES["fm_radio.str"], rows=160_000_000), 0.0),
}
"""How many rows there are at least, and what the second core is to give at least; 0: so much of the ceiling as `PART` says."""

PART = 0.92

OVER_C = 0.95
"""What the second core is to give, over what it gives in C."""

LEAST = 1.0
"""Seconds for which one core is to be at it: where it is sooner done, there are more rows."""

OTHERS = 0.05
"""Seconds of processors that others may have had in a second of a run by the clock; more, and its round is dropped."""

TRIES = 3
"""How many times as many rounds are made as are wanted, at most."""


@frozen
class Ways:
    """A program's file, its inputs, and where outputs go."""

    program: str
    inputs: Mapping[str, str]
    suffix: str
    folder: Path

    def process(self, name: str, cpus: Sequence[int], workers: int) -> subprocess.Popen[str]:
        """A process that runs the program for each line that it gets, and answers with a line."""
        command: list[str] = [sys.executable, __file__, "--child", self.program]
        command += [",".join(map(str, cpus)), str(workers), str(self.folder / name), self.suffix]
        command += [f"{key}={file}" for key, file in self.inputs.items()]
        (self.folder / name).mkdir()
        return waiting(command, self.folder / "cache")


def waiting(command: Sequence[str], cache: Path) -> subprocess.Popen[str]:
    """A process that does something for each line that it gets, and answers with a line; where its machine code is kept."""
    env = {**measure.environment(), "RIVER_CACHE": str(cache)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def child(program: str, cpus: str, workers: str, out: str, suffix: str, *inputs: str) -> None:
    """Runs the program for each line of the standard input; answers with seconds of its processors."""
    import river

    os.sched_setaffinity(0, set(map(int, cpus.split(","))))
    found = river.load(str(PROGRAMS / program))
    files = dict(each.split("=", 1) for each in inputs)
    outputs = {name: f"{out}/{name}.{suffix}" for name in found.outputs}
    for _ in sys.stdin:
        began = time.process_time()
        found.run(files, outputs, workers=int(workers))
        print(time.process_time() - began, flush=True)


def together(processes: Sequence[subprocess.Popen[str]]) -> measure.Took:
    """A run of each, all at once."""
    began, used = time.perf_counter(), 0.0
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    for each in processes:
        assert each.stdout is not None
        told = each.stdout.readline()
        if not told:
            sys.exit("a run has failed")
        used += float(told)
    return measure.Took(time.perf_counter() - began, used)


def alone(run: Callable[[], measure.Took]) -> tuple[measure.Took, bool]:
    """A run, and whether nobody else used the processors meanwhile."""
    measure.turn()
    before = processes.elsewhere()
    took = run()
    return took, processes.elsewhere() - before <= OTHERS * took.wall


def rounds(ways: Mapping[str, Callable[[], measure.Took]], runs: int) -> dict[str, list[measure.Took]]:
    """What each way took in some rounds in which nobody else used the processors. Ends the benchmark if there are not two."""
    ours = {name: run for name, run in ways.items() if name.startswith(measure.OURS)}
    ways = ours if measure.ALONE else ways
    found: dict[str, list[measure.Took]] = {name: [] for name in ways}
    wanted, tried, kept = measure.few(runs), 0, 0
    while kept < wanted and tried < TRIES * wanted:
        tried += 1
        one = {name: alone(run) for name, run in ways.items()}
        if all(undisturbed for _, undisturbed in one.values()):
            kept += 1
            for name, (took, _) in one.items():
                found[name].append(took)
    print(f"  {tried - kept} of {tried} rounds dropped, in which others used the processors", flush=True)
    if kept < min(2, wanted):
        sys.exit("others use the processors all the time: nothing is known of a second one")
    return found


def in_c(folder: Path, file: Path) -> dict[str, Callable[[], measure.Took]]:
    """The query log in C, by one thread and by two that each count half of the text."""
    flags = ["-DPOPULATE=0", *(["-DJSON"] if file.suffix == ".jsonl" else [])]  # each thread maps its part
    program = str(measure.built(folder, "query_log", HEAD + QUERY_LOG, *flags))
    allowed = sorted(os.sched_getaffinity(0))

    def run(threads: int) -> measure.Took:
        """It tells how long it took without its start."""
        outs = [str(folder / f"c-{name}") for name in ("origins", "targets")]
        began = subprocess.Popen(
            [program, str(file), *outs, str(threads)],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=partial(os.sched_setaffinity, 0, allowed[:threads]),  # noqa: PLW1509 - no other thread runs here
        )
        took = float(began.communicate()[0].split()[0])
        return measure.Took(took, took)

    return {"c, 1": partial(run, 1), "c, 2": partial(run, 2)}


def long_enough(process: Callable[[str, Sequence[int], int], subprocess.Popen[str]]) -> float:
    """How many times as many rows one core needs to be at it for `LEAST` seconds."""
    one = process("try", sorted(os.sched_getaffinity(0))[:1], 1)
    took = min(together([one]).wall for _ in range(3))
    one.communicate()
    return 1.0 if took >= LEAST else math.ceil(LEAST * 1.1 / took)


def compare(name: str, scale: float | None, runs: int, folder: Path) -> None:
    """Prints what the ways of a program take, what the second core gives, and the ceiling."""
    bench, wanted = ROWS[name]
    program = name.partition(",")[0]

    def of(rows: int, tried: Path) -> tuple[Ways, dict[str, str]]:
        tried.mkdir()
        inputs = {each: str(written(kind, rows, bench, tried)) for each, kind in bench.inputs.items()}
        return Ways(program, inputs, "arrow" if program.endswith(".str") else "csv", tried), inputs

    rows = round(bench.rows * (scale or 1))
    ways, inputs = of(rows, folder / "first")
    if scale is None and (more := long_enough(ways.process)) > 1:
        rows = round(rows * more)
        ways, inputs = of(rows, folder / "second")
    others = in_c(folder, Path(inputs["query"])) if program == "query_log.szl" else {}
    walls = tell(f"{name}: {rows} rows", ways.process, runs, wanted, others)
    measure.record(name, walls)
    if "c, 1" in walls:
        told("what it gives in C", Spread.of_ratios(walls["c, 1"], walls["c, 2"]))
        ours = Spread.of_ratios(walls["river, 1"], walls["river, 2"]).middle
        theirs = Spread.of_ratios(walls["c, 1"], walls["c, 2"]).middle
        print(f"  what it gives, over that (target {OVER_C:g})  {ours / theirs:5.2f}", flush=True)


def tell(
    title: str,
    process: Callable[[str, Sequence[int], int], subprocess.Popen[str]],
    runs: int,
    wanted: float,
    others: Mapping[str, Any],
) -> dict[str, list[float]]:
    """Prints what the ways take that `process` starts, with what the second core gives, and the ceiling; all seconds."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    started = {
        "river, 1": [process("one", [first], 1)],
        "river, 2": [process("two", [first, second], 2)],
        "river, 1 + 1": [process("left", [first], 1), process("right", [second], 1)],
    }
    print(title)
    try:
        for each in started.values():
            for _ in range(2):
                together(each)
        took = rounds({way: partial(together, each) for way, each in started.items()} | dict(others), runs)
    finally:
        for each in (each for found in started.values() for each in found):
            each.communicate()
    walls = {way: [each.wall for each in found] for way, found in took.items()}
    for way, seconds in walls.items():
        spread, cpu = Spread.of(seconds), min(each.cpu for each in took[way])
        print(
            f"  {way:13} {spread.middle:7.3f} s [{spread.least:.3f}, {spread.most:.3f}], processors' time {cpu:.3f} s"
        )
    gain = Spread.of_ratios(walls["river, 1"], walls["river, 2"])
    ceiling = Spread.of_ratios([2 * each for each in walls["river, 1"]], walls["river, 1 + 1"])
    part = Spread.of_ratios([each / 2 for each in walls["river, 1 + 1"]], walls["river, 2"])
    told(f"the second core gives (target {wanted:g})" if wanted else "the second core gives", gain)
    told("the ceiling", ceiling)
    told("part of the ceiling" if wanted else f"part of the ceiling (target {PART:g})", part)
    return walls


def told(what: str, ratio: Spread) -> None:
    """Prints a ratio."""
    print(f"  {what:38} {ratio.middle:5.2f} [{ratio.least:.2f}, {ratio.most:.2f}]", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", default="", help="names with commas between; else all")
    parser.add_argument(
        "--scale", type=float, help="of how many rows there are; else as many as take a second"
    )
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("there is one processor")
    measure.begin("Two cores over one")
    for name in ROWS:
        if not given.programs or name.partition(",")[0] in given.programs.split(","):
            with TemporaryDirectory() as folder:
                compare(name, given.scale, given.runs, Path(folder))


if __name__ == "__main__":
    main()
