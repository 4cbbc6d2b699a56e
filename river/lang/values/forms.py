"""Frozen and mutable forms, zeros, and canonical keys, by type."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final, assert_never

from river.lang import types as t
from river.lang.patterns import compile_pattern
from river.lang.values.containers import Bag, FrozenBag, FrozenMap, FrozenOMap, OMap
from river.lang.values.order import total_key
from river.lang.values.scalars import ZERO_SUM, Order, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def default(type_: t.Type) -> Value:
    """The zero of `type_`, frozen: 0, empty, none, each field its zero."""
    match type_:
        case t.Primitive(name):
            return _ZERO.get(name, 0)
        case t.Decimal():
            return 0
        case t.Optional():
            return None
        case t.Record() | t.Tuple():
            return tuple(map(default, t.parts(type_)))
        case t.Array(item, size):
            return (default(item),) * size
        case t.List() | t.Deque() | t.Map() | t.OMap() | t.Bag():
            return frozen_form(type_, ())
        case t.Function():
            raise TypeError("a function is not a value")
        case _:
            assert_never(type_)


_ZERO: Final[dict[str, Value]] = {
    "bool": False, "f32": 0.0, "f64": 0.0, "string": "", "bytes": b"", "unit": (),
    "regex": compile_pattern(""),
    "fsum": ZERO_SUM,
}  # fmt: skip


def frozen_class(type_: t.Type) -> type:
    """The Python class of the frozen form of a container type."""
    match type_:
        case t.Map():
            return FrozenMap
        case t.OMap():
            return FrozenOMap
        case t.Bag():
            return FrozenBag
        case _:
            return tuple


def frozen_form(type_: t.Type, parts: Iterable[Any]) -> Value:
    """A frozen container of type `type_` from frozen items, or pairs for maps; keys must be canonical."""
    match type_:
        case t.Map():
            return FrozenMap(parts)
        case t.OMap(key, _):
            return FrozenOMap(total_key(key), parts)
        case t.Bag():
            return FrozenBag(parts)
        case _:
            return tuple(parts)


def mutable_form(type_: t.Type, parts: Iterable[Any]) -> Value:
    """A mutable container of type `type_` from items, or pairs for maps; keys must be frozen and canonical."""
    match type_:
        case t.Map():
            return dict(parts)
        case t.OMap(key, _):
            return OMap(total_key(key), parts)
        case t.Bag():
            return Bag(parts)
        case t.Deque():
            return deque(parts)
        case _:
            return list(parts)


@cache
def thawer(type_: t.Type) -> Callable[[Value], Value]:
    """What makes the mutable form of a frozen container of type `type_`; its items are shared."""
    match type_:
        case t.Map():
            return dict
        case t.OMap(key, _):
            order = total_key(key)
            return lambda value: OMap(order, value.items())
        case t.Bag():
            return Bag
        case t.Deque():
            return deque
        case t.List() | t.Array():
            return list
        case _:
            raise TypeError(f"{type_} is not a container")


def thaw(type_: t.Type, value: Value) -> Value:
    """A mutable copy of a frozen container of type `type_`; its items are shared."""
    return thawer(type_)(value)


@cache
def freezer(type_: t.Type) -> Callable[[Value], Value] | None:
    """What makes values of `type_` deeply frozen, or None if they always are. Frozen values come back as they are."""
    if t.is_flat(type_):
        return None
    match type_:
        case t.Optional(inner):
            some = freezer(inner)
            return lambda value: value if value is None or some is None else some(value)
        case t.Record() | t.Tuple():
            return _record_freezer(
                tuple((i, f) for i, f in enumerate(map(freezer, t.parts(type_))) if f is not None)
            )
        case t.Map(_, item):
            return _map_freezer(freezer(item))
        case t.OMap(key, item):
            return _omap_freezer(total_key(key), freezer(item))
        case t.Bag():
            return lambda value: value if type(value) is FrozenBag else FrozenBag(value)
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            return _list_freezer(freezer(item))
        case _:
            raise TypeError(f"{type_} has no values")


def _list_freezer(item: Callable[[Value], Value] | None) -> Callable[[Value], Value]:
    if item is None:
        return lambda value: value if value.__class__ is tuple else tuple(value)
    return lambda value: value if value.__class__ is tuple else tuple(map(item, value))


def _map_freezer(item: Callable[[Value], Value] | None) -> Callable[[Value], Value]:
    if item is None:
        return lambda value: value if type(value) is FrozenMap else FrozenMap(value)
    return lambda value: (
        value if type(value) is FrozenMap else FrozenMap((k, item(v)) for k, v in value.items())
    )


def _omap_freezer(order: Order | None, item: Callable[[Value], Value] | None) -> Callable[[Value], Value]:
    def freeze(value: Value) -> Value:
        if type(value) is FrozenOMap:
            return value
        pairs = value.items()
        return FrozenOMap(order, pairs if item is None else ((k, item(v)) for k, v in pairs))

    return freeze


def _record_freezer(parts: tuple[tuple[int, Callable[[Value], Value]], ...]) -> Callable[[Value], Value]:
    def freeze(value: Value) -> Value:
        fields: list[Any] | None = None
        for i, part in parts:
            field = value[i]
            done = part(field)
            if done is not field:
                fields = fields or list(value)
                fields[i] = done
        return value if fields is None else tuple(fields)

    return freeze


@cache
def keyer(type_: t.Type) -> Callable[[Value], Value] | None:
    """What makes keys canonical: frozen, -0.0 made 0.0. None when every value of `type_` is."""
    if not t.contains(type_, t.F32, t.F64):
        return freezer(type_)
    match type_:
        case t.Primitive():
            return lambda value: value or 0.0
        case t.Optional(inner):
            some = keyer(inner)
            return lambda value: value if value is None or some is None else some(value)
        case t.Record() | t.Tuple():
            return _record_freezer(
                tuple((i, f) for i, f in enumerate(map(keyer, t.parts(type_))) if f is not None)
            )
        case t.List(item) | t.Array(item, _) | t.Deque(item):
            part = keyer(item)
            return lambda value: tuple(value if part is None else map(part, value))
        case _:
            raise TypeError(f"{type_} is not a key")
