"""Lists, arrays and deques by position (il.md 2.2). `len`, `get`, `set`, `contains` serve maps and bags, too.

Meanings read both forms of a container; those that change one get the mutable form. What is stored is owned
already.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from river.classes import evolve
from river.lang import types as t
from river.lang.memory import claim
from river.lang.operations.arithmetic import plus_text
from river.lang.operations.effects import (
    APPENDS,
    CUTS,
    LISTS,
    LOOKS,
    PURE,
    TAKES,
    UNORDERED,
    Change,
    Measure,
    by_kind,
    of_entry,
)
from river.lang.operations.operands import Maps, agree, canonical, on_items
from river.lang.operations.table import (
    Binary,
    Known,
    Meaning,
    Operation,
    Signature,
    Types,
    Unary,
    from_any,
    itself,
    optional,
    plain,
    strip,
)  # fmt: skip
from river.lang.values import (
    TrapSignal,
    freezer,
    keyer,
    same,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable


ITEM = 8
"""Bytes of an item in a list of Python, at least."""


def _push(items: Any, item: Any) -> tuple[()]:
    items.append(item)
    return ()


def _popper(take: Callable[[Any], Any]) -> Unary:
    def pop(items: Any) -> Any:
        if not items:
            raise TrapSignal("remove-missing")
        return take(items)

    return pop


def _reader(index: int) -> Unary:
    def read(items: Any) -> Any:
        if not items:
            raise TrapSignal("remove-missing")
        return items[index]

    return read


def _set(types: Types, _result: t.Type) -> Meaning:
    if isinstance(types[0], Maps):
        key = canonical(types[0].key)

        def store(entries: Any, at: Any, value: Any) -> tuple[()]:
            entries[key(at)] = value
            return ()

        return store

    def put(items: Any, at: int, value: Any) -> tuple[()]:
        if not 0 <= at < len(items):
            raise TrapSignal("index-range", at, len(items))
        items[at] = value
        return ()

    return put


def _set_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item)) as container, at, given):
            key: t.Type = t.I64
        case ((t.Map(key, item) | t.OMap(key, item)) as container, at, given):
            pass
        case _:
            return None
    return Signature((container, key, item), t.UNIT) if agree(key, at) and agree(item, given) else None


def _set_traps(types: Types, _result: t.Type) -> tuple[str, ...]:
    return () if isinstance(types[0], Maps) else ("index-range",)


def _get_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item)) as container, at, *rest):
            key: t.Type = t.I64
        case ((t.Map(key, item) | t.OMap(key, item)) as container, at, *rest):
            pass
        case _:
            return None
    match rest:
        case [] if agree(key, at):
            return Signature((container, key), optional(item))
        case [given] if agree(key, at) and agree(item, given):
            return Signature((container, key, item), item)
        case _:
            return None


def _get(types: Types, _result: t.Type) -> Meaning:
    if isinstance(types[0], Maps):
        key = keyer(types[0].key)

        def entry(entries: Any, at: Any, otherwise: Any = None) -> Any:
            return entries.get(at if key is None else key(at), otherwise)

        return entry

    def item(items: Any, at: int, otherwise: Any = None) -> Any:
        return items[at] if 0 <= at < len(items) else otherwise

    return item


def _slice_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    if len(types) != 3 or not all(a in (None, t.I64) for a in types[1:]):
        return None
    match types[0]:
        case t.List() | t.Primitive("string" | "bytes") as container:
            return Signature((container, t.I64, t.I64), container)
        case t.Array(item, _) | t.Deque(item) as container:
            return Signature((container, t.I64, t.I64), t.List(item))
        case _:
            return None


def _slice(types: Types, _result: t.Type) -> Meaning:
    is_deque = isinstance(types[0], t.Deque)

    def cut(items: Any, low: int, high: int) -> Any:
        length = len(items)
        if not 0 <= low <= length:
            raise TrapSignal("index-range", low, length)
        if not low <= high <= length:
            raise TrapSignal("index-range", high, length)
        if is_deque:
            return [*islice(items, low, high)]
        return items[low:high]

    return cut


def _limited(cut: Callable[[Any, int], Any]) -> Binary:
    return lambda items, count: cut(items, max(count, 0))


def _concat_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    hint = strip(wanted)
    known = [type_ for type_ in types if type_ is not None] or ([hint] if hint is not None else [])
    if len(types) != 2 or not known or any(type_ != known[0] for type_ in known):
        return None
    match known[0]:
        case t.List() | t.Primitive("string" | "bytes") as type_:
            return Signature((type_, type_), type_)
        case _:
            return None


def _concat(types: Types, _result: t.Type) -> Binary:
    if isinstance(types[0], t.List):

        def joined(a: Any, b: Any) -> list[Any]:
            claim(ITEM * (len(a) + len(b)))
            return [*a, *b]

        return joined
    return plus_text


def _reverse(types: Types, _result: t.Type) -> Unary:
    if isinstance(types[0], t.Primitive):
        return lambda text: text[::-1]
    return lambda items: list(reversed(items))


def _reverse_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List() | t.Primitive("string")) as type_,):
            return Signature((type_,), type_)
        case (None,) if isinstance(hint := strip(wanted), t.List):
            return Signature((hint,), hint)
        case _:
            return None


def _fill_rule(types: Known, wanted: t.Type | None) -> Signature | None:
    match strip(wanted), types:
        case t.Array(item, _) as target, (given,) if agree(item, given):
            return Signature((item,), target)
        case t.Array(item, _) as target, (given, None | t.I64) if agree(item, given):
            return Signature((item, t.I64), target)
        case t.List(item) as target, (given, None | t.I64) if agree(item, given):
            return Signature((item, t.I64), target)
        case _, (given, None | t.I64) if given is not None:
            return Signature((given, t.I64), t.List(given))
        case _:
            return None


def _fill(types: Types, result: t.Type) -> Meaning:
    freeze = freezer(types[0]) or itself  # the items must not share a mutable value
    if not isinstance(result, t.Array):

        def repeat(value: Any, count: int) -> list[Any]:
            claim(ITEM * count)
            return [freeze(value)] * count

        return repeat
    size = result.size

    def fill(value: Any, count: int = size) -> list[Any]:
        if count != size:
            raise TrapSignal("index-range", count, size)
        return [freeze(value)] * size

    return fill


def _fill_traps(types: Types, result: t.Type) -> tuple[str, ...]:
    return ("index-range",) if isinstance(result, t.Array) and len(types) == 2 else ()


def contains_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    """An item of a container, a key of a map, a part of a string."""
    match types:
        case (t.STRING | None, t.STRING | None):
            return Signature((t.STRING, t.STRING), t.BOOL)
        case ((t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item)) as container, given) if agree(
            item, given
        ):
            return Signature((container, item), t.BOOL)
        case ((t.Map(key, _) | t.OMap(key, _)) as container, given) if agree(key, given):
            return Signature((container, key), t.BOOL)
        case _:
            return None


def contains(types: Types, _result: t.Type) -> Binary:
    """Whether there is such an item, key or part."""
    match types[0]:
        case t.Map(key, _) | t.OMap(key, _) | t.Bag(key):
            convert = keyer(key)
            if convert is None:
                return lambda items, item: item in items
            return lambda items, item: convert(item) in items
        case t.Primitive():
            return lambda text, part: part in text
        case _:
            equal = same(types[1])
            return lambda items, item: any(equal(each, item) for each in items)


def _index_of(types: Types, _result: t.Type) -> Binary:
    equal = same(types[1])
    return lambda items, item: next((i for i, each in enumerate(items) if equal(each, item)), -1)


def _has_length(type_: t.Type) -> bool:
    return t.is_container(type_) or type_ in (t.STRING, t.BYTES)


def _to_list_rule(types: Known, _wanted: t.Type | None) -> Signature | None:
    match types:
        case ((t.List(item) | t.Array(item, _) | t.Deque(item) | t.Bag(item)) as container,):
            return Signature((container,), t.List(item))
        case _:
            return None


_LISTS = (t.List, t.Array, t.Deque)

OPERATIONS: tuple[Operation, ...] = (
    Operation("len", from_any(_has_length, t.I64, t.UNIT), plain(len),
        "how many items, entries, code points or bytes", native="inline",
        effect=evolve(UNORDERED, measure=Measure.COUNT)),
    Operation("push", on_items(t.List, None, result=t.UNIT), plain(_push), "adds an item at the end",
        mutates="container", effect=APPENDS),
    Operation(
        "pop", on_items(t.List, result="item"), plain(_popper(lambda items: items.pop())),
        "removes and returns the last item; traps if there is none", ("remove-missing",), mutates="container",
        effect=TAKES,
    ),
    Operation(
        "set", _set_rule, _set, "stores an item at an index (traps outside) or an entry at a key",
        _set_traps, mutates="container",
        effect=by_kind(Maps, of_entry(evolve(PURE, change=Change.GROWS, puts=2)), evolve(PURE, puts=2))
    ),
    Operation("get", _get_rule, _get, "the item at an index, or the value of a key; otherwise none, or c",
        effect=by_kind(Maps, of_entry(LOOKS), LOOKS)),
    Operation("slice", _slice_rule, _slice, "the items from b to c, c excluded; traps outside",
        ("index-range",), effect=CUTS),
    Operation("take", on_items(t.List, t.I64, result="same"), plain(_limited(lambda items, n: items[:n])),
              "the first b items, or all", effect=CUTS),
    Operation("drop_first", on_items(t.List, t.I64, result="same"), plain(_limited(lambda items,
        n: items[n:])),
              "all but the first b items", effect=CUTS),
    Operation("fill", _fill_rule, _fill, "a list of b times a; an array of the size wanted", _fill_traps,
        effect=PURE),
    Operation("concat", _concat_rule, _concat, "a, then b", effect=evolve(LISTS, change=Change.GROWS)),
    Operation("reverse", _reverse_rule, _reverse, "last first", effect=LISTS),
    Operation("contains", contains_rule, contains, "whether b is an item, a key, or a part of the string",
        effect=by_kind(Maps, of_entry(PURE), UNORDERED)),
    Operation("index_of", on_items(_LISTS, None, result=t.I64), _index_of,
        "the index of the first item equal to b, or -1", effect=PURE),
    Operation("to_list", _to_list_rule, plain(list), "the items in order", effect=LISTS),
    Operation("push_back", on_items(t.Deque, None, result=t.UNIT), plain(_push), "adds an item at the back",
        mutates="container", effect=APPENDS),
    Operation(
        "pop_front", on_items(t.Deque, result="item"), plain(_popper(lambda items: items.popleft())),
        "removes and returns the item at the front; traps if there is none", ("remove-missing",),
        mutates="container", effect=evolve(TAKES, first=True),
    ),
    Operation(
        "pop_back", on_items(t.Deque, result="item"), plain(_popper(lambda items: items.pop())),
        "removes and returns the item at the back; traps if there is none", ("remove-missing",),
        mutates="container", effect=TAKES,
    ),
    Operation("front", on_items(t.Deque, result="item"), plain(_reader(0)),
        "the item at the front; traps if there is none",
              ("remove-missing",), effect=evolve(LOOKS, first=True)),
    Operation("back", on_items(t.Deque, result="item"), plain(_reader(-1)),
        "the item at the back; traps if there is none",
              ("remove-missing",), effect=LOOKS),
)  # fmt: skip
