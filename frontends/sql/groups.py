"""Expressions over groups, which read keys and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import summaries
from frontends.sql import syntax as q
from frontends.sql.aggregates import aggregate_of, has_aggregate
from frontends.sql.expressions import RowExpressions
from frontends.sql.typed import Aggregate, Key
from frontends.sql.values import Found
from river.classes import define, evolve, field
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t
from river.report import Failed, Report

if TYPE_CHECKING:
    from collections.abc import Mapping


@define
class Groups(RowExpressions):
    """Expressions over groups: keys and aggregates are read from the group `g`; other columns are refused.

    `grouped`: whether the text states the keys (`group by`). `known`: whether no key was refused. `always`: whether every
    group has a row.
    """

    keys: tuple[Key, ...] = ()
    grouped: bool = False
    known: bool = True
    always: bool = True
    aggregates: list[Aggregate] = field(factory=list[Aggregate])

    def locals(self) -> Mapping[str, t.Type]:
        return {"g": self.group()}

    def group(self) -> t.Record:
        """The type of a group."""
        return t.Record(tuple((part.name, part.type) for part in (*self.keys, *self.aggregates)))

    def special(self, expr: s.Expr) -> Found | None:
        function = aggregate_of(expr)
        if function is not None:
            return self.aggregate(function, cast("s.Call", expr))
        if not has_aggregate(expr):
            try:
                value = (
                    RowExpressions(Report(), self.scope, self.labels, self.rows, merged=self.merged)
                    .find(expr)
                    .expr
                )
            except Failed:
                value = None
            for key in self.keys:
                if key.value == value:
                    return Found(s.Member(s.Name("g"), key.name, span=expr.span), key.type)
        if self.column(expr) is None:
            return None
        if not self.known:
            raise Failed  # it may be one of those that were refused
        help_line = "add it to `group by`" if self.grouped else "aggregate it"
        raise self.report.error(
            "sql-not-grouped", "this column may differ within a group", expr.span, help_line
        )

    def aggregate(self, function: str, expr: s.Call) -> Found:
        """An aggregate, which becomes a part of the group."""
        found = summaries.summary(self, function, expr)
        for known in self.aggregates:
            if evolve(known, name="") == found:
                return Found(s.Member(s.Name("g"), known.name, span=expr.span), known.type)
        taken = {part.name for part in (*self.keys, *self.aggregates)}
        named = evolve(found, name=fresh(_title(function, expr), taken))
        self.aggregates.append(named)
        return Found(s.Member(s.Name("g"), named.name, span=expr.span), named.type)


def _title(function: str, expr: s.Call) -> str:
    if isinstance(expr, q.Folded):
        function = expr.function
    match expr.args:
        case (s.Name(column) | s.Member(_, column),):
            return f"{function}_{column}"
        case _:
            return function
