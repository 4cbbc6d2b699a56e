"""The FM radio of StreamIt's benchmarks against three C programs, in memory and from file to file.

One does the work that the program declares, 20 filters of 64 taps; another the 11 that are left where two bands share the
filter of their border, which is the work that River does, too; the last has one filter, whose taps were combined by hand, as the
pass `linear` finds them. All are built by gcc -O3 -march=native -ffast-math, in blocks that stay in
the first-level cache, and may add up in any order. River keeps the order of every sum, but for `linear`. In memory: samples as
columns that lie there, answers copied to memory that has been touched. From file to file: Arrow data for River, which reads them
in pieces in a process that has run the program before, and waits for the disk; raw floats for C, which maps them and does not
wait. Those of a kind take turns, and each figure is the least of a few: by the clock, and of the processors.

River's answers are compared with the evaluator's to the bit, for all lengths near the borders of blocks, and with those in C.

Run: python tests/bench/bench_radio.py [--samples N | --input FILE.f32] [--workers N] [--runs N]
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from array import array
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import bench_programs
import data
import measure

import river
from backends.multicore import BACKEND
from backends.native.batch import Batch, address_of
from river.backend import Options
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.driver import Compiled

PROGRAM = bench_programs.PROGRAMS / "fm_radio.str"
DECLARED = "C, 20 filters"
SHARED = "C, 11 filters"
COMBINED = "C, 1 filter"
LINEAR = "river, linear"
NAMES = ("river", LINEAR, DECLARED, SHARED, COMBINED)
OURS = NAMES[:2]
MOST = {("river", DECLARED): 0.5, (LINEAR, DECLARED): 0.25, (LINEAR, COMBINED): 1 / 0.7}
"""Of the time of C."""

SHORT = (0, 382, 383, 384, 1000, 1023, 1024, 1025, 2400)
"""Lengths of signals: the first answer needs 383 samples."""


class Ends:
    """A sink of columns: memory for so many answers."""

    def __init__(self, most: int) -> None:
        self.found = array("f", bytes(4 * most))
        self.rows = 0

    def __call__(self, items: list[Any]) -> None:
        if items:
            raise AssertionError("answers come in columns")

    def columns(self, batch: Batch) -> None:
        """Takes answers."""
        if len(batch):
            to = address_of(self.found) + 4 * self.rows
            ctypes.memmove(to, batch.addresses[0], 4 * len(batch))
            self.rows += len(batch)


def answers_of(samples: int) -> int:
    """How many answers there are to so many samples."""
    return max(0, (samples - 64) // 5 + 1 - 1 - 63)


def in_memory(
    program: Compiled, signal: array[float], workers: int, passes: str = ""
) -> Callable[[], measure.Took]:
    """Runs over samples in memory."""
    tuned = program.tuned(Options(passes=passes).through(BACKEND), here(workers))
    whole = Batch(tuned.inputs["input"], len(signal), (address_of(signal),), signal)
    ends = Ends(answers_of(len(signal)))

    def run() -> measure.Took:
        plan = BACKEND.plan(tuned.graph, here(), Options(workers=workers))
        ends.rows = 0
        sources: Any = {"input": iter([whole])}
        took = measure.timed(lambda: BACKEND.run(plan, sources, {"output": ends}))
        if ends.rows != answers_of(len(signal)):
            sys.exit(f"{ends.rows} answers to {len(signal)} samples, not {answers_of(len(signal))}")
        return took

    return run


def check(program: Compiled, signal: array[float]) -> None:
    """Compares with the evaluator."""
    for samples in SHORT:
        given = {"input": signal[:samples].tolist()}
        found, wanted = (
            array("f", program.run(given, native=native)["output"]["value"].to_pylist()).tobytes()
            for native in ("on", "off")
        )
        if found != wanted or len(found) != 4 * answers_of(samples):
            sys.exit(f"machine code and the evaluator differ on {samples} samples")


def tell(title: str, took: dict[str, measure.Took], samples: int) -> None:
    """Prints what each took."""
    for name in NAMES:
        found = took[f"{name}, {title}"]
        rates = f"{samples / found.wall / 1e6:6.1f} M samples/s, {samples / found.cpu / 1e6:6.1f} by the processors' time"
        print(f"  {f'{name}, {title}':30} {found.wall:7.4f} s, of the processors {found.cpu:7.4f}; {rates}")
    for own, name in product(OURS, NAMES[2:]):
        ours, theirs = took[f"{own}, {title}"], took[f"{name}, {title}"]
        wall, busy = ours.wall / theirs.wall, ours.cpu / theirs.cpu
        wanted = measure.target(busy, MOST[own, name]) if (own, name) in MOST else ""
        text = f"{own} over {name}, {title}"
        print(f"  {text:50} {wall:5.2f}, of the processors {busy:7.2f} {wanted}", flush=True)


def compare(signal: array[float], folder: Path, workers: int, runs: int) -> None:
    """Prints what River and C take."""
    program = river.load(str(PROGRAM))
    check(program, signal)
    packed = bench_programs.packed(signal, folder / "samples.arrow")
    raw, ours, theirs = packed.with_suffix(".f32"), folder / "river.arrow", folder / "c.f32"
    text = bench_programs.HEAD + bench_programs.FM_RADIO
    c = {
        name: measure.built(folder, f"radio{more}", text, "-ffast-math", *filter(None, [more]))
        for name, more in ((DECLARED, ""), (SHARED, "-DSHARED"), (COMBINED, "-DCOMBINED"))
    }

    def loop(name: str, *mode: str) -> measure.Took:
        wall, cpu = map(float, measure.process([c[name], raw, theirs, workers, *mode]).told.split())
        if not bench_programs.same(bench_programs.floats_of(ours), bench_programs.floats_of(theirs)):
            sys.exit(f"River and {name} differ")
        return measure.Took(wall, cpu)

    def files(passes: str = "") -> measure.Took:
        ends = {"input": str(packed)}, {"output": str(ours)}
        return measure.timed(lambda: program.run(*ends, workers=workers, passes=passes))

    files()
    files("linear")
    kinds: dict[str, dict[str, Callable[[], measure.Took]]] = {
        "in memory": {
            "river": in_memory(program, signal, workers),
            LINEAR: in_memory(program, signal, workers, "linear"),
        },
        "file to file": {"river": files, LINEAR: partial(files, "linear")},
    }
    for name in NAMES[2:]:
        kinds["in memory"][name] = partial(loop, name, "memory")
        kinds["file to file"][name] = partial(loop, name)
    took = {
        f"{name}, {kind}": found
        for kind, ways in kinds.items()
        for name, found in measure.race(ways, runs, f"{kind}, {workers} workers").items()
    }
    print(f"FM radio, {len(signal)} samples, {workers} worker{'s' * (workers > 1)}:")
    for title in ("in memory", "file to file"):
        tell(title, took, len(signal))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=4_000_000)
    parser.add_argument("--input", type=Path, help="a file of floats instead of generated samples")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    measure.begin("The radio")
    if given.input is None:
        signal = array("f", (value for (value,) in data.samples(given.samples)))
    else:
        signal = array("f", given.input.read_bytes())
    with TemporaryDirectory() as folder:
        compare(signal, Path(folder), given.workers, given.runs)


if __name__ == "__main__":
    main()
