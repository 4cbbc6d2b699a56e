"""The arc functions (fdlibm's s_atan, e_asin, e_acos)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from river.lang.operations.functions.pairs import HALF_PI, Pair, defined, polynomial, two_product
from river.lang.values import INFINITY, NAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from river.lang.operations.formula import Real, Truth


_ATAN: Final = (
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01,
    9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02,
    4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02,
)  # fmt: skip
_ANGLES: Final = ((0.0, 0.0), (0.4636476090008061, 2.2698777452961687e-17), (0.7853981633974483, 3.061616997868383e-17),
    (0.982793723247329, 1.3903311031230998e-17), (1.5707963267948966, 6.123233995736766e-17))  # fmt: skip
"""The arc tangents of 0, 1/2, 1, 3/2 and infinity."""
_OPPOSITE: Final = ((3.141592653589793, 1.2246467991473532e-16), (2.677945044588987, 1.5527705369303147e-16),
    (2.356194490192345, 9.184850993605148e-17), (2.158798930342464, 2.1958367134601997e-16),
    (1.5707963267948966, 6.123233995736766e-17))  # fmt: skip
"""Pi less those."""


def _near(x: Real) -> tuple[Callable[..., Real], Real]:
    """What chooses by the interval that x, not negative, is in; the tangent of its angle less that of `_ANGLES`."""
    bounds = [x < bound for bound in (0.4375, 0.6875, 1.1875, 2.4375)]

    def pick(*options: Real | float) -> Real:
        found = bounds[-1].choose(options[-2], options[-1])
        for bound, option in zip(bounds[-2::-1], options[-3::-1], strict=True):
            found = bound.choose(option, found)
        return found

    above = pick(x, x + x - 1.0, x - 1.0, x - 1.5, -1.0)
    return pick, above / pick(1.0, x + 2.0, x + 1.0, x * 1.5 + 1.0, x)


def _bend(x: Real) -> Real:
    """(x - atan x) / x near 0."""
    square = x * x
    fourth = square * square
    return square * polynomial(fourth, *_ATAN[0::2]) + fourth * polynomial(fourth, *_ATAN[1::2])


def atan(x: Real) -> Real:
    """The arc tangent."""
    pick, rest = _near(abs(x))
    high, low = (pick(*parts) for parts in zip(*_ANGLES, strict=True))
    return defined((high - ((rest * _bend(rest) - low) - rest)).signed(x))


def atan2(y: Real, x: Real) -> Real:
    """Of y / x, with the error of the quotient, and pi less that where x is negative."""
    a, b = abs(y), abs(x)
    zero = b.equals(0.0)
    ratio = zero.choose(a.equals(0.0).choose(0.0, INFINITY), a / zero.choose(1.0, b))
    infinite = b.equals(INFINITY)
    ratio = infinite.choose(a.equals(INFINITY).choose(1.0, 0.0), ratio)
    exponent = (a < b).choose(b, a).bits() >> 52
    shift = (exponent < 2046).choose_whole(2046 - exponent, 1)
    scale = (shift << 52).real()
    high, low = two_product(ratio, b * scale)
    plain = (ratio > 2.0**-60) & (ratio < 2.0**60) & ~infinite
    divisor = plain.choose(b * scale * (ratio * ratio + 1.0), 1.0)
    error = plain.choose((((a * scale) - high) - low) / divisor, 0.0)
    back = x.negative()
    pick, rest = _near(ratio)
    sides = zip(zip(*_ANGLES, strict=True), zip(*_OPPOSITE, strict=True), strict=True)
    base, tail = (back.choose(pick(*there), pick(*here)) for here, there in sides)
    rest = back.choose(-rest, rest)
    tail = tail + back.choose(-error, error)
    found = (base - ((rest * _bend(rest) - tail) - rest)).signed(y)
    return (x.equals(x) & y.equals(y)).choose(found, NAN)


_ASIN_ABOVE: Final = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02,
    7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
_ASIN_BELOW: Final = (
    1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01, 7.70381505559019352791e-02,
)  # fmt: skip


def _arc(x: Real) -> tuple[Truth, Real, Pair, Real]:
    """Whether |x| is below 1/2; (asin t - t) / t of t, which is |x|, or the root of (1 - |x|) / 2; that root; |x|."""
    a = abs(x)
    small = a < 0.5
    square = small.choose(a * a, (1.0 - a) * 0.5)
    bend = square * polynomial(square, *_ASIN_ABOVE) / polynomial(square, *_ASIN_BELOW)
    root = square.sqrt()
    high = (root.bits() & 0xFFFFFFFF00000000).real()
    both = root + high
    low = (square - high * high) / both.equals(0.0).choose(1.0, both)
    return small, bend, (high, low), a


def asin(x: Real) -> Real:
    """The arc sine."""
    small, bend, (high, low), a = _arc(x)
    quarter = HALF_PI[0] / 2
    far = quarter - (((high + low) * 2.0 * bend - (HALF_PI[1] - low * 2.0)) - (quarter - high * 2.0))
    return (a <= 1.0).choose(small.choose(a + a * bend, far).signed(x), NAN)


def acos(x: Real) -> Real:
    """The arc cosine."""
    small, bend, (high, low), a = _arc(x)
    near = HALF_PI[0] - (x - (HALF_PI[1] - x * bend))
    root = high + low
    right = (high + (bend * root + low)) * 2.0
    left = (HALF_PI[0] - (root + (bend * root - HALF_PI[1]))) * 2.0
    return (a <= 1.0).choose(small.choose(near, (x < 0.0).choose(left, right)), NAN)
