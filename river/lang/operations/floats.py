"""Functions on floats. They never trap: errors of domain are NaN, of range infinite (C99). f32: the f64 function, rounded.

All but `fma`, which is rounded once in either type. Those that are not exact are formulas (`functions`): the same bits on every
machine.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from river.lang import types as t
from river.lang.operations import functions
from river.lang.operations.effects import PURE
from river.lang.operations.table import (
    Meaning,
    Operation,
    Rule,
    Types,
    alike,
    from_any,
    is_float,
    nothing,
    plain,
)
from river.lang.values import INFINITY, NAN, single

if TYPE_CHECKING:
    from collections.abc import Callable

_WHOLE = 4503599627370496.0  # 2^52: from here on every float is whole


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else NAN


def _rounding(function: Callable[[float], int | float]) -> Callable[[float], float]:
    """`function` on numbers that may have a fraction; keeps the sign of zero."""

    def apply(x: float) -> float:
        if -_WHOLE < x < _WHOLE:
            return math.copysign(float(function(x)), x)
        return x if x == x else NAN  # noqa: PLR0124 - NaN

    return apply


def half_away(x: float) -> float:
    """The nearest whole number, halves away from zero; |x| is below 2^52."""
    whole = math.trunc(x)
    return whole + math.copysign(1.0, x) if abs(x - whole) >= 0.5 else float(whole)


def fused(a: float, b: float, c: float) -> float:
    """The f64 nearest to a * b + c."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        found = c if math.isfinite(a) and math.isfinite(b) else a * b + c
        return found if found == found else NAN  # noqa: PLR0124 - NaN
    if not (a and b):
        return a * b + c  # by which a sum of zeros has its sign
    from fractions import Fraction  # which few need, and takes 1 ms

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return INFINITY if exact > 0 else -INFINITY


def fused_single(a: float, b: float, c: float) -> float:
    """The f32 nearest to a * b + c, of floats of 32 bits: the product is an f64.

    The sum is rounded to an odd f64 if it is none, so that the f32 next to it is the one next to the exact sum.
    """
    product = a * b
    found = product + c
    if not math.isfinite(found):
        return single(found) if found == found else NAN  # noqa: PLR0124 - NaN
    other = found - product
    rest = (product - (found - other)) + (c - other)
    if rest and not struct.unpack("<q", struct.pack("<d", found))[0] & 1:
        found = math.nextafter(found, math.copysign(INFINITY, rest))
    return single(found)


def on(function: Callable[..., float]) -> Callable[[Types, t.Type], Meaning]:
    """The meaning of a function on f64 for both types: f32 is the result, rounded."""
    return lambda _types, result: (lambda *args: single(function(*args))) if result == t.F32 else function


def _rule(count: int) -> Rule:
    return alike(is_float, count, fallback=t.F64)


_DOCS = {
    "exp": "e to the power", "log": "the natural logarithm", "log2": "the logarithm to base 2",
    "log10": "the logarithm to base 10", "pow": "a to the power b", "sin": "the sine", "cos": "the cosine",
    "tan": "the tangent", "asin": "the arc sine", "acos": "the arc cosine", "atan": "the arc tangent",
    "atan2": "the angle of the point (x = b, y = a)", "sinh": "the hyperbolic sine", "cosh": "the hyperbolic cosine",
    "tanh": "the hyperbolic tangent",
}  # fmt: skip


def _line(name: str) -> Operation:
    count = functions.OPERANDS[name]
    return Operation(name, _rule(count), on(_transcendental(name)), _DOCS[name], effect=PURE)


def _transcendental(name: str) -> Callable[..., float]:
    """A function whose formula is made when it is first called."""

    def apply(*args: float) -> float:
        return functions.meaning(name)(*args)

    return apply


# `floor` and `ceil` are also searches in ordered maps: their lines stand in containers.py.
floor: Callable[[float], float] = _rounding(math.floor)
ceil: Callable[[float], float] = _rounding(math.ceil)

OPERATIONS: tuple[Operation, ...] = (
    Operation("sqrt", _rule(1), on(_root), "the square root", effect=PURE),
    *map(_line, functions.NAMES),
    Operation("fma", _rule(3), lambda _types, result: fused_single if result == t.F32 else fused,
        "a times b, plus c, rounded once", native="inline", effect=PURE),
    Operation("round", _rule(1), on(_rounding(half_away)), "the nearest whole number, halves away from zero",
        native="inline", effect=PURE),
    Operation("trunc", _rule(1), on(_rounding(math.trunc)), "without the fraction", native="inline",
        effect=PURE),
    Operation("is_nan", from_any(is_float, t.BOOL, t.F64), plain(math.isnan), "whether it is NaN",
        native="inline", effect=PURE),
    Operation("inf", nothing(is_float, t.F64), lambda _t, _r: lambda: INFINITY,
        "infinity of the type wanted", native="inline", effect=PURE),
    Operation("nan", nothing(is_float, t.F64), lambda _t, _r: lambda: NAN, "NaN of the type wanted",
        native="inline", effect=PURE),
)  # fmt: skip
