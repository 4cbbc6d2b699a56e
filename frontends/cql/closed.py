"""What follows where rows come when their window ends: rows of different windows do not meet, and no result changes.

`tumble` and `hop` tell all rows of a window at one instant, its end, and never take them back. So a group whose key has an end
of the window is complete when it comes; and of rows that are joined by such ends both come at one instant. Operators of
that kind keep nothing from one instant to the next, and what they say stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontends.cql.trees import fields
from frontends.sql import typed as r
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from frontends.cql import typed as ty


def columns(sources: Sequence[ty.Source], node: r.Relation) -> Mapping[str, int]:
    """The columns of a relation that tell when a row came: at the column's value and so many ticks more."""
    match node:
        case r.Input(index, _):
            return dict(sources[index].closed)
        case r.Filter(input, row, _, make):
            inner = columns(sources, input)
            if make == r.SAME:
                return {name: inner[name] for name, _ in row.fields if name in inner}
            return _shown(make.body, {"r": inner})
        case r.Distinct(input, _):
            return columns(sources, input)
        case r.Unnest(input, make=make):
            return _shown(make.body, {"l": columns(sources, input)})
        case r.Join(left, right, _, _, _, _, make) if apart(sources, node):
            a, b = make.params
            return _shown(make.body, {a: columns(sources, left), b: columns(sources, right)})
        case r.Top(input, row, make=make) if apart(sources, node):
            inner = columns(sources, input)
            if make.body == s.Name("r"):
                return {name: inner[name] for name, _ in row.fields if name in inner}
            return _shown(make.body, {"r": inner})
        case r.Group(input, _, keys, _, _, make) if apart(sources, node):
            inner = columns(sources, input)
            own = {key.name: when for key in keys if (when := _when(key.value, {"r": inner})) is not None}
            return _shown(make.body, {"g": own})
        case _:
            return {}


def apart(sources: Sequence[ty.Source], node: r.Relation) -> bool:
    """Whether an operator deals with the rows of each instant on their own: groups, pairs or copies tell when they came."""
    match node:
        case r.Group(input, _, keys):
            inner = {"r": columns(sources, input)}
            return any(_when(key.value, inner) is not None for key in keys)
        case r.Join(left, right, _, _, left_key, right_key):
            one = {left_key.params[0]: columns(sources, left)}
            other = {right_key.params[0]: columns(sources, right)}
            pairs = zip(_parts(left_key.body), _parts(right_key.body), strict=False)
            return any(_when(a, one) == _when(b, other) is not None for a, b in pairs)
        case r.Top(input, key=key):
            inner = {"r": columns(sources, input)}
            return any(_when(part, inner) is not None for part in _parts(key.body))
        case r.Distinct(input, _):
            return bool(columns(sources, input))
        case _:
            return False


def grows(sources: Sequence[ty.Source], node: r.Relation) -> bool:
    """Whether a relation never loses a row if its sources lose none."""
    match node:
        case r.Input():
            return True
        case r.Filter(input, _, _, _) | r.Distinct(input, _) | r.Unnest(input):
            return grows(sources, input)
        case r.Join(left, right):
            return grows(sources, left) and grows(sources, right)
        case r.Combine(left, right, _, word):
            return word != "except" and grows(sources, left) and grows(sources, right)
        case r.Group(input, _, _) | r.Top(input, _, _):
            return apart(sources, node) and grows(sources, input)
        case r.Outer():
            return False


def _parts(key: s.Expr) -> tuple[s.Expr, ...]:
    return key.items if isinstance(key, s.TupleValue) else (key,)


def _when(value: s.Expr, known: Mapping[str, Mapping[str, int]]) -> int | None:
    """By how much the instant of a row lies behind a value, if the value is a column that tells it."""
    match value:
        case s.Member(s.Name(row), name):
            return known.get(row, {}).get(name)
        case _:
            return None


def _shown(made: s.Expr, known: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    """The fields of a record that are such columns as they are."""
    found = {name: _when(value, known) for name, value in fields(made).items()}
    return {name: when for name, when in found.items() if when is not None}
