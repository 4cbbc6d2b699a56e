"""Seven programs of StreamIt's kind against C programs of the same algorithms, in memory.

The C loops do for a frame after the other what the filters declare, on arrays that stay in the first-level cache. They are built
by gcc -O3 -march=native, and once more with -ffast-math, where they may add up in any order; River keeps the order of every sum.
Items lie in memory as columns, and the same ones come again and again, so often that a run takes about a second. C's answers to
each time go to the memory that those to the time before lay in; River's sink keeps as many of the last batches as hold so many
answers, and then lets them go. Its code is optimised before it runs, as for a file of that size: of a batch nobody knows how many
more will come. All ways of a program take turns in one process, and each figure is the least of a few: by the clock, and of the
processors. The answers to the items that come once are compared, to five digits where they are floats, because gcc contracts a
product and a sum; those of River's to a short input with the evaluator's, too, to the bit.

With `--cores` there is no C: printed is what a second core gives by the clock, with the ceiling, which is what the machine gives
two runs of one worker side by side, as `bench_cores` has it for programs from file to file; items come so often that with two
workers a run takes about a second, too.

Run: python tests/bench/bench_streamit.py [--programs all|NAME,...] [--items N] [--times N] [--workers N] [--runs N] [--cores]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
from array import array
from collections import deque
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import bench_cores
import measure
from attrs import frozen

import river
from backends.multicore import BACKEND
from backends.native.batch import Batch, address_of
from backends.native.jit import OPTIMISATION, optimised
from river.backend import Options
from river.platform import here

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

    from river.driver import Compiled

PROGRAMS = Path(__file__).parent / "programs"

C: Final = r"""
#include <math.h>
#include <string.h>
typedef float f;
#define EACH(i, n) for (int i = 0; i < (n); i++)

/* a filter of 64 taps */
static f taps[64];
void fir_begin(void) { EACH(i, 64) taps[i] = 0.5 - 0.5 * cos(2 * M_PI * i / 63); }
void fir(long n, const f *restrict x, f *restrict y) {
  for (long j = 0; j < n; j++) { f s = 0; EACH(i, 64) s += x[j + i] * taps[i]; y[j] = s; } }

/* Fourier transforms of 64 complex numbers */
static int turned[64]; static f wr[7][32], wi[7][32];
void fft_begin(void) {
  EACH(i, 64) { turned[i] = 0; EACH(b, 6) turned[i] |= (i >> b & 1) << (5 - b); }
  EACH(s, 7) EACH(k, 32) { wr[s][k] = cos(-2 * M_PI * k / (1 << s)); wi[s][k] = sin(-2 * M_PI * k / (1 << s)); } }
void fft(long n, const f *restrict x, f *restrict y) {
  for (; n; n--, x += 128, y += 128) {
    EACH(i, 64) { y[2 * i] = x[2 * turned[i]]; y[2 * i + 1] = x[2 * turned[i] + 1]; }
    for (int s = 1, m = 1; s < 7; s++, m *= 2)
      for (f *a = y; a < y + 128; a += 4 * m)
        EACH(k, m) {
          f *b = a + 2 * m, u = wr[s][k], v = wi[s][k];
          f re = b[2 * k] * u - b[2 * k + 1] * v, im = b[2 * k] * v + b[2 * k + 1] * u;
          b[2 * k] = a[2 * k] - re; b[2 * k + 1] = a[2 * k + 1] - im; a[2 * k] += re; a[2 * k + 1] += im; } } }

/* cosine transforms of 8 by 8 numbers */
static f cosine[8][8];
void dct_begin(void) { EACH(u, 8) EACH(i, 8) cosine[u][i] = cos((2 * i + 1) * u * M_PI / 16) / 2 * (u ? 1 : sqrt(0.5)); }
void dct(long n, const f *restrict x, f *restrict y) {
  f rows[64];
  for (; n; n--, x += 64, y += 64) {
    EACH(r, 8) EACH(u, 8) { f s = 0; EACH(i, 8) s += x[8 * r + i] * cosine[u][i]; rows[8 * r + u] = s; }
    EACH(c, 8) EACH(u, 8) { f s = 0; EACH(i, 8) s += rows[8 * i + c] * cosine[u][i]; y[8 * u + c] = s; } } }

/* products of matrices of 10 by 10 numbers */
void matrix_multiply(long n, const f *restrict x, f *restrict y) {
  for (; n; n--, x += 200, y += 100)
    EACH(i, 10) EACH(j, 10) { f s = 0; EACH(k, 10) s += x[10 * i + k] * x[100 + 10 * k + j]; y[10 * i + j] = s; } }

/* 32 keys sorted by a bitonic network */
void bitonic_sort(long n, const int *restrict x, int *restrict y) {
  for (; n; n--, x += 32, y += 32) {
    memcpy(y, x, 128);
    for (int k = 2; k <= 32; k *= 2)
      for (int j = k / 2; j; j /= 2)
        EACH(i, 32) if (!(i & j)) {
          int a = y[i], b = y[i + j], low = a <= b ? a : b, high = a <= b ? b : a, up = !(i & k);
          y[i] = up ? low : high; y[i + j] = up ? high : low; } } }

/* eight bands of a signal, in blocks of 1024 answers */
static f bh[8][32], bf[8][32];
void filter_bank_begin(void) {
  EACH(b, 8) EACH(k, 32) { bh[b][k] = cos(0.1f * k * (b + 1)) / 32; bf[b][k] = sin(0.1f * k * (b + 1)) / 32; } }
void filter_bank(long n, const f *restrict x, f *restrict y) {
  for (; n > 0; n -= 1024, x += 1024, y += 1024) {
    int m = n < 1024 ? n : 1024; f u[1024 + 31];
    memset(y, 0, m * sizeof *y);
    EACH(b, 8) {
      EACH(j, m + 31) { f s = 0; EACH(i, 32) s += x[j + i] * bh[b][i]; u[j] = s; }
      EACH(j, m + 31) if (j % 8) u[j] = 0;
      EACH(j, m) { f s = 0; EACH(i, 32) s += u[j + i] * bf[b][i]; y[j] += s; } } } }

/* a beam former of 12 channels and 4 beams */
typedef struct { f re[64], im[64]; int at; } Ring;
static f re64[64], im64[64], bre[4][12], bim[4][12]; static Ring channel[12], beam[4];
void beam_former_begin(void) {
  EACH(i, 64) { re64[i] = sin(i + 1) / (i + 1); im64[i] = cos(i + 1) / (i + 1); }
  EACH(b, 4) EACH(i, 12) { bre[b][i] = sin(i + 1) / (b + i + 1); bim[b][i] = cos(i + 1) / (b + i + 1); } }
static inline void complex_fir(Ring *r, f x, f y, f *u, f *v) {
  f re = 0, im = 0; int from = r->at; r->re[from] = x; r->im[from] = y;
  EACH(i, 64) {
    re += r->re[from] * re64[i] - r->im[from] * im64[i]; im += r->im[from] * re64[i] + r->re[from] * im64[i];
    from = (from + 63) % 64; }
  r->at = (r->at + 1) % 64; *u = re; *v = im; }
void beam_former(long n, const f *restrict x, f *restrict y) {
  memset(channel, 0, sizeof channel); memset(beam, 0, sizeof beam);
  for (; n; n--, x += 48, y += 4) {
    f re[12], im[12];
    EACH(c, 12) complex_fir(channel + c, x[2 * c], x[2 * c + 1], re + c, im + c);
    EACH(b, 4) {
      f u = 0, v = 0;
      EACH(c, 12) { u += bre[b][c] * re[c] - bim[b][c] * im[c]; v += bre[b][c] * im[c] + bim[b][c] * re[c]; }
      complex_fir(beam + b, u, v, &u, &v); y[b] = sqrtf(u * u + v * v); } } }
"""


@frozen
class Work:
    """What is measured: how many items a turn of the C loop takes and sends, after it has looked at some `ahead`.

    `times`: how often eight million items come, so that C takes about a second; so many times `longer` where River runs alone
    and takes much less than that.
    """

    takes: int
    gives: int
    times: int
    ahead: int = 0
    code: str = "f"
    begins: bool = True
    longer: int = 1

    def turns(self, items: int) -> int:
        """How many turns an input of so many items makes."""
        return max(0, items - self.ahead) // self.takes


class Bank(Work):
    """The bank thins out by eight what its first filters look ahead for, and spreads it again for the second ones."""

    def turns(self, items: int) -> int:
        return max(0, (items - self.ahead) // 8 * 8 - self.ahead)


WORKS: Final = {
    "fir": Work(1, 1, 32, ahead=63),
    "fft": Work(128, 128, 70),
    "dct": Work(64, 64, 130),
    "matrix_multiply": Work(200, 100, 190, begins=False),
    "bitonic_sort": Work(32, 32, 9, code="i", begins=False, longer=9),
    "filter_bank": Bank(1, 1, 5, ahead=31),
    "beam_former": Work(48, 4, 8),
}
MOST: Final = 1.0
"""Of the time of C."""

GAIN: Final = 1.8
"""Of a second core, by the clock."""

EIGHT_MILLION: Final = 8_000_000

COMPARED: Final = 1_000_000
"""Items whose answers are compared with those of C."""

SHORT: Final = (0, 63, 64, 1_141)
"""Items whose answers are compared with the evaluator's."""


class Told(argparse.Namespace):
    """The options."""

    programs: str
    items: int
    times: int | None
    workers: int
    runs: int
    cores: bool


class Ends:
    """A sink that keeps columns with so many answers, the last ones."""

    def __init__(self, code: str, most: int) -> None:
        self.code = code
        self.batches = deque[Batch]()
        self.count = 0
        self._most = most
        self._kept = 0

    def __call__(self, items: list[Any]) -> None:
        if items:
            raise AssertionError("answers come in columns")

    def columns(self, batch: Batch) -> None:
        """Takes answers."""
        self.batches.append(batch)
        self.count += len(batch)
        self._kept += len(batch)
        while self._kept - len(self.batches[0]) >= self._most:
            self._kept -= len(self.batches.popleft())

    def begin(self) -> None:
        """Lets all answers go."""
        self.batches.clear()
        self.count = self._kept = 0

    def found(self) -> array[Any]:
        """All answers that it keeps."""
        parts = (ctypes.string_at(each.addresses[0], 4 * len(each)) for each in self.batches if len(each))
        return array(self.code, b"".join(parts))


def given(work: Work, items: int) -> array[Any]:
    """Items, the same each time."""
    rng = random.Random(13)
    drawn = (rng.randrange(-(10**6), 10**6) for _ in range(items))
    return array(work.code, drawn if work.code == "i" else (each / 10**6 for each in drawn))


def ours(
    program: Compiled, items: array[Any], ends: Ends, workers: int, times: int
) -> Callable[[], measure.Took]:
    """Runs of River over items in memory that come so many times."""
    tuned = program.tuned(Options().through(BACKEND), here(workers))
    ((source, type_),) = tuned.inputs.items()
    (sink,) = tuned.outputs
    whole = Batch(type_, len(items), (address_of(items),), items)

    def run() -> measure.Took:
        plan = BACKEND.plan(tuned.graph, here(), Options(workers=workers))
        ends.begin()
        sources: Any = {source: repeat(whole, times)}
        return measure.timed(lambda: BACKEND.run(plan, sources, {sink: ends}))

    return run


def theirs(
    library: Any, name: str, turns: int, items: array[Any], ends: array[Any], times: int
) -> Callable[[], measure.Took]:
    """So many calls of C."""
    if WORKS[name].begins:
        getattr(library, f"{name}_begin")()
    call = getattr(library, name)
    given_ = ctypes.c_long(turns), ctypes.c_void_p(address_of(items)), ctypes.c_void_p(address_of(ends))

    def calls() -> None:
        for _ in range(times):
            call(*given_)

    return lambda: measure.timed(calls)


def check(name: str, program: Compiled, items: array[Any]) -> None:
    """Compares machine code with the evaluator."""
    (source,), (sink,) = program.inputs, program.outputs
    for many in SHORT:
        found, wanted = (
            array(
                items.typecode,
                program.run({source: items[:many].tolist()}, native=native)[sink]["value"].to_pylist(),
            )
            for native in ("on", "off")
        )
        if found.tobytes() != wanted.tobytes():
            sys.exit(f"{name}: machine code and the evaluator differ on {many} items")


def alike(found: array[Any], wanted: array[Any]) -> bool:
    """Whether answers are the same, to five digits of the largest where they are floats."""
    if len(found) != len(wanted) or found.typecode == "i":
        return found == wanted
    error = 1e-5 * max(map(abs, wanted), default=0)
    return all(abs(a - b) <= error for a, b in zip(found, wanted, strict=True))


def same(name: str, program: Compiled, items: array[Any], libraries: dict[str, Any], workers: int) -> None:
    """Compares River's answers with those of C, and sees that all come that should, however often the items do."""
    work = WORKS[name]
    for times in (1, 2):
        turns = work.turns(times * len(items))
        ends = Ends(work.code, turns * work.gives)
        ours(program, items, ends, workers, times)()
        if ends.count != turns * work.gives:
            sys.exit(f"{name}: River sends {ends.count} answers and not {turns * work.gives}")
        for way, library in libraries.items() if times == 1 else ():
            wanted = array(work.code, bytes(4 * turns * work.gives))
            theirs(library, name, turns, items, wanted, 1)()
            if not alike(ends.found(), wanted):
                sys.exit(f"{name}: River and {way} differ")


def contest(name: str, libraries: dict[str, Any], told: Told) -> None:
    """Prints what River and C take for one program."""
    work, workers = WORKS[name], told.workers
    times = times_of(name, told)
    program, signal = river.load(str(PROGRAMS / f"{name}.str")), given(work, told.items)
    check(name, program, signal)
    if not measure.ALONE:
        same(name, program, signal[:COMPARED], libraries, workers)
    turns = work.turns(told.items)
    ends, answers = Ends(work.code, turns * work.gives), array(work.code, bytes(4 * turns * work.gives))
    ways = {"river": ours(program, signal, ends, workers, times)}
    ways |= {way: theirs(each, name, turns, signal, answers, times) for way, each in libraries.items()}
    took = measure.race(ways, told.runs, f"{name}, {workers} workers", clock="cpu")
    all_ = told.items * times
    rates = ", ".join(f"{way} {all_ / each.cpu / 1e6:.1f}" for way, each in took.items())
    ratios = ", ".join(f"{took['river'].cpu / took[way].cpu:.2f} of {way}" for way in libraries)
    met = measure.target(took["river"].cpu / took["C"].cpu, MOST)
    print(f"{name:16} M items/s of a processor: {rates}; River takes {ratios} {met}", flush=True)


def times_of(name: str, told: Told) -> int:
    """How often the items come."""
    return told.times or max(1, WORKS[name].times * EIGHT_MILLION // told.items)


def cores(name: str, told: Told, folder: Path) -> None:
    """Prints what a second core gives one program."""
    file, times = folder / f"{name}.items", told.times or 2 * times_of(name, told) * WORKS[name].longer
    file.write_bytes(given(WORKS[name], told.items).tobytes())

    def process(_: str, cpus: Sequence[int], workers: int) -> subprocess.Popen[str]:
        said = [name, str(file), ",".join(map(str, cpus)), str(workers), str(times)]
        return bench_cores.waiting([sys.executable, __file__, "--child", *said], folder / "cache")

    title = f"{name}: {told.items * times} items"
    measure.record(f"{name}, two cores", bench_cores.tell(title, process, told.runs, GAIN, {}))


def child(name: str, file: str, cpus: str, workers: str, times: str) -> None:
    """Runs a program on the items of a file for each line of the standard input; answers with seconds of its processors."""
    os.sched_setaffinity(0, set(map(int, cpus.split(","))))
    work, signal = WORKS[name], array(WORKS[name].code, Path(file).read_bytes())
    ends = Ends(work.code, work.turns(len(signal)) * work.gives)
    with optimised(OPTIMISATION):
        run = ours(river.load(str(PROGRAMS / f"{name}.str")), signal, ends, int(workers), int(times))
        for _ in sys.stdin:
            print(run().cpu, flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", default="all")
    parser.add_argument("--items", type=int, default=EIGHT_MILLION)
    parser.add_argument(
        "--times", type=int, help="how often they come; else so often that a run takes about a second"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cores", action="store_true", help="what a second core gives")
    told = parser.parse_args(namespace=Told())
    names: Sequence[str] = list(WORKS) if told.programs == "all" else told.programs.split(",")
    measure.begin("Programs of StreamIt's kind")
    with TemporaryDirectory() as folder:
        if told.cores:
            for name in names:
                cores(name, told, Path(folder))
            return
        libraries: dict[str, Any] = {}
        for way, *flags in (("C",), ("C, fast-math", "-ffast-math")):
            made = measure.built(Path(folder), f"c{len(libraries)}.so", C, "-shared", "-fPIC", *flags)
            libraries[way] = ctypes.CDLL(str(made))
        with optimised(OPTIMISATION):
            for name in names:
                contest(name, libraries, told)


if __name__ == "__main__":
    main()
