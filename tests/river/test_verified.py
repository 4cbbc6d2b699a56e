"""Programs that have run before are read from disk, verified, with their warnings and places."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

import river
from river import verified
from river.diagnostics import Rejected, render
from river.driver import compile_once, compile_source, read_source
from river.lang.tables import evict, fingerprint, keep
from river.source import Source

if TYPE_CHECKING:
    from river.driver import Compiled

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(
    path
    for folder in ("examples/*", "tests/bench/programs", "tests/bodies")
    for suffix in ("cql", "szl", "str", "river")
    for path in ROOT.glob(f"{folder}/*.{suffix}")
)
QUERY = "s: { ts: int; k: string; v: int } stream by ts;\nr: relation = select k, sum(v) as n from s[range 10] group by k;\n"
TRAPS = QUERY.replace("sum(v)", "sum(v / (v - 3))")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "verified").glob("*.json"))


def from_disk(source: Source, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """The program, which must not be compiled."""
    with monkeypatch.context() as patch:
        patch.setattr("river.driver.compilation.compile_source", None)
        patch.setattr("river.il.verify.verify", None)
        compiled = compile_once(source)
        assert compiled.graph is not None
        return compiled


@pytest.mark.parametrize("door", ["load", "compile"])
def test_python_programs_find_what_an_earlier_process_kept(
    door: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "q.cql"
    file.write_text(QUERY)
    first, again = (
        river.load(str(file)) if door == "load" else river.compile(QUERY, "cql") for _ in range(2)
    )
    assert first.graph is not None
    assert len(kept(cache)) == 1
    monkeypatch.setattr("river.il.verify.verify", None)
    with pytest.raises(TypeError):
        assert again.graph is not None
    found = river.load(str(file)) if door == "load" else river.compile(QUERY, "cql")
    assert found.graph.program == first.graph.program


@pytest.mark.some(6)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_programs_are_the_same_again(path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(str(path))
    try:
        first = compile_once(source)
        graph = first.graph
    except Rejected:
        assert not kept(cache), "a program with mistakes is not kept"
        return
    again = from_disk(read_source(str(path)), monkeypatch)
    assert again.graph == graph
    assert again.program == first.program
    assert (again.lowered, again.text) == (first.lowered, first.text)
    assert [*map(render, again.warnings)] == [*map(render, first.warnings)]
    assert [*map(render, again.graph.remarks)] == [*map(render, graph.remarks)]


def test_what_traps_is_told_alike(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places inside templates, too."""
    source = Source("traps.cql", TRAPS)
    rows = [{"ts": 1, "k": "a", "v": 1}, {"ts": 2, "k": "a", "v": 3}]
    told: list[list[str]] = []
    for make in (compile_source, compile_once, lambda source: from_disk(source, monkeypatch)):
        with pytest.raises(Rejected) as trapped:
            make(source).run({"s": rows}, backend="reference")
        told.append([*map(render, trapped.value.diagnostics)])
    assert told[0] == told[1] == told[2]
    assert len(kept(cache)) == 1
    assert json.loads(kept(cache)[0].read_text())["sources"], "templates of the language are among the texts"


@pytest.mark.parametrize("other", [QUERY.replace("10", "20"), QUERY + "\n"])
def test_another_text_is_another_program(other: str, cache: Path) -> None:
    for text in (QUERY, other):
        assert compile_once(Source("q.cql", text)).graph.queues
    assert len(kept(cache)) == 2
    assert compile_once(Source("r.cql", QUERY)).graph.queues
    assert len(kept(cache)) == 3, "messages name the file"
    assert compile_once(Source("q", QUERY), "cql").graph.queues
    assert len(kept(cache)) == 4


def test_another_version_is_another_program(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_once(Source("q.cql", QUERY)).graph
    monkeypatch.setattr(verified, "fingerprint", lambda *_: "another")
    assert compile_once(Source("q.cql", QUERY)).graph
    assert len(kept(cache)) == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"sources": [], "tree": 3}', '{"sources": []}'])
def test_a_damaged_file_is_not_used(damage: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("q.cql", QUERY)
    graph = compile_once(source).graph
    (file,) = kept(cache)
    whole = file.read_text()
    file.write_text(damage)
    assert compile_once(source).graph == graph
    assert file.read_text() == whole
    assert from_disk(source, monkeypatch).graph == graph


def test_classes_that_are_no_part_of_programs_are_not_made(cache: Path) -> None:
    source = Source("q.cql", QUERY)
    graph = compile_once(source).graph
    (file,) = kept(cache)
    for name in ("subprocess.Popen", "pathlib.Path", "river.source.Source"):
        file.write_text(
            json.dumps({"sources": [], "tree": {"classes": [name], "rows": [[0, "x"]], "root": [0]}})
        )
        assert compile_once(source).graph == graph


def test_what_others_may_write_is_not_read(cache: Path) -> None:
    source = Source("q.cql", QUERY)
    assert compile_once(source).graph
    (cache / "verified").chmod(0o777)
    (file,) = kept(cache)
    file.write_text("not read")
    assert compile_once(source).graph
    assert file.read_text() == "not read"


def test_a_cache_that_cannot_be_written_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path / "file"))
    assert compile_once(Source("q.cql", QUERY)).graph


def test_languages_of_one_file_have_versions_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found: list[str] = []
    for text in ("a = 1", "a = 12"):
        (tmp_path / "language_of_one_file.py").write_text(text)
        fingerprint.cache_clear()
        found.append(fingerprint("language_of_one_file"))
    assert found[0] != found[1]
    assert fingerprint("no_such_language") not in found


@pytest.mark.parametrize("key", ["i64", "f64", "list<string>", "{a: i64, b: f64?}"])
def test_ordered_maps_are_kept(key: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"i64": (1, -2), "f64": (1.5, -0.5), "list<string>": ('["b"]', '["a"]')}
    one, other = keys.get(key, ("{a: 1, b: none}", "{a: 0, b: 2.5}"))
    source = Source(
        "p.river",
        f"""river 1;
input a: {key};
output b: i64;
operator o(x: {key}; $m: omap<{key}, i64>) -> (y: i64) {{
  on x(k) {{ with n = $m[k] else 0 {{ n = n + 1; emit y n; }} }}
}}
var $m: omap<{key}, i64> = {{{one}: 1, {other}: 2}};
(b, $m) <- o(a, $m);
""",
    )
    graph = compile_once(source).graph
    assert kept(cache)
    again = from_disk(source, monkeypatch).graph
    assert again.variables == graph.variables
    (found,), (first,) = again.variables, graph.variables
    assert [*found.initial.items()] == [*first.initial.items()]


@pytest.mark.parametrize("name", ["shipped_language", "shipped_language.inside.words"])
def test_packages_in_a_zip_file_have_versions_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark ships them so; and modules of them."""
    file = tmp_path / "shipped.zip"
    monkeypatch.syspath_prepend(str(file))
    for known in [each for each in sys.modules if each.startswith("shipped_language")]:
        monkeypatch.delitem(sys.modules, known)
    found: list[str] = []
    for text in ("a = 1", "a = 12"):
        with ZipFile(file, "w") as archive:
            archive.writestr("shipped_language/__init__.py", "")
            archive.writestr("shipped_language/inside/__init__.py", "")
            archive.writestr("shipped_language/inside/words.py", text)
        importlib.invalidate_caches()
        fingerprint.cache_clear()
        found.append(fingerprint(name))
    assert found[0] != found[1]
    assert fingerprint("no_such_language") not in found


def test_what_there_is_no_room_for_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        keep(tmp_path / "small", bytes(1000))
        with pytest.raises(OSError, match="too large"):
            keep(tmp_path / "large", bytes(1001))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_the_older_half_leaves(tmp_path: Path) -> None:
    for i in range(9):
        (tmp_path / str(i)).write_text("")
        os.utime(tmp_path / str(i), (i, i))
    evict(tmp_path, 9)
    assert len([*tmp_path.iterdir()]) == 9
    evict(tmp_path, 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4", "5", "6", "7", "8"]
