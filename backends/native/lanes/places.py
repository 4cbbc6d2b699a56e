"""Values of many lanes: vectors in registers, and places, where an element for each lane lies side by side.

A type is cut into its leaves, the scalars in it, as its columns are: an array in memory is one array of vectors per leaf
of its items. What all lanes have in common stays a value of the scalar code (`lower.frame`).
"""

from __future__ import annotations

from functools import cache
from typing import Final, assert_never

from attrs import frozen

from backends.native.layout import Unsupported, register
from river.lang import types as t

SCALARS: Final = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.TIME, t.DURATION)
"""What a lane holds in an element of a vector."""

_BYTES: Final = {"i8": 1, "i32": 4, "i64": 8, "float": 4, "double": 8}


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
class Place:
    """A value in memory: its leaves, and the index of its first element in each of them."""

    type: t.Type
    leaves: tuple[Leaf, ...]
    at: tuple[str, ...]


@cache
def leaves(type_: t.Type) -> tuple[tuple[t.Type, int], ...]:
    """The scalars in a type, and how many there are of each.

    Raises: Unsupported.
    """
    match type_:
        case t.Record() | t.Tuple():
            return tuple(leaf for part in t.parts(type_) for leaf in leaves(part))
        case t.Array(item, size):
            return tuple((leaf, count * size) for leaf, count in leaves(item))
        case t.Primitive() if type_ in SCALARS:
            return ((type_, 1),)
        case t.Primitive() | t.Decimal() | t.Optional() | t.List() | t.Deque() | t.Map() | t.OMap() | t.Bag():
            raise Unsupported(f"lanes of {_show(type_)}")
        case t.Function():
            raise Unsupported("functions as values")
        case _:
            assert_never(type_)


def _show(type_: t.Type) -> str:
    from river.lang.scope import show

    return f"`{show(type_)}`"


def has_lanes(type_: t.Type) -> bool:
    """Whether lanes may hold values of a type."""
    try:
        return bool(leaves(type_))
    except Unsupported:
        return False


def has_arrays(type_: t.Type) -> bool:
    """Whether values of a type lie in memory."""
    return t.contains(type_, t.Array)


def item_kind(type_: t.Type) -> str:
    """The LLVM type of an element in memory."""
    kind = register(type_)
    assert kind is not None  # noqa: S101 - of a leaf
    return "i8" if kind == "i1" else kind


def item_size(type_: t.Type) -> int:
    """Bytes of an element in memory."""
    return _BYTES[item_kind(type_)]


def room(type_: t.Type, lanes: int) -> int:
    """Bytes of a place."""
    return sum(item_size(leaf) * count for leaf, count in leaves(type_)) * lanes
