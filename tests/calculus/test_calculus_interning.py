"""Numbers for values: what is told apart, and that functions are asked once."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from attrs import field, frozen

from calculus import Fault, Finished, Firing, Op, Program, outcomes
from calculus.interning import Interner, intern


class Pair(NamedTuple):
    x: int
    y: int


@frozen
class Box:
    content: object
    place: str = field(default="", eq=False)


@frozen(eq=False)
class Handle:
    content: object


def same(one, other):
    interner = Interner()
    return interner.number(one) == interner.number(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1, (0.0,)), (1, (-0.0,))),
        (frozenset({1}), frozenset({True})),
        (Pair(1, 2), (1, 2)),
        (Box(0.0), Box(-0.0)),
        (Box(1), 1),
    ],
)
def test_numbers_are_finer_than_equality(one, other):
    assert not same(one, other)
    assert same(one, one)


def test_equal_values_have_one_number():
    assert same(float("nan"), float("inf") - float("inf"))
    assert same((1, frozenset({"a", "b"})), (1, frozenset({"b", "a"})))
    assert same(Box(1, "here"), Box(1, "there"))
    handle = Handle([])
    assert same(handle, handle)
    assert not same(handle, Handle([]))


def test_equal_objects_have_one_number():
    interner = Interner()
    kept = interner.number(("a", (1, 2)))
    assert [interner.number(("a", (1, int(text)))) for text in "222"] == [kept] * 3
    assert interner.value(kept) == ("a", (1, 2))


def test_numbers_are_places():
    interner = Interner()
    assert interner.numbers(["a", 1, True, "a", 1.0]) == (0, 1, 2, 0, 3)
    assert interner.decoded((0, 1, 2, 3)) == ("a", 1, True, 1.0)
    assert interner.value(2) is True


def test_functions_are_asked_once_for_each_argument_and_faults_are_remembered():
    asked = []

    def function(item, port, reads):
        asked.append((item, port, reads))
        if item == "bad":
            raise Fault("no")
        return Firing(((item * 2,),), ())

    program = Program(("a",), ("q",), (Op(("q",), (), "f", ("a",), ("v",)),), {"f": function}, {"v": 0})
    interned = intern(program, {"a": ["x", "bad"]})
    call = interned.program.functions["f"]
    good, bad = interned.inputs["a"]
    reads = (interned.program.initial["v"],)
    for _ in range(2):
        assert interned.interner.decoded(call(good, 0, reads).pushed[0]) == ("xx",)
        with pytest.raises(Fault) as caught:
            call(bad, 0, reads)
        assert caught.value.info == "no"
    call(good, 1, reads)
    call(good, 0, (bad,))
    assert asked[3:] == [("x", 0, ("bad",))]
    assert asked[:3] == [("x", 0, (0,)), ("bad", 0, (0,)), ("x", 1, (0,))]


def test_exploration_keeps_equal_numbers_of_different_kinds_apart():
    def show(item, port, reads):
        return Firing(((repr(item),),), ())

    program = Program(("a",), ("q",), (Op(("q",), (), "show", ("a",), ()),), {"show": show}, {})
    found = outcomes(program, {"a": [1, True, 1.0, 0.0, -0.0]})
    assert found.outcomes == {Finished((("q", ("1", "True", "1.0", "0.0", "-0.0")),), ())}
