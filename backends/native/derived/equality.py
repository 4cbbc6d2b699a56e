"""Whether values are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.native.idioms import counted, entries, if_, item, key_of, load, part, positions, value_of
from backends.native.ir import Builder
from backends.native.layout import is_text, register
from river.lang import types as t

if TYPE_CHECKING:
    from backends.native.derived.maker import Derives
    from backends.native.ir import FunctionText


def same_scalar(b: Builder, type_: t.Type, x: str, y: str) -> str:
    """Whether two scalars are the same; NaN is NaN."""
    kind = register(type_)
    if type_ == t.UNIT:
        return "true"
    if kind in ("float", "double"):
        equal, apart, joined = b.op(f"fcmp oeq {kind} {x}, {y}"), b.fresh("apart"), b.fresh("joined")
        before = b.block
        b.branch(b.op(f"fcmp uno {kind} {x}, {y}"), apart, joined, rare=True)
        b.at(apart)
        first, second = b.op(f"fcmp uno {kind} {x}, {x}"), b.op(f"fcmp uno {kind} {y}, {y}")
        both = b.op(f"and i1 {first}, {second}")
        b.at(joined)
        return b.op(f"phi i1 [ {equal}, %{before} ], [ {both}, %{apart} ]")
    return b.op(f"icmp eq {kind} {x}, {y}")


def make_same(module: Derives, type_: t.Type, name: str) -> FunctionText:
    """`same(x, y) -> i1`."""
    b = Builder()

    def differ(of: t.Type, x: str, y: str) -> None:
        """Leaves with false unless the same."""
        on = b.fresh("on")
        b.branch(compared(of, x, y), on, "different")
        b.at(on)

    def compared(of: t.Type, x: str, y: str) -> str:
        if register(of) is not None:
            return same_scalar(b, of, load(b, of, x), load(b, of, y))
        if is_text(of):
            return b.call("i1", "text_same", [f"ptr {x}", f"ptr {y}"])
        return b.call("i1", module.derived("same", of), [f"ptr {x}", f"ptr {y}"])

    def number(x: str, y: str) -> None:
        on = b.fresh("on")
        b.branch(b.op(f"icmp eq i64 {x}, {y}"), on, "different")
        b.at(on)

    match type_:
        case t.FSUM:
            rooms = [f"ptr {b.slot('[76 x i64]')}" for _ in range(2)]
            number(b.call("i64", "sum_order", ["ptr %x", "ptr %y", *rooms]), "0")
        case t.Optional(inner):
            flags = [b.op(f"load i8, ptr {part(b, type_, at, 1)}") for at in ("%x", "%y")]
            on = b.fresh("on")
            b.branch(b.op(f"icmp eq i8 {flags[0]}, {flags[1]}"), on, "different")
            b.at(on)
            if_(b, b.op(f"icmp ne i8 {flags[0]}, 0"),
                lambda: differ(inner, part(b, type_, "%x", 0), part(b, type_, "%y", 0)))  # fmt: skip
        case t.Record() | t.Tuple():
            for i, each in enumerate(t.parts(type_)):
                differ(each, part(b, type_, "%x", i), part(b, type_, "%y", i))
        case t.Array(inner, size):
            counted(b, str(size), lambda i: differ(inner, item(b, inner, "%x", i), item(b, inner, "%y", i)))
        case t.List(inner) | t.Deque(inner):
            (xs, m), (ys, n) = positions(b, type_, "%x"), positions(b, type_, "%y")
            number(m, n)
            counted(b, m, lambda i: differ(inner, xs(i), ys(i)))
        case t.Bag():
            m, n = b.op("load i64, ptr %x"), b.op("load i64, ptr %y")
            number(m, n)
            count = module.map_function("bag_count", type_)
            entries(b, "%x", lambda e: number(*(
                b.call("i64", count, [f"ptr {bag}", f"ptr {key_of(b, e)}"]) for bag in ("%x", "%y")
            )))  # fmt: skip
        case t.Map(_, value) | t.OMap(_, value):
            m, n = b.op("load i64, ptr %x"), b.op("load i64, ptr %y")
            number(m, n)

            def entry_same(entry: str) -> None:
                other = b.call(
                    "ptr", module.map_function("map_find", type_), ["ptr %y", f"ptr {key_of(b, entry)}"]
                )
                on = b.fresh("on")
                b.branch(b.op(f"icmp ne ptr {other}, null"), on, "different")
                b.at(on)
                differ(value, value_of(b, type_, entry), value_of(b, type_, other))

            entries(b, "%x", entry_same)
        case _:
            differ(type_, "%x", "%y")
    b.end("ret i1 true")
    b.at("different")
    b.end("ret i1 false")
    return b.finish(name, f"define internal i1 @{name}(ptr %x, ptr %y) nounwind")
