"""Write trades.csv or quotes.csv: prices of three stocks that wander, and offers around them.

Run it as `python make_data.py trades > trades.csv`. The seed is fixed: it writes the same files every time.
"""

from __future__ import annotations

import csv
import random
import sys

SEED = 5
SECONDS = 120
HEADS = {"trades": ("ts", "symbol", "price", "volume"), "quotes": ("ts", "symbol", "ask", "size")}

Row = tuple[object, ...]


def data() -> dict[str, list[Row]]:
    """The rows of each file, in the order of their time stamps."""
    rng = random.Random(SEED)
    found: dict[str, list[Row]] = {name: [] for name in HEADS}
    prices = {"ABC": 100.0, "KLM": 40.0, "XYZ": 7.5}
    for ts in range(SECONDS):
        for symbol, before in list(prices.items()):
            price = prices[symbol] = max(1.0, before + rng.choice((-0.25, 0.0, 0.25)))
            if rng.random() < 0.5:
                found["trades"].append((ts, symbol, price, 100 * rng.randint(1, 9)))
            if rng.random() < 0.3:
                ask = price + rng.choice((-0.5, 0.0, 0.25, 0.5))
                found["quotes"].append((ts, symbol, ask, 100 * rng.randint(1, 5)))
    return found


def main() -> None:
    """Writes the file that the command line names, to standard output."""
    (name,) = sys.argv[1:]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADS[name])
    writer.writerows(data()[name])


if __name__ == "__main__":
    main()
