"""The ordering structures of the multicore backend: figures 9, 10, 12 and 13 of the paper on ordered processing.

A message is what a batch is to the engine: one call that does not hold the GIL. It hashes some bytes, which takes the
asked number of microseconds; 0 means no call at all, so that only the structure itself costs. One worker and two: the
shape of the figures, not their scale. Speedups are those over one worker with the same structure; the times of one
worker are of the processor, so that they mean something on a machine that others use, too.

Run: python tests/bench/bench_ordering.py [--messages N] [--runs N] [--workers N]

Paper: Prasaad, Ramalingam, Rajan, Scaling Ordered Stream Processing on Shared-Memory Multicores, section 7.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
import statistics
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from measure import ALONE, Took, race, turn

from backends.multicore.ordering.hybrid import HybridQueue
from backends.multicore.ordering.keyed import Part
from backends.multicore.ordering.partitioned import PartitionedQueues
from backends.multicore.ordering.reorder import LockedReorder, ReorderBuffer, Wait
from backends.multicore.ordering.shared import SharedQueue
from backends.multicore.ordering.worklist import Worklist

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Step = Callable[[int], bool]

PER_BYTE = 1e-9
"""Seconds that hashing a byte is taken to cost where versions of River are compared: all do the same work."""

CAPACITY = 64
PARTITIONS = 100
REORDER = {"non-blocking": ReorderBuffer, "lock-based": LockedReorder}
KEYED = {"hybrid": HybridQueue, "partitioned": PartitionedQueues, "shared": SharedQueue}


@frozen
class Work:
    """A call that takes that many microseconds without the GIL."""

    micros: float
    data: bytes

    @classmethod
    def of(cls, micros: float) -> Work:
        probe, per_byte = bytes(1 << 18), PER_BYTE
        if not ALONE:
            per_byte = min(_timed(lambda: hashlib.sha256(probe)) for _ in range(20)) / len(probe)
        return cls(micros, bytes(int(micros * 1e-6 / per_byte)))

    def __call__(self) -> None:
        if self.data:
            hashlib.sha256(self.data)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@define
class Sink:
    """Takes serials with the time of their beginning; each costs `fan_out` appends, done by the sender."""

    fan_out: int = 1
    serials: list[int] = field(factory=list)
    latencies: list[float] = field(factory=list)
    busy: float = 0.0

    def send(self, result: tuple[int, float]) -> None:
        serial, begun = result
        for _ in range(self.fan_out):
            self.serials.append(serial)
        self.latencies.append(time.perf_counter() - begun)

    def check(self, count: int) -> None:
        if self.serials != [i for i in range(count) for _ in range(self.fan_out)]:
            raise SystemExit("wrong result")


def seconds(step: Step, done: Callable[[], bool], workers: int) -> float:
    """The time until all is done."""

    def worker(i: int) -> None:
        while not done():
            if not step(i):
                time.sleep(0)  # nothing for this one now

    threads = [threading.Thread(target=worker, args=(i,)) for i in range(workers)]
    turn()
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def stateless(scheme: str, work: Work, count: int, workers: int, sink: Sink) -> float:
    order = REORDER[scheme](CAPACITY, sink.send, lambda: True)
    inputs = iter(range(count))
    worklist = Worklist(order, lambda: next(inputs, None))
    task = threading.Lock()

    def step(_worker: int) -> bool:
        with task:
            taken = worklist.take()
        if isinstance(taken, Wait):
            return False
        begun = time.perf_counter()
        work()
        worklist.hand_in(taken[0], (taken[1], begun))
        sink.busy += time.perf_counter() - begun  # races lose little
        return True

    took = seconds(step, lambda: order.next == count, workers)
    sink.check(count)
    return took


def keyed(scheme: str, work: Work, keys: Sequence[float], workers: int, sink: Sink) -> float:
    """Messages of one key each, keys from 0 to 1 by range: a partition for each worker, or many."""
    parts = workers if scheme == "partitioned" else PARTITIONS
    order = ReorderBuffer(CAPACITY, sink.send, lambda: True)

    def operate(_partition: int, rows: int) -> tuple[int, float]:
        begun = time.perf_counter()
        work()
        return rows, begun

    def split(message: int) -> Sequence[Part[int]]:
        return (Part(min(parts - 1, int(keys[message] * parts)), message, (0,)),)

    queue = KEYED[scheme](parts, order, split, operate, lambda _batch, _parts, results: results[0])
    inputs = iter(range(len(keys)))
    task = threading.Lock()

    def step(worker: int) -> bool:
        if task.acquire(blocking=False):
            queue.feed(lambda: next(inputs, None))
            task.release()
        if not queue.waiting(worker):
            return False
        queue.work(worker, 1)
        return True

    took = seconds(step, lambda: order.next == len(keys), workers)
    sink.check(len(keys))
    return took


def uniform(count: int) -> list[float]:
    chosen = random.Random(1)
    return [chosen.random() for _ in range(count)]


def skewed(count: int, sigma: float) -> list[float]:
    """Half of a Gaussian: with two partitions a whole one would be even, whatever its width."""
    chosen = random.Random(1)
    return [min(0.999, abs(chosen.gauss(0, sigma))) for _ in range(count)]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    print(f"\n{title}")
    for row in (head, *rows):
        print("".join(f"{f'{each:.2f}' if isinstance(each, float) else each!s:>4}".rjust(15) for each in row))


def throughput(count: int, runs: int, workers: int) -> None:
    rows: list[list[Any]] = []
    for micros in (0, 20, 200):
        work, many = Work.of(micros), count if micros < 100 else count // 4
        keys = uniform(many)
        start = time.process_time()
        for _ in range(many):
            work()
        bare = time.process_time() - start

        def once(name: str, w: int, work: Work = work, keys: Sequence[float] = keys) -> Took:
            start = time.process_time()
            took = (
                stateless(name, work, len(keys), w, Sink())
                if name in REORDER
                else keyed(name, work, keys, w, Sink())
            )
            return Took(took / len(keys), (time.process_time() - start) / len(keys))

        ways = {f"river, {name}": partial(once, name, 1) for name in (*REORDER, *KEYED)}
        took = race(ways, runs, f"messages of {micros} us", clock="cpu")
        for name in (*REORDER, *KEYED):
            one = took[f"river, {name}"]
            more = math.nan if ALONE else min(once(name, workers).wall for _ in range(runs))
            own = one.cpu - bare / many
            rows.append([micros, name, 1e6 * bare / many, 1e6 * one.cpu, 1e6 * own, one.wall / more])
    head = ("message us", "structure", "loop us", "1 worker us", "overhead us", f"speedup, {workers}")
    table("Microseconds per message, and speedup of the elapsed time", head, rows)


def skew(count: int, runs: int, workers: int) -> None:
    work, rows = Work.of(100), list[list[Any]]()
    for sigma in (0.05, 0.1, 0.25, 0.5, 1.0):
        keys = skewed(count // 4, sigma)
        found = [
            min(keyed(name, work, keys, 1, Sink()) for _ in range(runs))
            / min(keyed(name, work, keys, workers, Sink()) for _ in range(runs))
            for name in ("hybrid", "partitioned")
        ]
        rows.append([sigma, *found])
    table(
        f"Speedup with {workers} workers under skew, 100 us (Fig. 9)",
        ("sigma", "hybrid", "partitioned"),
        rows,
    )


def latency(count: int, runs: int, workers: int) -> None:
    rows: list[list[Any]] = []
    for micros in (10, 100, 1000):
        work, keys = Work.of(micros), uniform(max(200, count // 2 // max(1, micros // 10)))
        found: list[float] = []
        for name in KEYED:
            means: list[float] = []
            for _ in range(runs):
                sink = Sink()
                keyed(name, work, keys, workers, sink)
                middle = sink.latencies[len(keys) // 5 : 4 * len(keys) // 5]
                means.append(statistics.mean(middle) * 1e6)
            found.append(min(means))
        rows.append([micros, *found])
    table(
        f"Latency in us with {workers} workers, from the beginning of the work (Fig. 10)",
        ("us", *KEYED),
        rows,
    )


def reordering(count: int, runs: int, workers: int) -> None:
    for title, micros, fan_out in (
        ("Reordering light messages, 20 us (Fig. 12)", 20, 1),
        ("Reordering with selectivity 50, 100 us (Fig. 13)", 100, 50),
    ):
        work, rows, many = Work.of(micros), list[list[Any]](), count if micros < 100 else count // 4
        for name in REORDER:
            times: dict[int, float] = {}
            costs: dict[int, float] = {}
            for w in (1, workers):
                sinks = [Sink(fan_out) for _ in range(runs)]
                found = [(stateless(name, work, many, w, sink), sink.busy) for sink in sinks]
                times[w], costs[w] = min(found)[0], min(busy for _, busy in found) / many * 1e6
            rows.append([name, times[1] / times[workers], costs[1], costs[workers]])
        table(title, ("scheme", "speedup", "cost us, 1", f"cost us, {workers}"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Figures 9, 10, 12 and 13 of the paper on ordered processing"
    )
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    others = () if ALONE else (skew, latency, reordering)  # of which nothing is kept
    for experiment in (throughput, *others):
        experiment(given.messages, given.runs, given.workers)


if __name__ == "__main__":
    main()
