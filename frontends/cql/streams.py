"""From relations to streams: `istream`, `dstream`, `rstream`, and the column that their rows have their instants in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import changes
from frontends.cql import typed as ty
from frontends.cql.declarations import Deltas
from frontends.cql.trees import record
from river.lang import syntax as s

if TYPE_CHECKING:
    from frontends.cql.declarations import Args
    from frontends.cql.queries import Query


def stream(query: Query, rows: Deltas, operator: ty.Operator, own: s.TypeExpr, *, quiet: bool) -> Deltas:
    """`istream`, `dstream`, `rstream`; a stamp that is a column is filled in."""
    view = query.view
    if (
        operator == "istream"
        and quiet
        and not view.stamp.column
        and changes.only_comes(query.whole.source, view.query, view.query.relation)
    ):
        return rows
    args: Args = (
        ("R", rows.type), ("O", own), ("Tau", query.whole.tau), ("row", s.Lambda(("tau", "r"), stamped(query))),
    )  # fmt: skip
    out = Deltas(query.queue(operator), view.row, own)
    if operator == "rstream":
        state = query.variable("rows", s.TypeName("bag", (rows.type,)), s.MapValue(()), view.span)
        return query.add(operator, args, (rows.queue,), (state,), out, view)
    net = changes.is_net(query.whole.source, view.query, view.query.relation)
    return query.add(operator, (*args, ("net", s.Bool(net))), (rows.queue,), (), out, view, keys=())


def stamped(query: Query) -> s.Expr:
    """The row `r` of the view's relation as one of the stream, at the instant `tau`."""
    view = query.view
    if not view.stamp.column:
        return s.Name("r")
    return record(
        (name, s.Name("tau") if name == view.stamp.name else s.Member(s.Name("r"), name))
        for name, _ in view.row.fields
    )
