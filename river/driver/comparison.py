"""Backends compared with one another over the same inputs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from river import plugins
from river.classes import evolve, frozen
from river.diagnostics import Diagnostic, Note, Rejected
from river.driver.inputs import collected, read_of
from river.platform import here

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from river.backend import Options
    from river.driver.compilation import Compiled
    from river.driver.job import Job


@frozen
class Comparison:
    """One backend against the first: `differences` is empty when they agree.

    `refused`: why it cannot run this program here; then it was not compared.
    """

    backend: str
    rows: Mapping[str, int]
    seconds: float
    differences: tuple[str, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def compare(
    compiled: Compiled, job: Job, backends: Iterable[str], *, named: bool = True
) -> Iterator[Comparison]:
    """Runs on every backend and compares outputs and variables with the first, the reference, one after the other.

    Inputs are read once. `named`: somebody asked for just these backends, so one that cannot run is an error; else it is
    told in `refused`. Raises: Rejected("check-nondeterministic") when the program is not deterministic by construction,
    because then one run of each proves nothing. Ways to run that are chosen for an experiment are not the reference's.
    """
    graph = compiled.graph
    if not graph.deterministic:
        remarks = tuple(Note(r.message, r.span) for r in graph.remarks if r.code == "il-not-deterministic")
        message = "the program is not deterministic by construction: its backends may rightly differ"
        help_ = "with a few rows, `river check --outcomes` shows two schedules with different results, if there are any"
        raise Rejected([Diagnostic("check-nondeterministic", message, notes=remarks, help=help_)])
    data = collected(graph, read_of(compiled, job))
    expected: Mapping[str, Any] | None = None
    for name in backends:
        began = time.perf_counter()
        try:
            options = job.options if expected is not None else evolve(job.options, experiment={})
            if not getattr(plugins.backend(name), "settings", False):
                options = evolve(options, settings={})
            seen = observe(compiled, name, data, options)
        except Rejected as rejected:
            if named or expected is None:
                raise
            yield Comparison(name, {}, 0.0, refused=rejected.diagnostics)
            continue
        seconds = time.perf_counter() - began
        expected = seen if expected is None else expected
        rows = {n: len(v) for n, v in seen.items() if not n.startswith("$") and hasattr(v, "__len__")}
        yield Comparison(name, rows, seconds, _differences(expected, seen))


def observe(
    compiled: Compiled, backend: str, data: Mapping[str, list[Any]], options: Options
) -> Mapping[str, Any]:
    """What a backend's run shows: outputs as sequences of items, views as rows, variables in canonical form.

    A relation's delta is compared as two bags. A trap shows as `trap`: its code and its place in the text. What the passes of the
    backend have added to the program is not part of what it shows.
    """
    from river.il.annotations import private
    from river.il.combined import with_results
    from river.il.observe import observed_variables, rows
    from river.io import deltas
    from river.lang.evaluate import Trap

    platform = plugins.backend(backend)
    graph = compiled.tuned(options.through(platform), here(options.workers)).graph
    outputs: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    step = options.batch
    sources = {
        name: [items[i : i + step] for i in range(0, len(items), step)] for name, items in data.items()
    }
    try:
        plan = platform.plan(graph, here(), options)
        summary = platform.run(plan, sources, {name: got.extend for name, got in outputs.items()})
    except Trap as trap:
        told = trap.diagnostic()
        return {"trap": (told.code, told.span)}
    seen: dict[str, Any] = {}
    for name, got in outputs.items():
        delta = deltas.is_delta(graph.queues[name].type)
        seen[name] = tuple(deltas.canonical(item) for item in got) if delta else tuple(got)
    variables = with_results(graph, summary.variables)
    for view in graph.views:
        seen[view.name] = rows(view, variables[view.variable])
    own = {each.name for each in (*compiled.graph.variables, *compiled.graph.results)} - private(
        compiled.graph
    )
    found = observed_variables(graph, summary.variables)
    return seen | {f"${name}": value for name, value in found.items() if name in own}


def _differences(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        _difference(name, expected.get(name), seen.get(name))
        for name in dict.fromkeys((*expected, *seen))
        if (expected.get(name),) != (seen.get(name),)
    )


def _difference(name: str, a: Any, b: Any) -> str:
    if isinstance(a, tuple) and isinstance(b, tuple) and not name.startswith("$"):
        a, b = cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b)
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            if (x,) != (y,):
                return f"`{name}` differs from item {i + 1} on: {x!r} against {y!r}"
        return f"`{name}` has {len(a)} items against {len(b)}"
    return f"`{name}` differs: {a!r} against {b!r}"
