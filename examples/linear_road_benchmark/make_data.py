"""Write events.csv or history.csv: vehicles on an expressway with a jam and an accident, what they ask, and what they once paid.

Run it as `python make_data.py events > events.csv`. The seed is fixed: it writes the same files every time.
"""

from __future__ import annotations

import csv
import random
import sys

SEED = 17
SECONDS = 240
REPORT_EVERY = 30
SEGMENTS, FEET = 6, 5280  # so many segments, each of a mile
JAM_SEGMENT = 1
CARS_PER_SECOND = {0: 0.4, 1: 0.03}  # by direction
SECONDS_ON_THE_ROAD_BEFORE = 200
CRASHES = ((9001, 2, 3 * FEET + 700), (9002, 11, 3 * FEET + 700), (9003, 19, 4 * FEET + 100))
"""Vehicles that stop on lane 2, when they first report, and where: the last one is alone."""
CRASH_ENDS = 115
DAYS = 3
HEADS = {
    "events": (
        "type", "ts", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "s_init", "s_end", "dow", "tod", "day",
    ),
    "history": ("at", "op", "vid", "day", "xway", "toll"),
}  # fmt: skip

Row = tuple[object, ...]


def report(ts: int, car: int, speed: int, lane: int, direction: int, feet: int) -> Row:
    """A position report."""
    return (0, ts, car, speed, 0, lane, direction, feet // FEET, feet, *[-1] * 6)


def data() -> dict[str, list[Row]]:
    """The rows of each file, in the order of their time stamps."""
    rng = random.Random(SEED)
    events: list[Row] = []
    car = 0
    for direction, rate in CARS_PER_SECOND.items():
        for second in range(-SECONDS_ON_THE_ROAD_BEFORE, SECONDS):
            if rng.random() < rate:
                car += 1
                left = trip(rng, events, car, direction, second)
                if rng.random() < 0.1:
                    trip(rng, events, car, direction, left + REPORT_EVERY * rng.randint(2, 5))
    for crashed, first, place in CRASHES:
        for ts in range(first, SECONDS, REPORT_EVERY):
            rolled = 1500 * max(0, -(-(ts - CRASH_ENDS) // REPORT_EVERY))
            if place + rolled < SEGMENTS * FEET:
                events.append(report(ts, crashed, 34 if rolled else 0, 2, 0, place + rolled))
    events.sort(key=lambda row: (row[1], row[2]))
    questions: list[Row] = []
    for query in range(60):
        kind = rng.choice((2, 3))
        _, ts, asked, *_ = rng.choice(events[len(events) * 3 // 4 :] if kind == 2 else events)
        day = rng.randint(1, DAYS + 1) if kind == 3 else -1
        questions.append((kind, ts, asked, -1, 0 if kind == 3 else -1, -1, -1, -1, -1, query, *[-1] * 4, day))
    events = sorted([*events, *questions], key=lambda row: (row[1], row[0], row[2], row[9]))
    history: list[Row] = [
        (0, "+", known, day, 0, rng.randint(0, 90))
        for known in range(1, car + 1)
        for day in range(1, DAYS + 1)
        if rng.random() < 0.6
    ]
    return {"events": events, "history": history}


def trip(rng: random.Random, events: list[Row], car: int, direction: int, start: int) -> int:
    """Adds the reports of a car from the ramp where it enters to the one where it leaves; when that is."""
    first = 0 if rng.random() < 0.8 else rng.randrange(SEGMENTS - 1)
    last = rng.randint(max(first, JAM_SEGMENT), SEGMENTS - 1)
    driven = first * FEET + rng.randrange(FEET)
    ts, entering = start, True
    while True:
        segment = driven // FEET if direction == 0 else SEGMENTS - 1 - driven // FEET
        jam = direction == 0 and segment == JAM_SEGMENT
        speed = max(5, round(rng.gauss(25, 4) if jam else rng.gauss(56, 6)))
        ahead = driven + speed * FEET * REPORT_EVERY // 3600
        leaving = ahead // FEET > last
        lane = 4 if leaving else 0 if entering else rng.randint(1, 3)
        if 0 <= ts < SECONDS:
            events.append(
                report(
                    ts,
                    car,
                    speed,
                    lane,
                    direction,
                    driven if direction == 0 else SEGMENTS * FEET - 1 - driven,
                )
            )
        if leaving:
            return ts
        driven, ts, entering = ahead, ts + REPORT_EVERY, False


def main() -> None:
    """Writes the file that the command line names, to standard output."""
    (name,) = sys.argv[1:]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADS[name])
    writer.writerows(data()[name])


if __name__ == "__main__":
    main()
