"""Transcendental functions by machine code, one by one and in lanes: the bits of the evaluator."""

from __future__ import annotations

import ctypes
import math
import os
import struct
from array import array
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llvmlite")

from backends.native import Fired, NativeOperator, compile_native
from backends.native.batch import address_of
from backends.native.lower import estimates
from river.lang.operations.formula import evaluator
from river.lang.operations.functions import NAMES, OPERANDS, meaning
from river.testing import seeds
from tests.backends.lanes import SPECIAL, bits, evaluated, in_lanes, native, operator, single

if TYPE_CHECKING:
    import random

    from river.lang import typed

TYPES = ("f32", "f64")


def function(name: str, type_: str) -> typed.Operator:
    """A filter that applies it; a second operand is the next item."""
    count = OPERANDS[name]
    value = f"{name}({', '.join(f'w[{i}]' for i in range(count))})"
    body = f"on x[peek {count}, pop 1](w) {{ emit y {value}; }}"
    return operator(f"operator f(x: {type_}) -> (y[push 1]: {type_}) {{ {body} }}", type_)


def item(type_: str, chance: random.Random) -> float:
    """Special, any bits, or common."""
    match chance.randrange(6):
        case 0:
            return chance.choice((*SPECIAL, 1.0, -1.0, 2.0, 1647099.0))
        case 1:
            size, code = (4, "<f") if type_ == "f32" else (8, "<d")
            return struct.unpack(code, chance.randbytes(size))[0]
        case 2:
            return chance.uniform(-5e6, 5e6)
        case _:
            return chance.gauss(0, 3)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_the_bits_are_those_of_the_evaluator(name: str, type_: str) -> None:
    chance = seeds.chance("native functions", name)
    items: list[Any] = [item(type_, chance) for _ in range(333)]
    ran, trap = in_lanes(function(name, type_), [single(x) for x in items] if type_ == "f32" else items)
    assert trap is None
    assert len(ran[0]) == len(items) - OPERANDS[name] + 1


@pytest.mark.parametrize("name", estimates.NAMES)
def test_an_estimate_is_as_close_to_the_formula_as_it_says(name: str) -> None:
    chance, guess = seeds.chance("estimates", name), estimates.estimate(name)
    assert guess is not None
    quick, exact = evaluator(guess.formula, meaning), meaning(name)
    ends = [0.0, -0.0, 1.0, math.inf, -math.inf, 2.0**-149, 2.0**-126, 3.4028234663852886e38]
    steps = [single(sign * k / 512) for k in range(1, 1200) for sign in (1, -1)]
    for x in [*ends, *steps, *(single(domain(name, chance)) for _ in range(1000))]:
        near, right = quick(x), exact(x)
        assert abs(near - right) <= guess.error / 2 * abs(near) or near == right, x
    assert math.isnan(quick(math.nan))


ROUNDED_APART = (
    0.10788945108652115, -0.11119622737169266, 0.11503627896308899, 0.10375994443893433, -0.003071877872571349,
)  # fmt: skip
"""Numbers whose arc tangent is so close to the middle between two f32 that the estimate is on the other side."""


@pytest.mark.parametrize("x", ROUNDED_APART)
def test_where_an_estimate_does_not_tell_the_formula_does(x: float) -> None:
    guess = estimates.estimate("atan")
    assert guess is not None
    assert single(evaluator(guess.formula, meaning)(x)) != single(meaning("atan")(x))
    in_lanes(function("atan", "f32"), [1.0] * 20 + [x] + [0.5] * 50)


def test_a_function_under_a_condition() -> None:
    body = "var v = w[0]; if v > 0.0 { v = log(v) + sin(v * 1000000000.0); } else { v = atan2(v, 2.0); } emit y v;"
    op = operator(f"operator f(x: f64) -> (y[push 1]: f64) {{ on x[pop 1](w) {{ {body} }} }}", "f64")
    in_lanes(op, [item("f64", seeds.chance("native functions", n)) for n in range(100)])


@pytest.mark.parametrize("name", ["sin", "atan2"])
def test_code_that_checks_its_accesses(name: str) -> None:
    op, chance = function(name, "f64"), seeds.chance("native functions", name)
    found = compile_native(op, debug=True)
    assert isinstance(found, NativeOperator)
    items = [item("f64", chance) for _ in range(99)]
    outs, how = found.fire_batch([items], "rated")
    assert how == Fired(100 - OPERANDS[name])
    assert bits(([*outs], None)) == bits(evaluated(op, (items,)))


ROWS = int(os.environ.get("RIVER_CASES", "20000"))


def domain(name: str, chance: random.Random) -> float:
    """An f32 where Python's function is defined and finite."""
    if name in ("asin", "acos"):
        return chance.uniform(-1, 1)
    if name in ("log", "log2", "log10"):
        return math.ldexp(chance.uniform(0.5, 1), chance.randrange(-120, 120))
    if name == "pow":
        return chance.uniform(0.01, 20)
    if name in ("exp", "sinh", "cosh"):
        return chance.uniform(-80, 80)
    return math.ldexp(chance.uniform(-1, 1), chance.randrange(-30, 30))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_f32_is_the_rounded_result_of_c(name: str) -> None:
    chance, count = seeds.chance("native functions", name), OPERANDS[name]
    items = array("f", (domain(name, chance) for _ in range(ROWS + count - 1)))
    found = native(function(name, "f32"))
    assert found.fire("rated", [address_of(items)], 0, ROWS).row == ROWS
    (column,) = found.outputs[0].batch().addresses
    ours = array("f", ctypes.string_at(column, 4 * ROWS))
    theirs = array("f", map(getattr(math, name), items[:ROWS], *([items[1:]] if count == 2 else [])))
    differ = [(x, a, b) for x, a, b in zip(items, ours, theirs, strict=False) if a != b]
    assert differ == []
