"""The exponential function (fdlibm's e_exp), and the hyperbolic ones made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.lang.operations.functions.pairs import (
    LN_2,
    TO_WHOLE,
    Pair,
    defined,
    fast_two_sum,
    polynomial,
    quotient,
    tree,
    two_product,
)

if TYPE_CHECKING:
    from river.lang.operations.formula import Real


_EXP: Final = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)  # fmt: skip
MOST, LEAST = 720.0, -750.0
"""The exponentials beyond are infinite, and zero."""


def _power_of_two(exponent: Real) -> Real:
    """2 to a whole number from -1022 to 1023."""
    return (((exponent + TO_WHOLE).bits() + 1023) << 52).real()


def scaled(x: Real, exponent: Real) -> Real:
    """A number times 2 to a whole number; only the last product is rounded."""
    half = (exponent * 0.5 + TO_WHOLE) - TO_WHOLE
    return x * _power_of_two(half) * _power_of_two(exponent - half)


def exponential(x: Real, y: Real | float) -> tuple[Pair, Real]:
    """The exponential of x + y as a pair near 1 and the exponent of 2."""
    turns = (x * 1.4426950408889634 + TO_WHOLE) - TO_WHOLE
    high, low = x - turns * LN_2[0], turns * LN_2[1] - y
    rest = high - low
    square = rest * rest
    c = rest - square * polynomial(square, *_EXP)
    first, error = fast_two_sum(1.0, high)
    return fast_two_sum(first, error - (low - rest * c / (2.0 - c))), turns


def within(x: Real, least: float, most: float) -> Real:
    """The number, or the limit that it exceeds."""
    below = (x < least).choose(least, x)
    return (below > most).choose(most, below)


def exp(x: Real) -> Real:
    """The exponential."""
    (high, _), exponent = exponential(within(x, LEAST, MOST), 0.0)
    return defined(scaled(high, exponent))


def _sides(a: Real) -> tuple[Pair, Pair, Real]:
    """e^a - e^-a and e^a + e^-a, of a not negative, both over 2 to an exponent."""
    (high, low), exponent = exponential(a, 0.0)
    inverse = 1.0 / high
    product, error = two_product(inverse, high)
    rest = inverse * (((1.0 - product) - error) - low * inverse)
    small = _power_of_two((exponent < 60.0).choose(exponent, 60.0) * -2.0)
    inverse, rest = inverse * small, rest * small
    under, over = fast_two_sum(high, -inverse), fast_two_sum(high, inverse)
    return (
        fast_two_sum(under[0], under[1] + (low - rest)),
        fast_two_sum(over[0], over[1] + (low + rest)),
        exponent,
    )


def _near_sinh(a: Real) -> Pair:
    """The series of the hyperbolic sine, below 1."""
    factors, factorial = [1.0], 1
    for k in range(3, 23, 2):
        factorial *= k * (k - 1)
        factors.append(1.0 / factorial)
    square = a * a
    return fast_two_sum(a, a * square * tree(square, *factors[1:]))


def sinh(x: Real) -> Real:
    """The hyperbolic sine."""
    a = abs(x)
    (under, _), _, exponent = _sides(within(a, 0.0, MOST))
    far = scaled(under, exponent - 1.0)
    return defined((a < 1.0).choose(_near_sinh(a)[0], far).signed(x))


def cosh(x: Real) -> Real:
    """The hyperbolic cosine."""
    _, (over, _), exponent = _sides(within(abs(x), 0.0, MOST))
    return defined(scaled(over, exponent - 1.0))


def tanh(x: Real) -> Real:
    """The hyperbolic tangent."""
    a = within(abs(x), 0.0, 40.0)
    under, over, exponent = _sides(a)
    small, near = a < 1.0, _near_sinh(a)
    scale = _power_of_two(1.0 - exponent)
    under = small.choose(near[0] * scale, under[0]), small.choose(near[1] * scale, under[1])
    found = (a < 2.0**-27).choose(a, quotient(under, over))
    return defined(found.signed(x))
