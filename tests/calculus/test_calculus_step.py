"""The one rule, step by step."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from calculus import (
    Event,
    Fault,
    Firing,
    NotEligible,
    Op,
    Program,
    WrongFiring,
    eligible,
    fire,
    initial,
    step,
)
from calculus.state import Configuration, items, value

TRADES = (("AAPL", 3), ("IBM", 5), ("AAPL", 4))


def test_the_papers_execution(apples):
    at = initial(apples, {"trades": TRADES})
    assert at == Configuration((TRADES, ()), (0,))
    assert eligible(apples, at) == ("trades",)
    at = step(apples, at, "trades")
    assert items(apples, at, "trades") == TRADES[1:]
    assert items(apples, at, "appleTrades") == (("AAPL", 3),)
    assert eligible(apples, at) == ("trades", "appleTrades")
    at = step(apples, at, "appleTrades")
    assert (items(apples, at, "appleTrades"), value(apples, at, "volume")) == ((), 3)
    at = step(apples, step(apples, at, "trades"), "trades")
    assert items(apples, at, "appleTrades") == (("AAPL", 4),)
    at = step(apples, at, "appleTrades")
    assert eligible(apples, at) == ()
    assert at == Configuration(((), ()), (7,))


def test_a_step_leaves_the_configuration_before_it_alone(apples):
    before = initial(apples, {"trades": TRADES})
    copy = Configuration(before.queues, before.variables)
    step(apples, before, "trades")
    assert before == copy
    assert hash(before) == hash(copy)


def test_firing_gets_item_port_and_values_and_its_products_are_appended_in_order():
    calls = []

    def function(item, port, reads):
        calls.append((item, port, reads))
        return Firing(((item, "x"), ()), (reads[1], reads[0]))

    ops = (Op(("p", "q"), ("v", "w"), "f", ("a", "b"), ("w", "v")),)
    program = Program(("a", "b"), ("q", "p"), ops, {"f": function}, {"v": 1, "w": 2})
    at = initial(program, {"a": ["a1", "a2"], "b": ["b1"]})
    event, at = fire(program, at, "b")
    assert event == Event("b", ops[0], "b1", (2, 1), (("b1", "x"), ()), (1, 2))
    at = step(program, at, "a")
    assert calls == [("b1", 1, (2, 1)), ("a1", 0, (2, 1))]
    assert items(program, at, "p") == ("b1", "x", "a1", "x")
    assert items(program, at, "q") == ()
    assert items(program, at, "a") == ("a2",)


def test_values_are_read_before_they_are_written():
    def swap(item, port, reads):
        return Firing((), (reads[1], reads[0]))

    ops = (Op((), ("v", "w"), "swap", ("a",), ("v", "w")),)
    program = Program(("a",), (), ops, {"swap": swap}, {"v": 1, "w": 2})
    assert step(program, initial(program, {"a": [0]}), "a").variables == (2, 1)


def test_an_operator_may_feed_itself():
    def down(item, port, reads):
        return Firing(((item - 1,) if item else (),), ())

    program = Program((), (), (Op(("q",), (), "down", ("q",), ()),), {"down": down}, {})
    at = Configuration(((2,),), ())
    at = step(program, at, "q")
    assert at == Configuration(((1,),), ())
    assert eligible(program, step(program, step(program, at, "q"), "q")) == ()


def test_what_cannot_fire_is_refused(apples):
    at = initial(apples, {"trades": TRADES})
    with pytest.raises(NotEligible, match="`appleTrades` is not eligible: it is empty"):
        step(apples, at, "appleTrades")
    with pytest.raises(NotEligible, match="`elsewhere` is not eligible: it has no consumer"):
        fire(apples, at, "elsewhere")


def test_inputs_are_checked_and_may_be_absent(apples):
    with pytest.raises(ValueError, match="not input queues of the program: appleTrades, x"):
        initial(apples, {"x": [], "appleTrades": [1]})
    assert initial(apples, {}) == Configuration(((), ()), (0,))


def test_a_fault_passes_through():
    def fault(item, port, reads):
        raise Fault((item, port))

    program = Program(("a",), (), (Op((), (), "f", ("a",), ()),), {"f": fault}, {})
    with pytest.raises(Fault) as caught:
        step(program, initial(program, {"a": [7]}), "a")
    assert caught.value.info == (7, 0)


@pytest.mark.parametrize(
    "firing", [Firing(), Firing(((), ()), (1,)), Firing(((),), ()), Firing(((),), (1, 2))]
)
def test_a_firing_must_fit_its_operator(firing):
    op = Op(("q",), ("v",), "f", ("a",), ())
    program = Program(("a",), ("q",), (op,), {"f": lambda *_: firing}, {"v": 0})
    with pytest.raises(WrongFiring, match=r"`\(q, \$v\) <- f\(a\);` got"):
        step(program, initial(program, {"a": [7]}), "a")


def test_programs_and_events_print_in_the_papers_notation(apples):
    assert str(apples) == (
        "input trades;\n"
        "(appleTrades) <- SelectApple(trades);\n"
        "($volume) <- Count(appleTrades, $volume);"
    )  # fmt: skip
    event, at = fire(apples, initial(apples, {"trades": TRADES}), "trades")
    assert str(event) == "trades -> SelectApple(('AAPL', 3)); appleTrades += [('AAPL', 3)]"
    event, _ = fire(apples, at, "appleTrades")
    assert str(event) == "appleTrades -> Count(('AAPL', 3)); $volume = 0; $volume := 3"


def test_the_tables_of_a_program_cannot_be_changed_from_outside():
    functions = {"f": lambda *_: Firing()}
    program = Program(("a",), (), (Op((), (), "f", ("a",), ()),), functions, {})
    functions.clear()
    assert "f" in program.functions
    assert isinstance(program.functions, MappingProxyType)
    assert isinstance(program.initial, MappingProxyType)
