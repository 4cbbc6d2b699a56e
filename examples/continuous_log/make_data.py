"""Write requests.csv: a quarter of an hour of requests to four servers, from few origins often and from many seldom.

Run it as `python make_data.py > requests.csv`. The seed is fixed: it writes the same file every time.
"""

from __future__ import annotations

import csv
import random
import sys

SEED = 11
REQUESTS = 2_000
SECONDS = 900
SERVERS = 4
ORIGINS = 60


def requests() -> list[tuple[int, str, str]]:
    """All requests in the order of their time stamps: ts, server, origin; the servers' reports are merged."""
    rng = random.Random(SEED)
    origins = [
        f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}" for _ in range(ORIGINS)
    ]
    weights = [1 / (rank + 1) for rank in range(ORIGINS)]
    drawn = rng.choices(origins, weights, k=REQUESTS)
    found = [(rng.randrange(SECONDS), f"server{rng.randrange(SERVERS)}", origin) for origin in drawn]
    return sorted(found, key=lambda request: request[0])


if __name__ == "__main__":
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("ts", "server", "origin"))
    out.writerows(requests())
