"""Lanes: one handler fired on several rows at once, a row per element of vectors (il.md P9).

`uniformity` says whether that is possible; `body` makes the code of a block of firings; `block` the loop over blocks
around it, with the scalar code (the twin) for the rest, and for blocks in which a lane traps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.lanes.uniformity import Fireable, Lanes, Scalar, fireable, lanes_of, side_by_side

if TYPE_CHECKING:
    from backends.native.lower.values import Value
    from backends.native.module import Module
    from river.lang import typed


def widen(
    module: Module,
    op: typed.Operator,
    handler: Fireable,
    functions: tuple[str, ...],
    constants: tuple[Value, ...],
) -> Lanes | Scalar:
    """Puts lanes before the scalar code of a handler, `inside.<handler>`, if its firings can run side by side."""
    plan = side_by_side(op, handler)
    if isinstance(plan, Scalar):
        return plan
    from backends.native.lanes.block import widened  # hardly any operator needs it

    return widened(module, op, handler, plan, functions, constants)


__all__ = ["Lanes", "Scalar", "fireable", "lanes_of", "widen"]
