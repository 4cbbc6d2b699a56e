"""Functions on floats. They never trap: errors of domain are NaN, of range infinite (C99). f32: the f64 function, rounded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from river.lang import types as t
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


def _guarded(function: Callable[..., float]) -> Callable[..., float]:
    """`function` with NaN where Python refuses the argument."""

    def apply(*args: float) -> float:
        try:
            result = function(*args)
        except ValueError:
            return NAN
        return result if result == result else NAN  # noqa: PLR0124 - NaN

    return apply


def exp(x: float) -> float:
    """E to the x."""
    try:
        return math.exp(x) if x == x else NAN  # noqa: PLR0124 - NaN
    except OverflowError:
        return INFINITY


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def apply(x: float) -> float:
        if x > 0.0:
            return function(x)
        return -INFINITY if x == 0.0 else NAN

    return apply


def power(x: float, y: float) -> float:
    """X to the y, as C99's pow."""
    try:
        result = math.pow(x, y)
    except OverflowError:
        return -INFINITY if x < 0.0 and _odd(y) else INFINITY
    except ValueError:
        if x == 0.0:  # to a negative power
            return -INFINITY if math.copysign(1.0, x) < 0.0 and _odd(y) else INFINITY
        return NAN
    return result if result == result else NAN  # noqa: PLR0124 - NaN


def _odd(y: float) -> bool:
    return math.fmod(y, 2.0) in (1.0, -1.0)


def _hyperbolic(function: Callable[[float], float], *, odd: bool) -> Callable[[float], float]:
    def apply(x: float) -> float:
        try:
            return function(x) if x == x else NAN  # noqa: PLR0124 - NaN
        except OverflowError:
            return -INFINITY if odd and x < 0.0 else INFINITY

    return apply


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


def on(function: Callable[..., float]) -> Callable[[Types, t.Type], Meaning]:
    """The meaning of a function on f64 for both types: f32 is the result, rounded."""
    return lambda _types, result: (lambda *args: single(function(*args))) if result == t.F32 else function


def _rule(count: int) -> Rule:
    return alike(is_float, count, fallback=t.F64)


_FUNCTIONS: tuple[tuple[str, int, Callable[..., float], str], ...] = (
    ("sqrt", 1, _guarded(math.sqrt), "the square root"),
    ("exp", 1, exp, "e to the power"),
    ("log", 1, _logarithm(math.log), "the natural logarithm"),
    ("log2", 1, _logarithm(math.log2), "the logarithm to base 2"),
    ("log10", 1, _logarithm(math.log10), "the logarithm to base 10"),
    ("pow", 2, power, "a to the power b"),
    ("sin", 1, _guarded(math.sin), "the sine"),
    ("cos", 1, _guarded(math.cos), "the cosine"),
    ("tan", 1, _guarded(math.tan), "the tangent"),
    ("asin", 1, _guarded(math.asin), "the arc sine"),
    ("acos", 1, _guarded(math.acos), "the arc cosine"),
    ("atan", 1, _guarded(math.atan), "the arc tangent"),
    ("atan2", 2, _guarded(math.atan2), "the angle of the point (x = b, y = a)"),
    ("sinh", 1, _hyperbolic(math.sinh, odd=True), "the hyperbolic sine"),
    ("cosh", 1, _hyperbolic(math.cosh, odd=False), "the hyperbolic cosine"),
    ("tanh", 1, _guarded(math.tanh), "the hyperbolic tangent"),
)

# `floor` and `ceil` are also searches in ordered maps: their lines stand in containers.py.
floor: Callable[[float], float] = _rounding(math.floor)
ceil: Callable[[float], float] = _rounding(math.ceil)

OPERATIONS: tuple[Operation, ...] = (
    *(Operation(name, _rule(count), on(function), doc) for name, count, function, doc in _FUNCTIONS),
    Operation("round", _rule(1), on(_rounding(half_away)), "the nearest whole number, halves away from zero",
        native="inline"),
    Operation("trunc", _rule(1), on(_rounding(math.trunc)), "without the fraction", native="inline"),
    Operation("is_nan", from_any(is_float, t.BOOL, t.F64), plain(math.isnan), "whether it is NaN",
        native="inline"),
    Operation("inf", nothing(is_float, t.F64), lambda _t, _r: lambda: INFINITY,
        "infinity of the type wanted", native="inline"),
    Operation("nan", nothing(is_float, t.F64), lambda _t, _r: lambda: NAN, "NaN of the type wanted",
        native="inline"),
)  # fmt: skip
