"""Declarations as STREAM and dialects of SQL write them.

`register stream s (...)`, `create view v as ...`, `insert into t ...`, and a query alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from river.classes import evolve, field, frozen
from river.il.trees import fresh, rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from river.source import Span

STAMP = "ts"
"""The time stamp of a stream that does not name one, as in STREAM, where it is no column."""

ALONE = "query"
"""What a query without a name is called."""


TOLD = "told"
"""What `create stream s as select ...` makes, until it is known what the names in it are."""


@frozen
class Watermark:
    """`watermark for column as ...`: the column is the time stamp. How late rows come is said by the command line."""

    column: str


@frozen
class Computed(s.Node):
    """`name as value` among the columns of a table."""

    name: str
    value: s.Expr


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
    found = next(word for word in words.lower().split() if word in _KINDS)
    return _KINDS[found]


_KINDS: Final = {
    **{word: word for word in ("stream", "relation", "table", "view")}, "source": "stream", "schema": "stream",
}  # fmt: skip
"""What is declared, by the words of the engines."""


def declared(
    name: str, kind: str, columns: Sequence[s.FieldType | Computed], stamps: Sequence[str], span: Span
) -> c.Decl:
    """The declaration of an input: its time stamp is a column that is marked, or called `ts`, else no column of queries.

    A table without a mark is there from the beginning.
    """
    type_ = s.RecordType(tuple(each for each in columns if isinstance(each, s.FieldType)), span=span)
    names = (*(each.name for each in columns), *stamps)
    table = kind in ("table", "view") and not stamps
    found = None if table else next((each for each in (*stamps, STAMP) if each in names), None)
    rows = "relation" if table or kind == "relation" else "stream"
    made = [each for each in columns if isinstance(each, Computed)]
    stamp = next((each.value for each in made if each.name == found), None)
    rest = tuple(q.Item(each.value, each.name, span=each.span) for each in made if each.name != found)
    if found is None and not table:
        column = s.FieldType(STAMP, s.TypeName("int"), span=type_.span)
        whole = evolve(type_, fields=(column, *type_.fields))
        return c.Decl(name, whole, rows, STAMP, None, hidden=True, computed=rest)
    return c.Decl(name, type_, rows, found, None, stamp=stamp, by_span=stamp and stamp.span, computed=rest)


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
    return tuple(_with_computed(_told([decls[place] for place in sorted(decls)]), taken))


def _told(decls: Sequence[c.Decl]) -> list[c.Decl]:
    """The declarations; `create stream s as select ...` of a stream joined with relations is of each row as they are then."""
    kinds = {decl.name: "stream" if decl.kind == TOLD else decl.kind for decl in decls}
    kinds |= {decl.name: "relation" for decl in decls if _grouped(decl)}

    def told(decl: c.Decl) -> c.Decl:
        match decl.query:
            case c.Query(q.Select(sources=(first, *others), group=()) as block, None) as query if (
                others
                and kinds.get(first.name) == "stream"
                and all(kinds.get(each.name) == "relation" for each in others)
                and all(type(each) is q.Source for each in (first, *others))
                and all(each.joining is None or each.joining.kind in ("inner", "left") for each in others)
            ):
                now = c.Windowed(first.name, first.alias, None, c.Now(span=first.span), span=first.span)
                query = evolve(query, select=evolve(block, sources=(now, *others)), operator="rstream")
            case query:
                pass
        return evolve(decl, kind="stream", query=query)

    return [told(decl) if decl.kind == TOLD else decl for decl in decls]


def _grouped(decl: c.Decl) -> bool:
    match decl:
        case c.Decl(kind="query", query=c.Query(q.Select(group=(_, *_)), None)):
            return True
        case _:
            return False


def _with_computed(decls: Sequence[c.Decl], taken: set[str]) -> Iterator[c.Decl]:
    """The declarations, with a view behind each input that has columns which are made of others: it is read instead."""
    views = {
        decl.name: fresh(f"{decl.name}_rows", taken) for decl in decls if decl.computed and decl.query is None
    }

    def read(node: s.Node, others: frozenset[str]) -> s.Node:
        """A part of the text; `others`: names that are queries there."""
        if isinstance(node, c.Query):
            others |= {name for name, _ in node.within}
        match rebuild(node, lambda part: read(part, others)):
            case q.Source(name, alias) as source if name in views and name not in others:
                return evolve(source, name=views[name], alias=alias or name)
            case found:
                return found

    for decl in decls:
        yield rebuild(decl, lambda part: read(part, frozenset())) if views else decl
        if decl.name in views:
            by = None if decl.hidden else decl.by
            star = q.Star(without=() if by is None else (by,), span=decl.span)
            block = q.Select(
                (star, *decl.computed), (q.Source(decl.name, None, span=decl.span),), span=decl.span
            )
            kind = "stream" if decl.kind == "stream" else "query"
            yield c.Decl(views[decl.name], None, kind, by, c.Query(block, span=decl.span), span=decl.span)


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
