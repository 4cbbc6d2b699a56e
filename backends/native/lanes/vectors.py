"""What the code of a block of firings is made of: masks, lanes that trap, places and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted
from backends.native.jit import host
from backends.native.lanes import operations
from backends.native.lanes.leaves import has_arrays, item_kind, item_size, leaves, room
from backends.native.lanes.places import LaneValue, Leaf, Vector
from backends.native.layout import Unsupported
from backends.native.lower.values import Scalar, Value
from river.classes import define, field, frozen
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.ir import Builder
    from backends.native.lower.frame import Frame

MOST_BYTES: Final = 256 << 10
"""Of variables, windows and items of a block on the stack."""


def registers() -> int:
    """Bytes of the vector registers of this processor, a few left for what comes and goes."""
    features = host().features.split(",")
    count, size = (32, 64) if "+avx512f" in features else (16, 32) if "+avx2" in features else (16, 16)
    return (count - 4) * size


@frozen
class Same:
    """An array whose items are all the same."""

    type: t.Type
    item: Found


Found = Value | Vector | LaneValue | Same


@define(eq=False, repr=False)
class Vectors:
    """A function of many lanes under construction. `control`: how many conditions that vary are around."""

    f: Frame
    lanes: int
    mask: str | None = None
    control: int = 0
    bytes: int = 0
    hits: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.hits = self.f.b.slot(self.vector("i1"))

    @property
    def b(self) -> Builder:
        """Where instructions go."""
        return self.f.b

    def vector(self, kind: str) -> str:
        """The vector type of elements of an LLVM type."""
        return f"<{self.lanes} x {kind}>"

    def declare(self, text: str) -> None:
        """Declares an intrinsic, once."""
        if text not in self.f.module.texts:
            self.f.module.texts.append(text)

    # --------------------------------------------------------------------------------------------- lanes

    def hit(self, lanes: str) -> None:
        """These lanes trap, if they take part."""
        b, wide = self.b, self.vector("i1")
        if self.mask is not None:
            lanes = b.op(f"and {wide} {lanes}, {self.mask}")
        before = b.op(f"load {wide}, ptr {self.hits}")
        b.do(f"store {wide} {b.op(f'or {wide} {before}, {lanes}')}, ptr {self.hits}")

    def some(self, mask: str) -> str:
        """Whether a lane is in a mask, as i1."""
        whole = self.b.op(f"bitcast {self.vector('i1')} {mask} to i{self.lanes}")
        return self.b.op(f"icmp ne i{self.lanes} {whole}, 0")

    def under(self, mask: str, make: Callable[[], None]) -> None:
        """What `make` does is done by the lanes of a mask that take part already."""
        before = self.mask
        self.mask = mask if before is None else self.b.op(f"and {self.vector('i1')} {before}, {mask}")
        self.control += 1
        make()
        self.mask = before
        self.control -= 1

    def opposite(self, mask: str) -> str:
        """All other lanes."""
        return self.b.op(f"xor {self.vector('i1')} {mask}, {operations.splat(self, 'i1', 'true')}")

    # -------------------------------------------------------------------------------------------- places

    def place(self, type_: t.Type) -> LaneValue:
        """Memory for a value of each lane.

        Raises: Unsupported.
        """
        self.take(room(type_, self.lanes))
        found = [Leaf(leaf, self.memory(leaf, count), self.lanes) for leaf, count in leaves(type_)]
        return LaneValue(type_, tuple(found), ("0",) * len(found))

    def take(self, size: int) -> None:
        """Counts bytes on the stack.

        Raises: Unsupported.
        """
        self.bytes += size
        if self.bytes > MOST_BYTES:
            raise Unsupported("so many variables in lanes")

    def memory(self, leaf: t.Type, count: int) -> str:
        """Stack memory for `count` elements of each lane."""
        slot = self.b.slot(f"[{max(count, 1)} x {self.vector(item_kind(leaf))}]")
        self.b.slots[-1] = self.b.slots[-1].replace("align 16", "align 64")
        return slot

    def field(self, value: Found, index: int) -> Found:
        """A field of a record or tuple."""
        assert not isinstance(value, Same)  # noqa: S101 - by its type
        if not isinstance(value, Vector | LaneValue):
            return self.f.field(value, index)
        parts = t.parts(value.type)
        first = sum(len(leaves(part)) for part in parts[:index])
        last = first + len(leaves(parts[index]))
        if isinstance(value, Vector):
            return Vector(parts[index], value.regs[first:last])
        return LaneValue(parts[index], value.leaves[first:last], value.at[first:last])

    def element(self, value: Found, index: str) -> Found:
        """An item of an array, at an index inside it."""
        if isinstance(value, Same):
            return value.item
        if isinstance(value, LaneValue):
            assert isinstance(value.type, t.Array)  # noqa: S101 - by its type
            counts = [count for _, count in leaves(value.type.item)]
            at = tuple(
                self.sum(before, self.product(index, count))
                for before, count in zip(value.at, counts, strict=True)
            )
            return LaneValue(value.type.item, value.leaves, at)
        assert not isinstance(value, Vector)  # noqa: S101 - those have no arrays
        return self.f.extent(value)[0](index)

    def sum(self, a: str, b: str) -> str:
        """Of two indices; numbers are added here."""
        if a.isdigit() and b.isdigit():
            return str(int(a) + int(b))
        return b if a == "0" else a if b == "0" else self.b.op(f"add nsw i64 {a}, {b}")

    def product(self, a: str, count: int) -> str:
        """An index times a number."""
        return (
            str(int(a) * count)
            if a.isdigit()
            else a
            if count == 1
            else self.b.op(f"mul nsw i64 {a}, {count}")
        )

    def address(self, leaf: Leaf, at: str) -> str:
        """Where the elements of an index begin."""
        if leaf.phases == 0:
            index = self.product(at, leaf.step)
        elif at.isdigit():
            index = str(int(at) % leaf.phases * leaf.step + int(at) // leaf.phases)
        else:
            phase = self.b.op(f"urem i64 {at}, {leaf.phases}")
            index = self.sum(self.product(phase, leaf.step), self.b.op(f"udiv i64 {at}, {leaf.phases}"))
        return self.b.op(f"getelementptr inbounds {item_kind(leaf.type)}, ptr {leaf.base}, i64 {index}")

    def load(self, leaf: Leaf, at: str) -> str:
        """The elements of an index."""
        wide = self.vector(item_kind(leaf.type))
        place = self.address(leaf, at)
        found = self.b.op(f"load {wide}, ptr {place}, align {item_size(leaf.type)}")
        return self.b.op(f"icmp ne {wide} {found}, zeroinitializer") if leaf.type == t.BOOL else found

    def store(self, leaf: Leaf, at: str, reg: str) -> None:
        """Writes the elements of an index."""
        wide = self.vector(item_kind(leaf.type))
        if leaf.type == t.BOOL:
            reg = self.b.op(f"zext {self.vector('i1')} {reg} to {wide}")
        self.b.do(f"store {wide} {reg}, ptr {self.address(leaf, at)}, align {item_size(leaf.type)}")

    def read(self, value: Found) -> Vector:
        """A value without arrays in registers, one element per lane."""
        match value:
            case Vector():
                return value
            case LaneValue(type_, parts, at):
                return Vector(type_, tuple(self.load(*each) for each in zip(parts, at, strict=True)))
            case Scalar(type_, reg):
                return Vector(type_, (operations.splat(self, operations.kind(type_), reg),))
            case Same():
                raise AssertionError(value)
            case _:
                fields = [self.read(self.f.field(value, i)) for i in range(len(t.parts(value.type)))]
                return Vector(value.type, tuple(reg for each in fields for reg in each.regs))

    def write(self, to: LaneValue, value: Found, *, masked: bool) -> None:
        """Writes a value to a place; `masked`: lanes that do not take part keep what they have."""
        match to.type:
            case t.Array(_, size):
                counted(
                    self.b,
                    str(size),
                    lambda i: self.write(self.inner(to, i), self.element(value, i), masked=masked),
                )
            case t.Record() | t.Tuple() if has_arrays(to.type):
                for i in range(len(t.parts(to.type))):
                    self.write(self.part(to, i), self.field(value, i), masked=masked)
            case _:
                for leaf, at, reg in zip(to.leaves, to.at, self.read(value).regs, strict=True):
                    self.store(leaf, at, self.chosen(leaf, at, reg) if masked else reg)

    def inner(self, place: LaneValue, index: str) -> LaneValue:
        """An item of an array that is a place."""
        found = self.element(place, index)
        assert isinstance(found, LaneValue)  # noqa: S101 - a part of one
        return found

    def part(self, place: LaneValue, index: int) -> LaneValue:
        """A field of a record that is a place."""
        found = self.field(place, index)
        assert isinstance(found, LaneValue)  # noqa: S101 - a part of one
        return found

    def chosen(self, leaf: Leaf, at: str, reg: str) -> str:
        """An element where a lane takes part, what is there where it does not."""
        if self.mask is None:
            return reg
        wide = self.vector(operations.kind(leaf.type))
        return self.select(self.mask, wide, reg, self.load(leaf, at))

    def select(self, mask: str, wide: str, then: str, other: str) -> str:
        """One of two vectors, by lane."""
        return self.b.op(f"select {self.vector('i1')} {mask}, {wide} {then}, {wide} {other}")

    def clear(self, place: LaneValue) -> None:
        """Zeros."""
        for leaf, (_, count) in zip(place.leaves, leaves(place.type), strict=True):
            size = count * self.lanes * item_size(leaf.type)
            self.b.do(f"call void @llvm.memset.p0.i64(ptr align 64 {leaf.base}, i8 0, i64 {size}, i1 false)")
