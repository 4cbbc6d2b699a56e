"""Sinks that take columns: those of the driver whose text or Arrow data native code makes."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from backends.native.egress.encoder import encoder
from backends.native.layout import Unsupported, columns
from backends.native.llvm import available
from river.classes import define, frozen
from river.driver import CountedSink, Writer
from river.io import deltas
from river.io.sinks import ArrowSink, Collector, DividingSink, Later, TextSink

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from backends.native.batch import Batch
    from backends.native.egress.encoder import Encoded, Encoder
    from river.backend import Items
    from river.io.sinks import Sink
    from river.lang.types import Type


@frozen(eq=False)
class ColumnSink:
    """A sink of items that takes batches of columns too.

    `made` does of that what any thread may do, of several batches at a time; what it returns is called to write the rows, in
    their order.
    """

    items: Callable[[Items], None]
    made: Callable[[Batch], Callable[[], None]]

    def __call__(self, items: Items) -> None:
        """Takes items."""
        self.items(items)

    def columns(self, batch: Batch) -> None:
        """Takes a batch."""
        self.made(batch)()


def column_sink(sink: Callable[[Items], None]) -> Callable[[Items], None]:
    """The sink with a method `columns` if it is one of the driver's, whose output native code can make; else as it is."""
    if not isinstance(sink, Writer):
        return sink
    target = sink.sink.sink
    if isinstance(target, TextSink):
        found = encoder(sink.type, target.format, target.entry)
        return sink if found is None else ColumnSink(sink, _Lines(sink, found, deque([found])).made)
    if isinstance(target, ArrowSink) and available():
        try:
            columns(sink.type)
        except Unsupported:
            return sink
        if isinstance(target, DividingSink):
            target.taker = record_taker
        return ColumnSink(sink, _arrow(sink, target))
    return sink


def record_taker(type_: Type, sink: Sink) -> Callable[[Any], None]:
    """What hands record batches of rows to a sink of such rows."""
    from backends.native.arrow import from_arrow
    from river.io.partitions import rows_of

    taken = column_sink(Writer(type_, CountedSink(sink)))

    def take(records: Any) -> None:
        batch = from_arrow(type_, records) if isinstance(taken, ColumnSink) else None
        if isinstance(taken, ColumnSink) and batch is not None:
            taken.columns(batch)
        else:
            taken(rows_of(type_, records))

    return take


@define(eq=False)
class _Lines:
    """What makes lines of rows for a sink of text. `free`: encoders whose lines have been written, to be used again."""

    sink: Writer
    encoder: Encoder
    free: deque[Encoder]

    def made(self, batch: Batch) -> Callable[[], None]:
        """Makes the lines; returns what writes them."""
        try:
            encoder = self.free.pop()
        except IndexError:
            encoder = self.encoder.again()
        return partial(self._write, batch, encoder, encoder.encode(batch))

    def _write(self, batch: Batch, encoder: Encoder, encoded: Encoded | None) -> None:
        to = self.sink.sink
        room = to.room
        if encoded is None:
            self.sink(batch.values())
        elif room is None or encoded.rows <= room:
            to.write_bytes(encoded.data, encoded.rows)
        elif room == 0:
            to.skip(encoded.rows)
        elif deltas.is_delta(self.sink.type):  # of which some rows have room
            self.sink(batch.values())
        else:
            self.made(batch[:room])()
            to.skip(encoded.rows - room)
        self.free.append(encoder)


def _arrow(sink: Writer, target: ArrowSink) -> Callable[[Batch], Callable[[], None]]:
    from backends.native.arrow import to_arrow

    write = sink.sink.write_table
    if deltas.is_delta(sink.type):
        from backends.native.egress.changelog import change_log

        return lambda batch: partial(write, change_log(target.type, batch))
    if isinstance(target, DividingSink):
        return lambda batch: partial(write, to_arrow(target.type, batch, copied=True))
    if isinstance(target, Collector):
        type_ = target.type

        # What is collected stays: the memory of the batches is used again meanwhile.
        def made(rows: Batch) -> Any:
            return to_arrow(type_, rows, copied=True)

        return lambda batch: partial(write, Later(batch, made))
    return lambda batch: partial(write, to_arrow(target.type, batch))
