"""Versions that are compared take turns: runs never overlap, none waits for one that has ended, ratios are of neighbours."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parent / "bench"
MANY = """
import os, sys, measure
assert measure.TURNS not in os.environ
name, log, runs, end = sys.argv[1:5]
def said(what):
    with open(log, "a") as out:
        print(name, what, file=out)
def run():
    said("begins")
    said("ends")
said(os.getpid())
for _ in range(int(runs)):
    measure.timed(run)
exec(end)
"""
"""Its name, a file for all, how many runs, and what it does at its end."""


@pytest.fixture(scope="module")
def compare() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        return import_module("compare")


@pytest.fixture
def played(compare: Any, tmp_path: Path) -> Any:
    """How processes end that take turns, and what they say."""

    def play(*told: tuple[str, int, str]) -> tuple[list[int], list[list[str]]]:
        log = tmp_path / "log"
        players = [
            compare.Player(
                [sys.executable, "-c", MANY, name, log, runs, end],
                {**os.environ, "PYTHONPATH": str(BENCH)},
                tmp_path / f"{name}.errors",
            )
            for name, runs, end in told
        ]
        compare.play(players)
        return [each.end() for each in players], [line.split() for line in log.read_text().splitlines()]

    return play


def test_only_the_one_whose_turn_it_is_runs(played: Any) -> None:
    ended, said = played(("a", 3, ""), ("b", 1, ""), ("c", 2, "sys.exit('no more')"))
    assert ended == [0, 0, 1]
    begun = [name for name, _ in said]
    assert begun == [
        *"abc",  # from the start of each to its first run
        *"aabbcc",
        *"aacc",
        *"aa",
    ]
    runs = [what for _, what in said[3:]]
    assert runs == ["begins", "ends"] * 6


def test_one_that_is_killed_stops_nobody(played: Any) -> None:
    shot = "import signal; pid = int(open(log).read().split()[1]); os.kill(pid, signal.SIGKILL)"
    ended, said = played(("waits", 2, ""), ("kills", 1, shot), ("stays", 3, ""))
    assert ended == [-signal.SIGKILL, 0, 0]
    assert [name for name, _ in said].count("stays") == 1 + 2 * 3


def test_a_benchmark_that_fails_is_told_and_keeps_what_it_measured(
    compare: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "bench_it.py"
    script.write_text(
        "import sys, measure\nfrom version import BAD\n"
        "measure.record('sums', measure.times({'river': int, 'C': lambda: sys.exit('peers run')}, 2))\n"
        "if BAD: sys.exit('it broke')\n"
        "measure.record('products', {'river': [1.0], 'C': [float('nan')]})\n"
    )
    trees = {turn: tmp_path / turn for turn in compare.TURNS[:2]}
    for turn, tree in trees.items():
        tree.mkdir()
        (tree / "version.py").write_text(f"BAD = {turn == 'old'}\n")
        (tree / "measure.py").symlink_to(BENCH / "measure.py")
    found = compare.measured(script, trees, tmp_path)
    sums, products = ("bench_it", "sums", "river"), ("bench_it", "products", "river")
    assert {turn: list(each) for turn, each in found.items()} == {"old": [sums], "new": [sums, products]}
    assert [len(each[sums]) for each in found.values()] == [9, 9]
    assert capsys.readouterr().out.strip() == "bench_it.py fails with old: ['it broke']"


SUM, MAP, LATE, LATER = (("bench", what, "river") for what in ("sum", "map", "late", "later"))


def rounds(compare: Any, *each: tuple[dict[Any, list[float]], ...]) -> list[dict[str, Any]]:
    return [dict(zip(compare.TURNS, one, strict=True)) for one in each]


def test_ratios_are_of_runs_side_by_side(compare: Any) -> None:
    """The machine is three times as slow in one run, and from one round to the next; the new one takes a tenth more."""
    made = rounds(
        compare,
        *(
            ({SUM: [1 * f, 3 * f, 1 * f]}, {SUM: [1.1 * f, 3.3 * f, 1.1 * f]}, {SUM: [1 * f, 3 * f, 1.01 * f]})
            for f in (1.0, 3.0)
        ),
    )  # fmt: skip
    assert compare.comparable(made) == ([SUM], [])
    found = compare.moved(made, SUM)
    assert found.change.middle == pytest.approx(1.1)
    assert (found.spread.least, found.spread.most) == (1.0, 1.0)
    assert found.verdict == "slower"
    back = [{**each, "new": each["old"]} for each in made]
    assert compare.moved(back, SUM).verdict == ""


def test_what_the_old_one_differs_by_counts_in_both_directions(compare: Any) -> None:
    """The second of the old ones took a quarter more; a new one beside them that takes a fifth less than both may be as old."""
    made = rounds(compare, ({SUM: [4.0]}, {SUM: [3.6]}, {SUM: [5.0]}))
    found = compare.moved(made, SUM)
    assert (found.change.middle, found.spread.least, found.spread.most) == (0.8, 0.8, 1.25)
    assert found.verdict == ""


def test_works_with_other_numbers_of_runs_are_told(compare: Any) -> None:
    both = {SUM: [1.0, 1.0], MAP: [1.0, 1.0]}
    made = rounds(
        compare,
        (both, both, both),
        (both, {SUM: [1.0, 1.0], MAP: [1.0], LATE: [1.0], LATER: [1.0]}, both),
    )
    works, others = compare.comparable(made)
    assert works == [SUM]
    assert others == [
        "not compared, since the numbers of runs differ (old 2, new 1, old again 2): map, river",
        "not compared, since the numbers of runs differ (old 0, new 0, old again 0): late, river; later, river",
    ]
