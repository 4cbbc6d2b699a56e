"""The arrow from a query to its relational algebra. What a source is, the language around it says."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, cast

from frontends.sql import decimals
from frontends.sql import syntax as q
from frontends.sql import typed as r
from frontends.sql.aggregates import aggregate_of, has_aggregate
from frontends.sql.bands import bands
from frontends.sql.columns import Column, columns, sources, substitute
from frontends.sql.dates import DATE, days
from frontends.sql.days import as_time
from frontends.sql.elements import Elements, elements
from frontends.sql.expressions import RowExpressions
from frontends.sql.groups import Groups
from frontends.sql.operations import total
from frontends.sql.values import Found, as_decimal, common, convert, spelled, strip
from river.classes import define, evolve, field, frozen
from river.diagnostics import closest
from river.il.trees import children, fresh, rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from river.lang.scope import Scope
    from river.source import Span


def select(
    block: q.Select, rows: tuple[t.Record, ...], wanted: t.Record | None, scope: Scope, report: Report
) -> r.Relation:
    """The algebra of `block` over sources with these rows; its own rows are `wanted`, or follow from the select list.

    Raises: Failed; the errors (codes sql-* and lang-*) are in the report.
    """
    return _Select(block, rows, wanted, scope, report).relation()


def written_out(
    block: q.Select, rows: tuple[t.Record, ...], scope: Scope, report: Report, *, named: bool
) -> tuple[q.Item, ...]:
    """The select list with its stars written out. `named`: columns get their names from it."""
    return _Select(block, rows, None if named else t.Record(()), scope, report).items()


def joined_by_name(block: q.Select, rows: tuple[t.Record, ...]) -> q.Select:
    """The query with the columns of its natural joins written out."""
    sources: list[q.Source] = []
    known: set[str] = set()
    for source, row in zip(block.sources, rows, strict=True):
        names = [name for name, _ in row.fields]
        if source.joining is not None and source.joining.natural:
            using = tuple(name for name in names if name in known)
            source = evolve(source, joining=evolve(source.joining, using=using, natural=False))
        sources.append(source)
        known.update(names)
    return evolve(block, sources=tuple(sources))


def with_elements(
    block: q.Select,
    row_of: Callable[[q.Source], t.Record],
    scope: Scope,
    report: Report,
    around: tuple[q.Source, ...] = (),
) -> q.Select:
    """The block with the columns of its sources of values; `around`: the sources of the blocks that it stands in."""
    sources: list[q.Source] = []
    for source in block.sources:
        if isinstance(source, q.Unnest):
            before = evolve(block, sources=tuple(sources))
            own = _Select(before, tuple(map(row_of, sources)), None, scope, report)
            near = dict(zip(own.labels, own.rows, strict=True))
            all_ = {each.label: row_of(each) for each in around} | near
            source = evolve(source, row=_nearest(source, near, all_, scope, report).row)
        sources.append(source)
    return evolve(block, sources=tuple(sources))


def _nearest(
    source: q.Unnest,
    near: Mapping[str, t.Record],
    around: Mapping[str, t.Record],
    scope: Scope,
    report: Report,
) -> Elements:
    """What a source of values is; names of the sources that are near hide those around."""
    try:
        return elements(source, RowExpressions(Report(), scope, tuple(near), tuple(near.values()), _INSIDE))
    except Failed:
        return elements(source, RowExpressions(report, scope, tuple(around), tuple(around.values()), _INSIDE))


_INSIDE = "inside of `unnest`"


def may_be_none(block: q.Select, rows: tuple[t.Record, ...], expr: s.Expr, scope: Scope) -> bool:
    """Whether a value over the sources of `block` may be none, as far as its columns are known."""
    try:
        found = _Select(block, rows, None, scope, Report()).over_rows("here").find(expr)
    except Failed:
        return True
    return isinstance(found.type, t.Optional)


def title(expr: s.Expr) -> str | None:
    """The name of a column of this value, if it is a column or an aggregate of one."""
    match expr:
        case s.Name(name) | s.Member(_, name):
            return name
        case s.Call(_, args) if (function := aggregate_of(expr)) is not None:
            if isinstance(expr, q.Folded):
                function = expr.function
            if not args:
                return function
            return f"{function}_{args[0].name}" if isinstance(args[0], s.Name | s.Member) else None
        case _:
            return None


def _made_up(expr: s.Expr, place: int) -> Iterator[str]:
    """Names of a column that has none: that of the function, its number, or others."""
    if isinstance(expr, s.Call) and expr.function.isidentifier():
        yield expr.function.lower()
    yield from (f"column{number}" for number in count(place + 1))


@frozen
class _Named:
    """A result column: its name and value."""

    name: str
    value: Found


@define
class _Select:
    block: q.Select
    rows: tuple[t.Record, ...]
    wanted: t.Record | None
    scope: Scope
    report: Report
    labels: tuple[str, ...] = field(init=False)
    own: tuple[t.Record, ...] = field(init=False)
    inputs: dict[int, int] = field(init=False)
    """The number of each source among those that are relations."""
    shown: int = 0
    """How many columns the select list has, without those behind it."""

    def __attrs_post_init__(self) -> None:
        self.labels = tuple(source.label for source in self.block.sources)
        self.own, self.rows = self.rows, ()
        self.rows = self.rows_at(len(self.own))
        real = [i for i, source in enumerate(self.block.sources) if not isinstance(source, q.Unnest)]
        self.inputs = {i: number for number, i in enumerate(real)}

    def kind(self, index: int) -> str:
        """How source `index` is joined with those before it."""
        joining = self.block.sources[index].joining
        return "inner" if joining is None else joining.kind

    def rows_at(self, end: int) -> tuple[t.Record, ...]:
        """The rows of the sources before number `end`, as their joins leave them: what may lack a partner may be none."""
        return tuple(_loosened(row) if self.lacks(i, end) else row for i, row in enumerate(self.own[:end]))

    def lacks(self, index: int, end: int) -> bool:
        """Whether the joins before number `end` may give rows without one of source `index`."""
        later = (self.kind(i) for i in range(index + 1, end))
        return self.kind(index) in ("left", "full") or any(kind in ("right", "full") for kind in later)

    def relation(self) -> r.Relation:
        """The whole query."""
        block, before = self.block, self.report.errors
        self.unique_labels()
        if block.qualify is not None:
            message, help_line = (
                "`qualify` is a condition on numbers of rows",
                "these are made by `row_number() over (...)`",
            )
            self.report.error("sql-qualify", message, block.qualify.span, help_line)
        items = self.items()
        self.shown = len(items)
        items, order = self.with_order(items)
        block = self.block = self.without_aliases(items)
        conditions = self.conditions()
        grouping = bool(block.group) or any(has_aggregate(item.value) for item in items)
        grouping = grouping or (block.having is not None and has_aggregate(block.having))
        if block.having is not None and not grouping:
            self.report.error(
                "sql-having", "`having` is a condition on groups, here are none", block.having.span
            )
        found = self.grouped(items, conditions) if grouping else self.plain(items, conditions)
        if self.report.errors > before:
            raise Failed
        if block.distinct:
            self.comparable(found.row, block.span)
            found = r.Distinct(found, found.row, span=block.span)
        for name, over in block.ranks:
            found = self.ranked(found, name, over)
        if block.limit is not None or block.offset:
            found = self.first(found, order)
        return found

    # -- order

    def with_order(
        self, items: tuple[q.Item, ...]
    ) -> tuple[tuple[q.Item, ...], tuple[tuple[int, q.OrderKey], ...]]:
        """The select list with columns behind it by which rows are ordered, and which each of these is."""
        block = self.block
        if block.limit is None and not block.offset:
            if block.order:
                message = "a relation has no order: without `limit` it changes nothing"
                self.report.remark("sql-order", message, block.order[0].span)
            return items, ()
        found = list(items)
        order: list[tuple[int, q.OrderKey]] = []
        names = (
            [item.name for item in items] if self.wanted is None else [name for name, _ in self.wanted.fields]
        )
        for each in block.order:
            value = self.numbered(each.value, items)
            place = next((i for i, item in enumerate(found) if item.value == value), None)
            if isinstance(value, s.Name) and value.name in names:
                place = names.index(value.name)
            if place is None:
                if block.distinct:
                    message = "different rows are ordered by what stands in the select list"
                    raise self.report.error("sql-order", message, each.span)
                taken = {
                    *names,
                    *(item.name for item in found),
                    *(name for row in self.rows for name, _ in row.fields),
                }
                place = len(found)
                found.append(q.Item(value, fresh("order", {name for name in taken if name}), span=each.span))
            order.append((place, each))
        return tuple(found), tuple(order)

    def first(self, found: r.Relation, order: tuple[tuple[int, q.OrderKey], ...]) -> r.Relation:
        """The first rows, without the columns behind the select list."""
        row = t.Record(found.row.fields[: self.shown])
        parts = [part for i, each in order for part in self.order_of(found.row.fields[i][0], each, found.row)]
        make: s.Expr = s.Name("r")
        if row != found.row:
            make = s.RecordValue(
                tuple(s.FieldValue(name, s.Member(s.Name("r"), name)) for name, _ in row.fields)
            )
        most = None if self.block.limit is None else self.block.limit + self.block.offset
        return r.Top(
            found, row, t.UNIT, s.Lambda(("r",), s.TupleValue(())), *_ordered(parts), s.Lambda(r.NUMBERS, make),
            most=most, skipped=self.block.offset, span=self.block.span,
        )  # fmt: skip

    def ranked(self, found: r.Relation, name: str, over: q.Over) -> r.Relation:
        """The rows with their numbers."""
        keys = [s.Member(s.Name("r"), cast("s.Name", key).name) for key in over.keys]
        kinds = dict(found.row.fields)
        parts = [
            part
            for each in over.order
            for part in self.order_of(cast("s.Name", each.value).name, each, found.row)
        ]
        shown = [s.FieldValue(column, s.Member(s.Name("r"), column)) for column, _ in found.row.fields]
        make = s.RecordValue((*shown, s.FieldValue(name, s.Name(over.function))))
        key = s.Lambda(("r",), _key(list(keys)))
        return r.Top(
            found, t.Record((*found.row.fields, (name, t.I64))), _key_type([kinds[key.name] for key in keys]), key,
            *_ordered(parts), s.Lambda(r.NUMBERS, make), by=over.function, span=over.span,
        )  # fmt: skip

    def order_of(self, name: str, order: q.OrderKey, row: t.Record) -> list[Found]:
        """What rows are ordered by for one column: none is greater than all that is there, unless the text says otherwise."""
        kind, value = dict(row.fields)[name], s.Member(s.Name("r"), name, span=order.span)
        inner, found = strip(kind), list[Found]()
        if isinstance(kind, t.Optional):
            last = order.descending if order.first is None else order.first
            missing = s.IsNone(value)
            found.append(Found(s.Unary("not", missing) if last else missing, t.BOOL))
        made = self.down(Found(value, inner) if inner == kind else Found(s.Force(value), inner), order)
        if inner == kind:
            return [*found, *made]
        return [
            *found,
            *(Found(s.IfExpr(s.IsNone(value), s.NoneValue(), x.expr), t.Optional(x.type)) for x in made),
        ]

    def down(self, found: Found, order: q.OrderKey) -> list[Found]:
        """A value as what ascends where it shall; both zeros are one, and NaN is the greatest number."""
        value, kind = found.expr, found.type
        if kind in t.FLOATS:
            value = s.Binary("+", value, s.Float(0.0)) if kind == t.F64 else value
            if not order.descending:
                return [Found(value, kind)]
            number = s.Unary("not", s.Call("is_nan", (value,)))
            return [Found(number, t.BOOL), Found(s.Unary("-", value), kind)]
        if not order.descending:
            return [found]
        match kind:
            case t.BOOL:
                return [Found(s.Unary("not", value), kind)]
            case t.TIME | t.DURATION:
                return [Found(s.Unary("~", s.Call("micros", (value,))), t.I64)]
            case _ if kind == DATE:
                return [Found(s.Unary("~", days(value)), t.I64)]
            case t.STRING:
                return [Found(s.Call("cql.descending", (value,)), t.List(t.I64))]
            case t.Decimal():
                return [Found(s.Unary("-", value), kind)]
            case _ if kind in t.INTEGERS:
                return [Found(s.Unary("~", value), kind)]
            case _:
                message = f"rows are not ordered by `{spelled(kind)}` from the greatest on"
                raise self.report.error("sql-order", message, order.span)

    # -- the parts of the text

    def unique_labels(self) -> None:
        """Refuses two sources of one name."""
        for i, source in enumerate(self.block.sources):
            if source.label in self.labels[:i]:
                help_line = "give one of them another name: `as other`"
                self.report.error(
                    "sql-duplicate-source", f"`{source.label}` stands twice", source.span, help_line
                )

    def items(self) -> tuple[q.Item, ...]:
        """The select list with its stars written out."""
        found: list[q.Item] = []
        for item in self.block.items:
            match item:
                case q.Item():
                    found.append(item)
                case q.Star(label, without):
                    if label is not None and label not in self.labels:
                        near = closest(label, self.labels)
                        self.report.error(
                            "sql-unknown-source", f"no source is called `{label}`", item.span, near
                        )
                    every = self.every_column(label, item.span)
                    titles = [title(each.value) for each in every]
                    for name in (name for name in without if name not in titles and not item.spread):
                        near = closest(name, [each for each in titles if each])
                        self.report.error("sql-unknown-column", f"unknown column `{name}`", item.span, near)
                    found += [each for each, of in zip(every, titles, strict=True) if of not in without]
        return tuple(found)

    def without_aliases(self, items: tuple[q.Item, ...]) -> q.Select:
        """The query with names from the select list written out in `group by` and `having`; columns come first."""
        known = {name for row in self.rows for name, _ in row.fields}
        values = {item.name: item.value for item in items if item.name is not None and item.name not in known}

        def rewrite(node: s.Node) -> s.Node:
            match node:
                case s.Name(name) if name in values:
                    return evolve(values[name], span=node.span)
                case s.Call(_, args) if aggregate_of(node):
                    return evolve(node, args=args)
                case _:
                    return rebuild(node, rewrite)

        group = tuple(cast("s.Expr", rewrite(self.numbered(expr, items))) for expr in self.block.group)
        having = None if self.block.having is None else cast("s.Expr", rewrite(self.block.having))
        return evolve(self.block, group=group, having=having)

    def numbered(self, expr: s.Expr, items: tuple[q.Item, ...]) -> s.Expr:
        """What `group by 2` means: the second item of the select list."""
        if not isinstance(expr, s.Int):
            return expr
        if not 1 <= expr.value <= len(items):
            message = f"the select list has no item {expr.value}"
            raise self.report.error("sql-group-number", message, expr.span)
        return evolve(items[expr.value - 1].value, span=expr.span)

    def every_column(self, label: str | None, span: Span | None) -> list[q.Item]:
        """The columns of one source or of all; of all, those alike get the source's name in front."""
        shown = [(own, row) for own, row in zip(self.labels, self.rows, strict=True) if label in (None, own)]
        found: list[q.Item] = []
        merged = self.merged() if label is None else dict[str, int]()
        hidden = {(source.label, source.hidden) for source in self.block.sources}
        names = [name for own, row in shown for name, _ in row.fields if (own, name) not in hidden]
        for own, row in shown:
            for name, _ in row.fields:
                if (own, name) in hidden or (name in merged and self.labels[merged[name]] != own):
                    continue
                value = s.Member(s.Name(own, span=span), name, span=span)
                alike = self.wanted is None and names.count(name) > 1 and name not in merged
                found.append(q.Item(value, f"{own}_{name}" if alike else None, span=span))
        return found

    def over_rows(self, place: str) -> RowExpressions:
        """Expressions over the sources' rows, in a clause."""
        return RowExpressions(self.report, self.scope, self.labels, self.rows, place, merged=self.merged())

    def merged(self) -> Mapping[str, int]:
        """The columns after `using`, and the source of each that a bare name means: that which always has it."""
        found: dict[str, int] = {}
        for i, source in enumerate(self.block.sources):
            joining = source.joining
            for name in () if joining is None or joining.kind == "full" else joining.using:
                first = next((j for j in range(i) if self.rows[j].field(name) is not None), i)
                found.setdefault(name, first)
                if joining is not None and joining.kind == "right":
                    found[name] = i
        return found

    def conditions(self) -> tuple[s.Expr, ...]:
        """The conjuncts of `where`, checked."""
        found: list[s.Expr] = [] if self.outer else [c for i in range(len(self.own)) for c in self.matched(i)]
        if self.block.where is not None:
            for conjunct in conjuncts(self.block.where):
                with self.report.recover():
                    found.append(self.over_rows("in `where`").condition(conjunct))
        return tuple(found)

    @property
    def outer(self) -> bool:
        """Whether some join is an outer one: then each condition of `on` stays with its join."""
        return any(self.kind(i) != "inner" for i in range(len(self.own)))

    def matched(self, index: int) -> tuple[s.Expr, ...]:
        """The checked conjuncts that join source `index` with those before it."""
        found: list[s.Expr] = []
        for conjunct in self.joining(index):
            with self.report.recover():
                found.append(self.seen(index).condition(conjunct))
        return tuple(found)

    def elements(self, index: int) -> Elements:
        """What source `index`, one of values, is."""
        source = self.block.sources[index]
        assert isinstance(source, q.Unnest)  # noqa: S101 - it has no relation
        over = RowExpressions(self.report, self.scope, self.labels[:index], self.rows_at(index), _INSIDE)
        return elements(source, over)

    def seen(self, index: int) -> RowExpressions:
        """Expressions over what the condition of the join with source `index` sees: this source and those before it."""
        rows = (*self.rows_at(index), self.own[index])
        return RowExpressions(self.report, self.scope, self.labels[: index + 1], rows, "in `on`")

    def joining(self, index: int) -> tuple[s.Expr, ...]:
        """The conjuncts that join source `index` with those before it, `using` written out."""
        joining = self.block.sources[index].joining
        if joining is None:
            return ()
        found: list[s.Expr] = [] if joining.on is None else list(conjuncts(joining.on))
        span, before = joining.span, self.rows[:index]
        for name in joining.using:
            having = [i for i, row in enumerate(before) if row.field(name) is not None]
            if not having or self.rows[index].field(name) is None:
                side = "right" if having else "left"
                self.report.error("sql-unknown-column", f"the {side} side of the join has no `{name}`", span)
                continue
            own, other = (s.Member(s.Name(self.labels[i]), name, span=span) for i in (having[0], index))
            found.append(s.Binary("==", own, other, span=span))
        return tuple(found)

    # -- the result columns

    def named(self, items: tuple[q.Item, ...], over: RowExpressions) -> tuple[_Named, ...]:
        """The select list checked, with the names and types of the result."""
        found: list[_Named] = []
        fields = None if self.wanted is None else self.wanted.fields
        if fields is not None and len(fields) != self.shown:
            message = f"the type has {len(fields)} columns, the select list {self.shown}"
            raise self.report.error("sql-arity", message, self.block.span)
        taken: set[str] = set()
        for i, item in enumerate(items):
            with self.report.recover():
                value = over.find(item.value)
                if fields is None or i >= len(fields):
                    name = item.name or title(item.value)
                    if name is None:
                        name = next(each for each in _made_up(item.value, i) if each not in taken)
                    if name in taken:
                        help_line = "rename one of them with `as`"
                        raise self.report.error(
                            "sql-duplicate-column", f"two columns `{name}`", item.span, help_line
                        )
                    taken.add(name)
                    found.append(_Named(name, value))
                    continue
                name, type_ = fields[i]
                if item.name not in (None, name):
                    message = f"column {i + 1} is declared as `{name}`, here it is called `{item.name}`"
                    self.report.error("sql-column-name", message, item.span, f"write `as {name}`, or nothing")
                found.append(_Named(name, self.fitted(value, type_, name, item)))
        return tuple(found)

    def fitted(self, found: Found, type_: t.Type, name: str, item: q.Item) -> Found:
        """A value as the declared type of its column."""
        if found.type == type_ or t.Optional(found.type) == type_:
            return found
        kind, wanted, span = strip(found.type), strip(type_), item.span
        loose = isinstance(found.type, t.Optional)
        if loose and not isinstance(type_, t.Optional):
            help_line = (
                f"declare it as `{spelled(found.type)}`, or say what stands for none: `coalesce(..., ...)`"
            )
            raise self.report.error(
                "sql-may-be-none", f"`{name}` may be none, but is `{spelled(type_)}`", span, help_line
            )
        if isinstance(wanted, t.Primitive) and (kind, wanted) in _CONVERSIONS:
            if kind in t.FLOATS and wanted in t.INTEGERS:
                message = (
                    f"`{name}` is a whole number: the fraction of this `{spelled(found.type)}` is dropped"
                )
                self.report.warn("sql-truncates", message, span, f"declare `{name}` as `float` to keep it")
            return convert(found, wanted)
        if (kind, wanted) == (DATE, t.TIME):
            return as_time(self.over_rows("here"), found)
        if isinstance(wanted, t.Decimal):
            made, _ = common(found, Found(s.Name("wanted"), wanted))
            own = strip(made.type)
            if isinstance(own, t.Decimal) and own.scale <= wanted.scale:
                return as_decimal(made, wanted)
        message = f"`{name}` is declared as `{spelled(type_)}`, this is `{spelled(found.type)}`"
        help_line = "write `cast(... as date)`" if (kind, wanted) == (t.TIME, DATE) else None
        raise self.report.error("sql-column-type", message, span, help_line)

    # -- queries without groups

    def plain(self, items: tuple[q.Item, ...], conditions: tuple[s.Expr, ...]) -> r.Relation:
        """Selection, projection and join."""
        named = self.named(items, self.over_rows("without a group"))
        needed = {column for part in named for column in columns(part.value.expr)}
        joined = self.joined(conditions, needed)
        row = t.Record(tuple((part.name, self.declared(part)) for part in named))
        values = tuple(s.FieldValue(part.name, joined.read(part.value.expr)) for part in named)
        make = s.Lambda(("r",), s.RecordValue(values))
        if isinstance(joined.relation, r.Join) and not joined.rest:
            return _projected(joined.relation, row, make.body)
        if joined.relation.row == row and all(v.value == s.Member(s.Name("r"), v.name) for v in values):
            make = r.SAME
        return _filtered(joined.relation, row, joined.rest, make, self.block.span)

    def declared(self, part: _Named) -> t.Type:
        """The type of a result column."""
        found = None if self.wanted is None else self.wanted.field(part.name)
        return found or part.value.type

    # -- queries with groups

    def grouped(self, items: tuple[q.Item, ...], conditions: tuple[s.Expr, ...]) -> r.Relation:
        """Grouping and aggregation."""
        block, before = self.block, self.report.errors
        keys = self.keys(items)
        over = Groups(
            self.report,
            self.scope,
            self.labels,
            self.rows,
            merged=self.merged(),
            keys=keys,
            grouped=bool(block.group),
            known=self.report.errors == before,
            always=bool(keys),
        )
        named = self.named(items, over)
        keep: s.Expr = s.Bool(value=True)
        if block.having is not None:
            with self.report.recover():
                keep = over.condition(block.having)
        values = [key.value for key in keys] + [a.argument for a in over.aggregates if a.argument is not None]
        joined = self.joined(conditions, {column for value in values for column in columns(value)})
        source = joined.relation
        if joined.rest:
            source = _filtered(source, source.row, joined.rest, r.SAME, self.block.span)
        row = t.Record(tuple((part.name, self.declared(part)) for part in named))
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
            dict.fromkeys(column for item in items for column in _plain_columns(item.value, self.labels))
        )
        found: dict[str, r.Key] = {}
        over = self.over_rows("in `group by`")
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

    # -- joins

    def joined(self, conditions: tuple[s.Expr, ...], needed: set[Column]) -> _Joined:
        """The sources joined from left to right; `needed`: columns that the rest of the query reads."""
        if len(self.rows) == 1:
            places: dict[Column, s.Expr] = {
                Column(0, name): s.Member(s.Name("r"), name) for name, _ in self.rows[0].fields
            }
            rest = tuple(substitute(c, places) for c in conditions)
            return _Joined(r.Input(0, self.rows[0], span=self.block.sources[0].span), places, rest)
        over = self.over_rows("in `where`")
        if not self.outer:
            return _Joins(self.block, over, list(conditions), needed, self).joined()
        lacking = {i for i in range(len(self.rows)) if self.lacks(i, len(self.rows))}
        # what reads no column says something of joined rows, too: before a join it would only make rows lack partners
        early = [c for c in conditions if sources(c) and not sources(c) & lacking]
        late = [c for c in conditions if c not in early]
        on = tuple(self.matched(i) for i in range(len(self.rows)))
        return _Joins(self.block, over, early, needed, self, late, on).joined()

    def comparable(self, row: t.Record, span: Span | None) -> None:
        """Refuses rows that cannot be told apart."""
        if not t.is_key(row):
            raise self.report.error("sql-key-type", f"rows of `{spelled(row)}` cannot be compared", span)


_CONVERSIONS = frozenset(
    {(a, b) for a in t.FLOATS for b in (t.I64, t.I32)}
    | {(a, b) for a in (t.I32, t.I64, t.U64) for b in t.FLOATS}
    | {(t.I32, t.I64), (t.F32, t.F64), (t.F64, t.F32)}
)


def conjuncts(expr: s.Expr) -> Iterable[s.Expr]:
    """The conditions that must all hold for `expr` to hold."""
    match expr:
        case s.Binary("and", left, right):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield expr


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


def _all(conditions: Iterable[s.Expr]) -> s.Expr:
    """The conjunction, in order."""
    found = tuple(conditions)
    return s.joined("and", found) if found else s.Bool(value=True)


def _filtered(
    source: r.Relation, row: t.Record, rest: tuple[s.Expr, ...], make: s.Lambda, span: Span | None
) -> r.Relation:
    """Selection and projection, unless they would do nothing."""
    if not rest and make == r.SAME:
        return source
    return r.Filter(source, row, s.Lambda(("r",), _all(rest)), make, span=span)


def _projected(join: r.Join, row: t.Record, value: s.Expr) -> r.Join:
    """A join that makes `value` of its rows `r` at once."""
    made = join.make.body
    assert isinstance(made, s.RecordValue)  # noqa: S101 - it was made so
    places = {item.name: item.value for item in made.fields if isinstance(item, s.FieldValue)}

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Member(s.Name("r"), name):
                return places[name]
            case _:
                return rebuild(node, rewrite)

    return evolve(join, row=row, make=s.Lambda(join.make.params, cast("s.Expr", rewrite(value))))


@frozen
class _Joined:
    """The sources as one relation: where each column stands in its rows `r`, and the conditions still to be applied."""

    relation: r.Relation
    places: Mapping[Column, s.Expr]
    rest: tuple[s.Expr, ...]

    def read(self, expr: s.Expr) -> s.Expr:
        """A checked expression over the rows of the joined relation."""
        return substitute(expr, self.places)

    def filtered(self, conditions: list[s.Expr], span: Span | None) -> _Joined:
        """Only the rows that meet the conditions, which are over the sources' rows."""
        rest = tuple(map(self.read, conditions))
        return evolve(self, relation=_filtered(self.relation, self.relation.row, rest, r.SAME, span))


@frozen
class _Pair:
    """An equality between what is joined so far and the next source: both sides, over the sources' rows.

    `same`: none is equal to none. `number`: they are floats, whose `=` is that of IEEE, while keys that are the same are equal.
    """

    left: Found
    right: Found
    same: bool = False
    number: bool = False

    @property
    def present(self) -> tuple[list[s.Expr], list[s.Expr]]:
        """The conditions on each side without which it equals nothing: it is there, and a number."""
        left, right = (self.real(x) for x in (self.left, self.right))
        return left, right

    def real(self, side: Found) -> list[s.Expr]:
        """The conditions on one side."""
        value = _forced(side).expr
        found = [_present(side)] if _loose(side) and not self.same else []
        return [*found, s.Binary("==", value, value, span=value.span)] if self.number else found

    @property
    def key(self) -> tuple[Found, Found]:
        """Both sides as keys; adding 0 makes one zero of both."""
        if self.same:
            return self.left, self.right
        left, right = _forced(self.left), _forced(self.right)
        if not self.number:
            return left, right
        zero = s.Float(0.0)
        return Found(s.Binary("+", left.expr, zero), left.type), Found(
            s.Binary("+", right.expr, zero), right.type
        )


@define
class _Joins:
    """Joins sources from left to right. A condition is applied as early as it can be without trapping more often."""

    block: q.Select
    over: RowExpressions
    waiting: list[s.Expr]
    needed: set[Column]
    select: _Select
    late: list[s.Expr] = field(factory=list[s.Expr])
    """Conditions on rows that may lack a partner: they come after all joins."""
    on: tuple[tuple[s.Expr, ...], ...] = ()
    """The conditions of each join that stay with it, if there are outer joins."""

    def joined(self) -> _Joined:
        """All sources."""
        found = {
            i: self.select.elements(i) for i in range(len(self.over.rows)) if i not in self.select.inputs
        }
        self.needed = self.needed.union(*(columns(each.items) for each in found.values()))
        left = self.single(0)
        for right in range(1, len(self.over.rows)):
            if right in found:
                left = self.unnested(left, right, found[right])
                continue
            step = self.step if self.select.kind(right) == "inner" else self.outer
            left = step(left, right)
        return _Joined(left.relation, left.places, tuple(left.read(c) for c in (*self.waiting, *self.late)))

    def single(self, index: int) -> _Joined:
        """One source with the conditions on it alone."""
        source, row = self.block.sources[index], self.select.own[index]
        places: dict[Column, s.Expr] = {
            Column(index, name): s.Member(s.Name("r"), name) for name, _ in row.fields
        }
        relation = r.Input(self.select.inputs[index], row, span=source.span)
        return self.narrowed(_Joined(relation, places, ()), {index}, source.span)

    def narrowed(self, found: _Joined, done: set[int], span: Span | None) -> _Joined:
        """A relation with the waiting conditions that can be applied to it."""
        own = [c for c in self.waiting if sources(c) <= done and total(c)]
        self.waiting = [c for c in self.waiting if c not in own]
        return found.filtered(own, span)

    def step(self, left: _Joined, index: int) -> _Joined:
        """`left` joined with source `index`."""
        source = self.block.sources[index]
        right = self.single(index)
        done = {column.source for column in left.places}
        own = list(self.on[index]) if self.on else []
        asked = self.waiting + own
        pairs = {i: pair for i, c in enumerate(asked) if (pair := self.pair(c, done, index)) is not None}
        own = [c for i, c in enumerate(asked) if i not in pairs and i >= len(self.waiting)]
        self.waiting = [c for i, c in enumerate(self.waiting) if i not in pairs]
        found = bands(
            [*own, *self.waiting],
            lambda e: sources(e) <= done,
            lambda e: sources(e) == {index},
            self.select.seen(index).typed,
        )
        found = None if found is None or (pairs and None in (found.low, found.high)) else found
        sides = [p.present for p in pairs.values()] + ([] if found is None else [found.present])
        left = left.filtered([c for side, _ in sides for c in side], source.span)
        right = right.filtered([c for _, side in sides for c in side], source.span)
        kept = self.kept(left, right, index, own)
        names = self.names(kept)
        values = tuple(
            s.FieldValue(names[c], _renamed(left.places[c], "l") if c in left.places else right.places[c])
            for c in kept
        )
        row = t.Record(tuple((names[c], self.type(c, index)) for c in kept))
        relation = r.Join(
            left.relation,
            right.relation,
            row,
            _key_type([p.key[0].type for p in pairs.values()]),
            s.Lambda(("l",), _key([_renamed(left.read(p.key[0].expr), "l") for p in pairs.values()])),
            s.Lambda(("r",), _key([right.read(p.key[1].expr) for p in pairs.values()])),
            s.Lambda(("l", "r"), s.RecordValue(values)),
            None if found is None else found.band(lambda e: _renamed(left.read(e), "l"), right.read),
            span=source.span,
        )
        found = _Joined(relation, {c: s.Member(s.Name("r"), names[c]) for c in kept}, ())
        if own:
            found = found.filtered(own, source.span)
        if index + 1 == len(self.over.rows):
            return found
        return self.narrowed(found, done | {index}, self.block.span)

    def kept(self, left: _Joined, right: _Joined, index: int, own: list[s.Expr]) -> list[Column]:
        """The columns of a join with source `index` that something behind it reads; `own`: conditions right behind it."""
        later = [c for conditions in self.on[index + 1 :] for c in conditions]
        read = (*self.waiting, *self.late, *later, *own)
        still = self.needed | {column for c in read for column in columns(c)}
        return [c for c in (*left.places, *right.places) if c in still] or [next(iter(left.places))]

    def unnested(self, left: _Joined, index: int, found: Elements) -> _Joined:
        """`left` joined with the items of a list that each row holds."""
        source, kind = self.block.sources[index], self.select.kind(index)
        if kind in ("right", "full"):
            message = f"a {kind} join with what each row holds has no rows of its own"
            raise self.select.report.error("sql-unnest", message, source.span, "write `left join`")
        places = {
            Column(index, name): value
            for (name, _), value in zip(found.row.fields, found.values, strict=True)
        }
        own = list(self.on[index]) if self.on else []
        kept = self.kept(left, _Joined(left.relation, places, ()), index, [])
        names = self.names(kept)
        sides = {column: _renamed(value, "l") for column, value in left.places.items()} | places
        values = tuple(s.FieldValue(names[column], sides[column]) for column in kept)
        nothing = (
            value
            if value.name in {names[c] for c in kept if c in left.places}
            else evolve(value, value=s.NoneValue())
            for value in values
        )
        relation = r.Unnest(
            left.relation,
            t.Record(tuple((names[column], self.type(column, index)) for column in kept)),
            found.type,
            s.Lambda(("l",), _renamed(left.read(found.items), "l")),
            s.Lambda(r.ITEM, _all(substitute(condition, sides) for condition in own)),
            s.Lambda(r.ITEM, s.RecordValue(values)),
            s.Lambda(("l",), s.RecordValue(tuple(nothing))) if kind == "left" else None,
            span=source.span,
        )
        joined = _Joined(relation, {c: s.Member(s.Name("r"), names[c]) for c in kept}, ())
        if index + 1 == len(self.over.rows):
            return joined
        return self.narrowed(joined, {column.source for column in left.places} | {index}, self.block.span)

    def outer(self, left: _Joined, index: int) -> _Joined:
        """`left` joined with source `index` by an outer join."""
        source, kind, right = self.block.sources[index], self.select.kind(index), self.single(index)
        done = {column.source for column in left.places}
        pairs: list[_Pair] = []
        left_can: list[s.Expr] = []
        right_can: list[s.Expr] = []
        both: list[s.Expr] = []
        for condition in self.on[index]:
            pair = self.pair(condition, done, index)
            if pair is not None:
                pairs.append(pair)
            elif sources(condition) <= {index}:
                right_can.append(condition)
            elif index not in sources(condition):
                left_can.append(condition)
            else:
                both.append(condition)
        left_can += [c for p in pairs for c in p.present[0]]
        right_can += [c for p in pairs for c in p.present[1]]
        near = bands(
            both, lambda e: sources(e) <= done, lambda e: sources(e) == {index}, self.select.seen(index).typed
        )
        near = None if near is None or (pairs and None in (near.low, near.high)) else near
        if near is not None:
            left_can += near.present[0]
            right_can += near.present[1]
        kept = self.kept(left, right, index, [])
        names = self.names(kept)
        places = {c: _renamed(left.places[c], "l") if c in left.places else right.places[c] for c in kept}

        sides = {c: _renamed(value, "l") for c, value in left.places.items()} | dict(right.places)
        meets = s.Lambda(("l", "r"), _all(substitute(c, sides) for c in both)) if both else None

        def made(side: _Joined | None) -> s.Expr:
            return s.RecordValue(
                tuple(
                    s.FieldValue(names[c], places[c] if side is None or c in side.places else s.NoneValue())
                    for c in kept
                )
            )

        relation = r.Outer(
            left.relation,
            right.relation,
            t.Record(tuple((names[c], self.type(c, index)) for c in kept)),
            _key_type([p.key[0].type for p in pairs]),
            s.Lambda(("l",), _key([_renamed(left.read(p.key[0].expr), "l") for p in pairs])),
            s.Lambda(("r",), _key([right.read(p.key[1].expr) for p in pairs])),
            s.Lambda(("l", "r"), made(None)),
            s.Lambda(("l",), _renamed(_all(map(left.read, left_can)), "l")),
            s.Lambda(("r",), _all(map(right.read, right_can))),
            s.Lambda(("l",), made(left)) if kind in ("left", "full") else None,
            s.Lambda(("r",), made(right)) if kind in ("right", "full") else None,
            meets,
            None if near is None else near.band(lambda e: _renamed(left.read(e), "l"), right.read),
            span=source.span,
        )
        return _Joined(relation, {c: s.Member(s.Name("r"), names[c]) for c in kept}, ())

    def pair(self, condition: s.Expr, done: set[int], index: int) -> _Pair | None:
        """The two sides of an equality between the joined sources and source `index`, or None.

        `is not distinct from` is one of values of the same type, which may both be none.
        """
        match condition:
            case s.Binary("==", a, b) | s.Call("is_true", (s.Call("eq3", (a, b)),)):
                same = False
            case s.Call("is_true", (s.IfExpr(unknown, s.NoneValue(), s.Binary("==", x, y)),)):  # of floats
                tests = [s.IsNone(each.value) for each in (x, y) if isinstance(each, s.Force)]
                if not tests or unknown != (tests[0] if len(tests) == 1 else s.Binary("or", *tests)):
                    return None
                a, b = (each.value if isinstance(each, s.Force) else each for each in (x, y))
                same = False
            case s.Call("same", (a, b)):
                same = True
            case _:
                return None
        for left, right in ((a, b), (b, a)):
            if isinstance(left, s.Lambda) or isinstance(right, s.Lambda):
                continue
            if sources(left) and sources(left) <= done and sources(right) == {index}:
                over = self.select.seen(index)
                pair = _Pair(over.typed(left), over.typed(right), same)
                if strip(pair.left.type) != strip(pair.right.type):  # decimals of different types
                    one, other = common(pair.left, pair.right)
                    wide = strip(one.type)
                    if same or not isinstance(wide, t.Decimal) or wide.precision == decimals.DIGITS:
                        return None
                    pair = _Pair(one, other)
                kind = strip(pair.left.type)
                if same:
                    return pair if pair.left.type == pair.right.type and t.is_key(kind) else None
                if kind == t.F64 == strip(pair.right.type):
                    return evolve(pair, number=True)
                return pair if t.is_key(kind) and not t.contains(kind, *t.FLOATS) else None
        return None

    def names(self, kept: list[Column]) -> Mapping[Column, str]:
        """The names of columns in a joined row: their own, with the source's in front where two are alike."""
        found: dict[Column, str] = {}
        for column in kept:
            alike = sum(other.name == column.name for other in kept) > 1
            name = f"{self.over.labels[column.source]}_{column.name}" if alike else column.name
            found[column] = fresh(name, set(found.values()))
        return found

    def type(self, column: Column, index: int) -> t.Type:
        """The type of a column behind the join with source `index`."""
        return dict(self.select.rows_at(index + 1)[column.source].fields)[column.name]


def _loosened(row: t.Record) -> t.Record:
    """Rows that may be missing: each column may be none."""
    return t.Record(tuple((name, t.Optional(strip(type_))) for name, type_ in row.fields))


def _loose(found: Found) -> bool:
    return isinstance(found.type, t.Optional)


def _present(found: Found) -> s.Expr:
    """That a value is there: what is not equals nothing."""
    return s.Unary("not", s.IsNone(found.expr, span=found.expr.span), span=found.expr.span)


def _forced(found: Found) -> Found:
    """A value that is there."""
    return Found(s.Force(found.expr, span=found.expr.span), strip(found.type)) if _loose(found) else found


def _ordered(parts: list[Found]) -> tuple[t.Record, s.Lambda]:
    """What rows are ordered by: its type, and how it is made of a row `r`."""
    row = t.Record(tuple((f"p{i}", part.type) for i, part in enumerate(parts)))
    value = s.RecordValue(tuple(s.FieldValue(f"p{i}", part.expr) for i, part in enumerate(parts)))
    return row, s.Lambda(("r",), value)


def _renamed(expr: s.Expr, side: str) -> s.Expr:
    """An expression over `r` as one over the parameter `side`."""

    def rewrite(node: s.Node) -> s.Node:
        return s.Name(side, span=node.span) if node == s.Name("r") else rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))


def _key(values: list[s.Expr]) -> s.Expr:
    return values[0] if len(values) == 1 else s.TupleValue(tuple(values))


def _key_type(types: list[t.Type]) -> t.Type:
    return types[0] if len(types) == 1 else t.Tuple(tuple(types)) if types else t.UNIT
