"""Write queries.csv: 2,000 made-up search queries, with the origin of each and the server that answered it.

Run it as `python make_data.py > queries.csv`; it writes the same rows every time.
"""

from __future__ import annotations

import csv
import random
import sys

ROWS = 2_000
ORIGINS = 40
TARGETS = 8


def queries() -> list[tuple[str, str]]:
    """Origin and target of every query: some origins ask far more often than others."""
    chance = random.Random(2005)
    origins = [f"10.{chance.randrange(256)}.{chance.randrange(256)}.{i}" for i in range(ORIGINS)]
    weights = [1 / (rank + 1) for rank in range(ORIGINS)]
    targets = [f"server{i}.example.com" for i in range(TARGETS)]
    return [(chance.choices(origins, weights)[0], chance.choice(targets)) for _ in range(ROWS)]


if __name__ == "__main__":
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("origin", "target"))
    out.writerows(queries())
