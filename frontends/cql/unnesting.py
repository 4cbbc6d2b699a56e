"""Queries inside of expressions become sources of their own: what is left of a block are joins and groups.

Each nested query becomes a declaration that says, for each value of what ties it to the block around it (its *keys*), whether it
has rows, which, or what they come to; the block is joined with that. `in` and `exists` as conditions of their own are joins with
different rows; everywhere else a left join shows whether there is a partner. A query that has aggregates alone has one row also
where nothing meets its conditions: counts are 0 there, other aggregates none, so what is made of them is made behind the join.

Numbers of rows (`row_number() over ...`) are columns of a declaration of their own, too.

Keys are the other sides of equalities with columns of the block around. Where columns of that are used otherwise, the nested
query is joined with their different values, which are then its keys (Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015).
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, cast

from frontends.cql import layers, nested_values, ties
from frontends.cql import syntax as c
from frontends.cql.blocks import Names, aggregates, has_nested, is_single, is_there, nests, parts_of
from frontends.cql.grouping_sets import has_several
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from frontends.sql.check import written_out
from frontends.sql.operations import ARITHMETIC, COMPARISONS, conjuncts
from frontends.sql.select_list import title
from river.classes import define, evolve, field
from river.il.trees import children, fresh, rebuild, walk
from river.lang import syntax as s

if TYPE_CHECKING:
    from frontends.cql.world import World
    from river.source import Span


def unnested(block: q.Select, title: str, world: World, *, named: bool) -> q.Select:
    """`block` without queries inside of its expressions.

    `title` is how the names of declarations begin that are made for them. `named`: columns get their names from the select list.
    Raises: Failed; the errors (codes sql-nested-*) are in the report.
    """
    return Unnesting(world, title, block, named).block() if nests(block) else block


@define
class Unnesting:
    """What becomes of a block, `outer`, that has queries inside of its expressions.

    `taken`: names that are there; `added`: the sources that nested queries become; `plain`: conditions without queries, before
    those that have some.
    """

    world: World
    title: str
    outer: q.Select
    named: bool
    names: Names = field(init=False)
    taken: set[str] = field(init=False)
    added: list[q.Source] = field(factory=list[q.Source])
    read: dict[tuple[q.Nested, str], s.Expr] = field(factory=dict[tuple[q.Nested, str], s.Expr])
    """What queries stand for that have been joined already."""
    plain: list[s.Expr] = field(factory=list[s.Expr])

    def __attrs_post_init__(self) -> None:
        self.names = self.names_of(self.outer)
        columns = {name for row in self.names.rows for name, _ in row.fields}
        used = {node.name for node in walk(self.outer) if isinstance(node, s.Name | s.Member)}
        self.taken = {*self.names.labels, *columns, *used}

    # -- the block around

    def block(self) -> q.Select:
        """The whole block."""
        block = self.outer
        items = written_out(block, self.names.rows, self.world.scope, self.world.report, named=self.named)
        grouped = bool(block.group) or any(
            True for part in (*items, block.having) if part for _ in aggregates(part)
        )
        behind = [*items, *(part for part in (block.having, block.qualify) if part is not None), *block.order]
        if grouped and any(self.is_behind(part) for part in behind):
            return self.again(layers.over_groups(self, items))
        if any(isinstance(node, q.Over) for part in behind for node in parts_of(part)):
            return self.again(layers.numbered(self, items))
        joined, conditions = self.conditions()
        self.plain = list(takewhile(lambda each: not has_nested(each), conditions))
        kept = [made for each in conditions if (made := self.condition(each)) is not None]
        values = tuple(
            evolve(item, value=self.replaced(item.value), name=self.name_of(item)) for item in items
        )
        group, having = tuple(map(self.replaced, block.group)), block.having and self.replaced(block.having)
        order = tuple(evolve(each, value=self.replaced(each.value)) for each in block.order)
        where = s.joined("and", kept) if kept else None
        return evolve(
            block,
            items=values,
            sources=(*joined, *self.added),
            where=where,
            group=group,
            having=having,
            order=order,
        )

    def again(self, around: q.Select) -> q.Select:
        """What becomes of the block around the one that was made a source."""
        return unnested(around, self.title, self.world, named=self.named)

    def is_behind(self, part: s.Node) -> bool:
        """Whether a part of a block with groups has a nested query outside of its aggregates."""
        if aggregate_of(part):
            return False
        return isinstance(part, q.Nested | q.Over) or any(map(self.is_behind, children(part)))

    def conditions(self) -> tuple[tuple[q.Source, ...], list[s.Expr]]:
        """The sources, and the conjuncts of `where`, with those of inner joins that have nested queries."""
        sources: list[q.Source] = []
        moved: list[s.Expr] = []
        inner = all(source.joining is None or source.joining.kind == "inner" for source in self.outer.sources)
        for source in self.outer.sources:
            if source.joining is None or source.joining.on is None or not has_nested(source.joining.on):
                sources.append(source)
                continue
            if not inner:
                message = "the condition of an outer join has no query inside"
                help_line = "join with the query itself, after `from`"
                raise self.world.report.error("sql-nested-place", message, source.joining.on.span, help_line)
            moved += conjuncts(source.joining.on)
            sources.append(evolve(source, joining=evolve(source.joining, on=None)))
        return tuple(sources), [*moved, *([] if self.outer.where is None else conjuncts(self.outer.where))]

    def name_of(self, item: q.Item) -> str | None:
        """The name of a result column, which the query inside of it gives if nothing else does."""
        if item.name is not None or not self.named:
            return item.name
        if not isinstance(item.value, q.Nested):
            return title(item.value)
        select = cast("c.Query", item.value.query).select
        if item.value.word != "value" or not isinstance(select, q.Select) or len(select.items) != 1:
            return None
        (inner,) = select.items
        return (inner.name or title(inner.value)) if isinstance(inner, q.Item) else None

    # -- names

    def names_of(self, block: q.Select) -> Names:
        """What the sources of a block make known."""
        return Names(
            tuple(source.label for source in block.sources), tuple(self.world.row_of(source) for source in block.sources)
        )  # fmt: skip

    def fresh(self, name: str) -> str:
        """A name that no column of the block around it has."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def label(self, name: str) -> str:
        """A name for a source."""
        return self.fresh(name)

    def declared(self, block: q.Select) -> str:
        """The name of a relation that is made for a block."""
        return self.world.declared(c.Query(block, span=block.span), f"{self.title}_nested")

    # -- conditions and values

    def condition(self, conjunct: s.Node) -> s.Expr | None:
        """A conjunct of `where` without nested queries; None if a join says it."""
        match conjunct:
            case q.Nested("exists" | "in" | "any") if conjunct.word != "any" or conjunct.op == "==":
                return nested_values.met(self, conjunct)
            case s.Binary(op, left, right) if op in COMPARISONS:
                return evolve(conjunct, left=self.strict(left), right=self.strict(right))
            case _:
                return self.replaced(cast("s.Expr", conjunct))

    def strict(self, expr: s.Node) -> s.Expr:
        """A side of a comparison that must hold: where a query has no value, nothing is lost if the row has no partner."""
        match expr:
            case q.Nested():
                return self.value(expr, "inner")
            case s.Binary(op, left, right) if op in ARITHMETIC:
                return evolve(expr, left=self.strict(left), right=self.strict(right))
            case s.Unary("-", value):
                return evolve(expr, value=self.strict(value))
            case _:
                return self.replaced(cast("s.Expr", expr))

    def replaced(self, expr: s.Expr) -> s.Expr:
        """An expression with its nested queries read from the sources that they become."""

        def rewrite(node: s.Node) -> s.Node:
            return self.value(node, "left") if isinstance(node, q.Nested) else rebuild(node, rewrite)

        return cast("s.Expr", rewrite(expr))

    def value(self, nested: q.Nested, kind: str) -> s.Expr:
        """What a nested query stands for; the same query is joined once."""
        if (nested, kind) not in self.read:
            self.read[nested, kind] = self.found(nested, kind)
        return self.read[nested, kind]

    def found(self, nested: q.Nested, kind: str) -> s.Expr:
        """What a nested query stands for, joined with it."""
        body = self.body(nested)
        match nested.word:
            case "exists":
                if is_single(body):
                    return (
                        s.Bool(value=True)
                        if body.having is None
                        else nested_values.single(self, body, body.having, "left")
                    )
                label = nested_values.partners(self, ties.closed(self, body), (), "left")
                return is_there(label[0], label[1])
            case "in":
                return nested_values.one_of(self, nested, body)
            case "any" if nested.op == "==":
                return nested_values.one_of(self, nested, body)
            case "all" if nested.op == "!=":
                return s.Unary("not", nested_values.one_of(self, nested, body), span=nested.span)
            case "any" | "all":
                return nested_values.quantified(self, nested, body)
            case _:
                (item,) = self.items(body, 1, nested.span)
                if is_single(body):
                    return nested_values.single(self, body, item, kind)
                return nested_values.only(self, body, item, kind)

    def body(self, nested: q.Nested) -> q.Select:
        """The block of a nested query; a combination, and one of several groupings, is a block over it."""
        query = cast("c.Query", nested.query)
        body = query.select
        if isinstance(body, c.Combined) or has_several(body):
            name = self.world.declared(query, f"{self.title}_nested")
            return q.Select((q.Star(span=body.span),), (q.Source(name, span=body.span),), span=body.span)
        return body

    def items(self, body: q.Select, count: int, span: Span | None) -> tuple[s.Expr, ...]:
        """The values of the columns of a nested query."""
        rows = self.names_of(body).rows
        found = [
            item.value for item in written_out(body, rows, self.world.scope, self.world.report, named=True)
        ]
        if len(found) != count:
            wanted = "one column" if count == 1 else f"{count} columns"
            message = f"this query has {len(found)} columns, {wanted} can be compared"
            help_line = "rows are compared by `(a, b) in (select ...)`" if count == 1 else None
            raise self.world.report.error("sql-nested-columns", message, span, help_line)
        return tuple(found)
