"""`saw`, `sawn` and `sawzall` on random texts: the evaluator and machine code say what a plain loop over Python's `re` says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import river
from river.testing import seeds

if TYPE_CHECKING:
    import random

WAYS = {
    "fields": ("saw", 1, ((r"^\w+", "whole"), ("^[ ,]+", "skip"), (r"^\w*", "whole"), ("x?$", "whole"))),
    "groups": ("saw", 1, (("(a)|(b+)", "submatch"), ("[^a]", "skip"), ("(é*)(x)?", "submatch"))),
    "empty": ("saw", 1, (("x*", "whole"), ("x*", "whole"), ("b*", "whole"))),
    "words": ("sawzall", -1, ((r"\w+", "whole"),)),
    "pairs": ("sawzall", -1, (("a*", "whole"), ("[b ]?", "skip"))),
    "twice": ("sawn", 2, (("[a-c]+", "whole"), ("(,)", "submatch"))),
    "single": ("sawn", 1, (("a*", "whole"), ("b*", "whole"))),
}


def model(rounds: int, text: str, patterns: tuple[tuple[str, str], ...]) -> tuple[list[str], str]:
    """The parts, and what is left when no pattern is found any more."""
    parts: list[str] = []
    at, last = 0, -1
    done = 0
    while rounds < 0 or done < rounds:
        for pattern, take in patterns:
            found = re.search(pattern, text[at:], re.ASCII)
            while rounds != 1 and found and found.end() == 0 and at == last:
                if at == len(text):
                    return parts if at else [], text[at:]
                at += 1
                found = re.search(pattern, text[at:], re.ASCII)
            if found is None:
                return parts if at else [], text[at:]
            parts += {"whole": [found[0]], "skip": [], "submatch": list(found.groups(""))}[take]
            at += found.end()
            last = at
        done += 1
    return parts if at else [], text[at:]


def script() -> str:
    """Each way is a table of parts and rests."""
    lines = ["line: string = input;"]
    for name, (function, rounds, patterns) in WAYS.items():
        given = [f"{'' if take == 'whole' else take + ' '}`{pattern}`" for pattern, take in patterns]
        head = f"{rounds}, " if function == "sawn" else ""
        lines += [
            f"t_{name}: table collection of {{ parts: array of string, left: string }};",
            f"r_{name}: string = line;",
            f"p_{name} := {function}({head}line, {', '.join(given)}, rest r_{name});",
            f"emit t_{name} <- {{ p_{name}, r_{name} }};",
        ]
    return "\n".join(lines)


def text(chance: random.Random) -> str:
    return "".join(chance.choices("aabbxc ,é", k=chance.randrange(24)))


@pytest.mark.slow
def test_parts_are_what_a_plain_loop_finds() -> None:
    chance = seeds.chance("saw", "texts")
    lines = ["", "a", "é", *(text(chance) for _ in range(60))]
    compiled = river.compile(script(), lang="sawzall")
    runs = {
        backend: compiled.run({"input": lines}, backend=backend) for backend in ("reference", "multicore")
    }
    for name, (function, rounds, patterns) in WAYS.items():
        wanted = [model(rounds, line, patterns) for line in lines]
        for backend, results in runs.items():
            rows = results[f"t_{name}"].to_pylist()
            assert [row["parts"] for row in rows] == [parts for parts, _ in wanted], (name, backend)
            if function != "saw":  # there only what all patterns are behind is left
                assert [row["left"] for row in rows] == [left for _, left in wanted], (name, backend)


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_rests_are_kept_as_far_as_patterns_are_found(backend: str) -> None:
    source = """
    line: string = input;
    a: string = "-"; b: string = "-"; c: string = "-";
    saw(line, rest a, `x`, rest b, `y`, rest c);
    t: table collection of { a: string, b: string, c: string };
    emit t <- { a, b, c };
    """
    compiled = river.compile(source, lang="sawzall")
    found = compiled.run({"input": ["axbyc", "axb", "q"]}, backend=backend)["t"].to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("axbyc", "byc", "c"),
        ("axb", "b", "-"),
        ("q", "-", "-"),
    ]


def test_rest_of_one_round_is_what_is_left_behind_all_patterns() -> None:
    source = 'r: string; p := sawn(1, "abc", `a`, `b`, rest r); assert(r == "c" && p == {"a", "b"});'
    assert river.compile(source, lang="sawzall").run({}, backend="reference").summary.skipped == {}
