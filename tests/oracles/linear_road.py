"""The Linear Road benchmark by its definitions, asked anew for each event: no windows, no changes, all reports at hand.

`said(events, history)` gives what each output of `examples/linear_road_benchmark` holds, in any order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[Any, ...]
Segment = tuple[int, int, int]


def mean(numbers: Sequence[Fraction | int]) -> Fraction:
    """The mean of some numbers."""
    return Fraction(sum(numbers)) / len(numbers)


def said(events: Sequence[Row], history: Sequence[Row]) -> dict[str, Counter[Row]]:
    """The rows of `tolls`, `alerts`, `balances` and `expenditures`; averages rounded to six places."""
    by_car: dict[int, dict[int, Row]] = defaultdict(dict)
    for kind, ts, car, speed, xway, lane, direction, segment, place, *_ in events:
        if kind == 0:
            by_car[car][ts] = (speed, lane, (xway, direction, segment), place)

    @cache
    def speeds(minute: int, where: Segment) -> tuple[Fraction, ...]:
        """Each vehicle's mean speed in a segment in a minute."""
        seconds = range(60 * minute, 60 * minute + 60)
        found = [
            [report[0] for ts, report in reports.items() if ts in seconds and report[2] == where]
            for reports in by_car.values()
        ]
        return tuple(mean(own) for own in found if own)

    @cache
    def velocity(minute: int, where: Segment) -> Fraction | None:
        known = [mean(own) for m in range(minute - 5, minute) if (own := speeds(m, where))]
        return mean(known) if known else None

    @cache
    def accidents(ts: int) -> frozenset[Segment]:
        """The segments in which two vehicles stand still at one place."""
        standing: Counter[Any] = Counter()
        for reports in by_car.values():
            last = [reports[at] for at in sorted(reports) if at <= ts][-4:]
            places = {report[1:] for report in last}
            if len(last) == 4 and len(places) == 1:
                standing.update(places)
        return frozenset(where for (_, where, _), cars in standing.items() if cars > 1)

    @cache
    def blocked(minute: int) -> frozenset[Segment]:
        return frozenset().union(*(accidents(ts) for ts in range(max(0, 60 * minute), 60 * minute + 60)))

    def ahead(minute: int, where: Segment) -> list[Segment]:
        """The accidents of the minute before in this and the next four segments."""
        xway, direction, segment = where
        step = -1 if direction else 1
        near = {(xway, direction, segment + step * i) for i in range(5)}
        return sorted(near & blocked(minute - 1))

    def toll(ts: int, where: Segment) -> int:
        minute = ts // 60
        average, cars = velocity(minute, where), len(speeds(minute - 1, where))
        if average is None or average >= 40 or cars <= 50 or ahead(minute, where):
            return 0
        return 2 * (cars - 50) ** 2

    outputs: dict[str, Counter[Row]] = {
        name: Counter() for name in ("tolls", "alerts", "balances", "expenditures")
    }
    payments: list[tuple[int, int, int]] = []
    owed: dict[int, int] = {}
    for kind, ts, car, *_ in events:
        if kind != 0:
            continue
        _, lane, where, _ = by_car[car][ts]
        before = by_car[car].get(ts - 30)
        if before is not None and before[2] == where:
            continue
        if before is not None:
            payments.append((ts, car, owed[car]))
        owed[car] = toll(ts, where)
        if lane != 4:
            average = velocity(ts // 60, where)
            shown = None if average is None else round(float(average), 6)
            outputs["tolls"][ts, car, shown, owed[car]] += 1
            outputs["alerts"].update((ts, car, segment) for _, _, segment in ahead(ts // 60, where))
    spent = {(car, day, xway): amount for _, _, car, day, xway, amount in history}
    for kind, ts, car, _, xway, *rest in events:
        query, day = rest[4], rest[9]
        if kind == 2:
            balance = sum(amount for at, payer, amount in payments if payer == car and at <= ts)
            outputs["balances"][ts, query, car, balance] += 1
        elif kind == 3:
            outputs["expenditures"][ts, query, car, day, spent.get((car, day, xway), 0)] += 1
    return outputs
