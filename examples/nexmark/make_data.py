"""Write persons.csv, auctions.csv or bids.csv: people who come, sell things and bid for them.

Run it as `python make_data.py bids > bids.csv`. The seed is fixed: it writes the same files every time.
"""

from __future__ import annotations

import csv
import random
import sys

SEED = 11
SECONDS = 240
STATES = ("OR", "ID", "CA", "WA", "AZ")
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal")
HEADS = {
    "persons": ("ts", "id", "name", "state"),
    "auctions": ("ts", "id", "seller", "category", "expires"),
    "bids": ("ts", "auction", "bidder", "price"),
}

Row = tuple[object, ...]


def data() -> dict[str, list[Row]]:
    """The rows of each file, in the order of their time stamps."""
    rng = random.Random(SEED)
    found: dict[str, list[Row]] = {name: [] for name in HEADS}
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
            found["auctions"].append((ts, auction, seller, rng.randint(1, 3), ts + rng.randint(10, 90)))
        if prices and rng.random() < 0.6:
            auction = rng.choice(list(prices)[-6:])
            prices[auction] += rng.randint(0, 3)
            found["bids"].append((ts, auction, rng.randint(1, people), prices[auction]))
    return found


def main() -> None:
    """Writes the file that the command line names, to standard output."""
    (name,) = sys.argv[1:]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADS[name])
    writer.writerows(data()[name])


if __name__ == "__main__":
    main()
