"""The faults of `make mutants` can still be planted, and the tests that find them are there."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.faults import FAULTS, Mutant
from tests.mutants.run import verdict_of

ROOT = Path(__file__).resolve().parents[2]


@cache
def text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def functions(file: str) -> frozenset[str]:
    return frozenset(node.name for node in ast.parse(text(file)).body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("mutant", FAULTS, ids=lambda mutant: mutant.name)
def test_a_fault_can_be_planted(mutant: Mutant) -> None:
    assert text(mutant.file).count(mutant.old) == 1, f"{mutant.file} does not have once: {mutant.old}"
    planted = text(mutant.file).replace(mutant.old, mutant.new)
    assert planted != text(mutant.file)
    file, _, test = mutant.test.partition("::")
    if not file.endswith(".golden"):
        assert test.partition("[")[0] in functions(file), f"there is no test {mutant.test}"


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in FAULTS if mutant.file.endswith(".py")}))
def test_faults_can_be_compiled(file: str) -> None:
    """All of a file at once, but those in the text of another."""
    left = [mutant for mutant in FAULTS if mutant.file == file]
    while left:
        planted, rest = text(file), list[Mutant]()
        for mutant in left:
            if planted.count(mutant.old) == 1 and text(file).count(mutant.old) == 1:
                planted = planted.replace(mutant.old, mutant.new)
            else:
                rest.append(mutant)
        if planted == text(file):
            break  # what cannot be planted is told by the test of that
        compile(planted, file, "exec", dont_inherit=True)
        left = rest


def test_there_are_many_faults_of_all_kinds() -> None:
    assert len({mutant.name for mutant in FAULTS}) == len(FAULTS) >= 40
    assert set(Counter(mutant.file.split("/")[0] for mutant in FAULTS)) == {
        "backends",
        "calculus",
        "frontends",
        "optimizers",
        "river",
    }


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [
        ({"a": "passed", "b": "failed"}, 1, "killed"),
        ({"a": "KeyError"}, 1, "killed"),
        ({"a": "passed"}, 0, "it survives: its test passes"),
        ({"a": "ImportError"}, 1, "its test breaks with ImportError instead of failing"),
        ({"a": "setup: AssertionError"}, 1, "its test breaks with setup: AssertionError instead of failing"),
        ({}, 4, "its test did not run: pytest ended with 4"),
        ({}, None, "its test hangs"),
    ],
)
def test_only_a_test_that_fails_by_what_it_claims_finds_a_fault(
    ends: dict[str, str], status: int | None, said: str
) -> None:
    mutant = Mutant("m", "what", "file", "old", "new", "test", raises="KeyError")
    assert verdict_of(ends, status, mutant) == said
