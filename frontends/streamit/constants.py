"""The values of expressions that do not depend on the stream: one meaning, that of the operator language's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, assert_never

from frontends.streamit import typed as ty
from frontends.streamit.routines import is_routine, meaning
from river.il.trees import walk
from river.lang import types as t
from river.lang.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from frontends.streamit.typed import Expr, Type

Value = Any
"""A number, a boolean, a text, or an array or struct of values: a list while it may change, else a tuple."""

Act = Callable[["ty.Call | ty.Update | ty.Load", "Mapping[str, Value]"], Value]
"""What an expression comes to that does more than give a value, or asks more than variables."""


Code = Callable[["Mapping[str, Value]", Act], Value]
"""What gives the value of an expression, of the values of names, and of what says what has effects."""

OLD = "old#"
"""Among the values of names: what the place of an assignment held."""


def _nothing(expr: ty.Expr, _: Mapping[str, Value]) -> Value:
    raise LookupError(expr)


def scalar(type_: Type) -> t.Type:
    """The operator language's type of a scalar."""
    assert not isinstance(type_, ty.Vector | ty.Struct | ty.Portal)  # noqa: S101 - callers have these apart
    return t.I32 if type_ == ty.BIT else type_


def apply(operation: str, types: Sequence[Type], result: Type, values: Sequence[Value]) -> Value:
    """What the operation makes of values. Raises: values.TrapSignal."""
    return function(operation, tuple(types), result)(*values)


@lru_cache(maxsize=1024)
def function(operation: str, types: tuple[Type, ...], result: Type) -> Callable[..., Value]:
    """The meaning of an operation on these types."""
    if is_routine(operation):
        return meaning(operation)
    return OPERATIONS[operation].meaning(tuple(map(scalar, types)), scalar(result))


def zero(type_: Type, sizes: Mapping[str, Value] | None = None, act: Act = _nothing) -> Value:
    """Zero, false, or an array of such."""
    if isinstance(type_, ty.Vector):
        size = evaluate(type_.size, sizes or {}, act)
        if isinstance(type_.item, ty.Vector | ty.Struct):
            return [zero(type_.item, sizes, act) for _ in range(size)]
        return [zero(type_.item)] * size
    match type_:
        case ty.Struct(_, fields):
            return [zero(field, sizes, act) for _, field in fields]
        case ty.FLOAT | t.F64:
            return 0.0
        case ty.BOOLEAN:
            return False
        case ty.TEXT:
            return ""
        case _:
            return 0


def evaluate(expr: Expr, values: Mapping[str, Value], act: Act = _nothing) -> Value:
    """The value of an expression over parameters and locals, by name and key; `act` says what has effects.

    Raises: values.TrapSignal; IndexError outside of an array; LookupError for what has no value here.
    """
    return code(expr)(values, act)


def code(expr: Expr) -> Code:
    """What gives the value of an expression, again and again: it looks at the expression once."""
    match expr:
        case ty.Constant(_, value):
            return lambda _values, _act: value
        case ty.Local(_, name) | ty.Param(_, name):
            return lambda values, _act: values[name]
        case ty.Apply():
            return _applied(expr)
        case ty.Logic(_, operation, left, right):
            one, other, ends = code(left), code(right), operation == "or"
            return lambda values, act: first if (first := one(values, act)) == ends else other(values, act)
        case ty.Choose(_, cond, then, other):
            test, yes, no = code(cond), code(then), code(other)
            return lambda values, act: (yes if test(values, act) else no)(values, act)
        case ty.At(_, array, index):
            whole, place = code(array), code(index)
            return lambda values, act: item(whole(values, act), place(values, act))
        case ty.StructPart(_, value, index):
            whole = code(value)
            return lambda values, act: whole(values, act)[index]
        case ty.Display(_, items) | ty.Make(_, items):
            parts = [code(each) for each in items]
            return lambda values, act: [part(values, act) for part in parts]
        case ty.Size(_, array, depth):
            return _size(code(array), depth)
        case ty.Old():
            return lambda values, _act: values[OLD]
        case ty.Call() | ty.Update() | ty.Load():
            return lambda values, act: act(expr, values)
        case ty.Field() | ty.Peek() | ty.Pop() | ty.Function():
            return _missing
        case _:
            assert_never(expr)


def changing(expr: ty.Update) -> Code | None:
    """What runs an assignment of a number, again and again; None where it is no such, or its place is another.

    Raises: as `evaluate`.
    """
    place, operation, new = expr.place, expr.operation, code(expr.value)
    if isinstance(expr.type, ty.Vector | ty.Struct | ty.Portal) or is_routine(operation or ""):
        return None
    if any(isinstance(node, ty.Old) for node in walk(expr.value)):
        return None
    found = None if operation is None else function(operation, (place.type, expr.value.type), expr.type)
    match place:
        case ty.Local(_, key) | ty.Param(_, key):

            def of_name(values: Mapping[str, Value], act: Act) -> Value:
                assert isinstance(values, dict)  # noqa: S101 - assignments have names of their own
                before = None if found is None else values[key]
                value = new(values, act)
                values[key] = value = value if found is None else found(before, value)
                return before if expr.after else value

            return of_name
        case ty.At(_, array, index):
            whole, at = code(array), code(index)

            def of_item(values: Mapping[str, Value], act: Act) -> Value:
                target, where = whole(values, act), at(values, act)
                before, value = item(target, where), new(values, act)
                target[where] = value = value if found is None else found(before, value)
                return before if expr.after else value

            return of_item
        case _:
            return None


def _applied(expr: ty.Apply) -> Code:
    """What gives the value of an operation."""
    name, parts = expr.operation, [code(arg) for arg in expr.args]
    found = function(name, tuple(arg.type for arg in expr.args), expr.type)
    match parts:
        case (one, other):
            return lambda values, act: found(one(values, act), other(values, act))
        case _:
            return lambda values, act: found(*[part(values, act) for part in parts])


def _size(array: Code, depth: int) -> Code:
    """What gives the number of items of an array."""

    def size(values: Mapping[str, Value], act: Act) -> Value:
        found = array(values, act)
        for _ in range(depth):
            found = found[0] if found else ()
        return len(found)

    return size


def _missing(_values: Mapping[str, Value], _act: Act) -> Value:
    raise LookupError


def item(array: Sequence[Value], index: int) -> Value:
    """The item at an index that counts from the beginning."""
    if index < 0:
        raise IndexError
    return array[index]


def alike(left: Value, right: Value) -> bool:
    """Whether two arrays or structs have as many items everywhere."""
    if not isinstance(left, list | tuple):
        return True
    return len(left) == len(right) and all(map(alike, left, right))  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]


def frozen(value: Value) -> Value:
    """The value with tuples for lists."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]


def thawed(value: Value) -> Value:
    """A copy with lists for tuples."""
    return list(map(thawed, value)) if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
