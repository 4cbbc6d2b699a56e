"""Transcendental functions in lanes, one by one, and as a C loop over the C library (gcc -O3 -march=native).

Times are the best of a few runs that take turns, in nanoseconds for a value; items lie in the second-level cache. An
operator that only copies is the floor.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import sys
import time
from array import array
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import measure

from backends.native import NativeOperator, compile_native
from backends.native.batch import address_of
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.operations.functions import NAMES, OPERANDS
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = 40_000
RUNS = 40
TYPES = {"f32": ("float", "f"), "f64": ("double", "d")}
HEAD = "river 1; input x: {t}; output y: {t}; "
LANES = "operator f(x: {t}) -> (y[push 1]: {t}) {{ on x[peek 2, pop 1](w) {{ emit y {e}; }} }} (y) <- f(x);"
SINGLE = """var $n: {t} = 0.0;
operator f(x: {t}; $n: {t}) -> (y[push 1]: {t}) {{ on x[peek 2, pop 1](w) {{ $n = w[0]; emit y {e}; }} }}
(y, $n) <- f(x, $n);"""
"""A variable that is written keeps it out of lanes."""


def compiled(type_: str, value: str, *, lanes: bool) -> tuple[NativeOperator, float]:
    """An operator, and how long it took."""
    text = (HEAD + (LANES if lanes else SINGLE)).format(t=type_, e=value)
    start = time.perf_counter()
    (instance,) = verify(parse(Source("bench.river", text)), Library.of({})).instances
    found = compile_native(instance.operator)  # pyright: ignore[reportArgumentType]
    assert isinstance(found, NativeOperator), found
    return found, time.perf_counter() - start


def best(ways: dict[str, Callable[[], object]], contest: str = "") -> list[float]:
    """The best time of each way, in nanoseconds for an item; kept as a contest if that has a name."""
    took = measure.times(ways, RUNS)
    if contest:
        measure.record(contest, took)
    return [min(each) / ITEMS * 1e9 for each in took.values()]


def fired(native: NativeOperator, items: array[float]) -> Callable[[], None]:
    """A run of all items."""
    columns = [address_of(items)]

    def run() -> None:
        native.clear()
        assert native.fire("rated", columns, 0, ITEMS).row == ITEMS

    return run


def main(gcc: str, names: list[str]) -> None:
    """Prints a line for each function and type."""
    loops = "".join(
        f"void {name}_{type_}(long n, const {c} *restrict x, {c} *restrict y)"
        f" {{ for (long i = 0; i < n; i++) y[i] = {name}({'x[i], x[i + 1]' if OPERANDS[name] == 2 else 'x[i]'}); }}\n"
        for type_, (c, _) in TYPES.items() for name in NAMES
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        source, library = Path(folder) / "loops.c", Path(folder) / "loops.so"
        source.write_text("#include <math.h>\n" + loops)
        command = [gcc, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"]
        subprocess.run(command, check=True)
        c = ctypes.CDLL(str(library))
    chance = random.Random(7)
    for type_, (_, code) in TYPES.items():
        items = array(code, (chance.uniform(0.01, 1.0) * 4 for _ in range(ITEMS + 1)))
        found = array(code, bytes(items.itemsize * ITEMS))
        (copied,) = best({"river": fired(compiled(type_, "w[0]", lanes=True)[0], items)})
        print(f"{type_}: a copy takes {copied:.2f} ns")
        for name in names or NAMES:
            value = f"{name}(w[0], w[1])" if OPERANDS[name] == 2 else f"{name}(w[0])"
            (lanes, took), (scalar, _) = (compiled(type_, value, lanes=each) for each in (True, False))
            function = getattr(c, f"{name}_{type_}")
            places = (
                ctypes.c_long(ITEMS),
                ctypes.c_void_p(address_of(items)),
                ctypes.c_void_p(address_of(found)),
            )
            ways = {
                "river, lanes": fired(lanes, items),
                "river, one by one": fired(scalar, items),
                "C": lambda function=function, places=places: function(*places),
            }
            ours, single, theirs = best(ways, f"{type_} {name}")
            print(
                f"{type_} {name:6} lanes {ours:6.2f} ns, one by one {single:6.2f}, C {theirs:6.2f};"
                f" ratio {ours / theirs:.2f}; compiled in {took * 1e3:.0f} ms"
            )


if __name__ == "__main__":
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("the C functions to compare with need gcc")
    main(compiler, sys.argv[1:])
