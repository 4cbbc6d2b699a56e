"""Windows that a text groups by, `group by tumble(ts, interval '1' minute), k`, become windows as tables.

That is how Flink wrote them first. `tumble_start`, `tumble_end`, and the same of `hop` and `session`, are the ends of the window,
`tumble_rowtime` its last instant.
The sessions are those of each value of the other columns that are grouped by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import syntax as c
from frontends.cql import typed as ty
from frontends.cql.window_tables import LENGTHS, USAGE, length
from frontends.sql import syntax as q
from river.classes import evolve
from river.il.trees import rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from river.report import Report

ENDS = {"start": ty.START, "end": ty.END}
PARTS = {**ENDS, "rowtime": "window_time"}


def with_tables(program: c.Program, report: Report) -> c.Program:
    """The program with such windows after `from`. Codes: cql-group-window."""

    def rewrite(node: s.Node) -> s.Node:
        rebuilt = rebuild(node, rewrite)
        return _block(rebuilt, report) if isinstance(rebuilt, q.Select) else rebuilt

    return cast("c.Program", rewrite(program))


def _block(block: q.Select, report: Report) -> q.Select:
    known = [name for name in LENGTHS if name != "cumulate"]
    calls = [key for key in block.group if isinstance(key, s.Call) and key.function.lower() in known]
    if not calls:
        return block
    call, name = calls[0], calls[0].function.lower()
    stamp = call.args[0] if call.args else None
    if isinstance(stamp, s.Member):
        stamp = s.Name(stamp.name, span=stamp.span)
    lengths = [length(arg) for arg in call.args[1:]]
    plain = len(block.sources) == 1 and type(block.sources[0]) is q.Source
    fitting = isinstance(stamp, s.Name) and None not in lengths and len(lengths) == len(LENGTHS[name])
    others = tuple(key for key in block.group if key is not call)
    columns = tuple(s.Name(key.name, span=key.span) for key in others if isinstance(key, s.Name | s.Member))
    known = name != "session" or len(columns) == len(others)
    if len(calls) > 1 or not plain or not fitting or not known:
        message = (
            "a block is grouped by one window, of the one stream that it is of; sessions by columns beside it"
        )
        report.error("cql-group-window", message, call.span, f"write it after `from`: {USAGE[name]}")
        return block
    (source,) = block.sources
    keys = columns if name == "session" else ()
    window = c.WindowTable(
        name, tuple(each for each in lengths if each), keys, cast("s.Name", stamp), span=call.span
    )
    ends = tuple(s.Name(column, span=call.span) for column in ENDS.values())

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Call(function, args) if args == call.args and function.lower().startswith(f"{name}_"):
                column = PARTS.get(function.lower().removeprefix(f"{name}_"))
                return node if column is None else s.Name(column, span=node.span)
            case _:
                return rebuild(node, rewrite)

    found = rebuild(evolve(block, group=others), rewrite)
    seen = c.Windowed(source.name, source.alias, source.joining, window, span=source.span)
    return evolve(found, sources=(seen,), group=(*ends, *found.group))
