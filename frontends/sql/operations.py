"""What is known of operators: comparisons in three values, which take none, which never trap; parts of conjunctions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.il.trees import children
from river.lang import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPARISONS = {"==": "eq3", "!=": "ne3", "<": "lt3", "<=": "le3", ">": "gt3", ">=": "ge3"}
"""Comparisons, and what each is in three values."""
ARITHMETIC = frozenset(["+", "-", "*", "/", "%"])
OPEN = frozenset(
    {
        *COMPARISONS.values(), "and3", "or3", "not3", "is_true", "is_none", "force", "same", "compare", "hash64",
        "sqlmin", "sqlmax",
    }
)  # fmt: skip
"""Operations that take what may be none."""
TOTAL = frozenset(
    {
        *COMPARISONS.values(),
        "and3",
        "or3",
        "not3",
        "is_true",
        "coalesce",
        "f64",
        "same",
        "starts_with",
        "ends_with",
    }
)
"""Operations that never trap."""


def total(expr: s.Node) -> bool:
    """Whether evaluating a checked expression surely cannot trap: only then may it be evaluated for more rows."""
    match expr:
        case s.Name() | s.Int() | s.Float() | s.String() | s.Bytes() | s.Bool() | s.NoneValue():
            return True
        case s.Member() | s.IsNone() | s.Unary("not", _):
            return all(map(total, children(expr)))
        case s.Binary(op, _, _):
            return (op in COMPARISONS or op in ("and", "or")) and all(map(total, children(expr)))
        case s.Call(function, _):
            return function in TOTAL and all(map(total, children(expr)))
        case _:
            return False


def conjuncts(expr: s.Expr) -> Iterable[s.Expr]:
    """The conditions that must all hold for `expr` to hold."""
    match expr:
        case s.Binary("and", left, right):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield expr


def conjunction(conditions: Iterable[s.Expr]) -> s.Expr:
    """The conjunction, in order."""
    found = tuple(conditions)
    return s.joined("and", found) if found else s.Bool(value=True)
