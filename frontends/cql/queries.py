"""The operators of one view, from its relational algebra: what all of them need, and which module makes which.

Each operator reads the queues of its operands, which are made first, and gives the queue of its own rows. `quiet` says of any
of them that it need not tell instants at which nothing changes: nobody counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import counted, grouping, joins, selections, windowing
from frontends.cql import typed as ty
from frontends.sql import typed as r
from river.classes import define, evolve
from river.il import program as p
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Args, Declarations, Deltas
    from river.source import Span


@define
class Query:
    """The operators of one view, which are declared in `whole`."""

    whole: Declarations
    view: ty.View

    def relation(self, node: r.Relation, *, quiet: bool) -> Deltas:
        """The queue of a relation."""
        match node:
            case r.Input(index, _):
                return windowing.window(self, self.view.query.sources[index], quiet=quiet)
            case r.Filter():
                return selections.selection(self, node, quiet=quiet)
            case r.Unnest():
                return selections.unnest(self, node, quiet=quiet)
            case r.Join():
                return joins.join(self, node, quiet=quiet)
            case r.Group():
                return grouping.group(self, node, quiet=quiet)
            case r.Distinct():
                return counted.distinct(self, node, quiet=quiet)
            case r.Combine():
                return counted.combine(self, node, quiet=quiet)
            case r.Outer():
                return joins.outer(self, node, quiet=quiet)
            case r.Top():
                return counted.first(self, node, quiet=quiet)

    def add(
        self, template: str, args: Args, ins: tuple[str, ...], variables: tuple[str, ...], made: Deltas, node: s.Node, *,
        title: str = "", keys: tuple[str, ...] | None = None, name: str = "", promise: str = "",
        apart: tuple[str, ...] | None = None,
    ) -> Deltas:  # fmt: skip
        """One operator: its instance and its use. `keys`: by which of the rows' columns its state is kept, if it is.

        `name`: what is done, if that is not the template's name. `promise`: an annotation that is true of the template,
        though its text does not show it. `apart`: the rows' columns of which it does not show that they keep rows apart.
        """
        span = node.span or self.view.span
        told = self.name(name or template, *([title] if title else []))
        operator = self.whole.instance(told, template, args, span)
        notes: tuple[p.Annotation, ...] = (p.Annotation(promise),) if promise else ()
        if keys is not None:
            notes = (p.Annotation("Parallel"),)
            notes += (p.Annotation("Keys", tuple(map(s.Name, keys))),) if keys else ()
        if apart:
            notes += (p.Annotation("Apart", tuple(map(s.Name, apart))),)
        self.whole.use(made.queue, operator, ins, variables, span, *notes)
        return made

    def name(self, what: str, *more: str) -> str:
        """A telling name: what is done, for which view, to what."""
        return "_".join((what, self.view.name, *more))

    def queue(self, what: str) -> str:
        """A name for a queue."""
        return self.whole.fresh(f"{self.view.name}_{what}")

    def copy(self, source: ty.Source) -> Deltas:
        """What a source says, for one reader."""
        return evolve(self.whole.named[source.name], queue=self.whole.copies[source.name].pop(0))

    def row_type(self, what: str, row: t.Record, span: Span | None) -> s.TypeExpr:
        """The declared type of rows: that of the view itself where they are its rows."""
        expr = expression(row)
        name = self.view.name if row == self.view.row else f"{self.view.name}_{what}"
        return self.whole.declare(name, expr, span)

    def variable(self, what: str, type_: s.TypeExpr, initial: s.Expr, span: Span | None) -> str:
        """A variable of this view."""
        return self.whole.variable(f"{self.view.name}_{what}", type_, initial, span or self.view.span)
