"""Laws of the backends: what the threads compute is what the calculus allows, and the same for every way of running it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.multicore.plan import plan
from backends.multicore.run import run
from backends.multicore.tasks import Deliver, Operate
from calculus import Finished, outcomes
from calculus import run as run_calculus
from calculus.schedule import FirstCome
from river.backend import Options
from river.il.erase import erase, inputs
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang.values import Mark
from river.platform import Platform
from river.source import Source
from river.testing import seeds
from river.testing.graph_strategies import contents, graphs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIBRARY = Library.of({})


def batches(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def multicore(
    graph: Any,
    given_items: dict[str, list[Any]],
    options: Options,
    size: int,
    delay: Callable[[], None] = lambda: None,
) -> Finished:
    """What the threads compute, in the form of the calculus; `delay` is called before each batch that is read."""

    def given(items: list[Any]) -> Iterator[list[Any]]:
        for batch in batches(items, size):
            delay()
            yield batch

    found: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    made = plan(graph, Platform(2), options)
    sources = {name: given(given_items[name]) for name in graph.inputs}
    summary = run(made, sources, {name: items.extend for name, items in found.items()})
    return Finished(
        tuple((name, tuple(found[name])) for name in graph.outputs),
        tuple(sorted(summary.variables.items())),
    )


def visible(finished: Any, graph: Any) -> Finished:
    """An outcome of the calculus without marks and hidden variables."""
    names = {variable.name for variable in graph.variables}
    return Finished(
        tuple((q, tuple(e for e in items if not isinstance(e, Mark))) for q, items in finished.outputs),
        tuple(sorted((name, value) for name, value in finished.variables if name in names)),
    )


WAYS = st.builds(
    Options,
    batch=st.sampled_from([1, 2, 7, 4096]),
    workers=st.sampled_from([1, 2, 4]),
    bound=st.sampled_from([1, 2, 5, 64]),
)


@pytest.mark.slow
@given(
    text=graphs(7), items=contents(20), ways=st.lists(WAYS, min_size=3, max_size=3), size=st.integers(1, 9)
)
def test_deterministic_programs_give_the_same_however_they_run(text, items, ways, size):
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    assert graph.deterministic
    chosen = {name: items[name] for name in graph.inputs}
    meaning = run_calculus(erase(graph), inputs(graph, chosen), FirstCome()).outcome
    expected = visible(meaning, graph)
    for options in ways:
        assert multicore(graph, items, options, size) == expected


@pytest.mark.slow
@given(text=graphs(2, free=True), items=contents(2, 1), options=WAYS)
def test_every_result_is_an_outcome_of_the_calculus(text, items, options):
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    chosen = {name: items[name] for name in graph.inputs}
    found = multicore(graph, items, options, 1)
    explored = outcomes(erase(graph), inputs(graph, chosen), limit=3_000)
    possible = {visible(outcome, graph) for outcome in explored.outcomes}
    assert not explored.complete or found in possible


CHUNK = 50
CASES = int(os.environ.get("RIVER_CASES", "40"))
PATIENCE = 60  # seconds, after which a run that has not ended counts as one that stalls
DELAYED = st.builds(
    Options,
    batch=st.sampled_from([1, 7, 64, 4096]),
    workers=st.sampled_from([1, 2, 4]),
    bound=st.sampled_from([1, 2, 64]),
    native=st.sampled_from(["on", "off"]),
)


def delayed(step: Callable[..., Any], pause: Callable[[], None]) -> Callable[..., Any]:
    """A step of a task, with a pause before and after it."""

    def slow(self: Any, engine: Any) -> Any:
        pause()
        outcome = step(self, engine)
        pause()
        return outcome

    return slow


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(-(-CASES // CHUNK)))
def test_many_graphs_end_with_the_results_of_the_calculus(chunk, monkeypatch):
    """Quiet branches and loops, small bounds, and workers that are held up anywhere: no run stalls."""
    chance = seeds.chance("many graphs", chunk)
    often = [0.0]

    def pause() -> None:
        if chance.random() < often[0]:
            time.sleep(chance.random() * 2e-4)

    for kind in (Operate, Deliver):
        monkeypatch.setattr(kind, "step", delayed(kind.step, pause))

    @settings(max_examples=min(CHUNK, CASES - CHUNK * chunk), database=None)
    @given(graphs(9), contents(20), DELAYED, st.integers(1, 9), st.sampled_from([0.0, 0.05, 0.5]))
    def run_all(text, items, options, size, delays):
        graph = verify(parse(Source("program.river", text)), LIBRARY)
        chosen = {name: items[name] for name in graph.inputs}
        expected = visible(run_calculus(erase(graph), inputs(graph, chosen), FirstCome()).outcome, graph)
        often[0], limit = delays, time.monotonic() + PATIENCE
        patient = evolve(options, stopping=lambda: time.monotonic() > limit)
        assert multicore(graph, items, patient, size, pause) == expected

    run_all()
