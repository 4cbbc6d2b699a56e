"""Linear operators become fewer: as many items as before, and the same up to rounding, on graphs made at random."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any

import pytest

import river
from calculus import FirstCome, run
from optimizers.linear import Linear
from river.il.erase import erase, inputs
from river.il.observe import Observation, observe
from river.il.pretty import pretty
from river.il.verify import verify
from river.passes import apply
from river.platform import Platform
from river.testing.seeds import chance

if TYPE_CHECKING:
    from random import Random

    from river.il.graph import Graph
    from river.il.program import Program

FILTERS = """
float->float filter Fir(int n, int pops, int pushes, float scale) {
  float[pushes][n] h;
  init { for (int j = 0; j < pushes; j++) for (int i = 0; i < n; i++) h[j][i] = ((i * 7 + j * 3) % 5 - 2) * scale; }
  work peek n pop pops push pushes {
    for (int j = 0; j < pushes; j++) {
      float sum = j - 1;
      for (int i = 0; i < n; i++) sum += peek(i) * h[j][i];
      push(sum);
    }
    for (int i = 0; i < pops; i++) pop();
  }
}
float->float filter Odd { work peek 2 pop 1 push 1 { float x = pop(); push(x > 0 ? x : 0.5 * peek(0)); } }
float->float filter Keep { float last; work pop 1 push 1 { float x = pop(); push(x - last); last = x; } }
float->float filter Two {
  float a(float x) { return 2 * x; }
  work pop 2 push 2 { float[2] w; w[0] = pop(); w[1] = pop(); push(-a(w[1])); push(w[0] / 4 + w[1]); }
}
"""
LENGTHS = (1, 2, 5, 13, 40)


class Graphs:
    """Streams at random, with what each takes and gives in a steady state."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def filter(self) -> tuple[str, int, int]:
        match self.chance.randrange(10):
            case 0:
                return "Odd()", 1, 1
            case 1:
                return "Keep()", 1, 1
            case 2:
                return "Two()", 2, 2
            case 3:
                return "Identity<float>()", 1, 1
            case _:
                pops, pushes = self.chance.choice([1, 1, 1, 2, 3]), self.chance.choice([1, 1, 1, 2])
                peeks = pops + self.chance.randrange(5)
                return (
                    f"Fir({peeks}, {pops}, {pushes}, {self.chance.choice([0.25, 0.5, -0.125])})",
                    pops,
                    pushes,
                )

    def any(self, depth: int) -> tuple[str, int, int]:
        if not depth or not self.chance.randrange(4):
            return self.filter()
        parts = [self.any(depth - 1) for _ in range(self.chance.randrange(1, 4))]
        if self.chance.randrange(2):
            taken, given = 1, 1
            for i, (_, took, gave) in enumerate(parts):
                whole = lcm(given, took) if i else took
                taken, given = (taken * whole // given, gave * whole // took) if i else (took, gave)
            return f"pipeline {{ {_added(parts)} }}", taken, given
        if self.chance.randrange(2):
            whole = lcm(*(took for _, took, _ in parts))
            joins = [gave * whole // took for _, took, gave in parts]
            text = f"splitjoin {{ split duplicate; {_added(parts)} join roundrobin({_commas(joins)}); }}"
            return text, whole, sum(joins)
        splits, joins = [took for _, took, _ in parts], [gave for _, _, gave in parts]
        text = f"splitjoin {{ split roundrobin({_commas(splits)}); {_added(parts)} join roundrobin({_commas(joins)}); }}"
        return text, sum(splits), sum(joins)

    def program(self) -> str:
        return f"{FILTERS} float->float pipeline Main {{ {_added([self.any(3), self.any(2)])} }}"


def _added(parts: list[tuple[str, int, int]]) -> str:
    return " ".join(f"add {text}{'' if text.endswith('}') else ';'}" for text, _, _ in parts)


def _commas(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def outputs(graph: Graph, items: list[float]) -> list[Any]:
    """What the calculus makes of a program."""
    outcome = run(erase(graph), inputs(graph, {"input": items}), FirstCome()).outcome
    assert outcome is not None
    found = observe(graph, outcome)
    assert isinstance(found, Observation)
    return list(dict(found.outputs)["output"])


def linear(text: str) -> tuple[river.Compiled, Program]:
    """A program, and what becomes of it."""
    compiled = river.compile(FILTERS + text if "filter Fir" not in text else text, lang="streamit")
    applied = apply(compiled.program, [Linear()], Platform(1, 1), compiled.templates)
    assert not applied.remarks
    return compiled, applied.program


def operators(program: Program) -> list[str]:
    return [use.operator.rstrip("_0123456789") for use in program.uses]


@pytest.mark.parametrize("number", range(6))
def test_random_graphs_give_as_many_items_and_the_same_up_to_rounding(number: int) -> None:
    draw = chance("linear graphs", number)
    compiled, after = linear(Graphs(draw).program())
    graph = verify(after, compiled.templates)
    again = apply(after, [Linear()], Platform(1, 1), compiled.templates)
    assert again.program == after
    for length in LENGTHS:
        items = [draw.uniform(-1, 1) for _ in range(length)]
        expected = outputs(compiled.graph, items)
        assert outputs(graph, items) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_bands_become_one_filter() -> None:
    one, other = "add Fir(16, 1, 1, 0.5);", "add Fir(16, 1, 1, 0.25);"
    band = f"pipeline {{ add splitjoin {{ split duplicate; {one} {other} join roundrobin; }} add Two; }}"
    bands = " ".join(["add " + band] * 3)
    total = "add float->float filter { work pop 6 push 1 { push(pop() + pop() + pop() + pop() + pop() + pop()); } }"
    text = f"float->float pipeline Main {{ add splitjoin {{ split duplicate; {bands} join roundrobin(2); }} {total} }}"
    _, after = linear(text)
    assert operators(after) == ["linear"]


def test_filters_behind_one_another_see_each_item_where_it_is() -> None:
    compiled, after = linear(
        "float->float pipeline Main { add Fir(3, 1, 1, 0.5); add Fir(5, 2, 1, 0.5); add Two; }"
    )
    items = [float(i * i % 7) for i in range(24)]
    expected = outputs(compiled.graph, items)
    assert operators(after) == ["linear"]
    assert outputs(verify(after, compiled.templates), items) == pytest.approx(expected)
    assert len(expected) == 8


def test_what_would_take_longer_stays_apart() -> None:
    up = "add Fir(16, 1, 1, 0.5); add Fir(1, 1, 2, 1.0); add Odd;"
    _, after = linear(f"float->float pipeline Main {{ add Keep; {up} }}")
    assert operators(after) == ["Keep", "linear", "Fir", "Odd"]


@pytest.mark.parametrize(
    ("taps", "pops", "loops"), [(4, 1, 0), (7, 1, 1), (63, 1, 1), (64, 1, 1), (150, 1, 2), (150, 2, 1)]
)
def test_a_long_sum_is_made_anew(taps: int, pops: int, loops: int) -> None:
    """Products are added with one rounding, and one after the other or in four parts; 150 terms have a rest."""
    compiled, after = linear(f"float->float pipeline Main {{ add Odd; add Fir({taps}, {pops}, 1, 0.5); }}")
    assert operators(after) == ["Odd", "linear" if loops else "Fir"]
    text = pretty(after).partition("operator linear")[2]
    assert (text.count("for i in"), "sum_h0_3" in text) == (loops, taps >= 64 and pops == 1)
    assert apply(after, [Linear()], Platform(1, 1), compiled.templates).program == after
    draw = chance("long sums", taps, pops)
    items = [draw.uniform(-1, 1) for _ in range(taps + 9)]
    expected = outputs(compiled.graph, items)
    assert outputs(verify(after, compiled.templates), items) == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_what_keeps_something_or_decides_by_items_is_left() -> None:
    _, after = linear("float->float pipeline Main { add Odd; add Keep; add Fir(3, 1, 1, 0.5); add Odd; }")
    assert operators(after) == ["Odd", "Keep", "Fir", "Odd"]


def test_what_would_come_later_is_left() -> None:
    """The branches look ahead differently: an item of the first is sent before the second's can be computed."""
    two = "pipeline { add Fir(2, 1, 1, 0.5); add Fir(2, 1, 1, 0.5); }"
    fork = f"add splitjoin {{ split duplicate; add {two} add Fir(9, 1, 1, 0.5); join roundrobin; }}"
    compiled, after = linear(f"float->float pipeline Main {{ {fork} }}")
    graph = verify(after, compiled.templates)
    for length in range(14):
        items = [float(i) for i in range(length)]
        assert len(outputs(graph, items)) == len(outputs(compiled.graph, items))
    assert "join" in operators(after)


def test_splitters_and_joiners_of_long_turns_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimizers.linear.MOST", 8)
    fork = "add splitjoin { split roundrobin(10); add Two; add Two; join roundrobin(10); }"
    compiled, after = linear(f"float->float pipeline Main {{ {fork} add Two; add Two; }}")
    assert operators(after) == ["split", "Two", "Two", "join", "linear"]
    items = [float(i * i % 7) for i in range(47)]
    assert outputs(verify(after, compiled.templates), items) == outputs(compiled.graph, items)
