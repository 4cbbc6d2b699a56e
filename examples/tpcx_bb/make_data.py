"""Write sales.csv or clicks.csv: what people buy in stores, and what they look at on the web.

Run it as `python make_data.py sales > sales.csv`. The seed is fixed: it writes the same files every time.
"""

from __future__ import annotations

import csv
import random
import sys

SEED = 5
HOUR, DAY = 3600, 86400
DAYS = 14
ITEMS = 16
CATEGORIES = 6  # item i is of category i % CATEGORIES
STORES = 3
USERS = 20
HEADS = {
    "sales": ("ts", "ticket", "store", "item", "category", "price"),
    "clicks": ("ts", "user", "kind", "item", "category"),
}

Row = tuple[object, ...]


def sales(rng: random.Random) -> list[Row]:
    """Tickets with some items each; one of a pair is often sold with the other. Some categories sell less and less."""
    tickets: list[tuple[int, int, list[int]]] = []
    for day in range(DAYS):
        for _ in range(14):
            first = rng.randint(1, ITEMS)
            items = {first, *([first % ITEMS + 1] if rng.random() < 0.5 else []), rng.randint(1, ITEMS)}
            kept = [item for item in sorted(items) if item % 2 or rng.random() > day / DAYS]
            at = day * DAY + rng.choice((9, 9, 10, 17)) * HOUR + rng.randrange(HOUR)
            tickets.append((at, rng.randint(1, STORES), kept))
    return [
        (at, number, store, item, item % CATEGORIES, item + rng.choice((0, 0.25, 0.5)))
        for number, (at, store, items) in enumerate(sorted(tickets), start=1)
        for item in items
    ]


def clicks(rng: random.Random) -> list[Row]:
    """Visits of users, who look at pages, put things into the cart, and buy them or leave them there."""
    found: list[Row] = []
    for user in range(1, USERS + 1):
        at = rng.randrange(DAY)
        while at < DAYS * DAY:
            item = rng.randint(1, ITEMS)
            fills, buys = rng.random() < 0.8, rng.random() < 0.6
            for _ in range(rng.randint(1, 6)):
                found.append((at, user, "view", item, item % CATEGORIES))
                if fills and rng.random() < 0.5:
                    at += rng.randint(1, 300)
                    found.append((at, user, "cart", item, item % CATEGORIES))
                    if buys and rng.random() < 0.7:
                        at += rng.randint(1, 300)
                        found.append((at, user, "buy", item, item % CATEGORIES))
                at += rng.choice((20, 90, 400, 3600))
                item = min(ITEMS, max(1, item + rng.randint(-2, 2)))
            at += rng.choice((3601, 5 * HOUR, 2 * DAY, 4 * DAY, 11 * DAY))
    return sorted(found, key=lambda row: (row[0], row[1]))


def main() -> None:
    """Writes the file that the command line names, to standard output."""
    (name,) = sys.argv[1:]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADS[name])
    writer.writerows({"sales": sales, "clicks": clicks}[name](random.Random(SEED)))


if __name__ == "__main__":
    main()
