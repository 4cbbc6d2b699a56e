"""What every container is asked: how many items it has, which one is somewhere, whether and where one is there."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import counted, positions, value_of
from backends.native.layout import Unsupported, is_text, memory, register
from backends.native.lower import arithmetic, outputs
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Sent, Value
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]


def item_of(f: Frame, expr: typed.At, container: Value, index: Value) -> Value:
    """`container[index]`: a character, an item or the value of an entry. It must be there."""
    b, kind = f.b, expr.value.type
    if isinstance(kind, t.Map | t.OMap):
        entry = f.find(kind, f.ptr(container), index)
        f.trap_if(b.op(f"icmp eq ptr {entry}, null"), "key-missing", expr.site, shown(f, index))
        arena = container.arena if isinstance(container, Memory) else TEMPORARY
        return f.load(expr.type, value_of(b, kind, entry), arena)
    if is_text(kind):
        return _point(f, expr, container, as_index(f, index))
    item_at, count = f.extent(container)
    at = as_index(f, index)
    f.trap_if(b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    return item_at(at)


def shown(f: Frame, key: Value) -> tuple[str, ...]:
    """What a trap tells of a key: a whole number of at most 64 bits."""
    return (as_index(f, key),) if key.type in _SHOWN else ()


_SHOWN: Final = (t.I32, t.I64, t.U64, t.TIME, t.DURATION)


def as_index(f: Frame, index: Value) -> str:
    """A whole number as i64.

    Raises: Unsupported for keys, which only containers have that are not compiled.
    """
    if not isinstance(index, Scalar):
        raise Unsupported(f"entries by {index.type}")
    return f.b.op(f"sext i32 {f.reg(index)} to i64") if index.type == t.I32 else f.reg(index)


def _point(f: Frame, expr: typed.At, text: Value, at: str) -> Value:
    b, ptr = f.b, f.ptr(text)
    if text.type == t.BYTES:
        count = b.call("i64", "text_bytes", [f"ptr {ptr}"])
        f.trap_if(b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
        data = b.call("ptr", "text_data", [f"ptr {ptr}"])
        byte = b.op(f"load i8, ptr {b.op(f'getelementptr inbounds i8, ptr {data}, i64 {at}')}")
        return Scalar(expr.type, b.op(f"zext i8 {byte} to {register(expr.type)}"))
    byte = b.call("i64", "text_index_of", [f"ptr {TEMPORARY}", f"ptr {ptr}", f"i64 {at}"])
    outside = b.op(f"icmp slt i64 {byte}, 0")
    f.trap_if(outside, "index-range", expr.site, (at, b.op(f"xor i64 {byte}, -1")))
    data = b.call("ptr", "text_data", [f"ptr {ptr}"])
    place = b.op(f"getelementptr inbounds i8, ptr {data}, i64 {byte}")
    point = b.call("i32", "text_point", [f"ptr {place}"])
    return Scalar(expr.type, point if expr.type == t.I32 else b.op(f"sext i32 {point} to i64"))


def item_place(f: Frame, expr: typed.At, where: Memory, index: Value) -> Memory:
    """The place of an item or of the value of an entry. It must be there."""
    b, kind = f.b, where.type
    if isinstance(kind, t.Map | t.OMap):
        entry = f.find(kind, where.ptr, index)
        f.trap_if(b.op(f"icmp eq ptr {entry}, null"), "key-missing", expr.site, shown(f, index))
        return Memory(expr.type, value_of(b, kind, entry), where.arena)
    at = as_index(f, index)
    match kind:
        case t.List() | t.Array() | t.Deque():
            place_at, count = positions(b, kind, where.ptr)
        case _:
            raise Unsupported(f"places in {kind}")
    f.trap_if(b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    return Memory(expr.type, place_at(at), where.arena)


def length_of(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """How many items, bytes or code points there are."""
    (one,) = values
    b = f.b
    if isinstance(one, Sent):
        return Scalar(t.I64, outputs.length(f, one))
    match one.type:
        case t.STRING:
            return Scalar(t.I64, b.call("i64", "text_count", [f"ptr {TEMPORARY}", f"ptr {f.ptr(one)}"]))
        case t.BYTES:
            return Scalar(t.I64, b.call("i64", "text_bytes", [f"ptr {f.ptr(one)}"]))
        case t.Map() | t.OMap() | t.Bag():
            return Scalar(t.I64, b.op(f"load i64, ptr {f.ptr(one)}"))
        case _:
            return Scalar(t.I64, f.extent(one)[1])


def _get(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, container, index, *rest = f.b, *values
    kind = container.type
    match expr.args:
        case [_, _, typed.MakeMap(type_, ())]:
            rest = [Memory(type_, f.module.constant(memory(type_), "zeroinitializer"))]
        case _:
            pass
    if isinstance(kind, t.Map | t.OMap):
        entry = f.find(kind, f.ptr(container), index, expr)
        there = b.op(f"icmp ne ptr {entry}, null")

        def found() -> Value:
            return f.load(kind.value, value_of(b, kind, entry))
    else:
        at, count = f.extent(container)
        position = as_index(f, index)
        there = b.op(f"icmp ult i64 {position}, {count}")

        def found() -> Value:
            return at(position)

    if rest:
        return f.choice(expr.type, there, found, lambda: rest[0])
    wanted = expr.type
    inner = t.parts(kind)[-1]
    if inner == wanted:
        return f.choice(wanted, there, found, lambda: Memory(wanted, f.empty(wanted)))
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    return f.choice(wanted, there, lambda: f.optional(wanted, found()), lambda: f.optional(wanted, None))


def _contains(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    container, wanted = values
    b = f.b
    if isinstance(container.type, t.Map | t.OMap | t.Bag):
        entry = f.find(container.type, f.ptr(container), wanted, expr)
        return Scalar(t.BOOL, b.op(f"icmp ne ptr {entry}, null"))
    if is_text(container.type):
        at = b.call("i64", "text_search", [f"ptr {f.ptr(container)}", f"ptr {f.ptr(wanted)}", "i64 0"])
        return Scalar(t.BOOL, b.op(f"icmp sge i64 {at}, 0"))
    return Scalar(t.BOOL, b.op(f"icmp sge i64 {_position(f, container, wanted)}, 0"))


def _position(f: Frame, container: Value, wanted: Value) -> str:
    """Where an item first stands in a list, or -1."""
    at, count = f.extent(container)
    if not isinstance(wanted, Scalar):
        wanted = Memory(wanted.type, f.ptr(wanted))
    return _first(f, count, lambda i: arithmetic.same(f, at(i), wanted))


def _first(f: Frame, count: str, test: Callable[[str], str]) -> str:
    """The first number below `count` of which a test holds, or -1."""
    b = f.b
    found = b.slot("i64")
    b.do(f"store i64 -1, ptr {found}")
    after = b.fresh("found")

    def body(i: str) -> None:
        yes, no = b.fresh("yes"), b.fresh("no")
        b.branch(test(i), yes, no)
        b.at(yes)
        b.do(f"store i64 {i}, ptr {found}")
        b.go(after)
        b.at(no)

    counted(b, count, body)
    b.at(after)
    return b.op(f"load i64, ptr {found}")


def _index_of(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    return Scalar(t.I64, _position(f, values[0], values[1]))


RULES: Final[dict[str, Rule]] = {
    "len": length_of,
    "get": _get,
    "has": _contains,
    "contains": _contains,
    "index_of": _index_of,
}
