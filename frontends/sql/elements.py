"""Sources that are made of values: the items of a list of each row (`unnest`), and rows that are written out (`values`).

Such a source has no relation of its own: each row of what stands before it is joined with what the list holds for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sql.values import Found, alike, spelled, strip
from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sql import syntax as q
    from frontends.sql.expressions import RowExpressions

ITEM, NUMBER = s.Name("x"), s.Name("n")
"""An item of the list, and its number from 1 on."""


@frozen
class Elements:
    """A list over the sources' rows, never none; the type of its items, and the columns of a row that an item `x` makes."""

    items: s.Expr
    type: t.Type
    row: t.Record
    values: tuple[s.Expr, ...]


def elements(source: q.Unnest, over: RowExpressions) -> Elements:
    """What a source of values is; `over`: expressions over the sources before it.

    Raises: Failed; the errors (code sql-unnest) are in the report.
    """
    if source.items is None:
        return _written(source, over)
    found = over.find(source.items)
    kind = strip(found.type)
    if not isinstance(kind, t.List):
        message = f"`unnest` takes a list, this is `{spelled(found.type)}`"
        help_line = "a text is taken apart by `split(s, ',')`" if kind == t.STRING else None
        raise over.report.error("sql-unnest", message, source.items.span or source.span, help_line)
    items = found.expr
    if isinstance(found.type, t.Optional):
        items = s.Call("coalesce", (items, s.ListValue(())), span=items.span)
    inner = strip(kind.item)
    if isinstance(inner, t.Record):
        loose = isinstance(kind.item, t.Optional)
        names = tuple(name for name, _ in inner.fields)
        kinds = tuple(t.Optional(strip(type_)) if loose else type_ for _, type_ in inner.fields)
        values = tuple(_member(name, loose=loose) for name in names)
    else:
        names, kinds, values = (source.alias or "unnest",), (kind.item,), (ITEM,)
    return Elements(items, kind.item, _row(source, names, kinds, over), _numbered(source, values))


def _member(name: str, *, loose: bool) -> s.Expr:
    if not loose:
        return s.Member(ITEM, name)
    return s.IfExpr(s.IsNone(ITEM), s.NoneValue(), s.Member(s.Force(ITEM), name))


def _numbered(source: q.Unnest, values: tuple[s.Expr, ...]) -> tuple[s.Expr, ...]:
    return (*values, NUMBER) if source.ordinality else values


def _row(
    source: q.Unnest, names: tuple[str, ...], kinds: tuple[t.Type, ...], over: RowExpressions
) -> t.Record:
    """The columns, with the names that stand behind the source's own."""
    if source.ordinality:
        names, kinds = (*names, "ordinality"), (*kinds, t.I64)
    if len(source.columns) > len(names):
        message = f"{len(source.columns)} names stand here for {len(names)} columns"
        raise over.report.error("sql-unnest", message, source.span)
    named = (*source.columns, *names[len(source.columns) :])
    if len(set(named)) < len(named):
        raise over.report.error("sql-unnest", "two columns have one name", source.span, "name all of them")
    return t.Record(tuple(zip(named, kinds, strict=True)))


def _written(source: q.Unnest, over: RowExpressions) -> Elements:
    """Rows that are written out: the types of columns hold the values of all rows."""
    width = len(source.rows[0])
    if any(len(row) != width for row in source.rows):
        raise over.report.error("sql-unnest", "these rows have different numbers of values", source.span)
    columns = [_column(tuple(row[i] for row in source.rows), source, over) for i in range(width)]
    names = tuple(f"column{i + 1}" for i in range(width))
    rows = zip(*(values for values, _ in columns), strict=True)
    items = tuple(
        s.RecordValue(tuple(s.FieldValue(name, value) for name, value in zip(names, row, strict=True)))
        for row in rows
    )
    kinds = tuple(kind for _, kind in columns)
    row = _row(source, names, kinds, over)
    values = _numbered(source, tuple(s.Member(ITEM, name) for name in names))
    type_ = t.Record(tuple(zip(names, kinds, strict=True)))
    return Elements(s.ListValue(items, span=source.span), type_, row, values)


def _column(
    values: tuple[s.Expr, ...], source: q.Unnest, over: RowExpressions
) -> tuple[tuple[s.Expr, ...], t.Type]:
    """The values of a column, and their type."""
    given = [value for value in values if not isinstance(value, s.NoneValue)]
    if not given:
        message = "nothing says of which type this column is"
        raise over.report.error("sql-unnest", message, source.span, "write `cast(null as int)`")
    found = alike(over.operands(tuple(given)))
    kinds = {strip(each.type) for each in found}
    if len(kinds) > 1:
        listed = " and ".join(sorted(f"`{spelled(kind)}`" for kind in kinds))
        raise over.report.error("sql-unnest", f"a column has values of {listed}", given[-1].span)
    loose = len(given) < len(values) or any(isinstance(each.type, t.Optional) for each in found)
    there = iter(found)
    made = tuple(
        value if isinstance(value, s.NoneValue) else _as_one(next(there), loose=loose) for value in values
    )
    kind = kinds.pop()
    return made, t.Optional(kind) if loose else kind


def _as_one(found: Found, *, loose: bool) -> s.Expr:
    if not loose or isinstance(found.type, t.Optional):
        return found.expr
    return s.IfExpr(s.Bool(value=False), s.NoneValue(), found.expr)
