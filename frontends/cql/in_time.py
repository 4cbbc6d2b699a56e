"""What other engines say of the time of rows, in blocks of one input stream: it becomes what the time stamp says.

`first(x)`, `last(x)`, ksqlDB's `latest_by_offset(x)` are by the time stamp, `rowtime` is that; Esper's `prev(n, x)` is `lag`.
Flink's `window_time` is the last millisecond of a window, and `cumulate` what has come of it so far.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from frontends.cql import syntax as c
from frontends.cql import typed as ty
from frontends.cql.ranked import numbered
from frontends.cql.windows import clock
from frontends.sql import syntax as q
from frontends.sql.functions import TYPES as NAMED
from river.classes import evolve
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.report import Report

BY_TIME: Final = {
    "first": "min_by", "first_value": "min_by", "earliest_by_offset": "min_by",
    "last": "max_by", "last_value": "max_by", "latest_by_offset": "max_by",
}  # fmt: skip
"""Aggregates of one row, and how they are called with what they are by."""


def in_time(program: c.Program, report: Report) -> c.Program:
    """The program with such names written out. Codes: cql-cumulate."""
    inputs = {
        decl.name: decl for decl in program.decls if decl.query is None and decl.kind == "stream" and decl.by
    }

    def rewrite(node: s.Node) -> s.Node:
        rebuilt = rebuild(node, rewrite)
        if not isinstance(rebuilt, q.Select):
            return rebuilt
        match rebuilt.sources:
            case (source,) if source.name in inputs and not isinstance(source, c.Derived | q.Unnest):
                rebuilt = _block(rebuilt, inputs[source.name], source)
            case _:
                pass
        return evolve(rebuilt, sources=tuple(map(shown, rebuilt.sources)))

    def shown(source: q.Source) -> q.Source:
        match source:
            case c.Windowed(window=c.WindowTable("cumulate", (step, size)) as window):
                with report.recover():
                    return _cumulated(
                        source, window, inputs.get(source.name), partial(ticks, step, size), report
                    )
                return evolve(source, window=c.Unbounded(span=window.span))
            case _:
                return source

    def ticks(step: c.Length, size: c.Length, tau: t.Primitive) -> tuple[int, int]:
        time = clock(program, tau, report)
        return time.ticks(step, report), time.ticks(size, report)

    return cast("c.Program", rewrite(program)) if inputs else program


def _cumulated(
    source: c.Windowed,
    window: c.WindowTable,
    decl: c.Decl | None,
    lengths: Callable[[t.Primitive], tuple[int, int]],
    report: Report,
) -> q.Source:
    """What has come of each window so far, each step: the rows of windows that hop which are not before the one at hand."""
    span = window.span
    if decl is None:
        message = "`cumulate` is of a stream that is an input"
        raise report.error("cql-cumulate", message, span, "write `cumulate(s, 1 minute, 10 minutes)`")
    in_times = _is_time(decl)
    step, size = lengths(t.TIME if in_times else t.I64)
    if step <= 0 or size % step:
        message = "a window that cumulates is a multiple of its steps"
        raise report.error("cql-cumulate", message, span, "write `cumulate(s, 1 minute, 10 minutes)`")
    end: s.Expr = s.Name(ty.END, span=span)
    begin = s.Call(
        "date_bin", (_length(size), s.Binary("-", end, _length(1)), s.Call("time", (s.Int(0),))), span=span
    )
    if not in_times:
        last = s.Binary("-", end, s.Int(1), span=span)
        over = s.Binary(
            "%", s.Binary("+", s.Binary("%", last, s.Int(size)), s.Int(size)), s.Int(size), span=span
        )
        begin = s.Binary("-", last, over, span=span)
    items = (
        q.Star(None, (ty.START, ty.END), span=span),
        q.Item(begin, ty.START, span=span),
        q.Item(end, ty.END, span=span),
    )
    hopping = c.Windowed(source.name, window=evolve(window, function="hop"), span=span)
    where = s.Binary(">=", s.Name(cast("str", decl.by), span=span), begin, span=span)
    query = c.Query(q.Select(items, (hopping,), where, span=span), span=span)
    return c.Derived(source.label, source.label, source.joining, query, span=source.span)


def _length(ticks: int) -> s.Expr:
    return s.Call("duration", (s.Int(ticks),))


def _is_time(decl: c.Decl) -> bool:
    """Whether the time stamp of an input is a time."""
    columns = () if decl.type is None else decl.type.fields
    kinds = [column.type for column in columns if isinstance(column, s.FieldType) and column.name == decl.by]
    return any(isinstance(kind, s.TypeName) and NAMED.get(kind.name) == t.TIME for kind in kinds)


def _block(block: q.Select, decl: c.Decl, source: q.Source) -> q.Select:
    columns = (
        {column.name for column in decl.type.fields if isinstance(column, s.FieldType)}
        if decl.type
        else set[str]()
    )
    window = source.window if isinstance(source, c.Windowed) else None
    keys = window.keys if isinstance(window, c.RowWindow | c.Range) else ()
    tabled = isinstance(window, c.WindowTable) and "window_time" not in columns

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case q.Nested() | q.Over() | q.Source():
                return node
            case s.Call(name, (value,), span=span) if name.lower() in BY_TIME:
                return s.Call(BY_TIME[name.lower()], (cast("s.Expr", rewrite(value)), stamp(node)), span=span)
            case s.Call(name, (s.Int() as count, value), span=span) if (
                name.lower() == "prev" and span is not None
            ):
                order = (q.OrderKey(stamp(node), span=span),)
                call = s.Call("lag", (cast("s.Expr", value), count), span=span)
                return numbered(call, keys, order, None, span) or node
            case s.Name(name) if name.lower() == "rowtime" and name not in columns:
                return stamp(node)
            case q.Item(s.Name("window_time"), None) if tabled:
                return evolve(node, value=cast("s.Expr", rewrite(node.value)), name="window_time")
            case s.Name("window_time") if tabled:
                last = s.Call("duration", (s.Int(1000),)) if _is_time(decl) else s.Int(1)
                return s.Binary("-", s.Name(ty.END, span=node.span), last, span=node.span)
            case _:
                return rebuild(node, rewrite)

    def stamp(node: s.Node) -> s.Expr:
        return s.Name(cast("str", decl.by), span=node.span)

    return rebuild(block, rewrite)
