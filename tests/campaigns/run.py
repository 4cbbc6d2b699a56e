"""Runs the laws at length and writes what came out: `build/campaigns/NAME.json`, and the table of docs/trust.md.

    python tests/campaigns/run.py [--only NAME ...] [--cases N] [--workers N] [--table docs/trust.md] [--list]

A campaign is a set of tests that draw as many random cases as `RIVER_CASES` says, from the seed of the run
(`river.testing.seeds`). To add one, add a line to `CAMPAIGNS`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from attrs import asdict, frozen

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
BUILD: Final = ROOT / "build" / "campaigns"


@frozen
class Campaign:
    """A law, in words, and the tests of it; each of `kinds` draws `cases` cases."""

    name: str
    law: str
    cases: int
    kinds: int
    tests: tuple[str, ...]
    """What pytest is told: files, tests, options."""


BODIES: Final = "tests/backends/test_native_bodies.py::test_many_random_bodies"
CAMPAIGNS: Final = (
    Campaign("bodies", "random operators do in machine code what they do in the evaluator", 50_000, 1, (BODIES,)),
    Campaign(
        "bodies-checked",
        "the same, with all checks of memory compiled in",
        10_000,
        1,
        (f"{BODIES}_that_check_themselves",),
    ),
    Campaign(
        "catalogue",
        "passes, threads and Spark's stages keep to what a program may compute; many programs may compute several things",
        10_000,
        1,
        ("tests/properties/test_catalogue.py", "-k", "every_law"),
    ),
    Campaign(
        "graphs",
        "programs end with what the calculus says, however they run and wherever threads are held up",
        10_000,
        1,
        ("tests/properties/test_backends.py", "-k", "many_graphs"),
    ),
    Campaign(
        "files",
        "damaged CSV, TSV and JSON files are read by machine code as by the general reader",
        20_000,
        3,
        ("tests/backends/test_native_ingest_many.py",),
    ),
    Campaign(
        "schemas",
        "so are files with random types of rows",
        10_000,
        1,
        ("tests/backends/test_native_ingest_schemas.py",),
    ),
    Campaign(
        "quotes",
        "records whose quotes fail give their first lines, whichever reader reads them, and in whatever pieces",
        10_000,
        6,
        ("tests/backends/test_native_quotes.py", "-k", "obeys_the_rule"),
    ),
    Campaign(
        "tables",
        "damaged Arrow and Parquet files are read or refused, never trusted",
        10_000,
        2,
        ("tests/backends/test_damaged_tables.py",),
    ),
    Campaign(
        "killed",
        "a command that is killed at any moment goes on from its checkpoint with the same output",
        50,
        4,
        ("tests/backends/test_checkpoint.py", "-k", "killed"),
    ),
    Campaign(
        "killed-on-spark",
        "workers, executors and drivers of Spark are killed at any moment: no row is lost or comes twice, order stays",
        20,
        12,
        ("tests/backends/test_spark_kills.py",),
    ),
    Campaign(
        "signals",
        "a command that gets a signal at any moment ends cleanly",
        1_000,
        1,
        ("tests/river/test_signals.py", "-k", "many_signals"),
    ),
    Campaign(
        "operations",
        "each operation does on all its types in machine code what it does in the evaluator",
        100,
        1,
        ("tests/backends/test_native_operations.py::test_an_operation_on_all_its_types",),
    ),
    Campaign(
        "functions",
        "functions of `f32` give the rounded results of the C library",
        1_000_000,
        15,
        ("tests/backends/test_native_functions.py", "-k", "rounded_result_of_c"),
    ),
    Campaign(
        "programs",
        "of texts that are nearly programs come diagnostics with a place, or runs that end",
        10_000,
        1,
        ("tests/properties/test_texts_many.py", "-k", "many_texts"),
    ),
    Campaign(
        "queries",
        "queries of CQL say at every instant what DuckDB makes of the bags of that instant",
        10_000,
        1,
        ("tests/properties/test_cql_whole.py", "-k", "every_instant"),
    ),
    Campaign(
        "expressions",
        "expressions of CQL have the values that DuckDB says, also where operands are none",
        1_000,
        1,
        ("tests/properties/test_cql_expressions.py",),
    ),
    Campaign(
        "queries-divided",
        "queries of CQL send the same, row for row, with any number of workers, wherever their operators can be divided",
        1_000,
        1,
        ("tests/properties/test_cql_whole.py", "-k", "number_of_workers"),
    ),
    Campaign(
        "graphs-of-filters",
        "random programs of StreamIt compute what an interpreter says that moves items one by one",
        2_000,
        1,
        ("tests/properties/test_streamit.py", "-k", "what_the_actors_do"),
    ),
    Campaign(
        "messages",
        "messages of StreamIt are handled before the firing that the definition by dependences says",
        500,
        1,
        ("tests/properties/test_streamit.py", "-k", "where_the_wavefront_is"),
    ),
    Campaign("texts", "numbers, times and texts are written and read alike everywhere", 300_000, 6,
             ("tests/backends/test_native_texts.py",)),
)  # fmt: skip


@frozen
class Result:
    """How a campaign ended."""

    name: str
    law: str
    cases: int
    kinds: int
    tests: int
    failed: int
    seconds: float
    when: str
    commit: str
    seed: str

    @property
    def row(self) -> str:
        """Its line of the table."""
        each = f"{self.cases:,}" if self.kinds == 1 else f"{self.kinds} × {self.cases:,}"
        said = "holds" if self.tests and not self.failed else f"**{self.failed} of {self.tests} tests fail**"
        cells = (
            self.name,
            self.law,
            each,
            said,
            shown(self.seconds),
            self.when,
            self.commit,
            f"`{self.seed}`",
        )
        return f"| {' | '.join(cells)} |"


HEAD: Final = (
    "| campaign | law | cases | result | time | when | commit | seed |\n|---|---|---|---|---|---|---|---|\n"
)
BEGIN, END = "<!-- campaigns -->\n", "<!-- end -->\n"


def shown(seconds: float) -> str:
    """A time as people say it."""
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def commit() -> str:
    """The commit that is tested, with a `+` behind it if files differ from it; `-` without git."""

    def git(*args: str) -> str:
        return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607

    try:
        return git("rev-parse", "--short", "HEAD").strip() + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "-"


def run(campaign: Campaign, cases: int | None, workers: int) -> Result:
    """Runs the tests of a campaign and counts."""
    from river.testing import seeds
    from tests.conftest import SOURCES

    number = campaign.cases if cases is None else min(cases, campaign.cases)
    seed = os.environ.get(seeds.VARIABLE) or seeds.digest(ROOT, SOURCES)
    environment = {**os.environ, "RIVER_CASES": str(number), seeds.VARIABLE: seed}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *campaign.tests]
        command += ["-n", str(workers), "--dist", "loadgroup"] if workers > 1 else []
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        suite = ET.parse(report).getroot().find("testsuite") if report.exists() else None  # noqa: S314
        counts = (
            {}
            if suite is None
            else {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        )
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    return Result(
        campaign.name,
        campaign.law,
        number,
        campaign.kinds,
        counts.get("tests", 0) - counts.get("skipped", 0),
        max(failed, 1) if status else 0,
        round(time.monotonic() - began, 1),
        datetime.now(UTC).strftime("%Y-%m-%d"),
        commit(),
        seed,
    )


def tabled(document: str, results: dict[str, str]) -> str:
    """The document with the rows of `results` in its table, where those of other campaigns stay."""
    before, _, rest = document.partition(BEGIN)
    old, _, after = rest.partition(END)
    rows = {
        line.split("|")[1].strip(): line for line in old.splitlines()[2:] if line.startswith("|")
    } | results
    lines = [f"{rows[one.name]}\n" for one in CAMPAIGNS if one.name in rows]
    return f"{before}{BEGIN}{HEAD}{''.join(lines)}{END}{after}"


def main(argv: list[str]) -> int:
    """The status: 0 if all laws that were asked hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[one.name for one in CAMPAIGNS], metavar="NAME")
    parser.add_argument("--cases", type=int, help="at most so many cases of each kind")
    parser.add_argument("--workers", type=int, default=1, help="processes that run tests side by side")
    parser.add_argument("--table", type=Path, help="the document whose table gets the results")
    parser.add_argument("--list", action="store_true", help="only list the campaigns")
    said: Any = parser.parse_args(argv)
    chosen = [one for one in CAMPAIGNS if not said.only or one.name in said.only]
    if said.list:
        print(*(f"{one.name:16} {one.kinds} x {one.cases:<8} {one.law}" for one in chosen), sep="\n")
        return 0
    results: dict[str, Result] = {}
    BUILD.mkdir(parents=True, exist_ok=True)
    for campaign in chosen:
        print(f"== {campaign.name}: {campaign.law}", flush=True)
        result = results[campaign.name] = run(campaign, said.cases, said.workers)
        (BUILD / f"{campaign.name}.json").write_text(json.dumps(asdict(result), indent=2) + "\n")
        if said.table is not None:  # at once: what comes later may take hours
            said.table.write_text(tabled(said.table.read_text("utf-8"), {campaign.name: result.row}), "utf-8")
    print(HEAD + "\n".join(result.row for result in results.values()))
    return int(any(result.failed or not result.tests for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
