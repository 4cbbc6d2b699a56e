"""Operators that keep how often each row is there: distinct rows, set operations, and the first rows of an order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import changes, closed
from frontends.cql.declarations import Deltas
from frontends.cql.trees import columns
from frontends.sql import typed as r
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Args
    from frontends.cql.queries import Query


def distinct(query: Query, node: r.Distinct, *, quiet: bool) -> Deltas:
    """Each row once."""
    rows = query.relation(node.input, quiet=quiet)
    copies = t.Record((("n", t.I64), ("seen", t.BOOL), ("was", t.BOOL)))
    counts = s.TypeName("map", (rows.type, expression(copies)))
    kept = query.variable("copies", counts, s.MapValue(()), node.span)
    args: Args = (("R", rows.type), ("Tau", query.whole.tau), ("quiet", s.Bool(quiet)))
    once = closed.apart(query.view.query.sources, node)
    growing = not once and changes.only_comes(query.whole.source, query.view.query, node.input)
    args += (("once", s.Bool(once)), ("growing", s.Bool(growing)))
    keys = tuple(name for name, _ in node.row.fields)
    made = Deltas(query.queue("distinct"), node.row, rows.type)
    return query.add("distinct", args, (rows.queue,), (kept,), made, node, keys=keys)


def combine(query: Query, node: r.Combine, *, quiet: bool) -> Deltas:
    """`union all`, `except`, `intersect`."""
    left, right = (query.relation(side, quiet=quiet) for side in (node.left, node.right))
    args: Args = (("R", left.type), ("Tau", query.whole.tau), ("quiet", s.Bool(quiet)))
    made = Deltas(query.queue(node.word), node.row, left.type)
    queues = (left.queue, right.queue)
    if node.word == "union":
        return query.add("union", args, queues, (), made, node)
    a, b, none, one = s.Name("l"), s.Name("r"), s.Int(0), s.Int(1)
    match node.word, node.every:
        case "except", True:
            count: s.Expr = s.Call("max", (s.Binary("-", a, b), none))
        case "except", _:
            there = s.Binary("and", s.Binary(">", a, none), s.Binary("==", b, none))
            count = s.IfExpr(there, one, none)
        case _, True:
            count = s.Call("min", (a, b))
        case _:
            there = s.Binary("and", s.Binary(">", a, none), s.Binary(">", b, none))
            count = s.IfExpr(there, one, none)
    counts = t.Record((("l", t.I64), ("r", t.I64), ("was", t.I64), ("seen", t.BOOL)))
    state = s.TypeName("map", (left.type, expression(counts)))
    kept = query.variable("copies", state, s.MapValue(()), node.span)
    keys = tuple(name for name, _ in node.row.fields)
    args = (*args, ("count", s.Lambda(("l", "r"), count)))
    return query.add("combine", args, queues, (kept,), made, node, keys=keys, name=node.word)


def first(query: Query, node: r.Top, *, quiet: bool) -> Deltas:
    """The first rows of each key, perhaps with their numbers."""
    rows = query.relation(node.input, quiet=quiet)
    type_ = query.row_type("first", node.row, node.span)
    key, order = (
        expression(node.key_type),
        query.row_type("order", node.order_type, node.span),
    )
    place = s.RecordType((s.FieldType("p", order), s.FieldType("r", rows.type)))
    entry = s.RecordType((
        s.FieldType("rows", s.TypeName("omap", (place, expression(t.I64)))),
        s.FieldType("was", s.TypeName("list", (type_,))), s.FieldType("seen", s.OptionalType(query.whole.tau)),
    ))  # fmt: skip
    state = query.variable("first", s.TypeName("map", (key, entry)), s.MapValue(()), node.span)
    more: s.Expr = (
        s.Bool(value=True) if node.most is None else s.Binary("<=", s.Name(node.by), s.Int(node.most))
    )
    growing = node.by == "number" and changes.only_comes(query.whole.source, query.view.query, node.input)
    kept = node.most if growing and node.most is not None else 0
    args: Args = (
        ("R", rows.type), ("O", type_), ("Tau", query.whole.tau), ("K", key), ("P", order), ("key", node.key),
        ("order", node.order), ("skipped", s.Int(node.skipped)), ("more", s.Lambda(r.NUMBERS[1:], more)),
        ("row", node.make), ("quiet", s.Bool(quiet)),
        ("once", s.Bool(closed.apart(query.view.query.sources, node))), ("kept", s.Int(kept)),
    )  # fmt: skip
    made = Deltas(query.queue("first"), node.row, type_)
    keys = columns((node.key.body,), "r")
    return query.add("top", args, (rows.queue,), (state,), made, node, keys=keys or None)
