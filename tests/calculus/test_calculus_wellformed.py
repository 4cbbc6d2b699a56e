"""Each rule of well-formedness, broken alone."""

from __future__ import annotations

import pytest

from calculus import Firing, IllFormed, Op, Program, check, initial, outcomes, problems, run
from calculus.schedule import FirstCome


def nothing(item, port, reads):
    return Firing()


def program(*ops, inputs=(), outputs=(), functions=("f", "g"), variables=()):
    return Program(inputs, outputs, ops, dict.fromkeys(functions, nothing), dict.fromkeys(variables, 0))


def op(outs=(), writes=(), function="f", ins=(), reads=()):
    return Op(outs, writes, function, ins, reads)


BROKEN = {
    "two producers": (
        program(
            op(("q",), ins=("a",)), op(("q",), function="g", ins=("b",)), inputs=("a", "b"), outputs=("q",)
        ),
        "queue `q` has 2 producers: `f`, `g`",
    ),
    "two producing ends of one operator": (
        program(op(("q", "q"), ins=("a",)), inputs=("a",), outputs=("q",)),
        "queue `q` has 2 producers: `f`, `f`",
    ),
    "two consumers": (
        program(op(ins=("a",)), op(function="g", ins=("a",)), inputs=("a",)),
        "queue `a` has 2 consumers: `f`, `g`",
    ),
    "two consuming ends of one operator": (
        program(op(ins=("a", "a")), inputs=("a",)),
        "queue `a` has 2 consumers: `f`, `f`",
    ),
    "input with producer": (
        program(op(("b",), ins=("a",)), op(function="g", ins=("b",)), inputs=("a", "b")),
        "input queue `b` has a producer: `f`",
    ),
    "output with consumer": (
        program(op(("b",), ins=("a",)), op(function="g", ins=("b",)), inputs=("a",), outputs=("b",)),
        "output queue `b` has a consumer: `g`",
    ),
    "no producer": (program(op(ins=("a",))), "queue `a` has no producer and is not an input"),
    "no consumer": (
        program(op(("b",), ins=("a",)), inputs=("a",)),
        "queue `b` has no consumer and is not an output",
    ),
    "unbound function": (
        program(op(function="h", ins=("a",)), inputs=("a",)),
        "function `h` is not bound",
    ),
    "unbound variable read": (
        program(op(ins=("a",), reads=("v",)), inputs=("a",)),
        "variable `$v` of `f` has no initial value",
    ),
    "unbound variable written": (
        program(op(writes=("v",), ins=("a",)), inputs=("a",)),
        "variable `$v` of `f` has no initial value",
    ),
    "variable written twice": (
        program(op(writes=("v", "v"), ins=("a",)), inputs=("a",), variables=("v",)),
        "variable `$v` is written twice by `f`",
    ),
    "input declared twice": (
        program(op(ins=("a",)), inputs=("a", "a")),
        "queue `a` is declared as input twice",
    ),
    "output declared twice": (
        program(op(("b",), ins=("a",)), inputs=("a",), outputs=("b", "b")),
        "queue `b` is declared as output twice",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_rule_is_reported_alone(case):
    broken, problem = BROKEN[case]
    assert problems(broken) == (problem,)
    with pytest.raises(IllFormed) as caught:
        check(broken)
    assert caught.value.problems == (problem,)
    assert str(caught.value) == problem


def test_all_problems_are_reported_at_once():
    broken = program(op(("b",), ("v",), "h", ("a",)))
    assert len(problems(broken)) == 4


def test_the_papers_example_is_well_formed(apples):
    assert problems(apples) == ()
    check(apples)


def test_loops_idle_inputs_and_unwritten_outputs_are_well_formed():
    loop = op(("q",), ins=("q", "a"))
    assert problems(program(loop, inputs=("a", "idle"), outputs=("dry",), variables=("spare",))) == ()


def test_nothing_runs_that_is_not_well_formed():
    broken, _ = BROKEN["two consumers"]
    with pytest.raises(IllFormed):
        initial(broken, {})
    with pytest.raises(IllFormed):
        run(broken, {}, FirstCome())
    with pytest.raises(IllFormed):
        outcomes(broken, {})
