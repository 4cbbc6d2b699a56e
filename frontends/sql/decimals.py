"""Decimals in queries: what `cast(x as decimal(p,s))` is made of, and decimals of different types beside one another.

An operation of the operator language takes the type of a decimal from where its result goes. So each type that a value is made
to has functions of its own: one that gives back what it is given, and one that reads texts. They exist as soon as they are named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression, show

if TYPE_CHECKING:
    from collections.abc import Iterator

DIGITS = 38
"""Digits of the widest decimal."""


def decimal_named(name: str) -> t.Decimal | None:
    """The type that a text such as `decimal(10, 2)` names, or None."""
    found = re.fullmatch(r"(?:decimal|numeric)\((\d+)(?:,(\d+))?\)", name.lower().replace(" ", ""))
    if found is None:
        return None
    precision, scale = int(found[1]), int(found[2] or 0)
    return t.Decimal(precision, scale) if 1 <= precision <= DIGITS and scale <= precision else None


class Functions(Mapping[str, s.Fn]):
    """The functions of all types of decimals by name; `made` are those that somebody has asked for."""

    def __init__(self) -> None:
        self.made: dict[str, s.Fn] = {}

    def __getitem__(self, name: str) -> s.Fn:
        found = _NAMED.fullmatch(name)
        if found is None:
            raise KeyError(name)
        if name not in self.made:
            kind = t.Decimal(int(found[1]), int(found[2]))
            self.made[name] = _reader(kind) if found[3] else _holder(kind)
        return self.made[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and is_cast(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)


def written(number: s.Argument) -> t.Decimal | None:
    """The narrowest type that a number has which is written out; None if it is none, or has too many digits."""
    match number:
        case s.Unary("-", s.Int() | s.Float() as value):
            return written(value)
        case s.Int(value) | s.Float(value):
            _, digits, exponent = Decimal(repr(value)).as_tuple()
            if not isinstance(exponent, int):
                return None
            scale = max(0, -exponent)
            precision = max(len(digits) + max(0, exponent), scale, 1)
            return t.Decimal(precision, scale) if precision <= DIGITS else None
        case _:
            return None


def holds(kind: t.Decimal, other: t.Decimal) -> bool:
    """Whether each decimal of the type `other` is one of `kind`."""
    return kind.scale >= other.scale and kind.precision - kind.scale >= other.precision - other.scale


def common(one: t.Decimal, other: t.Decimal) -> t.Decimal:
    """The type that holds decimals of both; of digits that are too many those before the point are fewer."""
    scale = max(one.scale, other.scale)
    before = max(one.precision - one.scale, other.precision - other.scale)
    return t.Decimal(min(DIGITS, before + scale), scale)


def made(value: s.Expr, source: t.Type, kind: t.Decimal) -> s.Expr | None:
    """A value of type `source`, which is there, as a decimal, rounded half up; None if there is no such conversion.

    It traps where there are too many digits before the point, or a text is no number. A float is rounded as it is written: 32.05
    lies below that number, and is one in the eyes of who wrote it.
    """
    if source == t.STRING:
        return s.Call(f"{holder(kind)}_of", (value,), span=value.span)
    if source in t.FLOATS:
        return s.Call(f"{holder(kind)}_of", (s.Call("string", (value,)),), span=value.span)
    if source in t.INTEGERS or isinstance(source, t.Decimal):
        return s.Call(holder(kind), (s.Call("to_decimal", (value,), span=value.span),), span=value.span)
    return None


def is_cast(function: str) -> bool:
    """Whether a function is one of `functions`."""
    return _NAMED.fullmatch(function) is not None


_NAMED = re.compile(r"decimal_(\d+)_(\d+)(_of)?")


def holder(kind: t.Decimal) -> str:
    """The function that gives back a decimal of this type."""
    return f"decimal_{kind.precision}_{kind.scale}"


def _holder(kind: t.Decimal) -> s.Fn:
    type_ = expression(kind)
    return s.Fn(holder(kind), (s.Param("x", type_),), type_, s.Name("x"))


def _reader(kind: t.Decimal) -> s.Fn:
    """What a text says: it is read with as many digits as there may be behind the point, and rounded then."""
    wide = t.Decimal(DIGITS, DIGITS - (kind.precision - kind.scale))
    text = s.Call("cql.written_out", (s.Call("cql.trim_of", (s.Name("x"), s.String(" "))),))
    found = s.Let("found", expression(t.Optional(wide)), s.Call("parse_decimal", (text,)))
    rounded = s.Return(s.Call("rescale", (s.Name("value"),)))
    body = s.Block(
        (
            found,
            s.If(s.Bind(s.Name("found"), "value"), s.Block((rounded,))),
            s.Trap(f"what is cast to `{show(kind)}` is no number, or has too many digits"),
        )
    )
    return s.Fn(f"{holder(kind)}_of", (s.Param("x", s.TypeName("string")),), expression(kind), body)
