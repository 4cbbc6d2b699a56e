"""What putting results in order costs: figures 12 and 13 of the ordered multicore paper, in River's engine.

Figure 12: a stateless operator whose messages are light, some tens of microseconds. Figure 13: one that makes fifty items of
one, about 5 ms a message, and behind it a keyed operator, which is cheap and stays on one worker: it takes the fifty batches
that come of one, some 15 us each, most of which is the engine's. With the reorder
buffer a worker never waits while another one sends; with the lock it does. Costs are of the processors, speedups of the clock.

Run: python tests/bench/experiments/reordering.py [--messages N] [--workers N] [--runs N] [--out DIR]

Paper: Prasaad, Ramalingam, Rajan, Scaling Ordered Stream Processing on Shared-Memory Multicores, Fig. 12, Fig. 13.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING

import figures
import measure

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMES = ("non-blocking", "locked")
ITEMS = 200
"""Of a message of figure 13."""

FIFTY = (
    figures.HEAD
    + "var $m: map<i64, i64> = {};\noperator spread(x: R) -> (y: R) {\n  on x(x) {"
    + figures.LOOP
    + "    for i in 0 .. 50 { emit y {k: x.k + i & 15, v: h}; }\n  }\n}\n"
    + "operator tally(x: R; $m: map<i64, i64>) -> (y: R) {\n"
    + "  on x(x) { with n = $m[x.k] else 0 { n = n + 1; if n & 63 == 0 { emit y {k: n, v: x.v}; } } }\n}\n"
    + "(q) <- spread(x);\n(y, $m) <- tally(q, $m);\n"
)
"""An operator with selectivity 50 and a keyed one."""


def compare(
    title: str, name: str, run: Callable[..., figures.Run], messages: int, batch: int, workers: int, runs: int
) -> list[figures.Plot]:
    """The two schemes with one worker and more."""
    counts = sorted({1, 2, workers})
    ways = {
        f"{scheme}, {count}": partial(run, count, batch, reordering=scheme)
        for count in counts
        for scheme in SCHEMES
    }
    took = {way: figures.least(found) for way, found in figures.races(ways, runs).items()}
    speedups: dict[str, list[float]] = {scheme: [] for scheme in SCHEMES}
    costs: dict[str, list[float]] = {scheme: [] for scheme in SCHEMES}
    rows: list[list[object]] = []
    for scheme in SCHEMES:
        one = took[f"{scheme}, 1"]
        for count in counts:
            here = took[f"{scheme}, {count}"]
            speedups[scheme].append(one.wall / here.wall)
            costs[scheme].append(1e6 * here.cpu / messages)
            rows.append([scheme, count, speedups[scheme][-1], costs[scheme][-1], here.had])
    figures.table(title, ("scheme", "workers", "speedup", "us per message", "processors had"), rows)
    return [
        figures.Plot(f"{name} (a)", "workers", "speedup", counts, speedups),
        figures.Plot(f"{name} (b)", "workers", "us of processors per message", counts, costs),
    ]


def main() -> None:
    given = figures.arguments(__doc__, messages=3000, workers=2, runs=4)
    measure.begin("Figures 12 and 13: reordering")
    light = figures.Work.of(0.5)  # of an item, of which a message has some
    keys = array("q", (i % 16 for i in range(40 * given.messages)))
    run = figures.Runner.of(figures.STATELESS, light, range(len(keys)), keys).once
    title = "Light messages, 20 us (Fig. 12)"
    plots = compare(title, "Fig. 12: light", run, given.messages, 40, given.workers, given.runs)
    figures.draw(given.out, "reordering-light", plots)

    heavy, many = figures.Work.of(25.0), max(given.messages // 40, 1)
    keys = array("q", (i % 16 for i in range(ITEMS * many)))
    run = partial(figures.Runner.of(FIFTY, heavy, range(len(keys)), keys).once, sharding="off")
    title = "Fifty items of one, 5 ms, and a keyed operator (Fig. 13)"
    plots = compare(title, "Fig. 13: selectivity 50", run, many, ITEMS, given.workers, given.runs)
    figures.draw(given.out, "reordering-selectivity", plots)


if __name__ == "__main__":
    main()
