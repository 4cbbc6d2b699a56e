"""Our way through the tables of a grammar is lark's: the same trees and places of mistakes, the same that could stand there."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from lark import Lark, Token, UnexpectedInput

from river.diagnostics import InternalError
from river.lang import tables
from river.lang.grammar import Module, compose
from river.lang.lalr import Tree, Unexpected
from river.lang.tables import cached
from river.lang.tables import rules as read_of
from river.lang.tabulate import Ambiguous, Production, tabulate
from river.testing import seeds
from tests.properties import texts_at_random as texts

if TYPE_CHECKING:
    from pathlib import Path

    from river.lang.lalr import Tables

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LAST = (0, 0)
"""Where a text ends too early, wherever that is."""

GRAMMAR = r"""
start: item* ["last" NAME]
?item: sum ";" | "(" item ")" | [NAME "="] _list "!" -> named
_list: NAME ("," NAME)*
?sum: sum "+" atom | atom
?atom: NAME | "(" sum ")" | "-" atom -> minus
!keep: "keep"i NAME
%extend item: keep | narrow | only
only: "?" "not" NAME
narrow: DATE | "<" NAME ">" | "<<" NAME ">>"
DATE.2: /date\s+'[^']*'/i
NAME: /[a-z_]+/
SPACE: /\s+/
%ignore SPACE
"""
"""Rules of each kind: inlined, expanded, kept whole, with placeholders, and words in any letters."""


def by_lark(parser: Lark, text: str, start: str) -> Any:
    """The tree of a text, or where it goes wrong and for how many characters."""
    at = parser.parse_interactive(text, start=start)
    last: Any = None
    try:
        for token in at.iter_parse():
            if last is not None and last.end_pos == token.start_pos:  # `orx` is one word to us
                word = WORD.match(last + token)
                if word is not None and word.end() > len(last):
                    return token.start_pos, len(token)
            last = token
        return at.feed_eof(last)
    except UnexpectedInput as error:
        token: Any = getattr(error, "token", None)
        if token is None:
            return error.pos_in_stream, 1
        return LAST if token.type == "$END" else (token.start_pos, len(token))


def by_us(tables: Tables, text: str, start: str) -> Any:
    try:
        return tables.tree(text, start)
    except Unexpected as error:
        return (error.at, error.length) if error.length else LAST


def same(ours: Any, theirs: Any) -> bool:
    """Whether two trees are alike, with all places."""
    pairs = [(ours, theirs)]
    while pairs:
        a, b = pairs.pop()
        if a is None or b is None or isinstance(b, tuple):
            if a != b:
                return False
        elif isinstance(b, Token):
            if (a, a.type, a.start_pos, a.end_pos) != (b, b.type, b.start_pos, b.end_pos):
                return False
        else:
            place = (None, None) if b.meta.empty else (b.meta.start_pos, b.meta.end_pos)
            if (a.data, a.start_pos, a.end_pos, len(a.children)) != (b.data, *place, len(b.children)):
                return False
            pairs += zip(a.children, b.children, strict=True)
    return True


def with_a_name(text: str, theirs: Any) -> str | None:
    """The text with a name in place of the word at which lark stops, if it is one that may be a keyword elsewhere."""
    if not isinstance(theirs, tuple) or theirs == LAST:
        return None
    at, end = theirs[0], sum(theirs)
    if WORD.fullmatch(text[at:end]) is None or set(text[at:end]) == {"x"}:
        return None
    return f"{text[:at]}{'x' * (end - at)}{text[end:]}"


def agrees(parser: Lark, tables: Tables, text: str, start: str) -> bool:
    """Whether both say the same of a text; the result: whether it is one of the grammar."""
    theirs, ours = by_lark(parser, text, start), by_us(tables, text, start)
    if not same(ours, theirs) and (named := with_a_name(text, theirs)) is not None:
        again = by_us(tables, named, start)  # only a name can stand there, so ours has read it as one
        assert ours == again if isinstance(again, tuple) else not isinstance(ours, tuple), (
            f"{ours}\n{again}\n{text}"
        )
        return agrees(parser, tables, named, start)
    assert same(ours, theirs), f"{ours}\n{theirs}\n{text}"
    if not isinstance(theirs, tuple):
        return True
    before = text if theirs == LAST else text[: theirs[0]]
    if isinstance(by_lark(parser, before, start), tuple) and by_lark(parser, before, start) != LAST:
        return False  # cut off there it reads differently
    at = parser.parse_interactive(before, start=start)
    for _ in at.iter_parse():
        pass
    assert at.accepts() == set(tables.accepted(before, start)), before
    return False


def same_states(parser: Lark, tables: Tables) -> bool:
    """Whether lark's states do the same, whatever their numbers are."""
    theirs: Any = parser.parser.parser._parse_table
    rules = {~i: (rule.origin, *rule.parts) for i, rule in enumerate(tables.rules)}
    numbers: dict[int, int] = {}
    left = [(tables.start[name], state) for name, state in theirs.start_states.items()]
    while left:
        ours, other = left.pop()
        if (
            numbers.setdefault(ours, other) != other
            or tables.states[ours].keys() != theirs.states[other].keys()
        ):
            return False
        for symbol, to in tables.states[ours].items():
            action, arg = theirs.states[other][symbol]
            if to < 0:
                if rules[to] != (arg.origin.name, *(part.name for part in arg.expansion)):
                    return False
            elif action.name != "Shift":
                return False
            elif to not in numbers:
                left.append((to, arg))
    ends = {name: numbers[state] for name, state in tables.end.items()}
    return ends == theirs.end_states and len(numbers) == len(theirs.states)


@pytest.mark.slow
def test_programs_and_what_is_nearly_one_read_alike() -> None:
    chance = seeds.chance("lalr")
    language = chance.choice(sorted(texts.LANGUAGES))
    ours = texts.parser(language)
    parser, written = ours.build(reads=True), texts.written(language)
    assert same_states(parser, ours.tables)
    sys.setrecursionlimit(20_000)  # texts of many brackets, which lark takes apart by recursion
    for text in chance.sample(written, min(len(written), 6)):
        agrees(parser, ours.tables, text, ours.start[0])
    accidents = [texts.text_of(language, chance) for _ in range(30)]
    read = sum(agrees(parser, ours.tables, text, ours.start[0]) for text in accidents)
    assert 0 < read < len(accidents), language


def tabled(grammar: str, *start: str) -> Tables:
    """The tables of a grammar, made anew."""
    made = Lark(grammar, parser="lalr", start=list(start))
    return tables._read(tables._made(read_of(grammar, start, made), start))


def test_states_are_those_of_lark_where_parts_may_be_nothing_and_rules_begin_with_themselves() -> None:
    grammar = """
        one: pair | one pair
        two: empty one empty
        pair: empty "(" two ")" empty | "x" empty other
        other: "x" other | "y" two "z" | empty
        empty: ["e"]
    """
    read = Lark(grammar, parser="lalr", start=["one", "two"])
    assert same_states(read, tabled(grammar, "one", "two"))


def test_of_two_rules_the_one_of_greater_priority_ends() -> None:
    grammar = """
        start: first "!" | second "!"
        first{}: "a"
        second{}: "a"
    """
    for one, other in (("", ".2"), (".2", "")):
        read = Lark(grammar.format(one, other), parser="lalr")
        found = tabled(grammar.format(one, other), "start")
        assert same_states(read, found)
        (part,) = found.tree("a!", "start").children
        assert isinstance(part, Tree)
        assert part.data == ("second" if other else "first")
    rules = [Production("start", ("a",)), Production("start", ("b",))]
    rules += [Production("a", ("X",)), Production("b", ("X",))]
    with pytest.raises(Ambiguous, match=r"`a: X` and `b: X` may both end at \$END"):
        tabulate(rules, ["start"])


def test_a_grammar_that_may_be_read_in_two_ways_is_told_with_its_place(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    parser = compose(Module("mine", 'start: one | two\none: "a"\ntwo: "a"\n', "mine.lark"))
    with pytest.raises(InternalError, match=r"mine.lark:2: `one: A` and `two: A` may both end at \$END"):
        _ = parser.tables


@pytest.mark.parametrize(
    ("grammar", "said"),
    [
        ('start: IF start ELSE start | IF start | X\nIF: "if"\nELSE: "else"\nX: "x"\n', r"`start: IF start` may end at ELSE"),
        ("start: (A | B)+\nA: /a+/\nB: /[ab]/\n", "Collision between Terminals"),
        ("start: A B\nA: /a+/\nB: /[ab]/\n", ""),  # nowhere both
    ],
)  # fmt: skip
def test_strictly_nothing_has_two_readings(grammar: str, said: str) -> None:
    """Though tables can be made of it: a terminal is shifted where it could be, and the first of two is taken."""
    parser = compose(Module("mine", grammar, "mine.lark"))
    parser.build()
    with pytest.raises(InternalError, match=said) if said else nullcontext():
        parser.build(strict=True)


@cache
def by_rules_of_each_kind(grammar: str = GRAMMAR) -> Lark:
    return Lark(grammar, parser="lalr", propagate_positions=True, start="start")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("", True),
        ("a + b; (c); ((d + -e;))", True),
        ("(a + b) + (c + d); -(e + f);", True),
        ("a, b, c! x = d! last z", True),
        ("? not a ?not b", True),
        ("? nota", False),
        ("keep a KEEP b last last", True),
        ("date  '1.1.' DATE '' <a> <<b>>", True),
        ("a; <a>> last b", False),
        ("keepa", False),
        ("a + ", False),
        ("a ? b", False),
        ("(a", False),
        ("DATE", False),
    ],
)  # fmt: skip
def test_rules_of_each_kind(text: str, is_one: bool, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    parser = by_rules_of_each_kind()
    tables = cached(GRAMMAR, ("start",), lambda: parser)
    assert agrees(parser, tables, text, "start") == is_one
    assert (
        agrees(parser, cached(GRAMMAR, ("start",), lambda: pytest.fail("it is kept")), text, "start")
        == is_one
    )


def test_rules_that_were_read_before_are_used_for_their_grammar_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = by_rules_of_each_kind()
    told = json.dumps(read_of(GRAMMAR, ("start",), parser))
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path / "one"))
    tables = cached(GRAMMAR, ("start",), lambda: pytest.fail("it was read before"), lambda: told)
    assert agrees(parser, tables, "keep a KEEP b last last", "start")
    changed = GRAMMAR.replace('"keep"i', '"hold"i')
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path / "other"))
    tables = cached(changed, ("start",), lambda: by_rules_of_each_kind(changed), lambda: told)
    assert {"HOLD", "KEEP"} & {*tables.terminals} == {"HOLD"}
    assert agrees(by_rules_of_each_kind(changed), tables, "hold a HOLD b last last", "start")
