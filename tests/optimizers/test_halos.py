"""Regions of windows: dealt in turns, with the items that neighbours share, they compute what one operator does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import river
from optimizers import Expand, Fission
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.templates import Library
from river.il.verify import verify
from river.passes import apply
from river.platform import Platform
from river.source import Source
from river.testing.dag_strategies import dags
from river.testing.graph_strategies import contents, graphs
from river.testing.pass_laws import check_idempotent, check_pipeline

LIBRARY = Library.of({})
HEAD = "river 1; input x: i64; output y: i64; "
OPERATOR = "operator f(x: i64{first}) -> (out: i64) {{ on x[peek {peek}, pop {pop}](w) {{ {emits} }} }} {said} (y) <- f(x);"


def windows(peek: int, pop: int, push: int, said: str = "@Parallel(3)", first: str = "") -> str:
    """An operator that tells apart all items at which it looks."""
    number = " *% 31 +% ".join(f"w[{i}]" for i in range(peek))
    emits = " ".join(f"emit out ({number}) *% 5 +% {i};" for i in range(push))
    return HEAD + OPERATOR.format(peek=peek, pop=pop, emits=emits, said=said, first=first)


@pytest.mark.some(12)
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("first", ["", " = [7]", " = fill(9, 4)"])
@pytest.mark.parametrize(("peek", "pop", "push"), [(1, 1, 1), (3, 1, 1), (4, 2, 3), (5, 3, 2), (2, 2, 1)])
def test_windows_dealt_in_turns_are_those_of_one_operator(
    peek: int, pop: int, push: int, first: str, degree: int
) -> None:
    program = parse(Source("p.river", windows(peek, pop, push, f"@Parallel({degree})", first)))
    for one in (Fission(), Expand()):
        check_idempotent(program, one, Platform(2), LIBRARY)
    for many in (0, peek - 1, peek, peek + 4 * pop, 17):  # the last turn is no whole one
        data = {"x": list(range(1, many + 1))}
        made = check_pipeline(program, (Fission(), Expand()), Platform(2), LIBRARY, data, limit=0)
        assert len(made.uses) == degree + 2


def joined(x: str, z: str, said: str = "@Parallel(3)", first: str = "") -> str:
    """An operator on windows of two inputs, which tells apart all items at which it looks; `first`: those at first."""
    return (
        "river 1; input x: i64; input z: i64; output y: i64; "
        f"operator f(x: i64, z: i64{first}) -> (out: i64) {{ on x[{x}](v), z[{z}](w) {{"
        f" emit out v[0] *% 7 +% v[1] *% 3 +% w[0]; emit out w[1]; }} }} {said} (y) <- f(x, z);"
    )


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize(("x", "z"), [("pop 2", "pop 3"), ("peek 4, pop 2", "peek 2, pop 1")])
def test_windows_of_several_inputs_are_dealt_alike(x: str, z: str, degree: int) -> None:
    program = parse(Source("p.river", joined(x, z, f"@Parallel({degree})", " = [1, 2, 3]")))
    for many in (0, 3, 12):
        data = {"x": list(range(many)), "z": list(range(40, 60 - 5 * many))}
        made = check_pipeline(program, (Fission(), Expand()), Platform(2), LIBRARY, data, limit=0)
        assert len(made.uses) == degree + 3


@pytest.mark.parametrize("rules", ["paper", "runtime"])
def test_a_region_says_that_it_divides_windows(rules: str) -> None:
    program = parse(Source("p.river", windows(3, 1, 1)))
    made = apply(program, (Fission(rules=rules),), Platform(2), LIBRARY)
    assert made.remarks == ()
    assert "@Parallel(3) @Region(r1, halo) (y) <- f(x);" in pretty(made.program)


@pytest.mark.parametrize("push", [1, 2])
def test_the_engine_obeys_what_the_region_says(push: int) -> None:
    program = river.compile(windows(3, 1, push), lang="river")
    data = {"x": list(range(400))}
    was = program.run(data, backend="reference")["y"].to_pylist()
    for degree in (1, 2, 5):
        text = windows(3, 1, push, f"@Parallel({degree}) @Region(a, halo)")
        found = river.compile(text, lang="river").run(data, workers=3, experiment={"gate": "open"})
        assert found["y"].to_pylist() == was


@pytest.mark.parametrize(("many", "more"), [(4000, 9000), (9000, 30), (7, 0)])
def test_the_engine_divides_windows_of_several_inputs(many: int, more: int) -> None:
    data = {"x": list(range(many)), "z": list(range(more))}  # what is left of one holds nothing up
    options: dict[str, Any] = {"batch": 64, "bound": 128}
    was = river.compile(joined("peek 4, pop 2", "pop 3"), lang="river").run(data, backend="reference")["y"]
    said = "@Parallel(3) @Region(a, halo)"
    program = river.compile(joined("peek 4, pop 2", "pop 3", said), lang="river")
    for gate in ("open", "measured"):
        found = program.run(data, workers=3, experiment={"gate": gate}, **options)
        assert found["y"].to_pylist() == was.to_pylist()


REFUSED = {
    "window in turns": (
        windows(3, 1, 1, "@Parallel(2) @Region(a, round_robin)"),
        "`f` takes windows, which a region of the strategy `round_robin` does not divide",
    ),
    "no windows": (
        HEAD + "operator f(x: i64) -> (out: i64) { on x(v) { emit out v; } } @Region(a, halo) (y) <- f(x);",
        "`f` takes no windows, which is what a region of the strategy `halo` divides",
    ),
    "two": (
        windows(3, 1, 1, "@Region(a, halo) (z) <- f(x); @Region(a, halo)").replace("(y) <- f(x)", "(y) <- f(z)"),
        "the region `a` of the strategy `halo` has more than one operator, or keys",
    ),
    "exit": (
        windows(3, 1, 1, "@Region(a, halo) @Exits(a, seqno)"),
        "`seqno` is no way to leave a region of the strategy `halo`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_said_of_windows_is_verified(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(Rejected) as rejected:
        verify(parse(Source("p.river", text)), LIBRARY)
    found = rejected.value.diagnostics[0]
    assert (found.code, found.message) == ("il-region", message)


KEPT = {
    "another number each time": (
        HEAD
        + "operator f(x: i64) -> (out: i64) { on x[pop 2](w) { if w[0] > 1 { emit out w[1]; } } } @Parallel() (y) <- f(x);",
        "`f` does not send as many items for each window",
    ),
    "a variable": (
        HEAD
        + "var $n: i64 = 3; operator f(x: i64; $n: i64) -> (out: i64) { on x[pop 2](w) { $n = w[0]; emit out w[1]; } }"
        " @Parallel() (y, $n) <- f(x, $n);",
        "`f` keeps items waiting between firings",
    ),
    "looks again and again": (
        joined("pop 2", "peek 2, pop 0", "@Parallel()"),
        "`f` looks at items again and again that it never takes",
    ),
    "in a loop with a second input": (
        HEAD + "operator f(x: i64, z: i64 = [4]) -> (out: i64, back: i64) {"
        " on x[pop 1](v), z[pop 1](w) { emit out w[0]; emit back v[0] +% w[0]; } } @Parallel() (y, l) <- f(x, l);",
        "`f` is part of a loop",
    ),
    "behind another": (
        HEAD
        + "operator g(x: i64) -> (out: i64) { on x(v) { emit out v; } } operator f(x: i64) -> (out: i64) {"
        " on x[pop 2](w) { if w[0] > 1 { emit out w[1]; } } } (z) <- g(x); @Parallel() (y) <- f(z);",
        "`f` does not send as many items for each window",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_why_windows_have_no_replicas(name: str) -> None:
    text, reason = KEPT[name]
    made = apply(parse(Source("p.river", text)), (Fission(),), Platform(2), LIBRARY)
    assert [each.message for each in made.remarks] == [f"no fission: {reason}"]
    if (
        "is part of a loop" not in reason and name != "a variable"
    ):  # a runtime that numbers what firings send can do it, and `expand` says why not
        assert "halo" in pretty(
            apply(made.program, (Fission(rules="runtime"),), Platform(2), LIBRARY).program
        )
        later = apply(made.program, (Fission(rules="runtime"), Expand()), Platform(2), LIBRARY)
        assert [each.message for each in later.remarks] == [f"no expand: {reason}"]


REGIONS = (
    (Fission(auto=True), Expand()),
    (Fission(auto=True, degree=3, rules="runtime"), Expand(epoch=2)),
)


@settings(max_examples=8)
@given(
    st.one_of(dags(5), graphs(4)),
    contents(4),
    st.lists(st.integers(-9, 9), max_size=9),
    st.sampled_from(REGIONS),
)
def test_random_graphs_with_their_regions_written_out(
    text: str, items: dict[str, list[Any]], more: list[int], passes: tuple[Any, ...]
) -> None:
    data = {name: values for name, values in {"x": more, **items}.items() if f"input {name}:" in text}
    check_pipeline(parse(Source("p.river", text)), passes, Platform(2), LIBRARY, data, limit=100)
