"""Constant patterns in machine code, byte by byte, find what the evaluator does; so do lists that are only looked at."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.lower.fleeting import fleeting
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import types as t
from river.lang.automata.direct import direct
from river.lang.evaluate import compile_operator
from river.lang.operations import OPERATIONS
from river.lang.patterns import Regex, compile_pattern
from river.source import Source
from river.testing import seeds
from river.testing.pattern_strategies import LETTERS, lines

if TYPE_CHECKING:
    import random

    from river.lang import typed

HEAD = """river 1;
input x: string;
operator f(x: string) -> (y: {n: i64, yes: bool, at: list<i64>, parts: list<string>, end: i64, last: string}) {
  on x(s) {
"""
EACH = """
    var at_N = re_find(regex(P), s);
    let parts_N = re_strs(regex(P), s);
    emit y {
      n: N, yes: re_test(regex(P), s), at: re_find(regex(P), s), parts: re_strs(regex(P), s),
      end: get(at_N, len(at_N) - 1, -7), last: get(parts_N, len(parts_N) - 1, "none")
    };
"""
TAIL = """
  }
}
(y) <- f(x);
output y: {n: i64, yes: bool, at: list<i64>, parts: list<string>, end: i64, last: string};
"""


def operator(text: str) -> typed.Operator:
    (instance,) = verify(parse(Source("scanning.river", text)), Library.of({})).instances
    return instance.operator  # pyright: ignore[reportReturnType] - it is no other kind


def finder(patterns: list[str]) -> typed.Operator:
    """Sends what each pattern finds in a text."""
    each = (
        EACH.replace("N", str(n)).replace("P", json.dumps(p, ensure_ascii=False))
        for n, p in enumerate(patterns)
    )
    return operator(HEAD + "".join(each) + TAIL)


def meaning(name: str, regex: Regex, text: str) -> Any:
    kind = {"re_test": t.BOOL, "re_find": t.List(t.I64), "re_strs": t.List(t.STRING)}[name]
    found = OPERATIONS[name].meaning((), kind)(regex, text)
    return tuple(found) if isinstance(found, list) else found


def agree(patterns: list[str], samples: list[str], *, debug: bool = False) -> None:
    native = compile_native(finder(patterns), debug=debug)
    assert isinstance(native, NativeOperator), native
    (found,), fired = native.fire_batch([samples])
    assert fired.trap is None
    rows = iter(found)
    for text in samples:
        for n, pattern in enumerate(patterns):
            regex = compile_pattern(pattern)
            at, parts = meaning("re_find", regex, text), meaning("re_strs", regex, text)
            last = (at[-1], parts[-1]) if at else (-7, "none")
            assert tuple(next(rows)) == (n, meaning("re_test", regex, text), at, parts, *last), (
                pattern,
                text,
            )


def decided(chance: random.Random, count: int) -> list[str]:
    """Patterns that are matched byte by byte."""
    found: list[str] = []
    while len(found) < count:
        pattern = f"{chance.choice(('^', '^', '^', ''))}{lines(chance)}{chance.choice(('', '', '$'))}"
        regex = compile_pattern(pattern)
        if direct(regex.tree, regex.groups) is not None:
            found.append(pattern)
    return found


def samples(chance: random.Random) -> list[str]:
    short = ["".join(chance.choices(LETTERS + "F9]", k=chance.randrange(14))) for _ in range(60)]
    words = ["a", "b", "0", "é", "ab", "a 9", "/"]
    long = [chance.choice(words) * chance.randrange(50) + chance.choice(short) for _ in range(30)]
    return ["", *short, *long, *(chance.choice(short) + text for text in long)]


def test_lines_are_found() -> None:
    chance = seeds.chance("scanning")
    agree([*decided(chance, 12), "a|ab(c)", "[a-z]+"], samples(chance))


def test_nothing_outside_of_the_text_is_read() -> None:
    chance = seeds.chance("scanning, checked")
    agree(decided(chance, 4), samples(chance), debug=True)


@pytest.mark.long
@pytest.mark.parametrize("number", range(40))
def test_lines_are_found_at_length(number: int) -> None:
    chance = seeds.chance("scanning at length", number)
    agree(decided(chance, 30), samples(chance))


def test_chosen_patterns() -> None:
    line = '10.1.2.3 - - [16/Oct/2006:09:30:00 -0700] "GET /index.html HTTP/1.0" 200 2326'
    stretches = ["^[a-z]*", "^[^é ]*", "^[acegikmoqsuwy0]*", "^[a-c]{2,40}", "[0-9]{1,20}", r"^\W*", "^.*$"]
    texts = [
        letter * size + end for letter in "a0é" for size in (0, 1, 15, 16, 17, 33) for end in ("", "b;", "1")
    ]
    agree(
        [r'^(\S+) \S+ \S+ \[([^\]]+)\] "([A-Z]+) ([^ "]+)[^"]*" ([0-9]{3}) ([0-9]+|-)$', *stretches],
        [line, *texts],
    )


LISTS = """river 1;
input x: string;
operator f(x: string) -> (y: list<string>) {
  fn first(parts: list<string>) -> string = get(parts, 0, "");
  on x(s) {
    var rest = s;
    var all: list<list<string>> = [];
    var seen: list<string> = [];
    var before: list<string> = [];
    var here = re_strs(regex("^[a-z]+"), rest);
    while len(here) > 0 {
      push(all, re_strs(regex("^[a-z]+ ?"), rest));
      push(seen, here[0]);
      let kept = re_strs(regex("^[a-z]"), rest);
      before = kept;
      push(seen, first(before));
      rest = rest[re_find(regex("^[a-z]+ ?"), rest)[1]:len(rest)];
      here = re_strs(regex("^[a-z]+"), rest);
      push(seen, first(kept));
    }
    for each in all { push(seen, each[0]); }
    emit y seen;
  }
}
(y) <- f(x);
output y: list<string>;
"""


def test_lists_that_are_kept_stay_as_they_were() -> None:
    op = operator(LISTS)
    native, fire = compile_native(op), compile_operator(op).item[0]
    assert isinstance(native, NativeOperator)
    assert fire is not None
    for text in ("", "a", "one two three", "some words of more than twelve letters altogether"):
        outs: list[list[Any]] = [[]]
        fire([], text, outs)
        found, _ = native.fire_batch([[text]])
        assert list(found) == outs


def test_which_lists_are_only_looked_at() -> None:
    (handler,) = operator(LISTS).items
    assert len(fleeting(handler.body)) == 3  # both of `here`, and the positions that are indexed at once
