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
from typing import TYPE_CHECKING, Protocol, cast

from frontends.cql import syntax as c
from frontends.cql.grouping_sets import has_several
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of
from frontends.sql.check import may_be_none, written_out
from frontends.sql.operations import ARITHMETIC, COMPARISONS, conjuncts
from frontends.sql.select_list import title
from river.classes import define, evolve, field, frozen
from river.il.trees import children, fresh, rebuild, walk
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from river.lang.scope import Scope
    from river.report import Report
    from river.source import Span


class World(Protocol):
    """What the rest of the program has for a query."""

    @property
    def report(self) -> Report:
        """Where errors go."""
        ...

    @property
    def scope(self) -> Scope:
        """The types and functions that expressions may name."""
        ...

    def row_of(self, source: q.Source, /) -> t.Record:
        """The rows of a source. Raises: Failed, if it was refused."""
        ...

    def declared(self, query: c.Query, title: str, /) -> str:
        """The name of a relation that is made for a query."""
        ...


def unnested(block: q.Select, title: str, world: World, *, named: bool) -> q.Select:
    """`block` without queries inside of its expressions.

    `title` is how the names of declarations begin that are made for them. `named`: columns get their names from the select list.
    Raises: Failed; the errors (codes sql-nested-*) are in the report.
    """
    if not any(isinstance(node, q.Nested | q.Over) for part in _clauses(block) for node in _own(part)):
        return block
    return _Unnest(world, title, block, named).block()


def _clauses(block: q.Select) -> Iterator[s.Node]:
    """The parts of a block that have expressions."""
    yield from block.items
    yield from block.group
    yield from block.order
    yield from (part for part in (block.where, block.having, block.qualify) if part is not None)
    yield from (source.joining for source in block.sources if source.joining is not None)


def _own(node: s.Node) -> Iterator[s.Node]:
    """`node` and what is inside it, but not inside of nested queries."""
    yield node
    for child in children(node):
        if not (isinstance(node, q.Nested) and child is node.query):
            yield from _own(child)


def _aggregates(node: s.Node) -> Iterator[s.Expr]:
    """The aggregates in a part of a block, outermost."""
    if aggregate_of(node):
        yield cast("s.Expr", node)
        return
    for child in children(node):
        if isinstance(node, q.Over) and child is node.call:  # it is of rows that may be groups
            for argument in children(child):
                yield from _aggregates(argument)
        elif not (isinstance(node, q.Nested) and child is node.query):
            yield from _aggregates(child)


def _has_nested(node: s.Node) -> bool:
    return any(isinstance(each, q.Nested) for each in _own(node))


@frozen
class _Names:
    """The sources of a block as what names denote. `more`: names that are known beside their columns."""

    labels: tuple[str, ...]
    rows: tuple[t.Record, ...]
    more: frozenset[str] = frozenset()

    def place(self, expr: s.Expr) -> tuple[str, str] | None:
        """Source and name of what a name, or a name with a source before it, denotes; None if that is none of these."""
        match expr:
            case s.Name(name):
                having = (
                    label
                    for label, row in zip(self.labels, self.rows, strict=True)
                    if row.field(name) is not None
                )
                label = next(having, "" if name in self.more else None)
                return None if label is None else (label, name)
            case s.Member(s.Name(label), name):
                return (label, name) if label in self.labels else None
            case _:
                return None

    def has(self, expr: s.Expr) -> bool:
        """Whether a name is one of these."""
        return self.place(expr) is not None


@frozen
class _Closed:
    """A block that reads nothing of the block around it, and what ties the two: key of the one, value of the other.

    `same`: also none is equal to none.
    """

    block: q.Select
    keys: tuple[tuple[s.Expr, s.Expr], ...] = ()
    same: bool = False


@define
class _Unnest:
    world: World
    title: str
    outer: q.Select
    named: bool
    names: _Names = field(init=False)
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
            True for part in (*items, block.having) if part for _ in _aggregates(part)
        )
        behind = [*items, *(part for part in (block.having, block.qualify) if part is not None), *block.order]
        if grouped and any(self.is_behind(part) for part in behind):
            return self.over_groups(items)
        if any(isinstance(node, q.Over) for part in behind for node in _own(part)):
            return self.numbered(items)
        joined, conditions = self.conditions()
        self.plain = list(takewhile(lambda each: not _has_nested(each), conditions))
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
            if source.joining is None or source.joining.on is None or not _has_nested(source.joining.on):
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

    def over_groups(self, items: tuple[q.Item, ...]) -> q.Select:
        """The groups as a source, and what is asked of them as a block around it."""
        block, report = self.outer, self.world.report
        aliases = {item.name: item.value for item in items if item.name is not None}

        def meant(node: s.Node) -> s.Node:
            match node:
                case s.Name(name) if name in aliases and not self.names.has(node):
                    return aliases[name]
                case s.Int(number) if node in block.group and 0 < number <= len(items):
                    return items[number - 1].value
                case _:
                    return node if isinstance(node, q.Nested) else rebuild(node, meant)

        keys = [cast("s.Expr", meant(key)) for key in block.group]
        if not keys:
            keys = list(dict.fromkeys(each for item in items for each in self.columns(item.value)))
        having = None if block.having is None else cast("s.Expr", meant(block.having))
        order = tuple(evolve(each, value=cast("s.Expr", meant(each.value))) for each in block.order)
        qualify = None if block.qualify is None else cast("s.Expr", meant(block.qualify))
        label = self.label("groups")
        parts: dict[s.Expr, str] = {}
        asked = [*items, *(part for part in (having, qualify) if part is not None), *order]
        for part in (*keys, *(each for one in asked for each in _aggregates(one))):
            parts.setdefault(part, self.fresh(title(part) or "part"))

        def read(node: s.Node) -> s.Node:
            if node in parts:
                return _of(label, parts[cast("s.Expr", node)], node.span)
            match node:
                case q.Nested(_, query, value):
                    inside = _mapped(query, (), self.names, of_group, self.names_of)
                    return evolve(
                        node, query=inside, value=None if value is None else cast("s.Expr", read(value))
                    )
                case s.Name() | s.Member(s.Name()):
                    return of_group(node) if self.names.has(node) else node
                case _:
                    return rebuild(node, read)

        def of_group(node: s.Expr) -> s.Expr:
            if node in parts:
                return _of(label, parts[node], node.span)
            for key in keys:
                if self.names.has(key) and self.names.place(key) == self.names.place(node):
                    return _of(label, parts[key], node.span)
            raise report.error(
                "sql-not-grouped", "this column may differ within a group", node.span, "group by it"
            )

        inner = evolve(
            block, items=tuple(q.Item(part, name, span=part.span) for part, name in parts.items()), group=tuple(keys),
            having=None, distinct=False, order=(), limit=None, offset=0, qualify=None,
        )  # fmt: skip
        name = self.declared(inner)
        shown = tuple(
            evolve(item, value=cast("s.Expr", read(item.value)), name=self.name_of(item)) for item in items
        )
        around = q.Select(
            shown, (q.Source(name, label, span=block.span),), None if having is None else cast("s.Expr", read(having)),
            distinct=block.distinct, order=tuple(evolve(each, value=cast("s.Expr", read(each.value))) for each in order),
            limit=block.limit, offset=block.offset, span=block.span,
            qualify=None if qualify is None else cast("s.Expr", read(qualify)),
        )  # fmt: skip
        return unnested(around, self.title, self.world, named=self.named)

    def numbered(self, items: tuple[q.Item, ...]) -> q.Select:
        """The rows with their numbers as a source, and what is asked of them as a block around it."""
        block = self.outer
        aliases = {item.name: item.value for item in items if item.name is not None}

        def meant(node: s.Node) -> s.Node:
            match node:
                case s.Name(name) if name in aliases and not self.names.has(node):
                    return aliases[name]
                case _:
                    return node if isinstance(node, q.Nested) else rebuild(node, meant)

        qualify = None if block.qualify is None else cast("s.Expr", meant(block.qualify))
        order = tuple(evolve(each, value=cast("s.Expr", meant(each.value))) for each in block.order)
        label = self.label("numbered")
        parts: dict[s.Expr, str] = {}
        ranks: dict[q.Over, str] = {}
        others, name = self.label("others"), ""

        def part(expr: s.Expr) -> str:
            return parts.setdefault(expr, self.fresh(title(expr) or "part"))

        def column(expr: s.Expr) -> s.Expr:
            return _of(label, part(expr), expr.span)

        def of_other(node: s.Node) -> s.Node:
            match node:
                case s.Name() | s.Member(s.Name()):
                    return _of(others, part(node), node.span) if self.names.has(node) else node
                case _:
                    return rebuild(node, of_other)

        def peers(node: q.Over, call: s.Expr) -> q.Nested:
            """The aggregate of the rows of equal keys, and in the frame of a row."""
            sides = [(_of(others, part(key)), _of(label, part(key))) for key in node.keys]
            ties: list[s.Expr] = [
                s.Call("alike", pair) if name and self.unlike(name, pair[0]) else s.Binary("==", *pair)
                for pair in sides
            ]
            if node.order or node.frame is not None:
                function = "rank" if node.frame is None and node.place is None else "number"
                own = evolve(node, function=function, call=None, frame=None, reach=None, place=None)
                number = cast("s.Member", read(own))
                low, high = (None, 0) if node.frame is None else node.frame
                if node.place is not None:
                    ties.append(s.Binary("==", _of(others, number.name), s.Int(node.place)))
                    low, high = None, None
                for op, bound in ((">=", low), ("<=", high)):
                    if bound is not None:
                        ties.append(
                            s.Binary(op, _of(others, number.name), s.Binary("+", number, s.Int(bound)))
                        )
            if node.reach is not None:
                (by,) = node.order
                away, near = _of(others, part(by.value)), _of(label, part(by.value))
                sign, op = ("+", "<=") if by.descending else ("-", ">=")
                ties.append(s.Binary(op, away, s.Binary(sign, near, node.reach)))
            asked = q.Item(cast("s.Expr", of_other(call)), span=node.span)
            rows = q.Source(name or self.names.labels[0], others, span=node.span)
            inner = q.Select((asked,), (rows,), s.joined("and", ties) if ties else None, span=node.span)
            return q.Nested("value", c.Query(inner, span=node.span), span=node.span)

        def read(node: s.Node) -> s.Node:
            match node:
                case q.Over(_, _, _, call) if call is not None:
                    return peers(node, call)
                case q.Over(_, keys, over):
                    own = evolve(
                        node, keys=tuple(s.Name(part(key)) for key in keys),
                        order=tuple(evolve(each, value=s.Name(part(each.value))) for each in over),
                    )  # fmt: skip
                    return _of(label, ranks.setdefault(own, self.fresh("rank")), node.span)
                case q.Nested(_, query, value):
                    inside = _mapped(query, (), self.names, column, self.names_of)
                    return evolve(
                        node, query=inside, value=None if value is None else cast("s.Expr", read(value))
                    )
                case s.Name() | s.Member(s.Name()):
                    return column(node) if self.names.has(node) else node
                case _:
                    return rebuild(node, read)

        for each in (*items, *order, *(() if qualify is None else (qualify,))):
            read(each)  # so it is known which columns there are
        if not parts:  # `row_number() over ()` alone is of all rows
            row = self.names.rows[0].fields[0][0]
            parts[_of(self.names.labels[0], row)] = self.fresh(row)
        inner = evolve(
            block, items=tuple(q.Item(each, name, span=each.span) for each, name in parts.items()), distinct=False, order=(),
            limit=None, offset=0, qualify=None, ranks=tuple((name, over) for over, name in ranks.items()),
        )  # fmt: skip
        name = self.declared(inner)
        shown = tuple(
            evolve(item, value=cast("s.Expr", read(item.value)), name=self.name_of(item)) for item in items
        )
        where = None if qualify is None else cast("s.Expr", read(qualify))
        ordered = tuple(evolve(each, value=cast("s.Expr", read(each.value))) for each in order)
        source = q.Source(name, label, span=block.span)
        around = q.Select(
            shown, (source,), where, distinct=block.distinct, order=ordered, limit=block.limit, offset=block.offset,
            span=block.span,
        )  # fmt: skip
        return unnested(around, self.title, self.world, named=self.named)

    def unlike(self, name: str, column: s.Expr) -> bool:
        """Whether a value of a column of a declaration may be unlike itself: none, or a float that is no number."""
        kind = dict(self.world.row_of(q.Source(name)).fields)[cast("s.Member", column).name]
        return isinstance(kind, t.Optional) or t.contains(kind, *t.FLOATS)

    def columns(self, node: s.Node) -> Iterator[s.Expr]:
        """The columns that an item reads outside of aggregates and nested queries."""
        if aggregate_of(node) or isinstance(node, q.Nested):
            return
        if isinstance(node, s.Name | s.Member) and self.names.has(node):
            yield node
            return
        for child in children(node):
            yield from self.columns(child)

    # -- names

    def names_of(self, block: q.Select) -> _Names:
        """What the sources of a block make known."""
        return _Names(
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
                return self.met(conjunct)
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
                if _is_single(body):
                    return (
                        s.Bool(value=True) if body.having is None else self.single(body, body.having, "left")
                    )
                label = self.partners(self.closed(body), (), "left")
                return _there(label[0], label[1])
            case "in":
                return self.one_of(nested, body)
            case "any" if nested.op == "==":
                return self.one_of(nested, body)
            case "all" if nested.op == "!=":
                return s.Unary("not", self.one_of(nested, body), span=nested.span)
            case "any" | "all":
                return self.quantified(nested, body)
            case _:
                (item,) = self.items(body, 1, nested.span)
                if _is_single(body):
                    return self.single(body, item, kind)
                return self.only(body, item, kind)

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

    # -- what nested queries come to

    def met(self, nested: q.Nested) -> s.Expr | None:
        """`in` or `exists` as a condition that is true or not: a join with different rows."""
        body = self.body(nested)
        if _is_single(body):
            return self.value(nested, "inner")
        values = () if nested.value is None else self.compared(nested)
        items = self.items(body, len(values), nested.span) if values else ()
        self.partners(self.closed(_with_items(body, items)), values, "inner")
        return None

    def compared(self, nested: q.Nested) -> tuple[s.Expr, ...]:
        """What is compared with the rows of a query."""
        assert nested.value is not None  # noqa: S101 - so it was parsed
        value = self.replaced(nested.value)
        return value.items if isinstance(value, s.TupleValue) else (value,)

    def partners(self, closed: _Closed, values: tuple[s.Expr, ...], kind: str) -> tuple[str, str]:
        """Joins with the different rows of a query that are equal to `values`; a source and a column that is never none in it."""
        block = closed.block
        items = [item.value for item in cast("tuple[q.Item, ...]", block.items)] if values else []
        mark = q.Item(s.Bool(value=True), self.fresh("there"))
        columns = [
            q.Item(each, self.fresh("of"), span=each.span)
            for each in (*items, *(key for key, _ in closed.keys))
        ]
        if values or block.offset or block.limit == 0:
            block, items, keys = self.unlimited(closed, items)
            named = [evolve(each, value=value) for each, value in zip(columns, (*items, *keys), strict=True)]
            first = evolve(block, items=(*named, mark), distinct=True)
        else:  # which are the first does not matter
            closed = evolve(closed, block=evolve(block, order=(), limit=None))
            first = evolve(self.keyed(closed), items=(*columns, mark), distinct=True)
        name, label = self.declared(first), self.label("nested")
        ties = [(value, column.name) for value, column in zip(values, columns, strict=False)]
        on = [s.Binary("==", value, _of(label, cast("str", name)), span=value.span) for value, name in ties]
        on += self.tied(closed, label, [cast("str", each.name) for each in columns[len(items) :]])
        self.join(name, label, on, kind, block.span)
        return label, cast("str", mark.name)

    def one_of(self, nested: q.Nested, body: q.Select) -> s.Expr:
        """`x in (query)`: unknown where x is none, or none is among the rows, unless there is nothing or x itself."""
        values, span = self.compared(nested), nested.span
        items = self.items(body, len(values), span)
        if _is_single(body):
            found = [self.single(body, item, "left") for item in items]
            return s.joined(
                "and", [s.Binary("==", a, b, span=span) for a, b in zip(values, found, strict=True)]
            )
        closed = self.closed(_with_items(body, items))
        there = _there(*self.partners(closed, values, "left"))
        unsure = any(
            self.unsure(value, cast("q.Item", item).value, closed)
            for value, item in zip(values, closed.block.items, strict=True)
        )
        if not unsure:
            return there
        if len(values) != 1:
            message, help_line = (
                "several values are looked for, and some may be none",
                "write it with `exists`",
            )
            raise self.world.report.error("sql-nested-none", message, span, help_line)
        n, present = self.summed(closed, ("n", "present"))
        unknown = s.Binary(
            "or", s.Binary("<", present, n), s.Binary("and", s.Binary(">", n, s.Int(0)), s.IsNone(values[0]))
        )
        return s.IfExpr(
            there, s.Bool(value=True), s.IfExpr(unknown, s.NoneValue(), s.Bool(value=False)), span=span
        )

    def unsure(self, value: s.Expr, own: s.Expr, closed: _Closed) -> bool:
        """Whether a value, or that of a nested query, may be none."""
        inner, scope = closed.block, self.world.scope
        return may_be_none(self.outer, self.names.rows, value, scope) or may_be_none(
            inner, self.names_of(inner).rows, own, scope
        )

    def quantified(self, nested: q.Nested, body: q.Select) -> s.Expr:
        """`x < any (query)`, `x < all (query)`: the least and greatest row decide, none makes them unknown."""
        (value,), span, every = self.compared(nested), nested.span, nested.word == "all"
        items = self.items(body, 1, span)
        if _is_single(body):
            return s.Binary(nested.op, value, self.single(body, items[0], "left"), span=span)
        closed = self.closed(_with_items(body, items))
        n, present, least, greatest = self.summed(closed, ("n", "present", "least", "greatest"))
        compare = [s.Binary(nested.op, value, side, span=span) for side in (least, greatest)]
        match nested.op:
            case "==" | "!=":
                test: s.Expr = s.Binary("and" if every else "or", *compare, span=span)
            case "<" | "<=":
                test = compare[0 if every else 1]
            case _:
                test = compare[1 if every else 0]
        decided = s.Call("is_false" if every else "is_true", (test,), span=span)
        gap = s.IfExpr(s.Binary("<", present, n), s.NoneValue(), test, span=span)
        certain = s.IfExpr(decided, s.Bool(value=not every), gap, span=span)
        return s.IfExpr(s.Binary("==", n, s.Int(0)), s.Bool(value=every), certain, span=span)

    def unlimited(
        self, closed: _Closed, values: list[s.Expr]
    ) -> tuple[q.Select, list[s.Expr], tuple[s.Expr, ...]]:
        """A block over the rows of a query: nothing but conditions, what its values are there, and the keys."""
        keys = tuple(key for key, _ in closed.keys)
        if (
            not closed.block.group
            and closed.block.limit is None
            and not closed.block.offset
            and not closed.block.distinct
        ):
            return closed.block, values, keys
        block, span = self.keyed(closed), closed.block.span
        order = [self.ordering(each.value, block) for each in block.order]
        shown = [q.Item(each, self.fresh("value"), span=each.span) for each in (*values, *keys)]
        read: list[s.Expr] = [s.Name(cast("str", item.name), span=item.span) for item in shown]
        where: s.Expr | None = None
        if keys and (block.limit is not None or block.offset):  # of each key the first
            shown += [q.Item(each, self.fresh("order"), span=each.span) for each in order]
            by = [s.Name(cast("str", item.name)) for item in shown[len(read) :]]
            numbered = tuple(evolve(each, value=name) for each, name in zip(block.order, by, strict=True))
            over, number = (
                q.Over("number", tuple(read[len(values) :]), numbered, span=span),
                self.fresh("number"),
            )
            tests = [s.Binary(">", s.Name(number), s.Int(block.offset))] if block.offset else []
            if block.limit is not None:
                tests.append(s.Binary("<=", s.Name(number), s.Int(block.limit + block.offset)))
            block, where = (
                evolve(block, order=(), limit=None, offset=0, ranks=((number, over),)),
                s.joined("and", tests),
            )
        name = self.declared(evolve(block, items=tuple(shown)))
        around = q.Select((), (q.Source(name, span=span),), where, span=span)
        return around, read[: len(values)], tuple(read[len(values) :])

    def ordering(self, value: s.Expr, block: q.Select) -> s.Expr:
        """What rows are ordered by: a number, or a name of the select list, is what stands there."""
        for place, item in enumerate(block.items):
            named = isinstance(value, s.Name) and isinstance(item, q.Item) and item.name == value.name
            if isinstance(item, q.Item) and (value == s.Int(place + 1) or named):
                return item.value
        return value

    def summed(self, closed: _Closed, asked: tuple[str, ...]) -> list[s.Expr]:
        """Joins with what the rows of a query come to, and how it is read.

        `asked`: n (rows), present (rows that are not none), least, greatest.
        """
        names = [self.fresh("key") for _ in closed.keys]
        block, (value,), keys = self.unlimited(closed, [cast("q.Item", closed.block.items[0]).value])
        functions = {
            "n": s.Call("count", ()), "present": s.Call("count", (value,)), "least": s.Call("min", (value,)),
            "greatest": s.Call("max", (value,)),
        }  # fmt: skip
        columns = [q.Item(functions[each], self.fresh(each), span=closed.block.span) for each in asked]
        found = [q.Item(key, name, span=key.span) for key, name in zip(keys, names, strict=True)]
        grouped = evolve(block, items=(*found, *columns), group=keys)
        label = self.label("nested")
        self.join(self.declared(grouped), label, self.tied(closed, label, names), "left", block.span)
        read: list[s.Expr] = []
        for each, column in zip(asked, columns, strict=True):
            member = _of(label, cast("str", column.name), closed.block.span)
            read.append(s.Call("coalesce", (member, s.Int(0))) if each in ("n", "present") else member)
        return read

    def single(self, body: q.Select, item: s.Expr, kind: str) -> s.Expr:
        """A value of a query that has aggregates alone: made of these behind the join."""
        having = body.having if body.having is not None and body.having is not item else None
        parts: dict[s.Expr, str] = {}
        for part in (*_aggregates(item), *(() if having is None else _aggregates(having))):
            parts.setdefault(part, self.fresh(title(part) or "part"))
        if not parts:  # `exists (select 1 from t having ...)` of nothing that is counted
            parts[s.Call("count", ())] = self.fresh("count")
        items = tuple(q.Item(part, name, span=part.span) for part, name in parts.items())
        closed = self.closed(
            evolve(body, items=items, having=None, distinct=False, order=(), limit=None, offset=0)
        )
        names = [self.fresh("key") for _ in closed.keys]
        keys = [q.Item(key, name, span=key.span) for (key, _), name in zip(closed.keys, names, strict=True)]
        counts = any((aggregate_of(part) or "").startswith("count") for part in parts)
        strict = kind == "inner" and not counts and having is None and _is_lost(item)
        block, label = self.keyed(closed), self.label("nested")
        name = self.declared(evolve(block, items=(*keys, *closed.block.items)))
        self.join(name, label, self.tied(closed, label, names), "inner" if strict else "left", body.span)

        def read(node: s.Node) -> s.Node:
            if node not in parts:
                return node if isinstance(node, q.Nested) else rebuild(node, read)
            member = _of(label, parts[cast("s.Expr", node)], node.span)
            if (aggregate_of(node) or "").startswith("count"):
                return s.Call("coalesce", (member, s.Int(0)), span=node.span) if not strict else member
            return member

        value = self.replaced(cast("s.Expr", read(item)))
        if having is None:
            return value
        return s.IfExpr(self.replaced(cast("s.Expr", read(having))), value, s.NoneValue(), span=item.span)

    def only(self, body: q.Select, item: s.Expr, kind: str) -> s.Expr:
        """The value of a query that has at most one row; it is a trap to ask where there are more."""
        closed = self.closed(_with_items(body, (item,)))
        if kind == "left" or body.limit != 1:
            n, value = self.summed(closed, ("n", "least"))
            return s.IfExpr(s.Call("one row", (n,), span=item.span), value, s.NoneValue(), span=item.span)
        block, values, keys = self.unlimited(closed, [item])
        columns = [q.Item(each, self.fresh("of"), span=item.span) for each in (*values, *keys)]
        label = self.label("nested")
        name = self.declared(evolve(block, items=tuple(columns)))
        names = [cast("str", column.name) for column in columns]
        self.join(name, label, self.tied(closed, label, names[1:]), "inner", body.span)
        return _of(label, names[0], item.span)

    # -- what ties a nested query to the block around it

    def keyed(self, closed: _Closed) -> q.Select:
        """The block with its groups told apart by the keys, too."""
        block = closed.block
        keys = tuple(key for key, _ in closed.keys)
        grouped = block.group or any(True for item in block.items for _ in _aggregates(item))
        return evolve(block, group=(*block.group, *keys)) if grouped else block

    def tied(self, closed: _Closed, label: str, names: list[str]) -> list[s.Expr]:
        """The conditions that a row of the block around it is joined by."""
        sides = [(value, _of(label, name)) for (_, value), name in zip(closed.keys, names, strict=True)]
        if closed.same:
            return [s.Call("alike", side) for side in sides]
        return [s.Binary("==", *side, span=side[0].span) for side in sides]

    def join(self, name: str, label: str, on: list[s.Expr], kind: str, span: Span | None) -> None:
        """One more source."""
        joining = q.Joining(kind, s.joined("and", on) if on else None, span=span)
        self.added.append(q.Source(name, label, joining, span=span))

    def closed(self, body: q.Select) -> _Closed:
        """A nested block as one that reads nothing of the block around it."""
        inner = self.names_of(body)
        found = self.reads(body, inner)
        if not found:
            return _Closed(body)
        if all(source.joining is None or source.joining.kind == "inner" for source in body.sources):
            moved = [
                e
                for x in body.sources
                if x.joining is not None and x.joining.on is not None
                for e in conjuncts(x.joining.on)
            ]
            sources = tuple(
                evolve(x, joining=None if x.joining is None else evolve(x.joining, on=None)) for x in body.sources
            )  # fmt: skip
            where = [*moved, *(conjuncts(body.where) if body.where is not None else ())]
            body = evolve(body, sources=sources, where=s.joined("and", where) if where else None)
        keys: list[tuple[s.Expr, s.Expr]] = []
        kept: list[s.Expr] = []
        for conjunct in conjuncts(body.where) if body.where is not None else ():
            key = self.key(conjunct, inner)
            kept.append(conjunct) if key is None else keys.append(key)
        tied = evolve(body, where=s.joined("and", kept) if kept else None)
        if not self.reads(tied, inner):
            return _Closed(tied, tuple(keys))
        return self.over_values(body, found, inner)

    def key(self, conjunct: s.Expr, inner: _Names) -> tuple[s.Expr, s.Expr] | None:
        """Both sides of an equality between a nested query and the block around it."""
        match conjunct:
            case s.Binary("==", a, b) if not _has_nested(conjunct):
                for own, other in ((a, b), (b, a)):
                    if (
                        not self.reads(own, inner)
                        and self.reads(other, inner)
                        and not self.is_of(other, inner)
                    ):
                        return (own, other) if self.is_of(own, inner) else None
            case _:
                pass
        return None

    def is_of(self, node: s.Node, inner: _Names) -> bool:
        """Whether an expression names a column of the nested query."""
        match node:
            case s.Name() | s.Member(s.Name()):
                return inner.has(node)
            case _:
                return any(self.is_of(child, inner) for child in children(node))

    def reads(self, node: s.Node, inner: _Names) -> list[s.Expr]:
        """The columns of the block around that a part of a nested query reads."""
        found: list[s.Expr] = []

        def note(expr: s.Expr) -> s.Expr:
            if all(self.names.place(expr) != self.names.place(other) for other in found):
                found.append(expr)
            return expr

        _mapped(node, (inner,), self.names, note, self.names_of)
        return found

    def over_values(self, body: q.Select, found: list[s.Expr], inner: _Names) -> _Closed:
        """A nested block joined with the different values of the columns that it reads of the block around it."""
        names = [self.fresh(each.name if isinstance(each, s.Name | s.Member) else "value") for each in found]
        shown = tuple(q.Item(each, name, span=each.span) for each, name in zip(found, names, strict=True))
        where = s.joined("and", self.plain) if self.plain else None
        sources, _ = self.conditions()
        values = q.Select(shown, sources, where, distinct=True, span=body.span)
        name, label = self.declared(values), self.label("around")

        def read(expr: s.Expr) -> s.Expr:
            at = next(i for i, other in enumerate(found) if self.names.place(expr) == self.names.place(other))
            return _of(label, names[at], expr.span)

        mapped = cast("q.Select", _mapped(body, (inner,), self.names, read, self.names_of))
        around = q.Source(name, label, span=body.span)
        early = any(x.joining is not None and x.joining.kind != "inner" for x in body.sources)
        first, *rest = mapped.sources
        first = evolve(first, joining=q.Joining("inner", span=body.span)) if early else first
        sources = (around, first, *rest) if early else (*mapped.sources, around)
        keys = tuple((_of(label, name, each.span), each) for name, each in zip(names, found, strict=True))
        return _Closed(evolve(mapped, sources=sources), keys, same=True)


def _mapped(
    node: s.Node, inner: tuple[_Names, ...], outer: _Names, swap: Callable[[s.Expr], s.Expr],
    names_of: Callable[[q.Select], _Names],
) -> s.Node:  # fmt: skip
    """A part of a nested query with the columns of the block around it (`outer`) swapped. `inner`: the blocks in between."""

    def rewrite(node: s.Node, inner: tuple[_Names, ...]) -> s.Node:
        match node:
            case s.Name() | s.Member(s.Name()):
                known = any(names.has(node) for names in inner)
                return swap(node) if not known and outer.has(node) else node
            case q.Select():
                names = names_of(node)
                aliases = frozenset(
                    item.name for item in node.items if isinstance(item, q.Item) and item.name
                )
                around = inner if inner and inner[-1] == names else (*inner, names)
                named = (*around, evolve(names, more=aliases))
                behind = ("group", "having", "order")
                parts = {each: _each(getattr(node, each), lambda x: rewrite(x, named)) for each in behind}
                before = ("items", "sources", "where")
                parts |= {each: _each(getattr(node, each), lambda x: rewrite(x, around)) for each in before}
                return evolve(node, **parts)
            case _:
                return rebuild(node, lambda child: rewrite(child, inner))

    return rewrite(node, inner)


def _each(value: object, rewrite: Callable[[s.Node], s.Node]) -> object:
    if isinstance(value, tuple):
        return tuple(map(rewrite, cast("tuple[s.Node, ...]", value)))
    return None if value is None else rewrite(cast("s.Node", value))


def _of(label: str, name: str, span: Span | None = None) -> s.Expr:
    return s.Member(s.Name(label, span=span), name, span=span)


def _there(label: str, mark: str) -> s.Expr:
    """Whether a left join has found a partner."""
    return s.Unary("not", s.IsNone(_of(label, mark)))


def _is_single(block: q.Select) -> bool:
    """Whether a query has one row, whatever rows its sources have: it has aggregates, and nothing to group by."""
    if block.group or (block.limit == 0 or block.offset):
        return False
    return any(
        True for part in (*block.items, *([block.having] if block.having else [])) for _ in _aggregates(part)
    )


def _with_items(block: q.Select, values: tuple[s.Expr, ...]) -> q.Select:
    """A block with these values; of `exists (select * ...)` there are none."""
    return evolve(block, items=tuple(q.Item(value, span=value.span) for value in values))


def _is_lost(expr: s.Expr) -> bool:
    """Whether what is made of aggregates is none where they are."""
    match expr:
        case _ if aggregate_of(expr):
            return True
        case s.Binary(op, left, right) if op in ARITHMETIC:
            return _is_lost(left) or _is_lost(right)
        case s.Unary("-", value):
            return _is_lost(value)
        case _:
            return False
