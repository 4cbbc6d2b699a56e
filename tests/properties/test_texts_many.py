"""Texts that are nearly programs, by the thousand: nothing but diagnostics with a place comes of them, or a run that ends.

Texts are tried in processes of their own, so that one that ends its process or never ends is known. `RIVER_CASES` says how many.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from typing import Final

import pytest

from river.diagnostics import Diagnostic, Rejected
from river.source import Source, Span
from river.testing import seeds
from tests.properties import texts_at_random as texts

CHUNK: Final = 300
CASES: Final = int(os.environ.get("RIVER_CASES", "50"))
PATIENCE: Final = 1_800
"""Seconds without a word from a process that tries texts; each text has a limit of its own, of the processor's time."""


def tried(seed: str, first: int, end: int) -> tuple[Counter[str], list[str]]:
    """How the texts of some cases ended, and what should not have happened."""
    endings: Counter[str] = Counter()
    mistakes: list[str] = []
    while first < end:
        command = [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.properties.texts_at_random",
            seed,
            str(first),
            str(end),
        ]
        process = subprocess.Popen(
            command, cwd=texts.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err = "it waits for ever\n" + err
        lines = out.splitlines()
        for number, line in zip(lines[::2], lines[1::2], strict=False):
            language, ending = json.loads(line)
            if ending.startswith("raised"):
                mistakes.append(f"case {number} of {seed}: {ending}\n{texts.case(seed, int(number))[1]}")
                ending = "raised"
            endings[f"{language}: {ending}"] += 1
        if len(lines) % 2 == 0 and process.returncode == 0:
            return endings, mistakes
        first = int(lines[-1]) if lines else end
        what = f"case {first} of {seed} ends the process ({process.returncode}): {err[-2_000:]}"
        mistakes.append(f"{what}\n{texts.case(seed, first)[1]}")
        first += 1
    return endings, mistakes


def holds(name: str, cases: int) -> None:
    """Tries so many cases of the seed."""
    endings: Counter[str] = Counter()
    mistakes: list[str] = []
    seed = f"{seeds.seed()}-{name}"
    for first in range(0, cases, CHUNK):
        found, wrong = tried(seed, first, min(first + CHUNK, cases))
        endings += found
        mistakes += wrong
    print(dict(sorted(endings.items())))
    assert not mistakes, f"{len(mistakes)} of {cases}:\n" + "\n\n".join(mistakes[:5])
    assert endings.total() == cases


@pytest.mark.slow
@pytest.mark.parametrize("part", range(-(-CASES // 1_000)))
def test_many_texts_that_are_nearly_programs(part: int) -> None:
    holds(f"many-{part}", min(1_000, CASES - 1_000 * part))


def test_what_people_wrote_is_tried_and_runs() -> None:
    """Unspoiled programs of each language go all the way, else the others would show nothing."""
    for language in texts.LANGUAGES:
        chance = random.Random(1)  # without machine code
        shortest = sorted(texts.written(language), key=len)
        assert any(texts.attempt(language, text, chance) == "ran" for text in shortest), language


def test_all_rules_of_the_grammars_have_texts() -> None:
    for language in texts.LANGUAGES:
        _, rules, least = texts.grammar(language)
        assert rules.keys() == least.keys()
        chance = random.Random(language)
        for symbol in rules:
            assert texts.derived(language, chance, symbol, 3) is not None


def test_a_diagnostic_must_lie_in_the_text() -> None:
    source = Source("a.cql", "select")
    texts.placed(Rejected([Diagnostic("a", "b", Span(source, 0, 6))]), source)
    for span in (None, Span(source, 3, 7), Span(Source("b.cql", "select"), 0, 3)):
        with pytest.raises(AssertionError):
            texts.placed(Rejected([Diagnostic("a", "b", span)]), source)
