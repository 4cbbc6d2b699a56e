"""What a change made faster or slower: the benchmarks with River as it is here, and as it was at a commit.

In each round three processes live beside each other: the old River, the new one, and the old one again. They take turns run by
run, and only the one whose turn it is does anything, so that the machine is the same for runs that stand side by side; peers do
not run. A round's change is the middle of the new one's runs, each over those of the old ones beside it; the spread is what the
old ones differ by in the same way, in both directions. A work has moved where the middle of the rounds lies outside of it.

A round takes three times what the benchmark takes with River alone, 10 s to 5 min; each tells its seconds. One of two processes
fills the caches before.

Run: python tests/bench/compare.py BASE [NAME ...] [--rounds 7] [--out build/bench-compare.json]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
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
    from collections.abc import Iterator, Mapping, Sequence

Work = tuple[str, str, str]
"""A benchmark, what it does, and the way."""

Times = dict[Work, list[float]]
"""The seconds of each run."""

TURNS = ("old", "new", "old again")


@frozen
class Moved:
    """New over old in runs that stood side by side, and what the old one differs by from itself."""

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


class Player:
    """A process that runs in its turn alone: from its start to its first `measure.turn`, and from each to the next."""

    def __init__(self, command: Sequence[object], env: Mapping[str, str], errors: Path) -> None:
        self.errors = errors
        self._command = [str(part) for part in command]
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None
        self._mine, self._its = socket.socketpair()

    def play(self) -> bool:
        """Lets it run until it hands over. False where it has ended instead."""
        if self._process is None:
            with self.errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    self._command,
                    env={**self._env, measure.TURNS: str(self._its.fileno())},
                    pass_fds=[self._its.fileno()],
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                )
            self._its.close()
            return self._heard()
        try:
            self._mine.send(b".")
        except OSError:  # it was killed while it waited
            return False
        return self._heard()

    def _heard(self) -> bool:
        try:
            return bool(self._mine.recv(1))
        except ConnectionResetError:
            return False

    def end(self) -> int:
        """How it ended; it ends here if it has not."""
        self._mine.close()
        self._its.close()
        if self._process is None:
            return 0
        return self._process.wait()


def play(players: Sequence[Player]) -> None:
    """Lets all take their turns until the last one has ended."""
    living = list(players)
    while living:
        living = [each for each in living if each.play()]


def measured(script: Path, trees: Mapping[str, Path], folder: Path) -> dict[str, Times]:
    """What a benchmark of this folder takes with the River of each tree, in turns; where one fails, what it measured before."""
    players: dict[str, Player] = {}
    for turn, tree in trees.items():
        (folder / f"{turn}.contests").unlink(missing_ok=True)
        env = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "RIVER_BENCH_ALONE": "1",
            "RIVER_CACHE": str(folder / f"cache-{turn.partition(' ')[0]}"),
            measure.RESULTS: str(folder / f"{turn}.contests"),
        }
        players[turn] = Player([sys.executable, script], env, folder / f"{turn}.errors")
    try:
        play(list(players.values()))
    finally:
        ended = {turn: player.end() for turn, player in players.items()}
    for turn, player in players.items():
        if ended[turn]:
            last = player.errors.read_text().strip().splitlines()[-1:]
            print(f"   {script.name} fails with {turn}: {last}", flush=True)
    return {
        turn: {
            (contest.bench, contest.what, way): list(contest.ways[way])
            for contest in report.contests(folder / f"{turn}.contests")
            for way in contest.ours
        }
        for turn in trees
    }


def comparable(rounds: Sequence[Mapping[str, Times]]) -> tuple[list[Work], list[str]]:
    """The works of which the three have as many runs as each other in each round; and what is to be said of the others."""
    found: list[Work] = []
    others: dict[tuple[int, ...], list[Work]] = {}
    for work in dict.fromkeys(work for each in rounds for turn in TURNS for work in each[turn]):
        counts = [tuple(len(each[turn].get(work, ())) for turn in TURNS) for each in rounds]
        uneven = next((each for each in counts if len(set(each)) > 1 or not each[0]), None)
        if uneven is None:
            found.append(work)
        else:
            others.setdefault(uneven, []).append(work)
    return found, [
        f"not compared, since the numbers of runs differ ({', '.join(map('{} {}'.format, TURNS, uneven))}): "
        + "; ".join(", ".join(work[1:]) for work in works)
        for uneven, works in others.items()
    ]


def moved(rounds: Sequence[Mapping[str, Times]], work: Work) -> Moved:
    """Run by run, then the middle of each round."""
    taken = [[each[turn][work] for turn in TURNS] for each in rounds]
    again = [median(b / a for a, _, b in zip(*each, strict=True)) for each in taken]
    return Moved(
        work,
        median(took for _, new, _ in taken for took in new),
        Spread.of([median(2 * n / (a + b) for a, n, b in zip(*each, strict=True)) for each in taken]),
        Spread.of([*again, *(1 / each for each in again)]),  # either of the two could have been the first
    )


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
            trees = {turn: report.ROOT if turn == "new" else base for turn in TURNS}
            measured(script, {turn: trees[turn] for turn in TURNS[:2]}, folder)  # so that code is compiled
            rounds: list[dict[str, Times]] = []
            for left in reversed(range(given.rounds)):
                began = time.monotonic()
                rounds.append(measured(script, trees, folder))
                print(f"   a round of {time.monotonic() - began:.0f} s; {left} are left", flush=True)
            works, others = comparable(rounds)
            for each in others:
                print(f"   {each}", flush=True)
            found += [moved(rounds, work) for work in works]
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
