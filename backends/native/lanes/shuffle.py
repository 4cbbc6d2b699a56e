"""Items dealt to phases and gathered from them: windows that overlap by less than all but one item, several items emitted.

Item l * o + p is item l of phase p: a firing of pop o begins one item later in every phase, so that lanes lie side by side.
Few phases are dealt by shuffles of two vectors, or, if their number is odd, by choices and one shuffle for each; many by
transposing squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, void
from backends.native.ir import Builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.module import Module

_SQUARES: Final = {"i8": 16, "i32": 16, "float": 16, "i64": 8, "double": 8}
_ALIGN: Final = {"i8": 1, "i32": 4, "float": 4, "i64": 8, "double": 8}
_POISON: Final = -1
_BYTES: Final = {"i8": 1, "i32": 4, "float": 4, "i64": 8, "double": 8}
_PART: Final = 16
"""Bytes that processors load to any place of a vector: so fewer shuffles are left, of which they do one at a time."""


def square(kind: str) -> int:
    """How many items of an LLVM type are shuffled at once."""
    return _SQUARES[kind]


def _at(b: Builder, kind: str, base: str, index: str) -> str:
    return b.op(f"getelementptr inbounds {kind}, ptr {base}, i64 {index}")


def _shuffle(b: Builder, wide: str, first: str, second: str, which: list[int]) -> str:
    mask = ", ".join("i32 poison" if i == _POISON else f"i32 {i}" for i in which)
    return b.op(f"shufflevector {wide} {first}, {wide} {second}, <{len(which)} x i32> <{mask}>")


# ----------------------------------------------------------------------------------------- few phases


def _dealt(b: Builder, wide: str, loaded: list[str], phase: int) -> str:
    """Items phase, phase + o, ... of o vectors."""
    count, size = len(loaded), 0
    size = int(wide[1 : wide.index(" ")])
    sources = [lane * count + phase for lane in range(size)]
    found = loaded[0]
    for k in range(1, count):
        which: list[int] = []
        for lane, source in enumerate(sources):
            if source // size == k:
                which.append(size + source % size)
            elif source // size < k:
                which.append(source % size if k == 1 else lane)
            else:
                which.append(_POISON)
        found = _shuffle(b, wide, found, loaded[k], which)
    return found


def _gathered(b: Builder, wide: str, loaded: list[str], part: int) -> str:
    """Vector `part` of the items of o phases taken in turns."""
    count, size = len(loaded), int(wide[1 : wide.index(" ")])
    sources = [part * size + lane for lane in range(size)]
    found = loaded[0]
    for phase in range(1, count):
        which: list[int] = []
        for lane, source in enumerate(sources):
            item, of = divmod(source, count)
            if of == phase:
                which.append(size + item)
            elif of < phase:
                which.append(item if phase == 1 else lane)
            else:
                which.append(_POISON)
        found = _shuffle(b, wide, found, loaded[phase], which)
    return found


def _turned(b: Builder, size: int, kind: str, vectors: list[str], turn: list[int]) -> list[str]:
    """Vectors in turns: item l of vector k is that of vector k - turn[l], counted round. By halves, so few choices do it."""
    count, step = len(vectors), 1
    wide, masks = f"<{size} x {kind}>", f"<{size} x i1>"
    while step < count:
        mask = ", ".join("i1 true" if by & step else "i1 false" for by in turn)
        vectors = [
            b.op(f"select {masks} <{mask}>, {wide} {vectors[(k - step) % count]}, {wide} {vectors[k]}")
            for k in range(count)
        ]
        step *= 2
    return vectors


def _odd(b: Builder, kind: str, loaded: list[str], *, deal: bool) -> list[str]:
    """What `_dealt` and `_gathered` make, of an odd number of phases.

    The items of a phase lie in places of vectors that all differ, so it is put together by choosing for each place one of the
    vectors, and then put in order.
    """
    count, size = len(loaded), square(kind)
    wide, less = f"<{size} x {kind}>", pow(size, -1, count)
    turn = [place * less % count for place in range(size)]
    made: dict[int, str] = {}
    if deal:
        turned = _turned(b, size, kind, loaded, turn)
        for phase in range(count):
            which = [(item * count + phase) % size for item in range(size)]
            made[phase] = _shuffle(b, wide, turned[phase * less % count], "poison", which)
    else:
        for phase in range(count):
            which = [0] * size
            for item in range(size):
                which[(item * count + phase) % size] = item
            made[phase * less % count] = _shuffle(b, wide, loaded[phase], "poison", which)
        back = [-by % count for by in turn]
        made = dict(enumerate(_turned(b, size, kind, [made[k] for k in range(count)], back)))
    return [made[k] for k in range(count)]


def _few(module: Module, kind: str, phases: int, *, deal: bool) -> str:
    """`void name(items, phases, groups, length of a phase)`, and the way back."""
    name = f"lanes.{'deal' if deal else 'gather'}.{phases}.{kind}"
    if name in module.functions:
        return name
    b, size = Builder(), square(kind)
    wide, align = f"<{size} x {kind}>", _ALIGN[kind]

    def group(i: str) -> None:
        base = b.op(f"mul nsw i64 {i}, {size * phases}")
        items = [_at(b, kind, "%items", b.op(f"add nsw i64 {base}, {k * size}")) for k in range(phases)]
        start = b.op(f"mul nsw i64 {i}, {size}")
        places = [
            _at(b, kind, "%phases", b.op(f"add nsw i64 {start}, {b.op(f'mul nsw i64 {k}, %length')}"))
            for k in range(phases)
        ]
        sources, targets = (items, places) if deal else (places, items)
        loaded = [b.op(f"load {wide}, ptr {at}, align {align}") for at in sources]
        if phases % 2 and phases > 3:
            made = _odd(b, kind, loaded, deal=deal)
        else:
            made = [(_dealt if deal else _gathered)(b, wide, loaded, k) for k in range(phases)]
        for at, each in zip(targets, made, strict=True):
            b.do(f"store {wide} {each}, ptr {at}, align {align}")

    counted(b, "%groups", group)
    b.end("ret void")
    head = f"define internal void @{name}(ptr noalias %items, ptr noalias %phases, i64 %groups, i64 %length) nounwind"
    module.add(b.finish(name, head))
    return name


# ---------------------------------------------------------------------------------------- many phases


def _part(kind: str) -> int:
    """How many items are brought anywhere in a vector at once."""
    return min(_PART // _BYTES[kind], square(kind))


def _pieces(b: Builder, kind: str, first: int, column: int) -> str:
    """A vector of items from `column` on of each row of a square that is so many parts behind the row `first`."""
    width, found = _part(kind), list[str]()
    for row in range(first, square(kind), width):
        place = b.op(f"add nsw i64 {b.op(f'mul nsw i64 {row}, %a')}, {column}")
        wide = f"<{width} x {kind}>"
        found.append(b.op(f"load {wide}, ptr {_at(b, kind, '%from', place)}, align {_ALIGN[kind]}"))
    while len(found) > 1:
        both = list(range(2 * width))
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [_shuffle(b, f"<{width} x {kind}>", one, other, both) for one, other in pairs]
        width *= 2
    return found[0]


def _crossed(b: Builder, kind: str, rows: list[str], part: int) -> list[str]:
    """As many vectors as a part has items: item i of each part of vector k is item k of that part of vector i."""
    size, half = square(kind), part // 2
    wide = f"<{size} x {kind}>"
    low = [start + i // 2 + size * (i % 2) for start in range(0, size, part) for i in range(part)]
    high = [half + i for i in low]
    for _ in range(part.bit_length() - 1):
        rows = [
            _shuffle(b, wide, rows[i // 2], rows[i // 2 + half], high if i % 2 else low) for i in range(part)
        ]
    return rows


def _deal(module: Module, kind: str, phases: int) -> str:
    """`void name(from, its stride, to, its stride)`: so many items of each row of a square, transposed."""
    name = f"lanes.turn.{phases}.{kind}"
    if name in module.functions:
        return name
    b, size = Builder(), square(kind)
    rows: list[str] = []
    for column in range(0, phases, _part(kind)):
        pieces = [_pieces(b, kind, first, column) for first in range(_part(kind))]
        rows += _crossed(b, kind, pieces, _part(kind))
    for i, row in enumerate(rows):
        place = _at(b, kind, "%to", b.op(f"mul nsw i64 {i}, %b"))
        b.do(f"store <{size} x {kind}> {row}, ptr {place}, align {_ALIGN[kind]}")
    return _finished(module, b, name)


def _gather(module: Module, kind: str, phases: int) -> str:
    """`void name(from, its stride, to, its stride)`: so many rows of a square, transposed."""
    name = f"lanes.return.{phases}.{kind}"
    if name in module.functions:
        return name
    b, size, part, align = Builder(), square(kind), _part(kind), _ALIGN[kind]
    wide = f"<{size} x {kind}>"
    rows = [
        b.op(f"load {wide}, ptr {_at(b, kind, '%from', b.op(f'mul nsw i64 {i}, %a'))}, align {align}")
        for i in range(phases)
    ]
    if phases == size:
        for i, row in enumerate(_crossed(b, kind, rows, size)):
            place = _at(b, kind, "%to", b.op(f"mul nsw i64 {i}, %b"))
            b.do(f"store {wide} {row}, ptr {place}, align {align}")
        return _finished(module, b, name)
    for column in range(0, phases, part):
        for first, row in enumerate(_crossed(b, kind, rows[column : column + part], part)):
            for i in range(first, size, part):
                at = i // part * part
                piece = _shuffle(b, wide, row, row, list(range(at, at + part)))
                place = b.op(f"add nsw i64 {b.op(f'mul nsw i64 {i}, %b')}, {column}")
                b.do(f"store <{part} x {kind}> {piece}, ptr {_at(b, kind, '%to', place)}, align {align}")
    return _finished(module, b, name)


def _finished(module: Module, b: Builder, name: str) -> str:
    b.end("ret void")
    params = "ptr noalias %from, i64 %a, ptr noalias %to, i64 %b"
    module.add(b.finish(name, f"define internal void @{name}({params}) nounwind noinline"))
    return name


def squares(kind: str, phases: int, groups: int) -> int:
    """How many squares so many groups are."""
    return 0 if phases < square(kind) else groups * len(_squares(kind, phases))


def _squares(kind: str, phases: int) -> list[tuple[int, int]]:
    """Where squares begin, and how many phases each has; the last one may begin inside of the one before."""
    size, part = square(kind), _part(kind)
    found = [(first, size) for first in range(0, phases - size + 1, size)]
    left = -(-(phases % size) // part) * part
    return [*found, (phases - left, left)] if left else found


# -------------------------------------------------------------------------------------------- both


def deal(
    b: Builder, module: Module, kind: str, phases: int, items: str, to: str, groups: int, length: int,
    beside: Callable[[], None],
) -> None:  # fmt: skip
    """Deals `groups` squares of items to phases, each `length` items long. `beside`: what is done with each square."""
    size = square(kind)
    if phases < size:
        name = _few(module, kind, phases, deal=True)
        void(b, name, f"ptr {items}", f"ptr {to}", f"i64 {groups}", f"i64 {length}")
        return
    for group in range(groups):
        for first, count in _squares(kind, phases):
            name = _deal(module, kind, count)
            source = _at(b, kind, items, str(group * size * phases + first))
            target = _at(b, kind, to, str(first * length + group * size))
            void(b, name, f"ptr {source}", f"i64 {phases}", f"ptr {target}", f"i64 {length}")
            beside()


def gather(
    b: Builder, module: Module, kind: str, phases: int, of: str, items: str, groups: int, length: int,
    beside: Callable[[], None],
) -> None:  # fmt: skip
    """The way back."""
    size = square(kind)
    if phases < size:
        name = _few(module, kind, phases, deal=False)
        void(b, name, f"ptr {items}", f"ptr {of}", f"i64 {groups}", f"i64 {length}")
        return
    for group in range(groups):
        for first, count in _squares(kind, phases):
            name = _gather(module, kind, count)
            source = _at(b, kind, of, str(first * length + group * size))
            target = _at(b, kind, items, str(group * size * phases + first))
            void(b, name, f"ptr {source}", f"i64 {length}", f"ptr {target}", f"i64 {phases}")
            beside()


__all__ = ["deal", "gather", "square", "squares"]
