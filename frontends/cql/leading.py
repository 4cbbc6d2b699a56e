"""Blocks that begin with rows that are written out: a relation stands before these, whose rows come and go.

Where it does not matter, the first relation of the block does. An outer join keeps rows of its left side also where the relation
has none; then a relation of one row stands there, which is there from the first instant of the block's relations on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import syntax as c
from frontends.sql import syntax as q
from river.classes import evolve
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.report import Report

ONE = "one row"
"""The name of the relation of one row, which nobody else writes."""


def led(block: q.Select, report: Report, declared: Callable[[c.Query], str]) -> q.Select:
    """The block with a relation as its first source.

    Raises: Failed, with cql-values, if there is none.
    """
    first = block.sources[0]
    if not isinstance(first, q.Unnest):
        return block
    place = next((i for i, each in enumerate(block.sources) if not isinstance(each, q.Unnest)), None)
    if place is None:
        message = "these rows belong to no time: no stream or relation stands beside them"
        help_line = (
            "join them with one; a relation whose rows never change is a table, with a file of its own"
        )
        raise report.error("cql-values", message, first.span, help_line)
    labels = [source.label for source in block.sources]
    items = tuple(
        each
        for item in block.items
        for each in (item.of(labels) if isinstance(item, q.Star) and item.source is None else (item,))
    )
    other = block.sources[place]
    if all(each.joining is None or each.joining.kind == "inner" for each in block.sources):
        sources = list(block.sources)
        sources[0], sources[place] = evolve(other, joining=None), evolve(first, joining=other.joining)
        return evolve(block, items=items, sources=tuple(sources))
    count = q.Item(s.Call("count", ()), "n", span=first.span)
    one = q.Select((count,), (evolve(other, joining=None),), span=block.span)
    source = q.Source(declared(c.Query(one, span=block.span)), ONE, span=first.span)
    return evolve(block, items=items, sources=(source, *block.sources))
