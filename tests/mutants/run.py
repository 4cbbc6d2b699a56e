"""Plants the faults of `faults.FAULTS`, one at a time, and runs the test that must find it.

    python tests/mutants/run.py [NAME ...] [--workers N] [--list]

Each fault is planted in a copy of the packages in a temporary folder, with a cache of its own, and only the test named with it
runs there. All these tests run on the copy without faults first, and must pass. The status is 1 if a fault survives, does not
apply any more, or breaks the program before its test can say anything.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from attrs import frozen

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.faults import FAULTS  # noqa: E402 - a script, which finds the packages beside it

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.mutants.faults import Mutant

PARTS: Final = (
    "calculus", "river", "frontends", "optimizers", "backends", "tests", "examples", "docs", "pyproject.toml", "README.md",
)  # fmt: skip
"""What is copied: the packages, and what tests read."""

PATIENCE: Final = 240.0
"""Seconds after which a test is said to hang."""

SEED: Final = "0123456789abcdef"
"""Of random tests: else it would depend on the text, and so on the fault."""


@frozen
class Verdict:
    """What came of a fault: `killed`, or what is wrong."""

    mutant: Mutant
    said: str
    seconds: float

    @property
    def killed(self) -> bool:
        """Whether the test failed by what it claims."""
        return self.said == "killed"


def main() -> int:
    """Runs the faults that are asked for, prints a table. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these faults")
    parser.add_argument("--workers", type=int, default=2, help="faults at once (default 2)")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    given = parser.parse_args()
    if strangers := set(given.names) - {mutant.name for mutant in FAULTS}:
        parser.error(f"no such faults: {', '.join(sorted(strangers))}")
    chosen = [mutant for mutant in FAULTS if not given.names or mutant.name in given.names]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.name:<32} {mutant.what}")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="river-mutants-") as folder:
        first, tables = copy(Path(folder) / "0"), Path(folder) / "tables"
        wrong = unfaulted(first, chosen, tables)
        if wrong:
            print(f"without any fault these tests do not pass:\n{wrong}")
            return 1
        others = [Path(folder) / str(i) for i in range(1, given.workers)]
        copies = [
            first,
            *(shutil.copytree(first, other) for other in others),
        ]  # with what Python has compiled
        verdicts = judged(copies, chosen, tables)
    survivors = [verdict for verdict in verdicts if not verdict.killed]
    took = time.monotonic() - began
    print(f"\n{len(verdicts) - len(survivors)} of {len(verdicts)} faults are found, in {took:.0f} s")
    for verdict in survivors:
        print(
            f"  {verdict.mutant.name} is not: {verdict.said}\n    {verdict.mutant.file}: {verdict.mutant.what}"
        )
    return 1 if survivors else 0


def copy(folder: Path) -> Path:
    """The packages and tests in a folder of their own."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis", "peers")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignored)
        else:
            shutil.copy2(source, folder / part)
    return folder


def unfaulted(folder: Path, mutants: Sequence[Mutant], tables: Path) -> str:
    """What the tests say on the copy as it is; empty if all pass. The parsers' tables are left in the folder `tables`."""
    tests = sorted({mutant.test for mutant in mutants})
    ends, said = ended(folder, tests, PATIENCE * 10, keep=tables)
    if ends and all(end == "passed" for end in ends.values()) and said == 0:
        return ""
    wrong = [f"  {test}: {end}" for test, end in ends.items() if end != "passed"]
    return "\n".join(wrong) or f"  pytest ended with {said}: is a test that is named not there?"


def judged(folders: Sequence[Path], mutants: Sequence[Mutant], tables: Path) -> list[Verdict]:
    """Each fault planted and tested, as many at once as there are copies; prints a line for each when it is done."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in folders:
        free.put(folder)

    def one(mutant: Mutant) -> Verdict:
        folder = free.get()
        try:
            return judge(folder, mutant, tables)
        finally:
            free.put(folder)

    print(f"{'fault':<32} {'found':<6} {'seconds':>7}  what, and by which test")
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(len(folders)) as threads:
        for verdict in threads.map(one, mutants):
            verdicts.append(verdict)
            word, mutant = "yes" if verdict.killed else "NO", verdict.mutant
            told = mutant.what if verdict.killed else verdict.said
            print(f"{mutant.name:<32} {word:<6} {verdict.seconds:>7.1f}  {told}; {mutant.test}", flush=True)
    return verdicts


def judge(folder: Path, mutant: Mutant, tables: Path) -> Verdict:
    """The fault planted in the copy, its test run, and the copy as it was."""
    file = folder / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return Verdict(mutant, f"its text stands {text.count(mutant.old)} times in the file, not once", 0.0)
    began, before = time.monotonic(), file.stat()
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        ends, said = ended(folder, [mutant.test], PATIENCE, "-x", known=tables)
    finally:
        file.write_text(text, encoding="utf-8")
        times = (before.st_atime_ns, before.st_mtime_ns)
        os.utime(file, ns=times)  # so that Python does not take for it what it compiled of the other text
    return Verdict(mutant, verdict_of(ends, said, mutant), time.monotonic() - began)


def verdict_of(ends: Mapping[str, str], said: int | None, mutant: Mutant) -> str:
    """What the ends of its tests say of a fault."""
    if said is None:
        return "its test hangs"
    if not ends:
        return f"its test did not run: pytest ended with {said}"
    found = set(ends.values()) - {"passed"}
    if not found:
        return "it survives: its test passes"
    if "failed" in found or mutant.raises in found:
        return "killed"
    return f"its test breaks with {', '.join(sorted(found))} instead of failing"


def ended(
    folder: Path,
    tests: Sequence[str],
    patience: float,
    *options: str,
    known: Path | None = None,
    keep: Path | None = None,
) -> tuple[dict[str, str], int | None]:
    """How each test ended, by its name, and the status of pytest; None if it had to be ended.

    The cache of River is new, but for the tables in the folder `known`, which depend on nothing but a grammar; those that are
    made go to the folder `keep`.
    """
    with tempfile.TemporaryDirectory(prefix="river-mutant-") as own:
        verdict, cache = Path(own) / "verdict.json", Path(own) / "river"
        if known is not None:
            shutil.copytree(known, cache)
        environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "RIVER_SEED": SEED,
            "RIVER_VERDICT": str(verdict),
            "XDG_CACHE_HOME": own,
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.mutants.verdict",
            "-p",
            "no:cacheprovider",
            *options,
            *tests,
        ]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, timeout=patience, check=False
            )
        except subprocess.TimeoutExpired:
            return {}, None
        if keep is not None:
            keep.mkdir()
            for table in cache.glob("grammar-*.json"):
                shutil.copy2(table, keep)
        ends = json.loads(verdict.read_text(encoding="utf-8")) if verdict.exists() else {}
        return ends, done.returncode


if __name__ == "__main__":
    sys.exit(main())
