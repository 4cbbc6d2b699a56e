"""Programs after the passes of a backend are kept on disk, verified, with the places that their parts come from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen

from river.diagnostics import Rejected
from river.driver import compilation, compile_once, compile_source, read_source
from river.il.packing import NotPacked, packed, unpacked
from river.lang import syntax as s
from river.lang import typed
from river.lang import types as t
from river.lang.values import NAN, FrozenBag, FrozenMap
from river.platform import Platform, here
from river.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.driver import Compiled

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


def at_once(source: Source, monkeypatch: pytest.MonkeyPatch, platform: Platform | None = None) -> Compiled:
    """The kept result: nothing is parsed, verified or rewritten, and no templates are read."""
    with monkeypatch.context() as patch:
        for name in ("compile_source", "library"):
            patch.setattr(compilation, name, None)
        patch.setattr("river.il.verify.verify", None)
        patch.setattr("river.tuning.tuned", None)
        return compile_once(source, passes=PASSES, platform=platform)


@pytest.mark.some(9)
@pytest.mark.parametrize("path", [*PROGRAMS, *BODIES], ids=lambda path: path.name)
def test_graphs_come_back(path: Path) -> None:
    source = read_source(str(path))
    graph, sources = compile_source(source).graph, [source]
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
    for strange in ({1, 2}, bytearray(b"x")):
        with pytest.raises(NotPacked):
            packed((strange,), [])
    for classes in (["os.system"], ["river.source.Source"], ["river.driver.Compiled"]):
        with pytest.raises(KeyError):
            unpacked({"classes": classes, "rows": [[0]], "root": [0]}, [])


def test_tables_are_columns() -> None:
    source = Source("t", "-1.5")
    span = Span(source, 0, 4)
    floats = [s.Float(i / 3, span=span) for i in range(50)]
    signed = [s.Unary("-", each, span=each.span) for each in floats] + [s.Bool(True), s.Int(7)]
    numbers = tuple(typed.Literal(t.F32, value, span=None) for value in (NAN, -0.0, *map(float, range(70))))
    root = (numbers, (*floats, *signed), numbers[0], tuple(signed[:3]), numbers)
    found = again(root, [source])
    assert repr(found) == repr(root)
    assert [each.span for each in found[1]] == [each.span for each in root[1]]
    assert found[0] is found[4]
    assert found[0][0].value is NAN
    assert len(packed(root, [source])["rows"]) < 130


@pytest.mark.parametrize(
    "kept", [{}, {"classes": [], "rows": [[0]], "root": [0]}, {"classes": [], "rows": [[-10]], "root": [0]}]
)
def test_what_is_damaged_is_no_graph(kept: dict[str, Any]) -> None:
    with pytest.raises((KeyError, IndexError, ValueError)):
        unpacked(kept, [])


COUNTS = """s: { ts: int; k: string; v: int } stream by ts;
r: relation = select k, sum(v) as n from s[range 10] group by k;
"""
TABLE = """log: {day: int, ms: int} = input;
requests: table sum[day: int] of int;
slowest: table maximum(2) of int weight ms: int;
emit requests[log.day] <- 1;
emit slowest <- log.day weight log.ms;
"""


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("name", "text"), [("radio.str", RADIO), ("counts.cql", COUNTS), ("table.szl", TABLE)]
)
def test_what_is_kept_needs_no_verification(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of all languages: those with templates of their language, too."""
    source = Source(name, text)
    found = compile_source(source).tuned(PASSES)
    for kept in (at_once(source, monkeypatch), at_once(source, monkeypatch, here())):
        assert kept.graph == found.graph
        assert kept.program == found.program
        assert kept.tuned(PASSES) is kept
        assert [each.message for each in kept.remarks] == [each.message for each in found.remarks]
        assert (kept.lowered, len(kept.warnings)) == (found.lowered, len(found.warnings))


@pytest.mark.usefixtures("cache")
def test_a_program_runs_after_its_passes() -> None:
    program = compile_source(Source("radio.str", RADIO))
    found = program.tuned(PASSES)
    assert len(found.graph.instances) < len(program.graph.instances)
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
    regions = "fission{auto=true,rules=runtime}"
    two, three = (program.tuned(regions, Platform(cores)) for cores in (2, 3))
    assert "@Parallel(2)" in two.text
    assert "@Parallel(3)" in three.text


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_a_folder_of_others_is_not_trusted(cache: Path) -> None:
    program = compile_source(Source("radio.str", RADIO))
    folder = cache / "tuned"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert len(program.tuned(PASSES).graph.instances) == 1
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("cache")
def test_what_passes_have_nothing_to_do_in_stays() -> None:
    text = "river 1; input x: i64; output y: i64; operator f(x: i64) -> (y: i64) { on x(v) { emit y v; } } (y) <- f(x);"
    program = compile_source(Source("plain.river", text))
    assert program.tuned(PASSES).graph is program.graph
    assert program.tuned(None) is program


@pytest.mark.usefixtures("cache")
def test_other_passes_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("counts.cql", COUNTS)
    compile_source(source).tuned(PASSES)
    monkeypatch.setattr("river.driver.compilation.compile_source", None)
    assert compile_once(source, passes=PASSES).graph
    with pytest.raises(TypeError):
        compile_once(source, passes="sharing")
