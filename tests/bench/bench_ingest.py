"""Native ingest of CSV and JSON lines: ns per row on one thread and of `parse` on two, beside pyarrow and a C loop of `memchr`.

Files of a million rows lie in the page cache. Each figure is the best of a few runs that take turns, in
processor time for one thread, by the clock for two; the loop finds the line ends, nothing more.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from measure import record, times

from backends.native.ingest import open_native
from river.io.schema import arrow, arrow_schema
from river.io.sources import open_source
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_000_000
RUNS = 5
TRADE = t.Record((("ts", t.I64), ("key", t.I32), ("value", t.F64), ("name", t.STRING)))
VISIT = t.Record((("origin", t.STRING), ("target", t.STRING)))

C = """
#include <string.h>
long lines(const char *p, long n) {
  long count = 0;
  for (const char *end = p + n, *q; (q = memchr(p, 10, end - p)); p = q + 1) count++;
  return count;
}
"""


def files(folder: Path, rows: int) -> list[tuple[str, Path, t.Type]]:
    """The inputs: trades and visits, each in both formats."""
    choice = random.Random(7)
    trades: list[tuple[int, int, float, str]] = []
    stamp = 1_700_000_000_000
    for _ in range(rows):
        stamp += choice.randrange(3)
        key = choice.randrange(10_000)
        trades.append((stamp, key, round(choice.random() * 100, 6), f"user_{key:05d}"))
    hosts = [f"{choice.choice(('www', 'shop', 'news', 'm'))}.site{i}.example.org" for i in range(5_000)]
    pages = [f"/articles/{i}/{'abcdefghij'[: i % 10]}" for i in range(20_000)]
    visits = [(choice.choice(hosts), choice.choice(pages)) for _ in range(rows)]
    found: list[tuple[str, Path, t.Type]] = []
    for name, type_, items in (("trades", TRADE, trades), ("visits", VISIT, visits)):
        csv, json = folder / f"{name}.csv", folder / f"{name}.jsonl"
        names = [field for field, _ in type_.fields]
        csv.write_text(",".join(names) + "\n" + "".join(",".join(map(str, item)) + "\n" for item in items))
        quoted = [["", '"'][part == t.STRING] for _, part in type_.fields]
        json.write_text("".join(
            "{" + ",".join(f'"{n}":{q}{x}{q}' for n, q, x in zip(names, quoted, item, strict=True)) + "}\n"
            for item in items
        ))  # fmt: skip
        found += [(f"{name} csv", csv, type_), (f"{name} jsonl", json, type_)]
    return found


def native(path: Path, type_: t.Type) -> int:
    """All batches on this thread; how many rows."""
    reader = open_native(open_source(str(path), type_, name="in"), 1 << 16)
    assert reader is not None
    return sum(batch.rows for batch in reader)


def prepared(path: Path, type_: t.Type) -> list[Any]:
    """The blocks of a file in memory."""
    reader = open_native(open_source(str(path), type_, name="in"), 1 << 16)
    assert reader is not None
    blocks = list(reader.blocks())
    reader.close()
    return blocks


def pyarrow(path: Path, type_: t.Type, *, threads: bool) -> int:
    """The same by pyarrow."""
    schema = arrow_schema(type_)
    if path.suffix == ".csv":
        csv = arrow("csv")
        options = csv.ConvertOptions(column_types=schema)
        return csv.read_csv(path, csv.ReadOptions(use_threads=threads), convert_options=options).num_rows
    json = arrow("json")
    options = json.ParseOptions(explicit_schema=schema)
    return json.read_json(path, json.ReadOptions(use_threads=threads), options).num_rows


def compiled(folder: Path) -> Callable[[bytes], int] | None:
    """The C loop, if there is a compiler."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    source, library = folder / "lines.c", folder / "lines.so"
    source.write_text(C)
    subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
    lines = ctypes.CDLL(str(library)).lines
    lines.argtypes, lines.restype = [ctypes.c_char_p, ctypes.c_long], ctypes.c_long
    return lambda data: lines(data, len(data))


def main() -> None:
    """Prints ns per row."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--runs", type=int, default=RUNS)
    given = options.parse_args()
    rows, runs = given.rows, given.runs
    with TemporaryDirectory() as name:
        folder = Path(name)
        loop = compiled(folder)
        head = ("native", "parse", "pyarrow", *["memchr"] * (loop is not None), "2 thr.", "pyarrow 2")
        print(f"{'ns/row':16s}" + "".join(f"{word:>10s}" for word in head))
        for label, path, type_ in files(folder, rows):
            assert native(path, type_) == rows
            found = raced(path, type_, loop, runs)
            record(label, found)
            best = (min(each) / rows * 1e9 for each in found.values())
            print(f"{label:16s}" + "".join(f"{each:10.1f}" for each in best))


def raced(
    path: Path, type_: t.Type, loop: Callable[[bytes], int] | None, runs: int
) -> dict[str, list[float]]:
    """Seconds of each way to read a file."""
    blocks = prepared(path, type_)
    data = path.read_bytes()
    with ThreadPoolExecutor(2) as pool:
        one = {
            "river": lambda: native(path, type_),
            "river, parsing": lambda: [block.parse().lines for block in blocks],
            "pyarrow": lambda: pyarrow(path, type_, threads=False),
        }
        two = {
            "river, 2 threads": lambda: list(pool.map(lambda block: block.parse().lines, blocks)),
            "pyarrow, 2 threads": lambda: pyarrow(path, type_, threads=True),
        }
        if loop:
            one["memchr"] = lambda: loop(data)
        return times(one, runs, time.process_time) | times(two, runs)


if __name__ == "__main__":
    main()
