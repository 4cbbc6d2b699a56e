"""Sources as one relation: where their columns stand in its rows, selection and projection of these, and keys of joins."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.sql import typed as r
from frontends.sql.columns import Column, substitute, written_out
from frontends.sql.operations import conjunction
from river.classes import evolve, frozen
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from river.source import Span


@frozen
class Joined:
    """The sources as one relation: where each column stands in its rows `r`, and the conditions still to be applied."""

    relation: r.Relation
    places: Mapping[Column, s.Expr]
    rest: tuple[s.Expr, ...]

    def read(self, expr: s.Expr) -> s.Expr:
        """A checked expression over the rows of the joined relation."""
        return substitute(expr, self.places)

    def filtered(self, conditions: list[s.Expr], span: Span | None) -> Joined:
        """Only the rows that meet the conditions, which are over the sources' rows."""
        rest = tuple(map(self.read, conditions))
        return evolve(self, relation=filtered(self.relation, self.relation.row, rest, r.SAME, span))


def filtered(
    source: r.Relation, row: t.Record, rest: tuple[s.Expr, ...], make: s.Lambda, span: Span | None
) -> r.Relation:
    """Selection and projection, unless they would do nothing."""
    if not rest and make == r.SAME:
        return source
    return r.Filter(source, row, s.Lambda(("r",), conjunction(rest)), make, span=span)


def projected(join: r.Join, row: t.Record, value: s.Expr) -> r.Join:
    """A join that makes `value` of its rows `r` at once."""
    made = join.make.body
    assert isinstance(made, s.RecordValue)  # noqa: S101 - it was made so
    places = {item.name: item.value for item in made.fields if isinstance(item, s.FieldValue)}

    return evolve(join, row=row, make=s.Lambda(join.make.params, written_out(value, "r", places)))


def renamed(expr: s.Expr, side: str) -> s.Expr:
    """An expression over `r` as one over the parameter `side`."""

    def rewrite(node: s.Node) -> s.Node:
        return s.Name(side, span=node.span) if node == s.Name("r") else rebuild(node, rewrite)

    return cast("s.Expr", rewrite(expr))


def key_of(values: list[s.Expr]) -> s.Expr:
    """Values as one key."""
    return values[0] if len(values) == 1 else s.TupleValue(tuple(values))


def key_type(types: list[t.Type]) -> t.Type:
    """The type of a key that is made of values of these types."""
    return types[0] if len(types) == 1 else t.Tuple(tuple(types)) if types else t.UNIT
