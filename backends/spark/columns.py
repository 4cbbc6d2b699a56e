"""Pieces as columns: put together, divided among channels, and fired on, without looking at single items.

What `marshal` and `rowwise` do item by item. Items are a `Batch` for machine code and an Arrow record batch for travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backends.firing.instance import may_skip, own
from backends.firing.machine import told
from backends.native.arrow import from_arrow, to_arrow
from backends.native.batch import Batch
from backends.native.deal import sharding
from backends.native.layout import Unsupported, columns
from backends.spark.marshal import Piece, coder, joined, longs, numbers, of_records, read_places
from backends.spark.report import Caught
from backends.spark.rowwise import Trapped
from river.classes import frozen
from river.io.schema import arrow
from river.lang import types as t
from river.lang.values import default, hash64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from backends.native.operator import NativeOperator, NativeTrap
    from backends.spark.report import Report
    from river.il.graph import Instance

Cell = tuple[bytes, bytes, tuple[tuple[int, int], ...]]
"""Places, items and marks of a piece as a row has them."""


def is_columnar(type_: t.Type) -> bool:
    """Whether pieces of items of a type travel as Arrow data, and can be columns for machine code."""
    try:
        columns(type_)
    except Unsupported:
        return False
    return coder(type_).records is not None


def as_batch(type_: t.Type, items: Any) -> Batch:
    """Items of a piece for machine code."""
    if isinstance(items, Batch):
        return items
    if isinstance(items, list):
        return Batch.of(type_, items)  # pyright: ignore[reportUnknownArgumentType]
    found = from_arrow(type_, items)
    return Batch.of(type_, of_records(type_, items)) if found is None else found


# -------------------------------------------------------------------------------------------------------- together


def gathered(type_: t.Type, cells: Sequence[Cell], *, rows: bool) -> Piece:
    """The piece of one turn and queue out of its parts. `rows`: items of one place are parts of one delta."""
    code = coder(type_)
    if code.records is None:  # of a type that Arrow cannot say
        lists = [(code.decode(items), at, marks) for at, items, marks in cells]
        return joined(
            [Piece(read_places(at, len(found)), found, marks) for found, at, marks in lists], rows=rows
        )
    read = [(code.records(items), at) for at, items, _ in cells]
    if len(read) == 1:
        ((records, at),), ((_, _, marks),) = read, cells
        return Piece(read_places(at, records.num_rows), as_batch(type_, records), marks)
    marks = tuple(sorted({mark for _, _, each in cells for mark in each}))
    pa, compute = arrow(), arrow("compute")
    every = [longs(read_places(at, records.num_rows)) for records, at in read]
    places = pa.concat_arrays(every)
    order = compute.sort_indices(places)  # which is stable
    records = pa.Table.from_batches([records for records, _ in read]).combine_chunks().take(order)
    places = places.take(order)
    (records,) = records.to_batches() or [read[0][0]]
    if rows:
        places, records = _glued(places, records)
    return Piece(numbers(places), as_batch(type_, records), marks)


def _glued(places: Any, deltas: Any) -> tuple[Any, Any]:
    """One delta for each place: rows of one place stand together, so that lists go on to the last of them."""
    pa, compute = arrow(), arrow("compute")
    count = len(places)
    if count == 0:
        return places, deltas
    new = compute.not_equal(places.slice(1), places.slice(0, count - 1))
    firsts = pa.concat_arrays([pa.array([0]), _nonzero(new, 1)])
    ends = pa.concat_arrays([firsts, pa.array([count])])
    tau, *sides = deltas.columns
    joined = [
        pa.ListArray.from_arrays(side.offsets.take(ends), side.values, type=side.type) for side in sides
    ]
    return places.take(firsts), pa.record_batch([tau.take(firsts), *joined], schema=deltas.schema)


def _nonzero(mask: Any, above: int = 0) -> Any:
    """Where a mask is true, `above` added."""
    compute = arrow("compute")
    return compute.add(compute.indices_nonzero(mask).cast(arrow().int64()), above)


# -------------------------------------------------------------------------------------------------------- channels


def splitter(
    type_: t.Type, keys: Sequence[int], count: int, *, rows: bool
) -> Callable[[Piece], list[Piece]] | None:
    """What divides pieces of batches among `count` channels; None if keys of that type need the evaluator.

    `rows`: items are deltas, which are divided by the keys of their rows.
    """
    if not is_columnar(type_):
        return None
    row = t.parts(t.parts(type_)[1])[0] if rows else type_
    native = sharding(row, tuple((key,) for key in keys), count)
    if native is None:
        return None

    def channels(items: Any) -> Any:
        """The channel of each row of a batch, as an Arrow array."""
        native.clear()
        native.fire("item.0", items.addresses, 0, len(items))
        ((_, found, _),) = native.take()
        return to_arrow(t.U64, found).column(0)

    def split_items(piece: Piece) -> list[Piece]:
        batch = as_batch(type_, piece.items)
        if not len(batch):
            return _empty(piece.marks)
        compute = arrow("compute")
        found = channels(batch)
        order = compute.array_sort_indices(found)  # which is stable
        places, records = longs(piece.places).take(order), to_arrow(type_, batch).take(order)
        runs = compute.run_end_encode(found.take(order))
        ends = dict(zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True))
        parts: list[Piece] = []
        start = 0
        for number in range(count):
            size = ends.get(number, start) - start
            part = numbers(places.slice(start, size)), records.slice(start, size)
            parts.append(Piece(*part, piece.marks))
            start += size
        return parts

    def split_rows(piece: Piece) -> list[Piece]:
        batch = as_batch(type_, piece.items)
        if not len(batch):
            return _empty(piece.marks)
        records, places = to_arrow(type_, batch), longs(piece.places)
        sides = [(side, _side_channels(row, side, channels)) for side in records.columns[1:]]
        parts = [[_part(side, found, number) for side, found in sides] for number in range(count)]
        found: list[Piece] = []
        for number, lists in enumerate(parts):
            some = _filled(lists)
            if number == 0:  # that gets what has no rows at all
                some = arrow("compute").or_(some, arrow("compute").invert(_filled(records.columns[1:])))
            wanted = _nonzero(some)
            part = arrow().record_batch([records.column(0), *lists], schema=records.schema).take(wanted)
            found.append(Piece(numbers(places.take(wanted)), part, piece.marks))
        return found

    def _empty(marks: tuple[tuple[int, int], ...]) -> list[Piece]:
        return [Piece([], [], marks) for _ in range(count)]

    return split_rows if rows else split_items


def hashed(type_: t.Record, keys: Sequence[int], count: int) -> Callable[[Any], int]:
    """What gives a record its channel, of so many, by the hash of its key, as `splitter` does (`native.deal.sharding`)."""
    kinds = [type_.fields[place][1] for place in keys]
    there = [kind.inner if isinstance(kind, t.Optional) else kind for kind in kinds]
    missing = [default(kind) for kind in there]

    def parts(value: Any) -> list[Any]:
        found = (value[place] for place in keys)
        return [none if part is None else part for part, none in zip(found, missing, strict=True)]

    if len(keys) == 1:
        (kind,) = there
        return lambda value: hash64(kind, parts(value)[0]) % count
    both = t.Tuple(tuple(there))
    return lambda value: hash64(both, tuple(parts(value))) % count


def _side_channels(row: t.Type, side: Any, channels: Callable[[Any], Any]) -> Any:
    """The channels of the rows in a column of lists."""
    pa = arrow()
    if not len(side.values):
        return pa.array([], pa.uint64())
    return channels(as_batch(row, pa.RecordBatch.from_struct_array(side.values)))


def _part(side: Any, found: Any, number: int) -> Any:
    """Of the lists in a column the rows of one channel."""
    pa, compute = arrow(), arrow("compute")
    mine = compute.equal(found, number)
    before = pa.concat_arrays([pa.array([0], pa.int32()), compute.cumulative_sum(mine.cast(pa.int32()))])
    return pa.ListArray.from_arrays(before.take(side.offsets), side.values.filter(mine), type=side.type)


def _filled(lists: Sequence[Any]) -> Any:
    """Which items have a row in any of some columns."""
    compute = arrow("compute")
    some = [compute.greater(compute.list_value_length(each), 0) for each in lists]
    return compute.or_(*some)


# ---------------------------------------------------------------------------------------------------------- firing


@frozen(eq=False)
class Columnwise:
    """An instance whose item handler is machine code; as `Rowwise`. `counted`: its operator is `compiled.counting`."""

    instance: Instance
    native: NativeOperator
    report: Report
    skip: bool
    counted: bool

    def __call__(self, chunk: int, piece: Piece) -> list[Piece]:
        """A piece for each output; places are the given ones if `counted`, else count anew. Raises: Trapped."""
        port = self.instance.operator.ports[0]
        batch = as_batch(port.type, piece.items)
        self.native.clear()
        if self.counted:
            self._fire(batch, 0, len(batch), chunk, piece)
            return self._placed(piece)
        marks: list[list[tuple[int, int]]] = [[] for _ in self.native.outputs]
        keyed = [out.by is not None and port.by is not None for out in self.instance.operator.outs]
        done = 0
        for place, key in piece.whole().marks:
            if done < place:
                self._fire(batch, done, place, chunk, piece)
                done = place
            for output, found, ordered in zip(self.native.outputs, marks, keyed, strict=True):
                if ordered:
                    found.append((output.rows, key))
        self._fire(batch, done, len(batch), chunk, piece)
        return [
            Piece(range(len(items)), items, tuple(found))
            for (items, _), found in zip(self._taken(), marks, strict=True)
        ]

    @property
    def variables(self) -> list[Any]:
        """The values of its variables."""
        return [variable.get() for variable in self.native.variables]

    def _fire(self, batch: Batch, start: int, stop: int, chunk: int, piece: Piece) -> None:
        name, at = self.instance.name, start
        while at < stop:
            fired = self.native.fire("item.0", batch.addresses, at, stop)
            self.report.fired[name] += fired.row - at
            at = fired.row
            if fired.trap is None:
                continue
            self._trapped(fired.trap, batch[at : at + 1].values()[0], chunk, piece.places[at])
            at += 1

    def _trapped(self, found: NativeTrap, item: Any, chunk: int, place: int) -> None:
        """Notes an item that may be left out. Raises: Trapped for one that may not."""
        trap = told(self.native.operator, found)
        trap.item = self.instance.operator.ports[0].type, item
        caught = Caught(trap, self.instance.index, chunk, place)
        if not (self.skip and may_skip(self.instance.operator)) or not own(trap):
            raise Trapped(caught) from trap
        self.report.skipped[self.instance.name] += 1
        self.report.passed.append(caught)

    def _taken(self) -> Iterator[tuple[Batch, Batch]]:
        """Items and marks of each output, empty ones too."""
        found = {i: (items, marks) for i, items, marks in self.native.take()}
        for i, output in enumerate(self.native.outputs):
            items, marks = found.get(i, (output.batch(), None))
            yield items, self.native.marks[i].batch() if marks is None else marks

    def _placed(self, piece: Piece) -> list[Piece]:
        """The outputs, each item with the place of the one that it was made of."""
        pa, compute = arrow(), arrow("compute")
        places = longs(piece.places)
        made: list[Piece] = []
        for (items, ticks), out in zip(self._taken(), self.instance.operator.outs, strict=True):
            before = pa.array([0]).slice(1)
            if len(ticks):
                data = pa.foreign_buffer(ticks.addresses[0], 8 * len(ticks), ticks)
                before = pa.Array.from_buffers(pa.int64(), len(ticks), [None, data])
            extents = pa.concat_arrays([before, pa.array([len(items)])])
            groups = pa.LargeListArray.from_arrays(extents, pa.nulls(len(items)))
            causes = places.take(compute.list_parent_indices(groups))
            ordered = out.by is not None and self.instance.operator.ports[0].by is not None
            made.append(Piece(numbers(causes), items, piece.marks if ordered else ()))
        return made
