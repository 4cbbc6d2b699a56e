"""Queries on relations beside peers, from file to file on one core, in seconds of the processor.

`join`: pairs of rows of two streams with equal keys, each within 60 seconds of the other, as they come about. Beside River:
Bytewax (a `stateful` with two deques a key) and Flink (PyFlink, an interval join in SQL), where they are installed. Bytewax gets
both streams as one file in order of time, because it does not merge files by time; River gets two.

`sum` by key, `max`, `top` (100 rows by an order) and `distinct`, each in two ways: of a `stream`, where River tells what
changes at every instant, and of a `table`, where it tells the answer once. DuckDB answers the batch question both times: what
holds of all rows, once. So over a `stream` River does more.

Each way runs in processes of its own, pinned to one core, which take turns. `fresh` is the first run of a process, with code that
is in the cache; `warm` the least of two later ones. Behind each peer stands how many times River's seconds it takes. The answers
are compared: of the join as bags of pairs, of changes what they come to.

Run: python tests/bench/bench_relations.py [--rows N] [--runs N] [--questions join,sum,...] [--python PATH]
     (`--python`: an interpreter that has Bytewax and PyFlink, if this one has not)
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict, deque
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PEERS: Final = Path(__file__).parent / "peers"
SECONDS: Final = 1_000
"""Over which the rows come."""

KEYS: Final = 10_000
WARM: Final = 2
SEED: Final = 2006

JOIN: Final = """
l: { ts: int; k: int; a: int } stream by ts;
r: { ts: int; k: int; b: int } stream by ts;
answer: stream by ts = istream(select l.k, l.a, r.b from l[range 60] as l, r[range 60] as r where l.k = r.k);
"""
QUESTIONS: Final = {
    "sum": "select k, sum(x) as total from s group by k",
    "max": "select max(x) as most from s",
    "top": "select k, x from s order by x desc, k limit 100",
    "distinct": "select distinct k from s",
}
"""The same text for River and DuckDB."""

INPUTS: Final = {
    "stream": "s: { ts: int; k: int; x: int } stream by ts;",
    "table": "s: { ts: int; k: int; x: int } relation;",
}
LEAST: Final = {"bytewax": 10.0, "flink": 10.0, "duckdb": 2.0}
"""How many times River's seconds each peer is to take."""


# ---------------------------------------------------------------------------------------------------- data


def write(folder: Path, rows: int) -> None:
    """`s.csv`; for the join `l.csv`, `r.csv`, and `both.csv` with the side as its second column."""
    rng = random.Random(SEED)
    stamps = sorted(rng.randrange(SECONDS) for _ in range(rows))
    with (folder / "s.csv").open("w") as out:
        out.write("ts,k,x\n")
        out.writelines(f"{ts},{rng.randrange(KEYS)},{rng.randrange(1_000_000)}\n" for ts in stamps)
    few = stamps[:: max(1, rows // 400_000)]
    with (
        (folder / "l.csv").open("w") as l,
        (folder / "r.csv").open("w") as r,
        (folder / "both.csv").open("w") as both,
    ):
        l.write("ts,k,a\n")
        r.write("ts,k,b\n")
        for i, ts in enumerate(few):
            k, side = rng.randrange(KEYS), rng.randrange(2)
            (r if side else l).write(f"{ts},{k},{i}\n")
            both.write(f"{ts},{'lr'[side]},{k},{i}\n")


# ------------------------------------------------------------------------------------------ in a process


def told(run: Callable[[], object]) -> None:
    """Runs some times, and prints the seconds of the processor of each."""
    print(*(measure.timed(run).cpu for _ in range(1 + WARM)))


def in_river(question: str, way: str, folder: Path) -> None:
    import river

    text = JOIN if question == "join" else f"{INPUTS[way]}\nanswer: relation = {QUESTIONS[question]};"
    file = folder / f"{question}-{way}.cql"
    file.write_text(text)
    program = river.load(str(file))
    names = ("l", "r") if question == "join" else ("s",)
    inputs = {name: str(folder / f"{name}.csv") for name in names}
    outputs = {"answer": str(folder / f"river-{question}-{way}.csv")}
    told(lambda: program.run(inputs, outputs, workers=1))


def in_duckdb(question: str, folder: Path) -> None:
    import duckdb

    query = QUESTIONS[question].replace("from s", f"from read_csv('{folder / 's.csv'}')")

    def run() -> None:
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute(f"copy ({query}) to '{folder}/duckdb-{question}.csv' (header)")

    told(run)


# --------------------------------------------------------------------------------------------------- checks


def rows_of(path: Path, *names: str) -> Counter[tuple[str, ...]]:
    with path.open(newline="") as lines:
        return Counter(tuple(row[name] for name in names) for row in csv.DictReader(lines))


def holding(path: Path) -> Counter[tuple[str, ...]]:
    """What the changes of a relation come to."""
    found: Counter[tuple[str, ...]] = Counter()
    with path.open(newline="") as lines:
        for _, op, *row in list(csv.reader(lines))[1:]:
            found[tuple(row)] += 1 if op == "+" else -1
    return +found


def pairs(folder: Path) -> Iterator[tuple[str, str, str]]:
    """What the join comes to, in a plain loop."""
    sides: defaultdict[str, tuple[deque[tuple[int, str]], ...]] = defaultdict(lambda: (deque(), deque()))
    with (folder / "both.csv").open() as lines:
        for stamp, side, k, row in csv.reader(lines):
            ts, own = int(stamp), side == "r"
            rows, others = sides[k][own], sides[k][not own]
            while others and others[0][0] < ts - 60:
                others.popleft()
            rows.append((ts, row))
            yield from ((k, other, row) if own else (k, row, other) for _, other in others)


def check(question: str, folder: Path, peers: Sequence[str]) -> None:
    """Ends the benchmark if River's answer and another one differ."""
    ours = folder / f"river-{question}-stream.csv"
    if question == "join":
        meant: Counter[tuple[str, ...]] = Counter(pairs(folder))
        found = {way: rows_of(folder / f"{way}-join.csv", "k", "a", "b") for way in peers}
        found["river"] = rows_of(ours, "k", "a", "b")
    else:
        meant = holding(ours)
        found = {"river, table": holding(folder / f"river-{question}-table.csv")}
        for way in peers:
            with (folder / f"{way}-{question}.csv").open(newline="") as lines:
                found[way] = Counter(map(tuple, list(csv.reader(lines))[1:]))
    for way, answer in found.items():
        if answer != meant:
            sys.exit(f"{question}: the answer of {way} differs")


# ----------------------------------------------------------------------------------------------------- run


def has(python: str, module: str) -> bool:
    """Whether an interpreter has a package."""
    asked = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return not subprocess.run([python, "-c", asked], check=False).returncode


def compare(question: str, folder: Path, runs: int, python: str) -> None:
    """Prints what each way of answering a question takes."""
    env = {"RIVER_CACHE": str(folder / "cache")}

    def itself(way: str, of: str = "stream") -> measure.Took:
        command = [sys.executable, __file__, "--child", f"{way}:{question}:{of}", "--folder", folder]
        return measure.process(command, env=env)

    def peer(name: str, *files: str) -> measure.Took:
        paths = [folder / file for file in files]
        return measure.process([python, PEERS / f"{name}_join.py", *paths, folder / f"{name}-join.csv"])

    ways: dict[str, Callable[[], measure.Took]] = {"river, stream": partial(itself, "river")}
    if question != "join":
        ways["river, table"] = partial(itself, "river", "table")
        if find_spec("duckdb") is not None:
            ways["duckdb"] = partial(itself, "duckdb")
    else:
        if has(python, "bytewax"):
            ways["bytewax"] = partial(peer, "bytewax", "both.csv")
        if has(python, "pyflink"):
            ways["flink"] = partial(peer, "flink", "l.csv", "r.csv")
    for way in ("river, stream", "river, table"):
        if way in ways:
            ways[way]()  # fills the cache
    took = measure.rounds(ways, runs)
    took = {way: each for way, each in took.items() if not math.isnan(each[0].wall)}
    check(question, folder, [way for way in took if not way.startswith("river")])
    show(question, took)


def show(question: str, took: Mapping[str, Sequence[measure.Took]]) -> None:
    """Prints the seconds of each way, and how many times River's the peers take."""
    times = {way: [list(map(float, one.told.split())) for one in each] for way, each in took.items()}
    fresh = {way: [each[0] for each in found] for way, found in times.items()}
    warm = {way: [min(each[1:] or each) for each in found] for way, found in times.items()}
    for way in took:
        line = f"  {question:9} {way:15} fresh {min(fresh[way]):7.3f} s, warm {min(warm[way]):7.3f} s"
        if way in LEAST:
            for ours in (name for name in took if name.startswith("river")):
                a, b = (min(of[way]) / min(of[ours]) for of in (fresh, warm))
                line += f"; over `{ours}` {a:.1f}, {b:.1f} {measure.target(-b, -LEAST[way])}"
        print(line, flush=True)
    for kind, found in (("fresh", fresh), ("warm", warm)):
        measure.record(f"{question} of relations, {kind}", found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--questions", default=",".join(("join", *QUESTIONS)))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        way, question, of = given.child.split(":")
        if way == "river":
            in_river(question, of, given.folder)
        else:
            in_duckdb(question, given.folder)
        sys.stdout.flush()
        return
    if hasattr(os, "sched_setaffinity"):  # of this process and its children
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    measure.begin("Queries on relations, on one core")
    with TemporaryDirectory() as folder:
        write(Path(folder), given.rows)
        for question in given.questions.split(","):
            compare(question, Path(folder), given.runs, given.python)


if __name__ == "__main__":
    main()
