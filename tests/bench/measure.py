"""What the benchmarks share: times of runs that take turns, whole processes, and C programs to compare with."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RESULTS: Final = "RIVER_BENCH_RESULTS"
"""The environment's name for a file that gets a line of JSON for each contest."""

ALONE: Final = bool(os.environ.get("RIVER_BENCH_ALONE"))
"""Whether only River runs, because it is compared with another version of itself."""

OURS: Final = "river"
"""What the names of River's ways begin with; all other ways are peers."""

TURNS: Final = "RIVER_BENCH_TURNS"
"""The environment's name for a socket by which a process gets its turn and hands it over, where versions are compared."""

_BATON: Final = os.environ.pop(TURNS, None)
"""That socket. What this process starts has no turns of its own, so it does not see it."""

BESIDE = 9
"""How many times a short run is measured where versions are compared: what counts is the middle of ratios, not the least time."""

SHORT = 0.01
"""Seconds that a turn of a run in this process takes at least: shorter runs are made again, since caches are cold at first."""

SAMPLED = 0.02
"""Seconds between two looks at the memory of a process."""


@frozen
class Took:
    """Seconds by the clock and of the processors; `peak`: bytes of private memory, of a process that was watched.

    `told`: what it printed; `had`: how many processors it had.
    """

    wall: float
    cpu: float
    peak: int = 0
    told: str = ""
    had: float = field(default=Factory(lambda self: self.cpu / self.wall, takes_self=True))

    def least(self, other: Took) -> Took:
        """The smaller one of each; what the faster one printed, and the processors that it had."""
        fast = self if self.wall <= other.wall else other
        return Took(fast.wall, min(self.cpu, other.cpu), max(self.peak, other.peak), fast.told, fast.had)


def begin(title: str) -> None:
    """Prints what is measured, and what else the machine does: figures of a busy one are too large."""
    one, five, _ = os.getloadavg()
    print(
        f"{title} (load {one:.1f} now, {five:.1f} over five minutes, {os.cpu_count()} processors)", flush=True
    )


def turn() -> None:
    """Lets the other versions have their turn, and comes back for what is timed next; does nothing where none are compared.

    It stands just before each run that is timed: whatever the machine does for seconds, it does to runs side by side.
    """
    if _BATON is None:
        return
    os.write(int(_BATON), b".")
    if not os.read(int(_BATON), 1):
        sys.exit("nobody compares any more")


def timed(run: Callable[[], object]) -> Took:
    """One run in this process, when it is its turn; the processor's time is that of all threads."""
    turn()
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def few(runs: int) -> int:
    """How many runs of `runs` are made of what takes long: `ALONE` needs no more than three, since rounds follow."""
    return min(runs, 3) if ALONE else runs


def skipped(way: str) -> bool:
    """Whether a way is not run: peers are none of what is compared where River is `ALONE`."""
    return ALONE and not way.startswith(OURS)


def times(
    ways: Mapping[str, Callable[[], object]], runs: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of some runs of each way by a `clock`, after one that warms up; all take their turn. Skipped peers take nan."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for name, run in ways.items():
        if not skipped(name):
            run()
    for _ in range(BESIDE if ALONE else runs):
        for name, run in ways.items():
            found[name].append(math.nan if skipped(name) else _once(run, clock))
    return found


def _once(run: Callable[[], object], clock: Callable[[], float]) -> float:
    """One run; in a turn that is shared the middle of as many as make it long enough."""
    turn()
    enough = time.perf_counter() + SHORT
    found: list[float] = []
    while not found or (_BATON is not None and time.perf_counter() < enough):
        began = clock()
        run()
        found.append(clock() - began)
    return median(found)


def rounds(ways: Mapping[str, Callable[[], Took]], runs: int) -> dict[str, list[Took]]:
    """What each took in some rounds, in each of which all take their turn; peers take no time where River is `ALONE`."""
    found: dict[str, list[Took]] = {name: [] for name in ways}
    for _ in range(few(runs)):
        for name, run in ways.items():
            found[name].append(Took(math.nan, math.nan, told="nan") if skipped(name) else run())
    return found


def race(
    ways: Mapping[str, Callable[[], Took]], runs: int, what: str, *, clock: str = "wall"
) -> dict[str, Took]:
    """The least of each over some rounds. Kept as a contest called `what`, by the `clock` on the wall or that of the `cpu`."""
    found = rounds(ways, runs)
    record(what, {name: [getattr(took, clock) for took in each] for name, each in found.items()})
    return {name: reduce(Took.least, each) for name, each in found.items()}


def record(what: str, ways: Mapping[str, Sequence[float]]) -> None:
    """Keeps the seconds of a contest's ways, of every run, where somebody wants them."""
    file = os.environ.get(RESULTS)
    told = {way: list(each) for way, each in ways.items() if not any(map(math.isnan, each))}
    if file and told:
        with Path(file).open("a") as out:
            print(json.dumps({"bench": Path(sys.argv[0]).stem, "what": what, "ways": told}), file=out)


def spark() -> Any:
    """The session of Spark in which programs by hand and River's run in turns, with two processors, as a run begins it."""
    from backends.spark import session as sessions

    sessions.check({})
    with sessions.session(2, {}):
        pass
    return import_module("pyspark.sql").SparkSession.builder.getOrCreate()


@cache
def _bytecode() -> TemporaryDirectory[str]:
    """A folder of this benchmark alone; it is removed at its end."""
    return TemporaryDirectory()


def environment() -> dict[str, str]:
    """What processes see: Python keeps what it compiles, as for packages that are installed, but not among our files."""
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**found, "PYTHONPYCACHEPREFIX": _bytecode().name}


def process(
    command: Sequence[object], *, env: Mapping[str, str] | None = None, watched: bool = False
) -> Took:
    """A command from its start to its end, when it is our turn, and what it printed. Ends the benchmark if it fails."""
    turn()
    began = time.perf_counter()
    with subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(), **(env or {})},
    ) as child:
        peak, over = [0], Event()
        watch = Thread(target=_watch, args=(child.pid, peak, over))
        if watched:
            watch.start()
        assert child.stdout is not None
        assert child.stderr is not None
        errors: list[bytes] = []
        reading = Thread(target=lambda pipe=child.stderr: errors.append(pipe.read()))
        reading.start()
        told = child.stdout.read()
        reading.join()
        if watched:
            over.set()
            watch.join()
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} ended with {child.returncode}:\n{errors[0].decode()}")
    return Took(wall, used.ru_utime + used.ru_stime, peak[0], (told + errors[0]).decode())


def _watch(pid: int, peak: list[int], over: Event) -> None:
    """Keeps the most private memory that a process had, where the system tells it."""
    while not over.wait(SAMPLED):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            kept = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
            peak[0] = max(peak[0], kept * 1024)


def compiler() -> str:
    """The C compiler to compare with. Ends the benchmark where there is none."""
    return shutil.which("gcc") or sys.exit("the C programs to compare with need gcc")


def built(folder: Path, name: str, text: str, *flags: str) -> Path:
    """A C text as a program, or with `-shared` as a library."""
    source, made = folder / f"{name}.c", folder / name
    source.write_text(text)
    command: list[Any] = [compiler(), "-O3", "-march=native", *flags, "-o", made, source, "-lm", "-pthread"]
    subprocess.run(command, check=True)
    return made


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def target(value: float, most: float, unit: str = "") -> str:
    """What was wanted, and whether it is met."""
    return f"(target {most:g}{unit}{'' if value <= most else ': missed'})"
