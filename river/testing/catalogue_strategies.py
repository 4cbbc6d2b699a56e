"""Random programs of River IL for the laws of passes and backends: graphs of small operators from one catalogue.

A program grows from one or two inputs: each step gives open queues to an operator that takes items of their types; what is
open at last is an output. Among the operators are some that read the order of items or of the rows in a delta, that send
marks of their own, that rename, permute, widen, narrow and rebuild records, that end in variables with and without a view,
that fork and join, and, in programs that need not be deterministic, some that share a variable or take items as they come.

An operator is the same in all programs, so that it is read, checked and made machine code of once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from river.classes import define, field, frozen
from river.testing.program_strategies import ProgramCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TYPES: Final = """river 1;
type T = {k: string, n: i64};
type U = {n: i64, k: string};
type W = {k: string, n: i64, z: i64};
type S = {k: string, l: string};
type E = {tau: i64, k: string, n: i64};
type D = {tau: i64, ins: list<T>, del: list<T>};
type H = {tau: i64, h: i64};
"""
ORDERED: Final = {"E": "E by tau", "D": "D by tau", "H": "H by tau"}


@frozen
class Sample:
    """An operator of the catalogue: types of its ports and outputs, its body, and the variable that it has.

    `keys`: what `@Keys` may truly say. `commutes`: `@Commutative` is true, though perhaps not derived. `free`: only for
    programs that need not be deterministic. `weight`: how often, beside others.
    """

    ins: str
    outs: str
    body: str
    variable: str | None = None
    initial: str = "{}"
    keys: str | None = None
    commutes: bool = False
    free: bool = False
    weight: int = 1
    view: str | None = None

    def text(self, name: str) -> str:
        """Its declaration."""
        ports = ", ".join(f"x{i}: {ORDERED.get(each, each)}" for i, each in enumerate(self.ins))
        outs = ", ".join(f"o{i}: {ORDERED.get(each, each)}" for i, each in enumerate(self.outs))
        state = "" if self.variable is None else f"; $v: {self.variable}"
        return f"operator {name}({ports}{state}) -> ({outs}) {{ {self.body} }}\n"


def _rebuilt(type_: str, condition: str) -> Sample:
    """A selection that builds its item again."""
    fields = {"T": "kn", "U": "nk", "W": "knz", "S": "kl"}[type_]
    record = ", ".join(f"{name}: v.{name}" for name in fields)
    return Sample(type_, type_, f"on x0(v) {{ if {condition} {{ emit o0 {{{record}}}; }} }}", weight=2)


def _mapped(ins: str, outs: str, record: str) -> Sample:
    """An operator that makes one item of one."""
    return Sample(ins, outs, f"on x0(v) {{ emit o0 {{{record}}}; }}")


_COUNT: Final = "with c = $v[v.k] else 0 { c = c + 1; "
_ROW: Final = "fn row(k: string, n: i64) -> list<T> { return [{k: k, n: n}]; }\n"
_WINDOW: Final = (
    "fn expire(ref w: deque<E>, before: i64) {"
    " while len(w) > 0 and front(w).tau + 2 < before { let r = pop_front(w); emit o0 {tau: r.tau + 2, k: r.k, n: r.n}; } }"
    " on x0(v) { expire($v, v.tau); push_back($v, v); } on mark(m) { expire($v, m); mark o0 m; }"
)
_OVER: Final = "if $v is p {{ if p.tau < {} {{ emit o0 p; $v = none; }} }}"
CATALOGUE: Final[Mapping[str, Sample]] = {
    # selections, plain and rebuilt
    "keep": Sample("T", "T", "on x0(v) { if v.n > 1 { emit o0 v; } }", weight=2),
    "mine": _rebuilt("T", 'v.k == "a"'),
    "few": _rebuilt("U", "v.n > 0"),
    "mine_u": _rebuilt("U", 'v.k == "a"'),
    "high": _rebuilt("W", "v.z > 1"),
    "mine_w": _rebuilt("W", 'v.k == "a"'),
    "low": _rebuilt("W", "v.n < 2"),
    "left": _rebuilt("S", 'v.k == "a"'),
    "right": _rebuilt("S", 'v.l == "a"'),
    # records renamed, permuted, widened, narrowed
    "bump": _mapped("T", "T", "k: v.k, n: v.n +% 1"),
    "permute": _mapped("T", "U", "n: v.n, k: v.k"),
    "restore": _mapped("U", "T", "k: v.k, n: v.n"),
    "widen": _mapped("T", "W", "k: v.k, n: v.n, z: v.n *% 2"),
    "widen_plain": _mapped("T", "W", 'k: "b", n: 1, z: v.n'),
    "exchange": _mapped("W", "W", "k: v.k, n: v.z, z: v.n"),
    "narrow": _mapped("W", "T", "k: v.k, n: v.z"),
    "narrowed": _mapped("W", "T", "k: v.k, n: v.n +% 1"),
    "both": _mapped("T", "S", 'k: v.k, l: if v.n > 0 {"a"} else {"b"}'),
    "swap": _mapped("S", "S", "k: v.l, l: v.k"),
    "one": _mapped("S", "T", 'k: v.l, n: if v.k == "a" {1} else {2}'),
    # other functions of items
    "late": Sample("T", "T", "on x0(v) { emit o0 {k: v.k, n: 2 - v.n}; return; }"),
    "copy": Sample("T", "T", "on x0(v) { for i in 0 .. v.n { emit o0 {k: v.k, n: i}; } }"),
    "call": Sample(
        "T", "T", "const c: i64 = 1; fn send(v: T) { if v.n > c { emit o0 v; } } on x0(v) { send(v); emit o0 {k: v.k, n: c}; }"
    ),
    "divide": Sample("T", "T", "on x0(v) { emit o0 {k: v.k, n: div.trunc(6, v.n)}; }"),
    "pairs": Sample("T", "T", "on x0[pop 2](w) { emit o0 {k: w[0].k, n: w[1].n}; }"),
    "fork": Sample("T", "TT", "on x0(v) { if v.n > 0 { emit o1 v; } emit o0 v; }"),
    "deal": Sample("T", "TT", 'on x0(v) { if v.k == "a" { emit o0 v; } else { emit o1 v; } }'),
    # state by key, and as a whole: what reads order
    "count": Sample("T", "T", f"on x0(v) {{ {_COUNT} emit o0 {{k: v.k, n: c}}; }} }}", "map<string, i64>", keys="k", weight=2),
    "count_u": Sample("U", "U", f"on x0(v) {{ {_COUNT} emit o0 {{n: c, k: v.k}}; }} }}", "map<string, i64>", keys="k"),
    "first": Sample(
        "T", "T", "on x0(v) { with c = $v[(v.k, v.n)] else false { if not c { emit o0 v; } c = true; } }",
        "map<(string, i64), bool>", keys="k",
    ),
    "total": Sample("T", "T", "on x0(v) { $v = $v +% v.n; emit o0 {k: v.k, n: $v}; }", "i64", "0"),
    "previous": Sample("T", "T", "on x0(v) { emit o0 {k: v.k, n: $v}; $v = v.n; }", "i64", "0"),
    # sinks
    "tally": Sample(
        "T", "", "on x0(v) { with c = $v[v.k] else 0 { c = c +% v.n; } }", "map<string, i64>", keys="k", commutes=True,
        view="row",
    ),
    "sum": Sample("T", "", "on x0(v) { $v = $v +% v.n; }", "i64", "0", commutes=True),
    "last": Sample("T", "", "on x0(v) { $v = v.n; }", "i64", "0", weight=2),
    "latest": Sample("T", "", "on x0(v) { with c = $v[v.k] else 0 { c = v.n; } }", "map<string, i64>", keys="k", view="row"),
    "horner": Sample("T", "", "on x0(v) { $v = $v *% 3 +% v.n; }", "i64", "0"),
    "log": Sample("T", "", "on x0(v) { push_back($v, v); }", "deque<T>"),
    # joins: in turns, in step, by the order of keys, as items come
    "turns": Sample("TT", "T", "phase 1 on x0(v) { emit o0 v; } phase 1 on x1(v) { emit o0 v; }"),
    "zip": Sample("TT", "T", "on x0[pop 1](v), x1[pop 1](w) { emit o0 {k: v[0].k, n: w[0].n}; }"),
    "merge": Sample("EE", "E", "on merge(x0(p), x1(q)) { if p is p { emit o0 p; } if q is q { emit o0 q; } }", weight=2),
    "either": Sample("TT", "T", 'on x0(v) { emit o0 v; } on x1(v) { emit o0 {k: "b", n: v.n}; }', free=True, weight=8),
    # ordered items, and marks of one's own
    "stamp": Sample("T", "E", "on x0(v) { $v = $v + 1; emit o0 {tau: $v, k: v.k, n: v.n}; mark o0 $v; }", "i64", "0", weight=2),
    "stamp_some": Sample(
        "T", "E", "on x0(v) { $v = $v + 1; if v.n > 0 { emit o0 {tau: $v, k: v.k, n: v.n}; } mark o0 $v; }", "i64", "0"
    ),
    "loose": _mapped("E", "T", "k: v.k, n: v.n"),
    "timed": _mapped("E", "T", "k: v.k, n: v.tau"),
    "keep_e": Sample("E", "E", "on x0(v) { if v.n > 0 { emit o0 v; } }", weight=2),
    "bump_e": _mapped("E", "E", "tau: v.tau, k: v.k, n: v.n +% 1"),
    "count_e": Sample(
        "E", "E", f"on x0(v) {{ {_COUNT} emit o0 {{tau: v.tau, k: v.k, n: c}}; }} }}", "map<string, i64>", keys="k"
    ),
    "window_e": Sample("E", "E", _WINDOW, "deque<E>"),
    "instants": Sample("E", "E",
                     f"on x0(v) {{ {_OVER.format('v.tau')} $v = v; }} on mark(m) {{ {_OVER.format('m')} mark o0 m; }}",
                     "E?", "none"),
    "later": Sample("E", "E", "on x0(v) { emit o0 {tau: v.tau + 2, k: v.k, n: v.n}; } on mark(m) { mark o0 m + 2; }"),
    "early": Sample("E", "E", "on x0(v) { emit o0 v; mark o0 v.tau; }"),
    "told": Sample(
        "E", "E", f"on x0(v) {{ {_COUNT} emit o0 v; mark o0 v.tau; }} }}", "map<string, i64>", keys="k"
    ),
    # deltas
    "select": Sample(
        "D", "D", "on x0(x) { let ins: list<T> = [r for r in x.ins if r.n > 0]; let del: list<T> = [r for r in x.del if r.n > 0];"
        " if len(ins) + len(del) > 0 { emit o0 {tau: x.tau, ins: ins, del: del}; } }",
    ),
    "loud": Sample("D", "D", "on x0(x) { emit o0 {tau: x.tau, ins: [{k: r.k, n: r.n +% 1} for r in x.ins], del: x.del}; }"),
    "alike": Sample("D", "D", 'on x0(x) { emit o0 {tau: x.tau, ins: [{k: "b", n: r.n} for r in x.ins], del: x.del}; }'),
    "net": Sample(
        "D", "D", "on x0(x) { let ins: list<T> = bag_minus(x.ins, x.del);"
        " if len(ins) > 0 { emit o0 {tau: x.tau, ins: ins, del: []}; } }"
    ),
    "rows": Sample(
        "D", "D", "on x0(x) { var del: list<T> = [];"
        " for r in x.ins { with q = $v[r.k] else {} { push_back(q, r); if len(q) > 1 { push(del, pop_front(q)); } } }"
        " emit o0 {tau: x.tau, ins: x.ins, del: del}; }",
        "map<string, deque<T>>", keys="k", weight=2,
    ),
    "counts": Sample(
        "D", "D", "on x0(x) { var ins: list<T> = [];"
        " for r in x.ins { with c = $v[r.n] else 0 { c = c +% 1; push(ins, {k: r.k, n: r.n}); } }"
        " for r in x.del { with c = $v[r.n] else 0 { c = c -% 1; } }"
        " if len(ins) > 0 { emit o0 {tau: x.tau, ins: ins, del: []}; } }",
        "map<i64, i64>", keys="n", weight=2,
    ),
    "meet": Sample(
        "DD", "D", "on merge(x0(l), x1(r)) {"
        " if r is r { for y in r.ins { with s = $v[y.k] else 0 { s = s +% y.n; } }"
        " for y in r.del { with s = $v[y.k] else 0 { s = s -% 1; } } }"
        " if l is l { var ins: list<T> = []; for x in l.ins { push(ins, {k: x.k, n: get($v, x.k, 0)}); }"
        " if len(ins) > 0 { emit o0 {tau: key, ins: ins, del: []}; } } }",
        "map<string, i64>", keys="k", weight=4,
    ),
    "united": Sample(
        "DD", "D", "on merge(x0(l), x1(r)) { var ins: list<T> = []; var del: list<T> = [];"
        " if l is l { for x in l.ins { push(ins, x); } for x in l.del { push(del, x); } }"
        " if r is r { for x in r.ins { push(ins, x); } for x in r.del { push(del, x); } }"
        " emit o0 {tau: key, ins: ins, del: del}; }",
        weight=2,
    ),
    "flat": Sample("D", "T", "on x0(x) { for r in x.ins { emit o0 r; } }"),
    "last_row": Sample("D", "H", "on x0(x) { var n = 0; for r in x.ins { n = r.n; } emit o0 {tau: x.tau, h: n}; }"),
    "folded": Sample(
        "D", "D", 'on x0(x) { for r in x.ins { $v = $v *% 3 +% r.n; } emit o0 {tau: x.tau, ins: [{k: "", n: $v}], del: []}; }',
        "i64", "0",
    ),
    "hashed": Sample("D", "H", "on x0(x) { emit o0 {tau: x.tau, h: i64.wrap(hash64(x.ins))}; }"),
    "hashed_row": Sample("D", "H", "on x0(x) { if len(x.ins) > 0 { emit o0 {tau: x.tau, h: i64.wrap(hash64(x.ins[0].k))}; } }"),
    "compared": Sample("D", "H", "on x0(x) { emit o0 {tau: x.tau, h: compare(x.ins, x.del)}; }"),
    "equal": Sample("D", "H", "on x0(x) { emit o0 {tau: x.tau, h: if x.ins == x.del {1} else {0}}; }"),
    "quiet": Sample("H", "H", "on x0(v) { if v.h > 0 { emit o0 v; } }"),
    "plain": Sample("H", "T", 'on x0(v) { emit o0 {k: "a", n: v.h & 3}; }'),
}  # fmt: skip
READERS: Final[Mapping[str, Sequence[str]]] = {
    "T": ("total", "previous", "last", "latest", "horner", "log", "pairs", "stamp", "sum", "tally"),
    "E": ("loose", "timed", "window_e", "instants"),
    "D": ("last_row", "folded", "flat"),
}
"""Who may stand behind a region, by the types of items: most show their order, or that of the rows in them."""
PASSED: Final = {name: f"pass_{name.lower()}" for name in "TUWSEDH"}
"""Operators that stand between an input and an output of one type."""
SOURCES: Final = {"T": 6, "E": 3, "D": 3, "W": 1, "S": 1}
"""Types of inputs, and how often."""


@define
class _Build:
    """A program while it grows: open queues with their types."""

    open: list[tuple[str, str]]
    operators: dict[str, str] = field(factory=dict[str, str])
    declared: list[str] = field(factory=list[str])
    uses: list[str] = field(factory=list[str])
    inputs: list[str] = field(factory=list[str])
    shared: str | None = None
    queues: int = 0

    def fresh(self, type_: str) -> str:
        self.queues += 1
        self.open.append((f"q{self.queues}", type_))
        return f"q{self.queues}"

    def fits(self, kind: Sample) -> bool:
        """Whether queues of its types are open."""
        types = [type_ for _, type_ in self.open]
        return all(types.count(each) >= kind.ins.count(each) for each in kind.ins)

    def take(self, type_: str, chosen: int) -> str:
        """An open queue of the type, which is not open any more."""
        found = [entry for entry in self.open if entry[1] == type_]
        entry = found[chosen % len(found)]
        self.open.remove(entry)
        return entry[0]

    def use(self, name: str, kind: Sample, ins: Sequence[str], said: str, *, share: bool, view: bool) -> None:
        self.operators[name] = kind.text(name)
        outs = [self.fresh(each) for each in kind.outs]
        state: list[str] = []
        if kind.variable is not None:
            mine = f"v{len(self.declared)}"
            if share and kind.variable == "i64":
                mine, self.shared = self.shared or mine, self.shared or mine
            state = [f"${mine}"]
            declared = f"var ${mine}: {kind.variable} = {kind.initial};\n"
            if declared not in self.declared:
                self.declared.append(declared)
                if view and kind.view is not None:
                    self.declared.append(f"output w_{mine}: T = rows(${mine}, {kind.view});\n")
        self.uses.append(f"{said}({', '.join(outs + state)}) <- {name}({', '.join([*ins, *state])});\n")

    def text(self) -> str:
        for queue, type_ in [entry for entry in self.open if entry[0] in self.inputs]:
            self.open.remove((queue, type_))
            self.use(
                PASSED[type_],
                Sample(type_, type_, "on x0(v) { emit o0 v; }"),
                [queue],
                "",
                share=False,
                view=False,
            )
        outputs = [f"output {queue}: {ORDERED.get(type_, type_)};\n" for queue, type_ in self.open]
        row = _ROW if any("rows(" in each for each in self.declared) else ""
        return "".join([TYPES, row, *self.operators.values(), *outputs, *self.declared, *self.uses])


@st.composite
def _said(draw: st.DrawFn, kind: Sample) -> str:
    """Directives and true promises for a use."""
    said = draw(st.sampled_from(("", "", "@Fuse(1) ", "@Fuse(2) ")))
    said += draw(st.sampled_from(("@Parallel() ", "@Parallel(2) ", "", "@Parallel() ")))
    said += draw(st.sampled_from(("", "", "", "", "", "", "@Group(a) ", "@Group(b) ")))
    if kind.commutes and draw(st.booleans()):
        said += "@Commutative() "
    if kind.keys is not None and draw(st.booleans()):
        said += f"@Keys({kind.keys}) "
    return said


_rows = st.tuples(st.sampled_from("ab"), st.integers(0, 2))


@st.composite
def _items(draw: st.DrawFn, type_: str, most: int) -> tuple[Any, ...]:
    """Items for an input; those of ordered ones at instants that ascend."""
    count = draw(st.integers(min(1, most), most))
    if type_ in ORDERED:
        tau, found = 0, list[Any]()
        for _ in range(count):
            tau += draw(st.integers(1, 3))
            if type_ == "E":
                found.append((tau, *draw(_rows)))
            else:
                found.append(
                    (tau, tuple(draw(st.lists(_rows, max_size=3))), tuple(draw(st.lists(_rows, max_size=1))))
                )
        return tuple(found)
    shapes: dict[str, st.SearchStrategy[Any]] = {
        "T": _rows,
        "W": st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 2)),
        "S": st.tuples(st.sampled_from("ab"), st.sampled_from("ab")),
    }
    return tuple(draw(st.lists(shapes[type_], min_size=count, max_size=count)))


def _race(draw: st.DrawFn, build: _Build) -> None:
    """Two operators that share a variable, or one that takes items as they come: what it sends depends on who is first."""
    names = draw(
        st.sampled_from((("either",), ("total", "total"), ("total", "previous"), ("previous", "last")))
    )
    for name in names:
        kind = CATALOGUE[name]
        ins = [build.take(each, 0) for each in kind.ins]
        build.use(name, kind, ins, draw(_said(kind)), share=True, view=False)


def _begun(types: Sequence[str]) -> _Build:
    """A program of nothing but inputs of these types."""
    build = _Build([])
    for number, type_ in enumerate(types):
        build.inputs.append(f"i{number}")
        build.open.append((f"i{number}", type_))
        build.declared.append(f"input i{number}: {ORDERED.get(type_, type_)};\n")
    return build


@st.composite
def catalogue_cases(draw: st.DrawFn, steps: int = 6, items: int = 4, *, free: bool = False) -> ProgramCase:
    """Programs of up to `steps` operators with up to `items` items on an input, deterministic by construction unless `free`."""
    kinds = {name: kind for name, kind in CATALOGUE.items() if free or not kind.free}
    sources = [each for each, weight in SOURCES.items() for _ in range(weight)]
    chosen = ["T", "T"] if free else draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2))
    if chosen == ["E"] and draw(st.booleans()):
        chosen = ["E", "E"]
    build = _begun(chosen)
    if free:
        _race(draw, build)
    for _ in range(draw(st.integers(0 if free else min(2, steps), steps))):
        fitting: dict[tuple[str, str], list[str]] = {}  # by types, of which some have few operators
        for name, kind in kinds.items():
            if build.fits(kind):
                fitting.setdefault((kind.ins, kind.outs), []).extend([name] * kind.weight)
        if not fitting:
            break
        groups = [group for group in fitting.values() for _ in range(3 if len(group) > 6 else 1)]
        name = draw(st.sampled_from(draw(st.sampled_from(groups))))
        kind = kinds[name]
        ins = [build.take(each, draw(st.integers(0, 3))) for each in kind.ins]
        share = free and draw(st.booleans())
        build.use(name, kind, ins, draw(_said(kind)), share=share, view=draw(st.booleans()))
    data = {f"i{number}": draw(_items(type_, items)) for number, type_ in enumerate(chosen)}
    return ProgramCase(build.text(), data, by_line=True)


@st.composite
def joined_cases(draw: st.DrawFn) -> ProgramCase:
    """Programs on two inputs of deltas, whose operators are all to be replicated: a join, what feeds it, and what reads it."""
    build = _begun("DD")
    alone = [name for name, kind in CATALOGUE.items() if kind.ins == kind.outs == "D"]
    before = draw(st.lists(st.sampled_from(alone), max_size=2))
    after = draw(st.lists(st.sampled_from(["select", "loud", "rows", *alone]), max_size=1))
    for name in (*before, draw(st.sampled_from(["meet", "united"])), *after):
        kind = CATALOGUE[name]
        ins = [build.take("D", draw(st.integers(0, 1))) for _ in kind.ins]
        build.use(name, kind, ins, "@Parallel() ", share=False, view=False)
    return ProgramCase(build.text(), {f"i{number}": draw(_items("D", 4)) for number in (0, 1)}, by_line=True)


@st.composite
def tree_cases(draw: st.DrawFn) -> ProgramCase:
    """Programs of a tree of operators behind one input that are all to be replicated, so that a region has several exits.

    Leaves accumulate, of which some have views, read the order of what they get, or are outputs.
    """
    build = _begun("T")
    branches = [name for name, kind in CATALOGUE.items() if kind.ins == "T" and set(kind.outs) <= {"T"}]
    chosen = draw(st.lists(st.sampled_from(branches), min_size=1, max_size=5))
    for name in (draw(st.sampled_from(["fork", "deal"])), *chosen):
        kind = CATALOGUE[name]
        if not build.fits(kind):
            break
        said = draw(st.sampled_from(["@Parallel() ", "@Parallel() ", ""]))
        said += "@Commutative() " if kind.commutes and draw(st.booleans()) else ""
        place = draw(st.integers(0, 3))
        build.use(name, kind, [build.take("T", place)], said, share=False, view=draw(st.booleans()))
    rows = draw(st.lists(_rows, min_size=2, max_size=4))
    return ProgramCase(build.text(), {"i0": tuple(rows)}, by_line=True)


@st.composite
def region_cases(draw: st.DrawFn) -> ProgramCase:
    """Programs of one or two operators that are to be replicated, and who reads what they send.

    There are enough items, and they differ enough, to tell one order from another.
    """
    type_ = draw(st.sampled_from("TTTED"))
    build = _begun([type_])
    members = [name for name, kind in CATALOGUE.items() if kind.ins == kind.outs == type_]
    chosen = draw(st.lists(st.sampled_from(members), min_size=1, max_size=2, unique=True))
    reader = draw(st.none() | st.sampled_from(READERS[type_]) | st.sampled_from(READERS[type_]))
    for name in (*chosen, *(() if reader in (None, *chosen) else (reader,))):
        kind = CATALOGUE[name]
        said = "@Parallel() " if name in chosen else ""
        if kind.commutes and draw(st.booleans()):
            said += "@Commutative() "
        build.use(name, kind, [build.take(type_, 0)], said, share=False, view=False)
    rows = draw(st.lists(_rows, min_size=3, max_size=4, unique=True))
    data: dict[str, Sequence[Any]] = {
        "T": rows,
        "E": [(tau, *row) for tau, row in enumerate(rows)],
        "D": [(1, tuple(rows[:2]), ()), (2, tuple(rows[2:]), tuple(rows[:1]))],
    }
    return ProgramCase(build.text(), {"i0": tuple(data[type_])}, by_line=True)
