"""The laws of passes on longer runs, and on queries; those on many small programs: `test_catalogue`."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizers import Expand, Fission, Fusion, Hoisting, Placement
from river.driver import compile_source
from river.il.templates import Library
from river.platform import Platform
from river.source import Source
from river.testing.pass_laws import check_pipeline
from river.testing.program_strategies import ProgramCase, delta_cases, item_cases

PLATFORM = Platform(cores=1, machines=2)
PIPELINES: dict[str, tuple[Any, ...]] = {
    "fusion auto": (Fusion(auto=True),),
    "expand": (Fission(epoch=1), Expand()),
    "everything": (Hoisting(), Fission(auto=True), Expand(epoch=2), Fusion(auto=True), Placement()),
}
EXAMPLES = settings().max_examples


@cache
def library() -> Library:
    return Library.of({})


@settings(max_examples=max(1, EXAMPLES // 10))
@given(item_cases(most=5, items=8) | delta_cases(most=4, items=6))
def test_longer_runs(case: ProgramCase) -> None:
    check_pipeline(case.program, PIPELINES["everything"], PLATFORM, library(), case.data)


# ------------------------------------------------------------------------------------------------------------- queries

STREAMS = """s: { ts: int; k: string; n: int } stream by ts;
t: { ts: int; k: string; m: int } stream by ts;
"""
QUERIES = {
    "select": "q: { k: string; n: int } relation = select k, n from s[range 2] where n > 0;",
    "group": "q: { k: string; c: int; t: int } relation = select k, count(*) as c, sum(n) as t from s[range 2] group by k;",
    "views": """v: { k: string; c: int } relation = select k, count(*) as c from s[range 2] group by k;
q: { c: int; d: int } relation = select c, count(*) as d from v group by c;""",
    "join": "q: { k: string; n: int; m: int } relation = select s.k, n, m from s[range 1], t[range 1] where s.k == t.k;",
    "istream": """v: { k: string; c: int } relation = select k, count(*) as c from s[range 2] group by k;
q: { k: string; c: int } stream = istream(select k, c from v where c > 0);""",
}
ticks = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(-1, 2)), max_size=5)


def stamped(steps: list[tuple[int, str, int]]) -> tuple[tuple[int, str, int], ...]:
    found: list[tuple[int, str, int]] = []
    for step, k, n in steps:
        found.append(((found[-1][0] if found else 0) + step, k, n))
    return tuple(found)


@pytest.mark.parametrize("pipeline", ["fusion auto", "expand", "everything"])
@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=max(1, EXAMPLES // 16))
@given(ticks, ticks)
def test_queries_mean_what_they_meant(query: str, pipeline: str, s: Any, t: Any) -> None:
    compiled = compile_source(Source("q.cql", STREAMS + QUERIES[query]), "cql")
    data = {
        name: items for name, items in (("s", stamped(s)), ("t", stamped(t))) if name in compiled.graph.inputs
    }
    check_pipeline(compiled.program, PIPELINES[pipeline], PLATFORM, compiled.templates, data, limit=200)
