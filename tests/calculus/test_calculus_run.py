"""Schedules, traces, replay, arrival orders and limits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from calculus import (
    Fault,
    Faulted,
    Finished,
    Firing,
    FirstCome,
    NotEligible,
    Op,
    Program,
    RoundRobin,
    Scripted,
    ScriptError,
    Seeded,
    initial,
    outcomes,
    run,
    step,
)

TRADES = {"trades": (("AAPL", 3), ("IBM", 5), ("AAPL", 4))}
PAIRS = {"a": (1, 2), "b": (3, 4)}


@pytest.mark.parametrize("schedule", [FirstCome(), RoundRobin(), Seeded(0), Seeded(1)])
def test_any_schedule_counts_the_apples(apples, schedule):
    got = run(apples, TRADES, schedule, trace=True)
    assert got.outcome == Finished((), (("volume", 7),))
    assert got.steps == len(got.events) == 5
    assert tuple(event.queue for event in got.events) == got.script


def test_first_come_takes_inputs_first_and_then_by_age(relay):
    got = run(relay, {"x0": [1, 2], "y0": [3]}, FirstCome())
    assert got.script == ("x0", "x0", "y0", "x1", "x1", "y1")
    assert got.outcome == Finished((("x2", (1, 2)), ("y2", (3,))), ())


def test_first_come_follows_the_arrivals(relay, race):
    arrivals = [("y0", 3), ("x0", 1), ("y0", 4), ("x0", 2)]
    got = run(relay, {"x0": [1, 2], "y0": [3, 4]}, FirstCome(), arrivals=arrivals)
    assert got.script == ("y0", "x0", "y0", "x0", "y1", "x1", "y1", "x1")
    for order in ([("a", 1), ("b", 3), ("a", 2), ("b", 4)], [("b", 3), ("b", 4), ("a", 1), ("a", 2)]):
        got = run(race, PAIRS, FirstCome(), arrivals=order)
        assert got.outcome == Finished((), (("log", tuple(item for _, item in order)),))


@pytest.mark.parametrize(
    "arrivals",
    [
        [("a", 1), ("a", 2), ("b", 3)],
        [("a", 2), ("a", 1), ("b", 3), ("b", 4)],
        [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("c", 5)],
        [],
    ],
)
def test_arrivals_must_be_an_interleaving_of_the_inputs(race, arrivals):
    with pytest.raises(ValueError, match="not an interleaving"):
        run(race, PAIRS, FirstCome(), arrivals=arrivals)


def test_round_robin_takes_turns(race, relay):
    assert run(race, PAIRS, RoundRobin()).outcome == Finished((), (("log", (1, 3, 2, 4)),))
    got = run(relay, {"x0": [1, 2], "y0": [3]}, RoundRobin())
    assert got.script == ("x0", "x1", "y0", "y1", "x0", "x1")


def test_seeds_repeat_and_differ(race):
    runs = {seed: run(race, PAIRS, Seeded(seed)).script for seed in range(60)}
    assert runs == {seed: run(race, PAIRS, Seeded(seed)).script for seed in range(60)}
    assert len(set(runs.values())) == 6


def test_a_script_replays_a_run(race):
    first = run(race, PAIRS, Seeded(5), trace=True)
    assert run(race, PAIRS, Scripted(first.script), trace=True) == first


def test_a_trace_is_a_chain_of_steps(race):
    got = run(race, PAIRS, Seeded(3), trace=True)
    at = initial(race, PAIRS)
    for queue in got.script:
        at = step(race, at, queue)
    assert at == got.final
    assert got.events[0].read == ((),)
    for one, other in pairwise(got.events):
        assert one.written == other.read


def test_without_trace_there_are_no_events(race):
    assert run(race, PAIRS, RoundRobin()).events == ()


@pytest.mark.parametrize(
    ("script", "position", "queue", "eligible"),
    [
        (("a", "a", "a"), 2, "a", ("b",)),
        (("a", "nowhere"), 1, "nowhere", ("a", "b")),
        (("a", "b"), 2, None, ("a", "b")),
        (("a", "a", "b", "b", "b"), 4, "b", ()),
    ],
)
def test_a_wrong_script_is_refused_where_it_goes_wrong(race, script, position, queue, eligible):
    with pytest.raises(ScriptError, match=f"choice {position}: ") as caught:
        run(race, PAIRS, Scripted(script))
    assert (caught.value.position, caught.value.queue, caught.value.eligible) == (position, queue, eligible)


def test_a_limit_stops_before_the_end(race):
    got = run(race, PAIRS, RoundRobin(), limit=3)
    assert (got.outcome, got.steps) == (None, 3)
    assert got.final is not None
    assert got.final.variables == ((1, 3, 2),)
    assert run(race, PAIRS, RoundRobin(), limit=4).outcome == Finished((), (("log", (1, 3, 2, 4)),))


def test_a_limit_stops_what_would_never_end():
    ops = (Op(("q",), (), "f", ("a", "q"), ()),)
    endless = Program(("a",), (), ops, {"f": lambda item, *_: Firing(((item,),))}, {})
    got = run(endless, {"a": [1]}, FirstCome(), limit=100)
    assert (got.outcome, got.script) == (None, ("a", *["q"] * 99))


def faulty() -> Program:
    """Forwards items, faults on 2."""

    def function(item, port, reads):
        if item == 2:
            raise Fault(("two", port))
        return Firing(((item,),))

    return Program(("a",), ("q",), (Op(("q",), (), "f", ("a",), ()),), {"f": function}, {})


def test_a_fault_ends_the_run():
    got = run(faulty(), {"a": [1, 2, 3]}, FirstCome(), trace=True)
    assert (got.outcome, got.final, got.script) == (Faulted(("two", 0)), None, ("a", "a"))
    assert [event.item for event in got.events] == [1]
    assert run(faulty(), {"a": [1, 2, 3]}, Scripted(got.script), trace=True) == got


def test_a_script_that_goes_on_after_a_fault_is_refused():
    with pytest.raises(ScriptError, match="choice 2: the script says `a`; eligible: nothing"):
        run(faulty(), {"a": [1, 2, 3]}, Scripted(("a", "a", "a")))


class Obstinate:
    """A schedule of one's own that always says the same."""

    def __init__(self, answer):
        self.answer = answer

    def choose(self, moment, /):
        return self.answer


def test_a_schedule_may_stop_and_may_not_choose_wrongly(race):
    assert run(race, PAIRS, Obstinate(None)).outcome is None
    with pytest.raises(NotEligible, match="the schedule chose `a`; eligible: b"):
        run(race, PAIRS, Obstinate("a"))
    with pytest.raises(NotEligible, match="the schedule chose `a`; eligible: nothing"):
        run(faulty(), {"a": [2, 3]}, Obstinate("a"))


def test_every_run_is_one_of_the_outcomes(race):
    possible = outcomes(race, PAIRS).outcomes
    assert {run(race, PAIRS, Seeded(seed)).outcome for seed in range(60)} == possible
