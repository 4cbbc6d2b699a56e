"""Every example does what its folder says: on threads, in the calculus, and by a second opinion written in Python."""

from __future__ import annotations

import csv
import re
import runpy
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from contextlib import chdir, redirect_stdout
from datetime import datetime
from functools import cache
from io import StringIO
from math import floor, fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from attrs import field, frozen

import river
from river.driver import Job, compare
from river.io.errors import OnError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from river.driver import Compiled

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
Rows = list[tuple[str, ...]]
Bag = Counter[tuple[Any, ...]]


@frozen
class Example:
    """A program of a folder, its inputs, and its outputs with the files that say what comes out.

    `begins`: the files say how the outputs begin. `whole`: small enough for the calculus. `made`: the data are made up.
    `many`: so large that the calculus computes it only beside `make check`.
    """

    program: str
    inputs: Mapping[str, str]
    expected: Mapping[str, str] = field(factory=dict)
    begins: bool = False
    whole: bool = True
    made: bool = True
    many: bool = False

    @property
    def folder(self) -> Path:
        return EXAMPLES / Path(self.program).parent

    @property
    def data(self) -> dict[str, str]:
        return {name: str(self.folder / file) for name, file in self.inputs.items()}


def gathered(program: str, data: str, *tables: str) -> Example:
    """A Sawzall program over lines, whose tables are all expected; it meets nothing undefined."""
    return Example(program, {"input": data}, {name: f"expected/{name}.csv" for name in tables})


TABLE = (
    gathered(
        "access_log/access.szl",
        "access.log",
        "answers",
        "hours",
        "pages",
        "images",
        "clients",
        "largest",
        "malformed",
    ),
    gathered("search_log/mean.szl", "queries.txt", "count", "total", "sum_of_squares"),
    gathered("search_log/page_rank.szl", "queries.txt", "max_pagerank_url"),
    gathered("search_log/places.szl", "queries.txt", "queries_per_degree"),
    gathered("search_log/minutes.szl", "queries.txt", "queries_per_minute"),
    Example("continuous_log/origins.cql", {"requests": "requests.csv"}, {"origins": "expected/origins.csv"}),
    Example("flights/delays.cql", {"flights": "flights.csv"}, whole=False, made=False),
    Example("fm_radio/fm_radio.str", {"input": "signal.csv"}, {"output": "expected.csv"}, begins=True),
    Example(
        "linear_road/tolls.cql",
        {"reports": "reports.csv"},
        {"tolls": "expected/tolls.csv", "congested": "expected/congested.csv"},
    ),
    Example(
        "linear_road_benchmark/benchmark.cql",
        {"events": "events.csv", "history": "history.csv"},
        whole=False,
        many=True,
    ),
    Example(
        "log_analyzer/query_log.szl",
        {"logRecord": "queries.csv"},
        {"queryOrigins": "expected/origins.csv", "queryTargets": "expected/targets.csv"},
    ),
    Example(
        "nexmark/queries.cql",
        {"persons": "persons.csv", "auctions": "auctions.csv", "bids": "bids.csv"},
        whole=False,
        many=True,
    ),
    Example(
        "nexmark/extended.cql",
        {"bids": "bids.csv", "auctions": "auctions.csv", "side_input": "side_input.csv"},
        whole=False,
    ),
    *(
        Example(f"tpcx_bb/{query}.cql", {name: f"{name}.csv"}, whole=False, many=True)
        for query, name in (
            ("q1", "sales"),
            ("q2", "clicks"),
            ("q3", "clicks"),
            ("q4", "clicks"),
            ("q15", "sales"),
        )
    ),
    Example("vwap/bargains.cql", {"trades": "trades.csv", "quotes": "quotes.csv"}, whole=False, many=True),
)


def each(table: Iterable[Example]) -> pytest.MarkDecorator:
    """The test for each of these."""
    return pytest.mark.parametrize("example", [pytest.param(one, id=one.program) for one in table])


def read(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@cache
def compiled(program: str) -> Compiled:
    """An example, by the name that its README gives it: whoever runs what stands there finds in the cache what it became."""
    path = EXAMPLES / program
    with chdir(path.parent):
        return river.load(path.name)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Example], dict[str, Rows]]:
    """What an example's outputs hold after a run on threads; each is run once."""
    known: dict[str, dict[str, Rows]] = {}

    def run(example: Example) -> dict[str, Rows]:
        if example.program not in known:
            program = compiled(example.program)
            folder = tmp_path_factory.mktemp(Path(example.program).stem)
            files = {name: str(folder / f"{name}.csv") for name in program.outputs}
            program.run(example.data, files)
            known[example.program] = {name: read(Path(file)) for name, file in files.items()}
        return known[example.program]

    return run


def test_every_example_is_here() -> None:
    """But for the radio that hops, which has no inputs and no end: tests/frontends/test_streamit_messages.py."""
    assert {example.folder.name for example in TABLE} | {"frequency_hopping"} == {
        path.name for path in EXAMPLES.iterdir() if path.is_dir()
    }


@pytest.mark.slow
@each(TABLE)
def test_outputs_are_as_expected(example: Example, results: Callable[[Example], dict[str, Rows]]) -> None:
    found = results(example)
    for name, file in example.expected.items():
        expected = read(example.folder / file)
        assert (found[name][: len(expected)] if example.begins else found[name]) == expected
    if example.expected:
        assert {name for name in found if name != "undefined" or len(found[name]) > 1} == set(
            example.expected
        )


@pytest.mark.slow
@pytest.mark.some(4)  # what comes out is known of all
@each(one for one in TABLE if one.whole)
def test_the_calculus_agrees(example: Example) -> None:
    job = Job(example.data, {}, OnError.parse("stop"))
    measure, other = compare(compiled(example.program), job, ("reference", "multicore"))
    assert not other.differences
    assert other.rows == measure.rows


@pytest.mark.slow
@pytest.mark.some(2)  # second opinions below have all outputs
@each(one for one in TABLE if one.many)
def test_machine_code_agrees(example: Example) -> None:
    job = Job(example.data, {}, OnError.parse("stop"))
    _, other = compare(compiled(example.program), job, ("reference", "multicore"))
    assert not other.differences


@each(one for one in TABLE if one.made)
def test_the_data_is_what_its_script_writes(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    script = str(example.folder / "make_data.py")
    names = len({name for one in TABLE if one.folder == example.folder for name in one.inputs}) > 1
    for name, file in example.inputs.items():
        written = StringIO()
        monkeypatch.setattr(sys, "argv", [script, *([name] if names else [])])
        with redirect_stdout(written):
            runpy.run_path(script, run_name="__main__")
        assert written.getvalue() == (example.folder / file).read_text("utf-8")


# ---------------------------------------------------------------------------------------------------- second opinions


def numbers(rows: Rows) -> list[tuple[Any, ...]]:
    """The rows without their head, with whole numbers read."""
    return [tuple(int(v) if v.lstrip("-").isdigit() else v for v in row) for row in rows[1:]]


def instants(rows: list[tuple[Any, ...]]) -> range:
    """Every instant of the data, one after another: the end is the last item's."""
    return range(rows[0][0], rows[-1][0] + 1)


@frozen(eq=False)
class Stamped:
    """Rows sorted by their time stamps, which stand first."""

    rows: list[tuple[Any, ...]]
    stamps: list[int]

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> Stamped:
        kept = list(rows)
        return cls(kept, [row[0] for row in kept])

    def window(self, now: int, length: int) -> list[tuple[Any, ...]]:
        """`[range length]`: what is at most that old."""
        return self.rows[bisect_left(self.stamps, now - length) : bisect_right(self.stamps, now)]


def changes(relation: Mapping[int, Bag]) -> Bag:
    """The change log of a relation that is given at every instant, as a bag."""
    found: Bag = Counter()
    before: Bag = Counter()
    for now, rows in relation.items():
        for sign, different in (("-", before - rows), ("+", rows - before)):
            found.update({(now, sign, *row): count for row, count in different.items()})
        before = rows
    return found


def test_the_continuous_log_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if "continuous_log" in one.program)
    rows = numbers(read(example.folder / "requests.csv"))
    stamped = Stamped.of(rows)
    origins: dict[int, Bag] = {
        now: Counter(list(Counter(row[2] for row in stamped.window(now, 300)).items()))
        for now in instants(rows)
    }
    assert Counter(numbers(results(example)["origins"])) == changes(origins)


@pytest.mark.slow
def test_the_flights_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if "flights" in one.program)
    rows = numbers(read(example.folder / "flights.csv"))
    relation: dict[int, Bag] = {now: Counter() for now in instants(rows)}
    for origin in {row[3] for row in rows}:
        stamped = Stamped.of(row for row in rows if row[3] == origin)
        for now, delays in relation.items():
            late = [row[5] for row in stamped.window(now, 60)]
            if late:
                delays[origin, len(late), sum(late) / len(late)] += 1
    found = [(*row[:4], float(row[4])) for row in numbers(results(example)["delays"])]
    assert Counter(found) == changes(relation)


def test_linear_road_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if "linear_road/" in one.program)
    rows = numbers(read(example.folder / "reports.csv"))
    stamped = Stamped.of(rows)
    congested: dict[int, Bag] = {}
    tolls: list[tuple[Any, ...]] = []
    last: dict[int, tuple[int, ...]] = {}
    for now in instants(rows):
        speeds: dict[tuple[int, ...], list[int]] = {}
        cars: dict[tuple[int, ...], set[int]] = {}
        for ts, car, speed, *place in stamped.window(now, 300):
            speeds.setdefault(tuple(place), []).append(speed)
            if ts >= now - 30:
                cars.setdefault(tuple(place), set()).add(car)
        congested[now] = Counter([place for place, seen in speeds.items() if sum(seen) < 40 * len(seen)])
        for _, car, _, *place in stamped.window(now, 0):
            entered = tuple(place)
            if last.get(car) != entered and entered in congested[now] and len(cars[entered]) > 50:
                tolls.append((now, car, *entered, 2 * (len(cars[entered]) - 50) ** 2))
            last[car] = entered
    assert Counter(numbers(results(example)["congested"])) == changes(congested)
    assert Counter(numbers(results(example)["tolls"])) == Counter(tolls)
    assert len(tolls) > 50  # the data have something to say


def test_the_access_log_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if one.program == "access_log/access.szl")
    found = results(example)
    form = re.compile(r'(\S+) \S+ \S+ \[([^]]+)\] "([A-Z]+) ([^ "]+)[^"]*" (\d{3}) (\d+|-)')
    lines = (example.folder / "access.log").read_text("utf-8").splitlines()
    matches = [match.groups() for line in lines if (match := form.fullmatch(line))]
    assert int(found["malformed"][1][0]) == len(lines) - len(matches)
    assert int(found["clients"][1][0]) == len({address for address, *_ in matches})
    sent: dict[str, list[int]] = {}
    for *_, status, size in matches:
        sent.setdefault(status, []).append(0 if size == "-" else int(size))
    assert numbers(found["answers"]) == [(int(s), len(of), sum(of)) for s, of in sorted(sent.items())]
    hours = Counter(int(at[12:14]) for _, at, *_ in matches)
    assert numbers(found["hours"]) == sorted(hours.items())
    image = re.compile(r"\.(png|gif|jpe?g)$")
    pages = Counter(page for *_, page, _, _ in matches if not image.search(page))
    assert numbers(found["pages"]) == sorted(pages.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    images = Counter(kind[1] for *_, page, _, _ in matches if (kind := image.search(page)))
    assert numbers(found["images"]) == sorted(images.items())
    largest = sorted((int(size), page) for *_, page, _, size in matches if size != "-")[-3:]
    assert numbers(found["largest"]) == [(page, size) for size, page in reversed(largest)]


def test_the_search_log_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    found = {
        name: rows for one in TABLE if one.folder.name == "search_log" for name, rows in results(one).items()
    }
    lines = (EXAMPLES / "search_log" / "queries.txt").read_text("utf-8").splitlines()
    queries = [line.split() for line in lines]
    ranks = [float(rank) for *_, rank in queries]
    assert numbers(found["count"]) == [(len(lines),)]
    assert float(found["total"][1][0]) == fsum(ranks)
    assert float(found["sum_of_squares"][1][0]) == fsum(rank * rank for rank in ranks)
    best: dict[str, tuple[float, str]] = {}
    for *_, url, rank in queries:
        domain = url.split("/")[2]
        best[domain] = max(best.get(domain, (0.0, "")), (float(rank), url))
    assert found["max_pagerank_url"][1:] == [(d, url, str(rank)) for d, (rank, url) in sorted(best.items())]
    places = Counter((floor(float(lat)), floor(float(lon))) for _, lat, lon, *_ in queries)
    assert numbers(found["queries_per_degree"]) == [
        (*place, count) for place, count in sorted(places.items())
    ]
    zone = ZoneInfo("America/Los_Angeles")
    clocks = [datetime.fromtimestamp(int(at) // 1_000_000, zone) for at, *_ in queries]
    minutes = Counter(60 * clock.hour + clock.minute for clock in clocks)
    assert numbers(found["queries_per_minute"]) == sorted(minutes.items())


def bags(rows: Rows) -> dict[int, Bag]:
    """The relation of a change log, at the instants at which it changes."""
    bag: Bag = Counter()
    found: dict[int, Bag] = {}
    for now, sign, *values in numbers(rows):
        bag[tuple(values)] += 1 if sign == "+" else -1
        found[now] = +bag
    return found


NEXMARK = {
    "q4": """select category, avg(price) from final group by category""",
    "q5": """with counts as (select auction, count(*) n from bids where ts between {now} - 60 and {now} group by auction)
        select auction, n from counts where n = (select max(n) from counts)""",
    "q6": """select seller, list_avg(list_slice(list(price order by expires desc, id desc), 1, 3)) from final group by seller""",
    "q7": """with seen as (select * from bids where ts between {now} // 10 * 10 - 30 and {now} // 10 * 10)
        select auction, bidder, price from seen qualify rank() over (order by price desc) = 1""",
    "q8": """select p.id, p.name, count(*) from persons p join auctions a on a.seller = p.id
        where p.ts between {now} - 60 and {now} and a.ts between {now} - 60 and {now} group by p.ts, p.id, p.name""",
}
"""The relations at an instant as DuckDB computes them from all that came up to it, each written otherwise than in the example."""


@pytest.mark.slow
def test_nexmark_by_sql_from_scratch(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if one.program == "nexmark/queries.cql")
    duckdb = pytest.importorskip("duckdb").connect()
    duckdb.execute("set threads to 1")
    found = results(example)
    rows = {name: numbers(read(example.folder / file)) for name, file in example.inputs.items()}
    for name in rows:
        duckdb.execute(f"create table all_{name} as select * from '{example.folder / name}.csv'")
        duckdb.execute(f"create table {name} as select * from all_{name} limit 0")
    duckdb.execute(
        "create view final as select id, seller, category, expires, max(price) as price from bids, auctions"
        " where auction = id and bids.ts >= auctions.ts and bids.ts <= expires group by all"
    )
    told = {query: bags(found[query]) for query in NEXMARK}
    now: dict[str, Bag] = {query: Counter() for query in NEXMARK}
    for at in range(max(part[-1][0] for part in rows.values()) + 1):
        for name in rows:
            duckdb.execute(f"insert into {name} select * from all_{name} where ts = {at}")
        for query, text in NEXMARK.items():
            now[query] = told[query].get(at, now[query])
            if at % 7 == 0 or at in (20, 30, 31):
                expected = Counter(duckdb.execute(text.format(now=at)).fetchall())
                shown = Counter(
                    {
                        tuple(map(float, row)) if query in ("q4", "q6") else row: n
                        for row, n in now[query].items()
                    }
                )
                assert shown == expected, (query, at)


@pytest.mark.slow
def test_the_streams_of_nexmark_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if one.program == "nexmark/queries.cql")
    found = results(example)
    people, things, bids = (numbers(read(example.folder / file)) for file in example.inputs.values())
    euros = [(ts, auction, bidder, price * 0.908) for ts, auction, bidder, price, *_ in bids]
    assert [(*row[:3], float(row[3])) for row in numbers(found["q1"])] == euros
    some = [(ts, auction, price) for ts, auction, _, price, *_ in bids if auction % 5 == 0]
    assert numbers(found["q2"]) == some
    local = [
        (max(came, ts), name, state, thing)
        for ts, thing, seller, category, *_ in things
        for came, person, name, state in people
        if seller == person and category == 1 and state in ("OR", "ID", "CA") and came - ts <= 720
    ]
    assert Counter(numbers(found["q3"])) == Counter(local)
    assert local


def ranks(bids: Rows) -> list[int]:
    """How many bids, bidders and auctions there are in all and by the rank of their prices."""
    found: list[int] = []
    for column in (None, 2, 1):
        for least, most in ((0, 99), (0, 9), (10, 19), (20, 99)):
            of = [bid if column is None else bid[column] for bid in bids if least <= int(bid[3]) <= most]
            found.append(len(of if column is None else set(of)))
    return found


def grouped(bids: Iterable[tuple[str, ...]], *columns: Callable[[tuple[str, ...]], str]) -> dict[Any, Rows]:
    """The bids by these columns."""
    found: dict[Any, Rows] = {}
    for bid in bids:
        found.setdefault(tuple(column(bid) for column in columns), []).append(bid)
    return found


def extended(bids: Rows, auctions: Rows) -> dict[str, list[tuple[object, ...]]]:
    """The relations of Nexmark's further queries, of the bids and auctions that came up to an instant."""
    day, bidder, auction, channel = ((lambda bid, at=at: bid[at][:10]) for at in (6, 2, 1, 4))
    found: dict[str, list[tuple[object, ...]]] = {f"q{n}": [] for n in (9, 11, 15, 16, 17, 18, 19)}
    for ts, number, seller, category, expires, item, reserve in auctions:
        here = [bid for bid in bids if bid[1] == number and int(ts) <= int(bid[0]) <= int(expires)]
        if here:
            at, _, who, price, *_ = min(here, key=lambda bid: (-int(bid[3]), int(bid[0])))
            found["q9"].append((number, item, reserve, expires, seller, category, number, who, price, at))
    for (who,), own in grouped(bids, bidder).items():
        times = [int(bid[0]) for bid in own]
        starts = [i for i, ts in enumerate(times) if i == 0 or ts - times[i - 1] > 10]
        for first, end in zip(starts, [*starts[1:], len(times)], strict=True):
            found["q11"].append((who, end - first, times[first], times[end - 1] + 10))
    for (date,), own in grouped(bids, day).items():
        found["q15"].append((date, *ranks(own)))
    for key, own in grouped(bids, channel, day).items():
        found["q16"].append((*key, max(bid[6][11:16] for bid in own), *ranks(own)))
    for key, own in grouped(bids, auction, day).items():
        prices = [int(bid[3]) for bid in own]
        some = min(prices), max(prices), sum(prices) / len(prices), sum(prices)
        found["q17"].append((*key, *ranks(own)[:4], *some))
    for (who, number), own in grouped(bids, bidder, auction).items():
        found["q18"].append((number, who, *own[-1][3:5], own[-1][7]))
    for own in grouped(bids, auction).values():
        best = sorted(own, key=lambda bid: (-int(bid[3]), int(bid[0])))[:3]
        found["q19"] += [(*bid[1:4], bid[7], place) for place, bid in enumerate(best, 1)]
    return found


@pytest.mark.slow
def test_nexmark_extended_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if one.program == "nexmark/extended.cql")
    found = results(example)
    bids, auctions, side = (read(example.folder / file)[1:] for file in example.inputs.values())
    relations: dict[str, dict[int, Bag]] = {}
    for now in range(int(bids[-1][0]) + 1):
        come = ([row for row in rows if int(row[0]) <= now] for rows in (bids, auctions))
        for query, rows in extended(*come).items():
            relations.setdefault(query, {})[now] = Counter(tuple(map(str, row)) for row in rows)
    for query, relation in relations.items():
        told = Counter((int(ts), *row) for ts, *row in found[query][1:])
        assert told == changes(relation), query
        assert len({ts for ts, *_ in told}) > 70  # the data have something to say
    values = {int(key): value for key, value in side}
    things = {row[1]: row for row in auctions}
    numbers = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    expected: dict[str, Bag] = {f"q{n}": Counter() for n in (10, 12, 13, 14, 20, 21, 22)}
    windows = Counter((bid[2], int(bid[0]) // 10 * 10) for bid in bids)
    last = int(bids[-1][0])
    expected["q12"] = Counter(
        (str(start + 10), who, str(n), str(start), str(start + 10))
        for (who, start), n in windows.items()
        if start + 10 <= last
    )
    for ts, number, who, price, channel, url, clock, extra in bids:
        placed = datetime.fromisoformat(clock)
        bid, thing = (ts, number, who, price), things[number]
        expected["q10"][(*bid, f"{placed:%Y-%m-%d}", f"{placed:%H:%M}")] += 1
        if int(number) % 5 in values:
            expected["q13"][(*bid, values[int(number) % 5])] += 1
        if 10 < 0.908 * int(price) < 20:
            when = {7: "otherTime", 19: "otherTime"}.get(placed.hour)
            when = when or ("dayTime" if 7 < placed.hour < 19 else "nightTime")
            expected["q14"][(*bid[:3], repr(0.908 * int(price)), when, extra, str(extra.count("c")))] += 1
        if thing[3] == "1":
            expected["q20"][(*bid, channel, extra, *thing[5:], thing[2])] += 1
        channel_id = numbers.get(channel.lower()) or (url.partition("&channel_id=")[2] or None)
        if channel_id is not None:
            expected["q21"][(*bid, channel, channel_id)] += 1
        expected["q22"][(*bid, channel, *url.removeprefix("https://auction.example/").split("/")[:3])] += 1
    for query, rows in expected.items():
        assert Counter(found[query][1:]) == rows, query
        assert rows


def test_bargains_by_brute_force(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if "vwap" in one.program)
    trades, quotes = (read(example.folder / file)[1:] for file in example.inputs.values())
    best: dict[str, list[tuple[float, int, float, int]]] = {}
    expected: dict[int, Bag] = {}
    for ts, symbol, ask, size in ((int(a), b, float(c), int(d)) for a, b, c, d in quotes):
        last = [
            (float(price), int(volume))
            for at, name, price, volume in trades
            if name == symbol and int(at) <= ts
        ][-15:]
        if last:
            mean = sum(price * volume for price, volume in last) / sum(volume for _, volume in last)
            if ask < mean:
                best.setdefault(symbol, []).append((-((mean - ask) * size), ts, ask, size))
        rows = ((name, x[2], x[3], -x[0]) for name, found in best.items() for x in sorted(found)[:3])
        expected[ts] = Counter(rows)
    bag: Bag = Counter()
    told: dict[int, Bag] = {}
    for now, sign, symbol, ask, size, index in read_as(results(example)["best"]):
        bag[symbol, ask, size, index] += 1 if sign == "+" else -1
        told[now] = +bag
    shown: Bag = Counter()
    for ts, rows in expected.items():
        shown = told.get(ts, shown)
        assert shown == rows, ts
    assert shown.total() == 9


def rounded(value: int | str) -> float | None:
    """A number of an output, to six places."""
    return value if isinstance(value, int) else round(float(value), 6) if value else None


def oracle(name: str) -> dict[str, Any]:
    """The functions of a file of `tests/oracles`."""
    return runpy.run_path(str(EXAMPLES.parent / "tests" / "oracles" / f"{name}.py"))


@pytest.mark.slow
def test_the_linear_road_benchmark_by_its_definitions(results: Callable[[Example], dict[str, Rows]]) -> None:
    (example,) = (one for one in TABLE if "linear_road_benchmark" in one.program)
    found: dict[str, Bag] = {name: Counter(numbers(rows)) for name, rows in results(example).items()}
    found["tolls"] = Counter(
        (ts, car, round(float(speed), 6) if speed else None, toll)
        for ts, car, speed, toll in found["tolls"].elements()
    )
    said = oracle("linear_road")["said"](
        *(numbers(read(example.folder / file)) for file in example.inputs.values())
    )
    assert found == said
    # the data have something to say
    assert sum(row[3] > 0 for row in found["tolls"]) > 20
    assert sum(row[3] > 0 for row in found["balances"]) > 3
    assert found["alerts"].total() > 100


@pytest.mark.slow
def test_tpcx_bb_from_scratch(results: Callable[[Example], dict[str, Rows]]) -> None:
    own = oracle("tpcx_bb")
    rows = {
        name: [
            tuple(float(x) if "." in str(x) else x for x in row)
            for row in numbers(read(EXAMPLES / "tpcx_bb" / f"{name}.csv"))
        ]
        for name in ("sales", "clicks")
    }
    told = {one.program[8:-4]: results(one) for one in TABLE if one.program.startswith("tpcx_bb")}
    assert Counter(numbers(told["q1"]["together"])) == own["q1"](rows["sales"])
    for query, output, name in (
        ("q2", "together", "clicks"), ("q3", "viewed_before", "clicks"), ("q4", "pages", "clicks"), ("q15", "declining", "sales"),
    ):  # fmt: skip
        changed = bags(told[query][output])
        assert len(changed) > 6, query
        shown: Bag = Counter()
        for at in sorted({*(int(row[0]) for row in rows[name]), *changed}):
            shown = changed.get(at, shown)
            found = Counter({tuple(map(rounded, row)): count for row, count in shown.items()})
            assert found == own[query](rows[name], at) or (query == "q4" and not shown), (query, at)


def read_as(rows: Rows) -> list[tuple[int, str, str, float, int, float]]:
    """The change log of `best` with its numbers read."""
    return [(int(a), b, c, float(d), int(e), float(f)) for a, b, c, d, e, f in rows[1:]]
