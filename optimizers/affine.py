"""What a firing sends, as affine functions of the items that it sees, found by executing its text with unknowns for items.

An unknown that meets more than sums, differences and factors that are known, or that decides what is done, ends the search: then
the firing is not affine. Nor is one that keeps anything, or takes very long. Factors are doubles, whatever the operator
computes in.

Paper: Lamb, Thies, Amarasinghe, "Linear analysis and optimization of stream programs" (2003), section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from river.classes import define, frozen
from river.lang import typed
from river.lang import types as t
from river.lang.unknowns import Run, Undecided, Unknown, constants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEPS: Final = 400_000
"""Expressions and terms that one firing may come to."""


@frozen
class Sum(Unknown):
    """`known`, and for each item of a window (by window and index) its factor."""

    known: float
    terms: Mapping[tuple[int, int], float]


def sent(
    operator: typed.Operator, handler: typed.RatedHandler | typed.ItemHandler
) -> tuple[tuple[Sum, ...], ...]:
    """What a firing sends, for each output. Windows are counted as the handler's rates are; a single item is one, too.

    Raises: Undecided with the reason: what is sent is no affine function of the items, or that cannot be seen.
    """
    outs: tuple[list[Any], ...] = tuple([] for _ in operator.outs)
    run = _Run(operator.fns, constants(operator), outs, STEPS)
    frame: list[Any] = [None] * handler.slots
    match handler:
        case typed.ItemHandler():
            frame[0] = Sum(0.0, {(0, 0): 1.0})
        case typed.RatedHandler(rates):
            for i, rate in enumerate(rates):
                frame[i] = [Sum(0.0, {(i, k): 1.0}) for k in range(rate.peek)]
    run.block(handler.body, frame)
    return tuple(tuple(_sum(value) for value in out) for out in outs)


@define
class _Run(Run):
    def met(self, expr: typed.Apply, name: str, values: Sequence[Any]) -> Any:
        """A sum."""
        if expr.type not in t.FLOATS or any(isinstance(value, list) for value in values):
            raise Undecided(f"`{name}` is applied to items")
        match name, values:
            case "+" | "-", (a, b):
                return self.plus(_sum(a), _sum(b), 1.0 if name == "+" else -1.0)
            case "*", (Sum() as a, b) | (b, Sum() as a) if not isinstance(b, Sum):
                return self.times(a, b)
            case "/", (Sum() as a, b) if not isinstance(b, Sum) and b != 0:
                return self.times(a, 1.0 / b)
            case "fma", (a, b, c) if not (isinstance(a, Sum) and isinstance(b, Sum)):
                factor, item = (b, a) if isinstance(a, Sum) else (a, b)
                return self.plus(self.times(_sum(item), factor), _sum(c), 1.0)
            case "neg", (Sum() as a,):
                return self.times(a, -1.0)
            case "f32" | "f64", (Sum() as a,):
                return a
            case _:
                raise Undecided(f"`{name}` is applied to items")

    def plus(self, a: Sum, b: Sum, factor: float) -> Sum:
        """The sum."""
        self.step(len(a.terms) + len(b.terms))
        terms = dict(a.terms)
        for key, value in b.terms.items():
            terms[key] = terms.get(key, 0.0) + factor * value
        return Sum(a.known + factor * b.known, terms)

    def times(self, a: Sum, factor: float) -> Sum:
        """The product."""
        self.step(len(a.terms))
        return Sum(a.known * factor, {key: value * factor for key, value in a.terms.items()})


def _sum(value: Any) -> Sum:
    if isinstance(value, Sum):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Sum(float(value), {})
    raise Undecided("what is sent is no number")
