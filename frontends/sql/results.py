"""The columns of a result: their names, and values of the types that are declared for them."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from frontends.sql import syntax as q
from frontends.sql.calls import EXTERN
from frontends.sql.casts import to_type
from frontends.sql.dates import DATE
from frontends.sql.days import as_time
from frontends.sql.select_list import title
from frontends.sql.values import Found, as_decimal, common, convert, spelled, strip
from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from frontends.sql.expressions import RowExpressions
    from river.source import Span

_CONVERSIONS = frozenset(
    {(a, b) for a in t.FLOATS for b in (t.I64, t.I32)}
    | {(a, b) for a in (t.I32, t.I64, t.U64) for b in t.FLOATS}
    | {(t.I32, t.I64), (t.F32, t.F64), (t.F64, t.F32)}
)
"""Numbers that become those of another type where a column is declared so."""


@frozen
class Named:
    """A result column: its name and value."""

    name: str
    value: Found


@frozen
class Declared:
    """What is said of a result: its row, if that is declared, for the `shown` first columns of the select list."""

    row: t.Record | None
    shown: int
    span: Span | None

    def type(self, part: Named) -> t.Type:
        """The type of a column."""
        found = None if self.row is None else self.row.field(part.name)
        return found or part.value.type


def named(items: tuple[q.Item, ...], over: RowExpressions, declared: Declared) -> tuple[Named, ...]:
    """The select list checked, with the names and types of the result."""
    found: list[Named] = []
    fields = None if declared.row is None else declared.row.fields
    if fields is not None and len(fields) != declared.shown:
        message = f"the type has {len(fields)} columns, the select list {declared.shown}"
        raise over.report.error("sql-arity", message, declared.span)
    taken: set[str] = set()
    for i, item in enumerate(items):
        with over.report.recover():
            value = over.find(item.value)
            if fields is None or i >= len(fields):
                name = item.name or title(item.value)
                if name is None:
                    name = next(each for each in _made_up(item.value, i) if each not in taken)
                if name in taken:
                    help_line = "rename one of them with `as`"
                    raise over.report.error(
                        "sql-duplicate-column", f"two columns `{name}`", item.span, help_line
                    )
                taken.add(name)
                found.append(Named(name, value))
                continue
            name, type_ = fields[i]
            if item.name not in (None, name):
                message = f"column {i + 1} is declared as `{name}`, here it is called `{item.name}`"
                over.report.error("sql-column-name", message, item.span, f"write `as {name}`, or nothing")
            found.append(Named(name, _fitted(value, type_, name, item, over)))
    return tuple(found)


def _fitted(found: Found, type_: t.Type, name: str, item: q.Item, over: RowExpressions) -> Found:
    """A value as the declared type of its column."""
    if found.type == type_ or t.Optional(found.type) == type_:
        return found
    kind, wanted, span = strip(found.type), strip(type_), item.span
    loose = isinstance(found.type, t.Optional)
    if loose and not isinstance(type_, t.Optional):
        help_line = (
            f"declare it as `{spelled(found.type)}`, or say what stands for none: `coalesce(..., ...)`"
        )
        raise over.report.error(
            "sql-may-be-none", f"`{name}` may be none, but is `{spelled(type_)}`", span, help_line
        )
    if isinstance(wanted, t.Primitive) and (kind, wanted) in _CONVERSIONS:
        if kind in t.FLOATS and wanted in t.INTEGERS:
            message = f"`{name}` is a whole number: the fraction of this `{spelled(found.type)}` is dropped"
            over.report.warn("sql-truncates", message, span, f"declare `{name}` as `float` to keep it")
        return convert(found, wanted)
    if (kind, wanted) == (DATE, t.TIME):
        return as_time(over, found)
    if isinstance(wanted, t.Decimal):
        made, _ = common(found, Found(s.Name("wanted"), wanted))
        own = strip(made.type)
        if isinstance(own, t.Decimal) and own.scale <= wanted.scale:
            return as_decimal(made, wanted)
        if isinstance(kind, t.Decimal) or kind in t.FLOATS:
            message = f"`{name}` has {wanted.scale} digits behind the point: this `{spelled(found.type)}` is rounded"
            over.report.warn(
                "sql-truncates", message, span, f"declare `{name}` as `{spelled(kind)}` to keep them"
            )
            return to_type(over, found, f"decimal({wanted.precision},{wanted.scale})", item.value)
    message = f"`{name}` is declared as `{spelled(type_)}`, this is `{spelled(found.type)}`"
    help_line = "write `cast(... as date)`" if (kind, wanted) == (t.TIME, DATE) else None
    raise over.report.error("sql-column-type", message, span, help_line)


def _made_up(expr: s.Expr, place: int) -> Iterator[str]:
    """Names of a column that has none: that of the function, its number, or others."""
    name = expr.function if isinstance(expr, s.Call | q.Stated) else ""
    if isinstance(expr, s.Call):
        name = name.removeprefix(EXTERN).lower()
    if name.isidentifier():
        yield name
    yield from (f"column{number}" for number in count(place + 1))
