"""How many steps a loop takes that makes the graph is told before it has run: never more than it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frontends.streamit import FRONTEND, elaborate
from frontends.streamit.turns import least_turns
from river.diagnostics import Rejected
from river.source import Source

PROGRAMS = Path(__file__).parents[1] / "programs" / "streamit"

EXACTLY = [
    "for (int k = 0; k < n; k++) a[k] = k;",
    "for (k = n - 1; k >= 0; k -= 3) { a[k] = k; a[0] = 1; }",
    "for (int k = n; k > 0; k = k - 1) ;",
    "for (int k = 2; k <= n; k += 4) { { s += k; } }",
    "for (int k = 5; k < 5; k++) s++;",
    "for (int i = 0; i < 3; i++) for (int k = 0; k < n; k++) s += k;",
    "k = 7; for (; k < n; k++) s++;",
]
AT_LEAST = [
    "while (k < n) { s++; k++; }",
    "k = 1; while (k < n) { k += 2; while (s < 9) s++; }",
    "for (int i = 0; i < n; i++) for (int k = 0; k < i; k++) s++;",
    "for (int i = 0; i < n; i++) { if (i > 3) break; s++; }",
    "for (int i = 0; i < n; i++) { if (i > 3) continue; s++; s++; }",
    "for (int i = 0; i < n; i++) i = n;",
    "for (int i = 0; i < n; i++) n = 4;",
    "for (int i = 0; i < n; i++) { while (k < n) k++; k = n; }",
    "for (int i = 0; i < 2; i++) { for (; k < n; k++) s++; }",
    "s = n; for (int i = 0; i < 2; i++) { for (int j = 0; j < s; j++) k++; s = 0; }",
    "for (int i = 0; i < 2; i++) for (int j = 0, m = 3; j < m; j++) s++;",
    "a[0] = n; for (int i = 0; i < a[0]; i++) a[0] = 2;",
    "for (int i = 0; i < H.zero(a); i++) s++;",
    "a[0] = n; for (int i = 0; i < a[0]; i++) { int j = H.zero(a); }",
    "for (int i = 0; i > -n; i -= 1) { s++; if (s > 9) i = -n; }",
    "for (int i = 0; i != n; i++) s++;",
]
PROGRAM = """
helper H {{ int zero(int[20] a) {{ a[0] = 0; return 3; }} }}
int->int pipeline P {{ int n = 20; int k, s; int[20] a; {} add Identity<int>; }}
"""


def loops(text: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What is told of the loops that make a program's graph, and what they take."""
    found: list[tuple[int, int]] = []
    elaborator: Any = elaborate._Elaborator
    runs = elaborator.loop

    def loop(self: Any, item: Any, values: Any, top: Any) -> Any:
        told, before = least_turns(item, values), self.steps
        left = runs(self, item, values, top)
        first = len(getattr(item, "first", ()))
        found.append((told, self.steps - before - first))
        return left

    monkeypatch.setattr(elaborator, "loop", loop)
    FRONTEND.check(FRONTEND.parse(Source("t.str", text)))
    return found


@pytest.mark.parametrize("text", EXACTLY)
def test_the_steps_of_loops_that_count_are_known(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = loops(PROGRAM.format(text), monkeypatch)
    assert found
    assert all(told == taken for told, taken in found), found


@pytest.mark.parametrize("text", AT_LEAST)
def test_no_loop_takes_less_than_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = loops(PROGRAM.format(text), monkeypatch)
    assert found
    assert all(told <= taken for told, taken in found), found


@pytest.mark.some(4)
@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.str")))
def test_no_loop_of_a_program_takes_less(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = loops((PROGRAMS / f"{name}.str").read_text(), monkeypatch)
    assert all(told <= taken for told, taken in found), found


def test_a_loop_that_takes_too_many_is_refused_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped = 0
    elaborator: Any = elaborate._Elaborator
    steps = elaborator.step

    def step(self: Any, span: Any) -> None:
        nonlocal stepped
        stepped += 1
        steps(self, span)

    monkeypatch.setattr(elaborator, "step", step)
    text = "for (int i = 0; i < 3000; i++) for (int k = 0; k < 1000; k++) s += k;"
    with pytest.raises(Rejected) as caught:
        FRONTEND.check(FRONTEND.parse(Source("t.str", PROGRAM.format(text))))
    (found,) = caught.value.diagnostics
    assert found.code == "streamit-endless"
    assert "this loop alone 6,009,000" in found.message
    assert found.help is not None
    assert "`init`" in found.help
    assert stepped < 10
