"""Each library operation that is compiled, on each type it takes here, gives what the evaluator gives, traps included."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from backends.native.lower.batches import Lowered, lower
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator
from river.lang.operations import OPERATIONS
from river.testing.value_strategies import values_of

SCALARS = (
    t.BOOL,
    t.I32,
    t.I64,
    t.U64,
    t.I128,
    t.F32,
    t.F64,
    t.STRING,
    t.BYTES,
    t.TIME,
    t.DURATION,
    t.Decimal(9, 2),
)
ONE = (*SCALARS, t.Optional(t.BOOL), t.Optional(t.F64), t.List(t.STRING), t.List(t.F64), t.List(t.I32), t.Deque(t.I64),
       t.Map(t.F64, t.STRING), t.OMap(t.F64, t.I64), t.Bag(t.STRING), t.Array(t.I64, 3), t.Record((("a", t.F64),)),
       t.FSUM)  # fmt: skip
TWO = (*((a, a) for a in ONE), *((a, t.I64) for a in ONE), (t.TIME, t.DURATION), (t.DURATION, t.TIME),
       (t.Decimal(9, 2), t.Decimal(5, 4)), (t.List(t.STRING), t.STRING), (t.List(t.F64), t.F64),
       (t.Map(t.F64, t.STRING), t.F64), (t.OMap(t.F64, t.I64), t.F64), (t.Bag(t.STRING), t.STRING),
       (t.Optional(t.F64), t.F64))  # fmt: skip
THREE = ((t.I64, t.I64, t.I64), (t.STRING, t.I64, t.I64), (t.STRING, t.STRING, t.I64), (t.BYTES, t.I64, t.I64),
         (t.List(t.STRING), t.I64, t.I64), (t.List(t.STRING), t.I64, t.STRING))  # fmt: skip
NOT_YET = {
    "decode", "from_code_points", "lower", "parse_decimal", "parse_f32", "parse_f64",
    "parse_i128", "parse_time", "re_find", "re_replace", "re_strs", "re_test", "regex", "replace", "rescale",
    "sqlmax", "sqlmin", "to_decimal", "upper", "code_points", "range", "fill",
}  # fmt: skip


def handler(name: str, args: tuple[t.Type, ...]) -> tuple[t.Type, typed.Apply] | None:
    """The type of the item and the operation on its fields, if the operation takes them."""
    signature = OPERATIONS[name].rule(args, None)
    if signature is None or signature.params != args:
        return None
    item = t.Tuple(args)
    fields = tuple(typed.Get(arg, typed.Local(item, 0, "x"), i, str(i)) for i, arg in enumerate(args))
    return item, typed.Apply(signature.result, name, fields, 0)


def operator(item: t.Type, apply: typed.Apply) -> typed.Operator:
    """An operator that sends what the operation makes of its item."""
    return typed.Operator(
        "operation", (typed.Port("x", item, None),), (), (typed.Out("y", apply.type, None, None),), (), (),
        (typed.Site(()),), items=(typed.ItemHandler(0, 1, typed.Block((typed.Emit(0, apply),))),),
    )  # fmt: skip


@cache
def operators() -> dict[tuple[str, tuple[t.Type, ...]], typed.Operator]:
    """By operation and types: the operators that are compiled."""
    found: dict[tuple[str, tuple[t.Type, ...]], typed.Operator] = {}
    for name, operation in sorted(OPERATIONS.items()):
        if operation.mutates is not None or name in NOT_YET:
            continue
        for args in ((), *((a,) for a in ONE), *TWO, *THREE):
            made = handler(name, args)
            if made is not None and isinstance(lower(op := operator(*made), "x86_64"), Lowered):
                found[name, args] = op
    return found


@cache
def compiled(name: str, args: tuple[t.Type, ...]) -> NativeOperator:
    native = compile_native(operators()[name, args])
    assert isinstance(native, NativeOperator), native
    return native


def test_all_others_are_compiled_for_some_type() -> None:
    functions = {"any", "all", "fold", "map", "sort_by"}
    plain = {name for name, operation in OPERATIONS.items() if operation.mutates is None}
    assert plain - {name for name, _ in operators()} - functions - NOT_YET <= {
        "zero"
    }  # which needs a type wanted


@settings(max_examples=150)
@given(st.data())
def test_operations_give_what_the_evaluator_gives(data: st.DataObject) -> None:
    name, args = data.draw(st.sampled_from(sorted(operators(), key=str)))
    op, native = operators()[name, args], compiled(name, args)
    values = data.draw(st.lists(values_of(op.ports[0].type), min_size=1, max_size=4))
    fire = compile_operator(op).item[0]
    assert fire is not None
    for value in values:
        outs: list[list[Any]] = [[]]
        try:
            fire([], value, outs)
            trap = None
        except Trap as trapped:
            trap = trapped.code
        found, fired = native.fire_batch([[value]])
        assert (fired.trap.code if fired.trap else None) == trap, (name, value)
        assert repr(list(found)) == repr(outs), (name, value)
