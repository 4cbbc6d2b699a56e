"""What a change made faster or slower: the benchmarks with River as it is here, and as it was at a commit.

Each round runs a benchmark with the old River, the new one, and the old one again; peers do not run. What the two runs of the
old one differ by is the spread. A work has moved where the middle of new over old lies outside of it.

Run: python tests/bench/compare.py BASE [NAME ...] [--rounds 7] [--out build/bench-compare.json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import measure
import report
import run_all
from attrs import asdict, frozen
from report import Spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Work = tuple[str, str, str]
"""A benchmark, what it does, and the way."""

TURNS = ("old", "new", "old again")


@frozen
class Moved:
    """New over old in rounds that stood side by side, and what the old one differs by from itself."""

    work: Work
    seconds: float
    change: Spread
    spread: Spread

    @property
    def verdict(self) -> str:
        """Whether it moved by more than the spread."""
        if self.change.middle > self.spread.most:
            return "slower"
        return "faster" if self.change.middle < self.spread.least else ""


@contextmanager
def checkout(base: str, folder: Path) -> Iterator[Path]:
    """The files of a commit."""
    place = folder / "base"
    done = subprocess.run(
        ["git", "worktree", "add", "--detach", str(place), base],  # noqa: S607
        cwd=report.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"git has no commit {base}: {done.stderr.strip()}")
    try:
        yield place
    finally:
        report.git("worktree", "remove", "--force", str(place))


def once(script: Path, tree: Path, folder: Path) -> dict[Work, float]:
    """What a benchmark of this folder takes with the River of `tree`; where it fails, what it measured before."""
    kept = folder / "contests"
    kept.unlink(missing_ok=True)
    here = {"PYTHONPATH": str(tree), "RIVER_BENCH_ALONE": "1", measure.RESULTS: str(kept)}
    cache = {"RIVER_CACHE": str(folder / f"cache-{tree.name}")}
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, **here, **cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"   {script.name} fails with {tree}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
    return {
        (contest.bench, contest.what, way): median(contest.ways[way])
        for contest in (report.contests(kept) if kept.exists() else ())
        for way in contest.ours
    }


def moved(rounds: Mapping[str, list[dict[Work, float]]]) -> list[Moved]:
    """The works that ran in all rounds."""
    old, new, again = (rounds[turn] for turn in TURNS)
    works = [work for work in old[0] if all(work in each for turn in TURNS for each in rounds[turn])]
    return [
        Moved(
            work,
            median(each[work] for each in new),
            Spread.of([2 * n[work] / (a[work] + b[work]) for a, n, b in zip(old, new, again, strict=True)]),
            Spread.of([b[work] / a[work] for a, b in zip(old, again, strict=True)]),
        )
        for work in works
    ]


def table(base: str, found: list[Moved]) -> str:
    """A line for each work, those that moved marked."""
    lines = [
        f"{'benchmark':12} {'work':40} {'way':22} {'now':>10} {'over ' + base[:10]:>16} {'base over base':>18}"
    ]
    for each in found:
        bench, what, way = each.work
        spread = f"[{each.spread.least:.3f}, {each.spread.most:.3f}]"
        name = bench.removeprefix("bench_")
        lines.append(
            f"{name:12} {what[:40]:40} {way[:22]:22} {report.seconds(each.seconds):>10} {each.change.middle:16.3f} {spread:>18}"
            f"  {each.verdict}"
        )
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", metavar="BASE", help="a commit, branch or tag")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=report.ROOT / "build" / "bench-compare.json")
    given = parser.parse_args()
    before: dict[str, Any] = {**report.surroundings(), "base": given.base, "rounds": given.rounds}
    found: list[Moved] = []
    with TemporaryDirectory() as name, checkout(given.base, Path(name)) as base:
        folder = Path(name)
        for script in run_all.scripts(given.names):
            print(f"== {script.name}", flush=True)
            rounds: dict[str, list[dict[Work, float]]] = defaultdict(list)
            for tree in (base, report.ROOT):  # so that code is compiled
                once(script, tree, folder)
            for _ in range(given.rounds):
                for turn in TURNS:
                    rounds[turn].append(once(script, report.ROOT if turn == "new" else base, folder))
            found += moved(rounds)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(
        json.dumps(
            {**before, "works": [{**asdict(each), "verdict": each.verdict} for each in found]}, indent=1
        )
        + "\n"
    )
    print(f"\n{table(given.base, found)}\n\n{given.out}")


if __name__ == "__main__":
    main()
