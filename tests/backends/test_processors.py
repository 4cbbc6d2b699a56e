"""Workers that share an operator are each on a processor of its own meanwhile, where there are as many."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import river
from backends.multicore import dispatch, parallel, processors
from backends.multicore.scheduling.ready import LastFirst
from backends.multicore.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system keeps threads nowhere"
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where this thread was to be kept, one after the other; it may be on processors 3, 5 and 8."""
    found: list[Any] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {8, 3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, where: found.append(set(where)))
    return found


@pytest.mark.parametrize(("worker", "processor"), [(0, 3), (1, 5), (2, 8)])
def test_a_worker_has_the_processor_of_its_number_and_may_then_be_on_any(
    said: list[Any], worker: int, processor: int
) -> None:
    with suppress(KeyError), processors.own(worker, 3):
        assert said == [{processor}]
        raise KeyError
    assert said == [{processor}, {3, 5, 8}]


@pytest.mark.parametrize(("worker", "workers"), [(0, 1), (0, 2), (1, 2), (3, 4), (-1, 3)])
def test_where_workers_are_more_or_fewer_and_for_the_reader_the_system_decides(
    said: list[Any], worker: int, workers: int
) -> None:
    with processors.own(worker, workers):
        assert said == []
    assert said == []


def test_a_processor_that_has_been_taken_away_is_not_insisted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    done = False
    with processors.own(0, 2):
        done = True
    assert done


def test_who_shares_an_operator_asks_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    asked: list[tuple[int, int]] = []

    def own(worker: int, workers: int) -> AbstractContextManager[None]:
        asked.append((worker, workers))
        return processors.own(worker, workers)

    monkeypatch.setattr(dispatch, "own", own)
    monkeypatch.setattr(parallel, "WORTH", 0.0)
    found = river.compile(
        "river 1; operator twice(x: i64) -> (y: i64) { on x(v) { emit y 2 * v; } } input xs: i64; output ys: i64;"
        " @Parallel(2) @Region(a, round_robin) (ys) <- twice(xs);",
        "river",
    )
    numbers = list(range(5000))
    for workers in (1, 2):
        ran = found.run({"xs": numbers}, backend="multicore", workers=workers, batch=100, bound=100)["ys"][
            "value"
        ].to_pylist()
        assert ran == [2 * each for each in numbers]
    assert asked
    assert {workers for _, workers in asked} == {2}


def test_the_reader_is_a_thread_more_until_it_has_read_all() -> None:
    found = Scheduler((), (), LastFirst([]), workers=2, cores=2, batch=1)
    assert found.read_apart
    found.end()
    assert not found.read_apart
