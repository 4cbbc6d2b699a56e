"""Load that is not even, over the queues of a keyed operator: figure 9 of the ordered multicore paper, in River's engine.

Keys are drawn from half of a Gaussian over a thousand keys: the smaller sigma, the fewer keys have most of the items. The
hybrid queue has four shards for each worker, of which any worker fires any; the partitioned queues have one, which is
its own. Speedups are over one worker; on two cores 2 is the most there can be.

Run: python tests/bench/experiments/skew.py [--items N] [--micros N] [--workers N] [--runs N] [--out DIR]

Paper: Prasaad, Ramalingam, Rajan, Scaling Ordered Stream Processing on Shared-Memory Multicores, Fig. 9.
"""

from __future__ import annotations

import random
from array import array
from functools import partial

import figures
import measure

SIGMAS = (0.001, 0.002, 0.01, 0.1, 1.0)
KEYS = 1000
BATCH = 2048


def drawn(count: int, sigma: float) -> array[int]:
    """Keys from 0 to 999."""
    chance = random.Random(7)
    found: list[int] = []
    while len(found) < count:
        value = abs(chance.gauss(0, sigma))
        if value < 1:
            found.append(int(value * KEYS))
    return array("q", found)


def main() -> None:
    given = figures.arguments(__doc__, items=100_000, micros=2, workers=2, runs=4)
    measure.begin("Figure 9: skew")
    work = figures.Work.of(given.micros)
    speedups: dict[str, list[float]] = {"hybrid": [], "partitioned": [], "shared": []}
    rows: list[list[object]] = []
    for sigma in SIGMAS:
        run = figures.Runner.of(figures.KEYED, work, range(given.items), drawn(given.items, sigma)).once
        ways = {name: partial(run, given.workers, BATCH, sharding=name) for name in speedups}
        took = figures.races({"one": partial(run, 1, BATCH), **ways}, given.runs)
        one = figures.least(took["one"])
        for name, found in speedups.items():
            found.append(one.wall / figures.least(took[name]).wall)
        had = figures.least(took["hybrid"]).had
        rows.append([sigma, 1e9 * one.wall / given.items, *(found[-1] for found in speedups.values()), had])
    head = ("sigma", "ns per item, 1", *speedups, "processors had")
    figures.table(f"Speedup of {given.workers} workers over one (Fig. 9)", head, rows)
    labels = [f"{sigma:g}" for sigma in SIGMAS]
    places = range(1, len(SIGMAS) + 1)
    plot = figures.Plot("Fig. 9: skew of keys", "sigma", "speedup", places, speedups, labels=labels)
    figures.draw(given.out, "skew", [plot])


if __name__ == "__main__":
    main()
