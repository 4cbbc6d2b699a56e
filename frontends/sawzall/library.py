"""Functions of the operator language that lowered programs call: `functions.river`."""

from __future__ import annotations

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


@lru_cache(maxsize=1)
def _functions() -> Mapping[str, s.Fn]:
    from river.il.parse import parse

    file = resources.files("frontends.sawzall") / "functions.river"
    program = parse(Source(str(file), file.read_text(encoding="utf-8")))
    return {decl.name: decl for decl in program.decls if isinstance(decl, s.Fn)}


def needed(node: s.Node) -> tuple[s.Fn, ...]:
    """The functions that a tree calls, and those that they call, in the order of the file."""
    names: set[str] = set()
    nodes: list[s.Node] = [node]
    while nodes:
        for part in walk(nodes.pop()):
            if isinstance(part, s.Call) and part.function.startswith(PREFIX) and part.function not in names:
                names.add(part.function)
                nodes.append(_functions()[part.function])
    return tuple(fn for name, fn in _functions().items() if name in names) if names else ()
