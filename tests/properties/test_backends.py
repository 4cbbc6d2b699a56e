"""Laws of the backends: what the threads compute is what the calculus allows, and the same for every way of running it.

Programs are made as text: a list of steps, each of which takes queues from those that are open and adds new ones.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from backends.multicore.plan import plan
from backends.multicore.run import run
from calculus import Finished, outcomes
from calculus import run as run_calculus
from calculus.schedule import FirstCome
from river.backend import Options
from river.il.erase import erase, inputs
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import Mark
from river.platform import Platform
from river.source import Source

LIBRARY = Library.of({})

HEAD = """river 1;
type Tag = {seq: i64, v: i64};
operator affine(x: i64) -> (y: i64) { on x(v) { emit y v *% 3 +% 1; } }
operator some(x: i64) -> (y: i64) { on x(v) { if rem.trunc(v, 3) != 0 { emit y v; } } }
operator none_of(x: i64) -> (y: i64) { on x(v) { if v == 7777 { emit y v; } } }
operator twice(x: i64) -> (y: i64) { on x(v) { emit y v; emit y v +% 1; } }
operator sum(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s +% v; emit y $s; } }
operator tally(x: i64; $m: map<i64, i64>) -> (y: i64) {
  on x(v) { with n = $m[rem.trunc(v, 4)] else 0 { n = n + 1; emit y n; } }
}
operator copy(x: i64) -> (a: i64, b: i64) { on x(v) { emit a v; emit b v; } }
operator lean(x: i64; $i: i64) -> (a: i64, b: i64) {
  on x(v) { if rem.trunc($i, 5) == 0 { emit b v; } else { emit a v; } $i = $i + 1; }
}
operator deal(x: i64) -> (a[push 2]: i64, b[push 1]: i64) {
  on x[pop 3](w) { emit a w[0]; emit a w[1]; emit b w[2]; }
}
operator fir(x: i64) -> (y[push 1]: i64) { on x[peek 3, pop 1](w) { emit y w[0] +% w[1] *% 2 +% w[2] *% 3; } }
operator late(x: i64 = [5, 6]) -> (y: i64) {
  first on x[peek 1, pop 0](w) { emit y w[0]; }
  on x[pop 2](w) { emit y w[0] -% w[1]; }
}
operator zip(a: i64, b: i64) -> (y: i64) { on a[pop 1](v), b[peek 2, pop 1](w) { emit y v[0] *% 2 -% w[0] +% w[1]; } }
operator join(a: i64, b: i64) -> (y: i64) { phase 2 on a(v) { emit y v; } phase 1 on b(v) { emit y v *% 2; } }
operator back(x: i64, l: i64 = [1]) -> (y: i64) { phase 1 on x(v) { emit y v; } phase 1 on l(v) { emit y v +% 1; } }
operator stamp(x: i64; $n: i64) -> (o0: Tag by seq, o1: Tag by seq) {
  on x(v) {
    if rem.trunc(v, 2) == 0 { emit o0 {seq: $n, v: v}; } else { emit o1 {seq: $n, v: v}; }
    $n = $n + 1;
    if rem.trunc($n, 2) == 0 { mark o0 $n; mark o1 $n; }
  }
}
operator keep(x: Tag by seq) -> (y: Tag by seq) { on x(t) { if rem.trunc(t.v, 3) != 0 { emit y t; } } }
operator merge(a: Tag by seq, b: Tag by seq) -> (y: i64) {
  on merge(a(p), b(q)) { if p is p { emit y p.v; } if q is q { emit y q.v; } }
}
operator either(a: i64, b: i64; $e: i64) -> (y: i64) {
  on a(v) { $e = $e *% 2 +% v; emit y $e; }
  on b(v) { $e = $e *% 3 -% v; emit y v; }
}
operator window(x: Tag by seq; $w: deque<Tag>) -> (y: Tag by seq) {
  fn expire(ref w: deque<Tag>, before: i64) {
    while len(w) > 0 and front(w).seq + 2 < before { let t = pop_front(w); emit y {seq: t.seq + 2, v: t.v}; }
  }
  on x(t) { expire($w, t.seq); push_back($w, t); }
  on mark(k) { expire($w, k); mark y k; }
}
operator plain(x: Tag) -> (y: i64) { on x(t) { emit y t.seq *% 100 +% t.v; } }
"""

VARIABLES = {"sum": "i64 = 0", "tally": "map<i64, i64> = {}", "lean": "i64 = 0", "stamp": "i64 = 0", "either": "i64 = 0",
             "window": "deque<Tag> = {}"}  # fmt: skip


@define
class Build:
    """A program while it grows: open queues, declarations and uses."""

    open: list[str]
    uses: list[str] = field(factory=list)
    declarations: list[str] = field(factory=list)
    names: int = 0

    def fresh(self) -> str:
        self.names += 1
        return f"q{self.names}"

    def use(self, operator: str, ins: list[str], outs: int = 1, variable: str | None = None) -> list[str]:
        """Adds a use; its new queues. An operator with state gets a variable of its own, or `variable`."""
        made = [self.fresh() for _ in range(outs)]
        state: list[str] = []
        if operator in VARIABLES:
            if variable is None:
                variable = f"v{len(self.declarations)}"
                self.declarations.append(f"var ${variable}: {VARIABLES[operator]};")
            state = [f"${variable}"]
        self.uses.append(f"({', '.join(made + state)}) <- {operator}({', '.join(ins + state)});")
        return made

    def text(self, keyed: int) -> str:
        """The program: inputs i0, i1 without key, k0 .. with key; what is open is an output."""
        ins = [
            f"input {q}: {'Tag by seq' if q in KEYED[:keyed] else 'i64'};" for q in (*PLAIN, *KEYED[:keyed])
        ]
        outs = [f"output {q}: i64;" for q in self.open]
        return "\n".join([HEAD, *ins, *outs, *self.declarations, *self.uses])


PLAIN = ("i0", "i1")
KEYED = ("k0", "k1", "k2")
ONE = ("affine", "some", "none_of", "twice", "sum", "tally", "fir", "late")
SPLITS = ("copy", "lean", "deal")
JOINS = ("zip", "join")


@st.composite
def programs(draw: st.DrawFn, steps: int, *, free: bool = False) -> str:
    """A program; with `free` its operators may share variables and read queues in any order."""
    keyed = draw(st.integers(0, 2 if free else 3))
    build = Build([])
    sources = [build.use("affine", [q])[0] for q in PLAIN]
    for q in KEYED[:keyed]:
        made = draw(st.sampled_from(["window", "keep", "pass"]))
        build.open.append(q if made == "pass" else build.use(made, [q])[0])
    tagged = list(build.open)
    build.open = sources
    if len(tagged) > 1:
        build.open += build.use("merge", [tagged.pop(0), tagged.pop()])
    build.open += [build.use("plain", [q])[0] for q in tagged]
    shared = "shared" if free else None
    if free:
        build.declarations.append("var $shared: i64 = 0;")
    if free:
        choice = draw(st.sampled_from(["either", "sharing"]))
        pair = [build.open.pop(0), build.open.pop(0)]
        uses = [pair] if choice == "either" else [[queue] for queue in pair]
        build.open += [
            q for ins in uses for q in build.use("either" if len(ins) == 2 else "sum", ins, variable=shared)
        ]
    kinds = ["one", "split", "join", "fission", "loop", *(["sharing", "either"] if free else [])]
    for _ in range(draw(st.integers(1, steps))):
        kind = draw(st.sampled_from(kinds))
        place = draw(st.integers(0, len(build.open) - 1))
        queue = build.open.pop(place)
        if kind in ("join", "either") and build.open:
            other = build.open.pop(draw(st.integers(0, len(build.open) - 1)))
            operator = "either" if kind == "either" else draw(st.sampled_from(JOINS))
            build.open += build.use(operator, [queue, other], variable=shared)
        elif kind == "split":
            build.open += build.use(draw(st.sampled_from(SPLITS)), [queue], 2)
        elif kind == "fission":
            a, b = build.use("stamp", [queue], 2)
            build.open += build.use("merge", [build.use("keep", [a])[0], build.use("keep", [b])[0]])
        elif kind == "loop":
            loop = build.fresh()
            (joined,) = build.use("back", [queue, loop])
            (body,) = build.use(draw(st.sampled_from(["affine", "sum"])), [joined])
            out, again = build.fresh(), loop
            build.uses.append(f"({out}, {again}) <- deal_loop({body});")
            build.open.append(out)
        elif kind == "sharing":
            build.open += build.use("sum", [queue], variable=shared)
        else:
            build.open += build.use(draw(st.sampled_from(ONE)), [queue])
    loop = "operator deal_loop(x: i64) -> (o: i64, l: i64) { on x[pop 2](w) { emit o w[0]; emit l w[1]; } }"
    return build.text(keyed).replace("river 1;", f"river 1;\n{loop}", 1)


@st.composite
def data(draw: st.DrawFn, size: int, least: int = 0) -> dict[str, list[Any]]:
    """Items for all inputs that a program may have."""
    plain = {q: draw(st.lists(st.integers(-9, 9), min_size=least, max_size=size)) for q in PLAIN}
    keys = {q: sorted(draw(st.lists(st.integers(0, 2 * size), max_size=size))) for q in KEYED}
    return plain | {q: [(k, (7 * k) % 11 - 5 + i) for i, k in enumerate(ks)] for q, ks in keys.items()}


def batches(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def multicore(graph: Any, given_items: dict[str, list[Any]], options: Options, size: int) -> Finished:
    """What the threads compute, in the form of the calculus."""
    found: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    made = plan(graph, Platform(2), options)
    sources = {name: batches(given_items[name], size) for name in graph.inputs}
    summary = run(made, sources, {name: items.extend for name, items in found.items()})
    return Finished(
        tuple((name, tuple(found[name])) for name in graph.outputs),
        tuple(sorted(summary.variables.items())),
    )


def visible(finished: Any, graph: Any) -> Finished:
    """An outcome of the calculus without marks and hidden variables."""
    names = {variable.name for variable in graph.variables}
    return Finished(
        tuple((q, tuple(e for e in items if not isinstance(e, Mark))) for q, items in finished.outputs),
        tuple(sorted((name, value) for name, value in finished.variables if name in names)),
    )


WAYS = st.builds(
    Options,
    batch=st.sampled_from([1, 2, 7, 4096]),
    workers=st.sampled_from([1, 2, 4]),
    bound=st.sampled_from([1, 2, 5, 64]),
)


@given(text=programs(7), items=data(20), ways=st.lists(WAYS, min_size=3, max_size=3), size=st.integers(1, 9))
def test_deterministic_programs_give_the_same_however_they_run(text, items, ways, size):
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    assert graph.deterministic
    chosen = {name: items[name] for name in graph.inputs}
    meaning = run_calculus(erase(graph), inputs(graph, chosen), FirstCome()).outcome
    expected = visible(meaning, graph)
    for options in ways:
        assert multicore(graph, items, options, size) == expected


@given(text=programs(2, free=True), items=data(2, 1), options=WAYS)
def test_every_result_is_an_outcome_of_the_calculus(text, items, options):
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    chosen = {name: items[name] for name in graph.inputs}
    found = multicore(graph, items, options, 1)
    explored = outcomes(erase(graph), inputs(graph, chosen), limit=3_000)
    possible = {visible(outcome, graph) for outcome in explored.outcomes}
    assert not explored.complete or found in possible
