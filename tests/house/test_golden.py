"""The golden collector: what passes, what fails, and what an update may change."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

pytest_plugins = ["pytester"]

CLI = """
def main(argv, stdin, stdout, stderr):
    stdout.write(" ".join(argv) + ":" + stdin.read().upper())
    if "bad" in argv:
        stderr.write("error[some-code]: no\\n")
    return 1 if "bad" in argv else 0
"""
JIT = """
from contextlib import nullcontext as optimised
OPTIMISATION = 3
"""


@pytest.fixture
def case(pytester: pytest.Pytester):
    """Write one golden case in a small repository with a command that shouts; run it; its file and the result."""
    conftest = Path(__file__).resolve().parents[1] / "conftest.py"
    pytester.makefile(".ini", pytest="[pytest]\ntestpaths = tests\n")
    for folder in ("tests/golden", "river/testing", "backends/native"):
        (pytester.path / folder).mkdir(parents=True)
    (pytester.path / "tests/conftest.py").write_text(conftest.read_text("utf-8"))
    for needed in (
        "river/testing/seeds.py",
        "river/nesting.py",
        "river/classes.py",
        "river/methods.py",
    ):  # by `conftest.py`
        (pytester.path / needed).write_text((conftest.parents[1] / needed).read_text("utf-8"))
    for package in ("river", "river/testing", "backends", "backends/native"):
        (pytester.path / package / "__init__.py").touch()
    (pytester.path / "river/cli.py").write_text(CLI)
    (pytester.path / "backends/native/jit.py").write_text(JIT)
    path = pytester.path / "tests/golden/shout.golden"

    def act(text: str, *options: str) -> tuple[Path, pytest.RunResult]:
        path.write_text(dedent(text))
        return path, pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return act


GOOD = "# RUN: river a 'b c'\nhello\n# EXPECT\na b c:HELLO\n"
BAD = "# RUN: river bad\n# EXIT: 1\nhello\n# EXPECT\nbad:HELLO\n# STDERR\nerror[some-code]: no\n"


@pytest.mark.parametrize("text", [GOOD, BAD])
def test_a_case_that_prints_what_it_expects_passes(case, text: str) -> None:
    case(text)[1].assert_outcomes(passed=1)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace("HELLO", "HULLO"), "*-a b c:HULLO*"),
        (GOOD.removesuffix("# EXPECT\na b c:HELLO\n"), "*--update-golden*"),
        (BAD.replace("# EXIT: 1\n", ""), "*exit status 1, not 0*"),
        (BAD.replace("some-code", "other-code"), "*-error[[]other-code[]]: no*"),
        (GOOD.replace("river", "rm"), "*only the command `river`*"),
        (GOOD.replace("# RUN: ", "# "), "*the first line must be*"),
    ],
)
def test_a_case_that_differs_fails_with_the_reason(case, text: str, reason: str) -> None:
    path, result = case(text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([reason])
    assert path.read_text() == text


@pytest.mark.parametrize("text", [GOOD, BAD])
def test_an_update_rewrites_below_expect(case, text: str) -> None:
    head = text[: text.index("# EXPECT")]
    for stale in (head, head + "# EXPECT\nold\n# STDERR\nold\n"):
        path, result = case(stale, "--update-golden")
        result.assert_outcomes(passed=1)
        assert path.read_text() == text


def test_an_update_does_not_bless_another_exit_status(case) -> None:
    stale = BAD.replace("# EXIT: 1\n", "")
    path, result = case(stale, "--update-golden")
    result.assert_outcomes(failed=1)
    assert path.read_text() == stale
