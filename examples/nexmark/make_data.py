"""Write persons.csv, auctions.csv, bids.csv or side_input.csv: people who come, sell things and bid for them.

Run it as `python make_data.py bids > bids.csv`. The seed is fixed: it writes the same files every time.
"""

from __future__ import annotations

import csv
import random
import sys
from datetime import UTC, datetime, timedelta

SEED = 11
SECONDS = 240
STATES = ("OR", "ID", "CA", "WA", "AZ")
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal")
ITEMS = ("lamp", "clock", "chair", "vase", "rug")
CHANNELS = ("apple", "Google", "facebook", "Baidu", "street", "radio")
OPENING = datetime(2026, 1, 30, 6, 30, tzinfo=UTC)
SECOND = timedelta(minutes=5)
"""What a second of the benchmark is by the clock of the house, so that the bids are of two days."""
HEADS = {
    "persons": ("ts", "id", "name", "state"),
    "auctions": ("ts", "id", "seller", "category", "expires", "item", "reserve"),
    "bids": ("ts", "auction", "bidder", "price", "channel", "url", "clock", "extra"),
    "side_input": ("key", "value"),
}

Row = tuple[object, ...]


def data() -> dict[str, list[Row]]:
    """The rows of each file, in the order of their time stamps."""
    rng = random.Random(SEED)
    other = random.Random(SEED + 1)
    found: dict[str, list[Row]] = {name: [] for name in HEADS}
    found["side_input"] = [(key, f"group {key}") for key in range(4)]
    people = 0
    prices: dict[int, int] = {}
    for ts in range(SECONDS):
        if ts % 20 == 0:
            people += 1
            found["persons"].append((ts, people, NAMES[people % len(NAMES)], rng.choice(STATES)))
        if rng.random() < 0.12:
            auction = len(prices) + 1
            prices[auction] = rng.randint(1, 20)
            seller = max(1, people - rng.choice((0, 0, 1, 3)))
            category, expires = rng.randint(1, 3), ts + rng.randint(10, 90)
            named = other.choice(ITEMS), other.randint(5, 25)
            found["auctions"].append((ts, auction, seller, category, expires, *named))
        if prices and rng.random() < 0.6:
            auction = rng.choice(list(prices)[-6:])
            prices[auction] += rng.randint(0, 3)
            bidder = rng.randint(1, people)
            found["bids"].append(
                (ts, auction, bidder, prices[auction], *came(other), clock(ts), noise(other))
            )
    return found


def came(rng: random.Random) -> tuple[str, str]:
    """By which channel a bid comes, and the address that it had there; of some of the channels it has their number."""
    channel = rng.choice(CHANNELS)
    folders = "/".join("".join(rng.choices("abcd", k=3)) for _ in range(rng.randint(2, 3)))
    number = f"&channel_id={rng.randint(100, 999)}" if channel == "street" or rng.random() < 0.2 else ""
    return channel, f"https://auction.example/{folders}/item.htm?query=1{number}"


def clock(ts: int) -> str:
    """The time that the clock of the house shows at an instant."""
    return f"{OPENING + ts * SECOND:%Y-%m-%dT%H:%M:%SZ}"


def noise(rng: random.Random) -> str:
    """A text of letters that mean nothing."""
    return "".join(rng.choices("abcde", k=rng.randint(0, 8)))


def main() -> None:
    """Writes the file that the command line names, to standard output."""
    (name,) = sys.argv[1:]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADS[name])
    writer.writerows(data()[name])


if __name__ == "__main__":
    main()
