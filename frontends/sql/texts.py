"""Texts: values as texts, texts one after the other, and the patterns of `like`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from frontends.sql import dates
from frontends.sql.dates import DATE
from frontends.sql.values import Found, chain, spelled, strip
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql.expressions import RowExpressions
    from river.source import Span


def as_text(over: RowExpressions, value: Found) -> Found:
    """A value as text, as `cast` has it."""
    if strip(value.type) == t.STRING:
        return value
    if strip(value.type) == DATE:
        return over.lifted((value,), lambda parts: dates.text_of(parts[0]), value.expr)
    return over.lifted((value,), lambda parts: s.Call("string", parts), value.expr)


def _or_empty(value: Found) -> s.Expr:
    """A text, empty where it is none."""
    if not isinstance(value.type, t.Optional):
        return value.expr
    return s.Call("coalesce", (value.expr, s.String("")), span=value.expr.span)


def concatenated(over: RowExpressions, found: tuple[Found, ...], expr: s.Call) -> Found:
    """`concat`: the texts of all values, one after the other; what is none is an empty one."""
    values = [_or_empty(as_text(over, one)) for one in found]
    return over.typed(chain("+", values, expr.span))


def joined(over: RowExpressions, found: tuple[Found, ...], expr: s.Call) -> Found:
    """`concat_ws`: the texts that are there, the first operand between them."""
    separator, *rest = (as_text(over, one) for one in found)
    if isinstance(separator.type, t.Optional) or not rest:
        message = "`concat_ws` takes a text that is never none, and what it stands between"
        raise over.report.error("sql-function-operands", message, expr.span)
    # what is never none has to be told to be of the others' type
    texts = [
        one.expr
        if isinstance(one.type, t.Optional)
        else s.IfExpr(s.Bool(value=False), s.NoneValue(), one.expr)
        for one in rest
    ]
    return over.typed(s.Call("cql.concat_ws", (separator.expr, s.ListValue(tuple(texts))), span=expr.span))


def like(over: RowExpressions, expr: s.Call) -> Found:
    """`like`, `ilike`: with a pattern that is written out, or one that is known when the query runs."""
    value, pattern, *escape = cast("tuple[s.Expr, ...]", expr.args)
    if isinstance(pattern, s.String):
        return _like_written(over, expr.function, value, pattern.value, tuple(escape), expr)
    return _like_any(over, expr.function, (value, pattern), tuple(escape), expr)


def _like_written(
    over: RowExpressions, name: str, value: s.Expr, pattern: str, escape: tuple[s.Argument, ...], expr: s.Call
) -> Found:
    """`like`, `ilike` with a pattern that is written out."""
    text = over.find(value)
    if strip(text.type) != t.STRING:
        message = f"`{name}` compares texts, this is `{spelled(text.type)}`"
        raise over.report.error("sql-like", message, value.span)
    sign = escape[0].value if escape and isinstance(escape[0], s.String) else ""
    if sign and re.search(rf"(?s)^(?:[^{re.escape(sign)}]|{re.escape(sign)}.)*{re.escape(sign)}$", pattern):
        raise over.report.error("sql-like", "nothing follows the last escape", expr.span)
    small = name == "ilike"

    def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
        if sign or small:
            return _matching(parts[0], pattern, sign, expr.span, small=small)
        return _like(parts[0], pattern, expr.span)

    return over.lifted((text,), apply, expr)


def _like_any(
    over: RowExpressions,
    name: str,
    given: tuple[s.Expr, s.Expr],
    escape: tuple[s.Argument, ...],
    expr: s.Call,
) -> Found:
    """`like` with a pattern that is known when the query runs."""
    sides = over.both(*given)
    for side, value in zip(sides, given, strict=True):
        if strip(side.type) != t.STRING:
            message = f"`{name}` compares texts, this is `{spelled(side.type)}`"
            raise over.report.error("sql-like", message, value.span)
    sign = escape[0] if escape else s.String("")

    def apply(parts: tuple[s.Expr, ...]) -> s.Expr:
        texts = tuple(s.Call("lower", (part,)) for part in parts) if name == "ilike" else parts
        return s.Call("cql.is_like", (*texts, sign), span=expr.span)

    return over.lifted(sides, apply, expr)


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
