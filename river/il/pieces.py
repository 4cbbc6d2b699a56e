"""Where the declarations of a template file stand, so that those that nobody asks for need not be parsed."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.diagnostics import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from river.source import Source


@frozen
class DeclarationText:
    """A declaration, up to the next one: `type`, `fn`, or the `operator` of a template, its name and its characters."""

    kind: str
    name: str
    begin: int
    end: int


_SIGNS: Final = re.compile(
    r'(?P<skip>b?"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|`[^`\n]*`)'
    r"|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<stop>;)|(?P<begin>\b(?:template|operator|fn|type)\b)",
    re.DOTALL,
)
_SPACE: Final = r"(?:\s|//[^\n]*|/\*.*?\*/)"
_NAMED: Final = re.compile(rf"(?:template\b.*?\b(operator)|(fn|type)){_SPACE}+(`[^`\n]+`|\w+)", re.DOTALL)
_BETWEEN: Final = re.compile(rf"{_SPACE}*", re.DOTALL)


def pieces(source: Source) -> tuple[DeclarationText, ...]:
    """The declarations of a template file, by brackets and first words alone.

    Raises: Rejected, as `parse_templates` does, where something else is among them.
    """
    from river.il.parse import check_version, parse_templates  # the grammar is built only where there is text

    text, start = source.text, check_version(source)
    begins = [*_begins(text, start), len(text)]
    found: list[DeclarationText] = []
    for begin, end in pairwise(begins):
        if named := _NAMED.match(text, begin, end):
            found.append(DeclarationText(named[1] or named[2], named[3].strip("`"), begin, end))
    behind = _BETWEEN.match(text, start)
    if len(found) != len(begins) - 1 or behind is None or behind.end() != begins[0]:
        parse_templates(source)
        raise InternalError(f"the declarations of the file {source.name} cannot be told apart")
    return tuple(found)


def _begins(text: str, at: int) -> Iterator[int]:
    """Where declarations begin: at a first word behind the end of another one, outside of brackets; `at`: behind the version."""
    depth, clear = 0, at
    for sign in _SIGNS.finditer(text, at):
        match sign.lastgroup:
            case "open":
                depth += 1
            case "close" | "stop":
                depth -= sign.lastgroup == "close"
                if depth == 0:
                    clear = sign.end()
            case "begin" if depth == 0:
                gap = _BETWEEN.match(text, clear, sign.start())
                if gap is not None and gap.end() == sign.start():
                    yield sign.start()
            case _:
                pass
