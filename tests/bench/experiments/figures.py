"""What the experiments share: programs on columns that lie in memory, runs that take turns, tables, and plots.

A message of the paper is a batch here; what it costs is a loop of arithmetic whose length is found out first.
"""

from __future__ import annotations

import argparse
import sys
from array import array
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING, Any
from zlib import crc32

from attrs import define, frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure

from backends.multicore import BACKEND
from backends.native.batch import Batch, address_of
from river.backend import Options
from river.driver import Compiled, compile_source
from river.platform import here
from river.source import Source
from river.testing.laws import REGIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from river.metrics import Metrics

LOOP = """
    var h = x.v;
    for i in 0 .. ROUNDS + (x.v & 7) { h = (h ^ (h << 7)) *% 2862933555777941757 +% 3037000493; }
"""
"""Some arithmetic on an item; `ROUNDS` says how much."""

HEAD = """river 1;
type R = {k: i64, v: i64};
input x: R;
output y: R;
"""

KEYED = (
    HEAD
    + "var $m: map<i64, i64> = {};\noperator f(x: R; $m: map<i64, i64>) -> (y: R) {\n  on x(x) {"
    + LOOP
    + "    with n = $m[x.k] else 0 { n = n + 1; emit y {k: n, v: h}; }\n  }\n}\n(y, $m) <- f(x, $m);\n"
)
"""An operator with state by key."""

STATELESS = (
    HEAD
    + "operator f(x: R) -> (y: R) {\n  on x(x) {"
    + LOOP
    + "    emit y {k: x.k, v: h};\n  }\n}\n(y) <- f(x);\n"
)

PATIENCE = 60.0
"""Seconds that a message may be under way."""

_PROBE = 20_000


@frozen
class Work:
    """So many rounds of the loop for an item."""

    rounds: int

    @classmethod
    def of(cls, micros: float) -> Work:
        """What takes an item that long."""
        rounds = 2_000
        run = Runner.of(STATELESS, cls(rounds), range(_PROBE // 10), array("q", bytes(8 * (_PROBE // 10))))
        took = min(run.once(1, 256).took.cpu for _ in range(3)) / (_PROBE // 10)
        return cls(max(0, round(rounds * micros * 1e-6 / took)))


@define
class Sink:
    """Keeps a checksum of the first column: results must not depend on how they are made.

    `message`: how many items have one; `under_way` is released for each message that has come.
    """

    message: int
    under_way: Semaphore
    rows: int = 0
    sum: int = 0

    def __call__(self, items: list[Any]) -> None:
        raise TypeError("columns are what the engine sends here")

    def columns(self, batch: Batch) -> None:
        if len(batch):
            numbers: Any = batch.numbers(0)
            self.sum = crc32(numbers, self.sum)
        before, self.rows = self.rows, self.rows + len(batch)
        for _ in range(self.rows // self.message - before // self.message):
            self.under_way.release()


@frozen
class Run:
    """One run: how long it took, and what it tells."""

    took: measure.Took
    metrics: Metrics | None
    sum: int


@frozen(eq=False)
class Runner:
    """A program over items in memory."""

    program: Compiled
    items: Batch

    @classmethod
    def of(cls, text: str, work: Work, values: Iterable[int], keys: array[int]) -> Runner:
        """`text` with a loop of that length, over items of those keys and values."""
        program = compile_source(Source("experiment.river", text.replace("ROUNDS", str(work.rounds))))
        column = array("q", values)
        kept = (keys, column)
        batch = Batch(program.inputs["x"], len(keys), tuple(map(address_of, kept)), kept)
        return cls(program, batch)

    def once(self, workers: int, batch: int, *, window: int | None = None, **experiment: str) -> Run:
        """A run with so many workers and items in a message.

        `window`: how many messages may be under way, of programs that make one item of one; None: any number.
        """
        chosen = {"gate": "open", **experiment}
        options = Options(workers=workers, batch=batch, bound=max(64, 16 * batch), experiment=chosen)
        plan = BACKEND.plan(self.program.tuned(REGIONS, here(workers)).graph, here(), options)
        sink, found = Sink(batch, Semaphore(window or 0)), list[Any]()
        sources: Any = {"x": self._messages(batch, None if window is None else sink.under_way)}
        took = measure.timed(lambda: found.append(BACKEND.run(plan, sources, {"y": sink})))
        return Run(took, found[0].metrics, sink.sum)

    def _messages(self, batch: int, under_way: Semaphore | None) -> Iterable[Batch]:
        for start in range(0, len(self.items), batch):
            if under_way is not None and not under_way.acquire(timeout=PATIENCE):
                sys.exit("a message does not come out")
            yield self.items[start : start + batch]


def races(ways: Mapping[str, Callable[[], Run]], runs: int) -> dict[str, list[Run]]:
    """Some runs of each, in turns; all must give the same."""
    found: dict[str, list[Run]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, run in ways.items():
            found[name].append(run())
    if len({run.sum for each in found.values() for run in each}) > 1:
        sys.exit("results depend on how they were made")
    return found


def least(runs: Sequence[Run]) -> measure.Took:
    """The least times of some runs."""
    best = runs[0].took
    for run in runs[1:]:
        best = best.least(run.took)
    return best


# ------------------------------------------------------------------------------------------------ tables and plots


def arguments(description: str | None, **defaults: int) -> argparse.Namespace:
    """The command line: numbers with their defaults, and where plots go."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where plots go; without it there are none")
    return parser.parse_args()


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table."""
    print(f"\n{title}")
    for row in (head, *rows):
        print("".join(_shown(each).rjust(18) for each in row), flush=True)


@frozen
class Plot:
    """A figure: lines by name over the same places; `labels`: of the places, if not the numbers."""

    title: str
    x: str
    y: str
    places: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    logarithmic: bool = False
    labels: Sequence[str] | None = None


def _shown(cell: Any) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.3g}" if cell < 100 else f"{cell:.0f}"


def draw(out: Path | None, name: str, plots: Sequence[Plot]) -> None:
    """Writes plots, side by side, as `name.svg` and `name.png` into a folder; says so where that is not possible."""
    if out is None:
        return
    try:
        from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports] - an extra
    except ImportError:
        print("no plot: matplotlib is not installed (pip install 'river-streams[bench]')")
        return
    figure = Figure(figsize=(5.2 * len(plots), 3.6), layout="constrained")
    for axes, plot in zip(figure.subplots(1, len(plots), squeeze=False)[0], plots, strict=True):
        for marker, (line, values) in zip("osv^Dx", plot.lines.items(), strict=False):
            axes.plot(plot.places, values, marker=marker, label=line)
        axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
        if plot.logarithmic:
            axes.set(xscale="log", yscale="log")
        else:
            axes.set_ylim(bottom=0)
            axes.set_xticks(plot.places, plot.labels)
        axes.grid(alpha=0.3)
        axes.legend()
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("svg", "png"):
        figure.savefig(out / f"{name}.{suffix}")
        print(f"wrote {out / name}.{suffix}")
