"""Expressions of a query: columns are resolved, and the conversions that SQL makes silently are written down.

What comes out is an expression of the operator language over locals: `s0`, `s1` ... are the rows of the sources, `g` a
group. Its types are the shared checker's.

Here are names, the choice of the rule that an expression has, and what all rules share. The rules of a topic are functions in a
module of their own, which take the `RowExpressions` that they work for: `operators`, `months`, `texts`, `lists`, `choices`, and
`calls` with `casts` and `times`. What differs where rows are grouped is `groups`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from frontends.sql import calls, choices, lists, operators, texts
from frontends.sql import syntax as q
from frontends.sql.absent import ABSENT
from frontends.sql.aggregates import aggregate_of
from frontends.sql.columns import Column
from frontends.sql.dates import DATE
from frontends.sql.months import calendar, moved, negative
from frontends.sql.operations import ARITHMETIC, COMPARISONS
from frontends.sql.values import Found, chain, convert, spelled, strip
from river.classes import define, evolve, field
from river.diagnostics import Rejected, closest
from river.il.trees import rebuild
from river.lang import check
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import Scope, resolve, show
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from river.diagnostics import Diagnostic
    from river.source import Span


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
            case s.Member(s.Name(label) as source, name) if not any(row.field(label) for row in self.rows):
                having = [self.labels[i] for i, row in enumerate(self.rows) if row.field(name) is not None]
                if having:
                    message = f"there is no source `{label}` here"
                    written = " or ".join(f"`{known}.{name}`" for known in having)
                    raise self.report.error("sql-unknown-column", message, source.span, f"write {written}")
                return None
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
            case s.Binary():
                return self.binary(expr)
            case s.IsNone(value):
                return operators.is_none(self, self.find(value), expr)
            case s.Unary(op, value):
                return operators.unary(self, op, self.find(value), expr)
            case s.Index(items, at):
                return lists.at(self, *self.both(items, at), expr)
            case s.IfExpr(condition, then, other):
                return choices.chosen(self, self.condition(condition), then, other, expr)
            case s.Member(value, name):
                return self.member(self.find(value), name, expr)
            case s.NoneValue() if any(known.span == expr.span for known in self.report.found):
                raise Failed  # it stands for what is refused
            case s.NoneValue():
                raise self.report.error(
                    "sql-none",
                    "nothing says of which type this is",
                    expr.span,
                    "`is null` asks for it; a value is `cast(null as int)`",
                )
            case s.Comprehension() | s.Var() | s.Hole():
                raise self.report.error("sql-expression", "this cannot stand in a query", expr.span)
            case s.Call("like" | "ilike", (_, _, *_)):
                return texts.like(self, expr)
            case s.Call(function, args):
                if any(isinstance(arg, s.Lambda) for arg in args):
                    message = f"`{function}` takes a function, which cannot stand in a query"
                    raise self.report.error("sql-expression", message, expr.span)
                found = calls.call(self, function, cast("tuple[s.Expr, ...]", args), expr)
                return evolve(found, expr=_placed(found.expr, expr.span))
            case _:
                return self.typed(rebuild(expr, self.inner))

    def binary(self, expr: s.Binary) -> Found:
        """An operator with two operands: what these are decides which rule it has."""
        match expr:
            case s.Binary("and" | "or" as op, left, right):
                return operators.logic(self, op, *self.both(left, right), expr)
            case s.Binary("==", value, s.Call("any" | "some" | "ANY" | "SOME", (items,))):
                return lists.has(self, self.find(cast("s.Expr", items)), self.find(value), expr)
            case s.Binary(op, left, right) if op in COMPARISONS:
                return operators.comparison(self, op, *self.both(left, right), expr)
            case s.Binary("+", length, at) if (parts := calendar(length)) and not calendar(at):
                return moved(self, self.find(at), *parts, expr)
            case s.Binary("-", at, length) if (parts := calendar(negative(length))) and not calendar(at):
                return moved(self, self.find(at), *parts, expr)
            case s.Binary("+", at, length) if (parts := calendar(length)) and not calendar(at):
                return moved(self, self.find(at), *parts, expr)
            case s.Binary(op, left, right) if op in ARITHMETIC:
                return operators.arithmetic(self, op, *self.both(left, right), expr)
            case s.Binary("||", left, right):
                sides = tuple(texts.as_text(self, side) for side in self.both(left, right))
                return self.lifted(sides, lambda parts: s.Binary("+", *parts, span=expr.span), expr)
            case _:
                return self.typed(rebuild(expr, self.inner))

    def member(self, record: Found, name: str, expr: s.Member) -> Found:
        """A field of a record; none where the record is."""
        if isinstance(record.type, t.Optional) and isinstance(record.type.inner, t.Record):
            return self.lifted((record,), lambda parts: s.Member(parts[0], name, span=expr.span), expr)
        return self.typed(evolve(expr, value=record.expr))

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
            told = list(map(_told, rejected.diagnostics))
            self.report.found += [d for d in told if d not in self.report.found]
            raise Failed from None

    def operands(self, args: tuple[s.Expr, ...]) -> tuple[Found, ...]:
        """The operands of a function; the errors of all are told."""
        found: list[Found] = []
        for arg in args:
            with self.report.recover():
                found.append(self.find(arg))
        if len(found) < len(args):
            raise Failed
        return tuple(found)

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
        unknown = chain("or", tests, expr.span)
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


def _placed(expr: s.Expr, span: Span | None) -> s.Expr:
    """What a call was written out as, with the place of the call: a trap in it stands there."""

    def rewrite(node: s.Node) -> s.Node:
        if node.span is not None and node.span != span:
            return node  # an operand, which has its own place
        node = rebuild(node, rewrite)
        return node if node.span is not None else evolve(node, span=span)

    return cast("s.Expr", rewrite(expr))


_OPERATORS = {"==": "=", "!=": "<>", "rem.trunc": "%", "div.trunc": "/"}
_MEANT = {
    "count": ("`count`", "it is of one column, or of rows: `count(*)`"),
    "coalesce": ("`coalesce`", "all operands are of one type: convert some, as in `cast(x as string)`"),
    "not": ("`not`", "it is of a condition, as in `not (x > 3)`"),
    "neg": ("`-`", "it is of a number; a text is one by `cast(x as int)`"),
    "sqlmax": ("`greatest`", "all operands are of one type: convert some, as in `cast(x as string)`"),
    "sqlmin": ("`least`", "all operands are of one type: convert some, as in `cast(x as string)`"),
}
"""Operations of the operator language that queries call otherwise: how, and what to write."""


LENGTH = "a length of time has a unit: `interval '5' minute`, or `n * interval '1' minute`"


def _told(found: Diagnostic) -> Diagnostic:
    """What the operator language refuses, in the words of queries."""
    found = evolve(found, message=found.message.replace(show(DATE), "date"))
    if found.code == "lang-literal-range":
        help_line = "a number with a point is a `float` or `decimal`"
        return evolve(found, message=re.sub(r"\b[if]64\b", _spelled, found.message), help=help_line)
    if found.code == "lang-type-mismatch":
        message = re.sub(r"\b[if]64\b", _spelled, found.message)
        wanted = re.match(
            r"expected `(int|float|string|bool|time)`, found `(int|float|string|bool|time)`", message
        )
        help_line = f"convert it, as in `cast(x as {wanted[1]})`" if wanted else found.help
        if message.startswith(("expected `duration`, found `int`", "expected `duration?`, found `int`")):
            help_line = LENGTH
        elif wanted and wanted[1] == "bool":
            help_line = "a condition is a comparison, as in `x <> 0`"
        elif wanted and "string" in wanted.groups():
            help_line = f"{help_line}; texts stand in `'`, as in `'3'`, and are put together by `||`"
        return evolve(found, message=message, help=help_line)
    refused = re.fullmatch(r"`(\S+)` does not apply to (.*)", found.message)
    if found.code != "lang-operation-types" or refused is None:
        return found
    name, types = refused[1], re.findall(r"`([^`]*)`", re.sub(r"\b[if]64\b", _spelled, refused[2]))
    message = f"`{_OPERATORS.get(name, name)}` does not apply to {', '.join(f'`{one}`' for one in types)}"
    kinds = {one.rstrip("?") for one in types}
    help_line = found.help
    if name in _MEANT:
        said, help_line = _MEANT[name]
        message = message.replace(f"`{name}`", said)
    elif name in ("+", "-", "*", "/", "%", *_OPERATORS, "<", "<=", ">", ">=") and "string" in kinds:
        other = next(iter(sorted(kinds - {"string"})), "int")
        help_line = f"convert one of them, as in `cast(x as {other})`"
        if name == "+":
            help_line += "; texts are put together by `||`"
    elif name in ("+", "-", "*", *_OPERATORS) and "duration" in kinds:
        help_line = LENGTH
    elif name in ("+", "-", "*", *_OPERATORS):
        help_line = "both operands are of one type: convert one of them, as in `cast(x as int)`"
    return evolve(found, message=message, help=help_line)


def _spelled(name: re.Match[str]) -> str:
    return {"i64": "int", "f64": "float"}[name[0]]
