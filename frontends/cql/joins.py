"""Joins by keys: of rows that meet, of rows whose values lie near one another, and of those that lack a partner, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import changes, closed, selections
from frontends.cql.declarations import Deltas
from frontends.cql.trees import columns, record
from frontends.sql import typed as r
from river.classes import evolve
from river.il.trees import rebuild
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from frontends.cql.declarations import Args
    from frontends.cql.queries import Query


def join(query: Query, node: r.Join, *, quiet: bool) -> Deltas:
    """An equi-join, or the product if the key is unit."""
    left, right = query.relation(node.left, quiet=quiet), query.relation(node.right, quiet=quiet)
    if not selections.may_trap(node.make.body) or changes.lasts(query.whole.source, query.view.query, node):
        return _met(query, node, left, right, quiet=quiet)
    pairs, made = _apart(node, left.row, right.row)
    rows = _met(query, pairs, left, right, quiet=quiet)
    return selections.selected(
        query, selections.settled(query, rows, pairs, (made.make.body,), quiet=quiet), made, quiet=quiet
    )


def _met(query: Query, node: r.Join, left: Deltas, right: Deltas, *, quiet: bool) -> Deltas:
    """The rows of a join of what its sides are."""
    type_ = query.row_type("joined", node.row, node.span)
    key, asked = expression(node.key), query.view.query
    sides = (("left", left, node.left), ("right", right, node.right))
    once = closed.apart(asked.sources, node)
    if node.band is not None:
        return _banded(query, node, node.band, (left, right), type_, quiet=quiet, once=once)
    lasting = not once and all(changes.lasts(query.whole.source, asked, side) for _, _, side in sides)
    orders = [lasting and changes.in_order(asked, side) for _, _, side in sides]
    kinds = [
        s.TypeName("deque" if order else "bag", (rows.type,))
        for order, (_, rows, _) in zip(orders, sides, strict=True)
    ]
    state = [
        query.variable(side, s.TypeName("map", (key, kind)), s.MapValue(()), node.span)
        for kind, (side, _, _) in zip(kinds, sides, strict=True)
    ]
    args: Args = (
        ("L", left.type), ("R", right.type), ("O", type_), ("Tau", query.whole.tau), ("K", key),
        ("left", node.left_key), ("right", node.right_key), ("row", node.make), ("quiet", s.Bool(quiet)),
    )  # fmt: skip
    if lasting:
        args += (("Left", kinds[0]), ("Right", kinds[1]), *_keeping(orders))
    else:
        args += (("once", s.Bool(once)),)
    made = Deltas(query.queue("joined"), node.row, type_)
    template = "join_lasting" if lasting else "join"
    keys, queues = _shared_keys(node), (left.queue, right.queue)
    return query.add(template, args, queues, tuple(state), made, node, keys=keys, name="join")


def _keeping(orders: Sequence[bool]) -> Args:
    """How each side of a join keeps a row of a key, and how it lets one go: the first, where they go in their order."""
    kept, row = s.Name("s"), s.Name("x")
    args: Args = ()
    for order, side in zip(orders, ("left", "right"), strict=True):
        add = s.Call("push_back" if order else "add", (kept, row))
        remove = s.Call("pop_front", (kept,)) if order else s.Call("remove", (kept, row))
        args += ((f"add_{side}", s.Lambda(("s", "x"), add)), (f"remove_{side}", s.Lambda(("s", "x"), remove)))
    return args


def _banded(
    query: Query,
    node: r.Join,
    band: r.Band,
    sides: tuple[Deltas, Deltas],
    type_: s.TypeExpr,
    *,
    quiet: bool,
    once: bool,
) -> Deltas:
    """A join of rows whose values lie near one another, which are kept in their order."""
    (left, right), key, kind = sides, expression(node.key), expression(band.type)
    state = tuple(
        query.variable(
            side,
            s.TypeName("map", (key, s.TypeName("omap", (kind, s.TypeName("bag", (rows.type,)))))),
            s.MapValue(()),
            node.span,
        )
        for side, rows in (("left", left), ("right", right))
    )
    args: Args = (
        ("L", left.type), ("R", right.type), ("O", type_), ("Tau", query.whole.tau), ("K", key), ("V", kind),
        ("left", node.left_key), ("right", node.right_key), ("row", node.make), *_near(band),
        ("quiet", s.Bool(quiet)), ("once", s.Bool(once)),
    )  # fmt: skip
    made = Deltas(query.queue("joined"), node.row, type_)
    keys = _shared_keys(node)
    return query.add("join_band", args, (left.queue, right.queue), state, made, node, keys=keys, name="join")


def outer(query: Query, node: r.Outer, *, quiet: bool) -> Deltas:
    """A join that keeps rows without partner."""
    left, right = query.relation(node.left, quiet=quiet), query.relation(node.right, quiet=quiet)
    type_, key = query.row_type("joined", node.row, node.span), expression(node.key)
    nothing = s.Call("zero", ())  # never asked for
    args: Args = (
        ("L", left.type), ("R", right.type), ("O", type_), ("Tau", query.whole.tau), ("K", key),
        ("left", node.left_key), ("right", node.right_key), ("row", node.make),
        ("left_can", node.left_can), ("right_can", node.right_can),
        ("left_alone", node.left_alone or s.Lambda(("l",), nothing)),
        ("right_alone", node.right_alone or s.Lambda(("r",), nothing)),
        ("keep_left", s.Bool(node.left_alone is not None)), ("keep_right", s.Bool(node.right_alone is not None)),
        ("quiet", s.Bool(quiet)),
    )  # fmt: skip
    template, more = "outer", cast("Args", ())
    if node.meets is not None:
        template, more = "outer_on", (("meets", node.meets),)
    if node.meets is not None and node.band is not None:
        template = "outer_band"
        more = (*more, ("V", expression(node.band.type)), *_near(node.band))
    state = tuple(
        query.variable(side, s.TypeName("map", (key, _partners(node, rows.type))), s.MapValue(()), node.span)
        for side, rows in (("left", left), ("right", right))
    )
    made = Deltas(query.queue("joined"), node.row, type_)
    queues = (left.queue, right.queue)
    return query.add(template, (*args, *more), queues, state, made, node, name="outer")


def _apart(join: r.Join, left: t.Record, right: t.Record) -> tuple[r.Join, r.Filter]:
    """A join whose rows are pairs of these rows, and what is made of them behind it."""
    sides = t.Record((("l", left), ("r", right)))
    pairs = evolve(join, row=sides, make=s.Lambda(("l", "r"), record((n, s.Name(n)) for n in ("l", "r"))))

    def read(node: s.Node) -> s.Node:
        match node:
            case s.Name("l" | "r" as side):
                return s.Member(s.Name("r"), side)
            case _:
                return rebuild(node, read)

    made = s.Lambda(("r",), cast("s.Expr", read(join.make.body)))
    return pairs, r.Filter(pairs, join.row, r.ALL, made, span=join.span)


def _shared_keys(node: r.Join) -> tuple[str, ...] | None:
    """The columns that are the key of a join on both sides, if there are such."""
    a, b = columns((node.left_key.body,), "l"), columns((node.right_key.body,), "r")
    return (a or None) if a == b else None


def _near(band: r.Band) -> Args:
    """The values of both sides by which rows are kept in order, and which of them lie near one another."""
    low, high = band.low, band.high
    return (
        ("left_value", band.left), ("right_value", band.right), ("low", _moved(low)), ("high", _moved(high)),
        ("low_left", _moved(high and -high)), ("high_left", _moved(low and -low)),
    )  # fmt: skip


def _moved(by: int | None) -> s.Lambda:
    """A bound: a value and so much, but no more than there is; or none."""
    value: s.Expr = s.Name("v")
    if by:
        wide = s.Binary("+", s.Call("i128", (value,)), s.Call("i128", (s.Int(by),)))
        value = s.Call("i64.sat", (wide,))
    return s.Lambda(("v",), s.NoneValue() if by is None else value)


def _partners(node: r.Outer, row: s.TypeExpr) -> s.TypeExpr:
    """What is kept of the rows of a key: a bag, or how often each is there and how many partners it has."""
    if node.meets is None:
        return s.TypeName("bag", (row,))
    counted = s.TypeName("map", (row, expression(t.Record((("n", t.I64), ("partners", t.I64))))))
    return counted if node.band is None else s.TypeName("omap", (expression(node.band.type), counted))
