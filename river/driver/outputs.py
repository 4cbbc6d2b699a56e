"""Outputs of a run: where their rows go, and how many went there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attrs import define

if TYPE_CHECKING:
    from river.backend import Items
    from river.driver.job import Job
    from river.io.sinks import ArrowSink, Sink, TextSink
    from river.lang.types import Type
    from river.restart import Kept


def open_output(job: Job, name: str, type_: Type, keeper: Kept | None) -> Counted:
    """The sink of output `name`; one that goes on, from where the checkpoint says."""
    from river.io.sinks import open_sink

    position, rows = (None, 0) if keeper is None else keeper.position(name)
    if name not in job.outputs and job.default is not None:
        return Counted(job.default(name, type_), rows)
    target, format_ = job.outputs.get(name), job.formats.get(name)
    in_place = job.live is not None or keeper is not None
    sink = open_sink(target, type_, name=name, format=format_, in_place=in_place, resume=position)
    return Counted(sink, rows)


@define
class Counted:
    """A sink that knows how many rows it got."""

    sink: Sink
    rows: int = 0

    def write(self, items: Items) -> None:
        """Passes the rows on."""
        self.rows += len(items)
        self.sink.write(items)

    @property
    def room(self) -> int | None:
        """How many more rows the sink has a use for; None: all."""
        return getattr(self.sink, "room", None)

    def skip(self, rows: int) -> None:
        """Counts rows that the sink has no use for."""
        self.rows += rows
        cast("Any", self.sink).skip(rows)

    def write_bytes(self, data: bytes | memoryview, rows: int) -> None:
        """Passes lines on, to a `TextSink`."""
        self.rows += rows
        cast("TextSink", self.sink).write_bytes(data)
        if self.room is not None:
            cast("Any", self.sink).skip(rows)

    def write_table(self, batch: Any) -> None:
        """Passes an Arrow record batch on, to an `ArrowSink`."""
        self.rows += batch.num_rows
        cast("ArrowSink", self.sink).write_table(batch)


@define(eq=False)
class Writer:
    """What takes the items of an output, which are of `type`: a delta is written as its rows in the change log."""

    type: Type
    sink: Counted

    def __call__(self, items: Items) -> None:
        """Writes items."""
        from river.io import deltas

        if deltas.is_delta(self.type):
            items = [row for item in items for row in deltas.changelog_rows(item)]
        self.sink.write(items)
