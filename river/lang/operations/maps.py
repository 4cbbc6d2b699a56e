"""Maps and bags (il.md 2.2). Keys and items of bags are made canonical here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.lang import types as t
from river.lang.operations import floats
from river.lang.operations.effects import (
    APPENDS,
    BOUNDS,
    EMPTIES,
    LISTS,
    PURE,
    TAKES,
    UNORDERED,
    Borrows,
    Neutral,
    by_kind,
    combining,
    of_entry,
)
from river.lang.operations.operands import Maps, agree, canonical, on_items
from river.lang.operations.sums import number
from river.lang.operations.table import (
    Binary,
    Known,
    Meaning,
    Operation,
    Rule,
    Signature,
    Types,
    Unary,
    alike,
    first_of,
    from_any,
    is_float,
    optional,
    plain,
)  # fmt: skip
from river.lang.values import (
    Bag,
    FrozenBag,
    OMap,
    Sum,
    TrapSignal,
    add_to_sum,
    default,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

from river.lang.operations.sequences import contains, contains_rule


def _has_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    return contains_rule(types, wanted) if types and isinstance(types[0], Maps | t.Bag) else None


def _key_rule(kinds: type | tuple[type, ...], result: t.Type | None) -> Rule:
    """A container by key, and a key; the result, or an optional key."""

    def rule(types: Known, _wanted: t.Type | None) -> Signature | None:
        container = types[0] if len(types) == 2 else None
        if container is None or not isinstance(container, kinds):
            return None
        key = t.parts(container)[0]
        return (
            Signature((container, key), optional(key) if result is None else result)
            if agree(key, types[1])
            else None
        )

    return rule


def _map_rule(kinds: type | tuple[type, ...], result: Callable[[t.Type, t.Type], t.Type]) -> Rule:
    def rule(types: Known, _wanted: t.Type | None) -> Signature | None:
        match types:
            case ((t.Map(key, value) | t.OMap(key, value)) as container,) if isinstance(container, kinds):
                return Signature((container,), result(key, value))
            case _:
                return None

    return rule


def _delete(types: Types, _result: t.Type) -> Binary:
    key = canonical(t.parts(types[0])[0])

    def delete(entries: Any, at: Any) -> bool:
        at = key(at)
        if at not in entries:
            return False
        del entries[at]
        return True

    return delete


def _search(find: Callable[[OMap, Any], Any]) -> Callable[[Types, t.Type], Meaning]:
    def meaning(types: Types, _result: t.Type) -> Binary:
        key = canonical(t.parts(types[0])[0])
        return lambda entries, at: find(entries, key(at))

    return meaning


def _floor_or(
    rounding: Callable[[float], float], find: Callable[[OMap, Any], Any]
) -> Callable[[Types, t.Type], Meaning]:
    """Rounding of floats, or a search in an ordered map."""

    def meaning(types: Types, result: t.Type) -> Meaning:
        if is_float(types[0]):
            return floats.on(rounding)(types, result)
        return _search(find)(types, result)

    return meaning


def _between(types: Types, _result: t.Type) -> Meaning:
    key = canonical(t.parts(types[0])[0])

    def between(entries: OMap, low: Any, high: Any) -> list[Any]:
        return entries.between(key(low), key(high))

    return between


def _between_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.OMap(key, _) as container, low, high) if agree(key, low) and agree(key, high):
            return Signature((container, key, key), t.List(key))
        case _:
            return None


def _keys(entries: Any) -> list[Any]:
    return list(entries.keys())


def _values(entries: Any) -> list[Any]:
    return list(entries.values())


def _first(entries: OMap) -> Any:
    return entries.first() if len(entries) else None


def _last(entries: OMap) -> Any:
    return entries.last() if len(entries) else None


def _kept_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.OMap() as container, count) if agree(t.I64, count):
            return Signature((container, t.I64), t.UNIT)
        case _:
            return None


def _kept(end: Callable[[OMap], Any]) -> Callable[[Types, t.Type], Meaning]:
    """Takes entries out at an end."""

    def keep(entries: OMap, count: int) -> tuple[()]:
        while len(entries) > max(count, 0):
            del entries[end(entries)]
        return ()

    return plain(keep)


def _clear(types: Types, _result: t.Type) -> Unary:
    empty = default(types[0])
    return lambda _old: (empty, ())


def _add(types: Types, _result: t.Type) -> Meaning:
    match types[0]:
        case t.Bag(item):
            key = canonical(item)

            def insert(bag: Bag | FrozenBag, value: Any) -> tuple[Bag, tuple[()]]:
                changed = Bag(bag) if isinstance(bag, FrozenBag) else bag
                changed.add(key(value))
                return changed, ()

            return insert
        case _:

            def increase(total: Sum, value: float) -> tuple[Sum, tuple[()]]:
                return add_to_sum(total, value), ()

            return increase


def _remove(types: Types, _result: t.Type) -> Binary:
    key = canonical(t.parts(types[0])[0])

    def remove(bag: Bag, item: Any) -> tuple[()]:
        try:
            bag.remove(key(item))
        except KeyError:
            raise TrapSignal("remove-missing", item) from None
        return ()

    return remove


def _count(types: Types, _result: t.Type) -> Binary:
    key = canonical(t.parts(types[0])[0])
    return lambda bag, item: bag.count(key(item))


_MAPS = (t.Map, t.OMap)

OPERATIONS: tuple[Operation, ...] = (
    Operation("has", _has_rule, contains, "whether there is such a key or item", effect=of_entry(PURE)),
    Operation("delete", _key_rule(_MAPS, t.BOOL), _delete,
        "removes the entry of a key; whether there was one", mutates="container", effect=of_entry(TAKES)),
    Operation("keys", _map_rule(_MAPS, lambda key, _value: t.List(key)), plain(_keys), "the keys, in order",
        effect=evolve(LISTS, borrows=Borrows.NOTHING)),
    Operation("values", _map_rule(_MAPS, lambda _key, value: t.List(value)), plain(_values),
        "the values, in the order of the keys", effect=LISTS),
    Operation("first_key", _map_rule(t.OMap, lambda key, _value: optional(key)), plain(_first),
        "the smallest key, or none", effect=UNORDERED),
    Operation("last_key", _map_rule(t.OMap, lambda key, _value: optional(key)), plain(_last),
        "the greatest key, or none", effect=UNORDERED),
    Operation(
        "floor", first_of(_key_rule(t.OMap, None), alike(is_float, 1, fallback=t.F64)),
        _floor_or(floats.floor, OMap.floor),
        "a float rounded down; the greatest key of an omap at most b, or none", native="inline",
        effect=UNORDERED,
    ),
    Operation(
        "ceil", first_of(_key_rule(t.OMap, None), alike(is_float, 1, fallback=t.F64)), _floor_or(floats.ceil,
        OMap.ceil),
        "a float rounded up; the smallest key of an omap at least b, or none", native="inline",
        effect=UNORDERED,
    ),
    Operation("range", _between_rule, _between, "the keys of an omap from b to c, c excluded",
        effect=UNORDERED),
    Operation("keep_first", _kept_rule, _kept(OMap.last),
        "takes out the entries of the greatest keys until at most b are left", mutates="container", effect=BOUNDS),
    Operation("keep_last", _kept_rule, _kept(OMap.first),
        "takes out the entries of the smallest keys until at most b are left", mutates="container",
        effect=BOUNDS),
    Operation("clear", from_any(t.is_container, t.UNIT, t.UNIT), _clear, "makes it empty (an array: zeros)",
        mutates="value", effect=EMPTIES),
    Operation("add", first_of(on_items(t.Bag, None, result=t.UNIT), number), _add,
        "adds an item to a bag, a number to an exact sum",
              mutates="value", effect=by_kind(t.Bag, evolve(APPENDS, combines="add"), combining("sum", Neutral.ZERO))),
    Operation(
        "remove", _key_rule(t.Bag, t.UNIT), _remove,
        "removes the oldest item equal to b; traps if there is none",
        ("remove-missing",), mutates="container", effect=of_entry(TAKES),
    ),
    Operation("count", _key_rule(t.Bag, t.I64), _count, "how many items are equal to b",
        effect=of_entry(PURE)),
)  # fmt: skip
