"""`tests/plugin_example` is a stranger's plugin: it comes through the door, keeps its promises, and is the documentation."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from river import plugins
from river.diagnostics import Rejected
from river.source import Source
from river.testing import check_frontend, check_pass
from river.testing.program_strategies import ProgramCase

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "tests" / "plugin_example"
DOCUMENT = ROOT / "docs" / "add-a-language.md"
PROJECT = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
TEXT = (PLUGIN / "prices.steps").read_text("utf-8")
TEXTS = (
    TEXT,
    """
source log: {at: int, words: list<string>, ok: bool?};
keep len(words) > 0 and ok is none;
map {n: len([w for w in words if w != ""]), at: at + 1};
count by n, at;
keep count == 1;
into lengths;
""",
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder in which the plugin's distribution is installed: what an installer writes, and no more."""
    name = PROJECT["name"].replace("-", "_")
    info = tmp_path / f"{name}-{PROJECT['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n"
    (info / "METADATA").write_text(metadata)
    lines = [
        line
        for group, entries in PROJECT["entry-points"].items()
        for line in (f"[{group}]", *(f"{k} = {v}" for k, v in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
    return tmp_path


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin in this process."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()


def river(*argv: str, paths: tuple[Path, ...]) -> subprocess.CompletedProcess[str]:
    """The command in a new interpreter, which finds distributions and packages in `paths` too."""
    code = (
        f"import sys\nsys.path[:0] = {[str(path) for path in paths]!r}\n"
        "from river.cli import main\nraise SystemExit(main(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr))"
    )
    command = [sys.executable, "-c", code, *argv]
    return subprocess.run(command, cwd=PLUGIN, check=False, capture_output=True, text=True, timeout=120)


def test_the_command_finds_the_language_by_its_suffix(site: Path) -> None:
    data = ("--in", "prices=prices.csv", "--format", "csv", "-q")
    for backend in ("multicore", "reference"):
        done = river("run", "prices.steps", *data, "--backend", backend, paths=(site, PLUGIN))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == (PLUGIN / "trades.csv").read_text("utf-8")


def test_the_command_finds_the_language_by_its_name(site: Path, tmp_path: Path) -> None:
    text = tmp_path / "prices.txt"
    text.write_text(TEXT)
    done = river("compile", "--lang", "steps", str(text), paths=(site, PLUGIN))
    assert (done.returncode, done.stderr) == (0, "")
    assert "operator count = steps.count<" in done.stdout
    written = tmp_path / "prices.river"
    written.write_text(done.stdout)
    trimmed = river("opt", "-p", "trim", str(written), paths=(site, PLUGIN))
    assert (trimmed.returncode, trimmed.stderr) == (0, "")
    assert done.stdout.count("<- keep") == 2
    assert trimmed.stdout.count("<- keep") == 1


def test_without_the_plugin_nobody_knows_the_language() -> None:
    done = river("compile", "prices.steps", paths=(PLUGIN,))
    assert done.returncode == 1
    assert "error[unknown-language]: cannot tell the language of `prices.steps`" in done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="needs hatchling, without a network"
)
def test_an_installer_makes_the_same_of_it(tmp_path: Path) -> None:
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "install", *options, str(PLUGIN)]
    subprocess.run(command, check=True, timeout=300)
    done = river(
        "run", "prices.steps", "--in", "prices=prices.csv", "--format", "csv", "-q", paths=(tmp_path,)
    )
    assert done.stdout == (PLUGIN / "trades.csv").read_text("utf-8")


@pytest.mark.usefixtures("installed")
def test_the_language_keeps_its_promises() -> None:
    check_frontend(plugins.frontend("steps"), TEXTS, examples=60)


@pytest.mark.usefixtures("installed")
def test_the_pass_keeps_its_promises() -> None:
    head = (
        "river 1;\ninput a: i64; output b: i64;\noperator all = std.filter<T = i64, where = fn(x) => true>;\n"
    )
    some = "operator some = std.filter<T = i64, where = fn(x) => (x > 1)>;\n"
    cases = [
        ProgramCase(head + some + "(q) <- all(a); (b) <- some(q);", {"a": (1, 2, 3)}),
        ProgramCase(
            head + some + "(q) <- some(a); queue r: i64; (r) <- all(q); (b) <- all(r);", {"a": (1, 2, 3)}
        ),
    ]
    trim = plugins.pass_("trim")()
    check_pass(trim, cases=cases, examples=10)
    with pytest.raises(
        AssertionError, match="finds nothing to do"
    ):  # it is the only one: a queue has a producer
        check_pass(trim, cases=[ProgramCase(head + "(b) <- all(a);", {"a": (1,)})])


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("source a: {n: int}; keep m > 0; map 3; into b;", ["lang-unknown-name", "steps-map"]),
        (
            "source a: {n: int}; count by m, n, n; into a;",
            ["steps-same-name", "steps-unknown-field", "steps-twice"],
        ),
        ("source a: {n: map<int, int>}; count by n; into b;", ["steps-key"]),
        ("source a: {n: bag<int>}; keep n > 0; into b;", ["steps-row"]),
        ("source a: {n: int}; into b;", ["syntax-unexpected"]),
    ],
)
def test_mistakes_are_told_together(text: str, codes: list[str]) -> None:
    frontend = plugins.frontend("steps")
    with pytest.raises(Rejected) as raised:
        frontend.check(frontend.parse(Source("a.steps", text)))
    assert [diagnostic.code for diagnostic in raised.value.diagnostics] == codes


@pytest.mark.usefixtures("installed")
def test_counts_by_brute_force() -> None:
    from river.driver import compile_source

    with (PLUGIN / "prices.csv").open(newline="") as file:
        symbols = [row["symbol"] for row in csv.DictReader(file) if float(row["price"]) > 10]
    expected = [{"symbol": s, "count": symbols[: i + 1].count(s)} for i, s in enumerate(symbols)]
    results = compile_source(Source("prices.steps", TEXT)).run({"prices": str(PLUGIN / "prices.csv")})
    assert results["trades"].to_pylist() == expected


# ------------------------------------------------------------------------------------------------------- documentation

BLOCK = re.compile(r"^`([\w./]+)`:?$\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_document_shows_the_plugin() -> None:
    shown = dict(BLOCK.findall(DOCUMENT.read_text("utf-8")))
    files = {
        path.relative_to(PLUGIN).as_posix(): path
        for path in PLUGIN.rglob("*")
        if "__pycache__" not in path.parts
    }
    assert set(shown) == {name for name, path in files.items() if path.is_file()}
    for name, text in shown.items():
        assert text == files[name].read_text("utf-8"), f"{DOCUMENT.name} shows another {name}"


def test_the_document_names_what_there_is() -> None:
    text = DOCUMENT.read_text("utf-8")
    resolve: Callable[[str], object] = importlib.import_module
    for module, name in re.findall(r"`(river(?:\.\w+)+?)\.(\w+)`", text):
        try:
            found = hasattr(resolve(module), name)
        except ModuleNotFoundError:
            found = False
        assert found or importlib.util.find_spec(f"{module}.{name}"), f"{module}.{name}"
