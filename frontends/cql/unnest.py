"""Queries inside of expressions become sources of their own: what is left of a block are joins and groups.

Each nested query becomes a declaration that says, for each value of what ties it to the block around it (its *keys*), whether it
has rows, which, or what they come to; the block is joined with that. `in` and `exists` as conditions of their own are joins with
different rows; everywhere else a left join shows whether there is a partner. A query that has aggregates alone has one row also
where nothing meets its conditions: counts are 0 there, other aggregates none, so what is made of them is made behind the join.

Numbers of rows (`row_number() over ...`) are columns of a declaration of their own, too.

Keys are the other sides of equalities with columns of the block around. Where columns of that are used otherwise, the nested
query is joined with their different values, which are then its keys (Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from frontends.cql.blocks import parts_of
from frontends.sql import syntax as q

if TYPE_CHECKING:
    from collections.abc import Iterator

    from frontends.cql import syntax as c
    from river.lang import syntax as s
    from river.lang import types as t
    from river.lang.scope import Scope
    from river.report import Report


class World(Protocol):
    """What the rest of the program has for a query."""

    @property
    def report(self) -> Report:
        """Where errors go."""
        ...

    @property
    def scope(self) -> Scope:
        """The types and functions that expressions may name."""
        ...

    def row_of(self, source: q.Source, /) -> t.Record:
        """The rows of a source. Raises: Failed, if it was refused."""
        ...

    def declared(self, query: c.Query, title: str, /) -> str:
        """The name of a relation that is made for a query."""
        ...


def unnested(block: q.Select, title: str, world: World, *, named: bool) -> q.Select:
    """`block` without queries inside of its expressions.

    `title` is how the names of declarations begin that are made for them. `named`: columns get their names from the select list.
    Raises: Failed; the errors (codes sql-nested-*) are in the report.
    """
    if not any(isinstance(node, q.Nested | q.Over) for part in _clauses(block) for node in parts_of(part)):
        return block
    from frontends.cql.unnesting import Unnesting  # few queries have others inside

    return Unnesting(world, title, block, named).block()


def _clauses(block: q.Select) -> Iterator[s.Node]:
    """The parts of a block that have expressions."""
    yield from block.items
    yield from block.group
    yield from block.order
    yield from (part for part in (block.where, block.having, block.qualify) if part is not None)
    yield from (source.joining for source in block.sources if source.joining is not None)
