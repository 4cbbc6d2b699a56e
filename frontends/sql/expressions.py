"""Expressions of a query: columns are resolved, and the conversions that SQL makes silently are written down.

What comes out is an expression of the operator language over locals: `s0`, `s1` ... are the rows of the sources, `g` a
group. Its types are the shared checker's.
"""

from __future__ import annotations

import functools
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from frontends.sql import dates, decimals, json_paths
from frontends.sql import syntax as q
from frontends.sql.absent import ABSENT
from frontends.sql.dates import DATE
from frontends.sql.functions import (
    FIELDS,
    FUNCTIONS,
    SEVERAL,
    TRUNCATED,
    UNITS,
    SqlFunction,
    cast_of,
    type_named,
)
from frontends.sql.intervals import interval
from frontends.sql.time_formats import formatted, shape
from frontends.sql.typed import Aggregate, Key, mean_type
from frontends.sql.zones import clocks
from river.classes import define, evolve, field, frozen
from river.diagnostics import Rejected, closest
from river.il.trees import children, fresh, rebuild, walk
from river.lang import check
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS
from river.lang.operations.times import parse_time
from river.lang.scope import resolve, show
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from river.lang.scope import Scope
    from river.source import Span

AGGREGATES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        **{name: (name, 1) for name in ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")},
        **{name: (name, 1) for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "median", "mode")},
        **{name: (name, 2) for name in ("min_by", "max_by", "string_agg")},
        **{name: (name, 2) for name in ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")},
        "regr_count": ("regr_count", 2),
        "mean": ("avg", 1), "every": ("bool_and", 1), "any_value": ("min", 1), "variance": ("var_samp", 1),
        "stddev": ("stddev_samp", 1), "quantile_cont": ("quantile", 2), "percentile_cont": ("quantile", 2),
        "approx_percentile": ("quantile", 2), "quantile_disc": ("disc", 2), "percentile_disc": ("disc", 2),
        "percentile_disc desc": ("disc_down", 2),
        "arg_min": ("min_by", 2), "arg_max": ("max_by", 2), "listagg": ("string_agg", 2), "count_if": ("count_if", 1),
        "countif": ("count_if", 1), "first_value": ("first", 1), "last_value": ("last", 1), "std": ("stddev_samp", 1),
        "first": ("first", 1), "last": ("last", 1), "array_agg": ("array_agg", 1), "collect_list": ("array_agg", 1),
        "collect": ("array_agg", 1),
    }
)  # fmt: skip
"""Aggregates by each of their names: the name that they have from then on, and how many operands they take."""
PAIRS = frozenset(
    {"covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count"}
)
"""Aggregates of two numbers, of the rows that have both."""
_OF_TWO = frozenset({"min_by", "max_by", "string_agg", "quantile", "disc", "disc_down"})
_OF_DIFFERENT = {"approx_count_distinct": "count", "count_distinct": "count", "collect_set": "array_agg"}
"""Other names of aggregates of different values; for some, exact is close enough."""
IN_ORDER = frozenset({"array_agg", "string_agg"})
"""Aggregates to which the order of the rows matters; without one it is that of the values."""
EXTREMES = frozenset({"min", "max", "min_by", "max_by", "bool_and", "bool_or"})
"""Aggregates that count copies once anyhow."""
MONDAY = 946_857_600_000_000
"""The Monday 2000-01-03, from which pieces of time are counted."""
COMPARISONS = {"==": "eq3", "!=": "ne3", "<": "lt3", "<=": "le3", ">": "gt3", ">=": "ge3"}
ARITHMETIC = frozenset(["+", "-", "*", "/", "%"])
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
        case s.Call("filter" | "ordered", (s.Call() as call, *_)):
            return aggregate_of(call)
        case q.Folded():
            return "fold"
        case s.Call(function, args):
            name, _, distinct = function.lower().partition(".")
            if name in _OF_DIFFERENT and not distinct:
                name, distinct = _OF_DIFFERENT[name], "distinct"
            known = AGGREGATES.get(name)
            if known is None or distinct not in ("", "distinct") or len(args) > known[1]:
                return None
            return known[0] if not distinct or known[0] in EXTREMES else f"{known[0]}_distinct"
        case _:
            return None


EXTERN = "extern."
"""What stands before the names of functions that the user writes in another language; their types are in the scope."""


def is_known(name: str) -> bool:
    """Whether `name`, in small letters, is a function or an aggregate that every query knows."""
    return name in FUNCTIONS or name in SEVERAL or name in AGGREGATES or name in _OF_DIFFERENT


def has_aggregate(expr: s.Node) -> bool:
    """Whether an aggregate is called anywhere in `expr`."""
    return any(aggregate_of(node) for node in walk(expr))


@define
class RowExpressions:
    """Expressions over the rows of the sources, each known by a label."""

    report: Report
    scope: Scope
    labels: tuple[str, ...]
    rows: tuple[t.Record, ...]
    place: str = "here"
    merged: Mapping[str, int] = field(factory=dict[str, int], kw_only=True)
    """Columns after `using`, which are one: the source of each that a bare name means."""

    # -- what the two kinds of places differ in

    def locals(self) -> Mapping[str, t.Type]:
        """The names that a finished expression may use."""
        return {f"s{i}": row for i, row in enumerate(self.rows)}

    def special(self, expr: s.Expr) -> Found | None:
        """What is read otherwise than its parts say; here aggregates, which are refused."""
        if aggregate_of(expr):
            help_line = "aggregate the result of a query after `from`"
            if self.place == "in `where`":
                help_line = "conditions on groups stand after `having`"
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
                if name in self.merged and self.merged[name] in having:
                    return Column(self.merged[name], name)
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
        word = name.lower()
        absent = ABSENT.get(word) if word.startswith("current_") or word == "irstream" else None
        return self.report.error(
            "sql-unknown-column", f"unknown column `{name}`", span, absent or closest(name, known) or listed
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
        if isinstance(cast("s.Node", expr), q.Nested):
            raise self.report.error("sql-nested-place", f"no query can stand {self.place}", expr.span)
        if isinstance(cast("s.Node", expr), q.Stated):
            return self.stated(cast("q.Stated", expr))
        column = self.column(expr)
        if column is not None:
            return self.typed(s.Member(s.Name(f"s{column.source}"), column.name, span=expr.span))
        match expr:
            case s.Binary("and" | "or" as op, left, right):
                return self.logic(op, *self.both(left, right), expr)
            case s.Binary("==", value, s.Call("any" | "some" | "ANY" | "SOME", (items,))):
                return self.has(self.find(cast("s.Expr", items)), self.find(value), expr)
            case s.Index(items, at):
                return self.at(*self.both(items, at), expr)
            case s.Binary(op, left, right) if op in COMPARISONS:
                return self.comparison(op, *self.both(left, right), expr)
            case s.Binary("+", length, at) if (parts := _calendar(length)) and not _calendar(at):
                return self.moved(self.find(at), *parts, expr)
            case s.Binary("-", at, length) if (parts := _calendar(_negative(length))) and not _calendar(at):
                return self.moved(self.find(at), *parts, expr)
            case s.Binary("+", at, length) if (parts := _calendar(length)) and not _calendar(at):
                return self.moved(self.find(at), *parts, expr)
            case s.Binary(op, left, right) if op in ARITHMETIC:
                return self.arithmetic(op, *self.both(left, right), expr)
            case s.Binary("||", left, right):
                texts = tuple(self.as_text(side) for side in self.both(left, right))
                return self.lifted(texts, lambda parts: s.Binary("+", *parts, span=expr.span), expr)
            case s.IsNone(value):
                return self.is_none(self.find(value), expr)
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
                return self.chosen(self.condition(condition), then, other, expr)
            case s.Call("like" | "ilike" as name, (value, s.String(pattern), *escape)):
                return self.like(name, cast("s.Expr", value), pattern, tuple(escape), expr)
            case s.Call("like" | "ilike" as name, (value, pattern, *escape)):
                return self.like_any(
                    name, (cast("s.Expr", value), cast("s.Expr", pattern)), tuple(escape), expr
                )
            case s.Member(value, name):
                record = self.find(value)
                if isinstance(record.type, t.Optional) and isinstance(record.type.inner, t.Record):
                    return self.lifted(
                        (record,), lambda parts: s.Member(parts[0], name, span=expr.span), expr
                    )
                return self.typed(evolve(expr, value=record.expr))
            case s.NoneValue():
                raise self.report.error(
                    "sql-none", "nothing says of which type this is", expr.span, "ask for it: `is null`"
                )
            case s.Comprehension() | s.Var() | s.Hole():
                raise self.report.error("sql-expression", "this cannot stand in a query", expr.span)
            case s.Call(function, args):
                if any(isinstance(arg, s.Lambda) for arg in args):
                    message = f"`{function}` takes a function, which cannot stand in a query"
                    raise self.report.error("sql-expression", message, expr.span)
                return self.call(function, cast("tuple[s.Expr, ...]", args), expr)
            case _:
                return self.typed(rebuild(expr, self.inner))

    def stated(self, node: q.Stated) -> Found:
        """A value that has to be of a type; whole numbers become floats, and what may be none may still."""
        kind, value = strip(resolve(node.type, self.scope)), self.find(node.value)
        if kind == t.F64 and strip(value.type) in t.INTEGERS:
            return convert(value, t.F64)
        if strip(value.type) != kind:
            message = f"{node.place} is `{spelled(kind)}`, this is `{spelled(value.type)}`"
            raise self.report.error("sql-function-operands", message, node.value.span or node.span)
        return value

    def inner(self, node: s.Node) -> s.Node:
        """A part of an expression that has no rule of its own."""
        if isinstance(node, s.FieldValue):
            return rebuild(node, self.inner)
        if isinstance(node, s.NoneValue):
            return node  # what stands around it tells its type
        return self.find(cast("s.Expr", node)).expr

    def chosen(self, condition: s.Expr, then: s.Expr, other: s.Expr, expr: s.Expr) -> Found:
        """One of two values, as numbers of one type if they are numbers.

        Where their types say what its type is, it is not looked at as a whole again: each of many may be inside the next.
        """
        then, other = self.nothing(then), self.nothing(other)
        nones = [isinstance(side, s.NoneValue) for side in (then, other)]
        if all(nones):
            message, help_line = (
                "nothing says of which type this is",
                "give one of its values a type: `cast(null as int)`",
            )
            raise self.report.error("sql-none", message, expr.span, help_line)
        if any(nones):
            value = self.find(other if nones[0] else then)
            sides = (then, value.expr) if nones[0] else (value.expr, other)
            return Found(s.IfExpr(condition, *sides, span=expr.span), t.Optional(strip(value.type)))
        a, b = common(*self.both(then, other))
        made = s.IfExpr(condition, a.expr, b.expr, span=expr.span)
        if strip(a.type) != strip(b.type):
            return self.typed(made)
        return Found(made, a.type if isinstance(a.type, t.Optional) else b.type)

    def nothing(self, side: s.Expr) -> s.Expr:
        """A choice between nothing and nothing is nothing, whatever decides."""
        if not isinstance(side, s.IfExpr):
            return side
        then, other = self.nothing(side.then), self.nothing(side.other)
        if isinstance(then, s.NoneValue) and isinstance(other, s.NoneValue):
            self.condition(side.cond)
            return other
        return side

    def both(self, left: s.Expr, right: s.Expr) -> tuple[Found, Found]:
        """Both operands, so that the errors of both are told."""
        found: list[Found] = []
        for side in (left, right):
            with self.report.recover():
                found.append(self.find(side))
        if len(found) < 2:
            raise Failed
        return found[0], found[1]

    # -- dates

    def as_time(self, found: Found) -> Found:
        """The time at which a day begins; what is no date stays."""
        if strip(found.type) != DATE:
            return found
        return self.lifted((found,), lambda parts: dates.time_of(parts[0]), found.expr)

    def as_days(self, found: Found) -> Found:
        """A date as a number."""
        return self.lifted((found,), lambda parts: dates.days(parts[0]), found.expr)

    def as_date(self, found: Found) -> Found:
        """The day of a time."""
        return self.lifted((found,), lambda parts: dates.of_time(parts[0]), found.expr)

    def in_time(self, left: Found, right: Found) -> tuple[Found, Found]:
        """Two sides of a comparison, of which one may be a date, or a text that is written out, where the other is a time."""
        kinds = {strip(left.type), strip(right.type)}
        if kinds == {DATE, t.TIME}:
            return self.as_time(left), self.as_time(right)
        if kinds in ({DATE, t.STRING}, {t.TIME, t.STRING}):
            return self.meant(left, right), self.meant(right, left)
        return left, right

    def meant(self, found: Found, other: Found) -> Found:
        """A text that is written out beside a time is a time, and beside a date a date."""
        if not isinstance(found.expr, s.String):
            return found
        micros = parse_time(found.expr.value)
        if micros is None:
            message = f"`{found.expr.value}` is no time"
            help_line = "write it as in `'2026-01-31'`, or `'2026-01-31 12:00:00'`"
            raise self.report.error("sql-cast", message, found.expr.span, help_line)
        time = s.Call("time", (s.Int(micros),), span=found.expr.span)
        if strip(other.type) == DATE and micros % dates.DAY == 0:
            return Found(dates.of_time(time), DATE)
        return Found(time, t.TIME)

    def typed(self, expr: s.Expr) -> Found:
        """`expr`, whose parts are checked, with its type."""
        try:
            return Found(expr, check.expression(expr, self.locals(), self.scope).type)
        except Rejected as rejected:
            told = [evolve(d, message=d.message.replace(show(DATE), "date")) for d in rejected.diagnostics]
            self.report.found += [d for d in told if d not in self.report.found]
            raise Failed from None

    # -- functions

    def call(self, function: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
        """A function of SQL's table, or an operation of the operator language, which is strict like them."""
        name = function.lower()
        match name, args:
            case "cast", (s.NoneValue(), s.String(kind)):
                return self.nothing_of(kind, expr)
            case "cast", (value, s.String(kind)):
                return self.cast(self.find(value), kind, expr)
            case "try_cast", (value, s.String(kind)):
                return self.tried(self.find(value), kind, expr)
            case "array of", values:
                return self.listed(alike(self.operands(values)), expr)
            case "date" | "to_date", (value,):
                return self.cast(self.find(value), "date", expr)
            case "to_date", (value, s.String(pattern)):
                return self.as_date(self.time_read(name, self.find(value), pattern, expr))
            case "last_day", (value,):
                return self.as_date(self.function(FUNCTIONS[name], function, (value,), expr))
            case "extract" | "date_part" | "date_trunc", (s.String(part), value):
                return self.part(name, part.lower(), self.find(value), expr)
            case "to_char" | "date_format" | "strftime", (value, s.String(pattern)):
                return self.time_text(name, self.find(value), pattern, expr)
            case "to_timestamp" | "strptime" | "parse_timestamp" | "stringtotimestamp", (
                value,
                s.String(pattern),
            ):
                return self.time_read(name, self.find(value), pattern, expr)
            case "date_diff" | "datediff" | "timestampdiff", (unit, begin, end):
                return self.difference(name, _unit(unit), (begin, end), expr)
            case "date_add" | "timestampadd" | "dateadd", (unit, count, value) if _unit(unit) in (
                "month",
                "year",
            ):
                size = s.Int(12 if _unit(unit) == "year" else 1)
                return self.later(self.find(value), self.find(s.Binary("*", count, size)), expr)
            case "months", (s.Int(), *_):
                message = "months are of different lengths, so they are only added to a time, and taken away"
                help_line = "write `t + interval '1' month`, or count days"
                raise self.report.error("sql-month", message, expr.span, help_line)
            case "date_add" | "timestampadd" | "dateadd", (unit, count, value) if _unit(unit) is not None:
                moved = s.Binary(
                    "+", value, s.Binary("*", s.Call("duration", (s.Int(self.unit(unit, expr)),)), count)
                )
                return self.find(evolve(moved, span=expr.span))
            case "date_add", (value, length):
                return self.find(s.Binary("+", value, length, span=expr.span))
            case "time_bucket" | "date_bin", (length, at, *origin):
                if (
                    isinstance(length, s.String)
                    and (found := interval(length.value)) is not None
                    and not found[0]
                ):
                    length = s.Call("duration", (s.Int(found[1]),), span=length.span)
                return self.bucket(name, length, self.find(at), tuple(origin), expr)
            case _, (value, *path) if name in json_paths.NAMES:
                return self.in_json(value, tuple(path), expr)
            case "json at" | "json_extract_path_text", (value, *path) if path:
                return self.json_steps(value, tuple(map(json_paths.step, path)), expr)
            case "array_contains" | "list_contains" | "list_has", (items, value):
                return self.has(*self.both(items, value), expr)
            case "iif" | "if", (condition, then, other):
                return self.find(s.IfExpr(condition, then, other, span=expr.span))
            case "unknown", ():
                no = s.Bool(value=False)
                return self.typed(s.IfExpr(no, no, s.NoneValue(), span=expr.span))
            case "at_zone", (value, s.String(zone)):
                return self.in_zone(self.find(value), zone, expr)
            case "alike", (left, right):
                a, b = promote(*self.both(left, right))
                return self.typed(s.Call("same", (a.expr, b.expr), span=expr.span))
            case "is_true" | "is_false", (value,):
                return self.truth(name, self.find(value), expr)
            case _ if name.endswith(".distinct"):
                message = f"`{function.removesuffix('.distinct')}(distinct ...)` takes one column"
                help_line = (
                    "different rows are counted so: `select count(*) from (select distinct a, b from s)`"
                )
                raise self.report.error("sql-aggregate-argument", message, expr.span, help_line)
            case "in", _:
                message = "what `in` asks for stands in parentheses"
                raise self.report.error("sql-in", message, expr.span, "write `x in (1, 2)`")
            case "filter", _:
                message = "only aggregates have a `filter`"
                raise self.report.error("sql-filter", message, expr.span)
            case _ if name in SEVERAL:
                return self.several(name, args, expr)
            case _ if name in FUNCTIONS:
                return self.function(FUNCTIONS[name], function, args, expr)
            case _ if (function in OPERATIONS and name not in ABSENT) or function.startswith(EXTERN):
                return self.operation(args, expr)
            case _:
                known = [*FUNCTIONS, *SEVERAL, *AGGREGATES, "cast", "extract", "date_trunc"]
                near = ABSENT.get(name) or closest(name, known)
                message = f"unknown function `{function}`"
                raise self.report.error("sql-unknown-function", message, expr.span, near)

    def operands(self, args: tuple[s.Expr, ...]) -> tuple[Found, ...]:
        """The operands of a function; the errors of all are told."""
        found: list[Found] = []
        for arg in args:
            with self.report.recover():
                found.append(self.find(arg))
        if len(found) < len(args):
            raise Failed
        return tuple(found)

    def function(self, called: SqlFunction, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
        """A strict function on operands that fit."""
        if not len(called.takes) - called.optional <= len(args) <= len(called.takes):
            message = f"`{name}` takes other operands than these {len(args)}"
            raise self.report.error("sql-function-operands", message, expr.span, f"it is {called.signature}")
        fitted: list[Found] = []
        for i, (found, kind) in enumerate(zip(self.operands(args), called.takes, strict=False)):
            one = _fitted(self.as_time(found) if kind == "time" else found, kind)
            if one is None:
                written = {
                    "pattern": "a text that is written out",
                    "flag g": "`'g'`: all matches are replaced",
                }
                wanted = written.get(kind, f"`{kind}`")
                message = f"operand {i + 1} of `{name}` is {wanted}, this is `{spelled(found.type)}`"
                raise self.report.error(
                    "sql-function-operands", message, args[i].span, f"it is {called.signature}"
                )
            fitted.append(one)
        kind = strip(fitted[0].type) if fitted else t.UNIT
        return self.lifted(
            tuple(fitted), lambda parts: evolve(called.make(parts, kind), span=expr.span), expr
        )

    def has(self, items: Found, value: Found, expr: s.Expr) -> Found:
        """Whether a value is among the items of a list."""
        kind = strip(items.type)
        if not isinstance(kind, t.List):
            message = f"a value is looked for in a list, this is `{spelled(items.type)}`"
            help_line = (
                "of a query it is `x in (select ...)`, of values `x in (1, 2)`, of a text `contains(s, part)`"
            )
            raise self.report.error("sql-function-operands", message, items.expr.span or expr.span, help_line)
        if strip(kind.item) == t.F64:
            value = convert(value, t.F64)
        if isinstance(items.expr, s.ListValue):  # written out: `array[1, 2]`
            tests = [self.comparison("==", value, Found(x, kind.item), expr) for x in items.expr.items]
            return functools.reduce(lambda a, b: self.logic("or", a, b, expr), tests)

        def found(parts: tuple[s.Expr, ...]) -> s.Expr:
            given, one = parts
            if isinstance(kind.item, t.Optional):  # has to be told to be of the items' type
                one = s.IfExpr(s.Bool(value=False), s.NoneValue(), one)
            return s.Binary(">=", s.Call("index_of", (given, one)), s.Int(0), span=expr.span)

        return self.lifted((items, value), found, expr)

    def in_json(self, value: s.Expr, path: tuple[s.Expr, ...], expr: s.Call) -> Found:
        """The value at a path of a text of JSON."""
        match path:
            case (s.String(text),) if (steps := json_paths.steps(text)) is not None:
                return self.json_steps(value, steps, expr)
            case _:
                return self.json_steps(value, (None,), expr)

    def json_steps(self, value: s.Expr, steps: tuple[str | None, ...], expr: s.Call) -> Found:
        """The value at the end of steps into a text of JSON."""
        found, path = self.find(value), tuple(step for step in steps if step is not None)
        if len(path) < len(steps):
            message = "a path into JSON is written out, and leads to one value"
            raise self.report.error(
                "sql-json-path", message, expr.span, "write `json_value(x, '$.user.tags[0]')`"
            )
        if strip(found.type) != t.STRING:
            message = f"JSON is read from a text, this is `{spelled(found.type)}`"
            help_line = "fields of records are read by their path: `x.user.id`"
            raise self.report.error("sql-function-operands", message, expr.span, help_line)
        return self.lifted(
            (found,), lambda parts: evolve(json_paths.at(parts[0], path), span=expr.span), expr
        )

    def at(self, items: Found, place: Found, expr: s.Index) -> Found:
        """An item of a list by its number, or of a map by its key; none if there is no such item."""
        if not isinstance(strip(items.type), t.List | t.Map):
            return self.typed(evolve(expr, value=items.expr, index=place.expr))
        return self.lifted((items, place), lambda parts: s.Call("get", parts, span=expr.span), expr)

    def operation(self, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
        """An operation of the operator language: none where an operand is, unless it is made for that."""
        if expr.function in OPEN or any(isinstance(arg, s.NoneValue) for arg in args):
            return self.typed(rebuild(expr, self.inner))
        found = self.operands(args)
        return self.lifted(found, lambda parts: evolve(expr, args=parts), expr)

    def several(self, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
        """`coalesce`, `nullif`, `greatest`, `least`, `concat`: of operands of one type, some of them perhaps none."""
        given = tuple(arg for arg in args if not isinstance(arg, s.NoneValue))
        if not given or (name == "nullif" and len(args) != 2):
            message = (
                f"`{name}` takes {'two operands' if name == 'nullif' else 'operands that are not `null`'}"
            )
            raise self.report.error("sql-function-operands", message, expr.span)
        found = self.operands(given)
        span = expr.span
        if name == "concat_ws":
            return self.joined(found, expr)
        if name == "concat":
            texts = [self.or_empty(self.as_text(one)) for one in found]
            return self.typed(_chain("+", texts, span))
        found = alike(found)
        if name == "nullif":
            if len(given) == 1:
                return found[0]
            first, second = found[0], found[1]
            equal = self.comparison("==", first, second, expr)
            test = s.Call("is_true", (equal.expr,)) if isinstance(equal.type, t.Optional) else equal.expr
            return self.typed(s.IfExpr(test, s.NoneValue(), first.expr, span=span))
        if name in ("greatest", "least"):
            return self.extreme("sqlmax" if name == "greatest" else "sqlmin", found, expr)
        enough = next((i for i, one in enumerate(found) if not isinstance(one.type, t.Optional)), None)
        if enough is not None and enough + 1 < len(found):
            message = f"operand {enough + 1} of `{name}` is never none: what follows it is not looked at"
            self.report.remark("sql-never-none", message, given[enough].span)
        value = found[len(found) - 1 if enough is None else enough].expr
        for one in reversed(found[: len(found) - 1 if enough is None else enough]):
            value = s.Call("coalesce", (one.expr, value), span=span)
        return self.typed(value)

    def joined(self, found: tuple[Found, ...], expr: s.Call) -> Found:
        """`concat_ws`: the texts that are there, the first operand between them."""
        separator, *rest = (self.as_text(one) for one in found)
        if isinstance(separator.type, t.Optional) or not rest:
            message = "`concat_ws` takes a text that is never none, and what it stands between"
            raise self.report.error("sql-function-operands", message, expr.span)
        # what is never none has to be told to be of the others' type
        texts = [
            one.expr
            if isinstance(one.type, t.Optional)
            else s.IfExpr(s.Bool(value=False), s.NoneValue(), one.expr)
            for one in rest
        ]
        return self.typed(
            s.Call("cql.concat_ws", (separator.expr, s.ListValue(tuple(texts))), span=expr.span)
        )

    def in_zone(self, at: Found, zone: str, expr: s.Call) -> Found:
        """What the clocks of a zone show at a time."""
        at = self.as_time(at)
        if strip(at.type) != t.TIME:
            message = f"clocks show a `time`, this is `{spelled(at.type)}`"
            raise self.report.error("sql-zone", message, expr.span)
        found = clocks(zone)
        if found is None:
            message = f"there is no time zone `{zone}`"
            raise self.report.error("sql-zone", message, expr.span, "such as `Europe/Berlin`, or `+02:00`")
        since, offsets = (s.ListValue(tuple(map(_whole, part))) for part in found)
        return self.lifted(
            (at,), lambda parts: s.Call("cql.in_zone", (*parts, since, offsets), span=expr.span), expr
        )

    def moved(self, at: Found, months: s.Expr, length: s.Expr | None, expr: s.Expr) -> Found:
        """A time or a date so many months later, and then so long after that."""
        found = self.later(at, self.find(months), expr)
        return found if length is None else self.arithmetic("+", found, self.find(length), expr)

    def later(self, at: Found, months: Found, expr: s.Expr) -> Found:
        """A time or a date so many months later; the last day of a month that has no such day."""
        if strip(at.type) == DATE:
            return self.as_date(self.later(self.as_time(at), months, expr))
        if strip(at.type) != t.TIME:
            message = f"months are added to a `time`, this is `{spelled(at.type)}`"
            raise self.report.error(
                "sql-month", message, expr.span, "seconds become a time by `to_timestamp(x)`"
            )
        return self.lifted((at, months), lambda parts: s.Call("cql.later", parts, span=expr.span), expr)

    def time_text(self, name: str, value: Found, pattern: str, expr: s.Call) -> Found:
        """`to_char(t, 'YYYY-MM-DD')`, and the same in other signs."""
        value = self.as_time(value)
        if strip(value.type) != t.TIME:
            message = f"`{name}` is of a `time`, this is `{spelled(value.type)}`"
            raise self.report.error("sql-function-operands", message, expr.span)
        odd = formatted(name, value.expr, pattern)
        if isinstance(odd, str):
            message = f"`{odd}` in the pattern of `{name}` stands for nothing"
            raise self.report.error("sql-time-format", message, expr.span, "docs/cql.md has the signs")
        return self.lifted((value,), lambda parts: cast("s.Expr", formatted(name, parts[0], pattern)), expr)

    def time_read(self, name: str, value: Found, pattern: str, expr: s.Call) -> Found:
        """`to_timestamp(text, 'dd/MM/yyyy HH:mm')`: the time that a text of this shape says."""
        if strip(value.type) != t.STRING:
            message = f"`{name}` with a pattern is of a text, this is `{spelled(value.type)}`"
            raise self.report.error("sql-function-operands", message, expr.span)
        found, odd = shape(pattern)
        if odd is not None:
            message = f"`{odd}` in the pattern of `{name}` stands for nothing that has always as many digits"
            raise self.report.error(
                "sql-time-format", message, expr.span, "write `'yyyy-MM-dd HH:mm:ss'`, or `'%d/%b/%Y'`"
            )
        return self.lifted((value,), lambda parts: s.Call("cql.time_like", (*parts, s.String(found))), expr)

    def unit(self, unit: s.Argument, expr: s.Call) -> int:
        """A unit of time in microseconds."""
        named = _unit(unit)
        if named is None or named not in UNITS:
            known = f"units are {', '.join(f'`{one}`' for one in UNITS)}"
            raise self.report.error(
                "sql-time-part", f"no length of time is called `{named}`", expr.span, known
            )
        return UNITS[named]

    def difference(self, name: str, unit: str | None, sides: tuple[s.Argument, ...], expr: s.Call) -> Found:
        """`date_diff` counts the borders of units between two times, `timestampdiff` whole units."""
        begin, end = map(self.as_time, self.operands(cast("tuple[s.Expr, ...]", sides)))
        if {strip(begin.type), strip(end.type)} != {t.TIME}:
            message = f"`{name}` is of a unit and two times"
            raise self.report.error(
                "sql-function-operands", message, expr.span, f"write `{name}('day', a, b)`"
            )
        if unit in ("month", "year") and name != "timestampdiff":
            of = "cql.months" if unit == "month" else "year"
            return self.lifted(
                (begin, end), lambda parts: s.Binary("-", s.Call(of, parts[1:]), s.Call(of, parts[:1])), expr
            )
        size = self.unit(expr.args[0], expr)

        def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
            if name == "timestampdiff":
                length = s.Call("micros", (s.Binary("-", parts[1], parts[0]),))
                return s.Call("div.trunc", (length, s.Int(size)))
            monday = s.Int(4 * UNITS["day"] if unit == "week" else 0)
            return s.Call("cql.borders", (s.Int(size), monday, *parts))

        return self.lifted((begin, end), apply, expr)

    def extreme(self, operation: str, found: tuple[Found, ...], expr: s.Call) -> Found:
        """The greatest or least of those operands that are there; NaN is the greatest number."""
        if all(strip(one.type) == DATE for one in found):
            number = self.extreme(operation, tuple(map(self.as_days, found)), expr)
            return self.lifted((number,), lambda parts: dates.made(parts[0]), expr)
        value = found[0]
        for one in found[1:]:
            value = self.typed(s.Call(operation, (value.expr, one.expr), span=expr.span))
        return value

    def cast(self, value: Found, kind: str, expr: s.Call) -> Found:
        """`cast(x as kind)`."""
        if kind.lower() == "date":
            return value if strip(value.type) == DATE else self.as_date(self.cast(value, "time", expr))
        if strip(value.type) == DATE:
            value = self.as_text(value) if type_named(kind) == t.STRING else self.as_time(value)
        if kind.lower() in ("numeric", "decimal"):  # without sizes: as exact as it is
            return value if isinstance(strip(value.type), t.Decimal) else self.cast(value, "float", expr)
        type_ = type_named(kind)
        if type_ is None:
            message = f"`{kind}` is no type that `cast` knows"
            help_line = "there are `int`, `float`, `decimal(p,s)` up to 38 digits, `string`, `bool`, `time` and `date`"
            raise self.report.error("sql-cast", message, expr.span, help_line)
        if cast_of(value.expr, strip(value.type), type_) is None:
            message = f"`{spelled(value.type)}` cannot be cast to `{spelled(type_)}`"
            raise self.report.error("sql-cast", message, expr.span)
        literal = isinstance(value.expr, s.Int) and type_ in t.FLOATS
        if literal:
            return convert(value, t.F64)

        def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
            return cast("s.Expr", cast_of(parts[0], strip(value.type), type_))

        return self.lifted((value,), apply, expr)

    def tried(self, value: Found, kind: str, expr: s.Call) -> Found:
        """`try_cast(x as kind)`: of a text that is no such value, none."""
        if kind.lower() == "date" and strip(value.type) == t.STRING:
            return self.as_date(self.tried(value, "time", expr))
        names = {t.I64: "try_int", t.F64: "try_float", t.BOOL: "try_bool", t.TIME: "try_time"}
        name = names.get(cast("t.Primitive", type_named(kind)))
        if strip(value.type) != t.STRING or name is None:
            message = f"`try_cast` makes no `{kind}` of `{spelled(value.type)}`"
            help_line = "it reads texts as `int`, `float`, `bool`, `time` and `date`; others are cast by `cast(x as ...)`"
            raise self.report.error("sql-cast", message, expr.span, help_line)
        return self.lifted((value,), lambda parts: s.Call(f"cql.{name}", parts, span=expr.span), expr)

    def listed(self, values: tuple[Found, ...], expr: s.Call) -> Found:
        """`array[a, b]`: a list of values of one type."""
        kinds = {strip(value.type) for value in values}
        if len(kinds) > 1:
            listed = " and ".join(sorted(f"`{spelled(kind)}`" for kind in kinds))
            message = f"a list has items of {listed}"
            raise self.report.error("sql-function-operands", message, expr.span, "write values of one type")
        loose = any(isinstance(value.type, t.Optional) for value in values)
        values = tuple(_typed_literal(value) for value in values)
        items = tuple(_loosened(value) if loose else value.expr for value in values)
        return self.typed(s.ListValue(items, span=expr.span))

    def nothing_of(self, kind: str, expr: s.Call) -> Found:
        """`cast(null as kind)`."""
        of_times = kind.lower() == "date" or type_named(kind) == t.TIME
        zero = Found(s.Call("time", (s.Int(0),)), t.TIME) if of_times else Found(s.Int(0), t.I64)
        value = self.cast(zero, kind, expr)
        return self.typed(s.IfExpr(s.Bool(value=True), s.NoneValue(), value.expr, span=expr.span))

    def bucket(
        self, name: str, length: s.Expr, at: Found, origin: tuple[s.Argument, ...], expr: s.Call
    ) -> Found:
        """The begin of the piece of time that a time lies in; pieces are counted from a Monday, or from `origin`."""
        first: s.Expr = s.Int(MONDAY)
        match length, origin:
            case s.Call("duration", (s.Int(size),)), () if size > 0:
                pass
            case s.Call("duration", (s.Int(size),)), (s.Call("time", (s.Int(micros),)),) if size > 0:
                first = s.Int(micros % size)
            case _:
                message = f"`{name}` is of a length of time that is written out, without months, and a time"
                help_line = f"write `{name}(interval '5' minute, ts)`; months are `date_trunc('month', ts)`"
                raise self.report.error("sql-function-operands", message, expr.span, help_line)
        at = self.as_time(at)
        if strip(at.type) != t.TIME:
            message = f"`{name}` is of a `time`, this is `{spelled(at.type)}`"
            raise self.report.error("sql-function-operands", message, expr.span)
        return self.lifted(
            (at,), lambda parts: s.Call("cql.truncated", (parts[0], s.Int(size), first), span=expr.span), expr
        )

    def part(self, name: str, part: str, value: Found, expr: s.Call) -> Found:
        """`extract(part from t)`, `date_trunc('part', t)`."""
        table = TRUNCATED if name == "date_trunc" else FIELDS
        made = table.get(part) or table.get(part + "s") or table.get(part.removesuffix("s"))
        if made is None:
            near = closest(part, table) or f"there are {', '.join(f'`{one}`' for one in table)}"
            raise self.report.error("sql-time-part", f"a time has no part `{part}`", expr.span, near)
        if strip(value.type) == DATE:
            found = self.part(name, part, self.as_time(value), expr)
            below = part.removesuffix("s") in ("millisecond", "second", "minute", "hour")
            return found if name != "date_trunc" or below else self.as_date(found)
        if part == "epoch" and strip(value.type) == t.DURATION:
            return self.lifted(
                (value,), lambda parts: evolve(FIELDS["epoch"](parts[0]), span=expr.span), expr
            )
        if strip(value.type) != t.TIME:
            message = f"`{name}` is of a `time`, this is `{spelled(value.type)}`"
            help_line = "seconds since 1970 become a time by `to_timestamp(x)`"
            raise self.report.error("sql-function-operands", message, expr.span, help_line)
        return self.lifted((value,), lambda parts: evolve(made(parts[0]), span=expr.span), expr)

    def truth(self, name: str, value: Found, expr: s.Call) -> Found:
        """`x is true`, `x is false`: never none."""
        if strip(value.type) != t.BOOL:
            message = f"a condition is `bool`, this is `{spelled(value.type)}`"
            raise self.report.error("sql-condition", message, expr.span)
        loose = isinstance(value.type, t.Optional)
        if name == "is_true":
            return self.typed(s.Call("is_true", (value.expr,), span=expr.span) if loose else value.expr)
        if loose:
            return self.typed(s.Call("is_true", (s.Call("not3", (value.expr,)),), span=expr.span))
        return self.typed(s.Unary("not", value.expr, span=expr.span))

    def is_none(self, value: Found, expr: s.Expr) -> Found:
        """`x is null`."""
        if isinstance(value.type, t.Optional):
            return self.typed(s.IsNone(value.expr, span=expr.span))
        if expr.span is not None:  # somebody asked
            self.report.remark("sql-never-none", "this is never none", value.expr.span)
        return Found(s.Bool(value=False, span=expr.span), t.BOOL)

    def as_text(self, value: Found) -> Found:
        """A value as text, as `cast` has it."""
        if strip(value.type) == t.STRING:
            return value
        if strip(value.type) == DATE:
            return self.lifted((value,), lambda parts: dates.text_of(parts[0]), value.expr)
        return self.lifted((value,), lambda parts: s.Call("string", parts), value.expr)

    def or_empty(self, value: Found) -> s.Expr:
        """A text, empty where it is none."""
        if not isinstance(value.type, t.Optional):
            return value.expr
        return s.Call("coalesce", (value.expr, s.String("")), span=value.expr.span)

    def like(
        self, name: str, value: s.Expr, pattern: str, escape: tuple[s.Argument, ...], expr: s.Call
    ) -> Found:
        """`like`, `ilike`."""
        text = self.find(value)
        if strip(text.type) != t.STRING:
            message = f"`{name}` compares texts, this is `{spelled(text.type)}`"
            raise self.report.error("sql-like", message, value.span)
        sign = escape[0].value if escape and isinstance(escape[0], s.String) else ""
        if sign and re.search(
            rf"(?s)^(?:[^{re.escape(sign)}]|{re.escape(sign)}.)*{re.escape(sign)}$", pattern
        ):
            raise self.report.error("sql-like", "nothing follows the last escape", expr.span)
        small = name == "ilike"

        def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
            if sign or small:
                return _matching(parts[0], pattern, sign, expr.span, small=small)
            return _like(parts[0], pattern, expr.span)

        return self.lifted((text,), apply, expr)

    def like_any(
        self, name: str, given: tuple[s.Expr, s.Expr], escape: tuple[s.Argument, ...], expr: s.Call
    ) -> Found:
        """`like` with a pattern that is known when the query runs."""
        sides = self.both(*given)
        for side, value in zip(sides, given, strict=True):
            if strip(side.type) != t.STRING:
                message = f"`{name}` compares texts, this is `{spelled(side.type)}`"
                raise self.report.error("sql-like", message, value.span)
        sign = escape[0] if escape else s.String("")

        def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
            texts = tuple(s.Call("lower", (part,)) for part in parts) if name == "ilike" else parts
            return s.Call("cql.is_like", (*texts, sign), span=expr.span)

        return self.lifted(sides, apply, expr)

    # -- the conversions

    def logic(self, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
        """`and`, `or`: in three values where an operand may be unknown."""
        if isinstance(left.type, t.Optional) or isinstance(right.type, t.Optional):
            return self.typed(s.Call(f"{op}3", (left.expr, right.expr), span=expr.span))
        return self.typed(s.Binary(op, left.expr, right.expr, span=expr.span))

    def comparison(self, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
        """A comparison of numbers of one type, or of two decimals; unknown where an operand is.

        Floats compare by IEEE, those that may be none too.
        """
        left, right = promote(*self.in_time(left, right))
        if strip(left.type) == DATE == strip(right.type) and op not in ("==", "!="):
            left, right = self.as_days(left), self.as_days(right)
        kinds = strip(left.type), strip(right.type)
        decimals = kinds[0] != kinds[1] and all(isinstance(kind, t.Decimal) for kind in kinds)
        if decimals or (kinds[0] in t.FLOATS and kinds[1] in t.FLOATS):
            return self.lifted((left, right), lambda parts: s.Binary(op, *parts, span=expr.span), expr)
        if isinstance(left.type, t.Optional) or isinstance(right.type, t.Optional):
            return self.typed(s.Call(COMPARISONS[op], (left.expr, right.expr), span=expr.span))
        return self.typed(s.Binary(op, left.expr, right.expr, span=expr.span))

    def arithmetic(self, op: str, left: Found, right: Found, expr: s.Expr) -> Found:
        """Arithmetic on numbers of one type. Division of whole numbers drops the fraction; all of it traps on 0.

        A date moves by whole numbers and by lengths of whole days that are written out; by others it becomes a time.
        """
        kinds = strip(left.type), strip(right.type)
        if DATE in kinds and op in ("+", "-"):
            match kinds:
                case (x, y) if x == y and op == "-":
                    return self.arithmetic(op, self.as_days(left), self.as_days(right), expr)
                case (x, y) if x == DATE and (y in t.INTEGERS or dates.is_whole(right.expr)):
                    by = right if y in t.INTEGERS else Found(dates.in_days(right.expr), t.I64)
                    moved = self.arithmetic(op, self.as_days(left), by, expr)
                    return self.lifted((moved,), lambda parts: dates.made(parts[0]), expr)
                case (x, y) if y == DATE and op == "+" and x != DATE:
                    return self.arithmetic(op, right, left, expr)
                case _:
                    left, right = self.as_time(left), self.as_time(right)
        if op == "/" and any(isinstance(strip(side.type), t.Decimal) for side in (left, right)):
            left, right = convert(left, t.F64), convert(right, t.F64)
        left, right = promote(left, right)

        def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
            if op == "%":
                return s.Call("rem.trunc", parts, span=expr.span)
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
        tests: list[s.Expr] = []
        present: list[s.Expr] = []
        for part in parts:
            missing, value = self.split(part)
            present.append(value)
            if missing is not None:
                tests.append(missing)
        if not tests:
            return self.typed(apply(tuple(present)))
        unknown = _chain("or", tests, expr.span)
        applied = apply(tuple(present))
        return self.typed(s.IfExpr(unknown, s.NoneValue(span=expr.span), applied, span=expr.span))

    def split(self, part: Found) -> tuple[s.Expr | None, s.Expr]:
        """When an operand is none (None: never), and what it is if it is not.

        What is already written as `if it is none {none} else {...}` is taken apart: a chain of functions does not grow.
        """
        if not isinstance(part.type, t.Optional):
            return None, part.expr
        span = part.expr.span
        match part.expr:
            case s.IfExpr(unknown, s.NoneValue(), value) if self.typed(value).type == part.type.inner:
                return unknown, value
            case value:
                return s.IsNone(value, span=span), s.Force(value, span=span)


@define
class Groups(RowExpressions):
    """Expressions over groups: keys and aggregates are read from the group `g`; other columns are refused.

    `grouped`: whether the text states the keys (`group by`). `known`: whether no key was refused. `always`: whether every
    group has a row.
    """

    keys: tuple[Key, ...] = ()
    grouped: bool = False
    known: bool = True
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
                value = (
                    RowExpressions(Report(), self.scope, self.labels, self.rows, merged=self.merged)
                    .find(expr)
                    .expr
                )
            except Failed:
                value = None
            for key in self.keys:
                if key.value == value:
                    return Found(s.Member(s.Name("g"), key.name, span=expr.span), key.type)
        if self.column(expr) is None:
            return None
        if not self.known:
            raise Failed  # it may be one of those that were refused
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
        inside = RowExpressions(
            self.report, self.scope, self.labels, self.rows, "inside an aggregate", merged=self.merged
        )
        condition: s.Expr | None = None
        if expr.function == "filter":
            call, test = expr.args
            condition = inside.condition(cast("s.Expr", test))
            expr = cast("s.Call", call)
        by: tuple[s.Expr, ...] = ()
        down = False
        if expr.function == "ordered":
            call, order, falling = expr.args
            expr, by = cast("s.Call", call), cast("s.TupleValue", order).items
            down = cast("s.Bool", falling).value
            if function.removesuffix("_distinct") not in IN_ORDER:
                message = f"`{function}` is the same in any order"
                raise self.report.error("sql-aggregate-order", message, expr.span, "leave `order by` out")
        if isinstance(expr, q.Folded):
            return self.folded(expr, condition, inside)
        if function in ("first", "last", "first_distinct", "last_distinct"):
            better = "min_by" if function.startswith("first") else "max_by"
            message = (
                f"the rows of a group have no order, so none is its {function.removesuffix('_distinct')}"
            )
            help_line = f"say by what: `{better}(x, ts)`"
            raise self.report.error("sql-aggregate-order", message, expr.span, help_line)
        if not expr.args:
            if function != "count":
                raise self.report.error("sql-aggregate-argument", f"`{function}` takes a column", expr.span)
            if condition is None:
                return Aggregate("", t.I64, "count", span=expr.span)
            counted = self.when(condition, Found(s.Int(1), t.I64), inside)
            return Aggregate("", t.I64, "count", counted.expr, counted.type, span=expr.span)
        operands = inside.operands(cast("tuple[s.Expr, ...]", expr.args))
        argument, parameters = self.operand(function, operands, expr, inside)
        if function.startswith("count_if"):
            test = (
                s.Call("is_true", (argument.expr,))
                if isinstance(argument.type, t.Optional)
                else argument.expr
            )
            condition = test if condition is None else s.Binary("and", condition, test)
            function, argument = "count", Found(s.Int(1), t.I64)
        if function == "regr_count":
            function = "count"
        if condition is not None:
            argument = self.when(condition, argument, inside)
        kind = strip(argument.type)
        loose = isinstance(argument.type, t.Optional) or not self.always
        type_ = self.summary_type(function, kind, expr, argument)
        if not t.is_key(kind):
            message = f"values of `{spelled(argument.type)}` cannot be compared"
            raise self.report.error("sql-aggregate-argument", message, expr.span)
        if function in ("sum_distinct", "avg_distinct") and isinstance(type_, t.Decimal):
            argument = as_decimal(argument, type_)
        if function.removesuffix("_distinct") in IN_ORDER:
            argument, parameters = self.in_order(function, argument, parameters, (by, down), expr, inside)
        result = t.Optional(type_) if loose or function.endswith("_samp") or function in PAIRS else type_
        if function.startswith("count"):
            result = t.I64
        if function == "count" and not isinstance(argument.type, t.Optional):
            return Aggregate(
                "", t.I64, "count", span=expr.span
            )  # a value that is always there counts like a row
        if function == "median":
            function, parameters = "quantile", (s.Float(0.5),)
        return Aggregate("", result, function, argument.expr, argument.type, parameters, span=expr.span)

    def folded(self, expr: q.Folded, condition: s.Expr | None, inside: RowExpressions) -> Aggregate:
        """What the user's aggregate makes of a group: of the rows that have all operands that it cannot do without."""
        fold, name = expr.fold, expr.function
        if len(expr.args) != len(fold.operands.fields):
            message = f"`{name}` takes {len(fold.operands.fields)} operands, not {len(expr.args)}"
            raise self.report.error("sql-aggregate-argument", message, expr.span)
        found: list[Found] = []
        for operand, (column, kind) in zip(
            inside.operands(cast("tuple[s.Expr, ...]", expr.args)), fold.operands.fields, strict=True
        ):
            value = convert(operand, t.F64) if _is_whole(operand.type) and strip(kind) == t.F64 else operand
            if strip(value.type) != strip(kind):
                message = (
                    f"operand `{column}` of `{name}` is `{spelled(kind)}`, this is `{spelled(value.type)}`"
                )
                raise self.report.error("sql-aggregate-argument", message, operand.expr.span or expr.span)
            found.append(value)
        loose_kinds = [isinstance(kind, t.Optional) for _, kind in fold.operands.fields]

        def row(parts: tuple[s.Expr, ...]) -> s.Expr:
            there = iter(parts)
            values = [
                _loosened(value) if may_be_none else next(there)
                for value, may_be_none in zip(found, loose_kinds, strict=True)
            ]
            named = zip(fold.operands.fields, values, strict=True)
            return s.RecordValue(tuple(s.FieldValue(column, value) for (column, _), value in named))

        needed = tuple(
            value for value, may_be_none in zip(found, loose_kinds, strict=True) if not may_be_none
        )
        argument = inside.lifted(needed, row, expr)
        if condition is not None:
            argument = self.when(condition, argument, inside)
        loose = isinstance(argument.type, t.Optional) or not self.always
        type_ = t.Optional(strip(fold.type)) if loose else fold.type
        return Aggregate("", type_, "fold", argument.expr, argument.type, fold=fold, span=expr.span)

    def in_order(
        self, function: str, value: Found, parameters: tuple[s.Expr, ...], order: tuple[tuple[s.Expr, ...], bool], expr: s.Call,
        inside: RowExpressions,
    ) -> tuple[Found, tuple[s.Expr, ...]]:  # fmt: skip
        """What an aggregate in an order is of: the value, or what orders it and the value behind that."""
        by, down = order
        keys = inside.operands(by)
        if not keys or [key.expr for key in keys] == [value.expr]:
            return value, (*parameters, s.Int(-1), s.Bool(value=down))
        if function.endswith("_distinct"):
            message = "different values are in their own order"
            raise self.report.error("sql-aggregate-order", message, expr.span, "order by the value itself")
        behind = tuple(  # none comes last
            part
            for key in keys
            for part in ((s.IsNone(key.expr), key.expr) if isinstance(key.type, t.Optional) else (key.expr,))
        )
        made = inside.lifted((value,), lambda parts: s.TupleValue((*behind, *parts)), expr)
        return made, (*parameters, s.Int(len(behind)), s.Bool(value=down))

    def when(self, condition: s.Expr, value: Found, inside: RowExpressions) -> Found:
        """A value where a condition holds, else none."""
        return inside.typed(s.IfExpr(condition, value.expr, s.NoneValue()))

    def operand(
        self, function: str, operands: tuple[Found, ...], expr: s.Call, inside: RowExpressions
    ) -> tuple[Found, tuple[s.Expr, ...]]:
        """What an aggregate is of, and its constants."""
        plain = function.removesuffix("_distinct")
        if plain == "string_agg" and len(operands) == 1:
            operands = (*operands, Found(s.String(","), t.STRING))
        wanted = 2 if plain in _OF_TWO or plain in PAIRS else 1
        if len(operands) != wanted:
            message = f"`{plain}` takes {'two operands' if wanted == 2 else 'one operand'}"
            raise self.report.error("sql-aggregate-argument", message, expr.span)
        first = operands[0]
        match plain:
            case "min_by" | "max_by":
                value, by = operands
                return inside.lifted((by, value), s.TupleValue, expr), ()
            case "string_agg":
                if not isinstance(operands[1].expr, s.String):
                    message = "the separator of `string_agg` is a text that is written out"
                    raise self.report.error("sql-aggregate-argument", message, expr.span)
                return inside.as_text(first), (operands[1].expr,)
            case "quantile" | "median" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
                number = _is_number(strip(first.type))
                if not number or plain != function:
                    message = f"`{plain}` takes numbers, this is `{spelled(first.type)}`"
                    if number:
                        message = f"`{plain}` takes no `distinct`"
                    raise self.report.error("sql-aggregate-argument", message, expr.span)
                if plain != "quantile":
                    return convert(first, t.F64), ()
                return convert(first, t.F64), (self.fraction(operands[1].expr, expr),)
            case "disc" | "disc_down" if plain == function:
                return first, (self.fraction(operands[1].expr, expr),)
            case "disc" | "disc_down":
                message = "`percentile_disc` takes no `distinct`"
                raise self.report.error("sql-aggregate-argument", message, expr.span)
            case _ if plain in PAIRS:
                if plain != function or not all(_is_number(strip(each.type)) for each in operands):
                    message = f"`{plain}` takes two numbers, and no `distinct`"
                    raise self.report.error("sql-aggregate-argument", message, expr.span)
                numbers = tuple(convert(each, t.F64) for each in operands)
                return inside.lifted(numbers, s.TupleValue, expr), ()
            case _:
                return first, ()

    def fraction(self, part: s.Expr, expr: s.Call) -> s.Expr:
        """Which part of the rows lies below."""
        if not isinstance(part, s.Float | s.Int) or not 0 <= part.value <= 1:
            message = "which part of the rows lies below is a number from 0 to 1 that is written out"
            raise self.report.error("sql-aggregate-argument", message, expr.span)
        return s.Float(float(part.value))

    def summary_type(self, function: str, kind: t.Type, expr: s.Call, argument: Found) -> t.Type:
        """The type of an aggregate of values of `kind`, where there are any."""
        function, distinct = function.removesuffix("_distinct"), function.endswith("_distinct")
        match function:
            case "count":
                return t.I64
            case "mode" if distinct:
                message, help_line = (
                    "`mode` takes no `distinct`",
                    "leave `distinct` out: each value would be there once",
                )
                raise self.report.error("sql-aggregate-argument", message, expr.span, help_line)
            case "min" | "max" | "mode" | "disc" | "disc_down":
                return kind
            case "min_by" | "max_by" if isinstance(kind, t.Tuple):
                return kind.items[1]
            case "string_agg":
                return t.STRING
            case "array_agg":
                return t.List(kind)
            case _ if function in PAIRS:
                return t.F64
            case "bool_and" | "bool_or" if kind == t.BOOL:
                return t.BOOL
            case "sum" if kind in (t.I32, t.I64):
                return t.I64
            case "sum" if kind == t.U64:
                return t.U64
            case "sum" if isinstance(kind, t.Decimal):
                return t.Decimal(38, kind.scale)
            case "avg" if isinstance(kind, t.Decimal):
                return mean_type(kind)
            case "sum" | "avg" if kind in t.FLOATS or (function == "avg" and kind in (t.I32, t.I64, t.U64)):
                return t.F64
            case "quantile" | "median" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
                return t.F64
            case _:
                wanted = "conditions" if function in ("bool_and", "bool_or") else "numbers"
                message = f"`{function}` takes {wanted}, this is `{spelled(argument.type)}`"
                raise self.report.error("sql-aggregate-argument", message, expr.span)


def _is_number(type_: t.Type) -> bool:
    return type_ in t.INTEGERS or type_ in t.FLOATS or isinstance(type_, t.Decimal)


def _is_whole(type_: t.Type) -> bool:
    return strip(type_) in t.INTEGERS


def _typed_literal(found: Found) -> Found:
    """A number that is written out as one whose type does not depend on where it stands."""
    if isinstance(found.expr, s.Int | s.Float) and found.type in (t.I64, t.F64):
        return evolve(found, expr=s.Call("i64" if found.type == t.I64 else "f64", (found.expr,)))
    return found


def _loosened(found: Found) -> s.Expr:
    """A value as one that may be none."""
    if isinstance(found.type, t.Optional):
        return found.expr
    return s.IfExpr(s.Bool(value=False), s.NoneValue(), found.expr)


def _title(function: str, expr: s.Call) -> str:
    if isinstance(expr, q.Folded):
        function = expr.function
    match expr.args:
        case (s.Name(column) | s.Member(_, column),):
            return f"{function}_{column}"
        case _:
            return function


def spelled(type_: t.Type) -> str:
    """The type as queries spell it."""
    if t.contains(type_, DATE):
        return show(type_).replace(show(DATE), "date")
    return re.sub(r"\b[if]64\b", lambda found: {"i64": "int", "f64": "float"}[found[0]], show(type_))


def strip(type_: t.Type) -> t.Type:
    """The type without its question mark."""
    return type_.inner if isinstance(type_, t.Optional) else type_


def promote(left: Found, right: Found) -> tuple[Found, Found]:
    """Two operands as numbers of one type: the wider whole number, or f64."""
    a, b = strip(left.type), strip(right.type)
    if isinstance(a, t.Decimal) or isinstance(b, t.Decimal):
        return _beside_decimal(left, right), _beside_decimal(right, left)
    numbers = (*WHOLE, t.F32, t.F64)
    if a == b or a not in numbers or b not in numbers:
        return left, right
    wide = t.I64 if a in WHOLE and b in WHOLE else t.F64
    return convert(left, wide), convert(right, wide)


def common(left: Found, right: Found) -> tuple[Found, Found]:
    """Two operands as values of one type, where decimals of different types are those of a type that holds both."""
    left, right = promote(left, right)
    a, b = strip(left.type), strip(right.type)
    if not isinstance(a, t.Decimal) or not isinstance(b, t.Decimal) or a == b:
        return left, right
    wide = decimals.common(a, b)
    return as_decimal(left, wide), as_decimal(right, wide)


def as_decimal(found: Found, kind: t.Decimal) -> Found:
    """A decimal as one of another type; none stays none, and digits behind the last are rounded."""
    if strip(found.type) == kind:
        return found
    own = decimals.written(found.expr)
    if own is not None and decimals.holds(kind, own):
        return Found(found.expr, kind)

    def made(value: s.Expr) -> s.Expr:
        return cast("s.Expr", decimals.made(value, strip(found.type), kind))

    if not isinstance(found.type, t.Optional):
        return Found(made(found.expr), kind)
    test, value = s.IsNone(found.expr), s.Force(found.expr)
    return Found(s.IfExpr(test, s.NoneValue(), made(value), span=found.expr.span), t.Optional(kind))


def _beside_decimal(found: Found, other: Found) -> Found:
    """A number as what it is beside a number of which one is a decimal: a decimal too, or both floats.

    Numbers that are written out take the type of the decimal by themselves, or have one of their own.
    """
    kind, beside = strip(found.type), strip(other.type)
    if isinstance(kind, t.Decimal):
        if beside not in t.FLOATS or decimals.written(other.expr) is not None:
            return found
        return convert(found, t.F64)
    own = decimals.written(found.expr)
    if own is not None and isinstance(beside, t.Decimal):
        if decimals.holds(beside, own):
            return Found(found.expr, beside)
        return Found(s.Call(decimals.holder(own), (found.expr,), span=found.expr.span), own)
    if kind not in WHOLE:
        return found
    whole = convert(found, t.I64)
    if isinstance(whole.type, t.Optional):
        made = s.Call("cql.decimal_of", (s.Force(whole.expr),), span=whole.expr.span)
        return Found(s.IfExpr(s.IsNone(whole.expr), s.NoneValue(), made), t.Optional(t.Decimal(19, 0)))
    return Found(s.Call("cql.decimal_of", (whole.expr,), span=whole.expr.span), t.Decimal(19, 0))


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


def alike(found: tuple[Found, ...]) -> tuple[Found, ...]:
    """Operands as numbers of one type, if they are numbers."""
    widest = found[0]
    for one in found[1:]:
        widest, _ = common(widest, one)
    return tuple(common(one, widest)[0] for one in found)


def _fitted(found: Found, kind: str) -> Found | None:
    """An operand as a function takes it, or None."""
    type_ = strip(found.type)
    number = _is_number(type_)
    match kind:
        case "text":
            return found if type_ == t.STRING else None
        case "pattern":
            return found if isinstance(found.expr, s.String) else None
        case "flag g":
            return found if found.expr == s.String("g") else None
        case "time":
            return found if type_ == t.TIME else None
        case "list":
            return found if isinstance(type_, t.List) else None
        case "instant":
            return found if number or type_ == t.STRING else None
        case "int":
            return convert(found, t.I64) if type_ in t.INTEGERS else None
        case "float":
            return convert(found, t.F64) if number else None
        case "number":
            return found if number else None
        case _:
            return found


def _whole(number: int) -> s.Expr:
    return s.Int(number) if number >= 0 else s.Unary("-", s.Int(-number))


def _calendar(length: s.Argument) -> tuple[s.Expr, s.Expr | None] | None:
    """A length that has months, written out or so many times such a one: the months, and what is added behind them."""
    match length:
        case s.Call("months", (s.Int() as months, *rest)):
            return months, cast("s.Expr | None", rest[0] if rest else None)
        case s.Binary("*", one, other) if (parts := _calendar(one)) is not None:
            months, rest = parts
            return _scaled(months, other), None if rest is None else _scaled(rest, other)
        case s.Binary("*", one, other) if _calendar(other) is not None:
            return _calendar(evolve(length, left=other, right=one))
        case s.Unary("-", value) if _calendar(value) is not None:
            return _calendar(_negative(value))
        case _:
            return None


def _negative(length: s.Expr) -> s.Expr:
    return s.Binary("*", length, s.Int(-1), span=length.span)


def _scaled(length: s.Expr, by: s.Expr) -> s.Expr:
    """A number of months, or a length of time, so many times."""
    match length, by:
        case s.Int(a), s.Int(b):
            return s.Int(a * b, span=length.span)
        case s.Call("duration", (s.Int(a),)), s.Int(b):
            return evolve(length, args=(s.Int(a * b),))
        case _:
            return s.Binary("*", length, by, span=length.span)


def _unit(given: s.Argument) -> str | None:
    """A unit of time as it is named: `day`, `days` or `'day'`."""
    match given:
        case s.Name(name) | s.String(name):
            return (
                name.lower().removesuffix("s")
                if name.lower().removesuffix("s") in (*UNITS, "month", "year")
                else None
            )
        case _:
            return None


def _chain(op: str, values: list[s.Expr], span: Span | None) -> s.Expr:
    """`a op b op c`."""
    found = values[0]
    for value in values[1:]:
        found = s.Binary(op, found, value, span=span)
    return found


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


OPEN = frozenset(
    {
        *COMPARISONS.values(), "and3", "or3", "not3", "is_true", "is_none", "force", "same", "compare", "hash64",
        "sqlmin", "sqlmax",
    }
)  # fmt: skip
"""Operations that take what may be none."""


def _matching(value: s.Expr, pattern: str, escape: str, span: Span | None, *, small: bool) -> s.Expr:
    """SQL's patterns with an escape, or without regard to capital letters."""
    wild = ""
    characters = iter(pattern)
    for c in characters:
        if escape and c == escape:
            wild += re.escape(next(characters, ""))
        else:
            wild += {"%": ".*", "_": "."}.get(c) or re.escape(c)
    flags = "is" if small else "s"
    test = s.Call("regex", (s.String(f"^(?{flags}:{wild})$", span=span),), span=span)
    return s.Call("re_test", (test, value), span=span)


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
