"""A count of the last 300 seconds by origin in Bytewax: from when a record was due to its answer, in microseconds.

Run: python tests/bench/peers/bytewax_latency.py RATE SECONDS (bench_latency.py does)
"""

from __future__ import annotations

import sys
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

RATE, COUNT = int(sys.argv[1]), int(float(sys.argv[2]) * int(sys.argv[1]))
took: list[float] = []


class Arriving(StatelessSourcePartition[Any]):
    """What came in a millisecond, at once."""

    def __init__(self) -> None:
        self.began, self.sent = time.time(), 0

    def next_batch(self) -> list[Any]:
        due = min(COUNT, int((time.time() - self.began) * RATE))
        found = [(str(i * 7919 % 10_000), self.began + i / RATE) for i in range(self.sent, due)]
        self.sent = due
        if not found and due >= COUNT:
            raise StopIteration
        return found

    def next_awake(self) -> datetime:
        return datetime.now(UTC) + timedelta(milliseconds=1)


class Log(DynamicSource[Any]):
    """The paced log."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Arriving:
        return Arriving()


class Timed(StatelessSinkPartition[Any]):
    """Takes the time of answers."""

    def write_batch(self, items: list[Any]) -> None:
        now = time.time()
        took.extend(now - at for _, (at, _) in items)


class Answers(DynamicSink[Any]):
    """The answers."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Timed:
        return Timed()


def counted(times: deque[float] | None, at: float) -> tuple[deque[float], tuple[float, int]]:
    """How many there were in the last 300 seconds."""
    times = deque() if times is None else times
    while times and times[0] < at - 300:
        times.popleft()
    times.append(at)
    return times, (at, len(times))


flow = Dataflow("latency")
op.output("out", op.stateful_map("window", op.input("in", flow, Log()), counted), Answers())
run_main(flow)
took = sorted(took[len(took) // 5 :])
shown = "  ".join(
    f"{label} {1e6 * took[int(share * (len(took) - 1))]:9.0f}"
    for label, share in (("least", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("most", 1.0))
)
print(f"{'in order of arrival, Bytewax':44} {shown} us")
