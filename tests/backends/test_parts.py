"""Runs that read their inputs in parts, each from the state after the one before: together they are one run over all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.multicore.plan import plan
from backends.multicore.run import run
from river.backend import Options
from river.checkpoint import Checkpoint, Keeper, Snapshot
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.part import Part
from river.platform import Platform
from river.source import Source
from river.testing.graph_strategies import contents, graphs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from river.il.graph import Graph

LIBRARY = Library.of({})


class Memory(Keeper):
    """Keeps the state at the end of a part."""

    def __init__(self, found: Snapshot | None, part: Part) -> None:
        super().__init__(Checkpoint("nowhere"), {}, part=part)
        self.found = found
        self.left: Snapshot | None = None

    @property
    def due(self) -> bool:
        return False

    def save(self, state: Snapshot, **more: Any) -> None:
        assert self.left is None
        self.left = Snapshot(json.loads(json.dumps(state.fields)), bytearray(state.data))


def in_parts(
    graph: Graph, parts: Sequence[Mapping[str, list[Any]]], options: Options, still: str = ""
) -> tuple[dict[str, list[Any]], Any]:
    """Outputs and variables of runs over parts; of the input `still` the first part has all, and it ends there."""
    outputs: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    more, state, summary = frozenset(graph.inputs) - {still}, None, None
    for number, items in enumerate([*parts, {}]):
        keeper = Memory(state, Part(more if number < len(parts) else frozenset()))
        made = plan(graph, Platform(2), evolve(options, keeper=keeper))
        sources = {name: [some] for name, some in items.items() if some}
        summary = run(made, sources, {name: found.extend for name, found in outputs.items()})
        assert (keeper.left is None) == (number == len(parts))
        state = keeper.left
    assert summary is not None
    return outputs, dict(summary.variables)


def cut(graph: Graph, items: Mapping[str, list[Any]], places: Sequence[Mapping[str, int]]) -> list[Any]:
    """The items of inputs in parts: `places` say of each how many more it has of which."""
    at = dict.fromkeys(graph.inputs, 0)
    parts: list[dict[str, list[Any]]] = []
    for counts in places:
        parts.append({name: items[name][at[name] : at[name] + counts[name]] for name in graph.inputs})
        at = {name: at[name] + counts[name] for name in graph.inputs}
    return [*parts, {name: items[name][at[name] :] for name in graph.inputs}]


def whole(graph: Graph, items: Mapping[str, list[Any]], options: Options) -> tuple[dict[str, list[Any]], Any]:
    """What one run over all gives."""
    outputs: dict[str, list[Any]] = {name: [] for name in graph.outputs}
    sources = {name: [items[name]] for name in graph.inputs}
    summary = run(plan(graph, Platform(2), options), sources, {n: f.extend for n, f in outputs.items()})
    return outputs, dict(summary.variables)


def ways(native: str) -> st.SearchStrategy[Options]:
    return st.builds(
        Options,
        batch=st.sampled_from([1, 3, 4096]),
        workers=st.sampled_from([1, 2]),
        bound=st.sampled_from([1, 64]),
        native=st.just(native),
    )


@settings(max_examples=max(4, settings().max_examples // 4))
@given(text=graphs(5), items=contents(8), options=ways("off"), data=st.data())
def test_every_division_into_parts_gives_the_same(text: str, items: Any, options: Options, data: Any) -> None:
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    counts = st.fixed_dictionaries({name: st.integers(0, 5) for name in graph.inputs})
    parts = cut(graph, items, data.draw(st.lists(counts, max_size=4)))
    assert in_parts(graph, parts, options) == whole(graph, items, options)


@settings(max_examples=max(1, settings().max_examples // 50))
@given(text=graphs(4), items=contents(6), options=ways("on"), data=st.data())
def test_so_it_does_by_machine_code(text: str, items: Any, options: Options, data: Any) -> None:
    graph = verify(parse(Source("program.river", text)), LIBRARY)
    counts = st.fixed_dictionaries({name: st.integers(0, 5) for name in graph.inputs})
    parts = cut(graph, items, data.draw(st.lists(counts, min_size=1, max_size=2)))
    assert in_parts(graph, parts, options) == whole(graph, items, options)


MERGED = """river 1;
type K = {t: i64, v: i64};
operator both(a: K by t, b: K by t) -> (y: K by t) { on merge(a(p), b(q)) { if p is p { emit y p; } if q is q { emit y q; } } }
input a: K by t; input b: K by t; output c: K by t;
(c) <- both(a, b);
"""


def rows(*keys: int) -> list[tuple[int, int]]:
    return [(key, at) for at, key in enumerate(keys)]


@pytest.mark.parametrize("still", ["", "a", "b"])
def test_inputs_that_wait_for_each_other_are_merged_by_time(still: str) -> None:
    """What cannot be sent yet is held; an input that ends in the first part holds up nobody."""
    graph = verify(parse(Source("program.river", MERGED)), LIBRARY)
    items = {"a": rows(1, 5, 5, 5, 9, 12), "b": rows(5, 5, 6, 7, 12, 12)}
    options = Options(batch=2, workers=1, native="off")
    expected = whole(graph, items, options)
    for at in range(7):
        for then in range(7):
            places = [
                dict.fromkeys(items, 6 if still else 0) | dict.fromkeys({"a", "b"} - {still}, at),
                {"a": then, "b": 1},
            ]
            assert in_parts(graph, cut(graph, items, places), options, still) == expected


def test_what_is_known_is_sent_in_its_part() -> None:
    graph = verify(parse(Source("program.river", MERGED)), LIBRARY)
    sent: list[int] = []
    outputs: list[Any] = []
    state = None
    for a, b in ((rows(1, 5), []), ([], rows(5, 5, 7)), (rows(6), []), (rows(8), [])):
        keeper = Memory(state, Part(frozenset("ab")))
        made = plan(graph, Platform(2), Options(workers=1, native="off", keeper=keeper))
        run(made, {"a": [a], "b": [b]}, {"c": outputs.extend})
        sent.append(len(outputs))
        state = keeper.left
    assert sent == [0, 1, 4, 5]  # nothing is known of `b`; then more may come at 5, at 6, at 7
