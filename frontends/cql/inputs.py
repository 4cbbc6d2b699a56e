"""Inputs: a queue of rows as data have them, and the operators that make deltas of it.

The operators themselves are in `borders`. What the program takes for dates are times in data; they are changed here, once, so
that no other operator knows of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import borders
from frontends.cql import typed as ty
from frontends.cql.check import SIGN
from frontends.cql.declarations import Deltas
from frontends.cql.trees import each, record
from frontends.sql import dates
from river.classes import evolve
from river.il import program as p
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression
from river.lang.values import BOUNDS

if TYPE_CHECKING:
    from frontends.cql.declarations import Declarations
    from river.source import Span


TYPED = "csv-types"
"""The format of data files of STREAM."""

FIRST = {t.I64: -BOUNDS[t.I64][1], t.TIME: -62_135_596_800_000_000}
"""The instant at which tables are there, before all others; of times, the first that can be written: the year 1."""


def read(whole: Declarations, one: ty.Input) -> p.Input:
    """An input queue, and the operators that make deltas of it, if somebody reads these. Data have dates as times."""
    row = each(one.row, dates.read)
    if one in whole.passing.values():
        content = whole.declare(one.name, expression(one.row), one.span)
        made = p.Input(one.name, content, one.stamp.name, _stamp(whole, one), span=one.span)
    elif row == one.row:
        made = _read(whole, one, None)
    else:
        made = _read(whole, evolve(one, row=row), one.row)
    if one.file is None:
        return made
    where = p.Annotation("File", (s.String(one.file), s.String(TYPED)))
    return evolve(made, annotations=(*made.annotations, where))


def _read(whole: Declarations, one: ty.Input, dated: t.Record | None) -> p.Input:
    """An input queue of rows as data have them; `dated`: what the program takes them for, if they have dates."""
    row = whole.declare(one.name, expression(one.row), one.span)
    operator, queue = whole.fresh(f"{one.name}_in"), whole.fresh(f"{one.name}_deltas")
    shown, kept, value = one.row, row, s.Name("r")
    if one.name in whole.plan.read and each(whole.plan.read[one.name], dates.read) != one.row:
        shown = each(whole.plan.read[one.name], dates.read)
        kept = whole.declare(f"{one.name}_read", expression(shown), one.span)
        value = record((name, s.Member(value, name)) for name, _ in shown.fields)
    if one.table:
        return _table(whole, one, operator, row, Deltas(queue, shown, kept), value, dated)
    if one.kind == "stream":
        carried, variables = row, _of_an_instant(whole, one, kept)
        made = borders.stream_in(
            operator, row, kept, value, whole.delta(kept), whole.tau, whole.instant(whole.last), one.stamp.name, one.span
        )  # fmt: skip
    else:
        made, carried, variables = _change_log(whole, one, operator, row)
    whole.operators.append(made)
    whole.use(queue, operator, (one.name,), variables, one.span)
    rows = Deltas(queue, shown, kept)
    whole.publish(
        one.name, rows if dated is None else _dated(whole, rows, dated, one.name, one.span), one.span
    )
    return p.Input(one.name, carried, one.stamp.name, _stamp(whole, one), span=one.span)


def _of_an_instant(whole: Declarations, one: ty.Input, row: s.TypeExpr) -> tuple[str, str]:
    """The variables that hold the present instant and the rows that have come at it."""
    now = whole.variable(f"{one.name}_now", s.OptionalType(whole.tau), s.NoneValue(), one.span)
    return now, whole.variable(f"{one.name}_ins", s.TypeName("list", (row,)), s.ListValue(()), one.span)


def _change_log(
    whole: Declarations, one: ty.Input, operator: str, row: s.TypeExpr
) -> tuple[s.Operator, s.TypeExpr, tuple[str, ...]]:
    """The operator that makes deltas of a relation's changes, the type of a change, and the variables."""
    now, ins = _of_an_instant(whole, one, row)
    carried = whole.declare(f"{one.name}_change", expression(t.Record(_columns(whole, one))), one.span)
    deleted = whole.variable(f"{one.name}_del", s.TypeName("list", (row,)), s.ListValue(()), one.span)
    rows = whole.variable(f"{one.name}_rows", s.TypeName("bag", (row,)), s.MapValue(()), one.span)
    fields = tuple(name for name, _ in one.row.fields)
    made = borders.changes_in(
        operator, carried, row, fields, whole.delta(row), whole.tau, whole.instant(whole.last), one.stamp.name, SIGN, one.span
    )  # fmt: skip
    return made, carried, (now, ins, deleted, rows)


def _columns(whole: Declarations, one: ty.Input) -> tuple[tuple[str, t.Type], ...]:
    """The columns that data have: those of a row, and with changes of a relation their instant and their sign."""
    if one.kind == "stream":
        return one.row.fields
    return ((one.stamp.name, whole.source.tau), (SIGN, t.STRING), *one.row.fields)


def _stamp(whole: Declarations, one: ty.Input) -> tuple[p.Annotation, ...]:
    """What an input says of a stamp that is computed of the other columns."""
    if one.computed is None:
        return ()
    rest = tuple(column for column in _columns(whole, one) if column[0] != one.stamp.name)
    name = whole.fresh(f"{one.name}_stamp")
    param = s.Param("r", expression(t.Record(rest)))
    whole.stamps.append(s.Fn(name, (param,), whole.tau, one.computed.body, span=one.computed.span))
    return (p.Annotation("Stamp", (s.Name(name),)),)


def _table(
    whole: Declarations,
    one: ty.Input,
    operator: str,
    row: s.TypeExpr,
    rows: Deltas,
    value: s.Expr,
    dated: t.Record | None,
) -> p.Input:
    """A queue of one item, all rows of a table, and the operator that makes the first delta of them.

    `value` is what is kept of the row `r`.
    """
    content = s.TypeName("list", (row,))
    first = whole.instant(FIRST[whole.source.tau])
    whole.operators.append(
        borders.table_in(operator, content, value, whole.delta(rows.type), first, one.span)
    )
    whole.use(rows.queue, operator, (one.name,), (), one.span)
    known = rows if dated is None else _dated(whole, rows, dated, one.name, one.span)
    whole.publish(one.name, known, one.span)
    return p.Input(one.name, content, None, (p.Annotation("Whole"),), span=one.span)


def _dated(whole: Declarations, rows: Deltas, row: t.Record, name: str, span: Span | None) -> Deltas:
    """Deltas as they are read, with dates."""
    made = record(
        (n, dates.from_data(s.Member(s.Name("r"), n), row.field(n) or k)) for n, k in rows.row.fields
    )
    shown = t.Record(tuple((n, row.field(n) or k) for n, k in rows.row.fields))
    return whole.mapped(rows, shown, made, f"{name}_dated", span)
