"""Plugins as users meet them: distributions on the path, good ones and broken ones."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from river import plugins
from river.diagnostics import Diagnostic, Rejected
from river.entries import entries, version

if TYPE_CHECKING:
    from collections.abc import Callable

    Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with these entry points on the path; nothing else is installed."""
    assert entry_points is not None  # imported before the path is emptied
    monkeypatch.setattr(sys, "path", [str(tmp_path)])

    def write(name: str, requires: tuple[str, ...] = (), **groups: dict[str, str]) -> None:
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        head = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
        extras = ["Provides-Extra: fast", *(f"Requires-Dist: {r}" for r in requires)]
        (info / "METADATA").write_text("\n".join([*head, *extras, ""]))
        lines = [
            line
            for group, entries in groups.items()
            for line in (f"[river.{group}]", *(f"{k} = {v}" for k, v in entries.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join([*lines, ""]))

    return write


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write a module beside the distributions, forgotten after the test."""

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setitem(sys.modules, name, None)  # so that the original absence is restored
        del sys.modules[name]

    return write


def refused(act: Callable[[str], object], name: str) -> Diagnostic:
    with pytest.raises(Rejected) as raised:
        act(name)
    (diagnostic,) = raised.value.diagnostics
    return diagnostic


def test_names_are_sorted_and_load_nothing(install: Install) -> None:
    install(
        "acme", backends={"zeta": "acme_absent:Z", "alpha": "acme_absent:A"}, passes={"p": "acme_absent:P"}
    )
    assert plugins.backends() == ("alpha", "zeta")
    assert plugins.passes() == ("p",)
    assert plugins.frontends() == ()


def test_each_kind_loads_the_named_object(install: Install, module: Callable[[str, str], None]) -> None:
    module("acme_all", "F, P, B = 'a frontend', 'a pass', 'a backend'")
    install("acme", frontends={"x": "acme_all:F"}, passes={"x": "acme_all:P"}, backends={"x": "acme_all:B"})
    loaded = (plugins.frontend("x"), plugins.pass_("x"), plugins.backend("x"))
    assert loaded == ("a frontend", "a pass", "a backend")


@pytest.mark.parametrize(
    ("act", "code", "group"),
    [
        (plugins.frontend, "unknown-language", "frontends"),
        (plugins.pass_, "unknown-pass", "passes"),
        (plugins.backend, "unknown-backend", "backends"),
    ],
)
def test_an_unknown_name_gets_the_nearest_or_all(
    install: Install, act: Callable[[str], object], code: str, group: str
) -> None:
    install("acme", **{group: {"multicore": "m:A", "reference": "m:B"}})
    near, far = refused(act, "multicor"), refused(act, "zzz")
    assert (near.code, near.help) == (code, "did you mean `multicore`?")
    assert (far.code, far.help) == (code, "known: `multicore`, `reference`")


def test_a_group_without_members_says_so(install: Install) -> None:
    install("acme", backends={"reference": "m:B"})
    assert refused(plugins.pass_, "fusion").help == "no pass is installed"


def test_a_bare_checkout_is_told_to_install(install: Install) -> None:
    install("unrelated")
    assert "pip install -e ." in (refused(plugins.frontend, "cql").help or "")


def test_two_owners_are_both_named(install: Install) -> None:
    install("acme", backends={"spark": "acme_spark:B"})
    install("other-corp", backends={"spark": "other_spark:B"})
    diagnostic = refused(plugins.backend, "spark")
    assert diagnostic.code == "plugin-two-owners"
    assert "`acme` and `other-corp`" in diagnostic.message
    assert {note.message.split(" ")[-1] for note in diagnostic.notes} == {"`acme_spark:B`", "`other_spark:B`"}


@pytest.mark.parametrize(
    ("requires", "fix"),
    [
        (('Acme.Engine>=4; extra == "fast"',), "pip install 'acme[fast]'"),
        (
            ("acme-engine; extra == 'all'", "another; extra == 'all'", "acme-engine; extra == 'fast'"),
            "pip install 'acme[fast]'",
        ),
        (("acme_engine>=4",), "pip install acme_engine"),
        (('another; extra == "fast"',), "pip install acme_engine"),
    ],
)
def test_a_missing_dependency_names_what_to_install(
    install: Install, module: Callable[[str, str], None], requires: tuple[str, ...], fix: str
) -> None:
    module("acme_fast", "import acme_engine.parts\nB = 1")
    install("acme", requires, backends={"fast": "acme_fast:B"})
    diagnostic = refused(plugins.backend, "fast")
    assert diagnostic.code == "plugin-missing-dependency"
    assert "`acme_engine`" in diagnostic.message
    assert fix in (diagnostic.help or "")


@pytest.mark.parametrize(
    "text",
    ["", "from sys import nothing_of_that_name", "import acme_bad.part"],
    ids=["no such attribute", "no such name", "no such module of its own"],
)
def test_a_broken_plugin_is_its_authors_fault(
    install: Install, module: Callable[[str, str], None], text: str
) -> None:
    module("acme_bad", text)
    install("acme", backends={"bad": "acme_bad:B"})
    assert refused(plugins.backend, "bad").code == "plugin-broken"


FRONTEND = "class F:\n    suffix = {suffix!r}\n"


def test_the_namesake_of_a_suffix_is_found_without_loading_others(
    install: Install, module: Callable[[str, str], None]
) -> None:
    module("acme_cql", FRONTEND.format(suffix=".cql"))
    install("acme", frontends={"cql": "acme_cql:F", "a": "acme_absent:F"})
    found = plugins.frontend_for_suffix(".cql")
    assert found is not None
    assert found.suffix == ".cql"


def test_a_suffix_unlike_the_name_is_found_past_broken_languages(
    install: Install, module: Callable[[str, str], None]
) -> None:
    module("acme_szl", FRONTEND.format(suffix=".szl"))
    install("acme", frontends={"sawzall": "acme_szl:F", "a": "acme_absent:F"})
    found = plugins.frontend_for_suffix(".szl")
    assert found is not None
    assert found.suffix == ".szl"


def test_an_unclaimed_suffix_is_none(install: Install, module: Callable[[str, str], None]) -> None:
    module("acme_szl", FRONTEND.format(suffix=".szl"))
    install("acme", frontends={"sawzall": "acme_szl:F"})
    assert plugins.frontend_for_suffix(".txt") is None


def test_an_unclaimed_suffix_tells_which_language_could_not_be_asked(install: Install) -> None:
    install("acme", frontends={"a": "acme_absent:F"})
    assert refused(plugins.frontend_for_suffix, ".txt").code == "plugin-broken"


NAMES = st.sampled_from(("river-one", "river_one", "River.One", "two", "three"))
GROUPS = st.dictionaries(
    st.sampled_from(("river.frontends", "river.passes", "console_scripts")),
    st.dictionaries(
        st.sampled_from(("a", "b", "c.d")),
        st.sampled_from(("m:X", "m.n : X.y", "m", "m:X [fast]")),
        max_size=3,
    ),
)


@pytest.mark.slow
@given(installed=st.lists(st.lists(st.tuples(NAMES, st.sampled_from((".dist-info", ".egg-info")), GROUPS))))
@settings(max_examples=20)
def test_entries_are_those_of_importlib(installed: list[list[tuple[str, str, Any]]]) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folders = [Path(name) / str(i) for i in range(len(installed))]
        patch.setattr(sys, "path", [*map(str, folders), str(Path(name) / "missing")])
        for folder, distributions in zip(folders, installed, strict=True):
            folder.mkdir()
            for distribution, suffix, groups in distributions:
                info = folder / f"{distribution.replace('-', '_')}-1.0{suffix}"
                info.mkdir(exist_ok=True)
                lines = (
                    line
                    for group, points in groups.items()
                    for line in (f"[{group}]", "# a remark", *(f"{k} = {v}" for k, v in points.items()), "")
                )
                (info / "entry_points.txt").write_text("\n".join(lines))
        all_ = entries("river.frontends", "river.passes", "river.backends")
        for group in ("river.frontends", "river.passes", "river.backends"):
            found = {(each.name, each.value, each.module) for each in all_[group]}
            assert found == {(each.name, each.value, each.module) for each in entry_points(group=group)}


def test_an_archive_on_the_path_is_asked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packed.zip"
    with ZipFile(archive, "w") as packed:
        packed.writestr("one-1.0.dist-info/METADATA", "Name: one\n")
        packed.writestr("one-1.0.dist-info/entry_points.txt", "[river.passes]\na = m:X\n")
    monkeypatch.setattr(sys, "path", [str(archive)])
    assert [(each.name, each.value) for each in entries("river.passes")["river.passes"]] == [("a", "m:X")]


def test_versions_are_those_of_importlib():
    for name in ("river-streams", "River.Streams", "attrs", "pytest", "import_linter"):
        assert version(name) == metadata.version(name)
    with pytest.raises(metadata.PackageNotFoundError):
        version("river-that-nobody-has")
