"""Operations that change the container in a place. What they write is owned."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import clear, if_, item, key_of, list_parts, positions, void
from backends.native.layout import Unsupported, is_plain
from backends.native.lower.lists import set_count
from backends.native.lower.maps import put_entry, remove_entry
from backends.native.lower.sums import add_float
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

UNIT: Final = Scalar(t.UNIT, "0")


def _push(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    return _put_in(f, f.pushed(where.ptr, t.parts(where.type)[0], where.arena), where, values[0])


def _put_in(f: Frame, to: str, where: Memory, value: Value) -> Value:
    """Puts a value into a new place of a container."""
    if where.arena == TEMPORARY:
        f.put(value, to)
    else:
        f.keep(value, to, where.arena)
    return UNIT


def _pop(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    b, inner = f.b, t.parts(where.type)[0]
    items, count = list_parts(b, where.ptr)
    f.trap_if(b.op(f"icmp eq i64 {count}, 0"), "remove-missing", expr.site)
    last = b.op(f"sub i64 {count}, 1")
    set_count(f, where.ptr, last)
    return _taken_out(f, inner, item(b, inner, items, last), where.arena)


def _taken_out(f: Frame, type_: t.Type, at: str, arena: str) -> Value:
    """A value that has left its container."""
    found = f.load(type_, at)
    if isinstance(found, Scalar):
        return found
    found = f.owned(found)
    if arena != TEMPORARY and not is_plain(type_):
        void(f.b, f.module.derived("drop", type_), f"ptr {arena}", f"ptr {at}")
    return found


def _set(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    at = f.reg(values[0])
    place_at, count = positions(f.b, where.type, where.ptr)
    f.trap_if(f.b.op(f"icmp uge i64 {at}, {count}"), "index-range", expr.site, (at, count))
    f.assign(values[1], place_at(at), where.arena, fresh=True)
    return UNIT


def _push_back(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    return _put_in(f, f.pushed_back(where.ptr, t.parts(where.type)[0], where.arena), where, values[0])


def _pop_end(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    """`pop_front`, `pop_back`."""
    b = f.b
    place_at, count = positions(b, where.type, where.ptr)
    f.trap_if(b.op(f"icmp eq i64 {count}, 0"), "remove-missing", expr.site)
    last = b.op(f"sub i64 {count}, 1")
    at = place_at("0" if expr.operation == "pop_front" else last)
    set_count(f, where.ptr, last)
    if expr.operation == "pop_front":
        room = b.op(f"load i64, ptr {b.op(f'getelementptr inbounds i64, ptr {where.ptr}, i64 2')}")
        first = b.op(f"getelementptr inbounds i64, ptr {where.ptr}, i64 3")
        following = b.op(f"add i64 {b.op(f'load i64, ptr {first}')}, 1")
        b.do(f"store i64 {b.op(f'and i64 {following}, ' + b.op(f'sub i64 {room}, 1'))}, ptr {first}")
    return _taken_out(f, t.parts(where.type)[0], at, where.arena)


def _add_item(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    f.add(where.type, where.ptr, where.arena, values[0])
    return UNIT


def _remove_item(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    b, kind = f.b, where.type
    assert isinstance(kind, t.Bag)  # noqa: S101 - by the table
    name = f.module.map_function("bag_take", kind)
    entry = b.call("ptr", name, [f"ptr {where.ptr}", f"ptr {f.ptr(values[0])}"])
    f.trap_if(b.op(f"icmp eq ptr {entry}, null"), "remove-missing", expr.site)
    if not is_plain(kind.item):
        void(b, f.module.derived("drop", kind.item), f"ptr {where.arena}", f"ptr {key_of(b, entry)}")
    return UNIT


def _set_entry(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    put_entry(f, where, values[0], values[1], fresh=True)
    return UNIT


def _delete(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    b = f.b
    entry = f.find(where.type, where.ptr, values[0])
    there = b.op(f"icmp ne ptr {entry}, null")
    if_(b, there, lambda: remove_entry(f, where, entry))
    return Scalar(t.BOOL, there)


def _keep_end(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    """`keep_first`, `keep_last`: entries leave at the other end."""
    b, most = f.b, f.reg(values[0])
    wanted = b.op(f"select i1 {b.op(f'icmp sgt i64 {most}, 0')}, i64 {most}, i64 0")
    end = b.op(
        f"getelementptr inbounds i64, ptr {where.ptr}, i64 {2 if expr.operation == 'keep_first' else 1}"
    )
    again, inside, after = (b.fresh(name) for name in ("again", "inside", "after"))
    b.at(again)
    count = b.op(f"load i64, ptr {where.ptr}")
    b.branch(b.op(f"icmp sgt i64 {count}, {wanted}"), inside, after)
    b.at(inside)
    remove_entry(f, where, b.op(f"load ptr, ptr {end}"))
    b.go(again)
    b.at(after)
    return UNIT


def _clear(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    if not is_plain(where.type):
        void(f.b, f.module.derived("drop", where.type), f"ptr {where.arena}", f"ptr {where.ptr}")
    clear(f.b, where.type, where.ptr)
    return UNIT


def _add(f: Frame, expr: typed.Apply, where: Memory, values: Sequence[Value]) -> Value:
    if where.type != t.FSUM:
        raise Unsupported(f"`{expr.operation}` of {where.type}")
    if expr.operation == "merge":
        void(f.b, "sum_merge", f"ptr {where.arena}", f"ptr {where.ptr}", f"ptr {f.ptr(values[0])}")
    else:
        add_float(f, where.ptr, where.arena, values[0], "0" if expr.operation == "add" else "1")
    return UNIT


RULES: Final[dict[tuple[str, type], Callable[[Frame, typed.Apply, Memory, Sequence[Value]], Value]]] = {
    ("push", t.List): _push,
    ("pop", t.List): _pop,
    ("set", t.List): _set,
    ("set", t.Array): _set,
    ("set", t.Deque): _set,
    ("set", t.Map): _set_entry,
    ("set", t.OMap): _set_entry,
    ("delete", t.Map): _delete,
    ("delete", t.OMap): _delete,
    ("keep_first", t.OMap): _keep_end,
    ("keep_last", t.OMap): _keep_end,
    ("push_back", t.Deque): _push_back,
    ("pop_front", t.Deque): _pop_end,
    ("pop_back", t.Deque): _pop_end,
    ("add", t.Bag): _add_item,
    ("remove", t.Bag): _remove_item,
    **{("clear", kind): _clear for kind in (t.List, t.Array, t.Deque, t.Map, t.OMap, t.Bag)},
    **{(name, t.Primitive): _add for name in ("add", "sub", "merge")},
}
