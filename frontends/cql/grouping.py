"""Groups and their aggregates: how they are kept by their key, and what is told of them when they change.

How each aggregate is computed is in `groups`; some of them call functions, which are declared here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from frontends.cql import changes, closed, selections
from frontends.cql.declarations import Deltas
from frontends.cql.groups import Accumulator, applied, over
from frontends.cql.trees import columns, fields, key_of, record
from river.classes import frozen
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Args, Declarations
    from frontends.cql.queries import Query
    from frontends.sql import typed as r


@frozen
class GroupParts:
    """What groups are made of: types of keys and accumulators, the key of a row `r`, and functions of a group."""

    kind: s.TypeExpr
    acc: s.TypeExpr
    key: s.Lambda
    kept: Accumulator
    keep: s.Lambda
    make: s.Lambda

    def entry(self, *more: s.FieldType) -> s.TypeExpr:
        """The state of a group."""
        return s.RecordType((s.FieldType("acc", self.acc), *more))


def group(query: Query, node: r.Group, *, quiet: bool) -> Deltas:
    """Grouping and aggregation."""
    whole = query.whole
    rows = query.relation(node.input, quiet=quiet and bool(node.keys))
    read = (*(key.value for key in node.keys), *(a.argument for a in node.aggregates if a.argument))
    rows = selections.settled(query, rows, node.input, read, quiet=quiet and bool(node.keys))
    type_ = query.row_type("grouped", node.row, node.span)
    parts = parts_of(query, node)
    once = bool(node.keys) and closed.apart(query.view.query.sources, node)
    args: Args = (("R", rows.type), ("O", type_), ("Tau", whole.tau))
    tail: Args = (
        ("Acc", parts.acc), *([("key", parts.key)] if node.keys else []), *parts.kept.arguments(), ("keep", parts.keep),
    )  # fmt: skip
    last: Args = (("row", parts.make), ("quiet", s.Bool(quiet)))
    made = Deltas(query.queue("grouped"), node.row, type_)
    if not node.keys:
        state = (
            query.variable("acc", parts.acc, parts.kept.zero(), node.span),
            query.variable("was", s.OptionalType(type_), s.NoneValue(), node.span),
        )
        return query.add("group_all", (*args, *tail, *last), (rows.queue,), state, made, node)
    told, value, row = _told(query, node, parts, type_)
    entry = parts.entry(
        s.FieldType("seen", s.OptionalType(whole.tau)), s.FieldType("was", s.OptionalType(told))
    )
    args = (
        *args,
        ("K", parts.kind),
        ("V", told),
        *tail,
        ("value", value),
        ("row", row),
        last[1],
        ("once", s.Bool(once)),
    )
    groups = s.TypeName("map", (parts.kind, entry))
    state = (query.variable("groups", groups, s.MapValue(()), node.span),)
    keys = columns((k.value for k in node.keys), "r")
    return query.add("group", args, (rows.queue,), state, made, node, keys=keys)


def parts_of(query: Query, node: r.Group) -> GroupParts:
    """The keys, accumulators and functions of groups; declares their types."""
    whole, title = query.whole, query.view.name
    growing = changes.only_comes(whole.source, query.view.query, node.input)
    kept = Accumulator(
        always=bool(node.keys),
        growing=growing,
        listed=partial(_listed, whole),
        folding=partial(_folding, whole),
    )
    places = {a.name: kept.read(a) for a in node.aggregates}
    single = len(node.keys) == 1
    for key in node.keys:
        places[key.name] = s.Name("k") if single else s.Member(s.Name("k"), key.name)
    acc = whole.declare(f"{title}_acc", kept.type(), node.span)
    params = ("k", "a") if node.keys else ("a",)
    keep, make = (s.Lambda(params, over(expr, places), span=expr.span) for expr in (node.keep, node.make))
    kind: s.TypeExpr = s.RecordType(())
    if single:
        kind = expression(node.keys[0].type)
    elif node.keys:
        key_row = t.Record(tuple((key.name, key.type) for key in node.keys))
        kind = whole.declare(f"{title}_key", expression(key_row), node.span)
    value = key_of([(key.name, key.value) for key in node.keys])
    return GroupParts(kind, acc, s.Lambda(("r",), value), kept, keep, make)


def _told(
    query: Query, node: r.Group, parts: GroupParts, type_: s.TypeExpr
) -> tuple[s.TypeExpr, s.Lambda, s.Lambda]:
    """What is kept of the row that was told of a group last: its type, and the functions that make it and rows of it.

    That is what does not follow from the key; all, where equal keys may look different.
    """
    shown = fields(parts.make.body)
    single = len(node.keys) == 1
    keys = [s.Name("k") if single else s.Member(s.Name("k"), key.name) for key in node.keys]
    values = {name: value for name, value in shown.items() if value not in keys}
    floats = any(t.contains(key.type, *t.FLOATS) for key in node.keys)
    if floats or not values or len(shown) != len(node.row.fields):
        return type_, parts.make, s.Lambda(("k", "v"), s.Name("v"))
    kept = t.Record(tuple((name, kind) for name, kind in node.row.fields if name in values))
    row = record(
        (name, s.Member(s.Name("v"), name) if name in values else value) for name, value in shown.items()
    )
    made = query.whole.declare(f"{query.view.name}_told", expression(kept), node.span)
    value = s.Lambda(parts.make.params, record(values.items()), span=parts.make.span)
    return made, value, s.Lambda(("k", "v"), row, span=parts.make.span)


def _listed(whole: Declarations, kind: t.Type, part: int) -> str:
    """The name of a function that lists counted values in their order, or part number `part` of each (-1: the values)."""
    known = whole.functions.get((kind, part))
    if known is not None:
        return known.name
    item: s.Expr = s.Name("v") if part < 0 else s.Member(s.Name("v"), str(part))
    found = s.TypeName(
        "list", (expression(kind.items[part] if isinstance(kind, t.Tuple) and part >= 0 else kind),)
    )
    once = s.Block((s.Do(s.Call("push", (s.Name("found"), item))),))
    copies = s.For(None, ("i",), s.Range(s.Int(0), s.Name("c")), once)
    body = (
        s.VarDecl("found", found, s.ListValue(())),
        s.For(None, ("v", "c"), s.Name("values"), s.Block((copies,))),
        s.Return(s.Name("found")),
    )
    values = s.Param("values", s.TypeName("omap", (expression(kind), expression(t.I64))))
    made = s.Fn(whole.fresh("listed"), (values,), found, s.Block(body))
    whole.functions[kind, part] = made
    return made.name


def _folding(whole: Declarations, fold: r.Fold, kept: s.TypeExpr) -> str:
    """The name of a function that tells a state of the user's aggregate what came and went at an instant.

    That is told in the order of its values, and what came and went not at all: so the order of rows is in no result.
    """
    if fold in whole.folds:
        return whole.folds[fold].name
    a, state, row, count = s.Name("a"), s.Name("state"), s.Name("row"), s.Name("n")
    changed = s.Member(a, "changes")

    def told(function: s.Lambda, times: s.Expr) -> s.Stmt:
        change = s.Assign(state, applied(function, state, row))
        each = s.For(None, ("i",), s.Range(s.Int(0), times), s.Block((change,)))
        return s.For(None, ("row", "n"), changed, s.Block((each,)))

    before = s.Member(a, "state")
    body: tuple[s.Stmt, ...] = (
        s.VarDecl(
            "state",
            expression(fold.state),
            s.Call("coalesce", (before, fold.initial), span=fold.initial.span),
        ),
        told(fold.add, count),
    )
    if fold.remove is not None:
        body += (told(fold.remove, s.Unary("-", count)),)
    result = (s.FieldValue("state", state), s.FieldValue("changes", s.MapValue(())))
    body += (s.Return(s.RecordValue(result)),)
    made = s.Fn(whole.fresh("folded"), (s.Param("a", kept),), kept, s.Block(body))
    whole.folds[fold] = made
    return made.name
