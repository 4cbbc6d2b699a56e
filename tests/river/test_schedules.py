"""`river check --outcomes`: what it says where there is much to say. What it prints is in `tests/golden/outcomes`."""

from __future__ import annotations

import io
from typing import Any

import pytest

from river.cli import main
from river.driver import Compiled, Job, compile_source, schedules
from river.io.errors import OnError
from river.source import Source

JOIN = """river 1;
input a: {x: i64};
input b: {x: i64};
output o: {x: i64};
operator join(p: {x: i64}, q: {x: i64}) -> (o: {x: i64}) { on p(r) { emit o r; } on q(r) { emit o r; } }
(o) <- join(a, b);
"""
VIEW = """river 1;
input a: {x: i64};
input b: {x: i64};
var $n: i64 = 0;
fn row(n: i64) -> list<{x: i64}> = [{x: n}];
output v: {x: i64} = rows($n, row);
operator keep(p: {x: i64}; $n: i64) -> () { on p(r) { $n = r.x; } }
($n) <- keep(a, $n);
($n) <- keep(b, $n);
"""


def tried(text: str, limit: int = 10_000, **rows: list[int]) -> Any:
    compiled = compile_source(Source("q.river", text), "river")
    assert isinstance(compiled, Compiled)
    job = Job({name: [(n,) for n in items] for name, items in rows.items()}, {}, OnError.parse("stop"))
    return schedules(compiled, job, limit)


def test_all_interleavings_of_two_inputs_are_outcomes():
    found = tried(JOIN, a=[1, 2, 3], b=[7, 8])
    assert (found.outcomes, found.complete, found.endless) == (10, True, False)  # 5 choose 2
    assert found.parting.differences[0].startswith("`o`, item ")
    assert found.parting.one != found.parting.other


def test_a_search_that_stops_early_says_what_it_has_found():
    found = tried(JOIN, limit=30, a=[1, 2, 3], b=[7, 8, 9])
    assert (found.states, found.complete) == (30, False)
    assert 1 < found.outcomes < 20
    assert found.parting is not None


def test_outcomes_are_what_an_observer_sees():
    found = tried(JOIN, a=[1, 1], b=[1])
    assert (found.outcomes, found.parting) == (1, None)


def test_the_rows_of_views_and_variables_are_seen():
    found = tried(VIEW, a=[1], b=[2])
    assert found.outcomes == 2
    assert set(found.parting.differences) in (
        {'`v`: [{"x":1}] and [{"x":2}]', "variable `$n`: 1 and 2"},
        {'`v`: [{"x":2}] and [{"x":1}]', "variable `$n`: 2 and 1"},
    )


def test_variables_are_seen():
    found = tried(VIEW.replace("output v: {x: i64} = rows($n, row);\n", ""), a=[1], b=[2])
    assert found.outcomes == 2
    assert found.parting.differences[0].startswith("variable `$n`: ")


def told(tmp_path: Any, *args: str) -> tuple[int, str, str]:
    (tmp_path / "join.river").write_text(JOIN)
    (tmp_path / "many.csv").write_text("x\n" + "".join(f"{n}\n" for n in range(20)))
    (tmp_path / "one.csv").write_text("x\n-1\n")
    out, err = io.StringIO(), io.StringIO()
    given = [
        str(tmp_path / "join.river"),
        "--in",
        f"a={tmp_path / 'many.csv'}",
        "--in",
        f"b={tmp_path / 'one.csv'}",
    ]
    return main(["check", *given, *args], io.StringIO(), out, err), out.getvalue(), err.getvalue()


def test_long_schedules_are_cut(tmp_path):
    status, out, err = told(tmp_path, "--outcomes")
    assert status == 1
    assert "21 outcomes" in out
    assert "firings)\n" in out
    assert len(out.splitlines()) < 45
    assert "error[check-outcomes]" in err


@pytest.mark.parametrize("args", [("--max-states", "5"), ("--outcomes", "--backend", "multicore")])
def test_options_that_mean_nothing_together_are_refused(tmp_path, args):
    status, _, err = told(tmp_path, *args)
    assert status == 1
    assert "error[usage]" in err
