"""Every golden rewriting is executed: a text cannot bless what changes the outcomes.

The inputs are random; the keys of ordered inputs ascend strictly, so that a queue of deltas has one for each instant.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.source import Source
from river.testing.pass_laws import check_same

if TYPE_CHECKING:
    from river.il.graph import Graph, Queue
    from river.lang import types as t

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "optimise"
CASES = sorted(path.stem for path in FOLDER.glob("*.golden"))


@cache
def programs(name: str) -> tuple[Graph, Graph]:
    """The programs that a golden case reads and prints."""
    library = Library.of({})
    text = (FOLDER / f"{name}.golden").read_text("utf-8")
    before, _, after = text.partition("# EXPECT\n")
    _, _, before = before.partition("\n")
    after, _, _ = after.partition("# STDERR\n")
    first, second = (verify(parse(Source(name, part)), library) for part in (before, after))
    return first, second


def values(type_: t.Type) -> st.SearchStrategy[Any]:
    """Few values, so that keys meet."""
    from river.lang import types as t

    match type_:
        case t.Primitive("i64"):
            return st.integers(0, 12) | st.integers(0, 2)
        case t.Primitive("f64"):
            return st.sampled_from([0.5, -1.0, 2.0])
        case t.Primitive("string"):
            return st.sampled_from(["AAPL", "b"])
        case t.List(item):
            return st.lists(values(item), max_size=2).map(tuple)
        case t.Record(fields):
            return st.tuples(*(values(part) for _, part in fields))
        case _:
            raise AssertionError(type_)


@st.composite
def contents(draw: st.DrawFn, queue: Queue, most: int) -> tuple[Any, ...]:
    items = draw(st.lists(values(queue.type), max_size=most))
    key = queue.key()
    if key is None:
        return tuple(items)
    instant = 0
    found = []
    for item in items:
        instant += draw(st.integers(1, 2))
        found.append((*item[:key], instant, *item[key + 1 :]))
    return tuple(found)


@pytest.mark.some(9)
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8)
@given(st.data())
def test_golden_rewritings_keep_the_outcomes(name: str, data: st.DataObject) -> None:
    before, after = programs(name)
    most = 4 if before.deterministic else 1
    check_same(before, after, {q: data.draw(contents(before.queues[q], most)) for q in before.inputs})
