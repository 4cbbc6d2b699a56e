"""What texts that are not understood have from other languages, such as C, and what Sawzall has instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from frontends.sawzall.types import BASIC
from river.classes import evolve
from river.diagnostics import Diagnostic, Rejected

if TYPE_CHECKING:
    from river.source import Span

_BASIC: Final = "|".join(BASIC)
_BEGIN: Final = r"(?:^|[;{(])\s*(?:const\s+)?"
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
        (rf"\(({_BASIC})\)\s*$", r"[\w(\".]", r"a conversion is written `\1(...)`"),
        (r"(\w+)\s*-$", r">\s*(\w+)", r"a field is written `\1.\2`"),
        (r":\s*(\w+)$", r"\[", r"an array has the type `array of \1`"),
        (r"\bemit\s+\w+(?:\[.*\])?\s*$", r"<<|=|,|\(", "a value is sent by `<-`: `emit table <- value;`"),
        (r"(?:^|[;{}])\s*(\w+)\((?:\s*\w+)?$", r":", r"a function is declared `\1: function(a: int): int { ... };`"),
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
    return _ended(found, span)


def _filled(hint: str, groups: tuple[str, ...]) -> str:
    return re.sub(r"\\(\d)", lambda number: groups[int(number[1]) - 1], hint)


def _ended(found: Diagnostic, span: Span) -> Diagnostic:
    """Where a `;` would do, and a line has ended: it lacks there."""
    lines = re.sub(r"#[^\n]*", "", span.source.text[: span.start])
    if found.help is None or "`;`" not in found.help or "\n" not in lines[len(lines.rstrip()) :]:
        return found
    kept = lines.rstrip()
    if not kept or kept[-1] in ";{":
        return found
    line = kept.count("\n") + 1
    return evolve(found, help=f"put `;` at the end of line {line}: statements and declarations end with it")
