"""Queries inside of queries become declarations of their own: each query is then one block over names.

What stands after `with`, a query after `from`, and each side of `union`, `except` and `intersect` get names that the text
does not use. Queries inside of expressions stay where they are (`nest` takes them out, once columns are known), but for what is
inside of them. A name after `with` is known in its query, and in those after it, and hides declarations of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from frontends.sql.select_list import title
from river.classes import define, evolve, field
from river.il.trees import fresh, rebuild, walk
from river.lang import syntax as s

N = TypeVar("N", bound=s.Node)
B = TypeVar("B", bound="q.Select | c.Combined | q.Source")


def flat(program: c.Program) -> c.Program:
    """The program with every inner query declared, before the declaration that has it.

    Rows that are written out stand where their name was, which is declared no more.
    """
    work = _Flatten({decl.name for decl in program.decls})
    found: list[c.Decl] = []
    read = {node.name for decl in program.decls for node in walk(decl) if isinstance(node, q.Source)}
    written = {
        decl.name: rows
        for decl in program.decls
        if decl.name in read and not decl.output and (rows := _written(decl)) is not None
    }
    for decl in program.decls:
        if decl.name in written:
            continue
        if decl.query is not None:
            query = decl.query
            if decl.type is not None and isinstance(query.select, c.Combined):
                query = evolve(query, select=_named(query.select))
            decl = evolve(decl, query=work.query(query, decl.name, written))
        found += [*work.made, decl]
        work.made.clear()
    return evolve(program, decls=tuple(found))


Known = Mapping[str, "str | q.Unnest"]
"""What the names of `with` stand for: declarations, or rows that are written out."""


def constant(query: c.Query | None) -> q.Unnest | None:
    """The rows that a query is, if they are written out and nothing is asked of them."""
    if query is None or query.operator is not None or not isinstance(query.select, q.Select):
        return None
    match query.select.sources:
        case (q.Unnest(items=None) as rows,) if query.select == q.Select((q.Star(),), (rows,)):
            return evolve(rows, columns=query.columns or rows.columns)
        case _:
            return None


def _written(decl: c.Decl) -> q.Unnest | None:
    """The rows that a declared relation is, if they are written out; their values are of the declared types."""
    rows = constant(decl.query) if decl.kind == "relation" else None
    if rows is None or decl.type is None:
        return rows
    fields = [each for each in decl.type.fields if isinstance(each, s.FieldType)]
    if any(len(row) != len(fields) for row in rows.rows):
        return None
    stated = tuple(
        tuple(
            value
            if isinstance(value, s.NoneValue)
            else cast("s.Expr", q.Stated(value, each.type, f"`{each.name}`", span=value.span))
            for value, each in zip(row, fields, strict=True)
        )
        for row in rows.rows
    )
    return evolve(rows, rows=stated, columns=tuple(each.name for each in fields))


def _named(body: B) -> B:
    """A side of a combination whose columns are known by position: those without a name, or with that of another, get one."""
    match body:
        case c.Combined(left=left):
            return evolve(body, left=_named(left))
        case q.Select(items=items):
            named = [item.name or title(item.value) for item in items if isinstance(item, q.Item)]
            taken, seen = {name for name in named if name is not None}, set[str]()
            found: list[q.Item | q.Star] = []
            for item in items:
                name = (item.name or title(item.value)) if isinstance(item, q.Item) else None
                if isinstance(item, q.Item) and (name is None or name in seen):
                    name = fresh("column", taken)
                    taken.add(name)
                    item = evolve(item, name=name)
                if name is not None:
                    seen.add(name)
                found.append(item)
            return evolve(body, items=tuple(found))
        case _:
            return body


@define
class _Flatten:
    """The names that are taken, and the declarations made for the one that is being read."""

    taken: set[str]
    made: list[c.Decl] = field(factory=list[c.Decl])

    def query(self, query: c.Query, title: str, known: Known) -> c.Query:
        """A query without inner ones; `known`: the names of `with` that it sees."""
        for name, inner in query.within:
            known = {**known, name: constant(inner) or self.declared(inner, f"{title}_{name}", known)}
        return evolve(query, select=self.body(query.select, title, known), within=())

    def body(self, body: q.Select | c.Combined, title: str, known: Known) -> q.Select | c.Combined:
        """A block, or a combination of declared ones."""
        if isinstance(body, c.Combined):
            left, right = (self.side(side, title, known) for side in (body.left, _named(body.right)))
            return evolve(body, left=left, right=right)
        sources = tuple(self.source(source, title, known) for source in body.sources)
        return self.nested(evolve(body, sources=sources), title, known)

    def nested(self, node: N, title: str, known: Known) -> N:
        """A part of a block; in queries inside of its expressions, what they have inside of them is declared, too."""

        def rewrite(inner: s.Node) -> s.Node:
            if isinstance(inner, c.Query):
                return self.query(inner, f"{title}_nested", known)
            return rebuild(inner, rewrite)

        return rebuild(node, rewrite)

    def side(self, side: q.Select | c.Combined | q.Source, title: str, known: Known) -> q.Source:
        """One side of a combination."""
        if isinstance(side, q.Source):
            return side
        query = c.Query(side, span=side.span)
        return q.Source(self.declared(query, f"{title}_part", known), span=side.span)

    def source(self, source: q.Source, title: str, known: Known) -> q.Source:
        """A source that is a name."""
        if isinstance(source, c.Derived):
            assert source.query is not None  # noqa: S101 - so it was parsed
            rows = None if source.window is not None else constant(source.query)
            if rows is not None:
                return evolve(rows, alias=source.label, joining=source.joining, span=source.span)
            name = self.declared(source.query, f"{title}_{source.label}", known)
            if source.window is None:
                return q.Source(name, source.label, source.joining, span=source.span)
            return c.Windowed(name, source.label, source.joining, source.window, span=source.span)
        match known.get(source.name):
            case None:
                return source
            case str(name):
                return evolve(source, name=name, alias=source.label)
            case rows:
                return evolve(rows, alias=source.label, joining=source.joining, span=source.span)

    def declared(self, query: c.Query, title: str, known: Known) -> str:
        """The name of a query that gets a declaration."""
        name = fresh(title, self.taken)
        self.taken.add(name)
        flattened = self.query(query, name, known)
        kind = "relation" if query.operator is None else "stream"
        self.made.append(
            c.Decl(name, None, kind, None, flattened, name_span=query.span, inner=True, span=query.span)
        )
        return name
