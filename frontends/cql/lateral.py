"""`lateral (select ...)` after `from`, a query that reads columns of the sources before it, becomes a join.

Where it has aggregates alone, it is one row for each row before it: its columns are then nested queries. Else what ties it
to the sources before it are equalities: it is asked once for all of their values, in the parts that they make, and joined by
them. Columns of sources before it are known by the source that stands before them, `r.k`: others cannot be told here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from frontends.sql.aggregates import has_aggregate
from frontends.sql.operations import conjuncts
from frontends.sql.select_list import title
from river.classes import define, evolve
from river.il.trees import rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.lang.parse import Builder
    from river.source import Span

HELP = (
    "write `lateral (select ... from t where t.k = r.k order by ... limit n)`: equalities with columns of `r`"
)


def without_lateral(builder: Builder, block: q.Select) -> q.Select:
    """A block without such queries. The errors (code syntax-lateral) are noted at `builder`."""
    for place, source in enumerate(block.sources):
        if isinstance(source, c.Derived) and source.lateral:
            return without_lateral(builder, _Lateral(builder, block, place, source).block_without())
    return block


@define
class _Lateral:
    builder: Builder
    block: q.Select
    place: int
    source: c.Derived

    def refuse(self, message: str) -> q.Select:
        """The block, as if the query were none that reads others."""
        span: Span = self.source.span or self.block.span  # pyright: ignore[reportAssignmentType]
        self.builder.report("syntax-lateral", message, span, HELP)
        return self.put(evolve(self.source, lateral=False), self.block)

    def put(self, source: q.Source, block: q.Select) -> q.Select:
        """A block with another source in its place."""
        sources = block.sources
        return evolve(block, sources=(*sources[: self.place], source, *sources[self.place + 1 :]))

    def block_without(self) -> q.Select:
        """The block without this one."""
        source, query = self.source, self.source.query
        inner = None if query is None else query.select
        if (
            not isinstance(inner, q.Select)
            or query is None
            or query.operator
            or query.within
            or source.window
        ):
            return self.refuse("a query that reads the sources before it is one `select`")
        if not self.reads(inner):
            return self.put(evolve(source, lateral=False), self.block)
        joining = source.joining
        if joining is not None and (
            joining.kind not in ("inner", "left") or joining.using or joining.natural
        ):
            return self.refuse(f"it is no side of a {joining.kind} join, or of one by names")
        names = self.names(inner, query.columns)
        if names is None:
            return self.refuse("each of its columns has a name: write them, instead of `*`")
        single = not inner.group and any(
            isinstance(i, q.Item) and has_aggregate(i.value) for i in inner.items
        )
        if single:
            return self.one_row(inner, names)
        return self.joined(inner, names)

    def reads(self, node: s.Node) -> bool:
        """Whether a part of the query reads columns of the sources before it."""
        outer = {each.label for each in self.block.sources[: self.place]}
        return any(
            isinstance(each, s.Member) and isinstance(each.value, s.Name) and each.value.name in outer
            for each in walk(node)
        )

    def names(self, inner: q.Select, given: tuple[str, ...]) -> tuple[str, ...] | None:
        """What its columns are called, if it says so."""
        found = [item.name or title(item.value) if isinstance(item, q.Item) else None for item in inner.items]
        if given and len(given) == len(found) and all(isinstance(item, q.Item) for item in inner.items):
            return given
        return tuple(cast("list[str]", found)) if all(found) else None

    def shown(self, columns: Mapping[str, s.Expr]) -> tuple[q.Item | q.Star, ...]:
        """The select list, with `*` taken apart."""
        label = self.source.label
        own = tuple(q.Item(value, name, span=value.span) for name, value in columns.items())
        others = [each.label for i, each in enumerate(self.block.sources) if i != self.place]
        before = sum(1 for i in range(len(self.block.sources)) if i < self.place)
        found: list[q.Item | q.Star] = []
        for item in self.block.items:
            match item:
                case q.Star(None):
                    found += item.of(others[:before])
                    found += [each for each in own if each.name not in item.without]
                    found += item.of(others[before:])
                case q.Star(of) if of == label:
                    found += [each for each in own if each.name not in item.without]
                case _:
                    found.append(item)
        return tuple(found)

    def one_row(self, inner: q.Select, names: tuple[str, ...]) -> q.Select:
        """The block with a nested query for each of the columns that it reads."""
        joining = self.source.joining
        if joining is not None and joining.on not in (None, s.Bool(value=True)):
            return self.refuse("a query of aggregates alone is joined `on true`")
        values: dict[str, s.Expr] = {}
        for name, item in zip(names, inner.items, strict=True):
            body = evolve(inner, items=(evolve(cast("q.Item", item), name=name),))
            nested = q.Nested("value", c.Query(body, span=item.span), span=item.span)
            values[name] = cast("s.Expr", nested)

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Member(s.Name(label), name) if label == self.source.label and name in values:
                    return values[name]
                case s.Name(name) if name in values:
                    return values[name]
                case q.Item(s.Name(name) | s.Member(_, name), None):
                    return evolve(node, value=cast("s.Expr", rewrite(node.value)), name=name)
                case q.Nested() | q.Source():
                    return node
                case _:
                    return rebuild(node, rewrite)

        block = evolve(self.block, items=self.shown({name: s.Name(name) for name in values}))
        block = rebuild(block, rewrite)
        sources = self.block.sources
        return evolve(block, sources=(*sources[: self.place], *sources[self.place + 1 :]))

    def joined(self, inner: q.Select, names: tuple[str, ...]) -> q.Select:
        """The block joined with the query, asked for all values of what ties it to the sources before it."""
        label, span = self.source.label, self.source.span
        kept: list[s.Expr] = []
        keys: list[s.Expr] = []
        ties: list[s.Expr] = []
        for part in () if inner.where is None else conjuncts(inner.where):
            match part:
                case _ if not self.reads(part):
                    kept.append(part)
                case s.Binary("==", one, other) if self.reads(one) != self.reads(other):
                    own, outer = (other, one) if self.reads(one) else (one, other)
                    column = s.Member(s.Name(label), f"key {len(keys)}")
                    ties.append(s.Binary("==", column, outer, span=part.span))
                    keys.append(own)
                case _:
                    return self.refuse("it is tied to the sources before it otherwise than by equalities")
        rest = evolve(inner, where=s.joined("and", kept) if kept else None)
        if self.reads(rest):
            return self.refuse("what it reads of the sources before it stands after `where`, in equalities")
        items = [
            evolve(cast("q.Item", item), name=name) for name, item in zip(names, inner.items, strict=True)
        ]
        added = [q.Item(key, f"key {i}", span=key.span) for i, key in enumerate(keys)]
        group = (*inner.group, *keys) if inner.group else ()
        first_of = (*inner.first_of, *keys) if inner.first_of else ()
        rest = evolve(rest, items=(*items, *added), group=group, first_of=first_of)
        if inner.limit is not None or inner.offset:
            number = cast("s.Expr", q.Over("number", tuple(keys), inner.order, span=span))
            bounds: list[s.Expr] = [] if inner.qualify is None else [inner.qualify]
            if inner.offset:
                bounds.append(s.Binary(">", number, s.Int(inner.offset), span=span))
            if inner.limit is not None:
                bounds.append(s.Binary("<=", number, s.Int(inner.offset + inner.limit), span=span))
            rest = evolve(rest, order=(), limit=None, offset=0, qualify=s.joined("and", bounds))
        joining = self.source.joining
        given = [] if joining is None or joining.on in (None, s.Bool(value=True)) else [joining.on]
        condition = s.joined("and", [*ties, *given])
        kind = "inner" if joining is None else joining.kind
        query = c.Query(rest, span=rest.span)
        found = evolve(self.source, query=query, joining=q.Joining(kind, condition, span=span), lateral=False)
        columns = {name: s.Member(s.Name(label), name, span=span) for name in names}
        return self.put(found, evolve(self.block, items=self.shown(columns)))
