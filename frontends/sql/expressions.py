"""Expressions of a query: columns are resolved, and the conversions that SQL makes silently are written down.

What comes out is an expression of the operator language over locals: `s0`, `s1` ... are the rows of the sources, `g` a
group. Its types are the shared checker's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from attrs import define, evolve, field, frozen

from frontends.sql.typed import Aggregate, Key
from river.diagnostics import Rejected, closest
from river.il.trees import children, fresh, rebuild, walk
from river.lang import check
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import show
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from river.lang.scope import Scope
    from river.source import Span

AGGREGATES = frozenset({"count", "sum", "avg", "min", "max"})
EXTREMES = frozenset({"min", "max"})
"""Aggregates that count copies once anyhow."""
COMPARISONS = {"==": "eq3", "!=": "ne3", "<": "lt3", "<=": "le3", ">": "gt3", ">=": "ge3"}
ARITHMETIC = frozenset(["+", "-", "*", "/"])
WHOLE = (t.I32, t.I64)


@frozen
class Found:
    """A checked expression and its type."""

    expr: s.Expr
    type: t.Type


@frozen
class Column:
    """Column `name` of source number `source`."""

    source: int
    name: str


def aggregate_of(expr: s.Node) -> str | None:
    """The aggregate function that `expr` calls, or None. With two arguments `min` and `max` are ordinary functions."""
    match expr:
        case s.Call(function, args) if len(args) <= 1:
            name, _, distinct = function.lower().partition(".")
            if name not in AGGREGATES or distinct not in ("", "distinct"):
                return None
            return name if not distinct or name in EXTREMES else f"{name}_distinct"
        case _:
            return None


def has_aggregate(expr: s.Node) -> bool:
    """Whether an aggregate is called anywhere in `expr`."""
    return any(aggregate_of(node) for node in walk(expr))


@define
class Rows:
    """Expressions over the rows of the sources, each known by a label."""

    report: Report
    scope: Scope
    labels: tuple[str, ...]
    rows: tuple[t.Record, ...]
    place: str = "here"

    # -- what the two kinds of places differ in

    def locals(self) -> Mapping[str, t.Type]:
        """The names that a finished expression may use."""
        return {f"s{i}": row for i, row in enumerate(self.rows)}

    def special(self, expr: s.Expr) -> Found | None:
        """What is read otherwise than its parts say; here aggregates, which are refused."""
        if aggregate_of(expr):
            help_line = "conditions on groups stand after `having`" if self.place == "in `where`" else None
            raise self.report.error(
                "sql-aggregate-place", f"no aggregate can stand {self.place}", expr.span, help_line
            )
        return None

    # -- names

    def column(self, expr: s.Expr) -> Column | None:
        """The column that `expr` names, or None if it is no name.

        Raises: Failed, with sql-unknown-column, sql-ambiguous-column.
        """
        match expr:
            case s.Name(name):
                having = [i for i, row in enumerate(self.rows) if row.field(name) is not None]
                if len(having) > 1:
                    several = " or ".join(f"`{self.labels[i]}.{name}`" for i in having)
                    raise self.report.error(
                        "sql-ambiguous-column",
                        f"`{name}` is a column of several sources",
                        expr.span,
                        f"write {several}",
                    )
                if not having:
                    raise self.unknown(name, self.rows, expr.span)
                return Column(having[0], name)
            case s.Member(s.Name(label), name) if label in self.labels:
                source = self.labels.index(label)
                if self.rows[source].field(name) is None:
                    raise self.unknown(name, (self.rows[source],), expr.span)
                return Column(source, name)
            case _:
                return None

    def unknown(self, name: str, rows: tuple[t.Record, ...], span: Span | None) -> Failed:
        """An unknown column, with the nearest one."""
        known = list(dict.fromkeys(field for row in rows for field, _ in row.fields))
        listed = f"there are {', '.join(f'`{k}`' for k in known)}" if known else None
        return self.report.error(
            "sql-unknown-column", f"unknown column `{name}`", span, closest(name, known) or listed
        )

    # -- expressions

    def condition(self, expr: s.Expr) -> s.Expr:
        """`expr` as a bool: unknown (none) counts as false."""
        found = self.find(expr)
        if found.type == t.Optional(t.BOOL):
            return s.Call("is_true", (found.expr,), span=expr.span)
        if found.type != t.BOOL:
            message = f"a condition is `bool`, this is `{spelled(found.type)}`"
            raise self.report.error("sql-condition", message, expr.span)
        return found.expr

    def find(self, expr: s.Expr) -> Found:
        """`expr` checked.

        Raises: Failed; its errors are in the report.
        """
        special = self.special(expr)
        if special is not None:
            return special
        column = self.column(expr)
        if column is not None:
            return self.typed(s.Member(s.Name(f"s{column.source}"), column.name, span=expr.span))
        match expr:
            case s.Binary("and" | "or" as op, left, right):
                return self.logic(op, *self.both(left, right), expr)
            case s.Binary(op, left, right) if op in COMPARISONS:
                return self.comparison(op, *self.both(left, right), expr)
            case s.Binary(op, left, right) if op in ARITHMETIC:
                return self.arithmetic(op, *self.both(left, right), expr)
            case s.Unary("not", value):
                inner = self.find(value)
                three = isinstance(inner.type, t.Optional)
                return self.typed(
                    s.Call("not3", (inner.expr,), span=expr.span) if three else evolve(expr, value=inner.expr)
                )
            case s.Unary(_, value):
                inner = self.find(value)
                return self.lifted((inner,), lambda parts: evolve(expr, value=parts[0]), expr)
            case s.IfExpr(condition, then, other):
                return self.typed(
                    s.IfExpr(self.condition(condition), *self.branches(then, other), span=expr.span)
                )
            case s.Call("like", (value, s.String(pattern))):
                text = self.find(cast("s.Expr", value))
                if strip(text.type) != t.STRING:
                    message = f"`like` compares texts, this is `{spelled(text.type)}`"
                    raise self.report.error("sql-like", message, value.span)
                return self.lifted((text,), lambda parts: _like(parts[0], pattern, expr.span), expr)
            case s.NoneValue():
                raise self.report.error(
                    "sql-none", "nothing says of which type this is", expr.span, "ask for it: `is null`"
                )
            case s.Comprehension() | s.Var() | s.Hole():
                raise self.report.error("sql-expression", "this cannot stand in a query", expr.span)
            case s.Call(function, args) if any(isinstance(arg, s.Lambda) for arg in args):
                message = f"`{function}` takes a function, which cannot stand in a query"
                raise self.report.error("sql-expression", message, expr.span)
            case _:
                return self.typed(rebuild(expr, self.inner))

    def inner(self, node: s.Node) -> s.Node:
        """A part of an expression that has no rule of its own."""
        if isinstance(node, s.FieldValue):
            return rebuild(node, self.inner)
        if isinstance(node, s.NoneValue):
            return node  # what stands around it tells its type
        return self.find(cast("s.Expr", node)).expr

    def branches(self, then: s.Expr, other: s.Expr) -> tuple[s.Expr, s.Expr]:
        """The two values that a condition chooses from, as numbers of one type if they are numbers."""
        if isinstance(then, s.NoneValue) or isinstance(other, s.NoneValue):
            return cast("s.Expr", self.inner(then)), cast("s.Expr", self.inner(other))
        a, b = promote(*self.both(then, other))
        return a.expr, b.expr

    def both(self, left: s.Expr, right: s.Expr) -> tuple[Found, Found]:
        """Both operands, so that the errors of both are told."""
        found: list[Found] = []
        for side in (left, right):
            with self.report.recover():
                found.append(self.find(side))
        if len(found) < 2:
            raise Failed
        return found[0], found[1]

    def typed(self, expr: s.Expr) -> Found:
        """`expr`, whose parts are checked, with its type."""
        try:
            return Found(expr, check.expression(expr, self.locals(), self.scope).type)
        except Rejected as rejected:
            self.report.found += [d for d in rejected.diagnostics if d not in self.report.found]
            raise Failed from None

    # -- the conversions

    def logic(self, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
        """`and`, `or`: in three values where an operand may be unknown."""
        if isinstance(left.type, t.Optional) or isinstance(right.type, t.Optional):
            return self.typed(s.Call(f"{op}3", (left.expr, right.expr), span=expr.span))
        return self.typed(s.Binary(op, left.expr, right.expr, span=expr.span))

    def comparison(self, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
        """A comparison of numbers of one type; unknown where an operand is."""
        left, right = promote(left, right)
        if isinstance(left.type, t.Optional) or isinstance(right.type, t.Optional):
            return self.typed(s.Call(COMPARISONS[op], (left.expr, right.expr), span=expr.span))
        return self.typed(s.Binary(op, left.expr, right.expr, span=expr.span))

    def arithmetic(self, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
        """Arithmetic on numbers of one type. Division of whole numbers drops the fraction; all of it traps on 0."""
        left, right = promote(left, right)

        def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
            if op != "/":
                return s.Binary(op, *parts, span=expr.span)
            kind = strip(left.type)
            if kind in t.FLOATS:
                return s.Call("div.trap", parts, span=expr.span)
            if isinstance(kind, t.Decimal):
                return s.Binary("/", *parts, span=expr.span)
            return s.Call("div.trunc", parts, span=expr.span)

        return self.lifted((left, right), apply, expr)

    def lifted(
        self, parts: tuple[Found, ...], apply: Callable[[tuple[s.Expr, ...]], s.Expr], expr: s.Expr
    ) -> Found:
        """`apply` on the parts; none where one of them is."""
        loose = [part.expr for part in parts if isinstance(part.type, t.Optional)]
        if not loose:
            return self.typed(apply(tuple(part.expr for part in parts)))
        present = tuple(
            s.Force(part.expr, span=part.expr.span) if isinstance(part.type, t.Optional) else part.expr
            for part in parts
        )
        unknown: s.Expr = s.IsNone(loose[0], span=expr.span)
        for other in loose[1:]:
            unknown = s.Binary("or", unknown, s.IsNone(other, span=expr.span), span=expr.span)
        return self.typed(s.IfExpr(unknown, s.NoneValue(span=expr.span), apply(present), span=expr.span))


@define
class Groups(Rows):
    """Expressions over groups: keys and aggregates are read from the group `g`; other columns are refused.

    `grouped`: whether the text states the keys (`group by`). `always`: whether every group has a row.
    """

    keys: tuple[Key, ...] = ()
    grouped: bool = False
    always: bool = True
    aggregates: list[Aggregate] = field(factory=list[Aggregate])

    def locals(self) -> Mapping[str, t.Type]:
        return {"g": self.group()}

    def group(self) -> t.Record:
        """The type of a group."""
        return t.Record(tuple((part.name, part.type) for part in (*self.keys, *self.aggregates)))

    def special(self, expr: s.Expr) -> Found | None:
        function = aggregate_of(expr)
        if function is not None:
            return self.aggregate(function, cast("s.Call", expr))
        if not has_aggregate(expr):
            try:
                value = Rows(Report(), self.scope, self.labels, self.rows).find(expr).expr
            except Failed:
                value = None
            for key in self.keys:
                if key.value == value:
                    return Found(s.Member(s.Name("g"), key.name, span=expr.span), key.type)
        if self.column(expr) is None:
            return None
        help_line = "add it to `group by`" if self.grouped else "aggregate it"
        raise self.report.error(
            "sql-not-grouped", "this column may differ within a group", expr.span, help_line
        )

    def aggregate(self, function: str, expr: s.Call) -> Found:
        """An aggregate, which becomes a part of the group."""
        found = self.summary(function, expr)
        for known in self.aggregates:
            if evolve(known, name="") == found:
                return Found(s.Member(s.Name("g"), known.name, span=expr.span), known.type)
        taken = {part.name for part in (*self.keys, *self.aggregates)}
        named = evolve(found, name=fresh(_title(function, expr), taken))
        self.aggregates.append(named)
        return Found(s.Member(s.Name("g"), named.name, span=expr.span), named.type)

    def summary(self, function: str, expr: s.Call) -> Aggregate:
        """The aggregate without a name."""
        if not expr.args:
            if function != "count":
                raise self.report.error("sql-aggregate-argument", f"`{function}` takes a column", expr.span)
            return Aggregate("", t.I64, "count", span=expr.span)
        inside = Rows(self.report, self.scope, self.labels, self.rows, "inside an aggregate")
        argument = inside.find(cast("s.Expr", expr.args[0]))
        kind = strip(argument.type)
        loose = isinstance(argument.type, t.Optional) or not self.always
        match function:
            case "count" | "count_distinct":
                type_ = t.I64
            case "min" | "max":
                type_ = kind
            case "sum" if kind in (t.I32, t.I64):
                type_ = t.I64
            case "sum" if kind == t.U64:
                type_ = t.U64
            case "sum" | "avg" if kind in t.FLOATS or (function == "avg" and kind in (t.I32, t.I64, t.U64)):
                type_ = t.F64
            case _:
                if function in ("sum_distinct", "avg_distinct"):
                    raise self.report.error(
                        "sql-aggregate-argument", "only `count` takes `distinct`", expr.span
                    )
                message = f"`{function}` takes numbers, this is `{spelled(argument.type)}`"
                raise self.report.error("sql-aggregate-argument", message, expr.span)
        if not t.is_key(kind):
            message = f"values of `{spelled(argument.type)}` cannot be compared"
            raise self.report.error("sql-aggregate-argument", message, expr.span)
        result = t.Optional(type_) if loose and not function.startswith("count") else type_
        if function == "count" and not isinstance(argument.type, t.Optional):
            return Aggregate(
                "", t.I64, "count", span=expr.span
            )  # a value that is always there counts like a row
        return Aggregate("", result, function, argument.expr, argument.type, span=expr.span)


def _title(function: str, expr: s.Call) -> str:
    match expr.args:
        case (s.Name(column) | s.Member(_, column),):
            return f"{function}_{column}"
        case _:
            return function


def spelled(type_: t.Type) -> str:
    """The type as queries spell it."""
    return re.sub(r"\b[if]64\b", lambda found: {"i64": "int", "f64": "float"}[found[0]], show(type_))


def strip(type_: t.Type) -> t.Type:
    """The type without its question mark."""
    return type_.inner if isinstance(type_, t.Optional) else type_


def promote(left: Found, right: Found) -> tuple[Found, Found]:
    """Two operands as numbers of one type: the wider whole number, or f64."""
    a, b = strip(left.type), strip(right.type)
    numbers = (*WHOLE, t.F32, t.F64)
    if a == b or a not in numbers or b not in numbers:
        return left, right
    wide = t.I64 if a in WHOLE and b in WHOLE else t.F64
    return convert(left, wide), convert(right, wide)


def convert(found: Found, type_: t.Primitive) -> Found:
    """A number as another type of number; none stays none."""
    if strip(found.type) == type_:
        return found
    span = found.expr.span
    match found.expr:
        case s.Int(value) if type_ in t.FLOATS:
            return Found(s.Float(float(value), span=span), type_)
        case s.Unary("-", s.Int(value)) if type_ in t.FLOATS:
            return Found(s.Unary("-", s.Float(float(value), span=span), span=span), type_)
        case s.Int() | s.Unary("-", s.Int()):
            return Found(found.expr, type_)
        case expr if isinstance(found.type, t.Optional):
            inner = s.Call(type_.name, (s.Force(expr, span=span),), span=span)
            none = s.NoneValue(span=span)
            return Found(s.IfExpr(s.IsNone(expr, span=span), none, inner, span=span), t.Optional(type_))
        case expr:
            return Found(s.Call(type_.name, (expr,), span=span), type_)


def columns(expr: s.Node) -> set[Column]:
    """The columns of sources that a checked expression reads."""
    match expr:
        case s.Member(s.Name(name), column) if name[:1] == "s" and name[1:].isdigit():
            return {Column(int(name[1:]), column)}
        case _:
            return {column for child in children(expr) for column in columns(child)}


def sources(expr: s.Node) -> set[int]:
    """The sources that a checked expression reads."""
    return {column.source for column in columns(expr)}


def substitute(expr: s.Expr, places: Mapping[Column, s.Expr]) -> s.Expr:
    """A checked expression with its columns read from other places."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Member(s.Name(name), column) if name[:1] == "s" and name[1:].isdigit():
                found = places[Column(int(name[1:]), column)]
                return evolve(found, span=node.span)
            case _:
                return rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))


def total(expr: s.Node) -> bool:
    """Whether evaluating a checked expression surely cannot trap: only then may it be evaluated for more rows."""
    match expr:
        case s.Name() | s.Int() | s.Float() | s.String() | s.Bytes() | s.Bool() | s.NoneValue():
            return True
        case s.Member() | s.IsNone() | s.Unary("not", _):
            return all(map(total, children(expr)))
        case s.Binary(op, _, _):
            return (op in COMPARISONS or op in ("and", "or")) and all(map(total, children(expr)))
        case s.Call(function, _):
            return function in TOTAL and all(map(total, children(expr)))
        case _:
            return False


TOTAL = frozenset(
    {
        *COMPARISONS.values(),
        "and3",
        "or3",
        "not3",
        "is_true",
        "coalesce",
        "f64",
        "same",
        "starts_with",
        "ends_with",
    }
)


def _like(value: s.Expr, pattern: str, span: Span | None) -> s.Expr:
    """SQL's patterns: `%` stands for any text, `_` for any character."""
    match [part if "_" not in part else None for part in pattern.split("%")]:
        case [str()]:
            return s.Binary("==", value, s.String(pattern, span=span), span=span)
        case [str(begin), ""]:
            return s.Call("starts_with", (value, s.String(begin, span=span)), span=span)
        case ["", str(end)]:
            return s.Call("ends_with", (value, s.String(end, span=span)), span=span)
        case ["", str(part), ""]:
            found = s.Call("find", (value, s.String(part, span=span)), span=span)
            return s.Binary(">=", found, s.Int(0, span=span), span=span)
        case _:
            wild = "".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in pattern)
            test = s.Call("regex", (s.String(f"^(?s:{wild})$", span=span),), span=span)
            return s.Call("re_test", (test, value), span=span)
