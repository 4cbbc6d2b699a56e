"""Decimals in queries: what `cast(x as decimal(p,s))` is made of.

An operation of the operator language takes the type of a decimal from where its result goes. So each type that a text casts to
has functions of its own: one that gives back what it is given, and one that reads texts.
"""

from __future__ import annotations

import re

from river.il.trees import walk
from river.lang import syntax as s
from river.lang import types as t
from river.lang.scope import expression, show

DIGITS = 38
"""Digits of the widest decimal."""


def decimal_named(name: str) -> t.Decimal | None:
    """The type that a text such as `decimal(10, 2)` names, or None."""
    found = re.fullmatch(r"(?:decimal|numeric)\((\d+)(?:,(\d+))?\)", name.lower().replace(" ", ""))
    if found is None:
        return None
    precision, scale = int(found[1]), int(found[2] or 0)
    return t.Decimal(precision, scale) if 1 <= precision <= DIGITS and scale <= precision else None


def functions(tree: s.Node) -> tuple[s.Fn, ...]:
    """The functions that the casts to decimals in a tree need."""
    kinds: dict[t.Decimal, None] = {}
    for node in walk(tree):
        match node:
            case s.Call("cast", (_, s.String(name))) if (kind := decimal_named(name)) is not None:
                kinds[kind] = None
            case _:
                pass
    return tuple(function for kind in kinds for function in (_holder(kind), _reader(kind)))


def made(value: s.Expr, source: t.Type, kind: t.Decimal) -> s.Expr | None:
    """A value of type `source`, which is there, as a decimal, rounded half up; None if there is no such conversion.

    It traps where there are too many digits before the point, or a text is no number. A float is rounded as it is written: 32.05
    lies below that number, and is one in the eyes of who wrote it.
    """
    if source == t.STRING:
        return s.Call(f"{_name(kind)}_of", (value,), span=value.span)
    if source in t.FLOATS:
        return s.Call(f"{_name(kind)}_of", (s.Call("string", (value,)),), span=value.span)
    if source in t.INTEGERS or isinstance(source, t.Decimal):
        return s.Call(_name(kind), (s.Call("to_decimal", (value,), span=value.span),), span=value.span)
    return None


def is_cast(function: str) -> bool:
    """Whether a function is one of `functions`."""
    return re.fullmatch(r"decimal_\d+_\d+(_of)?", function) is not None


def _name(kind: t.Decimal) -> str:
    return f"decimal_{kind.precision}_{kind.scale}"


def _holder(kind: t.Decimal) -> s.Fn:
    type_ = expression(kind)
    return s.Fn(_name(kind), (s.Param("x", type_),), type_, s.Name("x"))


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
    return s.Fn(f"{_name(kind)}_of", (s.Param("x", s.TypeName("string")),), expression(kind), body)
