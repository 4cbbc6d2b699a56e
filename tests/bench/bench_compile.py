"""How long it takes to make machine code: with an empty cache, and when the code is there already.

Each figure is that of a process of its own, the least of a few that take turns: a stateless operator (filter and map), a
keyed one (count and sum by string), and a program of a thousand instances of 20 templates. Imports, the start of LLVM, and
reading and checking the program are told apart. The parser's tables are always there. Targets are of the processor's time:
one thread compiles, and others use the machine, too.

Run: python tests/bench/bench_compile.py [--instances N] [--templates N] [--runs N]
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

TARGETS = {"stateless": (40.0, 5.0), "keyed": (250.0, 10.0), "instances": (3000.0, float("inf"))}
"""Milliseconds of compilation, with an empty cache and a full one."""


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


def child(program: Path, *, compile_: bool) -> None:
    """Compiles, and prints the milliseconds of each step."""
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
    if not compile_:
        return
    made = plan(graph, here(), Options())
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--templates", type=int, default=20)
    parser.add_argument("--operators", type=int, help="different arguments; without it, as many as templates")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read-only", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        child(given.child, compile_=not given.read_only)
        return
    measure.begin("Compilation, in ms")
    many = instances(given.instances, given.templates, given.operators or given.templates)
    with TemporaryDirectory() as name:
        folder = Path(name)
        tables, full = folder / "tables", folder / "full"
        for kind, text in {"stateless": STATELESS, "keyed": KEYED, "instances": many}.items():
            program = folder / f"{kind}.river"
            program.write_text(text)
            command = [sys.executable, __file__, "--child", program]
            measure.process([*command, "--read-only"], env={"RIVER_CACHE": str(tables)})
            steps: dict[str, dict[str, float]] = {"cold": {}, "cached": {}}
            for _ in range(given.runs):
                shutil.rmtree(full, ignore_errors=True)
                shutil.copytree(tables, full)
                for least in steps.values():
                    took = measure.process(command, env={"RIVER_CACHE": str(full)})
                    said = {**json.loads(took.told.splitlines()[0]), "process": 1000 * took.wall}
                    said["of the processor in all"] = 1000 * took.cpu
                    for step, ms in said.items():
                        least[step] = min(ms, least.get(step, float("inf")))
            for (way, least), most in zip(steps.items(), TARGETS[kind], strict=True):
                took, cpu = least.pop("compiled"), least.pop("of the processor")
                said = measure.target(cpu, most)
                rest = ", ".join(f"{step} {ms:.0f}" for step, ms in least.items())
                print(
                    f"{kind:10} {way:7} {took:8.1f}, of the processor {cpu:8.1f} {said:22} {rest}", flush=True
                )


if __name__ == "__main__":
    main()
