"""What texts that are refused have from other languages, such as C, and what Sawzall has instead."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from frontends.sawzall.tables import KINDS
from frontends.sawzall.types import BASIC
from river.classes import evolve
from river.diagnostics import Diagnostic, Rejected
from river.lang import types as t
from river.lang.grammar import unended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.source import Span

_BASIC: Final = "|".join(BASIC)
_BEGIN: Final = r"(?:^|[;{(])\s*(?:const\s+)?"
_FUNCTION: Final = r"a function is declared `\1: function(a: int): int { ... };`"
_BRANCH: Final = "a branch has a statement: `;` does nothing"
_ELSE: Final = "`else` stands behind the statement of its `if`, without `;` between"
_CHOICE: Final = "a choice is a statement, `if (c) ...; else ...;`, also as a value: `?{ if (c) result a; else result b; }`"

_HABITS: Final = tuple(
    (re.compile(before), re.compile(after), hint)
    for before, after, hint in (
        (r"", r"/[/*]", "a comment begins with `#`, and ends with the line"),
        (r"([\w.\[\]$]+)\s*(\*|/|%|\+|-|<<|>>|&|\||\^)$", r"=", r"write `\1 = \1 \2 ...;`"),
        (r"", r"\?", _CHOICE),
        (r"([\w.\[\]$]+)\s*$", r"(\+\+|--)", r"it has no value: write `\1\2;` as a statement of its own"),
        (r"\b(if|while|for|switch|when)\s*$", r"[^(]", r"write `\1 (...)`, with parentheses"),
        (r"\b(?:if|while)\s*\([^;{]*$", r"=[^=]", "`=` is a statement: to compare is written `==`"),
        (rf"{_BEGIN}({_BASIC})\s+$", r"(\w+)", r"the type stands behind the name: `\2: \1 = ...;`"),
        (
            rf"{_BEGIN}(?:unsigned\s+)?(?:char|double|long|short|unsigned)\s+$",
            r"(?:(?:char|double|long|short|int)\s+)*(\w+)",
            r"the type stands behind the name, as in `\1: int = ...;`, and is `int`, `uint`, `float` or another one of Sawzall",
        ),
        (rf"{_BEGIN}(?:const|var|let|auto)\s+$", r"(\w+)", r"write `\1 := ...;`, or `static \1 := ...;` if it never changes"),
        (
            r"\bfor\s*\(\s*\w+\s*$", r"(?:in|of|:)\s+(\w+)\s*\)",
            r"the items of `\1` are met by `for (i: int = 0; i < len(\1); i++)`, its keys by `keys(\1)`, both by `when`",
        ),
        (rf"{_BEGIN}(\w+)\s+$", rf"({_BASIC}|array|map)\b", r"the type stands behind a colon: `\1: \2 ...;`"),
        (r"(\w+)\s*:\s*([\w\[\]]+(?:\s+[\w\[\]]+)*)\s*$", r":=", r"write `\1: \2 = ...;`, or `\1 := ...;`"),
        (rf"\b(\w+)\s*:\s*({'|'.join(KINDS)})\s*$", r"of\b|\[|\(", r"a table is declared `\1: table \2 ...;`"),
        (r":\s*(?:record|struct|tuple|class)\s*$", r"\{", "a record has no word in front: `{ a: int, b: string }`"),
        (r"\bthen\s+$", r"\w|\{", "behind `if (...)` stands the statement, without a word between"),
        (r"\b(?:elif|elseif|elsif)\s*\(.*\)\s*$", r"\w|\{", "write `else if (...)`"),
        (r"\)\s*$", r"-", "the type of what a function gives stands behind `:`, as in `function(x: int): int`"),
        (r"\bmap\s*$", r"of\b", "a map has the type `map [string] of int`"),
        (r"(?:^|[;{}])\s*try\s*$", r"\{", "what has no value is asked for by `def(x)`"),
        (r"\([^()]*\s*$", r"in\s+(\w+)", r"whether a map has a key is `haskey(\1, k)`"),
        (r"", r"`[^`\n]*(?:\n|$)", "a text in backquotes ends with one, on the line it begins"),
        (r"", r"[^\W\x00-\x7f]", "names are made of the letters a to z, digits and `_`"),
        (r"\bemit\s+\w+(?:\[.*\])?\s*$", r"<\s+-", "`<-` is one sign, without a blank"),
        (rf"\(({_BASIC})\)\s*$", r"[\w(\".]", r"a conversion is written `\1(...)`"),
        (r"(\w+)\s*-$", r">\s*(\w+)", r"a field is written `\1.\2`"),
        (r"\barray\s*$", r"\[", "an array has the type `array of int`"),
        (r":\s*(\w+)$", r"\[", r"an array has the type `array of \1`"),
        (r"\bmap\s*\[\s*(\w+)\s*$", r",\s*(\w+)", r"a map has the type `map[\1] of \2`"),
        (r"\b([\w.]+)\[([^\[\]:]*):\s*$", r"\]", r"a part up to the end is `\1[\2:$]`"),
        (r"\b([\w.]+)\[\s*$", r":", r"a part from the beginning is `\1[0:...]`"),
        (r"[=,(]\s*$", r"\[", "an array is written `{1, 2}`, an empty one `{}`"),
        (r"\b(?:default|case\b.*)\s*:\s*$", r"\}|case\b|default\b", _BRANCH),
        (r"\bcase\b[^:]*:\s*default\s*:\s*$", r"", _BRANCH),
        (r"[^;{}\s]\s*$", r"else\b", "the statement in front of `else` ends with `;`"),
        (r"", r"else\b", _ELSE),
        (r"\b(?:table|emit)\b.*\[[^\]]*$", r",", "each index has brackets of its own, as in `[k: string][n: int]`, `t[k][n]`"),
        (r"(?:^|[;{})])\s*(?:\w+)\s+$", r"(\w+)\s*(?:\[.*\]\s*)?<-", r"a value is sent by `emit \1 <- value;`"),
        (r"(?:^|[;{}])\s*(?:function|func|def|fn)\s+$", r"(\w+)\s*\(", _FUNCTION),
        (r"\belse\s*$", r"", _ELSE),
        (r"\bemit\s+(\w+)\s*$", r"\(", r"the indices of a table stand in brackets: `emit \1[...] <- value;`"),
        (r":\s*(?:map|array)\s*$", r"<", "types are written `map [string] of int` and `array of int`"),
        (r"\bemit\s+\w+(?:\[.*\])?\s*$", r"<<|=|,|\(", "a value is sent by `<-`: `emit table <- value;`"),
        (r"(?:^|[;{}])\s*(\w+)\((?:\s*\w+)?$", r":", _FUNCTION),
    )
)  # fmt: skip
"""What stands before a place, and there, and what is written instead; the groups of the second are counted behind the first's."""


def advised(found: Rejected) -> Rejected:
    """The refusal of a text, with what to write instead where something is from another language."""
    return Rejected(map(_advised, found.diagnostics))


def _advised(found: Diagnostic) -> Diagnostic:
    span = found.span
    if found.code not in ("syntax-unexpected", "syntax-end", "syntax-comment") or span is None:
        return found
    text = span.source.text
    before, after = text[text.rfind("\n", 0, span.start) + 1 : span.start], text[span.start :]
    for behind, at, hint in _HABITS:
        first, second = behind.search(before), at.match(after)
        if first is not None and second is not None:
            return evolve(found, help=_filled(hint, (*first.groups(), *second.groups())))
    return _open(found, span) or unended(found, _COMMENT, ";{", "statements and declarations")


_COMMENT: Final = re.compile(r"#[^\n]*")


_QUOTED: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|`[^`\n]*`|'(?:[^'\\\n]|\\.)*'|#[^\n]*")


def _open(found: Diagnostic, span: Span) -> Diagnostic | None:
    """Where the text ends inside of a block, the brace that is not closed; or that one is closed that was not opened."""
    text = _QUOTED.sub(lambda part: " " * len(part[0]), span.source.text[: span.start])
    opened: list[int] = []
    for sign in re.finditer(r"[{}]", text):
        if sign[0] == "{":
            opened.append(sign.start())
        elif opened:
            opened.pop()
    if found.code != "syntax-end":
        closes = span.source.text.startswith("}", span.start) and not opened
        return evolve(found, help="there is no `{` in front of it that is open") if closes else None
    if not opened:
        return None
    line = text.count("\n", 0, opened[-1]) + 1
    return evolve(found, help=f"the `{{` of line {line} has no `}}`")


def _filled(hint: str, groups: tuple[str, ...]) -> str:
    return re.sub(r"\\(\d)", lambda number: groups[int(number[1]) - 1], hint)


_PRINTS = "`emit stdout <- ...;` prints a line, `format(...)` makes one"
_PART = "a part of a text, bytes or an array is `s[from:to]`"
_LONGER = "`a = a + { x };` puts an item behind an array"
_LETTERS = "a character of a text is an `int`: `s[i]`"
ELSEWHERE: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("print", "println", "printf", "puts", "echo", "sprintf"), _PRINTS),
    **dict.fromkeys(("substr", "substring", "slice", "mid"), _PART),
    **dict.fromkeys(("length", "lenght", "size", "strlen", "count"), "how many there are is `len(x)`"),
    **dict.fromkeys(("append", "push", "push_back", "add"), _LONGER),
    **dict.fromkeys(("charat", "ord", "chr"), _LETTERS),
    **dict.fromkeys(("contains", "indexof"), "where a text is in another one is `strfind(part, text)`, -1 if nowhere"),
    **dict.fromkeys(("replace", "replaceall"), "write `strreplace(text, part, other, true)`"),
    **dict.fromkeys(("tolower", "lower"), "write `lowercase(s)`"),
    **dict.fromkeys(("toupper", "upper"), "write `uppercase(s)`"),
    **dict.fromkeys(("has", "exists", "containskey"), "whether a map has a key is `haskey(m, k)`"),
    **dict.fromkeys(("log", "log2"), "the natural logarithm is `ln(x)`, that to base 10 `log10(x)`"),
    **dict.fromkeys(("hash", "fingerprint64"), "write `fingerprintof(x)`"),
    **dict.fromkeys(("isdefined", "defined", "isnull"), "whether something has a value is `def(x)`"),
    "join": "texts are put together by `+`",
})  # fmt: skip
"""What other languages call what Sawzall does in another way; names in lower case."""


def meant(name: str, type_: t.Type) -> str | None:
    """What stands for a field or method that values without fields have in other languages."""
    if not isinstance(type_, t.List | t.Map) and type_ not in (t.STRING, t.BYTES):
        return None
    message = "bytes that are a message are read by its type: `T(b)`" if type_ == t.BYTES else None
    return ELSEWHERE.get(name.lower(), message)
