"""Regular expressions in native code give what the evaluator gives: by tables and by Pike's machine, and as constants."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.batch import Batch
from backends.native.lower.literals import pattern_table
from backends.native.module import Module
from backends.native.patterns import MOST
from backends.native.runtime_library import runtime
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.lang.automata import behind, program, tables
from river.lang.evaluate import Trap, compile_operator, freeze_variables
from river.lang.operations import OPERATIONS
from river.lang.patterns import Regex, compile_pattern
from river.lang.values import TrapSignal
from river.source import Source
from river.testing import seeds
from river.testing.pattern_strategies import patterns, texts

if TYPE_CHECKING:
    import random
    from array import array

    from river.il.graph import Graph

ITEM = t.Tuple((t.REGEX, t.STRING, t.STRING))
RESULTS = {"re_test": t.BOOL, "re_find": t.List(t.I64), "re_strs": t.List(t.STRING), "re_replace": t.STRING}


@cache
def probe(*, debug: bool = False) -> NativeOperator:
    """Sends what each operation finds; items are a pattern, a text, a replacement."""
    item = typed.Local(ITEM, 0, "x")
    fields = [typed.Get(type_, item, i, "") for i, type_ in enumerate((t.REGEX, t.STRING, t.STRING))]
    applies = [
        typed.Apply(type_, name, tuple(fields[: 2 + (name == "re_replace")]), 0)
        for name, type_ in RESULTS.items()
    ]
    op = typed.Operator(
        "probe", (typed.Port("x", ITEM, None),), (), tuple(typed.Out(name, type_, None, None) for name, type_ in RESULTS.items()),
        (), (), (typed.TrapSite(()),),
        items=(typed.ItemHandler(0, 1, typed.Block(tuple(typed.Emit(i, one) for i, one in enumerate(applies)))),),
    )  # fmt: skip
    native = compile_native(op, debug=debug)
    assert isinstance(native, NativeOperator), native
    return native


def meanings(regex: Regex, text: str, replacement: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, type_ in RESULTS.items():
        args = (regex, text, replacement)[: 2 + (name == "re_replace")]
        value = OPERATIONS[name].meaning((), type_)(*args)
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def prepared(table: array[int], *, debug: bool = False) -> NativeOperator:
    """The probe; the table of all its patterns is this one."""
    native = probe(debug=debug)
    assert native.patterns is not None
    native.patterns.make = lambda _pattern, _often: table
    native.patterns.clear()
    return native


def agree(
    regex: Regex, made: list[array[int]], samples: list[str], replacement: str, *, debug: bool = False
) -> None:
    """By each of the tables machine code finds what the evaluator does, which is asked once."""
    expected = [meanings(regex, text, replacement) for text in samples]
    for table in made:
        native = prepared(table, debug=debug)
        found, fired = native.fire_batch([[(regex, text, replacement) for text in samples]])
        assert fired.trap is None
        got = [dict(zip(RESULTS, values, strict=True)) for values in zip(*found, strict=True)]
        assert got == expected


def tables_of(regex: Regex) -> list[array[int]]:
    """The table, and that of Pike's machine alone."""
    return [tables.table(regex.machine.program), tables.table(regex.machine.program, 0)]


def check(pattern: str, samples: list[str]) -> None:
    regex = compile_pattern(pattern)
    replacement = rf"<\0|\{min(regex.groups, 9)}\\é>"
    agree(regex, tables_of(regex), samples, replacement)


several = st.lists(texts, min_size=8, max_size=8)


@pytest.mark.slow
@settings(max_examples=min(60, 2 * settings().max_examples))
@given(patterns(empty_rounds=True), several)
def test_random_patterns(pattern: str, samples: list[str]) -> None:
    check(pattern, samples)


@pytest.mark.long
@settings(max_examples=5000)
@given(patterns(empty_rounds=True), several)
def test_random_patterns_at_length(pattern: str, samples: list[str]) -> None:
    check(pattern, samples)


@pytest.mark.parametrize(
    "pattern",
    [
        "x*", "|a", "", r"\b", "^a", "(?m)^", "(?m)$", r"\B", r"(\w+)\s+(\w+)", r"^(\w+)://([\w.]+)(?::(\d+))?/([^?]*)(?:\?(.*))?$",
        "(a*)*b", "(a|b)*a(a|b){11}$", "()" * 70 + "b", "(?:(a)|(b)|(é))+", "[^a]{3,50}", "(a{1,3}){2,4}b?",
    ],
)  # fmt: skip
def test_chosen_patterns(pattern: str) -> None:
    chance = seeds.chance("native regex", len(pattern))
    samples = ["", "a", "é", "x\0y", "a" * 5000, "the  quick brown 😀 fox" * 20]
    samples += ["http://www.example.com:80/a/b?c=d", "https://x/", "ab\nab\n", "ä" * 300 + "ab"]
    samples += ["".join(chance.choices("ab xé\n", k=chance.randrange(60))) for _ in range(20)]
    check(pattern, samples)


# Patterns that are found from behind: long texts, matches of all lengths, and what looks like their beginning.
FAR = [
    r"([a-z]+)\.html", r"(\w+)=(\w+)&", r"([a-z]+) ([a-z]+) https", r"(\w+\s+){3}https", r"(error) (code)",
    r"(a|ab)(c|bcd)(d*)$", r"(user).*(https)", r"\bq(=)\d+\b", r"\B(r)=", r"(?m)^(é+)=|(x.*)y$", r"([^ ]+)://(.*)",
    r"(?s)(a.*)=(.*?)z", r"(é|ж)+(q)", r"\.com", r"(.)(.)(.)=", r"a*?(b*)=", r"(?:(a)|(b)|[^ab])*=", r"^(\w+) .*(=)",
    r"(?i)(HTML)|(php)", r"[0-9]{3}", r"(\w+) error (\w+) user", r"x*",
]  # fmt: skip
WORDS = [
    "alpha",
    "user",
    "error",
    "code",
    "é",
    "жq",
    "b",
    "aab",
    "https",
    "r=",
    "q=1",
    "x",
    "\n",
    "html",
    ".",
    "😀",
    "12",
]
ENDS = [
    "",
    "alpha.html",
    "a=b&",
    "abcd",
    "q=12",
    "https://x/y",
    "error code",
    "éé=",
    "a=zz",
    "www.com",
    "error x user y",
    "\nxxy",
]


def far_texts(chance: random.Random) -> list[str]:
    """Lines from a few bytes to some blocks, and one beyond all that is kept of them."""
    found: list[str] = []
    for size in (1, 5, 20, 40, 80, 100, 300):
        words = chance.choices(chance.sample(WORDS, 5), k=size)
        end = chance.choice(ENDS)
        found += [" ".join(words) + end, end + " ".join(words), " ".join(words) + end + " ".join(words)]
    tail = chance.choice(["x", "a ", "ab c ", "é"]) * chance.choice([100, 127, 128, 129, 3000, 10_000])
    return [*found, tail, tail + chance.choice(ENDS), "=" + tail + chance.choice(ENDS)]


@pytest.mark.parametrize("pattern", FAR)
def test_matches_far_away(pattern: str) -> None:
    check(pattern, far_texts(seeds.chance("native regex", pattern)))


@pytest.mark.slow
def test_a_match_longer_than_what_is_kept() -> None:
    text = "ab " * 110_000 + "="
    regex = compile_pattern("([a-z]+ )+=")
    agree(regex, [tables.table(regex.machine.program)], [text, "-" + text, text + "-"], "<\\0>")


@pytest.mark.parametrize("pattern", [*FAR[:4], FAR[7], FAR[9], FAR[13], FAR[16]])
def test_searching_far_reads_nothing_outside(pattern: str) -> None:
    regex, chance = compile_pattern(pattern), seeds.chance("native regex", len(pattern))
    samples = [text[:1500] for text in far_texts(chance)]
    agree(regex, [tables.table(regex.machine.program)], samples, r"<\0>", debug=True)


@pytest.mark.slow
@settings(max_examples=min(30, settings().max_examples))
@given(patterns(empty_rounds=True), st.randoms(use_true_random=False), texts)
def test_random_patterns_far_away(pattern: str, chance: random.Random, text: str) -> None:
    between = ["".join(chance.choices("ab xé-", k=size)) for size in (50, 100, 700)]
    check(pattern, [*(one + text for one in between), *(text * 20 + one for one in between)])


@pytest.mark.long
@settings(max_examples=3000)
@given(patterns(empty_rounds=True), st.randoms(use_true_random=False), texts)
def test_random_patterns_far_away_at_length(pattern: str, chance: random.Random, text: str) -> None:
    parts = ["".join(chance.choices("ab xé-", k=chance.randrange(1, 400))) for _ in range(4)]
    check(pattern, [*(one + text for one in parts), *(text * 20 + one for one in parts)])


ENDS_ONLY = [
    r"\.(jpg|com)$", "[0-9]+ b$", "(user|error) .* code$", r"(\w+)=(\w+)&$", r"(^|[ ,])(éé=|q=1.)$", r"[^ ]+$", r"\bb\z",
    r"(\w+) \b(x|\.com)$|12$", r"é\B$", "(?i)(HTML|Q=[0-9]*)$", "[ж😀]*(a|ab)(c|bcd)(d*)$", "x?$", r"(a|b|\s)*a[ab\s]{11}$",
    r"(\w+\s+){3}[^ ]*$", r"(?:\n|r=)[^=\n]*$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ENDS_ONLY)
def test_patterns_that_match_at_the_end(pattern: str) -> None:
    chance = seeds.chance("native regex", pattern)
    samples = far_texts(chance)
    check(
        pattern, [*samples, *(text + "\n" for text in samples[:6]), "", *ENDS, *WORDS, "b" * 200, "a" * 3000]
    )


@pytest.mark.parametrize("pattern", [ENDS_ONLY[2], ENDS_ONLY[4], ENDS_ONLY[5], ENDS_ONLY[12]])
def test_reading_from_behind_reads_nothing_outside(pattern: str) -> None:
    regex, chance = compile_pattern(pattern), seeds.chance("native regex", len(pattern))
    samples = [*(text[-1500:] for text in far_texts(chance)), "", "a", "12"]
    agree(regex, [tables.table(regex.machine.program)], samples, r"<\0>", debug=True)


@settings(max_examples=min(60, 2 * settings().max_examples))
@given(patterns(empty_rounds=True), st.sampled_from(["$", r"\z", r"\b$", "(?:^|b)$"]), several)
def test_random_patterns_that_match_at_the_end(pattern: str, end: str, samples: list[str]) -> None:
    long = [(samples[0] + "é-") * 60 + text for text in samples[1:3]]
    check(f"(?:{pattern}){end}", [*samples, *long])


@pytest.mark.long
@settings(max_examples=5000)
@given(patterns(empty_rounds=True), st.sampled_from(["$", r"\z", r"\b$", "(?:^|b)$"]), several)
def test_random_patterns_that_match_at_the_end_at_length(pattern: str, end: str, samples: list[str]) -> None:
    long = [(samples[0] + "é-") * 60 + text for text in samples[1:3]]
    check(f"(?:{pattern}){end}", [*samples, *long])


def test_a_zero_is_the_empty_pattern() -> None:
    text = """river 1;
input x: string;
operator f(x: string; $r: regex) -> (y: string) { on x(s) { var m: {r: regex} = zero(); emit y re_replace(m.r, s, "-"); } }
var $r: regex = regex("a");
(y) <- f(x, $r);
output y: string;
"""
    native = compile_native(operator(text))
    assert isinstance(native, NativeOperator), native
    assert native.variables[0].get() == compile_pattern("")
    (found,), _ = native.fire_batch([["", "abc", "é"]])
    assert found == [meanings(compile_pattern(""), each, "-")["re_replace"] for each in ("", "abc", "é")]


@given(st.text("\\01239aé", max_size=6), texts)
def test_replacements(replacement: str, text: str) -> None:
    regex = compile_pattern("(a)|(b)|[é1]")
    native = prepared(tables.table(regex.machine.program))
    found, fired = native.fire_batch([[(regex, text, replacement)]])
    if fired.trap is not None:
        assert fired.trap.code == "bad-regex"
        with pytest.raises(TrapSignal, match="bad-regex"):
            meanings(regex, text, replacement)
    else:
        assert found[3] == [meanings(regex, text, replacement)["re_replace"]]


@pytest.mark.slow
@settings(max_examples=min(30, settings().max_examples))
@given(patterns(empty_rounds=True), texts, st.integers(0, 3))
def test_matches_where_each_search_reads_to_the_end(pattern: str, text: str, ends: int) -> None:
    """Then all matches are found in linear time, in another way."""
    pattern = rf"(?:{pattern})|(?:[^\x01]*\x01)?" if ends else rf"(?:{pattern})|(?:(\w)|\b|.[^\x01]*\x01)?"
    long = (text + "ab é") * (300 // (len(text) + 4))
    regex = compile_pattern(pattern)
    asked = [(regex, each, replacement) for replacement in ("<\\0>", "-") for each in (long, text)]
    expected = [OPERATIONS["re_replace"].meaning((), t.STRING)(*each) for each in asked]
    for table in tables_of(regex):
        found, _ = prepared(table).fire_batch([asked])
        assert found[3] == expected


def test_replacing_takes_linear_time() -> None:
    regex = compile_pattern("(a*b)?")
    native = prepared(tables.table(regex.machine.program))
    for size in (1 << 10, 1 << 16):
        found, _ = native.fire_batch([[(regex, "a" * size, "-"), (regex, "a" * size + "b", "-")]])
        assert found[3] == ["a".join("-" * (size + 1)), "--"]


def test_linear_replacing_stays_in_its_memory() -> None:
    initial = [variable.initial for variable in graph_of(MADE).variables]
    fires_alike(operator(MADE), [("(a*b)?|é", "a" * 600 + "é", 3)], initial, debug=True)


@given(st.binary(max_size=30), patterns(empty_rounds=True))
def test_of_any_bytes_a_part_is_found(data: bytes, pattern: str) -> None:
    """Not UTF-8: what is found is not defined, but that it lies in the text."""
    for table in tables_of(compile_pattern(pattern)):
        native = prepared(table)
        batch = Batch.of(t.Tuple((t.STRING, t.BYTES, t.STRING)), [(pattern, data, "-")])
        fired = native.fire("item.0", batch.addresses, 0, 1)
        (positions,) = native.outputs[1].batch().values()
        native.clear()
        assert fired.trap is None
        assert all(-1 <= at <= len(data) for at in positions)


def test_the_runtime_has_the_constants_of_the_tables() -> None:
    known = runtime().constants
    words = ("SYMBOLS", "KINDS", "STATES", "MOVES", "NOTED", "STAYS", "DEAD", "HIT")
    assert [known[f"DFA_{name}"] for name in words] == [
        tables.DFA_HEAD,
        *(getattr(tables, name) for name in words[1:]),
    ]
    assert (known["BEHIND_SYMBOLS"], known["BEHIND_STATES"]) == (behind.BEHIND_HEAD, behind.BEHIND_STATES)
    assert known["DFA_NEXT"] == tables.HIT - 1
    assert known["DFA_ENDS"] == tables.HIT | tables.DEAD
    assert known["DFA_STOPS"] == tables.HIT | tables.DEAD | tables.STAYS
    assert known["DFA_PLACE"] == tables.MATCHED - 1
    assert known["FEW_REGISTERS"] >= known["KEPT"] + 1 + known["KEPT_BYTES"]
    for name in ("BYTE", "SPLIT", "SAVE", "HOLDS", "MATCH"):
        assert known[f"PIKE_{name}"] == getattr(program, name)
    names = ("AT_TEXT_START", "AFTER_WORD_BYTE", "AFTER_NEWLINE", "NOT_AN_EMPTY_MATCH")
    assert [known[name] for name in names] == [
        program.AT_START,
        program.AFTER_WORD,
        program.AFTER_LINE,
        program.NOT_EMPTY,
    ]


# ---------------------------------------------------------------------------------------------------- constants

PROGRAM = """river 1;
type Item = {s: string, n: i64};
type Found = {yes: bool, at: list<i64>, parts: list<string>, made: string};
input x: Item;
output y: Found;
operator f(x: Item) -> (y: Found) {
  const some: list<regex> = [regex("a(b)?"), regex("(?i)É|c+"), regex("")];
  const one: regex = regex("(b+)$");
  const text: string = "[0-9]+";
  fn chosen(r: regex, s: string, yes: bool) -> list<string> { let q = if yes { r } else { one }; return re_strs(q, s); }
  on x(v) {
    let r = some[mod.floor(v.n, 3)];
    let parts = chosen(r, v.s, v.n > 0);
    let yes = re_test(regex(text), v.s) or re_test(r, v.s);
    emit y {yes: yes, at: re_find(one, v.s), parts: parts, made: re_replace(r, v.s, PLACE)};
  }
}
(y) <- f(x);
"""


def graph_of(text: str) -> Graph:
    return verify(parse(Source("regex.river", text)), Library.of({}))


def operator(text: str) -> typed.Operator:
    (instance,) = graph_of(text).instances
    assert isinstance(instance.operator, typed.Operator)
    return instance.operator


@pytest.mark.parametrize("replacement", [r'"[\\0]"', r'"\\1"', "v.s", '""'])
def test_constants(replacement: str) -> None:
    op = operator(PROGRAM.replace("PLACE", replacement))
    native = compile_native(op)
    assert isinstance(native, NativeOperator), native
    fire = compile_operator(op).item[0]
    assert fire is not None
    for i, text in enumerate(["", "a", "ab", "xabb", "cc1É", "é 23 abab", "\\", "b" * 40, "ab" * 40]):
        for n in range(i, i + 3):
            outs: list[list[Any]] = [[]]
            code = None
            try:
                fire([], (text, n), outs)
            except Trap as trap:
                code = trap.code
            found, fired = native.fire_batch([[(text, n)]])
            assert (fired.trap.code if fired.trap else None) == code
            assert list(found) == outs


def fires_alike(
    op: typed.Operator, items: list[Any], states: list[Any], *, debug: bool = False
) -> NativeOperator:
    """Both give the same for each item, from the same variables."""
    native = compile_native(op, debug=debug)
    assert isinstance(native, NativeOperator), native
    fire = compile_operator(op).item[0]
    assert fire is not None
    variables = list(states)
    for variable, value in zip(native.variables, states, strict=True):
        variable.set(value)
    for item in items:
        outs: list[list[Any]] = [[] for _ in op.outs]
        before, trap = list(freeze_variables(op, list(variables))), None
        try:
            fire(variables, item, outs)
        except Trap as trapped:
            trap = (trapped.code, trapped.site)
        found, fired = native.fire_batch([[item]])
        got = None if fired.trap is None else (fired.trap.code, fired.trap.site)
        assert got == trap, item
        if trap is None:
            assert repr(list(found)) == repr(outs), item
            assert [each.get() for each in native.variables] == list(freeze_variables(op, variables))
        else:  # what a firing that trapped has left is nobody's
            variables = list(before)
            for variable, value in zip(native.variables, before, strict=True):
                variable.set(value)
    return native


MADE = """river 1;
type Item = {p: string, s: string, n: i64};
type Kept = {r: regex, more: list<regex>, by: map<string, regex>, last: regex?};
input x: Item;
operator f(x: Item; $k: Kept, $d: deque<regex>) -> (y: {at: list<i64>, parts: list<string>, made: string, yes: list<bool>}) {
  const one: regex = regex("(b+)$");
  fn wrapped(p: string) -> regex = regex("(" + p + ")");
  fn either(r: regex, yes: bool) -> regex { if yes { return r; } return one; }
  on x(v) {
    let r = regex(v.p);
    let w = wrapped(v.p);
    var yes: list<bool> = [re_test(r, v.s), re_test($k.r, v.s), r == $k.r, compare(w, r) < 0, same(w, either(w, v.n > 1))];
    for q in $k.more { push(yes, re_test(q, v.s)); }
    for name, q in $k.by { push(yes, re_test(q, name)); }
    if $k.last is q { push(yes, re_test(q, v.s)); }
    push_back($d, w);
    if len($d) > 3 { push(yes, re_test(pop_front($d), v.s)); }
    emit y {at: re_find(either(w, v.n > 1), v.s), parts: re_strs(w, v.s), made: re_replace(r, v.s, "<\\\\0>"), yes: yes};
    if v.n == 0 { $k.r = r; }
    if v.n == 1 { push($k.more, w); $k.last = w; }
    if v.n == 2 { $k.by[v.s] = r; if len($k.more) > 2 { $k.more[0] = one; delete($k.by, v.s); $k.last = none; } }
    if v.n == 3 { $k.r = one; clear($k.more); }
  }
}
var $k: Kept = {r: regex("x|a"), more: [], by: {}, last: none};
var $d: deque<regex> = zero();
(y, $k, $d) <- f(x, $k, $d);
output y: {at: list<i64>, parts: list<string>, made: string, yes: list<bool>};
"""
PIECES = [
    "a",
    "b|c",
    "(?i)É",
    "[^a]+",
    "x{2,3}$",
    "a very long literal pattern, longer than a view",
    "(",
    "*",
    "",
]


@pytest.mark.parametrize("debug", [False, True])
def test_patterns_made_while_the_program_runs(debug: bool) -> None:
    op, chance = operator(MADE), seeds.chance("native regex", 5)
    initial = [variable.initial for variable in graph_of(MADE).variables]
    items = [
        (
            chance.choice(PIECES),
            chance.choice(["", "a", "xx", "abé", "bcÉ" * 9, PIECES[5]]),
            chance.randrange(4),
        )
        for _ in range(150)
    ]
    native = fires_alike(op, items, initial, debug=debug)
    assert 0 < native.calls.count < 150


@pytest.mark.slow
def test_the_index_of_patterns_is_bounded() -> None:
    op = operator(MADE)
    native = compile_native(op)
    assert isinstance(native, NativeOperator)
    assert native.patterns is not None
    for start in range(0, 1000, 250):
        items = [(f"a{n}", f"xa{n}y", 3) for n in range(start, start + 250)]
        (found,), fired = native.fire_batch([items])
        assert fired.trap is None
        assert [each[2] for each in found] == [f"x<a{n}>y" for n in range(start, start + 250)]
        assert sum(1 for _ in native.patterns.regions()) <= 2 + 2 * MOST
    assert native.calls.count >= 2000  # r and w of each


def test_patterns_used_often_get_a_table() -> None:
    native = compile_native(operator(MADE))
    assert isinstance(native, NativeOperator)
    assert native.patterns is not None
    asked: list[tuple[str, bool]] = []

    def made(pattern: str, often: bool) -> array[int]:
        asked.append((pattern, often))
        return tables.table(compile_pattern(pattern).machine.program, tables.MOST_STATES if often else 0)

    native.patterns.make = made
    items = [(p, "xaab", 3) for p in ("a+", "a very long literal pattern, longer than a view", "b")]
    (found,), fired = native.fire_batch([items * 100])
    assert fired.trap is None
    assert [each[:3] for each in found] == [each[:3] for each in found[:3]] * 100
    assert len(asked) == len(set(asked))
    made_twice = {pattern for pattern, _, _ in items} | {f"({pattern})" for pattern, _, _ in items}
    assert {(pattern, often) for pattern in made_twice for often in (False, True)} <= set(asked)


def test_what_fails_in_python_is_raised_where_native_code_was_called() -> None:
    native = compile_native(operator(MADE))
    assert isinstance(native, NativeOperator)
    assert native.patterns is not None

    def interrupted(_pattern: str, _often: bool) -> array[int]:
        raise KeyboardInterrupt

    native.patterns.make = interrupted
    with pytest.raises(KeyboardInterrupt):
        native.fire_batch([[("a", "b", 1)]])


@pytest.mark.slow
def test_a_pattern_too_large_for_tables() -> None:
    large = "()" * 500 + "[^a]{300}"
    op = operator(PROGRAM.replace("PLACE", "v.s").replace('regex("(b+)$")', f'regex("{large}")'))
    fires_alike(op, [("b" * 400, 1), ("", 0), ("a" * 400, 2)], [])


def test_a_bad_pattern_in_a_body_traps() -> None:
    op = operator(PROGRAM.replace("PLACE", "v.s").replace("regex(text)", 'regex("(")'))
    native = compile_native(op)
    assert isinstance(native, NativeOperator)
    _, fired = native.fire_batch([[("a", 0)]])
    assert fired.trap is not None
    assert fired.trap.code == "bad-regex"


def test_a_constant_is_one_table() -> None:
    module = Module()
    assert pattern_table(module, compile_pattern("a|b")).startswith("@const.")
    assert len(module.texts) == 1
