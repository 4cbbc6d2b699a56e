"""Queries inside of queries become declarations of their own: each query is then one block over names.

What stands after `with`, a query after `from`, and each side of `union`, `except` and `intersect` get names that the text
does not use. Queries inside of expressions stay where they are (`nest` takes them out, once columns are known), but for what is
inside of them. A name after `with` is known in its query, and in those after it, and hides declarations of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from frontends.sql.check import title
from river.classes import define, evolve, field
from river.il.trees import fresh, rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

N = TypeVar("N", bound=s.Node)
B = TypeVar("B", bound="q.Select | c.Combined | q.Source")


def flat(program: c.Program) -> c.Program:
    """The program with every inner query declared, before the declaration that has it."""
    work = _Flatten({decl.name for decl in program.decls})
    found: list[c.Decl] = []
    for decl in program.decls:
        if decl.query is not None:
            query = decl.query
            if decl.type is not None and isinstance(query.select, c.Combined):
                query = evolve(query, select=_named(query.select))
            decl = evolve(decl, query=work.query(query, decl.name, {}))
        found += [*work.made, decl]
        work.made.clear()
    return evolve(program, decls=tuple(found))


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

    def query(self, query: c.Query, title: str, known: Mapping[str, str]) -> c.Query:
        """A query without inner ones; `known`: the names of `with` that it sees."""
        for name, inner in query.within:
            known = {**known, name: self.declared(inner, f"{title}_{name}", known)}
        return evolve(query, select=self.body(query.select, title, known), within=())

    def body(
        self, body: q.Select | c.Combined, title: str, known: Mapping[str, str]
    ) -> q.Select | c.Combined:
        """A block, or a combination of declared ones."""
        if isinstance(body, c.Combined):
            left, right = (self.side(side, title, known) for side in (body.left, _named(body.right)))
            return evolve(body, left=left, right=right)
        sources = tuple(self.source(source, title, known) for source in body.sources)
        return self.nested(evolve(body, sources=sources), title, known)

    def nested(self, node: N, title: str, known: Mapping[str, str]) -> N:
        """A part of a block; in queries inside of its expressions, what they have inside of them is declared, too."""

        def rewrite(inner: s.Node) -> s.Node:
            if isinstance(inner, c.Query):
                return self.query(inner, f"{title}_nested", known)
            return rebuild(inner, rewrite)

        return rebuild(node, rewrite)

    def side(self, side: q.Select | c.Combined | q.Source, title: str, known: Mapping[str, str]) -> q.Source:
        """One side of a combination."""
        if isinstance(side, q.Source):
            return side
        query = c.Query(side, span=side.span)
        return q.Source(self.declared(query, f"{title}_part", known), span=side.span)

    def source(self, source: q.Source, title: str, known: Mapping[str, str]) -> q.Source:
        """A source that is a name."""
        if isinstance(source, c.Derived):
            assert source.query is not None  # noqa: S101 - so it was parsed
            name = self.declared(source.query, f"{title}_{source.label}", known)
            if source.window is None:
                return q.Source(name, source.label, source.joining, span=source.span)
            return c.Windowed(name, source.label, source.joining, source.window, span=source.span)
        if source.name in known:
            return evolve(source, name=known[source.name], alias=source.label)
        return source

    def declared(self, query: c.Query, title: str, known: Mapping[str, str]) -> str:
        """The name of a query that gets a declaration."""
        name = fresh(title, self.taken)
        self.taken.add(name)
        flattened = self.query(query, name, known)
        kind = "relation" if query.operator is None else "stream"
        self.made.append(
            c.Decl(name, None, kind, None, flattened, name_span=query.span, inner=True, span=query.span)
        )
        return name
