"""Results of benchmarks: a file of JSON with what was measured, on which machine and commit, and tables of them.

A *contest* is one piece of work that several ways did in turns; a way whose name begins with `river` is ours, all others are
peers. It keeps the seconds of every run, so that ratios are made of runs that stood side by side, and have a spread.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure
from attrs import asdict, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("duckdb", "llvmlite", "pyarrow", "pyspark")


@frozen
class Spread:
    """The middle of some values, and the least and the most of them."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def of_ratios(cls, ours: Sequence[float], theirs: Sequence[float]) -> Spread:
        """Of what stood side by side, where that is known."""
        if len(ours) == len(theirs):
            return cls.of([a / b for a, b in zip(ours, theirs, strict=True)])
        return cls.of([a / statistics.median(theirs) for a in ours])


@frozen
class Contest:
    """The seconds that each way took in each round."""

    bench: str
    what: str
    ways: Mapping[str, Sequence[float]]

    @property
    def ours(self) -> list[str]:
        """Our ways."""
        return [way for way in self.ways if way.startswith(measure.OURS)]

    @property
    def peers(self) -> list[str]:
        """Those of others."""
        return [way for way in self.ways if way not in self.ours]


def contests(file: Path) -> list[Contest]:
    """What benchmarks have kept, a line each."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [Contest(**json.loads(line)) for line in lines]


def git(*command: str, folder: Path = ROOT) -> str:
    """What git says; nothing where there is no repository."""
    done = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip()


def surroundings() -> dict[str, Any]:
    """Commit, machine, load, versions."""
    names = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    processor = next((line.partition(": ")[2] for line in names if line.startswith("model name")), "")
    return {
        "commit": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain")),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{processor or platform.processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        "load": [round(each, 2) for each in os.getloadavg()],
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return "not installed"


def save(file: Path, before: Mapping[str, Any], found: Sequence[Contest]) -> None:
    """Writes what was measured, and the load before and after."""
    after = {"load after": [round(each, 2) for each in os.getloadavg()]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        json.dumps({**before, **after, "contests": [asdict(each) for each in found]}, indent=1) + "\n"
    )


def seconds(value: float) -> str:
    """A time as people read it."""
    for unit, size in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:7.2f} {unit}"
    return f"{value / 1e-9:7.2f} ns"


def table(before: Mapping[str, Any], found: Sequence[Contest]) -> str:
    """For each of our ways its time, and its ratios to the peers' with their spread: below 1 we are faster."""
    changed = " with changes" if before["changed"] else ""
    load = ", ".join(map(str, before["load"]))
    lines = [f"commit {before['commit']}{changed}, {before['when']}", f"{before['machine']}, load {load}", ""]
    lines.append(
        f"{'benchmark':14} {'work':44} {'way':22} {'median':>10}   time of River over that of the peer [least, most]"
    )
    for contest in found:
        for way in contest.ours:
            took = contest.ways[way]
            ratios = [
                f"{peer} {ratio.middle:.2f} [{ratio.least:.2f}, {ratio.most:.2f}]"
                for peer in contest.peers
                for ratio in (Spread.of_ratios(took, contest.ways[peer]),)
            ]
            name = contest.bench.removeprefix("bench_")
            lines.append(
                f"{name:14} {contest.what[:44]:44} {way[:22]:22} {seconds(statistics.median(took)):>10}   {'; '.join(ratios)}"
            )
    return "\n".join(line.rstrip() for line in lines)
