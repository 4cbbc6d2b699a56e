"""Groups that are sessions are kept by the session's begin: then a session that grows changes one group, not all of its rows.

Where rows of `session(s partition by k, gap)` are grouped by k and an end of the window, the group is the session. Its end
follows from the begin and the sum of what each row adds to its length, so rows need not be told again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from frontends.cql import typed as ty
from frontends.sql import typed as r
from river.classes import evolve
from river.il.trees import children, fresh, rebuild
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Sources = tuple[ty.Source, ...]
ROW = s.Name("r")
START, END = (s.Member(ROW, name) for name in (ty.START, ty.END))


def growing(sources: Sources, relation: r.Relation, tau: t.Primitive) -> tuple[Sources, r.Relation]:
    """The same query, its sessions kept as groups where they are; `tau` is the type of instants."""
    found = list(sources)

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case r.Group(r.Input(index, row)) as group if _are_sessions(found, group, index):
                window = found[index].window
                assert isinstance(window, ty.Sessions)  # noqa: S101 - so it was found
                grown = t.Record(
                    tuple((name, t.I64 if name == ty.END else kind) for name, kind in row.fields)
                )
                found[index] = evolve(found[index], row=grown, window=evolve(window, grows=True))
                return _by_begin(group, r.Input(index, grown, span=group.input.span), tau)
            case _:
                return rebuild(node, rewrite)

    rewritten = cast("r.Relation", rewrite(relation))
    return tuple(found), rewritten


def _are_sessions(sources: Sequence[ty.Source], group: r.Group, index: int) -> bool:
    """Whether each group is a session, and reads its end as a part of the key alone."""
    window = sources[index].window
    if not isinstance(window, ty.Sessions):
        return False
    keys = [key.value for key in group.keys]
    read = [key for key in keys if key != END] + [
        a.argument for a in group.aggregates if a.argument is not None
    ]
    return (
        (START in keys or END in keys)
        and all(s.Member(ROW, name) in keys for name in window.keys)
        and not any(part in (END, ROW) for value in read for part in _parts(value))
    )


def _parts(value: s.Node) -> Iterator[s.Node]:
    """The parts of an expression; the row itself only where it is not read by columns."""
    yield value
    if not (isinstance(value, s.Member) and value.value == ROW):
        for child in children(value):
            yield from _parts(child)


def _by_begin(group: r.Group, source: r.Input, tau: t.Primitive) -> r.Group:
    """The group with the begin of the session for its end in the key."""
    ends = [key.name for key in group.keys if key.value == END]
    keys = [key for key in group.keys if key.value != END]
    if not ends:
        return evolve(group, input=source)
    taken = {part.name for part in (*group.keys, *group.aggregates)}
    begin = next((key.name for key in keys if key.value == START), None)
    if begin is None:
        begin = fresh(ty.START, taken)
        keys.append(r.Key(begin, tau, START))
    length = fresh("length", {*taken, begin})
    g = s.Name("g")
    added: s.Expr = s.Member(g, length)
    end = s.Binary("+", s.Member(g, begin), added if tau == t.I64 else s.Call("duration", (added,)))

    def rewrite(node: s.Node) -> s.Node:
        match node:
            case s.Member(value, name) if value == g and name in ends:
                return evolve(end, span=node.span)
            case _:
                return rebuild(node, rewrite)

    keep, make = (cast("s.Lambda", rewrite(function)) for function in (group.keep, group.make))
    summed = r.Aggregate(length, t.I64, "sum", END, t.I64)
    return evolve(
        group, input=source, keys=tuple(keys), aggregates=(*group.aggregates, summed), keep=keep, make=make
    )
