"""A program fissioned by hand has one outcome, that of the program it came from (il.md (d), P2).

Splits, replicas that drop everything or nearly so, marks after every epoch, and a merge: explored exhaustively for small
inputs. Without the marks and the end, what the replicas drop would keep the merge waiting for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculus.outcomes import Exploration, outcomes
from river.il.erase import erase, inputs
from river.il.observe import Observation, observe
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.source import Source

if TYPE_CHECKING:
    from river.il.graph import Graph

LIBRARY = Library.of({})
Item = tuple[str, int]

FILTER = """operator work(x: T) -> (out: T) { on x(v) { if v.n > %d { emit out v; } } }
"""
COUNT = """operator work(x: T; $v: map<string, i64>) -> (out: T) {
  on x(v) { with c = $v[v.k] else 0 { c = c + 1; for i in 0 .. v.n { emit out {k: v.k, n: c}; } } } }
"""
HEAD = "river 1;\ntype T = {k: string, n: i64};\ninput a: T; output b: T;\n"
VARIABLE = "var $v: map<string, i64> = {};\n"


def graph(text: str) -> Graph:
    return verify(parse(Source("fission.river", text)), LIBRARY)


def unsplit(operator: str, *, state: bool) -> Graph:
    use = f"{VARIABLE}(b, $v) <- work(a, $v);" if state else "(b) <- work(a);"
    return graph(HEAD + operator + use)


def split(operator: str, splitter: str, replicas: int, *, state: bool) -> Graph:
    """`operator` between a split by serial numbers and the merge."""
    each = range(replicas)
    text = HEAD + operator + f"operator s = {splitter};\noperator c = lift(work, seq);\n"
    text += f"operator m = std.merge_seq<T = T, n = {replicas}>;\nvar $n: i64 = 0;\n"
    text += "(" + ", ".join([*(f"a{i}" for i in each), "$n"]) + ") <- s(a, $n);\n"
    for i in each:
        text += f"var $v.{i}: map<string, i64> = {{}};\n(b{i}, $v.{i}) <- c(a{i}, $v.{i});\n" if state else ""
        text += "" if state else f"(b{i}) <- c(a{i});\n"
    text += f"(b) <- m({', '.join(f'b{i}' for i in each)});\n"
    text += f"result $v = union({', '.join(f'$v.{i}' for i in each)});\n" if state else ""
    return graph(text)


def explored(g: Graph, items: list[Item], variables: list[str]) -> tuple[Exploration, set[Observation]]:
    found = outcomes(erase(g), inputs(g, {"a": items}), limit=20_000)
    assert found.complete
    assert not found.diverges
    seen = {observe(g, outcome, variables) for outcome in found.outcomes}
    return found, {o for o in seen if isinstance(o, Observation)}


def same(before: Graph, after: Graph, items: list[Item], *, state: bool) -> Exploration:
    """Both have one outcome, and it is the same; returns how the split program was explored."""
    variables = ["v"] if state else []
    _, wanted = explored(before, items, variables)
    found, seen = explored(after, items, variables)
    assert len(wanted) == 1
    assert seen == wanted
    return found


HASH = "std.split_hash<T = T, key = fn(t) => t.k, n = 2, epoch = %d>"
TURNS = "std.split_rr<T = T, n = 2, epoch = %d>"
ITEMS: list[Item] = [("x", 1), ("y", 2), ("x", 0), ("z", 1)]


@pytest.mark.parametrize("splitter", [HASH, TURNS])
@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("least", [9, 1, -1])  # drops everything, most, nothing
def test_stateless(splitter: str, epoch: int, count: int, least: int) -> None:
    operator = FILTER % least
    after = split(operator, splitter % epoch, 2, state=False)
    found = same(unsplit(operator, state=False), after, ITEMS[:count], state=False)
    print(
        f"{splitter.split('<', maxsplit=1)[0]}, epoch {epoch}, {count} items, n > {least}: {found.states} states"
    )
    assert found.states < 5_000


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("count", [3, 4])
def test_keyed(epoch: int, count: int) -> None:
    found = same(
        unsplit(COUNT, state=True), split(COUNT, HASH % epoch, 2, state=True), ITEMS[:count], state=True
    )
    print(f"keyed, epoch {epoch}, {count} items: {found.states} states")
    assert found.states < 5_000


def test_without_the_reduction_the_outcome_is_the_same() -> None:
    after = split(FILTER % 9, TURNS % 2, 2, state=False)
    data = inputs(after, {"a": ITEMS[:3]})
    whole = outcomes(erase(after), data, reduce=False, limit=50_000)
    assert whole.complete
    assert whole.outcomes == outcomes(erase(after), data).outcomes
    print(f"every interleaving: {whole.states} states")


def test_three_replicas() -> None:
    found = same(
        unsplit(COUNT, state=True),
        split(COUNT, HASH.replace("n = 2", "n = 3") % 1, 3, state=True),
        ITEMS,
        state=True,
    )
    print(f"3 replicas: {found.states} states")


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 2)), max_size=4), st.integers(1, 3))
def test_any_items(items: list[Item], epoch: int) -> None:
    same(unsplit(COUNT, state=True), split(COUNT, HASH % epoch, 2, state=True), items, state=True)


# ------------------------------------------------------------------------------------------------- ordered queues: deltas

DELTAS = """river 1;
type R = {k: string, n: i64};
type D = {tau: time, ins: list<R>, del: list<R>};
input a: D by tau; output b: D by tau;
operator work(d: D by tau; $c: map<string, i64>) -> (out: D by tau) {
  on d(x) {
    var ins: list<R> = [];
    for r in x.ins { with c = $c[r.k] else 0 { c = c + 1; if c > 1 { push(ins, {k: r.k, n: c}); } } }
    if len(ins) > 0 { emit out {tau: x.tau, ins: ins, del: []}; } } }
"""
WHOLE = f"{DELTAS}var $c: map<string, i64> = {{}};\n(b, $c) <- work(a, $c);"
PARTS = f"""{DELTAS}
operator s = std.split_rows<R = R, Tau = time, key = fn(r) => r.k, n = 2>; operator m = std.merge_rows<R = R, Tau = time, n = 2>;
var $c.0: map<string, i64> = {{}}; var $c.1: map<string, i64> = {{}}; result $c = union($c.0, $c.1);
(a0, a1) <- s(a); (b0, $c.0) <- work(a0, $c.0); (b1, $c.1) <- work(a1, $c.1); (b) <- m(b0, b1);"""


def bags(observation: Observation) -> object:
    """The output as a bag of rows for each instant, and the variables."""
    ((_, items),) = observation.outputs
    return [(tau, sorted(ins), sorted(gone)) for tau, ins, gone in items], observation.variables  # type: ignore[misc]


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from("xyz"), min_size=1, max_size=3), max_size=4))
def test_deltas_are_split_by_their_rows(instants: list[list[str]]) -> None:
    before, after = graph(WHOLE), graph(PARTS)
    items = [(10 * i, tuple((k, i) for k in keys), ()) for i, keys in enumerate(instants)]
    (wanted,) = explored(before, items, ["c"])[1]  # type: ignore[arg-type]
    (seen,) = explored(after, items, ["c"])[1]  # type: ignore[arg-type]
    assert bags(seen) == bags(wanted)


TURN = """river 1;
type D = {tau: time, n: i64};
input a: D by tau; output b: D by tau;
operator work(d: D by tau) -> (out: D by tau) { on d(x) { if x.n > 0 { emit out x; } } }
"""
IN_TURNS = f"""{TURN}
operator s = std.split_turns<T = D, n = 2, by = tau>; operator m = std.merge_time<T = D, n = 2, by = tau>;
var $n: i64 = 0;
(a0, a1, $n) <- s(a, $n); (b0) <- work(a0); (b1) <- work(a1); (b) <- m(b0, b1);"""


@pytest.mark.slow
@given(st.lists(st.integers(0, 1), max_size=4))
def test_ordered_items_are_dealt_in_turns(numbers: list[int]) -> None:
    items = [(10 * i, n) for i, n in enumerate(numbers)]
    same(graph(f"{TURN}(b) <- work(a);"), graph(IN_TURNS), items, state=False)  # type: ignore[arg-type]


def test_without_the_end_an_item_stays_in_the_merge() -> None:
    after = split(FILTER % -1, TURNS % 2, 2, state=False)
    program = erase(after)
    (cut,) = outcomes(program, {"a": ITEMS[:3]}).outcomes
    seen = observe(after, cut, [])
    assert isinstance(seen, Observation)
    assert seen.outputs == (
        ("b", tuple(ITEMS[:2])),
    )  # the third may be followed by nothing, but nobody says so
