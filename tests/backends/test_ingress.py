"""The order in which the world's items, heartbeats and ends arrive."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.native.batch import Batch
from river.diagnostics import Rejected
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.ingress import events, turns
from river.lang.types import I64
from river.lang.values import END, INFINITY, Mark
from river.source import Source

ROW = "{t: i64, v: i64}"


def graph(**inputs: str):
    """A program that sends its inputs to its outputs."""
    lines = ["river 1;"]
    for name, type_ in inputs.items():
        by = " by t" if " by t" in type_ else ""
        item = type_.removesuffix(" by t")
        lines += [
            f"input {name}: {item}{by};",
            f"output {name}_out: {item}{by};",
            f"operator {name}_op(x: {item}{by}) -> (y: {item}{by}) {{ on x(v) {{ emit y v; }} }}",
            f"({name}_out) <- {name}_op({name});",
        ]
    return verify(parse(Source("ingress.river", "\n".join(lines))), Library.of({}))


GRAPH = graph(a=f"{ROW} by t", p="i64", b=f"{ROW} by t", q="i64", c=f"{ROW} by t")
KEYED, PLAIN = ("a", "b", "c"), ("p", "q")


@st.composite
def sources(draw: st.DrawFn):
    """Batches for some of the inputs, empty ones among them."""
    found = {}
    for name in draw(st.sets(st.sampled_from(KEYED + PLAIN))):
        items = draw(st.lists(st.integers(0, 20), max_size=25))
        rows = [(t, i) for i, t in enumerate(sorted(items))] if name in KEYED else items
        cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
        found[name] = [rows[i:j] for i, j in pairwise([0, *cuts, len(rows)])]
    return found


def by_queue(found):
    queues = {name: [] for name in KEYED + PLAIN}
    for name, elements in found:
        queues[name] += elements
    return queues


def test_what_comes_in_columns_is_not_cut_and_lists_are() -> None:
    mixed: Any = {"p": [Batch.of(I64, range(7)), [7, 8, 9]]}
    found = turns(graph(p="i64"), mixed, 2)
    assert [len(items) for turn in found for _, items in turn.items] == [7, 2, 1]


@given(sources(), st.integers(1, 9))
def test_each_input_gets_its_items_in_order_and_one_end(given_sources, batch):
    for name, elements in by_queue(events(GRAPH, given_sources, batch)).items():
        items = [e for e in elements if not isinstance(e, Mark)]
        assert items == [item for items in given_sources.get(name, ()) for item in items]
        assert elements[-1] == END
        assert elements.count(END) == 1


@given(sources(), st.integers(1, 9))
def test_keyed_items_arrive_in_order_of_key_then_of_inputs(given_sources, batch):
    arrived = [(e[0], name) for name, es in events(GRAPH, given_sources, batch) if name in KEYED for e in es
               if not isinstance(e, Mark)]  # fmt: skip
    assert arrived == sorted(arrived)


@given(sources(), st.integers(1, 9))
def test_marks_keep_their_promise_and_rise(given_sources, batch):
    for name, elements in by_queue(events(GRAPH, given_sources, batch)).items():
        marks = [e.key for e in elements if isinstance(e, Mark)]
        assert all(low < high for low, high in pairwise(marks))
        if name in PLAIN:
            assert marks == [INFINITY]
        bound = -1
        for element in elements:
            if isinstance(element, Mark):
                bound = element.key
            elif name in KEYED:
                assert element[0] >= bound


@given(sources(), st.integers(1, 9))
def test_no_ordered_input_is_behind_by_more_than_a_batch(given_sources, batch):
    known = dict.fromkeys(KEYED, -1)
    behind, now = 0, -1
    for name, elements in events(GRAPH, given_sources, batch):
        assert len([e for e in elements if not isinstance(e, Mark)]) <= batch
        for element in elements if name in KEYED else ():
            if isinstance(element, Mark):
                known[name] = element.key
                behind = 0 if min(known.values()) >= now else behind
            else:
                now = element[0]
                behind = behind + 1 if min(known.values()) < now else 0
                assert behind <= batch


@given(sources(), st.integers(1, 9))
def test_time_ends_after_the_last_instant_of_all(given_sources, batch):
    keys = [row[0] for name in KEYED for rows in given_sources.get(name, ()) for row in rows]
    for name in KEYED:
        elements = by_queue(events(GRAPH, given_sources, batch))[name]
        assert elements[-2:] == ([Mark(max(keys) + 1), END] if keys else [END])


@given(sources(), st.integers(1, 9))
def test_turns_are_the_events_of_each_input(given_sources, batch):
    elements = []
    for turn in turns(GRAPH, given_sources, batch):
        elements += [*turn.items, *turn.marks]
        assert len({name for name, _ in turn.items}) == len(turn.items)
        assert sum(len(items) for _, items in turn.items) <= batch
    assert by_queue(elements) == by_queue(events(GRAPH, given_sources, batch))


def test_nothing_is_read_before_it_is_needed():
    read = []

    def source(name):
        for t in range(3):
            read.append((name, t))
            yield [(t, 0)]

    arriving = events(GRAPH, {"a": source("a"), "b": source("b")}, 100)
    assert next(arriving) == ("a", [(0, 0)])
    assert read == [("a", 0), ("b", 0)]
    arriving.close()


def test_inputs_with_keys_of_other_types_have_clocks_of_their_own():
    program = graph(a=f"{ROW} by t", b="{t: time} by t")
    found = by_queue_of(program, {"a": [[(1, 0)]], "b": [[(1_000_000,)]]})
    assert found == {
        "a": [(1, 0), Mark(1), Mark(2), END],
        "b": [(1_000_000,), Mark(1_000_000), Mark(1_000_001), END],
    }


def by_queue_of(program, given_sources):
    queues = {}
    for name, elements in events(program, given_sources, 10):
        queues.setdefault(name, []).extend(elements)
    return queues


@pytest.mark.parametrize(
    ("batches", "place"),
    [([[(3, 0), (2, 0)]], "row 2"), ([[(1, 0)], [(5, 0), (6, 0)], [], [(4, 0)]], "row 4")],
)
def test_a_key_that_falls_is_an_error_with_its_row(batches, place):
    with pytest.raises(Rejected) as caught:
        list(events(GRAPH, {"a": batches}, 2))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "data-order"
    assert diagnostic.place == f"input `a`, {place}"


def test_sources_are_closed_when_the_reader_stops():
    closed = []

    def source():
        try:
            while True:
                yield [1]
        finally:
            closed.append(True)

    arriving = events(GRAPH, {"p": source()}, 1)
    while next(arriving) != ("p", [1]):
        pass
    arriving.close()
    assert closed == [True]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="not inputs of the program: z"):
        list(events(GRAPH, {"z": []}, 1))
    with pytest.raises(ValueError, match="at least one item"):
        list(events(GRAPH, {}, 0))
