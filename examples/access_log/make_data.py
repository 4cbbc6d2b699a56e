"""Write access.log: 2,000 made-up lines of a web server's log, some of them damaged.

Run it as `python make_data.py > access.log`; it writes the same lines every time.
"""

from __future__ import annotations

import random
import sys
from datetime import datetime, timedelta

ROWS = 2_000
PAGES = [
    "/",
    "/index.html",
    "/news",
    "/about",
    "/search?q=saw",
    "/shop/list",
    "/shop/item/17",
    "/logo.png",
    "/saw.jpg",
    "/x.gif",
]


def lines() -> list[str]:
    """Lines in the common log format: some pages are asked for far more often than others."""
    chance = random.Random(2005)
    weights = [1 / (rank + 1) for rank in range(len(PAGES))]
    at = datetime(2006, 10, 16)  # noqa: DTZ001 - the log says which zone it is
    found: list[str] = []
    for _ in range(ROWS):
        at += timedelta(seconds=chance.randrange(80))
        client = f"10.{chance.randrange(4)}.{chance.randrange(8)}.{chance.randrange(16)}"
        page = chance.choices(PAGES, weights)[0]
        status = chance.choices(["200", "304", "404", "500"], [90, 6, 3, 1])[0]
        size = "-" if status == "304" else str(chance.randrange(200, 60_000))
        method = chance.choice(["GET", "GET", "GET", "HEAD", "POST"])
        clock = at.strftime("%d/%b/%Y:%H:%M:%S -0700")
        line = f'{client} - - [{clock}] "{method} {page} HTTP/1.0" {status} {size}'
        found.append(line[: chance.randrange(len(line))] if chance.random() < 0.01 else line)
    return found


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines()))
