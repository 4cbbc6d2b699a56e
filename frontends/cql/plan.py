"""What can be done with less than the general operators: columns that nobody reads, and joins with the present rows.

An `rstream` of a join with `stream[now]` has rows at the instants of that stream only, and forgets them at once. So the
present rows need no window, the other side need not say where nothing changes, and the join keeps nothing of the
present. If the other side is a group by the key of the join that nobody else uses, the group is looked up where it is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql import typed as ty
from frontends.cql.trees import fields
from frontends.sql import typed as r
from frontends.sql.operations import total
from river.classes import frozen
from river.il.trees import children
from river.lang import syntax as s
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Plan:
    """`read`: of each input stream and table the columns that views read. `now`: the views that are joins with the present.

    `looked_up`: relations without operators of their own, because the one join that uses them keeps their groups.
    `own`: those of them whose groups only the rows look up that they are made of.
    """

    read: Mapping[str, t.Record]
    now: frozenset[str]
    looked_up: Mapping[str, ty.View]
    own: frozenset[str]


def plan(program: ty.Program) -> Plan:
    """The plan of a program."""
    now = frozenset(view.name for view in program.views if of_present(view))
    looked_up = _looked_up(program, now)
    groups = {name: view for name, (view, _, _) in looked_up.items()}
    own = frozenset(name for name, (view, user, join) in looked_up.items() if _is_own(view, user, join))
    return Plan(_read(program), now, groups, own)


# ------------------------------------------------------------------------------------------------------ the present


def of_present(view: ty.View) -> bool:
    """Whether a view is an `rstream` of what only present rows make."""
    return view.query.operator == "rstream" and is_present(view.query, view.query.relation)


def is_present(query: ty.Query, relation: r.Relation) -> bool:
    """Whether a relation consists of one present row, each alone or joined with rows of a relation that stays."""
    match relation:
        case r.Input(index, _):
            window = query.sources[index].window
            return isinstance(window, ty.Range) and window.span_of_time == 0 and window.slide == 0
        case r.Filter(input, _, _, _) | r.Unnest(input):
            return is_present(query, input)
        case r.Join(left, right):
            return is_present(query, left) != is_present(query, right)
        case _:
            return False


def _looked_up(program: ty.Program, now: frozenset[str]) -> dict[str, tuple[ty.View, ty.View, r.Join]]:
    """The groups that one join with the present uses, by its key, and nobody else; with the join's view and the join."""
    views = {view.name: view for view in program.views if not view.output}
    users = [source.name for view in program.views for source in view.query.sources]
    found: dict[str, tuple[ty.View, ty.View, r.Join]] = {}
    for view in program.views:
        if view.name not in now:
            continue
        for join in _joins(view.query.relation):
            present_left = is_present(view.query, join.left)
            name = source_of(view.query, join.right if present_left else join.left)
            own = join.right_key if present_left else join.left_key
            if name in views and users.count(name) == 1 and _has_key(views[name], own):
                found[name] = views[name], view, join
    return found


def _is_own(view: ty.View, user: ty.View, join: r.Join) -> bool:
    """Whether the present rows are those of the window that `view` groups, and their key is that of the groups."""
    left = is_present(user.query, join.left)
    rows = join.left if left else join.right
    key, other = (join.left_key, join.right_key) if left else (join.right_key, join.left_key)
    match rows, view.query.relation:
        case r.Input(present, _), r.Group(r.Input(index, _), _, keys, _, _, make):
            shown = fields(make.body)
            pairs = zip(
                (_name(shown[c]) for c in key_columns(other) or ()), key_columns(key) or (), strict=False
            )
            return user.query.sources[present].name == view.query.sources[index].name and set(pairs) == {
                (k.name, _name(k.value)) for k in keys if k.value == s.Member(s.Name("r"), _name(k.value))
            }
        case _:
            return False


def _joins(relation: r.Relation) -> tuple[r.Join, ...]:
    match relation:
        case r.Join(left, right):
            return (relation, *_joins(left), *_joins(right))
        case r.Filter(input, _, _, _) | r.Unnest(input):
            return _joins(input)
        case _:
            return ()


def source_of(query: ty.Query, relation: r.Relation) -> str | None:
    """The relation that is joined as it is, or with some of its rows left out."""
    match relation:
        case r.Filter(r.Input(index, _), _, _, make) if make == r.SAME:
            return query.sources[index].name if query.sources[index].window is None else None
        case r.Input(index, _):
            return query.sources[index].name if query.sources[index].window is None else None
        case _:
            return None


def _has_key(view: ty.View, key: s.Lambda) -> bool:
    """Whether a view is counts and sums of a range window, and `key` of its rows is the key of their groups.

    Only if nothing in it can trap: a group that nobody looks up is not computed.
    """
    match view.query.relation:
        case r.Group(input, _, keys, aggregates, keep, make) if keys and _ranged(view.query, input):
            shown = fields(make.body)
            named = key_columns(key)
            return (
                all(a.function == "count" or (a.function == "avg" and _is_whole(a)) for a in aggregates)
                and total(keep.body)
                and all(map(total, shown.values()))
                and named is not None
                and sorted(_name(shown.get(name)) for name in named) == sorted(key.name for key in keys)
            )
        case _:
            return False


def _name(value: s.Expr | None) -> str:
    """The column that a value is, or nothing."""
    return value.name if isinstance(value, s.Member) else ""


def _is_whole(aggregate: r.Aggregate) -> bool:
    return aggregate.argument_type in t.INTEGERS


def _ranged(query: ty.Query, relation: r.Relation) -> bool:
    """Whether a relation is a range window, perhaps with some of its rows left out."""
    match relation:
        case r.Filter(r.Input(index, _), _, _, make) if make == r.SAME:
            window = query.sources[index].window
        case r.Input(index, _):
            window = query.sources[index].window
        case _:
            return False
    return isinstance(window, ty.Range) and window.slide == 0


def key_columns(key: s.Lambda) -> list[str] | None:
    """The columns of a key in their order, or None if they are more than columns."""
    values = (
        key.body.items
        if isinstance(key.body, s.TupleValue)
        else tuple(fields(key.body).values()) or (key.body,)
    )
    found = [
        value.name for value in values if isinstance(value, s.Member) and value.value == s.Name(key.params[0])
    ]
    return found if len(found) == len(values) else None


# ---------------------------------------------------------------------------------------------- columns that are read


def _read(program: ty.Program) -> dict[str, t.Record]:
    streams = {one.name: one.row for one in program.inputs if one.kind == "stream" or one.table}
    names: dict[str, set[str]] = {name: set() for name in streams}
    for view in program.views:
        needs: dict[int, set[str]] = {i: set() for i in range(len(view.query.sources))}
        _needs(view.query.relation, {name for name, _ in view.query.relation.row.fields}, needs)
        for i, source in enumerate(view.query.sources):
            if source.name in names:
                names[source.name] |= needs[i] | set(ty.keys_of(source.window))
    return {
        name: t.Record(tuple(f for f in row.fields if f[0] in names[name]) or row.fields[:1])
        for name, row in streams.items()
    }


def _needs(relation: r.Relation, wanted: set[str], found: dict[int, set[str]]) -> None:
    """Notes the columns of sources that a relation reads; `wanted`: its own columns that are read."""
    match relation:
        case r.Input(index, _):
            found[index] |= wanted
        case r.Filter(input, _, keep, make):
            _needs(
                input, _members(keep, input) | (wanted if make == r.SAME else _members(make, input)), found
            )
        case r.Unnest(input, _, _, items, keep, make, alone):
            read = [_members(f, input) for f in (items, keep, make, alone) if f is not None]
            _needs(input, set[str]().union(*read), found)
        case r.Join(left, right, _, _, left_key, right_key, make, band):
            values = (None, None) if band is None else (band.left, band.right)
            for side, i, own in ((left, 0, (left_key, values[0])), (right, 1, (right_key, values[1]))):
                read = [_members(f, side) for f in own if f is not None]
                _needs(side, _members(make, side, i).union(*read), found)
        case r.Group(input, _, keys, aggregates):
            values = [key.value for key in keys] + [a.argument for a in aggregates if a.argument is not None]
            _needs(
                input, {name for value in values for name in _members(s.Lambda(("r",), value), input)}, found
            )
        case r.Outer(
            left,
            right,
            _,
            _,
            left_key,
            right_key,
            make,
            left_can,
            right_can,
            left_alone,
            right_alone,
            meets,
            band,
        ):
            values = (None, None) if band is None else (band.left, band.right)
            left_ones = [f for f in (left_key, left_can, left_alone, values[0]) if f is not None]
            right_ones = [f for f in (right_key, right_can, right_alone, values[1]) if f is not None]
            pairs = [f for f in (make, meets) if f is not None]
            for side, i, ones in ((left, 0, left_ones), (right, 1, right_ones)):
                read = [*(_members(f, side, i) for f in pairs), *(_members(f, side) for f in ones)]
                _needs(side, set[str]().union(*read), found)
        case r.Top(input):
            _needs(input, {name for name, _ in input.row.fields}, found)
        case r.Distinct(input, row):
            _needs(input, {name for name, _ in row.fields}, found)
        case r.Combine(left, right, row):
            for side in (left, right):
                _needs(side, {name for name, _ in row.fields}, found)


def _members(function: s.Lambda, rows: r.Relation, which: int = 0) -> set[str]:
    """The columns that a function reads of its parameter number `which`, a row of `rows`."""
    row = s.Name(function.params[which])

    def read(node: s.Node) -> set[str]:
        match node:
            case s.Member(value, name) if value == row:
                return {name}
            case s.Name() if node == row:
                return {name for name, _ in rows.row.fields}
            case _:
                return {name for child in children(node) for name in read(child)}

    return read(function.body)
