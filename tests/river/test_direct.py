"""Patterns that are matched byte by byte match what the automaton and Python's `re` do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from river.lang.automata.direct import AtEnd, Direct, Rounds, Save, Steps, Stretch, Ways, direct
from river.lang.patterns import compile_pattern
from river.testing import seeds
from river.testing.pattern_strategies import LETTERS, lines, patterns, texts

if TYPE_CHECKING:
    import random

ALPHABET = LETTERS + "F9,]"


def steps_of(pattern: str) -> Direct | None:
    regex = compile_pattern(pattern)
    return direct(regex.tree, regex.groups)


def matched(pattern: Direct, text: bytes) -> tuple[int, ...] | None:
    """The slots of the match, as the steps say."""
    slots = [-1] * pattern.slots
    at = 0
    while not pattern.anchored and at < len(text) and not pattern.first >> text[at] & 1:
        at += 1
    slots[0] = at
    end = walked(pattern.steps, text, at, slots)
    if end is None:
        return None
    slots[1] = end
    return tuple(slots)


def walked(steps: Steps, text: bytes, at: int, slots: list[int]) -> int | None:
    """Where the steps lead; None: they fail."""
    for step in steps:
        after: int | None = at
        match step:
            case Stretch(bytes_, low, high):
                end = len(text) if high is None else min(len(text), at + high)
                after = next((i for i in range(at, end) if not bytes_ >> text[i] & 1), end)
                after = after if after - at >= low else None
            case Save(slot):
                slots[slot] = at
            case AtEnd():
                after = at if at == len(text) else None
            case Ways(ways):
                chosen = [inside for first, inside in ways if at < len(text) and first >> text[at] & 1]
                assert len(chosen) < 2
                after = walked(chosen[0], text, at, slots) if chosen else None
            case Rounds(first, inside, low, high):
                count = 0
                while after is not None and count != high and after < len(text) and first >> text[after] & 1:
                    after, count = walked(inside, text, after, slots), count + 1
                after = after if count >= low else None
        if after is None:
            return None
        at = after
    return at


def agrees(pattern: str, samples: list[str]) -> bool:
    """Whether a pattern is matched byte by byte; then it has to match as its automaton does."""
    regex, found = compile_pattern(pattern), steps_of(pattern)
    for text in samples if found is not None else ():
        assert found is not None
        data, program = text.encode(), regex.machine.program
        assert matched(found, data) == regex.machine.search(data, program.read(data)), (pattern, text)
    return found is not None


def some_texts(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices(ALPHABET, k=chance.randrange(14))) for _ in range(count)]


def test_lines_are_matched_as_by_the_automaton() -> None:
    chance = seeds.chance("direct patterns")
    made = [f"^{lines(chance)}{chance.choice(('', '', '$', '(?:$)'))}" for _ in range(150)]
    made += [lines(chance) for _ in range(50)]
    decided = sum(agrees(pattern, some_texts(chance, 20)) for pattern in made)
    assert decided > 15


@pytest.mark.slow
@given(patterns(empty_rounds=True), st.lists(texts, min_size=4, max_size=4))
def test_random_patterns_are_matched_as_by_the_automaton(pattern: str, samples: list[str]) -> None:
    agrees(pattern, samples)
    agrees(f"^(?:{pattern})", samples)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(\S+) \S+ \S+ \[([^\]]+)\]", "10.0.0.1 - x [16/Oct] 7"),
        (r"^([0-9]+|-)$", "12"),
        (r"^(?:(a)|(b)|c)*;", "abc;"),
        (r"^([a-z]+=[0-9]{1,3},)*\.$", "a=1,bc=234,."),
        (r"^a*?(b?)(?:\n?\z)", "aab"),
        ("^(é+)x", "ééx"),
        ("[a-z]+[0-9]*", "  ab12c"),
        (r"^x{3,5}(y)??z", "xxxxyz"),
        (r"^.*$", "éa"),
    ],
)
def test_what_is_decided_by_the_next_byte(pattern: str, text: str) -> None:
    found = steps_of(pattern)
    assert found is not None
    regex = re.compile(pattern.replace(r"\z", r"\Z"))
    expected = regex.search(text)
    got = matched(found, text.encode())
    assert (got is None) == (expected is None)
    if got is not None and expected is not None:
        pairs = zip(got[::2], got[1::2], strict=True)
        parts = [None if low < 0 else text.encode()[low:high].decode() for low, high in pairs]
        assert parts == [expected[0], *expected.groups()]


@pytest.mark.parametrize(
    "pattern",
    [
        "^a*ab",  # how many are taken is seen too late
        "^(ab)*",  # what has begun may end before its end
        "^(?:ab|ac)",
        "^(a|)b",
        "^(?:a?)*b",
        r"^\bx",
        "(?m)^a",
        "^a|b",
        "^[é-ü]x",  # some bytes of what is inside are bytes of what is not
        "^[^a]{2}",  # so many characters are not so many bytes
        "^.x",
        "a+b",  # to be searched for in a time that grows with the square
        "^" + "(ab?,){2}" * 40,
    ],
)
def test_what_is_left_to_the_automaton(pattern: str) -> None:
    assert steps_of(pattern) is None
