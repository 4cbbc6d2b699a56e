"""The leaves of a type: the scalars in it, of which lanes hold one each, as its columns do."""

from __future__ import annotations

from functools import cache
from typing import Final, assert_never

from backends.native.layout import Unsupported, register
from river.lang import types as t

SCALARS: Final = (t.BOOL, t.I32, t.I64, t.U64, t.F32, t.F64, t.TIME, t.DURATION)
"""What a lane holds in an element of a vector."""

_BYTES: Final = {"i8": 1, "i32": 4, "i64": 8, "float": 4, "double": 8}


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


@cache
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
