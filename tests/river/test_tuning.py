"""Programs after the passes of a backend are kept on disk, verified, with the places that their parts come from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen

from river.diagnostics import Rejected
from river.driver import compile_source, read_source
from river.il.packing import NotPacked, packed, unpacked
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.values import NAN, FrozenBag, FrozenMap, FrozenOMap, total_key
from river.platform import Platform
from river.source import Source, Span
from river.tuning import _sources, tuned  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.driver import Compiled
    from river.il.graph import Graph

TESTS = Path(__file__).resolve().parents[1]
PROGRAMS = sorted((TESTS / "bench" / "programs").iterdir())
BODIES = sorted((TESTS / "bodies").glob("*.river"))
PASSES = "sharing,zipping,fusion{auto=true},sharing"

RADIO = """float->float pipeline Radio {
  add splitjoin { split duplicate; add Gain(2); add Gain(3); join roundrobin; }
  add Adder;
}
float->float filter Gain(float by) { work pop 1 push 1 { push(pop() * by); } }
float->float filter Adder { work pop 2 push 1 { push(pop() + pop()); } }
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def again(root: Any, sources: list[Source]) -> Any:
    return unpacked(json.loads(json.dumps(packed(root, sources))), sources)


def places(node: object) -> Iterator[Span | None]:
    """The places of a graph's operators."""
    if isinstance(node, tuple):
        for each in node:  # pyright: ignore[reportUnknownVariableType]
            yield from places(each)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(node, typed.Node):
        yield node.span
        for name in getattr(type(node), "__slots__", ()):
            yield from places(getattr(node, name, None))


def never() -> Any:
    raise AssertionError


def at_once(program: Compiled) -> Graph:
    """The kept result: neither library nor graph of the program is needed."""
    found = tuned(program.program, PASSES, never, never)
    assert found is not None
    return found


@pytest.mark.parametrize("path", [*PROGRAMS, *BODIES], ids=lambda path: path.name)
def test_graphs_come_back(path: Path) -> None:
    graph = compile_source(read_source(str(path))).graph
    sources = _sources(graph.program)
    found = again(graph, sources)
    assert found == graph
    assert repr(found) == repr(graph)
    assert found.queues == graph.queues
    ours, theirs = list(places(found.instances)), list(places(graph.instances))
    assert ours == [span if span is not None and span.source in sources else None for span in theirs]
    operators = {id(each.operator) for each in graph.instances}
    assert len({id(each.operator) for each in found.instances}) == len(operators)


def test_values_come_back() -> None:
    values = (
        1,
        -(1 << 100),
        True,
        None,
        "a\ud800é",
        0.1,
        -0.0,
        float("inf"),
        b"\x00\xff",
        (),
        ((),),
        {"k": (1,)},
        FrozenMap({(1,): "x"}),
        FrozenBag((1, 1)),
    )
    found = again(values, [])
    assert repr(found) == repr(values)
    assert again((float("nan"),), [])[0] is NAN
    source, other = Source("here", "text"), Source("there", "text")
    assert again((Span(source, 1, 2), Span(other, 0, 1)), [source]) == (Span(source, 1, 2), None)
    local = s.Name("x", span=Span(source, 0, 1))
    one, two = again((local, local), [source])
    assert one is two
    assert one.span == local.span
    assert again(t.Record((("a", t.I64), ("b", t.List(t.STRING)))), []) == t.Record(
        (("a", t.I64), ("b", t.List(t.STRING)))
    )


def test_other_classes_do_not() -> None:
    @frozen
    class Strange:
        x: int

    with pytest.raises(NotPacked):
        packed((Strange(1),), [])
    for strange in ({1, 2}, FrozenOMap(total_key(t.I64), [(1, 2)])):
        with pytest.raises(NotPacked):
            packed((strange,), [])
    for classes in (["os.system"], ["river.source.Source"], ["river.driver.Compiled"]):
        with pytest.raises(KeyError):
            unpacked({"classes": classes, "rows": [[0]], "root": [0]}, [])


@pytest.mark.parametrize(
    "kept", [{}, {"classes": [], "rows": [[0]], "root": [0]}, {"classes": [], "rows": [[-9]], "root": [0]}]
)
def test_what_is_damaged_is_no_graph(kept: dict[str, Any]) -> None:
    with pytest.raises((KeyError, IndexError, ValueError)):
        unpacked(kept, [])


@pytest.mark.usefixtures("cache")
def test_what_is_kept_needs_no_verification() -> None:
    program = compile_source(Source("radio.str", RADIO))
    found = program.tuned(PASSES)
    assert found is not program
    kept = at_once(compile_source(Source("radio.str", RADIO)))
    assert kept == found.graph
    assert kept.program == found.program
    assert found.run({"input": [1.0, 2.0]})["output"]["value"].to_pylist() == [5.0, 10.0]


@pytest.mark.usefixtures("cache")
def test_places_are_those_of_the_text_at_hand() -> None:
    text = RADIO.replace("pop() * by", "pop() * (1 / (by - 2 < 1 ? (int) by - 2 : 1))")
    messages: list[str] = []
    for head in ("", "// a line more\n"):
        for _ in range(2):
            program = compile_source(Source("radio.str", head + text))
            with pytest.raises(Rejected) as caught:
                program.run({"input": [1.0]})
            span = caught.value.diagnostics[0].span
            assert span is not None
            assert span.source.text == head + text
            messages.append(span.text)
    assert len(set(messages)) == 1


def test_a_damaged_file_is_made_again(cache: Path) -> None:
    program = compile_source(Source("radio.str", RADIO))
    program.tuned(PASSES)
    (file,) = (cache / "tuned").iterdir()
    whole = file.read_text()
    for damaged in ("", "{", "{}", whole[: len(whole) // 2], whole.replace("Operator", "Nothing")):
        file.write_text(damaged)
        again = compile_source(Source("radio.str", RADIO))
        assert again.tuned(PASSES).graph == program.tuned(PASSES).graph
        assert file.read_text() == whole


@pytest.mark.usefixtures("cache")
def test_a_program_is_tuned_once_for_passes_and_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_source(Source("radio.str", RADIO))
    once = program.tuned(PASSES)
    assert once is program.tuned(PASSES)
    assert once is not program.tuned("sharing")
    monkeypatch.setattr("river.driver.compilation.here", lambda: Platform(cores=77))
    assert once is not program.tuned(PASSES)
    assert once.graph == program.tuned(PASSES).graph


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_a_folder_of_others_is_not_trusted(cache: Path) -> None:
    program = compile_source(Source("radio.str", RADIO))
    folder = cache / "tuned"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert len(program.tuned(PASSES).graph.instances) == 1
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("cache")
def test_programs_without_rates_stay() -> None:
    text = "river 1; input x: i64; output y: i64; operator f(x: i64) -> (y: i64) { on x(v) { emit y v; } } (y) <- f(x);"
    program = compile_source(Source("plain.river", text))
    assert program.tuned(PASSES) is program
    assert program.tuned(None) is program
