"""Deadlines: a firing that takes too long is ended by a trap of its item, in machine code and in the evaluator."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import river
from river.diagnostics import Rejected

ENDLESS = "var n = x; while rem.trunc(x, 5) == 3 { n = n +% 1; } emit o n;"
STATELESS = f"""input t: i64; output o: i64;
    operator f(t: i64) -> (o: i64) {{ on t(x) {{ {ENDLESS} }} }} (o) <- f(t);"""
STATEFUL = f"""input t: i64; output o: i64; var $s: i64 = 0;
    operator f(t: i64; $s: i64) -> (o: i64) {{ on t(x) {{ $s = $s + 1; {ENDLESS} }} }} (o, $s) <- f(t, $s);"""
PHASES = """input t: i64; input u: i64; output o: i64;
    operator f(t: i64, u: i64) -> (o: i64) {
      phase 1 on t(x) { emit o x; } phase 1 on u(x) { var n = x; while x == 3 { n = n +% 1; } emit o n; } }
    (o) <- f(t, u);"""
RATED = """input t: i64; output o: i64;
    operator f(t: i64) -> (o[push 1]: i64) { on t[peek 2, pop 1](w) { var n = 1; while w[0] == 3 { n = n +% 1; } emit o n; } }
    (o) <- f(t);"""
MERGE = """type T = {k: i64}; input t: T by k; input u: T by k; output o: i64;
    operator f(t: T by k, u: T by k) -> (o: i64) {
      on merge(t(x), u(y)) { if x is x { var n = x.k; while x.k == 3 { n = n +% 1; } emit o n; } } }
    (o) <- f(t, u);"""
MARK = """type T = {k: i64}; input t: T by k; output o: i64;
    operator f(t: T by k) -> (o: i64) { on t(x) { emit o x.k; } on mark(k) { var n = k; while k > 3 { n = n +% 1; } } }
    @Steady() (o) <- f(t);"""


def run(text: str, inputs: dict[str, list[Any]], **options: Any) -> Any:
    return river.compile("river 1;\n" + text, "river").run(inputs, batch=4, deadline=0.05, **options)


WAYS = pytest.mark.parametrize(("native", "workers"), [("on", 1), ("on", 2), ("off", 1), ("off", 2)])


@WAYS
def test_items_that_take_too_long_are_left_out(native: str, workers: int) -> None:
    result = run(STATELESS, {"t": list(range(12))}, native=native, workers=workers, on_error="skip")
    assert result["o"].column(0).to_pylist() == [x for x in range(12) if x % 5 != 3]
    assert [warning.code for warning in result.warnings] == ["run-skipped"]


@pytest.mark.some(10)
@WAYS
@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (STATELESS, {"t": [1, 2, 3, 4]}),
        (STATEFUL, {"t": [1, 2, 3, 4]}),
        (PHASES, {"t": [1, 2, 3, 4], "u": [1, 2, 3, 4]}),
        (RATED, {"t": [1, 2, 3, 4, 5]}),
        (MERGE, {"t": [(1,), (3,)], "u": [(2,), (3,), (4,)]}),
        (MARK, {"t": [(1,), (3,), (5,), (6,)]}),
    ],
    ids=["stateless", "stateful", "phases", "rated", "merge", "mark"],
)
def test_a_firing_that_takes_too_long_ends_the_run(
    text: str, inputs: dict[str, list[Any]], native: str, workers: int
) -> None:
    with pytest.raises(Rejected) as caught:
        run(text, inputs, native=native, workers=workers)
    (found,) = caught.value.diagnostics
    assert found.code == "trap-deadline"
    assert found.span is not None
    assert found.span.text.startswith("while")


@pytest.mark.parametrize("native", ["on", "off"])
@pytest.mark.parametrize(
    ("x", "place"), [(1, "while n"), (2, "for i"), (3, "f"), (4, "while e"), (5, "while n > 4")]
)
def test_a_deadline_stands_at_the_innermost_loop_of_the_text(x: int, place: str, native: str) -> None:
    text = """input t: i64; output o: i64;
    fn fib(n: i64) -> i64 { if n < 2 { return 1; } return fib(n - 1) + fib(n - 2); }
    fn go(n: i64) -> i64 { var e = n; while e == 4 { e = 4; } return e; }
    operator x(t: i64) -> (o: i64) { on t(x) {
      var n = x;
      while n == 1 { n = 1; }
      for i in 0..9 { while n > 4 { n = 5; } }
      if x == 2 { for i in 0..1000000000000 { n = n +% i; } }
      if x == 3 { n = fib(90); }
      for i in 0..2 { n = go(n); }
      emit o n; } }
    (o) <- x(t);"""
    with pytest.raises(Rejected) as caught:
        run(text, {"t": [x]}, native=native)
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert found.span.text.startswith(place)


@pytest.mark.parametrize("native", ["on", "off"])
def test_many_short_firings_meet_no_deadline(native: str) -> None:
    text = STATELESS.replace("while rem.trunc(x, 5) == 3", "for i in 0 .. 2000").replace(
        "{ n = n +% 1; }", "{ n = n +% i; }"
    )
    result = river.compile("river 1;\n" + text, "river").run(
        {"t": list(range(400))}, native=native, deadline=0.05
    )
    assert len(result["o"]) == 400


def test_a_backend_without_deadlines_says_so() -> None:
    with pytest.raises(Rejected) as caught:
        run(STATELESS, {"t": [1]}, backend="reference")
    assert [found.code for found in caught.value.diagnostics] == ["run-deadline"]


LOOPS = {
    "streamit": "int->int filter F { work pop 1 push 1 { int i = pop(); while (true) { i = i + 1; if (i > 9) i=0; } push(i); } }",
    "sawzall": "t: table sum of int; x: {n: int} = input; i: int = 0; while (true) { i = i + 1; if (i > 9) i=0; } emit t <- x.n;",
    "river": "river 1;\n" + RATED,
}


@pytest.mark.some(5)
@WAYS
@pytest.mark.parametrize("language", sorted(LOOPS))
def test_an_endless_loop_is_left_when_the_run_is_stopped(language: str, native: str, workers: int) -> None:
    compiled = river.compile(LOOPS[language], language)
    (name,) = compiled.inputs
    items = [{"n": 3}] if language == "sawzall" else [3] * 9
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        compiled.run(
            {name: items}, native=native, workers=workers, stopping=lambda: time.monotonic() > began + 0.2
        )
    assert not [each for each in threading.enumerate() if each.name.startswith("river-")]
