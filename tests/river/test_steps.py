"""How many steps a firing takes at most: a number only where nothing that comes decides."""

from __future__ import annotations

import pytest

from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang.steps import most_steps
from river.source import Source


def steps(
    body: str, more: str = "", item: str = "i64", handler: str = "on x(v)", state: str = ""
) -> int | None:
    """Of a program of one operator."""
    use = f"$s: {state.partition(' =')[0]}" if state else ""
    text = f"""river 1;
    input xs: {item}; output ys: i64; {f"var $s: {state};" if state else ""}
    operator f(x: {item}{f"; {use}" if use else ""}) -> (y: i64) {{ {more} {handler} {{ {body} }} }}
    (ys{", $s" if state else ""}) <- f(xs{", $s" if state else ""});
    """
    (instance,) = verify(parse(Source("steps.river", text)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    return most_steps(instance.operator)


def loop(turns: str) -> str:
    return f"var s = 0; for i in 0 .. {turns} {{ s = s +% v; }} emit y s;"


def test_a_loop_takes_as_many_steps_as_it_has_turns() -> None:
    few, many = steps(loop("10")), steps(loop("1000"))
    assert few is not None
    assert many is not None
    assert 10 <= few < 1000 <= many < 100 * few + 1000


def test_loops_inside_of_loops_multiply() -> None:
    found = steps("var s = 0; for i in 0 .. 30 { for j in 0 .. 40 { s = s +% v; } } emit y s;")
    assert found is not None
    assert found >= 1200


def test_a_function_takes_its_steps_at_each_call() -> None:
    add = "fn add(v: i64) -> i64 { var s = 0; for i in 0 .. 100 { s = s +% v; } return s; }"
    one, two = steps("emit y add(v);", add), steps("emit y add(v) +% add(v);", add)
    assert one is not None
    assert two is not None
    assert 100 < one < two
    assert 2 * one - 10 < two


def test_values_of_arrays_are_as_many_steps_as_they_have_items() -> None:
    found = steps("let w = v; emit y w[0];", item="array<i64, 500>")
    assert found is not None
    assert found >= 500
    assert (
        steps("emit y w[0];", handler="on x[peek 500, pop 1](w)") or 500
    ) < 500  # windows are looked at where they lie


@pytest.mark.parametrize(
    ("body", "more", "item", "state"),
    [
        (loop("v"), "", "i64", ""),
        ("var n = v; while n > 0 { n = n - 1; } emit y n;", "", "i64", ""),
        ("var s = 0; for i in v { s = s +% i; } emit y s;", "", "list<i64>", ""),
        ("emit y len(v);", "", "string", ""),
        ("emit y down(v);", "fn down(n: i64) -> i64 { if n > 0 { return down(n - 1); } return n; }", "i64", ""),
        ("with n = $s[v] else 0 { n = n + 1; emit y n; }", "", "i64", "map<i64, i64> = {}"),
        ("push($s, v); emit y v;", "", "i64", "list<i64> = []"),
        ("emit y len([i for i in 0 .. 10]);", "", "i64", ""),
    ],
)  # fmt: skip
def test_there_is_no_number_where_what_comes_decides(body: str, more: str, item: str, state: str) -> None:
    assert steps(body, more, item, state=state) is None


def test_what_is_done_at_marks_counts() -> None:
    text = """river 1;
    input xs: {ts: i64} by ts; output ys: {ts: i64} by ts; var $n: list<i64> = [];
    operator f(x: {ts: i64} by ts; $n: list<i64>) -> (y: {ts: i64} by ts) {
      on x(v) { emit y v; }
      on mark(k) { while len($n) > 0 { let last = pop($n); } }
    }
    @Steady() (ys, $n) <- f(xs, $n);
    """
    (instance,) = verify(parse(Source("marks.river", text)), Library.of({})).instances
    assert isinstance(instance.operator, typed.Operator)
    assert most_steps(instance.operator) is None
