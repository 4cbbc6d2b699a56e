"""Whole lists: sorting, functions of all items, sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.lang import types as t
from river.lang.operations.arithmetic import bounds
from river.lang.operations.compare import order_of
from river.lang.operations.effects import (
    CUTS,
    LISTS,
    LOOKS,
    UNORDERED,
    Borrows,
    Change,
    Order,
    is_exact,
    where_exact,
)  # fmt: skip
from river.lang.operations.operands import Rows, canonical, on_items
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
    is_float,
    is_integer,
    plain,
    strip,
)  # fmt: skip
from river.lang.values import (
    ZERO_SUM,
    TrapSignal,
    add_to_sum,
    freezer,
    single,
    sum_value,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from river.lang.operations.effects import Effect


def _sort(types: Types, _result: t.Type) -> Unary:
    assert isinstance(types[0], Rows)  # noqa: S101 - by the rule
    order = order_of(types[0].item)
    return lambda items: sorted(items, key=order)


def _sort_by(types: Types, _result: t.Type) -> Binary:
    function = types[1]
    assert isinstance(function, t.Function)  # noqa: S101 - by the rule
    order = order_of(function.result or t.UNIT)
    return lambda items, key: sorted(items, key=lambda item: order(key(item)))


def _left(types: Types) -> Effect:
    """Of equal items the first is taken out; which one shows where they are not the same, or where a function tells them."""
    exact = len(types) < 3 and is_exact(*types[:1])
    return evolve(LISTS if exact else CUTS, change=Change.SHRINKS, matches=True)


def _bag_minus(types: Types, _result: t.Type) -> Meaning:
    assert isinstance(types[0], t.List)  # noqa: S101 - by the rule
    by = types[-1]
    whole = canonical((by.result if isinstance(by, t.Function) else None) or types[0].item)

    def minus(
        items: Iterable[Any], others: Iterable[Any], told: Callable[[Any], Any] | None = None
    ) -> list[Any]:
        def key(item: Any) -> Any:
            return whole(item if told is None else told(item))

        items = list(items)
        if not items:
            return []
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
    found = alike(lambda type_: isinstance(type_, t.List), 2, fallback=None)(types[:2], wanted)
    if found is None or len(types) > 3:
        return None
    item = t.parts(found.result)[0]
    if len(types) < 3:
        return found if t.is_key(item) else None
    function = _function(types, 2)
    if types[2] is not None and (function is None or function.params != (item,)):
        return None
    given = None if function is None else function.result
    if given is not None and not t.is_key(given):
        return None
    return Signature((*found.params, t.Function((item,), given)), found.result)


def _function(types: Known, at: int) -> t.Function | None:
    """The operand at a position when it is a function whose result is known."""
    found = types[at]
    return found if isinstance(found, t.Function) else None


def _with_function(
    kinds: type | tuple[type, ...], wanted_result: t.Type | None, result: Callable[[t.Type, t.Type | None],
    t.Type],
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
    for item in items:  # noqa: SIM110 - keeps recursion off the C stack
        if function(item):
            return True
    return False


def _all(items: Iterable[Any], function: Callable[[Any], bool]) -> bool:
    for item in items:  # noqa: SIM110 - keeps recursion off the C stack
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


_ANY_LIST = (t.List, t.Array, t.Deque, t.Bag)

OPERATIONS: tuple[Operation, ...] = (
    Operation("sort", on_items(t.List, result="same"), _sort, "sorted by the total order; stable",
        effect=where_exact(evolve(LISTS, order=Order.IGNORES), LISTS)),
    Operation(
        "sort_by", _with_function(t.List, None, lambda container, _key: container, keeps=True), _sort_by,
        "sorted by the total order of keys; stable", effect=evolve(LISTS, sorts=True),
    ),
    Operation(
        "bag_minus", _bag_minus_rule, _bag_minus,
        "a without the first equal of each item of b, or of what c makes of both; keeps the order", effect=_left,
    ),
    Operation("map", _with_function((t.List, t.Array), None, _mapped), _map, "the function of each item",
        effect=evolve(LISTS, borrows=Borrows.NOTHING)),
    Operation("any", _with_function(_ANY_LIST, t.BOOL, lambda _c, _f: t.BOOL), plain(_any),
        "whether the function holds for an item", effect=UNORDERED),
    Operation("all", _with_function(_ANY_LIST, t.BOOL, lambda _c, _f: t.BOOL), plain(_all),
        "whether the function holds for every item", effect=UNORDERED),
    Operation("fold", _fold_rule, plain(_fold), "c(... c(c(b, first), second) ...)", effect=LOOKS),
    Operation("sum", _sum_rule, _sum,
        "the exact sum; floats are rounded once, whole numbers trap if it does not fit", _sum_traps,
        effect=UNORDERED),
)  # fmt: skip
