"""Hashes: `values.hash64`, and those of the indexes of maps, which are secret."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, entries, if_, item, key_of, load, part, positions, value_of
from backends.native.ir import Builder
from backends.native.layout import Unsupported, is_text, register
from backends.native.runtime_library import runtime
from river.classes import frozen
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from backends.native.derived.maker import Derives
    from backends.native.ir import FunctionText

_NAN: Final = "0x7FF8000000000000"


def scalar_words(b: Builder, type_: t.Type, x: str) -> tuple[str, ...]:
    """The 64-bit words of a scalar that hashes are made of."""
    kind = register(type_)
    if type_ == t.UNIT:
        return ()
    if kind == "float":
        kind, x = "double", b.op(f"fpext float {x} to double")
    if kind == "double":
        positive = b.op(f"fadd double {x}, 0.0")
        undefined = b.op(f"fcmp uno double {x}, {x}")
        chosen = b.op(f"select i1 {undefined}, double {_NAN}, double {positive}")
        return (b.op(f"bitcast double {chosen} to i64"),)
    if kind == "i128":
        high = b.op(f"lshr i128 {x}, 64")
        return (b.op(f"trunc i128 {x} to i64"), b.op(f"trunc i128 {high} to i64"))
    if kind != "i64":
        x = b.op(f"{'zext' if kind == 'i1' else 'sext'} {kind} {x} to i64")
    return (x,)


@frozen
class _Hashing:
    """How a hash is made of words: the derived function, and the calls for a word, a text, the beginning, and the end."""

    derived: str
    word: Callable[[Builder, str, str], str]
    text: Callable[[Builder, str, str], str]
    begin: Callable[[Builder], str]
    end: str


_STABLE: Final = _Hashing(
    "hash",
    lambda b, h, word: b.call("i64", "fold", [f"i64 {h}", f"i64 {word}"]),
    lambda b, h, at: b.call("i64", "text_hash", [f"i64 {h}", f"ptr {at}"]),
    lambda _: str(runtime().constants["SEED"]),
    "fold_last",
)
"""`values.hash64`."""

SECRET: Final = _Hashing(
    "index_word",
    lambda b, h, word: index_step(b, h, "0", word),
    lambda b, h, at: index_step(b, h, "0", b.call("i64", "text_word", [f"ptr {at}"])),
    lambda b: b.call("i64", "index_begin", []),
    "index_end",
)
"""The hash of the index of maps, by the secrets of the process (`runtime/text.rt`). No key has a map or bag in it."""


def index_step(b: Builder, h: str, x: str, y: str) -> str:
    """The hash of an index with two words more."""
    return b.call("i64", "index_step", [f"i64 {h}", f"i64 {x}", f"i64 {y}"])


def _hash(module: Derives, type_: t.Type, name: str, how: _Hashing) -> FunctionText:
    b = Builder()
    state = b.slot("i64")
    b.do(f"store i64 %h, ptr {state}")

    def word(x: str) -> None:
        h = b.op(f"load i64, ptr {state}")
        b.do(f"store i64 {how.word(b, h, x)}, ptr {state}")

    def hashed(of: t.Type, at: str) -> None:
        if register(of) is not None:
            for each in scalar_words(b, of, load(b, of, at)):
                word(each)
            return
        h = b.op(f"load i64, ptr {state}")
        args = [f"i64 {h}", f"ptr {at}"]
        h = how.text(b, h, at) if is_text(of) else b.call("i64", module.derived(how.derived, of), args)
        b.do(f"store i64 {h}, ptr {state}")

    match type_:
        case t.FSUM:
            raise Unsupported("hash64 of fsum")
        case t.Optional(inner):
            flag = b.op(f"load i8, ptr {part(b, type_, '%x', 1)}")
            word(b.op(f"zext i8 {flag} to i64"))
            if_(b, b.op(f"icmp ne i8 {flag}, 0"), lambda: hashed(inner, part(b, type_, "%x", 0)))
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                hashed(each, part(b, type_, "%x", i))
        case t.Array(inner, size):
            word(str(size))
            counted(b, str(size), lambda i: hashed(inner, item(b, inner, "%x", i)))
        case t.List(inner) | t.Deque(inner):
            place, count = positions(b, type_, "%x")
            word(count)
            counted(b, count, lambda i: hashed(inner, place(i)))
        case t.OMap(key, value):
            word(b.op("load i64, ptr %x"))

            def pair_hash(entry: str) -> None:
                hashed(key, key_of(b, entry))
                hashed(value, value_of(b, type_, entry))

            entries(b, "%x", pair_hash)
        case t.Map() | t.Bag():
            total = b.slot("i64")
            b.do(f"store i64 0, ptr {total}")
            word(b.op("load i64, ptr %x"))

            def entry_hash(entry: str) -> None:
                outer = b.op(f"load i64, ptr {state}")
                b.do(f"store i64 {how.begin(b)}, ptr {state}")
                hashed(t.parts(type_)[0], key_of(b, entry))
                if isinstance(type_, t.Map):
                    hashed(type_.value, value_of(b, type_, entry))
                last = b.call("i64", how.end, [f"i64 {b.op(f'load i64, ptr {state}')}"])
                b.do(f"store i64 {b.op(f'add i64 {last}, ' + b.op(f'load i64, ptr {total}'))}, ptr {total}")
                b.do(f"store i64 {outer}, ptr {state}")

            entries(b, "%x", entry_hash)
            word(b.op(f"load i64, ptr {total}"))
        case _:
            hashed(type_, "%x")
    b.end(f"ret i64 {b.op(f'load i64, ptr {state}')}")
    return b.finish(name, f"define internal i64 @{name}(i64 %h, ptr %x) nounwind")


def make_hash(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`hash(h, x) -> i64`: a step per word of `values.hash64`."""
    return _hash(module, type_, name, _STABLE)


def make_index_word(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`index_word(h, x) -> i64`: steps of the hash of the index of maps."""
    return _hash(module, type_, name, SECRET)


def make_stable_hash(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`stable_hash(x) -> i64`: `values.hash64`."""
    b = Builder()
    h = b.call("i64", module.derived("hash", type_), [f"i64 {runtime().constants['SEED']}", "ptr %x"])
    b.end(f"ret i64 {b.call('i64', 'fold_last', [f'i64 {h}'])}")
    return b.finish(name, f"define internal i64 @{name}(ptr %x) nounwind")


def make_index_hash(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`index_hash(x) -> i64`: of the index of maps, which nothing outside of them sees: quicker than `hash64`, and secret."""
    b = Builder()
    words = _index_words(module, b, type_, "%x")
    if is_text(type_):
        h = words[0]
    else:
        h = SECRET.begin(b)
        for x, y in zip_longest(words[1::2], words[::2], fillvalue="0"):
            h = index_step(b, h, x, y)
    b.end(f"ret i64 {b.call('i64', SECRET.end, [f'i64 {h}'])}")
    near = " alwaysinline" if is_text(type_) or register(type_) is not None else ""
    return b.finish(name, f"define internal i64 @{name}(ptr %x){near} nounwind")


def _index_words(module: Derives, b: Builder, type_: t.Type, at: str) -> list[str]:
    """What the hash of a key is made of; one word stands for each text, and for each value whose words vary in number."""
    if is_text(type_):
        return [b.call("i64", "text_word", [f"ptr {at}"])]
    if register(type_) is not None:
        return list(scalar_words(b, type_, load(b, type_, at)))
    if isinstance(type_, t.Record | t.Tuple):
        parts = enumerate(t.parts(type_))
        return [word for i, each in parts for word in _index_words(module, b, each, part(b, type_, at, i))]
    begin = SECRET.begin(b)
    return [b.call("i64", module.derived(SECRET.derived, type_), [f"i64 {begin}", f"ptr {at}"])]
