"""Each library operation, on each sort of type it takes, is compiled and gives what the evaluator gives, traps included."""

from __future__ import annotations

import ast
import os
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from backends.native import NativeOperator, compile_native, jit, runtime_library
from backends.native.contract import CODES
from backends.native.lower.batches import Lowered, lower
from backends.native.runtime_library import runtime
from river.classes import evolve
from river.lang import memory, typed
from river.lang import types as t
from river.lang.evaluate import Trap, compile_operator
from river.lang.operations import OPERATIONS
from river.lang.values import INFINITY, NAN
from river.testing import seeds
from river.testing.value_strategies import types, values_of

SCALARS = (t.BOOL, t.I32, t.I64, t.U64, t.I128, t.F32, t.F64, t.STRING, t.BYTES, t.TIME, t.DURATION, t.UNIT,
           t.Decimal(9, 2), t.Decimal(38, 10), t.Decimal(5, 4))  # fmt: skip
ROW = t.Record((("a", t.F64), ("s", t.STRING)))
ITEMS = (t.F64, t.STRING, ROW, t.I32, t.I128, t.Decimal(9, 2), t.Optional(t.F64), t.DURATION)
CONTAINERS = (
    *(kind for item in ITEMS for kind in (t.List(item), t.Array(item, 2), t.Deque(item), t.Bag(item))),
    *(kind(key, t.STRING) for key in (t.F64, t.STRING, ROW, t.I32) for kind in (t.Map, t.OMap)),
)
ALL = (*SCALARS, t.Optional(t.BOOL), t.Optional(t.F64), t.Optional(t.STRING), t.Optional(t.I128), t.Optional(ROW), ROW,
       t.FSUM, t.Tuple(()), *CONTAINERS)  # fmt: skip
WANTED = (*SCALARS, t.Optional(t.Decimal(9, 2)), t.Optional(t.Decimal(38, 10)), t.Array(t.F64, 2), t.List(t.F64), ROW,
          t.FSUM, t.Map(t.F64, t.STRING))  # fmt: skip
LARGE = ("fill",)  # what makes more than it is given
Case = tuple[str, tuple[t.Type, ...], t.Type]


def operands() -> list[tuple[t.Type, ...]]:
    """What may be operands of some operation."""
    found: list[tuple[t.Type, ...]] = [(), *((a,) for a in ALL), *product(ALL, ALL)]
    found += [(a, t.I64, b) for a in ALL for b in SCALARS]
    found += [
        (t.F32,) * 3,
        (t.F64,) * 3,
        (t.STRING,) * 3,
        (t.STRING, t.STRING, t.I64),
        (t.I64,) * 3,
        (t.I64,) * 6,
    ]
    for kind in CONTAINERS:
        first, *_, last = (*t.parts(kind), t.parts(kind)[-1])
        found += [(kind, first, last), (kind, first, first), (kind, t.I64, first)]
    return found


def _asks(args: tuple[t.Type, ...]) -> bool:
    """Whether the type wanted may decide what an operation on these gives."""
    return len(args) < 2 or all(isinstance(a, t.Decimal) for a in args) or args == (t.F64, t.I64)


@cache
def cases() -> tuple[Case, ...]:
    """Operations that change nothing, with the types of their operands and of their result."""
    found: dict[Case, None] = {}
    given = [(args, None) for args in operands()]
    given += [(args, wanted) for args, _ in given for wanted in WANTED if _asks(args)]
    for name, operation in sorted(OPERATIONS.items()):
        if operation.mutates is not None or operation.native == "host" or name.startswith("re_"):
            continue
        for args, wanted in given:
            signature = operation.rule(args, wanted)
            if signature is not None and signature.params == args:
                found[name, args, signature.result] = None
    return tuple(found)


@cache
def operator(name: str, args: tuple[t.Type, ...], result: t.Type) -> typed.Operator:
    """An operator that sends what the operation makes of its item."""
    item = t.Tuple(args)
    fields = tuple(typed.Get(arg, typed.Local(item, 0, "x"), i, str(i)) for i, arg in enumerate(args))
    return typed.Operator(
        "operation", (typed.Port("x", item, None),), (), (typed.Out("y", result, None, None),), (), (),
        (typed.TrapSite(()),),
        items=(typed.ItemHandler(0, 1, typed.Block((typed.Emit(0, typed.Apply(result, name, fields, 0)),))),),
    )  # fmt: skip


MEMORY = 16 << 20
"""Bytes that an operation may take. What is near to it may be too much for the evaluator only, or for native code only."""


def agree(case: Case, native: NativeOperator, value: Any) -> None:
    fire = compile_operator(operator(*case)).item[0]
    assert fire is not None
    outs: list[list[Any]] = [[]]
    limit = memory.used() + MEMORY
    try:
        with patch.object(memory, "most", lambda: limit):
            fire([], value, outs)
        trap = None
    except Trap as trapped:
        trap = trapped.code
    native.limit_memory(MEMORY)
    found, fired = native.fire_batch([[value]])
    code = fired.trap.code if fired.trap else None
    if "arena-limit" in (code, trap):
        assert case[0] in LARGE, case
        return
    assert code == trap, (case, value)
    assert repr(list(found)) == repr(outs), (case, value)


def native_of(case: Case, *, debug: bool = False) -> NativeOperator:
    found = compile_native(operator(*case), debug=debug)
    assert isinstance(found, NativeOperator), (case, found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shl.trap", "shr.trap", "ushr.trap"])
def test_a_shift_by_the_width_is_too_far(name: str) -> None:
    for case in cases():
        if case == (name, (t.I64, t.I64), t.I64):
            native = native_of(case)
            for bits in (63, 64):
                agree(case, native, (5, bits))


@pytest.mark.slow
def test_every_operation_is_among_the_cases() -> None:
    functions = {"any", "all", "fold", "map", "sort_by"}  # in the tests of bodies
    patterns = {"regex", "re_find", "re_replace", "re_strs", "re_test"}
    plain = {name for name, operation in OPERATIONS.items() if operation.mutates is None}
    assert plain - {name for name, _, _ in cases()} == functions | patterns


def test_names_of_the_runtime_mean_one_thing() -> None:
    folder = files("backends.native.runtime")
    known: dict[str, str] = {}
    for name in (*runtime_library._FILES, "debug.rt"):
        for item in ast.parse(folder.joinpath(name).read_text(encoding="utf-8")).body:
            match item:
                case ast.FunctionDef(label) | ast.ClassDef(label):
                    assert label not in known, label
                    known[label] = name
                case ast.Assign([ast.Name(label)], value):
                    assert known.setdefault(label, ast.unparse(value)) == ast.unparse(value), label
                case _:
                    pass


def test_only_patterns_may_need_the_host() -> None:
    assert {name for name, operation in OPERATIONS.items() if operation.native == "host"} <= {
        "regex",
        "re_replace",
    }


@pytest.mark.long
def test_every_case_is_compiled() -> None:
    for case in cases():
        assert isinstance(lower(operator(*case), "x86_64"), Lowered), case


@pytest.mark.parametrize("plain", [False, True])
def test_a_product_and_a_sum_are_rounded_once_on_any_processor(
    plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on one without an instruction for that."""
    if plain:
        if jit.host().architecture != "x86_64":
            pytest.skip("other processors have the instruction")
        without = evolve(jit.host(), cpu="x86-64", features="")
        monkeypatch.setattr(jit, "_processor", lambda: without)
    for type_, bits in ((t.F32, 23), (t.F64, 52)):
        case: Case = ("fma", (type_,) * 3, type_)
        native, half = native_of(case), 1 + 2.0 ** -(bits // 2 + 1)
        for c in (0.0, 2.0**-100, -(2.0**-100), -1.0, INFINITY, NAN):
            for a, b in ((half, half), (half, -half), (1 + 2.0**-bits, 1 - 2.0**-bits), (0.0, -1.0)):
                agree(case, native, (a, b, c))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_operations_give_what_the_evaluator_gives(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(cases()))
    native = native_of(case, debug=data.draw(st.booleans()))
    for value in data.draw(st.lists(values_of(operator(*case).ports[0].type), min_size=1, max_size=4)):
        agree(case, native, value)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_operation_on_all_its_types(name: str) -> None:
    for number, case in enumerate(cases()):
        if case[0] != name:
            continue
        native = native_of(case)

        @seed(seeds.number(name, number))
        @settings(max_examples=int(os.environ.get("RIVER_CASES", "10")), database=None)
        @given(st.just((case, native)), values_of(operator(*case).ports[0].type))
        def run(made: tuple[Case, NativeOperator], value: Any) -> None:
            agree(*made, value)

        run()


HASHED = types(
    4, hashed=True
)  # one for all cases: how many ways it has depends on what hypothesis has in its cache


@pytest.mark.slow
@settings(max_examples=12)
@given(st.data())
def test_order_equality_and_hash_of_all_types(data: st.DataObject) -> None:
    type_ = data.draw(HASHED)
    values = values_of(type_, 3)
    first, second = data.draw(values), data.draw(values)
    for name in ("compare", "same", "hash64"):
        args = (type_,) if name == "hash64" else (type_, type_)
        case: Case = (name, args, {"compare": t.I64, "same": t.BOOL, "hash64": t.U64}[name])
        native = native_of(case)
        for pair in ((first, second), (first, first), (second, first)):
            agree(case, native, pair[: len(args)])


def test_codes_of_the_runtime() -> None:
    known = runtime(debug=True).constants
    for name in ("arena-limit", "memory-limit", "internal"):
        assert known[name.replace("-", "_").upper()] == CODES.index(name)
