"""Our automata against Python's `re`, and that they are linear.

Where they differ by definition: captures of loops over what may be empty (as RE2: an empty round ends the loop, and the
last round counts), which is why the random patterns have none.
"""

from __future__ import annotations

import random
import re
from array import array
from typing import assert_never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from river.lang.automata.behind import BEHIND_HEAD, BEHIND_STATES
from river.lang.automata.machine import MOST_STATES, Machine, step
from river.lang.automata.program import (
    AFTER_LINE,
    AFTER_WORD,
    AT_START,
    MOST_INSTRUCTIONS,
    NOT_EMPTY,
    PatternProgram,
    program,
    utf8_sequences,
)
from river.lang.automata.skipping import MOST_RANGES, checks, heads
from river.lang.automata.tables import (
    DEAD,
    DFA_HEAD,
    FLAGS,
    HEAD,
    HIT,
    KINDS,
    MATCHED,
    MOVES,
    NOTED,
    RESULT,
    STATES,
    STAYS,
    table,
)
from river.lang.automata.tree import (
    Assertion,
    Chars,
    Choice,
    Group,
    Pattern,
    Ranges,
    Repeat,
    Sequence,
    nullable,
)
from river.lang.operations import OPERATIONS
from river.lang.patterns import BadPattern, compile_pattern, parse
from river.lang.values import TrapSignal
from river.testing.pattern_strategies import patterns, texts


def operation(name: str, *args: object) -> object:
    return OPERATIONS[name].meaning((), None)(*args)  # pyright: ignore[reportArgumentType]


# -------------------------------------------------------------------------------------------------- the oracle

PRINTED = {
    "text-start": r"\A", "text-end": r"\Z", "line-start": "(?m:^)", "line-end": "(?m:$)", "word": r"\b",
    "not-word": r"(?!\b)",  # unlike `\B` it holds in the empty text
}  # fmt: skip


def printed(tree: Pattern) -> str:
    """A tree in the syntax of `re`."""
    match tree:
        case Chars(ranges):
            return char_class(ranges)
        case Assertion(kind):
            return PRINTED[kind]
        case Sequence(items):
            return "".join(f"(?:{printed(i)})" if isinstance(i, Choice) else printed(i) for i in items)
        case Choice(items):
            return "|".join(map(printed, items))
        case Repeat(item, low, high, greedy):
            count = f"{{{low},{'' if high is None else high}}}"
            return f"(?:{printed(item)}){count}{'' if greedy else '?'}"
        case Group(_, item):
            return f"({printed(item)})"
        case _:
            assert_never(tree)


def char_class(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"


def strings(found: re.Match[str] | None) -> list[str]:
    return [] if found is None else [found[0], *found.groups("")]


def positions(found: re.Match[str] | None) -> list[int]:
    return [] if found is None else [at for i in range(found.re.groups + 1) for at in found.span(i)]


def compare(pattern: str, samples: list[str]) -> None:
    regex, oracle = compile_pattern(pattern), re.compile(printed(parse(pattern)), re.ASCII)
    last = min(regex.groups, 9)
    for text in samples:
        found = oracle.search(text)
        assert operation("re_test", regex, text) == (found is not None)
        assert operation("re_strs", regex, text) == strings(found)
        assert operation("re_find", regex, text) == positions(found)
        replaced = oracle.sub(lambda m: f"<{m[0]}|{m[last] or ''}>", text)
        assert operation("re_replace", regex, text, f"<\\0|\\{last}>") == replaced


@pytest.mark.slow
@settings(max_examples=150)
@given(patterns(empty_rounds=False), st.lists(texts, min_size=8, max_size=8))
def test_searches_find_what_re_finds(pattern: str, samples: list[str]) -> None:
    compare(pattern, samples)


@pytest.mark.long
@settings(max_examples=20_000)
@given(patterns(empty_rounds=False), st.lists(texts, min_size=8, max_size=8))
def test_searches_find_what_re_finds_at_length(pattern: str, samples: list[str]) -> None:
    compare(pattern, samples)


@pytest.mark.slow
@settings(max_examples=100)
@given(patterns(empty_rounds=True), texts)
def test_loops_over_nothing_match_where_re_matches(pattern: str, text: str) -> None:
    regex, oracle = compile_pattern(pattern), re.compile(printed(parse(pattern)), re.ASCII)
    assert operation("re_test", regex, text) == (oracle.search(text) is not None)


@pytest.mark.slow
@settings(max_examples=100)
@given(patterns(empty_rounds=True), st.lists(texts, min_size=5, max_size=5))
def test_what_is_forgotten_is_found_anew(pattern: str, samples: list[str]) -> None:
    regex = compile_pattern(pattern)
    machine = Machine(regex.machine.program, 1)
    for text in map(str.encode, samples):
        symbols = machine.program.read(text)
        assert machine.search(text, symbols) == regex.machine.search(text, symbols)
        assert machine.test(symbols) == regex.machine.test(symbols)


# ---------------------------------------------------------------------------------------- definitions of our own


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("(a*)*", "b", [0, 0, 0, 0]), ("(a*)+", "b", [0, 0, 0, 0]), ("(a|b*)*", "ab", [0, 2, 1, 2]), (r"\B", "", [0, 0]),
        (r"\B", "é", [0, 0]), (r"a\B", "aé", []), (r"(?i)é", "É", []), ("(?:(a)|b)*", "ab", [0, 2, 0, 1]),
        ("x|", "é", [0, 0]), ("(|a)*", "aa", [0, 0, 0, 0]), ("(|a)+", "aa", [0, 0, 0, 0]),
        (r"[\x{D800}-\x{DFFF}]", "a", []),
    ],
)  # fmt: skip
def test_positions(pattern: str, text: str, expected: list[int]) -> None:
    assert operation("re_find", compile_pattern(pattern), text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "expected"),
    [
        ("x*", "abxd", "-", "-a-b--d-"), ("|a", "aa", "-", "-----"), ("", "é😀", "-", "-é-😀-"), (r"\b", "ab c", "|", "|ab| |c|"),
        ("^a", "aaa", "b", "baa"), ("(?m)^", "a\nb", ">", ">a\n>b"), ("(a)|(b)", "abc", r"\2\1", "abc"), ("a", "b", "c", "b"),
        ("b", "abc", r"\\\0\\\\", "a\\b\\\\c"), (r"(?m)$", "a\nb", ";", "a;\nb;"), (r"a\b", "aa a", "x", "ax x"),
    ],
)  # fmt: skip
def test_replacing(pattern: str, text: str, replacement: str, expected: str) -> None:
    assert operation("re_replace", compile_pattern(pattern), text, replacement) == expected


@pytest.mark.parametrize("replacement", ["\\", r"a\\\ ", r"\1", r"\x", r"\٣", "\\\\\\"])
def test_bad_references(replacement: str) -> None:
    for text in ("a", "b"):
        with pytest.raises(TrapSignal) as trap:
            operation("re_replace", compile_pattern("a"), text, replacement)
        assert trap.value.code == "bad-regex"


# -------------------------------------------------------------------------------------------------------- linear


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*$", "(a+)+$", "(?:a?){30}a{30}b", "(x+x+)+y", "(.*)(.*)(.*)(.*)[b]$"]
)
def test_hostile_patterns_are_linear(pattern: str) -> None:
    regex, text = compile_pattern(pattern), "a" * 100_000 + "c"
    found = operation("re_find", regex, text)
    assert operation("re_test", regex, text) == bool(found)
    assert found in ([], [100_001] * 2 + [-1] * 2)
    steps = [len(regex.machine._rows), len(regex.machine._tests)]
    assert max(steps) < 200  # the text is read once, by few states


@pytest.mark.slow
def test_beyond_the_most_states_searches_go_on() -> None:
    regex = compile_pattern("(a|b)*a(a|b){13}$")
    text = "".join(random.Random(5).choices("ab", k=9_000)) + "a" + "b" * 13
    assert operation("re_find", regex, text) == [0, 9014, 8999, 9000, 9013, 9014]
    assert len(regex.machine._rows) == MOST_STATES
    assert operation("re_test", regex, text)
    assert not operation("re_test", regex, text + "c")


@pytest.mark.slow
def test_patterns_may_be_too_large() -> None:
    with pytest.raises(BadPattern, match="too large"):
        compile_pattern("[^a]{1000}" * (MOST_INSTRUCTIONS // 5000))
    many = "()" * 500 + "(?:[^a]){300}"
    assert operation("re_test", compile_pattern(many), "b" * 300)
    assert table(compile_pattern(many).machine.program)[1:3].tolist() == [0, 0]  # no DFA


# -------------------------------------------------------------------------------------------------------- parts


@given(
    st.integers(0, 0x10FFFF),
    st.integers(0, 0x10FFFF),
    st.lists(st.characters(exclude_categories=["Cs"]), max_size=20),
)
def test_utf8_sequences(first: int, last: int, chars: list[str]) -> None:
    low, high = min(first, last), max(first, last)
    sequences = utf8_sequences(low, high)
    near = [
        chr(c) for c in (low, high, max(low - 1, 0), min(high + 1, 0x10FFFF)) if not 0xD800 <= c <= 0xDFFF
    ]
    for char in (*chars, *near):
        data = char.encode()
        fit = [
            s
            for s in sequences
            if len(s) == len(data) and all(a <= b <= c for (a, c), b in zip(s, data, strict=True))
        ]
        assert len(fit) == (low <= ord(char) <= high)


@pytest.mark.parametrize(
    ("pattern", "empty"),
    [("a", False), ("a*", True), ("a|", True), ("^$", True), ("(a?)b?", True), ("a{0,3}", True), ("(a?){2}", True)],
)  # fmt: skip
def test_nullable(pattern: str, empty: bool) -> None:
    assert nullable(parse(pattern)) == empty
    assert bool(program(parse(pattern), 1).context & 8) == empty


def test_the_table_leaves_out_what_is_too_large() -> None:
    small = table(compile_pattern("(a)b").machine.program)
    assert small[:3].tolist() == [4, HEAD, HEAD]
    assert small[3] > HEAD
    large = table(compile_pattern("(a|b)*a(a|b){8}$").machine.program, 400)  # of 512 states
    assert large[1:4].tolist() == [0, 0, HEAD]


@pytest.mark.slow
def test_what_only_tests_may_be_smaller() -> None:
    program_ = compile_pattern("(?:a|b)*?(?:a(?:a|b){5}c|(?:a|b)*b(?:a|b){5}c)").machine.program
    whole, tests = ({most: table(program_, most)[1:3].tolist() for most in range(10, 200, 5)}, [HEAD, 0])
    assert tests in whole.values()
    assert [HEAD, HEAD] in whole.values()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", []), ("a*", []), ("(ab|c)d?", [b"ac"]), ("^a(b)c", [b"a", b"b", b"c"]), ("a+b", [b"a", b"ab"]),
        ("(?i)k$", [b"kK"]), ("é[0-2]", [b"\xc3", b"\xa9", b"012"]), ("abcdefghij", [bytes((c,)) for c in b"abcdefgh"]),
    ],
)  # fmt: skip
def test_bytes_where_matches_begin(pattern: str, expected: list[bytes]) -> None:
    found = heads(compile_pattern(pattern).machine.program)
    assert [bytes(byte for byte in range(256) if one >> byte & 1) for one in found] == [
        bytes(sorted(one)) for one in expected
    ]


@given(patterns(empty_rounds=True), st.lists(texts, min_size=8, max_size=8))
def test_matches_begin_where_checks_pass(pattern: str, samples: list[str]) -> None:
    machine = compile_pattern(pattern).machine
    words = checks(machine.program)
    if words is None:
        return
    most, _, *pairs = words
    assert most == max(pairs[0], pairs[2])
    for text in map(str.encode, samples):
        found = machine.search(text, machine.program.read(text))
        if found is not None:
            assert found[1] - found[0] > most
            for distance, ranges in (pairs[:2], pairs[2:]):
                assert text[found[0] + distance] in bytes_of([ranges])


def bytes_of(ranges: list[int]) -> set[int]:
    """The bytes that ranges list, whether they or all others are meant."""
    data = array("i", ranges[: MOST_RANGES // 2]).tobytes()
    return {b for low, n in zip(data[::2], data[1::2], strict=True) for b in range(low, low + n)}


@given(patterns(empty_rounds=True))
def test_a_table_leads_nowhere_outside(pattern: str) -> None:
    check_table(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(a|b)*a(a|b){8}$", r"(\w+) error (\w+) user", "[^a]{3,50}", r"[\x{D800}]", "^(.*) (é|ж|😀+)x"],
)
def test_a_large_table_leads_nowhere_outside(pattern: str) -> None:
    check_table(pattern)


def check_table(pattern: str) -> None:
    words = table(compile_pattern(pattern).machine.program)
    slots, test, captures, code, _, _, registers, _, size, _ = words[:HEAD]
    assert size == len(words)
    assert test == captures == HEAD
    dfa = words[test:code]
    end, kinds, *firsts = dfa[:10]
    width, paired, moves, _ = dfa[10:DFA_HEAD]
    columns = end + 1
    symbols, classes = dfa[DFA_HEAD:KINDS].tobytes(), dfa[KINDS:STATES].tobytes()
    assert max(symbols) < end
    assert max(classes) < kinds
    assert width == 4 * columns + 2
    sizes = [width + kinds * kinds if paired else width]
    places = [0]
    while places[-1] + sizes[-1] < moves - STATES:
        places.append(places[-1] + sizes[-1])
        sizes.append(width + kinds * kinds if places[-1] < paired else width)
    assert places[-1] + sizes[-1] == moves - STATES
    assert not paired or paired in (*places, moves - STATES)
    inside = set(places)
    for place, room in zip(places, sizes, strict=True):
        row = dfa[STATES + place : STATES + place + room]
        plain, (stay, skip) = row[:columns], row[columns : columns + 2]
        for symbol, word in enumerate(plain):
            check_transition(dfa, place, symbol, slots, registers)
            assert word & ~FLAGS in inside
            if word & STAYS:
                assert dfa[STATES + (word & ~FLAGS) + columns + 1] != 0
        if place:
            assert stay in (-1, place, place | NOTED | HIT)
            check_skip(dfa, place, skip, [row[symbols[byte]] != stay for byte in range(256)])
        for number, word in enumerate(row[width:]):
            first, second = (
                [s for s in range(end) if classes[symbols.index(s)] == kind] for kind in divmod(number, kinds)
            )
            assert word in inside or word == HIT
            if word != HIT:
                ((one,), (other,)) = first, second
                assert not plain[one] & ~MOVES & FLAGS
                after = dfa[STATES + (plain[one] & ~FLAGS) + other]
                assert after & ~MOVES == word
                assert 0 < word < paired
    assert all(first & ~STAYS in inside for first in firsts)
    check_origins(dfa, compile_pattern(pattern).machine.program)


def check_origins(dfa: array[int], code: PatternProgram) -> None:
    """States are those of Pike's machine, and threads come from where it says."""
    columns, known = dfa[0] + 1, dict[int, tuple[tuple[int, ...], int]]()
    for number, more in ((0, 0), (1, AFTER_WORD), (2, AFTER_LINE), (3, AT_START)):
        for other, empty in ((number, 0), (number + 4, NOT_EMPTY)):
            known[dfa[2 + other] & ~STAYS] = ((code.start,), (more | empty) & code.context)
    known.pop(0, None)
    todo = list(known)
    while todo:
        place = todo.pop()
        threads, context = known[place]
        for symbol, byte in enumerate(code.bytes):
            to = dfa[STATES + place + symbol] & ~FLAGS
            taken = step(code, threads, context, byte)
            assert bool(dfa[STATES + place + symbol] & HIT) == (taken.match is not None)
            if not to:
                continue
            if to not in known:
                known[to] = (taken.threads, code.after(byte))
                todo.append(to)
            assert known[to] == (taken.threads, code.after(byte))
            if dfa[13]:
                first = dfa[13] + dfa[STATES + place + 3 * columns + 2 + symbol]
                expected = [-1 if threads[number] == code.start else number for number, _ in taken.origins]
                assert dfa[first : first + len(expected)].tolist() == expected


def check_transition(dfa: array[int], place: int, symbol: int, slots: int, registers: int) -> None:
    """The flags of a transition, and its moves."""
    columns = dfa[0] + 1
    word, rest, save = (dfa[STATES + place + symbol + i * columns + 2 * (i > 0)] for i in range(3))
    assert (word & ~FLAGS == 0) == bool(word & DEAD)
    assert word & DEAD or symbol != columns - 1
    assert not word & STAYS or word & ~FLAGS != place
    assert bool(word & HIT) == bool(word & NOTED or rest & MATCHED)
    for flag, at in ((MOVES, rest & ~MATCHED), (NOTED, save)):
        if word & flag:
            count = dfa[dfa[12] + at]
            used = dfa[dfa[12] + at + 1 : dfa[12] + at + 1 + 2 * count]
            assert len(used) == 2 * count > 0
            assert all(0 <= register < registers for register in used)
            assert all(register >= RESULT for register in used[::2])
            assert registers >= RESULT + slots


def check_skip(dfa: array[int], place: int, skip: int, leaving: list[bool]) -> None:
    """What a state may pass over."""
    if skip > 0:
        assert STATES < skip <= len(dfa) - 6
        ranges = dfa[skip : skip + 3].tolist()
        listed = bytes_of(ranges)
        assert {byte for byte in range(256) if leaving[byte]} == (
            set(range(256)) - listed if ranges[2] else listed
        )
    if skip < 0:
        assert place in [first & ~STAYS for first in dfa[2:10]]
        assert STATES < -skip <= len(dfa) - 6
        most, double, first, these, second, those = dfa[-skip : 6 - skip]
        assert most == max(first, second) < 8
        assert double == any(array("i", (one,)).tobytes()[3] for one in (these, those))


# -------------------------------------------------------------------------------------------------- from behind

ENDINGS = ("$", r"\z", "\\b$", "\\B$", "(?:$|c$)", "(?:(?m:$)b?)$", "(?:^|a)$", "é?$")


def begin(words: array[int], text: bytes, at: int) -> int:
    """Where the first match from a place on begins, as machine code finds it; -1: there is none, -2: not known."""
    states = words[words[9] + BEHIND_STATES :]
    symbols = words[words[9] + BEHIND_HEAD : words[9] + BEHIND_STATES].tobytes()
    found, state = -1, 0
    for place in range(len(text), at - 1, -1):
        symbol = words[words[9]] if place == 0 else symbols[text[place - 1]]
        word = states[state + symbol]
        found = place if word & HIT else found
        if word & DEAD or place == at:
            break
        if word & STAYS:
            return -2
        state = word & ~FLAGS
    return found


def check_behind(pattern: str, samples: list[bytes]) -> bool:
    """Whether there is such a table."""
    machine = compile_pattern(pattern).machine
    words = table(machine.program)
    if words[9] == 0:
        assert words[8] == len(words)
        return False
    states = words[words[9] + BEHIND_STATES :]
    columns = words[words[9]] + 1
    assert len(states) % columns == 0
    assert {word & ~FLAGS for word in states} <= {*range(0, len(states), columns)}
    assert all(word & DEAD for word in states[columns - 1 :: columns])
    assert max(words[words[9] + BEHIND_HEAD : words[9] + BEHIND_STATES].tobytes()) < columns - 1
    for text in samples:
        symbols = machine.program.read(text)
        assert begin(words, text, 0) == -2 or (begin(words, text, 0) >= 0) == machine.test(symbols)
        for at in range(len(text) + 1):
            first = machine.search(text, symbols, at)
            assert begin(words, text, at) in (-2, -1 if first is None else first[0])
            assert words[words[9] + 1] or begin(words, text, at) != -2
    return True


@pytest.mark.slow
@settings(max_examples=150)
@given(
    patterns(empty_rounds=True),
    st.sampled_from(ENDINGS),
    st.lists(texts.map(str.encode) | st.binary(max_size=12), min_size=8, max_size=8),
)
def test_matches_begin_where_they_are_found_from_behind(pattern: str, end: str, samples: list[bytes]) -> None:
    check_behind(f"(?:{pattern}){end}", samples)


@pytest.mark.long
@settings(max_examples=10_000)
@given(
    patterns(empty_rounds=True),
    st.sampled_from(ENDINGS),
    st.lists(texts.map(str.encode) | st.binary(max_size=12), min_size=8, max_size=8),
)
def test_matches_begin_where_they_are_found_from_behind_at_length(
    pattern: str, end: str, samples: list[bytes]
) -> None:
    check_behind(f"(?:{pattern}){end}", samples)


@pytest.mark.some(10)
@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        (r"\.(jpg|gif)$", True), (r"a\z", True), ("a|b$", False), ("(?m)a$", False), ("(a$|b$)", True), ("a$?", False),
        ("(?:a$)+", True), ("^a$", False), ("(^|b)a$", True), ("a.*$", False), ("a.*b$", True), ("$", True), ("a", False),
        ("(a|b)*a(a|b){11}$", True), ("^(a|b)*a(a|b){11}$", True), ("(a|b){13}a(a|b)*$", False), ("a$b", True),
        (r"é\B$", True), ("[^,]*$", True), (r"\b[a-z]+$", True), ("x{500}$", True),
    ],
)  # fmt: skip
def test_patterns_that_are_read_from_behind(pattern: str, known: bool) -> None:
    samples = [
        b"",
        b"a",
        b"b",
        b"ba",
        b"ab" * 20,
        b".jpg",
        b"x" * 510,
        b"\xc3\xa9",
        b"\xa9",
        b"\xc3",
        b"a\n",
        b"a.b\n",
    ]
    assert check_behind(pattern, samples) == known


def test_what_takes_long_to_read_from_behind_is_left_out() -> None:
    program_ = compile_pattern("(a|b|c)*[ab]x$").machine.program
    assert table(program_)[9] > 0
    assert table(program_, 0)[9] == table(program_, work=0)[9] == 0
