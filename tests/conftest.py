"""What every test shares: golden cases, the seed of random tests, and how hard the property tests search.

Golden cases are the files `tests/golden/**/*.golden`. One file is one case:

    # RUN: river opt -p fusion -
    # EXIT: 1                       (optional; 0 when absent)
    ... what the command reads from its standard input ...
    # EXPECT
    ... what it must print ...
    # STDERR                        (only when it prints errors)
    ... and its errors ...

The command runs in this process, with the root of the repository as its working directory.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen
from hypothesis import HealthCheck, settings

from river.nesting import room
from river.testing import seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ["calculus", "river", "frontends", "optimizers", "backends", "examples", "tests"]
RUN, EXIT, EXPECT, STDERR = "# RUN: ", "# EXIT: ", "# EXPECT\n", "# STDERR\n"

IN_MEMORY = pytest.StashKey[str]()
ALL = pytest.StashKey[pytest.Session]()
"""All tests, for as long as there is a configuration: it and they hold each other, so nothing is given back."""

MEMORY, ROOM = "/dev/shm", 4 << 30  # noqa: S108 - where files never reach a disk, and how many bytes must be free there

OPTIMISED = 0.125 if "RIVER_CASES" in os.environ else 0.01
"""In what part of the tests machine code is optimised as it is for users: of campaigns, and of other runs."""

# No deadline and no complaint about slow generation: threads run, and the machine may have two cores for us all.
for profile, examples in (("check", 10), ("dev", 15), ("ci", 200), ("long", 50_000)):
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        print_blob=True,
        derandomize=False,  # which cases: `river.testing.seeds`
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("RIVER_HYPOTHESIS", "dev"))  # --hypothesis-profile wins over it


def pytest_configure(config: pytest.Config) -> None:
    seeds.install(config, ROOT, SOURCES)
    if (
        signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    ):  # who starts in the background; tests interrupt what they run
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)  # what is registered later comes before; how tests went has been told
    else:  # workers have the environment of who starts them
        _keep_files_in_memory(config)
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):  # hundreds of commands would compile the same modules each
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "build" / "pycache"))  # for the next run, too
    gc.set_threshold(
        1_000_000, 50, 20
    )  # commands do the like: looking for garbage took a quarter of the time
    room()  # now: Hypothesis minds if the limit changes while it runs


def _keep_files_in_memory(config: pytest.Config) -> None:
    """Puts temporary files where nobody waits for a disk, unless `TMPDIR` says where they belong.

    Outputs and checkpoints are brought to the disk before the next step, thousands of them.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC or shutil.disk_usage(MEMORY).free < ROOM:
        return
    found = tempfile.mkdtemp(prefix="river-tests-", dir=MEMORY)
    os.environ["TMPDIR"] = config.stash[IN_MEMORY] = tempfile.tempdir = found


def pytest_unconfigure(config: pytest.Config) -> None:
    if IN_MEMORY in config.stash:
        shutil.rmtree(config.stash[IN_MEMORY], ignore_errors=True)
        tempfile.tempdir = None
        del os.environ["TMPDIR"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """What a test's program needed beyond `room` is taken back: Hypothesis knows the limit that a test began with.

    No fixture: one that ten thousand tests ask for takes seconds.
    """
    limit = sys.getrecursionlimit()
    try:
        return (yield)
    finally:
        sys.setrecursionlimit(limit)


@pytest.fixture(autouse=True, scope="session")
def _machine_code_is_made_quickly() -> Iterator[None]:
    """To optimise code takes most of the time of many tests; what several tests share is never optimised."""
    from backends.native.jit import optimised

    with optimised(0):
        yield


@pytest.fixture(autouse=True)
def _some_machine_code_is_optimised(request: pytest.FixtureRequest) -> Iterator[None]:
    """That of a few tests, which ones the seed says; of those that are marked `optimised`, and of golden cases.

    Commands in processes of their own are what users run anyway.
    """
    from backends.native.jit import OPTIMISATION, optimised

    node = request.node
    asked = node.get_closest_marker("optimised") is not None
    if asked or seeds.chance("optimised", node.nodeid).random() < OPTIMISED:
        with optimised(OPTIMISATION):
            yield
    else:
        yield


@pytest.fixture(autouse=True, scope="session")
def _programs_without_a_file_are_not_kept() -> Iterator[None]:
    """They hardly ever run again, and random ones never: to write them down took a fortieth of the time of all tests.

    A test of what is kept has a cache of its own, in which everything is.
    """
    from river import verified

    place = verified.place

    def of_files(texts: verified.Texts, *others: Any) -> verified.ProgramFile | None:
        kept = "RIVER_CACHE" in os.environ or Path(texts.texts[0].name).is_file()
        return place(texts, *others) if kept else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verified, "place", of_files)
        yield


@pytest.fixture(autouse=True, scope="session")
def _passes_break_nothing() -> Iterator[None]:
    """A rewrite that does not verify is a warning, and the program stays as it is; in a test it is a failure."""

    def broken(name: str, reason: str) -> None:
        raise AssertionError(f"pass-unverified: what `{name}` made does not verify: {reason}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("river.passes.unverified", broken)
        yield


@pytest.fixture
def others_are_no_garbage() -> None:
    """`gc.collect` looks only among what comes later: the millions of objects of other tests would take it long."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite what golden cases expect to what is printed now"
    )
    parser.addoption(
        "--sample",
        type=int,
        metavar="N",
        help="of each test with parameters N cases, and N golden cases of a folder: the seed says which",
    )
    parser.addoption(
        "--every-case", action="store_true", help="run all cases of tests that are marked `some`, too"
    )


def pytest_collection_finish() -> None:
    gc.freeze()  # a million objects, which the tests need to the end


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """To look once more among all that tests have left, and to give it back, took each worker ten seconds."""
    gc.freeze()
    session.config.stash[ALL] = session


ON_SPARK = re.compile(r"tests/backends/test_spark(_addresses)?\.py::|::test_the_blocks_on_spark")
"""The names of tests that are marked `spark`."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives all tests on Spark to one worker: each session of its own would start Java and Python anew, and warm them up.

    The mark `xdist_group` should do that. With pytest 9.2 it does nothing: xdist 3.8 cannot write it into the names of tests.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Scheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if ON_SPARK.search(nodeid) else nodeid

        def _reschedule(self, node: Any) -> None:
            """Gives nothing to a worker that has not said which tests it knows: one may come while another comes, or dies."""
            if node in self.registered_collections:
                super()._reschedule(node)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forgets what is done: xdist counts all that a worker ever had, after each of ten thousand tests.

            So a worker that dies has what it had not done, and only that.
            """
            unit = self._split_scope(self.registered_collections[node][item_index])
            super().mark_test_complete(node, item_index, duration)
            if all(self.assigned_work[node][unit].values()):
                del self.assigned_work[node][unit]

        def remove_node(self, node: Any) -> str | None:
            """The test in which a worker died, which is not given to another: that would die of it like the first."""
            work = self.assigned_work[node]
            died = None
            if (unit := next(iter(work), None)) is not None:  # each has something that is not done
                died = next(name for name, done in work[unit].items() if not done)
                work[unit][died] = True
                if all(work[unit].values()):
                    del work[unit]
            super().remove_node(node)
            return died

        def schedule(self) -> None:
            """Twice, for a worker that comes later: it begins with a test when it knows the next one, or that there is none."""
            super().schedule()
            super().schedule()

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The second worker reads all folders from their ends: so each of two compiles half of what nobody has compiled before."""
    report = yield
    second = getattr(collector.config, "workerinput", {}).get("workerid") == "gw1"
    if second and isinstance(collector, pytest.Dir) and report.result is not None:
        report.result.reverse()
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first: else, at the end, one worker is busy with it while the others have nothing to do."""
    left = {item.nodeid for item in items}
    if (most := config.getoption("--sample")) is not None:
        left = _drawn(items, "sample", lambda _: most)
    elif not config.getoption("--every-case") and all(Path(arg).is_dir() for arg in config.args):
        left = _drawn(items, "some", _some)  # whoever names a test or its file wants all of it
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in left])
    items[:] = [item for item in items if item.nodeid in left]
    for item in items:
        if (item.get_closest_marker("spark") is None) != (ON_SPARK.search(item.nodeid) is None):
            raise pytest.UsageError(f"{item.nodeid}: is it marked `spark`, and does `ON_SPARK` know it?")
    marks = ("spark", "slow")  # the tests on Spark are one task of one worker

    def place(item: pytest.Item) -> tuple[int, Path]:
        return next((i for i, mark in enumerate(marks) if item.get_closest_marker(mark)), 2), item.path

    items.sort(key=place)  # all workers have the same order, though not all read folders in the same


def _some(item: pytest.Item) -> int | None:
    """How many cases of a test are run each time; None: all."""
    mark = item.get_closest_marker("some")
    return None if mark is None else mark.args[0]


def _drawn(items: list[pytest.Item], why: str, most: Callable[[pytest.Item], int | None]) -> set[str]:
    """The names of so many cases of each test, all workers of a run draw the same; what changes the sources draws others."""
    cases: dict[str, list[str]] = {}
    many: dict[str, int | None] = {}
    for item in items:
        test = item.nodeid.partition("[")[0] if isinstance(item, pytest.Function) else str(item.path.parent)
        cases.setdefault(test, []).append(item.nodeid)
        many[test] = most(item)
    return {
        name
        for test, names in cases.items()
        for name in seeds.chance(why, test).sample(sorted(names), min(many[test] or len(names), len(names)))
    }


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".golden" and ROOT / "tests" / "golden" in file_path.parents:
        return GoldenFile.from_parent(parent, path=file_path)
    return None


class GoldenMismatch(Exception):  # noqa: N818 - how a golden case fails
    pass


@frozen
class Case:
    """A golden file taken apart; `head + input + EXPECT + expected` is its text."""

    head: str
    argv: list[str]
    exit: int
    input: str
    expected: str | None


def read(text: str) -> Case:
    lines = text.splitlines(keepends=True)
    if not lines or not lines[0].startswith(RUN):
        message = f"the first line must be `{RUN}river ...`"
        raise GoldenMismatch(message)
    program, *argv = shlex.split(lines[0].removeprefix(RUN))
    if program != "river":
        message = f"only the command `river` can be run, not `{program}`"
        raise GoldenMismatch(message)
    headed = 2 if len(lines) > 1 and lines[1].startswith(EXIT) else 1
    end = lines.index(EXPECT) if EXPECT in lines else None
    return Case(
        head="".join(lines[:headed]),
        argv=argv,
        exit=int(lines[1].removeprefix(EXIT)) if headed > 1 else 0,
        input="".join(lines[headed:end]),
        expected=None if end is None else "".join(lines[end + 1 :]),
    )


def run(case: Case) -> tuple[int, str]:
    from backends.native.jit import OPTIMISATION, optimised
    from river.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(ROOT), optimised(OPTIMISATION):
        code = main(case.argv, io.StringIO(case.input), out, err)
    printed, errors = out.getvalue(), err.getvalue()
    if errors:
        printed += ("" if printed.endswith("\n") or not printed else "\n") + STDERR + errors
    return code, printed


class GoldenFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield GoldenCase.from_parent(self, name=self.path.stem)


class GoldenCase(pytest.Item):
    def runtest(self) -> None:
        case = read(self.path.read_text(encoding="utf-8"))
        code, printed = run(case)
        if "[pass-unverified]" in printed:
            raise GoldenMismatch(printed)
        if code != case.exit:  # stated by hand: an update must not bless a crash
            message = f"exit status {code}, not {case.exit}; printed:\n{printed}"
            raise GoldenMismatch(message)
        if printed == case.expected:
            return
        if self.config.getoption("--update-golden"):
            gap = "" if not case.input or case.input.endswith("\n") else "\n"
            self.path.write_text(case.head + case.input + gap + EXPECT + printed, encoding="utf-8")
            return
        expected = case.expected or ""
        diff = unified_diff(expected.splitlines(), printed.splitlines(), "expected", "printed", lineterm="")
        message = "\n".join([*diff, "", "if the new text is right: pytest --update-golden " + self.nodeid])
        raise GoldenMismatch(message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None):
        if isinstance(excinfo.value, GoldenMismatch):
            return f"{self.path}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)  # pyright: ignore[reportArgumentType]

    def reportinfo(self):
        return self.path, 0, f"golden: {self.path.relative_to(ROOT / 'tests' / 'golden')}"
