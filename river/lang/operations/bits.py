"""Bits and shifts (il.md 2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.lang import types as t
from river.lang.operations.effects import PURE, Neutral, combining
from river.lang.operations.table import (
    Meaning,
    Operation,
    Types,
    alike,
    is_integer,
)  # fmt: skip
from river.lang.values import TrapSignal

if TYPE_CHECKING:
    from collections.abc import Callable

from river.lang.operations.arithmetic import width, wrap, wrapping_one


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


OPERATIONS: tuple[Operation, ...] = (
    Operation("&", alike(_bitwise, 2), _bits(lambda a, b: a & b), "bits in both", native="inline",
        effect=combining("&", Neutral.ANY)),
    Operation("|", alike(_bitwise, 2), _bits(lambda a, b: a | b), "bits in either", native="inline",
        effect=combining("|", Neutral.ANY)),
    Operation("^", alike(_bitwise, 2), _bits(lambda a, b: a ^ b), "bits in one of them", native="inline",
        effect=combining("^", Neutral.ZERO)),
    Operation("~", alike(is_integer, 1), wrapping_one(lambda a: ~a), "all bits inverted", native="inline",
        effect=evolve(PURE, distinct=True)),
    Operation(
        "<<", alike(is_integer, 2), _shift(_left, trap=False), "shift left; the count modulo the width",
        native="inline", effect=PURE
    ),
    Operation(
        ">>", alike(is_integer, 2), _shift(_right, trap=False),
        "shift right, keeping the sign; the count modulo the width",
        native="inline", effect=PURE,
    ),
    Operation(
        ">>>", alike(is_integer, 2), _shift(_right_zeros, trap=False),
        "shift right, filling with zeros; the count modulo the width", native="inline", effect=PURE,
    ),
    Operation(
        "shl.trap", alike(is_integer, 2), _shift(_left, trap=True),
        "shift left; traps on a count outside of the width",
        ("shift-range",), "inline", effect=PURE,
    ),
    Operation(
        "shr.trap", alike(is_integer, 2), _shift(_right, trap=True),
        "shift right, keeping the sign; traps on a count outside of the width", ("shift-range",), "inline",
        effect=PURE,
    ),
    Operation(
        "ushr.trap", alike(is_integer, 2), _shift(_right_zeros, trap=True),
        "shift right, filling with zeros; traps on a count outside of the width", ("shift-range",), "inline",
        effect=PURE,
    ),
)  # fmt: skip
