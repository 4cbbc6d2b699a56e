"""Rows dealt to shards by the hash of their key, and what was made of them put in order again: all in loops over columns.

What is dealt lies in memory of its own, shard behind shard, and may be cut at the borders; texts stay where they are.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, assert_never

from backends.native.batch import Batch, address_of, concat
from backends.native.layout import SUM_WORDS, Unsupported, columns, is_text
from backends.native.operator import Refused, compile_native
from backends.native.shared import ModuleText, shared
from river.classes import frozen
from river.lang import typed
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from backends.native.jit import Code
    from backends.native.operator import NativeOperator, NativeVariable

Path = tuple[int, ...]
"""Positions of fields, from the outside in; empty: the whole."""

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64
_FUNCTIONS: Final = {
    "dealt": ((_P, _P, _P, _I, _I), None),
    "noted": ((_P, _P, _P, _P, _I, _I, _I), None),
    "ordered": ((_P, _P, _P, _I), _I),
    "repeated": ((_P, _P, _I, _I), None),
    "gather_offsets": ((_P, _P, _P, _I), _I),
    "gather_items": ((_P, _P, _P, _I), None),
    "gather_8": ((_P, _P, _P, _I), None),
    "gather_32": ((_P, _P, _P, _I), None),
    "gather_64": ((_P, _P, _P, _I), None),
    "gather_128": ((_P, _P, _P, _I), None),
    "gather_texts": ((_P, _P, _P, _I), None),
}


@cache
def _code() -> Code:
    def make() -> ModuleText:
        from backends.native.ir import module_text
        from backends.native.rtlang import Unit, compile_file

        functions = compile_file("deal.rt", Unit()).functions
        texts = (f.text.replace("define internal", "define", 1) for f in functions.values())
        return ModuleText(module_text(texts), tuple(_FUNCTIONS))

    return shared("deal", make)


@cache
def _function(name: str) -> Callable[..., Any]:
    return _code().function(name, *_FUNCTIONS[name])


def words(count: int) -> Any:
    """So many 64-bit numbers, zero."""
    return (ctypes.c_int64 * max(count, 1))()


# ------------------------------------------------------------------------------------------------------------ shards


@lru_cache(maxsize=256)
def sharding(type_: t.Type, keys: tuple[Path, ...], count: int) -> NativeOperator | None:
    """The operator that emits the shard of each item: `hash64` of its key modulo `count`; None if there is no machine code.

    `keys`: where the parts of the key are. One that may be missing has the shard of what it is where it is there: a join may
    meet it with one that is always there.
    """
    parts = tuple(_there(_part(typed.Local(type_, 0, "row"), path)) for path in keys)
    both = t.Tuple(tuple(part.type for part in parts))
    key = parts[0] if len(parts) == 1 else typed.MakeRecord(both, parts, tuple(range(len(parts))))
    hashed = typed.Apply(t.U64, "hash64", (key,), None)
    shard = typed.Apply(t.U64, "rem.trunc", (hashed, typed.Literal(t.U64, count)), 0)
    operator = typed.Operator(
        "shard",
        ports=(typed.Port("row", type_, None, ()),),
        vars=(),
        outs=(typed.Out("shard", t.U64, None, None),),
        consts=(),
        fns=(),
        sites=(typed.TrapSite(("division-by-zero",)),),
        items=(typed.ItemHandler(0, 1, typed.Block((typed.Emit(0, shard),))),),
        first=None,
        rated=None,
        phases=(),
        merge=None,
        mark=None,
    )
    try:
        made = compile_native(operator)
    except Unsupported:
        return None
    return None if isinstance(made, Refused) else made


def _there(value: typed.Expr) -> typed.Expr:
    """A value that is there, of one that may be missing."""
    if not isinstance(value.type, t.Optional):
        return value
    inner = value.type.inner
    return typed.Apply(inner, "coalesce", (value, typed.Apply(inner, "zero", ())))


def _part(value: typed.Expr, path: Path) -> Any:
    for place in path:
        value = typed.Get(t.parts(value.type)[place], value, place, str(place))
    return value


@frozen(eq=False)
class Dealt:
    """Rows by shard: those of shard `i` are `rows[ends[i - 1] : ends[i]]`; `order` has where they stood before."""

    rows: Batch
    order: Any
    ends: Sequence[int]

    def positions(self, start: int, end: int) -> Any:
        """Where the rows `start` to `end` - 1 stood before, as a sequence on the same memory."""
        return (ctypes.c_int64 * (end - start)).from_buffer(self.order, 8 * start)

    def shards(self) -> Iterator[tuple[int, int, int]]:
        """The shards that have rows, with the first row and the one after the last."""
        start = 0
        for shard, end in enumerate(self.ends):
            if start < end:
                yield shard, start, end
            start = end


class Dealer:
    """Deals rows of a type; used by one thread at a time."""

    def __init__(self, native: NativeOperator, count: int) -> None:
        self._native = native.again()
        self.count = count

    @classmethod
    def of(cls, type_: t.Type, keys: tuple[Path, ...], count: int) -> Dealer | None:
        """One for keys that machine code can hash."""
        native = sharding(type_, keys, count)
        return None if native is None else cls(native, count)

    def deal(self, batch: Batch, extra: Batch | None = None) -> Dealt:
        """The rows of a batch by shard. `extra`: rows beside them, of which the shards are to have theirs instead."""
        rows, order, ends = len(batch), words(len(batch)), words(self.count)
        carried = batch if extra is None else extra
        if rows:
            self._native.fire("item.0", batch.addresses, 0, rows)
            ((_, shards, _),) = self._native.take()
            address = shards.addresses[0]
            _function("dealt")(order, ends, address, rows, self.count)
            if not _alone(ends, rows):
                carried = gathered(carried, order, rows)
        return Dealt(carried, order, tuple(ends))


def _alone(ends: Any, rows: int) -> bool:
    """Whether one shard has all rows: then they lie as they are."""
    return all(end in (0, rows) for end in ends)


# ------------------------------------------------------------------------------------------------------------ gather


def gathered(batch: Batch, order: Any, count: int) -> Batch:
    """The rows with the first `count` numbers of `order`, in columns of their own."""
    kept: list[Any] = [batch.kept]
    addresses = tuple(_gathered(batch.type, iter(batch.addresses), order, count, kept))
    return Batch(batch.type, count, addresses, kept, batch.texts * count // max(1, batch.rows))


def _room(size: int, kept: list[Any]) -> int:
    """The address of so many bytes."""
    found = bytearray(max(size, 16))
    kept.append(found)
    return address_of(found)


def _gathered(type_: t.Type, at: Iterator[int], order: Any, count: int, kept: list[Any]) -> Iterator[int]:
    match type_:
        case t.UNIT:
            pass
        case t.Optional(inner):
            yield _flat(1, next(at), order, count, kept)
            yield from _gathered(inner, at, order, count, kept)
        case t.Record() | t.Tuple():
            for part in t.parts(type_):
                yield from _gathered(part, at, order, count, kept)
        case t.Array(inner, size):
            parts = _repeated(order, count, size, kept)
            yield from _gathered(inner, at, parts, count * size, kept)
        case t.FSUM:
            yield _flat(8, next(at), _repeated(order, count, SUM_WORDS, kept), count * SUM_WORDS, kept)
        case t.List() | t.Deque() | t.Bag() | t.Map() | t.OMap():
            source, total = next(at), 0
            offsets, items = _room(8 * (count + 1), kept), 0
            if count:
                total = _function("gather_offsets")(offsets, source, order, count)
                items = _room(8 * total, kept)
                _function("gather_items")(items, source, order, count)
            yield offsets
            for part in t.parts(type_):
                yield from _gathered(part, at, items, total, kept)
        case t.Primitive() | t.Decimal():
            (column,) = columns(type_).columns
            name = "gather_texts" if is_text(type_) else f"gather_{8 * column.kind.size}"
            yield _flat(column.kind.size, next(at), order, count, kept, name)
        case t.Function():
            raise Unsupported(f"columns of {type_}")
        case _:
            assert_never(type_)


def _repeated(order: Any, count: int, size: int, kept: list[Any]) -> int:
    found = _room(8 * count * size, kept)
    _function("repeated")(found, order, count, size)
    return found


def _flat(size: int, source: int, order: Any, count: int, kept: list[Any], name: str = "") -> int:
    to = _room(size * count, kept)
    if count:
        _function(name or f"gather_{8 * size}")(to, source, order, count)
    return to


# ------------------------------------------------------------------------------------------------------------ joined


@frozen(eq=False)
class Share:
    """What the firings on some rows of a batch made for one output.

    `positions`: the numbers of the rows (of `Dealt`), of which `fired` were fired; `firsts`: how many items were there
    before each of these firings, in the first column; None where each made one.
    """

    items: Batch
    positions: Any
    fired: int
    firsts: Batch | None


def joined(shares: Sequence[Share], rows: int, stop: int) -> Batch | None:
    """The items in the order of the rows that they were made of, of a batch of `rows`: those made of rows before `stop`.

    None: there are none.
    """
    made = [share for share in shares if len(share.items)]
    if not made:
        return None
    firsts, counts = words(rows), words(rows)
    base = 0
    for share in made:
        count = len(share.items)
        before = None if share.firsts is None else share.firsts.addresses[0]
        at = ctypes.addressof(share.positions)
        _function("noted")(firsts, counts, at, before, share.fired, count, base)
        base += count
    order = words(base)
    total: int = _function("ordered")(order, firsts, counts, stop)
    if not total:
        return None
    return gathered(concat([share.items for share in made]), order, total)


# --------------------------------------------------------------------------------------------------------- variables


def divide(variable: NativeVariable, keys: tuple[Path, ...], parts: Sequence[NativeVariable]) -> bool:
    """Deals the entries of a map to variables of the same type; where the parts of the key lie in those of the map.

    False: there is no machine code for it.
    """
    key, value = t.parts(variable.type)
    dealer = Dealer.of(key, keys, len(parts))
    if dealer is None:
        return False
    entry = t.Tuple((key, value))
    width = len(columns(key).columns)
    with variable.columns() as whole:
        at, *inside = whole.addresses
        count = ctypes.c_int64.from_address(at + 8).value - ctypes.c_int64.from_address(at).value
        entries = Batch(entry, count, tuple(inside), whole.kept)
        dealt = dealer.deal(Batch(key, count, tuple(inside[:width]), whole.kept), entries)
        for shard, start, end in dealt.shards():
            offsets = (ctypes.c_int64 * 2)(0, end - start)
            rows = dealt.rows[start:end]
            row = Batch(variable.type, 1, (ctypes.addressof(offsets), *rows.addresses), (offsets, rows))
            parts[shard].fill(row)
    return True
