"""Operators that look at one row at a time: selection, projection, and the items of lists that rows hold.

A value that is made of a row that comes and goes within one instant must not trap, for the relation never has that row: where
it may, only the rows that stay for an instant are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import changes, windowing
from frontends.cql import typed as ty
from frontends.cql.declarations import Deltas
from frontends.cql.trees import fields
from frontends.sql import decimals
from frontends.sql import typed as r
from river.classes import evolve
from river.il.trees import walk
from river.lang import syntax as s
from river.lang.scope import expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from frontends.cql.declarations import Args
    from frontends.cql.queries import Query


def selection(query: Query, node: r.Filter, *, quiet: bool) -> Deltas:
    """Selection and projection; nothing where another operator reads what would be the rows as they come."""
    if node.keep == r.ALL and isinstance(node.input, r.Input):
        source = query.view.query.sources[node.input.index]
        match source.window:
            case ty.RowWindow(1, keys) if keys:
                shown = Deltas("", node.row, query.row_type("selected", node.row, node.span))
                return windowing.last(query, source, query.copy(source), shown, node.make.body, quiet=quiet)
            case _:
                pass
    rows = query.relation(node.input, quiet=quiet)
    if node is not query.view.query.relation and node.row == rows.row and _keeps_rows(node):
        return rows
    rows = settled(query, rows, node.input, (node.keep.body, node.make.body), quiet=quiet)
    return selected(query, rows, node, quiet=quiet)


def unnest(query: Query, node: r.Unnest, *, quiet: bool) -> Deltas:
    """The rows of a relation with the items of a list that each holds."""
    rows = query.relation(node.input, quiet=quiet)
    values = (node.items.body, node.keep.body, node.make.body)
    return with_items(query, settled(query, rows, node.input, values, quiet=quiet), node, quiet=quiet)


def settled(
    query: Query, rows: Deltas, relation: r.Relation, values: Iterable[s.Argument], *, quiet: bool
) -> Deltas:
    """The rows of a relation of which values are computed next: if one may trap, only those that stay for an instant.

    A row that comes and goes within one, such as one that lacks a partner until that comes, is in no bag.
    """
    if not any(map(may_trap, values)) or changes.lasts(query.whole.source, query.view.query, relation):
        return rows
    args: Args = (("R", rows.type), ("Tau", query.whole.tau), ("quiet", s.Bool(quiet)))
    made = evolve(rows, queue=query.queue("settled"))
    return query.add("settled", args, (rows.queue,), (), made, relation, keys=())


def selected(query: Query, rows: Deltas, node: r.Filter, *, quiet: bool) -> Deltas:
    """Those of the rows that are kept, as they are made."""
    made = evolve(rows, queue=query.queue("selected"))
    if node.make != r.SAME and node.row != rows.row:
        made = Deltas(made.queue, node.row, query.row_type("selected", node.row, node.span))
    args: Args = (
        ("R", rows.type), ("O", made.type), ("Tau", query.whole.tau), ("keep", node.keep), ("row", node.make),
        ("quiet", s.Bool(quiet)),
    )  # fmt: skip
    return query.add("select", args, (rows.queue,), (), made, node, keys=())


def with_items(query: Query, rows: Deltas, node: r.Unnest, *, quiet: bool) -> Deltas:
    """The rows with the items of a list that each holds."""
    made = Deltas(query.queue("items"), node.row, query.row_type("items", node.row, node.span))
    alone = s.Lambda(("l",), s.ListValue(() if node.alone is None else (node.alone.body,)))
    args: Args = (
        ("R", rows.type), ("I", expression(node.item)), ("O", made.type), ("Tau", query.whole.tau), ("items", node.items),
        ("keep", node.keep), ("row", node.make), ("alone", alone), ("quiet", s.Bool(quiet)),
    )  # fmt: skip
    return query.add("unnest", args, (rows.queue,), (), made, node, keys=())


def may_trap(expr: s.Node) -> bool:
    """Whether a value that is not there may end the run: something is divided by it, or read from it as a text."""
    for node in walk(expr):
        match node:
            case s.Binary("/", _, by) | s.Call("div.trap" | "div.trunc" | "rem.trunc", (_, by)):
                if not isinstance(by, s.Int | s.Float):
                    return True
            case s.Call("cql.one_row" | "cql.time_like", _):
                return True
            case s.Call("cql.int_of" | "cql.float_of" | "cql.bool_of" | "cql.time_of", _):
                return True
            case s.Call(name, _) if decimals.is_cast(name):
                return True
            case _:
                pass
    return False


def _keeps_rows(node: r.Filter) -> bool:
    """Whether a filter of rows of the type that it makes changes nothing."""
    made = fields(node.make.body)
    same = all(made.get(name) == s.Member(s.Name("r"), name) for name, _ in node.row.fields)
    return node.keep == r.ALL and (node.make == r.SAME or same)
