"""How long commands take as a user feels it: whole processes, from the shell's call to the end.

`river --help`, `river compile`, also of a Sawzall script of 500 lines, and `river run` of a CSV of ten rows, also of ten views
of CQL each of the one before it, and of StreamIt programs of a thousand filters; with a full cache, an empty one, and one that
has the parsers' tables alone. The least of a few that take turns, by the clock and of the processor, beside an interpreter that
does nothing. Then by how much the first `program.run` of a process takes longer than the second, with a full cache.
`--imports`: what the processes import, by package and module, as `python -X importtime` tells it.

Run: python tests/bench/bench_start.py [--runs N] [--imports]
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import data
import measure

PROGRAMS = Path(__file__).parent / "programs"
TARGETS = {
    "full cache": {
        "river run, CQL": 0.3,
        "river run, Sawzall": 0.3,
        "river compile, 500 lines": 0.5,
        "river run, chain": 1.0,
        "river run, windows": 1.0,
        "river run, branches": 1.0,
    },
    "empty cache": {
        "river compile, 500 lines": 2.0,
        "river run, ten views": 2.0,
        "river run, chain": 3.0,
        "river run, windows": 3.0,
        "river run, branches": 3.0,
    },
}
"""Seconds of the processor."""

FILTERS = """
float->float filter Scale(float k) { work pop 1 push 1 { push(pop() * k); } }
float->float filter Mean(int n, float k) {
  work peek n pop 1 push 1 {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += peek(i);
    push(sum * k / n);
    pop();
  }
}
"""
LARGE = {
    "chain": "for (int i = 0; i < 1000; i++) add Scale(1.0 + i * 0.001);",
    "windows": "for (int i = 0; i < 1000; i++) add Mean(2 + i % 7, 1.0 + i * 0.001);",
    "branches": "add splitjoin { split duplicate; for (int i = 0; i < 1000; i++) add Scale(1.0 + i * 0.001); join roundrobin; };",
}
"""Bodies of programs of a thousand filters, no two of which are the same."""
SIGNAL = 2_500

FIRST = 0.15
"""Seconds of the processor by which the first run of a process may take longer."""

COMMAND = "from river import cli; getattr(cli, 'command', cli.run)()"
"""The command `river` of any version."""

TWICE = """
import sys, time
import river
program, name, file = river.load(sys.argv[1]), sys.argv[2], sys.argv[3]
took = []
for _ in range(2):
    began = time.process_time()
    program.run({name: file}, workers=1)
    took.append(time.process_time() - began)
print(took[0] - took[1])
"""

SHOWN = 12


def commands(folder: Path) -> dict[str, list[object]]:
    """By name; all but the first of each pair with the same file."""
    river = [sys.executable, "-c", COMMAND]
    script = shutil.which("river", path=str(Path(sys.executable).parent))
    if script is not None and not measure.ALONE:  # it begins as the version that is installed does
        river = [sys.executable, script]
    requests, queries, trades = (folder / f"{name}.csv" for name in ("requests", "queries", "trades"))
    with requests.open("w") as out:
        data.write(data.requests(10), data.KINDS["requests"][1], "csv", out)
    with queries.open("w") as out:
        data.write(data.queries(10), data.KINDS["queries"][1], "csv", out)
    rows = (f"{i},S{i * i % 3},V{i % 2},{i % 7 / 2},{i * 31 % 100}\n" for i in range(10))
    trades.write_text("ts,symbol,venue,price,volume\n" + "".join(rows))
    signal = folder / "signal.csv"
    signal.write_text("value\n" + "".join(f"{i % 100 / 10}\n" for i in range(SIGNAL)))
    for name, body in LARGE.items():
        (folder / f"{name}.str").write_text(f"float->float pipeline Main {{ {body} }}\n{FILTERS}")
    heard = ["--in", f"input={signal}", "--out", f"output={folder / 'heard.csv'}", "--quiet"]
    program = PROGRAMS / "request_counts.cql"
    log = PROGRAMS / "query_log.szl"
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "river --help": [*river, "--help"],
        "river compile": [*river, "compile", program],
        "river compile, 500 lines": [*river, "compile", PROGRAMS / "shop_report.szl"],
        "river run, CQL": [*river, "run", program, "--in", f"requests={requests}", "--format", "csv"],
        "river run, Sawzall": [*river, "run", log, "--in", f"query={queries}", "--format", "csv"],
        "river run, ten views": [*river, "run", PROGRAMS / "ten_views.cql", "--in", f"trades={trades}"],
        **{f"river run, {name}": [*river, "run", folder / f"{name}.str", *heard] for name in LARGE},
    }


def first_run(folder: Path, cache: Path, runs: int) -> float:
    """By how much the first run of a process takes longer than the second: the least of a few."""
    command = [
        sys.executable,
        "-c",
        TWICE,
        PROGRAMS / "request_counts.cql",
        "requests",
        folder / "requests.csv",
    ]
    took = [measure.process(command, env={"RIVER_CACHE": str(cache)}) for _ in range(runs + 1)]
    return min(float(each.told) for each in took[1:])


def imports(command: list[object], cache: Path) -> None:
    """Prints which packages and modules a process imports, in ms of their own."""
    took = measure.process([command[0], "-X", "importtime", *command[1:]], env={"RIVER_CACHE": str(cache)})
    own: Counter[str] = Counter()
    for micros, name in re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", took.told, re.MULTILINE):
        own[name] += int(micros)
    packages: Counter[str] = Counter()
    for name, micros in own.items():
        packages[name.partition(".")[0]] += micros
    print(f"    {len(own)} modules, {sum(own.values()) / 1000:.0f} ms while they are told of")
    for title, found in (("packages", packages), ("modules", own)):
        told = ", ".join(f"{name} {micros / 1000:.1f}" for name, micros in found.most_common(SHOWN))
        print(f"    {title}: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--imports", action="store_true")
    given = parser.parse_args()
    measure.begin("Whole processes, in seconds")
    with TemporaryDirectory() as name:
        folder = Path(name)
        full, empty = folder / "full", folder / "empty"
        asked = commands(folder)
        for command in asked.values():
            measure.process(command, env={"RIVER_CACHE": str(full)})

        def cold(command: list[object], kept: str = "") -> measure.Took:
            shutil.rmtree(empty, ignore_errors=True)
            empty.mkdir()
            for file in full.glob(kept) if kept else ():
                shutil.copy(file, empty)
            return measure.process(command, env={"RIVER_CACHE": str(empty)})

        warm = measure.race(
            {n: lambda c=c: measure.process(c, env={"RIVER_CACHE": str(full)}) for n, c in asked.items()},
            given.runs,
            "full cache",
        )
        told = {"full cache": warm}
        for label, kept in (("empty cache", ""), ("parsers' tables", "grammar-*")):
            told[label] = measure.race(
                {
                    n: lambda c=c, kept=kept: cold(c, kept)
                    for n, c in asked.items()
                    if n.startswith(("river compile", "river run"))
                },
                min(3, given.runs),
                label,
            )
        for label, found in told.items():
            for what, took in found.items():
                most = TARGETS.get(label, {}).get(what)
                wanted = "" if most is None else measure.target(took.cpu, most)
                print(f"{what:24} {label:16} {took.wall:6.2f}, of the processor {took.cpu:6.2f} {wanted}")
                if given.imports and label == "full cache" and what.startswith("river"):
                    imports(asked[what], full)
        if measure.ALONE:  # nothing of the rest is kept
            return
        more = first_run(folder, full, given.runs)
        print(
            f"{'the first run':24} {'full cache':16}    more of the processor {more:6.2f} {measure.target(more, FIRST)}"
        )


if __name__ == "__main__":
    main()
