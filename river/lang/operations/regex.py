"""Regular expressions (RE2's syntax: river/lang/patterns.py). Positions count code points."""

from __future__ import annotations

import re

from river.lang import types as t
from river.lang.operations.table import Operation, fixed, plain
from river.lang.patterns import BadPattern, Regex, compile_pattern
from river.lang.values import TrapSignal


def _regex(pattern: str) -> Regex:
    try:
        return compile_pattern(pattern)
    except BadPattern as bad:
        raise TrapSignal("bad-regex", pattern, str(bad)) from bad


def _test(regex: Regex, text: str) -> bool:
    return regex.compiled.search(text) is not None


def _strings(regex: Regex, text: str) -> list[str]:
    found = regex.compiled.search(text)
    return [] if found is None else [found[0], *found.groups("")]


def _positions(regex: Regex, text: str) -> list[int]:
    found = regex.compiled.search(text)
    return [] if found is None else [place for i in range(regex.groups + 1) for place in found.span(i)]


_REFERENCE = re.compile(r"\\(.?)", re.DOTALL)


def _replace(regex: Regex, text: str, replacement: str) -> str:
    r"""All matches replaced; `\0` to `\9` stand for the match and its groups, `\\` for a backslash."""

    def expand(found: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda r: "\\" if r[1] == "\\" else found[int(r[1])] or "", replacement)

    for reference in _REFERENCE.finditer(replacement):
        digit = reference[1]
        if digit != "\\" and not (digit.isascii() and digit.isdigit() and int(digit) <= regex.groups):
            raise TrapSignal("bad-regex", replacement, f"bad reference `{reference[0]}`")
    return regex.compiled.sub(expand, text)


OPERATIONS: tuple[Operation, ...] = (
    Operation("regex", fixed((t.STRING,), t.REGEX), plain(_regex), "the pattern in a text, in RE2's syntax",
        ("bad-regex",), "host"),
    Operation("re_test", fixed((t.REGEX, t.STRING), t.BOOL), plain(_test),
        "whether the pattern occurs in the text"),
    Operation(
        "re_strs", fixed((t.REGEX, t.STRING), t.List(t.STRING)), plain(_strings),
        "the first match and its groups (empty where a group took no part); empty without a match",
    ),
    Operation(
        "re_find", fixed((t.REGEX, t.STRING), t.List(t.I64)), plain(_positions),
        "start and end of the first match and of its groups (-1 where a group took no part); empty without a match",
    ),
    Operation(
        "re_replace", fixed((t.REGEX, t.STRING, t.STRING), t.STRING), plain(_replace),
        r"all matches replaced; `\0` to `\9` in the replacement are the match and its groups",
        ("bad-regex",), "host",
    ),
)  # fmt: skip
