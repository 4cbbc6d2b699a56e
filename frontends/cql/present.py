"""The `rstream` of joins with the present rows of a stream, which keep nothing of them (see `plan`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import grouping, selections, streams
from frontends.cql import typed as ty
from frontends.cql.plan import is_present, key_columns, source_of
from frontends.cql.trees import fields, key_of
from frontends.sql import typed as r
from frontends.sql.columns import written_out
from river.classes import evolve
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from frontends.cql.declarations import Args, Deltas
    from frontends.cql.grouping import GroupParts
    from frontends.cql.queries import Query


def stream(query: Query, own: s.TypeExpr) -> Deltas:
    """The stream of a view, of rows of type `own`."""
    view, relation = query.view, query.view.query.relation
    if isinstance(relation, r.Join):
        return _join(query, relation, own, streams.stamped(query))
    rows = _present(query, relation)
    args: Args = (
        ("R", rows.type), ("O", own), ("Tau", query.whole.tau), ("row", s.Lambda(("tau", "r"), streams.stamped(query))),
    )  # fmt: skip
    made = evolve(rows, queue=query.queue("now"), row=view.row, type=own)
    return query.add("stream_now", args, (rows.queue,), (), made, view, keys=())


def _present(query: Query, node: r.Relation) -> Deltas:
    """The rows of each instant, as insertions without deletions."""
    match node:
        case r.Filter():
            return selections.selected(query, _present(query, node.input), node, quiet=True)
        case r.Unnest():
            return selections.with_items(query, _present(query, node.input), node, quiet=True)
        case r.Join():
            return _join(query, node, query.row_type("joined", node.row, node.span), s.Name("r"))
        case r.Input(index, _):
            return query.copy(query.view.query.sources[index])
        case _:
            raise AssertionError(node)


def _join(query: Query, node: r.Join, type_: s.TypeExpr, value: s.Expr) -> Deltas:
    """Present rows joined with rows that stay; `value` is made of the row `r` of the join and the instant `tau`."""
    whole = query.whole
    left = is_present(query.view.query, node.left)
    other, own = (node.right, node.right_key) if left else (node.left, node.left_key)
    rows, key = (node.left, node.left_key) if left else (node.right, node.right_key)
    row = s.Lambda(
        ("tau", *(node.make.params if left else reversed(node.make.params))), _inlined(value, node.make.body)
    )
    present = _present(query, rows)
    made = evolve(present, queue=query.queue("joined"), row=node.row, type=type_)
    looked_up = whole.plan.looked_up.get(source_of(query.view.query, other) or "")
    if looked_up is not None:
        return _lookup(query, node, looked_up, (present, made), other, row, (key, own))
    found, kind = query.relation(other, quiet=True), expression(node.key)
    bags = s.TypeName("map", (kind, s.TypeName("bag", (found.type,))))
    state = query.variable("rows", bags, s.MapValue(()), node.span)
    args: Args = (
        ("L", present.type), ("R", found.type), ("O", type_), ("Tau", whole.tau), ("K", kind), ("left", key),
        ("right", own), ("row", row),
    )  # fmt: skip
    a, b = key_columns(key), key_columns(own)
    keys = tuple(a) if a and a == b else None
    return query.add("join_now", args, (present.queue, found.queue), (state,), made, node, keys=keys)


def _lookup(
    query: Query, node: r.Join, view: ty.View, queues: tuple[Deltas, Deltas], other: r.Relation, row: s.Lambda,
    keys: tuple[s.Lambda, s.Lambda],
) -> Deltas:  # fmt: skip
    """Present rows joined with the groups of a view, which are looked up by their key."""
    whole, group = query.whole, view.query.relation
    present, made = queues
    assert isinstance(group, r.Group)  # noqa: S101 - so it was planned
    taken, inner = (
        (group.input.keep, group.input.input) if isinstance(group.input, r.Filter) else (r.ALL, group.input)
    )
    assert isinstance(inner, r.Input)  # noqa: S101 - so it was planned
    source = view.query.sources[inner.index]
    assert isinstance(source.window, ty.Range)  # noqa: S101 - so it was planned
    groups = evolve(query, view=view)
    parts = grouping.parts_of(groups, group)
    state = _group_state(groups, parts)
    args: Args = (
        ("G", whole.declare(view.name, expression(view.row), view.span)), ("O", made.type), ("Tau", whole.tau),
        *whole.range(source.window.span_of_time), ("K", parts.kind), ("Acc", parts.acc), ("key", parts.key),
        parts.kept.arguments()[0], ("keep", parts.keep), ("group", parts.make),
        ("met", other.keep if isinstance(other, r.Filter) else r.ALL), ("row", row),
    )  # fmt: skip
    if view.name in whole.plan.own:
        args = (("R", present.type), *args)
        apart = tuple(key_columns(parts.key) or ())  # rows of other groups have nothing to do with these
        return query.add(
            "own_group_now", args, (present.queue,), state, made, node, title=view.name, apart=apart
        )
    rows = groups.copy(source)
    left = _group_key(group, *keys)
    args = (("L", present.type), ("R", rows.type), *args, ("left", left), ("taken", taken))
    a, b = key_columns(left), key_columns(parts.key)
    return query.add(
        "group_now", args, (present.queue, rows.queue), state, made, node, title=view.name,
        apart=tuple(a) if a and a == b else None,
    )  # fmt: skip


def _group_state(groups: Query, parts: GroupParts) -> tuple[str, ...]:
    """The variables of groups that are looked up: their numbers by key, the groups, free numbers, and what each instant added."""
    tau, span, number = groups.whole.tau, groups.view.span, expression(t.I64)
    part = s.RecordType((s.FieldType("i", number), s.FieldType("acc", parts.acc)))
    pane = s.RecordType((s.FieldType("t", tau), s.FieldType("parts", s.TypeName("list", (part,)))))
    group = s.RecordType((
        s.FieldType("k", parts.kind), s.FieldType("acc", parts.acc), s.FieldType("seen", s.OptionalType(tau)),
        s.FieldType("at", number),
    ))  # fmt: skip
    return (
        groups.variable("numbers", s.TypeName("map", (parts.kind, number)), s.MapValue(()), span),
        groups.variable("groups", s.TypeName("list", (group,)), s.ListValue(()), span),
        groups.variable("free", s.TypeName("list", (number,)), s.ListValue(()), span),
        groups.variable("window", s.TypeName("deque", (pane,)), s.ListValue(()), span),
    )


def _group_key(group: r.Group, key: s.Lambda, own: s.Lambda) -> s.Lambda:
    """The `key` of a present row, in the form that keys of the groups have. `own`: the key of the view's rows."""
    shown = fields(group.make.body)
    values = key.body.items if isinstance(key.body, s.TupleValue) else (key.body,)
    named = {
        cast("s.Member", shown[name]).name: value
        for name, value in zip(key_columns(own) or (), values, strict=True)
    }
    return s.Lambda(key.params, key_of([(k.name, named[k.name]) for k in group.keys]))


def _inlined(value: s.Expr, made: s.Expr) -> s.Expr:
    """`value` of the row `r` that `made` writes out."""
    return made if value == s.Name("r") else written_out(value, "r", fields(made))
