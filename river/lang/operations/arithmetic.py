"""Arithmetic (il.md 2.3): trapping and wrapping; floats by IEEE, decimals exact, time and duration."""

from __future__ import annotations

from functools import partial
from operator import add, mul, neg, sub
from typing import TYPE_CHECKING, Any, cast

from river.classes import evolve
from river.lang import types as t
from river.lang.memory import claim_text
from river.lang.operations.effects import PURE, Borrows, Measure, Neutral, combining, combining_exact
from river.lang.operations.table import (
    Binary,
    Known,
    Operation,
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
from river.lang.values import BOUNDS, NAN, TrapSignal, single, total_key

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
        return result if result == result else NAN  # noqa: PLR0124 - NaN

    return apply


def plus_text(a: Any, b: Any) -> Any:
    """One text, or bytes, after the other."""
    claim_text(len(a) + len(b))
    return a + b


def _plus(types: Types, result: t.Type) -> Binary:
    if result in (t.STRING, t.BYTES):
        return plus_text
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
            a = b = cast("t.Decimal", strip(wanted))
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


def _negates_out(_types: Types, result: t.Type) -> tuple[str, ...]:
    return ("overflow",) if result in BOUNDS else ()


def _absolute_out(_types: Types, result: t.Type) -> tuple[str, ...]:
    return ("overflow",) if result in BOUNDS and BOUNDS[result][0] < 0 else ()


# ---------------------------------------------------------------------------------------------- one operand


def _negate(_types: Types, result: t.Type) -> Unary:
    if is_float(result):
        return lambda a: -a if a == a else NAN  # noqa: PLR0124 - NaN
    low, high, code = bounds(result)

    def negate(a: int) -> int:
        if low <= -a <= high:
            return -a
        raise TrapSignal(code, a)

    return negate


def _absolute(_types: Types, result: t.Type) -> Unary:
    if is_float(result):
        return lambda a: abs(a) if a == a else NAN  # noqa: PLR0124 - NaN
    _low, high, code = bounds(result)

    def absolute(a: int) -> int:
        if abs(a) <= high:
            return abs(a)
        raise TrapSignal(code, a)

    return absolute


def _signed(type_: t.Type) -> bool:
    return is_number(type_) or type_ == t.DURATION


def _wrapping(operation: Callable[[int, int], int]) -> Callable[[Types, t.Type], Binary]:
    def meaning(_types: Types, result: t.Type) -> Binary:
        low, high = BOUNDS[result]
        mask = high - low
        return lambda a, b: (operation(a, b) - low & mask) + low

    return meaning


def wrapping_one(operation: Callable[[int], int]) -> Callable[[Types, t.Type], Unary]:
    """The meaning of an operation on one whole number whose result wraps around."""

    def meaning(_types: Types, result: t.Type) -> Unary:
        return lambda a: wrap(operation(a), result)

    return meaning


# ---------------------------------------------------------------------------------------------- min, max


def _extreme(_types: Types, _result: t.Type, *, greatest: bool) -> Binary:
    def choose(a: Any, b: Any) -> Any:
        if a != a or b != b:  # noqa: PLR0124 - NaN
            return NAN
        return max(a, b) if greatest else min(a, b)

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


def _text(type_: t.Type) -> bool:
    return type_ in (t.STRING, t.BYTES)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "+", first_of(alike(_text, 2), _plus_time_rule, _decimal_sum_rule, alike(_int_or_float, 2)), _plus,
        "a + b; traps on overflow", _overflows, "inline", effect=evolve(PURE, measure=Measure.SUM, whole=add),
    ),
    Operation(
        "-", first_of(_minus_time_rule, _decimal_sum_rule, alike(_int_or_float, 2)), _minus,
        "a - b; traps on overflow", _overflows, "inline", effect=evolve(PURE, whole=sub),
    ),
    Operation(
        "*", first_of(_times_duration_rule, _decimal_times_rule, alike(_int_or_float, 2)), _times,
        "a * b; traps on overflow", _overflows, "inline", effect=evolve(PURE, whole=mul),
    ),
    Operation("+%", alike(is_integer, 2), _wrapping(lambda a, b: a + b), "a + b, wrapping", native="inline",
        effect=evolve(combining("+%", Neutral.ZERO), whole=add)),
    Operation("-%", alike(is_integer, 2), _wrapping(lambda a, b: a - b), "a - b, wrapping", native="inline",
        effect=evolve(PURE, whole=sub)),
    Operation("*%", alike(is_integer, 2), _wrapping(lambda a, b: a * b), "a * b, wrapping", native="inline",
        effect=evolve(combining("*%", Neutral.ONE), whole=mul)),
    Operation("neg", alike(_signed, 1), _negate, "-a; traps on overflow", _negates_out, "inline",
        effect=evolve(PURE, whole=neg)),
    Operation("neg%", alike(is_integer, 1), wrapping_one(lambda a: -a), "-a, wrapping", native="inline",
        effect=PURE),
    Operation("neg_wrap", alike(is_integer, 1), wrapping_one(lambda a: -a), "-a, wrapping", native="inline",
        effect=PURE),
    Operation("abs", alike(_signed, 1), _absolute, "a without its sign; traps on overflow", _absolute_out,
        "inline", effect=PURE),
    Operation(
        "min", alike(is_scalar, 2), partial(_extreme, greatest=False), "the smaller; NaN if either is",
        native="inline", effect=combining_exact("min", Borrows.PART)
    ),
    Operation(
        "max", alike(is_scalar, 2), partial(_extreme, greatest=True), "the greater; NaN if either is",
        native="inline", effect=combining_exact("max", Borrows.PART)
    ),
    Operation(
        "sqlmin", _sql_rule, partial(_sql_extreme, greatest=False),
        "the smaller that is not none; NaN is the greatest",
        native="inline", effect=combining_exact("sqlmin", Borrows.NOTHING),
    ),
    Operation(
        "sqlmax", _sql_rule, partial(_sql_extreme, greatest=True),
        "the greater that is not none; NaN is the greatest",
        native="inline", effect=combining_exact("sqlmax", Borrows.NOTHING),
    ),
)  # fmt: skip
