"""Rows at the first and at the last instant that there is are rows like any other, on all backends."""

from __future__ import annotations

from typing import Any

import pytest

from backends.multicore import BACKEND as MULTICORE
from backends.reference import BACKEND as REFERENCE
from frontends.cql import FRONTEND
from river.backend import Options
from river.il.templates import Library
from river.il.verify import verify
from river.ingress import events
from river.io import deltas
from river.lang.values import END, Mark
from river.platform import Platform
from river.source import Source
from river.testing.laws import REGIONS, after

FIRST, LAST = -(1 << 63), (1 << 63) - 1
TEXT = """
xs: {ts: int; x: int} stream by ts;
ys: {ts: int; x: int} stream by ts;
plain: {ts: int; x: int} stream = select * from xs;
window: {x: int} relation = select x from xs[range 10];
present: {x: int} stream = rstream(select x from xs[now]);
pairs: {x: int} relation = select xs.x from xs[range 3], ys[range 10] where xs.x = ys.x;
counts: {x: int; n: int} relation = select x, count(*) as n from ys[range 2] group by x;
met: {x: int; n: int} stream = rstream(select xs.x, counts.n from xs[now], counts where xs.x = counts.x);
"""


def graph(text: str = TEXT) -> Any:
    program = FRONTEND.check(FRONTEND.parse(Source("ends.cql", text)))
    return verify(FRONTEND.lower(program), Library.of({"cql": FRONTEND.templates}))


def ran(backend: Any, options: Options, **rows: list[tuple[int, int]]) -> dict[str, list[Any]]:
    made = backend.plan(after(graph(), REGIONS, options.workers or 2), Platform(2), options)
    found: dict[str, list[Any]] = {name: [] for name in made.graph.outputs}
    backend.run(
        made, {name: [items] for name, items in rows.items()}, {n: got.extend for n, got in found.items()}
    )
    for name, got in found.items():
        if deltas.is_delta(made.graph.queues[name].type):
            found[name] = list(map(deltas.canonical, got))
    return found


def bag(*values: int) -> frozenset[Any]:
    return frozenset(((x,), 1) for x in values)


ROWS: dict[str, dict[str, list[tuple[int, int]]]] = {
    "the last": {"xs": [(5, 1), (LAST - 1, 2), (LAST, 3), (LAST, 1)], "ys": [(LAST - 11, 1), (LAST - 2, 3), (LAST, 1)]},
    "the last of one": {"xs": [(LAST - 11, 1), (LAST - 4, 2)], "ys": [(LAST, 1)]},
    "the last of the other": {"xs": [(LAST, 1), (LAST, 1)], "ys": [(0, 1), (LAST - 11, 1), (LAST - 3, 1)]},
    "the first": {"xs": [(FIRST, 1), (FIRST + 1, 2), (FIRST + 11, 3)], "ys": [(FIRST, 1), (0, 2)]},
    "both": {"xs": [(FIRST, 1), (LAST, 1)], "ys": [(FIRST, 1), (LAST, 1)]},
}  # fmt: skip


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_all_backends_say_the_same(name: str) -> None:
    rows = ROWS[name]
    wanted = ran(REFERENCE, Options(), **rows)
    assert wanted["plain"] == [(at, at, x) for at, x in rows["xs"]]
    assert wanted["present"] == rows["xs"]
    for options in (Options(batch=1), Options(native="off"), Options(workers=2)):
        assert ran(MULTICORE, options, **rows) == wanted
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from tests.backends.spark_stand_in import StandIn

    assert ran(StandIn(1), Options(batch=2), **rows) == wanted


def test_what_is_said_of_the_last_instant() -> None:
    found = ran(REFERENCE, Options(), **ROWS["the last"])
    assert found["window"] == [
        (5, bag(1), bag()), (16, bag(), bag(1)), (LAST - 1, bag(2), bag()), (LAST, bag(1, 3), bag()),
    ]  # fmt: skip
    assert found["pairs"] == [
        (LAST, bag(1, 3), bag())
    ]  # of `ys`, a row is gone at LAST, and one like it has come
    assert found["met"] == [(LAST, 3, 1), (LAST, 1, 1)]


def test_what_leaves_at_the_last_instant_is_told_wherever_a_row_brings_it() -> None:
    assert ran(REFERENCE, Options(), **ROWS["the last of one"])["window"][-1] == (LAST, bag(), bag(1))


def test_only_what_has_ended_has_the_greatest_mark() -> None:
    rows = {"xs": [[(LAST - 1, 1), (LAST, 2)], [(LAST, 3)]], "ys": [[(LAST, 1)], [(LAST, 4)]]}
    found: dict[str, list[Any]] = {"xs": [], "ys": []}
    for name, elements in events(graph(), rows, 1):
        found[name] += elements
    for name, elements in found.items():
        *before, last, end = elements
        assert (last, end) == (Mark(LAST), END)
        assert Mark(LAST) not in before
        assert [each for each in before if not isinstance(each, Mark)] == [
            item for part in rows[name] for item in part
        ]
