"""Items dealt to phases and gathered from them: windows that overlap by less than all but one item, several items emitted.

Item l * o + p is item l of phase p: a firing of pop o begins one item later in every phase, so that lanes lie side by side.
Few phases are dealt by shuffles of two vectors, many by transposing squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, void
from backends.native.ir import Builder, FunctionText

if TYPE_CHECKING:
    from backends.native.module import Module

_SQUARES: Final = {"i8": 16, "i32": 16, "float": 16, "i64": 8, "double": 8}
_ALIGN: Final = {"i8": 1, "i32": 4, "float": 4, "i64": 8, "double": 8}
_POISON: Final = -1


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
        made = [(_dealt if deal else _gathered)(b, wide, loaded, k) for k in range(phases)]
        for at, each in zip(targets, made, strict=True):
            b.do(f"store {wide} {each}, ptr {at}, align {align}")

    counted(b, "%groups", group)
    b.end("ret void")
    head = f"define internal void @{name}(ptr noalias %items, ptr noalias %phases, i64 %groups, i64 %length) nounwind"
    module.add(b.finish(name, head))
    return name


# ---------------------------------------------------------------------------------------- many phases


def _turn(module: Module, kind: str, *, deal: bool) -> str:
    """`void name(from, its stride, to, its stride, ahead)`: a square transposed.

    It fetches as many lines from `ahead` on, where items of a later block are dealt from or gathered: a square takes a little of
    many lines of memory, and by itself the processor fetches only what is gone through in order. So it is these lines that
    are, and not those of a later square; and not into the first cache, which blocks fill.
    """
    name = f"lanes.{'turn' if deal else 'return'}.{kind}"
    if name in module.functions:
        return name
    b, size = Builder(), square(kind)
    wide, align, half = f"<{size} x {kind}>", _ALIGN[kind], size // 2
    for i in range(size):
        place = b.op(
            f"getelementptr {kind}, ptr %ahead, i64 {i * size}"
        )  # beyond the last item it does no harm
        b.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(not deal)}, i32 2, i32 1)")
    rows = [
        b.op(f"load {wide}, ptr {_at(b, kind, '%from', b.op(f'mul nsw i64 {i}, %a'))}, align {align}")
        for i in range(size)
    ]
    low = [i // 2 + size * (i % 2) for i in range(size)]
    high = [half + i for i in low]
    for _ in range(size.bit_length() - 1):
        rows = [
            _shuffle(b, wide, rows[i // 2], rows[i // 2 + half], high if i % 2 else low) for i in range(size)
        ]
    for i, row in enumerate(rows):
        b.do(f"store {wide} {row}, ptr {_at(b, kind, '%to', b.op(f'mul nsw i64 {i}, %b'))}, align {align}")
    b.end("ret void")
    params = "ptr noalias %from, i64 %a, ptr noalias %to, i64 %b, ptr %ahead"
    module.add(b.finish(name, f"define internal void @{name}({params}) nounwind noinline"))
    return name


def _squares(phases: int, size: int) -> list[int]:
    """Where squares begin; the last two may overlap."""
    found = list(range(0, phases - size + 1, size))
    return found if phases % size == 0 else [*found, phases - size]


# -------------------------------------------------------------------------------------------- both


def deal(
    b: Builder, module: Module, kind: str, phases: int, items: str, to: str, groups: int, length: int
) -> None:
    """Deals `groups` squares of items to phases, each `length` items long."""
    size = square(kind)
    if phases < size:
        name = _few(module, kind, phases, deal=True)
        void(b, name, f"ptr {items}", f"ptr {to}", f"i64 {groups}", f"i64 {length}")
        return
    name, ahead = _turn(module, kind, deal=True), groups * size * phases
    for group in range(groups):
        for first in _squares(phases, size):
            fetched = b.op(f"getelementptr {kind}, ptr {items}, i64 {ahead}")
            ahead += size * size
            source = _at(b, kind, items, str(group * size * phases + first))
            target = _at(b, kind, to, str(first * length + group * size))
            void(
                b, name, f"ptr {source}", f"i64 {phases}", f"ptr {target}", f"i64 {length}", f"ptr {fetched}"
            )


def gather(
    b: Builder, module: Module, kind: str, phases: int, of: str, items: str, groups: int, length: int
) -> None:
    """The way back."""
    size = square(kind)
    if phases < size:
        name = _few(module, kind, phases, deal=False)
        void(b, name, f"ptr {items}", f"ptr {of}", f"i64 {groups}", f"i64 {length}")
        return
    name, ahead = _turn(module, kind, deal=False), groups * size * phases
    for group in range(groups):
        for first in _squares(phases, size):
            fetched = b.op(f"getelementptr {kind}, ptr {items}, i64 {ahead}")
            ahead += size * size
            source = _at(b, kind, of, str(first * length + group * size))
            target = _at(b, kind, items, str(group * size * phases + first))
            void(
                b, name, f"ptr {source}", f"i64 {length}", f"ptr {target}", f"i64 {phases}", f"ptr {fetched}"
            )


__all__ = ["FunctionText", "deal", "gather", "square"]
