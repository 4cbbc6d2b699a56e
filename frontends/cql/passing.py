"""Streams of whose rows each is made of one row of an input, when that comes: a filter, and no more.

What they say at an instant is what came at it, so that nothing need be gathered, windowed or told as a change: one operator
without state takes rows and sends rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import borders
from frontends.cql import typed as ty
from frontends.cql.trees import each, fields, record
from frontends.sql import dates
from frontends.sql import typed as r
from river.il import program as p
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Declarations


def passing(program: ty.Program) -> dict[str, ty.Input]:
    """The views that are such streams, each with its input, which nobody else reads."""
    inputs = {one.name: one for one in program.inputs}
    users = [source.name for view in program.views for source in view.query.sources]
    return {
        view.name: inputs[source.name]
        for view in program.views
        for source in view.query.sources
        if view.name not in users
        and users.count(source.name) == 1
        and source.name in inputs
        and _passes(view)
        if _is_stream(inputs[source.name])
    }


def _is_stream(one: ty.Input) -> bool:
    """Whether an input is a stream whose rows are taken as data have them."""
    return one.kind == "stream" and not one.table and each(one.row, dates.read) == one.row


def _passes(view: ty.View) -> bool:
    """Whether each row of a view is made of one that comes: an `istream` of all rows so far, or an `rstream` of the present."""
    if view.called is not None or not view.output or each(view.row, dates.told) != view.row:
        return False
    match view.query.relation, view.query.sources:
        case r.Input(), (ty.Source(window=window),):
            pass
        case r.Filter(r.Input(), make=make), (ty.Source(window=window),) if make == r.SAME or fields(
            make.body
        ):
            pass
        case _:
            return False
    match view.query.operator, window:
        case "istream", ty.Unbounded():
            return True
        case "rstream", ty.Range(0, 0):
            return True
        case _:
            return False


def lower(whole: Declarations, view: ty.View, one: ty.Input) -> p.Output:
    """The operator of such a view, and its output."""
    row = whole.declare(one.name, expression(one.row), one.span)
    at, relation = s.Member(s.Name("r"), one.stamp.name), view.query.relation
    made = {name: s.Member(s.Name("r"), name) for name, _ in view.row.fields}
    keep = r.ALL
    if isinstance(relation, r.Filter):
        made |= fields(relation.make.body)
        keep = relation.keep
    columns = view.row.fields
    if not view.stamp.column:
        columns = ((view.stamp.name, whole.source.tau), *columns)
    made |= {view.stamp.name: at}
    carried = whole.declare(view.name, expression(t.Record(columns)), view.span)
    sent: s.Stmt = s.Emit("out", record((name, made[name]) for name, _ in columns))
    if keep != r.ALL:
        sent = s.If(keep.body, s.Block((sent,)))
    operator = whole.fresh(f"select_{view.name}")
    whole.operators.append(
        borders.row_by_row(operator, row, one.stamp.name, sent, carried, view.stamp.name, view.span)
    )
    whole.use(view.name, operator, (one.name,), (), view.span, p.Annotation("Parallel"))
    return p.Output(view.name, carried, view.stamp.name, span=view.span)
