"""What a run tells of itself while it goes on and at its end: items, rates, queues, times; and a file of that.

Counts are from the beginning of the run. Units: seconds.
"""

from __future__ import annotations

import json
from math import log2
from typing import TYPE_CHECKING, Any, Final

from river.classes import define, field, frozen

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

PERIOD: Final = 1.0
"""Seconds between two lines of a file of metrics."""

_FINE: Final = 8
"""Steps of a duration's octave: what is told is at most 9 % too long."""


@frozen
class OperatorFigures:
    """An operator instance: firings, items left out, how often a worker fired it (`batches`) and how long that took.

    `workers`: how many fired it at once, at most. `native`: as machine code. `width`: how many may be at it now, None where that
    does not follow from what it takes; `changed`: how often it has changed.
    """

    fired: int
    skipped: int
    batches: int
    seconds: float
    workers: int
    native: bool
    width: int | None = None
    changed: int = 0


@frozen
class OutputFigures:
    """An output: items handed to its sink, and how long the sink took."""

    items: int
    seconds: float


@frozen
class QueueFigures:
    """A queue: items and marks in it now, at most, and at most at a time (`bound`, None: no bound).

    `blocked`: how long its producer waited for room. `items`: all that were ever in it;
    `bytes`: what these took in columns, without what is in texts and lists.
    """

    length: int
    peak: int
    bound: int | None
    blocked: float
    items: int
    bytes: int


@frozen
class Latency:
    """From when a turn of the inputs was read until what came of it was delivered; of `count` turns, one at a time."""

    count: int = 0
    median: float = 0.0
    p99: float = 0.0
    most: float = 0.0


@frozen
class ConnectionFigures:
    """Those who connected to an input; `closed`: how many were refused or ended badly, by the code of the reason."""

    accepted: int
    closed: Mapping[str, int]


@frozen
class EpochFigures:
    """A run in epochs: how many there have been, of how many files; rows that wait for others, the bytes of the last state."""

    count: int = 0
    files: int = 0
    held: int = 0
    state: int = 0


@frozen
class Metrics:
    """A run so far.

    `inputs`: items sent by input; `read`: all of them; `host_calls`: how often Python ran where machine code was wanted
    (firings, and patterns compiled meanwhile), by instance or view; `connections`: of the inputs that listen;
    `unread`: how many files came to the folder of an input and were not read;
    `doing`: what goes on after the end of the inputs, for people; `epochs`: of a run in epochs, whose `latency` is that of these.
    """

    seconds: float
    inputs: Mapping[str, int]
    outputs: Mapping[str, OutputFigures]
    operators: Mapping[str, OperatorFigures]
    queues: Mapping[str, QueueFigures]
    latency: Latency
    host_calls: Mapping[str, int]
    connections: Mapping[str, ConnectionFigures] = field(factory=dict[str, ConnectionFigures])
    doing: str = ""
    epochs: EpochFigures | None = None
    unread: Mapping[str, int] = field(factory=dict[str, int])

    @property
    def read(self) -> int:
        """Items sent."""
        return sum(self.inputs.values())

    @property
    def written(self) -> int:
        """Items delivered."""
        return sum(each.items for each in self.outputs.values())

    @property
    def busy(self) -> float:
        """Seconds of all workers together."""
        return sum(each.seconds for each in (*self.operators.values(), *self.outputs.values()))

    def share(self, seconds: float) -> float:
        """Which part of the workers' time that is."""
        return seconds / self.busy if self.busy else 0.0

    def line(self, before: Metrics | None = None, *, end: bool = False) -> dict[str, Any]:
        """As JSON; rates are those since `before`. The fields are described in docs/cli.md."""
        since = self.seconds - (before.seconds if before else 0.0)

        def rate(now: int, then: int) -> float:
            return round((now - then) / since, 1) if since > 0 else 0.0

        epochs = self.epochs
        told: dict[str, Any] = {} if epochs is None else {"epochs": _epochs(epochs)}
        if self.unread:
            told["unread"] = dict(self.unread)
        return {
            "seconds": round(self.seconds, 3),
            "end": end,
            "items": self.read,
            "items_per_second": rate(self.read, before.read if before else 0),
            "inputs": dict(self.inputs),
            "outputs": {
                name: {
                    "items": each.items,
                    "items_per_second": rate(each.items, before.outputs[name].items if before else 0),
                    "seconds": round(each.seconds, 6),
                }
                for name, each in self.outputs.items()
            },
            "operators": {
                name: {
                    "fired": each.fired,
                    "skipped": each.skipped,
                    "batches": each.batches,
                    "mean_batch": round(each.fired / each.batches, 1) if each.batches else 0.0,
                    "seconds": round(each.seconds, 6),
                    "share": round(self.share(each.seconds), 4),
                    "workers": each.workers,
                    "width": each.width,
                    "changed": each.changed,
                    "native": each.native,
                }
                for name, each in self.operators.items()
            },
            "queues": {
                name: {
                    "length": each.length,
                    "peak": each.peak,
                    "bound": each.bound,
                    "blocked": round(each.blocked, 6),
                    "items": each.items,
                    "bytes": each.bytes,
                }
                for name, each in self.queues.items()
            },
            "latency": {
                "count": self.latency.count,
                "p50": round(self.latency.median, 6),
                "p99": round(self.latency.p99, 6),
                "max": round(self.latency.most, 6),
            },
            "host_calls": dict(self.host_calls),
            "connections": {
                name: {"accepted": each.accepted, "closed": dict(each.closed)}
                for name, each in self.connections.items()
            },
            **told,
        }


def _epochs(figures: EpochFigures) -> dict[str, int]:
    return {"count": figures.count, "files": figures.files, "held": figures.held, "state": figures.state}


@define
class Durations:
    """How many durations there were of about each length."""

    count: int = 0
    most: float = 0.0
    _buckets: dict[int, int] = field(factory=dict[int, int])

    def add(self, seconds: float) -> None:
        """One more."""
        self.count += 1
        self.most = max(self.most, seconds)
        bucket = int(_FINE * log2(max(seconds, 1e-6) * 1e6))
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def quantile(self, part: float) -> float:
        """So long at most were the given part of them."""
        left = part * self.count
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return min(self.most, 2 ** ((bucket + 1) / _FINE) / 1e6)
        return self.most

    def latency(self) -> Latency:
        """What is told of them."""
        return Latency(self.count, self.quantile(0.5), self.quantile(0.99), self.most)


@define(eq=False)
class Recorder:
    """A file of metrics: a JSON object on a line about every second, and one at the end."""

    path: str | os.PathLike[str]
    _file: Any = field(default=None, init=False)
    _before: Metrics | None = field(default=None, init=False)

    def open(self) -> None:
        """Begins the file. Raises: Rejected("data-output")."""
        from river.io.atomic import AtomicOutput

        self._file = AtomicOutput(self.path, in_place=True)

    def take(self, metrics: Metrics, *, end: bool = False) -> None:
        """Writes a line if it is time. Raises: Rejected("data-output")."""
        before = self._before
        if end or metrics.seconds >= (before.seconds if before else 0.0) + PERIOD:
            self._file.write(json.dumps(metrics.line(before, end=end)) + "\n")
            self._before = metrics

    def close(self) -> None:
        """Ends the file."""
        if self._file is not None:
            self._file.close()


def table(metrics: Metrics) -> str:
    """The metrics for people, at the end of a run."""
    rows = [("operator", "firings", "batches", "mean batch", "seconds", "share", "workers", "")]
    ordered = sorted(metrics.operators.items(), key=lambda pair: -pair[1].seconds)
    for name, one in ordered:
        mean = f"{one.fired / one.batches:,.1f}" if one.batches else ""
        kind = "native" if one.native else "evaluator"
        share = f"{metrics.share(one.seconds):.1%}"
        counts = (f"{one.fired:,}", f"{one.batches:,}", mean, f"{one.seconds:.3f}", share, _workers(one))
        rows.append((name, *counts, kind))
    for name, sink in metrics.outputs.items():
        share = f"{metrics.share(sink.seconds):.1%}"
        rows.append((name, f"{sink.items:,}", "", "", f"{sink.seconds:.3f}", share, "", "output"))
    lines = _aligned(rows)
    queues = [("queue", "longest", "bound", "blocked s")]
    for name, queue in sorted(metrics.queues.items(), key=lambda pair: (-pair[1].blocked, -pair[1].peak)):
        bound = "none" if queue.bound is None else f"{queue.bound:,}"
        queues.append((name, f"{queue.peak:,}", bound, f"{queue.blocked:.3f}"))
    lines += ["", *_aligned(queues)]
    if metrics.connections:
        lines += ["", *_aligned([("connections to", "accepted", "ended badly"), *_visits(metrics)])]
    late, epochs = metrics.latency, metrics.epochs
    if epochs is not None:
        message = (
            f"{epochs.files:,} files; {epochs.held:,} rows wait, and the state has {epochs.state:,} bytes"
        )
        lines += ["", message]
    if late.count:
        what = "turns" if epochs is None else "epochs"
        shown = [f"{seconds * 1000:.1f} ms" for seconds in (late.median, late.p99, late.most)]
        lines += ["", "latency of {:,} {}: median {}, 99 % {}, longest {}".format(late.count, what, *shown)]
    return "\n".join(lines)


def _workers(one: OperatorFigures) -> str:
    """How many workers were at an operator, and how many may be now."""
    if one.width is None:
        return str(one.workers)
    times = f", changed {one.changed:,} time{'s' * (one.changed != 1)}" if one.changed else ""
    return f"{one.workers} of {one.width}{times}"


def _visits(metrics: Metrics) -> Iterator[tuple[str, ...]]:
    for name, each in metrics.connections.items():
        reasons = ", ".join(f"{number:,} {code}" for code, number in each.closed.items())
        yield name, f"{each.accepted:,}", reasons or "0"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
