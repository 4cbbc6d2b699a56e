"""Constants with containers: memory as the runtime would have built it, made once and never written.

Entries of maps are globals linked to each other. The index of a hashed map is filled when the code has been linked, because
its hash is that of the process (`Module.index`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backends.native.layout import (
    KEY_AT,
    MAP_WORDS,
    SUM_WORDS,
    Keyed,
    entry_layout,
    memory,
    size_align,
)
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.module import Module

    Initial = Callable[[t.Type, Any], str]

_CHUNK: Final = 62  # entries of a chunk of an ordered map (`runtime/omap.rt`)
_SEGMENT: Final = 512  # words of a segment of an index (`runtime/map.rt`)
_SEGMENT_HEAD: Final = 4


def image(module: Module, type_: t.Type, constant: Any, initial: Initial) -> str:
    """The initialiser of an exact sum, deque, map or bag; `initial` makes those of the parts."""
    match type_:
        case t.FSUM:
            return _sum(module, constant)
        case t.Deque(inner):
            return _deque(module, inner, list(constant), initial)
        case t.Bag(inner):
            return _bag(module, type_, inner, list(constant), initial)
        case t.Map(key, value) | t.OMap(key, value):
            pairs = list(constant.items())
            entries = _Entries(module, type_, len(pairs))
            for i, (k, v) in enumerate(pairs):
                entries.add(i, (key, initial(key, k)), (value, initial(value, v)))
            if isinstance(type_, t.OMap):
                return _ordered(module, entries.names)
            return _hashed(module, type_, entries.names, len(pairs))
        case _:
            raise AssertionError(type_)


def _words(values: Sequence[str]) -> str:
    return f"[{len(values)} x i64] [{', '.join(f'i64 {value}' for value in values)}]"


def _address(name: str) -> str:
    return f"ptrtoint (ptr {name} to i64)"


def _constant(module: Module, text: str) -> str:
    name = "@" + module.fresh("image")
    module.texts.append(f"{name} = private constant {text}, align 16")
    return name


def _sum(module: Module, constant: tuple[int, int, int, int]) -> str:
    whole, *counts = constant
    sign = -1 if whole < 0 else 1
    digits = [sign * (abs(whole) >> 32 * i & 0xFFFFFFFF) for i in range(SUM_WORDS - 4)]
    name = _constant(module, _words([str(word) for word in (*counts, 0, *digits)]))
    return f"{{ i128 0, i64 0, ptr {name} }}"


def _deque(module: Module, inner: t.Type, items: list[Any], initial: Initial) -> str:
    room = 1 << max(len(items) - 1, 0).bit_length()
    texts = [initial(inner, item) for item in items] + ["zeroinitializer"] * (room - len(items))
    kind = memory(inner)
    name = _constant(module, f"[{room} x {kind}] [{', '.join(f'{kind} {text}' for text in texts)}]")
    return f"{{ ptr {name}, i64 {len(items)}, i64 {room}, i64 0 }}"


class _Entries:
    """Entries {next, previous, key, value}, linked in order."""

    def __init__(self, module: Module, type_: Keyed | t.Bag, count: int) -> None:
        self.module, (self.value_at, self.size) = module, entry_layout(type_)
        self.names = ["@" + module.fresh("entry") for _ in range(count)]
        self.links = ["null", *self.names, "null"]

    def add(self, number: int, key: tuple[t.Type, str], value: tuple[t.Type, str]) -> None:
        """The entry of that number."""
        gap = self.value_at - KEY_AT - size_align(key[0])[0]
        rest = self.size - self.value_at - size_align(value[0])[0]
        parts = [
            ("ptr", self.links[number + 2]), ("ptr", self.links[number]), (memory(key[0]), key[1]),
            (f"[{gap} x i8]", "zeroinitializer"), (memory(value[0]), value[1]),
            (f"[{rest} x i8]", "zeroinitializer"),
        ]  # fmt: skip
        kinds = ", ".join(kind for kind, _ in parts)
        values = ", ".join(f"{kind} {text}" for kind, text in parts)
        name = self.names[number]
        self.module.texts.append(f"{name} = private constant <{{ {kinds} }}> <{{ {values} }}>, align 16")


def _map(count: int, names: list[str], more: list[str]) -> str:
    words = [str(count), _address(names[0]), _address(names[-1]), *more]
    words += ["0"] * (MAP_WORDS - len(words))
    return _words(words).partition("] ")[2]


def _ordered(module: Module, names: list[str]) -> str:
    chunks: list[str] = []
    for start in range(0, len(names), _CHUNK):
        part = names[start : start + _CHUNK]
        cells = [str(len(part)), *map(_address, part)]
        chunks.append(_constant(module, _words(cells + ["0"] * (_CHUNK + 1 - len(cells)))))
    directory = _constant(module, _words([_address(chunk) for chunk in chunks]))
    return _map(len(names), names, [_address(directory), str(len(chunks)), str(len(chunks))])


def _hashed(module: Module, type_: t.Map | t.Bag, names: list[str], found: int) -> str:
    """`found`: how many entries are found by their key. A directory, and segments that are a quarter full at most."""
    segments, size = 1, max(8, 1 << (3 * found - 1).bit_length())
    if size > _SEGMENT:
        segments, size = 1 << (4 * found // _SEGMENT).bit_length(), _SEGMENT
    index = "@" + module.fresh("index")
    room = segments * (1 + _SEGMENT_HEAD + size)
    module.texts.append(f"{index} = private global [{room} x i64] zeroinitializer, align 16")
    module.index(type_, index, segments, size, names[0])
    return _map(len(names), names, [_address(index), str(segments - 1)])


def _bag(module: Module, type_: t.Bag, inner: t.Type, items: list[Any], initial: Initial) -> str:
    """Equal items are chained {next, last, how many} behind the oldest."""
    entries = _Entries(module, type_, len(items))
    equal: dict[Any, list[int]] = {}
    for i, item in enumerate(items):
        equal.setdefault(item, []).append(i)
    for numbers in equal.values():
        for place, number in enumerate(numbers):
            following = _address(entries.names[numbers[place + 1]]) if place + 1 < len(numbers) else "0"
            last, count = (_address(entries.names[numbers[-1]]), len(numbers)) if place == 0 else ("0", 0)
            chain = f"{{ i64 {following}, i64 {last}, i64 {count} }}"
            entries.add(number, (inner, initial(inner, items[number])), (_CHAIN, chain))
    return _hashed(module, type_, entries.names, len(equal))


_CHAIN: Final = t.Tuple((t.I64, t.I64, t.I64))
