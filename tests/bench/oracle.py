"""What the benchmark programs mean, as plain loops over rows in order of time: no streams, no changes, no state to keep."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from itertools import accumulate, pairwise
from operator import mul
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = tuple[Any, ...]
WINDOW = 300
HALF_MINUTE = 29


def query_log(rows: Iterable[Row]) -> tuple[Counter[str], Counter[str]]:
    """How many queries come from each origin, and go to each target."""
    kept = list(rows)
    return Counter(origin for origin, _ in kept), Counter(target for _, target in kept)


def within(stamps: Sequence[int], now: int, length: int) -> slice:
    """Where in ascending `stamps` those from now - length to now stand."""
    return slice(bisect_left(stamps, now - length), bisect_right(stamps, now))


def request_counts(rows: Iterable[Row]) -> list[Row]:
    """For each request its instant, origin, and the requests of the origin in the window then."""
    kept = list(rows)
    stamps = _by([(origin, ts) for ts, _, origin in kept])
    return [(ts, origin, _size(within(stamps[origin], ts, WINDOW))) for ts, _, origin in kept]


def count_changes(rows: Iterable[Row]) -> list[Row]:
    """For each instant and origin whose count in the window is another one than before, and is not 0: the count."""
    kept = list(rows)
    last = max((ts for ts, *_ in kept), default=0)
    found: list[Row] = []
    for origin, stamps in _by([(origin, ts) for ts, _, origin in kept]).items():
        before = 0
        for now in sorted({*stamps, *(ts + WINDOW + 1 for ts in stamps)}):
            count = _size(within(stamps, now, WINDOW))
            if now <= last and count and count != before:
                found.append((now, origin, count))
            before = count
    return sorted(found)


def linear_road(rows: Iterable[Row]) -> list[Row]:
    """Tolls: ts, vid, xway, dir, seg, toll."""
    kept = list(rows)
    places = _by([((xway, way, seg), (ts, speed)) for ts, _, speed, xway, _, way, seg, _ in kept])
    stamps = {place: [ts for ts, _ in said] for place, said in places.items()}
    sums = {
        place: list(accumulate((speed for _, speed in said), initial=0)) for place, said in places.items()
    }
    last: dict[int, Row] = {}
    found: list[Row] = []
    for ts, vid, _, xway, _, way, seg, _ in kept:
        place = (xway, way, seg)
        if last.get(vid) == place:
            continue
        last[vid] = place
        seen = within(stamps[place], ts, WINDOW)
        vehicles = _size(within(stamps[place], ts, HALF_MINUTE))
        if (sums[place][seen.stop] - sums[place][seen.start]) / _size(seen) < 40 and vehicles > 50:
            found.append((ts, vid, *place, 2 * (vehicles - 50) ** 2))
    return found


def vwap(rows: Iterable[Row]) -> list[Row]:
    """Bargains: ts, sym, price, size, gain. Trades of a quote's instant count, whether they stand before or behind it."""
    kept = list(rows)
    trades = _by([(sym, (ts, price, size)) for ts, kind, sym, price, size in kept if kind == "t"])
    found: list[Row] = []
    for ts, kind, sym, price, size in kept:
        done = [trade for trade in trades.get(sym, ()) if trade[0] <= ts][-4:]
        gain = sum(p * z for _, p, z in done) - price * sum(z for *_, z in done)
        if kind == "q" and done and gain > 0:
            found.append((ts, sym, price, size, gain))
    return found


TAPS = 64
RATE = 250e6


def low_pass(cutoff: float) -> list[float]:
    """The weights of a low-pass filter."""
    w, m = 2 * math.pi * cutoff / RATE, TAPS - 1
    hamming = [0.54 - 0.46 * math.cos(2 * math.pi * i / m) for i in range(TAPS)]
    return [math.sin(w * (i - m / 2)) / math.pi / (i - m / 2) * hamming[i] for i in range(TAPS)]


def filtered(signal: Sequence[float], weights: Sequence[float], step: int = 1) -> list[float]:
    """The sums of the signal under the weights, at every `step`-th place."""
    starts = range(0, len(signal) - len(weights) + 1, step)
    return [sum(map(mul, signal[i : i + TAPS], weights)) for i in starts]


def fm_radio(signal: Sequence[float], bands: int = 10) -> list[float]:
    """The sound; equal to what River says but for rounding, because this computes in double precision."""
    front = filtered(signal, low_pass(108e6), 5)
    gain = 27000 * RATE / (10000 * math.pi)
    sound = [gain * math.atan(a * b) for a, b in pairwise(front)]
    edges = [
        math.exp(i * (math.log(97760000) - math.log(55)) / bands + math.log(55)) for i in range(bands + 1)
    ]
    total = [0.0] * max(0, len(sound) - TAPS + 1)
    for i in range(1, bands + 1):
        v = (i - bands / 2) / 5
        low, high = filtered(sound, low_pass(edges[i - 1])), filtered(sound, low_pass(edges[i]))
        for at, (a, b) in enumerate(zip(low, high, strict=True)):
            total[at] += (2 - abs(v)) * (b - a)
    return total


def _size(part: slice) -> int:
    return part.stop - part.start


def _by(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Values by key, in their order."""
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found
