"""Arithmetic (il.md 2.3): trapping, wrapping, dividing, shifting; floats by IEEE, decimals exact, time and duration."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from river.lang import types as t
from river.lang.operations.table import (
    Binary,
    Known,
    Meaning,
    Operation,
    Rule,
    Signature,
    Types,
    Unary,
    alike,
    first_of,
    is_float,
    is_integer,
    is_number,
    is_scalar,
    itself,
    strip,
)  # fmt: skip
from river.lang.values import BOUNDS, INFINITY, NAN, TrapSignal, single, total_key

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS = 38  # of the widest decimal

# ---------------------------------------------------------------------------------------------- whole numbers


def checked(operation: Callable[[int, int], int], type_: t.Type) -> Binary:
    """`operation` that traps where its result is no value of `type_`."""
    low, high, code = bounds(type_)

    def apply(a: int, b: int) -> int:
        result = operation(a, b)
        if low <= result <= high:
            return result
        raise TrapSignal(code, a, b)

    return apply


def bounds(type_: t.Type) -> tuple[int, int, str]:
    """The least and the greatest number of `type_`, and the code of leaving them."""
    if isinstance(type_, t.Decimal):
        most = 10**type_.precision - 1
        return -most, most, "decimal-precision"
    return (*BOUNDS[type_], "overflow")


def wrap(value: int, type_: t.Type) -> int:
    """`value` modulo two to the width of `type_`, in its range."""
    low, high = BOUNDS[type_]
    return (value - low & high - low) + low


def width(type_: t.Type) -> int:
    """How many bits a whole number has."""
    low, high = BOUNDS[type_]
    return (high - low).bit_length()


def quotient(a: int, b: int) -> int:
    """A / b without its fraction.

    Raises: TrapSignal division-by-zero.
    """
    if b == 0:
        raise TrapSignal("division-by-zero", a, b)
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def remainder(a: int, b: int) -> int:
    """A - quotient(a, b) * b."""
    return a - quotient(a, b) * b


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


def half_up(above: int, below: int) -> int:
    """Above / below rounded to the nearest whole number, halves away from zero."""
    result = (2 * abs(above) + abs(below)) // (2 * abs(below))
    return result if (above < 0) == (below < 0) else -result


# ---------------------------------------------------------------------------------------------- + - *


def _float(operation: Callable[[float, float], float], type_: t.Type) -> Binary:
    """`operation`, rounded to the type, with the one NaN."""
    if type_ == t.F32:
        return lambda a, b: single(operation(a, b))

    def apply(a: float, b: float) -> float:
        result = operation(a, b)
        return result if result == result else NAN

    return apply


def _plus(types: Types, result: t.Type) -> Binary:
    if result in (t.STRING, t.BYTES):
        return lambda a, b: a + b
    if is_float(result):
        return _float(lambda a, b: a + b, result)
    if isinstance(result, t.Decimal):
        return _decimal_sum(types, result, 1)
    low, high, code = bounds(result)

    def add(a: int, b: int) -> int:
        c = a + b
        if low <= c <= high:
            return c
        raise TrapSignal(code, a, b)

    return add


def _minus(types: Types, result: t.Type) -> Binary:
    if is_float(result):
        return _float(lambda a, b: a - b, result)
    if isinstance(result, t.Decimal):
        return _decimal_sum(types, result, -1)
    low, high, code = bounds(result)

    def subtract(a: int, b: int) -> int:
        c = a - b
        if low <= c <= high:
            return c
        raise TrapSignal(code, a, b)

    return subtract


def _times(_types: Types, result: t.Type) -> Binary:
    if is_float(result):
        return _float(lambda a, b: a * b, result)
    return checked(lambda a, b: a * b, result)


def _decimal_sum(types: Types, result: t.Decimal, sign: int) -> Binary:
    a_unit, b_unit = (10 ** (result.scale - type_.scale) for type_ in types if isinstance(type_, t.Decimal))
    return checked(lambda a, b: a * a_unit + sign * b * b_unit, result)


def _decimal_sum_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.Decimal() as a, t.Decimal() as b):
            pass
        case (t.Decimal() as a, None) | (None, t.Decimal() as a):
            b = a
        case (None, None) if isinstance(strip(wanted), t.Decimal):
            a = b = strip(wanted)
            assert isinstance(a, t.Decimal) and isinstance(b, t.Decimal)
        case _:
            return None
    if a == b:
        return Signature((a, b), a)
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    return Signature((a, b), t.Decimal(min(DIGITS, digits), scale))


def _decimal_times_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    hint = strip(wanted)
    match types:
        case (t.Decimal() as a, t.Decimal() as b):
            pass
        case (t.Decimal() as a, None) | (None, t.Decimal() as a):
            b = a
        case _:
            return None
    scale = a.scale + b.scale
    if scale > DIGITS:
        return None
    if isinstance(hint, t.Decimal) and hint.scale == scale:
        return Signature((a, b), hint)
    return Signature((a, b), t.Decimal(min(DIGITS, a.precision + b.precision), scale))


def _plus_time_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.TIME, t.DURATION | None):
            return Signature((t.TIME, t.DURATION), t.TIME)
        case (t.DURATION | None, t.TIME):
            return Signature((t.DURATION, t.TIME), t.TIME)
        case (t.DURATION, t.DURATION):
            return Signature((t.DURATION, t.DURATION), t.DURATION)
        case (t.DURATION, None):
            other = t.TIME if strip(wanted) == t.TIME else t.DURATION
            return Signature((t.DURATION, other), other)
        case (None, t.DURATION):
            other = t.TIME if strip(wanted) == t.TIME else t.DURATION
            return Signature((other, t.DURATION), other)
        case _:
            return None


def _minus_time_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.TIME, None) if strip(wanted) == t.DURATION:
            return Signature((t.TIME, t.TIME), t.DURATION)
        case (t.TIME, t.DURATION | None):
            return Signature((t.TIME, t.DURATION), t.TIME)
        case (t.TIME | None, t.TIME):
            return Signature((t.TIME, t.TIME), t.DURATION)
        case (t.DURATION, t.DURATION | None):
            return Signature((t.DURATION, t.DURATION), t.DURATION)
        case (None, t.DURATION):
            other = t.TIME if strip(wanted) == t.TIME else t.DURATION
            return Signature((other, t.DURATION), other)
        case _:
            return None


def _times_duration_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case (t.DURATION, t.I64 | None):
            return Signature((t.DURATION, t.I64), t.DURATION)
        case (t.I64 | None, t.DURATION):
            return Signature((t.I64, t.DURATION), t.DURATION)
        case _:
            return None


def _int_or_float(type_: t.Type) -> bool:
    return is_integer(type_) or is_float(type_)


def _overflows(_types: Types, result: t.Type) -> tuple[str, ...]:
    if isinstance(result, t.Decimal):
        return ("decimal-precision",)
    return ("overflow",) if result in BOUNDS else ()


def _negates_out(__types: Types, result: t.Type) -> tuple[str, ...]:
    return ("overflow",) if result in BOUNDS else ()


def _absolute_out(__types: Types, result: t.Type) -> tuple[str, ...]:
    return ("overflow",) if result in BOUNDS and BOUNDS[result][0] < 0 else ()


# ---------------------------------------------------------------------------------------------- one operand


def _negate(_types: Types, result: t.Type) -> Unary:
    if is_float(result):
        return lambda a: -a if a == a else NAN
    low, high, code = bounds(result)

    def negate(a: int) -> int:
        if low <= -a <= high:
            return -a
        raise TrapSignal(code, a)

    return negate


def _absolute(_types: Types, result: t.Type) -> Unary:
    if is_float(result):
        return lambda a: abs(a) if a == a else NAN
    _low, high, code = bounds(result)

    def absolute(a: int) -> int:
        if abs(a) <= high:
            return abs(a)
        raise TrapSignal(code, a)

    return absolute


def _signed(type_: t.Type) -> bool:
    return is_number(type_) or type_ == t.DURATION


# ---------------------------------------------------------------------------------------------- division


def divide(a: float, b: float) -> float:
    """IEEE division: x / 0 is infinite, 0 / 0 is NaN."""
    if b:
        result = a / b
        return result if result == result else NAN
    if a == 0.0 or a != a or b != b:
        return NAN
    return INFINITY if math.copysign(1.0, a) == math.copysign(1.0, b) else -INFINITY


def _divide(types: Types, result: t.Type) -> Binary:
    if result == t.F32:
        return lambda a, b: single(divide(a, b))
    if result == t.F64:
        return divide
    a, b = types
    assert isinstance(a, t.Decimal) and isinstance(b, t.Decimal) and isinstance(result, t.Decimal)
    shift = result.scale + b.scale - a.scale
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
    if a != a or b != b or b == 0.0 or a in (INFINITY, -INFINITY):
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
    def meaning(__types: Types, result: t.Type) -> Binary:
        return lambda a, b: wrap(operation(a, b), result)

    return meaning


# ---------------------------------------------------------------------------------------------- bits


def _wrapping(operation: Callable[[int, int], int]) -> Callable[[Types, t.Type], Binary]:
    def meaning(__types: Types, result: t.Type) -> Binary:
        low, high = BOUNDS[result]
        mask = high - low
        return lambda a, b: (operation(a, b) - low & mask) + low

    return meaning


def _wrapping_one(operation: Callable[[int], int]) -> Callable[[Types, t.Type], Unary]:
    def meaning(__types: Types, result: t.Type) -> Unary:
        return lambda a: wrap(operation(a), result)

    return meaning


def _shift(operation: Callable[[int, int, int], int], *, trap: bool) -> Callable[[Types, t.Type], Meaning]:
    """`operation(value, count, mask)`; the count is taken modulo the width, or traps outside of it."""

    def meaning(_types: Types, result: t.Type) -> Meaning:
        bits = width(result)
        mask = (1 << bits) - 1

        def apply(a: int, n: int) -> int:
            if trap and not 0 <= n < bits:
                raise TrapSignal("shift-range", a, n)
            return wrap(operation(a, n % bits, mask), result)

        return apply

    return meaning


def _left(a: int, n: int, _mask: int) -> int:
    return a << n


def _right(a: int, n: int, _mask: int) -> int:
    return a >> n


def _right_zeros(a: int, n: int, mask: int) -> int:
    return (a & mask) >> n


def _bitwise(type_: t.Type) -> bool:
    return is_integer(type_) or type_ == t.BOOL


def _bits(operation: Callable[[Any, Any], Any]) -> Callable[[Types, t.Type], Meaning]:
    return lambda _types, _result: operation


# ---------------------------------------------------------------------------------------------- min, max


def _extreme(_types: Types, _result: t.Type, *, greatest: bool) -> Binary:
    def choose(a: Any, b: Any) -> Any:
        if a != a or b != b:
            return NAN
        return (max(a, b)) if greatest else (min(a, b))

    return choose


def _sql_extreme(_types: Types, result: t.Type, *, greatest: bool) -> Binary:
    order = total_key(strip(result) or result) or itself

    def choose(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        x, y = order(a), order(b)
        return (b if y > x else a) if greatest else (b if y < x else a)

    return choose


def _sql_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    inner = alike(is_scalar, 2)(tuple(map(strip, types)), strip(wanted))
    if inner is None:
        return None
    type_ = t.Optional(inner.result)
    return Signature((type_, type_), type_)


def _alike(allowed: Callable[[t.Type], bool], count: int = 2) -> Rule:
    return alike(allowed, count)


def _text(type_: t.Type) -> bool:
    return type_ in (t.STRING, t.BYTES)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "+", first_of(_alike(_text), _plus_time_rule, _decimal_sum_rule, _alike(_int_or_float)), _plus,
        "a + b; traps on overflow", _overflows, "inline",
    ),
    Operation(
        "-", first_of(_minus_time_rule, _decimal_sum_rule, _alike(_int_or_float)), _minus,
        "a - b; traps on overflow", _overflows, "inline",
    ),
    Operation(
        "*", first_of(_times_duration_rule, _decimal_times_rule, _alike(_int_or_float)), _times,
        "a * b; traps on overflow", _overflows, "inline",
    ),
    Operation("+%", _alike(is_integer), _wrapping(lambda a, b: a + b), "a + b, wrapping", native="inline"),
    Operation("-%", _alike(is_integer), _wrapping(lambda a, b: a - b), "a - b, wrapping", native="inline"),
    Operation("*%", _alike(is_integer), _wrapping(lambda a, b: a * b), "a * b, wrapping", native="inline"),
    Operation("neg", _alike(_signed, 1), _negate, "-a; traps on overflow", _negates_out, "inline"),
    Operation("neg%", _alike(is_integer, 1), _wrapping_one(lambda a: -a), "-a, wrapping", native="inline"),
    Operation("neg_wrap", _alike(is_integer, 1), _wrapping_one(lambda a: -a), "-a, wrapping", native="inline"),
    Operation("abs", _alike(_signed, 1), _absolute, "a without its sign; traps on overflow", _absolute_out, "inline"),
    Operation(
        "/", first_of(_decimal_divide_rule, alike(is_float, 2, fallback=t.F64)), _divide,
        "a / b: floats by IEEE; decimals rounded half up to the scale wanted, trap on 0", _divide_traps, "inline",
    ),
    Operation(
        "div.trap", alike(is_float, 2, fallback=t.F64), _divide_trap, "a / b of floats; traps on 0",
        ("division-by-zero",), "inline",
    ),
    Operation(
        "div.trunc", first_of(_quotient_rule, _alike(is_integer)), lambda _types, r: checked(quotient, r),
        "the quotient towards zero", _division_traps, "inline",
    ),
    Operation(
        "rem.trunc",
        first_of(_remainder_rule, _alike(lambda x: is_integer(x) or is_float(x) or isinstance(x, t.Decimal))),
        _rem_trunc, "the remainder with the sign of the dividend; floats: fmod", _division_traps, "inline",
    ),
    Operation(
        "div.trunc.wrap", _alike(is_integer), _wrapping_division(quotient), "as div.trunc, but MIN / -1 is MIN",
        ("division-by-zero",), "inline",
    ),
    Operation(
        "rem.trunc.wrap", _alike(is_integer), _wrapping_division(remainder), "as rem.trunc, but of MIN and -1 it is 0",
        ("division-by-zero",), "inline",
    ),
    Operation(
        "div.floor", first_of(_quotient_rule, _alike(is_integer)), lambda _types, r: checked(_floor_quotient, r),
        "the quotient rounded down", _division_traps, "inline",
    ),
    Operation(
        "mod.floor", first_of(_remainder_rule, _alike(is_integer)),
        lambda _types, r: _min_by_minus_one(_floor_remainder, r),
        "the remainder with the sign of the divisor", _division_traps, "inline",
    ),
    Operation("&", _alike(_bitwise), _bits(lambda a, b: a & b), "bits in both", native="inline"),
    Operation("|", _alike(_bitwise), _bits(lambda a, b: a | b), "bits in either", native="inline"),
    Operation("^", _alike(_bitwise), _bits(lambda a, b: a ^ b), "bits in one of them", native="inline"),
    Operation("~", _alike(is_integer, 1), _wrapping_one(lambda a: ~a), "all bits inverted", native="inline"),
    Operation(
        "<<", _alike(is_integer), _shift(_left, trap=False), "shift left; the count modulo the width", native="inline"
    ),
    Operation(
        ">>", _alike(is_integer), _shift(_right, trap=False), "shift right, keeping the sign; the count modulo the width",
        native="inline",
    ),
    Operation(
        ">>>", _alike(is_integer), _shift(_right_zeros, trap=False),
        "shift right, filling with zeros; the count modulo the width", native="inline",
    ),
    Operation(
        "shl.trap", _alike(is_integer), _shift(_left, trap=True), "shift left; traps on a count outside of the width",
        ("shift-range",), "inline",
    ),
    Operation(
        "shr.trap", _alike(is_integer), _shift(_right, trap=True),
        "shift right, keeping the sign; traps on a count outside of the width", ("shift-range",), "inline",
    ),
    Operation(
        "ushr.trap", _alike(is_integer), _shift(_right_zeros, trap=True),
        "shift right, filling with zeros; traps on a count outside of the width", ("shift-range",), "inline",
    ),
    Operation(
        "min", _alike(is_scalar), partial(_extreme, greatest=False), "the smaller; NaN if either is", native="inline"
    ),
    Operation(
        "max", _alike(is_scalar), partial(_extreme, greatest=True), "the greater; NaN if either is", native="inline"
    ),
    Operation(
        "sqlmin", _sql_rule, partial(_sql_extreme, greatest=False), "the smaller that is not none; NaN is the greatest",
        native="inline",
    ),
    Operation(
        "sqlmax", _sql_rule, partial(_sql_extreme, greatest=True), "the greater that is not none; NaN is the greatest",
        native="inline",
    ),
)  # fmt: skip
