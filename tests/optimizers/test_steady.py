"""A split and what follows it become one operator that does a whole steady state, and computes the same; where not, it stays."""

from __future__ import annotations

from math import gcd, lcm
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen

import river
from optimizers import Fusion, playing
from optimizers.playing import WIDEST
from optimizers.steady import steadied
from river.il.pretty import pretty
from river.lang import typed
from river.passes import Verified, improved
from river.platform import Platform
from river.testing import seeds

if TYPE_CHECKING:
    from river.driver import Compiled

WHOLE = {
    "rows and columns": """int->int pipeline Main { add Rows; add Columns; }
      int->int splitjoin Rows { split roundrobin(3); for (int i = 0; i < 4; i++) add Line(3); join roundrobin(3); }
      int->int splitjoin Columns { split roundrobin; for (int i = 0; i < 3; i++) add Line(4); join roundrobin; }
      int->int filter Line(int n) { work pop n push n { int s = n;
        for (int i = 0; i < n; i++) { s = 3 * s + peek(i); push(s); } for (int i = 0; i < n; i++) pop(); } }""",
    "a network": """int->int pipeline Main { add Sort(8, true); }
      int->int pipeline Sort(int n, boolean up) { if (n > 1) { add splitjoin { split roundrobin(n / 2);
          add Sort(n / 2, true); add Sort(n / 2, false); join roundrobin(n / 2); } add Merge(n, up); }
        else add Identity<int>; }
      int->int pipeline Merge(int n, boolean up) {
        add splitjoin { split roundrobin(1); for (int i = 0; i < n / 2; i++) add Exchange(up); join roundrobin(1); }
        if (n > 2) add splitjoin { split roundrobin(n / 2); add Merge(n / 2, up); add Merge(n / 2, up);
          join roundrobin(n / 2); } }
      int->int filter Exchange(boolean up) { work pop 2 push 2 { int a = pop(); int b = pop();
        if ((a <= b) == up) { push(a); push(b); } else { push(b); push(a); } } }""",
    "butterflies": """int->int pipeline Main { add Order(8); for (int n = 2; n <= 8; n *= 2) add Fly(n); }
      int->int pipeline Order(int n) { if (n > 2) add splitjoin { split roundrobin; add Order(n / 2); add Order(n / 2);
        join roundrobin(n / 2); } else add Identity<int>; }
      int->int filter Fly(int n) { work pop n push n { int[n] t;
        for (int k = 0; k < n / 2; k++) { t[k] = peek(k) + k * peek(n / 2 + k); t[n / 2 + k] = peek(k) - peek(n / 2 + k); }
        for (int k = 0; k < n; k++) push(t[k]); for (int k = 0; k < n; k++) pop(); } }""",
    "several types": """int->float pipeline Main { add splitjoin { split roundrobin(2, 1);
        add int->float filter { work pop 2 push 1 { push(pop() * 0.5 + pop()); } };
        add int->float filter { work pop 1 push 2 { push(-peek(0)); push(pop()); } };
        join roundrobin(1, 2); }
      add float->float filter { work pop 3 push 2 { float a = pop(); push(a * pop()); push(a - pop()); } }; }""",
    "records": """int->int pipeline Main {
      add splitjoin { split duplicate;
        add int->complex filter { work pop 2 push 1 { complex c; c.real = pop(); c.imag = pop(); push(c); } };
        add int->complex filter { work pop 1 push 1 { complex c; c.imag = pop(); push(c); } }; join roundrobin(1, 2); }
      add complex->int filter { work pop 3 push 1 {
        complex a = pop(); complex b = pop(); complex c = pop(); a = a * b + c; push((int) (a.real + 7 * a.imag)); } }; }""",
    "items of the input among others": """int->int pipeline Main { add splitjoin { split roundrobin(1, 2);
        add Identity<int>; add int->int filter { work pop 2 push 2 { push(pop() * 3); push(pop() - 1); } };
        join roundrobin(1, 2); }
      add int->int filter { work pop 3 push 1 { int s = 0; for (int i = 0; i < 3; i++) s = 5 * s + peek(i);
        for (int i = 0; i < 3; i++) pop(); push(s); } }; }""",
    "an index that items tell": """int->int pipeline Main { add splitjoin { split roundrobin(3); add Pick; add Pick;
        join roundrobin; } add int->int filter { work pop 2 push 1 { push(pop() * 100 + pop()); } }; }
      int->int filter Pick { work pop 3 push 1 { push(peek(peek(0) % 3) + peek(2)); pop(); pop(); pop(); } }""",
    "a part is sent early": """int->int splitjoin Main { split roundrobin(2); add Add; add Add; join roundrobin; }
      int->int filter Add { work pop 2 push 1 { push(pop() + pop()); } }""",
    "rows meet columns": """int->int pipeline Main {
        add splitjoin { split roundrobin(6); add Twice(3); add pipeline { add Turned; add Twice(6); } join roundrobin(3); }
        add splitjoin { split roundrobin(6); for (int i = 0; i < 4; i++) add Product; join roundrobin; } }
      int->int splitjoin Twice(int n) { split duplicate; add Identity<int>; add Identity<int>; join roundrobin(n); }
      int->int splitjoin Turned { split roundrobin; for (int i = 0; i < 2; i++) add Identity<int>; join roundrobin(3); }
      int->int filter Product { work pop 6 push 1 { int s = 0; for (int i = 0; i < 3; i++) s += peek(i) * peek(3 + i);
        push(s); for (int i = 0; i < 6; i++) pop(); } }""",
    "numbers of their own": """int->int splitjoin Main { split roundrobin(3);
        for (int i = 0; i < 14; i++) add pipeline { add Line(i * i, 7); add Pick((5 * i) % 3); add Line(2, i); };
        join roundrobin(2); }
      int->int filter Line(int a, int b) { work pop 1 push 1 { push(a * pop() - b); } }
      int->int filter Pick(int k) { work pop 3 push 2 { push(peek(k)); push(k); for (int i = 0; i < 3; i++) pop(); } }""",
    "numbers of their own, written out": """int->int pipeline Main { add splitjoin { split roundrobin(1, 2, 1, 3);
        add Line(4); add Line(-3); add Line(0); add Line(9); join roundrobin(3, 6, 3, 9); };
        add splitjoin { split roundrobin(2, 1); add Line(5); add Line(6); join roundrobin(2, 1); }; }
      int->int filter Line(int a) { work pop 1 push 3 { int b = pop(); push(a * b); push(a); push(b - a); } }""",
    "numbers that are computed": """int->float splitjoin Main { split roundrobin;
        for (int i = 0; i < 13; i++) add Turn(i, 26); join roundrobin(2); }
      int->float filter Turn(int i, int n) { float c = cos(2.0 * pi * i / n); float s = sin(2.0 * pi * i / n);
        work pop 1 push 2 { int a = pop(); push(a * c + s); push(a * s - c); } }""",
    "counted while it runs": """int->int pipeline Main {
      add splitjoin { split roundrobin(2); add Twice; add Twice; join roundrobin(4); }
      add int->int filter { work pop 8 push 1 { int s = 0; for (int i = 0; i < 8; i++) s = 3 * s + pop(); push(s); } }; }
      int->int filter Twice { work pop 2 push 4 { for (int i = 0; i < 2; i++) { int v = pop();
        for (int k = 1; k < 3; k++) if (v > 2) push(v * k); else push(-v); } } }""",
}
APART = {
    "keeps something": """int->int splitjoin Main { split roundrobin; add Count; add Count; join roundrobin; }
      int->int filter Count { int n; work pop 1 push 1 { push(pop() + n++); } }""",
    "looks ahead": """int->int splitjoin Main { split duplicate; add Ahead; add Ahead; join roundrobin; }
      int->int filter Ahead { work peek 2 pop 1 push 1 { push(peek(1) - pop()); } }""",
    "sends a part, and may not end on zeros": """int->int splitjoin Main { split roundrobin; add Halves; add Halves;
        join roundrobin; }
      int->int filter Halves { work pop 1 push 1 { int n = pop() + 1; while (n % 2 == 0) n = n / 2; push(n); } }""",
    "sends a part, and may trap on zeros": """int->int splitjoin Main { split roundrobin; add Over; add Over;
        join roundrobin; } int->int filter Over { work pop 1 push 1 { push(7 / (pop() + 1)); } }""",
    "may trap when others have sent": """int->int splitjoin Main { split duplicate; add Over(7); add Over(9); join roundrobin; }
      int->int filter Over(int n) { work pop 1 push 1 { push(n / pop()); } }""",
}


def made(text: str) -> tuple[Compiled, Compiled]:
    """A program, and what the pass makes of it."""
    before = river.compile(text, lang="streamit")
    after, remarks = improved(
        Verified(before.program, before.graph, before.templates), (Fusion(steady=True),), Platform(1)
    )
    assert not remarks
    return before, river.compile(pretty(after.program), lang="river")


def items(count: int) -> dict[str, list[int]]:
    """An input of so many items."""
    rng = Random(count)
    return {"input": [rng.randrange(50) for _ in range(count)]}


def shown(compiled: Compiled, inputs: Any, **more: Any) -> Any:
    return compiled.run(inputs, **more)["output"].to_pylist()


@pytest.mark.some(7)
@pytest.mark.parametrize("name", WHOLE)
def test_a_steady_state_is_one_firing_and_computes_the_same(name: str) -> None:
    before, after = made(WHOLE[name])
    assert len(before.graph.instances) > 2
    (whole,) = after.graph.instances
    assert isinstance(whole.operator, typed.Operator)
    assert whole.operator.rated is not None
    pop = whole.operator.rated.rates[0].pop
    parts = [there - back for there, _ in whole.operator.rated.early for back in (0, 1)]
    counts = {0, pop - 1, pop, 2 * pop + 1, *parts}
    for count in counts:
        wanted = shown(before, items(count), backend="reference", optimize=False)
        assert shown(after, items(count), backend="reference", optimize=False) == wanted
        assert shown(after, items(pop + count), batch=pop + 1) == shown(
            before, items(pop + count), native="off"
        )
    assert shown(before, items(40 * pop), batch=7) == shown(
        before, items(40 * pop), native="off", optimize=False
    )


@pytest.mark.parametrize("name", APART)
def test_what_is_more_than_its_steady_states_stays_apart(name: str) -> None:
    before, after = made(APART[name])
    assert len(after.graph.instances) == len(before.graph.instances)
    assert shown(before, items(7), batch=3) == shown(before, items(7), backend="reference", optimize=False)


def test_a_steady_state_that_is_too_large_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "WIDEST", 60)
    monkeypatch.setattr(playing, "LONGEST", 100)
    rng, refused = seeds.chance("steady states that are too large"), 0
    cases = [
        [[1, 1, 1], [1, 1, 1]],
        [[3, 5, 4], [4, 7, 5]],
        [[1, 3, 1], [4, 1, 5]],
    ]  # the last sends an item too many
    cases += [[[rng.randint(1, 5) for _ in range(3)] for _ in range(2)] for _ in range(12)]
    for parts in cases:
        shares = [many * push * parts[1 - i][1] for i, (many, pop, push) in enumerate(parts)]
        joined = [share // gcd(*shares) for share in shares]
        adds = " ".join(
            f"add int->int filter {{ work pop {pop} push {push} {{ {'push(peek(0)); ' * push}{'pop(); ' * pop}}} }};"
            for _, pop, push in parts
        )
        split = ", ".join(str(many) for many, _, _ in parts)
        before = river.compile(
            f"int->int splitjoin Main {{ split roundrobin({split}); {adds} join roundrobin({joined[0]}, {joined[1]}); }}",
            lang="streamit",
        )
        verified = Verified(before.program, before.graph, before.templates)
        with monkeypatch.context() as patched:
            patched.setattr(playing, "_sent", lambda *_: 1)
            played = list(playing.steadies(verified))
        with monkeypatch.context() as patched:
            if not played:
                patched.delattr(playing, "Taking")  # none of its firings is
                refused += 1
            assert list(playing.steadies(verified)) == played
    assert 0 < refused < len(cases)


def test_a_steady_state_that_a_trap_forbids_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """int->int splitjoin Main { split roundrobin(2); BRANCH BRANCH join roundrobin(2); }"""
    branch = "add int->int filter { int[2] t; work pop 2 push 2 { push(t[pop() % 3]); push(pop()); } };"
    before = river.compile(text.replace("BRANCH", branch), lang="streamit")
    verified = Verified(before.program, before.graph, before.templates)
    with monkeypatch.context() as patched:
        patched.setattr(playing, "_takes_back", lambda *_: False)
        assert list(playing.steadies(verified)) == []
    monkeypatch.delattr(playing, "Taking")
    assert list(playing.steadies(verified)) == []


def test_steady_states_apart_from_one_another_are_made_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """int->int pipeline Main { add Part(1); add Sum; add Part(1); add Sum; add Part(2); }
      int->int filter Sum { int s; work pop 1 push 1 { s += pop(); push(s); } }
      int->int splitjoin Part(int k) { split roundrobin(2, 1);
        add int->int filter { work pop 2 push 1 { push(pop() - k * pop()); } };
        add int->int filter { work pop 1 push 1 { push(pop() + 1); } }; join roundrobin; }"""
    steps: list[int] = []

    def counted(verified: Verified, sites: Any) -> Any:
        steps.append(len(sites))
        return steadied(verified, sites)

    monkeypatch.setattr("optimizers.fusion.steadied", counted)
    before, after = made(text)
    assert steps == [3]
    first, _, second, _, third = (instance.use.operator for instance in after.graph.instances)
    assert first == second != third
    given = items(41)
    assert shown(after, given) == shown(before, given, backend="reference", optimize=False)


@pytest.mark.parametrize("number", range(2))
def test_splitjoins_at_random_compute_the_same(number: int) -> None:
    rng = seeds.chance("steady", number)
    inner = splitjoin(rng, 2)
    text = f"int->int pipeline Main {{ add {inner.text}; add {leaf(rng, inner.gives).text}; }}"
    before, after = made(text)
    assert inner.takes > WIDEST or len(after.graph.instances) < len(before.graph.instances)
    for count in (inner.takes - 1, 2 * inner.takes + 1, 40 * inner.takes):
        wanted = shown(before, items(count), native="off", optimize=False)
        assert shown(after, items(count), native="off", optimize=False) == wanted, text
        assert shown(after, items(count)) == wanted, text


@frozen
class Stream:
    """A stream of whole numbers, and what a steady state of it takes and gives."""

    text: str
    takes: int
    gives: int


def leaf(rng: Random, pop: int) -> Stream:
    """A filter."""
    push = rng.randint(1, 3)
    sends = "".join(f"push(s * {rng.randint(1, 5)} + peek({rng.randrange(pop)})); " for _ in range(push))
    if rng.random() < 0.3:
        sends = f"for (int k = 0; k < {push}; k++) if (s % 3 > k) push(s - k); else push(-peek({rng.randrange(pop)}));"
    adds, pops = (f"for (int i = 0; i < {pop}; i++) {what}" for what in ("s = 3 * s + peek(i);", "pop();"))
    return Stream(
        f"int->int filter {{ work pop {pop} push {push} {{ int s = 0; {adds} {sends} {pops} }} }}", pop, push
    )


def stream(rng: Random, depth: int) -> Stream:
    """A filter, a pipeline or a splitjoin."""
    kind = rng.random() if depth else 0
    if kind < 0.3:
        return leaf(rng, rng.randint(1, 4))
    if kind < 0.6:
        one, other = stream(rng, depth - 1), stream(rng, depth - 1)
        both = lcm(one.gives, other.takes)
        takes, gives = one.takes * both // one.gives, other.gives * both // other.takes
        return Stream(f"int->int pipeline {{ add {one.text}; add {other.text}; }}", takes, gives)
    return splitjoin(rng, depth)


def splitjoin(rng: Random, depth: int) -> Stream:
    """A splitjoin."""
    parts = [stream(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    adds = " ".join(f"add {part.text};" for part in parts)
    every = lcm(*(part.takes for part in parts))
    duplicate = rng.random() < 0.4
    rounds = [every // part.takes if duplicate else rng.randint(1, 2) for part in parts]
    takes = [part.takes * times for part, times in zip(parts, rounds, strict=True)]
    gives = [part.gives * times for part, times in zip(parts, rounds, strict=True)]
    split = "duplicate" if duplicate else f"roundrobin({', '.join(map(str, takes))})"
    join = ", ".join(map(str, gives))
    text = f"int->int splitjoin {{ split {split}; {adds} join roundrobin({join}); }}"
    return Stream(text, every if duplicate else sum(takes), sum(gives))
