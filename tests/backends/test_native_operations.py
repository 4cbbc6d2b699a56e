"""Each library operation that is compiled, on each type it takes here, gives what the evaluator gives, traps included."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native
from river.lang import typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator
from river.lang.operations import OPERATIONS
from river.testing.value_strategies import values_of

SCALARS = (t.BOOL, t.I32, t.I64, t.U64, t.I128, t.F32, t.F64, t.STRING, t.BYTES, t.TIME, t.DURATION, t.Decimal(9, 2))
ONE = (*SCALARS, t.Optional(t.BOOL), t.Optional(t.F64), t.List(t.STRING), t.List(t.F64), t.List(t.I32), t.Deque(t.I64),
       t.Map(t.F64, t.STRING), t.OMap(t.F64, t.I64), t.Bag(t.STRING), t.Array(t.I64, 3), t.Record((("a", t.F64),)),
       t.FSUM)  # fmt: skip
TWO = (*((a, a) for a in ONE), *((a, t.I64) for a in ONE), (t.TIME, t.DURATION), (t.DURATION, t.TIME),
       (t.Decimal(9, 2), t.Decimal(5, 4)), (t.List(t.STRING), t.STRING), (t.List(t.F64), t.F64),
       (t.Map(t.F64, t.STRING), t.F64), (t.OMap(t.F64, t.I64), t.F64), (t.Bag(t.STRING), t.STRING),
       (t.Optional(t.F64), t.F64))  # fmt: skip
THREE = ((t.I64, t.I64, t.I64), (t.STRING, t.I64, t.I64), (t.STRING, t.STRING, t.I64), (t.BYTES, t.I64, t.I64),
         (t.List(t.STRING), t.I64, t.I64), (t.List(t.STRING), t.I64, t.STRING))  # fmt: skip
PORTS = 24  # of an operator
NOT_YET = {
    "decode", "encode", "from_code_points", "join", "lower", "parse_bool", "parse_decimal", "parse_f32", "parse_f64",
    "parse_i128", "parse_time", "re_find", "re_replace", "re_strs", "re_test", "regex", "replace", "rescale", "split",
    "sqlmax", "sqlmin", "to_decimal", "upper", "code_points", "range",
}  # fmt: skip


def handler(name: str, args: tuple[t.Type, ...]) -> tuple[t.Type, typed.Apply] | None:
    """The type of the item and the operation on its fields, if the operation takes them."""
    signature = OPERATIONS[name].rule(args, None)
    if signature is None or signature.params != args:
        return None
    item = t.Tuple(args)
    fields = tuple(typed.Get(arg, typed.Local(item, 0, "x"), i, str(i)) for i, arg in enumerate(args))
    return item, typed.Apply(signature.result, name, fields, 0)


def operator(part: list[tuple[t.Type, typed.Apply]]) -> typed.Operator:
    """An operator with a port and an output for each."""
    return typed.Operator(
        "operations",
        tuple(typed.Port(f"x{i}", item, None) for i, (item, _) in enumerate(part)),
        (),
        tuple(typed.Out(f"y{i}", apply.type, None, None) for i, (_, apply) in enumerate(part)),
        (), (), (typed.Site(()),),
        items=tuple(
            typed.ItemHandler(i, 1, typed.Block((typed.Emit(i, apply),))) for i, (_, apply) in enumerate(part)
        ),
    )  # fmt: skip


@cache
def compiled() -> list[tuple[str, typed.Operator, NativeOperator, int]]:
    """By operation: name, operator, native operator, port."""
    found: list[tuple[str, t.Type, typed.Apply]] = []
    for name, operation in sorted(OPERATIONS.items()):
        if operation.mutates is not None or name in NOT_YET:
            continue
        for args in (*((a,) for a in ONE), *TWO, *THREE):
            made = handler(name, args)
            if made is not None and not refused(*made):
                found.append((name, *made))
    result: list[tuple[str, typed.Operator, NativeOperator, int]] = []
    rest = iter(found)
    while part := list(islice(rest, PORTS)):
        op = operator([(item, apply) for _, item, apply in part])
        native = compile_native(op)
        assert isinstance(native, NativeOperator), native
        result += [(name, op, native, port) for port, (name, _, _) in enumerate(part)]
    return result


def refused(item: t.Type, apply: typed.Apply) -> bool:
    """Whether there is no code for it; found out without making any."""
    from backends.native.lower.batches import Lowered, lower

    return not isinstance(lower(operator([(item, apply)]), "x86_64"), Lowered)


def test_all_others_are_compiled_for_some_type() -> None:
    functions = {"any", "all", "fold", "map", "sort_by"}
    plain = {name for name, operation in OPERATIONS.items() if operation.mutates is None}
    assert plain - {name for name, *_ in compiled()} - functions - NOT_YET <= {"zero", "fill", "value", "nan", "inf", "trunc"}


@settings(max_examples=600)
@given(st.data())
def test_operations_give_what_the_evaluator_gives(data: st.DataObject) -> None:
    name, op, native, port = data.draw(st.sampled_from(compiled()))
    value = data.draw(values_of(op.ports[port].type))
    outs: list[list[Any]] = [[] for _ in op.outs]
    fire = compile_operator(op).item[port]
    assert fire is not None
    try:
        fire([], value, outs)
        trap = None
    except Trap as trapped:
        trap = trapped.code
    found, fired = native.fire_batch([[value]], f"item.{port}")
    assert (fired.trap.code if fired.trap else None) == trap, (name, value)
    assert repr(found[port]) == repr(outs[port]), (name, value)
