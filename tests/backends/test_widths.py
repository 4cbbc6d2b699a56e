"""How many workers may be at an operator: as many as it keeps busy, and never so that something else comes out."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llvmlite")

import river
from backends.multicore.scheduling.task import Task
from backends.multicore.scheduling.widths import SPAN, Widths
from river.testing import seeds

clock = [0.0]


def made(*widest: int, how: str = "measured") -> Widths:
    found = Widths(tasks(*widest), max(widest), how)
    found.start(clock[0])
    return found


def tasks(*widest: int) -> list[Task]:
    found = [Task(i, (), ()) for i in range(len(widest))]
    for task, most in zip(found, widest, strict=True):
        if most:
            task.width = task.widest = most
    return found


def turn(widths: Widths, *seconds: float, idle: float = 0.0) -> list[float]:
    """How wide tasks are after a turn in which they took so long, and workers had nothing to do for so long."""
    clock[0] += sum(seconds) / widths.workers + idle
    widths.turn(seconds, clock[0])
    return [task.width for task in widths.tasks if task.widest]


def test_a_region_is_as_wide_as_what_it_takes() -> None:
    widths = made(0, 8, 8)
    assert turn(widths, 0.0, SPAN / 4, SPAN / 4) == [8, 8]  # of which nothing is known yet
    assert turn(widths, SPAN * 0.25, SPAN * 0.225, SPAN * 0.025) == [6, 4]
    assert turn(widths, SPAN * 4, 0.0, SPAN * 0.01) == [1, 1]
    assert turn(widths, 0.0, SPAN * 40, 0.0) == [8, 1]
    assert [task.changed for task in widths.tasks] == [0, 3, 2]


def test_who_becomes_wider_is_told_and_what_is_fixed_stays() -> None:
    widths = made(0, 4)
    assert turn(widths, SPAN * 9, SPAN) == [1]
    widths.took(widths.tasks[1], SPAN * 90)
    assert widths.turn((0.0, 0.0), clock[0]) == [widths.tasks[1]]
    fixed = made(0, 4, how="fixed")
    assert turn(fixed, SPAN * 9, SPAN) == [4]


def test_where_workers_have_time_all_may_be_at_it() -> None:
    widths = made(0, 4)
    assert turn(widths, SPAN * 9, SPAN) == [1]
    assert turn(widths, SPAN * 9, SPAN, idle=SPAN * 9) == [4]


KEYED = """river 1;
type R = {k: i64, v: i64};
input r: R;
output o: {k: i64, n: i64, s: i64};
var $m: map<i64, {n: i64, s: i64}> = {};
operator mapped(r: R) -> (o: R) { on r(x) { emit o {k: x.k, v: x.v * 3}; if x.v > 5 { emit o {k: x.v, v: 1}; } } }
operator count(r: R; $m: map<i64, {n: i64, s: i64}>) -> (o: {k: i64, n: i64, s: i64}) {
  on r(x) { with e = $m[x.k] else {n: 0, s: 0} { e.n = e.n + 1; e.s = (3 *% e.s) ^ x.v; emit o {k: x.k, n: e.n, s: e.s}; } }
}
(a) <- mapped(r);
(o, $m) <- count(a, $m);
"""


def test_regions_that_widen_and_narrow_in_the_middle_of_a_run_change_no_result() -> None:
    compiled, chance = river.compile(KEYED, "river"), seeds.chance("widths")
    queues = chance.sample(("hybrid", "partitioned", "shared"), 3)
    rows = [(chance.randrange(7), chance.randrange(9)) for _ in range(900)]
    expected = compiled.run({"r": rows}, workers=1)
    for workers, sharding in zip((2, 3, 5), queues, strict=True):
        experiment = {"gate": "open", "width": "changing", "sharding": sharding}
        asked: dict[str, Any] = {"batch": chance.choice([1, 3, 20]), "bound": chance.choice([4, 64])}
        found = compiled.run({"r": iter(rows)}, workers=workers, experiment=experiment, **asked)
        assert found["o"].equals(expected["o"])
        assert dict(found.variables["m"]) == dict(expected.variables["m"])
        metrics = found.summary.metrics
        assert metrics is not None
        for each in metrics.operators.values():
            assert each.changed > 0
            assert each.width in range(1, workers + 1)
