"""What the rest of a program has for one query of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from frontends.cql import syntax as c
    from frontends.sql import syntax as q
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
