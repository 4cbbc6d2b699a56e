"""Deltas divided by the keys of their rows, and put together again: one for an instant, its rows in the order of their tags.

A part is a column of deltas whose rows carry tags (`river.il.tagged`): the number of a row among the insertions of the batch,
or, of a deletion, among its deletions, above those of all insertions. Where rows may stay for longer, numbers go on from batch to
batch. Nothing here looks at a row from Python.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backends.native.batch import Batch, concat
from backends.native.deal import Dealer, Dealt, gathered, words
from backends.native.layout import widths
from backends.native.shared import ModuleText, shared
from river.classes import frozen
from river.il.annotations import row_type
from river.il.tagged import tag_delta
from river.lang import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backends.native.deal import Path
    from backends.native.jit import Code

_P: Final = ctypes.c_void_p
_I: Final = ctypes.c_int64
_FUNCTIONS: Final = {
    "cut": ((_P, _P, _P, _P, _P, _I, _P, _P, _I, _I, _P, _P, _I, _I, _I), _I),
    "rising": ((_P, _I), _I),
    "raised": ((_P, _I, _I), None),
    "instants": ((_P, _P, _I, _P), _I),
    "woven": ((_P, _P, _P, _P, _P, _P, _P, _I, _P, _P, _P, _P, _P, _P), _I),
}


@cache
def _code() -> Code:
    def make() -> ModuleText:
        from backends.native.ir import module_text
        from backends.native.rtlang import Unit, compile_file

        functions = compile_file("deltas.rt", Unit()).functions
        texts = (f.text.replace("define internal", "define", 1) for f in functions.values())
        return ModuleText(module_text(texts), tuple(_FUNCTIONS))

    return shared("deltas", make)


@cache
def _function(name: str) -> Callable[..., Any]:
    return _code().function(name, *_FUNCTIONS[name])


@frozen(eq=False)
class PartOfDeltas:
    """The deltas of a shard; `positions`: which of those of the batch they are parts of, ascending."""

    shard: int
    deltas: Batch
    positions: Sequence[int]


def rising(batch: Batch) -> int:
    """How many deltas there are before the first whose instant is not after that of the one before it."""
    return _function("rising")(batch.addresses[0], len(batch))


class DeltaDealer:
    """Deals the rows of deltas of a type to `count` shards by a key; used by one thread at a time.

    Instants are whole numbers of 64 bits. `lasting`: all shards get all instants, and no two rows ever have the same tag.
    `first`: the least tag.
    """

    def __init__(self, type_: t.Type, rows: Dealer, *, lasting: bool = False, first: int = 0) -> None:
        self.type = tag_delta(type_)
        self._rows = rows
        self._lasting = lasting
        self._next = first  # tag
        row = row_type(type_)
        assert row is not None  # noqa: S101 - by `of`
        self._row = row

    @classmethod
    def of(
        cls, type_: t.Type, keys: tuple[Path, ...], count: int, *, lasting: bool = False, first: int = 0
    ) -> DeltaDealer | None:
        """One for deltas whose rows have keys that machine code can hash; `keys`: where in the rows their parts are."""
        row = row_type(type_)
        if row is None or t.parts(type_)[0] not in (t.I64, t.TIME):
            return None
        rows = Dealer.of(row, keys, count)
        return None if rows is None else cls(type_, rows, lasting=lasting, first=first)

    def deal(self, batch: Batch) -> list[PartOfDeltas]:
        """The parts of deltas that have any; one without rows is the first shard's, if not all get it."""
        width, count = widths(self._row)[0], len(batch)
        taus, ins, *rest = batch.addresses
        sides: list[tuple[int, Dealt]] = []
        for offsets, columns in ((ins, rest[:width]), (rest[width], rest[width + 1 :])):
            first, end = _long(offsets), _long(offsets + 8 * count)
            rows = Batch(self._row, end, tuple(columns), batch.kept, batch.texts // 2)[first:end]
            sides.append((offsets, self._rows.deal(rows)))
        (_, inserted), (_, deleted) = sides
        found = [self._part(batch, taus, sides, shard) for shard in range(self._rows.count)]
        raised, come, gone = _function("raised"), len(inserted.rows), len(deleted.rows)
        raised(deleted.order, gone, self._next + come)
        if self._next:
            raised(inserted.order, come, self._next)
        if self._lasting:
            self._next += come + gone
        return [part for part in found if part is not None]

    def _part(
        self, batch: Batch, taus: int, sides: Sequence[tuple[int, Dealt]], shard: int
    ) -> PartOfDeltas | None:
        """What a shard has of deltas."""
        count = len(batch)
        room = [words(count), words(count), words(count + 1), words(count + 1)]
        given: list[Any] = []
        columns: list[tuple[int, ...]] = []
        kept: list[Any] = [batch.kept, *room]
        texts = 0
        for offsets, dealt in sides:
            start, end = dealt.ends[shard - 1] if shard else 0, dealt.ends[shard]
            given += [offsets, dealt.order, start, end]
            rows = dealt.rows[start:end]
            columns.append((ctypes.addressof(dealt.order) + 8 * start, *rows.addresses))
            kept += [rows.kept, dealt.order]
            texts += rows.texts
        made: int = _function("cut")(*room, taus, count, *given, 2 if self._lasting else int(shard == 0))
        if not made:
            return None
        at, ins, gone = (ctypes.addressof(room[i]) for i in (0, 2, 3))
        addresses = (at, ins, *columns[0], gone, *columns[1])
        positions: Any = (ctypes.c_int64 * made).from_buffer(room[1])
        return PartOfDeltas(shard, Batch(self.type, made, addresses, kept, texts), positions)


def behind(deltas: Batch, bit: int) -> None:
    """Gives deletions, which nobody else has seen yet, tags above those of all insertions: theirs, below 2 ^ `bit`, and that."""
    row = row_type(deltas.type)
    assert row is not None  # noqa: S101 - they are deltas
    _, _, *rest = deltas.addresses
    offsets, tags = rest[widths(row)[0] :][:2]
    first, end = _long(offsets), _long(offsets + 8 * len(deltas))
    _function("raised")(tags + 8 * first, end - first, 1 << bit)


def instants(parts: Sequence[Batch]) -> int:
    """How many instants there are of which any of the parts has a delta."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return sum(map(len, parts))
    taus = concat([Batch(t.I64, len(part), part.addresses[:1], part.kept) for part in parts])
    heads, ends = words(len(parts)), words(len(parts))
    total = 0
    for s, part in enumerate(parts):
        heads[s] = total
        ends[s] = total = total + len(part)
    return _function("instants")(heads, ends, len(parts), taus.addresses[0])


def woven(type_: t.Type, parts: Sequence[Batch]) -> Batch:
    """Deltas of type `type_` put together out of parts whose rows carry tags: one for each instant of which there is a part."""
    row = row_type(type_)
    assert row is not None  # noqa: S101 - by the caller
    width = widths(row)[0]
    whole = concat(parts)
    taus, ins, ins_tags, *rest = whole.addresses
    gone, gone_tags = rest[width : width + 2]
    inserted, deleted = rest[:width], rest[width + 2 :]
    if len(parts) == 1:  # they stand as they should
        return Batch(type_, len(whole), (taus, ins, *inserted, gone, *deleted), whole.kept)
    count = len(whole)
    heads, ends, places = words(len(parts)), words(len(parts)), words(2 * len(parts))
    total = 0
    for s, part in enumerate(parts):
        heads[s] = total
        ends[s] = total = total + len(part)
    many = [_long(offsets + 8 * count) for offsets in (ins, gone)]
    orders = [words(each) for each in many]
    room = [words(count), words(count + 1), words(count + 1)]
    made: int = _function("woven")(
        room[0], room[1], orders[0], room[2], orders[1], heads, ends, len(parts), taus, ins, ins_tags, gone,
        gone_tags, places,
    )  # fmt: skip
    sides = [
        gathered(Batch(row, each, tuple(columns), whole.kept), order, each)
        for columns, order, each in zip((inserted, deleted), orders, many, strict=True)
    ]
    at, begin, begin_gone = (ctypes.addressof(each) for each in room)
    addresses = (at, begin, *sides[0].addresses, begin_gone, *sides[1].addresses)
    return Batch(type_, made, addresses, [room, *(side.kept for side in sides)])


def _long(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


__all__ = ["DeltaDealer", "PartOfDeltas", "behind", "instants", "rising", "woven"]
