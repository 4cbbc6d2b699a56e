"""Transcendental functions of f64 as formulas: within one unit in the last place, the same on every machine.

Reductions, polynomials and their coefficients are those of fdlibm (Sun Microsystems 1993, 2004). Where it branches, both
sides are computed and one is chosen.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from river.lang.operations.formula import Formula, Real, evaluator, record
from river.lang.operations.functions.angles import cos, far_cos, far_sin, far_tan, sin, tan
from river.lang.operations.functions.arcs import acos, asin, atan, atan2
from river.lang.operations.functions.exponentials import cosh, exp, sinh, tanh
from river.lang.operations.functions.logarithms import log, log2, log10, pow_

if TYPE_CHECKING:
    from collections.abc import Callable


_FORMULAS: Final[dict[str, tuple[Callable[..., Real], int]]] = {
    "exp": (exp, 1), "log": (log, 1), "log2": (log2, 1), "log10": (log10, 1), "pow": (pow_, 2),
    "sin": (sin, 1), "cos": (cos, 1), "tan": (tan, 1),
    "sin.far": (far_sin, 1), "cos.far": (far_cos, 1), "tan.far": (far_tan, 1),
    "asin": (asin, 1), "acos": (acos, 1), "atan": (atan, 1), "atan2": (atan2, 2),
    "sinh": (sinh, 1), "cosh": (cosh, 1), "tanh": (tanh, 1),
}  # fmt: skip

NAMES: Final = tuple(name for name in _FORMULAS if "." not in name)
"""The functions."""
OPERANDS: Final = {name: count for name, (_, count) in _FORMULAS.items()}


@cache
def formula(name: str) -> Formula:
    """The formula of a function, or of one that it calls."""
    make, operands = _FORMULAS[name]
    return record(name, make, operands)


@cache
def meaning(name: str) -> Callable[..., float]:
    """A function on Python numbers."""
    return evaluator(formula(name), meaning)
