"""Lists, arrays and deques: made of values, of parts of others, of the items of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, entries, item, key_of, void
from backends.native.layout import Unsupported, is_text, memory, shares, size_align
from backends.native.lower import texts
from backends.native.lower.containers import length_of
from backends.native.lower.loops import number_loop
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.classes import frozen
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]


def display(f: Frame, type_: t.Type, values: Sequence[Value]) -> Value:
    """A list or array of values that are owned."""
    b = f.b
    match type_:
        case t.Array(inner, _):
            slot = f.empty(type_)
            for i, each in enumerate(values):
                f.put(each, item(b, inner, slot, str(i)))
        case t.List(inner):
            slot = b.slot(memory(type_))
            void(
                b,
                "list_reserve",
                f"ptr {TEMPORARY}",
                f"ptr {slot}",
                f"i64 {len(values)}",
                f"i64 {size_align(inner)[0]}",
            )
            items = b.op(f"load ptr, ptr {slot}")
            for i, each in enumerate(values):
                f.put(each, item(b, inner, items, str(i)))
            set_count(f, slot, str(len(values)))
        case _:
            raise Unsupported(f"displays of {type_}")
    return Memory(type_, slot)


def reserve(f: Frame, list_: str, inner: t.Type, count: str) -> None:
    """Room for items in a new list."""
    size = size_align(inner)[0]
    void(f.b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {list_}", f"i64 {count}", f"i64 {size}")


def set_count(f: Frame, list_: str, count: str) -> None:
    """Says how many items a list or deque has."""
    f.b.do(f"store i64 {count}, ptr {f.b.op(f'getelementptr inbounds i64, ptr {list_}, i64 1')}")


def put_item(f: Frame, one: Value, to: str) -> None:
    """Writes an item to a new list: texts are shared, containers copied."""
    if shares(one.type):
        f.put(one, to)
    else:
        f.keep(one, to, TEMPORARY)


def collected(f: Frame, type_: t.Type, count: str, at: Callable[[str], Value]) -> Value:
    """A list of `count` items."""
    b, inner = f.b, t.parts(type_)[0]
    slot = b.slot(memory(type_))
    void(b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {count}", f"i64 {size_align(inner)[0]}")
    items = b.op(f"load ptr, ptr {slot}")
    number_loop(f, "0", count, lambda i: put_item(f, at(i), item(b, inner, items, i)), None)
    set_count(f, slot, count)
    return Memory(type_, slot)


def _slice(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, container = f.b, values[0]
    low, high = f.reg(values[1]), f.reg(values[2])
    if container.type == t.STRING:
        return _part_of_text(f, expr, container, low, high)
    length = f.reg(length_of(f, expr, (container,)))
    f.trap_if(b.op(f"icmp ugt i64 {low}, {length}"), "index-range", expr.site, (low, length))
    outside = b.op(f"or i1 {b.op(f'icmp slt i64 {high}, {low}')}, {b.op(f'icmp sgt i64 {high}, {length}')}")
    f.trap_if(outside, "index-range", expr.site, (high, length))
    if container.type == t.BYTES:
        slot = f.empty(t.BYTES)
        void(b, "bytes_slice", f"ptr {slot}", f"ptr {f.ptr(container)}", f"i64 {low}", f"i64 {high}")
        return Memory(t.BYTES, slot, lent=f.is_lent(container))
    at, _ = f.extent(container)
    count = b.op(f"sub i64 {high}, {low}")
    return collected(f, expr.type, count, lambda i: at(b.op(f"add i64 {low}, {i}")))


def behind(f: Frame, expr: typed.Apply, text: Value, low: Value) -> Value:
    """`text[low:len(text)]`, for which nobody counts the code points of the rest."""
    return _part_of_text(f, expr, text, f.reg(low), None)


def _part_of_text(f: Frame, expr: typed.Apply, text: Value, low: str, high: str | None) -> Value:
    """The part of a string from `low` to `high`, or to its end."""
    b, slot = f.b, f.empty(t.STRING)
    given = [f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(text)}", f"i64 {low}"]
    if high is None:
        length = b.call("i64", "text_behind", given)
        wrong = low
    else:
        length = b.call("i64", "text_slice", [*given, f"i64 {high}"])
        beyond = b.op(f"icmp ugt i64 {low}, {length}")
        wrong = b.op(f"select i1 {beyond}, i64 {low}, i64 {high}")
    f.trap_if(b.op(f"icmp sge i64 {length}, 0"), "index-range", expr.site, (wrong, length))
    return Memory(t.STRING, slot, lent=f.is_lent(text))


def _taken(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b = f.b
    at, count = f.extent(values[0])
    asked = f.reg(values[1])
    asked = b.op(f"select i1 {b.op(f'icmp slt i64 {asked}, 0')}, i64 0, i64 {asked}")
    asked = b.op(f"select i1 {b.op(f'icmp sgt i64 {asked}, {count}')}, i64 {count}, i64 {asked}")
    if expr.operation == "take":
        return collected(f, expr.type, asked, at)
    return collected(
        f, expr.type, b.op(f"sub i64 {count}, {asked}"), lambda i: at(b.op(f"add i64 {asked}, {i}"))
    )


def _concat(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (x, y) = f.b, values
    if is_text(x.type):
        slot = f.empty(x.type)
        void(b, "text_concat", f"ptr {TEMPORARY}", f"ptr {slot}", f"ptr {f.ptr(x)}", f"ptr {f.ptr(y)}")
        return Memory(x.type, slot)
    (first, m), (second, n) = f.extent(x), f.extent(y)
    inner = t.parts(expr.type)[0]
    slot = b.slot(memory(expr.type))
    total = b.op(f"add i64 {m}, {n}")
    void(b, "list_reserve", f"ptr {TEMPORARY}", f"ptr {slot}", f"i64 {total}", f"i64 {size_align(inner)[0]}")
    items = b.op(f"load ptr, ptr {slot}")
    counted(b, m, lambda i: put_item(f, first(i), item(b, inner, items, i)))
    rest = item(b, inner, items, m)
    counted(b, n, lambda i: put_item(f, second(i), item(b, inner, rest, i)))
    set_count(f, slot, total)
    return Memory(expr.type, slot)


def _reverse(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    if is_text(values[0].type):
        return texts.reverse(f, values[0])
    b = f.b
    at, count = f.extent(values[0])
    last = b.op(f"sub i64 {count}, 1")
    return collected(f, expr.type, count, lambda i: at(b.op(f"sub i64 {last}, {i}")))


def _to_list(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    if isinstance(values[0].type, t.Bag):
        inner, slot = t.parts(expr.type)[0], f.empty(expr.type)
        entries(
            f.b, f.ptr(values[0]), lambda e: put_item(f, f.load(inner, key_of(f.b, e)), f.pushed(slot, inner))
        )
        return Memory(expr.type, slot)
    at, count = f.extent(values[0])
    return collected(f, expr.type, count, at)


_LARGEST_LIST: Final = 1 << 32  # bytes, of a list made at once


def _fill(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, one = f.b, values[0]
    if not isinstance(one, Scalar):
        one = Memory(one.type, f.ptr(one))
    if isinstance(expr.type, t.Array):
        size = expr.type.size
        if len(values) == 2:
            count = f.reg(values[1])
            f.trap_if(b.op(f"icmp ne i64 {count}, {size}"), "index-range", expr.site, (count, str(size)))
        slot, inner = f.empty(expr.type), expr.type.item
        counted(b, str(size), lambda i: put_item(f, one, item(b, inner, slot, i)))
        return Memory(expr.type, slot)
    count = f.reg(values[1])
    count = b.op(f"select i1 {b.op(f'icmp slt i64 {count}, 0')}, i64 0, i64 {count}")
    most = _LARGEST_LIST // size_align(one.type)[0]
    f.trap_if(
        b.op(f"icmp sgt i64 {count}, {most}"), "arena-limit", -1 if expr.site is None else expr.site, (count,)
    )
    return collected(f, expr.type, count, lambda _i: one)


def _end(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`front`, `back`."""
    b = f.b
    at, count = f.extent(values[0])
    f.trap_if(b.op(f"icmp eq i64 {count}, 0"), "remove-missing", expr.site)
    return at("0" if expr.operation == "front" else b.op(f"sub i64 {count}, 1"))


def minus(f: Frame, expr: typed.Apply, values: Sequence[Value], told: Told | None = None) -> Value:
    """`bag_minus`."""
    inner = t.parts(expr.type)[0]
    slot = f.empty(expr.type)
    difference(
        f,
        values,
        lambda one: put_item(f, one, f.pushed(slot, inner)),
        lambda count: reserve(f, slot, inner, count),
        told=told,
    )
    return Memory(expr.type, slot)


@frozen
class Told:
    """By what items of a list are told from others: what `key` makes of them, of a type. `name` is the same for the same."""

    type: t.Type
    key: Callable[[Value], Value]
    name: object


def difference(f: Frame, values: Sequence[Value], body: Callable[[Value], None],
               sized: Callable[[str], None] | None, taken_: str | None = None,
               told: Told | None = None) -> None:  # fmt: skip
    """A loop over the items of a list that another list does not take away; `sized` as of `loop`.

    `taken_`: a place that gets whether anything was taken away. Where the same lists of the input were compared the other
    way round, and nothing was, nothing is looked for. `told`: by what items are told, if not by all that they are.
    """
    b, whole = f.b, t.parts(values[0].type)[0]
    inner = whole if told is None else told.type
    size = size_align(inner)[0]
    (at, count), (other, others) = f.extent(values[0]), f.extent(values[1])
    others = b.op(f"select i1 {b.op(f'icmp eq i64 {count}, 0')}, i64 0, i64 {others}")
    known = f.compared.get((values[1], values[0], None if told is None else told.name))
    if known is not None:
        others = b.op(f"select i1 {b.op(f'load i1, ptr {known}')}, i64 {others}, i64 0")
    if taken_ is not None:
        b.do(f"store i1 false, ptr {taken_}")
    bytes_ = b.op(f"add i64 {b.op(f'mul i64 {others}, {size}')}, 1")
    items = b.call("ptr", "alloc", [f"ptr {TEMPORARY}", f"i64 {bytes_}"])

    def keyed(one: Value) -> Value:
        return one if told is None else told.key(one)

    counted(b, others, lambda i: put_item(f, keyed(other(i)), item(b, inner, items, i)))
    make, taken = (f.module.minus_function(name, inner) for name in ("minus_table", "minus_taken"))
    table = b.call("ptr", make, [f"ptr {TEMPORARY}", f"ptr {items}", f"i64 {size}", f"i64 {others}"])
    if sized is not None:
        sized(count)

    def each(i: str) -> None:
        one = at(i)
        ptr = f.ptr(keyed(one))
        gone, kept, after = b.fresh("gone"), b.fresh("kept"), b.fresh("after")
        b.branch(b.call("i1", taken, [f"ptr {table}", f"ptr {ptr}", f"i64 {size}"]), gone, kept)
        b.at(gone)
        if taken_ is not None:
            b.do(f"store i1 true, ptr {taken_}")
        b.go(after)
        b.at(kept)
        body(one if isinstance(one, Scalar) or told is not None else Memory(inner, ptr))
        b.at(after)

    counted(b, count, each)


RULES: Final[dict[str, Rule]] = {
    "slice": _slice,
    "take": _taken,
    "drop_first": _taken,
    "concat": _concat,
    "reverse": _reverse,
    "to_list": _to_list,
    "fill": _fill,
    "front": _end,
    "back": _end,
    "bag_minus": minus,
}
