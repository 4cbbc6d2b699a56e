"""Text and Arrow data of columns {i64, i64, f64, short string}: ns per row, against pyarrow's CSV writer and a loop of snprintf.

The loop (gcc -O3) prints floats with %.17g: digits enough, not the fewest. Each time is the best of a few runs.
"""

from __future__ import annotations

import ctypes
import io
import random
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
from measure import record, times

from backends.native.arrow import from_arrow, to_arrow
from backends.native.batch import Batch
from backends.native.egress import encoder
from river.io.schema import to_batch
from river.io.sinks import open_sink
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 200_000
RUNS = 7
TYPE = t.Record((("id", t.I64), ("n", t.I64), ("price", t.F64), ("name", t.STRING)))

C = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef struct { uint32_t size; char head[4]; char *data; } view;
int64_t lines(int64_t n, int64_t *a, int64_t *b, double *x, view *s, char *out) {
  char *p = out;
  for (int64_t i = 0; i < n; i++) {
    uint32_t size = s[i].size & 0x7fffffff;
    char *text = size <= 12 ? s[i].head : s[i].data;
    p += sprintf(p, "%lld,%lld,%.17g,%.*s\\n", (long long)a[i], (long long)b[i], x[i], (int)size, text);
  }
  return p - out;
}
"""


def in_c(batch: Batch) -> Callable[[], Any] | None:
    """The loop of snprintf."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    with TemporaryDirectory() as folder:
        source, library = Path(folder, "lines.c"), Path(folder, "lines.so")
        source.write_text(C)
        subprocess.run([gcc, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
        lines = ctypes.CDLL(str(library)).lines
    lines.argtypes, lines.restype = [ctypes.c_int64, *[ctypes.c_void_p] * 5], ctypes.c_int64
    out = ctypes.create_string_buffer(ROWS * 128)
    return lambda: lines(ROWS, *batch.addresses, out)


def measured(items: list[Any], shape: str) -> dict[str, float]:
    """The nanoseconds per row of each way."""
    batch, table = Batch.of(TYPE, items), to_batch(TYPE, items)
    contests: dict[str, dict[str, Callable[[], Any]]] = {}
    for format_ in ("csv", "jsonl"):
        made = encoder(TYPE, format_)
        assert made is not None
        contests[format_] = {
            "river": lambda made=made: made.encode(batch),
            "items": lambda format_=format_: _items(items, format_),
        }
    contests["csv"]["pyarrow"] = lambda: pyarrow.csv.write_csv(table, io.BytesIO())
    loop = in_c(batch)
    if loop is not None:
        contests["csv"]["snprintf"] = loop
    texts = table.column(3).dictionary_encode()
    named = pa.record_batch([*table.columns[:3], texts], names=table.schema.names)
    contests["to Arrow"] = {"river": lambda: to_arrow(TYPE, batch)}
    contests["from Arrow"] = {"river": lambda: from_arrow(TYPE, table)}
    contests["from Arrow, dictionary"] = {"river": lambda: from_arrow(TYPE, named)}
    found: dict[str, float] = {}
    for what, ways in contests.items():
        took = times(ways, RUNS)
        record(f"{what}, {shape}", took)
        for way, seconds in took.items():
            name = f"{'native' if way == 'river' else way} {what}" if len(ways) > 1 else what
            found[name] = min(seconds) / ROWS * 1e9
    return found


def main() -> None:
    """Prints a line per way."""
    draw = random.Random(7)
    names = ["ant", "bumblebee", "cat", "dragonfly", "eel", "fox"]
    shapes: dict[str, Callable[[], float]] = {
        "prices": lambda: draw.randrange(10**6) / 100,
        "random": draw.random,
    }
    for shape, number in shapes.items():
        items = [(i, draw.randrange(10**6), number(), draw.choice(names)) for i in range(ROWS)]
        found = measured(items, shape)
        print(f"-- floats: {shape}")
        for name, took in found.items():
            print(f"{name:24} {took:8.1f} ns/row  {took / found['native csv']:6.2f} of native csv")


def _items(items: list[Any], format_: str) -> None:
    with open_sink(io.BytesIO(), TYPE, name="out", format=format_) as sink:
        sink.write(items)


if __name__ == "__main__":
    main()
