"""Stages on a stand-in for Spark: the same tasks and rows, in this process, against the calculus."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("pandas", reason="the extra `spark` is not installed")

from backends.reference import BACKEND as REFERENCE
from backends.spark.stages import StageKind
from river.backend import Options
from river.il.observe import observed_variables
from river.lang.evaluate import Trap
from river.testing import check_backend
from tests.backends.spark_programs import HEAD, data, go, programs
from tests.backends.spark_stand_in import StandIn


@pytest.mark.slow
def test_the_promises_of_any_backend():
    check_backend(StandIn(1), examples=8, batch=True)


WAYS = st.builds(
    Options,
    batch=st.sampled_from([1, 3, 7, 4096]),
    workers=st.integers(1, 3),
    native=st.sampled_from(["on", "off"]),
)


@pytest.mark.slow
@settings(max_examples=15)
@given(text=programs(5), items=data(), options=WAYS, seed=st.integers(0, 99))
def test_stages_compute_what_the_calculus_says(text, items, options, seed):
    _, expected, meaning = go(REFERENCE, text, items, options)
    made, found, summary = go(StandIn(seed), text, items, options)
    assert found == expected, made.show()
    variables = [observed_variables(made.graph, s.variables) for s in (summary, meaning)]
    assert variables[0] == variables[1], made.show()


RISKY = """
operator risky(x: R) -> (y: R) { on x(r) { emit y {k: r.k, s: r.s, v: div.trunc(6, r.v)}; } }
input a: R;
output ao: R;
"""


def trap(backend: Any, text: str, items: dict[str, list[Any]], options: Options) -> Trap:
    with pytest.raises(Trap) as caught:
        go(backend, text, items, options)
    return caught.value


@pytest.mark.parametrize(
    ("uses", "kind"),
    [
        ("(ao) <- risky(a);", StageKind.MAP),
        (
            "(a1) <- twice(a); (a2) <- risky(a1); var $m: map<i64, i64> = {}; (ao, $m) <- tally(a2, $m);",
            StageKind.KEYED,
        ),
        (
            "(a1) <- window(a); (a2) <- risky(a1); var $t: i64 = 0; (ao, $t) <- total(a2, $t);",
            StageKind.ORDERED,
        ),
        ("(a1) <- window(a); (ao) <- risky(a1);", StageKind.MAP),
    ],
)
def test_the_first_trap_is_told_as_by_the_calculus(uses, kind):
    text = HEAD + RISKY + uses
    items = {"a": [(n, "x", (n - 7) * (n - 11)) for n in range(20)]}
    told: list[Any] = []
    for backend in (REFERENCE, StandIn(3)):
        caught = trap(backend, text, items, Options(batch=3, workers=2))
        told.append(
            (caught.code, caught.operator, caught.site, caught.diagnostic(), caught.operands, caught.item)
        )
        assert caught.span is not None
    assert told[0] == told[1]
    made, _, _ = go(StandIn(0), text, {"a": [(1, "x", 1)] * 3}, Options(workers=2))
    assert kind in {stage.kind for stage in made.stages}


def test_items_that_trap_are_left_out_where_that_is_wanted():
    text = HEAD + RISKY + "(ao) <- risky(a);"
    items = {"a": [(n, "x", n % 5) for n in range(20)]}
    seen: list[Any] = []
    for backend in (REFERENCE, StandIn(1)):
        told: list[Any] = []
        _, found, summary = go(backend, text, items, Options(batch=3, workers=2, on_trap=told.append))
        seen.append((found, told, summary.skipped))
    assert seen[0] == seen[1]
    assert seen[0][2] == {"risky#0": 4}


UNSORTED = """
operator stamp(x: R) -> (y: R by k) { on x(r) { emit y r; } }
operator scan(x: R; $t: i64) -> (y: R by k) { on x(r) { $t = $t + 1; emit y r; } }
input a: R;
output ao: R by k;
"""


@pytest.mark.parametrize("first", ["stamp", "scan"])
def test_an_order_that_is_not_kept_is_found(first):
    state, var = (", $t", "var $t: i64 = 0;") if first == "scan" else ("", "")
    text = f"{HEAD}{UNSORTED}{var} (a1{state}) <- {first}(a{state}); (ao) <- pick(a1);"
    items = {"a": [(n % 7, "x", n) for n in range(20)]}
    told: list[Any] = []
    for backend in (REFERENCE, StandIn(3)):
        caught = trap(backend, text, items, Options(batch=3, workers=2))
        told.append((caught.code, caught.operator, caught.site, caught.span))
    assert told[0] == told[1]
    assert told[0][0] == "order-violation"


def test_counts_are_those_of_the_calculus():
    text = (
        HEAD
        + "input a: R; output ao: R; var $m: map<i64, i64> = {};"
        + ("(a1) <- keep(a); (ao, $m) <- tally(a1, $m);")
    )
    items = {"a": [(n % 5, "x", n) for n in range(40)]}
    fired = [go(b, text, items, Options(batch=7, workers=2))[2].fired for b in (REFERENCE, StandIn(0))]
    assert fired[1] == {"keep#0": 40, "tally#1": 26}
    assert {name: fired[0][name] for name in fired[1]}.keys() == fired[1].keys()
