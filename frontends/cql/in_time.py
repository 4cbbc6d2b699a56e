"""What other engines say of the time of rows, in blocks of one input stream: it becomes what the time stamp says.

`first(x)`, `last(x)`, ksqlDB's `latest_by_offset(x)` are by the time stamp, `rowtime` is that; Esper's `prev(n, x)` is `lag`.
"""

from __future__ import annotations

from typing import Final, cast

from frontends.cql import syntax as c
from frontends.cql.ranked import numbered
from frontends.sql import syntax as q
from river.il.trees import rebuild
from river.lang import syntax as s

BY_TIME: Final = {
    "first": "min_by", "earliest_by_offset": "min_by",
    "last": "max_by", "latest_by_offset": "max_by",
}  # fmt: skip
"""Aggregates of one row, and how they are called with what they are by."""


def in_time(program: c.Program) -> c.Program:
    """The program with such names written out."""
    inputs = {
        decl.name: decl for decl in program.decls if decl.query is None and decl.kind == "stream" and decl.by
    }

    def rewrite(node: s.Node) -> s.Node:
        rebuilt = rebuild(node, rewrite)
        match rebuilt:
            case q.Select(sources=(source,)) if source.name in inputs and not isinstance(
                source, c.Derived | q.Unnest
            ):
                return _block(rebuilt, inputs[source.name], source)
            case _:
                return rebuilt

    return cast("c.Program", rewrite(program)) if inputs else program


def _block(block: q.Select, decl: c.Decl, source: q.Source) -> q.Select:
    columns = (
        {column.name for column in decl.type.fields if isinstance(column, s.FieldType)}
        if decl.type
        else set[str]()
    )
    window = source.window if isinstance(source, c.Windowed) else None
    keys = window.keys if isinstance(window, c.RowWindow | c.Range) else ()

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
            case _:
                return rebuild(node, rewrite)

    def stamp(node: s.Node) -> s.Expr:
        return s.Name(cast("str", decl.by), span=node.span)

    return rebuild(block, rewrite)
