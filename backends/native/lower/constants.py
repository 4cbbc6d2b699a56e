"""Constants with containers: memory as the runtime would have built it, made once and never written.

Entries of maps are globals linked to each other; a hashed map has one segment of its index, as large as it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backends.native.layout import (
    KEY_AT,
    MAP_WORDS,
    SUM_WORDS,
    Keyed,
    entry_layout,
    is_text,
    memory,
    size_align,
)
from river.lang import types as t
from river.lang.values.hashing import SEED, STEP, fold, hash_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.module import Module

    Initial = Callable[[t.Type, Any], str]

_CHUNK: Final = 62  # entries of a chunk of an ordered map (`runtime/omap.rt`)
_TAG: Final = 16  # bits of the hash beside an address (`runtime/map.rt`)
_SHORT: Final = 12  # bytes of a text that lies in its view
_PAIR: Final = 16  # bytes of texts that are hashed in one piece, and in three (`runtime/text.rt`)
_HASHED: Final = 48
_WORD: Final = (1 << 64) - 1
_LAST: Final = 0xA0761D6478BD642F


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
            return _hashed(module, entries.names, dict(enumerate(_index_hash(key, k) for k, _ in pairs)))
        case _:
            raise AssertionError(type_)


def _index_hash(type_: t.Type, value: Any) -> int:
    """The hash of the index of maps, as `module.py` makes it."""
    if is_text(type_):
        return _text_hash(value)
    if not isinstance(type_, t.Record | t.Tuple):
        return hash_words(SEED, type_, value)
    h = SEED
    for i, (part, each) in enumerate(zip(t.parts(type_), value, strict=True)):
        if not is_text(part):
            h = hash_words(h, part, each)
        elif i == 0:
            h = _text_hash(each)
        else:
            h = fold(h, _text_hash(each))
    return h


def _text_hash(value: str | bytes) -> int:
    """`text_index` of `runtime/text.rt`."""
    data = value.encode() if isinstance(value, str) else value
    size = len(data)
    ascii_ = bool(data) and isinstance(value, str) and value.isascii()
    first = int.from_bytes(data[:4], "little") << 32 | ascii_ << 31 | size

    def word(at: int) -> int:
        return int.from_bytes(data[at : at + 8], "little")

    if size <= _SHORT:
        return _product(first ^ SEED, word(4) ^ STEP) ^ first
    if size <= _PAIR:
        return _product(word(0) ^ SEED, word(size - 8) ^ STEP) ^ first
    last = size - 16
    if size <= _HASHED:
        half = last >> 1
        h = size ^ _product(word(0) ^ SEED, word(8) ^ STEP)
        h ^= _product(word(half) ^ STEP, word(half + 8) ^ _LAST)
        return h ^ _product(word(last) ^ _LAST, word(last + 8) ^ SEED)
    h = size ^ SEED
    for at in range(0, last, 16):
        h = _product(word(at) ^ STEP, word(at + 8) ^ h)
    return _product(word(last) ^ STEP, word(last + 8) ^ h)


def _product(x: int, y: int) -> int:
    product = x * y
    return (product ^ product >> 64) & _WORD


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

    def add(self, number: int, key: tuple[t.Type, str], value: tuple[t.Type, str]) -> None:
        """The entry of that number."""
        links = ["null", *self.names, "null"]
        gap = self.value_at - KEY_AT - size_align(key[0])[0]
        rest = self.size - self.value_at - size_align(value[0])[0]
        parts = [
            ("ptr", links[number + 2]), ("ptr", links[number]), (memory(key[0]), key[1]),
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


def _hashed(module: Module, names: list[str], hashes: dict[int, int]) -> str:
    """`hashes`: of the entries that are found by their key."""
    size = max(8, 1 << (3 * len(hashes) - 1).bit_length())
    cells = ["0"] * size
    for number, h in hashes.items():
        at = h >> 64 - _TAG & size - 1
        while cells[at] != "0":
            at = (at + 1) % size
        tag = h >> 64 - _TAG << 64 - _TAG
        cells[at] = f"add (i64 {_address(names[number])}, i64 {tag - (1 << 64) if tag >> 63 else tag})"
    segment = _constant(module, _words([str(size - 1), str(len(hashes)), "0", "0", *cells]))
    mask = min(size - 1, (1 << _TAG) - 1) << 64 - _TAG
    directory = _constant(
        module, _words([f"add (i64 {_address(segment)}, i64 {mask - (1 << 64) if mask >> 63 else mask})"])
    )
    return _map(len(names), names, [_address(directory), "0"])


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
    return _hashed(module, entries.names, {n[0]: _index_hash(inner, item) for item, n in equal.items()})


_CHAIN: Final = t.Tuple((t.I64, t.I64, t.I64))
