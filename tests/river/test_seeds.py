"""The seed of all random tests: the same sources repeat their cases, a change draws others, and all workers have one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from river.testing import seeds

ROOT = Path(__file__).parents[2]
CONFTEST = """
from pathlib import Path
from river.testing import seeds

def pytest_configure(config):
    seeds.install(config, Path(__file__).parents[1], ["code", "tests"])
"""
TESTS = """
import os
from pathlib import Path
import pytest
from hypothesis import Phase, given, settings, strategies as st
from river.testing import seeds

@pytest.mark.parametrize("name", "abcd")
@settings(max_examples=5, database=None, phases=[Phase.generate])
@given(st.data())
def test_draws(name, data):
    drawn = (name, seeds.seed(), seeds.number("x"), data.draw(st.integers(0, 1 << 60)))
    with open(os.environ["DRAWN"], "a") as out:
        print(*drawn, os.environ.get("PYTEST_XDIST_WORKER", "-"), file=out)

def test_fails():
    assert False
"""


MANY = """
from pathlib import Path
import pytest
from hypothesis import Phase, given, settings, strategies as st

@settings(max_examples=20, database=None, phases=[Phase.generate])
@given(st.lists(st.integers(0, 1 << 60), min_size=50))
def test_draws(many):
    with open(Path(__file__).parents[2] / "drawn", "a") as out:
        print("a", many, file=out)

def test_fails():
    assert False
"""


def tree(at: Path) -> Path:
    for name, text in (
        ("code/a.py", "x = 1"),
        ("tests/conftest.py", CONFTEST),
        ("tests/test_it.py", TESTS),
    ):
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text)
    return at


def digest(at: Path) -> str:
    return seeds.digest(at, ["code", "tests"])


def test_what_a_digest_is_of(tmp_path: Path) -> None:
    one, other = tree(tmp_path / "one"), tree(tmp_path / "other")
    first = digest(one)
    assert first == digest(other)  # wherever it stands, and there is no git here
    for made in ("code/__pycache__/a.pyc", "code/.hidden/x", "tests/build/x", "x.egg-info/y", "notes.txt"):
        (one / made).parent.mkdir(parents=True, exist_ok=True)
        (one / made).write_text("made")
    assert digest(one) == first
    found = {first}
    for name, text in (("code/a.py", "x = 2"), ("code/b.py", ""), ("tests/deep/c.csv", "1")):
        (one / name).parent.mkdir(parents=True, exist_ok=True)
        (one / name).write_text(text)
        found.add(digest(one))
    (one / "code/a.py").rename(one / "code/c.py")
    found.add(digest(one))
    assert len(found) == 5


def test_what_is_named_has_randomness_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seeds.VARIABLE, "7")
    drawn = [seeds.number("a"), seeds.number("b"), seeds.number("a", 1)]
    assert len(set(drawn)) == 3
    assert drawn == [seeds.number("a"), seeds.number("b"), seeds.number("a", 1)]
    monkeypatch.setenv(seeds.VARIABLE, "8")
    assert seeds.number("a") not in drawn
    monkeypatch.delenv(seeds.VARIABLE)
    with pytest.raises(RuntimeError, match="RIVER_SEED"):
        seeds.seed()


def drawn(at: Path, *options: str, said: str | None = None) -> tuple[dict[str, list[str]], str]:
    """What the tests of `at` draw, by test, and what pytest prints."""
    out = at.parent / "drawn"
    out.unlink(missing_ok=True)
    environment = {k: v for k, v in os.environ.items() if k not in (seeds.VARIABLE, "PYTEST_XDIST_WORKER")}
    environment |= {"DRAWN": str(out), "PYTHONPATH": f"{ROOT}{os.pathsep}{at / 'code'}"}
    environment |= {} if said is None else {seeds.VARIABLE: said}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(at), *options]
    done = subprocess.run(
        [*command, str(at / "tests")], env=environment, cwd=at, text=True, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for line in sorted(out.read_text().splitlines()):
        found.setdefault(line[0], []).append(line.rpartition(" ")[0])
    return found, done.stdout


@pytest.mark.slow
def test_the_same_tree_repeats_its_cases_and_a_change_draws_others(tmp_path: Path) -> None:
    at = tree(tmp_path / "one")
    first, printed = drawn(at, "-n", "2")
    assert f"RIVER_SEED={digest(at)} pytest 'tests/test_it.py::test_fails'" in printed
    assert len({tuple(line[2:] for line in lines) for lines in first.values()}) == 4  # each test others
    (at / "code/a.py").write_text("x = 2")
    second, printed = drawn(at)
    assert f"RIVER_SEED={digest(at)}" in printed
    assert second != first
    assert drawn(at, said=first["a"][0].split()[1])[0] == first  # in one process what two drew


def test_what_other_tests_import_has_no_part_in_what_is_drawn(tmp_path: Path) -> None:
    at = tree(tmp_path / "one")
    (at / "tests/test_it.py").write_text(MANY)
    alone = drawn(at, said="7")
    (at / "code/large.py").write_text(f"MANY = {[i << 40 for i in range(1, 1000)]}")
    (at / "tests/test_beside.py").write_text("import large\ndef test_it(): pass\n")
    assert drawn(at, said="7")[0] == alone[0]
