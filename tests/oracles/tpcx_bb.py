"""The queries of `examples/tpcx_bb` by loops over all rows up to an instant.

`q1(sales)` is what the stream holds; the others are the relation at an instant: `q2(clicks, now)`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[Any, ...]
HOUR, DAY = 3600, 86400


def first(counts: Counter[Any], most: int) -> list[tuple[Any, int]]:
    """The most frequent, by number and then by themselves."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


def q1(sales: Sequence[Row], closed: int = 3) -> Counter[Row]:
    """What is told at the end of each hour that is over before the last row."""
    tickets: dict[tuple[int, int], set[int]] = defaultdict(set)
    for ts, ticket, store, item, category, _ in sales:
        if store != closed and category <= 3:
            tickets[ts // HOUR, ticket].add(item)
    hours: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for (hour, _), items in tickets.items():
        hours[hour].update(combinations(sorted(items), 2))
    found: Counter[Row] = Counter()
    for hour, pairs in hours.items():
        end = (hour + 1) * HOUR
        if end <= sales[-1][0]:
            found.update((end, end, *pair, n, i) for i, (pair, n) in enumerate(first(pairs, 100), start=1))
    return found


def visits(clicks: Sequence[Row], now: int) -> list[list[Row]]:
    """The clicks of each visit up to an instant."""
    found: list[list[Row]] = []
    last: dict[int, list[Row]] = {}
    for click in clicks:
        ts, user, *_ = click
        if ts > now:
            break
        if user not in last or ts - last[user][-1][0] > HOUR:
            last[user] = []
            found.append(last[user])
        last[user].append(click)
    return found


def q2(clicks: Sequence[Row], now: int, product: int = 14) -> Counter[Row]:
    """Products and in how many visits they were viewed with the given one."""
    counts: Counter[int] = Counter()
    for visit in visits([click for click in clicks if click[2] == "view"], now):
        items = {click[3] for click in visit}
        if product in items:
            counts.update(items - {product})
    return Counter(first(counts, 30))


def q3(clicks: Sequence[Row], now: int, product: int = 14) -> Counter[Row]:
    """Products and how often they were among the last five that were viewed before the given one was bought."""
    counts: Counter[int] = Counter()
    for ts, user, kind, item, _ in clicks:
        if ts <= now and kind == "buy" and item == product:
            before = [c for c in clicks if c[0] <= ts and c[1] == user and c[2] == "view" and c[4] != 5]
            counts.update(c[3] for c in before[-5:] if ts - c[0] <= 10 * DAY)
    return Counter(first(counts, 30))


def q4(clicks: Sequence[Row], now: int) -> Counter[Row]:
    """The mean of pages, and how many visits there were."""
    pages = [
        len(visit)
        for visit in visits(clicks, now)
        if visit[-1][0] + HOUR < now and {"cart"} <= {click[2] for click in visit} <= {"view", "cart"}
    ]
    return Counter([(round(sum(pages) / len(pages), 6) if pages else None, len(pages))])


def q15(sales: Sequence[Row], now: int, shop: int = 2) -> Counter[Row]:
    """Categories with the slope and the height of the line through the sums of their days; rounded to six places."""
    totals: dict[int, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for ts, _, store, _, category, price in sales:
        day = ts // DAY
        if store == shop and (day + 1) * DAY <= now:
            totals[category][day] += Fraction(price)
    found: Counter[Row] = Counter()
    for category, days in totals.items():
        x = Fraction(sum(days)) / len(days)
        y = Fraction(sum(days.values())) / len(days)
        across = sum((day - x) ** 2 for day in days)
        if across:
            slope = sum((day - x) * (total - y) for day, total in days.items()) / across
            if slope <= 0:
                found[category, round(float(slope), 6), round(float(y - slope * x), 6)] += 1
    return found
