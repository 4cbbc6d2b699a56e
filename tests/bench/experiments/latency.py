"""How long a message is under way through a keyed operator: figure 10 of the ordered multicore paper, in River's engine.

A message is a batch of eight items of random keys; as many are under way as there are workers. Told is the
median from when a message was read until what came of it was delivered, in order.

Run: python tests/bench/experiments/latency.py [--messages N] [--workers N] [--runs N] [--out DIR]

Paper: Prasaad, Ramalingam, Rajan, Scaling Ordered Stream Processing on Shared-Memory Multicores, Fig. 10.
"""

from __future__ import annotations

import random
from array import array
from functools import partial

import figures
import measure

COSTS = (10, 100, 1000, 10_000)
"""Microseconds of an item."""

ITEMS = 8


def main() -> None:
    given = figures.arguments(__doc__, messages=200, workers=2, runs=3)
    measure.begin("Figure 10: latency")
    medians: dict[str, list[float]] = {"hybrid": [], "partitioned": [], "shared": []}
    rows: list[list[object]] = []
    chance = random.Random(3)
    for micros in COSTS:
        messages = min(given.messages, max(20, given.messages * 500 // micros))
        keys = array("q", (chance.randrange(1000) for _ in range(ITEMS * messages)))
        run = figures.Runner.of(figures.KEYED, figures.Work.of(micros), range(len(keys)), keys).once
        ways = {
            name: partial(run, given.workers, ITEMS, window=given.workers, sharding=name) for name in medians
        }
        took = figures.races(ways, given.runs)
        for name, found in medians.items():
            told = [run.metrics.latency.median for run in took[name] if run.metrics is not None]
            found.append(1e6 * min(told))
        rows.append([micros, ITEMS * micros, *(found[-1] for found in medians.values())])
    head = ("us per item", "us per message", *medians)
    figures.table(f"Median latency of a message in us, {given.workers} workers (Fig. 10)", head, rows)
    costs = [ITEMS * micros for micros in COSTS]
    plot = figures.Plot(
        "Fig. 10: latency", "us of work per message", "us of latency", costs, medians, logarithmic=True
    )
    figures.draw(given.out, "latency", [plot])


if __name__ == "__main__":
    main()
