"""Random acyclic graphs of River IL in which much is computed twice: for passes that find what is equal, and what keeps step.

Operators are taken from a few; a stream that several read is duplicated by chains of copies. No operator traps.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from river.testing.graph_strategies import HEAD, VARIABLES

OPERATORS: Final = """
operator pass(x: i64) -> (y: i64) { on x[pop 1](w) { emit y w[0]; } }
operator thrice(x: i64) -> (y: i64) { on x(v) { emit y v *% 3 +% 1; } }
operator pair(x: i64) -> (y[push 1]: i64) { on x[pop 2](w) { emit y w[0] -% w[1]; } }
operator total(x: i64) -> (y[push 1]: i64) {
  on x[peek 5, pop 4](w) { var s = 0; for i in 0 .. 5 { s = s *% 2 +% w[i]; } emit y s; }
}
operator two(x: i64) -> (y[push 2]: i64) { on x[pop 1](w) { emit y w[0] *% 7; emit y w[0] +% 7; } }
operator three(x: i64) -> (y: i64) { on x[peek 2, pop 1](v) { emit y v[0]; let w = v[1]; emit y w; emit y v[0] +% w; } }
operator soon(x: i64) -> (y[push 3]: i64) {
  on x[pop 3, early 1: 1, 2: 2](w) { emit y w[0]; emit y w[0] *% 3 +% w[1]; emit y w[2]; }
}
operator step(x: i64) -> (y[push 1]: i64) { const c: i64 = 5; on x[pop 1](w) { emit y w[0] *% c; } }
operator deals(x: i64) -> (a: i64, b: i64) { phase 1 on x(v) { emit a v; } phase 1 on x(v) { emit b v; } }
operator turns(a: i64, b: i64) -> (y: i64) { phase 1 on a(v) { emit y v; } phase 1 on b(v) { emit y v; } }
operator uneven(a: i64, b: i64 = [4]) -> (y: i64) {
  phase 1 on a(v) { emit y v; } phase 2 on b(v) { emit y v; } phase 1 on a(v) { emit y v; }
}
operator either(a: i64, b: i64) -> (y: i64) { on a(v) { emit y v; } on b(v) { emit y v *% 2; } }
"""

ONE: Final = (
    "affine",
    "thrice",
    "fir",
    "pair",
    "pass",
    "total",
    "late",
    "two",
    "three",
    "soon",
    "step",
    "sum",
    "some",
)
TWO: Final = ("turns", "zip", "uneven", "join")
SPLITS: Final = ("deals", "deal")


@st.composite
def dags(draw: st.DrawFn, steps: int) -> str:
    """A program with one input `x` of type i64, deterministic by construction."""
    made: list[tuple[str, tuple[int, ...], int]] = []  # operator, streams that it reads, outputs
    count = 1
    for _ in range(draw(st.integers(1, steps))):
        kind = draw(st.sampled_from(["one", "one", "two", "two", "split"]))
        names = ONE if kind == "one" else TWO if kind == "two" else SPLITS
        ins = draw(st.tuples(*[st.integers(0, count - 1)] * (2 if kind == "two" else 1)))
        outs = 2 if kind == "split" else 1
        made.append((draw(st.sampled_from(names)), ins, outs))
        count += outs
    return text(made)


def text(made: list[tuple[str, tuple[int, ...], int]]) -> str:
    """The program: operators with the numbers of the streams that they read (0: the input; then their outputs, in order)."""
    uses: list[str] = []
    readers: dict[int, list[str]] = {0: []}
    declared: list[str] = ["input x: i64;"]
    for number, (operator, ins, outs) in enumerate(made):
        taken = [f"r{number}_{i}" for i in range(len(ins))]
        for name, stream in zip(taken, ins, strict=True):
            readers[stream].append(name)
        sent = list(range(len(readers), len(readers) + outs))
        readers |= {stream: [] for stream in sent}
        ends = [f"s{stream}" for stream in sent]
        if operator in VARIABLES:
            declared.append(f"var $v{number}: {VARIABLES[operator]};")
            ends.append(f"$v{number}")
            taken.append(f"$v{number}")
        uses.append(f"({', '.join(ends)}) <- {operator}({', '.join(taken)});")
    for stream, names in readers.items():
        source = f"s{stream}" if stream else "x"
        if not names or not stream:
            names.append(f"out{stream}")
            declared.append(f"output out{stream}: i64;")
        if len(names) == 1:
            uses.append(f"({names[0]}) <- {'thrice' if names[0].startswith('out') else 'pass'}({source});")
        while len(names) > 1:
            name = names.pop(0)
            rest = names[0] if len(names) == 1 else f"c{stream}_{len(names)}"
            uses.append(f"({name}, {rest}) <- copy({source});")
            source = rest
    return "\n".join([HEAD.replace("operator either", "operator either_of"), OPERATORS, *declared, *uses])
