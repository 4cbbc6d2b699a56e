"""Write queries.txt: 1,000 made-up queries: time (microseconds after 1970), place, the page that was chosen, its rank.

Run it as `python make_data.py > queries.txt`; it writes the same lines every time.
"""

from __future__ import annotations

import random
import sys

ROWS = 1_000
BEGIN = 1_161_000_000
DOMAINS = ["example.com", "river.example.org", "saw.example.net"]


def queries() -> list[str]:
    """Queries from around some cities, over a week."""
    chance = random.Random(2005)
    cities = [(37.4, -122.1), (40.7, -74.0), (47.4, 8.5), (-33.9, 151.2)]
    pages = [f"http{'s' * (i % 2)}://{domain}/page{i}" for domain in DOMAINS for i in range(20)]
    ranks = {page: round(chance.paretovariate(1.5), 3) for page in pages}
    found: list[str] = []
    for _ in range(ROWS):
        micros = (BEGIN + chance.randrange(7 * 86_400)) * 1_000_000 + chance.randrange(1_000_000)
        lat, lon = chance.choice(cities)
        page = chance.choice(pages)
        place = f"{lat + chance.gauss(0, 1):.4f} {lon + chance.gauss(0, 1):.4f}"
        found.append(f"{micros} {place} {page} {ranks[page]}")
    return found


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in queries()))
