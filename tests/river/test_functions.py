"""Transcendental functions: less than one unit in the last place from the truth, and C's results at the edges."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import struct
from decimal import Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING

import pytest

from river.lang.operations.formula import OFTEN, Formula, Real, compiled, evaluator, record
from river.lang.operations.functions import NAMES, OPERANDS, formula, meaning
from river.testing import seeds

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

COUNT = 250
DIGITS = 60

# ------------------------------------------------------------------------------- the truth, in decimal digits


def series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """The sum of terms; `ratio(n)` leads from one to the next."""
    total = term = first
    n = 1
    while term and abs(term) > abs(total) * Decimal(10) ** -(DIGITS + 5):
        term *= ratio(n)
        total += term
        n += 1
    return total


def arc_tangent(x: Decimal) -> Decimal:
    halvings = 0
    while abs(x) > Decimal("0.1"):
        x /= 1 + (1 + x * x).sqrt()
        halvings += 1
    square = x * x
    return series(x, lambda n: -square * (2 * n - 1) / (2 * n + 1)) * 2**halvings


@cache
def half_pi() -> Decimal:
    with localcontext(prec=450):
        found, low = Decimal(0), Decimal(10) ** -440
        for times, inverse in ((8, 5), (-2, 239)):
            power, n = Decimal(times) / inverse, 1
            while abs(power) > low:
                found += power / n
                power, n = -power / (inverse * inverse), n + 2
        return found * 1


def sine(x: Decimal, quarter: int) -> Decimal:
    """Of x and `quarter` turns."""
    with localcontext(prec=450):
        turns = int((x / half_pi()).to_integral_value())
        x -= turns * half_pi()
    x, turns = +x, turns + quarter
    square = x * x
    if turns % 2 == 0:
        found = series(x, lambda n: -square / (2 * n * (2 * n + 1)))
    else:
        found = series(Decimal(1), lambda n: -square / (2 * n * (2 * n - 1)))
    return -found if turns % 4 >= 2 else found


def pi() -> Decimal:
    return +half_pi() * 2


def angle(y: Decimal, x: Decimal) -> Decimal:
    if x == 0:
        return (pi() / 2).copy_sign(y)
    found = arc_tangent(y / x)
    return found if x > 0 else found + pi().copy_sign(y)


def hyperbolic_sine(x: Decimal) -> Decimal:
    if abs(x) < 1:
        return series(x, lambda n: x * x / (2 * n * (2 * n + 1)))
    return (x.exp() - (-x).exp()) / 2


def hyperbolic_cosine(x: Decimal) -> Decimal:
    return (x.exp() + (-x).exp()) / 2


TRUTH: dict[str, Callable[..., Decimal]] = {
    "exp": Decimal.exp, "log": Decimal.ln, "log2": lambda x: x.ln() / Decimal(2).ln(), "log10": Decimal.log10,
    "pow": lambda x, y: (x.ln() * y).exp(), "sin": lambda x: sine(x, 0), "cos": lambda x: sine(x, 1),
    "tan": lambda x: sine(x, 0) / sine(x, 1), "asin": lambda x: angle(x, ((1 - x) * (1 + x)).sqrt()),
    "acos": lambda x: angle(((1 - x) * (1 + x)).sqrt(), x), "atan": arc_tangent, "atan2": angle,
    "sinh": hyperbolic_sine, "cosh": hyperbolic_cosine, "tanh": lambda x: hyperbolic_sine(x) / hyperbolic_cosine(x),
}  # fmt: skip


def wild(chance: random.Random) -> float:
    """Any finite number, by its bits."""
    while True:
        (found,) = struct.unpack("<d", chance.randbytes(8))
        if math.isfinite(found):
            return found


def small(chance: random.Random) -> float:
    return chance.uniform(-1, 1) * 2.0 ** -chance.randrange(60)


def arguments(name: str, chance: random.Random) -> tuple[float, ...]:
    """Where the function is defined and finite."""
    kind = chance.randrange(4)
    match name:
        case "exp" | "sinh" | "cosh":
            return (chance.uniform(-744, 709) if kind == 0 else small(chance) * (1 << kind),)
        case "tanh":
            return (chance.uniform(-25, 25) if kind == 0 else small(chance) * kind,)
        case "log" | "log2" | "log10":
            return (
                abs(wild(chance))
                if kind == 0
                else 1 + small(chance) * 0.7
                if kind < 3
                else chance.uniform(0.3, 3),
            )
        case "asin" | "acos":
            return (math.copysign(1 - abs(small(chance)), small(chance)) if kind == 0 else small(chance),)
        case "pow":
            if kind == 0:
                return abs(wild(chance)), chance.uniform(-0.9, 0.9)
            if kind == 1:
                return 1 + small(chance) / 64, chance.uniform(-4e4, 4e4)
            return math.exp(chance.uniform(-9, 9)), chance.uniform(-70, 70)
        case "atan2":
            if kind == 0:
                return wild(chance), wild(chance)
            return chance.gauss(0, 1), chance.gauss(0, 1) * 2.0 ** chance.randrange(-9, 9)
        case "sin" | "cos" | "tan":
            turns = chance.randrange(-(10**6), 10**6) * math.pi / 2  # near a zero
            return ((wild(chance), chance.uniform(-9, 9), turns, chance.uniform(-3e6, 3e6))[kind],)
        case _:
            return (wild(chance) if kind == 0 else chance.gauss(0, kind),)


def error(found: float, truth: Decimal) -> float:
    """In units of the last place of the truth."""
    with localcontext(prec=DIGITS):
        unit = Decimal(math.ulp(float(truth)))
        return float(abs(Decimal(found) - truth) / unit)


@pytest.mark.parametrize("name", NAMES)
def test_less_than_a_unit_in_the_last_place_from_the_truth(name: str) -> None:
    chance, function, worst = seeds.chance("functions", name), meaning(name), (0.0, ())
    with localcontext(prec=DIGITS, Emin=-(10**6), Emax=10**6):
        for _ in range(COUNT):
            args = arguments(name, chance)
            truth = TRUTH[name](*map(Decimal, args))
            if abs(truth) < Decimal("1.7e308"):
                worst = max(worst, (error(function(*args), truth), args))
    assert worst[0] < 1, worst


# A double whose distance to a multiple of pi/2 is as small as it gets (Kahan), and its neighbours.
CLOSE = 6381956970095103.0 * 2.0**797


@pytest.mark.parametrize(
    "x", [CLOSE, -CLOSE, 1e22, math.nextafter(1647099.0, 0), 1647099.0, 1.7976931348623157e308]
)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_many_turns(name: str, x: float) -> None:
    with localcontext(prec=DIGITS):
        assert error(meaning(name)(x), TRUTH[name](Decimal(x))) < 1


@pytest.mark.slow
def test_powers_of_two_and_ten_are_exact() -> None:
    assert all(meaning("log2")(2.0**n) == n for n in range(-1074, 1024))
    assert all(meaning("log10")(float(10**n)) == n for n in range(23))
    assert all(meaning("pow")(2.0, float(n)) == 2.0**n for n in range(-1074, 1024))
    assert all(meaning("pow")(float(n), 2.0) == n * n for n in range(-999, 1000))


# ------------------------------------------------------------------------------------------- the edges

EDGES = (
    0.0, 5e-324, 2.2250738585072014e-308, 1e-300, 1e-9, 0.5, 1.0, math.nextafter(1, 2), 1.5, 2.0, 3.0, 4.0, 709.0, 711.0,
    2.0**52 + 1, 2.0**53 - 1, 2.0**53, 1e200, 1.7976931348623157e308, math.inf,
)  # fmt: skip


def libm(name: str) -> Callable[..., float]:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = getattr(library, name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * OPERANDS[name]
    return function


def place(x: float) -> int:
    """Where a number stands among the doubles; the two zeros are neighbours."""
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return bits if bits >= 0 else -(bits & (1 << 63) - 1) - 1


@pytest.mark.parametrize("name", NAMES)
def test_the_edges_are_those_of_c(name: str) -> None:
    ours, theirs = meaning(name), libm(name)
    numbers = [*EDGES, *(-x for x in EDGES), math.nan]
    for x in numbers:
        for args in [(x,)] if OPERANDS[name] == 1 else [(x, y) for y in numbers]:
            found, expected = ours(*args), theirs(*args)
            if expected in (0.0, math.inf, -math.inf, 1.0) or math.isnan(expected):
                assert repr(found) == repr(math.nan if math.isnan(expected) else expected), args
            else:
                assert abs(place(found) - place(expected)) <= 1, args


# -------------------------------------------------------------------------------------------- formulas


def test_what_is_not_needed_is_not_computed() -> None:
    def make(x: Real) -> Real:
        assert isinstance(x / 0.0, Real)
        return x * x + x * x

    found = record("twice", make, 1)
    assert [step.operation for step in found.steps] == ["*", "+"]
    assert evaluator(found, meaning)(3.0) == 18.0


def test_a_zero_has_a_sign() -> None:
    assert repr(evaluator(record("minus", lambda x: (x < 0.0).choose(-0.0, 0.0), 1), meaning)(-1.0)) == "-0.0"


@pytest.mark.parametrize("divisor", [0.0, -0.0, 2.0, math.nan])
@pytest.mark.parametrize("dividend", [0.0, 1.0, -1.0, math.inf, math.nan])
def test_a_quotient_is_that_of_ieee(dividend: float, divisor: float) -> None:
    quotient = evaluator(record("quotient", lambda x, y: x / y, 2), meaning)
    expected = divide(dividend, divisor)
    assert repr(quotient(dividend, divisor)) == repr(expected)


def divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    signs = math.copysign(1, a) * math.copysign(1, b)
    return math.nan if a == 0 or math.isnan(a) else math.inf * signs


def test_formulas_are_small() -> None:
    assert all(isinstance(formula(name), Formula) and len(formula(name).steps) < 320 for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_that_is_used_often_is_the_same(name: str) -> None:
    edges = (0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, -3e-300, 710.5, 1e5)
    step_by_step, written = evaluator(formula(name), meaning), compiled(formula(name), meaning)
    for i in range(OFTEN):
        args = (edges[i % 12] if i < 48 else i * 0.37 - 20, edges[i // 4 % 12])[: OPERANDS[name]]
        assert struct.pack("<d", step_by_step(*args)) == struct.pack("<d", written(*args)), args
