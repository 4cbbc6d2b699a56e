"""The arrow from `union`, `except` and `intersect` to algebra: rows of both sides, made alike by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql import typed as r
from frontends.sql.values import Found, as_decimal, common, convert, spelled, strip
from river.lang import syntax as s
from river.lang import types as t
from river.report import Failed

if TYPE_CHECKING:
    from frontends.cql import syntax as c
    from river.report import Report


def combined(
    block: c.Combined, rows: tuple[t.Record, ...], wanted: t.Record | None, report: Report
) -> r.Relation:
    """The algebra of a combination of two sources with these rows; its own are named like `wanted`, or like the left.

    Raises: Failed; the errors (codes sql-set-columns, sql-set-type, sql-arity, sql-column-type) are in the report.
    """
    left, right = rows
    if len(left.fields) != len(right.fields):
        message = f"`{block.word}` is of rows of one kind: left are {len(left.fields)} columns, right {len(right.fields)}"
        raise report.error("sql-set-columns", message, block.span)
    if wanted is not None and len(wanted.fields) != len(left.fields):
        message = f"the type has {len(wanted.fields)} columns, the query {len(left.fields)}"
        raise report.error("sql-arity", message, block.span)
    types: list[t.Type] = []
    for i, ((name, a), (_, b)) in enumerate(zip(left.fields, right.fields, strict=True)):
        kind = _common(a, b)
        if kind is None:
            message = f"column {i + 1} (`{name}`) is `{spelled(a)}` on the left, `{spelled(b)}` on the right"
            report.error("sql-set-type", message, block.span, "make them alike by `cast`")
        elif wanted is not None and wanted.fields[i][1] not in (kind, t.Optional(strip(kind))):
            message = f"`{wanted.fields[i][0]}` is declared as `{spelled(wanted.fields[i][1])}`, this is `{spelled(kind)}`"
            report.error("sql-column-type", message, block.span)
        else:
            types.append(kind if wanted is None else wanted.fields[i][1])
    if len(types) < len(left.fields):
        raise Failed
    named = left if wanted is None else wanted
    row = t.Record(tuple((name, kind) for (name, _), kind in zip(named.fields, types, strict=True)))
    one, other = (_alike(r.Input(i, own, span=block.span), row) for i, own in enumerate(rows))
    if block.word == "union":
        both = r.Combine(one, other, row, "union", every=True, span=block.span)
        return both if block.every else r.Distinct(both, row, span=block.span)
    return r.Combine(one, other, row, block.word, every=block.every, span=block.span)


def _common(a: t.Type, b: t.Type) -> t.Type | None:
    """The type of a column that is of both types, or None."""
    one, other = common(Found(s.Name("a"), strip(a)), Found(s.Name("b"), strip(b)))
    if one.type != other.type:
        return None
    loose = isinstance(a, t.Optional) or isinstance(b, t.Optional)
    return t.Optional(one.type) if loose else one.type


def _alike(side: r.Input, row: t.Record) -> r.Relation:
    """A side with its columns named and typed like those of `row`."""
    if side.row == row:
        return side
    values: list[tuple[str, s.Expr]] = []
    for (own, kind), (name, wanted) in zip(side.row.fields, row.fields, strict=True):
        column = Found(s.Member(s.Name("r"), own), kind)
        inner = strip(wanted)
        if isinstance(inner, t.Decimal):
            column, _ = common(column, Found(s.Name("wanted"), inner))
            column = as_decimal(column, inner)
        elif isinstance(inner, t.Primitive) and strip(kind) != inner:
            column = convert(column, inner)
        values.append((name, column.expr))
    make = s.Lambda(("r",), s.RecordValue(tuple(s.FieldValue(name, value) for name, value in values)))
    return r.Filter(side, row, r.ALL, make, span=side.span)
