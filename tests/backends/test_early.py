"""What an operator sends before its window is complete is the same everywhere, however its input comes."""

from __future__ import annotations

from threading import Condition
from typing import TYPE_CHECKING, Any

import pytest

import river
from backends.multicore import BACKEND
from calculus.observe import Finished
from calculus.run import run
from calculus.schedule import FirstCome
from river.backend import Options
from river.il import erase
from river.lang.values import Mark
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.backend import Items
    from river.driver import Compiled

TEXT = """river 1;
input xs: i64;
output ys: i64;
operator ahead(x: i64) -> (y[push 6]: i64) {
  on x[pop 4, early 2: 1, 3: 3](w) {
    emit y w[1]; emit y w[0] + 100; emit y w[2];
    emit y w[3]; emit y w[0] + w[3]; emit y w[1] + 7;
  }
}
(ys) <- ahead(xs);
"""
SENT = {0: 0, 1: 0, 2: 1, 3: 3}
WAYS: dict[str, dict[str, Any]] = {
    "reference": {"backend": "reference"},
    "evaluated": {"native": "off", "batch": 2},
    "native": {},
    "item by item": {"batch": 1},
    "side by side": {"batch": 5, "workers": 2, "experiment": {"gate": "open"}},
}


@pytest.fixture(scope="module")
def ahead() -> Compiled:
    return river.compile(TEXT, lang="river")


def wanted(xs: list[int]) -> list[int]:
    """By the definition."""
    found: list[int] = []
    for start in range(0, len(xs), 4):
        part = xs[start : start + 4]
        a, b, c, d = part + [0] * (4 - len(part))
        found += [b, a + 100, c, d, a + d, b + 7][: SENT.get(len(part))]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_as_much_is_sent_as_the_items_allow(ahead: Compiled, way: str) -> None:
    for count in range(14):
        xs = list(range(1, count + 1))
        assert ahead.run({"xs": xs}, **WAYS[way])["ys"]["value"].to_pylist() == wanted(xs), count


@pytest.mark.parametrize("way", ["evaluated", "native", "side by side"])
def test_the_rest_is_sent_when_the_window_is_complete(ahead: Compiled, way: str) -> None:
    xs, found, more = list(range(1, 12)), list[int](), Condition()

    def one_by_one() -> Iterator[list[int]]:
        for count, x in enumerate(xs, start=1):
            yield [x]
            most = len(wanted(xs[:count]))
            with more:
                assert more.wait_for(lambda most=most: len(found) >= most, timeout=60)

    def keep(items: Items) -> None:
        with more:
            found.extend(items)
            more.notify()

    options = Options(**{"workers": 1, **WAYS[way]})
    BACKEND.run(BACKEND.plan(ahead.graph, here(), options), {"xs": one_by_one()}, {"ys": keep})
    assert found == wanted(xs)


def test_so_it_is_in_the_calculus(ahead: Compiled) -> None:
    for count in range(10):
        xs = tuple(range(1, count + 1))
        given = erase.inputs(ahead.graph, {"xs": xs})
        outcome = run(erase.erase(ahead.graph), given, FirstCome()).outcome
        assert isinstance(outcome, Finished)
        ((_, sent),) = outcome.outputs
        assert [item for item in sent if not isinstance(item, Mark)] == wanted(list(xs)), count
