"""Tables in River IL: the reducer's instance, its variable, and the view that makes rows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from frontends.sawzall.types import expression
from river.il import program as p
from river.il.trees import fresh
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable

    from frontends.sawzall import typed as z

K, A = s.Name("k"), s.Name("a")
"""The parameters of a view: the index, and what the reducer keeps for it."""


@frozen
class Reducer:
    """The declarations that a table becomes; `queue` leads from the map operator to the reducer."""

    table: str
    queue: str
    instance: p.Instance
    variable: p.Variable
    rows: s.Fn
    output: p.Output
    use: p.Use


@frozen
class _Kept:
    """One kind of table: its template with arguments, the type of what is kept for an index, and the rows of it.

    `ranked`: rows of an index come out as the function lists them, not in the order of their values.
    """

    template: str
    args: tuple[tuple[str, s.TemplateArg], ...]
    type: s.TypeExpr
    fields: z.Fields
    body: s.Block
    ranked: bool = False


def item_type(table: z.Table) -> s.TypeExpr:
    """The type of the items that the map operator sends to a table; for a sum, whole numbers stand before floats."""
    value = table.value
    if table.kind in ("sum", "mrcounter"):
        ints, floats = _apart(value)
        value = (*ints, *floats)
    return _record((*table.index, *value, *table.weight))


def reducer(table: z.Table, queue: str, operator: str, function: str) -> Reducer:
    """What a table becomes; the names of its queue, operator and function are given."""
    kept = _kept(table)
    row = _record(kept.fields)
    index = _record(table.index)
    params = (s.Param("k", index), s.Param("a", kept.type))
    rows = s.Fn(function, params, s.TypeName("list", (row,)), kept.body, span=table.span)
    state = s.TypeName("map", (index, kept.type))
    keys = (p.Annotation("Keys", tuple(s.Name(name) for name, _ in table.index)),) if table.index else ()
    variable = f"${table.name}"
    return Reducer(
        table.name,
        queue,
        p.Instance(operator, kept.template, (("Ix", _record(table.index)), *kept.args), span=table.span),
        p.Variable(table.name, state, s.MapValue(()), span=table.span),
        rows,
        p.Output(
            table.name, row, view=p.View(table.name, function, len(table.index) if kept.ranked else None), span=table.span
        ),
        p.Use(
            (variable,), operator, (queue, variable),
            (p.Annotation("Parallel"), *keys, p.Annotation("Commutative")), span=table.span,
        ),
    )  # fmt: skip


def _kept(table: z.Table) -> _Kept:
    values = ("Vs", _record(table.value))
    limit = -1 if table.limit is None or table.kind == "unique" else table.limit
    number: s.Expr = s.Int(limit) if limit >= 0 else s.Unary("-", s.Int(-limit))
    match table.kind:
        case "sum" | "mrcounter":
            ((_, type_), *_) = table.value
            return _sum_map(table, type_) if isinstance(type_, t.Map) else _sum(table)
        case "top":
            return _top(table, values)
        case "maximum" | "minimum":
            return _extreme(table, values, ("Ws", _record(table.weight)), number)
        case "set":
            seen = _member(A, "seen")
            row = _row((table.index, K), (table.value, s.Name("v")))
            rows = s.Comprehension(row, ("v",), s.Call("keys", (seen,)))
            fields = (*table.index, *table.value)
            return _Kept("sawzall.set_table", (values, ("n", number)), _seen(table), fields, _returned(rows))
        case _:
            count = fresh("count", {name for name, _ in table.index})
            counted = s.FieldValue(count, s.Call("len", (_member(A, "seen"),)))
            row = s.RecordValue((*_row((table.index, K)).fields, counted))
            fields = (*table.index, (count, t.I64))
            return _Kept(
                "sawzall.set_table",
                (values, ("n", number)),
                _seen(table),
                fields,
                _returned(s.ListValue((row,))),
            )


def _sum(table: z.Table) -> _Kept:
    """One row for each index: the sums."""
    ints, floats = _apart(table.value)
    body = s.ListValue((s.RecordValue((*_row((table.index, K)).fields, *_sums(table.value, A))),))
    args = (("Ints", _record(ints)), ("Floats", _record(floats)))
    fields = (*table.index, *table.value)
    return _Kept("sawzall.sum_table", args, _accumulator(ints, floats), fields, _returned(body))


def _sum_map(table: z.Table, type_: t.Map) -> _Kept:
    """One row for each index: the sums by key, keys ascending."""
    floats = type_.value == t.F64
    args: list[tuple[str, s.TemplateArg]] = [("Vs", _record(table.value)), ("K", expression(type_.key))]
    if not floats:
        args.append(("V", expression(type_.value)))
    ((name, _),) = table.value
    total = s.Index(A, s.Name("key"))
    entry = s.Call("value", (total,)) if floats else total
    body = s.Block((
        s.VarDecl("sums", expression(type_), s.MapValue(())),
        s.For(
            None, ("key",), s.Call("sort", (s.Call("keys", (A,)),)),
            s.Block((s.Assign(s.Index(s.Name("sums"), s.Name("key")), entry),)),
        ),
        s.Return(s.ListValue((
            s.RecordValue((*_row((table.index, K)).fields, s.FieldValue(name, s.Name("sums")))),
        ))),
    ))  # fmt: skip
    kept = s.TypeName(
        "map", (expression(type_.key), s.TypeName("fsum") if floats else expression(type_.value))
    )
    template = "sawzall.sum_map_floats_table" if floats else "sawzall.sum_map_table"
    return _Kept(template, tuple(args), kept, (*table.index, *table.value), body)


def _top(table: z.Table, values: tuple[str, s.TemplateArg]) -> _Kept:
    """The `limit` values of greatest total weight; among equal weights the least values."""
    ints, floats = _apart(table.weight)
    (weight, type_) = table.weight[0]
    kept = s.TypeName("map", (_record(table.value), _accumulator(ints, floats)))
    row = s.RecordValue(
        (*_row((table.index, K), (table.value, s.Name("v"))).fields, *_sums(table.weight, s.Name("w")))
    )
    every = s.Comprehension(row, ("v", "w"), A)
    heaviest = s.Unary(
        "-" if type_ == t.F64 else "~", _member(s.Name("r"), weight)
    )  # ~ turns the order round, MIN too
    order = s.Lambda(
        ("r",), s.TupleValue((heaviest, *(_member(s.Name("r"), name) for name, _ in table.value)))
    )
    body = s.Call("take", (s.Call("sort_by", (every, order)), s.Int(table.limit or 0)))
    args = (values, ("Ints", _record(ints)), ("Floats", _record(floats)))
    fields = (*table.index, *table.value, *table.weight)
    return _Kept("sawzall.top_table", args, kept, fields, _returned(body), ranked=True)


def _extreme(
    table: z.Table, values: tuple[str, s.TemplateArg], weights: tuple[str, s.TemplateArg], number: s.Expr
) -> _Kept:
    """The items that are kept, each as often as it was emitted, the one that is ahead of all others first."""
    key = _record((*table.weight, *table.value))
    kept = s.RecordType((
        s.FieldType("n", s.TypeName("i64")), s.FieldType("kept", s.TypeName("omap", (key, s.TypeName("i64"))))
    ))  # fmt: skip
    fields = (*table.index, *table.value, *table.weight)
    row = _row((table.index, K), ((*table.value, *table.weight), s.Name("e")))
    again = s.For(
        None, ("i",), s.Range(s.Int(0), s.Name("c")), s.Block((s.Do(s.Call("push", (s.Name("rows"), row))),))
    )
    body = s.Block((
        s.VarDecl("rows", s.TypeName("list", (_record(fields),)), s.ListValue(())),
        s.For(None, ("e", "c"), _member(A, "kept"), s.Block((again,))),
        s.Return(s.Name("rows") if table.kind == "minimum" else s.Call("reverse", (s.Name("rows"),))),
    ))  # fmt: skip
    template = f"sawzall.{table.kind}_table"
    return _Kept(template, (values, weights, ("n", number)), kept, fields, body, ranked=True)


# ---------------------------------------------------------------------------------------------- small trees


def _apart(fields: z.Fields) -> tuple[z.Fields, z.Fields]:
    """The fields that are whole numbers, and those that are floats."""
    return tuple(f for f in fields if f[1] != t.F64), tuple(f for f in fields if f[1] == t.F64)


def _accumulator(ints: z.Fields, floats: z.Fields) -> s.TypeExpr:
    return _record((*ints, *((name, t.FSUM) for name, _ in floats)))


def _seen(table: z.Table) -> s.TypeExpr:
    seen = s.TypeName("map", (_record(table.value), s.TypeName("bool")))
    return s.RecordType((s.FieldType("over", s.TypeName("bool")), s.FieldType("seen", seen)))


def _sums(fields: z.Fields, source: s.Expr) -> Iterable[s.FieldValue]:
    for name, type_ in fields:
        part = _member(source, name)
        yield s.FieldValue(name, s.Call("value", (part,)) if type_ == t.F64 else part)


def _row(*parts: tuple[z.Fields, s.Expr]) -> s.RecordValue:
    """A record of the fields of several records."""
    return s.RecordValue(
        tuple(s.FieldValue(name, _member(source, name)) for fields, source in parts for name, _ in fields)
    )


def _member(value: s.Expr, name: str) -> s.Expr:
    return s.Member(value, name)


def _returned(value: s.Expr) -> s.Block:
    return s.Block((s.Return(value),))


def _record(fields: Iterable[tuple[str, t.Type]]) -> s.RecordType:
    return s.RecordType(tuple(s.FieldType(name, expression(type_)) for name, type_ in fields))
