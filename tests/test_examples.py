"""Every example does what its folder says: on threads, in the calculus, and by a second opinion written in Python."""

from __future__ import annotations

import csv
import re
import runpy
from bisect import bisect_left, bisect_right
from collections import Counter
from contextlib import redirect_stdout
from datetime import datetime
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

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
Rows = list[tuple[str, ...]]
Bag = Counter[tuple[Any, ...]]


@frozen
class Example:
    """A program of a folder, its inputs, and its outputs with the files that say what comes out.

    `begins`: the files say how the outputs begin. `whole`: small enough for the calculus. `made`: the data are made up.
    """

    program: str
    inputs: Mapping[str, str]
    expected: Mapping[str, str] = field(factory=dict)
    begins: bool = False
    whole: bool = True
    made: bool = True

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
        "log_analyzer/query_log.szl",
        {"logRecord": "queries.csv"},
        {"queryOrigins": "expected/origins.csv", "queryTargets": "expected/targets.csv"},
    ),
)


def each(table: Iterable[Example]) -> pytest.MarkDecorator:
    """The test for each of these."""
    return pytest.mark.parametrize("example", [pytest.param(one, id=one.program) for one in table])


def read(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Example], dict[str, Rows]]:
    """What an example's outputs hold after a run on threads; each is run once."""
    known: dict[str, dict[str, Rows]] = {}

    def run(example: Example) -> dict[str, Rows]:
        if example.program not in known:
            compiled = river.load(str(EXAMPLES / example.program))
            folder = tmp_path_factory.mktemp(Path(example.program).stem)
            files = {name: str(folder / f"{name}.csv") for name in compiled.outputs}
            compiled.run(example.data, files)
            known[example.program] = {name: read(Path(file)) for name, file in files.items()}
        return known[example.program]

    return run


def test_every_example_is_here() -> None:
    assert {example.folder.name for example in TABLE} == {
        path.name for path in EXAMPLES.iterdir() if path.is_dir()
    }


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


@each(one for one in TABLE if one.whole)
def test_the_calculus_agrees(example: Example) -> None:
    job = Job(example.data, {}, OnError.parse("stop"))
    measure, other = compare(river.load(str(EXAMPLES / example.program)), job, ("reference", "multicore"))
    assert not other.differences
    assert other.rows == measure.rows


@each(one for one in TABLE if one.made)
def test_the_data_is_what_its_script_writes(example: Example) -> None:
    (file,) = example.inputs.values()
    script = example.folder / "make_data.py"
    written = StringIO()
    with redirect_stdout(written):
        runpy.run_path(str(script), run_name="__main__")
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
    (example,) = (one for one in TABLE if "linear_road" in one.program)
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
