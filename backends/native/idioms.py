"""What code does again and again: calls, branches and loops; values in memory: read, written, moved, and gone through."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from backends.native.layout import (
    KEY_AT,
    Keyed,
    Unsupported,
    entry_layout,
    memory,
    offsets,
    register,
    size_align,
)
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.ir import Builder

# ------------------------------------------------------------------------------------------------ control


def void(b: Builder, name: str, *args: str) -> None:
    """A call for its effect."""
    b.call("void", name, args)


def if_(
    b: Builder, condition: str, then: Callable[[], None], other: Callable[[], None] | None = None
) -> None:
    """A branch."""
    yes, no, after = b.fresh("yes"), b.fresh("no"), b.fresh("after")
    b.branch(condition, yes, no if other else after)
    b.at(yes)
    then()
    if not b.ended:
        b.go(after)
    if other:
        b.at(no)
        other()
    b.at(after)


def if_rare(b: Builder, condition: str, then: Callable[[], None]) -> None:
    """A branch that is hardly ever taken."""
    yes, after = b.fresh("rare"), b.fresh("after")
    b.branch(condition, yes, after, rare=True)
    b.at(yes)
    then()
    b.at(after)


def counted(b: Builder, count: str, body: Callable[[str], None], start: str = "0") -> None:
    """A loop from `start` to `count`; `body` gets the register of the number."""
    number = b.slot("i64")
    b.do(f"store i64 {start}, ptr {number}")
    again, inside, after = b.fresh("each"), b.fresh("inside"), b.fresh("done")
    b.at(again)
    i = b.op(f"load i64, ptr {number}")
    b.branch(b.op(f"icmp slt i64 {i}, {count}"), inside, after)
    b.at(inside)
    body(i)
    following = b.op(f"add nsw i64 {i}, 1")
    b.do(f"store i64 {following}, ptr {number}")
    b.go(again)
    b.at(after)


# ----------------------------------------------------------------------------------------- single values


def load(b: Builder, type_: t.Type, at: str) -> str:
    """The register of a scalar in memory."""
    if type_ == t.BOOL:
        byte = b.op(f"load i8, ptr {at}")
        return b.op(f"icmp ne i8 {byte}, 0")
    return b.op(f"load {register(type_)}, ptr {at}")


def store(b: Builder, type_: t.Type, value: str, at: str) -> None:
    """A scalar to memory."""
    if type_ == t.BOOL:
        byte = b.op(f"zext i1 {value} to i8")
        b.do(f"store i8 {byte}, ptr {at}")
    else:
        b.do(f"store {register(type_)} {value}, ptr {at}")


def part(b: Builder, type_: t.Type, at: str, index: int) -> str:
    """The address of a field of a record, or of value (0) and presence (1) of an optional.

    By its offset: the type of a record is as long as it has fields, and so would be the text for each of them.
    """
    return b.op(f"getelementptr inbounds i8, ptr {at}, i64 {offsets(type_)[index]}")


def item(b: Builder, type_: t.Type, items: str, index: str) -> str:
    """The address of an item of `type_` among items."""
    return b.op(f"getelementptr inbounds {memory(type_)}, ptr {items}, i64 {index}")


def move(b: Builder, type_: t.Type, to: str, source: str) -> None:
    """Copies a value: its bytes, or part by part where that leaves out bytes between few parts.

    A copy of these would read what was written in pieces at once, for which the processor has to wait.
    """
    size, _ = size_align(type_)
    pieces = _pieces(type_)
    if len(pieces) <= _FEW_PIECES and sum(bytes_ for _, bytes_ in pieces) < size:
        for offset, bytes_ in pieces:
            ends = [b.op(f"getelementptr inbounds i8, ptr {at}, i64 {offset}") for at in (source, to)]
            b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {ends[1]}, ptr {ends[0]}, i64 {bytes_}, i1 false)")
        return
    b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")


_FEW_PIECES: Final = 8


@cache
def _pieces(type_: t.Type) -> tuple[tuple[int, int], ...]:
    """Where the parts of a value lie, and how many bytes each has."""
    match type_:
        case t.Optional(inner):
            parts = (inner, t.BOOL)
        case t.Record() | t.Tuple():
            parts = t.parts(type_)
        case _:
            return ((0, size_align(type_)[0]),)
    return tuple(
        (at + offset, bytes_)
        for at, each in zip(offsets(type_), parts, strict=True)
        for offset, bytes_ in _pieces(each)
    )


def clear(b: Builder, type_: t.Type, at: str) -> None:
    """The zero of a type."""
    size, _ = size_align(type_)
    b.do(f"call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 false)")


# -------------------------------------------------------------------------------------------- containers


def entries(b: Builder, map_: str, body: Callable[[str], None]) -> None:
    """A loop over the entries of a map, in order; `body` gets the address of an entry."""
    head = b.op(f"getelementptr inbounds i64, ptr {map_}, i64 1")
    cursor = b.slot("i64")
    b.do(f"store i64 {b.op(f'load i64, ptr {head}')}, ptr {cursor}")
    again, inside, after = b.fresh("each"), b.fresh("inside"), b.fresh("done")
    b.at(again)
    e = b.op(f"load i64, ptr {cursor}")
    b.branch(b.op(f"icmp ne i64 {e}, 0"), inside, after)
    b.at(inside)
    entry = b.op(f"inttoptr i64 {e} to ptr")
    following = b.op(f"load i64, ptr {entry}")
    b.do(f"store i64 {following}, ptr {cursor}")
    body(entry)
    b.go(again)
    b.at(after)


def key_of(b: Builder, entry: str) -> str:
    """The address of the key of an entry."""
    return b.op(f"getelementptr inbounds i8, ptr {entry}, i64 {KEY_AT}")


def value_of(b: Builder, type_: Keyed, entry: str) -> str:
    """The address of the value of an entry."""
    return b.op(f"getelementptr inbounds i8, ptr {entry}, i64 {entry_layout(type_)[0]}")


def list_parts(b: Builder, at: str) -> tuple[str, str]:
    """The items and the length of a list."""
    items = b.op(f"load ptr, ptr {at}")
    count = b.op(f"getelementptr inbounds i64, ptr {at}, i64 1")
    return items, b.op(f"load i64, ptr {count}")


def positions(b: Builder, type_: t.Type, at: str) -> tuple[Callable[[str], str], str]:
    """The addresses of the items of a list, array or deque, and how many there are."""
    match type_:
        case t.List(inner):
            items, count = list_parts(b, at)
            return lambda i: item(b, inner, items, i), count
        case t.Array(inner, size):
            return lambda i: item(b, inner, at, i), str(size)
        case t.Deque(inner):
            items, count = list_parts(b, at)
            room = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {at}, i64 2')}")
            first = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {at}, i64 3')}")
            mask = b.op(f"sub i64 {room}, 1")
            return lambda i: item(
                b, inner, items, b.op(f"and i64 {b.op(f'add i64 {first}, {i}')}, {mask}")
            ), count
        case _:
            raise Unsupported(f"positions of {type_}")
