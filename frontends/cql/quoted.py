"""Double quotes: what stands in them is the name of a column, or a text where there is none of that name.

SQL's double quotes are those of names; other kinds of SQL write texts so, too. So it is asked which columns there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from river.classes import evolve
from river.diagnostics import closest
from river.il.trees import children, rebuild
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.lang import types as t
    from river.report import Report

Known = frozenset[str]


def settled(block: q.Select, row_of: Callable[[q.Source], t.Record], report: Report) -> q.Select:
    """`block` with each part in double quotes as a name or as a text, those of queries inside of its expressions too.

    `row_of`: the rows of a source; it raises Failed for one that was refused. Codes: cql-quoted (a remark).
    """
    return _Settle(row_of, report).block(block, frozenset()) if _has(block) else block


def _has(node: s.Node) -> bool:
    return isinstance(node, q.Quoted) or any(map(_has, children(node)))


class _Settle:
    def __init__(self, row_of: Callable[[q.Source], t.Record], report: Report) -> None:
        self.row_of = row_of
        self.report = report

    def block(self, block: q.Select, around: Known) -> q.Select:
        """A block; `around`: the columns of those around it."""
        rows = map(self.row_of, block.sources)
        known = around | {name for row in rows for name, _ in row.fields}
        named = known | {item.name for item in block.items if isinstance(item, q.Item) and item.name}

        def before(node: s.Node) -> s.Node:
            return self.part(node, known)

        def behind(node: s.Node) -> s.Node:
            return self.part(node, named)

        return evolve(
            block,
            items=tuple(map(before, block.items)),
            sources=tuple(
                evolve(source, joining=before(source.joining)) if source.joining is not None else source
                for source in block.sources
            ),
            where=None if block.where is None else before(block.where),
            group=tuple(map(behind, block.group)),
            having=None if block.having is None else behind(block.having),
            qualify=None if block.qualify is None else behind(block.qualify),
            order=tuple(map(behind, block.order)),
        )

    def part(self, node: s.Node, known: Known) -> s.Node:
        """A part of a block, in which these columns are known."""
        match node:
            case s.Member(q.Quoted(label, span=span), _):
                return evolve(node, value=s.Name(label, span=span))
            case q.Quoted(name, span=span) if name in known:
                return s.Name(name, span=span)
            case q.Quoted(name, span=span):
                if (near := closest(name, known)) is not None:
                    message = f"no column is called `{name}`: this is a text"
                    self.report.remark("cql-quoted", message, span, f"{near} texts stand in single quotes")
                return s.String(name, span=span)
            case c.Query(select) if isinstance(select, q.Select):
                return evolve(node, select=self.block(select, known))
            case _:
                return rebuild(node, lambda child: self.part(child, known))


def texts(expr: s.Expr, known: Known = frozenset()) -> s.Expr:
    """An expression that knows no columns but these: what stands in double quotes is a text."""

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case q.Quoted(name, span=span) if name not in known:
                return s.String(name, span=span)
            case _:
                return rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))
