"""Functions of the operator language that lowered programs call: `functions.river`, and what few programs need beside it."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from river.il.trees import walk
from river.lang import syntax as s
from river.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "sawzall_"
"""How their names begin; no function of a program is called so."""


FILES = ("functions.river", "messages.river", "compression.river")
"""Where they are written; a file is read when a program calls one of its functions."""


@lru_cache(maxsize=1)
def _places() -> Mapping[str, str]:
    """The file that each function is in."""
    return {name: file for file in FILES for name in re.findall(r"^fn (\w+)", _text(file), re.MULTILINE)}


def _text(file: str) -> str:
    return (resources.files("frontends.sawzall") / file).read_text(encoding="utf-8")


@lru_cache(maxsize=len(FILES))
def _functions(file: str) -> Mapping[str, s.Fn]:
    from river.il.parse import parse

    program = parse(Source(str(resources.files("frontends.sawzall") / file), _text(file)))
    return {decl.name: decl for decl in program.decls if isinstance(decl, s.Fn)}


def needed(node: s.Node) -> tuple[s.Fn, ...]:
    """The functions that a tree calls, and those that they call, in the order of the files."""
    names: set[str] = set()
    nodes: list[s.Node] = [node]
    while nodes:
        for part in walk(nodes.pop()):
            if isinstance(part, s.Call) and part.function.startswith(PREFIX) and part.function not in names:
                names.add(part.function)
                nodes.append(_functions(_places()[part.function])[part.function])
    return tuple(_functions(file)[name] for name, file in _places().items() if name in names) if names else ()
