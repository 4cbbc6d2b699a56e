"""One seed for all random tests: what `RIVER_SEED` says, else a digest of the sources that are tested.

The same sources repeat their cases and a change draws new ones: before it is committed, in a dirty tree and without git alike.
All workers of a run have the same seed. A failure shows it; `RIVER_SEED=... pytest TEST` draws the cases of TEST again.

    # conftest.py of a plugin
    def pytest_configure(config):
        seeds.install(config, Path(__file__).parents[1], ["my_plugin", "tests"])
"""

from __future__ import annotations

import hashlib
import os
import random
from typing import TYPE_CHECKING, Any, Final

import hypothesis.core
import pytest
from hypothesis.internal.constants_ast import Constants

from river.classes import frozen

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

VARIABLE: Final = "RIVER_SEED"
_FOUND: Final = "hypothesis.internal.conjecture.providers._get_local_constants"
"""Who looks for the constants of modules: there is no option for it."""

MADE: Final = ("__pycache__", "build", "dist")
"""Folders whose files are no sources; neither are those of hidden folders, and of `*.egg-info`."""


def seed() -> str:
    """The seed of this run. Raises: RuntimeError if there is none, because nobody called `install`."""
    if found := os.environ.get(VARIABLE):
        return found
    raise RuntimeError(f"set {VARIABLE}, or let `conftest.py` call `river.testing.seeds.install`")


def chance(*of: object) -> random.Random:
    """Randomness for what `of` names: another for each name, from the seed of this run."""
    return random.Random(" ".join([seed(), *map(str, of)]))


def number(*of: object) -> int:
    """A seed for what `of` names, where a number is wanted: 64 bits."""
    return chance(*of).getrandbits(64)


def digest(root: Path, folders: Iterable[str]) -> str:
    """What the sources in `folders` of `root` contain, with their names, in 64 bits."""
    found = hashlib.blake2b(digest_size=8)
    for path in (path for folder in sorted(folders) for path in _files(root / folder)):
        for part in (path.relative_to(root).as_posix().encode(), path.read_bytes()):
            found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in MADE or path.suffix in (".pyc", ".egg-info"):
            continue
        elif path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def install(config: pytest.Config, root: Path, folders: Iterable[str]) -> None:
    """Gives all tests of a run its seed, those by hypothesis too: from `RIVER_SEED`, else the sources in `folders` of `root`.

    It stands in the environment, where the workers of pytest-xdist find it. Hypothesis would draw one value in twenty from the
    constants of whatever modules are imported by then, which other tests have a part in, and takes seconds to look for them.
    """
    none = Constants()
    pytest.MonkeyPatch().setattr(_FOUND, lambda: none)
    given = bool(os.environ.get(VARIABLE))
    if not given:
        os.environ[VARIABLE] = digest(root, folders)
    config.pluginmanager.register(_Seeds(given))


@frozen(eq=False)
class _Seeds:
    """What pytest calls."""

    given: bool

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        if not self.given:
            os.environ.pop(VARIABLE, None)

    def pytest_report_header(self, config: pytest.Config) -> str:
        return f"{VARIABLE}={seed()}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.config.getoption("--hypothesis-seed", None) is None:
            hypothesis.core.global_force_seed = number(item.nodeid)  # what that option would set
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            report.sections.append(("seed", f"the cases again: {VARIABLE}={seed()} pytest '{item.nodeid}'"))
        return report
