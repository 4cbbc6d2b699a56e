"""When two values are the same, and how they are seen from outside."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from river.lang import types as t
from river.lang.values.forms import freezer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from river.lang.values.scalars import Value


@cache
def same(type_: t.Type) -> Callable[[Value, Value], bool]:
    """Whether two values are the same in every observation: NaN is NaN, -0.0 is 0.0, the order of maps and bags is not seen."""
    if t.is_flat(type_):
        return lambda a, b: a is b or a == b
    if not t.contains(type_, t.Map, t.Bag):
        freeze = freezer(type_)
        assert freeze is not None  # noqa: S101 - by the rule
        return lambda a, b: a is b or freeze(a) == freeze(b)
    return lambda a, b: a is b or observed(type_, a) == observed(type_, b)


def observed(type_: t.Type, value: Value) -> Hashable:
    """`value` as an observation: maps as sets of pairs, bags as sets of counted items, the rest as they are; hashable."""
    see = _observer(type_)
    return value if see is None else see(value)


def _counted(items: Iterable[Any]) -> Hashable:
    return frozenset(Counter(items).items())


@cache
def _observer(type_: t.Type) -> Callable[[Value], Hashable] | None:
    if not t.contains(type_, t.Map, t.OMap, t.Bag):
        return freezer(type_)
    match type_:
        case t.Optional(inner):
            some = _observer(inner)
            return lambda value: value if value is None or some is None else some(value)
        case t.Record() | t.Tuple():
            parts = tuple(map(_observer, t.parts(type_)))
            return lambda value: tuple(
                v if see is None else see(v) for see, v in zip(parts, value, strict=True)
            )
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            each = _observer(item)
            return lambda value: tuple(value if each is None else map(each, value))
        case t.Map(_, item) | t.OMap(_, item):
            each = _observer(item)
            if each is None:
                return lambda value: frozenset(value.items())
            return lambda value: frozenset((k, each(v)) for k, v in value.items())
        case t.Bag():
            return _counted
        case _:
            raise TypeError(f"{type_} has no values")
