"""Native operators on columns against C loops (gcc -O3 -march=native), in one process: filter and map, keyed count and sum.

The C program of the keyed sum uses the same structure: an array of entries by small whole key. Each time is the best of a
few runs, after the first.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import sys
from array import array
from pathlib import Path
from tempfile import TemporaryDirectory

import measure

from backends.native import NativeOperator, compile_native
from backends.native.batch import address_of
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.source import Source

ROWS = 1_000_000
KEYS = 10_000
RUNS = 5

PROGRAM = """river 1;
type Trade = {k: i64, price: f64, volume: i64};
type Sum = {n: i64, s: i64};
input t: Trade;
var $v: map<i64, Sum> = {};
output a: {k: i64, value: f64};
operator filter_map(t: Trade) -> (out: {k: i64, value: f64}) {
  on t(x) { if x.price > 50.0 { emit out {k: x.k, value: x.price * f64(x.volume)}; } }
}
operator keyed(t: Trade; $v: map<i64, Sum>) -> () {
  on t(x) { with v = $v[x.k] else {n: 0, s: 0} { v.n = v.n +% 1; v.s = v.s +% x.volume; } }
}
operator keyed_checked(t: Trade; $v: map<i64, Sum>) -> () {
  on t(x) { with v = $v[x.k] else {n: 0, s: 0} { v.n = v.n + 1; v.s = v.s + x.volume; } }
}
"""
GRAPHS = {
    "filter_map": "(a) <- filter_map(t);",
    "keyed": "(a) <- filter_map(u); (u, w) <- std.duplicate<Trade, 2>(t); ($v) <- keyed(w, $v);",
}

C = """
#include <stdint.h>
#include <stdlib.h>
typedef int64_t i64;
typedef struct entry { struct entry *next, *prev; i64 k, n, s; } E;
i64 filter_map(i64 n, i64 *k, double *p, i64 *v, i64 *ok, double *ov) {
  i64 m = 0;
  for (i64 i = 0; i < n; i++) if (p[i] > 50.0) { ok[m] = k[i]; ov[m++] = p[i] * (double)v[i]; }
  return m;
}
static E **dir, *head, *tail; static i64 cap;
void setup(i64 c) { dir = calloc(c, sizeof(E *)); cap = c; head = tail = 0; }
i64 keyed(i64 n, i64 *k, i64 *v) {
  for (i64 i = 0; i < n; i++) {
    if ((uint64_t)k[i] >= (uint64_t)cap) abort();
    E *e = dir[k[i]];
    if (!e) {
      e = calloc(1, sizeof(E)); e->k = k[i]; e->prev = tail;
      if (tail) tail->next = e; else head = e;
      tail = e; dir[k[i]] = e;
    }
    e->n++; e->s += v[i];
  }
  return 0;
}
"""


def operator(name: str) -> NativeOperator:
    ports = {"filter_map": "(a) <- filter_map(t);"}.get(name, f"($v) <- {name}(t, $v);")
    text = PROGRAM + ports
    if name != "filter_map":
        text = text.replace("output a: {k: i64, value: f64};\n", "")
    graph = verify(parse(Source("bench.river", text)), Library.of({}))
    (instance,) = graph.instances
    found = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return found


def against_c(tmp_path: Path, gcc: str) -> None:
    """Prints the times and ratios."""
    source, library = tmp_path / "loops.c", tmp_path / "loops.so"
    source.write_text(C)
    subprocess.run([gcc, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
    c = ctypes.CDLL(str(library))
    chance = random.Random(7)
    keys = array("q", (chance.randrange(KEYS) for _ in range(ROWS)))
    prices = array("d", (chance.random() * 100 for _ in range(ROWS)))
    volumes = array("q", (chance.randrange(1000) for _ in range(ROWS)))
    columns = [address_of(each) for each in (keys, prices, volumes)]
    k, p, v = (ctypes.c_void_p(address) for address in columns)
    out_k, out_v = array("q", bytes(8 * ROWS)), array("d", bytes(8 * ROWS))
    outs = [ctypes.c_void_p(address_of(each)) for each in (out_k, out_v)]
    size = ctypes.c_int64(ROWS)

    filtering = operator("filter_map")

    def filter_native() -> None:
        filtering.clear()
        assert filtering.fire("item.0", columns, 0, ROWS).row == ROWS

    times = {
        "filter+map": (
            measure.best(filter_native, RUNS),
            measure.best(lambda: c.filter_map(size, k, p, v, *outs), RUNS),
        )
    }
    count = filtering.outputs[0].rows
    assert filtering.outputs[0].batch().values() == list(zip(out_k[:count], out_v[:count], strict=True))

    c.setup(ctypes.c_int64(1 << 14))
    plain_c = measure.best(lambda: c.keyed(size, k, v), RUNS)
    for name in ("keyed", "keyed_checked"):
        keyed = operator(name)
        times[name] = (measure.best(lambda o=keyed: o.fire("item.0", columns, 0, ROWS), RUNS), plain_c)
    for name, (ours, theirs) in times.items():
        print(
            f"{name:16} native {ours / ROWS * 1e9:6.2f} ns per row, C {theirs / ROWS * 1e9:6.2f}, ratio {ours / theirs:.2f}"
        )


if __name__ == "__main__":
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("the C program to compare with needs gcc")
    with TemporaryDirectory() as folder:
        against_c(Path(folder), compiler)
