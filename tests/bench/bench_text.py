"""Floats to text and back, natively, against C (snprintf with 17 digits, strtod) and Python: nanoseconds per number."""

from __future__ import annotations

import ctypes
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import measure

from backends.native import Batch, NativeOperator, compile_native
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 200_000
RUNS = 5

C = """
#include <stdio.h>
#include <stdlib.h>
long print_all(long n, double *x) {
  char buffer[64]; long total = 0;
  for (long i = 0; i < n; i++) total += snprintf(buffer, 64, "%.17g", x[i]);
  return total;
}
double parse_all(long n, char *text, long *at) {
  double total = 0;
  for (long i = 0; i < n; i++) total += strtod(text + at[i], 0);
  return total;
}
"""


def operator(source: t.Type, name: str, result: t.Type) -> NativeOperator:
    """An operator that sends a number made of each item (so that writing the output costs little)."""
    made = typed.Apply(result, name, (typed.Local(source, 0, "x"),), 0)
    sent: typed.Expr = made
    if result == t.STRING:
        sent = typed.Apply(t.I64, "len", (made,))
    op = typed.Operator(
        "text", (typed.Port("x", source, None),), (), (typed.Out("y", sent.type, None, None),), (), (),
        (typed.TrapSite(()),), items=(typed.ItemHandler(0, 1, typed.Block((typed.Emit(0, sent),))),),
    )  # fmt: skip
    found = compile_native(op)
    assert isinstance(found, NativeOperator), found
    return found


def raced(what: str, ways: dict[str, Callable[[], Any]]) -> None:
    """Prints nanoseconds per text, and keeps the contest."""
    took = measure.times(ways, RUNS)
    measure.record(what, took)
    ours, theirs, python = (min(took[way]) / COUNT * 1e9 for way in ("river", "C", "Python"))
    print(
        f"{what:18} native {ours:6.1f}  C {theirs:6.1f}  Python {python:6.1f}  native/C {ours / theirs:.2f}"
    )


def fired(op: NativeOperator, values: list[Any]) -> Callable[[], None]:
    batch = Batch.of(op.operator.ports[0].type, values)

    def run() -> None:
        op.clear()
        assert op.fire("item.0", batch.addresses, 0, COUNT).row == COUNT

    return run


def against_c(folder: Path, gcc: str) -> None:
    """Prints the times and ratios."""
    source, library = folder / "text.c", folder / "text.so"
    source.write_text(C)
    subprocess.run([gcc, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], check=True)
    c = ctypes.CDLL(str(library))
    c.parse_all.restype = ctypes.c_double
    chance = random.Random(5)
    bits = [struct.unpack("<d", struct.pack("<Q", chance.getrandbits(64)))[0] for _ in range(COUNT)]
    bits = [x if x - x == 0.0 else 1.5 for x in bits]
    cents = [chance.randrange(10**7) / 100 for _ in range(COUNT)]
    size = ctypes.c_long(COUNT)
    for name, values in (("random bits", bits), ("cents", cents)):
        numbers = (ctypes.c_double * COUNT)(*values)
        texts = list(map(repr, values))
        joined = "\0".join(texts).encode() + b"\0"
        places, at = (ctypes.c_long * COUNT)(), 0
        for i, text in enumerate(texts):
            places[i] = at
            at += len(text) + 1
        prints = {
            "river": fired(operator(t.F64, "string", t.STRING), values),
            "C": lambda n=numbers: c.print_all(size, n),
            "Python": lambda v=values: list(map(repr, v)),
        }
        raced(f"print {name}", prints)
        parses = {
            "river": fired(operator(t.STRING, "f64", t.F64), texts),
            "C": lambda j=joined, p=places: c.parse_all(size, j, p),
            "Python": lambda x=texts: list(map(float, x)),
        }
        raced(f"parse {name}", parses)


if __name__ == "__main__":
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("the C program to compare with needs gcc")
    with TemporaryDirectory() as place:
        against_c(Path(place), compiler)
