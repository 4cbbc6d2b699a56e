"""Random small programs of River IL, well-typed by construction, with the directives of passes and inputs to run over.

A program is a chain of operators from a catalogue, some with a side branch; what the operators do is small on purpose: the
laws explore all schedules. Programs shrink towards fewer operators, then fewer items.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from river.classes import field, frozen
from river.il.parse import parse
from river.il.program import Program
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.il.program import Decl


@frozen
class Sample:
    """An operator of the catalogue: its text (with NAME for its name), and the type of its variable, if it has one."""

    text: str
    variable: str | None = None
    initial: str = "{}"
    keys: str | None = None
    sink: bool = False
    fork: bool = False


@frozen
class ProgramCase:
    """A program and contents for its inputs. `by_line`: each line is a declaration, and is read once for all cases."""

    text: str
    data: Mapping[str, Sequence[Any]] = field(hash=False)
    by_line: bool = False

    @property
    def program(self) -> Program:
        """The program, read."""
        if not self.by_line:
            return parse(Source("case.river", self.text))
        first, *lines = self.text.splitlines()
        return Program(tuple(decl for line in lines for decl in _declared(f"{first}\n{line}\n")))


@lru_cache(2_000)
def _declared(text: str) -> tuple[Decl, ...]:
    return parse(Source("case.river", text)).decls


ITEMS: Final = {
    "keep": Sample("operator NAME(x: T) -> (out: T) { on x(v) { if v.n > 1 { emit out v; } } }"),
    "mine": Sample('operator NAME(x: T) -> (out: T) { on x(v) { if v.k == "a" { emit out v; } } }'),
    "bump": Sample("operator NAME(x: T) -> (out: T) { on x(v) { emit out {k: v.k, n: v.n +% 1}; } }"),
    "late": Sample("operator NAME(x: T) -> (out: T) { on x(v) { emit out {k: v.k, n: 2 - v.n}; return; } }"),
    "group": Sample(
        'operator NAME(x: T) -> (out: T) { on x(v) { emit out {k: if v.n > 1 {"x"} else {v.k}, n: v.n}; } }'
    ),
    "copy": Sample(
        "operator NAME(x: T) -> (out: T) { on x(v) { for i in 0 .. v.n { emit out {k: v.k, n: i}; } } }"
    ),
    "call": Sample(
        "operator NAME(x: T) -> (out: T) { const c: i64 = 1; fn send(v: T) { if v.n > c { emit out v; } }"
        " on x(v) { send(v); emit out {k: v.k, n: c}; } }"
    ),
    "trap": Sample(
        "operator NAME(x: T) -> (out: T) { on x(v) { emit out {k: v.k, n: div.trunc(6, v.n)}; } }"
    ),
    "count": Sample(
        "operator NAME(x: T; $v: map<string, i64>) -> (out: T)"
        " { on x(v) { with c = $v[v.k] else 0 { c = c + 1; emit out {k: v.k, n: c}; } } }",
        "map<string, i64>",
        keys="k",
    ),
    "first": Sample(
        "operator NAME(x: T; $v: map<(string, i64), bool>) -> (out: T)"
        " { on x(v) { with c = $v[(v.k, v.n)] else false { if not c { emit out v; } c = true; } } }",
        "map<(string, i64), bool>",
        keys="k",
    ),
    "total": Sample(
        "operator NAME(x: T; $v: i64) -> (out: T) { on x(v) { $v = $v +% v.n; emit out {k: v.k, n: $v}; } }",
        "i64",
        "0",
    ),
    "tally": Sample(
        "operator NAME(x: T; $v: map<string, i64>) -> () { on x(v) { with c = $v[v.k] else 0 { c = c +% v.n; } } }",
        "map<string, i64>",
        keys="k",
        sink=True,
    ),
    "fork": Sample(
        "operator NAME(x: T) -> (out: T, side: T) { on x(v) { if v.n > 0 { emit side v; } emit out v; } }",
        fork=True,
    ),
}

DELTAS: Final = {
    "select": Sample(
        "operator NAME(d: D by tau) -> (out: D by tau) { on d(x) { let ins: list<T> = [r for r in x.ins if r.n > 0];"
        " let del: list<T> = [r for r in x.del if r.n > 0];"
        " if len(ins) + len(del) > 0 { emit out {tau: x.tau, ins: ins, del: del}; } } }"
    ),
    "loud": Sample(
        "operator NAME(d: D by tau) -> (out: D by tau)"
        " { on d(x) { emit out {tau: x.tau, ins: [{k: r.k, n: r.n +% 1} for r in x.ins], del: x.del}; } }"
    ),
    "net": Sample(
        "operator NAME(d: D by tau) -> (out: D by tau) { on d(x) { let ins: list<T> = bag_minus(x.ins, x.del);"
        " if len(ins) > 0 { emit out {tau: x.tau, ins: ins, del: []}; } } }"
    ),
    "rows": Sample(
        "operator NAME(d: D by tau; $v: map<string, deque<T>>) -> (out: D by tau) { on d(x) { var del: list<T> = [];"
        " for r in x.ins { with q = $v[r.k] else {} { push_back(q, r); if len(q) > 1 { push(del, pop_front(q)); } } }"
        " emit out {tau: x.tau, ins: x.ins, del: del}; } }",
        "map<string, deque<T>>",
        keys="k",
    ),
    "counts": Sample(
        "operator NAME(d: D by tau; $v: map<i64, i64>) -> (out: D by tau) { on d(x) { var ins: list<T> = [];"
        " for r in x.ins { with c = $v[r.n] else 0 { c = c +% 1; push(ins, {k: r.k, n: r.n}); } }"
        " for r in x.del { with c = $v[r.n] else 0 { c = c -% 1; } }"
        " if len(ins) > 0 { emit out {tau: x.tau, ins: ins, del: []}; } } }",
        "map<i64, i64>",
        keys="n",
    ),
    "window": Sample(
        "operator NAME(d: D by tau; $v: deque<{t: i64, r: T}>) -> (out: D by tau) {"
        " fn expire(ref w: deque<{t: i64, r: T}>, before: i64) { while len(w) > 0 { let end = front(w).t + 2;"
        " if end >= before { break; } var gone: list<T> = []; while len(w) > 0 { if front(w).t + 2 != end { break; }"
        " push(gone, pop_front(w).r); } emit out {tau: end, ins: [], del: gone}; } }"
        " on d(x) { expire($v, x.tau); var gone: list<T> = [];"
        " while len($v) > 0 { if front($v).t + 2 != x.tau { break; } push(gone, pop_front($v).r); }"
        " for r in x.ins { push_back($v, {t: x.tau, r: r}); } emit out {tau: x.tau, ins: x.ins, del: gone}; }"
        " on mark(k) { expire($v, k); mark out k; } }",
        "deque<{t: i64, r: T}>",
    ),
}

HEAD: Final = "river 1;\ntype T = {k: string, n: i64};\ntype D = {tau: i64, ins: list<T>, del: list<T>};\n"


@st.composite
def _annotations(draw: st.DrawFn, kind: Sample) -> str:
    """Directives and true promises for a use."""
    said = ""
    if draw(st.booleans()):
        said += f"@Fuse({draw(st.integers(1, 2))}) "
    said += draw(st.sampled_from(("@Parallel() ", "@Parallel(2) ", "", "@Parallel() ")))
    if kind.sink and draw(st.booleans()):
        said += "@Commutative() "
    if kind.keys is not None and draw(st.booleans()):
        said += f"@Keys({kind.keys}) "
    return said


@st.composite
def _programs(draw: st.DrawFn, catalogue: Mapping[str, Sample], item: str, most: int) -> str:
    """A chain of operators of the catalogue; a fork sends what it sends twice to an output of its own."""
    names = draw(st.lists(st.sampled_from(sorted(catalogue)), min_size=1, max_size=most))
    end = next((i for i, name in enumerate(names) if catalogue[name].sink), len(names) - 1)
    chosen = [catalogue[name] for name in names[: end + 1]]
    text = f"{HEAD}input q0: {item};\n"
    uses = ""
    for i, (name, kind) in enumerate(zip(names, chosen, strict=False)):
        title = f"{name}{i}"
        text += kind.text.replace("NAME", title) + "\n"
        ins, outs = [f"q{i}"], [] if kind.sink else [f"q{i + 1}"]
        if kind.fork:
            outs.append(f"s{i}")
            text += f"output s{i}: {item};\n"
        if kind.variable is not None:
            text += f"var $v{i}: {kind.variable} = {kind.initial};\n"
            ins.append(f"$v{i}")
            outs.append(f"$v{i}")
        uses += f"{draw(_annotations(kind))}({', '.join(outs)}) <- {title}({', '.join(ins)});\n"
    last = len(chosen)
    text += "" if chosen[-1].sink else f"output q{last}: {item};\n"
    return text + uses


rows = st.tuples(st.sampled_from("ab"), st.integers(0, 2))
"""Rows of type T."""


@st.composite
def item_cases(draw: st.DrawFn, most: int = 3, items: int = 3) -> ProgramCase:
    """Programs on items in no order."""
    text = draw(_programs(ITEMS, "T", most))
    data = draw(st.lists(rows, min_size=min(2, items), max_size=items))
    return ProgramCase(text, {"q0": tuple(data)}, by_line=True)


@st.composite
def delta_cases(draw: st.DrawFn, most: int = 3, items: int = 3) -> ProgramCase:
    """Programs on deltas, one for each instant; what is deleted need not have been there."""
    text = draw(_programs(DELTAS, "D by tau", most))
    instants = draw(st.lists(st.integers(1, 3), min_size=1, max_size=items))
    data: list[Any] = []
    tau = 0
    for step in instants:
        tau += step
        inserted, deleted = draw(st.lists(rows, max_size=2)), draw(st.lists(rows, max_size=1))
        data.append((tau, tuple(inserted), tuple(deleted)))
    return ProgramCase(text, {"q0": tuple(data)}, by_line=True)


cases = item_cases() | delta_cases()
"""Cases of both sorts."""
