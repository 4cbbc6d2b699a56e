"""Outputs of a run: where their rows go, and how many went there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from river.classes import define

if TYPE_CHECKING:
    from river.backend import Items
    from river.driver.job import Job
    from river.il.graph import Graph
    from river.io.sinks import ArrowSink, Sink, TextSink
    from river.lang.types import Type
    from river.restart import RunKeeper


def row_types(graph: Graph) -> dict[str, Type]:
    """Types of the rows of outputs as they are written (a relation as its change log), by name."""
    from river.io import deltas

    types = {name: graph.queues[name].type for name in graph.outputs}
    rows = {name: deltas.changelog(t) if deltas.is_delta(t) else t for name, t in types.items()}
    return rows | {view.name: view.type for view in graph.views}


def open_output(
    job: Job, name: str, type_: Type, keeper: RunKeeper | None, most: int | None = None
) -> CountedSink:
    """The sink of output `name`, for so many rows at most; one that goes on, from where the checkpoint says."""
    from river.io.sinks import open_sink

    position, rows = (None, 0) if keeper is None else keeper.position(name)
    if name not in job.outputs and job.default is not None:
        return CountedSink(job.default(name, type_), rows, most)
    target, format_ = job.outputs.get(name), job.formats.get(name)
    in_place = job.live is not None or keeper is not None
    index = job.indices.get(name, 0)
    sink = open_sink(
        target, type_, name=name, format=format_, in_place=in_place, resume=position, index=index
    )
    return CountedSink(sink, rows, most)


@define
class CountedSink:
    """A sink that knows how many rows it got; what comes behind the first `most` is no part of the output."""

    sink: Sink
    rows: int = 0
    most: int | None = None

    def write(self, items: Items) -> None:
        """Passes the rows on."""
        if self.most is not None:
            items = items[: max(0, self.most - self.rows)]
        self.rows += len(items)
        self.sink.write(items)

    @property
    def room(self) -> int | None:
        """How many more rows the sink has a use for; None: all."""
        own = None if self.most is None else max(0, self.most - self.rows)
        found = getattr(self.sink, "room", None)
        return own if found is None else found if own is None else min(own, found)

    def skip(self, rows: int) -> None:
        """Counts rows that the sink has no use for."""
        if self.most is not None:
            rows = min(rows, max(0, self.most - self.rows))
        if rows:
            self.rows += rows
            cast("Any", self.sink).skip(rows)

    def write_bytes(self, data: bytes | memoryview, rows: int) -> None:
        """Passes lines on, to a `TextSink`."""
        self.rows += rows
        cast("TextSink", self.sink).write_bytes(data)
        if getattr(self.sink, "room", None) is not None:
            cast("Any", self.sink).skip(rows)

    def write_table(self, batch: Any) -> None:
        """Passes an Arrow record batch on, to an `ArrowSink`."""
        if self.most is not None:
            batch = batch.slice(0, max(0, self.most - self.rows))
        self.rows += batch.num_rows
        cast("ArrowSink", self.sink).write_table(batch)


@define(eq=False)
class Writer:
    """What takes the items of an output, which are of `type`: a delta is written as its rows in the change log."""

    type: Type
    sink: CountedSink

    def __call__(self, items: Items) -> None:
        """Writes items."""
        from river.io import deltas

        if deltas.is_delta(self.type):
            items = [row for item in items for row in deltas.changelog_rows(item)]
        self.sink.write(items)
