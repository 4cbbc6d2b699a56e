"""All executions of small programs, counted by hand."""

from __future__ import annotations

import pytest

from calculus import (
    Fault,
    Faulted,
    Finished,
    Firing,
    LimitReached,
    Op,
    Program,
    Scripted,
    is_confluent,
    outcomes,
    run,
)
from calculus.stubborn import StubbornSets

PAIRS = {"a": (1, 2), "b": (3, 4)}
EITHER_WAY = pytest.mark.parametrize("reduce", [True, False])


def forward(item, port, reads):
    return Firing(((item,),))


def fault(item, port, reads):
    raise Fault(item)


def append(item, port, reads):
    return Firing((), ((*reads[0], item),))


def stage(out, arrival):
    return Op((out,), (), "forward", (arrival,), ())


def final(found, name):
    """The values of one variable, or the contents of one output queue, in all outcomes found."""
    ends = [outcome for outcome in found.outcomes if isinstance(outcome, Finished)]
    assert len(ends) == len(found.outcomes)
    return {dict((*end.variables, *end.outputs))[name] for end in ends}


def program(inputs, outputs, *ops, **initial):
    functions = {"forward": forward, "fault": fault, "append": append}
    return Program(inputs, outputs, ops, functions, initial)


def test_two_operators_two_items_one_variable(race):
    """19 configurations (the prefixes of the 6 interleavings) and 6 outcomes."""
    full = outcomes(race, PAIRS, reduce=False)
    assert (full.states, len(full.outcomes), full.complete, full.diverges) == (19, 6, True, False)
    logs = final(full, "log")
    assert logs == {(1, 2, 3, 4), (1, 3, 2, 4), (1, 3, 4, 2), (3, 1, 2, 4), (3, 1, 4, 2), (3, 4, 1, 2)}
    assert outcomes(race, PAIRS).outcomes == full.outcomes


@EITHER_WAY
def test_the_apples_have_one_outcome(apples, reduce):
    found = outcomes(apples, {"trades": [("AAPL", 3), ("IBM", 5), ("AAPL", 4)]}, reduce=reduce)
    assert found.outcomes == {Finished((), (("volume", 7),))}
    assert found.complete


def test_independent_pipelines_are_explored_along_one_path(relay):
    inputs = {"x0": [1, 2, 3], "y0": [4, 5, 6]}
    full, reduced = outcomes(relay, inputs, reduce=False), outcomes(relay, inputs)
    assert reduced.outcomes == full.outcomes == {Finished((("x2", (1, 2, 3)), ("y2", (4, 5, 6))), ())}
    assert (full.states, full.firings) == (100, 240)
    assert (reduced.states, reduced.firings) == (13, 12)


@EITHER_WAY
def test_witnesses_lead_to_their_outcomes(race, reduce):
    found = outcomes(race, PAIRS, reduce=reduce)
    assert set(found.witnesses) == found.outcomes
    for outcome, script in found.witnesses.items():
        assert run(race, PAIRS, Scripted(script)).outcome == outcome


@EITHER_WAY
@pytest.mark.parametrize("ins", [("m", "b"), ("b", "m")])
def test_an_item_still_on_its_way_to_the_other_port_may_be_first(ins, reduce):
    merge = Op(("q",), (), "forward", ins, ())
    joined = program(("a", "b"), ("q",), merge, stage("l", "a"), stage("m", "l"))
    found = outcomes(joined, {"a": ["late"], "b": ["soon"]}, reduce=reduce)
    assert final(found, "q") == {("late", "soon"), ("soon", "late")}


@EITHER_WAY
def test_an_item_still_on_its_way_to_a_shared_variable_may_be_first(reduce):
    late = Op((), ("log",), "append", ("m",), ("log",))
    soon = Op((), ("log",), "append", ("b",), ("log",))
    shared = program(("a", "b"), (), soon, late, stage("m", "a"), log=())
    found = outcomes(shared, {"a": ["late"], "b": ["soon"]}, reduce=reduce)
    assert final(found, "log") == {
        ("late", "soon"),
        ("soon", "late"),
    }


def test_who_only_reads_a_variable_is_independent_of_other_readers():
    def tag(item, port, reads):
        return Firing(((item, *reads),))

    ops = (Op(("p",), (), "tag", ("a",), ("v",)), Op(("q",), (), "tag", ("b",), ("v",)))
    readers = Program(("a", "b"), ("p", "q"), ops, {"tag": tag}, {"v": 0})
    sets = StubbornSets.of(readers)
    assert sets.choices(("a", "b")) == ("a",)
    assert outcomes(readers, PAIRS).states == 5


def test_the_stubborn_set_with_the_fewest_choices_is_taken(race):
    ops = (*race.ops, Op((), (), "forget", ("c",), ()))
    both = Program(
        (*race.inputs, "c"), (), ops, {**race.functions, "forget": lambda *_: Firing()}, race.initial
    )
    assert StubbornSets.of(both).choices(("a", "b", "c")) == ("c",)
    assert StubbornSets.of(both).choices(("a", "b")) == ("a", "b")
    assert StubbornSets.of(both).choices(()) == ()


def test_ports_of_an_operator_without_outputs_do_not_depend_on_each_other():
    sink = Program(("a", "b"), (), (Op((), (), "f", ("a", "b"), ()),), {"f": lambda *_: Firing()}, {})
    assert StubbornSets.of(sink).choices(("a", "b")) == ("a",)


@EITHER_WAY
def test_each_fault_that_may_come_first_is_found(reduce):
    near = Op((), (), "fault", ("b",), ())
    far = Op((), (), "fault", ("m",), ())
    twice = program(("a", "b"), (), near, far, stage("m", "a"))
    found = outcomes(twice, {"a": ["far"], "b": ["near"]}, reduce=reduce)
    assert found.outcomes == {Faulted("far"), Faulted("near")}
    for outcome, script in found.witnesses.items():
        assert run(twice, {"a": ["far"], "b": ["near"]}, Scripted(script)).outcome == outcome


@EITHER_WAY
def test_a_certain_fault_leaves_no_other_outcome(reduce):
    certain = program(("a", "b"), ("q",), stage("q", "a"), Op((), (), "fault", ("b",), ()))
    assert outcomes(certain, {"a": [1, 2], "b": ["no"]}, reduce=reduce).outcomes == {Faulted("no")}


@EITHER_WAY
def test_an_avoidable_fault_is_one_outcome_among_others(reduce):
    def put(item, port, reads):
        return Firing((), (item,))

    def get(item, port, reads):
        if reads[0] == 0:
            raise Fault("unset")
        return Firing(((item / reads[0],),))

    ops = (Op((), ("v",), "put", ("a",), ()), Op(("q",), (), "get", ("b",), ("v",)))
    early = Program(("a", "b"), ("q",), ops, {"put": put, "get": get}, {"v": 0})
    found = outcomes(early, {"a": [2], "b": [6]}, reduce=reduce)
    assert found.outcomes == {Faulted("unset"), Finished((("q", (3,)),), (("v", 2),))}


@EITHER_WAY
@pytest.mark.parametrize("stages", [1, 3])
def test_an_endless_loop_does_not_hide_a_fault_elsewhere(stages, reduce):
    ring = [stage(f"r{(i + 1) % stages}", f"r{i}") for i in range(1, stages)]
    entry = Op((f"r{1 % stages}",), (), "forward", ("a", "r0"), ())
    tail = (stage("m", "b"), Op((), (), "fault", ("m",), ()))
    spinning = program(("a", "b"), (), entry, *ring, *tail)
    found = outcomes(spinning, {"a": ["spin"], "b": ["no"]}, reduce=reduce)
    assert found.outcomes == {Faulted("no")}
    assert (found.complete, found.diverges) == (True, True)


@EITHER_WAY
def test_a_loop_that_never_ends_has_no_outcome(reduce):
    loop = program(("a",), (), Op(("q",), (), "forward", ("a", "q"), ()))
    found = outcomes(loop, {"a": ["spin"]}, reduce=reduce)
    assert (found.outcomes, found.states, found.complete, found.diverges) == (frozenset(), 2, True, True)
    assert not is_confluent(loop, {"a": ["spin"]})


@EITHER_WAY
def test_a_program_may_end_or_not(reduce):
    def spin(item, port, reads):
        return Firing((() if reads[0] else (item,),))

    ops = (Op(("q",), (), "spin", ("a", "q"), ("stop",)), Op((), ("stop",), "set", ("b",), ()))
    may = Program(("a", "b"), (), ops, {"spin": spin, "set": lambda *_: Firing((), (True,))}, {"stop": False})
    found = outcomes(may, {"a": [1], "b": [1]}, reduce=reduce)
    assert found.outcomes == {Finished((), (("stop", True),))}
    assert (found.complete, found.diverges) == (True, True)
    assert not is_confluent(may, {"a": [1], "b": [1]})


@EITHER_WAY
def test_an_empty_execution_has_the_empty_outcome(relay, reduce):
    found = outcomes(relay, {}, reduce=reduce)
    end = Finished((("x2", ()), ("y2", ())), ())
    assert (found.outcomes, found.witnesses, found.states, found.firings) == ({end}, {end: ()}, 1, 0)


def test_a_limit_makes_the_search_incomplete(race):
    whole = outcomes(race, PAIRS, reduce=False)
    for limit in range(19):
        part = outcomes(race, PAIRS, reduce=False, limit=limit)
        assert (part.complete, part.states) == (False, limit)
        assert part.outcomes <= whole.outcomes
    assert outcomes(race, PAIRS, reduce=False, limit=19) == whole


def test_a_limit_ends_the_search_of_a_growing_program():
    def grow(item, port, reads):
        return Firing(((item, item),))

    growing = Program(("a",), (), (Op(("q",), (), "grow", ("a", "q"), ()),), {"grow": grow}, {})
    found = outcomes(growing, {"a": [1]}, limit=50)
    assert (found.complete, found.outcomes, found.states) == (False, frozenset(), 50)


def test_deep_executions_are_no_problem(relay):
    found = outcomes(relay, {"x0": range(1500)})
    assert (len(found.outcomes), found.states) == (1, 3001)


def test_confluence(race, relay, apples):
    assert not is_confluent(race, PAIRS)
    assert is_confluent(race, {"a": (1, 2)})
    assert is_confluent(relay, {"x0": (1, 2), "y0": (3,)})
    assert is_confluent(apples, {"trades": [("AAPL", 3)]})


def test_two_outcomes_refute_confluence_even_if_the_search_is_cut_off(race):
    assert not is_confluent(race, PAIRS, limit=12)


def test_an_undecided_confluence_is_not_answered(relay):
    with pytest.raises(LimitReached, match="undecided after 3 configurations") as caught:
        is_confluent(relay, {"x0": (1, 2), "y0": (3,)}, limit=3)
    assert caught.value.exploration.states == 3
