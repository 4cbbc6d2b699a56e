"""Laws of the semantics, on random programs that are well-formed and finite by construction.

An item is (fuel, tag). Operators that copy to all their outputs burn fuel, operators that route to one output do not:
so there are finitely many items, finitely many configurations, loops that die out and loops that do not.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import product

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from calculus import (
    Fault,
    Faulted,
    Firing,
    FirstCome,
    Op,
    Program,
    RoundRobin,
    Scripted,
    Seeded,
    eligible,
    fire,
    initial,
    outcomes,
    problems,
    run,
    step,
)
from calculus.observe import finished

TAGS = 3
VARIABLES = ("v", "w")
ENOUGH = 2000
DROPPED = (frozenset(), frozenset({0}), frozenset({1, 2}))
FAULTS = (frozenset(), frozenset(), frozenset({(1, 1)}), frozenset({(2, 0)}))


@frozen
class Behaviour:
    """A firing function, as data: so that a failing example prints."""

    name: str
    outs: int
    writes: int
    copies: bool
    turn: int
    weight: int
    dropped: frozenset[int]
    faults: frozenset[tuple[int, int]]

    def __call__(self, item, port, reads):
        fuel, tag = item
        seen = sum(reads) % TAGS
        if (tag, seen) in self.faults:
            raise Fault((self.name, tag))
        written = tuple((self.weight * seen + tag + i) % TAGS for i in range(self.writes))
        made = (tag + self.turn * (seen + port)) % TAGS
        if self.copies:
            pushed = tuple(
                ((fuel - 1, made),) if fuel and tag not in self.dropped else () for _ in range(self.outs)
            )
        else:
            hit = made % self.outs if self.outs and tag not in self.dropped else None
            pushed = tuple(((fuel, made),) if i == hit else () for i in range(self.outs))
        return Firing(pushed, written)


@st.composite
def shapes(draw):
    """The operators of a program: queues as lists of names, each produced and consumed at most once."""
    count = draw(st.integers(2, 4))
    ins = [[f"in{i}"] if i < 2 or draw(st.booleans()) else [] for i in range(count)]
    outs = [[] for _ in range(count)]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(ends, min_size=1, max_size=count + 1))
    for number, (source, target) in enumerate(edges):
        outs[source].append(f"q{number}")
        ins[target].append(f"q{number}")
    for i in range(count):
        outs[i] += [f"out{i}"] if not outs[i] or draw(st.booleans()) else []
        ins[i] = draw(st.permutations(ins[i]))
    return tuple((tuple(outs[i]), tuple(ins[i])) for i in range(count))


@st.composite
def behaviours(draw, name, outs, writes, endless):
    tags = st.integers(0, TAGS - 1)
    return Behaviour(
        name,
        outs,
        writes,
        copies=not endless and draw(st.booleans()),
        turn=draw(tags),
        weight=draw(tags),
        dropped=frozenset() if endless else draw(st.sampled_from(DROPPED)),
        faults=draw(st.sampled_from(FAULTS)),
    )


@st.composite
def cases(draw):
    """A program and its inputs."""
    subsets = st.lists(st.sampled_from(VARIABLES), unique=True, max_size=2).map(tuple)
    endless = draw(st.booleans())
    ops, functions = [], {}
    for i, (outs, ins) in enumerate(draw(shapes())):
        writes = draw(subsets)
        ops.append(Op(outs, writes, f"f{i}", ins, draw(subsets)))
        functions[f"f{i}"] = draw(behaviours(f"f{i}", len(outs), len(writes), endless))
    inputs = tuple(q for op in ops for q in op.ins if q.startswith("in"))
    outputs = tuple(q for op in ops for q in op.outs if q.startswith("out"))
    program = Program(inputs, outputs, tuple(ops), functions, dict.fromkeys(VARIABLES, 0))
    items = st.tuples(st.integers(0, 2), st.integers(0, TAGS - 1))
    arriving = draw(st.lists(st.tuples(st.sampled_from(inputs), items), min_size=3, max_size=5))
    return program, {q: [item for name, item in arriving if name == q] for q in inputs}


@frozen
class Everything:
    """What `step` alone says, without memory, numbers or reduction: the graph of all configurations."""

    outcomes: frozenset
    states: int
    firings: int
    cyclic: bool
    complete: bool


def everything(program, inputs):
    start = initial(program, inputs)
    graph, waiting, ends, firings = {}, [start], set(), 0
    while waiting and len(graph) < ENOUGH:
        at = waiting.pop()
        if at in graph:
            continue
        graph[at] = set()
        choices = eligible(program, at)
        if not choices:
            ends.add(finished(program, at))
        for queue in choices:
            firings += 1
            try:
                graph[at].add(step(program, at, queue))
            except Fault as fault:
                ends.add(Faulted(fault.info))
        waiting += graph[at]
    waiting = [at for at in waiting if at not in graph]
    try:
        TopologicalSorter(graph).prepare()
        cyclic = False
    except CycleError:
        cyclic = True
    return Everything(frozenset(ends), len(graph), firings, cyclic, not waiting)


@pytest.mark.slow
@settings(deadline=None, max_examples=min(150, 5 * settings().max_examples))
@given(cases())
def test_reduction_changes_no_outcome_and_no_divergence(case):
    program, inputs = case
    expected = everything(program, inputs)
    reduced = outcomes(program, inputs, limit=ENOUGH)
    if expected.complete:
        assert reduced.complete
        assert reduced.outcomes == expected.outcomes
        assert reduced.diverges == expected.cyclic
        assert reduced.states <= expected.states
    elif reduced.complete:
        assert expected.outcomes <= reduced.outcomes


@settings(deadline=None)
@given(cases())
def test_the_full_search_is_the_graph_of_all_configurations(case):
    program, inputs = case
    expected = everything(program, inputs)
    full = outcomes(program, inputs, limit=ENOUGH, reduce=False)
    assert full.complete == expected.complete
    if full.complete:
        assert (full.outcomes, full.states, full.firings, full.diverges) == (
            expected.outcomes,
            expected.states,
            expected.firings,
            expected.cyclic,
        )


@pytest.mark.slow
@settings(deadline=None)
@given(cases(), st.booleans())
def test_every_witness_replays(case, reduce):
    program, inputs = case
    found = outcomes(program, inputs, limit=ENOUGH, reduce=reduce)
    for outcome, script in found.witnesses.items():
        assert run(program, inputs, Scripted(script)).outcome == outcome


@settings(deadline=None)
@given(cases(), st.sampled_from([FirstCome(), RoundRobin(), Seeded(0), Seeded(1), Seeded(2)]))
def test_every_run_is_an_outcome_and_replays(case, schedule):
    program, inputs = case
    got = run(program, inputs, schedule, limit=200, trace=True)
    found = outcomes(program, inputs, limit=ENOUGH)
    if got.outcome is not None:
        assert got.outcome in found.outcomes or not found.complete
        assert run(program, inputs, Scripted(got.script), trace=True) == got
    else:
        assert got.steps == 200


@settings(deadline=None)
@given(cases(), st.integers(0, 1000))
def test_a_step_keeps_the_shape_and_moves_items_only_as_its_event_says(case, seed):
    program, inputs = case
    assert problems(program) == ()
    at = initial(program, inputs)
    for event in run(program, inputs, Seeded(seed), limit=60, trace=True).events:
        assert event.queue in eligible(program, at)
        replayed, after = fire(program, at, event.queue)
        assert replayed == event
        assert after == step(program, at, event.queue)
        for queue in program.queues:
            place = program.wiring.queues[queue]
            taken = at.queues[place][1:] if queue == event.queue else at.queues[place]
            gained = dict(zip(event.op.outs, event.pushed, strict=True)).get(queue, ())
            assert after.queues[place] == taken + gained
        written = dict(zip(event.op.writes, event.written, strict=True))
        before = dict(zip(program.variables, at.variables, strict=True))
        assert dict(zip(program.variables, after.variables, strict=True)) == before | written
        at = after


@settings(deadline=None)
@given(cases(), st.integers(0, 1000))
def test_quiescent_if_and_only_if_nothing_is_eligible(case, seed):
    program, inputs = case
    got = run(program, inputs, Seeded(seed), limit=60)
    if got.final is not None:
        held = {q for q, items in zip(program.queues, got.final.queues, strict=True) if items}
        assert (
            (got.outcome is not None) == (held <= set(program.outputs)) == (not eligible(program, got.final))
        )


@settings(deadline=None)
@given(cases(), st.integers(0, 1000), st.integers(0, 6))
def test_queues_of_different_operators_commute_unless_a_shared_variable_is_written(case, seed, steps):
    program, inputs = case
    at = run(program, inputs, Seeded(seed), limit=steps).final or initial(program, inputs)
    for one, other in product(eligible(program, at), repeat=2):
        first, second = (program.wiring.by_queue[queue].op for queue in (one, other))
        shared = {*first.writes} & {*second.reads, *second.writes} | {*second.writes} & {*first.reads}
        if first != second and not shared:
            assert after(program, at, one, other) == after(program, at, other, one)


def after(program, at, *queues):
    """Where the queues lead, or the faults that firing each in turn meets, as far as it goes."""
    faults = set()
    for queue in queues:
        try:
            at = step(program, at, queue)
        except Fault as fault:
            faults.add(fault.info)
    return at, faults
