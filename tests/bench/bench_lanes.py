"""Filters in lanes against C loops (gcc -O3 -march=native), in one process.

The C functions are the same algorithms in plain C; their results may differ in the last bits, for gcc contracts a
product and a sum. Times are the best of a few runs that take turns; items lie in the second-level cache, those of the
clipper in memory.
"""

from __future__ import annotations

import ctypes
import math
import random
import shutil
import subprocess
import sys
import time
from array import array
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import measure
from attrs import frozen

from backends.native import NativeOperator, compile_native
from backends.native.batch import address_of
from backends.native.lanes import Lanes, lanes_of
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = 40_000
RUNS = 60

HEAD = "river 1;\ninput x: {t};\noutput y: {t};\n"
FIR = """
fn window() -> array<f32, 64> {
  var taps: array<f32, 64> = fill(0.0);
  for i in 0 .. 64 { taps[i] = f32(0.5 - 0.5 * cos(6.283185307179586 * f64(i) / 63.0)); }
  return taps;
}
operator f(x: f32) -> (y[push 1]: f32) {
  const h: array<f32, 64> = window();
  on x[peek 64, pop POP](w) {
    var s: f32 = 0.0;
    for i in 0 .. 64 { s = s + w[i] * h[i]; }
    emit y s;
  }
}
(y) <- f(x);
"""
CLIP = """
operator f(x: f32) -> (y[push 1]: f32) {
  on x[pop 1](w) {
    var v = w[0] * 1.5;
    if v > 0.5 { v = 0.5; } else { if v < -0.5 { v = -0.5; } }
    emit y v;
  }
}
(y) <- f(x);
"""
FFT = """
fn turned() -> array<i64, 64> {
  var found: array<i64, 64> = fill(0);
  for i in 0 .. 64 {
    var rest = i;
    for b in 0 .. 6 { found[i] = found[i] * 2 + (rest & 1); rest = rest >> 1; }
  }
  return found;
}
fn circle() -> array<f32, 384> {
  var found: array<f32, 384> = fill(0.0);
  for s in 0 .. 6 {
    for k in 0 .. 1 << s {
      let angle = -6.283185307179586 * f64(k) / f64(2 << s);
      found[64 * s + 2 * k] = f32(cos(angle));
      found[64 * s + 2 * k + 1] = f32(sin(angle));
    }
  }
  return found;
}
operator f(x: f32) -> (y[push 128]: f32) {
  const reverse: array<i64, 64> = turned();
  const t: array<f32, 384> = circle();
  on x[pop 128](w) {
    var q: array<f32, 128> = zero();
    for k in 0 .. 64 {
      q[2 * k] = w[2 * reverse[k]];
      q[2 * k + 1] = w[2 * reverse[k] + 1];
    }
    for s in 0 .. 6 {
      let m = 1 << s;
      for g in 0 .. 32 >> s {
        for k in 0 .. m {
          let u = 2 * (2 * m * g + k);
          let v = u + 2 * m;
          let c = t[64 * s + 2 * k];
          let d = t[64 * s + 2 * k + 1];
          let re = q[v] * c - q[v + 1] * d;
          let im = q[v] * d + q[v + 1] * c;
          q[v] = q[u] - re;
          q[v + 1] = q[u + 1] - im;
          q[u] = q[u] + re;
          q[u + 1] = q[u + 1] + im;
        }
      }
    }
    for k in 0 .. 128 { emit y q[k]; }
  }
}
(y) <- f(x);
"""
BITONIC = """
operator f(x: i32) -> (y[push 16]: i32) {
  on x[pop 16](w) {
    var q: array<i32, 16> = zero();
    for p in 0 .. 16 { q[p] = w[p]; }
    for a in 1 .. 5 {
      for b in 0 .. a {
        let j = (1 << a) >> (b + 1);
        for p in 0 .. 16 {
          if p ^ j > p {
            let lo = min(q[p], q[p ^ j]);
            let hi = max(q[p], q[p ^ j]);
            if p & (1 << a) == 0 { q[p] = lo; q[p ^ j] = hi; } else { q[p] = hi; q[p ^ j] = lo; }
          }
        }
      }
    }
    for p in 0 .. 16 { emit y q[p]; }
  }
}
(y) <- f(x);
"""
DCT = """
fn cosines() -> array<f32, 64> {
  var found: array<f32, 64> = fill(0.0);
  for u in 0 .. 8 {
    for i in 0 .. 8 {
      let scale = if u == 0 {0.3535533905932738} else {0.5};
      found[8 * u + i] = f32(scale * cos(3.141592653589793 * f64(u) * (2.0 * f64(i) + 1.0) / 16.0));
    }
  }
  return found;
}
operator f(x: f32) -> (y[push 64]: f32) {
  const c: array<f32, 64> = cosines();
  on x[pop 64](w) {
    var q: array<f32, 64> = zero();
    for r in 0 .. 8 {
      for u in 0 .. 8 {
        var s: f32 = 0.0;
        for i in 0 .. 8 { s = s + c[8 * u + i] * w[8 * r + i]; }
        q[8 * r + u] = s;
      }
    }
    for u in 0 .. 8 {
      for k in 0 .. 8 {
        var s: f32 = 0.0;
        for i in 0 .. 8 { s = s + c[8 * u + i] * q[8 * i + k]; }
        emit y s;
      }
    }
  }
}
(y) <- f(x);
"""

C = r"""
#include <stdint.h>
#include <string.h>
typedef const float *restrict in; typedef float *restrict out;
void fir1(long n, in x, out y, in h) {
  for (long j = 0; j < n; j++) { float s = 0; for (int i = 0; i < 64; i++) s += x[j + i] * h[i]; y[j] = s; } }
void fir5(long n, in x, out y, in h) {
  for (long j = 0; j < n; j++) { float s = 0; for (int i = 0; i < 64; i++) s += x[5 * j + i] * h[i]; y[j] = s; } }
void clip(long n, in x, out y, in h) {
  for (long j = 0; j < n; j++) {
    float v = x[j] * 1.5f; if (v > 0.5f) v = 0.5f; else if (v < -0.5f) v = -0.5f; y[j] = v; } }
void fft(long n, in x, out y, in t) {
  const int *rev = (const int *)(t + 384);
  for (long b = 0; b < n; b++) {
    float q[128]; const float *p = x + b * 128;
    for (int k = 0; k < 64; k++) { q[2 * k] = p[2 * rev[k]]; q[2 * k + 1] = p[2 * rev[k] + 1]; }
    for (int s = 0; s < 6; s++) {
      int m = 1 << s;
      for (int g = 0; g < 64; g += 2 * m) for (int k = 0; k < m; k++) {
        int u = 2 * (g + k), v = u + 2 * m; float c = t[64 * s + 2 * k], d = t[64 * s + 2 * k + 1];
        float re = q[v] * c - q[v + 1] * d, im = q[v] * d + q[v + 1] * c, e = q[u], f = q[u + 1];
        q[u] = e + re; q[u + 1] = f + im; q[v] = e - re; q[v + 1] = f - im; } }
    memcpy(y + b * 128, q, sizeof q); } }
void bitonic(long n, const int32_t *restrict x, int32_t *restrict y, in h) {
  for (long b = 0; b < n; b++) {
    int32_t q[16]; memcpy(q, x + b * 16, 64);
#pragma GCC unroll 16
    for (int k = 2; k <= 16; k *= 2)
#pragma GCC unroll 16
      for (int j = k / 2; j; j /= 2)
#pragma GCC unroll 16
        for (int p = 0; p < 16; p++) if ((p ^ j) > p) {
          int32_t a = q[p], c = q[p ^ j], lo = a < c ? a : c, hi = a < c ? c : a;
          if (p & k) { q[p] = hi; q[p ^ j] = lo; } else { q[p] = lo; q[p ^ j] = hi; } }
    memcpy(y + b * 16, q, 64); } }
void dct(long n, in x, out y, in c) {
  for (long b = 0; b < n; b++) {
    float q[64]; const float *w = x + b * 64; float *o = y + b * 64;
    for (int r = 0; r < 8; r++) for (int u = 0; u < 8; u++) {
      float s = 0; for (int i = 0; i < 8; i++) s += c[8 * u + i] * w[8 * r + i]; q[8 * r + u] = s; }
    for (int u = 0; u < 8; u++) for (int k = 0; k < 8; k++) {
      float s = 0; for (int i = 0; i < 8; i++) s += c[8 * u + i] * q[8 * i + k]; o[8 * u + k] = s; } } }
"""


@frozen
class Filter:
    """A filter: its program, its function in C, items that a firing looks at, takes and gives, and the table of C."""

    text: str
    c: str
    peek: int
    pop: int
    push: int
    table: array[Any]
    target: float | None = None
    whole: bool = False


def twiddles() -> array[Any]:
    found = array("f", [0.0] * 384)
    for s in range(6):
        for k in range(1 << s):
            angle = -2 * math.pi * k / (2 << s)
            found[64 * s + 2 * k], found[64 * s + 2 * k + 1] = math.cos(angle), math.sin(angle)
    reverse = array("i", [int(f"{k:06b}"[::-1], 2) for k in range(64)])
    return array("f", found.tobytes() + reverse.tobytes())


TAPS = array("f", [0.5 - 0.5 * math.cos(2 * math.pi * i / 63) for i in range(64)])
COSINES = array("f", [
    (0.3535533905932738 if u == 0 else 0.5) * math.cos(math.pi * u * (2 * i + 1) / 16) for u in range(8) for i in range(8)
])  # fmt: skip
FILTERS = {
    "FIR-64": Filter(FIR.replace("POP", "1"), "fir1", 64, 1, 1, TAPS, 0.7),
    "FIR-64 pop 5": Filter(FIR.replace("POP", "5"), "fir5", 64, 5, 1, TAPS, 0.7),
    "clipper": Filter(CLIP, "clip", 1, 1, 1, TAPS),
    "FFT-64": Filter(FFT, "fft", 128, 128, 128, twiddles(), 0.6),
    "bitonic-16": Filter(BITONIC, "bitonic", 16, 16, 16, TAPS, 0.2, whole=True),
    "DCT-8x8": Filter(DCT, "dct", 64, 64, 64, COSINES, 1.0),
}


def compiled(text: str) -> NativeOperator:
    graph = verify(parse(Source("bench.river", text)), Library.of({}))
    (instance,) = graph.instances
    found = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return found


def compare(name: str, each: Filter, c: ctypes.CDLL) -> None:
    """Prints the times of one filter."""
    start = time.perf_counter()
    native = compiled(HEAD.replace("{t}", "i32" if each.whole else "f32") + each.text)
    made = time.perf_counter() - start
    ((_, plan),) = lanes_of(native.operator).items()
    chance = random.Random(7)
    firings = ITEMS // each.pop * (20 if each.peek == 1 else 1)  # a call of a cheap filter is not to count
    count = firings * each.pop + each.peek
    if each.whole:
        items = array("i", (chance.randrange(-1 << 31, 1 << 31) for _ in range(count)))
    else:
        items = array("f", (chance.gauss(0, 1) for _ in range(count)))
    found = array(items.typecode, bytes(items.itemsize * firings * each.push))
    x, y, table = (ctypes.c_void_p(address_of(a)) for a in (items, found, each.table))
    columns = [address_of(items)]
    function = getattr(c, each.c)

    def lanes() -> None:
        native.clear()
        assert native.fire("rated", columns, 0, firings).row == firings

    runs: dict[str, Callable[[], object]] = {
        "river": lanes,
        "C": lambda: function(ctypes.c_long(firings), x, y, table),
    }
    took = measure.times(runs, RUNS)
    measure.record(name, took)
    lanes()
    ours = native.outputs[0].batch().values()
    worst = max(abs(a - b) for a, b in zip(ours, found, strict=True))
    ns = {way: min(each) / firings * 1e9 for way, each in took.items()}
    ratio = ns["river"] / ns["C"]
    target = "" if each.target is None else f" (target {each.target})"
    print(
        f"{name:13} {'lanes' if isinstance(plan, Lanes) else plan.reason} {ns['river']:8.2f} ns, C {ns['C']:8.2f},"
        f" ratio {ratio:.2f}{target}; compiled in {made * 1e3:.0f} ms; differs by {worst:.1e}"
    )


def main(gcc: str, names: list[str]) -> None:
    with TemporaryDirectory() as folder:
        source, library = Path(folder) / "filters.c", Path(folder) / "filters.so"
        source.write_text(C)
        subprocess.run([gcc, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
        c = ctypes.CDLL(str(library))
        for name in names or FILTERS:
            compare(name, FILTERS[name], c)


if __name__ == "__main__":
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("the C functions to compare with need gcc")
    main(compiler, sys.argv[1:])
