"""How long it takes to make machine code: with nothing kept, with the runtime library's own code kept, and with all of it.

Each figure is that of a process of its own, the least of a few that take turns: a stateless operator (filter and map), a
keyed one (count and sum by string), a program of a thousand instances of 20 templates with 20 and with a thousand
different arguments, and one of different operators, on one thread and on two. Imports, the start of LLVM, and
reading and checking the program are told apart. The parser's tables are always there. Targets are of the processor's time:
others use the machine, too; what two threads save is told by the clock.

Run: python tests/bench/bench_compile.py [--instances N] [--templates N] [--different N] [--runs N]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import measure

STATELESS = """river 1;
type Trade = {k: i64, price: f64, volume: i64};
input t: Trade;
output a: {k: i64, value: f64};
operator filter_map(t: Trade) -> (out: {k: i64, value: f64}) {
  on t(x) { if x.price > 50.0 { emit out {k: x.k, value: x.price * f64(x.volume)}; } }
}
(a) <- filter_map(t);
"""
KEYED = """river 1;
type Trade = {k: string, volume: i64};
type Sum = {n: i64, s: i64};
input t: Trade;
output a: {k: string, n: i64, s: i64};
var $v: map<string, Sum> = {};
operator keyed(t: Trade; $v: map<string, Sum>) -> (out: {k: string, n: i64, s: i64}) {
  on t(x) {
    with v = $v[x.k] else {n: 0, s: 0} {
      v.n = v.n + 1;
      v.s = v.s + x.volume;
      emit out {k: x.k, n: v.n, s: v.s};
    }
  }
}
(a, $v) <- keyed(t, $v);
"""
BODIES = (
    "if mod.floor(x.key, #n) != 1 { emit out x; }",
    "emit out {key: x.key, value: x.value +% #n, text: x.text};",
    "emit out {key: x.key ^ #n, value: x.value, text: x.text};",
    'emit out {key: x.key, value: x.value, text: if x.value > #n {x.text} else {"small"}};',
    "var s = x.value; for i in 0 .. 10 { s = s *% 31 +% x.key ^ #n; } emit out {key: x.key, value: s, text: x.text};",
)
"""What the templates do: one of these, with a number of their own."""

TARGETS = {
    "stateless": {"runtime kept": 40.0, "all kept": 5.0},
    "keyed": {"runtime kept": 250.0, "all kept": 10.0},
    "instances": {"runtime kept": 3000.0},
    "arguments": {"runtime kept": 5000.0},
}
"""Milliseconds of compilation."""


def instances(count: int, templates: int, operators: int) -> str:
    """A program of chains, one for each input; each step of a chain is an instance of another template.

    `operators`: how many there are, an operator being a template with its arguments.
    """
    item = "{key: i64, value: i64, text: string}"
    lines = ["river 1;"]
    for i in range(templates):
        body = BODIES[i % len(BODIES)]
        lines += [
            "template <#n: i64>",
            f"operator t{i}(x: {item}) -> (out: {item}) {{ on x(x) {{ {body} }} }}",
        ]
    lines += [f"operator o{i} = t{i % templates}<n = {i + 2}>;" for i in range(operators)]
    chains = [range(start, min(start + templates, count)) for start in range(0, count, templates)]
    uses: list[str] = []
    for c, chain in enumerate(chains):
        lines += [f"input i{c}: {item};", f"output o_{c}: {item};"]
        names = [f"i{c}", *(f"q{i}" for i in chain[:-1]), f"o_{c}"]
        uses += [f"({names[at + 1]}) <- o{i % operators}({names[at]});" for at, i in enumerate(chain)]
    return "\n".join((*lines, *uses)) + "\n"


def different(count: int) -> str:
    """A program of a chain of operators of which no two are alike."""
    item = "{key: i64, value: i64, text: string}"
    lines = ["river 1;", f"input q0: {item};", f"output q{count}: {item};"]
    for i in range(count):
        body = BODIES[i % len(BODIES)].replace("#n", str(i + 2))
        steps = "".join(f" s = s *% {k + 3} ^ x.value;" for k in range(i // len(BODIES)))
        head = f"operator o{i}(x: {item}) -> (out: {item})"
        lines += [f"{head} {{ on x(x) {{ var t = x.key; {steps.replace('s ', 't ')} {body} }} }}"]
        lines += [f"(q{i + 1}) <- o{i}(q{i});"]
    return "\n".join(lines) + "\n"


def child(program: Path, what: str, workers: int) -> None:
    """Compiles, and prints the milliseconds of each step; or makes only what is to be there before."""
    began = time.perf_counter()
    from backends import native  # noqa: F401 - its import is not compilation
    from backends.multicore.compiled import compiled
    from backends.multicore.plan import plan
    from backends.native import operator  # noqa: F401
    from backends.native.jit import host
    from river.backend import Options
    from river.driver import compile_source, read_source
    from river.platform import here

    imported = time.perf_counter()
    host()
    started = time.perf_counter()
    source = compile_source(read_source(str(program)))
    graph = source.graph
    verified = time.perf_counter()
    if what == "runtime":
        from backends.native.runtime_library import parts, runtime
        from backends.native.shared import part_code

        for name in {of for each in runtime().functions.values() for of in parts(each.text).values()}:
            part_code(name)
    if what != "all":
        return
    made = plan(graph, here(), Options(workers=workers))
    planned, cpu = time.perf_counter(), time.process_time()
    found = compiled(made)
    done, used = time.perf_counter(), time.process_time() - cpu
    assert not found.refused, found.refused
    assert len(found.native) == len(graph.instances)
    times = {
        "imports": imported - began,
        "LLVM starts": started - imported,
        "read and verified": verified - started,
        "planned": planned - verified,
        "compiled": done - planned,
        "of the processor": used,
    }
    print(json.dumps({name: 1000 * seconds for name, seconds in times.items()}))


def measured(
    folder: Path, name: str, text: str, ways: dict[str, list[str]], runs: int
) -> dict[str, dict[str, float]]:
    """By way (what is kept, and further arguments) the least milliseconds of each step; kept as contests of whole processes."""
    program = folder / f"{name}.river"
    program.write_text(text)
    command = [sys.executable, __file__, "--child", program]
    for kept, what in (("nothing kept", "tables"), ("runtime kept", "runtime")):
        if not (folder / kept).exists():
            measure.process([*command, "--make", what], env={"RIVER_CACHE": str(folder / kept)})
    full = folder / "full"
    steps: dict[str, dict[str, float]] = {way: {} for way in ways}
    walls: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(measure.few(runs)):
        for way, more in ways.items():
            if (folder / way.partition(",")[0]).exists():
                shutil.rmtree(full, ignore_errors=True)
                shutil.copytree(folder / way.partition(",")[0], full)
            took = measure.process([*command, *more], env={"RIVER_CACHE": str(full)})
            said = {**json.loads(took.told.splitlines()[0]), "process": 1000 * took.wall}
            said["of the processor in all"] = 1000 * took.cpu
            walls[way].append(took.wall)
            for step, ms in said.items():
                steps[way][step] = min(ms, steps[way].get(step, float("inf")))
    for way, found in walls.items():
        measure.record(f"{name}, {way}, whole process", {"river": found})
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--templates", type=int, default=20)
    parser.add_argument("--different", type=int, default=20, help="operators of which no two are alike")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", default="all", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        child(given.child, given.make, given.workers)
        return
    measure.begin("Compilation, in ms")
    count, templates = given.instances, given.templates
    programs = {
        "stateless": STATELESS,
        "keyed": KEYED,
        "instances": instances(count, templates, templates),
        "arguments": instances(count, templates, count),
    }
    alone: dict[str, list[str]] = {"nothing kept": [], "runtime kept": [], "all kept": []}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for kind, text in programs.items():
            for way, least in measured(folder, kind, text, alone, given.runs).items():
                took, cpu = least.pop("compiled"), least.pop("of the processor")
                # A module is imported where it is first needed: what a step takes alone says little of what users wait for.
                most = TARGETS[kind].get(way)
                said = "" if most is None else measure.target(cpu, most)
                rest = ", ".join(f"{step} {ms:.0f}" for step, ms in least.items())
                print(
                    f"{kind:10} {way:13} {took:8.1f}, of the processor {cpu:8.1f} {said:22} {rest}",
                    flush=True,
                )
        if measure.ALONE:  # nothing of the rest is kept
            return
        threads = {f"runtime kept, {n} threads": ["--workers", str(n)] for n in (1, 2)}
        found = measured(folder, "different", different(given.different), threads, given.runs)
        (_, one), (_, two) = ((way, least["compiled"]) for way, least in found.items())
        print(
            f"{given.different} different operators: one thread {one:.0f}, two {two:.0f}: {one / two:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
