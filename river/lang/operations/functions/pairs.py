"""Numbers as sums of two f64, the second far smaller than an f64 can tell of the first, and polynomials.

The sums and products are those of Dekker, "A floating-point technique for extending the available precision" (1971).
"""

from __future__ import annotations

from typing import Final

from river.lang.operations.formula import Real
from river.lang.values import NAN

Pair = tuple[Real, Real]
"""A number as the sum of an f64 and a far smaller one."""

TWO_52: Final = 0x4330000000000000
"""The bits of 2^52: with a whole number below 2^52 in the fraction they are 2^52 plus that number."""
TO_WHOLE: Final = 1.5 * 2.0**52
"""Added to a number below 2^51, it rounds it to a whole one, which is then found in the lowest bits."""


HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17)
LN_2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
"""With few bits in the first part: its product with a whole number below 2^20 is exact."""


def two_sum(a: Real, b: Real) -> Pair:
    """A sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fast_two_sum(a: Real | float, b: Real) -> Pair:
    """The same where a is zero or not smaller than b (Dekker)."""
    total = a + b
    return total, b - (total - a)


def _halves(a: Real | float) -> tuple[Real | float, Real | float]:
    scaled = a * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Real, b: Real | float) -> Pair:
    """A product and its error, far from the limits of the exponent (Dekker, Veltkamp)."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    product = a * b
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    assert isinstance(error, Real)  # noqa: S101 - a is
    return product, error


def product(a: Pair, b: tuple[Real | float, Real | float]) -> Pair:
    """A product of pairs."""
    high, low = two_product(a[0], b[0])
    return fast_two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def quotient(a: Pair, b: Pair) -> Real:
    """A quotient of pairs, rounded."""
    first = a[0] / b[0]
    high, low = two_product(first, b[0])
    return first + ((((a[0] - high) - low) + a[1]) - first * b[1]) / b[0]


def polynomial(x: Real, *coefficients: float) -> Real | float:
    """By Horner's scheme; the lowest comes first."""
    found: Real | float = coefficients[-1]
    for each in reversed(coefficients[:-1]):
        found = x * found + each
    return found


def tree(x: Real, *coefficients: float) -> Real | float:
    """A long polynomial in few steps after each other: its even and its odd part side by side (Estrin)."""
    if len(coefficients) <= 3:
        return polynomial(x, *coefficients)
    square = x * x
    return x * tree(square, *coefficients[1::2]) + tree(square, *coefficients[0::2])


def defined(x: Real) -> Real:
    """The same, with the one NaN."""
    return x.equals(x).choose(x, NAN)
