"""Transcendental functions of f64 as formulas: within one unit in the last place, the same on every machine.

Reductions, polynomials and their coefficients are those of fdlibm (Sun Microsystems 1993, 2004: s_atan, k_sin, k_cos,
e_rem_pio2, e_exp, e_log, e_asin), and of FreeBSD's e_log2 and e_log10. Where fdlibm branches, both sides are computed and one is chosen. Sums and products of
two f64 that stand for one number are those of Dekker, "A floating-point technique for extending the available precision"
(1971); arguments that many turns fit into are reduced with the bits of 2/pi that matter (Payne and Hanek 1983).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from river.lang.operations.formula import Formula, Real, Truth, Whole, evaluator, record
from river.lang.values import INFINITY, NAN

if TYPE_CHECKING:
    from collections.abc import Callable

Pair = tuple[Real, Real]
"""A number as the sum of an f64 and a far smaller one."""

_TWO_52: Final = 0x4330000000000000
"""The bits of 2^52: with a whole number below 2^52 in the fraction they are 2^52 plus that number."""
_SIGN: Final = 1 << 63
_TO_WHOLE: Final = 1.5 * 2.0**52
"""Added to a number below 2^51, it rounds it to a whole one, which is then found in the lowest bits."""


# ---------------------------------------------------------------------------------------------------- pairs


def _two_sum(a: Real, b: Real) -> Pair:
    """A sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fast_two_sum(a: Real | float, b: Real) -> Pair:
    """The same where a is zero or not smaller than b (Dekker)."""
    total = a + b
    return total, b - (total - a)


def _halves(a: Real | float) -> tuple[Real | float, Real | float]:
    scaled = a * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Real, b: Real | float) -> Pair:
    """A product and its error, far from the limits of the exponent (Dekker, Veltkamp)."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    product = a * b
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    assert isinstance(error, Real)  # noqa: S101 - a is
    return product, error


def _product(a: Pair, b: tuple[Real | float, Real | float]) -> Pair:
    high, low = _two_product(a[0], b[0])
    return _fast_two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def _quotient(a: Pair, b: Pair) -> Real:
    first = a[0] / b[0]
    high, low = _two_product(first, b[0])
    return first + ((((a[0] - high) - low) + a[1]) - first * b[1]) / b[0]


def _polynomial(x: Real, *coefficients: float) -> Real | float:
    """By Horner's scheme; the lowest comes first."""
    found: Real | float = coefficients[-1]
    for each in reversed(coefficients[:-1]):
        found = x * found + each
    return found


def _tree(x: Real, *coefficients: float) -> Real | float:
    """A long polynomial in few steps after each other: its even and its odd part side by side (Estrin)."""
    if len(coefficients) <= 3:
        return _polynomial(x, *coefficients)
    square = x * x
    return x * _tree(square, *coefficients[1::2]) + _tree(square, *coefficients[0::2])


def _defined(x: Real) -> Real:
    """The same, with the one NaN."""
    return x.equals(x).choose(x, NAN)


# ------------------------------------------------------------------------------------------- arc functions

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
_HALF_PI: Final = _ANGLES[4]


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
    return square * _polynomial(fourth, *_ATAN[0::2]) + fourth * _polynomial(fourth, *_ATAN[1::2])


def _atan(x: Real) -> Real:
    pick, rest = _near(abs(x))
    high, low = (pick(*parts) for parts in zip(*_ANGLES, strict=True))
    return _defined((high - ((rest * _bend(rest) - low) - rest)).signed(x))


def _atan2(y: Real, x: Real) -> Real:
    """Of y / x, with the error of the quotient, and pi less that where x is negative."""
    a, b = abs(y), abs(x)
    zero = b.equals(0.0)
    ratio = zero.choose(a.equals(0.0).choose(0.0, INFINITY), a / zero.choose(1.0, b))
    infinite = b.equals(INFINITY)
    ratio = infinite.choose(a.equals(INFINITY).choose(1.0, 0.0), ratio)
    exponent = (a < b).choose(b, a).bits() >> 52
    shift = (exponent < 2046).choose_whole(2046 - exponent, 1)
    scale = (shift << 52).real()
    high, low = _two_product(ratio, b * scale)
    plain = (2.0**-60 < ratio) & (ratio < 2.0**60)
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
    bend = square * _polynomial(square, *_ASIN_ABOVE) / _polynomial(square, *_ASIN_BELOW)
    root = square.sqrt()
    high = (root.bits() & 0xFFFFFFFF00000000).real()
    both = root + high
    low = (square - high * high) / both.equals(0.0).choose(1.0, both)
    return small, bend, (high, low), a


def _asin(x: Real) -> Real:
    small, bend, (high, low), a = _arc(x)
    quarter = _HALF_PI[0] / 2
    far = quarter - (((high + low) * 2.0 * bend - (_HALF_PI[1] - low * 2.0)) - (quarter - high * 2.0))
    return (a <= 1.0).choose(small.choose(a + a * bend, far).signed(x), NAN)


def _acos(x: Real) -> Real:
    small, bend, (high, low), a = _arc(x)
    near = _HALF_PI[0] - (x - (_HALF_PI[1] - x * bend))
    root = high + low
    right = (high + (bend * root + low)) * 2.0
    left = (_HALF_PI[0] - (root + (bend * root - _HALF_PI[1]))) * 2.0
    return (a <= 1.0).choose(small.choose(near, (x < 0.0).choose(left, right)), NAN)


# ------------------------------------------------------------------------------------- sine, cosine, tangent

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
    count = x * (2.0 / 3.141592653589793) + _TO_WHOLE
    turns = count - _TO_WHOLE
    first, second, third, fourth = _HALF_PI_PARTS
    near, error = _two_sum(x - turns * first, -(turns * second))
    near, other = _two_sum(near, -(turns * third))
    high, low = _fast_two_sum(near, (error + other) - turns * fourth)
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
    window = [(a << shift) | ((b >> 1) >> back) for a, b in zip(words, words[1:], strict=False)]
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
        ((piece | _TWO_52).real() - 2.0**52) * 2.0 ** (-32 * i)
        for i, piece in enumerate((upper >> 32, upper & 0xFFFFFFFF, lower >> 32, lower & 0xFFFFFFFF), start=1)
    ]
    sum_, error = _fast_two_sum(pieces[0], pieces[1])
    sum_, other = _fast_two_sum(sum_, pieces[2])
    high_, low = _product(_fast_two_sum(sum_, (error + other) + pieces[3]), _HALF_PI)
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
    rest = _polynomial(square, *_SINE[1:])
    return x, cube * _SINE[0] - (square * (y * 0.5 - cube * rest) - y)


def _cosine(x: Real, y: Real) -> tuple[Real, Real]:
    """A number, and the cosine of x + y less that."""
    square = x * x
    half = square * 0.5
    first = 1.0 - half
    rest = square * square * _polynomial(square, *_COSINE)
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
    sine, cosine = _fast_two_sum(*_sine(x, y)), _fast_two_sum(*_cosine(x, y))
    even = (turns & 1) < 1
    above = even.choose(sine[0], -cosine[0]), even.choose(sine[1], -cosine[1])
    below = even.choose(cosine[0], sine[0]), even.choose(cosine[1], sine[1])
    return _quotient(above, below)


def _of_angle(x: Real, found: Real, far: str) -> Real:
    size = abs(x)
    return _defined(found.rarely((_FAR <= size) & (size < INFINITY), far, x))


def _sin(x: Real) -> Real:
    return _of_angle(x, (abs(x) < 2.0**-27).choose(x, _circular(_turned(x), 0)), "sin.far")


def _cos(x: Real) -> Real:
    return _of_angle(x, _circular(_turned(x), 1), "cos.far")


def _tan(x: Real) -> Real:
    return _of_angle(x, (abs(x) < 2.0**-27).choose(x, _tangent(_turned(x))), "tan.far")


def _odd(x: Real, found: Real) -> Real:
    return (found.bits() ^ (x.bits() & _SIGN)).real()


# ---------------------------------------------------------------------------- exponential and hyperbolic

_LN_2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_EXP: Final = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)  # fmt: skip
_MOST, _LEAST = 720.0, -750.0
"""The exponentials beyond are infinite, and zero."""


def _power_of_two(exponent: Real) -> Real:
    """2 to a whole number from -1022 to 1023."""
    return (((exponent + _TO_WHOLE).bits() + 1023) << 52).real()


def _scaled(x: Real, exponent: Real) -> Real:
    """x times 2 to a whole number; only the last product is rounded."""
    half = (exponent * 0.5 + _TO_WHOLE) - _TO_WHOLE
    return x * _power_of_two(half) * _power_of_two(exponent - half)


def _exponential(x: Real, y: Real | float) -> tuple[Pair, Real]:
    """e to the x + y as a pair near 1 and the exponent of 2."""
    turns = (x * 1.4426950408889634 + _TO_WHOLE) - _TO_WHOLE
    high, low = x - turns * _LN_2[0], turns * _LN_2[1] - y
    rest = high - low
    square = rest * rest
    c = rest - square * _polynomial(square, *_EXP)
    first, error = _fast_two_sum(1.0, high)
    return _fast_two_sum(first, error - (low - rest * c / (2.0 - c))), turns


def _within(x: Real, least: float, most: float) -> Real:
    below = (x < least).choose(least, x)
    return (most < below).choose(most, below)


def _exp(x: Real) -> Real:
    (high, _), exponent = _exponential(_within(x, _LEAST, _MOST), 0.0)
    return _defined(_scaled(high, exponent))


def _sides(a: Real) -> tuple[Pair, Pair, Real]:
    """e^a - e^-a and e^a + e^-a, of a not negative, both over 2 to an exponent."""
    (high, low), exponent = _exponential(a, 0.0)
    inverse = 1.0 / high
    product, error = _two_product(inverse, high)
    rest = inverse * (((1.0 - product) - error) - low * inverse)
    small = _power_of_two((exponent < 60.0).choose(exponent, 60.0) * -2.0)
    inverse, rest = inverse * small, rest * small
    under, over = _fast_two_sum(high, -inverse), _fast_two_sum(high, inverse)
    return (
        _fast_two_sum(under[0], under[1] + (low - rest)),
        _fast_two_sum(over[0], over[1] + (low + rest)),
        exponent,
    )


def _near_sinh(a: Real) -> Pair:
    """The series of the hyperbolic sine, below 1."""
    factors, factorial = [1.0], 1
    for k in range(3, 23, 2):
        factorial *= k * (k - 1)
        factors.append(1.0 / factorial)
    square = a * a
    return _fast_two_sum(a, a * square * _tree(square, *factors[1:]))


def _sinh(x: Real) -> Real:
    a = abs(x)
    (under, _), _, exponent = _sides(_within(a, 0.0, _MOST))
    far = _scaled(under, exponent - 1.0)
    return _defined((a < 1.0).choose(_near_sinh(a)[0], far).signed(x))


def _cosh(x: Real) -> Real:
    _, (over, _), exponent = _sides(_within(abs(x), 0.0, _MOST))
    return _defined(_scaled(over, exponent - 1.0))


def _tanh(x: Real) -> Real:
    a = _within(abs(x), 0.0, 40.0)
    under, over, exponent = _sides(a)
    small, near = a < 1.0, _near_sinh(a)
    scale = _power_of_two(1.0 - exponent)
    under = small.choose(near[0] * scale, under[0]), small.choose(near[1] * scale, under[1])
    found = (a < 2.0**-27).choose(a, _quotient(under, over))
    return _defined(found.signed(x))


# ------------------------------------------------------------------------------------- logarithms and powers

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
    exponent = ((bits >> 52) | _TWO_52).real() - small.choose(2.0**52 + 1023.0 + 54.0, 2.0**52 + 1023.0)
    return fraction, exponent


def _of_positive(x: Real, found: Real) -> Real:
    """A logarithm."""
    found = (x < INFINITY).choose(found, INFINITY)
    return (0.0 < x).choose(found, x.equals(0.0).choose(-INFINITY, NAN))


def _of_one_and(f: Real) -> Pair:
    """f * f / 2, and what the logarithm of 1 + f is more than f less that."""
    s = f / (f + 2.0)
    square = s * s
    fourth = square * square
    rest = fourth * _polynomial(fourth, *_LOG[1::2]) + square * _polynomial(fourth, *_LOG[0::2])
    half = f * f * 0.5
    return half, s * (half + rest)


def _log(x: Real) -> Real:
    f, exponent = _split(x)
    half, rest = _of_one_and(f)
    return _of_positive(x, exponent * _LN_2[0] - ((half - (rest + exponent * _LN_2[1])) - f))


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
    below, rest = _fast_two_sum(2.0, f)
    s = f / below
    high, low = _two_product(s, below)
    pair = s, (((f - high) - low) - s * rest) / below
    square = _product(pair, pair)
    series = _tree(square[0], *(2.0 / (2 * k + 1) for k in range(3, 15)))
    inner = _fast_two_sum(x.constant(_TWO_FIFTHS[0]), square[0] * series)
    inner = _product(square, (inner[0], inner[1] + _TWO_FIFTHS[1]))
    outer = _fast_two_sum(x.constant(_TWO_THIRDS[0]), inner[0])
    outer = _product(square, (outer[0], outer[1] + (inner[1] + _TWO_THIRDS[1])))
    outer = _product(pair, outer)
    total = _fast_two_sum(s * 2.0, outer[0])
    return _fast_two_sum(total[0], total[1] + (outer[1] + pair[1] * 2.0)), exponent


def _log2(x: Real) -> Real:
    return _log_to(x, _PER_LN_2, (1.0, 0.0))


def _natural(pair: Pair, exponent: Real) -> Pair:
    """The logarithm with its exponent."""
    total, error = _two_sum(exponent * _LN_2[0], pair[0])
    return _fast_two_sum(total, error + (pair[1] + exponent * _LN_2[1]))


def _log10(x: Real) -> Real:
    return _log_to(x, _PER_LN_10, _LOG10_2)


def _whole(x: Real) -> Truth:
    """Whether a number that is not negative is whole."""
    return (2.0**52 <= x) | ((x + 2.0**52) - 2.0**52).equals(x)


def _pow(x: Real, y: Real) -> Real:
    """As C99's pow (F.9.4.4)."""
    a, b = abs(x), abs(y)
    log = _natural(*_fine_log(a))
    clamped = _within(y, -(2.0**65), 2.0**65)
    high, low = _product(log, (clamped, x.constant(0.0)))
    inside = (_LEAST < high) & (high < _MOST)
    (found, _), exponent = _exponential(_within(high, _LEAST, _MOST), inside.choose(low, 0.0))
    found = _scaled(found, exponent)
    grows = (a.equals(0.0) & (y < 0.0)) | (a.equals(INFINITY) & (0.0 < y))
    found = (a.equals(0.0) | a.equals(INFINITY)).choose(grows.choose(INFINITY, 0.0), found)
    whole, half = _whole(b), b * 0.5
    odd = whole & ~_whole(half)
    found = (odd & x.negative()).choose(-found, found)
    found = ((x < 0.0) & ~whole & (a < INFINITY)).choose(NAN, found)
    found = (x.equals(x) & y.equals(y)).choose(found, NAN)
    return (y.equals(0.0) | x.equals(1.0)).choose(1.0, found)


# ------------------------------------------------------------------------------------------------ the table

_FORMULAS: Final[dict[str, tuple[Callable[..., Real], int]]] = {
    "exp": (_exp, 1), "log": (_log, 1), "log2": (_log2, 1), "log10": (_log10, 1), "pow": (_pow, 2),
    "sin": (_sin, 1), "cos": (_cos, 1), "tan": (_tan, 1),
    "sin.far": (lambda x: _odd(x, _circular(_turned_far(x), 0)), 1),
    "cos.far": (lambda x: _circular(_turned_far(x), 1), 1),
    "tan.far": (lambda x: _odd(x, _tangent(_turned_far(x))), 1),
    "asin": (_asin, 1), "acos": (_acos, 1), "atan": (_atan, 1), "atan2": (_atan2, 2),
    "sinh": (_sinh, 1), "cosh": (_cosh, 1), "tanh": (_tanh, 1),
}  # fmt: skip

NAMES: Final = tuple(name for name in _FORMULAS if "." not in name)
"""The functions."""
OPERANDS: Final = {name: count for name, (_, count) in _FORMULAS.items()}


@cache
def formula(name: str) -> Formula:
    """The formula of a function, or of one that it calls."""
    make, operands = _FORMULAS[name]
    return record(name, make, operands)


@cache
def meaning(name: str) -> Callable[..., float]:
    """A function on Python numbers."""
    return evaluator(formula(name), meaning)
