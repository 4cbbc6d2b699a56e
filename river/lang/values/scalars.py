"""What all values are made of: the bounds of numbers, the one NaN, exact sums; marks and signals."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, Final

from river.classes import frozen
from river.lang import types as t

Value = Any
Order = Callable[[Any], Any]

NAN: Final = math.nan
INFINITY: Final = math.inf
MASK64: Final = (1 << 64) - 1
BOUNDS: Final[dict[t.Type, tuple[int, int]]] = {
    t.I32: (-(1 << 31), (1 << 31) - 1), t.I64: (-(1 << 63), (1 << 63) - 1), t.U64: (0, MASK64),
    t.I128: (-(1 << 127), (1 << 127) - 1), t.TIME: (-(1 << 63), (1 << 63) - 1), t.DURATION: (-(1 << 63),
    (1 << 63) - 1),
}  # fmt: skip


class TrapSignal(Exception):  # noqa: N818 - not yet the trap: that has a place
    """The meaning of an operation cannot go on: a code of il.md 2.4, and the values it complains of."""

    def __init__(self, code: str, *operands: Value) -> None:
        super().__init__(code, *operands)
        self.code = code
        self.operands = operands


@frozen
class Mark:
    """A promise in a queue: no later item has a key below `key` (il.md P2)."""

    key: Value


END: Final = Mark(INFINITY)


def single(value: float) -> float:
    """`value` rounded to 32 bits; beyond the range infinite."""
    try:
        return _FLOAT.unpack(_FLOAT.pack(value))[0] if value == value else NAN  # noqa: PLR0124 - NaN
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY


_FLOAT: Final = struct.Struct("<f")

Sum = tuple[int, int, int, int]
"""An exact float sum: the finite part times 2^1074, and how many +inf, -inf and NaN were added less those subtracted."""

ZERO_SUM: Final[Sum] = (0, 0, 0, 0)
_SUM_UNIT: Final = 1 << 1074


def add_to_sum(total: Sum, value: float, times: int = 1) -> Sum:
    """`total` with `value` added `times` times (-1: subtracted)."""
    whole, up, down, undefined = total
    if value - value == 0.0:
        above, below = value.as_integer_ratio()
        return whole + times * (above << (1075 - below.bit_length())), up, down, undefined
    if value != value:  # noqa: PLR0124 - NaN
        return whole, up, down, undefined + times
    return (whole, up + times, down, undefined) if value > 0 else (whole, up, down + times, undefined)


def sum_value(total: Sum) -> float:
    """The sum, correctly rounded once. Beyond the range it is infinite; inf - inf and NaN give NaN; -0.0 sums to 0.0."""
    whole, up, down, undefined = total
    if undefined or (up and down):
        return NAN
    if up or down:
        return INFINITY if up else -INFINITY
    try:
        return whole / _SUM_UNIT
    except OverflowError:
        return INFINITY if whole > 0 else -INFINITY
