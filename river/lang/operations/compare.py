"""Equality, order, and three-valued logic (il.md 2.3).

`==` and `<` of floats follow IEEE. `same`, `==` of compound types, `compare` and the `3` forms follow the
total order: NaN is NaN and the greatest number, -0.0 is 0.0, none comes first.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.lang import types as t
from river.lang.operations.effects import PURE, UNORDERED, Measure
from river.lang.operations.table import (
    Binary,
    Known,
    Operation,
    Rule,
    Signature,
    Types,
    Unary,
    alike,
    fixed,
    from_any,
    has_order,
    is_scalar,
    itself,
    optional,
    plain,
    strip,
)  # fmt: skip
from river.lang.values import hash64, same, total_key

if TYPE_CHECKING:
    from collections.abc import Callable

TRUTH = t.Optional(t.BOOL)


def _equal(types: Types, _result: t.Type) -> Binary:
    match types[0]:
        case t.Primitive():
            return operator.eq
        case t.Decimal():
            return _scaled(operator.eq, types)
        case type_:
            return same(type_)


def _unequal(types: Types, result: t.Type) -> Binary:
    match types[0]:
        case t.Primitive():
            return operator.ne
        case _:
            equal = _equal(types, result)
            return lambda a, b: not equal(a, b)


def _scaled(relation: Callable[[Any, Any], bool], types: Types) -> Binary:
    """`relation` on decimals of any two scales."""
    a, b = (type_.scale for type_ in types if isinstance(type_, t.Decimal))
    if a == b:
        return relation
    x_unit, y_unit = 10 ** max(b - a, 0), 10 ** max(a - b, 0)
    return lambda x, y: relation(x * x_unit, y * y_unit)


def _relation(relation: Callable[[Any, Any], bool]) -> Callable[[Types, t.Type], Binary]:
    return lambda types, _result: _scaled(relation, types) if isinstance(types[0], t.Decimal) else relation


def _decimals(types: Known, _wanted: t.Type | None) -> Signature | None:
    """Two decimals compare as numbers, whatever their scales."""
    match types:
        case (t.Decimal() as a, t.Decimal() as b):
            return Signature((a, b), t.BOOL)
        case _:
            return None


def _compared(rule: Rule) -> Rule:
    return lambda types, wanted: _decimals(types, wanted) or rule(types, wanted)


def order_of(type_: t.Type) -> Callable[[Any], Any]:
    """The sort key of the total order as a function."""
    return total_key(type_) or itself


def _compare(types: Types, _result: t.Type) -> Binary:
    order = order_of(types[0])

    def compare(a: Any, b: Any) -> int:
        x, y = order(a), order(b)
        return (x > y) - (x < y)

    return compare


def _three_valued(relation: Callable[[Any, Any], bool]) -> Callable[[Types, t.Type], Binary]:
    def meaning(types: Types, _result: t.Type) -> Binary:
        order = order_of(strip(types[0]) or types[0])
        return lambda a, b: None if a is None or b is None else relation(order(a), order(b))

    return meaning


def _three_valued_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    inner = alike(has_order, 2, t.BOOL)(tuple(map(strip, types)), None)
    return None if inner is None else Signature(tuple(map(optional, inner.params)), TRUTH)


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _is_true(a: bool | None) -> bool:
    return a is True


def _is_nothing(a: object) -> bool:
    return a is None


def _is_optional(type_: t.Type) -> bool:
    return isinstance(type_, t.Optional)


def _hashed(type_: t.Type) -> bool:
    return not t.contains(type_, t.FSUM, t.REGEX, t.Function)


def _hasher(types: Types, _result: t.Type) -> Unary:
    return lambda value: hash64(types[0], value)


def _relations() -> tuple[Operation, ...]:
    table = (
        ("<", "lt3", operator.lt, "less", Measure.LESS),
        ("<=", "le3", operator.le, "less or equal", Measure.AT_MOST),
        (">", "gt3", operator.gt, "greater", Measure.MORE),
        (">=", "ge3", operator.ge, "greater or equal", Measure.AT_LEAST),
    )
    plain_forms = tuple(
        Operation(
            name,
            _compared(alike(is_scalar, 2, t.BOOL)),
            _relation(relation),
            f"whether a is {word}",
            native="inline",
            effect=evolve(PURE, measure=measure),
        )
        for name, _, relation, word, measure in table
    )
    three = (
        ("eq3", operator.eq, "the same"),
        ("ne3", operator.ne, "not the same"),
        *((n, r, w) for _, n, r, w, _ in table),
    )
    return plain_forms + tuple(
        Operation(
            name,
            _three_valued_rule,
            _three_valued(relation),
            f"whether a is {word}; none if an operand is",
            effect=PURE,
        )
        for name, relation, word in three
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "==", _compared(alike(has_order, 2, t.BOOL)), _equal,
        "whether equal: floats by IEEE, compound values as `same`", native="inline", effect=evolve(PURE, measure=Measure.SAME),
    ),
    Operation("!=", _compared(alike(has_order, 2, t.BOOL)), _unequal, "not `==`", native="inline",
        effect=PURE),
    Operation(
        "same", alike(has_order, 2, t.BOOL), lambda types, _r: same(types[0]),
        "whether equal, where NaN is NaN and maps and bags have no order", effect=PURE,
    ),
    Operation("compare", alike(has_order, 2, t.I64), _compare, "-1, 0 or 1 by the total order",
        effect=PURE),
    *_relations(),
    Operation("not", fixed((t.BOOL,), t.BOOL), plain(operator.not_), "the opposite", native="inline",
        effect=PURE),
    Operation("and3", fixed((TRUTH, TRUTH), TRUTH), plain(_and), "and, where none is unknown",
        native="inline", effect=PURE),
    Operation("or3", fixed((TRUTH, TRUTH), TRUTH), plain(_or), "or, where none is unknown", native="inline",
        effect=PURE),
    Operation("not3", fixed((TRUTH,), TRUTH), plain(_not), "not, where none is unknown", native="inline",
        effect=PURE),
    Operation("is_true", fixed((TRUTH,), t.BOOL), plain(_is_true), "whether true, neither false nor none",
        native="inline", effect=PURE),
    Operation(
        "is_none", from_any(_is_optional, t.BOOL, TRUTH), plain(_is_nothing), "whether there is no value",
        native="inline", effect=UNORDERED
    ),
    Operation(
        "hash64", from_any(_hashed, t.U64), _hasher,
        "a stable hash; what is the same has the same", effect=PURE,
    ),
)  # fmt: skip
