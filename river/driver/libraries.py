"""The templates that a program refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river import plugins

if TYPE_CHECKING:
    from river.il.program import Program
    from river.il.templates import Library


def library(program: Program, *, written: bool = True) -> Library:
    """The templates that `program` refers to: River's own, and those of the languages whose namespaces it names.

    `written`: it may call functions of a language whose templates it has in full, as the pass `expand` leaves it; so may one that
    has no instances.
    """
    from river.il.program import Instance
    from river.il.templates import Library
    from river.il.trees import walk
    from river.lang import syntax as s

    wanted: set[str] = set()
    for decl in program.decls:
        if isinstance(decl, Instance):
            wanted.add(decl.template.rpartition(".")[0])
    whole = written or not wanted
    for node in (node for decl in program.decls if whole for node in walk(decl)):
        match node:
            case s.Call(name, _) | s.TypeName(name, _) if "." in name:
                wanted.add(name.rpartition(".")[0])
            case _:
                pass
    languages = sorted(wanted & set(plugins.frontends()))
    return Library.on_demand({name: plugins.frontend(name).templates for name in languages})
