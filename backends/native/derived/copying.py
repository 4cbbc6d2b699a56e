"""Copies of values, in an arena, and the end of values that lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.idioms import (
    clear,
    counted,
    entries,
    if_,
    item,
    key_of,
    list_parts,
    move,
    part,
    positions,
    value_of,
    void,
)
from backends.native.ir import Builder
from backends.native.layout import is_plain, is_text, memory, size_align
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.derived.maker import Derives
    from backends.native.ir import FunctionText


def make_copy(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`copy(arena, to, from)`: `to` is garbage before."""
    b = Builder()

    def copied(of: t.Type, to: str, source: str) -> None:
        if is_plain(of):
            move(b, of, to, source)
        elif is_text(of):
            b.call("void", "text_keep", ["ptr %arena", f"ptr {to}", f"ptr {source}"])
        else:
            b.call("void", module.derived("copy", of), ["ptr %arena", f"ptr {to}", f"ptr {source}"])

    match type_:
        case t.FSUM:
            b.call("void", "sum_copy", ["ptr %arena", "ptr %to", "ptr %from"])
        case t.Optional(inner):
            flag = b.op(f"load i8, ptr {part(b, type_, '%from', 1)}")
            b.do(f"store i8 {flag}, ptr {part(b, type_, '%to', 1)}")
            if_(
                b, b.op(f"icmp ne i8 {flag}, 0"),
                lambda: copied(inner, part(b, type_, "%to", 0), part(b, type_, "%from", 0)),
                lambda: clear(b, inner, part(b, type_, "%to", 0)),
            )  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                copied(each, part(b, type_, "%to", i), part(b, type_, "%from", i))
        case t.Array(inner, size):
            counted(
                b, str(size), lambda i: copied(inner, item(b, inner, "%to", i), item(b, inner, "%from", i))
            )
        case t.List(inner):
            items, count = list_parts(b, "%from")
            fresh = b.slot("{ ptr, i64, i64 }")
            b.call(
                "void",
                "list_reserve",
                ["ptr %arena", f"ptr {fresh}", f"i64 {count}", f"i64 {size_align(inner)[0]}"],
            )
            to = b.op(f"load ptr, ptr {fresh}")
            if is_plain(inner):
                bytes_ = b.op(f"mul i64 {count}, {size_align(inner)[0]}")
                b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {items}, i64 {bytes_}, i1 false)")
            else:
                counted(b, count, lambda i: copied(inner, item(b, inner, to, i), item(b, inner, items, i)))
            b.do(f"store i64 {count}, ptr {b.op(f'getelementptr inbounds i64, ptr {fresh}, i64 1')}")
            move(b, type_, "%to", fresh)
        case t.Deque(inner):
            place, count = positions(b, type_, "%from")
            fresh = b.slot(memory(type_))
            clear(b, type_, fresh)
            size = size_align(inner)[0]
            counted(b, count, lambda i: copied(
                inner, b.call("ptr", "deque_push", ["ptr %arena", f"ptr {fresh}", f"i64 {size}"]), place(i)
            ))  # fmt: skip
            move(b, type_, "%to", fresh)
        case t.Bag(inner):
            fresh = b.slot(memory(type_))
            clear(b, type_, fresh)

            def add(entry: str) -> None:
                name = module.map_function("bag_add", type_)
                made = b.call("ptr", name, ["ptr %arena", f"ptr {fresh}", f"ptr {key_of(b, entry)}"])
                copied(inner, key_of(b, made), key_of(b, entry))

            entries(b, "%from", add)
            move(b, type_, "%to", fresh)
        case t.Map(key, value) | t.OMap(key, value):
            fresh = b.slot(memory(type_))
            clear(b, type_, fresh)

            def insert(entry: str) -> None:
                made = b.call(
                    "ptr",
                    module.map_function("map_insert", type_),
                    ["ptr %arena", f"ptr {fresh}", f"ptr {key_of(b, entry)}"],
                )
                copied(key, key_of(b, made), key_of(b, entry))
                copied(value, value_of(b, type_, made), value_of(b, type_, entry))

            entries(b, "%from", insert)
            move(b, type_, "%to", fresh)
        case _:
            copied(type_, "%to", "%from")
    b.end("ret void")
    return b.finish(name, f"define internal void @{name}(ptr %arena, ptr %to, ptr %from) nounwind")


def replaceable(type_: t.Type) -> bool:
    """Whether values have a function `replace`: texts, and records of these and of what is plain."""
    match type_:
        case t.STRING | t.BYTES:
            return True
        case t.Optional(inner):
            return is_plain(inner) or replaceable(inner)
        case t.Record() | t.Tuple():
            return all(is_plain(each) or replaceable(each) for each in t.parts(type_))
        case _:
            return False


def make_replace(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`replace(arena, to, from)`: a copy over a value of the arena; texts in it that stay the same are left where they are."""
    b = Builder()

    def replaced(of: t.Type, to: str, source: str) -> None:
        if is_plain(of):
            move(b, of, to, source)
        else:
            b.call("void", module.derived("replace", of), ["ptr %arena", f"ptr {to}", f"ptr {source}"])

    match type_:
        case t.Optional(inner):
            flags = [part(b, type_, at, 1) for at in ("%to", "%from")]
            there, comes = (b.op(f"icmp ne i8 {b.op(f'load i8, ptr {flag}')}, 0") for flag in flags)
            old, new = (part(b, type_, at, 0) for at in ("%to", "%from"))
            drop, copy = (module.derived(kind, inner) for kind in ("drop", "copy"))
            b.do(f"store i8 {b.op(f'zext i1 {comes} to i8')}, ptr {flags[0]}")
            if_(
                b, comes,
                lambda: if_(b, there, lambda: replaced(inner, old, new),
                            lambda: void(b, copy, "ptr %arena", f"ptr {old}", f"ptr {new}")),
                lambda: (
                    if_(b, there, lambda: void(b, drop, "ptr %arena", f"ptr {old}")), clear(b, inner, old)
                )[1],
            )  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                replaced(each, part(b, type_, "%to", i), part(b, type_, "%from", i))
        case _:
            b.call("void", "text_overwrite", ["ptr %arena", "ptr %to", "ptr %from"])
    b.end("ret void")
    return b.finish(name, f"define internal void @{name}(ptr %arena, ptr %to, ptr %from) nounwind")


def make_drop(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`drop(arena, at)`: what the value refers to is released, unless the arena is temporary."""
    b = Builder()

    def dropped(of: t.Type, at: str) -> None:
        if not is_plain(of):
            b.call("void", module.derived("drop", of), ["ptr %arena", f"ptr {at}"])

    flag = b.op("getelementptr inbounds i64, ptr %arena, i64 4")
    temporary = b.op(f"icmp ne i64 {b.op(f'load i64, ptr {flag}')}, 0")
    b.branch(temporary, "over", "kept")
    b.at("over")
    b.end("ret void")
    b.at("kept")
    match type_:
        case t.STRING | t.BYTES | t.REGEX:
            b.call("void", "text_drop", ["ptr %arena", "ptr %at"])
        case t.FSUM:
            b.call("void", "sum_drop", ["ptr %arena", "ptr %at"])
        case t.Optional(inner):
            flag = b.op(f"load i8, ptr {part(b, type_, '%at', 1)}")
            if_(b, b.op(f"icmp ne i8 {flag}, 0"), lambda: dropped(inner, part(b, type_, "%at", 0)))
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                dropped(each, part(b, type_, "%at", i))
        case t.Array(inner, size):
            if not is_plain(inner):
                counted(b, str(size), lambda i: dropped(inner, item(b, inner, "%at", i)))
        case t.List(inner) | t.Deque(inner):
            items, _ = list_parts(b, "%at")
            place, count = positions(b, type_, "%at")
            if not is_plain(inner):
                counted(b, count, lambda i: dropped(inner, place(i)))
            room = b.op(f"load i64, ptr {b.op('getelementptr inbounds i64, ptr %at, i64 2')}")
            bytes_ = b.op(f"mul i64 {room}, {size_align(inner)[0]}")
            if_(b, b.op(f"icmp ne i64 {room}, 0"),
                lambda: void(b, "release", "ptr %arena", f"ptr {items}", f"i64 {bytes_}"))  # fmt: skip
        case t.Bag(inner):
            if not is_plain(inner):
                entries(b, "%at", lambda entry: dropped(inner, key_of(b, entry)))
            b.call("void", module.map_function("map_close", type_), ["ptr %arena", "ptr %at"])
        case t.Map(key, value) | t.OMap(key, value):

            def drop_entry(entry: str) -> None:
                dropped(key, key_of(b, entry))
                dropped(value, value_of(b, type_, entry))

            if not (is_plain(key) and is_plain(value)):
                entries(b, "%at", drop_entry)
            b.call("void", module.map_function("map_close", type_), ["ptr %arena", "ptr %at"])
        case _:
            pass
    b.end("ret void")
    return b.finish(name, f"define internal void @{name}(ptr %arena, ptr %at) nounwind")
