"""Declarations as STREAM and dialects of SQL write them.

`register stream s (...)`, `create view v as ...`, `insert into t ...`, and a query alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from river.classes import evolve, field, frozen
from river.il.trees import fresh
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from river.source import Span

STAMP = "ts"
"""The time stamp of a stream that does not name one, as in STREAM, where it is no column."""

ALONE = "query"
"""What a query without a name is called."""


@frozen
class Watermark:
    """`watermark for column as ...`: the column is the time stamp. How late rows come is said by the command line."""

    column: str


@frozen
class Insertion(s.Node):
    """`insert into name query;`."""

    name: str
    query: c.Query
    name_span: Span | None = field(default=None, eq=False, repr=False)


@frozen
class ScriptFile(s.Node):
    """`source : path` behind the table whose data are there, or `dest : path` behind a query, in a script of STREAM."""

    word: str
    path: str


def with_files(found: Iterable[s.Node]) -> list[s.Node]:
    """What stands in a text, without files: inputs say where their data are. A `source` behind anything else stays."""
    kept: list[s.Node] = []
    for each in found:
        match each, kept[-1] if kept else None:
            case ScriptFile("dest"), _:  # where results go, who runs the program says
                pass
            case ScriptFile("source", path), c.Decl(query=None, file=None) as decl:
                kept[-1] = evolve(decl, file=path)
            case _:
                kept.append(each)
    return kept


def kind_of(words: str) -> str:
    """What `create or replace stream` and its like make: the last word that says it."""
    return next(word for word in words.lower().split() if word in ("stream", "relation", "table", "view"))


def declared(name: str, kind: str, type_: s.RecordType, stamps: Sequence[str]) -> c.Decl:
    """The declaration of an input: its time stamp is a column that is marked, or called `ts`, else no column of queries.

    A table without a mark is there from the beginning.
    """
    if kind in ("table", "view") and not stamps:
        return c.Decl(name, type_, "relation", None, None)
    names = [each.name for each in type_.fields if isinstance(each, s.FieldType)]
    found = next((each for each in (*stamps, STAMP) if each in (*names, *stamps)), None)
    rows = "relation" if kind == "relation" else "stream"
    if found is not None:
        return c.Decl(name, type_, rows, found, None)
    column = s.FieldType(STAMP, s.TypeName("int"), span=type_.span)
    whole = evolve(type_, fields=(column, *type_.fields))
    return c.Decl(name, whole, rows, STAMP, None, hidden=True)


def settled(found: Iterable[c.Decl | Insertion]) -> tuple[c.Decl, ...]:
    """The declarations of a text: queries without a name have one, and what is inserted is the query of its target."""
    given = list(found)
    taken = {each.name for each in given}
    into: dict[str, list[Insertion]] = {}
    decls: dict[int, c.Decl] = {}
    for place, each in enumerate(given):
        if isinstance(each, Insertion):
            into.setdefault(each.name, []).append(each)
        elif each.name:
            decls[place] = each
        else:
            name = fresh(ALONE, taken)
            taken.add(name)
            decls[place] = evolve(each, name=name)
    for name, parts in into.items():
        target = next((i for i, decl in decls.items() if decl.name == name and decl.query is None), None)
        query = _all_of(parts)
        if target is None:
            first = parts[0]
            decls[given.index(first)] = c.Decl(
                name, None, "query", None, query, name_span=first.name_span, span=first.span
            )
        else:
            decls[target] = filled(decls[target], query)
    return tuple(decls[place] for place in sorted(decls))


def filled(decl: c.Decl, query: c.Query) -> c.Decl:
    """A declaration whose rows are those of a query; a time stamp that is no column is not among them."""
    type_ = decl.type
    if type_ is not None and decl.hidden:
        type_ = evolve(type_, fields=type_.fields[1:])
    kind = "stream" if decl.kind == "stream" else "query"
    return evolve(decl, type=type_, kind=kind, by=None, hidden=False, query=query)


def _all_of(parts: Sequence[Insertion]) -> c.Query:
    """The rows of several queries, each as often as they are there."""
    first, *others = parts
    if not others:
        return first.query
    body: q.Select | c.Combined = _whole(first)
    for each in others:
        body = c.Combined("union", True, body, _whole(each), span=each.span)
    return c.Query(body, span=first.span)


def _whole(part: Insertion) -> q.Select:
    """All rows of a query."""
    source = c.Derived(part.name, part.name, None, part.query, None, span=part.span)
    return q.Select((q.Star(span=part.span),), (source,), span=part.span)
