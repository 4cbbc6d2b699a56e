"""Sinks that take columns: those of the driver whose text or Arrow data native code makes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from backends.native.egress.encoder import encoder
from backends.native.layout import Unsupported, columns
from backends.native.llvm import available
from river.classes import frozen
from river.driver import CountedSink, Writer
from river.io import deltas
from river.io.sinks import ArrowSink, Collector, DividingSink, Later, TextSink

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from backends.native.batch import Batch
    from backends.native.egress.encoder import Encoder
    from river.backend import Items
    from river.io.sinks import Sink
    from river.lang.types import Type


@frozen(eq=False)
class ColumnSink:
    """A sink of items that takes batches of columns too."""

    items: Callable[[Items], None]
    columns: Callable[[Batch], None]

    def __call__(self, items: Items) -> None:
        """Takes items."""
        self.items(items)


def column_sink(sink: Callable[[Items], None]) -> Callable[[Items], None]:
    """The sink with a method `columns` if it is one of the driver's, whose output native code can make; else as it is."""
    if not isinstance(sink, Writer):
        return sink
    target = sink.sink.sink
    if isinstance(target, TextSink):
        found = encoder(sink.type, target.format, target.entry)
        return sink if found is None else ColumnSink(sink, partial(_text, sink, found))
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


def _text(sink: Writer, found: Encoder, batch: Batch) -> None:
    """Writes rows as lines."""
    encoded, room = found.encode(batch), sink.sink.room
    if encoded is None:
        sink(batch.values())
    elif room is None or encoded.rows <= room:
        sink.sink.write_bytes(encoded.data, encoded.rows)
    elif room == 0:
        sink.sink.skip(encoded.rows)
    elif deltas.is_delta(sink.type):  # of which some rows have room
        sink(batch.values())
    else:
        _text(sink, found, batch[:room])
        sink.sink.skip(encoded.rows - room)


def _arrow(sink: Writer, target: ArrowSink) -> Callable[[Batch], None]:
    from backends.native.arrow import to_arrow

    if deltas.is_delta(sink.type):
        from backends.native.egress.changelog import change_log

        return lambda batch: sink.sink.write_table(change_log(target.type, batch))
    if isinstance(target, DividingSink):
        return lambda batch: sink.sink.write_table(to_arrow(target.type, batch, copied=True))
    if isinstance(target, Collector):
        type_ = target.type

        # What is collected stays: the memory of the batches is used again meanwhile.
        def made(rows: Batch) -> Any:
            return to_arrow(type_, rows, copied=True)

        return lambda batch: sink.sink.write_table(Later(batch, made))
    return lambda batch: sink.sink.write_table(to_arrow(target.type, batch))
