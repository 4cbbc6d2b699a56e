"""Every law on the same random programs: passes keep what they may compute, and backends compute some of it.

A program of the catalogue is made once, its outcomes in the calculus are found once, and then all pipelines of passes and
all backends are held to them.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from backends.multicore import BACKEND as MULTICORE
from optimizers import Expand, Fission, Fusion, Hoisting, Placement
from optimizers.sharing import Sharing
from optimizers.zipping import Zipping
from river.backend import Options
from river.il.annotations import Cost, annotated
from river.il.costs import costs
from river.il.templates import Library
from river.il.verify import verify
from river.passes import pipeline
from river.platform import Platform
from river.plugins import pass_
from river.profile import Profile, costed
from river.testing import laws
from river.testing.catalogue_strategies import (
    CATALOGUE,
    catalogue_cases,
    joined_cases,
    region_cases,
    tree_cases,
)
from river.testing.pass_laws import FAULT, Observations, check_pipelines, compared, results, variables
from river.testing.program_strategies import delta_cases, item_cases

if TYPE_CHECKING:
    from river.backend import Backend
    from river.il.graph import Graph
    from river.testing.program_strategies import ProgramCase

PLATFORM = Platform(cores=1, machines=2)
PIPELINES: dict[str, tuple[Any, ...]] = {
    "hoisting": (Hoisting(),),
    "fusion": (Fusion(),),
    "fusion auto": (Fusion(auto=True),),
    "fission": (Fission(),),
    "fission auto": (Fission(auto=True),),
    "expand": (Fission(epoch=1), Expand()),
    "expand auto": (Fission(auto=True, degree=2, epoch=2), Expand()),
    "placement": (Placement(),),
    "sharing": (Sharing(),),
    "zipping": (Zipping(),),
    "asked for": (Hoisting(), Fission(), Fusion(), Placement()),
    "rated": (Sharing(), Zipping(), Fusion(auto=True), Sharing()),
    "light": (Fusion(auto=True, light=True),),
    "runtime": (Fission(auto=True, degree=2, rules="runtime"), Expand(epoch=2)),
    "run": pipeline(MULTICORE.passes, pass_),
    "everything": (Hoisting(), Fission(auto=True), Expand(epoch=2), Fusion(auto=True), Placement()),
}
CHUNK = 50
CASES = int(os.environ.get("RIVER_CASES", "300"))
LIMIT = 300  # configurations that are explored; beyond, a program that is deterministic is run a few times
SEARCH = settings(max_examples=min(CHUNK, CASES), database=None, phases=[Phase.generate, Phase.shrink])
RACES = catalogue_cases(2, 2, free=True)  # few enough schedules to try all
DRAWN = st.one_of(
    catalogue_cases(),
    catalogue_cases(9, 5),
    region_cases(),
    region_cases(),
    tree_cases(),
    joined_cases(),
    RACES,
    item_cases(),
    delta_cases(),
)
WAYS = st.builds(
    Options,
    batch=st.sampled_from([1, 2, 7, 4096]),
    workers=st.sampled_from([1, 2, 3, 4, 5]),
    bound=st.sampled_from([1, 2, 5, 64]),
    experiment=st.sampled_from([{}, {"gate": "open"}, {"gate": "open", "width": "changing"}]),
    # other laws are about machine code: to make it takes longer than to run
    native=st.sampled_from(["off", "off", "off", "off", "on"]),
)


@cache
def library() -> Library:
    return Library.of({})


def explored(case: ProgramCase) -> tuple[Graph, Observations]:
    """A program and what it may compute: all of it, or one outcome if there is but one."""
    graph = verify(case.program, library())
    found = results(
        graph, case.data, variables(graph), limit=LIMIT if graph.deterministic else 100 * LIMIT, seeds=1
    )
    assert found.complete or graph.deterministic, case.text
    return graph, found


def computes(
    backend: Backend[Any],
    graph: Graph,
    case: ProgramCase,
    was: Observations,
    options: Options,
    passes: str = laws.REGIONS,
) -> None:
    """The backend computes something that the program may compute, after passes: to make code of what is new takes long."""
    done = laws.executed(backend, graph, case.data, Platform(2), options, size=2, passes=passes)
    assert (done.seen is None) == (done.trap is not None)
    found = FAULT if done.seen is None else compared(graph, done.seen)
    assert found in was.seen, f"{backend.name} {options}\n{case.text}\n{case.data}\n{found}\nnot {was.seen}"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(-(-CASES // CHUNK)))
def test_every_law_holds_for_programs_of_the_catalogue(chunk: int) -> None:
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from tests.backends.spark_stand_in import StandIn

    @SEARCH
    @given(DRAWN, st.lists(WAYS, min_size=3, max_size=3), st.integers(0, 99))
    def check(case: ProgramCase, ways: list[Options], order: int) -> None:
        graph, was = explored(case)
        check_pipelines(graph, was, PIPELINES, PLATFORM, library(), case.data, limit=LIMIT)
        computes(MULTICORE, graph, case, was, ways[0])
        # as users run it, or with regions as somebody might write them
        passes = MULTICORE.passes if order % 2 else "fission{auto=true,degree=3}"
        computes(MULTICORE, graph, case, was, evolve(ways[1], native="off"), passes)
        computes(StandIn(order), graph, case, was, ways[2])

    check()


COSTS = st.builds(
    Cost, st.sampled_from([0, 60, 5_000, 10**9]), st.sampled_from([0, 1, 50]), st.just(1), st.just(8)
)


@pytest.mark.slow
@settings(SEARCH, max_examples=10)
@given(
    st.one_of(catalogue_cases(6, 4), region_cases()),
    st.lists(st.none() | COSTS, min_size=1),
    st.integers(1, 4),
)
def test_what_operators_are_said_to_take_changes_no_result(
    case: ProgramCase, said: list[Cost | None], cores: int
) -> None:
    graph, was = explored(case)
    known = {
        instance.name: cost
        for i, instance in enumerate(graph.instances)
        if (cost := said[i % len(said)]) is not None
    }
    program, warnings = costed(case.program, Profile(known))
    assert bool(warnings) == (len(known) < len(graph.instances))
    told = verify(program, library())
    assert costs(told).each == tuple(known.get(instance.name) for instance in told.instances)
    check_pipelines(told, was, {"run": PIPELINES["run"]}, Platform(cores), library(), case.data, limit=LIMIT)


@pytest.mark.slow
def test_the_catalogue_is_drawn_from_as_a_whole() -> None:
    """Most operators, most strategies of regions, and groups occur, and what is not deterministic has several outcomes."""
    met: set[str] = set()
    strategies: set[str] = set()
    grouped: list[bool] = []
    sizes: list[int] = []
    several: list[bool] = []

    @settings(max_examples=150, database=None, phases=[Phase.generate])
    @given(catalogue_cases())
    def draw(case: ProgramCase) -> None:
        uses = re.findall(r"<- (\w+)", case.text)
        met.update(uses)
        sizes.append(len(uses))
        grouped.append("@Group(" in case.text)

    @settings(max_examples=40, database=None, phases=[Phase.generate])
    @given(RACES)
    def race(case: ProgramCase) -> None:
        several.append(len(explored(case)[1].seen) > 1)

    @settings(max_examples=50, database=None, phases=[Phase.generate])
    @given(st.one_of(delta_cases(), catalogue_cases(9, 5)))
    def divide(case: ProgramCase) -> None:
        uses = [
            annotated(i.use) for i in laws.after(verify(case.program, library()), laws.REGIONS, 3).instances
        ]
        strategies.update(use.region.what for use in uses if use.region is not None)

    draw()
    race()
    divide()
    assert len(met & set(CATALOGUE)) > len(CATALOGUE) / 2
    assert sum(size >= 3 for size in sizes) > len(sizes) / 4
    assert sum(several) > len(several) / 8
    assert len(strategies & {"round_robin", "seqno", "seqno_marks", "time_merge"}) >= 3
    assert any(grouped)
