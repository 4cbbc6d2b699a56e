"""Names in the letters in which they are declared: as SQL does, `SELECT Price FROM Trades` may mean `price` of `trades`.

A name that is declared as it stands means that. Another one means what differs from it in case alone, if that is one name; where
several are declared, or a source is not, it stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from river.classes import evolve
from river.il.trees import rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable


GIVEN = frozenset(
    {"ts", "tau", "rowtime", "window_start", "window_end", "window_time", "windowstart", "windowend"}
)
"""Columns that rows have without a declaration."""


def as_declared(program: c.Program) -> c.Program:
    """The program with the names in its queries as they are declared."""
    nodes = [node for decl in program.decls if decl.query is not None for node in walk(decl.query)]
    sources = {decl.name for decl in program.decls}
    for node in nodes:
        if isinstance(node, c.Query):
            sources |= {name for name, _ in node.within}
    read = [node.name for node in nodes if isinstance(node, q.Source) and _is_named(node)]
    renamed = _meant(read, sources)
    if not {renamed.get(name, name) for name in read} <= sources:
        return program  # what columns a source has that is not declared follows from how they are written
    used = (name for node in nodes for name in _used(node))
    renamed |= _meant(used, sources | GIVEN | {name for decl in program.decls for name in _declared(decl)})
    if not renamed:
        return program

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Name(name):
                return evolve(node, name=renamed.get(name, name))
            case s.Member(_, name):
                return evolve(rebuild(node, rewrite), name=renamed.get(name, name))
            case q.Source(name) if _is_named(node):
                return evolve(rebuild(node, rewrite), name=renamed.get(name, name))
            case q.Star(str(source)):
                return evolve(node, source=renamed.get(source, source))
            case q.Joining(using=names):
                return evolve(rebuild(node, rewrite), using=tuple(renamed.get(name, name) for name in names))
            case _:
                return rebuild(node, rewrite)

    decls = tuple(
        decl if decl.query is None else evolve(decl, query=rebuild(decl.query, rewrite))
        for decl in program.decls
    )
    return evolve(program, decls=decls)


def _is_named(source: q.Source) -> bool:
    """Whether a source is something that has been declared, and no query or list."""
    return not isinstance(source, c.Derived | q.Unnest)


def _used(node: s.Node) -> tuple[str, ...]:
    """The names of columns and sources that this one node uses."""
    match node:
        case s.Name(name) | s.Member(_, name) | q.Star(str(name)):
            return (name,)
        case q.Joining(using=names):
            return names
        case _:
            return ()


def _declared(decl: c.Decl) -> Iterable[str]:
    """The names that a declaration gives to columns and sources."""
    if decl.by is not None:
        yield decl.by
    for node in (
        *(() if decl.type is None else walk(decl.type)),
        *(() if decl.query is None else walk(decl.query)),
    ):
        known: Any = node
        match node:
            case s.FieldType(name):
                yield name
            case q.Item(name=str(name)):
                yield name
            case q.Item(s.Call(function, args)):  # its column is called so
                yield from (function, *(f"{function}_{arg.name}" for arg in args if isinstance(arg, s.Name)))
            case c.Query(columns=names):
                yield from names
            case q.Source():
                yield from (known.alias or known.name, *getattr(known, "columns", ()))
            case _:
                pass


def _meant(used: Iterable[str], declared: Iterable[str]) -> dict[str, str]:
    """What names mean that are not declared as they stand."""
    known = frozenset(declared)
    strange = {name for name in used if name not in known}
    if not strange:
        return {}
    spelled: dict[str, list[str]] = {}
    for name in known:
        spelled.setdefault(name.lower(), []).append(name)
    return {name: found[0] for name in strange if len(found := spelled.get(name.lower(), [])) == 1}
