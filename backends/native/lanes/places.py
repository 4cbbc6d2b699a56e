"""Values of many lanes: vectors in registers, and places, where an element for each lane lies side by side.

A type is cut into its leaves, the scalars in it, as its columns are: an array in memory is one array of vectors per leaf
of its items. What all lanes have in common stays a value of the scalar code (`lower.values`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from river.classes import frozen

if TYPE_CHECKING:
    from river.lang import types as t


@frozen
class Vector:
    """A value without arrays: a register per leaf."""

    type: t.Type
    regs: tuple[str, ...]


@frozen
class Leaf:
    """Where the elements of a leaf lie.

    Those of index i begin at item i * `step` of `base`; or, dealt to `phases`, at item i div phases of phase i mod
    phases, each `step` items long.
    """

    type: t.Type
    base: str
    step: int
    phases: int = 0


@frozen
class LaneValue:
    """A value in memory: its leaves, and the index of its first element in each of them."""

    type: t.Type
    leaves: tuple[Leaf, ...]
    at: tuple[str, ...]
