"""Functions of the operator language that lowered programs call: `functions.river`, and what few programs need beside it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from river.il.trees import walk
from river.lang import syntax as s
from river.source import packaged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.source import Source

PREFIX = "sawzall_"
"""How their names begin; no function of a program is called so."""


FILES = ("functions.river", "messages.river", "compression.river")
"""Where they are written, in the order in which programs have them."""


@cache
def _file(name: str) -> Source:
    return packaged("frontends.sawzall", name)


@cache
def _places() -> Mapping[str, tuple[str, int, int]]:
    """The file that each function is in, and where it begins and ends there."""
    places: dict[str, tuple[str, int, int]] = {}
    for file in FILES:
        text = _file(file).text
        found = list(re.finditer(r"^fn (\w+)", text, re.MULTILINE))
        ends = [*(each.start() for each in found[1:]), len(text)]
        places |= {each[1]: (file, each.start(), end) for each, end in zip(found, ends, strict=True)}
    return places


@cache
def _function(name: str) -> s.Fn:
    """A function, which is all that is read of its file: to read all of them would take longer than most programs do."""
    from river.il.packing import kept_part

    file, begin, end = _places()[name]

    def parsed() -> s.Fn:
        from river.il.parse import parse_part  # the grammar is built only where there is text

        (decl,) = parse_part(_file(file), begin, end)
        assert isinstance(decl, s.Fn)  # noqa: S101 - it begins as one
        return decl

    return kept_part(_file(file), begin, end, (), parsed)


def needed(node: s.Node) -> tuple[s.Fn, ...]:
    """The functions that a tree calls, and those that they call, in the order of the files."""
    names: set[str] = set()
    nodes: list[s.Node] = [node]
    while nodes:
        for part in walk(nodes.pop()):
            if isinstance(part, s.Call) and part.function not in names and part.function in _places():
                names.add(part.function)
                nodes.append(_function(part.function))
    return tuple(_function(name) for name in _places() if name in names) if names else ()
