"""Outputs: the net changes of a relation, or the rows of a stream with their instants, as the world reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import borders, changes
from frontends.cql import typed as ty
from frontends.cql.trees import each, record
from frontends.sql import dates
from river.il import program as p
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Args, Declarations, Deltas
    from river.source import Span


def output(whole: Declarations, view: ty.View, rows: Deltas) -> p.Output:
    """The output of a view: the net changes of a relation, or the stamped rows of a stream."""
    span = view.span
    rows = _told(whole, rows, view.name, span)
    own, row = rows.type, rows.row
    if view.kind == "relation":
        args: Args = (("R", own), ("Tau", whole.tau))
        if not changes.is_net(whole.source, view.query, view.query.relation) or view.name in whole.loud:
            operator = whole.instance(f"net_{view.name}", "net", args, span)
            whole.use(view.name, operator, (rows.queue,), (), span, p.Annotation("Parallel"))
        else:
            whole.rename(rows.queue, view.name)
        return p.Output(view.name, whole.delta(own), "tau", span=span)
    made: s.Expr = s.Name("r")
    carried = own
    if not view.stamp.column:
        values = (s.FieldValue(name, s.Member(s.Name("r"), name)) for name, _ in row.fields)
        made = s.RecordValue((s.FieldValue(view.stamp.name, s.Member(s.Name("x"), "tau")), *values))
        columns = ((view.stamp.name, whole.source.tau), *row.fields)
        carried = whole.declare(f"{view.name}_row", expression(t.Record(columns)), span)
    operator = whole.fresh(f"{view.name}_out")
    whole.operators.append(
        borders.stream_out(operator, whole.delta(own), carried, made, view.stamp.name, span)
    )
    whole.use(view.name, operator, (rows.queue,), (), span)
    return p.Output(view.name, carried, view.stamp.name, span=span)


def _told(whole: Declarations, rows: Deltas, name: str, span: Span | None) -> Deltas:
    """Deltas as they are told, with dates as texts."""
    row = each(rows.row, dates.told)
    if row == rows.row:
        return rows
    made = record((n, dates.to_data(s.Member(s.Name("r"), n), k)) for n, k in rows.row.fields)
    return whole.mapped(rows, row, made, f"{name}_told", span)
