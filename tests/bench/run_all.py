"""All benchmarks, one after another; then one table of what River took beside its peers, and the same as JSON.

Run: python tests/bench/run_all.py [NAME ...] [--out build/bench.json]      (a NAME: `native` is bench_native.py)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import measure
import report

HERE = Path(__file__).parent


def scripts(names: list[str]) -> list[Path]:
    """The benchmarks of these names, or all. Ends the program if there is none of a name."""
    found = {file.stem.removeprefix("bench_"): file for file in sorted(HERE.glob("bench_*.py"))}
    if strangers := sorted(set(names) - set(found)):
        sys.exit(f"no benchmark is called {', '.join(strangers)}; there are {', '.join(found)}")
    return [found[name] for name in names or found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, default=report.ROOT / "build" / "bench.json")
    given = parser.parse_args()
    before = report.surroundings()
    failed: list[str] = []
    with TemporaryDirectory() as folder:
        kept = Path(folder) / "contests"
        for script in scripts(given.names):
            print(f"== {script.name}", flush=True)
            done = subprocess.run(
                [sys.executable, script], env={**os.environ, measure.RESULTS: str(kept)}, check=False
            )
            failed += [script.name] if done.returncode else []
        found = report.contests(kept)
    report.save(given.out, before, found)
    print(f"\n{report.table(before, found)}\n\n{given.out}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
