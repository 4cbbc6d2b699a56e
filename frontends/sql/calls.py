"""Calls by name: forms with rules of their own, functions of the table (`functions`), and operations of the operator language."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import casts, choices, days, json_paths, lists, operators, times
from frontends.sql.absent import ABSENT
from frontends.sql.aggregates import AGGREGATES
from frontends.sql.functions import FUNCTIONS, SEVERAL, SqlFunction
from frontends.sql.operations import OPEN
from frontends.sql.values import Found, alike, convert, is_number, promote, spelled, strip
from river.classes import evolve
from river.diagnostics import closest
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.operations import OPERATIONS

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions
    from river.source import Span

EXTERN = "extern."
"""What stands before the names of functions that the user writes in another language; their types are in the scope."""


def call(over: RowExpressions, function: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
    """A function of SQL's table, or an operation of the operator language, which is strict like them."""
    name = function.lower()
    for form in (casts.called, times.called, _called):
        found = form(over, name, args, expr)
        if found is not None:
            return found
    _refuse(over, function, expr)
    if name == "last_day" and len(args) == 1:
        return days.as_date(over, _from_table(over, FUNCTIONS[name], function, args, expr))
    if name in SEVERAL:
        return choices.several(over, name, args, expr)
    if name in FUNCTIONS:
        return _from_table(over, FUNCTIONS[name], function, args, expr)
    if (function in OPERATIONS and name not in ABSENT) or function.startswith(EXTERN):
        return _operation(over, args, expr)
    known = [*FUNCTIONS, *SEVERAL, *AGGREGATES, "cast", "extract", "date_trunc"]
    near = ABSENT.get(name) or closest(name, known)
    raise over.report.error("sql-unknown-function", f"unknown function `{function}`", expr.span, near)


def _called(over: RowExpressions, name: str, args: tuple[s.Expr, ...], expr: s.Call) -> Found | None:
    """What a call means that is neither a cast nor of times, and is not in the table; None if it is in the table, or nothing."""
    match name, args:
        case "array of", values:
            return lists.array(over, alike(over.operands(values)), expr)
        case "array_contains" | "list_contains" | "list_has", (items, value):
            return lists.has(over, *over.both(items, value), expr)
        case _, (value, *path) if name in json_paths.NAMES:
            return json_paths.read(over, value, tuple(path), expr)
        case "json at" | "json_extract_path_text", (value, *path) if path:
            return json_paths.stepped(over, value, tuple(map(json_paths.step, path)), expr)
        case "iif" | "if", (condition, then, other):
            return over.find(s.IfExpr(condition, then, other, span=expr.span))
        case "unknown", ():
            no = s.Bool(value=False)
            return over.typed(s.IfExpr(no, no, s.NoneValue(), span=expr.span))
        case "alike", (left, right):
            a, b = promote(*over.both(left, right))
            return over.typed(s.Call("same", (a.expr, b.expr), span=expr.span))
        case "is_true" | "is_false", (value,):
            return operators.truth(over, name, over.find(value), expr)
        case _:
            return None


def _refuse(over: RowExpressions, function: str, expr: s.Call) -> None:
    """Says what is wrong with calls that the parser makes, and which have no meaning where they stand."""
    name = function.lower()
    if name.endswith(".distinct"):
        message = f"`{function.removesuffix('.distinct')}(distinct ...)` takes one column"
        help_line = "different rows are counted so: `select count(*) from (select distinct a, b from s)`"
        raise over.report.error("sql-aggregate-argument", message, expr.span, help_line)
    if name == "in":
        message = "what `in` asks for stands in parentheses"
        raise over.report.error(
            "sql-in", message, expr.span, "write `x in (1, 2)`, or `x = any(xs)` of a list"
        )
    if name in ("filter", "ordered"):
        clause = "filter" if name == "filter" else "order by"
        raise over.report.error("sql-filter", f"only aggregates have `{clause}`", expr.span)


def _from_table(
    over: RowExpressions, called: SqlFunction, name: str, args: tuple[s.Expr, ...], expr: s.Call
) -> Found:
    """A strict function on operands that fit."""
    if not len(called.takes) - called.optional <= len(args) <= len(called.takes):
        message = f"`{name}` takes other operands than these {len(args)}"
        raise over.report.error("sql-function-operands", message, expr.span, f"it is {called.signature}")
    fitted: list[Found] = []
    for i, (found, kind) in enumerate(zip(over.operands(args), called.takes, strict=False)):
        one = _fitted(days.as_time(over, found) if kind == "time" else found, kind)
        if one is None:
            written = {
                "pattern": "a text that is written out",
                "flag g": "`'g'`: all matches are replaced",
            }
            wanted = written.get(kind, f"`{kind}`")
            message = f"operand {i + 1} of `{name}` is {wanted}, this is `{spelled(found.type)}`"
            raise over.report.error(
                "sql-function-operands", message, args[i].span, f"it is {called.signature}"
            )
        if kind == "pattern":
            _readable(over, cast("s.String", one.expr).value, args[i].span)
        fitted.append(one)
    kind = strip(fitted[0].type) if fitted else t.UNIT
    return over.lifted(tuple(fitted), lambda parts: evolve(called.make(parts, kind), span=expr.span), expr)


def _readable(over: RowExpressions, pattern: str, span: Span | None) -> None:
    """Says of a pattern that is written out what is wrong with it."""
    from river.lang.patterns import BadPattern, compile_pattern

    try:
        compile_pattern(pattern)
    except BadPattern as bad:
        help_line = r"patterns have RE2's syntax; a character stands for itself behind `\`, as in `\(`"
        raise over.report.error("sql-pattern", f"this is no pattern: {bad}", span, help_line) from None


def _operation(over: RowExpressions, args: tuple[s.Expr, ...], expr: s.Call) -> Found:
    """An operation of the operator language: none where an operand is, unless it is made for that."""
    if expr.function in OPEN or any(isinstance(arg, s.NoneValue) for arg in args):
        return over.typed(rebuild(expr, over.inner))
    found = over.operands(args)
    return over.lifted(found, lambda parts: evolve(expr, args=parts), expr)


def _fitted(found: Found, kind: str) -> Found | None:
    """An operand as a function takes it, or None."""
    type_ = strip(found.type)
    number = is_number(type_)
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
