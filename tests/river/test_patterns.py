"""RE2's syntax: what is accepted, what is refused, what matches."""

from __future__ import annotations

import re
from itertools import product
from unicodedata import name

import pytest

from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.patterns import BadPattern, Chars, Group, Repeat, Sequence, compile_pattern, parse


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a$", "a\n", None), ("a$", "ba", ["a"]), ("(?m)a$", "a\nb", ["a"]), ("^b", "a\nb", None),
        ("(?m)^b", "a\nb", ["b"]),
        ("a.b", "a\nb", None), ("(?s)a.b", "a\nb", ["a\nb"]), ("(?i)straSSe", "STRASSE", ["STRASSE"]),
        ("(?i)k", "\u212a", None),
        ("a(?i)b|c", "aB", ["aB"]), ("(a(?i)b)c", "aBc", ["aBc", "aB"]), ("(a(?i)b)c", "aBC", None),
        ("(?i:a)b", "Ab", ["Ab"]),
        ("(?U)a+", "aaa", ["a"]), ("(?U)a+?", "aaa", ["aaa"]), ("a+?", "aaa", ["a"]),
        ("a{2,3}", "aaaa", ["aaa"]), ("a{,3}", "a{,3}", ["a{,3}"]),
        ("a{2}", "aaa", ["aa"]), ("a{2,}", "aaa", ["aaa"]), ("x{", "x{", ["x{"]), (r"\d+", "٣4", ["4"]),
        (r"\w+", "äb_1", ["b_1"]), (r"\bb\b", "a b", ["b"]),
        (r"\B", "", [""]), (r"\Aa\z", "a", ["a"]), (r"\x41\x{1F600}", "A\U0001f600", ["A\U0001f600"]),
        (r"\Qa.b\E+", "a.bb", ["a.bb"]), (r"\Qa.b\E", "a.b", ["a.b"]),
        (r"\Q.", ".", ["."]), ("[[:alpha:]]+", "1ab", ["ab"]), ("[[:^digit:]]", "1a", ["a"]),
        ("[^a-c]", "abd", ["d"]), ("[]a]+", "]a", ["]a"]), ("[a-]+", "-a", ["-a"]),
        (r"[\d.]+", "1.5", ["1.5"]), (r"[^\n]", "\n", None), ("(?P<n>a)(?<m>b)", "ab", ["ab", "a", "b"]),
        ("a|ab", "ab", ["a"]), ("(a|ab)(c|bcd)(d*)", "abcd", ["abcd", "a", "bcd", ""]),
        ("(a*)*", "b", ["", ""]), ("", "x", [""]), ("a||b", "b", [""]), (r"\012", "\n", ["\n"]),
        (r"[\x00-\x{10FFFF}]", "\n", ["\n"]), (r"[^\x00-\x{10FFFF}]", "a", None), ("(?i)[^k]", "K", None),
        (r"\.\*", ".*", [".*"]), (r"\Q\Ea", "a", ["a"]), ("(?-s).", "\n", None), ("^*", "a", [""]),
    ],
)  # fmt: skip
def test_matches(pattern: str, text: str, expected: list[str] | None) -> None:
    found = OPERATIONS["re_strs"].meaning((), t.List(t.STRING))(compile_pattern(pattern), text)
    assert (found or None) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", "a**", "(ab)*+c", "a++?", "(a*+)a", r"a*+\b", "a{2}{3}", "(", ")", "a)",
        "[", "[a", "[b-a]", "*", "|*", "a{1001}", "(a{100}){11}", "a{3,2}", r"\p{Nope}", r"\p{L",
        r"[\C]", r"\Z", r"\8", "(?P<n>a)(?P<n>b)", "(?P<>a)", "(?P=n)", "(?#c)", "(?>a)", "(?x)a", "[[:foo:]]",
        r"[\b]", r"[a-\d]", r"\x{110000}", r"\x4", "\\", "(?", "(?i", "(?)",
        "(" * 300 + ")" * 300,
    ],
)  # fmt: skip
def test_refusals(pattern: str) -> None:
    with pytest.raises(BadPattern) as bad:
        compile_pattern(pattern)
    assert str(bad.value)


@pytest.mark.slow
def test_categories_of_unicode() -> None:
    for pattern, yes, no in (
        (r"^\p{Lu}\pL+$", "Éclair", "éclair"), (r"^[\p{Nd}x]+$", "7٣x", "7½"), (r"^\P{L}$", "1", "a"), (r"^\p{^L}$", "1", "a"),
        (r"^\p{Any}$", "\n", ""),
    ):  # fmt: skip
        matches = OPERATIONS["re_test"].meaning((), t.BOOL)
        assert (matches(compile_pattern(pattern), yes), matches(compile_pattern(pattern), no)) == (
            True,
            False,
        )


def test_scripts_of_unicode() -> None:
    """The names of letters begin with that of their script."""
    matches = OPERATIONS["re_test"].meaning((), t.BOOL)
    named = {code: name(chr(code), "") for code in range(0x3000)}
    for script in ("Greek", "Cyrillic", "Hebrew", "Thai", "Armenian"):
        pattern = compile_pattern(f"^\\p{{{script}}}$")
        letters = [
            code
            for code, called in named.items()
            if re.match(f"{script.upper()} (SMALL LETTER|LETTER|CHARACTER) ", called)
        ]
        assert len(letters) > 20
        assert all(matches(pattern, chr(code)) for code in letters)
    assert not matches(compile_pattern(r"\p{Greek}"), "abc 12")
    assert matches(compile_pattern(r"^[\p{Han}\p{Latin}]+\P{Latin}$"), "a漢字x1")
    assert matches(compile_pattern(r"^\C$"), "\n")
    for wrong in (r"\p{Klingon}", r"\p{greek}"):
        with pytest.raises(BadPattern):
            compile_pattern(wrong)


def test_possessive_quantifiers_give_nothing_back() -> None:
    texts = ["".join(letters) for n in range(6) for letters in product("abc", repeat=n)]
    posns = OPERATIONS["re_find"].meaning((), t.List(t.I64))
    for pattern in (
        "a*+b",
        "a*+ab",
        "a++a",
        "(a++)b",
        "a*+[abc]c",
        "(a*+)(b|c)",
        "x|a?+b",
        "(?:a*+b)+c",
        "[ab]++c",
        "a*+b?c",
        "c(a++)",
    ):
        ours, theirs = compile_pattern(pattern), re.compile(pattern)
        for text in texts:
            found = theirs.search(text)
            assert list(posns(ours, text))[:2] == ([] if found is None else list(found.span())), (
                pattern,
                text,
            )


def test_the_tree() -> None:
    assert parse("a(b|c)+?") == Sequence(
        (Chars(((97, 97),)), Repeat(Group(1, parse("b|c")), 1, None, greedy=False)),
    )
    assert parse("(?i)k") == Chars(((75, 75), (107, 107)))


def test_equal_patterns_are_equal_values() -> None:
    assert compile_pattern("a") == compile_pattern("a")
    assert compile_pattern("a") != compile_pattern("b")
    assert hash(compile_pattern("a")) == hash(compile_pattern("a"))
