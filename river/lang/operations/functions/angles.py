"""Sine, cosine and tangent (fdlibm's k_sin, k_cos, e_rem_pio2).

Angles of many turns are reduced with the bits of 2/pi that matter for them (Payne and Hanek 1983).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Final

from river.lang.operations.formula import Real, Whole
from river.lang.operations.functions.pairs import (
    HALF_PI,
    TO_WHOLE,
    TWO_52,
    defined,
    fast_two_sum,
    polynomial,
    product,
    quotient,
    two_sum,
)
from river.lang.values import INFINITY

_SIGN: Final = 1 << 63


_SINE: Final = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
    -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COSINE: Final = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07,
    2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip
_HALF_PI_PARTS: Final = (
    1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624871116645580e-21, 8.47842766036889956997e-32,
)  # fmt: skip
"""Three of 33 bits each, and the rest."""
_FAR: Final = 1647099.0
"""From here on a multiple of a part may need more than 53 bits: 2^20 quarter turns."""

Turned = tuple[Whole, Real, Real]
"""An angle as quarter turns, of which the two lowest bits count, and a rest of at most pi/4 as a pair."""


def _turned(x: Real) -> Turned:
    count = x * (2.0 / 3.141592653589793) + TO_WHOLE
    turns = count - TO_WHOLE
    first, second, third, fourth = _HALF_PI_PARTS
    near, error = two_sum(x - turns * first, -(turns * second))
    near, other = two_sum(near, -(turns * third))
    high, low = fast_two_sum(near, (error + other) - turns * fourth)
    return count.bits(), high, low


def _turned_far(x: Real) -> Turned:
    """The same of any |x| from 2^20 on (Payne and Hanek), and the signs of both parts are those for |x|."""
    bits = abs(x).bits()
    fraction = (bits & ((1 << 52) - 1)) | (1 << 52)
    place = (bits >> 52) - 1013  # of the first bit of 2/pi of which the product is less than four turns
    index, shift = place >> 6, place & 63
    table = _two_over_pi()
    words = [((index + i) & 31).entry(table) for i in range(4)]
    back = (shift ^ 63) & 63
    window = [(a << shift) | ((b >> 1) >> back) for a, b in pairwise(words)]
    last = fraction * window[2]
    high = fraction.high(window[2])
    middle = fraction * window[1] + high
    carry = (middle < high).choose_whole(1, 0)
    first = fraction * window[0] + fraction.high(window[1]) + carry
    upper, lower = (first << 2) | (middle >> 62), (middle << 2) | (last >> 62)
    more = upper >> 63
    borrow = (lower < 1).choose_whole(1, 0)
    negative = ~(more < 1)
    upper = negative.choose_whole((upper ^ ((1 << 64) - 1)) + borrow, upper)
    lower = negative.choose_whole((lower ^ ((1 << 64) - 1)) + 1, lower)
    pieces = [
        ((piece | TWO_52).real() - 2.0**52) * 2.0 ** (-32 * i)
        for i, piece in enumerate((upper >> 32, upper & 0xFFFFFFFF, lower >> 32, lower & 0xFFFFFFFF), start=1)
    ]
    sum_, error = fast_two_sum(pieces[0], pieces[1])
    sum_, other = fast_two_sum(sum_, pieces[2])
    high_, low = product(fast_two_sum(sum_, (error + other) + pieces[3]), HALF_PI)
    return (first >> 62) + more, negative.choose(-high_, high_), negative.choose(-low, low)


@cache
def _two_over_pi() -> tuple[int, ...]:
    """2/pi in words of 64 bits: one before the point, 31 after it."""
    unit = 1 << 2200

    def arc(inverse: int) -> int:
        """The arc tangent of 1/inverse."""
        found, power, k = 0, unit // inverse, 0
        while power:
            found += (-1) ** k * (power // (2 * k + 1))
            power //= inverse * inverse
            k += 1
        return found

    pi = 16 * arc(5) - 4 * arc(239)  # Machin 1706
    bits = (2 * unit << 31 * 64) // pi
    return tuple(bits >> 64 * (31 - i) & (1 << 64) - 1 for i in range(32))


def _sine(x: Real, y: Real) -> tuple[Real, Real]:
    """x, and the sine of x + y less x."""
    square = x * x
    cube = square * x
    rest = polynomial(square, *_SINE[1:])
    return x, cube * _SINE[0] - (square * (y * 0.5 - cube * rest) - y)


def _cosine(x: Real, y: Real) -> tuple[Real, Real]:
    """A number, and the cosine of x + y less that."""
    square = x * x
    half = square * 0.5
    first = 1.0 - half
    rest = square * square * polynomial(square, *_COSINE)
    return first, ((1.0 - first) - half) + (rest - x * y)


def _circular(turned: Turned, quarter: int) -> Real:
    """The sine, `quarter` turns further."""
    turns, x, y = turned
    turns = turns + quarter
    (s, s_low), (c, c_low) = _sine(x, y), _cosine(x, y)
    even = (turns & 1) < 1
    found = even.choose(s + s_low, c + c_low)
    return (found.bits() ^ ((turns & 2) << 62)).real()


def _tangent(turned: Turned) -> Real:
    turns, x, y = turned
    sine, cosine = fast_two_sum(*_sine(x, y)), fast_two_sum(*_cosine(x, y))
    even = (turns & 1) < 1
    above = even.choose(sine[0], -cosine[0]), even.choose(sine[1], -cosine[1])
    below = even.choose(cosine[0], sine[0]), even.choose(cosine[1], sine[1])
    return quotient(above, below)


def _of_angle(x: Real, found: Real, far: str) -> Real:
    size = abs(x)
    return defined(found.rarely((size >= _FAR) & (size < INFINITY), far, x))


def sin(x: Real) -> Real:
    """The sine."""
    return _of_angle(x, (abs(x) < 2.0**-27).choose(x, _circular(_turned(x), 0)), "sin.far")


def cos(x: Real) -> Real:
    """The cosine."""
    return _of_angle(x, _circular(_turned(x), 1), "cos.far")


def tan(x: Real) -> Real:
    """The tangent."""
    return _of_angle(x, (abs(x) < 2.0**-27).choose(x, _tangent(_turned(x))), "tan.far")


def _odd(x: Real, found: Real) -> Real:
    return (found.bits() ^ (x.bits() & _SIGN)).real()


def far_sin(x: Real) -> Real:
    """The sine of a large |x|."""
    return _odd(x, _circular(_turned_far(x), 0))


def far_cos(x: Real) -> Real:
    """The cosine of a large |x|."""
    return _circular(_turned_far(x), 1)


def far_tan(x: Real) -> Real:
    """The tangent of a large |x|."""
    return _odd(x, _tangent(_turned_far(x)))
