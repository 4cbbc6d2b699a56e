"""The laws of passes, for authors of passes: what a rewritten program may compute, and that twice is once.

Paper: River §4.1 (an optimization leaves the observable behaviour of the program unchanged).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from calculus import FirstCome, Seeded, outcomes, run
from calculus.observe import Faulted
from river.classes import frozen
from river.il.annotations import row_type
from river.il.erase import erase, inputs
from river.il.observe import Observation, observe, observed_variables
from river.il.parse import parse
from river.il.pretty import pretty
from river.il.verify import verify
from river.passes import Verified, apply, fixpoint
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from calculus import Outcome
    from river.il.graph import Graph
    from river.il.program import Program
    from river.il.templates import Library
    from river.lang import types as t
    from river.passes import Pass
    from river.platform import Platform

FAULT: Final = "fault"
LIMIT: Final = 1_500


@frozen
class Observations:
    """Observations of executions: all there can be if `complete`, else some. `diverges`: some execution never ends."""

    seen: frozenset[object]
    complete: bool
    diverges: bool


def observation(graph: Graph, outcome: Outcome, variables: Collection[str]) -> object:
    """What is compared of an outcome: the rows of a delta as a bag; of a trap, that there was one.

    A pass may change which of several traps is met first.
    """
    return compared(graph, observe(graph, outcome, sorted(variables)))


def compared(graph: Graph, found: Observation | Faulted) -> object:
    """What is compared of what an observer sees: the rows of a delta as a bag; of a trap, that there was one."""
    if isinstance(found, Faulted):
        return FAULT
    outputs = [
        (name, tuple(_item(graph.queues[name].type, item) for item in items)) for name, items in found.outputs
    ]
    return tuple(outputs), found.views, found.variables


def _item(type_: t.Type, item: Any) -> object:
    if row_type(type_) is None:
        return item
    tau, inserted, deleted = item
    return tau, tuple(sorted(inserted, key=repr)), tuple(sorted(deleted, key=repr))


def variables(graph: Graph) -> frozenset[str]:
    """The variables and unions that are part of a result."""
    return frozenset(observed_variables(graph, {v.name: v.initial for v in graph.variables}))


def results(
    graph: Graph,
    data: Mapping[str, Sequence[Any]],
    names: Collection[str],
    *,
    limit: int = LIMIT,
    seeds: int = 4,
) -> Observations:
    """The observations of all executions; of `seeds` and one more, where more than `limit` configurations are needed."""
    program, contents = erase(graph), inputs(graph, data)
    found = outcomes(program, contents, limit=limit)
    if found.complete:
        seen = frozenset(observation(graph, outcome, names) for outcome in found.outcomes)
        return Observations(seen, complete=True, diverges=found.diverges)
    ends = [
        run(program, contents, schedule).outcome for schedule in (FirstCome(), *map(Seeded, range(seeds)))
    ]
    seen = frozenset(observation(graph, end, names) for end in ends if end is not None)
    return Observations(seen, complete=False, diverges=False)


def check_subset(was: Observations, now: Observations, after: Program, made_by: str = "") -> None:
    """Fails unless `after` may compute something, and only what the program that it comes from may compute.

    Where not all executions of that one are known, it has to be deterministic by construction: one tells of all then.
    """
    assert now.seen, f"no execution ends\n{made_by}\n{pretty(after)}"  # noqa: S101 - a law
    assert was.diverges or not now.diverges, f"{made_by}\n{pretty(after)}"  # noqa: S101 - a law
    assert now.seen <= was.seen, f"{made_by}\n{pretty(after)}\n{now.seen - was.seen}"  # noqa: S101 - a law


def check_same(before: Graph, after: Graph, data: Mapping[str, Sequence[Any]], *, limit: int = LIMIT) -> None:
    """Fails unless what `after` may compute is something, and all of it what `before` may compute."""
    names = variables(before)
    assert names <= variables(after), names - variables(after)  # noqa: S101 - a law
    was, now = results(before, data, names, limit=limit), results(after, data, names, limit=limit)
    assert was.complete or before.deterministic, "too many executions to compare with"  # noqa: S101 - a law
    check_subset(was, now, after.program)


def check_pipelines(
    before: Graph,
    was: Observations,
    pipelines: Mapping[str, Sequence[Pass[Any]]],
    platform: Platform,
    library: Library,
    data: Mapping[str, Sequence[Any]],
    *,
    limit: int = LIMIT,
) -> dict[str, Graph]:
    """The laws of passes for many pipelines on one program, whose results `was` are; what the pipelines make of it.

    Each keeps what may be computed, each pass finds nothing to do in what it has made, and what is made last is text. What
    two pipelines make alike is run once.
    """
    names = variables(before)
    start = Verified(before.program, before, library)
    known: dict[Program, Verified] = {before.program: start}
    made: dict[
        tuple[int, Pass[Any]], Verified
    ] = {}  # by the place of the program in memory, where `known` keeps it

    def applied(one: Pass[Any], verified: Verified) -> Verified:
        key = id(verified), one
        if key not in made:
            after, _ = fixpoint(one, verified, platform)
            made[key] = after if after is verified else known.setdefault(after.program, after)
        return made[key]

    held: set[Program] = {before.program}
    found: dict[str, Graph] = {}
    for name, passes in pipelines.items():
        verified = start
        for one in passes:
            verified = applied(one, verified)
            again = applied(one, verified)
            if again is not verified:
                raise AssertionError(f"{name}\n{pretty(verified.program)}\n{pretty(again.program)}")
        if verified.program not in held:
            held.add(verified.program)
            seeds = 1 if verified.graph.deterministic else 6  # schedules may end differently
            now = results(verified.graph, data, names, limit=limit, seeds=seeds)
            assert names <= variables(verified.graph), f"{name}\n{pretty(verified.program)}"  # noqa: S101 - a law
            check_subset(was, now, verified.program, name)
        found[name] = verified.graph
    for program in list(known)[-1:]:
        shown = pretty(program)
        assert parse(Source("again.river", shown)) == program, shown  # noqa: S101 - a law
    return found


def rewritten(program: Program, passes: Iterable[Pass[Any]], platform: Platform, library: Library) -> Program:
    """The program after all passes. Fails where a rewrite did not verify, of which users are only warned."""
    done = apply(program, passes, platform, library)
    broken = [remark.message for remark in done.remarks if remark.code == "pass-unverified"]
    assert not broken, f"{broken}\n{pretty(program)}"  # noqa: S101 - a law
    return done.program


def check_pipeline(
    program: Program,
    passes: Iterable[Pass[Any]],
    platform: Platform,
    library: Library,
    data: Mapping[str, Sequence[Any]],
    *,
    limit: int = LIMIT,
) -> Program:
    """Fails unless `passes` keep what the program computes on `data`; the program that they make."""
    after = rewritten(program, passes, platform, library)
    check_same(verify(program, library), verify(after, library), data, limit=limit)
    return after


def check_idempotent(program: Program, one: Pass[Any], platform: Platform, library: Library) -> None:
    """Fails unless `one` finds nothing to do in what it has made."""
    once = rewritten(program, (one,), platform, library)
    twice = rewritten(once, (one,), platform, library)
    assert once == twice, f"{pretty(once)}\n{pretty(twice)}"  # noqa: S101 - a law
