"""Random graphs of River IL as texts: pipelines, splits, joins, rates, merges by key, loops, shared variables.

A program is a list of steps, each of which takes queues from those that are open and adds new ones. What the operators
do is small and never traps: these programs try a backend's queues, threads and locks, not its arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from river.classes import define, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEAD: Final = """river 1;
type Tag = {seq: i64, v: i64};
type Pair = {k: i64, v: i64};
operator seen(x: Tag by seq; $m: map<i64, i64>) -> (y: Tag by seq) {
  on x(t) { with n = $m[t.v] else 0 { n = n + 1; if n < 3 { emit y t; } } }
}
operator affine(x: i64) -> (y: i64) { on x(v) { emit y v *% 3 +% 1; } }
operator some(x: i64) -> (y: i64) { on x(v) { if rem.trunc(v, 3) != 0 { emit y v; } } }
operator none_of(x: i64) -> (y: i64) { on x(v) { if v == 7777 { emit y v; } } }
operator twice(x: i64) -> (y: i64) { on x(v) { emit y v; emit y v +% 1; } }
operator sum(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s +% v; emit y $s; } }
operator tally(x: i64; $m: map<i64, i64>) -> (y: i64) {
  on x(v) { with n = $m[rem.trunc(v, 4)] else 0 { n = n + 1; emit y n; } }
}
operator with_key(x: i64) -> (y: Pair) { on x(v) { emit y {k: rem.trunc(v, 5), v: v}; } }
operator totals(x: Pair; $m: map<i64, i64>) -> (y: Pair) {
  on x(p) { with n = $m[p.k] else 0 { n = n +% p.v; emit y {k: p.k, v: n}; } }
}
operator runs(x: Pair; $m: omap<{k: i64}, i64>, $d: map<{odd: i64, k: i64}, i64>) -> (y: Pair) {
  on x(p) {
    with n = $m[{k: p.k}] else 0 { n = n + 1; if rem.trunc(n, 3) == 0 { emit y p; emit y {k: n, v: p.k}; } }
    with d = $d[{odd: rem.trunc(p.v, 2), k: p.k}] else 0 { d = d + 1; if d < 4 { emit y {k: p.k, v: d}; } }
  }
}
operator without_key(x: Pair) -> (y: i64) { on x(p) { emit y p.k *% 100 +% p.v; } }
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
operator turn(x: i64) -> (o: i64, l: i64) { on x[pop 2](w) { emit o w[0]; emit l w[1]; } }
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

VARIABLES: Final = {"sum": "i64 = 0", "tally": "map<i64, i64> = {}", "lean": "i64 = 0", "stamp": "i64 = 0",
                    "either": "i64 = 0", "window": "deque<Tag> = {}", "seen": "map<i64, i64> = {}",
                    "totals": "map<i64, i64> = {}"}  # fmt: skip
TWO: Final = {"runs": ("omap<{k: i64}, i64> = {}", "map<{odd: i64, k: i64}, i64> = {}")}
"""Those of operators with two."""
PLAIN: Final = ("i0", "i1")
KEYED: Final = ("k0", "k1", "k2")
ONE: Final = ("affine", "some", "none_of", "twice", "sum", "tally", "fir", "late")
STATEFUL: Final = ("totals", "runs")
SPLITS: Final = ("copy", "lean", "deal")
JOINS: Final = ("zip", "join")


@define
class _Build:
    """A program while it grows: open queues, declarations and uses."""

    open: list[str]
    uses: list[str] = field(factory=list[str])
    declarations: list[str] = field(factory=list[str])
    names: int = 0

    def fresh(self) -> str:
        self.names += 1
        return f"q{self.names}"

    def use(self, operator: str, ins: Sequence[str], outs: int = 1, variable: str | None = None) -> list[str]:
        """Adds a use; its new queues. An operator with state gets a variable of its own, or `variable`."""
        made = [self.fresh() for _ in range(outs)]
        state: list[str] = []
        if operator in VARIABLES or operator in TWO:
            declarations = TWO[operator] if operator in TWO else (VARIABLES[operator],)
            for declared in declarations if variable is None else ():
                state.append(f"$v{len(self.declarations)}")
                self.declarations.append(f"var {state[-1]}: {declared};")
            if variable is not None:
                state = [f"${variable}"]
        self.uses.append(f"({', '.join(made + state)}) <- {operator}({', '.join([*ins, *state])});")
        return made

    def text(self, keyed: int) -> str:
        """The program: inputs i0, i1 without key, k0 .. with key; what is open is an output."""
        names = (*PLAIN, *KEYED[:keyed])
        ins = [f"input {q}: {'Tag by seq' if q in KEYED else 'i64'};" for q in names]
        outs = [f"output {q}: i64;" for q in self.open]
        return "\n".join([HEAD, *ins, *outs, *self.declarations, *self.uses])


@st.composite
def graphs(draw: st.DrawFn, steps: int, *, free: bool = False) -> str:
    """A program, deterministic by construction; with `free` some operators share variables or read in any order."""
    keyed = draw(st.integers(0, 2 if free else 3))
    build = _Build([])
    sources = [build.use("affine", [q])[0] for q in PLAIN]
    for q in KEYED[:keyed]:
        made = draw(st.sampled_from(["window", "keep", "seen", "pass"]))
        build.open.append(q if made == "pass" else build.use(made, [q])[0])
    tagged, build.open = build.open, sources
    if len(tagged) > 1:
        build.open += build.use("merge", [tagged.pop(0), tagged.pop()])
    build.open += [build.use("plain", [q])[0] for q in tagged]
    shared = "shared" if free else None
    if free:
        build.declarations.append("var $shared: i64 = 0;")
        pair = [build.open.pop(0), build.open.pop(0)]
        together = draw(st.booleans())
        for ins in [pair] if together else [[queue] for queue in pair]:
            build.open += build.use("either" if together else "sum", ins, variable=shared)
    kinds = ["one", "split", "join", "fission", "loop", "keyed", *(["sharing", "either"] if free else [])]
    for _ in range(draw(st.integers(1, steps))):
        kind = draw(st.sampled_from(kinds))
        queue = build.open.pop(draw(st.integers(0, len(build.open) - 1)))
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
            out = build.fresh()
            build.uses.append(f"({out}, {loop}) <- turn({body});")
            build.open.append(out)
        elif kind == "keyed":
            (pairs,) = build.use("with_key", [queue])
            for operator in draw(st.lists(st.sampled_from(STATEFUL), min_size=1, max_size=2)):
                (pairs,) = build.use(operator, [pairs])
            build.open += build.use("without_key", [pairs])
        elif kind == "sharing":
            build.open += build.use("sum", [queue], variable=shared)
        else:
            build.open += build.use(draw(st.sampled_from(ONE)), [queue])
    return build.text(keyed)


@st.composite
def contents(draw: st.DrawFn, size: int, least: int = 0) -> Mapping[str, list[Any]]:
    """Items for all inputs that a program of `graphs` may have."""
    plain = {q: draw(st.lists(st.integers(-9, 9), min_size=least, max_size=size)) for q in PLAIN}
    keys = {q: sorted(draw(st.lists(st.integers(0, 2 * size), max_size=size))) for q in KEYED}
    return plain | {q: [(k, (7 * k) % 11 - 5 + i) for i, k in enumerate(ks)] for q, ks in keys.items()}
