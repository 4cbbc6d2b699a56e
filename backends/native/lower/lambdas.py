"""Operations that are given a function, and sorting. The function: code for its body, from values of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import item, list_parts
from backends.native.layout import memory, size_align
from backends.native.lower.lists import Told, collected, minus, put_item
from backends.native.lower.loops import each_item, number_loop
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]
    Function = Callable[..., Value]


def _mapped(f: Frame, expr: typed.Apply, values: Sequence[Value], function: Function) -> Value:
    b, inner = f.b, t.parts(expr.type)[0]
    at, count = f.extent(values[0])
    if isinstance(expr.type, t.Array):
        slot = f.empty(expr.type)
        number_loop(f, "0", count, lambda i: put_item(f, function(at(i)), item(b, inner, slot, i)), None)
        return Memory(expr.type, slot)
    return collected(f, expr.type, count, lambda i: function(at(i)))


def _any(f: Frame, expr: typed.Apply, values: Sequence[Value], function: Function) -> Value:
    b, wanted = f.b, expr.operation == "any"
    result, after = b.slot("i1"), b.fresh("decided")
    b.do(f"store i1 {'false' if wanted else 'true'}, ptr {result}")

    def test(one: Value) -> None:
        held = f.reg(function(one))
        yes, on = b.fresh("yes"), b.fresh("on")
        b.branch(held, *((yes, on) if wanted else (on, yes)))
        b.at(yes)
        b.do(f"store i1 {'true' if wanted else 'false'}, ptr {result}")
        b.go(after)
        b.at(on)

    each_item(f, values[0], test)
    b.at(after)
    return Scalar(t.BOOL, b.op(f"load i1, ptr {result}"))


def _fold(f: Frame, expr: typed.Apply, values: Sequence[Value], function: Function) -> Value:
    b, type_ = f.b, expr.type
    slot = b.slot(memory(type_))
    f.put(f.owned(values[1]), slot)

    def step(one: Value) -> None:
        so_far = f.load(type_, slot)
        f.put(f.owned(function(so_far, one)), slot)

    each_item(f, values[0], step)
    return f.load(type_, slot)


def _sort(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return _sorted(f, expr, values, t.parts(expr.type)[0], lambda one: one)


def _sort_by(f: Frame, expr: typed.Apply, values: Sequence[Value], function: Function) -> Value:
    by = expr.args[-1]
    assert isinstance(by, typed.Lambda)  # noqa: S101 - by the rule
    return _sorted(f, expr, values, by.body.type, function)


def _sorted(
    f: Frame, expr: typed.Apply, values: Sequence[Value], key: t.Type, function: Callable[[Value], Value]
) -> Value:
    """The numbers of the items are sorted by keys computed first, in order."""
    b = f.b
    at, count = f.extent(values[0])
    keys = collected(f, t.List(key), count, lambda i: function(at(i)))
    first, _ = list_parts(b, f.ptr(keys))
    name = f.module.sort_function(key)
    order = b.call(
        "ptr", name, [f"ptr {TEMPORARY}", f"ptr {first}", f"i64 {size_align(key)[0]}", f"i64 {count}"]
    )
    return collected(
        f,
        expr.type,
        count,
        lambda i: at(b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {order}, i64 {i}')}")),
    )


def _bag_minus(f: Frame, expr: typed.Apply, values: Sequence[Value], function: Function) -> Value:
    return minus(f, expr, values, told(expr, function))


def told(expr: typed.Apply, function: Function) -> Told:
    """By what a `bag_minus` with a function tells items: by a field, which has a name, or by something else."""
    by = expr.args[-1]
    assert isinstance(by, typed.Lambda)  # noqa: S101 - by the rule
    match by:
        case typed.Lambda(_, (slot,), _, typed.Get(_, typed.Local(_, used), index)) if slot == used:
            return Told(by.body.type, function, index)
        case _:
            return Told(by.body.type, function, object())


RULES: Final[dict[str, Rule]] = {"sort": _sort}

WITH_FUNCTION: Final[dict[str, Callable[[Frame, typed.Apply, Sequence[Value], Function], Value]]] = {
    "sort_by": _sort_by,
    "bag_minus": _bag_minus,
    "map": _mapped,
    "any": _any,
    "all": _any,
    "fold": _fold,
}
