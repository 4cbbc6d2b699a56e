"""How often Python looks for garbage: seldom while a run begins, as before when it goes on."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

import river
from river.garbage import OBJECTS, seldom

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_python_looks_seldom_until_the_last_one_leaves() -> None:
    with seldom():
        with seldom():
            assert gc.get_threshold() == (OBJECTS, 10, 10)
        assert gc.get_threshold() == (OBJECTS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_python_looks_as_before_behind_what_fails() -> None:
    with pytest.raises(ZeroDivisionError), seldom():
        _ = 1 / 0
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("most", [0, 200_000])
def test_who_looks_more_seldom_goes_on_so(most: int) -> None:
    gc.set_threshold(most, 20, 20)
    with seldom():
        assert gc.get_threshold() == (most, 20, 20)
    assert gc.get_threshold() == (most, 20, 20)


def test_what_is_set_meanwhile_stays() -> None:
    with seldom():
        gc.set_threshold(5_000, 7, 7)
    assert gc.get_threshold() == (5_000, 7, 7)


def test_python_looks_as_before_while_rows_are_read() -> None:
    """The user's code may make garbage that holds much memory."""
    program = river.compile(
        "river 1; input a: i64; output b: i64; operator f(x: i64) -> (y: i64) { on x(v) { emit y v; } } (b) <- f(a);",
        "river",
    )
    found: list[Any] = []

    def rows() -> Iterator[int]:
        for i in range(3):
            found.append(gc.get_threshold())
            yield i

    assert len(program.run({"a": rows()}, workers=2)["b"]) == 3
    assert found == [(700, 10, 10)] * 3
    assert gc.get_threshold() == (700, 10, 10)
