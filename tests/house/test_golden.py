"""The golden collector: what passes, what fails, and what an update may change."""

from __future__ import annotations

import re
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
    """Write golden cases in a small repository with a command that shouts; run them all; their files and the result."""
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
    folder = pytester.path / "tests/golden"

    def act(*texts: str, options: tuple[str, ...] = ()) -> tuple[list[Path], pytest.RunResult]:
        paths = [folder / f"shout{i}.golden" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(dedent(text))
        return paths, pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return act


GOOD = "# RUN: river a 'b c'\nhello\n# EXPECT\na b c:HELLO\n"
BAD = "# RUN: river bad\n# EXIT: 1\nhello\n# EXPECT\nbad:HELLO\n# STDERR\nerror[some-code]: no\n"


def test_cases_that_print_what_they_expect_pass(case) -> None:
    case(GOOD, BAD)[1].assert_outcomes(passed=2)


WRONG = {
    GOOD.replace("HELLO", "HULLO"): "-a b c:HULLO",
    GOOD.removesuffix("# EXPECT\na b c:HELLO\n"): "--update-golden",
    BAD.replace("# EXIT: 1\n", ""): "exit status 1, not 0",
    BAD.replace("some-code", "other-code"): "-error[other-code]: no",
    GOOD.replace("river", "rm"): "only the command `river`",
    GOOD.replace("# RUN: ", "# "): "the first line must be",
}


def test_a_case_that_differs_fails_with_the_reason(case) -> None:
    paths, result = case(*WRONG)
    result.assert_outcomes(failed=len(WRONG))
    shown = result.stdout.str()
    told = re.split(
        r"^_+ golden: shout(\d)\.golden _+$", shown.partition("short test summary")[0], flags=re.MULTILINE
    )
    found = {int(number): text for number, text in zip(told[1::2], told[2::2], strict=True)}
    for i, (text, reason) in enumerate(WRONG.items()):
        assert reason in found[i]
        assert paths[i].read_text() == text


def test_an_update_rewrites_below_expect(case) -> None:
    heads = [text[: text.index("# EXPECT")] for text in (GOOD, BAD)]
    stale = [head + old for head in heads for old in ("", "# EXPECT\nold\n# STDERR\nold\n")]
    paths, result = case(*stale, options=("--update-golden",))
    result.assert_outcomes(passed=4)
    assert [path.read_text() for path in paths] == [GOOD, GOOD, BAD, BAD]


def test_an_update_does_not_bless_another_exit_status(case) -> None:
    stale = BAD.replace("# EXIT: 1\n", "")
    (path,), result = case(stale, options=("--update-golden",))
    result.assert_outcomes(failed=1)
    assert path.read_text() == stale
