"""How much Fig. 1's lock classes save: River section 6.3, Figure 7.

(a) Coarse: f1 and f3 sleep, f2 copies; f1 and f2 share $v1, f2 and f3 share $v2. One lock for all variables makes f1 and f3
take turns; the classes let them overlap, which is about twice as fast.
(b) Fine: f1 and f2 share n variables. The classes put all under one lock, so that a firing costs the same for every n; a
lock for each variable costs more with each.

Run: python tests/bench/bench_locks.py [--items N] [--delays MS,...] [--variables N,...] [--runs N]
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from functools import cache
from typing import TYPE_CHECKING

from measure import ALONE, Took, race, turn

from backends.locks import Scheme, classes, lock_each, one_lock
from backends.multicore.plan import plan
from backends.multicore.run import run
from river.backend import Options
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.platform import Platform
from river.source import Source

if TYPE_CHECKING:
    from river.il.graph import Graph

COARSE = """river 1;
operator slow(x: i64; $v: i64) -> (y: i64) = extern python "bench:slow";
operator cheap(x: i64; $v: i64, $w: i64) -> (y: i64) = extern python "bench:cheap";
input q1: i64;
output q4: i64;
var $v1: i64 = 0;
var $v2: i64 = 0;
(q2, $v1) <- slow(q1, $v1);
(q3, $v1, $v2) <- cheap(q2, $v1, $v2);
(q4, $v2) <- slow(q3, $v2);
"""


def fine(n: int) -> str:
    """The program of the fine-grained experiment. A firing may write all variables, and writes none: only locks cost."""
    names = [f"$v{i}" for i in range(n)]
    given = ", ".join(names)
    signature = ", ".join(f"{name}: i64" for name in names)
    writes = " ".join(f"{name} = v;" for name in names)
    return "\n".join(
        [
            "river 1;",
            f"operator f(x: i64; {signature}) -> (y: i64) {{ on x(v) {{ if v < 0 {{ {writes} }} emit y v; }} }}",
            "input q1: i64;",
            "output q3: i64;",
            *(f"var {name}: i64 = 0;" for name in names),
            f"(q2, {given}) <- f(q1, {given});",
            f"(q3, {given}) <- f(q2, {given});",
        ]
    )


def forward(_port: int, item: int, _variables: list[int]) -> list[tuple[int, int]]:
    return [(0, item)]


@cache
def program(text: str) -> Graph:
    """The verified program; made once, since it is long for many variables."""
    return verify(parse(Source("bench.river", text)), Library.of({}))


def measure(text: str, scheme: Scheme, options: Options, items: int) -> float:
    """Seconds between the arrivals of the first and the last of `items + 1` items at the output."""
    graph = program(text)
    made = plan(graph, Platform(options.workers or 1), options, scheme)
    found: list[int] = []
    times: list[float] = []

    def sink(batch: list[int]) -> None:
        times.append(time.perf_counter())
        found.extend(batch)

    turn()
    run(made, {graph.inputs[0]: [list(range(items + 1))]}, {graph.outputs[0]: sink})
    if found != list(range(items + 1)):
        raise SystemExit("wrong result")
    return times[-1] - times[0]


def coarse_grained(delays: list[float], items: int) -> None:
    """Figure 7 (a)."""
    print(f"(a) coarse-grained: {items} items, f1 and f3 sleep, seconds")
    print(f"{'delay ms':>10} {'one lock':>10} {'classes':>10} {'ratio':>7}")
    for delay in delays:

        def slow(port: int, item: int, variables: list[int], delay: float = delay) -> list[tuple[int, int]]:
            time.sleep(delay / 1000)
            return forward(port, item, variables)

        externs = {"bench:slow": slow, "bench:cheap": forward}
        options = Options(workers=3, batch=1, bound=4, externs=externs)
        naive = measure(COARSE, one_lock, options, items)
        ours = measure(COARSE, classes, options, items)
        print(f"{delay:>10g} {naive:>10.3f} {ours:>10.3f} {naive / ours:>7.2f}")


def fine_grained(counts: list[int], items: int, runs: int) -> None:
    """Figure 7 (b)."""
    print(
        f"\n(b) fine-grained: {items} items through two operators that share n variables, microseconds per firing"
    )
    print(f"{'n':>10} {'lock each':>10} {'one class':>10}")
    options = Options(workers=1, batch=1, bound=4)
    schemes: dict[str, Scheme] = {"lock each": lock_each, "river": classes}
    costs: dict[str, list[float]] = {way: [] for way in schemes}
    for n in counts:
        ways = {
            way: lambda s=scheme, n=n: Took(measure(fine(n), s, options, items) / (2 * items), math.nan)
            for way, scheme in schemes.items()
        }
        took = race(ways, runs, f"a firing with {n} variables")
        for way, least in took.items():
            costs[way].append(1e6 * least.wall)
        print(f"{n:>10} {costs['lock each'][-1]:>10.2f} {costs['river'][-1]:>10.2f}")
    slopes = {way: statistics.linear_regression(counts, found).slope for way, found in costs.items()}
    print(f"slope per variable: lock each {slopes['lock each']:.3f}, one class {slopes['river']:.3f}")


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description="Figure 7 of the River paper")
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument(
        "--delays", type=numbers, default=[1, 10, 30], help="milliseconds; the paper has 1 to 1000"
    )
    parser.add_argument("--variables", type=numbers, default=[1, 50, 250, 625, 1250])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if not ALONE:  # nothing of it is kept
        coarse_grained(given.delays, given.items)
    fine_grained([int(n) for n in given.variables], 20 * given.items, given.runs)


if __name__ == "__main__":
    main()
