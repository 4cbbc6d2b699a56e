"""When two outcomes are the same."""

from __future__ import annotations

import pytest

from calculus import Faulted, Finished, observe
from calculus.observe import Bag, Observed

ONE = Finished((("p", (1, 2, 2)), ("q", (3,))), (("v", 1), ("w", (2, 3))))


def test_plain_observation_sorts_names_only():
    other = Finished((("q", (3,)), ("p", (1, 2, 2))), (("w", (2, 3)), ("v", 1)))
    assert observe(ONE) == observe(other)
    assert observe(ONE) == Observed((("p", (1, 2, 2)), ("q", (3,))), (("v", 1), ("w", (2, 3))))


def test_order_counts_unless_the_queue_is_a_bag():
    other = Finished((("p", (2, 1, 2)), ("q", (3,))), ONE.variables)
    assert observe(ONE) != observe(other)
    assert observe(ONE, bags=["p"]) == observe(other, bags=["p"])
    assert observe(ONE, bags=["q"]) != observe(other, bags=["q"])


def test_a_bag_counts_its_items():
    assert Bag.of([1, 2, 2]) != Bag.of([1, 1, 2]) != Bag.of([1, 2])
    other = Finished((("p", (1, 2)), ("q", (3,))), ONE.variables)
    assert observe(ONE, bags=["p"]) != observe(other, bags=["p"])


def test_only_the_named_variables_are_compared():
    other = Finished(ONE.outputs, (("v", 1), ("u", 9)))
    assert observe(ONE) != observe(other)
    assert observe(ONE, variables=["v"]) == observe(other, variables=["v"])
    assert observe(ONE, variables=()) == observe(other, variables=())


def test_views_canonicalise_values_and_whole_queues():
    other = Finished((("p", (2, 2, 1)), ("q", (3,))), (("v", 1), ("w", (3, 2))))
    view = {"p": sorted, "w": frozenset}
    assert observe(ONE, view=view) == observe(other, view=view)
    assert observe(ONE, view={"w": frozenset}) != observe(other, view={"w": frozenset})


def test_a_view_comes_before_the_bag():
    view = {"p": lambda items: [item for item in items if item > 1]}
    seen = observe(ONE, bags=["p"], view=view)
    assert seen == observe(Finished((("p", (2, 2)), ("q", (3,))), ONE.variables), bags=["p"])


def test_faults_are_compared_by_their_information():
    assert observe(Faulted("x"), bags=["p"], variables=["v"]) == Faulted("x") != Faulted("y")


def test_names_that_the_outcome_lacks_are_refused():
    with pytest.raises(ValueError, match="not output queues of the outcome: v"):
        observe(ONE, bags=["p", "v"])
    with pytest.raises(ValueError, match="not variables of the outcome: p"):
        observe(ONE, variables=["p", "v"])


def test_observations_can_be_members_of_sets():
    assert len({observe(ONE, bags=["p"]), observe(ONE), observe(ONE, bags=["p"])}) == 2
