"""How keys lie in maps and bags: those that are numbers, and those with floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, item, list_parts, load, part, store
from backends.native.ir import Builder
from backends.native.layout import register
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.derived.maker import Derives
    from backends.native.ir import FunctionText

INTEGERS: Final = (t.I32, t.I64, t.U64)  # whose maps have a direct part


def make_number(_module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`number(x) -> i64`: of whole numbers, for the direct part of maps; of all else -1."""
    b = Builder()
    if type_ in INTEGERS:
        x = load(b, type_, "%x")
        b.end(f"ret i64 {b.op(f'sext i32 {x} to i64') if type_ == t.I32 else x}")
    else:
        b.end("ret i64 -1")
    return b.finish(name, f"define internal i64 @{name}(ptr %x) nounwind")


def make_canonical(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`canonical(at)`: floats in a key, -0.0 becomes 0.0."""
    b = Builder()

    def made(of: t.Type, at: str) -> None:
        if t.contains(of, t.F32, t.F64):
            b.call("void", module.derived("canonical", of), [f"ptr {at}"])

    match type_:
        case t.F32 | t.F64:
            positive = b.op(f"fadd {register(type_)} {load(b, type_, '%at')}, 0.0")
            store(b, type_, positive, "%at")
        case t.Optional(inner):
            made(inner, part(b, type_, "%at", 0))
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                made(each, part(b, type_, "%at", i))
        case t.Array(inner, size):
            counted(b, str(size), lambda i: made(inner, item(b, inner, "%at", i)))
        case t.List(inner):
            items, count = list_parts(b, "%at")
            counted(b, count, lambda i: made(inner, item(b, inner, items, i)))
        case _:
            pass
    b.end("ret void")
    return b.finish(name, f"define internal void @{name}(ptr %at) nounwind")
