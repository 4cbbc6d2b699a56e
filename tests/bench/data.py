"""The inputs of the benchmark programs, made from a seed: the same rows every time.

    python tests/bench/data.py requests --rows 1000000 --format csv > requests.csv

Values follow the benchmarks of the River paper: popularity by Zipf's law, vehicles that report every 30 seconds,
a frequency-modulated signal. Every row comes in order of its time stamp.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TextIO

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SEED = 2011
ORIGINS = 10_000
TARGETS = 1_000
MILE = 5280
"""The length of a segment, in feet."""

Row = tuple[Any, ...]


def uniform(rng: random.Random, count: int, rows: int) -> Iterator[int]:
    """Numbers below `count`, each as likely as any other."""
    return (rng.randrange(count) for _ in range(rows))


def zipf(rng: random.Random, count: int, exponent: float, rows: int) -> Iterator[int]:
    """Numbers below `count`; number i comes with a frequency like 1 / (i + 1) ** exponent."""
    weights = list(accumulate(1 / (i + 1) ** exponent for i in range(count)))
    for start in range(0, rows, 10_000):
        yield from rng.choices(range(count), cum_weights=weights, k=min(10_000, rows - start))


def addresses(rng: random.Random, count: int) -> list[str]:
    """Different addresses."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[".".join(str(rng.randrange(1, 255)) for _ in range(4))] = None
    return list(found)


def queries(
    rows: int, *, seed: int = SEED, origins: int = ORIGINS, targets: int = TARGETS, alike: bool = False
) -> Iterator[Row]:
    """Search queries: origin, target. Some origins are popular, unless all are `alike`."""
    rng = random.Random(seed)
    places = addresses(rng, origins)
    words = ("news", "maps", "mail", "shop", "video", "docs", "img", "wiki", "blog", "app")
    pages = [
        f"http://www.{words[i % 10]}{i // 100}.example/{words[i // 10 % 10]}/p{i}" for i in range(targets)
    ]
    rng.shuffle(pages)
    asking = uniform(rng, origins, rows) if alike else zipf(rng, origins, 1, rows)
    ways = zip(asking, zipf(random.Random(seed + 1), targets, 1, rows), strict=True)
    return ((places[origin], pages[target]) for origin, target in ways)


def requests(
    rows: int, *, seed: int = SEED, seconds: int = 1_500, origins: int = ORIGINS, servers: int = 16
) -> Iterator[Row]:
    """Requests that servers got: ts, server, origin. What is popular drifts, so that counts also fall."""
    rng = random.Random(seed)
    places = addresses(rng, origins)
    stamps = sorted(rng.randrange(seconds) for _ in range(rows))
    for ts, origin in zip(stamps, zipf(rng, origins, 1, rows), strict=True):
        yield ts, rng.randrange(servers), places[(origin + ts // 200 * 7) % origins]


@define
class Vehicle:
    """A vehicle on an expressway; `phase` is the second of each half minute at which it reports."""

    vid: int
    direction: int
    phase: int
    feet: float = field(repr=False)


def reports(
    rows: int, *, seed: int = SEED, seconds: int = 1_200, expressways: int = 1, segments: int = 100
) -> Iterator[Row]:
    """Reports of vehicles: ts, vid, speed, xway, lane, dir, seg, pos. About `rows`: each vehicle reports every 30 seconds.

    A fifth of the segments is congested; which ones changes every 300 seconds.
    """
    rng = random.Random(seed)
    rounds, length = seconds // 30, segments * MILE
    number = max(1, rows // rounds // expressways)
    roads = [
        [
            Vehicle(x * number + i, rng.randrange(2), rng.randrange(30), rng.random() * length)
            for i in range(number)
        ]
        for x in range(expressways)
    ]
    fresh = number * expressways
    for turn in range(rounds):
        said: list[Row] = []
        for x, vehicles in enumerate(roads):
            for car in vehicles:
                segment = int(car.feet // MILE)
                slow = (segment * 7919 + car.direction * 104729 + turn // 10 * 31 + x * 17) % 100 < 20
                speed = int(min(max(rng.gauss(24 if slow else 58, 9), 0), 100))
                place = x, rng.randrange(4), car.direction, segment, int(car.feet)
                said.append((turn * 30 + car.phase, car.vid, speed, *place))
                car.feet += speed * 30 * MILE / 3600 * (-1 if car.direction else 1)
                if not 0 <= car.feet < length or rng.random() < 0.02:
                    car.vid, car.feet = fresh, rng.random() * length
                    fresh += 1
        yield from sorted(said, key=lambda report: (report[0], report[3], report[1]))


def ticks(rows: int, *, seed: int = SEED, seconds: int = 600, symbols: int = 500) -> Iterator[Row]:
    """Trades (kind t) and quotes (kind q), one to three: ts, kind, sym, price, size. Prices in cents, ts in milliseconds."""
    rng = random.Random(seed)
    names = ["".join(chr(65 + i // 26**j % 26) for j in range(3)) for i in range(symbols)]
    base = [rng.randrange(1_000, 40_000) for _ in names]
    stamps = sorted(rng.randrange(seconds * 1000) for _ in range(rows))
    for ts, i in zip(stamps, zipf(rng, symbols, 0.8, rows), strict=True):
        drift = round(base[i] * (1 + 0.01 * math.sin(ts / 40_000 + i)))
        if rng.random() < 0.75:
            yield ts, "q", names[i], drift + rng.randrange(-20, 60), rng.randrange(1, 50) * 100
        else:
            yield ts, "t", names[i], drift + rng.randrange(-25, 26), rng.randrange(1, 50) * 100


def samples(rows: int, *, seed: int = SEED) -> Iterator[Row]:
    """A carrier that sound modulates, with noise, at 250 MHz."""
    rng, rate, phase = random.Random(seed), 250e6, 0.0
    for i in range(rows):
        at = 2 * math.pi * i / rate
        sound = 0.6 * math.sin(at * 15e3) + 0.3 * math.sin(at * 440e3)
        phase = (phase + 2 * math.pi * (20e6 + 10e6 * sound) / rate) % (2 * math.pi)
        yield (math.cos(phase) + rng.gauss(0, 0.05),)


def visits(rows: int, *, seed: int = SEED, servers: int = 200, users: int = 5_000) -> Iterator[Row]:
    """What users ask servers for: server, user, size. A tenth of all is much larger than what its server is asked for else."""
    rng = random.Random(seed)
    usual = [rng.randrange(500, 4_000) for _ in range(servers)]
    for user in zipf(rng, users, 0.8, rows):
        server = rng.randrange(servers)
        large = 5_000 if rng.random() < 0.1 else 0
        yield server, user, max(1, round(rng.gauss(usual[server], 200))) + large


def tweets(rows: int, *, seed: int = SEED, authors: int = 300) -> Iterator[Row]:
    """Tweets of ten to twenty words, some of them hash-tags: ts, author, text. Most authors keep to their tags for a while."""
    rng = random.Random(seed)
    sounds = ("ka", "lo", "mi", "ren", "tus", "ver", "on", "da", "Sel", "pri")
    words = ["".join(rng.choices(sounds, k=rng.randrange(1, 4))) for _ in range(2_000)]
    tags = ["#" + word for word in words[:50]]
    used = [rng.sample(tags, 2) for _ in range(authors)]
    for i, author in enumerate(zipf(rng, authors, 0.6, rows)):
        if rng.random() < 0.15:
            used[author] = rng.sample(tags, 2)
        said = rng.choices(words, k=rng.randrange(8, 19)) + used[author]
        rng.shuffle(said)
        yield i, f"user{author}", " ".join(said)


def documents(rows: int, *, seed: int = SEED, authors: int = 300) -> Iterator[Row]:
    """The same tweets in XML, each a text."""
    for ts, author, text in tweets(rows, seed=seed, authors=authors):
        yield (f"<tweet><author>{author}</author><time>{ts}</time><text>{text}</text></tweet>",)


def trades(rows: int, *, seed: int = SEED, symbols: int = 500, kind: str = "t") -> Iterator[Row]:
    """The trades among so many ticks: ts, sym, price, size."""
    made = ticks(rows, seed=seed, symbols=symbols)
    return ((ts, sym, price, size) for ts, each, sym, price, size in made if each == kind)


def quotes(rows: int, *, seed: int = SEED, symbols: int = 500) -> Iterator[Row]:
    """The quotes among so many ticks: ts, sym, price, size."""
    return trades(rows, seed=seed, symbols=symbols, kind="q")


def webs(rows: int, *, seed: int = SEED, pages: int = 30_000, links: int = 200) -> Iterator[Row]:
    """Graphs whose links are drawn at random: pages, links of each, a number to draw by."""
    return ((pages, links, seed + i) for i in range(rows))


KINDS: Mapping[str, tuple[Callable[..., Iterator[Row]], Sequence[str]]] = {
    "queries": (queries, ("origin", "target")),
    "requests": (requests, ("ts", "server", "origin")),
    "reports": (reports, ("ts", "vid", "speed", "xway", "lane", "dir", "seg", "pos")),
    "ticks": (ticks, ("ts", "kind", "sym", "price", "size")),
    "samples": (samples, ("value",)),
    "visits": (visits, ("server", "user", "size")),
    "tweets": (tweets, ("ts", "author", "text")),
    "documents": (documents, ("text",)),
    "trades": (trades, ("ts", "sym", "price", "size")),
    "quotes": (quotes, ("ts", "sym", "price", "size")),
    "webs": (webs, ("pages", "links", "seed")),
}


def write(rows: Iterator[Row], columns: Sequence[str], form: str, out: TextIO) -> None:
    """The rows as CSV with a header, or as JSON lines."""
    if form == "csv":
        table = csv.writer(out, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)
        return
    for row in rows:
        found = json.dumps(dict(zip(columns, row, strict=True)), separators=(",", ":"))
        out.write(found + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--format", choices=("csv", "jsonl"), default="csv")
    chosen = parser.parse_args()
    make, columns = KINDS[chosen.kind]
    write(make(chosen.rows, seed=chosen.seed), columns, chosen.format, sys.stdout)


if __name__ == "__main__":
    main()
