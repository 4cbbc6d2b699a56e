"""Containers (il.md 2.2). Meanings read both forms of a container; those that change one get the mutable form.

Keys and bag items are made canonical here; what is stored otherwise is owned already (evaluate).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from river.lang import types as t
from river.lang.operations import floats
from river.lang.operations.arithmetic import bounds
from river.lang.operations.compare import order_of
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
    is_integer,
    itself,
    nothing,
    optional,
    plain,
    strip,
)  # fmt: skip
from river.lang.values import (
    ZERO_SUM,
    Bag,
    FrozenBag,
    OMap,
    Sum,
    TrapSignal,
    add_to_sum,
    default,
    freezer,
    keyer,
    same,
    single,
    sum_value,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Rows = t.List | t.Array | t.Deque  # what is reached by position
Maps = t.Map | t.OMap


def _agree(wanted: t.Type, given: t.Type | None) -> bool:
    return given is None or given == wanted or optional(given) == wanted


def canonical(type_: t.Type) -> Callable[[Any], Any]:
    """`values.keyer` as a function."""
    return keyer(type_) or itself


# ---------------------------------------------------------------------------------------------- by position


def _on_items(kinds: type | tuple[type, ...], *more: t.Type | None, result: t.Type | Literal["same", "item"]) -> Rule:
    """A container of `kinds`, then operands (None: an item). The result: a type, that of the container, or of its items."""

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        container = types[0] if types else None
        if container is None and result == "same":
            container = strip(wanted)
        if container is None or not isinstance(container, kinds) or len(types) != 1 + len(more):
            return None
        item = t.parts(container)[0]
        params = tuple(item if p is None else p for p in more)
        if not all(map(_agree, params, types[1:])):
            return None
        found = container if result == "same" else item if result == "item" else result
        return Signature((container, *params), found)

    return rule


def _push(items: Any, item: Any) -> tuple[()]:
    items.append(item)
    return ()


def _popper(take: Callable[[Any], Any]) -> Unary:
    def pop(items: Any) -> Any:
        if not items:
            raise TrapSignal("remove-missing")
        return take(items)

    return pop


def _reader(index: int) -> Unary:
    def read(items: Any) -> Any:
        if not items:
            raise TrapSignal("remove-missing")
        return items[index]

    return read


def _set(types: Types, _result: t.Type) -> Meaning:
    if isinstance(types[0], Maps):
        key = canonical(types[0].key)

        def store(entries: Any, at: Any, value: Any) -> tuple[()]:
            entries[key(at)] = value
            return ()

        return store

    def put(items: Any, at: int, value: Any) -> tuple[()]:
        if not 0 <= at < len(items):
            raise TrapSignal("index-range", at, len(items))
        items[at] = value
        return ()

    return put


def _set_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item)) as container, at, given):
            key: t.Type = t.I64
        case ((t.Map(key, item) | t.OMap(key, item)) as container, at, given):
            pass
        case _:
            return None
    return Signature((container, key, item), t.UNIT) if _agree(key, at) and _agree(item, given) else None


def _set_traps(types: Types, _result: t.Type) -> tuple[str, ...]:
    return () if isinstance(types[0], Maps) else ("index-range",)


def _get_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item)) as container, at, *rest):
            key: t.Type = t.I64
        case ((t.Map(key, item) | t.OMap(key, item)) as container, at, *rest):
            pass
        case _:
            return None
    match rest:
        case [] if _agree(key, at):
            return Signature((container, key), optional(item))
        case [given] if _agree(key, at) and _agree(item, given):
            return Signature((container, key, item), item)
        case _:
            return None


def _get(types: Types, _result: t.Type) -> Meaning:
    if isinstance(types[0], Maps):
        key = keyer(types[0].key)

        def entry(entries: Any, at: Any, otherwise: Any = None) -> Any:
            return entries.get(at if key is None else key(at), otherwise)

        return entry

    def item(items: Any, at: int, otherwise: Any = None) -> Any:
        return items[at] if 0 <= at < len(items) else otherwise

    return item


def _slice_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    if len(types) != 3 or not all(a in (None, t.I64) for a in types[1:]):
        return None
    match types[0]:
        case t.List() | t.Primitive("string" | "bytes") as container:
            return Signature((container, t.I64, t.I64), container)
        case t.Array(item, _) | t.Deque(item) as container:
            return Signature((container, t.I64, t.I64), t.List(item))
        case _:
            return None


def _slice(types: Types, _result: t.Type) -> Meaning:
    is_deque = isinstance(types[0], t.Deque)

    def cut(items: Any, low: int, high: int) -> Any:
        length = len(items)
        if not 0 <= low <= length:
            raise TrapSignal("index-range", low, length)
        if not low <= high <= length:
            raise TrapSignal("index-range", high, length)
        if is_deque:
            return [*islice(items, low, high)]
        return items[low:high]

    return cut


def _limited(cut: Callable[[Any, int], Any]) -> Binary:
    return lambda items, count: cut(items, max(count, 0))


def _concat_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    hint = strip(wanted)
    known = [type_ for type_ in types if type_ is not None] or ([hint] if hint is not None else [])
    if len(types) != 2 or not known or any(type_ != known[0] for type_ in known):
        return None
    match known[0]:
        case t.List() | t.Primitive("string" | "bytes") as type_:
            return Signature((type_, type_), type_)
        case _:
            return None


def _concat(types: Types, _result: t.Type) -> Binary:
    if isinstance(types[0], t.List):
        return lambda a, b: [*a, *b]
    return lambda a, b: a + b


def _reverse(types: Types, _result: t.Type) -> Unary:
    if isinstance(types[0], t.Primitive):
        return lambda text: text[::-1]
    return lambda items: list(reversed(items))


def _reverse_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List() | t.Primitive("string")) as type_,):
            return Signature((type_,), type_)
        case (None,) if isinstance(hint := strip(wanted), t.List):
            return Signature((hint,), hint)
        case _:
            return None


def _fill_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match strip(wanted), types:
        case t.Array(item, _) as target, (given,) if _agree(item, given):
            return Signature((item,), target)
        case t.Array(item, _) as target, (given, None | t.I64) if _agree(item, given):
            return Signature((item, t.I64), target)
        case t.List(item) as target, (given, None | t.I64) if _agree(item, given):
            return Signature((item, t.I64), target)
        case _, (given, None | t.I64) if given is not None:
            return Signature((given, t.I64), t.List(given))
        case _:
            return None


def _fill(types: Types, result: t.Type) -> Meaning:
    freeze = freezer(types[0]) or itself  # the items must not share a mutable value
    if not isinstance(result, t.Array):

        def repeat(value: Any, count: int) -> list[Any]:
            return [freeze(value)] * count

        return repeat
    size = result.size

    def fill(value: Any, count: int = size) -> list[Any]:
        if count != size:
            raise TrapSignal("index-range", count, size)
        return [freeze(value)] * size

    return fill


def _fill_traps(types: Types, result: t.Type) -> tuple[str, ...]:
    return ("index-range",) if isinstance(result, t.Array) and len(types) == 2 else ()


def _contains_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.STRING | None, t.STRING | None):
            return Signature((t.STRING, t.STRING), t.BOOL)
        case ((t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item)) as container, given) if _agree(
            item, given
        ):
            return Signature((container, item), t.BOOL)
        case ((t.Map(key, _) | t.OMap(key, _)) as container, given) if _agree(key, given):
            return Signature((container, key), t.BOOL)
        case _:
            return None


def _contains(types: Types, _result: t.Type) -> Binary:
    match types[0]:
        case t.Map(key, _) | t.OMap(key, _) | t.Bag(key):
            convert = keyer(key)
            if convert is None:
                return lambda items, item: item in items
            return lambda items, item: convert(item) in items
        case t.Primitive():
            return lambda text, part: part in text
        case _:
            equal = same(types[1])
            return lambda items, item: any(equal(each, item) for each in items)


def _has_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    return _contains_rule(types, wanted) if types and isinstance(types[0], Maps | t.Bag) else None


def _index_of(types: Types, _result: t.Type) -> Binary:
    equal = same(types[1])
    return lambda items, item: next((i for i, each in enumerate(items) if equal(each, item)), -1)


# ---------------------------------------------------------------------------------------------- whole lists


def _sort(types: Types, _result: t.Type) -> Unary:
    assert isinstance(types[0], Rows)
    order = order_of(types[0].item)
    return lambda items: sorted(items, key=order)


def _sort_by(types: Types, _result: t.Type) -> Binary:
    function = types[1]
    assert isinstance(function, t.Function) and function.result is not None
    order = order_of(function.result)
    return lambda items, key: sorted(items, key=lambda item: order(key(item)))


def _bag_minus(types: Types, _result: t.Type) -> Meaning:
    assert isinstance(types[0], t.List)
    key = canonical(types[0].item)

    def minus(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
        left: dict[Any, int] = {}
        for other in others:
            other_key = key(other)
            left[other_key] = left.get(other_key, 0) + 1
        kept: list[Any] = []
        for item in items:
            count = left.get(key(item), 0)
            if count:
                left[key(item)] = count - 1
            else:
                kept.append(item)
        return kept

    return minus


def _bag_minus_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    found = alike(lambda type_: isinstance(type_, t.List), 2, fallback=None)(types, wanted)
    return found if found is not None and t.is_key(t.parts(found.result)[0]) else None


def _function(types: Known, at: int) -> t.Function | None:
    """The operand at a position when it is a function whose result is known."""
    found = types[at]
    return found if isinstance(found, t.Function) else None


def _with_function(
    kinds: type | tuple[type, ...], wanted_result: t.Type | None, result: Callable[[t.Type, t.Type | None], t.Type],
    *, keeps: bool = False,
) -> Rule:  # fmt: skip
    """A container and a function on its items; `result` of the container and the function's result (None: not known yet).

    `keeps`: the result has the container's type.
    """

    def rule(types: Known, wanted: t.Type | None) -> Signature | None:
        if len(types) != 2:
            return None
        container, found = types[0] or (strip(wanted) if keeps else None), _function(types, 1)
        if container is None or not isinstance(container, kinds):
            return None
        if types[1] is not None and found is None:
            return None
        given = None if found is None else found.result
        if given is not None and wanted_result is not None and given != wanted_result:
            return None
        function = t.Function((t.parts(container)[0],), given or wanted_result)
        return Signature((container, function), result(container, function.result))

    return rule


def _mapped(container: t.Type, result: t.Type | None) -> t.Type:
    item = result or t.parts(container)[0]
    return t.Array(item, container.size) if isinstance(container, t.Array) else t.List(item)


def _map(_types: Types, result: t.Type) -> Binary:
    freeze = freezer(t.parts(result)[0])  # what the function gives may be a part of something
    if freeze is None:
        return lambda items, function: [function(item) for item in items]
    return lambda items, function: [freeze(function(item)) for item in items]


def _any(items: Iterable[Any], function: Callable[[Any], bool]) -> bool:
    for item in items:
        if function(item):
            return True
    return False


def _all(items: Iterable[Any], function: Callable[[Any], bool]) -> bool:
    for item in items:
        if not function(item):
            return False
    return True


def _fold(items: Iterable[Any], start: Any, function: Callable[[Any, Any], Any]) -> Any:
    for item in items:
        start = function(start, item)
    return start


def _fold_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    if len(types) != 3 or not isinstance(types[0], Rows | t.Bag):
        return None
    item = t.parts(types[0])[0]
    found = _function(types, 2)
    if types[2] is not None and found is None:
        return None
    start = (
        types[1]
        or wanted
        or (item if is_integer(item) or is_float(item) or isinstance(item, t.Decimal) else t.I64)
    )
    if found is not None and found.result != start:
        return None
    return Signature((types[0], start, t.Function((start, item), start)), start)


def _sum_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item)) as container,) if (
            is_integer(item) or is_float(item) or isinstance(item, t.Decimal) or item == t.DURATION
        ):
            return Signature((container,), item)
        case _:
            return None


def _sum(_types: Types, result: t.Type) -> Unary:
    if is_float(result):

        def exact(items: Iterable[float]) -> float:
            total = ZERO_SUM
            for item in items:
                total = add_to_sum(total, item)
            return sum_value(total) if result == t.F64 else single(sum_value(total))

        return exact
    low, high, code = bounds(result)

    def add(items: Iterable[int]) -> int:
        total = sum(items)
        if low <= total <= high:
            return total
        raise TrapSignal(code, total)

    return add


def _sum_traps(_types: Types, result: t.Type) -> tuple[str, ...]:
    if is_float(result):
        return ()
    return ("decimal-precision",) if isinstance(result, t.Decimal) else ("overflow",)


# ---------------------------------------------------------------------------------------------- maps and bags


def _key_rule(kinds: type | tuple[type, ...], result: t.Type | None) -> Rule:
    """A container by key, and a key; the result, or an optional key."""

    def rule(types: Known, _wanted: t.Type | None) -> Signature | None:
        container = types[0] if len(types) == 2 else None
        if container is None or not isinstance(container, kinds):
            return None
        key = t.parts(container)[0]
        return (
            Signature((container, key), optional(key) if result is None else result)
            if _agree(key, types[1])
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
        case (t.OMap(key, _) as container, low, high) if _agree(key, low) and _agree(key, high):
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


def _has_length(type_: t.Type) -> bool:
    return t.is_container(type_) or type_ in (t.STRING, t.BYTES)


def _to_list_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item)) as container,):
            return Signature((container,), t.List(item))
        case _:
            return None


# ---------------------------------------------------------------------------------------------- optionals


def _force(value: Any) -> Any:
    if value is None:
        raise TrapSignal("optional-empty")
    return value


def _force_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    type_ = types[0] if len(types) == 1 else None
    if type_ is None and len(types) == 1 and wanted is not None:
        type_ = optional(wanted)
    return Signature((type_,), type_.inner) if isinstance(type_, t.Optional) else None


def _coalesce_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    if len(types) != 2:
        return None
    first = types[0] or (
        optional(types[1]) if types[1] is not None else None if wanted is None else optional(wanted)
    )
    if not isinstance(first, t.Optional):
        return None
    if types[1] == first:
        return Signature((first, first), first)
    return Signature((first, first.inner), first.inner) if _agree(first.inner, types[1]) else None


def _coalesce(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _zero(_types: Types, result: t.Type) -> Meaning:
    value = default(result)
    return lambda: value


def _has_zero(type_: t.Type) -> bool:
    return not t.contains(type_, t.Function)


_LISTS = (t.List, t.Array, t.Deque)
_ANY_LIST = (*_LISTS, t.Bag)
_MAPS = (t.Map, t.OMap)

OPERATIONS: tuple[Operation, ...] = (
    Operation("len", from_any(_has_length, t.I64, t.UNIT), plain(len), "how many items, entries, code points or bytes", native="inline"),
    # ---- lists, arrays, deques
    Operation("push", _on_items(t.List, None, result=t.UNIT), plain(_push), "adds an item at the end", mutates="container"),
    Operation(
        "pop", _on_items(t.List, result="item"), plain(_popper(lambda items: items.pop())),
        "removes and returns the last item; traps if there is none", ("remove-missing",), mutates="container",
    ),
    Operation(
        "set", _set_rule, _set, "stores an item at an index (traps outside) or an entry at a key", _set_traps, mutates="container"
    ),
    Operation("get", _get_rule, _get, "the item at an index, or the value of a key; otherwise none, or c", borrows=True),
    Operation("slice", _slice_rule, _slice, "the items from b to c, c excluded; traps outside", ("index-range",), borrows=True, fresh=True),
    Operation("take", _on_items(t.List, t.I64, result="same"), plain(_limited(lambda items, n: items[:n])),
              "the first b items, or all", borrows=True, fresh=True),
    Operation("drop_first", _on_items(t.List, t.I64, result="same"), plain(_limited(lambda items, n: items[n:])),
              "all but the first b items", borrows=True, fresh=True),
    Operation("fill", _fill_rule, _fill, "a list of b times a; an array of the size wanted", _fill_traps),
    Operation("concat", _concat_rule, _concat, "a, then b", borrows=True, fresh=True),
    Operation("reverse", _reverse_rule, _reverse, "last first", borrows=True, fresh=True),
    Operation("contains", _contains_rule, _contains, "whether b is an item, a key, or a part of the string"),
    Operation("index_of", _on_items(_LISTS, None, result=t.I64), _index_of, "the index of the first item equal to b, or -1"),
    Operation("sort", _on_items(t.List, result="same"), _sort, "sorted by the total order; stable", borrows=True, fresh=True),
    Operation(
        "sort_by", _with_function(t.List, None, lambda container, _key: container, keeps=True), _sort_by,
        "sorted by the total order of keys; stable", borrows=True, fresh=True,
    ),
    Operation(
        "bag_minus", _bag_minus_rule, _bag_minus, "a without the first equal of each item of b; keeps the order",
        borrows=True, fresh=True,
    ),
    Operation("map", _with_function((t.List, t.Array), None, _mapped), _map, "the function of each item"),
    Operation("any", _with_function(_ANY_LIST, t.BOOL, lambda _c, _f: t.BOOL), plain(_any), "whether the function holds for an item"),
    Operation("all", _with_function(_ANY_LIST, t.BOOL, lambda _c, _f: t.BOOL), plain(_all), "whether the function holds for every item"),
    Operation("fold", _fold_rule, plain(_fold), "c(... c(c(b, first), second) ...)", borrows=True),
    Operation("sum", _sum_rule, _sum, "the exact sum; floats are rounded once, whole numbers trap if it does not fit", _sum_traps),
    Operation("to_list", _to_list_rule, plain(list), "the items in order", borrows=True, fresh=True),
    Operation("push_back", _on_items(t.Deque, None, result=t.UNIT), plain(_push), "adds an item at the back", mutates="container"),
    Operation(
        "pop_front", _on_items(t.Deque, result="item"), plain(_popper(lambda items: items.popleft())),
        "removes and returns the item at the front; traps if there is none", ("remove-missing",), mutates="container",
    ),
    Operation(
        "pop_back", _on_items(t.Deque, result="item"), plain(_popper(lambda items: items.pop())),
        "removes and returns the item at the back; traps if there is none", ("remove-missing",), mutates="container",
    ),
    Operation("front", _on_items(t.Deque, result="item"), plain(_reader(0)), "the item at the front; traps if there is none",
              ("remove-missing",), borrows=True),
    Operation("back", _on_items(t.Deque, result="item"), plain(_reader(-1)), "the item at the back; traps if there is none",
              ("remove-missing",), borrows=True),
    # ---- maps
    Operation("has", _has_rule, _contains, "whether there is such a key or item"),
    Operation("delete", _key_rule(_MAPS, t.BOOL), _delete, "removes the entry of a key; whether there was one", mutates="container"),
    Operation("keys", _map_rule(_MAPS, lambda key, _value: t.List(key)), plain(_keys), "the keys, in order"),
    Operation("values", _map_rule(_MAPS, lambda _key, value: t.List(value)), plain(_values), "the values, in the order of the keys",
              borrows=True, fresh=True),
    Operation("first_key", _map_rule(t.OMap, lambda key, _value: optional(key)), plain(_first), "the smallest key, or none"),
    Operation("last_key", _map_rule(t.OMap, lambda key, _value: optional(key)), plain(_last), "the greatest key, or none"),
    Operation(
        "floor", first_of(_key_rule(t.OMap, None), alike(is_float, 1, fallback=t.F64)), _floor_or(floats.floor, OMap.floor),
        "a float rounded down; the greatest key of an omap at most b, or none", native="inline",
    ),
    Operation(
        "ceil", first_of(_key_rule(t.OMap, None), alike(is_float, 1, fallback=t.F64)), _floor_or(floats.ceil, OMap.ceil),
        "a float rounded up; the smallest key of an omap at least b, or none", native="inline",
    ),
    Operation("range", _between_rule, _between, "the keys of an omap from b to c, c excluded"),
    Operation("clear", from_any(t.is_container, t.UNIT, t.UNIT), _clear, "makes it empty (an array: zeros)", mutates="value"),
    # ---- bags, sums
    Operation("add", first_of(_on_items(t.Bag, None, result=t.UNIT), number), _add, "adds an item to a bag, a number to an exact sum",
              mutates="value"),
    Operation(
        "remove", _key_rule(t.Bag, t.UNIT), _remove, "removes the oldest item equal to b; traps if there is none",
        ("remove-missing",), mutates="container",
    ),
    Operation("count", _key_rule(t.Bag, t.I64), _count, "how many items are equal to b"),
    # ---- optionals
    Operation("force", _force_rule, plain(_force), "the value; traps if there is none", ("optional-empty",), "inline", borrows=True),
    Operation("coalesce", _coalesce_rule, plain(_coalesce), "a, or b if a is none", native="inline", borrows=True),
    Operation("zero", nothing(_has_zero, None), _zero,
              "0, empty or none, by the type wanted", native="inline"),
)  # fmt: skip
