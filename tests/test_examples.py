"""Every example does what its folder says: on threads, in the calculus, and by a second opinion written in Python."""

from __future__ import annotations

import csv
import runpy
from bisect import bisect_left, bisect_right
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


TABLE = (
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
        assert set(found) == set(example.expected)


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
