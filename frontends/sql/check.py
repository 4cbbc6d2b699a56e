"""The arrow from a query to its relational algebra. What a source is, the language around it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import joins, order, results, select_list
from frontends.sql import syntax as q
from frontends.sql import typed as r
from frontends.sql.aggregates import aggregate_of, has_aggregate
from frontends.sql.columns import columns
from frontends.sql.groups import Groups
from frontends.sql.joined import filtered, projected
from frontends.sql.operations import conjuncts
from frontends.sql.results import Declared
from frontends.sql.sources import Sources
from frontends.sql.values import spelled
from river.classes import define, evolve
from river.il.trees import children, fresh, walk
from river.lang import syntax as s
from river.lang import types as t
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from river.lang.scope import Scope
    from river.source import Span


def select(
    block: q.Select, rows: tuple[t.Record, ...], wanted: t.Record | None, scope: Scope, report: Report
) -> r.Relation:
    """The algebra of `block` over sources with these rows; its own rows are `wanted`, or follow from the select list.

    Raises: Failed; the errors (codes sql-* and lang-*) are in the report.
    """
    return _Select(block, Sources(block.sources, rows, scope, report), wanted, scope, report).relation()


def written_out(
    block: q.Select, rows: tuple[t.Record, ...], scope: Scope, report: Report, *, named: bool
) -> tuple[q.Item, ...]:
    """The select list with its stars written out. `named`: columns get their names from it."""
    return select_list.written_out(block.items, Sources(block.sources, rows, scope, report), named=named)


def may_be_none(block: q.Select, rows: tuple[t.Record, ...], expr: s.Expr, scope: Scope) -> bool:
    """Whether a value over the sources of `block` may be none, as far as its columns are known."""
    try:
        found = Sources(block.sources, rows, scope, Report()).over_rows("here").find(expr)
    except Failed:
        return True
    return isinstance(found.type, t.Optional)


@define
class _Select:
    block: q.Select
    sources: Sources
    wanted: t.Record | None
    scope: Scope
    report: Report

    def relation(self) -> r.Relation:
        """The whole query."""
        block, before = self.block, self.report.errors
        self.sources.unique_labels()
        if block.qualify is not None:
            message, help_line = (
                "`qualify` is a condition on numbers of rows",
                "these are made by `row_number() over (...)`",
            )
            self.report.error("sql-qualify", message, block.qualify.span, help_line)
        items = select_list.written_out(block.items, self.sources, named=self.wanted is None)
        declared = Declared(self.wanted, len(items), block.span)
        items, ordered_by = order.with_order(block, items, self.wanted, self.sources)
        block = self.block = select_list.without_aliases(block, items, self.sources)
        conditions = self.conditions()
        grouping = bool(block.group) or any(has_aggregate(item.value) for item in items)
        grouping = grouping or (block.having is not None and has_aggregate(block.having))
        if block.having is not None and not grouping:
            self.report.error(
                "sql-having",
                "`having` is a condition on groups, here are none",
                block.having.span,
                "a condition on rows stands after `where`",
            )
        found = (self.grouped if grouping else self.plain)(items, declared, conditions)
        if self.report.errors > before:
            raise Failed
        if block.distinct:
            self.comparable(found.row, block.span)
            found = r.Distinct(found, found.row, span=block.span)
        for name, over in block.ranks:
            found = order.ranked(found, name, over, self.report)
        if block.limit is not None or block.offset:
            found = order.first(found, block, declared.shown, ordered_by, self.report)
        return found

    def conditions(self) -> tuple[s.Expr, ...]:
        """The conjuncts of `where`, checked."""
        found: list[s.Expr] = (
            []
            if self.sources.outer
            else [c for i in range(len(self.sources.own)) for c in self.sources.matched(i)]
        )
        self.named_below()
        if self.block.where is not None:
            for conjunct in conjuncts(self.block.where):
                with self.report.recover():
                    found.append(self.sources.over_rows("in `where`").condition(conjunct))
        return tuple(found)

    def named_below(self) -> None:
        """Refuses a name of the select list in `where`, which comes before it."""
        names = {item.name for item in self.block.items if isinstance(item, q.Item)}
        known = {name for row in self.sources.rows for name, _ in row.fields}
        for node in walk(self.block.where) if self.block.where is not None else ():
            if isinstance(node, s.Name) and node.name in names - known:
                message = f"`{node.name}` is a name of the select list, which `where` comes before"
                help_line = (
                    "write out what it is, or ask of a query below: `from (select ...) as t where ...`"
                )
                raise self.report.error("sql-unknown-column", message, node.span, help_line)

    def plain(
        self, items: tuple[q.Item, ...], declared: Declared, conditions: tuple[s.Expr, ...]
    ) -> r.Relation:
        """Selection, projection and join."""
        named = results.named(items, self.sources.over_rows("without a group"), declared)
        needed = {column for part in named for column in columns(part.value.expr)}
        joined = joins.joined(self.sources, conditions, needed, self.block.span)
        row = t.Record(tuple((part.name, declared.type(part)) for part in named))
        values = tuple(s.FieldValue(part.name, joined.read(part.value.expr)) for part in named)
        make = s.Lambda(("r",), s.RecordValue(values))
        if isinstance(joined.relation, r.Join) and not joined.rest:
            return projected(joined.relation, row, make.body)
        if joined.relation.row == row and all(v.value == s.Member(s.Name("r"), v.name) for v in values):
            make = r.SAME
        return filtered(joined.relation, row, joined.rest, make, self.block.span)

    def grouped(
        self, items: tuple[q.Item, ...], declared: Declared, conditions: tuple[s.Expr, ...]
    ) -> r.Relation:
        """Grouping and aggregation."""
        block, before = self.block, self.report.errors
        keys = self.keys(items)
        over = Groups(
            self.report,
            self.scope,
            self.sources.labels,
            self.sources.rows,
            merged=self.sources.merged(),
            keys=keys,
            grouped=bool(block.group),
            known=self.report.errors == before,
            always=bool(keys),
        )
        named = results.named(items, over, declared)
        keep: s.Expr = s.Bool(value=True)
        if block.having is not None:
            with self.report.recover():
                keep = over.condition(block.having)
        values = [key.value for key in keys] + [a.argument for a in over.aggregates if a.argument is not None]
        needed = {column for value in values for column in columns(value)}
        joined = joins.joined(self.sources, conditions, needed, block.span)
        source = joined.relation
        if joined.rest:
            source = filtered(source, source.row, joined.rest, r.SAME, self.block.span)
        row = t.Record(tuple((part.name, declared.type(part)) for part in named))
        make = s.RecordValue(tuple(s.FieldValue(part.name, part.value.expr) for part in named))
        return r.Group(
            source,
            row,
            tuple(r.Key(key.name, key.type, joined.read(key.value), span=key.span) for key in keys),
            tuple(
                evolve(a, argument=None if a.argument is None else joined.read(a.argument)) for a in over.aggregates
            ),
            s.Lambda(("g",), keep),
            s.Lambda(("g",), make),
            span=block.span,
        )  # fmt: skip

    def keys(self, items: tuple[q.Item, ...]) -> tuple[r.Key, ...]:
        """The grouping: as stated, or else the plain columns of the select list (River-CQL, Figure 3 b)."""
        stated = self.block.group or tuple(
            dict.fromkeys(
                column for item in items for column in _plain_columns(item.value, self.sources.labels)
            )
        )
        found: dict[str, r.Key] = {}
        over = self.sources.over_rows("in `group by`")
        for expr in stated:
            with self.report.recover():
                value = over.find(expr)
                if any(key.value == value.expr for key in found.values()):
                    continue
                if not t.is_key(value.type):
                    message = f"values of `{spelled(value.type)}` cannot be compared"
                    raise self.report.error("sql-key-type", message, expr.span)
                title = expr.name if isinstance(expr, s.Name | s.Member) else "key"
                name = fresh(title, set(found))
                found[name] = r.Key(name, value.type, value.expr, span=expr.span)
        return tuple(found.values())

    def comparable(self, row: t.Record, span: Span | None) -> None:
        """Refuses rows that cannot be told apart."""
        if not t.is_key(row):
            raise self.report.error("sql-key-type", f"rows of `{spelled(row)}` cannot be compared", span)


def _plain_columns(expr: s.Node, labels: tuple[str, ...]) -> Iterable[s.Expr]:
    """The columns that an item reads outside of aggregates."""
    match expr:
        case s.Call() if aggregate_of(expr):
            return
        case s.Name():
            yield expr
        case s.Member(s.Name(label), _) if label in labels:
            yield expr
        case _:
            for child in children(expr):
                yield from _plain_columns(child, labels)
