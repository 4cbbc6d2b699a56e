"""Fig. 1: its theorem, on random uses of variables, and the schemes that it is compared with."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.locks import classes, lock_each, lock_set, one_lock, shared

USES = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=6)


@given(USES)
def test_every_shared_variable_is_under_exactly_one_lock(uses):
    found = [variable for locked in classes(uses) for variable in locked]
    assert sorted(found) == sorted(shared(uses))
    assert set(found) == {v for v in "abcdefgh" if sum(v in used for used in uses) >= 2}


@given(USES)
def test_two_variables_have_separate_locks_iff_an_instance_uses_one_and_not_the_other(uses):
    locks = classes(uses)
    place = {variable: i for i, locked in enumerate(locks) for variable in locked}
    for (v, lock_of_v), (w, lock_of_w) in product(place.items(), repeat=2):
        told_apart = any((v in used) != (w in used) for used in uses)
        assert (lock_of_v != lock_of_w) == told_apart


@given(USES)
def test_an_instance_locks_only_what_it_uses_and_all_that_is_shared(uses):
    locks = classes(uses)
    for used in uses:
        held = {variable for i in lock_set(locks, used) for variable in locks[i]}
        assert held == set(used) & set(shared(uses))


@given(USES)
def test_locks_are_acquired_in_one_order(uses):
    for locks in (classes(uses), one_lock(uses), lock_each(uses)):
        for used in uses:
            assert list(lock_set(locks, used)) == sorted(lock_set(locks, used))


@given(USES)
def test_the_naive_schemes_cover_the_same_variables(uses):
    for scheme in (one_lock, lock_each):
        assert sorted(v for locked in scheme(uses) for v in locked) == sorted(shared(uses))
    assert len(one_lock(uses)) <= 1
    assert all(len(locked) == 1 for locked in lock_each(uses))


@pytest.mark.parametrize(
    ("uses", "locks"),
    [
        ([], ()),
        ([("a", "b"), ("c",)], ()),
        (
            [("a",), ("a", "b"), ("b",)],
            (("a",), ("b",)),
        ),  # River 6.3, coarse-grained: f1 and f3 have none in common
        ([("a", "b", "c"), ("a", "b", "c")], (("a", "b", "c"),)),  # River 6.3, fine-grained
        ([("a", "b"), ("b", "c"), ("c", "a")], (("a",), ("b",), ("c",))),
    ],
)
def test_examples(uses, locks):
    assert classes(uses) == locks
