"""Regular expressions in native code give what the evaluator gives: by tables and by Pike's machine, and as constants."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, Refused, compile_native
from backends.native.batch import Batch, address_of
from backends.native.lower.regex import address
from backends.native.module import Module, runtime
from river.il.parse import parse
from river.il.templates import Library
from river.il.verify import verify
from river.lang import typed
from river.lang import types as t
from river.lang.automata import program, tables
from river.lang.evaluate import Trap, compile_operator
from river.lang.operations import OPERATIONS
from river.lang.patterns import Regex, compile_pattern
from river.lang.values import TrapSignal
from river.source import Source
from river.testing.pattern_strategies import patterns, texts

if TYPE_CHECKING:
    from array import array

ITEM = t.Tuple((t.I64, t.STRING, t.STRING))
RESULTS = {"re_test": t.BOOL, "re_find": t.List(t.I64), "re_strs": t.List(t.STRING), "re_replace": t.STRING}


@cache
def probe() -> NativeOperator:
    """Sends what each operation finds; items are the address of a table, a text, a replacement."""
    item = typed.Local(ITEM, 0, "x")
    fields = [typed.Get(type_, item, i, "") for i, type_ in enumerate((t.REGEX, t.STRING, t.STRING))]
    applies = [
        typed.Apply(type_, name, tuple(fields[: 2 + (name == "re_replace")]), 0)
        for name, type_ in RESULTS.items()
    ]
    op = typed.Operator(
        "probe", (typed.Port("x", ITEM, None),), (), tuple(typed.Out(name, type_, None, None) for name, type_ in RESULTS.items()),
        (), (), (typed.Site(()),),
        items=(typed.ItemHandler(0, 1, typed.Block(tuple(typed.Emit(i, one) for i, one in enumerate(applies)))),),
    )  # fmt: skip
    native = compile_native(op)
    assert isinstance(native, NativeOperator), native
    return native


def meanings(regex: Regex, text: str, replacement: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, type_ in RESULTS.items():
        args = (regex, text, replacement)[: 2 + (name == "re_replace")]
        value = OPERATIONS[name].meaning((), type_)(*args)
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def agree(regex: Regex, table: array[int] | None, samples: list[str], replacement: str) -> None:
    native = probe()
    at = 0 if table is None else address_of(table)
    found, fired = native.fire_batch([[(at, text, replacement) for text in samples]])
    assert fired.trap is None
    expected = [meanings(regex, text, replacement) for text in samples]
    got = [dict(zip(RESULTS, values, strict=True)) for values in zip(*found, strict=True)]
    assert got == expected


def tables_of(regex: Regex) -> list[array[int]]:
    """The table, and that of Pike's machine alone."""
    return [tables.table(regex.machine.program), tables.table(regex.machine.program, 0)]


def check(pattern: str, samples: list[str]) -> None:
    regex = compile_pattern(pattern)
    replacement = rf"<\0|\{min(regex.groups, 9)}\\é>"
    for table in tables_of(regex):
        agree(regex, table, samples, replacement)


several = st.lists(texts, min_size=8, max_size=8)


@settings(max_examples=100)
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
    chance = random.Random(len(pattern))
    samples = ["", "a", "é", "x\0y", "a" * 5000, "the  quick brown 😀 fox" * 20]
    samples += ["http://www.example.com:80/a/b?c=d", "https://x/", "ab\nab\n", "ä" * 300 + "ab"]
    samples += ["".join(chance.choices("ab xé\n", k=chance.randrange(60))) for _ in range(20)]
    check(pattern, samples)


def test_a_zero_is_the_empty_pattern() -> None:
    agree(compile_pattern(""), None, ["", "abc", "é"], "-")


@given(st.text("\\01239aé", max_size=6), texts)
def test_replacements(replacement: str, text: str) -> None:
    regex = compile_pattern("(a)|(b)|[é1]")
    native, table = probe(), tables.table(regex.machine.program)
    found, fired = native.fire_batch([[(address_of(table), text, replacement)]])
    if fired.trap is not None:
        assert fired.trap.code == "bad-regex"
        with pytest.raises(TrapSignal, match="bad-regex"):
            meanings(regex, text, replacement)
    else:
        assert found[3] == [meanings(regex, text, replacement)["re_replace"]]


@given(st.binary(max_size=30), patterns(empty_rounds=True))
def test_of_any_bytes_a_part_is_found(data: bytes, pattern: str) -> None:
    """Not UTF-8: what is found is not defined, but that it lies in the text."""
    native = probe()
    for table in tables_of(compile_pattern(pattern)):
        batch = Batch.of(t.Tuple((t.I64, t.BYTES, t.STRING)), [(address_of(table), data, "-")])
        fired = native.fire("item.0", batch.addresses, 0, 1)
        (positions,) = native.outputs[1].batch().values()
        native.clear()
        assert fired.trap is None
        assert all(-1 <= at <= len(data) for at in positions)


def test_the_runtime_has_the_constants_of_the_tables() -> None:
    known = runtime().constants
    assert known["DFA_SYMBOLS"] == tables.DFA_HEAD
    assert known["DFA_STATES"] == tables.STATES
    assert (known["DFA_MOVES"], known["DFA_NOTED"], known["DFA_PLACE"] + 1) == (
        tables.MOVES,
        tables.NOTED,
        tables.MATCHED,
    )
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


def operator(text: str) -> typed.Operator:
    (instance,) = verify(parse(Source("regex.river", text)), Library.of({})).instances
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


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("regex(text)", "regex(v.s)", "patterns made while the program runs"),
        ('regex("(b+)$")', f'regex("{"()" * 500}[^a]{{300}}")', "so large a pattern"),
    ],
)
def test_refusals(old: str, new: str, reason: str) -> None:
    refused = compile_native(operator(PROGRAM.replace("PLACE", "v.s").replace(old, new)))
    assert isinstance(refused, Refused)
    assert [each.text for each in refused.reasons] == [reason]


def test_variables_of_patterns_are_refused() -> None:
    text = """river 1;
input x: string; var $r: regex = regex("");
operator f(x: string; $r: regex) -> () { on x(s) { if re_test($r, s) { $r = regex("a"); } } }
($r) <- f(x, $r);
"""
    refused = compile_native(operator(text))
    assert isinstance(refused, Refused)
    assert "columns of type regex" in {each.text for each in refused.reasons}


def test_a_bad_pattern_in_a_body_traps() -> None:
    op = operator(PROGRAM.replace("PLACE", "v.s").replace("regex(text)", 'regex("(")'))
    native = compile_native(op)
    assert isinstance(native, NativeOperator)
    _, fired = native.fire_batch([[("a", 0)]])
    assert fired.trap is not None
    assert fired.trap.code == "bad-regex"


def test_a_constant_is_one_table() -> None:
    module = Module()
    text = address(module, compile_pattern("a|b"))
    assert text.startswith("ptrtoint (ptr @const.")
    assert len(module.texts) == 1
