"""Write reports.csv: cars on six miles of an expressway, with a jam that begins after a minute and dissolves.

Run it as `python make_data.py > reports.csv`. The seed is fixed: it writes the same file every time.
"""

from __future__ import annotations

import csv
import random
import sys

SEED = 7
SECONDS = 540
REPORT_EVERY = 30
SEGMENTS = 6  # of a mile each
JAM_SEGMENT, JAM_BEGINS, JAM_ENDS = 3, 60, 300
CARS_PER_SECOND = {0: 0.37, 1: 0.03}  # by direction
SECONDS_ON_THE_ROAD_BEFORE = 300

Report = tuple[int, int, int, int, int, int]


def reports() -> list[Report]:
    """All reports in the order of their time stamps: ts, car, speed, xway, dir, seg."""
    rng = random.Random(SEED)
    found: list[Report] = []
    car = 0
    for direction, rate in CARS_PER_SECOND.items():
        for second in range(-SECONDS_ON_THE_ROAD_BEFORE, SECONDS):
            if rng.random() < rate:
                car += 1
                found += trip(rng, car, direction, second)
    return sorted(found)


def trip(rng: random.Random, car: int, direction: int, start: int) -> list[Report]:
    """The reports of one car, from the first mile to the last."""
    found: list[Report] = []
    mile = 0.0
    for ts in range(start, SECONDS, REPORT_EVERY):
        driven = int(mile)
        if driven >= SEGMENTS:
            break
        segment = driven if direction == 0 else SEGMENTS - 1 - driven
        jam = direction == 0 and segment == JAM_SEGMENT and JAM_BEGINS <= ts < JAM_ENDS
        speed = max(5, round(rng.gauss(18, 4) if jam else rng.gauss(58, 6)))
        if ts >= 0:
            found.append((ts, car, speed, 0, direction, segment))
        mile += speed * REPORT_EVERY / 3600
    return found


if __name__ == "__main__":
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("ts", "car", "speed", "xway", "dir", "seg"))
    out.writerows(reports())
