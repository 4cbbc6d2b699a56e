"""Entries of maps, ordered maps and bags: written, removed, listed, and sought in their order."""

# ruff: noqa: ARG001 - the rules of all operations have the same parameters

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backends.native.idioms import entries, if_, key_of, value_of, void
from backends.native.layout import Unsupported, is_plain
from backends.native.lower import arithmetic
from backends.native.lower.lists import put_item
from backends.native.lower.values import TEMPORARY, Memory, Scalar, Value
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.lower.frame import Frame

    Rule = Callable[[Frame, typed.Apply, Sequence[Value]], Value]


def put_entry(f: Frame, map_: Memory, key: Value, new: Value, *, fresh: bool) -> None:
    """Writes an entry, in its old place if the key is there."""
    b, kind = f.b, map_.type
    assert isinstance(kind, t.Map | t.OMap)  # noqa: S101 - by its type
    key = key if isinstance(key, Scalar) else Memory(key.type, f.ptr(key))
    entry = f.find(kind, map_.ptr, key)

    def insert() -> None:
        place = f.entry(kind, map_.ptr, map_.arena, key)
        if fresh and map_.arena == TEMPORARY:
            f.put(new, place)
        else:
            f.keep(new, place, map_.arena)

    if_(b, b.op(f"icmp ne ptr {entry}, null"),
        lambda: f.assign(new, value_of(b, kind, entry), map_.arena, fresh=fresh), insert)  # fmt: skip


def remove_entry(f: Frame, map_: Memory, entry: str) -> None:
    """Takes an entry out of a map and drops what it has."""
    b, kind = f.b, map_.type
    assert isinstance(kind, t.Map | t.OMap)  # noqa: S101 - by the caller
    address = b.op(f"ptrtoint ptr {entry} to i64")
    void(b, f.module.map_function("map_remove", kind), f"ptr {map_.ptr}", f"i64 {address}")
    for type_, at in ((kind.key, key_of(b, entry)), (kind.value, value_of(b, kind, entry))):
        if not is_plain(type_):
            void(b, f.module.derived("drop", type_), f"ptr {map_.arena}", f"ptr {at}")


def beyond(f: Frame, bound: typed.Apply, map_: Memory, key: Value, most: Value) -> str:
    """Goes to another block if a map has as many entries as `keep_first` or `keep_last` lets stay, and a key is beyond them.

    The label of that block, which is to begin behind what would be done with the entry.
    """
    b, kind, first = f.b, map_.type, bound.operation == "keep_first"
    assert isinstance(kind, t.OMap)  # noqa: S101 - by the operation
    full, fits, leave = (b.fresh(name) for name in ("full", "fits", "beyond"))
    count = b.op(f"load i64, ptr {map_.ptr}")
    some, all_ = b.op(f"icmp ne i64 {count}, 0"), b.op(f"icmp eq i64 {count}, {f.reg(most)}")
    b.branch(b.op(f"and i1 {some}, {all_}"), full, fits)
    b.at(full)
    end = b.op(f"getelementptr inbounds i64, ptr {map_.ptr}, i64 {2 if first else 1}")
    last = f.load(kind.key, key_of(b, b.op(f"load ptr, ptr {end}")))
    sought = f.load(kind.key, f.canonical(key))
    x, y = (last, sought) if first else (sought, last)
    b.branch(arithmetic.total_less(f, x, y), leave, fits)
    b.at(fits)
    return leave


def _keys(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    b, (map_,) = f.b, values
    kind, inner = map_.type, t.parts(expr.type)[0]
    if not isinstance(kind, t.Map | t.OMap):
        raise Unsupported(f"`{expr.operation}` of {kind}")
    slot = f.empty(expr.type)

    def add(entry: str) -> None:
        place = key_of(b, entry) if expr.operation == "keys" else value_of(b, kind, entry)
        put_item(f, f.load(inner, place), f.pushed(slot, inner))

    entries(b, f.ptr(map_), add)
    return Memory(expr.type, slot)


def _sought(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """Keys of ordered maps: `first_key`, `last_key`, `floor`, `ceil`; the latter two also round floats."""
    b, kind, wanted = f.b, values[0].type, expr.type
    if not isinstance(kind, t.OMap):
        return arithmetic.RULES[expr.operation](f, expr, values)
    map_ = f.ptr(values[0])
    if expr.operation in ("floor", "ceil"):
        name = f.module.map_function(f"map_{expr.operation}", kind)
        entry = b.call("ptr", name, [f"ptr {map_}", f"ptr {f.canonical(values[1])}"])
    else:
        word = 1 if expr.operation == "first_key" else 2
        entry = b.op(f"load ptr, ptr {b.op(f'getelementptr inbounds i64, ptr {map_}, i64 {word}')}")
    assert isinstance(wanted, t.Optional)  # noqa: S101 - by the rule
    return f.choice(
        wanted, b.op(f"icmp ne ptr {entry}, null"),
        lambda: f.optional(wanted, f.load(kind.key, key_of(b, entry))), lambda: f.optional(wanted, None),
    )  # fmt: skip


def _between(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    """`range`: the keys of an ordered map from one key to another."""
    b, (map_, low, high) = f.b, values
    kind = map_.type
    assert isinstance(kind, t.OMap)  # noqa: S101 - by the rule
    high = high if isinstance(high, Scalar) else Memory(high.type, f.ptr(high))
    slot, cursor = f.empty(expr.type), b.slot("ptr")
    first = b.call(
        "ptr", f.module.map_function("map_ceil", kind), [f"ptr {f.ptr(map_)}", f"ptr {f.canonical(low)}"]
    )
    b.do(f"store ptr {first}, ptr {cursor}")
    again, there, inside, after = (b.fresh(name) for name in ("again", "there", "inside", "after"))
    b.at(again)
    entry = b.op(f"load ptr, ptr {cursor}")
    b.branch(b.op(f"icmp ne ptr {entry}, null"), there, after)
    b.at(there)
    key = f.load(kind.key, key_of(b, entry))
    b.branch(arithmetic.total_less(f, key, high), inside, after)
    b.at(inside)
    put_item(f, key, f.pushed(slot, kind.key))
    b.do(f"store ptr {b.op(f'load ptr, ptr {entry}')}, ptr {cursor}")
    b.go(again)
    b.at(after)
    return Memory(expr.type, slot)


def _count(f: Frame, expr: typed.Apply, values: Sequence[Value]) -> Value:
    bag, one = values
    assert isinstance(bag.type, t.Bag)  # noqa: S101 - by the rule
    name = f.module.map_function("bag_count", bag.type)
    return Scalar(t.I64, f.b.call("i64", name, [f"ptr {f.ptr(bag)}", f"ptr {f.ptr(one)}"]))


RULES: Final[dict[str, Rule]] = {
    "keys": _keys,
    "values": _keys,
    "first_key": _sought,
    "last_key": _sought,
    "floor": _sought,
    "ceil": _sought,
    "range": _between,
    "count": _count,
}
