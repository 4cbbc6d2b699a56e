"""What pytest-xdist does when workers die: the run goes on, with others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_xdist_make_scheduler

TESTS = [f"tests/test_a.py::test_{i}" for i in range(9)]


class Worker:
    """What a scheduler knows of a worker, and the tests that it was given."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.given: list[str] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += [TESTS[number] for number in numbers]

    def shutdown(self) -> None:
        self.shutting_down = True


class Log:
    """Where a scheduler says what it does."""

    def __getattr__(self, name: str) -> Log:
        return self

    def __call__(self, *_: object) -> None:
        pass


@pytest.fixture
def scheduler() -> Any:
    values = {"dist": "loadgroup", "tx": ["popen", "popen"]}
    config: Any = SimpleNamespace(getvalue=values.get, option=SimpleNamespace(loadscopereorder=False))
    return pytest_xdist_make_scheduler(config, Log())


def started(scheduler: Any, *workers: Worker) -> None:
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()


def test_workers_that_come_later_begin_one_by_one(scheduler: Any) -> None:
    first, second, third, fourth = (Worker() for _ in range(4))
    started(scheduler, first, second)
    assert first.given
    assert second.given
    died = [scheduler.remove_node(first), scheduler.remove_node(second)]
    scheduler.add_node(third)
    scheduler.add_node(fourth)  # it knows no tests yet
    scheduler.add_node_collection(third, TESTS)
    scheduler.schedule()
    assert not fourth.given
    scheduler.add_node_collection(fourth, TESTS)
    scheduler.schedule()
    assert third.given
    assert fourth.given
    assert not {*third.given, *fourth.given} & {*died}


def test_a_worker_may_die_while_another_comes(scheduler: Any) -> None:
    first, second, third = (Worker() for _ in range(3))
    started(scheduler, first, second)
    died = [scheduler.remove_node(first)]
    scheduler.add_node(third)  # it knows no tests yet
    died.append(scheduler.remove_node(second))
    scheduler.add_node_collection(third, TESTS)
    scheduler.schedule()
    assert third.given
    assert not {*third.given} & {*died}


def test_what_a_worker_has_done_is_not_done_again(scheduler: Any) -> None:
    first, second, third = (Worker() for _ in range(3))
    started(scheduler, first, second)
    done = first.given[0]
    scheduler.mark_test_complete(first, TESTS.index(done))
    assert scheduler.remove_node(first) == first.given[1]
    scheduler.add_node(third)
    scheduler.add_node_collection(third, TESTS)
    scheduler.schedule()
    for name in third.given:  # more and more: what comes next is given when little is left
        scheduler.mark_test_complete(third, TESTS.index(name))
    assert third.given
    assert third.shutting_down
    assert not {*third.given} & {*first.given[:2]}
