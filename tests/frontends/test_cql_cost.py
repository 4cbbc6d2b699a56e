"""What a change costs does not depend on how long a window is: counted in steps of operators, as the evaluator makes them.

How variables are kept between firings is not counted: the calculus copies them, machine code does not.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from calculus.observe import Finished
from calculus.run import run
from calculus.schedule import FirstCome
from frontends.cql import FRONTEND
from river.il import erase
from river.il.templates import Library
from river.il.verify import verify
from river.source import Source

if TYPE_CHECKING:
    from types import FrameType

LIBRARY = Library.of({"cql": FRONTEND.templates})
INPUTS = "s: {ts: int; a: int; k: int; x: float} stream by ts; t: {ts: int; a: int; k: int; x: float} stream by ts; "
SHORT, LONG = 6, 18
STEADY = 8  # instants at which a row comes and one goes


def steps(query: str, length: int, rows: int) -> int:
    """How many steps operators make for so many rows of `s` and `t`, one at each instant; `a` differs, `k` never does."""
    text = f"{INPUTS}output v: relation = {query.replace('LENGTH', str(length))};"
    graph = verify(FRONTEND.lower(FRONTEND.check(FRONTEND.parse(Source("<query>", text)))), LIBRARY)
    data = {name: tuple((at, at, 0, at / 2) for at in range(rows)) for name in graph.inputs}
    program, given = erase.erase(graph), erase.inputs(graph, data)
    count = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call") and "/river/lang/evaluate/" in frame.f_code.co_filename

    sys.setprofile(note)
    try:
        outcome = run(program, given, FirstCome()).outcome
    finally:
        sys.setprofile(None)
    assert isinstance(outcome, Finished)
    return count


GROUPED = "select k, {} as n from s[range LENGTH] group by k"
QUERIES = [
    *(GROUPED.format(aggregate) for aggregate in (
        "count(*)", "avg(x)", "max(x)", "count(distinct a)", "min_by(a, x)",
        "stddev_pop(x)", "corr(a, x)", "median(x)", "quantile_cont(a, 0.9)", "mode(a)",
        "percentile_disc(0.4) within group (order by a)",
        "sum(distinct a)", "avg(distinct x)", "sum(a) filter (where a % 2 = 0)", "max(a) filter (where a % 2 = 0)",
    )),
    "select sum(a) as n, bool_or(a > 30) as m from s[range LENGTH]",
    "select distinct k from s[range LENGTH]",
    "select u.a, w.x from s[range LENGTH] as u join t[range LENGTH] as w on u.a = w.a",
    "select u.a, w.x from s[range LENGTH] as u left join t[range LENGTH] as w on u.a = w.a",
    "select u.a, w.x from s[range LENGTH] as u full join t[range LENGTH] as w on u.a = w.a + 500",
    "select u.a, w.a as b from s[range LENGTH] as u, t[range LENGTH] as w where w.a between u.a - 1 and u.a",
    "select u.a, w.a as b from s[range LENGTH] as u full join t[range LENGTH] as w on w.a between u.a - 1 and u.a",
    "select u.a, w.a as b from s[range LENGTH] as u left join t[range LENGTH] as w on u.k = w.k and w.a between u.a - 1 and u.a",
    "select a from s[range LENGTH] where a in (select a from t[range LENGTH])",
    "select a from s[range LENGTH] as u where not exists (select * from t[range LENGTH] as w where w.a = u.a)",
    "select u.a, (select count(*) from t[range LENGTH] as w where w.a = u.a) as n from s[range LENGTH] as u",
    "select a from s[range LENGTH] union select a from t[range LENGTH]",
    "select a from s[range LENGTH] except select a from t[range LENGTH]",
    "select a from s[range LENGTH] intersect all select a from t[range LENGTH]",
    "select a, x from s[range LENGTH] order by a desc limit 2",
    "select a from (select a, row_number() over (partition by k order by x) as place from s[range LENGTH]) as u where place <= 2",
    "select k, window_end, sum(a) as n from session(s partition by k, LENGTH) as w group by k, window_end",
    "select k, sum(a) as n from s[partition by k rows LENGTH] group by k",
    "select k, sum(a) as n from s[session LENGTH] group by k",
]  # fmt: skip


@pytest.mark.some(6)
@pytest.mark.parametrize("query", QUERIES)
def test_a_change_costs_the_same_however_long_the_window_is(query: str) -> None:
    costs = [steps(query, n, n + STEADY + 2) - steps(query, n, n + 2) for n in (SHORT, LONG)]
    assert 0 < costs[1] <= 1.05 * costs[0], costs
