"""Logarithms (fdlibm's e_log, FreeBSD's e_log2 and e_log10), and powers by a logarithm as a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.lang.operations.functions.exponentials import LEAST, MOST, exponential, scaled, within
from river.lang.operations.functions.pairs import (
    LN_2,
    TWO_52,
    Pair,
    fast_two_sum,
    polynomial,
    product,
    tree,
    two_product,
    two_sum,
)
from river.lang.values import INFINITY, NAN

if TYPE_CHECKING:
    from river.lang.operations.formula import Real, Truth


_LOG: Final = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
_TWO_THIRDS: Final = (0.6666666666666666, 3.700743415417188e-17)
_TWO_FIFTHS: Final = (0.4, -2.2204460492503132e-17)
_PER_LN_2: Final = (1.44269504072144627571e00, 1.67517131648865118353e-10)
_PER_LN_10: Final = (4.34294481878168880939e-01, 2.50829467116452752298e-11)
_LOG10_2: Final = (3.01029995663611771306e-01, 3.69423907715893078616e-13)
"""The upper parts have few bits: their products with other such parts are exact."""
_ROOT_HALF: Final = 0x3FE6A09E00000000  # the bits of a number near the root of 1/2


def _split(x: Real) -> tuple[Real, Real]:
    """A positive number as 1 + f, between the roots of 1/2 and 2, and the exponent of 2; f."""
    small = x < 2.0**-1022
    bits = small.choose(x * 2.0**54, x).bits() + (0x3FF0000000000000 - _ROOT_HALF)
    fraction = ((bits & ((1 << 52) - 1)) + _ROOT_HALF).real() - 1.0
    exponent = ((bits >> 52) | TWO_52).real() - small.choose(2.0**52 + 1023.0 + 54.0, 2.0**52 + 1023.0)
    return fraction, exponent


def _of_positive(x: Real, found: Real) -> Real:
    """A logarithm."""
    found = (x < INFINITY).choose(found, INFINITY)
    return (x > 0.0).choose(found, x.equals(0.0).choose(-INFINITY, NAN))


def _of_one_and(f: Real) -> Pair:
    """Half of f * f, and what the logarithm of 1 + f is more than f less that."""
    s = f / (f + 2.0)
    square = s * s
    fourth = square * square
    rest = fourth * polynomial(fourth, *_LOG[1::2]) + square * polynomial(fourth, *_LOG[0::2])
    half = f * f * 0.5
    return half, s * (half + rest)


def log(x: Real) -> Real:
    """The natural logarithm."""
    f, exponent = _split(x)
    half, rest = _of_one_and(f)
    return _of_positive(x, exponent * LN_2[0] - ((half - (rest + exponent * LN_2[1])) - f))


def _log_to(x: Real, per: tuple[float, float], of_2: tuple[float, float]) -> Real:
    """To a base: `per` is one over its natural logarithm, `of_2` the logarithm of 2."""
    f, exponent = _split(x)
    half, rest = _of_one_and(f)
    high = ((f - half).bits() & 0xFFFFFFFF00000000).real()
    low = ((f - high) - half) + rest
    first, turns = high * per[0], exponent * of_2[0]
    total = turns + first
    error = (turns - total) + first
    return _of_positive(x, total + (error + (exponent * of_2[1] + (low + high) * per[1] + low * per[0])))


def _fine_log(x: Real) -> tuple[Pair, Real]:
    """The logarithm of a positive number over a power of two as a pair, and the exponent: 2 artanh(f / (2 + f))."""
    f, exponent = _split(x)
    below, rest = fast_two_sum(2.0, f)
    s = f / below
    high, low = two_product(s, below)
    pair = s, (((f - high) - low) - s * rest) / below
    square = product(pair, pair)
    series = tree(square[0], *(2.0 / (2 * k + 1) for k in range(3, 15)))
    inner = fast_two_sum(x.constant(_TWO_FIFTHS[0]), square[0] * series)
    inner = product(square, (inner[0], inner[1] + _TWO_FIFTHS[1]))
    outer = fast_two_sum(x.constant(_TWO_THIRDS[0]), inner[0])
    outer = product(square, (outer[0], outer[1] + (inner[1] + _TWO_THIRDS[1])))
    outer = product(pair, outer)
    total = fast_two_sum(s * 2.0, outer[0])
    return fast_two_sum(total[0], total[1] + (outer[1] + pair[1] * 2.0)), exponent


def log2(x: Real) -> Real:
    """The logarithm to base 2."""
    return _log_to(x, _PER_LN_2, (1.0, 0.0))


def _natural(pair: Pair, exponent: Real) -> Pair:
    """The logarithm with its exponent."""
    total, error = two_sum(exponent * LN_2[0], pair[0])
    return fast_two_sum(total, error + (pair[1] + exponent * LN_2[1]))


def log10(x: Real) -> Real:
    """The logarithm to base 10."""
    return _log_to(x, _PER_LN_10, _LOG10_2)


def _whole(x: Real) -> Truth:
    """Whether a number that is not negative is whole."""
    return (x >= 2.0**52) | ((x + 2.0**52) - 2.0**52).equals(x)


def pow_(x: Real, y: Real) -> Real:
    """As C99's pow (F.9.4.4)."""
    a, b = abs(x), abs(y)
    log = _natural(*_fine_log(a))
    clamped = within(y, -(2.0**65), 2.0**65)
    high, low = product(log, (clamped, x.constant(0.0)))
    inside = (high > LEAST) & (high < MOST)
    (found, _), exponent = exponential(within(high, LEAST, MOST), inside.choose(low, 0.0))
    found = scaled(found, exponent)
    grows = (a.equals(0.0) & (y < 0.0)) | (a.equals(INFINITY) & (y > 0.0))
    found = (a.equals(0.0) | a.equals(INFINITY)).choose(grows.choose(INFINITY, 0.0), found)
    whole, half = _whole(b), b * 0.5
    odd = whole & ~_whole(half)
    found = (odd & x.negative()).choose(-found, found)
    found = ((x < 0.0) & ~whole & (a < INFINITY)).choose(NAN, found)
    found = (x.equals(x) & y.equals(y)).choose(found, NAN)
    return (y.equals(0.0) | x.equals(1.0)).choose(1.0, found)
