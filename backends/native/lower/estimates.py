"""Functions of f32 by estimates: a shorter formula, and how far it is from the long one at most.

An f32 is what the formula makes, rounded (DESIGN 85). Mostly that is known from an estimate already: where both ends of the range
that the formula's result is in are rounded to the same f32, so is the result. So the bits are the formula's, whatever the
estimate is made of, and products and sums may be rounded together where a processor has an instruction for that.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from river.classes import frozen
from river.lang.operations.formula import Formula, Real, record
from river.lang.operations.functions.pairs import HALF_PI, polynomial

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen
class Estimate:
    """A formula, and the bound of its error, relative to what it makes of any f32 but a NaN. A NaN it makes of a NaN."""

    formula: Formula
    error: float


_ATAN: Final = (
    0.9999999999984465, -0.33333333270684, 0.19999995789112718, -0.1428560207162452, 0.11109537092335896,
    -0.09077527380413858, 0.07617388261112383, -0.06375160831686227, 0.05063511502386312, -0.035511911189291256,
    0.020161791849470773, -0.00837493411795549, 0.0022087552162793145, -0.00027362926601199434,
)  # fmt: skip
"""atan(t) / t by the square of t, for t from 0 to 1: interpolated at the zeros of a Chebyshev polynomial, 2^-39 off at most."""


def _atan(x: Real) -> Real:
    a = abs(x)
    steep = a > 1.0
    tangent = steep.choose(1.0, a) / steep.choose(a, 1.0)
    square = tangent * tangent
    fourth = square * square
    angle = tangent * (square * polynomial(fourth, *_ATAN[1::2]) + polynomial(fourth, *_ATAN[0::2]))
    return steep.choose(HALF_PI[0] - angle, angle).signed(x)


_ESTIMATES: Final[dict[str, tuple[Callable[..., Real], int, float]]] = {"atan": (_atan, 1, 2.0**-37)}

NAMES: Final = tuple(_ESTIMATES)
"""The functions that have one."""


@cache
def estimate(name: str) -> Estimate | None:
    """That of a function, if it has one."""
    if name not in _ESTIMATES:
        return None
    make, operands, error = _ESTIMATES[name]
    return Estimate(record(f"{name}.estimate", make, operands), error)
