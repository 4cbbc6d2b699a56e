"""How long an item takes through the multicore engine, in microseconds.

`one item`: a pipeline of three operators, and the next item comes when the one before is out: from the call that hands it
over to the call of the output. Its source is a generator of batches of one item, or a live iterator of rows, which the
engine reads in one more thread; as it stands, and fused as the backend's own passes do it. Beside it, what threads need
that wake each other in turn, which no engine of threads beats.

`paced`: the continuous log analyzer over a live source of so many records a second; from the creation of a record, and from
when it was due, to its answer. That can come only when its instant, one tick, is over, which a record of a later one
tells: from then on the engine alone has it.

`in order of arrival`: a count of the last 300 seconds by origin that answers each record at once, over batches of what came
in a millisecond; from when a record was due to its answer. The same in Bytewax (a `stateful_map`), where that is installed.

Run: python tests/bench/bench_latency.py [--items N] [--rate N] [--seconds N] [--tick MS] [--workers N] [--switch MS]
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import threading
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import data
import measure

from backends.multicore import BACKEND
from river.backend import Options
from river.driver import compile_source, read_source
from river.io.errors import OnError, Refusals
from river.io.live import Live, arriving
from river.platform import here
from river.source import Source
from river.testing.laws import REGIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from river.driver import Compiled

WARM = 200
PIPELINE = """river 1;
type Trade = {k: i64, price: f64};
input trades: Trade;
output out: {k: i64, n: i64};
operator dear(x: Trade) -> (y: Trade) { on x(v) { if v.price > 0.0 { emit y v; } } }
operator scaled(x: Trade) -> (y: Trade) { on x(v) { emit y {k: v.k, price: v.price * 1.5}; } }
operator count(x: Trade; $n: map<i64, i64>) -> (y: {k: i64, n: i64}) {
  on x(v) { with n = $n[v.k] else 0 { n = n + 1; emit y {k: v.k, n: n}; } }
}
var $n: map<i64, i64> = {};
(a) <- dear(trades);
(b) <- scaled(a);
(out, $n) <- count(b, $n);
"""
ARRIVAL = """river 1;
input log: {at: f64, origin: string};
output out: {at: f64, n: i64};
var $times: map<string, deque<f64>> = {};
operator window(x: {at: f64, origin: string}; $times: map<string, deque<f64>>) -> (y: {at: f64, n: i64}) {
  on x(v) {
    with q = $times[v.origin] else [] {
      while len(q) > 0 and front(q) < v.at - 300.0 { let gone = pop_front(q); }
      push_back(q, v.at);
      emit y {at: v.at, n: len(q)};
    }
  }
}
(out, $times) <- window(log, $times);
"""
BYTEWAX = Path(__file__).parent / "peers" / "bytewax_latency.py"
QUERY = Path(__file__).parent / "programs" / "request_counts.cql"


def run(program: Compiled, name: str, source: Any, sink: Callable[[list[Any]], None], workers: int) -> None:
    """Runs to the end of the source."""
    plan = BACKEND.plan(program.graph, here(), Options(workers=workers))
    (output,) = program.graph.outputs
    BACKEND.run(plan, {name: source}, {output: sink})


def live(program: Compiled, name: str, rows: Iterator[Any]) -> Any:
    """The rows as a live input."""
    refusals = Refusals(OnError.parse("stop"))
    found = arriving(rows, program.inputs[name], Live(), name=name, refusals=refusals)
    assert found is not None
    return found


def tell(title: str, seconds: Sequence[float], note: str = "") -> None:
    """Prints the middle and the tail, and keeps the middle."""
    measure.record(title, {"Bytewax" if "Bytewax" in title else "river": [measure.percentile(seconds, 0.5)]})
    shown = "  ".join(
        f"{label} {1e6 * measure.percentile(seconds, share):9.0f}"
        for label, share in (("least", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("most", 1.0))
    )
    print(f"{title:44} {shown} us {note}", flush=True)


# ------------------------------------------------------------------------------------------------ one item


def one_item(items: int, workers: int, *, iterator: bool, tuned: bool) -> list[float]:
    """The seconds of each item after the first."""
    program = compile_source(Source("pipeline.river", PIPELINE)).tuned(BACKEND.passes if tuned else REGIONS)
    back, handed, took = threading.Event(), [0.0], list[float]()

    def sink(found: list[Any]) -> None:
        if found:
            took.append(time.perf_counter() - handed[0])
            back.set()

    def rows() -> Iterator[Any]:
        for i in range(items + WARM):
            back.clear()
            handed[0] = time.perf_counter()
            yield (i % 100, 1.0)
            if not back.wait(10):
                sys.exit("an item did not come out though nothing came behind it")

    measure.turn()
    source = live(program, "trades", rows()) if iterator else ([row] for row in rows())
    run(program, "trades", source, sink, workers)
    return took[WARM:]


def hand_overs(items: int, threads: int) -> list[float]:
    """The seconds that a token takes around so many threads, each of which waits for the one before."""
    locks = [threading.Lock() for _ in range(threads)]
    for lock in locks:
        lock.acquire()

    def pass_on(i: int) -> None:
        for _ in range(items):
            locks[i].acquire()
            locks[i + 1].release()

    others = [threading.Thread(target=pass_on, args=(i,)) for i in range(threads - 1)]
    for thread in others:
        thread.start()
    took: list[float] = []
    for _ in range(items):
        began = time.perf_counter()
        locks[0].release()
        locks[-1].acquire()
        took.append(time.perf_counter() - began)
    for thread in others:
        thread.join()
    return took


# --------------------------------------------------------------------------------------------------- paced


def paced(rate: int, seconds: float, tick: int, workers: int) -> tuple[dict[str, list[float]], float]:
    """The seconds of each record, by where they begin; how many processors that took."""
    program = compile_source(read_source(str(QUERY))).tuned(BACKEND.passes)
    count = int(rate * seconds)
    made = [(server, origin) for _, server, origin in data.requests(count)]
    created: defaultdict[int, deque[tuple[float, float]]] = defaultdict(deque)
    over: dict[int, float] = {}
    took: dict[str, list[float]] = {"creation": [], "when due": [], "instant over": []}

    def sink(found: list[Any]) -> None:
        now = time.perf_counter()
        for stamp, *_ in found:
            creation, due = created[stamp].popleft()
            for begun, at in zip(took, (creation, due, over.get(stamp, now)), strict=True):
                took[begun].append(now - at)

    def rows() -> Iterator[Any]:
        began, last = time.perf_counter() + 0.5, 0
        for i, (server, origin) in enumerate(made):
            due = began + i / rate
            while (now := time.perf_counter()) < due:
                time.sleep(due - now)
            stamp = int((due - began) * 1000 // tick)
            created[stamp].append((now, due))
            if stamp != last:
                over[last] = time.perf_counter()
                last = stamp
            yield (stamp, server, origin)

    took_all = measure.timed(
        lambda: run(program, "requests", live(program, "requests", rows()), sink, workers)
    )
    assert len(took["creation"]) == count
    begun = count // 10  # until everything is warm
    return {start: found[begun:] for start, found in took.items()}, took_all.had


def arrivals(rate: int, seconds: float, pause: float = 0.001) -> Iterator[list[tuple[float, str]]]:
    """What comes of a paced log, every so many seconds; a record is its instant and its origin."""
    began, sent, count = time.time(), 0, int(rate * seconds)
    while sent < count:
        woken = time.time()
        due = min(count, int((woken - began) * rate))
        if due > sent:
            yield [(began + i / rate, str(i * 7919 % 10_000)) for i in range(sent, due)]
            sent = due
        time.sleep(max(0.0, woken + pause - time.time()))


def in_order_of_arrival(rate: int, seconds: float, workers: int) -> tuple[list[float], float]:
    """The seconds of each record but those of the first fifth; how many processors that took."""
    program = compile_source(Source("arrival.river", ARRIVAL)).tuned(BACKEND.passes)
    took: list[float] = []

    def sink(found: list[Any]) -> None:
        now = time.time()
        took.extend([now - at for at, _ in found])

    had = measure.timed(lambda: run(program, "log", arrivals(rate, seconds), sink, workers)).had
    return took[len(took) // 5 :], had


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--tick", type=int, default=1, help="milliseconds")
    parser.add_argument("--workers", type=int, help="without it, 1 and 2")
    parser.add_argument("--switch", type=float, help="the interpreter's switch interval, in milliseconds")
    given = parser.parse_args()
    measure.begin("Latency")
    if given.switch is not None:
        sys.setswitchinterval(given.switch / 1000)
    for threads in (2, 3, 4):
        tell(f"hand-overs: a token around {threads} threads", hand_overs(given.items, threads))
    for workers in (1, 2) if given.workers is None else (given.workers,):
        for iterator, tuned in ((False, False), (True, False), (False, True), (True, True)):
            took = one_item(given.items, workers, iterator=iterator, tuned=tuned)
            middle = 1e6 * measure.percentile(took, 0.5)
            way = ("live iterator" if iterator else "batches") + (", fused" if tuned else "")
            tell(f"one item: {way}, {workers} workers", took, measure.target(middle, 100, " us"))
    for workers in (1, 2) if given.workers is None else (given.workers,):
        found, had = paced(given.rate, given.seconds, given.tick, workers)
        for start, took in found.items():
            tell(f"paced: from {start}, {workers} workers", took, f"({had:.2f} processors)")
    for workers in (1, 2) if given.workers is None else (given.workers,):
        took, had = in_order_of_arrival(given.rate, given.seconds, workers)
        tell(f"in order of arrival, {workers} workers", took, f"({had:.2f} processors)")
    if importlib.util.find_spec("bytewax") is None:
        print("Bytewax is not installed: no peer beside the last")
    else:
        subprocess.run([sys.executable, str(BYTEWAX), str(given.rate), str(given.seconds)], check=True)


if __name__ == "__main__":
    main()
