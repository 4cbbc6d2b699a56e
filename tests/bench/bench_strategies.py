"""What it costs to keep the order of a region's results, over round robin: Fig. 8 of the paper on auto-parallelizing.

An item takes some 600 ns of arithmetic, the least that the paper has. Two workers are at it: with no more than round robin, which
is enough for an operator without state that sends one item for each; with sequence numbers, and with sequence numbers and
marks, which the paper calls pulses, for operators that may send nothing: `may drop` sends none for one of sixteen. What counts
by key besides has its items dealt by their keys: then a table of the operator's own and the dealing are in the ratio, too.

Items come as columns that lie in memory, results are dropped, all take turns; printed are medians of ratios of runs that stood
side by side. The paper has at most 12 % for sequence numbers and 21 % with pulses.

Run: python tests/bench/bench_strategies.py [--items N] [--rounds N] [--runs N]

Paper: Schneider, Hirzel, Gedik, Wu, Auto-Parallelizing Stateful Distributed Streaming Applications (seed 000), section 5.2.
"""

from __future__ import annotations

import argparse
from array import array
from functools import partial
from typing import Final

import measure
from bench_workers import Ends, runner
from report import Spread

from river.backend import Options

PROGRAM: Final = """river 1;
input x: {{k: i64, v: i64}};
output y: i64;
var $m: map<i64, i64> = {{}};
operator f(x: {{k: i64, v: i64}}{variable}) -> (y: i64) {{
  on x(r) {{
    var h = r.v;
    for i in 0 .. {rounds} + (r.v & 7) {{ h = (h ^ (h << 7)) *% 2862933555777941757 +% 3037000493; }}
    {send}
  }}
}}
@Parallel(2) @Region(a, {region}) (y{variable_too}) <- f(x{variable_too});
"""
SENT: Final = "emit y h;"
DROPPED: Final = "if h & 15 != 0 { emit y h; }"
COUNTED: Final = "with n = $m[r.k] else 0 {{ n = n + 1; {} }}"
BASE: Final = "round robin"
STRATEGIES: Final[dict[str, tuple[str, str, float | None]]] = {
    BASE: ("round_robin", SENT, None),
    "sequence numbers": ("seqno", SENT, 1.12),
    "and marks": ("seqno_marks", SENT, 1.21),
    "and marks, may drop": ("seqno_marks", DROPPED, 1.21),
    "and counts by key": ("seqno, k", COUNTED.format(SENT), None),
    "and marks, may drop, counts": ("seqno_marks, k", COUNTED.format(DROPPED), None),
}
"""By name: what the region is annotated with, what is done with a result, and what the paper says it takes over round robin."""


def program(region: str, send: str, rounds: int) -> str:
    """The text of a program."""
    variable = "$m" in send
    return PROGRAM.format(
        region=region,
        send=send,
        rounds=rounds,
        variable="; $m: map<i64, i64>" if variable else "",
        variable_too=", $m" if variable else "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=350, help="of the operator's loop")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    measure.begin("The order of a region's results, over round robin")
    numbers, ends = array("q", range(given.items)), list[Ends]()
    ways = {
        f"river {name}": runner(
            program(region, send, given.rounds), numbers, Options().batch, ends, counted=True
        )
        for name, (region, send, _) in STRATEGIES.items()
    }
    for run in ways.values():  # machine code is made, and optimised
        run(2)
    found = measure.rounds({way: partial(run, 2) for way, run in ways.items()}, given.runs)
    walls = {way: [took.wall for took in all_] for way, all_ in found.items()}
    measure.record("strategies", walls)
    base = walls[f"river {BASE}"]
    for name, (_, _, most) in STRATEGIES.items():
        took = Spread.of([1e9 * seconds / given.items for seconds in walls[f"river {name}"]])
        ratio = Spread.of_ratios(walls[f"river {name}"], base)
        wanted = "" if most is None else f" (target {most:g}{'' if ratio.middle <= most else ': missed'})"
        print(
            f"{name:28} {took.middle:7.1f} ns per item and two workers, "
            f"{ratio.middle:5.3f} [{ratio.least:.3f}, {ratio.most:.3f}] of round robin{wanted}",
            flush=True,
        )


if __name__ == "__main__":
    main()
