"""Division (il.md 2.3): towards zero, downwards, of floats and decimals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from river.lang import types as t
from river.lang.operations.effects import PURE
from river.lang.operations.table import (
    Binary,
    Known,
    Operation,
    Signature,
    Types,
    alike,
    first_of,
    is_float,
    is_integer,
    strip,
)  # fmt: skip
from river.lang.values import INFINITY, NAN, TrapSignal, single

if TYPE_CHECKING:
    from collections.abc import Callable

from river.lang.operations.arithmetic import bounds, checked, half_up, quotient, remainder, wrap


def _floor_quotient(a: int, b: int) -> int:
    if b == 0:
        raise TrapSignal("division-by-zero", a, b)
    return a // b


def _floor_remainder(a: int, b: int) -> int:
    if b == 0:
        raise TrapSignal("division-by-zero", a, b)
    return a % b


def _min_by_minus_one(operation: Callable[[int, int], int], type_: t.Type) -> Binary:
    """A remainder that traps for MIN and -1, as the division does."""
    low = bounds(type_)[0] if not isinstance(type_, t.Decimal) else None

    def apply(a: int, b: int) -> int:
        if b == -1 and a == low and a < 0:
            raise TrapSignal("overflow", a, b)
        return operation(a, b)

    return apply


def divide(a: float, b: float) -> float:
    """IEEE division: x / 0 is infinite, 0 / 0 is NaN."""
    if b:
        result = a / b
        return result if result == result else NAN  # noqa: PLR0124 - NaN
    if a == 0.0 or a != a or b != b:  # noqa: PLR0124 - NaN
        return NAN
    return INFINITY if math.copysign(1.0, a) == math.copysign(1.0, b) else -INFINITY


def _divide(types: Types, result: t.Type) -> Binary:
    if result == t.F32:
        return lambda a, b: single(divide(a, b))
    if result == t.F64:
        return divide
    a, b, scaled = (cast("t.Decimal", type_) for type_ in (*types, result))
    shift = scaled.scale + b.scale - a.scale
    above, below = (10**shift, 1) if shift >= 0 else (1, 10**-shift)

    def quotient_of(x: int, y: int) -> int:
        if y == 0:
            raise TrapSignal("division-by-zero", x, y)
        return half_up(x * above, y * below)

    return checked(quotient_of, result)


def _decimal_divide_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    hint = strip(wanted)
    match types:
        case (t.Decimal() as a, t.Decimal() as b):
            pass
        case (t.Decimal() as a, None) | (None, t.Decimal() as a):
            b = a
        case _:
            return None
    if isinstance(hint, t.Decimal):
        return Signature((a, b), hint)
    return Signature((a, b), a) if a == b else None


def _divide_trap(types: Types, result: t.Type) -> Binary:
    plain_division = _divide(types, result)

    def apply(a: float, b: float) -> float:
        if b == 0.0:
            raise TrapSignal("division-by-zero", a, b)
        return plain_division(a, b)

    return apply


def _divide_traps(_types: Types, result: t.Type) -> tuple[str, ...]:
    return ("division-by-zero", "decimal-precision") if isinstance(result, t.Decimal) else ()


def _fmod(a: float, b: float) -> float:
    if a != a or b != b or b == 0.0 or a in (INFINITY, -INFINITY):  # noqa: PLR0124 - NaN
        return NAN
    return math.fmod(a, b)


def _quotient_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.DURATION, t.I64):
            return Signature((t.DURATION, t.I64), t.DURATION)
        case (t.DURATION, None):
            other, result = (t.DURATION, t.I64) if strip(wanted) == t.I64 else (t.I64, t.DURATION)
            return Signature((t.DURATION, other), result)
        case (t.DURATION | t.TIME as a, t.DURATION):
            return Signature((a, t.DURATION), t.I64)
        case (t.TIME, None):
            return Signature((t.TIME, t.DURATION), t.I64)
        case _:
            return None


def _remainder_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.DURATION | t.TIME as a, t.DURATION | None):
            return Signature((a, t.DURATION), t.DURATION)
        case _:
            return None


def _rem_trunc(_types: Types, result: t.Type) -> Binary:
    if result == t.F64:
        return _fmod
    if result == t.F32:
        return lambda a, b: single(_fmod(a, b))
    return _min_by_minus_one(remainder, result)


def _division_traps(_types: Types, result: t.Type) -> tuple[str, ...]:
    if is_float(result):
        return ()
    if isinstance(result, t.Decimal):
        return ("division-by-zero",)
    return ("division-by-zero",) if result == t.U64 else ("division-by-zero", "overflow")


def _wrapping_division(operation: Callable[[int, int], int]) -> Callable[[Types, t.Type], Binary]:
    def meaning(_types: Types, result: t.Type) -> Binary:
        return lambda a, b: wrap(operation(a, b), result)

    return meaning


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "/", first_of(_decimal_divide_rule, alike(is_float, 2, fallback=t.F64)), _divide,
        "a / b: floats by IEEE; decimals rounded half up to the scale wanted, trap on 0", _divide_traps,
        "inline", effect=PURE,
    ),
    Operation(
        "div.trap", alike(is_float, 2, fallback=t.F64), _divide_trap, "a / b of floats; traps on 0",
        ("division-by-zero",), "inline", effect=PURE,
    ),
    Operation(
        "div.trunc", first_of(_quotient_rule, alike(is_integer, 2)), lambda _types, r: checked(quotient, r),
        "the quotient towards zero", _division_traps, "inline", effect=PURE,
    ),
    Operation(
        "rem.trunc",
        first_of(_remainder_rule, alike(lambda x: is_integer(x) or is_float(x) or isinstance(x, t.Decimal),
        2)),
        _rem_trunc, "the remainder with the sign of the dividend; floats: fmod", _division_traps, "inline",
        effect=PURE,
    ),
    Operation(
        "div.trunc.wrap", alike(is_integer, 2), _wrapping_division(quotient),
        "as div.trunc, but MIN / -1 is MIN",
        ("division-by-zero",), "inline", effect=PURE,
    ),
    Operation(
        "rem.trunc.wrap", alike(is_integer, 2), _wrapping_division(remainder),
        "as rem.trunc, but of MIN and -1 it is 0",
        ("division-by-zero",), "inline", effect=PURE,
    ),
    Operation(
        "div.floor", first_of(_quotient_rule, alike(is_integer, 2)), lambda _types,
        r: checked(_floor_quotient, r),
        "the quotient rounded down", _division_traps, "inline", effect=PURE,
    ),
    Operation(
        "mod.floor", first_of(_remainder_rule, alike(is_integer, 2)),
        lambda _types, r: _min_by_minus_one(_floor_remainder, r),
        "the remainder with the sign of the divisor", _division_traps, "inline", effect=PURE,
    ),
)  # fmt: skip
