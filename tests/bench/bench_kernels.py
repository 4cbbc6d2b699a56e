"""Programs without optimization, as River optimizes them, and with annotations by hand; each on one core and on two.

The four applications of the River paper (§6.1), and the five kernels of *Auto-parallelizing Stateful Distributed Streaming
Applications* (§5.3), in our words: network monitoring, PageRank, words of tweets, patterns of tweets, and bargains. Their
operators take about as long for an item as in that paper's Table 2; what takes milliseconds and more there is scaled down.

All ways read files and write files, take turns, and their answers must be the same, those of queries but for the order within an
instant. One core is the process pinned to one processor. Printed are the medians of ratios of runs that stood side by side:
`by hand` and `none` are what the optimized program is compared with on as many cores; `2 over 1` is the optimized program on two
cores over the one without optimization on one. `measured` is the optimized program with a profile of the same data, so it says
what could be gained, at most, by planning anew in the middle of a run. On a machine that others use, how much the busiest thread
does tells how well the work is divided.

Run: python tests/bench/bench_kernels.py [--programs NAME,...] [--scale X] [--runs N]
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from array import array
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

import data
import measure
from kernels import BENCHES, PROGRAMS, Bench, annotated
from pyarrow import ipc
from report import Spread

import river

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def written(kind: str, rows: int, bench: Bench, folder: Path) -> Path:
    """A file of data of a kind, beginning with rows that are made and repeated, later, as often as it takes."""
    make, columns = data.KINDS[kind]
    if kind == "samples":
        from bench_programs import packed

        some = array("f", (value for (value,) in make(100_000)))
        return packed(some * max(1, rows // len(some)), folder / "samples.arrow")
    file = folder / f"{kind}.{bench.reads}"
    times = max(1, rows // PIECE)
    if times == 1:
        with file.open("w") as out:
            data.write(make(rows, **bench.options), columns, bench.reads, out)
        return file
    some = list(make(PIECE, **bench.options))
    span = some[-1][0] + 1 if columns[0] == "ts" else 0
    if bench.reads == "jsonl":
        assert not span, "these rows do not come again later"
        text = io.StringIO()
        data.write(iter(some), columns, bench.reads, text)
        with file.open("w") as out:
            out.writelines(text.getvalue() for _ in range(times))
        return file
    with file.open("w") as out:
        out.write(",".join(columns) + "\n")
        rest = ["".join(f",{value}" for value in row[1:]) for row in some]
        firsts = [row[0] for row in some]
        for turn in range(times):
            later = turn * span
            out.writelines(
                f"{first + later if span else first}{more}\n"
                for first, more in zip(firsts, rest, strict=True)
            )
    return file


PIECE = 250_000
"""Rows that are made; where more are wanted, they come again, later."""


def pinned(run: Callable[[], object], cores: int) -> tuple[measure.Took, float]:
    """One run on so many processors, and how long its busiest thread was at work: threads inherit where they may be."""
    all_ = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_)[:cores])
    try:
        with Threads() as threads:
            took = measure.timed(run)
        return took, max(threads.worked.values())
    finally:
        os.sched_setaffinity(0, all_)


class Threads:
    """Looks now and then how long each thread of this process has been at work, where the system tells it. Units: seconds."""

    def __init__(self) -> None:
        self.worked: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._over = Event()
        self._watch = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._before = dict(self._now())
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        self._look()

    def _run(self) -> None:
        while not self._over.wait(measure.SAMPLED / 4):
            self._look()

    def _look(self) -> None:
        for thread, worked in self._now():
            self.worked[thread] = worked - self._before.get(thread, 0.0)

    @staticmethod
    def _now() -> Iterator[tuple[str, float]]:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                yield thread.name, int((thread / "schedstat").read_text().split()[0]) / 1e9


def compare(name: str, bench: Bench, scale: float, runs: int, folder: Path) -> None:
    """Prints what the ways of a program take, and the ratios that count."""
    rows = max(1, round(bench.rows * scale))
    inputs = {each: str(written(kind, rows, bench, folder)) for each, kind in bench.inputs.items()}
    program, hand = river.load(str(PROGRAMS / name)), annotated(name, bench)
    told = program.profiled(program.profile(inputs))
    suffix = "arrow" if name.endswith(".str") else bench.form

    def run(way: str, cores: int) -> tuple[measure.Took, float]:
        outputs = {each: str(folder / f"{way}-{cores}-{each}.{suffix}") for each in program.outputs}
        which = {"by hand": hand, "measured": told}.get(way, program)
        options: dict[str, Any] = {"workers": cores, "optimize": way in ("automatic", "measured")}
        if way == "by hand":
            options["passes"] = bench.passes
        return pinned(lambda: which.run(inputs, outputs, **options), cores)

    ways = {
        f"river {way}, {cores}": partial(run, way, cores)
        for cores in (1, 2)
        for way in ("none", "automatic", "measured", "by hand")
    }
    for each in ways.values():  # machine code is made, and optimised
        each()
    check(name, program.outputs, suffix, folder)
    busiest: dict[str, float] = {}

    def once(way: str) -> measure.Took:
        took, worked = ways[way]()
        busiest[way.removeprefix("river ")] = min(worked, busiest.get(way.removeprefix("river "), worked))
        return took

    took = measure.rounds({way: partial(once, way) for way in ways}, runs)
    measure.record(name, {way: [each.wall for each in found] for way, found in took.items()})
    walls = {way.removeprefix("river "): [each.wall for each in found] for way, found in took.items()}
    cpus = {way.removeprefix("river "): min(each.cpu for each in found) for way, found in took.items()}
    print(f"{name}: {rows} rows")
    for way, seconds in walls.items():
        spread = Spread.of(seconds)
        print(
            f"  {way:14} {spread.middle:7.3f} s [{spread.least:.3f}, {spread.most:.3f}], "
            f"processors' time {cpus[way]:.3f} s, of which the busiest thread {busiest[way]:.3f} s"
        )
    for what, one, other, least in (
        ("automatic over by hand, 1 core", "by hand, 1", "automatic, 1", 0.97),
        ("automatic over by hand, 2 cores", "by hand, 2", "automatic, 2", 0.97),
        ("automatic over measured, 1 core", "measured, 1", "automatic, 1", 0.97),
        ("automatic over measured, 2 cores", "measured, 2", "automatic, 2", 0.97),
        ("automatic over none, 1 core", "none, 1", "automatic, 1", 0.97),
        ("automatic over none, 2 cores", "none, 2", "automatic, 2", 0.97),
        ("automatic on 2 cores over none on 1", "none, 1", "automatic, 2", bench.gain),
    ):
        ratio = Spread.of_ratios(walls[one], walls[other])
        missed = "" if ratio.middle >= least else ": missed"
        print(
            f"  {what:36} {ratio.middle:5.2f} [{ratio.least:.2f}, {ratio.most:.2f}] (target {least:g}{missed})",
            flush=True,
        )
    shared = busiest["none, 1"] / busiest["automatic, 2"]
    print(f"  {'busiest threads of these two':36} {shared:5.2f}", flush=True)


def check(name: str, outputs: Mapping[str, object], suffix: str, folder: Path) -> None:
    """Compares the answers of all ways: to the byte, but for the order within an instant."""
    for output in outputs:
        files = sorted(folder.glob(f"*-[12]-{output}.{suffix}"))
        free = name.endswith(".cql")
        found = [Counter(file.open("rb")) if free else answers(file) for file in files]
        if any(each != found[0] for each in found):
            sys.exit(f"{name}: the answers in `{output}` differ")


def answers(file: Path) -> object:
    """What is in a file, in its order."""
    if file.suffix != ".arrow":
        return file.read_bytes()
    with ipc.open_file(str(file)) as found:
        return found.read_all().column(0).to_pylist()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", default=",".join(BENCHES), help="names with commas between")
    parser.add_argument("--scale", type=float, default=1.0, help="of how many rows there are")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    measure.begin("Without optimization, optimized, and by hand")
    for name in given.programs.split(","):
        with TemporaryDirectory() as folder:
            compare(name, BENCHES[name], given.scale, given.runs, Path(folder))


if __name__ == "__main__":
    main()
