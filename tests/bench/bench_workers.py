"""What a second worker gains, against what a second thread gains in C (gcc -O3 -march=native) in the same run.

`heavy`: a stateless operator of some 2 us of arithmetic an item, and the same loop in C with pthreads. `light`: a filter and
a map, where a second worker has little to do but should not be in the way. `keyed`: the same loop in an operator that counts by
key, so that items are dealt to shards; `counts`: an operator that does nothing else than counting by key. Items come as
columns that lie in memory, results are dropped; all take turns, and each figure is the least of a few, by the clock. On a
machine that others use the second thread has little to gain: how many processors each had is told, and the ratio of
the speedups is what counts.

Run: python tests/bench/bench_workers.py [--items N] [--rounds N] [--batch N] [--runs N]
"""

from __future__ import annotations

import argparse
import ctypes
from array import array
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zlib import crc32

import measure

from backends.multicore import BACKEND
from backends.native.batch import Batch, address_of
from river.backend import Options
from river.driver import compile_source
from river.lang.types import I64
from river.platform import here
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

HEAVY = """river 1;
input x: i64;
output y: i64;
operator f(x: i64) -> (y: i64) {
  on x(v) {
    var h = v;
    for i in 0 .. ROUNDS + (v & 7) { h = (h ^ (h << 7)) *% 2862933555777941757 +% 3037000493; }
    emit y h;
  }
}
(y) <- f(x);
"""
LIGHT = """river 1;
input x: i64;
output y: i64;
operator keep(x: i64) -> (y: i64) { on x(v) { if v & 3 != 0 { emit y v; } } }
operator change(x: i64) -> (y: i64) { on x(v) { emit y v *% 31 +% 7; } }
(kept) <- keep(x);
(y) <- change(kept);
"""
KEYED = """river 1;
type R = {k: i64, v: i64};
input x: R;
output y: i64;
var $m: map<i64, i64> = {};
operator f(x: R; $m: map<i64, i64>) -> (y: i64) {
  on x(r) {
    var h = r.v;
    for i in 0 .. ROUNDS + (r.v & 7) { h = (h ^ (h << 7)) *% 2862933555777941757 +% 3037000493; }
    with n = $m[r.k] else 0 { n = n + 1; emit y h +% n; }
  }
}
(y, $m) <- f(x, $m);
"""
COUNTS = KEYED.replace(
    "    for i in 0 .. ROUNDS + (r.v & 7) { h = (h ^ (h << 7)) *% 2862933555777941757 +% 3037000493; }\n", ""
)
C = """
#include <pthread.h>
#include <stdint.h>
typedef uint64_t u64;
static u64 *in, *out; static long count, block, rounds, next;
static void *work(void *unused) {
  for (;;) {
    long start = __atomic_fetch_add(&next, block, __ATOMIC_RELAXED), stop = start + block < count ? start + block : count;
    if (start >= count) return unused;
    for (long i = start; i < stop; i++) {
      u64 h = in[i]; long last = rounds + (in[i] & 7);
      for (long r = 0; r < last; r++) h = (h ^ (h << 7)) * 2862933555777941757u + 3037000493u;
      out[i] = h;
    }
  }
}
void heavy(u64 *x, u64 *y, long n, long size, long times, long threads) {
  pthread_t id[64]; in = x; out = y; count = n; block = size; rounds = times; next = 0;
  for (long i = 1; i < threads; i++) pthread_create(&id[i], 0, work, 0);
  work(0);
  for (long i = 1; i < threads; i++) pthread_join(id[i], 0);
}
"""


KEYS = 10_000


class Ends:
    """A sink of columns; `sum` depends on each number and its place, unless only rows are `counted`."""

    def __init__(self, *, counted: bool = False) -> None:
        self.rows = 0
        self.sum = 0
        self.counted = counted

    def __call__(self, items: list[int]) -> None:
        self.columns(Batch.of(I64, items))

    def columns(self, batch: Batch) -> None:
        self.rows += len(batch)
        if not self.counted and len(batch):
            found: Any = (ctypes.c_int64 * len(batch)).from_address(batch.addresses[0])
            self.sum = crc32(found, self.sum)


def runner(
    text: str, numbers: array[int], batch: int, ends: list[Ends], *, counted: bool = False
) -> Callable[[int], measure.Took]:
    """Runs of a program over columns, with so many workers; items that are records have keys, which come again."""
    program = compile_source(Source("bench.river", text))
    kept = [numbers]
    if program.inputs["x"] != I64:
        kept = [array("q", (number * 7919 % KEYS for number in numbers)), numbers]
    whole = Batch(program.inputs["x"], len(numbers), tuple(map(address_of, kept)), kept)
    parts = [whole[start : start + batch] for start in range(0, len(numbers), batch)]

    def run(workers: int) -> measure.Took:
        graph = program.tuned(BACKEND.passes, here(workers)).graph
        plan = BACKEND.plan(graph, here(), Options(workers=workers, batch=batch))
        ends.append(Ends(counted=counted))
        sources: Any = {"x": parts}
        return measure.timed(lambda: BACKEND.run(plan, sources, {"y": ends[-1]}))

    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--items",
        type=int,
        default=500_000,
        help="of the heavy operator; the light one gets 100 times as many",
    )
    parser.add_argument("--rounds", type=int, default=1000, help="of the heavy operator's loop")
    parser.add_argument("--batch", type=int, default=Options().batch)
    parser.add_argument("--runs", type=int, default=6)
    given = parser.parse_args()
    measure.begin("A second worker")
    numbers = array("q", range(given.items))
    found = array("q", bytes(8 * given.items))
    ends: list[Ends] = []
    with TemporaryDirectory() as folder:
        c = ctypes.CDLL(str(measure.built(Path(folder), "heavy.so", C, "-shared", "-fPIC")))
        river = runner(HEAVY.replace("ROUNDS", str(given.rounds)), numbers, given.batch, ends)

        def in_c(threads: int) -> measure.Took:
            sizes = (ctypes.c_long(n) for n in (given.items, given.batch, given.rounds, threads))
            x, y = (ctypes.c_void_p(address_of(each)) for each in (numbers, found))
            return measure.timed(lambda: c.heavy(x, y, *sizes))

        river(2)
        took = measure.race(
            {
                "river, 1": lambda: river(1),
                "C, 1": lambda: in_c(1),
                "river, 2": lambda: river(2),
                "C, 2": lambda: in_c(2),
            },
            given.runs,
            "heavy",
        )
    assert measure.ALONE or {(end.rows, end.sum) for end in ends} == {(given.items, crc32(found))}, (
        "River and C differ"
    )
    show("heavy", given.items, took)
    ours, theirs = (took[f"{who}, 1"].wall / took[f"{who}, 2"].wall for who in ("river", "C"))
    print(
        f"heavy: speedup {ours:.2f}, in C {theirs:.2f}, ratio {ours / theirs:.2f} {at_least(ours / theirs, 0.9)}"
    )

    many = array("q", range(100 * given.items))  # so that what threads take to start does not count
    light = runner(LIGHT, many, given.batch, ends, counted=True)
    light(2)
    took = measure.race({"river, 1": lambda: light(1), "river, 2": lambda: light(2)}, 3 * given.runs, "light")
    show("light", len(many), took)
    ratio = took["river, 1"].wall / took["river, 2"].wall
    print(f"light: speedup {ratio:.2f} {at_least(ratio, 0.95)}")
    for name, text, times, least in (("keyed", KEYED, 1, 1.5), ("counts", COUNTS, 10, 0.95)):
        many = array("q", range(times * given.items))
        mine: list[Ends] = []
        checked = runner(text.replace("ROUNDS", "3"), many, given.batch, mine)
        checked(1)
        checked(2)
        assert len({(end.rows, end.sum) for end in mine}) == 1, "one worker and two differ"
        run = runner(text.replace("ROUNDS", str(given.rounds)), many, given.batch, mine, counted=True)
        run(2)
        took = measure.race({"river, 1": partial(run, 1), "river, 2": partial(run, 2)}, 2 * given.runs, name)
        show(name, len(many), took)
        one, two = took["river, 1"], took["river, 2"]
        print(
            f"{name}: speedup {one.wall / two.wall:.2f} {at_least(one.wall / two.wall, least)}, "
            f"processors' time {two.cpu / one.cpu:.2f} times that of one"
        )


def show(name: str, items: int, took: dict[str, measure.Took]) -> None:
    """Prints ns per item."""
    for way, least in took.items():
        wall, cpu = (1e9 * seconds / items for seconds in (least.wall, least.cpu))
        print(
            f"{name}: {way:9} {wall:8.1f} ns per item, {cpu:8.1f} of the processors, of which it had {least.had:.2f}"
        )


def at_least(value: float, least: float) -> str:
    """What was wanted, and whether it is met."""
    return f"(target {least:g}{'' if value >= least else ': missed'})"


if __name__ == "__main__":
    main()
