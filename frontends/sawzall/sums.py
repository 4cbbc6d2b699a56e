"""Sums of anything that is made of numbers and times: the operator that accumulates, and the rows of what it keeps.

Whole numbers wrap, floats are summed exactly, times as their microseconds; tuples field by field, arrays item by item (a sum is
as long as the longest of them), maps key by key. Of arrays and maps the items are entries of a map, so that partial sums combine
entry by entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.sawzall.types import expression
from river.classes import define
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from frontends.sawzall import typed as z


def kept_sums(fields: z.Fields) -> s.RecordType:
    """The type of what is kept of fields."""
    return s.RecordType(tuple(s.FieldType(name, kept_sum(type_)) for name, type_ in fields))


def kept_sum(type_: t.Type) -> s.TypeExpr:
    """The type of what is kept of a value."""
    match type_:
        case t.F64:
            return s.TypeName("fsum")
        case t.TIME:
            return s.TypeName("i64")
        case t.Record(fields):
            return kept_sums(fields)
        case t.List(item):
            return s.TypeName("map", (s.TypeName("i64"), kept_sum(item)))
        case t.Map(key, value):
            return s.TypeName("map", (expression(key), kept_sum(value)))
        case _:
            return expression(type_)


def accumulating(name: str, table: z.Table, kept: s.TypeExpr) -> s.Operator:
    """The operator of a table that sums what comes, for each index."""
    item = s.RecordType(tuple(s.FieldType(n, expression(of)) for n, of in (*table.index, *table.value)))
    index = s.RecordType(tuple(s.FieldType(n, expression(of)) for n, of in table.index))
    key = s.RecordValue(tuple(s.FieldValue(n, s.Member(s.Name("x"), n)) for n, _ in table.index))
    names = _Names()
    steps = [
        stmt
        for n, of in table.value
        for stmt in names.added(s.Member(s.Name("a"), n), s.Member(s.Name("x"), n), of)
    ]
    body = s.With("a", s.Index(s.Var("s"), key), s.Call("zero", ()), s.Block(tuple(steps)))
    return s.Operator(
        name, (s.Port("x", item),), (s.VarParam("s", s.TypeName("map", (index, kept))),), (), (), (),
        (s.ItemHandler("x", "x", s.Block((body,))),), span=table.span,
    )  # fmt: skip


def gathered(table: z.Table, row: s.TypeExpr) -> s.Block:
    """The row of an index `k` for which `a` is kept."""
    names = _Names()
    values = [s.FieldValue(n, s.Member(s.Name("k"), n)) for n, _ in table.index]
    before: list[s.Stmt] = []
    for n, of in table.value:
        made = s.Name(names.fresh("total"))
        before += (
            s.VarDecl(made.name, expression(of), s.Call("zero", ())),
            *names.put(made, s.Member(s.Name("a"), n), of),
        )
        values.append(s.FieldValue(n, made))
    rows = s.VarDecl("rows", s.TypeName("list", (row,)), s.ListValue((s.RecordValue(tuple(values)),)))
    return s.Block((*before, rows, s.Return(s.Name("rows"))))


@define
class _Names:
    """Statements with names of their own."""

    count: int = 0

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def added(self, place: s.Expr, value: s.Expr, type_: t.Type) -> tuple[s.Stmt, ...]:
        """A value is added to what is kept in a place."""
        match type_:
            case t.F64:
                return (s.Do(s.Call("add", (place, value))),)
            case t.TIME:
                return (s.Assign(place, s.Binary("+%", place, s.Call("micros", (value,)))),)
            case t.Record(fields):
                parts = (self.added(s.Member(place, name), s.Member(value, name), of) for name, of in fields)
                return tuple(stmt for part in parts for stmt in part)
            case t.List(item):
                return self.entries(place, value, item, "i", "item")
            case t.Map(_, of):
                return self.entries(place, value, of, "key", "value")
            case _:
                return (s.Assign(place, s.Binary("+%", place, value)),)

    def entries(self, place: s.Expr, value: s.Expr, type_: t.Type, key: str, item: str) -> tuple[s.Stmt, ...]:
        """What is in an array or a map is added to the entries of what is kept of it, one by one."""
        at, found, part = self.fresh(key), self.fresh(item), s.Name(self.fresh("part"))
        inner = s.Block(self.added(part, s.Name(found), type_))
        entry = s.With(part.name, s.Index(place, s.Name(at)), s.Call("zero", ()), inner)
        return (s.For(None, (at, found), value, s.Block((entry,))),)

    def put(self, target: s.Expr, place: s.Expr, type_: t.Type) -> tuple[s.Stmt, ...]:
        """The sum that is kept in a place is put into another one, which is empty or 0."""
        match type_:
            case t.F64:
                return (s.Assign(target, s.Call("value", (place,))),)
            case t.TIME:
                return (s.Assign(target, s.Call("time", (place,))),)
            case t.Record(fields):
                parts = (self.put(s.Member(target, name), s.Member(place, name), of) for name, of in fields)
                return tuple(stmt for part in parts for stmt in part)
            case t.List(item):
                index, made = self.fresh("i"), s.Name(self.fresh("item"))
                inner = (
                    s.VarDecl(made.name, expression(item), s.Call("zero", ())),
                    *self.put(made, s.Index(place, s.Name(index)), item),
                    s.Do(s.Call("push", (target, made))),
                )
                return (s.For(None, (index,), s.Range(s.Int(0), s.Call("len", (place,))), s.Block(inner)),)
            case t.Map(_, of):
                key, made = self.fresh("key"), s.Name(self.fresh("item"))
                inner = (
                    s.VarDecl(made.name, expression(of), s.Call("zero", ())),
                    *self.put(made, s.Index(place, s.Name(key)), of),
                    s.Assign(s.Index(target, s.Name(key)), made),
                )
                ordered = s.Call("sort", (s.Call("keys", (place,)),))
                return (s.For(None, (key,), ordered, s.Block(inner)),)
            case _:
                return (s.Assign(target, place),)


__all__ = ["accumulating", "gathered", "kept_sum", "kept_sums"]
