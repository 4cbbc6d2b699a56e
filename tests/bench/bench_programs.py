"""The programs of the River paper's applications from file to file: thousands of records a second, and private memory.

Each way runs in processes of its own, which take turns. Two figures of each: `fresh` is the process from its start to its end,
with one run; `warm` is a later run in the same process, from the start of reading to the answers written. For C, warm is the
same without the start of the process. Beside River: C (gcc -O3 -march=native) that maps the file, does the work that the program
declares with arrays and a ring, and writes the same answers (`c` remembers keys where they lie in the mapped file, `c, own keys`
copies them to memory of its own, as whoever does not hold the whole input must); DuckDB, if it is installed, with the fastest
SQL that we know for the same question; and a plain Python loop. First River's answers to the beginning of the data are compared
with the loop's, then to all of them with those in C.

The query log comes with three kinds of keys: 10,000 origins by Zipf's law, 5,000 and a million that are equally likely.

Run: python tests/bench/bench_programs.py [--programs all|NAME,...] [--rows N] [--runs N] [--format csv|jsonl]
     [--input NAME=FILE] [--without duckdb,python]
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from array import array
from collections import Counter
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import data
import measure
import oracle
from attrs import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

PROGRAMS = Path(__file__).parent / "programs"
PREFIX = 3_000

HEAD = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
static const char *p, *end;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
#ifndef POPULATE
#define POPULATE MAP_POPULATE
#endif
static long map(const char *name) {
  int fd = open(name, O_RDONLY); struct stat st; if (fd < 0 || fstat(fd, &st)) exit(1);
  p = mmap(0, st.st_size + 4096, PROT_READ, MAP_PRIVATE | POPULATE, fd, 0); end = p + st.st_size;
  return st.st_size; }
static void header(void) { p = (const char *)memchr(p, '\n', end - p) + 1; }
static long number(void) { long x = 0; while (*p >= '0') x = x * 10 + *p++ - '0'; p++; return x; }
/* texts, by number */
#ifndef BITS
#define BITS 18
#endif
#define SLOTS (1u << BITS)
#ifdef OWN
static const char *kept(const char *k, uint32_t n) {
  static char *room; static size_t left; if (left < n) { left = 1 << 20; room = malloc(left); }
  char *to = room; memcpy(to, k, n); room += n; left -= n; return to; }
#else
#define kept(k, n) (k)
#endif
typedef struct { const char *k; uint32_t len, h; } Slot;
static uint32_t id_of(Slot *slot, const char *k, uint32_t n) {
  uint64_t h = n * 0x9E3779B97F4A7C15ull, w; const char *q = k; uint32_t m = n;
  while (m >= 8) { memcpy(&w, q, 8); h = (h ^ w) * 0x9E3779B97F4A7C15ull; h ^= h >> 29; q += 8; m -= 8; }
  w = 0; memcpy(&w, q, m); h = (h ^ w) * 0x9E3779B97F4A7C15ull; h ^= h >> 32;
  for (uint32_t i = h & (SLOTS - 1);; i = (i + 1) & (SLOTS - 1)) {
    if (!slot[i].k) { slot[i].k = kept(k, n); slot[i].len = n; slot[i].h = h; return i; }
    if (slot[i].h == (uint32_t)h && slot[i].len == n && !memcmp(slot[i].k, k, n)) return i; } }
/* output */
static FILE *out; static char text[1 << 16]; static size_t used;
static void to(const char *name) { out = fopen(name, "w"); if (!out) exit(1); }
static void flush(void) { fwrite(text, 1, used, out); used = 0; }
static void put(long v, char after) {
  char b[24]; int n = 24; do b[--n] = '0' + v % 10; while (v /= 10);
  memcpy(text + used, b + n, 24 - n); used += 24 - n; text[used++] = after; }
static void puts_(const char *k, uint32_t n, char after) { memcpy(text + used, k, n); used += n; text[used++] = after; }
static void line(void) { if (used > sizeof text - 4096) flush(); }
"""
QUERY_LOG = r"""
static Slot origins[SLOTS], targets[SLOTS]; static long counts[2][SLOTS];
static Slot *sorted;
static int before(const void *a, const void *b) {
  const Slot *x = sorted + *(int *)a, *y = sorted + *(int *)b; uint32_t n = x->len < y->len ? x->len : y->len;
  int c = memcmp(x->k, y->k, n); return c ? c : (int)x->len - (int)y->len; }
static void write_(const char *name, const char *head, Slot *slot, long *count) {
  static int order[SLOTS]; int n = 0;
  for (uint32_t i = 0; i < SLOTS; i++) if (slot[i].k) order[n++] = i;
  sorted = slot; qsort(order, n, sizeof *order, before);
  to(name); fputs(head, out);
  for (int i = 0; i < n; i++) { Slot *s = slot + order[i]; puts_(s->k, s->len, ','); put(count[order[i]], '\n'); line(); }
  flush(); fclose(out); }
/* a thread's part of the text; JSON: lines as they are made for the benchmarks */
typedef struct { const char *p, *end; Slot *slot[2]; long *count[2]; } Part;
#ifdef JSON
#define BEFORE(name) p = (const char *)memmem(p, end - p, "\"" name "\"", sizeof name + 1) + sizeof name + 1; \
  p = (const char *)memchr(p, '"', end - p) + 1;
#define AFTER '"'
#define BEHIND '"'
#else
#define BEFORE(name)
#define AFTER ','
#define BEHIND '\n'
#endif
static void *counted(void *v) {
  Part *a = v; const char *p = a->p, *end = a->end, *page = (const char *)((uintptr_t)p & ~4095ul);
  madvise((void *)page, end - page, 22 /* MADV_POPULATE_READ */);
  while (p < end) {
    BEFORE("origin") const char *e = memchr(p, AFTER, end - p); a->count[0][id_of(a->slot[0], p, e - p)]++; p = e + 1;
    BEFORE("target") e = memchr(p, BEHIND, end - p); a->count[1][id_of(a->slot[1], p, e - p)]++;
    p = BEHIND == '\n' ? e + 1 : (const char *)memchr(e, '\n', end - e) + 1; }
  return 0; }
int main(int argc, char **v) {
  double began = now(); map(v[1]);
#ifndef JSON
  header();
#endif
  static Slot others[2][SLOTS]; static long theirs[2][SLOTS];
  Part all = {p, end, {origins, targets}, {counts[0], counts[1]}};
  Part rest = {end, end, {others[0], others[1]}, {theirs[0], theirs[1]}};
  pthread_t thread; int two = argc > 4 && atoi(v[4]) == 2;
  if (two) { all.end = rest.p = (const char *)memchr(p + (end - p) / 2, '\n', end - p) + 1;
    pthread_create(&thread, 0, counted, &rest); }
  counted(&all);
  if (two) { pthread_join(thread, 0);
    for (int t = 0; t < 2; t++) for (uint32_t i = 0; i < SLOTS; i++) if (others[t][i].k)
      all.count[t][id_of(all.slot[t], others[t][i].k, others[t][i].len)] += theirs[t][i]; }
  write_(v[2], "origin,n\n", origins, counts[0]); write_(v[3], "target,n\n", targets, counts[1]);
  printf("%.6f\n", now() - began); }
"""
REQUESTS = r"""
static Slot slot[SLOTS]; static long count[SLOTS], old[SLOTS]; static int touched[SLOTS]; static char mark[SLOTS];
int main(int argc, char **v) {
  double began = now(); long size = map(v[1]); header();
  size_t cap = size / 6, n = 0, head = 0, start = 0, many = 0;
  int32_t *ts = malloc(cap * 4), *id = malloc(cap * 4); long cur = -1;
  to(v[2]); fputs("ts,origin,n\n", out);
#define ROW(i) { put(cur, ','); puts_(slot[i].k, slot[i].len, ','); put(count[i], '\n'); line(); }
#define TOUCH(i) if (CHANGES && !mark[i]) { mark[i] = 1; old[i] = count[i]; touched[many++] = i; }
#define INSTANT() { \
    if (CHANGES) { \
      for (size_t k = 0; k < many; k++) { int i = touched[k]; mark[i] = 0; if (count[i] != old[i] && count[i]) ROW(i) } \
      many = 0; \
    } else for (size_t k = start; k < n; k++) ROW(id[k]) \
    start = n; }
  while (p < end) {
    long t = number(); p = (const char *)memchr(p, ',', end - p) + 1;
    const char *e = memchr(p, '\n', end - p); int i = id_of(slot, p, e - p); p = e + 1; ts[n] = t; id[n] = i;
    while (t != cur) {
      if (cur >= 0) INSTANT();
      cur = cur < 0 || !CHANGES ? t : cur + 1;
      while (head < n && ts[head] < cur - 300) { TOUCH(id[head]); count[id[head++]]--; } }
    TOUCH(i); count[i]++; n++; }
  INSTANT(); flush(); fclose(out);
  printf("%.6f\n", now() - began); }
"""
LINEAR_ROAD = r"""
typedef struct { int32_t ts, vid, xway, dir, seg, place, speed; } Report;
int main(int argc, char **v) {
  double began = now(); long size = map(v[1]); header();
  size_t cap = size / 16, n = 0, five = 0, half = 0, entries = 0; Report *r = malloc(cap * sizeof *r);
  size_t *entered = malloc(cap * sizeof *entered);
  static struct { long speed; int reports, vehicles; } at[1 << 20]; int32_t *last = 0; long vehicles = 0; long cur = -1;
  to(v[2]); fputs("ts,vid,xway,dir,seg,toll\n", out);
#define INSTANT() { for (size_t i = 0; i < entries; i++) { Report *q = r + entered[i]; long m = at[q->place].vehicles - 50; \
    if (m > 0 && at[q->place].speed < 40l * at[q->place].reports) { \
      put(q->ts, ','); put(q->vid, ','); put(q->xway, ','); put(q->dir, ','); put(q->seg, ','); \
      put(2 * m * m, '\n'); line(); } } \
    entries = 0; }
  for (; p < end; n++) {
    Report *q = r + n; q->ts = number(); q->vid = number(); q->speed = number(); q->xway = number(); number();
    q->dir = number(); q->seg = number(); number(); q->place = (q->xway * 2 + q->dir) * 1000 + q->seg;
    if (q->place >= 1 << 20) exit(1);
    if (q->ts != cur) { INSTANT(); cur = q->ts;
      while (five < n && r[five].ts < cur - 300) { at[r[five].place].speed -= r[five].speed; at[r[five++].place].reports--; }
      while (half < n && r[half].ts < cur - 29) at[r[half++].place].vehicles--; }
    at[q->place].speed += q->speed; at[q->place].reports++; at[q->place].vehicles++;
    if (q->vid >= vehicles) { long m = q->vid * 2l + 1024;
      last = realloc(last, m * 4); memset(last + vehicles, 255, (m - vehicles) * 4); vehicles = m; }
    if (last[q->vid] != q->place) { last[q->vid] = q->place; entered[entries++] = n; } }
  INSTANT(); flush(); fclose(out);
  printf("%.6f\n", now() - began); }
"""
# with SHARED the upper end of a band is the lower end of the next: 11 filters of the 20 that the program declares
FM_RADIO = r"""
#define TAPS 64
#define POP 5
#define BLOCK 1024
#define BANDS 10
static float first[TAPS], low[BANDS][TAPS], high[BANDS][TAPS], combined[TAPS], gains[BANDS], gain;
static const float *x; static float *y; static long count, threads;
static double busy(void) {
  struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static void low_pass(double cutoff, float *found) {
  double w = 2 * M_PI * cutoff / 250e6, m = TAPS - 1;
  for (int i = 0; i < TAPS; i++)
    found[i] = sin(w * (i - m / 2)) / M_PI / (i - m / 2) * (0.54 - 0.46 * cos(2 * M_PI * i / m)); }
static inline void filter(const float *restrict d, const float *restrict c, float *restrict u, int m) {
  for (int j = 0; j < m; j += 64) {
    float a[64] = {0};
    for (int i = 0; i < TAPS; i++) { float k = c[i]; for (int q = 0; q < 64; q++) a[q] += d[j + i + q] * k; }
    memcpy(u + j, a, sizeof a); } }
static void *work(void *number) {
  static __thread float d[BLOCK + 256], h[BLOCK + 64], l[BLOCK + 64];
  for (long o = (long)number * BLOCK; o < count; o += threads * BLOCK) {
    int m = count - o < BLOCK ? count - o : BLOCK, k = m + TAPS; float *to = y + o;
    for (int j = 0; j < k; j++) {
      const float *from = x + (o + j) * POP; float s = 0;
      for (int i = 0; i < TAPS; i++) s += from[i] * first[i];
      d[j] = s; }
    for (int j = 0; j < k - 1; j++) d[j] = gain * atanf(d[j] * d[j + 1]);
    memset(to, 0, m * 4);
#ifdef COMBINED
    filter(d, combined, h, m); memcpy(to, h, m * 4); }
#elif defined SHARED
    filter(d, low[0], l, m);
    for (int b = 0; b < BANDS; b++) {
      filter(d, high[b], h, m);
      for (int j = 0; j < m; j++) { to[j] += (h[j] - l[j]) * gains[b]; l[j] = h[j]; } } }
#else
    for (int b = 0; b < BANDS; b++) {
      filter(d, high[b], h, m); filter(d, low[b], l, m);
      for (int j = 0; j < m; j++) to[j] += (h[j] - l[j]) * gains[b]; } }
#endif
  return 0; }
int main(int argc, char **v) {
  double began = now(); long n = map(v[1]) / 4; threads = atol(v[3]);
  double lo = log(55), hi = log(97760000); low_pass(108e6, first); gain = 27000 * 250e6 / (10000 * M_PI);
  for (int b = 1; b <= BANDS; b++) {
    double q = (b - BANDS / 2.0) / 5; gains[b - 1] = q > 0 ? 2 - q : 2 + q;
    low_pass(exp((b - 1) * (hi - lo) / BANDS + lo), low[b - 1]); low_pass(exp(b * (hi - lo) / BANDS + lo), high[b - 1]);
    for (int i = 0; i < TAPS; i++) combined[i] += (high[b - 1][i] - low[b - 1][i]) * gains[b - 1]; }
  x = (const float *)p; count = (n - TAPS) / POP + 1 - 1 - (TAPS - 1); y = aligned_alloc(64, (count * 4 + 4095) / 64 * 64);
  int memory = argc > 4; /* where samples and answers lie in memory, only the work is timed */
  if (memory) { memset(y, 0, count * 4); began = now(); }
  double idle = memory ? busy() : 0;
  pthread_t id[64];
  for (long i = 1; i < threads; i++) pthread_create(&id[i], 0, work, (void *)i);
  work(0);
  for (int i = 1; i < threads; i++) pthread_join(id[i], 0);
  double worked = now() - began, took = busy() - idle;
  to(v[2]); fwrite(y, 4, count, out); fclose(out);
  printf("%.6f %.6f\n", memory ? worked : now() - began, memory ? took : busy()); }
"""

DUCK_WINDOW = "over (partition by {} order by ts range between {} preceding and current row)"
QUERIES = {
    "": """create temp table counted as select origin, target, grouping(origin) side, count(*) n
      from {source} group by grouping sets ((origin), (target))""",
    "origins": "select origin, n from counted where side = 0 order by 1",
    "targets": "select target, n from counted where side = 1 order by 1",
}
DUCK = {
    "query_log": QUERIES,
    "query_log_5k": QUERIES,
    "query_log_1m": QUERIES,
    "request_counts": {
        "answers": f"select ts, origin, count(*) {DUCK_WINDOW.format('origin', 300)} n from {{source}}",
    },
    "linear_road": {
        "tolls": f"""
          select ts, vid, xway, dir, seg, 2 * (vehicles - 50) * (vehicles - 50) toll from (
            select *, avg(speed) {DUCK_WINDOW.format("xway, dir, seg", 300)} mean,
              count(*) {DUCK_WINDOW.format("xway, dir, seg", 29)} vehicles,
              lag((xway, dir, seg)) over (partition by vid order by ts) before
            from {{source}})
          where before is distinct from (xway, dir, seg) and mean < 40 and vehicles > 50"""
    },
}
"""For each output of a program what asks DuckDB for it; "" stands for what is computed before."""


def bargains(rows: Iterable[data.Row]) -> Iterator[data.Row]:
    """What `oracle.vwap` gives, in one pass: the rows of an instant are answered when all have been seen."""
    done: dict[str, list[tuple[int, int]]] = {}
    asked: list[data.Row] = []
    now = None

    def answers() -> Iterator[data.Row]:
        for ts, sym, price, size in asked:
            last = done.get(sym, ())
            gain = sum(p * z for p, z in last) - price * sum(z for _, z in last)
            if gain > 0:
                yield ts, sym, price, size, gain

    for ts, kind, sym, price, size in rows:
        if ts != now:
            yield from answers()
            asked, now = [], ts
        if kind == "q":
            asked.append((ts, sym, price, size))
        else:
            done[sym] = [*done.get(sym, ())[-3:], (price, size)]
    yield from answers()


@frozen
class App:
    """A program, its input, its outputs with their columns, and what else computes them."""

    file: str
    kind: str
    input: str
    outputs: dict[str, tuple[str, ...]]
    loop: Callable[[Any], Any]
    c: str | None = None
    many: int = 1
    """Records for one that the caller asks for."""

    keys: int | None = None
    """How many equally likely origins there are; None: they follow Zipf's law."""

    @property
    def flags(self) -> tuple[str, ...]:
        """How the C program is compiled: its tables have room for the keys."""
        fast = ("-ffast-math",) if self.kind == "samples" else ()
        return (*fast, f"-DBITS={max(18, 2 + (self.keys or 0).bit_length())}")


QUERY_LOG_APP = App(
    "query_log.szl",
    "queries",
    "query",
    {"origins": ("origin", "n"), "targets": ("target", "n")},
    oracle.query_log,
    QUERY_LOG,
)
APPS = {
    "query_log": QUERY_LOG_APP,
    "query_log_5k": evolve(QUERY_LOG_APP, keys=5_000),
    "query_log_1m": evolve(QUERY_LOG_APP, keys=1_000_000, many=10),
    "request_counts": App(
        "request_counts.cql", "requests", "requests", {"answers": ("ts", "origin", "n")}, oracle.request_counts,
        "#define CHANGES 0\n" + REQUESTS,
    ),
    "count_changes": App(
        "count_changes.cql", "requests", "requests", {"changes": ("ts", "origin", "n")}, oracle.count_changes,
        "#define CHANGES 1\n" + REQUESTS,
    ),
    "linear_road": App(
        "linear_road.cql", "reports", "reports", {"tolls": ("ts", "vid", "xway", "dir", "seg", "toll")}, oracle.linear_road,
        LINEAR_ROAD,
    ),
    "vwap": App(
        "vwap.cql", "ticks", "ticks", {"bargains": ("ts", "sym", "price", "size", "gain")}, bargains
    ),
    "fm_radio": App("fm_radio.str", "samples", "input", {"output": ("value",)}, oracle.fm_radio, FM_RADIO, many=4),
}  # fmt: skip

FEW = ("query_log", "query_log_5k", "query_log_1m", "request_counts", "linear_road", "fm_radio")
"""The programs that are measured unless others are asked for."""

# ---------------------------------------------------------------------------------------------------- data


def rows_of(app: App, file: Path, most: int | None = None) -> Iterator[Any]:
    """The rows of a file, as the loops want them."""
    if app.kind == "samples":
        signal = array("f", file.with_suffix(".f32").read_bytes())
        yield from signal if most is None else signal[:most]
        return
    texts = {"origin", "target", "kind", "sym"}
    columns = data.KINDS[app.kind][1]
    plain = [name in texts for name in columns]
    with file.open(newline="") as lines:
        if file.suffix == ".jsonl":
            read: Iterator[Any] = ([row[name] for name in columns] for row in map(json.loads, lines))
        else:
            read = csv.reader(lines)
            next(read)
        for row in islice(read, most):
            yield tuple([cell if text else int(cell) for cell, text in zip(row, plain, strict=True)])


def written(app: App, folder: Path, rows: int, form: str) -> Path:
    """The file of generated input; samples are Arrow data for River, and raw for the others."""
    make, columns = data.KINDS[app.kind]
    if app.kind == "samples":
        return packed(array("f", (value for (value,) in make(rows * app.many))), folder / "samples.arrow")
    file = folder / f"{app.kind}.{form}"
    if not file.exists():
        with file.open("w") as out:
            more: Any = {} if app.keys is None else {"origins": app.keys, "alike": True}
            data.write(make(rows * app.many, **more), columns, form, out)
    return file


def packed(signal: array[float], file: Path) -> Path:
    """Samples as a file of Arrow data, with the raw ones beside it."""
    from pyarrow import RecordBatch, float32, ipc
    from pyarrow import array as arrow_array

    if not file.exists():
        batch = RecordBatch.from_arrays([arrow_array(signal, float32())], names=["value"])
        with ipc.new_file(str(file), batch.schema) as out:
            out.write_batch(batch)
        file.with_suffix(".f32").write_bytes(signal.tobytes())
    return file


def beginning(app: App, file: Path, folder: Path) -> Path:
    """A file of the first rows."""
    if app.kind == "samples":
        return packed(array("f", rows_of(app, file, PREFIX)), folder / "beginning.arrow")
    found = folder / f"beginning-{app.kind}{file.suffix}"
    with file.open() as lines:
        found.write_text("".join(islice(lines, PREFIX + 1)))
    return found


def answers(app: App, way: str, folder: Path) -> dict[str, Path]:
    """Where the outputs go."""
    suffix = "arrow" if app.kind == "samples" and way.startswith("river") else "csv"
    return {output: folder / f"{way.replace(', ', '-')}-{output}.{suffix}" for output in app.outputs}


# ------------------------------------------------------------------------------------------ in a process


WARM = 2
"""How often a process runs the program again after the first time."""


def told(run: Callable[[], object]) -> None:
    """Runs some times, and prints the seconds of each."""
    print(*(measure.timed(run).wall for _ in range(1 + WARM)))


def in_river(app: App, file: Path, folder: Path, workers: int) -> None:
    import river

    program = river.load(str(PROGRAMS / app.file))
    outputs = {name: str(path) for name, path in answers(app, f"river, {workers}", folder).items()}
    told(lambda: program.run({app.input: str(file)}, outputs, workers=workers))


def in_duckdb(name: str, file: Path, folder: Path, workers: int) -> None:
    import duckdb

    source = f"read_{'csv' if file.suffix == '.csv' else 'json'}('{file}')"

    def run() -> None:
        with duckdb.connect(config={"threads": workers}) as connection:
            if first := DUCK[name].get(""):
                connection.execute(first.format(source=source))
            for output, path in answers(APPS[name], f"duckdb, {workers}", folder).items():
                connection.execute(f"copy ({DUCK[name][output].format(source=source)}) to '{path}' (header)")

    told(run)


def in_python(app: App, file: Path, folder: Path) -> None:
    began = time.perf_counter()
    found = app.loop(rows_of(app, file))
    outputs = [sorted(c.items()) for c in found] if isinstance(found, tuple) else [found]
    for (output, path), rows in zip(answers(app, "python", folder).items(), outputs, strict=True):
        with path.open("w", newline="") as out:
            table = csv.writer(out, lineterminator="\n")
            table.writerow(app.outputs[output])
            table.writerows(rows)
    print(time.perf_counter() - began)


# --------------------------------------------------------------------------------------------------- checks


def lines_of(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines())


def floats_of(path: Path) -> list[float]:
    from pyarrow import ipc

    if path.suffix != ".arrow":
        return array("f", path.read_bytes()).tolist()
    with ipc.open_file(str(path)) as found:
        return found.read_all().column(0).to_pylist()


def same(ours: Iterable[float], theirs: Iterable[float]) -> bool:
    """Whether two signals differ by rounding only."""
    pairs = list(zip(ours, theirs, strict=True))
    rms = math.sqrt(sum(b * b for _, b in pairs) / len(pairs))
    return max(abs(a - b) for a, b in pairs) < 2e-3 * rms


def check_beginning(name: str, app: App, small: Path, folder: Path) -> None:
    """Compares River's answers to the first rows with the oracle's."""
    found = answers(app, "river, 2", folder)
    rows = list(rows_of(app, small))
    if app.kind == "samples":
        if not same(floats_of(found["output"]), oracle.fm_radio(rows)):
            sys.exit(f"{name}: River and the oracle differ")
        return
    meant = getattr(oracle, Path(app.file).stem)(rows)
    outputs = [sorted(c.items()) for c in meant] if isinstance(meant, tuple) else [meant]
    for output, wanted in zip(app.outputs, outputs, strict=True):
        lines = [",".join(map(str, row)) for row in (app.outputs[output], *wanted)]
        if lines_of(found[output]) != Counter(lines):
            sys.exit(f"{name}: River and the oracle differ in `{output}`")


def check_all(name: str, app: App, folder: Path, ways: Iterable[str]) -> None:
    """Compares all answers of all ways: as bags, since the order within an instant is free."""
    first = answers(app, "river, 1", folder)
    for way in ways:
        for output, path in answers(app, way, folder).items():
            if app.kind == "samples":
                equal = same(floats_of(first[output]), floats_of(path))
            else:
                equal = lines_of(first[output]) == lines_of(path)
            if not equal:
                sys.exit(f"{name}: River and {way} differ in `{output}`")


# ----------------------------------------------------------------------------------------------------- run


def compare(name: str, app: App, file: Path, folder: Path, runs: int, without: Collection[str]) -> None:
    """Prints what each way of computing the program's answers takes."""
    cache = {"RIVER_CACHE": str(folder / "cache")}

    def itself(way: str, workers: int, source: Path) -> measure.Took:
        command = [
            sys.executable,
            __file__,
            "--child",
            f"{way}:{name}:{workers}",
            "--file",
            source,
            "--folder",
            folder,
        ]
        return measure.process(command, env=cache, watched=True)

    small = beginning(app, file, folder)
    itself("river", 2, small)
    check_beginning(name, app, small, folder)

    ways: dict[str, Callable[[], measure.Took]] = {
        f"river, {workers}": partial(itself, "river", workers, file) for workers in (1, 2)
    }
    if app.c is not None and file.suffix != ".jsonl":
        source = file.with_suffix(".f32") if app.kind == "samples" else file
        for way, more, threads in C_WAYS[app.kind == "samples"]:
            program = measure.built(folder, f"{name}-{way}", HEAD + app.c, *app.flags, *more)
            outs = list(answers(app, way, folder).values())
            ways[way] = partial(measure.process, [program, source, *outs, threads], watched=True)
    if name in DUCK and "duckdb" not in without and find_spec("duckdb") is not None:
        ways |= {f"duckdb, {threads}": partial(itself, "duckdb", threads, file) for threads in (1, 2)}
    rounds = measure.rounds(ways, runs)
    if app.kind != "samples" and "python" not in without and not measure.ALONE:
        rounds["python"] = [itself("python", 1, file)]
    rounds = {way: took for way, took in rounds.items() if not math.isnan(took[0].wall)}
    check_all(name, app, folder, rounds)
    show(name, file, sum(1 for _ in rows_of(app, file)), rounds)


C_WAYS: dict[bool, list[tuple[str, tuple[str, ...], int]]] = {
    False: [("c, 1", (), 1), ("c, own keys, 1", ("-DOWN",), 1)],
    True: [("c, 1", (), 1), ("c, 2", (), 2)],
}
"""Of texts and of samples: the ways in C, how they are compiled, and their threads."""


def show(name: str, file: Path, rows: int, rounds: Mapping[str, Sequence[measure.Took]]) -> None:
    """Prints what each way took, fresh and warm, and keeps both as contests."""
    times = {way: [list(map(float, each.told.split())) for each in took] for way, took in rounds.items()}
    fresh = {
        way: [
            each.wall - sum(said[1:] if way.startswith(REPEATING) else ())
            for each, said in zip(took, times[way], strict=True)
        ]
        for way, took in rounds.items()
    }
    warm = {
        way: [min(said[1:] if way.startswith(REPEATING) else said[:1]) for said in each]
        for way, each in times.items()
    }
    print(f"{name}: {rows} records, {file.stat().st_size >> 20} MB of {file.suffix[1:]}")
    print(
        f"  {'':15} {'fresh: k/s':>11} {'s':>8} {'over':>6}   {'warm: k/s':>11} {'s':>8} {'over':>6}   MB private"
    )
    reference = "c, 1" if "c, 1" in rounds else "river, 1"
    for way, took in rounds.items():
        shown = [
            f"{rows / min(found[way]) / 1000:11.0f} {min(found[way]):8.3f} {min(found[way]) / min(found[reference]):6.2f}"
            for found in (fresh, warm)
        ]
        print(f"  {way:15} {'   '.join(shown)}   {max(each.peak for each in took) >> 20:10}", flush=True)
    print(f"  over: the time of `{reference}`; the least of {max(map(len, rounds.values()))} runs")
    for kind, found in (("fresh", fresh), ("warm", warm)):
        measure.record(f"{name} {file.suffix[1:]}, {kind}", found)


REPEATING = ("river", "duckdb")
"""What runs more than once in a process; C prints what its work and the processors took."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", default=",".join(FEW), help="`all`, or names with commas between")
    parser.add_argument(
        "--rows", type=int, default=200_000, help="records; the radio gets four times as many"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--format", choices=("csv", "jsonl"), default="csv")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE", help="a file instead of generated data"
    )
    parser.add_argument("--without", default="", help="duckdb, python: what is not to be compared with")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        way, name, workers = given.child.split(":")
        match way:
            case "river":
                in_river(APPS[name], given.file, given.folder, int(workers))
            case "duckdb":
                in_duckdb(name, given.file, given.folder, int(workers))
            case _:
                in_python(APPS[name], given.file, given.folder)
        sys.stdout.flush()
        return
    measure.begin("Programs from file to file")
    files = dict(each.split("=", 1) for each in given.input)
    for name in APPS if given.programs == "all" else given.programs.split(","):
        with TemporaryDirectory(
            ignore_cleanup_errors=True
        ) as folder:  # code may still be made for the next run
            app = APPS[name]
            file = (
                Path(files[name]) if name in files else written(app, Path(folder), given.rows, given.format)
            )
            compare(name, app, file, Path(folder), given.runs, given.without.split(","))


if __name__ == "__main__":
    main()
