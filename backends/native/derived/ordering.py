"""The total order of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.idioms import counted, if_, load, part, positions
from backends.native.ir import Builder
from backends.native.layout import is_text, register
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.derived.maker import Derives
    from backends.native.ir import FunctionText


def order_scalar(b: Builder, type_: t.Type, x: str, y: str) -> str:
    """-1, 0 or 1 by the total order of two scalars."""
    kind = register(type_)
    if type_ == t.UNIT:
        return "0"
    if kind in ("float", "double"):
        unknown = [b.op(f"fcmp uno {kind} {v}, {v}") for v in (x, y)]
        known = [b.op(f"xor i1 {u}, true") for u in unknown]
        above = b.op(f"or i1 {b.op(f'fcmp ogt {kind} {x}, {y}')}, {b.op(f'and i1 {unknown[0]}, {known[1]}')}")
        below = b.op(f"or i1 {b.op(f'fcmp olt {kind} {x}, {y}')}, {b.op(f'and i1 {known[0]}, {unknown[1]}')}")
    else:
        sign = "u" if type_ in (t.U64, t.BOOL) else "s"
        above, below = b.op(f"icmp {sign}gt {kind} {x}, {y}"), b.op(f"icmp {sign}lt {kind} {x}, {y}")
    return b.op(f"sub i64 {b.op(f'zext i1 {above} to i64')}, {b.op(f'zext i1 {below} to i64')}")


def make_order(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`order(arena, x, y) -> i64`: -1, 0 or 1."""
    b = Builder()
    result = b.slot("i64")

    def decide(found: str) -> None:
        """Leaves with -1 or 1; goes on with 0."""
        b.do(f"store i64 {found}, ptr {result}")
        on = b.fresh("on")
        b.branch(b.op(f"icmp eq i64 {found}, 0"), on, "decided")
        b.at(on)

    def compared(of: t.Type, x: str, y: str) -> str:
        if register(of) is not None:
            return order_scalar(b, of, load(b, of, x), load(b, of, y))
        if is_text(of):
            return b.call("i64", "text_compare", [f"ptr {x}", f"ptr {y}"])
        return b.call("i64", module.derived("order", of), ["ptr %arena", f"ptr {x}", f"ptr {y}"])

    match type_:
        case t.Optional(inner):
            flags = [b.op(f"load i8, ptr {part(b, type_, at, 1)}") for at in ("%x", "%y")]
            wide = [b.op(f"zext i8 {flag} to i64") for flag in flags]
            decide(b.op(f"sub i64 {wide[0]}, {wide[1]}"))
            if_(b, b.op(f"icmp ne i8 {flags[0]}, 0"),
                lambda: decide(compared(inner, part(b, type_, "%x", 0), part(b, type_, "%y", 0))))  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                decide(compared(each, part(b, type_, "%x", i), part(b, type_, "%y", i)))
        case t.List(inner) | t.Array(inner) | t.Deque(inner):
            (xs, m), (ys, n) = positions(b, type_, "%x"), positions(b, type_, "%y")
            least = b.op(f"select i1 {b.op(f'icmp slt i64 {m}, {n}')}, i64 {m}, i64 {n}")
            counted(b, least, lambda i: decide(compared(inner, xs(i), ys(i))))
            decide(order_scalar(b, t.I64, m, n))
        case t.FSUM:
            rooms = [f"ptr {b.slot('[76 x i64]')}" for _ in range(2)]
            decide(b.call("i64", "sum_order", ["ptr %x", "ptr %y", *rooms]))
        case t.Map() | t.OMap() | t.Bag():
            decide(b.call("i64", module.entries_function(type_), ["ptr %arena", "ptr %x", "ptr %y"]))
        case _:
            decide(compared(type_, "%x", "%y"))
    b.do(f"store i64 0, ptr {result}")
    b.at("decided")
    b.end(f"ret i64 {b.op(f'load i64, ptr {result}')}")
    return b.finish(name, f"define internal i64 @{name}(ptr %arena, ptr %x, ptr %y) nounwind")


def make_key_order(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`key_order(x, y) -> i64`: the order of keys, which asks for no memory."""
    b = Builder()
    b.end(f"ret i64 {b.call('i64', module.derived('order', type_), ['ptr null', 'ptr %x', 'ptr %y'])}")
    return b.finish(name, f"define internal i64 @{name}(ptr %x, ptr %y) nounwind")
