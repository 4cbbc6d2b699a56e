"""What scheduling makes of machines with many processors, in virtual time: the same on any machine, however busy."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest

from backends.multicore import BACKEND
from river.backend import Options
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.platform import Platform
from river.source import Source
from river.testing.laws import REGIONS, after
from tests.backends.virtual_time import Played, planned, play

if TYPE_CHECKING:
    from tests.backends.scheduling_model import Model

SAME = "operator same(x: i64) -> (y: i64) { on x(v) { emit y v; } }"
CHANGE = "operator change(x: i64) -> (y: i64) { on x(v) { emit y v *% 31 +% 7; } }"
ADD = "operator add(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s + v; emit y v; } }"
ENDS = ("input xs: i64;", "output ys: i64;")
ONE = (CHANGE, *ENDS, "(ys) <- change(xs);")
OTHER = "operator other(x: i64) -> (y: i64) { on x(v) { emit y v *% 7 +% 31; } }"
UNLIKE = (CHANGE, OTHER, *ENDS, "(q) <- change(xs);", "(ys) <- other(q);")
TWO = (
    ADD,
    *ENDS,
    "var $s: i64 = 0;",
    "var $t: i64 = 0;",
    "(q, $s) <- add(xs, $s);",
    "(ys, $t) <- add(q, $t);",
)
LOCKED = (ADD, *ENDS, "var $s: i64 = 0;", "(q, $s) <- add(xs, $s);", "(ys, $s) <- add(q, $s);")
THREE = (SAME, *ENDS, "(q) <- same(xs);", "(r) <- same(q);", "(ys) <- same(r);")
ITEMS = 500 * 64


def played(
    lines: tuple[str, ...],
    workers: int,
    cost: float,
    turns: int,
    size: int,
    reading: float,
    *,
    batch: int = 64,
    bound: int = 1024,
    processors: float = inf,
    **costs: float,
) -> tuple[Played, Model]:
    """Turns of so many items, each of which takes every operator `cost` seconds, or what `costs` says of that operator."""
    graph = verify(parse(Source("test.river", "\n".join(["river 1;", *lines]))), Library.of({}))
    divided = after(graph, REGIONS, workers)
    plan = BACKEND.plan(divided, Platform(workers), Options(workers=workers, batch=batch, bound=bound))
    takes = {node.instance.name: costs.get(node.instance.name.split("#")[0], cost) for node in plan.nodes}
    model = planned(plan, takes, [size] * turns, reading, processors=processors)
    found = play(model, processors)
    assert all(task.done == turns * size for task in model.tasks), "not all is done"
    return found, model


def heavy(lines: tuple[str, ...], workers: int, **costs: float) -> tuple[Played, Model]:
    return played(lines, workers, 50e-6, 500, 64, 20e-6, batch=64, bound=1024, **costs)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_a_heavy_operator_without_state_takes_as_many_workers_as_there_are(workers: int) -> None:
    alone = ITEMS * 50e-6
    found, model = heavy(ONE, workers)
    assert alone / workers <= found.seconds < 1.1 * alone / workers
    assert min(found.busy[1:] if workers > 1 else found.busy[:1]) > 0.85 * found.seconds
    assert model.tasks[0].most == (workers if workers > 1 else 0)


def test_who_hands_work_out_wakes_the_next_one_though_nothing_more_comes() -> None:
    """All items are one turn of the input: behind it no arrival wakes anybody."""
    found, model = played(ONE, 4, 50e-6, 1, ITEMS, 20e-6, bound=2 * ITEMS)
    assert found.seconds < 1.1 * ITEMS * 50e-6 / 4
    assert model.tasks[0].most == 4


def test_of_two_operators_each_has_as_many_workers_as_its_cost_asks_for() -> None:
    """One takes seven times as long as the other: nobody says how many workers each is to have."""
    both = ITEMS * (70e-6 + 10e-6)
    for workers in (2, 4, 8):
        found, model = heavy(UNLIKE, workers, change=70e-6, other=10e-6)
        assert both / workers <= found.seconds < 1.1 * both / workers
        assert [task.width for task in model.tasks if task.widest] == [workers, 1 if workers == 2 else 2]


def test_operators_in_groups_have_the_workers_of_these_and_no_others() -> None:
    """Of one worker each, the one with less to do waits for the other; of two each, both take half as long."""
    placed = (*UNLIKE[:-2], "@Group(a) (q) <- change(xs);", "@Group(b) (ys) <- other(q);")
    most = ITEMS * 70e-6
    for workers in (2, 4):
        found, _ = heavy(placed, workers, change=70e-6, other=10e-6)
        assert most / (workers // 2) <= found.seconds < 1.1 * most / (workers // 2)
        (_, *busy) = found.busy
        assert sum(busy[: workers // 2]) == pytest.approx(most, rel=0.02)


def test_two_operators_with_state_run_side_by_side_and_no_more() -> None:
    both = 2 * ITEMS * 50e-6
    assert heavy(TWO, 1)[0].seconds >= both
    for workers in (2, 4):
        assert both / 2 <= heavy(TWO, workers)[0].seconds < 1.1 * both / 2


def test_operators_that_share_a_lock_take_turns() -> None:
    both = 2 * ITEMS * 50e-6
    for workers in (1, 2, 4):
        assert both <= heavy(LOCKED, workers)[0].seconds < 1.1 * both


def test_the_reader_does_itself_what_is_sooner_done_than_handed_over() -> None:
    """Of turns that are far apart each is done when its steps are, and workers sleep on, however many there are."""
    found, _ = played(THREE, 4, 1e-6, 100, 8, 10e-3)
    assert found.seconds < 100 * (10e-3 + 4 * 8e-6 + 1e-6)
    assert found.woken <= 8  # until it is known what steps take, and at the end
    assert sum(found.busy[1:]) < 0.1 * sum(found.busy)


def test_where_reading_takes_nothing_one_worker_is_the_reader() -> None:
    """Else the two wait for one another. Where reading takes its time, or there are more workers, they stay apart."""
    found, _ = played(THREE, 1, 1e-6, 100, 1000, 1e-6)
    assert found.busy[0] > 0.9 * found.seconds
    assert found.woken < 20
    for workers, reading in ((1, 1e-3), (2, 1e-6)):
        found, _ = played(THREE, workers, 1e-6, 100, 1000, reading)
        assert sum(found.busy[1:]) > 0.9 * 100 * 3 * 1000 * 1e-6


CHAIN = (
    "operator first(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s + v; emit y v; } }",
    "operator most(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s + v; emit y v; } }",
    "operator last(x: i64; $s: i64) -> (y: i64) { on x(v) { $s = $s + v; emit y v; } }",
    *ENDS,
    *(f"var ${name}: i64 = 0;" for name in "abc"),
    "(q, $a) <- first(xs, $a);",
    "(r, $b) <- most(q, $b);",
    "(ys, $c) <- last(r, $c);",
)


def waited(workers: int, **costs: float) -> Played:
    """Turns that are sooner read than handled, of which not two find room, each a batch."""
    return played(CHAIN, workers, 0.0, 100, 1000, 1e-3, batch=1000, bound=1024, **costs)[0]


def test_while_the_reader_waits_its_processor_takes_part_in_steps_that_are_light_each() -> None:
    """No step alone is worth waking somebody, and those of a turn take three times as long as to read it."""
    costs = {"first": 0.7e-6, "most": 1.4e-6, "last": 1.3e-6}
    one, two = waited(1, **costs), waited(2, **costs)
    assert one.seconds > 100 * 3.3e-3
    assert two.seconds < 0.75 * one.seconds
    assert min(two.busy[1:]) > 0.3 * two.seconds


def test_nobody_is_woken_where_one_operator_has_nearly_all_the_work() -> None:
    assert waited(2, first=0.1e-6, most=3.2e-6, last=0.1e-6).woken < 9
    assert waited(2, first=0.4e-6, most=0.4e-6, last=0.4e-6).woken < 9


def test_what_a_worker_has_to_do_until_the_reader_waits_again_counts_and_not_what_a_turn_makes() -> None:
    """Of eight turns a step takes all: to read them takes 1 ms, what they make 3.4 ms, and none of it 1.5 ms."""
    costs = {"first": 0.7e-6, "most": 1.4e-6, "last": 1.3e-6}
    one, two = (
        played(CHAIN, workers, 0.0, 800, 125, 125e-6, batch=1000, bound=8192, **costs)[0]
        for workers in (1, 2)
    )
    assert one.seconds > 800 * 125 * 3.3e-6
    assert two.seconds < 0.75 * one.seconds


@pytest.mark.parametrize("reading", [0.4e-3, 1.0e-3, 1.2e-3])
def test_a_worker_that_left_the_reader_its_processor_is_woken_when_the_reader_waits(reading: float) -> None:
    """What is taken out of a region is worth waking somebody for by what it takes, not by how long it is to take it."""
    turn = reading + 1000 * (1e-6 + 2e-6)
    found, _ = played(
        UNLIKE, 2, 0.0, 100, 1000, reading, batch=1000, bound=2000, processors=2, change=1e-6, other=2e-6
    )
    assert found.seconds < 1.05 * 100 * turn / 2


BETWEEN = (
    CHAIN[0],
    CHANGE,
    CHAIN[2],
    *ENDS,
    "var $a: i64 = 0;",
    "var $b: i64 = 0;",
    "(q, $a) <- first(xs, $a);",
    "(r) <- change(q);",
    "(ys, $b) <- last(r, $b);",
)


@pytest.mark.parametrize("workers", [2, 4])
def test_who_is_free_makes_what_comes_next_before_he_joins_those_that_share_an_operator(workers: int) -> None:
    """What feeds it is one worker's at a time: if all helped to empty its queue, all would wait for that one."""
    costs = {"first": 3e-6, "change": 9.5e-6, "last": 2e-6}
    found, _ = played(BETWEEN, workers, 0.0, 100, 1000, 0.1e-3, batch=1000, bound=2000, **costs)
    assert found.seconds < 1.04 * 100 * 1000 * sum(costs.values()) / workers
