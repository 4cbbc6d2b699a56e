"""Native operators on columns against C (gcc -O3 -march=native), in one process: loops, keyed sums, windows, joins.

What is compared with is written by hand with the same data structures (see `native_c`): an array of entries by small whole
key, a table of texts with entries in order, a ring of the window, lists of rows by key. Both get the same columns; both write
the same changes to columns, which are compared. Each time is that of the processor, the least of a few runs that take turns.
"""

from __future__ import annotations

import ctypes
import random
import time
from array import array
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import measure
import native_c
from attrs import define, field

import river
from backends.firing.instance import Setting
from backends.firing.machine import make
from backends.firing.queues import UNBOUNDED, Queue
from backends.firing.wiring import inputs_of, outputs_of
from backends.native import NativeOperator, compile_native
from backends.native.batch import Batch, address_of
from river.backend import BATCH
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.lang.values import END, Mark
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.firing.machine import Machine
    from river.il.graph import Graph

ROWS = 1_000_000
KEYS = 10_000
PIECE = BATCH
"""Rows that are sent through a program at once, as the engine does."""

RUNS = 5

OPERATORS = """river 1;
type Trade = {k: i64, price: f64, volume: i64};
type Sum = {n: i64, s: i64};
input t: Trade;
var $v: map<i64, Sum> = {};
var $w: map<string, Sum> = {};
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
operator keyed_text(t: {k: string, volume: i64}; $w: map<string, Sum>) -> () {
  on t(x) { with v = $w[x.k] else {n: 0, s: 0} { v.n = v.n + 1; v.s = v.s + x.volume; } }
}
"""

AVERAGES = """
s: { ts: int; origin: string; x: int } stream by ts;
averages: relation = select origin, avg(x) as mean from s[range 300] group by origin;
"""

JOIN = """
a: { ts: int; k: int; x: int } stream by ts;
b: { ts: int; k: int; y: int } stream by ts;
pairs: relation = select a.x, b.y from a[range 10], b[range 10] where a.k = b.k;
"""


def operator(name: str) -> NativeOperator:
    """The machine code of one of the operators."""
    text, ports = OPERATORS, f"($v) <- {name}(t, $v);"
    match name:
        case "filter_map":
            ports = "(a) <- filter_map(t);"
        case "keyed_text":
            text, ports = (
                text.replace("input t: Trade;", "input t: {k: string, volume: i64};"),
                "($w) <- keyed_text(t, $w);",
            )
        case _:
            pass
    if name != "filter_map":
        text = text.replace("output a: {k: i64, value: f64};\n", "")
    graph = verify(parse(Source("bench.river", text + ports)), Library.of({}))
    (instance,) = graph.instances
    assert isinstance(instance.operator, typed.Operator)
    return compiled(instance.operator)


def compiled(op: typed.Operator) -> NativeOperator:
    """The machine code of an operator."""
    found = compile_native(op, lend=True)
    assert isinstance(found, NativeOperator), found
    return found


@define
class Line:
    """A program's operators on one thread, each fired on all that waits for it: the engine without its scheduler."""

    graph: Graph
    queues: dict[str, Queue] = field(init=False)
    machines: list[Machine] = field(init=False)
    keeps: bool
    found: list[Batch] = field(factory=list[Batch])
    """What came out, if it is to be kept: else its memory is used again, as in the engine."""

    def __attrs_post_init__(self) -> None:
        graph = self.graph
        self.queues = {name: Queue(name, UNBOUNDED, None, 0) for name in graph.queues}
        self.machines = []
        for instance in graph.instances:
            op = instance.operator
            assert isinstance(op, typed.Operator)
            native = compiled(op)
            initial = {variable.name: variable.initial for variable in graph.variables}
            for i, name in enumerate(instance.variables):
                native.variables[i].set(initial[name])
            ports = inputs_of(instance, graph, self.queues, (), columns=True)
            outs = outputs_of(instance, self.queues, ())
            self.machines.append(make(Setting(op, ports, outs, [], PIECE, None), native))

    def send(self, pieces: dict[str, Batch], *marks: Mark) -> None:
        """Sends items and marks through all operators, which stand in the direction of the data."""
        for name, batch in pieces.items():
            if len(batch):
                self.queues[name].put(batch)
            for mark in marks:
                self.queues[name].put(mark)
        for machine in self.machines:
            while machine.fire():  # as the engine: until it says that no more is there
                machine.drain()
            machine.drain()
        for name in self.graph.outputs:
            while (chunk := self.queues[name].take()) is not None:
                if isinstance(chunk, Batch) and self.keeps:
                    self.found.append(chunk)


def program(folder: Path, name: str, text: str) -> Graph:
    """The graph of a CQL program."""
    file = folder / f"{name}.cql"
    file.write_text(text)
    return river.load(str(file)).graph


def pieces(columns: dict[str, tuple[Batch, Sequence[int]]]) -> list[dict[str, Batch]]:
    """Streams cut at the same instants, about `PIECE` rows of each at a time; with each the keys of its rows."""
    found: list[dict[str, Batch]] = []
    at = dict.fromkeys(columns, 0)
    while any(at[name] < len(batch) for name, (batch, _) in columns.items()):
        ends = [keys[min(at[name] + PIECE, len(keys)) - 1] for name, (_, keys) in columns.items()]
        piece: dict[str, Batch] = {}
        for name, (batch, keys) in columns.items():
            stop = at[name]
            while stop < len(keys) and keys[stop] <= min(ends):
                stop += 1
            piece[name], at[name] = batch[at[name] : stop], stop
        found.append(piece)
    return found


def race(
    name: str, ours: Callable[[], object], theirs: Callable[[], object], most: float, rows: int = ROWS
) -> None:
    """Times both by turns, after a first run of each, and prints the ratio."""
    took = measure.times({"river": ours, "c": theirs}, RUNS, time.process_time)
    measure.record(name, took)
    told(name, min(took["river"]), min(took["c"]), most, rows)


def told(name: str, ours: float, theirs: float, most: float, rows: int) -> None:
    """Prints the processor's seconds of both."""
    print(
        f"{name:28} native {ours / rows * 1e9:7.2f} ns per row, C {theirs / rows * 1e9:7.2f}, ratio {ours / theirs:5.2f}"
        f" {measure.target(ours / theirs, most)}",
        flush=True,
    )


# ------------------------------------------------------------------------------------------- one operator


def loops(c: Any) -> None:
    """Filter and map; count and sum by whole keys and by texts."""
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

    race("filter+map", filter_native, lambda: c.filter_map(size, k, p, v, *outs), 1.2)
    count = filtering.outputs[0].rows
    if not measure.ALONE:
        assert filtering.outputs[0].batch().values() == list(zip(out_k[:count], out_v[:count], strict=True))

    c.setup(ctypes.c_int64(1 << 14))
    for name in ("keyed", "keyed_checked"):
        keyed = operator(name)
        race(name, lambda o=keyed: o.fire("item.0", columns, 0, ROWS), lambda: c.keyed(size, k, v), 1.2)

    texts = Batch.of(
        t.Record((("k", t.STRING), ("volume", t.I64))),
        [(f"o{key:08}", v) for key, v in zip(keys, volumes, strict=True)],
    )
    by_text = operator("keyed_text")
    c.keyed_text_open()
    views = ctypes.c_void_p(texts.addresses[0])
    race(
        "keyed_text",
        lambda: by_text.fire("item.0", texts.addresses, 0, ROWS),
        lambda: c.keyed_text(size, views, v),
        1.3,
    )


# ------------------------------------------------------------------------------------------- windows


def whole(graph: Graph, sent: list[dict[str, Batch]], last: int, *, keeps: bool) -> tuple[Line, measure.Took]:
    """All pieces through a program, of which only the sending is timed."""
    line = Line(graph, keeps)

    def run() -> None:
        for piece in sent[:-1]:
            line.send(piece)
        line.send(sent[-1], Mark(last + 1), END)

    return line, measure.timed(run)


@define
class Columns:
    """What a C program writes: columns of numbers (`q`), of means (`d`) or of texts (`v`), after {tau, ins, del}."""

    kinds: str
    arrays: list[array[Any]] = field(init=False)
    block: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        sizes = {"q": 8, "d": 8, "v": 16}
        kinds = "qqq" + self.kinds
        self.arrays = [array("d" if kind == "d" else "q", bytes(sizes[kind] * 4 * ROWS)) for kind in kinds]
        self.block = (ctypes.c_int64 * (len(kinds) + 3))(*map(address_of, self.arrays))

    def deltas(self) -> list[tuple[int, list[Any], list[Any]]]:
        """The changes as values."""
        count, comes, goes = self.block[-3:]
        tau, ins, del_ = self.arrays[:3]
        half = len(self.kinds) // 2
        sides = [
            list(zip(*(self._values(3 + first + i, rows) for i in range(half)), strict=True))
            for first, rows in ((0, comes), (half, goes))
        ]
        return [
            (tau[i], sides[0][ins[i] : ins[i + 1]], sides[1][del_[i] : del_[i + 1]]) for i in range(count)
        ]

    def _values(self, column: int, rows: int) -> list[Any]:
        if self.kinds[column - 3] == "v":
            return Batch(t.STRING, rows, (address_of(self.arrays[column]),)).values()
        return self.arrays[column][:rows].tolist()


def windows(
    name: str, graph: Graph, sent: list[dict[str, Batch]], last: int, theirs: Callable[[], object], out: Columns, most: float
) -> None:  # fmt: skip
    """A program against C; after the first run the changes of both are compared, instant by instant."""
    rows = sum(len(batch) for piece in sent for batch in piece.values())
    line, _ = whole(graph, sent, last, keeps=not measure.ALONE)
    if not measure.ALONE:
        theirs()
        compare(name, line, out)
    ways = {
        "river": lambda: whole(graph, sent, last, keeps=False)[1],
        "c": lambda: measure.timed(theirs),
    }
    took = measure.race(ways, RUNS, name, clock="cpu")
    told(name, took["river"].cpu, took["c"].cpu, most, rows)


def compare(name: str, line: Line, out: Columns) -> None:
    """Compares the changes of both. They are gone afterwards: collecting garbage among them is no part of what is timed."""
    found, expected = [row for batch in line.found for row in batch.values()], out.deltas()
    assert changes(found) == changes(expected), name
    assert all(Counter(ins).keys().isdisjoint(del_) for _, ins, del_ in (*found, *expected)), name
    line.found.clear()


def changes(deltas: Any) -> dict[int, Counter[Any]]:
    """By instant what changes: rows that come and go count for nothing."""
    found: dict[int, Counter[Any]] = {}
    for tau, ins, del_ in deltas:
        net = Counter(ins)
        net.subtract(Counter(del_))
        net = Counter({row: n for row, n in net.items() if n})
        if net:
            found[tau] = net
    return found


def averages(c: Any, folder: Path) -> None:
    """Changes of an average by key over a window."""
    chance, graph = random.Random(7), program(folder, "averages", AVERAGES)
    rows = [(i // 100, f"o{chance.randrange(KEYS):08}", chance.randrange(1000)) for i in range(ROWS)]
    batch = Batch.of(graph.queues["s"].type, rows)
    out, times = Columns("vdvd"), [ts for ts, _, _ in rows]
    ts, views, xs = (ctypes.c_void_p(address) for address in batch.addresses)

    def theirs() -> None:
        c.averages_open(ctypes.c_int64(1 << 15))
        c.averages(ctypes.c_int64(ROWS), ts, views, xs, out.block)

    windows("range 300 average, deltas", graph, pieces({"s": (batch, times)}), times[-1], theirs, out, 1.5)


def join(c: Any, folder: Path) -> None:
    """Changes of the join of two windows."""
    chance, graph, keys = random.Random(7), program(folder, "join", JOIN), 1000
    rows = [
        [(i // 100, chance.randrange(keys), chance.randrange(1 << 30)) for i in range(ROWS // 2)]
        for _ in range(2)
    ]
    batches = [Batch.of(graph.queues[name].type, each) for name, each in zip("ab", rows, strict=True)]
    times = [row[0] for row in rows[0]]
    out = Columns("qqqq")
    left, right = ([ctypes.c_void_p(address) for address in batch.addresses] for batch in batches)
    size = ctypes.c_int64(ROWS // 2)

    def theirs() -> None:
        c.join_open(ctypes.c_int64(keys), ctypes.c_int64(1 << 13))
        c.join(size, *left, size, *right, out.block)

    sent = pieces({name: (batch, times) for name, batch in zip("ab", batches, strict=True)})
    windows("join of two windows, deltas", graph, sent, times[-1], theirs, out, 2.0)


def main() -> None:
    measure.begin("Native operators against C")
    with TemporaryDirectory() as folder:
        c = ctypes.CDLL(str(measure.built(Path(folder), "native.so", native_c.PROGRAM, "-shared", "-fPIC")))
        loops(c)
        averages(c, Path(folder))
        join(c, Path(folder))


if __name__ == "__main__":
    main()
